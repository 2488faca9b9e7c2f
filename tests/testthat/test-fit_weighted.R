# Design-weighted estimates: algebra of each draw, then the survey package's estimates and standard errors where there is little noise.

bounds <- list(api00 = c(200, 1000), ell = c(0, 100), pw = c(10, 50))
sampled <- withr::with_seed(1, {
  big <- rep(c(TRUE, FALSE), c(60, 90))
  data.frame(api00 = round(pmin(pmax(rnorm(150, ifelse(big, 550, 680), 90), 200), 1000)), ell = round(runif(150, 0, ifelse(big, 90, 50))),
             pw = ifelse(big, 20, 40) + round(runif(150, -5, 5)), size = ifelse(big, "big", "small"))
})
line <- stat_crossprod(api00 ~ ell, bounds, weights = ~ pw)
sampled_fit <- function(release, ..., chains = 2, iter = 1000) {
  suppressMessages(suppressWarnings(sample_posterior(release, model_mvnormal(), chains = chains, iter = iter, seed = 1, ...)))
}
set.seed(2)
noisy <- simulate_release(sampled, line, mech_laplace(epsilon = 200))
fit <- sampled_fit(noisy, iter = 200)
rows <- function(fit) internal("parameter_matrix")(fit)

# weighted cross-product of (1, api00, ell), per record, from means of the weighted products: variables are measured from the middles of their bounds
moments_of <- function(mean) {
  m <- matrix(NA, 3, 3)
  m[1, ] <- m[, 1] <- mean[c("pw", "pw*api00", "pw*ell")]
  m[2, 3] <- m[3, 2] <- mean[["pw*api00*ell"]]
  m[3, 3] <- mean[["pw*ell^2"]]
  m[2, 2] <- 0
  to <- rbind(c(1, 0, 0), c(600, 400, 0), c(50, 0, 50))
  to %*% m %*% t(to)
}

test_that("each draw solves the weighted equations", {
  read <- suppressWarnings(regress(fit, api00 ~ ell))
  expect_identical(posterior::variables(read$draws), c("(Intercept)", "ell", "total[pw]", "total[api00]", "total[ell]"))
  skip_if(posterior::ndraws(read$draws) < posterior::ndraws(fit$draws))
  other <- suppressWarnings(regress(fit, ell ~ 1))
  for (k in c(1, 77, 200)) {
    mean <- rows(fit)[k, ]
    names(mean) <- sub("^mean\\[(.*)\\]$", "\\1", names(mean))
    m <- 150 * moments_of(mean)
    expect_equal(unname(rows(read)[k, ]), c(solve(m[c(1, 3), c(1, 3)], m[c(1, 3), 2]), m[1, ]))
    expect_equal(unname(rows(other)[k, ]), c(m[1, 3] / m[1, 1], m[1, c(1, 3)]))
  }
})

test_that("estimates and standard errors are the survey package's where there is little noise", {
  skip_if_not_installed("survey")
  skip_on_cran()
  design <- survey::svydesign(~ 1, weights = ~ pw, data = sampled)
  near <- function(draws, estimate, error, tolerance = 0.09) {
    expect_lt(abs(mean(draws) - estimate), 0.15 * error)
    expect_equal(stats::sd(draws), error, tolerance = tolerance, ignore_attr = TRUE)
  }
  set.seed(3)
  mean <- stat_crossprod(api00 ~ 1, bounds[c("api00", "pw")], weights = ~ pw)
  draws <- rows(regress(sampled_fit(simulate_release(sampled, mean, mech_laplace(epsilon = 1e4)), iter = 1800), api00 ~ 1))
  known <- survey::svymean(~ api00, design)
  near(draws[, "(Intercept)"], coef(known), survey::SE(known))
  known <- survey::svytotal(~ api00, design)
  near(draws[, "total[api00]"], coef(known), survey::SE(known))
  draws <- rows(suppressWarnings(regress(sampled_fit(simulate_release(sampled, line, mech_laplace(epsilon = 1e4)), iter = 1800), api00 ~ ell)))
  known <- summary(survey::svyglm(api00 ~ ell, design))$coefficients
  for (name in rownames(known)) near(draws[, name], known[name, 1L], known[name, 2L], 0.15)
})

