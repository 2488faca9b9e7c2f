# Groups of records in one release. Each group is a site of R/engine_pool.R, with its own release. If the sizes of groups
# have noise, they are latent: see src/pool/group_sizes.c.

#' Rates and means of many groups in one release
#'
#' Visits by ward, deaths by age group, complaints by shop: one release has totals by group, and `model_poisson(~ ward)` has a rate for each. The same formula
#' in [model_bernoulli()], [model_exponential()] and [model_normal()] gives probabilities and means by group. `model_poisson(visits ~ ward)` also names the
#' variable. In regressions, groups are written with a bar, `model_lm(score ~ ses + (1 + ses | school))`; see the section Groups of [model_lm()].
#'
#' @section What the release must contain:
#' * Totals of the variable by group, from [stat_by()]. For probabilities, counts of the levels by group, such as `stat_counts(~ ward:smoke, levels)`, also
#'   work. If there are several numbers for a group, all are used.
#' * For regressions, [stat_by()] of [stat_crossprod()]. If the response and all covariates are factors, counts such as `stat_counts(~ ward:smoke:sex, levels)`.
#' * The sizes of the groups, `stat_counts(~ ward, levels)`, in a list with the totals. They may have their own noise or, if they are public, none
#'   ([mech_exact()]). Counts of all levels by group already contain the sizes.
#'
#' Every group needs a total and something that determines its size. The noise must be independent from number to number, as it is with [mech_laplace()],
#' [mech_gaussian()] and their discrete versions; [published()] is possible. A record is in one group, so the noise and the guarantee are the same as for one
#' release, see [sensitivity()].
#'
#' @section Pooling:
#' The argument `pool` of [sample_posterior()] is
#' * `NULL`: `"partial"` if the formula has a bar, otherwise `"none"`.
#' * `"none"`: every group has its own rate, with the model's prior.
#' * `"partial"`, or [partial_pooling()]: the logarithms of the rates (logits of probabilities; means, and logarithms of standard deviations) are normal about a
#'   common mean. The draws contain the mean (`rate`), the standard deviation between groups (`sd[log(rate)]`), and the rate of each group. `site_draws(fit,
#'   "new")` draws the rate of a new group.
#' * `"complete"`: all groups have the same rate. `"walk"`: groups are in order, see [partial_pooling()].
#'
#' [site_ranks()], `plot(fit, "shrinkage")` and [site_draws()] work for groups as they do for sites, and [denoise()] draws the confidential totals and sizes.
#' The cost grows with the number of groups; a thousand groups take a minute or two.
#'
#' @section Curves:
#' A curve of y against a number x, without a formula for its shape, needs the totals of y in intervals of x, and a walk over these intervals. The release is
#' `list(size = stat_counts(~ cut(x, breaks)), total = stat_by(stat_sums(~ y + I(y^2), bounds), ~ cut(x, breaks)))`, the model `model_normal(~ cut(x, breaks))`,
#' and the pool `partial_pooling(~ mean, walk = 2)`. The mean of each interval is then normal about the line through the previous two, as in a smoothing spline,
#' with an estimated standard deviation. The standard deviation about the curve is the same everywhere. With `walk = 1`, each mean is normal about the previous
#' one, which suits curves with jumps. A yes-no response uses `stat_counts(~ cut(x, breaks):y, levels)` and `model_bernoulli(y ~ cut(x, breaks))`; a count uses
#' [model_poisson()]. Their pool is `partial_pooling(walk = 2)`. `plot(fit, "curve")` shows the result, and
#' `predict(fit, data.frame(x = 3), interval = "credible")` the mean at a value. A record is in one interval, so the noise does not depend on the number of
#' intervals: 15 to 40 are a good choice. A smooth, `y ~ s(x, k = 10)` in [stat_crossprod()] and [model_lm()], is an alternative for numbers.
#'
#' @section Unknown sizes:
#' The size of each group is a latent whole number, sampled together with the rates. This is exact for any noise. Given the total number of records n, all sizes
#' that add up to n are equally likely a priori, so the groups' shares are uniform. The number n comes from the release or, if it does not contain n, has the
#' prior `prior_n` of [sample_posterior()]. A rate contains no information about the size of its group. [model_exponential()] requires known sizes.
#'
#' In [model_normal()] and regressions, each size has its own prior, as in [pooling]: `prior_n` is one prior for all groups, or a named list. If the total
#' number of records is known, these models do not use the fact that the sizes add up to it. With few groups, intervals are then slightly wider than necessary.
#'
#' If the noise of the sizes is large relative to the sizes, and relatively larger than the noise of the totals, chains mix slowly under partial pooling, and a
#' warning says so. A larger share of the budget for the sizes helps.
#'
#' **Methods.** Rates and probabilities have only method `"collapse"`. Means and regressions have the methods of [pooling]: `"collapse"`, `"augment"` and
#' `"clt"`, with the same accuracy and cost.
#'
#' @section Errors: `noiseaware_error_groups`: the release lacks something that is needed. `noiseaware_error_method`: a method that is not available for rates,
#'   or a release that the method cannot use. `noiseaware_error_formula`: an impossible bar, see [model_lm()]. `noiseaware_error_argument`.
#' @family sites and groups
#' @concept mixed model
#' @concept random intercept
#' @name groups
#' @seealso [pooling] for several releases of different people.
#' @examples
#' wards <- list(ward = c("north", "east", "south", "west", "centre"))
#' set.seed(1)
#' people <- data.frame(ward = sample(wards$ward, 500, replace = TRUE))
#' people$visits <- rpois(500, c(north = 3, east = 4, south = 4, west = 6, centre = 5)[people$ward])
#' visits <- stat_by(stat_sums(~ visits, bounds = list(visits = c(0, 20))), wards)
#' noise <- list(size = mech_laplace(epsilon = 0.5), visits = mech_laplace(epsilon = 1))
#' rel <- simulate_release(people, list(size = stat_counts(~ ward, wards), visits = visits), noise)
#' fit <- sample_posterior(rel, model_poisson(~ ward), pool = "partial",
#'                         chains = 2, iter = 300, seed = 1)
#' fit
#' site_ranks(fit)
#' # the confidential sizes and totals
#' posterior::summarise_draws(denoise(fit, site = "west"), "mean", "sd")
#'
#' # a curve: acceleration of a head after a simulated motorcycle accident
#' curve <- list(size = stat_counts(~ cut(times, seq(0, 60, by = 6))),
#'               total = stat_by(stat_sums(~ accel + I(accel^2), list(accel = c(-150, 100))),
#'                               ~ cut(times, seq(0, 60, by = 6))))
#' rel <- simulate_release(MASS::mcycle, curve,
#'                         list(size = mech_laplace(epsilon = 2), total = mech_laplace(epsilon = 8)))
#' fit <- sample_posterior(rel, model_normal(~ cut(times, seq(0, 60, by = 6))),
#'                         pool = partial_pooling(~ mean, walk = 2),
#'                         chains = 2, iter = 200, seed = 1)
#' plot(fit, "curve")
#'
#' # a two-arm trial: count, sum and sum of squares of each arm
#' arms <- list(arm = c("treated", "control"))
#' total <- stat_by(stat_sums(~ y + I(y^2), bounds = list(y = c(0, 100)), rescale = FALSE), arms)
#' published <- list(size = c(121.3, 118.2), total = c(6230, 5410, 341000, 270000))
#' trial <- as_release(published, list(size = stat_counts(~ arm, arms), total = total),
#'                     list(size = mech_laplace(scale = 2),
#'                          total = mech_gaussian(sd = c(90, 90, 9000, 9000))),
#'                     n = NULL, neighbours = "add_remove")
#' if (interactive()) sample_posterior(trial, model_normal(~ arm), seed = 1)
NULL

