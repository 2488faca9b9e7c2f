# Random calls over the whole public interface: valid ones with one or two
# arguments replaced by something odd, or damaged a little; and random and mutated
# files for read_release(). What must not happen: a crash, a hang, an error that is
# not of class noiseaware_error, a warning that is not the package's own, a mutated
# file that reads as another release, a call that takes more than ten seconds of processor time.
#
#   Rscript tools/fuzz.R [calls] [seed] [processes]
#
# Calls run in processes of their own, 5,000 in each, under the eye of this one: it
# sees crashes, and hangs in C that no time limit ends. Prints what was found, one
# line each, and exits non-zero if anything was.
arguments <- commandArgs(TRUE)
given <- function(i, default) if (length(arguments) >= i) as.numeric(arguments[i]) else default
calls <- given(1, 20000)
seed <- given(2, 1)
processes <- given(3, 1)
share <- 5000
patience <- 120 # seconds for one call that no time limit ends, on a busy machine
most_time <- 10 # seconds of processor time for one call

if (length(arguments) < 4L) {
  script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
  directory <- tempfile("fuzz")
  dir.create(directory)
  shares <- rep(share, ceiling(calls / share))
  shares[length(shares)] <- calls - share * (length(shares) - 1)
  file_of <- function(k, what) file.path(directory, paste0(what, k))
  # the output of a child, then whether it ended by itself
  start <- function(k) {
    system(paste(shQuote(file.path(R.home("bin"), "Rscript")), script, shares[k], seed * 1000 + k, 1, file_of(k, "call"),
                 ">", file_of(k, "out"), "2>&1; echo ended >>", file_of(k, "out")), wait = FALSE)
  }
  lines_of <- function(k, what) if (file.exists(file_of(k, what))) readLines(file_of(k, what), warn = FALSE) else character()
  found <- character()
  report <- function(lines) {
    lines <- setdiff(lines, found)
    found <<- c(found, lines)
    if (length(lines)) cat(lines, sep = "\n")
  }
  outcomes <- list()
  waiting <- seq_along(shares)
  running <- integer()
  began <- Sys.time()
  while (length(waiting) || length(running)) {
    while (length(running) < processes && length(waiting)) {
      start(waiting[1L])
      running <- c(running, waiting[1L])
      waiting <- waiting[-1L]
    }
    Sys.sleep(1)
    for (k in running) {
      out <- lines_of(k, "out")
      report(sub("^found ", "", grep("^found ", out, value = TRUE)))
      touched <- file.mtime(file_of(k, "call"))
      hangs <- !is.na(touched) && difftime(Sys.time(), touched, units = "secs") > patience
      if (hangs) {
        report(paste("hang:", lines_of(k, "call")[2L]))
        tools::pskill(as.integer(lines_of(k, "call")[1L]), 9L)
      }
      if (!"ended" %in% out && !hangs) next
      running <- setdiff(running, k)
      counted <- grep("^outcome ", out, value = TRUE)
      if (!length(counted) && !hangs) report(paste("crash:", lines_of(k, "call")[2L], "|", paste(utils::tail(setdiff(out, "ended"), 3L), collapse = " ")))
      outcomes[[k]] <- sub("^outcome ", "", counted)
    }
  }
  outcomes <- do.call(rbind, strsplit(unlist(outcomes), " "))
  counts <- tapply(as.numeric(outcomes[, 2L]), outcomes[, 1L], sum)
  print(counts)
  cat(length(found), "kinds of trouble in", sum(counts), "calls,", round(difftime(Sys.time(), began, units = "mins"), 1), "minutes\n")
  quit(status = as.integer(length(found) > 0))
}

library(noiseaware)
set.seed(seed)
options(warn = 1)

# cli's formatting is nine tenths of the time of a refusal: of texts that were
# formatted often, one in twenty is from there on
local({
  full <- getFromNamespace("stop_classed", "noiseaware")
  times <- new.env()
  light <- function(kind, message, call = rlang::caller_env(), .envir = parent.frame()) {
    key <- message[1L]
    times[[key]] <- c(times[[key]], 0)[1L] + 1
    if (times[[key]] <= 40 || stats::runif(1) < 0.05) full(kind, message, call, .envir)
    stop(errorCondition(key, class = c(paste0("noiseaware_error_", kind), "noiseaware_error")))
  }
  utils::assignInNamespace("stop_classed", light, "noiseaware")
})

# ---- odd values ------------------------------------------------------------------

