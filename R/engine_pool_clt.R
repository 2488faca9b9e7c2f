# Complete pooling by a normal distribution for the totals of each site: method "clt" for several releases, see src/clt/several_sites.c.

# More coordinates, or released numbers, would take minutes to start: the map of NUTS and the marginal moves have a square matrix of them.
most_coordinates <- 2000L
most_marginal <- 300L

# How to pool: "collapse" if totals or rates can be moved; "tables" if counts can be and it is faster; otherwise "augment", which is exact, if that is
# affordable or nothing else works; otherwise "clt". `imputes`: may "augment" be considered?
pooled_method <- function(releases, bound, method, partial, imputes, call) {
  if (partial && method == "augment") check_imputes_sites(bound, imputes, call)
  if (method %in% c("clt", "augment")) return(method)
  refusal <- tryCatch({
    check_pooled_noise(releases, bound, pool_family(bound, call, has_exact_sites(releases)), call)
    NULL
  }, noiseaware_error_method = identity)
  if (is.null(refusal)) return("collapse")
  if (imputes && takes_tables(releases, bound, method, partial, call)) return("tables")
  if (method == "collapse") rlang::cnd_signal(refusal)
  sites_method(releases, bound, partial, imputes, refusal, call)
}

# Are counts moved as tables, because it was requested or is faster?
takes_tables <- function(releases, bound, method, partial, call) {
  if (!is_of_tables(bound)) return(FALSE)
  if (method == "collapse") check_pools_tables(releases, bound, list(), call)
  method == "collapse" || prefers_tables(releases, bound, partial) && pools_tables(releases, bound)
}

# "augment" or "clt"; `refusal`: why totals and rates cannot be moved
sites_method <- function(releases, bound, partial, imputes, refusal, call) {
  imputes <- !partial || without_refusal(check_imputes_sites(bound, imputes, call))
  thousand <- if (imputes) pool_augment_cost(releases, bound, partial) else Inf
  if (thousand <= auto_limits$affordable) return("augment")
  served <- !(partial && bound$spec$name == "expfam") && serves_by_clt(releases, bound, call)
  if (!served && thousand < Inf) return("augment")
  if (!served) rlang::cnd_signal(refusal)
  warn_method(c("Method {.val clt} was chosen, which is approximate: it uses a normal distribution for the totals of each site.",
                i = if (thousand < Inf) "Method {.val augment} is exact, but would take {about_time(thousand)} for 1,000 effective draws."))
  "clt"
}

# Moves of totals and rates ignore that bounds clamp records. If a short run expects more than this share of records outside, another method is chosen if there is one.
# (Small sites with much noise in the covariates are expected to have a smaller share outside, whether they do or not.)
most_left_out <- 0.01

serves_by_clt <- function(releases, bound, call) {
  without_refusal(for (release in releases) sites_distribution(bound, release, call))
}

# The same if the number of records of some sites is unknown. `prior_n`: its prior
pooled_sized_method <- function(releases, bound, method, partial, imputes, prior_n, call) {
  sites <- names(prior_n)
  moved <- if (imputes && method %in% c("auto", "collapse")) moved_sized(releases, bound, method == "collapse", partial, prior_n)
  hidden <- method != "clt" && any(vapply(releases[sites], whole_at_once, TRUE, bound))
  reason <- if ("n" %in% bound$parameters) "The model has a parameter called {.val n}, which is also the name of the numbers of records." else
    if (hidden) "A model or a statistic with a hook in R sees all records at once, and needs to know how many there are." else
      if (method == "collapse" && is.null(moved)) "Method {.val {method}} needs to know it."
  if (!is.null(reason)) {
    stop_classed("pool", c("The number of records must be known, but it is unknown for {.val {shorten_list(sites)}}.", x = reason,
                           i = "Describe the release by {.fn as_release} with an {.arg n} that you consider plausible."), call = call)
  }
  if (method == "clt") {
    if (!partial) check_clt_sized(bound, call)
    return("clt")
  }
  if (partial) check_imputes_sites(bound, imputes, call)
  moved %||% "augment"
}

# Shared parameters move along their gradient if the number of records of a site is unknown: src/pool/nuts_site_clt.c.
check_clt_sized <- function(bound, call) {
  cut <- bound_is_cut(bound)
  if (!cut && bound$spec$name != "expfam") return(invisible())
  stop_classed("method", c("To pool sites with unknown numbers of records, method {.val clt} needs the gradient of the density.",
                           x = if (cut) "The model has a truncated prior." else
                             "The model is {.fn model_expfam}, whose moments are integrals: gradients would need too many of them.",
                           i = "{.code method = \"augment\"} can fit it{if (!cut) ' if the model has r_records'}."), call = call)
}

# What is moved in place of records: "tables", totals by "collapse", or NULL. `asked`: whether it pays or not
moved_sized <- function(releases, bound, asked, partial, prior_n) {
  pays <- function() asked || !is_of_response_table(bound) || prefers_tables(releases, bound, partial, prior_n)
  if (pools_tables(releases, bound, prior_n) && pays()) return("tables")
  if (pools_totals(releases, bound, prior_n) && (asked || prefers_totals(releases, prior_n))) "collapse"
}

