# Default priors, scaled by the declared bounds: the one place that says what they are. `half` is half the width h of the bounds about their middle c.
#
#   variance           InverseGamma(3 / 4, (h / 5)^2): sd has its central 90 per cent from 0.06 to 0.78 of the width (uniform records have 0.29)
#   mean given sd      N(c, (4 sd)^2): over sd a Student-t distribution of 1.5 degrees of freedom and the scale 0.92 h; not in units of sd N(c, h^2)
#   several numbers    InverseWishart(q + 1 / 2, 2 diag((h / 5)^2)): each variance as above, correlations with the density (1 - r^2)^(-1 / 4)
#   residual sd        of the scale h / 2, where its prior is not one of the variance. By default log-normal with median h / 4 where coefficients are not in
#                      units of sigma: its central 90 per cent are 0.03 to 0.5 of the width, since covariates may explain nearly all of a response. On real data
#                      it covers more, and chains mix better, than an inverse gamma distribution as wide (long upper tail) or a half-normal one (mass at 0)
#   coefficients       in units of h / 4, where they are not in units of sd; in units of h / 2 in a linear regression
#
# These keep the prior conjugate. Given a mean near c they make the variance InverseGamma(5 / 4, .). Shape and rate are chosen so that 95% intervals of a
# mean cover 94% where a noisy sum alone was published, on average over sds of 0.05 to 0.4 of the width (bench/default_priors.R). Shape 1 with a larger rate would do
# so, too, but draws a small sd that records tell well upwards.
default_shape <- 3 / 4

default_rate <- function(half) (half / 5)^2

default_mean_weight <- 1 / 16

default_mean_sd <- function(half) half

default_wishart_df <- function(count) count - 1 + 2 * default_shape

default_wishart_scale <- function(half) diag(2 * default_rate(half), length(half))

default_sigma_scale <- function(half) half / 2

default_unit <- function(half) half / 4

# shape and rate, of a prior_inverse_gamma() or prior_nig() what it leaves open
inverse_gamma_numbers <- function(prior, half) c(prior$shape %||% default_shape, prior$rate %||% default_rate(half))
