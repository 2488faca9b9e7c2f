# The target of method "collapse" for normal records as a Stan program, for those who want to extend a model
# there: the non-centred form of the totals (vignette "Algorithms", "collapse"), the parameters not integrated out.

#' Write the posterior as a Stan program
#'
#' A starting point for models that this package does not have: a Stan program with its data. It has the normal models in the form that method `"collapse"`
#' samples: the totals of the records given the parameters, and the published numbers given the totals. You can then change a prior, add a level of a hierarchy,
#' or share a parameter.
#'
#' @param x A release with a known number of records, or a fit of one ([sample_posterior()]).
#' @param model [model_lm()], [model_normal()] or [model_mvnormal()] with numeric covariates. Leave it out for a fit, which has a model.
#' @param ... Must be empty.
#'
#' @details
#' Given the parameters the records are normal, so the totals of n records are normal and their scatter has a Wishart distribution; the dimension of both does
#' not depend on the number of records. The program parametrises them by standard normal and gamma variables (the Bartlett decomposition), which works well with
#' much noise. Like method `"collapse"`, it is exact if no record lies outside the bounds, and unlike `"clt"` it does not approximate the totals' distribution.
#' It ignores clamping; the printed fit by `"collapse"` shows how likely clamped records are. Discrete noise has the density of its continuous counterpart, as
#' in that method.
#'
#' In the program, variables are measured from the middles of their bounds, and covariates come before the response. The generated quantity `intercept` is in
#' the data's units.
#'
#' @return An object of class `noiseaware_stan`, a list. `rstan::stan(model_code = s$program, data = s$data, init = function() s$init)` runs such an object `s`.
#'   Its elements are:
#'
#' | element | content |
#' | --- | --- |
#' | `program` | a string in the syntax of Stan 2.21 or later |
#' | `data` | a named list |
#' | `init` | starting values for a chain, in the middle of the bounds |
#' | `names` | the names of the model's parameters in the program |
#' @section Errors: `noiseaware_error_method`: another model, factors, an unknown number of records, priors truncated by `within`, and releases that method
#'   `"collapse"` does not support or that have exact numbers; `noiseaware_error_argument`.
#' @family package interfaces
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' s <- stan_program(rel, model_lm())
#' s
#' s$names
#' @export
stan_program <- function(x, ...) {
  check_given()
  UseMethod("stan_program")
}

#' @export
stan_program.default <- function(x, ...) stop_argument("x", "a release or a fit", describe(x))

#' @rdname stan_program
#' @export
stan_program.noiseaware_fit <- function(x, ...) {
  check_no_dots(...)
  refuse_several(x, "x", class = "method")
  if (is.null(x$release)) stop_classed("argument", "{.arg x} must be a fit to a release.")
  write_stan(x$release, x$bound)
}

#' @rdname stan_program
#' @export
stan_program.noiseaware_release <- function(x, model, ...) {
  check_given()
  check_no_dots(...)
  check_model(model)
  x <- narrow_release(x, model)
  write_stan(x, bind_model(model, x$statistic))
}

#' @export
print.noiseaware_stan <- function(x, ...) {
  cat(x$program)
  cat("\n// Data:", paste(names(x$data), collapse = ", "), "\n")
  invisible(x)
}

