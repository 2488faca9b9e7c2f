# At most so many records of each person: which ones a release uses (R/stat_neighbours.R has the guarantee).

# for the print of a fit
persons_line <- function(release) {
  if (!of_persons(release$neighbours)) return(NULL)
  sprintf("             at most %s of each person; the model treats them as independent", format_size(contributions_of(release$neighbours)))
}

# where records are read
check_person_named <- function(neighbours, call = caller_env()) {
  if (of_persons(neighbours) && is.null(attr(neighbours, "person"))) {
    stop_classed("neighbours", c("{.fn persons} must name the column that identifies persons.",
                                 i = "For example {.code persons(\"id\", contributions = {format_number(contributions_of(neighbours))})}."), call = call)
  }
}

# At most so many records of each person, in the order of `data`. `uniform(n)` gives n random numbers.
limit_contributions <- function(data, statistic, neighbours, uniform, call = caller_env()) {
  if (is.null(attr(neighbours, "person"))) return(data)
  UseMethod("limit_contributions")
}

# Which of the records that `person` gives the names of.
chosen_records <- function(person, most, uniform) {
  group <- match(person, unique(person))
  order <- order(group, uniform(length(group)))
  first <- match(group[order], group[order])
  chosen <- logical(length(group))
  chosen[order] <- seq_along(order) - first < most
  chosen
}

#' @export
limit_contributions.data.frame <- function(data, statistic, neighbours, uniform, call = caller_env()) {
  person <- person_column(data, attr(neighbours, "person"), call)
  # records that are not used are checked, too: errors do not depend on chance
  for (s in if (is_several(statistic)) statistic else list(statistic)) statistic_records(s, data, call, empty = TRUE)
  data[chosen_records(person, contributions_of(neighbours), uniform), , drop = FALSE]
}

person_column <- function(data, name, call, where = "{.arg data}") {
  if (sum(names(data) == name) != 1L) {
    stop_classed("data", paste(where, "must have one column {.var {name}}, which identifies persons, but has {sum(names(data) == name)}."), call = call)
  }
  person <- data[[name]]
  if (!is.atomic(person) || !is.null(dim(person))) {
    stop_classed("data", paste(where, "must have a plain column {.var {name}}, but it is {describe_shape(person)}."), call = call)
  }
  if (anyNA(person)) {
    stop_classed("data", paste(where, "must name a person in each record, but {.var {name}} is missing in {rows_text(which(is.na(person)))}."), call = call)
  }
  person
}

# what source_total() refuses
#' @export
limit_contributions.default <- function(data, statistic, neighbours, uniform, call = caller_env()) data

#' @export
limit_contributions.record_chunks <- function(data, statistic, neighbours, uniform, call = caller_env()) {
  stop_classed("data", c("A person's records cannot be chosen from records that are read only once.",
                         i = "Use a data frame, files or a database."), call = call)
}

#' @export
limit_contributions.record_files <- function(data, statistic, neighbours, uniform, call = caller_env()) {
  name <- attr(neighbours, "person")
  persons <- lapply(data$files, function(file) {
    reader <- open_records(file, data, stats::setNames(FALSE, name), call)
    on.exit(reader$close())
    found <- list()
    while (!is.null(chunk <- reader$next_chunk())) {
      where <- gsub("([{}])", "\\1\\1", basename(file))
      found[[length(found) + 1L]] <- as.character(person_column(chunk, name, call, paste0("{.file ", where, "}")))
    }
    unlist(found) %||% character()
  })
  chosen <- chosen_records(unlist(persons), contributions_of(neighbours), uniform)
  data$chosen <- unname(split(chosen, factor(rep(seq_along(persons), lengths(persons)), seq_along(persons))))
  data
}

#' @export
limit_contributions.tbl_lazy <- function(data, statistic, neighbours, uniform, call = caller_env()) {
  con <- dbplyr::remote_con(data)
  dialect <- sql_dialect(con, call)
  person <- attr(neighbours, "person")
  if (!person %in% colnames(data)) stop_classed("data", "{.arg data} must have one column {.var {person}}, which identifies persons, but has 0.", call = call)
  records <- paste0("(", dbplyr::sql_render(data, con), ") ", dialect$name("records"))
  name <- dialect$name(person)
  missing <- as.double(ask_database(con, paste("SELECT", dialect$text("COUNT(*)"), "AS n FROM", records, "WHERE", name, "IS NULL"), call)$n)
  if (missing > 0) {
    stop_classed("data", "{.arg data} must name a person in each record, but {.var {person}} is missing in {missing} record{?s}.", call = call)
  }
  place <- dialect$name("noiseaware_place")
  ranked <- paste0("SELECT ", dialect$name("records"), ".*, ROW_NUMBER() OVER (PARTITION BY ", name, " ORDER BY ", dialect$random, ") AS ", place, " FROM ", records)
  dplyr::tbl(con, dbplyr::sql(paste0("SELECT * FROM (", ranked, ") ", dialect$name("ranked"), " WHERE ", place, " <= ", sprintf("%.0f", contributions_of(neighbours)))))
}
