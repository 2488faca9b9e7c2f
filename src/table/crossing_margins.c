/* Method "collapse", tables of parts (model/categorical.c), such as the cliques of a graph, with
 * released margins whose columns are not together in any part: they are not sums of the parts'
 * counts.
 *
 * State: the codes of n records. The probabilities are integrated out, so that the target over
 * sequences of records is
 *
 *   prod_parts prod_rows [ prod_levels Gamma(a + n) / Gamma(a_1 + ... + n_row) ] eta(z | s)
 *
 * in the counts n of the parts' cells, those n_row of their rows, and of the released margins s.
 * All three are *margins*: tables of counts over some columns, each cell of which has a function
 * of its count in the target. A margin stores for each cell the contributions of one more record
 * and of the last record: for parts and rows the factor itself, a + n or 1 / (a + n), for
 * released margins its logarithm, which avoids conversions to logarithms and back.
 *
 * A move draws one column of one record from its conditional distribution given all the rest (a
 * Gibbs step): for each code the sum, over margins with that column, of the record's contribution.
 * An iteration goes through all columns of randomly drawn records, as many as warmup found
 * necessary to forget the counts, and then draws theta given the parts' counts.
 *
 * Invariant: counts and contributions follow from the codes. Counts are whole numbers and do not
 * drift. Cost: of a move, an exponential for each code and an addition for each code and margin of
 * the column; of an iteration, in proportion to n. Memory: two bytes for each code.
 */
#include "contract/collapse.h"
#include "contract/model_update.h"
#include "mcmc/adapt.h"
#include "mcmc/autocorrelation_tuner.h"

/* Records of an iteration: at first one in so many, at least, and at most, or at most so many if
 * that is more. */
enum { FIRST_SHARE = 8, LEAST_SHARE = 50, MOST_SHARE = 4, MOST_VISITS = 20000 };

enum { MOVED };

/* of a margin: a part's cells, its rows, or released numbers */
enum kind { CELLS, ROWS, RELEASED };

struct margin {
    enum kind kind;
    int columns, *column, *stride; /* a cell is the sum of codes by strides */
    int cells;
    const double *alpha; /* of cells and rows */
    const int
        *first; /* of released cells, the place of the first of its components in `component` */
    double *count;
    double *more, *less; /* what one more record adds to the target, what the last one added */
};

/* where a column stands in a margin */
struct place {
    struct margin *margin;
    int stride;
};

struct crossing {
    int columns, *size;
    int parts, margins, cells; /* cells of all parts */
    struct margin *margin;     /* those of parts come first, in their order */
    int *place_first;          /* of a column, in `place` */
    struct place *place;
    int *component;      /* that cells of released margins are */
    const double **at;   /* where the count of a component is */
    double *part_counts; /* of all parts, one after the other */
    int tracked;         /* are the counts of the cells stored with the statistic? */

    /* state */
    uint16_t *code; /* n x columns */
    struct watch watch;
    double *visits; /* records of an iteration */

    /* workspace */
    double *weight, *factor; /* a code each */
    int *cell;               /* of the record, in each margin of a column */
    double **records;        /* a block of them, a column each */
};

/* ---- set-up ------------------------------------------------------------------- */

static void set_columns(const struct crossing *s, struct margin *margin, const double **at,
                        int count) {
    margin->column = plugin_memory((size_t)count, sizeof *margin->column);
    margin->stride = plugin_memory((size_t)count, sizeof *margin->stride);
    margin->columns = count;
    margin->cells = 1;
    for (int k = 0; k < count; ++k) margin->column[k] = (int)*(*at)++;
    for (int k = count - 1; k >= 0; --k) {
        margin->stride[k] = margin->cells;
        margin->cells *= s->size[margin->column[k]];
    }
}

/* Memory of a margin's counts, which are views of `count` where that is given. */
static void set_cells(struct margin *margin, double *count) {
    const size_t cells = (size_t)margin->cells;
    margin->count = count ? count : doubles(cells);
    DOUBLES(cells, &margin->more, &margin->less);
}

