/* Model "survival" with a beta process: hazards for which the data do not determine whether all or
 * none have the event.
 *
 * Under the prior, the scale of a hazard's coordinate depends on a_0, of the order of
 * exp(exp(a_0)): gradients and random walks cannot follow a_0 there, and miss its tails. A shift
 * can. It moves a_0 to a'_0 and draws the open hazards from the prior at a'_0 given the data, with
 * the likelihood replaced by a conjugate one (l, model/hazard_process.h). With L the likelihood,
 * p(l | a) the integral of l over the open hazards and p(h | a) the density of the others, which
 * stay, it is accepted with the probability
 *
 *   p(a'_0) p(l | a'_0) p(h | a'_0) (L/l)'
 *   --------------------------------------,
 *   p(a_0)  p(l | a_0)  p(h | a_0)  (L/l)
 *
 * L/l at the hazards here and there. There is no Jacobian: hazards are drawn, in their
 * coordinates, in both directions. In discrete time without coefficients L/l is constant, all
 * hazards are open, and a_0 moves with them integrated out. Otherwise a hazard is open if there
 * are few events or few who stay; l has the tails of L or heavier ones, so that weights are
 * bounded. If a_0 is declared, only open hazards are drawn.
 *
 * A hazard is far if it is open and within about exp(-FAR) of 0 or 1, and then so is a_0.
 * Moves by gradients hold far coordinates fixed, and reject moves that would make others far: only
 * shifts move between the two regions.
 *
 * Cost of a shift: seven times the density of the cells, and ten beta functions for each hazard.
 */
#include "model/survival_cells.h"

/* Hazards with as many events and as many who stay are not open. */
static const double HELD = 10;

static const double FAR = 10;

void survival_find_open(struct survival *s) {
    const int all = s->baseline == DISCRETE && s->coefficients == s->intercept;
    for (int at = 0; at < s->process.rows * s->intervals; ++at) {
        double events = 0, stay = 0;
        for (int x = 0; x < s->groups; ++x) {
            if (s->stratum_of[x] != at / s->intervals) continue;
            events += s->counts.events[x * s->intervals + at % s->intervals];
            stay += s->counts.stay[x * s->intervals + at % s->intervals];
        }
        s->place[at].open = all || events < HELD || stay < HELD;
    }
}

/* log(L/l) of an interval of a stratum. */
static double find_gap(struct survival *s, const double *theta, int at, double coordinate) {
    const int j = at % s->intervals;
    const struct growth d = hazard_growth(&s->process, j, coordinate);
    double log_density = -hazard_log_likelihood(&s->process, j, coordinate, s->place[at].data);
    for (int x = 0; x < s->groups; ++x) {
        if (s->stratum_of[x] != at / s->intervals) continue;
        const int cell = x * s->intervals + j;
        const double count[3] = {s->counts.events[cell], s->counts.censored[cell],
                                 s->counts.stay[cell]};
        struct leaving p;
        survival_leave(s, s->eta[x] + d.log, survival_censoring(s, theta, x)[j], &p);
        for (int w = 0; w < 3; ++w)
            if (count[w] > 0) log_density += count[w] * p.log_p[w];
    }
    return log_density;
}

static struct growth_data data_of(const struct survival *s, int at) {
    struct growth_data data = {0, 0};
    for (int x = 0; x < s->groups; ++x) {
        if (s->stratum_of[x] != at / s->intervals) continue;
        const int cell = x * s->intervals + at % s->intervals;
        const double later = s->baseline == DISCRETE ? s->counts.censored[cell] : 0;
        data.events += s->counts.events[cell];
        data.exposure += exp(s->eta[x]) * (s->counts.stay[cell] + later);
    }
    return data;
}

/* Draws each open hazard where a_0 is. */
static void renew_hazards(struct survival *s, struct rng *rng, double *theta) {
    const double level = survival_level(s, theta);
    for (int at = 0; at < s->process.rows * s->intervals; ++at) {
        struct place *of = s->place + at;
        if (!of->open) continue;
        double *now = theta + s->at_base + at;
        of->data = data_of(s, at);
        of->gap = find_gap(s, theta, at, *now);
        const double to = hazard_draw_given(&s->process, rng, at % s->intervals, level, of->data);
        const double gap = find_gap(s, theta, at, to);
        if (!(gap - of->gap > -rng_exponential(rng))) continue;
        *now = to;
        of->gap = gap;
    }
}

/* Of the hazard at a place, as a_0 goes from one to the other. */
static double shift_hazard(struct survival *s, struct rng *rng, int at, double from, double to,
                           const double *theta) {
    const struct hazard_process *process = &s->process;
    const int j = at % s->intervals;
    const double now = theta[s->at_base + at];
    struct place *of = s->place + at;
    if (!of->open)
        return hazard_log_increment(process, j, to, now) -
               hazard_log_increment(process, j, from, now);
    of->to = hazard_draw_given(process, rng, j, to, of->data);
    of->gap_to = find_gap(s, theta, at, of->to);
    return hazard_log_marginal(process, j, to, of->data) -
           hazard_log_marginal(process, j, from, of->data) + of->gap_to - of->gap;
}

static void shift_level(struct survival *s, struct rng *rng, double width, double *theta) {
    const double from = theta[0], to = from + width * rng_normal(rng);
    const double z = (from - s->prior.mean[0]) / s->prior.sd[0],
                 z_to = (to - s->prior.mean[0]) / s->prior.sd[0];
    const int places = s->process.rows * s->intervals;
    double log_ratio = 0.5 * (z * z - z_to * z_to);
    for (int at = 0; at < places; ++at) log_ratio += shift_hazard(s, rng, at, from, to, theta);
    if (!(log_ratio > -rng_exponential(rng))) return;
    theta[0] = to;
    for (int at = 0; at < places; ++at) {
        if (!s->place[at].open) continue;
        theta[s->at_base + at] = s->place[at].to;
        s->place[at].gap = s->place[at].gap_to;
    }
}

void survival_shift(void *self, struct rng *rng, double *theta) {
    static const double widths[] = {2, 0.5, 0.1, 0.02, 0.004}; /* in sd of the prior */
    struct survival *s = self;
    if (!s->process.is_beta) return;
    survival_predict(s, theta);
    renew_hazards(s, rng, theta);
    for (int k = 0; k < 5 && s->intercept; ++k)
        shift_level(s, rng, widths[k] * s->prior.sd[0], theta);
}

int survival_hold(void *self, const double *theta, unsigned char *held) {
    const struct survival *s = self;
    int any = 0;
    memset(held, 0, (size_t)s->parameters);
    if (!s->process.is_beta) return 0;
    for (int at = 0; at < s->process.rows * s->intervals; ++at) {
        if (!s->place[at].open) continue;
        const double coordinate = theta[s->at_base + at];
        const struct growth d = hazard_growth(&s->process, at % s->intervals, coordinate);
        const int far = d.log < -FAR || d.size > FAR;
        held[s->at_base + at] = (unsigned char)far;
        any |= far;
    }
    if (any && s->intercept) held[0] = 1;
    return any;
}
