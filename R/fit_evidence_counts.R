# The evidence of a release of counts. If every number is the count of one cell, or n, the cells' counts are independent except for their sum, and the
# evidence is exact, by a convolution. Otherwise it is found by tempering the noise.

counts_evidence <- function(fit, draws, seed, call) {
  exact <- cells_evidence(fit, call)
  if (!is.null(exact)) return(new_evidence(exact, 0))
  if (is.null(fit$release$n)) stop_no_evidence("The number of records is unknown, and the release has neither a noisy size nor the count of each cell.", call)
  tempered_evidence(fit, draws, seed, call)
}

# ---- a convolution --------------------------------------------------------------------------------

# Beyond so many products the sums are not enumerated.
most_products <- 3e8

# log of the sum over tables of
#   p(n) n! Gamma(A) / Gamma(A + n) prod_k Gamma(a_k + m_k) / (Gamma(a_k) m_k!) prod eta,
# n the sum of the m_k; NULL: some number is of several cells, or the sum is too long. Cells that nothing is released of
# are one with the sum of their weights. For given probabilities p_k of the cells:
#   p(n) n! prod_k p_k^m_k / m_k! prod eta.
cells_evidence <- function(fit, call, probability = NULL) {
  bound <- fit$bound
  release <- fit$release
  fields <- bound$spec$fields
  if (length(fields$levels) != 1L || any(fields$known > 0)) return(NULL)
  unknown <- is.null(release$n)
  parts <- component_parts(release_for(bound, release), repeated = TRUE)
  entries <- if (inherits(bound, "bound_table")) table_entries(bound, parts, call) else
    counts_components(bound, parts, call)
  entries <- counts_entries(entries)
  if (anyDuplicated(entries$component) || nrow(entries) < length(release$value)) return(NULL)
  cells <- length(fields$alpha)
  each <- lapply(seq_len(cells + 1L) - 1, function(node) cell_noise(entries[entries$target == node, ], parts, release$n))
  size <- if (unknown) each[[cells + 1L]] else one_count(release$n)
  released <- !vapply(each[seq_len(cells)], is.null, TRUE)
  alpha <- probability %||% fields$alpha
  factor_of <- if (is.null(probability)) cell_factor else given_cell_factor
  factors <- Map(factor_of, each[seq_len(cells)][released], alpha[released])
  if (!all(released)) {
    if (is.null(size)) return(NULL)
    least <- sum(vapply(factors, `[[`, 0, "first"))
    most <- size$first + length(size$log) - 1 - least
    if (most < 0) return(-Inf)
    factors <- c(factors, list(factor_of(list(first = 0, log = numeric(most + 1)), sum(alpha[!released]))))
  }
  if (sum_work(lengths(lapply(factors, `[[`, "log"))) > most_products) return(NULL)
  all <- Reduce(convolve_logs, factors)
  n <- all$first + seq_along(all$log) - 1
  log_prior <- if (unknown) log_size_mass(fit$problem$prior_n, n) else ifelse(n == release$n, 0, -Inf)
  log_size <- 0
  if (unknown && !is.null(size)) {
    log_size <- size$log[match(n, size$first + seq_along(size$log) - 1)]
    log_size[is.na(log_size)] <- -Inf
  }
  log_cells <- if (is.null(probability)) lgamma(sum(alpha)) - lgamma(sum(alpha) + n) else 0
  log_sum_exp(log_prior + log_size + lgamma(n + 1) + log_cells + all$log) + log_noise_constant(release, call)
}

one_count <- function(n) list(first = as.double(n), log = 0)

# Log noise density over the counts that it leaves possible, from `first` on; NULL: nothing is released of the cell
cell_noise <- function(entries, parts, n) {
  if (nrow(entries) == 0L) return(NULL)
  part_of <- lapply(entries$component, function(i) Filter(function(p) i %in% p$index, parts)[[1L]])
  ends <- vapply(seq_len(nrow(entries)), function(e) {
    part <- part_of[[e]]
    slope <- numeric(max(part$index))
    slope[entries$component[e]] <- entries$coefficient[e]
    part <- one_component(part, match(entries$component[e], part$index))
    range <- noise_range(list(part), list(slope = slope))
    range
  }, c(0, 0))
  ends <- c(max(ends[1L, ]), min(ends[2L, ], n))
  if (ends[1L] > ends[2L]) ends <- c(min(ends), max(ends))
  m <- seq(ends[1L], ends[2L])
  log <- Reduce(`+`, lapply(seq_len(nrow(entries)), function(e) log_noise_at(part_of[[e]], match(entries$component[e], part_of[[e]]$index), entries$coefficient[e] * m)))
  list(first = ends[1L], log = log)
}

one_component <- function(part, k) {
  part$index <- part$index[k]
  part$value <- part$value[k]
  part$scale <- rep_len(part$scale, max(k, length(part$scale)))[k]
  if (!is.null(part$interval)) part$interval <- part$interval[k, , drop = FALSE]
  part
}

cell_factor <- function(noise, alpha) {
  m <- noise$first + seq_along(noise$log) - 1
  list(first = noise$first, log = noise$log + lgamma(alpha + m) - lgamma(alpha) - lgamma(m + 1))
}

