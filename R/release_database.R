# Totals computed where the data live: one SQL query, in which every record's values are clamped, multiplied and rounded to
# units as in C, and the integers added. Only sums come back. Layers of subqueries, each with the
# columns of the one before it:
#   c1, c2, ...   the variables, numbers as doubles, factors as codes; m1, ... 1 where missing, w1, ... 1 where not allowed
#   p1v1, ...     of each part, the variables within their bounds; products; then
#   p1r1, ...     of each component a whole number of units
# Names and levels are quoted by DBI, or as the dialect says; numbers are written as whole numbers and powers of two, so that no
# backend has to read decimals. What rounds is tried first on numbers whose answer is known, and what quotes on a text.

# What backends call things. `round`: of a double to a whole number, halves to the even one; `round_small`, where there is something
# cheaper for whole numbers below 2^31; `bounded`, where there is something cheaper than CASE; `fence`, what a subquery begins with
# that is not to be merged with the one around it, so that what is used several times is computed once; `number`: is a double a
# number, neither NaN nor NULL, where one comparison tells? `sum`: of whole numbers, which is not to overflow unnoticed.
# `name` and `string` quote columns and texts.
sql_dialect <- function(con, call) {
  half_even <- function(x) {
    whole <- paste0("CAST(", x, " AS INTEGER)")
    rest <- paste0("(", x, " - ", whole, ")")
    odd <- paste0(whole, " % 2 <> 0")
    paste0(whole, " + CASE WHEN ", rest, " > 0.5 OR (", rest, " = 0.5 AND ", odd, ") THEN 1 WHEN ",
           rest, " < -0.5 OR (", rest, " = -0.5 AND ", odd, ") THEN -1 ELSE 0 END")
  }
  cast <- function(type) function(x) paste0("CAST(", x, " AS ", type, ")")
  not_number <- function(type) function(x) paste0(x, " = CAST('NaN' AS ", type, ")")
  dialects <- list(
    SQLiteConnection = list(double = cast("REAL"), integer = cast("INTEGER"), text = cast("TEXT"), round = half_even, collate = " COLLATE BINARY",
                            wrong = function(x) paste0("typeof(", x, ") NOT IN ('integer', 'real', 'null')")),
    PostgreSQLConnection = list(double = cast("DOUBLE PRECISION"), integer = cast("BIGINT"), text = cast("TEXT"), round = cast("BIGINT"),
                                round_small = cast("INTEGER"),
                                bounded = function(v, lower, upper) paste0("LEAST(GREATEST(", v, ", ", lower, "), ", upper, ")"),
                                # PostgreSQL merges a subquery that has no WITH; one with OFFSET 0 would rule out parallel workers
                                collate = " COLLATE \"C\"", nan = not_number("DOUBLE PRECISION"), fence = "WITH nothing AS (SELECT 1) ",
                                # NaN is above all others there
                                number = function(x) paste0(x, " < CAST('NaN' AS DOUBLE PRECISION)")),
    duckdb_connection = list(double = cast("DOUBLE"), integer = cast("BIGINT"), text = cast("VARCHAR"),
                             round = cast("BIGINT"),
                             nan = not_number("DOUBLE")),
    spark_connection = list(double = cast("DOUBLE"), integer = cast("BIGINT"), text = cast("STRING"), round = function(x) paste0("CAST(rint(", x, ") AS BIGINT)"),
                            nan = not_number("DOUBLE"), random = "rand()",
                            # a sum of BIGINT goes round there when it is too large
                            sum = function(x) paste0("SUM(CAST(", x, " AS DECIMAL(20, 0)))"),
                            # two quotes end a text and begin the next, and a backslash is an escape
                            name = function(x) paste0("`", gsub("`", "``", x, fixed = TRUE), "`"),
                            string = function(x) paste0("'", gsub("(['\\\\])", "\\\\\\1", x), "'")))
  dialects$PqConnection <- dialects$PostgreSQLConnection
  found <- intersect(class(con), names(dialects))
  if (length(found) == 0L) {
    stop_classed("database", c("{.fn release} works with SQLite, PostgreSQL, DuckDB and Spark, but the connection is of class {.cls {class(con)[1]}}.",
                               i = other_source), call = call)
  }
  usual <- list(random = "random()", sum = function(x) paste0("SUM(", x, ")"), name = function(x) as.character(DBI::dbQuoteIdentifier(con, x)),
                string = function(x) as.character(DBI::dbQuoteString(con, x)))
  utils::modifyList(usual, dialects[[found[1L]]])
}

