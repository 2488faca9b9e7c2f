# The columns of ns() and bs(), steps of utils_steps.R: each a piecewise polynomial with public knots.

spline_steps <- c("ns", "bs")

spline_columns <- function(step) length(step$knots) + if (step$name == "ns") 1L else as.integer(step$degree)

# Polynomials of `breaks` and one more pieces, a row each: where it is measured from, and the coefficients of the powers 0 to 3. Beyond its last
# knots a natural spline is linear, and any other goes on as it is.
spline_pieces <- function(step) {
  natural <- step$name == "ns"
  value <- function(x) {
    basis <- if (natural) splines::ns(x, knots = step$knots, Boundary.knots = step$boundary) else
      splines::bs(x, knots = step$knots, degree = step$degree, Boundary.knots = step$boundary)
    unname(basis[, step$column])
  }
  ends <- c(step$boundary[1L], step$knots, step$boundary[2L])
  at <- (0:3) / 3
  powers <- solve(outer(at, 0:3, "^"))
  inner <- t(vapply(seq_len(length(ends) - 1L), function(k) {
    width <- ends[k + 1L] - ends[k]
    c(ends[k], drop(powers %*% value(ends[k] + width * at)) / width^(0:3))
  }, numeric(5L)))
  if (!natural) return(list(breaks = step$knots, pieces = inner))
  width <- diff(step$boundary)
  line <- function(end, to) {
    two <- value(c(end, to))
    c(end, two[1L], (two[2L] - two[1L]) / (to - end), 0, 0)
  }
  list(breaks = ends, pieces = rbind(line(ends[1L], ends[1L] - width), inner, line(ends[length(ends)], ends[length(ends)] + width)))
}

spline_value <- function(step, x) {
  of <- spline_pieces(step)
  piece <- of$pieces[findInterval(x, of$breaks) + 1L, , drop = FALSE]
  t <- x - piece[, 1L]
  piece[, 2L] + t * (piece[, 3L] + t * (piece[, 4L] + t * piece[, 5L]))
}

# where its slope is 0, or jumps
spline_turning_points <- function(step) {
  of <- spline_pieces(step)
  roots <- apply(of$pieces, 1L, function(p) {
    a <- 3 * p[5L]
    b <- 2 * p[4L]
    c <- p[3L]
    root <- b^2 - 4 * a * c
    found <- if (root < 0) numeric() else {
      q <- -(b + (if (b < 0) -1 else 1) * sqrt(root)) / 2
      c(q / a, c / q)
    }
    p[1L] + found[is.finite(found)]
  })
  c(of$breaks, unlist(roots))
}

# the numbers of the column for src/model/derived_columns.c
spline_table <- function(step) {
  of <- spline_pieces(step)
  c(of$breaks, as.vector(t(of$pieces)))
}
