/* Named numbers, which plug-ins request. Nothing here uses R, so a plug-in can also be linked into
 * a program without it. */
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
