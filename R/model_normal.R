#' Normal model
#'
#' x ~ N(mean, sd^2); the mean, the standard deviation or both are unknown.
#'
#' @param variable Name of the variable; `NULL` means the release's only variable. Or a formula such as `visits ~ ward` or `~ ward` for the groups of one
#'   release, see [groups].
#' @param prior [prior_nig()] for both, with the mean's prior in units of sd; or `list(mean = , sd = )` with a [prior_normal()] or a [fixed()] mean, and a
#'   [prior_inverse_gamma()] (for sd^2) or a [fixed()] sd.
#'
#' @details By default `prior_nig()` is scaled by the public bounds, of
#'   half-width h about the middle c: sd^2 ~ InverseGamma(3/4, (h / 5)^2) and mean
#'   given sd ~ N(c, (4 sd)^2). The central 90 per cent of the prior for sd range from 0.06 to 0.78 of the bounds' width. Unspecified arguments of
#'   [prior_normal()] give N(c, h^2).
#'
#' **Only means.** If the release has means or sums of a variable but no sum of squares or variance, it does not say how much the records vary. The prior of sd,
#' and through it the width of the interval of the mean, then decide. Ask for the squares (`stat_sums(~ x + I(x^2), bounds)`), or give an sd that is known
#' from elsewhere, as `list(mean = prior_normal(), sd = fixed(2))`. The printed fit says so.
#'
#' @return A model: an object of class `model_normal`. Its parameters are `mean` and `sd`, unless they are fixed.
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @references
#' Gelman, A. et al. (2013). *Bayesian Data Analysis*, 3rd ed., sections 2.5, 2.6
#' and 3.3 (the updates given the records).
#' @family models
#' @examples
#' model_normal()
#' model_normal(prior = list(mean = prior_normal(0, 10), sd = fixed(2)))
#' st <- stat_sums(~ x + I(x^2), bounds = list(x = c(-10, 10)))
#' set.seed(1)
#' rel <- simulate_release(data.frame(x = rnorm(200, 1, 2)), st, mech_gaussian(mu = 1))
#' sample_posterior(rel, model_normal(), chains = 2, iter = 400, seed = 1)
#' @export
model_normal <- function(variable = NULL, prior = prior_nig()) {
  of <- read_variable(variable, "model_normal")
  new_model("normal", variable = of$variable, group = of$group, prior = split_normal_prior(prior), class = "model_normal")
}

# list(mean =, sd =), twice the same prior_nig() or one each
split_normal_prior <- function(prior, call = caller_env()) {
  if (inherits(prior, "prior_nig")) return(list(mean = prior, sd = prior))
  ok <- is.list(prior) && !is.object(prior) && length(prior) == 2L && setequal(names(prior), c("mean", "sd"))
  if (!ok) {
    stop_argument("prior", "prior_nig() or list(mean = , sd = )", describe(prior), "prior", call)
  }
  check_class(prior$mean, "prior$mean", c("prior_normal", "fixed"), "prior_normal() or fixed()", "prior", call)
  check_class(prior$sd, "prior$sd", c("prior_inverse_gamma", "fixed"), "prior_inverse_gamma() or fixed()", "prior", call)
  if (inherits(prior$mean, "fixed") && inherits(prior$sd, "fixed")) {
    stop_classed("prior", "{.arg prior} must leave the mean or the sd unknown, but both are fixed.", call = call)
  }
  if (inherits(prior$mean, "fixed")) check_number(prior$mean$value, "prior$mean", kind = "prior", call = call)
  if (inherits(prior$sd, "fixed")) check_positive(prior$sd$value, "prior$sd", "prior", call)
  prior[c("mean", "sd")]
}

#' @export
format.model_normal <- function(x, ...) {
  both <- inherits(x$prior$mean, "prior_nig")
  c("<model> normal",
    variable_line(x),
    if (both) paste0("  mean, sd  ", format(x$prior$mean)) else
      c(paste0("  mean      ", format(x$prior$mean)), paste0("  sd        ", format(x$prior$sd))))
}

#' @export
variable_kinds.model_normal <- function(x) "number"

#' @export
bind_columns.model_normal <- function(model, columns, levels, formula, call) {
  columns <- bind_number(model$variable, columns, levels, call)
  half <- (columns$upper - columns$lower) / 2
  middle <- columns$lower + half
  fields <- c(list(centre = if (is.finite(middle)) middle else 0), normal_mean_fields(model$prior$mean, middle, half, call),
              normal_sd_fields(model$prior$sd, half))
  if (!all(is.finite(unlist(fields)))) {
    stop_classed("prior", "The prior cannot be scaled by bounds of that size; give all of its parameters.", call = call)
  }
  within <- model$prior$mean$within
  if (!is.null(within)) {
    box <- expand_within(within, columns, call)
    check_within_mass(list(name = "normal", fields = fields), function(natural) {
      natural[, 1L] >= box$lower & natural[, 1L] <= box$upper & natural[, 2L] <= (box$upper - box$lower) / 2
    }, call)
    fields$within <- as.double(c(box$lower, box$upper, (box$upper - box$lower) / 2))
  }
  known <- vapply(model$prior, inherits, TRUE, "fixed")
  structure(list(model = model, columns = columns, levels = list(), spec = list(name = "normal", fields = fields),
                 parameters = c("mean", "sd")[!known]), class = c("bound_normal", "noiseaware_bound"))
}

normal_mean_fields <- function(prior, middle, half, call) {
  if (inherits(prior, "fixed")) return(list(mean = as.double(prior$value)))
  nig <- inherits(prior, "prior_nig")
  precision <- if (!nig) 1 / expand_prior(prior$sd %||% default_mean_sd(half), 1L, "sd", call)^2 else
    if (is.null(prior$precision)) default_mean_weight else expand_matrix(prior$precision, 1L, "precision", call)
  list(prior_mean = expand_prior(prior$mean %||% middle, 1L, "mean", call), prior_precision = as.double(precision),
       nig = as.double(nig))
}

normal_sd_fields <- function(prior, half) {
  if (inherits(prior, "fixed")) return(list(sd = as.double(prior$value)))
  stats::setNames(as.list(inverse_gamma_numbers(prior, half)), c("shape", "rate"))
}

#' @export
describe_model.bound_normal <- function(bound) paste("normal model of", bound$columns$name)

#' @export
value_of.bound_normal <- function(bound) {
  of <- function(parameters, name) if (name %in% colnames(parameters)) parameters[, name] else bound$spec$fields[[name]]
  list(mean = function(parameters) rep_len(of(parameters, "mean"), nrow(parameters)),
       draw = function(expected, parameters) stats::rnorm(length(expected), expected, of(parameters, "sd")))
}
