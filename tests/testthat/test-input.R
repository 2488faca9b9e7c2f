# Bad input: every argument that a user or a file may get wrong is refused with
# a classed error, before any work starts, in words that say what to do.

box <- list(y = c(-10, 10), x = c(-10, 10))
st <- stat_crossprod(y ~ x, box)
factor_st <- stat_crossprod(y ~ x + g, c(box, list(g = c("a", "b"))))
laplace <- mech_laplace(epsilon = 1)
rel <- as_release(c(12.1, -3.4, 8.8, -2.5, 5.9), st, laplace, n = 50)
data <- data.frame(y = c(1, 2), x = c(3, 4))
bounded <- function(y, ...) stat_crossprod(y ~ x, list(y = y, x = c(0, 1)), ...)
draw <- function(model) sample_posterior(rel, model, chains = 1, iter = 4)

# refused, and nothing was drawn, so nothing was begun
refused <- function(kind, calls) {
  generator <- globalenv()$.Random.seed
  lines <- refusals(kind, calls, parent.frame())
  expect_identical(globalenv()$.Random.seed, generator)
  lines
}

test_that("statistics: formulas", {
  skip_on_cran()
  set.seed(1)
  show(refused("formula", alist(
    stat_crossprod("y ~ x", box), stat_crossprod(~x, box), stat_crossprod(NULL, box), stat_crossprod(mean, box),
    stat_crossprod(y ~ x^2, box),
    stat_crossprod(y ~ z %in% x, box),
    stat_crossprod(y ~ ., box), stat_crossprod(y ~ x - 1, box), stat_crossprod(y ~ 0 + x, box),
    stat_crossprod(y ~ -x, box),
    stat_crossprod(y ~ foo(x), box), stat_crossprod(foo(y) ~ x, box),
    stat_crossprod(y + z ~ x, box),
    stat_crossprod(y ~ x + x, box), stat_crossprod(y ~ y, box), stat_crossprod(y ~ 2 + x, box),
    stat_crossprod(y ~ "x", box),
    stat_crossprod("y" ~ x, box), stat_crossprod(y ~ data$x, box),
    stat_crossprod(y ~ (1 | x), box),
    stat_crossprod(y ~ x + `y:x`, list(y = c(0, 1), x = c(0, 1), `y:x` = c(0, 1))),
    stat_crossprod(y ~ `y^2`, list(y = c(0, 1), `y^2` = c(0, 1))),
    stat_crossprod(y ~ `(Intercept)`, list(y = c(0, 1), `(Intercept)` = c(0, 1)))
  )))
})

test_that("statistics: bounds and levels", {
  skip_on_cran()
  set.seed(1)
  show(refused("bounds", alist(
    stat_crossprod(y ~ x, NULL), stat_crossprod(y ~ x, c(-10, 10)), stat_crossprod(y ~ x, list(c(0, 1), c(0, 1))),
    stat_crossprod(y ~ x, list(y = c(0, 1))), stat_crossprod(y ~ x + z + w, box), stat_crossprod(y ~ 1, box),
    stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1), x = c(0, 2))),
    stat_crossprod(y ~ x, list(y = c(0, 1), c(0, 1))),
    bounded(c(1, 0)), bounded(c(1, 1)), bounded(c(0, Inf)), bounded(c(-Inf, Inf)), bounded(c(NA, 1)),
    bounded(c(0, NaN)),
    bounded(1), bounded(1:3), bounded(NULL), bounded(list(0, 1)),
    bounded(c(-1e308, 1e308)), bounded(c(0, 1e-320)), bounded(c(-1e200, 1e200), rescale = FALSE),
    bounded(as.Date(c("2020-01-01", "2021-01-01"))), bounded(c(1, 1 + 1e-17)),
    bounded(rep("a", 5000)), stat_crossprod(y ~ x, list(y = c(0, 1), x = as.character(1:3000)))
  )))
  show(refused("levels", alist(
    bounded("a"), bounded(TRUE), bounded(factor("a")), bounded(c("a", "a")), bounded(c("a", NA)), bounded(c("a", "")), bounded(character()),
    stat_crossprod(y ~ g + ga, list(y = c(0, 1), g = c("b", "a"), ga = c(0, 1)))
  )))
  show(refused("argument", alist(
    bounded(c(0, 1), rescale = NA), bounded(c(0, 1), rescale = "yes"), bounded(c(0, 1), rescale = c(TRUE, TRUE)),
    sensitivity(3), sensitivity(NULL), sensitivity(st, "L3"), sensitivity(st, 1), sensitivity(st, NULL),
    sensitivity(laplace)
  )))
})

