# Noisy margins of one table, as lists and as JSON.

levels <- list(sex = c("f", "m"), smoke = c("no", "yes"))
noisy <- list(levels = levels, marginals = list(list(clique = "sex", values = c(7, 6), sd = 1),
                                                list(clique = c("smoke", "sex"), values = c(4, 4, 3, 1), sd = 2)))

test_that("marginals are a statistic each, the last variable fastest, from a list and from a file", {
  expected <- as_release(list(sex = c(7, 6), `smoke:sex` = c(4, 4, 3, 1)), list(sex = stat_counts(~ sex, levels["sex"]), `smoke:sex` = stat_counts(~ smoke:sex, levels)),
                         list(sex = mech_discrete_gaussian(sd = 1), `smoke:sex` = mech_discrete_gaussian(sd = 2)), NULL, "add_remove")
  expect_identical(read_release(noisy, format = "marginals", mechanism = mech_discrete_gaussian), expected)
  path <- withr::local_tempfile(lines = jsonlite::toJSON(noisy, auto_unbox = TRUE))
  expect_identical(read_release(path, format = "marginals", mechanism = mech_discrete_gaussian), expected)
  # the same clique twice; a level that JSON has as null
  twice <- read_release(list(levels = list(sex = list("f", "m", NULL)), marginals = rep(list(list(clique = "sex", values = c(7, 6, 0), scale = 3)), 2)), format = "marginals", mechanism = mech_laplace, n = 13)
  expect_identical(names(twice$statistic), c("sex", "sex.1"))
  expect_identical(twice$statistic$sex$components, c("sex=f", "sex=m", "sex=missing"))
  expect_identical(twice$mechanism$sex.1, mech_laplace(scale = 3))
})

test_that("the table given its noisy margins is that of enumeration", {
  fit <- sample_posterior(read_release(noisy, format = "marginals", mechanism = mech_discrete_gaussian, n = 12), flat_table(), chains = 2, iter = 2000, seed = 1)
  tables <- expand.grid(fn = 0:12, mn = 0:12, fy = 0:12, my = 0:12)
  tables <- tables[rowSums(tables) == 12, ] # all equally likely
  square <- function(z, s, sd) (z - s)^2 / (2 * sd^2)
  log_weight <- with(tables, -square(7, fn + fy, 1) - square(6, mn + my, 1) - square(4, fn, 2) - square(4, mn, 2) - square(3, fy, 2) - square(1, my, 2))
  counts <- denoise(fit, ~ sex:smoke)
  for (cell in c("fn", "my")) {
    name <- paste0("sex=", substr(cell, 1, 1), ":smoke=", c(n = "no", y = "yes")[[substr(cell, 2, 2)]])
    expect_same_mean(posterior::extract_variable_matrix(counts, name), weighted.mean(tables[[cell]], exp(log_weight)))
  }
})

test_that("a marginal that is not one is named", {
  skip_on_cran() # takes long; `make test` runs it
  changed <- function(...) {
    noisy$marginals[[2]] <- utils::modifyList(noisy$marginals[[2]], list(...))
    noisy
  }
  show(refusals(c("file", "argument"), alist(
    read_release(changed(clique = c("smoke", "age")), format = "marginals", mechanism = mech_gaussian),
    read_release(changed(clique = c("sex", "sex")), format = "marginals", mechanism = mech_gaussian),
    read_release(changed(values = c(4, 4, 3)), format = "marginals", mechanism = mech_gaussian),
    read_release(changed(sd = -1), format = "marginals", mechanism = mech_gaussian),
    read_release(changed(sigma = 1, weight = 1), format = "marginals", mechanism = mech_gaussian),
    read_release(c(noisy, version = 99), format = "marginals", mechanism = mech_gaussian),
    read_release(changed(scale = 1), format = "marginals", mechanism = mech_gaussian),
    read_release(list(levels = levels), format = "marginals", mechanism = mech_gaussian),
    read_release(list(levels = levels, marginals = "sex"), format = "marginals", mechanism = mech_gaussian),
    read_release(list(levels = levels, marginals = list("sex")), format = "marginals", mechanism = mech_gaussian),
    read_release(noisy, format = "marginals", mechanism = mech_exact)
  )))
})
