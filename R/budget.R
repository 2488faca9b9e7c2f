# A budget is an environment, so that every release that is given it takes from
# the same account: limit (epsilon, delta, rho; NULL where not limited) and
# spent, a data frame with a row an expense.

#' A privacy budget to spend from
#'
#' An account for all that is published of one database: [release()] and
#' [private_quantile()] take their cost from it, and refuse what would exceed it.
#' Unlike R's other objects it is changed in place: the same account is to be
#' given to every release of the same records.
#'
#' @param epsilon Limit of pure differential privacy; with `delta`, of approximate
#'   differential privacy.
#' @param delta In (0, 1), with `epsilon`.
#' @param rho Instead: limit of zero-concentrated differential privacy.
#'
#' @details
#' **Composition.** What is published of the same records adds up: the epsilons under
#' pure differential privacy; the rhos under zero-concentrated differential privacy,
#' where a release with pure epsilon costs epsilon^2 / 2 and one with mu costs
#' mu^2 / 2 (Bun & Steinke 2016). For a limit in `epsilon` and `delta` the smaller of
#' two bounds counts: the sums of the epsilons and deltas, and [zcdp_epsilon()] of the
#' summed rho. A release whose guarantee is not of the kind that the limit is in
#' is refused. All guarantees are for one replaced record.
#'
#' @return An object of class `noiseaware_budget`. `print()` shows what is spent
#'   and left, `summary()` is a data frame with a row for each expense: `what`,
#'   `epsilon`, `delta`, `rho`.
#' @section Errors: `noiseaware_error_budget`, also from [release()] when there is
#'   not enough left; nothing is released then, and nothing spent.
#' @references
#' Bun, M. and Steinke, T. (2016). Concentrated differential privacy:
#' simplifications, extensions, and lower bounds. \doi{10.48550/arXiv.1605.02065}
#' @examples
#' account <- budget(epsilon = 2)
#' counts <- stat_counts(~ smoke, levels = list(smoke = c("0", "1")))
#' release(MASS::birthwt, counts, mech_discrete_laplace(epsilon = 0.5), budget = account)
#' account
#' summary(account)
#' @export
budget <- function(epsilon = NULL, delta = NULL, rho = NULL) {
  if (is.null(epsilon) == is.null(rho)) stop_classed("budget", "Give either {.arg epsilon} or {.arg rho} as the limit.")
  if (!is.null(delta) && is.null(epsilon)) stop_classed("budget", "{.arg delta} is given with {.arg epsilon}.")
  if (!is.null(epsilon)) epsilon <- check_positive(epsilon, "epsilon", "budget")
  if (!is.null(rho)) rho <- check_positive(rho, "rho", "budget")
  if (!is.null(delta)) delta <- check_number(delta, "delta", "a number strictly between 0 and 1", 0, 1, strict = TRUE, kind = "budget")
  account <- new.env(parent = emptyenv())
  account$limit <- list(epsilon = epsilon, delta = delta, rho = rho)
  account$spent <- cbind(data.frame(what = character()), privacy_row()[0L, c("epsilon", "delta", "rho")])
  structure(account, class = "noiseaware_budget")
}

# what a ledger amounts to, in the terms of the limit: used, and of how much
budget_used <- function(limit, spent) {
  if (!is.null(limit$rho)) return(sum(spent$rho))
  if (is.null(limit$delta)) return(if (any(is.na(spent$epsilon) | spent$delta > 0)) NA_real_ else sum(spent$epsilon))
  within <- sum(spent$delta) <= limit$delta * (1 + 1e-12)
  basic <- if (is.na(within) || !within) Inf else sum(spent$epsilon)
  total_rho <- sum(spent$rho)
  concentrated <- if (is.na(total_rho)) Inf else if (total_rho == 0) 0 else zcdp_epsilon(total_rho, limit$delta)
  min(basic, concentrated, na.rm = TRUE)
}

check_affordable <- function(budget, cost, call = caller_env()) {
  if (is.null(budget)) return(invisible())
  check_class(budget, "budget", "noiseaware_budget", "NULL or a budget made by budget()", call = call)
  limit <- budget$limit
  most <- limit$rho %||% limit$epsilon
  after <- budget_used(limit, rbind(budget$spent[-1L], cost[c("epsilon", "delta", "rho")]))
  if (is.na(after) || is.infinite(after)) {
    stop_classed("budget", c("The guarantee is not of the kind of the budget's limit.",
                             x = "The limit is in {format_limit(limit)}, the release has {format_privacy(cost)}."), call = call)
  }
  if (after > most * (1 + 1e-12)) {
    used <- budget_used(limit, budget$spent)
    digits <- 5L
    while (digits < 17L && format_number(after, digits) == format_number(most, digits)) digits <- digits + 1L
    stop_classed("budget", c("The budget does not suffice; nothing is released.",
                             x = "Limit: {format_limit(limit)}. Spent: {format_number(used)}. With this release: {format_number(after, digits)}."), call = call)
  }
}

