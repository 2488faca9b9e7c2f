# What several engines need to know about a release and a bound model.

# What was published of totals and how it is distributed about them, for read_noise() in src/r/read_problem.c: the numbers, the scale and the
# kernel of the noise of each, and the intervals that published() leaves. `at`: the numbers that are taken, by their places in the parts.
noise_fields <- function(parts = list(), at = seq_along(part_kernels(parts))) {
  flat <- function(name) as.double(unlist(lapply(parts, `[[`, name)))[at]
  published <- do.call(rbind, lapply(parts, function(p) if (p$mechanism$kernel == "published") p$interval))
  list(released = flat("value"), scale = flat("scale"), kernel = part_kernels(parts)[at], published = published_spec(published))
}

part_kernels <- function(parts) as.character(unlist(lapply(parts, function(p) rep(p$mechanism$kernel, length(p$index)))))

noise_variance <- function(kernel, scale) ifelse(kernel == "absolute", 2, 1) * scale^2

# NULL: all 1
released_times <- function(parts) {
  times <- unlist(lapply(parts, `[[`, "times"))
  if (any(times != 1)) times
}

prior_sd <- function(bound, words, chains) {
  theta <- with_callback_seed(bound, chain_seed(words, 0L), {
    .Call(ffi_model_prior, bound$spec, new_stream(words, chains), 200L)
  })$theta
  spread <- apply(theta[bound$unknown, , drop = FALSE], 1L, stats::mad)
  as.double(ifelse(is.finite(spread) & spread > 0, spread, 1))
}

# Whether the code runs without a refusal, whose reason nobody will read: formatting it takes longer than a short chain.
without_refusal <- function(code) {
  before <- session$reasons_wanted
  session$reasons_wanted <- FALSE
  on.exit(session$reasons_wanted <- before)
  tryCatch({
    force(code)
    TRUE
  }, noiseaware_error_method = function(e) FALSE)
}

refuse_clt <- function(bound, release, call) {
  statistics <- vapply(release_parts(release), function(p) class(p$statistic)[1L], "")
  stop_classed("method", c("Method {.val clt} needs the moments of the released statistic under the model.",
                           x = "They are not available for {.cls {unique(statistics)}} under {.cls {class(bound$model)[1]}}.",
                           i = "See {.fn supported}."), call = call)
}

# log density of published number k of a part, up to a constant, for exact totals
log_noise_of_totals <- function(part, k, total) {
  if (part$mechanism$kernel == "published") return(published_density(part$interval[k, ], matrix(total)))
  if (is_exact(part$mechanism)) return(ifelse(abs(total - part$value[k]) < 0.5, 0, -Inf))
  r <- (part$value[k] - total) / part$scale[k]
  if (part$mechanism$kernel == "absolute") -abs(r) else -r^2 / 2
}

# Between what clamps each column, over the statistics that have it.
tightest_bounds <- function(names, parts, of = seen_columns) {
  columns <- do.call(rbind, lapply(parts, function(p) of(p$statistic)[c("name", "lower", "upper")]))
  each <- function(values, choose) vapply(names, function(name) choose(values[columns$name == name]), 0, USE.NAMES = FALSE)
  list(lower = each(columns$lower, max), upper = each(columns$upper, min))
}

# Up to so many counts of a table are kept with each draw.
most_tracked <- 5000

# What a part of a release, or its queries, are sums of.
counted_statistic <- function(part) if (inherits(part$statistic, "stat_linear")) part$statistic$statistic else part$statistic

# Says what cliques the margins would need.
stop_crossing <- function(margins, bound, fault, call) {
  cliques <- bound$model$cliques
  inside <- vapply(margins, function(margin) any(vapply(cliques, function(c) all(margin %in% c), TRUE)), TRUE)
  wider <- chordal_cliques(c(cliques, margins))
  cells <- vapply(wider, function(c) prod(lengths(bound$levels)[c]), 0)
  wide <- wider[[which.max(cells)]]
  enough <- if (sum(cells) <= most_table_cells) "These terms cover all of them: {.code {clique_names(wider)}}." else
    "Terms that cover all of them have {format_size(sum(cells))} cells (the limit is {format_size(most_table_cells)}), and one of them has {length(wide)} variables."
  stop_classed("method", c("Method {.val collapse} cannot use this release: it has margins that are not inside a clique of the model.",
                           x = "No clique has all variables of {.code {clique_names(margins[!inside])}}.", x = fault, i = enough,
                           i = "Method {.val augment} can use them."), call = call)
}