write_stan <- function(release, bound, call = caller_env()) {
  check_stan_model(release, bound, call)
  parts <- component_parts(release, repeated = TRUE)
  for (p in parts) {
    check_collapse_part(p, "normal", call)
    if (!p$mechanism$kernel %in% c("absolute", "squared")) {
      stop_classed("method", "A Stan program is for noisy totals, but the release has numbers with {format(p$mechanism)}.", call = call)
    }
  }
  columns <- stan_columns(bound)
  terms <- do.call(rbind, lapply(parts, normal_terms, names = columns, origin = collapse_origin(bound)[match(columns, bound$columns$name)],
                                 n = release$n, call = call))
  block <- stan_blocks(bound, columns)
  data <- c(stan_totals_data(release, bound, columns, terms, parts), block$data$values)
  title <- paste0("// ", c(paste0(describe_model(bound), ": ", nrow(terms), " noisy totals of ", format_size(release$n), " records"),
                           "Exact if no record lies outside the bounds (noiseaware's method \"collapse\")."))
  inside <- paste0("  ", c(block$declared, totals_lines$local, block$records, totals_lines$made))
  lines <- c(title, stan_block("data", c(totals_lines$data, block$data$lines)),
             stan_block("transformed data", totals_lines$degrees),
             stan_block("parameters", c(block$parameters, gsub("below_size", length(columns) * (length(columns) - 1) / 2, totals_lines$parameters, fixed = TRUE))),
             stan_block("transformed parameters", c(totals_lines$declared, "{", inside, "}",
                                                    "expected = constant + of_totals * total + of_products * to_vector(product);")),
             stan_block("model", c(block$priors, totals_lines$model, noise_lines(parts))),
             if (length(block$generated)) stan_block("generated quantities", block$generated))
  structure(list(program = paste0(lines, "\n", collapse = ""), data = data, init = stan_start(bound, columns, data), names = block$names), class = "noiseaware_stan")
}

check_stan_model <- function(release, bound, call) {
  refuse <- function(fault) {
    stop_classed("method", c("A Stan program is available for normal records: {.fn model_lm}, {.fn model_normal} and {.fn model_mvnormal}, with numeric covariates.",
                             x = fault), call = call)
  }
  if (!inherits(bound, c("bound_lm", "bound_normal", "bound_mvnormal"))) refuse("The model is: {describe_model(bound)}.")
  if (length(bound$levels)) refuse("{.var {names(bound$levels)}} {?is a factor/are factors}.")
  if (length(bound$model$covariates$lone)) refuse("{.var {names(bound$model$covariates$lone)}} {?has/have} another distribution.")
  if (!is.null(bound$terms)) refuse("The formula has products or powers.")
  if (!is.null(bound$moments)) refuse("Only moments of the covariates are known, not their distribution.")
  if (has_record_noise(release)) refuse("The noise is on every record, not on totals.")
  if (is.null(release$n)) refuse("The number of records is unknown.")
  if (any(grepl("^within", names(bound$spec$fields)))) refuse("The prior is truncated by {.arg within}.")
  columns <- nrow(bound$columns)
  if (release$n <= columns) refuse("The release has {release$n} record{?s}, but more than {columns} are needed, the number of variables.")
}

# Covariates first: the factor of the records' covariance is then triangular.
stan_columns <- function(bound) {
  names <- bound$columns$name
  if (inherits(bound, "bound_lm")) c(names[-1L], names[1L]) else names
}

# Stan takes a vector of one number for a number, unless it has a dimension.
stan_vector <- function(x) array(as.double(x), length(x))

stan_totals_data <- function(release, bound, columns, terms, parts) {
  d <- length(columns)
  of_totals <- matrix(0, nrow(terms), d)
  of_products <- matrix(0, nrow(terms), d * d)
  row <- seq_len(nrow(terms))
  first <- cbind(row, terms[, 1L] + 1)
  second <- cbind(row, terms[, 2L] + 1)
  of_totals[first] <- terms[, 4L]
  of_totals[second] <- of_totals[second] + terms[, 5L]
  of_products[cbind(row, terms[, 1L] + 1 + d * terms[, 2L])] <- terms[, 6L]
  list(n = as.integer(release$n), d = d, numbers = nrow(terms), published = stan_vector(unlist(lapply(parts, `[[`, "value"))),
       noise = stan_vector(unlist(lapply(parts, `[[`, "scale"))), constant = stan_vector(terms[, 3L]), of_totals = of_totals, of_products = of_products,
       origin = stan_vector(collapse_origin(bound)[match(columns, bound$columns$name)]))
}

