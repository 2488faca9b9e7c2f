# stan_program(): does Stan sample the posterior that this package samples? Models with priors of every kind, releases
# with either noise, bounds so wide that no record is outside. Against method "augment", which shares nothing with the
# program, and "collapse", whose totals it has: means and standard deviations of all parameters in Monte Carlo errors of their
# difference, and effective draws a second.
#
#   Rscript bench/stan_program.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# Debian's rstan has these headers elsewhere
if (!file.exists(rstan::rstan_options("boost_lib"))) rstan::rstan_options(boost_lib = "/usr/include")

stan_records <- function(n) {
  set.seed(1)
  x <- data.frame(a = stats::rnorm(n, 5, 3), b = stats::rnorm(n, -2, 2))
  x$y <- 3 + x$a - 2 * x$b + stats::rnorm(n, 0, 4)
  x
}

stan_cases <- function() {
  bounds <- list(y = c(-50, 70), a = c(-25, 35), b = c(-25, 20))
  regression <- stat_crossprod(y ~ a + b, bounds)
  squares <- stat_sums(~ a + I(a^2), bounds["a"], rescale = FALSE)
  both <- stat_sums(~ a + b + I(a^2) + a:b + I(b^2), bounds[c("a", "b")], rescale = FALSE)
  cov <- matrix(c(9, 0, 0, 4), 2)
  list(
    list(case = "regression, conjugate priors", statistic = regression, mechanism = mech_laplace(epsilon = 10), model = model_lm()),
    list(case = "regression, t and half t priors", statistic = regression, mechanism = mech_gaussian(rho = 2),
         model = model_lm(prior = prior_student_t(4, 0, 3), sigma = prior_half_t(3, 5), covariates = list(mean = prior_niw(4, 1), cov = fixed(cov)))),
    list(case = "one variable", statistic = squares, mechanism = mech_laplace(epsilon = 5),
         model = model_normal(prior = list(mean = prior_normal(4, 3), sd = prior_inverse_gamma(3, 20)))),
    list(case = "multivariate normal", statistic = both, mechanism = mech_gaussian(rho = 1), model = model_mvnormal()))
}

# the largest difference of a mean or a standard deviation
apart <- function(a, b) {
  told <- function(x) posterior::summarise_draws(x, "mean", "sd", "mcse_mean", "mcse_sd")
  a <- told(a)
  b <- told(b)
  b <- b[match(a$variable, b$variable), ]
  max(abs(a$mean - b$mean) / sqrt(a$mcse_mean^2 + b$mcse_mean^2), abs(a$sd - b$sd) / sqrt(a$mcse_sd^2 + b$mcse_sd^2))
}

bench_stan_program <- function(quick) {
  cases <- stan_cases()
  if (quick) cases <- cases[3L]
  rows <- lapply(cases, function(case) {
    say("%s", case$case)
    set.seed(2)
    release <- simulate_release(stan_records(200), case$statistic, case$mechanism)
    s <- stan_program(release, case$model)
    compiled <- rstan::stan_model(model_code = s$program, model_name = "totals")
    iter <- if (quick) 1000 else 4000
    stan_seconds <- seconds(stan <- rstan::sampling(compiled, data = s$data, init = function() s$init, chains = 4, iter = iter, seed = 1, refresh = 0, cores = 1))
    draws <- posterior::subset_draws(posterior::as_draws_array(stan), variable = unname(s$names))
    posterior::variables(draws) <- names(s$names)
    one <- function(program, draws, seconds, reference) {
      data.frame(case = case$case, program = program, parameters = length(s$names), apart = if (is.null(reference)) NA else apart(draws, reference),
                 rhat = max(posterior::summarise_draws(draws, "rhat")$rhat), speed = min_ess(draws) / seconds)
    }
    own <- lapply(c("augment", "collapse"), function(method) {
      time <- seconds(fit <- sample_posterior(release, case$model, method = method, chains = 4, iter = 2 * iter, seed = 1))
      list(draws = posterior::subset_draws(fit$draws, variable = names(s$names)), seconds = time)
    })
    exact <- own[[1L]]$draws
    rbind(one("Stan", draws, stan_seconds, exact), one("augment", exact, own[[1L]]$seconds, NULL), one("collapse", own[[2L]]$draws, own[[2L]]$seconds, exact))
  })
  rows <- do.call(rbind, rows)
  stan <- rows[rows$program == "Stan", ]
  figures <- lapply(seq_len(nrow(stan)), function(i) figure("Stan from augment, Monte Carlo errors", stan$case[i], stan$apart[i], 4, at_most = TRUE))
  names(rows) <- c("case", "program", "parameters", "from augment, MC errors", "R-hat", "ESS per second")
  bench_result(figures, list("200 records, 4 chains" = rows),
               c("Stan: the program of stan_program(), which keeps the parameters beside the totals; its compilation is not counted. ESS is the bulk one, the least of all parameters.",
                 "Where method \"collapse\" is far from \"augment\" it warns of divergent trajectories: the residual standard deviation may be near 0."))
}

run_alone(bench_stan_program)
