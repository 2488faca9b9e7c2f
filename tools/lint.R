# lintr on the R code, clang-format on the C code, and a spelling check of help
# pages, vignettes and the texts beside them; fails on any finding. Words that are
# right go into inst/WORDLIST.
lints <- lintr::lint_dir("R")
print(lints)
files <- list.files("src", "[.][ch]$", full.names = TRUE)
files <- files[!grepl("tables", files)]
formatted <- system2("clang-format", c("--dry-run", "--Werror", files))
misspelt <- spelling::spell_check_package(".")
texts <- c("README.md", "CONTRIBUTING.md", "SECURITY.md", "tools/README.md")
misspelt <- rbind(misspelt, spelling::spell_check_files(texts, ignore = readLines("inst/WORDLIST"), lang = "en_GB"))
if (nrow(misspelt) > 0) print(misspelt)
if (length(lints) > 0 || formatted != 0 || nrow(misspelt) > 0) quit(status = 1)
