/* Levels drawn from vectors of probabilities, many records at a time.
 *
 * Record i has one uniform u, and its level is the number of bounds R_l = P(l or a later level), l
 * >= 1, that are above u. For rows of many levels, a guide table finds the level (Chen & Asau
 * 1974): a bucket [g, g + 1) / buckets holds the number of bounds that lie above all of it. With
 * few levels, the first 16 bits of u nearly always determine the level; the other bits are drawn
 * only if the first ones equal the first bits of a bound, an edge.
 *
 * Cost per record: a uniform, or a quarter of a word, and one search.
 */
#include "model/categorical_draw.h"

#include "base/lanes.h"
#include "base/sticks.h"
#include "contract/plugin.h"

/* up to this many levels every bound is looked at; up to this many rows are looked
 * up in a register; a draw of 64 bits has so many pieces of 16 */
enum { MOST_COUNTED = 16, ROWS = 8, BITS = 16, PIECES = 4 };

/* ---- tables ------------------------------------------------------------- */

static struct level_table table_new(const struct levels *v) {
    const struct level_table table = {
        .bound = doubles((size_t)v->rows * (size_t)(v->levels + 1)),
        .guide = plugin_memory((size_t)v->rows * (size_t)v->buckets, sizeof(int)),
        .edge = plugin_memory(v->quick ? (size_t)v->cuts * ROWS : 0, sizeof(int)),
    };
    return table;
}

struct levels levels_new(int levels, int rows) {
    struct levels v = {.levels = levels, .cuts = levels - 1, .rows = rows};
    if (levels > MOST_COUNTED)
        for (v.buckets = 1; v.buckets < levels;) v.buckets *= 2;
    v.quick = v.buckets == 0 && rows <= ROWS;
    v.now = table_new(&v);
    v.next = table_new(&v);
    return v;
}

struct level_work level_work_new(void) {
    const struct level_work work = {
        .u = doubles(MAX_BLOCK),
        .keep = doubles(MAX_BLOCK),
        .piece = plugin_memory(MAX_BLOCK, sizeof(uint16_t)),
    };
    return work;
}

static void make_guide(const struct levels *v, const double *bound, int *guide) {
    const double width = 1.0 / v->buckets;
    for (int g = v->buckets - 1, above = 0; g >= 0; --g) {
        while (above < v->cuts && bound[above + 1] >= (g + 1) * width) ++above;
        guide[g] = above;
    }
}

static void make_table(const struct levels *v, const double *stick,
                       const struct level_table *table) {
    for (int r = 0; r < v->rows; ++r) {
        double *bound = table->bound + (size_t)r * (v->levels + 1);
        sticks_to_bounds(v->levels, stick + (size_t)r * v->cuts, bound);
        if (v->buckets > 0) make_guide(v, bound, table->guide + (size_t)r * v->buckets);
    }
}

/* the first bits of R_l, l >= 1, by l, then by row */
static void make_edges(const struct levels *v, const struct level_table *table) {
    for (int r = 0; r < v->rows; ++r) {
        const double *bound = table->bound + (size_t)r * (v->levels + 1) + 1;
        for (int l = 0; l < v->cuts; ++l) table->edge[l * ROWS + r] = (int)(bound[l] * (1 << BITS));
    }
}

void levels_set(const struct levels *v, const double *stick) {
    make_table(v, stick, &v->now);
    if (v->quick) make_edges(v, &v->now);
}

void levels_set_next(const struct levels *v, const double *stick) {
    make_table(v, stick, &v->next);
}

/* ---- levels from uniforms ----------------------------------------------- */

/* one row for all records */
static inline void count_bounds(int m, int cuts, const double *restrict bound,
                                const double *restrict u, double *restrict level) {
    FOR_RECORDS(i, m) level[i] = u[i] < bound[1] ? 1 : 0;
    for (int l = 2; l <= cuts; ++l) {
        const double b = bound[l];
        FOR_RECORDS(i, m) level[i] += u[i] < b ? 1 : 0;
    }
}

/* a row for each record */
static INLINE void count_row_bounds(int m, int cuts, const double *restrict bound,
                                    const int *restrict row, const double *restrict u,
                                    double *restrict level) {
    for (int i = 0; i < m; ++i) {
        const double *b = bound + row[i] * (cuts + 2);
        double above = u[i] < b[1] ? 1 : 0;
        for (int l = 2; l <= cuts; ++l) above += u[i] < b[l] ? 1 : 0;
        level[i] = above;
    }
}

static void search_bounds(const struct levels *v, const struct level_table *table, int m,
                          const int *row, const double *u, double *level) {
    for (int i = 0; i < m; ++i) {
        const int r = row ? row[i] : 0;
        const double *b = table->bound + (size_t)r * (v->levels + 1);
        int l = table->guide[(size_t)r * v->buckets + (int)(u[i] * v->buckets)];
        while (u[i] < b[l + 1]) ++l;
        level[i] = l;
    }
}

/* levels at these uniforms */
VECTOR_CLONES static void find_levels(const struct levels *v, const struct level_table *table,
                                      int m, const int *row, const double *u, double *level) {
    const double *bound = table->bound;
    if (v->buckets > 0) {
        search_bounds(v, table, m, row, u, level);
    } else if (!row) {
        count_bounds(m, v->cuts, bound, u, level);
    } else {
        switch (v->cuts) {
        case 1:
            count_row_bounds(m, 1, bound, row, u, level);
            break;
        case 2:
            count_row_bounds(m, 2, bound, row, u, level);
            break;
        case 3:
            count_row_bounds(m, 3, bound, row, u, level);
            break;
        default:
            count_row_bounds(m, v->cuts, bound, row, u, level);
        }
    }
}

