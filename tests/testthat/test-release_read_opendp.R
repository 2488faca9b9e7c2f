# Files made by hand in the layout of OpenDP's dp.serialize(), which is of calls with their arguments.

call_json <- function(name, ...) {
  arguments <- list(...)
  structure(list(`__function__` = name, `__module__` = "opendp", `__kwargs__` = if (length(arguments)) arguments else setNames(list(), character())), class = NULL)
}
chain <- function(noise, ...) {
  steps <- list(...)
  inner <- Reduce(function(before, after) call_json("make_chain_tt", transformation1 = after, transformation0 = before), steps)
  call_json("make_chain_mt", measurement1 = noise, transformation0 = inner)
}
write_opendp <- function(measurement, env = parent.frame()) {
  withr::local_tempfile(lines = jsonlite::toJSON(measurement, auto_unbox = TRUE, digits = NA), fileext = ".json", .local_envir = env)
}
metric <- call_json("symmetric_distance")
clamp <- call_json("make_clamp", input_metric = metric, bounds = list(`__tuple__` = c(0, 10)))
atom <- function(type) call_json("atom_domain", T = type)

test_that("a clamped sum and counts by category are read with their noise", {
  path <- write_opendp(chain(call_json("make_laplace", input_domain = atom("f64"), scale = 5), clamp, call_json("make_sum")))
  expect_error(read_release(path), "`value` must be given", class = "noiseaware_error_argument")
  rel <- read_release(path, format = "opendp", value = 421.7, variable = "visits", n = 90)
  expect_identical(rel, as_release(421.7, stat_sums(~ visits, list(visits = c(0, 10))), mech_laplace(scale = 5), 90, "add_remove"))
  path <- write_opendp(chain(call_json("make_gaussian", input_domain = atom("i32"), scale = 2.5), clamp, call_json("make_sum")))
  expect_identical(read_release(path, format = "opendp", value = 421)$mechanism, mech_gaussian(sd = 2.5))
  counts <- call_json("make_count_by_categories", input_metric = call_json("change_one_distance"), categories = c("a", "b"))
  path <- write_opendp(chain(call_json("make_laplace", input_domain = atom("int"), scale = 2), counts))
  rel <- read_release(path, format = "opendp", value = c(5, 7, 1), variable = "group", n = 12)
  expect_identical(rel, as_release(c(`group=a` = 5, `group=b` = 7, `group=other` = 1), stat_counts(~ group, list(group = c("a", "b", "other"))),
                                   mech_discrete_laplace(scale = 2), 12))
  counts$`__kwargs__`$null_category <- FALSE
  path <- write_opendp(chain(call_json("make_base_geometric", scale = 2), counts))
  expect_identical(names(read_release(path, format = "opendp", value = c(5, 7), variable = "group", n = 12)$value), c("group=a", "group=b"))
  # earlier versions' names of the fields
  text <- gsub("__kwargs__", "kwargs", gsub("__function__", "func", readLines(path)))
  old <- withr::local_tempfile(lines = text)
  expect_identical(read_release(old, format = "opendp", value = c(5, 7), variable = "group", n = 12), read_release(path, format = "opendp", value = c(5, 7), variable = "group", n = 12))
  mean <- write_opendp(chain(call_json("make_laplace", scale = 2), clamp, call_json("make_mean")))
  means <- stat_means(stat_sums(~ x, list(x = c(0, 10))), 20)
  expect_identical(read_release(mean, format = "opendp", value = 4.4, statistic = means, n = 20)$statistic, means)
})

