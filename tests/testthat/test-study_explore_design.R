# The app's server without a browser: what it shows is what design() and the mechanisms say.

design_noise <- function(statistic, mechanism, n, neighbours = "replace") internal("design_noise")(statistic, mechanism, n, neighbours)
make_model <- function(scale) model_lm(prior = prior_normal(0, scale))
make_statistic <- function(bounds) stat_crossprod(y ~ x, bounds)
limits <- list(y = c(-5, 5), x = c(0, 10))

test_that("the noise of a design is that of its release", {
  st <- make_statistic(limits)
  rows <- design_noise(st, mech_laplace(epsilon = 0.5), 40)
  rel <- as_release(numeric(5), st, mech_laplace(epsilon = 0.5), 40)
  expect_identical(rows$component, st$components)
  expect_equal(rows$noise_sd, unname(noise_sd(rel)))
  shown <- as.data.frame(rel)
  expect_equal(rows[c("least", "largest")], shown[c("lower", "upper")], ignore_attr = TRUE)
  expect_equal(rows$share, rows$noise_sd / (shown$upper - shown$lower))
  # twice the budget, half of the noise; single records do not add up
  expect_equal(design_noise(st, mech_laplace(epsilon = 1), 40)$noise_sd, rows$noise_sd / 2)
  single <- design_noise(stat_records(~ x, limits["x"]), mech_laplace(epsilon = 1), 40)
  expect_equal(c(single$least, single$largest), c(0, 10))
  several <- design_noise(list(a = st, b = stat_sums(~ x, limits["x"])), list(a = mech_laplace(epsilon = 1), b = mech_gaussian(sd = 3)), 40)
  expect_identical(several$component[6], "b: x")
  expect_identical(several$noise_sd[6], 3)
  wide <- design_noise(stat_sums(~ x, limits["x"]), mech_laplace(epsilon = 1), 40, "add_remove")
  expect_equal(wide$noise_sd, sqrt(2) * 10)
  # the same without n, and with the names of a release
  expect_identical(noise_sd(st, mech_laplace(epsilon = 0.5)), noise_sd(rel))
  expect_identical(noise_sd(stat_records(~ x, limits["x"]), mech_laplace(epsilon = 1)), c(x = single$noise_sd))
  expect_identical(unname(noise_sd(list(a = st, b = stat_sums(~ x, limits["x"])), list(a = mech_laplace(epsilon = 1), b = mech_gaussian(sd = 3)))), several$noise_sd)
  expect_equal(noise_sd(stat_sums(~ x, limits["x"]), mech_laplace(epsilon = 1), neighbours = "add_remove"), c(x = sqrt(2) * 10))
  for (wrong in expression(noise_sd(st), noise_sd(st, 1), noise_sd(rel, mech_laplace(epsilon = 1)), noise_sd(3))) {
    expect_error(eval(wrong), class = "noiseaware_error_argument")
  }
})

test_that("sliders go from and to what can be chosen, and stand where the design does", {
  skip_on_cran() # takes long; `make test` runs it
  skip_if_not_installed("shiny")
  page <- function(epsilon) {
    chosen <- list(budget = "epsilon", epsilon = epsilon, n = 100, bounds = list(y = c(-8, 8), x = c(0, 10)), prior = c(0.1, 10), replicates = 2, level = 0.95)
    html <- as.character(internal("design_page")(chosen))
    of <- function(name) as.numeric(sub(".*\"(.*)\"", "\\1", regmatches(html, gregexpr(sprintf("data-%s=\"[^\"]*\"", name), html))[[1L]]))
    sapply(c(min = "min", max = "max", from = "from", step = "step", to = "to"), of)
  }
  # budget and records as powers of ten; a bound as far again as the two are apart; the prior's number in the middle
  expect_equal(page(0.5), list(min = c(-2, 1, -24, -10, -1), max = c(2, 5, 24, 20, 1), from = c(-0.3, 2, -8, 0, 0), step = c(0.05, 0.05, 0.32, 0.2, 0.05), to = c(8, 10)))
  expect_identical(c(page(1e-4)$from[1L], page(1e4)$from[1L]), c(-2, 2)) # a budget beyond the slider's ends
})

