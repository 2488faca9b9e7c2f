/* Method "collapse", normal totals: records that are normal given theta, and a
 * statistic made of totals of the variables and of their products. Exact if no
 * record lies outside the bounds.
 *
 * With record law N(mean, L L'), totals T and scatter S (products about their
 * average) are
 *
 *   T = n mean + sqrt(n) L g,   S = L B B' L',   P = S + T T' / n,
 *
 * g standard normal; B lower triangular with min(n - 1, q) columns (Bartlett's
 * decomposition, which holds for singular scatter too): below the diagonal
 * standard normal, on it chi with n - 1, n - 2, ... degrees. These are the
 * innovations u = (g, B). A diagonal entry b is held as
 * sqrt(2) (b - sqrt(degrees)), which is about standard normal; it may be negative
 * along with its column, S does not see it.
 *
 * Target: p(theta) p(u) eta(z | s(theta, u)). An iteration makes
 *
 * 1. passes: a random walk of theta with u held fixed (learned by adapt.c), the
 *    non-centred view that suits much noise;
 * 2. a draw of u given theta: s is nearly linear in u, so the normal law of a
 *    Gauss-Newton fit is nearly the right one, and Metropolis-Hastings makes it
 *    exact; then a walk of u with the fit's shape, for where the fit is poor;
 * 3. jumps: theta from a t law about what warmup learned, u from the fit there,
 *    accepted together;
 * 4. theta given T and S by the model's own update, the centred view that suits
 *    little noise; u follows from theta, T and S.
 *
 * An absolute kernel is a scale mixture of normals (MATH part 2): for 2 and 3 its
 * mixing variables are drawn given s, and forgotten afterwards.
 *
 * Invariant: a fit depends on theta and the mixing variables, never on u. So the
 * proposals of 2 and 3 do not depend on the innovations they replace.
 *
 * Cost for d innovations: O(q^2 + size q) a pass, O(d^2 (d + size)) a fit. No
 * allocation in any loop.
 */
#include "adapt.h"
#include "dist.h"
#include "linalg.h"
#include "method_collapse.h"

#include <Rmath.h>

/* degrees of freedom of the jumps */
static const double JUMP_DF = 6;

/* A fit has converged when its last step, in standard deviations, squared and
 * summed, is no longer than this. */
static const double CONVERGED = 0.02;

/* Acceptance rate that the totals' walk aims at. */
static const double WALK_TARGET = 0.30;

/* A jump is worth its price if one in ten lands. */
static const double LEAST_LANDED = 0.1;

/* SETTLING: iterations at the start that find the region, see draw_totals() */
/* kinds of moves that are counted */
enum { DRAWS, JUMPING, PASSES };

enum { MOST_STEPS = 8, MOST_HALVINGS = 6, JUMPS = 2, SETTLING = 20 };

/* A released component in terms of the columns' totals T and totals of products
 * P, both measured from the model's origin: constant + first T_i + second T_j +
 * product P_ij. */
struct term {
    int i, j; /* in the law's order */
    double constant, first, second, product;
};

/* A parameter, innovations, and what follows from them. */
struct point {
    double *theta;
    double *innovation;  /* q of the totals, then the factor's, row by row */
    double *mean, *chol; /* law of a record */
    double *total;       /* q, from the origin */
    double *factor;      /* q x rank: scatter = factor factor' */
    double *statistic;   /* the released components before noise */
    double log_prior, log_innovation, energy;
};

/* Normal approximation to the law of the innovations given theta, the release
 * and the noise's precisions. */
struct fit {
    double *precision; /* its lower Cholesky factor */
    double *mean;
    double log_det; /* of the factor */
};

struct normal {
    struct model model;
    int q, rank;        /* columns; min(n - 1, q) columns of the scatter's factor */
    int innovations;    /* q + entries of the factor */
    int size, absolute; /* released components, first those with the absolute kernel */
    struct term *term;
    const double *released, *weight;
    const double *lower, *upper; /* bounds of the columns, natural units */
    double n;

    struct point now;
    struct rng *rng;
    struct adapt adapt;       /* of theta */
    double *stride, *strides; /* log scale of the totals' walk, steps it was learned from */
    double *jumps;            /* in an iteration */
    double *centre;           /* of the jumps, whose shape is adapt's */
    const double *move_sd, *passes;

