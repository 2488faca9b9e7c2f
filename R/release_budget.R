# A budget is an environment, so that every release that is given it takes from
# the same account: limit (epsilon, delta, rho; NULL where not limited; composition with a
# delta) and spent, a data frame with a row an expense. A budget in a file has the path
# instead of what is spent, which is read each time.

#' Privacy budget account
#'
#' An account for everything that is published about one database: [release()] charges its cost to the account, and stops with an
#' error if the limit would be exceeded. Unlike other R objects, it is modified in place: give the same account to every release of
#' the same records.
#'
#' @param epsilon Limit of pure differential privacy; with `delta`, of approximate
#'   differential privacy.
#' @param delta In (0, 1), with `epsilon`.
#' @param rho Instead of `epsilon`: limit of zero-concentrated differential privacy.
#' @param composition With `delta`: how the costs of several releases are combined, see below.
#' @param file `NULL`, or the name of a file that keeps the account for several processes and
#'   sessions. A new file needs a limit; for an existing file give the same limit or
#'   none.
#' @param connection,table `NULL`, or a DBI connection to SQLite or PostgreSQL and the name of a table there, which keeps the account in the same way as a file.
#' @param neighbours The kind of neighbours, which must be the same for all releases charged to the account: see [sensitivity()] and [release()].
#'
#' @details
#' **Composition.** The costs of everything published about the same records add up. Epsilons add under pure differential privacy. Rhos add under
#' zero-concentrated differential privacy, where a release with pure epsilon costs epsilon^2 / 2 and one with mu costs mu^2 / 2 (Bun & Steinke 2016). A release
#' with a different kind of guarantee than the limit is refused. All guarantees are for the same neighbours.
#'
#' With `composition = "basic"`, a limit in `epsilon` and `delta` bounds the sums of the epsilons and of the deltas. With `"concentrated"` it bounds the
#' smallest of up to three numbers. The first is the epsilon that follows from the summed rho and `delta`, as in [privacy()]. The second, if no release has a
#' delta, is the sum of the epsilons. The third, for a single release with a delta within the limit, is its epsilon. The smallest is a valid bound even if
#' each release is chosen after seeing the earlier ones. To see this, classify the outcomes by the bound that is smallest at their end. Each bound only grows
#' with further releases. So the
#' outcomes in a class are also outcomes of a procedure that stops before this bound exceeds the limit, and such procedures satisfy the limit (Rogers et al.
#' 2016; Feldman & Zrnic 2021). In the class of the pure bound, probabilities differ by a factor of at most exp(epsilon), without a delta. So delta is needed
#' only once, for the concentrated class, and not once per class. A first release that is within the limit only by its own delta leaves nothing for others. The
#' smaller of the basic and the concentrated bound is not valid in this way: each would need its own delta, so the total would be two deltas. The choice between
#' these two is therefore made in advance.
#'
#' **Copies.** An account can be spent only once. A budget in memory is tied to the process and the session that made it. It cannot be used after a fork (such
#' as by `parallel::mclapply()`), in a worker process, after being read back ([readRDS()], a saved workspace), or as a copy. In these cases use `file`: every
#' release reads what has been spent, adds its cost and only then returns, while a lock of the operating system keeps other processes out. The lock is on the
#' file itself, whichever symbolic or hard link is used, and it ends with its process, even if that is killed. A truncated line is an error. The package cannot
#' prevent the use of a copy or an earlier version of the file, a second budget for the same records, releases without a budget, or a copy of the whole machine.
#' The file system must support locks. Local disks and most network drives do. If a drive's locks are not visible to other machines, keep the account on one
#' machine, or in a database.
#'
#' **In a database** the account is a table of numbered lines, which is created if it does not exist. The lock is a transaction in which nobody else can write
#' to the table (in SQLite, to the database); the cost is committed before a release returns. If the process is killed or the connection is lost before that,
#' nothing is spent and nothing is released, and the database removes the lock. Give the account its own connection, without an open transaction. The object is
#' tied to its process: other processes open the account through their own connection. The database provides the lock. Connections without locks (SQLite's
#' `vfs = "unix-none"`) are not protected, and a table name that resolves to another schema or to a temporary table is a different account.
#'
#' @return An object of class `noiseaware_budget`. `print()` shows what is spent and what is left, `summary()` is a data frame with a row for each expense:
#'   `what`, `epsilon`, `delta`, `rho`.
#' @section Errors: `noiseaware_error_budget`, also from [release()] when there is
#'   not enough left; `noiseaware_error_database` if a database refuses or is not available; `noiseaware_error_neighbours` from a release for other neighbours.
#'   In these cases nothing is released and nothing is spent.
#' @references
#' Bun, M. and Steinke, T. (2016). Concentrated differential privacy:
#' simplifications, extensions, and lower bounds. \doi{10.48550/arXiv.1605.02065}
#'
#' Feldman, V. and Zrnic, T. (2021). Individual privacy accounting via a Renyi filter.
#' \doi{10.48550/arXiv.2008.11193}
#'
#' Rogers, R., Roth, A., Ullman, J. and Vadhan, S. (2016). Privacy odometers and filters:
#' pay-as-you-go composition. \doi{10.48550/arXiv.1605.08294}
#' @family guarantees
#' @examples
#' account <- budget(epsilon = 2)
#' counts <- stat_counts(~ smoke, levels = list(smoke = c("0", "1")))
#' release(MASS::birthwt, counts, mech_discrete_laplace(epsilon = 0.5), budget = account)
#' account
#' summary(account)
#' @concept privacy accounting
#' @concept composition
#' @export
budget <- function(epsilon = NULL, delta = NULL, rho = NULL, composition = c("concentrated", "basic"), file = NULL,
                   connection = NULL, table = NULL, neighbours = c("replace", "add_remove")) {
  neighbours <- neighbour_kind(match_neighbours(neighbours))
  if (is.null(connection) != is.null(table)) stop_classed("budget", "{.arg connection} and {.arg table} must be given together.")
  if (!is.null(file) && !is.null(table)) stop_classed("budget", "Give either {.arg file} or {.arg table}, where the account is kept.")
  if (is.null(file) && is.null(table) || !all(vapply(list(epsilon, delta, rho), is.null, TRUE))) {
    if (is.null(epsilon) == is.null(rho)) stop_classed("budget", "Give either {.arg epsilon} or {.arg rho} as the limit.")
  }
  if (!is.null(delta) && is.null(epsilon)) stop_classed("budget", "{.arg delta} must be given together with {.arg epsilon}.")
  if (!is.null(epsilon)) epsilon <- check_positive(epsilon, "epsilon", "budget")
  if (!is.null(rho)) rho <- check_positive(rho, "rho", "budget")
  if (!is.null(delta)) delta <- check_number(delta, "delta", "a number strictly between 0 and 1", 0, 1, strict = TRUE, kind = "budget")
  composition <- if (identical(composition, c("concentrated", "basic"))) "concentrated" else
    check_choice(composition, "composition", c("concentrated", "basic"), "budget")
  limit <- list(epsilon = epsilon, delta = delta, rho = rho, composition = if (!is.null(delta)) composition, neighbours = neighbours)
  if (!is.null(file)) return(file_budget(file, limit))
  if (!is.null(table)) return(table_budget(connection, table, limit))
  account <- new_budget(limit)
  account$spent <- no_expense()
  # what a copy cannot have
  account$self <- account
  account$session <- this_session
  account$process <- Sys.getpid()
  account
}

