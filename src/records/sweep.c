/* Method "augment": a sweep over the records. For the target and the two running vectors see
 * records/augment_chain.c.
 *
 * Proposals and statistics of a block are drawn and evaluated vectorised; only the pass that
 * accepts (records/accept_pass.c) is sequential, and bound by its own latency. Where a model's
 * records are made of normals, uniforms or exponentials alone (from_innovations() in
 * contract/model_innovations.h), the innovations of the next block are drawn in the meantime.
 *
 * Cost per record: the model's draw, two evaluations of the statistic and
 * O(components) for the acceptance, O(touched) where the statistic is a table
 * of counts. No allocation, no R call in any loop.
 */
#include "records/augment_internal.h"

#include "base/lanes.h"
#include "contract/model_innovations.h"
#include "contract/model_refresh.h"
#include "contract/model_statistic.h"

/* ---- blocks and chunks ----------------------------------------------------- */

static void shift_columns(const struct augment *a, double *const *x, int start, double **out) {
    for (int v = 0; v < a->model.columns; ++v) out[v] = x[v] + start;
}

void augment_propose(struct augment *a, double rho, int m, double *const *x_new) {
    const struct model *model = &a->model;
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = augment_chunk(model->whole, m - start);
        shift_columns(a, x_new, start, a->block.to_chunk);
        shift_columns(a, a->block.x_at, start, a->block.at_chunk);
        if (rho > 0)
            model->refresh->refresh(model->self, rho, a->rng, chunk,
                                    augment_read_only(a->block.at_chunk), a->block.to_chunk);
        else
            model->class->rrecords(model->self, a->rng, chunk, a->block.to_chunk);
    }
}

/* the same from innovations that are drawn already */
static void from_innovations(struct augment *a, int m) {
    for (int k = 0; k < a->model.innovations->count; ++k)
        a->visit.column_of[k] = a->visit.innovation + (size_t)k * PAD_LANES(m);
    a->model.innovations->from_innovations(a->model.self, m, a->visit.column_of, a->block.x_new);
}

/* c += the complete-data statistic of the block; `latent`: with variables of its
 * records that the model needs and this draws */
static void add_complete(struct augment *a, int m, int latent, double *c) {
    const struct model *model = &a->model;
    for (int start = 0, chunk; start < m; start += chunk) {
        chunk = augment_chunk(model->whole, m - start);
        shift_columns(a, a->block.x_at, start, a->block.at_chunk);
        if (model->statistic)
            model->statistic->add(model->self, chunk, augment_read_only(a->block.at_chunk), c);
        if (latent && model_has_latent(model))
            model->statistic->add_latent(model->self, a->rng, chunk,
                                         augment_read_only(a->block.at_chunk), a->complete);
    }
}

/* ---- a sweep: proposals and their statistics ---------------------------------- */

/* the components of a dense part, or the cells that a record touches */
static void evaluate(struct augment *a, const struct part *part, int m, const double *const *x,
                     double *t, int *index) {
    const struct stat *stat = &part->stat;
    for (int at = 0, chunk; at < m; at += chunk) {
        chunk = augment_chunk(stat->whole, m - at);
        const double *const *view = augment_view(a, part, x, at);
        if (part->kind == PART_DENSE)
            stat->class->eval(stat->self, chunk, view, a->block.most, t + at);
        else
            stat->class->cells(stat->self, chunk, view, a->block.most, index + at);
    }
}

/* change = (change - before) * weight */
VECTOR_CLONES static void subtract(int m, double weight, const double *restrict before,
                                   double *restrict change) {
    FOR_RECORDS(i, m) change[i] = (change[i] - before[i]) * weight;
}

/* Turns components round, two at a time: the acceptance pass reads the components of a
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
    if (a->layout.dense_parts > 1 || !stat->class->changes || m > MAX_BLOCK) return 0;
    for (int v = 0; v < stat->columns; ++v) a->block.view_new[v] = a->block.x_new[part->column[v]];
    return stat->class->changes(stat->self, m,
                                augment_view(a, part, augment_read_only(a->block.x_at), 0),
                                a->block.view_new, a->noise.weight, a->layout.dense, a->visit.diff);
}

/* What the proposals of a block would change: residuals of dense components,
 * record after record, and cells. */
