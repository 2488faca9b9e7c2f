#ifndef NOISEAWARE_LOGISTIC_MEANS_H
#define NOISEAWARE_LOGISTIC_MEANS_H

enum { LOGISTIC_MEANS = 6 };

/* mean[k] = E g^(k)(e), k < LOGISTIC_MEANS, of g(e) = 1 / (1 + exp(-e)) and its derivatives, over
 * e ~ N(centre, sd^2). */
void logistic_means(double centre, double sd, double *mean);

#endif
