# design() with sliders. All computations are in design() and design_noise(); the app only has inputs and outputs.

#' Explore designs interactively
#'
#' An app in the browser, with sliders for the budget, the number of records, the bounds and the prior. It immediately shows the noise in the numbers to be
#' published. On request, it computes the expected widths of posterior intervals ([design()]) and compares them with earlier designs.
#'
#' @param model A model; or a function of one number that returns a model, such as `function(scale) model_lm(prior = prior_normal(0, scale))`. The
#'   number then gets a slider.
#' @param statistic A statistic; or, with `bounds`, a function of the bounds that returns a statistic, such as `function(bounds) stat_crossprod(y ~ x, bounds)`.
#' @param mechanism As in [design()]: a function that returns a mechanism for a budget.
#' @param bounds If `statistic` is a function: a named list with a pair of numbers for each variable, the initial slider values. It may also contain levels of
#'   factors, which have no slider.
#' @param prior If `model` is a function: the smallest and the largest value of its argument, both positive.
#' @param epsilon,n Initial slider values for the budget and the number of records.
#' @param replicates Number of simulated releases per design; more take longer and reduce the Monte Carlo error.
#' @param parameters,level,seed,... As in [design()].
#' @param neighbours As in [release()].
#'
#' @return A shiny app, which runs when it is printed.
#' @details The app uses only public facts: designs are simulated. The sliders for the budget and the number of records are on a log scale.
#' @section Errors: `noiseaware_error_argument`; `noiseaware_error_package` if shiny is not installed. Errors from a design are shown in the app.
#' @family evaluation
#' @examples
#' app <- function() {
#'   explore_design(function(scale) model_lm(prior = prior_normal(0, scale)),
#'     function(bounds) stat_crossprod(y ~ x, bounds),
#'     bounds = list(y = c(-5, 5), x = c(0, 10)), prior = c(0.1, 10))
#' }
#' if (interactive()) app()
#' @export
explore_design <- function(model, statistic, mechanism = mech_laplace, bounds = NULL, prior = NULL, epsilon = 1, n = 200, replicates = 10, ...,
                           parameters = NULL, level = 0.95, seed = 1, neighbours = c("replace", "add_remove")) {
  check_given()
  neighbours <- match_neighbours(neighbours)
  if (is.function(model)) {
    ok <- is.numeric(prior) && length(prior) == 2L && all(is.finite(prior)) && prior[1L] > 0 && prior[1L] < prior[2L]
    if (!ok) stop_argument("prior", "two positive numbers, the smallest and the largest argument of the function `model`", describe(prior))
  } else {
    check_model(model)
    if (!is.null(prior)) stop_argument("prior", "NULL if `model` is not a function of it", describe(prior))
  }
  if (is.function(statistic)) {
    ok <- is.list(bounds) && length(bounds) > 0L && checkmate::test_names(names(bounds), "unique") && any(vapply(bounds, is_range, TRUE))
    if (!ok) stop_argument("bounds", "a named list with a pair of numbers for each variable, for the function `statistic`", describe(bounds))
  } else {
    check_statistic(statistic)
    if (!is.null(bounds)) stop_argument("bounds", "NULL if `statistic` is not a function of them", describe(bounds))
  }
  if (!is.function(mechanism)) stop_argument("mechanism", "a function that makes a mechanism from a budget, such as mech_laplace", describe(mechanism))
  epsilon <- check_positive(epsilon, "epsilon")
  n <- check_count(n, "n")
  replicates <- check_count(replicates, "replicates", lower = 2)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  check_installed("shiny", "runs the app")
  chosen <- list(model = model, statistic = statistic, mechanism = mechanism, bounds = Filter(is_range, bounds), levels = Filter(Negate(is_range), bounds),
                 prior = prior, epsilon = epsilon, n = n, budget = mechanism_budget(mechanism), neighbours = neighbours, replicates = replicates, level = level,
                 further = c(list(...), list(parameters = parameters, seed = check_seed(seed))))
  shiny::shinyApp(design_page(chosen), function(input, output, session) design_server(chosen, input, output))
}

