# A narrow question about a wide release: keeps the released numbers that are functions of the model's variables. Noise is independent between components, so
# these are a release of these variables by themselves, and the posterior given them is exact. It ignores only the information in the other numbers.

# The variables that a model describes; NULL: all that it finds.
model_variables <- function(model, public) UseMethod("model_variables")

#' @export
model_variables.default <- function(model, public) c(model$variable, model$group)[!is.null(model$variable)]

#' @export
model_variables.model_mvnormal <- function(model, public) model$variables

#' @export
model_variables.model_lm <- function(model, public) {
  formula <- text_formula(model$formula %||% public$formula %||% "~ 1")
  if (length(formula) != 3L) return(NULL)
  smooth <- read_smooth(formula)
  if (!is.null(smooth)) return(smooth$variables)
  variables <- setdiff(model_terms(formula)$variables, names(model$covariates$constants))
  functions <- names(model_functions(variables, public$columns$variable))
  unique(c(ifelse(variables %in% functions, base_variables(variables), variables), model$group))
}

#' @export
model_variables.model_glm <- model_variables.model_lm

#' @export
model_variables.model_table <- function(model, public) unlist(model$cliques)

#' @export
model_variables.model_naive_bayes <- function(model, public) if (!is.null(model$features)) c(model$class_variable, model$features)

# For models of factors alone, the bins of a histogram are levels.
describes_factors <- function(model) inherits(model, c("model_table", "model_categorical", "model_naive_bayes"))

with_bins_as_levels <- function(statistic, model) {
  if (!describes_factors(model)) return(statistic)
  if (is_several(statistic)) lapply(statistic, bins_as_levels) else bins_as_levels(statistic)
}

# one of the regressions that a fit of all variables answers
is_joint_question <- function(model, release) {
  statistic <- release$statistic
  inherits(model, "model_lm") && inherits(statistic, "stat_crossprod") && length(statistic$levels) == 0L && length(statistic$functions) == 0L
}

# The same release where the model describes all of its variables, or describes one that it lacks, which is refused later.
narrow_release <- function(release, model, call = caller_env()) {
  if (has_public(release)) return(release) # sees to it itself
  release$statistic <- with_bins_as_levels(release$statistic, model)
  narrow <- narrow_parts(release_parts(release), release$statistic, model, call)
  if (is.null(narrow)) return(release)
  at <- narrow$index
  variables <- narrow$variables
  left <- setdiff(release_columns(release$statistic)$columns$variable, variables)
  cli::cli_inform(c("The model uses {length(at)} of the {length(release$value)} numbers of the release: those that involve only {.var {variables}}.",
                    i = "Numbers that involve {.var {left}} are not used.",
                    i = if (is_joint_question(model, release)) "A fit of all variables by {.fn model_mvnormal} uses them; {.fn regress} then gives the regression."),
                  class = "noiseaware_message_components")
  narrowed <- new_release(release$value[at], narrow$statistic, narrow$mechanism, release$n, unname(release$scale[at]), unname(release$granularity[at]),
                          release$noise, release$neighbours)
  narrowed$missing <- release$missing
  narrowed$spent <- privacy(release) # by all numbers together, those that are not used as well
  narrowed
}

# The same of a statistic and a mechanism before a release is made: list(statistic =, mechanism =).
narrow_design <- function(model, statistic, mechanism, neighbours, call = caller_env()) {
  statistic <- with_bins_as_levels(statistic, model)
  end <- 0L
  parts <- lapply(design_parts(statistic, mechanism, neighbours), function(part) {
    part$scale <- mechanism_scale(part$mechanism, part$statistic, call, neighbours = neighbours)
    part$index <- end + seq_along(part$statistic$components)
    end <<- end + length(part$index)
    part
  })
  narrow <- narrow_parts(parts, statistic, model, call)
  (narrow %||% list(statistic = statistic, mechanism = mechanism))[c("statistic", "mechanism")]
}

# list(statistic =, mechanism =, index =, variables =), NULL where there is nothing to leave out
narrow_parts <- function(parts, statistic, model, call) {
  public <- release_columns(statistic)
  variables <- unique(model_variables(model, public))
  if (length(variables) == 0L || !all(variables %in% public$columns$variable)) return(NULL)
  if (all(public$columns$variable %in% variables)) return(NULL)
  by <- unlist(lapply(parts, function(p) if (inherits(p$statistic, "stat_by")) names(p$statistic$levels)[1L]))
  parts <- Filter(Negate(is.null), lapply(parts, narrow_part, variables))
  unknown <- setdiff(variables, unlist(lapply(parts, function(p) p$statistic$columns$variable)))
  if (length(unknown)) refuse_narrow(unknown, setdiff(public$columns$variable, variables), by, call)
  of <- function(field) if (is_several(statistic)) stats::setNames(lapply(parts, `[[`, field), vapply(parts, `[[`, "", "name")) else parts[[1L]][[field]]
  list(statistic = of("statistic"), mechanism = of("mechanism"), index = unlist(lapply(parts, `[[`, "index")), variables = variables)
}

