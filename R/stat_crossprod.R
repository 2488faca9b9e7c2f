#' Totals of all monomials of degree 1 and 2
#'
#' The statistic for linear regression: totals, over the records, of every variable and of every product of two variables, including the response. Each variable
#' is first clamped to its bounds; with `rescale = TRUE` it is then mapped to \[-1, 1\] (Ju et al. 2022, section 5).
#'
#' @param formula `response ~ covariate + ...`, with at most 2,000 terms. Products and powers (`y ~ x * g + I(x^2)`, see below) and functions of variables
#'   (`log(y) ~ cut(x, c(0, 10, 20))`, see [noiseaware_terms]) are allowed. The intercept is implied. Or smooth curves, `y ~ s(x, k = 10) + z + g`, see below.
#' @param bounds A named list with an entry for each variable itself, even if the formula has functions of it. The entry is `c(lower, upper)` for a number; for
#'   a factor it is the character vector of all levels (two or more), `c(FALSE, TRUE)`, or a factor, whose levels are used. The response is a number or a
#'   factor. A factor with two levels is a binary response in [model_glm()]; its second level counts as 1. A factor with more levels is for the families
#'   `"cumulative"` and `"categorical"`. Bounds and levels are public: choose them from subject knowledge, never from the confidential data.
#' @param rescale Whether to map each clamped variable to \[-1, 1\] before
#'   multiplying. With `FALSE` products are in the variables' own units.
#' @param outside How to treat records outside the bounds. `"clamp"`: their values are moved to the nearer bound. `"none"`: there are no such records, because
#'   the bounds are the natural limits of the variable, as for a score, a number of children or a 0/1 variable. `"above"`, `"below"`: only records there are
#'   clamped; the other bound is a natural limit, such as 0 for incomes. Give one value for all variables, or values by variable as in `c(age = "none")`; the other
#'   variables are then clamped. See [declare_outside()] for which is right.
#' @param weights `NULL`, or a formula with the variable of the survey weights, such as `~ w`. Its entry in `bounds` gives the smallest and the largest weight,
#'   neither of them negative. See the section Survey weights.
#'
#' @details
#' **Components.** With columns `y, x1, ..., xp` (a factor gives a column for each level except the first), the components are the p + 1 columns, followed by
#' their products, response first: `y`, `x1`, ..., `y^2`, `y:x1`, ..., `x1^2`, `x1:x2`, ... The number of records is public and is not a component. Squares and
#' products of dummy columns of the same factor are redundant and are left out.
#'
#' **Sensitivity** (replace one record). With `rescale = TRUE` and m = p + 1
#' columns,
#' \deqn{\Delta_1 = \frac{m (m + 2)^2}{2 (m + 1)}, \qquad
#'       \Delta_2 = 2 \sqrt{\lfloor (m + 1)^2 / 4 \rfloor}.}{Delta_1 = m(m+2)^2/(2(m+1)), Delta_2 = 2*sqrt(floor((m+1)^2/4)).}
#' These values are attained if all variables are numbers. For two records v, w let a = (v + w) / 2 and
#' b = (v - w) / 2, so that |a_i| + |b_i| <= 1. Then v_i - w_i = 2 b_i,
#' v_i v_j - w_i w_j = 2 (a_i b_j + a_j b_i) and v_i^2 - w_i^2 = 4 a_i b_i.
#' Both norms only grow when |a_i| is raised to 1 - |b_i|. Put
#' B = sum |b_i| and A = m - B.
#'
#' *L1.* The norm is at most 2 B + 2 A B + 2 sum |a_i| |b_i|, and
#' sum |a_i| |b_i| = B - sum b_i^2 <= B - B^2 / m. So it is at most
#' (4 + 2 m) B - 2 (1 + 1/m) B^2, which is largest at B = m (m + 2) / (2 (m + 1)),
#' with the value above. The records v = (1, ..., 1), w = -(1, ..., 1) / (m + 1) attain it.
#'
#' *L2.* With alpha = |a|, beta = |b|, c_i = alpha_i beta_i the squared norm is
#' at most 4 sum(beta^2) (1 + sum(alpha^2)) + 4 (sum c)^2 + 8 sum(c^2). Let A', B', C' be the sums over all but one index i. As a function of beta_i = x, the
#' bound is four times x^2 (1 + A') + B' (1 - x)^2 + 4 x^2 (1 - x)^2 + 2 C' x (1 - x) plus a constant, where C' <= (A' + B') / 2. With M = max(1 + A', B') the
#' expression is at most M + 2 x (1 - x) (C' + 1/2 - M) <= M. The expression is largest if every beta_i is 0 or 1, where it equals 4 k (m + 1 - k) for k ones;
#' k = floor((m + 1) / 2) is best.
#'
#' *With factors* they are smaller, and again attained. A dummy column is 1 in modulus, so it has a_i = 0 if the two records differ in it and b_i = 0 if not. Let
#' K of the D dummy columns differ, k_f of the D_f of factor f, where k_f is at most 2. Let q be the number of numbers, and c the number of products of two dummy
#' columns that differ, \eqn{K (D - K) - \sum k_f (D_f - k_f)}{K(D-K)-sum(k_f(D_f-k_f))}. Earlier versions used the
#' formulas for numbers, with m columns, and their files are read with these. To describe such a release by [as_release()], give the scale of its noise. For a 0/1
#' response, as levels, and one covariate the norms are 5 and 2.83. The maxima below are over all k_f, over B in \[0, q\] (L1) and over t = 0, ..., q (L2).
#' \deqn{\Delta_1=\max 2K(1+q)+2c+2(2+q+D-2K)B-2(1+1/q)B^2,}{Delta_1=max 2K(1+q)+2c+2(2+q+D-2K)B-2(1+1/q)B^2,}
#' \deqn{\Delta_2=\max 2\sqrt{(K+t)(1+q-t)+t(D-K)+c}.}{Delta_2=max 2*sqrt((K+t)(1+q-t)+t(D-K)+c).}
#'
#' With `rescale = FALSE`, the L1 (L2) sensitivity is the sum (root of the sum of squares) of every component's range over the box of bounds, maximum minus
#' minimum. For example, for x in \[10, 11\] the square ranges over 21, not over 1. It is an upper bound with factors, or if 0 is inside a variable's bounds.
#'
#' **Sensitivity** (add or remove one record). A record with every number at the bound farther from 0 maximises all components at once. After rescaling, each is
#' 1 in modulus, and the norms are d and sqrt(d) for d components: without factors, d = m (m + 3) / 2. In the variables' own units, a record has a 1 in at most
#' one column of each factor.
#'
#' **Products and powers** in the formula, as in [model_lm()], are also columns. The components are then the distinct monomials of degree 1 and 2 in the
#' response, all variables and these columns, such as `x:gb`, `x^3` and `y:x^2`. Numbers are rescaled before they are multiplied; dummy columns stay 0 and 1. A
#' record has one level of each factor, so it affects only the components of its levels. The sensitivity to a replacement is the maximum over the levels of two
#' records. For two given records, it is the sum (root of the sum of squares) of the ranges of the components that both affect, and of the largest moduli of
#' those that only one affects. This is an upper bound, because not all components can be at their worst at once. The sensitivity to an added record is
#' attained. With more than 200 combinations of levels, the factors are bounded as if their columns were independent. An offset in the formula adds its
#' variable.
#'
#' @section Smooths: With `y ~ s(x, k = 10)` the totals are those of k cubic B-splines b_1, ..., b_k of x, with equal knots between its bounds. They are 4 k - 2
#'   numbers: the products b_j b_l with l = j, j + 1 and j + 2; then y b_j; and y^2. Products of splines three apart are at most 1/2304, and are left out.
#'   All others are 0. The variable x may be a function, as in `s(log(x))`. [model_lm()] with the same formula fits a smooth curve.
#'
#'   Several smooths, and numbers with them, can be added: `y ~ s(x1) + s(x2, k = 8) + z`. Each smooth has its products of splines. The splines of two smooths
#'   are multiplied with each other, as in `s(x1)1:s(x2)3`. Numbers are multiplied with the splines and with each other, as in `z:s(x1)2` and `z^2`. So is y,
#'   with the splines and the numbers. Numbers and y are rescaled to \[-1, 1\]. A formula has at most 20 terms, and at most 10,000 totals.
#'
#'   Factors can be added as well: `y ~ s(x) + g`. For each level, including the first, the records of the level are summed: their splines, as in `ga:s(x)1`,
#'   their numbers, and y. With several factors, the records in each pair of levels are counted. The totals of the first level cost no privacy, because two
#'   records are in at most two levels. They halve the noise in differences between levels. The response and the variables of smooths are numbers.
#'   Products and groups cannot be combined with a smooth.
#'
#'   `k` is from 6 to 50. Choose it for the sharpest bend that you expect; the sensitivity does not depend on it. A bend that k splines cannot follow leaves no
#'   trace in the totals, and intervals are then wrong without a warning.
#'
#'   The splines of a record are not negative and add up to 1, so the sensitivity does not depend on k. At a knot the sum of their squares and the sum of their
#'   fourth powers are largest, 1/2 and 43/216.
#'
#'   *An added record* moves the products by at most (1 + 1/2) / 2 in the L1 norm. It moves the y b_j by at most 1, and y^2 by at most 1. The sum is 2.75. The L2
#'   norm is at most 1.31. Both are attained.
#'
#'   *A replaced record*: the L1 norm is 3.75. It is attained by two records at knots without a common spline, with rescaled responses of 1 and 1/2. For the L2
#'   norm let y and -v be the responses, and q the sum of b_j c_j, with c the splines of the second record. The squared norm is at most
#'   \deqn{\frac{1}{4} + \frac{43}{216} - \frac{5}{4} q^2 + \frac{1 + v^2}{2} + 2 v q + (1 - v^2)^2.}{1/4+43/216-5q^2/4+(1+v^2)/2+2vq+(1-v^2)^2.}
#'   That is largest at v = 1 and q = 1/2, so 1.46 is a bound. Numerical maximisation gives 1.41.
#'
#'   *With p smooths and m numbers, y among them*, the sensitivity does not depend on the numbers of splines either. An added record moves the products of splines
#'   by at most P = 3 p / 4 + p (p - 1) / 2 in the L1 norm, and all others by at most p m + m (m + 1) / 2. For the L2 norm, the squares of these are at most
#'   S = p (1/4 + 43/216) / 2 + p (p - 1) / 8 and p m / 2 + m (m + 1) / 2. Both norms are attained. For a replaced record, write the numbers as a + b and a - b, as above,
#'   with |b_i| = t_i = 1 - |a_i| and T = sum t_i. The L1 norm is 2 P plus the maximum over t of
#'   \deqn{2 T (m - T) + 2 T - 2 \sum t_i^2 + 2 p \sum \max(t_i, 1 - t_i),}{2T(m-T)+2T-2*sum(t_i^2)+2p*sum(max(t_i,1-t_i)),}
#'   which is attained. For the L2 norm, let Q be the sum of the q of all smooths, and B the sum of t. Its square has the following bound.
#'   \deqn{2 S + p m + 4 B (m - B) + 2 Q B - Q^2 \left(1 + \frac{1}{4 p}\right).}{2S+pm+4B(m-B)+2QB-Q^2(1+1/(4p)).}
#'   It is maximised over Q up to p/2 and B up to m. B is a whole number if p is more than 1 or m is 1. The norm is then largest where each number is 1 in modulus
#'   in both records. Numerical maximisation is at most 8% below.
#'
#'   *With f factors*, a record has one level of each. So a factor is like a smooth whose splines are 1 at a knot, but without products of its own. P
#'   increases by f p + f (f - 1)/2, S by f p/2 + f (f - 1)/2. The numbers contribute (p + f) m and (p/2 + f) m in place of p m and p m/2. The maximum over
#'   t has p + f in place of p. These three are attained. For the L2 norm of a replaced record, let R be the number of factors with the same level in both
#'   records. The squared norm has the following bound.
#'   \deqn{2S+(p+2f)m+4B(m-B)+2(Q+R)(2B-m)-Q^2\left(1+\frac{1}{4p}\right)-R(2Q+R-1).}{2S+(p+2f)m+4B(m-B)+2(Q+R)(2B-m)-Q^2(1+1/(4p))-R(2Q+R-1).}
#'   It is maximised over Q up to p/2, and over whole numbers B up to m and R up to f. Numerical maximisation is at most 6% below. With one smooth and one factor, the
#'   norms are 7.5 and 2.54, whatever the number of levels.
#'
#' @section Survey weights: With `weights = ~ w`, the columns are the weight and its products with 1, the covariates, their squares and products, and the
#'   response times 1 and the covariates: `w`, `w*y`, `w*x`, `w*y*x`, `w*x^2`. The components are the totals of these columns, and of all their squares and
#'   products, on which the design variance depends. With `y ~ 1` the columns are `w` and `w*y`, for a weighted mean and total. Variables are clamped to
#'   their bounds and, with `rescale = TRUE`, mapped to \[-1, 1\] before they are multiplied by the weight; then the columns are mapped to \[-1, 1\].
#'
#'   Fit [model_mvnormal()] to the release; [regress()] of the fit gives the design-weighted means, totals and regressions. For a design with public strata,
#'   use [stat_by()] of this statistic, together with the sizes of the strata, `stat_counts(~ stratum, levels)`. The number of columns of p covariates is
#'   (p + 1)(p + 4) / 2, so use few covariates. Products and powers in the formula are not possible.
#'
#'   The sensitivity is the one above with m columns. It is attained by `y ~ 1`, and with covariates for an added record. With covariates it is an upper
#'   bound for a replaced record, because the columns depend on each other. For one covariate it is 20.42 (L1) and 6 (L2), and numerical
#'   maximisation gives 20.36 and 5.66.
#' @return A statistic: an object of class `stat_crossprod`, `stat_products` with products or powers, or `stat_smooth` with a smooth.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`,
#'   `noiseaware_error_levels`.
#' @references
#' Eilers, P. H. C. and Marx, B. D. (1996). Flexible smoothing with B-splines and
#' penalties. *Statistical Science* 11, 89-121. \doi{10.1214/ss/1038425655}
#'
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data. \doi{10.48550/arXiv.2206.00710}
#' @family statistics of numbers
#' @examples
#' st <- stat_crossprod(bwt ~ age + lwt,
#'   bounds = list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)))
#' st
#' sensitivity(st, "L1")
#'
#' # a smooth curve
#' stat_crossprod(bwt ~ s(age, k = 8), list(bwt = c(500, 5500), age = c(14, 50)))
#'
#' # two curves that add up, a slope and a factor
#' stat_crossprod(y ~ s(x1) + s(x2, k = 8) + z + g,
#'   list(y = c(0, 10), x1 = c(0, 1), x2 = c(0, 1), z = c(-1, 1), g = c("a", "b")))
#'
#' # survey weights
#' stat_crossprod(income ~ 1, list(income = c(0, 1e5), w = c(20, 400)), weights = ~ w)
#' @concept survey weights
#' @concept splines
#' @export
stat_crossprod <- function(formula, bounds, rescale = TRUE, outside = c("clamp", "none", "above", "below"), weights = NULL) {
  check_given(hints = bounds_hint)
  check_flag(rescale, "rescale")
  smooth <- read_smooth(formula)
  if (!is.null(smooth)) {
    if (!is.null(weights)) stop_argument("weights", "NULL with a smooth in the formula", describe(weights))
    if (!rescale) stop_argument("rescale", "TRUE with a smooth in the formula", "FALSE")
    return(new_smooth_statistic(smooth, bounds, outside, environment()))
  }
  formula <- functions_as_names(formula)
  if (!is.null(weights)) {
    weight <- weight_range(weights, formula, bounds, environment())
    plain <- stat_crossprod(formula, bounds[setdiff(names(bounds), weight$variable)], rescale, outside)
    return(weighted_crossprod(plain, weight, environment()))
  }
  if (has_products(formula)) return(new_products(formula, bounds, rescale, outside, environment()))
  variables <- formula_variables(formula)
  bounds <- check_bounds(bounds, variables)
  outside <- check_outside(outside, number_variables(variables, bounds))
  columns <- expand_columns(variables, bounds)
  pairs <- monomial_pairs(columns)
  components <- c(columns$name, pairs$name)
  check_names_differ(components, columns)
  levels <- bounds[vapply(bounds, is.character, TRUE)]
  statistic <- new_statistic("crossprod", "totals", columns = columns, levels = levels, components = components,
                             formula = formula_text(formula), outside = outside, rescale = rescale, pairs = pairs,
                             class = "stat_crossprod")
  if (rescale && length(levels)) statistic$sensitivity <- "levels"
  if (!all(is.finite(unlist(statistic_fields(statistic)))) || !is.finite(sensitivity(statistic, "L1")) ||
        !is.finite(sensitivity(statistic, "L2"))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled and multiplied, but the results overflow.",
                             i = "Change the units of the data."))
  }
  with_functions(statistic, attr(bounds, "functions"))
}