test_that("what is done beside the noise is refused, whatever statistic is given", {
  skip_on_cran()
  counts <- call_json("make_count_by", input_metric = metric)
  st <- stat_counts(~ g, list(g = c("a", "b")))
  ask <- function(measurement, value = c(5, 7), statistic = st) read_release(write_opendp(measurement), format = "opendp", value = value, variable = "g", n = 12, statistic = statistic)
  refused <- function(...) expect_error(ask(...), class = "noiseaware_error_file")
  plain <- chain(call_json("make_laplace", scale = 2), counts)
  expect_identical(ask(plain)$mechanism, mech_laplace(scale = 2))
  # noise of another kind
  for (name in c("make_private_laplace", "make_laplace_xyz", "make_vector_laplace", "make_canonical_noise", "make_private_quantile")) {
    refused(chain(call_json(name, scale = 2, threshold = 30), counts))
  }
  refused(chain(call_json("make_laplace_threshold", scale = 2, threshold = -3), counts))
  refused(chain(call_json("make_laplace_threshold", scale = 2), counts))
  refused(chain(call_json("make_noise", scale = 2, output_measure = call_json("user_divergence")), counts))
  # something done to the result
  refused(call_json("make_chain_pm", postprocess1 = call_json("make_clamp", bounds = c(0, 50)), measurement0 = plain))
  refused(call_json("make_population_amplification", measurement = plain, population_size = 1000))
  refused(chain(call_json("make_chain_pm", postprocess1 = call_json("make_round"), measurement0 = call_json("make_laplace", scale = 2)), counts))
  refused(list(plain))
  # the guarantee in other terms
  expect_identical(ask(call_json("make_fix_delta", measurement = plain, delta = 1e-6)), ask(plain))
  # records changed before they are summed, which a statistic that is given vouches for
  for (step in c("make_variance", "make_sized_bounded_sum_of_squared_deviations", "make_resize", "make_impute_constant", "make_lipschitz_float_mul", "make_filter", "make_xyz")) {
    changed <- chain(call_json("make_laplace", scale = 5), call_json(step, constant = 3), clamp, call_json("make_sum"))
    refused(changed, 5, NULL)
    sums <- stat_sums(~ g, list(g = c(0, 10)))
    expect_identical(ask(changed, 5, sums)$statistic, sums)
  }
  for (step in c("make_select_column", "make_split_dataframe", "make_cast_default")) {
    expect_identical(ask(chain(call_json("make_laplace", scale = 5), call_json(step), clamp, call_json("make_sum")), 5, NULL)$statistic, sums)
  }
})

# ---- layouts of 0.12 to 0.15 ---------------------------------------------------------------

# inputs of later steps are outputs of earlier ones, which the file repeats
output_of <- function(this) call_json("transformation_output_domain", this = this)
numbers <- function(size = NULL, ...) call_json("vector_domain", atom_domain = call_json("atom_domain", bounds = list(`__tuple__` = c(0, 10)), nan = FALSE, T = "f64"), ...)
first <- function(name, domain, ...) call_json(name, input_domain = domain, input_metric = metric, ...)
then <- function(name, before, ...) call_json(name, input_domain = output_of(before), input_metric = call_json("transformation_output_metric", this = before), ...)
dp_chain <- function(before, name, ...) call_json("make_chain_mt", measurement1 = then(name, before, ...), transformation0 = before)

test_that("bounds and sizes come from domains, means and counts are read, nested domains are not steps", {
  clamped <- first("make_clamp", call_json("vector_domain", atom_domain = atom("f64"), size = 20), bounds = list(`__tuple__` = c(0, 10)))
  mean <- call_json("make_chain_tt", transformation1 = then("make_mean", clamped), transformation0 = clamped)
  sums <- stat_sums(~ x, list(x = c(0, 10)))
  expected <- as_release(4.4, stat_means(sums, 20), mech_laplace(scale = 2), 20)
  expect_identical(read_release(write_opendp(dp_chain(mean, "make_laplace", scale = 2, k = -1074, MO = "MaxDivergence")), format = "opendp", value = 4.4), expected)
  expect_error(read_release(write_opendp(dp_chain(mean, "make_laplace", scale = 2)), format = "opendp", value = 4.4, n = 21), class = "noiseaware_error_argument")
  # bounds that the domain has, no clamp
  total <- first("make_sum", numbers())
  expect_identical(read_release(write_opendp(dp_chain(total, "make_gaussian", scale = 3)), format = "opendp", value = 44, n = 9), as_release(44, sums, mech_gaussian(sd = 3), 9, "add_remove"))
  private <- function(measure) dp_chain(total, "make_noise", scale = 3, output_measure = call_json(measure))
  expect_identical(read_release(write_opendp(private("max_divergence")), format = "opendp", value = 44, n = 9)$mechanism, mech_laplace(scale = 3))
  expect_identical(read_release(write_opendp(private("zero_concentrated_divergence")), format = "opendp", value = 44, n = 9)$mechanism, mech_gaussian(sd = 3))
  count <- first("make_count", numbers(), TO = "i32")
  expect_identical(read_release(write_opendp(dp_chain(count, "make_laplace", scale = 2)), format = "opendp", value = 44), as_release(44, stat_size(), mech_discrete_laplace(scale = 2), NULL, "add_remove"))
  # limits of the result
  limited <- dp_chain(count, "make_geometric", scale = 2, bounds = list(`__tuple__` = c(0L, 50L)))
  expect_identical(read_release(write_opendp(limited), format = "opendp", value = 50)$mechanism, published(mech_discrete_laplace(scale = 2), lower = 0, upper = 50))
})

