# insight and bayestestR: the parameters, their priors and their draws.

#' @exportS3Method insight::get_parameters
get_parameters.noiseaware_fit <- function(x, component = "conditional", parameters = NULL, summary = FALSE, ...) {
  component <- check_choice(component, "component", c("conditional", "random", "all"))
  draws <- if (component == "all") parameter_matrix(x) else parameter_matrix(x)[, components_of(x)[[component]], drop = FALSE]
  if (!is.null(parameters)) draws <- draws[, grepl(paste(parameters, collapse = "|"), colnames(draws)), drop = FALSE]
  if (summary) return(data.frame(Parameter = colnames(draws), Estimate = unname(colMeans(draws))))
  as.data.frame(draws, optional = TRUE)
}

#' @exportS3Method insight::find_parameters
find_parameters.noiseaware_fit <- function(x, flatten = FALSE, ...) {
  found <- components_of(x)
  found <- found[lengths(found) > 0L]
  if (flatten) unlist(found, use.names = FALSE) else found
}

# Coefficients; those of sites that vary about a mean, and how they vary; what describes the response otherwise; the rest
components_of <- function(fit) {
  all <- posterior::variables(fit$draws)
  conditional <- colnames(coefficient_draws(fit))
  random <- if (has_average(fit)) {
    of_sites <- as.vector(outer(fit$problem$partial$shown, names(fit$release), site_variables))
    intersect(all, c(of_sites, grep("^(sd|cor)\\[", fit$problem$names[length(fit$problem$partial$heads) + seq_along(all)], value = TRUE)))
  }
  conditional <- setdiff(conditional, random)
  rest <- setdiff(all, c(conditional, random))
  scales <- c("sigma", "df", "cv", "shape")
  sizes <- size_names_of(fit)
  list(conditional = conditional, random = random, sigma = intersect(rest, scales), covariates = setdiff(rest, c(scales, sizes)), size = intersect(rest, sizes))
}

size_names_of <- function(fit) c("n", if (is_pooled(fit)) size_names(names(fit$release)))

#' @exportS3Method insight::find_formula
find_formula.noiseaware_fit <- function(x, ...) {
  formula <- fixed_formula(x)
  bars <- bars_text(x$asked$model)
  structure(c(list(conditional = formula), if (!is.null(bars)) list(random = stats::as.formula(paste("~", gsub("[()]", "", bars)), env = environment(formula)))),
            class = c("insight_formula", "list"))
}

# The location and scale in the words of a prior of a location and a scale; of others, the median and mad of draws
#' @exportS3Method insight::get_priors
get_priors.noiseaware_fit <- function(x, ...) {
  table <- prior_summary.noiseaware_fit(x)
  parts <- regmatches(table$prior, regexec("^(half_)?(normal|t|student_t)\\((.*, )?([^ ,]+)\\)$", table$prior))
  stated <- which(lengths(parts) == 5L)
  table$mad[stated] <- vapply(parts[stated], function(part) as.double(part[5L]), 0)
  table$median[stated] <- vapply(parts[stated], function(part) if (nzchar(part[2L])) 0 else as.double(sub("^.* ", "", sub(", $", "", part[4L]))), 0)
  data.frame(Parameter = table$variable, Distribution = table$prior, Location = table$median, Scale = table$mad)
}

# there are no records: a grid of the covariates, without the response
#' @exportS3Method insight::get_data
get_data.noiseaware_fit <- function(x, ...) covariate_grid(x)

#' @exportS3Method insight::get_datagrid
get_datagrid.noiseaware_fit <- function(x, ...) insight::get_datagrid(covariate_grid(x), ...)

#' @exportS3Method insight::get_df
get_df.noiseaware_fit <- function(x, ...) refuse_meaningless("get_df")

#' @exportS3Method insight::get_residuals
get_residuals.noiseaware_fit <- function(x, ...) refuse_meaningless("get_residuals")

#' @exportS3Method insight::get_deviance
get_deviance.noiseaware_fit <- function(x, ...) refuse_meaningless("get_deviance")

#' @exportS3Method insight::get_statistic
get_statistic.noiseaware_fit <- function(x, ...) refuse_meaningless("get_statistic")

