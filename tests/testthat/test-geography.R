# Counts of nested areas: enumeration of small tables, shares by quadrature; exact counts are never changed; a larger case is
# recovered; refusals.

small <- data.frame(county = c("A", "A", "B", "B"), block = c("a1", "a2", "b1", "b2"))
small_sex <- c("f", "m")
small_counts <- function(area) {
  levels <- c(stats::setNames(list(unique(small[[area]])), area), list(sex = small_sex))
  stat_counts(stats::as.formula(sprintf("~ %s:sex", area)), levels)
}

# all ways to put n persons into k cells, a row each
all_ways <- function(n, k) {
  if (k == 1) return(matrix(n, 1, 1))
  do.call(rbind, lapply(0:n, function(first) cbind(first, all_ways(n - first, k - 1))))
}

log_dm <- function(n, a) lgamma(sum(a)) - lgamma(sum(a) + sum(n)) + lgamma(sum(n) + 1) + sum(lgamma(a + n) - lgamma(a) - lgamma(n + 1))

# Log probabilities of tables of four blocks (f, m of each): concentrations of counties and of blocks are known; the share of f
# in all areas and in each county is integrated over a grid of quantiles.
log_tables <- function(tables, concentration, sizes = 1) {
  grid <- (seq_len(60) - 0.5) / 60
  blocks <- expand.grid(f = 0:8, m = 0:8)
  key <- function(f, m) f + 9 * m + 1
  # given the share in all areas, of both blocks of a county
  size <- blocks$f + blocks$m
  of_pair <- lapply(grid, function(top) {
    share <- stats::qbeta((seq_len(200) - 0.5) / 200, concentration[1] * top, concentration[1] * (1 - top))
    share <- pmin(pmax(share, 1e-12), 1 - 1e-12)
    a <- concentration[2] * share
    b <- concentration[2] * (1 - share)
    p <- exp(lchoose(size, blocks$f) + lbeta(outer(blocks$f, a, "+"), outer(blocks$m, b, "+")) - rep(lbeta(a, b), each = nrow(blocks)))
    tcrossprod(p) / length(share)
  })
  apply(tables, 1, function(n) {
    size <- n[c(1, 3, 5, 7)] + n[c(2, 4, 6, 8)]
    of_size <- log_dm(c(sum(size[1:2]), sum(size[3:4])), rep(sizes, 2)) + log_dm(size[1:2], rep(sizes, 2)) + log_dm(size[3:4], rep(sizes, 2))
    k <- key(n[c(1, 3, 5, 7)], n[c(2, 4, 6, 8)])
    of_size + log(mean(vapply(of_pair, function(p) p[k[1], k[2]] * p[k[3], k[4]], 0)))
  })
}

expect_geography <- function(rel, log_p, tables, concentration, sizes = 1) {
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  fit <- sample_geography(rel, ~ county/block, small, concentration = fixed(concentration), sizes = prior_dirichlet(sizes), chains = 2, iter = 2400,
                          warmup = 1000, seed = 3, track = list(women = ~ sex == "f", north = ~ county == "A"))
  order <- match(sprintf("cell[%s:sex=%s]", rep(small$block, each = 2), small_sex), posterior::variables(fit$draws))
  draws <- posterior::as_draws_matrix(fit$draws)
  cells <- unclass(draws)[, order]
  attr(cells, "nchains") <- NULL
  sums <- cbind(tables, rowSums(tables[, c(1, 3, 5, 7)]), rowSums(tables[, 1:4]))
  seen <- cbind(cells, unclass(draws)[, c("women", "north")])
  for (j in seq_len(ncol(sums))) for (power in 1:2) {
    chain <- matrix(seen[, j]^power, ncol = 2)
    error <- max(posterior::mcse_mean(chain), 1e-3, na.rm = TRUE)
    expect_lt(abs(mean(chain) - sum(p * sums[, j]^power)) / error, 5)
  }
  products <- cells[, 1] * cells[, 3]
  expect_lt(abs(mean(products) - sum(p * tables[, 1] * tables[, 3])) / posterior::mcse_mean(matrix(products, ncol = 2)), 5)
  expect_equal(summary(fit)$mean, unname(colMeans(cells)), tolerance = 1e-8)
  expect_equal(summary(fit)$sd, unname(apply(cells, 2, sd)), tolerance = 1e-3)
  invisible(fit)
}

