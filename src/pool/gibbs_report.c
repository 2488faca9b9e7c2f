/* Method "pool_records": the report of a chain (pool/gibbs_chain.c): its energy, a draw and
 * diagnostics. */
#include "pool/pool_gibbs.h"

#include "contract/model.h"
#include "records/augment_internal.h"

/* of a table: transfers of all kinds, made and accepted */
enum { TABLE_COUNTERS = 10 };

double pool_records_energy(struct pool_records *s) {
    double energy = 0;
    for (int j = 0; j < s->sites; ++j) {
        const struct collapse *table = s->site[j].table;
        energy += table ? collapse_energy(table) : augment_energy(&s->site[j].augment);
    }
    return energy;
}

static double *report_some(struct pool_records *s, const struct places *some, double *draw) {
    model_report(&s->model, s->work.trial, s->work.natural);
    for (int k = 0; k < some->count; ++k) *draw++ = s->work.natural[some->at[k]];
    return draw;
}

double *pool_records_report(struct pool_records *s, double *draw) {
    memcpy(s->work.trial, s->reference, (size_t)s->model.parameters * sizeof(double));
    for (int k = 0; k < s->parameters; ++k) s->work.trial[s->place[k]] = s->spread.mean[k];
    draw = report_some(s, &s->heads, draw);
    pool_spread_report(&s->spread, s->at, draw);
    draw += s->spread.size;
    for (int j = 0; j < s->sites; ++j) {
        memcpy(s->work.trial, s->site[j].augment.theta,
               (size_t)s->model.parameters * sizeof(double));
        draw = report_some(s, &s->shown, draw);
    }
    return draw;
}

/* Adds what one site tells, by name; not all sites tell the same. */
static void add_told(struct chain_diagnostics *sum, double *sites,
                     const struct chain_diagnostics *one) {
    for (int k = 0; k < one->count; ++k) {
        int at = 0;
        while (at < sum->count && strcmp(sum->name[at], one->name[k]) != 0) ++at;
        if (at == sum->count) diagnostics_tell(sum, one->name[k], 0);
        sum->value[at] += one->value[k];
        sites[at] += 1;
    }
}

static void tell_table(const struct collapse *table, struct chain_diagnostics *told) {
    for (int k = 0; k < TABLE_COUNTERS; ++k)
        diagnostics_tell(told, table->class->counters[k], table->counter[k]);
}

/* The sites' own, on average; then the walks of what they share. */
void pool_records_diagnostics(const struct pool_records *s, double after,
                              struct chain_diagnostics *told) {
    static const char *const names[POOL_WALKS] = {"given", "held", "carried", "carried_same"};
    struct chain_diagnostics sum = {0};
    double sites[MOST_DIAGNOSTICS] = {0};
    for (int j = 0; j < s->sites; ++j) {
        struct chain_diagnostics one = {0};
        if (s->tables)
            tell_table(s->site[j].table, &one);
        else
            augment_diagnostics(&s->site[j].augment, after, &one);
        add_told(&sum, sites, &one);
    }
    for (int k = 0; k < sum.count; ++k)
        diagnostics_tell(told, sum.name[k], sum.value[k] / sites[k]);
    if (s->gradients) {
        const double made = s->given.counter[POOL_GIVEN_MADE];
        diagnostics_tell(told, "together", s->given.counter[POOL_GIVEN_ACCEPTANCE] / made);
        diagnostics_tell(told, "together_steps", s->given.counter[POOL_GIVEN_LEAPFROGS] / made);
        diagnostics_tell(told, "together_divergent", s->given.counter[POOL_GIVEN_DIVERGENT]);
    }
    for (int k = s->gradients ? POOL_CARRIED : 0; k < POOL_WALKS; ++k)
        if (s->moved[k].count > 0)
            diagnostics_tell(told, names[k], *s->walk[k].accepted / *s->walk[k].made);
}
