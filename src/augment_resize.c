/* Method "augment": steps of an unknown number of records n that move all records at once, where
 * these are normal given theta and the levels of at most one factor. A step of n alone
 * (augment_size.c) adds records whose totals are a matter of luck, and where noise is small they
 * seldom fit. Here the totals are chosen, and the records follow.
 *
 * Given the levels, N_g records in level g, write as in surrogate.c
 *
 *   w_i = B_g + F u_i,
 *
 * B_g the mean of level g, F F' = S the scatter about these means. The shape U is uniform given n
 * and the N_g, whatever theta is, and independent of (B, F). With theta integrated out but for what
 * the model keeps, n, the counts, T_g = N_g B_g and S have the density
 *
 *   p(n) n! / prod N_g! marginal(c, n) pi^((n - k) d / 2) / Gamma_d((n - k) / 2)
 *     prod N_g^(-d / 2) |S|^((n - k - d - 1) / 2) eta(z | s)
 *
 * for d columns and k levels (MATH parts 10 and 13), marginal() with its factors in n. A step
 *
 * - proposes n' as augment_size.c does;
 * - proposes N_g', off from what holds the released counts by less than one record, at random;
 * - takes what is released of T and of products as it is, measured from where the statistic
 * measures columns, and lets all else grow with n; or lets such T grow with the root of n, in every
 * second step on average, since products may be known better than totals; what the model keeps of
 * theta goes with n as warmup saw, and a residual standard deviation with that of the records;
 * - takes U to U': independent standard normal records Y have the shape U if their level means and
 *   their scatter are drawn from what standard normal records have. Some of them, chosen uniformly
 *   in their level, go, and others come; U' is the shape of Y then. Both ways have the same joint
 *   distribution of (U, U'), so that this step is reversible in the uniform distributions.
 *
 * It is accepted by the ratio of these densities, the Jacobian of (T, S), and what the proposals of
 * n and N_g have. Theta must be drawn after it.
 *
 * Empty levels are left out on both sides. Cost: a pass over the records as a surrogate transition
 * has it, another where the step is accepted; O(m d^2) for m births or deaths. No allocation but in
 * augment_prepare_resize().
 */
#include "augment.h"

#include "linalg.h"

struct resize {
    int d, k;
    const int *column, *fixed; /* of the totals: see totals.h */
    const double *alpha;       /* sum of the Dirichlet weights; NULL: there is no factor */
    double weight;

    /* What a record that is born adds to T and to the counts, measured from the centres, so that
     * released components stay; and whether there are such components: of the count of a level, of
     * a column's total, of its totals in all levels, and of the product of two columns. */
    double *pace, *level_pace;
    int *level_told, *total_told, *cross_told, *product_told;

    struct totals_of {
        double n, *count, *total, *scatter, *factor; /* k; k x d; d x d, lower triangles */
        double *c;
    } now, next;
    double *change;       /* of the counts */
    double *mean, *moved; /* k x d: level means of Y before and after */
    double *normal, *spread, *map, *row, *gradient_c, *gradient_kept;
};

static double *doubles(int count) { return plugin_memory((size_t)count, sizeof(double)); }
static int *flags(int count) { return plugin_memory((size_t)count, sizeof(int)); }

/* ---- set-up ------------------------------------------------------------------------------ */

/* Are there such steps? */
static int serves(const struct augment *a) {
    const struct model *model = &a->model;
    if (!a->size_prior || !a->surrogate || a->plain || !model->origin || model->cut ||
        !model->class->marginal_size || model->tied > 0 || model->factors > 1)
        return 0;
    const struct totals *t = &a->surrogate->density.totals;
    return t->riders == 0 && t->d > 0 && a->dense > 0 &&
           t->k == (model->factors > 0 ? model->factor[0].levels : 1);
}

static int place_of(int count, const int *column, int of) {
    for (int i = 0; i < count; ++i)
        if (column[i] == of) return i;
    return -1;
}

