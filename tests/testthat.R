library(testthat)
library(noiseaware)

test_check("noiseaware")