test_that("counts by key above a threshold are those that were shown, or of public keys", {
  counts <- first("make_count_by", call_json("vector_domain", atom_domain = atom("String")), TV = "i32")
  path <- write_opendp(dp_chain(counts, "make_laplace_threshold", scale = 2, threshold = 10))
  noise <- mech_discrete_laplace(scale = 2)
  groups <- function(keys) stat_counts(~ g, list(g = keys))
  expect_identical(read_release(path, format = "opendp", value = list(b = 12, a = 31), variable = "g"),
                   as_release(c(b = 12, a = 31), groups(c("b", "a")), published(noise, threshold = 10, listed = FALSE), NULL, "add_remove"))
  public <- read_release(path, format = "opendp", value = c(b = 12, a = 31), variable = "g", statistic = groups(c("a", "b", "c")))
  expect_identical(public, as_release(c(a = 31, b = 12, c = NA), groups(c("a", "b", "c")), published(noise, threshold = 10), NULL, "add_remove"))
  approximate <- call_json("approximate", measure = call_json("zero_concentrated_divergence"))
  by_measure <- write_opendp(dp_chain(counts, "make_noise_threshold", scale = 2, threshold = 10, output_measure = approximate))
  expect_identical(read_release(by_measure, format = "opendp", value = c(b = 12, a = 31), variable = "g")$mechanism, published(mech_discrete_gaussian(sd = 2), threshold = 10, listed = FALSE))
  expect_error(read_release(path, format = "opendp", value = c(12, 31), variable = "g"), class = "noiseaware_error_file")
  expect_error(read_release(path, format = "opendp", value = c(a = 31, b = 9), variable = "g"), class = "noiseaware_error_value")
})

test_that("bins of a number are a histogram", {
  bins <- first("make_find_bin", numbers(), edges = c(2, 5))
  counted <- function(categories) then("make_count_by_categories", bins, categories = categories, null_category = TRUE, TOA = "i32")
  measured <- function(categories) chain(call_json("make_laplace", scale = 2), bins, counted(categories))
  expected <- as_release(c(4, 9, 2), stat_histogram(~ x, breaks = c(-Inf, 2, 5, Inf)), mech_discrete_laplace(scale = 2), 15, "add_remove")
  expect_identical(read_release(write_opendp(measured(0:2)), format = "opendp", value = c(4, 9, 2, 1), n = 15), expected)
  expect_error(read_release(write_opendp(measured(1:3)), format = "opendp", value = c(4, 9, 2, 1), n = 15), class = "noiseaware_error_file")
})

test_that("answers by randomised response have the posterior of enumeration", {
  path <- write_opendp(call_json("make_randomized_response_bool", prob = 0.75, constant_time = FALSE))
  rel <- read_release(path, format = "opendp", value = rep(c(FALSE, TRUE), c(269, 131)), variable = "said")
  expect_identical(rel, as_release(rep(0:1, c(269, 131)), stat_records(~ said, levels = list(said = c("FALSE", "TRUE"))),
                                   mech_randomized_response(epsilon = log(3)), 400))
  # 131 of 400 said yes; the share is Beta(1, 1)
  fit <- sample_posterior(rel, model_bernoulli(), chains = 2, iter = 1000, seed = 1)
  p <- seq(0.0005, 1, by = 0.001)
  expect_distribution(posterior::extract_variable_matrix(fit$draws, "prob[TRUE]"), grid_quantile(p, dbinom(131, 400, 0.25 + p / 2)), 0.15675)
  four <- write_opendp(call_json("make_randomized_response", categories = c("a", "b", "c", "d"), prob = 0.5, T = "String"))
  expect_equal(read_release(four, format = "opendp", value = c("b", "b", "d"))$mechanism$epsilon, log(3))
  expect_error(read_release(four, format = "opendp", value = c("b", "e")), class = "noiseaware_error_value")
  one <- write_opendp(call_json("make_randomized_response", categories = c("a", "b", "c", "d"), prob = 0.25, T = "String"))
  expect_error(read_release(one, format = "opendp", value = "a"), class = "noiseaware_error_file")
})