/* What component `one`, which is released, tells. */
static void read_component(struct resize *r, const struct component *one, double rate) {
    const int d = r->d;
    const int i = place_of(d, r->column, one->at[0]), j = place_of(d, r->column, one->at[1]);
    const int g = 1 + place_of(r->k - 1, r->fixed, one->at[0]);
    const int h = 1 + place_of(r->k - 1, r->fixed, one->at[1]);
    if (one->coef[2] == 0) {
        if (one->coef[0] == 0 || one->coef[1] != 0) return;
        if (i >= 0) r->total_told[i] = 1;
        if (i >= 0) r->pace[i] = -rate / one->coef[0];
        if (g > 0) r->level_told[g] = 1;
        if (g > 0) r->level_pace[g] = -rate / one->coef[0];
    } else if (i >= 0 && j >= 0) {
        r->product_told[i * d + j] = r->product_told[j * d + i] = 1;
    } else if ((i >= 0 && h > 0) || (j >= 0 && g > 0)) {
        r->cross_told[i >= 0 ? i : j] += 1;
    }
}

static void create_totals(struct totals_of *t, int d, int k, int complete) {
    t->count = doubles(k);
    t->total = doubles(k * d);
    t->scatter = doubles(d * d);
    t->factor = doubles(d * d);
    t->c = doubles(complete);
}

void augment_prepare_resize(struct augment *a) {
    if (!serves(a)) return;
    struct surrogate *s = a->surrogate;
    struct resize *r = a->resize = plugin_memory(1, sizeof *r);
    const struct totals *t = &s->density.totals;
    const int d = r->d = t->d, k = r->k = t->k;
    r->column = t->column;
    r->fixed = t->fixed;
    for (int l = 0; a->model.factors > 0 && l < k; ++l) r->weight += a->model.factor[0].alpha[l];
    r->pace = doubles(d);
    r->level_pace = doubles(k);
    r->level_told = flags(k);
    r->total_told = flags(d);
    r->cross_told = flags(d);
    r->product_told = flags(d * d);
    for (int j = 0; j < a->dense; ++j)
        if (a->weight[j] > 0) read_component(r, s->density.component + j, s->density.rate[j]);
    for (int g = 1; g < k; ++g) r->level_pace[g] += s->centre[r->fixed[g - 1]];
    for (int i = 0; i < d; ++i) r->cross_told[i] = r->total_told[i] && r->cross_told[i] == k - 1;
    create_totals(&r->now, d, k, a->model.complete);
    create_totals(&r->next, d, k, a->model.complete);
    r->change = doubles(k);
    r->mean = doubles(k * d);
    r->moved = doubles(k * d);
    r->normal = doubles(d * d);
    r->spread = doubles(d * d);
    r->map = doubles(d * d);
    r->row = doubles(2 * d);
    r->gradient_c = doubles(a->model.complete);
    r->gradient_kept = doubles(s->density.size + a->model.keeps);
}

/* ---- counts, totals and scatter ----------------------------------------------------------- */

/* From the complete-data statistic. Returns 0 where a level is empty, or the scatter singular. */
static int read_totals(const struct augment *a, const double *c, struct totals_of *t) {
    const struct resize *r = a->resize;
    const double *centre = a->surrogate->centre;
    const int d = r->d, q = a->model.columns;
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
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            double left = c[moments_at(q, r->column[i], r->column[j])];
            for (int g = 0; g < r->k; ++g)
                left -= t->total[g * d + i] * t->total[g * d + j] / t->count[g];
            t->scatter[i * d + j] = left;
        }
    for (int g = 0; g < r->k; ++g)
        if (!(t->count[g] > 0)) return 0;
    memcpy(t->factor, t->scatter, (size_t)(d * d) * sizeof(double));
    return linalg_cholesky(d, t->factor) == 0;
}

/* and back */
static void write_complete(const struct augment *a, const struct totals_of *t, double *c) {
    const struct resize *r = a->resize;
    const double *centre = a->surrogate->centre;
    const int d = r->d, q = a->model.columns;
    for (int i = 0; i < d; ++i) {
        double sum = 0;
        for (int g = 0; g < r->k; ++g) sum += t->total[g * d + i];
        c[r->column[i]] = sum;
        for (int j = 0; j <= i; ++j) {
            double product = t->scatter[i * d + j];
            for (int g = 0; g < r->k; ++g)
                product += t->total[g * d + i] * t->total[g * d + j] / t->count[g];
            c[moments_at(q, r->column[i], r->column[j])] = product;
        }
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
            c[moments_at(q, v, r->column[i])] = t->total[g * d + i] - centre[v] * c[r->column[i]];
    }
}