    /* Workspace */
    struct point next;
    struct fit fit, fit_next;
    double *noise;    /* precision of each component's noise */
    double *gradient; /* of a component */
    double *square;   /* q x q */
    double *complete, *step, *shift, *before;
    int *position; /* of a column in the law's order */
};

static double *doubles(size_t count) { return plugin_memory(count, sizeof(double)); }

static void copy(double *to, const double *from, int count) {
    memcpy(to, from, (size_t)count * sizeof(double));
}

static double square_sum(int n, const double *x) {
    double sum = 0;
    for (int a = 0; a < n; ++a) sum += x[a] * x[a];
    return sum;
}

static void prepare_point(const struct normal *c, struct point *p) {
    const size_t q = (size_t)c->q;
    p->theta = doubles((size_t)c->model.parameters);
    p->innovation = doubles((size_t)c->innovations);
    p->mean = doubles(q);
    p->chol = doubles(q * q);
    p->total = doubles(q);
    p->factor = doubles(q * (size_t)c->rank);
    p->statistic = doubles((size_t)c->size);
}

static void prepare(struct normal *c) {
    const int q = c->q = c->model.columns;
    c->rank = c->n - 1 < q ? (int)(c->n - 1) : q;
    c->innovations = q;
    for (int i = 0; i < q; ++i) c->innovations += i < c->rank ? i + 1 : c->rank;
    prepare_point(c, &c->now);
    prepare_point(c, &c->next);
    const size_t d = (size_t)c->innovations;
    struct fit *const fits[] = {&c->fit, &c->fit_next};
    for (int k = 0; k < 2; ++k) {
        fits[k]->precision = doubles(d * d);
        fits[k]->mean = doubles(d);
    }
    const size_t longest = d > (size_t)c->model.moving ? d : (size_t)c->model.moving;
    c->noise = doubles((size_t)c->size);
    c->gradient = doubles(d);
    c->square = doubles((size_t)q * (size_t)q);
    c->complete = doubles((size_t)c->model.complete);
    c->step = doubles(longest);
    c->shift = doubles(longest);
    c->before = doubles((size_t)c->model.moving);
    c->position = plugin_memory((size_t)q, sizeof(int));
    for (int k = 0; k < q; ++k) c->position[c->model.order[k]] = k;
}

/* rows of the field "terms", one column a component */
enum { TERM_I, TERM_J, TERM_CONSTANT, TERM_FIRST, TERM_SECOND, TERM_PRODUCT, TERM_ROWS };

enum { SCALARS = 3 };

static int create(const struct fields *fields, struct collapse *of) {
    if (!of->model.origin) return PLUGIN_BAD_FIELDS;
    struct normal *c = plugin_memory(1, sizeof *c);
    const int size = of->size, moving = of->model.moving;
    c->model = of->model;
    c->n = of->n;
    c->size = size;
    c->absolute = of->absolute;
    c->released = of->released;
    c->weight = of->weight;
    const double *terms = fields_vector(fields, "terms", TERM_ROWS * size);
    c->lower = fields_vector(fields, "lower", of->model.columns);
    c->upper = fields_vector(fields, "upper", of->model.columns);
    c->move_sd = fields_vector(fields, "move_sd", moving);
    c->passes = fields_vector(fields, "passes", 1);
    if (!terms || !c->lower || !c->upper || !c->move_sd || !c->passes) return PLUGIN_BAD_FIELDS;
    prepare(c);
    c->term = plugin_memory((size_t)size, sizeof *c->term);
    for (int k = 0; k < size; ++k, terms += TERM_ROWS) {
        c->term[k].i = c->position[(int)terms[TERM_I]];
        c->term[k].j = c->position[(int)terms[TERM_J]];
        c->term[k].constant = terms[TERM_CONSTANT];
        c->term[k].first = terms[TERM_FIRST];
        c->term[k].second = terms[TERM_SECOND];
        c->term[k].product = terms[TERM_PRODUCT];
    }
    of->self = c;
    const struct adapt_shape shape = {.dim = moving};
    of->stored = c->innovations + SCALARS + moving + (int)adapt_size(&shape);
    return PLUGIN_OK;
}

static void attach(const struct collapse *of) {
    struct normal *c = of->self;
    double *learned = of->store + c->innovations;
    c->rng = of->rng;
    c->stride = learned;
    c->strides = learned + 1;
    c->jumps = learned + 2;
    c->centre = learned + SCALARS;
    const struct adapt_shape shape = {.dim = c->model.moving};
    adapt_attach(&c->adapt, &shape, c->centre + c->model.moving);
}

