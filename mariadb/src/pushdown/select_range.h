/* What the server's range optimizer finds in conditions, before anybody has optimized the SELECT. */
#ifndef PANDO_SELECT_RANGE_H
#define PANDO_SELECT_RANGE_H

#include "select_translate.h"

#include <vector>

namespace pando {

/* Whether the range optimizer may be asked about a condition now: it evaluates conditions that are constant, and the constants that columns are
   compared with. SELECTs within conditions are nobody's yet. */
bool can_be_asked_about(THD *thd, Item *item);

/* How many rows the best ranges hold that the server finds in what has to be true of each row of the table; infinity: it finds none. What it stores for
   that, it finds again for itself later. */
double rows_of_ranges(THD *thd, TABLE *table, const std::vector<Item *> &conditions);

} // namespace pando

#endif
