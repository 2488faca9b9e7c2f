/* Reads the parts of a table of codes, for their model ("categorical") and for the method that
 * moves the table without records ("collapse"). */
#include "model/clique_tables.h"

static int *read_columns(const double **at, int count) {
    int *column = plugin_memory((size_t)count, sizeof *column);
    for (int k = 0; k < count; ++k) column[k] = (int)*(*at)++;
    return column;
}

static int product(const int *size, int count, const int *column) {
    int all = 1;
    for (int k = 0; k < count; ++k) all *= size[column[k]];
    return all;
}

static void read_codes(const int *size, struct part_columns *part, const double **at) {
    const int all = product(size, part->children, part->child);
    part->code = *at;
    part->level_of = plugin_memory((size_t)all, sizeof *part->level_of);
    for (int k = 0; k < all; ++k) part->level_of[k] = -1;
    for (int l = 0; l < part->levels; ++l) {
        int combination = 0;
        for (int k = 0; k < part->children; ++k)
            combination = combination * size[part->child[k]] + (int)*(*at)++;
        part->level_of[combination] = l;
    }
}

int table_parts_read(const struct fields *fields, int *columns, int **size, int *parts,
                     struct part_columns **part) {
    *columns = fields_length(fields, "columns");
    *parts = fields_length(fields, "levels");
    const double *codes = fields_vector(fields, "columns", *columns);
    const double *levels = fields_vector(fields, "levels", *parts);
    const double *children = fields_vector(fields, "children", *parts);
    const double *parents = fields_vector(fields, "parents", *parts);
    const double *child = fields_vector(fields, "child", -1);
    const double *parent = fields_vector(fields, "parent", -1);
    const double *code = fields_vector(fields, "code", -1);
    if (!codes || !levels || !children || !parents || !child || !parent || !code || *parts < 1)
        return PLUGIN_BAD_FIELDS;
    *size = plugin_memory((size_t)*columns, sizeof **size);
    for (int c = 0; c < *columns; ++c) (*size)[c] = (int)codes[c];
    *part = plugin_memory((size_t)*parts, sizeof **part);
    for (int k = 0; k < *parts; ++k) {
        struct part_columns *one = *part + k;
        one->levels = (int)levels[k];
        one->children = (int)children[k];
        one->parents = (int)parents[k];
        one->child = read_columns(&child, one->children);
        one->parent = read_columns(&parent, one->parents);
        one->rows = product(*size, one->parents, one->parent);
        if (one->children > 1) read_codes(*size, one, &code);
    }
    return PLUGIN_OK;
}
