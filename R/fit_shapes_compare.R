# Does a regression that is not linear depend on its covariates being normal? A release of cross-products has two moments of each covariate. Where bounds are
# natural limits, they say more: ages from 50 on with mean 64 and sd 10 are skewed. The coefficients are worked out that give the same cross-products with the
# response if such covariates are skewed, with the same means and covariances: beta-distributed within their limits, or log-normal from the nearer limit.
#
# Equations: for records x of the fitted distribution and skewed x', E[x' mu(x'b')] = E[x mu(x'b)], where b is the posterior mean and mu the expected
# response (of each level, if it has several). x' has the order of x, and the same covariances and means by level. Gauss-Newton; batches give the Monte
# Carlo error. Cost: some thousand records, a few tenths of a second. refit_covariates() has the exact answers.

shape_batches <- 4L
least_shape_records <- 500
most_shape_records <- 2000

# A row for each coefficient: coefficient, mean, sd (of the fit); of the skewed distributions the lowest and the highest answer, and the farther one's difference
# (in sds) and error. NULL where nothing is compared.
compare_shapes <- function(fit) {
  skewed <- shapeable(fit)
  if (length(skewed) == 0L) return(NULL)
  draws <- coefficient_draws(fit)
  mean <- colMeans(draws)
  sd <- apply(draws, 2L, stats::sd)
  batches <- lapply(seq_len(shape_batches), function(k) shape_batch(fit, skewed, new_stream(fit$words, 4500L + k)))
  # coefficients x batches of each distribution that all batches have
  each <- lapply(stats::setNames(nm = c("beta", "lognormal")), function(kind) do.call(cbind, lapply(batches, `[[`, kind)))
  each <- Filter(function(found) NCOL(found) == shape_batches && all(is.finite(found)), each)
  if (length(each) == 0L) return(NULL)
  found <- vapply(each, rowMeans, mean)
  error <- vapply(each, function(one) apply(one, 1L, stats::sd) / sqrt(shape_batches), mean)
  dim(found) <- dim(error) <- c(length(mean), length(each))
  farther <- cbind(seq_along(mean), max.col(abs(found - mean), "first"))
  data.frame(coefficient = colnames(draws), mean = unname(mean), sd = unname(sd), lowest = apply(found, 1L, min), highest = apply(found, 1L, max),
             difference = unname((found[farther] - mean) / sd), error = unname(error[farther] / sd))
}

shape_trouble <- function(fit) {
  found <- differing_shapes(fit)
  if (is.null(found) || nrow(found) == 0L) return(NULL)
  shown <- utils::head(found, 4L)
  list(list(kind = "covariates", text = c(
    "The answer depends on the covariates' distribution, which is assumed to be normal and is not in the release.",
    stats::setNames(paste0(shape_words(shown), "."), rep("x", nrow(shown))),
    x = if (nrow(found) > nrow(shown)) paste0("Also: ", shorten_list(found$coefficient[-seq_len(nrow(shown))], 5L), "."),
    i = "Skewed: beta-distributed within the natural limits or log-normal, with the same means and covariances, and so the same released totals.",
    i = sprintf("Give a distribution that you know, as in `covariates = list(%s = covariate_beta())`; `refit_covariates()` compares them. Or ask for counts of %s",
                format_name(shapeable(fit)[1L]), "covariate classes by response."))))
}

# normal covariates with natural limits on both sides
shapeable <- function(fit) {
  bound <- fit$bound
  regression <- inherits(bound, "bound_glm") || inherits(bound, "bound_categories")
  if (!regression || is.null(fit$words) || !is.null(bound$moments) || are_public(bound$model) || !is.null(bound$terms$functions)) return(NULL)
  parts <- release_parts(fit$release)
  if (!all(vapply(parts, function(p) inherits(p$statistic, "stat_crossprod"), TRUE))) return(NULL)
  numbers <- Filter(function(name) distribution_of(bound$model, name) == "normal", number_covariates(bound))
  natural <- lapply(parts, function(p) p$statistic$columns$name[natural_columns(p$statistic)])
  intersect(numbers, unlist(natural))
}

# variables that are numbers and have a distribution
number_covariates <- function(bound) {
  base <- bound$base[-1L, ]
  setdiff(base$name[is.na(base$level)], names(bound$model$covariates$constants))
}

distribution_of <- function(model, name) model$covariates$lone[[name]]$kind %||% "normal"

