/* Method "collapse", counts of one table if every released number is the count of one cell, or n:
 * given n the cells' counts are independent, with their own priors, except that their sum is n.
 * All of them, and n if it is unknown, are drawn at once, independently of earlier draws.
 *
 * With w_l(m) the weight of m records in cell l, prior and noise together, and v(n) that of n, its
 * prior, its noise and n! / Gamma(sum of alpha + n), weights e^(lambda m) for every cell and
 * e^(-lambda n) for n change nothing, as the counts add up to n. R chooses lambda so that counts
 * drawn by p_l(m) ~ w_l(m) e^(lambda m), each by itself, have the same sum on average as n drawn
 * by q(n) ~ v(n) e^(-lambda n); then the relevant terms are of similar size, no logarithms are
 * needed, and each is kept if it is more than 1e-30 times its largest value (p_l from `first` on).
 * A known n is a q of one value. Once
 *
 *   F_0 = p_0,   F_l(N) = sum_m p_l(m) F_{l-1}(N - m)
 *
 * for the sums N that the cells after l can make up to a possible n, again where they are more
 * than 1e-30 of the greatest. A draw goes the other way: n with probability proportional to q(n)
 * F_last(n); m of the last cell with probability proportional to p_l(m) F_{l-1}(n - m), then of
 * those before it, of what is left. Each is found by inversion, starting at its mean under a
 * normal approximation and going outwards on both sides in turn.
 *
 * Cells are ordered by their widths. Cost: sum of width_l times the length of F_{l-1} once; of a
 * draw, about one and a half standard deviations of each count, in products. Counts with features,
 * by logarithms: table/naive_bayes_convolution.c.
 *
 * Answers by randomised response, of which r has the probability b_r + c_r p_k: the counts are how
 * many answers depend on each level k, of weights that R finds (R/engine_collapse_answers.R), and n
 * is their unknown sum M. The others have levels of distribution p, and the noise is
 * the likelihood given p.
 */
#include "base/sticks.h"
#include "contract/cell_weights.h"
#include "contract/collapse.h"
#include "contract/model_update.h"

enum { DRAWS };

static const double least_kept = 1e-30; /* of the greatest; R's too */

/* F_l, at N = low .. low + length - 1 */
struct sums {
    int low, length;
    const double *value;
};

/* of randomised response; `level` of r is a cell, or -1 if c_r is 0 */
struct answers {
    int size; /* 0: there are none */
    const double *count, *base, *more, *level;
};

struct row {
    int cells, tracked;
    const double *cell;     /* where each, by width, is among the counts */
    const double *place;    /* of each component: a cell; `cells` is n */
    const double *multiple; /* of a component: it is so many times the count */
    const double *first, *width, *mean, *variance;
    const double **probability; /* p_l */
    int size_first, size_last;
    double size_mean;
    const double *size_probability; /* q */
    double *share, *mean_to;        /* variance over that of cells 0..l, mean of their sum */
    struct sums *sums;
    double whole; /* sum over n of q(n) F_last(n) */
    double n;
    double *count;
    struct answers answers;
    double *table, *energy; /* of answers, in the store: confidential counts */
    double *p;
};

/* ---- set-up ------------------------------------------------------------------- */

/* Of each F: low, length, values. */
static size_t tables_size(const double *tables, int sums) {
    size_t at = 0;
    for (int l = 0; l < sums; ++l) at += 2 + (size_t)tables[at + 1];
    return at;
}

static void attach_tables(struct row *s, const double *tables) {
    for (int l = 0; l < s->cells; ++l) {
        s->sums[l] = (struct sums){(int)tables[0], (int)tables[1], tables + 2};
        tables += 2 + s->sums[l].length;
    }
}

/* Takes `length` values from `low` on without what is negligible at both ends. */
static double *keep(int low, int length, const double *value) {
    double most = 0;
    for (int i = 0; i < length; ++i) most = value[i] > most ? value[i] : most;
    int begin = 0, end = length;
    while (begin < end - 1 && value[begin] <= least_kept * most) ++begin;
    while (end - 1 > begin && value[end - 1] <= least_kept * most) --end;
    double *kept = doubles(2 + (size_t)(end - begin));
    kept[0] = low + begin;
    kept[1] = end - begin;
    memcpy(kept + 2, value + begin, (size_t)(end - begin) * sizeof(double));
    return kept;
}

