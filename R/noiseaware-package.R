#' noiseaware: Bayesian inference from differentially private releases
#'
#' A data owner publishes a few noisy totals of confidential records. An analyst who has only these numbers wants the posterior of a model's parameters,
#' accounting for the noise. The package is for both.
#'
#' @section Who says what:
#' Four kinds of objects describe a problem. Each fact belongs to exactly one of them:
#'
#' | object | made by | states | source |
#' | --- | --- | --- | --- |
#' | statistic | [stat_crossprod()], [stat_counts()], [stat_sums()], ... | what was summed, between which **bounds** or over which **levels** | published |
#' | mechanism | [mech_laplace()], [mech_gaussian()], ... | how **noise** was added, and its privacy guarantee | published |
#' | release | [release()], [as_release()], [read_release()] | the **published numbers**, and the number of records if it is public | published |
#' | model | [model_lm()], [model_table()], ... | how records arise, and the **prior** for its parameters | the analyst's choice |
#'
#' The call to [sample_posterior()] supplies the rest: the method, the chains, how several sites are **pooled** (`pool`), and the prior for the **number of
#' records** (`prior_n`) if the release does not state it.
#'
#' @section Where to start:
#' * One release: [as_release()] or [read_release()], then [sample_posterior()].
#' * Two hospitals, or twenty: [pooling], then [contrast()] and [site_ranks()].
#' * Methods: [method_auto], [method_augment], [method_collapse], [method_clt].
#' * Planning a release: [design()], [release()], [budget()].
#' * An error or a warning: [noiseaware_conditions] lists each class with its remedy.
#' * Other packages: [works_with()].
#'
#' `vignette("noiseaware")` walks through one analysis, and `vignette("cookbook")` has short recipes.
#'
#' @references
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data. *Advances in Neural Information
#' Processing Systems* 35. \doi{10.48550/arXiv.2206.00710}
#'
#' @family package overviews
#' @useDynLib noiseaware, .registration = TRUE
#' @importFrom rlang .data caller_env %||%
#' @keywords internal
"_PACKAGE"