/* The log density of the head without eta, but for constants. */
static double log_totals(const struct augment *a, const struct totals_of *t, const double *theta) {
    const struct resize *r = a->resize;
    const struct model *model = &a->model;
    const double d = r->d, n = t->n, left = n - r->k;
    double sum = size_prior_log(a->size_prior, n) + lgamma(n + 1) + 0.5 * left * d * log(M_PI) -
                 dist_log_multigamma(r->d, 0.5 * left);
    if (model->factors > 0) sum -= lgamma(r->weight + n);
    for (int g = 0; g < r->k; ++g) sum -= lgamma(t->count[g] + 1) + 0.5 * d * log(t->count[g]);
    for (int i = 0; i < r->d; ++i) sum += (left - d - 1) * log(t->factor[i * r->d + i]);
    return sum + model->class->marginal_size(model->self, n) +
           model->class->marginal(model->self, t->c, n, theta, r->gradient_c, r->gradient_kept);
}

/* ---- the proposal --------------------------------------------------------------------------- */

/* Probability of a change of a count that should be `aim`, rounded at random. */
static double log_rounded(double change, double aim) {
    return log(fmax(0, 1 - fabs(change - aim)));
}

static double aim_at(const struct resize *r, const struct totals_of *t, int g, double m) {
    return m * (r->level_told[g] ? r->level_pace[g] : t->count[g] / t->n);
}

/* Counts of so many records more. Returns the log of the proposal back over that forth; -INFINITY
 * where a level would be empty, or too many records change. */
static double propose_counts(struct augment *a, double m) {
    struct resize *r = a->resize;
    double log_back = 0, births = 0, deaths = 0;
    int possible = 1;
    r->next.n = r->now.n + m;
    r->change[0] = m;
    for (int g = 1; g < r->k; ++g) {
        r->change[g] = floor(aim_at(r, &r->now, g, m) + rng_uniform(a->rng));
        r->change[0] -= r->change[g];
    }
    for (int g = 0; g < r->k; ++g) {
        r->next.count[g] = r->now.count[g] + r->change[g];
        possible = possible && r->next.count[g] > 0;
        births += fmax(r->change[g], 0);
        deaths += fmax(-r->change[g], 0);
    }
    if (!possible || births > MOST_BORN || deaths > MOST_BORN) return -INFINITY;
    for (int g = 1; g < r->k; ++g)
        log_back += log_rounded(-r->change[g], aim_at(r, &r->next, g, -m)) -
                    log_rounded(r->change[g], aim_at(r, &r->now, g, m));
    return log_back;
}

/* Totals of column i in the levels, those that are told times `stretch`; returns the log Jacobian.
 */
static double propose_column(struct resize *r, int i, double stretch) {
    const int d = r->d, k = r->k;
    const struct totals_of *now = &r->now;
    struct totals_of *next = &r->next;
    double log_jacobian = 0, gap = 0;
    if (r->cross_told[i]) {
        for (int g = 0; g < k; ++g)
            next->total[g * d + i] =
                stretch * (now->total[g * d + i] - now->count[g] * r->pace[i]) +
                next->count[g] * r->pace[i];
        return k * log(stretch);
    }
    for (int g = 0; g < k; ++g) {
        const double share = next->count[g] / now->count[g];
        next->total[g * d + i] = share * now->total[g * d + i];
        gap += now->total[g * d + i] - next->total[g * d + i];
        log_jacobian += log(share);
    }
    if (!r->total_told[i]) return log_jacobian;
    for (int g = 0; g < k; ++g) gap += (stretch - 1) * now->total[g * d + i];
    gap = (gap + (next->n - stretch * now->n) * r->pace[i]) / next->n;
    for (int g = 0; g < k; ++g) next->total[g * d + i] += next->count[g] * gap;
    return log_jacobian + log(stretch * now->n / next->n);
}

/* The product of columns i and j about the level means, if that about where the statistic measures
 * columns stays. */