# another environment in every session
this_session <- new.env(parent = emptyenv())

no_expense <- function() cbind(data.frame(what = character()), privacy_row()[0L, c("epsilon", "delta", "rho")])

# why nothing can be spent from it; NULL if it can
budget_copied <- function(budget) {
  if (!is.null(budget$file)) return(NULL)
  if (!is.null(budget$table)) {
    if (budget$process != Sys.getpid()) return("Its database connection belongs to another process.")
    return(NULL)
  }
  if (!identical(budget$session, this_session)) return("It was read back, or sent to this process: what the original has spent since then is unknown.")
  if (!identical(budget$self, budget)) return("It is a copy of another budget.")
  if (budget$process != Sys.getpid()) return("This process is a fork: the spending of the other processes is unknown.")
}

spent_of <- function(budget, call = caller_env()) {
  if (is.null(budget$file) && is.null(budget$table)) return(budget$spent)
  ledger <- if (is.null(budget$table)) read_ledger(budget$file, call) else table_ledger(budget$table, call)
  if (!identical(ledger$limit, budget$limit)) refuse_ledger(budget$file %||% budget$table$name, "Its limit has been changed.", call)
  ledger$spent
}

# From here on the budget is the caller's alone: the lock of its file or table, to be given
# to unlock_budget().
hold_budget <- function(budget, neighbours, call = caller_env()) {
  if (is.null(budget)) return(NULL)
  check_class(budget, "budget", "noiseaware_budget", "NULL or a budget made by budget()", call = call)
  if (budget$limit$neighbours != neighbour_kind(neighbours)) {
    stop_classed("neighbours", c("A budget is for one kind of neighbours; nothing is released.",
                                 x = "The budget is for {neighbours_text[[budget$limit$neighbours]]}, the release for {neighbours_words(neighbours)}.",
                                 i = "Give both the same {.arg neighbours}."), call = call)
  }
  reason <- budget_copied(budget)
  if (!is.null(reason)) {
    stop_classed("budget", c("A budget can be used only in the process and session that made it; nothing is released.", x = reason,
                             i = "Several processes or sessions can share a {.code budget(file = )}."), call = call)
  }
  if (!is.null(budget$file)) return(lock_file(budget$file, call = call))
  if (!is.null(budget$table)) {
    lock_table(budget$table, call)
    budget$table
  }
}

