/* What the server pushes into the SELECT of a derived table: see select_derived.h. */
#include "select_derived.h"
#include "select_cost.h"
#include "select_range.h"
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

bool is_join(SELECT_LEX *select)
{
  return !select->group_list.elements && !select->agg_func_used() && !(select->options & SELECT_DISTINCT) && !select->having &&
         !select->have_window_funcs();
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

/* Whether it has groups, or windows, that the server makes for each value apart. */
static bool has_groups_of_values(SELECT_LEX_UNIT *unit)
{
  SELECT_LEX *select= unit->first_select();
  if (!is_one_select(unit) || select->olap == ROLLUP_TYPE)
    return false;
  return select->have_window_funcs() ? !select->group_list.elements && select->window_specs.elements == 1 : select->group_list.elements > 0;
}

/* The keys that find them. */
static std::vector<Groups_of_value> groups_by_keys(SELECT_LEX_UNIT *unit, const TABLE *derived)
{
  std::vector<Groups_of_value> groups;
  SELECT_LEX *select= unit->first_select();
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

std::vector<Groups_of_value> groups_of_values(SELECT_LEX_UNIT *unit, const TABLE *derived)
{
  return has_groups_of_values(unit) && !is_limited(unit) ? groups_by_keys(unit, derived) : std::vector<Groups_of_value>();
}

bool may_cut_each_group(THD *thd)
{
  if (!optimizer_flag(thd, OPTIMIZER_SWITCH_SPLIT_MATERIALIZED))
    return false;
  for (TABLE_LIST *list= thd->lex->query_tables; list; list= list->next_global)
  {
    SELECT_LEX_UNIT *unit= list->is_view_or_derived() ? list->get_unit() : nullptr;
    if (unit && list->table && has_groups_of_values(unit) && is_limited(unit) && !unit->first_select()->order_list.elements &&
        !groups_by_keys(unit, list->table).empty())
      return true;
  }
  return false;
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

/* Of a derived table's columns, what columns of other tables are equal to. */
using Equal_columns= std::vector<std::pair<const Field *, Field *>>;

static Equal_columns columns_equal_to(const TABLE_LIST *list, const std::vector<Item *> &conditions)
{
  Equal_columns equal;
  for (Item *condition : conditions)
  {
    if (condition->type() != Item::FUNC_ITEM || static_cast<Item_func *>(condition)->functype() != Item_func::EQ_FUNC)
      continue;
    Item *sides[]= {static_cast<Item_func *>(condition)->arguments()[0]->real_item(), static_cast<Item_func *>(condition)->arguments()[1]->real_item()};
    if (sides[0]->type() != Item::FIELD_ITEM || sides[1]->type() != Item::FIELD_ITEM)
      continue;
    Field *one= static_cast<Item_field *>(sides[0])->field, *other= static_cast<Item_field *>(sides[1])->field;
    if (!one || !other || one->cmp_type() != other->cmp_type())
      continue;
    if (one->table == list->table)
      equal.emplace_back(other, one);
    if (other->table == list->table)
      equal.emplace_back(one, other);
  }
  return equal;
}

/* The column of the derived table that the item is, or is equal to, if conditions on it go into the SELECT. */
static Field *column_to_push(const Item_field *item, const TABLE_LIST *list, SELECT_LEX *inner, const Equal_columns &equal)
{
  if (!item->field)
    return nullptr;
  if (item->field->table == list->table)
    return item->used_tables() == list->table->map && pushed_field(inner, item->field) ? item->field : nullptr;
  for (const auto &pair : equal)
    if (pair.first == item->field && pushed_field(inner, pair.second))
      return pair.second;
  return nullptr;
}

/* Whether the range optimizer would look for comparators that a copy has not (Item_func_in::get_func_row_mm_tree): those of IN of rows, of which the left
   one has a column that it evaluates. The server makes them when it fixes its own copy. */
static bool needs_comparators(Item *item)
{
  if (item->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    for (Item *part; (part= parts++); )
      if (needs_comparators(part))
        return true;
    return false;
  }
  if (item->type() != Item::FUNC_ITEM || static_cast<Item_func *>(item)->functype() != Item_func::IN_FUNC)
    return false;
  Item *left= static_cast<Item_func *>(item)->arguments()[0];
  for (uint i= 0; left->cols() > 1 && i < left->cols(); i++)
    if (left->element_index(i)->real_item()->type() != Item::FIELD_ITEM)
      return true;
  return false;
}

/* A copy of the condition of columns of the derived table alone; none: it is not pushed. */
static Item *copy_to_push(THD *thd, Item *item, const TABLE_LIST *list, SELECT_LEX *inner, const Equal_columns &equal)
{
  if ((item->type() != Item::FUNC_ITEM && item->type() != Item::COND_ITEM) || !can_be_asked_about(thd, item) || needs_comparators(item))
    return nullptr;
  List<Item_field> fields, copied;
  item->walk(&Item::collect_item_field_processor, false, &fields);
  List_iterator_fast<Item_field> each(fields);
  for (Item_field *field; (field= each++); )
    if (!column_to_push(field, list, inner, equal))
      return nullptr;
  Item *copy= fields.elements ? item->deep_copy_with_checks(thd) : nullptr;
  if (!copy)
    return nullptr;
  copy->walk(&Item::collect_item_field_processor, false, &copied);
  List_iterator_fast<Item_field> each_copied(copied);
  for (Item_field *field; (field= each_copied++); )
  {
    each.rewind();
    for (const Item_field *original; (original= each++); )
      if (original == field)
        return nullptr;
    field->reset_field(column_to_push(field, list, inner, equal));
  }
  copy->update_used_tables();
  copy= copy->transform(thd, &Item::derived_field_transformer_for_where, reinterpret_cast<uchar *>(inner));
  if (copy)
    copy->update_used_tables();
  return copy;
}

std::vector<Item *> conditions_pushed(THD *thd, const std::vector<Item *> &conditions, const TABLE_LIST *list, SELECT_LEX *inner)
{
  std::vector<Item *> pushed;
  if (!list->table || list->prohibit_cond_pushdown || !optimizer_flag(thd, OPTIMIZER_SWITCH_COND_PUSHDOWN_FOR_DERIVED) ||
      !inner->cond_pushdown_is_allowed() || (inner->agg_func_used() && !inner->group_list.elements) ||
      (inner->have_window_funcs() && inner->group_list.elements))
    return pushed;
  const Equal_columns equal= columns_equal_to(list, conditions);
  for (Item *condition : conditions)
    if (Item *copy= copy_to_push(thd, condition, list, inner, equal))
      pushed.push_back(copy);
  return pushed;
}

} // namespace pando