test_that("small tables are enumerated: noise at two levels, of two kinds, and prior alone", {
  skip_on_cran()
  tables <- all_ways(6, 8)
  log_prior <- log_tables(tables, c(3, 2))
  counties <- cbind(tables[, 1] + tables[, 3], tables[, 2] + tables[, 4], tables[, 5] + tables[, 7], tables[, 6] + tables[, 8])
  z <- list(counties = c(2, 1, 0, 4), blocks = c(2, 0, 1, -1, 0, 1, 1, 2))
  st <- list(counties = small_counts("county"), blocks = small_counts("block"))
  rel <- as_release(z, st, list(counties = mech_discrete_gaussian(sd = 1), blocks = mech_discrete_gaussian(sd = 1.5)), n = 6)
  log_p <- log_prior - colSums((t(counties) - z$counties)^2) / 2 - colSums((t(tables) - z$blocks)^2) / 4.5
  expect_geography(rel, log_p, tables, c(3, 2))
  rel <- as_release(z, st, list(counties = mech_laplace(scale = 1), blocks = mech_gaussian(sd = 1)), n = 6)
  log_p <- log_prior - colSums(abs(t(counties) - z$counties)) - colSums((t(tables) - z$blocks)^2) / 2
  expect_geography(rel, log_p, tables, c(3, 2))
  # noise so large that it says nothing
  rel <- as_release(z$blocks, st$blocks, mech_gaussian(sd = 1e4), n = 6)
  expect_geography(rel, log_tables(tables, c(1, 5), 2.5), tables, c(1, 5), 2.5)
})

test_that("exact counts of an upper level are kept, and the rest has its posterior", {
  skip_on_cran()
  tables <- all_ways(6, 8)
  counties <- cbind(tables[, 1] + tables[, 3], tables[, 2] + tables[, 4], tables[, 5] + tables[, 7], tables[, 6] + tables[, 8])
  z <- c(2, 0, 1, -1, 0, 1, 1, 2)
  noise <- mech_discrete_gaussian(sd = 1)
  totals <- stat_counts(~ county, list(county = c("A", "B")))
  log_p <- log_tables(tables, c(3, 2)) - colSums((t(tables) - z)^2) / 2
  rel <- as_release(list(law = c(4, 2), blocks = z), list(law = totals, blocks = small_counts("block")), list(law = mech_exact(), blocks = noise), n = 6)
  kept <- counties[, 1] + counties[, 2] == 4
  fit <- expect_geography(rel, log_p[kept], tables[kept, ], c(3, 2))
  expect_true(all(posterior::as_draws_matrix(fit$draws)[, "north"] == 4))
  rel <- as_release(list(law = c(3, 1, 0, 2), blocks = z), list(law = small_counts("county"), blocks = small_counts("block")),
                    list(law = mech_exact(), blocks = noise), n = 6)
  kept <- colSums(t(counties) != c(3, 1, 0, 2)) == 0
  expect_geography(rel, log_p[kept], tables[kept, ], c(3, 2))
})

