# Troubles of a fit. They are reported by a warning when it is sampled, once more per session by functions that report intervals, by summary(), and in the
# print.
#
# A trouble is a list of `kind`, the warning's class after "noiseaware_warning_", and `text`, a sentence followed by details. They are kept in the fit, so
# that nothing is computed twice.

# Beyond these a fit is warned of, and marked in its print (Vehtari et al. 2021): with
# 400 effective draws the error of a mean is a twentieth of the sd, and the error of an
# interval's end about an eighth of it.
highest_r_hat <- 1.01
fewest_effective <- 400

# Beyond this chains have not met: nothing of their length can be estimated, and a
# replicate's ranks cannot be trusted. Replicates are too short and too many for 1.01.
apart_r_hat <- 1.05

# Draws took time, and a diagnostic of them that fails must not lose them: NULL then, with a warning.
try_diagnostic <- function(what, code, call) {
  tryCatch(code, error = function(e) {
    reason <- conditionMessage(e)
    cli::cli_warn(c("The draws are complete, but a check of the fit failed and was skipped: {what}.", x = "The reason: {reason}"),
                  class = "noiseaware_warning_diagnostic", call = call)
    NULL
  })
}

tell_troubles <- function(fit, call) {
  for (trouble in fit$troubles) rlang::warn(trouble$text, class = paste0("noiseaware_warning_", trouble$kind), call = call)
}

# For functions that report intervals. A fit is known by its draws, so that copies
# are one fit, and one that is read from a file in another session is reported again.
remind_troubles <- function(fit, call = caller_env()) {
  if (session$quiet || length(fit$troubles) == 0L) return(invisible())
  key <- rlang::hash(list(fit$draws, fit$troubles))
  if (key %in% session$told) return(invisible())
  session$told <- c(session$told, key)
  first <- lapply(fit$troubles, function(trouble) list(kind = trouble$kind, text = c(trouble$text[[1L]], i = "The printed fit has the details.")))
  tell_troubles(list(troubles = first), call)
}

# the sentences alone
trouble_lines <- function(fit) vapply(fit$troubles, function(trouble) trouble$text[[1L]], "")

# ---- convergence -----------------------------------------------------------------

# Rows `mean`, `sd`, `lower` and `upper` (ends of the 95% interval), `rhat`, `ess` and, if asked, `tail`, effective draws in the tails; a column for each
# variable, NA if some draws are not finite.
draws_diagnostics <- function(draws, tail = FALSE) {
  values <- array(as.double(draws), dim(draws))
  bad <- colSums(!is.finite(values), dims = 2L) > 0
  rows <- c("mean", "sd", "lower", "upper", "rhat", "ess", if (tail) "tail")
  found <- matrix(NA_real_, length(rows), dim(values)[3L], dimnames = list(rows, posterior::variables(draws)))
  values <- values[, , !bad, drop = FALSE]
  if (!all(bad)) found[, !bad] <- rbind(.Call(ffi_diagnostics, values, 0.025), if (tail) .Call(ffi_tail_ess, values))
  found[is.nan(found)] <- NA
  found
}

# R-hat and bulk effective draws, named after the parameters
mixing_diagnostics <- function(fit) {
  found <- draws_diagnostics(fit$draws)
  row <- function(name) stats::setNames(found[name, ], colnames(found)) # of one variable, `[` drops its name
  list(rhat = row("rhat"), ess = row("ess"))
}

# chains only: baselines draw independently
convergence_trouble <- function(fit) {
  if (is.null(fit$chains)) return(NULL)
  found <- mixing_diagnostics(fit)
  lines <- mixing_lines(fit, found$rhat, found$ess)
  if (length(lines) == 0L) return(NULL)
  details <- c(lines[-1L], mixing_advice(fit, found$rhat, found$ess))
  list(list(kind = "convergence", text = c(lines[1L], stats::setNames(details, rep(c("x", "i"), c(length(lines) - 1L, length(details) - length(lines) + 1L))))))
}