latin1 <- "\xe4"
Encoding(latin1) <- "latin1"
odd <- list(
  NULL, NA, NA_character_, NA_integer_, NA_complex_, NaN, Inf, -Inf, 0, 0L, -0, -1, 1e308, -1e308, 1e-308, 5e-324, .Machine$integer.max, -.Machine$integer.max,
  2^31, 2^53, 2^53 + 2, 1e-9, 0.1, 0.5, 1.5, 1, 2L, 3, 1i, TRUE, FALSE, "", " ", "a", "y", "\u00e4", latin1, "y ~ x", "NA", "{x}", "{stop()}", "<b>", "%s", strrep("x", 5000),
  rawToChar(as.raw(c(0x66, 0xff))), numeric(), character(), logical(), list(), integer(), list(1), list(a = 1), list(NULL), list(list()), list(a = 1, a = 2),
  list(y = c(0, 1)), list(x = c(1, 0)), list(x = c(0, 0)), list(x = c(-Inf, Inf)), list(x = c(NA, 1)), list(x = c(0, 1e308)), list(x = c(-1e308, 1e308)), list(x = 1:3), list(g = "a"),
  list(g = c("a", "a")), list(g = c("a", NA)), list(g = character()), list(g = c("a", "b"), h = c("u", "v")), list(g = 1:2), c(a = 1, a = 2), c(x = 1), c(x = NaN),
  c(NA, 1), c("a", NA), c("a", "a"), 1:3, -3:3, numeric(1000), matrix(0, 2, 2), diag(2), diag(3), matrix(NA, 1, 1), matrix(1:6, 2), matrix("a"), array(0, c(2, 2, 2)), data.frame(),
  data.frame(x = 1), data.frame(y = NA, x = 1), data.frame(y = 1, x = "a"), data.frame(y = numeric(), x = numeric()), data.frame(x = I(list(1))),
  factor("a"), factor(c("a", "b", NA)), ordered("a"), as.Date("2020-01-01"), as.POSIXct(0, origin = "1970-01-01"), as.difftime(1, units = "secs"), as.table(1:3), quote(x), quote(f(x)),
  expression(a), y ~ x, ~ x, ~ ., y ~ ., y ~ x:z, y ~ 0, ~ x + I(x^2), ~ g, ~ g:h, ~ h, log(y) ~ x, y ~ 1, y ~ x + x, y ~ y, ~ x + I(x^3) + I(x * y), ~ I(1 / x), ~ poly(x, 2), y ~ x | g,
  mean, sum, `[`, function() 1, function(...) stop("mine"), function(x) x, function(n) NULL, function(...) NaN, function(...) "a", function(...) numeric(), function(...) list(),
  globalenv(), new.env(), raw(3), structure(1, class = "strange"), structure(list(), class = "privacy"), quote(expr = ), as.name("a b"), stats::as.dendrogram(stats::hclust(stats::dist(1:3))))
an_odd <- function() odd[[sample.int(length(odd), 1L)]]
any_of <- function(x) x[[sample.int(length(x), 1L)]]

# a valid value with a fault; objects of ours stay whole, for what a forged one
# holds is the forger's
damage <- function(x) {
  if (length(x) == 0L) return(an_odd())
  if (is.data.frame(x)) {
    column <- sample.int(length(x), 1L)
    return(switch(sample.int(5L, 1L), x[-column], x[0L, , drop = FALSE], `names<-`(x, rev(names(x))), x[rep(1L, 3L), , drop = FALSE],
                  `[[<-`(x, column, value = rep_len(any_of(list(NA, Inf, "z", TRUE, 1e308, factor("z"), latin1, list(1))), nrow(x)))))
  }
  if (is.object(x) && !inherits(x, "formula") || is.function(x) || is.language(x)) return(an_odd())
  at <- sample.int(length(x), 1L)
  if (is.list(x)) {
    return(switch(sample.int(5L, 1L), x[-at], unname(x), c(x, x[at]), `names<-`(x, sample(c(names(x), "z"), length(x), replace = TRUE)),
                  replace(x, at, list(if (stats::runif(1) < 0.5) an_odd() else damaged(x[[at]])))))
  }
  switch(sample.int(10L, 1L), x[-at], c(x, x[at]), replace(x, at, NA), if (is.numeric(x)) replace(x, at, any_of(c(Inf, -Inf, NaN, 0, -1, 0.5, 1e308, 1e-308))) else rev(x),
         stats::setNames(x, rep_len(c("a", "z", ""), length(x))), as.character(x), as.list(x), matrix(x, 1L), if (is.numeric(x)) -x else factor(x), if (is.numeric(x)) x * 1e6 else paste0(x, "z"))
}

# some types take no such fault
damaged <- function(x) tryCatch(damage(x), error = function(e) an_odd())

# ---- valid calls --------------------------------------------------------------------

