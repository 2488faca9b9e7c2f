# The private random streams, through the internal .Call routines. Bits are held
# against published answers, jumps against the engine's own linear algebra, the
# ziggurats against a replay in plain R and against the distributions that they claim.
# Seeds are fixed; a statistical test asks for p > 1e-6.

# ---- helpers ----------------------------------------------------------------

draw <- function(stream, kind, n, parameter = 0) {
  .Call(noiseaware:::ffi_rng_draw, stream, kind, as.integer(n), as.double(parameter))
}

seeded <- function(low, jumps = 0L) noiseaware:::new_stream(c(2022, low), jumps)

# c(hi, lo), the 32-bit halves of a whole number below 2^64 written in decimal:
# long division by 2^32, exact in doubles
halves <- function(decimal) {
  digits <- as.numeric(strsplit(decimal, "")[[1]])
  rest <- 0
  for (i in seq_along(digits)) {
    rest <- 10 * rest + digits[i]
    digits[i] <- rest %/% 2^32
    rest <- rest %% 2^32
  }
  c(sum(digits * 10^(rev(seq_along(digits)) - 1)), rest)
}

# a stream <-> its 256 bits, lowest first, s[0] first
swap_bytes <- function(raw) if (.Platform$endian == "big") as.raw(matrix(raw, 8)[8:1, ]) else raw
stream_bits <- function(stream) as.integer(rawToBits(swap_bytes(stream)))
bits_stream <- function(bits) swap_bytes(packBits(as.integer(bits), "raw"))

# the 64 bits of the word with these halves, and the halves of each 64 bits
word_bits <- function(halves) c(halves[2] %/% 2^(0:31) %% 2, halves[1] %/% 2^(0:31) %% 2)
bits_words <- function(bits) matrix(colSums(matrix(bits, 32) * 2^(0:31)), 2)[2:1, ]

# A stream whose first two words are given (as halves). The output is
# rotl(s[0] + s[3], 23) + s[0]; with s[1] = s[0] xor s[3] the state after one
# step has s[0] = 0 and s[3] = rotl(s[0], 45), so the second output is
# rotl(s[0], 4). The words after these come from s[2].
rotate_right <- function(bits, k) bits[(0:63 + k) %% 64 + 1]
subtract <- function(a, b) c((a[1] - b[1] - (a[2] < b[2])) %% 2^32, (a[2] - b[2]) %% 2^32)
stream_with <- function(first, second = c(0x9e3779b9, 0x7f4a7c15), filler = 0) {
  s0 <- rotate_right(word_bits(second), 4)
  sum03 <- bits_words(rotate_right(word_bits(subtract(first, bits_words(s0))), 23))
  s3 <- word_bits(subtract(sum03, bits_words(s0)))
  bits_stream(c(s0, (s0 + s3) %% 2, stream_bits(seeded(filler))[1:64], s3))
}

expect_plausible <- function(p, what) expect_gt(p, 1e-6, label = paste("p-value of", what))
p_chisq <- function(counts, probability = 1 / length(counts)) {
  expected <- sum(counts) * probability
  stats::pchisq(sum((counts - expected)^2 / expected), length(counts) - 1, lower.tail = FALSE)
}
p_normal <- function(z) 2 * stats::pnorm(-abs(z))
p_binomial <- function(count, n, prob) stats::binom.test(count, n, prob)$p.value
p_uniform <- function(u) stats::ks.test(u, "punif")$p.value

# ---- bits -------------------------------------------------------------------

test_that("bits are the published answers of xoshiro256++", {
  published <- c(
    "41943041", "58720359", "3588806011781223", "3591011842654386", "9228616714210784205",
    "9973669472204895162", "14011001112246962877", "12406186145184390807", "15849039046786891736",
    "10450023813501588000"
  )
  stream <- bits_stream(sapply(1:4, function(s) word_bits(c(0, s))))
  expect_identical(matrix(draw(stream, "bits", 10)$values, 2), unname(sapply(published, halves)))
})

test_that("seeds go through splitmix64", {
  published <- c("6457827717110365317", "3203168211198807973", "9817491932198370423", "4593380528125082431")
  stream <- noiseaware:::new_stream(c(0, 1234567))
  expect_identical(bits_words(stream_bits(stream)), unname(sapply(published, halves)))
  # the first of the two words is the upper half: a seed of one increment, the
  # golden ratio, gives what seed 0 gives after its first word
  zero <- bits_words(stream_bits(noiseaware:::new_stream(c(0, 0))))
  golden <- bits_words(stream_bits(noiseaware:::new_stream(c(0x9e3779b9, 0x7f4a7c15))))
  expect_identical(zero[, 1], halves("16294208416658607535"))
  expect_identical(golden[, 1:3], zero[, 2:4])
})

