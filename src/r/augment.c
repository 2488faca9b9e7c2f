/* Method "augment" as R sees it. */
#include "r/augment.h"
#include "contract/model.h"
#include "contract/model_marginal.h"
#include "contract/model_predictor.h"
#include "records/category_hmc.h"
#include "records/response_hmc.h"

/* R's names */
static const char *const part_kinds[] = {
    [PART_DENSE] = "totals",
    [PART_CELLS] = "cells",
    [PART_RECORDS] = "records",
    [PART_RANKS] = "ranks",
};

static void read_answers(SEXP spec, struct part *part) {
    SEXP energy = list_element(spec, "answer_energy");
    const R_xlen_t size = Rf_xlength(energy);
    part->answers = INTEGER(list_element(spec, "answers"));
    part->answer_energy = plugin_memory((size_t)size, sizeof *part->answer_energy);
    for (R_xlen_t j = 0; j < size; ++j) part->answer_energy[j] = REAL(VECTOR_ELT(energy, j));
}

static void read_part(SEXP spec, struct part *part) {
    part->stat = read_stat(spec);
    part->kind =
        (enum part_kind)find_name(list_element(spec, "kind"), COUNT(part_kinds), part_kinds);
    if (part->kind == PART_CELLS && part->stat.columns == 0) part->kind = PART_SIZE;
    part->kernel = find_kernel(STRING_ELT(list_element(spec, "kernel"), 0));
    part->column = INTEGER(list_element(spec, "column"));
    if (part->kernel == KERNEL_DENSITY)
        part->density = read_density(list_element(spec, "density"), part->stat.size);
    if (part->kind != PART_RECORDS) return;
    part->local_released = REAL(list_element(spec, "released"));
    if (part->kernel == KERNEL_MATCH)
        read_answers(spec, part);
    else
        part->local_weight = weights_of(list_element(spec, "scale"));
}

static void read_parts(SEXP parts, struct augment *a) {
    a->layout.parts = (int)Rf_xlength(parts);
    a->layout.part = plugin_memory((size_t)a->layout.parts, sizeof *a->layout.part);
    for (int k = 0; k < a->layout.parts; ++k) read_part(VECTOR_ELT(parts, k), a->layout.part + k);
    augment_lay_out(a);
}

/* The parts' released values, scales and kernels as they are laid out, 0 and without limit where
 * components only pad; `where`, for each part, its components stand among them, from 1 on: none of
 * a part of records. `dense`: how many stand before the cells; `untold`: how many, the last, draws
 * do not have. */
SEXP ffi_augment_layout(SEXP parts) {
    struct augment *a = plugin_memory(1, sizeof *a);
    read_parts(parts, a);
    const int size = a->noise.size;
    SEXP released = PROTECT(Rf_allocVector(REALSXP, size));
    SEXP scale = PROTECT(Rf_allocVector(REALSXP, size));
    SEXP kernel = PROTECT(Rf_allocVector(STRSXP, size));
    SEXP where = PROTECT(Rf_allocVector(VECSXP, a->layout.parts));
    SEXP dense = PROTECT(Rf_ScalarInteger(a->layout.dense));
    SEXP untold = PROTECT(Rf_ScalarInteger(a->layout.ranks));
    for (int j = 0; j < size; ++j) {
        REAL(released)[j] = 0;
        REAL(scale)[j] = INFINITY;
        SET_STRING_ELT(kernel, j, Rf_mkChar(kernel_names[a->noise.kernel[j]]));
    }
    for (int k = 0; k < a->layout.parts; ++k) {
        const struct part *part = a->layout.part + k;
        const int summed = part->kind != PART_RECORDS, count = summed ? part->stat.size : 0;
        const int at = part->offset + (part_is_counts(part->kind) ? a->layout.dense : 0);
        SEXP spec = VECTOR_ELT(parts, k), places = Rf_allocVector(INTSXP, count);
        SET_VECTOR_ELT(where, k, places);
        for (int j = 0; j < count; ++j) {
            INTEGER(places)[j] = at + j + 1;
            REAL(released)[at + j] = REAL(list_element(spec, "released"))[j];
            REAL(scale)[at + j] = REAL(list_element(spec, "scale"))[j];
        }
    }
    SEXP list = named_list(6, "released", released, "scale", scale, "kernel", kernel, "where",
                           where, "dense", dense, "untold", untold);
    UNPROTECT(6);
    return list;
}

