# Do default calls converge where a sum alone is published of a variable that bounds clamp, or sums of several, without their
# squares? `sample_posterior(release, model, seed = )` and nothing else, on data that nobody prepared; with the number of records
# published beside the sum with noise, too.
#
#   Rscript bench/sums.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

sum_cases <- function() {
  load <- function(name) get(utils::data(list = name, package = "AER", envir = environment()), envir = environment())
  visits <- load("DoctorVisits")
  air <- stats::na.omit(datasets::airquality)
  list(`Affairs: affairs` = list(load("Affairs"), list(affairs = c(0, 12))), `DoctorVisits: visits` = list(visits, list(visits = c(0, 9))),
       `quine: Days` = list(MASS::quine, list(Days = c(0, 81))), `quakes: stations` = list(datasets::quakes, list(stations = c(10, 132))),
       `warpbreaks: breaks` = list(datasets::warpbreaks, list(breaks = c(10, 70))), `birthwt: ftv` = list(MASS::birthwt, list(ftv = c(0, 6))),
       `airquality: Ozone, Temp` = list(air, list(Ozone = c(0, 150), Temp = c(50, 100))),
       `airquality: Ozone, Solar.R, Wind` = list(air, list(Ozone = c(0, 150), Solar.R = c(0, 350), Wind = c(0, 25))),
       `CPS1985: wage, experience` = list(load("CPS1985"), list(wage = c(0, 30), experience = c(0, 50))),
       `birthwt: bwt, lwt, age` = list(MASS::birthwt, list(bwt = c(500, 5000), lwt = c(80, 250), age = c(14, 45))))
}

sum_row <- function(case, epsilon, unknown, seeds) {
  bounds <- case[[2L]]
  set.seed(3)
  statistic <- stat_sums(stats::reformulate(names(bounds)), bounds, rescale = FALSE)
  published <- simulate_release(case[[1L]][names(bounds)], statistic, mech_laplace(epsilon = epsilon))
  if (unknown) {
    n <- nrow(case[[1L]])
    published <- as_release(list(sum = published$value, size = n + 8), list(sum = statistic, size = stat_size()),
                            list(sum = mech_laplace(epsilon = epsilon), size = mech_gaussian(sd = 10)), n = NULL, neighbours = "add_remove")
  }
  model <- if (length(bounds) == 1L) model_normal() else model_mvnormal()
  runs <- do.call(rbind, lapply(seq_len(seeds), function(seed) {
    time <- seconds(fit <- suppressMessages(suppressWarnings(sample_posterior(published, model, seed = seed))))
    told <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk", "ess_tail")
    c(max(told$rhat), min(told$ess_bulk, told$ess_tail), time)
  }))
  data.frame(epsilon = epsilon, n = if (unknown) "with noise, sd 10" else "known", `R-hat` = max(runs[, 1L]), ESS = stats::median(runs[, 2L]),
             seconds = stats::median(runs[, 3L]), check.names = FALSE)
}

bench_sums <- function(quick = FALSE) {
  cases <- sum_cases()
  rows <- do.call(rbind, lapply(names(cases), function(name) do.call(rbind, lapply(c(0.5, 2, 10), function(epsilon) {
    do.call(rbind, lapply(c(FALSE, TRUE), function(unknown) {
      say("%s, epsilon %g", name, epsilon)
      cbind(data = name, sum_row(cases[[name]], epsilon, unknown, if (quick) 1 else 4))
    }))
  }))))
  bench_result(
    list(figure("default calls whose R-hat is at most 1.01 at all seeds, of", nrow(rows), sum(rows$`R-hat` <= 1.01)),
         figure("effective draws a second, the median case", "", stats::median(rows$ESS / rows$seconds))),
    list("Default calls, four chains of 2,000 iterations" = rows),
    "R-hat: the largest of four seeds; effective draws (the smaller of bulk and tail, of the slowest parameter) and processor seconds: medians.")
}

run_alone(bench_sums)
