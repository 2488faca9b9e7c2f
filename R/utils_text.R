# Numbers, lists and lines in the format of messages and prints.

# seconds as text
format_time <- function(seconds) {
  unit <- if (seconds < 1) list(1e-3, "milliseconds") else if (seconds < 90) list(1, "seconds") else
    if (seconds < 5400) list(60, "minutes") else if (seconds < 172800) list(3600, "hours") else list(86400, "days")
  paste(format_number(seconds / unit[[1L]], 2), unit[[2L]])
}

format_size <- function(n) format(n, big.mark = ",", decimal.mark = ".", scientific = FALSE, trim = TRUE)

# braces of names are none of cli's
escape_braces <- function(text) if (!is.null(text)) gsub("}", "}}", gsub("{", "{{", text, fixed = TRUE), fixed = TRUE)

say <- function(name, ...) paste0(name, "(", paste(format_number(c(...)), collapse = ", "), ")")

say_dirichlet <- function(alpha) {
  if (length(unique(alpha)) == 1L) alpha <- alpha[1L]
  paste0("dirichlet(", shorten_list(format_number(alpha), 6L), ")")
}

# the sd of normal covariates with these names, whose covariance is divided by `kappa`
say_sd <- function(names, kappa) paste0(ifelse(kappa == 1, "", paste0(format_number(1 / sqrt(kappa)), " ")), "sd[", names, "]")

# as it is written in R code
format_name <- function(name) ifelse(name == make.names(name), name, paste0("`", name, "`"))

# the text of one of our errors without bullets and line breaks
one_line <- function(condition) cli::ansi_strip(paste(c(condition$message, condition$body), collapse = " "))

format_number <- function(x, digits = 5) {
  vapply(x, function(v) format(v, digits = digits, trim = TRUE), "")
}

shorten_list <- function(x, most = 12L) {
  if (length(x) > most) x <- c(utils::head(x, most - 1L), "...")
  paste(x, collapse = ", ")
}

# one line that says what was summed
describe_statistic <- function(statistic) UseMethod("describe_statistic")

# The text of levels, declared or in data. Whole numbers have no exponent, whether
# they are stored as integers or not.
level_text <- function(x) {
  text <- plain_text(x)
  if (is.numeric(x) && !is.object(x)) {
    whole <- which(is.finite(x) & x == floor(x) & abs(x) < 1e15)
    text[whole] <- sprintf("%.0f", x[whole] + 0)
  }
  text
}

# Texts that are compared, or read again: the session's options determine the decimal mark.
plain_text <- function(x) with_decimal_point(as.character(x))

with_decimal_point <- function(code) {
  old <- options(OutDec = ".")
  on.exit(options(old))
  code
}

# A formula as text, so that no environment stays with it.
formula_text <- function(formula) paste(deparse(formula, width.cutoff = 500L), collapse = " ")

format_percent <- function(x) paste0(round(100 * x), "%")

# of chains, and in a pool of means over sites
format_range <- function(x) paste(unique(format_number(range(x), 3)), collapse = " to ")