/* ---- innovations to totals and back -------------------------------------------- */

/* column j of the factor has a chi variable with so many degrees on its diagonal */
static double degrees(const struct normal *c, int j) { return c->n - 1 - j; }

/* Loops over the factor's entries, in the order of the innovations. */
#define FOR_FACTOR(c, i, j) \
    for (int i = 0; i < (c)->q; ++i) \
        for (int j = 0; j < (c)->rank && j <= i; ++j)

static double bartlett(const struct normal *c, int i, int j, double innovation) {
    return i == j ? sqrt(degrees(c, j)) + innovation * M_SQRT1_2 : innovation;
}

static void totals_from_innovations(const struct normal *c, struct point *p) {
    const int q = c->q, r = c->rank;
    const double *u = p->innovation, root = sqrt(c->n);
    for (int i = 0; i < q; ++i) {
        double sum = 0;
        for (int k = 0; k <= i; ++k) sum += p->chol[i * q + k] * u[k];
        p->total[i] = c->n * p->mean[i] + root * sum;
    }
    double *b = c->square;
    u += q;
    FOR_FACTOR(c, i, j) b[i * q + j] = bartlett(c, i, j, *u++);
    FOR_FACTOR(c, i, j) {
        double sum = 0;
        for (int k = j; k <= i; ++k) sum += p->chol[i * q + k] * b[k * q + j];
        p->factor[i * r + j] = sum;
    }
}

static void innovations_from_totals(const struct normal *c, struct point *p) {
    const int q = c->q, r = c->rank;
    const double root = sqrt(c->n);
    double *u = p->innovation, *b = c->square;
    for (int i = 0; i < q; ++i) {
        double sum = (p->total[i] - c->n * p->mean[i]) / root;
        for (int k = 0; k < i; ++k) sum -= p->chol[i * q + k] * u[k];
        u[i] = sum / p->chol[i * q + i];
    }
    u += q;
    FOR_FACTOR(c, i, j) {
        double sum = p->factor[i * r + j];
        for (int k = j; k < i; ++k) sum -= p->chol[i * q + k] * b[k * q + j];
        const double entry = b[i * q + j] = sum / p->chol[i * q + i];
        *u++ = i == j ? (entry - sqrt(degrees(c, j))) * M_SQRT2 : entry;
    }
}

/* ---- densities ------------------------------------------------------------------- */

static double log_innovation(const struct normal *c, const double *u) {
    double log_density = 0;
    for (int i = 0; i < c->q; ++i) log_density -= 0.5 * u[i] * u[i];
    u += c->q;
    FOR_FACTOR(c, i, j) {
        const double v = *u++, df = degrees(c, j);
        if (i == j) { /* chi, less its value at sqrt(df): no digit is lost if df is large */
            const double excess = v / sqrt(2 * df);
            if (df > 1) log_density += (df - 1) * log(fabs(1 + excess));
            log_density -= df * excess * (1 + 0.5 * excess);
        } else {
            log_density -= 0.5 * v * v;
        }
    }
    return log_density;
}

static double scatter(const struct normal *c, const struct point *p, int i, int j) {
    const double *a = p->factor + (size_t)i * c->rank, *b = p->factor + (size_t)j * c->rank;
    const int least = i < j ? i : j, end = least < c->rank ? least + 1 : c->rank;
    double sum = 0;
    for (int k = 0; k < end; ++k) sum += a[k] * b[k];
    return sum;
}

static double product(const struct normal *c, const struct point *p, int i, int j) {
    return scatter(c, p, i, j) + p->total[i] * p->total[j] / c->n;
}

static void measure(const struct normal *c, struct point *p) {
    totals_from_innovations(c, p);
    for (int k = 0; k < c->size; ++k) {
        const struct term *t = c->term + k;
        double value = t->constant + t->first * p->total[t->i];
        if (t->product != 0)
            value += t->second * p->total[t->j] + t->product * product(c, p, t->i, t->j);
        p->statistic[k] = value;
    }
}

static double residual(const struct normal *c, const struct point *p, int k) {
    return c->released[k] - p->statistic[k];
}

static void weigh(const struct normal *c, struct point *p) {
    measure(c, p);
    p->log_innovation = log_innovation(c, p->innovation);
    p->energy = 0;
    for (int k = 0; k < c->size; ++k) {
        const double r = residual(c, p, k) * c->weight[k];
        p->energy += k < c->absolute ? fabs(r) : 0.5 * r * r;
    }
}

