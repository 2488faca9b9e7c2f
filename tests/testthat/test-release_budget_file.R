# Copies of a budget, and the file that several processes share.

counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
data <- data.frame(g = c("a", "b", "a"))
publish <- function(account, epsilon) release(data, counts, mech_discrete_laplace(epsilon = epsilon), budget = account)
published <- function(account, epsilon) tryCatch(inherits(publish(account, epsilon), "noiseaware_release"), noiseaware_error_budget = function(e) FALSE)

test_that("a budget that was read back, copied or forked spends nothing", {
  account <- budget(epsilon = 1)
  publish(account, 0.6)
  path <- withr::local_tempfile(fileext = ".rds")
  saveRDS(account, path)
  copies <- list(readRDS(path), unserialize(serialize(account, NULL)), structure(rlang::env_clone(account), class = class(account)))
  for (copy in copies) {
    expect_error(publish(copy, 0.3), class = "noiseaware_error_budget")
    expect_error(released_quantile(1:9, 0.5, c(0, 9), 0.3, budget = copy), class = "noiseaware_error_budget")
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
  # a release that fails spends nothing and leaves no lock
  expect_error(release(data.frame(g = NA), counts, mech_discrete_laplace(epsilon = 0.1), budget = account), class = "noiseaware_error_missing")
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
  # more than two: others wait while one gives the lock to another
  answers <- parallel::mclapply(1:3, function(i) c(published(account, 0.3), published(account, 0.3)), mc.cores = 3)
  expect_identical(sum(unlist(answers)), 3L)
  expect_equal(sum(summary(account)$epsilon), 0.9)
})

# How often two processes could publish, `times` times each at most and until they are refused: a number for each pair of names of one
# account. Both begin a race at the same moment. They are forked once, as a fork takes longer than a race.
raced <- function(pairs, times, epsilon = 0.01, open = function(file) budget(file = file)) {
  ready <- withr::local_tempfile(pattern = paste0("ready", seq_len(2L * length(pairs))))
  spent <- parallel::mclapply(1:2, function(i) vapply(seq_along(pairs), function(k) {
    file.create(ready[2L * k - 2L + i])
    while (!file.exists(ready[2L * k + 1L - i])) Sys.sleep(0.0005)
    account <- open(pairs[[k]][i])
    count <- 0
    while (count < times[k] && published(account, epsilon)) count <- count + 1
    count
  }, 0), mc.cores = 2)
  rowSums(do.call(cbind, spent))
}

test_that("one account by all its names: links, and links of its directory", {
  skip_on_os("windows")
  skip_on_cran()
  place <- withr::local_tempdir()
  other <- withr::local_tempdir()
  file.symlink(place, file.path(other, "folder"))
  # an account for each kind of name, as two processes that race have one by its file and one by that name
  limit <- c(symbolic = 0.5, twice = 0.15, hard = 0.15, folder = 0.15)
  paths <- file.path(place, names(limit))
  accounts <- Map(function(path, epsilon) budget(epsilon = epsilon, file = path), paths, limit)
  names <- file.path(other, c("symbolic", "twice", "hard", "folder/folder"))
  file.symlink(paths[1], names[1])
  file.symlink(paths[2], file.path(other, "once"))
  file.symlink(file.path(other, "once"), names[2])
  file.link(paths[3], names[3])
  for (k in 1:4) {
    lock <- internal("lock_file")(names[k])
    expect_error(internal("lock_file")(paths[k], patience = 0), "in use", class = "noiseaware_error_budget")
    internal("unlock_file")(lock)
  }
  # 100 releases by two processes through the link, and 30 through each other name: never overspent, and nothing lost
  expect_equal(raced(Map(c, paths, names), 100 * limit), 100 * unname(limit))
  for (k in 1:4) {
    expect_equal(nrow(summary(accounts[[k]])), 100 * limit[[k]])
    expect_error(publish(budget(file = names[k]), 0.01), "not large enough", class = "noiseaware_error_budget")
  }
  # a link to nothing
  unlink(paths[1])
  expect_error(budget(epsilon = 1, file = names[1]), class = "noiseaware_error_file")
  expect_false(file.exists(paths[1]))
})

test_that("two processes that create one account have one", {
  skip_on_os("windows")
  skip_on_cran()
  paths <- withr::local_tempfile(pattern = paste0("created", 1:20))
  created <- raced(Map(c, paths, paths), rep(1, 20), 0.6, function(file) budget(epsilon = 1, file = file))
  expect_identical(created, rep(1, 20))
  for (path in paths) expect_length(readLines(path), 2)
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
})

# takes the lock in another process, which then does `what`
taken_elsewhere <- function(path, what) {
  other <- parallel::mcparallel({
    lock <- internal("lock_file")(path)
    what(lock)
  })
  suppressWarnings(parallel::mccollect(other))
}

test_that("the lock of a killed process is gone with it, and leaves nothing", {
  skip_on_os("windows")
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  for (signal in c(tools::SIGKILL, tools::SIGTERM)) {
    taken_elsewhere(path, function(lock) tools::pskill(Sys.getpid(), signal))
    # a dying process closes the pipe of mccollect() before the file
    internal("unlock_file")(internal("lock_file")(path, patience = 1))
  }
  publish(account, 0.1)
  expect_identical(list.files(dirname(path), paste0("^", basename(path))), basename(path))
})

test_that("a lock that nobody has any more is given back, and by its own process alone", {
  skip_on_os("windows")
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  lock <- internal("lock_file")(path)
  # a fork cannot give it back, nor does its end
  suppressWarnings(parallel::mccollect(parallel::mcparallel(internal("unlock_file")(lock))))
  expect_error(internal("lock_file")(path, patience = 0), "in use", class = "noiseaware_error_budget")
  # as after an interrupt
  rm(lock)
  gc()
  publish(account, 0.1)
  # a fork that goes on does not keep what its parent gives back
  lock <- internal("lock_file")(path)
  fork <- parallel::mcparallel(Sys.sleep(20))
  internal("unlock_file")(lock)
  internal("unlock_file")(lock) # twice does nothing
  publish(account, 0.1)
  tools::pskill(fork$pid, tools::SIGKILL)
  suppressWarnings(parallel::mccollect(fork))
})

test_that("an account that another replaced while its lock was waited for is the new one", {
  skip_on_os("windows")
  skip_on_cran()
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  lock <- internal("lock_file")(path)
  waiting <- parallel::mcparallel(publish(account, 0.3)$noise)
  Sys.sleep(0.2)
  backup <- withr::local_tempfile()
  file.copy(path, backup)
  file.rename(backup, path)
  internal("unlock_file")(lock)
  expect_identical(parallel::mccollect(waiting)[[1]], "entropy")
  expect_identical(nrow(summary(account)), 1L)
})

test_that("a file that is locked, damaged or another's is refused", {
  skip_on_cran() # takes long; `make test` runs it
  path <- withr::local_tempfile()
  account <- budget(epsilon = 1, file = path)
  publish(account, 0.1)
  lock <- internal("lock_file")(path)
  expect_error(internal("lock_file")(path, patience = 0), "in use", class = "noiseaware_error_budget")
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
  header <- function(...) c(sprintf('{"format":"noiseaware budget","version":2,"limit":%s}', c(...)), whole[-1])
  for (limit in c("null", "3", "\"text\"", "[]", "{}", '{"epsilon":1}', '{"epsilon":null,"neighbours":"replace"}', '{"epsilon":"1","neighbours":"replace"}',
                  '{"epsilon":-1,"neighbours":"replace"}', '{"epsilon":1e999,"neighbours":"replace"}', '{"epsilon":[1,2],"neighbours":"replace"}',
                  '{"epsilon":1,"neighbours":"both"}', '{"epsilon":1,"neighbours":null}', '{"epsilon":1,"rho":1,"neighbours":"replace"}',
                  '{"epsilon":1,"delta":1e-6,"neighbours":"replace"}', '{"epsilon":1,"delta":1e-6,"composition":"none","neighbours":"replace"}',
                  '{"epsilon":1,"delta":2,"composition":"basic","neighbours":"replace"}', '{"epsilon":1,"delta":null,"composition":"basic","neighbours":"replace"}',
                  '{"epsilon":1,"composition":"basic","neighbours":"replace"}', '{"epsilon":1,"neighbours":"replace","epsilon":2}')) {
    writeLines(header(limit), path)
    expect_error(budget(file = path), "no limit", class = "noiseaware_error_budget")
    expect_error(publish(account, 0.1), "no limit", class = "noiseaware_error_budget")
  }
  writeLines(sub('"what":"[^"]*"', '"what":["a","b"]', whole), path)
  expect_error(publish(account, 0.1), "Line 2", class = "noiseaware_error_budget")
  # an expense of nothing
  writeLines(sub('"epsilon":0.1', '"epsilon":null', whole, fixed = TRUE), path)
  expect_error(publish(account, 0.1), "Line 2 is not an expense", class = "noiseaware_error_budget")
  for (short in c("", paste(whole, collapse = "\n"))) {
    cat(short, file = path)
    expect_error(publish(account, 0.1), class = "noiseaware_error_budget")
    expect_error(budget(epsilon = 1, file = path), class = "noiseaware_error_budget")
  }
  unlink(path)
  expect_error(publish(account, 0.1), class = "noiseaware_error_file")
})
