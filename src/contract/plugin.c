/* What plug-ins ask of whoever calls them: named numbers and memory. Nothing
 * here knows R, so that a plug-in also links into a program without it; such a
 * program defines host_allocate() (tools/standalone.c does).
 */
#include "contract/plugin.h"

static const struct field *find_field(const struct fields *fields, const char *name) {
    for (int i = 0; i < fields->count; ++i)
        if (strcmp(fields->field[i].name, name) == 0) return fields->field + i;
    return NULL;
}

const double *fields_vector(const struct fields *fields, const char *name, int length) {
    const struct field *field = find_field(fields, name);
    if (!field || (length >= 0 && field->length != length)) return NULL;
    return field->value;
}

int fields_length(const struct fields *fields, const char *name) {
    const struct field *field = find_field(fields, name);
    return field ? field->length : 0;
}

/* Starts a cache line: a vector that lies across two takes twice as long to store. */
void *plugin_memory(size_t count, size_t size) {
    enum { LINE = 64 };
    const size_t bytes = (count > 0 ? count : 1) * size;
    char *memory = host_allocate(bytes + LINE - 1);
    memory += (LINE - (uintptr_t)memory % LINE) % LINE;
    memset(memory, 0, bytes);
    return memory;
}
