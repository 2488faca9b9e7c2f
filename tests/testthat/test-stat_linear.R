# Subsets of a statistic's components, and linear queries of them.

ages <- stat_counts(~ age, levels = list(age = c("a", "b", "c", "d")))
crossed <- stat_counts(~ g + g:h, levels = list(g = c("u", "v", "w"), h = c("no", "yes")))
cross <- stat_crossprod(y ~ x + z, bounds = list(y = c(0, 10), x = c(-1, 1), z = c(5, 7)))
summed <- c("totals", "cells")
wide_totals <- Filter(function(st) st$kind %in% summed, wide_statistics)

# with weights that tell components apart
some_queries <- function(st) {
  d <- length(st$components)
  set.seed(d)
  weights <- matrix(round(rnorm(3 * d), 2), 3, dimnames = list(c("p", "q", "r"), st$components))
  weights[1, -seq_len(min(2, d))] <- 0
  weights
}

random_data <- function(st, n) {
  columns <- split(st$columns, factor(st$columns$variable, unique(st$columns$variable)))
  as.data.frame(lapply(columns, function(column) {
    levels <- st$levels[[column$variable[1]]]
    if (is.null(levels)) runif(n, column$lower - 1, column$upper + 1) else factor(sample(levels, n, TRUE), levels)
  }))
}

# ---- what is summed --------------------------------------------------------------

test_that("queries of every statistic are the same queries of its totals, record by record too", {
  set.seed(1)
  totals <- internal("statistic_total")
  for (st in wide_totals) {
    data <- random_data(st, 700)
    weights <- some_queries(st)
    query <- stat_linear(st, weights)
    expect_equal(totals(query, data), drop(weights %*% totals(st, data)))
    some <- if (length(st$components) > 1L) st$components[-1] else st$components
    expect_identical(stat_subset(st, rev(some))$components, some)
    expect_equal(totals(stat_subset(st, some), data), totals(st, data)[some])
    x <- internal("record_matrix")(data, st$columns, st$levels)
    each <- function(s) .Call(internal("ffi_stat_eval"), internal("statistic_spec")(s), x)
    expect_equal(each(query), unname(each(st) %*% t(weights)))
  }
})

test_that("queries of queries, names, groups, cumulative counts and means", {
  groups <- stat_linear(ages, list(low = c("age=a", "age=b"), high = c("age=d", "age=c"), gap = c(`age=a` = 1, `age=b` = -1, `age=c` = 0)))
  expect_identical(groups$components, c("low", "high", "gap"))
  data <- data.frame(age = rep(c("a", "b", "c", "d"), 1:4))
  totals <- internal("statistic_total")
  expect_identical(totals(groups, data), c(low = 3, high = 7, gap = -1))
  again <- stat_linear(groups, list(all = c("low", "high"), twice = c(low = 2, gap = 2)))
  expect_identical(totals(again, data), c(all = 10, twice = 4))
  expect_identical(again$statistic, ages)
  weights <- rbind(all = 1, twice = c(`age=d` = 0, `age=c` = 0, `age=b` = 0, `age=a` = 4))
  colnames(weights) <- rev(ages$components)
  expect_identical(totals(stat_linear(ages, weights), data), c(all = 10, twice = 4))
  expect_identical(totals(stat_cumulative(ages), data), c(`age<=a` = 1, `age<=b` = 3, `age<=c` = 6))
  expect_equal(totals(stat_means(ages, 10), data), c(`mean(age=a)` = 0.1, `mean(age=b)` = 0.2, `mean(age=c)` = 0.3, `mean(age=d)` = 0.4))
  expect_identical(stat_subset(cross, c("y:x", "z:x", "y"))$components, c("y", "y:x", "x:z"))
  expect_identical(stat_subset(ages, ages$components), ages)
  expect_identical(supported(statistic = stat_subset(ages, "age=a")), supported(statistic = "counts"))
})

# ---- sensitivity --------------------------------------------------------------------

