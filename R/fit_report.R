# A fit as a web page: the page is inst/report/report.Rmd, its texts are in this file.

#' Report a fit as a web page
#'
#' Writes a single HTML file that includes its plots. It contains the release, the model, priors compared with the posterior, diagnostics in words and a
#' posterior predictive check. It also compares the published numbers with the denoised ones, and shows the cost of the noise, a paragraph for the methods
#' section of a paper, and the session information. For a regression it plots predictions, for a table margins, for a survival model curves, and for several
#' sites or groups shrinkage and ranks. The file can be viewed and shared without R.
#'
#' @param fit A fit from [sample_posterior()].
#' @param file Name of the file, which is replaced if it exists.
#' @param title Title of the page; `NULL` uses the model's name.
#' @param databases For the section on the cost of the noise: see [noise_cost()].
#' @param seed Fixes the simulations; see [sample_posterior()].
#' @return The file's name, invisibly.
#' @details
#' The page uses only the release and the fit, so it costs no privacy. If a section does not apply to a fit, such as the confidential numbers for a release of
#' single records, it says why. The page is made by the package rmarkdown and the program pandoc (which RStudio includes). The sections are also available
#' separately: [rstantools::prior_summary()][interop], [plot()][plot.noiseaware_fit], [acceptance()], [bayesplot::pp_check()][pp_check.noiseaware_fit], [noise_cost()].
#' @section Errors: `noiseaware_error_argument`; `noiseaware_error_file` if the file cannot be written; `noiseaware_error_package` if rmarkdown or pandoc is
#'   missing.
#' @family summaries of fits
#' @examples
#' st <- stat_sums(~ bwt + I(bwt^2), bounds = list(bwt = c(500, 5500)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_normal(), chains = 2, iter = 400, seed = 1)
#' # some seconds, with pandoc
#' if (interactive()) report(fit, tempfile(fileext = ".html"))
#' @concept methods section of a paper
#' @concept report of results
#' @export
report <- function(fit, file, title = NULL, databases = 20, seed = 1) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  if (is.null(fit$release)) stop_classed("argument", "{.arg fit} must be a fit to a release.")
  if (!checkmate::test_string(file, min.chars = 1L)) stop_argument("file", "the name of a file", describe(file), "file")
  if (dir.exists(file)) stop_classed("file", "Cannot write {.file {file}}: it is a directory.")
  if (!dir.exists(dirname(file))) stop_classed("file", "Cannot write {.file {file}}: there is no directory {.file {dirname(file)}}.")
  if (!is.null(title) && !checkmate::test_string(title, min.chars = 1L)) stop_argument("title", "NULL or a string", describe(title))
  databases <- check_count(databases, "databases", lower = 2)
  seed <- check_seed(seed) %||% new_seed()
  check_installed("rmarkdown", "makes the page")
  if (!rmarkdown::pandoc_available("1.14")) {
    stop_classed("package", c("The program pandoc, which is needed to make the page, was not found.",
                              i = "It comes with RStudio and Quarto, or from {.url https://pandoc.org}."))
  }
  directory <- tempfile("report-")
  dir.create(directory)
  on.exit(unlink(directory, recursive = TRUE))
  source <- file.path(directory, "report.Rmd")
  file.copy(system.file("report", "report.Rmd", package = "noiseaware"), source)
  compiler_level <- pause_compiler(fit$release, fit$asked)
  on.exit(compiler::enableJIT(compiler_level), add = TRUE)
  values <- new.env(parent = topenv())
  values$fit <- fit
  values$databases <- databases
  values$seed <- seed
  # taken literally, as the title in a header would not be
  named <- c("--metadata", paste0(c("title=", "pagetitle="), title %||% paste0("Posterior: ", describe_model(fit$bound))))[c(1L, 2L, 1L, 3L)]
  page <- without_troubles(rmarkdown::render(source, envir = values, quiet = TRUE, output_options = list(pandoc_args = named)))
  write_whole(paste0(readLines(page, encoding = "UTF-8"), "\n", collapse = ""), file)
  invisible(file)
}

# ---- what the template calls ----------------------------------------------------------

# a part of the page, or the reason why there is none
part_or_reason <- function(code) {
  tryCatch(code, noiseaware_error = function(e) knitr::asis_output(paste0("*Not shown:* ", html_text(paste(c(e$message, e$body), collapse = " ")), "\n")))
}