given_cell_factor <- function(noise, probability) {
  m <- noise$first + seq_along(noise$log) - 1
  list(first = noise$first, log = noise$log + m * log(probability) - lgamma(m + 1))
}

sum_work <- function(sizes) {
  wide <- cumsum(as.double(sizes))
  sum(utils::head(wide, -1L) * sizes[-1L])
}

# of log weights, the sum of each pair's products
convolve_logs <- function(a, b) {
  if (length(a$log) < length(b$log)) return(convolve_logs(b, a))
  top <- max(a$log) + max(b$log)
  if (!is.finite(top)) return(list(first = a$first + b$first, log = rep(-Inf, length(a$log) + length(b$log) - 1)))
  size <- length(a$log) + length(b$log) - 1
  out <- rep(-Inf, size)
  for (k in seq_along(b$log)) {
    if (b$log[k] == -Inf) next
    at <- k - 1 + seq_along(a$log)
    new <- a$log + b$log[k]
    high <- pmax(out[at], new)
    out[at] <- ifelse(high == -Inf, -Inf, high + log1p(exp(-abs(out[at] - new))))
  }
  list(first = a$first + b$first, log = out)
}

# ---- tempering -------------------------------------------------------------------------------------

# With the noise's log density U times b, that is with wider noise, p_b is sampled by the same engine. The evidence is the integral of
# exp(U): from the prior (b = 0) to b = 1 through steps, each a bridge between its two ends. At the first step b |U| is below
# 1 wherever the table is, so that the prior itself need not be drawn from.
tempered_evidence <- function(fit, draws, seed, call) {
  release <- fit$release
  bound <- fit$bound
  kernels <- vapply(release_parts(release), function(p) p$mechanism$kernel, "")
  if (!all(kernels %in% c("absolute", "squared"))) {
    stop_no_evidence("Sums of several cells were published without noise, or were hidden or rounded, or their noise cannot be widened.", call)
  }
  size <- length(release$value)
  least <- 1 / greatest_energy(fit, call)
  steps <- max(1, ceiling(log(1 / least) * sqrt(size) / 2))
  heat <- exp(seq(log(least), 0, length.out = steps + 1L))
  each <- ceiling(draws / 2)
  seeds <- with_seed(seed, sample.int(.Machine$integer.max, length(heat)))
  energy <- lapply(seq_along(heat), function(k) noise_energy(warmer_fit(release, bound, heat[k], each, seeds[k], call), release))
  with_seed(seed, {
    # Each end of a step has its own half of the draws, so that the errors of the steps are independent.
    early <- function(x) x[seq_len(floor(nrow(x) / 2)), , drop = FALSE]
    late <- function(x) x[-seq_len(floor(nrow(x) / 2)), , drop = FALSE]
    # 1 / Z is the mean of exp(-b U) over draws with b
    first <- average_ratio(-least * early(energy[[1L]]))
    bridges <- lapply(seq_len(steps), function(k) {
      gap <- heat[k + 1L] - heat[k]
      chains <- ncol(energy[[k]])
      bridge_ratio(gap * as.vector(early(energy[[k + 1L]])), gap * as.vector(late(energy[[k]])), chains = chains, other_chains = chains)
    })
    value <- -first$value + sum(vapply(bridges, `[[`, 0, "value"))
    error <- sqrt(first$error^2 + sum(vapply(bridges, `[[`, 0, "error")^2))
    notes <- unique(unlist(lapply(bridges, `[[`, "note")))
    new_evidence(value + log_noise_constant(release, call), error, notes)
  })
}

# The largest |U| that a table can have: every total is between n times the least and n times the largest coefficient.
greatest_energy <- function(fit, call) {
  release <- fit$release
  ends <- vapply(release_parts(release), function(part) {
    reach <- abs(part$value) + release$n * part_reach(part$statistic)
    scale <- rep_len(release$scale[part$index], length(reach))
    sum(if (part$mechanism$kernel == "absolute") reach / scale else (reach / scale)^2 / 2)
  }, 0)
  max(sum(ends), 1)
}

part_reach <- function(statistic) if (inherits(statistic, "stat_linear")) max(1, abs(statistic$queries$weight)) else 1

# the release with its noise's log density times `heat`
warmer_fit <- function(release, bound, heat, each, seed, call) {
  for (part in release_parts(release)) {
    release$scale[part$index] <- release$scale[part$index] / if (part$mechanism$kernel == "absolute") heat else sqrt(heat)
  }
  run <- list(chains = 4, iter = 500 + each, warmup = 500, thin = 1, seed = seed)
  without_troubles(without_progress(sample_method("collapse", release, bound, run, call = call)))
}

# U of each draw, iterations x chains
noise_energy <- function(fit, release) {
  absolute <- logical(length(release$value))
  for (part in release_parts(release)) absolute[part$index] <- part$mechanism$kernel == "absolute"
  vapply(fit$chains, function(chain) {
    away <- abs(t(chain$statistic) - release$value) / release$scale
    -colSums(away * absolute) - colSums(away^2 * !absolute) / 2
  }, double(nrow(fit$draws)))
}