test_that("the sensitivity of queries of counts is the largest distance between two records", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  far <- function(st) {
    combinations <- expand.grid(lapply(st$levels, identity), stringsAsFactors = FALSE)
    added <- t(vapply(seq_len(nrow(combinations)), function(i) internal("statistic_total")(st, combinations[i, , drop = FALSE]), numeric(length(st$components))))
    if (length(st$components) == 1L) added <- t(added)
    list(L1 = list(replace = max(dist(added, "manhattan")), add_remove = max(rowSums(abs(added)))),
         L2 = list(replace = max(dist(added)), add_remove = max(sqrt(rowSums(added^2)))))
  }
  three <- stat_counts(~ a + b:c, levels = list(a = c("0", "1"), b = c("0", "1"), c = c("0", "1", "2")))
  for (st in list(ages, crossed, three)) {
    tried <- c(lapply(1:12, function(k) stat_subset(st, sample(st$components, sample(length(st$components) - 1, 1)))),
               lapply(1:6, function(k) stat_linear(st, matrix(sample(-2:2, 2 * length(st$components), TRUE) + 0.5, 2, dimnames = list(c("p", "q"), NULL)))))
    for (query in tried) {
      exact <- far(query)
      for (norm in names(exact)) for (kind in names(exact[[norm]])) expect_equal(sensitivity(query, norm, kind), exact[[norm]][[kind]])
    }
  }
  expect_identical(sensitivity(stat_subset(ages, "age=a"), "L1"), 1)
  expect_identical(sensitivity(stat_subset(ages, c("age=a", "age=d")), "L1"), 2)
  # too many records to be listed: one margin is exact still, several are a bound
  big <- stat_counts(~ a, levels = list(a = 1:5000))
  expect_identical(sensitivity(stat_subset(big, c("a=1", "a=77", "a=4999")), "L2"), sqrt(2))
  expect_identical(sensitivity(stat_cumulative(stat_counts(~ a, levels = list(a = 1:100))), "L1"), 99)
  pair <- stat_counts(~ a + b, levels = list(a = 1:50, b = 1:50))
  expect_identical(sensitivity(stat_subset(pair, c("a=1", "b=1", "b=2")), "L1"), 3)
  expect_identical(sensitivity(stat_subset(pair, c("a=1", "b=1", "b=2")), "L2"), sqrt(3))
  expect_identical(sensitivity(stat_subset(pair, c("a=1", "b=1", "b=2")), "L1", "add_remove"), 2)
})

test_that("the sensitivity of queries of clamped numbers is never below what two records give, and tight for products", {
  skip_on_cran() # takes long; `make test` runs it
  corners <- as.matrix(expand.grid(rep(list(c(-1, -0.5, 0, 0.25, 1)), 3)))
  n <- nrow(corners)
  pairs <- expand.grid(seq_len(n), seq_len(n))
  whole <- internal("monomial_degrees")(cross)
  added <- sapply(seq_along(cross$components), function(k) corners[, whole$first[k]] * (if (is.na(whole$second[k])) 1 else corners[, whole$second[k]]))
  set.seed(3)
  squares <- which(whole$first == whole$second)
  for (k in 1:30) {
    at <- sort(sample(length(cross$components), sample(1:8, 1)))
    query <- stat_subset(cross, cross$components[at])
    change <- added[pairs[, 1], at, drop = FALSE] - added[pairs[, 2], at, drop = FALSE]
    reached <- c(L1 = max(rowSums(abs(change))), L2 = sqrt(max(rowSums(change^2))))
    for (norm in names(reached)) {
      expect_gte(sensitivity(query, norm), reached[[norm]] - 1e-12)
      expect_lte(sensitivity(query, norm), sensitivity(cross, norm))
      if (!any(at %in% squares)) expect_equal(sensitivity(query, norm), reached[[norm]])
    }
    alone <- added[, at, drop = FALSE]
    expect_equal(sensitivity(query, "L1", "add_remove"), max(rowSums(abs(alone))))
    expect_equal(sensitivity(query, "L2", "add_remove"), sqrt(max(rowSums(alone^2))))
    weights <- some_queries(cross)
    expect_gte(sensitivity(stat_linear(cross, weights), "L2", "add_remove"), sqrt(max(rowSums((added %*% t(weights))^2))))
    change <- (added[pairs[, 1], ] - added[pairs[, 2], ]) %*% t(weights)
    expect_gte(sensitivity(stat_linear(cross, weights), "L1"), max(rowSums(abs(change))))
    expect_gte(sensitivity(stat_linear(cross, weights), "L2"), sqrt(max(rowSums(change^2))))
  }
  sums <- stat_sums(~ x, bounds = list(x = c(2, 7)))
  expect_equal(sensitivity(stat_means(sums, 20), "L1"), 5 / 20)
  custom <- wide_statistics$custom
  expect_identical(sensitivity(stat_subset(custom, "low"), "L1"), 8)
  plain <- stat_custom(function(r) cbind(r[, "x"], 1), c("low", "high"), 1, list(x = c(0, 1)))
  expect_error(sensitivity(stat_subset(plain, "low"), "L1", "add_remove"), class = "noiseaware_error_neighbours")
})

test_that("limits of the totals hold, and are attained by counts", {
  set.seed(4)
  for (st in wide_totals) {
    query <- stat_linear(st, some_queries(st))
    limits <- internal("component_limits")(query)
    if (is.null(limits)) next
    data <- random_data(st, 400)
    x <- internal("record_matrix")(data, st$columns, st$levels)
    values <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(query), x)
    rounding <- 1e-12 * max(abs(limits))
    expect_true(all(t(values) >= limits[, 1] - rounding & t(values) <= limits[, 2] + rounding))
    # every cell of the margin g is crossed with both of h
    if (inherits(st, "stat_counts")) expect_lt(max(abs(apply(values, 2, range) - t(limits))), 5)
  }
  expect_identical(internal("component_limits")(stat_linear(ages, list(all = ages$components, most = ages$components[-1]))), cbind(c(1, 0), c(1, 1)))
})

