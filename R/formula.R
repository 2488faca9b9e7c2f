# Taking formulas apart. They may come from a file and be of any depth, so the
# walk is a loop with a stack of its own, linear in the size of the formula, and
# stops as soon as there are more terms than any statistic takes.

most_terms <- 2000

# What `operands()` cannot take apart any further, from left to right.
# `operands(side)` gives a list of the operands of a call, or NULL.
formula_leaves <- function(side, operands, call = caller_env()) {
  leaves <- list()
  stack <- list(side)
  depth <- 1L
  while (depth > 0L) {
    side <- stack[[depth]]
    depth <- depth - 1L
    inner <- operands(side)
    if (is.null(inner)) {
      leaves[length(leaves) + 1L] <- list(side) # it may be NULL
    } else {
      stack[depth + seq_along(inner)] <- rev(inner)
      depth <- depth + length(inner)
    }
    # each entry of the stack has one leaf or more
    if (length(leaves) + depth > most_terms) {
      stop_classed("formula", "{.arg formula} must have at most {most_terms} terms, but has more.", call = call)
    }
  }
  leaves
}

# of a sum, or of another operator's chain, in parentheses or not
chain_operands <- function(operator) {
  function(side) if (is_operation(side, "(", 1L) || is_operation(side, operator, 2L)) as.list(side)[-1L]
}

is_operation <- function(side, operator, arguments) {
  is.call(side) && identical(side[[1L]], as.name(operator)) && length(side) == arguments + 1L
}