test_that("mechanisms", {
  skip_on_cran()
  set.seed(1)
  show(refused("mechanism", alist(
    mech_laplace(), mech_laplace(epsilon = 1, scale = 2), mech_laplace(2), mech_laplace(eps = 2), mech_laplace(epsilon = 1, 2), mech_gaussian(1), mech_randomized_response(1), mech_randomized_response(), mech_laplace(epsilon = 0), mech_laplace(epsilon = -1), mech_laplace(epsilon = NaN), mech_laplace(epsilon = NA),
    mech_laplace(epsilon = Inf),
    mech_laplace(epsilon = "1"), mech_laplace(epsilon = c(1, 2)), mech_laplace(epsilon = numeric()), mech_laplace(epsilon = list(1)), mech_laplace(epsilon = TRUE),
    mech_laplace(scale = 0), mech_laplace(scale = c(1, -1, 1)), mech_laplace(scale = NA), mech_laplace(scale = "1"),
    mech_laplace(scale = numeric()), mech_laplace(scale = Inf), mech_laplace(scale = c(y = 1, y = 2)),
    mech_gaussian(), mech_gaussian(rho = 1, mu = 1), mech_gaussian(rho = 0), mech_gaussian(mu = -1),
    mech_gaussian(mu = NaN),
    mech_gaussian(epsilon = 1), mech_gaussian(delta = 0.1), mech_gaussian(epsilon = 1, delta = 0),
    mech_gaussian(epsilon = 1, delta = 1),
    mech_gaussian(epsilon = 1, delta = -0.1), mech_gaussian(epsilon = 1, delta = NA),
    mech_gaussian(epsilon = 0, delta = 0.1),
    mech_gaussian(epsilon = 1e9, delta = 0.1), mech_gaussian(epsilon = 1, delta = 0.1, sd = 1), mech_gaussian(sd = 0),
    mech_gaussian(sd = c(1, NaN)),
    # these show when the statistic is known
    release(data, st, mech_laplace(scale = c(1, 2))), release(data, st, mech_gaussian(sd = 1:6)),
    as_release(1:5, st, mech_laplace(scale = c(y = 1, x = 1, z = 1, "y^2" = 1, "y:x" = 1)), 5),
    as_release(1:5, st, mech_laplace(epsilon = 5e-324), 5), as_release(1:5, st, mech_gaussian(rho = 1.7e308), 5),
    simulate_release(model_lm(), st, mech_laplace(scale = c(1, 2)), n = 5)
  )))
  show(refused("argument", alist(privacy(3), privacy(NULL), privacy(st), privacy(mech_laplace(scale = 1), statistic = 3), noise_sd(laplace))))
})

test_that("data", {
  set.seed(1)
  holes <- data.frame(y = c(1, NA, 3, rep(NA, 8)), x = c(1, 2, NaN, 4:11), g = c(NA, rep("a", 10)))
  codes <- data.frame(y = 1, x = 1, g = c("a", "b", "c", "B", ""))
  dates <- data.frame(y = as.Date("2020-01-01"), x = 1)
  nested <- data.frame(y = 1:2)
  nested$x <- list(1, 2)
  wide <- data.frame(y = 1:2)
  wide$x <- matrix(1:4, 2)
  twice <- stats::setNames(data.frame(1, 2, 3), c("y", "x", "y"))
  show(refused("missing", alist(release(holes, st, laplace), release(holes, factor_st, laplace), release(holes[1:2, ], st, laplace),
                                 simulate_release(holes, st, laplace), nonprivate_posterior(holes, model_lm(), st))))
  show(refused("levels", alist(release(codes, factor_st, laplace), release(codes[3, ], factor_st, laplace))))
  show(refused("data", alist(
    release(data["y"], st, laplace), release(data[0, ], st, laplace), release(data.frame(), st, laplace),
    release(NULL, st, laplace),
    release(1:3, st, laplace), release(as.matrix(data), st, laplace), release(as.list(data), st, laplace),
    release("data.csv", st, laplace),
    release(dates, st, laplace), release(nested, st, laplace), release(wide, st, laplace), release(twice, st, laplace),
    release(transform(data, x = "1"), st, laplace), release(transform(data, x = factor(1)), st, laplace),
    release(transform(data, x = 1i), st, laplace), release(data, factor_st, laplace)
  )))
  show(refused("argument", alist(
    release(data, y ~ x, laplace), release(data, laplace, st), release(data, st, 1), release(data, st, mech_laplace),
    simulate_release(3, st, laplace), simulate_release(NULL, st, laplace), simulate_release(data, 3, laplace),
    simulate_release(model_lm(), st, laplace, n = 0), simulate_release(model_lm(), st, laplace, n = NA),
    simulate_release(model_lm(), st, laplace, n = 5, parameters = c(a = 1)),
    simulate_release(model_lm(), st, laplace, n = 5, parameters = "a")
  )))
})

