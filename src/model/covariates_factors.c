/* Factors among the covariates, see model/covariates_normal.c: categorical, independent of the rest
 * and of each other, with Dirichlet priors on their levels' probabilities; theta holds these as
 * sticks (base/sticks.h). A record has dummies or a code; a level's innovation is a uniform
 * (model/categorical_draw.c). Cost: O(levels) a record.
 */
#include "model/covariates_factors.h"

#include "base/dist.h"
#include "base/sticks.h"
#include "base/sticks_draw.h"

#include <Rmath.h>

/* ---- prior -------------------------------------------------------------- */

void factors_rprior(const struct covariates *cov, struct rng *rng, double *theta) {
    for (int f = 0; f < cov->factors; ++f) {
        const struct factor *factor = cov->factor + f;
        sticks_draw(rng, factor->levels, cov->alpha + factor->at, theta + factor->stick);
    }
}

double factors_dprior(const struct covariates *cov, const double *theta) {
    double log_density = 0;
    for (int f = 0; f < cov->factors; ++f) {
        const struct factor *factor = cov->factor + f;
        log_density +=
            sticks_log_density(factor->levels, cov->alpha + factor->at, theta + factor->stick);
    }
    return log_density;
}

void factors_prior_gradient(const struct covariates *cov, const double *theta, double *gradient) {
    for (int f = 0; f < cov->factors; ++f) {
        const struct factor *factor = cov->factor + f;
        sticks_add_slopes(factor->levels, cov->alpha + factor->at, theta + factor->stick,
                          gradient + factor->stick);
    }
}

/* ---- records ------------------------------------------------------------ */

void factors_set(const struct covariates *cov, const double *theta) {
    for (int f = 0; f < cov->factors; ++f)
        levels_set(&cov->factor[f].of, theta + cov->factor[f].stick);
}

VECTOR_CLONES static void is_level(int m, double level, const double *restrict levels,
                                   double *restrict out) {
    FOR_RECORDS(i, m) out[i] = levels[i] == level ? 1 : 0;
}

VECTOR_CLONES static void read_dummies(int m, int levels, const double *const *dummy,
                                       double *restrict level) {
    FOR_RECORDS(i, m) level[i] = 0;
    for (int l = 1; l < levels; ++l) {
        const double *restrict d = dummy[l - 1];
        FOR_RECORDS(i, m) level[i] += l * d[i];
    }
}

void factor_read_levels(const struct factor *factor, int m, const double *const *x, double *level) {
    if (factor->coded)
        memcpy(level, x[factor->column], (size_t)PAD_LANES(m) * sizeof(double));
    else
        read_dummies(m, factor->levels, x + factor->column, level);
}

void factor_write_levels(const struct factor *factor, int m, const double *level,
                         double *const *x) {
    if (factor->coded)
        memcpy(x[factor->column], level, (size_t)PAD_LANES(m) * sizeof(double));
    else
        for (int l = 1; l < factor->levels; ++l) is_level(m, l, level, x[factor->column + l - 1]);
}

void factors_relevel(struct covariates *cov, int factor, int to, int m, const double *const *x,
                     double *const *x_new) {
    for (int f = 0; f < cov->factors; ++f) {
        if (f != factor) factor_read_levels(cov->factor + f, m, x, cov->level);
        for (int i = 0; f == factor && i < m; ++i) cov->level[i] = to;
        factor_write_levels(cov->factor + f, m, cov->level, x_new);
    }
}

double covariates_effect(const struct covariates *cov, int factor, int from, int to,
                         const double *coefficient) {
    const double *dummy = coefficient + cov->factor[factor].first; /* of the second level */
    return (to > 0 ? dummy[to - 1] : 0) - (from > 0 ? dummy[from - 1] : 0);
}

void factors_refresh(struct covariates *cov, double rho, struct rng *rng, int m,
                     const double *const *x, double *const *x_new) {
    double *old = cov->level_old, *level = cov->level;
    for (int f = 0; f < cov->factors; ++f) {
        const struct factor *factor = cov->factor + f;
        if (rho > 0) factor_read_levels(factor, m, x, old);
        levels_refresh(&factor->of, &cov->work, rho, rng, m, NULL, NULL, NULL, old, level);
        factor_write_levels(factor, m, level, x_new);
    }
}

const double *const *covariates_design(struct covariates *cov, int m, const double *const *x) {
    for (int j = 0; j < cov->products.first; ++j) {
        const double *column = x[(int)cov->design_column[j]];
        if (cov->design_code[j] != 0) {
            double *dummy = cov->dummy + (size_t)j * MAX_BLOCK;
            is_level(m, cov->design_code[j], column, dummy);
            column = dummy;
        }
        cov->design[j] = column;
    }
    products_fill(&cov->products, m, cov->design);
    return cov->design;
}

/* ---- non-centred move: levels by levels_move() -- */

void factors_set_move(struct covariates *cov, const double *theta, const double *theta_new,
                      int *changed) {
    for (int f = 0; f < cov->factors; ++f) {
        struct factor *factor = cov->factor + f;
        const int cuts = factor->levels - 1, columns = factor->coded ? 1 : cuts;
        levels_set_next(&factor->of, theta_new + factor->stick);
        factor->changed = covariates_differ(theta, theta_new, factor->stick, factor->stick + cuts);
        for (int v = 0; v < columns; ++v) changed[factor->column + v] = factor->changed;
    }
}

void factors_move(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                  double *const *x_new) {
    for (int f = 0; f < cov->factors; ++f) {
        const struct factor *factor = cov->factor + f;
        if (!factor->changed) continue;
        factor_read_levels(factor, m, x, cov->level);
        levels_move(&factor->of, &cov->work, rng, m, NULL, NULL, cov->level, cov->level);
        factor_write_levels(factor, m, cov->level, x_new);
    }
}

/* ---- update ------------------------------------------------------------- */

void factors_update(struct covariates *cov, const double *c, double n, struct rng *rng,
                    double *theta) {
    for (int f = 0; f < cov->factors; ++f) {
        const struct factor *factor = cov->factor + f;
        double *weight = cov->weight + factor->at, rest = n;
        for (int l = 1; l < factor->levels; ++l) {
            const int v = factor->first + l - 1;
            const double count = c[v] + n * cov->centre[v];
            weight[l] = cov->alpha[factor->at + l] + count;
            rest -= count;
        }
        weight[0] = cov->alpha[factor->at] + (rest > 0 ? rest : 0);
        sticks_draw(rng, factor->levels, weight, theta + factor->stick);
    }
}

/* Counts of levels follow from the dummies' totals. */
double factors_marginal(const struct covariates *cov, const double *c, double n, double *gradient) {
    double log_density = 0;
    for (int f = 0; f < cov->factors; ++f) {
        const struct factor *factor = cov->factor + f;
        const double *alpha = cov->alpha + factor->at;
        double rest = n;
        for (int l = 1; l < factor->levels; ++l)
            rest -= c[factor->first + l - 1] + n * cov->centre[factor->first + l - 1];
        if (!(alpha[0] + rest > 0)) return -INFINITY;
        const double slope = Rf_digamma(alpha[0] + rest);
        log_density += Rf_lgammafn(alpha[0] + rest);
        for (int l = 1; l < factor->levels; ++l) {
            const int v = factor->first + l - 1;
            const double shape = alpha[l] + c[v] + n * cov->centre[v];
            if (!(shape > 0)) return -INFINITY;
            log_density += Rf_lgammafn(shape);
            gradient[v] += Rf_digamma(shape) - slope;
        }
    }
    return log_density;
}
