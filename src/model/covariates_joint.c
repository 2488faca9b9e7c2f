/* Factors that depend on each other, and numbers whose means depend on them: the general location
 * model (Olkin & Tate 1961; Schafer 1997; vignette "Algorithms", dependent covariates).
 *
 * A record is in a cell c of the factors' cross-table with probability p_c,
 *
 *   p ~ Dirichlet(a q),  q_c = prod_f q_f(level of c),  q_f ~ Dirichlet(alpha_f),  log a ~ normal.
 *
 * A large concentration a makes the factors independent. With one factor p ~ Dirichlet(alpha), and
 * there is neither a nor q. Given the cell the numbers are N(B'd, Sigma), d = (1, dummies), with
 *
 *   Sigma ~ inverse Wishart,  B | Sigma ~ matrix normal, rows of precision K0 = diag(kappa,
 * kappa_e, kappa_e, ...): the constant's as without factors, the effects' weak, about 0.
 *
 * theta: B without its first row, dummy by dummy | sticks of p | sticks of each q_f | log a.
 *
 * Complete-data statistic: the moments, and counts N of the cells. Updates: with D'D, D'X and X'X
 * of the moments, X less its centre, Lambda = D'D + K0, R = D'X + K0 B0 and
 *
 *   P = Psi0 + X'X + B0'K0 B0 - R'Lambda^-1 R,
 *
 * Sigma is inverse Wishart (df + n, P) and B is normal about Lambda^-1 R; then slice sampling of
 * (q, a) given N with p integrated out, and p ~ Dirichlet(a q + N). Integrated out, (B, Sigma)
 * leave -(numbers / 2) log |Lambda| - ((df + n) / 2) log |P|.
 *
 * Cost: O(factors) a record in addition to the numbers; O(dummies^3 + cells) for an update and for
 * each visit of a coordinate of (q, a). No allocation except in joint_create().
 */
#include "model/covariates_joint.h"

#include "base/dist.h"
#include "base/linalg.h"
#include "base/slice.h"
#include "base/stick_standard.h"
#include "base/sticks.h"
#include "base/sticks_draw.h"
#include "contract/model_values.h"
#include "model/covariates_factors.h"

#include <Rmath.h>
#undef df /* the name of a field here */

/* initial intervals of the slice sampler, in a stick and in the logarithm of a */
static const double STICK_WIDTH = 1, LOG_WIDTH = 2;

/* ---- set-up ------------------------------------------------------------- */

static void make_workspace(const struct covariates *cov, struct joint *joint) {
    const size_t cells = (size_t)joint->cells, p = (size_t)cov->normal;
    const size_t k = (size_t)joint->dummies + 1;
    DOUBLES(cells * p, &joint->mean, &joint->mean_next, &joint->mean_mapped);
    DOUBLES(MAX_BLOCK, &joint->block.cell, &joint->block.cell_new, &joint->block.level,
            &joint->block.shift);
    DOUBLES(cells, &joint->weight, &joint->alpha);
    joint->share = doubles(cells + (size_t)cov->factors.levels);
    joint->expected = doubles(cells);
    joint->standard = plugin_memory(cells, sizeof *joint->standard);
    joint->gram = doubles(k * k);
    DOUBLES(k * p, &joint->cross, &joint->draw);
}

