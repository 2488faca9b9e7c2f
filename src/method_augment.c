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
 * The pass that accepts is bound by its own latency. Where a model's records are
 * made of normals, uniforms or exponentials alone (form() in plugin.h), those of
 * the next block are drawn in the meantime.
 *
 * Cost per record: the model's draw, two evaluations of the statistic and
 * O(components) for the acceptance, O(touched) where the statistic is a table
 * of counts. No allocation, no R call in any loop.
 */
#include "method_augment.h"

#include "lanes.h"
#include "rng_inline.h"

/* ---- work ---------------------------------------------------------------------- */

/* What is counted in place of time, so that a seed fixes what is learned: about
 * the nanoseconds of one machine. Only ratios matter. A random number, a
 * component of the statistic in a sweep and in a pass, a variable of a record
 * that a pass changes; then what does not grow with n. */
static const double RANDOM = 3.5, COMPONENT = 0.4, COMPONENT_TOTAL = 0.12, CELL = 1, COLUMN = 0.6;
static const double SWEEP = 250, SWEEP_PARAMETER = 80, PASS = 100, PASS_PARAMETER = 40;

static void count_work(struct augment *a) {
    const struct model *model = &a->model;
    int cells = 0;
    for (int k = 0; k < a->parts; ++k)
        if (a->part[k].kind == PART_CELLS) cells += a->part[k].stat.touched;
    const double n = (double)a->n, values = a->dense + a->locals;
    const double draws = model->costs.records > 0 ? model->costs.records : model->columns;
    const double more = model->costs.perturb > 0 ? model->costs.perturb - draws : 0;
    const double square = (double)model->columns * model->columns;
    const double complete = model->complete < square ? model->complete : square;
    struct adapt_costs *costs = &a->adapt.costs;
    costs->visit = n * (RANDOM * (draws + 1) + COMPONENT * 3 * values + 2 * CELL * cells);
    costs->refresh = n * RANDOM * more;
    costs->look = n * COMPONENT * complete * (model->costs.latent > 0 ? 2 : 1);
    costs->complete = n * (RANDOM * model->costs.latent + COMPONENT * complete) + SWEEP +
                      SWEEP_PARAMETER * model->parameters;
    const double density = model->costs.density > 0 ? model->costs.density : model->columns;
    if (!model->class->rtheta)
        costs->complete += n * RANDOM * density * (update_theta_steps(model) + 1);
    a->column_work = n * (RANDOM * model->costs.move / model->columns + COLUMN);
    a->pass_work =
        n * (COMPONENT_TOTAL * values + CELL * cells) + PASS + PASS_PARAMETER * model->parameters;
}

/* of moving the records once under set_move() */
static double move_work(const struct augment *a) {
    double work = 0;
    for (int v = 0; v < a->model.columns; ++v) work += a->changed[v] ? a->column_work : 0;
    return work;
}

static double copy_work(const struct augment *a) {
    return COLUMN * (double)a->n * a->model.columns;
}

/* the differences of a block should stay in the first-level cache */
enum { BLOCK_BYTES = 12288, LEAST_BLOCK = 16 };

/* iterations that a sweep may be spread over */
enum { MOST_PARTS = 8 };

/* candidates in one call of a density, see accept_foreseen */
enum { MOST_FORESEEN = 63, PATH = MOST_FORESEEN + 1 };

void augment_prepare(struct augment *a) {
    const int columns = a->model.columns, size = a->dense + a->cells;
    int whole = a->model.whole, local_size = 0;
    for (int k = 0; k < a->parts; ++k) {
        const struct stat *stat = &a->part[k].stat;
        whole = whole || stat->whole;
        a->dense_parts += a->part[k].kind == PART_DENSE;
        if (a->part[k].kind != PART_RECORDS) continue;
        a->locals += stat->size;
        local_size = stat->size > local_size ? stat->size : local_size;
    }
    int block = (int)(BLOCK_BYTES / sizeof(double)) / (a->dense > 0 ? a->dense : 1);
    block = PAD_LANES(block < LEAST_BLOCK ? LEAST_BLOCK : block);
    if (block > MAX_BLOCK) block = MAX_BLOCK;
    if (whole || a->n < block) block = (int)a->stride;
    a->block = block;
    for (int j = 0; j < a->dense; ++j)
        if (a->weight[j] != 0) a->used = j + 1;
    a->move_block = whole ? block : MAX_BLOCK;
    a->adapt.most_parts = whole ? 1 : MOST_PARTS;
    const size_t records = (size_t)block, components = (size_t)a->dense * records;
    a->complete = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->complete_before = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->complete_after = plugin_memory((size_t)a->model.complete, sizeof(double));
    a->total = plugin_memory((size_t)size, sizeof(double));
    a->residual = plugin_memory((size_t)a->dense, sizeof(double));
    a->candidate = plugin_memory((size_t)a->dense, sizeof(double));
    a->cell_residual = plugin_memory((size_t)a->cells + 1, sizeof(double));
    a->candidate_cells = plugin_memory((size_t)a->cells, sizeof(double));
    a->before = plugin_memory(components, sizeof(double));
    a->change = plugin_memory(components, sizeof(double));
    a->diff = plugin_memory(components, sizeof(double));
    a->local = plugin_memory((size_t)local_size * records, sizeof(double));
    a->extra = plugin_memory(records, sizeof(double));
    a->path = plugin_memory((size_t)(a->dense - a->separable) * PATH, sizeof(double));
    a->path_energy = plugin_memory(PATH, sizeof(double));
    a->path_log = plugin_memory((size_t)(block > PATH ? block : PATH), sizeof(double));
    a->foreseen = 1;
    a->threshold = plugin_memory(records, sizeof(double));
    a->draws_ahead = a->model.innovations > 0 && !whole;
    a->innovation = plugin_memory((size_t)a->model.innovations * MAX_BLOCK, sizeof(double));
    a->column_of = plugin_memory((size_t)a->model.innovations, sizeof(double *));
    a->gap = plugin_memory(records, sizeof(double));
    double ***const pointers[] = {&a->x_new, &a->x_at, &a->at_chunk, &a->to_chunk};
    for (int k = 0; k < 4; ++k) *pointers[k] = plugin_memory((size_t)columns, sizeof(double *));
    a->view = plugin_memory((size_t)columns, sizeof(double *));
    a->view_new = plugin_memory((size_t)columns, sizeof(double *));
    a->moved = plugin_memory((size_t)columns, sizeof(double *));
    if (a->model.costs.move > 0 && !a->plain)
        a->moved_x = plugin_memory((size_t)a->stride * (size_t)columns, sizeof(double));
    for (int v = 0; v < columns; ++v)
        a->x_new[v] =
            plugin_memory((size_t)(block > MAX_BLOCK ? block : MAX_BLOCK), sizeof(double));
    a->changed = plugin_memory((size_t)columns, sizeof(int));
    a->theta_new = plugin_memory((size_t)a->model.parameters, sizeof(double));
    a->step = plugin_memory((size_t)a->model.parameters, sizeof(double));
    a->place = plugin_memory((size_t)a->model.parameters, sizeof(double));
    for (int k = 0; k < a->parts; ++k) {
        struct part *part = a->part + k;
        if (part->kind != PART_CELLS) continue;
        /* an odd number of margins is made even by a cell that nobody leaves */
        const size_t own = (size_t)part->stat.touched * records, touched = own + records;
        part->cell_before = plugin_memory(touched, sizeof(int));
        part->cell_after = plugin_memory(touched, sizeof(int));
        for (size_t i = own; i < touched; ++i)
            part->cell_before[i] = part->cell_after[i] = part->stat.size;
        a->counts_alone = a->parts == 1;
        for (int j = 0; j < a->cells; ++j)
            if (a->weight[j] != a->weight[0]) a->counts_alone = 0;
        a->listed = plugin_memory(records, sizeof(int));
        a->by = plugin_memory(touched, sizeof(double));
    }
    count_work(a);
}

