# Plug-ins and methods do not know R: they link into a program without it.

test_that("a chain runs in a program that links neither R nor Rmath", {
  skip_on_cran()
  source_folder <- test_path("..", "..", "src")
  program <- test_path("..", "..", "tools", "standalone.c")
  skip_if_not(file.exists(file.path(source_folder, "contract/plugin.c")) && file.exists(program), "the sources")
  config <- function(name) strsplit(trimws(system2(file.path(R.home("bin"), "R"), c("CMD", "config", name), stdout = TRUE)), " +")[[1L]]
  compiler <- config("CC")
  skip_if(Sys.which(compiler[1L]) == "", "a compiler")
  folder <- withr::local_tempdir()
  include <- paste0("-I", normalizePath(c(source_folder, test_path("..", "..", "inst", "include"), R.home("include"))))
  # a folder's objects into a folder of its own: two files may have one name
  compile <- function(files, into) {
    dir.create(into, showWarnings = FALSE)
    withr::with_dir(into, system2(compiler[1L], c(compiler[-1L], "-c", "-w", include, files), stdout = TRUE, stderr = TRUE))
  }
  folders <- setdiff(list.dirs(source_folder, recursive = FALSE), file.path(source_folder, "r"))
  sources <- lapply(stats::setNames(folders, basename(folders)), function(f) normalizePath(list.files(f, "[.]c$", full.names = TRUE)))
  program <- normalizePath(program)
  out <- file.path(folder, "standalone")
  # of an archive the linker takes only what is asked for
  log <- withr::with_dir(folder, suppressWarnings(c(
    unlist(Map(compile, sources, names(sources))), compile(program, "."),
    system2("ar", c("qcs", "all.a", list.files(names(sources), "[.]o$", full.names = TRUE)), stdout = TRUE, stderr = TRUE),
    system2(compiler[1L], c(compiler[-1L], "standalone.o", "all.a", "-o", "standalone", config("LAPACK_LIBS"), config("BLAS_LIBS"), config("FLIBS"), "-lm"),
            stdout = TRUE, stderr = TRUE))))
  expect_true(file.exists(out), info = paste(log, collapse = "\n"))
  mean_rate <- as.numeric(system2(out, stdout = TRUE))
  # noise so wide that the posterior is the prior, gamma(3, 2); successive draws are close to independent
  expect_lt(abs(mean_rate - 3 / 2), 5 * (sqrt(3) / 2) / sqrt(20000 / 4))
})
