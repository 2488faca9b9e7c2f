# A separate distribution for a single covariate: src/model/independent_covariate.h.

# in the order of lone_classes, src/model/covariates_independent.c
lone_kinds <- c("beta", "count", "mixture", "lognormal")

#' Covariates that are not normal
#'
#' Distributions for single covariates of [model_glm()], [model_logistic()] or [model_lm()] that are not normal:
#' `covariates = list(age = covariate_beta(), visits = covariate_count(), income = covariate_mixture(2))`. All other covariates are multivariate normal, with
#' the unnamed prior in that list, or [prior_niw()].
#'
#' @param share,precision For `covariate_beta()`: a [prior_beta()] and a [prior_gamma()], or [fixed()] values.
#' @param mean For `covariate_count()`: a [prior_gamma()] or a [fixed()] mean; by default a gamma prior with shape 1.5 and its mean at a sixth of the upper
#'   bound. For `covariate_mixture()`: the [prior_normal()] for every component's mean, by default centred at the middle of the bounds with half of their
#'   half-width as its sd.
#' @param meanlog,sdlog For `covariate_lognormal()`: the [prior_normal()] for the mean of the logarithm and the [prior_inverse_gamma()] for the square of the
#'   logarithm's standard deviation, or [fixed()] values. By default, the prior for the mean is centred at the middle of the bounds' logarithms or, if the lower
#'   bound is 0, at the logarithm of a quarter of the upper bound.
#' @param size For `covariate_count()`: `NULL` for Poisson counts; a [prior_gamma()] or a [fixed()] value for negative binomial counts.
#' @param components Number of normal components, from 2 to 8.
#' @param weights The [prior_dirichlet()] for the components' probabilities, with at most one weight.
#' @param variance The [prior_inverse_gamma()] for every component's variance, by default with shape 2 and the square of a quarter of the bounds' half-width as
#'   its mean.
#'
#' @details
#' * `covariate_beta()`: x = lower + (upper - lower) p with the declared bounds, p ~ Beta(a, b), a = precision share, b =
#'   precision (1 - share). So share is the mean's relative position between the bounds, and the standard deviation is (upper - lower) sqrt(share (1 - share) /
#'   (precision + 1)). If both shapes are 1/2 the density is U-shaped; if one of them is below 1, most of the mass is at one bound. The default prior for the
#'   precision has mean 10, which allows standard deviations of a tenth to a third of the bounds' width. Values closer to a bound than 10^-9 times the width are
#'   treated as the bound.
#' * `covariate_count()`: non-negative whole numbers, Poisson with that mean, or negative binomial with variance mean + mean^2 / size, as in [stats::dnbinom()].
#' * `covariate_mixture()`: a mixture of normal distributions in the order of their means. A few components can represent a skewed or multimodal distribution.
#' * `covariate_lognormal()`: a positive number whose logarithm is normal, as in [stats::dlnorm()]; an exposure, for instance, which [model_glm()] accepts as
#'   `offset(log(exposure))`.
#'
#' Each is **independent of all other covariates** given the parameters. If that matters, as it does for coefficients of correlated covariates, it is better to
#' model numbers as normal, because normal covariates can be correlated. A covariate's total and its total of squares are compatible with any two-parameter
#' distribution, including the normal. A wrong distribution can be detected only if the release contains more
#' information, for example a [stat_histogram()] of the covariate together with the cross-products (see [bayesplot::pp_check()][pp_check.noiseaware_fit]).
#'
#' Only method `"augment"` is available. It is exact: records are drawn from these distributions and then clamped to the bounds. The parameters are drawn given
#' the records (by conjugate updates or slice sampling, with latent variables for negative binomial covariates and mixtures), and also move with the records'
#' innovations held fixed.
#'
#' @return A distribution, of class `noiseaware_covariate`, for the argument `covariates` of a model. The model has the parameters `share[x]` and
#'   `precision[x]`; `mean[x]` and `size[x]`; or `weight[x,k]`, `mean[x,k]` and `sd[x,k]`; or `meanlog[x]` and `sdlog[x]`.
#' @section Errors: `noiseaware_error_prior`; from the model, `noiseaware_error_variables` if a name is not a numeric covariate.
#' @family priors and parts of models
#' @examples
#' model_logistic(covariates = list(age = covariate_beta()))
#' st <- stat_crossprod(low ~ age + ftv, list(low = c(0, 1), age = c(14, 50), ftv = c(0, 6)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 5))
#' model <- model_logistic(covariates = list(ftv = covariate_count(size = prior_gamma(2, 0.5))))
#' fit <- sample_posterior(rel, model, chains = 2, iter = 400, seed = 1)
#' summary(fit)
#' @name covariates
NULL