test_that("a jump is 2^128 steps", {
  skip_on_cran() # takes long; `make test` runs it
  step <- function(bits) stream_bits(draw(bits_stream(bits), "bits", 1)$state)
  engine <- vapply(1:256, function(j) step(replace(integer(256), j, 1L)), integer(256)) + 0
  apply_to <- function(matrix, bits) as.integer((matrix %*% bits) %% 2)

  start <- stream_bits(seeded(1))
  expect_identical(apply_to(engine, start), step(start)) # the engine is linear over GF(2)

  power <- engine
  for (i in 1:128) power <- (power %*% power) %% 2
  once <- apply_to(power, start)
  expect_identical(stream_bits(seeded(1, 1L)), once)
  expect_identical(stream_bits(seeded(1, 2L)), apply_to(power, once))
})

test_that("streams a jump apart share nothing", {
  streams <- lapply(0:7, function(jumps) seeded(1, jumps))
  words <- lapply(streams, function(s) colSums(matrix(draw(s, "bits", 1e5)$values, 2) * c(2^21, 2^-11)))
  expect_identical(anyDuplicated(unlist(words)), 0L)
  normals <- vapply(streams, function(s) draw(s, "normal", 1e5)$values, numeric(1e5))
  r <- stats::cor(normals)
  expect_plausible(stats::pchisq(1e5 * sum(r[upper.tri(r)]^2), 28, lower.tail = FALSE), "correlations of streams")
})

test_that("each byte of a word is uniform, and layer and position are independent", {
  skip_on_cran() # takes long; `make test` runs it
  words <- matrix(draw(seeded(2), "bits", 1e6)$values, 2)
  hi <- words[1, ]
  lo <- words[2, ]
  for (byte in 0:3) {
    expect_plausible(p_chisq(tabulate(lo %/% 256^byte %% 256 + 1, 256)), paste("byte", byte))
    expect_plausible(p_chisq(tabulate(hi %/% 256^byte %% 256 + 1, 256)), paste("byte", byte + 4))
  }
  layer <- lo %% 256
  expect_plausible(p_chisq(tabulate(256 * layer + hi %/% 2^24 + 1, 2^16)), "layer and highest bits")
  expect_plausible(p_chisq(tabulate(256 * layer + lo %/% 2^11 %% 256 + 1, 2^16)), "layer and lowest bits")
})

# ---- replay: the ziggurats of Marsaglia & Tsang (2000) in plain R -----------

# Layers from the widest; entry i + 1 holds what C calls [i].
ziggurat <- function(r, density, inverse, mass_beyond) {
  area <- r * density(r) + mass_beyond
  edge <- c(area / density(r), r, numeric(255))
  for (i in 2:255) edge[i + 1] <- inverse(density(edge[i]) + area / edge[i])
  height <- c(0, density(edge[-1]))
  list(edge = edge, height = height, density = density, closure = height[256] + area / edge[256])
}
normal_ziggurat <- function() {
  r <- 3.6541528853610088
  ziggurat(r, function(x) exp(-x^2 / 2), function(y) sqrt(-2 * log(y)), sqrt(2 * pi) * stats::pnorm(-r))
}
exponential_ziggurat <- function() {
  r <- 7.69711747013104972
  ziggurat(r, function(x) exp(-x), function(y) -log(y), exp(-r))
}
ziggurat_of <- function(kind) switch(kind, normal = normal_ziggurat(), exponential = exponential_ziggurat())

# Draws from `words`, a matrix of halves; also how many words they took.
replay <- function(kind, layers, words, n) {
  edge <- layers$edge
  height <- layers$height
  density <- layers$density
  used <- 0L
  next_word <- function() words[, used <<- used + 1L]
  next_uniform <- function() {
    word <- next_word()
    (word[1] * 2^21 + word[2] %/% 2^11) / 2^53
  }
  one_normal <- function() {
    repeat {
      word <- next_word()
      layer <- word[2] %% 256 + 1
      sign <- if (word[1] >= 2^31) -1 else 1
      high <- word[1] - 2^32 * (sign < 0) # as a signed number
      x <- (high * 2^22 + word[2] %/% 2^10) / 2^53 * edge[layer]
      if (abs(x) < edge[layer + 1]) return(x)
      if (layer == 1) {
        repeat {
          beyond <- -log(next_uniform()) / edge[2]
          if (-2 * log(next_uniform()) > beyond^2) return(sign * (edge[2] + beyond))
        }
      }
      if (height[layer] + next_uniform() * (height[layer + 1] - height[layer]) < density(x)) return(x)
    }
  }
  one_exponential <- function() {
    shift <- 0
    repeat {
      word <- next_word()
      layer <- word[2] %% 256 + 1
      x <- (word[1] * 2^21 + word[2] %/% 2^11) / 2^53 * edge[layer]
      if (x < edge[layer + 1]) return(shift + x)
      if (layer == 1) {
        shift <- shift + edge[2]
      } else if (height[layer] + next_uniform() * (height[layer + 1] - height[layer]) < density(x)) {
        return(shift + x)
      }
    }
  }
  one <- switch(kind, normal = one_normal, exponential = one_exponential)
  list(values = vapply(seq_len(n), function(i) one(), 0), used = used)
}