/* An empty list: none. Without free columns a response alone has moves. */
static void read_surrogate(SEXP spec, struct augment *a) {
    if (Rf_xlength(spec) == 0) return;
    SEXP column = list_element(spec, "column"), fixed = list_element(spec, "fixed"),
         rider = list_element(spec, "rider"), bend = list_element(spec, "bend");
    const int free = (int)Rf_xlength(column);
    struct surrogate *s = plugin_memory(1, sizeof *s);
    s->released = a->noise.released;
    s->centre = REAL(list_element(spec, "centre"));
    s->lower = REAL(list_element(spec, "lower"));
    s->upper = REAL(list_element(spec, "upper"));
    s->scatter_noise = list_number(spec, "scatter_noise");
    s->same_bounds = Rf_asLogical(list_element(spec, "same_bounds"));
    s->density.noise = noise_first(&a->noise, a->layout.dense);
    s->density.component = read_components(model_moments(&a->model), a->layout.dense,
                                           REAL(list_element(spec, "terms")));
    if (free > 0 && surrogate_create(s, &a->model, (double)a->n, free, INTEGER(column),
                                     1 + (int)Rf_xlength(fixed), INTEGER(fixed),
                                     (int)Rf_xlength(rider), INTEGER(rider)))
        a->surrogate = s;
    if (Rf_xlength(bend) > 0) s->density.totals.bend = REAL(bend);
    if (a->surrogate && a->size.prior) surrogate_vary(s);
    struct response *r = plugin_memory(1, sizeof *r);
    s->density.noise.released = a->noise.released;
    if ((a->surrogate || free == 0) && response_create(r, &a->model, (double)a->n, &s->density))
        OWN(a, response) = r;
    s->density.noise.released = s->work.offset;
}

void read_augment_release(SEXP spec, struct augment *a) {
    read_parts(list_element(spec, "parts"), a);
    a->noise = read_noise(spec);
    noise_find_runs(&a->noise, a->layout.dense);
    a->n = (ptrdiff_t)list_number(spec, "n");
    a->stride = PAD_LANES(a->n);
    SEXP hold = list_element(spec, "hold");
    if (Rf_xlength(hold) > 0) OWN(a, held_total) = REAL(hold);
    a->adapt.far = list_number(spec, "far");
    a->size.prior = read_size_prior(spec);
    if (!a->size.prior) return;
    a->stride = (ptrdiff_t)list_number(spec, "room");
    a->size.spread = list_number(spec, "size_spread");
    a->size.most_born = (int)list_number(spec, "most_born");
}

/* Sites of which `a` is the first. */
static void read_others(SEXP sites, struct augment *a) {
    const int count = (int)Rf_xlength(sites);
    struct augment **site = plugin_memory((size_t)count, sizeof *site);
    site[0] = a;
    for (int k = 1; k < count; ++k) {
        site[k] = plugin_memory(1, sizeof *site[k]);
        site[k]->model = a->model;
        site[k]->plain = a->plain;
        read_augment_release(VECTOR_ELT(sites, k), site[k]);
        augment_prepare(site[k]);
    }
    augment_join_sites(a, count, site);
}

static void read_maps(SEXP spec, struct augment *a) {
    if (!spec || Rf_isNull(spec)) return;
    struct record_maps *maps = OWN(a, reflections) = plugin_memory(1, sizeof *maps);
    maps->origin = REAL(list_element(spec, "origin"));
    maps->set = REAL(list_element(spec, "columns"));
    maps->sets = Rf_ncols(list_element(spec, "columns"));
    maps->keeps_squares = (int)list_number(spec, "turns");
    maps->unit = REAL(list_element(spec, "unit"));
    maps->stretched = REAL(list_element(spec, "stretch"));
}

static void read_crossings(SEXP spec, struct augment *a) {
    if (!spec || Rf_isNull(spec)) return;
    struct hole_crossings *h = OWN(a, crossings) = plugin_memory(1, sizeof *h);
    SEXP first = list_element(spec, "first");
    h->terms = REAL(list_element(spec, "terms"));
    h->origin = REAL(list_element(spec, "origin"));
    h->first = INTEGER(first);
    h->centre = REAL(list_element(spec, "centre"));
    h->components = (int)Rf_xlength(first) - 1;
    for (int j = 0; j < h->components; ++j) h->crossing += h->first[j + 1] - h->first[j] > 1;
}