test_that("published values", {
  set.seed(1)
  show(refused("value", alist(
    as_release(1:4, st, laplace, 5), as_release(numeric(), st, laplace, 5), as_release(NULL, st, laplace, 5),
    as_release(letters[1:5], st, laplace, 5),
    as_release(c(1, 2, NA, 4, Inf), st, laplace, 5), as_release(c(1, NA), st, laplace, 5),
    as_release(c(y = 1, x = NaN, "y^2" = 1, "y:x" = 1, "x^2" = 1), st, laplace, 5),
    as_release(c(y = 1, x = 1, "y^2" = 1, "y:z" = 1, "x^2" = 1), st, laplace, 5),
    as_release(c(y = 1, y = 1, x = 1, x = 2, "x^2" = 1), st, laplace, 5),
    as_release(c(y = 1, 2, 3, 4, 5), st, laplace, 5), as_release(list(1, 2, 3, 4, 5), st, laplace, 5),
    as_release(rep(TRUE, 5), st, laplace, 5), as_release(list(a = 1:5), st, laplace, 5),
    as_release(list(1:5), list(a = st), list(a = laplace), 5), as_release(list(a = 1:5), list(a = st, b = st), list(a = laplace, b = laplace), 5),
    as_release(list(a = 1:5, b = c(1, NA)), list(a = st, b = st), list(a = laplace, b = laplace), 5),
    as_release(list(a = 1:5, b = c(y = 1, z = 2)), list(a = st, b = st), list(a = laplace, b = laplace), 5),
    as_release(factor(1:5), st, laplace, 5)
  )))
  show(refused("argument", alist(
    as_release(1:5, st, laplace, 0), as_release(1:5, st, laplace, -3), as_release(1:5, st, laplace, 1.5),
    as_release(1:5, st, laplace, NA),
    as_release(1:5, st, laplace, Inf), as_release(1:5, st, laplace, "50"), as_release(1:5, st, laplace, c(5, 6)),
    as_release(1:5, stat_records(~ x, list(x = c(0, 1))), laplace, NULL),
    as_release(1:5, st, laplace, 2^31), as_release(1:5, laplace, st, 5), as_release(1:5, st, NULL, 5),
    as_release(1:5, st, laplace, 5, neighbours = "add"), as_release(1:5, st, laplace, 5, neighbours = NULL)
  )))
})

test_that("priors against the release", {
  set.seed(1)
  two <- as_release(1:9, stat_crossprod(y ~ a + b, list(y = c(0, 1), a = c(0, 1), b = c(0, 1))), laplace, 5)
  show(refused("prior", alist(
    draw(model_lm(prior = prior_nig(mean = c(1, 2, 3)))), draw(model_lm(prior = prior_nig(precision = diag(3)))),
    draw(model_lm(prior = prior_normal(c(0, 0, 0), 1), sigma = fixed(1))),
    draw(model_lm(prior = prior_normal(0, c(1, 1, 1)), sigma = fixed(1))),
    draw(model_lm(prior = fixed(1), sigma = fixed(1))), draw(model_lm(covariates = prior_niw(mean = c(0, 1)))),
    draw(model_lm(covariates = prior_niw(scale = diag(2)))),
    draw(model_lm(covariates = fixed(list(mean = c(0, 1), cov = 1)))),
    draw(model_lm(covariates = fixed(list(mean = 0, cov = diag(2))))),
    draw(model_lm(covariates = fixed(list(mean = 0, cov = -1)))),
    sample_posterior(two, model_lm(covariates = prior_niw(df = 1))),
    sample_posterior(two, model_lm(covariates = fixed(list(mean = c(0, 0), cov = matrix(c(1, 2, 2, 1), 2))))),
    model_lm(prior = "flat"), model_lm(sigma = 1),
    model_lm(sigma = fixed(-1)),
    model_lm(prior = prior_nig(), sigma = prior_inverse_gamma(1, 1)), model_lm(covariates = prior_nig()),
    model_lm(covariates = list(mean = 0, cov = 1)),
    model_lm(covariates = fixed(1)), model_lm(levels = 1),
    model_glm(cv = fixed(1)), model_glm(family = MASS::negative.binomial(2), cv = fixed(1)), model_glm(family = "negative_binomial", cv = 1),
    model_glm(family = Gamma("log"), cv = fixed(-1)), model_glm(family = Gamma("log"), prior = fixed(c(1, 2)))
  )))
})

test_that("models against the release", {
  set.seed(1)
  with_factor <- as_release(seq_along(factor_st$components), factor_st, laplace, 5)
  show(refused("variables", alist(
    draw(model_lm(y ~ z)), draw(model_lm(y ~ x + z)),
    sample_posterior(with_factor, model_lm(g ~ x + y)),
    sample_posterior(with_factor, model_lm(y ~ x + gb))
  )))
  show(refused("formula", alist(model_lm("y ~ x"), model_lm(~x), model_lm(y ~ x^2), model_lm(y ~ .))))
})