int joint_create(const struct fields *fields, struct covariates *cov) {
    if (fields_length(fields, "effect_kappa") == 0) return PLUGIN_OK;
    const double *kappa = fields_vector(fields, "effect_kappa", 1);
    const double *log_mean = fields_vector(fields, "cells_log_mean", 1);
    const double *log_sd = fields_vector(fields, "cells_log_sd", 1);
    if (!kappa || !log_mean || !log_sd || cov->factors.count == 0 || cov->within.lower ||
        cov->within.sd)
        return PLUGIN_BAD_FIELDS;
    struct joint *joint = plugin_memory(1, sizeof *joint);
    cov->joint = joint;
    joint->effect_kappa = *kappa;
    joint->log_mean = *log_mean;
    joint->log_sd = *log_sd;
    joint->shares = cov->factors.count > 1;
    joint->effects = cov->mean ? 0 : cov->normal;
    joint->stride = plugin_memory((size_t)cov->factors.count, sizeof(int));
    joint->dummy = plugin_memory((size_t)cov->factors.levels, sizeof(int));
    joint->cells = 1;
    for (int f = 0; f < cov->factors.count; ++f) {
        const int levels = cov->factors.factor[f].levels;
        joint->stride[f] = joint->cells;
        joint->cells *= levels; /* checked in R */
        for (int l = 1; l < levels; ++l)
            joint->dummy[joint->dummies++] = cov->factors.factor[f].first + l - 1;
    }
    joint->of = levels_new(joint->cells, 1);
    make_workspace(cov, joint);
    joint->described = (struct model_factor){.levels = joint->cells, .alpha = joint->alpha};
    for (int c = 0; c < joint->cells; ++c)
        joint->alpha[c] = joint->shares ? 1 : cov->factors.alpha[c];
    return PLUGIN_OK;
}

int joint_describe(const struct covariates *cov, struct theta_block *block) {
    const struct joint *joint = cov->joint;
    const int count = 2 + (joint->shares ? cov->factors.count + 1 : 0);
    if (!block) return count;
    *block++ = (struct theta_block){
        .name = "effect", .transform = TRANSFORM_IDENTITY, .size = joint->dummies * joint->effects};
    *block++ = (struct theta_block){
        .name = "prob", .transform = TRANSFORM_STICKS, .size = joint->cells, .rows = 1};
    if (!joint->shares) return count;
    for (int f = 0; f < cov->factors.count; ++f)
        *block++ = (struct theta_block){.name = "base",
                                        .transform = TRANSFORM_STICKS,
                                        .size = cov->factors.factor[f].levels,
                                        .rows = 1};
    *block = (struct theta_block){.name = "concentration", .transform = TRANSFORM_LOG, .size = 1};
    return count;
}

void joint_place(struct covariates *cov, const struct theta_block *block) {
    struct joint *joint = cov->joint;
    joint->at_effects = block[0].offset;
    joint->at_cells = block[1].offset;
    for (int f = 0; f < cov->factors.count; ++f)
        cov->factors.factor[f].stick = block[1 + joint->shares + f].offset;
    if (joint->shares) joint->at_concentration = block[2 + cov->factors.count].offset;
}

static int level_of(const struct covariates *cov, int f, int cell) {
    return cell / cov->joint->stride[f] % cov->factors.factor[f].levels;
}

/* ---- natural values ------------------------------------------------------- */

/* Shares of each factor's levels, factor by factor, given the shares of the cells. */
void joint_margins(const struct covariates *cov, const double *cells, double *margin) {
    for (int l = 0; l < cov->factors.levels; ++l) margin[l] = 0;
    for (int c = 0; c < cov->joint->cells; ++c)
        for (int f = 0; f < cov->factors.count; ++f)
            margin[cov->factors.factor[f].at + level_of(cov, f, c)] += cells[c];
}

/* mean += sign times what the levels add in the mean over the cells */
static void shift_mean(const struct covariates *cov, double sign, const double *margin,
                       const double *effect, double *mean) {
    for (int f = 0; f < cov->factors.count; ++f)
        for (int l = 1; l < cov->factors.factor[f].levels; ++l)
            for (int i = 0; i < cov->joint->effects; ++i)
                mean[i] += sign * margin[cov->factors.factor[f].at + l] * *effect++;
}

static int count_reported(const struct covariates *cov, const struct coordinates *coordinates) {
    int count = cov->joint->shares ? cov->factors.levels : 0;
    for (int k = 0; k < coordinates->count; ++k) count += block_reported(coordinates->block + k);
    return count;
}

