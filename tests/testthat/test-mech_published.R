# What was done after the noise: against enumeration of all tables, with the likelihood from
# adding up all noisy numbers that come out as what was published.

three <- stat_counts(~ x, levels = list(x = c("a", "b", "c")))

`%||%` <- function(a, b) if (is.null(a)) b else a

# what is shown of noisy numbers, written a second time
show_number <- function(r, threshold = -Inf, round = 0, lower = -Inf, upper = Inf) {
  shown <- r
  if (round > 0) {
    multiple <- floor(r / round)
    rest <- r / round - multiple
    up <- rest > 0.5 | (rest == 0.5 & multiple %% 2 == 1)
    shown <- (multiple + up) * round
  }
  shown[shown < lower] <- lower
  shown[shown > upper] <- upper
  ifelse(r < threshold, NA, shown)
}

same_number <- function(a, b) (is.na(a) & is.na(b)) | (!is.na(a) & !is.na(b) & abs(a - b) < 1e-9)

masses <- list(
  laplace = function(r, s, scale) exp(-abs(r - s) / scale) / (2 * scale),
  gaussian = function(r, s, scale) dnorm(r, s, scale),
  discrete_laplace = function(r, s, scale) exp(-abs(r - s) / scale) * tanh(0.5 / scale),
  discrete_gaussian = function(r, s, scale) exp(-(r - s)^2 / (2 * scale^2)) / sum(exp(-(-400:400)^2 / (2 * scale^2))))

# log likelihood of one published number for each exact total
shown_log <- function(family, value, total, scale, steps, listed = TRUE) {
  discrete <- startsWith(family, "discrete")
  # a grid that has no half and no threshold on it, its points in the middle of cells
  r <- if (discrete) -400:400 else seq(-60, 60, by = 0.002) + 0.001
  width <- if (discrete) 1 else 0.002
  shown <- do.call(show_number, c(list(r), steps))
  vapply(total, function(s) {
    mass <- masses[[family]](r, s, scale) * width
    exact <- !discrete && !is.na(value) && is.null(steps$round) && !value %in% c(steps$lower, steps$upper)
    p <- if (exact) masses[[family]](value, s, scale) else sum(mass[same_number(shown, value)])
    log(p) - if (listed) 0 else log(sum(mass[!is.na(shown)]))
  }, 0)
}

mechanism_of <- function(family, scale, ...) {
  make <- list(laplace = mech_laplace, gaussian = mech_gaussian, discrete_laplace = mech_discrete_laplace, discrete_gaussian = mech_discrete_gaussian)[[family]]
  published(do.call(make, stats::setNames(list(scale), if (endsWith(family, "laplace")) "scale" else "sd")), ...)
}

designs <- list(
  hidden = list(steps = list(threshold = 2), value = c(3, 2, NA)),
  all_hidden = list(steps = list(threshold = 3), value = c(NA, NA, NA)),
  rounded = list(steps = list(round = 2), value = c(4, 2, 0)),
  clipped = list(steps = list(lower = 0, upper = 5), value = c(5, 2, 0)),
  rounded_to_odd = list(steps = list(round = 3, lower = 0), value = c(3, 3, 0)),
  limit_off_grid = list(steps = list(round = 2, lower = 1), value = c(4, 2, 1)),
  everything = list(steps = list(threshold = 1, round = 2, lower = 1, upper = 4), value = c(4, 2, NA)),
  only_shown = list(steps = list(threshold = 2), value = c(3, 2, 2), listed = FALSE))

tables_of_three <- function(n) {
  all <- as.matrix(expand.grid(a = 0:n, b = 0:n, c = 0:n))
  all[rowSums(all) == n, ]
}

expect_enumerated <- function(fit, counts, log_p) {
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  d <- denoise(fit)
  for (k in seq_len(ncol(counts))) {
    draws <- posterior::extract_variable_matrix(d, posterior::variables(d)[k])
    for (value in unique(counts[, k])) {
      exact <- sum(p[counts[, k] == value])
      if (exact > 0.02 && exact < 0.98) expect_same_mean((draws == value) + 0, exact)
    }
  }
}