/* ---- levels from the first bits of uniforms ------------------------------------- */

/* level[i] = how many edges of its row lie above piece[i]; returns whether some
 * piece is an edge, which decides nothing. */
static INLINE int count_edges(int m, int cuts, const int *edge, const int *row,
                              const uint16_t *piece, int *level) {
    int ties = 0;
#if HAS_LOOKUP
    ints tie = {0};
    for (int i = 0; i < m; i += INTS) {
        const ints first = INTS_OF(piece + i);
        ints above = {0};
        const ints r = row ? INTS_LOAD(row + i) : above;
        for (int l = 0; l < cuts; ++l) {
            const ints bound = INTS_LOOKUP(INTS_LOAD(edge + l * ROWS), r);
            above -= first < bound;
            tie |= first == bound;
        }
        INTS_STORE(level + i, above);
    }
    for (int l = 0; l < INTS; ++l) ties |= tie[l];
#else
    for (int i = 0; i < m; ++i) {
        const int *bound = edge + (row ? row[i] : 0);
        int above = 0;
        for (int l = 0; l < cuts; ++l) {
            above += piece[i] < bound[l * ROWS];
            ties |= piece[i] == bound[l * ROWS];
        }
        level[i] = above;
    }
#endif
    return ties;
}

VECTOR_CLONES static int find_edges(const struct levels *v, int m, const int *row,
                                    const uint16_t *piece, int *level) {
    const int *edge = v->now.edge;
    if (!row) return count_edges(m, v->cuts, edge, NULL, piece, level);
    if (v->cuts == 1) return count_edges(m, 1, edge, row, piece, level);
    if (v->cuts == 2) return count_edges(m, 2, edge, row, piece, level);
    return count_edges(m, v->cuts, edge, row, piece, level);
}

/* draws the rest of the uniforms whose first bits are an edge */
NOINLINE static void break_ties(const struct levels *v, struct rng *rng, int m, const int *row,
                                const uint16_t *piece, int *level) {
    for (int i = 0; i < m; ++i) {
        const int r = row ? row[i] : 0;
        const int *edge = v->now.edge + r;
        const double *bound = v->now.bound + r * (v->levels + 1);
        int tie = 0, above = 0;
        for (int l = 0; l < v->cuts; ++l) tie |= piece[i] == edge[l * ROWS];
        if (!tie) continue;
        const double u = (piece[i] + rng_uniform(rng)) / (1 << BITS);
        for (int l = 1; l <= v->cuts; ++l) above += u < bound[l];
        level[i] = above;
    }
}

/* ---- what a model asks for -------------------------------------------------- */

void levels_codes(int m, const double *restrict level, int *restrict code) {
    FOR_RECORDS(i, m) code[i] = (int)level[i];
}

VECTOR_CLONES static void write_codes(int m, const int *restrict code, double *restrict level) {
    FOR_RECORDS(i, m) level[i] = code[i];
}

void levels_draw(const struct levels *v, const struct level_work *work, struct rng *rng, int m,
                 const int *row, int *code, double *level) {
    if (v->quick) {
        rng_fill_quarters(rng, (m + PIECES - 1) / PIECES, work->piece);
        if (find_edges(v, m, row, work->piece, code)) break_ties(v, rng, m, row, work->piece, code);
        write_codes(m, code, level);
    } else {
        rng_fill_uniform(rng, m, work->u);
        find_levels(v, &v->now, m, row, work->u, level);
        levels_codes(m, level, code);
    }
}

/* Splits uniforms in two: keep[i] says whether u[i] < rho, and u[i] becomes a
 * uniform again. */
VECTOR_CLONES static void split_uniforms(int m, double rho, double *restrict u,
                                         double *restrict keep) {
    const double below_one = 1 - 0x1p-53, up = 1 / rho, down = 1 / (1 - rho);
    FOR_RECORDS(i, m) {
        const double old = u[i] * up, fresh = (u[i] - rho) * down;
        const double value = u[i] < rho ? old : fresh;
        keep[i] = u[i] < rho ? 1 : 0;
        u[i] = value < below_one ? value : below_one;
    }
}

VECTOR_CLONES static void keep_levels(int m, const double *restrict keep, const double *restrict x,
                                      double *restrict level) {
    FOR_RECORDS(i, m) {
        const double old = x[i], fresh = level[i];
        level[i] = keep[i] > 0 ? old : fresh;
    }
}

void levels_refresh(const struct levels *v, const struct level_work *work, double rho,
                    struct rng *rng, int m, const double *x, double *level) {
    rng_fill_uniform(rng, m, work->u);
    if (rho > 0) split_uniforms(m, rho, work->u, work->keep);
    find_levels(v, &v->now, m, NULL, work->u, level);
    if (rho > 0) keep_levels(m, work->keep, x, level);
}

/* Rounding may put u on the upper bound, which belongs to another level. */
static void place_uniforms(const struct levels *v, int m, const int *row, const double *restrict x,
                           double *restrict u) {
    const int width = v->levels + 1;
    for (int i = 0; i < m; ++i) {
        const double *b = v->now.bound + (int)x[i] + (row ? row[i] * width : 0);
        const double high = b[0], low = b[1], inside = low + u[i] * (high - low);
        u[i] = inside < high ? inside : low;
    }
}

void levels_move(const struct levels *v, const struct level_work *work, struct rng *rng, int m,
                 const int *row, const int *row_to, const double *x, double *level) {
    rng_fill_uniform(rng, m, work->u);
    place_uniforms(v, m, row, x, work->u);
    find_levels(v, &v->next, m, row_to, work->u, level);
}
