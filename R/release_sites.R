# A named list of releases, one for each site: what as_release() makes of a data frame of sites.

new_sites_list <- function(releases) structure(releases, class = "noiseaware_sites")

#' @export
`[.noiseaware_sites` <- function(x, i) new_sites_list(NextMethod())

#' @export
print.noiseaware_sites <- function(x, ...) {
  most <- 10L
  columns <- 4L
  cat("<releases> of ", format_size(length(x)), ngettext(length(x), " site", " sites"), "\n", sep = "")
  if (length(x) == 0L) return(invisible(x))
  said <- function(name, of) {
    texts <- unique(vapply(x, function(release) paste(vapply(release_parts(release), of, ""), collapse = "; "), ""))
    cat(sprintf("  %-10s ", name), texts[1L], if (length(texts) > 1L) sprintf(" (%s; it differs between sites)", names(x)[1L]), "\n", sep = "")
  }
  said("statistic", function(part) describe_statistic(part$statistic))
  said("mechanism", function(part) format(part$mechanism))
  shown <- utils::head(unclass(x), most)
  components <- unique(unlist(lapply(shown, function(release) names(release$value))))
  values <- do.call(rbind, lapply(shown, function(release) unname(release$value[utils::head(components, columns)])))
  noise <- vapply(shown, function(release) {
    sd <- noise_sd(release)
    if (all(is.na(sd))) "" else paste(unique(format_number(range(sd, na.rm = TRUE), 4)), collapse = " to ")
  }, "")
  table <- data.frame(names(shown), vapply(shown, function(release) if (is.null(release$n)) "not known" else format_size(release$n), ""),
                      apply(values, 2L, format, digits = 5, simplify = FALSE), noise, row.names = NULL)
  names(table) <- c("site", "records", utils::head(components, columns), "noise sd")
  cat("\n")
  print(table[c(TRUE, TRUE, rep(TRUE, ncol(values)), any(nzchar(noise)))], row.names = FALSE)
  left <- c(site = length(x) - length(shown), component = length(components) - ncol(values))
  left <- left[left > 0L]
  if (length(left)) cat("... and ", paste(format_size(left), "more", paste0(names(left), ifelse(left > 1L, "s", "")), collapse = ", "), "; see summary()\n", sep = "")
  invisible(x)
}

#' @export
summary.noiseaware_sites <- function(object, ...) {
  table <- do.call(rbind, lapply(names(object), function(site) {
    own <- summary(object[[site]])$table
    own$hidden_below <- own$hidden_below %||% NA_real_
    data.frame(site = site, records = object[[site]]$n %||% NA_real_, own)
  }))
  if (all(is.na(table$hidden_below))) table$hidden_below <- NULL
  table
}

# A panel for each component, in its own units, with a row for each site.
#' @rdname plot.noiseaware_release
#' @export
plot.noiseaware_sites <- function(x, ...) {
  check_no_dots(...)
  most <- 40L
  panels <- 12L
  if (any(vapply(x, has_record_noise, TRUE))) stop_classed("release", "The totals of noisy records have no noise that could be drawn.")
  if (length(x) == 0L) stop_classed("argument", "{.arg x} must have at least one site.")
  table <- do.call(rbind, lapply(names(x), function(site) {
    own <- as.data.frame(x[[site]])
    data.frame(site = site, own[c("component", "value", "noise_sd")], hidden_below = own$hidden_below %||% NA_real_)
  }))
  components <- unique(table$component)
  data <- table[table$site %in% utils::head(names(x), most) & table$component %in% utils::head(components, panels), ]
  left <- c(site = length(x) - most, number = length(components) - panels)
  left <- left[left > 0L]
  data$site <- factor(data$site, rev(names(x)))
  data$variable <- factor(data$component, components)
  hidden <- is.na(data$value)
  data$value[hidden] <- data$hidden_below[hidden]
  sd <- ifelse(is.na(data$noise_sd) | hidden, 0, data$noise_sd)
  data$from <- data$value - 2 * sd
  data$to <- data$value + 2 * sd
  plot <- ggplot2::ggplot(data, ggplot2::aes(y = .data$site)) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$from, xend = .data$to, yend = .data$site), linewidth = 0.7) +
    ggplot2::geom_point(ggplot2::aes(x = .data$value), data[!hidden, ], size = 2) +
    (if (any(hidden)) ggplot2::geom_text(ggplot2::aes(x = .data$value), data[hidden, ], label = "<", fontface = "bold")) +
    ggplot2::labs(x = if (length(components) > 1L) "published number" else paste("published number:", components), y = NULL,
                  subtitle = wrap_parts(c(if (any(sd > 0)) "lines: plus and minus two noise sd", if (any(data$noise_sd %in% 0)) "points alone: exact",
                                          if (any(hidden)) "<: hidden below here")),
                  caption = if (length(left)) paste(paste(format_size(left), "more", paste0(names(left), ifelse(left > 1L, "s", "")), collapse = " and "), "not shown")) +
    theme_noiseaware() +
    ggplot2::scale_y_discrete(labels = row_labels) +
    theme_many_rows(unique(data["site"]))
  if (length(components) > 1L) plot <- plot + facet_variables(scales = "free_x", count = nlevels(data$variable)) + scale_few_x() + room_at_sides()
  with_table(plot, table)
}

# What str() shows of a release, of sites and of a fit: the names of their elements, not the hundreds of lines inside them
#' @rawNamespace S3method(utils::str,noiseaware_release)
str.noiseaware_release <- function(object, max.level = 1, give.attr = FALSE, ...) {
  cat("<", class(object)[1L], "> ", sep = "")
  utils::str(unclass(object), max.level = max.level, give.attr = give.attr, ...)
}

#' @rawNamespace S3method(utils::str,noiseaware_sites)
str.noiseaware_sites <- function(object, max.level = 1, list.len = 10, ...) str.noiseaware_release(object, max.level, list.len = list.len, ...)

#' @rawNamespace S3method(utils::str,noiseaware_fit)
str.noiseaware_fit <- str.noiseaware_release