log_of_design <- function(family, design, counts, scale) {
  rowSums(vapply(1:3, function(k) shown_log(family, design$value[k], counts[, k], scale, design$steps, design$listed %||% TRUE), numeric(nrow(counts))))
}
release_of_design <- function(family, design, scale, n = 6) {
  mechanism <- do.call(mechanism_of, c(list(family, scale), design$steps, list(listed = design$listed %||% TRUE)))
  as_release(stats::setNames(design$value, c("a", "b", "c")), three, mechanism, n)
}

test_that("the likelihood is that of all noisy numbers that come out as what was published", {
  skip_on_cran() # takes long; `make test` runs it
  for (family in names(masses)) for (design in designs) for (scale in c(0.8, 3)) {
    rel <- release_of_design(family, design, scale)
    part <- internal("release_parts")(rel)[[1]]
    interval <- internal("published_interval")(part)
    totals <- 0:6
    for (k in 1:3) {
      here <- internal("published_density")(interval[k, ], matrix(totals))
      expect_equal(here, shown_log(family, design$value[k], totals, scale, design$steps, design$listed %||% TRUE), tolerance = 1e-5)
    }
  }
})

test_that("tails and narrow intervals keep their digits", {
  density <- function(family, scale, lower, upper, total = 0) {
    internal("published_density")(data.frame(family = family, scale = scale, lower = lower, upper = upper, least = -Inf, records = 0, table = I(list(NULL))), matrix(total))
  }
  # far out: logarithms of what would underflow
  expect_equal(density(0, 5, 1000, Inf), -200 - log(2))
  expect_equal(density(0, 5, -Inf, -1000), -200 - log(2))
  expect_equal(density(1, 5, 1000, Inf), pnorm(200, lower.tail = FALSE, log.p = TRUE))
  expect_equal(density(2, 5, 1000, Inf), -200 - log1p(exp(-1 / 5)))
  expect_equal(density(3, 5, 1000, Inf), pdiscrete_gaussian(999, 0, 5, lower.tail = FALSE, log.p = TRUE))
  # narrow: the density times the width, from either side of the switch to it
  for (at in c(0, -3, 12)) {
    expect_equal(density(0, 2, at + 1, at + 1 + 2^-20), dexp(abs(at + 1 + 2^-21), 1 / 2, log = TRUE) - log(2) - 20 * log(2), tolerance = 1e-7)
    expect_equal(density(1, 2, at, at + 2^-20), dnorm(at + 2^-21, 0, 2, log = TRUE) - 20 * log(2), tolerance = 1e-7)
    middle <- integrate(dnorm, at, at + 3e-4, sd = 2, rel.tol = 1e-12)$value
    expect_equal(density(1, 2, at, at + 3e-4), log(middle), tolerance = 1e-7)
    middle <- integrate(dnorm, at, at + 1.9e-4, sd = 2, rel.tol = 1e-12)$value
    expect_equal(density(1, 2, at, at + 1.9e-4), log(middle), tolerance = 1e-7)
  }
  # many masses are added up by tails
  for (family in 2:3) for (upper in c(12, 20, 60)) {
    mass <- list(ddiscrete_laplace, ddiscrete_gaussian)[[family - 1]]
    expect_equal(density(family, 7, 2, upper), log(sum(mass(2:upper, 0, 7))), tolerance = 1e-9)
    expect_equal(density(family, 7, -9, upper), log(sum(mass(-9:upper, 0, 7))), tolerance = 1e-9)
  }
  expect_identical(density(1, 2, -Inf, Inf), 0)
})

