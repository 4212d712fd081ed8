/* What the server's range optimizer finds in conditions, before anybody has optimized the SELECT. */
#ifndef PANDO_SELECT_RANGE_H
#define PANDO_SELECT_RANGE_H

#include "select_translate.h"

#include <vector>

namespace pando {

/* Whether the range optimizer may be asked about a condition now: it evaluates conditions that are constant, and the constants that columns are
   compared with. SELECTs within conditions are nobody's yet. */
bool can_be_asked_about(THD *thd, Item *item);

/* What of these, which all have to be true, the range optimizer may be asked about; none: nothing. */
Item *to_be_asked_about(THD *thd, std::vector<Item *> parts);

/* What the server finds in what has to be true of each row of the table; infinity: it finds nothing. */
struct Rows_of_ranges
{
  /* That the best ranges hold, if it would rather read these than all rows. */
  double read;
  /* That some key's ranges hold, if it knows of any. */
  double left;
  /* Whether the entries of that key have all that the SELECT wants of a row. */
  bool is_covering;
};

/* What the server stores for that, it finds again for itself later. */
Rows_of_ranges rows_of_ranges(THD *thd, TABLE *table, const std::vector<Item *> &conditions);

} // namespace pando

#endif
