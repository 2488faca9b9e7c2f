# Public covariates: a data frame of exact values that accompanies the noisy numbers, one row per record. The release keeps it as `public`.

#' Public covariates
#'
#' If the covariates are public and exact, as they often are for areas, and only the response is confidential, each record's response can be published with its
#' own noise. The covariates are published with it: `as_release(..., public = data)` or, for owners, `release(..., public = ~ x + z)`. A regression then needs
#' no distribution for the covariates, and its posterior is exact.
#'
#' @details
#' **Release.** The statistic is [stat_records()] of the response only, and `public` is a data frame with a row for each record, in the same order. Its columns
#' are numbers, logical values and factors (or text), without missing values. The number of rows is the number of records.
#'
#' | response | statistic | noise |
#' | --- | --- | --- |
#' | factor with two or more levels | `stat_records(~ y, levels = list(y = c("no", "yes")))` | [mech_randomized_response()] |
#' | count, for example of an area | `stat_records(~ y, bounds = list(y = c(0, 500)))` | the two below, [mech_discrete_laplace()], [mech_discrete_gaussian()] |
#' | number, only totals | `stat_sums(~ y + y:x, bounds, rescale = FALSE)`, [stat_crossprod()] | [mech_laplace()], [mech_gaussian()] |
#' | number, or 0 and 1 | `stat_records(~ y, bounds = list(y = c(0, 10)))` | [mech_laplace()], [mech_gaussian()] |
#'
#' The guarantee concerns one record's response; public variables are not protected. Values outside the bounds were clamped, which the posterior accounts for.
#' The noise for a given budget follows from the width of the bounds. If one person adds at most 1 to the count of one area, the noise was scaled differently:
#' give its scale, as in `mech_discrete_laplace(scale = 2)`.
#'
#' **Models.** [model_lm()], and [model_glm()] for binary responses, counts and factors with several levels. The formula contains the response and any of the
#' public covariates, including functions, products and offsets such as `offset(log(population))`. The covariates have no distribution, so leave `covariates`
#' and `factors` at their defaults.
#'
#' **Totals** under [model_lm()]: the response's sum, its products with public covariates and its square. Sums of covariates alone are known and carry no
#' information. The fit is exact if no response lies outside its bounds; the printed fit shows how likely that is.
#'
#' **Priors.** Default priors use two standard deviations of a covariate on either side of its mean instead of bounds; see [model_glm()] and [model_lm()].
#'
#' **Method.** The confidential response is summed or integrated out of each record's density, exactly. Hamiltonian Monte Carlo samples the parameters. If most
#' independent proposals about the mode are accepted early in the warmup, these take the place of most trajectories. See the article "Algorithms" on the web
#' site.
#'
#' [predict()][predict.noiseaware_fit] and `simulate()` use the public covariates by default. Such a release cannot be written as JSON or pooled.
#' @section Errors: `noiseaware_error_public`: not a data frame, missing values, or a number of rows that differs from the number of responses.
#'   `noiseaware_error_variables`: variables of the model that are neither released nor public, or are on the wrong side of the formula.
#'   `noiseaware_error_prior`: a distribution for covariates was given.
#' @family published numbers
#' @examples
#' # label privacy: answers by randomised response, known covariates
#' set.seed(1)
#' births <- transform(MASS::birthwt, low = factor(low, labels = c("no", "yes")))
#' asked <- stat_records(~ low, levels = list(low = c("no", "yes")))
#' rel <- simulate_release(births, asked, mech_randomized_response(epsilon = 2),
#'                         public = ~ lwt + smoke)
#' fit <- sample_posterior(rel, model_logistic(low ~ lwt + smoke), chains = 2, iter = 600, seed = 1)
#' predict(fit, data.frame(lwt = c(100, 150), smoke = 1), interval = "credible")
#'
#' # noisy counts by area, with exact populations
#' areas <- data.frame(people = c(30, 55, 20, 80, 41, 66), rural = c(1, 0, 1, 0, 0, 1))
#' deaths <- stat_records(~ deaths, bounds = list(deaths = c(0, 200)))
#' counts <- as_release(c(5, 14, 1, 26, 9, 12), deaths,
#'                      mech_discrete_laplace(scale = 2), public = areas)
#' rates <- model_glm(deaths ~ rural + offset(log(people)), poisson())
#' sample_posterior(counts, rates, chains = 2, iter = 600, seed = 1)
#' @name public_covariates
NULL

has_public <- function(release) !is.null(release$public)