# `by`: variables whose groups have totals of their own
refuse_narrow <- function(unknown, left, by, call) {
  group <- utils::head(intersect(left, by), 1L)
  stop_classed("variables", c("The model must describe every variable of the release, or variables for which some released numbers involve no others.",
                              x = "Every number about {.var {unknown}} also involves {.var {left}}, or the records that it counts depend on {cli::qty(left)}{?it/them}.",
                              i = if (length(group)) "The totals are by {.var {group}}: a regression has {.code (1 | {group})} in its formula, see {.code ?groups}.",
                              i = if (!length(group)) "Use a model of all of them, and derive the narrower answer from its fit."), call = call)
}

# of every site
narrow_sites <- function(releases, model, call = caller_env()) {
  usable <- vapply(releases, inherits, TRUE, "noiseaware_release")
  releases[usable] <- lapply(releases[usable], narrow_release, model, call)
  releases
}

# A part of a release with the components of those variables, NULL if there are none. The noise keeps its scale: the scale that follows from
# a budget would be another for fewer components.
narrow_part <- function(part, variables) {
  separable <- part$mechanism$kernel %in% c("absolute", "squared", "exact", "published")
  kept <- (if (separable) narrow_statistic else narrow_statistic.default)(part$statistic, variables)
  if (is.null(kept)) return(NULL)
  if (identical(kept$statistic, part$statistic)) return(part)
  part$statistic <- kept$statistic
  part$index <- part$index[kept$at]
  part$mechanism <- mechanism_of_scale(part$mechanism, part$scale[kept$at])
  part
}

# the same noise, its size given by the scale in place of a budget
mechanism_of_scale <- function(mechanism, scale) {
  if (is_exact(mechanism)) return(mechanism)
  budgets <- c("epsilon", "delta", "rho", "mu")
  mechanism[intersect(budgets, names(mechanism))] <- list(NULL)
  if (inherits(mechanism, "mech_tabulated")) scale <- scale / noise_table(mechanism)$spread
  mechanism[[if (mechanism$name %in% c("gaussian", "discrete_gaussian")) "sd" else "scale"]] <- scale
  mechanism
}

# list(statistic =, at =): the components that are functions of the variables, as a statistic of these, and their places; NULL: none
narrow_statistic <- function(statistic, variables) UseMethod("narrow_statistic")

# all of it or nothing
#' @export
narrow_statistic.default <- function(statistic, variables) {
  if (all(statistic$columns$variable %in% variables)) list(statistic = statistic, at = seq_along(statistic$components))
}

kept_components <- function(statistic, narrow) list(statistic = narrow, at = match(narrow$components, statistic$components))

# what is said of values beyond them
kept_outside <- function(statistic, variables) {
  outside <- statistic$outside
  if (is.null(names(outside))) return(outside)
  outside <- outside[intersect(names(outside), variables)]
  if (length(outside)) outside else "clamp"
}

# bounds and levels as the constructors take them
declared_bounds <- function(statistic, variables) {
  columns <- statistic$columns
  lapply(stats::setNames(nm = variables), function(v) {
    at <- match(v, columns$variable)
    statistic$levels[[v]] %||% c(columns$lower[at], columns$upper[at])
  })
}

#' @export
narrow_statistic.stat_crossprod <- function(statistic, variables) {
  kept <- intersect(statistic$columns$variable, variables)
  if (length(kept) == 0L) return(NULL)
  if (all(statistic$columns$variable %in% kept)) return(NextMethod())
  formula <- stats::reformulate(if (length(kept) > 1L) format_name(kept[-1L]) else "1", as.name(kept[1L]))
  kept_components(statistic, stat_crossprod(formula, declared_bounds(statistic, kept), statistic$rescale, kept_outside(statistic, kept)))
}

# of the response and one smooth or more
#' @export
narrow_statistic.stat_smooth <- function(statistic, variables) {
  all <- read_smooth(text_formula(statistic$formula))
  splined <- all$variable %in% variables
  if (all(statistic$columns$variable %in% variables) || !all$response %in% variables || !any(splined)) return(NextMethod())
  smooth <- new_smooth(all$response, all$variable[splined], all$k[splined], intersect(all$numbers, variables))
  bounds <- declared_bounds(statistic, smooth$variables)
  kept_components(statistic, stat_crossprod(text_formula(smooth$formula), bounds, outside = kept_outside(statistic, smooth$variables)))
}

#' @export
narrow_statistic.stat_weighted <- function(statistic, variables) narrow_statistic.default(statistic, variables)

#' @export
narrow_statistic.stat_centred <- function(statistic, variables) {
  kept <- intersect(statistic$columns$variable, variables)
  if (length(kept) == 0L) return(NULL)
  if (all(statistic$columns$variable %in% kept)) return(narrow_statistic.default(statistic, variables))
  kept_components(statistic, stat_centred(stats::reformulate(format_name(kept)), declared_bounds(statistic, kept), statistic$centre[kept], kept_outside(statistic, kept)))
}