# A row for each number that would be published: its noise's sd, what n records can add up to without noise, and the sd's share of that range. Of single records
# these are of one record.
design_noise <- function(statistic, mechanism, n, neighbours) {
  rows <- lapply(design_parts(statistic, mechanism, neighbours), function(part) {
    scale <- mechanism_scale(part$mechanism, part$statistic, neighbours = neighbours)
    limits <- component_limits(part$statistic) %||% matrix(NA_real_, length(part$statistic$components), 2L)
    if (part$statistic$kind != "records") limits <- n * limits
    name <- if (part$name == "") part$statistic$components else paste0(part$name, ": ", part$statistic$components)
    data.frame(component = name, noise_sd = rep_len(mechanism_sd(part$mechanism, scale), nrow(limits)), least = limits[, 1L], largest = limits[, 2L])
  })
  rows <- do.call(rbind, rows)
  rows$share <- rows$noise_sd / (rows$largest - rows$least)
  rows
}

is_range <- function(x) is.numeric(x) && length(x) == 2L && all(is.finite(x)) && x[1L] < x[2L]

# ---- the page ------------------------------------------------------------------------

design_page <- function(chosen) {
  log_slider <- function(id, label, value, lowest, highest) {
    shiny::sliderInput(id, label, lowest, highest, min(max(round(log10(value), 2), lowest), highest), step = 0.05)
  }
  ends <- if (!is.null(chosen$prior)) log10(chosen$prior)
  shiny::fluidPage(
    shiny::titlePanel("How precise would a release be?"),
    shiny::sidebarLayout(
      shiny::sidebarPanel(
        log_slider("budget", paste0("log10 of the budget ", chosen$budget), chosen$epsilon, -2, 2),
        log_slider("records", "log10 of the number of records", chosen$n, 1, 5),
        lapply(names(chosen$bounds), function(name) {
          at <- chosen$bounds[[name]]
          width <- diff(at)
          shiny::sliderInput(bounds_id(chosen, name), paste("bounds of", name), at[1L] - width, at[2L] + width, at, step = width / 50)
        }),
        if (length(ends)) shiny::sliderInput("prior", "log10 of the prior's number", ends[1L], ends[2L], mean(ends), step = diff(ends) / 40),
        shiny::actionButton("compute", "Expected intervals"),
        shiny::helpText(sprintf("%s simulated releases; earlier designs stay for comparison.", chosen$replicates))),
      shiny::mainPanel(
        shiny::textOutput("said"),
        shiny::h4("Noise in the published numbers"),
        shiny::tableOutput("noise"),
        shiny::h4(sprintf("Expected width of the %s%% intervals", format_number(100 * chosen$level))),
        shiny::textOutput("warned"),
        shiny::plotOutput("plot", height = "320px"),
        shiny::tableOutput("widths"))))
}

# names of variables may be anything
bounds_id <- function(chosen, name) paste0("bounds", match(name, names(chosen$bounds)))

# ---- the server ----------------------------------------------------------------------

design_server <- function(chosen, input, output) {
  current <- shiny::reactive(design_asked(chosen, shiny::reactiveValuesToList(input)))
  output$said <- shiny::renderText(shown_or_refused(design_sentence(chosen, current())))
  output$noise <- shiny::renderTable(shown_or_refused({
    asked <- current()
    app_table(design_noise(asked$statistic, asked$mechanism, asked$n, chosen$neighbours), c(noise_sd = "noise sd", share = "noise sd / range"))
  }))
  tried <- shiny::reactiveVal(NULL)
  shiny::observeEvent(input$compute, {
    found <- shiny::withProgress(message = "Simulating releases", tryCatch(expected_widths(chosen, current()), noiseaware_error = function(e) e))
    before <- tried()
    refused <- inherits(found, "error")
    if (!refused) found$rows$trial <- max(0, before$rows$trial) + 1
    tried(list(rows = if (refused) before$rows else rbind(before$rows, found$rows), warned = if (!refused) found$warned, refused = if (refused) found))
  }, ignoreNULL = FALSE)
  latest <- function() {
    shiny::req(tried())
    shiny::validate(shiny::need(is.null(tried()$refused), error_text(tried()$refused)))
    tried()$rows
  }
  output$widths <- shiny::renderTable({
    rows <- latest()
    shown <- c("trial", chosen$budget, "n", if (length(chosen$bounds)) "bounds", if (is.function(chosen$model)) "prior", "variable", "width", "sd", "of_prior")
    app_table(rows[order(-rows$trial), shown], c(variable = "parameter", sd = "posterior sd", of_prior = "width / prior width"))
  })
  output$warned <- shiny::renderText(paste(tried()$warned, collapse = " "))
  output$plot <- shiny::renderPlot(plot_widths(latest()), res = 96)
}

