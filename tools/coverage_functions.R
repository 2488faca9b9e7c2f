# Where each function of R/ and src/ begins and ends; tools/coverage_map and tools/mutate share it.

# data frame of file, name, first and last line; of C those that start in the first column, as the house style has them
functions_of <- function(file, lines = readLines(file)) {
  found <- if (endsWith(file, ".R")) functions_in_r(lines) else functions_in_c(lines)
  if (length(found$name)) data.frame(file = file, found)
}

functions_in_r <- function(lines) {
  parsed <- parse(text = lines, keep.source = TRUE)
  where <- attr(parsed, "srcref")
  is_function <- vapply(parsed, function(e) {
    is.call(e) && as.character(e[[1L]])[1L] %in% c("<-", "=") && is.name(e[[2L]]) && is.call(e[[3L]]) && identical(e[[3L]][[1L]], quote(`function`))
  }, NA)
  where <- where[is_function]
  list(name = vapply(parsed[is_function], function(e) as.character(e[[2L]]), ""), first = vapply(where, `[`, 0L, 1L), last = vapply(where, `[`, 0L, 3L))
}

functions_in_c <- function(lines) {
  open <- grep("^[a-z][^=;]*\\(", lines)
  name <- character(); first <- integer(); last <- integer(); brace <- integer()
  for (i in open) {
    # the head goes on to its brace; a prototype ends in a semicolon
    head_end <- i - 1L + grep("[{;]", lines[i:min(i + 15L, length(lines))])[1L]
    if (is.na(head_end) || !grepl("^[^;]*\\)[^;=]*\\{", lines[head_end])) next
    end <- if (grepl("\\}$", lines[head_end])) head_end else head_end + grep("^\\}", lines[-seq_len(head_end)])[1L]
    name <- c(name, sub("^.*?([A-Za-z_0-9]+)\\(.*$", "\\1", lines[i], perl = TRUE))
    first <- c(first, i); last <- c(last, end); brace <- c(brace, head_end)
  }
  list(name = name, first = first, last = last, brace = brace)
}
