/* Linear queries: component k = sum_j weight_kj t_j of the components t_j of another plug-in. They
 * wrap any statistic (stat/linear_queries.c) and its moments (clt/linear_queries.c). */
#ifndef NOISEAWARE_STAT_LINEAR_QUERIES_H
#define NOISEAWARE_STAT_LINEAR_QUERIES_H

#include "contract/moments.h"
#include "contract/stat.h"

/* Row by row: the entries of query k are first[k] to first[k + 1] - 1. */
struct queries {
    int size, of; /* queries; components that they are made of */
    int *first, *column;
    const double *weight;
};

/* Fields: first, one more than there are queries; column and weight, one an entry. Returns
 * PLUGIN_*. */
int queries_read(const struct fields *fields, int of, struct queries *queries);

/* out[k * stride] += what the queries make of t, each of its components t_stride apart. */
void queries_add(const struct queries *queries, const double *t, size_t t_stride, size_t stride,
                 double *out);

/* out[j] += weight times what the queries' transpose makes of r. */
void queries_add_transposed(const struct queries *queries, double weight, const double *r,
                            double *out);

/* PLUGIN_BAD_FIELDS where `of` wants all records at once. */
int stat_linear(const struct fields *fields, const struct stat *of, struct stat *stat);

/* The released components become the queries'; those that `of` has go aside. */
int moments_linear(const struct fields *fields, const struct record_moments *of,
                   struct record_moments *moments);

#endif
