# Writes src/base/rng_tables.h: the layer edges of the 256-layer ziggurats for the
# half-normal exp(-x^2 / 2) and the exponential exp(-x) (Marsaglia & Tsang 2000).
#
# The layers have equal area v: x[1] = r is the edge of the base strip, whose
# tail beyond r counts as part of it, and x[0] = v / f(r) is the width that a
# rectangle of the base strip's area would have. r is the root at which the
# last layer closes at x[256] = 0.
#
# Run from the package's root: Rscript tools/make-ziggurat.R

layers <- 256L

edges <- function(r, f, f_inverse, tail) {
  v <- r * f(r) + tail(r)
  x <- numeric(layers + 1L)
  x[1L] <- v / f(r)
  x[2L] <- r
  for (i in 3L:layers) {
    height <- v / x[i - 1L] + f(x[i - 1L])
    if (height >= 1) return(list(gap = height - 1 + (layers - i), x = x))
    x[i] <- f_inverse(height)
  }
  list(gap = v / x[layers] + f(x[layers]) - 1, x = x)
}

solve_edges <- function(f, f_inverse, tail, range) {
  root <- uniroot(function(r) edges(r, f, f_inverse, tail)$gap, range,
                  tol = .Machine$double.eps, maxiter = 10000L)$root
  edges(root, f, f_inverse, tail)$x
}

normal <- solve_edges(function(x) exp(-x^2 / 2), function(y) sqrt(-2 * log(y)),
                      function(r) sqrt(2 * pi) * pnorm(-r), c(3.6, 3.7))
exponential <- solve_edges(function(x) exp(-x), function(y) -log(y),
                           function(r) exp(-r), c(7.6, 7.8))
stopifnot(abs(normal[2L] - 3.6541528853610088) < 1e-9,
          abs(exponential[2L] - 7.69711747013104972) < 1e-9)

# the tables of the fast paths are visible to base/rng_inline.h
table_lines <- function(name, x, before = "static ") {
  hex <- sprintf("%a", x)
  rows <- split(hex, (seq_along(hex) - 1L) %/% 4L)
  c(sprintf("%sconst double %s[%d] = {", before, name, length(x)),
    paste0("    ", vapply(rows, paste, "", collapse = ", "), c(rep(",", length(rows) - 1L), "")),
    "};")
}

writeLines(c(
  "/* Written by tools/make-ziggurat.R; do not edit. See base/rng_draws.c. */",
  "#ifndef NOISEAWARE_RNG_TABLES_H",
  "#define NOISEAWARE_RNG_TABLES_H",
  "",
  "/* Layer edges, widest first, and the density at each edge. */",
  table_lines("rng_normal_edge", normal, ""), "",
  "/* Edges in units of the 53-bit integer that is drawn. */",
  table_lines("rng_normal_step", normal * 2^-53, ""), "",
  table_lines("normal_height", exp(-normal^2 / 2)), "",
  table_lines("rng_exponential_edge", exponential, ""), "",
  table_lines("rng_exponential_step", exponential * 2^-53, ""), "",
  table_lines("exponential_height", exp(-exponential)), "",
  "#endif"
), "src/base/rng_tables.h")
