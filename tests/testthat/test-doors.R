# Shapes in which projects publish noisy numbers, with the code that vignette("cookbook") shows for them; exact answers by enumeration and
# quadrature, made without this package.

answers <- stat_counts(~ x, list(x = c("no", "yes")))
yes <- stat_subset(answers, "x=yes") # flat prior: every count from 0 to n is equally likely
counted <- function(release, component = "x=yes", iter = 500) {
  posterior::extract_variable_matrix(denoise(sample_posterior(release, model_bernoulli(), chains = 2, iter = iter, seed = 1)), component)
}

test_that("a count times a public number", {
  scaled <- stat_linear(answers, list(views = c("x=yes" = 32768)))
  draws <- counted(as_release(41.3 * 32768, scaled, mech_laplace(scale = 5 * 6553.6), n = 200), "views") / 32768
  expect_same_mean(draws, 41.286)
  expect_equal(sd(draws), 1.430, tolerance = 0.1)
})

test_that("a count that was shown because of a separate noisy test", {
  rel <- as_release(list(count = 23.4, test = 10), list(count = yes, test = yes),
                    list(count = mech_laplace(scale = 2), test = mech_laplace(scale = 2) |> published(upper = 10)), n = 300)
  expect_same_mean(counted(rel, "count: x=yes"), 23.419)
})

test_that("noise that was cut off", {
  skip_on_cran()
  cut_off <- mech_custom(log_density = function(noise) rowSums(ifelse(abs(noise) <= 8, -abs(noise) / 3, -Inf)))
  rel <- as_release(52, yes, cut_off, n = 200)
  fit <- sample_posterior(rel, model_bernoulli(), chains = 2, iter = 500, seed = 1)
  expect_same_mean(posterior::extract_variable_matrix(denoise(fit), "x=yes"), 52.000)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "prob[yes]"), 0.26238)
})

test_that("noise with a density of one's own: the numbers in the cookbook", {
  skip_on_cran() # takes long; `make test` runs it
  steps <- function(e) {
    step <- floor(abs(e))
    exp(-1 * (step + (abs(e) - step >= 1 / (1 + exp(1 / 2)))))
  }
  cases <- list(
    bounded = list(mech_tabulated(function(e) exp(-abs(e) / 3), lower = -8, upper = 8), function(e) ifelse(abs(e) <= 8, exp(-abs(e) / 3), 0)),
    student = list(mech_tabulated(function(e) dt(e, df = 4), scale = 3), function(e) dt(e / 3, 4)),
    uniform = list(mech_tabulated(c(1, 1), c(-5, 5), lower = -5, upper = 5), function(e) as.numeric(abs(e) <= 5)),
    triangular = list(mech_tabulated(c(0, 1, 0), c(-5, 0, 5)), function(e) pmax(0, 5 - abs(e))),
    canonical = list(mech_tabulated(function(e) exp(-0.4 * abs(round(e))), lower = -90, upper = 90), function(e) exp(-0.4 * abs(round(e)))),
    staircase = list(mech_tabulated(steps, lower = -40, upper = 40), function(e) ifelse(abs(e) <= 40, steps(e), 0)))
  k <- 0:200
  for (case in cases) {
    weight <- case[[2]](52.3 - k)
    share <- sum(weight * (k + 1) / 202) / sum(weight)
    fit <- sample_posterior(as_release(52.3, yes, case[[1]], n = 200), model_bernoulli(), chains = 2, iter = 1000, seed = 1)
    expect_same_mean(posterior::extract_variable_matrix(fit$draws, "prob[yes]"), share)
    sd <- sqrt(sum(weight * (k - 52.3)^2) / sum(weight) - (sum(weight * (k - 52.3)) / sum(weight))^2)
    expect_equal(stats::sd(posterior::extract_variable_matrix(denoise(fit), "x=yes")), sd, tolerance = 0.06)
  }
})

