#' @rdname fit_methods
#' @importFrom posterior as_draws
#' @export
as_draws.noiseaware_fit <- function(x, ...) x$draws

#' @rdname fit_methods
#' @importFrom posterior as_draws_array
#' @export
as_draws_array.noiseaware_fit <- function(x, ...) x$draws

#' @rdname fit_methods
#' @importFrom posterior as_draws_df
#' @export
as_draws_df.noiseaware_fit <- function(x, ...) posterior::as_draws_df(x$draws, ...)

#' @rdname fit_methods
#' @importFrom posterior as_draws_list
#' @export
as_draws_list.noiseaware_fit <- function(x, ...) posterior::as_draws_list(x$draws, ...)

#' @rdname fit_methods
#' @importFrom posterior as_draws_matrix
#' @export
as_draws_matrix.noiseaware_fit <- function(x, ...) posterior::as_draws_matrix(x$draws, ...)

#' @rdname fit_methods
#' @importFrom posterior as_draws_rvars
#' @export
as_draws_rvars.noiseaware_fit <- function(x, ...) posterior::as_draws_rvars(x$draws, ...)
