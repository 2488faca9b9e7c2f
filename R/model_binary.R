# Reports that the model treats covariates with only two possible values (whole bounds one apart, such as 0 and 1) as normal, although they could be factors.
# `continuous` are the places of the normal ones among the columns of the design.
tell_binary <- function(bound) {
  if (is.null(bound$model$levels) || !is.null(bound$moments)) return(invisible())
  normal <- (bound$base %||% bound$design)[normal_rows(bound), ]
  normal <- normal[normal$lower == floor(normal$lower) & normal$upper == normal$lower + 1, ]
  if (nrow(normal) == 0L) return(invisible())
  cli::cli_inform(c("{.var {normal$name}} {?is/are} modelled as normal, but the bounds suggest only two values.",
                    i = "If there are only two, declare a factor: {.code {as_factors(normal)}} in {.fn stat_crossprod}."),
                  class = "noiseaware_message_binary")
}

as_factors <- function(columns) {
  factors <- sprintf("%s = c(\"%.0f\", \"%.0f\")", format_name(columns$name), columns$lower, columns$upper)
  paste0("bounds = list(", shorten_list(factors, 3L), ")")
}

# The owner hears it before the budget is spent, once a session.
tell_owner_binary <- function(parts) {
  for (p in parts) if (inherits(p$statistic, "stat_crossprod")) {
    numbers <- p$statistic$columns[-1L, ]
    numbers <- numbers[is.na(numbers$level) & numbers$lower == floor(numbers$lower) & numbers$upper == numbers$lower + 1, ]
    key <- paste("binary", as_factors(numbers))
    if (session$quiet || nrow(numbers) == 0L || key %in% session$told) next
    session$told <- c(session$told, key)
    cli::cli_inform(c("{.var {numbers$name}} {?is/are} released as {?a number/numbers}, which fits model as normal, but the bounds suggest only two values.",
                      i = "If there are only two, a factor is better: {.code {as_factors(numbers)}} in {.fn stat_crossprod}."),
                    class = "noiseaware_message_binary")
  }
}
