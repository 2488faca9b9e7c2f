# Method "collapse", public covariates: see src/totals/public_covariates.c. The model is bound to the noisy response and the covariates, which have
# no distribution.

sample_public <- function(release, model, method, run, init, control, prior_n, asked, call = caller_env()) {
  check_choice(method, "method", c("auto", sampling_methods), "method", call)
  if (!method %in% c("auto", "collapse")) {
    stop_classed("method", c("Method {.val collapse} fits regressions on public covariates, and is exact.", x = "{.arg method} is {.val {method}}."), call = call)
  }
  if (!is.null(prior_n)) stop_argument("prior_n", "NULL: public covariates determine the number of records", describe(prior_n), call = call)
  check_control(control, "collapse", call)
  bound <- bind_given(model, release, call)
  check_prior_draws(bound, call)
  init <- check_init(init, bound, run$chains, call)
  words <- with_seed(run$seed, seed_words())
  fit <- sample_chains(public_problem(release, bound, call), release, bound, run, init, words, call)
  fit$asked <- asked
  if (method == "auto") fit$why <- "exact, with public covariates"
  fit
}

# ---- the model --------------------------------------------------------------------------

# A regression of the noisy response on the public covariates that its formula names.
bind_given <- function(model, release, call = caller_env()) {
  if (!inherits(model, c("model_lm", "model_glm"))) {
    stop_classed("method", c("Public covariates need a regression: {.fn model_lm} or {.fn model_glm}.", x = "The model is {.cls {class(model)[1]}}."), call = call)
  }
  if (is_student(model)) refuse_errors("Public covariates need", call, advice = NULL)
  model <- without_distribution(model, release$public, call)
  noisy <- release_columns(release$statistic)
  noisy$columns <- noisy$columns[!noisy$columns$variable %in% names(release$public), ] # of totals there are covariates, too
  noisy$levels <- noisy$levels[intersect(names(noisy$levels), noisy$columns$variable)]
  ranges <- public_ranges(release$public)
  given <- expand_columns(names(ranges), ranges, call)
  public <- list(columns = rbind(noisy$columns, given), levels = c(noisy$levels, Filter(is.character, ranges)), functions = NULL, formula = noisy$formula,
                 natural = release$statistic$kind == "records" || noisy$natural)
  variables <- model_variables(model, public)
  if (length(variables)) { # else there is no response, which is refused later
    check_given_variables(variables, noisy$columns$variable, names(ranges), call)
    public$columns <- public$columns[public$columns$variable %in% variables, ]
    public$levels <- public$levels[intersect(names(public$levels), variables)]
  }
  bind_public(model, public, call)
}

check_given_variables <- function(variables, noisy, given, call) {
  absent <- setdiff(variables, c(noisy, given))
  if (length(absent)) {
    stop_classed("variables", c("Variables of the model must be in the release; {.var {absent}} {?is/are} not.", i = "Released with noise: {.var {noisy}}.",
                                i = "Public: {.var {given}}."), call = call)
  }
  if (!variables[1L] %in% noisy) {
    stop_classed("variables", c("The response must be a variable that was released with noise, but {.var {variables[1]}} is public.",
                                i = "Released with noise: {.var {noisy}}."), call = call)
  }
  covariates <- intersect(variables[-1L], noisy)
  if (length(covariates)) {
    stop_classed("variables", c("The covariates must all be public, but {.var {covariates}} {?was/were} released with noise.",
                                i = "Public: {.var {given}}."), call = call)
  }
}

without_distribution <- function(model, public, call) {
  said <- model$covariates
  plain <- !inherits(said, "covariate_moments") && length(said$lone) == 0L && identical(said[c("mean", "cov")], split_covariates(prior_niw())[c("mean", "cov")])
  if (!plain) {
    stop_classed("prior", "Public covariates have no distribution: leave {.arg covariates} out of the model, except for constant offsets.", call = call)
  }
  model$covariates <- c(list(public = public), said["constants"])
  model["factors"] <- list("independent")
  model
}

# ---- the problem ------------------------------------------------------------------------

public_problem <- function(release, bound, call = caller_env()) {
  if (release$statistic$kind == "totals") return(public_totals_problem(release, bound, call))
  answers <- public_answers(release, bound, call)
  design <- public_design(release, bound, call)
  c(noise_fields(), list(
    method = "collapse", exact = TRUE, model = bound$spec, family = "public", n = as.double(release$n), prior_n = NULL,
    size_prior = size_prior_spec(NULL), where = integer(), summed = integer(), times = double(),
    fields = c(answers, design, public_start(answers, design$offset, bound))))
}

