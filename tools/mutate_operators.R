# What tools/mutate may change in a source file. A mutation is an edit of the file's text: from, to (characters, both replaced), by, operator, line.
# Left alone: comments, strings, declarations, everything outside functions, and the arguments of calls that only make a message.

swaps <- list(
  relation = c("<" = "<=", "<=" = "<", ">" = ">=", ">=" = ">", "==" = "!=", "!=" = "=="),
  sign = c("+" = "-", "-" = "+", "+=" = "-=", "-=" = "+="),
  minmax = c(min = "max", max = "min", pmin = "pmax", pmax = "pmin", fmin = "fmax", fmax = "fmin", any = "all", all = "any",
             floor = "round", ceiling = "floor", round = "floor", ceil = "floor", which.min = "which.max", which.max = "which.min"),
  logic = c("&&" = "||", "||" = "&&", "&" = "|", "|" = "&"),
  constant = c("TRUE" = "FALSE", "FALSE" = "TRUE"))
label <- c(relation = "relation", sign = "sign", minmax = "min for max", logic = "and for or", constant = "constant")

token_pattern <- c(
  R = paste("#[^\n]*", "\"(?:\\\\.|[^\"\\\\])*\"", "'(?:\\\\.|[^'\\\\])*'", "`[^`]*`", "[A-Za-z.][A-Za-z0-9._]*", "(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?L?",
            "%[^%\n]*%", "<<-", "<-", "\\|>", "<=", ">=", "==", "!=", "&&", "\\|\\|", ":::?", "\\[\\[", "\\S", sep = "|"),
  C = paste("/\\*[\\s\\S]*?\\*/", "//[^\n]*", "(?m:^[ \t]*#(?:[^\n\\\\]|\\\\[\\s\\S])*)", "\"(?:\\\\.|[^\"\\\\])*\"", "'(?:\\\\.|[^'\\\\])*'", "[A-Za-z_][A-Za-z0-9_]*",
            "(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[uUlLfF]*", "<<=|>>=|->|\\+\\+|--|<<|>>",
            "<=|>=|==|!=|&&|\\|\\||[-+*/%&|^]=", "\\S", sep = "|"))

# The tokens of a text: where, what, on which line, the partner of a bracket, and the innermost bracket around each.
tokens_of <- function(text, language) {
  at <- gregexpr(token_pattern[[language]], text, perl = TRUE)[[1L]]
  t <- data.frame(from = as.integer(at), to = as.integer(at) + attr(at, "match.length") - 1L, text = regmatches(text, list(at))[[1L]])
  t <- t[!grepl(if (language == "R") "^#" else "^(/[*/]|[ \t]*#)", t$text), ]
  t$line <- findInterval(t$from, c(0L, gregexpr("\n", text, fixed = TRUE)[[1L]]))
  within <- partner <- integer(nrow(t))
  stack <- 0L
  for (i in seq_len(nrow(t))) {
    closes <- t$text[i] %in% c(")", "]", "}")
    if (closes && length(stack) > 1L) {
      opening <- stack[1L]
      # R's [[ closes with two tokens, of which the first counts
      if (t$text[opening] == "[[" && partner[opening] == 0L && identical(t$text[i + 1L], "]")) {
        partner[opening] <- i; within[i] <- stack[2L]
        next
      }
      stack <- stack[-1L]
      if (partner[opening] == 0L) partner[opening] <- i
      partner[i] <- opening
    }
    within[i] <- stack[1L]
    if (t$text[i] %in% c("(", "[", "[[", "{")) stack <- c(i, stack)
  }
  t$partner <- partner
  t$within <- within
  t
}

is_word <- function(x) grepl("^[A-Za-z_.]", x)
is_number <- function(x) grepl("^\\.?[0-9]", x)
keywords <- c("if", "for", "while", "switch", "return", "sizeof", "function", "else", "in", "case", "do", "repeat", "next", "break", "goto")
message_call <- "^(stop|cli_|abort|warn|inform|refuse|describe|gettextf|sprintf|format|paste0?$)"

# tokens inside the arguments of a call that makes a message
in_message <- function(t) {
  said <- logical(nrow(t))
  for (i in which(grepl(message_call, t$text))) if (i < nrow(t) && t$text[i + 1L] == "(" && t$partner[i + 1L] > 0L) said[seq(i + 1L, t$partner[i + 1L])] <- TRUE
  said
}

edit <- function(from, to, by, operator, line) list(from = from, to = to, by = by, operator = operator, line = line)

as_table <- function(edits) {
  as.data.frame(sapply(c("from", "to", "by", "operator", "line"), function(name) vapply(edits, function(e) as.character(e[[name]]), ""), simplify = FALSE)) |>
    transform(from = as.integer(from), to = as.integer(to), line = as.integer(line))
}

larger <- function(number) {
  suffix <- sub("^[0-9.eExXa-dA-D+-]*?([uUlLfF]*)$", "\\1", number, perl = TRUE)
  value <- suppressWarnings(as.numeric(sub("[uUlLfF]*$", "", number)))
  if (is.na(value)) return(NA)
  paste0(format(if (grepl("[.eE]", number) && value != 0) 1.5 * value else value + 1, digits = 15L, scientific = value > 0 && value < 1e-4), suffix)
}

