/* Contract of a statistic: what was summed over the records. See contract/plugin.h. */
#ifndef NOISEAWARE_CONTRACT_STAT_H
#define NOISEAWARE_CONTRACT_STAT_H

#include "contract/plugin.h"

struct stat_class;

struct stat {
    const struct stat_class *class;
    void *self;
    int columns; /* variables it looks at */
    int size;    /* components */
    int touched; /* with cells(): how many components a record can touch */
    int whole;   /* wants all records in one block */
};

struct stat_class {
    const char *name;
    int (*create)(const struct fields *fields, struct stat *stat);

    /* Component j of record i goes to t[j * stride + i]. */
    void (*eval)(void *self, int m, const double *const *x, int stride, double *t);

    /* What eval() would tell of both, in one go: component j of record i of x_new
     * less that of x, times weight[j], goes to row[i * width + j], and anything
     * to one more column if there is an odd number of them. Returns 0 if this
     * statistic cannot; may be NULL. m is at most MAX_BLOCK. */
    int (*changes)(void *self, int m, const double *const *x, const double *const *x_new,
                   const double *weight, int width, double *row);

    /* total[j] += the block's sum of component j. */
    void (*total)(void *self, int m, const double *const *x, double *total);

    /* For counts, NULL otherwise: record i adds 1 to the components
     * index[k * stride + i], 0 <= k < touched; no two k ever share one. */
    void (*cells)(void *self, int m, const double *const *x, int stride, int *index);
};

#endif
