# How far two records are apart at most in monomials of variables that range from -1 to 1.
#
# Monomials of degree 1 and 2. Of two records v and w let a = (v + w) / 2 and b = (v - w) / 2, so that |a_i| + |b_i| <= 1. Then
#   v_i - w_i = 2 b_i,  v_i v_j - w_i w_j = 2 (a_i b_j + a_j b_i),  v_i^2 - w_i^2 = 4 a_i b_i.
# All grow in modulus with |a_i|, and reach their largest together where a_i = 1 - b_i >= 0, b_i >= 0. So with x = b in [0, 1]^q, where v is 1
# and w is 1 - 2 x, they are all that need be looked at:
#   2 x_i,  2 (x_i + x_j - 2 x_i x_j),  4 x_i (1 - x_i).
# L1: their sum is a polynomial of degree 2. It is largest at a corner of some face of the cube, or inside a face where its gradient
# is 0: all 3^q faces are tried. L2: the sum of squares. In each x_i the square for a product is convex, and the sum for a variable and its square is at most
# linear between its ends, 4 x^2 + 16 x^2 (1 - x)^2 <= 4 x, as (2 x - 1)^2 >= 0: it is largest at a corner of the cube. A square without its
# variable adds at most 1, which makes that an upper bound.
#
# Powers of one variable. Let |v| >= |w|; with the same sign no power differs by more than 1, and with v >= -w >= 0 all
# differences grow with v. So v = 1 and w = -t: 1 + t^k for odd k, 1 - t^k for even ones, a function of t in [0, 1].
#
# With many variables what all monomials of degree 1 and 2 make is a bound. Inf where nothing applies: then the sum of ranges is.

most_faces <- 7L

rescaled_distance <- function(powers, norm) {
  powers <- powers[, colSums(powers) > 0, drop = FALSE]
  if (ncol(powers) == 1L) return(distance_of_powers(powers[, 1L], norm))
  if (any(rowSums(powers) > 2)) return(Inf)
  if (ncol(powers) > (if (norm == "L1") most_faces else most_corners)) return(distance_of_all(ncol(powers), norm))
  if (norm == "L1") distance_on_faces(powers) else distance_at_corners(powers)
}

# Of all monomials of degree 1 and 2 in q numbers and the dummies of factors (`dummies` of each), see stat_crossprod(). A dummy is -1 or 1, so its a or b is
# 0. Let K of the D dummies differ, k_f <= 2 of the D_f of factor f, and T = sum x_i of the numbers. L1: numbers have the part
# 2 K q + 2 (2 + q + D - 2 K) T - 2 T^2 - 2 sum x_i^2, where sum x_i^2 >= T^2 / q; dummies have 2 K + 2 (K (D - K) - sum k_f (D_f - k_f)).
# L2: corners are best as in stat_crossprod(), with t numbers at 1. Both are attained, so they are exact.
distance_of_all <- function(q, norm, dummies = numeric()) {
  all <- sum(dummies)
  inside <- pairs_inside(dummies)
  differ <- seq_along(inside) - 1
  apart <- differ * (all - differ) - inside
  if (norm == "L2") {
    corners <- vapply(0:q, function(t) max((differ + t) * (1 + q - t) + t * (all - differ) + apart), 0)
    return(2 * sqrt(max(corners)))
  }
  slope <- 2 + q + all - 2 * differ
  sum <- pmin(pmax(q * slope / (2 * (q + 1)), 0), q)
  numbers <- if (q == 0) 0 else ifelse(sum < q & sum > 0, q * slope^2 / (2 * (q + 1)), 2 * slope * sum - 2 * (1 + 1 / q) * sum^2)
  max(2 * differ * (1 + q) + 2 * apart + numbers)
}

# The least sum of k_f (D_f - k_f) where K = 0, 1, ... dummies differ: two records differ in at most two dummies of a factor.
pairs_inside <- function(dummies) {
  least <- 0
  for (d in dummies) {
    most <- min(d, 2)
    least <- do.call(pmin, lapply(0:most, function(k) c(rep(Inf, k), least + k * (d - k), rep(Inf, most - k))))
  }
  least
}

distance_of_powers <- function(power, norm) {
  apart <- function(t) {
    each <- 1 + outer(t, power, `^`) * rep(ifelse(power %% 2 == 1, 1, -1), each = length(t))
    if (norm == "L1") rowSums(each) else sqrt(rowSums(each^2))
  }
  grid <- seq(0, 1, length.out = 1001L)
  value <- apart(grid)
  tops <- which(diff(sign(diff(value))) < 0) + 1L
  inner <- vapply(tops, function(k) stats::optimize(apart, grid[k + c(-1L, 1L)], maximum = TRUE, tol = 1e-10)$objective, 0)
  max(value, inner)
}

# sum of constant + linear x + x' quadratic x / 2 over the terms, on each face
distance_on_faces <- function(powers) {
  q <- ncol(powers)
  linear <- numeric(q)
  quadratic <- matrix(0, q, q)
  for (j in seq_len(nrow(powers))) {
    at <- rep(seq_len(q), powers[j, ])
    linear[at[1L]] <- linear[at[1L]] + if (length(at) == 2L && at[1L] == at[2L]) 4 else 2
    if (length(at) == 1L) next
    if (at[1L] != at[2L]) linear[at[2L]] <- linear[at[2L]] + 2
    # of x_i^2 twice its coefficient
    quadratic[at[1L], at[2L]] <- quadratic[at[1L], at[2L]] - if (at[1L] == at[2L]) 8 else 4
    if (at[1L] != at[2L]) quadratic[at[2L], at[1L]] <- quadratic[at[2L], at[1L]] - 4
  }
  faces <- as.matrix(expand.grid(rep(list(c(0, 1, NA)), q)))
  max(apply(faces, 1L, function(x) {
    open <- is.na(x)
    if (any(open)) {
      slope <- linear[open] + quadratic[open, !open, drop = FALSE] %*% x[!open]
      inside <- tryCatch(solve(quadratic[open, open], -slope), error = function(e) NULL) # singular: as large on its edge
      if (is.null(inside) || any(inside < 0 | inside > 1)) return(0)
      x[open] <- inside
    }
    sum(linear * x) + drop(x %*% quadratic %*% x) / 2
  }))
}

distance_at_corners <- function(powers) {
  degree <- rowSums(powers)
  square <- apply(powers, 1L, max) == 2
  x <- t(as.matrix(expand.grid(rep(list(0:1), ncol(powers)))))
  single <- powers[degree == 1, , drop = FALSE] %*% x
  product <- powers[degree == 2 & !square, , drop = FALSE] %*% x # 1 where one of the two is
  lone <- setdiff(max.col(powers[square, , drop = FALSE]), max.col(powers[degree == 1, , drop = FALSE]))
  sqrt(max(4 * colSums(single) + 4 * colSums(product == 1)) + length(lone))
}
