# One help page per method: what it does, when it is available, what it assumes. The page of "clt" is next to its code, in R/engine_clt.R.

#' Method "auto": which method runs, and why
#'
#' By default, [sample_posterior()] predicts the cost of each method and prefers exact methods. The printed fit shows the chosen method and the reason.
#'
#' @details
#' For each method that can fit the model, a formula predicts how many seconds 1,000 effective draws take. It uses the dimension, the number of records, the noise and
#' the levels of factors. Its constants were measured on one machine (`bench/cost.R`), so times are approximate. The rules are tried in this order:
#'
#' 1. The fastest exact method runs if it takes at most about 2 seconds. `"augment"` is exact for every model, `"collapse"` for counts.
#' 2. Otherwise `"collapse"` runs if it is faster and a short run of it finds a probability of at most 0.01 that any record is outside the bounds.
#' 3. Otherwise the exact method runs if it takes at most five minutes. If it takes longer with dependent factors, factors are modelled as independent, unless
#'    the model says that they are dependent.
#' 4. Otherwise `"clt"` runs if it accounts for clamping, or if a short run finds no clamped values. A warning says that it is approximate.
#' 5. Otherwise the exact method runs with fewer iterations: as many as ten minutes allow, but at least 200. A warning says how many, and how to request more.
#'
#' If only one method is available, it runs for the requested number of iterations. If 1,000 effective draws take more than five minutes, a message gives the
#' time. The warnings have the class `noiseaware_warning_method`. `control = list(passes = )` selects `"augment"` if there is a choice.
#' @family methods
#' @seealso [supported()] for the methods available for a model, a statistic and a mechanism.
#' @name method_auto
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' rel <- as_release(c(118.3, 69.1), st, mech_laplace(epsilon = 0.5), n = 189)
#' fit <- sample_posterior(rel, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' fit$method
#' fit$why
NULL

#' Method "augment": impute the confidential records
#'
#' The records are latent variables, and each is updated given the others, the parameters and the release (Ju et al. 2022). It is exact for every model,
#' statistic and mechanism, including clamping. Its cost is proportional to the number of records.
#'
#' @details
#' **Sweeps.** Each record is proposed from the model and accepted by the noise density of the changed totals. Under pure epsilon-differential privacy a
#' proposal is accepted with probability at least exp(-epsilon).
#'
#' **Moves of all records at once.** In a normal model or a linear regression, all records move together if there are more than six unknown
#' parameters or the noise is small. They also do so if the release determines a combination of a mean and a standard deviation much better than either of them.
#' The standardised records, without their means and covariances, stay fixed. Hamiltonian Monte Carlo runs on the density of the totals with the parameters
#' integrated out. If few records lie outside the bounds, the effect of clamping is approximated along the trajectory and corrected by an acceptance step (a
#' surrogate transition, Christen & Fox 2005). Otherwise trajectories follow the exact density.
#'
#' **Generalised linear models.** When the records move, the coefficients move with them so that no record's expected response changes. The coefficients also
#' move with the responses' innovations held fixed. Both moves follow an approximation that is corrected by an acceptance step.
#'
#' **Factors.** Records are transferred between the levels of factors, whose probabilities are integrated out.
#'
#' **Only squares and products.** If the variables' own totals are not published, records are reflected, and rotated so that means and standard deviations
#' change while the totals of squares and products stay fixed.
#'
#' **Rounds.** If draws would be too dependent and time allows, an iteration consists of several rounds of sweeps and moves. [acceptance()] shows how many.
#' Chains without `init` start near values suggested by the release, overdispersed relative to the posterior.
#'
#' **Unknown number of records.** Records are added and removed, in addition to all other moves. Models and statistics defined by R functions need a known n.
#' @references
#' Christen, J. A. and Fox, C. (2005). Markov chain Monte Carlo using an approximation.
#' *Journal of Computational and Graphical Statistics* 14, 795-810. \doi{10.1198/106186005X76983}
#'
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data, Algorithm 1.
#' \doi{10.48550/arXiv.2206.00710}
#' @family methods
#' @name method_augment
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), method = "augment", chains = 2, iter = 400, seed = 1)
#' acceptance(fit)
NULL

#' Method "collapse": move the totals, not the records
#'
#' If the distribution of the totals given the parameters is known, no records need to be imputed. The cost does not depend on the number of records.
#'
#' @details
#' **Where it is available.**
#'
#' | published | model | exact |
#' | --- | --- | --- |
#' | counts of one variable, or of a class and one feature | [model_bernoulli()], [model_categorical()], [model_naive_bayes()] | yes; independent draws with few records |
#' | any sums of counts: overlapping margins, cells, linear queries | [model_table()] | yes |
#' | totals of variables and of products of two | [model_normal()], [model_mvnormal()], [model_lm()] | if no record is outside the bounds |
#' | the total of the variable | [model_poisson()], [model_exponential()] | if no record is outside the bounds |
#' | noisy records ([mech_record_noise()]) | [model_lm()], [model_mvnormal()] | yes |
#'
#' Probabilities and coefficients are integrated out if the priors allow it. Tables move by transfers of records between cells, normal totals by Hamiltonian
#' Monte Carlo. The cross-table of a regression's factors is latent and has up to 10,000 cells. The number of records must then be known, and exceed the number
#' of variables, where a factor with k levels counts as k - 1.
#'
#' **Clamping.** Counts are not clamped. For other totals the method ignores clamping; apart from that the draws are exact. The printed fit shows the expected
#' share of records outside the bounds and the probability that there are any. If records outside are likely, there is a warning (`noiseaware_warning_bounds`).
#'
#' **Unknown number of records.** It is sampled with the totals. The method assumes at least one exponential record, and more normal records than
#' variables. The printed fit says so, and a warning is given if fewer are likely.
#' @family methods
#' @name method_collapse
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' rel <- as_release(c(118.3, 69.1), st, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(rel, model_bernoulli(), method = "collapse", chains = 2, iter = 400, seed = 1)
NULL

#' Method "naive": ignore the noise
#'
#' Treats the noisy totals as true. This is not a posterior: its intervals are too narrow. It is provided only for comparison.
#'
#' @details
#' Totals that no records could have are first moved to the nearest possible ones; the printed fit says so. The update is conjugate, and the draws are
#' independent. `vignette("naive")` shows how often its intervals fail to cover.
#' @family methods
#' @seealso [compare_analyses()], [nonprivate_posterior()].
#' @name method_naive
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' rel <- as_release(c(118.3, 69.1), st, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(rel, model_bernoulli(), method = "naive", chains = 2, iter = 400, seed = 1)
NULL
