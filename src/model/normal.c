/* Model "normal": x ~ N(mean, sd^2).
 *
 * Priors: normal-inverse-gamma (sd^2 ~ InverseGamma(shape, rate), mean given sd
 * ~ N(prior_mean, sd^2 / precision)), or an independent normal for the mean and
 * an inverse gamma for sd^2; either may be known.
 *
 * theta: mean, log sd. Complete-data statistic: sums of x - centre and of its square, where the
 * centre is a fixed public point (the middle of the bounds), to avoid cancellation when bounds are
 * far from zero. Updates are conjugate; with independent priors, mean given sd and then sd given
 * mean.
 *
 * The normal-inverse-gamma distribution may be truncated, as in model/covariates_normal.c: mean
 * and sd lie within bounds.
 */
#include "base/dist.h"
#include "base/slice.h"
#include "contract/model.h"
#include "contract/model_innovations.h"
#include "contract/model_likelihood.h"
#include "contract/model_marginal.h"
#include "contract/model_move.h"
#include "contract/model_normal.h"
#include "contract/model_prior.h"
#include "contract/model_statistic.h"
#include "contract/model_update.h"

enum { MEAN, LOG_SD };
enum { MOST_TRIES = 50 };
enum mean_prior { MEAN_KNOWN, MEAN_NORMAL, MEAN_NIG };

struct nig {
    double mean, precision, shape, rate;
};

struct normal {
    const double *centre;
    enum mean_prior mean_prior;
    const double *mean, *sd; /* if known */
    double log_sd;
    const double *prior_mean, *prior_precision; /* NIG: in units of 1 / sd^2 */
    const double *shape, *rate;
    const double *within; /* NULL, or bounds of the mean and of the sd from above */
    struct nig posterior; /* for the slice sampler */
    double theta[2], sd_now;
    double move_shift, move_ratio;
    double *innovation; /* of a block */
    int order, kept;
    struct model_normal described;
    struct model_marginal integrated;
};

/* ---- prior -------------------------------------------------------------- */

static double draw_log_sd(struct rng *rng, double shape, double rate) {
    return 0.5 * (log(rate) - dist_log_gamma(rng, shape));
}

/* precision of the mean's prior in the variable's own units */
static double own_precision(const struct normal *p, double log_sd) {
    return *p->prior_precision * (p->mean_prior == MEAN_NIG ? exp(-2 * log_sd) : 1);
}

static int is_within(const struct normal *p, const double *theta) {
    return theta[MEAN] >= p->within[0] && theta[MEAN] <= p->within[1] &&
           theta[LOG_SD] <= log(p->within[2]);
}

static void draw_prior(const struct normal *p, struct rng *rng, double *theta) {
    if (!p->sd) theta[LOG_SD] = draw_log_sd(rng, *p->shape, *p->rate);
    if (p->mean) return;
    theta[MEAN] = *p->prior_mean + rng_normal(rng) / sqrt(own_precision(p, theta[LOG_SD]));
}

static void rprior(void *self, struct rng *rng, double *theta) {
    const struct normal *p = self;
    do {
        draw_prior(p, rng, theta);
    } while (p->within && !is_within(p, theta)); /* R sees to the prior's mass there */
}

/* d sd^2 = 2 sd^2 d log sd */
static double dprior(void *self, const double *theta) {
    const struct normal *p = self;
    const double log_sd = theta[LOG_SD];
    double log_density = 0;
    if (p->within && !is_within(p, theta)) return -INFINITY;
    if (!p->mean) {
        const double distance = theta[MEAN] - *p->prior_mean;
        log_density -= 0.5 * own_precision(p, log_sd) * distance * distance;
    }
    if (p->mean_prior == MEAN_NIG) log_density -= log_sd;
    if (!p->sd) log_density -= 2 * *p->shape * log_sd + *p->rate * exp(-2 * log_sd);
    return log_density;
}

/* ---- records ------------------------------------------------------------ */

static void set(void *self, const double *theta) {
    struct normal *p = self;
    memcpy(p->theta, theta, sizeof p->theta);
    p->sd_now = exp(theta[LOG_SD]);
}

