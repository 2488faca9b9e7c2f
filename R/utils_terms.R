# Terms of a model's formula: products and powers of the variables, and offsets. src/model/derived_columns.c computes their columns from a record's columns.

# A list of `response`; `variables`, it and all others in the order in which they come; `terms`, a list of lists of atoms
# (`label`, `variable`, `power`) in the order of lm(); `offsets`, a list of `variable` and `log`; and whether it is
# `plain`, names alone.
model_terms <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 3L) {
    stop_argument("formula", "a formula with a response, such as y ~ x", describe(formula), "formula", call)
  }
  leaves <- formula_leaves(formula[[3L]], chain_operands("+"), call)
  if (all(vapply(leaves, function(t) is.name(t) || identical(t, 1) || identical(t, 1L), TRUE))) {
    variables <- formula_variables(formula, call)
    terms <- lapply(variables[-1L], function(v) list(new_atom(v)))
    return(list(response = variables[1L], variables = variables, terms = terms, offsets = list(), plain = TRUE))
  }
  response <- formula_variables(stats::as.formula(as.call(list(as.name("~"), formula[[2L]], 1))), call)
  is_offset <- vapply(leaves, is_operation, TRUE, "offset", 1L)
  offsets <- lapply(leaves[is_offset], read_offset, call)
  terms <- list()
  for (leaf in leaves[!is_offset]) {
    if (identical(leaf, 1) || identical(leaf, 1L)) next
    if (length(formula_leaves(leaf, product_operands, call)) > most_factors) refuse_product(leaf, call)
    terms <- unique(c(terms, expand_term(leaf, leaf, call)))
    if (length(terms) > most_columns) refuse_product(leaf, call)
  }
  atoms <- unique(unlist(terms, recursive = FALSE))
  labels <- vapply(atoms, `[[`, "", "label")
  # atoms in the order in which they come in the formula, terms by how many they have
  terms <- lapply(terms, function(term) atoms[sort(match(vapply(term, `[[`, "", "label"), labels))])
  terms <- unique(terms)
  terms <- terms[order(lengths(terms))]
  variables <- unique(c(response, vapply(atoms, `[[`, "", "variable"), vapply(offsets, `[[`, "", "variable")))
  inside <- c(vapply(atoms, `[[`, "", "variable"), vapply(offsets, `[[`, "", "variable"))
  if (response %in% inside) {
    stop_classed("formula", "The response {.var {response}} must not also be a term or an offset of {.arg formula}.", call = call)
  }
  for (term in terms) check_term(term, call)
  list(response = response, variables = variables, terms = terms, offsets = offsets, plain = FALSE)
}

# Are there calls among the terms that statistics of plain variables do not take, but model_terms() does?
has_products <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 3L) return(FALSE)
  leaves <- formula_leaves(formula[[3L]], chain_operands("+"), call)
  any(vapply(leaves, function(t) is.call(t) && as.character(t[[1L]])[1L] %in% c(":", "*", "I", "offset"), TRUE))
}

new_atom <- function(variable, power = 1) {
  base <- if (is.null(named_function(variable))) format_name(variable) else variable
  list(label = if (power == 1) variable else paste0("I(", base, "^", power, ")"), variable = variable, power = power)
}

# The terms, lists of atoms, of sums and products. `most_factors` bounds the depth.
expand_term <- function(side, whole, call) {
  if (is.name(side) && !identical(side, quote(.))) return(list(list(new_atom(as.character(side)))))
  inner <- function(side) expand_term(side, whole, call)
  if (is_operation(side, "(", 1L)) return(inner(side[[2L]]))
  if (is_operation(side, "I", 1L)) return(list(list(read_power(side, call))))
  if (is_operation(side, "+", 2L)) return(unique(c(inner(side[[2L]]), inner(side[[3L]]))))
  if (is_operation(side, ":", 2L)) return(cross_terms(inner(side[[2L]]), inner(side[[3L]]), whole, call))
  if (is_operation(side, "*", 2L)) {
    left <- inner(side[[2L]])
    right <- inner(side[[3L]])
    return(unique(c(left, right, cross_terms(left, right, whole, call))))
  }
  if (is_operation(side, "^", 2L) && is_power(side[[3L]]) && !is.name(side[[2L]])) {
    base <- inner(side[[2L]])
    terms <- base
    for (k in seq_len(side[[3L]] - 1)) terms <- unique(c(terms, cross_terms(terms, base, whole, call)))
    return(terms)
  }
  refuse_model_term(side, call)
}

