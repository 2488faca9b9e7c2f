/* Method "collapse", tables: noise with holes, as random factors have that are never close to 1.
 * Each total may be on either side of its hole, and where margins are released that share cells, no
 * single transfer leads from one possible combination of sides to another.
 *
 * So transfers sample from a density f that is the target eta outside holes and positive in them: a
 * component in a hole has the greatest density of its noise times exp(-fill). An iteration counts
 * only the transfers that end outside all holes, and ends with one. The states at these times are a
 * Markov chain themselves. It visits each state outside holes as often as the whole chain does, in
 * proportion to f, which is the target there, whatever the fill.
 *
 * Where theta is given it hardly changes between two transfers, and given it there may be no table
 * outside. There rounds of transfers and a move of theta are what is watched. If theta is
 * another's, holes are not filled.
 *
 * Warmup raises the fill where fewer than OUTSIDE of all transfers end outside, and lowers it where
 * more do. It is at most about the logarithm of the number of components, so that any of them can
 * still cross.
 *
 * An iteration that does not find its way out ends in a hole, which R refuses after warmup.
 *
 * Invariant: `in` counts the components that are in a hole. Cost: 1 / OUTSIDE transfers for one.
 */
#include "contract/tabulated.h"
#include "table/table.h"

/* energy of noise whose density is 0, at least */
static const double IMPOSSIBLE = TABULATED_IMPOSSIBLE / 2;

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
    holes->least = fields_vector(fields, "hole_energy", size);
    if (!holes->lower || !holes->upper || !holes->least) return PLUGIN_BAD_FIELDS;
    holes->is_in = plugin_memory((size_t)size, 1);
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

/* Where none ended outside, fewer and fewer components are in holes as the fill rises, until the
 * others are locked in; then it begins at 0 again. */
void table_holes_learn(struct table *s, int size) {
    struct table_holes *holes = &s->holes;
    if (!holes->lower) return;
    const double share = holes->outside / fmax(holes->tries, 1), most = log(size) + 3;
    const double fill = *holes->fill + STEP * (1 - share / OUTSIDE);
    *holes->fill = fill > most && share == 0 ? 0 : fmin(fmax(fill, 0), most);
}
