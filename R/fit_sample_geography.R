# Counts of nested areas: see src/geography/transfers.c. Draws of millions of cells would fill the memory, so only the mean and the standard deviation of each
# cell are kept, and the draws of the sums that `track` names.

#' Counts in nested areas
#'
#' Draws the counts of persons in nested areas, such as states, counties and blocks, by personal variables, given noisy counts at any of these levels and exact
#' counts at some. The posterior covers every cell, even millions of them, and any sum of cells.
#'
#' @param release A release of counts ([stat_counts()], [stat_subset()] of them), with built-in noise or exact ([mech_exact()]). Each margin has at most one
#'   area variable and any of the persons' variables. Margins at several levels are separate statistics in a list, or terms of one statistic.
#' @param formula The area variables from the largest to the smallest, `~ state/county/block`.
#' @param areas A data frame with these columns and one row per smallest area, which shows the larger areas that contain it. Codes of areas must differ within a
#'   level (counties of the same name in two states need different codes).
#' @param shares Prior for the shares of the persons' cells in all areas together, [prior_dirichlet()] with one weight or one for each cell.
#' @param concentration Prior for the concentrations, [prior_gamma()] with a rate, or [fixed()] with one value or one for each level.
#' @param sizes Prior for the shares of an area's persons who live in its parts, [prior_dirichlet()] with one weight.
#' @param track Sums to store draws of: a named list of formulas that are `TRUE` for the cells to add up, in terms of area variables and the persons' variables,
#'   such as `list(young = ~ age == "0-17" & county == "a")`.
#' @inheritParams sample_posterior
#'
#' @details
#' **Model.** A parent area's persons are divided among its parts by a Dirichlet-multinomial distribution with the weight of `sizes`. The persons in a smallest
#' area are divided into cells, the combinations of the persons' variables, by the area's own shares. These have a Dirichlet distribution centred at the shares
#' of the parent area. Its concentration is the number of persons to which that prior is equivalent. The parent's shares vary in the same way about the shares
#' of the area above it, and so on up to all areas. Siblings are thus pooled to the extent that the data support: the concentration of each level is unknown,
#' with a gamma prior. The shares of the smallest areas are integrated out.
#'
#' **Draws** are exact, whatever the noise: persons are moved between cells. With a million cells, one iteration takes about half a second, and memory use is a
#' few numbers per cell. Exact counts may be given for one level and a partition of the cells; they, and all sums that follow from them, are never changed. The
#' number of persons must be known.
#'
#' **Results.** `summary()` has the codes of each cell, its `mean`, `sd` and, with several chains, the `rhat` of the means. For larger areas it has only the means
#' of sums; name sums in `track` to store their draws. [posterior::as_draws_array()] gives the draws of these quantities:
#'
#' | variable | meaning |
#' | --- | --- |
#' | names in `track` | the tracked sums |
#' | `concentration[level]` | concentration of a level |
#' | `share[cell]` | shares of the persons' cells in all areas together |
#' | `cell[..]` | up to 100 random cells, for assessing convergence |
#'
#' @return An object of class `noiseaware_geography`. `summary()` gives a data frame with a row for each cell of the smallest areas, or of `level` (areas of one
#'   level). [posterior::as_draws_array()] gives the draws of sums, parameters and some cells, see Details.
#' @section Warnings: `noiseaware_warning_convergence`: a variable with stored draws has an R-hat above 1.01 or fewer than 400 effective draws. Concentrations mix
#'   most slowly.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_formula`, `noiseaware_error_areas` (not nested, or unknown ones), `noiseaware_error_variables`,
#'   `noiseaware_error_method` (a release that cannot be used), `noiseaware_error_value` (exact counts that contradict each other),
#'   `noiseaware_error_prior`, `noiseaware_error_interrupted`.
#' @references
#' Teh, Y. W., Jordan, M. I., Beal, M. J. and Blei, D. M. (2006). Hierarchical Dirichlet processes. *Journal of the American Statistical
#' Association* 101, 1566-1581. \doi{10.1198/016214506000000302}
#' @seealso [model_table()] for tables without nested areas, [read_release()] for files of the US Census.
#' @family methods
#' @examples
#' areas <- data.frame(state = rep(c("A", "B"), each = 4), block = paste0("b", 1:8))
#' people <- data.frame(areas[rep(1:8, 1:8 * 3), ], sex = rep(c("f", "m"), 54))
#' sex <- c("f", "m")
#' st <- list(states = stat_counts(~ state:sex, list(state = c("A", "B"), sex = sex)),
#'            blocks = stat_counts(~ block:sex, list(block = areas$block, sex = sex)))
#' set.seed(1)
#' rel <- release(people, st, list(states = mech_discrete_gaussian(sd = 2),
#'                                 blocks = mech_discrete_gaussian(sd = 3)))
#' fit <- sample_geography(rel, ~ state/block, areas, iter = 400, seed = 1,
#'                         track = list(women = ~ sex == "f" & state == "A"))
#' fit
#' head(summary(fit))
#' @export
sample_geography <- function(release, formula, areas, shares = prior_dirichlet(1), concentration = prior_gamma(1, 0.01), sizes = prior_dirichlet(1),
                             chains = 2, iter = 1000, warmup = floor(iter / 2), thin = 1, seed = NULL, track = NULL) {
  check_given()
  check_release(release)
  run <- check_run(chains, iter, warmup, thin, check_seed(seed))
  tree <- area_tree(formula, areas)
  parts <- component_parts(release, repeated = TRUE)
  for (p in parts) check_geography_part(p)
  persons <- person_cells(parts, tree)
  measures <- unlist(lapply(parts, part_measures, tree, persons), recursive = FALSE)
  exact <- geography_exact(measures, release$n, tree, persons)
  noisy <- Filter(function(m) !m$exact, measures)
  if (length(noisy) > 32L) stop_classed("method", "At most 32 margins of noisy counts are possible, but the release has {length(noisy)}.")
  problem <- c(list(cells = nrow(persons$codes), parent = lapply(tree$levels, `[[`, "parent"), measures = lapply(noisy, measure_fields),
                    exact_level = exact$level, exact_group = exact$group),
               geography_priors(shares, concentration, sizes, tree, persons))
  words <- with_seed(run$seed, seed_words())
  tracked <- tracked_cells(track, tree, persons, with_seed(words_seed(words), sampled_cells(tree, persons)))
  problem$track_first <- c(0L, cumsum(lengths(tracked)))
  problem$track_cell <- as.integer(unlist(tracked))
  names <- c(names(tracked), sprintf("concentration[%s]", names(tree$levels)), sprintf("share[%s]", persons$names))
  base <- geography_base(measures, tree, persons)
  values <- run_chains(run$chains, function(k, report) {
    state <- geography_start(problem, exact, base, tree, new_stream(words, k - 1L))
    geography_chain(problem, state, run, report, names)
  }, run$iter * run$chains)
  fit <- list(release = release, tree = tree, persons = persons, problem = problem, run = run, draws = chains_array(lapply(values, `[[`, "draws")),
              mean = lapply(values, function(v) v$state$mean), square = lapply(values, function(v) v$state$square / max(1, v$state$seen - 1)))
  fit <- structure(fit, class = "noiseaware_geography")
  tell_geography(fit)
  fit
}

