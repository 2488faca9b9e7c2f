# The page: that it is whole, that its words agree with the fit, and what is refused.

st <- stat_crossprod(y ~ x + g, bounds = list(y = c(-6, 6), x = c(-2, 2), g = c("a", "<b>_*[c]")))
set.seed(1)
records <- data.frame(x = rnorm(300, 0, 0.5), g = factor(sample(2, 300, TRUE), 1:2, c("a", "<b>_*[c]")))
records$y <- 1 + records$x + (records$g == "a") + rnorm(300, 0, 0.5)
fit <- sample_posterior(simulate_release(records, st, mech_laplace(epsilon = 20)), model_lm(), chains = 2, iter = 1500, warmup = 500, seed = 1)

page_text <- function(path) {
  text <- paste(readLines(path, encoding = "UTF-8"), collapse = "\n")
  text <- gsub("<style.*?</style>|<script.*?</script>|<[^>]*>", "", text, perl = TRUE)
  for (sign in list(c("&lt;", "<"), c("&gt;", ">"), c("&quot;", "\""), c("&#39;", "'"), c("&amp;", "&"))) text <- gsub(sign[1], sign[2], text, fixed = TRUE)
  gsub("[[:space:]]+", " ", text)
}

test_that("the page holds every part, with its pictures inside", {
  skip_on_cran()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.14"))
  path <- file.path(withr::local_tempdir(), "a page.html")
  expect_identical(expect_invisible(report(fit, path, databases = 3)), path)
  expect_identical(list.files(dirname(path)), basename(path))
  html <- paste(readLines(path), collapse = "\n")
  expect_length(gregexpr("<img src=\"data:image/png;base64", html, fixed = TRUE)[[1]], 5L)
  expect_false(grepl("<img src=\"[^d]|<link[^>]*http|<script[^>]*http", html))
  expect_length(gregexpr("<img [^>]*alt=\"[A-Z]", html)[[1]], 5L)
  expect_false(grepl(">5%<|>95%<", html)) # one level
  text <- page_text(path)
  for (part in c("Posterior: linear regression y ~ x + g", "The release", "Prior against posterior", "What the noise cost", "R version", "noiseaware_",
                 "g<b>_*[c]", "prob[g=<b>_*[c]]", "Laplace noise, epsilon = 20")) expect_match(text, part, fixed = TRUE)
  # the words, and the numbers of the tables
  for (line in c(internal("diagnosis")(fit), internal("methods_words")(fit), internal("cost_words")(noise_cost(fit, 3, seed = 1)),
                 internal("check_words")(check_of(fit, seed = 1), fit))) expect_match(text, line, fixed = TRUE)
  expect_match(text, prettyNum(signif(coef(fit)[["x"]], 4)), fixed = TRUE)
  expect_false(grepl("Not shown|Error", text))
})