mixing_lines <- function(fit, rhat, ess) {
  unknown <- names(rhat)[is.na(rhat) | is.na(ess)]
  high <- names(rhat)[which(rhat > highest_r_hat)]
  low <- names(rhat)[which(ess < fewest_effective)]
  differ <- if (dim(fit$draws)[2L] == 1L) "the halves of the chain differ" else "the chains differ"
  c(if (length(unknown)) paste0("R-hat or the number of effective draws is unknown for ", shorten_list(unknown, 5L),
                                   ": there are too few draws, or they are all equal."),
    # upwards and downwards, so that what just misses the limit does not look like it
    if (length(high)) sprintf("R-hat above %g for %s (up to %s): %s.", highest_r_hat, shorten_list(high, 5L),
                              format_number(ceiling(1000 * max(rhat, na.rm = TRUE)) / 1000, 4), differ),
    if (length(low)) sprintf("Fewer than %g effective draws for %s (as few as %s): intervals are imprecise.", fewest_effective, shorten_list(low, 5L),
                             format_number(floor(min(ess, na.rm = TRUE)), 2)))
}

# of the middle and the tails. A tail of ties, as of a small number of records, has no effective draws of its own: all draws are up to its quantile.
fewest_draws <- function(table) pmin(as.numeric(table$ess_bulk), as.numeric(table$ess_tail), na.rm = TRUE)

# in a print, from its table
mixing_marks <- function(fit, table) {
  named <- function(x) stats::setNames(as.numeric(x), table$variable)
  rhat <- named(table$rhat)
  ess <- named(fewest_draws(table))
  lines <- mixing_lines(fit, rhat, ess)
  for (line in c(lines, if (length(lines)) mixing_advice(fit, rhat, ess))) cat("! ", line, "\n", sep = "")
}

# ---- what to do about it -----------------------------------------------------------

# Sentences: how much longer to run, where to start, what else to run.
mixing_advice <- function(fit, rhat, ess) {
  if (is.null(fit$chains)) return("Draw more.")
  more <- further_iterations(fit, rhat, ess)
  c(longer_advice(fit, more), engine_advice(engine_of(fit), fit), start_advice(fit, rhat),
    if (is.na(more) || more > 4 * fit$run$thin * nrow(fit$draws)) c(engine_samplers(engine_of(fit), fit), other_methods(fit)))
}

# Iterations that would bring 500 effective draws, were the chains to go on as they
# did; NA where these draws cannot tell. The effective number of chains that have
# not met is about the number of chains, however long they would have to be.
further_iterations <- function(fit, rhat, ess) {
  if (anyNA(rhat) || anyNA(ess) || max(rhat) > apart_r_hat || min(ess) < 10 * dim(fit$draws)[2L]) return(NA_real_)
  fit$run$thin * nrow(fit$draws) * (500 / min(ess) - 1)
}

longer_advice <- function(fit, more) {
  such <- function(count) format(signif(max(count, 100), 1), scientific = FALSE)
  if (!is.na(more)) return(sprintf("Run longer, for example extend(fit, %s).", such(more)))
  if (nrow(fit$draws) < 100L) return(sprintf("Run longer, for example extend(fit, %s): there are too few draws to estimate how much longer.", such(500 * fit$run$thin)))
  sprintf("How much longer the chains must run cannot be estimated from chains like these; try extend(fit, %s) and check again.", such(9 * fit$run$iter))
}

# Chains that hardly left where they started: at draws from the prior. The prior is
# not to blame, it is what the analyst believes; where to start is a free choice.
start_advice <- function(fit, rhat) {
  worst <- names(rhat)[which.max(rhat)]
  if (length(worst) == 0L || rhat[[worst]] <= 1.5 || is_pooled(fit)) return(NULL)
  prior <- with_seed(1L, prior_draws(fit, 200L))
  if (!worst %in% fit$bound$parameters) return(NULL)
  within <- mean(apply(posterior::extract_variable_matrix(fit$draws, worst), 2L, stats::sd))
  if (stats::mad(prior[, worst]) < 100 * within) return(NULL)
  sprintf("Chains start at draws from the prior, which is over 100 times as wide as the range of a chain (%s): supply starting values (`init`).", worst)
}