spend <- function(budget, cost, what) {
  if (is.null(budget)) return(invisible())
  budget$spent <- rbind(budget$spent, cbind(data.frame(what = what), cost[c("epsilon", "delta", "rho")]))
}

format_limit <- function(limit) {
  if (!is.null(limit$rho)) return(paste0("rho = ", format_number(limit$rho), " (zCDP)"))
  if (is.null(limit$delta)) return(paste0("epsilon = ", format_number(limit$epsilon)))
  sprintf("(epsilon, delta) = (%s, %s)", format_number(limit$epsilon), format_number(limit$delta))
}

#' @export
summary.noiseaware_budget <- function(object, ...) object$spent

#' @export
format.noiseaware_budget <- function(x, ...) {
  used <- budget_used(x$limit, x$spent)
  left <- max((x$limit$rho %||% x$limit$epsilon) - used, 0)
  name <- if (is.null(x$limit$rho)) "epsilon" else "rho"
  c("<privacy budget>", paste0("  limit  ", format_limit(x$limit), "; one replaced record"),
    sprintf("  spent  %s = %s in %d %s", name, format_number(used), nrow(x$spent), if (nrow(x$spent) == 1L) "release" else "releases"),
    sprintf("  left   %s = %s", name, format_number(left)))
}

#' @export
print.noiseaware_budget <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' From zero-concentrated to approximate differential privacy
#'
#' rho-zCDP implies (epsilon, delta)-differential privacy for a whole curve of
#' pairs; these functions give one from the other by the tight conversion of
#' Canonne, Kamath & Steinke (2020), Corollary 13:
#' delta = inf over alpha > 1 of exp((alpha - 1) (alpha rho - epsilon)) / (alpha - 1)
#' (1 - 1 / alpha)^alpha.
#'
#' @param rho,epsilon Positive numbers.
#' @param delta In (0, 1).
#' @return A number: `zcdp_epsilon()` the smallest epsilon for that delta,
#'   `zcdp_delta()` the smallest delta for that epsilon.
#' @section Errors: `noiseaware_error_argument`.
#' @references
#' Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for
#' differential privacy. \doi{10.48550/arXiv.2004.00010}
#' @examples
#' zcdp_epsilon(rho = 0.5, delta = 1e-6)
#' zcdp_delta(rho = 0.5, epsilon = 5)
#' @export
zcdp_epsilon <- function(rho, delta) {
  check_given()
  rho <- check_positive(rho, "rho", "argument")
  delta <- check_number(delta, "delta", "a number strictly between 0 and 1", 0, 1, strict = TRUE)
  # epsilon as a function of log(alpha - 1): one minimum
  epsilon <- function(l) {
    a <- exp(l)
    within_doubles((1 + a) * rho - (log(delta) + l) / a + (1 + a) / a * (l - log1p(a)))
  }
  best <- log(max(sqrt(-log(delta)) / sqrt(rho), 1e-3)) # of the leading terms
  max(0, stats::optimize(epsilon, best + c(-6, 6), tol = 1e-10)$objective)
}

# optimize() takes -Inf for a maximum, and Inf with a warning
within_doubles <- function(x) max(min(x, .Machine$double.xmax), -.Machine$double.xmax)

#' @rdname zcdp_epsilon
#' @export
zcdp_delta <- function(rho, epsilon) {
  check_given()
  rho <- check_positive(rho, "rho", "argument")
  epsilon <- check_positive(epsilon, "epsilon", "argument")
  log_delta <- function(l) {
    a <- exp(l)
    within_doubles(a * ((1 + a) * rho - epsilon) - l + (1 + a) * (l - log1p(a)))
  }
  # where the derivative is zero, log(1 + 1 / a) taken for 1 / a
  gap <- epsilon - rho
  best <- if (gap > 0) (gap + sqrt(gap^2 + 8 * rho)) / (4 * rho) else 2 / (sqrt(gap^2 + 8 * rho) - gap)
  best <- log(min(max(best, 1e-3), 1e150))
  min(1, exp(stats::optimize(log_delta, best + c(-8, 8), tol = 1e-10)$objective))
}