# A double, exactly: whole numbers and divisions by powers of two.
sql_number <- function(value, dialect) {
  vapply(value, function(v) {
    whole <- function(x) dialect$double(sprintf("%.0f", x))
    divisions <- 0
    while (v != floor(v)) {
      v <- v * 2
      divisions <- divisions + 1
    }
    factors <- 0
    while (abs(v) >= 2^53) {
      v <- v / 2
      factors <- factors + 1
    }
    powers <- function(count, operator) {
      each <- c(rep(2^60, count %/% 60), if (count %% 60 > 0) 2^(count %% 60))
      paste0(vapply(each, function(p) paste0(" ", operator, " ", whole(p)), ""), collapse = "")
    }
    paste0("(", whole(v), powers(divisions, "/"), powers(factors, "*"), ")")
  }, "")
}

sql_bounded <- function(v, lower, upper) sql_when(paste0(v, " > ", lower), sql_when(paste0(v, " < ", upper), v, upper), lower)

sql_when <- function(condition, yes, no) paste0("CASE WHEN ", condition, " THEN ", yes, " ELSE ", no, " END")

#' @export
source_total.tbl_lazy <- function(data, statistic, mechanism, neighbours, n = NULL, call = caller_env()) {
  con <- dbplyr::remote_con(data)
  dialect <- sql_dialect(con, call)
  records <- paste0("(", dbplyr::sql_render(data, con), ") ", dialect$name("records"))
  ask <- function(sql) ask_database(con, sql, call)
  check_dialect(ask, dialect, call)
  # records are counted beforehand only where the unit depends on their number
  parts <- tryCatch(partial_parts(statistic, mechanism, neighbours, n, call), noiseaware_error = function(e) NULL)
  if (is.null(parts)) {
    if (is.null(n)) n <- max(1, as.double(ask(paste("SELECT", dialect$text("COUNT(*)"), "AS n FROM", records))$n))
    parts <- partial_parts(statistic, mechanism, neighbours, n, call)
  }
  columns <- release_columns(statistic)
  types <- ask(paste("SELECT * FROM", records, "WHERE 1 = 0"))
  variables <- database_variables(columns, types, dialect, call)
  ranks <- vapply(parts, function(part) part$mechanism$kernel == "ranks", TRUE)
  query <- totals_query(parts[!ranks], columns, variables, records, dialect, call)
  count <- function(sql) lapply(ask(sql), function(text) if (is.na(text)) "0" else as.character(text))
  numbers <- count(query$sql)
  if (!is.null(query$missing) && numbers$complete != numbers$n) numbers <- utils::modifyList(numbers, count(query$missing))
  check_database(numbers, names(variables), columns$levels, call)
  n_found <- as.double(numbers$n)
  totals <- vector("list", length(parts))
  totals[!ranks] <- lapply(query$components, function(names) do.call(rbind, lapply(numbers[names], words_of)))
  totals[ranks] <- lapply(parts[ranks], function(part) {
    found <- ask(points_query(part$statistic, variables, records, dialect))
    if (sum(as.double(found$n)) != n_found) stop_classed("database", "The records changed while the database was computing the totals.", call = call)
    counts <- numeric(part$statistic$steps + 1)
    counts[as.double(found$point) + 1] <- as.double(found$n)
    in_words(counts)
  })
  new_partial(lapply(totals, unname), lapply(parts, `[[`, "unit"), n_found, statistic, mechanism, neighbours)
}

