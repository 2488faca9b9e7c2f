# The R package dapper: data augmentation for four functions of the user, here written for tables and for Ju et al.'s regression. Called as noiseaware.R is.
given <- commandArgs(TRUE)
if (!requireNamespace("dapper", quietly = TRUE)) quit(status = 3)
value <- unlist(jsonlite::fromJSON(given[1L])$value) + 0 # no integers

# one category a record; `log_noise` of the differences of all counts
table_problem <- function(n, alpha, log_noise, names, iter) {
  cells <- length(value)
  list(parameters = names, start = rep(1 / cells, cells), iter = iter,
       latent = function(theta) matrix(sample.int(cells, n, TRUE, theta), n),
       posterior = function(dmat, theta) {
         g <- stats::rgamma(cells, alpha + tabulate(dmat, cells))
         g / sum(g)
       },
       statistic = function(xi, sdp, i) as.numeric(seq_len(cells) == xi),
       mechanism = function(sdp, sx) log_noise(sdp - sx))
}

regression_problem <- function() {
  list(parameters = c("(Intercept)", "x1", "x2"), start = c(0, 0, 0), iter = 20000,
       latent = function(theta) {
         x <- cbind(stats::rnorm(100, 0.9), stats::rnorm(100, -1.17))
         cbind(theta[1L] + x %*% theta[2:3] + sqrt(2) * stats::rnorm(100), x)
       },
       posterior = function(dmat, theta) {
         x <- cbind(1, dmat[, 2:3])
         root <- chol(crossprod(x) / 2 + diag(3) / 4)
         drop(backsolve(root, backsolve(root, crossprod(x, dmat[, 1L]) / 2, transpose = TRUE) + stats::rnorm(3)))
       },
       statistic = function(xi, sdp, i) {
         r <- pmin.int(pmax.int(xi, -10), 10) / 10
         c(r, r[1L] * r, r[2L] * r[2:3], r[3L]^2)
       },
       mechanism = function(sdp, sx) -sum(abs(sdp - sx)) / 13)
}

laplace <- function(scale) function(x) -sum(abs(x)) / scale
cells <- function(names) sprintf("prob[%s]", names)
problem <- switch(given[3L], regression = regression_problem(),
                  binomial = table_problem(1000, 10, laplace(200), cells(sub("x=", "", names(value))), 3000),
                  multinomial = table_problem(1000, 5, laplace(200), cells(sub("x=", "", names(value))), 3000),
                  trial = table_problem(100, 1, laplace(4), cells(names(value)), 20000),
                  quine = table_problem(146, 1, laplace(4), cells(names(value)), 20000),
                  quit(status = 3))
model <- dapper::new_privacy(posterior_f = problem$posterior, latent_f = problem$latent, mechanism_f = problem$mechanism, statistic_f = problem$statistic,
                             npar = length(problem$start), varnames = paste0("v", seq_along(problem$start)))
out <- dapper::dapper_sample(model, sdp = unname(value), init_par = problem$start, seed = 1, niter = problem$iter, warmup = problem$iter %/% 10, chains = 1)
draws <- as.data.frame(posterior::as_draws_matrix(out$chain))
utils::write.csv(stats::setNames(draws[seq_along(problem$parameters)], problem$parameters), given[2L], row.names = FALSE)