#' @export
statistic_fields.stat_crossprod <- function(statistic) {
  lower <- statistic$columns$lower
  upper <- statistic$columns$upper
  pairs <- list(first = statistic$pairs$first - 1, second = statistic$pairs$second - 1)
  if (statistic$rescale) {
    c(list(scale = 2 / (upper - lower), shift = -(upper + lower) / (upper - lower),
           lower = rep(-1, length(lower)), upper = rep(1, length(upper))), pairs)
  } else {
    c(list(scale = rep(1, length(lower)), shift = numeric(length(lower)), lower = lower, upper = upper), pairs)
  }
}

#' @export
variable_kinds.stat_crossprod <- function(x) "number"

#' @export
describe_statistic.stat_crossprod <- function(statistic) {
  paste0("cross-products of ", called_formula(statistic$formula),
         if (statistic$rescale) ", rescaled to [-1, 1]" else ", in the variables' units", outside_words(statistic))
}

#' @export
single_components.stat_crossprod <- function(statistic) which(!statistic$columns$variable %in% names(statistic$levels))

#' @export
component_degrees.stat_crossprod <- function(statistic) rep(1:2, c(nrow(statistic$columns), nrow(statistic$pairs)))

#' @export
component_limits.stat_crossprod <- function(statistic) {
  lower <- statistic$columns$lower
  upper <- statistic$columns$upper
  if (statistic$rescale) {
    lower <- rep(-1, length(lower))
    upper <- rep(1, length(upper))
  }
  i <- statistic$pairs$first
  j <- statistic$pairs$second
  corners <- cbind(lower[i] * lower[j], lower[i] * upper[j], upper[i] * lower[j], upper[i] * upper[j])
  high <- apply(corners, 1L, max)
  low <- apply(corners, 1L, min)
  square <- i == j
  low[square] <- ifelse(lower[i] <= 0 & upper[i] >= 0, 0, pmin(lower[i]^2, upper[i]^2))[square]
  cbind(c(lower, low), c(upper, high))
}

