# Written by bench/cost.R, which measures them: the constants of the cost model in R/cost.R.

cost_constants <- data.frame(
  engine = c("shape", "sweeps", "responses", "normal", "recursion", "counts", "total", "clamped totals", "marginal", "noncentred", "nuts", "nuts of responses"),
  fixed = c(-13.2, -13.1, -10.9, -12.7, -14.2, -13.8, -12.8, -12.4, -12.9, -12.6, -11.8, -13.3),
  fixed_size = c(2.44, 0.728, 0.0494, 1.62, 0.8, 0.726, -3.36e-13, 2, 0.598, 1.36, 1.43, 2.22),
  record = c(-19.7, -18.6, -16.7, -Inf, -Inf, -Inf, -Inf, -Inf, -Inf, -Inf, -Inf, -Inf),
  record_size = c(1.69, 1.11, 0.849, 0, 0, 0, 0, 0, 0, 0, 0, 0),
  draws = c(-0.392, -1.41, -1.6, -0.708, -0.481, -1.3, -0.774, 0.00401, -0.857, -2.03, -1.41, -1.92),
  draws_size = c(-0.88, -0.694, -0.233, -0.451, -0.181, 0.11, 0, -0.621, -0.459, -0.0781, -0.413, -0.0105),
  quiet = c(0.227, 0.188, 0.0257, -0.0654, 0.0868, 0.207, 0.0216, -0.184, 0.146, 0.169, 1.03, 0.354),
  loud = c(0.18, 0.3, 0.458, 0.153, 0.269, -0.137, -0.0617, 0.0116, -1.54, 0.544, 0.572, 0.232),
  levels = c(0.189, 0, 0, 0, -0.0628, -0.0751, 0, 0, 0.397, 0.0804, -0.431, 0)
)
