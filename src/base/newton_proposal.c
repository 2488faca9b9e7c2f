/* Newton proposals for regressions given the records (Gamerman 1997, Statistics and Computing
 * 7). From theta, where the target's log density has the gradient g and about minus the second
 * derivatives H,
 *
 *   theta' ~ N(theta + H^-1 g, H^-1),
 *
 * which is the target itself where that is normal; accepted by the Metropolis-Hastings ratio with
 * the same proposal's density from theta' back, so that H may be any function of theta and the
 * records. If H is not positive definite, nothing is proposed, and the reverse proposal has
 * density 0.
 *
 * Cost of a step: O(size^3), plus the caller's g and H.
 */
#include "base/newton_proposal.h"

#include "base/dist.h"
#include "base/linalg.h"
#include "base/memory.h"

/* Of what is proposed, the share that makes it worth its cost; of the shares before, so much is
 * kept from one proposal to the next. */
static const double ENOUGH = 0.2, KEPT = 0.95;

static struct newton_place place_new(int size) {
    const size_t d = (size_t)size;
    return (struct newton_place){.mode = doubles(d), .factor = doubles(d * d)};
}

void newton_attach(struct newton *n, int size, double *state) {
    n->size = size;
    n->share = state;
    n->made = state + 1;
    n->accepted = state + 2;
    n->here = place_new(size);
    n->there = place_new(size);
    n->away = doubles((size_t)size);
}

void newton_start(struct newton *n) { *n->share = *n->made = *n->accepted = 0; }

void newton_aim(struct newton_place *place, int size, const double *at) {
    place->proper = place->log_density > -INFINITY && linalg_cholesky(size, place->factor) == 0;
    if (!place->proper) return;
    linalg_forward(size, place->factor, place->mode);
    linalg_backward(size, place->factor, place->mode);
    for (int j = 0; j < size; ++j) {
        place->mode[j] += at[j];
        if (!isfinite(place->mode[j])) place->proper = 0;
    }
}

void newton_propose(struct newton *n, struct rng *rng, double *to) {
    dist_normal_precision(rng, n->size, n->here.mode, 1, n->here.factor, to);
}

/* log density of the proposal `to`, up to a constant */
static double log_proposal(struct newton *n, const struct newton_place *place, const double *to) {
    const int d = n->size;
    const double *row = place->factor;
    double log_root = 0, square = 0;
    memset(n->away, 0, (size_t)d * sizeof(double));
    for (int i = 0; i < d; ++i, row += d) {
        const double away = to[i] - place->mode[i];
        log_root += log(row[i]);
        for (int j = 0; j <= i; ++j) n->away[j] += row[j] * away;
    }
    for (int j = 0; j < d; ++j) square += n->away[j] * n->away[j];
    return log_root - 0.5 * square;
}

double newton_log_ratio(struct newton *n, const double *at, const double *to) {
    if (!n->there.proper) return -INFINITY;
    return n->there.log_density - n->here.log_density + log_proposal(n, &n->there, at) -
           log_proposal(n, &n->here, to);
}

void newton_tried(struct newton *n, int learning, double log_ratio, int accepted) {
    if (learning) {
        const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        *n->share = KEPT * *n->share + (1 - KEPT) * probability;
    } else {
        *n->made += 1;
        *n->accepted += accepted;
    }
    if (!accepted) return;
    const struct newton_place before = n->here;
    n->here = n->there;
    n->there = before;
}

int newton_serves(const struct newton *n) { return *n->share > ENOUGH; }
