# Reports that the model treats covariates with only two possible values (whole bounds one apart, such as 0 and 1) as normal, although they could be factors.
# `continuous` are the places of the normal ones among the columns of the design.
tell_binary <- function(bound) {
  if (is.null(bound$model$levels) || !is.null(bound$moments)) return(invisible())
  normal <- (bound$base %||% bound$design)[normal_rows(bound), ]
  normal <- normal[normal$lower == floor(normal$lower) & normal$upper == normal$lower + 1, ]
  if (nrow(normal) == 0L) return(invisible())
  name <- normal$name
  factors <- sprintf("%s = c(\"%.0f\", \"%.0f\")", format_name(name), normal$lower, normal$upper)
  declared <- paste0("bounds = list(", shorten_list(factors, 3L), ")")
  cli::cli_inform(c("{.var {name}} {?is/are} modelled as normal, but the bounds suggest only two values.",
                    i = "If there are only two, declare a factor: {.code {declared}} in {.fn stat_crossprod}."),
                  class = "noiseaware_message_binary")
}