/* the same with the mixing variables given */
static double mixed_energy(const struct normal *c, const struct point *p) {
    double energy = 0;
    for (int k = 0; k < c->size; ++k)
        energy += 0.5 * c->noise[k] * residual(c, p, k) * residual(c, p, k);
    return energy;
}

static void set_theta(const struct normal *c, struct point *p) {
    p->log_prior = c->model.class->dprior(c->model.self, p->theta);
    c->model.class->law(c->model.self, p->theta, p->mean, p->chol);
}

static void refresh(struct normal *c) {
    set_theta(c, &c->now);
    weigh(c, &c->now);
}

/* ---- proposals --------------------------------------------------------------------- */

static void gather(const struct normal *c, const double *theta, double *out) {
    for (int j = 0; j < c->model.moving; ++j) out[j] = theta[c->model.moves[j]];
}

/* next = now with other values of the moving coordinates */
static void propose_theta(struct normal *c, const double *moving) {
    copy(c->next.theta, c->now.theta, c->model.parameters);
    for (int j = 0; j < c->model.moving; ++j) c->next.theta[c->model.moves[j]] = moving[j];
    set_theta(c, &c->next);
}

static void keep_next(struct normal *c) {
    const struct point old = c->now;
    c->now = c->next;
    c->next = old;
}

static int metropolis(struct normal *c, double log_ratio) {
    const int accept = -log_ratio < rng_exponential(c->rng); /* NaN: no */
    if (accept) keep_next(c);
    return accept;
}

static double probability(double log_ratio) {
    return log_ratio >= 0 ? 1 : log_ratio > -50 ? exp(log_ratio) : 0;
}

static int pass(struct normal *c, int learning) {
    const int moving = c->model.moving;
    gather(c, c->now.theta, c->shift);
    (void)adapt_propose(&c->adapt, PASS_WALK, c->shift, c->rng, c->step);
    for (int j = 0; j < moving; ++j) c->shift[j] += c->step[j];
    propose_theta(c, c->shift);
    double log_ratio = -INFINITY;
    if (isfinite(c->next.log_prior)) {
        copy(c->next.innovation, c->now.innovation, c->innovations);
        weigh(c, &c->next);
        log_ratio = c->next.log_prior - c->now.log_prior + c->now.energy - c->next.energy;
    }
    const int accept = metropolis(c, log_ratio);
    if (learning) adapt_saw_pass(&c->adapt, PASS_WALK, probability(log_ratio), c->step, 1);
    return accept;
}

/* ---- the fit ------------------------------------------------------------------------ */

/* Precision of each component's noise. An absolute kernel's 1 / omega^2 given
 * the residual r is inverse Gaussian with mean 1 / (b |r|) and shape 1 / b^2
 * (Michael, Schucany & Haas 1976, in a form without cancellation). */
static void draw_noise(struct normal *c, int settling) {
    for (int k = 0; k < c->size; ++k) {
        const double shape = c->weight[k] * c->weight[k];
        c->noise[k] = shape;
        if (k >= c->absolute || settling) continue;
        const double r = fabs(residual(c, &c->now, k)), mean = c->weight[k] / r;
        const double normal = rng_normal(c->rng), uniform = rng_uniform(c->rng);
        const double chi = normal * normal, a = 0.5 * mean * chi / shape;
        /* at r = 0 the limit of a large mean */
        const double root = isfinite(a) ? mean / (1 + a + sqrt(a * (a + 2))) : shape / chi;
        const double drawn = uniform * (1 + root / mean) <= 1 ? root : mean * (mean / root);
        c->noise[k] = drawn < 1e300 ? drawn : 1e300;
    }
}

/* d statistic_k / d innovations at p */
static void component_gradient(const struct normal *c, const struct point *p, int k, double *out) {
    const int q = c->q, r = c->rank;
    const struct term *t = c->term + k;
    const double *li = p->chol + (size_t)t->i * q, *lj = p->chol + (size_t)t->j * q;
    const double *fi = p->factor + (size_t)t->i * r, *fj = p->factor + (size_t)t->j * r;
    const double root = sqrt(c->n);
    const double along_i = root * (t->first + t->product * p->total[t->j] / c->n);
    const double along_j = root * (t->second + t->product * p->total[t->i] / c->n);
    /* rows of chol are zero beyond their diagonal */
    for (int l = 0; l < q; ++l) *out++ = along_i * li[l] + along_j * lj[l];
    FOR_FACTOR(c, l, m) {
        const double slope = t->product * (li[l] * fj[m] + lj[l] * fi[m]);
        *out++ = l == m ? slope * M_SQRT1_2 : slope;
    }
}

