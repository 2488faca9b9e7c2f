# Differences, ratios and odds ratios of the quantities that a fit has draws of.

#' Compare sites, groups, cells or parameters
#'
#' Differences, ratios and odds ratios of two sites, groups of one release, or cells of a table, or any expression of parameters, each with an
#' interval and the probability of its direction.
#'
#' @param object A fit from [sample_posterior()].
#' @param of What to compare.
#'   * For fits of several sites and of groups: names of parameters, such as `"prob[yes]"`. Parameters that all of them share are expressions, see below. `NULL`
#'     means the first that varies; in regressions slopes come before the intercept, and for a variable with two levels, the second is compared.
#'   * For [model_table()] and [model_naive_bayes()]: a formula. `~ a | b` compares the probabilities of the levels of `a` between the levels of `b`, or only of
#'     the second level if `a` has two; `~ a:b` compares the probabilities of all cells with each other.
#'   * For every fit: expressions in the parameters, as text, such as `"age - lwt"`, `"exp(age)"` or `"age > 0"`, which means `"age"`; `"age < 0"` means
#'     `"0 - age"`. For models with `cov[x,y]`, the correlation `"cor[x,y]"` is also available.
#' @param measure `"difference"`; `"ratio"`, for probabilities the risk ratio and for rates the rate ratio; or `"odds_ratio"`, for probabilities.
#' @param among Names of the sites, groups or levels to compare, in this order; all by default. At most 50. A level can have the name of its variable, as in
#'   `"ward=x"`, or not, as in `"x"`.
#' @param reference The name of one of them, against which all others are compared. `NULL`: all pairs, the earlier one against the later one.
#' @param all_levels `TRUE` also compares the first of two levels, which for differences and odds ratios mirrors the second.
#' @param records `TRUE` compares the confidential records themselves, not the population that they come from: shares of a table's cells, or shares and means of
#'   sites and groups. These are the totals from [denoise()] divided by the number of records. For sites and groups, `of` then has names of released counts or
#'   totals of variables, such as `"smoke=yes"` or `"y"`; `NULL` means the first variable's. Means are of the values after clamping.
#' @param level Probability inside the intervals.
#' @param x A comparison returned by `contrast()`.
#' @param row.names,optional Not used.
#' @param ... Must be empty.
#'
#' @return An object of class `noiseaware_contrast`, with `print()`, `plot()`, [posterior::as_draws()], `generics::tidy()` and `as.data.frame()`. The data frame
#'   has a row for each comparison, and these columns:
#'
#' | column | meaning |
#' | --- | --- |
#' | `of` | the parameter, or the level with the compared probability |
#' | `contrast` | what is compared, as in `north - south` |
#' | `estimate` | posterior median |
#' | `sd` | posterior standard deviation |
#' | `lower`, `upper` | ends of the equal-tailed interval |
#' | `p_above` | probability that a difference is above 0, a ratio above 1, or an expression above 0 (above 1 for `exp()` and for a quotient of positive numbers) |
#' | `p_direction` | the larger of `p_above` and its complement |
#' | `p_mcse` | Monte Carlo standard error of both |
#' @details
#' Comparisons are made draw by draw, so they account for the dependence between sites. With partial pooling, multiple comparisons need no further correction
#' (Gelman et al. 2012): estimates that the releases hardly distinguish are pulled together.
#'
#' **Which is larger?** The probability that one of two is larger is `p_above`, printed as P(> 0). For `of = "a - b"` it is P(a > b), and
#' 1 - `p_above` is P(a < b).
#'
#' The method is also registered for the generic in emmeans, so it works whichever of the two packages is attached last. For contrasts of a regression's
#' predictions use emmeans or marginaleffects: see [works_with()].
#' @section Errors: `noiseaware_error_argument`; `noiseaware_error_pool` for parameters that all sites share; `noiseaware_error_formula` and
#'   `noiseaware_error_variables` for tables.
#' @references
#' Gelman, A., Hill, J. and Yajima, M. (2012). Why we (usually) don't have to worry about multiple comparisons. *Journal of Research on Educational
#' Effectiveness* 5, 189-211. \doi{10.1080/19345747.2011.618213}
#' @aliases hypothesis.noiseaware_fit
#' @seealso [site_ranks()] for the order of sites, [table_measures()] for odds ratios within a table, [test_hypothesis()] for Bayes factors.
#' @family sites and groups
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' noise <- mech_laplace(epsilon = 0.5)
#' site <- function(yes, n) as_release(c("smoke=yes" = yes), asked, noise, n = n)
#' sites <- list(north = site(73.2, 189), south = site(31.7, 90), west = site(55.1, 120))
#' fit <- sample_posterior(sites, model_bernoulli(), pool = "partial",
#'                         chains = 2, iter = 2000, seed = 1)
#' contrast(fit)
#' contrast(fit, measure = "odds_ratio", reference = "north")
#' contrast(fit, "prob[yes,west] - (prob[yes,north] + prob[yes,south]) / 2")
#' plot(contrast(fit))
#' @concept risk ratio
#' @concept risk difference
#' @concept odds ratio
#' @concept comparison of groups
#' @export
contrast <- function(object, ...) {
  check_given()
  if (!missing(object) && is_theirs(object, "emmeans", "contrast")) return(call_theirs("emmeans", "contrast"))
  UseMethod("contrast")
}