records <- data.frame(y = c(0.5, -1, 2, 0.1), x = c(1, 2, 0.5, 0), g = c("a", "b", "a", "a"), h = c("u", "u", "v", "w"), k = c(0, 3, 1, 2), b = c(0, 1, 1, 0))
levels <- list(g = c("a", "b"), h = c("u", "v", "w"))
statistics <- list(
  crossprod = stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-2, 2))), weighted = stat_crossprod(y ~ 1, list(y = c(-3, 3), k = c(0, 3)), weights = ~ k),
  factors = stat_crossprod(y ~ x + g, list(y = c(-3, 3), x = c(-2, 2), g = c("a", "b"))),
  sums = stat_sums(~ k, list(k = c(0, 10))), squares = stat_sums(~ x + I(x^2), list(x = c(-2, 2)), rescale = FALSE), counts = stat_counts(~ g, levels["g"]),
  crossed = stat_counts(~ g:h, levels), single = stat_records(~ g, levels = levels["g"]), values = stat_records(~ x, bounds = list(x = c(0, 2))),
  logit = stat_objective(b ~ x, list(b = c(0, 1), x = c(-2, 2))), fourth = stat_moments4(~ x, list(x = c(-2, 2))), smooth = stat_crossprod(y ~ s(x, k = 6) + g, list(y = c(-3, 3), x = c(-2, 2), g = c("a", "b"))),
  quartiles = stat_quantiles(~ x, list(x = c(-2, 2)), steps = 8),
  own = stat_custom(function(records) cbind(a = as.numeric(records[, 1] > 1)), names = "a", sensitivity = 1, bounds = list(x = c(0, 3))))
mechanisms <- list(mech_laplace(epsilon = 1), mech_gaussian(mu = 1), mech_discrete_laplace(epsilon = 1), mech_laplace(scale = 2), mech_discrete_gaussian(rho = 1), mech_randomized_response(epsilon = 2),
                   mech_objective(epsilon = 1), mech_custom(log_density = function(noise) rowSums(stats::dcauchy(noise, log = TRUE)), r = function(s) s + stats::rcauchy(length(s))),
                   mech_exponential(epsilon = 1))
own_model <- list(
  r_prior = function() c(mu = stats::rnorm(1)), r_records = function(theta, n) cbind(x = stats::rnorm(n, theta["mu"])),
  r_theta = function(records, theta) c(mu = stats::rnorm(1, sum(records) / (1 + nrow(records)), 1 / sqrt(1 + nrow(records)))), variables = "x",
  move = function(theta, theta_new, records) records + theta_new["mu"] - theta["mu"], log_prior = function(theta) stats::dnorm(theta["mu"], log = TRUE))
own_family <- list(
  log_density = function(x, theta) log(theta["rate"]) - theta["rate"] * x, statistic = function(x) x, r_prior = function() c(rate = stats::rgamma(1, 2, 1)),
  log_prior = function(theta) stats::dgamma(theta["rate"], 2, 1, log = TRUE), r_theta = function(total, n) c(rate = stats::rgamma(1, 2 + n, 1 + total)),
  r_records = function(theta, n) stats::rexp(n, theta["rate"]), project = function(total, n) pmax(total, 0), support = c(0, Inf), variable = "x")
models <- list(model_lm(), model_poisson(), model_exponential(), model_normal(), model_bernoulli(), model_categorical(), model_naive_bayes("g"), model_logistic(), model_mvnormal(),
               do.call(model_custom, own_model), do.call(model_expfam, own_family))
foreign <- structure(class = "privacy", list(
  posterior_f = function(dmat, theta) stats::rnorm(1, sum(dmat) / (1 + nrow(dmat)), 1 / sqrt(1 + nrow(dmat))), latent_f = function(theta) matrix(stats::rnorm(5, theta, 1), ncol = 1),
  mechanism_f = function(sdp, sx) -abs(sdp - sx) / 2, statistic_f = function(xi, sdp, i) xi, npar = 1, varnames = "mu"))
releases <- list(simulate_release(records, statistics$crossprod, mechanisms[[1]]), simulate_release(records, statistics$counts, mechanisms[[3]]),
                 simulate_release(records, statistics$sums, mechanisms[[2]]), release(records, statistics$crossed, mechanisms[[5]]),
                 as_release(c(1, 0, 1, 1), statistics$single, mechanisms[[6]], 4), as_release(c(0.2, -0.1), statistics$logit, mechanisms[[7]], 4))
fits <- list(sample_posterior(releases[[1]], model_lm(), chains = 1, iter = 20), sample_posterior(releases[[2]], model_bernoulli(), chains = 1, iter = 20),
             sample_posterior(releases[[3]], model_poisson(), chains = 2, iter = 20, method = "clt"), sample_posterior(releases[[3]], model_poisson(), chains = 1, iter = 20, method = "naive"))
calibration <- calibrate(models[[5]], statistics$counts, mechanisms[[1]], n = 4, replicates = 3, chains = 1, iter = 20, seed = 1)
planned <- design(models[[5]], statistics$counts, epsilon = 1, n = 4, replicates = 2, chains = 1, iter = 20, seed = 1)
compared <- suppressWarnings(compare_analyses(releases[[1]], model_lm(), records, chains = 1, iter = 20, seed = 1))
lived <- data.frame(time = c(1, 2, 3, 5), died = c(1, 0, 1, 1), g = c("a", "b", "a", "a"))
exits <- survival_exits(lived, Surv(time, died) ~ g, c(0, 2, 4, 6), levels["g"])
areas <- data.frame(county = c("p", "p", "q"), block = c("1", "2", "3"))
homes <- as_release(list(county = c(5, 6), block = c(2, 4, 6)),
                    list(county = stat_counts(~ county, list(county = c("p", "q"))), block = stat_counts(~ block, list(block = areas$block))),
                    list(county = mechanisms[[5]], block = mechanisms[[5]]), n = 12)
