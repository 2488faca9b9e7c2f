/* Counts of nested areas as R sees them. */
#include "geography/geography.h"
#include "r/ffi.h"

static double *numbers(SEXP list, int k) { return REAL(VECTOR_ELT(list, k)); }

/* Children, leaves and ancestors, from the parents. */
static void read_areas(SEXP problem, struct geography *g) {
    SEXP parents = list_element(problem, "parent");
    g->levels = (int)Rf_xlength(parents);
    g->areas[0] = 1;
    for (int l = 1; l <= g->levels; ++l) {
        g->areas[l] = (int)Rf_xlength(VECTOR_ELT(parents, l - 1));
        g->parent[l] = INTEGER(VECTOR_ELT(parents, l - 1));
    }
    const int leaves = g->areas[g->levels];
    for (int l = g->levels; l >= 0; --l) {
        const size_t areas = (size_t)g->areas[l];
        g->children[l] = plugin_memory(areas, sizeof(int));
        g->first_leaf[l] = plugin_memory(areas + 1, sizeof(int));
        g->ancestor[l] = plugin_memory((size_t)leaves, sizeof(int));
        g->size[l] = doubles(areas);
        for (int b = 0; b < leaves; ++b) {
            const int a = l == g->levels ? b : g->parent[l + 1][g->ancestor[l + 1][b]];
            g->ancestor[l][b] = a;
            ++g->first_leaf[l][a + 1];
        }
        for (int a = 0; a < g->areas[l]; ++a) g->first_leaf[l][a + 1] += g->first_leaf[l][a];
        if (l == g->levels) continue;
        for (int a = 0; a < g->areas[l + 1]; ++a) ++g->children[l][g->parent[l + 1][a]];
    }
}

static void read_measures(SEXP problem, struct geography *g) {
    SEXP measures = list_element(problem, "measures");
    g->measures = (int)Rf_xlength(measures);
    for (int m = 0; m < g->measures; ++m) {
        SEXP told = VECTOR_ELT(measures, m);
        struct geography_measure *of = g->measure + m;
        of->level = Rf_asInteger(list_element(told, "level"));
        of->groups = Rf_asInteger(list_element(told, "groups"));
        of->absolute = Rf_asLogical(list_element(told, "absolute"));
        of->group = INTEGER(list_element(told, "group"));
        of->released = REAL(list_element(told, "released"));
        of->weight = REAL(list_element(told, "weight"));
        const size_t size = (size_t)g->areas[of->level] * (size_t)of->groups;
        of->total = doubles(size);
    }
}

static struct geography *read(SEXP problem, SEXP state) {
    struct geography *g = plugin_memory(1, sizeof *g);
    g->cells = Rf_asInteger(list_element(problem, "cells"));
    read_areas(problem, g);
    read_measures(problem, g);
    g->exact_level = Rf_asInteger(list_element(problem, "exact_level"));
    g->exact_group = INTEGER(list_element(problem, "exact_group"));
    g->size_weight = list_number(problem, "size_weight");
    g->alpha = REAL(list_element(problem, "alpha"));
    g->shape = list_number(problem, "shape");
    g->rate = list_number(problem, "rate");
    g->count = REAL(list_element(state, "count"));
    /* from level 1 */
    g->concentration = REAL(list_element(state, "concentration")) - 1;
    for (int l = 0; l < g->levels; ++l) {
        g->share[l] = numbers(list_element(state, "share"), l);
        g->customer[l] = doubles((size_t)g->areas[l] * (size_t)g->cells);
    }
    rng_read(list_element(state, "rng"), &g->rng);
    return g;
}

/* What is kept of an iteration: sums of counts, concentrations, the shares in all areas. */
static void keep(const struct geography *g, SEXP problem, double *draw) {
    const int *first = INTEGER(list_element(problem, "track_first"));
    const int *cell = INTEGER(list_element(problem, "track_cell"));
    const int tracked = (int)Rf_xlength(list_element(problem, "track_first")) - 1;
    for (int k = 0; k < tracked; ++k) {
        double sum = 0;
        for (int i = first[k]; i < first[k + 1]; ++i) sum += g->count[cell[i]];
        *draw++ = sum;
    }
    for (int l = 1; l <= g->levels; ++l) *draw++ = g->concentration[l];
    memcpy(draw, g->share[0], (size_t)g->cells * sizeof(double));
}

/* Means of the counts and sums of squares about them, over so many draws. */
static void learn(const struct geography *g, double *mean, double *square, double seen) {
    const size_t size = (size_t)g->areas[g->levels] * (size_t)g->cells;
    for (size_t k = 0; k < size; ++k) {
        const double off = g->count[k] - mean[k];
        mean[k] += off / seen;
        square[k] += off * (g->count[k] - mean[k]);
    }
}

/* Iterations; of each `thin` of them a draw, unless thin is 0. Changes the state in place. Returns
 * the draws, a column each, fewer if the user interrupts. */
SEXP ffi_geography(SEXP problem, SEXP state, SEXP iterations, SEXP thin) {
    struct geography *g = read(problem, state);
    geography_load(g);
    const int count = Rf_asInteger(iterations), every = Rf_asInteger(thin);
    const int width =
        (int)Rf_xlength(list_element(problem, "track_first")) - 1 + g->levels + g->cells;
    double *seen = REAL(list_element(state, "seen"));
    SEXP draws = PROTECT(Rf_allocMatrix(REALSXP, width, every > 0 ? count / every : 0));
    int made = 0, saved = 0;
    while (made < count && !interrupt_pending()) {
        geography_sweep(g);
        ++made;
        if (every == 0 || made % every != 0) continue;
        *seen += 1;
        learn(g, REAL(list_element(state, "mean")), REAL(list_element(state, "square")), *seen);
        keep(g, problem, REAL(draws) + (size_t)saved++ * (size_t)width);
    }
    memcpy(RAW(list_element(state, "rng")), g->rng.s, sizeof g->rng.s);
    SEXP done = PROTECT(Rf_ScalarInteger(made));
    SEXP out = named_list(2, "draws", draws, "made", done);
    UNPROTECT(2);
    return out;
}
