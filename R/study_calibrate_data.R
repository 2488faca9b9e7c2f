# calibrate(data = ): the owner's check on the records themselves. The truth is the estimate from the records without noise; each replicate is a release of
# the same records. Everything here is as confidential as the records.

# of records: their number, or a prior where it is not published
check_data_size <- function(data, n, neighbours, call = caller_env()) {
  check_class(data, "data", "data.frame", "NULL or a data frame of records", call = call)
  if (is.null(n)) return(if (neighbours == "replace") nrow(data) else prior_n("log_uniform"))
  if (inherits(n, "prior_n")) return(check_calibrated_size(n, neighbours, call))
  stop_argument("n", "left out, or a prior for the number of records, if {.arg data} is given", describe(n), call = call)
}

# as narrow_design() changes the statistic
data_in_bins <- function(data, statistic, model) if (is.null(data) || !describes_factors(model)) data else bin_records(data, statistic)

# Records and what they say of the parameters; estimates of the caller's own replace theirs.
calibrated_data <- function(bound, data, given, call = caller_env()) {
  all <- reported_parameters(bound)
  own <- setdiff(all, names(given))
  sd <- stats::setNames(rep(NA_real_, length(all)), all)
  if (length(own)) {
    draws <- parameter_matrix(fit_records(bound, data, check_run(4, 2000, 1000, 1, 1), call))[, own, drop = FALSE]
    given <- c(given, colMeans(draws))
    sd[own] <- apply(draws, 2L, stats::sd)
  }
  list(records = data, estimates = given[all], sd = sd)
}

# The same of the owner's records. How unlikely the noise is depends on none of their estimates: it is not ranked.
release_data <- function(problem) {
  data <- limit_contributions(problem$data$records, problem$statistic, problem$neighbours, stats::runif)
  release <- simulate_release(data, problem$statistic, problem$mechanism, neighbours = stated_neighbours(problem$neighbours))
  list(parameters = c(problem$data$estimates, if (inherits(problem$n, "prior_n")) c(n = nrow(data))), data = data, release = release,
       log_eta = numeric())
}

# ---- what is shown -----------------------------------------------------------------

data_summary <- function(x) {
  rows <- lapply(unique(x$results$variable), function(v) {
    r <- x$results[x$results$variable == v, ]
    data.frame(variable = v, estimate = r$truth[1L], replicates = nrow(r), coverage = mean(holds_truth(r)), z = mean((r$mean - r$truth) / r$sd),
               sd = mean(r$sd), own_sd = unname(x$problem$data$sd[v]), rhat = max(-Inf, r$rhat, na.rm = TRUE), ess = min(Inf, r$ess, na.rm = TRUE))
  })
  do.call(rbind, rows)
}

holds_truth <- function(results) results$lower <= results$truth & results$truth <= results$upper

print_data_table <- function(table, level) {
  shown <- data.frame(variable = table$variable, estimate = format_number(table$estimate), cover = sprintf("%.2f", table$coverage), z = sprintf("%.1f", table$z),
                      sd = format_number(table$sd), `own sd` = format_number(table$own_sd), `max rhat` = sprintf("%.3f", table$rhat),
                      `min ess` = sprintf("%.0f", table$ess), check.names = FALSE)
  names(shown)[3L] <- paste0("cover ", format_number(100 * level), "%")
  print(shown, row.names = FALSE)
}

# What the fits of an analyst will say: each class of warning or message, and in how many replicates.
data_condition_lines <- function(x) {
  told <- x$conditions[x$conditions$type != "error", ]
  vapply(unique(told$class), function(class) {
    these <- told[told$class == class, ]
    replicates <- length(unique(these$replicate))
    sprintf("%d of %d fits report (%s): %s", replicates, sum(!x$runs$failed), sub("^noiseaware_", "", class), shorten_text(these$message[1L], 100L))
  }, "")
}

interval_points <- function(results) {
  results <- results[order(results$mean), ]
  data.frame(at = seq_len(nrow(results)), value = results$mean, lower = results$lower, upper = results$upper, estimate = results$truth,
             held = holds_truth(results))
}

plot_held <- function(data, level) {
  ggplot2::ggplot(data, ggplot2::aes(x = .data$at)) +
    ggplot2::geom_hline(ggplot2::aes(yintercept = .data$estimate), linetype = "dashed", colour = "grey40") +
    ggplot2::geom_linerange(ggplot2::aes(ymin = .data$lower, ymax = .data$upper, colour = .data$held), linewidth = 0.7) +
    ggplot2::geom_point(ggplot2::aes(y = .data$value, colour = .data$held), size = 1) +
    ggplot2::scale_colour_manual(values = c(`TRUE` = "grey40", `FALSE` = "#b2182b"), guide = "none") +
    ggplot2::facet_wrap(ggplot2::vars(.data$variable), scales = "free_y") +
    ggplot2::labs(x = "releases, in the order of their means", y = NULL,
                  subtitle = sprintf("dashed: the records' own estimate; bars: %s%% intervals, red if they miss it", format_number(100 * level))) +
    theme_noiseaware()
}

check_calibrated_size <- function(n, neighbours, call = caller_env()) {
  if (!inherits(n, "prior_n")) return(check_count(n, "n", call = call))
  if (neighbours == "replace") {
    stop_classed("neighbours", "An unknown {.arg n} needs {.code neighbours = \"add_remove\"}.", call = call)
  }
  n
}
