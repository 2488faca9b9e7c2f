# Noise whose density is a table: points, and the log density at each. It has the kernel "published", as numbers that were hidden or rounded have: C
# evaluates a log density of the total, see src/contract/published.c and src/contract/tabulated.c.

#' Noise with a density given at points
#'
#' Noise that is independent between components, with any distribution: truncated Laplace, Student-t, uniform, triangular or staircase noise, mixtures, or
#' a density that is known only as numbers. It is evaluated in C, so that it is about as fast as built-in noise; [mech_custom()] calls an R function
#' instead.
#'
#' @param density The density of the noise, which need not integrate to 1: a vectorised function of one argument, or numbers, the densities at the points `grid`.
#' @param grid For numbers: increasing points. The density jumps at a point that is given twice. For a function it is optional: points at which the
#'   density may jump or have a kink.
#' @param ... Must be empty: the other arguments must be named.
#' @param lower,upper Limits of the noise. For numbers: the ends of `grid`, or infinite (the default).
#' @param scale The noise is `scale` times a number with this density; one value, or one for each component, either in the statistic's order or named.
#' @param product `NULL`, or the published numbers, if these are not sums but products: each is the exact number times a positive random factor, and `density`,
#'   a function, is the density of the factor. `lower` and `upper` are then the limits of the factor. `scale` must not be given.
#'
#' @details
#' **Between points** the log density is linear; where the density is 0 at one of two neighbouring points, the density itself is linear. So Laplace,
#' truncated Laplace, uniform, triangular and staircase noise are exact with a few points, see the examples. At a jump the density is the larger of both values.
#'
#' **Beyond the points** the density is 0 if `lower` or `upper` is the end of `grid` or if the density there is 0. Otherwise it falls exponentially, as it does
#' between the last two points.
#'
#' **A function** is evaluated when the mechanism is made, and is not kept. Points are added until the log density is within 1e-5 of the function. Pieces with
#' less than 1e-14 of the probability are not divided. Tails below 1e-15 of the greatest density fall exponentially. The error of 1e-5 changes the log
#' likelihood of d published numbers by less than d times 1e-5. A peak narrower than 1/1,000 of the support may be missed: then give points next to it as
#' `grid`. Points are sought around 0, `grid` and finite ends.
#'
#' **Random factors** (`product`; called noise infusion by statistical offices). Let z be the published number, s the exact one, and f the density of the
#' factor. The likelihood of s is f(z / s) / s. As a function of u = (z - s) / z, it is f(m) m at m = 1 / (1 - u), up to a constant. So it is the likelihood of
#' added noise z u with this density of u, which the mechanism describes. It is exact for the posterior; [log_evidence()] differs by a constant that does not
#' depend on the model, and simulated releases add noise of this size. An exact 0 stays 0: describe it with [mech_exact()].
#'
#' **Discrete noise** can be declared by a density that equals the probabilities at integers, for statistics with whole numbers: only these values
#' are used if the scale is 1. However, [simulate_release()] draws continuous noise.
#'
#' **Noise of bounded support.** No draw has density 0. If chains find no records for which the published numbers are possible, sampling stops with an error;
#' sites and groups that are pooled may need `init`. If the noise has several modes with nothing in between, chains must cross the gap. Independent draws of
#' counts and moves of tables cross it, and so do walks of parameters that take all records along. Several totals, squares and products of normal variables
#' cross it together. Elsewhere, with gaps in several numbers about the same records, chains may stay on one side: look at R-hat, and use more chains.
#'
#' **Where it works.** Method `"augment"` always supports it, and `"collapse"` for counts and for totals of Poisson and exponential records; both are exact. It
#' applies to totals and counts, not to [stat_records()], for which there is [mech_custom()].
#'
#' [release()] does not accept it: noise that protects records must come from an exact sampler, and noise of bounded support gives no pure differential privacy.
#' [noise_sd()] is the standard deviation of the table; if it may be infinite because of heavy tails of a function, it is half the width of the
#' central 68.3 per cent.
#'
#' @return A mechanism: an object of class `mech_tabulated`.
#' @section Errors: `noiseaware_error_mechanism`: the density is negative, not finite or 0 everywhere, the points do not increase, the density does not fall
#'   beyond the points, or the function varies too fast to be tabulated. `noiseaware_error_custom`: the function failed, or does not return one number for each
#'   point. `noiseaware_error_impossible` from [sample_posterior()]: no records were found for which the published numbers are possible.
#' @references
#' Geng, Q. and Viswanath, P. (2014). The optimal mechanism in differential privacy. *IEEE International Symposium on Information Theory*, 2371-2375.
#' \doi{10.1109/ISIT.2014.6875258}
#' @family mechanisms
#' @examples
#' # Laplace noise of scale 2, truncated at 8, and Student-t noise of scale 3
#' mech_tabulated(function(e) exp(-abs(e) / 2), lower = -8, upper = 8)
#' mech_tabulated(function(e) dt(e, df = 4), scale = 3)
#'
#' # with a few numbers, exactly: Laplace, truncated Laplace, uniform, triangular
#' mech_tabulated(exp(-c(1, 0, 1)), c(-1, 0, 1), scale = 2)
#' mech_tabulated(exp(-c(4, 0, 4)), c(-4, 0, 4), lower = -4, upper = 4, scale = 2)
#' mech_tabulated(c(1, 1), c(-5, 5), lower = -5, upper = 5)
#' mech_tabulated(c(0, 1, 0), c(-5, 0, 5))
#'
#' # staircase noise of Geng and Viswanath for sensitivity 1 and epsilon 1
#' staircase <- mech_tabulated(function(e) {
#'   step <- floor(abs(e))
#'   exp(-1 * (step + (abs(e) - step >= 1 / (1 + exp(1 / 2)))))
#' }, lower = -40, upper = 40)
#'
#' rel <- as_release(c(time = 71), stat_sums(~ time, bounds = list(time = c(0, 10))), staircase,
#'   n = 40)
#' sample_posterior(rel, model_exponential(), chains = 2, iter = 400, seed = 1)
#'
#' # a count times a factor that differs from 1 by 7 to 15 per cent
#' infused <- mech_tabulated(function(m) as.numeric(abs(m - 1) >= 0.07), lower = 0.85,
#'   upper = 1.15, product = c("x=yes" = 131))
#' as_release(c("x=yes" = 131), stat_counts(~ x, list(x = c("no", "yes"))), infused, n = 400)
#' @export
mech_tabulated <- function(density, grid = NULL, ..., lower = -Inf, upper = Inf, scale = 1, product = NULL) {
  check_all_named(...)
  check_given("mechanism")
  if (!is.null(product)) {
    if (!missing(scale)) stop_classed("mechanism", "{.arg scale} must not be given with {.arg product}, because the noise follows from the published numbers.")
    factor <- density_of_share(density, grid, lower, upper)
    return(mech_tabulated(factor$density, factor$grid, lower = factor$lower, upper = factor$upper, scale = check_scale(product, "product")))
  }
  lower <- check_end(lower, "lower", -Inf)
  upper <- check_end(upper, "upper", Inf)
  if (lower >= upper) stop_argument("upper", paste0("larger than `lower` (", format_number(lower), ")"), describe(upper), "mechanism")
  table <- if (is.function(density)) tabulate_density(density, grid, lower, upper) else list(density = density, grid = grid)
  table <- check_table(table$density, table$grid, lower, upper)
  mechanism <- new_mechanism("tabulated", "published", density = table$density, grid = table$grid, lower = if (is.finite(lower)) lower,
                             upper = if (is.finite(upper)) upper, scale = check_scale(scale, "scale"), class = c("mech_tabulated", "mech_published"))
  if (!isTRUE(noise_table(mechanism)$sd < Inf)) {
    stop_classed("mechanism", c("The density must fall beyond the points of {.arg grid}, so that it can be integrated.",
                                i = "Give {.arg lower} and {.arg upper} if the noise does not go beyond them."))
  }
  mechanism
}

