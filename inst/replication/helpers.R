# Shared by the scripts of this folder. Each runs as
#   Rscript stem.R [--quick] [--most=N] [--cores=N] [--results=FOLDER] [--pictures=FOLDER]
# and writes stem*.csv.gz and stem*.png, pictures with the results if no folder is named. "--quick" takes fewer
# replicates: the number stands in the results.
suppressPackageStartupMessages({
  library(noiseaware)
  library(ggplot2)
})

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[1]) else default
}
quick <- "--quick" %in% commandArgs(TRUE)
cores <- as.integer(option("cores", "2"))
folder <- option("results", "results")
pictures <- option("pictures", folder)
most <- as.numeric(option("most", "Inf"))
# a number of replicates in the full and in the quick version, "--most=N" at most
replicates <- function(full, few) min(if (quick) few else full, most)

# lapply over the cores; an error in a run is an error here
each <- function(x, f, ...) {
  out <- parallel::mclapply(x, f, ..., mc.cores = if (.Platform$OS.type == "windows") 1L else cores, mc.preschedule = FALSE)
  failed <- vapply(out, inherits, TRUE, "try-error")
  if (any(failed)) stop(out[[which(failed)[1]]], call. = FALSE)
  out
}
bind <- function(rows) do.call(rbind, rows)

# calibrate() over the cores: processes that stay, where forks would be made anew for every second of work
workers <- if (cores > 1L) parallelly::makeClusterPSOCK(cores)
if (cores > 1L) future::plan("cluster", workers = workers)

# a draw that does not depend on what was drawn before
with_seed_of <- function(seed, draw) {
  set.seed(seed)
  draw
}

# Coverage of the central intervals, with a row for each variable
covered <- function(calibration, level, variables) {
  table <- coverage(calibration, level, variables)
  data.frame(variable = table$variable, level = level, coverage = table$coverage, lower = table$lower, upper = table$upper,
             replicates = table$replicates, least_ess = least_ess(calibration, table$variable))
}

# the tenth percentile over replicates of the effective draws, by variable
least_ess <- function(calibration, variables) {
  r <- calibration$results
  vapply(variables, function(v) round(unname(stats::quantile(r$ess[r$variable == v], 0.1, na.rm = TRUE))), 0, USE.NAMES = FALSE)
}

save_table <- function(table, name) {
  dir.create(folder, FALSE, TRUE)
  number <- vapply(table, is.numeric, TRUE)
  table[number] <- lapply(table[number], signif, 4)
  file <- gzfile(file.path(folder, paste0(name, ".csv.gz")), "w")
  on.exit(close(file))
  utils::write.csv(table, file, row.names = FALSE, quote = FALSE)
}

save_plot <- function(plot, name, width = 7, height = 4) {
  dir.create(pictures, FALSE, TRUE)
  plot <- plot + theme_minimal(base_size = 10) +
    theme(panel.grid.minor = element_blank(), panel.spacing = unit(1, "lines"), legend.position = "bottom", strip.text = element_text(face = "bold"))
  grDevices::png(file.path(pictures, paste0(name, ".png")), width = width, height = height, units = "in", res = 80,
                 type = if (capabilities("cairo")) "cairo" else getOption("bitmapType"))
  print(plot)
  invisible(grDevices::dev.off())
}

# black, greys and shapes for up to six series: readable in print
series <- function(count) {
  list(scale_colour_manual(values = c("black", "grey55", "grey30", "grey70", "grey45", "grey20")[seq_len(count)]),
       scale_shape_manual(values = c(16, 17, 15, 4, 1, 2)[seq_len(count)]),
       scale_linetype_manual(values = c("solid", "dashed", "dotted", "longdash", "dotdash", "twodash")[seq_len(count)]))
}

# what a script took, into seconds.csv; at_most: the replicates it was held to
finished <- function(started) {
  spent <- proc.time() - started
  script <- sub("[.]R$", "", basename(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))))
  theirs <- if (cores > 1L) sum(unlist(parallel::clusterCall(workers, function() sum(proc.time()[1:2])))) else 0
  row <- data.frame(script = script, elapsed = round(spent[["elapsed"]]), processor = round(sum(spent[-3L]) + theirs), cores = cores, at_most = most)
  message(sprintf("%.0f s elapsed, %.0f s of processors%s", row$elapsed, row$processor, if (quick) " (quick)" else ""))
  path <- file.path(folder, "seconds.csv")
  old <- if (file.exists(path)) utils::read.csv(path)
  table <- rbind(old[old$script != script, ], row)
  utils::write.csv(table[order(table$script), ], path, row.names = FALSE, quote = FALSE)
}

# What the papers show and the package does not export: the distance of ranks from uniform
ks_uniform <- noiseaware:::ks_uniform

# The unbiased estimate of the squared maximum mean discrepancy of two sets of draws, as many of each, a row a draw: Gretton et al. (2012, Lemma 6) with the
# kernel exp(-|p - q|^2 / 2).
mmd <- function(x, y) {
  kernel <- function(a, b) exp(-pmax(outer(rowSums(a^2), rowSums(b^2), "+") - 2 * tcrossprod(a, b), 0) / 2)
  off_diagonal <- function(k) (sum(k) - sum(diag(k))) / (nrow(k) * (nrow(k) - 1))
  off_diagonal(kernel(x, x)) + off_diagonal(kernel(y, y)) - 2 * off_diagonal(kernel(x, y))
}
