# The priors of a model bound to its statistic, in the units of the data.

#' @rdname interop
#' @exportS3Method rstantools::prior_summary
prior_summary.noiseaware_fit <- function(object, seed = 1, ...) {
  check_no_dots(...)
  if (is_read_off(object)) stop_classed("argument", "A regression derived from a joint fit has the prior of that fit.")
  summarise_prior(object$bound, check_seed(seed), object$problem)
}

#' @rdname interop
#' @exportS3Method rstantools::prior_summary
prior_summary.noiseaware_model <- function(object, statistic, seed = 1, ...) {
  check_given()
  check_no_dots(...)
  summarise_prior(bind_settled(object, narrow_design(object, statistic, mech_exact(), "replace")$statistic), check_seed(seed))
}

# `problem`: of a fit, which says what is between sites, if it is of several; `prob`: inside the two last columns.
summarise_prior <- function(bound, seed, problem = NULL, count = 10000L, prob = 0.9) {
  draws <- with_seed(seed, reported(bound, .Call(ffi_model_prior, bound$spec, new_stream(), count)$theta))
  between <- with_seed(seed, priors_between_sites(problem, count))
  said <- c(priors_of_sites(describe_priors(bound), problem, names(between$said)), between$said)
  draws <- cbind(draws, between$draws)
  variable <- ifelse(colnames(draws) %in% names(bound$called), bound$called[colnames(draws)], colnames(draws))
  ends <- draws_interval(draws, prob)
  table <- data.frame(variable = variable, prior = unname(said[colnames(draws)]), median = apply(draws, 2L, stats::median),
                      mad = apply(draws, 2L, stats::mad), q5 = ends[1L, ], q95 = ends[2L, ], row.names = NULL)
  structure(table, class = c("noiseaware_prior_summary", "data.frame"))
}

# The model's priors in sites that are partially pooled: which parameters they belong to. There, a name such as sd[x] is a slope's standard deviation between sites.
priors_of_sites <- function(said, problem, between) {
  if (length(between) == 0L) return(said)
  partial <- problem$partial
  taken <- regmatches(between, regexpr("^sd\\[.*\\]$", between))
  for (name in taken) said <- sub(name, sub("sd\\[(.*)\\]", "sqrt(cov[\\1,\\1])", name), said, fixed = TRUE)
  if (isTRUE(partial$covariates %in% c("pooled", "shared"))) return(said)
  of_covariates <- !names(said) %in% partial$parameters & !is.na(said)
  said[of_covariates] <- paste(said[of_covariates], "in each", if (is.null(problem$groups)) "site" else "group")
  said
}

# Of log kappa, as in src/model/covariates_marginal.c
log_kappa_prior <- c(mean = log(4), sd = 2)

# The kappa of pooled covariates, standard deviations between sites, effects of the sites' covariates, and correlations: `draws`, a column each, and `said`,
# words by name; NULL where sites have none.
priors_between_sites <- function(problem, count) {
  partial <- problem$partial
  if (length(partial$sd) == 0L) return(NULL)
  varying <- length(partial$sd)
  pairs <- problem$begin$pairs
  effects <- partial$effect_sd
  sd <- vapply(partial$sd, function(one) draw_scale(one$fields, count), numeric(count))
  effect <- matrix(stats::rnorm(count * length(effects), 0, rep(effects, each = count)), count)
  beta <- partial$lkj + varying / 2 - 1
  correlation <- matrix(if (pairs > 0) 2 * stats::rbeta(count * pairs, beta, beta) - 1 else 0, count, pairs)
  draws <- cbind(sd, effect, correlation)
  colnames(draws) <- problem$names[length(partial$heads) + seq_len(ncol(draws))]
  said <- c(vapply(partial$sd, function(one) unname(describe_sigma(one$fields)), ""), vapply(effects, function(sd) say("normal", 0, sd), ""),
            rep(say("lkj", partial$lkj), pairs))
  if (isTRUE(partial$pooled_scatter)) {
    draws <- cbind(kappa = stats::rlnorm(count, log_kappa_prior[[1L]], log_kappa_prior[[2L]]), draws)
    said <- c(say("lognormal", log_kappa_prior), said)
  }
  list(draws = draws, said = stats::setNames(said, colnames(draws)))
}

# of the priors that partial_pooling() takes
draw_scale <- function(fields, count) {
  value <- fields[[1L]]
  switch(names(fields), sigma_half_normal = abs(stats::rnorm(count, 0, value)), sigma_half_t = value[2L] * abs(stats::rt(count, value[1L])),
         sigma_exponential = stats::rexp(count, value))
}