test_that("concentrations and shares have their posterior: joint draws of data and parameters (Geweke 2004)", {
  skip_on_cran()
  areas <- data.frame(county = rep(c("A", "B"), each = 3), block = paste0("b", 1:6))
  st <- stat_counts(~ block:sex, list(block = areas$block, sex = small_sex))
  of_prior <- function(seed) {
    set.seed(seed)
    a <- stats::rgamma(2, 4, 1)
    top <- stats::rbeta(1, 2, 2)
    county <- stats::rbeta(2, a[1] * top, a[1] * (1 - top))
    share <- pmin(pmax(stats::rbeta(6, a[2] * rep(county, each = 3), a[2] * (1 - rep(county, each = 3))), 0), 1)
    dirichlet <- function(k) prop.table(stats::rgamma(k, 1))
    size <- unlist(lapply(stats::rmultinom(1, 40, dirichlet(2)), function(n) stats::rmultinom(1, n, dirichlet(3))))
    women <- stats::rbinom(6, size, share)
    n <- as.vector(rbind(women, size - women))
    rel <- as_release(n + rdiscrete_gaussian(12, sd = 1.5), st, mech_discrete_gaussian(sd = 1.5), n = 40)
    fit <- sample_geography(rel, ~ county/block, areas, shares = prior_dirichlet(2), concentration = prior_gamma(4, 1), chains = 1, iter = 900,
                            warmup = 100, thin = 10, seed = seed, track = list(women = ~ sex == "f", first = ~ block == "b1"))
    draws <- unclass(posterior::as_draws_matrix(fit$draws))
    truth <- c(`concentration[county]` = a[1], `concentration[block]` = a[2], `share[sex=f]` = top, women = sum(women), first = size[1])
    vapply(names(truth), function(v) (sum(draws[, v] < truth[[v]]) + stats::runif(1) * (1 + sum(draws[, v] == truth[[v]]))) / (nrow(draws) + 1), 0)
  }
  ranks <- vapply(1:150, of_prior, numeric(5))
  for (v in rownames(ranks)) expect_gt(suppressWarnings(stats::ks.test(ranks[v, ], "punif")$p.value), 1e-3)
})

test_that("three levels, many areas: what is exact stays, sums are those of the tracked cells, seeds fix the draws", {
  skip_on_cran()
  set.seed(5)
  areas <- data.frame(state = rep(c("s1", "s2"), each = 30), county = rep(paste0("c", 1:6), each = 10), block = paste0("b", 1:60))
  n <- matrix(stats::rpois(240, rep(c(1, 5, 10, 2), 60)), 4)
  lv <- list(sex = small_sex, age = c("y", "o"))
  of_blocks <- stat_counts(~ block:sex:age, c(list(block = areas$block), lv))
  st <- list(law = stat_counts(~ state, list(state = c("s1", "s2"))), counties = stat_counts(~ age:county, list(age = lv$age, county = unique(areas$county))),
             blocks = stat_subset(of_blocks, of_blocks$components[1:200]))
  law <- as.vector(tapply(colSums(n), areas$state, sum))
  counties <- apply(rbind(n[1, ] + n[3, ], n[2, ] + n[4, ]), 1, tapply, factor(areas$county, unique(areas$county)), sum)
  rel <- as_release(list(law = law, counties = as.vector(counties) + rdiscrete_gaussian(12, sd = 1), blocks = as.vector(n)[1:200] + rdiscrete_gaussian(200, sd = 2)),
                    st, list(law = mech_exact(), counties = mech_discrete_gaussian(sd = 1), blocks = mech_discrete_gaussian(sd = 2)), n = sum(law))
  shuffled <- areas[sample(60), ]
  run <- function(seed) sample_geography(rel, ~ state/county/block, shuffled, concentration = fixed(c(50, 50, 20)), iter = 1200, seed = seed, chains = 2,
                                         track = list(s1 = ~ state == "s1", young = ~ age == "y" & county == "c2"))
  fit <- run(1)
  expect_identical(fit$draws, run(1)$draws)
  expect_true(all(fit$draws[, , "s1"] == law[1]))
  cells <- summary(fit)
  expect_named(cells, c("state", "county", "block", "age", "sex", "mean", "sd", "rhat"))
  expect_equal(sum(cells$mean), sum(law))
  expect_equal(sum(cells$mean[cells$age == "y" & cells$county == "c2"]), mean(fit$draws[, , "young"]))
  expect_equal(sum(summary(fit, "county")$mean), sum(law))
  truth <- n[cbind(match(paste(cells$sex, cells$age), c("f y", "f o", "m y", "m o")), match(cells$block, areas$block))]
  expect_lt(mean((cells$mean - truth)^2), 4)
  expect_lt(abs(mean((cells$mean - truth)^2 / cells$sd^2, na.rm = TRUE) - 1), 0.5)
  expect_warning(told(sample_geography(rel, ~ state/county/block, areas, iter = 20, seed = 1)), class = "noiseaware_warning_convergence")
  expect_output(print(fit), "2 state, 6 county, 60 block; 4 cells in each")
})

