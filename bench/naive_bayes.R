# The problem of Ju et al. (2022), section 4: naive Bayes with 5 classes and 5
# features of 3 levels, n = 100, 75 noisy counts, the plain sampler. What 10,000
# iterations take, and what one record update costs against the random numbers
# it needs; the same for Bernoulli and categorical models of 10,000 records.
# An iteration of 100 records has the draw of theta besides: what a record costs is
# the slope of an iteration's time from 100 to 1,000 records.
#
#   Rscript bench/naive_bayes.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")
if (!exists("compile_random")) source("bench/record.R")

# Processor seconds: the figures are of a few milliseconds, and other work on
# the machine must not count.
user_seconds <- function(code) {
  gc(FALSE)
  time <- system.time(code, gcFirst = FALSE)
  clock$elapsed <- clock$elapsed + time[["elapsed"]]
  clock$processor <- clock$processor + sum(time[c("user.self", "sys.self")])
  time[["user.self"]]
}

bayes_epsilons <- c(0.1, 0.3, 1, 3, 10)

bayes_problem <- function(epsilon, n = 100) {
  levels <- c(list(y = letters[1:5]), stats::setNames(rep(list(c("u", "v", "w")), 5), paste0("x", 1:5)))
  statistic <- stat_counts(~ y:x1 + y:x2 + y:x3 + y:x4 + y:x5, levels)
  model <- model_naive_bayes("y", prior = prior_dirichlet(2), conditional = prior_dirichlet(2))
  set.seed(2022)
  list(model = model, release = simulate_release(model, statistic, mech_laplace(epsilon = epsilon), n = n))
}

# User nanoseconds of one record update, the draw of theta not counted, against its
# random numbers: all timed in turns, since the machine's speed drifts; medians of the turns.
slope_row <- function(epsilon, iterations, total, turns = 9L) {
  say("naive Bayes, a record alone, epsilon %g", epsilon)
  sizes <- c(100, 1000)
  fits <- lapply(sizes, function(n) settled_fit(bayes_problem(epsilon, n)))
  turn <- function() {
    ns <- mapply(function(fit, n) {
      steps <- iterations * 100 / n
      1e9 * (user_seconds(extend(fit, 100 + steps)) - user_seconds(extend(fit, 100))) / steps
    }, fits, sizes)
    c(ns, 6 * random_cost("uniform", total, 1L) + random_cost("exponential", total, 1L))
  }
  all <- replicate(turns, turn())
  slope <- (all[2L, ] - all[1L, ]) / diff(sizes)
  data.frame(epsilon = epsilon, `ns of an iteration, 100 records` = stats::median(all[1L, ]), `1,000 records` = stats::median(all[2L, ]),
             `ns per record` = stats::median(slope), `its random numbers` = stats::median(all[3L, ]),
             `over its random numbers` = stats::median(slope / all[3L, ]), check.names = FALSE)
}

# 10,000 records, levels in the proportions 1 : 2 : 3 ...
level_problem <- function(levels, epsilon) {
  model <- if (levels == 2) model_bernoulli() else model_categorical()
  set.seed(2022)
  data <- data.frame(y = letters[sample(levels, 1e4, TRUE, prob = seq_len(levels))])
  statistic <- stat_counts(~ y, list(y = letters[seq_len(levels)]))
  list(model = model, release = simulate_release(data, statistic, mech_laplace(epsilon = epsilon)))
}

settled_fit <- function(problem, passes = 0) {
  sample_posterior(problem$release, problem$model, chains = 1, iter = 200, warmup = 100, thin = 100, seed = 1, control = list(passes = passes))
}

# User nanoseconds of one record update: extensions that keep almost no draw, so
# that R has nothing to do, a long one less a short one.
update_cost <- function(problem, iterations, passes = 0, times = 7L) {
  fit <- settled_fit(problem, passes)
  time <- stats::median(replicate(times, user_seconds(extend(fit, 100 + iterations)) - user_seconds(extend(fit, 100))))
  list(ns = 1e9 * time / iterations / problem$release$n, acceptance = acceptance(extend(fit, iterations)))
}

# user nanoseconds of a random number, see bench/random.c
random_cost <- function(kind, total, times = 5L) {
  blocks <- ceiling(total / 512)
  time <- replicate(times, user_seconds(.C("draw_blocks", match(kind, random_kinds) - 1L, as.integer(blocks), 0)))
  1e9 * stats::median(time) / (512 * blocks)
}