static double held_scatter(const struct resize *r, int i, int j) {
    const int d = r->d;
    const struct totals_of *now = &r->now, *next = &r->next;
    const double at_i = r->pace[i], at_j = r->pace[j];
    double sum = now->scatter[i * d + j] - (next->n - now->n) * at_i * at_j;
    for (int g = 0; g < r->k; ++g) {
        const double *const old = now->total + g * d, *const new = next->total + g *d;
        sum += old[i] * old[j] / now->count[g] - new[i] * new[j] / next->count[g] +
               at_j *(new[i] - old[i]) + at_i *(new[j] - old[j]);
    }
    return sum;
}

/* T and S of the next number of records; returns the log Jacobian, -INFINITY where no records have
 * them. */
static double propose_totals(struct augment *a) {
    struct resize *r = a->resize;
    struct totals_of *next = &r->next;
    const int d = r->d;
    const double stretch = rng_bits(a->rng) >> 63 ? sqrt(next->n / r->now.n) : 1;
    double log_jacobian = 0;
    double *const scale = r->row;
    for (int i = 0; i < d; ++i) log_jacobian += propose_column(r, i, stretch);
    for (int i = 0; i < d; ++i) {
        const double old = r->now.scatter[i * d + i];
        const int held = r->product_told[i * d + i];
        const double square = held ? held_scatter(r, i, i) : old * next->n / r->now.n;
        if (!(square > 0)) return -INFINITY;
        next->scatter[i * d + i] = square;
        scale[i] = sqrt(square / old);
        if (!held) log_jacobian += log(next->n / r->now.n);
        for (int j = 0; j < i; ++j) {
            if (r->product_told[i * d + j] && held && r->product_told[j * d + j]) {
                next->scatter[i * d + j] = held_scatter(r, i, j);
            } else {
                next->scatter[i * d + j] = scale[i] * scale[j] * r->now.scatter[i * d + j];
                log_jacobian += log(scale[i] * scale[j]);
            }
        }
    }
    memcpy(next->factor, next->scatter, (size_t)(d * d) * sizeof(double));
    return linalg_cholesky(d, next->factor) == 0 ? log_jacobian : -INFINITY;
}

/* What the model keeps of theta, to theta_new. */
static void propose_kept(struct augment *a) {
    const struct resize *r = a->resize;
    const struct model *model = &a->model;
    const int last = r->d * r->d - 1;
    const double step = log(r->next.n / r->now.n);
    memcpy(a->theta_new, a->theta, (size_t)model->parameters * sizeof(double));
    for (int j = 0; j < model->keeps; ++j) {
        const int at = model->kept[j];
        const int learned = place_of(a->slope.moving, a->slope.moves, at);
        if (at == model->residual)
            a->theta_new[at] += log(r->next.factor[last] / r->now.factor[last]) - 0.5 * step;
        else if (learned >= 0)
            a->theta_new[at] += a->slope.slope[learned] * step;
    }
}

/* ---- the records ------------------------------------------------------------------------------
 */

static int level_of(const struct augment *a, ptrdiff_t i) {
    const struct resize *r = a->resize;
    for (int g = 1; g < r->k; ++g)
        if (a->x[r->fixed[g - 1] * a->stride + i] > 0.5) return g;
    return 0;
}

/* Y of record i, of level g, to `row` */
static void standard_record(const struct augment *a, ptrdiff_t i, int g, double *row) {
    const struct resize *r = a->resize;
    const double *centre = a->surrogate->centre;
    const int d = r->d;
    double *const w = row + d;
    for (int j = 0; j < d; ++j) {
        const int v = r->column[j];
        w[j] = a->x[v * a->stride + i] - centre[v] - r->now.total[g * d + j] / r->now.count[g];
    }
    linalg_forward(d, r->now.factor, w);
    for (int j = 0; j < d; ++j)
        row[j] = r->mean[g * d + j] + linalg_dot(j + 1, r->normal + j * d, w);
}

/* Level sums and products of Y, less or more one record */
static void add_record(struct resize *r, int g, double sign, const double *y) {
    const int d = r->d;
    for (int i = 0; i < d; ++i) {
        r->moved[g * d + i] += sign * y[i];
        for (int j = 0; j <= i; ++j) r->spread[i * d + j] += sign * y[i] * y[j];
    }
}