# If n is unknown, and a site is expected to have fewer records than this, imputing them takes no longer than moving its totals.
records_of_totals <- 500

prefers_totals <- function(releases, prior_n) {
  expected <- vapply(names(prior_n), function(site) typical_size_of(releases[[site]], prior_n[[site]]), 0)
  min(expected) >= records_of_totals
}

# Can the totals of sites be moved, their numbers of records unknown?
pools_totals <- function(releases, bound, prior_n) {
  without_refusal({
    if (pool_family(bound, NULL) != "totals") stop_classed("method", "")
    for (site in names(releases)) totals_site(releases[[site]], bound, prior_n[[site]], NULL)
  })
}

# The result of clt_distribution() for one site.
sites_distribution <- function(bound, release, call) {
  if (!is.null(bound$moments)) {
    stop_classed("method", c("Sites cannot be pooled under a model whose covariates are known by their moments: each site has other people.",
                             i = "{.code pool = \"none\"} accepts them."), call = call)
  }
  if (release$n < 2) stop_classed("method", "Method {.val clt} needs at least two records in each site.", call = call)
  clt_noise(release_parts(release), call)
  released_distribution(bound, release, call)
}

# What C needs to know about a site, and `distribution`, the result of clt_distribution(). `prior_n`: the prior of an unknown n
clt_site <- function(release, bound, words, chains, prior_n, call) {
  check_noise_on_totals("clt", release, call)
  check_no_quantiles(release_parts(release), "clt", call)
  size <- clt_size(release, prior_n)
  all <- names(release$value)
  release <- without_size(release, size$n)
  distribution <- sites_distribution(bound, release, call)
  index <- distribution$index
  site <- c(clt_noise(release_parts(release), call, index),
            list(n = size$n, moments = distribution$spec, index = match(names(release$value)[index], all), components = length(index),
                 distribution = distribution, size = size[names(size) != "n"]))
  c(site, clt_expectation(site, bound, words, chains, call))
}

pool_clt_problem <- function(releases, bound, words, chains, call) {
  each <- lapply(releases, clt_site, bound, words, chains, NULL, call)
  n <- vapply(each, `[[`, 0, "n")
  joined <- function(name) unlist(lapply(each, `[[`, name), use.names = FALSE)
  moving <- length(bound$unknown)
  # one sampler, which all of them support
  distribution <- list(spec = each[[1L]]$moments, index = seq_along(joined("released")),
                       innovations = all_sites(each, function(d) isTRUE(d$innovations)), update = all_sites(each, has_update),
                       integrates = !all_sites(each, function(d) !isTRUE(d$integrates)))
  sampler <- clt_sampler(distribution, moving, bound_is_cut(bound))
  check_pool_size(sampler, distribution, bound, length(each), moving, call)
  width <- vapply(each, `[[`, 0L, "components")
  list(method = "clt", family = c("clt_complete", "clt"), exact = FALSE, model = bound$spec, n = sum(n), size_prior = NULL,
       moments = list(name = "sites", share = unname(n) / sum(n), sites = unname(lapply(each, `[[`, "moments"))),
       released = joined("released"), scale = joined("scale"), kernel = joined("kernel"), ridge = joined("ridge"), drowned = all(joined("drowned")),
       sampler = sampler, conjugate = as.double(has_update(distribution)), passes = as.double(clt_passes(distribution, sampler, moving)),
       move_sd = prior_sd(bound, words, chains), search = clt_search(distribution, sampler), where = distribution$index, summed = distribution$index,
       sites = lapply(each, `[`, c("components", "index")), first = cumsum(width) - width, names = bound$parameters)
}

all_sites <- function(each, is) all(vapply(each, function(site) is(site$distribution), TRUE))

check_pool_size <- function(sampler, distribution, bound, sites, moving, call) {
  numbers <- length(distribution$index)
  most <- switch(sampler, nuts = most_coordinates - moving, marginal = , gibbs = most_marginal, most_coordinates)
  if (numbers <= most) return(invisible())
  stop_classed("method", c("Method {.val clt} accepts at most {most} released numbers from all sites together under this model.",
                           x = "{sites} sites have {numbers} numbers.", i = "{.code pool = \"none\"} accepts any number of sites."), call = call)
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_title.engine_pool_clt <- function(engine) " (approximate: a normal distribution for the totals)"

#' @export
engine_method.engine_pool_clt <- function(engine) "clt"

#' @export
engine_fewest.engine_pool_clt <- function(engine, bound) 2

#' @export
engine_lines.engine_pool_clt <- function(engine, fit) c(if (clt_leaves_out_bounds(fit$bound)) outside_lines(fit, "valid"), NextMethod())

#' @export
engine_lines.engine_pool_clt_complete <- function(engine, fit) clt_lines(fit)

#' @export
engine_diagnostics.engine_pool_clt_complete <- function(engine, fit, told) clt_diagnostics(fit, told)

#' @export
engine_moves.engine_pool_clt_complete <- function(engine, fit, rows) clt_moves(fit, rows)