# text that markdown and HTML leave as it is: signs as entities, as pandoc takes a backslash before a bracket for mathematics
html_text <- function(x) {
  x <- cli::ansi_strip(enc2utf8(x))
  # those that entities are made of come first
  for (sign in strsplit("&#;<>[]\\`*_{}+~^$|!-\"'", "")[[1L]]) x <- gsub(sign, sprintf("\r%d\n", utf8ToInt(sign)), x, fixed = TRUE)
  gsub("\r([0-9]+)\n", "&#\\1;", x)
}

bullets <- function(lines) knitr::asis_output(paste0("\n", paste0("- ", html_text(lines), collapse = "\n"), "\n\n"))

# ---- parts that differ between kinds of fits ---------------------------------------------

release_page <- function(fit, most = 6L) {
  if (!inherits(fit, "noiseaware_pool")) return(if (identical(fit$release$statistic$kind, "records")) print(fit$release) else print(summary(fit$release)))
  whole <- fit$problem$groups$release
  if (!is.null(whole)) return(print(whole))
  for (site in utils::head(names(fit$release), most)) {
    cat(site, "\n")
    print(fit$release[[site]])
    cat("\n")
  }
  if (length(fit$release) > most) cat(length(fit$release) - most, "more sites are not shown\n")
}

prior_page <- function(fit, seed) summarise_prior(fit$bound, seed, if (inherits(fit, "noiseaware_pool")) fit$problem, prob = 0.95)

made_lines <- function(fit) if (inherits(fit, "noiseaware_pool")) pool_fit_lines(fit) else fit_lines(fit)

# What is looked at first: a list of plots.
posterior_pictures <- function(fit) {
  drawn <- if (inherits(fit, "noiseaware_pool")) list(if (fit$pool %in% c("partial", "walk")) plot(fit, "shrinkage") else plot(fit, "intervals")) else
    if (inherits(fit$bound, "bound_survival")) list(plot_survival(fit)) else
      if (inherits(fit$bound, "bound_table")) table_pictures(fit) else
        if (has_covariate(fit)) list(plot(fit, "predictive"))
  Filter(Negate(is.null), drawn)
}

has_covariate <- function(fit) !is.null(response_of(fit$bound)) && nrow(covariate_columns(fit$bound)) > 0L

# the first margins that were released; of a table whose counts are not kept none
table_pictures <- function(fit, most = 4L) {
  margins <- utils::head(released_margins(fit$release), most)
  lapply(margins, function(margin) tryCatch(plot_table(fit, margin), noiseaware_error = function(e) NULL))
}

released_margins <- function(release) {
  of <- function(part) if (inherits(part$statistic, "stat_counts")) part$statistic$margins
  margins <- unlist(lapply(release_parts(release), of), recursive = FALSE)
  margins <- unique(Filter(function(margin) length(margin) <= 3L, margins))
  lapply(margins, function(margin) stats::as.formula(paste("~", paste0("`", margin, "`", collapse = ":"))))
}

picture_height <- function(fit) if (inherits(fit, "noiseaware_pool")) min(max(2.5, 1.4 + 0.22 * length(fit$release)), 9) else 4

rank_page <- function(fit) {
  table <- utils::head(as.data.frame(site_ranks(fit)), 60L)
  table[c("site", "rank", "lower", "upper", "largest", "smallest")]
}

# numbers of a table to be looked at
# posterior marks its numbers with a class that prints them in its own way
rounded_text <- function(v, digits) ifelse(is.na(v), "", prettyNum(signif(as.double(v), digits), big.mark = ",", decimal.mark = "."))

number_table <- function(table, digits = 4, ...) {
  numbers <- vapply(table, is.numeric, TRUE)
  table[numbers] <- lapply(table[numbers], rounded_text, digits)
  table[!numbers] <- lapply(table[!numbers], function(v) html_text(ifelse(is.na(v), "", as.character(v))))
  knitr::kable(table, format = "pipe", align = ifelse(numbers, "r", "l"), row.names = FALSE, ...)
}

# Sentences on how far the draws are to be trusted.
diagnosis <- function(fit, table = printed_summary(fit$draws)) {
  if (!is.null(fit$fits)) return(unlist(lapply(names(fit$fits), function(site) paste0(site, ": ", diagnosis(fit$fits[[site]])))))
  named <- function(x) stats::setNames(as.numeric(x), table$variable)
  rhat <- named(table$rhat)
  ess <- named(fewest_draws(table))
  mixing <- if (is.null(fit$chains)) "The draws are independent: there are no chains that could fail to converge." else {
    faults <- mixing_lines(fit, rhat, ess)
    if (length(faults)) c(faults, mixing_advice(fit, rhat, ess)) else
      sprintf(paste("The chains agree: R-hat, which compares them, is at most %s (1 is best; up to 1.01 is good).",
                    "All parameters have at least %s effective draws, in the middle and in the tails of their distributions (400 are enough for intervals)."),
              format_number(max(rhat), 4), format_size(floor(min(ess))))
  }
  others <- Filter(function(trouble) trouble$kind != "convergence", fit$troubles)
  c(mixing, trajectory_words(fit), unlist(lapply(others, function(trouble) paste(trouble$text, collapse = " "))), prior_words(fit))
}

