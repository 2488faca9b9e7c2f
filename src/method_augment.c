/* Method "augment": imputes the confidential records (Ju et al. 2022,
 * Algorithm 1).
 *
 * Target: p(theta) prod_i f(x_i | theta) eta(z | sum_i t(x_i)). A sweep visits
 * every record: x* ~ f(. | theta), accepted with min(1, eta* / eta). Proposals
 * and statistics of a block are drawn and evaluated vectorised; only the pass
 * that accepts is sequential.
 *
 * Two running vectors, never mixed up:
 *   residual  (z - s) in units of the noise, s the released (clamped)
 *             statistic: drives acceptance, updated record by record;
 *   complete  the complete-data statistic of the unclamped records: drives
 *             theta, accumulated anew by each sweep, so it cannot drift.
 *
 * Interweaving: between sweeps, theta also moves with the records' innovations
 * held fixed (the non-centred view): x' = T(u, theta'), accepted with
 * p(theta') eta(z | s') / (p(theta) eta(z | s)). Such a pass needs no random
 * number per record. What it learns (adapt.c) it learns in warmup only.
 *
 * Cost per record: the model's draw, two evaluations of the statistic and
 * O(size) for the acceptance. No allocation, no R call in any loop.
 */
#include "method_augment.h"

/* the differences of a block should stay in the first-level cache */
enum { BLOCK_BYTES = 6144, LEAST_BLOCK = 16 };

void augment_prepare(struct augment *a) {
    const int columns = a->model.columns;
    int block = (int)(BLOCK_BYTES / sizeof(double)) / a->width;
    block = PAD_LANES(block < LEAST_BLOCK ? LEAST_BLOCK : block);
    if (block > MAX_BLOCK) block = MAX_BLOCK;
    if (a->n < block) block = PAD_LANES((int)a->n);
    a->block = block;
    const size_t components = (size_t)a->width * (size_t)block;
    a->complete = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->total = plugin_memory((size_t)a->width, sizeof(double));
    a->residual = plugin_memory((size_t)a->width, sizeof(double));
    a->before = plugin_memory(components, sizeof(double));
    a->after = plugin_memory(components, sizeof(double));
    a->diff = plugin_memory(components, sizeof(double));
    a->candidate = plugin_memory((size_t)a->width, sizeof(double));
    a->threshold = plugin_memory((size_t)block, sizeof(double));
    a->hit = plugin_memory((size_t)block, sizeof(double));
    a->x_new = plugin_memory((size_t)columns, sizeof(double *));
    a->x_at = plugin_memory((size_t)columns, sizeof(double *));
    a->view = plugin_memory((size_t)columns, sizeof(double *));
    for (int v = 0; v < columns; ++v) a->x_new[v] = plugin_memory(MAX_BLOCK, sizeof(double));
    a->moved = plugin_memory((size_t)columns, sizeof(double *));
    a->changed = plugin_memory((size_t)columns, sizeof(int));
    a->theta_new = plugin_memory((size_t)a->model.parameters, sizeof(double));
    a->step = plugin_memory((size_t)a->model.parameters, sizeof(double));
}

/* points x_at at the block that starts there; returns its number of records */
static int block_at(struct augment *a, ptrdiff_t start, int most) {
    for (int v = 0; v < a->model.columns; ++v) a->x_at[v] = a->x + v * a->stride + start;
    return (int)(a->n - start < most ? a->n - start : most);
}

static const double *const *read_only(double *const *x) { return (const double *const *)x; }

/* the variables of one statistic among the columns of a block */
static const double *const *view_of(struct augment *a, const struct part *part,
                                    const double *const *x) {
    for (int v = 0; v < part->stat.columns; ++v) a->view[v] = x[part->column[v]];
    return a->view;
}

static void add_totals(struct augment *a, int m, const double *const *x) {
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        part->stat.class->total(part->stat.self, m, view_of(a, part, x), a->total + part->offset);
    }
}