# a + or - between two terms
is_binary <- function(t, i) i > 1L && (is_word(t$text[i - 1L]) | is_number(t$text[i - 1L]) | t$text[i - 1L] %in% c(")", "]")) && !t$text[i - 1L] %in% keywords

mutate_tokens <- function(t, language) {
  out <- list()
  for (kind in names(swaps)) for (i in which(t$text %in% names(swaps[[kind]]))) {
    if (kind %in% c("sign", "logic") && !endsWith(t$text[i], "=") && !is_binary(t, i)) next
    if (kind == "minmax" && !t$text[i + 1L] %in% c("(", if (language == "R") c(",", ")"))) next
    out[[length(out) + 1L]] <- edit(t$from[i], t$to[i], swaps[[kind]][[t$text[i]]], label[[kind]], t$line[i])
  }
  for (i in which(is_number(t$text))) {
    by <- larger(t$text[i])
    if (!is.na(by) && !identical(t$text[i - 1L], "case")) out[[length(out) + 1L]] <- edit(t$from[i], t$to[i], by, "constant", t$line[i])
  }
  out
}

# "a + b" without "+ b", "a * b" without "* b"
drop_terms <- function(t) {
  stops <- c("+", "-", ")", "]", "}", ",", ";", "?", ":", "<", ">", "<=", ">=", "==", "!=", "&&", "||", "&", "|", "~", "=", "<-", "{", "in", "else")
  spaced <- c(FALSE, diff(t$from) > 0L & utils::head(t$to, -1L) + 1L < t$from[-1L])
  out <- list()
  for (i in which(t$text %in% c("+", "-", "*"))) {
    if (!is_binary(t, i) || i >= nrow(t) - 1L || !spaced[i] || !spaced[i + 1L]) next
    j <- i + 1L
    while (j < nrow(t) && t$line[j + 1L] == t$line[i]) {
      if (t$text[j] %in% c("(", "[", "[[") && t$partner[j] > 0L) {
        j <- t$partner[j] + (t$text[j] == "[[")
        if (j >= nrow(t)) break
      }
      if (t$text[j + 1L] %in% c(stops, if (t$text[i] == "*") c("*", "/")) || startsWith(t$text[j + 1L], "%")) break
      j <- j + 1L
    }
    if (j < nrow(t) && t$line[j] == t$line[i]) out[[length(out) + 1L]] <- edit(t$from[i], t$to[j], "", "dropped term", t$line[i])
  }
  out
}

# neighbours among the arguments of a call; those with names stay
swap_arguments <- function(t, text) {
  symmetric <- c(keywords, "min", "max", "pmin", "pmax", "fmin", "fmax", "identical", "range", "sum", "all.equal", "setequal", "union", "intersect", "hypot", "stopifnot", "list", "any", "all", "UseMethod")
  out <- list()
  for (i in which(t$text == "(")) {
    if (i == 1L || !is_word(t$text[i - 1L]) || t$text[i - 1L] %in% symmetric || t$partner[i] == 0L) next
    inside <- which(t$within == i & seq_len(nrow(t)) < t$partner[i])
    commas <- inside[t$text[inside] == ","]
    first <- c(i, commas) + 1L
    last <- c(commas, t$partner[i]) - 1L
    if (length(commas) == 0L || any(last < first)) next
    named <- t$text[pmin(first + 1L, nrow(t))] == "=" & last > first
    argument <- substring(text, t$from[first], t$to[last])
    for (k in seq_along(commas)) {
      if (named[k] || named[k + 1L] || argument[k] == argument[k + 1L] || grepl("\n", argument[k]) || grepl("^[\"']", argument[k])) next
      out[[length(out) + 1L]] <- edit(t$from[first[k]], t$to[last[k + 1L]], paste0(argument[k + 1L], ", ", argument[k]), "swapped arguments", t$line[first[k]])
    }
  }
  out
}

negate_conditions <- function(t) {
  out <- list()
  for (i in which(t$text == "if")) if (i < nrow(t) && t$text[i + 1L] == "(" && t$partner[i + 1L] > 0L) {
    from <- t$from[i + 1L]
    to <- t$to[t$partner[i + 1L]]
    out[[length(out) + 1L]] <- edit(from, to, NA, "negated condition", t$line[i])
  }
  out
}

# x[i] by x[i + 1]: in R of short names alone, as others are seldom numbers
shift_indices <- function(t, language) {
  out <- list()
  for (i in which(t$text %in% c("[", "[["))) {
    last <- t$partner[i] - 1L
    if (i == 1L || last != i + 1L || !(is_word(t$text[i - 1L]) || t$text[i - 1L] %in% c(")", "]"))) next
    if (is_word(t$text[last]) && (language == "C" || nchar(t$text[last]) <= 2L) && t$text[last] != "TRUE") {
      out[[length(out) + 1L]] <- edit(t$from[last], t$to[last], paste(t$text[last], if (language == "C") "+ 1" else "+ 1L"), "index", t$line[last])
    }
  }
  out
}

