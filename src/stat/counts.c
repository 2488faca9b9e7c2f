/* Statistic "counts": how many records have each combination of levels, for
 * one or more margins of categorical variables (Ju et al. 2022, section 4: the
 * margins class x feature).
 *
 * A variable is a column of codes 0, 1, ..., levels - 1; of a histogram also a number, whose code
 * is how many cuts between bins it is above (or not below). The cell of a record in a margin is its
 * codes read as digits, the last variable fastest; a margin's cells follow the cells of the margins
 * before it.
 *
 * Invariant: a record adds 1 to exactly one cell of every margin. Cost per record: a comparison
 * for each cut; a conversion and a multiplication for each variable of each margin; `eval` alone
 * costs O(components), for callers that need dense values.
 */
#include "contract/stat.h"

struct margin {
    int variables, cells, offset;
    const int *column, *levels;
};

struct bins {
    int cuts; /* -1: the column has codes */
    const double *cut;
    double *code; /* MAX_BLOCK */
};

struct counts {
    int margins, columns;
    struct margin *margin;
    int *index; /* MAX_BLOCK */
    /* of a histogram, else NULL */
    struct bins *bins;
    const double **coded;
    int right; /* is a number on a cut below it? */
};

/* Optional fields: binned, one a column; cuts of the binned columns, one after the other; right. */
static int read_bins(const struct fields *fields, int columns, const double *levels,
                     struct counts *s) {
    const double *binned = fields_vector(fields, "binned", columns);
    if (!binned) return PLUGIN_OK;
    const int cuts = fields_length(fields, "cuts");
    const double *cut = fields_vector(fields, "cuts", cuts);
    const double *right = fields_vector(fields, "right", 1);
    if (!right) return PLUGIN_BAD_FIELDS;
    s->right = *right != 0;
    s->bins = plugin_memory((size_t)columns, sizeof *s->bins);
    s->coded = plugin_memory((size_t)columns, sizeof *s->coded);
    int at = 0;
    for (int v = 0; v < columns; ++v) {
        struct bins *bins = s->bins + v;
        bins->cuts = binned[v] != 0 ? (int)levels[v] - 1 : -1;
        if (bins->cuts < 0) continue;
        if (at + bins->cuts > cuts) return PLUGIN_BAD_FIELDS;
        bins->cut = cut + at;
        bins->code = doubles(MAX_BLOCK);
        at += bins->cuts;
    }
    return at == cuts ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

/* Fields: levels, one a column; members, the number of variables of each
 * margin; column, the margins' variables one after the other. */
static int create(const struct fields *fields, struct stat *stat) {
    struct counts *s = plugin_memory(1, sizeof *s);
    const int columns = fields_length(fields, "levels"), total = fields_length(fields, "column");
    s->margins = fields_length(fields, "members");
    s->columns = columns;
    const double *levels = fields_vector(fields, "levels", columns);
    const double *members = fields_vector(fields, "members", s->margins);
    const double *column = fields_vector(fields, "column", total);
    if (!levels || !members || !column) return PLUGIN_BAD_FIELDS;
    if (read_bins(fields, columns, levels, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    s->margin = plugin_memory((size_t)s->margins, sizeof *s->margin);
    s->index = plugin_memory(MAX_BLOCK, sizeof *s->index);
    int *columns_of = plugin_memory((size_t)total, sizeof *columns_of);
    int *levels_of = plugin_memory((size_t)total, sizeof *levels_of);
    for (int k = 0, at = 0; k < s->margins; ++k) {
        struct margin *margin = s->margin + k;
        margin->variables = (int)members[k];
        if (margin->variables < 1 || at + margin->variables > total) return PLUGIN_BAD_FIELDS;
        margin->column = columns_of + at;
        margin->levels = levels_of + at;
        margin->offset = stat->size;
        margin->cells = 1;
        for (int v = 0; v < margin->variables; ++v, ++at) {
            columns_of[at] = (int)column[at];
            if (columns_of[at] < 0 || columns_of[at] >= columns) return PLUGIN_BAD_FIELDS;
            levels_of[at] = (int)levels[columns_of[at]];
            margin->cells *= levels_of[at];
        }
        stat->size += margin->cells;
    }
    stat->self = s;
    stat->columns = columns;
    stat->touched = s->margins;
    return PLUGIN_OK;
}

/* numbers as the codes of their bins */
static INLINE const double *const *codes(const struct counts *s, int m, const double *const *x) {
    if (!s->bins) return x;
    for (int v = 0; v < s->columns; ++v) {
        const struct bins *bins = s->bins + v;
        s->coded[v] = bins->cuts < 0 ? x[v] : bins->code;
        if (bins->cuts < 0) continue;
        const double *restrict from = x[v];
        double *restrict code = bins->code;
        FOR_RECORDS(i, m) code[i] = 0;
        for (int k = 0; k < bins->cuts; ++k) {
            const double cut = bins->cut[k];
            if (s->right)
                FOR_RECORDS(i, m) code[i] += from[i] > cut ? 1 : 0;
            else
                FOR_RECORDS(i, m) code[i] += from[i] >= cut ? 1 : 0;
        }
    }
    return s->coded;
}

/* index = the margin's cell of every record, plus `first` */
static INLINE void find_cells(const struct margin *margin, int first, int m, const double *const *x,
                              int *restrict index) {
    const double *restrict a = x[margin->column[0]];
    if (margin->variables == 1) {
        FOR_RECORDS(i, m) index[i] = first + (int)a[i];
        return;
    }
    const double *restrict b = x[margin->column[1]];
    const double radix = margin->levels[1];
    if (margin->variables == 2) {
        FOR_RECORDS(i, m) index[i] = first + (int)(a[i] * radix + b[i]);
        return;
    }
    FOR_RECORDS(i, m) index[i] = (int)(a[i] * radix + b[i]);
    for (int v = 2; v < margin->variables; ++v) {
        const double *restrict c = x[margin->column[v]];
        const int levels = margin->levels[v], shift = v + 1 == margin->variables ? first : 0;
        FOR_RECORDS(i, m) index[i] = shift + index[i] * levels + (int)c[i];
    }
}

VECTOR_CLONES static void cells(void *self, int m, const double *const *x, int stride, int *index) {
    const struct counts *s = self;
    x = codes(s, m, x);
    for (int k = 0; k < s->margins; ++k)
        find_cells(s->margin + k, s->margin[k].offset, m, x, index + (size_t)k * stride);
}

VECTOR_CLONES static void total(void *self, int m, const double *const *x, double *total) {
    const struct counts *s = self;
    x = codes(s, m, x);
    for (int k = 0; k < s->margins; ++k) {
        find_cells(s->margin + k, 0, m, x, s->index);
        double *count = total + s->margin[k].offset;
        for (int i = 0; i < m; ++i) count[s->index[i]] += 1;
    }
}

VECTOR_CLONES static void eval(void *self, int m, const double *const *x, int stride, double *t) {
    const struct counts *s = self;
    x = codes(s, m, x);
    for (int k = 0; k < s->margins; ++k) {
        const struct margin *margin = s->margin + k;
        find_cells(margin, 0, m, x, s->index);
        for (int j = 0; j < margin->cells; ++j) {
            double *restrict out = t + (size_t)(margin->offset + j) * stride;
            const int *restrict index = s->index;
            FOR_RECORDS(i, m) out[i] = index[i] == j ? 1 : 0;
        }
    }
}

const struct stat_class stat_counts = {
    .name = "counts",
    .create = create,
    .eval = eval,
    .total = total,
    .cells = cells,
};

/* The same with cuts among its fields. */
const struct stat_class stat_histogram = {
    .name = "histogram",
    .create = create,
    .eval = eval,
    .total = total,
    .cells = cells,
};
