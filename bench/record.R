# What a record costs: nanoseconds for one update of the plain sampler against
# the random numbers it needs, for one non-centred pass, and memory.
#
#   Rscript bench/record.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# y on x1 and x2 as in bench/regression.R, epsilon 10, any number of records;
# chains start near the truth, so that acceptance is that of a settled chain.
record_truth <- c("(Intercept)" = -1.79, x1 = -2.89, x2 = -0.66, sigma = sqrt(2), "mean[x1]" = 0.9, "mean[x2]" = -1.17,
                  "cov[x1,x1]" = 1, "cov[x2,x1]" = 0, "cov[x2,x2]" = 1)

record_models <- list(
  "covariates and sigma fixed" = list(
    model = model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)),
                     covariates = fixed(list(mean = c(0.9, -1.17), cov = diag(2)))),
    start = record_truth[1:3]),
  "everything unknown" = list(model = model_lm(), start = record_truth))

record_release <- function(n) {
  set.seed(2022)
  x1 <- stats::rnorm(n, 0.9)
  x2 <- stats::rnorm(n, -1.17)
  y <- -1.79 - 2.89 * x1 - 0.66 * x2 + stats::rnorm(n, 0, sqrt(2))
  bounds <- c(-10, 10)
  statistic <- stat_crossprod(y ~ x1 + x2, bounds = list(y = bounds, x1 = bounds, x2 = bounds))
  simulate_release(data.frame(y, x1, x2), statistic, mech_laplace(scale = 1.3))
}

# A chain ready to be continued, its warmup over
record_fit <- function(release, setting, passes, warmup) {
  sample_posterior(release, setting$model, chains = 1, iter = warmup + 1, warmup = warmup, seed = 1,
                   init = setting$start, control = if (is.null(passes)) list() else list(passes = passes))
}

# ---- random numbers ---------------------------------------------------------

random_kinds <- c("uniform", "normal", "exponential")

# src/base/rng_draws.c compiled beside a loop that draws blocks over and over, with the
# flags that the package is compiled with
compile_random <- function() {
  folder <- tempfile("random")
  dir.create(folder)
  file.copy(c("bench/random.c", "src/base", "inst/include/noiseaware.h"), folder, recursive = TRUE)
  old <- setwd(folder)
  on.exit(setwd(old))
  Sys.setenv(PKG_LIBS = "$(LAPACK_LIBS) $(BLAS_LIBS) $(FLIBS)", PKG_CPPFLAGS = "-I.")
  on.exit(Sys.unsetenv(c("PKG_LIBS", "PKG_CPPFLAGS")), add = TRUE)
  log <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", "random.so", "random.c", "base/rng_draws.c", "base/dist.c", "base/linalg.c"), stdout = TRUE, stderr = TRUE)
  if (!file.exists("random.so")) stop("bench/random.c did not compile:\n", paste(log, collapse = "\n"), call. = FALSE)
  dyn.load(file.path(folder, "random.so"))
}

# seconds for about that many numbers in blocks of 512
random_seconds <- function(kind, total) {
  blocks <- ceiling(total / 512)
  seconds(.C("draw_blocks", match(kind, random_kinds) - 1L, as.integer(blocks), 0)) * total / (512 * blocks)
}

# ns a number
random_in_blocks <- function(kind, total) 1e9 * stats::median(replicate(5L, random_seconds(kind, total))) / total

# ns a number through R, a million at a time; `numeric` allocates only
random_through_r <- function(kind, total) {
  size <- 1e6
  calls <- total / size
  draw <- noiseaware:::ffi_rng_draw
  stream <- noiseaware:::new_stream(c(1, 2))
  time <- replicate(5L, seconds(for (i in seq_len(calls)) {
    if (kind == "numeric") numeric(size) else .Call(draw, stream, kind, size, 0)
  }))
  1e9 * stats::median(time) / total
}

random_table <- function(quick) {
  total <- if (quick) 2e7 else 1e8
  data.frame(kind = c(random_kinds, "allocation alone"),
             `ns, in blocks` = c(vapply(random_kinds, random_in_blocks, 0, total), NA),
             `ns, vectors of 1,000,000 through R` = vapply(c(random_kinds, "numeric"), random_through_r, 0, total / 5),
             check.names = FALSE)
}

# ---- updates and passes -----------------------------------------------------

# Updates and the numbers they need (3 normals, 1 uniform) are timed in turns, so that
# both meet the same machine.
sweep_cost <- function(n, setting, quick) {
  work <- if (quick) 1e6 else 1e7
  fit <- record_fit(record_release(n), setting, 0, warmup = 20)
  more <- ceiling(work / n)
  turns <- replicate(if (quick) 5L else 15L, {
    c(seconds_extended(fit, more, 1L), 3 * random_seconds("normal", more * n) + random_seconds("uniform", more * n))
  })
  ns <- 1e9 * apply(turns, 1L, stats::median) / more / n
  c(ns = ns[1L], needed = ns[2L], accepted = mean(utils::tail(extend(fit, 10)$chains[[1L]]$acceptance, 10)))
}

# Time with 40 passes a sweep less time with none. The proposals' scale has
# been learned, so that the share of accepted passes (which cost more, the
# records are written) is the usual one.
pass_cost <- function(n, setting, sweep, quick) {
  work <- if (quick) 5e6 else 1e8
  passes <- 40
  fit <- record_fit(record_release(n), setting, passes, warmup = 200)
  more <- max(2, ceiling(work / n / passes))
  time <- seconds_extended(fit, more, 3L)
  moves <- acceptance(extend(fit, more))$moves
  c(ns = (1e9 * time / more / n - sweep) / passes, accepted = moves)
}