test_that("methods agree with enumeration of all tables", {
  skip_on_cran()
  counts <- tables_of_three(6)
  model <- flat_categorical() # every table is equally likely
  families <- rep(names(masses), length.out = length(designs))
  for (k in seq_along(designs)) {
    rel <- release_of_design(families[k], designs[[k]], 1.5)
    log_p <- log_of_design(families[k], designs[[k]], counts, 1.5)
    fit <- sample_posterior(rel, model, method = "auto", chains = 2, iter = 2200, seed = k)
    expect_identical(c(fit$method, fit$problem$family), c("collapse", "row"))
    expect_true(fit$exact)
    expect_enumerated(fit, counts, log_p)
    fit <- by_moves(sample_posterior(rel, model, method = "collapse", chains = 2, iter = 1800, seed = k))
    expect_identical(fit$problem$family, "counts")
    expect_enumerated(fit, counts, log_p)
    fit <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 1800, seed = k)
    expect_enumerated(fit, counts, log_p)
    # the noise's log density of draws equals the log density of their tables
    s <- posterior::as_draws_matrix(denoise(fit))
    at <- match(paste(s[, 1], s[, 2]), paste(counts[, 1], counts[, 2]))
    expect_equal(unlist(lapply(fit$chains, `[[`, "log_noise")), log_p[at], tolerance = 1e-4)
  }
})

test_that("subsets, queries and an unknown number of records go along", {
  skip_on_cran()
  counts <- tables_of_three(6)
  # one hidden cell of three, and a rounded total of two others
  rel <- as_release(list(cell = c(a = NA), sum = c(bc = 4)), list(cell = stat_subset(three, "x=a"), sum = stat_linear(three, list(bc = c("x=b", "x=c")))),
                    list(cell = published(mech_discrete_laplace(scale = 1.5), threshold = 3), sum = published(mech_gaussian(sd = 1), round = 2)), 6)
  log_p <- shown_log("discrete_laplace", NA, counts[, 1], 1.5, list(threshold = 3)) +
    shown_log("gaussian", 4, counts[, 2] + counts[, 3], 1, list(round = 2))
  released <- cbind(counts[, 1], counts[, 2] + counts[, 3])
  for (method in c("collapse", "augment")) {
    expect_enumerated(sample_posterior(rel, flat_categorical(), method = method, chains = 2, iter = 1800, seed = 1), released, log_p)
  }
  # the number of records is hidden too
  rel <- as_release(c(a = 3, b = NA, c = NA), three, published(mech_discrete_laplace(scale = 1), threshold = 2), NULL, neighbours = "add_remove")
  all <- as.matrix(expand.grid(0:12, 0:12, 0:12))
  all <- all[rowSums(all) <= 12, ]
  n <- rowSums(all)
  # tables of n records are equally likely among (n + 1)(n + 2) / 2
  log_p <- rowSums(vapply(1:3, function(k) shown_log("discrete_laplace", c(3, NA, NA)[k], all[, k], 1, list(threshold = 2)), n + 0)) - log((n + 1) * (n + 2))
  for (method in c("collapse", "augment")) {
    fit <- sample_posterior(rel, flat_categorical(), method = method, prior_n = prior_n("uniform", lower = 0, upper = 12), chains = 2, iter = 2100, seed = 3)
    expect_enumerated(fit, all, log_p)
  }
})

test_that("cells of several variables that were hidden agree with enumeration", {
  skip_on_cran()
  levels <- list(y = c("no", "yes"), x = c("a", "b", "c"))
  cells <- stat_counts(~ y:x, levels = levels)
  value <- stats::setNames(c(NA, 4, NA, 3, NA, NA), cells$components)
  rel <- as_release(value, cells, published(mech_discrete_laplace(scale = 1), threshold = 3), 8)
  all <- as.matrix(expand.grid(rep(list(0:8), 6)))
  all <- all[rowSums(all) == 8, ]
  no <- rowSums(all[, 1:3])
  # classes equally likely, then the tables of each class
  log_p <- -log((no + 1) * (no + 2)) - log((9 - no) * (10 - no))
  for (k in 1:6) log_p <- log_p + shown_log("discrete_laplace", value[[k]], all[, k], 1, list(threshold = 3))
  fit <- by_moves(sample_posterior(rel, flat_naive_bayes("y"), method = "collapse", chains = 2, iter = 3000, seed = 1))
  expect_identical(fit$problem$family, "counts")
  expect_enumerated(fit, all, log_p)
})

