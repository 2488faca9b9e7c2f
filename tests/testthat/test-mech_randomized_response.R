# Randomised response: probabilities, real releases, exact posteriors.

yes_no <- stat_counts(~ y, levels = list(y = c("no", "yes")))
totals <- stat_crossprod(y ~ 1, list(y = c(0, 1)))
levels3 <- list(g = c("a", "b", "c"))
one_factor <- stat_records(~ g, levels = levels3)

test_that("levels are kept with probability e^epsilon / (e^epsilon + k - 1), the others are alike", {
  for (k in c(2, 3, 7)) {
    st <- stat_records(~ g, levels = list(g = letters[seq_len(k)]))
    for (epsilon in c(0.1, 1, 4)) {
      # all uniforms, evenly: shares are probabilities
      u <- (seq_len(1e5) - 0.5) / 1e5
      shares <- vapply(seq_len(k) - 1, function(code) {
        z <- internal("add_noise")(mech_randomized_response(epsilon = epsilon), st, rep(code, 1e5), u, rep(1 / epsilon, 1e5))
        tabulate(z + 1, k) / 1e5
      }, numeric(k))
      keep <- exp(epsilon) / (exp(epsilon) + k - 1)
      expect_lt(max(abs(shares - ifelse(diag(k) == 1, keep, (1 - keep) / (k - 1)))), 2e-5)
      expect_lte(max(apply(shares, 1, function(r) log(max(r) / min(r)))), epsilon + 0.02)
    }
  }
})

test_that("its budget is that of Laplace noise, and bad ones are refused", {
  expect_equal(privacy(mech_randomized_response(epsilon = 2)), privacy(mech_laplace(epsilon = 2)))
  for (call in list(quote(mech_randomized_response()), quote(mech_randomized_response(epsilon = 0)), quote(mech_randomized_response(epsilon = NA)))) {
    expect_error(eval(call), class = "noiseaware_error_mechanism")
  }
})

test_that("it prints, and survives its file", {
  local_reproducible_output()
  factors <- stat_records(~ y + g, levels = list(y = c("no", "yes"), g = c("a", "b", "c")))
  rel <- as_release(c(0, 1, 2, 1), factors, mech_randomized_response(epsilon = 1 / 3), 2)
  path <- withr::local_tempfile(fileext = ".json")
  write_release(rel, path)
  expect_identical(read_release(path), rel)
  expect_snapshot({
    mech_randomized_response(epsilon = 1)
    rel
  })
})

test_that("real releases throw that coin in integers", {
  for (case in list(c(2, 0.1), c(3, 1), c(7, 4.3), c(4, 1e-20), c(2, 0.5 + 2^-30))) {
    k <- case[1]
    shift <- .Call(internal("ffi_exact_response"), rep(k - 1, 3e5), rep(k, 3e5), rep(case[2], 3e5))
    keep <- exp(case[2]) / (exp(case[2]) + k - 1)
    # the true level is the last one
    expect_gt(chisq.test(tabulate(shift + 1, k), p = c(rep((1 - keep) / (k - 1), k - 1), keep))$p.value, 1e-6)
  }
  # a budget that leaves nothing to chance, and is not waited for
  expect_identical(.Call(internal("ffi_exact_response"), c(0, 1, 2), rep(3, 3), rep(1e9, 3)), c(0, 1, 2))
})