test_that("a composition is several statistics of the same records", {
  counts <- first("make_count_by_categories", call_json("vector_domain", atom_domain = atom("String")), categories = c("a", "b"), null_category = FALSE, TOA = "i32")
  both <- write_opendp(call_json("make_composition", measurements = list(dp_chain(first("make_count", numbers(), TO = "i32"), "make_laplace", scale = 2),
                                                                         dp_chain(counts, "make_gaussian", scale = 3))))
  noise <- list(count = mech_discrete_laplace(scale = 2), count_by_categories = mech_discrete_gaussian(sd = 3))
  statistic <- list(count = stat_size(), count_by_categories = stat_counts(~ g, list(g = c("a", "b"))))
  expected <- as_release(list(count = 40, count_by_categories = c(11, 30)), statistic, noise, NULL, "add_remove")
  expect_identical(read_release(both, format = "opendp", value = list(40, c(11, 30)), variable = "g"), expected)
  expect_identical(names(read_release(both, format = "opendp", value = list(size = 40, groups = c(11, 30)), variable = "g")$statistic), c("size", "groups"))
  expect_error(read_release(both, format = "opendp", value = 40, variable = "g"), class = "noiseaware_error_argument")
})

# ---- the layout of to_json() -----------------------------------------------------------------

logged <- function(func, args = NULL, ...) {
  c(list(`_type` = "constructor", func = func, module = "opendp"), if (!is.null(args)) list(args = args), if (...length()) list(kwargs = list(...)))
}
chained <- function(first, ...) Reduce(function(before, after) list(`_type` = "partial_chain", lhs = before, rhs = after), list(...), first)
items <- function(...) list(`_type` = "list", `_items` = list(...))
as_logged <- function(chain) list(version = "0.8.0", ast = chain)

test_that("to_json() writes pairs, arguments without names and no defaults", {
  column <- logged("make_chain_tt", list(logged("make_select_column", key = "score", TOA = "String"), logged("make_split_dataframe", separator = ",", col_names = items("id", "score"))))
  steps <- function(...) as_logged(chained(column, logged("then_cast_default", TOA = "f64"), logged("then_clamp", bounds = list(0, 10)), ...))
  ask <- function(file, ...) read_release(write_opendp(file), ...)
  sums <- stat_sums(~ score, list(score = c(0, 10)))
  expect_identical(ask(steps(logged("then_sum"), logged("then_laplace", scale = 5)), value = 44, n = 9), as_release(44, sums, mech_laplace(scale = 5), 9, "add_remove"))
  # resized: as many records as there are
  mean <- steps(logged("then_resize", size = 20L, constant = 5), logged("then_mean"), logged("then_gaussian", list(0.5)))
  expect_identical(ask(mean, value = 4.4, n = 20), as_release(4.4, stat_means(sums, 20), mech_gaussian(sd = 0.5), 20, "add_remove"))
  for (n in list(NULL, 19)) expect_error(ask(mean, value = 4.4, n = n), "make_resize", class = "noiseaware_error_file")
  covariance <- steps(logged("then_resize", size = 20L, constant = 5), logged("then_covariance"), logged("then_laplace", scale = 5))
  expect_error(ask(covariance, value = 4.4, n = 20), "make_covariance", class = "noiseaware_error_file")
  # with a domain; counts are integers unless the file says something else
  domain <- logged("vector_domain", list(logged("atom_domain", T = "String")))
  counts <- function(...) as_logged(chained(logged("make_count_by_categories", list(domain, logged("symmetric_distance"), items("a", "b"), FALSE), ...), logged("then_laplace", scale = 2)))
  expect_identical(ask(counts(), value = c(5, 7), variable = "g"), as_release(c(5, 7), stat_counts(~ g, list(g = c("a", "b"))), mech_discrete_laplace(scale = 2), NULL, "add_remove"))
  expect_identical(ask(counts(TOA = "f64"), value = c(5, 7), variable = "g")$mechanism, mech_laplace(scale = 2))
  both <- as_logged(logged("make_basic_composition", list(items(counts()$ast, chained(logged("make_count", list(domain, logged("symmetric_distance"))), logged("then_gaussian", scale = 3))))))
  expect_identical(ask(both, value = list(c(5, 7), 12))$mechanism, list(count_by_categories = mech_discrete_laplace(scale = 2), count = mech_discrete_gaussian(sd = 3)))
  # arguments that are not known, and what follows the noise
  expect_error(ask(steps(logged("then_sum", list(3)), logged("then_laplace", scale = 5)), value = 44), "make_sum", class = "noiseaware_error_file")
  expect_error(ask(steps(logged("then_sum"), logged("then_laplace", scale = 5), logged("then_round")), value = 44), class = "noiseaware_error_file")
  deep <- withr::local_tempfile(lines = paste0('{"ast": ', strrep('{"func": "make_fix_delta", "kwargs": {"measurement": ', 490), "1", strrep("}}", 490), "}"))
  expect_error(read_release(deep, value = 1), class = "noiseaware_error_file")
})

