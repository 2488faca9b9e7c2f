# Processes of a parallel run read the helpers before R attaches these (R CMD check runs test files in two processes).
library(stats)
library(utils)
