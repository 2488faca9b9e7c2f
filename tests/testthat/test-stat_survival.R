# Survival tables: counts and curves against the records and against the life table's formulas.

ends <- c(0, 100, 250, 400, 800)
sexes <- list(sex = c("1", "2"))

drawn <- function(draws, name) matrix(draws[, , name], ncol = 2)

lung_exits <- function() survival_exits(survival::lung, Surv(time, status == 2) ~ sex, ends, sexes)

test_that("records become exits, counts those of the records", {
  skip_on_cran() # takes long; `make test` runs it
  lung <- survival::lung
  exits <- lung_exits()
  expect_identical(names(exits), c("exit", "sex"))
  expect_identical(as.character(exits$sex), as.character(lung$sex))
  at <- findInterval(lung$time, ends)
  for (j in 1:4) {
    label <- sprintf("[%g,%g)", ends[j], ends[j + 1])
    expect_identical(exits$exit == paste0("event", label), at == j & lung$status == 2)
    expect_identical(exits$exit == paste0("censored", label), at == j & lung$status == 1)
  }
  expect_identical(exits$exit == "after", lung$time >= 800)

  totals <- function(publish) internal("statistic_total")(stat_survival(~ sex, ends, sexes, publish), exits)
  entering <- totals("at_risk")
  leaving <- totals("censored")
  for (g in 1:2) for (j in 1:4) {
    cell <- sprintf("[%g,%g):sex=%d", ends[j], ends[j + 1], g)
    expect_identical(entering[[paste0("events", cell)]], sum(at == j & lung$status == 2 & lung$sex == g) + 0)
    expect_identical(entering[[paste0("at_risk", cell)]], sum(lung$time >= ends[j] & lung$sex == g) + 0)
    expect_identical(leaving[[paste0("censored", cell)]], sum(at == j & lung$status == 1 & lung$sex == g) + 0)
  }
  for (g in 1:2) expect_identical(entering[[paste0("after:sex=", g)]], sum(lung$time >= 800 & lung$sex == g) + 0)
  expect_length(entering, 18)
  expect_identical(stat_survival(~ 1, c(0, 10, 1000))$components, c("events[0,10)", "events[10,1000)", "censored[0,10)", "censored[10,1000)", "after"))
})

test_that("sensitivities are those of the worst pair of records", {
  for (groups in list(~ 1, ~ sex)) for (publish in c("at_risk", "censored")) {
    levels <- if (length(all.vars(groups))) sexes
    statistic <- stat_survival(groups, ends, levels, publish)
    records <- expand.grid(c(list(exit = internal("exit_levels")(ends)), levels))
    each <- t(vapply(seq_len(nrow(records)), function(i) internal("statistic_total")(statistic, records[i, , drop = FALSE]), statistic$queries$first[-1]))
    expect_equal(sensitivity(statistic), max(dist(each, "manhattan")))
    expect_equal(sensitivity(statistic, "L2"), max(dist(each)))
  }
})

