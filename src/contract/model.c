/* Shared by all models: functions that use the description of theta. See contract/model.h. */
#include "contract/model.h"
#include "contract/model_prior.h"
#include "contract/model_values.h"

void model_describe(struct model *model, int blocks, const struct theta_block *block) {
    struct coordinates *coordinates = &model->coordinates;
    coordinates->count = blocks;
    coordinates->block = plugin_memory((size_t)blocks, sizeof *block);
    memcpy(coordinates->block, block, (size_t)blocks * sizeof *block);
    coordinates_finish(coordinates);
    model->parameters = coordinates->length;
    model->moves = plugin_memory((size_t)model->parameters, sizeof *model->moves);
    model->moving = model->reported = 0;
    for (int k = 0; k < blocks; ++k) {
        const struct theta_block *b = coordinates->block + k;
        model->reported += block_reported(b);
        for (int j = 0; j < b->length && !b->known; ++j)
            model->moves[model->moving++] = b->offset + j;
    }
}

void model_rprior(const struct model *model, struct rng *rng, double *theta) {
    coordinates_set_known(&model->coordinates, theta);
    model->class->rprior(model->self, rng, theta);
}

/* by differences where the model has no gradient */
double model_prior(const struct model *model, double *theta, double *gradient) {
    static const double STEP = 1e-5;
    const struct model_prior *prior = model->prior;
    const double value = prior->dprior(model->self, theta);
    memset(gradient, 0, (size_t)model->parameters * sizeof(double));
    if (!isfinite(value)) return -INFINITY;
    if (prior->prior_gradient) {
        prior->prior_gradient(model->self, theta, gradient);
        return value;
    }
    for (int k = 0; k < model->moving; ++k) {
        const int at = model->moves[k];
        const double here = theta[at], step = STEP * (1 + fabs(here));
        theta[at] = here + step;
        const double above = prior->dprior(model->self, theta);
        theta[at] = here - step;
        gradient[at] = (above - prior->dprior(model->self, theta)) / (2 * step);
        theta[at] = here;
    }
    return value;
}

void model_report(const struct model *model, const double *theta, double *out) {
    if (model->values)
        model->values->report(model->self, theta, out);
    else
        (void)coordinates_report(&model->coordinates, theta, out);
}

int model_invert(const struct model *model, const double *value, double *theta) {
    if (!model->values) return coordinates_invert(&model->coordinates, value, theta);
    return model->values->invert(model->self, value, theta) == PLUGIN_OK ? -1 : 0;
}