# ---- the release, taken apart ----------------------------------------------------------------

# A named list of releases, one for each group; those with a known size have an n.
group_releases <- function(release, variable, call) {
  levels <- release_columns(release$statistic)$levels[[variable]]
  if (is.null(levels)) {
    factors <- names(release_columns(release$statistic)$levels)
    stop_classed("groups", c("The model has groups by {.var {variable}}, but the release has no factor of that name.",
                  i = if (length(factors)) "Factors: {.var {factors}}.", i = "{.fn stat_by} makes totals by group."), call = call)
  }
  pieces <- unlist(lapply(release_parts(release), part_pieces, variable, call), recursive = FALSE)
  rows <- lapply(pieces, function(p) split(seq_along(p$group), factor(p$group, seq_along(levels))))
  made <- new.env()
  made$statistic <- list()
  groups <- lapply(seq_along(levels), function(g) one_group(release, pieces, lapply(rows, `[[`, g), made))
  names(groups) <- levels
  if (any(c("new", "next") %in% levels)) {
    stop_classed("groups", "No group can have the name {.val {intersect(c('new', 'next'), levels)}}: it names a group that released nothing.", call = call)
  }
  groups
}

# What a part is of the groups: a list with an entry for each margin. Each has the statistic of a group, and vectors with an entry for each
# of the numbers' terms: `row` (the number, of the part), `group`, `column` (component of that statistic), `weight`.
part_pieces <- function(part, variable, call) {
  statistic <- part$statistic
  whole <- if (inherits(statistic, "stat_linear")) statistic$statistic else statistic
  if (!part$mechanism$kernel %in% c("absolute", "squared", "exact", "published")) {
    stop_classed("groups", "The noise of each number must be independent of the noise of the others, but the mechanism is {format(part$mechanism)}.", call = call)
  }
  entries <- if (inherits(statistic, "stat_linear"))
    data.frame(row = query_rows(statistic), column = statistic$queries$column, weight = statistic$queries$weight) else
    data.frame(row = seq_along(part$index), column = seq_along(part$index), weight = 1)
  cells <- group_cells(whole, variable, call)
  entries[c("piece", "group", "local")] <- cells$map[entries$column, ]
  across <- function(of) any(tapply(entries[[of]], entries$row, function(x) length(unique(x))) > 1L)
  if (anyDuplicated(entries$row) && (across("group") || across("piece"))) {
    stop_classed("groups", c("Each number must be about one group.", x = "The release has {describe_statistic(statistic)}."), call = call)
  }
  lapply(unique(entries$piece), function(k) {
    own <- entries[entries$piece == k, ]
    list(part = part, statistic = cells$local[[k]], row = own$row, group = own$group, column = own$local, weight = own$weight)
  })
}