/* Normal equations at p: precision, and the right side in mean. */
static void normal_equations(struct normal *c, const struct point *p, struct fit *fit) {
    const int d = c->innovations;
    double *h = fit->precision, *right = fit->mean, *row = c->gradient;
    memset(h, 0, (size_t)d * (size_t)d * sizeof(double));
    memset(right, 0, (size_t)d * sizeof(double));
    for (int k = 0; k < c->size; ++k) {
        component_gradient(c, p, k, row);
        double target = residual(c, p, k);
        for (int a = 0; a < d; ++a) target += row[a] * p->innovation[a];
        for (int a = 0; a < d; ++a) {
            const double weighted = row[a] * c->noise[k];
            if (weighted == 0) continue;
            right[a] += weighted * target;
            for (int b = 0; b <= a; ++b) h[(size_t)a * d + b] += weighted * row[b];
        }
    }
    for (int a = 0; a < c->q; ++a) h[(size_t)a * d + a] += 1;
    int a = c->q;
    FOR_FACTOR(c, i, j) {
        double *curvature = h + (size_t)a * d + a;
        if (i == j) { /* the chi density's own */
            const double df = degrees(c, j), b = bartlett(c, i, j, p->innovation[a]);
            const double pull = df > 1 ? (df - 1) / b : 0;
            const double own = df > 1 ? 0.5 * (pull / b + 1) : 0.5;
            *curvature += own;
            right[a] += own * p->innovation[a] + (pull - b) * M_SQRT1_2;
        } else {
            *curvature += 1;
        }
        ++a;
    }
}

/* x = L' x */
static void multiply_transposed(int n, const double *l, double *x) {
    for (int b = 0; b < n; ++b) {
        double sum = 0;
        for (int a = b; a < n; ++a) sum += l[(size_t)a * n + b] * x[a];
        x[b] = sum;
    }
}

/* minus the log density of the innovations given theta, the release and the
 * mixing variables */
static double misfit(const struct normal *c, struct point *p) {
    measure(c, p);
    return mixed_energy(c, p) - log_innovation(c, p->innovation);
}

/* Gauss-Newton steps, halved where they overshoot, from innovations 0 for the
 * theta of p, whose innovations it changes. Returns whether there is a fit. */
static int fit_at(struct normal *c, struct point *p, struct fit *fit) {
    const int d = c->innovations;
    double *from = c->step, *way = c->shift;
    memset(p->innovation, 0, (size_t)d * sizeof(double));
    double least = misfit(c, p), length = INFINITY;
    for (int step = 0; step < MOST_STEPS && length > CONVERGED; ++step) {
        normal_equations(c, p, fit);
        if (linalg_cholesky(d, fit->precision)) return 0;
        linalg_forward(d, fit->precision, fit->mean);
        linalg_backward(d, fit->precision, fit->mean);
        copy(from, p->innovation, d);
        for (int a = 0; a < d; ++a) way[a] = fit->mean[a] - from[a];
        double share = 1, reached = INFINITY;
        for (int half = 0; half < MOST_HALVINGS; ++half, share *= 0.5) {
            for (int a = 0; a < d; ++a) p->innovation[a] = from[a] + share * way[a];
            reached = misfit(c, p);
            if (reached <= least) break;
        }
        if (!(reached <= least)) {
            copy(p->innovation, from, d);
            break;
        }
        least = reached;
        multiply_transposed(d, fit->precision, way);
        length = square_sum(d, way);
    }
    copy(fit->mean, p->innovation, d);
    fit->log_det = 0;
    for (int a = 0; a < d; ++a) fit->log_det += log(fit->precision[(size_t)a * d + a]);
    return isfinite(fit->log_det);
}

static double fit_density(struct normal *c, const struct fit *fit, const double *u) {
    const int d = c->innovations;
    for (int a = 0; a < d; ++a) c->shift[a] = u[a] - fit->mean[a];
    multiply_transposed(d, fit->precision, c->shift);
    return fit->log_det - 0.5 * square_sum(d, c->shift);
}