/* Level means and scatter of standard normal records, as many as there are; then their sums. */
static void draw_standard(struct augment *a) {
    struct resize *r = a->resize;
    const int d = r->d;
    for (int g = 0; g < r->k; ++g)
        for (int i = 0; i < d; ++i) {
            r->mean[g * d + i] = rng_normal(a->rng) / sqrt(r->now.count[g]);
            r->moved[g * d + i] = r->now.count[g] * r->mean[g * d + i];
        }
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j < i; ++j) r->normal[i * d + j] = rng_normal(a->rng);
        r->normal[i * d + i] = sqrt(dist_chisq(a->rng, r->now.n - r->k - i));
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = linalg_dot(j + 1, r->normal + i * d, r->normal + j * d);
            for (int g = 0; g < r->k; ++g)
                sum += r->now.count[g] * r->mean[g * d + i] * r->mean[g * d + j];
            r->spread[i * d + j] = sum;
        }
}

/* Those that go, chosen uniformly in their levels, to the end; returns how many stay. */
static ptrdiff_t choose_deaths(struct augment *a) {
    struct resize *r = a->resize;
    ptrdiff_t left = a->n;
    for (int g = 0; g < r->k; ++g)
        for (double k = r->change[g]; k < 0; ++k) {
            ptrdiff_t i;
            do i = augment_choose(a->rng, left);
            while (level_of(a, i) != g);
            standard_record(a, i, g, r->row);
            add_record(r, g, -1, r->row);
            augment_swap_records(a, i, --left);
        }
    return left;
}

/* Y of those that come, to `born`; returns how many. */
static int draw_births(struct augment *a) {
    struct resize *r = a->resize;
    const int d = r->d;
    int born = 0;
    for (int g = 0; g < r->k; ++g)
        for (double k = 0; k < r->change[g]; ++k, ++born) {
            for (int i = 0; i < d; ++i) r->row[i] = rng_normal(a->rng);
            for (int i = 0; i < d; ++i) a->born[r->column[i]][born] = r->row[i];
            for (int h = 1; h < r->k; ++h) a->born[r->fixed[h - 1]][born] = h == g;
            add_record(r, g, 1, r->row);
        }
    return born;
}

/* The factor of the scatter of Y about its level means, to `spread`, and these to `moved`. Returns
 * 0 where it is singular. */
static int finish_standard(struct resize *r) {
    const int d = r->d;
    for (int g = 0; g < r->k; ++g)
        for (int i = 0; i < d; ++i) r->moved[g * d + i] /= r->next.count[g];
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j)
            for (int g = 0; g < r->k; ++g)
                r->spread[i * d + j] -=
                    r->next.count[g] * r->moved[g * d + i] * r->moved[g * d + j];
    return linalg_cholesky(d, r->spread) == 0;
}

/* out = F' G^-1 y */
static void shape_record(const struct resize *r, const double *y, double *out) {
    const int d = r->d;
    memcpy(out, y, (size_t)d * sizeof(double));
    linalg_forward(d, r->spread, out);
    for (int i = d - 1; i >= 0; --i) out[i] = linalg_dot(i + 1, r->next.factor + i * d, out);
}

/* What takes the records that stay, and are W, to W' = B_g' + F' G^-1 (Y - mean of Y'): the
 * surrogate's map. */