# where chains may start: all but what is known
stan_start <- function(bound, columns, data) {
  d <- length(columns)
  own <- bound$columns[match(columns, bound$columns$name), ]
  spread <- (own$upper - own$lower) / 8
  start <- if (inherits(bound, "bound_normal")) list(mu = data$origin[[1L]], sigma = spread) else {
    p <- if (inherits(bound, "bound_lm")) d - 1L else d
    c(if (inherits(bound, "bound_lm")) list(alpha = 0, sigma = spread[d]), if (p > 0L && p < d) list(beta = stan_vector(numeric(p))),
      if (p > 0L) list(mean_x = stan_vector(data$origin[seq_len(p)]), cov_x = diag(spread[seq_len(p)]^2, p)))
  }
  c(start[setdiff(names(start), names(data))],
    list(g = stan_vector(numeric(d)), chi = stan_vector(rep(1, d)), below = stan_vector(numeric(d * (d - 1) / 2))))
}

stan_block <- function(name, lines) c(paste(name, "{"), paste0("  ", lines), "}")

# ---- what all models share ----------------------------------------------------------------

totals_lines <- list(
  data = c("int<lower=2> n;                // records",
           "int<lower=1> d;                // variables: covariates, then the response",
           "int<lower=1> numbers;          // published",
           "vector[numbers] published;",
           "vector<lower=0>[numbers] noise;  // scale of Laplace noise, sd of normal noise",
           "// a number without noise: constant + of_totals * total + of_products * to_vector(product)",
           "vector[numbers] constant;",
           "matrix[numbers, d] of_totals;",
           "matrix[numbers, d * d] of_products;",
           "vector[d] origin;              // where variables are measured from"),
  degrees = c("vector[d] degrees;             // of freedom, of the diagonal of the scatter's factor",
              "for (i in 1:d) degrees[i] = n - i;"),
  parameters = c("// the totals given the parameters, by variables that are independent of them",
                 "vector[d] g;",
                 "vector<lower=0>[d] chi;",
                 "vector[below_size] below;"),
  declared = c("vector[d] total;               // of the variables, from the origin",
               "matrix[d, d] product;          // of products of two of them",
               "vector[numbers] expected;      // the numbers before the noise"),
  local = c("vector[d] centre;              // of the distribution of a record, from the origin",
            "matrix[d, d] factor = rep_matrix(0, d, d);  // of its covariance",
            "matrix[d, d] bartlett = diag_matrix(sqrt(chi .* degrees));",
            "int k = 1;"),
  made = c("// scatter = factor * bartlett * (factor * bartlett)' has the Wishart distribution",
           "for (i in 2:d) for (j in 1:(i - 1)) {",
           "  bartlett[i, j] = below[k];",
           "  k = k + 1;",
           "}",
           "total = n * centre + sqrt(n) * factor * g;",
           "product = tcrossprod(factor * bartlett) + total * total' / n;"),
  model = c("// the totals",
            "g ~ normal(0, 1);",
            "below ~ normal(0, 1);",
            "chi ~ gamma(0.5 * degrees, 0.5 * degrees);"))

noise_lines <- function(parts) {
  end <- cumsum(lengths(lapply(parts, `[[`, "value")))
  start <- c(1L, end[-length(end)] + 1L)
  distribution <- c(absolute = "double_exponential", squared = "normal")[vapply(parts, function(p) p$mechanism$kernel, "")]
  c("// the noise", sprintf("published[%1$d:%2$d] ~ %3$s(expected[%1$d:%2$d], noise[%1$d:%2$d]);", start, end, distribution))
}

# ---- what is a model's own: data (lines, values), parameters, declared variables and records (centre
# ---- and factor of their distribution), priors, generated quantities, names ------------------------

stan_blocks <- function(bound, columns) UseMethod("stan_blocks")

#' @export
stan_blocks.bound_mvnormal <- function(bound, columns) {
  x <- stan_covariates(bound$spec$fields, columns)
  list(data = x$data, parameters = x$parameters, priors = x$priors, names = x$names,
       records = c("centre = mean_x - origin;", "factor = cholesky_decompose(cov_x);"))
}

