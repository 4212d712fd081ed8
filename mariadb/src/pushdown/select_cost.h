/* What the server would pay for a SELECT if it went to the rows by keys, before anybody has optimized it. */
#ifndef PANDO_SELECT_COST_H
#define PANDO_SELECT_COST_H

#include "select_translate.h"

#include <vector>

namespace pando {

/* What a way of reading costs, in nanoseconds (docs/decisions/0010-whole-queries.md). */
constexpr double SERVER_SCAN_NS= 300, SERVER_LOOKUP_NS= 1000, SERVER_ENTRY_NS= 300, SERVER_SORTED_NS= 400;
constexpr double ENGINE_ROW_NS= 2, ENGINE_COLUMN_NS= 3, ENGINE_TABLE_NS= 60000, ENGINE_SORTED_NS= 200;
/* A text that is compared, of a collation that orders bytes, and of another, of which a key is made. */
constexpr double ENGINE_BYTES_NS= 15, ENGINE_TEXT_NS= 40;
/* A SELECT within another: it is optimized, and has a temporary table or is joined by more than a key. */
constexpr double SERVER_SELECT_NS= 30000;
/* An expression that the server computes of a row of the engine's. */
constexpr double SERVED_NS= 250;

struct Select_cost
{
  /* In nanoseconds. */
  double server= 0, engine= 0;
  /* Of the server's answer. */
  double rows= 1;
  /* Tables of which constants leave a range of a key: how many rows. */
  std::vector<std::pair<const TABLE *, double>> ranges;
};

/* Of the SELECT with all that is within it. */
Select_cost cost_of_select(THD *thd, SELECT_LEX *select);

} // namespace pando

#endif
