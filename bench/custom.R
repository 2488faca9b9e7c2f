# Models of one's own: in R against dapper (the same normal mean), in C against a
# built-in of the same shape.
#
#   Rscript bench/custom.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# ---- in R, against dapper: x ~ N(mu, 1), mu ~ N(0, 3^2), clamped total with Laplace noise ----

mean_bound <- 4
mean_scale <- 2 * mean_bound # epsilon = 1

mean_model <- function() {
  model_custom(
    r_prior = function() c(mu = stats::rnorm(1, 0, 3)),
    r_records = function(theta, n) stats::rnorm(n, theta, 1),
    r_theta = function(records, theta) {
      precision <- 1 / 9 + nrow(records)
      stats::rnorm(1, sum(records) / precision, 1 / sqrt(precision))
    },
    variables = "x",
    move = function(theta, theta_new, records) records + (theta_new - theta),
    log_prior = function(theta) stats::dnorm(theta, 0, 3, log = TRUE))
}

# the cheapest R that we could write for one record
mean_dapper <- function(n) {
  structure(class = "privacy", list(
    posterior_f = function(dmat, theta) {
      precision <- 1 / 9 + n
      stats::rnorm(1, sum(dmat) / precision, 1 / sqrt(precision))
    },
    latent_f = function(theta) matrix(stats::rnorm(n, theta, 1), ncol = 1L),
    mechanism_f = function(sdp, sx) -abs(sdp - sx) / 8,
    statistic_f = function(xi, sdp, i) if (xi > 4) 4 else if (xi < -4) -4 else xi,
    npar = 1, varnames = "mu"))
}

compare_dapper <- function(n, quick) {
  set.seed(n)
  z <- sum(pmin(pmax(stats::rnorm(n, 0.5), -mean_bound), mean_bound)) + stats::rexp(1, 1 / mean_scale)
  release <- as_release(c(x = z), stat_sums(~ x, bounds = list(x = c(-4, 4))), mech_laplace(scale = mean_scale), n)
  foreign <- as_model(mean_dapper(n), sdp = z, init_par = 0.5)
  theirs_iter <- max(3, round((if (quick) 3e4 else 8e4) / n))
  ours_iter <- max(200, round((if (quick) 3e5 else 8e5) / n))
  start <- list(c(mu = 0.5))
  say("normal mean, n = %d", n)
  plain <- sample_posterior(release, mean_model(), chains = 1, iter = 10, warmup = 5, init = start, control = list(passes = 0))
  moving <- sample_posterior(release, mean_model(), chains = 1, iter = 1000, warmup = 500, init = start)
  as_it_is <- sample_posterior(foreign$release, foreign, chains = 1, iter = 10, warmup = 5)
  sdp <- z
  class <- mean_dapper(n)
  rounds <- do.call(rbind, lapply(1:3, function(round) {
    data.frame(
      theirs = seconds(dapper::dapper_sample(class, sdp = sdp, init_par = 0.5, niter = theirs_iter, warmup = 0, seed = round)) / theirs_iter,
      plain = (seconds(extend(plain, ours_iter + 1)) - seconds(extend(plain, 1))) / ours_iter,
      moving = (seconds(extend(moving, ours_iter + 1)) - seconds(extend(moving, 1))) / ours_iter,
      as_it_is = (seconds(extend(as_it_is, theirs_iter + 1)) - seconds(extend(as_it_is, 1))) / theirs_iter)
  }))
  time <- vapply(rounds, stats::median, 0)
  data.frame(n = n, program = c("dapper", "noiseaware, model_custom(), plain sampler", "noiseaware, model_custom(), with moves", "noiseaware, as_model(): dapper's functions as they are"),
             us = 1e6 * time, ratio = time[["theirs"]] / time, row.names = NULL)
}

# ---- in C, against the built-in exponential model ------------------------------------

