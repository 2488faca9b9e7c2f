# Counts what a native speaker would not write, in help, vignettes, README.md, NEWS.md, messages and comments (of R, src, tests and tools): openings such as
# "Of a table, what ...", worn words, and, except in comments, sentences of more than 35 words. It also counts each @return of more than three sentences: the
# rest belongs in a table or in @details. tools/english.tsv has a count for each file and pattern, which may only shrink: this fails on a file that has more.
# Usage: Rscript tools/english.R [--write | -v [pattern]]; --write stores what has shrunk, -v shows the places
patterns <- c(
  opening = "(^|[.:] )(Of|Under|With) [^.,;:]{1,70}, (what|which|it takes)\\b",
  takes_for = "\\b(take|takes|taken|taking|took) (\\S+ ){0,4}for (known|granted|true|what|a|an|the|unlikely|it)\\b",
  tells_of = "\\b(tell|tells|telling|told) of\\b",
  told = "\\btold\\b",
  stands_for = "\\bstands? for\\b",
  anew = "\\banew\\b",
  beside = "\\bbeside\\b",
  too = "\\btoo[.;:)]",
  serves = "\\bserv(e|es|ed)\\b",
  that_of = "\\b(that|those) of (the|a|an|its|their)\\b")
longest <- 35L

# ---- texts: a character vector of paragraphs for each file ------------------------------------

# paragraphs of lines; a table's row and a list's item are paragraphs
paragraphs <- function(lines) {
  lines <- trimws(lines)
  fresh <- lines == "" | grepl("^([*|-]|[0-9]+[.]) ", lines) | grepl("^@", lines) | c(FALSE, utils::head(lines == "" | grepl("^[|]", lines), -1L))
  text <- tapply(lines, cumsum(fresh), paste, collapse = " ")
  as.character(trimws(unname(text[nzchar(trimws(text))])))
}

without_code <- function(lines) {
  fence <- grepl("^\\s*```", lines)
  lines[cumsum(fence) %% 2L == 0L & !fence]
}

# Paragraphs of roxygen comments, without tags that have no sentences.
help_of <- function(file) {
  lines <- readLines(file, warn = FALSE)
  skipped <- c("examples", "references", "rdname", "export", "family", "name", "usage", "importFrom", "eval", "inheritParams", "exportS3Method", "noRd")
  skip <- FALSE
  text <- character(length(lines))
  for (i in seq_along(lines)) {
    if (!startsWith(lines[i], "#'")) {
      skip <- FALSE
      next
    }
    line <- sub("^#' ?", "", lines[i])
    if (startsWith(line, "@")) {
      skip <- sub("^@(\\w+).*", "\\1", line) %in% skipped
      line <- sub("^@\\w+( [A-Za-z.,_]+)?:? ?", "\n", line)
    }
    if (!skip) text[i] <- line
  }
  paragraphs(without_code(unlist(strsplit(paste(text, collapse = "\n"), "\n"))))
}

# texts of conditions and prints: strings of several words
messages_of <- function(file) {
  found <- utils::getParseData(parse(file, keep.source = TRUE))
  strings <- found$text[found$token == "STR_CONST"]
  strings <- gsub("^[\"']|[\"']$", "", strings)
  strings[lengths(strsplit(strings, " ")) >= 4L]
}

# A run of lines with comments is a paragraph. Calls, fields and code in backticks are left out: a hook may be named serves().
without_strings <- function(text) gsub("\"(\\\\.|[^\"\\\\])*\"|'(\\\\.|[^'\\\\])'", "s", text, perl = TRUE)
comments_of <- function(file) {
  lines <- readLines(file, warn = FALSE)
  if (grepl("[.][ch]$", file)) {
    text <- without_strings(paste(lines, collapse = "\n"))
    found <- regmatches(text, gregexpr("(?s)/[*].*?[*]/|(?-s)//.*(\n\\s*//.*)*", text, perl = TRUE))[[1L]]
    found <- gsub("\n\\s*([*]|//)?\\s*", " ", gsub("^/[*/]+\\s*|\\s*[*]/$", "", found, perl = TRUE), perl = TRUE)
  } else {
    own <- !startsWith(lines, "#!") & !grepl("^\\s*#'", lines)
    lines <- ifelse(own, sub("^(\"(\\\\.|[^\"\\\\])*\"|'(\\\\.|[^'\\\\])*'|[^#\"'])*", "", lines, perl = TRUE), "")
    found <- paragraphs(ifelse(startsWith(lines, "#"), sub("^#+ ?", "", lines), ""))
  }
  gsub("`[^`]*`|\\w+[(][)]|(->|[.$@])\\w+", "x", found, perl = TRUE)
}

