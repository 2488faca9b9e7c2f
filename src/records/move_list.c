#include "records/move.h"

#define ADDRESS(name) &name,
const struct move *const augment_moves[] = {AUGMENT_MOVES(ADDRESS) NULL};
