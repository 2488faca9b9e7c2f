# Cells of a table and of its cliques, as used in models of tables.

format_zeros <- function(zeros) if (is.data.frame(zeros)) paste(nrow(zeros), "combinations") else shorten_text(formula_text(zeros))

clique_names <- function(cliques) vapply(cliques, paste, "", collapse = ":")

table_columns <- function(cliques, columns, call) {
  variables <- unique(unlist(cliques))
  check_all_described(variables, columns, NULL, call)
  columns[match(variables, columns$variable), ]
}

# Codes of all combinations of so many levels, from 0: a row each, the last variable fastest.
all_codes <- function(size) {
  grid <- do.call(expand.grid, c(lapply(rev(unname(size)), function(k) seq_len(k) - 1), KEEP.OUT.ATTRS = FALSE))
  codes <- as.matrix(grid)[, rev(seq_along(size)), drop = FALSE]
  dimnames(codes) <- list(NULL, names(size))
  codes
}

# Which combinations of codes cannot be.
impossible <- function(zeros, codes, levels, call) {
  labels <- as.data.frame(lapply(stats::setNames(nm = names(levels)), function(v) levels[[v]][codes[, v] + 1]), optional = TRUE)
  out <- if (is.data.frame(zeros)) listed_zeros(zeros, labels, levels, call) else told_zeros(zeros, labels, call)
  if (sum(!out) < 2L) {
    stop_classed("zeros", "{.arg zeros} must leave at least two cells, but leaves {sum(!out)} of {length(out)}.", call = call)
  }
  out
}

listed_zeros <- function(zeros, labels, levels, call) {
  strange <- setdiff(names(zeros), names(levels))
  if (length(strange)) {
    stop_classed("zeros", c("The columns of {.arg zeros} must be variables of the table, but {.var {strange}} {?is/are} not.",
                            i = "The table has {.var {names(levels)}}."), call = call)
  }
  for (v in names(zeros)) {
    unknown <- setdiff(as.character(zeros[[v]]), levels[[v]])
    if (length(unknown)) {
      stop_classed("zeros", "{.code zeros${v}} must have levels of {.var {v}} ({.val {levels[[v]]}}), but has {.val {unknown}}.", call = call)
    }
  }
  key <- function(data) do.call(paste, c(unname(lapply(data[names(zeros)], as.character)), sep = "\r"))
  key(labels) %in% key(zeros)
}

told_zeros <- function(zeros, labels, call) {
  shown <- shorten_text(formula_text(zeros))
  strange <- setdiff(all.vars(zeros), names(labels))
  strange <- strange[!vapply(strange, exists, TRUE, envir = environment(zeros))]
  if (length(strange)) {
    stop_classed("zeros", c("{.arg zeros} must be about variables of the table, but {.var {strange}} {?is/are} not among them.",
                            i = "The table has {.var {names(labels)}}."), call = call)
  }
  out <- eval(zeros[[2L]], labels, environment(zeros))
  if (!is.logical(out) || length(out) != nrow(labels) || anyNA(out)) {
    stop_argument("zeros", "a formula that is TRUE or FALSE for each combination of levels", paste(shown, "which gives", describe(out)), "zeros", call)
  }
  out
}
