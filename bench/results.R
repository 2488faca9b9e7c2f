# What is stored of the benchmarks, and the page made from it.
#
#   bench/results/<name>.md   one benchmark's figures, details and notes, as its script printed them
#   bench/results/<name>.csv  its figures, with date, commit, load average and processor
#   bench/results.md          the page: targets that were missed, then every benchmark in a line
#
#   Rscript bench/results.R   writes the tables and the page from the .md files
#
# A file without a script of its name was written by hand, from a script that prints parts; its last lines say which.

results_folder <- file.path("bench", "results")

# ---- what a stored benchmark says --------------------------------------------------------

cells_of <- function(rows) lapply(strsplit(sub("^\\|", "", sub("\\|\\s*$", "", rows)), "|", fixed = TRUE), trimws)

# the table of figures, NULL if there is none
stored_figures <- function(lines) {
  head <- grep("^\\| figure \\| case \\| measured \\| target \\| met \\|$", lines)
  if (length(head) == 0L) return(NULL)
  rows <- lines[seq(head[1L] + 2L, length(lines))]
  rows <- rows[seq_len(match(FALSE, startsWith(rows, "|"), nomatch = length(rows) + 1L) - 1L)]
  table <- do.call(rbind, lapply(cells_of(rows), function(cells) c(cells, rep("", 5L))[1:5]))
  stats::setNames(as.data.frame(table), c("figure", "case", "measured", "target", "met"))
}

# of tables with other columns: a figure for each number, whose case is the row's text
other_figures <- function(lines) {
  lines <- lines[startsWith(lines, "|")]
  cells <- cells_of(lines)
  rules <- which(grepl("^\\|[-:| ]+\\|$", lines))
  rows <- Map(function(rule, end) {
    numeric <- endsWith(cells[[rule]], ":")
    above <- ""
    lapply(cells[seq(rule + 1L, end)], function(row) {
      if (nzchar(row[1L])) above <<- row[1L] else row[1L] <- above
      data.frame(figure = cells[[rule - 1L]][numeric], case = paste(row[!numeric & !row %in% c("", "yes", "NO")], collapse = ", "), measured = row[numeric],
                 target = "", met = "")
    })
  }, rules, c(rules[-1L] - 2L, length(lines)))
  do.call(rbind, do.call(c, rows))
}

first_match <- function(lines, pattern) {
  found <- regmatches(lines, regexec(pattern, lines, perl = TRUE))
  found <- Filter(length, found)
  if (length(found)) utils::tail(found, 1L)[[1L]][-1L] else NA_character_
}

# of the last line that says so: the newest run
provenance <- function(lines) {
  months <- stats::setNames(sprintf("%02d", 1:12), month.name)
  date <- first_match(lines, "(20\\d\\d-\\d\\d-\\d\\d)")
  if (is.na(date)) {
    written <- first_match(lines, "(\\d{1,2}) ([A-Z][a-z]+) (20\\d\\d)")
    if (!anyNA(written)) date <- sprintf("%s-%s-%02d", written[3L], months[[written[2L]]], as.integer(written[1L]))
  }
  load <- first_match(lines, "load average (?:of )?(.+?)(?:[.;:,)]? *$|[;:),]|\\. )")
  load <- if (is.na(load)) NA else max(as.numeric(unlist(regmatches(load, gregexpr("\\d+(\\.\\d+)?", load)))))
  list(date = date, commit = first_match(lines, "(?:commit|at) ([0-9a-f]{7,10})\\b"), load = load)
}

processor <- function() {
  lines <- if (file.exists("/proc/cpuinfo")) readLines("/proc/cpuinfo") else character()
  trimws(sub("^[^:]*:", "", grep("^model name", lines, value = TRUE)[1L]))
}

# `machine`: the processor of a run that has just been made; else that of the table that is there
write_table <- function(name, machine = NULL) {
  lines <- readLines(file.path(results_folder, paste0(name, ".md")))
  figures <- stored_figures(lines)
  if (is.null(figures)) figures <- other_figures(lines)
  path <- file.path(results_folder, paste0(name, ".csv"))
  if (is.null(machine)) machine <- if (file.exists(path)) utils::read.csv(path)$processor[1L] else processor()
  utils::write.csv(cbind(figures, provenance(lines), processor = machine), path, row.names = FALSE, na = "")
}

# ---- the page -----------------------------------------------------------------------------

title_of <- function(name) sub("^#+ ", "", readLines(file.path(results_folder, paste0(name, ".md")), 1L))

read_tables <- function() {
  paths <- list.files(results_folder, "[.]csv$", full.names = TRUE)
  tables <- lapply(paths, utils::read.csv, colClasses = "character")
  do.call(rbind, Map(cbind, name = sub("[.]csv$", "", basename(paths)), tables))
}

markdown <- function(table, numbers = character()) {
  row <- function(cells) paste0("| ", paste(cells, collapse = " | "), " |")
  c(row(names(table)), row(ifelse(names(table) %in% numbers, "---:", "---")), apply(table, 1L, row))
}

link <- function(name) sprintf("[%s](results/%s.md)", name, name)

# A row a figure: in how many of its cases, and the case that is furthest off.
missed <- function(all) {
  groups <- split(all, paste(all$name, all$figure))
  rows <- lapply(groups, function(group) {
    off <- group[group$met == "NO", ]
    if (nrow(off) == 0L) return(NULL)
    number <- function(x) as.numeric(gsub("[^0-9.]", "", x))
    worst <- off[which.max(abs(log(number(off$measured)) - log(pmax(number(off$target), 1e-3)))), ]
    data.frame(benchmark = link(worst$name), figure = worst$figure, target = worst$target, missed = sprintf("%d of %d", nrow(off), sum(nzchar(group$met))),
               worst = worst$measured, case = worst$case)
  })
  do.call(rbind, unname(rows))
}

overview <- function(all, names) {
  rows <- lapply(names, function(name) {
    own <- all[all$name == name, ]
    ran <- provenance(readLines(file.path(results_folder, paste0(name, ".md"))))
    shown <- function(x) if (is.na(x)) "" else as.character(x)
    data.frame(benchmark = link(name), question = title_of(name), `targets met` = if (any(nzchar(own$met))) sprintf("%d of %d", sum(own$met == "yes"), sum(nzchar(own$met))) else "",
               date = shown(ran$date), commit = shown(ran$commit), load = if (is.na(ran$load)) "unknown *" else paste0(ran$load, if (ran$load > 1) " *"), check.names = FALSE)
  })
  do.call(rbind, rows)
}

# `machine`: lines about the machine of the last run; else those of the page that is there, its first list
write_page <- function(machine = NULL) {
  if (is.null(machine)) {
    machine <- readLines("bench/results.md")
    machine <- machine[cumsum(!nzchar(machine)) == 2L & startsWith(machine, "- ")]
  }
  all <- read_tables()
  names <- sub("[.]md$", "", list.files(results_folder, "[.]md$"))
  page <- c("# Benchmarks", "",
            "Made by `Rscript bench/results.R` from `bench/results/`, where each benchmark has its details and, as CSV, its figures.", "",
            machine, "", "## Targets that were missed", "", markdown(missed(all), c("missed", "worst")), "",
            "## All benchmarks", "", "* The load average was above 1, or it was not noted: other work may have run on the machine, so that timings are not sharp. Ratios were taken in turns.", "",
            markdown(overview(all, names), c("targets met", "load")))
  writeLines(page, "bench/results.md")
}

if (sys.nframe() == 0L) {
  for (name in sub("[.]md$", "", list.files(results_folder, "[.]md$"))) write_table(name)
  write_page()
}