static void report(void *self, const double *theta, double *out) {
    const struct covariates *cov = self;
    const struct joint *joint = cov->joint;
    const struct coordinates *coordinates = &joint->coordinates;
    double *cells = joint->share, *margin = cells + joint->cells;
    sticks_to_probabilities(joint->cells, theta + joint->at_cells, cells);
    joint_margins(cov, cells, margin);
    for (int k = 0; k < coordinates->count; ++k) {
        const struct theta_block *block = coordinates->block + k;
        if (block->known) continue;
        if (joint->shares && block->offset == joint->at_cells &&
            block->transform == TRANSFORM_STICKS) {
            memcpy(out, margin, (size_t)cov->factors.levels * sizeof(double));
            out += cov->factors.levels;
        }
        const struct coordinates one = {.count = 1, .block = coordinates->block + k};
        double *const values = out;
        out = coordinates_report(&one, theta, out);
        if (block->offset == cov->at_mean && strcmp(block->name, "mean") == 0)
            shift_mean(cov, 1, margin, theta + joint->at_effects, values);
    }
}

static int invert(void *self, const double *value, double *theta) {
    const struct covariates *cov = self;
    const struct joint *joint = cov->joint;
    const struct coordinates *coordinates = &joint->coordinates;
    double *cells = joint->share, *margin = cells + joint->cells;
    coordinates_set_known(coordinates, theta);
    for (int k = 0; k < coordinates->count; ++k) {
        const struct theta_block *block = coordinates->block + k;
        if (block->known) continue;
        if (joint->shares && block->offset == joint->at_cells &&
            block->transform == TRANSFORM_STICKS)
            value += cov->factors.levels; /* follow from the cells */
        const struct coordinates one = {.count = 1, .block = coordinates->block + k};
        if (coordinates_invert(&one, value, theta) >= 0) return PLUGIN_NUMERICAL;
        value += block_reported(block);
    }
    sticks_to_probabilities(joint->cells, theta + joint->at_cells, cells);
    joint_margins(cov, cells, margin);
    if (joint->effects > 0)
        shift_mean(cov, -1, margin, theta + joint->at_effects, theta + cov->at_mean);
    return PLUGIN_OK;
}

static const struct model_values values_hooks = {.report = report, .invert = invert};

void joint_complete(struct covariates *cov, struct model *model) {
    struct joint *joint = cov->joint;
    joint->coordinates = model->coordinates;
    joint->described.first = joint->at_count = model->complete;
    model->complete += joint->cells;
    model->reported = count_reported(cov, &model->coordinates);
    model->values = &values_hooks;
}

/* ---- prior -------------------------------------------------------------- */

/* Dirichlet weights of the cells under theta. Returns their sum. */
double joint_weights(const struct covariates *cov, const double *theta, double *weight) {
    const struct joint *joint = cov->joint;
    double sum = 0;
    if (!joint->shares) {
        memcpy(weight, cov->factors.alpha, (size_t)joint->cells * sizeof(double));
    } else {
        double *share = joint->share + joint->cells;
        weight[0] = exp(theta[joint->at_concentration]);
        for (int f = 0; f < cov->factors.count; ++f) {
            const int levels = cov->factors.factor[f].levels, size = joint->stride[f];
            sticks_to_probabilities(levels, theta + cov->factors.factor[f].stick, share);
            for (int l = levels - 1; l >= 0; --l)
                for (int k = 0; k < size; ++k) weight[l * size + k] = share[l] * weight[k];
        }
    }
    for (int c = 0; c < joint->cells; ++c) sum += weight[c] = fmax(weight[c], JOINT_LEAST_WEIGHT);
    return sum;
}

