/* Lone covariates among the others, see model/independent_covariate.h and
 * model/covariates_normal.c. A partial refresh keeps a record's value with probability rho,
 * otherwise draws a new one: reversible for any distribution.
 */
#include "model/covariates_independent.h"

#include "model/covariates_factors.h"

extern const struct lone_class lone_beta, lone_count, lone_mixture, lone_lognormal;

/* in the order of R's lone_kinds */
static const struct lone_class *const lone_classes[] = {&lone_beta, &lone_count, &lone_mixture,
                                                        &lone_lognormal};

enum { KINDS = (int)(sizeof lone_classes / sizeof *lone_classes) };

/* Fields, one value a lone covariate: lone_kind, lone_at (among the moments' columns) and
 * lone_size, of how many values of lone_number it is made. */
int lones_create(const struct fields *fields, const double *column, struct lones *lones) {
    lones->count = fields_length(fields, "lone_kind");
    if (lones->count == 0) return PLUGIN_OK;
    const double *kind = fields_vector(fields, "lone_kind", lones->count);
    const double *at = fields_vector(fields, "lone_at", lones->count);
    const double *size = fields_vector(fields, "lone_size", lones->count);
    const double *number = fields_vector(fields, "lone_number", -1);
    if (!kind || !at || !size || !number) return PLUGIN_BAD_FIELDS;
    lones->lone = plugin_memory((size_t)lones->count, sizeof *lones->lone);
    lones->keep = doubles(MAX_BLOCK);
    for (int k = 0; k < lones->count; ++k) {
        struct lone *lone = lones->lone + k;
        if (!(kind[k] >= 0 && kind[k] < KINDS)) return PLUGIN_BAD_FIELDS;
        lone->class = lone_classes[(int)kind[k]];
        lone->moment = (int)at[k];
        lone->column = (int)column[lone->moment];
        const int status = lone->class->create(number, (int)size[k], lone);
        if (status != PLUGIN_OK) return status;
        lone->at_complete = lones->statistics;
        lones->statistics += lone->statistics;
        lones->blocks += lone->blocks;
        lones->costs.draw += lone->cost_draw;
        lones->costs.move += lone->cost_move;
        lones->costs.latent += lone->cost_latent;
        number += (int)size[k];
    }
    return PLUGIN_OK;
}

void lones_describe(const struct lones *lones, struct theta_block *block) {
    for (int k = 0; k < lones->count; ++k)
        for (int b = 0; b < lones->lone[k].blocks; ++b) *block++ = lones->lone[k].block[b];
}

void lones_place(struct lones *lones, const struct theta_block *block) {
    for (int k = 0; k < lones->count; ++k) {
        struct lone *lone = lones->lone + k;
        const struct theta_block *last = block + lone->blocks - 1;
        lone->at = block->offset;
        lone->end = last->offset + last->length;
        block = last + 1;
    }
}

void lones_rprior(struct lones *lones, struct rng *rng, double *theta) {
    for (int k = 0; k < lones->count; ++k)
        lones->lone[k].class->rprior(lones->lone[k].self, rng, theta + lones->lone[k].at);
}

double lones_dprior(struct lones *lones, const double *theta) {
    double log_density = 0;
    for (int k = 0; k < lones->count; ++k)
        log_density += lones->lone[k].class->dprior(lones->lone[k].self, theta + lones->lone[k].at);
    return log_density;
}

void lones_set(struct lones *lones, const double *theta) {
    for (int k = 0; k < lones->count; ++k)
        lones->lone[k].class->set(lones->lone[k].self, theta + lones->lone[k].at);
}

void lones_refresh(struct lones *lones, double rho, struct rng *rng, int m, const double *const *x,
                   double *const *x_new) {
    for (int k = 0; k < lones->count; ++k) {
        const struct lone *lone = lones->lone + k;
        double *fresh = x_new[lone->column];
        lone->class->draw(lone->self, rng, m, fresh);
        if (rho <= 0) continue;
        const double *old = x[lone->column];
        rng_fill_uniform(rng, m, lones->keep);
        FOR_RECORDS(i, m) fresh[i] = lones->keep[i] < rho ? old[i] : fresh[i];
    }
}

void lones_copy(const struct lones *lones, int m, const double *const *x, double *const *x_new) {
    for (int k = 0; k < lones->count; ++k)
        memcpy(x_new[lones->lone[k].column], x[lones->lone[k].column], (size_t)m * sizeof(double));
}

void lones_set_move(struct lones *lones, const double *theta, const double *theta_new,
                    int *changed) {
    for (int k = 0; k < lones->count; ++k) {
        struct lone *lone = lones->lone + k;
        lone->class->set_next(lone->self, theta_new + lone->at);
        lone->changed = covariates_differ(theta, theta_new, lone->at, lone->end);
        changed[lone->column] = lone->changed;
    }
}

void lones_move(struct lones *lones, struct rng *rng, int m, const double *const *x,
                double *const *x_new) {
    for (int k = 0; k < lones->count; ++k) {
        const struct lone *lone = lones->lone + k;
        if (lone->changed)
            lone->class->move(lone->self, rng, m, x[lone->column], x_new[lone->column]);
    }
}

void covariates_add_latent(struct covariates *cov, struct rng *rng, int m, const double *const *x,
                           double *c) {
    const struct lones *lones = &cov->lones;
    for (int k = 0; k < lones->count; ++k) {
        const struct lone *lone = lones->lone + k;
        lone->class->add(lone->self, rng, m, x[lone->column],
                         c + lones->at_complete + lone->at_complete);
    }
}

void lones_update(struct lones *lones, const double *c, double n, struct rng *rng, double *theta) {
    for (int k = 0; k < lones->count; ++k) {
        const struct lone *lone = lones->lone + k;
        lone->class->update(lone->self, c + lones->at_complete + lone->at_complete, n, rng,
                            theta + lone->at);
    }
}
