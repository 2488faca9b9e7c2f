/* Method "augment": the steps of the chain of totals in steps of an unknown n that move all records
 * at once; see records/n_totals_density.c for its density.
 *
 * A step proposes n' as records/n_birth_death.c does, and N_g', which differs from the value that
 * keeps the released counts by less than one record, at random. With p the place where the
 * statistic measures a column, and e and f its expected clamped value and square, write
 *
 *   H_g = N_g (e_g - p)                  where the totals in all levels are released,
 *   H = sum_g N_g (e_g - p)              where the total is: all means move by the same,
 *   Q = sum_g N_g (f_g - 2 p e_g + p^2)  where the square is,
 *   sum_g N_g E (x_i - p_i) (x_j - p_j)  where both squares and this are.
 *
 * A step holds H and Q fixed, and moves Fisher's z of a correlation together with Fisher's z of
 * the correlation that would give the released product, if there is one: the product itself may be
 * impossible for few records. Or H grows with the root of n, because squares may be more precise
 * than totals; or some released components are drawn from their release and the noise alone, and
 * H, Q and products change with these. Means, variances and correlations without released
 * components stay. Two more kinds are in records/n_scatter.c.
 *
 * The new means and standard deviation of a column solve these equations, by Newton's method from
 * their values without bounds; if there are no bounds, the first guess is the solution. If it
 * takes long, the reverse step is also tried, and the step is not made if that does not return to
 * the current values. With D the determinant of the slopes of (H, Q) in the means that move and
 * the standard deviation, the Jacobian of the step in (T, S) is D / D', times N_g' / N_g for each
 * mean and n' sd' / (n sd) for the square; the factor of a product follows from 1 - r^2 of its
 * correlations r. The coordinates of theta that the model keeps move with n as learned in warmup,
 * and a residual standard deviation moves with the records' own.
 *
 * Cost: O(k d) distribution functions an iteration of Newton's method. No allocation.
 */
#include "records/n_all_records.h"

#include "contract/model_marginal.h"

/* Iterations of Newton's method, and how many are few; relative errors that it leaves, and of the
 * way back. */
enum { ITERATIONS = 40, FEW = 3 };
static const double LEFT = 1e-8, SAME = 1e-6;

/* Of the steps to where warmup saw n, the share that goes to a number near n instead: few records,
 * whose values are mostly beyond the bounds, have totals that no others have. */
static const double NEAR = 0.3;

/* ---- the proposal of counts ---------------------------------------------------------------- */

/* Probability of a change of a count that should be `aim`, rounded at random. */
static double log_rounded(double change, double aim) {
    return log(fmax(0, 1 - fabs(change - aim)));
}

static double aim_at(const struct resize *r, const struct resize_totals *t, int g, double m) {
    return m * (r->told.level[g] ? r->pace.level[g] : t->count[g] / t->n);
}

/* Counts of so many records more. Returns the log of the proposal back over that forth; -INFINITY
 * where a level would be empty. */
static double propose_counts(struct augment *a, double m) {
    struct resize *r = resize_of(a);
    double log_back = 0, first = m;
    r->next->n = r->now->n + m;
    for (int g = 1; g < r->k; ++g) {
        const double change = floor(aim_at(r, r->now, g, m) + rng_uniform(a->rng));
        r->next->count[g] = r->now->count[g] + change;
        first -= change;
    }
    r->next->count[0] = r->now->count[0] + first;
    for (int g = 0; g < r->k; ++g)
        if (!(r->next->count[g] > 0)) return -INFINITY;
    for (int g = 1; g < r->k; ++g) {
        const double change = r->next->count[g] - r->now->count[g];
        log_back += log_rounded(-change, aim_at(r, r->next, g, -m)) -
                    log_rounded(change, aim_at(r, r->now, g, m));
    }
    return log_back;
}

/* ---- the proposal of means and standard deviations --------------------------------------------
 */

/* H_g, or H for all levels, and Q of a column about its place p, with slopes: what moves the first
 * is the mean of level g, or of all. */
struct held {
    double at, at_mean, at_sd, square_mean;
};

static double first_held(const struct resize *r, const struct resize_totals *t, int i, int g) {
    return t->count[g] * (t->column[i * r->k + g].first - r->pace.total[i]);
}