ask_database <- function(con, sql, call) {
  # what a database says may quote records; some drivers warn and return NULL
  answer <- tryCatch(suppressWarnings(DBI::dbGetQuery(con, sql)), error = function(e) NULL)
  if (is.data.frame(answer)) return(answer)
  stop_classed("database", c("The database did not answer; its message is not shown, because it may quote records.",
                             i = "Is the connection open, and can you see the table?"), call = call)
}

check_dialect <- function(ask, dialect, call) {
  tried <- c(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.5 - 2^-54, 2^51 + 0.5, -2^51 - 1.5, 2^60)
  known <- sprintf("%.0f", c(0, 2, 2, 0, -2, -2, 0, 2^51, -2^51 - 2, 2^60))
  small <- abs(tried) < 2^31 & !is.null(dialect$round_small)
  rounded <- c(dialect$round(sql_number(tried, dialect)), if (any(small)) dialect$round_small(sql_number(tried[small], dialect)))
  quoted <- "it's \\ \"so\""
  got <- ask(paste("SELECT", paste0(dialect$text(rounded), " AS r", seq_along(rounded), collapse = ", "), ",", dialect$text(dialect$string(quoted)), "AS quoted"))
  if (!identical(sub("^-0$", "0", unname(unlist(lapply(got[seq_along(rounded)], as.character)))), c(known, known[small]))) {
    stop_classed("database", c("This database does not round like {.fn release}, so it cannot add up the totals.", i = other_source), call = call)
  }
  if (!identical(as.character(got$quoted), quoted)) {
    stop_classed("database", c("This database does not read quoted strings as {.fn release} writes them, so it cannot identify levels.", i = other_source), call = call)
  }
}

# Of each variable: `value`, a double or a code; when it is `missing`; and when it is `wrong`.
database_variables <- function(columns, types, dialect, call) {
  if (isTRUE(columns$weighted)) stop_classed("database", c("{.fn release} does not compute weighted products in a database.", i = other_source), call = call)
  variables <- unique(columns$columns$variable)
  if (length(columns$functions)) {
    stop_classed("database", c("{.fn release} does not compute {.code {names(columns$functions)}} in a database.", i = other_source), call = call)
  }
  absent <- setdiff(variables, names(types))
  if (length(absent)) stop_classed("data", c("{.arg data} must have every variable of the statistic.", x = "Missing: {.var {absent}}."), call = call)
  lapply(stats::setNames(nm = variables), function(v) {
    name <- dialect$name(v)
    type <- types[[v]]
    number <- is.numeric(type) || inherits(type, "integer64")
    levels <- columns$levels[[v]]
    missing <- paste0(name, " IS NULL", if (number && !is.integer(type) && !is.null(dialect$nan)) paste(" OR", dialect$nan(dialect$double(name))))
    if (!is.null(levels)) {
      codes <- paste0("CASE", paste0(" WHEN ", has_level(name, type, levels, dialect), " THEN ", seq_along(levels) - 1L, collapse = ""), " ELSE -1 END")
      return(list(value = codes, missing = missing, wrong = paste0("NOT (", missing, ") AND (", codes, ") = -1")))
    }
    if (!number && !is.logical(type)) {
      stop_classed("data", "{.arg data} must have numbers in {.var {v}}, but the column is of class {.cls {class(type)[1]}}.", call = call)
    }
    value <- if (is.logical(type)) sql_when(name, sql_number(1, dialect), sql_number(0, dialect)) else dialect$double(name)
    list(value = value, missing = missing, wrong = if (!is.null(dialect$wrong)) dialect$wrong(name), compared = number && !is.null(dialect$number))
  })
}

# does the column have that level, compared as the text that R makes of it?
has_level <- function(name, type, levels, dialect) {
  if (is.logical(type)) return(ifelse(levels == "TRUE", name, ifelse(levels == "FALSE", paste("NOT", name), "1 = 0")))
  if (!is.numeric(type)) return(paste0(dialect$text(name), dialect$collate, " = ", dialect$string(enc2utf8(levels))))
  numbers <- suppressWarnings(as.double(levels))
  ifelse(is.finite(numbers) & level_text(numbers) == levels, paste0(dialect$double(name), " = ", sql_number(replace(numbers, !is.finite(numbers), 0), dialect)), "1 = 0")
}