# ---- releases ------------------------------------------------------------------------------

test_that("as_release() takes fewer numbers if they are named", {
  laplace <- mech_laplace(epsilon = 1)
  rel <- as_release(c(`x:y` = 2, y = 1), cross, laplace, 50)
  expect_identical(rel$statistic, stat_subset(cross, c("y", "y:x")))
  expect_identical(rel$value, c(y = 1, `y:x` = 2))
  expect_identical(rel, as_release(c(1, 2), stat_subset(cross, c("y", "y:x")), laplace, 50))
  expect_identical(as_release(c(d = 3, a = 1), ages, laplace, 9)$value, c(`age=a` = 1, `age=d` = 3))
  whole <- as_release(1:4, ages, laplace, 9)
  expect_identical(as_release(c(a = 1, c = 3, b = 2, d = 4), ages, laplace, 9), whole)
  # scales one by one belong to the whole statistic, or to what was published
  expect_identical(as_release(c(d = 3, a = 1), ages, mech_laplace(scale = 1:4), 9)$scale, c(`age=a` = 1, `age=d` = 4))
  named <- c(`age=d` = 4, `age=b` = 2, `age=a` = 1, `age=c` = 3)
  expect_identical(as_release(c(d = 3, a = 1), ages, mech_gaussian(sd = named), 9)$scale, c(`age=a` = 1, `age=d` = 4))
  expect_identical(as_release(c(d = 3, a = 1), ages, mech_laplace(scale = c(`age=d` = 5, `age=a` = 6)), 9)$scale, c(`age=a` = 6, `age=d` = 5))
  # several statistics
  statistics <- list(t = cross, c = ages)
  mechanisms <- list(t = laplace, c = mech_laplace(scale = 2))
  both <- as_release(list(t = c(y = 1), c = 1:4), statistics, mechanisms, 9)
  expect_identical(both$value, c(`t: y` = 1, `c: age=a` = 1, `c: age=b` = 2, `c: age=c` = 3, `c: age=d` = 4))
  expect_identical(as_release(both$value, statistics, mechanisms, 9), both)
  show(refusals("value", alist(
    as_release(c(`age=a` = 1, `age=e` = 2), ages, laplace, 9),
    as_release(c(`age=a` = 1, `age=a` = 2), ages, laplace, 9),
    as_release(c(1, 2), ages, laplace, 9),
    as_release(c(`age=a` = 1, `age=b` = NA), ages, laplace, 9),
    as_release(list(t = c(q = 1), c = 1:4), statistics, mechanisms, 9),
    as_release(c(`x[1]` = 1), stat_records(~ x, bounds = list(x = c(0, 1))), laplace, 2)
  )))
})

test_that("bad subsets and queries are refused by name", {
  skip_on_cran() # takes long; `make test` runs it
  weights <- matrix(1, 2, 4, dimnames = list(c("p", "q"), NULL))
  show(refusals("argument", alist(
    stat_subset(ages, "age=e"),
    stat_subset(ages, c("age=a", "age=a")),
    stat_subset(ages, character()),
    stat_subset(ages, 1),
    stat_subset(stat_records(~ x, bounds = list(x = c(0, 1))), "x"),
    stat_linear(ages, list("age=a")),
    stat_linear(ages, list(p = "age=e")),
    stat_linear(ages, list(p = c("age=a", "age=a"))),
    stat_linear(ages, list(p = c(1, 2))),
    stat_linear(ages, list(p = c(`age=a` = NA))),
    stat_linear(ages, list(p = c(`age=a` = 0))),
    stat_linear(ages, weights[, 1:3]),
    stat_linear(ages, `rownames<-`(weights, NULL)),
    stat_linear(ages, weights * c(1, 0)),
    stat_linear(ages, `colnames<-`(weights, c("a", "b", "c", "d"))),
    stat_cumulative(crossed),
    stat_means(~ age, 10),
    stat_means(ages, 0)
  )))
})