# from each of the streams n draws: the same values, and the same stream after
expect_replay <- function(streams, kind, n) {
  layers <- ziggurat_of(kind)
  expect_equal(layers$closure, 1, tolerance = 1e-10)
  error <- numeric()
  same_words <- logical()
  for (stream in streams) {
    expected <- replay(kind, layers, matrix(draw(stream, "bits", 2 * n + 100)$values, 2), n)
    actual <- draw(stream, kind, n)
    error <- c(error, max(abs(actual$values / expected$values - 1)))
    same_words <- c(same_words, identical(actual$state, draw(stream, "bits", expected$used)$state))
  }
  expect_lt(max(error), 1e-10)
  expect_true(all(same_words))
}

# the word with that layer and position, a whole number of at most 53 bits
ziggurat_word <- function(kind, layer, position) {
  low <- switch(kind, normal = 22, exponential = 21) # bits of the position in the lower half
  high <- floor(position / 2^low)
  c(high %% 2^32, (position - high * 2^low) * 2^(32 - low) + layer)
}

test_that("streams can be made to begin with given words", {
  first <- halves("12345678901234567890")
  second <- halves("9876543210987654321")
  expect_identical(draw(stream_with(first, second, 1), "bits", 2)$values, c(first, second))
})

test_that("ziggurat draws are those of a replay in plain R", {
  skip_on_cran() # takes long; `make test` runs it
  expect_replay(list(seeded(3)), "normal", 2e4)
  expect_replay(list(seeded(4)), "exponential", 2e4)
})

test_that("draws that begin in the tail are those of the replay, on both sides", {
  # layer 0 and the outermost positions
  starting <- function(hi) {
    lapply(1:200, function(i) stream_with(c(hi, 0), draw(seeded(i), "bits", 1)$values, i))
  }
  expect_replay(starting(0x7fffffff), "normal", 1)
  expect_replay(starting(0x80000000), "normal", 1)
  expect_replay(starting(0xffffffff), "exponential", 1)
})

test_that("each layer begins, ends and rejects where the replay does", {
  skip_on_cran() # takes long; `make test` runs it
  for (kind in c("normal", "exponential")) {
    layers <- ziggurat_of(kind)
    streams <- list()
    add <- function(layer, place, u = 0.5) {
      position <- max(1, round(place * 2^53))
      if (kind == "normal" && length(streams) %% 2 == 1) position <- -position
      second <- c(floor(u * 2^32), round(u * 2^53) %% 2^21 * 2^11)
      streams[[length(streams) + 1]] <<- stream_with(ziggurat_word(kind, layer, position), second, length(streams))
    }
    for (layer in 0:255) {
      edge <- layers$edge[layer + 1:2]
      height <- layers$height[layer + 1:2]
      inner <- edge[2] / edge[1]
      # the lowest bit, then just inside and outside the inner rectangle
      for (place in c(0, inner - 1e-9, inner + 1e-9)) add(layer, place)
      # in the wedge, just under and over the density
      for (place in c(0.3, 0.7) * inner + c(0.7, 0.3)) {
        under <- (layers$density(place * edge[1]) - height[1]) / diff(height)
        if (layer > 0) for (u in under + c(-1e-7, 1e-7)) add(layer, place, u)
      }
    }
    expect_replay(streams, kind, 1)
  }
})

test_that("uniforms stay strictly inside (0, 1) at the extreme words", {
  for (word in list(c(0, 0), c(0, 2047))) { # these would give 0: another word is taken
    stream <- stream_with(word)
    expect_identical(draw(stream, "bits", 1)$values, word)
    expect_identical(draw(stream, "uniform", 1), draw(draw(stream, "bits", 1)$state, "uniform", 1))
  }
  smallest <- draw(stream_with(c(0, 2048)), "uniform", 1)$values
  largest <- draw(stream_with(c(2^32 - 1, 2^32 - 1)), "uniform", 1)$values
  expect_identical(c(smallest, 1 - largest), c(2^-53, 2^-53))
})