# list(sql, components: names of each part's sums; missing: NULL, or a query that counts exactly what `sql` tells to be there)
totals_query <- function(parts, columns, variables, records, dialect, call) {
  compared <- vapply(variables, function(v) isTRUE(v$compared), TRUE)
  first <- if (length(variables) == 0L) c(c1 = "1") else unlist(lapply(seq_along(variables), function(k) {
    v <- variables[[k]]
    exprs <- c(c = v$value, m = if (!compared[[k]]) sql_when(v$missing, 1, 0), w = if (!is.null(v$wrong)) sql_when(v$wrong, 1, 0))
    stats::setNames(exprs, paste0(names(exprs), k))
  }))
  made <- lapply(seq_along(parts), function(k) {
    part <- parts[[k]]
    own <- part$statistic$columns
    place <- match(own$variable, names(variables))
    value <- ifelse(is.na(own$level), paste0("c", place), "")
    for (j in which(!is.na(own$level))) {
      value[j] <- sql_when(paste0("c", place[j], " = ", match(own$level[j], columns$levels[[own$variable[j]]]) - 1L), sql_number(1, dialect), sql_number(0, dialect))
    }
    part_layers(part, value, paste0("p", k), dialect, call)
  })
  depth <- max(0L, lengths(lapply(made, `[[`, "layers")))
  layers <- c(list(first), lapply(seq_len(depth), function(d) unlist(lapply(made, function(m) if (d <= length(m$layers)) m$layers[[d]]))))
  sql <- records
  # the last columns that others use several times
  shared <- 1L + max(0L, vapply(made, `[[`, 0L, "shared"))
  for (d in seq_along(layers)) {
    exprs <- layers[[d]]
    sql <- paste0("(", if (d == shared) dialect$fence, "SELECT ", if (d > 1L) "s.*, ", paste0(exprs, " AS ", names(exprs), collapse = ", "), " FROM ", sql, ") s")
  }
  sums <- unlist(lapply(made, `[[`, "components"))
  checks <- names(first)[!startsWith(names(first), "c")]
  total <- function(name) if (length(name)) paste0(dialect$text(dialect$sum(name)), " AS ", name)
  compared <- which(compared)
  complete <- if (length(compared)) {
    numbers <- paste(dialect$number(paste0("c", compared)), collapse = " AND ")
    paste(dialect$text(paste0("COUNT(CASE WHEN ", numbers, " THEN 1 END)")), "AS complete")
  }
  each <- vapply(compared, function(k) paste(dialect$text(paste0("SUM(", sql_when(variables[[k]]$missing, 1, 0), ")")), "AS", paste0("m", k)), "")
  list(sql = paste("SELECT", paste(c(paste(dialect$text("COUNT(*)"), "AS n"), complete, total(c(checks, sums))), collapse = ", "), "FROM", sql),
       missing = if (length(each)) paste("SELECT", paste(each, collapse = ", "), "FROM", records), components = lapply(made, `[[`, "components"))
}

