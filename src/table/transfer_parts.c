/* The parts of transfers of a table; see table/transfers.c. */
#include "base/rng_inline.h"
#include "table/table.h"

int table_choose(struct rng *rng, int count) {
    return (int)((rng_bits_inline(rng) >> 32) * (uint64_t)count >> 32);
}

int table_draw_alias(struct rng *rng, int levels, const double *share, const int *other) {
    const double u = levels * rng_uniform_inline(rng);
    const int level = (int)u;
    return u - level < share[level] ? level : other[level];
}

void table_draw_codes(struct rng *rng, const struct table *s, int *codes) {
    for (int k = 0; k < s->parts; ++k) {
        const struct table_part *part = s->part + k;
        const int at = part->at_cell +
                       part->of.levels * table_combine(s, part->of.parents, part->of.parent, codes);
        const int level =
            table_draw_alias(rng, part->of.levels, s->alias.share + at, s->alias.other + at);
        table_set_level(part, level, codes);
    }
}

static void add_node(struct direction *along, int node, double by) {
    if (!along->listed[node]) {
        along->listed[node] = 1;
        along->node[along->nodes++] = node;
    }
    along->by[node] += by;
}

int table_add_corner(struct table *s, const int *codes, double by) {
    struct direction *along = &s->along;
    for (int k = 0; k < s->parts; ++k) {
        const struct table_part *part = s->part + k;
        const int level = table_level(s, part, codes);
        if (level < 0) return 0;
        const int row = table_combine(s, part->of.parents, part->of.parent, codes);
        add_node(along, part->at_cell + row * part->of.levels + level, by);
        if (part->at_row >= 0) add_node(along, part->at_row + row, by);
    }
    return 1;
}

void table_clear(struct table *s) {
    struct direction *along = &s->along;
    for (int k = 0; k < along->nodes; ++k) {
        along->by[along->node[k]] = 0;
        along->listed[along->node[k]] = 0;
    }
    for (int k = 0; k < along->components; ++k) {
        along->change[along->component[k]] = 0;
        along->listed[s->nodes + along->component[k]] = 0;
    }
    along->nodes = along->components = 0;
}
