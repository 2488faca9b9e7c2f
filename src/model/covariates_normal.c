/* The distribution of covariates, shared by the models that have some: continuous ones N(mean,
 * cov) with a normal-inverse-Wishart prior or known values, factors categorical with Dirichlet
 * priors, lone ones (model/covariates_independent.c) with their own distributions; both
 * independent of the rest and of each other. Or factors depend on each other, and the continuous
 * ones on them: this file then calls model/covariates_joint.c.
 *
 * A factor of a record is either dummy columns, one a level but the first, or
 * one column of codes 0, 1, ... The moments, and a regression's design, always
 * have dummies.
 *
 * theta: mean | cov | probabilities of each factor's levels | lone ones' parts, in the coordinates
 * of contract/coordinates.h and base/sticks.h. Known values stay fixed.
 *
 * Innovations: x = mean + L u, u standard normal; a level's is a uniform
 * (model/categorical_draw.c). The prior of mean and sd may be truncated. Updates:
 * model/covariates_update.c.
 *
 * Cost: O(normal^2) per record.
 */
#include "model/covariates_factors.h"
#include "model/covariates_independent.h"
#include "model/covariates_joint.h"

#include "base/dist.h"
#include "base/linalg.h"

#include <Rmath.h>
#undef df /* the name of a field here */

void covariates_unpack(const struct covariates *cov, const double *theta, double *chol) {
    unpack_cholesky(cov->normal, theta + cov->at_chol, cov->normal, chol);
}

/* ---- set-up ------------------------------------------------------------- */

/* Fields: centre, one a column of the moments; column and code, for each of
 * these the record's column (-1: it is a product) and, if that holds codes, the code that its
 * dummy represents; continuous, and factor_first, where covariates are among them. */
static int read_layout(const struct fields *fields, struct covariates *cov) {
    struct design *design = &cov->design;
    cov->q = fields_length(fields, "centre");
    cov->normal = fields_length(fields, "continuous");
    cov->factors.count = fields_length(fields, "factor_levels");
    cov->centre = fields_vector(fields, "centre", cov->q);
    design->column = fields_vector(fields, "column", cov->q);
    design->code = fields_vector(fields, "code", cov->q);
    const double *continuous = fields_vector(fields, "continuous", cov->normal);
    const double *first = fields_vector(fields, "factor_first", cov->factors.count);
    const double *levels = fields_vector(fields, "factor_levels", cov->factors.count);
    if (!cov->centre || !design->column || !design->code || !continuous || !first || !levels)
        return PLUGIN_BAD_FIELDS;
    const int status = products_read(fields, cov->q, &design->products);
    if (status != PLUGIN_OK) return status;
    const int p = cov->normal;
    cov->column = plugin_memory((size_t)p, sizeof(int));
    cov->moment = plugin_memory((size_t)p, sizeof(int));
    for (int i = 0; i < p; ++i) {
        cov->moment[i] = (int)continuous[i];
        cov->column[i] = (int)design->column[cov->moment[i]];
    }
    cov->factors.factor = plugin_memory((size_t)cov->factors.count, sizeof *cov->factors.factor);
    for (int f = 0; f < cov->factors.count; ++f) {
        struct factor *factor = cov->factors.factor + f;
        factor->levels = (int)levels[f];
        factor->of = levels_new(factor->levels, 1);
        factor->first = (int)first[f];
        factor->column = (int)design->column[factor->first];
        factor->coded = design->code[factor->first] != 0;
        factor->at = cov->factors.levels;
        cov->factors.levels += factor->levels;
    }
    for (int j = 0; j < cov->q; ++j) design->coded = design->coded || design->code[j] != 0;
    return PLUGIN_OK;
}

/* The products L L' of a lower factor, upper triangle, rows of `width`. */
static double *square(int p, int width, const double *chol) {
    double *out = doubles((size_t)p * (size_t)width);
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j)
            out[(size_t)i * width + j] =
                linalg_dot(i + 1, chol + (size_t)i * p, chol + (size_t)j * p);
    return out;
}

