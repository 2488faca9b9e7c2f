# Partial pooling and walks of counts without records: the table of each site, given its parameters, by transfers (src/table/table_chain.c), and what
# sites share with their parameters given the tables (src/pool/parameters_nuts.c). The cost does not depend on the number of records, which may be unknown. Responses with
# levels whose covariates are all factors are also moved in this way, as tables of all of them (R/engine_collapse_glm.R).

# Factors, or a response and covariates that are all factors
is_of_tables <- function(bound) bound$spec$name %in% c("categorical", "loglinear") || is_of_response_table(bound)

is_of_response_table <- function(bound) inherits(as_table(bound), "bound_glm_table")

cells_of_table <- function(bound) if (is_of_response_table(bound)) prod(lengths(as_table(bound)$levels)) else bound$sizes$complete

# A table costs about as much as so many imputed records a cell: those of counts; those that determine a response, whose coefficients all sites share, or whose sites have
# coefficients of their own, which walk given the records and move by their slopes given the table. Exact numbers are kept by tables alone.
records_of_a_cell <- c(counts = 60, complete = 200, partial = 10)

prefers_tables <- function(releases, bound, partial, prior_n = list()) {
  if (has_exact_sites(releases)) return(TRUE)
  n <- vapply(names(releases), function(site) typical_size_of(releases[[site]], prior_n[[site]]), 0)
  kind <- if (!is_of_response_table(bound)) "counts" else if (partial) "partial" else "complete"
  mean(n) > records_of_a_cell[[kind]] * cells_of_table(bound)
}

typical_size_of <- function(release, prior_n) release$n %||% typical_size(release, prior_n)$n

# Raises an error for sites whose counts cannot be moved as tables.
check_pools_tables <- function(releases, bound, prior_n, call) {
  if (!is_of_tables(bound)) {
    stop_classed("method", paste("Tables of sites are moved under models of factors: {.fn model_categorical}, {.fn model_naive_bayes}, {.fn model_table} and",
                                 "{.fn model_glm}."), call = call)
  }
  for (site in names(releases)) site_table(releases[[site]], bound, prior_n[[site]], call)
  invisible()
}

pools_tables <- function(releases, bound, prior_n = list()) without_refusal(check_pools_tables(releases, bound, prior_n, NULL))

# The problem of one site's table given its parameters: a table whose probabilities are not integrated out.
site_table <- function(release, bound, prior_n, call) {
  bound <- as_table(bound)
  release <- release_for(bound, release)
  if (release_crosses(release, bound)) {
    stop_classed("method", c("Margins that cross the cliques of the model cannot be pooled as tables.",
                             i = "{.code method = \"augment\"} imputes the records."), call = call)
  }
  bound$parts <- lapply(bound$parts, function(part) {
    part$host <- part$host %||% length(part$parents)
    part
  })
  class(bound) <- c("bound_cells", "bound_table", "noiseaware_bound")
  problem <- collapse_problem(release, bound, if (is.null(release$n)) prior_n %||% prior_n("log_uniform"), call)
  problem$fields$held <- 1
  problem$fields$tracked <- 0
  problem
}

pool_tables_problem <- function(releases, bound, prior_n, call) {
  each <- lapply(stats::setNames(nm = names(releases)), function(name) {
    table <- site_table(releases[[name]], bound, prior_n[[name]], call)
    list(table = table, n = table$n, released = table$released, where = table$where, components = length(table$released),
         index = table$summed, times = table$times[table$summed])
  })
  width <- vapply(each, `[[`, 0L, "components")
  first <- cumsum(width) - width
  list(method = "pool_records", family = "tables", exact = TRUE, model = as_table(bound)$model_spec %||% bound$spec, n = sum(vapply(each, `[[`, 0, "n")),
       size_prior = NULL, released = unlist(lapply(each, `[[`, "released"), use.names = FALSE), sites = each,
       where = unlist(Map(function(site, from) from + site$where, each, first), use.names = FALSE), summed = seq_len(sum(width)),
       first = first, names = c(bound$parameters, size_names(names(prior_n))), site_priors = prior_n)
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_title.engine_pool_tables <- function(engine) " (exact: the tables of all sites are moved)"

#' @export
engine_diagnostics.engine_pool_tables <- function(engine, fit, told) {
  kinds <- c("pair", "swap", "contrast", "size", "kept")
  made <- sum(unlist(told[paste0(kinds, "_made")]))
  row <- data.frame(mean = sum(unlist(told[paste0(kinds, "_accepted")])) / made, together = told$together, steps = told$together_steps,
                    divergent = told$together_divergent)
  if (length(fit$problem$site_priors)) row$records <- told$size_accepted / told$size_made
  row
}

#' @export
engine_moves.engine_pool_tables <- function(engine, fit, rows) {
  c(sprintf("tables   transfers between cells: accepted %s%s", format_number(mean(rows$mean), 2),
            if (is.null(rows$records)) "" else sprintf("; births and deaths: %s", format_number(mean(rows$records), 2))),
    sprintf("sites    shared and site parameters given the tables: Hamiltonian, %s steps per trajectory, acceptance %s",
            format_number(mean(rows$steps), 2), format_number(mean(rows$together), 2)))
}