sized <- release(records, list(size = stat_size(), g = statistics$counts), list(size = mechanisms[[3]], g = mechanisms[[3]]), neighbours = "add_remove")
releases <- c(releases, list(sized, homes))
fitted_now <- function(...) suppressWarnings(sample_posterior(..., iter = 20, seed = 1))
pooled <- fitted_now(list(u = releases[[2]], v = releases[[2]], w = releases[[2]]), model_bernoulli(), pool = "partial", chains = 2)
table_fit <- fitted_now(releases[[4]], model_table(), chains = 1)
joint <- fitted_now(release(records, stat_crossprod(y ~ x + k, list(y = c(-3, 3), x = c(-2, 2), k = c(0, 3))), mechanisms[[1]]), model_mvnormal(), chains = 1)
yes_no <- fitted_now(release(records, stat_crossprod(b ~ x, list(b = c(0, 1), x = c(-2, 2))), mechanisms[[1]]), model_logistic(), chains = 1)
lives <- fitted_now(release(exits, stat_survival(~ g, c(0, 2, 4, 6), levels["g"]), mechanisms[[3]]), model_survival(), chains = 1)
fits <- c(fits, list(pooled, table_fit, joint, yes_no, lives))
synthetic <- synthesize(table_fit, m = 3, seed = 1)
directory <- tempfile("fuzz")
dir.create(directory)
path <- file.path(directory, "release.json")
table_path <- file.path(directory, "records.csv")
utils::write.csv(records, table_path, row.names = FALSE)

