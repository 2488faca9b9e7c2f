/* Method "collapse", totals of a confidential response with public covariates: sums of y, of its
 * products with covariates, and of y^2, for a linear regression y = Z theta + o + sigma e whose
 * covariates are known for each record. Exact if nothing was clamped; free of the number of
 * records.
 *
 * The totals that are linear in y are A y, with public rows A. With R R' = A A' of full rank r,
 * and H = R^+ A (Z o),
 *
 *   A y = R v,  v = H (theta; 1) + sigma u,  u standard normal,
 *
 * and the square is |v|^2 plus the square of the remainder of y, whose mean has the square t^2 =
 * (theta; 1)' M (theta; 1), M = (Z o)'(Z o) - H'H:
 *
 *   y'y = |v|^2 + (t + sigma s)^2 + sigma^2 x,  s standard normal, x ~ chi^2 of n - r - 1
 *
 * degrees of freedom (of n - r where M is 0: then there is no s). If noise is large, NUTS moves
 * theta, u, s and log x. If it is small relative to the variation, it moves theta, v, t + sigma s
 * and log (sigma^2 x) instead ("centred"), which the release determines whatever theta is.
 *
 * Cost: for a gradient the entries of R, H and M. No allocation except in create().
 */
#include "base/linalg.h"
#include "contract/collapse.h"
#include "contract/model.h"
#include "mcmc/hmc.h"

struct public_totals {
    const struct model *model;
    int totals, rank, columns; /* released components; r; of (Z o) */
    int size;                  /* coordinates */
    struct {
        int u, s, x; /* among the coordinates; -1: there is none */
        int sigma;   /* in theta */
    } at;
    int centred;
    const double *begin; /* where chains start, theta's coordinates first; NULL: anywhere */
    double df;
    const double *root, *mean, *rest; /* R, H, M: rows */
    const double *known, *square; /* of each total: what no y is in, and the coefficient of y'y */
    struct {
        int count;
        const double *rows, *bounds; /* (Z o); between which y is clamped */
    } records;                       /* some */
    struct hmc hmc;
    int leapfrogs; /* of the last transition */

    double *coordinates; /* state: those of NUTS; all else of it follows */

    /* workspace */
    double *theta, *gradient, *point; /* point: (theta; 1) */
    double *v, *u, *pull, *total, *slope, *left;
    double *unit, *work;
};

static int read_matrices(const struct fields *fields, struct public_totals *s) {
    const int m = s->totals, c = s->columns;
    s->known = fields_vector(fields, "known", m);
    s->square = fields_vector(fields, "square", m);
    s->rank = fields_length(fields, "root") / m;
    s->root = fields_vector(fields, "root", m * s->rank);
    s->mean = fields_vector(fields, "mean", s->rank * c);
    s->rest = fields_vector(fields, "rest", c * c);
    s->records.count = fields_length(fields, "rows") / c;
    s->records.rows = fields_vector(fields, "rows", s->records.count * c);
    s->records.bounds = fields_vector(fields, "response_bounds", 2);
    const int ok = s->known && s->square && s->root && s->mean && s->rest && s->records.rows &&
                   s->records.bounds;
    return ok ? PLUGIN_OK : PLUGIN_BAD_FIELDS;
}

/* Fields: of R, H and M the rows, root, mean, rest; known and square, one a total; left, whether
 * there are s and x, and the degrees of freedom of x; rows, response_bounds. */
static int create(const struct fields *fields, struct collapse *of) {
    const struct model *model = &of->model;
    struct public_totals *s = plugin_memory(1, sizeof *s);
    const struct theta_block *beta = coordinates_find(&model->coordinates, "coefficients"),
                             *sigma = coordinates_find(&model->coordinates, "sigma");
    const double *left = fields_vector(fields, "left", 3);
    if (!beta || beta->offset != 0 || !sigma || !left || of->noise.size < 1)
        return PLUGIN_BAD_FIELDS;
    s->model = model;
    s->totals = of->noise.size;
    s->columns = beta->length + 1;
    s->at.sigma = sigma->offset;
    if (read_matrices(fields, s) != PLUGIN_OK) return PLUGIN_BAD_FIELDS;
    s->at.u = model->moving;
    s->size = s->at.u + s->rank;
    s->at.s = left[0] != 0 ? s->size++ : -1;
    s->at.x = left[1] != 0 ? s->size++ : -1;
    s->df = left[2];
    s->centred = fields_length(fields, "begin") > 0;
    s->begin = fields_vector(fields, "begin", beta->length + 1 + s->size - s->at.u);
    if (s->centred && !s->begin) return PLUGIN_BAD_FIELDS;
    const size_t size = (size_t)s->size, parameters = (size_t)model->parameters;
    DOUBLES(parameters, &s->theta, &s->gradient);
    DOUBLES((size_t)s->columns, &s->point, &s->left);
    DOUBLES((size_t)s->rank, &s->v, &s->u, &s->pull);
    DOUBLES((size_t)s->totals, &s->total, &s->slope);
    s->unit = doubles(5 * size);
    s->work = doubles(hmc_workspace(s->size, HMC_DENSE));
    of->self = s;
    of->stored = s->size + (int)hmc_stored(s->size, HMC_DENSE);
    return PLUGIN_OK;
}

