# Density, distribution function and quantile function of the distributions of mech_discrete_laplace() and mech_discrete_gaussian(). Their support is the
# integers; P(k) is proportional to exp(-|k - location| / scale) and to exp(-(k - location)^2 / (2 sd^2)), with any real location. All arguments are recycled
# to the longest. Both tails have a high relative accuracy, for scales from 1e-3 to 1e6 and beyond. The quantile is the smallest integer at which the
# distribution function reaches p. A number that is not an integer has density 0.

ddiscrete_laplace <- function(x, location = 0, scale, log = FALSE) discrete_density(FALSE, x, location, scale, log)

pdiscrete_laplace <- function(q, location = 0, scale, lower.tail = TRUE, log.p = FALSE) {
  discrete_distribution("cumulative", FALSE, q, location, scale, lower.tail, log.p)
}

qdiscrete_laplace <- function(p, location = 0, scale, lower.tail = TRUE, log.p = FALSE) {
  discrete_distribution("quantile", FALSE, p, location, scale, lower.tail, log.p)
}

ddiscrete_gaussian <- function(x, location = 0, sd, log = FALSE) discrete_density(TRUE, x, location, sd, log)

pdiscrete_gaussian <- function(q, location = 0, sd, lower.tail = TRUE, log.p = FALSE) {
  discrete_distribution("cumulative", TRUE, q, location, sd, lower.tail, log.p)
}

qdiscrete_gaussian <- function(p, location = 0, sd, lower.tail = TRUE, log.p = FALSE) {
  discrete_distribution("quantile", TRUE, p, location, sd, lower.tail, log.p)
}

discrete_density <- function(gaussian, x, location, scale, log) {
  density <- discrete_distribution("log_density", gaussian, x, location, scale, TRUE, TRUE)
  if (log) density else exp(density)
}

# as numbered in src/r/discrete.c
discrete_functions <- c(log_density = 0L, cumulative = 1L, quantile = 2L)

discrete_distribution <- function(which, gaussian, x, location, scale, lower, log) {
  size <- if (length(x)) max(length(x), length(location), length(scale)) else 0L
  argument <- function(a) rep_len(as.double(a), size)
  out <- .Call(ffi_discrete_distribution, discrete_functions[[which]], argument(x), argument(location), argument(scale),
               as.integer(c(gaussian, lower, log)))
  if (length(x) == size) attributes(out) <- attributes(x)[intersect(c("names", "dim", "dimnames"), names(attributes(x)))]
  out
}
