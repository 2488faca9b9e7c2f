#' Standard hypothesis tests from a private release
#'
#' Tests of proportions, independence, means, standard deviations, slopes or hazards. The formula and the types of the variables determine the test.
#' The result prints like those of [stats::t.test()] and [stats::chisq.test()]. Its p-value is computed by [p_value()] and its interval by [confidence_set()];
#' both account for the noise and for clamping.
#'
#' @inheritParams p_value
#' @param formula `~ y` or `y ~ x`, with several covariates `y ~ x + z`, for two factors also `~ y + x`, for survival times `Surv(time, event) ~ x`.
#' @param null Value under the null hypothesis. The default is 0.5 for a proportion, equal probabilities for several levels, 0 for a mean, a single slope or a
#'   difference, and 1 for a ratio of standard deviations.
#' @param scores `NULL`, or a number for each level of the covariate, such as doses: then `y ~ x` for a factor with two levels tests for a trend in the
#'   proportions, like [stats::prop.trend.test()].
#' @param of `"mean"`; or `"sd"` for the standard deviation of a number, which requires `null`, or the standard deviations of groups.
#' @param level Confidence level.
#' @param interval Whether to compute a confidence interval, which takes about 12 tests.
#' @param bayes_factor Whether to compute Bayes factors that take a few seconds; see below. For a proportion, the factor is always computed.
#' @param x An object returned by `private_test()`.
#'
#' @details
#'
#' | formula | variables | model | question | interval |
#' | --- | --- | --- | --- | --- |
#' | `~ y` | a factor with two levels | [model_bernoulli()] | is the probability of the second level `null`? | of the probability |
#' | `~ y` | a number between 0 and 1 with only its total, treated as 0/1 | [model_bernoulli()] | is the probability of 1 `null`? | of the probability |
#' | `~ y` | a factor with more levels | [model_categorical()] | are the probabilities `null`? | |
#' | `~ y` | a number | [model_normal()] | is the mean `null`? (needs totals of y and of y^2) | of the mean |
#' | `~ y`, `of = "sd"` | the same | [model_normal()] | is the standard deviation `null`? | of the standard deviation |
#' | `y ~ x`, `~ y + x` | two factors | [model_table()] | are they independent? With two levels each: are the proportions equal? | of the difference of proportions |
#' | `y ~ x`, `scores` | a factor with two levels by a factor | [model_table()] | does the proportion change with the scores? | of its slope in the scores |
#' | `y ~ x` | a number by a factor with two levels | [model_lm()] | are the means equal? (assuming equal variances) | of the difference |
#' | `y ~ x` | a number by a factor with more levels | [model_lm()] | are all means equal? | |
#' | `y ~ x` | a number by a factor, in [stat_by()] | [model_normal()] of [groups] | are the means equal, whatever the variances? | of the difference of two |
#' | `y ~ x`, `of = "sd"` | the same | the same | are the standard deviations equal? | of the ratio of two |
#' | `y ~ x` | a number between 0 and 1 with only its totals, in [stat_by()] | [model_bernoulli()] of [groups] | are the proportions equal? | of the difference of two |
#' | `y ~ x` | numbers | [model_lm()] | is the slope `null`? | of the slope |
#' | `y ~ x + z` | a number by several | [model_lm()] | are all slopes zero? | |
#' | `Surv(time, event) ~ x` | [stat_survival()] by groups | [model_survival()], `"piecewise"` | are the hazards equal? (log-rank) | of the log hazard ratio |
#' | `y ~ x`, `y ~ x + z` | a factor with two levels by numbers | [model_logistic()] | the same for log odds ratios | of a single one |
#'
#' The tests assume the model's distribution for the records. So the test of a mean is valid for normal records, and tests of counts are valid for all records.
#' For other models and null hypotheses use [p_value()].
#'
#' **Two factors (Fisher's question).** [stats::fisher.test()] answers it exactly given the margins of the table; a release has noisy margins, or none. Here the
#' margins are nuisance parameters: the p-value is the largest over those that the release allows, and is valid for small counts. Tables with more rows and
#' columns have the same test; for a 2 by 2 table `alternative` makes it one-sided.
#'
#' Without noise the same questions are answered by [stats::fisher.test()] and [stats::chisq.test()] (independence), by Welch's [stats::t.test()] and
#' [stats::oneway.test()] (means whatever the variances), by [stats::var.test()] (standard deviations) and by [survival::survdiff()] (hazards). Groups in
#' [stat_by()] also need their sizes, see [groups]; noisy sizes are nuisance parameters.
#'
#' **Which release.** The totals of a regression answer many questions, and share their noise with all of them. If the question is whether two groups differ and
#' the budget is small, release the counts of the group by the value in three intervals: all counts together have a sensitivity of 2. Then test for a trend, as in
#' the second example. `vignette("design")` compares the power of both with published private tests.
#'
#' **Bayes factors.** Tests can have the Bayes factor of the alternative over the null hypothesis, from the same release and with the default priors of the
#' model in the table (for [model_lm()], with `prior_nig()`). The printed test names the prior. A one-sided alternative uses the part of the prior on that side
#' (Klugkist, Laudy and Hoijtink 2005). For a proportion of a known number of records the factor is exact and always computed. With `bayes_factor = TRUE` it is
#' also computed for
#' * the probabilities of several levels, exactly;
#' * two factors, by [test_hypothesis()];
#' * slopes that are 0 under the null hypothesis, by [test_hypothesis()];
#' * a mean or a standard deviation, as [log_evidence()] does.
#'
#' A p-value bounds the frequency of false rejections, whatever the alternative. A Bayes factor compares how well the two hypotheses predicted the release, so it
#' depends on the prior.
#' @return An object of class `htest`, with the [p_value()] in `test`, the [confidence_set()] in `set`, and the Bayes factor in `bayes_factor`, which has the
#'   attributes described in [test_hypothesis()]. `generics::tidy()` converts it to a data frame with one row.
#' @section Errors: The errors of [p_value()]; `noiseaware_error_formula`. If `bayes_factor = TRUE`, `noiseaware_error_argument` for tests that have none, and the
#'   errors of [log_evidence()].
#' @references
#' Klugkist, I., Laudy, O. and Hoijtink, H. (2005). Inequality constrained analysis of variance: a Bayesian approach. *Psychological Methods* 10, 477-493.
#' \doi{10.1037/1082-989X.10.4.477}
#' @family checks and tests
#' @examples
#' smoking <- stat_counts(~ low:smoke, levels = list(low = c("no", "yes"), smoke = c("no", "yes")))
#' births <- data.frame(lapply(MASS::birthwt[c("low", "smoke")], factor, labels = c("no", "yes")))
#' set.seed(1)
#' rel <- simulate_release(births, smoking, mech_discrete_laplace(epsilon = 1))
#' private_test(rel, low ~ smoke, replicates = 199, seed = 1)
#' # do weights differ between smokers and others? The group by the weight in three intervals
#' grams <- cut(MASS::birthwt$bwt, c(0, 2500, 3500, 6000), c("low", "middle", "high"))
#' weights <- stat_counts(~ smoke:grams, list(smoke = c("no", "yes"), grams = levels(grams)))
#' rel <- simulate_release(data.frame(births, grams), weights, mech_discrete_laplace(epsilon = 1))
#' private_test(rel, smoke ~ grams, scores = c(-1, 0, 1), interval = FALSE, replicates = 99, seed = 1)
#' @concept hypothesis test
#' @concept t-test
#' @concept chi-squared test
#' @concept Fisher's exact test
#' @concept independence test
#' @concept Welch's test
#' @concept test for trend
#' @concept log-rank test
#' @export
private_test <- function(release, formula, null = NULL, alternative = c("two.sided", "less", "greater"), level = 0.95, ..., scores = NULL, of = c("mean", "sd"),
                         interval = TRUE, bayes_factor = FALSE, replicates = 999, seed = NULL, prior_n = NULL) {
  check_given()
  check_no_dots(...)
  if (is_sites(release)) {
    stop_classed("argument", c("{.arg release} must be one release, but is several, of different people.",
                               i = "{.fn p_value} takes several, and {.fn test_hypothesis} compares their rates."))
  }
  check_release(release)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  check_flag(interval, "interval")
  check_flag(bayes_factor, "bayes_factor")
  alternative <- match_alternative(alternative)
  of <- if (identical(of, c("mean", "sd"))) "mean" else check_choice(of, "of", c("mean", "sd"))
  seed <- check_seed(seed) %||% new_seed()
  say_once({
    question <- read_question(formula, release, null, scores, of, environment())
    side <- side_of(alternative, length(question$value %||% 1:2), environment())
    factor <- factor_of_test(question, release, side, bayes_factor, prior_n, seed, environment())
    tested <- p_value(release, question$model, question$null, alternative, replicates = replicates, seed = seed, prior_n = prior_n)
    # its text is code
    if (is.function(question$null)) tested$null <- if (is.null(question$value)) question$title else paste(names(question$value), "=", format_number(question$value))
    wanted <- interval && !is.null(question$parameter)
    set <- if (wanted) confidence_set(release, question$model, question$parameter, level, alternative, replicates = replicates, seed = seed, prior_n = prior_n)
  })
  htest <- list(p.value = tested$p, method = paste0(question$title, ", from a private release"), data.name = paste0(formula_text(formula), ", ", tested$describe),
                null.value = question$value, alternative = alternative, test = tested, set = set, bayes_factor = factor)
  if (tested$error > 0) htest$parameter <- c("simulated releases" = tested$replicates)
  if (!is.null(set)) {
    htest$estimate <- stats::setNames(set$estimate, names(question$value))
    ends <- if (alternative == "two.sided") c(set$lower, set$upper) else if (alternative == "less") c(-Inf, set$upper) else c(set$lower, Inf)
    htest$conf.int <- structure(pmin(pmax(ends, set$range[1L]), set$range[2L]), conf.level = level)
  }
  if (is.null(question$value)) htest$alternative <- NULL
  structure(htest, class = c("noiseaware_htest", "htest"))
}