test_that("a mean about the middle of the bounds over a noisy count", {
  deviations <- stat_sums(~ age, bounds = c(-500, 500), outside = "none", centre = 54)
  expect_identical(deviations$components, "(age)")
  expect_equal(sensitivity(stat_sums(~ age, c(18, 90), centre = 54), "L1", "add_remove"), 36)
  rel <- as_release(list(size = 48.2, sum = -310), list(size = stat_size(), sum = deviations), list(size = mech_laplace(scale = 1), sum = mech_laplace(scale = 36)),
                    n = NULL, neighbours = "add_remove")
  prior <- list(mean = prior_normal(54, 20), sd = fixed(12))
  fit <- sample_posterior(rel, model_normal(prior = prior), prior_n = prior_n("uniform", lower = 1, upper = 200), chains = 2, iter = 2000, seed = 1)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "mean"), 47.622)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "n"), 48.148)
  expect_equal(sd(posterior::extract_variable(fit$draws, "mean")), 2.026, tolerance = 0.1)
  # two variables, and what has no centre
  expect_identical(stat_sums(~ a + b, list(a = c(0, 1), b = c(0, 9)), centre = c(a = 0.5, b = 4))$components, c("(a)", "(b)"))
  expect_error(stat_sums(~ a, c(0, 1), centre = 0.5, rescale = TRUE), class = "noiseaware_error_argument")
  expect_error(stat_sums(~ a, c(0, 1), centre = 0.5, outside = "drop"), class = "noiseaware_error_argument")
  expect_error(stat_sums(~ I(a^2), c(0, 1), centre = 0.5), class = "noiseaware_error_formula")
})

test_that("a change in per cent of two noisy counts", {
  after <- 120.6 * (1 + 23.1 / 100)
  for (number in c(120.6, after)) {
    draws <- counted(as_release(number, yes, mech_laplace(scale = 4), n = 400))
    expect_same_mean(draws, if (number < 130) 120.60 else 148.46)
    expect_equal(sd(draws), 5.66, tolerance = 0.1)
  }
})

test_that("a count with a 90% margin, or a budget and a sensitivity", {
  row <- data.frame(x = "yes", value = 128, moe = 15, eps = 0.5, cap = 6)
  rel <- as_release(row, answers, mech_gaussian, n = 400, noise = c(margin = "moe", level = 0.9))
  expect_equal(unname(noise_sd(rel)), 9.1194, tolerance = 1e-4)
  of <- function(...) as_release(row, answers, ..., n = 400)$mechanism$scale
  expect_equal(of(mech_laplace, noise = c(epsilon = "eps", sensitivity = 6)), 12)
  expect_equal(of(mech_discrete_laplace, noise = c(epsilon = "eps", sensitivity = "cap")), 12)
  expect_error(of(mech_gaussian, noise = c(epsilon = "eps", sensitivity = 6)), class = "noiseaware_error_argument")
  expect_error(of(mech_laplace, noise = c(epsilon = "eps", sensitivity = "cop")), class = "noiseaware_error_argument")
  expect_error(of(mech_laplace, noise = c(epsilon = "eps")), class = "noiseaware_error_argument")
})

test_that("a choice by the exponential mechanism", {
  skip_on_cran()
  # the cell with the median: chosen with probability exp(-|F_k - 2|), F_k records in cells up to k
  choice <- mech_custom(log_density = function(z, s) rowSums(-z * abs(s - 2)) - log(rowSums(exp(-abs(s - 2)))))
  cells <- stat_cumulative(stat_counts(~ x, list(x = letters[1:6])))
  rel <- as_release(c(0, 1, 0, 0, 0), cells, choice, n = 4)
  fit <- sample_posterior(rel, model_categorical(), chains = 2, iter = 1000, seed = 1)
  exact <- c(0.17461, 0.18831, 0.16898, 0.16259, 0.15620, 0.14932)
  for (k in 1:6) expect_same_mean(posterior::extract_variable_matrix(fit$draws, paste0("prob[", letters[k], "]")), exact[k])
})

