/* Randomised response for a response with several levels: with the probabilities p_l(eta) of
 * model/categorical_links.c, and a true answer r, or each other level with `lie` times its
 * probability,
 *
 *   p(r | eta) = p_r + lie sum over l != r of p_l = lie + (1 - lie) p_r,
 *
 * up to a constant. For ordered levels, the shape's coordinates are the logarithms of the
 * distances between cuts.
 *
 * Cost per record: the probability, and a slope in each predictor and cut. No allocation except in
 * create().
 */
#include "totals/noisy_answers.h"

#include "model/categorical_links.h"

struct noisy_levels {
    struct categories response;
    const double *lie;
    double *cut, *distance; /* the cuts, the first 0, and how far each is from the one before */
    double *eta, *of_eta, *of_cut;
};

/* Fields: lie, one a record; the family, with its number of levels. */
static int create(const struct fields *fields, struct noisy_answers *a) {
    struct noisy_levels *s = plugin_memory(1, sizeof *s);
    s->lie = fields_vector(fields, "lie", a->records);
    if (!s->lie || !categories_create(fields, &s->response)) return PLUGIN_BAD_FIELDS;
    const size_t levels = (size_t)s->response.levels;
    DOUBLES(levels, &s->cut, &s->distance, &s->eta, &s->of_eta, &s->of_cut);
    a->levels = s;
    a->predictors = s->response.predictors;
    a->shapes = s->response.ordered ? s->response.tails - 1 : 0;
    return PLUGIN_OK;
}

static void set(struct noisy_answers *a, const double *coordinates) {
    struct noisy_levels *s = a->levels;
    s->cut[0] = 0;
    for (int k = 0; k < a->shapes; ++k) {
        s->distance[k] = exp(coordinates[k]);
        s->cut[k + 1] = s->cut[k] + s->distance[k];
    }
}

/* log p(r | eta) of record i, whose slopes are left in of_eta and of_cut */
static double one_answer(const struct noisy_answers *a, int i) {
    const struct noisy_levels *s = a->levels;
    const int level = (int)a->answer[i];
    const double log_p =
        s->response.class->log(&s->response, s->cut, s->eta, 1, level, s->of_eta, s->of_cut);
    const double p = exp(log_p), density = s->lie[i] + (1 - s->lie[i]) * p;
    const double share = (1 - s->lie[i]) * p / density;
    for (int e = 0; e < a->predictors; ++e) s->of_eta[e] *= share;
    for (int k = 0; k <= a->shapes; ++k) s->of_cut[k] *= share;
    return log(density);
}

static double log_density(const struct noisy_answers *a, int first, int m, const double *eta,
                          double *slope, double *of_shape) {
    const struct noisy_levels *s = a->levels;
    double sum = 0;
    for (int i = 0; i < m; ++i) {
        for (int e = 0; e < a->predictors; ++e) s->eta[e] = eta[(ptrdiff_t)e * MAX_BLOCK + i];
        sum += one_answer(a, first + i);
        for (int e = 0; e < a->predictors; ++e) slope[(ptrdiff_t)e * MAX_BLOCK + i] = s->of_eta[e];
        double beyond = 0; /* a distance is part of all greater cuts */
        for (int k = a->shapes - 1; k >= 0; --k) {
            beyond += s->of_cut[k + 1];
            of_shape[(ptrdiff_t)k * MAX_BLOCK + i] = beyond * s->distance[k];
        }
    }
    return sum;
}

const struct noisy_answer_class noisy_answer_levels = {
    .create = create, .set = set, .log_density = log_density};