cross_terms <- function(a, b, whole, call) {
  if (length(a) * length(b) > most_columns) refuse_product(whole, call)
  unique(unlist(lapply(a, function(one) lapply(b, function(other) unique(c(one, other)))), recursive = FALSE))
}

read_power <- function(side, call) {
  power <- side[[2L]]
  if (is_operation(power, "^", 2L) && is.name(power[[2L]]) && is_power(power[[3L]]) && power[[3L]] >= 2 && power[[3L]] <= most_power) {
    return(new_atom(as.character(power[[2L]]), power[[3L]]))
  }
  refuse_model_term(side, call)
}

read_offset <- function(side, call) {
  inner <- side[[2L]]
  log <- is_operation(inner, "log", 1L)
  if (log) inner <- inner[[2L]]
  if (is.name(inner) && !identical(inner, quote(.))) return(list(variable = as.character(inner), log = log))
  stop_classed("formula", c("An offset of {.arg formula} must be a variable or its logarithm, as {.code offset(log(exposure))}.",
                            x = "It is {.code {shorten_text(formula_text(side))}}."), call = call)
}

refuse_product <- function(term, call) {
  stop_classed("formula", paste("{.arg formula} must have at most {most_columns} terms, and at most {most_factors} variables in one of them:",
                                 "{.code {shorten_text(formula_text(term))}} has more."),
               call = call)
}

refuse_model_term <- function(side, call) {
  if (identical(side, quote(.)) || is_operation(side, "-", 2L) || is_operation(side, "-", 1L) || is.numeric(side)) refuse_term(side, call)
  stop_classed("formula", c(paste("The terms of {.arg formula} must be variables, products such as {.code x:g} and {.code x * g},",
                                  "or powers such as {.code I(x^2)}, up to {most_power}."),
                            x = "{.code {shorten_text(formula_text(side))}} is none of these.", i = "Transform the variable in the data first."), call = call)
}

# I(x^2):x would be a cube that has another name
check_term <- function(term, call) {
  variables <- vapply(term, `[[`, "", "variable")
  if (!anyDuplicated(variables)) return(invisible())
  label <- paste(vapply(term, `[[`, "", "label"), collapse = ":")
  stop_classed("formula", c("A term of {.arg formula} must have each variable once, but {.code {label}} has {.var {variables[duplicated(variables)]}} twice.",
                            i = "Write a power, such as {.code I(x^3)}."), call = call)
}

# ---- columns ---------------------------------------------------------------------------

# What terms make of the columns of `base` (design_columns() and function_rows(), the response first): `design`, a row for the response and
# one for each coefficient but the intercept's, as design_columns() has them; `column`, its place in C's columns; `powers`,
# of the columns of base, a row each; and what C needs of products.
term_columns <- function(said, base, levels, call) {
  check_margins(said$terms, levels, call)
  q <- nrow(base)
  rows <- do.call(rbind, lapply(said$terms, function(term) term_powers_of(term, base, levels, call)))
  powers <- rbind(numeric(q), rows)
  key <- function(p) paste(p, collapse = " ")
  keys <- apply(powers, 1L, key)
  if (anyDuplicated(keys)) {
    stop_classed("formula", "Terms of {.arg formula} must give different columns, but {.val {rownames(powers)[duplicated(keys)]}} {?appears/appear} twice.", call = call)
  }
  number <- is.na(base$level)
  centres <- base$centre
  centres[1L] <- 0
  single <- rowSums(powers) == 1
  closed <- vapply(seq_len(nrow(powers)), function(j) all(lower_keys(powers[j, ], number, key) %in% c(keys, key(numeric(q)))), TRUE)
  product <- which(rowSums(powers) > 1)
  of <- lapply(product, function(j) rep(seq_len(q), powers[j, ]))
  shift <- Map(function(j, v) if (closed[j]) centres[v] else numeric(length(v)), product, of)
  design <- base[c(1L, vapply(seq_len(nrow(powers))[-1L], function(j) which.max(powers[j, ] > 0), 0L)), ]
  column <- c(0, design$column[-1L]) # of codes it is none; filled in below
  column[-1L] <- vapply(seq_len(nrow(powers))[-1L], function(j) if (single[j]) which(powers[j, ] == 1) - 1 else q + match(j, product) - 1, 0)
  rownames(design) <- NULL
  design$name[-1L] <- rownames(powers)[-1L]
  for (k in seq_along(product)) {
    j <- product[k]
    ends <- c(1, 1)
    for (v in unique(of[[k]])) {
      at <- shift[[k]][match(v, of[[k]])]
      power <- (c(base$lower[v], base$upper[v]) - at)^powers[j, v]
      if (powers[j, v] %% 2 == 0 && base$lower[v] < at && base$upper[v] > at) power <- c(0, max(power))
      ends <- range(outer(ends, power))
    }
    design[j, c("lower", "upper")] <- ends
    design$centre[j] <- if (closed[j]) 0 else prod(centres^powers[j, ])
    design$level[j] <- if (any(number & powers[j, ] > 0)) NA else paste(base$level[powers[j, ] > 0], collapse = ":")
  }
  design$variable[-1L] <- rep(vapply(said$terms, term_label, ""), vapply(said$terms, function(t) nrow(term_powers_of(t, base, levels, call)), 0L))
  list(design = design, column = column, powers = powers, product = product, of = of, shift = shift,
       centring = product_centring(powers, keys, key, closed, centres, design$centre, number))
}

