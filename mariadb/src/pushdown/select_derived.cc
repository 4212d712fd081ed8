/* What the server pushes into the SELECT of a derived table: see select_derived.h. */
#include "select_derived.h"
#include "select_cost.h"
#include "select_translate.h"

#include <algorithm>

namespace pando {

bool is_limited(SELECT_LEX_UNIT *unit)
{
  return has_limit(unit->global_parameters()->limit_params);
}

bool is_one_select(SELECT_LEX_UNIT *unit)
{
  return !unit->is_unit_op() && unit->first_select() && !unit->first_select()->next_select();
}

static bool is_among(const ORDER *order, const Field *field)
{
  for (; order; order= order->next)
  {
    Item *of= (*order->item)->real_item();
    if (of->type() == Item::FIELD_ITEM && static_cast<Item_field *>(of)->field == field)
      return true;
  }
  return false;
}

/* Whether each window function is computed of rows with the same value of the column. */
static bool is_in_all_partitions(SELECT_LEX *select, const Field *field)
{
  List_iterator_fast<Item_window_func> functions(select->window_funcs);
  for (const Item_window_func *function; (function= functions++); )
  {
    const SQL_I_List<ORDER> *partition= function->window_spec ? function->window_spec->partition_list : nullptr;
    if (!partition || !is_among(partition->first, field))
      return false;
  }
  return true;
}

const Field *pushed_field(SELECT_LEX *inner, const Field *column)
{
  List_iterator_fast<Item> items(inner->item_list);
  Item *item= nullptr;
  for (uint i= 0; i <= column->field_index; i++)
    item= items++;
  if (!item || item->real_item()->type() != Item::FIELD_ITEM)
    return nullptr;
  const Field *field= static_cast<Item_field *>(item->real_item())->field;
  if (inner->have_window_funcs())
    return is_in_all_partitions(inner, field) ? field : nullptr;
  return !inner->group_list.elements || is_among(inner->group_list.first, field) ? field : nullptr;
}

std::vector<Groups_of_value> groups_of_values(SELECT_LEX_UNIT *unit, const TABLE *derived)
{
  std::vector<Groups_of_value> groups;
  SELECT_LEX *select= unit->first_select();
  if (!is_one_select(unit) || !select->group_list.elements || select->olap == ROLLUP_TYPE || select->have_window_funcs() || is_limited(unit))
    return groups;
  for (Field *const *column= derived->field; column && *column; column++)
  {
    const Field *field= pushed_field(select, *column);
    if (!field)
      continue;
    for (uint number= 0; number < field->table->s->keys; number++)
    {
      const KEY &key= field->table->key_info[number];
      if (key.key_part[0].field != field || !key.rec_per_key || !field->table->keys_in_use_for_query.is_set(number))
        continue;
      const double rows= std::max(1.0, double(key.rec_per_key[0]));
      const double cost= SERVER_SELECT_NS + rows * select->leaf_tables.elements * SERVER_LOOKUP_NS;
      groups.push_back({*column, cost, select->group_list.elements == 1 ? 1 : rows});
    }
  }
  return groups;
}

double rows_of_value(const Field *field)
{
  double rows= 1;
  for (uint number= 0; field && number < field->table->s->keys; number++)
  {
    const KEY &key= field->table->key_info[number];
    if (key.key_part[0].field == field && key.rec_per_key)
      rows= std::max(rows, double(key.rec_per_key[0]));
  }
  return rows;
}

} // namespace pando