static double square_held(const struct resize *r, const struct resize_totals *t, int i) {
    double sum = 0;
    for (int g = 0; g < r->k; ++g) {
        const struct clamped_moments *x = t->column + i * r->k + g;
        sum += t->count[g] * (x->second - r->pace.total[i] * (2 * x->first - r->pace.total[i]));
    }
    return sum;
}

/* adds level g to h, and to `square_sd` the slope of Q in the standard deviation */
static void add_slopes(const struct resize *r, const struct resize_totals *t, int i, int g,
                       struct held *h, double *square_sd) {
    const struct clamped_moments *x = t->column + i * r->k + g;
    const double count = t->count[g], p = r->pace.total[i];
    h->at += first_held(r, t, i, g);
    h->at_mean += count * x->first_mean;
    h->at_sd += count * x->first_sd;
    h->square_mean += count * (x->second_mean - 2 * p * x->first_mean);
    *square_sd += count * (x->second_sd - 2 * p * x->first_sd);
}

/* Which equations a column has: an H for each level, or one for all; and Q. */
static int firsts(const struct resize *r, int i) {
    return r->told.all[i] ? r->k : r->told.total[i] != 0;
}

/* Levels of equation e */
static int levels_of(const struct resize *r, int i, int e, int *first) {
    *first = r->told.all[i] ? e : 0;
    return r->told.all[i] ? e + 1 : r->k;
}

/* A step of Newton's method for the column, whose H should be `aim` and whose Q `square`: to
 * `step`, one for each H, and the standard deviation's is returned. The factors of D: to
 * newton.slope. */
static double newton(struct resize *r, const struct resize_totals *t, int i, const double *aim,
                     double square, double *step) {
    const int count = firsts(r, i), squared = r->told.product[i * r->d + i] != 0;
    double left = squared ? square_held(r, t, i) - square : 0, slope = 0, by_sd = 0;
    for (int e = 0; e < count; ++e) {
        struct held h = {0};
        int g;
        const int end = levels_of(r, i, e, &g);
        for (; g < end; ++g) add_slopes(r, t, i, g, &h, &slope);
        step[e] = (aim[e] - h.at) / h.at_mean;
        r->newton.left[e] = h.at_sd / h.at_mean;
        left += h.square_mean * step[e];
        slope -= h.square_mean * r->newton.left[e];
        r->newton.slope[e] = h.at_mean;
    }
    for (int g = 0; g < r->k && count == 0; ++g) {
        struct held h = {0};
        add_slopes(r, t, i, g, &h, &slope);
    }
    if (squared) {
        by_sd = -left / slope;
        r->newton.slope[count] = slope;
    }
    for (int e = 0; e < count; ++e) step[e] -= r->newton.left[e] * by_sd;
    return by_sd;
}

/* log D, after newton() */
static double log_slopes(const struct resize *r, int i) {
    double sum = 0;
    for (int e = 0; e < firsts(r, i) + (r->told.product[i * r->d + i] != 0); ++e)
        sum += log(r->newton.slope[e]);
    return sum;
}

/* Where the means, `mean`, and the standard deviation, which is returned, would be without bounds.
 */
static double first_guess(const struct resize *r, const struct resize_totals *from,
                          const struct resize_totals *to, int i, const double *aim, double square,
                          double *mean) {
    const int d = r->d, k = r->k, count = firsts(r, i);
    const double p = r->pace.total[i];
    double gap = count > 0 ? *aim : 0, variance = square;
    for (int g = 0; g < k; ++g) {
        mean[g] = from->total[g * d + i] / from->count[g];
        gap -= to->count[g] * (mean[g] - p);
    }
    for (int g = 0; g < k && count > 0; ++g)
        mean[g] = r->told.all[i] ? p + aim[g] / to->count[g] : mean[g] + gap / to->n;
    for (int g = 0; g < k; ++g) variance -= to->count[g] * (mean[g] - p) * (mean[g] - p);
    return r->told.product[i * d + i] && variance > 0 ? sqrt(variance / to->n) : from->sd[i];
}