test_that("settings of a run", {
  skip_on_cran()
  set.seed(1)
  show(refused("argument", alist(
    sample_posterior(1, model_lm()), sample_posterior(model_lm(), rel), sample_posterior(st, model_lm()),
    sample_posterior(rel, NULL),
    sample_posterior(rel, model_lm), sample_posterior(rel, "lm"),
    sample_posterior(rel, model_lm(), chains = 0), sample_posterior(rel, model_lm(), chains = 1.5),
    sample_posterior(rel, model_lm(), chains = "4"),
    sample_posterior(rel, model_lm(), chains = NULL), sample_posterior(rel, model_lm(), iter = 0),
    sample_posterior(rel, model_lm(), iter = -1),
    sample_posterior(rel, model_lm(), iter = Inf), sample_posterior(rel, model_lm(), iter = 10, warmup = 10),
    sample_posterior(rel, model_lm(), iter = 10, warmup = 20), sample_posterior(rel, model_lm(), warmup = -1),
    sample_posterior(rel, model_lm(), warmup = 0.5), sample_posterior(rel, model_lm(), thin = 0),
    sample_posterior(rel, model_lm(), thin = 5000),
    sample_posterior(rel, model_lm(), seed = 1.5), sample_posterior(rel, model_lm(), seed = "a"),
    sample_posterior(rel, model_lm(), seed = c(1, 2)),
    sample_posterior(rel, model_lm(), seed = NA), sample_posterior(rel, model_lm(), seed = 2^31),
    sample_posterior(rel, model_lm(), init = "prior"), sample_posterior(rel, model_lm(), init = list(1)),
    sample_posterior(rel, model_lm(), init = c(sigma = 1)), sample_posterior(rel, model_lm(), init = c(1, 2)),
    sample_posterior(rel, model_lm(), chains = 1, init = list(c("(Intercept)" = 0, x = 0, sigma = 1, "mean[x]" = 0, "cov[x,x]" = 1, z = 2))),
    sample_posterior(rel, model_lm(), init = function() 1),
    sample_posterior(rel, model_lm(), chains = 1, init = list(c("(Intercept)" = 0, x = 0, sigma = -1, "mean[x]" = 0, "cov[x,x]" = 1))),
    sample_posterior(rel, model_lm(), chains = 1, init = list(c("(Intercept)" = 0, x = 0, sigma = 1, "mean[x]" = 0, "cov[x,x]" = -1))),
    sample_posterior(rel, model_lm(), chains = 1, init = list(c("(Intercept)" = 0, x = 0, sigma = 1, "mean[x]" = NA, "cov[x,x]" = 1))),
    sample_posterior(rel, model_lm(), control = 3), sample_posterior(rel, model_lm(), control = list(3)),
    sample_posterior(rel, model_lm(), control = list(pases = 3)),
    sample_posterior(rel, model_lm(), control = list(passes = -1)),
    sample_posterior(rel, model_lm(), control = list(passes = 1.5)),
    sample_posterior(rel, model_lm(), control = NULL)
  )))
  show(refused("method", alist(sample_posterior(rel, model_lm(), method = "gibbs"), sample_posterior(rel, model_lm(), method = 1),
                                sample_posterior(rel, model_lm(), method = NULL),
                                sample_posterior(rel, model_lm(), method = c("augment", "naive")))))
})

test_that("what a fit is asked", {
  fit <- sample_posterior(rel, model_lm(), method = "clt", chains = 1, iter = 20, seed = 1)
  with_factor <- as_release(c(-2, 1, 20, 30, -4, 8, 30, 3), factor_st, laplace, 50)
  factor_fit <- sample_posterior(with_factor, model_lm(), chains = 1, iter = 20, seed = 1)
  set.seed(1)
  show(refused("data", alist(predict(fit), predict(fit, data.frame(z = 1)), predict(fit, list(x = 1)), predict(fit, 3),
                              predict(fit, data.frame(x = "1")), predict(fit, data.frame(x = 1)[0, , drop = FALSE]))))
  show(refused("missing", alist(predict(fit, data.frame(x = c(1, NA))))))
  show(refused("levels", alist(predict(factor_fit, data.frame(x = 1, g = "c")))))
  show(refused("argument", alist(
    predict(fit, data.frame(x = 1), intrval = "credible"), predict(fit, data.frame(x = 1), "mean", "none", 0.9, 1, TRUE),
    simulate(fit, number = 2), confint(fit, lvl = 0.9), extend(fit, 10, seed = 2), update(fit, itr = 100), update(fit, model_lm()),
    update(fit, iter = 10, iter = 20), update(nonprivate_posterior(data[c(1, 2, 1, 2), ], model_lm(), st, iter = 4, seed = 1)),
    simulate_release(data, st, laplace, n = 2), privacy(rel, delta = 1), rstantools::posterior_predict(fit, data.frame(x = 1), drws = 2)
  )))
})

# ---- files -----------------------------------------------------------------------

local_release_dir <- function(frame = parent.frame()) {
  withr::local_dir(withr::local_tempdir(.local_envir = frame), .local_envir = frame)
}

valid_json <- function(release = rel) as.character(internal("release_json")(release))

write_bytes <- function(bytes) writeBin(if (is.character(bytes)) charToRaw(bytes) else bytes, "release.json")

# Files that differ from a valid one by a text (or pattern) -> its replacement, and must be refused.
refused_files <- function(changes, fixed = TRUE) {
  text <- valid_json()
  local_reproducible_output(.env = parent.frame())
  unlist(lapply(changes, function(change) {
    changed <- sub(change[1], change[2], text, fixed = fixed, perl = !fixed)
    write_bytes(changed)
    condition <- tryCatch(not_laid_out(read_release("release.json")), error = identity, warning = identity)
    expect_true(!identical(changed, text) && inherits(condition, "noiseaware_error_file"), label = paste(change, collapse = " -> "))
    c(paste0("> ", change[2]), error_header(condition), message_lines(condition), "")
  }))
}

test_that("a flag is no matrix", {
  expect_error(stat_crossprod(y ~ x, list(y = 0:1, x = 0:1), rescale = matrix(TRUE)), class = "noiseaware_error_argument")
})

