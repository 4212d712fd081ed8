/* What the server pushes into the SELECT of a derived table: conditions on columns, and values by which groups are made one by one. */
#ifndef PANDO_SELECT_DERIVED_H
#define PANDO_SELECT_DERIVED_H

#include "server.h"

#include <vector>

namespace pando {

/* The groups of a derived table that have one value in one of its columns, which a key of the table below finds (LATERAL DERIVED). */
struct Groups_of_value
{
  const Field *column;
  double cost, rows;
};

bool is_limited(SELECT_LEX_UNIT *unit);
bool is_one_select(SELECT_LEX_UNIT *unit);
/* Whether it is no more than a join. */
bool is_join(SELECT_LEX *select);

/* What a column of a derived table is in one of its SELECTs, if conditions on it can be pushed into that; else none. */
const Field *pushed_field(SELECT_LEX *inner, const Field *column);

/* Copies of the conditions that the server pushes into one of the SELECTs of a derived table, as pushdown_cond_for_derived makes them: what is said of a
   column is said of those that are equal to it, too. */
std::vector<Item *> conditions_pushed(THD *thd, const std::vector<Item *> &conditions, const TABLE_LIST *list, SELECT_LEX *inner);

std::vector<Groups_of_value> groups_of_values(SELECT_LEX_UNIT *unit, const TABLE *derived);

/* Whether the statement has a derived table with groups and a LIMIT without an order. If the server makes these for each value apart, it gives so many
   of each value as LIMIT says (10.11; JOIN::check_for_splittable_materialized): then it is not for the server. */
bool may_cut_each_group(THD *thd);

/* The rows that have the same value in a column, as a key tells that begins with it; 1: nobody knows. */
double rows_of_value(const Field *field);

} // namespace pando

#endif