term_label <- function(term) paste(vapply(term, `[[`, "", "label"), collapse = ":")

# A row of powers of the columns for each column of a term, the levels of the first factor fastest.
term_powers_of <- function(term, base, levels, call) {
  each <- lapply(term, function(atom) {
    at <- which(base$variable == atom$variable)
    if (!is.na(base$level[at[1L]]) && atom$power > 1) {
      stop_classed("formula", "A power needs a number, but {.var {atom$variable}} is a factor.", call = call)
    }
    out <- matrix(0, length(at), nrow(base), dimnames = list(if (atom$power == 1) base$name[at] else atom$label, NULL))
    out[cbind(seq_along(at), at)] <- atom$power
    out
  })
  grid <- as.matrix(expand.grid(lapply(each, function(e) seq_len(nrow(e)))))
  rows <- lapply(seq_len(nrow(grid)), function(r) Reduce(`+`, Map(function(e, k) e[k, ], each, grid[r, ])))
  names <- vapply(seq_len(nrow(grid)), function(r) paste(mapply(function(e, k) rownames(e)[k], each, grid[r, ]), collapse = ":"), "")
  matrix(unlist(rows), length(rows), byrow = TRUE, dimnames = list(names, NULL))
}

# With a factor's first level left out a product needs the term without the factor, as lm() would code it otherwise.
check_margins <- function(terms, levels, call) {
  labels <- vapply(terms, function(t) paste(sort(vapply(t, `[[`, "", "label")), collapse = ":"), "")
  for (term in terms[lengths(terms) > 1L]) for (k in seq_along(term)) {
    if (!term[[k]]$variable %in% names(levels)) next
    rest <- vapply(term[-k], `[[`, "", "label")
    if (paste(sort(rest), collapse = ":") %in% labels) next
    stop_classed("formula", c(paste("A product with a factor must also have the term without the factor,",
                                    "but {.code {term_label(term)}} has no {.code {paste(rest, collapse = ':')}}."),
                              i = "Write {.code {paste(vapply(term, `[[`, '', 'label'), collapse = ' * ')}}."), call = call)
  }
}

# Keys of the products with lower powers of numbers.
lower_keys <- function(powers, number, key) {
  at <- which(powers > 0 & number)
  if (length(at) == 0L) return(character())
  grid <- as.matrix(expand.grid(lapply(powers[at], function(p) 0:p)))
  apply(grid, 1L, function(g) key(replace(powers, at, g)))
}

