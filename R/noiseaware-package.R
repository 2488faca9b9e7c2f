#' noiseaware: Bayesian inference from differentially private releases
#'
#' Four nouns and two verbs. A *statistic* says what was summed over the records
#' ([stat_crossprod()]), a *mechanism* how noise was added ([mech_laplace()],
#' [mech_gaussian()]), a *release* is the published value ([release()],
#' [as_release()], [read_release()]), a *model* says how records arise and what
#' is believed of the parameters ([model_lm()]). The owner of the data calls
#' [release()], the analyst [sample_posterior()].
#'
#' @references
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data. *Advances in Neural Information
#' Processing Systems* 35. \doi{10.48550/arXiv.2206.00710}
#'
#' @useDynLib noiseaware, .registration = TRUE
#' @importFrom rlang .data caller_env %||%
#' @keywords internal
"_PACKAGE"
