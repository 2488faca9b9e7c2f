# Contextual effects. In y ~ x + (1 | g) the groups' intercepts are assumed not to depend on the groups' means of x (Mundlak 1978, Econometrica 46). Without
# noise a violation matters little, because slopes come from differences within groups. Noise hides these more than differences between the groups' means. So
# the release is also fitted with intercepts that may depend on the means, and the slopes are compared as in fit_clamping.R. The means are posterior means of
# total / size under the first fit.
#
# A warning names each slope for which the two answers differ by more than a posterior standard deviation, and by more than 2.5 times sqrt(sd_2^2 - sd_1^2). That
# is the standard deviation of their difference if the assumption holds, since the second answer uses less information (Hausman 1978, Econometrica 46). A
# difference that is large in the first sense alone is only printed.
#
# There is no comparison unless each group has totals of all covariates; sites must have the same statistic. Cost: a second fit, as short as that in
# fit_clamping.R.

# posterior standard deviations
contextual_shift <- 1
# standard deviations of the difference: 1 in 80 right models
contextual_test <- 2.5

# A list: `means` of the covariates by group, `table` of both answers, NULL if the second fit failed. NULL where nothing is compared.
compare_contextual <- function(fit, refit) {
  means <- contextual_means(fit)
  if (is.null(means)) return(NULL)
  pool <- as_pooling(fit$asked$pool %||% "partial")
  pool$design <- partial_pooling(contextual_formula(means), sites = means)$design
  other <- refit_beside(fit, refit, if (is_of_groups(fit)) fit$problem$groups$release else fit$release, pool = pool)
  slopes <- setdiff(reported_as(fit, coefficients_of(fit$bound)), "(Intercept)")
  table <- if (!is.null(other)) both_answers(fit, other)
  list(means = means, table = table[table$parameter %in% slopes, ])
}

contextual_formula <- function(means) {
  given <- Reduce(function(a, b) call("+", a, b), lapply(names(means), as.name))
  stats::as.formula(call("~", call("|", quote(.), given)), globalenv())
}

# do intercepts of a regression vary freely between groups, or sites?
has_free_intercepts <- function(fit) {
  partial <- fit$problem$partial
  fit$pool == "partial" && is_regression(fit$bound) && is.null(partial$design) && "(Intercept)" %in% partial$vary
}

# A row a group. NULL unless intercepts vary freely, and there are totals of all covariates, which differ between groups.
contextual_means <- function(fit) {
  if (!has_free_intercepts(fit)) return(NULL)
  covariates <- (fit$bound$base %||% fit$bound$design)$name[-1L]
  totals <- checked_totals(fit)
  sites <- names(fit$release)
  alike <- length(unique(lapply(fit$release, `[[`, "statistic"))) == 1L || is_of_groups(fit)
  if (length(covariates) == 0L || length(sites) < length(covariates) + 3L || is.null(totals) || !alike) return(NULL)
  held <- chains_totals(fit)
  means <- vapply(sites, group_means, numeric(length(covariates)), fit, totals, held, covariates)
  means <- matrix(means, length(sites), byrow = TRUE, dimnames = list(sites, covariates))
  if (anyNA(means) || qr(cbind(1, means))$rank <= length(covariates)) return(NULL)
  as.data.frame(means)
}

# of one group, NA where there are not all totals
group_means <- function(site, fit, totals, held, covariates) {
  own <- totals[totals$site == site, ]
  at <- own$column[match(covariates, own$component)]
  if (anyNA(at)) return(rep(NA_real_, length(at)))
  colMeans(held[, at, drop = FALSE] / site_records(fit, site))
}

if_dependent <- c("if intercepts do not depend on the covariates' means", "if they may")

contextual_trouble <- function(fit) {
  found <- contextual_differences(fit)
  found <- found[abs(found$other - found$mean) > contextual_test * sqrt(pmax(found$other_sd^2 - found$sd^2, 0)), ]
  if (is.null(found) || nrow(found) == 0L) return(NULL)
  several <- if (is_of_groups(fit)) "groups" else "sites"
  list(list(kind = "contextual", text = c(
    sprintf("Slopes change if the %s' intercepts may depend on the %s' means of the covariates. The model assumes that they do not.", several, several),
    answer_bullets(found, if_dependent),
    i = sprintf("The noise hides slopes within %s more than differences between %s.", several, several),
    i = sprintf("Let intercepts depend on the means: update(fit, pool = partial_pooling(%s, sites = fit$contextual$means)).",
                paste("~ . |", paste(names(fit$contextual$means), collapse = " + "))))))
}

contextual_differences <- function(fit) if (!is.null(fit$contextual$table)) differing_answers(fit$contextual$table, contextual_shift)

# for a print
contextual_lines <- function(fit) {
  if (is.null(fit$contextual)) return(NULL)
  if (is.null(fit$contextual$table)) return("  intercepts not compared with intercepts that depend on the covariates' means: that fit failed")
  answer_lines("intercepts", contextual_differences(fit), if_dependent)
}