void joint_rprior(struct covariates *cov, const double *chol, struct rng *rng, double *theta) {
    struct joint *joint = cov->joint;
    const int p = joint->effects;
    double *effect = theta + joint->at_effects, *z = joint->draw;
    for (int b = 0; p > 0 && b < joint->dummies; ++b, effect += p) {
        for (int i = 0; i < p; ++i) z[i] = rng_normal(rng) / sqrt(joint->effect_kappa);
        for (int i = 0; i < p; ++i) effect[i] = linalg_dot(i + 1, chol + (size_t)i * p, z);
    }
    if (joint->shares) {
        factors_rprior(&cov->factors, rng, theta);
        theta[joint->at_concentration] = joint->log_mean + joint->log_sd * rng_normal(rng);
    }
    (void)joint_weights(cov, theta, joint->weight);
    sticks_draw(rng, joint->cells, joint->weight, theta + joint->at_cells);
}

static double log_hyper(const struct covariates *cov, const double *theta) {
    const struct joint *joint = cov->joint;
    if (!joint->shares) return 0;
    const double away = (theta[joint->at_concentration] - joint->log_mean) / joint->log_sd;
    return factors_dprior(&cov->factors, theta) - 0.5 * away * away;
}

double joint_dprior(struct covariates *cov, double *chol, const double *theta) {
    struct joint *joint = cov->joint;
    const int p = joint->effects;
    const double *effect = theta + joint->at_effects;
    double log_density = log_hyper(cov, theta), *z = joint->draw;
    for (int b = 0; p > 0 && b < joint->dummies; ++b, effect += p) {
        memcpy(z, effect, (size_t)p * sizeof(double));
        linalg_forward(p, chol, z);
        log_density -= 0.5 * joint->effect_kappa * linalg_dot(p, z, z);
        for (int i = 0; i < p; ++i) log_density -= log(chol[(size_t)i * p + i]);
    }
    log_density += lgamma(joint_weights(cov, theta, joint->weight));
    for (int c = 0; c < joint->cells; ++c) log_density -= lgamma(joint->weight[c]);
    return log_density + sticks_log_density(joint->cells, joint->weight, theta + joint->at_cells);
}

/* ---- records ------------------------------------------------------------ */

/* the means of the numbers in each cell */
static void find_means(const struct covariates *cov, const double *theta, double *mean) {
    const struct joint *joint = cov->joint;
    const int p = cov->normal;
    for (int c = 0; c < joint->cells; ++c, mean += p) {
        const double *effect = theta + joint->at_effects;
        memcpy(mean, theta + cov->at_mean, (size_t)p * sizeof(double));
        for (int f = 0; f < cov->factors.count;
             effect += (cov->factors.factor[f++].levels - 1) * joint->effects) {
            const int l = level_of(cov, f, c);
            for (int i = 0; l > 0 && i < joint->effects; ++i)
                mean[i] += effect[(l - 1) * joint->effects + i];
        }
    }
}

void joint_set(struct covariates *cov, const double *theta) {
    struct joint *joint = cov->joint;
    levels_set(&joint->of, theta + joint->at_cells);
    (void)joint_weights(cov, theta, joint->alpha);
    find_means(cov, theta, joint->mean);
}

void joint_read_cells(const struct covariates *cov, int m, const double *const *x, double *cell) {
    const struct joint *joint = cov->joint;
    for (int f = 0; f < cov->factors.count; ++f) {
        const double stride = joint->stride[f];
        double *level = f > 0 ? joint->block.level : cell;
        factor_read_levels(cov->factors.factor + f, m, x, level);
        for (int i = 0; f > 0 && i < m; ++i) cell[i] += stride * level[i];
    }
}

void joint_write_cells(const struct covariates *cov, int m, const double *cell, double *const *x) {
    double *level = cov->joint->block.level;
    for (int f = 0; f < cov->factors.count; ++f) {
        for (int i = 0; i < m; ++i) level[i] = level_of(cov, f, (int)cell[i]);
        factor_write_levels(cov->factors.factor + f, m, level, x);
    }
}