draw <- list(chains = 1, iter = 10, warmup = 5, thin = 1, seed = 1)
valid <- list(
  stat_crossprod = function() list(formula = y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)), rescale = TRUE),
  stat_sums = function() list(formula = ~ x + I(x^2), bounds = list(x = c(-1, 1)), outside = "clamp"),
  stat_counts = function() list(formula = ~ g + g:h, levels = levels), stat_records = function() list(formula = ~ x, bounds = list(x = c(0, 1)), levels = NULL),
  stat_custom = function() list(fun = function(records) cbind(a = records[, 1] > 1), names = "a", sensitivity = 1, bounds = list(x = c(0, 3))),
  stat_moments4 = function() list(formula = ~ x, bounds = list(x = c(0, 1)), rescale = TRUE),
  stat_objective = function() list(formula = b ~ x, bounds = list(b = c(0, 1), x = c(-2, 2)), rescale = TRUE, radius = NULL),
  stat_quantiles = function() list(formula = ~ x, bounds = list(x = c(-2, 2)), probs = c(0.5, 0.9), steps = 10),
  sensitivity = function() list(statistic = any_of(statistics), norm = "L2"),
  mech_laplace = function() list(epsilon = 1, scale = NULL), mech_gaussian = function() list(rho = NULL, epsilon = NULL, delta = NULL, mu = 1, sd = NULL),
  mech_discrete_laplace = function() list(epsilon = 1, scale = NULL), mech_discrete_gaussian = function() list(rho = 1, sd = NULL),
  mech_randomized_response = function() list(epsilon = 1), mech_objective = function() list(epsilon = 1, delta = NULL, ridge = NULL, scale = NULL, sd = NULL, norm = "Linf"),
  mech_exponential = function() list(epsilon = 1, scale = NULL),
  mech_custom = function() list(log_density = function(noise) rowSums(-abs(noise)), r = NULL, sd = NULL),
  privacy = function() list(x = if (stats::runif(1) < 0.5) any_of(mechanisms) else any_of(releases), delta = 1e-6), noise_sd = function() list(any_of(releases)),
  release = function() list(data = records, statistic = any_of(statistics), mechanism = any_of(mechanisms), budget = if (stats::runif(1) < 0.3) budget(epsilon = 1)),
  release_objective = function() list(data = records, statistic = statistics$logit, mechanism = mechanisms[[7]], budget = NULL),
  as_release = function() list(value = c(1, 2, 3, 4, 5), statistic = if (stats::runif(1) < 0.5) statistics$crossprod else any_of(statistics), mechanism = any_of(mechanisms), n = 10),
  simulate_release = function() list(x = if (stats::runif(1) < 0.7) any_of(models) else records, statistic = any_of(statistics), mechanism = any_of(mechanisms), n = 5, parameters = NULL),
  budget = function() list(epsilon = 1, delta = NULL, rho = NULL),
  prior_beta = function() list(1, 1), prior_dirichlet = function() list(1), prior_gamma = function() list(1, 1), prior_normal = function() list(0, 1), prior_inverse_gamma = function() list(1, 1),
  prior_nig = function() list(mean = 0, precision = 1, shape = 1, rate = 1, within = NULL), prior_niw = function() list(mean = NULL, kappa = 1, scale = NULL, df = NULL, within = NULL),
  fixed = function() list(1), covariate_moments = function() list(any_of(list(NULL, data.frame(x = 1:100)))),
  model_lm = function() list(formula = y ~ x, prior = prior_nig(), sigma = NULL, covariates = prior_niw(), levels = prior_dirichlet()),
  model_logistic = function() list(formula = b ~ x, prior = prior_normal(0, 2), covariates = prior_niw(), levels = prior_dirichlet()),
  model_bernoulli = function() list(variable = NULL, prior = prior_beta()), model_categorical = function() list(variable = NULL, prior = prior_dirichlet()),
  model_naive_bayes = function() list(class = "g", features = NULL, prior = prior_dirichlet(), conditional = prior_dirichlet()), model_poisson = function() list(variable = NULL, prior = prior_gamma()),
  model_exponential = function() list(variable = NULL, prior = prior_gamma()), model_normal = function() list(variable = NULL, prior = prior_nig()),
  model_mvnormal = function() list(variables = NULL, prior = prior_niw()), model_custom = function() own_model, model_expfam = function() own_family,
  model_compiled = function() list(symbol = "none", package = "stats", dll = NULL, parameters = "a", variables = "x", fields = list(a = 1)),
  as_model = function() list(x = foreign, sdp = 1, init_par = 0), debug_model = function() list(model = any_of(models), statistic = any_of(statistics), n = 10, seed = 1), supported = function() list(),
  sample_posterior = function() c(list(release = any_of(releases), model = any_of(models), method = any_of(c("auto", "augment", "naive", "clt", "collapse"))), draw, list(init = NULL, control = list(passes = 1))),
  nonprivate_posterior = function() c(list(data = records, model = any_of(models), statistic = any_of(statistics)), draw),
  calibrate = function() list(model = models[[5]], statistic = statistics$counts, mechanism = mechanisms[[1]], n = 4, replicates = 1, method = "auto", chains = 1, iter = 10, parameters = NULL, level = 0.9,
                              seed = 1, file = NULL),
  design = function() list(model = models[[5]], statistic = statistics$counts, mechanism = mech_laplace, epsilon = 1, n = 4, replicates = 1, method = "auto", chains = 1, iter = 10, level = 0.9, seed = 1),
  compare_analyses = function() list(release = releases[[2]], model = models[[5]], data = NULL, methods = "auto", level = 0.9, chains = 1, iter = 10, seed = 1),
  extend = function() list(fit = any_of(fits), iter = 3), acceptance = function() list(fit = any_of(fits)), denoise = function() list(fit = any_of(fits)),
  update = function() c(list(object = any_of(fits), model = model_bernoulli()), draw), predict = function() list(object = fits[[1]], newdata = data.frame(x = 1), type = "mean", interval = "none", level = 0.9, seed = 1),
  confint = function() list(object = any_of(fits), parm = NULL, level = 0.9), simulate = function() list(object = any_of(fits), nsim = 2, seed = 1),
  plot = function() any_of(list(list(x = fits[[1]], type = "trace", variables = NULL), list(x = calibration, type = "rank", variables = NULL), list(x = planned, variables = NULL), list(x = compared, variables = NULL))),
  coverage = function() list(calibration, 0.9),
  stat_by = function() list(statistic = statistics$sums, levels = levels["g"]), stat_size = function() list(),
  stat_covariance = function() list(formula = ~ x, bounds = list(x = c(-2, 2)), centre = 0.5, divisor = 4, outside = "clamp"),
  stat_cumulative = function() list(statistic = stat_counts(~ h, levels["h"])), stat_means = function() list(statistic = statistics$sums, n = 4),
  stat_histogram = function() list(formula = ~ x, breaks = c(0, 1, 2, Inf), levels = NULL, right = FALSE),
  stat_linear = function() list(statistic = stat_counts(~ h, levels["h"]), queries = list(few = c("h=u", "h=v"), gap = c("h=u" = 1, "h=w" = -1))),
  stat_subset = function() list(statistic = statistics$crossed, components = "g=a:h=u"),
  stat_survival = function() list(formula = ~ g, breaks = c(0, 2, 4, 6), levels = levels["g"], publish = "censored"),
  survival_exits = function() list(data = lived, formula = Surv(time, died) ~ g, breaks = c(0, 2, 4, 6), levels = levels["g"]),
  mech_exact = function() list(), mech_record_noise = function() list(sd = c(x = 1), answers = NULL),
  mech_tabulated = function() list(density = function(e) exp(-abs(e)), grid = NULL, lower = -8, upper = 8, scale = 1),
  mech_unary_encoding = function() list(epsilon = 1, encoding = "optimised", p = NULL, q = NULL, shared = FALSE),
  published = function() list(any_of(mechanisms[1:5]), threshold = 2, round = NULL, lower = NULL, upper = NULL, listed = TRUE),
  persons = function() list(person = "h", contributions = 2, neighbours = "replace"), record_source = function() list(from = table_path, sep = ",", rows = 3),
  partial_total = function() list(data = records, statistic = any_of(statistics[1:6]), mechanism = mechanisms[[2]], n = 4, neighbours = "replace"),
  add_release = function() list(x = any_of(list(releases[[2]], fits[[2]])), second = releases[[2]], names = c("a", "b")),
  declare_outside = function() list(release = any_of(releases[c(1, 3)]), outside = "none"),
  prior_beta_process = function() list(1, 0.5), prior_gamma_process = function() list(1, 0.5), prior_exponential = function() list(1), prior_half_normal = function() list(1),
  prior_half_t = function() list(3, 1), prior_lkj = function() list(2), prior_lognormal = function() list(0, 1), prior_student_t = function() list(3, 0, 1),
  prior_n = function() any_of(list(list(distribution = "uniform", lower = 1, upper = 50), list(distribution = "negative_binomial", mean = 5, size = 2))), student = function() list(4),
  covariate_beta = function() list(share = prior_beta(1, 1), precision = prior_gamma(1.5, 0.15)), covariate_count = function() list(mean = prior_gamma(1.5), size = NULL),
  covariate_lognormal = function() list(meanlog = prior_normal(), sdlog = NULL),
  covariate_mixture = function() list(components = 2, weights = prior_dirichlet(2), mean = prior_normal(), variance = NULL),
  partial_pooling = function() list(vary = NULL, sd = prior_half_normal(), sites = NULL, effects = prior_normal(), correlation = NULL, covariates = "separate", walk = FALSE),
  model_glm = function() list(formula = k ~ x, family = any_of(list("poisson", stats::binomial())), prior = NULL, covariates = prior_niw(), levels = prior_dirichlet(), cv = NULL, factors = NULL),
  model_survival = function() list(formula = ~ g, distribution = "weibull", prior = prior_normal(), shape = prior_gamma(2, 2), baseline = NULL, baseline_by = ~ 1,
                                   censoring = NULL, censoring_by = ~ 1, shares = prior_dirichlet(1)),
  model_table = function() list(formula = ~ g:h, prior = prior_dirichlet(1), zeros = NULL),
  bayes_factor = function() list(fit1 = fits[[2]], fit2 = fits[[2]], draws = 100, seed = 1), log_evidence = function() list(fit = any_of(fits), draws = 100, seed = 1),
  noise_cost = function() list(fit = fits[[1]], databases = 2, level = 0.9, seed = 1), report = function() list(fit = fits[[2]], file = path, title = "a", databases = 2, seed = 1),
  contrast = function() list(object = pooled, of = NULL, measure = "difference", among = NULL, reference = "u", level = 0.9),
  site_draws = function() list(fit = pooled, site = "new", sites = NULL, seed = 1), site_ranks = function() list(fit = pooled, parameter = NULL, level = 0.9),
  regress = function() list(fit = joint, formula = y ~ x), refit_covariates = function() list(fit = yes_no, covariates = NULL, iter = 10),
  survival_measures = function() list(fit = lives, measure = any_of(c("survival", "hazard", "median")), times = 3),
  table_measures = function() list(fit = table_fit, margin = ~ g:h, measure = any_of(c("probability", "odds_ratio"))),
  synthesize = function() list(fit = any_of(fits), m = 2, of = "population", n = 5, seed = 1), as_mids = function() list(sets = synthetic),
  combine_synthetic = function() list(sets = synthetic, analysis = function(data) list(estimate = mean(data$g == "a"), variance = 1), level = 0.9),
  confidence_set = function() list(release = releases[[2]], model = models[[5]], parameter = "prob[b]", level = 0.9, alternative = "less", method = "test", replicates = 19, seed = 1, prior_n = NULL),
  p_value = function() list(release = releases[[2]], model = models[[5]], null = c("prob[b]" = 0.5), alternative = "less", replicates = 19, seed = 1, prior_n = NULL),
  private_test = function() list(release = releases[[4]], formula = g ~ h, null = NULL, alternative = "two.sided", level = 0.9, scores = NULL, of = "mean", interval = FALSE, bayes_factor = FALSE,
                                 replicates = 19, seed = 1, prior_n = NULL),
  test_hypothesis = function() list(x = releases[[4]], question = ~ g + h, model = NULL, draws = 100, error = 0.05, seed = 1),
  sample_geography = function() c(list(release = homes, formula = ~ county / block, areas = areas, shares = prior_dirichlet(1), concentration = prior_gamma(1, 0.01), sizes = prior_dirichlet(1)), draw,
                                  list(track = NULL)),
  explore_design = function() list(model = models[[5]], statistic = statistics$counts, mechanism = mech_laplace, bounds = NULL, prior = NULL, epsilon = 1, n = 20, replicates = 2, level = 0.9, seed = 1),
  sbc_backend = function() list(model = any_of(models), chains = 1, iter = 10), stan_program = function() list(x = releases[[1]], model = model_lm()), works_with = function() list(),
  write_release = function() list(release = any_of(releases), path = path), read_release = function() list(file = path, format = "noiseaware"))