test_that("sliders make the design, and the table has its rows", {
  skip_on_cran() # takes long; `make test` runs it
  skip_if_not_installed("shiny")
  app <- explore_design(make_model, make_statistic, bounds = limits, prior = c(0.1, 10), replicates = 2, iter = 100)
  expect_s3_class(app, "shiny.appobj")
  shiny::testServer(app, {
    sliders <- list(budget = log10(0.5), records = 2, bounds1 = c(-8, 8), bounds2 = c(0, 10), prior = log10(3))
    do.call(session$setInputs, sliders)
    expect_match(output$said, "^epsilon = 0.5, 100 records, prior 3: Laplace noise, epsilon = 0.5; cross-products of y ~ x")
    noise <- design_noise(make_statistic(list(y = c(-8, 8), x = c(0, 10))), mech_laplace(epsilon = 0.5), 100)
    expect_match(output$noise, prettyNum(signif(noise$noise_sd[1], 3)), fixed = TRUE)
    session$setInputs(compute = 1)
    plan <- suppressWarnings(design(make_model(3), make_statistic(list(y = c(-8, 8), x = c(0, 10))), epsilon = 0.5, n = 100, replicates = 2,
                                    chains = 1, iter = 100, seed = 1))
    for (width in plan$width) expect_match(output$widths, prettyNum(signif(width, 3), big.mark = ","), fixed = TRUE)
    expect_match(output$widths, "-8 to 8; 0 to 10", fixed = TRUE)
    expect_match(output$plot$src, "^data:image/png")
    # another trial stands next to the trials of the button and of the start
    session$setInputs(records = 3, compute = 2)
    expect_match(output$said, "1,000 records")
    expect_identical(lengths(regmatches(output$widths, gregexpr("-8 to 8", output$widths, fixed = TRUE))), 3L * nrow(plan))
  })
})

# the app in a process of its own, and a page of a browser that shows it
local_app_page <- function(frame = parent.frame()) {
  script <- withr::local_tempfile(.local_envir = frame, lines = c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")), "library(noiseaware)",
    paste("make_model <-", paste(deparse(make_model), collapse = "\n")), paste("make_statistic <-", paste(deparse(make_statistic), collapse = "\n")),
    "writeLines(as.character(Sys.getpid()), commandArgs(TRUE))",
    "app <- explore_design(make_model, make_statistic, bounds = list(y = c(-5, 5), x = c(0, 10)), prior = c(0.1, 10), replicates = 2, iter = 100)",
    "shiny::runApp(app, launch.browser = FALSE)"))
  pid <- withr::local_tempfile(.local_envir = frame)
  said <- withr::local_tempfile(.local_envir = frame)
  system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script, pid), wait = FALSE, stdout = FALSE, stderr = said)
  withr::defer(if (file.exists(pid)) tools::pskill(as.integer(readLines(pid))), frame)
  chrome <- tryCatch(chromote::Chromote$new(chromote::Chrome$new(args = c("--headless", "--no-sandbox", "--disable-gpu"))), error = function(e) NULL)
  if (is.null(chrome)) return(NULL)
  withr::defer(chrome$close(), frame)
  page <- chrome$new_session(width = 1200, height = 1300)
  ask <- function(code) page$Runtime$evaluate(code)$result$value
  text <- function(id) ask(sprintf("(document.getElementById('%s') || {innerText: ''}).innerText", id))
  # a page is ready when it is: what was waited for, or what is there after a minute
  wait_for <- function(id, pattern) {
    for (k in 1:300) if (grepl(pattern, text(id))) break else Sys.sleep(0.2)
    text(id)
  }
  address <- function() regmatches(lines <- readLines(said), regexpr("http://[0-9.:]+", lines))
  for (k in 1:300) if (file.exists(said) && length(address())) break else Sys.sleep(0.2)
  page$Page$navigate(address())
  list(ask = ask, wait_for = wait_for)
}