void joint_refresh(struct covariates *cov, double rho, struct rng *rng, int m,
                   const double *const *x, double *const *x_new) {
    const struct joint *joint = cov->joint;
    if (rho > 0) joint_read_cells(cov, m, x, joint->block.cell);
    levels_refresh(&joint->of, &cov->factors.work, rho, rng, m, joint->block.cell,
                   joint->block.cell_new);
    joint_write_cells(cov, m, joint->block.cell_new, x_new);
}

const double *joint_shift(const struct covariates *cov, int i, int m, const double *mean_to,
                          double share, const double *mean_from) {
    const struct joint *joint = cov->joint;
    const int p = cov->normal;
    for (int r = 0; r < m; ++r) {
        joint->block.shift[r] = mean_to[(int)joint->block.cell_new[r] * p + i];
        if (share != 0)
            joint->block.shift[r] -= share * mean_from[(int)joint->block.cell[r] * p + i];
    }
    return joint->block.shift;
}

/* After the numbers' map is known: its image of the means. */
void joint_set_move(struct covariates *cov, const double *theta, const double *theta_new,
                    int *changed) {
    struct joint *joint = cov->joint;
    const int p = cov->normal, cuts = joint->cells - 1;
    levels_set_next(&joint->of, theta_new + joint->at_cells);
    joint->changed = covariates_differ(theta, theta_new, joint->at_cells, joint->at_cells + cuts);
    for (int f = 0; f < cov->factors.count; ++f) {
        const struct factor *factor = cov->factors.factor + f;
        for (int v = 0; v < (factor->coded ? 1 : factor->levels - 1); ++v)
            changed[factor->column + v] = joint->changed;
    }
    find_means(cov, theta_new, joint->mean_next);
    for (int c = 0; cov->map.moves && c < joint->cells; ++c)
        for (int i = 0; i < p; ++i)
            joint->mean_mapped[c * p + i] =
                linalg_dot(i + 1, cov->map.matrix + (size_t)i * p, joint->mean + (size_t)c * p);
}

void joint_move(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                double *const *x_new) {
    const struct joint *joint = cov->joint;
    joint_read_cells(cov, m, x, joint->block.cell);
    memcpy(joint->block.cell_new, joint->block.cell, (size_t)m * sizeof(double));
    if (!joint->changed) return;
    levels_move(&joint->of, &cov->factors.work, rng, m, NULL, NULL, joint->block.cell,
                joint->block.cell_new);
    joint_write_cells(cov, m, joint->block.cell_new, x_new);
}

void joint_relevel(struct covariates *cov, int from, int to, int m, const double *const *x,
                   double *const *x_new) {
    const struct joint *joint = cov->joint;
    const int p = cov->normal;
    for (int r = 0; r < m; ++r) joint->block.cell_new[r] = to;
    joint_write_cells(cov, m, joint->block.cell_new, x_new);
    for (int i = 0; i < p; ++i) {
        const double by = joint->mean[to * p + i] - joint->mean[from * p + i];
        for (int r = 0; r < m; ++r) x_new[cov->column[i]][r] = x[cov->column[i]][r] + by;
    }
}

void joint_add(const struct covariates *cov, int m, const double *const *x, double *c) {
    const struct joint *joint = cov->joint;
    joint_read_cells(cov, m, x, joint->block.cell);
    for (int r = 0; r < m; ++r) c[joint->at_count + (int)joint->block.cell[r]] += 1;
}

/* ---- numbers given the table ------------------------------------------------------- */

/* The factor of Lambda, and L^-1 R, a row for each number. Returns log |Lambda|, NAN where that has
 * none. */
