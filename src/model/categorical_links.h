#ifndef NOISEAWARE_MODEL_CATEGORICAL_LINKS_H
#define NOISEAWARE_MODEL_CATEGORICAL_LINKS_H

#include "contract/plugin.h"

/* Responses of several levels 0, 1, ..: the probabilities of these given linear predictors. See
 * model/categorical_links.c. Arrays over a block's records are rows of MAX_BLOCK: one for each
 * predictor, each level, or each tail. */

struct categories_class;

struct categories {
    const struct categories_class *class;
    int levels;
    int predictors; /* linear ones */
    int tails;      /* levels - 1: P(y > k), k < tails */
    int ordered;    /* is there one predictor, which cuts are taken from? */
    double *work;   /* a value for each level */
};

struct categories_class {
    const char *name; /* of R's field that asks for it */
    double cost;      /* of the tails, in random normals, for each of them */
    int ordered;

    /* Goal: tail[k], k < tails: P(y > k). `cut` grows from cut[0] = 0; of unordered ones it is
     * not looked at. */
    void (*tail)(const struct categories *c, const double *cut, int m, const double *eta,
                 double *tail);

    /* Goal: log P(y) of one record, whose predictors are `stride` apart; unless they are NULL also
     * its slopes in each predictor, and in each cut. */
    double (*log)(const struct categories *c, const double *cut, const double *eta, int stride,
                  int y, double *of_eta, double *of_cut);

    /* Goal: log P(y) of every level of one record whose predictors are next to each other; slope:
     * for each level a row of its slopes in the predictors and, of ordered ones, in cuts 1, 2, ...
     */
    void (*logs)(const struct categories *c, const double *cut, const double *eta, double *log_p,
                 double *slope);

    /* Goal: slopes in the predictors, and those in the cuts summed over the records, of a function
     * with these slopes in the probabilities of the levels, whose tails these are. */
    void (*pull)(const struct categories *c, const double *cut, int m, const double *eta,
                 const double *tail, const double *slope, double *of_eta, double *of_cut);
};

/* Those of which there is a field, with its number of levels. Returns 0 if there are none. */
int categories_create(const struct fields *fields, struct categories *c);

/* y of uniform numbers. */
void categories_level(const struct categories *c, int m, const double *u, const double *tail,
                      double *y);

/* y with the tails tail_new: where w is below `keep`, at the innovation of y, drawn uniformly among
 * those that it may have, else at a fresh one; w is used for either. */
void categories_respond(const struct categories *c, int m, double keep, const double *w,
                        const double *tail, const double *y, const double *tail_new, double *y_new);

#endif
