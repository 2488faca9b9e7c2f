# How cost grows: processor seconds of an iteration, memory and effective draws a second, against the numbers of records, covariates, cells, sites and processes.
# Each case runs in a process of its own. Exponents are slopes on log scales over the upper half of the sizes. Rows of the axes that were run replace theirs in
# vignettes/growth.csv, which vignettes/scale.Rmd draws.
#
#   Rscript bench/growth.R [axes] [quick]     (records, covariates, cells, sites, processes; "none" prints what is stored)

if (!exists("bench_result")) source("bench/helpers.R")

growth_file <- "vignettes/growth.csv"

# ---- problems of any size --------------------------------------------------------------------

# y = x1 + N(0, 1) on standard normal covariates, totals at their expectation plus noise: no record is needed, however many there are
expected_release <- function(n, p) {
  set.seed(1)
  variables <- c("y", paste0("x", seq_len(p)))
  half <- c(6, rep(4, p))
  statistic <- stat_crossprod(stats::reformulate(variables[-1L], "y"), stats::setNames(Map(c, -half, half), variables))
  product <- diag(c(2, rep(1, p)), p + 1)
  product[1L, 2L] <- product[2L, 1L] <- 1
  product <- product / outer(half, half)
  second <- unlist(lapply(seq_along(variables), function(j) product[j, j:(p + 1)]))
  mechanism <- mech_laplace(epsilon = 1)
  value <- n * c(rep(0, p + 1), second)
  noise <- stats::rexp(length(value)) * sample(c(-1, 1), length(value), TRUE)
  as_release(stats::setNames(value + noise * (p + 1)^2, statistic$components), statistic, mechanism, n = n)
}

frame_of <- function(n) data.frame(y = stats::rnorm(n), a = stats::rnorm(n), b = stats::runif(n))

category_release <- function(cells) {
  set.seed(1)
  codes <- paste0("c", seq_len(cells))
  as_release(stats::rpois(cells, 100) + round(stats::rnorm(cells, 0, 3)), stat_counts(~ x, list(x = codes)), mech_discrete_gaussian(sd = 3), n = 100 * cells)
}

# areas of ten cells in ten larger ones
area_problem <- function(cells) {
  set.seed(1)
  areas <- data.frame(state = paste0("s", rep(1:10, length.out = cells / 10)), block = paste0("b", seq_len(cells / 10)))
  areas <- areas[order(areas$state), ]
  count <- stats::rpois(cells, 15)
  x <- list(x = letters[1:10])
  release <- as_release(count + round(stats::rnorm(cells, 0, 3)), stat_counts(~ block:x, c(areas["block"], x)), mech_discrete_gaussian(sd = 3), n = sum(count))
  list(release = release, areas = areas)
}

site_releases <- function(sites) {
  set.seed(1)
  yes <- stats::rbinom(sites, 100, stats::plogis(stats::rnorm(sites, -0.5, 0.5)))
  statistic <- stat_counts(~ y, list(y = c("no", "yes")))
  mechanism <- mech_discrete_laplace(epsilon = 1)
  template <- as_release(c(0, 0), statistic, mechanism, n = 100)
  lapply(stats::setNames(yes, paste0("site", seq_len(sites))), function(k) {
    template$value[] <- c(100 - k, k) + sample(-2:2, 2)
    template
  })
}

# ---- measuring -------------------------------------------------------------------------------

resident <- function(field) as.double(gsub("\\D", "", grep(field, readLines("/proc/self/status"), value = TRUE))) / 1024