/* ---- blocks and chunks ----------------------------------------------------- */

static const double *const *read_only(double *const *x) { return (const double *const *)x; }

/* points x_at at the block that starts there; returns its number of records */
static int block_at(struct augment *a, ptrdiff_t start, int most) {
    for (int v = 0; v < a->model.columns; ++v) a->x_at[v] = a->x + v * a->stride + start;
    return (int)(a->n - start < most ? a->n - start : most);
}

/* A plug-in takes at most MAX_BLOCK records at a time, unless it wants all. */
static int chunk_of(int whole, int left) { return whole || left < MAX_BLOCK ? left : MAX_BLOCK; }

static void shift_columns(const struct augment *a, double *const *x, int start, double **out) {
    for (int v = 0; v < a->model.columns; ++v) out[v] = x[v] + start;
}

/* the variables of one statistic from record `start` of a block on */
static const double *const *view_of(struct augment *a, const struct part *part,
                                    const double *const *x, int start) {
    for (int v = 0; v < part->stat.columns; ++v) a->view[v] = x[part->column[v]] + start;
    return a->view;
}

/* proposals that keep the share rho of the innovations of x_at */
static void propose(struct augment *a, double rho, int m, double *const *x_new) {
    const struct model *model = &a->model;
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = chunk_of(model->whole, m - start);
        shift_columns(a, x_new, start, a->to_chunk);
        shift_columns(a, a->x_at, start, a->at_chunk);
        if (rho > 0)
            model->class->perturb(model->self, rho, a->rng, chunk, read_only(a->at_chunk),
                                  a->to_chunk);
        else
            model->class->rrecords(model->self, a->rng, chunk, a->to_chunk);
    }
}

/* the same from innovations that are drawn already */
static void form(struct augment *a, int m) {
    for (int k = 0; k < a->model.innovations; ++k)
        a->column_of[k] = a->innovation + (size_t)k * PAD_LANES(m);
    a->model.class->form(a->model.self, m, a->column_of, a->x_new);
}

/* c += the complete-data statistic of the block; `latent`: with variables of its
 * records that the model needs and this draws */
static void add_complete(struct augment *a, int m, int latent, double *c) {
    const struct model *model = &a->model;
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = chunk_of(model->whole, m - start);
        shift_columns(a, a->x_at, start, a->at_chunk);
        if (model->class->add) model->class->add(model->self, chunk, read_only(a->at_chunk), c);
        if (latent && model->class->add_latent)
            model->class->add_latent(model->self, a->rng, chunk, read_only(a->at_chunk),
                                     a->complete);
    }
}

/* ---- energy: minus the log noise density ------------------------------------- */

static double kernel_energy(enum kernel kernel, int size, const double *residual) {
    double energy = 0;
    if (kernel == KERNEL_ABSOLUTE)
        for (int j = 0; j < size; ++j) energy += fabs(residual[j]);
    else
        for (int j = 0; j < size; ++j) energy += 0.5 * residual[j] * residual[j];
    return energy;
}

static double dense_energy(const struct augment *a, const double *residual) {
    return kernel_energy(KERNEL_ABSOLUTE, a->absolute, residual) +
           kernel_energy(KERNEL_SQUARED, a->separable - a->absolute, residual + a->absolute);
}

/* of the totals whose noise has a density of its own */
static double density_energy(const struct augment *a, const double *residual) {
    double energy = 0;
    for (int k = 0; k < a->parts && a->separable < a->dense; ++k) {
        const struct part *part = a->part + k;
        if (part->kind != PART_DENSE || part->kernel != KERNEL_DENSITY) continue;
        double value;
        part->density.log_density(part->density.self, 1, 1, residual + part->offset, &value);
        energy -= value;
    }
    return energy;
}

static double cells_energy(const struct augment *a, const double *residual) {
    double energy = 0;
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        if (part->kind == PART_CELLS)
            energy += kernel_energy(part->kernel, part->stat.size, residual + part->offset);
    }
    return energy;
}

/* extra[i] += sign * energy of one noisy value about t[i] */
static void add_value(enum kernel kernel, int m, double sign, double weight,
                      const double *restrict released, const double *restrict t,
                      double *restrict extra) {
    switch (kernel) {
    case KERNEL_ABSOLUTE:
        for (int i = 0; i < m; ++i) extra[i] += sign * fabs((released[i] - t[i]) * weight);
        break;
    case KERNEL_SQUARED:
        for (int i = 0; i < m; ++i) {
            const double r = (released[i] - t[i]) * weight;
            extra[i] += sign * 0.5 * r * r;
        }
        break;
    case KERNEL_MATCH:
        for (int i = 0; i < m; ++i) extra[i] += released[i] != t[i] ? sign * weight : 0;
        break;
    case KERNEL_DENSITY:
        break; /* not a sum over values, see add_local_density */
    }
}

/* the same for values whose noise has a density of its own; a->local holds the
 * block's components */
static void add_local_density(struct augment *a, const struct part *part, ptrdiff_t start, int m,
                              double sign, double *extra) {
    for (int j = 0; j < part->stat.size; ++j) {
        const double *released = part->local_released + j * a->n + start;
        double *t = a->local + (size_t)j * a->block;
        for (int i = 0; i < m; ++i) t[i] = released[i] - t[i];
    }
    part->density.log_density(part->density.self, m, a->block, a->local, a->path_log);
    for (int i = 0; i < m; ++i) extra[i] -= sign * a->path_log[i];
}

/* extra[i] += sign * energy of the local noise of record i of the block */
static void add_local(struct augment *a, ptrdiff_t start, int m, const double *const *x,
                      double sign) {
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        if (part->kind != PART_RECORDS) continue;
        const struct stat *stat = &part->stat;
        for (int at = 0, chunk; at < m; at += chunk) {
            chunk = chunk_of(stat->whole, m - at);
            stat->class->eval(stat->self, chunk, view_of(a, part, x, at), a->block, a->local);
            if (part->kernel == KERNEL_DENSITY) {
                add_local_density(a, part, start + at, chunk, sign, a->extra + at);
                continue;
            }
            for (int j = 0; j < stat->size; ++j)
                add_value(part->kernel, chunk, sign, part->local_weight[j],
                          part->local_released + j * a->n + start + at,
                          a->local + (size_t)j * a->block, a->extra + at);
        }
    }
}

