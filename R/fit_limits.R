# What a fit predicts or simulates beyond the natural limits of a variable. Models do not know them: only the release states them.

# by numeric variable, c(lower, upper); infinite where a bound is no natural limit
natural_ranges <- function(fit) {
  releases <- if (is.null(fit$release)) list() else if (is_sites(fit$release)) fit$release else list(fit$release)
  columns <- do.call(rbind, lapply(unlist(lapply(unname(releases), release_parts), FALSE), function(part) {
    natural <- natural_limits(part$statistic)
    columns <- part$statistic$columns
    data.frame(variable = columns$variable, lower = ifelse(natural$lower, columns$lower, -Inf), upper = ifelse(natural$upper, columns$upper, Inf))
  }))
  columns <- columns[is.finite(columns$lower) | is.finite(columns$upper), ]
  if (length(columns$variable)) lapply(split(columns, columns$variable), function(rows) c(max(rows$lower), min(rows$upper)))
}

# with room for rounding
lies_beyond <- function(x, range) {
  room <- 1e-9 * max(abs(range[is.finite(range)]))
  x < range[1L] - room | x > range[2L] + room
}

say_limits <- function(variable, range) {
  ends <- format_number(range[is.finite(range)])
  sprintf("%s beyond its natural limit%s %s", quoted_name(variable), if (length(ends) > 1L) "s" else "", paste(ends, collapse = " and "))
}

quoted_name <- function(variable) encodeString(variable, quote = "`")

# `found`: what predict() returns, a matrix of intervals or of predictive draws where it is of the response
tell_limits <- function(fit, newdata, found, call = caller_env()) {
  ranges <- natural_ranges(fit)
  if (session$quiet || length(ranges) == 0L) return(invisible())
  numbers <- Filter(function(v) is.numeric(newdata[[v]]), intersect(names(newdata), names(ranges)))
  far <- Filter(function(v) any(lies_beyond(newdata[[v]], ranges[[v]]), na.rm = TRUE), numbers)
  lines <- vapply(far, function(v) sprintf("{.arg newdata} has values of %s: predictions there extrapolate.", say_limits(v, ranges[[v]])), "")
  response <- fit$bound$columns$variable[1L]
  if (is.matrix(found) && response %in% names(ranges)) lines <- c(lines, beyond_line(found, response, ranges[[response]]))
  if (length(lines) == 0L) return(invisible())
  key <- rlang::hash(list(fit$draws, lines))
  if (key %in% session$told) return(invisible())
  session$told <- c(session$told, key)
  cli::cli_inform(unname(lines), class = "noiseaware_message_limits", call = call)
}

beyond_line <- function(found, response, range) {
  if (!"lower" %in% colnames(found)) {
    share <- mean(lies_beyond(found, range))
    if (share <= 0.001) return(NULL)
    return(sprintf("%s%% of the predictive draws have %s, which the model does not know.", format_number(100 * share, 2), say_limits(response, range)))
  }
  out <- sum(rowSums(lies_beyond(found[, c("lower", "upper"), drop = FALSE], range)) > 0)
  if (out == 0) return(NULL)
  which <- if (nrow(found) == 1L) "The interval reaches" else paste(format_size(out), "of", format_size(nrow(found)), "intervals reach")
  sprintf("%s values of %s, which the model does not know.", which, say_limits(response, range))
}

# Of data frames of simulated records: which share of the values of a variable lies beyond. NULL where none does.
simulated_beyond <- function(fit, sets) {
  ranges <- natural_ranges(fit)
  shares <- vapply(intersect(names(sets[[1L]]), names(ranges)), function(v) mean(vapply(sets, function(set) mean(lies_beyond(set[[v]], ranges[[v]])), 0)), 0)
  shares <- shares[shares > 0]
  if (length(shares) == 0L) return(NULL)
  each <- vapply(names(shares), function(v) {
    percent <- if (shares[[v]] < 0.001) "less than 0.1" else format_number(100 * shares[[v]], 2)
    sprintf("%s is beyond %s in %s%% of records", quoted_name(v), paste(format_number(ranges[[v]][is.finite(ranges[[v]])]), collapse = " and "), percent)
  }, "")
  paste0(paste(each, collapse = ", "), "; the model does not know natural limits")
}