# Chains that have not converged, by all that was kept.
tell_geography <- function(fit, call = caller_env()) {
  if (session$quiet) return(invisible())
  found <- geography_mixing(fit$draws)
  if (all(is.na(found[2L, ]))) {
    cli::cli_warn(c("There are too few draws to know whether the chains have converged.", i = "Increase {.arg iter}."),
                  class = "noiseaware_warning_convergence", call = call)
    return(invisible())
  }
  if (max(found[1L, ], 1, na.rm = TRUE) <= highest_r_hat && min(found[2L, ], na.rm = TRUE) >= fewest_effective) return(invisible())
  worst <- posterior::variables(fit$draws)[which.min(found[2L, ])]
  shown <- c(format_number(max(found[1L, ], na.rm = TRUE), 3), format_size(round(min(found[2L, ], na.rm = TRUE))))
  cli::cli_warn(c("The draws have not converged: the largest R-hat is {shown[1]}, the smallest number of effective draws {shown[2]} ({.code {worst}}).",
                  i = "Increase {.arg iter}."), class = "noiseaware_warning_convergence", call = call)
}

# R-hat and effective draws of each variable, in rows
geography_mixing <- function(draws) without_capping(apply(draws, 3L, function(d) c(posterior::rhat(d), posterior::ess_bulk(d))))

