/* Natural values and unconstrained coordinates: see contract/coordinates.h. The cost is
 * proportional to the length of the block; for a covariance of p rows it is p^3. */
#include "contract/coordinates.h"

#include "base/linalg.h"
#include "base/memory.h"
#include "base/sticks.h"

const char *const transform_names[TRANSFORMS] = {"identity",   "log",    "centre",
                                                 "thresholds", "sticks", "log_cholesky"};

static const double simplex_tolerance = 1e-6;

static int triangle(int size) { return size * (size + 1) / 2; }

static int packed(int i, int j) { return triangle(i) + j; }

/* Coefficients v as others, out = matrix v, the intercept apart; returns that of `out`. */
static double map(int slopes, const double *matrix, double intercept, const double *v,
                  double *out) {
    const size_t size = (size_t)slopes + 1;
    for (int i = 0; i < slopes; ++i) {
        const double *row = matrix + (size_t)(i + 1) * size;
        out[i] = row[0] * intercept + linalg_dot(slopes, row + 1, v);
    }
    return matrix[0] * intercept + linalg_dot(slopes, matrix + 1, v);
}

/* Natural coefficients of coordinates t, the intercept apart, which is returned. */
static double expand(const struct theta_block *block, int slopes, double intercept, const double *t,
                     double *value) {
    const double *centre = block->centre;
    if (block->expand) return map(slopes, block->expand, intercept, t, value) + centre[0];
    memcpy(value, t, (size_t)slopes * sizeof(double));
    return centre[0] + intercept - linalg_dot(slopes, t, centre + 1);
}

/* and the way back */
static double collect(const struct theta_block *block, int slopes, double intercept,
                      const double *value, double *t) {
    const double *centre = block->centre;
    if (block->collect) return map(slopes, block->collect, intercept - centre[0], value, t);
    memcpy(t, value, (size_t)slopes * sizeof(double));
    return intercept - centre[0] + linalg_dot(slopes, value, centre + 1);
}

int block_values(const struct theta_block *block) {
    switch (block->transform) {
    case TRANSFORM_STICKS:
        return block->rows * block->size;
    case TRANSFORM_LOG_CHOLESKY:
        return triangle(block->size);
    default:
        return block->size;
    }
}

int block_reported(const struct theta_block *block) {
    if (block->known) return 0;
    return block->reports_last ? block->rows : block_values(block);
}

void coordinates_finish(struct coordinates *coordinates) {
    coordinates->length = 0;
    for (int k = 0; k < coordinates->count; ++k) {
        struct theta_block *block = coordinates->block + k;
        block->offset = coordinates->length;
        block->length = block_values(block);
        if (block->transform == TRANSFORM_STICKS) block->length -= block->rows;
        coordinates->length += block->length;
    }
}

const struct theta_block *coordinates_find(const struct coordinates *coordinates,
                                           const char *name) {
    for (int k = 0; k < coordinates->count; ++k)
        if (strcmp(coordinates->block[k].name, name) == 0) return coordinates->block + k;
    return NULL;
}

const struct theta_block *coordinates_probabilities(const struct coordinates *coordinates, int n) {
    for (int k = 0; k < coordinates->count; ++k)
        if (coordinates->block[k].transform == TRANSFORM_STICKS && n-- == 0)
            return coordinates->block + k;
    return NULL;
}

/* ---- transforms ------------------------------------------------------------------- */

double centred_intercept(int size, const double *centre, const double *theta) {
    return centre[0] + theta[0] - linalg_dot(size - 1, theta + 1, centre + 1);
}

void threshold_distances(int thresholds, const double *theta, double *distance) {
    distance[0] = 0;
    for (int k = 1; k < thresholds; ++k) distance[k] = distance[k - 1] + exp(theta[k]);
}

void unpack_cholesky(int size, const double *theta, int width, double *chol) {
    for (int i = 0; i < size; ++i) {
        double *row = chol + (size_t)i * width;
        for (int j = 0; j < width; ++j) row[j] = j < i ? theta[packed(i, j)] : 0;
        row[i] = exp(theta[packed(i, i)]);
    }
}

void pack_cholesky(int size, const double *chol, double *theta) {
    for (int i = 0; i < size; ++i) {
        const double *row = chol + (size_t)i * size;
        for (int j = 0; j < i; ++j) theta[packed(i, j)] = row[j];
        theta[packed(i, i)] = log(row[i]);
    }
}

/* element (i, j), j <= i, of the factor that is packed at t */
static double factor_at(const double *t, int i, int j) {
    return j < i ? t[packed(i, j)] : exp(t[packed(i, i)]);
}

static void covariance(int size, const double *t, double *value) {
    for (int i = 0; i < size; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = 0;
            for (int l = 0; l <= j; ++l) sum += factor_at(t, i, l) * factor_at(t, j, l);
            *value++ = sum;
        }
}

static int factor_covariance(int size, const double *value, double *t) {
    double *chol = doubles((size_t)size * (size_t)size);
    for (int i = 0; i < size; ++i)
        for (int j = 0; j <= i; ++j) chol[(size_t)i * size + j] = value[packed(i, j)];
    if (linalg_cholesky(size, chol)) return 1;
    pack_cholesky(size, chol, t);
    return 0;
}