/* The parts' cells, and their rows where they have parents: n is the row of others. */
static int read_parts(const struct fields *fields, struct crossing *s) {
    const double *children = fields_vector(fields, "children", s->parts);
    const double *parents = fields_vector(fields, "parents", s->parts);
    const double *family = fields_vector(fields, "family", -1);
    const double *alpha = fields_vector(fields, "alpha", -1);
    if (!children || !parents || !family || !alpha) return PLUGIN_BAD_FIELDS;
    for (int k = 0; k < s->parts; ++k) {
        struct margin *margin = s->margin + k;
        margin->kind = CELLS;
        set_columns(s, margin, &family, (int)(parents[k] + children[k]));
        margin->alpha = alpha + s->cells;
        s->cells += margin->cells;
    }
    if (s->cells != fields_length(fields, "alpha")) return PLUGIN_BAD_FIELDS;
    s->part_counts = doubles((size_t)s->cells);
    s->margins = s->parts;
    double *count = s->part_counts;
    for (int k = 0; k < s->parts; count += s->margin[k++].cells) {
        const struct margin *part = s->margin + k;
        set_cells(s->margin + k, count);
        if (parents[k] == 0) continue;
        struct margin *rows = s->margin + s->margins++;
        rows->kind = ROWS;
        rows->columns = (int)parents[k];
        rows->column = part->column;
        rows->stride = plugin_memory((size_t)rows->columns, sizeof *rows->stride);
        rows->cells = part->cells;
        for (int v = rows->columns; v < part->columns; ++v) rows->cells /= s->size[part->column[v]];
        const int levels = part->cells / rows->cells;
        for (int v = 0; v < rows->columns; ++v) rows->stride[v] = part->stride[v] / levels;
        double *sum = plugin_memory((size_t)rows->cells, sizeof *sum);
        for (int cell = 0; cell < part->cells; ++cell) sum[cell / levels] += part->alpha[cell];
        rows->alpha = sum;
        set_cells(rows, NULL);
    }
    return PLUGIN_OK;
}

/* Cells of all released margins, one margin after the other, have the components that are listed
 * for them; entries come sorted by cell. */
static int read_released(const struct fields *fields, const struct collapse *c,
                         struct crossing *s) {
    const int count = fields_length(fields, "margin"), entries = fields_length(fields, "target");
    const double *margin_columns = fields_vector(fields, "margin", count);
    const double *column = fields_vector(fields, "margin_column", -1);
    const double *target = fields_vector(fields, "target", entries);
    const double *component = fields_vector(fields, "component", entries);
    if (!margin_columns || !column || !target || !component) return PLUGIN_BAD_FIELDS;
    int cells = 0;
    for (int k = 0; k < count; ++k) {
        struct margin *margin = s->margin + s->margins + k;
        margin->kind = RELEASED;
        set_columns(s, margin, &column, (int)margin_columns[k]);
        set_cells(margin, NULL);
        cells += margin->cells;
    }
    int *first = plugin_memory((size_t)cells + 1, sizeof *first);
    s->component = plugin_memory((size_t)entries, sizeof *s->component);
    s->at = plugin_memory((size_t)c->noise.size, sizeof *s->at);
    for (int e = 0; e < entries; ++e) {
        ++first[(int)target[e] + 1];
        s->component[e] = (int)component[e];
    }
    for (int k = 0; k < cells; ++k) first[k + 1] += first[k];
    for (int k = 0; k < count; ++k, ++s->margins) {
        struct margin *margin = s->margin + s->margins;
        margin->first = first;
        for (int cell = 0; cell < margin->cells; ++cell)
            for (int e = first[cell]; e < first[cell + 1]; ++e)
                s->at[s->component[e]] = margin->count + cell;
        first += margin->cells;
    }
    return PLUGIN_OK;
}

static void list_places(struct crossing *s) {
    int all = 0, most = 0;
    for (int k = 0; k < s->margins; ++k) all += s->margin[k].columns;
    s->place_first = plugin_memory((size_t)s->columns + 1, sizeof *s->place_first);
    s->place = plugin_memory((size_t)all, sizeof *s->place);
    all = 0;
    for (int v = 0; v < s->columns; ++v) {
        s->place_first[v] = all;
        for (int k = 0; k < s->margins; ++k)
            for (int l = 0; l < s->margin[k].columns; ++l)
                if (s->margin[k].column[l] == v)
                    s->place[all++] = (struct place){s->margin + k, s->margin[k].stride[l]};
        if (most < s->size[v]) most = s->size[v];
    }
    s->place_first[s->columns] = all;
    DOUBLES((size_t)most, &s->weight, &s->factor);
    s->cell = plugin_memory((size_t)all, sizeof *s->cell);
}

/* Fields: columns, the codes of each; children and parents, how many columns each part has of
 * these; family, the columns of each part, its parents first; alpha as model/categorical.c has it;
 * margin, how many columns each released margin has, and margin_column, these; target, a cell of
 * these margins, and its component, an entry each; tracked, 1 if the parts' cells are reported with
 * the statistic. */
