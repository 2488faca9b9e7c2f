# Bernstein & Sheldon (2019), Figures 3e and 3f: (e) squared MMD to the non-private
# posterior; (f) processor seconds.
source("helpers.R")
source("bernstein_sheldon_2019_problems.R")
started <- proc.time()

# one trial of every method, on the same records
draws <- function(fit) {
  m <- posterior::as_draws_matrix(fit)
  matrix(m[round(seq(1, nrow(m), length.out = 1000)), variables], 1000, dimnames = list(NULL, variables))
}
compare_once <- function(k) {
  trial <- trials[k, ]
  set.seed(k)
  release <- simulate_release(model, cross, whole(trial$epsilon), trial$n)
  data <- attr(release, "truth")$data
  both <- simulate_release(data, with_moments, half(trial$epsilon))
  reference <- draws(samplers[["non-private"]](release, model, data))
  bind(lapply(setdiff(names(samplers), "non-private"), function(name) {
    time <- system.time(fit <- tryCatch(samplers[[name]](if (name %in% of_moments) both else release, model), noiseaware_error = function(e) NULL))
    distance <- if (is.null(fit)) NA else mmd(draws(fit), reference)
    cbind(trial, method = name, mmd = distance, seconds = sum(time[c("user.self", "sys.self")]), row.names = NULL)
  }))
}
trials <- merge(data.frame(trial = seq_len(replicates(100, 10))), designs)
once <- bind(each(seq_len(nrow(trials)), compare_once))
average <- stats::aggregate(cbind(mmd, seconds, failed = is.na(mmd)) ~ method + n + epsilon, once, mean, na.rm = TRUE, na.action = stats::na.pass)
average$trials <- max(trials$trial)
save_table(average, "bernstein_sheldon_2019_figure3ef")

average$method <- factor(average$method, rev(names(samplers)))
average$design <- sprintf("n %g, epsilon %g", average$n, average$epsilon)
average$design <- factor(average$design, unique(average$design[order(average$n, average$epsilon)]))
trial_text <- sprintf("mean of %d trials", max(trials$trial))
save_plot(ggplot(average, aes(mmd, method)) + geom_point(size = 1.8) + facet_wrap(vars(design), nrow = 2) +
            labs(x = "squared MMD to the non-private posterior", y = NULL, subtitle = trial_text),
          "bernstein_sheldon_2019_figure3e", 9, 5.2)
save_plot(ggplot(average[average$epsilon == 0.1, ], aes(seconds, method, shape = factor(n))) + geom_point(size = 1.8) + scale_x_log10() +
            scale_shape_manual(values = c(16, 1, 4)) + labs(x = "processor seconds of a fit (log scale)", y = NULL, shape = "number of records n",
                                                            subtitle = paste0("epsilon = 0.1, ", trial_text)),
          "bernstein_sheldon_2019_figure3f", 7, 3.4)
finished(started)
