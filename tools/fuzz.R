# Random calls over the whole public interface, valid ones with one or two
# arguments replaced by something odd, and random and mutated files for
# read_release(). What must not happen: a crash, a hang, an error that is not of
# class noiseaware_error, a warning that is not the package's own, a mutated file
# that reads as another release.
#
#   Rscript tools/fuzz.R [calls] [seed]
#
# Prints what was found, one line each, and exits non-zero if anything was.
library(noiseaware)
arguments <- as.numeric(commandArgs(TRUE))
calls <- if (length(arguments) >= 1) arguments[1] else 20000
set.seed(if (length(arguments) >= 2) arguments[2] else 1)
options(warn = 1)

# ---- odd values ------------------------------------------------------------------

odd <- list(
  NULL, NA, NA_character_, NA_integer_, NaN, Inf, -Inf, 0, 0L, -0, -1, 1e308, -1e308, 1e-308, .Machine$integer.max, 2^31, 2^53, 1e-9, 0.5, 1.5, 1i,
  TRUE, FALSE, "", "a", "\u00e4", "y ~ x", strrep("x", 5000), rawToChar(as.raw(c(0x66, 0xff))), numeric(), character(), logical(), list(), integer(),
  list(1), list(a = 1), list(NULL), list(list()), list(a = 1, a = 2), c(a = 1, a = 2), c(x = 1), c(NA, 1), c("a", NA), c("a", "a"), 1:3, -3:3, numeric(1000),
  matrix(0, 2, 2), diag(2), matrix(NA, 1, 1), array(0, c(2, 2, 2)), data.frame(), data.frame(x = 1), data.frame(y = NA, x = 1), data.frame(y = 1, x = "a"),
  factor("a"), as.Date("2020-01-01"), as.POSIXct(0, origin = "1970-01-01"), as.table(1:3), quote(x), quote(f(x)), expression(a), y ~ x, ~ x, ~ ., y ~ ., y ~ x:z, y ~ 0,
  ~ x + I(x^2), ~ g, ~ g:h, log(y) ~ x, y ~ 1, mean, sum, function() 1, function(...) stop("mine"), function(x) x, function(n) NULL, globalenv(), new.env(), raw(3),
  structure(list(), class = "noiseaware_release"), structure(1, class = "strange"), structure(list(), class = "noiseaware_model"),
  structure(list(), class = "noiseaware_statistic"), structure(list(), class = "noiseaware_mechanism"), structure(list(), class = "noiseaware_fit"))
# objects that only look like ours are not of our making: what they hold is the caller's fault, and may fail anyhow
forged <- function(x) inherits(x, c("noiseaware_release", "noiseaware_model", "noiseaware_statistic", "noiseaware_mechanism", "noiseaware_fit"))
odd <- Filter(Negate(forged), odd)
an_odd <- function() odd[[sample.int(length(odd), 1L)]]

# ---- valid calls --------------------------------------------------------------------

records <- data.frame(y = c(0.5, -1, 2, 0.1), x = c(1, 2, 0.5, 0), g = c("a", "b", "a", "a"), h = c("u", "u", "v", "w"), k = c(0, 3, 1, 2))
levels <- list(g = c("a", "b"), h = c("u", "v", "w"))
statistics <- list(
  crossprod = stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-2, 2))), factors = stat_crossprod(y ~ x + g, list(y = c(-3, 3), x = c(-2, 2), g = c("a", "b"))),
  sums = stat_sums(~ k, list(k = c(0, 10))), squares = stat_sums(~ x + I(x^2), list(x = c(-2, 2))), counts = stat_counts(~ g, levels["g"]),
  crossed = stat_counts(~ g:h, levels), single = stat_records(~ g, levels = levels["g"]))
mechanisms <- list(mech_laplace(1), mech_gaussian(mu = 1), mech_discrete_laplace(1), mech_laplace(scale = 2))
models <- list(model_lm(), model_poisson(), model_exponential(), model_normal(), model_bernoulli(), model_categorical(), model_naive_bayes("g"))
releases <- list(simulate_release(records, statistics$crossprod, mechanisms[[1]]), simulate_release(records, statistics$counts, mechanisms[[3]]),
                 simulate_release(records, statistics$sums, mechanisms[[2]]))
fits <- list(sample_posterior(releases[[1]], model_lm(), chains = 1, iter = 20), sample_posterior(releases[[2]], model_bernoulli(), chains = 1, iter = 20))
any_of <- function(x) x[[sample.int(length(x), 1L)]]
directory <- tempfile("fuzz")
dir.create(directory)
path <- file.path(directory, "release.json")