static void *read(SEXP problem) {
    struct augment *a = plugin_memory(1, sizeof *a);
    SEXP sites = optional_element(problem, "sites");
    a->model = read_model(list_element(problem, "model"));
    read_augment_release(sites ? VECTOR_ELT(sites, 0) : problem, a);
    a->plain = list_number(problem, "passes") == 0;
    if (!a->plain) read_surrogate(list_element(problem, "surrogate"), a);
    augment_prepare(a);
    if (sites) read_others(sites, a);
    a->size.told = sites != NULL;
    if (a->surrogate) augment_prepare_surrogate(a);
    read_maps(optional_element(problem, "reflect"), a);
    read_crossings(optional_element(problem, "cross"), a);
    augment_prepare_moves(a);
    return a;
}

/* where n is unknown, the site's part of the state's `size`: n, struct births, twice struct
 * size_slope */
enum { SIZE_STATE = 1 + sizeof(struct births) / sizeof(double) };

static R_xlen_t size_stored(const struct augment *a) {
    if (!a->size.prior) return 0;
    return SIZE_STATE + (R_xlen_t)(size_slope_stored(a->size.slope.moving) +
                                   size_slope_stored(a->size.pace.moving));
}

/* The moving coordinate of a response's shape, from 1; 0: there is none, or it does not move: in
 * a pool one that all sites share does not move with a site's records. */
static int moving_shape(const struct model *model) {
    if (!model->move || model_shape(model) == 0) return 0;
    for (int j = 0; j < model->moving; ++j)
        if (model->moves[j] == model_shape(model)) return j + 1;
    return 0;
}

struct adapt_shape augment_learned_shape(const struct model *model) {
    const struct adapt_shape shape = {
        .dim = model->move ? model->moving : 0,
        .groups = model->move && model->groups.count > 1 ? model->groups.count : 0,
        .complete = model->refresh ? model->complete : 0,
        .of_shape = moving_shape(model),
        .group = model->groups.of,
    };
    return shape;
}

void augment_record_parts(int sites, struct augment *const *site, struct state_part *part) {
    R_xlen_t room = 0, released = 0, size = 0;
    for (int k = 0; k < sites; ++k) {
        room += site[k]->stride;
        released += site[k]->noise.size;
        size += size_stored(site[k]);
    }
    part[0] = (struct state_part){"x", REALSXP, room * site[0]->model.columns};
    part[1] = (struct state_part){"residual", REALSXP, released};
    part[2] = (struct state_part){"accepted", INTSXP, room};
    part[3] = (struct state_part){"room", REALSXP, sites};
    part[4] = (struct state_part){"size", REALSXP, size};
}

static struct state_shape shape(const void *self) {
    const struct augment *a = self;
    const struct adapt_shape learned = augment_learned_shape(&a->model);
    struct state_shape shape = {
        .counters = sizeof(struct counters) / sizeof(double),
        .parts = AUGMENT_RECORD_PARTS + 1,
        .part[AUGMENT_RECORD_PARTS] = {"adapt", REALSXP, (R_xlen_t)adapt_size(&learned)},
    };
    augment_record_parts(a->sites.count, a->sites.of, shape.part);
    if (update_theta_is_needed(&a->model))
        shape.part[shape.parts++] =
            (struct state_part){"update", REALSXP, (R_xlen_t)update_theta_size(&a->model)};
    if (a->surrogate)
        shape.part[shape.parts++] =
            (struct state_part){"surrogate", REALSXP, (R_xlen_t)surrogate_stored(a->surrogate)};
    if (augment_makes_rounds(a))
        shape.part[shape.parts++] =
            (struct state_part){"rounds", REALSXP, (R_xlen_t)rounds_stored(a->model.parameters)};
    for (const struct move *const *move = augment_moves; *move; ++move) {
        const R_xlen_t stored = (*move)->store ? (R_xlen_t)(*move)->stored(a) : 0;
        if (stored > 0)
            shape.part[shape.parts++] = (struct state_part){(*move)->store, REALSXP, stored};
    }
    return shape;
}

