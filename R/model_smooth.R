# Linear regression on smooth curves that add up, on numbers and on factors, made by model_lm(y ~ s(x, k = 10) + z + g): see src/model/smooth.c.

# model_lm() without a formula uses the formula of the statistic.
#' @export
own_model.model_lm <- function(model, formula, call) {
  smooth <- if (is.null(model$formula) && !is.null(formula)) read_smooth(text_formula(formula), call)
  if (is.null(smooth)) model else new_smooth_model(smooth, model, call)
}

#' @export
format.model_smooth <- function(x, ...) {
  smooth <- read_smooth(text_formula(x$formula))
  c(if (length(smooth$k) == 1L) "<model> linear regression on a smooth curve" else "<model> linear regression on smooth curves",
    paste0("  formula       ", called_formula(x$formula)),
    paste0("  line          ", format(x$prior)),
    paste0("  sigma         ", format(x$sigma)),
    paste0("  covariate", if (has_classes(smooth)) "s    shares of intervals in latent classes, " else "     shares of intervals, ", format(x$levels)))
}

#' @export
variable_kinds.model_smooth <- function(x) "number"

#' @export
model_variables.model_smooth <- function(model, public) read_smooth(text_formula(model$formula))$variables

# Intervals between knots are divided into so many cells, so that the distribution of x within one can be learned. With more the totals hardly tell how
# likely each is, and chains of "clt" mix slowly; with fewer the curve is biased where the density of x bends.
cells_of_interval <- 2

# of a number without knots
cells_of_number <- 16

# Several covariates are dependent by so many latent classes, see src/model/class_cells.h. With 4, a correlation of .9 among 1,000 records with little noise
# biases curves by up to two standard deviations, with 8 by one half.
classes_of_covariates <- 8

has_classes <- function(smooth) length(smooth$variables) > 2L

# Student-t prior of tau, in the units of half the range of the response.
tau_prior <- list(df = 3, scale = 1 / 4)

#' @export
bind_columns.model_smooth <- function(model, columns, levels, formula, call) {
  smooth <- with_factors(read_smooth(text_formula(model$formula), call), names(levels))
  variables <- smooth$variables
  check_all_described(variables, columns, NULL, call)
  factors <- intersect(c(smooth$response, smooth$variable), names(levels))
  if (length(factors)) stop_classed("variables", "The response and smooths need numbers, but {.var {factors}} {?is a factor/are factors}.", call = call)
  check_not_coded(columns, levels, variables, call)
  columns <- columns[order(match(columns$variable, variables)), ]
  rownames(columns) <- NULL
  for (name in c("sigma", smooth_taus(smooth))) check_not_covariate(name, "a standard deviation of the model", columns, call)
  bound <- list(model = model, columns = columns, levels = levels[smooth$factors], smooth = smooth, formula = model$formula)
  bound$design <- design_columns(columns, bound$levels)
  half <- half_of_response(columns)
  line <- independent_coefficient_fields(model$prior, bound$design, centring(bound$design$centre), default_coefficient_sd(bound$design), call)
  cells <- smooth_cells(smooth, columns[-1L, ], bound$levels, model, call)
  splined <- seq_along(smooth$k)
  lower <- columns$lower[-1L]
  upper <- columns$upper[-1L]
  fields <- c(list(lower = lower[splined], width = (upper - lower)[splined] / (smooth$k - 3), intervals = smooth$k - 3, centre = bound$design$centre,
                   expand = as.double(t(smooth_expansion(smooth, lower, upper))), linear_mean = line$beta_mean, linear_precision = line$beta_precision,
                   tau_half_t = c(tau_prior$df, tau_prior$scale * half)),
              cells$fields, sigma_fields(model$sigma, default_sigma_scale(half), half))
  bound$spec <- list(name = "smooth", fields = fields)
  bound$breaks <- cells$breaks
  bound$hidden <- cells$hidden
  bound$parameters <- c(smooth_coefficients(bound), "sigma", smooth_taus(smooth), cells$margins, cells$hidden)
  structure(bound, class = c("bound_smooth", "bound_regression", "noiseaware_bound"))
}

# list(breaks =, one vector a number; fields =, of src/model/class_cells.h; margins =, hidden =, names of parameters). A factor's cells are its levels.
smooth_cells <- function(smooth, columns, levels, model, call) {
  numbers <- columns[is.na(columns$level), ]
  cells <- c((smooth$k - 3) * cells_of_interval, rep(cells_of_number, length(smooth$numbers)))
  width <- (numbers$upper - numbers$lower) / cells
  classes <- if (has_classes(smooth)) classes_of_covariates else 1
  breaks <- Map(function(lower, upper, cells) lower + (upper - lower) * seq(0, cells) / cells, numbers$lower, numbers$upper, cells)
  labels <- Map(function(name, cells) paste0(name, "=", cells), c(numbers$variable, smooth$factors), c(lapply(breaks, interval_labels), unname(levels)))
  cells <- c(cells, lengths(levels, use.names = FALSE))
  none <- numeric(length(levels))
  weight <- unlist(lapply(cells, function(count) expand_weights(model$levels, count, "levels", call)))
  hidden <- if (classes > 1) {
    in_class <- lapply(labels, function(label) sprintf("prob[%s|class=%d]", rep(label, classes), rep(seq_len(classes), each = length(label))))
    c(sprintf("class[%d]", seq_len(classes)), unlist(in_class, use.names = FALSE))
  }
  list(breaks = breaks, margins = sprintf("prob[%s]", unlist(labels, use.names = FALSE)), hidden = hidden,
       fields = list(cells = cells, cell_lower = c(numbers$lower, none), cell_width = c(width, none), classes = classes, class_weight = rep(1, classes),
                     weight = weight / classes))
}

#' @export
coefficients_of.bound_smooth <- function(bound) smooth_coefficients(bound)

#' @export
describe_model.bound_smooth <- function(bound) paste("smooth regression", called_formula(bound$formula))

# its cells and the products that are not 0
#' @export
counted_size.bound_smooth <- function(bound) sum(7 * bound$smooth$k - 11) + length(bound$smooth$numbers) + sum(lengths(bound$levels))

#' @export
response_of.bound_smooth <- function(bound) response_of.bound_lm(bound)