valid <- list(
  stat_crossprod = function() list(formula = y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)), rescale = TRUE),
  stat_sums = function() list(formula = ~ x + I(x^2), bounds = list(x = c(-1, 1)), outside = "clamp"),
  stat_counts = function() list(formula = ~ g + g:h, levels = levels),
  stat_records = function() list(formula = ~ x, bounds = list(x = c(0, 1)), levels = NULL),
  stat_custom = function() list(fun = function(records) cbind(a = records[, 1] > 1), names = "a", sensitivity = 1, bounds = list(x = c(0, 3))),
  sensitivity = function() list(statistic = any_of(statistics), norm = "L2"),
  mech_laplace = function() list(epsilon = 1, scale = NULL), mech_gaussian = function() list(rho = NULL, epsilon = NULL, delta = NULL, mu = 1, sd = NULL),
  mech_discrete_laplace = function() list(epsilon = 1, scale = NULL), mech_discrete_gaussian = function() list(rho = 1, sd = NULL),
  mech_randomized_response = function() list(epsilon = 1), privacy = function() list(x = any_of(mechanisms)), noise_sd = function() list(release = any_of(releases)),
  release = function() list(data = records, statistic = any_of(statistics), mechanism = any_of(mechanisms), budget = NULL),
  as_release = function() list(value = c(1, 2, 3, 4, 5), statistic = statistics$crossprod, mechanism = any_of(mechanisms), n = 10),
  simulate_release = function() list(x = any_of(models), statistic = any_of(statistics), mechanism = any_of(mechanisms), n = 5, parameters = NULL),
  budget = function() list(epsilon = 1, delta = NULL, rho = NULL),
  private_quantile = function() list(x = records$x, probability = 0.5, bounds = c(-5, 5), epsilon = 1, steps = 100, budget = NULL),
  zcdp_epsilon = function() list(rho = 1, delta = 1e-6), zcdp_delta = function() list(rho = 1, epsilon = 2),
  prior_beta = function() list(1, 1), prior_dirichlet = function() list(1), prior_gamma = function() list(1, 1), prior_normal = function() list(0, 1),
  prior_nig = function() list(mean = 0, precision = 1, shape = 1, rate = 1), prior_niw = function() list(), fixed = function() list(1),
  model_lm = function() list(formula = y ~ x, prior = prior_nig(), sigma = NULL, covariates = prior_niw()),
  model_bernoulli = function() list(variable = NULL, prior = prior_beta()), model_categorical = function() list(variable = NULL, prior = prior_dirichlet()),
  model_naive_bayes = function() list(class = "g"), model_poisson = function() list(variable = NULL, prior = prior_gamma()),
  model_exponential = function() list(variable = NULL, prior = prior_gamma()), model_normal = function() list(variable = NULL, prior = prior_nig()),
  sample_posterior = function() list(release = any_of(releases), model = any_of(models), method = any_of(c("auto", "augment", "naive", "clt", "collapse")), chains = 1, iter = 10,
                                     warmup = 5, thin = 1, seed = 1, init = NULL, control = list()),
  nonprivate_posterior = function() list(data = records, model = any_of(models), statistic = any_of(statistics), chains = 1, iter = 10, warmup = 5, thin = 1, seed = 1),
  extend = function() list(fit = any_of(fits), iter = 3), acceptance = function() list(fit = any_of(fits)), denoise = function() list(fit = any_of(fits)),
  predict = function() list(object = fits[[1]], newdata = data.frame(x = 1), type = "mean", interval = "none", level = 0.9, seed = 1),
  confint = function() list(object = any_of(fits), parm = NULL, level = 0.9), predictive_data = function() list(fit = fits[[1]], covariate = NULL, level = 0.9, points = 3),
  release_check_data = function() list(fit = any_of(fits), draws = 3, level = 0.9, seed = 1),
  simulate = function() list(object = any_of(fits), nsim = 2, seed = 1), ddiscrete_laplace = function() list(x = 0:2, scale = 1, location = 0, log = FALSE),
  pdiscrete_gaussian = function() list(q = 0:2, sd = 1), qdiscrete_gaussian = function() list(p = 0.5, sd = 1), rdiscrete_laplace = function() list(n = 2, scale = 1),
  coverage = function() list(0), ks_uniform = function() list(0), mmd = function() list(c(1, 2, 3), c(2, 3, 4)),
  write_release = function() list(release = any_of(releases), path = path), read_release = function() list(path = path))