static double *join(const struct row *s, double *const *kept) {
    size_t size = 0;
    for (int l = 0; l < s->cells; ++l) size += 2 + (size_t)kept[l][1];
    double *tables = doubles(size), *next = tables;
    for (int l = 0; l < s->cells; ++l) {
        const size_t each = 2 + (size_t)kept[l][1];
        memcpy(next, kept[l], each * sizeof(double));
        next += each;
    }
    return tables;
}

enum { SPAN = 8 };

/* out_i = sum over k of p_k f_(i + offset - k), i < length: SPAN of them at a time, in registers.
 * f has `size` values, SPAN zeros before and after them, and `out` room for SPAN more. */
VECTOR_CLONES static void convolve(int width, const double *restrict p, int size,
                                   const double *restrict f, int offset, int length,
                                   double *restrict out) {
    for (int i = 0; i < length; i += SPAN) {
        const int at = i + offset;
        const int from = at - size + 1 > 0 ? at - size + 1 : 0;
        const int to = at + SPAN < width ? at + SPAN : width;
        double sum[SPAN] = {0};
        for (int k = from; k < to; ++k) {
            const double *const of = f + at - k;
            for (int j = 0; j < SPAN; ++j) sum[j] += p[k] * of[j];
        }
        memcpy(out + i, sum, sizeof sum);
    }
}

static double *fill_tables(const struct row *s) {
    size_t longest = 0;
    for (int l = 0; l < s->cells; ++l) longest += (size_t)s->width[l];
    double **kept = plugin_memory((size_t)s->cells, sizeof *kept);
    double *value = doubles(longest + SPAN);
    double *padded = doubles(longest + 2 * SPAN) + SPAN; /* F of the cells before */
    double least_after = 0, most_after = 0;              /* what the cells after l add up to */
    for (int l = 1; l < s->cells; ++l) {
        least_after += s->first[l];
        most_after += s->first[l] + s->width[l] - 1;
    }
    int before_low = 0, before_length = 1;
    padded[0] = 1;
    for (int l = 0; l < s->cells; ++l) {
        const int first = (int)s->first[l], last = first + (int)s->width[l] - 1;
        const int low = (int)fmax(before_low + first, s->size_first - most_after);
        const int high =
            (int)fmin(before_low + before_length - 1 + last, s->size_last - least_after);
        const int length = high >= low ? high - low + 1 : 0;
        convolve((int)s->width[l], s->probability[l], before_length, padded,
                 low - first - before_low, length, value);
        if (length == 0) return NULL;
        kept[l] = keep(low, length, value);
        before_low = (int)kept[l][0];
        before_length = (int)kept[l][1];
        memcpy(padded, kept[l] + 2, (size_t)before_length * sizeof(double));
        memset(padded + before_length, 0, SPAN * sizeof(double));
        if (l + 1 == s->cells) break;
        least_after -= s->first[l + 1];
        most_after -= s->first[l + 1] + s->width[l + 1] - 1;
    }
    return join(s, kept);
}

/* The counts of cell l that leave the cells before it a sum that they can have. */
static void range(const struct row *s, int l, int left, int *low, int *high) {
    const struct sums *before = s->sums + l - 1;
    const int first = (int)s->first[l], last = first + (int)s->width[l] - 1;
    const int least = left - (before->low + before->length - 1), most = left - before->low;
    *low = first > least ? first : least;
    *high = last < most ? last : most;
}

static int read_answers(const struct fields *fields, struct row *s) {
    struct answers *a = &s->answers;
    const int size = fields_length(fields, "answered");
    if (size < 1) return 1;
    a->size = size;
    a->count = fields_vector(fields, "answered", size);
    a->base = fields_vector(fields, "base", size);
    a->more = fields_vector(fields, "more", size);
    a->level = fields_vector(fields, "level", size);
    if (!a->base || !a->more || !a->level) return 0;
    for (int r = 0; r < size; ++r)
        if (!(a->level[r] >= -1) || a->level[r] >= s->cells) return 0;
    s->p = doubles((size_t)s->cells);
    return 1;
}

