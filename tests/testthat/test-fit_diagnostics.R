# What a fit warns of: when, how often, and what it advises.

st <- stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-10, 10)))
rel <- as_release(c(3, 2, 20, 10, 30), st, mech_laplace(epsilon = 1), n = 50)
model <- model_lm(prior = prior_nig(0, 1, 3, 2), covariates = prior_niw(0, 1, 1, 5))
wide <- model_lm(prior = prior_normal(0, 1000), sigma = fixed(1), covariates = fixed(list(mean = 0, cov = matrix(1))))
kinds <- function(fit) vapply(fit$troubles, `[[`, "", "kind")

# a fit whose chains have these draws of every parameter, as sampled
with_draws <- function(draws, model, method = "augment", ...) {
  fit <- sample_posterior(rel, model, method = method, chains = ncol(draws), iter = 20, ..., seed = 1)
  names <- posterior::variables(fit$draws)
  fit$draws <- posterior::as_draws_array(array(draws, c(dim(draws), length(names)), dimnames = list(NULL, NULL, names)))
  fit
}
trouble <- function(...) internal("convergence_trouble")(with_draws(...))[[1]]$text
normal <- function(shift, sd = 1) {
  set.seed(3)
  matrix(rnorm(2000, sd = sd), 1000) + rep(c(0, shift), each = 1000)
}

# the classes of all warnings of some code that are this package's
warned <- function(code) {
  classes <- character()
  withCallingHandlers(told(code), warning = function(w) {
    if (startsWith(class(w)[1L], "noiseaware")) classes <<- c(classes, class(w)[1L])
    invokeRestart("muffleWarning")
  })
  classes
}
# as if a session began
forget <- function() assign("told", character(), envir = internal("session"))
convergence <- "noiseaware_warning_convergence"

test_that("diagnostics are those of the posterior package", {
  fit <- sample_posterior(rel, model, chains = 3, iter = 300, seed = 2)
  found <- internal("mixing_diagnostics")(fit)
  table <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
  expect_equal(found$rhat, setNames(as.numeric(table$rhat), table$variable), tolerance = 1e-8)
  expect_equal(found$ess, setNames(as.numeric(table$ess_bulk), table$variable), tolerance = 1e-8)
  shown <- internal("printed_summary")(fit$draws)
  rows <- posterior::summarise_draws(fit$draws, "mean", "sd", ~ posterior::quantile2(.x, c(0.025, 0.975), type = 6), "rhat", "ess_bulk", "ess_tail")
  expect_equal(shown, as.data.frame(lapply(rows, function(column) if (is.character(column)) column else as.double(column)), optional = TRUE), tolerance = 1e-8)
  # ties, halves of odd numbers of draws, and draws on both sides of a quantile that is one of them
  set.seed(5)
  for (count in c(13, 21, 101, 400)) for (chains in 1:2) {
    tied <- array(round(stats::filter(rnorm(chains * count), 0.8, "recursive"), 1), c(count, chains, 1L), list(NULL, NULL, "a"))
    expect_equal(internal("printed_summary")(posterior::as_draws_array(tied))$ess_tail, suppressWarnings(posterior::ess_tail(tied[, , 1])), tolerance = 1e-8)
  }
  fit$draws[3, 1, "x"] <- Inf
  expect_identical(names(which(is.na(internal("mixing_diagnostics")(fit)$rhat))), "x")
})

test_that("chains that have not converged are warned of when sampled, when extended, and once by what reports intervals", {
  skip_on_cran()
  expect_identical(warned(fit <- sample_posterior(rel, model, chains = 2, iter = 30, seed = 1)), convergence)
  expect_identical(kinds(fit), "convergence")
  rds <- tempfile()
  saveRDS(fit, rds)
  reports <- list(summary, confint, vcov, coef, function(f) predict(f, data.frame(x = 1)),
                  function(f) predict(f, data.frame(x = 1), interval = "credible"))
  if (requireNamespace("generics", quietly = TRUE)) reports <- c(reports, generics::tidy)
  if (requireNamespace("rstantools", quietly = TRUE)) reports <- c(reports, rstantools::posterior_interval, rstantools::bayes_R2)
  for (k in seq_along(reports)) {
    forget()
    expect_identical(warned(reports[[k]](fit)), convergence)
    # a copy is the same fit
    expect_identical(warned(lapply(if (k == 1L) reports else reports[1L], function(r) r(readRDS(rds)))), character())
  }
  expect_identical(readRDS(rds), fit)
  # other draws, another fit
  expect_identical(warned(other <- sample_posterior(rel, model, chains = 2, iter = 30, seed = 2)), convergence)
  expect_identical(warned(confint(other)), convergence)
  expect_identical(warned(longer <- extend(fit, 10)), convergence)
  expect_identical(warned(enough <- extend(fit, 3000)), character())
  expect_null(enough$troubles)
  expect_identical(warned(for (report in reports) report(enough)), character())
  expect_identical(warned(naive <- sample_posterior(rel, model, method = "naive", chains = 1, iter = 10, seed = 1)), character())
})