# of one batch of records the coefficients by distribution
shape_batch <- function(fit, skewed, stream) {
  bound <- fit$bound
  theta <- bound_theta(bound, colMeans(own_parameters(fit)))
  n <- if (is.na(nobs(fit))) mean(parameter_matrix(fit)[, "n"]) else nobs(fit)
  count <- min(max(round(n), least_shape_records), most_shape_records)
  records <- .Call(ffi_model_records, bound$spec, theta, count, stream)$records
  normal <- raw_records(record_frame(records, bound$columns, data_levels(bound)))
  draws <- coefficient_draws(fit)
  start <- colMeans(draws)
  target <- products_of(fit, normal, rbind(start))
  lapply(stats::setNames(nm = c("beta", "lognormal")), function(kind) {
    other <- with_skewed(fit, normal, skewed, kind)
    if (!is.null(other)) solve_products(fit, other, target[1L, ], start, apply(draws, 2L, stats::sd))
  })
}

# The same records with other numbers; NULL if no distribution within the limits has their moments.
with_skewed <- function(fit, data, skewed, kind) {
  x <- y <- covariate_values(fit, data)
  base <- fit$bound$base
  for (name in skewed) {
    row <- base[match(name, base$name), ]
    y[, name] <- skewed_values(x[, name], row$lower, row$upper, kind)
    if (!all(is.finite(y[, name]))) return(NULL)
  }
  # the same covariances with all covariates, and the same means by level
  around <- qr(cbind(1, x[, setdiff(colnames(x), skewed), drop = FALSE]))
  root <- function(values) tryCatch(chol(crossprod(qr.resid(around, values))), error = function(e) NULL)
  from <- root(y[, skewed, drop = FALSE])
  to <- root(x[, skewed, drop = FALSE])
  if (is.null(from) || is.null(to)) return(NULL)
  data[skewed] <- as.data.frame(qr.fitted(around, x[, skewed, drop = FALSE]) + qr.resid(around, y[, skewed, drop = FALSE]) %*% solve(from, to))
  data
}

# with the order, mean and variance of x
skewed_values <- function(x, lower, upper, kind) {
  width <- upper - lower
  mean <- (base::mean(x) - lower) / width
  variance <- stats::var(x) / width^2
  u <- (rank(x) - 0.5) / length(x)
  if (!(mean > 0 && mean < 1 && variance < mean * (1 - mean))) return(NA)
  if (kind == "beta") {
    size <- mean * (1 - mean) / variance - 1
    return(lower + width * stats::qbeta(u, size * mean, size * (1 - mean)))
  }
  from_lower <- mean <= 0.5
  distance <- if (from_lower) mean else 1 - mean
  spread <- log1p(variance / distance^2)
  y <- stats::qlnorm(if (from_lower) u else 1 - u, log(distance) - spread / 2, sqrt(spread))
  if (from_lower) lower + width * y else upper - width * y
}

# Means of products of the covariates, in standard deviations, with the expected response, or with its probability of each level: a row for each of `beta`'s.
products_of <- function(fit, data, beta) {
  x <- design_matrix(fit, data)[, -1L, drop = FALSE]
  scale <- apply(x, 2L, stats::sd)
  x <- cbind(1, sweep(sweep(x, 2L, colMeans(x)), 2L, ifelse(scale > 0, scale, 1), `/`))
  expected <- expected_response(with_coefficients(fit, beta), data)
  t(apply(expected, 1L, function(mu) crossprod(x, mu))) / nrow(x)
}

# a fit with a draw for each row of `beta`
with_coefficients <- function(fit, beta) {
  draws <- matrix(colMeans(parameter_matrix(fit)), nrow(beta), ncol(parameter_matrix(fit)), byrow = TRUE, dimnames = list(NULL, colnames(parameter_matrix(fit))))
  draws[, colnames(coefficient_draws(fit))] <- beta
  fit$draws <- posterior::as_draws_array(draws)
  fit
}

# Gauss-Newton with differences for derivatives, halved until it is a gain; NULL if it fails.
solve_products <- function(fit, data, target, beta, scale) {
  for (iteration in seq_len(30L)) {
    found <- products_of(fit, data, rbind(beta, t(beta + diag(scale / 10, length(scale)))))
    slopes <- t(sweep(found[-1L, , drop = FALSE], 2L, found[1L, ])) %*% diag(10 / scale, length(scale))
    step <- tryCatch(qr.coef(qr(slopes), target - found[1L, ]), error = function(e) NA)
    if (!all(is.finite(step))) return(NULL)
    if (all(abs(step) < 0.02 * scale)) return(beta + step)
    shares <- 2^-(0:7)
    tried <- products_of(fit, data, t(beta + outer(step, shares)))
    gains <- which(rowSums(sweep(tried, 2L, target)^2) < sum((target - found[1L, ])^2))
    # of an ordered response not all products can be met, and the last steps may be too long
    if (length(gains) == 0L) return(if (all(abs(step) < scale / 2)) beta)
    beta <- beta + shares[gains[1L]] * step
  }
  NULL
}
