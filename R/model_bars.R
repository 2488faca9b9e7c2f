# Bars in the formula of a regression, as in lme4 and brms: y ~ x + (1 + x | g). They state what varies between the groups of one release;
# R/engine_pool_setup.R makes a pooling of it.

is_bar <- function(side) is_operation(side, "|", 2L) || is_operation(side, "||", 2L)

# The formula without its bars; the `group`, and `bars`: the labels of the terms that vary, and whether they are correlated.
split_bars <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula")) return(list(formula = formula))
  side <- formula[[length(formula)]]
  if (is_bar(side)) stop_classed("formula", "Terms that vary between groups must be in parentheses: {.code {formula_text(call('(', side))}}.", call = call)
  leaves <- formula_leaves(side, chain_operands("+"), call)
  barred <- vapply(leaves, is_bar, TRUE)
  if (!any(barred)) return(list(formula = formula))
  formula[[length(formula)]] <- if (all(barred)) 1 else Reduce(function(a, b) call("+", a, b), leaves[!barred])
  c(list(formula = formula), read_bars(leaves[barred], formula, call))
}

read_bars <- function(bars, formula, call) {
  groups <- unique(lapply(bars, `[[`, 3L))
  if (length(groups) > 1L || !is.name(groups[[1L]])) {
    stop_classed("formula", c("All bars of {.arg formula} must have the same factor of groups, a name.",
                              x = "It has {.code {vapply(groups, formula_text, '')}}.",
                              i = "Each number of a release of groups is about one of them. Crossed or nested factors need totals by their combinations."), call = call)
  }
  labels <- lapply(bars, function(bar) bar_labels(bar[[2L]], call))
  several <- lengths(labels) > 1L
  correlated <- several & vapply(bars, is_operation, TRUE, "|", 2L)
  if (any(correlated) && length(bars) > 1L) {
    stop_classed("formula", c("Terms that vary must all be correlated, in one bar, or all independent.", i = "{.code (1 + x | g)} or {.code (1 + x || g)}."), call = call)
  }
  labels <- unlist(labels)
  twice <- unique(labels[duplicated(labels)])
  if (length(twice)) stop_classed("formula", "Each term may vary only once, but {.code {twice}} var{?ies/y} more than once.", call = call)
  absent <- setdiff(labels, c("(Intercept)", bar_labels(functions_as_names(formula, call)[[length(formula)]], call)))
  if (length(absent)) {
    stop_classed("formula", c("A slope that varies between groups needs its fixed effect in {.arg formula}, but {.code {absent}} {?has/have} none.",
                              i = "The slopes of groups are normal about a mean, which is the fixed effect."), call = call)
  }
  list(group = as.character(groups[[1L]]), bars = list(labels = labels, correlated = any(correlated)))
}

# "(Intercept)" and the labels of terms, the parts of products in alphabetical order
bar_labels <- function(side, call) {
  side <- functions_as_names(stats::as.formula(call("~", side), globalenv()), call)
  terms <- tryCatch(stats::terms(side), error = function(e) {
    stop_classed("formula", "Terms that vary must be terms of {.arg formula}: {conditionMessage(e)}.", call = call)
  })
  labels <- gsub("`", "", attr(terms, "term.labels"), fixed = TRUE)
  found <- c(if (attr(terms, "intercept")) "(Intercept)", vapply(strsplit(labels, ":", fixed = TRUE), function(parts) paste(sort(parts), collapse = ":"), ""))
  if (length(found) == 0L) stop_classed("formula", "Nothing varies in {.code ({formula_text(side[[2L]])} | g)}.", call = call)
  found
}

# "(1 + x | g)"; NULL without bars
bars_text <- function(model) {
  if (is.null(model$bars)) return(NULL)
  labels <- sub("^\\(Intercept\\)$", "1", model$bars$labels)
  if (!"1" %in% labels) labels <- c("0", labels)
  bar <- if (model$bars$correlated || length(model$bars$labels) == 1L) "|" else "||"
  paste0("(", paste(labels, collapse = " + "), " ", bar, " ", model$group, ")")
}

# for format()
bars_line <- function(model) if (!is.null(model$bars)) paste0("  groups        ", bars_text(model))