# what a first call loads, and checks of a fit after it, are not what grows
warm_up <- function() {
  session <- utils::getFromNamespace("session", "noiseaware")
  session$quiet <- TRUE
  for (method in c("collapse", "augment")) sample_posterior(expected_release(100, 2), model_lm(), method = method, chains = 1, iter = 400, seed = 1)
  sample_posterior(category_release(10), model_categorical(), chains = 1, iter = 400, seed = 1)
  sample_posterior(site_releases(10), model_bernoulli(), pool = "partial", chains = 1, iter = 400, seed = 1)
  of <- area_problem(100)
  sample_geography(of$release, ~ state/block, of$areas, chains = 1, iter = 100, seed = 1)
  invisible(release(frame_of(100), stat_crossprod(y ~ a + b, list(y = c(-5, 5), a = c(-5, 5), b = c(0, 1))), mech_laplace(epsilon = 1)))
}

# `prepare` is not timed; `run(prepared)` returns a fit, or NULL
measured <- function(axis, what, size, iterations, prepare, run) {
  say("%s: %s, %s", axis, what, format_figure(size))
  found <- parallel::mccollect(parallel::mcparallel(silent = TRUE, suppressWarnings(suppressMessages({
    prepared <- prepare()
    invisible(gc(FALSE))
    before <- resident("VmRSS")
    time <- seconds(fit <- run(prepared))
    draws <- if (!is.null(fit)) posterior::as_draws_array(fit)
    of_records <- grepl("^cell\\[|\\[site", posterior::variables(draws))
    data.frame(seconds = time / iterations, megabytes = max(0, resident("VmHWM") - before), speed = if (is.null(draws)) NA else min_ess(draws[, , !of_records]) / time)
  }))))[[1L]]
  if (inherits(found, "try-error")) stop(found)
  data.frame(axis, what, size, found)
}

fit_of <- function(method, iterations, ...) function(release) sample_posterior(release, method = method, chains = 1, iter = iterations, seed = 1, ...)

powers <- function(from, to, quick) 10^(from:(if (quick) from + 1 else to))

record_rows <- function(quick) {
  do.call(rbind, c(
    lapply(powers(2, 9, quick), function(n) {
      measured("records", "\"collapse\"", n, 20000, function() expected_release(n, 2), fit_of("collapse", 20000, model = model_lm()))
    }),
    lapply(powers(2, 6, quick), function(n) {
      iterations <- max(100, min(10000, 4e7 / n))
      measured("records", "\"augment\"", n, iterations, function() expected_release(n, 2), fit_of("augment", iterations, model = model_lm()))
    }),
    lapply(powers(3, 7, quick), function(n) {
      measured("records", "release()", n, 1, function() frame_of(n), function(data) {
        release(data, stat_crossprod(y ~ a + b, list(y = c(-5, 5), a = c(-5, 5), b = c(0, 1))), mech_laplace(epsilon = 1))
        NULL
      })
    })))
}

covariate_rows <- function(quick) {
  do.call(rbind, lapply(c("collapse", "augment"), function(method) {
    do.call(rbind, lapply(if (quick) 1:2 else c(1, 2, 5, 10, 20, 50), function(p) {
      measured("covariates", sprintf("\"%s\"", method), p, 2000, function() expected_release(1000, p), fit_of(method, 2000, model = model_lm()))
    }))
  }))
}

cell_rows <- function(quick) {
  do.call(rbind, c(
    lapply(powers(1, 5, quick), function(cells) {
      iterations <- min(4000, max(60, 4e6 / cells))
      measured("cells", "one table", cells, iterations, function() category_release(cells), fit_of("collapse", iterations, model = model_categorical()))
    }),
    lapply(powers(2, 6, quick), function(cells) {
      iterations <- min(4000, max(60, 3e6 / cells))
      measured("cells", "nested areas", cells, iterations, function() area_problem(cells), function(of) {
        sample_geography(of$release, ~ state/block, of$areas, chains = 1, iter = iterations, seed = 1)
      })
    })))
}

site_rows <- function(quick) {
  do.call(rbind, lapply(powers(1, 4, quick), function(sites) {
    iterations <- min(4000, max(200, 4e5 / sites))
    measured("sites", "partial pooling", sites, iterations, function() site_releases(sites), fit_of("auto", iterations, model = model_bernoulli(), pool = "partial"))
  }))
}