test_that("the thresholds are R-hat 1.01 and 400 effective draws", {
  skip_on_cran()
  expect_null(trouble(normal(0), model))
  expect_match(trouble(normal(1), model)[1], "^R-hat above 1.01 for .*: the chains differ")
  barely <- internal("mixing_lines")(list(draws = array(0, c(2, 2, 1))), c(a = 1.0103), c(a = 399.6))
  expect_match(barely, "for a \\((up to 1.011|as few as 399)\\)")
  few <- normal(0)
  few <- few[rep(1:45, each = 20), ] # about 90 draws
  expect_match(trouble(few, model), "Fewer than 400 effective draws", all = FALSE)
  expect_null(trouble(normal(0)[1:600, ], model))
  expect_match(trouble(matrix(3, 500, 2), model)[1], "unknown")
})

test_that("the hint estimates only what can be estimated", {
  skip_on_cran()
  # 80 of 2,000 draws: 500 effective ones take 5,000 iterations of each chain more
  few <- normal(0)[rep(1:40, each = 25), ]
  expect_match(trouble(few, model), "extend\\(fit, [56]000\\)", all = FALSE)
  for (shift in c(1, 10)) {
    text <- trouble(normal(shift), model)
    expect_match(text, "cannot be estimated", all = FALSE)
    # the iterations it has, not a number that follows from the floor of an estimate
    expect_match(text, "try extend\\(fit, 200\\) and check again", all = FALSE)
  }
  # chains that agree on the centre alone have many effective draws, and no use for more
  spread <- normal(0) * rep(c(1, 3), each = 1000)
  expect_match(trouble(spread, model), "cannot be estimated", all = FALSE)
  expect_match(trouble(normal(0)[1:4, ], model), "too few draws to estimate", all = FALSE)
})

test_that("the hint names methods whose time is free of n, and what they cost", {
  text <- trouble(normal(10), model)
  expect_match(text, "\"collapse\" .* exact only if no record lies outside", all = FALSE)
  expect_match(text, "\"clt\" .* approximate", all = FALSE)
  text <- trouble(normal(10), model, method = "collapse")
  expect_no_match(text, "\"collapse\"")
  expect_match(text, "\"clt\"", all = FALSE)
  text <- trouble(normal(10), model, method = "clt")
  expect_no_match(text, "\"clt\"")
  expect_match(text, "\"augment\" .* exact, at a cost that grows with n. 1,000 effective draws take about 0.1 seconds.", all = FALSE)
  counts <- as_release(c(30, 20), stat_counts(~ y, list(y = c("a", "b"))), mech_laplace(epsilon = 1), 50)
  fit <- sample_posterior(counts, model_bernoulli(), method = "augment", chains = 2, iter = 30, seed = 1)
  expect_match(internal("other_methods")(fit), "\"collapse\" .* exact here")
  # where no other method fits, nothing is named
  yes <- as_release(c(-10, 20, 50, 8), stat_crossprod(y ~ g, list(y = c(0, 9), g = c("a", "b"))), mech_laplace(epsilon = 1), 50)
  fit <- sample_posterior(yes, model_glm(family = poisson()), chains = 2, iter = 30, seed = 1)
  expect_null(internal("other_methods")(fit))
})