test_that("steps that change nothing leave the posterior alone", {
  value <- c(a = 31.25, b = 12.5, c = 7.75)
  plain <- sample_posterior(as_release(value, three, mech_gaussian(sd = 2), 50), flat_categorical(), chains = 2, iter = 500, seed = 1)
  for (mechanism in list(published(mech_gaussian(sd = 2), threshold = -1e6), published(mech_gaussian(sd = 2), round = 2^-20),
                         published(mech_gaussian(sd = 2), lower = -1e6, upper = 1e6))) {
    fit <- sample_posterior(as_release(value, three, mechanism, 50), flat_categorical(), chains = 2, iter = 500, seed = 1)
    # independent draws from weights that differ by a constant
    expect_equal(fit$draws, plain$draws, tolerance = 1e-4)
  }
})

test_that("totals of numbers agree with quadrature", {
  skip_on_cran()
  # Poisson: the total is negative binomial
  st <- stat_sums(~ x, bounds = list(x = c(0, 50)))
  rel <- as_release(c(x = NA), st, published(mech_laplace(scale = 8), threshold = 30), 10)
  s <- 0:400
  log_p <- lgamma(2 + s) - lgamma(s + 1) + s * log(10 / 11) + log(ifelse(s < 30, 1 - exp((s - 30) / 8) / 2, exp((30 - s) / 8) / 2))
  p <- exp(log_p - max(log_p))
  model <- model_poisson(prior = prior_gamma(2, 1))
  for (method in c("collapse", "augment")) {
    fit <- sample_posterior(rel, model, method = method, chains = 2, iter = 2100, seed = 4)
    d <- posterior::extract_variable_matrix(denoise(fit), "x")
    for (q in c(5, 10, 20, 30)) expect_same_mean((d <= q) + 0, sum(p[s <= q]) / sum(p))
  }
  # normal records, wide bounds: the total is normal
  st <- stat_sums(~ x, bounds = list(x = c(-1000, 1000)))
  rel <- as_release(c(x = 40), st, published(mech_gaussian(sd = 15), round = 20), 12)
  model <- model_normal(prior = prior_nig(mean = 1, precision = 0.5, shape = 4, rate = 6))
  grid <- seq(-250, 350, by = 0.05)
  density <- dt((grid - 12) / sqrt(6 / 4 * (12 + 144 / 0.5)), 8) * (pnorm(50, grid, 15) - pnorm(30, grid, 15))
  fit <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 2100, seed = 5)
  expect_distribution(posterior::extract_variable_matrix(denoise(fit), "x"), grid_quantile(grid, density))
})

test_that("posteriors are calibrated", {
  skip_on_cran()
  mechanisms <- list(published(mech_discrete_gaussian(sd = 3), threshold = 8, round = 3, lower = 0), published(mech_laplace(scale = 4), threshold = 6, listed = FALSE))
  for (mechanism in mechanisms) {
    cal <- calibrate(flat_categorical(), three, mechanism, n = 30, replicates = 110, seed = 1, chains = 1, iter = 400)
    expect_true(all(summary(cal)$p.value > 1e-4))
  }
})

# ---- the owner, files, prints ----------------------------------------------------------

