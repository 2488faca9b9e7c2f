/* Energy of method "augment": minus the log of the noise density at the state, up to a
 * constant, over parts whose noise is added to totals, to counts or to each record.
 *
 * Invariant: a residual is (released - total) * weight, in units of the noise. Cost:
 * O(components), and O(n) where there is local noise.
 */
#include "records/augment_internal.h"

double augment_dense_energy(const struct augment *a, const double *residual) {
    return noise_misfit_energy(&a->noise, 0, a->noise.separable, residual);
}

/* Of the search for a start: what the energy of impossible noise exceeds that of possible noise by.
 */
static const double IMPOSSIBLE = 1e9;

/* squared, in ranges of a record, from the nearest noise that is possible */
static double distance(const struct density *density, int stride, const double *noise) {
    double sum = 0;
    for (int j = 0; density->near && j < density->size; ++j) {
        double least = INFINITY;
        for (int k = 0; k < density->pieces; ++k)
            least =
                fmin(least, fabs(noise[(size_t)j * stride] - density->near[j + k * density->size]));
        const double off = least / density->range[j];
        sum += off * off;
    }
    return sum;
}

void augment_log_density(const struct augment *a, const struct part *part, int candidates,
                         int stride, const double *noise, double *out) {
    const struct density *density = &part->density;
    density->log_density(density->self, candidates, stride, noise, out);
    for (int i = 0; a->layout.searching > 0 && i < candidates; ++i)
        if (out[i] == -INFINITY)
            out[i] = -IMPOSSIBLE - a->layout.searching * distance(density, stride, noise + i);
}

double augment_density_energy(const struct augment *a, const double *residual) {
    double energy = 0;
    for (int k = 0; k < a->layout.parts && a->noise.separable < a->layout.dense; ++k) {
        const struct part *part = a->layout.part + k;
        if (part->kind != PART_DENSE || part->kernel != KERNEL_DENSITY) continue;
        double value;
        augment_log_density(a, part, 1, 1, residual + part->offset, &value);
        energy -= value;
    }
    return energy;
}

double augment_ranks_energy(const struct augment *a, const double *residual) {
    double energy = 0;
    for (int k = 0; k < a->layout.parts && a->layout.ranks > 0; ++k) {
        const struct part *part = a->layout.part + k;
        if (part->kind != PART_RANKS) continue;
        double value;
        augment_log_density(a, part, 1, 1, residual + part->offset, &value);
        energy -= value;
    }
    return energy;
}

static double cells_energy(const struct augment *a, const double *residual) {
    return noise_misfit_energy(&a->noise, a->layout.dense, a->layout.cells, residual) +
           augment_ranks_energy(a, residual);
}

/* Energy of a release of n itself, with so many records more. */
double augment_size_energy(const struct augment *a, double more) {
    double energy = 0;
    for (int j = a->layout.open; j < a->layout.cells; ++j) {
        const int at = a->layout.dense + j;
        energy +=
            kernel_energy(a->noise.kernel[at], a->residual.cells[j] - more * a->noise.weight[at]);
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
    default:
        break; /* not a sum over values, see add_local_density */
    }
}

/* the same of answers, given the codes t */
static void add_answer(const double *energy, int answers, int m, double sign,
                       const double *restrict released, const double *restrict t,
                       double *restrict extra) {
    for (int i = 0; i < m; ++i) extra[i] += sign * energy[(int)t[i] * answers + (int)released[i]];
}

/* the same for values whose noise has a density of its own; a->visit.local holds the
 * block's components */
static void add_local_density(struct augment *a, const struct part *part, ptrdiff_t start, int m,
                              double sign, double *extra) {
    for (int j = 0; j < part->stat.size; ++j) {
        const double *released = part->local_released + j * a->n + start;
        double *t = a->visit.local + (size_t)j * a->block.most;
        for (int i = 0; i < m; ++i) t[i] = released[i] - t[i];
    }
    augment_log_density(a, part, m, a->block.most, a->visit.local, a->visit.path_log);
    for (int i = 0; i < m; ++i) extra[i] -= sign * a->visit.path_log[i];
}

