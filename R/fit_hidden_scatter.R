# Partially pooled regressions where noise hides how much the covariates vary within groups, and their distribution is not pooled
# (src/contract/model_pooled_scatter.h). Each group's covariates then have a prior of their own, which decides their variances. If it expects more than there
# is, slopes are too near 0, as with errors in variables; and as all groups share the slope, its posterior sd falls with their number while the error stays.
# The power-scaling of R/fit_prior_power.R does not see it: the groups' covariates are integrated out.
#
# For each covariate and group: the noise's standard deviation on the sum of squares, over the posterior mean of the sum of squares about the group's mean. A
# median over groups above the limit warns. Two simulated data sets (20 groups of 30, the covariate's sd a sixteenth of its range): at ratios of 0.4, 0.6, 1.0 and
# 1.6 the slope is too small by 0.2, 1.1, 2.1 and 3.0 posterior sds. MASS::nlschools, 25 groups: by 3.4 at 4.8, by 1.0 at 1.3. With pooled covariates: 0.9 at 1.6.

hidden_limit <- 0.7

# the medians, by covariate
hidden_scatter <- function(fit) {
  own <- fit$pool == "partial" && is_regression(fit$bound) && (fit$problem$partial$covariates %||% "separate") == "separate"
  totals <- if (own) checked_totals(fit)
  covariates <- (fit$bound$base %||% fit$bound$design)$name[-1L]
  if (is.null(totals) || length(covariates) == 0L) return(NULL)
  held <- chains_totals(fit)
  ratio <- vapply(names(fit$release), function(site) {
    of_site <- totals[totals$site == site, ]
    sum <- of_site$column[match(covariates, of_site$component)]
    square <- match(paste0(covariates, "^2"), of_site$component)
    scatter <- held[, of_site$column[square], drop = FALSE] - held[, sum, drop = FALSE]^2 / site_records(fit, site)
    of_site$scale[square] * ifelse(of_site$absolute[square], sqrt(2), 1) / colMeans(scatter)
  }, numeric(length(covariates)))
  stats::setNames(apply(matrix(ratio, length(covariates)), 1L, stats::median, na.rm = TRUE), covariates)
}

# how many records a site has: a number, or one for each draw
site_records <- function(fit, site) pmax(fit$release[[site]]$n %||% as.vector(site_size_draws(fit, site)), 1)

# of all sites, a row for each draw
chains_totals <- function(fit) do.call(rbind, lapply(fit$chains, function(chain) held_totals(fit, chain)))

hidden_trouble <- function(fit) {
  ratio <- hidden_scatter(fit)
  found <- sort(ratio[which(ratio > hidden_limit)], decreasing = TRUE)
  if (length(found) == 0L) return(NULL)
  several <- if (is_of_groups(fit)) "groups" else "sites"
  remedy <- if (fit$bound$spec$name == "lm" && isTRUE(.Call(ffi_model_shape, fit$bound$spec)$pools_scatter))
    c(text = "Pool the covariates' distribution", covariates = "pooled", method = "collapse") else
      c(text = paste("Assume one distribution of the covariates in all", several), covariates = "shared", method = "clt")
  list(list(kind = "hidden", text = c(
    sprintf("Slopes may be too near 0: noise hides how much covariates vary within %s.", several),
    x = sprintf("Noise on a sum of squares divided by the sum of squares about the mean (median over %s): %s.", several,
                shorten_list(paste(names(found), format_number(found, 2)), 5L)),
    x = sprintf("Instead, the slopes depend on the prior for the covariates of each of the %s.", several),
    i = sprintf("%s: update(fit, pool = partial_pooling(covariates = \"%s\"), method = \"%s\").", remedy[["text"]], remedy[["covariates"]], remedy[["method"]]))))
}