test_that("no prior is blamed: start values are advised where chains hardly left those of a wide one", {
  skip_on_cran()
  far <- trouble(normal(50), wide)
  expect_match(far, "supply starting values \\(`init`\\)", all = FALSE)
  # a narrow prior, and chains that are as wide as it is
  expect_no_match(trouble(normal(50), model), "starting values")
  expect_no_match(c(far, trouble(normal(50), model)), "narrow")
  expect_no_match(trouble(normal(1), wide), "start values")
})

test_that("trajectories that diverged or were cut are told, with what to do about it", {
  fit <- suppressWarnings(sample_posterior(rel, model, method = "collapse", chains = 2, iter = 400, seed = 1))
  expect_null(internal("trajectory_troubles")(fit))
  marked <- function(...) {
    counts <- list(...)
    for (name in names(counts)) for (k in 1:2) fit$chains[[k]]$diagnostics[[name]] <- counts[[name]][k]
    internal("trajectory_troubles")(fit)
  }
  # few for the effective draws are no trouble
  effective <- min(internal("mixing_diagnostics")(fit)$ess)
  few <- floor(effective * internal("most_unreached"))
  expect_gt(few, 0)
  expect_null(marked(divergent = c(0, few)))
  one <- marked(divergent = c(0, few + 1))
  expect_identical(kinds(list(troubles = one)), "divergences")
  expect_match(one[[1]]$text[1], sprintf("^%g trajectories of Hamiltonian Monte Carlo diverged, in 400 iterations after warmup.$", few + 1))
  expect_match(one[[1]]$text, "update\\(fit, iter = 700, warmup = 500\\)", all = FALSE)
  expect_match(one[[1]]$text, "method = \"augment\" .* exact", all = FALSE)
  cut <- marked(deepest = c(2, 1))
  expect_identical(kinds(list(troubles = cut)), "depth")
  expect_match(cut[[1]]$text[1], "^3 trajectories of Hamiltonian Monte Carlo reached the maximum length, in 400 iterations")
  expect_identical(kinds(list(troubles = marked(divergent = c(9, 9), deepest = c(1, 1)))), c("divergences", "depth"))
  # methods without trajectories
  sweeps <- suppressWarnings(sample_posterior(rel, wide, method = "augment", chains = 1, iter = 50, seed = 1))
  expect_identical(acceptance(sweeps)$divergent, NaN)
  expect_null(internal("trajectory_troubles")(sweeps))
})

test_that("chains of an untrained step diverge, and say so once they are past warmup", {
  skip_on_cran()
  diverged <- "noiseaware_warning_divergences"
  two <- stat_crossprod(y ~ x1 + x2, list(y = c(0, 1), x1 = c(-4, 4), x2 = c(-4, 4)))
  logistic <- as_release(c(-10, 5, 3, 50, 8, 2, 4, 0, 3), two, mech_laplace(epsilon = 1), 50)
  narrow <- model_logistic(covariates = prior_niw(kappa = 1 / 4, scale = 1, df = 4))
  probit <- model_glm(family = stats::binomial("probit"), covariates = prior_niw(kappa = 1, scale = (8 / 6)^2, df = 4))
  for (case in list(list(rel, model, "collapse", 1, 1), list(logistic, narrow, "clt", 1, 1), list(logistic, probit, "augment", 0, 1))) {
    run <- function(iter, warmup) sample_posterior(case[[1]], case[[2]], method = case[[3]], chains = 2, iter = iter, warmup = warmup, seed = case[[5]])
    # those of "augment" are proposals along an approximation
    expect_identical(diverged %in% warned(fit <- run(100, case[[4]])), case[[3]] != "augment", label = case[[3]])
    counts <- internal("trajectory_counts")(fit)
    expect_gt(counts$divergent, 20)
    expect_identical(counts$divergent, sum(acceptance(fit)$divergent))
    expect_identical(counts$iterations, 200 - 2 * case[[4]])
    # counters go on where the chains do
    expect_gte(internal("trajectory_counts")(suppressWarnings(extend(fit, 20)))$divergent, counts$divergent)
    expect_false(diverged %in% warned(fit <- run(450, 400)), label = case[[3]])
    expect_identical(acceptance(fit)$divergent, c(0, 0))
  }
})