# A list: `title`, `model`, `null` in the form that p_value() accepts; with a single number its `value` under the null hypothesis, named, and the `parameter`;
# functions that compute the Bayes factor, at once (`quick_factor`) or in seconds (`factor`).
read_question <- function(formula, release, null, scores, of, call) {
  if (!inherits(formula, "formula")) stop_argument("formula", "a formula such as ~ y or y ~ x", describe(formula), "formula", call)
  if (length(formula) == 3L && is_surv(formula[[2L]])) return(ask_survival(formula, release, null, call))
  public <- release_columns(release$statistic)
  variables <- released_variables(formula, public, call)
  levels <- lapply(stats::setNames(nm = variables), function(v) public$levels[[v]])
  if (!is.null(scores)) return(ask_trend(formula, levels, scores, null, call))
  if (length(formula) == 2L) return(ask_one_side(formula, variables, levels, public, release, null, of, call))
  factors <- lengths(levels) > 0L
  # a factor that is released as codes divides totals into groups
  coded <- variables %in% public$columns$variable[is.na(public$columns$level)]
  if (identical(unname(factors), c(FALSE, TRUE)) && coded[2L]) return(ask_groups(variables, levels[[2L]], public, release, null, of, call))
  if (of != "mean") refuse_sd(call)
  if (all(factors) && length(variables) == 2L) return(ask_two_factors(variables, levels, null, release, call))
  if (factors[1L] && length(levels[[1L]]) != 2L) {
    stop_classed("formula", c("The response of {.arg formula} must be a number or a factor with two levels.",
                              x = "{.var {variables[1L]}} has {length(levels[[1L]])}."), call = call)
  }
  ask_slopes(formula, factors, levels, null, release, call)
}

