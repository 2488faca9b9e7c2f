/* Method "collapse", tables whose theta is held: counts that follow theta. If noise leaves the
 * counts uncertain, theta given the counts hardly moves; then both move together, with innovations
 * fixed, as records do (records/noncentred_moves.c). Row by row the count of a level, given the
 * counts of the levels before, is binomial; its innovation is the uniform number that gives it by
 * inversion,
 *
 *   count = F^-1(u; left, share),
 *
 * drawn for each move within the interval that gives the current count. Rows of a part follow the
 * counts of the parts before. n is a separate innovation. Under p(theta) p(u) eta(z | s) a move
 * from theta to theta' has the probability of acceptance
 *
 *   p(theta') eta(z | s') / (p(theta) eta(z | s)).
 *
 * A table with exact numbers, which such moves would lose, keeps its counts: then p(counts | theta)
 * is in the ratio.
 *
 * Cost: a binomial distribution function and a quantile for each cell.
 */
#include "base/sticks.h"
#include "contract/model_cells.h"
#include "table/table.h"

#include <Rmath.h>

/* The count that follows, of `to_left` records with share `to`. Tails from the count's own side. */
static double carry_count(struct rng *rng, double count, double left, double share, double to_left,
                          double to) {
    const int upper = count > left * share;
    const double at = left > 0 ? Rf_dbinom(count, left, share, 0) : 1;
    double u = at * rng_uniform(rng);
    if (left > 0)
        u += upper ? Rf_pbinom(count, left, share, 0, 0) : Rf_pbinom(count - 1, left, share, 1, 0);
    return to_left > 0 ? Rf_qbinom(fmin(u, 1), to_left, to, !upper, 0) : 0;
}

static void carry_row(struct rng *rng, int levels, const double *stick, const double *stick_to,
                      const double *count, double n, double n_to, double *out) {
    for (int l = 0; l < levels - 1; ++l) {
        out[l] =
            carry_count(rng, count[l], n, stick_share(stick[l]), n_to, stick_share(stick_to[l]));
        n -= count[l];
        n_to -= out[l];
    }
    out[levels - 1] = n_to;
}

/* The sticks of all rows, part after part: theta itself, or what makes the cells' probabilities. */
static const double *sticks_of(const struct collapse *c, struct table *s, const double *theta,
                               double *out) {
    if (c->model.update) return theta;
    c->model.cells->log_cells(c->model.self, theta, s->carried.log_p);
    for (int k = 0; k < s->cells; ++k) s->carried.log_p[k] = exp(s->carried.log_p[k]);
    sticks_from_probabilities(s->cells, s->carried.log_p, out);
    return out;
}

static double of_row(const struct table *s, const struct table_part *part, const double *count,
                     int row) {
    return count[part->at_row < 0 ? s->n.at : part->at_row + row];
}

static void carry_parts(struct collapse *c, struct table *s, const double *theta_to) {
    double *to = s->carried.count;
    const double *stick = sticks_of(c, s, c->theta, s->carried.stick);
    const double *stick_to = sticks_of(c, s, theta_to, s->carried.stick + s->cells);
    to[s->n.at] = s->count[s->n.at];
    for (int k = 0; k < s->parts; ++k) {
        const struct table_part *part = s->part + k;
        const int L = part->of.levels;
        if (part->at_row >= 0) table_count_rows(s, part, to);
        for (int r = 0; r < part->of.rows; ++r, stick += L - 1, stick_to += L - 1) {
            const int at = part->at_cell + r * L;
            carry_row(c->rng, L, stick, stick_to, s->count + at, of_row(s, part, s->count, r),
                      of_row(s, part, to, r), to + at);
        }
    }
}

void table_carry_create(const struct collapse *c, struct table *s) {
    s->carried.count = doubles((size_t)s->nodes);
    s->carried.total = doubles((size_t)c->noise.size);
    s->carried.stick = doubles(2 * (size_t)s->cells);
    s->carried.log_p = doubles((size_t)s->cells);
}

static double log_given(const struct collapse *c, struct table *s, const double *theta) {
    double sum = 0;
    c->model.cells->log_cells(c->model.self, theta, s->carried.log_p);
    for (int k = 0; k < s->cells; ++k)
        if (s->count[k] > 0) sum += s->count[k] * s->carried.log_p[k];
    return sum;
}

double table_carry(struct collapse *c, const double *theta_to) {
    struct table *s = c->self;
    if (s->exact.groups > 0) return log_given(c, s, theta_to) - log_given(c, s, c->theta);
    carry_parts(c, s, theta_to);
    memset(s->carried.total, 0, (size_t)c->noise.size * sizeof(double));
    for (int k = 0; k < s->nodes; ++k)
        for (int e = s->queries.first[k]; e < s->queries.first[k + 1]; ++e)
            s->carried.total[s->queries.component[e]] +=
                s->queries.coefficient[e] * s->carried.count[k];
    double gain = 0;
    for (int k = 0; k < c->noise.noisy; ++k)
        gain += noise_energy_of(&c->noise, k, s->total[k]) -
                noise_energy_of(&c->noise, k, s->carried.total[k]);
    return gain;
}

void table_keep_carried(struct collapse *c) {
    struct table *s = c->self;
    if (s->exact.groups > 0) return;
    memcpy(s->count, s->carried.count, (size_t)s->nodes * sizeof(double));
    memcpy(s->total, s->carried.total, (size_t)c->noise.size * sizeof(double));
}
