/* Weights of the cells of tables of counts: see contract/cell_weights.h. */
#include "contract/cell_weights.h"

#include "base/sticks.h"
#include "contract/plugin.h"

/* so many have tables of log phi */
enum { MOST_TABLES = 64 };

static void set_weight(struct cell_weight *weight, int known, double value, double most) {
    weight->known = known;
    weight->value = value;
    if (!known) dist_rising_set(&weight->rising, value);
    if (!(most >= 0)) return;
    double *table = plugin_memory(CELL_TABLE, sizeof *table);
    for (int k = 0; k < CELL_TABLE && k <= most; ++k) table[k] = cell_log_compute(weight, k);
    weight->table = table;
}

struct cell_weights cell_weights_new(int room, double most) {
    const struct cell_weights weights = {
        .weight = plugin_memory((size_t)room, sizeof *weights.weight),
        .most = most,
    };
    return weights;
}

int cell_weights_find(struct cell_weights *weights, int known, double value) {
    for (int k = weights->count - 1; k >= 0 && k >= weights->count - MOST_TABLES; --k) {
        const struct cell_weight *weight = weights->weight + k;
        if (weight->known == known && weight->value == value) return k;
    }
    set_weight(weights->weight + weights->count, known, value,
               weights->tables++ < MOST_TABLES ? weights->most : -1);
    return weights->count++;
}

void cells_draw(struct rng *rng, int levels, const double *stick, double total, double *count) {
    double left = total;
    for (int l = 0; l < levels - 1; ++l) {
        dist_binomial_fill(rng, stick_share(stick[l]), 1, &left, count + l);
        left -= count[l];
    }
    count[levels - 1] = left;
}
