/* The hooks that every regression has for its records, under the names that its file gives them:
 * tables of struct model_class then show how their variants differ. */
#ifndef NOISEAWARE_RECORD_HOOKS_H
#define NOISEAWARE_RECORD_HOOKS_H

#define RECORD_HOOKS \
    .create = create, .rprior = rprior, .dprior = dprior, .set = set, .rrecords = rrecords

#endif