# ~ y, or ~ y + x of two factors
ask_one_side <- function(formula, variables, levels, public, release, null, of, call) {
  if (length(variables) == 2L && all(lengths(levels))) return(ask_two_factors(variables, levels, null, release, call))
  if (length(variables) > 1L) stop_argument("formula", "one variable, two factors, or a response and covariates", formula_text(formula), "formula", call)
  ask_one_variable(variables, levels[[1L]] %||% zero_or_one(variables, public, release), null, of, call)
}

released_variables <- function(formula, public, call) {
  variables <- all.vars(formula)
  strange <- setdiff(variables, public$columns$variable)
  if (length(variables) == 0L || length(strange)) {
    stop_classed("formula", c("{.arg formula} must have variables of the release.", x = if (length(strange)) "Not there: {.var {strange}}.",
                              i = "The release has {.var {unique(public$columns$variable)}}."), call = call)
  }
  variables
}

# A number within 0 and 1 whose total alone is released is read as a 0/1 variable: of others that total does not tell the variance.
zero_or_one <- function(variable, public, release) {
  bounds <- public$columns[match(variable, public$columns$variable), c("lower", "upper")]
  powers <- lapply(component_parts(release), published_powers, variable)
  if (isTRUE(all(bounds == 0:1)) && all(unlist(powers) <= 1)) c("0", "1")
}

refuse_sd <- function(call) stop_argument("of", "\"mean\" if the test is not about one number", "\"sd\"", call = call)