#' @export
sensitivity.stat_crossprod <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  if (!replaces(neighbours)) return(length_of(farthest_products(statistic), norm))
  ranges <- component_ranges(statistic)
  by_range <- if (norm == "L1") sum(ranges) else sqrt(sum(ranges^2))
  if (!statistic$rescale) return(by_range)
  if (is.null(statistic$sensitivity)) return(min(distance_of_all(nrow(statistic$columns), norm), by_range))
  distance_of_all(sum(is.na(statistic$columns$level)), norm, lengths(statistic$levels) - 1)
}

# What the farthest record contributes, in modulus: every number at its farther bound. Rescaled, a
# dummy column is also 1 in modulus; in its own units it is 1 in a record of its level only, so
# that a factor counts as one column, whose square is left out.
farthest_products <- function(statistic) {
  columns <- statistic$columns
  if (statistic$rescale) return(rep(1, length(statistic$components)))
  one <- !duplicated(columns$variable)
  far <- pmax(abs(columns$lower), abs(columns$upper))
  pairs <- statistic$pairs[one[statistic$pairs$first] & one[statistic$pairs$second], ]
  c(far[one], far[pairs$first] * far[pairs$second])
}

# Crossproduct of (1, columns) in the variables' own units that the totals
# represent, n records.
crossprod_moments <- function(statistic, value, n) {
  q <- nrow(statistic$columns)
  moments <- matrix(NA_real_, q + 1L, q + 1L)
  moments[1L, ] <- c(n, value[seq_len(q)])
  moments[, 1L] <- moments[1L, ]
  product <- value[-seq_len(q)]
  moments[cbind(statistic$pairs$first + 1L, statistic$pairs$second + 1L)] <- product
  fields <- statistic_fields(statistic)
  # what the 0/1 coding of a factor implies, on the released scale
  for (i in seq_len(q)) {
    for (j in i:q) {
      if (!is.na(moments[i + 1L, j + 1L])) next
      a <- (value[i] - fields$shift[i] * n) / fields$scale[i]
      b <- (value[j] - fields$shift[j] * n) / fields$scale[j]
      raw <- if (i == j) a else 0
      moments[i + 1L, j + 1L] <- fields$scale[i] * fields$scale[j] * raw +
        fields$scale[i] * fields$shift[j] * a + fields$scale[j] * fields$shift[i] * b +
        fields$shift[i] * fields$shift[j] * n
    }
  }
  moments[lower.tri(moments)] <- t(moments)[lower.tri(moments)]
  # v = scale * x + shift for each column, so (1, v) = T (1, x); T's inverse is written down, because
  # solve() takes a T of large bounds for singular
  inverse <- diag(c(1, 1 / fields$scale))
  inverse[-1L, 1L] <- -fields$shift / fields$scale
  moments <- inverse %*% moments %*% t(inverse)
  dimnames(moments) <- rep(list(c("(Intercept)", statistic$columns$name)), 2L)
  moments
}