test_that("means over a noisy number of records are the totals that had the noise", {
  noise <- list(size = mech_laplace(epsilon = 0.5), total = mech_laplace(epsilon = 1))
  described <- function(value, total, mechanism = noise) {
    as_release(value, stat_means(total, n = NULL), mechanism, n = NULL, neighbours = "add_remove")
  }
  visits <- stat_sums(~ visits, bounds = c(0, 20))
  plain <- as_release(list(size = c(n = 80), total = c(visits = 240)), list(size = stat_size(), total = visits), noise, n = NULL, neighbours = "add_remove")
  expect_identical(described(c(n = 80, visits = 3), visits), plain)
  expect_identical(described(list(`mean(visits)` = 3, n = 80), visits), plain)
  # a mean of the variable about a middle is a total of deviations
  ages <- stat_sums(~ age + size, bounds = list(age = c(18, 90), size = c(0, 4)), centre = c(age = 54, size = 1))
  expect_equal(described(c(size = 3, n = 50, age = 50), ages)$value, c("size: n" = 50, "total: (age)" = -200, "total: (size)" = 100))
  # a share of two noisy counts
  answers <- stat_counts(~ smoke, list(smoke = c("no", "yes")))
  expect_equal(unname(described(c(n = 80, "smoke=yes" = 0.3, "smoke=no" = 0.7), answers)$value), c(80, 56, 24))
  for (value in list(3, c(visits = 3), c(n = 80, visit = 3), c(n = 80, visits = 3, other = 1), c(n = 0, visits = 3), c(n = NA, visits = 3), "a")) {
    expect_error(described(value, visits), class = "noiseaware_error_value")
  }
  expect_error(described(c(n = 80, visits = 3), visits, replace(noise, "total", list(published(mech_laplace(scale = 20), round = 1)))),
               "without later processing", class = "noiseaware_error_argument")
})

test_that("a release of a subset prints, plots, is written and read, and is made", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  data <- random_data(crossed, 300)
  query <- stat_linear(crossed, list(`u or v` = c("g=u", "g=v"), gap = c(`g=u:h=no` = 1, `g=w:h=yes` = -1), mean = c(`g=w` = 1 / 300)))
  for (st in list(stat_subset(crossed, c("g=v", "g=w:h=yes")), query, stat_subset(cross, c("x", "y:z")), stat_linear(cross, some_queries(cross)))) {
    rel <- release(random_data(st, 300), st, mech_laplace(epsilon = 1))
    expect_identical(names(rel$value), st$components)
    expect_true(all(rel$scale >= sensitivity(st, "L1") & rel$scale <= sensitivity(st, "L1") * 1.001))
    path <- withr::local_tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
    limits <- as.data.frame(rel)
    expect_true(all(limits$lower < limits$upper))
    expect_s3_class(plot(rel), "ggplot")
  }
  # the noise is the subset's
  set.seed(6)
  exact <- internal("statistic_total")(query, data)
  values <- replicate(700, simulate_release(data, query, mech_laplace(epsilon = 1))$value - exact)
  expect_equal(apply(values, 1, sd) / noise_sd(as_release(unname(exact), query, mech_laplace(epsilon = 1), 300)), c(1, 1, 1), tolerance = 0.1, ignore_attr = TRUE)
  show(capture.output(print(as_release(c(`g=v` = 12, `g=w:h=yes` = 40), crossed, mech_laplace(epsilon = 1), 300)), print(query)))
  whole <- release(data, stat_subset(crossed, "g=u"), mech_discrete_laplace(epsilon = 1))
  expect_identical(unname(whole$granularity), 1)
})

test_that("a file of queries that are not well formed is not read", {
  rel <- as_release(c(p = 1, q = 2), stat_linear(ages, list(p = "age=a", q = c(`age=a` = 0.5, `age=d` = 2))), mech_laplace(epsilon = 1), 9)
  path <- withr::local_tempfile(fileext = ".json")
  write_release(rel, path)
  text <- readLines(path)
  change <- function(from, to) {
    changed <- sub(from, to, text)
    expect_false(identical(changed, text))
    writeLines(changed, path)
    expect_error(read_release(path), class = "noiseaware_error_file")
  }
  change("\"age=d\": 2", "\"age=e\": 2")
  change("\"age=d\": 2", "\"age=d\": 3")
  change("\"age=d\": 2", "\"age=d\": \"2\"")
  change("\"p\": [{].*", "\"p\": {")
  change("\"name\": \"counts\"", "\"name\": \"linear\"")
  writeLines(text, path)
  expect_identical(read_release(path), rel)
})

# ---- posteriors ---------------------------------------------------------------------------------

# Exact posterior mean of a categorical variable's probabilities given noisy queries of its counts: all tables.
table_posterior <- function(weights, value, scale, n, alpha = 1, kernel = "absolute") {
  k <- ncol(weights)
  tables <- as.matrix(expand.grid(rep(list(0:n), k)))
  tables <- tables[rowSums(tables) == n, , drop = FALSE]
  log_weight <- rowSums(lgamma(alpha + tables) - lgamma(tables + 1)) + log_noise(kernel, scale, value, tables %*% t(weights))
  weight <- exp(log_weight - max(log_weight))
  list(prob = colSums(weight * (alpha + tables)) / sum(weight) / (n + k * alpha), queries = colSums(weight * tables %*% t(weights)) / sum(weight))
}

