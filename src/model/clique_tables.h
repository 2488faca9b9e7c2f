#ifndef NOISEAWARE_MODEL_CLIQUE_TABLES_H
#define NOISEAWARE_MODEL_CLIQUE_TABLES_H

#include "contract/plugin.h"

/* The parts of a table of codes: distributions of some columns, the children, given others, the
 * parents; see model/clique_tables.c. */
struct part_columns {
    int levels, rows; /* rows: combinations of the parents' codes */
    int children, parents;
    int *child, *parent; /* columns */
    /* with several children: their codes, one after the other, level by level; and the level of
     * each combination of codes, the last child's the fastest, -1: it is impossible */
    const double *code;
    int *level_of;
};

/* Fields columns, the codes of each; levels, children and parents, how many a part has; child and
 * parent, the columns, part after part; code, of the levels of each part with several children,
 * level by level. Writes how many columns and parts there are, the columns' sizes and the parts.
 * Returns PLUGIN_*. */
int table_parts_read(const struct fields *fields, int *columns, int **size, int *parts,
                     struct part_columns **part);

#endif