test_that("the paragraph for a paper has what was done", {
  skip_on_cran()
  words <- internal("methods_words")(fit)
  expect_match(words, "The model was: linear regression y ~ x + g. Bounds were declared: ", fixed = TRUE)
  expect_match(words, "Its posterior given the release of 300 records (Laplace noise, epsilon = 20) was computed with",
               fixed = TRUE)
  expect_match(words, paste0("The method was \"", fit$method, "\", which is exact under the model, up to Monte Carlo error. There were 2 chains of 1,000 draws"), fixed = TRUE)
  expect_match(words, "The seed was 1.", fixed = TRUE)
  expect_match(words, "Priors were (Intercept) normal(", fixed = TRUE)
  results <- internal("results_words")(fit)
  ends <- confint(fit)["x", ]
  expect_match(results, sprintf("x %s (%s to %s)", format(coef(fit)[["x"]], digits = 3), format(ends[[1]], digits = 3), format(ends[[2]], digits = 3)), fixed = TRUE)
  expect_no_match(results, "mean[", fixed = TRUE)
  natural <- list(list(statistic = stat_sums(~z, list(z = c(0, 7)), outside = "none")))
  expect_identical(internal("bounds_sentence")(natural), "Bounds were declared: z 0 to 7; no record lies outside. ")
  variables <- posterior::variables(fit$draws)
  least <- function(ess) min(vapply(variables, function(v) ess(posterior::extract_variable_matrix(fit$draws, v)), 0))
  expect_lt(least(posterior::ess_tail), least(posterior::ess_bulk) - 1) # else either would do
  expect_match(words, paste0("bulk or tail, was ", format(floor(least(posterior::ess_tail)), big.mark = ","), "."), fixed = TRUE)
  naive <- sample_posterior(fit$release, model_lm(), method = "naive", chains = 1, iter = 400, seed = 1)
  expect_match(internal("methods_words")(naive), "The method was \"naive\", which is approximate. There were", fixed = TRUE)
  asked <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  sites <- lapply(list(a = 12, b = 20), function(yes) as_release(c("y=yes" = yes), asked, mech_laplace(scale = 2), n = 60))
  said <- c(complete = "Pooling was \"complete\"", partial = "Pooling was \"partial\"", none = "Each release was analysed by itself")
  for (pool in names(said)) {
    pooled <- suppressWarnings(sample_posterior(sites, model_bernoulli(), pool = pool, chains = 2, iter = 400))
    expect_match(internal("methods_words")(pooled), "given 2 releases (Laplace noise, scale 2) was computed with", fixed = TRUE)
    expect_match(internal("methods_words")(pooled), paste0(said[[pool]], ", which is exact under the model"), fixed = TRUE)
    expect_no_match(internal("methods_words")(pooled), "seed")
    expect_match(internal("methods_words")(pooled), "Priors were prob[yes] beta(1, 1)", fixed = TRUE)
  }
})

test_that("a part that cannot be had says why, and a title is taken literally", {
  skip_on_cran()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.14"))
  naive <- sample_posterior(fit$release, model_lm(), method = "naive", chains = 1, iter = 400, seed = 1)
  path <- withr::local_tempfile(fileext = ".html")
  report(naive, path, title = "A *title*: \"quoted\" <i>", databases = 2)
  text <- page_text(path)
  expect_match(text, "A *title*: \"quoted\" <i>", fixed = TRUE)
  expect_match(text, "Not shown: Method \"naive\" imputes no statistic.", fixed = TRUE)
  expect_match(text, "The draws are independent", fixed = TRUE)
})

test_that("the paragraph has bounds of numbers alone, equal priors once, and 0 for a probability of next to nothing", {
  skip_on_cran()
  levels <- list(g = c("a", "b"))
  sums <- list(size = stat_counts(~g, levels), y = stat_by(stat_sums(~ y + I(y^2), list(y = c(0, 10))), levels))
  groups <- as_release(list(size = c(40, 60), y = c(2, 5, 8, 9)), sums, list(size = mech_exact(), y = mech_laplace(scale = 2)), n = 100)
  expect_identical(internal("bounds_sentence")(list(groups)), "Bounds were declared: y 0 to 10. ")
  cells <- as_release(c(30, 0, 0, 70), stat_counts(~ g:h, c(levels, list(h = c("c", "d")))), mech_laplace(scale = 2), n = 100)
  table <- suppressMessages(suppressWarnings(sample_posterior(cells, model_table(), chains = 1, iter = 400, seed = 1)))
  expect_match(internal("methods_words")(table), "Priors were prob[g=a:h=c], prob[g=a:h=d], ... dirichlet(0.5).", fixed = TRUE)
  table$draws[, , "prob[g=a:h=c]"] <- c(rep(1e-20, 20), seq(0.2, 0.8, length.out = 180))
  expect_match(internal("results_words")(table), "prob\\[g=a:h=c\\] 0[.][0-9]+ \\(0 to 0[.]7[0-9]*\\)")
})

test_that("shares of next to nothing are 0, other numbers stay", {
  rows <- data.frame(mean = c(3e-3, 3e-9, 2), lower = c(3e-10, 1e-9, 1e-6), upper = c(2e-2, 8e-9, 1e6))
  expect_identical(unlist(internal("without_traces")(rows, c("prob[a]", "prob[b]", "sigma"))$lower), c(0, 1e-9, 1e-6))
  # in a print as well
  table <- data.frame(variable = "prob[a]", mean = 3e-3, sd = 1e-3, q2.5 = 3e-10, q97.5 = 2e-2, rhat = 1, ess_bulk = 900, ess_tail = 900)
  expect_output(internal("print_summary")(table), " 0.003000 0.001000 0.000 0.02000 ")
})