#' @export
contrast.default <- function(object, ...) check_class(object, "object", "noiseaware_fit", "a fit made by sample_posterior()")

#' @rdname contrast
#' @rawNamespace S3method(emmeans::contrast,noiseaware_fit)
#' @export
contrast.noiseaware_fit <- function(object, of = NULL, measure = "difference", among = NULL, reference = NULL, level = 0.95, all_levels = FALSE, records = FALSE,
                                    ...) {
  check_no_dots(...)
  check_flag(all_levels, "all_levels")
  check_flag(records, "records")
  check_choice(measure, "measure", names(contrast_signs))
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  call <- environment()
  of_pool <- inherits(object, "noiseaware_pool") && (is.null(of) || is.character(of) && (records || all(of %in% fit_parameters(object))))
  shared <- if (of_pool && !records && !is.null(of)) shared_draws(object, of, call)
  if (!is.null(shared) || !of_pool && is.character(of) && !records) {
    if (measure != "difference") stop_argument("measure", "left out if {.arg of} has expressions", describe(measure))
    if (!is.null(among) || !is.null(reference)) stop_classed("argument", "{.arg among} and {.arg reference} do not apply to expressions.")
    found <- expressed(shared %||% parameter_matrix(object), of, call)
  } else {
    found <- contrast_pairs(contrast_sides(object, of, of_pool, all_levels, records, call), measure, among, reference, call)
  }
  remind_troubles(object)
  colnames(found$draws) <- if (length(unique(found$of)) == 1L) found$contrast else paste0(found$contrast, "|", found$of)
  structure(list(table = contrast_table(found, level, object), draws = by_chain(found$draws, object), measure = found$measure, null = found$null, level = level,
                 records = records),
            class = "noiseaware_contrast")
}

contrast_signs <- c(difference = " - ", ratio = " / ", odds_ratio = " / ")

# ---- what is compared: a list by parameter or level, of matrices draws x sites ----------------

contrast_sides <- function(fit, of, of_pool, all_levels, records, call) {
  if (!of_pool) return(contrast_cells(fit, of, all_levels, records, call))
  if (records) records_of_sites(fit, of, all_levels, call) else contrast_sites(fit, of, call)
}

contrast_sites <- function(fit, parameters, call) {
  if (fit$pool == "complete" || length(fit$release) < 2L) {
    stop_classed("pool", "{.arg object} must have several sites or groups that differ, but with {.code pool = \"complete\"} all have the same parameters.", call = call)
  }
  found <- lapply(parameters %||% first_varying(fit), parameter_of_sites, fit = fit, call = call)
  shared <- vapply(found, function(one) !varies(one$values), TRUE)
  if (any(shared)) {
    stop_classed("pool", c("{.arg of} must have parameters that differ between the {if (is_of_groups(fit)) 'groups' else 'sites'}.",
                           x = "All have the same {.val {parameters[shared]}}."), call = call)
  }
  stats::setNames(lapply(found, `[[`, "values"), vapply(found, `[[`, "", "name"))
}

# The draws of parameters that all sites share, which are compared with 0; NULL if one of them varies.
shared_draws <- function(fit, parameters, call) {
  found <- lapply(parameters, parameter_of_sites, fit = fit, call = call)
  if (any(vapply(found, function(one) varies(one$values), TRUE))) return(NULL)
  matrix(vapply(found, function(one) one$values[, 1L], numeric(posterior::ndraws(fit$draws))), ncol = length(found), dimnames = list(NULL, parameters))
}

varies <- function(values) any(values != values[, 1L])