/* shift + a x */
VECTOR_CLONES static void affine(int m, double shift, double a, const double *restrict x,
                                 double *restrict out) {
    FOR_RECORDS(i, m) out[i] = shift + a * x[i];
}

static void from_innovations(void *self, int m, const double *const *z, double *const *x) {
    const struct normal *p = self;
    affine(m, p->theta[MEAN], p->sd_now, z[0], x[0]);
}

static void rrecords(void *self, struct rng *rng, int m, double *const *x) {
    const struct normal *p = self;
    rng_fill_normal(rng, m, p->innovation);
    affine(m, p->theta[MEAN], p->sd_now, p->innovation, x[0]);
}

/* x' = mean' + (sd' / sd)(x - mean) */
static void set_move(void *self, const double *theta_new, int *changed) {
    struct normal *p = self;
    p->move_ratio = exp(theta_new[LOG_SD] - p->theta[LOG_SD]);
    p->move_shift = theta_new[MEAN] - p->move_ratio * p->theta[MEAN];
    changed[0] = memcmp(theta_new, p->theta, sizeof p->theta) != 0;
}

static void move(void *self, struct rng *rng, int m, const double *const *x, double *const *x_new) {
    (void)rng; /* the innovation of a continuous record is known */
    const struct normal *p = self;
    affine(m, p->move_shift, p->move_ratio, x[0], x_new[0]);
}

/* ---- complete-data statistic and its update ----------------------------- */

VECTOR_CLONES static void add(void *self, int m, const double *const *x, double *c) {
    const struct normal *p = self;
    affine(m, -*p->centre, 1, x[0], p->innovation);
    c[0] += block_sum(m, p->innovation);
    c[1] += block_dot(m, p->innovation, p->innovation);
}

/* the normal-inverse-gamma distribution given the records, means from the centre */
static struct nig condition_nig(const struct normal *p, const double *c, double n) {
    const double sum = c[0], square = c[1], kappa = *p->prior_precision;
    const double prior = *p->prior_mean - *p->centre, distance = sum / n - prior;
    const double scatter = square - sum * sum / n;
    const double excess = (scatter > 0 ? scatter : 0) /* never below 0 but for rounding */
                          + kappa * n / (kappa + n) * distance * distance;
    const struct nig nig = {
        .mean = (sum + kappa * prior) / (n + kappa),
        .precision = n + kappa,
        .shape = *p->shape + 0.5 * n,
        .rate = *p->rate + 0.5 * excess,
    };
    return nig;
}

static void draw_nig(const struct normal *p, const struct nig *nig, struct rng *rng,
                     double *theta) {
    theta[LOG_SD] = draw_log_sd(rng, nig->shape, nig->rate);
    theta[MEAN] =
        *p->centre + nig->mean + rng_normal(rng) * exp(theta[LOG_SD]) / sqrt(nig->precision);
}

static double cut_log_density(void *self, const double *theta) {
    const struct normal *p = self;
    const struct nig *nig = &p->posterior;
    if (!is_within(p, theta)) return -INFINITY;
    const double distance = theta[MEAN] - *p->centre - nig->mean, log_sd = theta[LOG_SD];
    return -(2 * nig->shape + 1) * log_sd -
           exp(-2 * log_sd) * (nig->rate + 0.5 * nig->precision * distance * distance);
}

static void update_nig(struct normal *p, const double *c, double n, int cut, struct rng *rng,
                       double *theta) {
    const struct nig nig = condition_nig(p, c, n);
    if (!cut) {
        draw_nig(p, &nig, rng, theta);
        return;
    }
    for (int k = 0; k < MOST_TRIES; ++k) {
        double trial[2];
        draw_nig(p, &nig, rng, trial);
        if (!is_within(p, trial)) continue;
        memcpy(theta, trial, sizeof trial);
        return;
    }
    const int which[] = {MEAN, LOG_SD};
    const double width[] = {2 * sqrt(nig.rate / (nig.shape * nig.precision)), 2 / sqrt(nig.shape)};
    p->posterior = nig;
    slice_sweep(2, which, width, cut_log_density, p, rng, theta);
}