static void clear_extra(struct augment *a) {
    memset(a->extra, 0, (size_t)a->block * sizeof(double));
}

/* totals of the block's records; local energy is returned */
static double add_totals(struct augment *a, ptrdiff_t start, int m, const double *const *x) {
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        if (part->kind == PART_RECORDS) continue;
        const struct stat *stat = &part->stat;
        double *total = a->total + part->offset + (part->kind == PART_CELLS ? a->dense : 0);
        for (int at = 0, chunk; at < m; at += chunk) {
            chunk = chunk_of(stat->whole, m - at);
            stat->class->total(stat->self, chunk, view_of(a, part, x, at), total);
        }
    }
    if (a->locals == 0) return 0;
    clear_extra(a);
    add_local(a, start, m, x, 1);
    return block_sum(m, a->extra);
}

static void residual_from_total(const struct augment *a, double *dense, double *cells) {
    for (int j = 0; j < a->dense; ++j) dense[j] = (a->released[j] - a->total[j]) * a->weight[j];
    for (int j = a->dense; j < a->dense + a->cells; ++j)
        cells[j - a->dense] = (a->released[j] - a->total[j]) * a->weight[j];
}

static void clear_total(struct augment *a) {
    memset(a->total, 0, (size_t)(a->dense + a->cells) * sizeof(double));
}

/* local energy of all records, whose block must fit the workspace */
static double local_energy(struct augment *a) {
    double energy = 0;
    if (a->locals == 0) return 0;
    for (ptrdiff_t start = 0; start < a->n; start += a->block) {
        const int m = block_at(a, start, a->block);
        clear_extra(a);
        add_local(a, start, m, read_only(a->x_at), 1);
        energy += block_sum(m, a->extra);
    }
    return energy;
}

double augment_energy(struct augment *a) {
    return dense_energy(a, a->residual) + density_energy(a, a->residual) +
           cells_energy(a, a->cell_residual) + local_energy(a);
}

/* records from f(. | theta) for the state's theta */
void augment_start(struct augment *a) {
    a->model.class->set(a->model.self, a->theta);
    clear_total(a);
    for (ptrdiff_t start = 0; start < a->n; start += a->block) {
        const int m = block_at(a, start, a->block);
        propose(a, 0, m, a->x_at);
        (void)add_totals(a, start, m, read_only(a->x_at));
    }
    residual_from_total(a, a->residual, a->cell_residual);
}

/* ---- a sweep: proposals and their statistics ---------------------------------- */

/* the components of a dense part, or the cells that a record touches */
static void evaluate(struct augment *a, const struct part *part, int m, const double *const *x,
                     double *t, int *index) {
    const struct stat *stat = &part->stat;
    for (int at = 0, chunk; at < m; at += chunk) {
        chunk = chunk_of(stat->whole, m - at);
        const double *const *view = view_of(a, part, x, at);
        if (part->kind == PART_DENSE)
            stat->class->eval(stat->self, chunk, view, a->block, t + at);
        else
            stat->class->cells(stat->self, chunk, view, a->block, index + at);
    }
}

/* change = (change - before) * weight */
VECTOR_CLONES static void subtract(int m, double weight, const double *restrict before,
                                   double *restrict change) {
    FOR_RECORDS(i, m) change[i] = (change[i] - before[i]) * weight;
}

/* Turns components round, two at a time: the acceptance pass reads those of a
 * record side by side. `width` is even. */
VECTOR_CLONES static void turn_round(int m, int size, int stride, const double *restrict change,
                                     int width, double *restrict row) {
    for (int j = 0; j < size; j += 2) {
        const double *restrict first = change + (size_t)j * stride;
        const double *restrict second = first + stride;
        double *restrict out = row + j;
#if HAS_LANES
        for (int i = 0; i < m; i += 2, out += 2 * width) {
            const pair a = PAIR_LOAD(first + i), b = PAIR_LOAD(second + i);
            PAIR_STORE(out, PAIR_OF(a, 0, b, 0));
            PAIR_STORE(out + width, PAIR_OF(a, 1, b, 1));
        }
#else
        for (int i = 0; i < m; ++i, out += width) {
            out[0] = first[i];
            out[1] = second[i];
        }
#endif
    }
}

/* rows of the only dense part by its own means */
static int direct_changes(struct augment *a, const struct part *part, int m) {
    const struct stat *stat = &part->stat;
    if (a->dense_parts > 1 || !stat->class->changes || m > MAX_BLOCK) return 0;
    for (int v = 0; v < stat->columns; ++v) a->view_new[v] = a->x_new[part->column[v]];
    return stat->class->changes(stat->self, m, view_of(a, part, read_only(a->x_at), 0), a->view_new,
                                a->weight, a->dense, a->diff);
}

/* What the proposals of a block would change: residuals of dense components,
 * record after record, and cells. */
static void find_changes(struct augment *a, int m) {
    const double *const *x = read_only(a->x_at), *const *x_new = read_only(a->x_new);
    int direct = 0;
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        if (part->kind == PART_CELLS) {
            evaluate(a, part, m, x, NULL, part->cell_before);
            evaluate(a, part, m, x_new, NULL, part->cell_after);
        } else if (part->kind == PART_DENSE && !(direct = direct_changes(a, part, m))) {
            double *change = a->change + (size_t)part->offset * a->block;
            evaluate(a, part, m, x, a->before, NULL);
            evaluate(a, part, m, x_new, change, NULL);
            for (int j = 0; j < part->stat.size; ++j)
                subtract(m, a->weight[part->offset + j], a->before + (size_t)j * a->block,
                         change + (size_t)j * a->block);
        }
    }
    if (!direct) turn_round(m, a->used, a->block, a->change, a->dense, a->diff);
}

/* ---- the sequential pass -------------------------------------------------------- */

/* E > step holds for every E where the step is not positive, so that such a
 * record leaves its threshold, which nobody has looked at, to the next one.
 * Moves the ones left to the front and tops them up to `count`. */
