# All items, as `make replicate` runs them:
#   Rscript run.R [--quick] [--most=N] [--cores=N] [--results=FOLDER] [--pictures=FOLDER] [--cirrhosis=FILE] [stem ...]
# Figure 4 of Bernstein & Sheldon (2019) needs the file of its data (Spaeth's set
# x20), a csv with the columns wine and cirrhosis, and is left out without it.
arguments <- commandArgs(TRUE)
options <- grep("^--", arguments, value = TRUE)
cirrhosis <- sub("^--cirrhosis=", "", grep("^--cirrhosis=.", options, value = TRUE))
stems <- setdiff(arguments, options)
if (length(stems) == 0L) {
  stems <- c("ju_2022_table1", "ju_2022_tableS1", "ju_2022_figure1", "ju_2022_figure2", "ju_2022_runtimes",
             "bernstein_sheldon_2018_figure1", "bernstein_sheldon_2018_figure1c", "bernstein_sheldon_2018_figure2",
             "bernstein_sheldon_2018_total",
             "bernstein_sheldon_2019_figure3", "bernstein_sheldon_2019_figure3ef",
             if (length(cirrhosis)) "bernstein_sheldon_2019_figure4")
}
folder <- function(name, default) c(sub("^--[a-z]*=", "", grep(paste0("^--", name, "="), options, value = TRUE)), default)[1]
results <- folder("results", "results")
pictures <- folder("pictures", results)
rscript <- file.path(R.home("bin"), "Rscript")
for (stem in stems) {
  message(stem)
  own <- if (stem == "bernstein_sheldon_2019_figure4") c(cirrhosis[1], file.path(results, paste0(stem, ".csv")), file.path(pictures, paste0(stem, ".png"))) else
    grep("^--cirrhosis=", options, value = TRUE, invert = TRUE)
  if (system2(rscript, shQuote(c(paste0(stem, ".R"), own))) != 0L) stop(stem, " failed.", call. = FALSE)
}
