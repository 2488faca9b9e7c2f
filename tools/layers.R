# Do files include and call one way only? In C foo.c and foo.h are one room. An arrow goes from a room to every other one that it includes, or whose
# functions and data it uses (symbols of its object that another object defines, by `nm`). In R a file is a room, and uses what
# its functions name and another file defines (codetools); which method a generic calls is no arrow. Fails on an arrow to a folder or
# prefix that stands later in `folders` or `prefixes`, on rooms that lead back to themselves, on an object that src/Makevars lacks, on a struct
# of more than `most_members` members, and on a name of R that is defined twice, since the later file would replace the function of the other.
# What tools/layers.known lists was there before this check: it fails on what is not listed, and on a line that is no longer true.
# Usage: Rscript tools/layers.R [-v] [C | R]; with -v it prints every arrow upwards or within a circle
prefixes <- c("utils", "prior", "stat", "mech", "model", "release", "engine", "fit", "study", "link", "noiseaware-package")
folders <- c("base", "release", "contract", "mcmc", "mech", "stat", "model", "totals", "clt", "records", "table", "pool", "geography", "r", ".")
most_members <- 30L
# What whoever links the package supplies (tools/standalone.c does): no dependency.
ports <- "host_allocate"

c_files <- list.files("src", "[.][ch]$", recursive = TRUE)
room_of <- function(files) sub("[.][ch]$", "", files)

# ---- arrows of C: data frame of from, to, by ----

included <- function() {
  arrows <- lapply(c_files, function(f) {
    lines <- grep('^#include "', readLines(file.path("src", f), warn = FALSE), value = TRUE)
    if (length(lines)) data.frame(from = room_of(f), to = room_of(sub('.*"(.*)".*', "\\1", lines)), by = "include")
  })
  do.call(rbind, arrows)
}

# as they stand, without what an optimiser leaves out
compiled <- function() {
  work <- tempfile("layers-")
  for (folder in folders) dir.create(file.path(work, folder), recursive = TRUE, showWarnings = FALSE)
  on.exit(unlink(work, recursive = TRUE))
  config <- function(what) system2(file.path(R.home("bin"), "R"), c("CMD", "config", what), stdout = TRUE)
  sources <- grep("[.]c$", c_files, value = TRUE)
  flags <- paste(config("CC"), config("--cppflags"), "-O0 -w -c -Isrc -Iinst/include")
  status <- vapply(sources, function(f) system(sprintf("%s src/%s -o %s/%s.o", flags, f, work, room_of(f))), 0L)
  if (any(status != 0)) stop("does not compile: ", toString(sources[status != 0]), call. = FALSE)
  lines <- system2("nm", c("-A", sprintf("%s/%s.o", work, room_of(sources))), stdout = TRUE)
  pattern <- "^.*?/layers-[^/]*/(.*)[.]o:.* ([A-Za-z]) ([^ ]+)$"
  data.frame(room = sub(pattern, "\\1", lines, perl = TRUE), type = sub(pattern, "\\2", lines, perl = TRUE), name = sub(pattern, "\\3", lines, perl = TRUE))
}

called <- function(symbols = compiled()) {
  defined <- symbols[symbols$type %in% c("T", "D", "R", "B", "C") & !symbols$name %in% ports, ]
  used <- symbols[symbols$type == "U", ]
  at <- match(used$name, defined$name)
  data.frame(from = used$room, to = defined$room[at], by = used$name)[!is.na(at), ]
}

# ---- arrows of R ----

# of each expression at the top of a file: the file, the name that it defines, and the names that it uses
expressions_of <- function(file) {
  lapply(parse(file.path("R", file), keep.source = FALSE), function(e) {
    assigns <- is.call(e) && identical(e[[1L]], quote(`<-`)) && is.name(e[[2L]])
    made <- assigns && is.call(e[[3L]]) && identical(e[[3L]][[1L]], quote(`function`))
    list(room = sub("[.]R$", "", file), name = if (assigns) as.character(e[[2L]]) else "",
         used = unique(if (made) codetools::findGlobals(eval(e[[3L]], baseenv())) else all.names(e)))
  })
}

defined_in_r <- function() unlist(lapply(list.files("R", "[.]R$"), expressions_of), recursive = FALSE)

defined_twice <- function(all) {
  room <- vapply(all, `[[`, "", "room")
  name <- vapply(all, `[[`, "", "name")
  twice <- setdiff(unique(name[duplicated(name)]), "")
  sprintf("%s is defined in %s", twice, vapply(twice, function(one) toString(room[name == one]), ""))
}

called_in_r <- function(all) {
  room <- vapply(all, `[[`, "", "room")
  name <- vapply(all, `[[`, "", "name")
  arrows <- data.frame(from = rep(room, lengths(lapply(all, `[[`, "used"))), fun = rep(name, lengths(lapply(all, `[[`, "used"))), by = unlist(lapply(all, `[[`, "used")))
  at <- match(arrows$by, name)
  data.frame(from = arrows$from, to = room[at], by = paste0(arrows$fun, "():", arrows$by))[!is.na(at), ]
}

