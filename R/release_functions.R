# Functions of variables in release files, stored as the data that utils_functions.R parses from their names.

# By name its variable, the bounds of that and the steps: what the name says, for readers that have no R.
functions_json <- function(statistic) {
  functions <- statistic$functions
  if (is.null(functions)) return(NULL)
  each <- Map(function(f, of) {
    c(list(variable = f$variable, steps = lapply(f$steps, step_json)),
      if (!is.null(of$bounds)) list(bounds = if (is.character(of$bounds)) of$bounds else exact_numbers(of$bounds)))
  }, functions_named(names(functions)), functions)
  list(functions = each)
}

step_json <- function(step) {
  constants <- lapply(step[setdiff(names(step), "name")], function(x) {
    if (!is.numeric(x)) return(if (is.character(x)) I(x) else x)
    if (all(is.finite(x))) exact_numbers(x) else I(ifelse(is.finite(x), exact_text(x), ifelse(x > 0, "Inf", "-Inf")))
  })
  c(list(`function` = step$name), constants[!vapply(constants, is.null, TRUE)])
}

# The name is read by the same grammar as a formula; the file must say of it what it says itself.
functions_from_json <- function(x, statistic, refuse) {
  if (!is.list(x) || length(x) == 0L || !checkmate::test_names(names(x), "unique")) refuse("The statistic's functions must be an object with an entry for each.")
  check_entries(x, refuse)
  functions <- Map(function(entry, label) {
    where <- paste("the function", label)
    require_fields(entry, c("variable", "steps", intersect("bounds", names(entry))), where, refuse)
    known <- known_functions()
    steps <- if (is.list(entry$steps)) lapply(entry$steps, function(s) if (is.list(s)) s[["function"]])
    strange <- Filter(function(s) !checkmate::test_choice(s, known), steps)
    if (length(strange)) refuse(paste0(where, " must be made of known functions: ", paste(known, collapse = ", "), "."))
    f <- named_function(label)
    if (is.null(f) || !identical(f$variable, entry$variable)) refuse(paste0("The name of ", where, " must state its variable and what is computed."))
    told <- jsonlite::parse_json(render_json(list(steps = lapply(f$steps, step_json))))$steps
    doubles <- function(x) rapply(x, as.double, "integer", how = "replace")
    if (!identical(doubles(told), doubles(entry$steps))) refuse(paste0("The steps of ", where, " must match its name."))
    list(variable = f$variable, bounds = if ("bounds" %in% names(entry)) json_bound(entry$bounds, paste("The bounds of", f$variable), refuse))
  }, x, names(x))
  declared <- bounds_of_functions(lapply(stats::setNames(functions, vapply(functions, `[[`, "", "variable")), `[[`, "bounds"), names(functions), "bounds")
  raw <- of_raw_variables(statistic)
  for (label in names(functions)) {
    at <- match(label, raw$columns$variable)
    has <- if (!is.na(at)) raw$levels[[label]] %||% c(raw$columns$lower[at], raw$columns$upper[at])
    if (!same_image(has, declared[[label]])) refuse(paste0("The statistic must have the bounds that ", label, " can take between the bounds of its variable."))
  }
  with_functions(statistic, attr(declared, "functions"))
}

# Machines may differ in the last digit of a logarithm.
same_image <- function(a, b) if (is.character(b)) identical(a, b) else is.numeric(a) && isTRUE(all.equal(a, b, tolerance = 1e-12))