# Cliques of a decomposable graph that has these sets inside: variables are taken out one by one, first those whose
# neighbours need the fewest edges to be all joined.
chordal_cliques <- function(sets) {
  variables <- unique(unlist(sets))
  adjacent <- matrix(FALSE, length(variables), length(variables), dimnames = list(variables, variables))
  for (set in sets) adjacent[set, set] <- TRUE
  diag(adjacent) <- FALSE
  found <- list()
  while (length(variables)) {
    missing <- vapply(variables, function(v) {
      near <- variables[adjacent[v, variables]]
      sum(!adjacent[near, near]) - length(near)
    }, 0)
    taken <- variables[which.min(missing)]
    near <- variables[adjacent[taken, variables]]
    adjacent[near, near] <- TRUE
    diag(adjacent) <- FALSE
    found <- c(found, list(c(taken, near)))
    variables <- setdiff(variables, taken)
  }
  largest_sets(found)
}

stop_collapse_part <- function(part, needs, call) {
  name <- if (part$name == "") "" else paste0(" ", part$name, ",")
  stop_classed("method", c("Method {.val collapse} needs, for this model, {needs}.",
                           x = "The release has{name} {describe_statistic(part$statistic)}.",
                           i = "Method {.val augment} can use it."), call = call)
}

# The noise of a total over the sampling variation that it has if the standard deviation of a
# record's contribution is a quarter of its range: the median of the components.
noise_ratio <- function(release) parts_noise_ratio(release_parts(release), release$n)

parts_noise_ratio <- function(parts, n) {
  ratios <- unlist(lapply(parts, function(part) {
    limits <- component_limits(part$statistic)
    if (is.null(limits) || part$statistic$kind == "records") return(NULL)
    4 * rep_len(mechanism_sd(part$mechanism, part$scale), nrow(limits)) / ((limits[, 2L] - limits[, 1L]) * sqrt(n))
  }))
  ratios <- ratios[is.finite(ratios) & ratios > 0]
  if (length(ratios)) stats::median(ratios) else 1
}

# R with R R' = a, a positive semidefinite: as many columns as its rank
semi_root <- function(a) {
  unit <- sqrt(diag(a))
  factor <- suppressWarnings(chol(a / outer(unit, unit), pivot = TRUE))
  rank <- attr(factor, "rank")
  unit * t(factor[seq_len(rank), order(attr(factor, "pivot")), drop = FALSE])
}

# what the numbers of records of these sites are called among the draws
size_names <- function(sites) if (length(sites)) site_variables("n", sites)

# variances among the entries of a covariance matrix, by name
is_variance <- function(parameters) {
  pair <- strsplit(sub("\\]$", "", sub("^cov\\[", "", parameters)), ",", fixed = TRUE)
  vapply(pair, function(p) length(p) == 2L && p[1L] == p[2L], TRUE)
}

has_exact_sites <- function(releases) any(vapply(releases, has_exact, TRUE))

# Does the prior have bounds, `within`?
bound_is_cut <- function(bound) any(startsWith(as.character(names(bound$spec$fields)), "within"))

# Noise of less than exp(-furthest) of its greatest density is left out.
furthest <- 60

log_noise_at <- function(part, k, total) {
  if (part$mechanism$kernel == "exact") return(ifelse(abs(total - part$value[k]) < 1e-9, 0, -Inf))
  log_noise_of_totals(part, k, total)
}

is_log_rate <- function(bound) bound$spec$name %in% c("poisson", "exponential")

# "prob[yes]" of site A is "prob[yes,A]", "age" is "age[A]": what packages read as an index
site_variables <- function(variables, site) paste0(sub("]$", "", variables), ifelse(endsWith(variables, "]"), ",", "["), site, "]")

