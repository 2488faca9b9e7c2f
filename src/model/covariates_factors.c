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

void factors_rprior(const struct factors *factors, struct rng *rng, double *theta) {
    for (int f = 0; f < factors->count; ++f) {
        const struct factor *factor = factors->factor + f;
        sticks_draw(rng, factor->levels, factors->alpha + factor->at, theta + factor->stick);
    }
}

double factors_dprior(const struct factors *factors, const double *theta) {
    double log_density = 0;
    for (int f = 0; f < factors->count; ++f) {
        const struct factor *factor = factors->factor + f;
        log_density +=
            sticks_log_density(factor->levels, factors->alpha + factor->at, theta + factor->stick);
    }
    return log_density;
}

void factors_prior_gradient(const struct factors *factors, const double *theta, double *gradient) {
    for (int f = 0; f < factors->count; ++f) {
        const struct factor *factor = factors->factor + f;
        sticks_add_slopes(factor->levels, factors->alpha + factor->at, theta + factor->stick,
                          gradient + factor->stick);
    }
}

/* ---- records ------------------------------------------------------------ */

void factors_set(const struct factors *factors, const double *theta) {
    for (int f = 0; f < factors->count; ++f)
        levels_set(&factors->factor[f].of, theta + factors->factor[f].stick);
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

void factors_relevel(struct factors *factors, int factor, int to, int m, const double *const *x,
                     double *const *x_new) {
    for (int f = 0; f < factors->count; ++f) {
        if (f != factor) factor_read_levels(factors->factor + f, m, x, factors->level);
        for (int i = 0; f == factor && i < m; ++i) factors->level[i] = to;
        factor_write_levels(factors->factor + f, m, factors->level, x_new);
    }
}

double covariates_effect(const struct covariates *cov, int factor, int from, int to,
                         const double *coefficient) {
    const double *dummy = coefficient + cov->factors.factor[factor].first; /* of the second level */
    return (to > 0 ? dummy[to - 1] : 0) - (from > 0 ? dummy[from - 1] : 0);
}

void factors_refresh(struct factors *factors, double rho, struct rng *rng, int m,
                     const double *const *x, double *const *x_new) {
    double *old = factors->level_old, *level = factors->level;
    for (int f = 0; f < factors->count; ++f) {
        const struct factor *factor = factors->factor + f;
        if (rho > 0) factor_read_levels(factor, m, x, old);
        levels_refresh(&factor->of, &factors->work, rho, rng, m, old, level);
        factor_write_levels(factor, m, level, x_new);
    }
}

const double *const *covariates_design(struct covariates *cov, int m, const double *const *x) {
    for (int j = 0; j < cov->design.products.first; ++j) {
        const double *column = x[(int)cov->design.column[j]];
        if (cov->design.code[j] != 0) {
            double *dummy = cov->design.dummy + (size_t)j * MAX_BLOCK;
            is_level(m, cov->design.code[j], column, dummy);
            column = dummy;
        }
        cov->design.of[j] = column;
    }
    products_fill(&cov->design.products, m, cov->design.of);
    return cov->design.of;
}

/* ---- non-centred move: levels by levels_move() -- */

void factors_set_move(struct factors *factors, const double *theta, const double *theta_new,
                      int *changed) {
    for (int f = 0; f < factors->count; ++f) {
        struct factor *factor = factors->factor + f;
        const int cuts = factor->levels - 1, columns = factor->coded ? 1 : cuts;
        levels_set_next(&factor->of, theta_new + factor->stick);
        factor->changed = covariates_differ(theta, theta_new, factor->stick, factor->stick + cuts);
        for (int v = 0; v < columns; ++v) changed[factor->column + v] = factor->changed;
    }
}

void factors_move(struct factors *factors, struct rng *rng, int m, const double *const *x,
                  double *const *x_new) {
    for (int f = 0; f < factors->count; ++f) {
        const struct factor *factor = factors->factor + f;
        if (!factor->changed) continue;
        factor_read_levels(factor, m, x, factors->level);
        levels_move(&factor->of, &factors->work, rng, m, NULL, NULL, factors->level,
                    factors->level);
        factor_write_levels(factor, m, factors->level, x_new);
    }
}

/* ---- update ------------------------------------------------------------- */

void factors_update(struct factors *factors, const double *centre, const double *c, double n,
                    struct rng *rng, double *theta) {
    for (int f = 0; f < factors->count; ++f) {
        const struct factor *factor = factors->factor + f;
        double *weight = factors->weight + factor->at, rest = n;
        for (int l = 1; l < factor->levels; ++l) {
            const int v = factor->first + l - 1;
            const double count = c[v] + n * centre[v];
            weight[l] = factors->alpha[factor->at + l] + count;
            rest -= count;
        }
        weight[0] = factors->alpha[factor->at] + (rest > 0 ? rest : 0);
        sticks_draw(rng, factor->levels, weight, theta + factor->stick);
    }
}

/* Counts of levels follow from the dummies' totals. */
double factors_marginal(const struct factors *factors, const double *centre, const double *c,
                        double n, double *gradient) {
    double log_density = 0;
    for (int f = 0; f < factors->count; ++f) {
        const struct factor *factor = factors->factor + f;
        const double *alpha = factors->alpha + factor->at;
        double rest = n;
        for (int l = 1; l < factor->levels; ++l)
            rest -= c[factor->first + l - 1] + n * centre[factor->first + l - 1];
        if (!(alpha[0] + rest > 0)) return -INFINITY;
        const double slope = Rf_digamma(alpha[0] + rest);
        log_density += Rf_lgammafn(alpha[0] + rest);
        for (int l = 1; l < factor->levels; ++l) {
            const int v = factor->first + l - 1;
            const double shape = alpha[l] + c[v] + n * centre[v];
            if (!(shape > 0)) return -INFINITY;
            log_density += Rf_lgammafn(shape);
            gradient[v] += Rf_digamma(shape) - slope;
        }
    }
    return log_density;
}
