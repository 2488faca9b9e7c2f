# Evidence of tables, of unknown numbers of records, of exponential totals and of pooled rates, against enumeration and quadrature.

short_fit <- function(release, model, ...) suppressWarnings(sample_posterior(release, model, method = "collapse", chains = 2, iter = 200, seed = 1, ...))

# all tables of n records in k cells, a row each
all_tables <- function(n, k) {
  if (k == 1L) return(matrix(n))
  do.call(rbind, lapply(0:n, function(first) cbind(first, all_tables(n - first, k - 1L))))
}

log_dirichlet_multinomial <- function(tables, alpha) {
  n <- rowSums(tables)
  lgamma(n + 1) + lgamma(sum(alpha)) - lgamma(sum(alpha) + n) + rowSums(lgamma(t(t(tables) + alpha)) - lgamma(tables + 1)) - sum(lgamma(alpha))
}

log_total <- function(x) max(x) + log(sum(exp(x - max(x))))

three <- stat_counts(~ k, levels = list(k = c("u", "v", "w")))
two <- stat_counts(~ a:b, levels = list(a = c("u", "v"), b = c("s", "t")))

test_that("counts of one variable: enumeration", {
  model <- model_categorical(prior = prior_dirichlet(c(1, 2, 0.5)))
  tables <- all_tables(20, 3L)
  prior <- log_dirichlet_multinomial(tables, c(1, 2, 0.5))
  told <- log_evidence(short_fit(as_release(c(5.2, 9.7, 6.4), three, mech_laplace(scale = 2), n = 20), model))
  noise <- -rowSums(abs(t(c(5.2, 9.7, 6.4) - t(tables)))) / 2 - 3 * log(4)
  expect_equal(as.numeric(told), log_total(prior + noise), tolerance = 1e-8)
  expect_identical(attr(told, "error"), 0)
  # some of the counts, one of them twice
  some <- as_release(c("k=v" = 9.7), three, mech_gaussian(sd = 3), n = 20)
  expect_equal(as.numeric(log_evidence(short_fit(some, model))), log_total(prior + dnorm(9.7, tables[, 2], 3, log = TRUE)), tolerance = 1e-8)
  twice <- as_release(list(a = c("k=v" = 9.7), b = c(5, 8, 6)), list(a = stat_subset(three, "k=v"), b = three),
                      list(a = mech_gaussian(sd = 3), b = mech_discrete_laplace(scale = 1.5)), n = 20)
  noise <- dnorm(9.7, tables[, 2], 3, log = TRUE) + rowSums(-abs(t(c(5, 8, 6) - t(tables))) / 1.5) + 3 * log(tanh(1 / 3))
  expect_equal(as.numeric(log_evidence(short_fit(twice, model))), log_total(prior + noise), tolerance = 1e-8)
  # exact, and hidden
  known <- as_release(list(a = c("k=v" = 9), b = c("k=u" = NA)), list(a = stat_subset(three, "k=v"), b = stat_subset(three, "k=u")),
                      list(a = mech_exact(), b = published(mech_laplace(scale = 2), threshold = 4)), n = 20)
  below <- function(x) ifelse(x < 0, exp(x / 2) / 2, 1 - exp(-x / 2) / 2)
  expect_equal(as.numeric(log_evidence(short_fit(known, model))), log_total(prior + log(tables[, 2] == 9) + log(below(4 - tables[, 1]))), tolerance = 1e-8)
})