/* Fields, by cell in the order of drawing: cell, first, width, mean, variance; probability, of
 * all, one after the other; size_first, size_mean, size_probability; place and multiple, of each
 * component; tracked; tables, from an earlier call, to spare the convolutions. Of answers:
 * answered, how many there are of each that was given; base, more and level. */
static int create(const struct fields *fields, struct collapse *c) {
    struct row *s = plugin_memory(1, sizeof *s);
    s->cells = fields_length(fields, "cell");
    if (s->cells < 2 || c->model.complete != s->cells) return PLUGIN_BAD_FIELDS;
    s->cell = fields_vector(fields, "cell", s->cells);
    s->first = fields_vector(fields, "first", s->cells);
    s->width = fields_vector(fields, "width", s->cells);
    s->mean = fields_vector(fields, "mean", s->cells);
    s->variance = fields_vector(fields, "variance", s->cells);
    s->place = fields_vector(fields, "place", c->noise.size);
    s->multiple = fields_vector(fields, "multiple", c->noise.size);
    const double *size_first = fields_vector(fields, "size_first", 1);
    const double *size_mean = fields_vector(fields, "size_mean", 1);
    s->size_probability = fields_vector(fields, "size_probability", -1);
    const double *tracked = fields_vector(fields, "tracked", 1);
    const double *probability = fields_vector(fields, "probability", -1);
    if (!s->cell || !s->first || !s->width || !s->mean || !s->variance || !s->place ||
        !s->multiple || !tracked || !probability || !size_first || !size_mean ||
        !s->size_probability || !read_answers(fields, s))
        return PLUGIN_BAD_FIELDS;
    s->size_first = (int)size_first[0];
    s->size_last = s->size_first + fields_length(fields, "size_probability") - 1;
    s->size_mean = size_mean[0];
    s->tracked = tracked[0] != 0;
    s->probability = plugin_memory((size_t)s->cells, sizeof *s->probability);
    s->share = plugin_memory((size_t)s->cells, sizeof *s->share);
    s->mean_to = plugin_memory((size_t)s->cells, sizeof *s->mean_to);
    s->sums = plugin_memory((size_t)s->cells, sizeof *s->sums);
    double mean = 0, variance = 0;
    for (int l = 0; l < s->cells; ++l) {
        s->probability[l] = probability;
        probability += (int)s->width[l];
        mean += s->mean[l];
        variance += s->variance[l];
        s->mean_to[l] = mean;
        s->share[l] = variance > 0 ? s->variance[l] / variance : 0;
    }
    const double *tables = fields_vector(fields, "tables", -1);
    if (!tables) tables = fill_tables(s);
    if (!tables) return PLUGIN_BAD_FIELDS;
    attach_tables(s, tables);
    const struct sums *all = s->sums + s->cells - 1;
    if (s->size_first < all->low) s->size_probability += all->low - s->size_first;
    s->size_first = s->size_first > all->low ? s->size_first : all->low;
    const int last = all->low + all->length - 1;
    s->size_last = s->size_last < last ? s->size_last : last;
    for (int n = s->size_first; n <= s->size_last; ++n)
        s->whole += s->size_probability[n - s->size_first] * all->value[n - all->low];
    if (!(s->whole > 0)) return PLUGIN_BAD_FIELDS;
    c->self = s;
    c->stored = s->answers.size ? 2 * s->cells + 1 : s->cells;
    return PLUGIN_OK;
}

static const double *tables_of(const struct collapse *c, size_t *size) {
    const struct row *s = c->self;
    const double *tables = s->sums[0].value - 2;
    *size = tables_size(tables, s->cells);
    return tables;
}

static void load(struct collapse *c) {
    struct row *s = c->self;
    s->count = c->store;
    s->table = s->count + s->cells;
    s->energy = s->table + s->cells;
    s->n = 0;
    for (int l = 0; l < s->cells; ++l) s->n += s->count[l];
}

/* ---- a draw ------------------------------------------------------------------------ */

/* m in low..high with probability p[m - low] f[(m - low) sign] / whole, looked for from `centre`
 * on. `sign`: f goes up or down with m. */
