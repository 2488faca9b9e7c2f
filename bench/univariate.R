# What one record update of the plain sampler costs for one-variable models,
# against the random numbers that it needs: that of the record (a normal, an
# exponential, a Poisson variate), and one to accept it, counted as a uniform or as
# the exponential that the sampler draws. A Poisson variate is made of one uniform,
# so that is counted too.
#
#   Rscript bench/univariate.R [quick]

if (!exists("random_cost")) source("bench/naive_bayes.R")

univariate_problems <- function(n) {
  set.seed(2022)
  list(
    normal = list(model = model_normal(), statistic = stat_sums(~ x + I(x^2), list(x = c(-5, 5)), rescale = FALSE), x = stats::rnorm(n, 0.5, 1.2), numbers = "normal"),
    exponential = list(model = model_exponential(), statistic = stat_sums(~ x, list(x = c(0, 10))), x = stats::rexp(n), numbers = "exponential"),
    `Poisson, mean 3` = list(model = model_poisson(), statistic = stat_sums(~ x, list(x = c(0, 20))), x = stats::rpois(n, 3), numbers = "Poisson", mean = 3),
    `Poisson, mean 50` = list(model = model_poisson(), statistic = stat_sums(~ x, list(x = c(0, 100))), x = stats::rpois(n, 50), numbers = "Poisson", mean = 50))
}

# user nanoseconds of a Poisson variate
poisson_cost <- function(mean, total) {
  blocks <- ceiling(total / 512)
  time <- replicate(5L, user_seconds(.C("draw_blocks", 3L, as.integer(blocks), mean)))
  1e9 * stats::median(time) / (512 * blocks)
}

bench_univariate <- function(quick = FALSE) {
  n <- 1e4
  loaded <- compile_random()
  on.exit(dyn.unload(loaded[["path"]]))
  total <- if (quick) 2e7 else 1e8
  problems <- univariate_problems(n)
  rows <- do.call(rbind, Map(function(name, p) {
    release <- simulate_release(data.frame(x = p$x), p$statistic, mech_laplace(epsilon = 1))
    # timed beside the update: the machine's speed is not the same all the time
    cost <- c(vapply(random_kinds, random_cost, 0, total), Poisson = if (p$numbers == "Poisson") poisson_cost(p$mean, total))
    update <- update_cost(list(release = release, model = p$model), if (quick) 200 else 2000)
    made_of <- if (p$numbers == "Poisson") "uniform" else p$numbers
    data.frame(model = name, `ns of the record's number` = cost[[p$numbers]], `ns per record update` = update$ns, `records accepted` = update$acceptance$mean,
               `over numbers and a uniform` = update$ns / (cost[[p$numbers]] + cost[["uniform"]]),
               `over numbers and an exponential` = update$ns / (cost[[p$numbers]] + cost[["exponential"]]),
               `over what they are made of and a uniform` = update$ns / (cost[[made_of]] + cost[["uniform"]]), check.names = FALSE)
  }, names(problems), problems))
  bench_result(
    c(Map(function(m, r) figure("record update over its random numbers, a uniform among them", m, r, 2.5, TRUE), rows$model, rows[["over numbers and a uniform"]]),
      Map(function(m, r) figure("record update over its random numbers, an exponential among them", m, r, 2.5, TRUE), rows$model, rows[["over numbers and an exponential"]]),
      Map(function(m, r) figure("the same, a Poisson variate counted as its uniform", m, r), rows$model[3:4], rows[["over what they are made of and a uniform"]][3:4])),
    list("Updates" = rows),
    "10,000 records, Laplace noise with epsilon 1, one chain with passes = 0, user time; a median of repetitions.")
}

run_alone(bench_univariate)
