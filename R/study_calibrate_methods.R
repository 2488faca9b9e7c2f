# A calibration:
#   problem     what calibrate() was asked
#   results, runs, conditions   data frames, see calibrate()

new_calibration <- function(problem, runs) {
  stack <- function(name) {
    tables <- lapply(seq_along(runs), function(k) if (!is.null(runs[[k]][[name]])) cbind(replicate = k, runs[[k]][[name]]))
    do.call(rbind, tables)
  }
  field <- function(name, type) vapply(runs, `[[`, type, name)
  structure(list(
    problem = problem,
    results = stack("results") %||% empty_results(),
    runs = data.frame(replicate = seq_along(runs), seed = field("seed", 0L), seconds = field("seconds", 0),
                      method = field("method", ""), failed = field("failed", TRUE)),
    conditions = stack("conditions") %||% data.frame(replicate = integer(), type = character(), class = character(), message = character())
  ), class = "calibration")
}

of_data <- function(x) !is.null(x$problem$data)

empty_results <- function() {
  cbind(data.frame(replicate = integer(), variable = character()),
        as.data.frame(lapply(stats::setNames(nm = number_columns), function(name) numeric())))
}

# the runs that new_calibration() was given
calibration_runs <- function(x) {
  split_rows <- function(table) split(table[-1L], factor(table$replicate, x$runs$replicate))
  results <- split_rows(x$results)
  conditions <- split_rows(x$conditions)
  plain <- function(table) if (nrow(table)) `rownames<-`(table, NULL)
  lapply(seq_len(nrow(x$runs)), function(k) {
    c(as.list(x$runs[k, -1L]), list(results = plain(results[[k]]), conditions = plain(conditions[[k]])))
  })
}

#' Work with a calibration
#'
#' Summarise, print and combine calibrations of one design.
#'
#' @param x,object A calibration from [calibrate()].
#' @param ... For `c()`: more calibrations of the same design, with other seeds.
#'
#' @details
#' **Columns of `summary()`.**
#'
#' | column | meaning |
#' | --- | --- |
#' | `variable`, `replicates` | the variable, and the number of replicates |
#' | `coverage_50`, `coverage_90` | coverage of central intervals |
#' | `ks`, `p.value` | Kolmogorov-Smirnov test of uniform ranks |
#' | `in_band` | whether the ECDF of the quantiles stays inside the simultaneous 99 per cent band |
#' | `rhat`, `ess`, `draws` | the largest R-hat, the smallest effective number of draws, and the smallest number of ranked draws |
#'
#' If chains were too short to tell, the printed summary shows "unclear" instead of "inside" for `in_band`.
#'
#' For a check on the owner's records (`data` in [calibrate()]), the columns are `variable`, `estimate`, `replicates`, `coverage` of the stored intervals, `z`,
#' `sd`, `own_sd`, `rhat` and `ess`.
#' @return Depends on the function:
#'
#' | function | value |
#' | --- | --- |
#' | `summary()` | a data frame with a row for each variable, see Details |
#' | `c()`, `rbind()` | the replicates of all, renumbered |
#' | `extend(x, replicates)` | a calibration with `replicates` more, the same as from one longer run |
#' @section Errors: `noiseaware_error_argument`: calibrations of different designs, or with a replicate (a seed) in common.
#' @family evaluation
#' @examples
#' st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
#' cal <- calibrate(model_bernoulli(), st, mech_laplace(epsilon = 1), n = 20,
#'   replicates = 10, chains = 1, iter = 400, seed = 1)
#' summary(cal)
#' extend(cal, 5)
#' @name calibration_methods
NULL

#' @rdname calibration_methods
#' @export
c.calibration <- function(x, ...) {
  all <- list(x, ...)
  for (other in all) check_class(other, "...", "calibration", "calibrations made by calibrate()")
  texts <- lapply(all, function(a) problem_texts(a$problem))
  differ <- unique(unlist(lapply(texts, function(t) names(t)[!mapply(identical, t, texts[[1L]])])))
  if (length(differ)) {
    stop_classed("argument", "Only calibrations of the same design can be combined; these differ in {.field {differ}}.")
  }
  runs <- unlist(lapply(all, calibration_runs), recursive = FALSE)
  shared <- sum(duplicated(vapply(runs, `[[`, 0L, "seed")))
  if (shared) {
    stop_classed("argument", c("Calibrations must have different replicates to be combined, but {shared} appear{?s/} twice.",
                               i = "Run them with different seeds."))
  }
  new_calibration(x$problem, runs)
}

#' @rdname calibration_methods
#' @param deparse.level Not used.
#' @export
rbind.calibration <- function(..., deparse.level = 1) c(...)