# As centring(): natural coefficients are `matrix` times those of C's columns, plus `shift`.
product_centring <- function(powers, keys, key, closed, centres, middles, number) {
  k <- nrow(powers)
  matrix <- diag(k)
  for (j in seq_len(k)[-1L]) {
    at <- which(powers[j, ] > 0 & number)
    if (!closed[j] || length(at) == 0L) {
      matrix[1L, j] <- -middles[j]
      next
    }
    grid <- as.matrix(expand.grid(lapply(powers[j, at], function(p) 0:p)))
    for (r in seq_len(nrow(grid))) {
      left <- powers[j, at] - grid[r, ]
      to <- match(key(replace(powers[j, ], at, grid[r, ])), keys)
      matrix[to, j] <- prod(choose(powers[j, at], left) * (-centres[at])^left)
    }
  }
  # unit triangular, lower degrees first
  order <- order(rowSums(powers[, number, drop = FALSE]))
  inverse <- matrix
  inverse[order, order] <- backsolve(matrix[order, order], diag(k))
  list(matrix = matrix, inverse = inverse, shift = c(middles[1L], numeric(k - 1L)), order = order)
}

# A model's formula with these columns: NULL where it is plain, else term_columns() and `fields`. The intercept's shift is
# less what offsets are in the middle.
bind_terms <- function(said, base, levels, offsets, call, covariates = NULL) {
  if (said$plain) return(NULL)
  functions <- if (length(said$functions)) function_rows(said, base, covariates, call)
  every <- rbind(base, functions[names(base)])
  coded <- Filter(function(f) f$steps[[length(f$steps)]]$name %in% ending_steps, said$functions)
  check_function_powers(said, names(coded), call)
  columns <- term_columns(said, every, c(levels, coded), call)
  columns$functions <- functions
  columns$centring$shift[1L] <- columns$centring$shift[1L] - sum(offsets$middle) - offsets$constant
  columns$offsets <- offsets
  c(columns, list(fields = term_fields(columns, every, offsets)))
}

check_function_powers <- function(said, coded, call) {
  powers <- Filter(function(atom) atom$power > 1 && atom$variable %in% coded, unlist(said$terms, recursive = FALSE))
  if (length(powers)) stop_classed("formula", "A power needs a number, but {.code {powers[[1L]]$variable}} has levels.", call = call)
}

# Rows of base that are offsets, whether their logarithms are, these at the middle of the bounds, and the sum of those that
# are public constants.
bind_offsets <- function(said, base, model, call) {
  constants <- model$covariates$constants
  strange <- setdiff(names(constants), vapply(said$offsets, `[[`, "", "variable"))
  if (length(strange)) {
    stop_classed("variables", "{.arg covariates} can fix only offsets of the formula, but {.var {strange}} {?is/are} not.", call = call)
  }
  released <- intersect(names(constants), base$variable)
  if (length(released)) {
    stop_classed("variables", "{.arg covariates} must not fix {.var {released}}: a variable of the release has a distribution.", call = call)
  }
  out <- list(row = integer(), log = logical(), middle = numeric(), constant = 0)
  for (offset in said$offsets) {
    v <- offset$variable
    value <- constants[[v]]$value
    if (!is.null(value)) {
      if (offset$log) check_positive(value, paste0("covariates$", v), "prior", call = call)
      out$constant <- out$constant + if (offset$log) log(value) else value
      next
    }
    row <- which(base$variable == v)
    if (length(row) != 1L || !is.na(base$level[row])) {
      stop_classed("variables", "An offset must be a number, but {.var {v}} is a factor.", call = call)
    }
    if (offset$log) check_exposure(base[row, ], model$covariates$lone[[v]], !is.null(model$covariates$public), call)
    middle <- (base$lower[row] + base$upper[row]) / 2
    out$row <- c(out$row, row)
    out$log <- c(out$log, offset$log)
    out$middle <- c(out$middle, if (offset$log) log(middle) else middle)
  }
  out
}

check_exposure <- function(row, lone, public, call) {
  if (row$lower < 0 || (public && row$lower == 0)) {
    must <- if (public) "it must be positive" else "its bounds must not be negative"
    stop_classed("variables", paste("The logarithm of {.var {row$name}} is an offset: {must},",
                                    "but {if (public) 'is from' else 'are'} {format_number(row$lower)} {if (public) 'on' else paste('and', format_number(row$upper))}."),
                 call = call)
  }
  if (public) return(invisible())
  if (!is.null(lone) && lone$kind %in% c("beta", "lognormal")) return(invisible())
  what <- if (is.null(lone)) "It is normal and may be negative." else "It may be 0 or negative."
  stop_classed("variables", c("The offset {.code log({row$name})} needs a positive distribution of {.var {row$name}}.", x = what,
                              i = paste("Use {.code covariates = list({row$name} = covariate_lognormal())} or {.code covariate_beta()};",
                                        "{.code fixed(value)} if it is a public constant; or release the logarithm, {.code offset(log_{row$name})}.")),
               call = call)
}

