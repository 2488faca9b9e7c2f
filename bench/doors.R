# Coverage of 95% intervals for each way in which noisy numbers are published. Parameters are drawn from the prior, records from the model, and noise by the few
# lines here, not by the package: so 95% of intervals hold the parameter if the release was read as it was published. Quantiles are in bench/quantiles.R, objective
# perturbation in bench/awan_wang.R.
#
#   Rscript bench/doors.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

laplace <- function(k, scale) stats::rexp(k, 1 / scale) - stats::rexp(k, 1 / scale)
two_sided_geometric <- function(k, scale) stats::rgeom(k, 1 - exp(-1 / scale)) - stats::rgeom(k, 1 - exp(-1 / scale))

dirichlet <- function(alpha) {
  weight <- stats::rgamma(length(alpha), alpha)
  weight / sum(weight)
}

# from a density on a fine grid
from_density <- function(density, from, to) {
  at <- seq(from, to, length.out = 20001L)
  sample(at, 1L, prob = density(at))
}

fitted_draws <- function(release, model, ..., chains = 2, iter = 1000) {
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model, ..., chains = chains, iter = iter, seed = 1)))
  unclass(posterior::as_draws_matrix(fit$draws))
}

# Is the truth within the 95% interval, for each of the named parameters?
held <- function(draws, truth) {
  ends <- apply(draws[, names(truth), drop = FALSE], 2L, stats::quantile, c(0.025, 0.975), type = 6)
  unname(truth >= ends[1L, ] & truth <= ends[2L, ])
}

answers <- stat_counts(~ x, list(x = c("no", "yes")))
yes <- stat_subset(answers, "x=yes")
said <- stat_records(~ x, levels = list(x = c("no", "yes")))

# a share with a uniform prior, and what `publish` makes of the count of n records; NULL is not published, and the whole draw is repeated
share <- function(n, publish, read, ...) {
  repeat {
    p <- stats::runif(1L)
    published <- publish(stats::rbinom(1L, n, p))
    if (!is.null(published)) break
  }
  held(fitted_draws(read(published), model_bernoulli(), ...), c("prob[yes]" = p))
}

counted_with <- function(mechanism, n = 200) function(value) as_release(value, yes, mechanism, n = n)
with_noise <- function(density, from, to) function(count) count + from_density(density, from, to)

staircase <- function(e) {
  step <- floor(abs(e))
  exp(-step - (abs(e) - step >= 1 / (1 + exp(1 / 2))))
}

# a categorical variable of as many levels as `levels`, uniform prior
shares <- function(levels, n, publish, read, model = model_categorical(prior = prior_dirichlet(1)), ...) {
  p <- dirichlet(rep(1, length(levels)))
  x <- factor(sample(levels, n, replace = TRUE, prob = p), levels)
  held(fitted_draws(read(publish(x)), model, ...), stats::setNames(p, sprintf("prob[%s]", levels))[-1L])
}

flip <- function(x, matrix) {
  table(factor(vapply(as.character(x), function(level) sample(colnames(matrix), 1L, prob = matrix[level, ]), ""), colnames(matrix)))
}

reports <- function(n, matrix) {
  p <- stats::runif(1L)
  x <- ifelse(stats::runif(n) < p, "yes", "no")
  value <- flip(x, matrix)
  held(fitted_draws(as_release(c(no = value[["no"]], yes = value[["yes"]]), said, mech_randomized_response(matrix = matrix)), model_bernoulli()), c("prob[yes]" = p))
}

five <- letters[1:5]
hidden <- seq(-25, 25, by = 0.5)
ratio_noise <- mech_custom(log_density = function(z, s) {
  of <- function(r, yes, all) log(sum(abs(all + hidden) * exp(-abs(hidden) / 2 - abs(r * (all + hidden) - yes) / 2)))
  mapply(of, z[, 2], s[, 2], rowSums(s))
})
slope_noise <- mech_custom(log_density = function(z, s) {
  within <- pmax(40 * s[, "x^2"] - s[, "x"]^2, 1e-9)
  -abs(z[, "y:x"] - (40 * s[, "y:x"] - s[, "x"] * s[, "y"]) / within) / 0.3
})
correlation_noise <- mech_custom(log_density = function(z, s) {
  within <- function(of, of2) pmax(30 * s[, of2] - s[, of]^2, 1e-9)
  r <- (30 * s[, "y:x"] - s[, "x"] * s[, "y"]) / sqrt(within("x", "x^2") * within("y", "y^2"))
  -(z[, "y:x"] - r)^2 / (2 * 0.1^2)
})
unit_covariate <- function(n) ((7 * seq_len(n)) %% n) / (n / 2) - 1
products_of <- function(x) stat_crossprod(y ~ x, list(y = c(-100, 100), x = c(-x, x)), rescale = FALSE)
far_from_one <- function(m) as.numeric(abs(m - 1) >= 0.07)