test_that("what cannot be is refused", {
  st <- small_counts("block")
  rel <- as_release(rep(1, 8), st, mech_gaussian(sd = 1), n = 8)
  run <- function(release = rel, formula = ~ county/block, areas = small, ...) sample_geography(release, formula, areas, iter = 4, chains = 1, ...)
  expect_error(run(formula = y ~ county), class = "noiseaware_error_formula")
  expect_error(run(formula = ~ county/log(block)), class = "noiseaware_error_formula")
  expect_error(run(areas = small["block"]), "county", class = "noiseaware_error_areas")
  expect_error(run(areas = data.frame(county = "A", block = c("a1", "a1"))), class = "noiseaware_error_areas")
  expect_error(run(areas = small[1:3, ]), "b2", class = "noiseaware_error_areas")
  expect_error(run(formula = ~ state/county/block, areas = data.frame(state = 1:4, small)), "several larger areas", class = "noiseaware_error_areas")
  expect_error(run(track = list(x = ~ nothing == 1)), "nothing", class = "noiseaware_error_variables")
  expect_error(run(track = ~ sex == "f"), class = "noiseaware_error_argument")
  expect_error(run(concentration = prior_normal()), class = "noiseaware_error_prior")
  expect_error(run(concentration = prior_gamma()), class = "noiseaware_error_prior")
  expect_error(run(sizes = prior_dirichlet(1:2)), class = "noiseaware_error_prior")
  unknown <- as_release(rep(1, 8), st, mech_gaussian(sd = 1), n = NULL)
  expect_error(run(unknown), "number of persons", class = "noiseaware_error_method")
  expect_error(run(as_release(5, stat_sums(~ x, list(x = c(0, 1))), mech_laplace(scale = 1), n = 8)), class = "noiseaware_error_method")
  crossed <- stat_counts(~ county:block, list(county = c("A", "B"), block = small$block))
  expect_error(run(as_release(rep(1, 8), crossed, mech_laplace(scale = 1), n = 8)), "one area variable", class = "noiseaware_error_method")
  fit <- suppressWarnings(run())
  expect_error(summary(fit, "state"), class = "noiseaware_error_argument")
})

test_that("each level has its own concentration: areas that differ, of blocks that are alike", {
  skip_on_cran()
  areas <- data.frame(county = rep(c("A", "B", "C", "D"), each = 4), block = paste0("b", 1:16))
  st <- stat_counts(~ block:sex, list(block = areas$block, sex = small_sex))
  women <- rep(c(38, 2, 37, 3), each = 4)
  rel <- as_release(as.vector(rbind(women, 40 - women)), st, mech_discrete_gaussian(sd = 0.5), n = 640)
  fit <- sample_geography(rel, ~ county/block, areas, concentration = prior_gamma(1, 0.02), chains = 1, iter = 600, warmup = 200, seed = 1)
  draws <- posterior::as_draws_matrix(fit$draws)
  expect_gt(median(draws[, "concentration[block]"]), 5 * median(draws[, "concentration[county]"]))
  # known ones are given from the top down: blocks of a county are nearly the same, or nearly all of one sex
  flat <- as_release(rep(20, 32), st, mech_discrete_gaussian(sd = 1e3), n = 640)
  apart <- function(known) {
    fit <- sample_geography(flat, ~ county/block, areas, concentration = fixed(known), chains = 1, iter = 600, warmup = 200, seed = 1,
                            track = list(f1 = ~ sex == "f" & block == "b1", all1 = ~ block == "b1", f2 = ~ sex == "f" & block == "b2", all2 = ~ block == "b2"))
    d <- posterior::as_draws_matrix(fit$draws)
    mean(abs(d[, "f1"] / pmax(1, d[, "all1"]) - d[, "f2"] / pmax(1, d[, "all2"])))
  }
  expect_gt(apart(c(1e3, 0.2)), 1.5 * apart(c(0.2, 1e3)))
})