# ---- circles ----

# of each room the number of its circle (Tarjan's algorithm); rooms alone have one of their own
circles_of <- function(from, to) {
  rooms <- unique(c(from, to))
  next_to <- split(match(to, rooms), factor(from, rooms))
  index <- low <- circle <- integer(length(rooms))
  stack <- integer()
  count <- 0L
  visit <- function(v) {
    count <<- count + 1L
    index[v] <<- low[v] <<- count
    stack <<- c(v, stack)
    for (w in next_to[[v]]) {
      if (index[w] == 0L) visit(w)
      if (circle[w] == 0L) low[v] <<- min(low[v], low[w])
    }
    if (low[v] == index[v]) {
      of <- stack[seq_len(match(v, stack))]
      circle[of] <<- v
      stack <<- stack[-seq_along(of)]
    }
  }
  for (v in seq_along(rooms)) if (index[v] == 0L) visit(v)
  split(rooms, circle)
}

# lines, one an upward arrow and one a file in a circle
findings_of <- function(arrows, rank) {
  arrows <- arrows[arrows$from != arrows$to, ]
  up <- arrows[rank(arrows$to) > rank(arrows$from), ]
  circles <- Filter(function(rooms) length(rooms) > 1L, circles_of(arrows$from, arrows$to))
  show <- function(title, of) {
    by <- tapply(of$by, paste(of$from, "->", of$to), function(x) toString(unique(x)))
    cat(title, sprintf("\n  %s: %s", names(by), by), "\n")
  }
  if (verbose && nrow(up)) show("upward:", up)
  for (rooms in if (verbose) circles) show(paste("a circle of", length(rooms), "files:"), arrows[arrows$from %in% rooms & arrows$to %in% rooms, ])
  c(sprintf("up: %s -> %s", up$from, up$to), sprintf("circle: %s", unlist(circles, use.names = FALSE)))
}

# objects that src/Makevars does not list, or lists and has no source for
unlisted <- function() {
  text <- gsub("\\\n", " ", paste(readLines("src/Makevars"), collapse = "\n"), fixed = TRUE)
  listed <- scan(text = sub("^OBJECTS *=", "", regmatches(text, regexpr("OBJECTS *=[^\n]*", text))), what = "", quiet = TRUE)
  made <- sub("c$", "o", grep("[.]c$", c_files, value = TRUE))
  sprintf("src/Makevars or src/ lacks %s", c(setdiff(made, listed), setdiff(listed, made)))
}

# members of each struct in a file, from the innermost one out; a struct or a function within a struct is one member
members_of <- function(file) {
  text <- gsub("/[*].*?[*]/", "", paste(readLines(file.path("src", file), warn = FALSE), collapse = " "), perl = TRUE)
  found <- integer()
  while ((at <- regexpr("\\bstruct( \\w+)? [{][^{}]*[}]", text, perl = TRUE)) > 0L) {
    struct <- regmatches(text, at)
    declared <- gsub("[(]([^()]|(?R))*[)]", "", sub("^[^{]*[{]", "", struct), perl = TRUE)
    found[trimws(sub("[{].*", "", struct))] <- lengths(regmatches(declared, gregexpr("[;,]", declared)))
    regmatches(text, at) <- "inner"
  }
  found
}

large <- function() {
  members <- lapply(stats::setNames(c_files, c_files), members_of)
  members <- lapply(members, function(found) found[found > most_members])
  sprintf("src/%s: %s has %d members", rep(names(members), lengths(members)), unlist(lapply(members, names)), unlist(members))
}

in_c <- function() {
  arrows <- rbind(included(), called())
  c(unlisted(), large(), findings_of(arrows[arrows$to %in% room_of(c_files), ], function(room) match(dirname(room), folders)))
}

in_r <- function(all = defined_in_r()) {
  sprintf("R %s", c(defined_twice(all), findings_of(called_in_r(all), function(room) match(sub("_.*", "", room), prefixes))))
}

verbose <- "-v" %in% commandArgs(TRUE)
sides <- intersect(c("C", "R"), commandArgs(TRUE))
if (length(sides) == 0L) sides <- c("C", "R")
found <- sort(unique(c(if ("C" %in% sides) in_c(), if ("R" %in% sides) in_r())), method = "radix")
known <- readLines("tools/layers.known")
known <- known[ifelse(startsWith(known, "R "), "R", "C") %in% sides]
new <- setdiff(found, known)
gone <- setdiff(known, found)
if (length(new)) cat("includes and calls against the order of layers, too large, or twice:", new, sep = "\n  ")
if (length(gone)) cat("no longer true, take it out of tools/layers.known:", gone, sep = "\n  ")
cat(length(found), "findings,", length(intersect(found, known)), "of them known\n")
if (length(new) || length(gone)) quit(status = 1)
