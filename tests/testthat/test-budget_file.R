# Copies of a budget, and the file that several processes share.

counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
data <- data.frame(g = c("a", "b", "a"))
publish <- function(account, epsilon) release(data, counts, mech_discrete_laplace(epsilon = epsilon), budget = account)

test_that("a budget that was read back, copied or forked spends nothing", {
  account <- budget(epsilon = 1)
  publish(account, 0.6)
  path <- withr::local_tempfile(fileext = ".rds")
  saveRDS(account, path)
  copies <- list(readRDS(path), unserialize(serialize(account, NULL)), structure(rlang::env_clone(account), class = class(account)))
  for (copy in copies) {
    expect_error(publish(copy, 0.3), class = "noiseaware_error_budget")
    expect_error(private_quantile(1:9, 0.5, c(0, 9), 0.3, budget = copy), class = "noiseaware_error_budget")
    objective <- stat_objective(y ~ x, bounds = list(y = c(0, 1), x = c(0, 1)))
    expect_error(release_objective(data.frame(y = c(0, 1), x = c(1, 0)), objective, mech_objective(epsilon = 0.3), budget = copy),
                 class = "noiseaware_error_budget")
    # what was spent can still be read
    expect_identical(summary(copy), summary(account))
    expect_output(print(copy), "A copy")
  }
  show(refusals("budget", alist(publish(copies[[1]], 0.3))))
  skip_on_os("windows")
  answers <- parallel::mclapply(1:2, function(i) tryCatch(publish(account, 0.4), error = class), mc.cores = 2)
  for (answer in answers) expect_true("noiseaware_error_budget" %in% answer)
  publish(account, 0.4)
  expect_equal(sum(summary(account)$epsilon), 1)
})

test_that("a budget in a file goes on in another session and object", {
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  publish(account, 0.6)
  saved <- unserialize(serialize(account, NULL))
  again <- budget(file = path)
  expect_identical(summary(again), summary(account))
  expect_error(publish(again, 0.6), class = "noiseaware_error_budget")
  publish(saved, 0.25)
  expect_equal(summary(account)$epsilon, c(0.6, 0.25))
  expect_error(publish(account, 0.2), class = "noiseaware_error_budget")
  expect_identical(nrow(summary(budget(epsilon = 1, file = path))), 2L)
  expect_false(dir.exists(paste0(path, ".lock")))
  # a release that fails spends nothing and leaves no lock
  expect_error(release(data.frame(g = NA), counts, mech_discrete_laplace(epsilon = 0.1), budget = account), class = "noiseaware_error_missing")
  expect_false(dir.exists(paste0(path, ".lock")))
  publish(account, 0.15)
  expect_equal(sum(summary(account)$epsilon), 1)
  expect_output(print(account), "file")

  # limits to the last bit, guarantees that are not known
  other <- withr::local_tempfile()
  fine <- budget(epsilon = 1 / 3, delta = 1e-7, composition = "basic", file = other)
  expect_identical(budget(file = other)$limit, fine$limit)
  release(data, counts, mech_gaussian(epsilon = 0.1, delta = 1e-8), budget = fine)
  expect_identical(summary(fine)$delta, 1e-8)
  third <- withr::local_tempfile()
  zcdp <- budget(rho = 1, file = third)
  release(data, counts, mech_gaussian(rho = 0.1), budget = zcdp)
  expect_identical(summary(zcdp)$epsilon, NA_real_)
  expect_equal(summary(zcdp)$rho, 0.1)
})

test_that("processes that share a file spend no more than it has", {
  skip_on_os("windows")
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  answers <- parallel::mclapply(1:8, function(i) tryCatch(inherits(publish(account, 0.3), "noiseaware_release"), noiseaware_error_budget = function(e) FALSE),
                                mc.cores = 4)
  expect_identical(sum(unlist(answers)), 3L)
  expect_equal(sum(summary(account)$epsilon), 0.9)
})

test_that("100 releases raced by two processes: never overspent, and nothing lost", {
  skip_on_os("windows")
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 0.5, file = path)
  answers <- parallel::mclapply(1:2, function(i) {
    vapply(1:50, function(k) tryCatch(inherits(publish(account, 0.01), "noiseaware_release"), noiseaware_error_budget = function(e) FALSE), TRUE)
  }, mc.cores = 2)
  expect_identical(sum(unlist(answers)), 50L)
  expect_identical(nrow(summary(account)), 50L)
})

test_that("a full disk leaves the account as it was", {
  skip_on_os("windows")
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1000, file = path)
  while (file.size(path) <= 4096 - 60) publish(account, 0.1)
  before <- readLines(path)
  # no file may have more than 8 blocks of 512 bytes: the line that is added is cut short
  script <- withr::local_tempfile(lines = c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")), "library(noiseaware)",
    sprintf("account <- budget(file = %s)", deparse(path)),
    "data <- data.frame(g = c('a', 'b'))",
    "said <- tryCatch(release(data, stat_counts(~ g, list(g = c('a', 'b'))), mech_discrete_laplace(epsilon = 0.1), budget = account), error = class)",
    "cat(said[[1]])"))
  limited <- sprintf("trap '' XFSZ; ulimit -f 8; exec %s --vanilla %s", shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script))
  expect_identical(system2("sh", c("-c", shQuote(limited)), stdout = TRUE), "noiseaware_error_file")
  expect_identical(readLines(path), before)
  publish(account, 0.1)
  expect_identical(nrow(summary(account)), length(before))
})