static void find_changes(struct augment *a, int m) {
    const double *const *x = augment_read_only(a->block.x_at), *const *x_new = augment_read_only(
                                                                   a->block.x_new);
    int direct = 0;
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        if (part_has_cells(part->kind)) {
            evaluate(a, part, m, x, NULL, part->cell_before);
            evaluate(a, part, m, x_new, NULL, part->cell_after);
        } else if (part->kind == PART_DENSE && !(direct = direct_changes(a, part, m))) {
            double *change = a->visit.change + (size_t)part->offset * a->block.most;
            evaluate(a, part, m, x, a->visit.before, NULL);
            evaluate(a, part, m, x_new, change, NULL);
            for (int j = 0; j < part->stat.size; ++j)
                subtract(m, a->noise.weight[part->offset + j],
                         a->visit.before + (size_t)j * a->block.most,
                         change + (size_t)j * a->block.most);
        }
    }
    if (!direct)
        turn_round(m, a->layout.used, a->block.most, a->visit.change, a->layout.dense,
                   a->visit.diff);
}

/* ---- a sweep: the records that are visited --------------------------------------- */

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

/* Else they are drawn when they are needed, or never. */
static int sweep_draws_latent(const struct augment *a) { return !a->surrogate && !a->layer; }

/* One visit of the records from `first` to before `end`, keeping the share rho of
 * their innovations; returns how many proposals were accepted. The noise density
 * enters with the exponent `temper`. */
static ptrdiff_t visit(struct augment *a, ptrdiff_t first, ptrdiff_t end, double rho,
                       double temper) {
    ptrdiff_t accepted = 0;
    const struct model_innovations *of = a->model.innovations;
    a->visit.taken = a->visit.drawn = 0;
    a->model.class->set(a->model.self, a->theta);
    (void)augment_ranks_energy(a, a->residual.cells);
    const int ahead = a->visit.draws_ahead && !a->layout.counts && rho == 0 &&
                      (!of->serve || of->serve(a->model.self));
    const int innovations = ahead ? of->count : 0;
    for (ptrdiff_t start = first; start < end; start += a->block.most) {
        const int most = (int)(end - start < a->block.most ? end - start : a->block.most);
        const int m = augment_block_at(a, start, most);
        if (ahead && start > first)
            from_innovations(a, m);
        else
            augment_propose(a, rho, m, a->block.x_new);
        find_changes(a, m);
        if (a->layout.locals > 0) {
            augment_clear_extra(a);
            augment_add_local(a, start, m, augment_read_only(a->block.x_at), -1);
            augment_add_local(a, start, m, augment_read_only(a->block.x_new), 1);
        }
        const ptrdiff_t left = end - start - m;
        struct draws draws = {
            .each = a->layout.dense / LANES,
            .needed = innovations * PAD_LANES((int)(left < a->block.most ? left : a->block.most)),
            .slack = 1 / temper,
            .drawn = a->visit.innovation,
        };
        augment_accept(a, ahead ? &draws : NULL, temper, m);
        accepted += count_accepted(m, a->visit.gap, a->accepted + start);
        for (int v = 0; v < a->model.columns; ++v)
            keep_accepted(m, a->visit.gap, a->block.x_new[v], a->block.x_at[v]);
        if (end - first == a->n) add_complete(a, m, sweep_draws_latent(a), a->complete);
    }
    return accepted;
}

static void add_complete_of(struct augment *a, int latent, double *c) {
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most)
        add_complete(a, augment_block_at(a, start, a->block.most), latent, c);
}

void augment_take_complete(struct augment *a, int latent, double *c) {
    memset(c, 0, (size_t)a->model.complete * sizeof(double));
    for (int k = 0; k < a->sites.count; ++k) add_complete_of(a->sites.of[k], latent, c);
}

void augment_take_latent(struct augment *a) {
    a->model.class->set(a->model.self, a->theta);
    augment_take_complete(a, 1, a->complete);
}

double augment_sweep_part(struct augment *a, int parts, int at, double rho, double temper) {
    double accepted = 0, visited = 0;
    memset(a->complete, 0, (size_t)a->model.complete * sizeof(double));
    for (int k = 0; k < a->sites.count; ++k) {
        struct augment *site = a->sites.of[k];
        if (site->n == 0) continue;
        const ptrdiff_t length = augment_part_length(site, parts);
        const ptrdiff_t first = at % ((site->n + length - 1) / length) * length;
        const ptrdiff_t end = site->n - first < length ? site->n : first + length;
        accepted += (double)visit(site, first, end, rho, temper);
        visited += (double)(end - first);
        if (end - first < site->n) add_complete_of(site, sweep_draws_latent(a), a->complete);
    }
    return accepted / visited;
}

double augment_sweep(struct augment *a, double temper) {
    memset(a->complete, 0, (size_t)a->model.complete * sizeof(double));
    const double accepted = (double)visit(a, 0, a->n, 0, temper);
    if (a->surrogate && model_has_latent(&a->model)) augment_take_latent(a);
    return accepted / (double)a->n;
}