static int is_simplex(int levels, const double *probability) {
    double sum = 0;
    for (int l = 0; l < levels; ++l) {
        if (!(probability[l] >= 0)) return 0;
        sum += probability[l];
    }
    return fabs(sum - 1) <= simplex_tolerance;
}

void block_constrain(const struct theta_block *block, const double *theta, double *value) {
    const double *t = theta + block->offset;
    const int size = block->size;
    switch (block->transform) {
    case TRANSFORM_LOG:
        for (int j = 0; j < size; ++j) value[j] = exp(t[j]);
        break;
    case TRANSFORM_CENTRE:
        value[0] = expand(block, size - 1, t[0], t + 1, value + 1);
        break;
    case TRANSFORM_THRESHOLDS: {
        const int rows = block->rows;
        const double first = -expand(block, size - rows, t[0], t + rows, value + rows);
        threshold_distances(rows, t, value);
        for (int k = 0; k < rows; ++k) value[k] += first;
        break;
    }
    case TRANSFORM_STICKS:
        for (int r = 0; r < block->rows; ++r, t += size - 1, value += size)
            sticks_to_probabilities(size, t, value);
        break;
    case TRANSFORM_LOG_CHOLESKY:
        covariance(size, t, value);
        break;
    default:
        memcpy(value, t, (size_t)size * sizeof(double));
    }
}

int block_unconstrain(const struct theta_block *block, const double *value, double *theta) {
    double *t = theta + block->offset;
    const int size = block->size;
    switch (block->transform) {
    case TRANSFORM_LOG:
        for (int j = 0; j < size; ++j) {
            if (!(value[j] > 0)) return 1;
            t[j] = log(value[j]);
        }
        return 0;
    case TRANSFORM_CENTRE:
        t[0] = collect(block, size - 1, value[0], value + 1, t + 1);
        return 0;
    case TRANSFORM_THRESHOLDS:
        for (int k = 1; k < block->rows; ++k) {
            if (!(value[k] > value[k - 1])) return 1;
            t[k] = log(value[k] - value[k - 1]);
        }
        t[0] = collect(block, size - block->rows, -value[0], value + block->rows, t + block->rows);
        return 0;
    case TRANSFORM_STICKS:
        for (int r = 0; r < block->rows; ++r, t += size - 1, value += size) {
            if (!is_simplex(size, value)) return 1;
            sticks_from_probabilities(size, value, t);
        }
        return 0;
    case TRANSFORM_LOG_CHOLESKY:
        return factor_covariance(size, value, t);
    default:
        memcpy(t, value, (size_t)size * sizeof(double));
        return 0;
    }
}

double block_log_jacobian(const struct theta_block *block, const double *theta) {
    const double *t = theta + block->offset;
    double sum = 0;
    switch (block->transform) {
    case TRANSFORM_LOG:
        for (int j = 0; j < block->size; ++j) sum += t[j];
        return sum;
    case TRANSFORM_THRESHOLDS:
        for (int k = 1; k < block->rows; ++k) sum += t[k];
        return sum;
    case TRANSFORM_STICKS:
        /* of each stick: probability of the levels from it on, times share (1 - share) */
        for (int r = 0; r < block->rows; ++r) {
            double log_rest = 0;
            for (int l = 0; l < block->size - 1; ++l, ++t) {
                const double softplus = (*t > 0 ? *t : 0) + log1p(exp(-fabs(*t)));
                sum += log_rest + *t - 2 * softplus;
                log_rest -= softplus;
            }
        }
        return sum;
    case TRANSFORM_LOG_CHOLESKY:
        /* d cov = prod_i 2 L_ii^(p - i) L_ii d t, i from 0 */
        for (int i = 0; i < block->size; ++i)
            sum += log(2) + (block->size - i + 1) * t[packed(i, i)];
        return sum;
    default:
        return 0;
    }
}

/* ---- all blocks --------------------------------------------------------------------- */

void coordinates_set_known(const struct coordinates *coordinates, double *theta) {
    for (int k = 0; k < coordinates->count; ++k) {
        const struct theta_block *block = coordinates->block + k;
        if (block->known)
            memcpy(theta + block->offset, block->known, (size_t)block->length * sizeof(double));
    }
}

double *coordinates_report(const struct coordinates *coordinates, const double *theta,
                           double *out) {
    for (int k = 0; k < coordinates->count; ++k) {
        const struct theta_block *block = coordinates->block + k;
        if (block->known) continue;
        if (block->reports_last) {
            for (int r = 0; r < block->rows; ++r) {
                double rest = 1;
                (void)stick_break(theta[block->offset + r], &rest);
                *out++ = rest;
            }
        } else {
            block_constrain(block, theta, out);
            out += block_values(block);
        }
    }
    return out;
}

int coordinates_invert(const struct coordinates *coordinates, const double *value, double *theta) {
    coordinates_set_known(coordinates, theta);
    for (int k = 0; k < coordinates->count; ++k) {
        const struct theta_block *block = coordinates->block + k;
        if (block->known) continue;
        if (block->reports_last) {
            for (int r = 0; r < block->rows; ++r) {
                const double pair[] = {1 - value[r], value[r]};
                if (!is_simplex(2, pair)) return k;
                sticks_from_probabilities(2, pair, theta + block->offset + r);
            }
        } else if (block_unconstrain(block, value, theta)) {
            return k;
        }
        value += block_reported(block);
    }
    return -1;
}