# `local`: statistics of a group; `map`: of each component which of them, the group, and its place there.
group_cells <- function(whole, variable, call) {
  size <- length(whole$levels[[variable]])
  if (inherits(whole, "stat_by") && identical(names(whole$levels)[1L], variable)) {
    terms <- length(whole$statistic$components)
    return(list(local = list(whole$statistic), map = data.frame(piece = 1L, group = rep(seq_len(size), terms), local = rep(seq_len(terms), each = size))))
  }
  if (!inherits(whole, "stat_counts") || size == 0L) {
    stop_classed("groups", c("A release of groups must have totals by {.fn stat_by} and counts by {.fn stat_counts}, all by {.var {variable}}.",
                  x = "It has {describe_statistic(whole)}."), call = call)
  }
  each <- lapply(whole$margins, function(margin) {
    other <- setdiff(margin, variable)
    if (!variable %in% margin) {
      stop_classed("groups", c("Counts must be for {.var {variable}}, or for its levels crossed with those of other variables.",
                               x = "The release has counts of {.code {paste(margin, collapse = ':')}}."),
                  call = call)
    }
    if (length(other) == 0L) return(list(local = stat_size(), group = seq_len(size), at = rep(1L, size)))
    cells <- array(seq_len(prod(lengths(whole$levels[margin]))), rev(lengths(whole$levels[margin]))) # the last variable fastest
    group <- slice.index(cells, match(variable, rev(margin)))
    list(local = stat_counts(stats::reformulate(paste(format_name(other), collapse = ":")), whole$levels[other]), group = c(group),
         at = stats::ave(c(cells), c(group), FUN = seq_along))
  })
  list(local = lapply(each, `[[`, "local"),
       map = data.frame(piece = rep(seq_along(each), vapply(each, function(e) length(e$group), 0L)), group = unlist(lapply(each, `[[`, "group")),
                        local = unlist(lapply(each, `[[`, "at"))))
}

