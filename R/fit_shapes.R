# What a fit says of fit_shapes_compare.R's comparison: `fit$shapes`.

# coefficients that differ, the most first
differing_shapes <- function(fit) {
  table <- fit$shapes
  if (is.null(table)) return(NULL)
  table <- table[which(abs(table$difference) - 2 * table$error > 1), ]
  table[order(-abs(table$difference)), ]
}

shape_words <- function(table) {
  ends <- cbind(format_number(table$lowest, 3), format_number(table$highest, 3))
  skewed <- ifelse(ends[, 1L] == ends[, 2L], ends[, 1L], paste(ends[, 1L], "to", ends[, 2L]))
  sprintf("%s: %s (sd %s) with normal covariates, about %s with skewed ones", table$coefficient, format_number(table$mean, 3), format_number(table$sd, 2), skewed)
}

# for a print
shape_lines <- function(fit) {
  found <- utils::head(differing_shapes(fit), 4L)
  if (NROW(found)) paste0(c("  covariates ", rep("             ", nrow(found) - 1L)), shape_words(found))
}
