/* What the sampler learns in warmup, and only there.
 *
 * Shape of the non-centred proposals: the covariance of theta over a window,
 * shrunk towards its diagonal, so that a short or unconverged window gives a
 * usable shape. Windows double in length, as in Stan's warmup. Kinds of proposal:
 *   PASS_WALK   a normal step of that shape. Its scale is learned by Robbins & Monro
 *          on log(scale), towards the acceptance rate TARGET that suits a random
 *          walk in a few dimensions (Roberts, Gelman & Gilks 1997; Andrieu &
 *          Thoms 2008);
 *   PASS_LEAP   an independent draw from a multivariate t about the window's mean,
 *          heavier in the tails than a normal law (Tierney 1994): where noise
 *          dominates, the records' innovations say little about theta, and one
 *          leap does what dozens of steps do;
 *   PASS_GROUP_WALK, PASS_GROUP_LEAP  the same in one of the groups of coordinates that
 *          the model names, in turn: where there are many coordinates, or the
 *          groups have little to do with each other.
 *
 * Numbers of passes: let S be the covariance of theta, P_k the mean product of a
 * jump of kind k with itself, Q that of a sweep with its draw of theta. In a
 * direction v of the sphered space, n_k passes and a sweep go the share
 * 1 - exp(-l), l = v' S^-1/2 (Q + sum n_k P_k) S^-1/2 v / 2, of the way to an
 * independent draw. Taking for v the principal directions of Q, and of them the
 * slowest, the n_k are added one by one so as to gain most effective draws per
 * work, and the best numbers met are kept. Work is counted (method_augment.c),
 * never clocked, so that a seed fixes the choice. Few proposals are
 * made in a window: P_k is shrunk towards the same rate in every direction, and towards
 * none.
 *
 * Price of learning: what passes may cost in warmup grows with the gain that may be
 * hoped for, by the rates seen and, as long as few proposals were made, by those of
 * well-tuned ones. So where sweeps alone do well little is spent. After warmup
 * there are as many as gained most in its last window, if that was enough.
 *
 * Parts: where noise dominates, theta hardly depends on the records' innovations,
 * and a sweep may be spread over several iterations. Q also tells the share of the
 * variance of theta, f = v' S^-1/2 Q S^-1/2 v / 2, that is the innovations': the
 * sampler that draws theta given the records and the one that draws it given the
 * innovations complement each other. Renewed in p parts, that share lasts for p
 * iterations, and the time to an independent draw grows by f (p - 1).
 *
 * Refresh: a sweep may keep the share rho of each record's innovation. Warmup
 * tries REFRESHES in turn and sees how far each moves the complete-data
 * statistic, c: tau sweeps to an independent value, on average over its components.
 * theta forgets all but a share of itself in an iteration, and that share lasts as
 * long as c: 1 + 2 share tau iterations for an effective draw. A refresh is mixed
 * with independent proposals if it shortens that.
 *
 * Annealing: a start drawn from a vague prior can lie so far from the release
 * that no record moves. The noise density enters with an exponent that rises
 * from about 1 / energy to 1 over the first part of warmup.
 */
#include "adapt.h"

#include "linalg.h"

const double adapt_refresh[REFRESHES] = {0, 0.5, 0.8, 0.95, 0.99, 0.998};

static const double TARGET = 0.30;

/* Degrees of freedom of a leap: twice the number of exponential variates whose
 * sum is its chi-square. */
enum { LEAP_EXPONENTIALS = 4 };

/* Passes of an iteration of warmup may cost so many sweeps, on average: before
 * anything is known, while annealing, and at most; in between that share of the
 * gain that may be hoped for. Looking further may cost the share EXPLORE of the work
 * of the sweeps. */
static const double FIRST_PACE = 0.75, ANNEALING_PACE = 0.2, MOST_PACE = 1, HOPE = 0.5,
                    EXPLORE = 0.1;

/* A jump of well-tuned proposals of d coordinates: GOOD_RATE / d; it counts as much
 * as GOOD_PROPOSALS that were made. */
static const double GOOD_RATE = 0.3, GOOD_PROPOSALS = 50;

