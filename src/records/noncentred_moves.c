/* Non-centred moves of method "augment": theta moves with the records' innovations held
 * fixed, x' = T(u, theta'), accepted with p(theta') eta(z | s') / (p(theta) eta(z | s)).
 * Which steps to propose mcmc/adapt.h knows.
 *
 * Invariant: log_prior and energy are those of the state while passes run. Cost of a
 * pass: the model's move() and the statistic's total() of every record; a kept one
 * writes the records.
 */
#include "records/augment_internal.h"

/* ---- work ---------------------------------------------------------------------- */

/* What is counted in place of time, so that a seed fixes what is learned: about
 * the nanoseconds of one machine. Only ratios matter. A random number, a
 * component of the statistic in a sweep and in a pass, a cell, a variable of a record
 * that a pass changes; then what does not grow with n. */
static const double RANDOM = 3.5, COMPONENT = 0.4, COMPONENT_TOTAL = 0.12, CELL = 1, COLUMN = 0.6;
static const double LEAPFROG = 600, LEAPFROG_CUBE = 2.5; /* d columns, and d^3 */
static const double SWEEP = 250, SWEEP_PARAMETER = 80, PASS = 100, PASS_PARAMETER = 40;

void augment_count_work(struct augment *a) {
    const struct model *model = &a->model;
    int cells = 0;
    for (int k = 0; k < a->parts; ++k)
        if (a->part[k].kind == PART_CELLS) cells += a->part[k].stat.touched;
    const double n = (double)a->n, values = a->dense + a->locals;
    const double draws = model->costs.records > 0 ? model->costs.records : model->columns;
    const double more = model->costs.refresh > 0 ? model->costs.refresh - draws : 0;
    const double square = (double)model->columns * model->columns;
    const double complete = model->complete < square ? model->complete : square;
    struct adapt_costs *costs = &a->adapt.costs;
    costs->visit = n * (RANDOM * (draws + 1) + COMPONENT * 3 * values + 2 * CELL * cells);
    costs->refresh = n * RANDOM * more;
    costs->look = n * COMPONENT * complete * (model->costs.latent > 0 ? 2 : 1);
    costs->complete = n * (RANDOM * model->costs.latent + COMPONENT * complete) + SWEEP +
                      SWEEP_PARAMETER * model->parameters;
    const double density = model->costs.density > 0 ? model->costs.density : model->columns;
    if (update_theta_is_needed(model))
        costs->complete += n * RANDOM * density * update_theta_cost(model);
    a->column_work = n * (RANDOM * model->costs.move / model->columns + COLUMN);
    a->pass_work =
        n * (COMPONENT_TOTAL * values + CELL * cells) + PASS + PASS_PARAMETER * model->parameters;
    if (!a->surrogate) return;
    const double d = a->surrogate->density.totals.d, k = a->surrogate->density.totals.k;
    a->map_work = n * (COLUMN * d * (0.5 * d + k) + COMPONENT_TOTAL * values + CELL * cells) + PASS;
    a->leapfrog_work = LEAPFROG * d + LEAPFROG_CUBE * d * d * d;
}

/* of moving the records once under set_move() */
static double move_work(const struct augment *a) {
    double work = 0;
    for (int v = 0; v < a->model.columns; ++v) work += a->changed[v] ? a->column_work : 0;
    return work;
}

static double copy_work(const struct augment *a) {
    return COLUMN * augment_records(a) * a->model.columns;
}

/* ---- a pass ------------------------------------------------------------------- */

/* Where the records of a block that starts there go when they move. */
static double *moved_column(const struct augment *a, int v, ptrdiff_t start) {
    return a->moved_x ? a->moved_x + v * a->stride + start : a->x_new[v];
}

/* The block's records under theta_new: columns that do not change are not
 * copied. A block is longer than what the model takes where a statistic wants all records. */