methods <- c("predict", "confint", "simulate", "update", "plot") # generics of other packages
forgotten <- setdiff(getNamespaceExports("noiseaware"), names(valid))
if (length(forgotten)) stop("no valid call of ", paste(forgotten, collapse = ", "))
functions <- lapply(stats::setNames(nm = names(valid)), function(name) get(name, envir = asNamespace(if (name == "plot") "base" else if (name %in% methods) "stats" else "noiseaware")))

# ---- one call ----------------------------------------------------------------------

found <- character()
report <- function(kind, text) {
  line <- gsub("[[:space:]]+", " ", paste0(kind, ": ", text))
  key <- sub(" \\| [^|]*$", "", line) # one example of each is enough
  if (!key %in% found) {
    found <<- c(found, key)
    cat("found ", line, "\n", sep = "")
  }
}
shown <- function(name, args) {
  text <- vapply(args, function(a) {
    large <- function(a) is.object(a) && (is.list(a) || is.environment(a))
    if (large(a)) return(paste0("<", class(a)[1L], ">"))
    if (is.list(a) && length(a) && any(vapply(a, large, TRUE))) return(paste0("list of ", length(a), " with a <", class(Filter(large, a)[[1L]])[1L], ">"))
    substr(paste(deparse(a, nlines = 3L), collapse = " "), 1L, 60L)
  }, "")
  if (is.null(names(text))) names(text) <- rep("", length(text))
  paste0(name, "(", paste(ifelse(names(text) == "", text, paste(names(text), "=", text)), collapse = ", "), ")")
}
# R's own refusals: an argument left out, or one too many; and the user's own error
not_ours <- function(e) grepl("is missing, with no default|unused argument|matched by multiple", conditionMessage(e)) || identical(conditionMessage(e), "mine")

