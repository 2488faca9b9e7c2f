# One help page a method: what it does, where it serves, what it assumes. That of "clt" is beside its code, in R/engine_clt.R.

#' Method "auto": which method runs, and why
#'
#' The default of [sample_posterior()] predicts what each method would cost and prefers exact ones. The print of the fit says what was chosen, and why.
#'
#' @details
#' For each method that can fit the model, a formula predicts how many seconds 1,000 effective draws take. It uses the dimension, the number of records, the noise and
#' the levels of factors. Its constants were measured on one machine (`bench/cost.R`), so times are approximate. The rules are tried in this order:
#'
#' 1. The fastest exact method runs if it takes at most about 2 seconds. `"augment"` is exact for every model, `"collapse"` for counts.
#' 2. Otherwise `"collapse"` runs if it is faster and a short run of it finds a probability of at most 0.01 that any record is outside the bounds.
#' 3. Otherwise the exact method runs if it takes at most five minutes. Beyond that, factors are independent of each other and of numbers, unless the model
#'    says that they are dependent.
#' 4. Otherwise `"clt"` runs if it allows for clamping, or a short run finds nothing clamped. A warning says that it is approximate.
#' 5. Otherwise the exact method runs with fewer iterations: as many as ten minutes allow, but at least 200. A warning says how many, and how to ask for more.
#'
#' Where only one method is available, it runs for as long as was asked. If 1,000 effective draws take more than five minutes, a message says how long. The
#' warnings have the class `noiseaware_warning_method`. `control = list(passes = )` asks for `"augment"` where there is a choice.
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
#' statistic and mechanism, clamping included. Its cost is proportional to the number of records.
#'
#' @details
#' **Sweeps.** Each record is proposed from the model and accepted by the noise density of the changed totals. Under pure epsilon-differential privacy a
#' proposal is accepted with probability at least exp(-epsilon).
#'
#' **Moves of all records at once.** In a normal model or a linear regression, all records move together if there are more than six unknown
#' parameters or the noise is small. They also do so if the release shows a mean and a standard deviation together much better than either. The records keep
#' their shape: what is
#' left of them without their means and covariances. Hamiltonian Monte Carlo runs on the density of their totals with the parameters integrated out. Where few
#' records lie outside the bounds, the effect of clamping is approximated along the way and corrected by an acceptance step (a surrogate transition, Christen
#' & Fox 2005). Otherwise the exact density is followed.
#'
#' **Generalised linear models.** The coefficients move along so that no record's expected response changes. They also move with the responses' own
#' randomness held fixed. Both moves follow an approximation that an acceptance step corrects.
#'
#' **Factors.** Records are transferred between the levels of factors, whose probabilities are integrated out.
#'
#' **Squares and products alone.** Where the variables' own totals are not published, records are reflected, and turned so that means and standard
#' deviations change while the totals of squares and products stay.
#'
#' **Rounds.** Where draws would be too dependent and time allows, an iteration makes several rounds of sweeps and moves. [acceptance()] says how many.
#' Chains without `init` start near the release, further apart than the posterior is wide.
#'
#' **Unknown number of records.** Records are born and die, in addition to all other moves. Models and statistics with hooks that are R functions need a known n.
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
#' Where the distribution of the totals given the parameters is known, no record is needed. The cost does not depend on the number of records.
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
#' Probabilities and coefficients are integrated out where priors allow. A table moves by transfers of records between its cells, normal totals by
#' Hamiltonian Monte Carlo. The cross-table of a regression's factors is latent and has up to 10,000 cells; the number of records must then be known, and
#' exceed the number of columns.
#'
#' **Clamping.** Counts have none. For other totals the method ignores it. The print of the fit shows the expected share of records outside the bounds and
#' the probability that there is any; apart from clamping the draws are exact. A likely record outside leads to a warning (`noiseaware_warning_bounds`).
#'
#' **Unknown number of records.** It is sampled with the totals. The method assumes at least one exponential record, and more normal records than
#' variables. The print says so, and a warning says where fewer are likely.
#' @family methods
#' @name method_collapse
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' rel <- as_release(c(118.3, 69.1), st, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(rel, model_bernoulli(), method = "collapse", chains = 2, iter = 400, seed = 1)
NULL

#' Method "naive": ignore the noise
#'
#' Treats the noisy totals as the true ones. This is not a posterior: its intervals are too narrow, and it is here only to compare with.
#'
#' @details
#' Totals that no records could have are moved to the nearest possible ones first; the print says so. The update is conjugate, and the draws are independent.
#' `vignette("naive")` shows how often its intervals fail to cover.
#' @family methods
#' @seealso [compare_analyses()], [nonprivate_posterior()].
#' @name method_naive
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' rel <- as_release(c(118.3, 69.1), st, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(rel, model_bernoulli(), method = "naive", chains = 2, iter = 400, seed = 1)
NULL