test_that("the unchanged file is read", {
  local_release_dir()
  write_bytes(valid_json())
  expect_identical(read_release("release.json"), rel)
  # the order of fields, and spaces, say nothing
  write_bytes(gsub("[\n ]+", " ", sub('"n": 50,', "", sub('"noise": "published"', '"noise": "published", "n": 5e1', valid_json(), fixed = TRUE), fixed = TRUE)))
  expect_identical(read_release("release.json"), rel)
})

test_that("paths", {
  set.seed(1)
  local_release_dir()
  dir.create("directory")
  file.create("empty.json")
  show(refused("file", alist(
    read_release("absent.json"), read_release("directory"), read_release("empty.json"), read_release(3),
    read_release(NULL), read_release(""),
    read_release(c("a", "b")), read_release(NA_character_), write_release(rel, "absent/release.json"),
    write_release(rel, "directory"),
    write_release(rel, 3), write_release(rel, ""), write_release(rel, "empty.json/release.json")
  )))
  show(refused("argument", alist(write_release(st, "release.json"), write_release(unclass(rel), "release.json"))))
})

test_that("files: contents", {
  skip_on_cran() # takes long; `make test` runs it
  local_release_dir()
  show(refused_files(list(
    # the whole
    c('"noiseaware release"', '"something else"'), c('"noiseaware release"', "1"), c('"noiseaware release"', "null"),
    c('"version": 4', '"version": 6'), c('"version": 4', '"version": "3"'), c('"version": 4', '"version": [3]'),
    c('"version": 4', '"version": null'), c('"version": 4', '"version": 1'), c('"version": 4', '"version": 1.5'),
    c('"n": 50,', ""), c('"n": 50,', '"n": 50, "n": 50,'), c('"n": 50,', '"n": 50, "extra": 1,'),
    c('"n": 50,', '"N": 50,'),
    c('"neighbours": "replace"', '"neighbours": "one record replaced"'), c('"neighbours": "replace"', '"neighbours": "add_remove"'),
    c('"neighbours": "replace"', '"neighbours": null'),
    c('"noise": "published"', '"noise": "none"'),
    c('"noise": "published"', '"noise": ["published"]'), c('"noise": "published"', '"noise": {}'),
    # n
    c('"n": 50', '"n": 1.5'), c('"n": 50', '"n": 0'), c('"n": 50', '"n": -1'), c('"n": 50', '"n": 1e400'),
    c('"n": 50', '"n": 3e9'),
    c('"n": 50', '"n": "50"'), c('"n": 50', '"n": [50]'), c('"n": 50', '"n": {"a": 50}'), c('"n": 50', '"n": true'),
    c('"n": 50', '"n": null'),
    # the statistic
    c('"name": "crossprod"', '"name": "sums"'), c('"name": "crossprod"', '"name": null'),
    c('"name": "crossprod",', '"name": "crossprod", "more": 1,'),
    c('"y ~ x"', '"~ x"'), c('"y ~ x"', '"y"'), c('"y ~ x"', '"y ~"'), c('"y ~ x"', '""'), c('"y ~ x"', "1"),
    c('"y ~ x"', '["y ~ x"]'),
    c('"y ~ x"', '"y ~ x; y ~ x"'), c('"y ~ x"', '"y ~ x + z"'), c('"y ~ x"', '"y ~ log(x)"'),
    c('"y ~ x"', "\"y ~ `+`(, x)\""),
    c("[-10, 10]", "[10, -10]"), c("[-10, 10]", "[10, 10]"), c("[-10, 10]", "[10]"), c("[-10, 10]", "[]"),
    c("[-10, 10]", "10"), c("[-10, 10]", "null"),
    c("[-10, 10]", '["a", 1]'), c("[-10, 10]", '"a"'),
    c("[-10, 10]", '{"upper": 10, "lower": -10}'),
    c("[-10, 10]", "[[-10, 10]]"), c("[-10, 10]", "[-1e999, 1e999]"), c("[-10, 10]", "[true, false]"),
    c('"x": [-10, 10]', '"x": [-10, 10], "x": [-10, 10]'),
    c('"x": [-10, 10]', '"z": [-10, 10]'), c('"y": [-10, 10],', ""),
    c('"rescale": true', '"rescale": 1'), c('"rescale": true', '"rescale": "true"'),
    c('"rescale": true', '"rescale": null'),
    c('"rescale": true', '"rescale": [true]'), c('"rescale": true', '"rescale": false, "rescale": true'),
    # the mechanism
    c('"laplace"', '"cauchy"'), c('"laplace"', '["laplace"]'), c('"laplace"', '"gaussian"'),
    c('"epsilon": 1', '"epsilon": -1'), c('"epsilon": 1', '"epsilon": 0'), c('"epsilon": 1', '"epsilon": "1"'),
    c('"epsilon": 1', '"epsilon": [1]'),
    c('"epsilon": 1', '"epsilon": [1, 2]'), c('"epsilon": 1', '"epsilon": null'),
    c('"epsilon": 1', '"epsilon": 1e999'), c('"epsilon": 1', '"epsilon": 1e-330'),
    c('"epsilon": 1', '"epsilon": 1, "epsilon": 1'), c('"epsilon": 1', '"epsilon": 1, "scale": 1'),
    c('"epsilon": 1', '"scale": [1, 2]'),
    c('"epsilon": 1', '"scale": {"y": 1, "z": 2}'), c('"epsilon": 1', '"scale": []'), c('"epsilon": 1', '"rho": 1'),
    c(',\n    "epsilon": 1', ""),
    # the value
    c('"y": 12.1, ', ""), c('"y": 12.1', '"z": 12.1'), c('"y": 12.1', '"y": 12.1, "y": 12.1'),
    c('"y": 12.1', '"x": 12.1'), c('"y": 12.1', '"y": "12.1"'),
    c('"y": 12.1', '"y": null'), c('"y": 12.1', '"y": [12.1]'), c('"y": 12.1', '"y": {"y": 12.1}'),
    c('"y": 12.1', '"y": 1e999'), c('"y": 12.1', '"y": true'),
    # names with terminal codes and line breaks are quoted, not obeyed
    c('"n": 50,', '"n": 50, "\\u001b[2J\\nred": 1,')
  )))
  whole <- list(statistic = '"statistic": \\{(?s).*?\\},\\s*"mechanism"', bounds = '"bounds": \\{[^}]*\\}', mechanism = '"mechanism": \\{[^}]*\\}',
                value = '"value": \\{[^}]*\\}')
  show(refused_files(unlist(lapply(names(whole), function(name) {
    lapply(c("1", "{}", "[1, 2, 3, 4, 5]", '{"a": 1}'), function(other) {
      c(whole[[name]], paste0('"', name, '": ', other, if (name == "statistic") ', "mechanism"'))
    })
  }), recursive = FALSE), fixed = FALSE))
})