# Statements that stand between others in braces; not what makes a new variable, as the next use would end in an error
drop_statements_r <- function(text) {
  starts <- c(1L, gregexpr("\n", text, fixed = TRUE)[[1L]] + 1L)
  out <- list()
  makes_new <- function(e) is.call(e) && identical(e[[1L]], quote(`<-`)) && is.name(e[[2L]]) && !as.character(e[[2L]]) %in% all.names(e[[3L]])
  walk <- function(e) {
    if (!is.call(e)) return()
    where <- attr(e, "srcref")
    if (identical(e[[1L]], quote(`{`)) && length(where) == length(e)) for (k in seq_along(e)[-1L]) {
      at <- as.integer(where[[k]])
      if (k < length(e) && at[3L] - at[1L] < 4L && !makes_new(e[[k]])) {
        out[[length(out) + 1L]] <<- edit(starts[at[1L]] + at[5L] - 1L, starts[at[3L]] + at[6L] - 1L, "NULL", "dropped statement", at[1L])
      }
    }
    for (part in as.list(e)) if (!missing(part)) walk(part)
  }
  for (e in parse(text = text, keep.source = TRUE)) walk(e)
  out
}

drop_statements_c <- function(lines) {
  starts <- cumsum(c(1L, nchar(lines) + 1L))
  before <- c("", trimws(sub("(/\\*.*|//.*)$", "", utils::head(lines, -1L))))
  whole <- grepl("^\\s+[^\"]*;(\\s*/\\*.*)?$", lines) & grepl("([;{}]|\\)|\\*/|^)$", before) & !grepl("^\\s+(return|break|continue|goto|case|default|const|static|double|int|unsigned|else|[*?:&|}])\\b", lines) &
    !grepl("^\\s+(struct\\s+)?\\w+\\s+\\*?\\w+(\\[.*\\])?(\\s*=|;|,)", lines) & !grepl("^\\s*[}*?:&|+-]", lines) & !grepl("^\\s*(do|typedef)\\b", lines)
  lapply(which(whole), function(i) {
    indent <- nchar(sub("\\S.*$", "", lines[i]))
    edit(starts[i] + indent, starts[i] + nchar(lines[i]) - 1L, ";", "dropped statement", i)
  })
}

# All mutations of a file that lie within its functions (tools/coverage_functions.R), with the function's name
mutations_of <- function(file) {
  lines <- readLines(file)
  text <- paste(lines, collapse = "\n")
  language <- if (endsWith(file, ".R")) "R" else "C"
  functions <- functions_of(file, lines)
  if (is.null(functions)) return()
  t <- tokens_of(text, language)
  if (language == "R") t <- cbind(t, said = in_message(t)) else t$said <- FALSE
  edits <- as_table(c(mutate_tokens(t, language), drop_terms(t), swap_arguments(t, text), negate_conditions(t), shift_indices(t, language)))
  edits <- edits[!edits$from %in% t$from[t$said], ]
  edits <- rbind(edits, as_table(if (language == "R") drop_statements_r(text) else drop_statements_c(lines)))
  negated <- which(is.na(edits$by))
  if (length(negated)) edits$by[negated] <- paste0("(!(", substring(text, edits$from[negated] + 1L, edits$to[negated] - 1L), "))")
  # in C from the brace on: the head of a function is a declaration
  begins <- if (language == "R") functions$first else functions$brace + (functions$brace < functions$last)
  home <- vapply(edits$line, function(l) which(l >= begins & l <= functions$last)[1L], 0L)
  # sizes of arrays that are declared, labels and prototypes decide nothing
  declares <- language == "C" & grepl("^\\s+(const |static )*(struct \\w+|double|int|size_t|ptrdiff_t|unsigned|char|enum \\w+) [^=()]*;", lines[edits$line])
  edits <- cbind(file = rep(file, nrow(edits)), edits, name = functions$name[home])[!is.na(home) & !declares, ]
  if (nrow(edits) == 0L) return()
  edits$before <- text_of(text, edits, NULL)
  edits$after <- text_of(text, edits, edits$by)
  edits
}

# the lines that edits touch, before (by = NULL) or after them, in one line each
text_of <- function(text, edits, by) {
  ends <- c(gregexpr("\n", text, fixed = TRUE)[[1L]], nchar(text) + 1L)
  first <- c(1L, ends + 1L)[findInterval(edits$from, ends + 0.5) + 1L]
  last <- ends[findInterval(edits$to, ends + 0.5) + 1L] - 1L
  whole <- if (is.null(by)) substring(text, first, last) else paste0(substring(text, first, edits$from - 1L), by, substring(text, edits$to + 1L, last))
  trimws(gsub("\\s+", " ", whole))
}

apply_edit <- function(file, edit) {
  text <- paste(readLines(file), collapse = "\n")
  paste0(substring(text, 1L, edit$from - 1L), edit$by, substring(text, edit$to + 1L))
}
