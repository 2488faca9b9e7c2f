# Ju et al. (2022), Table S1 (printed as "Table 1" in S-5): coverage of 90%
# intervals of the regression coefficients, true parameters fixed.
source("helpers.R")
source("ju_2022_problems.R")
started <- proc.time()

count <- replicates(500, 50)
methods <- list(plain = list(method = "augment", iter = 10000, control = plain),
                augment = list(method = "augment", iter = 1000),
                collapse = list(method = "collapse", iter = 1000))
cells <- rbind(expand.grid(epsilon = epsilons, method = names(methods), noise = "paper", stringsAsFactors = FALSE),
               expand.grid(epsilon = epsilons, method = "augment", noise = "tight", stringsAsFactors = FALSE))
rows <- lapply(seq_len(nrow(cells)), function(k) {
  mechanism <- regression$noise[[cells$noise[k]]](cells$epsilon[k])
  cal <- do.call(calibrate, c(list(regression$model, regression$statistic, mechanism, regression$n, count, chains = 1,
                                   parameters = regression$truth, seed = 1), methods[[cells$method[k]]]))
  cbind(cells[k, ], covered(cal, 0.9, regression$coefficients), truth = regression$truth, row.names = NULL)
})
save_table(bind(rows), "ju_2022_tableS1")
finished(started)