static const double *const *moved_block(struct augment *a, ptrdiff_t start, int m) {
    const struct model *model = &a->model;
    for (int at = 0, chunk; at < m; at += chunk) {
        chunk = augment_chunk(model->whole, m - at);
        for (int v = 0; v < model->columns; ++v) {
            a->at_chunk[v] = a->x_at[v] + at;
            a->to_chunk[v] = moved_column(a, v, start) + at;
        }
        model->class->move(model->self, a->rng, chunk, augment_read_only(a->at_chunk), a->to_chunk);
    }
    for (int v = 0; v < model->columns; ++v)
        a->moved[v] = a->changed[v] ? moved_column(a, v, start) : a->x_at[v];
    return a->moved;
}

static double moved_energy_of(struct augment *a) {
    double energy = 0;
    augment_clear_total(a);
    const int most = a->locals > 0 ? a->block : a->move_block;
    for (ptrdiff_t start = 0; start < a->n; start += most) {
        const int m = augment_block_at(a, start, most);
        energy += augment_add_totals(a, start, m, moved_block(a, start, m));
    }
    augment_residuals(a, a->candidate, a->candidate_cells);
    return energy + augment_total_energy(a, a->candidate, a->candidate_cells);
}

double augment_moved_energy(struct augment *a) {
    double energy = 0;
    for (int k = 0; k < a->sites; ++k) energy += moved_energy_of(a->site[k]);
    return energy;
}

static void keep_moved_of(struct augment *a) {
    const int most = a->locals > 0 ? a->block : a->move_block;
    for (ptrdiff_t start = 0; start < a->n; start += most) {
        const int m = augment_block_at(a, start, most);
        if (!a->moved_x) (void)moved_block(a, start, m);
        for (int v = 0; v < a->model.columns; ++v)
            if (a->changed[v])
                memcpy(a->x_at[v], moved_column(a, v, start), (size_t)m * sizeof(double));
    }
    memcpy(a->residual, a->candidate, (size_t)a->dense * sizeof(double));
    memcpy(a->cell_residual, a->candidate_cells, (size_t)a->cells * sizeof(double));
}

void augment_keep_moved(struct augment *a, const struct rng *innovations) {
    if (!a->moved_x) *a->rng = *innovations; /* the same records once more, now to keep */
    for (int k = 0; k < a->sites; ++k) keep_moved_of(a->site[k]);
}

void augment_gather(const struct augment *a, double *out) {
    for (int j = 0; j < a->model.moving; ++j) out[j] = a->theta[a->model.moves[j]];
}

double augment_log_prior(const struct augment *a, const double *theta) {
    return a->layer ? a->layer->log_prior(a->layer->self, theta)
                    : a->model.class->dprior(a->model.self, theta);
}

/* Needs the model set at theta, and log_prior and energy of the state. */
static void pass(struct augment *a, enum pass_kind kind, int learning) {
    const struct model_class *class = a->model.class;
    void *self = a->model.self;
    const int moving = a->model.moving;
    augment_gather(a, a->place);
    const double back_over_forth = adapt_propose(&a->adapt, kind, a->place, a->rng, a->step);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    for (int j = 0; j < moving; ++j) a->theta_new[a->model.moves[j]] += a->step[j];
    const double threshold = rng_exponential(a->rng);

    double log_ratio = -INFINITY, log_prior = augment_log_prior(a, a->theta_new), energy = 0;
    double work = PASS;
    const struct rng innovations = *a->rng;
    if (isfinite(log_prior)) {
        class->set_move(self, a->theta_new, a->changed);
        work = a->pass_work + move_work(a);
        energy = augment_moved_energy(a);
        log_ratio =
            log_prior - a->log_prior + (a->energy - energy) * *a->adapt.temper + back_over_forth;
    }
    const int accept = -log_ratio < threshold;
    if (accept) {
        work += a->moved_x ? copy_work(a) : move_work(a);
        augment_keep_moved(a, &innovations);
        memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        class->set(self, a->theta);
        a->log_prior = log_prior;
        a->energy = energy;
    }
    a->work += work;
    if (learning) {
        const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        adapt_saw_pass(&a->adapt, kind, probability, a->step, work);
    } else {
        a->passes_made[kind] += 1;
        a->passes_accepted[kind] += accept;
    }
}