static int draw_between(struct rng *rng, int low, int high, double centre, double whole,
                        const double *p, const double *f, int sign) {
    const int size = high - low, middle = (int)fmin(fmax(rint(centre) - low, 0), size);
    double u = whole * rng_uniform(rng);
    for (int up = middle, down = middle - 1; up <= size || down >= 0; ++up, --down) {
        if (up <= size && (u -= p[up] * f[sign * up]) < 0) return low + up;
        if (down >= 0 && (u -= p[down] * f[sign * down]) < 0) return low + down;
    }
    return low + middle; /* rounding only */
}

/* The count of cell l, if those of cells 0..l sum to `left`. */
static int draw_count(const struct row *s, struct rng *rng, int l, int left) {
    const struct sums *before = s->sums + l - 1, *with = s->sums + l;
    int low, high;
    range(s, l, left, &low, &high);
    const double centre = s->mean[l] + s->share[l] * (left - s->mean_to[l]);
    return draw_between(rng, low, high, centre, with->value[left - with->low],
                        s->probability[l] + (low - (int)s->first[l]),
                        before->value + (left - low - before->low), -1);
}

static void draw(struct collapse *c) {
    struct row *s = c->self;
    const struct sums *all = s->sums + s->cells - 1;
    int left = s->size_first;
    if (s->size_last > s->size_first)
        left = draw_between(c->rng, s->size_first, s->size_last, s->size_mean, s->whole,
                            s->size_probability, all->value + (s->size_first - all->low), 1);
    s->n = left;
    for (int l = s->cells - 1; l > 0; --l) {
        const int m = draw_count(s, c->rng, l, left);
        s->count[(int)s->cell[l]] = m;
        left -= m;
    }
    s->count[(int)s->cell[0]] = left;
}

/* The confidential counts given theta and which answers depend on it; and the likelihood. */
static void draw_levels(struct collapse *c) {
    const struct row *s = c->self;
    const struct answers *a = &s->answers;
    cells_draw(c->rng, s->cells, c->theta, c->n - s->n, s->table);
    for (int l = 0; l < s->cells; ++l) s->table[l] += s->count[l];
    sticks_to_probabilities(s->cells, c->theta, s->p);
    *s->energy = 0;
    for (int r = 0; r < a->size; ++r) {
        const double more = a->level[r] < 0 ? 0 : a->more[r] * s->p[(int)a->level[r]];
        *s->energy -= a->count[r] * log(a->base[r] + more);
    }
}

static void start(struct collapse *c) {
    load(c);
    draw(c);
}

static int iterate(struct collapse *c, int iteration, int warmup, double *accepted) {
    const struct row *s = c->self;
    draw(c);
    collapse_count(c, DRAWS, 1);
    *accepted = 1;
    const int status = c->model.update->rtheta(c->model.self, s->count, s->n, c->rng, c->theta);
    if (s->answers.size && iteration >= warmup) draw_levels(c);
    return status;
}

static double total(const struct collapse *c, int component) {
    const struct row *s = c->self;
    const int place = (int)s->place[component];
    return s->multiple[component] * (place == s->cells ? s->n : s->count[place]);
}

static void statistic(const struct collapse *c, double *out) {
    const struct row *s = c->self;
    for (int k = 0; k < c->noise.size; ++k) out[k] = total(c, k);
    if (s->tracked)
        memcpy(out + c->noise.size, s->answers.size ? s->table : s->count,
               (size_t)s->cells * sizeof(double));
}

/* of answers the likelihood, else of the released counts */
static double energy(const struct collapse *c) {
    const struct row *s = c->self;
    if (s->answers.size) return *s->energy;
    statistic(c, c->totals);
    return noise_energy(&c->noise, c->totals);
}

static double records(const struct collapse *c) {
    const struct row *s = c->self;
    return s->n;
}

static double work(const struct collapse *c) {
    const struct row *s = c->self;
    double sd = 0;
    for (int l = 0; l < s->cells; ++l) sd += sqrt(s->variance[l]);
    return 3 * sd + (s->answers.size ? 150 : 50) * s->cells;
}

const struct collapse_class collapse_row = {
    .name = "row",
    .counters = {[MADE] = "made", [ACCEPTED] = "accepted"},
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .records = records,
    .energy = energy,
    .work = work,
    .tables = tables_of,
};