#' @exportS3Method insight::get_intercept
get_intercept.noiseaware_fit <- function(x, ...) {
  draws <- coefficient_draws(x)
  if ("(Intercept)" %in% colnames(draws)) draws[, "(Intercept)"] else NA_real_
}

#' @exportS3Method bayestestR::rope_range
rope_range.noiseaware_fit <- function(x, ...) refuse_meaningless("rope_range")

#' @exportS3Method insight::model_info
model_info.noiseaware_fit <- function(x, ...) {
  if (is.null(response_of(x$bound))) return(info_of_model(x, ...))
  family <- stats::family(x)
  categories <- inherits(x$bound, "bound_categories")
  if (categories) family <- stats::binomial(family$link)
  # of the same family and formula, since insight reads the rest off the class
  y <- if (family$family == "Gamma") c(1, 2, 1, 2) else c(0, 1, 0, 1)
  like <- stats::glm(y ~ 1, if (family$family == "negative_binomial") stats::poisson() else family, data.frame(y = y))
  if (family$family == "negative_binomial") like$family$family <- "Negative Binomial(1)"
  info <- insight::model_info(like, ...)
  info$is_bayesian <- TRUE
  if (categories) {
    ordered <- is_ordered_family(x$bound$model)
    own <- list(family = stats::family(x)$family, is_ordinal = ordered, is_cumulative = ordered, is_multinomial = !ordered, is_categorical = !ordered,
                is_binomial = FALSE, is_bernoulli = FALSE, is_logit = family$link == "logit", is_probit = family$link == "probit")
    info[names(own)] <- own
  }
  info
}

# Of a model without a response little is true of what insight asks.
info_of_model <- function(x, ...) {
  info <- insight::model_info(stats::lm(y ~ 1, data.frame(y = c(0, 1))), ...)
  info[vapply(info, isTRUE, TRUE)] <- FALSE
  info$is_bayesian <- TRUE
  info$family <- x$bound$model$name
  true <- list(bernoulli = c("is_binomial", "is_bernoulli"), poisson = c("is_count", "is_poisson"), normal = "is_linear")[[x$bound$model$name]]
  info[true] <- TRUE
  info["link_function"] <- list(NULL)
  info
}

# Functions of bayestestR see the draws that get_parameters() gives; further arguments are theirs, also by position.
described <- function(name) {
  function(x, ..., component = "conditional", parameters = NULL) {
    draws <- if (inherits(x, "noiseaware_contrast")) as.data.frame(plain_matrix(x$draws)) else get_parameters.noiseaware_fit(x, component, parameters)
    found <- getExportedValue("bayestestR", name)(draws, ...)
    # where the plots of see look for the draws
    attributes(found)[c("object_name", "data")] <- list(NULL, draws)
    found
  }
}

# bayestestR's own range is 0.1 of the standard deviation of the response, and without records 0.1 in whatever units these are.
described_in_range <- function(name, argument = "range") {
  within <- described(name)
  function(x, ...) {
    given <- rlang::names2(list(...))
    if (!argument %in% given && all(nzchar(given))) {
      stop_classed("argument", c("{.arg {argument}} must be given, in the units of the estimates.",
                                 i = "The usual default is a share of the response's standard deviation, for which records would be needed."))
    }
    within(x, ...)
  }
}

#' @exportS3Method bayestestR::describe_posterior
describe_posterior.noiseaware_fit <- function(posterior, component = "conditional", parameters = NULL, ..., rope_range = NULL,
                                              test = c("p_direction", if (!is.null(rope_range)) "rope")) {
  bayestestR::describe_posterior(get_parameters.noiseaware_fit(posterior, component, parameters), ..., rope_range = rope_range %||% "default", test = test)
}

#' @exportS3Method bayestestR::describe_prior
describe_prior.noiseaware_fit <- function(model, ...) {
  table <- get_priors.noiseaware_fit(model)
  names(table)[-1L] <- paste0("Prior_", names(table)[-1L])
  table
}

#' @exportS3Method bayestestR::simulate_prior
simulate_prior.noiseaware_fit <- function(model, n = 1000, ...) {
  check_no_dots(...)
  if (!has_average(model)) refuse_own_parameters(model, "model", environment(), "{.fn prior_summary} describes the priors of sites.")
  as.data.frame(prior_draws(model, check_count(n, "n"))[, components_of(model)$conditional, drop = FALSE], optional = TRUE)
}