void augment_interweave(struct augment *a, int learning, int looking) {
    int count[PASS_KINDS], total = 0;
    adapt_plan(&a->adapt, learning, looking, count);
    for (int k = 0; k < PASS_KINDS; ++k) total += count[k];
    if (total == 0) return;
    a->model.class->set(a->model.self, a->theta);
    a->log_prior = augment_log_prior(a, a->theta);
    a->energy = augment_energy(a);
    for (int k = 0; k < PASS_KINDS; ++k)
        for (int i = 0; i < count[k]; ++i) pass(a, (enum pass_kind)k, learning);
}

/* ---- a response ------------------------------------------------------------------- */

/* A surrogate of what coefficients and the responses that follow them do to the totals: the
 * functions of records/response_hmc.h, or of records/category_hmc.h. */
struct guide {
    void *self;
    void (*refer)(void *self, double *theta);
    void (*correct)(void *self, const double *total);
    int (*propose)(void *self, struct rng *rng, double *theta, double *gain);
    void (*learn)(void *self, int iteration, int warmup, int moved, double probability,
                  int accepted, struct rng *rng);
    const struct hmc_step *told;
};

double augment_response_density(struct augment *a, double *q, double *gradient) {
    a->model.class->set(a->model.self, a->theta);
    augment_take_complete(a, 0, a->complete);
    if (!response_begin(a->response, a->complete, a->theta, a->rng)) return NAN;
    return response_density(a->response, q, gradient);
}

/* Both passes see the same innovations of the responses. */
static void guide(struct augment *a, const struct guide *g, int iteration, int warmup) {
    const struct model_class *class = a->model.class;
    void *self = a->model.self;
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    const struct rng innovations = *a->rng;
    g->refer(g->self, a->theta_new);
    class->set_move(self, a->theta_new, a->changed);
    (void)augment_moved_energy(a);
    g->correct(g->self, a->total);
    a->work += a->pass_work + move_work(a);

    double gain, probability = 0;
    int accept = 0;
    const int moved = g->propose(g->self, a->rng, a->theta_new, &gain);
    if (moved) {
        const double threshold = rng_exponential(a->rng);
        const struct rng later = *a->rng;
        *a->rng = innovations;
        class->set_move(self, a->theta_new, a->changed);
        const double fall = augment_energy(a) - augment_moved_energy(a);
        a->work += a->pass_work + move_work(a);
        const double log_ratio = *a->adapt.temper * (fall - gain);
        probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        accept = -log_ratio < threshold;
        if (accept) {
            a->work += copy_work(a);
            augment_keep_moved(a, &innovations);
            memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        }
        *a->rng = later;
    }
    if (iteration < warmup)
        g->learn(g->self, iteration, warmup, moved, probability, accept, a->rng);
    else {
        a->responses_made += 1;
        a->responses_accepted += accept;
        a->divergent += g->told->divergent;
    }
}

void augment_respond(struct augment *a, int iteration, int warmup) {
    struct response *r = a->response;
    a->model.class->set(a->model.self, a->theta);
    if (!response_begin(r, a->complete, a->theta, a->rng)) return;
    r->noise.temper = *a->adapt.temper;
    const struct guide g = {
        r, response_refer, response_correct, response_propose, response_learn, &r->path.told};
    guide(a, &g, iteration, warmup);
}

void augment_respond_categories(struct augment *a, int iteration, int warmup) {
    struct category_moves *r = a->categories;
    a->model.class->set(a->model.self, a->theta);
    if (!augment_begin_categories(a)) return;
    a->work += r->points * a->model.categories * a->pass_work / (double)a->n;
    const struct guide g = {r,
                            category_moves_refer,
                            category_moves_correct,
                            category_moves_propose,
                            category_moves_learn,
                            &r->path.told};
    guide(a, &g, iteration, warmup);
}