words_seed <- function(words) as.integer(words[1L] %% 2^31)

# ---- areas and cells -------------------------------------------------------------------------

# Levels from the largest areas to the smallest, each with its codes and, from 0, parents; areas are in an order in which
# children follow one another. `leaf`: of each level the areas that the smallest are in, from 0.
area_tree <- function(formula, areas, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 2L) {
    stop_argument("formula", "area variables from the largest to the smallest, such as ~ state/county/block", describe(formula), "formula", call)
  }
  leaves <- formula_leaves(formula[[2L]], chain_operands("/"), call)
  for (leaf in leaves) if (!is.name(leaf)) {
    stop_argument("formula", "names joined by /, such as ~ state/county/block", shorten_text(formula_text(formula)), "formula", call)
  }
  names <- vapply(leaves, as.character, "")
  if (anyDuplicated(names) || length(names) > 8L) {
    stop_argument("formula", "up to eight different variables", shorten_text(formula_text(formula)), "formula", call)
  }
  check_class(areas, "areas", "data.frame", "a data frame", call = call)
  absent <- setdiff(names, names(areas))
  if (length(absent)) stop_classed("areas", "{.arg areas} must have the columns {.var {names}}, but lacks {.var {absent}}.", call = call)
  codes <- lapply(stats::setNames(nm = names), function(v) as.character(areas[[v]]))
  smallest <- codes[[length(codes)]]
  if (nrow(areas) < 2L || anyNA(unlist(codes)) || anyDuplicated(smallest)) {
    stop_classed("areas", "{.arg areas} must have one row for each {.var {names[length(names)]}}, at least two rows, without repeated or missing values.", call = call)
  }
  order <- do.call(order, unname(lapply(codes, function(c) match(c, unique(c)))))
  codes <- lapply(codes, `[`, order)
  levels <- list()
  above <- rep(0L, length(order))
  for (v in names) {
    own <- unique(codes[[v]])
    at <- match(codes[[v]], own) - 1L
    first <- match(own, codes[[v]])
    if (any(above[first][at + 1L] != above)) {
      torn <- own[at[above[first][at + 1L] != above][1L] + 1L]
      stop_classed("areas", c("{.arg areas} must be nested, but {.var {v}} {.val {torn}} is in several larger areas.",
                              i = "Give areas of the same name different codes."), call = call)
    }
    levels[[v]] <- list(codes = own, parent = above[first], leaf = at)
    above <- at
  }
  list(levels = levels, leaves = length(order))
}

check_geography_part <- function(part, call = caller_env()) {
  if (inherits(part$statistic, "stat_size") && is_exact(part$mechanism)) return(invisible())
  if (!inherits(part$statistic, "stat_counts")) {
    stop_classed("method", "{.fn sample_geography} needs counts, but the release has {describe_statistic(part$statistic)}.", call = call)
  }
  if (!part$mechanism$kernel %in% c("absolute", "squared", "exact")) {
    stop_classed("method", "{.fn sample_geography} needs noise from a built-in mechanism, not {format(part$mechanism)}.", call = call)
  }
}

# all combinations of the persons' variables; without one there is one cell
person_cells <- function(parts, tree) {
  levels <- list()
  for (p in parts) levels <- utils::modifyList(levels, p$statistic$levels[setdiff(names(p$statistic$levels), names(tree$levels))])
  if (length(levels) == 0L) return(list(levels = levels, codes = matrix(0, 1L, 0L), names = "all"))
  for (p in parts) for (v in intersect(names(levels), names(p$statistic$levels))) {
    if (!setequal(levels[[v]], p$statistic$levels[[v]])) {
      stop_classed("variables", "{.var {v}} must have the same levels throughout the release.", call = caller_env())
    }
  }
  if (prod(lengths(levels)) > 10000) stop_classed("size", "The persons' variables must have at most 10,000 combinations.", call = caller_env())
  codes <- all_codes(lengths(levels))
  list(levels = levels, codes = codes, names = cell_names(codes, levels))
}