test_that("with hardly any noise the curve is that of the life table", {
  skip_on_cran() # takes long; `make test` runs it
  exits <- lung_exits()
  statistic <- stat_survival(~ sex, ends, sexes, "at_risk")
  exact <- as_release(internal("statistic_total")(statistic, exits), statistic, mech_discrete_gaussian(sd = 0.1), n = nrow(exits))
  fit <- sample_posterior(exact, flat_table(), chains = 2, iter = 1100, seed = 1)
  for (g in 1:2) {
    # the exits' probabilities given the counts, drawn from their Dirichlet distribution
    counts <- table(exits$exit[exits$sex == g])
    weight <- withr::with_seed(g, matrix(stats::rgamma(4000 * length(counts), rep(counts + 1, each = 4000)), 4000))
    share <- weight / rowSums(weight)
    later <- 1 - t(apply(share, 1, cumsum))
    hazard <- sapply(1:4, function(j) share[, 2 * j - 1] / (share[, 2 * j - 1] + share[, 2 * j] / 2 + later[, 2 * j]))
    survival <- t(apply(1 - hazard, 1, cumprod))
    got <- survival_measures(fit)
    for (j in 1:4) {
      name <- sprintf("survival[%g]|sex=%d", ends[j + 1], g)
      expect_agreement(drawn(got, name), matrix(survival[, j], ncol = 2), label = name)
    }
    means <- survival_measures(fit, "restricted_mean")
    expected <- drop((survival + cbind(1, survival[, -4])) %*% diff(ends) / 2)
    expect_agreement(drawn(means, paste0("restricted_mean|sex=", g)), matrix(expected, ncol = 2), label = "restricted mean")
    halves <- survival_measures(fit, "median")
    by_line <- apply(survival, 1, function(s) stats::approx(c(1, s), ends, 0.5)$y)
    expect_agreement(drawn(halves, paste0("median|sex=", g)), matrix(by_line, ncol = 2), label = "median")
  }
  data <- survival_data(fit)
  expect_identical(data$mean[data$time == 0], c(1, 1))
  expect_true(all(diff(data$median[data$sex == "1"]) < 0))
})

test_that("narrow intervals come near Kaplan and Meier's curve, which knows the times", {
  narrow <- seq(0, 600, by = 60)
  exits <- survival_exits(survival::lung, Surv(time, status == 2) ~ 1, narrow)
  statistic <- stat_survival(~ 1, narrow)
  release <- as_release(internal("statistic_total")(statistic, exits), statistic, mech_discrete_gaussian(sd = 0.2), n = nrow(exits))
  data <- survival_data(sample_posterior(release, flat_table(), chains = 2, iter = 2000, seed = 1))
  by_time <- summary(survival::survfit(survival::Surv(time, status == 2) ~ 1, survival::lung), times = narrow[-1])
  expect_lt(max(abs(data$mean[-1] - by_time$surv)), 0.03)
  expect_true(all(data$lower[-1] < by_time$surv & by_time$surv < data$upper[-1]))
})

test_that("both forms of a release say the same where noise is nearly none, and the number of records may be unknown", {
  skip_on_cran() # takes long; `make test` runs it
  exits <- lung_exits()["exit"]
  curves <- lapply(c("at_risk", "censored"), function(publish) {
    statistic <- stat_survival(~ 1, ends, publish = publish)
    value <- internal("statistic_total")(statistic, exits)
    release <- as_release(value, statistic, mech_discrete_gaussian(sd = 0.2), n = nrow(exits))
    survival_data(sample_posterior(release, flat_table(), chains = 2, iter = 1100, seed = 2))
  })
  expect_equal(curves[[1]]$mean, curves[[2]]$mean, tolerance = 0.02)
  statistic <- stat_survival(~ 1, ends)
  release <- as_release(internal("statistic_total")(statistic, exits), statistic, mech_discrete_laplace(epsilon = 1), n = NULL)
  fit <- sample_posterior(release, flat_table(), prior_n = prior_n("poisson", mean = 230), chains = 2, iter = 1000, seed = 3)
  expect_equal(survival_data(fit)$mean, curves[[1]]$mean, tolerance = 0.05)
})

test_that("the median beyond the last break is infinite", {
  statistic <- stat_survival(~ 1, c(0, 1, 2))
  release <- as_release(c(3, 4, 0, 1, 92), statistic, mech_laplace(epsilon = 1), n = 100)
  fit <- sample_posterior(release, flat_table(), chains = 1, iter = 400, seed = 1)
  expect_identical(median(survival_measures(fit, "median")), Inf)
  expect_silent(ggplot2::ggplot_build(plot(fit, "survival")))
})