processor_time <- function() sum(proc.time()[c("user.self", "sys.self")])

try_call <- function(name, args) {
  text <- shown(name, args)
  cat(Sys.getpid(), text, file = arguments[4L], sep = "\n")
  setTimeLimit(cpu = most_time, transient = TRUE)
  on.exit(setTimeLimit())
  began <- processor_time()
  on.exit({
    # in C no limit is looked at
    if (processor_time() - began > most_time) report("slow", paste(name, "|", text))
  }, add = TRUE)
  tryCatch(withCallingHandlers({
    do.call(functions[[name]], args, quote = TRUE)
    "ok"
  }, warning = function(w) {
    if (!any(startsWith(class(w), "noiseaware_warning"))) report("warning", paste(name, "|", conditionMessage(w), "|", text))
    invokeRestart("muffleWarning")
  }, message = function(m) invokeRestart("muffleMessage")), noiseaware_error = function(e) "refused", error = function(e) {
    if (not_ours(e)) return("refused-by-R")
    kind <- if (grepl("CPU time limit", conditionMessage(e))) "hang" else "unclassed error"
    report(kind, paste(name, "|", substr(strsplit(conditionMessage(e), "\n")[[1L]][1L], 1L, 150L), "|", text))
    "bad"
  })
}

# who asks for more may wait for it
sizes <- c("n", "iter", "chains", "replicates", "databases", "draws", "points", "nsim", "bins", "steps", "passes")
takes_long <- function(args) {
  any(vapply(args[names(args) %in% sizes], function(a) is.numeric(a) && any(is.finite(a) & a > 1000 & a < 2^31), TRUE)) ||
    (is.list(args$control) && is.numeric(args$control$passes) && any(args$control$passes > 1000, na.rm = TRUE))
}

fuzz_call <- function() {
  name <- sample(names(valid), 1L)
  args <- valid[[name]]()
  # a generic of another package that gets another object is not ours
  open <- setdiff(seq_along(args), if (name %in% methods) 1L)
  if (length(open) && stats::runif(1) < 0.95) {
    for (i in sample(rep(open, 2L), sample(c(1L, 1L, 2L), 1L))) args[i] <- list(if (stats::runif(1) < 0.6) an_odd() else damaged(args[[i]]))
    if (stats::runif(1) < 0.02) args <- args[-open[1L]]
  }
  if (takes_long(args)) return("skipped")
  for (file in intersect(c("path", "file"), names(args))) {
    if (name != "read_release" && is.character(args[[file]]) && length(args[[file]]) == 1L && !is.na(args[[file]])) args[[file]] <- file.path(directory, "odd")
  }
  try_call(name, args)
}

# ---- files ---------------------------------------------------------------------------

texts <- lapply(releases, function(r) {
  write_release(r, path)
  readBin(path, "raw", 1e6)
})
pieces <- c("null", "{}", "[]", "\"", "1e999", "-", "\\u0000", "true", ",", ":", "\"name\"", "\"n\": -1,", "NaN", "{\"a\":", strrep("[", 300), "1e-400", "\\ud800", "\u00e4", "\u202e")
nodes <- list(NULL, TRUE, "", "a", -1, 0, 1e308, 1.5, list(), list(1, 2), list(a = 1), list(list(1)), "laplace", "gaussian", "crossprod", "~ g", "y ~ x", "system('true')", list(name = "laplace", epsilon = 1))