test_that("releases and simulations are what published() says, at no cost", {
  skip_on_cran() # takes long; `make test` runs it
  data <- data.frame(x = rep(c("a", "b", "c"), c(60, 25, 3)))
  step <- function(mechanism) published(mechanism, threshold = 10, round = 5, lower = 15)
  for (mechanism in list(mech_laplace(epsilon = 10), mech_discrete_gaussian(rho = 2))) { # so little noise that 3 stays below 10
    rel <- release(data, three, step(mechanism))
    expect_identical(unname(is.na(rel$value)), c(FALSE, FALSE, TRUE))
    expect_true(all(rel$value[1:2] %% 5 == 0) && all(rel$value[1:2] >= 15))
    expect_identical(privacy(rel), privacy(release(data, three, mechanism)))
    expect_equal(noise_sd(rel), noise_sd(release(data, three, mechanism)))
    path <- withr::local_tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
    set.seed(1)
    plain <- simulate_release(data, three, mechanism)$value
    set.seed(1)
    expect_identical(simulate_release(data, three, step(mechanism))$value, show_number(plain, 10, 5, 15) |> stats::setNames(names(plain)))
  }
  # the noise of numbers that are known to be shown, 200 at a time
  set.seed(2)
  many <- data.frame(x = factor(rep(1:201, each = 3)))
  known <- stat_counts(~ x, list(x = levels(many$x)))
  known <- stat_subset(known, known$components[1:200])
  for (mechanism in list(mech_laplace(scale = 4), mech_discrete_gaussian(sd = 4))) {
    shown <- replicate(20, simulate_release(many, known, published(mechanism, threshold = 9, listed = FALSE))$value)
    expect_true(all(shown >= 9))
    r <- if (inherits(mechanism, "mech_laplace")) seq(9, 80, by = 0.01) else 9:80
    mass <- if (inherits(mechanism, "mech_laplace")) masses$laplace(r, 3, 4) else masses$discrete_gaussian(r, 3, 4)
    expect_lt(abs(mean(shown) - sum(r * mass) / sum(mass)) / (sd(shown) / sqrt(4000)), 5)
  }
  # a budget is spent once
  account <- budget(epsilon = 1)
  release(data, three, step(mech_laplace(epsilon = 1)), budget = account)
  expect_error(release(data, three, step(mech_laplace(epsilon = 1)), budget = account), class = "noiseaware_error_budget")
})

test_that("hidden numbers are told from those that were not published", {
  mechanism <- published(mech_discrete_laplace(epsilon = 1), threshold = 10)
  all <- as_release(c(a = 50, b = NA, c = NA), three, mechanism, 60)
  some <- as_release(c(a = 50, b = NA), stat_subset(three, c("x=a", "x=b")), mechanism, 60)
  expect_identical(some$value, c("x=a" = 50, "x=b" = NA))
  expect_identical(as.data.frame(all)$hidden_below, c(NA, 10, 10))
  expect_null(as.data.frame(as_release(c(a = 50, b = 10, c = 12), three, mechanism, 60))$hidden_below)
  expect_identical(as_release(table(x = rep(c("a", "b", "c"), 20:22)), three, mechanism, 60)$value, c(`x=a` = 20, `x=b` = 21, `x=c` = 22))
  rows <- data.frame(x = c("b", "a", "c"), value = c(NA, 44, 30))
  expect_identical(as_release(rows, three, mechanism, n = 60)$value, c(`x=a` = 44, `x=b` = NA, `x=c` = 30))
  # second releases keep what was done
  both <- add_release(all, release(data.frame(x = rep("a", 60)), three, mech_laplace(epsilon = 1)), names = c("one", "two"))
  expect_identical(both$mechanism$one$after, mechanism$after)
  expect_s3_class(both$mechanism$one, "mech_published")
})

test_that("of a function it is a function of the noise", {
  expect_identical(published(mech_gaussian, threshold = 10, lower = 0)(sd = 2), published(mech_gaussian(sd = 2), threshold = 10, lower = 0))
  expect_identical(published(mech_discrete_laplace, round = 5)(scale = 2), published(mech_discrete_laplace(scale = 2), round = 5))
  # trouble is found before there is a size
  expect_error(published(mech_gaussian, threshold = "a"), class = "noiseaware_error_mechanism")
  expect_error(published(mech_gaussian), class = "noiseaware_error_mechanism")
  expect_error(published(mean, threshold = 1), "from a scale or an sd", class = "noiseaware_error_argument")
})