# Other methods that can fit the release, what they are expected to cost, and what they cost in exactness.
other_methods <- function(fit) {
  if (is_pooled(fit)) return(NULL)
  able <- setdiff(able_methods(fit$release, fit$bound, list()), fit$method)
  quick <- Filter(function(method) isTRUE(engine_exact(as_engine(method), fit$bound)) && !engine_imputes(as_engine(method)), able)
  if (length(quick)) able <- Filter(function(method) !isFALSE(engine_exact(as_engine(method), fit$bound)), able)
  lines <- sprintf("method = \"%s\" %s", able, unlist(ask_engines(able, engine_offer, fit$bound)))
  if (isTRUE(fit$bound$callbacks)) return(if (length(able)) lines)
  prior_n <- fit$problem$prior_n
  costs <- vapply(able, function(method) predict_cost(cost_features(method, fit$release, fit$bound, prior_n = prior_n))$thousand, 0)
  if (length(able)) paste0(lines, ifelse(is.finite(costs), sprintf(" 1,000 effective draws take %s.", vapply(costs, about_time, "")), ""))
}

# ---- trajectories --------------------------------------------------------------------

# A trajectory that diverged was refused, so no draw is wrong, but chains may be kept from a part of the posterior, where its
# density changes within less than a step. Of such a part, of probability m, right chains would enter, and leave, in m of the
# effective draws, since one of these is about as long as it takes to go anywhere; each time these chains try they diverge. So
# divergences per effective draw say how much is out of reach, however long chains are. Below three tenths of the tail of a 95%
# interval they are no trouble. Of 72 runs on funnels (Neal 2003) those with right tails had up to 0.007, those that lacked half of the
# lowest twentieth and diverged at all had 0.01 or more, up to 100, but for one with 0.0025. So a warning may still be of a fit
# that is right. Stan's rule, any divergence, warns of all of these. Where a table is imputed, a trajectory only counts if the short one
# that follows it diverged as well (src/table/theta_nuts.c): of five right fits of "cumulative" with 0.013 to 0.09 the other way, none had one.
#
# Method "augment" has trajectories along an approximation of the posterior, as proposals alongside sweeps and moves that need none.
# One that diverged there says nothing of the posterior: with one in 14, posteriors were those of moves without trajectories.
most_unreached <- 0.3 * 0.025

unreached <- function(divergent, effective) if (divergent == 0) 0 else if (is.na(effective)) 1 else min(1, divergent / effective)

trajectory_troubles <- function(fit) {
  counts <- trajectory_counts(fit)
  trouble <- function(kind, count, what) {
    some <- paste(format_number(count), if (count == 1) "trajectory" else "trajectories")
    text <- sprintf("%s of Hamiltonian Monte Carlo %s, in %s iterations after warmup.", some, what[1L], format_size(counts$iterations))
    longer <- max(2 * fit$run$warmup, 500)
    advice <- c(if (ends_at_bounds(fit)) "The prior is truncated, and trajectories end at its bounds: if releases contradict these, method \"augment\" mixes better.",
                sprintf("A longer warmup may help: update(fit, iter = %s, warmup = %s).", fit$run$iter - fit$run$warmup + longer, longer),
                engine_samplers(engine_of(fit), fit), other_methods(fit))
    list(list(kind = kind, text = c(text, x = what[2L], stats::setNames(advice, rep("i", length(advice))))))
  }
  share <- if (counts$straying > 0) unreached(counts$straying, min(mixing_diagnostics(fit)$ess)) else 0
  miss <- "Chains may miss the part of the posterior where its density changes within less than a step. Its probability is about %s, the divergences per effective draw."
  c(if (share > most_unreached) trouble("divergences", counts$straying, c("diverged", sprintf(miss, format_number(share, 2)))),
    if (counts$deepest > 0) trouble("depth", counts$deepest,
                                    c("reached the maximum length", "The draws are valid, but they take longer and are more correlated than necessary.")))
}