# a node of the parsed file replaced, left out, doubled or renamed
damage_tree <- function(x) {
  if (!is.list(x) || length(x) == 0L || stats::runif(1) < 0.15) return(any_of(nodes))
  at <- sample.int(length(x), 1L)
  switch(sample.int(6L, 1L), x[-at], c(x, x[at]), unname(x), if (is.null(names(x))) rev(x) else `names<-`(x, replace(names(x), at, any_of(c("", "name", "n", "z")))),
         replace(x, at, list(damage_tree(x[[at]]))), replace(x, at, list(damage_tree(x[[at]]))))
}

# A small file that asks for much: many terms, variables, levels, cells, parts,
# values, each once or all the same.
large_file <- function() {
  many <- function(most) round(10^stats::runif(1, 1, log10(most)))
  quoted <- function(x) paste0("\"", x, "\"")
  entries <- function(keys, values) paste0("{", paste0(quoted(keys), ":", values, collapse = ","), "}")
  name <- any_of(c("crossprod", "moments4", "sums", "counts", "records", "objective"))
  count <- many(any_of(c(30, 500, 20000)))
  variables <- if (stats::runif(1) < 0.3) "x" else paste0("x", seq_len(count))
  terms <- rep_len(variables, count)
  if (stats::runif(1) < 0.2) terms <- paste0(any_of(c("(", "I(", "-", "1 + ", "")), terms, any_of(c(")", "^2)", ":z", "")))
  formula <- paste(terms, collapse = any_of(c("+", "+", "+", ":", "*", "-")))
  if (stats::runif(1) < 0.1) formula <- paste0(strrep("(", count), formula, strrep(")", count))
  of_levels <- function() paste0("[", paste(quoted(seq_len(any_of(c(2, 3, many(1000))))), collapse = ","), "]")
  ranges <- if (name == "counts" || stats::runif(1) < 0.2) of_levels() else "[0,1]"
  fields <- c(quoted(name), quoted(paste0(any_of(c("~", "y~", "x1~")), formula)), entries(variables, ranges))
  names(fields) <- c("name", "formula", if (name == "counts") "levels" else "bounds")
  fields <- c(fields, switch(name, sums = c(outside = "\"clamp\""), counts = , records = NULL, c(rescale = "true")))
  statistic <- entries(names(fields), fields)
  mechanism <- "{\"name\":\"laplace\",\"scale\":1}"
  if (stats::runif(1) < 0.1) {
    parts <- paste0("p", seq_len(min(count, 300)))
    statistic <- entries(parts, statistic)
    mechanism <- entries(parts, mechanism)
  }
  n <- any_of(c(1, 10, 1e5, 2e9))
  value <- entries(paste0(any_of(c("x", "v", "p1: x")), seq_len(many(1e5))), 1)
  paste0("{\"format\":\"noiseaware release\",\"version\":1,\"n\":", n, ",\"neighbours\":\"one record replaced\",\"missing\":\"refused\",",
         "\"noise\":\"published\",\"statistic\":", statistic, ",\"mechanism\":", mechanism, ",\"value\":", value, ",\"checksum\":\"x\"}")
}

fuzz_file <- function() {
  bytes <- any_of(texts)
  kind <- stats::runif(1)
  if (kind < 0.04) {
    bytes <- charToRaw(large_file())
  } else if (kind < 0.1) {
    bytes <- as.raw(sample(0:255, sample(200, 1), replace = TRUE))
  } else if (kind < 0.5) {
    bytes <- charToRaw(jsonlite::toJSON(damage_tree(jsonlite::parse_json(rawToChar(bytes))), auto_unbox = TRUE, digits = NA, null = "null"))
  } else {
    for (i in seq_len(sample(3, 1))) {
      at <- sample(length(bytes), 1L)
      bytes <- switch(sample(5, 1L), replace(bytes, at, as.raw(sample(0:255, 1))), bytes[-at], append(bytes, charToRaw(any_of(pieces)), at),
                      bytes[seq_len(at)], append(bytes[-(at:min(at + 20, length(bytes)))], bytes[at:min(at + 20, length(bytes))], sample(length(bytes), 1) - 1L))
      if (length(bytes) == 0L) bytes <- as.raw(32)
    }
  }
  writeBin(bytes, path)
  outcome <- try_call("read_release", list(path))
  if (outcome == "ok") {
    back <- read_release(path)
    if (!any(vapply(releases, same_release, TRUE, back))) report("mutated file was read", rawToChar(bytes[bytes != 0]))
  }
  paste0(outcome, "-file")
}

# but for what a file does not carry
same_release <- function(a, b) identical(a$value, b$value) && identical(a$n, b$n) && identical(a$mechanism, b$mechanism) && identical(format(a$statistic), format(b$statistic))

outcomes <- vapply(seq_len(calls), function(i) if (stats::runif(1) < 0.8) fuzz_call() else fuzz_file(), "")
counts <- table(outcomes)
cat(paste("outcome", names(counts), counts), sep = "\n")
