/* Baselines of survival by interval. In interval j of a row, a stratum, the cumulative hazard grows
 * by d_j, independently of all others; its declared or learned mean grows by m_j = exp(log_mean_j),
 * times exp(level) where it is learned. With weight w_j
 *
 *   gamma process (Kalbfleisch 1978)  d_j / m_j ~ Gamma(w_j, w_j)
 *   beta process (Hjort 1990)         h_j = 1 - exp(-d_j) ~ Beta(a, b), a = w_j (1 - exp(-m_j)),
 *                                     b = w_j exp(-m_j).
 *
 * In u = log d, with r = d exp(-d) / h, the log densities and their slopes are
 *
 *   gamma  w (u - log m) - w d / m                      slope w (1 - d / m)
 *   beta   (a - 1) log h - b d + u - log B(a, b)        slope (a - 1) r - b d + 1,
 *
 * and in the level, with k = da / dlevel = w m exp(-m) = -db / dlevel, minus the former and
 * k (log h + d - digamma(a) + digamma(b)). The coordinate of sticks, t = -logit h, adds the
 * logarithm of |du / dt| = h / d, whose slope is h / d - (1 - h).
 *
 * Cost: an exponential or three and, where the mean of a beta process is learned, four gamma
 * functions, for each row and interval.
 */
#include "model/hazard_process.h"

#include "base/dist.h"
#include "base/sticks.h"

#include <Rmath.h>

struct growth growth_of_stick(double t) {
    struct growth p = {.missed = stick_share(-t)};
    if (t > 30) {
        p.size = exp(-t);
        p.log = -t;
        p.slope = -1;
    } else {
        p.size = t > 0 ? log1p(exp(-t)) : log1p(exp(t)) - t;
        p.log = log(p.size);
        p.slope = -p.missed / p.size;
    }
    return p;
}

double growth_log_missed(double log_size, double size) {
    return log_size < -30 ? log_size : log(-expm1(-size));
}

/* h / d */
static double growth_ratio(struct growth p) { return p.size > 0 ? p.missed / p.size : 1; }

double growth_slope_missed(double size) { return size > 1e-10 ? size / expm1(size) : 1; }

struct growth hazard_growth(const struct hazard_process *process, int j, double coordinate) {
    if (process->sticks) return growth_of_stick(coordinate);
    const double log_size = coordinate + process->log_width[j], size = exp(log_size);
    return (struct growth){.size = size, .log = log_size, .missed = -expm1(-size), .slope = 1};
}

/* A mean beyond exp(-700) of it leaves nothing. */
static const double LEAST_WEIGHT = 1e-300;

/* The prior of an interval. */
struct increment {
    double weight, log_mean, mean;
    double a, b, step; /* of a beta process; step: k */
};

static struct increment increment_of(const struct hazard_process *process, int j, double level) {
    struct increment of = {.weight = process->weight[j]};
    of.log_mean = process->log_mean[j] + (process->learned ? level : 0);
    of.mean = exp(of.log_mean);
    of.a = -of.weight * expm1(-of.mean);
    of.b = fmax(of.weight * exp(-of.mean), LEAST_WEIGHT);
    of.step = of.mean * of.b;
    return of;
}

double hazard_log_likelihood(const struct hazard_process *process, int j, double coordinate,
                             struct growth_data data) {
    const struct growth p = hazard_growth(process, j, coordinate);
    const double stay = data.exposure > 0 ? -data.exposure * p.size : 0;
    return data.events * growth_log_missed(p.log, p.size) + stay;
}

double hazard_log_marginal(const struct hazard_process *process, int j, double level,
                           struct growth_data data) {
    const struct increment of = increment_of(process, j, level);
    return Rf_lbeta(of.a + data.events, of.b + data.exposure) - Rf_lbeta(of.a, of.b);
}

double hazard_draw_given(const struct hazard_process *process, struct rng *rng, int j, double level,
                         struct growth_data data) {
    const struct increment of = increment_of(process, j, level);
    const double stayed = dist_log_gamma(rng, of.b + data.exposure);
    const double stick = stayed - dist_log_gamma(rng, of.a + data.events);
    return process->sticks ? stick : growth_of_stick(stick).log - process->log_width[j];
}