test_that("a variance about the exact mean has the posterior of quadrature", {
  skip_on_cran()
  wide <- call_json("atom_domain", bounds = list(`__tuple__` = c(-500, 500)), nan = FALSE, T = "f64")
  variance <- function(size, ...) first("make_variance", call_json("vector_domain", atom_domain = wide, size = size), ...)
  path <- write_opendp(dp_chain(variance(20, ddof = 1L), "make_laplace", scale = 12))
  rel <- read_release(path, value = 58)
  prior <- list(mean = fixed(0), sd = prior_inverse_gamma(2, 60))
  fit <- sample_posterior(rel, model_normal(prior = prior), chains = 2, iter = 1200, seed = 1)
  sd <- seq(2, 30, by = 0.05)
  chance <- qchisq((1:500 - 0.5) / 500, 19) / 19
  density <- vapply(sd, function(sd) mean(exp(-abs(58 - sd^2 * chance) / 12)), 0) * exp(-60 / sd^2) / sd^5
  expect_distribution(posterior::extract_variable_matrix(fit$draws, "sd"), grid_quantile(sd, density))
  # by its definition, for both kinds of noise
  log_density <- function(measurement, n = NULL) read_release(write_opendp(measurement), value = 58, n = n)$mechanism$log_density
  s <- cbind(x = c(30, 50), `x^2` = c(300, 400))
  z <- cbind(0, c(58, 58))
  found <- (s[, 2] - s[, 1]^2 / 20) / 20
  expect_equal(log_density(dp_chain(variance(20, ddof = 0L), "make_laplace", scale = 12))(z, s), -abs(58 - found) / 12)
  expect_equal(log_density(dp_chain(variance(NULL), "make_gaussian", scale = 3), 20)(z, s), -(58 - found * 20 / 19)^2 / 18)
  expect_error(read_release(path, value = c(58, 1)), class = "noiseaware_error_value")
  for (bad in list(variance(NULL), variance(1, ddof = 1L))) {
    expect_error(read_release(write_opendp(dp_chain(bad, "make_laplace", scale = 12)), value = 58), "ddof", class = "noiseaware_error_file")
  }
})

test_that("trees of counts are queries, without nodes that nobody is in", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- first("make_count_by_categories", call_json("vector_domain", atom_domain = atom("String")), categories = c("a", "b", "c", "d"), null_category = TRUE, TOA = "i32")
  tree <- function(leaves, branches) {
    step <- then("make_b_ary_tree", counts, leaf_count = leaves, branching_factor = branches)
    write_opendp(chain(then("make_laplace", step, scale = 2), counts, step), parent.frame())
  }
  # layers by sums of neighbours, from counts and zeros up to the root, without the last leaves
  nodes <- function(x, leaves, branches) {
    full <- branches^ceiling(log(leaves, branches) - 1e-9)
    layers <- list(c(x[seq_len(leaves)], numeric(full - leaves)))
    while (length(layers[[1]]) > 1) layers <- c(list(colSums(matrix(layers[[1]], branches))), layers)
    unlist(layers)[seq_len(length(unlist(layers)) + leaves - full)]
  }
  x <- c(1, 2, 4, 8, 16)
  cells <- stat_counts(~ g, list(g = c("a", "b", "c", "d", "other")))
  for (size in list(c(5, 2), c(5, 3), c(5, 5), c(4, 2), c(2, 2))) {
    value <- nodes(x, size[1], size[2])
    rel <- read_release(tree(size[1], size[2]), value = value + 0.25 * (value == 0), variable = "g", n = 31)
    expect_identical(unname(rel$value), value[value > 0])
    expect_identical(rel$mechanism, mech_discrete_laplace(scale = 2))
    people <- data.frame(g = rep(cells$levels$g, x))
    expect_equal(unname(internal("statistic_total")(rel$statistic, people)), value[value > 0])
  }
  expect_error(read_release(tree(5, 2), value = 1:5), class = "noiseaware_error_value")
  for (bad in list(tree(0, 2), tree(5, 1), tree(5, 1e9), tree("x", 2))) expect_error(read_release(bad, value = 1:5), class = "noiseaware_error_file")
})