/* So many jumps are taken for none. */
static const double DOUBT = 2;

/* Passes, and sweeps in parts, have to promise so many times the effective draws. */
static const double PASSES_MARGIN = 1.05, PARTS_MARGIN = 1.1;

/* Iterations of annealing for a factor e of the energy. */
static const double COOLING_PACE = 25;

/* A refresh has to promise so many times the effective draws: it is known by few
 * tries. */
static const double REFRESH_MARGIN = 2;

enum {
    FIRST_PASSES = 8,
    COOLING_STEPS = 350, /* at most, where there are passes to be paid */
    MOST_PASSES = 40,
    FIRST_WINDOW = 25,
    ENOUGH_TRIES = 8,    /* of a refresh, to believe it better */
    LONG_WINDOW = 200,   /* a shorter one is believed less */
    LOOK = 4,            /* every so many iterations of warmup look further */
    MOST_PRINCIPAL = 100 /* beyond it directions are not turned */
};

/* single numbers, and groups of them, in the store */
enum { SCALARS = 16 };

size_t adapt_size(const struct adapt_shape *shape) {
    const size_t d = (size_t)shape->dim, c = (size_t)shape->complete, g = (size_t)shape->groups;
    return SCALARS + 4 * PASS_KINDS + 1 + g + REFRESHES * (1 + c) + 2 * c + 2 * d +
           (4 + PASS_KINDS) * d * d + (PASS_KINDS + 4) * d + 3 * d * d;
}

static double *take(double **store, size_t length) {
    double *at = *store;
    *store += length;
    return at;
}

void adapt_attach(struct adapt *adapt, const struct adapt_shape *shape, double *store) {
    const size_t d = (size_t)shape->dim, c = (size_t)shape->complete, g = (size_t)shape->groups;
    adapt->shape = *shape;
    adapt->store = store;
    adapt->passes = take(&store, PASS_KINDS);
    double **const scalar[] = {&adapt->refresh,  &adapt->share, &adapt->parts,      &adapt->temper,
                               &adapt->cooling,  &adapt->given, &adapt->has_centre, &adapt->swept,
                               &adapt->explored, &adapt->trial, &adapt->pace,       &adapt->credit};
    for (size_t i = 0; i < sizeof scalar / sizeof *scalar; ++i) *scalar[i] = take(&store, 1);
    adapt->price = take(&store, PASS_KINDS);
    adapt->turn = take(&store, 2);
    adapt->log_scale = take(&store, 1 + g);
    adapt->centre = take(&store, d);
    adapt->chol = take(&store, d * d);
    adapt->group_chol = take(&store, d * d);
    adapt->count = take(&store, 1);
    adapt->looks = take(&store, 1);
    adapt->proposals = take(&store, PASS_KINDS);
    adapt->accepts = take(&store, PASS_KINDS);
    adapt->mean = take(&store, d);
    adapt->scatter = take(&store, d * d);
    adapt->jump_sweep = take(&store, d * d);
    adapt->jump = take(&store, PASS_KINDS * d * d);
    adapt->tries = take(&store, REFRESHES);
    adapt->moved = take(&store, REFRESHES * c);
    adapt->complete_mean = take(&store, c);
    adapt->complete_scatter = take(&store, c);
    adapt->scratch = store; /* (PASS_KINDS + 4) d + 3 d d */
}

static void open_window(struct adapt *adapt) {
    memset(adapt->count, 0, (size_t)(adapt->scratch - adapt->count) * sizeof(double));
}

static double neutral_scale(int dim) { return dim > 0 ? log(2.38 / sqrt((double)dim)) : 0; }

static int group_size(const struct adapt_shape *shape, int group) {
    int size = 0;
    for (int j = 0; j < shape->dim; ++j) size += shape->group[j] == group;
    return size;
}

static void reset_scales(struct adapt *adapt) {
    adapt->log_scale[0] = neutral_scale(adapt->shape.dim);
    for (int g = 0; g < adapt->shape.groups; ++g)
        adapt->log_scale[1 + g] = neutral_scale(group_size(&adapt->shape, g));
}

