# The distribution of covariates, a part of several models: src/model/covariates_normal.c. A model has the elements `covariates` (see split_covariates()) and
# `levels`, a prior_dirichlet().

# list(mean =, cov =), each fixed() or prior_niw(); and `lone` where some have a distribution of their own
split_covariates <- function(covariates, name = "covariates", call = caller_env()) {
  if (name == "covariates") check_named(covariates, name, call)
  if (is.list(covariates) && !is.object(covariates)) {
    constant <- vapply(covariates, inherits, TRUE, "fixed") & !names(covariates) %||% "" %in% c("mean", "cov", "")
    if (any(constant)) return(split_constants(covariates, constant, name, call))
    if (any(vapply(covariates, is_lone, TRUE))) return(split_lone(covariates, name, call))
  }
  split_normal(covariates, name, call)
}

# what stands by a covariate's name
check_named <- function(covariates, name, call) {
  if (is_lone(covariates)) stop_argument(name, lone_list, paste0("covariate_", covariates$kind, "() without a covariate's name"), "prior", call)
  if (!is.list(covariates) || is.object(covariates)) return(invisible())
  for (v in setdiff(names(covariates), c("mean", "cov", ""))) {
    if (!is_lone(covariates[[v]]) && !inherits(covariates[[v]], "fixed")) {
      must <- "covariate_beta(), covariate_count(), covariate_mixture(), covariate_lognormal() or fixed()"
      stop_argument(paste0(name, "$", v), must, describe(covariates[[v]]), "prior", call)
    }
  }
}

# public constants by name, and the distribution of the others
split_constants <- function(covariates, constant, name, call) {
  for (v in names(covariates)[constant]) check_number(covariates[[v]]$value, paste0(name, "$", v), "fixed at a number", kind = "prior", call = call)
  rest <- covariates[!constant]
  c(split_covariates(if (length(rest)) rest else prior_niw(), name, call), list(constants = covariates[constant]))
}

split_normal <- function(covariates, name, call) {
  must <- "prior_niw(), fixed(list(mean =, cov =)) or list(mean =, cov =) of fixed() and prior_niw()"
  if (inherits(covariates, "prior_niw")) return(list(mean = covariates, cov = covariates))
  if (inherits(covariates, "fixed")) {
    value <- covariates$value
    if (!is.list(value) || !setequal(names(value), c("mean", "cov"))) {
      stop_argument(name, must, "a fixed value without mean and cov", "prior", call)
    }
    return(list(mean = fixed(value$mean), cov = fixed(value$cov)))
  }
  ok <- is.list(covariates) && setequal(names(covariates), c("mean", "cov")) && length(covariates) == 2L &&
    all(vapply(covariates, inherits, TRUE, c("fixed", "prior_niw")))
  if (!ok) stop_argument(name, must, describe(covariates), "prior", call)
  covariates[c("mean", "cov")]
}

# Columns of the design, and of the moments in C: the columns of a record, but that
# the codes of a factor become dummies. `column` is the record's column, `code`
# what a dummy represents in a column of codes, `centre` what is subtracted.
design_columns <- function(columns, levels) {
  do.call(rbind, lapply(seq_len(nrow(columns)), function(j) {
    one <- columns[j, c("name", "lower", "upper", "variable", "level")]
    if (is.na(one$level) && one$variable %in% names(levels)) {
      level <- levels[[one$variable]][-1L]
      return(data.frame(name = paste0(one$variable, level), lower = 0, upper = 1, variable = one$variable, level = level,
                        column = j - 1, code = seq_along(level), centre = 0))
    }
    cbind(one, column = j - 1, code = 0, centre = if (is.na(one$level)) (one$lower + one$upper) / 2 else 0)
  }))
}

design_fields <- function(design) {
  list(centre = as.double(design$centre), column = as.double(design$column), code = as.double(design$code))
}

# The formula taken apart, see model_terms(): its variables are all the variables of the release.
regression_terms <- function(formula, columns, call, constants = character()) {
  said <- if (!is.null(formula)) text_formula(formula)
  if (length(said) < 3L) {
    has <- if (is.null(said)) "no formula" else paste("the formula", formula)
    stop_classed("formula", c("A regression needs a response: give the model a {.arg formula}, such as y ~ x.", x = "The release has {has}."), call = call)
  }
  said <- with_model_functions(model_terms(said, call), unique(columns$variable), call)
  said$variables <- setdiff(said$variables, setdiff(constants, columns$variable))
  check_all_described(said$variables, columns, c(i = "Add {cli::qty(left)}{?it/them} to the covariates."), call)
  said
}

check_fixed <- function(value, k, name, call) {
  if (!is.numeric(value) || length(value) != k) {
    stop_classed("prior", "{.arg {name}} must fix {k} value{?s}, but fixes {length(value)}.", call = call)
  }
  as.double(value)
}

# Rows of a bound model's design that are normal covariates: in C a response of several levels has `ahead` more columns than one.
normal_rows <- function(bound) bound$spec$fields$continuous + 1 - (bound$ahead %||% 0)