# an intercept is compared when it is asked for, or if nothing else varies; of two levels, the second
first_varying <- function(fit) {
  names <- unique(c(fit$problem$partial$shown, fit_parameters(fit)))
  if (length(names) == 2L && all(startsWith(names, "prob["))) names <- rev(names)
  Find(function(name) varies(parameter_of_sites(fit, name)$values), c(setdiff(names, "(Intercept)"), intersect(names, "(Intercept)")))
}

# The records' own shares and means in each site: totals from denoise() over the number of records.
records_of_sites <- function(fit, of, all_levels, call) {
  if (length(fit$release) < 2L) stop_classed("pool", "{.arg object} must have several sites or groups.", call = call)
  each <- lapply(stats::setNames(nm = names(fit$release)), records_of_site, fit = fit, call = call)
  known <- Reduce(intersect, lapply(each, names))
  if (length(known) == 0L) {
    stop_classed("argument", c("The release has no count of a level, and no total of a variable, that all sites or groups have in common.",
                               i = "Without {.arg records}, parameters of the population are compared."), call = call)
  }
  first <- known[known == known[1L] | grepl("=", known, fixed = TRUE) & sub("=.*", "", known) == sub("=.*", "", known[1L])]
  if (length(first) == 2L && !all_levels) first <- first[2L]
  chosen <- check_names_of(of %||% first, "of", "released counts of levels or totals of variables", known, call)
  stats::setNames(lapply(chosen, function(name) vapply(each, function(one) one[[name]], numeric(posterior::ndraws(fit$draws)))), chosen)
}

# a list of draws, named as the statistics name their components
records_of_site <- function(fit, site, call) {
  release <- fit$release[[site]]
  totals <- plain_matrix(if (fit$pool == "none") denoise(fit$fits[[site]]) else denoise(fit, site = site))
  names <- names(release$value)[(if (fit$pool == "none") NULL else fit$problem$sites[[site]]$index) %||% seq_along(release$value)]
  size <- release$n %||% if (fit$pool == "none") fit$fits[[site]]$draws[, , "n"] else site_size_draws(fit, site)
  of_part <- function(part) {
    statistic <- part$statistic
    at <- match(names(release$value)[part$index], names)
    whole <- if (isTRUE(statistic$subset)) statistic$statistic else statistic
    # records that are left out of a total are not counted
    if (!inherits(whole, c("stat_counts", "stat_sums", "stat_crossprod")) || is_dropped(whole) || !is.null(whole$weighted) || is.null(size)) return(list())
    column <- match(statistic$components, whole$columns$name)
    counted <- inherits(whole, "stat_counts")
    wanted <- which(!is.na(at) & if (counted) !grepl(":", statistic$components, fixed = TRUE) else !is.na(column) & is.na(whole$columns$level[column]))
    found <- lapply(wanted, function(k) {
      mean <- totals[, at[k]] / as.vector(size)
      if (!isTRUE(whole$rescale)) return(mean)
      ends <- unlist(whole$columns[column[k], c("lower", "upper")])
      mean(ends) + mean * diff(ends) / 2
    })
    stats::setNames(found, statistic$components[wanted])
  }
  unlist(unname(lapply(release_parts(release), of_part)), recursive = FALSE)
}

contrast_cells <- function(fit, margin, all_levels, records, call) {
  if (has_cells(fit$bound)) refuse_own_parameters(fit, "object", call, NULL)
  if (has_cells(fit$bound) && is.null(margin) && length(fit$bound$levels) > 1L) {
    variables <- names(fit$bound$levels)
    survival <- inherits(fit$bound, "bound_survival")
    stop_classed("argument", c("{.arg of} must be a formula such as ~ {variables[1L]} | {variables[2L]} for a table of several variables, but is NULL.",
                               i = if (survival) "Hazard ratios and other comparisons of survival between groups: {.fn survival_measures}."), call = call)
  }
  if (!inherits(fit$bound, "bound_table") && records) {
    stop_argument("records", "FALSE unless the fit is of several sites or groups, or of a table", "TRUE", call = call)
  }
  if (!has_cells(fit$bound)) {
    example <- paste(posterior::variables(fit$draws)[1L], "> 0")
    stop_classed("argument", c("{.arg of} must be expressions in the parameters, such as {.val {example}}, but is {describe(margin)}.",
                               i = "Formulas are for tables. emmeans and marginaleffects compare predictions of a regression: see {.fn works_with}."), call = call)
  }
  asked <- read_margin(fit, margin, "of", call)
  p <- if (records) shares_of_records(fit, asked, call) else conditional_draws(fit, asked, call)
  cells <- margin_cells(asked$of, fit$bound$levels)
  # the levels alone name the same
  bare <- function(margin) if (length(margin) == 1L) stats::setNames(margin_cells(margin, fit$bound$levels), fit$bound$levels[[margin]])
  if (length(asked$given) == 0L) return(structure(list(probability = `colnames<-`(p, cells)), bare = bare(asked$of)))
  groups <- margin_cells(asked$given, fit$bound$levels)
  sides <- lapply(seq_along(cells), function(k) `colnames<-`(p[, (seq_along(groups) - 1L) * length(cells) + k, drop = FALSE], groups))
  names(sides) <- cells
  structure(if (length(sides) == 2L && !all_levels) sides[2L] else sides, bare = bare(asked$given))
}