test_that("randomised response of data has that distribution, with the budget shared by the factors", {
  data <- data.frame(g = rep(c("a", "c"), c(3000, 1000)), h = rep(c("u", "v"), 2000))
  st <- stat_records(~ g + h, levels = c(levels3, list(h = c("u", "v"))))
  set.seed(5)
  for (make in list(release, simulate_release)) {
    rel <- make(data, st, mech_randomized_response(epsilon = 2))
    expect_identical(names(rel$value)[c(1, 4001)], c("g[1]", "h[1]"))
    g <- rel$value[1:4000]
    h <- rel$value[4001:8000]
    keep <- exp(1) / (exp(1) + 2:1)
    expect_gt(chisq.test(tabulate(g[1:3000] + 1, 3), p = c(keep[1], (1 - keep[1]) / 2, (1 - keep[1]) / 2))$p.value, 1e-6)
    expect_gt(chisq.test(tabulate(g[3001:4000] + 1, 3), p = c((1 - keep[1]) / 2, (1 - keep[1]) / 2, keep[1]))$p.value, 1e-6)
    expect_gt(chisq.test(tabulate(abs(h - rep(0:1, 2000)) + 1, 2), p = c(keep[2], 1 - keep[2]))$p.value, 1e-6)
    # factors change independently of each other
    expect_gt(chisq.test(table(g[1:3000] != 0, (h != rep(0:1, 2000))[1:3000]))$p.value, 1e-6)
    expect_true(all(is.na(noise_sd(rel))))
  }
})

test_that("randomised response is refused on totals and numbers", {
  response <- mech_randomized_response(epsilon = 1)
  data <- data.frame(y = c("no", "yes"), v = 0:1)
  for (st in list(totals, yes_no, stat_records(~ v, list(v = c(0, 1))), stat_records(~ v + y, list(v = c(0, 1)), yes_no$levels))) {
    expect_error(release(data, st, response), class = "noiseaware_error_mechanism")
  }
  show(refusals("mechanism", alist(release(data, yes_no, response), release(data, stat_records(~ v, list(v = c(0, 1))), response))))
  for (value in list(c(0, 3), c(-1, 0), c(0.5, 1))) {
    expect_error(as_release(value, one_factor, response, 2), class = "noiseaware_error_value")
  }
  show(refusals("value", alist(as_release(c(0, 3), one_factor, response, 2))))
})

# p(prob | z), by enumeration of all confidential records: a mixture of Dirichlet distributions
response_posterior <- function(z, k, epsilon, alpha) {
  records <- as.matrix(expand.grid(rep(list(seq_len(k) - 1), length(z))))
  counts <- t(apply(records, 1, function(r) tabulate(r + 1, k)))
  matches <- colSums(t(records) == z)
  weight <- epsilon * matches + rowSums(lgamma(sweep(counts, 2, alpha, "+")))
  weight <- exp(weight - max(weight))
  list(weight = weight / sum(weight), counts = counts)
}

test_that("the posterior from randomised response is the exact mixture", {
  skip_on_cran() # takes long; `make test` runs it
  z <- c(0, 2, 2, 1, 2)
  for (epsilon in c(0.7, 3)) {
    rel <- as_release(z, one_factor, mech_randomized_response(epsilon = epsilon), 5)
    alpha <- c(1, 2, 0.8)
    exact <- response_posterior(z, 3, epsilon, alpha)
    for (control in list(list(passes = 0), list())) {
      fit <- sample_posterior(rel, model_categorical(prior = prior_dirichlet(alpha)), chains = 2, iter = 7400, warmup = 600, seed = 6,
                              control = control)
      for (l in 1:3) {
        draws <- parameter_draws(fit, paste0("prob[", letters[l], "]"))
        a <- alpha[l] + exact$counts[, l]
        b <- sum(alpha) + 5 - a
        cdf <- function(p) sum(exact$weight * pbeta(p, a, b))
        expect_distribution(draws, function(p) uniroot(function(x) cdf(x) - p, 0:1, tol = 1e-12)$root, sum(exact$weight * a / (a + b)))
      }
      expect_true(all(acceptance(fit)$least >= exp(-epsilon) * (1 - 1e-9)))
      expect_error(denoise(fit), class = "noiseaware_error_argument")
    }
  }
})

test_that("a yes-or-no answer in many records: the closed form of Warner", {
  n <- 600
  set.seed(9)
  st <- stat_records(~ y, levels = yes_no$levels)
  rel <- simulate_release(model_bernoulli(), st, mech_randomized_response(epsilon = 1), n = n, parameters = c("prob[yes]" = 0.3))
  k <- sum(rel$value)
  keep <- exp(1) / (exp(1) + 1)
  p <- seq(0, 1, length.out = 20001)
  says_yes <- p * keep + (1 - p) * (1 - keep)
  density <- dbinom(k, n, says_yes)
  fit <- sample_posterior(rel, model_bernoulli(), chains = 2, iter = 2100, seed = 2)
  expect_distribution(parameter_draws(fit, "prob[yes]"), grid_quantile(p, density), sum(p * density) / sum(density))
})