# Chains in as many processes, forked: seconds that elapse for each chain, as one row of `growth`.
process_rows <- function(quick) {
  release <- expected_release(1000, 2)
  do.call(rbind, lapply(2^(0:(if (quick) 1 else 6)), function(chains) {
    say("processes: %d", chains)
    future::plan(future::multicore, workers = chains)
    on.exit(future::plan(future::sequential))
    elapsed <- system.time(fit <- suppressWarnings(sample_posterior(release, model_lm(), method = "augment", chains = chains, iter = 4000, seed = 1)))[["elapsed"]]
    data.frame(axis = "processes", what = "chains of \"augment\"", size = chains, seconds = elapsed, megabytes = NA, speed = min_ess(posterior::as_draws_array(fit)) / elapsed)
  }))
}

slope <- function(size, value) {
  upper <- size >= stats::median(size) & is.finite(value) & value > 0
  if (sum(upper) < 2L) return(NA)
  stats::coef(stats::lm(log(value[upper]) ~ log(size[upper])))[[2L]]
}

growth_axes <- list(records = record_rows, covariates = covariate_rows, cells = cell_rows, sites = site_rows, processes = process_rows)

bench_growth <- function(quick, axes = character()) {
  suppressWarnings(suppressMessages(warm_up()))
  stored <- if (file.exists(growth_file) && !quick) utils::read.csv(growth_file)
  rows <- do.call(rbind, lapply(names(growth_axes), function(axis) {
    if (length(axes) && !axis %in% axes) stored[stored$axis == axis, ] else growth_axes[[axis]](quick)
  }))
  rows[4:6] <- lapply(rows[4:6], signif, 3)
  if (!quick) utils::write.csv(rows, growth_file, row.names = FALSE)
  groups <- split(rows, factor(paste(rows$axis, rows$what), unique(paste(rows$axis, rows$what))))
  figures <- unlist(lapply(names(groups), function(name) {
    of <- groups[[name]]
    sizes <- sprintf("%s, %s to %s", name, format_figure(min(of$size)), format_figure(max(of$size)))
    list(figure("exponent of the time", sizes, slope(of$size, of$seconds)), if (any(is.finite(of$megabytes))) figure("exponent of the memory", sizes, slope(of$size, of$megabytes)))
  }), recursive = FALSE)
  names(rows)[4:6] <- c("seconds an iteration", "MB beyond the data", "least ESS per second")
  bench_result(Filter(Negate(is.null), figures), list("All cases" = rows),
               c("Exponents: slopes on log scales over the upper half of the sizes; vignettes/scale.Rmd has the limits beside.",
                 "One chain; seconds of an iteration are those of the call, set-up and warmup counted, over all iterations; of release() those of the call.",
                 "Large sizes have few iterations, at least 200 of sites and 60 of cells and areas, so that set-up and warmup count for much.",
                 paste("Sites: a gradient takes 70 ns a site with 100 sites, 180 with 1,000 and 550 with 10,000, whose data are larger than the caches;",
                       "16 gradients an iteration from 1,000 to 10,000 sites. 100,000 sites, one run of 40 iterations by hand: 268 processor seconds, 63 of them",
                       "in the sampler (1.6 an iteration), and 1.7 GB; R prepares and checks a site in 2 milliseconds."),
                 "One table of 1,000,000 cells was stopped after two processor minutes, when it held 5 GB.",
                 "Memory is the peak beyond what the release takes: draws that are kept, and what the sampler holds.",
                 sprintf("Processes: elapsed seconds, of a machine with %d cores; forked, so that they share memory.", parallel::detectCores())))
}

if (sys.nframe() == 0L) cat(result_lines(bench_growth(is_quick(), setdiff(commandArgs(TRUE), "quick"))), sep = "\n")