# Where the search for the mode begins, all of theta: slopes 0, the constant that gives the answers' mean, and their spread. NULL for several levels.
public_start <- function(answers, offset, bound) {
  if (inherits(bound, "bound_categories")) return(NULL)
  z <- answers$answer
  class <- answer_classes[answers$response + 1]
  constant <- if (class == "normal") mean(z - offset) else
    if (class %in% c("poisson", "negative_binomial")) log(mean(pmax(z, 0.5))) - max(offset) - log(mean(exp(offset - max(offset)))) else -mean(offset)
  shape <- if (class == "normal") log(max(stats::sd(z), 1e-6 * half_of_response(bound$columns), na.rm = TRUE)) else
    if (class == "negative_binomial") log(0.5)
  list(begin = c(constant, numeric(nrow(bound$design) - 1L), shape))
}

# The linear predictor in the coordinates of the coefficients: `design`, column by column, times these plus `offset`.
public_design <- function(release, bound, call) {
  design <- centred_design(release, bound, call)
  c(list(design = as.double(design$matrix), offset = design$offset), coefficient_places(bound, ncol(design$matrix)))
}

centred_design <- function(release, bound, call) {
  x <- record_matrix(release$public, bound$base[-1L, ], bound$levels, call, "public")
  natural <- cbind(1, term_values(bound, x))
  centring <- bound_centring(bound)
  offset <- drop(natural %*% centring$shift) + (offset_values(bound, x) %||% 0)
  if (!all(is.finite(natural)) || !all(is.finite(offset))) {
    stop_classed("public", "The terms and offsets of the formula must be finite for all public covariates.", call = call)
  }
  list(matrix = natural %*% centring$matrix, offset = as.double(offset))
}

# in the order of src/totals/noisy_answers_classes.c
answer_classes <- c("logit", "binary", "poisson", "negative_binomial", "normal", "levels")

public_answers <- function(release, bound, call) {
  part <- release_parts(release)[[1L]]
  kernel <- part$mechanism$kernel
  if (!kernel %in% c("absolute", "squared", "match")) {
    stop_classed("method", c("Public covariates need noise of a built-in mechanism.", x = "The noise is {format(part$mechanism)}."), call = call)
  }
  n <- release$n
  at <- (match(bound$columns$variable[1L], part$statistic$columns$variable) - 1L) * n + seq_len(n)
  z <- unname(part$value[at])
  scale <- unname(part$scale[at])
  class <- answer_class(bound, call)
  row <- seen_columns(part$statistic)
  row <- row[row$variable == bound$columns$variable[1L], ]
  fields <- list(response = match(class, answer_classes) - 1, squared = as.double(kernel == "squared"), answer = z,
                 answer_weight = if (kernel == "match") rep(1, n) else 1 / scale,
                 response_bounds = c(row$lower, row$upper))
  c(fields, if (class %in% c("logit", "binary")) binary_fields(bound, z, scale, part), if (class == "levels") level_fields(bound, part),
    if (class %in% c("logit", "binary", "poisson")) group_fields(z, scale))
}

# Records with the same answer and noise are a group; where there are many records and few groups the density is tabulated, see
# noisy_answers_tabulated.c.
fewest_tabulated <- 2000
most_groups <- 400

group_fields <- function(z, scale) {
  if (length(z) < fewest_tabulated) return(NULL)
  key <- paste(z, scale)
  group <- match(key, unique(key))
  if (max(group) > min(most_groups, length(z) / 20)) return(NULL)
  list(group = group - 1, groups = as.double(max(group)))
}

answer_class <- function(bound, call) {
  if (inherits(bound, "bound_lm")) return("normal")
  family <- bound$model$family
  if (family %in% c("logit", "poisson", "negative_binomial")) return(family)
  if (is_binary_family(bound$model)) return("binary")
  if (is_category_family(bound$model)) return("levels")
  stop_classed("method", c("Public covariates are not available for responses of the family {.code {family_of(bound$model)$family}()}.",
                           i = "They are available for normal and binary responses, for counts, and for factors."), call = call)
}

level_fields <- function(bound, part) c(channel_fields(response_channel(bound, part)), stats::setNames(list(as.double(length(bound$categories))), bound$model$family))