# ---- what was released -----------------------------------------------------------------------------

# Of each margin its level (0: all areas), the groups of cells that it counts, and its numbers and weights area by area.
part_measures <- function(part, tree, persons, call = caller_env()) {
  if (inherits(part$statistic, "stat_size")) {
    return(list(list(level = 0L, groups = 1L, group = rep(0L, nrow(persons$codes)), exact = TRUE, released = part$value, weight = 1, absolute = FALSE, whole = TRUE)))
  }
  levels <- part$statistic$levels
  margin_at <- margin_of_components(part$statistic)[part$at]
  within <- (part$at - match(seq_along(part$statistic$margins), margin_of_components(part$statistic))[margin_at])
  lapply(unique(margin_at), function(m) {
    of <- part$statistic$margins[[m]]
    area <- intersect(of, names(tree$levels))
    if (length(area) > 1L) {
      stop_classed("method", c("A margin must have at most one area variable, but {.code {paste(of, collapse = ':')}} has {length(area)}.",
                               i = "Codes differ within a level, so {.var {area[length(area)]}} is enough."), call = call)
    }
    used <- which(margin_at == m)
    size <- lengths(levels)[of]
    code <- arrayInd(within[used] + 1L, rev(size)) # the last variable is the fastest
    code <- code[, rev(seq_along(of)), drop = FALSE]
    colnames(code) <- of
    mine <- setdiff(of, area)
    level <- if (length(area)) match(area, names(tree$levels)) else 0L
    number <- if (level == 0L) 1L else length(tree$levels[[level]]$codes)
    at <- if (level == 0L) rep(1L, length(used)) else match(levels[[area]], tree$levels[[level]]$codes)[code[, area]]
    if (anyNA(at)) {
      unknown <- setdiff(levels[[area]], tree$levels[[level]]$codes)
      stop_classed("areas", "{.arg areas} must have every {.var {area}} of the release, but lacks {.val {shorten_list(unknown, 4L)}}.", call = call)
    }
    group <- rep(0L, nrow(persons$codes))
    to <- rep(0L, length(used))
    for (v in mine) {
      own <- persons$levels[[v]]
      group <- group * length(own) + as.integer(persons$codes[, v])
      to <- to * length(own) + match(levels[[v]], own)[code[, v]] - 1L
    }
    groups <- as.integer(prod(lengths(persons$levels[mine])))
    cell <- (at - 1L) * groups + to + 1L
    fold_measure(part, used, cell, number * groups, level, groups, group)
  })
}

# Numbers that were released more than once count as one of their precision together, if the noise is normal.
fold_measure <- function(part, used, cell, size, level, groups, group) {
  exact <- is_exact(part$mechanism)
  absolute <- part$mechanism$kernel == "absolute"
  weight <- if (exact) rep(1, length(used)) else if (absolute) 1 / part$scale[used] else 1 / part$scale[used]^2
  if (anyDuplicated(cell)) {
    stop_classed("method", "{.fn sample_geography} needs counts that appear only once in a statistic.", call = caller_env())
  }
  released <- all_weights <- numeric(size)
  released[cell] <- part$value[used]
  all_weights[cell] <- weight
  list(level = level, groups = groups, group = group, exact = exact, absolute = absolute, released = released, weight = all_weights,
       whole = length(cell) == size)
}

measure_fields <- function(m) m[c("level", "groups", "absolute", "group", "released", "weight")]