test_that("an unknown number of records: the sum over it too", {
  skip_on_cran()
  model <- model_categorical(prior = prior_dirichlet(2))
  release <- as_release(c(2.2, 4.7, 3.4), three, mech_laplace(scale = 0.7), n = NULL)
  for (records in list(prior_n("poisson", mean = 12), prior_n("log_uniform", upper = 500), prior_n("negative_binomial", mean = 10, size = 2), prior_n("uniform", lower = 3, upper = 60))) {
    mass <- switch(class(records)[1], prior_n_poisson = function(n) dpois(n, 12), prior_n_log_uniform = function(n) ifelse(n > 0, 1 / pmax(n, 1), 0) / sum(1 / 1:500),
                   prior_n_negative_binomial = function(n) dnbinom(n, mu = 10, size = 2), prior_n_uniform = function(n) (n >= 3 & n <= 60) / 58)
    tables <- do.call(rbind, lapply(0:40, all_tables, 3L))
    exact <- log_dirichlet_multinomial(tables, rep(2, 3)) + log(mass(rowSums(tables))) - rowSums(abs(t(c(2.2, 4.7, 3.4) - t(tables)))) / 0.7 - 3 * log(1.4)
    expect_equal(as.numeric(log_evidence(short_fit(release, model, prior_n = records))), log_total(exact), tolerance = 1e-6)
  }
  # the number and one count
  sized <- as_release(list(size = 11.3, k = c("k=u" = 2.2)), list(size = stat_size(), k = stat_subset(three, "k=u")),
                      list(size = mech_laplace(scale = 1), k = mech_gaussian(sd = 1)), n = NULL, neighbours = "add_remove")
  tables <- do.call(rbind, lapply(0:60, all_tables, 3L))
  exact <- log_dirichlet_multinomial(tables, rep(2, 3)) + dpois(rowSums(tables), 12, log = TRUE) - abs(11.3 - rowSums(tables)) - log(2) + dnorm(2.2, tables[, 1], 1, log = TRUE)
  expect_equal(as.numeric(log_evidence(short_fit(sized, model, prior_n = prior_n("poisson", mean = 12)))), log_total(exact), tolerance = 1e-6)
  alone <- as_release(c("k=u" = 2.2), three, mech_gaussian(sd = 1), n = NULL)
  expect_error(log_evidence(short_fit(alone, model, prior_n = prior_n("poisson", mean = 12))), class = "noiseaware_error_method")
})

test_that("tables whose numbers are sums of cells: tempering, within its error of enumeration", {
  skip_on_cran() # takes long; `make test` runs it
  tables <- all_tables(15, 4L) # (u, s), (u, t), (v, s), (v, t)
  prior <- log_dirichlet_multinomial(tables, rep(1, 4))
  crossed <- short_fit(as_release(c(3.1, 6.2, 1.7, 3.4), two, mech_laplace(scale = 1.5), n = 15), flat_table())
  noise <- -rowSums(abs(t(c(3.1, 6.2, 1.7, 3.4) - t(tables)))) / 1.5 - 4 * log(3)
  expect_equal(as.numeric(log_evidence(crossed)), log_total(prior + noise), tolerance = 1e-8)
  margins <- as_release(c(8.1, 6.2, 4.7, 10.4), stat_counts(~ a + b, levels = two$levels), mech_gaussian(sd = 1.2), n = 15)
  sums <- cbind(tables[, 1] + tables[, 2], tables[, 3] + tables[, 4], tables[, 1] + tables[, 3], tables[, 2] + tables[, 4])
  noise <- rowSums(dnorm(t(c(8.1, 6.2, 4.7, 10.4) - t(sums)), 0, 1.2, log = TRUE))
  told <- log_evidence(short_fit(margins, flat_table()), seed = 1)
  expect_lt(abs(as.numeric(told) - log_total(prior + noise)), 5 * attr(told, "error"))
  expect_lt(attr(told, "error"), 0.02)
  # independent a and b: two Dirichlet distributions, weight 2 of a level
  told <- log_evidence(short_fit(margins, model_table(~ a + b, prior = prior_dirichlet(2))), seed = 1)
  a <- log_dirichlet_multinomial(cbind(0:15, 15:0), c(2, 2)) + dnorm(8.1, 0:15, 1.2, log = TRUE) + dnorm(6.2, 15:0, 1.2, log = TRUE)
  b <- log_dirichlet_multinomial(cbind(0:15, 15:0), c(2, 2)) + dnorm(4.7, 0:15, 1.2, log = TRUE) + dnorm(10.4, 15:0, 1.2, log = TRUE)
  expect_lt(abs(as.numeric(told) - log_total(a) - log_total(b)), 5 * attr(told, "error"))
  # a class and a feature
  bayes <- log_evidence(short_fit(as_release(c(3.1, 6.2, 1.7, 3.4), two, mech_laplace(scale = 1.5), n = 15), model_naive_bayes("a")), seed = 1)
  of_rows <- log_dirichlet_multinomial(cbind(rowSums(tables[, 1:2]), rowSums(tables[, 3:4])), c(1, 1)) +
    log_dirichlet_multinomial(tables[, 1:2], c(1, 1)) + log_dirichlet_multinomial(tables[, 3:4], c(1, 1))
  noise <- -rowSums(abs(t(c(3.1, 6.2, 1.7, 3.4) - t(tables)))) / 1.5 - 4 * log(3)
  expect_lt(abs(as.numeric(bayes) - log_total(of_rows + noise)), 5 * attr(bayes, "error"))
})

