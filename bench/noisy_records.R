# Noise on every record: Evans & King's data (a simulated twin), intervals beside their estimator's, default calls on data
# that nobody prepared, time free of the number of records; products and answers, whose records are imputed.
#
#   Rscript bench/noisy_records.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# A twin of dp_data in Evans & King's PrivacyUnbiased, whose file is not needed: coefficients 10, 12, -3, 9, noise with sd 0, 0.7, 1.2, 1.0.
# Variances of 3 and means of 1.3 give about the coefficients that ordinary least squares has on the noisy records of theirs (13.898, 10.366,
# -2.103, 6.745).
twin_sd <- c(z = 0.7, w = 1.2, v = 1)
twin_truth <- c("(Intercept)" = 10, z = 12, w = -3, v = 9)

twin <- function(n, sigma = 3) {
  x <- matrix(stats::rnorm(3 * n, 1.3, sqrt(3)), n, dimnames = list(NULL, names(twin_sd)))
  y <- drop(cbind(1, x) %*% twin_truth) + stats::rnorm(n, sd = sigma)
  data.frame(y = y, x + matrix(stats::rnorm(3 * n), n) %*% diag(twin_sd))
}

noisy_fit <- function(data, formula, sd, levels = NULL, ...) {
  release <- as_release(data, stat_records(formula, levels = levels), mech_record_noise(sd = sd))
  suppressWarnings(suppressMessages(sample_posterior(release, model_lm(), seed = 1, ...)))
}

# Their estimator: the noise's variance taken off the products of the covariates; its covariance by the sandwich of its estimating function
# (Fuller 1987, section 2.2), which stands for their simulations.
corrected <- function(data, formula, sd) {
  x <- stats::model.matrix(formula, data)
  y <- data[[all.vars(formula)[1L]]]
  noise <- diag(c(0, sd^2))
  n <- nrow(x)
  bread <- solve(crossprod(x) - n * noise)
  estimate <- drop(bread %*% crossprod(x, y))
  score <- x * drop(y - x %*% estimate) + rep(noise %*% estimate, each = n)
  list(estimate = estimate, sd = sqrt(diag(bread %*% crossprod(score) %*% bread)))
}

twin_row <- function(n) {
  set.seed(1)
  data <- twin(n)
  time <- seconds(fit <- noisy_fit(data, y ~ z + w + v, twin_sd))
  draws <- posterior::as_draws_array(fit)
  theirs <- corrected(data, y ~ z + w + v, twin_sd)
  list(time = time, ess = min_ess(draws), away = max(abs(coef(fit) - twin_truth) / sqrt(diag(vcov(fit)))),
       table = data.frame(coefficient = names(twin_truth), truth = twin_truth, `least squares` = stats::coef(stats::lm(y ~ z + w + v, data)),
                          corrected = theirs$estimate, `its sd` = theirs$sd, `posterior mean` = coef(fit), sd = sqrt(diag(vcov(fit))), check.names = FALSE))
}

# one twin's largest of four distances is above 2 sd now and then
within_two_sd <- function(twins, n) {
  mean(vapply(seq_len(twins), function(k) {
    set.seed(k)
    fit <- noisy_fit(twin(n), y ~ z + w + v, twin_sd, chains = 2, iter = 1000)
    mean(abs(coef(fit) - twin_truth) < 2 * sqrt(diag(vcov(fit))))
  }, 0))
}

coverage_of <- function(replicates, n) {
  seen <- lapply(seq_len(replicates), function(k) {
    set.seed(k)
    data <- twin(n)
    theirs <- corrected(data, y ~ z + w + v, twin_sd)
    ours <- confint(noisy_fit(data, y ~ z + w + v, twin_sd, chains = 2, iter = 2000), names(twin_truth))
    rbind(data.frame(method = "corrected", coefficient = names(twin_truth), within = abs(theirs$estimate - twin_truth) < 1.96 * theirs$sd, width = 2 * 1.96 * theirs$sd),
          data.frame(method = "posterior", coefficient = names(twin_truth), within = ours[, 1L] < twin_truth & twin_truth < ours[, 2L], width = ours[, 2L] - ours[, 1L]))
  })
  all <- do.call(rbind, seen)
  out <- stats::aggregate(cbind(within, width) ~ coefficient + method, all, mean)
  names(out)[3:4] <- c("coverage of 95% intervals", "mean width")
  out
}

# as they come; every covariate that is a number gets noise that leaves the share `reliability` of its variance
real_data <- list(
  birthwt = list(data = transform(MASS::birthwt, race = factor(race), smoke = factor(smoke)), formula = bwt ~ age + lwt + smoke + race),
  boston = list(data = MASS::Boston, formula = medv ~ crim + rm + age + dis + tax + lstat),
  mtcars = list(data = transform(mtcars, cyl = factor(cyl)), formula = mpg ~ wt + hp + cyl),
  swiss = list(data = swiss, formula = Fertility ~ Agriculture + Education + Infant.Mortality),
  diamonds = list(data = as.data.frame(ggplot2::diamonds), formula = price ~ carat + depth + table + cut)
)