# The exact counts of the smallest areas and finest groups; all others must follow from them.
geography_exact <- function(measures, n, tree, persons, call = caller_env()) {
  exact <- Filter(function(m) m$exact, measures)
  cells <- nrow(persons$codes)
  if (!is.null(n)) exact <- c(exact, list(list(level = 0L, groups = 1L, group = rep(0L, cells), released = n, whole = TRUE)))
  if (length(exact) == 0L) {
    stop_classed("method", c("{.fn sample_geography} needs the number of persons, or exact counts that determine it.",
                             i = "Describe the release by {.fn as_release} with an {.arg n}, or add counts with {.fn mech_exact}."), call = call)
  }
  whole <- vapply(exact, `[[`, TRUE, "whole")
  if (!all(whole)) stop_classed("method", "Exact counts must cover all areas of a level and all groups of a margin.", call = call)
  finest <- exact[[order(-vapply(exact, function(m) as.double(m$level), 0), -vapply(exact, function(m) as.double(m$groups), 0))[1L]]]
  if (any(finest$released < 0)) stop_classed("value", "Exact counts must not be negative.", call = call)
  for (m in exact) {
    nested <- m$level <= finest$level && !any(vapply(split(m$group, finest$group), function(g) length(unique(g)) > 1L, TRUE))
    if (!nested) {
      stop_classed("method", c("Exact counts must be of one level and margin, or sums of these.",
                               x = "There are also exact counts of another margin, or of a larger area with more detail."), call = call)
    }
    area <- areas_above(tree, finest$level, m$level)
    to <- m$group[match(seq_len(finest$groups) - 1L, finest$group)]
    key <- rep(area, each = finest$groups) * m$groups + rep(to, length(area))
    sums <- tapply(finest$released, factor(key, seq_along(m$released) - 1), sum)
    if (any(abs(sums - m$released) > 0.5)) {
      stop_classed("value", "The exact counts contradict each other: sums over smaller areas differ from the counts of larger ones.", call = call)
    }
  }
  list(level = as.integer(finest$level), group = as.integer(finest$group), groups = finest$groups, released = round(finest$released))
}

# the areas of level `to` that those of level `from` are in, from 0
areas_above <- function(tree, from, to) {
  if (from == 0L) return(0L)
  first <- match(seq_along(tree$levels[[from]]$codes) - 1L, tree$levels[[from]]$leaf)
  leaf_area(tree, to)[first]
}

leaf_area <- function(tree, level) if (level == 0L) rep(0L, tree$leaves) else tree$levels[[level]]$leaf

geography_priors <- function(shares, concentration, sizes, tree, persons, call = caller_env()) {
  check_class(shares, "shares", "prior_dirichlet", "prior_dirichlet()", "prior", call)
  check_class(sizes, "sizes", "prior_dirichlet", "prior_dirichlet()", "prior", call)
  if (length(sizes$alpha) != 1L) stop_argument("sizes", "prior_dirichlet() with one weight", describe(sizes$alpha), "prior", call)
  levels <- length(tree$levels)
  known <- inherits(concentration, "fixed") && is.numeric(concentration$value) && length(concentration$value) %in% c(1L, levels) && all(concentration$value > 0)
  random <- inherits(concentration, "prior_gamma") && !is.null(concentration$rate)
  if (!known && !random) {
    stop_argument("concentration", "prior_gamma() with a rate, or fixed() with a positive value, or one for each level", format(concentration), "prior", call)
  }
  list(alpha = as.double(expand_weights(shares, nrow(persons$codes), call = call, coordinates = persons$names)), size_weight = as.double(sizes$alpha),
       shape = if (known) 0 else concentration$shape, rate = if (known) 0 else concentration$rate,
       concentration = if (known) rep_len(as.double(concentration$value), levels))
}

# ---- tracked sums ---------------------------------------------------------------------------------

# codes of cells of the smallest areas, leaf by leaf: a data frame
cell_frame <- function(tree, persons, level = length(tree$levels)) {
  cells <- nrow(persons$codes)
  own <- if (level == length(tree$levels)) seq_len(tree$leaves) else match(seq_along(tree$levels[[level]]$codes) - 1L, tree$levels[[level]]$leaf)
  of_areas <- lapply(tree$levels[seq_len(level)], function(l) rep(l$codes[l$leaf[own] + 1L], each = cells))
  of_persons <- lapply(stats::setNames(nm = names(persons$levels)), function(v) rep(persons$levels[[v]][persons$codes[, v] + 1], length(own)))
  as.data.frame(c(of_areas, of_persons), optional = TRUE)
}