#' Errors, warnings and messages, and what to do about them
#'
#' Every condition raised by the package has a class, so that code can catch it: `tryCatch(..., noiseaware_error_bounds = function(e) ...)`. All errors also
#' have the class `noiseaware_error`. The text names the argument, what it must be and what it was; it never contains a confidential value.
#'
#' @section Errors:
#' | class: `noiseaware_error_` | when | remedy |
#' | --- | --- | --- |
#' | `analysis` | a function given to `combine_synthetic()` failed for a data set | try it on a single set; the message gives its number |
#' | `areas` | the table of areas does not describe nested areas | one row for each smallest area, a column for each level: [sample_geography()] |
#' | `argument` | an argument is invalid | the message says what was expected |
#' | `bounds` | bounds or breaks are missing, reversed or infinite | give two finite numbers, the smaller first, for each number |
#' | `budget` | a release would exceed the budget, or the account cannot be used | a larger limit, a smaller epsilon, or wait for the other process: [budget()] |
#' | `compiled` | a model in C does not compile or breaks its contract | [debug_model()] tries each of its functions |
#' | `custom` | a function of yours failed, or returned something of the wrong shape | call it on made-up records; [debug_model()] |
#' | `data` | records lack a variable or have the wrong type or values | the message names the column; records themselves are never shown |
#' | `database` | the database did not answer, or the query cannot be translated | try it on made-up records, so that you can see its message |
#' | `entropy` | the operating system returned no random bytes | nothing was released; try again |
#' | `family` | the family of a regression is not supported | [model_glm()] lists those that are |
#' | `file` | a file cannot be read or written, or its content is not what it should be | the message says which part is wrong |
#' | `formula` | a formula has terms that are not supported here | [noiseaware_terms] lists those that are |
#' | `groups` | a release lacks what a model of groups needs | a total and a size for each group: [groups] |
#' | `impossible` | no records could have led to the release under a custom density | check the density's support |
#' | `interrupted` | a run was interrupted before anything was finished | run again |
#' | `levels` | values are not among the declared levels | declare all levels, or recode the records before the release |
#' | `meaningless` | another package's function needs information that a release does not have | [works_with()] explains why, and names an alternative |
#' | `mechanism` | the noise was described in an impossible way, or in one that the statistic does not allow | the message says which arguments are valid |
#' | `method` | the method is not available for this model, statistic or noise | [supported()] shows those that are; `method = "auto"` chooses |
#' | `missing` | records have missing values | decide what a missing value means before the release |
#' | `moments` | [covariate_moments()] lacks an input | give a release of [stat_moments4()], or a prior for the covariates |
#' | `neighbours` | the statistic has no finite sensitivity for this kind of neighbours | the message names the other kind |
#' | `numerical` | a matrix is not positive definite, or a number is not finite | rescale the variables, or use a less extreme prior |
#' | `package` | a package or program that is needed is not installed | the message says how to install it |
#' | `partial` | partial totals of several owners do not belong together | the same statistic, mechanism and `n` for all: [partial_total()] |
#' | `pool` | sites cannot be pooled in this way, or the function is not defined for pooled fits | [pooling]; `pool = "none"` fits each site |
#' | `prior` | a prior is not valid for the parameter or the method | the message names those that are; [priors] |
#' | `public` | public covariates do not fit the release or the model | the message says which rows or variables differ |
#' | `release` | two releases cannot be combined, or a release lacks something | [add_release()] lists what they must share |
#' | `size` | too many records, cells or draws for memory or time | fewer, or the method that the message names |
#' | `value` | published numbers contradict the statistic or the mechanism | check names, units and limits: [as_release()] |
#' | `variables` | the model and the release do not have the same variables | the message lists both sets |
#' | `worker` | a process that ran chains or replicates died | check the memory and the machine; finished results are kept |
#' | `zeros` | a measure needs cells that cannot occur | choose a measure that does not divide by them: [table_measures()] |
#'
#' @section Warnings:
#' | class: `noiseaware_warning_` | when | remedy |
#' | --- | --- | --- |
#' | `analysis` | an analysis of synthetic data gave a warning | look at the data sets that the warning names |
#' | `bounds` | the method ignores clamping, and records beyond the bounds are likely | `method = "augment"`, or [declare_outside()] |
#' | `clamping` | the answer depends on what lies beyond the bounds | [declare_outside()] explains which is right; the warning gives both answers |
#' | `contextual` | slopes change if groups' intercepts may depend on the groups' means of the covariates | [partial_pooling()] with these means |
#' | `contradiction` | the release is very unlikely under the model | [bayesplot::pp_check()][pp_check.noiseaware_fit]; check bounds, units, noise, then the model |
#' | `convergence` | R-hat above 1.01, or fewer than 400 effective draws | [extend()] the fit; the warning suggests by how much |
#' | `covariates` | a coefficient depends on the covariates' assumed distribution | [refit_covariates()] shows how; publish the covariates' counts |
#' | `custom` | a function of yours gave a warning, which is not shown because it may quote records | try it on made-up records |
#' | `depth` | a trajectory reached the maximum length | draws are valid but slow; use a longer `warmup` |
#' | `diagnostic` | a check of the fit failed and was left out | the draws are complete; please report it |
#' | `divergences` | trajectories diverged: part of the posterior may be missing | use a longer `warmup` or another `method` |
#' | `failed` | some replicates of a study failed | `$conditions` has their messages |
#' | `few_records` | the number of records may be smaller than the method assumes | `method = "augment"`, or a prior for n |
#' | `hidden` | noise hides how much covariates vary within groups, and slopes may be too near 0 | [partial_pooling()] with `covariates = "pooled"` or `"shared"` |
#' | `impossible` | no records could produce these totals | check units, bounds and noise |
#' | `interrupted` | a run was interrupted; the fit has the draws made so far | [extend()] continues it |
#' | `limit` | a total is what it would be if every record were clamped | wider bounds in the next release |
#' | `method` | the chosen method is approximate, or the run was shortened | specify the `method`, or allow more time: [method_auto] |
#' | `mirror` | the posterior has a mirror image that this method does not reach | `method = "augment"` |
#' | `prior` | a design or release adds nothing to the prior | a larger budget, more records, tighter bounds |
#' | `quantile` | a budget is too small for a quantile of so few records | a larger epsilon, or a quantile nearer to the median |
#' | `units` | totals appear to be in other units | `stat_crossprod(rescale = )`, or the scale of the noise |
#' | `worker` | a process died; the draws come from the others | run the missing chains again |
#'
#' [Warnings about a fit][fit_methods] appear when it is sampled and once more when it is first used. [fit_methods] explains how each is detected.
#'
#' @section Messages:
#' | class: `noiseaware_message_` | content |
#' | --- | --- |
#' | `binary` | that a 0/1 covariate is modelled as normal, or released as a number, and how to declare a factor |
#' | `cells` | that synthetic data have hardly any records in some cells |
#' | `components` | that the model uses only some of the published numbers |
#' | `constants` | which names in a formula are constants, read from where it was made |
#' | `evidence` | which method computed the evidence |
#' | `fewer` | that the budget is assumed to be spent on the numbers that are given |
#' | `forecast` | how long the run will take |
#' | `init` | that a method does not use `init` |
#' | `likelihood` | that priorsense can scale the prior only |
#' | `limits` | that predictions or simulated records lie beyond natural limits, or that `newdata` does |
#' | `longer` | that chains of the default length were too short and were run again with more iterations |
#' | `means` | that a column of a table, called means, is read as totals |
#' | `method` | how long the only available method will take |
#' | `order` | that numbers without names are assumed to be in the statistic's order |
#' | `panels` | that a plot shows only the first few variables |
#' | `prior` | which parameters the prior decides: [rstantools::prior_summary()][interop] shows it |
#' | `sampled`, `weighted`, `update` | whether `update(prior = )` sampled again or reweighted the draws |
#' | `scaled` | that widths from small databases say nothing about those from many records |
#' | `search` | which budgets `design(ratio = )` has tried, if that takes long |
#' | `sets` | that there are only a few synthetic data sets |
#' | `size` | that n is not known, and which parameters are correlated with it |
#' @family package overviews
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' tryCatch(as_release(c(1, 2, 3), st, mech_laplace(epsilon = 1), n = 10),
#'   noiseaware_error_value = function(e) cat("not these numbers:", conditionMessage(e), "\n"))
#' @name noiseaware_conditions
#' @aliases noiseaware_error noiseaware_warning
NULL
