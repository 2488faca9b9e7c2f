/* Method "augment": totals of records in steps of an unknown n that move all records at once, see
 * records/n_all_records_steps.c: the information in a release about them, and the density of the
 * surrogate's chain.
 *
 * The state of that chain is n, the counts N_g of the levels, the total T_g of each column in
 * each, the scatter S about the level means and the coordinates of theta that the model keeps; its
 * density is that of records/n_all_records_steps.c with eta(z | the expected statistic of records
 * with these totals). A record of level g is approximated as normal, with mean T_g / N_g and
 * covariance S / n, and then clamped: the totals of columns and squares are those of
 * clamped_normals(); E(x_i x_j) has its covariance times the probabilities that the columns are
 * inside their bounds, the first term of Mehler's series.
 *
 * Cost: O(k d) distribution functions and O(d^3) a density. No allocation except in
 * resize_create().
 */
#include "records/n_all_records.h"

#include "base/linalg.h"
#include "contract/model_levels.h"
#include "contract/model_marginal.h"
#include "contract/model_update.h"

static int *integers(int count) { return plugin_memory((size_t)count, sizeof(int)); }

/* Correlations beyond which a released product is out of reach */
static const double MOST = 0.9;

/* ---- set-up ------------------------------------------------------------------------------ */

static int serves(const struct augment *a) {
    const struct model *model = &a->model;
    if (!a->size.prior || !a->surrogate || a->plain || !model->normal || model_is_cut(model) ||
        !model->marginal->marginal_size || model->predictor || model_factors(model) > 1)
        return 0;
    const struct totals *t = &a->surrogate->density.totals;
    return t->riders == 0 && t->d > 0 && a->layout.dense > 0 &&
           t->k == (model->levels ? model->levels->factor[0].levels : 1);
}

int resize_place_of(int count, const int *column, int of) {
    for (int i = 0; i < count; ++i)
        if (column[i] == of) return i;
    return -1;
}

/* What component `at`, which is released, tells. */
static void read_component(struct resize *r, const struct component *one, int at, double rate,
                           const double *centre) {
    const int d = r->d;
    const int i = resize_place_of(d, r->column, one->at[0]),
              j = resize_place_of(d, r->column, one->at[1]);
    const int g = 1 + resize_place_of(r->k - 1, r->fixed, one->at[0]);
    const int h = 1 + resize_place_of(r->k - 1, r->fixed, one->at[1]);
    if (one->coef[2] == 0) {
        if (one->coef[0] == 0 || one->coef[1] != 0) return;
        if (i >= 0) r->told.total[i] = 1 + at;
        if (i >= 0) r->pace.total[i] = -rate / one->coef[0];
        if (g > 0) r->told.level[g] = 1 + at;
        if (g > 0) r->pace.level[g] = -rate / one->coef[0];
    } else if (i >= 0 && j >= 0) {
        r->told.product[i * d + j] = r->told.product[j * d + i] = 1 + at;
    } else if ((i >= 0 && h > 0) || (j >= 0 && g > 0)) {
        const int column = i >= 0 ? i : j, level = i >= 0 ? h : g;
        r->told.cross[level * d + column] = 1 + at;
        r->pace.cross[level * d + column] =
            centre[r->fixed[level - 1]] - one->coef[i >= 0 ? 0 : 1] / one->coef[2];
    }
}

static void create_totals(struct resize_totals *t, int d, int k, const struct augment *a) {
    t->count = doubles(k);
    t->total = doubles(k * d);
    t->sd = doubles(d);
    DOUBLES(d * d, &t->scatter, &t->factor);
    t->column = plugin_memory((size_t)(k * d), sizeof *t->column);
    t->c = doubles(a->model.complete);
    t->theta = doubles(a->model.parameters);
    t->value = doubles(a->layout.dense);
}