#' @exportS3Method bayestestR::diagnostic_posterior
diagnostic_posterior.noiseaware_fit <- function(posterior, diagnostic = "all", component = "conditional", parameters = NULL, ...) {
  names <- colnames(get_parameters.noiseaware_fit(posterior, component, parameters))
  table <- without_capping(posterior::summarise_draws(exactly(posterior$draws, names), Rhat = posterior::rhat, ESS = posterior::ess_bulk, MCSE = posterior::mcse_mean))
  table <- data.frame(Parameter = table$variable, lapply(table[-1L], as.double))
  if (identical(diagnostic, "all")) table else table[c("Parameter", intersect(names(table), diagnostic))]
}

#' @exportS3Method bayestestR::effective_sample
effective_sample.noiseaware_fit <- function(model, ...) diagnostic_posterior.noiseaware_fit(model, "ESS", ...)

#' @exportS3Method bayestestR::mcse
mcse.noiseaware_fit <- function(model, ...) diagnostic_posterior.noiseaware_fit(model, "MCSE", ...)

#' @exportS3Method bayestestR::map_estimate
map_estimate.noiseaware_fit <- described("map_estimate")

#' @exportS3Method bayestestR::p_map
p_map.noiseaware_fit <- described("p_map")

#' @exportS3Method bayestestR::estimate_density
estimate_density.noiseaware_fit <- described("estimate_density")

#' @exportS3Method bayestestR::spi
spi.noiseaware_fit <- described("spi")

#' @exportS3Method bayestestR::bci
bci.noiseaware_fit <- described("bci")

#' @exportS3Method bayestestR::hdi
hdi.noiseaware_fit <- described("hdi")

#' @exportS3Method bayestestR::eti
eti.noiseaware_fit <- described("eti")

#' @exportS3Method bayestestR::ci
ci.noiseaware_fit <- described("ci")

#' @exportS3Method bayestestR::point_estimate
point_estimate.noiseaware_fit <- described("point_estimate")

#' @exportS3Method bayestestR::p_direction
p_direction.noiseaware_fit <- described("p_direction")

#' @exportS3Method bayestestR::rope
rope.noiseaware_fit <- described_in_range("rope")

# bayestestR's own default returns NULL
#' @exportS3Method bayestestR::rope
rope.noiseaware_contrast <- rope.noiseaware_fit

#' @exportS3Method bayestestR::equivalence_test
equivalence_test.noiseaware_fit <- described_in_range("equivalence_test")

#' @exportS3Method bayestestR::p_rope
p_rope.noiseaware_fit <- described_in_range("p_rope")

#' @exportS3Method bayestestR::p_significance
p_significance.noiseaware_fit <- described_in_range("p_significance", "threshold")

# ---- predictions ------------------------------------------------------------------------

# posterior means, with intervals and draws as attributes, which as.data.frame() shows
#' @exportS3Method insight::get_predicted
get_predicted.noiseaware_fit <- function(x, data = NULL, predict = c("expectation", "link", "prediction"), iterations = NULL, ci = 0.95, ...) {
  predict <- if (missing(predict)) "expectation" else check_choice(predict, "predict", c("expectation", "link", "prediction"))
  data <- data %||% covariate_grid(x)
  of <- switch(predict, expectation = posterior_epred.noiseaware_fit, link = posterior_linpred.noiseaware_fit, prediction = posterior_predict.noiseaware_fit)
  draws <- of(x, data, ndraws = iterations)
  if (length(dim(draws)) == 3L) {
    stop_classed("argument", c("{.arg x} must have one number to predict, but has the probabilities of several levels.",
                               i = "{.fn rstantools::posterior_epred} gives their draws."))
  }
  ends <- draws_interval(draws, ci %||% 0.95)
  intervals <- data.frame(SE = apply(draws, 2L, stats::sd), CI_low = ends[1L, ], CI_high = ends[2L, ])
  structure(colMeans(draws), ci_data = if (!is.null(ci)) intervals, data = data, ci = ci, predict = predict,
            iterations = stats::setNames(as.data.frame(t(draws)), paste0("iter_", seq_len(nrow(draws)))), class = c("get_predicted", "numeric"))
}