/* n, and room for as many records as the state has: it may have been given more */
static void attach_size(struct augment *a, double room, double *size) {
    size_slope_attach(&a->size.slope, a->size.slope.moving, a->size.slope.moves, size + SIZE_STATE);
    size_slope_attach(&a->size.pace, a->size.pace.moving, a->size.pace.moves,
                      size + SIZE_STATE + size_slope_stored(a->size.slope.moving));
    if (room > (double)a->stride) augment_make_room(a, (ptrdiff_t)room);
    a->n = (ptrdiff_t)size[0];
    memcpy(&a->size.births, size + 1, sizeof a->size.births);
}

void attach_augment_records(int sites, struct augment *const *site, SEXP state) {
    double *x = REAL(list_element(state, "x"));
    const double *residual = REAL(list_element(state, "residual"));
    int *accepted = INTEGER(list_element(state, "accepted"));
    const double *room = REAL(list_element(state, "room"));
    double *size = REAL(list_element(state, "size"));
    for (int k = 0; k < sites; ++k) {
        struct augment *a = site[k];
        if (a->size.prior) attach_size(a, room[k], size);
        size += size_stored(a);
        a->x = x;
        a->accepted = accepted;
        doubles_copy(a->residual.dense, residual, a->layout.dense);
        doubles_copy(a->residual.cells, residual + a->layout.dense, augment_counts(a));
        x += a->stride * a->model.columns;
        accepted += a->stride;
        residual += a->noise.size;
    }
}

void detach_augment_records(int sites, struct augment *const *site, SEXP state) {
    double *residual = REAL(list_element(state, "residual"));
    double *room = REAL(list_element(state, "room")), *size = REAL(list_element(state, "size"));
    for (int k = 0; k < sites; ++k) {
        const struct augment *a = site[k];
        room[k] = (double)a->stride;
        if (a->size.prior) {
            size[0] = (double)a->n;
            memcpy(size + 1, &a->size.births, sizeof a->size.births);
        }
        size += size_stored(a);
        doubles_copy(residual, a->residual.dense, a->layout.dense);
        doubles_copy(residual + a->layout.dense, a->residual.cells, augment_counts(a));
        residual += a->noise.size;
    }
}

static void attach(void *self, SEXP state, struct rng *rng) {
    struct augment *a = self;
    a->theta = REAL(list_element(state, "theta"));
    a->rng = rng;
    attach_augment_records(a->sites.count, a->sites.of, state);
    const struct adapt_shape shape = augment_learned_shape(&a->model);
    adapt_attach(&a->adapt, &shape, REAL(list_element(state, "adapt")));
    if (update_theta_is_needed(&a->model))
        update_theta_attach(&a->update, &a->model, REAL(list_element(state, "update")));
    if (a->surrogate) surrogate_attach(a->surrogate, REAL(list_element(state, "surrogate")));
    if (augment_makes_rounds(a))
        rounds_attach(&a->rounds, a->model.parameters, REAL(list_element(state, "rounds")));
    for (const struct move *const *move = augment_moves; *move; ++move)
        if ((*move)->store && (*move)->stored(a) > 0)
            (*move)->attach(a, REAL(list_element(state, (*move)->store)));
    memcpy(&a->count, REAL(list_element(state, "counters")), sizeof a->count);
    augment_share_theta(a);
}

static void detach(void *self, SEXP state) {
    const struct augment *a = self;
    detach_augment_records(a->sites.count, a->sites.of, state);
    struct counters count = a->count;
    count.most_energy_step = augment_most_energy_step(a);
    memcpy(REAL(list_element(state, "counters")), &count, sizeof count);
}