# ---- memory -----------------------------------------------------------------

# Peak resident memory, in bytes, of a fresh R process that runs one chain. The
# release is made here: it holds no record.
peak_memory <- function(n, setting, passes) {
  file <- tempfile(fileext = ".rds")
  script <- tempfile(fileext = ".R")
  on.exit(unlink(c(file, script)))
  control <- if (is.null(passes)) list() else list(passes = passes)
  saveRDS(list(release = record_release(n), model = setting$model, start = setting$start, control = control), file)
  writeLines(c("library(noiseaware)",
               "a <- readRDS(commandArgs(TRUE))",
               "f <- sample_posterior(a$release, a$model, chains = 1, iter = 30, seed = 1, init = a$start, control = a$control)",
               "cat(sub('[^0-9]*([0-9]+) kB', '\\\\1', grep('^VmHWM', readLines('/proc/self/status'), value = TRUE)))"), script)
  kilobytes <- system2(file.path(R.home("bin"), "Rscript"), c(script, file), stdout = TRUE)
  1024 * as.numeric(utils::tail(kilobytes, 1L))
}

# ---- the benchmark ----------------------------------------------------------

bench_record <- function(quick = FALSE) {
  sizes <- if (quick) c(1e3, 1e5) else c(1e3, 1e4, 1e5, 1e6)
  record_fit(record_release(100), record_models[[1L]], NULL, 10) # loads what the first call loads
  say("random numbers")
  loaded <- compile_random()
  on.exit(dyn.unload(loaded[["path"]]))
  random <- random_table(quick)
  ns <- function(kind) random[[2L]][random$kind == kind]

  rows <- list()
  for (name in names(record_models)) {
    for (n in sizes) {
      say("%s, n = %g", name, n)
      sweep <- sweep_cost(n, record_models[[name]], quick)
      pass <- pass_cost(n, record_models[[name]], sweep[["ns"]], quick)
      rows[[length(rows) + 1L]] <- data.frame(
        model = name, n = n, `ns per record update` = sweep[["ns"]], `ns for its random numbers` = sweep[["needed"]], `over the random numbers` = sweep[["ns"]] / sweep[["needed"]],
        `records accepted` = sweep[["accepted"]], `ns per record and pass` = pass[["ns"]],
        `passes accepted` = pass[["accepted"]], `pass over update` = pass[["ns"]] / sweep[["ns"]], check.names = FALSE)
    }
  }
  costs <- do.call(rbind, rows)

  memory <- NULL
  if (file.exists("/proc/self/status")) {
    say("memory")
    large <- if (quick) 1e5 else 1e6
    megabyte <- 1024^2
    settings <- list(list(name = "covariates and sigma fixed", passes = 0), list(name = "everything unknown", passes = NULL))
    memory <- do.call(rbind, lapply(settings, function(s) {
      peak <- vapply(c(100, large), peak_memory, 0, record_models[[s$name]], s$passes)
      data.frame(model = s$name, passes = if (is.null(s$passes)) "learned" else "none", n = large,
                 `peak at n = 100, MB` = peak[1] / megabyte, `peak, MB` = peak[2] / megabyte,
                 `difference, MB` = diff(peak) / megabyte, `bytes per record` = diff(peak) / large, check.names = FALSE)
    }))
  }
  bench_result(record_figures(costs, memory),
               c(list("Updates and passes" = costs, "Random numbers, ns each" = random),
                 if (!is.null(memory)) list("Memory" = memory)),
               c("p = 2, Laplace noise of scale 1.3 (epsilon 10 at the sensitivity 13), chains started at the true parameters. Time of extend(), set-up subtracted, in turns with the random numbers; medians of 15 turns.",
                 sprintf("The random numbers that an update needs: 3 normals and 1 uniform, %s ns together, drawn in blocks of 512 by the package's own generator. (The sampler takes an exponential in place of the uniform and its logarithm: %s ns together.) Drawn through R into long vectors they seem several times as expensive, but most of that is fresh memory.",
                         format_figure(3 * ns("normal") + ns("uniform")), format_figure(3 * ns("normal") + ns("exponential"))),
                 "A pass: time with 40 passes a sweep less that with none, over 40.",
                 "Memory: peak resident set (VmHWM) of a fresh process that runs one chain of 30 iterations."))
}

record_figures <- function(costs, memory) {
  per_model <- lapply(split(costs, costs$model), function(part) {
    case <- sprintf("%s, n = %s", part$model, format_figure(part$n))
    growth <- part[[3L]][nrow(part)] / part[[3L]][1L]
    c(Map(function(c, v) figure("record update over its random numbers", c, v, 2.5, TRUE), case, part[["over the random numbers"]]),
      list(figure(sprintf("record update at n = %s over n = %s", format_figure(max(part$n)), format_figure(min(part$n))),
                  part$model[1L], growth, 1.5, TRUE)),
      Map(function(c, v) figure("ns per record of a non-centred pass", c, v, 5, TRUE), case, part[["ns per record and pass"]]))
  })
  allowed <- if (!is.null(memory)) 8 * 3 * memory$n / 1024^2 + 32
  c(unlist(unname(per_model), recursive = FALSE),
    if (!is.null(memory)) Map(function(m, p, d, a) {
      figure("peak memory beyond that at n = 100, MB", sprintf("%s, passes %s, n = %s", m, p, format_figure(memory$n[1L])), d, a, TRUE)
    }, memory$model, memory$passes, memory$`difference, MB`, allowed))
}

run_alone(bench_record)