test_that("divergences per effective draw: a funnel's neck that is missed, a mild funnel's, a cumulative model's right posterior", {
  skip_on_cran() # takes long; `make test` runs it
  # v ~ N(0, sd^2), x_i ~ N(0, exp(v)): P(v < its 0.05 quantile), divergences, and how much is out of reach
  funnel <- function(sd, size, iterations) {
    density <- function(q) {
      x <- q[-1L]
      pull <- exp(-q[1L]) * x
      c(-q[1L]^2 / sd^2 / 2 - 0.5 * size * q[1L] - 0.5 * sum(pull * x), -q[1L] / sd^2 - 0.5 * size + 0.5 * sum(pull * x), -pull)
    }
    state <- .Call(internal("ffi_hmc_start"), density, rep(0.1, size + 1), rep(1, size + 1), FALSE, internal("new_stream")(c(11, 7)))
    run <- .Call(internal("ffi_hmc_run"), density, size + 1L, FALSE, state, c(0L, iterations + 500L, 500L), NA_real_)
    v <- run$draws[1L, -seq_len(500)]
    divergent <- sum(run$told[5L, -seq_len(500)])
    c(below = mean(v < stats::qnorm(0.05, sd = sd)), divergent = divergent, unreached = internal("unreached")(divergent, posterior::ess_bulk(matrix(v))))
  }
  for (iterations in c(1500L, 3000L)) { # longer chains do not hide it
    found <- funnel(3, 3, iterations)
    expect_lt(found[["below"]], 0.02)
    expect_gt(found[["unreached"]], internal("most_unreached"))
  }
  found <- funnel(1, 1, 3000L)
  expect_lt(abs(found[["below"]] - 0.05), 0.02)
  expect_gt(found[["divergent"]], 0)
  expect_lt(found[["unreached"]], internal("most_unreached"))
  expect_identical(internal("unreached")(1, NA_real_), 1)
  set.seed(4)
  data <- data.frame(y = sample(c("a", "b", "c", "d"), 60, TRUE), g = sample(c("u", "v"), 60, TRUE))
  noisy <- simulate_release(data, stat_crossprod(y ~ g, list(y = c("a", "b", "c", "d"), g = c("u", "v"))), mech_laplace(epsilon = 0.3))
  ask <- function(method, ...) sample_posterior(noisy, model_glm(y ~ g, family = "cumulative"), method = method, chains = 2, seed = 2, ...)
  expect_false("noiseaware_warning_divergences" %in% warned(fit <- ask("collapse", iter = 1000, warmup = 400)))
  other <- suppressWarnings(ask("augment", iter = 1000, warmup = 400, control = list(passes = 5)))
  for (name in fit$bound$parameters) expect_agreement(parameter_draws(fit, name), parameter_draws(other, name), label = name)
})

test_that("trajectories that a table makes diverge are no trouble where short ones move", {
  skip_on_cran()
  set.seed(6)
  levels <- list(y = letters[1:5], g = c("u", "v", "w"))
  data <- data.frame(y = sample(levels$y, 300, TRUE), g = sample(levels$g, 300, TRUE))
  noisy <- simulate_release(data, stat_counts(~ y:g, levels), mech_laplace(epsilon = 0.02))
  fit <- suppressMessages(suppressWarnings(sample_posterior(noisy, model_glm(y ~ g, family = "cumulative"), method = "collapse", chains = 2, iter = 450, warmup = 150, seed = 1)))
  expect_identical(internal("trajectory_counts")(fit)$straying, 0)
})

test_that("a sampler of \"clt\" is named where another one could move the parameters", {
  skip_on_cran()
  other <- function(fit) internal("engine_samplers")(internal("engine_of")(fit), fit)
  quick <- function(release, model, ...) suppressWarnings(sample_posterior(release, model, method = "clt", chains = 1, iter = 20, seed = 1, ...))
  factors <- stat_crossprod(y ~ x + g, list(y = c(-9, 9), x = c(-9, 9), g = c("a", "b")))
  of_factors <- function(n) as_release(rep(0, length(factors$components)), factors, mech_laplace(epsilon = 1), n)
  expect_null(other(quick(of_factors(50), model_lm())))
  expect_match(other(quick(of_factors(50), model_lm(), control = list(sampler = "nuts"))), "Without control\\$sampler the totals are moved")
  unknown <- function(...) quick(of_factors(NULL), model_lm(), prior_n = prior_n("poisson", mean = 50), ...)
  expect_match(other(unknown()), "sampler = \"nuts\"")
  expect_match(other(unknown(control = list(sampler = "nuts"))), "Without control\\$sampler \"noncentred\" moves the parameters")
  expect_null(other(quick(rel, model)))
  counts <- as_release(c(30, 20), stat_counts(~ y, list(y = c("a", "b"))), mech_laplace(epsilon = 1), 50)
  expect_null(other(quick(counts, model_bernoulli())))
})