tracked_cells <- function(track, tree, persons, sampled, call = caller_env()) {
  if (is.null(track)) return(sampled)
  ok <- is.list(track) && length(track) > 0L && checkmate::test_names(names(track), "unique") &&
    all(vapply(track, function(f) inherits(f, "formula") && length(f) == 2L, TRUE))
  if (!ok) stop_argument("track", "a named list of formulas without a left-hand side, such as list(young = ~ age == \"0-17\")", describe(track), call = call)
  frame <- cell_frame(tree, persons)
  sums <- lapply(track, function(f) {
    strange <- setdiff(all.vars(f), names(frame))
    strange <- strange[!vapply(strange, exists, TRUE, envir = environment(f))]
    if (length(strange)) {
      stop_classed("variables", c("{.arg track} must be about areas and variables of the persons, but {.var {strange}} {?is/are} not among them.",
                                  i = "There are {.var {names(frame)}}."), call = call)
    }
    chosen <- eval(f[[2L]], frame, environment(f))
    if (!is.logical(chosen) || length(chosen) != nrow(frame) || anyNA(chosen)) {
      stop_argument("track", "formulas that are TRUE or FALSE for each cell", shorten_text(formula_text(f)), call = call)
    }
    which(chosen) - 1L
  })
  c(sums, sampled)
}

most_sampled <- 100L

sampled_cells <- function(tree, persons) {
  size <- tree$leaves * nrow(persons$codes)
  at <- sort(if (size <= most_sampled) seq_len(size) else sample.int(size, most_sampled))
  leaf <- (at - 1L) %/% nrow(persons$codes) + 1L
  names <- tree$levels[[length(tree$levels)]]$codes[leaf]
  if (length(persons$levels)) names <- paste0(names, ":", persons$names[(at - 1L) %% nrow(persons$codes) + 1L])
  stats::setNames(as.list(at - 1L), sprintf("cell[%s]", names))
}

# ---- chains -----------------------------------------------------------------------------------------

# Where a chain starts: released numbers of the smallest areas, as far as there are some, brought to the exact counts.
geography_base <- function(measures, tree, persons) {
  cells <- nrow(persons$codes)
  base <- matrix(1, cells, tree$leaves)
  for (m in measures) {
    if (m$exact || m$level != length(tree$levels)) next
    numbers <- matrix(pmax(m$released, 0.5), m$groups)
    numbers[m$weight == 0] <- 1
    base <- base * numbers[m$group + 1L, ] / tabulate(m$group + 1L)[m$group + 1L]
  }
  base
}

geography_start <- function(problem, exact, base, tree, stream) {
  cells <- problem$cells
  levels <- length(tree$levels)
  drawn <- .Call(ffi_rng_draw, stream, "uniform", length(base), 0)
  weight <- base * (0.5 + drawn$values)
  key <- rep(leaf_area(tree, exact$level), each = cells) * exact$groups + rep(exact$group, tree$leaves)
  order <- order(key)
  first <- !duplicated(key[order])
  # rounded running sums within each group of exact counts
  running <- cumsum(weight[order])
  group <- cumsum(first)
  before <- c(0, running)[which(first)][group]
  end <- running[c(which(first)[-1L] - 1L, length(running))][group]
  target <- exact$released[key[order] + 1]
  ends <- round((running - before) / (end - before) * target)
  count <- numeric(length(base))
  count[order] <- ends - ifelse(first, 0, c(0, ends[-length(ends)]))
  areas <- c(1L, lengths(lapply(tree$levels, `[[`, "codes")))
  list(count = count, share = lapply(areas[seq_len(levels)], function(a) rep(1 / cells, a * cells)),
       concentration = rep_len(problem$concentration %||% (problem$shape / problem$rate), levels) + 0, rng = drawn$state,
       mean = numeric(length(base)), square = numeric(length(base)), seen = numeric(1L)) # not 0: C would change the constant
}

