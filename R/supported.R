# What fits together. A model, a statistic and a mechanism combine when the kind
# of variable they see is the same; a method may ask for more.

model_table <- list(
  lm = "number", logistic = c("number", "code"), bernoulli = "code", categorical = "code", naive_bayes = "code",
  poisson = "number", exponential = "number", normal = "number", mvnormal = "number", custom = c("number", "code"),
  compiled = c("number", "code"), expfam = "number"
)

statistic_table <- list(
  crossprod = "number", moments4 = "number", sums = "number", counts = "code", records = c("number", "code"), custom = "number",
  objective = "number"
)

mechanism_table <- c("laplace", "gaussian", "discrete_laplace", "discrete_gaussian", "randomized_response", "custom", "objective")

#' Which combinations exist
#'
#' Models, statistics and mechanisms are independent of one another: any that
#' see the same kind of variable combine. A combination that is not in the table
#' fails before any work starts, with an error that says what is missing.
#'
#' @return A data frame with a row for each combination that works and the
#'   columns `model`, `statistic`, `mechanism`, `method`, `exact` (`NA`: if no
#'   record lies outside the bounds).
#' @details `"naive"` needs the totals that the model's update takes: of `x`, for
#'   [model_normal()] with an unknown sd of `x` and `I(x^2)`; of naive Bayes models
#'   every margin class:feature.
#'
#'   Discrete noise needs a statistic of whole numbers: counts, or the codes of a
#'   factor. Randomised response needs one category per record.
#'   Objective perturbation and the statistic of that name go together.
#' @examples
#' table <- supported()
#' subset(table, model == "lm" & method == "augment")
#' @export
supported <- function() {
  grid <- expand.grid(model = names(model_table), statistic = names(statistic_table), mechanism = mechanism_table,
                      stringsAsFactors = FALSE)
  pairs <- grid[mapply(variables_meet, grid$model, grid$statistic, grid$mechanism), ]
  methods <- lapply(seq_len(nrow(pairs)), function(i) pair_methods(pairs$model[i], pairs$statistic[i], pairs$mechanism[i]))
  out <- pairs[rep(seq_len(nrow(pairs)), lengths(methods)), ]
  out$method <- unlist(methods)
  out$exact <- out$method %in% exact_methods
  out$exact[out$method == "collapse" & out$statistic != "counts"] <- NA
  rownames(out) <- NULL
  out
}

variables_meet <- function(model, statistic, mechanism) {
  if ((statistic == "objective") != (mechanism == "objective")) return(FALSE)
  kinds <- intersect(model_table[[model]], statistic_table[[statistic]])
  if (mechanism == "randomized_response") return(statistic == "records" && "code" %in% kinds)
  if (startsWith(mechanism, "discrete")) return("code" %in% kinds)
  length(kinds) > 0L
}

pair_methods <- function(model, statistic, mechanism) {
  c("augment", if (statistic %in% collapse_table[[model]] && mechanism != "custom") "collapse",
    if (statistic %in% clt_table[[model]] && mechanism != "custom") "clt", if (statistic %in% naive_table[[model]]) "naive")
}

# statistics whose totals a model can update with
naive_table <- list(lm = "crossprod", bernoulli = "counts", categorical = "counts", naive_bayes = "counts",
                    poisson = c("sums", "crossprod"), exponential = c("sums", "crossprod"), normal = c("sums", "crossprod"))

# statistics whose totals have a known law under a model
collapse_table <- list(lm = c("crossprod", "sums"), normal = c("crossprod", "sums"), mvnormal = c("crossprod", "sums"),
                       poisson = "sums", exponential = "sums",
                       bernoulli = "counts", categorical = "counts", naive_bayes = "counts")

# statistics whose moments under a model are known
clt_table <- list(bernoulli = "counts", categorical = "counts", naive_bayes = "counts",
                  poisson = c("sums", "crossprod"), exponential = c("sums", "crossprod"), normal = c("sums", "crossprod"),
                  lm = "crossprod", expfam = c("sums", "crossprod", "moments4", "custom"))