# Layers of expressions that end in whole units of each component: `value` are the part's columns; `shared` is the last of the
# layers whose columns are used several times.
part_layers <- function(part, value, prefix, dialect, call) {
  statistic <- part$statistic
  named <- function(letter, exprs) stats::setNames(exprs, paste0(prefix, letter, seq_along(exprs)))
  fields <- statistic_fields(statistic)
  number <- function(v) sql_number(v, dialect)
  round_units <- function(names, unit = part$unit) {
    units <- named("u", ifelse(unit == 1, names, paste0(names, " * ", number(1 / unit))))
    small <- apply(abs(component_limits(statistic)), 1L, max) / part$unit < 2^30
    round_small <- dialect$round_small %||% dialect$round
    rounded <- named("r", ifelse(small, round_small(names(units)), dialect$round(names(units))))
    list(list(units, rounded), names(rounded))
  }
  bounded <- function(v, lower, upper) (dialect$bounded %||% sql_bounded)(v, number(lower), number(upper))
  grouped <- statistic$name == "by"
  summed <- if (grouped) statistic$statistic else statistic
  code <- if (grouped) value[length(value)]
  if (grouped) value <- value[-length(value)]
  by_group <- function(terms) {
    cells <- expand.grid(group = seq_len(fields$groups) - 1, term = terms, stringsAsFactors = FALSE)
    named("g", sql_when(paste0(code, " = ", cells$group), cells$term, number(0)))
  }
  switch(summed$name,
    crossprod = {
      # Columns in the square root of a unit make products in units: powers of two change no rounding.
      root <- if (grouped) 1 else product_root(part$unit, fields)
      fields[c("scale", "shift", "lower", "upper")] <- lapply(fields[c("scale", "shift", "lower", "upper")], function(x) x / root)
      shift <- ifelse(fields$shift == 0, "", paste(" +", number(fields$shift)))
      scaled <- named("x", paste0("(", number(fields$scale), " * ", value, shift, ")"))
      clamped <- named("v", bounded(names(scaled), fields$lower, fields$upper))
      names <- names(clamped)
      layers <- list(scaled, clamped)
      # a product's factors may be products, which come before it
      ready <- length(names)
      while (length(names) < length(summed$components)) {
        k <- seq(length(names) - length(fields$lower) + 1L, length(fields$first))
        k <- k[cumprod(fields$first[k] < ready & fields$second[k] < ready) == 1]
        products <- stats::setNames(paste0(names[fields$first[k] + 1], " * ", names[fields$second[k] + 1]), paste0(prefix, "t", k))
        layers <- c(layers, list(products))
        names <- c(names, names(products))
        ready <- length(names)
      }
      cells <- if (grouped) by_group(names)
      layers <- c(layers, if (grouped) list(cells))
      names <- names(cells) %||% names
      rounded <- round_units(names, part$unit / ifelse(seq_along(names) <= length(value), root, root^2))
      list(layers = c(layers, rounded[[1L]]), components = rounded[[2L]], shared = 2L)
    },
    sums = {
      shift <- ifelse(fields$shift == 0, "", paste(" +", number(fields$shift)))
      scaled <- if (summed$rescale) named("x", paste0("(", number(fields$scale), " * ", value, shift, ")"))
      if (length(scaled)) value <- names(scaled)
      inside <- paste0("(", paste0(value, " >= ", number(fields$lower), " AND ", value, " <= ", number(fields$upper), collapse = " AND "), ")")
      kept <- named("v", if (fields$drop != 0) sql_when(inside, value, number(0)) else bounded(value, fields$lower, fields$upper))
      ends <- cumsum(fields$degree)
      products <- named("t", vapply(seq_along(ends), function(j) {
        paste(names(kept)[fields$factor[seq(ends[j] - fields$degree[j] + 1, ends[j])] + 1], collapse = " * ")
      }, ""))
      cells <- if (grouped) by_group(names(products))
      rounded <- round_units(names(cells %||% products))
      list(layers = c(if (length(scaled)) list(scaled), list(kept, products), if (grouped) list(cells), rounded[[1L]]), components = rounded[[2L]],
           shared = 1L + (length(scaled) > 0L))
    },
    counts = ,
    histogram = {
      code <- value
      for (v in which(as.logical(fields$binned %||% numeric(length(value))))) {
        cuts <- inner_breaks(statistic$breaks[[statistic$columns$name[v]]])
        code[v] <- paste0("(", paste(sql_when(paste0(value[v], if (statistic$right) " > " else " >= ", number(cuts)), 1, 0), collapse = " + "), ")")
      }
      coded <- named("v", code)
      ends <- cumsum(fields$members)
      cells <- unlist(lapply(seq_along(ends), function(k) {
        members <- fields$column[seq(ends[k] - fields$members[k] + 1, ends[k])] + 1
        grid <- expand.grid(rev(lapply(fields$levels[members], function(l) seq_len(l) - 1)))
        grid <- grid[rev(seq_along(grid))]
        do.call(paste, c(Map(function(v, codes) paste0(names(coded)[v], " = ", codes), members, grid), sep = " AND "))
      }))
      cells <- named("r", sql_when(cells, sprintf("%.0f", 1 / part$unit), 0))
      list(layers = list(coded, cells), components = names(cells), shared = 1L)
    },
    size = {
      one <- named("r", sprintf("%.0f", 1 / part$unit))
      list(layers = list(one), components = names(one), shared = 0L)
    },
    stop_classed("database", c("{describe_statistic(statistic)} cannot be added up in a database.", i = other_source), call = call))
}