double hazard_log_increment(const struct hazard_process *process, int j, double level,
                            double coordinate) {
    const struct increment of = increment_of(process, j, level);
    const struct growth p = hazard_growth(process, j, coordinate);
    return of.a * growth_log_missed(p.log, p.size) - of.b * p.size - Rf_lbeta(of.a, of.b);
}

static double draw_gamma(const struct hazard_process *process, struct rng *rng, int j,
                         double level) {
    const struct increment of = increment_of(process, j, level);
    const double log_size = of.log_mean + dist_log_gamma(rng, of.weight) - log(of.weight);
    const double size = exp(log_size);
    return process->sticks ? -size - growth_log_missed(log_size, size)
                           : log_size - process->log_width[j];
}

void hazard_draw(const struct hazard_process *process, struct rng *rng, double level,
                 double *base) {
    const struct growth_data none = {0, 0};
    for (int j = 0; j < process->intervals; ++j)
        for (int row = 0; row < process->rows; ++row)
            base[row * process->intervals + j] =
                process->is_beta ? hazard_draw_given(process, rng, j, level, none)
                                 : draw_gamma(process, rng, j, level);
}

double hazard_log_prior(const struct hazard_process *process, double level, const double *base,
                        double *slope, double *slope_level) {
    double log_density = 0;
    for (int j = 0; j < process->intervals; ++j) {
        const struct increment of = increment_of(process, j, level);
        const int learned = process->learned && process->is_beta;
        const double norm = learned ? lgamma(of.a) + lgamma(of.b) : 0;
        const double centre = learned && slope ? Rf_digamma(of.a) - Rf_digamma(of.b) : 0;
        for (int row = 0; row < process->rows; ++row) {
            const int at = row * process->intervals + j;
            const struct growth p = hazard_growth(process, j, base[at]);
            double of_log, of_level;
            if (process->is_beta) {
                const double log_missed = growth_log_missed(p.log, p.size);
                log_density += (of.a - 1) * log_missed - of.b * p.size + p.log - norm;
                of_log = (of.a - 1) * growth_slope_missed(p.size) - of.b * p.size + 1;
                of_level = of.step * (log_missed + p.size - centre);
            } else {
                const double relative = p.log - of.log_mean, taken = exp(relative);
                log_density += of.weight * (relative - taken);
                of_log = of.weight * (1 - taken);
                of_level = -of_log;
            }
            if (process->sticks) log_density += growth_log_missed(p.log, p.size) - p.log;
            if (!slope) continue;
            slope[at] += of_log * p.slope;
            if (process->sticks) slope[at] -= p.slope + 1 - p.missed;
            if (process->learned) *slope_level += of_level;
        }
    }
    return log_density;
}

/* With what is expected of the increments: of a beta one in its stick, w h (1 - h) where h has its
 * mean. */
void hazard_add_information(const struct hazard_process *process, double level, const double *base,
                            int at, size_t size, double *matrix) {
    for (int j = 0; j < process->intervals; ++j) {
        const struct increment of = increment_of(process, j, level);
        const double own = process->is_beta ? of.a * of.b / of.weight : of.weight;
        const double both = process->is_beta ? of.step : -of.weight;
        const double of_level = process->is_beta
                                    ? of.step * of.step * (Rf_trigamma(of.a) + Rf_trigamma(of.b))
                                    : of.weight;
        for (int row = 0; row < process->rows; ++row) {
            const int place = row * process->intervals + j;
            const struct growth p = hazard_growth(process, j, base[place]);
            /* of the stick or of log d, in the coordinate */
            const double slope = !process->is_beta ? p.slope
                                 : process->sticks ? 1
                                                   : -1 / growth_ratio(p);
            double *line = matrix + (size_t)(at + place) * size;
            line[at + place] += own * slope * slope;
            if (process->learned) {
                line[0] += both * slope;
                matrix[0] += of_level;
            }
        }
    }
}