# Where the coefficients of the design's columns stand in theta, predictor after predictor, and what else the response depends on.
coefficient_places <- function(bound, columns) {
  if (!inherits(bound, "bound_categories")) {
    shaped <- inherits(bound, "bound_lm") || is_shaped_family(bound$model)
    return(list(place = seq_len(columns) - 1, shape_at = if (shaped) as.double(columns) else numeric()))
  }
  tails <- length(bound$categories) - 1L
  if (!is_ordered_family(bound$model)) return(list(place = seq_len(tails * columns) - 1, shape_at = numeric()))
  list(place = c(0, tails + seq_len(columns - 1L) - 1), shape_at = as.double(seq_len(tails - 1L)))
}

response_channel <- function(bound, part) channels_of(part$mechanism, part$statistic)[bound$columns$variable[1L]]

# the densities of each answer given 0 and given 1, over the larger
binary_fields <- function(bound, z, scale, part) {
  log_density <- switch(part$mechanism$kernel,
    match = log(t(response_channel(bound, part)[[1L]]))[z + 1, , drop = FALSE],
    absolute = -abs(outer(z, 0:1, "-")) / scale,
    squared = -(outer(z, 0:1, "-") / scale)^2 / 2)
  log_density <- unname(log_density) - pmax(log_density[, 1L], log_density[, 2L])
  c(list(zero = exp(log_density[, 1L]), one = exp(log_density[, 2L])), stats::setNames(list(0), bound$model$family))
}

# ---- totals -----------------------------------------------------------------------------

# Totals of the response and of its products with covariates, and of its square: see src/totals/public_totals.c.
public_totals_problem <- function(release, bound, call) {
  if (!inherits(bound, "bound_lm")) {
    stop_classed("method", c("Totals with public covariates need {.fn model_lm}; other regressions need a noisy response for each record.",
                             x = "The model is {describe_model(bound)}."), call = call)
  }
  part <- component_parts(release)[[1L]]
  if (!part$mechanism$kernel %in% c("absolute", "squared")) {
    stop_classed("method", c("Public covariates need noise of a built-in mechanism.", x = "The noise is {format(part$mechanism)}."), call = call)
  }
  sums <- response_sums(release, part, bound, call)
  told <- which(rowSums(abs(sums$weight)) > 0 | sums$square != 0)
  if (all(sums$weight == 0)) stop_classed("public", "The release must have a total of {.var {bound$columns$variable[1]}}, or of a product with it.", call = call)
  design <- centred_design(release, bound, call)
  row <- seen_columns(part$statistic)
  row <- row[row$variable == bound$columns$variable[1L], ]
  c(noise_fields(list(part), told), list(
    method = "collapse", exact = if (isTRUE(bound$natural)) TRUE else NA, model = bound$spec, family = "public_totals", n = as.double(release$n), prior_n = NULL,
    size_prior = size_prior_spec(NULL), where = seq_along(told), summed = told, times = NULL,
    fields = total_fields(lapply(sums, function(s) if (is.matrix(s)) s[told, , drop = FALSE] else s[told]), design, part, told, row, bound)))
}

total_fields <- function(sums, design, part, told, row, bound) {
  fields <- c(total_geometry(sums$weight, cbind(design$matrix, design$offset), any(sums$square != 0)),
              list(known = sums$known, square = sums$square, response_bounds = c(row$lower, row$upper)))
  begin <- total_start(fields, unname(part$value)[told], bound)
  noise <- noise_variance(part$mechanism$kernel, unname(part$scale)[told])
  wide <- noise / (exp(2 * begin[ncol(design$matrix) + 1]) * rowSums(sums$weight^2))
  c(fields, if (stats::median(wide[sums$square == 0], na.rm = TRUE) < 1) list(begin = begin))
}

# About where the release is: the coefficients, the log of sigma, v, and what is left of the square, see src/totals/public_totals.c.
total_start <- function(fields, value, bound) {
  size <- length(value)
  root <- matrix(fields$root, size, byrow = TRUE)
  columns <- sqrt(length(fields$rest))
  mean <- matrix(fields$mean, ncol = columns, byrow = TRUE)
  ridge <- function(a, b) solve(crossprod(a) + diag(1e-8 * max(colSums(a^2)), ncol(a)), crossprod(a, b))
  linear <- fields$square == 0
  v <- ridge(root[linear, , drop = FALSE], (value - fields$known)[linear])
  beta <- ridge(mean[, -columns, drop = FALSE], v - mean[, columns])
  other <- sqrt(max(0, c(beta, 1) %*% matrix(fields$rest, columns) %*% c(beta, 1)))
  half <- half_of_response(bound$columns)
  left <- if (any(!linear)) (((value - fields$known - root %*% v) / fields$square)[!linear])[1L] - sum(v^2) - other^2 else 0
  df <- max(fields$left[3L], 1)
  left <- max(left, df * (half / 20)^2)
  c(beta, if (any(!linear)) log(left / df) / 2 else log(half / 4), v, if (fields$left[1L] > 0) other, if (fields$left[2L] > 0) log(left))
}

