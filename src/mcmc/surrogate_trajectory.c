/* Trajectories of Hamiltonian Monte Carlo on a surrogate's density; the records then follow their
 * ends. Shared by surrogate transitions of a response's coefficients (records/response_hmc.c,
 * records/category_hmc.c).
 *
 * Learned in warmup: step size and metric (mcmc/hmc.c); the reference, where the chain is when a
 * window of the metric ends; the length of trajectories, shorter if long ones are rejected; how
 * many moves a round has.
 *
 * Number of moves: let v be a coordinate's variance, m and r half its mean squared jump, over v, in
 * a move and in the rest of a round. k moves and the rest go the share 1 - exp(-(r + k m)) of the
 * way to an independent draw, so an effective draw takes about 1 / tanh((r + k m) / 2) rounds
 * (mcmc/adapt_schedule.c). The k is chosen, 0 among them, that promises most effective draws of the
 * slowest coordinate for the work: where there is little noise, the responses that differ by chance
 * change the totals so much that moves are short, and not worth their passes.
 *
 * No allocation. Cost: one density for each leapfrog step.
 */
#include "mcmc/surrogate_trajectory.h"

#include "base/core.h"

static const double LONGEST = 1.5, SHORTEST = 0.05;

/* Acceptance probability that the length aims at. The responses that differ from the reference's
 * make an error that shorter trajectories hardly lower. */
static const double TARGET = 0.3;

enum { MOST_STEPS = 100, MOST_MOVES = 4, FIRST_MOVES = 3 };

/* Of the current window: moves, rounds with those before them, the work of both; the work of the
 * chain after the last move, and its iteration. Nothing is known of the first round's rest. */
enum { MOVES, ROUNDS, WORK_OF_MOVES, WORK_OF_REST, WORK_SO_FAR, LAST_ITERATION };

/* Fewer moves are believed to be no guide. */
enum { LEAST_MOVES = 25 };

static void copy(const struct trajectory *t, double *to, const double *from) {
    memcpy(to, from, (size_t)t->hmc.target.size * sizeof(double));
}

size_t trajectory_stored(int size, enum hmc_metric metric) {
    return TRAJECTORY_SCALARS + 1 + TRAJECTORY_TALLIES + 4 * (size_t)size +
           hmc_stored(size, metric);
}

void trajectory_attach(struct trajectory *t, const struct hmc_target *target,
                       enum hmc_metric metric, double *store, double *work) {
    t->referred = store;
    t->length = store + 1;
    t->reference = store + TRAJECTORY_SCALARS;
    t->count = t->reference + target->size;
    t->tally = t->count + 1;
    t->by_moves = t->tally + TRAJECTORY_TALLIES;
    t->by_rest = t->by_moves + target->size;
    t->left = t->by_rest + target->size;
    hmc_attach(&t->hmc, target, metric, t->left + target->size, work);
}

static void open_window(struct trajectory *t) {
    t->tally[MOVES] = t->tally[ROUNDS] = t->tally[WORK_OF_MOVES] = t->tally[WORK_OF_REST] = 0;
    memset(t->by_moves, 0, 2 * (size_t)t->hmc.target.size * sizeof(double));
}

void trajectory_begin(struct trajectory *t, const double *unit, struct rng *rng) {
    *t->referred = 1;
    *t->length = LONGEST;
    *t->count = FIRST_MOVES;
    open_window(t);
    t->tally[LAST_ITERATION] = -1;
    copy(t, t->reference, t->here);
    hmc_start(&t->hmc, t->here, unit);
    if (hmc_refresh(&t->hmc)) hmc_find_step(&t->hmc, rng);
}

int trajectory_propose(struct trajectory *t, struct rng *rng, const double *energy, double *gain) {
    copy(t, t->hmc.q, t->here);
    t->told = (struct hmc_step){0};
    if (!hmc_refresh(&t->hmc)) return 0;
    const double before = *energy;
    hmc_fixed(&t->hmc, *t->length, MOST_STEPS, rng, &t->told);
    copy(t, t->there, t->hmc.q);
    if (memcmp(t->here, t->there, (size_t)t->hmc.target.size * sizeof(double)) == 0) return 0;
    (void)hmc_refresh(&t->hmc);
    *gain = before - *energy;
    return 1;
}

int trajectory_count(const struct trajectory *t, int iteration, int warmup) {
    if (*t->referred == 0) return FIRST_MOVES;
    return *t->count < 1 && iteration < warmup ? 1 : (int)*t->count;
}

/* `here` is where the round's other moves led */
static void see_rest(struct trajectory *t, const struct trajectory_seen *seen) {
    const double last = t->tally[LAST_ITERATION];
    if (last < 0 || last == seen->iteration) return;
    t->tally[ROUNDS] += 1;
    t->tally[WORK_OF_REST] += seen->begun - t->tally[WORK_SO_FAR];
    for (int j = 0; j < t->hmc.target.size; ++j) {
        const double by = t->here[j] - t->left[j];
        t->by_rest[j] += by * by;
    }
}

/* A jump counts by its probability, accepted or not. */
static void see_move(struct trajectory *t, const struct trajectory_seen *seen) {
    t->tally[MOVES] += 1;
    t->tally[WORK_OF_MOVES] += seen->ended - seen->begun;
    t->tally[WORK_SO_FAR] = seen->ended;
    t->tally[LAST_ITERATION] = seen->iteration;
    for (int j = 0; seen->moved && j < t->hmc.target.size; ++j) {
        const double by = t->there[j] - t->here[j];
        t->by_moves[j] += seen->probability * by * by;
    }
    memcpy(t->left, seen->accepted ? t->there : t->here,
           (size_t)t->hmc.target.size * sizeof(double));
}

/* rounds for an effective draw of the slowest coordinate, with k moves in each */
static double slowest(const struct trajectory *t, int k) {
    double most = 1;
    for (int j = 0; j < t->hmc.target.size; ++j) {
        const double sd = hmc_deviation(&t->hmc, j);
        const double level =
            t->by_rest[j] / t->tally[ROUNDS] + k * t->by_moves[j] / t->tally[MOVES];
        most = fmax(most, 1 / tanh(level / (4 * sd * sd)));
    }
    return most;
}

static void choose_count(struct trajectory *t) {
    if (t->tally[MOVES] < LEAST_MOVES || t->tally[ROUNDS] < LEAST_MOVES) return;
    const double rest = t->tally[WORK_OF_REST] / t->tally[ROUNDS],
                 move = t->tally[WORK_OF_MOVES] / t->tally[MOVES];
    double least = INFINITY;
    for (int k = 0; k <= MOST_MOVES; ++k) {
        const double work = slowest(t, k) * (rest + k * move);
        if (work >= least) continue;
        least = work;
        *t->count = k;
    }
}

void trajectory_learn(struct trajectory *t, const struct trajectory_seen *seen, struct rng *rng) {
    const int iteration = seen->iteration, warmup = seen->warmup;
    see_rest(t, seen);
    see_move(t, seen);
    copy(t, t->hmc.q, seen->accepted ? t->there : t->here);
    if (!hmc_refresh(&t->hmc)) return;
    hmc_learn(&t->hmc, iteration, warmup, &t->told, rng);
    if (seen->moved) {
        const double pace = 2 / (10 + sqrt(1.0 + iteration));
        const double length = *t->length * exp(pace * (seen->probability - TARGET));
        *t->length = length > LONGEST ? LONGEST : length < SHORTEST ? SHORTEST : length;
    }
    if (hmc_window(iteration, warmup) != HMC_LAST) return;
    copy(t, t->reference, t->hmc.q);
    choose_count(t);
    open_window(t);
}