test_that("the comparison with records names what the fit has", {
  said <- internal("cost_caveats")(fit)
  expect_match(said, "all parameters, above all sigma. If", fixed = TRUE)
  expect_match(said, "only totals were published, and because values outside the bounds", fixed = TRUE)
  cells <- as_release(c(30, 70), stat_counts(~ g, list(g = c("a", "b"))), mech_laplace(scale = 2), n = 100)
  said <- internal("cost_caveats")(sample_posterior(cells, model_bernoulli(), chains = 1, iter = 400, seed = 1) |> suppressMessages() |> suppressWarnings())
  expect_match(said, "all parameters. If", fixed = TRUE)
  expect_match(said, "only totals were published.", fixed = TRUE)
})

test_that("traces are of the parameters with the fewest effective draws", {
  table <- data.frame(variable = letters[1:4], ess_bulk = c(900, 100, 800, 50), ess_tail = c(20, 900, 700, 900))
  expect_identical(internal("slowest_parameters")(c("a", "c", "b"), table, 2), c("a", "b"))
  expect_identical(internal("slowest_parameters")(c("d", "c"), table), c("d", "c"))
})

test_that("diagnostics are said in words", {
  skip_on_cran()
  words <- internal("diagnosis")
  expect_match(words(fit)[1], "The chains agree: R-hat, which compares them, is at most 1")
  short <- told(suppressWarnings(sample_posterior(fit$release, model_lm(), chains = 1, iter = 20, seed = 1)))
  expect_match(paste(words(short), collapse = " "), "R-hat above 1.01.*Fewer than 400 effective draws.*Run longer")
  fit$troubles <- list(list(kind = "limit", text = c("A total is at its limit.", x = "Details.")))
  fit$decided <- "x"
  expect_identical(tail(words(fit), 2), c("A total is at its limit. Details.", "The prior strongly influences x: a slightly weaker or stronger prior moves it by more than a tenth of its posterior sd."))
  check <- structure(data.frame(component = c("a", "b"), value = c(1, 9), lower = 0, upper = 2, p = c(0.5, 0)), level = 0.9)
  expect_match(internal("check_words")(check), "^1 of 2 published numbers are outside the central 90%.*about 0.2|as extreme as the published value of b")
  cost <- data.frame(variable = c("a", "b"), ratio = c(3.456, 1.1), ratio_mcse = c(0.2, 0.02))
  said <- function(cost) internal("cost_words")(cost)
  expect_identical(said(cost), "Under the fit, intervals are expected to be 1.1 times as wide (b) to 3.46 times as wide (a) as from the records.")
  # within the Monte Carlo error nothing is narrower
  cost$ratio[2] <- 0.951
  expect_match(said(cost), "0.951 times as wide (b) to", fixed = TRUE)
  cost$ratio_mcse[2] <- 0.03
  expect_match(said(cost), "to be about as wide (b) to 3.46 times as wide (a) as from the records.", fixed = TRUE)
  cost$ratio_mcse[1] <- 2
  expect_identical(said(cost), "Under the fit, intervals are expected to be about as wide as from the records.")
})

test_that("what cannot be reported or written is refused", {
  path <- withr::local_tempfile(fileext = ".html")
  expect_error(report(1, path), class = "noiseaware_error_argument")
  expect_error(report(fit, 1), class = "noiseaware_error_file")
  expect_error(report(fit, tempdir()), "is a directory", class = "noiseaware_error_file")
  expect_error(report(fit, file.path(path, "x.html")), "there is no directory", class = "noiseaware_error_file")
  expect_error(report(fit, path, title = 1), class = "noiseaware_error_argument")
  expect_error(report(fit, path, databases = 0), class = "noiseaware_error_argument")
  expect_error(report(nonprivate_posterior(records, model_lm(), st, iter = 20), path), "fit to a release", class = "noiseaware_error_argument")
  expect_error(internal("check_installed")("notapackage", "makes the page"), "which makes the page, is not installed", class = "noiseaware_error_package")
  expect_false(file.exists(path))
})

