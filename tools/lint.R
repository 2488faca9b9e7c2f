# lintr on the R code, clang-format on the C code; fails on any finding.
lints <- lintr::lint_dir("R")
print(lints)
files <- list.files("src", "[.][ch]$", full.names = TRUE)
files <- files[!grepl("tables", files)]
formatted <- system2("clang-format", c("--dry-run", "--Werror", files))
if (length(lints) > 0 || formatted != 0) quit(status = 1)
