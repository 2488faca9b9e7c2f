#ifndef NOISEAWARE_MODEL_RECORDS_OF_CELLS_H
#define NOISEAWARE_MODEL_RECORDS_OF_CELLS_H

#include "contract/model.h"
#include "model/categorical_draw.h"

/* Records of models whose cells' probabilities are functions of theta: see
 * model/records_of_cells.c. It stands first in the struct of such a model, whose descriptor takes
 * the hooks below as they are.
 */
struct cell_records {
    int columns, cells;
    int *size;          /* codes of a column */
    const double *code; /* of the cells, one after the other */
    int *cell_of;       /* of a combination of codes, -1: it cannot be */
    void (*log_cells)(void *self, const double *theta, double *log_p);

    double *now;   /* log probabilities of the cells, under the current theta */
    double *log_p; /* the same under another one: workspace, of the model as well */
    double *stick;
    struct levels of;
    struct level_work work;
    double *level, *level_to; /* MAX_BLOCK */
    int *place;
};

/* Reads the fields `columns`, how many codes each has, and `code`, those of each cell in turn.
 * Fills in what the hooks need, and in the model its self, columns, complete, costs and
 * capabilities, but for what depends on theta alone. Returns PLUGIN_*.
 */
int cell_records_create(struct cell_records *s, const struct fields *fields,
                        void (*log_cells)(void *, const double *, double *), struct model *model);

void cell_records_set(void *self, const double *theta);
void cell_records_draw(void *self, struct rng *rng, int m, double *const *x);

#endif
