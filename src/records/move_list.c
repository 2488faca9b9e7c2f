#include "records/move.h"

#define ADDRESS(name) &move_##name,
const struct move *const augment_moves[] = {AUGMENT_MOVES(ADDRESS) NULL};