test_that("strata are fitted separately, and their totals add up", {
  skip_on_cran()
  strata <- list(size = c("big", "small"))
  mean <- stat_by(stat_crossprod(api00 ~ 1, bounds[c("api00", "pw")], weights = ~ pw), strata)
  set.seed(4)
  release <- simulate_release(sampled, list(n = stat_counts(~ size, strata), t = mean), list(n = mech_exact(), t = mech_laplace(epsilon = 1e4)))
  both <- sampled_fit(release, iter = 1800)
  expect_identical(both$pool, "none")
  read <- regress(both, api00 ~ 1)
  expect_output(print(read), "design-weighted mean of api00, weights pw, strata size.*with-replacement linearisation; normal working model of the weighted products")
  expect_false(any(grepl("(exact)", capture.output(print(read)), fixed = TRUE)))
  separate <- rows(both)
  total <- 60 * separate[, "mean[pw,big]"] + 90 * separate[, "mean[pw,small]"]
  expect_equal(unname(rows(read)[, "total[pw]"]), unname(total))
  expect_equal(unname(rows(read)[, "(Intercept)"] - 600), unname(400 * (60 * separate[, "mean[pw*api00,big]"] + 90 * separate[, "mean[pw*api00,small]"]) / total))
  expect_error(sample_posterior(release, model_mvnormal(), pool = "complete"), class = "noiseaware_error_pool")
  # sizes with noise: n is the sum of theirs
  unsized <- simulate_release(sampled, list(n = stat_counts(~ size, strata), t = mean), list(n = mech_laplace(epsilon = 1), t = mech_laplace(epsilon = 100)),
                              neighbours = "add_remove")
  unknown <- sampled_fit(unsized, iter = 400)
  expect_equal(unname(rows(regress(unknown, api00 ~ 1))[, "n"]), unname(rows(unknown)[, "n[big]"] + rows(unknown)[, "n[small]"]))
  skip_if_not_installed("survey")
  known <- survey::svymean(~ api00, survey::svydesign(~ 1, strata = ~ size, weights = ~ pw, data = sampled))
  expect_lt(abs(mean(rows(read)[, 1L]) - coef(known)), 0.15 * survey::SE(known))
  expect_equal(stats::sd(rows(read)[, 1L]), survey::SE(known), tolerance = 0.09, ignore_attr = TRUE)
})

test_that("draws that no records could have are left out, chain by chain", {
  few <- function(values) internal("possible_draws")(fit, values, NULL)
  values <- cbind(a = as.double(1:200))
  values[c(1, 3, 150), ] <- NA
  kept <- few(values)
  expect_identical(dim(kept$draws), c(98L, 2L, 1L))
  expect_false(anyNA(kept$draws))
  expect_true(all(kept$draws[, 1L, ] <= 100) && all(kept$draws[, 2L, ] > 100))
  expect_match(kept$why, "1.5% of the draws were left out")
  values[2:80, ] <- NA
  expect_error(few(values), class = "noiseaware_error_value")
  # a slope that takes fitted values farther from the middle than responses are is no draw of records
  steep <- fit
  steep$draws[1L, 1L, "mean[pw*api00*ell]"] <- 1e4
  expect_identical(posterior::niterations(suppressWarnings(regress(steep, api00 ~ ell))$draws),
                   posterior::niterations(suppressWarnings(regress(fit, api00 ~ ell))$draws) - 1L)
})

test_that("the result is a fit, and says what it cannot do", {
  read <- suppressWarnings(regress(fit, api00 ~ ell))
  suppressWarnings({
    expect_named(coef(read), c("(Intercept)", "ell"))
    expect_identical(dim(vcov(read)), c(2L, 2L))
    expect_identical(dim(confint(read, variables = "all")), c(5L, 2L))
    at <- predict(read, data.frame(ell = 10))
  })
  expect_equal(unname(at), mean(rows(read)[, 1L] + 10 * rows(read)[, 2L]))
  expect_identical(nobs(read), 150)
  expect_output(print(read), "design-weighted linear regression api00 ~ ell, weights pw")
  expect_error(suppressWarnings(predict(read, data.frame(ell = 10), interval = "predictive")), class = "noiseaware_error_method")
  expect_error(sigma(read), class = "noiseaware_error_method")
  expect_error(simulate(read, 1), class = "noiseaware_error_method")
  expect_error(noise_cost(read, databases = 2), class = "noiseaware_error_method")
  expect_error(rstantools::prior_summary(read), class = "noiseaware_error_argument")
  expect_error(regress(read, api00 ~ 1), class = "noiseaware_error_argument")
  expect_error(extend(read, 10), class = "noiseaware_error_argument")
})

test_that("what a release of weighted products does not say is refused", {
  expect_error(regress(fit, ell ~ api00), "square", class = "noiseaware_error_variables")
  expect_error(regress(fit, api00 ~ meals), "meals", class = "noiseaware_error_variables")
  expect_error(regress(fit, api00 ~ ell + I(ell^2)), class = "noiseaware_error_formula")
  expect_error(sample_posterior(noisy, model_lm(api00 ~ ell)), class = "noiseaware_error_variables")
  expect_error(sample_posterior(noisy, model_glm(api00 ~ ell)), "generalised linear model", class = "noiseaware_error_variables")
  expect_error(sample_posterior(noisy, model_mvnormal(c("pw", "pw*ell"))), class = "noiseaware_error_variables")
  # without squares there is no design uncertainty
  sums <- stat_subset(line, line$components[1:5])
  totals <- simulate_release(sampled, sums, mech_laplace(epsilon = 100))
  expect_error(regress(sampled_fit(totals, iter = 100), api00 ~ ell), "design uncertainty", class = "noiseaware_error_variables")
  known <- sample_posterior(noisy, model_mvnormal(prior = list(mean = fixed(rep(0, 5)), cov = prior_niw())), chains = 1, iter = 20, seed = 1) |>
    suppressWarnings() |> suppressMessages()
  expect_error(regress(known, api00 ~ ell), "fixed", class = "noiseaware_error_argument")
})