#' @export
print.noiseaware_prior_summary <- function(x, ...) {
  if (!all(c("variable", "prior", "median", "mad", "q5", "q95") %in% names(x))) return(NextMethod())
  cat("<prior> in the units of the data; quantiles of 10,000 draws\n")
  if (any(grepl("at mid-bounds", x$prior))) cat("  at mid-bounds  of the response, covariates at the middle of their bounds\n")
  scaled <- regmatches(x$prior, regexpr("sd\\[.*\\]", x$prior))
  if (length(scaled)) cat(sprintf("  %-13s  the root of %s\n", scaled[1L], gsub("sd\\[(.*)\\]", "cov[\\1,\\1]", scaled[1L])))
  if (any(x$variable == "kappa")) cat("  kappa          means of covariates differ, as normal(mean, cov / kappa)\n")
  cat("\n")
  shown <- as.data.frame(x)
  shown[c("median", "mad", "q5", "q95")] <- lapply(shown[c("median", "mad", "q5", "q95")], function(v) formatC(v, digits = 3, format = "g"))
  shown$prior <- ifelse(is.na(shown$prior), "", shown$prior)
  shown[c("variable", "prior")] <- lapply(shown[c("variable", "prior")], function(v) formatC(v, width = -max(nchar(v))))
  print(shown, row.names = FALSE)
  invisible(x)
}

# The distributions by parameter, in numbers: first the distribution, then what it is of or where it holds, as in "inverse_gamma(1, 2) of sigma^2".
# NA where the model has no words for them.
describe_priors <- function(bound) UseMethod("describe_priors")

#' @export
describe_priors.default <- function(bound) {
  prior <- bound$model$prior
  text <- if (inherits(prior, "noiseaware_prior") && !inherits(prior, "fixed")) format(prior) else NA_character_
  stats::setNames(rep(text, length(bound$parameters)), bound$parameters)
}

#' @export
describe_priors.bound_poisson <- function(bound) stats::setNames(say("gamma", bound$spec$fields$shape, bound$spec$fields$rate), bound$parameters)

#' @export
describe_priors.bound_exponential <- describe_priors.bound_poisson

#' @export
describe_priors.bound_bernoulli <- function(bound) stats::setNames(say("beta", rev(bound$spec$fields$alpha)), bound$parameters)

# a Dirichlet distribution for each row of levels
#' @export
describe_priors.bound_categorical <- function(bound) {
  fields <- bound$spec$fields
  rows <- vapply(bound$parts, function(part) prod(lengths(bound$levels)[part$parents]), 0)
  of_row <- split(fields$alpha, rep(seq_len(sum(rows)), rep(fields$levels, rows)))
  text <- rep(vapply(of_row, say_dirichlet, ""), lengths(of_row))
  stats::setNames(text[is.na(bound$probability)], bound$parameters)
}

#' @export
describe_priors.bound_table <- describe_priors.bound_categorical

#' @export
describe_priors.bound_lm <- function(bound) c(describe_coefficients(bound), describe_sigma(bound$spec$fields), describe_covariates(bound))

#' @export
describe_priors.bound_student <- function(bound) {
  df <- bound$spec$fields$errors_df_gamma
  said <- if (!is.null(df)) c(df = paste0(say("gamma", df), " above ", least_df))
  c(describe_coefficients(bound), describe_sigma(bound$spec$fields), said, describe_covariates(bound))
}

#' @export
describe_priors.bound_glm <- function(bound) c(describe_coefficients(bound), describe_sigma(bound$spec$fields, "cv"), describe_covariates(bound))

#' @export
describe_priors.bound_smooth <- function(bound) {
  fields <- bound$spec$fields
  smooth <- bound$smooth
  tau <- smooth_taus(smooth)
  c(describe_coefficients(bound), stats::setNames(sprintf("normal(0, %s)", rep(tau, smooth$k - 2)), smooth_differences(smooth)), describe_sigma(fields),
    stats::setNames(rep(say("half_t", fields$tau_half_t), length(tau)), tau))
}

# thresholds are independent but for their order
#' @export
describe_priors.bound_categories <- function(bound) {
  own <- if (!inherits(bound$model$prior, "fixed")) {
    fields <- bound$spec$fields
    text <- function(mean, sd) paste0("normal(", format_number(mean), ", ", format_number(sd), ")")
    ordered <- is_ordered_family(bound$model)
    first <- text((if (ordered) -1 else 1) * fields$constant_mean, fields$constant_sd)
    if (length(fields$tilt) && all(fields$tilt == 0) && any(bound$design$centre[-1L] != 0)) first <- paste(first, "at mid-bounds")
    slopes <- text(fields$slope_mean, fields$slope_sd)
    count <- length(bound$categories) - 1L
    stats::setNames(if (ordered) c(rep(paste(first, "in order"), count), slopes) else rep(c(first, slopes), count), coefficients_of(bound))
  }
  c(own, describe_covariates(bound))
}