void adapt_start(struct adapt *adapt, const double *sd, double passes) {
    const int d = adapt->shape.dim;
    memset(adapt->store, 0, adapt_size(&adapt->shape) * sizeof(double));
    *adapt->given = passes;
    adapt->passes[PASS_WALK] = d == 0 ? 0 : passes >= 0 ? passes : FIRST_PASSES;
    *adapt->temper = *adapt->parts = 1;
    *adapt->pace = FIRST_PACE;
    reset_scales(adapt);
    for (int j = 0; j < d; ++j) {
        adapt->chol[(size_t)j * d + j] = sd[j];
        adapt->group_chol[(size_t)j * d + j] = sd[j];
    }
}

/* of all records */
static double sweep_cost(const struct adapt *adapt) {
    return adapt->costs.visit + adapt->costs.complete;
}

void adapt_anneal(struct adapt *adapt, double energy, double values, int warmup) {
    int steps = warmup / 3;
    if (*adapt->given != 0 && steps > COOLING_STEPS) steps = COOLING_STEPS;
    if (steps < 1 || !(energy > values)) return;
    const double start = values / energy, factor = -log(start > 1e-12 ? start : 1e-12);
    if (*adapt->given != 0 && steps > COOLING_PACE * factor)
        steps = (int)ceil(COOLING_PACE * factor);
    *adapt->temper = exp(-factor);
    *adapt->cooling = factor / steps;
}

/* what was seen of another target is forgotten */
void adapt_cool(struct adapt *adapt) {
    if (*adapt->temper >= 1) return;
    *adapt->temper *= exp(*adapt->cooling);
    if (*adapt->temper < 1 - 1e-9) return;
    *adapt->temper = 1;
    open_window(adapt);
}

static int last_window(int warmup) { return warmup - warmup / 5; }

/* What may be spent on looking further now. */
static double allowance(const struct adapt *adapt) {
    return EXPLORE * *adapt->swept - *adapt->explored;
}

int adapt_looks(const struct adapt *adapt, int at) {
    return at % LOOK == 0 && allowance(adapt) >= 0;
}

int adapt_tries_refresh(const struct adapt *adapt, int at) {
    return at % LOOK == LOOK / 2 && allowance(adapt) >= 0;
}

/* In warmup passes wait until their cost has been earned. */
static void pace_passes(struct adapt *adapt, int count[PASS_KINDS]) {
    const double most = *adapt->temper < 1 ? ANNEALING_PACE : MOST_PACE;
    double cost = 0;
    for (int k = 0; k < PASS_KINDS; ++k) {
        if (adapt->price[k] == 0 && count[k] > 1) count[k] = 1; /* not known yet */
        cost += count[k] * adapt->price[k];
    }
    *adapt->credit += (*adapt->pace < most ? *adapt->pace : most) * sweep_cost(adapt);
    if (*adapt->credit < cost) {
        memset(count, 0, PASS_KINDS * sizeof *count);
        return;
    }
    *adapt->credit = cost > 0 ? *adapt->credit - cost : 0;
}

void adapt_plan(struct adapt *adapt, int learning, int looking, int count[PASS_KINDS]) {
    for (int k = 0; k < PASS_KINDS; ++k) count[k] = (int)adapt->passes[k];
    if (learning && *adapt->given < 0) pace_passes(adapt, count);
    if (!looking || adapt->shape.dim == 0) return;
    const int groups = adapt->shape.groups > 1, leaps = *adapt->has_centre > 0;
    const int least[PASS_KINDS] = {1, leaps, groups, groups && leaps};
    for (int k = 0; k < PASS_KINDS; ++k) {
        if (count[k] >= least[k]) continue;
        *adapt->explored += (least[k] - count[k]) * adapt->price[k];
        count[k] = least[k];
    }
}

int adapt_choose_refresh(const struct adapt *adapt, int at, int trying, struct rng *rng) {
    if (trying) return at / LOOK % REFRESHES;
    const int chosen = (int)*adapt->refresh;
    return chosen == 0 || rng_uniform(rng) >= *adapt->share ? 0 : chosen;
}