test_that("records outside the bounds are warned of where a method leaves them out", {
  skip_on_cran()
  set.seed(1)
  data <- data.frame(y = rnorm(400), x = rnorm(400))
  tight <- simulate_release(data, stat_crossprod(y ~ x, list(y = c(-2, 2), x = c(-2, 2))), mech_laplace(epsilon = 10))
  loose <- simulate_release(data, stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-10, 10))), mech_laplace(epsilon = 100))
  for (method in c("collapse", "clt")) {
    # by default "clt" accounts for them
    control <- if (method == "clt") list(sampler = "noncentred") else list()
    fits <- function(rel) sample_posterior(rel, model, method = method, chains = 2, seed = 1, control = control)
    expect_identical(warned(fit <- fits(tight)), "noiseaware_warning_bounds")
    expect_identical(warned(confint(fit)), "noiseaware_warning_bounds")
    expect_identical(warned(fits(loose)), character())
  }
  for (method in c("augment", "clt")) {
    fits <- function(...) sample_posterior(tight, model, method = method, chains = 2, seed = 1, ...)
    expect_identical(warned(fits(control = list(beside = FALSE))), character())
    expect_identical(warned(fits()), "noiseaware_warning_clamping")
  }
})

test_that("totals that cannot be, and totals at their limit, are warned of and in the summary", {
  skip_on_cran()
  bounds <- list(y = c(-2, 6), x = c(1, 3))
  # y always above 6
  sums <- stat_sums(~ y + x, bounds, rescale = FALSE)
  short <- c(convergence, "noiseaware_warning_divergences") # what chains of 40 iterations may have besides
  fit_of <- function(value, statistic = sums, model = model_mvnormal()) {
    warned <- warned(fit <- sample_posterior(as_release(value, statistic, mech_laplace(scale = 1), 1000), model, chains = 2, iter = 40, seed = 1))
    list(warned = setdiff(warned, short), summary = warned_summary(fit))
  }
  warned_summary <- function(fit) {
    forget()
    classes <- warned(table <- summary(fit))
    list(classes = setdiff(classes, short), shown = utils::capture.output(print(table)), lines = attr(table, "warnings"))
  }
  for (case in list(list(c(6000, 2000), "limit", "At the limit .*: y \\("), list(c(9000, 2000), "impossible", "No data set of 1,000 records .*: y \\("))) {
    found <- fit_of(case[[1]])
    expect_identical(found$warned, paste0("noiseaware_warning_", case[[2]]))
    expect_identical(found$summary$classes, found$warned)
    expect_match(found$summary$lines, case[[3]], all = FALSE)
    expect_match(found$summary$shown, paste0("^! ", case[[3]]), all = FALSE)
    expect_output(print(as_release(case[[1]], sums, mech_laplace(scale = 1), 1000)), case[[3]])
  }
  # sums alone leave the scatter to the prior: one by which few records lie beyond the bounds
  narrow <- model_mvnormal(prior = prior_niw(kappa = 1 / 4, scale = c(1, 0.25)^2, df = 4))
  expect_identical(fit_of(c(2000, 2000), model = narrow)$warned, character())
  limits <- function(...) internal("limit_components")(as_release(...))
  expect_identical(limits(c(6000, 1000), sums, mech_laplace(scale = 1), 1000), c("y", "x"))
  # noise that hides where the total is
  expect_length(limits(c(6000, 1000), sums, mech_laplace(scale = 1000), 1000), 0)
  # in units of [-1, 1]; products are no limit: the square of a small variable is near 0
  expect_identical(limits(c(1000, 0, 1000, 0, 0), stat_crossprod(y ~ x, bounds), mech_laplace(scale = 1), 1000), "y")
  # an empty cell, or level, is nothing odd
  expect_null(limits(c(0, 1000), stat_counts(~ g, list(g = c("a", "b"))), mech_laplace(scale = 1), 1000))
  rare <- stat_crossprod(y ~ g, list(y = c(-2, 6), g = c("a", "b")))
  value <- ifelse(rare$components == "y", 0, 1000 * internal("component_limits")(rare)[, 1])
  expect_length(limits(value, rare, mech_laplace(scale = 1), 1000), 0)
})