# ---- any public matrix -------------------------------------------------------------------

asymmetric <- rbind(no = c(no = 0.9, yes = 0.05, refused = 0.05), yes = c(no = 0.2, yes = 0.6, refused = 0.2))
one_question <- stat_records(~ y, levels = yes_no$levels)
asymmetric_response <- mech_randomized_response(matrix = asymmetric)

test_that("real and simulated answers have the probabilities of their rows", {
  skip_on_cran()
  data <- data.frame(y = rep(c("no", "yes"), c(30000, 20000)), g = rep(c("c", "a"), 25000))
  st <- stat_records(~ y + g, levels = c(yes_no$levels, levels3))
  of_g <- rbind(b = c(b = 0.5, a = 0.25, c = 0.25), c = c(0, 0.3, 0.7), a = c(0, 1, 0))
  of_g[of_g == 0] <- 0.1
  mechanism <- mech_randomized_response(matrix = list(g = of_g / rowSums(of_g), y = asymmetric))
  set.seed(5)
  for (make in list(release, simulate_release)) {
    rel <- make(data, st, mechanism)
    y <- matrix(rel$value, ncol = 2)[, 1] + 1
    g <- matrix(rel$value, ncol = 2)[, 2] + 1
    for (level in c("no", "yes")) expect_gt(chisq.test(tabulate(y[data$y == level], 3), p = asymmetric[level, ])$p.value, 1e-6)
    for (level in c("a", "c")) expect_gt(chisq.test(tabulate(g[data$g == level], 3), p = (of_g / rowSums(of_g))[level, c("a", "b", "c")])$p.value, 1e-6)
    expect_true(all(is.na(noise_sd(rel))))
  }
  # certain answers, without a draw in vain
  sure <- rbind(a = c(a = 1, b = 0), b = c(0, 1))
  expect_identical(.Call(internal("ffi_exact_answers"), rep(c(0, 1), 500), sure), rep(c(0, 1), 500))
})

test_that("epsilon of a matrix is the largest log ratio of an answer's probabilities", {
  expect_equal(privacy(asymmetric_response)$epsilon, log(0.6 / 0.05))
  expect_equal(privacy(asymmetric_response)$rho, log(12)^2 / 2)
  both <- mech_randomized_response(matrix = list(y = asymmetric, g = rbind(a = c(a = 0.5, z = 0.5), b = c(0.25, 0.75))))
  expect_equal(privacy(both)$epsilon, log(12) + log(2))
  two <- stat_records(~ y + z, levels = list(y = c("no", "yes"), z = c("yes", "no")))
  expect_equal(privacy(as_release(c(0, 1, 2, 1), two, asymmetric_response, 2))$epsilon, 2 * log(12))
  forced <- rbind(no = c(no = 0.5, yes = 0.5), yes = c(0, 1))
  expect_identical(privacy(mech_randomized_response(matrix = forced))$epsilon, Inf)
  expect_error(release(data.frame(y = c("no", "yes")), one_question, mech_randomized_response(matrix = forced)), "rules out", class = "noiseaware_error_mechanism")
  # an answer that nobody gives reveals nothing
  expect_equal(privacy(mech_randomized_response(matrix = cbind(asymmetric, never = 0)))$epsilon, log(12))
  # rows of which an owner draws add up to exactly 1, in multiples of 2^-52, and are stated
  sevenths <- matrix(c(1, 1, 5, 2, 2, 3, 0.7, 6.2, 0.1) / 7, 3, byrow = TRUE, dimnames = list(letters[1:3], letters[1:3]))
  thirds <- release(data.frame(g = c("a", "c")), one_factor, mech_randomized_response(matrix = sevenths))$mechanism$matrix
  expect_equal(thirds, sevenths, tolerance = 1e-14)
  expect_identical(unname(rowSums(thirds)), rep(1, 3))
  expect_identical(thirds * 2^52, round(thirds * 2^52))
})

