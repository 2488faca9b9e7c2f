# Comparison of sites: estimates alone and in the pool, ranks, and the parameters of one site.

#' Compare sites: shrinkage, ranks, and the parameters of one of them
#'
#' A release with much noise says little about its own site. In a pool, sites borrow strength from each other. These functions show the result for each site:
#' how far its estimate moved, and what can be said about the order of the sites.
#'
#' @param fit A fit of a list of releases, see [pooling].
#' @param parameter A parameter of the sites, such as `"prob[yes]"` or `"(Intercept)"`. `NULL`: the first of those that vary between sites.
#' @param level Probability inside the intervals.
#' @param site Name of a site; with partial pooling `"new"` for a site that released nothing, in a walk `"next"` for the one after the last.
#' @param sites For a new site: a data frame with one row, its covariates, see [partial_pooling()]. `NULL`: their mean over sites.
#' @param seed Fixes the draws of a new site; see [sample_posterior()].
#' @param x An object returned by `site_ranks()`.
#' @param type `"intervals"`: the posterior mean of each site's rank with an interval; `"probabilities"`: the probability that each site has each rank.
#' @param row.names,optional Not used.
#' @param ... Must be empty.
#'
#' @details `plot(fit, "shrinkage")` compares the estimate of each site on its own with its estimate in the pool, for the first 60 sites, in the order of the
#'   estimates or of the walk.
#'
#' `plot(fit, "curve")` draws a parameter of all sites in their order, with a pointwise interval. If the sites are the intervals of a number, such as those of
#' `cut()`, each is at the middle of its interval. See the section Curves of [groups].
#'
#' Ranks are ranks of the parameters; 1 is the largest. Each draw of all sites' parameters has an order, and over the draws these orders give the probability of
#' each rank. The site with the largest estimate need not be the one that is most likely to be the largest, and the ranks of many sites with noisy releases are
#' often nearly unknown.
#'
#' **Ranks.** The result of `site_ranks()` is a list. Its data frame `table`, which `as.data.frame()` returns, has the posterior mean `rank` of each site, its
#' interval `lower`, `upper`, and the probabilities of being the `largest` and the `smallest`, in the order of `rank`. Its `probability` is a matrix of sites x
#' ranks.
#' @return Depends on the function:
#'
#' | function | value |
#' | --- | --- |
#' | `plot(fit, "shrinkage")` | a ggplot, whose `$data` has a row for each site and the columns below |
#' | `plot(fit, "curve")` | the same |
#' | `site_ranks()` | an object of class `noiseaware_ranks`, with `print()`, `plot()` and `as.data.frame()`; see Details |
#' | `site_draws()` | a [posterior::draws_array] of the site's parameters, under the model's own names |
#'
#' | plot | columns of `$data` |
#' | --- | --- |
#' | `"shrinkage"` | `site`, `n`; posterior means with intervals: `alone`, `alone_lower`, `alone_upper`, `pooled`, `pooled_lower`, `pooled_upper` |
#' | `"curve"` | `site`, the position `x`, and the posterior mean `estimate` with the interval `lower`, `upper` |
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_pool` (no fit of several sites; sites that are not pooled, for `plot(fit, "shrinkage")`, or that have
#'   the same parameters, for `site_ranks()`).
#' @references Goldstein, H. and Spiegelhalter, D. J. (1996). League tables and their limitations. *Journal of the Royal Statistical Society A*
#'   159(3), 385-443. \doi{10.2307/2983325}.
#' @seealso [pool_methods], [denoise()] for the confidential totals of a site.
#' @family sites and groups
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' noise <- mech_laplace(epsilon = 0.5)
#' site <- function(yes, n) as_release(c("smoke=yes" = yes), asked, noise, n = n)
#' sites <- list(north = site(73.2, 189), south = site(31.7, 90), west = site(55.1, 120))
#' fit <- sample_posterior(sites, model_bernoulli(), pool = "partial",
#'                         chains = 2, iter = 2000, seed = 1)
#' plot(fit, "shrinkage")
#' plot(fit, "shrinkage")$data
#' site_ranks(fit)
#' posterior::summarise_draws(site_draws(fit, "new", seed = 1), "mean", "sd")
#' @name site_view
NULL

check_sites_fit <- function(fit, call = caller_env()) check_class(fit, "fit", "noiseaware_pool", "a fit of a list of releases", "pool", call)

# One parameter of all sites: draws x sites, and its name.
parameter_of_sites <- function(fit, parameter, call = caller_env()) {
  own <- fit_parameters(fit)
  parameter <- check_choice(parameter %||% c(fit$problem$partial$shown, own)[1L], "parameter", own, call = call)
  values <- vapply(names(fit$release), function(site) c(posterior::extract_variable_matrix(parameters_of_site(fit, site), parameter)),
                   numeric(posterior::ndraws(fit$draws)))
  list(name = parameter, values = values)
}

# names of a site's parameters, as they are reported
fit_parameters <- function(fit) {
  if (fit$pool == "none") return(posterior::variables(fit$fits[[1L]]$draws))
  fit$problem$partial$reported %||% posterior::variables(fit$draws)
}

parameters_of_site <- function(fit, site) {
  switch(fit$pool, none = fit$fits[[site]]$draws, complete = fit$draws, draws_of_site(fit, site))
}

#' @rdname site_view
#' @export
site_draws <- function(fit, site, sites = NULL, seed = NULL) {
  check_given()
  check_sites_fit(fit)
  new <- is_new_site(fit, site)
  if (!new) check_choice(site, "site", c(names(fit$release), if (fit$pool %in% names(new_sites)) new_sites[[fit$pool]]))
  if (!new && !is.null(sites)) stop_argument("sites", "NULL: only a new site needs covariates", describe(sites))
  with_seed(check_seed(seed), if (new) as_chains(new_site_draws(fit, sites), fit) else parameters_of_site(fit, site))
}

# ---- shrinkage -----------------------------------------------------------------------------

shrinkage_table <- function(fit, parameter, level, alone, call = caller_env()) {
  check_sites_fit(fit, call)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE, call = call)
  if (fit$pool %in% c("none", "separate")) {
    stop_classed("pool", c("{.arg fit} has {if (is_of_groups(fit)) 'groups' else 'sites'} that are not pooled: {.code pool = \"none\"}.",
                           i = "{.code plot(fit)} shows their estimates; {.code pool = \"partial\"} in {.fn sample_posterior} pools them."), call = call)
  }
  pooled <- parameter_of_sites(fit, parameter, call)
  if (!is.null(alone)) check_alone(alone, fit, call)
  by_itself <- if (is.null(alone) && moves_rates(fit) && !isTRUE(fit$problem$sized)) rates_alone(fit, level, pooled$name) else {
    summary_columns(parameter_of_sites(alone %||% fit_alone(fit), pooled$name, call)$values, level)
  }
  both <- rbind(by_itself, summary_columns(pooled$values, level))
  rownames(both) <- c("alone", "alone_lower", "alone_upper", "pooled", "pooled_lower", "pooled_upper")
  data <- data.frame(site = names(fit$release), n = site_sizes(fit$release), t(both), row.names = NULL)
  structure(data, parameter = pooled$name)
}

check_alone <- function(alone, fit, call = caller_env()) {
  good <- inherits(alone, "noiseaware_pool") && alone$pool %in% c("none", "separate") && identical(names(alone$release), names(fit$release))
  if (!good) stop_argument("alone", "a fit of the same sites with pool = \"none\"", describe(alone), call = call)
}

# mean and interval of each column
summary_columns <- function(values, level) rbind(colMeans(values), draws_interval(values, level))

# The warnings about `fit` are not repeated for each of its sites.
fit_alone <- function(fit) {
  if (is_of_groups(fit)) return(without_troubles(refit(fit, list(pool = "none", chains = 2, iter = 2000, warmup = 1000, thin = 1, seed = 1))))
  method <- engine_method(engine_of(fit))
  without_troubles(sample_posterior(fit$release, fit$asked$model, pool = "none", method = method, chains = 2, iter = 1000, seed = 1))
}

# The posterior of each site's rate on a grid of its coordinate, narrowed twice to where its mass is.
rates_alone <- function(fit, level, parameter, points = 81L) {
  spread <- spread_of_rates(fit$problem)
  vapply(seq_along(fit$release), function(j) {
    problem <- fit$problem
    problem[c("sites", "first", "released")] <- list(problem$sites[j], problem$first[j], problem$released[j])
    problem$partial <- NULL
    state <- .Call(ffi_start, problem, spread$at[j], new_stream(c(1, 2)))
    log_density <- function(at) vapply(at, function(t) .Call(ffi_pool_density, problem, state, t)[1L], 0)
    at <- spread$at[j] + 12 * spread$se[j] * seq(-1, 1, length.out = points)
    for (k in 1:3) {
      value <- log_density(at)
      inside <- range(which(value > max(value) - 25))
      ends <- at[pmin(pmax(inside + c(-1L, 1L), 1L), points)]
      if (k < 3L) at <- seq(ends[1L], ends[2L], length.out = points)
    }
    fine <- stats::spline(at, value, 10L * points)
    weight <- exp(fine$y - max(fine$y))
    natural <- site_natural(fit$bound, cbind(fine$x))[, parameter]
    below <- (cumsum(weight) - weight / 2) / sum(weight)
    tails <- stats::approx(below, natural, c((1 - level) / 2, 1 - (1 - level) / 2), rule = 2)$y
    c(sum(weight * natural) / sum(weight), sort(tails))
  }, numeric(3))
}

plot_shrinkage <- function(fit, parameter, level, alone, call = caller_env()) {
  table <- data <- shrinkage_table(fit, parameter, level, alone, call)
  name <- attr(data, "parameter")
  mean <- if (name %in% posterior::variables(fit$draws)) base::mean(posterior::extract_variable(fit$draws, name))
  # the sites of a walk have an order of their own
  if (fit$pool != "walk") data <- data[order(-data$pooled, -data$alone), ]
  with_table(draw_shrinkage(data, name, level, mean), table)
}

draw_shrinkage <- function(data, name, level, mean = NULL, most = 60L) {
  left_out <- nrow(data) - most
  data <- utils::head(data, most)
  row <- rev(seq_len(nrow(data)))
  part <- function(what, shift) {
    ends <- data[paste0(what, c("", "_lower", "_upper"))]
    data.frame(row = row + shift, at = ends[[1L]], lower = ends[[2L]], upper = ends[[3L]], what = what)
  }
  both <- rbind(part("alone", 0.15), part("pooled", -0.15))
  ggplot2::ggplot(both, ggplot2::aes(y = .data$row, colour = .data$what)) +
    (if (!is.null(mean)) ggplot2::geom_vline(xintercept = mean, linetype = "dotted", colour = "grey40")) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$row), linewidth = 0.7) +
    ggplot2::geom_point(ggplot2::aes(x = .data$at, shape = .data$what), size = if (nrow(data) > 30L) 1.3 else 2.2) +
    ggplot2::scale_colour_manual(values = c(alone = "grey60", pooled = "black"), name = NULL) +
    ggplot2::scale_shape_manual(values = c(alone = 1, pooled = 16), name = NULL) +
    ggplot2::scale_y_continuous(breaks = row, labels = data$site, minor_breaks = NULL) +
    ggplot2::labs(x = name, y = NULL, subtitle = sprintf("posterior means with %s%% intervals", format_number(100 * level)),
                  caption = left_out_caption(left_out, !is.null(mean))) +
    theme_noiseaware() +
    theme_many_rows(data)
}

left_out_caption <- function(left_out, line, what = "sites") {
  said <- c(if (line) "dotted: mean over sites", if (left_out > 0L) paste(format_size(left_out), "more", what, "are not shown"))
  if (length(said)) paste(said, collapse = "; ")
}

# ---- ranks ---------------------------------------------------------------------------------

#' @rdname site_view
#' @concept ranking
#' @concept league table
#' @export
site_ranks <- function(fit, parameter = NULL, level = 0.95) {
  check_given()
  check_sites_fit(fit)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  if (fit$pool == "complete") stop_classed("pool", "Sites of {.arg fit} have the same parameters, so that they have no order: {.code pool = \"complete\"}.")
  of <- parameter_of_sites(fit, parameter)
  if (length(fit$release) < 2L || all(of$values == of$values[, 1L])) {
    stop_classed("pool", "{.val {of$name}} must differ between sites to rank them.")
  }
  remind_troubles(fit)
  sites <- ncol(of$values)
  ranks <- matrix(0L, nrow(of$values), sites)
  ranks[order(row(of$values), -of$values)] <- rep(seq_len(sites), nrow(ranks)) # all draws in one sort
  probability <- t(apply(ranks, 2L, tabulate, sites)) / nrow(ranks)
  dimnames(probability) <- list(names(fit$release), seq_len(sites))
  ends <- draws_interval(ranks, level)
  table <- data.frame(site = names(fit$release), rank = colMeans(ranks), lower = floor(ends[1L, ]), upper = ceiling(ends[2L, ]),
                      largest = probability[, 1L], smallest = probability[, sites], row.names = NULL)
  order <- order(table$rank)
  table <- table[order, ]
  rownames(table) <- NULL
  structure(list(table = table, probability = probability[order, , drop = FALSE], parameter = of$name, level = level), class = "noiseaware_ranks")
}

#' @rdname site_view
#' @export
print.noiseaware_ranks <- function(x, ...) {
  most <- 40L
  table <- utils::head(x$table, most)
  cat("<ranks> ", x$parameter, ", ", format_size(nrow(x$table)), " sites, 1 the largest; ", format_number(100 * x$level), "% intervals\n\n", sep = "")
  shown <- data.frame(site = table$site, rank = sprintf("%.1f", table$rank), lower = table$lower, upper = table$upper,
                      `P(largest)` = sprintf("%.3f", table$largest), `P(smallest)` = sprintf("%.3f", table$smallest), check.names = FALSE)
  print(shown, row.names = FALSE)
  if (nrow(x$table) > most) cat("... ", nrow(x$table) - most, " more sites, which as.data.frame() has\n", sep = "")
  invisible(x)
}

#' @rdname site_view
#' @export
as.data.frame.noiseaware_ranks <- function(x, row.names = NULL, optional = FALSE, ...) x$table

#' @rdname site_view
#' @export
plot.noiseaware_ranks <- function(x, type = c("intervals", "probabilities"), ...) {
  check_no_dots(...)
  type <- if (missing(type)) "intervals" else check_choice(type, "type", c("intervals", "probabilities"))
  most <- 60L
  table <- utils::head(x$table, most)
  sites <- factor(table$site, rev(table$site))
  labels <- ggplot2::labs(x = paste("rank of", x$parameter), y = NULL, caption = left_out_caption(nrow(x$table) - most, FALSE))
  if (type == "intervals") {
    plot <- ggplot2::ggplot(data.frame(table[c("rank", "lower", "upper")], site = sites), ggplot2::aes(y = .data$site)) +
      ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$site), linewidth = 0.7, colour = "grey45") +
      ggplot2::geom_point(ggplot2::aes(x = .data$rank), size = 2.2) +
      ggplot2::labs(subtitle = sprintf("posterior means with %s%% intervals", format_number(100 * x$level)))
  } else {
    p <- x$probability[seq_len(nrow(table)), , drop = FALSE]
    cells <- data.frame(site = rep(sites, ncol(p)), rank = rep(seq_len(ncol(p)), each = nrow(p)), probability = c(p))
    plot <- ggplot2::ggplot(cells, ggplot2::aes(x = .data$rank, y = .data$site, fill = .data$probability)) +
      ggplot2::geom_tile() +
      ggplot2::scale_fill_gradient(low = "white", high = "black", limits = c(0, 1), breaks = c(0, 0.5, 1))
  }
  plot + labels + ggplot2::scale_x_continuous(breaks = function(ends) setdiff(round(pretty(ends)), 0)) + theme_noiseaware() + theme_many_rows(table)
}
