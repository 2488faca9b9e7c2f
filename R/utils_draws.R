# Draws as matrices and arrays, and their quantiles.

# variables of these names; for posterior::subset_draws() "x" also means "x[north]"
exactly <- function(draws, variables) posterior::as_draws_array(unclass(draws)[, , variables, drop = FALSE])

# equal-tailed interval of every column: 2 x columns
draws_interval <- function(draws, level) draws_quantiles(draws, c((1 - level) / 2, 1 - (1 - level) / 2))

# Two or more quantiles of every column: probabilities x columns. Of S independent draws the k-th in order has k / (S + 1) of the distribution below
# it, on average; so these (type 6) hold their probability on average, and R's usual ones (type 7) less: 94.4% for 95% of 300 draws.
draws_quantiles <- function(draws, probabilities) apply(draws, 2L, stats::quantile, probabilities, type = 6, names = FALSE)

# matrices draws x parameters, one a chain, cut to the shortest
chains_array <- function(chains) {
  kept <- min(vapply(chains, nrow, 0L))
  chains <- lapply(chains, function(c) if (nrow(c) == kept) c else c[seq_len(kept), , drop = FALSE])
  shape <- c(kept, length(chains), ncol(chains[[1L]]))
  names <- list(NULL, NULL, colnames(chains[[1L]]))
  array <- if (length(chains) == 1L) array(chains[[1L]], shape, names) else array(0, shape, names)
  if (length(chains) > 1L) for (k in seq_along(chains)) array[, k, ] <- chains[[k]]
  posterior::as_draws_array(array)
}

# draws x parameters, chains one after the other
parameter_matrix <- function(fit) plain_matrix(fit$draws)

plain_matrix <- function(draws) {
  values <- posterior::as_draws_matrix(draws)
  matrix(values, nrow(values), dimnames = list(NULL, posterior::variables(draws)))
}

# and those that users do not see: see new_fit()
all_parameters <- function(fit) if (is.null(fit$hidden)) parameter_matrix(fit) else cbind(parameter_matrix(fit), plain_matrix(fit$hidden))

# of the model, in its order
own_parameters <- function(fit) all_parameters(fit)[, fit$bound$parameters, drop = FALSE]

# Monte Carlo standard errors of the means of columns of numbers, a row for each draw of the fit
column_errors <- function(x, fit) {
  iterations <- posterior::niterations(fit$draws)
  unname(without_capping(apply(x, 2L, function(column) as.double(posterior::mcse_mean(matrix(column, iterations))))))
}

# Without a warning of posterior's on a few nearly independent draws, of which the package has its own.
without_capping <- function(code) {
  withCallingHandlers(code, warning = function(w) if (startsWith(conditionMessage(w), "The ESS has been capped")) invokeRestart("muffleWarning"))
}

# Data sets whose rows follow each other in one; the number of rows of each.
split_sets <- function(data, sizes) {
  Map(function(last, size) list2DF(lapply(data, `[`, last - size + seq_len(size)), size), cumsum(sizes), sizes)
}

# the same backwards
stack_sets <- function(sets) {
  if (length(sets) == 1L) return(sets[[1L]])
  list2DF(lapply(stats::setNames(nm = names(sets[[1L]])), function(v) do.call(c, lapply(sets, `[[`, v))))
}

# ---- tables of draws ------------------------------------------------------

# A row for each variable: of a share, numbers below a ten-thousandth of the row's largest are 0.
without_traces <- function(numbers, variable) {
  numbers[] <- lapply(numbers, as.double)
  largest <- do.call(pmax, c(abs(numbers), na.rm = TRUE))
  share <- startsWith(variable, "prob[")
  numbers[] <- lapply(numbers, function(v) ifelse(share & abs(v) < 1e-4 * largest, 0, v))
  numbers
}

# Of normal draws the standard deviation would be the 95% interval's length by 3.92; a few draws far out decide it where it is so much more.
heavy_tailed <- 1.5

# `table`: see printed_summary()
heavy_variables <- function(table) table$variable[which(table$sd > heavy_tailed * (table$q97.5 - table$q2.5) / 3.92)]

# The same table, to be shown, with median and mad in place of an unreliable mean and sd
with_medians <- function(table, draws) {
  heavy <- heavy_variables(table)
  at <- match(heavy, table$variable)
  values <- posterior::as_draws_matrix(draws)[, heavy, drop = FALSE]
  table$mean[at] <- apply(values, 2L, stats::median)
  table$sd[at] <- apply(values, 2L, stats::mad)
  table$variable[at] <- paste0(heavy, rep("*", length(heavy)))
  table
}
