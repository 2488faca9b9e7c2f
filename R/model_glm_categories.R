# model_glm() for a response with several levels: the plug-in src/model/categories.c. See model_family_categories.R.

#' @export
clt_statistics.model_categories <- function(model) character()

# The design as C has it begins with the dummies of the response; the design in R begins with one row that represents them.
#' @export
bind_columns.model_categories <- function(model, columns, levels, formula, call) {
  said <- regression_terms(model$formula %||% formula, columns, call, names(model$covariates$constants))
  variables <- said$variables
  columns <- columns[order(match(columns$variable, variables)), ]
  rownames(columns) <- NULL
  response <- variables[1L]
  check_one_form(columns, call)
  check_levels_response(model, columns[columns$variable == response, ], levels[[response]], call)
  bound <- list(model = model, columns = columns, levels = levels[intersect(variables, names(levels))])
  design <- design_columns(columns, bound$levels)
  of_response <- design$variable == response
  bound$base <- rbind(transform(design[1L, ], name = response, level = NA_character_), design[!of_response, ])
  rownames(bound$base) <- NULL
  covariates <- bound$base[-1L, ]
  factors <- bound$levels[setdiff(names(bound$levels), response)]
  check_dependent(covariates, model, factors, call)
  bound$dependent <- is_dependent(covariates, model, factors)
  bound$categories <- bound$levels[[response]]
  bound$ahead <- sum(of_response) - 1L
  bound$terms <- bind_terms(said, bound$base, factors, bind_offsets(said, bound$base, model, call), call, model$covariates)
  bound$design <- bound$terms$design %||% bound$base
  bound$design <- scaled_design(bound, call)
  own <- stats::setNames(list(as.double(length(bound$categories))), model$family)
  bound$spec <- list(name = "categories", fields = c(
    behind_levels(bound$terms$fields, design[of_response, ]) %||% design_fields(design), list(columns = as.double(nrow(columns))), own,
    category_coefficient_fields(bound, call), covariate_fields(covariates, bound$ahead + seq_len(nrow(covariates)), model, factors, call)))
  bound$formula <- model$formula %||% formula
  bound$parameters <- c(if (!inherits(model$prior, "fixed")) category_coefficients(bound), covariate_parameters(covariates, model, factors))
  check_different_names(bound$parameters, call)
  structure(bound, class = c("bound_categories", "bound_regression", "noiseaware_bound"))
}

# Fields of terms with all dummies of the response, `response`, in the place of the one row that represents them.
behind_levels <- function(fields, response) {
  if (is.null(fields)) return(NULL)
  ahead <- nrow(response) - 1L
  fields$centre <- c(numeric(ahead), fields$centre)
  fields$column <- c(as.double(response$column), fields$column[-1L])
  fields$code <- c(as.double(response$code), fields$code[-1L])
  fields$term[-1L] <- fields$term[-1L] + ahead
  for (name in c("product_of", "offset_of")) fields[[name]] <- fields[[name]] + ahead
  fields
}

check_one_form <- function(columns, call) {
  forms <- tapply(is.na(columns$level), columns$variable, function(plain) any(plain) && length(plain) > 1L)
  if (any(forms)) {
    stop_classed("variables", "A factor must be released in one form, but {.var {names(forms)[forms]}} {?is/are} released as codes and as dummy variables.",
                 call = call)
  }
}

check_different_names <- function(names, call) {
  twice <- unique(names[duplicated(names)])
  if (length(twice)) {
    stop_classed("variables", "Covariates and the response's levels must give parameters different names; {.var {twice}} appear{?s/} twice.", call = call)
  }
}

# Names of the coefficients as they are reported: thresholds, then slopes; or those of each level but the first.
threshold_names <- function(bound) paste(utils::head(bound$categories, -1L), bound$categories[-1L], sep = "|")

category_coefficients <- function(bound) {
  slopes <- bound$design$name[-1L]
  if (is_ordered_family(bound$model)) return(c(threshold_names(bound), slopes))
  as.vector(outer(c("(Intercept)", slopes), bound$categories[-1L], function(x, level) sprintf("%s[%s]", x, level)))
}