test_that("prints, plots and checks follow", {
  rel <- as_release(c(a = 50, b = 15, c = NA), three, published(mech_laplace(epsilon = 1), threshold = 10, round = 5, lower = 0, upper = 900), 70)
  expect_snapshot(rel)
  expect_snapshot(published(mech_gaussian(sd = 2), threshold = 90, listed = FALSE))
  built <- ggplot2::ggplot_build(plot(rel))
  expect_identical(Filter(function(layer) "label" %in% names(layer), built$data)[[1]]$x, 10)
  fit <- sample_posterior(rel, flat_categorical(), chains = 2, iter = 400, seed = 1)
  check <- bayesplot::pp_check(fit)
  expect_true(all(is.finite(ggplot2::ggplot_build(check)$data[[3]]$x)))
  # no trouble in numbers that are rounded far from the total
  expect_length(internal("release_troubles")(as_release(c(a = 100, b = 0, c = 0), three, published(mech_laplace(scale = 0.01), round = 100), 60)), 0)
  expect_length(internal("release_troubles")(as_release(c(a = 900, b = 0, c = 0), three, published(mech_laplace(scale = 0.01), round = 100), 60)), 1)
})

test_that("what cannot be is refused", {
  skip_on_cran()
  laplace <- mech_laplace(epsilon = 1)
  expect_refused <- function(code, class = "noiseaware_error_mechanism") expect_error(code, class = class)
  expect_refused(published(laplace))
  expect_refused(published(laplace, 10))
  expect_refused(published(laplace, threshold = NA))
  expect_refused(published(laplace, round = 0))
  expect_refused(published(laplace, lower = 5, upper = 5))
  expect_refused(published(laplace, round = 5, listed = FALSE))
  expect_refused(published(published(laplace, round = 5), threshold = 5))
  expect_refused(published(mech_randomized_response(epsilon = 1), round = 5))
  expect_refused(published(mech_custom(log_density = function(noise) -rowSums(noise^2)), round = 5))
  expect_refused(published("laplace", round = 5), "noiseaware_error_argument")
  expect_refused(published(laplace, threshold = 5, listed = NA), "noiseaware_error_argument")
  records <- stat_records(~ x, bounds = list(x = c(0, 1)))
  expect_refused(as_release(c(0.5, 0.5), records, published(laplace, round = 0.5), 2))
  expect_refused(release(data.frame(x = c("a", "b")), three, published(laplace, threshold = 5, listed = FALSE)))
  value <- function(a, ...) as_release(c(a = a, b = 20, c = 20), three, published(laplace, ...), 60)
  expect_refused(value(NA, round = 5), "noiseaware_error_value")
  expect_refused(value(9, threshold = 10), "noiseaware_error_value")
  expect_refused(value(12, round = 5), "noiseaware_error_value")
  expect_refused(value(-1, lower = 0), "noiseaware_error_value")
  expect_refused(value(40, upper = 30), "noiseaware_error_value")
  expect_refused(value(NA, threshold = 10, listed = FALSE), "noiseaware_error_value")
  expect_refused(value(NaN, threshold = 10), "noiseaware_error_value")
  expect_refused(as_release(c(a = 1.5, b = 20, c = 20), three, published(mech_discrete_laplace(epsilon = 1), upper = 30), 60), "noiseaware_error_value")
  expect_refused(as_release(c(a = NA, b = 20, c = 20), three, laplace, 60), "noiseaware_error_value")
  # an absent number may have been hidden, unless only those that were shown are listed or it was never asked
  shown <- c("x=a" = 35, "x=b" = 20)
  expect_error(as_release(shown, three, published(laplace, threshold = 10), 60), "Absent: \"x=c\"", class = "noiseaware_error_value")
  expect_error(as_release(list(t = shown), list(t = three), list(t = published(laplace, threshold = 10)), 60), "value\\$t", class = "noiseaware_error_value")
  expect_named(as_release(shown, three, published(laplace, threshold = 10, listed = FALSE), 60)$value, names(shown))
  expect_named(as_release(shown, stat_subset(three, names(shown)), published(laplace, threshold = 10), 60)$value, names(shown))
  # methods that need the noisy numbers
  hidden <- value(NA, threshold = 10)
  expect_refused(sample_posterior(hidden, flat_categorical(), method = "clt"), "noiseaware_error_method")
  expect_refused(sample_posterior(hidden, flat_categorical(), method = "naive"), "noiseaware_error_method")
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 1)), rescale = FALSE)
  rounded <- as_release(c(20, 10), st, published(laplace, round = 5), 60)
  expect_refused(sample_posterior(rounded, model_normal(), method = "collapse"), "noiseaware_error_method")
  # files of an earlier version knew nothing of it
  path <- withr::local_tempfile(fileext = ".json")
  write_release(value(20, round = 5), path)
  text <- readLines(path)
  writeLines(sub('"version": 4', '"version": 2', text), path)
  expect_refused(read_release(path), "noiseaware_error_file")
  writeLines(sub('"listed": true', '"listed": 1', text), path)
  expect_refused(read_release(path), "noiseaware_error_file")
  writeLines(sub('"round": 5', '"step": 5', text), path)
  expect_refused(read_release(path), "noiseaware_error_file")
})