app_table <- function(rows, titles, most = 60L) {
  rows <- utils::head(rows, most)
  numbers <- vapply(rows, is.numeric, TRUE)
  rows[numbers] <- lapply(rows[numbers], rounded_text, 3)
  names(rows) <- ifelse(names(rows) %in% names(titles), titles[names(rows)], names(rows))
  rows
}

# the statistic, the mechanism and the model that the sliders say
design_asked <- function(chosen, input) {
  bounds <- lapply(stats::setNames(nm = names(chosen$bounds)), function(name) input[[bounds_id(chosen, name)]])
  budget <- signif(10^input$budget, 3)
  prior <- if (is.function(chosen$model)) signif(10^input$prior, 3)
  list(budget = budget, n = signif(10^input$records, 3), bounds = bounds, prior = prior,
       statistic = if (is.function(chosen$statistic)) chosen$statistic(c(bounds, chosen$levels)) else chosen$statistic,
       mechanism = do.call(chosen$mechanism, stats::setNames(list(budget), chosen$budget)),
       model = if (is.null(prior)) chosen$model else chosen$model(prior))
}

design_sentence <- function(chosen, asked) {
  prior <- if (!is.null(asked$prior)) paste0(", prior ", format_number(asked$prior))
  paste0(chosen$budget, " = ", format_number(asked$budget), ", ", format_size(asked$n), " records", prior, ": ",
         format(asked$mechanism), "; ", describe_statistic(asked$statistic))
}

# rows of design(), and what they were asked for
expected_widths <- function(chosen, asked) {
  short <- list(chains = 1, iter = 1000)
  arguments <- c(list(asked$model, asked$statistic, chosen$mechanism, asked$budget, asked$n, chosen$replicates, level = chosen$level, neighbours = chosen$neighbours),
                 chosen$further, short[setdiff(names(short), names(chosen$further))])
  warned <- character()
  plan <- withCallingHandlers(do.call(design, arguments), warning = function(w) {
    # the column of_prior says that the prior decides
    if (!inherits(w, "noiseaware_warning_prior")) warned <<- c(warned, error_text(w))
    invokeRestart("muffleWarning")
  })
  rows <- as.data.frame(plan)
  rows <- rows[!rows$variable %in% attr(plan, "mirrored"), ]
  rows$bounds <- paste(vapply(asked$bounds, function(at) paste(format_number(at), collapse = " to "), ""), collapse = "; ")
  rows$prior <- asked$prior %||% NA_real_
  list(rows = rows, warned = warned)
}

plot_widths <- function(rows) {
  rows$variable <- factor(rows$variable, unique(rows$variable))
  ggplot2::ggplot(rows, ggplot2::aes(x = factor(.data$trial), y = .data$width)) +
    ggplot2::geom_col(width = 0.6, fill = "grey60") +
    facet_variables(scales = "free_y") +
    ggplot2::labs(x = "trial", y = "expected width") +
    theme_noiseaware()
}

shown_or_refused <- function(code) {
  tryCatch(code, noiseaware_error = function(e) shiny::validate(shiny::need(FALSE, error_text(e))))
}

error_text <- function(e) if (!is.null(e)) cli::ansi_strip(paste(c(e$message, e$body), collapse = " "))