new_covariate <- function(kind, ...) structure(list(kind = kind, ...), class = c(paste0("covariate_", kind), "noiseaware_covariate"))

#' @rdname covariates
#' @export
covariate_beta <- function(share = prior_beta(1, 1), precision = prior_gamma(1.5, 0.15)) {
  check_class(share, "share", c("prior_beta", "fixed"), "prior_beta() or fixed()", "prior")
  if (inherits(share, "fixed")) check_number(share$value, "share", "fixed at a number between 0 and 1", 0, 1, strict = TRUE, kind = "prior")
  check_class(precision, "precision", c("prior_gamma", "fixed"), "prior_gamma() or fixed()", "prior")
  new_covariate("beta", share = share, precision = check_positive_prior(precision, "precision"))
}

#' @rdname covariates
#' @export
covariate_count <- function(mean = prior_gamma(1.5), size = NULL) {
  check_class(mean, "mean", c("prior_gamma", "fixed"), "prior_gamma() or fixed()", "prior")
  if (!is.null(size)) check_class(size, "size", c("prior_gamma", "fixed"), "NULL, prior_gamma() or fixed()", "prior")
  new_covariate("count", mean = check_positive_prior(mean, "mean", TRUE), size = if (!is.null(size)) check_positive_prior(size, "size"))
}

#' @rdname covariates
#' @export
covariate_mixture <- function(components = 2, weights = prior_dirichlet(2), mean = prior_normal(), variance = NULL) {
  components <- check_number(components, "components", "a whole number from 2 to 8", 2, 8, kind = "prior")
  if (components != round(components)) stop_argument("components", "a whole number from 2 to 8", describe(components), "prior")
  check_class(weights, "weights", "prior_dirichlet", "prior_dirichlet()", "prior")
  if (!is.null(weights$alpha)) check_one_number(weights$alpha, "weights")
  weights <- prior_dirichlet(expand_weights(weights, components)[1L])
  check_class(mean, "mean", "prior_normal", "prior_normal()", "prior")
  for (value in mean) if (!is.null(value)) check_one_number(value, "mean")
  if (!is.null(variance)) check_class(variance, "variance", "prior_inverse_gamma", "NULL or prior_inverse_gamma()", "prior")
  new_covariate("mixture", components = components, weights = weights, mean = mean, variance = variance)
}

#' @rdname covariates
#' @export
covariate_lognormal <- function(meanlog = prior_normal(), sdlog = NULL) {
  check_class(meanlog, "meanlog", c("prior_normal", "fixed"), "prior_normal() or fixed()", "prior")
  for (value in if (!inherits(meanlog, "fixed")) unclass(meanlog)) if (!is.null(value)) check_one_number(value, "meanlog")
  if (inherits(meanlog, "fixed")) check_number(meanlog$value, "meanlog", "fixed at a number", kind = "prior")
  if (!is.null(sdlog)) check_class(sdlog, "sdlog", c("prior_inverse_gamma", "fixed"), "NULL, prior_inverse_gamma() or fixed()", "prior")
  if (inherits(sdlog, "fixed")) check_positive(sdlog$value, "sdlog", "prior")
  new_covariate("lognormal", meanlog = meanlog, sdlog = sdlog)
}