static void prepare_marginal(int p, const double *prior_chol, const double *known_chol,
                             struct niw_marginal *marginal) {
    const int width = marginal->stride = PAD_LANES(p);
    marginal->precision = doubles((size_t)p * (size_t)width);
    marginal->sweep = doubles(2 * (size_t)width);
    DOUBLES((size_t)width, &marginal->distance, &marginal->sum);
    if (!known_chol) {
        marginal->prior_scale = square(p, width, prior_chol);
        return;
    }
    marginal->known_precision = square(p, width, known_chol);
    (void)linalg_sweep(p, p, width, marginal->known_precision, marginal->sweep);
}

/* theta's blocks, and where they are */
static void describe(int blocks, const struct theta_block *own, struct model *model,
                     struct covariates *cov) {
    const int p = cov->normal,
              factors = cov->joint ? joint_describe(cov, NULL) : cov->factors.count;
    const int count = blocks + 2 + factors + cov->lones.blocks;
    struct theta_block *block = plugin_memory((size_t)count, sizeof *block);
    for (int k = 0; k < blocks; ++k) block[k] = own[k];
    double *chol = NULL;
    if (cov->cov_chol) {
        chol = doubles((size_t)(p * (p + 1) / 2));
        pack_cholesky(p, cov->cov_chol, chol);
    }
    block[blocks] = (struct theta_block){
        .name = "mean", .transform = TRANSFORM_IDENTITY, .size = p, .known = cov->mean};
    block[blocks + 1] = (struct theta_block){
        .name = "cov", .transform = TRANSFORM_LOG_CHOLESKY, .size = p, .known = chol};
    for (int f = 0; f < cov->factors.count && !cov->joint; ++f)
        block[blocks + 2 + f] = (struct theta_block){.name = "prob",
                                                     .transform = TRANSFORM_STICKS,
                                                     .size = cov->factors.factor[f].levels,
                                                     .rows = 1};
    if (cov->joint) (void)joint_describe(cov, block + blocks + 2);
    lones_describe(&cov->lones, block + blocks + 2 + factors);
    model_describe(model, count, block);
    block = model->coordinates.block + blocks;
    cov->at_mean = block[0].offset;
    cov->at_chol = block[1].offset;
    cov->at_sticks = cov->at_chol + block[1].length;
    cov->end = model->coordinates.length;
    if (cov->joint) {
        joint_place(cov, block + 2);
        cov->at_sticks = cov->joint->at_cells; /* effects belong to the numbers */
    }
    for (int f = 0; f < cov->factors.count && !cov->joint; ++f)
        cov->factors.factor[f].stick = block[2 + f].offset;
    lones_place(&cov->lones, block + 2 + factors);
}

/* the regression and the distribution of its covariates are moved apart */
static void set_groups(const struct covariates *cov, struct model *model) {
    model->groups.of = plugin_memory((size_t)model->parameters, sizeof *model->groups.of);
    int own = 0;
    while (own < model->moving && model->moves[own] < cov->at_mean) ++own;
    if (own == 0 || own == model->moving) return;
    model->groups.count = 2;
    for (int j = own; j < model->moving; ++j) model->groups.of[j] = 1;
}

static void read_levels(void *self, int factor, int m, const double *const *x, double *level) {
    const struct covariates *cov = self;
    if (cov->joint)
        joint_read_cells(cov, m, x, level);
    else
        factor_read_levels(cov->factors.factor + factor, m, x, level);
}