# What a factor m with that density says of the share u = 1 - 1 / m of a published number.
density_of_share <- function(density, grid, lower, upper, call = caller_env()) {
  if (!is.function(density)) stop_argument("density", "a function with `product`", describe(density), "mechanism", call)
  force(density)
  lower <- check_end(lower, "lower", -Inf, call)
  share <- function(m) ifelse(m <= 0, -Inf, 1 - 1 / m)
  grid <- if (!is.null(grid)) check_points(grid, call)
  of_share <- function(u) {
    factor <- 1 / pmax(1 - u, 1e-15)
    value <- density(factor)
    if (length(value) == length(u)) value * factor else value # refused
  }
  list(density = of_share, grid = if (!is.null(grid)) share(grid[grid > 0]), lower = share(lower), upper = share(check_end(upper, "upper", Inf, call)))
}

check_end <- function(x, name, infinite, call = caller_env()) {
  if (identical(x, infinite)) x else check_number(x, name, paste(infinite, "or a finite number"), kind = "mechanism", call = call)
}

check_points <- function(grid, call) {
  bad <- if (is.numeric(grid) && !is.matrix(grid)) !is.finite(grid) | c(FALSE, diff(grid) < 0)
  if (is.null(bad) || any(bad)) stop_argument("grid", "finite numbers that increase", if (any(bad)) describe_bad(grid, bad) else describe(grid), "mechanism", call)
  as.double(grid)
}