ask_one_variable <- function(variable, levels, null, of, call) {
  if (length(levels) > 0L && of != "mean") refuse_sd(call)
  if (of == "sd") {
    null <- check_number(null, "null", "a positive number for a standard deviation", 0, strict = TRUE, call = call)
    return(list(title = "One standard deviation", model = model_normal(variable), null = c(sd = null), value = c(`standard deviation` = null), parameter = "sd",
                factor = function(release, seed, prior_n) normal_factor(release, model_normal(variable), c(sd = null), seed),
                prior_above = function(prior) prior_above_sd(prior, null)))
  }
  if (length(levels) == 0L) {
    null <- check_number(null %||% 0, "null", call = call)
    return(list(title = "One mean", model = model_normal(variable), null = c(mean = null), value = c(mean = null), parameter = "mean",
                factor = function(release, seed, prior_n) normal_factor(release, model_normal(variable), c(mean = null), seed),
                prior_above = function(prior) prior_above_mean(prior, null)))
  }
  if (length(levels) == 2L) {
    null <- check_number(null %||% 0.5, "null", "a probability", 0, 1, call = call)
    name <- sprintf("prob[%s]", levels[2L])
    out <- list(title = "One proportion", model = model_bernoulli(variable), null = stats::setNames(null, name),
                value = stats::setNames(null, sprintf("probability of %s", levels[2L])), parameter = name)
    return(c(out, list(quick_factor = function(release, side) proportion_factor(release, out, side, call))))
  }
  null <- null %||% rep(1 / length(levels), length(levels))
  ok <- is.numeric(null) && length(null) == length(levels) && all(is.finite(null)) && all(null > 0) && abs(sum(null) - 1) < 1e-8
  if (!ok) stop_argument("null", paste(length(levels), "positive probabilities that sum to 1"), describe(null), call = call)
  names <- sprintf("prob[%s]", levels)
  list(title = "Given probabilities", model = model_categorical(variable, prior_dirichlet(1)), null = stats::setNames(null, names)[-1L],
       factor = function(release, seed, prior_n) levels_factor(release, model_categorical(variable, prior_dirichlet(1)), null, prior_n, call))
}

ask_two_factors <- function(variables, levels, null, release, call) {
  if (!is.null(null)) stop_argument("null", "NULL for two factors, which are independent under the null hypothesis", describe(null), call = call)
  model <- model_table(stats::reformulate(paste(variables, collapse = ":")), prior_dirichlet(1))
  size <- lengths(levels)
  in_table <- function(p) matrix(p[sprintf("prob[%s]", joint_names(levels))], size[1L])
  residual <- function(p) {
    table <- in_table(p)
    as.vector((table - outer(rowSums(table), colSums(table)))[-size[1L], -size[2L]])
  }
  asked <- stats::reformulate(variables)
  out <- list(title = "Independence of two factors", model = model, null = residual,
              factor = function(release, seed, prior_n) test_hypothesis(narrow_release(release, model, call), asked, seed = seed))
  if (any(size != 2L)) return(out)
  difference <- function(p) {
    table <- in_table(p)
    table[2L, 2L] / sum(table[, 2L]) - table[2L, 1L] / sum(table[, 1L])
  }
  of <- sprintf("%s=%s", names(levels), vapply(levels, `[`, "", 2L))
  named <- sprintf("difference in the proportion with %s, %s minus %s=%s", of[1L], of[2L], names(levels)[2L], levels[[2L]][1L])
  utils::modifyList(out, list(title = "Two proportions", null = difference, parameter = difference, value = stats::setNames(0, named)))
}

# Each group has parameters of its own.
ask_groups <- function(variables, groups, public, release, null, of, call) {
  binary <- !is.null(zero_or_one(variables[1L], public, group_releases(release, variables[2L], call)[[1L]]))
  if (binary && of != "mean") refuse_sd(call)
  grouped <- stats::reformulate(variables[2L], as.name(variables[1L]))
  model <- if (binary) model_bernoulli(grouped) else model_normal(grouped)
  names <- site_variables(if (binary) "prob[1]" else of, groups)
  ratio <- of == "sd"
  what <- if (binary) "proportions" else if (ratio) "standard deviations" else "means"
  without <- if (!binary && !ratio) ", any variances"
  if (length(groups) > 2L) {
    if (!is.null(null)) stop_argument("null", "NULL for more than two groups", describe(null), call = call)
    return(list(title = paste0("Equal ", what, without), model = model, null = function(p) p[names[-1L]] - p[[names[1L]]]))
  }
  null <- if (ratio) check_number(null %||% 1, "null", "a positive ratio", 0, strict = TRUE, call = call) else check_number(null %||% 0, "null", call = call)
  differ <- if (ratio) function(p) p[[names[2L]]] / p[[names[1L]]] else function(p) p[[names[2L]]] - p[[names[1L]]]
  named <- sprintf("%s %s, %s=%s %s %s", if (ratio) "ratio of" else "difference of", what, variables[2L], groups[2L], if (ratio) "over" else "minus", groups[1L])
  list(title = paste0("Two ", what, without), model = model, null = function(p) differ(p) - null, parameter = differ, value = stats::setNames(null, named))
}

