/* Randomised response for a response with several levels: with the probabilities p_l(eta) of
 * model/categorical_links.c, and the probabilities of the answers given a level
 * (contract/channel.h),
 *
 *   p(r | eta) = sum over l of P(r | l) p_l = base_r + sum over l of (P(r | l) - base_r) p_l.
 *
 * For ordered levels, the shape's coordinates are the logarithms of the
 * distances between cuts.
 *
 * Cost per record: for each level that is more likely to be answered so than the least likely one,
 * its probability, and a slope in each predictor and cut. No allocation except in
 * create().
 */
#include "totals/noisy_answers.h"

#include "contract/channel.h"
#include "model/categorical_links.h"

struct noisy_levels {
    struct categories response;
    struct channel *channel;
    double *cut, *distance; /* the cuts, the first 0, and how far each is from the one before */
    double *eta, *of_eta, *of_cut; /* the last two of an answer */
    double *eta_of_level, *cut_of_level;
};

/* Fields: those of channels_read(); the family, with its number of levels. */
static int create(const struct fields *fields, struct noisy_answers *a) {
    struct noisy_levels *s = plugin_memory(1, sizeof *s);
    if (channels_read(fields, &s->channel) != 1 || !categories_create(fields, &s->response) ||
        s->channel->levels != s->response.levels)
        return PLUGIN_BAD_FIELDS;
    const size_t levels = (size_t)s->response.levels;
    DOUBLES(levels, &s->cut, &s->distance, &s->eta, &s->of_eta, &s->of_cut, &s->eta_of_level,
            &s->cut_of_level);
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
    const struct channel *c = s->channel;
    const int answer = (int)a->answer[i];
    double density = c->base[answer];
    for (int e = 0; e < a->predictors; ++e) s->of_eta[e] = 0;
    for (int k = 0; k <= a->shapes; ++k) s->of_cut[k] = 0;
    for (int j = c->first[answer]; j < c->first[answer + 1]; ++j) {
        const double part =
            c->more[j] * exp(s->response.class->log(&s->response, s->cut, s->eta, 1, c->level[j],
                                                    s->eta_of_level, s->cut_of_level));
        density += part;
        for (int e = 0; e < a->predictors; ++e) s->of_eta[e] += part * s->eta_of_level[e];
        for (int k = 0; k <= a->shapes; ++k) s->of_cut[k] += part * s->cut_of_level[k];
    }
    for (int e = 0; e < a->predictors; ++e) s->of_eta[e] /= density;
    for (int k = 0; k <= a->shapes; ++k) s->of_cut[k] /= density;
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