/* ---- proposals ------------------------------------------------------------- */

/* coordinates lo, ..., hi - 1 */
struct range {
    int lo, hi;
};

static struct range range_of(const struct adapt_shape *shape, int group) {
    struct range range = {0, shape->dim};
    if (group < 0) return range;
    while (shape->group[range.lo] != group) ++range.lo;
    range.hi = range.lo + group_size(shape, group);
    return range;
}

/* out = scale * chol * normal in that range, 0 elsewhere */
static void shaped_normal(struct adapt *adapt, const double *chol, struct range range, double scale,
                          struct rng *rng, double *out) {
    const int d = adapt->shape.dim;
    double *normal = adapt->scratch;
    rng_fill_normal(rng, range.hi - range.lo, normal);
    for (int i = 0; i < d; ++i) {
        const double *row = chol + (size_t)i * d + range.lo;
        const int inside = i >= range.lo && i < range.hi;
        double sum = 0;
        for (int j = 0; inside && j <= i - range.lo; ++j) sum += row[j] * normal[j];
        out[i] = scale * sum;
    }
}

/* log density of a leap that far from the centre, up to a constant; `away` is
 * destroyed in the range */
static double leap_density(const struct adapt *adapt, const double *chol, struct range range,
                           double *away) {
    const int freedom = 2 * LEAP_EXPONENTIALS;
    double square = 0;
    for (int i = range.lo; i < range.hi; ++i) {
        const double *row = chol + (size_t)i * adapt->shape.dim;
        double sum = away[i];
        for (int j = range.lo; j < i; ++j) sum -= row[j] * away[j];
        away[i] = sum / row[i];
        square += away[i] * away[i];
    }
    return -0.5 * (freedom + range.hi - range.lo) * log1p(square / freedom);
}

static double leap(struct adapt *adapt, const double *chol, struct range range, const double *theta,
                   struct rng *rng, double *step) {
    double sum = 0, exponential[LEAP_EXPONENTIALS];
    shaped_normal(adapt, chol, range, 1, rng, step);
    rng_fill_exponential(rng, LEAP_EXPONENTIALS, exponential);
    for (int i = 0; i < LEAP_EXPONENTIALS; ++i) sum += exponential[i];
    const double stretch = sqrt(LEAP_EXPONENTIALS / sum);
    double *away = adapt->scratch;
    for (int j = range.lo; j < range.hi; ++j) away[j] = step[j] *= stretch;
    const double forth = leap_density(adapt, chol, range, away);
    for (int j = range.lo; j < range.hi; ++j) step[j] -= away[j] = theta[j] - adapt->centre[j];
    return leap_density(adapt, chol, range, away) - forth;
}

double adapt_propose(struct adapt *adapt, enum pass_kind kind, const double *theta, struct rng *rng,
                     double *step) {
    const int leaps = kind == PASS_LEAP || kind == PASS_GROUP_LEAP;
    const double *chol = adapt->chol;
    int group = -1;
    if (kind == PASS_GROUP_WALK || kind == PASS_GROUP_LEAP) {
        double *turn = adapt->turn + leaps;
        chol = adapt->group_chol;
        group = (int)*turn;
        *turn = (group + 1) % adapt->shape.groups;
    }
    const struct range range = range_of(&adapt->shape, group);
    if (leaps) return leap(adapt, chol, range, theta, rng, step);
    shaped_normal(adapt, chol, range, exp(adapt->log_scale[1 + group]), rng, step);
    return 0;
}

/* ---- what a window sees ------------------------------------------------------ */

/* lower triangle of m += weight v v' */
static void add_product(int d, double *m, double weight, const double *v) {
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) m[(size_t)i * d + j] += weight * v[i] * v[j];
}

/* A jump counts by its probability, accepted or not: that is its mean, with less
 * noise. The gain of a scale falls within a window and starts afresh with the next
 * shape; it is large at first, so that a scale wrong by orders of magnitude is
 * found fast. */