/* next's innovations: scale times a draw of the fit's shape, about `from` */
static void draw_about(struct normal *c, const struct fit *fit, const double *from, double scale) {
    const int d = c->innovations;
    rng_fill_normal(c->rng, d, c->step);
    linalg_backward(d, fit->precision, c->step);
    for (int a = 0; a < d; ++a) c->next.innovation[a] = from[a] + scale * c->step[a];
    weigh(c, &c->next);
}

/* log of target over proposal, the mixing variables given */
static double weight_under(struct normal *c, const struct fit *fit, const struct point *p) {
    return p->log_prior + p->log_innovation - mixed_energy(c, p) -
           fit_density(c, fit, p->innovation);
}

/* ---- moves of the totals, and jumps --------------------------------------------------- */

static void next_at_theta(struct normal *c) {
    copy(c->next.theta, c->now.theta, c->model.parameters);
    copy(c->next.mean, c->now.mean, c->q);
    copy(c->next.chol, c->now.chol, c->q * c->q);
    c->next.log_prior = c->now.log_prior;
}

/* While settling, a draw that comes closer to the release is always taken: the
 * chain then finds the region as the normal approximation would. */
static int draw_totals(struct normal *c, int settling) {
    next_at_theta(c);
    draw_about(c, &c->fit, c->fit.mean, 1);
    const double log_ratio = weight_under(c, &c->fit, &c->next) - weight_under(c, &c->fit, &c->now);
    if (settling && c->next.energy < c->now.energy) {
        keep_next(c);
        return 1;
    }
    return metropolis(c, log_ratio);
}

static int walk_totals(struct normal *c, int learning) {
    next_at_theta(c);
    draw_about(c, &c->fit, c->now.innovation, exp(*c->stride));
    const double log_ratio = c->next.log_innovation - c->now.log_innovation +
                             mixed_energy(c, &c->now) - mixed_energy(c, &c->next);
    if (learning) {
        *c->strides += 1;
        const double gain = 2 / (1 + pow(*c->strides, 0.6));
        *c->stride += gain * (probability(log_ratio) - WALK_TARGET);
    }
    return metropolis(c, log_ratio);
}

/* log density of the jumps, up to a constant */
static double jump_density(struct normal *c, const double *theta) {
    const int moving = c->model.moving;
    gather(c, theta, c->step);
    for (int j = 0; j < moving; ++j) c->step[j] -= c->centre[j];
    linalg_forward(moving, c->adapt.chol, c->step);
    return -0.5 * (JUMP_DF + moving) * log1p(square_sum(moving, c->step) / JUMP_DF);
}

static int jump(struct normal *c) {
    const int moving = c->model.moving;
    const double spread = sqrt(JUMP_DF / dist_chisq(c->rng, JUMP_DF));
    rng_fill_normal(c->rng, moving, c->step);
    for (int i = 0; i < moving; ++i) {
        double sum = 0;
        for (int j = 0; j <= i; ++j) sum += c->adapt.chol[(size_t)i * moving + j] * c->step[j];
        c->shift[i] = c->centre[i] + spread * sum;
    }
    propose_theta(c, c->shift);
    if (!isfinite(c->next.log_prior) || !fit_at(c, &c->next, &c->fit_next)) return 0;
    draw_about(c, &c->fit_next, c->fit_next.mean, 1);
    const double log_ratio = weight_under(c, &c->fit_next, &c->next) -
                             weight_under(c, &c->fit, &c->now) + jump_density(c, c->now.theta) -
                             jump_density(c, c->next.theta);
    if (!metropolis(c, log_ratio)) return 0;
    const struct fit old = c->fit;
    c->fit = c->fit_next;
    c->fit_next = old;
    return 1;
}

/* theta given the totals by the model's own update */
static int redraw_theta(struct normal *c) {
    const int q = c->q, *at = c->position;
    double *out = c->complete;
    for (int v = 0; v < q; ++v) *out++ = c->now.total[at[v]];
    for (int v = 0; v < q; ++v)
        for (int w = v; w < q; ++w) *out++ = product(c, &c->now, at[v], at[w]);
    const int status =
        c->model.class->rtheta(c->model.self, c->complete, c->n, c->rng, c->now.theta);
    if (status != PLUGIN_OK) return status;
    set_theta(c, &c->now);
    innovations_from_totals(c, &c->now);
    return isfinite(log_innovation(c, c->now.innovation)) ? PLUGIN_OK : PLUGIN_NUMERICAL;
}

