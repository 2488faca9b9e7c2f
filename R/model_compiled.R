#' A model of your own, written in C
#'
#' A model is a table of C functions over blocks of records, described in the
#' header `noiseaware.h` in `system.file("include", package = "noiseaware")`. It needs nothing from R and links to no library, and it runs as fast as a built-in
#' model.
#'
#' @param symbol Name of the C function that returns the address of the table,
#'   `const struct noiseaware_model_class *symbol(void)`.
#' @param package,dll Where the function is; give one of the two. `package` is the name of a package that has the function in its library or has registered it
#'   with `R_RegisterCCallable()`. `dll` is the path of a shared library, as made by `R CMD SHLIB`, with or without its extension.
#' @param parameters Names of the values reported for each draw, in the order of the hook `report`.
#' @param variables Names of the records' columns, in the model's order; `NULL` means the variables of the release.
#' @param fields Named list of numeric vectors that the hook `create` may ask for,
#'   such as the parameters of a prior. The public bounds of the columns are added as
#'   `lower` and `upper`.
#'
#' @details Compile with `R CMD SHLIB model.c`, with the environment variable `PKG_CPPFLAGS` set to `-I` followed by the folder of the header. A complete pair
#'   of files, `gamma_model.c` and `gamma_model.R`, is in `system.file("examples", package = "noiseaware")`; see also
#'   `vignette("compiled-model", package = "noiseaware")`. Try a new model with [debug_model()] first: an error in C may end the R session.
#'
#'   Each process that runs a chain looks up the library again, so under `future::plan()` its path must also exist for these processes.
#'
#' @return A model: an object of class `model_compiled`.
#' @section Errors: `noiseaware_error_compiled`: the package, library or symbol does not exist, or the library cannot be loaded. Or the interface version (its
#'   number or the size of its table) differs, required hooks are missing, sizes are invalid, or the model rejects the fields. `noiseaware_error_variables`.
#' @seealso [model_custom()] for a model in R.
#' @family models of your own
#' @examplesIf interactive()
#' example <- system.file("examples", "gamma_model.R", package = "noiseaware")
#' source(example, echo = TRUE)
#' @export
model_compiled <- function(symbol, package = NULL, dll = NULL, parameters, variables = NULL, fields = list()) {
  check_given("compiled")
  if (!checkmate::test_string(symbol, min.chars = 1L) || !validUTF8(symbol)) stop_argument("symbol", "the name of a C function", describe(symbol), "compiled")
  given <- check_one_of(list(package = package, dll = dll), "compiled")
  place <- if (given == "dll") dll else package
  if (!checkmate::test_string(place, min.chars = 1L)) {
    stop_argument(given, if (given == "dll") "the path of a shared library" else "the name of a package", describe(place), "compiled")
  }
  if (!checkmate::test_character(parameters, min.len = 1L, any.missing = FALSE, unique = TRUE, min.chars = 1L)) {
    stop_argument("parameters", "different names of the reported values", describe(parameters), "compiled")
  }
  ok <- is.null(variables) || checkmate::test_character(variables, min.len = 1L, any.missing = FALSE, unique = TRUE)
  if (!ok) stop_argument("variables", "NULL or different names of variables", describe(variables), "compiled")
  fields <- check_fields(fields)
  source <- list(symbol = symbol, package = package, dll = if (!is.null(dll)) find_library(dll))
  table <- .Call(ffi_compiled_hooks, compiled_address(source))
  check_hooks(table, symbol)
  new_model("compiled", source = source, title = table$name, moves = table$hooks[["move"]], forms = table$hooks[["from_innovations"]], parameters = parameters,
            variables = variables, fields = fields, class = "model_compiled")
}

