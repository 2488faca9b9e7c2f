# Linear regression on a smooth curve of one variable, made by model_lm(y ~ s(x, k = 10)): see src/model/smooth.c.

# model_lm() without a formula uses the formula of the statistic.
#' @export
own_model.model_lm <- function(model, formula, call) {
  smooth <- if (is.null(model$formula) && !is.null(formula)) read_smooth(text_formula(formula), call)
  if (is.null(smooth)) model else new_smooth_model(smooth, model, call)
}

#' @export
format.model_smooth <- function(x, ...) {
  c("<model> linear regression on a smooth curve",
    paste0("  formula       ", called_formula(x$formula)),
    paste0("  line          ", format(x$prior)),
    paste0("  sigma         ", format(x$sigma)),
    paste0("  covariate     shares of intervals, ", format(x$levels)))
}

#' @export
variable_kinds.model_smooth <- function(x) "number"

#' @export
model_variables.model_smooth <- function(model, public) unlist(read_smooth(text_formula(model$formula))[c("response", "variable")])

# Intervals between knots are divided into so many cells, so that the distribution of x within one can be learned. With more the totals hardly tell how
# likely each is, and chains of "clt" mix slowly; with fewer the curve is biased where the density of x bends.
cells_of_interval <- 2

# Student-t prior of tau, in the units of half the range of the response.
tau_prior <- list(df = 3, scale = 1 / 4)

#' @export
bind_columns.model_smooth <- function(model, columns, levels, formula, call) {
  smooth <- read_smooth(text_formula(model$formula), call)
  variables <- c(smooth$response, smooth$variable)
  check_all_described(variables, columns, NULL, call)
  factors <- intersect(variables, names(levels))
  if (length(factors)) stop_classed("variables", "A smooth needs numbers, but {.var {factors}} {?is a factor/are factors}.", call = call)
  columns <- columns_in_order(variables, columns, call)
  for (name in c("sigma", "tau")) check_not_covariate(name, "a standard deviation of the model", columns, call)
  bound <- list(model = model, columns = columns, levels = list(), smooth = smooth, formula = model$formula)
  bound$design <- design_columns(columns, list())
  lower <- columns$lower[2L]
  upper <- columns$upper[2L]
  half <- half_of_response(columns)
  line <- independent_coefficient_fields(model$prior, bound$design, centring(bound$design$centre), default_coefficient_sd(bound$design), call)
  cells <- (smooth$k - 3) * cells_of_interval
  bound$breaks <- lower + (upper - lower) * seq(0, cells) / cells
  fields <- c(list(lower = lower, width = (upper - lower) / (smooth$k - 3), intervals = smooth$k - 3, centre = bound$design$centre,
                   expand = as.double(t(spline_expansion(lower, upper, smooth$k))), linear_mean = line$beta_mean, linear_precision = line$beta_precision,
                   weight = expand_prior(model$levels$alpha, cells, "levels", call), tau_half_t = c(tau_prior$df, tau_prior$scale * half)),
              sigma_fields(model$sigma, default_sigma_scale(half), half))
  bound$spec <- list(name = "smooth", fields = fields)
  bound$parameters <- c(smooth_coefficients(smooth), "sigma", "tau", sprintf("prob[%s=%s]", smooth$variable, interval_labels(bound$breaks)))
  structure(bound, class = c("bound_smooth", "bound_regression", "noiseaware_bound"))
}

#' @export
coefficients_of.bound_smooth <- function(bound) smooth_coefficients(bound$smooth)

#' @export
describe_model.bound_smooth <- function(bound) paste("smooth regression", called_formula(bound$formula))

#' @export
response_of.bound_smooth <- function(bound) response_of.bound_lm(bound)
