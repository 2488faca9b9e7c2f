# Private random streams. A stream is 32 raw bytes, the state of xoshiro256++;
# two words of R's generator seed it, so set.seed() fixes everything.

# two whole numbers in [0, 2^32) from R's generator
seed_words <- function() floor(stats::runif(2L) * 2^32)

new_stream <- function(words = seed_words(), jumps = 0L) .Call(ffi_rng_seed, words, as.integer(jumps))

# Evaluates with R's generator seeded, in a fixed kind, and leaves the user's
# generator as it was. With seed = NULL it is the user's generator that draws.
with_seed <- function(seed, code) {
  if (is.null(seed)) return(code)
  old <- globalenv()$.Random.seed
  old_kind <- RNGkind()
  on.exit({
    suppressWarnings(RNGkind(old_kind[1L], old_kind[2L], old_kind[3L])) # "Rounding" warns each time
    if (is.null(old)) rm(".Random.seed", envir = globalenv()) else assign(".Random.seed", old, envir = globalenv())
  })
  if (length(seed) == 1L) {
    set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  } else {
    assign(".Random.seed", seed, envir = globalenv()) # a state that was saved
  }
  code
}

# distinct seeds, one a replicate; more of them begin with the same ones
replicate_seeds <- function(seed, count) {
  drawn <- with_seed(seed, floor(stats::runif(count + 1000L) * (2^31 - 1)))
  as.integer(unique(drawn)[seq_len(count)])
}

check_seed <- function(seed, call = caller_env()) {
  if (is.null(seed)) return(NULL)
  ok <- is.numeric(seed) && length(seed) == 1L && is.finite(seed) && seed == floor(seed) && abs(seed) < 2^31
  if (!ok) stop_argument("seed", "NULL or a whole number below 2^31 in size", describe(seed), call = call)
  as.integer(seed)
}

new_seed <- function() as.integer(floor(stats::runif(1L) * (2^31 - 1)))