# code and formulas are a word each
sentences <- function(text) {
  text <- gsub("\\[([^]]*)\\]\\([^)]*\\)", "\\1", text)
  text <- gsub("`[^`]*`|\\$\\$[^$]*\\$\\$|\\$[^$]*\\$", "x", text)
  as.character(unlist(strsplit(as.character(text), "(?<=[.!?])[)\"]?\\s+(?=[A-Z*`\\[(x\"])", perl = TRUE)))
}

# texts of roxygen's @return, without code
returns_of <- function(file) {
  lines <- if (endsWith(file, ".R")) readLines(file, warn = FALSE) else character()
  blocks <- split(lines, cumsum(grepl("^#' @\\w", lines) | !startsWith(lines, "#'")))
  blocks <- Filter(function(block) grepl("^#' @return", block[1L]), blocks)
  as.character(vapply(blocks, function(block) gsub("`[^`]*`", "x", paste(sub("^#' *", "", block), collapse = " ")), ""))
}

longest_return <- 3L
ends_in <- function(text) lengths(regmatches(text, gregexpr("(?<! al)[.!?](?= |$)", text, perl = TRUE)))

words_in <- function(sentence) lengths(regmatches(sentence, gregexpr("[A-Za-z0-9][^ ]*", sentence)))

texts_of <- function(file) {
  if (grepl("[.]R?md$", file)) return(list(help = paragraphs(without_code(readLines(file, warn = FALSE)))))
  if (startsWith(file, "R/")) return(list(help = help_of(file), messages = messages_of(file), comments = comments_of(file)))
  list(help = character(), comments = comments_of(file))
}

counts_of <- function(file) {
  text <- texts_of(file)
  found <- vapply(patterns, function(p) sum(lengths(regmatches(unlist(text), gregexpr(p, unlist(text), perl = TRUE)))), 0)
  one <- sentences(text$help)
  c(found, long = sum(words_in(one[!startsWith(one, "|")]) > longest), return = sum(ends_in(returns_of(file)) > longest_return))
}

shown <- function(file, wanted) {
  text <- unlist(texts_of(file))
  for (name in intersect(wanted, names(patterns))) {
    at <- regexpr(patterns[[name]], text, perl = TRUE)
    hits <- text[at > 0L]
    if (length(hits)) cat(sprintf("%s, %s: ...%s...\n", file, name, substr(hits, pmax(at[at > 0L] - 50L, 1L), at[at > 0L] + 70L)), sep = "")
  }
  if ("return" %in% wanted) {
    text <- returns_of(file)
    several <- ends_in(text) > longest_return
    if (any(several)) cat(sprintf("%s, return (%d): %s\n", file, ends_in(text)[several], text[several]), sep = "")
  }
  if ("long" %in% wanted) {
    one <- sentences(texts_of(file)$help)
    one <- one[!startsWith(one, "|") & words_in(one) > longest]
    if (length(one)) cat(sprintf("%s, long (%d): %s\n", file, words_in(one), one), sep = "")
  }
}

# ---- against what is stored -------------------------------------------------------------------

given <- commandArgs(TRUE)
scripts <- setdiff(list.files("tools", full.names = TRUE), c(list.dirs("tools"), "tools/english.R"))
files <- c("README.md", "NEWS.md", list.files("vignettes", "[.]Rmd$", full.names = TRUE), list.files(c("R", "tests/testthat"), "[.]R$", full.names = TRUE),
           list.files("src", "[.][ch]$", full.names = TRUE, recursive = TRUE), grep("[.](md|tsv|known)$", scripts, value = TRUE, invert = TRUE))
if ("-v" %in% given) {
  wanted <- setdiff(given, "-v")
  for (file in files) shown(file, if (length(wanted)) wanted else c(names(patterns), "long", "return"))
  quit()
}
counts <- do.call(rbind, lapply(files, function(file) {
  found <- counts_of(file)
  data.frame(file = file, pattern = names(found), count = unname(found))
}))
counts <- counts[counts$count > 0, ]
stored <- if (file.exists("tools/english.tsv")) utils::read.delim("tools/english.tsv") else data.frame(file = character(), pattern = character(), count = numeric())
key <- function(x) paste(x$file, x$pattern)
allowed <- stored$count[match(key(counts), key(stored))]
allowed[is.na(allowed)] <- 0
more <- counts$count > allowed
cat(sprintf("%d of the patterns of tools/english.R in all, %d stored\n", sum(counts$count), sum(stored$count)))
if (any(more) && nrow(stored)) {
  cat(sprintf("%s: %d of the pattern '%s', and %d are stored\n", counts$file[more], counts$count[more], counts$pattern[more], allowed[more]), sep = "")
  cat("Rscript tools/english.R -v", unique(counts$pattern[more]), "shows them.\n")
}
if ("--write" %in% given) {
  if (nrow(stored)) counts$count <- pmin(counts$count, allowed)
  counts <- counts[counts$count > 0, ]
  utils::write.table(counts, "tools/english.tsv", sep = "\t", quote = FALSE, row.names = FALSE)
}
if (any(more) && nrow(stored)) quit(status = 1)