# ---- distributions: ten million draws of each ----------------------------------------

# One pass in chunks. `cdf` maps draws to (0, 1); the moments belong to the
# distribution; `keep` picks the draws that come back. Tests the distribution on 4096 bins of
# equal probability, the independence of neighbours, and the moments.
survey <- function(kind, seed, cdf, mean, sd, kurtosis, keep, per_chunk = function(x) 0) {
  stream <- seeded(seed)
  bins <- pairs <- moments <- extra <- 0
  kept <- list()
  chunks <- 8L
  size <- 5e5L
  for (chunk in seq_len(chunks)) {
    drawn <- draw(stream, kind, size)
    stream <- drawn$state
    x <- drawn$values
    bin <- as.integer(cdf(x) * 4096)
    bins <- bins + tabulate(bin + 1L, 4096L)
    coarse <- matrix(bin %/% 256L, 2)
    pairs <- pairs + tabulate(16L * coarse[1, ] + coarse[2, ] + 1L, 256L)
    z <- (x - mean) / sd
    square <- z * z
    moments <- moments + c(
      sum(z), sum(square - 1) / sqrt(kurtosis - 1), sum(z[-1] * z[-size]),
      sum((square[-1] - 1) * (square[-size] - 1)) / (kurtosis - 1)
    )
    kept[[chunk]] <- x[keep(x)]
    extra <- extra + per_chunk(x)
  }
  n <- chunks * size
  expect_identical(sum(bins), n + 0) # none outside the support, none missing
  expect_plausible(p_chisq(bins), paste(kind, "in 4096 bins"))
  distance <- max(abs(cumsum(bins) / n - 1:4096 / 4096))
  expect_plausible(2 * exp(-2 * n * distance^2), paste(kind, "by Kolmogorov's distance"))
  expect_plausible(p_chisq(pairs), paste(kind, "in pairs"))
  p <- p_normal(moments / sqrt(n))
  expect_plausible(p[1], paste("mean,", kind))
  expect_plausible(p[2], paste("variance,", kind))
  expect_plausible(p[3], paste("lag-1 correlation,", kind))
  expect_plausible(p[4], paste("lag-1 correlation of squares,", kind))
  list(n = n, bins = bins, kept = unlist(kept), extra = extra)
}

# In the outermost strip most draws come from layer 0, whose positions then show
# again as multiples of its step. Their low bits must vary: they do not if
# layer and position share bits, or if a position has fewer than 53.
expect_full_positions <- function(x, edge, kind) {
  strip <- x[x > edge[3] & x < edge[2]]
  position <- round(strip / edge[1] * 2^53)
  for (lowest in c(2, 8, 16, 24)) {
    what <- paste(kind, "positions from bit", lowest)
    expect_plausible(p_chisq(tabulate(position %/% 2^lowest %% 64 + 1, 64)), what)
  }
}

test_that("uniforms are uniform, to the last of 53 bits", {
  skip_on_cran() # takes long; `make test` runs it
  low_bits <- function(x) {
    v <- x * 2^53
    stopifnot(v == floor(v), v >= 1, v < 2^53)
    tabulate((v - 256 * floor(v / 256)) + 256 * floor(x * 16) + 1, 4096)
  }
  sample <- survey("uniform", 5, identity, 0.5, sqrt(1 / 12), 1.8, function(x) x < 2^-13, low_bits)
  expect_plausible(p_chisq(sample$extra), "lowest 8 bits by highest 4")
  expect_plausible(p_binomial(length(sample$kept), sample$n, 2^-13), "count near 0")
  expect_plausible(p_uniform(sample$kept * 2^13), "distribution near 0")
})

test_that("normals are normal, and so are their tails", {
  skip_on_cran() # takes long; `make test` runs it
  edge <- normal_ziggurat()$edge
  odd_moment <- function(x) c(sum(x^3), sum(x > 0))
  sample <- survey("normal", 6, stats::pnorm, 0, 1, 3, function(x) abs(x) > edge[3], odd_moment)
  expect_plausible(p_normal(sample$extra[1] / sqrt(15 * sample$n)), "third moment")
  expect_plausible(p_normal((2 * sample$extra[2] - sample$n) / sqrt(sample$n)), "sign")
  folded <- sample$bins + rev(sample$bins)
  expect_plausible(
    stats::pchisq(sum((sample$bins - rev(sample$bins))^2 / folded) / 2, 2048, lower.tail = FALSE), "symmetry"
  )

  r <- edge[2]
  beyond <- stats::pnorm(-r)
  for (side in c(-1, 1)) {
    tail <- side * sample$kept[side * sample$kept > r]
    expect_plausible(p_binomial(length(tail), sample$n, beyond), paste("count in the tail, side", side))
    expect_plausible(p_uniform(stats::pnorm(-tail) / beyond), paste("distribution in the tail, side", side))
  }
  expect_full_positions(abs(sample$kept), edge, "normal")
})