static double solve_effects(struct covariates *cov, const double *c, double n) {
    const struct joint *joint = cov->joint;
    const int k = joint->dummies + 1, p = cov->normal, q = cov->q;
    double *gram = joint->gram, log_determinant = 0;
    for (int a = 0; a < k; ++a)
        for (int b = 0; b <= a; ++b) {
            const int own = a > 0 ? joint->dummy[a - 1] : 0,
                      other = b > 0 ? joint->dummy[b - 1] : 0;
            gram[a * k + b] = a == 0 ? n : b == 0 ? c[own] : c[moments_at(q, own, other)];
        }
    gram[0] += cov->prior.kappa;
    for (int a = 1; a < k; ++a) gram[a * k + a] += joint->effect_kappa;
    if (linalg_cholesky(k, gram)) return NAN;
    for (int a = 0; a < k; ++a) log_determinant += 2 * log(gram[a * k + a]);
    for (int i = 0; i < p; ++i) {
        double *row = joint->cross + (size_t)i * k;
        const int v = cov->moment[i];
        row[0] = c[v] + cov->prior.kappa * (cov->prior.mean[i] - cov->centre[v]);
        for (int a = 1; a < k; ++a) row[a] = c[moments_at(q, v, joint->dummy[a - 1])];
        linalg_forward(k, gram, row);
    }
    return log_determinant;
}

/* After solve_effects(): an entry of P without its prior's part. */
static double scatter_at(const struct covariates *cov, const double *c, int i, int j) {
    const struct joint *joint = cov->joint;
    const int k = joint->dummies + 1, v = cov->moment[i], w = cov->moment[j];
    return c[moments_at(cov->q, v, w)] +
           cov->prior.kappa * (cov->prior.mean[i] - cov->centre[v]) *
               (cov->prior.mean[j] - cov->centre[w]) -
           linalg_dot(k, joint->cross + (size_t)i * k, joint->cross + (size_t)j * k);
}

static int draw_numbers(struct covariates *cov, const double *c, double n, struct rng *rng,
                        double *theta) {
    const struct joint *joint = cov->joint;
    const int p = cov->normal, k = joint->dummies + 1;
    double *chol = cov->work.chol, *z = joint->draw;
    if (isnan(solve_effects(cov, c, n))) return PLUGIN_NUMERICAL;
    if (cov->cov_chol) {
        memcpy(chol, cov->cov_chol, (size_t)p * (size_t)p * sizeof(double));
    } else {
        double *scale = cov->posterior.scale_chol;
        for (int i = 0; i < p; ++i)
            for (int j = 0; j <= i; ++j)
                scale[i * p + j] = scatter_at(cov, c, i, j) +
                                   linalg_dot(j + 1, cov->prior.scale_chol + (size_t)i * p,
                                              cov->prior.scale_chol + (size_t)j * p);
        if (linalg_cholesky(p, scale)) return PLUGIN_NUMERICAL;
        dist_inverse_wishart(rng, p, cov->prior.df + n, scale, chol, cov->work.bartlett);
        pack_cholesky(p, chol, theta + cov->at_chol);
    }
    for (int t = 0; t < k * p; ++t) z[t] = rng_normal(rng);
    for (int i = 0; i < p; ++i) {
        double *row = joint->cross + (size_t)i * k;
        for (int j = 0; j <= i; ++j)
            for (int a = 0; a < k; ++a) row[a] += chol[i * p + j] * z[j * k + a];
        linalg_backward(k, joint->gram, row);
        theta[cov->at_mean + i] = row[0] + cov->centre[cov->moment[i]];
        for (int a = 1; a < k; ++a) theta[joint->at_effects + (a - 1) * p + i] = row[a];
    }
    return PLUGIN_OK;
}

/* The derivative in R is that in P's scale, `by` Lambda^-1 R A, A the inverse of P or of Sigma: the
 * upper triangle of `minus` holds -A. */
static void add_slopes(struct covariates *cov, double by, const double *minus, double *gradient) {
    struct niw_marginal *marginal = &cov->marginal;
    const struct joint *joint = cov->joint;
    const int p = cov->normal, k = joint->dummies + 1, q = cov->q;
    for (int i = 0; i < p; ++i) {
        const double *row = minus + (size_t)i * (size_t)marginal->stride;
        for (int j = i; j < p; ++j)
            gradient[moments_at(q, cov->moment[i], cov->moment[j])] +=
                (i == j ? 0.5 : 1) * by * row[j];
        linalg_backward(k, joint->gram, joint->cross + (size_t)i * k);
    }
    for (int a = 0; a < k; ++a) {
        for (int i = 0; i < p; ++i) marginal->distance[i] = joint->cross[(size_t)i * k + a];
        linalg_multiply_symmetric(p, marginal->stride, minus, marginal->distance, marginal->sum);
        for (int i = 0; i < p; ++i) {
            const int v = cov->moment[i];
            gradient[a > 0 ? moments_at(q, v, joint->dummy[a - 1]) : v] -= by * marginal->sum[i];
        }
    }
}