# The covariates as plain columns: numbers, or factors with their levels. `name`: of the argument.
public_columns <- function(data, name = "public", call = caller_env()) {
  if (!is.data.frame(data)) stop_argument(name, "a data frame of public covariates, one row per record", describe_shape(data), "public", call)
  if (nrow(data) == 0L || length(data) == 0L) stop_argument(name, "a data frame with at least one row and one column", describe_shape(data), "public", call)
  if (!checkmate::test_names(names(data), "unique")) stop_classed("public", "The columns of {.arg {name}} must have different names.", call = call)
  columns <- lapply(stats::setNames(nm = names(data)), function(v) public_column(data[[v]], v, name, call))
  as.data.frame(columns, optional = TRUE, stringsAsFactors = FALSE)
}

public_column <- function(x, variable, name, call) {
  if (is.logical(x)) x <- as.double(x)
  text <- is.character(x) || is.factor(x)
  if (!text && !(is.numeric(x) && is.null(dim(x)))) {
    stop_argument(paste0(name, "$", variable), "numbers, logical values or a factor", describe_shape(x), "public", call)
  }
  bad <- if (text) is.na(x) else !is.finite(x)
  if (any(bad)) {
    stop_classed("public", c("Public covariates must be known for every record.", x = "{.field {variable}} is missing or not finite in {rows_text(which(bad))}."),
                 call = call)
  }
  if (!text) return(as.double(x))
  levels <- if (is.factor(x)) levels(droplevels(x)) else sort(unique(x))
  if (length(levels) < 2L) {
    stop_classed("public", "A factor in {.arg {name}} must have at least two levels, but {.field {variable}} has {length(levels)}.", call = call)
  }
  factor(as.character(x), levels)
}

# Bounds of the numbers, and levels of the factors. A constant has bounds about it.
public_ranges <- function(public) {
  lapply(public, function(x) {
    if (is.factor(x)) return(levels(x))
    ends <- range(x)
    if (ends[1L] < ends[2L]) ends else ends + c(-1, 1) * max(1, abs(ends[1L])) / 2
  })
}

check_public_statistic <- function(statistic, mechanism, public, call) {
  check_statistic(statistic, call)
  check_mechanism(mechanism, call)
  totals <- inherits(statistic, c("stat_crossprod", "stat_sums")) && !is_dropped(statistic)
  if (statistic$kind != "records" && !totals) {
    stop_classed("public", c("Public covariates need {.fn stat_records}, one noisy value for each record, or {.fn stat_sums} or {.fn stat_crossprod}.",
                             x = "The statistic is {describe_statistic(statistic)}."), call = call)
  }
  both <- intersect(names(public), statistic$columns$variable)
  if (length(both) && !totals) {
    stop_classed("public", "A variable is either public or released with noise, but {.var {both}} {?is/are} both.", call = call)
  }
  noisy <- setdiff(statistic$columns$variable, names(public))
  if (totals && length(noisy) != 1L) {
    stop_classed("public", c("Totals with public covariates must involve one confidential variable and its products with public ones.",
                             x = if (length(noisy)) "Confidential variables: {.var {noisy}}." else "All of their variables are public."), call = call)
  }
}

# Records of whole numbers: counts, which may have discrete noise.
as_whole <- function(statistic, mechanism) {
  numbers <- !statistic$columns$variable %in% names(statistic$levels)
  bounds <- c(statistic$columns$lower, statistic$columns$upper)
  if (startsWith(mechanism$name, "discrete_") && any(numbers) && all(bounds == floor(bounds))) statistic$whole <- TRUE
  statistic
}

# The owner's covariates of a formula such as ~ x + z; NULL where there is none.
public_of_formula <- function(data, formula, statistic, mechanism, call = caller_env()) {
  if (is.null(formula)) return(NULL)
  if (!inherits(formula, "formula") || length(formula) != 2L) stop_argument("public", "NULL or a formula such as ~ x + z", describe(formula), "public", call)
  if (!is.data.frame(data)) stop_classed("public", "Public covariates need records in a data frame.", call = call)
  variables <- formula_terms(formula[[2L]], call)
  absent <- setdiff(variables, names(data))
  if (length(absent)) stop_classed("data", c("{.arg data} must have every public variable.", x = "Missing: {.var {absent}}."), call = call)
  public <- public_columns(data[variables], "data", call)
  check_public_statistic(statistic, mechanism, public, call)
  public
}

with_public <- function(release, public) {
  release$public <- public
  release
}

# for prints
public_line <- function(release) {
  if (!has_public(release)) return(NULL)
  names <- names(release$public)
  paste0("  public     ", length(names), if (length(names) == 1L) " covariate: " else " covariates: ", shorten_list(names))
}

# for functions that know nothing of them
check_no_public <- function(releases, what, call = caller_env()) {
  if (!any(vapply(releases, has_public, TRUE))) return(invisible())
  stop_classed("public", "{what} public covariates.", call = call)
}