unlock_budget <- function(lock) {
  if (is.null(lock)) return(invisible())
  if (is.environment(lock)) unlock_table(lock) else unlock_file(lock)
}

# What a ledger amounts to, in the terms of the limit: used, and of how much. That the
# smallest of several bounds counts is proven in ?budget.
budget_used <- function(limit, spent) {
  if (!is.null(limit$rho)) return(sum(spent$rho))
  if (is.null(limit$delta)) return(if (any(is.na(spent$epsilon) | spent$delta > 0)) NA_real_ else sum(spent$epsilon))
  added <- limit$composition == "basic" || nrow(spent) == 1L || all(spent$delta %in% 0)
  within <- sum(spent$delta) <= limit$delta * (1 + 1e-12)
  basic <- if (!added || is.na(within) || !within) Inf else sum(spent$epsilon)
  total_rho <- sum(spent$rho)
  concentrated <- if (limit$composition == "basic" || is.na(total_rho)) Inf else zcdp_epsilon(total_rho, limit$delta)
  min(basic, concentrated, na.rm = TRUE)
}

check_affordable <- function(budget, cost, call = caller_env()) {
  if (is.null(budget)) return(invisible())
  limit <- budget$limit
  spent <- spent_of(budget, call)
  most <- limit$rho %||% limit$epsilon
  after <- budget_used(limit, rbind(spent[-1L], cost[c("epsilon", "delta", "rho")]))
  if (is.na(after) || is.infinite(after)) {
    stop_classed("budget", c("The release's guarantee and the budget's limit are of different kinds.",
                             x = "The limit is in {format_limit(limit)}, the release has {format_privacy(cost)}.",
                             i = if (identical(limit$composition, "concentrated") && !is.na(cost$epsilon))
                               "For deltas to add up, choose {.code composition = \"basic\"} when the budget is made."), call = call)
  }
  if (after > most * (1 + 1e-12)) {
    used <- budget_used(limit, spent)
    digits <- 5L
    while (digits < 17L && format_number(after, digits) == format_number(most, digits)) digits <- digits + 1L
    stop_classed("budget", c("The budget is not large enough; nothing is released.",
                             x = "Limit: {format_limit(limit)}. Spent: {format_number(used)}. With this release: {format_number(after, digits)}."), call = call)
  }
}

spend <- function(budget, cost, what, call = caller_env()) {
  if (is.null(budget)) return(invisible())
  expense <- cbind(data.frame(what = what), cost[c("epsilon", "delta", "rho")])
  if (!is.null(budget$file)) return(add_file_expense(budget$file, expense_entry(expense), call))
  if (!is.null(budget$table)) return(add_table_expense(budget$table, expense_entry(expense), call))
  budget$spent <- rbind(budget$spent, expense)
}

format_limit <- function(limit) {
  if (!is.null(limit$rho)) return(paste0("rho = ", format_number(limit$rho), " (zCDP)"))
  if (is.null(limit$delta)) return(paste0("epsilon = ", format_number(limit$epsilon)))
  sprintf("(epsilon, delta) = (%s, %s)", format_number(limit$epsilon), format_number(limit$delta))
}

#' @export
summary.noiseaware_budget <- function(object, ...) spent_of(object)

#' @export
format.noiseaware_budget <- function(x, ...) {
  spent <- spent_of(x)
  used <- budget_used(x$limit, spent)
  left <- max((x$limit$rho %||% x$limit$epsilon) - used, 0)
  name <- if (is.null(x$limit$rho)) "epsilon" else "rho"
  c("<privacy budget>", paste0("  limit  ", format_limit(x$limit), "; ", neighbours_text[[x$limit$neighbours]]),
    if (identical(x$limit$composition, "basic")) "  sum    basic: epsilons and deltas add up",
    sprintf("  spent  %s = %s in %d %s", name, format_number(used), nrow(spent), if (nrow(spent) == 1L) "release" else "releases"),
    sprintf("  left   %s = %s", name, format_number(left)),
    if (!is.null(x$file)) paste0("  file   ", x$file),
    if (!is.null(x$table)) paste0("  table  ", x$table$name, " (", x$table$kind, ")"),
    if (!is.null(budget_copied(x))) "! A copy: nothing can be spent from it.")
}

#' @export
print.noiseaware_budget <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}
