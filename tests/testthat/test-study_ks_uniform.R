ks_uniform <- internal("ks_uniform")

test_that("the distance is the one computed by hand", {
  # steps at 0.1, 0.4, 0.8: the gaps are 1/3 - 0.1, 2/3 - 0.4, 0.8 - 2/3
  expect_equal(ks_uniform(c(0.8, 0.1, 0.4))$statistic, 2 / 3 - 0.4)
  expect_equal(ks_uniform(c(0.5))$statistic, 0.5)
  expect_equal(ks_uniform(c(0.2, 0.3))$statistic, 0.7)
})

test_that("the p value is exact for few: P(D_1 > d) = 2 (1 - d), P(D_2 > d) by hand", {
  expect_equal(ks_uniform(0.9)$p.value, 2 * (1 - 0.9))
  # n = 2, d >= 1/2: P(D > d) = 2 (1 - d)^2
  expect_equal(ks_uniform(c(0.2, 0.3))$p.value, 2 * 0.3^2)
})

test_that("a calibration has a row for each variable", {
  cal <- calibrate_known(known_sampler(), 30)
  table <- ks_uniform(cal)
  expect_identical(names(table), c("variable", "statistic", "p.value", "critical"))
  expect_equal(table$statistic[1], ks_uniform(cal$results$quantile[cal$results$variable == "mean"])$statistic)
  expect_error(ks_uniform(c(0.1, 1.2)), class = "noiseaware_error_argument")
  expect_error(ks_uniform("a"), class = "noiseaware_error_argument")
})

test_that("the simultaneous band holds uniforms with its probability", {
  skip_on_cran()
  ecdf_band <- internal("ecdf_band")
  set.seed(1)
  for (count in c(20, 150)) {
    band <- ecdf_band(count, prob = 0.95)
    inside <- replicate(4000, {
      height <- findInterval(band$at, sort(runif(count))) / count
      all(height >= band$lower - 1e-9 & height <= band$upper + 1e-9)
    })
    # discrete counts: at least, and not much more
    expect_gt(pbinom(sum(inside), 4000, 0.95), 1e-6)
    expect_lt(mean(inside), 0.975)
  }
  # one point: the exact probability of the binomial interval
  expect_equal(internal("band_probability")(list(lower = 3, upper = 7), 10, 2), sum(dbinom(3:7, 10, 0.5)))
  # two points, by enumeration of the multinomial
  cells <- expand.grid(a = 0:6, b = 0:6)
  cells <- cells[cells$a + cells$b <= 6, ]
  mass <- apply(cells, 1, function(k) dmultinom(c(k, 6 - sum(k)), prob = rep(1, 3)))
  held <- cells$a >= 1 & cells$a <= 4 & cells$a + cells$b >= 3 & cells$a + cells$b <= 5
  expect_equal(internal("band_probability")(list(lower = c(1, 3), upper = c(4, 5)), 6, 3), sum(mass[held]))
})

test_that("the critical value is that of the exact table", {
  # for 20 observations 0.35241 at the level of one per cent
  expect_equal(ks_uniform(seq(0.02, 0.98, length.out = 20))$critical, 0.35241, tolerance = 0.005)
})