# What src/model/derived_columns.c reads of them; `offsets`: see bind_offsets().
term_fields <- function(columns, base, offsets) {
  functions <- columns$functions
  size <- c(rep(1L, NROW(functions)), lengths(columns$of))
  of <- c(as.list(functions$of), columns$of)
  shift <- c(as.list(numeric(NROW(functions))), columns$shift)
  added <- numeric(length(columns$of))
  c(list(centre = as.double(c(base$centre, columns$design$centre[columns$product])),
       column = as.double(c(base$column, added - 1)), code = as.double(c(base$code, added)),
       product_size = as.double(size), product_of = as.double(unlist(of)) - 1, product_shift = as.double(unlist(shift)),
       term = as.double(columns$column), coefficient_centre = as.double(c(base$centre[1L] - sum(offsets$middle), columns$design$centre[-1L])),
       coefficient_shift = as.double(columns$centring$shift[1L]),
       expand = as.double(t(columns$centring$matrix)), collect = as.double(t(columns$centring$inverse)),
       offset_of = as.double(offsets$row) - 1, offset_log = as.double(offsets$log)),
    if (!is.null(functions)) function_fields(functions))
}

# A bound regression's, natural coefficients from C's and back.
bound_centring <- function(bound) bound$terms$centring %||% centring(bound$design$centre)

# The coefficients that sites do not share if the coordinates `vary` vary: slopes in the middle of the bounds move an intercept at 0 as well.
coefficients_that_differ <- function(bound, coefficients, vary) {
  moved <- bound_centring(bound)$matrix[, coefficients %in% vary, drop = FALSE] != 0
  coefficients[rowSums(moved) > 0]
}

# Natural columns of the coefficients but the intercept's, of records in the columns of the covariates.
term_values <- function(bound, x) {
  if (!is.null(bound$smooth)) return(smooth_columns(bound, x))
  if (is.null(bound$terms)) return(x)
  powers <- bound$terms$powers[-1L, -1L, drop = FALSE]
  if (!is.null(bound$terms$functions)) x <- cbind(x, function_columns(bound, x))
  value <- function(j) Reduce(`*`, lapply(which(powers[j, ] > 0), function(v) x[, v]^powers[j, v]))
  matrix(vapply(seq_len(nrow(powers)), value, numeric(nrow(x))), nrow(x), dimnames = list(NULL, rownames(powers)))
}

# The sum of the offsets of such records; NULL where there are none.
offset_values <- function(bound, x) {
  offsets <- bound$terms$offsets
  if (length(offsets$row) == 0L && is.null(offsets$constant)) return(NULL)
  each <- Map(function(row, log) if (log) log(x[, row - 1L]) else x[, row - 1L], offsets$row, offsets$log)
  Reduce(`+`, each, rep(offsets$constant, nrow(x)))
}

# for methods that know what the variables themselves do alone
check_plain_terms <- function(bound, method, call) {
  if (is.null(bound$terms)) return(invisible())
  derived <- c(bound$terms$functions$name, bound$design$name[bound$terms$product], if (length(bound$terms$fields$offset_of)) "an offset")
  what <- if (length(derived)) "The formula has {.val {derived}}." else "The formula leaves variables out of the linear predictor."
  stop_classed("method", c("Method {.val {method}} is for regressions on the variables themselves.", x = what,
                           i = "Method {.val augment} works, and is exact."), call = call)
}

# Natural coefficients b relate to those of centred columns, a, by b = A a + c:
# the intercept is a_1 + centre_1 - sum a_j centre_j, the response's centre first.
centring <- function(centre) {
  k <- length(centre)
  matrix <- diag(k)
  if (k > 1L) matrix[1L, -1L] <- -centre[-1L]
  # 2 I - A, which solve() does not find where centres are large
  list(matrix = matrix, inverse = 2 * diag(k) - matrix, shift = c(centre[1L], numeric(k - 1L)))
}

centre_coefficients <- function(centring, coefficients) drop(centring$inverse %*% (coefficients - centring$shift))