/* Everything from the centre here. NIG: sd with the mean integrated out. */
static int update(struct normal *p, const double *c, double n, int cut, struct rng *rng,
                  double *theta) {
    const double sum = c[0], square = c[1];
    if (!isfinite(square)) return PLUGIN_NUMERICAL;
    if (p->mean_prior == MEAN_NIG) {
        update_nig(p, c, n, cut, rng, theta);
        return isfinite(theta[MEAN]) && isfinite(theta[LOG_SD]) ? PLUGIN_OK : PLUGIN_NUMERICAL;
    }
    if (!p->mean) {
        const double weight = exp(-2 * theta[LOG_SD]), prior = *p->prior_mean - *p->centre;
        const double precision = weight * n + *p->prior_precision;
        theta[MEAN] = *p->centre + (weight * sum + *p->prior_precision * prior) / precision +
                      rng_normal(rng) / sqrt(precision);
    }
    if (!p->sd) {
        const double distance = theta[MEAN] - *p->centre;
        const double residual = square - 2 * distance * sum + n * distance * distance;
        theta[LOG_SD] =
            draw_log_sd(rng, *p->shape + 0.5 * n, *p->rate + 0.5 * (residual > 0 ? residual : 0));
    }
    return isfinite(theta[MEAN]) && isfinite(theta[LOG_SD]) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

static int rtheta(void *self, const double *c, double n, struct rng *rng, double *theta) {
    const struct normal *p = self;
    return update(self, c, n, p->within != NULL, rng, theta);
}

static int rtheta_uncut(void *self, const double *c, double n, struct rng *rng, double *theta) {
    return update(self, c, n, 0, rng, theta);
}

static double log_likelihood(void *self, const double *theta, const double *c, double n,
                             double *gradient) {
    const struct normal *p = self;
    const double distance = theta[MEAN] - *p->centre, weight = exp(-2 * theta[LOG_SD]);
    const double residual = c[1] - 2 * distance * c[0] + n * distance * distance;
    if (gradient) {
        gradient[MEAN] += weight * (c[0] - n * distance);
        gradient[LOG_SD] += weight * residual - n;
    }
    return -n * theta[LOG_SD] - 0.5 * weight * residual;
}

/* With the mean's prior worth `kappa` records at m: b is half the records' squares about
 * the mean that they and the prior agree on, the prior's distance included. */
static double marginal(void *self, const double *c, double n, const double *theta,
                       double *gradient_c, double *gradient_kept) {
    const struct normal *p = self;
    const int kept = p->mean_prior == MEAN_NORMAL && !p->sd;
    const double log_sd = p->sd ? log(*p->sd) : theta[LOG_SD], variance = exp(2 * log_sd);
    const double prior = (p->mean ? *p->mean : *p->prior_mean) - *p->centre;
    const double kappa =
        p->mean ? 0 : *p->prior_precision * (p->mean_prior == MEAN_NIG ? 1 : variance);
    const double sum = c[0], square = c[1];
    const double at = p->mean ? prior : (sum + kappa * prior) / (n + kappa);
    const double distance = at - prior;
    const double twice = square - 2 * at * sum + n * at * at + kappa * distance * distance;
    const double half = 0.5 * (twice > 0 ? twice : 0);
    double slope, log_density = p->mean ? 0 : -0.5 * log(n + kappa);
    if (p->sd || kept) {
        slope = 1 / variance;
        log_density -= half * slope + (n - (p->mean_prior == MEAN_NORMAL)) * log_sd;
    } else {
        slope = (*p->shape + 0.5 * n) / (*p->rate + half);
        log_density -= (*p->shape + 0.5 * n) * log(*p->rate + half);
    }
    gradient_c[0] = slope * at;
    gradient_c[1] = -0.5 * slope;
    if (kept) {
        log_density -= 2 * *p->shape * log_sd + *p->rate / variance;
        *gradient_kept = -kappa / (n + kappa) - kappa * distance * distance * slope +
                         2 * half * slope - (n - 1) - 2 * *p->shape + 2 * *p->rate / variance;
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

static double marginal_size(const void *self, double n) {
    const struct normal *p = self;
    const int kept = p->mean_prior == MEAN_NORMAL;
    return -0.5 * n * log(2 * M_PI) + (p->sd || kept ? 0 : lgamma(*p->shape + 0.5 * n));
}

static void distribution(void *self, const double *theta, double *mean, double *chol) {
    const struct normal *p = self;
    *mean = theta[MEAN] - *p->centre;
    *chol = exp(theta[LOG_SD]);
}

/* ---- what it can do -------------------------------------------------------- */

static const struct model_prior prior_hooks = {.dprior = dprior};
static const struct model_statistic statistic_hooks = {.add = add};
static const struct model_update update_hooks = {.rtheta = rtheta};
static const struct model_update cut_update_hooks = {.rtheta = rtheta,
                                                     .rtheta_uncut = rtheta_uncut};
static const struct model_likelihood likelihood_hooks = {.log_likelihood = log_likelihood};
static const struct model_innovations innovations_hooks = {
    .count = 1, .kind = RNG_NORMAL, .from_innovations = from_innovations};
static const struct model_move move_hooks = {.set_move = set_move, .move = move};

static int create(const struct fields *fields, struct model *model) {
    struct normal *p = plugin_memory(1, sizeof *p);
    p->centre = fields_vector(fields, "centre", 1);
    p->mean = fields_vector(fields, "mean", 1);
    p->sd = fields_vector(fields, "sd", 1);
    p->prior_mean = fields_vector(fields, "prior_mean", 1);
    p->prior_precision = fields_vector(fields, "prior_precision", 1);
    p->shape = fields_vector(fields, "shape", 1);
    p->rate = fields_vector(fields, "rate", 1);
    p->within = fields_vector(fields, "within", 3);
    const double *nig = fields_vector(fields, "nig", 1);
    const int complete = p->centre && (p->mean || (p->prior_mean && p->prior_precision && nig)) &&
                         (p->sd || (p->shape && p->rate));
    if (!complete) return PLUGIN_BAD_FIELDS;
    if (!p->mean && *nig != 0 && p->sd) return PLUGIN_BAD_FIELDS;
    p->mean_prior = p->mean ? MEAN_KNOWN : *nig != 0 ? MEAN_NIG : MEAN_NORMAL;
    p->innovation = plugin_memory(MAX_BLOCK, sizeof *p->innovation);
    model->self = p;
    model->prior = &prior_hooks;
    model->statistic = &statistic_hooks;
    model->likelihood = &likelihood_hooks;
    model->innovations = &innovations_hooks;
    model->move = &move_hooks;
    model->columns = 1;
    model->complete = 2;
    if (p->sd) p->log_sd = log(*p->sd);
    const struct theta_block block[] = {
        {.name = "mean", .transform = TRANSFORM_IDENTITY, .size = 1, .known = p->mean},
        {.name = "sd", .transform = TRANSFORM_LOG, .size = 1, .known = p->sd ? &p->log_sd : NULL},
    };
    model_describe(model, 2, block);
    model->update = p->within ? &cut_update_hooks : &update_hooks;
    if (p->mean_prior == MEAN_NORMAL && !p->sd) {
        p->kept = LOG_SD;
        p->integrated.keeps = 1;
        p->integrated.kept = &p->kept;
        p->integrated.residual = LOG_SD;
    }
    p->described = (struct model_normal){
        .origin = p->centre, .order = &p->order, .distribution = distribution};
    model->normal = &p->described;
    p->integrated.marginal = marginal;
    p->integrated.marginal_size = marginal_size;
    model->marginal = &p->integrated;
    return PLUGIN_OK;
}

const struct model_class model_normal = {
    .name = "normal",
    .create = create,
    .rprior = rprior,
    .set = set,
    .rrecords = rrecords,
};