real_row <- function(name, reliability) {
  case <- real_data[[name]]
  data <- case$data[all.vars(case$formula)]
  factors <- names(Filter(is.factor, data))
  for (v in factors) data[[v]] <- factor(as.character(data[[v]]), levels(data[[v]]))
  exact <- stats::coef(stats::lm(case$formula, data))
  numbers <- setdiff(names(data)[-1L], factors)
  sd <- vapply(data[numbers], stats::sd, 0) * sqrt(1 / reliability - 1)
  set.seed(1)
  for (v in numbers) data[[v]] <- data[[v]] + stats::rnorm(nrow(data), sd = sd[[v]])
  say("%s, reliability %g", name, reliability)
  time <- seconds(fit <- noisy_fit(data, case$formula, sd, lapply(data[factors], levels)))
  draws <- posterior::as_draws_array(fit)
  rhat <- max(vapply(posterior::variables(draws), function(v) posterior::rhat(posterior::extract_variable_matrix(draws, v)), 0))
  naive <- stats::coef(stats::lm(case$formula, data))
  z <- function(estimate, of) max(abs(estimate[of] - exact[of]) / sqrt(diag(vcov(fit)))[of])
  data.frame(data = name, n = nrow(data), coefficients = length(exact), reliability = reliability, seconds = time, ess = min_ess(draws), rhat = rhat,
             `posterior mean away, sd` = z(coef(fit), numbers), `least squares on noisy records away, sd` = z(naive, numbers), check.names = FALSE)
}

# Products of two noisy numbers; and a factor of three levels by randomised response, a third of whose answers are not true.
imputed_row <- function(name, formula, n) {
  set.seed(1)
  x <- stats::rnorm(n, 0.5)
  z <- 0.5 * x + stats::rnorm(n)
  code <- sample.int(3L, n, TRUE)
  levels <- c("a", "b", "c")
  y <- 1 + x - z + c(0, 1, -1)[code] + (if (name == "products") 0.5 * x^2 + 0.7 * x * z else 0) + stats::rnorm(n)
  odds <- log(4)
  answer <- ifelse(stats::runif(n) < 2 / 3, code, (code - 1 + sample.int(2L, n, TRUE)) %% 3 + 1)
  seen <- data.frame(y = y, x = x + stats::rnorm(n, sd = 0.5), z = z + stats::rnorm(n, sd = 0.5), g = factor(levels[if (name == "products") code else answer], levels))
  answers <- if (name != "products") mech_randomized_response(epsilon = odds)
  release <- as_release(seen, stat_records(formula, levels = list(g = levels)), mech_record_noise(sd = c(x = 0.5, z = 0.5), answers = answers))
  time <- seconds(fit <- suppressWarnings(suppressMessages(sample_posterior(release, model_lm(), chains = 2, iter = 1000, seed = 1))))
  draws <- posterior::as_draws_array(fit)
  rhat <- max(vapply(posterior::variables(draws), function(v) posterior::rhat(posterior::extract_variable_matrix(draws, v)), 0))
  truth <- c("(Intercept)" = 1, x = 1, z = -1, gb = 1, gc = -1)
  data.frame(problem = name, n = n, seconds = time, ess = min_ess(draws), rhat = rhat, `away, sd` = max(abs(coef(fit)[names(truth)] - truth) / sqrt(diag(vcov(fit)))[names(truth)]),
             check.names = FALSE)
}

imputed_rows <- function(n) {
  rbind(imputed_row("products", y ~ x * z + I(x^2) + g, n), imputed_row("answers", y ~ x + z + g, n))
}

bench_noisy_records <- function(quick = FALSE) {
  one <- twin_row(1e5)
  large <- twin_row(if (quick) 1e5 else 1e6)
  say("coverage")
  covered <- coverage_of(if (quick) 10 else 500, 1000)
  cases <- expand.grid(name = names(real_data), reliability = c(0.8, 0.5), stringsAsFactors = FALSE)
  real <- do.call(rbind, Map(real_row, cases$name, cases$reliability))
  imputed <- imputed_rows(if (quick) 1e4 else 1e5)
  ours <- covered[covered$method == "posterior", 3L]
  bench_result(
    list(figure("seconds to 4,000 effective draws", "twin of dp_data, n = 100,000, a pass over the records counted", one$time * max(1, 4000 / one$ess), 2, at_most = TRUE),
         figure("the same", if (quick) "n = 100,000 again" else "n = 1,000,000", large$time * max(1, 4000 / large$ess)),
         figure("posterior mean away from the truth, posterior sd", "n = 100,000, the largest of one twin", one$away, 2, at_most = TRUE),
         figure("share of coefficients within 2 posterior sd of the truth", "100 twins, n = 100,000", within_two_sd(if (quick) 5 else 100, 1e5), 0.92),
         figure("coverage of 95% intervals, least", "500 replicates, n = 1,000", min(ours), 0.93),
         figure("coverage of 95% intervals, most", "500 replicates, n = 1,000", max(ours), 0.97, at_most = TRUE),
         figure("seconds to 1,000 effective draws", sprintf("%s imputed, n = %s", imputed$problem[1L], format(imputed$n[1L], big.mark = ",", scientific = FALSE)), imputed$seconds[1L] * 1000 / imputed$ess[1L]),
         figure("the same", paste(imputed$problem[2L], "imputed"), imputed$seconds[2L] * 1000 / imputed$ess[2L]),
         figure("default calls with R-hat at most 1.01", sprintf("of %d on real data", nrow(real)), sum(real$rhat <= 1.01))),
    list("n = 100,000" = one$table, "Coverage and width, n = 1,000" = covered, "Records imputed, 2 chains x 1,000" = imputed, "Default calls on real data, noise added to every number among the covariates" = real),
    c("Default calls: 4 chains x 2,000, warmup and set-up counted; ESS is the bulk one, the least of all parameters.",
      "Away: from least squares on the records without noise, in posterior standard deviations, the largest of the noisy covariates' coefficients."))
}

run_alone(bench_noisy_records)
