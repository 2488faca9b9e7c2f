# Prints of a release and of its summary.

noise_source <- c(
  entropy = "the operating system's entropy",
  floating = "the operating system's entropy, in floating-point arithmetic (its last bits are not protected)",
  simulation = "R's generator (a simulation: not for publication)",
  published = "published by someone else"
)

#' @export
summary.noiseaware_release <- function(object, ...) {
  sd <- noise_sd(object)
  table <- data.frame(component = names(object$value), value = unname(object$value), noise_sd = unname(sd),
                      signal_to_noise = unname(ifelse(sd > 0, abs(object$value) / sd, Inf)))
  table$hidden_below <- hidden_below(object)
  structure(list(release = object, table = table), class = "summary_noiseaware_release")
}

#' @export
print.noiseaware_release <- function(x, ...) {
  cat(release_header(x), sep = "\n")
  cat("\n")
  table <- summary(x)$table
  print_table(utils::head(table, 12L))
  if (nrow(table) > 12L) cat("... and", nrow(table) - 12L, ngettext(nrow(table) - 12L, "more component;", "more components;"), "see summary()\n")
  release_marks(x)
  invisible(x)
}

#' @export
print.summary_noiseaware_release <- function(x, ...) {
  cat(release_header(x$release), sep = "\n")
  cat("\n")
  print_table(x$table)
  release_marks(x$release)
  invisible(x)
}

release_header <- function(release) {
  parts <- release_parts(release)
  label <- function(p) if (p$name == "") "" else paste0(p$name, ": ")
  c("<release>",
    paste0("  records    ", if (is.null(release$n)) "not known" else paste(format(release$n, big.mark = ",", decimal.mark = ".", scientific = FALSE), "(public)"),
           if (length(parts) > 1L) ", the same for all statistics"),
    vapply(parts, function(p) paste0("  statistic  ", label(p), describe_statistic(p$statistic)), ""),
    vapply(parts, function(p) paste0("  mechanism  ", label(p), format(p$mechanism)), ""),
    public_line(release),
    guarantee_line(release),
    if (has_stated_budget(release)) weak_line(privacy(release), release$neighbours) else derived_line(privacy(release)),
    exact_line(parts),
    paste0("  noise      ", noise_source[[release$noise]], describe_granularity(release$granularity)))
}

guarantee_line <- function(release) {
  if (has_record_noise(release)) return("  guarantee  none is computed for noise on records without bounds")
  # as_release() assumes it, although their number, which it makes public, was not given
  assumed <- is.null(release$n) && replaces(release$neighbours)
  paste0("  guarantee  ", format_privacy(privacy(release)), if (!is.null(release$spent)) ", the whole release", "; ", neighbours_words(release$neighbours),
         if (assumed) " (assumed; see `neighbours`)")
}

# Near and Darais (2023), Guidelines for evaluating differential privacy guarantees, NIST SP 800-226: above 10 it protects hardly
weak_line <- function(guarantee, neighbours) {
  epsilon <- guarantee$epsilon
  if (is.na(epsilon) || epsilon <= 10 || is.infinite(epsilon)) return(NULL)
  factor <- if (epsilon < 20) format_number(signif(exp(epsilon), 2)) else sprintf("10^%.0f", epsilon / log(10))
  sprintf("             weak: the odds for or against any one %s may change by a factor of up to %s", if (of_persons(neighbours)) "person" else "record", factor)
}

# Of numbers from others whose noise is given by its scale, the budget is ours, and for values that use the whole range.
has_stated_budget <- function(release) {
  release$noise != "published" || any(vapply(release_parts(release), function(p) length(unlist(p$mechanism[c("epsilon", "rho", "mu")])) > 0L, TRUE))
}

derived_line <- function(guarantee) {
  if (is.finite(guarantee$epsilon) && guarantee$epsilon > 10) "             computed from the noise, for values that change by the whole range of their bounds"
}

exact_line <- function(parts) {
  exact <- vapply(parts, function(p) is_noiseless(p$mechanism), TRUE)
  if (!any(exact) || all(exact)) return(NULL)
  names <- shorten_list(vapply(parts[exact], `[[`, "", "name"), 5L)
  sprintf("             only for the noisy numbers: the exact ones (%s) are outside it", names)
}

describe_granularity <- function(unit) {
  unit <- range(unit[unit > 0], -Inf)[2L]
  if (unit > 0) paste0("; exact, in units of ", if (unit == 1) "1" else paste0("2^", log2(unit)))
}

print_table <- function(table) {
  value <- format(table$value, digits = 5)
  if (!is.null(table$hidden_below)) {
    hidden <- is.na(table$value)
    value[hidden] <- paste("<", format_number(table$hidden_below[hidden]))
    value <- formatC(value, width = max(nchar(value)))
  }
  shown <- data.frame(component = table$component, value = value)
  # perturbed objectives and answers have no noise that is added
  if (!all(is.na(table$noise_sd))) {
    shown$`noise sd` <- format(table$noise_sd, digits = 4)
    shown$`signal/noise` <- ifelse(!is.finite(table$signal_to_noise), "", ifelse(table$signal_to_noise < 1e6, formatC(table$signal_to_noise, digits = 2, format = "f"),
                                   formatC(table$signal_to_noise, digits = 2, format = "e")))
  }
  print(shown, row.names = FALSE)
}