# As conditional_draws(), of the counts of the records.
shares_of_records <- function(fit, asked, call) {
  counts <- plain_matrix(denoise_margin(fit, stats::as.formula(paste("~", paste0("`", c(asked$given, asked$of), "`", collapse = ":"))), call))
  group <- (seq_len(ncol(counts)) - 1L) %/% prod(lengths(fit$bound$levels[asked$of]))
  sums <- t(rowsum(t(counts), group))[, group + 1L, drop = FALSE]
  if (any(sums == 0)) {
    stop_classed("argument", "{.arg records} must be FALSE: in some draws a level of {.var {asked$given}} has no records, so there are no shares.", call = call)
  }
  counts / sums
}

# The draws of all pairs, a column each; `of`, `contrast` and `measure`.
contrast_pairs <- function(sides, measure, among, reference, call, most = 50L) {
  bare <- attr(sides, "bare")
  named <- function(x) if (is.character(x) && length(x)) ifelse(x %in% names(bare) & !x %in% bare, bare[x], x) else x
  names <- check_names_of(named(among), "among", "what is compared", colnames(sides[[1L]]), call)
  if (length(names) < 2L || anyDuplicated(names)) stop_argument("among", "two or more different names", describe(among), call = call)
  if (length(names) > most) {
    stop_classed("argument", c("There are {length(names)} to compare, but the limit is {most}.", i = "Use {.arg among} to choose some of them."), call = call)
  }
  pairs <- if (is.null(reference)) utils::combn(names, 2L) else {
    reference <- check_choice(named(reference), "reference", names, call = call)
    rbind(setdiff(names, reference), reference)
  }
  draws <- lapply(sides, function(values) {
    check_measured(values[, names], measure, call)
    one <- values[, pairs[1L, ], drop = FALSE]
    other <- values[, pairs[2L, ], drop = FALSE]
    switch(measure, difference = one - other, ratio = one / other, odds_ratio = one * (1 - other) / (other * (1 - one)))
  })
  contrast <- paste0(pairs[1L, ], contrast_signs[[measure]], pairs[2L, ])
  list(draws = do.call(cbind, draws), of = rep(names(sides), each = length(contrast)), contrast = rep(contrast, length(sides)), measure = measure)
}

check_measured <- function(values, measure, call) {
  if (measure == "ratio" && any(values <= 0)) stop_argument("measure", "\"difference\": ratios need positive values", "\"ratio\"", call = call)
  if (measure == "odds_ratio" && any(values <= 0 | values >= 1)) {
    stop_argument("measure", "\"difference\" or \"ratio\": only probabilities strictly between 0 and 1 have odds", "\"odds_ratio\"", call = call)
  }
}

# ---- expressions --------------------------------------------------------------------------------

# Names of variables, brackets and all, are replaced by names that parse.
expressed <- function(draws, texts, call) {
  draws <- with_correlations(draws)
  names <- colnames(draws)
  longest <- names[order(-nchar(names))]
  quoted <- paste0("(?<![\\w.\\[,])(", paste0("\\Q", longest, "\\E", collapse = "|"), ")(?![\\w.\\[])")
  known <- stats::setNames(as.list(as.data.frame(draws)), paste0(".v", seq_along(names)))
  labels <- character()
  null <- numeric() # quotients of positive numbers, and exp(), are compared with 1
  values <- vapply(texts, function(text) {
    at <- gregexpr(quoted, text, perl = TRUE)
    used <- regmatches(text, at)[[1L]]
    plain <- text
    regmatches(plain, at) <- list(paste0(".v", match(used, names)))
    read <- read_expression(plain, text, known, names, call)
    labels <<- c(labels, if (read$compared) with_names(deparse1(read$expression), names) else text)
    null <<- c(null, as.numeric(!read$compared && is_ratio(read$expression) && all(read$value > 0)))
    read$value
  }, numeric(nrow(draws)))
  list(draws = matrix(values, nrow(draws)), of = rep("expression", length(texts)), contrast = labels, measure = "expression", null = null)
}