check_table <- function(density, grid, lower, upper, call = caller_env()) {
  if (!is.numeric(density) || length(density) < 2L) stop_argument("density", "a function, or at least two numbers", describe(density), "mechanism", call)
  bad <- !is.finite(density) | density < 0
  if (any(bad)) stop_argument("density", "finite numbers from 0", describe_bad(density, bad), "mechanism", call)
  grid <- check_points(grid, call)
  if (length(grid) != length(density))
    stop_argument("grid", sprintf("of the length of `density` (%d)", length(density)), paste("of length", length(grid)), "mechanism", call)
  positive <- which(density > 0)
  if (length(positive) == 0L) stop_argument("density", "positive somewhere", "0 everywhere", "mechanism", call)
  ends <- range(grid)
  if (density[1L] > 0 && !lower %in% c(-Inf, ends[1L])) stop_argument("lower", "-Inf or the first point of `grid`", describe(lower), "mechanism", call)
  if (density[length(density)] > 0 && !upper %in% c(Inf, ends[2L])) stop_argument("upper", "Inf or the last point of `grid`", describe(upper), "mechanism", call)
  kept <- max(1L, positive[1L] - 1L):min(length(density), positive[length(positive)] + 1L)
  list(density = as.double(density[kept]), grid = grid[kept])
}

# ---- from a function to a table --------------------------------------------------------------------------

# errors of the log density, shares of the probability and of the greatest density that do not matter, points
close_enough <- list(error = 1e-5, probability = 1e-14, density = 1e-15, most = 2e5)

tabulate_density <- function(f, grid, lower, upper, call = caller_env()) {
  evaluate <- function(x) {
    value <- call_user(f, "density", x)
    ok <- is.numeric(value) && length(value) == length(x)
    if (!ok || !all(is.finite(value) & value >= 0)) {
      stop_custom("density", paste("one finite number from 0 for each of", length(x), "values of the noise"),
                  if (ok) value[!is.finite(value) | value < 0][1L] else value, call)
    }
    as.double(value)
  }
  x <- first_points(if (!is.null(grid)) check_points(grid, call), lower, upper)
  y <- evaluate(x)
  share <- c(0.25, 0.5, 0.75)
  repeat {
    k <- seq_len(length(x) - 1L)
    width <- diff(x)
    total <- sum(width * (y[k] + y[-1L]) / 2)
    if (total == 0) stop_classed("mechanism", c("{.arg density} is 0 wherever it was evaluated.", i = "Give points at which it is positive as {.arg grid}."), call = call)
    between <- outer(width, share) + x[k]
    inside <- matrix(evaluate(as.vector(between)), length(k))
    error <- abs(log(inside) - log_between(log(y[k]), log(y[-1L]), rep(share, each = length(k))))
    error[is.nan(error)] <- 0 # no density on either side, and none between
    most <- pmax(y[k], y[-1L], inside[, 1L], inside[, 2L], inside[, 3L])
    split <- which(rowSums(error > close_enough$error) > 0 & most * width > close_enough$probability * total & between[, 2L] > x[k] & between[, 2L] < x[-1L])
    if (length(split) == 0L) break
    order <- order(c(x, between[split, 2L]))
    x <- c(x, between[split, 2L])[order]
    y <- c(y, inside[split, 2L])[order]
    if (length(x) > close_enough$most) {
      stop_classed("mechanism", c("{.arg density} varies too fast to be tabulated with {format_size(close_enough$most)} points.",
                                  i = "Give numbers with {.arg grid}."), call = call)
    }
  }
  kept <- range(which(y > close_enough$density * max(y)))
  if ((is.infinite(lower) && kept[1L] == 1L) || (is.infinite(upper) && kept[2L] == length(x))) {
    stop_classed("mechanism", c("{.arg density} must fall to 0 where the noise has no bound.",
                                i = "Give {.arg lower} and {.arg upper} if the noise does not go beyond them."),
                 call = call)
  }
  # an end where it is 0 belongs to it
  first <- if (is.finite(lower)) 1L else max(1L, kept[1L] - (y[max(1L, kept[1L] - 1L)] == 0))
  last <- if (is.finite(upper)) length(x) else min(length(x), kept[2L] + (y[min(length(x), kept[2L] + 1L)] == 0))
  list(density = y[first:last], grid = x[first:last])
}