test_that("exponentials are exponential, and so is their tail", {
  skip_on_cran() # takes long; `make test` runs it
  edge <- exponential_ziggurat()$edge
  sample <- survey("exponential", 7, function(x) -expm1(-x), 1, 1, 9, function(x) x > edge[3])
  r <- edge[2]
  tail <- sample$kept[sample$kept > r]
  expect_plausible(p_binomial(length(tail), sample$n, exp(-r)), "count in the tail")
  expect_plausible(p_uniform(exp(r - tail)), "distribution in the tail")
  expect_full_positions(sample$kept, edge, "exponential")
})

test_that("gammas are gamma, below and above shape 1", {
  n <- 1e5
  for (shape in c(0.3, 1, 2.5, 50)) {
    what <- paste("gamma of shape", shape)
    x <- draw(seeded(8), "gamma", n, shape)$values
    expect_true(all(x > 0))
    expect_plausible(p_uniform(stats::pgamma(x, shape)), what)
    z <- (x - shape) / sqrt(shape)
    expect_plausible(p_normal(sum(z) / sqrt(n)), paste("mean,", what))
    expect_plausible(p_normal(sum(z^2 - 1) / sqrt(n * (2 + 6 / shape))), paste("variance,", what))
  }
})

# ---- streams as R holds them ------------------------------------------------

test_that("five draws and five more are ten, and a draw leaves its stream alone", {
  for (kind in c("bits", "uniform", "normal", "exponential", "gamma")) {
    stream <- seeded(9)
    ten <- draw(stream, kind, 10, 0.7)
    first <- draw(stream, kind, 5, 0.7)
    second <- draw(first$state, kind, 5, 0.7)
    expect_identical(c(first$values, second$values), ten$values)
    expect_identical(second$state, ten$state)
    expect_identical(stream, seeded(9))
    expect_identical(draw(stream, kind, 0)$state, stream)
  }
})

test_that("set.seed() fixes the streams", {
  withr::local_preserve_seed()
  set.seed(11)
  words <- noiseaware:::seed_words()
  following <- noiseaware:::new_stream()
  expect_true(all(words == floor(words) & words >= 0 & words < 2^32))
  expect_length(words, 2)
  set.seed(11)
  expect_identical(noiseaware:::new_stream(), noiseaware:::new_stream(words))
  expect_identical(noiseaware:::new_stream(), following)
  expect_false(identical(noiseaware:::new_stream(words), following))
})

test_that("with_seed() leaves R's generator as it was", {
  withr::local_preserve_seed()
  old_kind <- RNGkind()
  withr::defer(RNGkind(old_kind[1], old_kind[2], old_kind[3]), priority = "first")
  with_seed <- noiseaware:::with_seed
  state <- function() globalenv()$.Random.seed

  set.seed(1)
  before <- state()
  value <- with_seed(7, stats::rnorm(3))
  expect_identical(state(), before)
  expect_identical(with_seed(7, stats::rnorm(3)), value)
  expect_false(identical(with_seed(8, stats::rnorm(3)), value))
  expect_error(with_seed(7, stop("inside")), "inside")
  expect_identical(state(), before)

  # another kind gives the same draws, and comes back
  RNGkind("Wichmann-Hill", "Ahrens-Dieter")
  kind <- RNGkind()
  before <- state()
  expect_identical(with_seed(7, stats::rnorm(3)), value)
  expect_identical(RNGkind(), kind)
  expect_identical(state(), before)

  # no state at all stays no state
  rm(".Random.seed", envir = globalenv())
  expect_identical(with_seed(7, stats::rnorm(3)), value)
  expect_null(state())
  expect_identical(RNGkind(), kind)

  # without a seed it is the user's generator that moves
  set.seed(5)
  expected <- stats::runif(1)
  set.seed(5)
  expect_identical(with_seed(NULL, stats::runif(1)), expected)
  expect_false(identical(with_seed(NULL, stats::runif(1)), expected))
})