test_that("answers may be codes, texts or counts, of one question or of combinations", {
  counts <- c(refused = 4, yes = 2, no = 3)
  rel <- as_release(counts, one_question, asymmetric_response)
  expect_identical(rel$value, c("y=no" = 3, "y=yes" = 2, "y=refused" = 4))
  expect_identical(rel$n, 9)
  expect_identical(tabulate(internal("uncounted")(rel)$value + 1), c(3L, 2L, 4L))
  texts <- as_release(factor(c("yes", "refused", "no")), one_question, asymmetric_response)
  expect_identical(unname(texts$value), c(1, 2, 0))
  expect_identical(as_release(c(1, 2, 0), one_question, asymmetric_response), texts)
  expect_identical(as_release(c("y[2]" = 1, "y[1]" = 2), one_question, asymmetric_response, 2), as_release(c(2, 1), one_question, asymmetric_response, 2))
  two <- stat_records(~ y + g, levels = c(yes_no$levels, levels3))
  given <- xtabs(n ~ g + y, data.frame(g = c("c", "a", "b"), y = c("no", "yes", "no"), n = c(2, 3, 1)))
  rel <- as_release(given, two, mech_randomized_response(epsilon = 1))
  expect_identical(rel$value, c("y=no:g=a" = 0, "y=no:g=b" = 1, "y=no:g=c" = 2, "y=yes:g=a" = 3, "y=yes:g=b" = 0, "y=yes:g=c" = 0))
  single <- internal("uncounted")(rel)
  expect_identical(unclass(table(g = single$value[7:12], y = single$value[1:6])), unclass(table(g = c(2, 2, 0, 0, 0, 1), y = c(0, 0, 1, 1, 1, 0))))
  expect_identical(single, as_release(unname(single$value), two, mech_randomized_response(epsilon = 1), 6))
})

test_that("counts of answers print, survive their file, and are the answers to whoever uses them", {
  local_reproducible_output()
  two <- stat_records(~ y + g, levels = c(yes_no$levels, levels3))
  of_g <- rbind(a = c(a = 0.7, b = 0.3), b = c(0.2, 0.8), c = c(0.2, 0.8))
  set.seed(1)
  given <- array(rpois(6, 9), c(3, 2), list(y = c("refused", "no", "yes"), g = c("b", "a")))
  rel <- as_release(given, two, mech_randomized_response(matrix = list(y = asymmetric, g = of_g)))
  single <- internal("uncounted")(rel)
  path <- withr::local_tempfile(fileext = ".json")
  write_release(rel, path)
  expect_identical(read_release(path), rel)
  expect_identical(unname(as.matrix(as.data.frame(rel)[, c("lower", "upper")])), cbind(numeric(6), rep(sum(given), 6)))
  expect_identical(privacy(rel), privacy(single))
  expect_snapshot({
    rel
    cat(readLines(path), sep = "\n")
  })
  ask <- function(rel, method) suppressWarnings(sample_posterior(rel, model_table(~ y:g), method, chains = 1, iter = 30, seed = 1))
  for (method in c("collapse", "augment")) expect_identical(ask(rel, method)$draws, ask(single, method)$draws)
  fit <- ask(rel, "collapse")
  of_single <- ask(single, "collapse")
  expect_identical(summary(posterior::as_draws_array(fit)), summary(posterior::as_draws_array(of_single)))
  expect_identical(add_release(rel, as_release(c(12, 20, 9), stat_counts(~ g, levels3), mech_laplace(epsilon = 1), rel$n)),
                   add_release(single, as_release(c(12, 20, 9), stat_counts(~ g, levels3), mech_laplace(epsilon = 1), rel$n)))
  damaged <- function(from, to) {
    file <- withr::local_tempfile(fileext = ".json")
    writeLines(sub(from, to, readLines(path), fixed = TRUE), file)
    read_release(file)
  }
  for (change in list(c('"no", "yes", "refused"', '"no", "refused", "yes"'), c('"counted"', '"counting"'), c('"version": 5', '"version": 4'),
                      c('"y=no:g=a": ', '"y=no:g=a": 1'), c('"y=no:g=a": ', '"y=no:g=a": -'), c('"n": ', '"n": 1'))) {
    expect_error(damaged(change[1], change[2]), class = "noiseaware_error_file")
  }
})