test_that("files: damage", {
  local_release_dir()
  text <- valid_json()
  for (keep in c(1, 2, 10, 100, nchar(text) - 1)) {
    write_bytes(substr(text, 1, keep))
    expect_error(read_release("release.json"), class = "noiseaware_error_file")
  }
  for (content in list(
    "1", "null", "[]", "{}", "[[]]", '"noiseaware release"', "y,x\n1,2\n", "NaN", strrep("[", 1e5),
    strrep('{"a":', 1e4),
    paste0(strrep("[", 1e4), strrep("]", 1e4)), paste0(text, text), paste0(text, "}"), sub("50", "050", text),
    sub("50", "0x32", text), sub("50", "NaN", text),
    sub("50", "Infinity", text), sub('("checksum": )("[^"]*")', "\\1[\\2, \\2]", text), gsub('"', "'", text), as.raw(c(0xff, 0xfe, 0x00)), raw(1000),
    charToRaw(text)[c(1:50, 50:20)],
    c(charToRaw(text), as.raw(0)), serialize(rel, NULL), memCompress(charToRaw(text), "gzip"),
    charToRaw(sub('"y ~ x"', '"y ~ \xff"', text, useBytes = TRUE)),
    charToRaw(sub('"n"', '"\xc3("', text, useBytes = TRUE)))) {
    write_bytes(content)
    expect_error(read_release("release.json"), class = "noiseaware_error_file")
  }
  expect_no_warning(expect_error(read_release(strrep("x", 5000)), class = "noiseaware_error_file"))
  # a compressed file is not expanded
  connection <- gzfile("release.json", "wb")
  writeLines(text, connection)
  close(connection)
  expect_error(read_release("release.json"), class = "noiseaware_error_file")
})

test_that("files: a huge one is refused by its size", {
  local_release_dir()
  connection <- file("release.json", "wb") # a hole: takes no space
  seek(connection, 2^30 - 1, rw = "write")
  writeBin(as.raw(0), connection)
  close(connection)
  expect_identical(file.size("release.json"), 2^30)
  show(refused("file", alist(read_release("release.json"))))
})

test_that("files: what would need much memory or depth is refused before it is made", {
  local_release_dir()
  refuse <- function(formula, bounds) {
    write_bytes(sub('"bounds": \\{[^}]*\\}', paste0('"bounds": {', bounds, "}"), sub("y ~ x", formula, valid_json(), fixed = TRUE)))
    expect_error(read_release("release.json"), class = "noiseaware_error_file")
  }
  variables <- paste0("x", 1:15000)
  entry <- paste0('"', c("y", variables), '": [0, 1]', collapse = ", ")
  refuse(paste("y ~", paste(variables, collapse = " + ")), entry)
  refuse(paste("y ~", paste0("(", variables[1:40], " + ", collapse = ""), "z", strrep(")", 40)), entry)
  refuse(paste("y ~", strrep("(", 40000), "x", strrep(")", 40000)), '"y": [0, 1], "x": [0, 1]')
  refuse(paste0("y ~ ", strrep("-", 40000), "x"), '"y": [0, 1], "x": [0, 1]')
  refuse("y ~ x", paste0('"y": [0, 1], "x": [', paste0('"', 1:50000, '"', collapse = ", "), "]"))
})