static void draw_thresholds(struct augment *a, double temper, int count) {
    double *threshold = a->threshold;
    const int left = a->drawn - a->taken, more = count - left;
    memmove(threshold, threshold + a->taken, (size_t)left * sizeof(double));
    a->taken = 0;
    a->drawn = left;
    if (more <= 0) return;
    rng_fill_exponential(a->rng, more, threshold + left);
    if (temper < 1)
        for (int i = left; i < count; ++i) threshold[i] /= temper;
    a->drawn = count;
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

/* Change of energy when a record leaves one cell and enters another. */
static INLINE double step_cells(const struct augment *a, const struct part *part, int i) {
    const double *residual = a->cell_residual + part->offset;
    const double *weight = a->weight + a->dense + part->offset;
    double step = 0;
    for (int k = 0; k < part->stat.touched; ++k) {
        const int from = part->cell_before[k * a->block + i];
        const int to = part->cell_after[k * a->block + i];
        if (from == to) continue; /* changes by 0, not by +1 and -1 */
        const double leave = residual[from], enter = residual[to];
        const double left = leave + weight[from], entered = enter - weight[to];
        if (part->kernel == KERNEL_ABSOLUTE)
            step += (fabs(left) - fabs(leave)) + (fabs(entered) - fabs(enter));
        else
            step += 0.5 * ((left * left - leave * leave) + (entered * entered - enter * enter));
    }
    return step;
}

static INLINE void change_cells(struct augment *a, const struct part *part, int i) {
    double *residual = a->cell_residual + part->offset;
    const double *weight = a->weight + a->dense + part->offset;
    for (int k = 0; k < part->stat.touched; ++k) {
        const int from = part->cell_before[k * a->block + i];
        const int to = part->cell_after[k * a->block + i];
        if (from == to) continue;
        residual[from] += weight[from];
        residual[to] -= weight[to];
    }
}

/* What a pass over a block draws itself, see accept_drawing: thresholds, and
 * `needed` innovations of the next block, `each` a record. */
struct draws {
    int each, needed;
    double slack; /* 1 / temper */
    double *drawn;
};

static INLINE void draw_innovations(struct augment *a, struct draws *draws, int count) {
    rng_fill(a->rng, a->model.innovation, count, draws->drawn);
    draws->drawn += count;
    draws->needed -= count;
}

/* a record's threshold; `draws` may be NULL */
static INLINE double next_threshold(struct augment *a, struct draws *draws, int taken) {
    if (!draws) return a->threshold[taken];
    const double threshold = rng_exponential(a->rng) * draws->slack;
    if (draws->needed >= draws->each) draw_innovations(a, draws, draws->each);
    return threshold;
}

/* The pass over a block. With E = -log(u) exponential, u < exp(-step) reads
 * step < E. `sparse` compiles the counts and local noise in; draws may be NULL. */
static INLINE void accept_records(struct augment *a, int m, int sparse, struct draws *draws) {
    const int width = a->dense, absolute = a->absolute;
    const double *diff = a->diff;
    double *residual = a->residual, *candidate = a->candidate;
    double energy = dense_energy(a, residual), most = a->most_energy_step;
    int taken = 0;
    for (int i = 0; i < m; ++i, diff += width) {
        const double limit = next_threshold(a, draws, taken);
        double proposed = 0;
        if (absolute > 0) proposed += step_absolute(absolute, residual, diff, candidate);
        if (absolute < width)
            proposed += step_squared(width - absolute, residual + absolute, diff + absolute,
                                     candidate + absolute);
        double step = proposed - energy;
        if (sparse) {
            step += a->extra[i];
            for (int k = 0; k < a->parts; ++k)
                if (a->part[k].kind == PART_CELLS) step += step_cells(a, a->part + k, i);
        }
        most = step > most ? step : most;
        taken += step > 0;
        const int accepted = draws && !sparse ? proposed <= energy + limit : step <= limit;
        a->gap[i] = accepted ? 0 : 1;
        if (accepted) {
            double *swap = residual;
            residual = candidate;
            candidate = swap;
            energy = proposed;
            if (sparse)
                for (int k = 0; k < a->parts; ++k)
                    if (a->part[k].kind == PART_CELLS) change_cells(a, a->part + k, i);
        }
    }
    a->residual = residual;
    a->candidate = candidate;
    a->most_energy_step = most;
    a->taken = taken;
    if (draws) draw_innovations(a, draws, draws->needed);
}

#if HAS_LANES
static INLINE void kernel_value(enum kernel kernel, const lanes *residual, lanes *value) {
    if (kernel == KERNEL_ABSOLUTE)
        *value = LANES_ABS(*residual);
    else
        *value = *residual * *residual;
}

static INLINE void add_kernel(enum kernel kernel, const lanes *residual, lanes *sum) {
    lanes value;
    kernel_value(kernel, residual, &value);
    *sum += value;
}

/* The same for up to four `vectors` of LANES dense components with one kernel.
 * The residual stays in registers: a record waits for the one before it no
 * longer than a subtraction takes, as long as the branch is foreseen. */
static INLINE void accept_lanes(struct augment *a, int m, int vectors, enum kernel kernel) {
    const double *restrict threshold = a->threshold, *restrict diff = a->diff;
    double *restrict residual = a->residual, *restrict gap = a->gap;
    int taken = 0;
    const lanes zero = {0};
    lanes r0 = LANES_LOAD(residual), r1 = zero, r2 = zero, r3 = zero;
    if (vectors > 1) r1 = LANES_LOAD(residual + LANES);
    if (vectors > 2) r2 = LANES_LOAD(residual + 2 * LANES);
    if (vectors > 3) r3 = LANES_LOAD(residual + 3 * LANES);
    double energy = dense_energy(a, residual), most = a->most_energy_step;
    for (int i = 0; i < m; ++i, diff += vectors * LANES) {
        lanes c0 = r0 - LANES_LOAD(diff), c1 = zero, c2 = zero, c3 = zero, sum = zero;
        add_kernel(kernel, &c0, &sum);
        if (vectors > 1) {
            c1 = r1 - LANES_LOAD(diff + LANES);
            add_kernel(kernel, &c1, &sum);
        }
        if (vectors > 2) {
            c2 = r2 - LANES_LOAD(diff + 2 * LANES);
            add_kernel(kernel, &c2, &sum);
        }
        if (vectors > 3) {
            c3 = r3 - LANES_LOAD(diff + 3 * LANES);
            add_kernel(kernel, &c3, &sum);
        }
        const double total = lanes_sum(&sum);
        const double proposed = kernel == KERNEL_ABSOLUTE ? total : 0.5 * total;
        const double step = proposed - energy;
        const double limit = threshold[taken];
        gap[i] = step - limit;
        most = step > most ? step : most;
        taken += step > 0;
        if (step <= limit) {
            r0 = c0, r1 = c1, r2 = c2, r3 = c3;
            energy = proposed;
        }
    }
    LANES_STORE(residual, r0);
    if (vectors > 1) LANES_STORE(residual + LANES, r1);
    if (vectors > 2) LANES_STORE(residual + 2 * LANES, r2);
    if (vectors > 3) LANES_STORE(residual + 3 * LANES, r3);
    a->most_energy_step = most;
    a->taken = taken;
}

static INLINE int accept_few(struct augment *a, int m, enum kernel kernel) {
    switch (a->dense / LANES) {
    case 1:
        accept_lanes(a, m, 1, kernel);
        return 1;
    case 2:
        accept_lanes(a, m, 2, kernel);
        return 1;
    case 3:
        accept_lanes(a, m, 3, kernel);
        return 1;
    case 4:
        accept_lanes(a, m, 4, kernel);
        return 1;
    default:
        return 0;
    }
}

/* the sum where lanes from `summed` on are 0 */
static INLINE double sum_of_few(int summed, const lanes *sum) {
    if (summed == 1) return (*sum)[0];
    return summed == 2 ? (*sum)[0] + (*sum)[1] : lanes_sum(sum);
}

/* The same with draws in between. A record waits for the one before it, and for a
 * rejection that was not foreseen even longer; here no branch depends on a
 * decision, and what would be drawn later is drawn while the pass waits: the
 * record's own threshold, and the innovations of the next block, one a vector. */
static INLINE void accept_drawing(struct augment *a, const struct draws *draws, int m, int vectors,
                                  int summed, enum kernel kernel, enum rng_kind kind) {
    enum { MOST = 4 };
    const double *restrict diff = a->diff, slack = draws->slack;
    double *restrict residual = a->residual, *restrict gap = a->gap;
    double *restrict drawn = a->innovation;
    double most = a->most_energy_step;
    int needed = draws->needed;
    struct rng rng = *a->rng; /* its address goes nowhere: it stays in registers */
    lanes r[MOST], c[MOST], energy = LANES_OF(dense_energy(a, residual));
    const lanes zero = {0}, one = {1, 1, 1, 1};
    UNROLL for (int v = 0; v < vectors; ++v) r[v] = LANES_LOAD(residual + v * LANES);
    for (int i = 0; i < m; ++i, diff += vectors * LANES) {
        const double threshold = rng_exponential_inline(&rng) * slack;
        const lanes limit = energy + LANES_OF(threshold);
        if (LIKELY(needed >= vectors)) {
            UNROLL for (int v = 0; v < vectors; ++v) drawn[v] = rng_inline(&rng, kind);
            drawn += vectors;
            needed -= vectors;
        }
        lanes sum;
        UNROLL for (int v = 0; v < vectors; ++v) {
            c[v] = r[v] - LANES_LOAD(diff + v * LANES);
            if (v == 0)
                kernel_value(kernel, c + v, &sum);
            else
                add_kernel(kernel, c + v, &sum);
        }
        const double total = sum_of_few(summed, &sum);
        const double proposed = kernel == KERNEL_ABSOLUTE ? total : 0.5 * total;
        const double step = proposed - energy[0];
        const lanes_bits accepted = LANES_OF(proposed) <= limit;
        most = step > most ? step : most;
        gap[i] = LANES_SELECT(accepted, zero, one)[0];
        energy = LANES_SELECT(accepted, LANES_OF(proposed), energy);
        UNROLL for (int v = 0; v < vectors; ++v) r[v] = LANES_SELECT(accepted, c[v], r[v]);
    }
    UNROLL for (int v = 0; v < vectors; ++v) LANES_STORE(residual + v * LANES, r[v]);
    a->most_energy_step = most;
    *a->rng = rng;
    rng_fill(a->rng, kind, needed, drawn);
}

/* for one or two totals: of any kind */
static INLINE void accept_kinds(struct augment *a, const struct draws *draws, int m, int summed,
                                enum kernel kernel) {
    switch (a->model.innovation) {
    case RNG_UNIFORM:
        accept_drawing(a, draws, m, 1, summed, kernel, RNG_UNIFORM);
        break;
    case RNG_NORMAL:
        accept_drawing(a, draws, m, 1, summed, kernel, RNG_NORMAL);
        break;
    case RNG_EXPONENTIAL:
        accept_drawing(a, draws, m, 1, summed, kernel, RNG_EXPONENTIAL);
        break;
    }
}

static INLINE int accept_few_drawing(struct augment *a, const struct draws *draws, int m,
                                     enum kernel kernel) {
    if (a->used == 1) {
        accept_kinds(a, draws, m, 1, kernel);
        return 1;
    }
    if (a->used == 2) {
        accept_kinds(a, draws, m, 2, kernel);
        return 1;
    }
    if (a->model.innovation != RNG_NORMAL) return 0;
    switch (draws->each) {
    case 1:
        accept_drawing(a, draws, m, 1, LANES, kernel, RNG_NORMAL);
        return 1;
    case 2:
        accept_drawing(a, draws, m, 2, LANES, kernel, RNG_NORMAL);
        return 1;
    case 3:
        accept_drawing(a, draws, m, 3, LANES, kernel, RNG_NORMAL);
        return 1;
    case 4:
        accept_drawing(a, draws, m, 4, LANES, kernel, RNG_NORMAL);
        return 1;
    default:
        return 0;
    }
}
#endif

VECTOR_CLONES static void accept_block(struct augment *a, int m) {
    const int sparse = a->cells > 0 || a->locals > 0;
    int done = 0;
#if HAS_LANES
    if (!sparse && a->absolute == a->dense) done = accept_few(a, m, KERNEL_ABSOLUTE);
    if (!sparse && a->absolute == 0) done = accept_few(a, m, KERNEL_SQUARED);
#endif
    if (!done && sparse)
        accept_records(a, m, 1, NULL);
    else if (!done)
        accept_records(a, m, 0, NULL);
}

VECTOR_CLONES static int accept_lanes_drawing(struct augment *a, const struct draws *draws, int m) {
#if HAS_LANES
    if (a->cells > 0 || a->locals > 0) return 0;
    if (a->absolute == a->dense) return accept_few_drawing(a, draws, m, KERNEL_ABSOLUTE);
    if (a->absolute == 0) return accept_few_drawing(a, draws, m, KERNEL_SQUARED);
#else
    (void)a, (void)draws, (void)m;
#endif
    return 0;
}

static void accept_block_drawing(struct augment *a, struct draws *draws, int m) {
    if (accept_lanes_drawing(a, draws, m)) return;
    if (a->cells > 0 || a->locals > 0)
        accept_records(a, m, 1, draws);
    else
        accept_records(a, m, 0, draws);
}

/* ---- the same where noise has a density of its own ---------------------------------- */

/* One record, whose densities change the energy by `change`. Where the state has
 * density 0, every step is taken until it has not. */
static int accept_one(struct augment *a, struct draws *draws, int i, double change) {
    const double *diff = a->diff + (size_t)i * a->dense;
    double *residual = a->residual, *candidate = a->candidate;
    const int absolute = a->absolute, separable = a->separable;
    double step = change + a->extra[i] - dense_energy(a, residual);
    step += step_absolute(absolute, residual, diff, candidate);
    step += step_squared(separable - absolute, residual + absolute, diff + absolute,
                         candidate + absolute);
    for (int j = separable; j < a->dense; ++j) candidate[j] = residual[j] - diff[j];
    for (int k = 0; k < a->parts; ++k)
        if (a->part[k].kind == PART_CELLS) step += step_cells(a, a->part + k, i);
    if (step > a->most_energy_step) a->most_energy_step = step;
    const int accepted = !(step > next_threshold(a, draws, a->taken));
    a->gap[i] = accepted ? 0 : 1;
    a->taken += step > 0;
    if (!accepted) return 0;
    a->residual = candidate;
    a->candidate = residual;
    for (int k = 0; k < a->parts; ++k)
        if (a->part[k].kind == PART_CELLS) change_cells(a, a->part + k, i);
    return 1;
}

/* path_energy[k] of the state (k = 0) and of what it would be after record
 * `first` + k - 1, if until there all are accepted, or none is. */
static void foresee(struct augment *a, int first, int count, int accepting) {
    const int separable = a->separable;
    for (int j = separable; j < a->dense; ++j) {
        double *path = a->path + (size_t)(j - separable) * PATH;
        path[0] = a->residual[j];
        for (int k = 0; k < count; ++k)
            path[k + 1] = path[accepting ? k : 0] - a->diff[(size_t)(first + k) * a->dense + j];
    }
    memset(a->path_energy, 0, PATH * sizeof(double));
    for (int k = 0; k < a->parts; ++k) {
        const struct part *part = a->part + k;
        if (part->kind != PART_DENSE || part->kernel != KERNEL_DENSITY) continue;
        part->density.log_density(part->density.self, count + 1, PATH,
                                  a->path + (size_t)(part->offset - separable) * PATH, a->path_log);
        for (int i = 0; i <= count; ++i) a->path_energy[i] -= a->path_log[i];
    }
}

/* A call of a density costs far more than a record. So the decisions of several
 * records are foreseen, all accepted or none, and their densities asked for in one
 * call; they are then decided one by one until one turns out otherwise. Exact:
 * what is foreseen decides about the number of calls, not about the records. */
static void accept_foreseen(struct augment *a, struct draws *draws, int m) {
    for (int i = 0; i < m;) {
        const int accepting = a->foreseen > 0.5;
        const double miss = accepting ? 1 - a->foreseen : a->foreseen;
        const double run = 2 / (miss + 2.0 / MOST_FORESEEN); /* twice the expected one */
        const int ahead = run < 1 ? 1 : (int)run, count = ahead < m - i ? ahead : m - i;
        foresee(a, i, count, accepting);
        for (int k = 0, right = 1; k < count && right; ++k, ++i) {
            const double change = a->path_energy[k + 1] - a->path_energy[accepting ? k : 0];
            const int accepted = accept_one(a, draws, i, change);
            a->foreseen += 0.05 * (accepted - a->foreseen);
            right = accepted == accepting;
        }
    }
    if (draws) draw_innovations(a, draws, draws->needed);
}

/* ---- the same where counts of one statistic, with one scale, are all there is ------- */

/* by[i] = how far the residuals of a record's cells move: not at all where it
 * would stay in its cell. So the pass needs no branch that cannot be predicted. */
static INLINE void compare_cells(int m, double weight, const int *restrict from,
                                 const int *restrict to, double *restrict by) {
    FOR_RECORDS(i, m) by[i] = from[i] == to[i] ? 0 : weight;
}

/* With one margin many proposals change nothing at all: lists the others. */
static INLINE int list_changes(int m, const int *restrict from, const int *restrict to,
                               int *restrict listed) {
    int count = 0;
    for (int i = 0; i < m; ++i) {
        listed[count] = i;
        count += from[i] != to[i];
    }
    return count;
}

static INLINE double kernel_change(enum kernel kernel, double old, double change) {
    const double fresh = old + change;
    return kernel == KERNEL_ABSOLUTE ? fabs(fresh) - fabs(old) : 0.5 * change * (fresh + old);
}

/* A record's change of energy, in lanes: leaving the cell of an even margin,
 * entering its other one, leaving that of an odd margin, entering. */
static INLINE void accept_changes(struct augment *a, enum kernel kernel, int one, int count) {
    const struct part *part = a->part;
    const int touched = one ? 1 : part->stat.touched, stride = a->block;
    const int *from = part->cell_before, *to = part->cell_after;
    const double weight = a->weight[0], *by = a->by, *threshold = a->threshold;
    double *restrict residual = a->cell_residual, *restrict gap = a->gap;
    double most = a->most_energy_step;
    int taken = 0;
    for (int j = 0; j < count; ++j) {
        const int i = one ? a->listed[j] : j;
        double sum[4] = {0};
        for (int k = 0, at = i; k < touched; ++k, at += stride) {
            const double change = one ? weight : by[at];
            sum[2 * (k & 1)] += kernel_change(kernel, residual[from[at]], change);
            sum[2 * (k & 1) + 1] += kernel_change(kernel, residual[to[at]], -change);
        }
        const double step = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        most = step > most ? step : most;
        const double excess = step - threshold[taken];
        taken += step > 0;
        gap[i] = excess;
        if (excess > 0) continue;
        for (int k = 0, at = i; k < touched; ++k, at += stride) {
            const double change = one ? weight : by[at];
            residual[from[at]] += change;
            residual[to[at]] -= change;
        }
    }
    a->most_energy_step = most;
    a->taken = taken;
}

#if HAS_LANES
enum { MOST_PAIRS = 4 };
/* shares of accepted records between which a branch costs more than it saves */
static const double RARELY = 0.35, MOSTLY = 0.8;

/* The same for a few pairs of margins; what the residuals would be stays in
 * registers until it is known whether they will. `guess`: with a branch, for
 * decisions that are nearly always the same. */
static INLINE void accept_pairs(struct augment *a, enum kernel kernel, int pairs, int guess,
                                int m) {
    const int *before = a->part->cell_before, *after = a->part->cell_after, stride = a->block;
    const double *threshold = a->threshold;
    double *restrict residual = a->cell_residual, *restrict gap = a->gap;
    double most = a->most_energy_step;
    int taken = 0;
    for (int i = 0; i < m; ++i) {
        const int *from = before + i, *to = after + i;
        const double *by = a->by + i;
        lanes old[MOST_PAIRS], fresh[MOST_PAIRS], sum;
        UNROLL for (int p = 0; p < pairs; ++p) {
            const int even = 2 * p * stride, odd = even + stride;
            old[p] = (lanes){residual[from[even]], residual[to[even]], residual[from[odd]],
                             residual[to[odd]]};
            const lanes change = {by[even], -by[even], by[odd], -by[odd]};
            fresh[p] = old[p] + change;
            const lanes more = kernel == KERNEL_ABSOLUTE
                                   ? LANES_ABS(fresh[p]) - LANES_ABS(old[p])
                                   : LANES_OF(0.5) * change * (fresh[p] + old[p]);
            if (p == 0)
                sum = more;
            else
                sum += more;
        }
        const double step = lanes_sum(&sum), limit = threshold[taken];
        gap[i] = step - limit;
        most = step > most ? step : most;
        taken += step > 0;
        if (guess && step > limit) continue;
        const lanes_bits refused = LANES_OF(step) > LANES_OF(limit);
        UNROLL for (int p = 0; p < pairs; ++p) {
            const int even = 2 * p * stride, odd = even + stride;
            const lanes next = guess ? fresh[p] : LANES_SELECT(refused, old[p], fresh[p]);
            residual[from[even]] = next[0];
            residual[to[even]] = next[1];
            residual[from[odd]] = next[2];
            residual[to[odd]] = next[3];
        }
    }
    a->most_energy_step = most;
    a->taken = taken;
}

static INLINE void accept_constant_pairs(struct augment *a, enum kernel kernel, int pairs, int m) {
    if (a->foreseen < RARELY || a->foreseen > MOSTLY)
        accept_pairs(a, kernel, pairs, 1, m);
    else
        accept_pairs(a, kernel, pairs, 0, m);
}

static INLINE int accept_few_pairs(struct augment *a, enum kernel kernel, int m) {
    const int pairs = (a->part->stat.touched + 1) / 2;
    if (pairs == 1) accept_constant_pairs(a, kernel, 1, m);
    if (pairs == 2) accept_constant_pairs(a, kernel, 2, m);
    if (pairs == 3) accept_constant_pairs(a, kernel, 3, m);
    if (pairs == 4) accept_constant_pairs(a, kernel, 4, m);
    return pairs <= MOST_PAIRS;
}
#else
#define accept_few_pairs(a, kernel, m) 0
#endif

/* A record that is known to change nothing is accepted without a random number. */
static INLINE void accept_one_margin(struct augment *a, enum kernel kernel, double temper, int m) {
    const struct part *part = a->part;
    double *restrict gap = a->gap;
    FOR_RECORDS(i, m) gap[i] = 0;
    const int count = list_changes(m, part->cell_before, part->cell_after, a->listed);
    draw_thresholds(a, temper, count);
    accept_changes(a, kernel, 1, count);
}

static INLINE void accept_margins(struct augment *a, enum kernel kernel, double temper, int m) {
    const struct part *part = a->part;
    for (int at = 0; at < part->stat.touched * a->block; at += a->block)
        compare_cells(m, a->weight[0], part->cell_before + at, part->cell_after + at, a->by + at);
    draw_thresholds(a, temper, m);
    if (!accept_few_pairs(a, kernel, m)) accept_changes(a, kernel, 0, m);
}

VECTOR_CLONES static void accept_counts(struct augment *a, double temper, int m) {
    const int absolute = a->part->kernel == KERNEL_ABSOLUTE, one = a->part->stat.touched == 1;
    if (absolute && one)
        accept_one_margin(a, KERNEL_ABSOLUTE, temper, m);
    else if (absolute)
        accept_margins(a, KERNEL_ABSOLUTE, temper, m);
    else if (one)
        accept_one_margin(a, KERNEL_SQUARED, temper, m);
    else
        accept_margins(a, KERNEL_SQUARED, temper, m);
}

/* `accepted` has no padding */
VECTOR_CLONES static int count_accepted(int m, const double *restrict gap, int *restrict accepted) {
    int part[LANES] = {0};
    const int whole = m & ~(LANES - 1);
    for (int i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; ++l) {
            const int hit = gap[i + l] <= 0;
            accepted[i + l] += hit;
            part[l] += hit;
        }
    for (int i = whole; i < m; ++i) {
        const int hit = gap[i] <= 0;
        accepted[i] += hit;
        part[0] += hit;
    }
    return part[0] + part[1] + part[2] + part[3];
}

VECTOR_CLONES static void keep_accepted(int m, const double *restrict gap,
                                        const double *restrict x_new, double *restrict x) {
    FOR_RECORDS(i, m) {
        const double old = x[i], fresh = x_new[i];
        x[i] = gap[i] <= 0 ? fresh : old;
    }
}

/* One visit of the records from `first` to before `end`, keeping the share rho of
 * their innovations; returns how many proposals were accepted. The noise density
 * enters with the exponent `temper`. */
static ptrdiff_t visit(struct augment *a, ptrdiff_t first, ptrdiff_t end, double rho,
                       double temper) {
    ptrdiff_t accepted = 0;
    const struct model_class *class = a->model.class;
    a->taken = a->drawn = 0;
    class->set(a->model.self, a->theta);
    const int ahead = a->draws_ahead && !a->counts_alone && rho == 0 &&
                      (!class->forms || class->forms(a->model.self));
    const int innovations = a->model.innovations;
    for (ptrdiff_t start = first; start < end; start += a->block) {
        const int most = (int)(end - start < a->block ? end - start : a->block);
        const int m = block_at(a, start, most);
        if (ahead && start > first)
            form(a, m);
        else
            propose(a, rho, m, a->x_new);
        if (!a->counts_alone && !ahead) draw_thresholds(a, temper, m);
        find_changes(a, m);
        if (a->locals > 0) {
            clear_extra(a);
            add_local(a, start, m, read_only(a->x_at), -1);
            add_local(a, start, m, read_only(a->x_new), 1);
        }
        const ptrdiff_t left = end - start - m;
        struct draws draws = {
            .each = a->dense / LANES,
            .needed = innovations * PAD_LANES((int)(left < a->block ? left : a->block)),
            .slack = 1 / temper,
            .drawn = a->innovation,
        };
        if (a->counts_alone)
            accept_counts(a, temper, m);
        else if (a->separable < a->dense)
            accept_foreseen(a, ahead ? &draws : NULL, m);
        else if (ahead)
            accept_block_drawing(a, &draws, m);
        else
            accept_block(a, m);
        const int hits = count_accepted(m, a->gap, a->accepted + start);
        accepted += hits;
        if (a->counts_alone) a->foreseen = (double)hits / m;
        for (int v = 0; v < a->model.columns; ++v)
            keep_accepted(m, a->gap, a->x_new[v], a->x_at[v]);
        if (end - first == a->n) add_complete(a, m, 1, a->complete);
    }
    return accepted;
}

/* the complete-data statistic of the records as they are */
static void take_complete(struct augment *a, int latent, double *c) {
    memset(c, 0, (size_t)a->model.complete * sizeof(double));
    for (ptrdiff_t start = 0; start < a->n; start += a->block)
        add_complete(a, block_at(a, start, a->block), latent, c);
}

/* Of a sweep in `parts` parts, one iteration each, the part whose turn it is at
 * iteration `at` after warmup; all have whole lanes but the last. Returns the share
 * of its proposals that were accepted. */
static double sweep_part(struct augment *a, int parts, int at, double rho, double temper) {
    const ptrdiff_t length = PAD_LANES((a->n + parts - 1) / parts);
    const ptrdiff_t first = at % ((a->n + length - 1) / length) * length;
    const ptrdiff_t end = a->n - first < length ? a->n : first + length;
    memset(a->complete, 0, (size_t)a->model.complete * sizeof(double));
    const ptrdiff_t accepted = visit(a, first, end, rho, temper);
    if (end - first < a->n) take_complete(a, 1, a->complete);
    return (double)accepted / (double)(end - first);
}

/* ---- non-centred moves ------------------------------------------------------------ */

/* The block's records under theta_new: columns that do not change are not
 * copied. */
static const double *const *moved_block(struct augment *a, ptrdiff_t start, int m) {
    const struct model *model = &a->model;
    double **to = a->x_new;
    if (a->moved_x) {
        to = a->to_chunk;
        for (int v = 0; v < model->columns; ++v) to[v] = a->moved_x + v * a->stride + start;
    }
    model->class->move(model->self, a->rng, m, read_only(a->x_at), to);
    for (int v = 0; v < model->columns; ++v) a->moved[v] = a->changed[v] ? to[v] : a->x_at[v];
    return a->moved;
}

/* the moved records' residuals as candidates; their energy is returned */
static double moved_energy(struct augment *a) {
    double energy = 0;
    clear_total(a);
    const int most = a->locals > 0 ? a->block : a->move_block;
    for (ptrdiff_t start = 0; start < a->n; start += most) {
        const int m = block_at(a, start, most);
        energy += add_totals(a, start, m, moved_block(a, start, m));
    }
    residual_from_total(a, a->candidate, a->candidate_cells);
    return energy + dense_energy(a, a->candidate) + density_energy(a, a->candidate) +
           cells_energy(a, a->candidate_cells);
}

/* `innovations`: the stream as it was when they were moved */
static void keep_moved(struct augment *a, const struct rng *innovations) {
    const int most = a->locals > 0 ? a->block : a->move_block;
    if (!a->moved_x) *a->rng = *innovations; /* the same records once more, now to keep */
    for (ptrdiff_t start = 0; start < a->n; start += most) {
        const int m = block_at(a, start, most);
        if (!a->moved_x) (void)moved_block(a, start, m);
        for (int v = 0; v < a->model.columns; ++v)
            if (a->changed[v])
                memcpy(a->x_at[v], a->moved_x ? a->moved_x + v * a->stride + start : a->x_new[v],
                       (size_t)m * sizeof(double));
    }
    memcpy(a->residual, a->candidate, (size_t)a->dense * sizeof(double));
    memcpy(a->cell_residual, a->candidate_cells, (size_t)a->cells * sizeof(double));
}

static void gather_moving(const struct augment *a, double *out) {
    for (int j = 0; j < a->model.moving; ++j) out[j] = a->theta[a->model.moves[j]];
}

/* Needs the model set at theta, and log_prior and energy of the state. */
static void pass(struct augment *a, enum pass_kind kind, int learning) {
    const struct model_class *class = a->model.class;
    void *self = a->model.self;
    const int moving = a->model.moving;
    gather_moving(a, a->place);
    const double back_over_forth = adapt_propose(&a->adapt, kind, a->place, a->rng, a->step);
    memcpy(a->theta_new, a->theta, (size_t)a->model.parameters * sizeof(double));
    for (int j = 0; j < moving; ++j) a->theta_new[a->model.moves[j]] += a->step[j];
    const double threshold = rng_exponential(a->rng);

    double log_ratio = -INFINITY, log_prior = class->dprior(self, a->theta_new), energy = 0;
    double work = PASS;
    const struct rng innovations = *a->rng;
    if (isfinite(log_prior)) {
        class->set_move(self, a->theta_new, a->changed);
        work = a->pass_work + move_work(a);
        energy = moved_energy(a);
        log_ratio =
            log_prior - a->log_prior + (a->energy - energy) * *a->adapt.temper + back_over_forth;
    }
    const int accept = -log_ratio < threshold;
    if (accept) {
        work += a->moved_x ? copy_work(a) : move_work(a);
        keep_moved(a, &innovations);
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

/* ---- an iteration -------------------------------------------------------------------- */

/* The non-centred passes of an iteration. */
static void interweave(struct augment *a, int learning, int looking) {
    int count[PASS_KINDS], total = 0;
    adapt_plan(&a->adapt, learning, looking, count);
    for (int k = 0; k < PASS_KINDS; ++k) total += count[k];
    if (total == 0) return;
    a->model.class->set(a->model.self, a->theta);
    a->log_prior = a->model.class->dprior(a->model.self, a->theta);
    a->energy = augment_energy(a);
    for (int k = 0; k < PASS_KINDS; ++k)
        for (int i = 0; i < count[k]; ++i) pass(a, (enum pass_kind)k, learning);
}

int augment_iterate(struct augment *a, int iteration, int warmup, double *accepted) {
    const struct model_class *class = a->model.class;
    struct adapt *adapt = &a->adapt;
    const int learning = iteration < warmup && !a->plain;
    const int looking = learning && adapt_looks(adapt, iteration);
    const int can_refresh = !a->plain && class->perturb && a->model.complete > 0;
    if (iteration == 0) {
        const double values = a->dense + a->cells + (double)a->locals * (double)a->n;
        adapt_anneal(adapt, augment_energy(a), values, warmup);
    }
    interweave(a, learning, looking);

    const int trying = learning && can_refresh && adapt_tries_refresh(adapt, iteration);
    const int refresh = can_refresh ? adapt_choose_refresh(adapt, iteration, trying, a->rng) : 0;
    if (trying) take_complete(a, 0, a->complete_before);
    const int parts = iteration < warmup ? 1 : (int)*adapt->parts;
    const double visit_work = adapt->costs.visit + (refresh > 0 ? adapt->costs.refresh : 0);
    const double work = visit_work / parts + adapt->costs.complete;
    *accepted = sweep_part(a, parts, iteration - warmup, adapt_refresh[refresh], *adapt->temper);
    a->work += work;
    if (trying) {
        if (class->add_latent) take_complete(a, 0, a->complete_after);
        adapt_saw_refresh(adapt, refresh, a->complete_before,
                          class->add_latent ? a->complete_after : a->complete);
    }

    double *before = a->step, *after = a->place;
    if (learning) gather_moving(a, before);
    const struct record_columns records = {.x = a->x, .n = a->n, .stride = a->stride};
    const int status =
        class->rtheta ? class->rtheta(a->model.self, a->complete, (double)a->n, a->rng, a->theta)
                      : update_theta(&a->update, &records, a->rng, iteration < warmup, a->theta);
    if (status != PLUGIN_OK || iteration >= warmup) return status;
    if (learning) {
        gather_moving(a, after);
        adapt_saw_sweep(adapt, before, after, work);
    }
    adapt_cool(adapt);
    const enum window window =
        learning ? adapt_window_after(adapt, iteration, warmup) : WINDOW_GOES_ON;
    if (window != WINDOW_GOES_ON) adapt_close_window(adapt, window);
    if (iteration + 1 == warmup) {
        if (learning) adapt_close_window(adapt, WARMUP_ENDS);
        /* counters speak of what follows */
        *adapt->temper = 1;
        a->work = 0;
        memset(a->accepted, 0, (size_t)a->n * sizeof(int));
        a->most_energy_step = -INFINITY;
    }
    return PLUGIN_OK;
}