# by "clt"; method "augment" counts none that ends there
ends_at_bounds <- function(fit) bound_is_cut(fit$bound) && inherits(engine_of(fit), c("engine_clt_nuts", "engine_pool_clt"))

trajectory_counts <- function(fit) {
  all <- function(name) sum(vapply(fit$chains, function(c) c$diagnostics[name], 0), na.rm = TRUE)
  proposals <- if (engine_imputes(engine_of(fit))) all("divergent") else 0
  divergent <- all("divergent") + all("together_divergent")
  list(divergent = divergent, straying = divergent - proposals, deepest = all("deepest"),
       iterations = sum(vapply(fit$chains, function(c) length(c$acceptance) - fit$run$warmup, 0)))
}

# ---- bounds, release -------------------------------------------------------------------

# "collapse", and "clt" of some regressions, leave out what bounds do to records; else "clt"
# accounts for bounds that cut off not too much
bounds_trouble <- function(fit) {
  engine <- engine_of(fit)
  if (is.null(fit$chains[[1L]][["outside"]]) || engine_valid(engine, fit)) return(NULL)
  shown <- format_number(outside_bounds(fit), 2)
  fault <- if (inherits(engine, "engine_clt_totals")) "is accurate only if few values lie outside the bounds, and many do." else
    "ignores that records outside the bounds are clamped, and such records are likely."
  groups_alone <- is_of_groups(fit) && moves_rates(fit)
  list(list(kind = "bounds", text = c(
    paste(if (is_pooled(fit)) "Pooling" else sprintf("Method \"%s\"", fit$method), fault),
    x = sprintf("Expected share of records outside: %s. Probability of at least one: %s.", shown[["share"]], shown[["any"]]),
    i = if (!groups_alone) "Method \"augment\" accounts for the clamping." else
      "No method accounts for it in groups of one release: estimates are too close to the middle of the bounds.",
    i = if (groups_alone) "If no record can lie outside these bounds, declare this with declare_outside().")))
}

# ---- the number of records ---------------------------------------------------------------

# More than such a share of the draws at the fewest records that a method takes: fewer are likely as well.
likely_fewer <- 0.005

# Numbers of records that are not known, by their names among the draws: how many a method assumes at least, where the prior allows fewer.
fewest_records <- function(fit) {
  problem <- fit$problem
  priors <- if (is.null(problem$prior_n)) problem$site_priors else list(n = problem$prior_n)
  if (!is.null(problem$site_priors) && length(priors)) names(priors) <- size_names(names(priors))
  least <- engine_fewest(engine_of(fit), fit$bound)
  fewer <- vapply(priors, function(prior) size_range(prior)[1L] < least, TRUE)
  stats::setNames(rep(least, sum(fewer)), names(priors)[fewer])
}

# by method "clt", pooled or not
by_normal_totals <- function(fit) inherits(engine_of(fit), c("engine_clt", "engine_pool_clt"))

few_records_trouble <- function(fit) {
  fewest <- fewest_records(fit)
  at <- vapply(names(fewest), function(name) mean(posterior::extract_variable(fit$draws, name) == fewest[[name]]), 0)
  found <- at[at > likely_fewer]
  if (length(found) == 0L) return(NULL)
  list(list(kind = "few_records", text = c(
    sprintf("Fewer records than %s are plausible for %s, but are excluded: %s.", fewest[[1L]], shorten_list(names(found), 5L),
            if (by_normal_totals(fit)) "method \"clt\" needs two or more" else "moving the totals needs more records than variables"),
    x = sprintf("Share of draws at the smallest number of records that is allowed: %s.", format_number(max(found), 2)),
    i = "Method \"augment\" allows any number; or use `prior_n`, a prior for the number of records, to rule out fewer.")))
}

# for a print
fewest_words <- function(fit) {
  fewest <- fewest_records(fit)
  if (length(fewest)) sprintf(", at least %s assumed", fewest[[1L]])
}
