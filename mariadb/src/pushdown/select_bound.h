/* How many rows of a table conditions can leave at most, where a unique key tells it without a look at the table: `id BETWEEN 5 AND 104`,
   `id IN (1, 2, 3)`, `warehouse = 1 AND district = 2 AND id >= 90 AND id < 100`. */
#ifndef PANDO_SELECT_BOUND_H
#define PANDO_SELECT_BOUND_H

#include "server.h"

#include <vector>

namespace pando {

/* `conditions` have all to be true. No unique key bounds them: infinity. */
double rows_by_unique_key(const TABLE *table, const std::vector<Item *> &conditions);

} // namespace pando

#endif