#' @export
stan_blocks.bound_normal <- function(bound, columns) {
  fields <- bound$spec$fields
  known <- c(mu = !is.null(fields[["mean"]]), sigma = !is.null(fields[["sd"]]))
  values <- list(mu = fields[["mean"]], sigma = fields[["sd"]])[known]
  lines <- c(mu = "real mu;", sigma = "real<lower=0> sigma;")
  list(data = list(lines = c(lines[known], prior_line("prior_mean", known[["mu"]]), prior_line("prior_precision", known[["mu"]])), values =
                     c(values, if (!known[["mu"]]) fields[c("prior_mean", "prior_precision")])),
       parameters = unname(lines[!known]), names = c(mean = "mu", sd = "sigma")[c("mean", "sd")[!known]],
       records = c("centre[1] = mu - origin[1];", "factor[1, 1] = sigma;"),
       priors = c("// priors",
                  if (!known[["sigma"]]) variance_prior(c(fields$shape, fields$rate)),
                  if (!known[["mu"]]) sprintf("mu ~ normal(prior_mean, %s1 / sqrt(prior_precision));", if (fields$nig == 1) "sigma * " else "")))
}

prior_line <- function(name, known) if (!known) paste0("real ", name, ";")

#' @export
stan_blocks.bound_lm <- function(bound, columns) {
  fields <- bound$spec$fields
  p <- length(columns) - 1L
  x <- if (p > 0L) stan_covariates(fields, columns[-(p + 1L)])
  known <- !is.null(fields[["beta"]])
  sizes <- c(alpha = "real alpha;  // the response where covariates are at the origin, from its own",
             beta = if (p > 0L) sprintf("vector[%d] beta;", p), sigma = "real<lower=0> sigma;")
  given <- c(alpha = known, beta = if (p > 0L) known, sigma = !is.null(fields[["sigma"]]))
  values <- list(alpha = fields[["beta"]][1L], beta = stan_vector(fields[["beta"]][-1L]), sigma = fields[["sigma"]])[names(given)[given]]
  prior <- if (!known) stan_coefficients(fields, p)
  slopes <- if (!known && p > 0L) stats::setNames(sprintf("beta[%d]", seq_len(p)), columns[seq_len(p)])
  d <- p + 1L
  list(data = list(lines = c(unname(sizes[given]), prior$lines, x$data$lines), values = c(values, prior$values, x$data$values)),
       parameters = c(unname(sizes[!given]), x$parameters),
       declared = if (p > 0L) sprintf("matrix[%1$d, %1$d] root = cholesky_decompose(cov_x);", p),
       records = c(if (p > 0L) c(sprintf("centre[1:%1$d] = mean_x - origin[1:%1$d];", p),
                                 sprintf("factor[1:%1$d, 1:%1$d] = root;", p),
                                 sprintf("factor[%d, 1:%d] = beta' * root;", d, p)),
                   sprintf("centre[%d] = alpha%s;", d, if (p > 0L) sprintf(" + dot_product(beta, centre[1:%d])", p) else ""),
                   sprintf("factor[%1$d, %1$d] = sigma;", d)),
       priors = c("// priors", if (is.null(fields[["sigma"]])) sigma_prior_line(fields), prior$priors, x$priors),
       generated = if (!known) sprintf("real intercept = alpha + origin[%d]%s;", d, if (p > 0L) sprintf(" - dot_product(beta, origin[1:%d])", p) else ""),
       names = c(if (!known) c("(Intercept)" = "intercept"), slopes, if (is.null(fields[["sigma"]])) c(sigma = "sigma"), x$names))
}