static int create(const struct fields *fields, struct collapse *c) {
    struct crossing *s = plugin_memory(1, sizeof *s);
    s->columns = fields_length(fields, "columns");
    s->parts = fields_length(fields, "children");
    const double *columns = fields_vector(fields, "columns", s->columns);
    const double *tracked = fields_vector(fields, "tracked", 1);
    if (!columns || !tracked || s->parts < 1 || c->size_prior ||
        c->noise.noisy > c->noise.separable || c->noise.noisy < c->noise.size || !c->model.update)
        return PLUGIN_BAD_FIELDS;
    s->tracked = *tracked != 0;
    s->size = plugin_memory((size_t)s->columns, sizeof *s->size);
    for (int v = 0; v < s->columns; ++v) s->size[v] = (int)columns[v];
    const int released = fields_length(fields, "margin");
    s->margin = plugin_memory(2 * (size_t)s->parts + (size_t)released, sizeof *s->margin);
    if (read_parts(fields, s) != PLUGIN_OK || c->model.complete != s->cells ||
        read_released(fields, c, s) != PLUGIN_OK)
        return PLUGIN_BAD_FIELDS;
    list_places(s);
    s->records = plugin_memory((size_t)s->columns, sizeof *s->records);
    for (int v = 0; v < s->columns; ++v) s->records[v] = doubles(MAX_BLOCK);
    watch_create(&s->watch, c->noise.size + s->cells);
    c->self = s;
    const size_t codes = (size_t)c->n * (size_t)s->columns;
    c->stored = watch_stored(s->watch.count) + 1 +
                (int)((codes * sizeof *s->code + sizeof(double) - 1) / sizeof(double));
    return PLUGIN_OK;
}

/* ---- what cells add ------------------------------------------------------------ */

/* What a record adds to the target that comes to a cell of so many: see above. */
static INLINE double gain(const struct collapse *c, const struct crossing *s,
                          const struct margin *margin, int cell, double n) {
    if (margin->kind == CELLS) return margin->alpha[cell] + n;
    if (margin->kind == ROWS) return 1 / (margin->alpha[cell] + n);
    double sum = 0;
    for (int e = margin->first[cell]; e < margin->first[cell + 1]; ++e)
        sum -= noise_change(&c->noise, s->component[e], n, 1);
    return sum;
}

static INLINE void gain_one(const struct collapse *c, const struct crossing *s,
                            struct margin *margin, int cell) {
    margin->count[cell] += 1;
    margin->less[cell] = margin->more[cell];
    margin->more[cell] = gain(c, s, margin, cell, margin->count[cell]);
}

static INLINE void lose_one(const struct collapse *c, const struct crossing *s,
                            struct margin *margin, int cell) {
    const double n = margin->count[cell] -= 1;
    margin->more[cell] = margin->less[cell];
    margin->less[cell] = n > 0 ? gain(c, s, margin, cell, n - 1) : 0;
}

static INLINE int cell_of(const struct margin *margin, const uint16_t *code) {
    int cell = 0;
    for (int k = 0; k < margin->columns; ++k) cell += margin->stride[k] * code[margin->column[k]];
    return cell;
}

/* ---- state ------------------------------------------------------------------------ */

static void attach(const struct collapse *c) {
    struct crossing *s = c->self;
    s->visits = watch_attach(&s->watch, c->store);
    s->code = (uint16_t *)(s->visits + 1);
}

static void load(struct collapse *c) {
    struct crossing *s = c->self;
    attach(c);
    for (int k = 0; k < s->margins; ++k) {
        struct margin *margin = s->margin + k;
        memset(margin->count, 0, (size_t)margin->cells * sizeof(double));
        const uint16_t *code = s->code;
        for (double i = 0; i < c->n; ++i, code += s->columns)
            margin->count[cell_of(margin, code)] += 1;
        for (int cell = 0; cell < margin->cells; ++cell) {
            const double n = margin->count[cell];
            margin->more[cell] = gain(c, s, margin, cell, n);
            margin->less[cell] = n > 0 ? gain(c, s, margin, cell, n - 1) : 0;
        }
    }
}

static void start(struct collapse *c) {
    struct crossing *s = c->self;
    attach(c);
    c->model.class->set(c->model.self, c->theta);
    uint16_t *code = s->code;
    for (double left = c->n; left > 0; left -= MAX_BLOCK) {
        const int m = block_length((ptrdiff_t)left);
        c->model.class->rrecords(c->model.self, c->rng, m, s->records);
        for (int i = 0; i < m; ++i)
            for (int v = 0; v < s->columns; ++v) *code++ = (uint16_t)s->records[v][i];
    }
    *s->visits = fmax(1, floor(c->n / FIRST_SHARE));
}