# where a function is evaluated first: at equal distances, or at growing ones from 0, the ends and points that were given
first_points <- function(grid, lower, upper) {
  ends <- c(lower, upper)[is.finite(c(lower, upper))]
  about <- c(0, grid, ends)
  distance <- 10^seq(-12, 12, by = 0.125)
  x <- c(about, outer(about, c(-distance, distance), "+"), if (length(ends) == 2L) seq(lower, upper, length.out = 1025L))
  sort(unique(x[x >= lower & x <= upper]))
}

# the log density between two points, at a share of the way
log_between <- function(left, right, share) {
  value <- left + share * (right - left)
  from <- left == -Inf & right > -Inf
  to <- right == -Inf & left > -Inf
  value[from] <- (right + log(share))[from]
  value[to] <- (left + log1p(-share))[to]
  replace(value, left == -Inf & right == -Inf, -Inf)
}

# ---- what the table says ---------------------------------------------------------------------------------

# Points and log densities of noise of scale 1, slopes beyond them (-1: no noise there), `probability` of what is below, of each piece, and of what is above;
# the sd, and half the width of the central 68.3 per cent, `spread`.
noise_table <- function(mechanism) {
  shape <- mechanism[c("grid", "density", "lower", "upper")]
  # the last one is kept: simulations ask for it many times a replicate
  if (!identical(session$noise_table$shape, shape)) session$noise_table <- list(shape = shape, table = noise_table_of(shape))
  session$noise_table$table
}

noise_table_of <- function(mechanism) {
  x <- mechanism$grid
  left <- log(mechanism$density[-length(x)])
  right <- log(mechanism$density[-1L])
  last <- length(left)
  width <- diff(x)
  tail <- function(end, open, rise) if (!open || end == -Inf) -1 else if (is.finite(rise) && rise > 0) rise else 0
  slope <- c(tail(left[1L], is.null(mechanism$lower), (right[1L] - left[1L]) / width[1L]),
             tail(right[last], is.null(mechanism$upper), (left[last] - right[last]) / width[last]))
  outer <- ifelse(slope < 0, 0, exp(c(left[1L], right[last])) / slope)
  rise <- right - left
  linear <- is.infinite(rise)
  none <- is.nan(rise)
  d <- ifelse(linear | none, 0, rise)
  flat <- abs(d) < 1e-3
  mean <- ifelse(linear, ifelse(rise > 0, 2, 1) / 3, ifelse(flat, 0.5 + d / 12, 1 / -expm1(-d) - 1 / d)) # of a piece, shares of its width
  variance <- ifelse(linear, 1 / 18, ifelse(flat, 1 / 12 - d^2 / 240, 1 / d^2 - 1 / (4 * sinh(pmin(abs(d), 700) / 2)^2)))
  mass <- width * exp(pmax(left, right)) * ifelse(none, 0, ifelse(linear, 0.5, ifelse(flat, 1 - abs(d) / 2 + d^2 / 6, -expm1(-abs(d)) / abs(d))))
  probability <- c(outer[1L], mass, outer[2L])
  total <- sum(probability)
  table <- list(x = x, value = c(left, right[last]) - log(total), left = left - log(total), right = right - log(total), slope = slope, probability = probability / total)
  if (!is.finite(total)) return(c(table, sd = Inf, spread = Inf))
  tails <- 1 / ifelse(slope > 0, slope, Inf)
  mean <- c(x[1L] - tails[1L], x[-length(x)] + width * mean, x[length(x)] + tails[2L])
  second <- table$probability * (c(tails[1L], width * sqrt(variance), tails[2L])^2 + (mean - sum(table$probability * mean))^2)
  spread <- diff(table_quantile(table, stats::pnorm(c(-1, 1)))) / 2
  # tails of a function that were cut where it is next to nothing
  cut <- any(slope > 0 & c(left[1L], right[last]) < max(left, right) + log(1e-12))
  heavy <- cut && second[1L] + second[length(second)] > 0.05 * sum(second)
  c(table, sd = if (heavy) spread else sqrt(sum(second)), spread = spread)
}

table_quantile <- function(table, u) {
  ends <- cumsum(table$probability)
  count <- length(ends)
  k <- pmin(findInterval(u, c(0, ends[-count]), rightmost.closed = TRUE), count)
  # of the piece, from its nearer side in the tails
  share <- pmin(pmax((u - c(0, ends)[k]) / table$probability[k], 0), 1)
  above <- rev(cumsum(rev(table$probability)))
  share_left <- pmin(pmax(((1 - u) - c(above, 0)[k + 1L]) / table$probability[k], 0), 1)
  piece <- pmin(pmax(k - 1L, 1L), count - 2L)
  left <- table$left[piece]
  right <- table$right[piece]
  rise <- right - left
  at <- ifelse(left == -Inf, sqrt(share), ifelse(right == -Inf, 1 - sqrt(share_left), ifelse(abs(rise) < 1e-6, share + share * share_left * rise / 2,
               ifelse(rise > 0, 1 + log1p(share_left * expm1(-rise)) / rise, log1p(share * expm1(rise)) / rise))))
  at <- table$x[piece] + at * diff(table$x)[piece]
  ifelse(k == 1L, table$x[1L] + log(share) / table$slope[1L], ifelse(k == count, table$x[count - 1L] - log(share_left) / table$slope[2L], at))
}

