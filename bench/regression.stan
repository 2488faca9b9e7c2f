// Linear regression from noisy cross-products: the latent records are
// parameters, clamped to [-10, 10] and divided by 10 before they are summed.
// centred = 1: the records themselves; 0: their standardised innovations.
data {
  int<lower=1> n;
  vector[9] released;  // y, x1, x2, y^2, y:x1, y:x2, x1^2, x1:x2, x2^2
  real<lower=0> scale;
  vector[2] mean_x;
  real<lower=0> sigma;
  int<lower=0, upper=1> centred;
}
parameters {
  vector[3] beta;
  matrix[n, 2] u;
  vector[n] v;
}
model {
  vector[n] x1 = centred ? col(u, 1) : mean_x[1] + col(u, 1);
  vector[n] x2 = centred ? col(u, 2) : mean_x[2] + col(u, 2);
  vector[n] mu = beta[1] + beta[2] * x1 + beta[3] * x2;
  vector[n] y = centred ? v : mu + sigma * v;
  vector[9] total;

  beta ~ normal(0, 2);
  if (centred) {
    x1 ~ normal(mean_x[1], 1);
    x2 ~ normal(mean_x[2], 1);
    y ~ normal(mu, sigma);
  } else {
    to_vector(u) ~ std_normal();
    v ~ std_normal();
  }
  for (i in 1:n) {
    x1[i] = fmin(fmax(x1[i], -10), 10) / 10;
    x2[i] = fmin(fmax(x2[i], -10), 10) / 10;
    y[i] = fmin(fmax(y[i], -10), 10) / 10;
  }
  total[1] = sum(y);
  total[2] = sum(x1);
  total[3] = sum(x2);
  total[4] = dot_self(y);
  total[5] = dot_product(y, x1);
  total[6] = dot_product(y, x2);
  total[7] = dot_self(x1);
  total[8] = dot_product(x1, x2);
  total[9] = dot_self(x2);
  released ~ double_exponential(total, scale);
}
