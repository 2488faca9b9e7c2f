# The web site, from help pages, vignettes, README and NEWS, into site/; also without
# a network. Usage: Rscript tools/site.R

# pkgdown asks CRAN about each package that a page names and that is not
# installed; an empty package of that name, in a library of its own, is an answer
folder <- tempfile("named")
dir.create(folder)
for (name in c("dapper", "future.batchtools")) {
  if (requireNamespace(name, quietly = TRUE)) next
  source <- file.path(tempfile("source"), name)
  dir.create(source, recursive = TRUE)
  writeLines(c(paste("Package:", name), "Version: 0.0.1"), file.path(source, "DESCRIPTION"))
  file.create(file.path(source, "NAMESPACE"))
  utils::install.packages(source, lib = folder, repos = NULL, type = "source", quiet = TRUE)
}
.libPaths(c(.libPaths(), folder))
options(pkgdown.internet = FALSE)
pkgdown::build_site(preview = FALSE, install = FALSE, new_process = FALSE)