#' @export
describe_priors.bound_mvnormal <- function(bound) describe_covariates(bound)

describe_coefficients <- function(bound) {
  prior <- bound$model$prior %||% prior_normal()
  columns <- bound$design
  names <- coefficient_names(columns)
  if (inherits(prior, "fixed")) return(character())
  said <- if (inherits(prior, "prior_nig")) describe_nig(prior, bound) else {
    of_family <- inherits(bound, "bound_glm")
    scales <- if (of_family) family_scales(bound$model, columns) else default_coefficient_sd(columns)
    independent_coefficients(prior, columns, bound_centring(bound), scales, caller_env(), if (of_family) family_middle(bound$model, columns[1L, ]) else 0)
  }
  centring <- bound_centring(bound)
  of_middles <- rowSums(said$rows != centring$matrix) > 0
  mean <- drop(said$rows %*% said$mean)
  mean[1L] <- mean[1L] + if (of_middles[1L]) columns$centre[1L] else centring$shift[1L]
  sd <- paste0(format_number(said$sd), if (inherits(prior, "prior_nig")) " sigma")
  text <- if (inherits(prior, "prior_student_t")) paste0("student_t(", format_number(prior$df), ", ", format_number(mean), ", ", sd, ")") else
    paste0("normal(", format_number(mean), ", ", sd, ")")
  text[of_middles] <- paste(text[of_middles], "at mid-bounds")
  stats::setNames(text, names)
}

# as independent_coefficients(), sd in units of sigma; of a precision that is given, marginal ones
describe_nig <- function(prior, bound) {
  fields <- bound$spec$fields
  k <- length(fields$beta_mean)
  rows <- if (is.null(prior$precision)) diag(k) else bound_centring(bound)$matrix
  cov <- invert_positive(matrix(fields$beta_precision, k))
  list(mean = fields$beta_mean, sd = sqrt(diag(rows %*% cov %*% t(rows))), rows = rows)
}

# a standard deviation's or a coefficient of variation's
describe_sigma <- function(fields, name = "sigma") {
  kind <- grep("^sigma_", names(fields), value = TRUE)
  if (length(kind) == 0L) return(character())
  text <- say(sub("sigma_", "", kind), fields[[kind]])
  stats::setNames(if (kind == "sigma_inverse_gamma") paste0(text, " of ", name, "^2") else text, name)
}

describe_covariates <- function(bound) {
  fields <- bound$spec$fields
  design <- bound$base %||% bound$design
  names <- design$name[normal_rows(bound)]
  p <- length(names)
  cut <- if (any(grepl("^within", names(fields)))) " within bounds" else ""
  mean <- if (!is.null(fields$mean_prior) && p > 0L) {
    stats::setNames(paste0("normal(", format_number(fields$mean_prior), ", ", say_sd(names, fields$mean_kappa), ")", cut), paste0("mean[", names, "]"))
  }
  cov <- if (!is.null(fields$cov_scale) && p > 0L) {
    at <- which(upper.tri(diag(p), diag = TRUE), arr.ind = TRUE)
    scale <- matrix(fields$cov_scale, p)[at]
    stats::setNames(paste0("inverse_wishart(", format_number(fields$cov_df), ", ", format_number(scale), ")", cut),
                    paste0("cov[", names[at[, 2L]], ",", names[at[, 1L]], "]"))
  }
  if (isTRUE(bound$dependent)) return(c(mean, cov, describe_joint(bound), lone_priors(design, bound$model)))
  size <- fields$factor_levels
  ends <- cumsum(size)
  levels <- unlist(lapply(seq_along(size), function(f) {
    rep(say("dirichlet", unique(fields$alpha[ends[f] - size[f] + seq_len(size[f])])), size[f])
  }))
  if (length(levels)) names(levels) <- grep("^prob\\[", bound$parameters, value = TRUE)
  c(mean, cov, levels, lone_priors(design, bound$model))
}

#' @export
describe_priors.bound_normal <- function(bound) {
  fields <- bound$spec$fields
  cut <- if (!is.null(fields$within)) " within bounds" else ""
  c(mean = if (!is.null(fields$prior_mean)) {
      paste0("normal(", format_number(fields$prior_mean), ", ", format_number(1 / sqrt(fields$prior_precision)), if (fields$nig == 1) " sd", ")", cut)
    },
    sd = if (!is.null(fields$shape)) paste0(say("inverse_gamma", fields$shape, fields$rate), " of sd^2", cut))
}