static void residual_from_total(const struct augment *a, double *residual) {
    for (int j = 0; j < a->width; ++j) residual[j] = (a->released[j] - a->total[j]) * a->weight[j];
}

/* residual = (released - sum of t over all records) * weight */
void augment_residual(struct augment *a, double *residual) {
    memset(a->total, 0, (size_t)a->width * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += MAX_BLOCK) {
        const int m = block_at(a, start, MAX_BLOCK);
        add_totals(a, m, read_only(a->x_at));
    }
    residual_from_total(a, residual);
}

double augment_energy(const struct augment *a, const double *residual) {
    double energy = 0;
    for (int j = 0; j < a->absolute; ++j) energy += fabs(residual[j]);
    for (int j = a->absolute; j < a->width; ++j) energy += 0.5 * residual[j] * residual[j];
    return energy;
}

/* records from f(. | theta) for the state's theta */
void augment_start(struct augment *a) {
    const struct model_class *class = a->model.class;
    class->set(a->model.self, a->theta);
    for (ptrdiff_t start = 0; start < a->n; start += a->block) {
        const int m = block_at(a, start, a->block);
        class->rrecords(a->model.self, a->rng, m, a->x_at);
    }
    augment_residual(a, a->residual);
}

/* (t(x*) - t(x)) * weight, component by component */
static inline void difference(int m, double weight, const double *restrict before,
                              double *restrict after) {
    FOR_RECORDS(i, m) after[i] = (after[i] - before[i]) * weight;
}

/* Turns LANES components round: the acceptance pass reads those of a record
 * side by side. */
static inline void transpose(int m, int stride, const double *restrict in, int width,
                             double *restrict out) {
    const double *restrict in1 = in + stride, *restrict in2 = in1 + stride,
                           *restrict in3 = in2 + stride;
    for (int i = 0; i < m; ++i, out += width) {
        out[0] = in[i];
        out[1] = in1[i];
        out[2] = in2[i];
        out[3] = in3[i];
    }
}

VECTOR_CLONES static void differences(struct augment *a, int m) {
    for (int j = 0; j < a->width; ++j)
        difference(m, a->weight[j], a->before + (size_t)j * a->block,
                   a->after + (size_t)j * a->block);
    for (int j = 0; j < a->width; j += LANES)
        transpose(m, a->block, a->after + (size_t)j * a->block, a->width, a->diff + j);
}

static void evaluate(struct augment *a, int m, const double *const *x, double *t) {
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        part->stat.class->eval(part->stat.self, m, view_of(a, part, x), a->block,
                               t + (size_t)part->offset * a->block);
    }
}