void adapt_saw_pass(struct adapt *adapt, enum pass_kind kind, double probability,
                    const double *step, double work) {
    const int d = adapt->shape.dim, groups = adapt->shape.groups;
    double tries = adapt->proposals[kind] += 1;
    adapt->accepts[kind] += probability;
    adapt->price[kind] += (work - adapt->price[kind]) * (adapt->price[kind] > 0 ? 0.1 : 1);
    add_product(d, adapt->jump + (size_t)kind * d * d, probability, step);
    if (kind == PASS_LEAP || kind == PASS_GROUP_LEAP) return;
    if (kind == PASS_GROUP_WALK) tries = ceil(tries / groups);
    const int turned = kind == PASS_WALK ? 0 : 1 + ((int)*adapt->turn + groups - 1) % groups;
    adapt->log_scale[turned] += 2 / (1 + pow(tries, 0.6)) * (probability - TARGET);
}

/* Welford's update of a running mean; returns the product that the running sum
 * of squares grows by. */
static double see(double value, double count, double *mean) {
    const double off = value - *mean;
    *mean += off / count;
    return off * (value - *mean);
}

void adapt_saw_sweep(struct adapt *adapt, const double *before, const double *after, double work) {
    const int d = adapt->shape.dim;
    double *off = adapt->scratch;
    *adapt->count += 1;
    *adapt->swept += work;
    *adapt->trial += *adapt->temper == 1;
    for (int i = 0; i < d; ++i) off[i] = after[i] - before[i];
    add_product(d, adapt->jump_sweep, 1, off);
    for (int i = 0; i < d; ++i) off[i] = after[i] - adapt->mean[i];
    for (int i = 0; i < d; ++i) adapt->mean[i] += off[i] / *adapt->count;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            adapt->scatter[(size_t)i * d + j] += off[i] * (after[j] - adapt->mean[j]);
}

void adapt_saw_refresh(struct adapt *adapt, int refresh, const double *before,
                       const double *after) {
    const int size = adapt->shape.complete;
    double *moved = adapt->moved + (size_t)refresh * size;
    adapt->tries[refresh] += 1;
    *adapt->looks += 1;
    *adapt->explored += adapt->costs.look + (refresh > 0 ? adapt->costs.refresh : 0);
    for (int j = 0; j < size; ++j) {
        const double jump = after[j] - before[j];
        moved[j] += jump * jump;
        adapt->complete_scatter[j] += see(after[j], *adapt->looks, adapt->complete_mean + j);
    }
}

enum window adapt_window(int at, int warmup) {
    const int last = last_window(warmup);
    int length = FIRST_WINDOW, end = length;
    while (end + 2 * length <= last) {
        if (at + 1 == end) return WINDOW_ENDS;
        length *= 2;
        end += length;
    }
    return at + 1 == last ? LAST_WINDOW_ENDS : WINDOW_GOES_ON;
}

enum window adapt_window_after(const struct adapt *adapt, int at, int warmup) {
    const int annealed = *adapt->temper < 1 ? 0 : at + 1 - (int)*adapt->trial;
    return adapt_window(at - annealed, warmup - annealed);
}

/* ---- what is learned from it ------------------------------------------------- */

/* m = L^-1 M L^-T for the symmetric M whose lower triangle is given, over 2n */
static void sphere(int d, const double *chol, const double *lower, double n, double *m) {
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            m[(size_t)i * d + j] = m[(size_t)j * d + i] = lower[(size_t)i * d + j] / (2 * n);
    for (int i = 0; i < d; ++i) linalg_forward(d, chol, m + (size_t)i * d);
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < i; ++j) {
            const double swap = m[(size_t)i * d + j];
            m[(size_t)i * d + j] = m[(size_t)j * d + i];
            m[(size_t)j * d + i] = swap;
        }
    for (int i = 0; i < d; ++i) linalg_forward(d, chol, m + (size_t)i * d);
}

