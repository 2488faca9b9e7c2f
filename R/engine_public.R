# Method "collapse", public covariates: see src/totals/public_covariates.c. The model is bound to the noisy response and the covariates, which have
# no distribution.

sample_public <- function(release, model, method, run, init, control, records, asked, call = caller_env()) {
  check_choice(method, "method", c("auto", sampling_methods), "method", call)
  if (!method %in% c("auto", "collapse")) {
    stop_classed("method", c("Public covariates are served by method {.val collapse}, which is exact here.", x = "{.arg method} is {.val {method}}."), call = call)
  }
  if (!is.null(records)) stop_argument("records", "NULL: public covariates show the number of records", describe(records), call = call)
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
  model <- without_distribution(model, release$public, call)
  noisy <- release_columns(release$statistic)
  ranges <- public_ranges(release$public)
  given <- expand_columns(names(ranges), ranges, call)
  public <- list(columns = rbind(noisy$columns, given), levels = c(noisy$levels, Filter(is.character, ranges)), functions = NULL, formula = noisy$formula,
                 natural = TRUE)
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
    stop_classed("prior", "Public covariates have no distribution: leave {.arg covariates} out of the model, but for offsets that are constants.", call = call)
  }
  model$covariates <- c(list(public = public), said["constants"])
  model["factors"] <- list("independent")
  model
}

# ---- the problem ------------------------------------------------------------------------

public_problem <- function(release, bound, call = caller_env()) {
  answers <- public_answers(release, bound, call)
  list(method = "collapse", exact = TRUE, model = bound$spec, family = "public", n = as.double(release$n), records = NULL,
       size_prior = size_prior_spec(NULL), released = double(), weight = double(), absolute = 0L, separable = 0L, noisy = 0L,
       published = list(fields = list()), where = integer(), summed = integer(), times = double(), tracked = 0,
       fields = c(answers, public_design(release, bound, call)))
}

# The linear predictor in the coordinates of the coefficients: `design`, column by column, times these plus `offset`.
public_design <- function(release, bound, call) {
  x <- record_matrix(release$public, bound$base[-1L, ], bound$levels, call, "public")
  natural <- cbind(1, term_values(bound, x))
  centring <- bound_centring(bound)
  offset <- drop(natural %*% centring$shift) + (offset_values(bound, x) %||% 0)
  if (!all(is.finite(natural)) || !all(is.finite(offset))) {
    stop_classed("public", "The terms and offsets of the formula must be finite for all public covariates.", call = call)
  }
  c(list(design = as.double(natural %*% centring$matrix), offset = as.double(offset)), coefficient_places(bound, ncol(natural)))
}

# in the order of src/totals/noisy_answers_classes.c
answer_classes <- c("logit", "binary", "poisson", "negative_binomial", "binomial", "normal", "levels")

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
  fields <- list(response = match(class, answer_classes) - 1, squared = as.double(kernel == "squared"), answer = z, answer_weight = 1 / scale,
                 response_bounds = c(row$lower, row$upper))
  c(fields, if (class %in% c("logit", "binary")) binary_fields(bound, z, scale, kernel), if (class == "levels") level_fields(bound, scale),
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
                           i = "They are for normal and binary responses, for counts, and for factors."), call = call)
}

# what another level's answer is given, over the own level's
level_fields <- function(bound, scale) c(list(lie = exp(-1 / scale)), stats::setNames(list(as.double(length(bound$categories))), bound$model$family))

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

# the densities of each answer given 0 and given 1, over the larger
binary_fields <- function(bound, z, scale, kernel) {
  log_density <- function(y) {
    switch(kernel, match = ifelse(z == y, 0, -1 / scale), absolute = -abs(z - y) / scale, squared = -((z - y) / scale)^2 / 2)
  }
  zero <- log_density(0)
  one <- log_density(1)
  most <- pmax(zero, one)
  c(list(zero = exp(zero - most), one = exp(one - most)), stats::setNames(list(0), bound$model$family))
}
