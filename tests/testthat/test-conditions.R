# Every class of error, warning and message is on the page of conditions, and nothing else is.

# the help page, of the installed package or of the sources
page_of <- function(name) {
  source <- test_path("..", "..", "man", paste0(name, ".Rd"))
  if (file.exists(source)) return(paste(readLines(source), collapse = "\n"))
  page <- tools::Rd_db("noiseaware")[[paste0(name, ".Rd")]]
  if (is.null(page)) skip("no help is installed")
  paste(as.character(page), collapse = "")
}

# calls anywhere in the package's functions
all_calls <- function() {
  found <- list()
  visit <- function(e) {
    if (is.call(e)) found[[length(found) + 1L]] <<- e
    parts <- as.list(e)
    for (part in parts[vapply(parts, typeof, "") %in% c("language", "pairlist", "expression")]) visit(part)
  }
  namespace <- asNamespace("noiseaware")
  for (name in ls(namespace, all.names = TRUE)) {
    value <- get(name, envir = namespace)
    if (is.function(value) && !is.primitive(value)) {
      visit(body(value))
      for (default in as.list(formals(value))) if (!missing(default) && is.call(default)) visit(default)
    }
  }
  found
}

used_classes <- function() {
  calls <- all_calls()
  text_of <- function(x) if (is.character(x)) x
  strings <- unlist(lapply(calls, function(e) Filter(is.character, as.list(e)[-1L])))
  full <- grep("^noiseaware_(error|warning|message)_[a-z_]+[a-z]$", strings, value = TRUE)
  head <- function(e, name) identical(e[[1L]], as.name(name))
  names <- vapply(calls, function(e) if (is.name(e[[1L]])) as.character(e[[1L]]) else "", "")
  calls <- calls[names %in% c("stop_classed", "stop_argument", "list", "trouble")]
  errors <- unlist(lapply(calls, function(e) {
    if (head(e, "stop_classed")) return(text_of(e[[2L]]))
    if (head(e, "stop_argument") && length(e) >= 5L && !"call" %in% names(e)[5L]) return(text_of(e[[5L]]))
  }))
  troubles <- unlist(lapply(calls, function(e) {
    if (head(e, "list") && identical(names(e)[2:3], c("kind", "text"))) return(text_of(e[[2L]]))
    if (head(e, "trouble")) return(text_of(e[[2L]]))
  }))
  unique(c(full, paste0("noiseaware_error_", errors), paste0("noiseaware_warning_", troubles)))
}

test_that("the page of conditions has every class, and no other", {
  skip_on_cran()
  page <- page_of("noiseaware_conditions")
  section <- function(name, following) {
    text <- sub(paste0(".*section\\{", name, "\\}"), "", page)
    if (!is.null(following)) text <- sub(paste0("section\\{", following, "\\}.*"), "", text)
    rows <- strsplit(text, "\\cr", fixed = TRUE)[[1L]]
    firsts <- sub("\\\\tab.*", "", rows)
    setdiff(gsub("\\\\code\\{|\\}", "", unlist(regmatches(firsts, gregexpr("\\\\code\\{[a-z_]+\\}", firsts)))), paste0("noiseaware_", c("error_", "warning_", "message_")))
  }
  listed <- c(paste0("noiseaware_error_", section("Errors", "Warnings")), paste0("noiseaware_warning_", section("Warnings", "Messages")),
              paste0("noiseaware_message_", section("Messages", "examples")))
  used <- used_classes()
  expect_gt(length(used), 50L)
  expect_identical(setdiff(used, listed), character())
  expect_identical(setdiff(listed, used), character())
})

test_that("a search of the help finds pages by the words of other fields", {
  pages <- c("life table" = "model_survival", "hazard ratio" = "model_survival", "Cox regression" = "model_survival", suppression = "published",
             "suppressed counts" = "published", "small cells" = "published", "partial pooling" = "pooling", "mixed model" = "pooling",
             "random intercept" = "groups", census = "read_release", "confidence interval" = "confidence_set", "life table" = "stat_survival")
  for (k in seq_along(pages)) expect_match(page_of(pages[[k]]), sprintf("\\concept{%s}", names(pages)[k]), fixed = TRUE)
})