/* candidate = residual - diff; returns the kernel's sum over it */
static INLINE double step_absolute(int size, const double *restrict residual,
                                   const double *restrict diff, double *restrict candidate) {
    double part[LANES] = {0};
    for (int j = 0; j < size; j += LANES) {
        for (int l = 0; l < LANES; ++l) {
            const double value = residual[j + l] - diff[j + l];
            candidate[j + l] = value;
            part[l] += fabs(value);
        }
    }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

static INLINE double step_squared(int size, const double *restrict residual,
                                  const double *restrict diff, double *restrict candidate) {
    double part[LANES] = {0};
    for (int j = 0; j < size; j += LANES) {
        for (int l = 0; l < LANES; ++l) {
            const double value = residual[j + l] - diff[j + l];
            candidate[j + l] = value;
            part[l] += value * value;
        }
    }
    return 0.5 * ((part[0] + part[1]) + (part[2] + part[3]));
}

/* The sequential pass over the block's differences. With E = -log(u)
 * exponential, u < exp(-step) reads step < E. */
static INLINE void accept_records(struct augment *a, int m, int width, int absolute) {
    const double *threshold = a->threshold, *diff = a->diff;
    double *hit = a->hit;
    double *residual = a->residual, *candidate = a->candidate;
    double energy = augment_energy(a, residual), most = a->most_energy_step;
    for (int i = 0; i < m; ++i, diff += width) {
        double proposed = 0;
        if (absolute > 0) proposed += step_absolute(absolute, residual, diff, candidate);
        if (absolute < width)
            proposed += step_squared(width - absolute, residual + absolute, diff + absolute,
                                     candidate + absolute);
        const double step = proposed - energy;
        most = step > most ? step : most;
        hit[i] = 0;
        if (step <= threshold[i]) {
            double *swap = residual;
            residual = candidate;
            candidate = swap;
            energy = proposed;
            hit[i] = 1;
        }
    }
    a->residual = residual;
    a->candidate = candidate;
    a->most_energy_step = most;
}

/* The compiler unrolls the pass for the sizes of small problems. */
VECTOR_CLONES static void accept_block(struct augment *a, int m) {
    if (a->absolute == a->width) {
        switch (a->width) {
        case 1 * LANES:
            accept_records(a, m, 1 * LANES, 1 * LANES);
            return;
        case 2 * LANES:
            accept_records(a, m, 2 * LANES, 2 * LANES);
            return;
        case 3 * LANES:
            accept_records(a, m, 3 * LANES, 3 * LANES);
            return;
        case 4 * LANES:
            accept_records(a, m, 4 * LANES, 4 * LANES);
            return;
        default:
            accept_records(a, m, a->width, a->width);
            return;
        }
    }
    accept_records(a, m, a->width, a->absolute);
}

static void count_accepted(int m, const double *restrict hit, int *restrict accepted) {
    for (int i = 0; i < m; ++i) accepted[i] += (int)hit[i];
}

VECTOR_CLONES static void keep_accepted(int m, const double *restrict hit,
                                        const double *restrict x_new, double *restrict x) {
    FOR_RECORDS(i, m) {
        const double old = x[i], fresh = x_new[i];
        x[i] = hit[i] > 0 ? fresh : old;
    }
}

/* One visit of every record, keeping the share rho of its innovation; returns
 * how many proposals were accepted. The noise density enters with the exponent
 * `temper`. */
ptrdiff_t augment_sweep(struct augment *a, double rho, double temper) {
    const struct model_class *class = a->model.class;
    void *self = a->model.self;
    ptrdiff_t accepted = 0;
    class->set(self, a->theta);
    memset(a->complete, 0, (size_t)a->model.complete * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += a->block) {
        const int m = block_at(a, start, a->block);
        if (rho > 0)
            class->perturb(self, rho, a->rng, m, read_only(a->x_at), a->x_new);
        else
            class->rrecords(self, a->rng, m, a->x_new);
        rng_fill_exponential(a->rng, m, a->threshold);
        if (temper < 1)
            for (int i = 0; i < m; ++i) a->threshold[i] /= temper;
        evaluate(a, m, read_only(a->x_at), a->before);
        evaluate(a, m, read_only(a->x_new), a->after);
        differences(a, m);
        accept_block(a, m);
        count_accepted(m, a->hit, a->accepted + start);
        accepted += (ptrdiff_t)block_sum(m, a->hit);
        for (int v = 0; v < a->model.columns; ++v)
            keep_accepted(m, a->hit, a->x_new[v], a->x_at[v]);
        class->add(self, 1, m, read_only(a->x_at), a->complete);
    }
    return accepted;
}

/* ---- non-centred moves --------------------------------------------------- */

/* The block's records under theta_new: columns that do not change are not
 * copied. */
static const double *const *moved_block(struct augment *a, int m) {
    a->model.class->move(a->model.self, m, read_only(a->x_at), a->x_new);
    for (int v = 0; v < a->model.columns; ++v)
        a->moved[v] = a->changed[v] ? a->x_new[v] : a->x_at[v];
    return a->moved;
}

static void moved_residual(struct augment *a, double *residual) {
    memset(a->total, 0, (size_t)a->width * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += MAX_BLOCK) {
        const int m = block_at(a, start, MAX_BLOCK);
        add_totals(a, m, moved_block(a, m));
    }
    residual_from_total(a, residual);
}

static void keep_moved(struct augment *a) {
    for (ptrdiff_t start = 0; start < a->n; start += MAX_BLOCK) {
        const int m = block_at(a, start, MAX_BLOCK);
        (void)moved_block(a, m);
        for (int v = 0; v < a->model.columns; ++v)
            if (a->changed[v]) memcpy(a->x_at[v], a->x_new[v], (size_t)m * sizeof(double));
    }
}

/* Needs the model set at theta, and log_prior and energy of the state. */
static void augment_pass(struct augment *a, int learning) {
    const struct model_class *class = a->model.class;
    void *self = a->model.self;
    const int moving = a->model.moving;
    adapt_propose(&a->adapt, a->rng, a->step);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    for (int j = 0; j < moving; ++j) a->theta_new[a->model.moves[j]] += a->step[j];
    const double threshold = rng_exponential(a->rng);

    double log_ratio = -INFINITY, log_prior = class->dprior(self, a->theta_new), energy = 0;
    if (isfinite(log_prior)) {
        class->set_move(self, a->theta_new, a->changed);
        moved_residual(a, a->candidate);
        energy = augment_energy(a, a->candidate);
        log_ratio = log_prior - a->log_prior + (a->energy - energy) * *a->adapt.temper;
    }
    const int accept = -log_ratio < threshold;
    if (accept) {
        keep_moved(a);
        memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
        memcpy(a->residual, a->candidate, (size_t)a->width * sizeof(double));
        class->set(self, a->theta);
        a->log_prior = log_prior;
        a->energy = energy;
    }
    if (learning) {
        const double probability = log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
        adapt_saw_pass(&a->adapt, probability, accept, a->step);
    } else {
        a->passes_made += 1;
        a->passes_accepted += accept;
    }
}

static void gather_moving(const struct augment *a, double *out) {
    for (int j = 0; j < a->model.moving; ++j) out[j] = a->theta[a->model.moves[j]];
}

int augment_iterate(struct augment *a, int iteration, int warmup, ptrdiff_t *accepted) {
    const struct model_class *class = a->model.class;
    struct adapt *adapt = &a->adapt;
    const int learning = iteration < warmup, passes = adapt_passes(adapt, learning);
    if (iteration == 0) adapt_anneal(adapt, augment_energy(a, a->residual), a->width, warmup);
    class->set(a->model.self, a->theta);
    if (passes > 0) {
        a->log_prior = class->dprior(a->model.self, a->theta);
        a->energy = augment_energy(a, a->residual);
        for (int k = 0; k < passes; ++k) augment_pass(a, learning);
    }
    const int refresh =
        a->plain || !class->perturb ? 0 : adapt_choose_refresh(adapt, iteration, learning, a->rng);
    *accepted = augment_sweep(a, adapt_refresh[refresh], *adapt->temper);

    double *before = a->step, *after = a->theta_new;
    gather_moving(a, before);
    const int status = class->rtheta(a->model.self, a->complete, (double)a->n, a->rng, a->theta);
    if (status != PLUGIN_OK || !learning) return status;
    gather_moving(a, after);
    adapt_saw_sweep(adapt, refresh, (double)*accepted / (double)a->n, before, after);
    adapt_cool(adapt);
    if (adapt_window_ends(iteration, warmup)) adapt_close_window(adapt);
    if (iteration + 1 == warmup) {
        /* counters speak of what follows */
        *adapt->temper = 1;
        memset(a->accepted, 0, (size_t)a->n * sizeof(int));
        a->most_energy_step = -INFINITY;
    }
    return PLUGIN_OK;
}