# the hooks of src/model/exponential.c, written for the public header
exponential_copy <- function(folder) {
  source <- readLines("src/model/exponential.c")
  text <- paste(source, collapse = "\n")
  swap <- function(from, to) text <<- gsub(from, to, text, fixed = TRUE)
  text <- sub('(#include "[^\n]*\n)+', "#include <math.h>\n#include <noiseaware.h>\n", text)
  # capabilities are hooks of the one table there, and theta has no description
  text <- sub("/[*] ---- what it can do.*?\n\n(static const struct model_[^;]*;\n)+\n", "", text, perl = TRUE)
  text <- gsub("    model->[a-z]+ = &[a-z_]+;\n", "", text)
  text <- sub("    const struct theta_block .*\n    model_describe[^\n]*\n",
              paste0("    model->parameters = model->moving = model->innovations = 1;\n    model->innovation = NOISEAWARE_EXPONENTIAL;\n",
                     "    model->moves = host->memory(host, 1, sizeof(int));\n"), text)
  swap("VECTOR_CLONES ", "")
  swap("FOR_RECORDS", "NOISEAWARE_RECORDS")
  swap("const struct fields *fields, struct model *model", "const struct noiseaware_host *host, struct noiseaware_model *model")
  swap("fields_vector(fields, ", "host->field(host, ")
  swap("plugin_memory(", "host->memory(host, ")
  swap("MAX_BLOCK", "NOISEAWARE_MAX_BLOCK")
  swap("PLUGIN_", "NOISEAWARE_")
  swap("dist_log_gamma(rng", "rng->log_gamma(rng")
  swap("rng_fill_exponential(", "rng->fill_exponential(")
  swap("rng_fill_normal(", "rng->fill_normal(")
  swap("struct rng *rng", "struct noiseaware_random *rng")
  swap("block_sum", "noiseaware_sum")
  swap("const struct model_class model_exponential = {",
       "static const struct noiseaware_model_class table = {\n    .abi = NOISEAWARE_ABI,\n    .size = sizeof table,")
  hooks <- c("dprior", "add", "rtheta", "from_innovations", "set_move", "move")
  swap("    .rrecords = rrecords,\n", paste0("    .rrecords = rrecords,\n", paste0("    .", hooks, " = ", hooks, ",\n", collapse = "")))
  file <- file.path(folder, "copy.c")
  writeLines(c(text, "const struct noiseaware_model_class *copy(void) { return &table; }"), file)
  file
}

compile_copy <- function() {
  folder <- tempfile("copy")
  dir.create(folder)
  file <- exponential_copy(folder)
  library_file <- sub("[.]c$", .Platform$dynlib.ext, file)
  Sys.setenv(PKG_CPPFLAGS = paste0("-I", shQuote(system.file("include", package = "noiseaware"))))
  log <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", library_file, file), stdout = TRUE, stderr = TRUE)
  if (!file.exists(library_file)) stop("the copy did not compile:\n", paste(log, collapse = "\n"), call. = FALSE)
  library_file
}

compare_compiled <- function(n, quick, library_file) {
  say("compiled, n = %d", n)
  statistic <- stat_sums(~ x, bounds = list(x = c(0, 5)))
  release <- as_release(c(x = 0.9 * n), statistic, mech_laplace(epsilon = 1), n)
  models <- list(built_in = model_exponential(prior = prior_gamma(2, 2)),
                 own = model_compiled("copy", dll = library_file, parameters = "rate", fields = list(shape = 2, rate = 2)))
  more <- round((if (quick) 2e6 else 6e6) / n)
  # learned passes differ by luck: the same number for both
  fits <- lapply(models, function(m) sample_posterior(release, m, chains = 1, iter = 200, warmup = 100, seed = 1, control = list(passes = 3)))
  same <- isTRUE(all.equal(as.numeric(fits[[1L]]$draws), as.numeric(fits[[2L]]$draws)))
  rounds <- do.call(rbind, lapply(1:5, function(round) {
    as.data.frame(lapply(fits, function(fit) seconds(extend(fit, more + 1)) - seconds(extend(fit, 1))))
  }))
  ns <- vapply(rounds, stats::median, 0) * 1e9 / (more * n)
  data.frame(n = n, built_in = ns[["built_in"]], own = ns[["own"]], ratio = stats::median(rounds$own / rounds$built_in), same = same)
}

bench_custom <- function(quick = FALSE) {
  dapper <- do.call(rbind, lapply(c(100, 10000), compare_dapper, quick = quick))
  library_file <- compile_copy()
  compiled <- do.call(rbind, lapply(c(100, 10000), compare_compiled, quick = quick, library_file = library_file))
  custom <- dapper[dapper$program == "noiseaware, model_custom(), plain sampler", ]
  names(dapper)[3:4] <- c("microseconds an iteration", "times dapper's speed")
  bench_result(
    c(Map(function(n, ratio) figure("times dapper's iterations per second, model in R", paste("normal mean, n =", format_figure(n)), ratio, 50), custom$n, custom$ratio),
      Map(function(n, ratio) figure("time of a compiled copy over the built-in", paste("exponential, n =", format_figure(n)), ratio, 1.2, at_most = TRUE),
          compiled$n, compiled$ratio)),
    list("Normal mean, an iteration" = dapper,
         "Exponential model, ns a record and iteration" = data.frame(n = compiled$n, `built-in` = compiled$built_in, compiled = compiled$own,
                                                                      `same draws` = ifelse(compiled$same, "yes", "NO"), check.names = FALSE)),
    c("Normal mean: x ~ N(mu, 1), mu ~ N(0, 9), one clamped total, Laplace noise, epsilon 1. Our model is R functions over all records, statistic and mechanism are the package's; dapper's functions are per record, the cheapest R that we could write. Medians of three rounds, one program after the other.",
      "An iteration with moves holds several passes over the records, so its effective draws are worth more than one of the plain sampler.",
      "The compiled copy is src/model/exponential.c translated to the public header, without the AVX2 clones; three passes a sweep for both."))
}

run_alone(bench_custom)