test_that("counts without noise, suppressed or rounded, leave all tables that agree with them", {
  counted <- stat_counts(~ x, levels = list(x = letters[1:5]))
  suppressed <- published(mech_exact(), threshold = 10)
  expect_identical(format(suppressed), "exact counts, without noise; hidden below 10")
  expect_identical(privacy(suppressed)$epsilon, Inf)
  rel <- as_release(c(55, 13, NA, NA, NA), counted, suppressed, n = 82)
  fit <- sample_posterior(rel, flat_categorical(), chains = 4, iter = 2000, seed = 1)
  draws <- posterior::as_draws_matrix(denoise(fit))
  expect_true(all(draws[, 1] == 55, draws[, 2] == 13, rowSums(draws) == 82, draws[, 3:5] < 10))
  expect_identical(unname(noise_sd(rel)), numeric(5))
  # hidden numbers are open points, all in their own units
  points <- ggplot2::ggplot_build(plot(fit, "denoised"))$data[[2]]
  expect_identical(points$shape, c(19, 19, 21, 21, 21))
  expect_equal(points$x, unname(colMeans(draws)))
  expect_identical(nrow(plot(fit, "denoised")$layers[[1]]$data), 3L)
  # with a flat prior all tables are equally probable
  tables <- expand.grid(0:9, 0:9, 0:9)
  exact <- tabulate(tables[rowSums(tables) == 14, 1] + 1, 10)
  seen <- tabulate(as.vector(draws[, 3]) + 1, 10)
  expect_gt(chisq.test(seen, p = exact / sum(exact))$p.value, 1e-6)
  rounded <- as_release(c(50, 10, 10, 0, 10), counted, published(mech_exact(), round = 5), n = 82)
  counts <- posterior::as_draws_matrix(denoise(sample_posterior(rounded, flat_categorical(), chains = 2, iter = 400, seed = 1)))
  expect_true(all(round(counts / 5) * 5 == rep(rounded$value, each = nrow(counts))))
  # a file keeps that there is no noise; an owner cannot release it
  path <- withr::local_tempfile(fileext = ".json")
  write_release(rel, path)
  expect_match(readLines(path), "\"name\": ?\"exact\"", all = FALSE)
  expect_identical(read_release(path)$mechanism, rel$mechanism)
  data <- data.frame(x = factor(rep(letters[1:5], c(55, 13, 5, 4, 5)), letters[1:5]))
  expect_error(release(data, counted, suppressed), "nothing would protect", class = "noiseaware_error_mechanism")
  expect_identical(unname(simulate_release(data, counted, suppressed)$value), c(55, 13, NA, NA, NA))
})