test_that("posteriors of subsets and of queries of counts are exact", {
  skip_on_cran()
  cases <- list(
    subset = stat_subset(ages, "age=b"),
    two = stat_subset(ages, c("age=a", "age=d")),
    groups = stat_linear(ages, list(low = c("age=a", "age=b"), gap = c(`age=c` = 1, `age=d` = -2))),
    cumulative = stat_cumulative(ages),
    means = stat_means(ages, 5)
  )
  for (name in names(cases)) {
    query <- cases[[name]]
    weights <- t(internal("query_matrix")(query))
    value <- drop(weights %*% c(0, 4, 1, 0)) + 0.3
    for (mechanism in list(mech_laplace(scale = max(abs(weights))), mech_gaussian(sd = max(abs(weights))))) {
      rel <- as_release(value, query, mechanism, 5)
      exact <- table_posterior(weights, value, rel$scale, 5, kernel = mechanism$kernel)
      for (method in c("augment", "collapse")) {
        fit <- sample_posterior(rel, flat_categorical(), method = method, chains = 2, iter = 2000, warmup = 600, seed = 1)
        for (k in 1:4) expect_same_mean(parameter_draws(fit, paste0("prob[", letters[k], "]")), exact$prob[k])
        imputed <- denoise(fit)
        expect_identical(posterior::variables(imputed), query$components)
        for (k in seq_along(query$components)) expect_same_mean(matrix(imputed[, , k], ncol = 2), exact$queries[k])
      }
    }
  }
})

test_that("queries of a variable's counts move as they are: with fractions, beside counts, of unknown n, cut in two", {
  skip_on_cran()
  st <- list(f = stat_linear(ages, list(p = c(`age=a` = 0.3, `age=b` = -0.7), q = c(`age=b` = 1 / 3, `age=c` = 1, `age=d` = 0.1))), c = stat_subset(ages, "age=a"))
  rel <- as_release(list(f = c(0.4, 1.1), c = 2.6), st, list(f = mech_gaussian(sd = 0.5), c = mech_laplace(scale = 1)), 5)
  weights <- rbind(t(internal("query_matrix")(st$f)), c(1, 0, 0, 0))
  tables <- as.matrix(expand.grid(rep(list(0:5), 4)))
  tables <- tables[rowSums(tables) == 5, ]
  noise <- log_noise("squared", c(0.5, 0.5), c(0.4, 1.1), tables %*% t(weights[1:2, ])) + log_noise("absolute", 1, 2.6, tables %*% weights[3, ])
  weight <- exp(noise - max(noise))
  exact <- colSums(weight * (1 + tables)) / sum(weight) / 9
  fit <- sample_posterior(rel, flat_categorical(), chains = 2, iter = 4100, warmup = 600, seed = 1)
  expect_identical(fit$method, "collapse")
  for (k in 1:4) expect_same_mean(parameter_draws(fit, paste0("prob[", letters[k], "]")), exact[k])
  expect_equal(colMeans(matrix(denoise(fit), ncol = 3)), unname(drop(colSums(weight * tables %*% t(weights)) / sum(weight))), tolerance = 0.05)
  half <- sample_posterior(rel, flat_categorical(), chains = 1, iter = 60, warmup = 30, seed = 2)
  whole <- sample_posterior(rel, flat_categorical(), chains = 1, iter = 120, warmup = 30, seed = 2)
  expect_identical(extend(half, 60)$draws, whole$draws)
  expect_identical(denoise(extend(half, 60)), denoise(whole))
  # of n unknown: the same where n is published with little noise
  groups <- stat_linear(ages, list(low = c("age=a", "age=b"), high = c("age=c", "age=d")))
  unknown <- as_release(list(g = c(3.2, 1.6), n = 5), list(g = groups, n = stat_size()), list(g = mech_laplace(scale = 1), n = mech_laplace(scale = 0.01)), NULL, "add_remove")
  known <- as_release(c(3.2, 1.6), groups, mech_laplace(scale = 1), 5, "add_remove")
  means <- lapply(list(unknown, known), function(rel) coef(sample_posterior(rel, flat_categorical(), chains = 2, iter = 3000, seed = 3))[paste0("prob[", letters[1:4], "]")])
  expect_equal(means[[1]], means[[2]], tolerance = 0.05)
  features <- as_release(c(1, 2), stat_linear(crossed, list(p = c("g=u", "g=v"), q = "g=w")), mech_laplace(epsilon = 1), 5)
  expect_error(sample_posterior(features, model_naive_bayes("g"), method = "collapse"), class = "noiseaware_error_method")
})

