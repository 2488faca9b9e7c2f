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

    /* Differences of what eval() computes for x_new and for x, in one pass: component j of record i
     * of x_new minus component j of record i of x, times weight[j], goes to row[i * width + j]. If
     * the number of components is odd, one more column is filled with anything. Returns 0 if the
     * statistic cannot do this; may be NULL. m is at most MAX_BLOCK. */
    int (*changes)(void *self, int m, const double *const *x, const double *const *x_new,
                   const double *weight, int width, double *row);

    /* total[j] += the block's sum of component j. */
    void (*total)(void *self, int m, const double *const *x, double *total);

    /* For counts, NULL otherwise: record i adds 1 to the components
     * index[k * stride + i], 0 <= k < touched; no two k ever share one. */
    void (*cells)(void *self, int m, const double *const *x, int stride, int *index);
};

#endif
