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
  rel <- read_opendp(path, 421.7, "visits", n = 90)
  expect_identical(rel, as_release(421.7, stat_sums(~ visits, list(visits = c(0, 10))), mech_laplace(scale = 5), 90, "add_remove"))
  path <- write_opendp(chain(call_json("make_gaussian", input_domain = atom("i32"), scale = 2.5), clamp, call_json("make_sum")))
  expect_identical(read_opendp(path, 421)$mechanism, mech_gaussian(sd = 2.5))
  counts <- call_json("make_count_by_categories", input_metric = call_json("change_one_distance"), categories = c("a", "b"))
  path <- write_opendp(chain(call_json("make_laplace", input_domain = atom("int"), scale = 2), counts))
  rel <- read_opendp(path, c(5, 7, 1), "group", n = 12)
  expect_identical(rel, as_release(c(`group=a` = 5, `group=b` = 7, `group=other` = 1), stat_counts(~ group, list(group = c("a", "b", "other"))),
                                   mech_discrete_laplace(scale = 2), 12))
  counts$`__kwargs__`$null_category <- FALSE
  path <- write_opendp(chain(call_json("make_base_geometric", scale = 2), counts))
  expect_identical(names(read_opendp(path, c(5, 7), "group", 12)$value), c("group=a", "group=b"))
  # earlier versions' names of the fields
  text <- gsub("__kwargs__", "kwargs", gsub("__function__", "func", readLines(path)))
  old <- withr::local_tempfile(lines = text)
  expect_identical(read_opendp(old, c(5, 7), "group", 12), read_opendp(path, c(5, 7), "group", 12))
  mean <- write_opendp(chain(call_json("make_laplace", scale = 2), clamp, call_json("make_mean")))
  means <- stat_means(stat_sums(~ x, list(x = c(0, 10))), 20)
  expect_identical(read_opendp(mean, 4.4, statistic = means, n = 20)$statistic, means)
})

test_that("what is done beside the noise is refused, whatever statistic is given", {
  counts <- call_json("make_count_by", input_metric = metric)
  st <- stat_counts(~ g, list(g = c("a", "b")))
  ask <- function(measurement, value = c(5, 7), statistic = st) read_opendp(write_opendp(measurement), value, "g", 12, statistic = statistic)
  refused <- function(...) expect_error(ask(...), class = "noiseaware_error_file")
  plain <- chain(call_json("make_laplace", scale = 2), counts)
  expect_identical(ask(plain)$mechanism, mech_laplace(scale = 2))
  # noise of another kind
  for (name in c("make_laplace_threshold", "make_gaussian_threshold", "make_private_laplace", "make_laplace_xyz", "make_vector_laplace")) {
    refused(chain(call_json(name, scale = 2, threshold = 30), counts))
  }
  refused(chain(call_json("make_geometric", scale = 2, bounds = c(0, 50)), counts))
  # something done to the result
  refused(call_json("make_chain_pm", postprocess1 = call_json("make_clamp", bounds = c(0, 50)), measurement0 = plain))
  refused(call_json("make_population_amplification", measurement = plain, population_size = 1000))
  refused(chain(call_json("make_chain_pm", postprocess1 = call_json("make_round"), measurement0 = call_json("make_laplace", scale = 2)), counts))
  refused(list(plain))
  # the guarantee in other terms
  expect_identical(ask(call_json("make_fix_delta", measurement = plain, delta = 1e-6)), ask(plain))
  # records changed before they are summed, which a statistic that is given vouches for
  for (step in c("make_resize", "make_impute_constant", "make_lipschitz_float_mul", "make_filter", "make_xyz")) {
    changed <- chain(call_json("make_laplace", scale = 5), call_json(step, constant = 3), clamp, call_json("make_sum"))
    refused(changed, 5, NULL)
    sums <- stat_sums(~ g, list(g = c(0, 10)))
    expect_identical(ask(changed, 5, sums)$statistic, sums)
  }
  for (step in c("make_select_column", "make_split_dataframe", "make_cast_default")) {
    expect_identical(ask(chain(call_json("make_laplace", scale = 5), call_json(step), clamp, call_json("make_sum")), 5, NULL)$statistic, sums)
  }
})

test_that("what is not understood is refused", {
  withr::local_dir(withr::local_tempdir())
  writeLines(readLines(write_opendp(chain(call_json("make_laplace", scale = 2), clamp, call_json("make_mean")))), "mean.json")
  writeLines(readLines(write_opendp(clamp)), "none.json")
  writeLines(readLines(write_opendp(list(call_json("make_laplace", scale = 2), call_json("make_laplace", scale = 2)))), "two.json")
  writeLines(readLines(write_opendp(chain(call_json("make_laplace", scale = "x"), clamp, call_json("make_sum")))), "scale.json")
  writeLines("{\"__function__\": ", "cut.json")
  writeLines("3", "number.json")
  file.create("empty.json")
  show(refusals("file", alist(
    read_opendp("mean.json", 3),
    read_opendp("none.json", 3),
    read_opendp("two.json", 3),
    read_opendp("scale.json", 3),
    read_opendp("cut.json", 3),
    read_opendp("number.json", 3),
    read_opendp("empty.json", 3),
    read_opendp("nowhere.json", 3)
  )))
})