# the same for all components
check_one_number <- function(x, name, call = caller_env()) {
  if (length(x) != 1L) stop_classed("prior", "{.arg {name}} must have one value for all components, but has {length(x)}.", call = call)
}

check_positive_prior <- function(prior, name, scaled = FALSE, call = caller_env()) {
  if (inherits(prior, "fixed")) {
    check_positive(prior$value, name, "prior", call)
  } else if (is.null(prior$rate) && !scaled) {
    stop_classed("prior", "{.arg {name}} must have a rate, because bounds do not scale it.", call = call)
  }
  prior
}

#' @export
format.noiseaware_covariate <- function(x, ...) {
  parts <- Filter(Negate(is.null), unclass(x)[-1L])
  said <- vapply(parts, function(p) if (is.numeric(p)) format_number(p) else format(p), "")
  paste0(if (x$kind == "count" && !is.null(x$size)) "negative binomial" else if (x$kind == "count") "Poisson" else x$kind, ": ",
         paste(names(parts), said, collapse = ", "))
}

#' @export
print.noiseaware_covariate <- function(x, ...) {
  cat("<covariate> ", format(x), "\n", sep = "")
  invisible(x)
}

format_covariates <- function(covariates) {
  paste0("mean ", format(covariates$mean), "; cov ", format(covariates$cov),
         if (length(covariates$lone)) paste0("; ", names(covariates$lone), " ", vapply(covariates$lone, format, ""), collapse = ""))
}

is_lone <- function(x) inherits(x, "noiseaware_covariate")

lone_list <- paste("a list of covariate_beta(), covariate_count(), covariate_mixture() and covariate_lognormal(), named by covariates,",
                   "and at most one unnamed prior, for the others")

# Which rows of the design are lone, in the order of their parameters.
lone_rows <- function(design, model) {
  at <- match(names(model$covariates$lone), design$name)
  sort(at[!is.na(at)])
}

check_lone <- function(design, model, call) {
  names <- names(model$covariates$lone)
  numbers <- design$name[is.na(design$level)]
  strange <- setdiff(names, numbers)
  if (length(strange)) {
    stop_classed("variables", c("{.arg covariates} must name numeric covariates, but {.var {strange}} {?is/are} not.",
                                i = if (length(numbers)) "The release has {.var {numbers}}." else "All covariates of the release are factors."), call = call)
  }
}

# a prior's two numbers, or one that is known
gamma_numbers <- function(prior, rate = prior$rate) if (inherits(prior, "fixed")) c(1, 1, prior$value) else c(prior$shape, rate, NA)

lone_numbers <- function(covariate, row, call) UseMethod("lone_numbers")

#' @export
lone_numbers.covariate_beta <- function(covariate, row, call) {
  share <- covariate$share
  precision <- gamma_numbers(covariate$precision)
  known <- inherits(share, "fixed")
  c(row$lower, row$upper - row$lower, if (known) c(1, 1) else c(share$a, share$b), precision[1:2], if (known) share$value else NA, precision[3L])
}

#' @export
lone_numbers.covariate_count <- function(covariate, row, call) {
  if (row$lower < 0 || row$upper < 1) {
    stop_classed("variables", c("A count must have non-negative bounds, with an upper bound of at least 1.",
                                x = "{.var {row$name}} has {row$lower} and {row$upper}."), call = call)
  }
  mean <- covariate$mean
  c(gamma_numbers(mean, mean$rate %||% (6 * mean$shape / row$upper)), if (!is.null(covariate$size)) gamma_numbers(covariate$size))
}

# Components are narrower than the bounds, and where logarithms of a variable lie is a guess: not the default prior of R/prior_default.R. E(sd^2) is the scale squared.
part_variance <- function(prior, scale) c(prior$shape %||% 2, prior$rate %||% scale^2)

#' @export
lone_numbers.covariate_mixture <- function(covariate, row, call) {
  half <- (row$upper - row$lower) / 2
  c(covariate$components, covariate$mean$mean %||% (row$lower + half), covariate$mean$sd %||% (half / 2), part_variance(covariate$variance, half / 4),
    covariate$weights$alpha)
}