# a text with the names again
with_names <- function(plain, names) {
  at <- gregexpr("[.]v[0-9]+", plain)
  regmatches(plain, at) <- list(names[as.integer(substring(regmatches(plain, at)[[1L]], 3L))])
  plain
}

# cor[x,y] and cor[y,x] after what has cov[x,y], where there are none
with_correlations <- function(draws) {
  pairs <- strsplit(grep("^cov\\[[^,]+,[^,]+\\]$", colnames(draws), value = TRUE), "^cov\\[|,|\\]$")
  for (pair in pairs) {
    at <- pair[-1L]
    variances <- sprintf("cov[%1$s,%1$s]", at)
    if (at[1L] == at[2L] || !all(variances %in% colnames(draws))) next
    added <- draws[, sprintf("cov[%s,%s]", at[1L], at[2L])] / sqrt(draws[, variances[1L]] * draws[, variances[2L]])
    names <- setdiff(sprintf("cor[%s,%s]", at, rev(at)), colnames(draws))
    draws <- cbind(draws, matrix(added, nrow(draws), length(names), dimnames = list(NULL, names)))
  }
  draws
}

is_ratio <- function(expression) {
  while (is.call(expression) && identical(expression[[1L]], quote(`(`))) expression <- expression[[2L]]
  is.call(expression) && (identical(expression[[1L]], quote(`/`)) || identical(expression[[1L]], quote(exp)))
}

# list(expression, value, compared): a comparison is read as the difference that is above 0 where it holds
read_expression <- function(plain, text, known, names, call) {
  fault <- function(why) {
    stop_classed("argument", c("{.arg of} must be expressions in the variables of the fit, but {.val {shorten_text(text)}} is not.", x = why,
                               i = "Variables: {shorten_list(names, 12L)}."), call = call)
  }
  parsed <- tryCatch(parse(text = plain, keep.source = FALSE), error = function(e) NULL)
  if (length(parsed) != 1L) fault("It cannot be read.")
  expression <- parsed[[1L]]
  sign <- if (is.call(expression) && is.name(expression[[1L]])) as.character(expression[[1L]]) else ""
  compared <- sign %in% c("=", "==", ">", ">=", "<", "<=") && length(expression) == 3L
  if (compared) {
    sides <- as.list(expression)[if (startsWith(sign, "<")) 3:2 else 2:3]
    expression <- if (identical(sides[[2L]], 0)) sides[[1L]] else call("-", sides[[1L]], sides[[2L]])
  }
  strange <- setdiff(all.names(expression, functions = FALSE), c(names(known), "pi"))
  if (length(strange)) fault("It names {.var {strange}}, which {?is/are} not among the variables.")
  value <- tryCatch(eval(expression, known, asNamespace("stats")), error = function(e) NULL)
  if (!is.numeric(value) || length(value) != length(known[[1L]]) || anyNA(value)) fault("It gives no number for each draw.")
  list(expression = expression, value = as.double(value), compared = compared)
}

# ---- what it shows ------------------------------------------------------------------------------

contrast_table <- function(found, level, fit) {
  ends <- draws_interval(found$draws, level)
  beyond <- found$draws > rep(contrast_null(found), each = nrow(found$draws))
  above <- colMeans(beyond)
  error <- column_errors(beyond + 0, fit)
  # all on one side: known up to one effective draw
  error[above %in% c(0, 1)] <- (column_errors(found$draws, fit) / apply(found$draws, 2L, stats::sd))[above %in% c(0, 1)]^2
  error[is.na(error)] <- 0 # of constants
  data.frame(of = found$of, contrast = found$contrast, estimate = apply(found$draws, 2L, stats::median), sd = apply(found$draws, 2L, stats::sd),
             lower = ends[1L, ], upper = ends[2L, ], p_above = above, p_direction = pmax(above, 1 - above), p_mcse = error,
             row.names = NULL)
}

# of each row of the table
contrast_null <- function(x) x$null %||% rep(as.numeric(x$measure %in% c("ratio", "odds_ratio")), length(x$contrast %||% x$table$contrast))

