#ifndef NOISEAWARE_BASE_NEWTON_PROPOSAL_H
#define NOISEAWARE_BASE_NEWTON_PROPOSAL_H

#include "base/rng.h"

/* Proposals from a normal distribution about where a Newton step leads; see
 * base/newton_proposal.c. */

/* The distribution that a point proposes from, and what makes it. */
struct newton_place {
    int proper;         /* is there one? */
    double log_density; /* of the target */
    double *mode;       /* first the gradient */
    double *factor;     /* first the information, rows of the lower triangle */
};

struct newton {
    int size;

    /* What goes on from one step to the next, a vector of NEWTON_STORED: the share accepted lately,
     * while warmup learns; the steps made and accepted after it. */
    double *share, *made, *accepted;

    /* workspace */
    struct newton_place here, there;
    double *away;
};

enum { NEWTON_STORED = 3 };

/* Points into a state; allocates the workspace. */
void newton_attach(struct newton *newton, int size, double *state);

/* A new state. */
void newton_start(struct newton *newton);

/* The distribution that the point `at` proposes from, whose gradient and information are there. */
void newton_aim(struct newton_place *place, int size, const double *at);

/* From that of `here`; not where it is not proper. */
void newton_propose(struct newton *newton, struct rng *rng, double *to);

/* The log of the Metropolis-Hastings ratio of a proposal `to` from `at`, once both have aimed. */
double newton_log_ratio(struct newton *newton, const double *at, const double *to);

/* What became of a proposal; one that was accepted is `here` from now on. */
void newton_tried(struct newton *newton, int learning, double log_ratio, int accepted);

/* Whether proposals are accepted often enough. */
int newton_serves(const struct newton *newton);

#endif