/* Can records within the bounds have such H and Q? */
static int is_possible(const struct resize *r, const struct resize_totals *to, int i,
                       const double *aim, double square) {
    const double low = r->lower[i] - r->pace.total[i], high = r->upper[i] - r->pace.total[i];
    for (int e = 0; e < firsts(r, i); ++e) {
        const double count = r->told.all[i] ? to->count[e] : to->n;
        if (!(aim[e] > count * low && aim[e] < count * high)) return 0;
    }
    return !r->told.product[i * r->d + i] ||
           (square > 0 && square < to->n * fmax(low * low, high * high));
}

/* From a first guess to the means, `mean`, and the standard deviation of a column of `to` whose H
 * are newton.aim and whose Q is `square`. Returns how many steps of Newton's method it took; 0
 * where they lead nowhere. *log_slope: log D there. */
static int find(struct resize *r, struct resize_totals *to, int i, double square, double sd,
                double *mean, double *log_slope) {
    const int k = r->k, count = firsts(r, i);
    double *const aim = r->newton.aim, *const step = r->newton.step;
    if (!is_possible(r, to, i, aim, square)) return 0;
    for (int made = 1; made <= ITERATIONS; ++made) {
        resize_place_column(r, to, i, mean, sd);
        const double by = newton(r, to, i, aim, square, step);
        double most = fabs(by);
        for (int e = 0; e < count; ++e) {
            if (!isfinite(step[e])) return 0; /* which fmax() would not tell */
            most = fmax(most, fabs(step[e]));
        }
        if (!isfinite(by)) return 0;
        if (most <= LEFT * sd) {
            *log_slope = log_slopes(r, i);
            return isfinite(*log_slope) ? made : 0;
        }
        for (int g = 0; g < k && count > 0; ++g) {
            const double along = step[r->told.all[i] ? g : 0];
            mean[g] += fmax(-sd, fmin(along, sd));
        }
        sd = fmax(0.5 * sd, fmin(sd + by, 2 * sd));
    }
    return 0;
}

/* Means, to `mean`, and the standard deviation of a column of `to`, whose counts are there, that
 * has what `from` has: H times `stretch`, and Q, and `sign` times the changes. Returns how many
 * steps of Newton's method it took; 0 where they lead nowhere. *log_slope: log D there. */
static int solve(struct resize *r, const struct resize_totals *from, struct resize_totals *to,
                 int i, double stretch, double sign, double *mean, double *log_slope) {
    const int k = r->k, d = r->d;
    const double square = square_held(r, from, i) + sign * r->change.product[i * d + i];
    double *const aim = r->newton.aim;
    memset(aim, 0, (size_t)k * sizeof(double));
    for (int g = 0; g < k; ++g)
        aim[r->told.all[i] ? g : 0] +=
            stretch * first_held(r, from, i, g) + sign * r->change.first[g * d + i];
    return find(r, to, i, square, first_guess(r, from, to, i, aim, square, mean), mean, log_slope);
}

/* Does the way back lead to where it came from? */
static int leads_back(struct resize *r, const struct resize_totals *from,
                      const struct resize_totals *to, int i, double stretch) {
    struct resize_totals *back = r->kept + 3;
    double *const mean = r->newton.mean + r->k;
    double log_slope;
    back->n = from->n;
    memcpy(back->count, from->count, (size_t)r->k * sizeof(double));
    if (!solve(r, to, back, i, 1 / stretch, -1, mean, &log_slope)) return 0;
    int same = fabs(back->sd[i] - from->sd[i]) < SAME * from->sd[i];
    for (int g = 0; g < r->k; ++g)
        same =
            same && fabs(mean[g] - from->total[g * r->d + i] / from->count[g]) < SAME * from->sd[i];
    return same;
}

/* log D of a column where it is. */
static double log_slope_at(struct resize *r, const struct resize_totals *t, int i) {
    memset(r->newton.aim, 0, (size_t)r->k * sizeof(double));
    (void)newton(r, t, i, r->newton.aim, 0, r->newton.step);
    return log_slopes(r, i);
}

