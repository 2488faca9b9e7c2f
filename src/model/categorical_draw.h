#ifndef NOISEAWARE_MODEL_CATEGORICAL_DRAW_H
#define NOISEAWARE_MODEL_CATEGORICAL_DRAW_H

#include "base/rng.h"

/* A variable with levels 0, 1, ..., drawn from a vector of probabilities: one for
 * all records, or one of several, its rows, for each record. See model/categorical_draw.c. */

/* What levels are found by, under one parameter. */
struct level_table {
    double *bound;     /* levels + 1 a row, see sticks_to_bounds() */
    int *guide, *edge; /* NULL where the variable has none */
};

struct levels {
    int levels, cuts; /* cuts: levels - 1, the number of sticks of a row */
    int rows;
    int buckets; /* of a row's guide; 0: none */
    int quick;   /* whether 16 random bits nearly always tell the level */
    struct level_table now, next;
};

/* Workspace that the variables of a record share: MAX_BLOCK of each. */
struct level_work {
    double *u, *keep;
    uint16_t *piece;
};

struct levels levels_new(int levels, int rows);
struct level_work level_work_new(void);

/* Makes these sticks, row after row, the current parameter; the one that
 * levels_move() goes to. */
void levels_set(const struct levels *v, const double *stick);
void levels_set_next(const struct levels *v, const double *stick);

/* In what follows `row` holds each record's row, NULL if there is one row only; level
 * and x hold levels as numbers. */

/* Levels drawn afresh, also as integers. */
void levels_draw(const struct levels *v, const struct level_work *work, struct rng *rng, int m,
                 const int *row, int *code, double *level);

/* Levels of x, of one row, kept with probability rho, else drawn afresh: one uniform decides and
 * draws. With rho = 0 x is not looked at. */
void levels_refresh(const struct levels *v, const struct level_work *work, double rho,
                    struct rng *rng, int m, const double *x, double *level);

/* The non-centred move: uniforms drawn where they give the level x under the current
 * parameter and `row`, and the levels that they give under the next one and row_to.
 * `level` may be x. */
void levels_move(const struct levels *v, const struct level_work *work, struct rng *rng, int m,
                 const int *row, const int *row_to, const double *x, double *level);

/* levels as integers */
void levels_codes(int m, const double *level, int *code);

#endif
