# Default priors, scaled by the declared bounds: the one place that says what they are. `half` is half the width h of the bounds about their middle c.
#
#   variance           InverseGamma(3 / 4, (h / 5)^2): sd has its central 90 per cent from 0.06 to 0.78 of the width (uniform records have 0.29)
#   mean given sd      N(c, (4 sd)^2): over sd a Student-t distribution of 1.5 degrees of freedom and the scale 0.92 h; not in units of sd N(c, h^2)
#   several numbers    InverseWishart(q + 1 / 2, 2 diag((h / 5)^2)): each variance as above, correlations with the density (1 - r^2)^(-1 / 4)
#   residual variance  InverseGamma(1 / 2, (h / 20)^2) where coefficients are not in units of sigma: the central 90 per cent of sigma are 0.02 to 0.6 of the width.
#                      Covariates may explain nearly all of a response. With more mass near 0, chains get stuck there
#   residual sd        of the scale h / 2, where its prior is not one of the variance
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

# of sigma^2 in a regression where the coefficients are not in units of sigma
residual_shape <- 1 / 2

residual_rate <- function(half) (0.05 * half)^2

residual_prior <- function() new_prior(class = "prior_inverse_gamma")

# shape and rate, of a prior_inverse_gamma() or prior_nig() what it leaves open
inverse_gamma_numbers <- function(prior, half, shape = default_shape, rate = default_rate(half)) c(prior$shape %||% shape, prior$rate %||% rate)