/* v_i' M v_i for the rows of v; NULL: the diagonal */
static void rates_along(int d, const double *m, const double *v, double *rate) {
    for (int i = 0; i < d; ++i, v = v ? v + d : v) {
        if (!v) {
            rate[i] = m[(size_t)i * d + i];
            continue;
        }
        double sum = 0;
        for (int k = 0; k < d; ++k)
            for (int l = 0; l < d; ++l) sum += v[k] * m[(size_t)k * d + l] * v[l];
        rate[i] = sum;
    }
}

static void shrink_rates(int d, double accepts, double *rate) {
    double mean = 0;
    for (int i = 0; i < d; ++i) mean += rate[i] / d;
    const double own = accepts / (accepts + 10), trust = accepts / (accepts + DOUBT);
    for (int i = 0; i < d; ++i) rate[i] = trust * (own * rate[i] + (1 - own) * mean);
}

/* A schedule of passes and parts, and what it promises: effective draws per work
 * where theta moves least. */
struct schedule {
    int count[PASS_KINDS], parts;
    double gain;
};

/* `more` may be NULL: rates of one more pass */
static double gain_of(int d, const double *level, const double *more, const double *sweep,
                      int parts, double work) {
    double longest = 0;
    for (int i = 0; i < d; ++i) {
        const double l = level[i] + (more ? more[i] : 0);
        const double time = 1 / tanh(0.5 * (l > 0 ? l : 0)) + sweep[i] * (parts - 1);
        longest = time > longest ? time : longest;
    }
    return 1 / (longest * work);
}

/* How far a sweep moves theta in each principal direction of its jumps, and how
 * far a pass of each kind does. `chol` factors the covariance of theta. */
static void learn_rates(struct adapt *adapt, const double *chol, double *level, double *rate) {
    const int d = adapt->shape.dim;
    double *v = rate + (size_t)(PASS_KINDS + 3) * d, *m = v + (size_t)d * d;
    sphere(d, chol, adapt->jump_sweep, *adapt->count, v);
    for (int i = 0; i < d; ++i) level[i] = v[(size_t)i * d + i];
    const int turned =
        d <= MOST_PRINCIPAL && linalg_principal(d, v, level, rate + (size_t)PASS_KINDS * d) == 0;
    for (int k = 0; k < PASS_KINDS; ++k) {
        double *along = rate + (size_t)k * d;
        memset(along, 0, (size_t)d * sizeof(double));
        if (adapt->proposals[k] == 0) continue;
        sphere(d, chol, adapt->jump + (size_t)k * d * d, adapt->proposals[k], m);
        rates_along(d, m, turned ? v : NULL, along);
        shrink_rates(d, adapt->accepts[k], along);
    }
}

/* The passes to make with a sweep in so many parts; `level` is destroyed. */
static struct schedule find_schedule(const struct adapt *adapt, const double *sweep,
                                     const double *rate, int parts, double *level) {
    const int d = adapt->shape.dim, given = (int)*adapt->given;
    struct schedule best = {{0}, parts, 0}, now = best;
    double work = adapt->costs.visit / parts + adapt->costs.complete;
    for (int i = 0; i < d; ++i) level[i] = sweep[i] / parts;
    best.gain = gain_of(d, level, NULL, sweep, parts, work);
    for (int total = 1; total <= (given >= 0 ? given : MOST_PASSES); ++total) {
        int next = -1;
        double highest = -1;
        for (int k = 0; k < PASS_KINDS; ++k) {
            if (adapt->proposals[k] == 0) continue;
            const double gain =
                gain_of(d, level, rate + (size_t)k * d, sweep, parts, work + adapt->price[k]);
            if (gain <= highest) continue;
            highest = gain;
            next = k;
        }
        if (next < 0) break;
        /* a leap into a tail can be long in coming back: a walk goes with them */
        const int leaps = now.count[PASS_LEAP] + now.count[PASS_GROUP_LEAP],
                  walks = now.count[PASS_WALK] + now.count[PASS_GROUP_WALK];
        if (total > 1 && leaps > 0 && walks == 0)
            next = now.count[PASS_LEAP] > 0 ? PASS_WALK : PASS_GROUP_WALK;
        work += adapt->price[next];
        now.count[next] += 1;
        for (int i = 0; i < d; ++i) level[i] += rate[(size_t)next * d + i];
        now.gain = gain_of(d, level, NULL, sweep, parts, work);
        if (given >= 0 ? total == given : now.gain > best.gain) best = now;
    }
    return best;
}