# `at`: of each piece the entries of the group. Statistics that are the same in all groups are `made` once.
one_group <- function(release, pieces, at, made) {
  n <- NULL
  parts <- list()
  for (k in seq_along(pieces)) {
    piece <- pieces[[k]]
    if (length(at[[k]]) == 0L) next
    row <- piece$row[at[[k]]]
    numbers <- unique(row)
    index <- piece$part$index[numbers]
    if (is_exact(piece$part$mechanism) && inherits(piece$statistic, "stat_size")) {
      n <- unname(release$value[index[1L]]) / piece$weight[at[[k]]][1L]
      next
    }
    statistic <- local_statistic(piece$statistic, match(row, numbers), piece$column[at[[k]]], piece$weight[at[[k]]], k, made)
    mechanism <- published_mechanism(piece$part$mechanism, piece$part$statistic, numbers)
    parts[[paste0("part", k)]] <- list(statistic = statistic, mechanism = mechanism, index = index)
  }
  index <- unlist(lapply(parts, `[[`, "index"), use.names = FALSE)
  new_release(release$value[index], lapply(parts, `[[`, "statistic"), lapply(parts, `[[`, "mechanism"), n, unname(release$scale[index]),
              unname(release$granularity[index]), release$noise, release$neighbours)
}

local_statistic <- function(statistic, row, column, weight, k, made) {
  key <- paste(c(k, row, column, weight), collapse = " ")
  if (is.null(made$statistic[[key]])) {
    whole <- identical(column, seq_along(statistic$components)) && all(weight == 1)
    made$statistic[[key]] <- if (whole) statistic else
      linear_of(statistic, list(names = paste0("number", unique(row)), length = tabulate(row), column = column, weight = weight))
  }
  made$statistic[[key]]
}

# Are sizes latent? Raises an error if sizes or totals are missing.
check_group_sizes <- function(groups, bound, variable, call) {
  has <- function(release, what) any(vapply(release_parts(release), function(p) what(table_of(p$statistic)), TRUE))
  is_size <- function(s) inherits(s, "stat_size")
  untold <- names(groups)[!vapply(groups, has, TRUE, function(s) !is_size(s))]
  if (length(untold)) stop_classed("groups", "The release must have a total for each group, but has none for {.val {shorten_list(untold, 6L)}}.", call = call)
  unknown <- vapply(groups, function(r) is.null(r$n), TRUE)
  if (!any(unknown)) return(FALSE)
  if (bound$spec$name == "exponential") {
    stop_classed("groups", c("The sizes of groups must be known for this model: {describe_model(bound)}.",
                  i = "Public sizes are {.code stat_counts(~ {variable})} with {.fn mech_exact}."), call = call)
  }
  levels <- if (length(bound$levels)) length(bound$levels[[1L]]) else 1L
  sites <- bound$spec$name %in% c("normal", "mvnormal", "lm", "glm") # whose numbers of records are latent in each by itself
  tells <- function(release) {
    counted <- function(p) inherits(table_of(p$statistic), "stat_counts") && (sites || length(unique(p$statistic$queries$column %||% seq_len(levels))) == levels)
    !is.null(release$n) || has(release, is_size) || (sites || levels == 2L) && any(vapply(release_parts(release), counted, TRUE))
  }
  untold <- names(groups)[!vapply(groups, tells, TRUE)]
  if (length(untold)) {
    stop_classed("groups", c("The release must have the size of each group, exact or noisy, but has none for {.val {untold}}.",
                  i = "Sizes are {.code stat_counts(~ {variable})}, in a list with the totals. If they are public, their mechanism is {.fn mech_exact}."), call = call)
  }
  TRUE
}

# ---- latent sizes ------------------------------------------------------------------------------

sized_problem <- function(groups, release, bound, prior_n, call) {
  sites <- lapply(groups, sized_site, bound, call)
  sites <- begin_sizes(sites, release$n, prior_n)
  components <- rep(2L, length(sites))
  first <- 2L * (seq_along(sites) - 1L)
  names(first) <- names(sites)
  n <- release$n %||% sum(vapply(sites, function(s) s$fields$n, 0))
  list(method = "pool", exact = if (bound$spec$name == "categorical" || isTRUE(bound$natural)) TRUE else NA, model = bound$spec, family = "rates",
       n = n, prior_n = prior_n,
       size_prior = size_prior_spec(prior_n), released = rep(NA_real_, 2L * length(sites)), sites = sites, where = seq_len(2L * length(sites)),
       summed = seq_len(sum(components)), first = first, names = bound$parameters, sized = TRUE,
       sizes = vapply(sites, function(s) s$fields$n, 0, USE.NAMES = FALSE), size_error = vapply(sites, `[[`, 0, "size_error", USE.NAMES = FALSE))
}

