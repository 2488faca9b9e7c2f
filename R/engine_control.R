# The entries of `control`, which each engine lists (engine_control()): possible values, the check, and the text on the help page.

# The help page's words, from the table.
control_help <- function() {
  entry <- function(name, one) {
    sprintf("  * `%s`, %s (default: %s): %s", name, one$must, one$default, paste(one$help, collapse = " "))
  }
  of_method <- function(method) {
    entries <- engine_control(as_engine(method))
    if (length(entries) == 0L) return(sprintf("* `\"%s\"` has none.", method))
    c(sprintf("* `\"%s\"`:", method), unlist(Map(entry, names(entries), entries)))
  }
  c("@param control A named list. The valid entries depend on the method; with `method = \"auto\"` the entries are checked",
    "  once a method has been chosen.",
    unlist(lapply(sampling_methods, of_method)),
    "* any method: `beside`, TRUE or FALSE (default: TRUE): whether a fit that depends on clamping is compared with one for natural limits, see the section",
    "  Warnings of [fit_methods].")
}

# Before the method is known: a list of entries that some method has. After: the entries of the
# method, with values that it takes.
check_control <- function(control, method, call = caller_env()) {
  named <- is.list(control) && (length(control) == 0L || (!is.null(names(control)) && all(nzchar(names(control)))))
  if (!named) stop_argument("control", "a named list", describe(control), call = call)
  twice <- unique(names(control)[duplicated(names(control))])
  if (length(twice)) stop_classed("argument", "{.arg control} must have each entry only once, but has {.field {twice}} more than once.", call = call)
  if (!is.null(control$beside)) check_flag(control$beside, "control$beside", call = call)
  control <- control[names(control) != "beside"]
  if (length(control) == 0L) return(control)
  methods <- if (method == "auto") sampling_methods else method
  known <- Reduce(function(a, b) utils::modifyList(b, a), lapply(methods, function(m) engine_control(as_engine(m))))
  strange <- setdiff(names(control), names(known))
  if (length(strange) && length(known) == 0L) {
    stop_classed("argument", "{.arg control} must be empty for method {.val {method}}, but has {.field {strange}}.", call = call)
  }
  if (length(strange)) {
    whose <- if (method != "auto") paste0(" for method \"", method, "\"")
    stop_classed("argument", "{.arg control} must have only the entries {.field {names(known)}}{whose}, but has {.field {strange}}.", call = call)
  }
  if (method == "auto") return(control)
  for (name in names(control)) if (!is.null(control[[name]])) known[[name]]$check(control[[name]], paste0("control$", name), call)
  control
}

# Does an R function see all records in one call?
whole_at_once <- function(release, bound) {
  custom <- function(part) inherits(part$statistic$statistic %||% part$statistic, "stat_custom")
  isTRUE(bound$callbacks) || any(vapply(release_parts(release), custom, TRUE))
}

check_run <- function(chains, iter, warmup, thin, seed, call = caller_env()) {
  chains <- check_count(chains, "chains", call = call)
  iter <- check_count(iter, "iter", call = call)
  warmup <- check_count(warmup, "warmup", lower = 0, call = call)
  thin <- check_count(thin, "thin", call = call)
  if (iter <= warmup) {
    stop_classed("argument", "{.arg iter} must be larger than {.arg warmup}, but iter = {iter}, warmup = {warmup}.", call = call)
  }
  if (iter - warmup < thin) {
    stop_classed("argument", "{.arg thin} must leave a draw, but is {thin} with {iter - warmup} iterations after warmup.", call = call)
  }
  list(chains = chains, iter = iter, warmup = warmup, thin = thin, seed = seed)
}

say_init_unused <- function(method) {
  cli::cli_inform("Method {.val {method}} draws independently here: {.arg init} is not used.", class = "noiseaware_message_init")
}

# a list of starting points in the plug-in's coordinates, or NULL
check_init <- function(init, bound, chains, call = caller_env()) {
  if (is.null(init)) return(NULL)
  if (is.numeric(init)) init <- rep(list(init), chains)
  if (!is.list(init) || length(init) != chains) {
    stop_argument("init", paste("NULL or a list of", chains, "named vectors, one for each chain"), describe(init), call = call)
  }
  lapply(init, function(values) bound_theta(bound, values, call, "init"))
}