#' @export
narrow_statistic.stat_moments4 <- function(statistic, variables) {
  kept <- intersect(statistic$columns$variable, variables)
  if (length(kept) == 0L) return(NULL)
  if (all(statistic$columns$variable %in% kept)) return(NextMethod())
  kept_components(statistic, stat_moments4(stats::reformulate(format_name(kept)), declared_bounds(statistic, kept), statistic$rescale, kept_outside(statistic, kept)))
}

# a record is dropped for any of the variables
#' @export
narrow_statistic.stat_sums <- function(statistic, variables) {
  if (is_dropped(statistic) || all(statistic$columns$variable %in% variables)) return(NextMethod())
  other <- !statistic$columns$variable %in% variables
  at <- which(rowSums(statistic$powers[, other, drop = FALSE]) == 0)
  if (length(at) == 0L) return(NULL)
  terms <- formula_leaves(text_formula(statistic$formula)[[2L]], chain_operands("+"), caller_env())[at]
  formula <- stats::as.formula(call("~", Reduce(function(a, b) call("+", a, b), terms)), env = baseenv())
  kept <- statistic$columns$variable[colSums(statistic$powers[at, , drop = FALSE]) > 0]
  kept_components(statistic, stat_sums(formula, declared_bounds(statistic, kept), kept_outside(statistic, kept), statistic$rescale))
}

# of each group, where the variables and the groups are the model's
#' @export
narrow_statistic.stat_by <- function(statistic, variables) {
  if (all(statistic$columns$variable %in% variables)) return(NextMethod())
  inner <- if (names(statistic$levels)[1L] %in% variables) narrow_statistic(statistic$statistic, variables)
  if (!is.null(inner)) kept_components(statistic, stat_by(inner$statistic, statistic$levels[1L]))
}

# margins of the variables alone
narrow_margins <- function(statistic, variables, make) {
  inside <- vapply(statistic$margins, function(m) all(m %in% variables), TRUE)
  if (!any(inside)) return(NULL)
  if (all(statistic$columns$variable %in% variables)) return(narrow_statistic.default(statistic, variables))
  terms <- vapply(statistic$margins[inside], function(m) paste(format_name(m), collapse = ":"), "")
  kept_components(statistic, make(stats::reformulate(terms), intersect(statistic$columns$variable, unlist(statistic$margins[inside]))))
}

#' @export
narrow_statistic.stat_counts <- function(statistic, variables) {
  narrow_margins(statistic, variables, function(formula, kept) stat_counts(formula, statistic$levels[kept]))
}

#' @export
narrow_statistic.stat_histogram <- function(statistic, variables) {
  narrow_margins(statistic, variables, function(formula, kept) {
    factors <- intersect(kept, names(statistic$levels))
    if (length(factors) == length(kept)) return(stat_counts(formula, statistic$levels[factors]))
    stat_histogram(formula, statistic$breaks[setdiff(kept, factors)], if (length(factors)) statistic$levels[factors], statistic$right)
  })
}

#' @export
narrow_statistic.stat_linear <- function(statistic, variables) {
  if (all(statistic$columns$variable %in% variables)) return(NextMethod())
  inner <- narrow_statistic(statistic$statistic, variables)
  if (is.null(inner)) return(NULL)
  queries <- statistic$queries
  column <- match(queries$column, inner$at)
  row <- query_rows(statistic)
  at <- setdiff(seq_along(statistic$components), row[is.na(column)])
  if (length(at) == 0L) return(NULL)
  used <- row %in% at
  list(statistic = linear_of(inner$statistic, list(names = statistic$components[at], length = diff(queries$first)[at], column = column[used],
                                                   weight = queries$weight[used])), at = at)
}

# products of the variables, where the response and a product of them are left; else cross-products
#' @export
narrow_statistic.stat_products <- function(statistic, variables) {
  if (all(statistic$columns$variable %in% variables)) return(NextMethod())
  said <- model_terms(text_formula(statistic$formula))
  inside <- vapply(said$terms, function(term) all(vapply(term, `[[`, "", "variable") %in% variables), TRUE)
  products <- any(lengths(said$terms[inside]) > 1L | vapply(said$terms[inside], function(t) t[[1L]]$power > 1, TRUE))
  if (!said$response %in% variables || !products) return(narrow_statistic.stat_crossprod(statistic, variables))
  labels <- vapply(said$terms[inside], function(term) {
    paste(vapply(term, function(atom) if (atom$power > 1) atom$label else format_name(atom$variable), ""), collapse = ":")
  }, "")
  formula <- stats::reformulate(labels, as.name(said$response))
  kept <- model_terms(formula)$variables
  kept_components(statistic, stat_crossprod(formula, declared_bounds(statistic, kept), statistic$rescale, kept_outside(statistic, kept)))
}
