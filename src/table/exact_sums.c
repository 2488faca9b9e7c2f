/* Method "collapse", tables: exact numbers, sums of cells with whole-number weights.
 *
 * R finds the groups of combinations that are in the same exact numbers, a table that has these
 * numbers, and a basis of the changes of the groups' counts that preserve them. A direction adds
 * up a random number of such changes, each with cells that are drawn from its groups, and of
 * exchanges inside a group. These generate the lattice of all changes that keep the exact numbers,
 * so that every table that has them can be reached from any other in one transfer (Hara, Aoki &
 * Takemura 2012), also where small changes do not connect them.
 *
 * Invariant: directions do not change exact numbers. Cost: their corners.
 */
#include "table/table.h"

#include "base/rng_inline.h"

/* the most changes of a direction; parts that a group is drawn in at the start */
enum { START_PARTS = 16 };

static int *whole_numbers(const double *from, int count) {
    int *out = plugin_memory((size_t)count, sizeof *out);
    for (int k = 0; k < count; ++k) out[k] = (int)from[k];
    return out;
}

/* Fields: exact_column; exact_group, of each combination of these columns' codes; exact_start, of
 * each group; exact_open, a group or -1; member_first, and member, the codes of a cell for each
 * combination, group by group; vector_first, vector_group and vector_by. */
int table_exact_read(const struct fields *fields, struct table *s) {
    struct table_exact *exact = &s->exact;
    exact->groups = fields_length(fields, "exact_start");
    if (exact->groups <= 0) {
        exact->groups = 0;
        return PLUGIN_OK;
    }
    exact->columns = fields_length(fields, "exact_column");
    exact->vectors = fields_length(fields, "vector_first") - 1;
    const double *column = fields_vector(fields, "exact_column", exact->columns);
    const double *open = fields_vector(fields, "exact_open", 1);
    const double *first = fields_vector(fields, "member_first", exact->groups + 1);
    const double *vector_first = fields_vector(fields, "vector_first", exact->vectors + 1);
    exact->start = fields_vector(fields, "exact_start", exact->groups);
    if (!column || !open || !first || !vector_first || !exact->start) return PLUGIN_BAD_FIELDS;
    exact->column = whole_numbers(column, exact->columns);
    exact->open = (int)*open;
    exact->first = whole_numbers(first, exact->groups + 1);
    exact->vector_first = whole_numbers(vector_first, exact->vectors + 1);
    const int entries = exact->vector_first[exact->vectors];
    int combinations = 1;
    for (int k = 0; k < exact->columns; ++k) combinations *= s->size[exact->column[k]];
    const double *group = fields_vector(fields, "exact_group", combinations);
    const double *vector_group = fields_vector(fields, "vector_group", entries);
    exact->vector_by = fields_vector(fields, "vector_by", entries);
    exact->member = fields_vector(fields, "member", exact->first[exact->groups] * s->columns);
    if (!group || !vector_group || !exact->vector_by || !exact->member) return PLUGIN_BAD_FIELDS;
    exact->group_of = whole_numbers(group, combinations);
    exact->vector_group = whole_numbers(vector_group, entries);
    return PLUGIN_OK;
}

/* Records of a group are put in several cells. */
static void start_group(struct rng *rng, struct table *s, int group, double records) {
    struct direction *along = &s->along;
    for (int left = START_PARTS; left > 0 && records > 0; --left) {
        const double units = left == 1 ? records : ceil(records / left);
        table_draw_in_group(rng, s, group, s->codes);
        table_add_corner(s, s->codes, units);
        for (int k = 0; k < along->nodes; ++k)
            s->count[along->node[k]] += along->by[along->node[k]];
        table_clear(s);
        records -= units;
    }
}

void table_exact_start(struct rng *rng, struct table *s, double n) {
    const struct table_exact *exact = &s->exact;
    double settled = 0;
    for (int g = 0; g < exact->groups; ++g) {
        start_group(rng, s, g, exact->start[g]);
        settled += exact->start[g];
    }
    if (exact->open >= 0) start_group(rng, s, exact->open, n - settled);
}