/* T and S_ii of a column; returns the log Jacobian, -INFINITY where no records have them. */
static double propose_column(struct resize *r, int i, double stretch) {
    const int d = r->d, k = r->k;
    const struct resize_totals *now = r->now;
    struct resize_totals *next = r->next;
    double *const mean = r->newton.mean;
    double log_slope;
    const int made = solve(r, now, next, i, stretch, 1, mean, &log_slope);
    if (made == 0) return -INFINITY;
    for (int g = 0; g < k; ++g) next->total[g * d + i] = next->count[g] * mean[g];
    if (made > FEW && !leads_back(r, now, next, i, stretch)) return -INFINITY;
    const double sd = next->sd[i];
    next->scatter[i * d + i] = next->n * sd * sd;
    double log_jacobian = log_slope_at(r, now, i) - log_slope + firsts(r, i) * log(stretch);
    for (int g = 0; g < k; ++g) log_jacobian += log(next->count[g] / now->count[g]);
    return log_jacobian + log(next->n / now->n) +
           (r->told.product[i * d + i] ? log(sd / now->sd[i]) : 0);
}

int resize_match(struct resize *r, struct resize_totals *t, const double *seen,
                 double *log_volume) {
    const int d = r->d;
    const double n = t->n;
    *log_volume = 0;
    for (int i = 0; i < d; ++i) {
        const double p = r->pace.total[i], second = seen[d + i * (i + 3) / 2];
        double mean = seen[i] / n, log_slope;
        const double variance = second / n - mean * mean;
        r->newton.aim[0] = seen[i] - n * p;
        if (!(variance > 0) ||
            !find(r, t, i, second - p * (2 * seen[i] - n * p), sqrt(variance), &mean, &log_slope))
            return 0;
        t->total[i] = n * mean;
        t->scatter[i * d + i] = n * t->sd[i] * t->sd[i];
        *log_volume += 2 * log(n) + log(t->sd[i]) - log_slope;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < i; ++j) {
            const struct clamped_moments *x = t->column + i, *y = t->column + j;
            const double slope = x->first_mean * y->first_mean;
            t->scatter[i * d + j] =
                (seen[d + i * (i + 1) / 2 + j] - n * x->first * y->first) / slope;
            *log_volume -= log(slope);
        }
    return resize_factorise(r, t);
}

/* S_ij; returns the log Jacobian. */
static double propose_product(struct augment *a, int i, int j) {
    struct resize *r = resize_of(a);
    const int d = r->d, at = i * d + j;
    const struct resize_totals *now = r->now;
    struct resize_totals *next = r->next;
    const double scale = next->n * next->sd[i] * next->sd[j] / (now->n * now->sd[i] * now->sd[j]);
    if (!r->told.product[at] || !r->told.product[i * d + i] || !r->told.product[j * d + j]) {
        next->scatter[at] = scale * now->scatter[at];
        return log(scale);
    }
    if (r->change.product[at] == 0) {
        const double old = now->scatter[at] / (now->n * now->sd[i] * now->sd[j]);
        const double fresh =
            tanh(atanh(old) + resize_released_z(a, next, i, j) - resize_released_z(a, now, i, j));
        next->scatter[at] = fresh * next->n * next->sd[i] * next->sd[j];
        return log(scale * (1 - fresh * fresh) / (1 - old * old));
    }
    double slope, slope_new;
    const double left = resize_product_held(r, now, i, j, &slope) + r->change.product[at] -
                        resize_product_held(r, next, i, j, &slope_new);
    const double share = next->n / now->n * slope / slope_new;
    next->scatter[at] = share * now->scatter[at] + next->n * left / slope_new;
    return log(share);
}

/* A new value of component `at` - 1 from its release and the noise, by chance in half of the cases:
 * the change, and the log density of the old value less the new value's. */
static double refresh(struct augment *a, int at, double *log_back) {
    const struct resize *r = resize_of(a);
    if (at == 0 || rng_bits(a->rng) >> 63) return 0;
    const int j = at - 1;
    const enum kernel kernel = a->noise.kernel[j];
    const double weight = a->noise.weight[j] * kernel_temper(kernel, *a->adapt.temper);
    const double noise = kernel_draw(kernel, a->rng);
    const double old = weight * (a->noise.released[j] - r->now->value[j]);
    *log_back += kernel_energy(kernel, noise) - kernel_energy(kernel, old);
    return (old + noise) / weight;
}

/* Changes of H, Q and products that new values of some components make. Returns the log density of
 * the old ones less the new ones'. */