int resize_create(struct augment *a) {
    if (!serves(a)) return 0;
    struct surrogate *s = a->surrogate;
    struct resize *r = OWN(a, resize) = plugin_memory(1, sizeof *r);
    const struct totals *t = &s->density.totals;
    const int d = r->d = t->d, k = r->k = t->k;
    r->column = t->column;
    r->fixed = t->fixed;
    r->lower = s->lower;
    r->upper = s->upper;
    for (int l = 0; a->model.levels && l < k; ++l) r->weight += a->model.levels->factor[0].alpha[l];
    DOUBLES(d, &r->pace.total, &r->row);
    DOUBLES(k, &r->pace.level, &r->change.count, &r->newton.left, &r->newton.aim, &r->newton.step);
    DOUBLES(k * d, &r->pace.cross, &r->change.first, &r->mean, &r->moved, &r->standard.shift,
            &r->shape.shift);
    DOUBLES(d * d, &r->change.product, &r->normal, &r->spread, &r->standard.matrix,
            &r->shape.matrix);
    r->newton.mean = doubles(2 * k);
    r->newton.slope = doubles(k + 1);
    r->gradient_c = doubles(a->model.complete);
    r->gradient_kept = doubles(s->density.size + a->model.marginal->keeps);
    r->told.level = integers(k);
    r->told.total = integers(d);
    r->told.all = integers(d);
    r->told.cross = integers(k * d);
    r->told.product = integers(d * d);
    for (int j = 0; j < a->layout.dense; ++j)
        if (a->noise.weight[j] > 0)
            read_component(r, s->density.component + j, j, s->density.rate[j], s->centre);
    for (int g = 1; g < k; ++g) r->pace.level[g] += s->centre[r->fixed[g - 1]];
    for (int i = 0; i < d; ++i) {
        r->told.all[i] = r->told.total[i] != 0;
        for (int g = 1; g < k; ++g) r->told.all[i] = r->told.all[i] && r->told.cross[g * d + i];
    }
    for (int j = 0; j < 4; ++j) create_totals(r->kept + j, d, k, a);
    r->gone.list = integers(a->size.most_born + 1);
    r->gone.hole = integers(a->size.most_born + 1);
    r->gone.filler = integers(a->size.most_born + 1);
    return 1;
}

/* ---- totals of records, and their density --------------------------------------------------- */

void resize_place_column(const struct resize *r, struct resize_totals *t, int i, const double *mean,
                         double sd) {
    t->sd[i] = sd;
    clamped_normals(r->lower[i], r->upper[i], sd, r->k, mean, t->column + i * r->k);
}

/* The complete-data statistic whose totals of columns in levels, and of products, are these. */
static void write_sums(const struct augment *a, const struct resize_totals *t, const double *total,
                       const double *product, double *c) {
    const struct resize *r = resize_of(a);
    const double *centre = a->surrogate->centre;
    const int d = r->d, q = a->model.columns;
    for (int i = 0; i < d; ++i) {
        double sum = 0;
        for (int g = 0; g < r->k; ++g) sum += total[g * d + i];
        c[r->column[i]] = sum;
        for (int j = 0; j <= i; ++j)
            c[moments_at(q, r->column[i], r->column[j])] = product[i * d + j];
    }
    for (int g = 1; g < r->k; ++g) {
        const int v = r->fixed[g - 1];
        c[v] = t->count[g] - t->n * centre[v];
        for (int h = 1; h <= g; ++h) {
            const int u = r->fixed[h - 1];
            c[moments_at(q, v, u)] = (g == h ? t->count[g] : 0) - centre[u] * t->count[g] -
                                     centre[v] * t->count[h] + t->n * centre[u] * centre[v];
        }
        for (int i = 0; i < d; ++i)
            c[moments_at(q, v, r->column[i])] = total[g * d + i] - centre[v] * c[r->column[i]];
    }
}

static void write_complete(const struct augment *a, const struct resize_totals *t, double *c) {
    const struct resize *r = resize_of(a);
    const int d = r->d;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = t->scatter[i * d + j];
            for (int g = 0; g < r->k; ++g)
                sum += t->total[g * d + i] * t->total[g * d + j] / t->count[g];
            r->spread[i * d + j] = sum;
        }
    write_sums(a, t, t->total, r->spread, c);
}

/* The same of records as the bounds clamp them, as they are expected to be. */
static void write_expected(const struct augment *a, const struct resize_totals *t, double *c) {
    const struct resize *r = resize_of(a);
    const int d = r->d;
    for (int i = 0; i < d; ++i) {
        for (int g = 0; g < r->k; ++g)
            r->moved[g * d + i] = t->count[g] * t->column[i * r->k + g].first;
        for (int j = 0; j <= i; ++j) {
            double sum = 0;
            for (int g = 0; g < r->k; ++g) {
                const struct clamped_moments *x = t->column + i * r->k + g,
                                             *y = t->column + j * r->k + g;
                sum +=
                    t->count[g] * (i == j ? x->second
                                          : x->first * y->first + x->first_mean * y->first_mean *
                                                                      t->scatter[i * d + j] / t->n);
            }
            r->spread[i * d + j] = sum;
        }
    }
    write_sums(a, t, r->moved, r->spread, c);
}

double resize_product_held(const struct resize *r, const struct resize_totals *t, int i, int j,
                           double *slope) {
    double sum = 0;
    *slope = 0;
    for (int g = 0; g < r->k; ++g) {
        const struct clamped_moments *x = t->column + i * r->k + g, *y = t->column + j * r->k + g;
        sum += t->count[g] * (x->first - r->pace.total[i]) * (y->first - r->pace.total[j]);
        *slope += t->count[g] * x->first_mean * y->first_mean;
    }
    return sum;
}