int covariates_create(const struct fields *fields, int blocks, const struct theta_block *own,
                      struct model *model, struct covariates *cov) {
    int status = read_layout(fields, cov);
    if (status == PLUGIN_OK) status = lones_create(fields, cov->design.column, &cov->lones);
    if (status != PLUGIN_OK) return status;
    const int p = cov->normal;
    const size_t square = (size_t)p * (size_t)p;
    const double *kappa = fields_vector(fields, "mean_kappa", 1);
    const double *scale = fields_vector(fields, "cov_scale", p * p);
    const double *df = fields_vector(fields, "cov_df", 1);
    cov->mean = fields_vector(fields, "mean", p);
    cov->cov_chol = fields_vector(fields, "cov_chol", p * p);
    cov->prior.mean = fields_vector(fields, "mean_prior", p);
    cov->within.lower = fields_vector(fields, "within_lower", p);
    cov->within.upper = fields_vector(fields, "within_upper", p);
    cov->within.sd = fields_vector(fields, "within_sd", p);
    cov->factors.alpha = fields_vector(fields, "alpha", cov->factors.levels);
    if (!(cov->mean || (cov->prior.mean && kappa)) || !(cov->cov_chol || (scale && df)) ||
        !cov->factors.alpha)
        return PLUGIN_BAD_FIELDS;
    if (kappa) cov->prior.kappa = *kappa;
    if (df) cov->prior.df = *df;
    if (scale) {
        cov->prior.scale_chol = doubles(square);
        memcpy(cov->prior.scale_chol, scale, square * sizeof(double));
        if (linalg_cholesky(p, cov->prior.scale_chol)) return PLUGIN_BAD_FIELDS;
    }

    status = joint_create(fields, cov);
    if (status != PLUGIN_OK) return status;
    describe(blocks, own, model, cov);
    set_groups(cov, model);
    struct model_factor *described = plugin_memory((size_t)cov->factors.count, sizeof *described);
    for (int f = 0; f < cov->factors.count; ++f) {
        described[f].levels = cov->factors.factor[f].levels;
        described[f].alpha = cov->factors.alpha + cov->factors.factor[f].at;
        described[f].first = cov->factors.factor[f].first;
    }
    cov->of_levels.factors = cov->factors.count;
    cov->of_levels.factor = described;
    cov->of_levels.read_levels = read_levels;
    if (cov->joint) cov->of_levels.joint = &cov->joint->described;
    if (cov->factors.count > 0) model->levels = &cov->of_levels;

    DOUBLES((size_t)p, &cov->mean_now, &cov->map.shift);
    DOUBLES(square, &cov->chol, &cov->map.matrix);
    cov->terms = terms_new(p + 2);
    DOUBLES((size_t)cov->end, &cov->slice.theta, &cov->slice.width);
    cov->slice.visited = plugin_memory((size_t)cov->end, sizeof(int));
    DOUBLES(square, &cov->posterior.scale_chol, &cov->work.chol, &cov->work.bartlett);
    DOUBLES((size_t)p, &cov->work.mean, &cov->work.draw);
    prepare_marginal(p, cov->prior.scale_chol, cov->cov_chol, &cov->marginal);
    cov->innovation = plugin_memory((size_t)p, sizeof(double *));
    for (int i = 0; i < p; ++i) cov->innovation[i] = doubles(MAX_BLOCK);
    cov->factors.weight = doubles((size_t)cov->factors.levels);
    cov->factors.work = level_work_new();
    DOUBLES(MAX_BLOCK, &cov->factors.level, &cov->factors.level_old);
    if (cov->design.coded) cov->design.dummy = doubles((size_t)cov->q * MAX_BLOCK);
    cov->design.of = plugin_memory((size_t)cov->q, sizeof(double *));
    return PLUGIN_OK;
}

int covariates_is_cut(const struct covariates *cov) { return cov->within.lower || cov->within.sd; }

/* ---- prior -------------------------------------------------------------- */

void covariates_draw_niw(struct covariates *cov, const struct niw *niw, struct rng *rng,
                         double *theta) {
    const int p = cov->normal;
    if (cov->cov_chol) {
        memcpy(cov->work.chol, cov->cov_chol, (size_t)p * (size_t)p * sizeof(double));
    } else {
        dist_inverse_wishart(rng, p, niw->df, niw->scale_chol, cov->work.chol, cov->work.bartlett);
        pack_cholesky(p, cov->work.chol, theta + cov->at_chol);
    }
    if (cov->mean) return;
    for (int j = 0; j < p; ++j) cov->work.draw[j] = rng_normal(rng);
    for (int i = 0; i < p; ++i)
        theta[cov->at_mean + i] =
            niw->mean[i] +
            linalg_dot(i + 1, cov->work.chol + (size_t)i * p, cov->work.draw) / sqrt(niw->kappa);
}