test_that("an exponential total, and totals with a number of records: quadrature and sums", {
  sums <- stat_sums(~ x, bounds = list(x = c(0, 200)))
  fit <- short_fit(as_release(31.4, sums, mech_laplace(scale = 6), n = 8), model_exponential(prior = prior_gamma(2, 4)))
  of_total <- function(s) vapply(s, function(s) integrate(function(r) dgamma(s, 8, r) * dgamma(r, 2, 4), 0, Inf, rel.tol = 1e-9)$value, 0) * dexp(abs(31.4 - s), 1 / 6) / 2
  exact <- integrate(of_total, 0, 31.4, rel.tol = 1e-8)$value + integrate(of_total, 31.4, 400, rel.tol = 1e-8)$value
  expect_equal(as.numeric(log_evidence(fit)), log(exact), tolerance = 1e-5)
  expect_identical(attr(log_evidence(fit), "error"), 0)
  sized <- function(model) {
    short_fit(as_release(list(size = 9.2, x = c(x = 31.4)), list(size = stat_size(), x = sums), list(size = mech_laplace(scale = 1), x = mech_laplace(scale = 6)), n = NULL, neighbours = "add_remove"),
              model, prior_n = prior_n("poisson", mean = 10))
  }
  n <- 1:60
  by_size <- vapply(n, function(n) {
    of_total <- function(s) exp(lgamma(n + 2) - lgamma(n) - lgamma(2) + 2 * log(4) + (n - 1) * log(s) - (n + 2) * log(4 + s)) * dexp(abs(31.4 - s), 1 / 6) / 2
    integrate(of_total, 0, 31.4, rel.tol = 1e-8)$value + integrate(of_total, 31.4, 600, rel.tol = 1e-8)$value
  }, 0)
  none <- dpois(0, 10) * dexp(9.2) / 2 * dexp(31.4, 1 / 6) / 2
  exact <- sum(dpois(n, 10) * dexp(abs(9.2 - n)) / 2 * by_size) + none
  expect_equal(as.numeric(log_evidence(sized(model_exponential(prior = prior_gamma(2, 4))))), log(exact), tolerance = 1e-5)
  s <- 0:400
  poisson <- vapply(n, function(n) sum(dnbinom(s, 2, 0.4 / (0.4 + n)) * dexp(abs(31.4 - s), 1 / 6) / 2), 0)
  expect_equal(as.numeric(log_evidence(sized(model_poisson(prior = prior_gamma(2, 0.4))))), log(sum(dpois(n, 10) * dexp(abs(9.2 - n)) / 2 * poisson) + none), tolerance = 1e-6)
})

