/* Moments of counts under the models of categorical variables: a class and
 * features that are independent given it (model/categorical.c); Bernoulli and
 * categorical records have the class alone.
 *
 * A total holds the cells of margins, those released and then those aside. Cell
 * a asks for a class or any (-1), and for a level of some features. Given class
 * y it has probability q_a(y), the product over its features, so that
 *   E 1_a = sum_y p(y) q_a(y),   E 1_a 1_b = sum_y p(y) q_a(y) q_b(y),
 * where classes that a cell does not have drop out, a feature that both cells
 * ask for counts once, and cells that contradict each other give 0
 * (Bernstein & Sheldon 2018, section 3.2: multinomial counts).
 *
 * A block of theta is a variable. The complete-data counts are sums over cells of
 * the total. Cost: O(cells^2 classes).
 */
#include "contract/moments.h"

struct cell {
    int first, count; /* its levels, among the struct's `feature` and `level` */
    int margin, class;
};

struct counts {
    const struct coordinates *coordinates;
    int variables, classes, cells, complete;
    const double *levels;
    int probabilities, *at_row; /* first probability of a variable */
    struct cell *cell;
    int *feature, *level;         /* of the cells */
    int *overlap, margins;        /* margins x margins: do they share a feature? */
    int parts;                    /* length of complete_cell */
    int *complete_cell, *part_of; /* which cells a complete-data count sums */
    int *row_first;               /* complete-data counts by row: first, and one past the last */
    int rows;
    double *probability, *q; /* workspace: probabilities; cells x classes, p(y) left out */
};

/* Fields: levels, one a variable, class first; released, number of released
 * cells; margin, of each cell; level, cells x variables, -1 where a cell asks
 * for none; complete_cell, part_of: pairs of a cell and the complete-data count
 * it goes to. */
static int create(const struct fields *fields, const struct coordinates *coordinates,
                  struct record_moments *moments) {
    struct counts *s = plugin_memory(1, sizeof *s);
    s->coordinates = coordinates;
    s->variables = fields_length(fields, "levels");
    s->cells = fields_length(fields, "margin");
    s->parts = fields_length(fields, "part_of");
    s->levels = fields_vector(fields, "levels", s->variables);
    const double *released = fields_vector(fields, "released", 1);
    const double *margin = fields_vector(fields, "margin", s->cells);
    const double *level = fields_vector(fields, "level", s->cells * s->variables);
    const double *part_of = fields_vector(fields, "part_of", s->parts);
    const double *complete_cell = fields_vector(fields, "complete_cell", s->parts);
    if (!s->levels || !released || !margin || !level || !part_of || !complete_cell)
        return PLUGIN_BAD_FIELDS;
    s->classes = (int)s->levels[0];
    s->at_row = plugin_memory((size_t)s->variables, sizeof(int));
    for (int v = 0; v < s->variables; ++v) {
        s->at_row[v] = s->probabilities;
        s->probabilities += (v == 0 ? 1 : s->classes) * (int)s->levels[v];
        s->rows += v == 0 ? 1 : s->classes;
    }
    s->complete = s->probabilities;
    s->row_first = plugin_memory((size_t)s->rows + 1, sizeof(int));
    for (int v = 0, row = 0, at = 0; v < s->variables; ++v)
        for (int r = 0; r < (v == 0 ? 1 : s->classes); ++r) {
            at += (int)s->levels[v];
            s->row_first[++row] = at;
        }
    s->cell = plugin_memory((size_t)s->cells, sizeof *s->cell);
    s->feature = plugin_memory((size_t)s->cells * s->variables, sizeof(int));
    s->level = plugin_memory((size_t)s->cells * s->variables, sizeof(int));
    for (int a = 0, at = 0; a < s->cells; ++a) {
        struct cell *cell = s->cell + a;
        const double *wanted = level + (size_t)a * s->variables;
        cell->first = at;
        cell->class = (int)wanted[0];
        cell->margin = (int)margin[a];
        if (cell->margin >= s->margins) s->margins = cell->margin + 1;
        for (int v = 1; v < s->variables; ++v) {
            if (wanted[v] < 0) continue;
            s->feature[at] = v;
            s->level[at++] = (int)wanted[v];
        }
        cell->count = at - cell->first;
    }
    s->overlap = plugin_memory((size_t)s->margins * s->margins, sizeof(int));
    for (int a = 0; a < s->cells; ++a)
        for (int b = 0; b < s->cells; ++b)
            for (int v = 1; v < s->variables; ++v)
                if (level[(size_t)a * s->variables + v] >= 0 &&
                    level[(size_t)b * s->variables + v] >= 0)
                    s->overlap[s->cell[a].margin * s->margins + s->cell[b].margin] = 1;
    s->complete_cell = plugin_memory((size_t)s->parts, sizeof(int));
    s->part_of = plugin_memory((size_t)s->parts, sizeof(int));
    for (int k = 0; k < s->parts; ++k) {
        s->complete_cell[k] = (int)complete_cell[k];
        s->part_of[k] = (int)part_of[k];
        if (s->complete_cell[k] < 0 || s->complete_cell[k] >= s->cells || s->part_of[k] < 0 ||
            s->part_of[k] >= s->complete)
            return PLUGIN_BAD_FIELDS;
    }
    s->probability = doubles((size_t)s->probabilities);
    s->q = doubles((size_t)s->cells * s->classes);
    moments->self = s;
    moments->released = (int)*released;
    moments->aside = s->cells - moments->released;
    moments->complete = s->complete;
    return PLUGIN_OK;
}