test_that("bad input is refused", {
  skip_on_cran()
  lung <- survival::lung
  fit <- sample_posterior(as_release(c(3, 5), stat_counts(~ exit, list(exit = c("a", "b"))), mech_laplace(epsilon = 1), n = 8), flat_table(),
                          chains = 1, iter = 100, seed = 1)
  refusals("formula", expression(stat_survival(time ~ sex, ends, sexes), stat_survival("sex", ends), stat_survival(~ sex:age, ends, sexes),
                                 stat_survival(~ exit, ends, list(exit = "a")), survival_exits(lung, time ~ sex, ends, sexes),
                                 survival_exits(lung, Surv(time) ~ 1, ends), survival_exits(lung, 3, ends)))
  refusals("bounds", expression(stat_survival(~ 1, c(0, 5, 3)), stat_survival(~ 1, c(0, 5, Inf)), stat_survival(~ 1, c(-1, 5, 8)), stat_survival(~ 1, c(0, 5))))
  refusals("levels", expression(stat_survival(~ sex, ends), stat_survival(~ sex, ends, list(age = "a")), survival_exits(lung, Surv(time, status == 2) ~ sex, ends),
                                survival_exits(lung, Surv(time, status == 2) ~ sex, ends, list(sex = c("1", "3")))))
  refusals("data", expression(survival_exits(3, Surv(time, status == 2) ~ 1, ends), survival_exits(lung, Surv(time, status) ~ 1, ends),
                              survival_exits(lung, Surv(times, status == 2) ~ 1, ends), survival_exits(lung, Surv(time, status == 2) ~ 1, ends + 10),
                              survival_exits(lung, Surv("a", status == 2) ~ 1, ends)))
  expect_error(stat_survival(~ 1, c(0, 5, Inf)), "0, 5, Inf.*after", class = "noiseaware_error_bounds")
  expect_error(release(lung, stat_survival(~ sex, ends, sexes), mech_discrete_laplace(epsilon = 1)), "survival_exits", class = "noiseaware_error_data")
  for (with in list(Surv(time, status == 2) ~ sex, survival::Surv(time, status == 2) ~ sex)) {
    expect_identical(stat_survival(with, ends, sexes)$components, stat_survival(~ sex, ends, sexes)$components)
  }
  refusals("missing", expression(survival_exits(transform(lung, time = replace(time, 3, NA)), Surv(time, status == 2) ~ 1, ends)))
  refusals("argument", expression(survival_measures(fit), survival_measures(3), plot(fit, "survival"), stat_survival(~ 1, ends, publish = "all"),
                                  survival_measures(fit, "mode"), plot(fit, "survival", level = 2)))
})

test_that("a time on a break is in the interval that begins there", {
  data <- data.frame(time = c(0, 100, 250, 400, 800, 99.9), status = c(1, 1, 0, 1, 1, 0))
  exits <- survival_exits(data, Surv(time, status == 1) ~ 1, ends)$exit
  expect_identical(as.character(exits), c("event[0,100)", "event[100,250)", "censored[250,400)", "event[400,800)", "after", "censored[0,100)"))
})

test_that("what functions in the formula say of records is not passed on", {
  seen <- data.frame(time = c(-2.5, 77), status = c(1, 0), name = c("secret", "1"))
  exits <- function(formula) survival_exits(seen, formula, c(0, 50, 100))
  formulas <- list(Surv(time, unknown_function(status)) ~ 1, Surv(time, stop(paste("secret", time[1]))) ~ 1,
                   Surv(match.arg(as.character(time), "a"), status) ~ 1, Surv(get(name), status) ~ 1)
  for (formula in formulas) {
    said <- expect_error(exits(formula), class = "noiseaware_error_data")
    told <- paste(message_lines(said), collapse = " ")
    expect_no_match(gsub("`[^`]*`", "", told), "secret|77|-2.5")
  }
  expect_silent(try(exits(Surv(log(time), status) ~ 1), silent = TRUE))
  expect_silent(try(exits(Surv(time, {
    warning("secret 77")
    message("secret 77")
    status
  }) ~ 1), silent = TRUE))
})
