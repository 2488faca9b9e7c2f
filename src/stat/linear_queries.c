/* Linear queries of another statistic: differences, prefix sums and totals of groups, or some of
 * its components alone.
 *
 * A record costs as much as in the other statistic, plus a multiplication for each entry. A record
 * changes few counts: for counts, only the entries of these are multiplied.
 */
#include "stat/linear_queries.h"

int queries_read(const struct fields *fields, int of, struct queries *queries) {
    const int size = fields_length(fields, "first") - 1;
    const int entries = fields_length(fields, "column");
    const double *first = fields_vector(fields, "first", size + 1);
    const double *column = fields_vector(fields, "column", entries);
    queries->weight = fields_vector(fields, "weight", entries);
    if (size < 1 || !first || !column || !queries->weight || first[size] != entries)
        return PLUGIN_BAD_FIELDS;
    queries->size = size;
    queries->of = of;
    queries->first = plugin_memory((size_t)size + 1, sizeof *queries->first);
    queries->column = plugin_memory((size_t)entries, sizeof *queries->column);
    for (int k = 0; k <= size; ++k) queries->first[k] = (int)first[k];
    for (int e = 0; e < entries; ++e) {
        if (!(column[e] >= 0 && column[e] < of)) return PLUGIN_BAD_FIELDS;
        queries->column[e] = (int)column[e];
    }
    return PLUGIN_OK;
}

void queries_add(const struct queries *q, const double *t, size_t t_stride, size_t stride,
                 double *out) {
    for (int k = 0; k < q->size; ++k) {
        double sum = 0;
        for (int e = q->first[k]; e < q->first[k + 1]; ++e)
            sum += q->weight[e] * t[(size_t)q->column[e] * t_stride];
        out[(size_t)k * stride] += sum;
    }
}

void queries_add_transposed(const struct queries *q, double weight, const double *r, double *out) {
    for (int k = 0; k < q->size; ++k)
        for (int e = q->first[k]; e < q->first[k + 1]; ++e)
            out[q->column[e]] += weight * q->weight[e] * r[k];
}

struct linear {
    struct stat of;
    struct queries queries;
    double *t; /* of a block, or a total */
    /* of counts: queries that each is part of, column by column */
    int *cell_first, *cell_query, *touched;
    double *cell_weight;
};

static void turn(struct linear *s) {
    const struct queries *q = &s->queries;
    const size_t entries = (size_t)q->first[q->size];
    s->cell_first = plugin_memory((size_t)q->of + 2, sizeof *s->cell_first);
    s->cell_query = plugin_memory(entries, sizeof *s->cell_query);
    s->cell_weight = plugin_memory(entries, sizeof *s->cell_weight);
    int *at = s->cell_first + 1; /* the last entry counts up to where the next column begins */
    for (size_t e = 0; e < entries; ++e) ++at[q->column[e] + 1];
    for (int j = 0; j < q->of; ++j) at[j + 1] += at[j];
    for (int k = 0; k < q->size; ++k)
        for (int e = q->first[k]; e < q->first[k + 1]; ++e) {
            const int to = at[q->column[e]]++;
            s->cell_query[to] = k;
            s->cell_weight[to] = q->weight[e];
        }
}

static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    struct linear *s = self;
    const struct queries *q = &s->queries;
    const int lanes = PAD_LANES(m);
    s->of.class->eval(s->of.self, m, x, lanes, s->t);
    for (int k = 0; k < q->size; ++k) {
        double *restrict out = t + (size_t)k * (size_t)stride;
        memset(out, 0, (size_t)lanes * sizeof(double));
        for (int e = q->first[k]; e < q->first[k + 1]; ++e) {
            const double *restrict from = s->t + (size_t)q->column[e] * (size_t)lanes;
            const double weight = q->weight[e];
            FOR_RECORDS(i, m) out[i] += weight * from[i];
        }
    }
}

static void eval_cells(void *self, int m, const double *const *x, int stride, double *t) {
    struct linear *s = self;
    const int lanes = PAD_LANES(m);
    s->of.class->cells(s->of.self, m, x, lanes, s->touched);
    for (int k = 0; k < s->queries.size; ++k)
        memset(t + (size_t)k * (size_t)stride, 0, (size_t)lanes * sizeof(double));
    for (int r = 0; r < s->of.touched; ++r)
        for (int i = 0; i < m; ++i) {
            const int cell = s->touched[r * lanes + i];
            for (int e = s->cell_first[cell]; e < s->cell_first[cell + 1]; ++e)
                t[(size_t)s->cell_query[e] * (size_t)stride + i] += s->cell_weight[e];
        }
}

static void total(void *self, int m, const double *const *x, double *total) {
    struct linear *s = self;
    memset(s->t, 0, (size_t)s->of.size * sizeof(double));
    s->of.class->total(s->of.self, m, x, s->t);
    queries_add(&s->queries, s->t, 1, 1, total);
}

static const struct stat_class linear_class = {.name = "linear", .eval = eval, .total = total};
static const struct stat_class linear_cells = {
    .name = "linear", .eval = eval_cells, .total = total};

int stat_linear(const struct fields *fields, const struct stat *of, struct stat *stat) {
    struct linear *s = plugin_memory(1, sizeof *s);
    if (of->whole || queries_read(fields, of->size, &s->queries) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    const int cells = of->class->cells != NULL;
    s->of = *of;
    s->t = plugin_memory((size_t)of->size * (cells ? 1 : MAX_BLOCK), sizeof *s->t);
    if (cells) {
        s->touched = plugin_memory((size_t)of->touched * MAX_BLOCK, sizeof *s->touched);
        turn(s);
    }
    *stat = (struct stat){.class = cells ? &linear_cells : &linear_class,
                          .self = s,
                          .columns = of->columns,
                          .size = s->queries.size};
    return PLUGIN_OK;
}