# Runs in blocks short enough for progress; C changes the state in place.
geography_chain <- function(problem, state, run, report, names) {
  block <- max(1, min(100, ceiling(2e7 / length(state$count))))
  draws <- list()
  status <- 0L
  done <- 0
  while (done < run$iter && status == 0L) {
    warm <- done < run$warmup
    count <- min(block * if (warm) 1 else run$thin, (if (warm) run$warmup else run$iter) - done)
    began <- elapsed_seconds()
    made <- .Call(ffi_geography, problem, state, as.integer(count), if (warm) 0L else as.integer(run$thin))
    if (made$made < count) status <- 1L
    if (!warm) draws[[length(draws) + 1L]] <- made$draws[, seq_len(made$made %/% run$thin), drop = FALSE]
    done <- done + made$made
    report(made$made, elapsed_seconds() - began, warm)
  }
  out <- if (length(draws)) t(do.call(cbind, draws))
  if (!is.null(out)) colnames(out) <- names
  list(draws = out, state = state, status = status)
}

# ---- the result ----------------------------------------------------------------------------------------

#' @export
print.noiseaware_geography <- function(x, ...) {
  areas <- vapply(x$tree$levels, function(l) format_size(length(l$codes)), "")
  cells <- length(x$persons$names)
  sampled <- x$draws[, , startsWith(posterior::variables(x$draws), "cell[")]
  found <- geography_mixing(sampled)
  known <- !is.na(found[2L, ])
  cat(sprintf("<geography> %s; %s cells in each\n", paste(areas, names(areas), collapse = ", "), format_size(cells)))
  cat(sprintf("  draws      %s of %d chain%s\n", format_size(posterior::ndraws(x$draws)), dim(x$draws)[2L], if (dim(x$draws)[2L] > 1L) "s" else ""))
  effective <- if (!any(known)) "unknown: there are too few draws" else
    sprintf("median %s over %d random cells, at least %s; largest rhat %s", format_size(round(stats::median(found[2L, known]))), length(known),
            format_size(round(min(found[2L, known]))), format_number(max(found[1L, ], na.rm = TRUE), 3))
  cat("  effective  ", effective, "\n", sep = "")
  cat("  every cell: summary(); tracked sums, concentrations: posterior::as_draws_array()\n")
  invisible(x)
}

#' @rdname sample_geography
#' @param object,x A fit made by `sample_geography()`.
#' @param level The name of an area variable, to summarise the cells of its areas; by default the smallest.
#' @param ... Not used.
#' @export
summary.noiseaware_geography <- function(object, level = NULL, ...) {
  names <- names(object$tree$levels)
  at <- if (is.null(level)) length(names) else match(check_choice(level, "level", names, "argument"), names)
  out <- cell_frame(object$tree, object$persons, at)
  if (at < length(names)) {
    key <- rep(object$tree$levels[[at]]$leaf, each = length(object$persons$names)) * length(object$persons$names) + seq_along(object$persons$names) - 1
    out$mean <- as.vector(rowsum(rowMeans(do.call(cbind, object$mean)), key))
    return(out)
  }
  means <- do.call(cbind, object$mean)
  within <- rowMeans(do.call(cbind, object$square))
  out$mean <- rowMeans(means)
  draws <- dim(object$draws)[1L]
  between <- if (ncol(means) > 1L) rowSums((means - out$mean)^2) / (ncol(means) - 1) else 0
  total <- within * (draws - 1) / draws + between
  out$sd <- sqrt(total)
  if (ncol(means) > 1L) out$rhat <- ifelse(within > 0, sqrt(total / within), NA_real_)
  out
}

#' @rdname sample_geography
#' @rawNamespace S3method(posterior::as_draws,noiseaware_geography)
as_draws.noiseaware_geography <- function(x, ...) x$draws

#' @rdname sample_geography
#' @rawNamespace S3method(posterior::as_draws_array,noiseaware_geography)
as_draws_array.noiseaware_geography <- function(x, ...) x$draws