test_that("one count of a binary variable: every method", {
  skip_on_cran()
  asked <- stat_counts(~ answer, levels = list(answer = c("no", "yes")))
  rel <- as_release(c(yes = 4.6), asked, mech_laplace(epsilon = 0.8), 6)
  expect_identical(rel$scale, c(`answer=yes` = 1 / 0.8))
  exact <- table_posterior(rbind(c(0, 1)), 4.6, 1 / 0.8, 6)
  for (method in c("augment", "collapse")) {
    fit <- sample_posterior(rel, model_bernoulli(), method = method, chains = 2, iter = 4100, warmup = 600, seed = 2)
    expect_same_mean(parameter_draws(fit, "prob[yes]"), exact$prob[2])
  }
  expect_identical(fit$method, sample_posterior(rel, model_bernoulli(), chains = 1, iter = 20, seed = 1)$method)
  large <- as_release(c(yes = 412), asked, mech_laplace(epsilon = 1), 500)
  mean_of <- function(method) coef(sample_posterior(large, model_bernoulli(), method = method, chains = 2, iter = 2100, seed = 3))[[1]]
  expect_equal(mean_of("clt"), mean_of("collapse"), tolerance = 0.005)
  expect_equal(mean_of("naive"), 413 / 502, tolerance = 0.005)
})

test_that("a component that was not published is one with noise without limit", {
  skip_on_cran()
  huge <- 1e17
  value <- c(y = 3, x = -2, z = 1, `y^2` = 9, `y:x` = 2, `y:z` = 3, `x^2` = 6, `x:z` = -1, `z^2` = 7)
  published <- c("y", "x", "y:x", "x^2")
  scale <- ifelse(names(value) %in% published, 4, huge)
  for (mechanism in list(function(scale) mech_laplace(scale = scale), function(sd) mech_gaussian(sd = sd))) {
    releases <- list(as_release(value[published], cross, mechanism(4), 40), as_release(value, cross, mechanism(scale), 40))
    # plain sweeps make the same decisions
    draws <- lapply(releases, function(rel) {
      as.numeric(sample_posterior(rel, model_lm(y ~ x + z), method = "augment", chains = 1, iter = 60, seed = 4, control = list(passes = 0))$draws)
    })
    expect_equal(draws[[1]], draws[[2]], tolerance = 1e-6)
    # trajectories see the same density
    bound <- internal("bind_model")(model_lm(y ~ x + z, prior_nig()), cross)
    problems <- lapply(releases, internal("collapse_problem"), bound)
    state <- internal("start_chain")(problems[[1]], bound, c(1, 2), 1, NULL)
    q <- state$store[1:9] + 0.1
    density <- lapply(problems, function(problem) .Call(internal("ffi_collapse_density"), problem, state, q))
    expect_equal(density[[1]], density[[2]])
    expect_gt(abs(density[[1]][1] - .Call(internal("ffi_collapse_density"), internal("collapse_problem")(as_release(value, cross, mechanism(4), 40), bound), state, q)[1]), 0.01)
  }
  counts <- stats::setNames(c(5, 9, 6, 2, 3, 4, 5, 3, 3), crossed$components)
  kept <- c("g=v", "g=u:h=no", "g=w:h=yes")
  scale <- ifelse(names(counts) %in% kept, 2, huge)
  releases <- list(as_release(counts[kept], crossed, mech_laplace(scale = 2), 20), as_release(counts, crossed, mech_laplace(scale = scale), 20))
  fits <- lapply(releases, sample_posterior, model_naive_bayes("g"), chains = 1, iter = 7200, seed = 4)
  expect_equal(as.numeric(fits[[1]]$draws), as.numeric(fits[[2]]$draws))
  fit <- sample_posterior(releases[[1]], model_naive_bayes("g"), method = "augment", chains = 2, iter = 3600, seed = 4)
  exact <- coef(fits[[1]])
  for (name in names(exact)) expect_lt(abs(mean(parameter_draws(fit, name)) - exact[[name]]), 0.02)
})

test_that("totals divided by a public n are those totals", {
  skip_on_cran()
  totals <- c(40, 190)
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 10)), rescale = FALSE)
  means <- as_release(totals / 20, stat_means(st, 20), mech_laplace(scale = c(3, 30) / 20), 20)
  plain <- as_release(totals, st, mech_laplace(scale = c(3, 30)), 20)
  for (method in c("augment", "collapse")) {
    iter <- if (method == "augment") 200 else 10
    # long trajectories of all records would make much of the last bits
    control <- if (method == "augment") list(passes = 4) else list()
    fits <- lapply(list(means, plain), sample_posterior, model_normal(), method = method, chains = 1, iter = iter, seed = 5, control = control)
    expect_equal(as.numeric(fits[[1]]$draws), as.numeric(fits[[2]]$draws))
    expect_equal(as.numeric(denoise(fits[[1]])), as.numeric(denoise(fits[[2]])) / 20)
  }
  fits <- lapply(list(means, plain), sample_posterior, model_normal(), method = "naive", seed = 5)
  expect_equal(as.numeric(fits[[1]]$draws), as.numeric(fits[[2]]$draws))
  fits <- lapply(list(means, plain), sample_posterior, model_normal(), method = "clt", chains = 2, iter = 3000, seed = 5)
  expect_equal(coef(fits[[1]]), coef(fits[[2]]), tolerance = 0.05)
})