test_that("sums of bits that were flipped with different probabilities", {
  skip_on_cran()
  # of 6 records in three levels, a bit is 1 with probability 0.75 at the own level and 0.25 at others
  bits <- mech_custom(log_density = function(z, s) {
    s <- pmin(pmax(round(s), 0), 6)
    one <- function(z, s) log(sum(dbinom(0:z, s, 0.75) * dbinom(z:0, 6 - s, 0.25)))
    rowSums(matrix(mapply(one, z, s), nrow(s)))
  })
  rel <- as_release(c(4, 1, 3), stat_counts(~ x, levels = list(x = c("a", "b", "c"))), bits, n = 6)
  fit <- sample_posterior(rel, model_categorical(), chains = 2, iter = 400, seed = 1)
  tables <- expand.grid(a = 0:6, b = 0:6)
  tables <- tables[rowSums(tables) <= 6, ]
  reported <- function(z, s) vapply(s, function(s) sum(dbinom(0:z, s, 0.75) * dbinom(z:0, 6 - s, 0.25)), 0)
  weight <- reported(4, tables$a) * reported(1, tables$b) * reported(3, 6 - tables$a - tables$b)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "prob[a]"), weighted.mean((tables$a + 1) / 9, weight))
})

test_that("numbers of answers, and sums of bits", {
  said <- stat_records(~ x, levels = list(x = c("no", "yes")))
  share <- function(value, matrix) {
    fit <- sample_posterior(as_release(value, said, mech_randomized_response(matrix = matrix)), model_bernoulli(), chains = 2, iter = 2000, seed = 1)
    posterior::extract_variable_matrix(fit$draws, "prob[yes]")
  }
  coin <- share(c(no = 269, yes = 131), rbind(no = c(no = 0.75, yes = 0.25), yes = c(0.25, 0.75)))
  expect_same_mean(coin, 0.15675)
  expect_equal(sd(coin), 0.04672, tolerance = 0.1)
  q <- 1 / (exp(1.5) + 1)
  optimised <- share(c(no = 329, yes = 171), rbind(no = c(no = 1 - q, yes = q), yes = c(0.5, 0.5)))
  expect_same_mean(optimised, 0.50446)
  expect_equal(sd(optimised), 0.06663, tolerance = 0.1)
  bits <- as_release(c(a = 120, b = 95, c = 88), stat_counts(~ x, list(x = c("a", "b", "c"))), mech_unary_encoding(p = 0.75, q = 0.25), n = 300)
  fit <- sample_posterior(bits, model_categorical(), chains = 2, iter = 2000, seed = 1)
  exact <- c(a = 0.46325, b = 0.29231, c = 0.24445)
  for (level in names(exact)) expect_same_mean(posterior::extract_variable_matrix(fit$draws, sprintf("prob[%s]", level)), exact[[level]])
})

test_that("a ratio of two noisy counts that are hidden", {
  skip_on_cran()
  ratio <- mech_custom(log_density = function(z, s) {
    e <- seq(-25, 25, by = 1)
    of <- function(r, yes, all) log(sum(abs(all + e) * exp(-abs(e) / 2 - abs(r * (all + e) - yes) / 2)))
    mapply(of, z[, 2], s[, 2], rowSums(s))
  })
  rel <- as_release(c(no = 0, yes = 0.3), answers, ratio, n = NULL, neighbours = "add_remove")
  fit <- sample_posterior(rel, model_bernoulli(), prior_n = prior_n("uniform", lower = 5, upper = 12), chains = 2, iter = 400, seed = 1)
  e <- seq(-40, 40, by = 0.05)
  tables <- subset(expand.grid(yes = 0:12, n = 5:12), yes <= n)
  weight <- mapply(function(yes, n) sum(abs(n + e) * exp(-abs(e) / 2) * exp(-abs(0.3 * (n + e) - yes) / 2)), tables$yes, tables$n) / (tables$n + 1)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "prob[yes]"), weighted.mean((tables$yes + 1) / (tables$n + 2), weight))
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "n"), weighted.mean(tables$n, weight))
})

test_that("the slope of a least squares regression, with noise", {
  skip_on_cran()
  slope <- mech_custom(log_density = function(z, s) {
    n <- 40
    within <- pmax(n * s[, "x^2"] - s[, "x"]^2, 1e-9)
    -abs(z[, "y:x"] - (n * s[, "y:x"] - s[, "x"] * s[, "y"]) / within) / 0.3
  })
  products <- stat_crossprod(y ~ x, list(y = c(-100, 100), x = c(-10, 10)), rescale = FALSE)
  rel <- as_release(c(y = 0, x = 0, "y^2" = 0, "y:x" = 1.4, "x^2" = 0), products, slope, n = 40)
  model <- model_lm(prior = prior_normal(0, 1), sigma = fixed(1), covariates = fixed(list(mean = 0, cov = matrix(1))))
  fit <- sample_posterior(rel, model, chains = 2, iter = 600, seed = 1)
  # given the sum of squares of x the estimate is normal
  squares <- qchisq((1:40 - 0.5) / 40, 39)
  estimate <- seq(-6, 8, by = 0.08)
  b <- seq(-4, 6, by = 0.08)
  likelihood <- vapply(b, function(b) sum(exp(-abs(1.4 - estimate) / 0.3) * colMeans(outer(squares, estimate, function(q, e) dnorm(e, b, 1 / sqrt(q))))), 0)
  expect_distribution(posterior::extract_variable_matrix(fit$draws, "x"), grid_quantile(b, likelihood * dnorm(b)), weighted.mean(b, likelihood * dnorm(b)))
})