# covariates: mean_x and cov_x, known or with their priors
stan_covariates <- function(fields, names) {
  p <- length(names)
  known <- c(mean = !is.null(fields[["mean"]]), cov = !is.null(fields$cov_chol))
  lines <- c(mean = sprintf("vector[%d] mean_x;", p), cov = sprintf("cov_matrix[%d] cov_x;", p))
  values <- c(if (known[["mean"]]) list(mean_x = stan_vector(fields[["mean"]])) else list(prior_mean_x = stan_vector(fields$mean_prior), prior_kappa = fields$mean_kappa),
              if (known[["cov"]]) list(cov_x = crossprod(matrix(fields$cov_chol, p))) else list(prior_scale_x = matrix(fields$cov_scale, p), prior_df = fields$cov_df))
  at <- which(upper.tri(diag(p), diag = TRUE), arr.ind = TRUE)
  list(data = list(lines = c(unname(lines[known]),
                             if (!known[["mean"]]) c(sprintf("vector[%d] prior_mean_x;", p), "real<lower=0> prior_kappa;"),
                             if (!known[["cov"]]) c(sprintf("cov_matrix[%d] prior_scale_x;", p), "real<lower=0> prior_df;")), values = values),
       parameters = unname(lines[!known]),
       priors = c(if (!known[["cov"]]) "cov_x ~ inv_wishart(prior_df, prior_scale_x);",
                  if (!known[["mean"]]) "mean_x ~ multi_normal(prior_mean_x, cov_x / prior_kappa);"),
       names = c(if (!known[["mean"]]) stats::setNames(sprintf("mean_x[%d]", seq_len(p)), paste0("mean[", names, "]")),
                 if (!known[["cov"]]) stats::setNames(sprintf("cov_x[%d,%d]", at[, 2L], at[, 1L]), paste0("cov[", names[at[, 2L]], ",", names[at[, 1L]], "]"))))
}

stan_coefficients <- function(fields, p) {
  k <- p + 1L
  coefficients <- if (p > 0L) "append_row(rep_vector(alpha, 1), beta)" else "rep_vector(alpha, 1)"
  mean <- sprintf("vector[%d] prior_coefficients;", k)
  if (!is.null(fields$beta_df)) {
    return(list(lines = c(mean, sprintf("matrix[%1$d, %1$d] prior_of;  // what is independent: the intercept in the units of the data, or at the origin", k),
                          sprintf("vector<lower=0>[%d] prior_spread;", k), "real<lower=0> prior_t_df;"),
                values = list(prior_coefficients = stan_vector(fields$beta_mean), prior_of = rbind(fields$beta_first, diag(k)[-1L, , drop = FALSE]),
                              prior_spread = stan_vector(fields$beta_scale), prior_t_df = fields$beta_df),
                priors = sprintf("target += student_t_lpdf(prior_of * (%s - prior_coefficients) | prior_t_df, 0, prior_spread);", coefficients)))
  }
  list(lines = c(mean, sprintf("matrix[%1$d, %1$d] prior_precision;", k)),
       values = list(prior_coefficients = stan_vector(fields$beta_mean), prior_precision = matrix(fields$beta_precision, k)),
       priors = sprintf("target += multi_normal_prec_lpdf(%s | prior_coefficients, prior_precision%s);", coefficients,
                        if (fields$beta_nig == 1) " / square(sigma)" else ""))
}

# sigma^2 has the prior: the Jacobian is that of sigma
variance_prior <- function(shape_rate) {
  sprintf("target += inv_gamma_lpdf(square(sigma) | %s, %s) + log(2 * sigma);", exact_text(shape_rate[1L]), exact_text(shape_rate[2L]))
}

sigma_prior_line <- function(fields) {
  if (!is.null(fields$sigma_inverse_gamma)) return(variance_prior(fields$sigma_inverse_gamma))
  if (!is.null(fields$sigma_half_normal)) return(sprintf("sigma ~ normal(0, %s);", exact_text(fields$sigma_half_normal)))
  if (!is.null(fields$sigma_exponential)) return(sprintf("sigma ~ exponential(%s);", exact_text(fields$sigma_exponential)))
  if (!is.null(fields$sigma_lognormal)) return(sprintf("sigma ~ lognormal(%s, %s);", exact_text(fields$sigma_lognormal[1L]), exact_text(fields$sigma_lognormal[2L])))
  sprintf("sigma ~ student_t(%s, 0, %s);", exact_text(fields$sigma_half_t[1L]), exact_text(fields$sigma_half_t[2L]))
}