contrast_title <- function(x) {
  switch(x$measure, difference = "differences", ratio = "ratios", odds_ratio = "odds ratios", expression = "expressions")
}

#' @rdname contrast
#' @export
print.noiseaware_contrast <- function(x, ...) {
  most <- 40L
  table <- utils::head(x$table, most)
  one <- length(unique(x$table$of)) == 1L
  cat("<contrast> ", contrast_title(x), if (one && x$measure != "expression") paste(" of", table$of[1L]), if (x$records) " among the records",
      ", posterior medians with ", format_number(100 * x$level), "% intervals\n\n", sep = "")
  number <- function(v) formatC(v, digits = 3, format = "g", flag = "#")
  shown <- data.frame(of = table$of, contrast = table$contrast, lapply(table[c("estimate", "lower", "upper")], number),
                      p = sprintf("%.3f", table$p_above), check.names = FALSE)
  null <- utils::head(contrast_null(x), most)
  alike <- length(unique(null)) == 1L
  names(shown)[6L] <- if (alike) sprintf("P(> %d)", null[1L]) else "P(> null)"
  if (!alike) shown$null <- null
  print(if (one) shown[-1L] else shown, row.names = FALSE)
  if (nrow(x$table) > most) cat("... ", nrow(x$table) - most, " more, which as.data.frame() has\n", sep = "")
  cat("\nMonte Carlo error of the probabilities: ", if (nrow(table) > 1L) "at most ", format_number(max(table$p_mcse), 1), "\n", sep = "")
  invisible(x)
}

#' @rdname contrast
#' @exportS3Method generics::tidy
tidy.noiseaware_contrast <- function(x, ...) {
  check_no_dots(...)
  data.frame(term = x$table$of, contrast = x$table$contrast, estimate = x$table$estimate, std.error = x$table$sd, conf.low = x$table$lower,
             conf.high = x$table$upper)
}

#' @rdname contrast
#' @export
as.data.frame.noiseaware_contrast <- function(x, row.names = NULL, optional = FALSE, ...) x$table

#' @rdname contrast
#' @rawNamespace S3method(posterior::as_draws,noiseaware_contrast)
as_draws.noiseaware_contrast <- function(x, ...) x$draws

#' @rdname contrast
#' @export
plot.noiseaware_contrast <- function(x, ...) {
  check_no_dots(...)
  most <- 60L
  shown <- utils::head(x$table, most)
  # one comparison of several levels has a row for each of these, else each level has a panel
  single <- x$measure != "expression" && length(unique(shown$contrast)) == 1L
  row <- if (single) shown$of else shown$contrast
  shown$row <- factor(row, rev(unique(row)))
  # of another name than a column of the table: facets would have the order of its texts
  shown$panel <- if (single) factor(1) else factor(shown$of, unique(shown$of))
  plot <- ggplot2::ggplot(shown, ggplot2::aes(y = .data$row)) +
    ggplot2::geom_vline(xintercept = unique(contrast_null(x)), colour = "grey60") +
    ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$row), linewidth = 0.7, colour = "grey45") +
    ggplot2::geom_point(ggplot2::aes(x = .data$estimate), size = 2.2) +
    ggplot2::labs(x = contrast_axis(x, single), y = NULL, subtitle = sprintf("posterior medians with %s%% intervals", format_number(100 * x$level)),
                  caption = left_out_caption(nrow(x$table) - most, FALSE, "comparisons")) +
    (if (all(contrast_null(x) == 1)) scale_log_x() else scale_few_x()) +
    ggplot2::scale_y_discrete(labels = row_labels) +
    theme_noiseaware() +
    theme_many_rows(shown)
  if (nlevels(shown$panel) > 1L) plot <- plot + ggplot2::facet_wrap(ggplot2::vars(.data$panel)) + room_at_sides() else
    if (nlevels(shown$row) < 5L) plot <- plot + ggplot2::theme(aspect.ratio = 0.1 + 0.1 * nlevels(shown$row)) # few rows would be lost in a square
  with_table(plot, x$table)
}

contrast_axis <- function(x, single) {
  if (single) return(paste0(x$table$contrast[1L], if (x$measure != "difference") " (log scale)"))
  one <- unique(x$table$of)
  what <- switch(x$measure, difference = "difference", ratio = "ratio (log scale)", odds_ratio = "odds ratio (log scale)", expression = "value")
  if (length(one) == 1L && x$measure != "expression") sub("( \\(|$)", paste0(" of ", one, "\\1"), what) else what
}