# The prior's intercept is that of each threshold, which is minus an intercept, or of each level.
category_coefficient_fields <- function(bound, call) {
  prior <- bound$model$prior %||% prior_normal()
  design <- bound$design
  if (inherits(prior, "fixed")) return(list(beta = fixed_category_coefficients(bound, prior$value, call)))
  if (is_ordered_family(bound$model)) prior$mean <- turn_intercept(prior$mean, nrow(design), call)
  said <- independent_coefficients(prior, design, bound_centring(bound), family_scales(bound$model, design), call, family_middle(bound$model, design[1L, ]))
  if (any(said$rows[-1L, ] != diag(nrow(design))[-1L, ])) {
    stop_classed("prior", c("With a response of several levels, no {.arg sd} can be given for variables in products or powers.",
                            i = "Leave out the {.arg sd}."), call = call)
  }
  tilt <- said$rows[1L, -1L]
  list(constant_mean = said$mean[1L] + sum(tilt * said$mean[-1L]), constant_sd = said$sd[1L], tilt = tilt, slope_mean = said$mean[-1L],
       slope_sd = said$sd[-1L])
}

# means by position or by name, with the sign of the intercept's changed
turn_intercept <- function(mean, k, call) {
  if (is.null(mean)) return(NULL)
  if (is.null(names(mean))) mean <- expand_prior(mean, k, "mean", call)
  at <- if (is.null(names(mean))) 1L else which(names(mean) == "(Intercept)")
  replace(mean, at, -mean[at])
}

# in the coordinates of src/model/categories.c
fixed_category_coefficients <- function(bound, value, call) {
  centring <- bound_centring(bound)
  slopes <- nrow(bound$design) - 1L
  cuts <- length(bound$categories) - 1L
  if (!is_ordered_family(bound$model)) {
    value <- matrix(check_fixed(value, (1L + slopes) * cuts, "prior", call), ncol = cuts)
    return(as.double(apply(value, 2L, function(one) centre_coefficients(centring, one))))
  }
  value <- check_fixed(value, cuts + slopes, "prior", call)
  thresholds <- value[seq_len(cuts)]
  if (is.unsorted(thresholds, strictly = TRUE)) {
    stop_classed("prior", "{.arg prior} must fix increasing thresholds, but they are {format_number(thresholds)}.", call = call)
  }
  centred <- centre_coefficients(centring, c(-thresholds[1L], value[-seq_len(cuts)]))
  c(centred[1L], log(diff(thresholds)), centred[-1L])
}

#' @export
describe_model.bound_categories <- function(bound) paste(family_of(bound$model)$text, called_formula(bound$formula))

#' @export
coefficients_of.bound_categories <- function(bound) category_coefficients(bound)

# binary: NA, since a level is neither a number nor a 0 or 1
#' @export
response_of.bound_categories <- function(bound) {
  list(binary = NA, family = stats_family(bound$model), draw = function(fit, expected) draw_levels(expected))
}

# numbers of levels with these probabilities: draws x rows, with the attribute `levels`
draw_levels <- function(probability) {
  size <- dim(probability)
  u <- matrix(stats::runif(size[1L] * size[2L]), size[1L])
  level <- matrix(1L, size[1L], size[2L])
  above <- 0
  for (k in seq_len(size[3L] - 1L)) {
    above <- above + probability[, , k]
    level <- level + (u >= above)
  }
  structure(level, levels = dimnames(probability)[[3L]])
}

#' @export
surrogate_design.bound_categories <- function(bound) {
  model <- bound$model
  if (inherits(model$prior, "fixed") || length(model$covariates$lone) || !is.null(bound$terms)) return(NULL)
  columns <- bound$columns
  response <- columns$variable == columns$variable[1L]
  covariates <- bound$design[-1L, ]
  if (anyNA(columns$level[response]) || !identical(covariates$name, columns$name[!response]) || !anyNA(covariates$level)) return(NULL)
  data.frame(name = columns$name, centre = c(numeric(sum(response)), covariates$centre),
             role = c(rep("rider", sum(response)), ifelse(is.na(covariates$level), "free", "fixed")))
}
