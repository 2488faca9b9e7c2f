# One entry for each plug-in, small enough to try every combination. A new model,
# statistic or mechanism adds its line here; test-registry.R says when one is missing.

unit <- list(x = c(0, 1))
two_levels <- list(x = c("a", "b"))

number_statistics <- list(
  crossprod = stat_crossprod(x ~ 1, bounds = unit),
  moments4 = stat_moments4(~ x, bounds = unit),
  sums = stat_sums(~ x + I(x^2), bounds = unit),
  records = stat_records(~ x, bounds = unit),
  histogram = stat_histogram(~ x, breaks = c(0, 0.4, 0.8, 1)),
  custom = stat_custom(function(r) pmin(pmax(r[, "x"], 0), 1), "x", list(replace = 1, add_remove = 1), unit),
  objective = stat_objective(x ~ 1, bounds = unit),
  quantiles = stat_quantiles(~ x, bounds = unit, probs = c(0.3, 0.5), steps = 7)
)
# a total that another one next to it would spoil
alone_statistics <- list(sums = stat_sums(~ x, bounds = unit))
code_statistics <- list(
  counts = stat_counts(~ x, levels = two_levels),
  records = stat_records(~ x, levels = two_levels)
)

# it has no variables, and goes with others
size_statistics <- list(size = stat_size())

# for models of groups: test-engine_pool_groups.R
group_statistics <- list(by = stat_by(stat_sums(~ x, bounds = unit), list(g = c("a", "b"))))

# made by stat_crossprod(), for models with such terms: test-stat_products.R, test-model_smooth.R
product_statistics <- list(products = stat_crossprod(y ~ x + I(x^2), list(y = c(0, 1), x = c(0, 1))),
                           smooth = stat_crossprod(y ~ s(x, k = 7), list(y = c(0, 1), x = c(0, 1))))

# the same kinds with more than one variable, and with every option that changes what is summed
wide <- list(y = c(-2, 5), x = c(10, 11), g = c("u", "v", "w"))
wide_statistics <- list(
  crossprod = stat_crossprod(y ~ x + g, wide), crossprod = stat_crossprod(y ~ x + g, wide, rescale = FALSE),
  moments4 = stat_moments4(~ y + x, wide[c("y", "x")]), moments4 = stat_moments4(~ y + x, wide[c("y", "x")], rescale = FALSE),
  sums = stat_sums(~ y + I(y^2) + x, wide[c("y", "x")]), sums = stat_sums(~ y + I(y^2) + x, wide[c("y", "x")], rescale = FALSE), sums = stat_sums(~ y + x, wide[c("y", "x")], outside = "drop"),
  by = stat_by(stat_sums(~ y + I(y^2) + x, wide[c("y", "x")]), wide["g"]), by = stat_by(stat_sums(~ y + x, wide[c("y", "x")], outside = "drop"), wide["g"]),
  by = stat_by(stat_crossprod(y ~ x + h, c(wide[c("y", "x")], list(h = c("no", "yes")))), wide["g"]),
  counts = stat_counts(~ g + g:h, levels = list(g = wide$g, h = c("no", "yes"))),
  records = stat_records(~ y + g, bounds = wide["y"], levels = wide["g"]),
  histogram = stat_histogram(~ y + y:g, breaks = c(-2, 0, 1, 5), levels = wide["g"]),
  histogram = stat_histogram(~ x:y, breaks = list(x = c(-Inf, 10.5, 11), y = c(-2, 1, 2, 5)), right = TRUE),
  linear = stat_subset(stat_crossprod(y ~ x + g, wide), c("y", "x^2", "y:gv")),
  linear = stat_covariance(~ x, wide["x"], centre = 10.8, divisor = 7),
  linear = stat_linear(stat_counts(~ g + g:h, levels = list(g = wide$g, h = c("no", "yes"))),
                       list(uv = c("g=u", "g=v"), gap = c(`g=u:h=no` = 1, `g=w:h=yes` = -0.5))),
  smooth = stat_crossprod(y ~ s(x, k = 6), wide[c("y", "x")]), smooth = stat_crossprod(y ~ s(x, k = 10), wide[c("y", "x")]),
  smooth = stat_crossprod(y ~ s(x, k = 6) + z + g, c(wide, list(z = c(-1, 1)))),
  custom = stat_custom(function(r) cbind(pmin(pmax(r[, "y"], -2), 5), r[, "x"] > 10.5), c("low", "high"),
                       list(replace = c(L1 = 8, L2 = sqrt(50)), add_remove = c(L1 = 6, L2 = sqrt(26))), wide[c("y", "x")])
)

registry_mechanisms <- list(
  laplace = mech_laplace(epsilon = 1), gaussian = mech_gaussian(mu = 1), discrete_laplace = mech_discrete_laplace(epsilon = 1),
  discrete_gaussian = mech_discrete_gaussian(rho = 0.5), randomized_response = mech_randomized_response(epsilon = 1),
  custom = mech_custom(log_density = function(noise) -rowSums(abs(noise))),
  tabulated = mech_tabulated(exp(-c(1, 0, 1)), c(-1, 0, 1)), objective = mech_objective(epsilon = 1),
  exponential = mech_exponential(epsilon = 1)
)

# with conjugate updates written out, so that they are right
registry_models <- list(
  lm = model_lm(x ~ 1), glm = model_glm(x ~ 1, binomial("probit")), logistic = model_logistic(x ~ 1), mvnormal = model_mvnormal(), bernoulli = model_bernoulli(),
  categorical = model_categorical(), table = model_table(), poisson = model_poisson(), exponential = model_exponential(), normal = model_normal(),
  expfam = model_expfam(function(x, theta) -(x - theta)^2 / 2, function(x) x, function() c(mu = rnorm(1)),
                        function(theta) dnorm(theta, log = TRUE), function(total, n) c(mu = rnorm(1, total / (1 + n), 1 / sqrt(1 + n))),
                        function(theta, n) rnorm(n, theta)),
  custom = model_custom(function() c(mu = rbeta(1, 1, 1)), function(theta, n) cbind(x = rbinom(n, 1, theta)),
                        function(records, theta) rbeta(1, 1 + sum(records), 1 + sum(1 - records)), "x")
)