/* d cov = prod_i 2 L_ii^(p - i) L_ii d theta (i from 0) */
double covariates_niw_density(struct covariates *cov, const struct niw *niw, const double *theta) {
    const int p = cov->normal;
    double log_density = 0;
    covariates_unpack(cov, theta, cov->work.chol);
    if (!cov->cov_chol) {
        /* tr(Psi Sigma^-1) = |L^-1 C|^2, column by column */
        for (int j = 0; j < p; ++j) {
            double *column = cov->work.draw;
            for (int i = j; i < p; ++i) {
                const double *row = cov->work.chol + (size_t)i * p;
                const double sum = linalg_dot(i - j, row + j, column + j);
                column[i] = (niw->scale_chol[(size_t)i * p + j] - sum) / row[i];
            }
            log_density -= 0.5 * linalg_dot(p - j, column + j, column + j);
            log_density -= (niw->df + j) * theta[cov->at_chol + covariates_packed(j, j)];
        }
    }
    if (!cov->mean) {
        for (int i = 0; i < p; ++i) {
            cov->work.draw[i] = theta[cov->at_mean + i] - niw->mean[i];
            log_density -= theta[cov->at_chol + covariates_packed(i, i)];
        }
        linalg_forward(p, cov->work.chol, cov->work.draw);
        log_density -= 0.5 * niw->kappa * linalg_dot(p, cov->work.draw, cov->work.draw);
    }
    return log_density;
}

int covariates_is_within(struct covariates *cov, const double *theta) {
    const int p = cov->normal;
    const double *mean = theta + cov->at_mean;
    for (int i = 0; cov->within.lower && i < p; ++i)
        if (!(mean[i] >= cov->within.lower[i] && mean[i] <= cov->within.upper[i])) return 0;
    if (!cov->within.sd) return 1;
    covariates_unpack(cov, theta, cov->work.chol);
    for (int i = 0; i < p; ++i) {
        const double *row = cov->work.chol + (size_t)i * p;
        if (!(linalg_dot(i + 1, row, row) <= cov->within.sd[i] * cov->within.sd[i])) return 0;
    }
    return 1;
}

void covariates_rprior(struct covariates *cov, struct rng *rng, double *theta) {
    do {
        covariates_draw_niw(cov, &cov->prior, rng, theta);
    } while (covariates_is_cut(cov) &&
             !covariates_is_within(cov, theta)); /* R sees to the prior's mass there */
    if (cov->joint)
        joint_rprior(cov, cov->work.chol, rng, theta);
    else
        factors_rprior(&cov->factors, rng, theta);
    lones_rprior(&cov->lones, rng, theta);
}

double covariates_dprior(struct covariates *cov, const double *theta) {
    if (covariates_is_cut(cov) && !covariates_is_within(cov, theta)) return -INFINITY;
    const double numbers = cov->normal > 0 ? covariates_niw_density(cov, &cov->prior, theta) : 0;
    const double factors = cov->joint ? joint_dprior(cov, cov->work.chol, theta)
                                      : factors_dprior(&cov->factors, theta);
    return numbers + factors + lones_dprior(&cov->lones, theta);
}

/* Adds the gradient of covariates_niw_density(). With R the columns of the prior's factor C and
 * sqrt(kappa) (mean - m), as far as the prior has them, the density holds -|Z|^2 / 2, Z = L^-1 R;
 * with Y = L^-T Z its slope is Y Z' in L, and -Y in R. */
