# theta as each model describes it: src/contract/coordinates.c

number <- list(y = c(-2, 5), x = c(10, 11), z = c(0, 4), g = c("u", "v", "w"))
described <- list(
  lm = list(model_lm(), stat_crossprod(y ~ x + z + g, number)),
  lm_known = list(model_lm(prior = prior_normal(0, 2), sigma = fixed(1.5), covariates = fixed(list(mean = 10.5, cov = 2))), stat_crossprod(y ~ x, number[1:2])),
  lm_mean_known = list(model_lm(covariates = list(mean = fixed(c(10.5, 2)), cov = prior_niw())), stat_crossprod(y ~ x + z, number[1:3])),
  logistic = list(model_logistic(), stat_crossprod(b ~ x + g, c(list(b = c(0, 1)), number[c("x", "g")]))),
  mvnormal = list(model_mvnormal(), stat_sums(~ y + x + z, number[1:3], rescale = FALSE)),
  normal = list(model_normal(), stat_sums(~ y, number["y"])),
  normal_sd_known = list(model_normal(prior = list(mean = prior_normal(0, 3), sd = fixed(2))), stat_sums(~ y, number["y"])),
  poisson = list(model_poisson(), stat_sums(~ z, number["z"])),
  exponential = list(model_exponential(), stat_sums(~ z, number["z"])),
  bernoulli = list(model_bernoulli(), stat_counts(~ g, list(g = c("no", "yes")))),
  categorical = list(model_categorical(prior = prior_dirichlet(c(0.5, 2, 3))), stat_counts(~ g, number["g"])),
  naive_bayes = list(model_naive_bayes("g", conditional = list(h = fixed(c(0.2, 0.8)), k = prior_dirichlet(2))),
                     stat_counts(~ g:h + g:k, c(number["g"], list(h = c("no", "yes"), k = letters[1:4]))))
)
described <- lapply(described, function(d) internal("bind_model")(d[[1]], d[[2]]))
draw_prior <- function(bound, draws) .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(3, 4)), as.integer(draws))$theta
reports <- internal("reported")

test_that("the blocks follow one another and cover theta; the unknown ones may move", {
  for (bound in described) {
    blocks <- bound$coordinates
    expect_equal(blocks$offset, c(0, cumsum(blocks$length))[seq_len(nrow(blocks))])
    expect_equal(sum(blocks$length), bound$sizes$parameters)
    free <- unlist(Map(function(from, length) from + seq_len(length), blocks$offset[!blocks$known], blocks$length[!blocks$known]))
    expect_equal(bound$moves, free)
    expect_length(bound$parameters, bound$sizes$reported)
  }
  expect_identical(described$lm$coordinates$block, c("coefficients", "sigma", "mean", "cov", "prob"))
  expect_identical(described$lm$coordinates$transform, c("centre", "log", "identity", "log_cholesky", "sticks"))
  expect_identical(described$lm_known$coordinates$known, c(FALSE, TRUE, TRUE, TRUE))
  expect_identical(described$naive_bayes$coordinates$known, c(FALSE, TRUE, FALSE))
})

test_that("natural values come back as the coordinates they were, known ones included", {
  for (bound in described) {
    theta <- draw_prior(bound, 5)
    for (i in 1:5) expect_equal(internal("bound_theta")(bound, rev(reports(bound, theta[, i])[1, ])), theta[, i], tolerance = 1e-8)
  }
})

# values of a draw that determine the others: not the last of each row of probabilities
free_values <- function(bound) {
  blocks <- bound$coordinates
  drop <- !logical(length(bound$parameters))
  if ("sticks" %in% blocks$transform && !inherits(bound, "bound_bernoulli")) {
    prob <- grep("^prob\\[", bound$parameters)
    # prob[level], prob[variable=level], prob[variable=level|class=level]
    row <- sub("^prob\\[(([^=]*)=)?[^|]*", "\\2", bound$parameters[prob])
    drop[prob[!duplicated(row, fromLast = TRUE)]] <- FALSE
  }
  which(drop)
}

test_that("the log-Jacobian is that of the natural values, by differences", {
  for (bound in described) {
    theta <- draw_prior(bound, 3)
    free <- free_values(bound)
    expect_length(free, length(bound$moves))
    got <- .Call(internal("ffi_model_log_jacobian"), bound$spec, theta)
    for (i in 1:3) {
      slope <- vapply(bound$moves, function(j) {
        step <- replace(numeric(nrow(theta)), j, 1e-5)
        drop(reports(bound, theta[, i] + step)[1, free] - reports(bound, theta[, i] - step)[1, free]) / 2e-5
      }, numeric(length(free)))
      expect_equal(as.numeric(determinant(matrix(slope, length(free)))$modulus), got[i], tolerance = 1e-6)
    }
  }
})

test_that("the prior density is the natural one times the Jacobian", {
  natural <- list(
    poisson = function(v) dgamma(v[, "rate"], 1, 1 / 2, log = TRUE),
    exponential = function(v) dgamma(v[, "rate"], 1, 2, log = TRUE),
    normal_sd_known = function(v) dnorm(v[, "mean"], 0, 3, log = TRUE),
    normal = function(v) dgamma(v[, "sd"]^-2, 3 / 4, 0.7^2, log = TRUE) - 3 * log(v[, "sd"]) + dnorm(v[, "mean"], 1.5, 4 * v[, "sd"], log = TRUE),
    bernoulli = function(v) dbeta(v[, "prob[yes]"], 1, 1, log = TRUE),
    categorical = function(v) drop(log(v) %*% c(-0.5, 1, 2)),
    lm_known = function(v) rowSums(dnorm(v, 0, 2, log = TRUE))
  )
  for (name in names(natural)) {
    bound <- described[[name]]
    theta <- draw_prior(bound, 6)
    density <- .Call(internal("ffi_model_log_prior"), bound$spec, theta) - .Call(internal("ffi_model_log_jacobian"), bound$spec, theta)
    difference <- density - natural[[name]](reports(bound, theta))
    expect_equal(difference, rep(difference[1], 6), tolerance = 1e-8, info = name)
  }
})

test_that("values that no coordinates have are refused by the name of what is wrong", {
  refuses <- function(bound, change, message) {
    values <- reports(bound, draw_prior(bound, 1))[1, ]
    values[names(change)] <- change
    expect_error(internal("bound_theta")(bound, values, name = "init"), message, class = "noiseaware_error_argument")
  }
  refuses(described$lm, c(sigma = -1), "positive in sigma")
  refuses(described$lm, c("cov[z,x]" = 1e6), "positive definite cov")
  refuses(described$lm, c("prob[g=u]" = 2), "sum to 1")
  refuses(described$poisson, c(rate = 0), "positive in rate")
  refuses(described$bernoulli, c("prob[yes]" = 1.1), "sum to 1")
  inside <- internal("bind_model")(model_normal(prior = prior_nig(within = TRUE)), stat_sums(~ y, number["y"]))
  refuses(inside, c(mean = 6), "prior allows")
})