double resize_released_z(const struct augment *a, const struct resize_totals *t, int i, int j) {
    const struct resize *r = resize_of(a);
    const int at = r->told.product[i * r->d + j] - 1;
    const double aim = a->noise.released[at] / a->surrogate->density.component[at].coef[2];
    double slope;
    const double left = resize_product_held(r, t, i, j, &slope), most = slope * t->sd[i] * t->sd[j];
    return atanh(fmax(-MOST, fmin((aim - left) / most, MOST)));
}

/* The log density of the head of records/n_all_records_steps.c without eta, but for constants. */
static double log_totals(const struct augment *a, const struct resize_totals *t) {
    const struct resize *r = resize_of(a);
    const struct model *model = &a->model;
    const double d = r->d, n = t->n, left = n - r->k;
    double sum = size_prior_log(a->size.prior, n) + lgamma(n + 1) + 0.5 * left * d * log(M_PI) -
                 dist_log_multigamma(r->d, 0.5 * left);
    if (model->levels) sum -= lgamma(r->weight + n);
    for (int g = 0; g < r->k; ++g) sum -= lgamma(t->count[g] + 1) + 0.5 * d * log(t->count[g]);
    for (int i = 0; i < r->d; ++i) sum += (left - d - 1) * log(t->factor[i * r->d + i]);
    return sum + model->marginal->marginal_size(model->self, n) +
           model->marginal->marginal(model->self, t->c, n, t->theta, r->gradient_c,
                                     r->gradient_kept);
}

int resize_factorise(const struct resize *r, struct resize_totals *t) {
    memcpy(t->factor, t->scatter, (size_t)(r->d * r->d) * sizeof(double));
    return linalg_cholesky(r->d, t->factor) == 0;
}

double resize_log_totals(struct augment *a, struct resize_totals *t) {
    write_complete(a, t, t->c);
    return log_totals(a, t);
}

void resize_evaluate(struct augment *a, struct resize_totals *t) {
    struct resize *r = resize_of(a);
    struct totals_density *density = &a->surrogate->density;
    const size_t complete = (size_t)a->model.complete;
    t->log_density = resize_log_totals(a, t);
    if (!(t->log_density > -INFINITY)) return;
    totals_density_resize(density, t->n);
    memcpy(density->seen, t->c, complete * sizeof(double));
    write_expected(a, t, density->seen);
    memset(r->gradient_c, 0, complete * sizeof(double));
    totals_density_noise(density, a->noise.released, r->gradient_c);
    for (int j = 0; j < a->layout.dense; ++j)
        t->value[j] = component_value(density->component + j, density->seen);
    t->energy = density->energy + augment_size_energy(a, t->n - (double)a->n);
    t->log_density -= *a->adapt.temper * t->energy;
}

int resize_read(struct augment *a) {
    struct resize *r = resize_of(a);
    struct resize_totals *t = r->now = r->kept;
    const double *c = a->complete, *centre = a->surrogate->centre;
    const int d = r->d, q = a->model.columns;
    r->next = t + 1;
    if (a->n <= r->k + d) return 0; /* no step leads there, so none leads away */
    t->n = t->count[0] = (double)a->n;
    for (int i = 0; i < d; ++i) t->total[i] = c[r->column[i]];
    for (int g = 1; g < r->k; ++g) {
        const int v = r->fixed[g - 1];
        t->count[g] = rint(c[v] + t->n * centre[v]);
        t->count[0] -= t->count[g];
        for (int i = 0; i < d; ++i) {
            const int own = r->column[i];
            t->total[g * d + i] = c[moments_at(q, v, own)] + centre[v] * c[own];
            t->total[i] -= t->total[g * d + i];
        }
    }
    for (int g = 0; g < r->k; ++g)
        if (!(t->count[g] > 0)) return 0;
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            double left = c[moments_at(q, r->column[i], r->column[j])];
            for (int g = 0; g < r->k; ++g)
                left -= t->total[g * d + i] * t->total[g * d + j] / t->count[g];
            t->scatter[i * d + j] = left;
        }
    if (!resize_factorise(r, t)) return 0;
    for (int i = 0; i < d; ++i) {
        for (int g = 0; g < r->k; ++g) r->newton.mean[g] = t->total[g * d + i] / t->count[g];
        resize_place_column(r, t, i, r->newton.mean, sqrt(t->scatter[i * d + i] / t->n));
    }
    memcpy(t->theta, a->theta, (size_t)a->model.parameters * sizeof(double));
    resize_evaluate(a, t);
    return t->log_density > -INFINITY;
}