static double refresh_components(struct augment *a) {
    struct resize *r = resize_of(a);
    const struct component *component = a->surrogate->density.component;
    const int d = r->d, k = r->k;
    double log_back = 0;
    for (int i = 0; i < d; ++i) {
        double left = 0;
        if (r->told.total[i])
            left =
                refresh(a, r->told.total[i], &log_back) / component[r->told.total[i] - 1].coef[0];
        const double all = left;
        for (int g = 1; g < k && r->told.all[i]; ++g) {
            const int at = r->told.cross[g * d + i];
            const double by = refresh(a, at, &log_back) / component[at - 1].coef[2];
            r->change.first[g * d + i] = by + r->pace.cross[g * d + i] * all;
            left -= r->change.first[g * d + i];
        }
        r->change.first[i] = left;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j <= i; ++j) {
            const int at = r->told.product[i * d + j];
            if (at && r->told.product[i * d + i] && r->told.product[j * d + j])
                r->change.product[i * d + j] =
                    refresh(a, at, &log_back) / component[at - 1].coef[2];
        }
    return log_back;
}

/* T and S of the next number of records; returns the log Jacobian, -INFINITY where no records have
 * them. */
static double propose_totals(struct augment *a, enum resize_kind kind) {
    struct resize *r = resize_of(a);
    const int d = r->d;
    const double stretch = kind == RESIZE_STRETCH ? sqrt(r->next->n / r->now->n) : 1;
    double log_jacobian = 0;
    memset(r->change.first, 0, (size_t)(r->k * d) * sizeof(double));
    memset(r->change.product, 0, (size_t)(d * d) * sizeof(double));
    if (kind == RESIZE_REFRESH) log_jacobian += refresh_components(a);
    const int grows = kind == RESIZE_GROW ? (int)augment_choose(a->rng, d) : -1;
    for (int i = 0; i < d; ++i) {
        log_jacobian += i == grows ? resize_grow_column(r, i) : propose_column(r, i, stretch);
        if (!(log_jacobian > -INFINITY)) return -INFINITY;
    }
    for (int i = 0; i < d; ++i)
        for (int j = 0; j < i; ++j) log_jacobian += propose_product(a, i, j);
    return resize_factorise(r, r->next) ? log_jacobian : -INFINITY;
}

/* What the model keeps of theta. */
static void propose_kept(struct augment *a) {
    const struct resize *r = resize_of(a);
    const struct model *model = &a->model;
    const int last = r->d * r->d - 1;
    const double log_share = log(r->next->n / r->now->n);
    double *const theta = r->next->theta;
    memcpy(theta, r->now->theta, (size_t)model->parameters * sizeof(double));
    for (int j = 0; j < model->marginal->keeps; ++j) {
        const int at = model->marginal->kept[j];
        const int learned = resize_place_of(a->size.slope.moving, a->size.slope.moves, at);
        if (at == model->marginal->residual)
            theta[at] += log(r->next->factor[last] / r->now->factor[last]) - 0.5 * log_share;
        else if (learned >= 0)
            theta[at] += a->size.slope.slope[learned] * log_share;
    }
}

/* The number of records that a step goes to, and the log of the proposal back over that forth. */
static double propose_size(struct augment *a, int fresh, double *log_back) {
    const double n = resize_of(a)->now->n;
    if (!fresh || !(rng_uniform(a->rng) < NEAR)) return augment_propose_size(a, n, fresh, log_back);
    *log_back = size_slope_share(&a->size.slope) * rng_normal(a->rng);
    return floor(exp(*log_back) * (n + rng_uniform(a->rng)));
}

double resize_step(struct augment *a, int fresh, enum resize_kind kind) {
    struct resize *r = resize_of(a);
    if (kind == RESIZE_SCATTER) return resize_draw_scatter(a);
    double log_ratio;
    const double n = propose_size(a, fresh, &log_ratio), m = n - r->now->n;
    log_ratio += n > r->k + r->d && m != 0 ? propose_counts(a, m) : -INFINITY;
    if (log_ratio > -INFINITY) log_ratio += propose_totals(a, kind);
    if (!(log_ratio > -INFINITY)) return -INFINITY;
    propose_kept(a);
    resize_evaluate(a, r->next);
    return log_ratio + r->next->log_density - r->now->log_density;
}
