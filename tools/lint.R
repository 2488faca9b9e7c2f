# lintr on the R code, clang-format on the C code, a spelling check of help
# pages, vignettes and the texts next to them, whether texts have more bad English than tools/english.tsv stores, whether the file map of vignettes/algorithms.Rmd has every file of R and src, and
# whether tools/fuzz.R has a valid call of every export; fails on any finding. Words that are right go into inst/WORDLIST.
lints <- lintr::lint_dir("R")
print(lints)
files <- list.files("src", "[.][ch]$", recursive = TRUE, full.names = TRUE)
files <- files[!grepl("tables", files)]
formatted <- system2("clang-format", c("--dry-run", "--Werror", files))
misspelt <- spelling::spell_check_package(".")
texts <- c("README.md", "CONTRIBUTING.md", "SECURITY.md", "paper.md", "tools/README.md")
misspelt <- rbind(misspelt, spelling::spell_check_files(texts, ignore = readLines("inst/WORDLIST"), lang = "en_GB"))
if (nrow(misspelt) > 0) print(misspelt)
# the files that a text names, `*` standing for any letters; a C file includes its header
page <- readLines("vignettes/algorithms.Rmd")
quoted <- function(lines) unique(gsub("`", "", unlist(regmatches(lines, gregexpr("`(R|src)/[^` ]+`", lines)))))
gone <- Filter(function(name) length(Sys.glob(name)) == 0, quoted(page))
mapped <- Sys.glob(quoted(page[seq(which(page == "## File map"), length(page))]))
unmapped <- setdiff(list.files(c("R", "src"), "[.](R|c|h)$", recursive = TRUE, full.names = TRUE), c(mapped, sub("c$", "h", mapped), "R/noiseaware-package.R"))
calls <- Filter(function(e) is.call(e) && identical(e[[2]], quote(valid)), as.list(parse("tools/fuzz.R")))[[1]][[3]]
uncalled <- setdiff(parseNamespaceFile(basename(getwd()), dirname(getwd()))$exports, names(calls))
english <- system2(file.path(R.home("bin"), "Rscript"), "tools/english.R")
if (length(gone)) cat("vignettes/algorithms.Rmd names files that are not there:", gone, "\n")
if (length(unmapped)) cat("not in the file map of vignettes/algorithms.Rmd:", unmapped, "\n")
if (length(uncalled)) cat("tools/fuzz.R has no valid call of", uncalled, "\n")
if (length(uncalled) > 0 || length(gone) > 0 || length(unmapped) > 0 || length(lints) > 0 || formatted != 0 || english != 0 || nrow(misspelt) > 0) quit(status = 1)