/* ---- the density ------------------------------------------------------------------------ */

/* What a position represents. */
struct place {
    double sigma, mean, other, square; /* t; t + sigma s; sigma^2 x */
    double s, x;
};

/* v, the totals, and M (theta; 1) in `left` */
static struct place find_totals(struct public_totals *s, const double *q) {
    const int c = s->columns;
    coordinates_set_known(&s->model->coordinates, s->theta);
    for (int j = 0; j < s->model->moving; ++j) s->theta[s->model->moves[j]] = q[j];
    memcpy(s->point, s->theta, (size_t)(c - 1) * sizeof(double));
    s->point[c - 1] = 1;
    struct place p = {.sigma = exp(s->theta[s->at.sigma])};
    double square = 0;
    for (int i = 0; i < s->rank; ++i) {
        const double here = q[s->at.u + i];
        const double mean = linalg_dot(c, s->mean + (ptrdiff_t)i * c, s->point);
        s->v[i] = s->centred ? here : mean + p.sigma * here;
        s->u[i] = s->centred ? (here - mean) / p.sigma : here;
        square += s->v[i] * s->v[i];
    }
    if (s->at.s >= 0) {
        for (int j = 0; j < c; ++j)
            s->left[j] = linalg_dot(c, s->rest + (ptrdiff_t)j * c, s->point);
        p.mean = sqrt(fmax(linalg_dot(c, s->left, s->point), 0));
        p.other = s->centred ? q[s->at.s] : p.mean + p.sigma * q[s->at.s];
        p.s = s->centred ? (p.other - p.mean) / p.sigma : q[s->at.s];
    }
    if (s->at.x >= 0) {
        const double here = exp(q[s->at.x]), variance = p.sigma * p.sigma;
        p.square = s->centred ? here : variance * here;
        p.x = s->centred ? here / variance : here;
    }
    square += p.other * p.other + p.square;
    for (int k = 0; k < s->totals; ++k)
        s->total[k] = s->known[k] + s->square[k] * square +
                      linalg_dot(s->rank, s->root + (ptrdiff_t)k * s->rank, s->v);
    return p;
}

/* The log noise density; its slopes in v come to `pull`, that in y'y is returned in *of_square. */
static double noise(const struct collapse *of, struct public_totals *s, double *of_square) {
    const double energy = noise_pull(&of->noise, s->total, 0, s->slope);
    memset(s->pull, 0, (size_t)s->rank * sizeof(double));
    *of_square = 0;
    for (int k = 0; k < s->totals; ++k) {
        *of_square += s->slope[k] * s->square[k];
        for (int i = 0; i < s->rank; ++i)
            s->pull[i] += s->slope[k] * s->root[(ptrdiff_t)k * s->rank + i];
    }
    return -energy;
}

/* What the slopes of_v, of_other and of_sigma in v, t + sigma s and log sigma come to in theta. */
static void pull_theta(struct public_totals *s, const struct place *p, const double *of_v,
                       double of_other, double of_sigma, double *gradient) {
    const int c = s->columns;
    for (int i = 0; i < s->rank; ++i) {
        const double *row = s->mean + (ptrdiff_t)i * c;
        for (int j = 0; j < c - 1; ++j) gradient[j] += of_v[i] * row[j];
    }
    for (int j = 0; j < c - 1 && p->mean > 0; ++j) gradient[j] += of_other * s->left[j] / p->mean;
    gradient[s->at.sigma] += of_sigma;
}

/* The log density of what is moved with theta, given theta; with the slopes `pull` of the noise
 * in v and of_square in y'y, the slopes in it to `gradient`, and those in theta added to that. */
static double latent(struct public_totals *s, const struct place *p, double of_square,
                     double *gradient) {
    const double sigma = p->sigma;
    double value = 0, of_sigma = 0, of_other = 0;
    for (int i = 0; i < s->rank; ++i) {
        const double u = s->u[i], of_v = s->pull[i] + 2 * of_square * s->v[i];
        value -= 0.5 * u * u;
        gradient[s->at.u + i] = s->centred ? of_v - u / sigma : sigma * of_v - u;
        of_sigma += s->centred ? u * u - 1 : sigma * of_v * u;
        s->pull[i] = s->centred ? u / sigma : of_v;
    }
    if (s->at.s >= 0) {
        of_other = 2 * of_square * p->other;
        value -= 0.5 * p->s * p->s;
        gradient[s->at.s] = s->centred ? of_other - p->s / sigma : sigma * of_other - p->s;
        of_sigma += s->centred ? p->s * p->s - 1 : sigma * of_other * p->s;
        if (s->centred) of_other = p->s / sigma;
    }
    if (s->at.x >= 0) {
        value += 0.5 * (s->df * log(p->x) - p->x);
        gradient[s->at.x] = of_square * p->square + 0.5 * (s->df - p->x);
        of_sigma += s->centred ? p->x - s->df : 2 * of_square * p->square;
    }
    pull_theta(s, p, s->pull, of_other, of_sigma, s->gradient);
    return s->centred ? value - (s->rank + (s->at.s >= 0)) * log(sigma) : value;
}

