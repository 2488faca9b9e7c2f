/* Directions that preserve the exact sums of a table; see table/exact_sums.c. */
#include "table/table.h"

#include "base/rng_inline.h"

enum { MOST_TERMS = 64 };

static int is_possible(const struct table *s, const int *codes) {
    for (int k = 0; k < s->parts; ++k)
        if (table_level(s, s->part + k, codes) < 0) return 0;
    return 1;
}

/* A cell of the group, any of them with some probability whatever the table is. */
void table_draw_in_group(struct rng *rng, const struct table *s, int group, int *codes) {
    const struct table_exact *exact = &s->exact;
    const int first = exact->first[group];
    const int at = first + table_choose(rng, exact->first[group + 1] - first);
    const double *member = exact->member + (size_t)at * (size_t)s->columns;
    table_draw_codes(rng, s, codes);
    for (int k = 0; k < exact->columns; ++k)
        codes[exact->column[k]] = (int)member[exact->column[k]];
    if (is_possible(s, codes)) return;
    for (int k = 0; k < s->columns; ++k) codes[k] = (int)member[k];
}

static int add_exchange(struct rng *rng, struct table *s) {
    const struct table_exact *exact = &s->exact;
    table_draw_codes(rng, s, s->codes);
    const int at = table_combine(s, exact->columns, exact->column, s->codes);
    table_draw_in_group(rng, s, exact->group_of[at], s->codes_to);
    return table_add_corner(s, s->codes, -1) && table_add_corner(s, s->codes_to, 1);
}

static int add_vector(struct rng *rng, struct table *s) {
    const struct table_exact *exact = &s->exact;
    const int v = table_choose(rng, exact->vectors);
    const double sign = rng_bits_inline(rng) >> 63 ? 1 : -1;
    for (int k = exact->vector_first[v]; k < exact->vector_first[v + 1]; ++k) {
        table_draw_in_group(rng, s, exact->vector_group[k], s->codes);
        if (!table_add_corner(s, s->codes, sign * exact->vector_by[k])) return 0;
    }
    return 1;
}

/* Where there are no vectors, exchanges lead everywhere one by one. */
int table_exact_direction(struct rng *rng, struct table *s) {
    if (s->exact.vectors == 0) return add_exchange(rng, s);
    for (int k = 0; k < MOST_TERMS; ++k) {
        const int vector = rng_bits_inline(rng) >> 63;
        if (!(vector ? add_vector(rng, s) : add_exchange(rng, s))) return 0;
        if (rng_bits_inline(rng) >> 63) break;
    }
    return 1;
}