/* The schedule of what follows warmup. */
static struct schedule final_schedule(const struct adapt *adapt, const double *sweep,
                                      const double *rate, double *level) {
    struct schedule best = find_schedule(adapt, sweep, rate, 1, level);
    for (int parts = 2; parts <= adapt->most_parts; parts *= 2) {
        const struct schedule other = find_schedule(adapt, sweep, rate, parts, level);
        if (other.gain > (best.parts == 1 ? PARTS_MARGIN : 1) * best.gain) best = other;
    }
    return best;
}

/* The gain over the sampler without passes. The slowest direction of Q looks slower
 * than it is: the least of d eigenvalues of a sample covariance is too small by about
 * (1 - sqrt(d / count))^2. */
static double gain_over_plain(const struct adapt *adapt, const double *sweep,
                              const struct schedule *schedule) {
    const int d = adapt->shape.dim;
    const double plain = gain_of(d, sweep, NULL, sweep, 1, sweep_cost(adapt));
    const double root = 1 - sqrt(d / *adapt->count);
    return root * root * schedule->gain / plain;
}

/* Rates that may be hoped for once the proposals have learned more. */
static void hope_for(const struct adapt *adapt, double *rate) {
    const int d = adapt->shape.dim;
    for (int k = 0; k < PASS_KINDS; ++k) {
        const double made = adapt->proposals[k], own = made / (made + GOOD_PROPOSALS);
        for (int i = 0; i < d; ++i, ++rate) *rate = own * *rate + (1 - own) * GOOD_RATE / d;
    }
}

/* Returns the share of theta that an iteration leaves as it is, an average over
 * directions. */
static double choose_passes(struct adapt *adapt, const double *chol, int end_of_warmup) {
    const int d = adapt->shape.dim, given = *adapt->given >= 0;
    double *sweep = adapt->scratch, *rate = sweep + d, *level = rate + PASS_KINDS * d, left = 0;
    learn_rates(adapt, chol, sweep, rate);
    for (int i = 0; i < d; ++i) left += (1 - sweep[i]) / d;
    left -= sqrt(3 / (*adapt->count * d)); /* about its standard error */
    left = left > 0 ? left : 0;
    struct schedule best = {{0}, 1, 0};
    if (given) {
        best = find_schedule(adapt, sweep, rate, 1, level);
    } else if (end_of_warmup) {
        const struct schedule last = final_schedule(adapt, sweep, rate, level);
        if (gain_over_plain(adapt, sweep, &last) > PASSES_MARGIN) best = last;
    } else {
        hope_for(adapt, rate);
        best = find_schedule(adapt, sweep, rate, 1, level);
        const double pace = HOPE * (gain_over_plain(adapt, sweep, &best) - 1);
        const double most = MOST_PACE * fmin(*adapt->count / LONG_WINDOW, 1);
        *adapt->pace = fmin(fmax(pace, 0), most);
    }
    *adapt->parts = best.parts;
    double moved = 0;
    for (int k = 0; k < PASS_KINDS; ++k) {
        const int count = best.count[k];
        adapt->passes[k] = count;
        for (int i = 0; i < d && count > 0; ++i) moved += count * rate[(size_t)k * d + i] / d;
    }
    return left * exp(-moved);
}

/* Squared jump of component j in a sweep with that refresh, over twice its
 * variance; `least` where it did not move. */
static double component_rate(const struct adapt *adapt, int refresh, int j, double least) {
    const double moved = adapt->moved[(size_t)refresh * adapt->shape.complete + j];
    if (moved == 0) return least;
    return 0.5 * moved / adapt->tries[refresh] * *adapt->looks / adapt->complete_scatter[j];
}

/* A component that did not move while others did may move in twice as many
 * tries. */