test_that("the moments of queries are the queries of the moments", {
  distribution <- function(rel, model) internal("released_distribution")(internal("bind_model")(model, rel$statistic), rel, NULL)
  laplace <- mech_laplace(epsilon = 1)
  check <- function(st, model, theta_of) {
    weights <- some_queries(st)
    d <- length(st$components)
    query <- as_release(rep(1, 3), stat_linear(st, weights), laplace, 30)
    whole <- as_release(rep(1, d), st, laplace, 30)
    bound <- internal("bind_model")(model, st)
    theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(1, 2)), 1L)$theta
    of <- lapply(list(query, whole), function(rel) distribution(rel, model))
    moments <- lapply(of, function(o) .Call(internal("ffi_clt_moments"), o$spec, theta)[[1]])
    map <- rbind(cbind(weights, matrix(0, 3, length(moments[[2]]$mean) - d)), diag(length(moments[[2]]$mean)))
    expect_equal(moments[[1]]$mean, unname(drop(map %*% moments[[2]]$mean)))
    expect_equal(moments[[1]]$cov, unname(map %*% moments[[2]]$cov %*% t(map)))
    if (isTRUE(of[[1]]$innovations)) {
      u <- matrix(rnorm(200), ncol = 1)
      r <- c(0.5, -1, 2)
      formed <- Map(function(o, r) .Call(internal("ffi_clt_form"), o$spec, theta, 30, u, r), of, list(r, drop(r %*% weights)))
      expect_equal(formed[[1]]$total[1:3], unname(drop(weights %*% formed[[2]]$total)))
      expect_equal(formed[[1]][c("pull", "gradient")], formed[[2]][c("pull", "gradient")])
    }
  }
  set.seed(7)
  check(cross, model_lm())
  check(crossed, model_naive_bayes("g"))
  check(stat_sums(~ x + I(x^2), bounds = list(x = c(0, 10)), rescale = FALSE), model_normal())
})

test_that("clt agrees with collapse on a subset of a regression's totals", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
  rel <- as_release(c(y = 20, x = -4, `y^2` = 15, `x:y` = 11, `x^2` = 21), st, mech_gaussian(sd = 2), 1000)
  some <- as_release(rel$value[c("y", "x^2", "y:x")], st, mech_gaussian(sd = 2), 1000)
  prior <- model_lm(prior = prior_nig(rate = 2), covariates = fixed(list(mean = 0, cov = 2)))
  fits <- lapply(c("clt", "collapse"), function(method) sample_posterior(some, prior, method = method, chains = 2, iter = 3000, seed = 6))
  expect_equal(coef(fits[[1]]), coef(fits[[2]]), tolerance = 0.1)
  expect_equal(diag(vcov(fits[[1]])), diag(vcov(fits[[2]])), tolerance = 0.2)
  expect_error(sample_posterior(some, prior, method = "naive"), class = "noiseaware_error_method")
})

test_that("naive takes what determines the whole", {
  rel <- as_release(c(3.5, 6.5, 8.5), stat_cumulative(ages), mech_laplace(epsilon = 1), 10)
  whole <- internal("determined_release")(rel, NULL)
  expect_equal(whole$value, c(`age=a` = 3.5, `age=b` = 3, `age=c` = 2, `age=d` = 1.5))
  three <- as_release(c(`age=a` = 1, `age=b` = 2), ages, mech_laplace(epsilon = 1), 10)
  expect_error(sample_posterior(three, model_categorical(), method = "naive"), "age=[cd]", class = "noiseaware_error_method")
})

test_that("a release of queries can be checked against its replicates and calibrated", {
  skip_on_cran()
  rel <- as_release(c(12, 4), stat_linear(ages, list(low = c("age=a", "age=b"), d = "age=d")), mech_laplace(epsilon = 1), 20)
  fit <- sample_posterior(rel, flat_categorical(), chains = 2, iter = 1000, seed = 7)
  expect_identical(fit$method, "collapse")
  data <- check_of(fit, draws = 50, seed = 1)
  expect_identical(data$component, c("low", "d"))
  cal <- calibrate(flat_categorical(), rel$statistic, mech_laplace(epsilon = 1), n = 15, replicates = 45, method = "augment", chains = 1, iter = 600, seed = 8)
  expect_gt(min(summary(cal)$p.value), 1e-3)
})