# Log density of the noise at whole numbers, for each number that a release has of the total, of the group's size less the total, and of the size.
sized_site <- function(release, bound, call) {
  parts <- component_parts(release_for(bound, release), repeated = TRUE)
  if (!is.null(release$n)) parts <- c(parts, list(exact_size_part(release$n)))
  map <- sized_components(release, bound, parts, call)
  about <- lapply(c(total = "total", rest = "rest", size = "size"), noise_window, parts, map)
  binomial <- bound$spec$name == "categorical"
  if (is.null(about$total)) {
    most <- if (!is.null(about$size)) about$size$range[2L] else Inf
    about$total <- list(range = c(0, most), at = if (is.null(about$size) || is.null(about$rest)) 1 else about$size$at - about$rest$at, sd = most / 4)
  }
  s <- about$total$range[1L]:about$total$range[2L]
  log_of <- function(what, at) {
    sum <- numeric(length(at))
    for (k in which(map$kind == what)) sum <- sum + log_noise_at(parts[[map$part[k]]], map$k[k], map$slope[k] * at)
    sum
  }
  log_weight <- log_of("total", s) - if (binomial) 0 else lgamma(s + 1)
  window <- function(what) {
    if (is.null(about[[what]])) return(NULL)
    at <- about[[what]]$range[1L]:about[[what]]$range[2L]
    stats::setNames(list(as.double(at[1L]), log_of(what, at)), paste0(what, c("_first", "_log")))
  }
  size <- size_about(about)
  likely <- min(max(about$total$at, 0), if (binomial) size[1L] else Inf)
  times <- unlist(lapply(parts, `[[`, "times"))[seq_along(release$value)]
  given <- map$place <= length(release$value)
  coefficients <- function(kinds) {
    out <- numeric(length(release$value))
    out[map$place[given]] <- (map$slope * kinds[map$kind])[given]
    times * out
  }
  bounds <- if (is_log_rate(bound)) tightest_bounds(bound$columns$name, parts)
  list(components = 2L, released = NA_real_, where = 1:2, likely = likely, noise = about$total$sd, size_error = size[2L], constant = 0 * times,
       slope = coefficients(c(total = 1, rest = -1, size = 0)), size_slope = coefficients(c(total = 0, rest = 1, size = 1)),
       fields = c(list(kind = rate_kinds[[bound$spec$name]], n = size[1L], first = as.double(s[1L]), log_weight = as.double(log_weight), sized = 1),
                  window("size"), window("rest"), bounds))
}

# a known size where others are unknown
exact_size_part <- function(n) {
  list(name = "", statistic = stat_size(), mechanism = mech_exact(), neighbours = "replace", index = NA_integer_, at = 1L, times = 1, value = n, scale = 0)
}

# A row for each number: the part, its place there and in the release, what it is (`kind`), times `slope`.
sized_components <- function(release, bound, parts, call) {
  each <- lapply(seq_along(parts), function(i) {
    part <- parts[[i]]
    if (inherits(part$statistic, "stat_size")) return(data.frame(part = i, k = seq_along(part$at), place = part$index, kind = "size", slope = 1))
    check_collapse_part(part, collapse_family(bound, call), call)
    part$index <- seq_along(part$index)
    if (is_log_rate(bound)) {
      total_distribution(bound, list(part), 1, NULL, call)
      return(data.frame(part = i, k = part$index, place = parts[[i]]$index, kind = "total", slope = 1))
    }
    entries <- counts_components(bound, list(part), call)
    if (!is.data.frame(entries)) entries <- data.frame(component = part$index, target = entries, coefficient = 1)
    of <- function(target) vapply(part$index, function(k) sum(entries$coefficient[entries$component == k & entries$target == target]), 0)
    rest <- of(0)
    total <- of(1)
    size <- of(2)
    both <- rest == total & rest != 0
    size[both] <- size[both] + rest[both]
    rest[both] <- total[both] <- 0
    kinds <- cbind(total = total, rest = rest, size = size)
    if (any(rowSums(kinds != 0) != 1)) stop_collapse_part(part, "counts of one level, or of all, if the size of the group is unknown", call)
    kind <- max.col(kinds != 0)
    data.frame(part = i, k = part$index, place = parts[[i]]$index, kind = colnames(kinds)[kind], slope = kinds[cbind(part$index, kind)])
  })
  map <- do.call(rbind, each)
  map$place[is.na(map$place)] <- length(release$value) + 1L
  map
}

