# marginaleffects: draws of predictions; an option names the classes that it accepts.

#' @exportS3Method marginaleffects::get_predict
get_predict.noiseaware_fit <- function(model, newdata = covariate_grid(model), type = "response", ...) {
  refuse_own_parameters(model, "model", environment())
  draws <- switch(check_choice(type, "type", c("response", "link", "prediction")),
    response = expected_response(model, newdata),
    link = linear_predictor(model, newdata),
    prediction = add_residual(model, expected_response(model, newdata)))
  if (length(dim(draws)) == 3L) return(predict_groups(draws, newdata))
  out <- data.frame(rowid = newdata[["rowid"]] %||% seq_len(ncol(draws)), group = "main_marginaleffect", estimate = colMeans(draws))
  structure(out, posterior_draws = t(draws))
}

# of a response of several levels, a group for each
predict_groups <- function(draws, newdata) {
  size <- dim(draws)
  flat <- matrix(draws, size[1L])
  out <- data.frame(rowid = rep(newdata[["rowid"]] %||% seq_len(size[2L]), size[3L]), group = rep(dimnames(draws)[[3L]], each = size[2L]),
                    estimate = colMeans(flat))
  structure(out, posterior_draws = t(flat))
}

# draws have the uncertainty: nothing is to be derived by the delta method
#' @exportS3Method marginaleffects::get_vcov
get_vcov.noiseaware_fit <- function(model, ...) NULL

#' @exportS3Method marginaleffects::get_coef
get_coef.noiseaware_fit <- function(model, ...) stats::coef(model)

# It reads the coefficients itself, and would read each draw as one of them.
#' @rawNamespace S3method(marginaleffects::sanitize_model_specific,noiseaware_fit)
sanitize_model_specific.noiseaware_fit <- function(model, calling_function = "", ...) {
  if (identical(calling_function, "hypotheses")) refuse_meaningless("hypotheses", quote(hypotheses()))
  model
}

.onLoad <- function(libname, pkgname) {
  options(marginaleffects_model_classes = unique(c(getOption("marginaleffects_model_classes"), "noiseaware_fit")))
}