# The slope of the proportion of the response's second level in the scores, weighted by how frequent the levels are; 0 where all proportions are equal.
ask_trend <- function(formula, levels, scores, null, call) {
  if (!identical(unname(lengths(levels) > 0L), c(TRUE, TRUE)) || length(formula) != 3L || length(levels[[1L]]) != 2L) {
    stop_argument("scores", "NULL, except for a factor with two levels by one factor", formula_text(formula), "formula", call)
  }
  ok <- is.numeric(scores) && length(scores) == length(levels[[2L]]) && all(is.finite(scores)) && length(unique(scores)) > 1L
  if (!ok) stop_argument("scores", sprintf("%d finite numbers that are not all equal", length(levels[[2L]])), describe(scores), call = call)
  null <- check_number(null %||% 0, "null", call = call)
  slope <- function(p) {
    table <- matrix(p[sprintf("prob[%s]", joint_names(levels))], 2L)
    share <- colSums(table)
    away <- scores - sum(share * scores)
    sum(table[2L, ] * away) / sum(share * away^2)
  }
  list(title = "Trend in proportions", model = model_table(stats::reformulate(paste(names(levels), collapse = ":")), prior_dirichlet(1)),
       null = function(p) slope(p) - null,
       parameter = slope, value = stats::setNames(null, sprintf("slope of the proportion with %s=%s in the scores", names(levels)[1L], levels[[1L]][2L])))
}

# hazards that are constant within the intervals of the release, and proportional: the score test of these is the log-rank test
ask_survival <- function(formula, release, null, call) {
  groups <- survival_groups(formula, call)
  if (length(groups) == 0L) stop_argument("formula", "one with groups for a survival time, as in Surv(time, event) ~ group", formula_text(formula), "formula", call)
  model <- model_survival(stats::reformulate(groups), "piecewise")
  terms <- setdiff(bind_simulated(release, model, call)$bound$coefficients, "(Intercept)")
  null <- check_number(null %||% 0, "null", call = call)
  if (length(terms) == 1L) {
    return(list(title = "Two hazards, proportional", model = model, null = stats::setNames(null, terms),
                value = stats::setNames(null, paste("log hazard ratio", terms)), parameter = terms))
  }
  if (null != 0) stop_argument("null", "0 for more than two groups", describe(null), call = call)
  list(title = "Equal hazards", model = model, null = stats::setNames(numeric(length(terms)), terms))
}

# of two factors, the first's levels the fastest; as the table's model has them, in the order in which it names its variables
joint_names <- function(levels) {
  outer(levels[[1L]], levels[[2L]], function(a, b) paste0(names(levels)[1L], "=", a, ":", names(levels)[2L], "=", b))
}

ask_slopes <- function(formula, factors, levels, null, release, call) {
  model <- if (factors[1L]) model_logistic(formula) else model_lm(formula, prior_nig())
  bound <- bind_simulated(release, model, call)$bound
  terms <- setdiff(coefficients_of(bound), "(Intercept)")
  null <- null %||% 0
  null <- check_number(null, "null", call = call)
  groups <- length(factors) == 2L && factors[2L]
  what <- if (factors[1L]) "log odds ratio" else if (groups) "difference of means" else "slope"
  factor <- if (!any(factors) && null == 0) function(release, seed, prior_n) test_hypothesis(release, terms, model, seed = seed)
  if (length(terms) == 1L) {
    value <- stats::setNames(null, terms)
    title <- if (groups && !factors[1L]) "Two means, equal variances" else if (factors[1L]) "A log odds ratio" else "A slope"
    return(list(title = title, model = model, null = value, value = stats::setNames(null, paste(what, terms)), parameter = terms, factor = factor))
  }
  if (null != 0) stop_argument("null", "0 for several slopes", describe(null), call = call)
  list(title = if (groups && !factors[1L]) "Equal means" else if (factors[1L]) "All log odds ratios zero" else "All slopes zero",
       model = model, null = stats::setNames(numeric(length(terms)), terms), factor = factor)
}