#' @export
statistic_json.stat_crossprod <- function(statistic) {
  bounds <- exact_bounds(statistic$columns, statistic$levels)
  c(list(name = "crossprod", formula = statistic$formula, bounds = bounds, rescale = statistic$rescale), statistic["sensitivity"[!is.null(statistic$sensitivity)]],
    outside_json(statistic))
}

stat_crossprod_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", "rescale", intersect(c("outside", "weights", "sensitivity"), names(x))), "statistic", refuse)
  outside <- outside_from_json(x)
  bounds <- json_bounds(x$bounds, refuse)
  if ("weights" %in% names(x)) return(weighted_from_json(x, bounds, outside, refuse, claim))
  columns <- json_columns(bounds)
  products <- has_products(json_formula(x$formula, refuse))
  # without products: those of different variables, each column, and the squares of numbers
  claim(if (products) sum(columns) else (sum(columns)^2 - sum(columns^2)) / 2 + sum(columns) + sum(!vapply(bounds, is.character, TRUE)))
  statistic <- stat_crossprod(json_formula(x$formula, refuse), bounds, rescale = x$rescale, outside = outside)
  if (!is.null(x$sensitivity) && !identical(x$sensitivity, statistic$sensitivity)) {
    refuse("The statistic's sensitivity must be \"levels\", and only for rescaled variables with levels.")
  }
  # an earlier version scaled the noise as if dummies were independent
  statistic$sensitivity <- x$sensitivity
  statistic
}

weighted_from_json <- function(x, bounds, outside, refuse, claim) {
  if (!checkmate::test_string(x$weights, min.chars = 1L)) refuse("The statistic's weights must be the name of a variable.")
  # the products of two of the columns
  columns <- sum(json_columns(bounds[setdiff(names(bounds), x$weights)]))
  claim((columns + 1)^2 * (columns + 2)^2 / 8)
  stat_crossprod(json_formula(x$formula, refuse), bounds, rescale = x$rescale, outside = outside,
                 weights = stats::as.formula(call("~", as.name(x$weights)), baseenv()))
}

#' @export
statistic_json.stat_products <- function(statistic) statistic_json.stat_crossprod(statistic)