check_fields <- function(fields, call = caller_env()) {
  ok <- is.list(fields) && !is.object(fields) && (length(fields) == 0L || checkmate::test_names(names(fields), "unique"))
  if (!ok) stop_argument("fields", "a list of numeric vectors with different names", describe(fields), "compiled", call)
  for (name in names(fields)) {
    value <- fields[[name]]
    if (!is.numeric(value) || anyNA(value)) stop_argument(paste0("fields$", name), "numbers without NA", describe(value), "compiled", call)
  }
  lapply(fields, as.double)
}

# full path of a shared library, its extension added if need be
find_library <- function(dll, call = caller_env()) {
  candidates <- c(dll, paste0(dll, .Platform$dynlib.ext))
  found <- candidates[file.exists(candidates) & !dir.exists(candidates)]
  if (length(found) == 0L) stop_classed("compiled", "There is no shared library {.file {dll}}.", call = call)
  normalizePath(found[1L])
}

# Address of the function that returns the table of hooks. Called in every
# process where the model runs, it loads the library there.
compiled_address <- function(source, call = caller_env()) {
  if (is.null(source$dll)) return(package_address(source$symbol, source$package, call))
  # once a block of iterations, so not by a search of all that is loaded
  seen <- native_symbol(source$symbol, sub("[.][^.]*$", "", basename(source$dll)))
  if (!is.null(seen) && identical(seen$dll[["path"]], source$dll)) return(seen$address)
  library <- load_library(source$dll, call)
  native_symbol(source$symbol, library)$address %||%
    stop_classed("compiled", c("There is no function {.fn {source$symbol}} in {.file {source$dll}}.",
                               i = "Is it declared static, or spelled differently?"), call = call)
}

# dyn.load() of a library that is loaded would load it again, at other addresses
load_library <- function(path, call) {
  loaded <- unclass(getLoadedDLLs())
  place <- match(path, vapply(loaded, function(d) d[["path"]], ""))
  if (!is.na(place)) return(loaded[[place]])
  tryCatch(dyn.load(path), error = function(e) {
    stop_classed("compiled", c("The library {.file {path}} cannot be loaded.", x = "{conditionMessage(e)}"), call = call)
  })
}

package_address <- function(symbol, package, call) {
  if (!requireNamespace(package, quietly = TRUE)) {
    stop_classed("compiled", "The package {.pkg {package}} is not installed, or cannot be loaded.", call = call)
  }
  callable <- function() tryCatch(.Call(ffi_compiled_callable, package, symbol), error = function(e) NULL)
  native_symbol(symbol, package)$address %||% callable() %||%
    stop_classed("compiled", c("There is no function {.fn {symbol}} in the package {.pkg {package}}.",
                               i = "It must be visible, or registered with {.code R_RegisterCCallable()}."), call = call)
}

native_symbol <- function(symbol, library) {
  tryCatch(getNativeSymbolInfo(symbol, library, unlist = TRUE, withRegistrationInfo = FALSE), error = function(e) NULL)
}

check_hooks <- function(table, symbol, call = caller_env()) {
  header <- table$header
  if (header[["absent"]]) stop_classed("compiled", "{.fn {symbol}} must return a table of hooks, but returned NULL.", call = call)
  if (header[["abi"]] != header[["our_abi"]]) {
    stop_classed("compiled", c("The model must be compiled for version {header[['our_abi']]} of the interface, but was compiled for {header[['abi']]}.",
                               i = "Recompile it with this package's header."), call = call)
  }
  if (header[["size"]] != header[["our_size"]]) {
    stop_classed("compiled", c("The model's table of hooks must have {header[['our_size']]} bytes, but has {header[['size']]}.",
                               i = "Set {.code .size = sizeof(struct noiseaware_model_class)}, and recompile it with this package's header."),
                 call = call)
  }
  there <- table$hooks
  needed <- c("create", "rprior", "set", "rrecords", if (there[["rtheta"]] || !there[["log_density"]]) c("add", "rtheta"),
              if (there[["log_density"]]) "dprior")
  absent <- setdiff(needed, names(there)[there])
  if (length(absent)) stop_classed("compiled", "The model lacks the hook{?s} {.field {absent}}.", call = call)
  together <- c("dprior", "set_move", "move")
  if (any(there[together[-1L]]) && !all(there[together])) {
    stop_classed("compiled", "The model must have all or none of the hooks {.field {together}}, but lacks {.field {together[!there[together]]}}.",
                 call = call)
  }
  if (there[["invert"]] && !there[["report"]]) {
    stop_classed("compiled", "The model has the hook {.field invert}, but lacks {.field report}.", call = call)
  }
}