void augment_add_local(struct augment *a, ptrdiff_t start, int m, const double *const *x,
                       double sign) {
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        if (part->kind != PART_RECORDS) continue;
        const struct stat *stat = &part->stat;
        for (int at = 0, chunk; at < m; at += chunk) {
            chunk = augment_chunk(stat->whole, m - at);
            stat->class->eval(stat->self, chunk, augment_view(a, part, x, at), a->block.most,
                              a->visit.local);
            if (part->kernel == KERNEL_DENSITY) {
                add_local_density(a, part, start + at, chunk, sign, a->visit.extra + at);
                continue;
            }
            for (int j = 0; j < stat->size; ++j) {
                const double *released = part->local_released + j * a->n + start + at;
                const double *t = a->visit.local + (size_t)j * a->block.most;
                if (part->kernel == KERNEL_MATCH)
                    add_answer(part->answer_energy[j], part->answers[j], chunk, sign, released, t,
                               a->visit.extra + at);
                else
                    add_value(part->kernel, chunk, sign, part->local_weight[j], released, t,
                              a->visit.extra + at);
            }
        }
    }
}

void augment_clear_extra(struct augment *a) {
    memset(a->visit.extra, 0, (size_t)a->block.most * sizeof(double));
}

double augment_add_totals(struct augment *a, ptrdiff_t start, int m, const double *const *x) {
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        if (part->kind == PART_RECORDS) continue;
        const struct stat *stat = &part->stat;
        double *total =
            a->total + part->offset + (part_is_counts(part->kind) ? a->layout.dense : 0);
        for (int at = 0, chunk; at < m; at += chunk) {
            chunk = augment_chunk(stat->whole, m - at);
            stat->class->total(stat->self, chunk, augment_view(a, part, x, at), total);
        }
    }
    if (a->layout.locals == 0) return 0;
    augment_clear_extra(a);
    augment_add_local(a, start, m, x, 1);
    return block_sum(m, a->visit.extra);
}

void augment_residuals(const struct augment *a, struct residuals *out) {
    const int dense = a->layout.dense;
    for (int j = 0; j < dense; ++j) out->dense[j] = noise_misfit(&a->noise, j, a->total[j]);
    for (int j = dense; j < a->noise.size; ++j)
        out->cells[j - dense] = noise_misfit(&a->noise, j, a->total[j]);
}

void augment_add_records(struct augment *a, const struct residuals *of, int m, double *const *x,
                         int sign) {
    const int dense = a->layout.dense;
    const double *weight = a->noise.weight, *total = a->total;
    augment_clear_total(a);
    (void)augment_add_totals(a, 0, m, augment_read_only(x));
    for (int j = 0; j < dense; ++j)
        a->candidate.dense[j] = of->dense[j] - sign * total[j] * weight[j];
    for (int j = dense; j < a->noise.size; ++j)
        a->candidate.cells[j - dense] = of->cells[j - dense] - sign * total[j] * weight[j];
}

void augment_clear_total(struct augment *a) {
    memset(a->total, 0, (size_t)a->noise.size * sizeof(double));
}

/* local energy of all records, whose block must fit the workspace */
static double local_energy(struct augment *a) {
    double energy = 0;
    if (a->layout.locals == 0) return 0;
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most) {
        const int m = augment_block_at(a, start, a->block.most);
        augment_clear_extra(a);
        augment_add_local(a, start, m, augment_read_only(a->block.x_at), 1);
        energy += block_sum(m, a->visit.extra);
    }
    return energy;
}

void augment_copy_residuals(const struct augment *a, struct residuals *to,
                            const struct residuals *from) {
    doubles_copy(to->dense, from->dense, a->layout.dense);
    doubles_copy(to->cells, from->cells, augment_counts(a));
}

double augment_total_energy(const struct augment *a, const struct residuals *of) {
    return augment_dense_energy(a, of->dense) + augment_density_energy(a, of->dense) +
           cells_energy(a, of->cells);
}

double augment_energy(struct augment *a) {
    double energy = 0;
    for (int k = 0; k < a->sites.count; ++k) {
        struct augment *site = a->sites.of[k];
        energy += augment_total_energy(site, &site->residual);
        energy += local_energy(site);
    }
    return energy;
}

void augment_sum_up(struct augment *a) {
    augment_clear_total(a);
    for (ptrdiff_t start = 0; start < a->n; start += a->block.most) {
        const int m = augment_block_at(a, start, a->block.most);
        (void)augment_add_totals(a, start, m, augment_read_only(a->block.x_at));
    }
    augment_residuals(a, &a->residual);
}