# The whole numbers that the noise does not rule out, where they are about, and how certain that is; NULL if there is no such number.
noise_window <- function(what, parts, map) {
  rows <- which(map$kind == what)
  if (length(rows) == 0L) return(NULL)
  told <- vapply(rows, function(r) {
    part <- parts[[map$part[r]]]
    k <- map$k[r]
    ends <- if (part$mechanism$kernel == "published") unlist(part$interval[k, c("lower", "upper")]) else rep(part$value[k], 2L)
    if (is_exact(part$mechanism)) return(c(rep(round(ends / map$slope[r]), length.out = 2L), 1e-3, round(ends[1L] / map$slope[r])))
    reach <- noise_reach(part$mechanism, furthest) * part$scale[k]
    sd <- mechanism_sd(part$mechanism, part$scale[k]) / abs(map$slope[r])
    middle <- if (all(is.finite(ends))) mean(ends) else ends[is.finite(ends)][1L]
    c(sort((ends + c(-reach, reach)) / map$slope[r]), sd, middle / map$slope[r])
  }, numeric(4))
  range <- c(max(0, floor(min(told[1L, ]))), max(0, ceiling(max(told[2L, is.finite(told[2L, ])]))))
  weight <- 1 / told[3L, ]^2
  list(range = range, at = sum(weight * told[4L, ]) / sum(weight), sd = max(1 / sqrt(sum(weight)), 1e-3))
}

# of a group's size: about what it is, a whole number that is possible, and its error
size_about <- function(about) {
  told <- rbind(if (!is.null(about$size)) c(about$size$at, about$size$sd),
                if (!is.null(about$rest)) c(max(about$total$at, 0) + max(about$rest$at, 0), sqrt(about$total$sd^2 + about$rest$sd^2)))
  weight <- 1 / told[, 2L]^2
  n <- round(sum(weight * told[, 1L]) / sum(weight))
  if (!is.null(about$size)) n <- min(max(n, about$size$range[1L]), about$size$range[2L])
  c(max(n, 0, about$total$range[1L] * (!is.null(about$rest)) + (about$rest$range %||% 0)[1L]), 1 / sqrt(sum(weight)))
}

# Sizes that add up to n, where that is known, or to what its prior allows.
begin_sizes <- function(sites, n, prior_n) {
  size <- vapply(sites, function(s) s$fields$n, 0)
  free <- vapply(sites, `[[`, 0, "size_error")^2
  free[free < 1e-4] <- 0
  target <- n %||% min(max(sum(size), size_range(prior_n)[1L]), size_range(prior_n)[2L])
  for (k in 1:60) {
    left <- target - sum(size)
    open <- free * (left > 0 | size > 0)
    if (left == 0 || sum(open) == 0) break
    step <- trunc(left * open / sum(open))
    if (all(step == 0)) step[utils::head(order(-open), abs(left))] <- sign(left)
    size <- pmax(size + step, 0)
  }
  Map(function(site, n) {
    site$fields$n <- n
    site
  }, sites, size)
}

# ---- no pooling --------------------------------------------------------------------------------

# Separate rates with the model's prior: the pooling that C and the views of sites read.
separate_problem <- function(problem, bound, groups) {
  spread <- spread_of_rates(problem)
  parameters <- bound$parameters
  problem$partial <- list(which = integer(), head = integer(), show = 0L, sd = list(), effect_sd = numeric(), mean_at = numeric(), mean_precision = numeric(),
                          lkj = 0, walk = 0L, separate = TRUE, place = 1L, parameters = parameters, reported = parameters, shown = parameters,
                          heads = character(), vary = character())
  problem$begin <- list(at = spread$at, se = spread$se)
  problem$names <- site_variables(parameters, groups)
  problem
}

# Chains begin apart, by what a rate may be off; a release with much noise may suggest a rate that no prior allows.
begin_separate <- function(problem, k, theta) {
  apart <- c(0, 1, -1, 0.5, -0.5)[(k - 1L) %% 5L + 1L]
  se <- pmin(problem$begin$se, 1)
  list(mean = theta, phi = as.double(problem$begin$at + apart * se), spread = numeric(), error = as.double(se))
}