test_that("single records are checked by what they add up to", {
  set.seed(2)
  answers <- as_release(c(0, 1, 1, 2, 1), stat_records(~ g, levels = list(g = c("a", "b", "c"))), mech_randomized_response(epsilon = 3), 5)
  fit <- suppressWarnings(sample_posterior(answers, model_categorical(), chains = 1, iter = 400, seed = 1))
  check <- check_of(fit, seed = 1)
  expect_identical(check$component, c("g=a", "g=b", "g=c"))
  expect_identical(check$value, c(1, 3, 1))
  st <- stat_records(~ y + g + x, bounds = list(y = c(0, 1), x = c(0, 1)), levels = list(g = c("a", "b")))
  y <- c(0.1, 0.4, 0.9)
  x <- c(0.3, 0.1, 0.7)
  expect_equal(internal("record_summaries")(st, cbind(c(y, c(0, 1, 1), x), 0.5))[, 1],
               c("mean of y" = mean(y), "sd of y" = sd(y), "g=a" = 1, "g=b" = 2, "mean of x" = mean(x), "sd of x" = sd(x), "cor(y, x)" = cor(y, x)))
})

test_that("effective draws of a page are the fewest, in the tails too; p values below 0.01 count as far out", {
  # the chain stays above 3 for its last tenth: the middle mixes, the upper tail does not
  set.seed(3)
  draws <- matrix(rnorm(2000), 1000)
  draws[901:1000, ] <- abs(draws[901:1000, ]) + 3
  draws <- posterior::as_draws_array(array(draws, c(1000, 2, 1), list(NULL, NULL, "x")))
  sizes <- c(posterior::ess_bulk(draws[, , 1]), posterior::ess_tail(draws[, , 1]))
  one <- fit
  one$draws <- draws
  expect_lt(sizes[2], 0.8 * sizes[1])
  said <- paste(internal("diagnosis")(one), collapse = " ")
  number <- as.numeric(gsub(",", "", sub(".*(?:as few as|at least) ([0-9,]+).*", "\\1", said)))
  expect_lte(number, sizes[2])
  check <- function(p) structure(data.frame(component = "total", value = 1, lower = 0, upper = 2, p = p), level = 0.9)
  words <- function(p) paste(internal("check_words")(check(p)), collapse = " ")
  expect_match(words(0.009), "Hardly any replicate is as extreme as the published value of total", fixed = TRUE)
  for (p in c(0.011, 0.05, 0.09)) expect_match(words(p), "None is so extreme", fixed = TRUE)
})

test_that("a page of groups has their shrinkage and ranks, one of a table its margins, and one of survival its curves", {
  skip_on_cran()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.14"))
  path <- withr::local_tempfile(fileext = ".html")
  pictures <- function() length(gregexpr("<img src=\"data:image/png;base64", paste(readLines(path), collapse = ""), fixed = TRUE)[[1]])
  by <- list(smoke = c("no", "yes"), ward = c("x", "y", "z"))
  cells <- as_release(c(20, 30, 12, 10, 25, 31), stat_counts(~ smoke:ward, by), mech_laplace(scale = 3), n = 130)
  groups <- suppressMessages(sample_posterior(cells, model_bernoulli(smoke ~ ward), pool = "partial", chains = 2, iter = 400, seed = 1))
  suppressMessages(report(groups, path, databases = 2))
  text <- page_text(path)
  for (part in c("P(largest)", "partial: parameters of groups are normal about a mean", "smoke=yes:ward=z", "Not shown: `fit` must have sites that share")) {
    expect_match(text, part, fixed = TRUE)
  }
  expect_identical(pictures(), 5L)
  table <- suppressMessages(sample_posterior(cells, model_table(), chains = 2, iter = 400, seed = 1))
  report(table, path, databases = 2)
  expect_identical(pictures(), 5L)
  expect_s3_class(internal("posterior_pictures")(table)[[1]], "ggplot")
  expect_length(internal("posterior_pictures")(fit), 1L)
  # separate fits have diagnostics each
  set.seed(2)
  again <- simulate_release(records[1:200, ], st, mech_laplace(epsilon = 20))
  pieces <- sample_posterior(list(a = fit$release, b = again), model_lm(), pool = "none", chains = 2, iter = 500, seed = 1)
  expect_match(internal("diagnosis")(pieces), "^[ab]: ")
})