test_that("a correlation, with noise", {
  skip_on_cran()
  correlation <- mech_custom(log_density = function(z, s) {
    n <- 30
    within <- function(of, of2) pmax(n * s[, of2] - s[, of]^2, 1e-9)
    r <- (n * s[, "y:x"] - s[, "x"] * s[, "y"]) / sqrt(within("x", "x^2") * within("y", "y^2"))
    -(z[, "y:x"] - r)^2 / (2 * 0.1^2)
  })
  products <- stat_crossprod(y ~ x, list(y = c(-100, 100), x = c(-100, 100)), rescale = FALSE)
  rel <- as_release(c(y = 0, x = 0, "y^2" = 0, "y:x" = 0.5, "x^2" = 0), products, correlation, n = 30)
  model <- model_mvnormal(prior = list(mean = fixed(c(0, 0)), cov = prior_niw(df = 5, scale = diag(2))))
  draws <- sample_posterior(rel, model, chains = 2, iter = 600, seed = 1)$draws
  cov <- function(a, b) posterior::extract_variable_matrix(draws, sprintf("cov[%s,%s]", a, b))
  # a factor of Wishart matrices gives r; its prior is (1 - rho^2)^((df - 3) / 2)
  set.seed(1)
  u <- sqrt(rchisq(20000, 29))
  v <- rchisq(20000, 28)
  z <- rnorm(20000)
  rho <- seq(-0.995, 0.995, by = 0.02)
  density <- vapply(rho, function(p) {
    a <- p / sqrt(1 - p^2) * u + z
    mean(dnorm(0.5, a / sqrt(a^2 + v), 0.1)) * (1 - p^2)
  }, 0)
  expect_distribution(cov("x", "y") / sqrt(cov("x", "x") * cov("y", "y")), grid_quantile(rho, density), weighted.mean(rho, density))
})

test_that("quantiles chosen from candidates, or from an interval", {
  skip_on_cran()
  rate <- seq(0.001, 0.4, by = 0.002)
  model <- model_exponential(prior = prior_gamma(2, 40))
  drawn <- function(release) posterior::extract_variable_matrix(sample_posterior(release, model, chains = 2, iter = 1000, seed = 1)$draws, "rate")
  # OpenDP: the scores are distances of the numbers of records below the candidates from the rank, the noise is Gumbel
  candidates <- c(10, 20, 30)
  below <- stat_cumulative(stat_histogram(~ x, breaks = c(-Inf, candidates, Inf)))
  chosen <- mech_custom(log_density = function(z, s) {
    score <- -abs(s - 0.5 * 5) / 2
    rowSums(z * score) - log(rowSums(exp(score)))
  })
  tables <- as.matrix(subset(expand.grid(0:5, 0:5, 0:5), Var1 + Var2 + Var3 <= 5))
  tables <- cbind(tables, 5 - rowSums(tables))
  weight <- exp(-abs(t(apply(tables, 1, cumsum))[, 1:3] - 2.5) / 2)
  of_table <- exp(-rowSums(lfactorial(tables))) * weight[, 2] / rowSums(weight)
  density <- vapply(rate, function(r) sum(of_table * exp(tables %*% log(diff(pexp(c(0, candidates, Inf), r))))), 0) * dgamma(rate, 2, 40)
  expect_distribution(drawn(as_release(c(0, 1, 0), below, chosen, n = 5)), grid_quantile(rate, density), weighted.mean(rate, density))
  # diffprivlib: intervals between neighbouring values have weights, and the number is uniform inside
  quantile <- stat_quantiles(~ x, c(0, 40), 0.5, steps = 4000)
  set.seed(1)
  values <- apply(matrix(rexp(3 * 20000), 3), 2, sort)
  of_rank <- exp(-abs(0:3 - 1.5) / 2)
  density <- vapply(rate, function(r) {
    ends <- rbind(0, pmin(values / r, 40), 40)
    mean(of_rank[colSums(ends < 17.3)] / colSums(of_rank * diff(ends)))
  }, 0) * dgamma(rate, 2, 40)
  expect_same_mean(drawn(as_release(17.3, quantile, mech_exponential(epsilon = 1), n = 3)), weighted.mean(rate, density))
})

