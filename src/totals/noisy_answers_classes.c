/* The class of noisy answers, from the number that R gives. */
#include "totals/noisy_answers.h"

int noisy_answers_create(const struct fields *fields, struct noisy_answers *a) {
    enum { CLASSES = 6 };
    static const struct noisy_answer_class *const classes[CLASSES] = {
        &noisy_answer_logit,   &noisy_answer_binary,
        &noisy_answer_poisson, &noisy_answer_negative_binomial,
        &noisy_answer_normal,  &noisy_answer_levels};
    const double *class = fields_vector(fields, "response", 1),
                 *squared = fields_vector(fields, "squared", 1),
                 *bounds = fields_vector(fields, "response_bounds", 2);
    a->records = fields_length(fields, "answer");
    a->answer = fields_vector(fields, "answer", a->records);
    a->weight = fields_vector(fields, "answer_weight", a->records);
    if (!class || !squared || !bounds || !a->answer || !a->weight) return PLUGIN_BAD_FIELDS;
    if (!(*class >= 0 && *class < CLASSES)) return PLUGIN_BAD_FIELDS;
    a->class = classes[(int)*class];
    a->predictors = 1;
    a->squared = *squared != 0;
    a->lower = bounds[0];
    a->upper = bounds[1];
    const int status = a->class->create(fields, a);
    if (status != PLUGIN_OK || fields_length(fields, "group") == 0) return status;
    return noisy_answers_tabulate(fields, a);
}