static void niw_gradient(struct covariates *cov, const struct niw *niw, const double *theta,
                         double *gradient) {
    const int p = cov->normal;
    double *z = cov->work.draw, *y = cov->work.mean, *packed_slope = gradient + cov->at_chol;
    covariates_unpack(cov, theta, cov->work.chol);
    for (int column = cov->cov_chol ? p : 0; column < p + (cov->mean == NULL); ++column) {
        for (int i = 0; i < p; ++i)
            z[i] = column == p  ? sqrt(niw->kappa) * (theta[cov->at_mean + i] - niw->mean[i])
                   : i < column ? 0
                                : niw->scale_chol[(size_t)i * p + column];
        linalg_forward(p, cov->work.chol, z);
        memcpy(y, z, (size_t)p * sizeof(double));
        linalg_backward(p, cov->work.chol, y);
        for (int i = 0; column == p && i < p; ++i)
            gradient[cov->at_mean + i] -= sqrt(niw->kappa) * y[i];
        for (int i = 0; i < p; ++i) {
            for (int j = 0; j < i; ++j) packed_slope[covariates_packed(i, j)] += y[i] * z[j];
            packed_slope[covariates_packed(i, i)] +=
                y[i] * z[i] * cov->work.chol[(size_t)i * p + i];
        }
    }
    for (int j = 0; j < p; ++j)
        packed_slope[covariates_packed(j, j)] -=
            (cov->cov_chol ? 0 : niw->df + j) + (cov->mean ? 0 : 1);
}

void covariates_prior_gradient(struct covariates *cov, const double *theta, double *gradient) {
    if (cov->normal > 0) niw_gradient(cov, &cov->prior, theta, gradient);
    if (cov->joint)
        joint_prior_gradient(cov, theta, gradient);
    else
        factors_prior_gradient(&cov->factors, theta, gradient);
}

void covariates_distribution(const struct covariates *cov, const double *theta, int width,
                             double *mean, double *chol) {
    memcpy(mean, theta + cov->at_mean, (size_t)cov->normal * sizeof(double));
    unpack_cholesky(cov->normal, theta + cov->at_chol, width, chol);
}

void covariates_pull_distribution(const struct covariates *cov, int width, const double *chol,
                                  const double *slope_mean, const double *slope_chol,
                                  double *gradient) {
    double *of_chol = gradient + cov->at_chol;
    for (int i = 0; i < cov->normal; ++i, chol += width, slope_chol += width) {
        gradient[cov->at_mean + i] += slope_mean[i];
        for (int j = 0; j < i; ++j) *of_chol++ += slope_chol[j];
        *of_chol++ += slope_chol[i] * chol[i];
    }
}

/* ---- records ------------------------------------------------------------ */

void covariates_set(struct covariates *cov, const double *theta) {
    memcpy(cov->mean_now, theta + cov->at_mean, (size_t)cov->normal * sizeof(double));
    covariates_unpack(cov, theta, cov->chol);
    if (cov->joint)
        joint_set(cov, theta);
    else
        factors_set(&cov->factors, theta);
    lones_set(&cov->lones, theta);
}

/* x* = mean* + rho (x - mean) + sqrt(1 - rho^2) L z, mean* of the new levels */
void covariates_form(struct covariates *cov, double rho, int m, const double *const *z,
                     const double *const *x, double *const *x_new) {
    const int p = cov->normal;
    const double fresh = sqrt(1 - rho * rho);
    for (int i = 0; i < p; ++i) {
        terms_clear(&cov->terms);
        for (int j = 0; j <= i; ++j)
            terms_add(&cov->terms, fresh * cov->chol[(size_t)i * p + j], z[j]);
        if (rho != 0) terms_add(&cov->terms, rho, x[cov->column[i]]);
        if (cov->joint)
            terms_add(&cov->terms, 1,
                      joint_shift(cov, i, m, cov->joint->mean, rho, cov->joint->mean));
        terms_sum(&cov->terms, cov->joint ? 0 : (1 - rho) * cov->mean_now[i], m,
                  x_new[cov->column[i]]);
    }
}

void covariates_refresh(struct covariates *cov, double rho, struct rng *rng, int m,
                        const double *const *x, double *const *x_new) {
    if (cov->joint)
        joint_refresh(cov, rho, rng, m, x, x_new);
    else
        factors_refresh(&cov->factors, rho, rng, m, x, x_new);
    lones_refresh(&cov->lones, rho, rng, m, x, x_new);
    for (int j = 0; j < cov->normal; ++j) rng_fill_normal(rng, m, cov->innovation[j]);
    covariates_form(cov, rho, m, (const double *const *)cov->innovation, x, x_new);
}

