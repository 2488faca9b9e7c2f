# Shared by plots: themes, scales, panels, and the choice of variables.

theme_noiseaware <- function() {
  ggplot2::theme_minimal(base_size = 11) +
    ggplot2::theme(panel.grid.minor = ggplot2::element_blank(), legend.position = "bottom", plot.title.position = "plot",
                   strip.text = ggplot2::element_text(face = "bold"))
}

# The height of a density says nothing that its shape does not.
theme_without_y <- function() {
  ggplot2::theme(axis.text.y = ggplot2::element_blank(), panel.grid.major.y = ggplot2::element_blank())
}

scale_unit_x <- function() ggplot2::scale_x_continuous(breaks = c(0, 0.25, 0.5, 0.75, 1), labels = c("0", "0.25", "0.5", "0.75", "1"))

scale_few_x <- function(...) ggplot2::scale_x_continuous(breaks = few_breaks, guide = ggplot2::guide_axis(check.overlap = TRUE), ...)

# at least three, whatever a narrow range leaves out
few_breaks <- function(limits) {
  for (count in 3:9) {
    at <- pretty(limits, count)
    at <- at[at >= limits[1L] & at <= limits[2L]]
    if (length(at) >= 3L) break
  }
  at
}

# a log scale with a label at each value, if they are few
scale_log_x <- function(values = NULL) {
  values <- sort(unique(values))
  ggplot2::scale_x_log10(breaks = if (length(values) %in% 1:8) values else log_breaks, labels = format_number, guide = ggplot2::guide_axis(check.overlap = TRUE))
}

# powers of 10, with as many numbers between them as make three
log_breaks <- function(limits) {
  decades <- 10^(floor(log10(limits[1L])):ceiling(log10(limits[2L])))
  for (steps in list(1, c(1, 3), c(1, 2, 5), 1:9)) {
    at <- as.vector(outer(steps, decades))
    at <- at[at >= limits[1L] & at <= limits[2L]]
    if (length(at) >= 3L) return(at)
  }
  few_breaks(limits)
}

# colours that differ in print: as dark as they differ, with shapes and linetypes as well
scale_greys <- function(count, ...) {
  ggplot2::scale_colour_manual(values = c("#000000", "#D55E00", "#0072B2", "#8C8C8C", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")[(seq_len(count) - 1) %% 8 + 1], ...)
}

# `plot$data` is the whole table, whatever the layers draw
with_table <- function(plot, table) {
  for (layer in plot$layers) if (inherits(layer$data, "waiver")) layer$data <- plot$data
  plot$data <- table
  plot
}

room_at_sides <- function() {
  ggplot2::theme(plot.margin = ggplot2::margin(5.5, 16, 5.5, 16), panel.spacing.x = ggplot2::unit(1.5, "lines"))
}

not_shown_caption <- function(left_out) if (left_out > 0L) paste(format(left_out, big.mark = ",", decimal.mark = "."), "more numbers are not shown")

# a row for each of many: less room each
bar_width <- function(rows) if (nrow(rows) > 20L) 1.5 else 3

theme_many_rows <- function(rows) {
  if (nrow(rows) > 25L) ggplot2::theme(axis.text.y = ggplot2::element_text(size = ggplot2::rel(0.7)))
}

# Names in which the ends of intervals have at most 4 digits, or all before the point, unless two names would be the same.
short_intervals <- function(names) {
  names <- as.character(names)
  ends <- gregexpr("(?<=[[(,])-?[0-9]+[.][0-9]+(?=[],)])", names, perl = TRUE)
  short <- names
  shorten <- function(x) format(round(x, max(0, 3 - floor(log10(max(abs(x), 1))))), digits = 15)
  regmatches(short, ends) <- lapply(regmatches(names, ends), function(x) vapply(as.double(x), shorten, ""))
  if (anyDuplicated(short) > anyDuplicated(names)) names else short
}

theme_many_panels <- function(count) {
  if (count > 9L) ggplot2::theme(strip.text = ggplot2::element_text(size = ggplot2::rel(0.7)), strip.clip = "off")
}

# a panel for each of `count` variables; long names, as of conditional probabilities, cells and interactions, in several lines
facet_variables <- function(facets = ggplot2::vars(.data$variable), count = 1L, ...) {
  ggplot2::facet_wrap(facets, ncol = if (count > 12L) 4L, labeller = ggplot2::as_labeller(function(names) vapply(short_intervals(names), break_name, "")), ...)
}

# Parts of a subtitle, in lines that a plot has room for.
wrap_parts <- function(parts) paste(strwrap(paste(parts, collapse = "; "), 75L), collapse = "\n")

# Names next to rows, where a line has room for more.
row_labels <- function(names) vapply(short_intervals(names), break_name, "", most = 40L, USE.NAMES = FALSE)

# Breaks before "|" and after ":", "," and "=", where a line would have more than `most` characters; never within an interval.
break_name <- function(name, most = 18L) {
  lines <- ""
  for (piece in strsplit(gsub("(:|(?<![0-9f]),|,(?![-0-9.I])|=(?=[[(]))|(?=[|])", "\\1\r", name, perl = TRUE), "\r")[[1L]]) {
    last <- lines[length(lines)]
    if (nzchar(last) && nchar(last) + nchar(piece) > most) lines <- c(lines, trimws(piece)) else lines[length(lines)] <- paste0(last, piece)
  }
  paste(lines, collapse = "\n")
}

# Names of the variables that are one less a later one, as the probability of "no" is
# next to the probability of "yes": a panel of its own would show the same mirrored. `values` is a
# matrix, draws (or replicates) x variables.
mirrored <- function(values) {
  first <- values[1L, ]
  found <- vapply(seq_along(first), function(j) {
    candidates <- which(abs(first + first[j] - 1) < 1e-9 & seq_along(first) > j)
    any(vapply(candidates, function(k) all(abs(values[, j] + values[, k] - 1) < 1e-9), TRUE)) && stats::var(values[, j]) > 0
  }, TRUE)
  colnames(values)[found]
}

# can these intervals be seen on one scale, none too short and not most of it empty?
comparable <- function(lower, upper) {
  width <- upper - lower
  diff(range(lower, upper)) <= min(15 * min(width), 4 * sum(width))
}