/* The gradient in the entries of numbers alone: no method moves counts along it. */
double joint_marginal(struct covariates *cov, const double *c, double n, double *gradient) {
    const struct niw_marginal *marginal = &cov->marginal;
    const int p = cov->normal;
    const size_t width = (size_t)marginal->stride;
    double log_density = -0.5 * p * solve_effects(cov, c, n), *a = marginal->precision;
    for (int i = 0; i < p; ++i)
        for (int j = i; j < p; ++j) a[(size_t)i * width + (size_t)j] = scatter_at(cov, c, i, j);
    if (cov->cov_chol) {
        log_density +=
            0.5 * linalg_trace_product(p, marginal->stride, marginal->known_precision, a);
        add_slopes(cov, 1, marginal->known_precision, gradient);
    } else {
        const double freedom = cov->prior.df + n;
        linalg_add_triangle(p, marginal->stride, marginal->prior_scale, a);
        log_density -= 0.5 * freedom * linalg_sweep(p, p, marginal->stride, a, marginal->sweep);
        add_slopes(cov, freedom, a, gradient);
    }
    return isnan(log_density) ? -INFINITY : log_density;
}

/* ---- table ------------------------------------------------------------------------- */

/* p(N | a, q) and the prior of (a, q) */
static double log_counts(void *self, const double *theta) {
    const struct covariates *cov = self;
    const struct joint *joint = cov->joint;
    double n = 0, log_density = log_hyper(cov, theta);
    const double all = joint_weights(cov, theta, joint->weight);
    for (int c = 0; c < joint->cells; ++c) {
        if (joint->count[c] == 0) continue;
        n += joint->count[c];
        log_density += lgamma(joint->weight[c] + joint->count[c]) - lgamma(joint->weight[c]);
    }
    return log_density + lgamma(all) - lgamma(all + n);
}

static void update_shares(struct covariates *cov, struct rng *rng, double *theta) {
    const struct joint *joint = cov->joint;
    int visited = 0;
    for (int f = 0; f < cov->factors.count; ++f)
        for (int l = 0; l < cov->factors.factor[f].levels - 1; ++l) {
            cov->slice.width[visited] = STICK_WIDTH;
            cov->slice.visited[visited++] = cov->factors.factor[f].stick + l;
        }
    cov->slice.width[visited] = LOG_WIDTH;
    cov->slice.visited[visited++] = joint->at_concentration;
    slice_sweep(visited, cov->slice.visited, cov->slice.width, log_counts, cov, rng, theta);
}

void joint_update_cells(struct covariates *cov, const double *count, struct rng *rng,
                        double *theta) {
    struct joint *joint = cov->joint;
    joint->count = count;
    if (joint->shares) update_shares(cov, rng, theta);
    (void)joint_weights(cov, theta, joint->weight);
    for (int cell = 0; cell < joint->cells; ++cell) joint->weight[cell] += fmax(count[cell], 0);
    sticks_draw(rng, joint->cells, joint->weight, theta + joint->at_cells);
}

int joint_update(struct covariates *cov, const double *c, double n, struct rng *rng,
                 double *theta) {
    if (cov->joint->effects > 0) {
        const int status = draw_numbers(cov, c, n, rng, theta);
        if (status != PLUGIN_OK) return status;
    }
    joint_update_cells(cov, c + cov->joint->at_count, rng, theta);
    return PLUGIN_OK;
}