test_that("a browser shows the app, and its sliders and its button work there", {
  skip_on_cran()
  skip_on_os("windows")
  skip_if_not_installed("shiny")
  skip_if_not_installed("chromote")
  skip_if(is.null(suppressMessages(chromote::find_chrome())), "no Chromium or Chrome is installed")
  page <- local_app_page()
  if (is.null(page)) skip("the browser cannot be started here")
  expect_match(page$wait_for("said", "epsilon = 1,"), "^epsilon = 1, 200 records, prior 1: Laplace noise, epsilon = 1; cross-products of y ~ x")
  page$wait_for("widths", "mean.x.")
  page$ask("$('#budget').data('ionRangeSlider').update({from: -1})")
  expect_match(page$wait_for("said", "epsilon = 0.1,"), "^epsilon = 0.1, 200 records")
  noise <- design_noise(make_statistic(limits), mech_laplace(epsilon = 0.1), 200)$noise_sd
  shown <- prettyNum(signif(noise[1], 3), big.mark = ",")
  expect_match(page$wait_for("noise", shown), shown, fixed = TRUE)
  page$ask("document.getElementById('compute').click()")
  widths <- page$wait_for("widths", "2\t0.1\t")
  plan <- suppressWarnings(design(make_model(1), make_statistic(limits), epsilon = 0.1, n = 200, replicates = 2, chains = 1, iter = 100, seed = 1))
  for (width in plan$width) expect_match(widths, prettyNum(signif(width, 3), big.mark = ","), fixed = TRUE)
  expect_match(page$ask("document.querySelector('#plot img').src"), "^data:image/png")
  expect_identical(page$ask("document.querySelectorAll('.shiny-output-error').length"), 0L)
})

test_that("a plain model and statistic have no sliders, and refusals are shown", {
  skip_on_cran()
  skip_if_not_installed("shiny")
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  app <- explore_design(model_bernoulli(), counts, mechanism = function(rho) mech_gaussian(rho = rho), replicates = 2, iter = 100)
  shiny::testServer(app, {
    session$setInputs(budget = 0, records = 2, compute = 1)
    expect_match(output$said, "^rho = 1, 100 records: ")
    expect_match(output$widths, "prob[b]", fixed = TRUE)
    expect_no_match(output$widths, "bounds|prob\\[a\\]")
    session$setInputs(budget = -400)
    expect_error(output$noise, "rho.* must be", class = "shiny.silent.error")
    session$setInputs(compute = 2)
    expect_error(output$widths, "rho.* must be", class = "shiny.silent.error")
  })
})

test_that("bad arguments are refused", {
  refused <- function(...) expect_error(explore_design(...), class = "noiseaware_error_argument")
  refused(1, make_statistic, bounds = limits)
  refused(make_model, make_statistic, bounds = limits)
  refused(make_model, make_statistic, bounds = limits, prior = c(2, 1))
  refused(model_lm(), make_statistic, bounds = limits, prior = c(1, 2))
  refused(model_lm(), make_statistic)
  refused(model_lm(), make_statistic, bounds = list(g = c("a", "b")))
  refused(model_lm(), make_statistic(limits), bounds = limits)
  refused(model_lm(), make_statistic(limits), mechanism = 1)
  refused(model_lm(), make_statistic(limits), mechanism = function() mech_laplace(epsilon = 1))
  refused(model_lm(), make_statistic(limits), epsilon = 0)
  refused(model_lm(), make_statistic(limits), n = 1.5)
  refused(model_lm(), make_statistic(limits), replicates = 1)
})