/* records drawn from theta */
static void start(void *self, SEXP problem) {
    struct augment *a = self;
    SEXP sites = optional_element(problem, "sites");
    for (int k = 0; k < a->sites.count; ++k) {
        a->sites.of[k]->count.most_energy_step = R_NegInf;
        start_augment_size(sites ? VECTOR_ELT(sites, k) : problem, a->sites.of[k]);
    }
    if (augment_makes_rounds(a)) rounds_start(&a->rounds);
    SEXP spread = list_element(problem, "theta_sd");
    const double *theta_sd = Rf_isNull(spread) ? NULL : REAL(spread);
    augment_start(a, !Rf_asLogical(list_element(problem, "given")), theta_sd);
    if (update_theta_is_needed(&a->model)) update_theta_start(&a->update, theta_sd);
    const double *sd = REAL(list_element(problem, "move_sd"));
    for (int j = 0; j < a->adapt.shape.dim; ++j) a->step.by[j] = sd[a->model.moves[j]];
    adapt_start(&a->adapt, a->step.by, list_number(problem, "passes"));
    augment_share_theta(a);
    augment_find_support(a);
    augment_share_theta(a);
}

/* For tests: log density, gradient and coordinates that the records' moves see, or where `exact`
 * is NA that moves of a response's coefficients see; the coordinates are the state's own where q
 * has another length. */
SEXP ffi_augment_density(SEXP problem, SEXP state, SEXP exact, SEXP q) {
    struct augment *a = read(problem);
    struct rng rng;
    rng_read(list_element(state, "rng"), &rng);
    attach(a, state, &rng);
    const int of_response = Rf_asLogical(exact) == NA_LOGICAL;
    const struct category_moves *levels = of_response ? OWN(a, categories) : NULL;
    const struct response *response = OWN(a, response);
    const int of_totals = a->surrogate ? a->surrogate->density.size : 0;
    const int size = levels ? levels->size : of_response ? response->p + 1 : of_totals;
    double *at, *gradient;
    DOUBLES(PAD_LANES(size), &at, &gradient);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, 1 + 2 * size));
    at[0] = NA_REAL;
    if (Rf_xlength(q) == size) memcpy(at, REAL(q), (size_t)size * sizeof(double));
    *REAL(out) = levels        ? augment_categories_density(a, at, gradient)
                 : of_response ? augment_response_density(a, at, gradient)
                               : augment_surrogate_density(a, Rf_asLogical(exact), at, gradient);
    memcpy(REAL(out) + 1, gradient, (size_t)size * sizeof(double));
    memcpy(REAL(out) + 1 + size, at, (size_t)size * sizeof(double));
    UNPROTECT(1);
    return out;
}

static int iterate(void *self, int iteration, int warmup, struct step *step) {
    struct augment *a = self;
    const double before = a->count.work;
    const int status = augment_iterate(a, iteration, warmup, &step->acceptance);
    step->work = a->count.work - before; /* warmup ends with 0 */
    return status;
}

static void report(void *self, double *draw) {
    const struct augment *a = self;
    model_report(&a->model, a->theta, draw);
    if (a->size.told) augment_sizes(a->sites.count, a->sites.of, draw + a->model.reported);
}

void start_augment_size(SEXP spec, struct augment *a) {
    if (a->size.prior) a->n = (ptrdiff_t)list_number(spec, "n");
}

void augment_sizes(int sites, struct augment *const *site, double *out) {
    for (int k = 0; k < sites; ++k)
        if (site[k]->size.prior) *out++ = (double)site[k]->n;
}

void augment_statistic(int sites, struct augment *const *site, double *out) {
    for (int k = 0; k < sites; ++k) {
        const struct augment *a = site[k];
        const int dense = a->layout.dense;
        for (int j = 0; j < dense + a->layout.cells; ++j)
            *out++ = noise_total(&a->noise, j,
                                 j < dense ? a->residual.dense[j] : a->residual.cells[j - dense]);
    }
}

static void statistic(void *self, double *out) {
    const struct augment *a = self;
    augment_statistic(a->sites.count, a->sites.of, out);
}

static double log_noise(void *self) { return -augment_energy(self); }

static double records(void *self) {
    const struct augment *a = self;
    return (double)a->n;
}

static int full(const void *self) { return augment_is_full(self); }

static void diagnostics(const void *self, double after, struct chain_diagnostics *told) {
    augment_diagnostics(self, after, told);
}

const struct method method_augment = {
    .name = "augment",
    .sampler = {.iterate = iterate,
                .report = report,
                .statistic = statistic,
                .log_noise = log_noise,
                .records = records,
                .full = full},
    .read = read,
    .shape = shape,
    .attach = attach,
    .detach = detach,
    .diagnostics = diagnostics,
    .start = start,
    .may_fail = 1,
};
