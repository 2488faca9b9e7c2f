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
  # records that are not used are also checked: errors do not depend on chance
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

# Each record has a random number, and those with a person's smallest ones are kept: at any time these are a random choice of what was read. They are
# all that is in memory.
#' @export
limit_contributions.record_chunks <- function(data, statistic, neighbours, uniform, call = caller_env()) {
  name <- attr(neighbours, "person")
  statistics <- if (is_several(statistic)) statistic else list(statistic)
  variables <- unique(unlist(lapply(statistics, function(s) names(source_variables(s)))))
  checked <- function(chunk) {
    person <- person_column(chunk, name, call)
    if (is.factor(person)) person <- as.character(person)
    check_same_type(person, kept$person, name, call)
    for (s in statistics) statistic_records(s, chunk, call, empty = TRUE)
    records <- chunk[intersect(variables, names(chunk))]
    records[] <- lapply(records, function(x) if (is.factor(x)) as.character(x) else x)
    list(person = person, random = uniform(length(person)), records = records)
  }
  kept <- NULL
  if (!is.null(data$none)) kept <- checked(data$none)
  next_chunk <- careful_chunks(data, call)
  k <- 0
  while (!is.null(chunk <- next_chunk())) {
    k <- k + 1
    read <- tryCatch(checked(chunk), noiseaware_error = function(e) refuse_chunk(e, paste("chunk", k), call))
    kept <- smallest_of_person(if (is.null(kept)) read else list(person = c(kept$person, read$person), random = c(kept$random, read$random),
                                                                 records = rbind(kept$records, read$records)), contributions_of(neighbours))
  }
  if (is.null(kept)) stop_no_chunk(call)
  kept$records
}

# The number 1 in one chunk and the text "001" in another would be two persons.
check_same_type <- function(person, kept, name, call) {
  if (is.null(kept) || typeof(person) == typeof(kept)) return(invisible())
  stop_classed("data", "{.var {name}} must have the same type in all chunks, but is {typeof(kept)} first, and then {typeof(person)}.", call = call)
}

smallest_of_person <- function(kept, most) {
  chosen <- chosen_records(kept$person, most, function(n) kept$random)
  list(person = kept$person[chosen], random = kept$random[chosen], records = kept$records[chosen, , drop = FALSE])
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