#' @export
format.model_compiled <- function(x, ...) {
  source <- x$source
  c(paste("<model> compiled,", if (nzchar(x$title)) x$title else source$symbol),
    paste0("  from       ", source$symbol, "() in ", if (is.null(source$dll)) paste("package", source$package) else basename(source$dll)),
    paste0("  variables  ", if (is.null(x$variables)) "the release's" else paste(x$variables, collapse = ", ")),
    paste0("  parameters ", paste(x$parameters, collapse = ", ")),
    paste0("  moves      ", if (x$moves) "non-centred" else "none: the plain sampler, mixing may be slow"))
}

#' @export
variable_kinds.model_compiled <- function(x) c("number", "code")

#' @export
bind_columns.model_compiled <- function(model, columns, levels, formula, call) {
  variables <- model$variables %||% columns$name
  columns <- columns_in_order(variables, columns, call)
  bounds <- list(lower = as.double(columns$lower), upper = as.double(columns$upper))
  fields <- c(model$fields, bounds[setdiff(names(bounds), names(model$fields))])
  spec <- list(name = "compiled", find = compiled_address, source = model$source, fields = fields)
  check_sizes(.Call(ffi_compiled_sizes, spec), model, variables, call)
  structure(list(model = model, columns = columns, levels = levels, formula = formula, spec = spec, parameters = model$parameters),
            class = c("bound_compiled", "noiseaware_bound"))
}

check_sizes <- function(created, model, variables, call) {
  status <- created$status
  made <- created$sizes
  refuse <- function(name, must) stop_classed("compiled", "The model's size {.field {name}} must be {must}, but is {made[[name]]}.", call = call)
  if (status != 0L) {
    stop_classed("compiled", c("The model rejects its fields: its hook {.fn create} returned {status}.",
                               i = "Fields given: {.val {names(model$fields)}}."), call = call)
  }
  if (made[["columns"]] != length(variables)) refuse("columns", paste("the number of variables,", length(variables)))
  if (made[["parameters"]] < 1L || made[["parameters"]] > 1e5) refuse("parameters", "from 1 to 100,000")
  if (made[["complete"]] < 0L || made[["complete"]] > 1e7) refuse("complete", "from 0 to 10,000,000")
  if (made[["reported"]] != length(model$parameters)) refuse("reported", paste("the number of names in parameters,", length(model$parameters)))
  if (model$forms) {
    if (made[["innovations"]] < 1L || made[["innovations"]] > 1000L) refuse("innovations", "from 1 to 1,000")
    if (!made[["innovation"]] %in% 0:2) refuse("innovation", "a kind of random numbers, 0, 1 or 2")
  }
  if (model$moves) check_moves(created, refuse, call)
}

check_moves <- function(created, refuse, call) {
  made <- created$sizes
  moves <- created$moves
  if (made[["moving"]] < 1L || made[["moving"]] > made[["parameters"]]) refuse("moving", paste("from 1 to", made[["parameters"]]))
  if (!created$lists_moves || anyDuplicated(moves) || any(moves < 0L | moves >= made[["parameters"]])) {
    stop_classed("compiled", "The model's {.field moves} must list {made[['moving']]} different place{?s} in theta, from 0 to {made[['parameters']] - 1}.",
                 call = call)
  }
}

#' @export
describe_model.bound_compiled <- function(bound) {
  paste("compiled model", if (nzchar(bound$model$title)) bound$model$title else bound$model$source$symbol)
}