/* for mcmc/hmc.h */
static double log_density(void *self, const double *q, double *gradient) {
    const struct collapse *of = self;
    struct public_totals *s = of->self;
    const struct place p = find_totals(s, q);
    double value = model_prior(s->model, s->theta, s->gradient), of_square;
    if (!(value > -INFINITY)) return -INFINITY;
    value += noise(of, s, &of_square);
    value += latent(s, &p, of_square, gradient);
    for (int j = 0; j < s->model->moving; ++j) gradient[j] = s->gradient[s->model->moves[j]];
    return isfinite(value) ? value : -INFINITY;
}

/* ---- the method ----------------------------------------------------------------------------- */

static void attach(struct collapse *of) {
    struct public_totals *s = of->self;
    const struct hmc_target target = {s->size, of, log_density, NULL};
    s->coordinates = of->store;
    hmc_attach(&s->hmc, &target, HMC_DENSE, s->coordinates + s->size, s->work);
}

static void load(struct collapse *of) {
    struct public_totals *s = of->self;
    attach(of);
    memcpy(s->hmc.q, s->coordinates, (size_t)s->size * sizeof(double));
    for (int j = 0; j < s->model->moving; ++j) s->hmc.q[j] = of->theta[s->model->moves[j]];
    (void)hmc_refresh(&s->hmc);
}

static void tell(struct collapse *of) {
    struct public_totals *s = of->self;
    memcpy(s->coordinates, s->hmc.q, (size_t)s->size * sizeof(double));
    for (int j = 0; j < s->model->moving; ++j) of->theta[s->model->moves[j]] = s->hmc.q[j];
}

static void start(struct collapse *of) {
    struct public_totals *s = of->self;
    const int size = s->size;
    double *q = s->unit + size;
    attach(of);
    memset(q, 0, (size_t)size * sizeof(double));
    for (int j = 0; j < s->at.u; ++j) {
        const int at = s->model->moves[j];
        q[j] = s->centred && !of->given && at < s->columns ? s->begin[at] : of->theta[at];
    }
    if (s->at.x >= 0) q[s->at.x] = log(s->df);
    if (s->centred)
        memcpy(q + s->at.u, s->begin + s->columns, (size_t)(size - s->at.u) * sizeof(double));
    for (int j = 0; j < size; ++j) s->unit[j] = 1 + fabs(q[j]);
    hmc_lower_units(&s->hmc.target, q, s->unit, q + size);
    hmc_start(&s->hmc, q, s->unit);
    if (hmc_refresh(&s->hmc)) hmc_find_step(&s->hmc, of->rng);
    tell(of);
}

static int iterate(struct collapse *of, int iteration, int warmup, double *accepted) {
    struct public_totals *s = of->self;
    struct hmc_step told;
    hmc_nuts(&s->hmc, of->rng, &told);
    hmc_learn(&s->hmc, iteration, warmup, &told, of->rng);
    tell(of);
    hmc_count(of->counter, &told);
    s->leapfrogs = told.leapfrogs;
    *accepted = told.accept;
    return PLUGIN_OK;
}

static void statistic(const struct collapse *of, double *out) {
    struct public_totals *s = of->self;
    (void)find_totals(s, s->coordinates);
    memcpy(out, s->total, (size_t)s->totals * sizeof(double));
}

static double energy(const struct collapse *of) {
    struct public_totals *s = of->self;
    double of_square;
    (void)find_totals(s, s->coordinates);
    return -noise(of, s, &of_square);
}

/* of some records, evenly spread */
static double outside(const struct collapse *of) {
    struct public_totals *s = of->self;
    const struct place p = find_totals(s, s->coordinates);
    double sum = 0;
    for (int i = 0; i < s->records.count; ++i) {
        const double eta =
            linalg_dot(s->columns, s->records.rows + (ptrdiff_t)i * s->columns, s->point);
        sum += 0.5 * erfc((eta - s->records.bounds[0]) / p.sigma * sqrt(0.5)) +
               0.5 * erfc((s->records.bounds[1] - eta) / p.sigma * sqrt(0.5));
    }
    return sum / s->records.count;
}

static double work(const struct collapse *of) {
    const struct public_totals *s = of->self;
    return (1.0 + s->leapfrogs) * (8.0 * (s->rank + 2) * (s->totals + s->columns) + 500);
}

static double density_at(const struct collapse *of, const double *q, double *gradient) {
    struct collapse *self = ((struct public_totals *)of->self)->hmc.target.self;
    return log_density(self, q, gradient);
}

static const struct collapse_coordinates coordinates = {.log_density = density_at};

const struct collapse_class collapse_public_totals = {
    .name = "public_totals",
    .counters =
        {
            HMC_COUNTER_NAMES(0),
        },
    .create = create,
    .start = start,
    .load = load,
    .iterate = iterate,
    .statistic = statistic,
    .energy = energy,
    .outside = outside,
    .work = work,
    .coordinates = &coordinates,
};