# NA: latent
site_sizes <- function(releases) vapply(releases, function(r) as.double(r$n %||% NA_real_), 0)

# The columns of a record where they are also the columns of the complete-data statistic: their
# centres and roles; else NULL. A rider keeps its values, and the free columns' shape that goes with
# them; fixed columns are those that the free ones are normal given.
surrogate_design <- function(bound) UseMethod("surrogate_design")

# Up to this probability of a record outside the bounds the draws count as exact.
likely_outside <- 0.01

# Posterior expectation of the share of records outside the bounds (summed over
# the variables, so if anything too large: `summed`, or 1 if that is less), and the probability
# that there is one.
outside_bounds <- function(fit) {
  summed <- unlist(lapply(fit$chains, `[[`, "outside"))
  share <- pmin(summed, 1)
  n <- if (is.null(fit$problem$prior_n)) fit$problem$n %||% nobs(fit) else unlist(lapply(fit$chains, `[[`, "records"))
  c(summed = mean(summed), share = mean(share), any = mean(-expm1(n * log1p(-share))))
}

outside_lines <- function(fit, what = "exact") {
  if (isTRUE(fit$bound$natural)) return("  bounds     natural limits: no record lies outside")
  outside <- outside_bounds(fit)
  verdict <- if (outside[["any"]] <= likely_outside) paste(what, "if no record lies outside the bounds") else
    sprintf("NOT %s: records may lie outside the bounds", what)
  c(paste0("  bounds     ", verdict), share_line(fit))
}

share_line <- function(fit) {
  shown <- format_number(outside_bounds(fit), 2)
  sprintf("             expected share of records outside %s, probability of at least one %s", shown[["share"]], shown[["any"]])
}

hamiltonian_lines <- function(a) {
  c(if (any(a$divergent > 0)) sprintf("  divergent  %g transitions", sum(a$divergent)),
    if (any(a$deepest > 0)) sprintf("  too long   %g transitions, cut at 1,024 steps", sum(a$deepest)))
}

#' @export
engine_valid.engine <- function(engine, fit) outside_bounds(fit)[["any"]] <= likely_outside

# the other statistics of a release, taken for one of n records
without_size <- function(release, n) {
  parts <- release_parts(release)
  size <- vapply(parts, function(p) inherits(p$statistic, "stat_size"), TRUE)
  release$n <- n
  if (!any(size) || !is_several(release$statistic)) return(release)
  kept <- unlist(lapply(parts[!size], `[[`, "index"))
  for (field in c("statistic", "mechanism")) release[[field]] <- release[[field]][vapply(parts[!size], `[[`, "", "name")]
  for (field in c("value", "scale", "granularity")) release[[field]] <- release[[field]][kept]
  release
}

# ---- what C reported on a chain, for acceptance()---------------------------------------------

share_accepted <- function(told, kind) share_of(told[[paste0(kind, "_accepted")]], told[[paste0(kind, "_made")]])

share_of <- function(accepted, made) if (made > 0) accepted / made else NA_real_

hamiltonian_row <- function(told) {
  if (told$transitions == 0) return(data.frame(mean = 1)) # nothing is unknown
  data.frame(mean = told$acceptance / told$transitions, steps = told$leapfrogs / told$transitions, divergent = told$divergent, deepest = told$deepest)
}

# with the share of accepted steps of an unknown n
with_records <- function(row, fit, told) {
  if (is.null(fit$problem$prior_n)) row else cbind(row, records = told$size_accepted / told$size_made)
}

mean_words <- function(x) format_number(mean(x, na.rm = TRUE), 2)

share_words <- function(x) if (all(is.na(x))) "none" else paste("accepted", mean_words(x))

size_words <- function(fit, rows) if (!is.null(fit$problem$prior_n)) paste0("; of n: ", share_words(rows$records))

hamiltonian_words <- function(steps, acceptance) {
  sprintf("Hamiltonian: %s steps per trajectory, acceptance %s", format_number(mean(steps), 2), format_number(mean(acceptance), 2))
}

# The scatter of normal records needs more of them than there are columns.
least_size <- function(bound) nrow(bound$columns) + 1