static void set_map(struct augment *a) {
    struct resize *r = a->resize;
    const double *centre = a->surrogate->centre;
    const int d = r->d, k = r->k, stride = a->model.columns + 1;
    double *const map = a->surrogate->map, *const y = r->row, *const out = r->row + d;
    memset(map, 0, (size_t)d * (size_t)stride * sizeof(double));
    for (int j = 0; j < d; ++j) { /* column j of H = F' G^-1 (F of Y) F^-1 */
        memset(y, 0, (size_t)d * sizeof(double));
        y[j] = 1;
        linalg_forward(d, r->now.factor, y);
        for (int i = d - 1; i >= 0; --i) y[i] = linalg_dot(i + 1, r->normal + i * d, y);
        shape_record(r, y, out);
        for (int i = j; i < d; ++i) map[i * stride + 1 + r->column[j]] = out[i];
    }
    for (int g = 0; g < k; ++g) {
        for (int i = 0; i < d; ++i) y[i] = r->mean[g * d + i] - r->moved[g * d + i];
        shape_record(r, y, out);
        for (int i = 0; i < d; ++i) {
            double *const row = map + i * stride;
            double shift =
                out[i] + r->next.total[g * d + i] / r->next.count[g] + centre[r->column[i]];
            for (int j = 0; j <= i; ++j)
                shift -= row[1 + r->column[j]] *
                         (r->now.total[g * d + j] / r->now.count[g] + centre[r->column[j]]);
            if (g == 0)
                row[0] = shift;
            else
                row[1 + r->fixed[g - 1]] = shift - row[0];
        }
    }
}

static void shape_births(struct augment *a, int born) {
    struct resize *r = a->resize;
    const double *centre = a->surrogate->centre;
    const int d = r->d;
    double *const y = r->row, *const out = r->row + d;
    for (int b = 0; b < born; ++b) {
        int g = r->k - 1;
        while (g > 0 && a->born[r->fixed[g - 1]][b] == 0) --g;
        for (int i = 0; i < d; ++i) y[i] = a->born[r->column[i]][b] - r->moved[g * d + i];
        shape_record(r, y, out);
        for (int i = 0; i < d; ++i)
            a->born[r->column[i]][b] =
                out[i] + r->next.total[g * d + i] / r->next.count[g] + centre[r->column[i]];
    }
}

/* The log ratio of the densities of records, `stay` of which are old ones and `born` new. */
static double follow(struct augment *a, ptrdiff_t *stay, int *born) {
    struct resize *r = a->resize;
    draw_standard(a);
    *stay = choose_deaths(a);
    *born = draw_births(a);
    if (!finish_standard(r)) return -INFINITY;
    set_map(a);
    shape_births(a, *born);
    const ptrdiff_t n = a->n;
    a->n = *stay;
    augment_mapped_totals(a);
    a->n = n;
    if (*born > 0) (void)augment_add_totals(a, 0, *born, augment_read_only(a->born));
    augment_residuals(a, a->candidate, a->candidate_cells);
    return augment_total_energy(a, a->residual, a->cell_residual) -
           augment_total_energy(a, a->candidate, a->candidate_cells);
}

static void keep(struct augment *a, ptrdiff_t stay, int born) {
    a->n = stay;
    augment_keep_mapped(a);
    augment_keep_size(a, born, 1);
    memcpy(a->theta, a->theta_new, (size_t)a->model.parameters * sizeof(double));
    augment_take_complete(a, 0, a->complete);
}

static void move(struct augment *a, int fresh, int learning) {
    struct resize *r = a->resize;
    double log_ratio;
    const double n = augment_propose_size(a, fresh, &log_ratio), m = n - (double)a->n;
    ptrdiff_t stay = a->n;
    int born = 0;
    const int possible =
        n > r->k + r->d && m != 0 && fabs(m) <= MOST_BORN && read_totals(a, a->complete, &r->now);
    log_ratio += possible ? propose_counts(a, m) : -INFINITY;
    if (log_ratio > -INFINITY) log_ratio += propose_totals(a);
    if (log_ratio > -INFINITY) {
        propose_kept(a);
        write_complete(a, &r->now, r->now.c);
        write_complete(a, &r->next, r->next.c);
        log_ratio += log_totals(a, &r->next, a->theta_new) - log_totals(a, &r->now, a->theta);
    }
    if (log_ratio > -INFINITY) log_ratio += *a->adapt.temper * follow(a, &stay, &born);
    const int accept = -log_ratio < rng_exponential(a->rng);
    if (accept) keep(a, stay, born);
    augment_tried_size(a, fresh, learning, log_ratio, accept);
}

void augment_resize(struct augment *a, int iteration, int learning) {
    const int steps = augment_size_steps(a, iteration, learning);
    if (steps & SIZE_FRESH) move(a, 1, learning);
    if (steps & SIZE_WALK) move(a, 0, learning);
}
