# mmd() of 20,000 x 20,000 draws, beside one pass over the same pairs that only
# computes their squared distances (bench/distances.c, compiled for the same
# instructions as the package's kernels where the processor has them).
#
#   Rscript bench/mmd.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

compile_distances <- function() {
  directory <- tempfile("distances")
  dir.create(directory)
  file.copy("bench/distances.c", directory)
  cpu <- if (file.exists("/proc/cpuinfo")) readLines("/proc/cpuinfo", warn = FALSE) else ""
  flags <- if (any(grepl("avx2", cpu))) "PKG_CFLAGS=-mavx2" else character()
  old <- setwd(directory)
  on.exit(setwd(old))
  log <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "distances.c"), env = flags, stdout = TRUE, stderr = TRUE)
  if (!file.exists("distances.so")) stop(paste(log, collapse = "\n"))
  dyn.load(file.path(directory, "distances.so"))
}

bench_mmd <- function(quick = FALSE) {
  compile_distances()
  draws <- if (quick) 5120 else 20480 # whole blocks of 256
  times <- if (quick) 2L else 5L
  rows <- lapply(c(1, 3, 10), function(columns) {
    set.seed(1)
    x <- matrix(stats::rnorm(draws * columns), draws)
    y <- matrix(stats::rnorm(draws * columns), draws)
    both <- replicate(times, c(seconds(mmd(x, y)), seconds(.Call("distances", x, y))))
    data.frame(columns = columns, draws = draws, mmd = stats::median(both[1L, ]), distances = stats::median(both[2L, ]))
  })
  table <- do.call(rbind, rows)
  table$ratio <- table$mmd / table$distances
  table$pair <- 1e9 * table$mmd / (2 * draws^2)
  bench_result(Map(function(columns, ratio) figure("mmd() over one pass over the distances", paste(columns, "columns"), ratio, 5, at_most = TRUE),
                   table$columns, table$ratio),
               list("Seconds" = stats::setNames(table, c("columns", "draws a side", "mmd(), s", "distances alone, s", "ratio", "ns a pair of mmd()"))),
               "Medians, interleaved.")
}

run_alone(bench_mmd)
