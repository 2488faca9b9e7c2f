# Plug-ins and methods do not know R: they link into a program without it.

test_that("a chain runs in a program that links neither R nor Rmath", {
  source_folder <- test_path("..", "..", "src")
  program <- test_path("..", "..", "tools", "standalone.c")
  skip_if_not(file.exists(file.path(source_folder, "plugin.c")) && file.exists(program), "the sources")
  config <- function(name) strsplit(trimws(system2(file.path(R.home("bin"), "R"), c("CMD", "config", name), stdout = TRUE)), " +")[[1L]]
  compiler <- config("CC")
  skip_if(Sys.which(compiler[1L]) == "", "a compiler")
  files <- list.files(source_folder, "^(model|stat|method_augment|adapt|augment|block|coordinates|levels|rng|dist|linalg|plugin|run|slice|update_theta|surrogate|clamped|totals|hmc|mech_laplace|mech_objective).*[.]c$",
                      full.names = TRUE)
  # need Rmath, the regressions by their covariates
  files <- files[!grepl("dist_discrete|totals_normal|model_(lm|logistic|mvnormal)", files)]
  folder <- withr::local_tempdir()
  out <- file.path(folder, "standalone")
  include <- paste0("-I", c(source_folder, test_path("..", "..", "inst", "include"), R.home("include")))
  log <- suppressWarnings(system2(compiler[1L], c(compiler[-1L], "-O1", include, program, files, "-o", out,
                                                  config("LAPACK_LIBS"), config("BLAS_LIBS"), config("FLIBS"), "-lm"), stdout = TRUE, stderr = TRUE))
  expect_true(file.exists(out), info = paste(log, collapse = "\n"))
  mean_rate <- as.numeric(system2(out, stdout = TRUE))
  # noise so wide that the posterior is the prior, gamma(3, 2); successive draws are close to independent
  expect_lt(abs(mean_rate - 3 / 2), 5 * (sqrt(3) / 2) / sqrt(20000 / 4))
})