test_that("what was spent stays spent when the process is killed before it publishes", {
  skip_on_os("windows")
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  killed <- parallel::mcparallel({
    publish(account, 0.7)
    tools::pskill(Sys.getpid(), tools::SIGKILL)
  })
  suppressWarnings(parallel::mccollect(killed))
  expect_equal(summary(account)$epsilon, 0.7)
  expect_error(publish(account, 0.7), class = "noiseaware_error_budget")
  # nothing but the budget was left behind
  expect_false(dir.exists(paste0(path, ".lock")))
})

# a process that takes the lock, and is killed
left_lock <- function(path) {
  killed <- parallel::mcparallel({
    internal("lock_file")(path)
    tools::pskill(Sys.getpid(), tools::SIGKILL)
  })
  suppressWarnings(parallel::mccollect(killed))
  # its end is told a little before it has come
  for (k in 1:200) if (is.na(internal("process_start")(killed$pid))) break else Sys.sleep(0.02)
  paste0(path, ".lock")
}

test_that("the lock of a killed process is removed, that of a living one is not", {
  skip_on_os(c("windows", "mac", "solaris"))
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  lock <- left_lock(path)
  expect_true(dir.exists(lock))
  expect_true(internal("is_left")(lock))
  publish(account, 0.1)
  expect_identical(list.files(dirname(path), paste0("^", basename(path))), basename(path))
  # of another process that has the number of a dead one, of another machine or user, of nobody
  held <- internal("lock_file")(path)
  owner <- readLines(file.path(held, "owner"))
  expect_false(internal("is_left")(held))
  for (other in list(c(owner[1:2], "1"), replace(owner, 1, "elsewhere"), owner[1:2], replace(owner, 3, "NA"))) {
    writeLines(other, file.path(held, "owner"))
    expect_identical(internal("is_left")(held), identical(other[3], "1"))
  }
  writeLines(replace(owner, 1, "elsewhere"), file.path(held, "owner"))
  expect_error(internal("lock_file")(path, patience = 0.05), "in use by another process", class = "noiseaware_error_budget")
  # nobody removes a lock while another does
  writeLines(c(owner[1:2], "1"), file.path(held, "owner"))
  dir.create(paste0(held, "-taken-over"))
  expect_error(internal("lock_file")(path, patience = 0.05), class = "noiseaware_error_budget")
  unlink(paste0(held, "-taken-over"), recursive = TRUE)
  publish(account, 0.1)
  expect_equal(summary(account)$epsilon, c(0.1, 0.1))
})

test_that("100 races after killed processes: never overspent, and nothing lost", {
  skip_on_os(c("windows", "mac", "solaris"))
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 0.5, file = path)
  # five processes race twice in each of ten rounds, which begin when a killed one has left its lock
  rounds <- withr::local_tempfile()
  dir.create(rounds)
  told <- function(...) file.path(rounds, paste(..., sep = "-"))
  await <- function(files) {
    until <- proc.time()[["elapsed"]] + 60
    while (!all(file.exists(files)) && proc.time()[["elapsed"]] < until) Sys.sleep(0.01)
  }
  racers <- lapply(1:5, function(i) parallel::mcparallel(vapply(1:10, function(round) {
    await(told("begin", round))
    spent <- vapply(1:2, function(k) tryCatch(inherits(publish(account, 0.01), "noiseaware_release"), noiseaware_error_budget = function(e) FALSE), TRUE)
    file.create(told("end", round, i))
    sum(spent)
  }, 0)))
  for (round in 1:10) {
    left_lock(path)
    file.create(told("begin", round))
    await(told("end", round, 1:5))
    expect_identical(nrow(summary(account)), as.integer(min(50, 10 * round)))
  }
  spent <- do.call(cbind, parallel::mccollect(racers))
  expect_identical(unname(rowSums(spent)), rep(c(10, 0), each = 5))
})

test_that("a file that is locked, damaged or another's is refused", {
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  publish(account, 0.1)
  lock <- internal("lock_file")(path)
  expect_error(internal("lock_file")(path, patience = 0), "remove the directory", class = "noiseaware_error_budget")
  internal("unlock_file")(lock)
  expect_identical(list.files(dirname(path), paste0("^", basename(path))), basename(path))
  expect_error(budget(epsilon = 2, file = path), class = "noiseaware_error_budget")
  expect_error(budget(rho = 1, file = path), class = "noiseaware_error_budget")
  expect_error(budget(file = tempfile()), class = "noiseaware_error_budget")
  expect_error(budget(epsilon = 1, file = file.path(tempfile(), "a")), class = "noiseaware_error_file")
  expect_error(budget(epsilon = 1, file = tempdir()), class = "noiseaware_error_file")
  expect_error(budget(epsilon = 1, file = 3), class = "noiseaware_error_file")
  whole <- readLines(path)
  for (bad in list(c(whole, "{\"what\": \"x\"}"), c(whole, "nonsense"), whole[-1], sub("epsilon\":0.1", "epsilon\":-0.1", whole),
                   sub("\"version\":2", "\"version\":3", whole), sub("epsilon\":1", "epsilon\":9", whole))) {
    expect_false(identical(bad, whole))
    writeLines(bad, path)
    expect_error(publish(account, 0.1), class = "noiseaware_error_budget")
  }
  cat(paste(whole, collapse = "\n"), file = path) # cut short
  expect_error(publish(account, 0.1), class = "noiseaware_error_budget")
  unlink(path)
  expect_error(publish(account, 0.1), class = "noiseaware_error_file")
  expect_false(dir.exists(paste0(path, ".lock")))
})