#' @rdname calibration_methods
#' @export
summary.calibration <- function(object, ...) {
  if (of_data(object)) return(data_summary(object))
  results <- object$results
  ks <- ks_uniform(object)
  each <- lapply(ks$variable, function(v) results[results$variable == v, ])
  bands <- lapply(stats::setNames(nm = unique(vapply(each, nrow, 0L))), ecdf_band)
  rows <- Map(function(v, r) {
    data.frame(variable = v, replicates = nrow(r), coverage_50 = mean(inside_central(r$quantile, 0.5)),
               coverage_90 = mean(inside_central(r$quantile, 0.9)),
               ks = ks$statistic[ks$variable == v], p.value = ks$p.value[ks$variable == v],
               in_band = inside_band(r$quantile, bands[[as.character(nrow(r))]]), rhat = max(-Inf, r$rhat, na.rm = TRUE),
               ess = min(Inf, r$ess, na.rm = TRUE), draws = min(r$draws))
  }, ks$variable, each)
  do.call(rbind, unname(rows))
}

#' @rdname calibration_methods
#' @export
print.calibration <- function(x, ...) {
  problem <- x$problem
  failed <- sum(x$runs$failed)
  cat("<calibration> ", describe_model(bind_model(problem$model, problem$statistic)), "\n", sep = "")
  for (p in design_parts(problem$statistic, problem$mechanism)) {
    cat("  release     ", describe_statistic(p$statistic), "; ", format(p$mechanism), "\n", sep = "")
  }
  cat("  records     ", if (is.numeric(problem$n)) format_number(problem$n) else paste("not known; prior", format(problem$n)), "\n", sep = "")
  cat("  method      ", if (is.function(problem$method)) "a function" else unique(stats::na.omit(c(x$runs$method, problem$method)))[1L], "\n", sep = "")
  truth <- if (of_data(x)) "the records' own estimates (never publish these results)" else
    if (is.null(problem$parameters)) "drawn from the prior" else "fixed (ranks need not be uniform)"
  cat("  truth       ", truth, "\n", sep = "")
  cat("  replicates  ", nrow(x$runs), ", ", failed, " failed; ", format_number(sum(x$runs$seconds), 3), " s\n", sep = "")
  if (nrow(x$results)) {
    cat("\n")
    if (of_data(x)) print_data_table(summary(x), problem$level) else print_calibration_table(x)
  }
  for (line in calibration_warnings(x)) cat("! ", line, "\n", sep = "")
  invisible(x)
}

# With a fixed truth the ranks of a right posterior are not uniform. Where more than a tenth of the replicates have not converged, or have too few draws to rank
# a truth among them, ranks inside the band show nothing.
print_calibration_table <- function(x) {
  table <- summary(x)
  doubtful <- max(count_unconverged(x), count_short(x)) > 0.1 * sum(!x$runs$failed)
  shown <- data.frame(variable = table$variable, `cover 50%` = sprintf("%.3f", table$coverage_50),
                      `cover 90%` = sprintf("%.3f", table$coverage_90), KS = sprintf("%.3f", table$ks),
                      p = format.pval(table$p.value, digits = 2, eps = 1e-4), `99% band` = ifelse(!table$in_band, "OUTSIDE", if (doubtful) "unclear" else "inside"),
                      `max rhat` = sprintf("%.3f", table$rhat), `min ess` = sprintf("%.0f", table$ess), check.names = FALSE)
  if (!is.null(x$problem$parameters)) shown[c("KS", "p", "99% band")] <- NULL
  print(shown, row.names = FALSE)
}

calibration_warnings <- function(x) {
  first <- function(type) {
    rows <- x$conditions[x$conditions$type == type, ]
    if (nrow(rows)) {
      count <- length(unique(rows$replicate))
      sprintf("%d replicate%s with %s %s, first in %d: %s", count, if (count == 1L) "" else "s",
              if (type == "error") "an" else "a", type, rows$replicate[1L], shorten_text(rows$message[1L], 100L))
    }
  }
  high <- count_unconverged(x)
  few <- count_short(x)
  c(first("error"), if (of_data(x)) data_condition_lines(x) else first("warning"),
    if (high) unconverged_line(x, high),
    if (few) sprintf("A variable has fewer than 50 nearly independent draws in %d of %d replicates: run longer chains.", few, sum(!x$runs$failed)))
}

count_unconverged <- function(x) length(unique(x$results$replicate[which(x$results$rhat > apart_r_hat)]))

count_short <- function(x) length(unique(x$results$replicate[x$results$draws < 50]))

unconverged_line <- function(x, high) {
  sprintf("R-hat above %g in %d of %d replicates: their intervals and ranks cannot be trusted; run longer chains.", apart_r_hat, high, sum(!x$runs$failed))
}