# How many records are nearest to each point of a grid. As in src/stat/quantiles.c, one between two points counts for the upper one, which rounding half to even
# does not give.
points_query <- function(statistic, variables, records, dialect) {
  fields <- statistic_fields(statistic)
  number <- function(v) sql_number(v, dialect)
  bounded <- (dialect$bounded %||% sql_bounded)("x", number(fields$lower), number(fields$upper))
  place <- paste0("(", bounded, " - ", number(fields$lower), ") * ", number(fields$steps / (fields$upper - fields$lower)))
  layers <- list(c(x = variables[[statistic$columns$variable]]$value), c(half_above = paste0(place, " + ", number(0.5))), c(rounded = dialect$round("half_above")),
                 c(point = paste0("rounded - ", sql_when("rounded > half_above", 1, 0))))
  sql <- records
  for (exprs in layers) sql <- paste0("(SELECT ", if (sql != records) "s.*, ", exprs, " AS ", names(exprs), " FROM ", sql, ") s")
  paste("SELECT", dialect$text("point"), "AS point,", dialect$text("COUNT(*)"), "AS n FROM", sql, "GROUP BY point")
}

# the square root of the unit of all components, where that is a power of two and all products are of two columns; else 1
product_root <- function(unit, fields) {
  root <- sqrt(unit[1L])
  of_two <- all(c(fields$first, fields$second) < length(fields$lower))
  if (of_two && all(unit == unit[1L]) && root == 2^round(log2(root))) root else 1
}

# what the database found wrong, in numbers of records
check_database <- function(numbers, variables, levels, call) {
  counts <- function(letter) vapply(sprintf("%s%d", letter, seq_along(variables)), function(name) as.double(numbers[[name]] %||% 0), 0)
  missing <- counts("m")
  if (any(missing > 0)) {
    lines <- sprintf("%s: %.0f missing.", variables[missing > 0], missing[missing > 0])
    stop_classed("missing", c("{.arg data} must have no missing values in the released variables.",
                              stats::setNames(sprintf("{lines[%d]}", seq_along(lines)), rep("x", length(lines))),
                              i = "Decide what a missing value means before the release."), call = call)
  }
  wrong <- counts("w")
  for (k in which(wrong > 0)) {
    v <- variables[k]
    if (is.null(levels[[v]])) stop_classed("data", "{.arg data} must have numbers in {.var {v}}, but {wrong[[k]]} {?is/are} not.", call = call)
    stop_classed("levels", c("{.arg data} must have only the declared levels in {.var {v}}.", x = "{wrong[[k]]} other{?s}.",
                             i = "Declared: {shorten_list(encodeString(levels[[v]], quote = '\"'))}."), call = call)
  }
}

# a whole number as text, in two words
words_of <- function(text) {
  text <- sub("[.]0*$", "", text)
  sign <- if (startsWith(text, "-")) -1 else 1
  digits <- sub("^-", "", text)
  cut <- max(nchar(digits) - 9L, 0L)
  sign * c(if (cut > 0L) as.double(substr(digits, 1L, cut)) else 0, as.double(substr(digits, cut + 1L, nchar(digits))))
}