test_that("a calibration counts its replicates that have not converged, and says so once", {
  skip_on_cran()
  calibration <- function(method = "augment", ...) {
    calibrate(model, st, mech_laplace(epsilon = 1), 20, replicates = 5, method = method, chains = 2, ..., seed = 1)
  }
  expect_identical(warned(cal <- calibration(iter = 20)), convergence)
  expect_identical(nrow(cal$conditions), 0L)
  short <- function(release, model, ...) {
    fit <- sample_posterior(release, model, chains = 2, iter = 20)
    confint(fit)
    fit
  }
  told(expect_warning(cal <- calibrate(model, st, mech_laplace(epsilon = 1), 20, replicates = 5, method = short, seed = 1),
                      "R-hat above 1.05 in 5 of 5 replicates", class = convergence))
  expect_identical(nrow(cal$conditions), 0L)
  # what a replicate keeps to itself is reported again afterwards
  expect_identical(warned(sample_posterior(rel, model, chains = 2, iter = 20, seed = 1)), convergence)
})

test_that("bounds of a billion do not lose the draws, and a diagnostic that fails is left out with a warning", {
  skip_on_cran()
  set.seed(1)
  data <- data.frame(x = runif(60, 0, 1e9))
  data$y <- 3 + 4 * data$x / 1e9 + rnorm(60)
  rel <- simulate_release(data, stat_crossprod(y ~ x, bounds = list(y = c(0, 10), x = c(0, 1e9))), mech_laplace(epsilon = 2))
  warned <- capture_warnings(fit <- told(suppressMessages(sample_posterior(rel, model_lm(), chains = 2, iter = 60, seed = 1))))
  expect_false(any(grepl("check of the fit failed", warned)))
  expect_silent(rstantools::prior_summary(fit))
  # normal distributions of coordinates whose units are far apart
  points <- cbind(rnorm(200), 1e20 * rnorm(200))
  expect_equal(internal("fit_normals")(points)[[1]]$mean / c(1, 1e20), colMeans(points) / c(1, 1e20), tolerance = 0.5)
  broken <- fit
  broken$release <- broken$run <- 1 # nothing that looks at these can work
  warned <- list()
  withCallingHandlers(kept <- told(suppressMessages(internal("with_troubles")(broken))), warning = function(w) {
    warned <<- c(warned, list(w))
    invokeRestart("muffleWarning")
  })
  expect_s3_class(kept, "noiseaware_fit")
  expect_identical(kept$draws, fit$draws)
  expect_true(any(vapply(warned, inherits, TRUE, "noiseaware_warning_diagnostic")))
})

test_that("a reminder has the first sentence, once", {
  fit <- list(draws = 1, troubles = list(list(kind = "clamping", text = c("It depends.", x = "a: 1 or 2."))))
  warned <- tryCatch(told(internal("remind_troubles")(fit)), warning = identity)
  expect_s3_class(warned, "noiseaware_warning_clamping")
  expect_match(conditionMessage(warned), "It depends.*The printed fit has the details")
  expect_no_match(conditionMessage(warned), "1 or 2")
  expect_silent(told(internal("remind_troubles")(fit)))
})

test_that("a fit of one parameter is warned of as others are", {
  st <- stat_counts(~ y, list(y = c("no", "yes")))
  one <- sample_posterior(as_release(c(20, 30), st, mech_laplace(scale = 2), n = 50), model_bernoulli(), chains = 2, iter = 40, seed = 1)
  found <- internal("mixing_diagnostics")(one)
  expect_identical(lapply(found, names), list(rhat = "prob[yes]", ess = "prob[yes]"))
  expect_warning(told(sample_posterior(one$release, model_bernoulli(), chains = 2, iter = 40, seed = 1)), "effective draws for prob", class = "noiseaware_warning_convergence")
})