cost_rows <- function(model, problems, epsilons, iterations, needed) {
  do.call(rbind, Map(function(problem, epsilon) {
    say("%s, epsilon %g", model, epsilon)
    plain <- update_cost(problem, iterations)
    passes <- 5
    moved <- update_cost(problem, ceiling(iterations / 2), passes, 3L)
    data.frame(model = model, n = problem$release$n, epsilon = epsilon, `ns per record update` = plain$ns,
               `over the random numbers` = plain$ns / needed, `records accepted` = plain$acceptance$mean,
               `least probability` = plain$acceptance$least, bound = plain$acceptance$bound,
               `ns per record and pass` = (moved$ns - plain$ns) / passes, `passes accepted` = moved$acceptance$moves, check.names = FALSE)
  }, problems, epsilons))
}

# as the paper runs it: 10,000 iterations, the first half thrown away
whole_call <- function(problem, times) {
  stats::median(replicate(times, user_seconds(
    sample_posterior(problem$release, problem$model, chains = 1, iter = 10000, warmup = 5000, seed = 1, control = list(passes = 0)))))
}

bench_naive_bayes <- function(quick = FALSE) {
  whole_call(bayes_problem(1), 1L) # loads what the first call loads
  say("random numbers")
  loaded <- compile_random()
  on.exit(dyn.unload(loaded[["path"]]))
  total <- if (quick) 2e7 else 1e8
  uniform <- random_cost("uniform", total)
  exponential <- random_cost("exponential", total)
  normal <- random_cost("normal", total)
  needed <- 6 * uniform + exponential

  epsilons <- if (quick) c(1, 10) else bayes_epsilons
  steps <- if (quick) 5000 else 20000
  slopes <- do.call(rbind, lapply(epsilons, slope_row, steps, total / 2))
  # a gamma variate needs a normal and a uniform
  bayes <- cost_rows("naive Bayes", lapply(epsilons, bayes_problem), epsilons, steps, needed + 80 / 100 * (normal + uniform))
  iterations <- if (quick) 200 else 2000
  levels <- do.call(rbind, lapply(c(2, 3, 10), function(l) {
    cost_rows(paste("categorical,", l, "levels"), lapply(c(0.1, 1), level_problem, levels = l), c(0.1, 1), iterations, uniform + exponential)
  }))
  levels$model[levels$model == "categorical, 2 levels"] <- "Bernoulli"
  say("whole calls")
  whole <- vapply(epsilons, function(e) whole_call(bayes_problem(e), if (quick) 3L else 9L), 0)
  bench_result(
    c(Map(function(e, ns) figure("user ms for 10,000 iterations (100 records)", paste("epsilon", e), ns, 60, TRUE), epsilons, bayes[["ns per record update"]]),
      Map(function(e, s) figure("user ms of the whole call, 10,000 iterations, 5,000 draws kept", paste("epsilon", e), 1e3 * s, 60, TRUE), epsilons, whole),
      Map(function(e, s) figure("times faster than the paper reports (404 s)", paste("epsilon", e), 404 / s), epsilons, whole),
      Map(function(e, r) figure("naive Bayes: record update over its random numbers", paste("epsilon", e), r, 3, TRUE),
          epsilons, slopes[["over its random numbers"]]),
      Map(function(e, r) figure("naive Bayes: iteration of 100 records over all its random numbers, theta's too", paste("epsilon", e), r),
          epsilons, bayes[["over the random numbers"]]),
      Map(function(m, e, r) figure("record update over its random numbers", sprintf("%s, n = 10,000, epsilon %g", m, e), r, 2.5, TRUE),
          levels$model, levels$epsilon, levels[["over the random numbers"]])),
    list("A record of naive Bayes alone" = slopes, "Updates and passes" = rbind(bayes, levels)),
    c("One chain, passes = 0, user time of one core; a median of repetitions. 10,000 iterations: those of a settled chain that keeps next to no draw, with the draw of theta (80 gamma variates for naive Bayes). The whole call has set-up, warmup and R's handling of 5,000 draws of 80 parameters and 75 counts besides.",
      sprintf("The random numbers of an update: a uniform (%s ns, in blocks) for each variable, and an exponential (%s ns); a record of a single variable that would change no cell needs no exponential, but it is counted. Of a uniform that chooses among few levels the package draws 16 bits, the others only where these do not decide: so an update can cost less than its numbers would in full. With the draw of theta: a normal (%s ns) and a uniform more for each of its 80 gamma variates.",
              format_figure(uniform), format_figure(exponential), format_figure(normal)),
      "A pass: time with 5 passes a sweep less that with none, over 5; for naive Bayes with 100 records most of it is the work on 54 coordinates.",
      "404 s: supplement S-6 of the paper, on a machine of its own; the ratio gives an order of magnitude."))
}

run_alone(bench_naive_bayes)
