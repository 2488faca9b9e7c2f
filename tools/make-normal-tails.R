# Writes src/base/normal_tables.h: the upper tail of the standard normal distribution over its density, Mills' ratio, for
# src/base/normal_tails.c: a polynomial in z, which takes 0 to `far` to -1 to 1 by way of (x - middle) / (x + middle), through Chebyshev's
# points. Its largest relative error is below 1e-13.
#
# Run from the package's root: Rscript tools/make-normal-tails.R

far <- 9
middle <- 4.5
degree <- 15L

ratio <- function(x) pnorm(x, lower.tail = FALSE) / dnorm(x)
last <- (far - middle) / (far + middle)
to_z <- function(x) (2 * (x - middle) / (x + middle) + 1 - last) / (1 + last)
from_z <- function(z) {
  u <- (z * (1 + last) - 1 + last) / 2
  middle * (1 + u) / (1 - u)
}

z <- cospi((0:degree + 0.5) / (degree + 1))
coefficient <- solve(outer(z, 0:degree, `^`), ratio(from_z(z)))

x <- seq(0, far, length.out = 10001L)
fitted <- Reduce(function(sum, by) sum * to_z(x) + by, rev(coefficient))
stopifnot(max(abs(fitted / ratio(x) - 1)) < 1e-13)

writeLines(c(
  "/* Written by tools/make-normal-tails.R; do not edit. See base/normal_tails.c. */",
  "#ifndef NOISEAWARE_NORMAL_TABLES_H",
  "#define NOISEAWARE_NORMAL_TABLES_H",
  "",
  sprintf("enum { MILLS_TERMS = %d };", degree + 1L),
  sprintf("static const double MILLS_FAR = %g, MILLS_MIDDLE = %g;", far, middle),
  "/* z = slope u + shift, u = (x - middle) / (x + middle) */",
  sprintf("static const double MILLS_SLOPE = %a, MILLS_SHIFT = %a;", 2 / (1 + last), (1 - last) / (1 + last)),
  "/* of z^0, z^1, ... */",
  "static const double MILLS[MILLS_TERMS] = {",
  paste0("    ", sprintf("%a", coefficient), c(rep(",", degree), "};")),
  "",
  "#endif"
), "src/base/normal_tables.h")