test_that("files: a few bytes that name many components are refused before these are made", {
  skip_on_cran() # takes long; `make test` runs it
  local_release_dir()
  refuse <- function(statistic, message) {
    text <- sub('"statistic": \\{.*?\\},\\s*"mechanism"', paste0('"statistic": ', statistic, ', "mechanism"'), gsub("\n", " ", valid_json()), perl = TRUE)
    write_bytes(text)
    expect_error(read_release("release.json"), message, class = "noiseaware_error_file")
  }
  entries <- function(keys, value) paste0("{", paste0('"', keys, '": ', value, collapse = ", "), "}")
  x <- paste0("x", 1:200)
  by_name <- function(name, formula, ranges, more = "") sprintf('{"name": "%s", "formula": "%s", %s%s}', name, formula, ranges, more)
  too_many <- "must have a number for each component"
  plus <- function(x) paste(x, collapse = " + ")
  refuse(by_name("counts", paste("~", paste(x[1:19], collapse = ":")), paste('"levels":', entries(x[1:19], '["a", "b"]'))), too_many)
  refuse(by_name("moments4", paste("~", plus(x[1:40])), paste('"bounds":', entries(x[1:40], "[0, 1]")), ', "rescale": true'), too_many)
  refuse(by_name("crossprod", paste("x1 ~", plus(x[-1])), paste('"bounds":', entries(x, "[0, 1]")), ', "rescale": true'), too_many)
  sums <- by_name("sums", paste("~", plus(x)), paste('"bounds":', entries(x, "[0, 1]")), ', "outside": "clamp"')
  # several of them, which may have fewer in all
  few <- set_constant("few_values", 3000)
  withr::defer(set_constant("few_values", few))
  refuse(entries(paste0("part", 1:20), sums), too_many)
  records <- by_name("records", paste("~", plus(x)), paste('"bounds":', entries(x, "[0, 1]")))
  refuse(entries(paste0("part", 1:20), records), too_many)
  objective <- by_name("objective", paste("x1 ~", plus(x[-1])), paste('"bounds":', entries(x, "[0, 1]")), ', "rescale": true')
  refuse(entries(paste0("part", 1:20), objective), too_many)
  set_constant("few_values", few)
  # many terms, though of few variables
  for (chain in c("+", ":")) {
    refuse(by_name("counts", paste("~", paste(rep("x", 5000), collapse = chain)), '"levels": {"x": ["a", "b"]}'), "at most 2000 terms")
  }
  refuse(by_name("sums", paste("~", plus(rep("x", 5000))), '"bounds": {"x": [0, 1]}', ', "outside": "clamp"'), "at most 2000 terms")
  refuse(by_name("crossprod", paste("y ~", plus(rep(1, 5000))), '"bounds": {"y": [0, 1]}', ', "rescale": true'), "at most 2000 terms")
  refuse(by_name("records", paste0("~", plus(rep("x", 40000))), '"bounds": {"x": [0, 1]}'), "at most 100000 bytes")
  refuse(by_name("records", "~ x", paste('"bounds":', entries(1:3000, "[0, 1]"))), "at most 2000 variables")
  refuse(by_name("sums", paste0("~ I(", paste(rep("x", 5000), collapse = "*"), ")"), '"bounds": {"x": [0, 1]}', ', "outside": "clamp"'), "of degree 20 or less")
})

test_that("files: many values with names of their own are refused without naming each", {
  local_release_dir()
  record <- stat_records(~ x, list(x = c(0, 1)))
  many <- as_release(numeric(10001), record, laplace, n = 10001)
  write_release(many, "release.json")
  expect_identical(read_release("release.json"), many)
  text <- readLines("release.json")
  for (change in list(c("x[7]", "y[7]"), c("x[7]", "x[8]"), c('"x[7]": 0, ', ""), c('"n": 10001', '"n": 10002'))) {
    writeLines(sub(change[1], change[2], text, fixed = TRUE), "release.json")
    message <- tryCatch(read_release("release.json"), noiseaware_error_file = conditionMessage)
    expect_match(message, "`?value`? must have")
    expect_lt(nchar(message), 300)
  }
})

test_that("keys of a file are escaped as jsonlite does it", {
  keys <- c("a", "a b:c^2", "x[1]", "\"", "\\", "</script>", "a/b", "\n", "\u0001", "\u007f", "\u00e4", "\U1F600", "~", "{x}")
  expect_identical(internal("quoted")(keys), vapply(keys, function(k) as.character(jsonlite::toJSON(k, auto_unbox = TRUE)), "", USE.NAMES = FALSE))
})

test_that("files: a formula is parsed, never evaluated", {
  skip_on_cran()
  local_release_dir()
  mark <- "was_evaluated"
  for (formula in c("system('touch was_evaluated') ~ x", "y ~ system('touch was_evaluated')", "y ~ x + file.create('was_evaluated')",
                    "file.create('was_evaluated')", "{file.create('was_evaluated'); y ~ x}",
                    "y ~ `x`[file.create('was_evaluated')]",
                    "(function() file.create('was_evaluated'))() ~ x", "y ~ x\\nfile.create('was_evaluated')",
                    "`~`(y, file.create('was_evaluated'))",
                    "y ~ {x}", "~x", "file.create('was_evaluated') -> y ~ x", "y ~ x, file.create('was_evaluated')")) {
    write_bytes(sub("y ~ x", formula, valid_json(), fixed = TRUE))
    expect_error(read_release("release.json"), class = "noiseaware_error_file", label = formula)
  }
  # braces in names and levels are not read as code by the messages either
  for (change in list(c('"n"', "\"{file.create('was_evaluated')}\""), c('"x": [', "\"{file.create('was_evaluated')}\": ["),
                      c('"y": 12.1', "\"{file.create('was_evaluated')}\": 1"),
                      c('"laplace"', "\"{file.create('was_evaluated')}\""),
                      c("[-10, 10]", "[\"{file.create('was_evaluated')}\", \"{file.create('was_evaluated')}\"]"))) {
    write_bytes(sub(change[1], change[2], valid_json(), fixed = TRUE))
    expect_error(read_release("release.json"), class = "noiseaware_error_file")
  }
  expect_false(file.exists(mark))
})