/* ---- start, learning, an iteration ------------------------------------------------------ */

static void start(struct collapse *of) {
    struct normal *c = of->self;
    attach(of);
    memset(of->store, 0, (size_t)of->stored * sizeof(double));
    double *u = of->store;
    for (int i = 0; i < c->q; ++i) *u++ = rng_normal(c->rng);
    FOR_FACTOR(c, i, j) {
        const double df = degrees(c, j);
        *u++ = i == j ? (sqrt(dist_chisq(c->rng, df)) - sqrt(df)) * M_SQRT2 : rng_normal(c->rng);
    }
    *c->stride = log(2.38 / sqrt((double)c->innovations));
    adapt_start(&c->adapt, c->move_sd, *c->passes);
}

static void load(struct collapse *of) {
    struct normal *c = of->self;
    attach(of);
    copy(c->now.theta, of->theta, c->model.parameters);
    copy(c->now.innovation, of->store, c->innovations);
    refresh(c);
}

static void save(struct collapse *of) {
    const struct normal *c = of->self;
    copy(of->theta, c->now.theta, c->model.parameters);
    copy(of->store, c->now.innovation, c->innovations);
}

static void learn(struct collapse *of, int iteration, int warmup) {
    struct normal *c = of->self;
    struct adapt *adapt = &c->adapt;
    gather(c, c->now.theta, c->shift);
    adapt_saw_sweep(adapt, c->before, c->shift, 1);
    if (!adapt_window(iteration, warmup)) return;
    const double *jumped = of->counter + 2 * JUMPING;
    copy(c->step, adapt->mean, c->model.moving);
    adapt_close_window(adapt, WINDOW_ENDS);
    if (c->model.moving == 0 || *adapt->count > 0) return; /* too short a window: goes on */
    copy(c->centre, c->step, c->model.moving);
    *c->strides = 0;
    *c->jumps = jumped[MADE] > 0 && jumped[ACCEPTED] < LEAST_LANDED * jumped[MADE] ? 0 : JUMPS;
    memset(of->counter, 0, COLLAPSE_COUNTERS * sizeof(double));
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct normal *c = of->self;
    const int learning = iteration < warmup;
    const int settling = iteration < SETTLING && iteration < warmup / 5;
    refresh(c);
    for (int k = 0; k < (int)*c->passes; ++k) collapse_count(of, PASSES, pass(c, learning));
    gather(c, c->now.theta, c->before);

    draw_noise(c, settling);
    next_at_theta(c);
    int drawn = 0;
    if (fit_at(c, &c->next, &c->fit)) {
        drawn = draw_totals(c, settling);
        (void)walk_totals(c, learning);
        const int jumps = (int)*c->jumps;
        for (int k = 0; k < jumps; ++k) collapse_count(of, JUMPING, jump(c));
    }
    collapse_count(of, DRAWS, drawn);
    *accepted = drawn;

    const int status = redraw_theta(c);
    if (status == PLUGIN_OK && learning) learn(of, iteration, warmup);
    return status;
}

static void statistic(const struct collapse *of, double *out) {
    const struct normal *c = of->self;
    copy(out, c->now.statistic, c->size);
}

static double energy(const struct collapse *of) {
    const struct normal *c = of->self;
    return c->now.energy;
}

/* the tails of the variables' marginal laws, summed */
static double outside(const struct collapse *of) {
    const struct normal *c = of->self;
    double share = 0;
    for (int k = 0; k < c->q; ++k) {
        const int v = c->model.order[k];
        const double mean = c->model.origin[v] + c->now.mean[k];
        const double sd = sqrt(square_sum(k + 1, c->now.chol + (size_t)k * c->q));
        share += Rf_pnorm5(c->lower[v], mean, sd, 1, 0) + Rf_pnorm5(c->upper[v], mean, sd, 0, 0);
    }
    return share < 1 ? share : 1;
}

static double work(const struct collapse *of) {
    const struct normal *c = of->self;
    const double d = c->innovations, fits = 1 + *c->jumps;
    return *c->passes * c->q * (c->q + c->size) + 3 * fits * d * d * (d + c->size) + 100;
}

const struct collapse_class collapse_normal = {
    .name = "normal",
    .create = create,
    .start = start,
    .load = load,
    .save = save,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .outside = outside,
    .work = work,
};
