# Complete pooling by imputing the records of all sites: method "augment" for several releases, see src/method_augment.c.

pool_augment_problem <- function(releases, bound, words, chains, records, call) {
  check_records_distribution(bound, call)
  each <- lapply(stats::setNames(nm = names(releases)), function(name) {
    release <- releases[[name]]
    check_noise_on_totals("augment", release, call)
    site <- augment_parts(release, bound, call)
    size <- augment_size(release, records[[name]])
    size$n <- as.double(size$n)
    c(site, size, list(components = length(site$summed), index = site$summed, times = released_times(component_parts(release))[site$summed]))
  })
  check_room(sum(vapply(each, function(site) site$room %||% site$n, 0)))
  laid <- vapply(each, function(site) length(site$released), 0L)
  width <- vapply(each, `[[`, 0L, "components")
  list(method = "augment", family = "records", exact = TRUE, model = bound$spec, n = sum(vapply(each, `[[`, 0, "n")), size_prior = NULL,
       move_sd = move_sd(bound, words, chains), theta_sd = walk_sd(bound, words, chains), surrogate = list(), passes = -1,
       released = unlist(lapply(each, `[[`, "released"), use.names = FALSE), sites = each,
       where = unlist(Map(function(site, from) from + site$where, each, cumsum(laid) - laid), use.names = FALSE), summed = seq_len(sum(width)),
       first = cumsum(width) - width, names = c(bound$parameters, size_names(names(records))), site_records = records)
}

# what the numbers of records of these sites are called among the draws
size_names <- function(sites) if (length(sites)) site_variables("n", sites)

is_pooled_by_records <- function(fit) identical(fit$problem$family, "records")

# What can be sampled by imputing records, at a cost of seconds for 1,000 effective draws: Inf where it cannot.
pool_augment_cost <- function(releases, bound) {
  able <- without_refusal(check_records_distribution(bound)) && !has_exact_sites(releases)
  if (!able) return(Inf)
  n <- site_sizes(releases)
  features <- list(engine = records_engine(bound), size = bound$sizes$columns, n = sum(n),
                   noise = stats::median(vapply(releases, noise_ratio, 0)), levels = sum(lengths(bound$levels) - 1))
  predict_cost(features)$thousand
}

pool_augment_acceptance <- function(fit) {
  guarantees <- lapply(fit$release, privacy)
  pure <- all(vapply(guarantees, function(g) identical(g$delta, 0), TRUE))
  augment_rows(fit, if (pure) exp(-max(vapply(guarantees, `[[`, 0, "epsilon"))) else NA_real_)
}