# Intervals in which the density is not small, a row each: several where it has a hole, or a valley that is nearly one.
noise_pieces <- function(mechanism) {
  table <- noise_table(mechanism)
  high <- rle(table$value > max(table$value) - 6)
  last <- cumsum(high$lengths)
  first <- last - high$lengths + 1L
  # a point by itself is as wide as the way to its neighbours
  at <- function(k) table$x[pmin(pmax(k, 1L), length(table$x))]
  from <- ifelse(first == last, at(first - 1L), at(first))
  data.frame(from = from, to = ifelse(first == last, at(last + 1L), at(last)))[high$values, ]
}

#' @export
noise_points.mech_tabulated <- function(mechanism) {
  table <- noise_table(mechanism)
  c(length(table$x), table$slope * ifelse(table$slope > 0, table$spread, 1), table$x / table$spread, ifelse(table$value == -Inf, -1e9, table$value + log(table$spread)))
}

# ---- what a mechanism must answer ------------------------------------------------------------------------

# The scale of a release is the spread of the noise: methods treat it as the size of the noise.
#' @export
mechanism_scale.mech_tabulated <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  expand_scale(mechanism$scale * noise_table(mechanism)$spread, statistic, "scale", call)
}

#' @export
mechanism_sd.mech_tabulated <- function(mechanism, scale) {
  table <- noise_table(mechanism)
  scale * table$sd / table$spread
}

#' @export
add_noise.mech_tabulated <- function(mechanism, statistic, total, uniform, scale) {
  table <- noise_table(mechanism)
  total + scale * table_quantile(table, uniform) / table$spread
}

#' @export
mechanism_takes.mech_tabulated <- function(mechanism, statistic, kinds) !inherits(statistic, c("stat_objective", "stat_quantiles", "stat_records"))

#' @export
guarantee_of.mech_tabulated <- function(x, ...) privacy_row()

#' @export
format.mech_tabulated <- function(x, ...) {
  ends <- format_number(range(x$grid), 3)
  sprintf("tabulated noise, %s points from %s to %s%s", format_size(length(x$grid)), ends[1L], ends[2L],
          if (any(x$scale != 1)) paste0(", scale ", format_scales(x$scale)) else "")
}

# For noise in units of its scale, which surrogate transitions treat as normal. The search for a start goes by noise in the middle of its pieces, and by the
# range of a record.
#' @export
augment_part.mech_tabulated <- function(part, bound, n) {
  spec <- NextMethod()
  table <- noise_table(part$mechanism)
  piece <- noise_pieces(part$mechanism)
  limits <- component_limits(part$statistic)
  known <- is.finite(part$scale)
  range <- (if (is.null(limits)) 1 else limits[, 2L] - limits[, 1L]) / part$scale
  part$interval[known, 1:4] <- list(4, 1, 0, 0)
  spec$density <- published_spec(part$interval)
  spec$density$fields$near <- as.double(outer(known, (piece$from + piece$to) / (2 * table$spread)))
  spec$density$fields$range <- ifelse(range > 0, range, 1)
  spec[c("released", "scale")] <- list(as.double(part$value), as.double(part$scale))
  spec
}

# How far from 0 its density may be above exp(-level) of the greatest, in units of the scale of a release. Heavy tails fall slowly: a level of 35, which is
# 6e-16 of the greatest density, is enough.
noise_reach <- function(mechanism, level) {
  if (!inherits(mechanism, "mech_tabulated")) return(level)
  table <- noise_table(mechanism)
  least <- max(table$value) - min(level, 35)
  above <- range(which(table$value > least))
  within <- table$x[c(max(1L, above[1L] - 1L), min(length(table$x), above[2L] + 1L))]
  ends <- range(table$x)
  beyond <- pmax(table$value[c(1L, length(table$value))] - least, 0) / ifelse(table$slope > 0, table$slope, Inf)
  max(abs(c(within, ends[1L] - beyond[1L], ends[2L] + beyond[2L])[c(TRUE, TRUE, beyond > 0)])) / table$spread
}
