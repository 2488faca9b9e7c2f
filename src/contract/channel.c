/* Answers at random; see contract/channel.h. */
#include "contract/channel.h"

#include "base/dist.h"
#include "contract/plugin.h"

void channel_create(struct channel *c, int levels, int answers, const double *p) {
    const size_t size = (size_t)levels * (size_t)answers;
    *c = (struct channel){.levels = levels, .answers = answers, .p = p};
    DOUBLES((size_t)answers, &c->base);
    DOUBLES(size, &c->more);
    c->level = plugin_memory(size, sizeof(int));
    c->first = plugin_memory((size_t)answers + 1, sizeof(int));
    int entries = 0;
    for (int r = 0; r < answers; ++r) {
        double least = p[r];
        for (int l = 1; l < levels; ++l) least = fmin(least, p[(size_t)l * answers + r]);
        c->base[r] = least;
        for (int l = 0; l < levels; ++l) {
            const double more = p[(size_t)l * answers + r] - least;
            if (!(more > 0)) continue;
            c->level[entries] = l;
            c->more[entries++] = more;
        }
        c->first[r + 1] = entries;
    }
}

int channels_read(const struct fields *fields, struct channel **channels) {
    const int count = fields_length(fields, "answers");
    if (count < 1) return count < 0 ? 0 : count;
    const double *levels = fields_vector(fields, "levels", count);
    const double *answers = fields_vector(fields, "answers", count);
    if (!levels || !answers) return -1;
    int size = 0;
    for (int f = 0; f < count; ++f) size += (int)(levels[f] * answers[f]);
    const double *p = fields_vector(fields, "channel", size);
    if (!p) return -1;
    *channels = plugin_memory((size_t)count, sizeof **channels);
    for (int f = 0; f < count; ++f) {
        channel_create(*channels + f, (int)levels[f], (int)answers[f], p);
        p += (int)(levels[f] * answers[f]);
    }
    return count;
}

void channel_answer(const struct channel *c, int stride, const double *from, double *to) {
    double sum = 0;
    for (int l = 0; l < c->levels; ++l) sum += from[(size_t)l * stride];
    for (int r = 0; r < c->answers; ++r) {
        double p = c->base[r] * sum;
        for (int e = c->first[r]; e < c->first[r + 1]; ++e)
            p += c->more[e] * from[(size_t)c->level[e] * stride];
        to[(size_t)r * stride] = p;
    }
}

void channel_level(const struct channel *c, int stride, const double *from, double *to) {
    double same = 0;
    for (int r = 0; r < c->answers; ++r) same += c->base[r] * from[(size_t)r * stride];
    for (int l = 0; l < c->levels; ++l) to[(size_t)l * stride] = same;
    for (int r = 0; r < c->answers; ++r)
        for (int e = c->first[r]; e < c->first[r + 1]; ++e)
            to[(size_t)c->level[e] * stride] += c->more[e] * from[(size_t)r * stride];
}

/* Of `left` records those that have what is `weight` of the weight `rest`. */
static double take(struct rng *rng, double weight, double rest, double left) {
    double taken = left;
    if (left > 0 && weight < rest) dist_binomial_fill(rng, weight / rest, 1, &left, &taken);
    return taken;
}

/* Records of all answers that are in base_r have levels of the same distribution: they are drawn
 * together. */
void channel_divide(const struct channel *c, struct rng *rng, int stride, const double *answered,
                    const double *weight, double *true_) {
    double sum = 0, together = 0;
    for (int l = 0; l < c->levels; ++l) sum += weight[(size_t)l * stride];
    for (int r = 0; r < c->answers; ++r) {
        double left = answered[(size_t)r * stride], rest = c->base[r] * sum;
        if (!(left > 0)) continue;
        for (int e = c->first[r]; e < c->first[r + 1]; ++e)
            rest += c->more[e] * weight[(size_t)c->level[e] * stride];
        for (int e = c->first[r]; e < c->first[r + 1] && left > 0; ++e) {
            const double of = c->more[e] * weight[(size_t)c->level[e] * stride];
            const int last = e + 1 == c->first[r + 1] && !(c->base[r] > 0);
            const double taken = last ? left : take(rng, of, rest, left);
            true_[(size_t)c->level[e] * stride] += taken;
            left -= taken;
            rest -= of;
        }
        together += left;
    }
    for (int l = 0; l < c->levels && together > 0; ++l) {
        const double of = weight[(size_t)l * stride];
        const double taken = l + 1 == c->levels ? together : take(rng, of, sum, together);
        true_[(size_t)l * stride] += taken;
        together -= taken;
        sum -= of;
    }
}