test_that("pooled rates: one for all, rates that differ, and separate ones", {
  skip_on_cran() # takes long; `make test` runs it
  sites <- two_yes()
  given <- list(function(p) sum_of_totals(p, 30, function(s) -(abs(7.3 - s) + abs(21.2 - 30 + s)) / 2 - 2 * log(4)),
                function(p) sum_of_totals(p, 20, function(s) -(11 - s)^2 / 18 - log(sum(exp(-(-200:200)^2 / 18)))))
  pooled <- function(pool, chains = 2, iter = 300) {
    suppressWarnings(sample_posterior(sites, model_bernoulli(prior = prior_beta(2, 3)), pool = pool, chains = chains, iter = iter, seed = 1))
  }
  exact <- log(integrate(function(p) given[[1]](p) * given[[2]](p) * dbeta(p, 2, 3), 0, 1, rel.tol = 1e-9)$value)
  complete <- pooled("complete")
  expect_equal(as.numeric(log_evidence(complete)), exact, tolerance = 1e-7)
  expect_identical(attr(log_evidence(complete), "error"), 0)
  apart <- sum(vapply(given, function(of) log(integrate(function(p) of(p) * dbeta(p, 2, 3), 0, 1, rel.tol = 1e-9)$value), 0))
  none <- pooled("none")
  expect_equal(as.numeric(log_evidence(none)), apart, tolerance = 1e-7)
  expect_equal(attr(bayes_factor(none, complete), "log"), as.numeric(test_hypothesis(sites, model = model_bernoulli(prior = prior_beta(2, 3))) |> attr("log")), tolerance = 1e-6)
  # the mean's logit, the sd and each site's deviation on a grid
  partial <- pooled(partial_pooling(sd = prior_half_normal(0.7)), 4, 1000)
  z <- seq(-6, 6, by = 0.1)
  u <- seq(-5, 4, by = 0.1)
  sd <- seq(0.02, 4, by = 0.04)
  of_site <- lapply(given, function(of) splinefun(seq(-40, 40, by = 0.05), of(plogis(seq(-40, 40, by = 0.05)))))
  inner <- vapply(sd, function(sd) {
    both <- Reduce(`*`, lapply(of_site, function(of) drop(matrix(of(pmax(pmin(outer(u, sd * z, "+"), 40), -40)), length(u)) %*% dnorm(z)) * 0.1))
    sum(both * dbeta(plogis(u), 2, 3) * dlogis(u)) * 0.1
  }, 0)
  exact <- log(sum(inner * 2 * dnorm(sd, 0, 0.7)) * 0.04)
  told <- log_evidence(partial, seed = 2)
  expect_lt(abs(as.numeric(told) - exact), max(5 * attr(told, "error"), 0.01))
  expect_lt(attr(told, "error"), 0.02)
  expect_error(bayes_factor(complete, suppressWarnings(sample_posterior(rev(sites), model_bernoulli(), pool = "complete", chains = 1, iter = 60, seed = 1))),
               class = "noiseaware_error_argument")
  walk <- pooled("walk", 1, 60)
  expect_error(log_evidence(walk), class = "noiseaware_error_method")
})

test_that("pooled rates of exponential records", {
  skip_on_cran() # takes long; `make test` runs it
  totals <- stat_sums(~ x, list(x = c(0, 40)))
  site <- function(value, n) as_release(c(x = value), totals, mech_laplace(scale = 3), n = n)
  sites <- list(a = site(28, 12), b = site(19, 15))
  model <- model_exponential(prior = prior_gamma(2, 4))
  pooled <- function(pool) suppressWarnings(sample_posterior(sites, model, pool = pool, chains = 4, iter = 1000, seed = 1))
  # the likelihood of each site by quadrature over its total
  of_site <- function(value, n) {
    function(rate) vapply(rate, function(r) integrate(function(s) dgamma(s, n, r) * exp(-abs(value - s) / 3) / 6, 0, 300, rel.tol = 1e-9)$value, 0)
  }
  given <- list(of_site(28, 12), of_site(19, 15))
  exact <- log(integrate(function(r) given[[1]](r) * given[[2]](r) * dgamma(r, 2, 4), 0.02, 6, rel.tol = 1e-7)$value)
  expect_equal(as.numeric(log_evidence(pooled("complete"))), exact, tolerance = 1e-4)
  # the mean's logarithm, the sd and each site's deviation on a grid
  z <- seq(-6, 6, by = 0.1)
  u <- seq(-5, 3, by = 0.1)
  sd <- seq(0.02, 4, by = 0.04)
  wide <- seq(-30, 6, by = 0.05)
  logs <- lapply(given, function(of) splinefun(wide, of(exp(wide))))
  inner <- vapply(sd, function(sd) {
    both <- Reduce(`*`, lapply(logs, function(of) drop(matrix(of(pmax(pmin(outer(u, sd * z, "+"), 6), -30)), length(u)) %*% dnorm(z)) * 0.1))
    sum(both * dgamma(exp(u), 2, 4) * exp(u)) * 0.1
  }, 0)
  exact <- log(sum(inner * 2 * dnorm(sd, 0, 0.7)) * 0.04)
  told <- log_evidence(pooled(partial_pooling(sd = prior_half_normal(0.7))), seed = 2)
  expect_lt(abs(as.numeric(told) - exact), max(5 * attr(told, "error"), 0.01))
  expect_lt(attr(told, "error"), 0.05)
})