# the parameters, of these, with the fewest effective draws; in their order
slowest_parameters <- function(parameters, table, most = 6L) {
  at <- match(parameters, table$variable)
  parameters[sort(utils::head(order(fewest_draws(table)[at]), most))]
}

trajectory_words <- function(fit) {
  if (is.null(fit$chains)) return(NULL)
  counts <- trajectory_counts(fit)
  moved <- any(vapply(fit$chains, function(c) isTRUE(c$diagnostics["steps"] > 0), TRUE))
  if (moved && counts$divergent == 0 && counts$deepest == 0) "No trajectory of Hamiltonian Monte Carlo diverged or had to be cut short."
}

prior_words <- function(fit) decided_line(fit)

# Paragraphs that a methods section and the results can quote.
methods_words <- function(fit, table = printed_summary(fit$draws)) {
  pooled <- inherits(fit, "noiseaware_pool")
  releases <- if (!pooled) list(fit$whole %||% fit$release) else if (is_of_groups(fit)) list(fit$problem$groups$release) else fit$release
  noise <- unique(vapply(unlist(lapply(releases, release_parts), recursive = FALSE), function(p) format(p$mechanism), ""))
  n <- releases[[1L]]$n
  given <- if (length(releases) > 1L) paste(length(releases), "releases") else
    paste("the release of", if (is.null(n)) "an unknown number of records" else paste(format_size(n), "records"),
          if (pooled) paste("in", length(fit$release), "groups"))
  paste0("The model was: ", describe_model(fit$bound), ". ", bounds_sentence(releases), "Its posterior given ", trimws(given), " (", shorten_list(noise, 4L),
         ") was computed with the R package noiseaware ", utils::packageVersion("noiseaware"), " under R ", getRversion(), ". ",
         method_sentence(fit, pooled), drawn_sentence(fit, table), if (!is.null(fit$asked$seed)) paste0(" The seed was ", fit$asked$seed, "."), priors_sentence(fit))
}

# of one release, or of several with the same bounds
bounds_sentence <- function(releases) {
  statistics <- lapply(releases, `[[`, "statistic")
  of <- release_columns(statistics[[1L]])
  columns <- of$columns
  columns <- columns[is.finite(columns$lower) & is.finite(columns$upper) & is.na(columns$level) & !columns$variable %in% names(of$levels), ]
  if (nrow(columns) == 0L || any(vapply(statistics, function(s) !identical(release_columns(s)$columns, of$columns), TRUE))) return("")
  natural <- all(vapply(statistics, function(s) isTRUE(release_columns(s)$natural), TRUE))
  said <- paste(columns$name, format_number(columns$lower), "to", format_number(columns$upper))
  paste0("Bounds were declared: ", shorten_list(said, 8L), if (natural) "; no record lies outside", ". ")
}

priors_sentence <- function(fit) {
  prior <- tryCatch(prior_summary.noiseaware_fit(fit), noiseaware_error = function(e) NULL)
  main <- prior[(inherits(fit, "noiseaware_pool") | prior$variable %in% plot_variables(fit, NULL)) & !is.na(prior$prior), ]
  if (is.null(prior) || nrow(main) == 0L) return("")
  alike <- split(main$variable, factor(main$prior, unique(main$prior)))
  paste0(" Priors were ", shorten_list(paste(vapply(alike, shorten_list, "", 3L), names(alike)), 8L), ".")
}

# Posterior means and intervals of what the fit is about, at most eight; medians where means are unreliable
results_words <- function(fit, table = printed_summary(fit$draws)) {
  shown <- plot_variables(fit, NULL)
  draws <- posterior::as_draws_matrix(fit$draws)[, shown, drop = FALSE]
  ends <- draws_interval(draws, 0.95)
  heavy <- any(shown %in% heavy_variables(table))
  numbers <- without_traces(as.data.frame(cbind(if (heavy) apply(draws, 2L, stats::median) else colMeans(draws), t(ends))), shown)
  line <- do.call(sprintf, c("%s %s (%s to %s)", list(shown), lapply(numbers, format_number, 3)))
  paste0("Posterior ", if (heavy) "medians" else "means", ", with 95% intervals that account for the noise of the release: ", shorten_list(line, 8L), ".")
}

