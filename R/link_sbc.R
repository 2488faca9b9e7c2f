#' Backend for the package SBC
#'
#' Lets SBC (`SBC::compute_SBC()`, not on CRAN) sample posteriors with this package, so that you can use its plots and checks. [calibrate()] does the same
#' without that package.
#'
#' @details
#' A generator of data sets for SBC returns a release and the parameters that it was simulated from:
#' ```
#' one_dataset <- function() {
#'   release <- simulate_release(model_normal(), statistic, mech_laplace(epsilon = 1), n = 50)
#'   list(variables = as.list(attr(release, "truth")$parameters), generated = release)
#' }
#' datasets <- generate_datasets(SBC_generator_function(one_dataset), 100)
#' compute_SBC(datasets, sbc_backend(model_normal(), chains = 1))
#' ```
#' @param model A model.
#' @param ... Further arguments of [sample_posterior()], by name.
#' @return An object of class `SBC_backend_noiseaware`. The element that SBC calls `generated` is a release; the `variables` are the model's parameters.
#' @section Errors: `noiseaware_error_argument`.
#' @family package interfaces
#' @examples
#' sbc_backend(model_normal(), chains = 1, iter = 400)
#' @export
sbc_backend <- function(model, ...) {
  check_given()
  check_model(model)
  arguments <- list(...)
  check_argument_names(arguments, setdiff(names(formals(sample_posterior)), c("release", "model", "...")))
  structure(list(model = model, arguments = arguments), class = "SBC_backend_noiseaware")
}

# future's plan says how many cores there are
#' @exportS3Method SBC::SBC_fit
SBC_fit.SBC_backend_noiseaware <- function(backend, generated, cores) {
  do.call(sample_posterior, c(list(generated, backend$model), backend$arguments))
}

#' @export
print.SBC_backend_noiseaware <- function(x, ...) {
  cat("<SBC backend> sample_posterior() with\n", paste0("  ", format(x$model), "\n"), sep = "")
  invisible(x)
}
