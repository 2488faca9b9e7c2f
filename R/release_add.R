#' A second release of the same records
#'
#' Combines numbers published about the same records, at different times or as different statistics, into one release. The posterior conditions on both.
#'
#' @param x A release, or a fit from [sample_posterior()].
#' @param second A release of the same records.
#' @param names Names for the statistics, one string for each release with a single statistic; a release with several keeps its names. `NULL`: `"first"`,
#'   `"second"`, and so on.
#' @param ... For a fit: arguments of [sample_posterior()] that change, as in [update()][update.noiseaware_fit].
#'
#' @details
#' You must know that the records are the same; no release can show it. The releases must agree on the number of records and on what they declare about
#' variables, but releases about other people may agree on these as well. Never combine releases about **different** records, and never add up their totals. For
#' this reason [c()] on releases is an error.
#'
#' `add_release(fit, second)`, which is `update(fit, add = second)`, samples the posterior given both. Chains start at draws of the first fit, so a shorter
#' warmup may be sufficient.
#'
#' The guarantee covers both releases together, by basic composition.
#'
#' @return A release, or a fit.
#' @section Errors: `noiseaware_error_release` (the releases cannot be about the same records, or share names), `noiseaware_error_neighbours`,
#'   `noiseaware_error_argument`.
#' @seealso [as_release()], which takes several statistics at once.
#' @family published numbers
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' first <- as_release(c("smoke=yes" = 73.2), asked, mech_laplace(epsilon = 0.5), n = 189)
#' second <- as_release(c(114.1, 75.3), asked, mech_gaussian(sd = 2), n = 189)
#' add_release(first, second, names = c("spring", "autumn"))
#'
#' fit <- sample_posterior(first, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' update(fit, add = second)
#' @export
add_release <- function(x, second, ...) {
  check_given()
  UseMethod("add_release")
}

#' @rdname add_release
#' @export
add_release.noiseaware_release <- function(x, second, names = NULL, ...) {
  check_given()
  check_no_dots(...)
  join_releases(x, second, names)
}

#' @export
add_release.default <- function(x, second, ...) {
  check_given()
  stop_argument("x", "a release, or a fit of one", describe(x))
}

#' @export
c.noiseaware_release <- function(...) {
  stop_classed("argument", c("Releases cannot be combined by {.fn c}, which does not say whether they are about the same records.",
                             i = "For the same records, use {.fn add_release}, or {.fn as_release} with a list of statistics.",
                             i = "Releases about different records are fitted separately, or pooled as a list of sites."))
}

join_releases <- function(first, second, names, call = caller_env()) {
  check_class(second, "second", "noiseaware_release", "a release made by release() or as_release()", call = call)
  check_no_public(list(first, second), "{.fn add_release} cannot combine releases that have", call)
  if (of_persons(first$neighbours) || of_persons(second$neighbours)) {
    stop_classed("neighbours", c("Releases for persons cannot be combined: each was made from records that were chosen for it alone.",
                                 i = "Release all statistics at once, as a named list."), call = call)
  }
  if (first$neighbours != second$neighbours) {
    stop_classed("neighbours", "Both releases must have the same neighbours, but the first has {.val {first$neighbours}} and the second {.val {second$neighbours}}.",
                 call = call)
  }
  if (!is.null(first$n) && !is.null(second$n) && first$n != second$n) {
    stop_classed("release", c("Releases about the same records must have the same number of records.",
                              x = "The first has {first$n}, the second {second$n}."), call = call)
  }
  releases <- name_releases(list(uncounted(first), uncounted(second)), names, call)
  # parts of different origin: their noise is described by its scale alone
  origin <- unique(vapply(releases, `[[`, "", "noise"))
  if (length(origin) > 1L) releases <- lapply(releases, with_plain_noise)
  all_of <- function(field) unlist(lapply(releases, `[[`, field))
  statistic <- do.call(c, lapply(releases, `[[`, "statistic"))
  mechanism <- do.call(c, lapply(releases, `[[`, "mechanism"))
  check_same_variables(statistic, call)
  result <- new_release(all_of("value"), statistic, mechanism, first$n %||% second$n, unname(all_of("scale")), unname(all_of("granularity")),
                        if (length(origin) == 1L) origin else "published", first$neighbours)
  parts <- design_parts(statistic, mechanism)
  check_record_noise_alone(parts, first$neighbours, call)
  names(result$value) <- unlist(lapply(parts, function(p) part_components(p$statistic, result$n, p$name)))
  names(result$scale) <- names(result$granularity) <- names(result$value)
  check_invariants(release_parts(result), result$n, call)
  result
}

ordinals <- c("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

# releases whose statistics and mechanisms are named lists
name_releases <- function(releases, names, call) {
  single <- !vapply(releases, function(r) is_several(r$statistic), TRUE)
  taken <- unlist(lapply(releases[!single], function(r) names(r$statistic)))
  if (is.null(names)) {
    # counted by what there is already: a third release is the third
    free <- setdiff(if (single[1L]) ordinals else ordinals[-seq_len(min(length(releases[[1L]]$statistic), 9L))], taken)
    names <- free[seq_len(sum(single))]
  }
  if (!checkmate::test_character(names, len = sum(single), any.missing = FALSE, min.chars = 1L, unique = TRUE)) {
    stop_argument("names", paste("NULL, or", sum(single), "different strings"), describe(names), call = call)
  }
  twice <- unique(c(intersect(names, taken), taken[duplicated(taken)]))
  if (length(twice)) {
    stop_classed("release", c("Statistics of both releases must have different names, but {.val {twice}} {?is/are} in both.",
                            i = if (any(single)) "Give {.arg names}."), call = call)
  }
  releases[single] <- Map(function(release, name) {
    release$statistic <- stats::setNames(list(release$statistic), name)
    release$mechanism <- stats::setNames(list(release$mechanism), name)
    release
  }, releases[single], names)
  releases
}

# The noise of a release made on a grid as one whose scale was published.
with_plain_noise <- function(release) {
  for (part in release_parts(release)) {
    mechanism <- part$mechanism
    if (!mechanism$name %in% names(exact_families)) next
    each <- length(part$scale) / length(part$statistic$components)
    scale <- stats::setNames(part$scale[seq(1L, length(part$scale), by = each)], part$statistic$components)
    make <- switch(mechanism$name, laplace = mech_laplace, discrete_laplace = mech_discrete_laplace, gaussian = mech_gaussian, mech_discrete_gaussian)
    plain <- do.call(make, stats::setNames(list(scale), if (endsWith(mechanism$name, "laplace")) "scale" else "sd"))
    after <- mechanism$after
    release$mechanism[[part$name]] <- if (is.null(after)) plain else do.call(published, c(list(plain), after))
  }
  release$granularity[] <- 0
  release
}

# A variable is a number or a factor, with the same levels, wherever it is.
check_same_variables <- function(statistics, call) {
  of <- do.call(rbind, unname(lapply(statistics, function(s) {
    variables <- unique(s$columns$variable)
    kind <- vapply(variables, function(v) if (is.null(s$levels[[v]])) "a number" else paste(s$levels[[v]], collapse = ", "), "")
    data.frame(variable = variables, kind = unname(kind))
  })))
  of <- unique(of)
  twice <- unique(of$variable[duplicated(of$variable)])
  if (length(twice) == 0L) return(invisible())
  shown <- of$kind[of$variable == twice[1L]]
  stop_classed("release", c("Variables must be the same in both releases, with the same levels in the same order, but {.var {twice}} {?is/are} not.",
                            x = "{.var {twice[1L]}}: {shown[1L]}; {shown[2L]}."), call = call)
}