void covariates_add_density(struct covariates *cov, int m, const double *const *x, double *out) {
    const int p = cov->normal;
    for (int i = 0; i < p; ++i) {
        const double *row = cov->chol + (size_t)i * p, scale = 1 / row[i];
        double *u = cov->innovation[i];
        terms_clear(&cov->terms);
        terms_add(&cov->terms, scale, x[cov->column[i]]);
        for (int j = 0; j < i; ++j) terms_add(&cov->terms, -scale * row[j], cov->innovation[j]);
        terms_sum(&cov->terms, -scale * cov->mean_now[i], m, u);
        FOR_RECORDS(r, m) out[r] -= 0.5 * u[r] * u[r];
    }
}

/* ---- non-centred move: x' = mean' + L' L^-1 (x - mean), levels by levels_move(), the means
 *      of the levels before and after ------------------------------------------------- */

/* M L = L': row i of M from the last column back */
static void set_map(struct covariates *cov, const double *theta_new) {
    const int p = cov->normal;
    covariates_unpack(cov, theta_new, cov->work.chol);
    for (int i = 0; i < p; ++i) {
        double *row = cov->map.matrix + (size_t)i * p;
        for (int j = i; j >= 0; --j) {
            double sum = cov->work.chol[(size_t)i * p + j];
            for (int l = j + 1; l <= i; ++l) sum -= row[l] * cov->chol[(size_t)l * p + j];
            row[j] = sum / cov->chol[(size_t)j * p + j];
        }
        cov->map.shift[i] = theta_new[cov->at_mean + i] - linalg_dot(i + 1, row, cov->mean_now);
    }
}

void covariates_relevel(struct covariates *cov, int factor, int from, int to, int m,
                        const double *const *x, double *const *x_new) {
    lones_copy(&cov->lones, m, x, x_new);
    if (cov->joint) {
        joint_relevel(cov, from, to, m, x, x_new);
        return;
    }
    for (int i = 0; i < cov->normal; ++i)
        memcpy(x_new[cov->column[i]], x[cov->column[i]], (size_t)m * sizeof(double));
    factors_relevel(&cov->factors, factor, to, m, x, x_new);
}

void covariates_set_move(struct covariates *cov, const double *theta, const double *theta_new,
                         int *changed) {
    const int p = cov->normal;
    cov->map.moves = covariates_differ(theta, theta_new, cov->at_mean, cov->at_sticks);
    if (cov->joint) { /* whose means follow the levels */
        const int at = cov->joint->at_cells, end = at + cov->joint->cells - 1;
        if (covariates_differ(theta, theta_new, at, end)) cov->map.moves = cov->normal > 0;
    } else {
        factors_set_move(&cov->factors, theta, theta_new, changed);
    }
    lones_set_move(&cov->lones, theta, theta_new, changed);
    for (int i = 0; i < p; ++i) changed[cov->column[i]] = cov->map.moves;
    if (cov->map.moves) set_map(cov, theta_new);
    if (cov->joint) joint_set_move(cov, theta, theta_new, changed);
}

void covariates_move(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                     double *const *x_new) {
    const int p = cov->normal;
    if (cov->joint)
        joint_move(cov, rng, m, x, x_new);
    else
        factors_move(&cov->factors, rng, m, x, x_new);
    lones_move(&cov->lones, rng, m, x, x_new);
    for (int i = 0; cov->map.moves && i < p; ++i) {
        terms_clear(&cov->terms);
        for (int j = 0; j <= i; ++j)
            terms_add(&cov->terms, cov->map.matrix[(size_t)i * p + j], x[cov->column[j]]);
        if (cov->joint)
            terms_add(&cov->terms, 1,
                      joint_shift(cov, i, m, cov->joint->mean_next, 1, cov->joint->mean_mapped));
        terms_sum(&cov->terms, cov->joint ? 0 : cov->map.shift[i], m, x_new[cov->column[i]]);
    }
}