/* ---- an iteration ------------------------------------------------------------------ */

/* Draws column v of a record. Returns whether it changed. */
static int redraw(const struct collapse *c, struct crossing *s, int v, uint16_t *code) {
    const int size = s->size[v], now = code[v];
    const struct place *first = s->place + s->place_first[v],
                       *end = s->place + s->place_first[v + 1];
    double *restrict weight = s->weight, *restrict factor = s->factor, own = 0, own_factor = 1;
    for (int l = 0; l < size; ++l) {
        weight[l] = 0;
        factor[l] = 1;
    }
    int *cell = s->cell;
    for (const struct place *at = first; at < end; ++at, ++cell) {
        *cell = cell_of(at->margin, code);
        const double *restrict more = at->margin->more + (*cell - now * at->stride);
        if (at->margin->kind == RELEASED) {
            own += at->margin->less[*cell];
            const int stride = at->stride;
            if (stride == 1)
                for (int l = 0; l < size; ++l) weight[l] += more[l];
            else
                for (int l = 0; l < size; ++l, more += stride) weight[l] += *more;
        } else {
            own_factor *= at->margin->less[*cell];
            for (int l = 0; l < size; ++l) factor[l] *= more[l * at->stride];
        }
    }
    weight[now] = own;
    factor[now] = own_factor;
    double most = own, sum = 0;
    for (int l = 0; l < size; ++l) most = weight[l] > most ? weight[l] : most;
    for (int l = 0; l < size; ++l) sum += weight[l] = factor[l] * exp(weight[l] - most);
    double left = sum * rng_uniform(c->rng);
    int to = 0;
    while (to < size - 1 && (left -= weight[to]) > 0) ++to;
    if (to == now) return 0;
    cell = s->cell;
    for (const struct place *at = first; at < end; ++at, ++cell) {
        lose_one(c, s, at->margin, *cell);
        gain_one(c, s, at->margin, *cell + (to - now) * at->stride);
    }
    code[v] = (uint16_t)to;
    return 1;
}

static void learn(const struct collapse *c, struct crossing *s, int iteration, int warmup) {
    watch_next(&s->watch);
    for (int k = 0; k < c->noise.size; ++k) watch_add(&s->watch, k, *s->at[k]);
    for (int k = 0; k < s->cells; ++k) watch_add(&s->watch, c->noise.size + k, s->part_counts[k]);
    if (adapt_window(iteration, warmup) == WINDOW_GOES_ON) return;
    const double found = rint(*s->visits * watch_factor(&s->watch, 0));
    const double most = fmax(MOST_VISITS, ceil(c->n / MOST_SHARE));
    *s->visits = fmin(fmax(found, ceil(c->n / LEAST_SHARE)), most);
    watch_forget(&s->watch);
}

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    struct crossing *s = c->self;
    double moved = 0;
    for (double k = 0; k < *s->visits; ++k) {
        uint16_t *code = s->code + (size_t)(rng_uniform(c->rng) * c->n) * (size_t)s->columns;
        for (int v = 0; v < s->columns; ++v) moved += redraw(c, s, v, code);
    }
    const double made = *s->visits * s->columns;
    c->counter[2 * MOVED + MADE] += made;
    c->counter[2 * MOVED + ACCEPTED] += moved;
    *accepted = moved / made;
    if (iteration < warmup) learn(c, s, iteration, warmup);
    return c->model.update->rtheta(c->model.self, s->part_counts, c->n, c->rng, c->theta);
}

static void statistic(const struct collapse *c, double *out) {
    const struct crossing *s = c->self;
    for (int k = 0; k < c->noise.size; ++k) out[k] = *s->at[k];
    if (s->tracked) memcpy(out + c->noise.size, s->part_counts, (size_t)s->cells * sizeof(double));
}

static double work(const struct collapse *c) {
    const struct crossing *s = c->self;
    double codes = 0;
    for (int v = 0; v < s->columns; ++v) codes += s->size[v];
    return 30 * codes * *s->visits;
}

const struct collapse_class collapse_crossing = {
    .name = "crossing",
    .counters =
        {
            [2 * MOVED + MADE] = "made",
            [2 * MOVED + ACCEPTED] = "moved",
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .work = work,
};
