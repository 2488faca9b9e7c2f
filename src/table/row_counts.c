/* Counts of the rows of a table; see table/table_chain.c. */
#include "table/table.h"

/* Codes of a cell of a part, of its parents and children. */
static void set_codes(const struct table *s, const struct table_part *part, int row, int level,
                      int *codes) {
    for (int k = part->of.parents - 1; k >= 0; --k) {
        const int size = s->size[part->of.parent[k]];
        codes[part->of.parent[k]] = row % size;
        row /= size;
    }
    table_set_level(part, level, codes);
}

/* The rows of a part as the tables before it have them. */
void table_count_rows(struct table *s, const struct table_part *part, double *count) {
    if (part->of.parents == 0) {
        count[part->at_row] = count[s->n.at];
        return;
    }
    const struct table_part *host = s->part + part->host;
    memset(count + part->at_row, 0, (size_t)part->of.rows * sizeof(double));
    for (int r = 0; r < host->of.rows; ++r)
        for (int l = 0; l < host->of.levels; ++l) {
            set_codes(s, host, r, l, s->codes);
            const int row = table_combine(s, part->of.parents, part->of.parent, s->codes);
            count[part->at_row + row] += count[host->at_cell + r * host->of.levels + l];
        }
}