static double least_rate(const struct adapt *adapt, int refresh) {
    const double *moved = adapt->moved + (size_t)refresh * adapt->shape.complete;
    for (int j = 0; j < adapt->shape.complete; ++j)
        if (moved[j] > 0) return 0.5 / adapt->tries[refresh];
    return 0;
}

/* Sweeps to an independent value of the complete-data statistic, on average over
 * its components, if that share of them uses a refresh. */
static double refresh_time(const struct adapt *adapt, int refresh, double share) {
    const double least = least_rate(adapt, 0), least_kept = least_rate(adapt, refresh);
    double time = 0;
    int counted = 0;
    for (int j = 0; j < adapt->shape.complete; ++j) {
        if (!(adapt->complete_scatter[j] > 0)) continue;
        ++counted;
        time += 1 / ((1 - share) * component_rate(adapt, 0, j, least) +
                     share * component_rate(adapt, refresh, j, least_kept));
    }
    return counted > 0 ? time / counted : INFINITY;
}

/* `left`: the share of theta that an iteration leaves as it is */
static void choose_refresh(struct adapt *adapt, double left) {
    *adapt->refresh = *adapt->share = 0;
    if (adapt->tries[0] == 0) return;
    if (left == 0) return; /* whatever the time, infinite as it may be */
    const double dearer = adapt->costs.refresh / sweep_cost(adapt);
    double least = (1 + 2 * left * refresh_time(adapt, 0, 0)) / REFRESH_MARGIN;
    if (least < 1) return;
    if (!isfinite(least)) { /* no record moved: the smallest steps, unless others did better */
        *adapt->refresh = REFRESHES - 1;
        *adapt->share = 0.75;
    }
    for (int i = 1; i < REFRESHES; ++i) {
        if (adapt->tries[i] < ENOUGH_TRIES) continue;
        for (int quarter = 1; quarter <= 3; ++quarter) {
            const double share = 0.25 * quarter;
            const double time =
                (1 + 2 * left * refresh_time(adapt, i, share)) * (1 + share * dearer);
            if (time < least) {
                least = time;
                *adapt->refresh = i;
                *adapt->share = share;
            }
        }
    }
}

/* Rows of group_chol: the factor of each group's covariance by itself. */
static void factor_groups(struct adapt *adapt, const double *covariance) {
    const int d = adapt->shape.dim;
    double *m = adapt->scratch + (size_t)(PASS_KINDS + 4) * d;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j)
            m[(size_t)i * d + j] = j <= i && adapt->shape.group[i] == adapt->shape.group[j]
                                       ? covariance[(size_t)i * d + j]
                                       : 0;
    if (linalg_cholesky(d, m) == 0) memcpy(adapt->group_chol, m, (size_t)d * d * sizeof(double));
}

static void take_shape(struct adapt *adapt, const double *chol) {
    const int d = adapt->shape.dim;
    memcpy(adapt->chol, chol, (size_t)d * d * sizeof(double));
    memcpy(adapt->centre, adapt->mean, (size_t)d * sizeof(double));
    *adapt->has_centre = 1;
}

void adapt_close_window(struct adapt *adapt, enum window window) {
    const int d = adapt->shape.dim;
    const double count = *adapt->count;
    if (count < 2 * d + 10) return; /* too short to learn from: goes on */
    const double shrink = count / (count + 5 + d);
    double *chol = adapt->scratch + (size_t)(PASS_KINDS + 4) * d + 2 * (size_t)d * d;
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j < d; ++j)
            chol[(size_t)i * d + j] =
                j > i ? 0 : adapt->scatter[(size_t)i * d + j] * (j < i ? shrink : 1) / count;
    }
    if (window != WARMUP_ENDS && adapt->shape.groups > 1) factor_groups(adapt, chol);
    double left = 1;
    if (d > 0 && linalg_cholesky(d, chol) == 0) {
        left = choose_passes(adapt, chol, window == WARMUP_ENDS);
        if (window != WARMUP_ENDS) take_shape(adapt, chol);
        if (window == WINDOW_ENDS) reset_scales(adapt);
    }
    choose_refresh(adapt, left);
    if (window != LAST_WINDOW_ENDS) open_window(adapt);
}
