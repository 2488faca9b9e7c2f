/* What every model shares: see model.h, and model_describe() in plugin.h. */
#include "model.h"

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

void model_report(const struct model *model, const double *theta, double *out) {
    if (model->class->report)
        model->class->report(model->self, theta, out);
    else
        (void)coordinates_report(&model->coordinates, theta, out);
}

int model_invert(const struct model *model, const double *value, double *theta) {
    if (!model->class->invert) return coordinates_invert(&model->coordinates, value, theta);
    return model->class->invert(model->self, value, theta) == PLUGIN_OK ? -1 : 0;
}