test_that("noise in steps is read where the steps are small, or those of whole numbers", {
  counts <- call_json("make_count_by_categories", input_metric = metric, categories = c("a", "b"), null_category = FALSE, TOA = "i32")
  asked <- function(scale, k, last) {
    read_release(write_opendp(chain(call_json("make_laplace", scale = scale, k = k), clamp, last)), value = if (identical(last, counts)) 1:2 else 3)
  }
  expect_identical(asked(2, 0, counts)$mechanism, mech_discrete_laplace(scale = 2))
  expect_error(asked(2, 1, counts), "steps of 2^k = 2", fixed = TRUE, class = "noiseaware_error_file")
  expect_identical(asked(128, 0, call_json("make_sum"))$mechanism, mech_laplace(scale = 128))
  expect_error(asked(99, 0, call_json("make_sum")), "steps of 2^k = 1", fixed = TRUE, class = "noiseaware_error_file")
})

test_that("what is not understood is refused", {
  skip_on_cran() # takes long; `make test` runs it
  withr::local_dir(withr::local_tempdir())
  writeLines(readLines(write_opendp(chain(call_json("make_laplace", scale = 2), clamp, call_json("make_mean")))), "mean.json")
  writeLines(readLines(write_opendp(clamp)), "none.json")
  writeLines(readLines(write_opendp(list(call_json("make_laplace", scale = 2), call_json("make_laplace", scale = 2)))), "two.json")
  writeLines(readLines(write_opendp(chain(call_json("make_laplace", scale = "x"), clamp, call_json("make_sum")))), "scale.json")
  writeLines(readLines(write_opendp(call_json("make_private_lazyframe", lazyframe = list(`__lazyframe__` = "AAAA")))), "polars.json")
  writeLines(readLines(write_opendp(chain(call_json("make_laplace", scale = 2, radius = 3), clamp, call_json("make_sum", size_limit = 9)))), "arguments.json")
  writeLines(readLines(write_opendp(chain(call_json("make_laplace", scale = 2, k = 3), clamp, call_json("make_sum")))), "steps.json")
  writeLines(readLines(write_opendp(call_json("make_laplace", 7))), "unnamed.json")
  writeLines("{\"__function__\": ", "cut.json")
  writeLines("3", "number.json")
  writeLines(paste0(strrep('{"func": "make_fix_delta", "kwargs": {"measurement": ', 1200), "1", strrep("}}", 1200)), "deep.json")
  writeLines('{"__function__": "make_composition", "__kwargs__": {"measurements": []}}', "nothing.json")
  writeLines('{"__function__": "make_randomized_response", "__kwargs__": {"prob": 0.8, "categories": ["a", ["b", "c"]]}}', "categories.json")
  file.create("empty.json")
  show(refusals("file", alist(
    read_release("mean.json", format = "opendp", value = 3),
    read_release("none.json", format = "opendp", value = 3),
    read_release("two.json", format = "opendp", value = 3),
    read_release("scale.json", format = "opendp", value = 3),
    read_release("polars.json", format = "opendp", value = 3),
    read_release("arguments.json", format = "opendp", value = 3),
    read_release("arguments.json", format = "opendp", value = 3, statistic = stat_size()),
    read_release("steps.json", format = "opendp", value = 3),
    read_release("unnamed.json", format = "opendp", value = 3),
    read_release("cut.json", format = "opendp", value = 3),
    read_release("number.json", format = "opendp", value = 3),
    read_release("deep.json", format = "opendp", value = 3),
    read_release("nothing.json", format = "opendp", value = 3),
    read_release("categories.json", format = "opendp", value = "a"),
    read_release("empty.json", format = "opendp", value = 3),
    read_release("nowhere.json", format = "opendp", value = 3)
  )))
})
