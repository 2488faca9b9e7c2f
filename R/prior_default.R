# Default priors, scaled by the declared bounds: the one place that says what they are. `half` is half the width h of the bounds about their middle c.
#
#   variance           InverseGamma(2, (h / 4)^2), of mean (h / 4)^2: sd has its central 90 per cent from 0.057 to 0.21 of the width
#   mean given sd      N(c, (2 sd)^2): the weight of a quarter of a record; where it is not in units of sd, N(c, (h / 2)^2)
#   several numbers    InverseWishart(q + 2, diag((h / 4)^2)), of that mean: each variance is InverseGamma(3 / 2, (h / 4)^2 / 2)
#   residual sd        of the scale h / 4, where its prior is not one of the variance
default_shape <- 2

default_rate <- function(half) default_sd(half)^2

default_sd <- function(half) half / 4

default_mean_weight <- 1 / 4

default_mean_sd <- function(half) default_sd(half) / sqrt(default_mean_weight)

default_wishart_df <- function(count) count + 2

default_wishart_scale <- function(half) diag(default_rate(half), length(half))