test_that("noise redrawn until a number is not negative is listed only there", {
  redrawn <- mech_laplace(scale = 6) |> published(threshold = 0, listed = FALSE)
  draws <- counted(as_release(3.2, yes, redrawn, n = 60))
  k <- 0:60
  kept <- 1 - pexp(k, 1 / 6, lower.tail = FALSE) / 2 # P(k + noise >= 0)
  expect_same_mean(draws, weighted.mean(k, exp(-abs(3.2 - k) / 6) / kept))
})

test_that("the snapping mechanism rounds and cuts off", {
  snapped <- mech_laplace(scale = 3) |> published(round = 2^ceiling(log2(3)), lower = -40, upper = 40)
  draws <- counted(as_release(12, yes, snapped, n = 60))
  k <- 0:60
  below <- function(x) ifelse(x < 0, exp(x / 3) / 2, 1 - exp(-x / 3) / 2)
  expect_same_mean(draws, weighted.mean(k, below(14 - k) - below(10 - k)))
})

test_that("labels by randomised response beside public covariates", {
  x <- qnorm((1:40 - 0.5) / 40)
  y <- c(0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1)
  rel <- as_release(y, stat_records(~ y, levels = list(y = c("0", "1"))), mech_randomized_response(epsilon = 1.5), public = data.frame(x))
  fit <- sample_posterior(rel, model_logistic(y ~ x, prior_normal(0, 2)), iter = 2400, seed = 1)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "(Intercept)"), 0.4373)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "x"), 1.553)
  expect_equal(unname(apply(posterior::as_draws_matrix(fit$draws), 2, sd)), c(0.7340, 0.951), tolerance = 0.05)
})

test_that("sums of responses and of their products with a public covariate", {
  sums <- stat_sums(~ y + y:x, bounds = list(y = c(-50, 50), x = c(-1, 1)), rescale = FALSE, outside = "none")
  rel <- as_release(c(y = 12.5, "y:x" = 9.3), sums, mech_gaussian(sd = 3), public = data.frame(x = ((7 * 1:20) %% 20) / 10 - 1))
  fit <- sample_posterior(rel, model_lm(y ~ x, prior_normal(0, 2), sigma = fixed(1)), chains = 2, iter = 2000, seed = 1)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "(Intercept)"), 0.6799)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "x"), 1.3677)
  expect_equal(unname(apply(posterior::as_draws_matrix(fit$draws), 2, sd)), c(0.2689, 0.5705), tolerance = 0.05)
})

test_that("noisy counts by area beside their populations", {
  areas <- data.frame(people = c(30, 55, 20, 80, 41, 66, 25, 90, 38, 52, 47, 71, 33, 60, 29, 84, 44, 58, 36, 75), x = ((7 * 1:20) %% 20) / 10 - 1)
  deaths <- c(5, 14, 1, 26, 9, 12, 2, 32, 9, 10, 16, 13, 6, 19, 3, 20, 13, 9, 11, 14)
  rel <- as_release(deaths, stat_records(~ deaths, bounds = list(deaths = c(0, 500))), mech_discrete_laplace(scale = 2), public = areas)
  fit <- sample_posterior(rel, model_glm(deaths ~ x + offset(log(people)), poisson(), prior_normal(0, 2)), iter = 2400, seed = 1)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "(Intercept)"), -1.4598)
  expect_same_mean(posterior::extract_variable_matrix(fit$draws, "x"), 0.3903)
  expect_equal(unname(apply(posterior::as_draws_matrix(fit$draws), 2, sd)), c(0.0802, 0.1371), tolerance = 0.05)
})