test_that("joint distributions of queries under augment", {
  skip_on_cran()
  set.seed(9)
  query <- stat_linear(stat_counts(~ x, levels = list(x = c("a", "b", "c"))), list(ab = c("x=a", "x=b"), gap = c(`x=a` = 1, `x=c` = -1)))
  draws <- geweke(flat_categorical(), query, mech_laplace(scale = 1), n = 4, iterations = 6500, passes = 1)
  expect_prior(draws, prior_draws(flat_categorical(), query))
  subset <- stat_subset(stat_crossprod(y ~ x, bounds = list(y = c(-2, 2), x = c(-2, 2))), c("x", "y:x"))
  model <- model_lm(prior = prior_nig(shape = 5, rate = 1), covariates = fixed(list(mean = 0, cov = 1)))
  draws <- geweke(model, subset, mech_laplace(epsilon = 1), n = 4, iterations = 6500, passes = 1)
  expect_prior(draws, prior_draws(model, subset))
})

# ---- a 0/1 variable -----------------------------------------------------------------------------------

test_that("one total of a 0/1 variable is the count of its ones, under every method", {
  skip_on_cran()
  counts <- stat_counts(~ x, levels = list(x = c("0", "1")))
  bounds <- list(x = c(0, 1))
  laplace <- mech_laplace(scale = 1.5)
  one <- as_release(c(x = 4.6), stat_sums(~ x, bounds), laplace, 6)
  cell <- as_release(c(`x=1` = 4.6), counts, laplace, 6)
  exact <- table_posterior(rbind(c(0, 1)), 4.6, 1.5, 6)
  for (method in c("augment", "collapse")) {
    fit <- sample_posterior(one, model_bernoulli(), method = method, chains = 2, iter = 4100, warmup = 600, seed = 2)
    expect_same_mean(parameter_draws(fit, "prob[1]"), exact$prob[2])
    expect_identical(posterior::variables(denoise(fit)), "x")
    expect_same_mean(matrix(denoise(fit)[, , 1], ncol = 2), exact$queries)
  }
  expect_identical(fit$exact, TRUE)
  same <- function(method, ...) lapply(list(one, cell), function(rel) as.numeric(sample_posterior(rel, model_bernoulli(), method = method, chains = 1, iter = 400, seed = 3)$draws))
  for (method in c("auto", "collapse", "clt", "naive")) {
    draws <- same(method)
    expect_equal(draws[[1]], draws[[2]])
  }
  # the same total twice, with noise of its own
  twice <- as_release(c(x = 4.6, `x^2` = 2.1), stat_sums(~ x + I(x^2), bounds, rescale = FALSE), laplace, 6)
  exact <- table_posterior(rbind(c(0, 1), c(0, 1)), c(4.6, 2.1), c(1.5, 1.5), 6)
  # and rescaled to [-1, 1]
  around <- as_release(c(x = 2.2), stat_crossprod(x ~ 1, bounds), laplace, 6)
  rescaled <- table_posterior(rbind(c(-1, 1)), 2.2, 1.5, 6)
  for (method in c("augment", "collapse")) {
    fit <- sample_posterior(twice, model_bernoulli(), method = method, chains = 2, iter = 4100, warmup = 600, seed = 2)
    expect_same_mean(parameter_draws(fit, "prob[1]"), exact$prob[2])
  }
  fit <- sample_posterior(around, model_bernoulli(), chains = 2, iter = 4100, warmup = 600, seed = 2)
  expect_same_mean(parameter_draws(fit, "prob[1]"), rescaled$prob[2])
})

test_that("a 0/1 variable is a number in data, and nothing but 0 and 1", {
  st <- stat_sums(~ x, list(x = c(0, 1)))
  set.seed(1)
  rel <- simulate_release(model_bernoulli(), st, mech_laplace(epsilon = 1), n = 30, parameters = c(`prob[1]` = 0.7))
  expect_true(all(attr(rel, "truth")$data$x %in% 0:1))
  attr(rel, "truth") <- NULL
  fit <- sample_posterior(rel, model_bernoulli(), chains = 1, iter = 200, seed = 1)
  expect_true(all(simulate(fit, 1, seed = 1)[[1]]$x %in% 0:1))
  expect_s3_class(bayesplot::pp_check(fit, draws = 20, seed = 1), "ggplot")
  data <- data.frame(x = rep(0:1, c(9, 21)))
  expect_equal(coef(nonprivate_posterior(data, model_bernoulli(), st, seed = 1))[[1]], 22 / 32, tolerance = 0.02)
  data$x[3] <- 0.5
  expect_error(nonprivate_posterior(data, model_bernoulli(), st), "row 3", class = "noiseaware_error_data")
  expect_error(nonprivate_posterior(data, "a", st), "`model` must be a model", class = "noiseaware_error_argument")
  wide <- as_release(c(x = 3), stat_sums(~ x, list(x = c(0, 2))), mech_laplace(epsilon = 1), 9)
  expect_error(sample_posterior(wide, model_bernoulli()), class = "noiseaware_error_variables")
})
