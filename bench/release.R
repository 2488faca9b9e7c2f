# Exact noise for releases: values per second, from the operating system's entropy.
#
#   Rscript bench/release.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

bench_release <- function(quick = FALSE) {
  count <- if (quick) 1e4L else 1e6L
  per_second <- function(distribution, numerator, denominator) {
    draw <- utils::getFromNamespace("ffi_exact_noise", "noiseaware")
    count / seconds(.Call(draw, distribution, count, numerator, denominator, NULL))
  }
  cases <- list("Laplace, 2^23 units" = list("laplace", 2^23, 1), "Laplace, 2^44 units" = list("laplace", 2^44, 1), "discrete Laplace, b = 2" = list("laplace", 2^31, 2^30),
                "Gaussian, 2^23 units" = list("gaussian", 2^23, 1), "discrete Gaussian, sd = 1.5" = list("gaussian", 3 * 2^23, 2^24))
  bench_result(lapply(names(cases), function(name) {
    figure("noise values per second", name, do.call(per_second, cases[[name]]), 30000)
  }))
}

run_alone(bench_release)
