# The values that design() uses for parameters that were not given.

# The given parameters and, for the others, the middle of the prior, with the response of a regression where its prior has it at the mean of the covariates.
# Only the given ones where there is no such point.
design_centre <- function(bound, given) {
  if (is.null(given) || all(bound$parameters %in% names(given))) return(given)
  draws <- reported(bound, .Call(ffi_model_prior, bound$spec, new_stream(c(1, 2)), 10000L)$theta)
  centre <- prior_middle(draws)
  centre[names(given)] <- given
  centre <- centre_response(centre, draws, bound, names(given))
  tryCatch({
    bound_theta(bound, centre)
    centre
  }, noiseaware_error = function(e) given)
}

prior_middle <- function(draws) {
  centre <- apply(draws, 2L, stats::median)
  # probabilities add up to one in their means, not in their medians
  share <- apply(draws, 2L, function(x) min(x) >= 0 && max(x) <= 1)
  centre[share] <- colMeans(draws)[share]
  # what is left of a prior about zero is Monte Carlo error
  replace(centre, abs(centre) < 0.05 * apply(draws, 2L, stats::mad), 0)
}

# The prior says where the response is at the mean of the covariates; an intercept is where it is at 0, far from them.
centre_response <- function(centre, draws, bound, given) {
  names <- coefficients_of(bound)
  if (is.null(response_of(bound)) || !identical(names[1L], "(Intercept)") || names[1L] %in% given || !all(names %in% colnames(draws))) return(centre)
  at <- centre[paste0("mean[", names[-1L], "]")]
  at[is.na(at)] <- 0
  middle <- stats::median(draws[, names, drop = FALSE] %*% c(1, at))
  centre[[names[1L]]] <- middle - sum(centre[names[-1L]] * at)
  centre
}

# ---- the budget that is needed --------------------------------------------------------------

shown_step <- 5 # seconds

# Designs `of` budgets, until the largest of the ratios among `wanted` variables is at most `ratio`, and within 2% of it. The attribute `needed` has the budget
# with the largest ratio that is not above it, or that came closest. The way there takes fewer replicates: of the same releases, and their ratios
# are near those of all.
search_budget <- function(ratio, of, wanted, budget, replicates, call = caller_env()) {
  fewer <- ceiling(replicates / 4)
  rough <- if (fewer >= least_replicates) search_steps(ratio, function(value) of(value, fewer), wanted, budget, 1, budget_found, call)
  steps <- search_steps(ratio, of, wanted, budget, if (is.null(rough)) 1 else rough$at[rough$best], 0.02, call)
  passed <- !rough$at %in% steps$at
  at <- c(rough$at[passed], steps$at)
  reached <- steps$reached[steps$best]
  rows <- steps$tried[[steps$best]]
  rows <- rows[rows$variable %in% wanted, ]
  needed <- data.frame(budget = if (abs(reached / ratio - 1) < budget_found) steps$at[steps$best] else NA_real_, ratio = reached,
                       variable = rows$variable[which.max(rows$ratio)], least = min(at), most = max(at))
  structure(c(rough$tried[passed], steps$tried)[order(at)], needed = needed, wanted = wanted)
}

# The mean width of fewer intervals does not show the way.
least_replicates <- 8L

# Budgets `at`, with what was `tried` there and the largest ratio that it `reached`; the `best` of them. Steps that take long are shown.
search_steps <- function(ratio, of, wanted, budget, at, within, call, most = 9L) {
  tried <- list()
  reached <- numeric()
  aim <- max(0.99 * ratio, (1 + ratio) / 2)
  for (k in seq_len(most)) {
    began <- elapsed_seconds()
    tried[[k]] <- of(at[k])
    seconds <- elapsed_seconds() - began
    reached[k] <- max(tried[[k]]$ratio[tried[[k]]$variable %in% wanted])
    if (is.na(reached[k])) stop_classed("method", "No replicate with the budget {at[k]} gave an interval: {.fn calibrate} shows their errors.", call = call)
    if (seconds > shown_step) {
      count <- tried[[k]]$replicates[1L]
      cli::cli_inform(paste("{budget} = {format_number(at[k], 3)}, {count} replicates: intervals up to {format_number(reached[k], 3)} times as wide as without noise;",
                            "{format_number(ratio, 3)} is wanted."),
                      class = c("noiseaware_message_search", "immediateCondition"))
    }
    if (reached[k] <= ratio && reached[k] > (1 - within) * ratio) break
    further <- next_budget(at, reached, aim)
    if (any(abs(log(further / at)) < 0.02) || further < 1e-4 || further > 1e4) break
    at[k + 1L] <- further
  }
  list(at = at[seq_along(tried)], tried = tried, reached = reached,
       best = which.min(abs(log(reached / ratio)) + ifelse(reached > ratio, log(1 + budget_found), 0)))
}

# what a ratio concerns: some given parameters; else of a regression its coefficients
main_parameters <- function(bound, given) {
  if (length(given) && !setequal(given, bound$parameters)) return(given)
  names <- if (!is.null(response_of(bound))) intersect(coefficients_of(bound), bound$parameters)
  if (length(names)) names else bound$parameters
}

# A ratio so far from the one that was asked for is not that one.
budget_found <- 0.1

# Noise adds to the squared width about what is inversely proportional to the square of the budget: a line in logarithms.
next_budget <- function(at, ratio, target) {
  excess <- log(pmax(ratio^2 - 1, 1e-3))
  wanted <- log(target^2 - 1)
  above <- excess > wanted
  guess <- if (any(above) && !all(above)) {
    low <- which(above)[which.min(excess[above])]
    high <- which(!above)[which.max(excess[!above])]
    stats::approx(excess[c(low, high)], log(at[c(low, high)]), wanted)$y
  } else {
    nearest <- which.min(abs(excess - wanted))
    log(at[nearest]) + min(max((excess[nearest] - wanted) / 2, -3), 3)
  }
  signif(exp(guess), 3)
}