doors <- list(
  "Laplace noise, geometric noise cut at 0 and n" = function() {
    share(200, function(count) pmin(pmax(count + two_sided_geometric(1L, 4), 0), 200),
          counted_with(mech_discrete_laplace(scale = 4) |> published(lower = 0, upper = 200)))
  },
  "a count times a public number" = function() {
    scaled <- stat_linear(answers, list(views = c("x=yes" = 32768)))
    share(200, function(count) 32768 * count + laplace(1L, 5 * 6553.6), function(value) as_release(value, scaled, mech_laplace(scale = 5 * 6553.6), n = 200))
  },
  "a count with a 90% margin" = function() {
    share(400, function(count) count + stats::rnorm(1L, 0, 15 / stats::qnorm(0.95)), function(value) {
      as_release(data.frame(x = "yes", value = value, moe = 15), answers, mech_gaussian, n = 400, noise = c(margin = "moe", level = 0.9))
    })
  },
  "shown after a separate noisy test" = function() {
    publish <- function(count) {
      test <- count + laplace(1L, 2)
      if (test > 10) list(count = count + laplace(1L, 2), test = 10)
    }
    share(40, publish, function(value) {
      as_release(value, list(count = yes, test = yes), list(count = mech_laplace(scale = 2), test = mech_laplace(scale = 2) |> published(upper = 10)), n = 40)
    })
  },
  "shown above a threshold, or marked as hidden" = function() {
    share(60, function(count) {
      value <- count + laplace(1L, 6)
      if (value >= 20) value else NA
    }, counted_with(mech_laplace(scale = 6) |> published(threshold = 20), 60))
  },
  "drawn until it is not negative" = function() {
    share(60, function(count) {
      repeat if ((value <- count + laplace(1L, 6)) >= 0) return(value)
    }, counted_with(mech_laplace(scale = 6) |> published(threshold = 0, listed = FALSE), 60))
  },
  "snapping: rounded and cut off" = function() {
    share(60, function(count) pmin(pmax(4 * round((count + laplace(1L, 3)) / 4), -40), 40),
          counted_with(mech_laplace(scale = 3) |> published(round = 4, lower = -40, upper = 40), 60))
  },
  "bounded Laplace noise" = function() {
    cut_off <- function(e) ifelse(abs(e) <= 8, exp(-abs(e) / 3), 0)
    share(200, with_noise(cut_off, -8, 8), counted_with(mech_tabulated(function(e) exp(-abs(e) / 3), lower = -8, upper = 8)))
  },
  "Student-t noise" = function() {
    share(200, function(count) count + 3 * stats::rt(1L, 4), counted_with(mech_tabulated(function(e) stats::dt(e, df = 4), scale = 3)))
  },
  "uniform noise" = function() {
    share(200, function(count) count + stats::runif(1L, -5, 5), counted_with(mech_tabulated(c(1, 1), c(-5, 5), lower = -5, upper = 5)))
  },
  "staircase noise" = function() {
    share(200, with_noise(staircase, -40, 40), counted_with(mech_tabulated(staircase, lower = -40, upper = 40)))
  },
  "random factors with a hole" = function() {
    share(400, function(count) if (count > 0) count * from_density(far_from_one, 0.85, 1.15), function(value) {
      as_release(c("x=yes" = value), answers, mech_tabulated(far_from_one, lower = 0.85, upper = 1.15, product = value), n = 400)
    })
  },
  "reports kept, or else a fair coin" = function() reports(400, rbind(no = c(no = 0.75, yes = 0.25), yes = c(0.25, 0.75))),
  "reports with different flips (local hashing)" = function() {
    q <- 1 / (exp(1.5) + 1)
    reports(500, rbind(no = c(no = 1 - q, yes = q), yes = c(0.5, 0.5)))
  },
  "reports of five levels" = function() {
    keep <- matrix(0.1, 5, 5, dimnames = list(five, five)) + diag(0.5, 5)
    shares(five, 500, function(x) flip(x, keep), function(value) {
      as_release(stats::setNames(as.numeric(value), five), stat_records(~ x, levels = list(x = five)), mech_randomized_response(matrix = keep))
    })
  },
  "sums of flipped bits" = function() {
    shares(five, 300, function(x) vapply(five, function(level) sum(stats::runif(300) < ifelse(x == level, 0.75, 0.25)), 0), function(value) {
      as_release(value, stat_counts(~ x, list(x = five)), mech_unary_encoding(p = 0.75, q = 0.25), n = 300)
    })
  },
  "a mean about the middle over a noisy count" = function() {
    mean <- stats::rnorm(1L, 54, 20)
    n <- sample(200L, 1L)
    value <- list(size = n + laplace(1L, 1), sum = sum(stats::rnorm(n, mean, 12) - 54) + laplace(1L, 36))
    release <- as_release(value, list(size = stat_size(), sum = stat_sums(~ age, c(-500, 500), outside = "none", centre = 54)),
                          list(size = mech_laplace(scale = 1), sum = mech_laplace(scale = 36)), n = NULL, neighbours = "add_remove")
    model <- model_normal(prior = list(mean = prior_normal(54, 20), sd = fixed(12)))
    held(fitted_draws(release, model, prior_n = prior_n("uniform", lower = 1, upper = 200)), c(mean = mean))
  },
  "at most two records of a person" = function() {
    p <- dirichlet(rep(1, 3))
    id <- rep(seq_len(150), 1L + stats::rpois(150, 2))
    visits <- data.frame(id = id, x = factor(sample(letters[1:3], length(id), replace = TRUE, prob = p), letters[1:3]))
    release <- simulate_release(visits, stat_counts(~ x, list(x = letters[1:3])), mech_laplace(epsilon = 0.5), neighbours = persons("id", contributions = 2))
    held(fitted_draws(release, model_categorical(prior = prior_dirichlet(1))), stats::setNames(p, sprintf("prob[%s]", letters[1:3]))[-1L])
  },
  "OpenDP's summary and table, with a threshold" = function() {
    wards <- c("north", "south", "west")
    p <- dirichlet(rep(1, 3))
    count <- as.vector(stats::rmultinom(1L, 120, p)) + two_sided_geometric(3L, 2)
    shown <- count > 33
    while (!any(shown)) {
      p <- dirichlet(rep(1, 3))
      count <- as.vector(stats::rmultinom(1L, 120, p)) + two_sided_geometric(3L, 2)
      shown <- count > 33
    }
    summary <- data.frame(column = "len", aggregate = "Frame Length", distribution = "Integer Laplace", scale = 2, threshold = 33)
    release <- read_release(summary, format = "opendp_table", table = data.frame(ward = wards[shown], len = count[shown]), levels = list(ward = wards), n = 120)
    held(fitted_draws(release, model_categorical(prior = prior_dirichlet(1))), stats::setNames(p, sprintf("prob[%s]", wards))[-1L])
  },
  "two margins of the same people" = function() {
    p <- dirichlet(rep(1, 6))
    table <- matrix(stats::rmultinom(1L, 150, p), 3) # b varies fastest: rows are b
    value <- c(colSums(table), rowSums(table)) + laplace(5L, 3)
    levels <- list(a = c("u", "v"), b = c("x", "y", "z"))
    margins <- stat_counts(~ a + b, levels)
    draws <- fitted_draws(as_release(value, margins, mech_laplace(scale = 3), n = 150), model_table(~ a:b, prior = prior_dirichlet(1)))
    cells <- sprintf("prob[a=%s:b=%s]", rep(levels$a, each = 3), rep(levels$b, 2))
    held(draws, stats::setNames(p, cells))
  },
  "a ratio of two noisy counts that are hidden" = function() {
    p <- stats::runif(1L)
    n <- sample(20:40, 1L)
    all <- n + laplace(1L, 2)
    value <- (stats::rbinom(1L, n, p) + laplace(1L, 2)) / all
    release <- as_release(c(no = 0, yes = value), answers, ratio_noise, n = NULL, neighbours = "add_remove")
    held(fitted_draws(release, model_bernoulli(), prior_n = prior_n("uniform", lower = 20, upper = 40), iter = 400), c("prob[yes]" = p))
  },
  "the slope of a least squares regression" = function() {
    slope <- stats::rnorm(1L)
    x <- stats::rnorm(40)
    y <- stats::rnorm(1L) + slope * x + stats::rnorm(40)
    value <- stats::coef(stats::lm(y ~ x))[["x"]] + laplace(1L, 0.3)
    model <- model_lm(prior = prior_normal(0, 1), sigma = fixed(1), covariates = fixed(list(mean = 0, cov = matrix(1))))
    release <- as_release(c(y = 0, x = 0, "y^2" = 0, "y:x" = value, "x^2" = 0), products_of(10), slope_noise, n = 40)
    held(fitted_draws(release, model, iter = 600), c(x = slope))
  },
  "a correlation" = function() {
    wishart <- stats::rWishart(1L, 5, diag(2))[, , 1L]
    cov <- solve(wishart)
    records <- matrix(stats::rnorm(60), 30) %*% chol(cov)
    value <- stats::cor(records)[1L, 2L] + stats::rnorm(1L, 0, 0.1)
    release <- as_release(c(y = 0, x = 0, "y^2" = 0, "y:x" = value, "x^2" = 0), products_of(100), correlation_noise, n = 30)
    model <- model_mvnormal(prior = list(mean = fixed(c(0, 0)), cov = prior_niw(df = 5, scale = diag(2))))
    draws <- fitted_draws(release, model, iter = 600)
    of <- function(a, b) draws[, sprintf("cov[%s,%s]", a, b)]
    held(cbind(rho = of("x", "y") / sqrt(of("x", "x") * of("y", "y"))), c(rho = cov[1L, 2L] / sqrt(cov[1L, 1L] * cov[2L, 2L])))
  },
  "labels by randomised response, public covariate" = function() {
    x <- stats::qnorm((1:100 - 0.5) / 100)
    beta <- stats::rnorm(2L, 0, 2)
    y <- stats::rbinom(100L, 1L, stats::plogis(beta[1L] + beta[2L] * x))
    kept <- stats::runif(100L) < stats::plogis(1.5)
    release <- as_release(ifelse(kept, y, 1 - y), stat_records(~ y, levels = list(y = c("0", "1"))), mech_randomized_response(epsilon = 1.5), public = data.frame(x))
    held(fitted_draws(release, model_logistic(y ~ x, prior_normal(0, 2))), c("(Intercept)" = beta[1L], x = beta[2L]))
  },
  "noisy products with a public covariate" = function() {
    x <- unit_covariate(20)
    beta <- stats::rnorm(2L, 0, 2)
    y <- beta[1L] + beta[2L] * x + stats::rnorm(20)
    sums <- stat_sums(~ y + y:x, bounds = list(y = c(-50, 50), x = c(-1, 1)), rescale = FALSE, outside = "none")
    release <- as_release(c(y = sum(y), "y:x" = sum(y * x)) + stats::rnorm(2L, 0, 3), sums, mech_gaussian(sd = 3), public = data.frame(x))
    held(fitted_draws(release, model_lm(y ~ x, prior_normal(0, 2), sigma = fixed(1))), c("(Intercept)" = beta[1L], x = beta[2L]))
  },
  "noisy counts by area, public populations" = function() {
    areas <- data.frame(people = c(30, 55, 20, 80, 41, 66, 25, 90, 38, 52, 47, 71, 33, 60, 29, 84, 44, 58, 36, 75), x = unit_covariate(20))
    beta <- stats::rnorm(2L, c(-1, 0), 0.5)
    deaths <- stats::rpois(20L, areas$people * exp(beta[1L] + beta[2L] * areas$x)) + two_sided_geometric(20L, 2)
    release <- as_release(deaths, stat_records(~ deaths, bounds = list(deaths = c(0, 2000))), mech_discrete_laplace(scale = 2), public = areas)
    held(fitted_draws(release, model_glm(deaths ~ x + offset(log(people)), stats::poisson(), prior_normal(c("(Intercept)" = -1, x = 0), 0.5))),
         c("(Intercept)" = beta[1L], x = beta[2L]))
  })

slow_doors <- c("a ratio of two noisy counts that are hidden", "the slope of a least squares regression", "a correlation")

bench_doors <- function(quick = FALSE) {
  rows <- do.call(rbind, lapply(names(doors), function(name) {
    replicates <- if (quick) 5L else if (name %in% slow_doors) 150L else 600L
    used <- seconds(of <- lapply(seq_len(replicates), function(seed) {
      set.seed(seed)
      doors[[name]]()
    }))
    say("%s: %.3f, %.2f s a fit", name, mean(unlist(of)), used / replicates)
    data.frame(published = name, parameters = length(of[[1L]]), releases = replicates, coverage = mean(unlist(of)),
               error = stats::sd(vapply(of, mean, 0)) / sqrt(replicates), "seconds a fit" = used / replicates, check.names = FALSE)
  }))
  bench_result(list(figure("coverage of 95% intervals", "the least of all doors", min(rows$coverage), 0.93),
                    figure("coverage of 95% intervals", "the greatest of all doors", max(rows$coverage), 0.97, at_most = TRUE),
                    figure("coverage of 95% intervals", "mean of all doors", mean(rows$coverage))),
               list("by door" = rows),
               "`error` is the Monte Carlo error of a coverage.")
}

run_alone(bench_doors)