#' @export
lone_numbers.covariate_lognormal <- function(covariate, row, call) {
  if (row$lower < 0) {
    stop_classed("variables", c("A log-normal covariate must have non-negative bounds.", x = "{.var {row$name}} has {row$lower} and {row$upper}."), call = call)
  }
  ends <- log(if (row$lower > 0) c(row$lower, row$upper) else row$upper * c(1 / 16, 1))
  known <- c(if (inherits(covariate$meanlog, "fixed")) covariate$meanlog$value else NA, if (inherits(covariate$sdlog, "fixed")) covariate$sdlog$value else NA)
  variance <- if (is.na(known[2L])) part_variance(covariate$sdlog, diff(ends) / 5) else c(1, 1)
  c(covariate$meanlog$mean %||% mean(ends), covariate$meanlog$sd %||% (diff(ends) / 4), variance, known)
}

lone_fields <- function(design, at, model, call) {
  rows <- lone_rows(design, model)
  if (length(rows) == 0L) return(list())
  lone <- model$covariates$lone[design$name[rows]]
  numbers <- lapply(seq_along(rows), function(k) as.double(unname(lone_numbers(lone[[k]], design[rows[k], ], call))))
  list(lone_kind = as.double(match(vapply(lone, `[[`, "", "kind"), lone_kinds) - 1), lone_at = as.double(at[rows]),
       lone_size = as.double(lengths(numbers)), lone_number = unlist(numbers))
}

# Their parameters and priors: what prior_summary() says, by name.
lone_priors <- function(design, model, call = caller_env()) {
  unlist(lapply(lone_rows(design, model), function(row) {
    name <- design$name[row]
    covariate <- model$covariates$lone[[name]]
    said <- describe_lone(covariate, lone_numbers(covariate, design[row, ], call))
    if (is.null(said)) return(NULL)
    stats::setNames(said, paste0(sub("@.*", "", names(said)), "[", name, sub("^[^@]*@?", "", sub("@", "@,", names(said))), "]"))
  }))
}

# names "mean", or "mean@1" of a component
describe_lone <- function(covariate, numbers) UseMethod("describe_lone")

#' @export
describe_lone.covariate_beta <- function(covariate, numbers) {
  c(share = if (is.na(numbers[7L])) say("beta", numbers[3:4]), precision = if (is.na(numbers[8L])) say("gamma", numbers[5:6]))
}

#' @export
describe_lone.covariate_count <- function(covariate, numbers) {
  c(mean = if (is.na(numbers[3L])) say("gamma", numbers[1:2]), size = if (length(numbers) > 3L && is.na(numbers[6L])) say("gamma", numbers[4:5]))
}

#' @export
describe_lone.covariate_mixture <- function(covariate, numbers) {
  k <- seq_len(numbers[1L])
  each <- function(name, text) stats::setNames(rep(text, length(k)), paste0(name, "@", k))
  c(each("weight", say("dirichlet", numbers[6L])), each("mean", paste(say("normal", numbers[2:3]), "in order")),
    each("sd", paste(say("inverse_gamma", numbers[4:5]), "of sd^2")))
}

#' @export
describe_lone.covariate_lognormal <- function(covariate, numbers) {
  c(meanlog = if (is.na(numbers[5L])) say("normal", numbers[1:2]), sdlog = if (is.na(numbers[6L])) paste(say("inverse_gamma", numbers[3:4]), "of sdlog^2"))
}

# for methods that know the moments, or the density of totals, of normal covariates alone, in regressions on these themselves
check_normal_covariates <- function(bound, method, call) {
  check_plain_terms(bound, method, call)
  check_no_lone(bound, method, call)
}

check_no_lone <- function(bound, method, call) {
  lone <- names(bound$model$covariates$lone)
  if (length(lone) == 0L) return(invisible())
  stop_classed("method", c("Method {.val {method}} needs normal covariates.", x = "{.var {lone}} {?has/have} another distribution.",
                           i = "Method {.val augment} works, and is exact."), call = call)
}