valid <- valid[intersect(names(valid), c(getNamespaceExports("noiseaware"), "predict", "confint", "simulate"))]

# ---- one call ----------------------------------------------------------------------

found <- character()
report <- function(kind, text) {
  line <- paste0(kind, ": ", text)
  if (!line %in% found) {
    found <<- c(found, line)
    cat(line, "\n")
  }
}
shown <- function(name, args) {
  text <- paste(deparse(as.call(c(as.name(name), lapply(args, function(a) if (is.object(a) && is.list(a)) as.name(class(a)[1L]) else a))), width.cutoff = 500L), collapse = " ")
  substr(text, 1L, 300L)
}

try_call <- function(name, args) {
  setTimeLimit(elapsed = 20, transient = TRUE)
  on.exit(setTimeLimit())
  outcome <- tryCatch(withCallingHandlers({
    do.call(get(name, envir = asNamespace("noiseaware")), args, quote = TRUE)
    "ok"
  }, warning = function(w) {
    if (!any(startsWith(class(w), "noiseaware_warning"))) report("warning", paste(name, "|", conditionMessage(w), "|", shown(name, args)))
    invokeRestart("muffleWarning")
  }), noiseaware_error = function(e) "refused", error = function(e) {
    kind <- if (grepl("elapsed time limit", conditionMessage(e))) "hang" else "unclassed error"
    report(kind, paste(name, "|", strsplit(conditionMessage(e), "\n")[[1L]][1L], "|", shown(name, args)))
    "bad"
  })
  outcome
}

fuzz_call <- function() {
  name <- sample(names(valid), 1L)
  args <- valid[[name]]()
  if (length(args) && stats::runif(1) < 0.95) {
    # a generic of another package that gets another object is not ours
    open <- setdiff(seq_along(args), if (name %in% c("predict", "confint", "simulate")) 1L)
    for (i in sample(rep(open, 2L), sample(c(1L, 1L, 2L), 1L))) args[i] <- list(an_odd())
  }
  # what is asked for may take its time
  big <- vapply(args, function(a) is.numeric(a) && any(is.finite(a) & a > 1e6), TRUE)
  if (name %in% c("sample_posterior", "nonprivate_posterior", "extend", "simulate", "simulate_release", "rdiscrete_laplace") && any(big)) return("skipped")
  if (name == "write_release" && is.character(args$path)) args$path <- file.path(directory, "odd")
  try_call(name, args)
}

# ---- files ---------------------------------------------------------------------------

texts <- lapply(releases, function(r) {
  write_release(r, path)
  readBin(path, "raw", 1e6)
})
pieces <- c("null", "{}", "[]", "\"", "1e999", "-", "\\u0000", "true", ",", ":", "\"name\"", "\"n\": -1,", "NaN", "{\"a\":", strrep("[", 300))

fuzz_file <- function() {
  which <- sample.int(length(texts), 1L)
  bytes <- texts[[which]]
  if (stats::runif(1) < 0.1) {
    bytes <- as.raw(sample(0:255, sample(200, 1), replace = TRUE))
  } else {
    for (i in seq_len(sample(3, 1))) {
      at <- sample(length(bytes), 1L)
      bytes <- switch(sample(5, 1L), replace(bytes, at, as.raw(sample(0:255, 1))), bytes[-at], append(bytes, charToRaw(any_of(pieces)), at),
                      bytes[seq_len(at)], append(bytes[-(at:min(at + 20, length(bytes)))], bytes[at:min(at + 20, length(bytes))], sample(length(bytes), 1) - 1L))
      if (length(bytes) == 0L) bytes <- as.raw(32)
    }
  }
  writeBin(bytes, path)
  back <- NULL
  outcome <- try_call("read_release", list(path = path))
  if (outcome == "ok") {
    back <- read_release(path)
    if (!any(vapply(releases, identical, TRUE, back))) report("mutated file was read", rawToChar(bytes[bytes != 0]))
  }
  outcome
}

outcomes <- vapply(seq_len(calls), function(i) if (stats::runif(1) < 0.8) fuzz_call() else fuzz_file(), "")
print(table(outcomes))
cat(length(found), "kinds of trouble in", calls, "calls\n")
quit(status = as.integer(length(found) > 0))