test_that("braces in variables' names are not read as code", {
  local_release_dir()
  name <- "{file.create('was_evaluated')}"
  holed <- stats::setNames(data.frame(1, NA), c("y", name))
  st <- stat_crossprod(stats::as.formula(paste0("y ~ `", name, "`")), stats::setNames(list(c(0, 1), c(0, 1)), c("y", name)))
  expect_error(release(holed, st, laplace), class = "noiseaware_error_missing")
  expect_error(release(holed["y"], st, laplace), class = "noiseaware_error_data")
  expect_error(as_release(stats::setNames(1:5, rep(name, 5)), st, laplace, 5), class = "noiseaware_error_value")
  expect_false(file.exists("was_evaluated"))
})

test_that("files: any change of characters gives a release or one class of error", {
  skip_on_cran() # takes long; `make test` runs it
  local_release_dir()
  set.seed(70)
  with_factor <- as_release(seq_along(factor_st$components) / 3, factor_st, mech_gaussian(sd = seq_along(factor_st$components)), n = 50)
  parts <- as_release(1:10, list(a = st, b = st), list(a = laplace, b = mech_gaussian(epsilon = 1, delta = 1e-6)), n = 50)
  sources <- lapply(list(rel, with_factor, parts), function(release) charToRaw(valid_json(release)))
  alphabet <- c(as.raw(32:126), charToRaw("{}[]\",:0123456789.-+e\n\\"))
  mutate <- function(bytes) {
    at <- sort(sample.int(length(bytes), 2))
    switch(sample.int(6, 1),
      bytes[-at[1]],
      append(bytes, bytes[at[1]], at[1]),
      replace(bytes, at[1], alphabet[sample.int(length(alphabet), 1)]),
      replace(bytes, at[1], as.raw(sample.int(256, 1) - 1)),
      if (diff(at) < 60) append(bytes, bytes[at[1]:at[2]], at[2]) else bytes[-(at[1] + 0:9)],
      replace(bytes, at, bytes[rev(at)])
    )
  }
  from_file <- function(bytes) {
    write_bytes(bytes)
    read_release("release.json")
  }
  # the same without the formatting of messages, which takes most of the time, and without the handler for surprises
  refuse <- function(message) stop(structure(class = c("noiseaware_error_file", "error", "condition"), list(message = message, call = NULL)))
  from_fields <- function(bytes) {
    content <- internal("parse_bytes")(bytes)
    if (is.null(content)) refuse("not JSON")
    if (!is.list(content)) refuse("no object")
    if (is.null(names(content))) refuse("no object")
    tryCatch(internal("release_from_fields")(content, refuse), noiseaware_error = function(e) refuse("refused by a constructor"))
  }
  read <- 0
  for (i in 1:1300) {
    bytes <- sources[[1 + i %% 3]]
    for (k in seq_len(1 + rpois(1, 0.5))) bytes <- mutate(bytes)
    result <- tryCatch(if (i <= 30) from_file(bytes) else without_words(from_fields(bytes)), error = identity, warning = identity)
    if (inherits(result, "noiseaware_release")) {
      read <- read + 1
      if (read %% 4 > 0) next
      again <- internal("release_from_list")(jsonlite::parse_json(valid_json(result)), "again")
      if (!identical(again, result)) fail(paste("not itself after writing:", rawToChar(bytes)))
    } else if (!inherits(result, "noiseaware_error_file")) {
      fail(paste0(class(result)[1], ": ", conditionMessage(result), "\n", rawToChar(bytes[bytes != 0])))
    }
  }
  # some changes, as of a digit, are harmless
  expect_gt(read, 100)
  expect_lt(read, 1000)
})

test_that("a comma as the session's decimal mark changes no name and no file", {
  survival <- function() stat_survival(~ 1, breaks = c(0, 0.5, 2.25, 3))$components
  bins <- function() stat_histogram(~ x, breaks = list(x = c(0, 0.5, 2.25)))
  written <- function() {
    path <- withr::local_tempfile()
    write_release(as_release(c(1.5, 2.25), bins(), mech_laplace(scale = 0.5), n = 10), path)
    readLines(path)
  }
  counted <- function() stat_counts(~ k, levels = list(k = c(0.5, 1.5)))$components
  halves <- function() stat_counts(~ cut(x, c(0, 0.5, 1)))$components
  right <- list(survival(), bins()$components, written(), counted(), halves())
  withr::local_options(OutDec = ",")
  expect_identical(list(survival(), bins()$components, written(), counted(), halves()), right)
})
