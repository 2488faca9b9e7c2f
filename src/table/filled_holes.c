/* Method "collapse", tables: noise with holes, as random factors have that are never close to 1.
 * Each total may be on either side of its hole, and where margins are released that share cells, no
 * single transfer leads from one possible combination of sides to another.
 *
 * So transfers sample from a density f that is the target eta outside holes and positive in them: a
 * component in a hole has the greatest density of its noise times exp(-fill). An iteration counts
 * only the transfers that end outside all holes, and ends with one. The states at these times are a
 * Markov chain with the distribution f given that the state is outside all holes (the chain watched
 * on a set: Levin & Peres 2017, section 13.2), and that is the target, whatever the fill.
 *
 * Where theta is given it hardly changes between two transfers, and given it there may be no table
 * outside. There rounds of transfers and a move of theta are what is watched. If theta is
 * another's, holes are not filled.
 *
 * Warmup raises the fill where fewer than OUTSIDE of all transfers end outside, and lowers it where
 * more do.
 *
 * An iteration that does not find its way out ends in a hole, which R refuses after warmup.
 *
 * Invariant: `in` counts the components that are in a hole. Cost: 1 / OUTSIDE transfers for one.
 */
#include "table/table.h"

/* energy of noise whose density is 0, at least */
static const double IMPOSSIBLE = 1e8;

/* points at which the least energy of a component is looked for */
enum { POINTS = 256 };

/* the share of transfers that should end outside holes; and by how much the fill changes, at most,
 * in an iteration */
static const double OUTSIDE = 0.2, STEP = 0.2;

/* the most transfers for one that ends outside, in warmup; and for all of an iteration after it */
static const double MOST_LEARNING = 10, MOST_TRIES = 1e6;

int table_holes_read(const struct fields *fields, const struct collapse *c, struct table *s) {
    struct table_holes *holes = &s->holes;
    const int size = c->noise.size;
    if (fields_length(fields, "hole_lower") == 0) return PLUGIN_OK;
    holes->lower = fields_vector(fields, "hole_lower", size);
    holes->upper = fields_vector(fields, "hole_upper", size);
    if (!holes->lower || !holes->upper) return PLUGIN_BAD_FIELDS;
    holes->is_in = plugin_memory((size_t)size, 1);
    holes->least = doubles((size_t)size);
    for (int j = 0; j < size; ++j) {
        const double lower = holes->lower[j], width = holes->upper[j] - lower;
        if (!(width > 0)) continue;
        holes->least[j] = INFINITY;
        for (int k = 0; k < POINTS; ++k)
            holes->least[j] =
                fmin(holes->least[j], noise_energy_of(&c->noise, j, lower + width * k / POINTS));
    }
    return PLUGIN_OK;
}

double table_energy(const struct collapse *c, const struct table *s, int j, double total) {
    const struct table_holes *holes = &s->holes;
    const double energy = noise_energy_of(&c->noise, j, total);
    if (!holes->lower || energy < IMPOSSIBLE) return energy;
    const int inside = total > holes->lower[j] && total < holes->upper[j];
    return inside ? holes->least[j] + *holes->fill : energy;
}

static void find(const struct collapse *c, struct table *s, int j) {
    struct table_holes *holes = &s->holes;
    if (!(holes->lower[j] < holes->upper[j])) return;
    const int is_in = noise_energy_of(&c->noise, j, s->total[j]) >= IMPOSSIBLE;
    holes->in += is_in - holes->is_in[j];
    holes->is_in[j] = (unsigned char)is_in;
}

void table_holes_find(const struct collapse *c, struct table *s) {
    if (!s->holes.lower) return;
    for (int j = 0; j < c->noise.size; ++j) find(c, s, j);
}

void table_holes_follow(const struct collapse *c, struct table *s) {
    if (!s->holes.lower) return;
    for (int k = 0; k < s->along.components; ++k) find(c, s, s->along.component[k]);
}

/* Where no table is possible all transfers end in a hole: R says so at the end of the run, which is
 * not to take forever. */
double table_holes_tries(const struct table *s, int count, int learning) {
    return learning ? MOST_LEARNING * count + 100 : s->holes.lost ? 0 : MOST_TRIES;
}

/* Where none ended outside, a higher fill would only lock the others in. */
void table_holes_learn(struct table *s) {
    struct table_holes *holes = &s->holes;
    if (!holes->lower) return;
    const double share = holes->outside / fmax(holes->tries, 1);
    *holes->fill = fmax(0, *holes->fill + STEP * (share > 0 ? 1 - share / OUTSIDE : -1));
}
