#' Run a model from dapper
#'
#' Converts a `privacy` object from the package dapper, made by `dapper::new_privacy()`, and runs its four functions unchanged. The package dapper itself is not
#' needed.
#'
#' @param x An object of class `privacy`: a list of the functions `posterior_f(dmat,
#'   theta)`, `latent_f(theta)`, `mechanism_f(sdp, sx)` and `statistic_f(xi, sdp, i)`
#'   (in early versions `post_f`, `latent_f`, `priv_f`, `st_f`), with `npar` and optionally `varnames`.
#' @param sdp The published value, a numeric vector or matrix.
#' @param init_par Starting values, as in `dapper::dapper_sample()`, because such an object has no prior to draw from. Use `init` in [sample_posterior()] to
#'   vary them.
#' @param ... Must be empty.
#'
#' @details The number of records is the number of rows of the matrix that `latent_f` returns. The plain sampler of Ju et al. (2022) runs, as in dapper:
#'   without joint moves of parameters and records, chains may mix slowly. `statistic_f` and `mechanism_f` work on one record, so they are called for each
#'   record. The same model runs tens to hundreds of times as fast if it is written for all records at once, with [model_custom()] and a statistic and a
#'   mechanism from this package; see `vignette("from-dapper", package = "noiseaware")`.
#'
#' @return A model of class `model_custom`; its element `release` is the published value with its statistic and mechanism, to pass to [sample_posterior()].
#' @section Errors: `noiseaware_error_custom`: a function is missing, or returns a value of the wrong type or shape. An error inside a function is shown with
#'   its own message. `noiseaware_error_argument`.
#' @family package interfaces
#' @examples
#' # as from dapper::new_privacy(): mean of 30 N(mu, 1) records, Laplace noise of scale 2
#' object <- structure(class = "privacy", list(
#'   posterior_f = function(dmat, theta) {
#'     precision <- 1 + nrow(dmat)
#'     rnorm(1, sum(dmat) / precision, 1 / sqrt(precision))
#'   },
#'   latent_f = function(theta) matrix(rnorm(30, theta, 1), ncol = 1),
#'   mechanism_f = function(sdp, sx) -abs(sdp - sx) / 2,
#'   statistic_f = function(xi, sdp, i) xi,
#'   npar = 1, varnames = "mu"))
#' model <- as_model(object, sdp = 12.3, init_par = 0)
#' sample_posterior(model$release, model, chains = 1, iter = 600, seed = 1)
#' @export
as_model <- function(x, ...) UseMethod("as_model")

#' @export
as_model.default <- function(x, ...) {
  check_given()
  stop_argument("x", "a model, or an object made by dapper::new_privacy()", describe(x))
}

#' @export
as_model.noiseaware_model <- function(x, ...) {
  check_no_dots(...)
  x
}

#' @rdname as_model
#' @export
as_model.privacy <- function(x, sdp, init_par, ...) {
  check_given()
  check_no_dots(...)
  f <- foreign_functions(x)
  if (!is.numeric(sdp) || length(sdp) == 0L || !all(is.finite(sdp))) {
    stop_argument("sdp", "a vector or matrix of finite numbers", describe(sdp))
  }
  npar <- x$npar %||% length(init_par)
  if (!is.numeric(init_par) || length(init_par) != npar || !all(is.finite(init_par))) {
    stop_argument("init_par", paste(npar, "finite", if (identical(as.integer(npar), 1L)) "number" else "numbers"),
                  describe(init_par))
  }
  records <- with_seed(1L, call_user(f$latent, "latent_f", init_par))
  if (!is.matrix(records) || !is.numeric(records) || !all(is.finite(records))) stop_custom("latent_f", "a matrix of finite numbers", records)
  first <- call_user(f$statistic, "statistic_f", records[1L, ], sdp, 1L)
  if (!is.numeric(first) || length(first) != length(sdp)) {
    stop_custom("statistic_f", paste(length(sdp), "numbers, as many as", "sdp has"), first)
  }
  variables <- colnames(records) %||% paste0("x", seq_len(ncol(records)))
  parameters <- x$varnames %||% names(init_par) %||% paste0("theta", seq_len(npar))
  # theta and the records come with the names that the functions gave them
  theta_as <- function(theta) stats::setNames(theta, names(init_par))
  records_as <- function(m) {
    dimnames(m) <- list(NULL, colnames(records))
    m
  }
  model <- model_custom(
    r_prior = function() stats::setNames(as.double(init_par), parameters),
    r_records = function(theta, n) unname(f$latent(theta_as(theta))),
    r_theta = function(records, theta) {
      value <- f$posterior(records_as(records), theta_as(theta))
      if (is.numeric(value)) as.vector(unname(value)) else value
    },
    variables = variables)
  model$records <- nrow(records)
  statistic <- foreign_statistic(f$statistic, sdp, first, variables, records_as)
  mechanism <- new_custom_mechanism(foreign_density(f$mechanism, sdp, first), 2L)
  model$release <- as_release(as.vector(sdp), statistic, mechanism, nrow(records))
  structure(model, class = c("model_foreign", class(model)))
}

foreign_functions <- function(x, call = caller_env()) {
  names <- list(posterior = c("posterior_f", "post_f"), latent = "latent_f", mechanism = c("mechanism_f", "priv_f"),
                statistic = c("statistic_f", "st_f"))
  f <- lapply(names, function(n) {
    given <- Filter(is.function, unclass(x)[intersect(n, names(x))])
    if (length(given) == 0L) stop_classed("custom", "{.arg x} must have the function {.fn {n[1L]}}.", call = call)
    given[[1L]]
  })
  statistic <- f$statistic
  # its arguments have had another order
  if (setequal(names(formals(statistic)), c("xi", "sdp", "i"))) f$statistic <- function(xi, sdp, i) statistic(xi = xi, sdp = sdp, i = i)
  f
}

# a total over records, of a function of one record
foreign_statistic <- function(f, sdp, first, variables, records_as) {
  size <- length(first)
  fun <- function(records) {
    records <- records_as(records)
    value <- vapply(seq_len(nrow(records)), function(i) as.double(f(records[i, ], sdp, i)), numeric(size))
    matrix(value, nrow(records), byrow = TRUE)
  }
  columns <- data.frame(name = variables, lower = -Inf, upper = Inf, variable = variables, level = NA_character_)
  new_statistic("custom", "totals", columns = columns, levels = list(), components = foreign_components(sdp, first), fun = keep_functions(list(fun))[[1L]],
                sensitivity = list(replace = c(L1 = NA_real_, L2 = NA_real_)), class = "stat_custom")
}

foreign_components <- function(sdp, first) {
  names <- names(sdp) %||% names(first)
  if (is.null(names) || anyDuplicated(names) || !all(nzchar(names))) paste0("sdp", seq_along(first)) else names
}

# a log density of the value given one total, for several totals in rows
foreign_density <- function(f, sdp, first) {
  density <- function(z, s) {
    vapply(seq_len(nrow(s)), function(k) {
      first[] <- s[k, ]
      value <- f(sdp, first)
      if (!is.numeric(value) || length(value) != 1L) stop_custom("mechanism_f", "one number", value)
      as.double(value)
    }, 0)
  }
  keep_functions(list(density))[[1L]]
}

#' @export
format.model_foreign <- function(x, ...) {
  c("<model> custom, the functions of a dapper object",
    paste0("  variables  ", paste(x$variables, collapse = ", ")),
    paste0("  records    ", x$records),
    "  moves      none: the plain sampler, mixing may be slow")
}
