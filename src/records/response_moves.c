/* Method "augment": moves of the coefficients of a response, with the innovations of the responses
 * held fixed. A surrogate proposes them (records/response_hmc.c, or records/category_hmc.c for one
 * of several levels), the records decide.
 *
 * Cost a move: a pass for the totals at the reference, one for the totals at the proposal, and what
 * keeps it. No allocation.
 */
#include "contract/model_move.h"
#include "records/augment_internal.h"
#include "records/response_hmc.h"

/* Both passes see the same innovations. */
void augment_guide(struct augment *a, const struct response_guide *g, int iteration, int warmup) {
    void *self = a->model.self;
    struct trajectory_seen seen = {
        .iteration = iteration, .warmup = warmup, .begun = a->count.work};
    a->count.work += g->work;
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    const struct rng innovations = *a->rng;
    g->refer(g->self, a->theta_new);
    a->model.move->set_move(self, a->theta_new, a->step.changed);
    (void)augment_moved_energy(a);
    g->correct(g->self, a->total);
    a->count.work += a->cost.pass + augment_move_work(a);

    double gain;
    seen.moved = g->propose(g->self, a->rng, a->theta_new, &gain);
    if (seen.moved) {
        const double threshold = rng_exponential(a->rng);
        const struct rng later = *a->rng;
        *a->rng = innovations;
        a->model.move->set_move(self, a->theta_new, a->step.changed);
        const double fall = augment_energy(a) - augment_moved_energy(a);
        a->count.work += a->cost.pass + augment_move_work(a);
        const double log_ratio = *a->adapt.temper * (fall - gain);
        seen.probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        seen.accepted = -log_ratio < threshold;
        if (seen.accepted) {
            a->count.work += augment_copy_work(a);
            augment_keep_moved(a, &innovations);
            memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        }
        *a->rng = later;
    }
    seen.ended = a->count.work;
    if (iteration < warmup) {
        g->learn(g->self, &seen, a->rng);
    } else {
        a->count.responses_made += 1;
        a->count.responses_accepted += seen.accepted;
        a->count.divergent += g->path->told.divergent;
    }
}

double augment_response_density(struct augment *a, double *q, double *gradient) {
    a->model.class->set(a->model.self, a->theta);
    augment_take_complete(a, 0, a->complete);
    struct response *r = OWN(a, response);
    if (!response_begin(r, a->complete, a->theta, a->rng)) return NAN;
    return response_density(r, q, gradient);
}

/* Needs the complete-data statistic of the covariates. */
static void respond(struct augment *a, const struct round *round) {
    struct response *r = OWN(a, response);
    a->model.class->set(a->model.self, a->theta);
    if (!response_begin(r, a->complete, a->theta, a->rng)) return;
    r->density.temper = *a->adapt.temper;
    const struct response_guide guide = {
        r, response_refer, response_correct, response_propose, response_learn, &r->path, 0};
    augment_guide(a, &guide, round->iteration, round->warmup);
}

static void make(struct augment *a, struct round *round) {
    if (!OWN(a, response)) return;
    if (!a->surrogate) round->least_rounds = LEAST_ROUNDS;
    if (!round->follows && a->surrogate) return;
    const struct response *r = OWN(a, response);
    for (int k = trajectory_count(&r->path, round->iteration, round->warmup); k > 0; --k)
        respond(a, round);
}

static size_t stored(const struct augment *a) {
    const struct response *r = OWN(a, response);
    return r ? response_stored(r) : 0;
}

static void attach(struct augment *a, double *store) { response_attach(OWN(a, response), store); }

const struct move move_response = {
    .phase = MOVE_AFTER, .store = "response", .stored = stored, .attach = attach, .make = make};