static inline double feature_probability(const struct counts *s, int y, int v, int level) {
    return s->probability[s->at_row[v] + y * (int)s->levels[v] + level];
}

/* E 1_a 1_b where both cells ask for some feature */
static double overlapping(const struct counts *s, const struct cell *a, const struct cell *b) {
    double sum = 0;
    for (int y = 0; y < s->classes; ++y) {
        if ((a->class >= 0 && a->class != y) || (b->class >= 0 && b->class != y)) continue;
        double product = s->probability[y];
        int i = a->first, j = b->first;
        const int last_i = i + a->count, last_j = j + b->count;
        while (i < last_i || j < last_j) {
            /* features stand in rising order */
            if (j == last_j || (i < last_i && s->feature[i] < s->feature[j])) {
                product *= feature_probability(s, y, s->feature[i], s->level[i]);
                ++i;
            } else {
                if (i < last_i && s->feature[i] == s->feature[j]) {
                    if (s->level[i] != s->level[j]) return 0;
                    ++i;
                }
                product *= feature_probability(s, y, s->feature[j], s->level[j]);
                ++j;
            }
        }
        sum += product;
    }
    return sum;
}

static int eval(void *self, const double *theta, double *mean, double *cov) {
    const struct counts *s = self;
    const int w = s->cells, classes = s->classes;
    for (int v = 0; v < s->variables; ++v)
        block_constrain(s->coordinates->block + v, theta, s->probability + s->at_row[v]);
    for (int a = 0; a < w; ++a) {
        const struct cell *cell = s->cell + a;
        double *q = s->q + (size_t)a * classes;
        mean[a] = 0;
        for (int y = 0; y < classes; ++y) {
            q[y] = cell->class < 0 || cell->class == y ? 1 : 0;
            for (int k = cell->first; k < cell->first + cell->count && q[y] > 0; ++k)
                q[y] *= feature_probability(s, y, s->feature[k], s->level[k]);
            mean[a] += s->probability[y] * q[y];
        }
    }
    for (int a = 0; a < w; ++a) {
        const struct cell *first = s->cell + a;
        const double *restrict qa = s->q + (size_t)a * classes;
        for (int b = 0; b <= a; ++b) {
            const struct cell *second = s->cell + b;
            double both = 0;
            if (a == b) {
                both = mean[a];
            } else if (first->margin == second->margin) {
                both = 0;
            } else if (s->overlap[first->margin * s->margins + second->margin]) {
                both = overlapping(s, first, second);
            } else {
                const double *restrict qb = s->q + (size_t)b * classes;
                for (int y = 0; y < classes; ++y) both += s->probability[y] * qa[y] * qb[y];
            }
            cov[(size_t)a * w + b] = cov[(size_t)b * w + a] = both - mean[a] * mean[b];
        }
    }
    return PLUGIN_OK;
}

/* Rounding leaves counts slightly below 0, or sums slightly off n. */
static int complete(void *self, double n, const double *total, double *c) {
    const struct counts *s = self;
    const double hair = 1e-9 * n;
    memset(c, 0, (size_t)s->complete * sizeof(double));
    for (int k = 0; k < s->parts; ++k) c[s->part_of[k]] += total[s->complete_cell[k]];
    int valid = 1;
    for (int j = 0; j < s->complete; ++j) {
        if (c[j] < -hair) valid = 0;
        if (c[j] < 0 && c[j] >= -hair) c[j] = 0;
    }
    return valid;
}

/* Negative counts become 0; the others of a row shrink to the same sum: n for
 * the class, the count of its class for a feature. Those of an empty row share
 * the sum. */
static void project(void *self, double n, double *c) {
    const struct counts *s = self;
    for (int r = 0; r < s->rows; ++r) {
        const double sum = r == 0 ? n : c[(r - 1) % s->classes];
        double positive = 0;
        for (int j = s->row_first[r]; j < s->row_first[r + 1]; ++j) {
            c[j] = c[j] > 0 ? c[j] : 0;
            positive += c[j];
        }
        const int levels = s->row_first[r + 1] - s->row_first[r];
        for (int j = s->row_first[r]; j < s->row_first[r + 1]; ++j)
            c[j] = positive > 0 ? c[j] * (sum / positive) : sum / levels;
    }
}

const struct record_moments_class moments_counts = {
    .name = "counts",
    .create = create,
    .eval = eval,
    .complete = complete,
    .project = project,
};