test_that("the likelihood of a rate's draws is that of the release", {
  counts <- as_release(c("x=yes" = 21.2), stat_subset(stat_counts(~ x, list(x = c("no", "yes"))), "x=yes"), mech_laplace(scale = 2), n = 30)
  fit <- sample_posterior(counts, model_bernoulli(), chains = 2, iter = 1400, warmup = 400, seed = 1)
  told <- internal("release_log_lik")(fit)
  p <- as.vector(fit$draws)
  s <- 0:30
  exact <- vapply(p, function(p) log(sum(dbinom(s, 30, p) * exp(-abs(21.2 - s) / 2))), 0)
  expect_equal(told - mean(told), exact - mean(exact), tolerance = 1e-6)
})

test_that("totals and sizes that the noise keeps away from 0 are whole numbers", {
  parts <- list(total = stat_sums(~ x, list(x = c(0, 30))), size = stat_size())
  release <- as_release(c("total: x" = 131.3, "size: n" = 52.2), parts, list(total = mech_laplace(scale = 0.4), size = mech_gaussian(sd = 0.3)), n = NULL, neighbours = "add_remove")
  fit <- sample_posterior(release, model_poisson(prior = prior_gamma(2, 0.8)), prior_n = prior_n("poisson", mean = 50), chains = 1, iter = 60, seed = 1)
  n <- 40:65
  total <- 80:180
  each <- vapply(n, function(n) sum(dnbinom(total, 2, 0.8 / (0.8 + n)) * exp(-abs(131.3 - total) / 0.4) / 0.8), 0)
  expect_equal(as.numeric(log_evidence(fit)), log(sum(dpois(n, 50) * dnorm(52.2, n, 0.3) * each)), tolerance = 1e-6)
})

test_that("the likelihood of a site holds where sites may differ without end", {
  totals <- stat_sums(~ x, list(x = c(0, 500)))
  sites <- Map(function(value, n) as_release(c(x = value), totals, mech_laplace(scale = 2), n = n), c(a = 61, b = 22, c = 140), c(30, 20, 40))
  fit <- suppressWarnings(sample_posterior(sites, model_poisson(prior = prior_gamma(2, 1)), pool = "partial", chains = 1, iter = 100, seed = 1))
  fields <- fit$problem$sites$a$fields
  about <- internal("about_site")(fit$bound, internal("spread_of_rates")(fit$problem), 1L)
  u <- seq(0, 1.4, by = 0.05)
  by_spline <- internal("rate_log_likelihood")(fields, "poisson", u, rep(50, length(u)), about)
  exact <- internal("rate_likelihood")(fields, "poisson")
  expect_equal(by_spline(u), exact(u), tolerance = 1e-6)
  # far away, where it falls without end or stays at what the noise leaves
  far <- c(-290, -100, -20, 20, 100, 290)
  expect_lt(max(abs(by_spline(far) - pmax(exact(far), max(exact(u)) - 1000))), 5)
})