method_sentence <- function(fit, pooled) {
  fits <- fit$fits %||% list(fit)
  how <- if (!is.null(fit$fits)) "Each release was analysed by itself" else if (pooled) paste0("Pooling was \"", fit$pool, "\"") else
    paste0("The method was \"", fit$method, "\"")
  paste0(how, ", ", if (all(vapply(fits, function(f) isTRUE(f$exact), TRUE))) "which is exact under the model, up to Monte Carlo error. " else "which is approximate. ")
}

drawn_sentence <- function(fit, table) {
  chained <- !is.null((fit$fits[[1L]] %||% fit)$chains)
  size <- dim(fit$draws)
  if (!chained) return(sprintf("There were %s independent draws.", format_size(prod(size[1:2]))))
  sprintf(paste("There were %d chain%s of %s draws, after %s warmup iterations each. The largest R-hat was %s; the smallest effective number of draws, bulk or",
                "tail, was %s."), size[2L], if (size[2L] == 1L) "" else "s", format_size(size[1L]),
          format_size((fit$fits[[1L]] %||% fit)$run$warmup), format_number(max(table$rhat), 4), format_size(floor(min(fewest_draws(table)))))
}

# what the tail probabilities of a posterior predictive check amount to
check_words <- function(check, fit = NULL) {
  level <- attr(check, "level")
  outside <- check$value < check$lower | check$value > check$upper
  extreme <- check$component[which(check$p < 0.01)]
  c(sprintf("%d of %d published numbers are outside the central %s%% of their replicates; about %s would be expected by chance.", sum(outside, na.rm = TRUE), nrow(check),
            format_number(100 * level), format_number(signif((1 - level) * nrow(check), 2))),
    if (length(extreme)) sprintf("Hardly any replicate is as extreme as the published value of %s: the model, its bounds or the description of the release may be wrong.",
                                 shorten_list(extreme, 6L)) else "None is so extreme that the model could not have produced it.",
    if (inherits(fit$bound, "bound_lm")) "Products of variables cannot show curved relations or the shapes of distributions.")
}

cost_words <- function(cost) {
  cost <- cost[!is.na(cost$ratio), ]
  if (nrow(cost) == 0L) return("It is not known: the largest databases that are drawn here have too few records. `noise_cost(fit, records = )` draws larger ones.")
  # within the Monte Carlo error there is no difference to report
  wide <- ifelse(abs(cost$ratio - 1) < 2 * cost$ratio_mcse, "about as wide", paste(format_number(cost$ratio, 3), "times as wide"))
  if (nrow(cost) == 1L) return(sprintf("Under the fit, the interval is expected to be %s as from the records.", wide))
  ends <- c(which.min(cost$ratio), which.max(cost$ratio))
  said <- if (length(unique(wide[ends])) == 1L) wide[ends[1L]] else paste0(wide[ends], " (", cost$variable[ends], ")", collapse = " to ")
  sprintf("Under the fit, intervals are expected to be %s as from the records.", said)
}

# what the comparison rests on, as far as it applies to the fit
cost_caveats <- function(fit) {
  releases <- if (inherits(fit, "noiseaware_pool")) fit$release else list(fit$release)
  statistics <- unlist(lapply(releases, function(release) lapply(release_parts(release), `[[`, "statistic")), recursive = FALSE)
  clamped <- any(vapply(statistics, function(s) nrow(s$columns) > 0L && !all_natural(list(s)), TRUE))
  totals <- all(vapply(statistics, function(s) s$kind != "records", TRUE))
  lost <- c(if (totals) "only totals were published", if (clamped) "values outside the bounds, if there were any, were clamped")
  paste0("Nobody but the owner can say what the confidential records would give. The third column is an expectation: the geometric mean of the widths over ",
         "databases drawn from this fit, each analysed from its records (of a release of more than 10,000 records, 10,000 are drawn and the width is scaled). ",
         "It depends on the posterior of all parameters", if ("sigma" %in% posterior::variables(fit$draws)) ", above all sigma", ". If the model is wrong, so is ",
         "the comparison. A ratio is known up to about two of its Monte Carlo errors.",
         if (length(lost)) paste0(" Besides the noise, it includes the loss because ", paste(lost, collapse = ", and because "), "."))
}