# `design`: its rows of covariates, at the places `at` (from 0) of the moments
covariate_fields <- function(design, at, model, levels, call, name = "covariates") {
  if (are_public(model)) {
    return(list(continuous = numeric(), factor_first = numeric(), factor_levels = numeric(), alpha = numeric(), mean = numeric(), cov_chol = numeric()))
  }
  dummy <- !is.na(design$level)
  check_lone(design, model, call)
  normal <- !dummy & !seq_along(dummy) %in% lone_rows(design, model)
  levels <- levels[unique(design$variable[dummy])]
  weights <- lapply(lengths(levels), function(l) expand_weights(model$levels, l, call = call))
  fields <- c(list(continuous = as.double(at[normal]), factor_first = as.double(at[match(names(levels), design$variable)]),
         factor_levels = as.double(lengths(levels)), alpha = as.double(unlist(weights))),
    covariate_mean_fields(design[normal, ], model$covariates$mean, paste0(name, "$mean"), call),
    covariate_cov_fields(design[normal, ], model$covariates$cov, paste0(name, "$cov"), call))
  c(fields, covariate_within_fields(design[normal, ], model$covariates[c("mean", "cov")], fields, call), lone_fields(design, at, model, call),
    if (is_dependent(design, model, levels)) joint_fields(levels))
}

# where the priors are cut off
covariate_within_fields <- function(continuous, covariates, fields, call) {
  box <- lapply(covariates, function(prior) if (!is.null(prior$within)) expand_within(prior$within, continuous, call))
  p <- nrow(continuous)
  if (p == 0L || (is.null(box$mean) && is.null(box$cov))) return(list())
  within <- list(within_lower = box$mean$lower, within_upper = box$mean$upper,
                 within_sd = if (!is.null(box$cov)) (box$cov$upper - box$cov$lower) / 2)
  within <- lapply(Filter(Negate(is.null), within), as.double)
  own <- c("mean", "mean_prior", "mean_kappa", "cov_chol", "cov_scale", "cov_df")
  spec <- list(name = "mvnormal", fields = c(
    list(centre = numeric(p), column = seq_len(p) - 1, code = numeric(p), continuous = seq_len(p) - 1, factor_first = numeric(),
         factor_levels = numeric(), alpha = numeric()), fields[names(fields) %in% own]))
  variance <- which(upper.tri(diag(p), diag = TRUE), arr.ind = TRUE)
  variance <- which(variance[, 1L] == variance[, 2L])
  check_within_mass(spec, function(natural) {
    mean <- if (is.null(fields$mean_prior)) 0L else p
    inside <- rep(TRUE, nrow(natural))
    for (j in seq_len(p)) {
      if (!is.null(box$mean)) inside <- inside & natural[, j] >= box$mean$lower[j] & natural[, j] <= box$mean$upper[j]
      if (!is.null(box$cov)) inside <- inside & natural[, mean + variance[j]] <= within$within_sd[j]^2
    }
    inside
  }, call)
  within
}

covariate_mean_fields <- function(continuous, prior, name, call) {
  p <- nrow(continuous)
  if (p == 0L) return(list(mean = numeric()))
  if (inherits(prior, "fixed")) return(list(mean = check_fixed(prior$value, p, name, call)))
  mean <- if (is.null(prior$mean)) continuous$centre else expand_prior(prior$mean, p, name, call, continuous$name)
  list(mean_prior = as.double(mean), mean_kappa = prior$kappa)
}

covariate_cov_fields <- function(continuous, prior, name, call) {
  p <- nrow(continuous)
  if (p == 0L) return(list(cov_chol = numeric()))
  if (inherits(prior, "fixed")) {
    value <- as.matrix(prior$value)
    if (nrow(value) != p || ncol(value) != p) {
      stop_classed("prior", "{.arg {name}} must fix a {p} x {p} matrix, but fixes one of {nrow(value)} x {ncol(value)}.",
                   call = call)
    }
    check_positive_definite(value, name, call)
    return(list(cov_chol = as.double(chol(unname(value))))) # upper by columns: lower by rows
  }
  half <- (continuous$upper - continuous$lower) / 2
  scale <- if (is.null(prior$scale)) default_wishart_scale(half) else expand_matrix(prior$scale, p, "scale", call)
  df <- prior$df %||% default_wishart_df(p)
  if (df <= p - 1) stop_argument("df", paste("larger than", p - 1, "for", p, "variables"), describe(df), "prior", call)
  list(cov_scale = as.double(scale), cov_df = as.double(df))
}

covariate_parameters <- function(design, model, levels) {
  if (are_public(model)) return(NULL)
  continuous <- setdiff(design$name[is.na(design$level)], names(model$covariates$lone))
  p <- length(continuous)
  lower <- which(upper.tri(diag(p), diag = TRUE), arr.ind = TRUE) # rows of the lower triangle
  factors <- intersect(design$variable, names(levels))
  c(if (p > 0L && !inherits(model$covariates$mean, "fixed")) paste0("mean[", continuous, "]"),
    if (p > 0L && !inherits(model$covariates$cov, "fixed")) paste0("cov[", continuous[lower[, 2L]], ",", continuous[lower[, 1L]], "]"),
    if (is_dependent(design, model, levels)) joint_parameters(design, model, levels) else
      unlist(lapply(factors, function(v) paste0("prob[", v, "=", levels[[v]], "]"))),
    names(lone_priors(design, model)))
}

# list(mean =, cov =, lone =) of a list with some of them
split_lone <- function(covariates, name, call) {
  lone <- vapply(covariates, is_lone, TRUE)
  rest <- covariates[!lone]
  if (length(rest) > 1L || any(nzchar(names(rest))) || !all(nzchar(names(covariates)[lone])) || is.null(names(covariates))) {
    stop_argument(name, lone_list, describe(covariates), "prior", call)
  }
  if (anyDuplicated(names(covariates)[lone])) stop_classed("prior", "{.arg {name}} must name each covariate once.", call = call)
  c(split_covariates(if (length(rest)) rest[[1L]] else prior_niw(), name, call), list(lone = covariates[lone]))
}
