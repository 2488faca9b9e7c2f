# model_table() with normal priors on the coefficients of a log-linear model: src/model/loglinear.c.

# The full table is kept, so that any formula will do.
most_loglinear_cells <- 1e6
most_coefficients <- 5000

# of a coefficient, unless the prior says
default_loglinear_sd <- 2

is_loglinear <- function(model) inherits(model, "model_table") && inherits(model$prior, "prior_normal")

format_loglinear <- function(x) {
  c("<model> table, log-linear",
    if (is.null(x$cliques)) "  terms         all of the release's variables" else paste0("  terms         ", shorten_list(clique_names(x$cliques))),
    paste0("  coefficients  ", if (is.null(x$prior$mean) && is.null(x$prior$sd)) sprintf("normal(mean = 0, sd = %g)", default_loglinear_sd) else format(x$prior)),
    if (!is.null(x$zeros)) paste0("  zeros         ", format_zeros(x$zeros)))
}

bind_loglinear <- function(model, columns, levels, call) {
  generators <- model$cliques %||% list(columns$variable)
  columns <- table_columns(generators, columns, call)
  levels <- coded_levels(columns, levels, call)
  size <- lengths(levels)
  check_loglinear_size(generators, size, call)
  codes <- all_codes(size)
  if (!is.null(model$zeros)) codes <- codes[!impossible(model$zeros, codes, levels, call), , drop = FALSE]
  part <- list(children = seq_along(size), parents = integer(), host = 0, codes = codes)
  bound <- bind_parts(model, columns, levels, list(part), list(matrix(1, 1L, nrow(codes))), list(NULL), parameters = NULL,
                      class = c("bound_loglinear", "bound_cells", "bound_table"))
  design <- loglinear_design(generators, codes, levels)
  bound$parameters <- design$names
  prior <- model$prior
  bound$spec$name <- "loglinear"
  own <- list(code = as.double(t(codes)), prior_mean = expand_named(prior$mean, numeric(length(design$names)), "mean", design$names, call),
              prior_sd = expand_named(prior$sd, rep(default_loglinear_sd, length(design$names)), "sd", design$names, call))
  bound$spec$fields[c(names(design$fields), names(own))] <- c(design$fields, own)
  bound
}

check_loglinear_size <- function(generators, size, call) {
  cells <- prod(size)
  shown <- format(c(most_loglinear_cells, cells), big.mark = ",", decimal.mark = ".", trim = TRUE, digits = 7)
  if (cells > most_loglinear_cells) {
    stop_classed("size", c("With {.fn prior_normal} the whole table is stored, so it must have at most {shown[1]} cells, but it has {shown[2]}.",
                           i = "With {.fn prior_dirichlet} and a decomposable graph as {.arg formula}, only a table for each term is stored."), call = call)
  }
  margins <- sum(vapply(generators, function(g) prod(size[g]), 0))
  if (margins > 2 * most_loglinear_cells) {
    stop_classed("size", "The terms must have at most {format_size(2 * most_loglinear_cells)} combinations of levels together, but have {format_size(margins)}.",
                 call = call)
  }
  coefficients <- sum(vapply(loglinear_terms(generators, names(size)), function(term) prod(size[term] - 1), 0))
  if (coefficients > most_coefficients) {
    stop_classed("size", "{.arg formula} must have at most {format_size(most_coefficients)} coefficients, but has {format_size(coefficients)}.", call = call)
  }
}

# All terms of the hierarchical model, those of few variables first, each in the order of the table's variables.
loglinear_terms <- function(generators, variables) {
  inside <- function(g) {
    g <- variables[variables %in% g]
    unlist(lapply(seq_along(g), function(k) utils::combn(g, k, simplify = FALSE)), recursive = FALSE)
  }
  terms <- unique(unlist(lapply(generators, inside), recursive = FALSE))
  terms[order(lengths(terms))]
}

# Coefficients in treatment contrasts, named as in glm(). A term stands in the first margin that has its variables; there it is listed
# for the cells whose codes of these are not 0. A coefficient that no possible cell has is left out.
loglinear_design <- function(generators, codes, levels) {
  variables <- names(levels)
  size <- lengths(levels)
  generators <- lapply(generators, function(g) variables[variables %in% g])
  terms <- loglinear_terms(generators, variables)
  margin_of <- vapply(terms, function(term) which(vapply(generators, function(g) all(term %in% g), TRUE))[1L], 0L)
  count <- vapply(terms, function(term) prod(size[term] - 1), 0)
  offset <- cumsum(c(0, count))
  cells <- vapply(generators, function(g) prod(size[g]), 0)
  start <- cumsum(c(0, cells))
  entries <- do.call(rbind, lapply(seq_along(terms), function(t) {
    g <- generators[[margin_of[t]]]
    of <- all_codes(size[g])[, terms[[t]], drop = FALSE]
    rows <- which(rowSums(of == 0) == 0)
    place <- Reduce(function(at, v) at * (size[[v]] - 1) + of[rows, v] - 1, terms[[t]], 0)
    cbind(cell = start[margin_of[t]] + rows, coefficient = offset[t] + place + 1)
  }))
  possible <- unlist(lapply(seq_along(generators), function(k) {
    at <- Reduce(function(at, v) at * size[[v]] + codes[, v], generators[[k]], 0)
    tabulate(at + 1, cells[k]) > 0
  }))
  entries <- entries[possible[entries[, "cell"]], , drop = FALSE]
  kept <- sort(unique(entries[, "coefficient"]))
  entries <- entries[order(entries[, "cell"]), , drop = FALSE]
  names <- unlist(lapply(terms, term_coefficients, levels))
  fields <- list(margin = as.double(lengths(generators)), margin_column = as.double(match(unlist(generators), variables) - 1),
                 margin_first = c(0, cumsum(as.double(tabulate(entries[, "cell"], sum(cells))))),
                 margin_listed = as.double(match(entries[, "coefficient"], kept) - 1))
  list(names = names[kept], fields = fields)
}

# the last variable the fastest
term_coefficients <- function(term, levels) {
  codes <- all_codes(lengths(levels[term]) - 1) + 1
  do.call(paste, c(lapply(term, function(v) paste0(v, levels[[v]][codes[, v] + 1])), sep = ":"))
}

#' @export
describe_model.bound_loglinear <- function(bound) {
  size <- lengths(bound$levels)
  cells <- nrow(bound$parts[[1L]]$codes)
  left_out <- prod(size) - cells
  terms <- bound$model$cliques %||% list(names(size))
  sprintf("log-linear table of %d variable%s, %s: %d cells%s, %d coefficients", length(size), if (length(size) == 1L) "" else "s",
          shorten_list(clique_names(terms), 6L), cells, if (left_out > 0) sprintf(" (%d impossible)", left_out) else "", length(bound$parameters))
}

#' @export
describe_priors.bound_loglinear <- function(bound) {
  fields <- bound$spec$fields
  stats::setNames(sprintf("normal(%s, %s)", format_number(fields$prior_mean, 3), format_number(fields$prior_sd, 3)), bound$parameters)
}