test_that("counts of answers: the number of records costs nothing", {
  st <- stat_records(~ y, levels = list(y = c("no", "yes")))
  ask <- function(n) {
    rel <- as_release(c(no = 0.6 * n, yes = 0.4 * n), st, mech_randomized_response(epsilon = 1))
    fit <- suppressWarnings(sample_posterior(rel, model_bernoulli(), chains = 2, iter = 2000, seed = 1))
    expect_lt(object.size(fit), 2e6)
    capture.output(print(rel), print(fit), print(summary(fit)))
    fit
  }
  spent <- system.time(fit <- ask(1e9))[["user.self"]]
  expect_lt(spent, 5)
  keep <- exp(1) / (exp(1) + 1)
  expect_distribution(parameter_draws(fit, "prob[yes]"), function(p) (qbeta(p, 4e8, 6e8) - (1 - keep)) / (2 * keep - 1))
  expect_error(bayesplot::pp_check(fit), "10^8", fixed = TRUE, class = "noiseaware_error_argument")
})

test_that("a matrix prints, and survives its file", {
  local_reproducible_output()
  two <- stat_records(~ y + g, levels = c(yes_no$levels, levels3))
  of_g <- rbind(a = c(a = 0.7, b = 0.3), b = c(0.2, 0.8), c = c(0.2, 0.8))
  for (mechanism in list(asymmetric_response, mech_randomized_response(matrix = list(y = asymmetric, g = of_g)))) {
    several <- is.list(mechanism$matrix)
    rel <- as_release(if (several) c(0, 1, 2, 1, 0, 0) else c(0, 1, 2), if (several) two else one_question, mechanism, 3)
    path <- withr::local_tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
  }
  expect_snapshot({
    asymmetric_response
    mechanism
  })
})

test_that("bad matrices and counts are refused", {
  of <- function(m, n = list(c("no", "yes"), c("no", "yes"))) mech_randomized_response(matrix = matrix(m, 2, byrow = TRUE, dimnames = n))
  data <- data.frame(y = c("no", "yes"))
  show(refusals("mechanism", alist(of(c(0.9, 0.2, 0.1, 0.8)), of(c(0.9, 0.2, 0.2, 0.8)), of(c(1.1, -0.1, 0.5, 0.5)), of(c(NA, 1, 0.5, 0.5)),
    of(c(0.9, 0.1, 0.1, 0.9), NULL),
    mech_randomized_response(matrix = 3), mech_randomized_response(matrix = list(asymmetric)), mech_randomized_response(matrix = asymmetric, epsilon = 1),
    release(data, one_question, of(c(0.9, 0.1, 0.1, 0.9), list(c("no", "maybe"), c("no", "yes")))),
    release(data, one_question, mech_randomized_response(matrix = list(z = asymmetric))))))
  show(refusals("value", alist(as_release(c(no = 1, yes = 2), one_question, asymmetric_response),
    as_release(c(no = 1, yes = 2, refused = 1.5), one_question, asymmetric_response),
    as_release(c(no = 1, yes = 2, refused = 1), one_question, asymmetric_response, 5), as_release(c(no = 1, yes = 2, maybe = 1), one_question, asymmetric_response),
    as_release(c("no", "maybe"), one_question, asymmetric_response), as_release(c(0, 3), one_question, asymmetric_response, 2),
    as_release(2, one_question, mech_randomized_response(matrix = cbind(asymmetric[, 1:2] / rowSums(asymmetric[, 1:2]), never = 0)), 1))))
})