# Each component as known + weight' y + square y'y, the covariates as the statistic clamped them.
response_sums <- function(release, part, bound, call) {
  columns <- part$statistic$columns
  response <- bound$columns$variable[1L]
  terms <- normal_terms(part, columns$name, numeric(nrow(columns)), release$n, call)
  of_y <- which(columns$variable == response) - 1
  if (length(of_y) != 1L) stop_classed("public", "The response of totals must be a number, but {.var {response}} is a factor.", call = call)
  seen <- seen_columns(part$statistic)[columns$variable != response, ]
  x <- matrix(0, release$n, nrow(columns))
  x[, columns$variable != response] <- record_matrix(release$public, seen, part$statistic$levels, call, "public")
  for (j in seq_len(nrow(columns))[columns$variable != response]) {
    at <- match(columns$name[j], seen$name)
    x[, j] <- pmin(pmax(x[, j], seen$lower[at]), seen$upper[at])
  }
  each <- lapply(seq_len(nrow(terms)), function(k) one_sum(terms[k, ], x, of_y))
  list(known = vapply(each, `[[`, 0, "known"), square = vapply(each, `[[`, 0, "square"), weight = do.call(rbind, lapply(each, `[[`, "weight")))
}

# `term`: of normal_terms()
one_sum <- function(term, x, of_y) {
  i <- term[1L] == of_y
  j <- term[2L] == of_y
  first <- x[, term[1L] + 1]
  second <- x[, term[2L] + 1]
  if (i && j) return(list(known = term[3L], square = term[6L], weight = rep(term[4L] + term[5L], nrow(x))))
  list(known = term[3L] + (if (i) 0 else term[4L] * sum(first)) + (if (j) 0 else term[5L] * sum(second)) + (if (i || j) 0 else term[6L] * sum(first * second)),
       square = 0, weight = if (i) term[4L] + term[6L] * second else if (j) term[5L] + term[6L] * first else numeric(nrow(x)))
}

# R, H and M of src/totals/public_totals.c, and what is left of the square; `design` has the offset last.
total_geometry <- function(weight, design, squared) {
  n <- nrow(design)
  linear <- rowSums(abs(weight)) > 0
  own <- semi_root(tcrossprod(weight[linear, , drop = FALSE]))
  root <- matrix(0, nrow(weight), ncol(own))
  root[linear, ] <- own
  mean <- solve(crossprod(root), crossprod(root, weight %*% design))
  whole <- crossprod(design)
  rest <- whole - crossprod(mean)
  away <- squared && max(abs(rest)) > 1e-9 * max(abs(whole)) && n > ncol(root)
  df <- n - ncol(root) - away
  rows <- unique(round(seq(1, n, length.out = min(n, 200))))
  list(root = as.double(t(root)), mean = as.double(t(mean)), rest = as.double(rest), left = as.double(c(away, squared && df > 0, df)),
       rows = as.double(t(design[rows, , drop = FALSE])))
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_title.engine_collapse_public <- function(engine) "collapse: sums out the confidential responses"

#' @export
engine_lines.engine_collapse_public <- function(engine, fit) hamiltonian_lines(diagnostics_of(fit))

#' @export
engine_diagnostics.engine_collapse_public <- function(engine, fit, told) cbind(hamiltonian_row(told), leaps = share_of(told$leaps_accepted, told$leaps))

#' @export
engine_moves.engine_collapse_public <- function(engine, fit, rows) {
  leaps <- if (!all(is.na(rows$leaps))) paste("; proposals about the mode:", share_words(rows$leaps))
  paste0("answers   responses summed out; ", hamiltonian_words(rows$steps, rows$mean), leaps)
}

# the kind of totals
#' @export
engine_lines.engine_collapse_public_totals <- function(engine, fit) c(outside_lines(fit), hamiltonian_lines(diagnostics_of(fit)))

#' @export
engine_diagnostics.engine_collapse_public_totals <- function(engine, fit, told) hamiltonian_row(told)

#' @export
engine_moves.engine_collapse_public_totals <- function(engine, fit, rows) paste("totals   of the response;", hamiltonian_words(rows$steps, rows$mean))
