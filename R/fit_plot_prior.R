# plot(fit, "prior"): what was learnt from the release, shown by the marginal prior and posterior densities of each parameter. Densities are kernel estimates
# from draws, reflected at the smallest and the largest draw, so that a distribution that ends there keeps its height.
plot_prior <- function(fit, variables = NULL, points = 201, draws = 4000, seed = 1, call = caller_env()) {
  data <- prior_data(fit, variables, points, draws, seed, call)
  data$variable <- factor(data$variable, unique(data$variable))
  # a prior far above the posterior, as of rare cells at 0, would flatten it
  of_prior <- data$distribution == "prior"
  peak <- tapply(data$density[!of_prior], data$variable[!of_prior], max)
  prior <- data[of_prior & data$density <= 1.5 * peak[data$variable], ]
  plot <- ggplot2::ggplot(data, ggplot2::aes(x = .data$at, y = .data$density)) +
    ggplot2::geom_area(data = data[!of_prior, ], ggplot2::aes(fill = .data$distribution), position = "identity") +
    ggplot2::geom_line(data = prior, ggplot2::aes(linetype = .data$distribution)) +
    ggplot2::scale_fill_manual(values = c(posterior = "grey70"), name = NULL) +
    ggplot2::scale_linetype_manual(values = c(prior = "dashed"), name = NULL) +
    facet_variables(count = nlevels(data$variable), scales = "free") +
    scale_few_x() +
    ggplot2::labs(x = "value of the parameter", y = "density") +
    theme_noiseaware() +
    theme_many_panels(nlevels(data$variable)) +
    theme_without_y() +
    room_at_sides()
  with_table(plot, data)
}

# the variables that have a prior: of several sites, those that they share
variables_with_prior <- function(fit, variables = plot_variables(fit, NULL)) {
  if (!inherits(fit, "noiseaware_pool") || fit$pool == "complete") return(variables)
  if (fit$pool != "partial") return(NULL)
  intersect(variables, c(reported_parameters(fit$bound), colnames(priors_between_sites(fit$problem, 2L)$draws)))
}

prior_data <- function(fit, variables, points, draws, seed, call) {
  shared <- variables_with_prior(fit, posterior::variables(fit$draws))
  if (inherits(fit, "noiseaware_pool") && fit$pool != "complete" && (is.null(shared) || !all(variables %in% shared))) {
    stop_classed("pool", c("Sites have separate parameters, with a prior that differs from the prior for a single site.",
                           i = if (length(shared)) "They share {.val {shared}}.",
                           i = if (fit$pool == "none") "The fits of the sites are in {.code fit$fits}."), call = call)
  }
  variables <- check_names_of(variables %||% plot_variables(fit, NULL), "variables", "variables of the fit", posterior::variables(fit$draws), call)
  prior <- with_seed(seed, prior_draws(fit, draws))
  posterior <- parameter_matrix(fit)
  rows <- lapply(variables, function(v) {
    a <- prior[, v]
    b <- posterior[, v]
    window <- range(stats::quantile(a, c(0.05, 0.95)), stats::quantile(b, c(0.001, 0.999)))
    window <- pmin(pmax(window, mean(b) - 10 * stats::sd(b)), mean(b) + 10 * stats::sd(b))
    density <- function(values, distribution) {
      # a heavy tail would set the bandwidth: it is taken from the middle half, but is not below what the points can show
      width <- max(1.06 * stats::IQR(values) / 1.34 * length(values)^-0.2, diff(window) / points)
      ends <- range(values)
      reflected <- c(2 * ends[1L] - values, values, 2 * ends[2L] - values)
      d <- stats::density(reflected, bw = width, from = window[1L], to = window[2L], n = points)
      data.frame(variable = v, distribution = distribution, at = d$x, density = ifelse(d$x < ends[1L] | d$x > ends[2L], 0, 3 * d$y))
    }
    rbind(density(a, "prior"), density(b, "posterior"))
  })
  do.call(rbind, rows)
}
