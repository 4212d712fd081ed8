/* Whether the server ends early: see select_limit.h. */
#include "select_limit.h"
#include "select_cost.h"
#include "select_derived.h"
#include "sql_select.h"

#include <algorithm>

namespace pando {

/* Rows that are read for one that a condition leaves, where nobody has looked; and groups for one that HAVING leaves. */
static const double ROWS_OF_CONDITION= 10;

static const Field *field_of(const ORDER *order)
{
  Item *item= (*order->item)->real_item();
  return item->type() == Item::FIELD_ITEM ? static_cast<Item_field *>(item)->field : nullptr;
}

/* Of a SELECT within another the server looks at its LIMIT later. */
double rows_wanted(SELECT_LEX_UNIT *unit)
{
  if (!unit->outer_select())
    return double(unit->lim.get_select_limit());
  const Lex_select_limit &params= unit->global_parameters()->limit_params;
  /* An EXISTS ends at its first row, which may be the last that it looks at. */
  if (unit->item && unit->item->substype() == Item_subselect::EXISTS_SUBS)
    return double(HA_POS_ERROR);
  if (!is_one_select(unit) || !has_limit(params))
    return double(HA_POS_ERROR);
  double rows= 0;
  for (Item *count : {params.select_limit, params.offset_limit})
  {
    if (!count)
      continue;
    if (!count->fixed() || !count->basic_const_item())
      return double(HA_POS_ERROR);
    rows+= double(count->val_uint());
  }
  return rows;
}

/* Whether SELECTs within it are computed of rows that are shown; `or_derived`: or are derived tables. */
static bool has_only_shown_units(SELECT_LEX *select, bool or_derived)
{
  for (const SELECT_LEX_UNIT *unit= select->first_inner_unit(); unit; unit= const_cast<SELECT_LEX_UNIT *>(unit)->next_unit())
    if (unit->item ? unit->item->place() != SELECT_LIST : !or_derived)
      return false;
  return true;
}

static bool may_end_early(SELECT_LEX *select, bool with_derived= false)
{
  return has_only_shown_units(select, with_derived) && !select->have_window_funcs() && select->olap != ROLLUP_TYPE &&
         rows_wanted(select->master_unit()) < double(HA_POS_ERROR);
}

bool ends_after_few_groups(SELECT_LEX *select)
{
  JOIN *join= select->join;
  if (select->leaf_tables.elements != 1 || !may_end_early(select) || !join->group_list)
    return false;
  const Field *field= field_of(join->group_list);
  if (!field || (join->order && field_of(join->order) != field))
    return false;
  double of_group= 0;
  for (uint number= 0; number < field->table->s->keys; number++)
  {
    const KEY &key= field->table->key_info[number];
    if (key.key_part[0].field == field && key.rec_per_key && field->table->keys_in_use_for_group_by.is_set(number))
      of_group= std::max(of_group, double(key.rec_per_key[0]));
  }
  const double limit= rows_wanted(select->master_unit());
  const double rows= limit * of_group * (join->conds ? ROWS_OF_CONDITION : 1) * (join->having ? ROWS_OF_CONDITION : 1);
  return of_group > 0 && rows * SERVER_LOOKUP_NS < ENGINE_TABLE_NS + double(field->table->file->stats.records) * (ENGINE_ROW_NS + ENGINE_COLUMN_NS);
}

/* How a key gives rows in an order. */
struct Order_of_key
{
  uint constants= 0; /* of its first columns, which have one value */
  double rows= 0;    /* that have the same values in the columns of the order; 0: they are not those of the key */
};

/* If the first columns of a key are those of the order, forwards or backwards, or the first ones behind those that have one value. */
static Order_of_key order_by_key(const KEY &key, const ORDER *order, const Is_constant *is_constant, bool needs_constant)
{
  const auto direction= order->direction;
  Order_of_key by_key;
  uint parts= 0;
  while (is_constant && parts < key.user_defined_key_parts && key.key_part[parts].field != field_of(order) && (*is_constant)(key.key_part[parts].field))
    parts++;
  by_key.constants= parts;
  if (needs_constant && !parts)
    return by_key;
  for (; order; order= order->next, parts++)
    if (parts == key.ext_key_parts || key.key_part[parts].field != field_of(order) || order->direction != direction ||
        (key.key_part[parts].key_part_flag & (HA_PART_KEY_SEG | HA_REVERSE_SORT)))
      return by_key;
  /* The primary key's columns follow those of another key. */
  if (parts > key.user_defined_key_parts || (parts == key.user_defined_key_parts && (key.flags & HA_NOSAME)))
    by_key.rows= 1;
  else if (key.rec_per_key)
    by_key.rows= std::max(1.0, double(key.rec_per_key[parts - 1]));
  return by_key;
}

/* Whether a condition drops no row beside those that a key with these columns constant leaves: it is what makes one of them constant, or it joins a table
   to its partners. */
static bool is_met_by_key(Item *condition, const KEY &key, uint constants)
{
  if (condition->type() != Item::FUNC_ITEM || static_cast<Item_func *>(condition)->functype() != Item_func::EQ_FUNC)
    return false;
  Item **sides= static_cast<Item_func *>(condition)->arguments();
  Item *one= sides[0]->real_item(), *other= sides[1]->real_item();
  if (one->type() != Item::FIELD_ITEM)
    std::swap(one, other);
  if (one->type() != Item::FIELD_ITEM)
    return false;
  const Field *field= static_cast<Item_field *>(one)->field;
  if (other->type() == Item::FIELD_ITEM)
    return static_cast<Item_field *>(other)->field->table != field->table;
  return other->const_item() && std::any_of(key.key_part, key.key_part + constants, [field](const KEY_PART_INFO &part) { return part.field == field; });
}

static double rows_for_one(Item *conditions, const KEY *key, uint constants)
{
  if (!conditions)
    return 1;
  if (!key)
    return ROWS_OF_CONDITION;
  if (conditions->type() != Item::COND_ITEM || static_cast<Item_cond *>(conditions)->functype() != Item_func::COND_AND_FUNC)
    return is_met_by_key(conditions, *key, constants) ? 1 : ROWS_OF_CONDITION;
  List_iterator_fast<Item> parts(*static_cast<Item_cond *>(conditions)->argument_list());
  while (Item *part= parts++)
    if (!is_met_by_key(part, *key, constants))
      return ROWS_OF_CONDITION;
  return 1;
}

/* Whether the first rows, or groups, may come in the order of a key; `order`: the one that they come in. */
static bool may_come_in_order(SELECT_LEX *select, bool with_derived, const ORDER **order)
{
  const JOIN *join= select->join;
  *order= join->group_list ? join->group_list : join->order;
  if (!may_end_early(select, with_derived) || (select->options & SELECT_DISTINCT) || (!join->group_list && select->agg_func_used()))
    return false;
  /* Groups come in their own order. */
  const ORDER *group= join->group_list;
  for (const ORDER *one= group ? join->order : nullptr; one; one= one->next, group= group ? group->next : nullptr)
    if (!group || field_of(one) != field_of(group) || !field_of(one) || one->direction != join->order->direction)
      return false;
  return true;
}

/* Calls `use` with each key of the table that gives rows in the order. */
template <typename Use>
static void each_key_in_order(const JOIN *join, const TABLE *first, const ORDER *order, const Is_constant *is_constant, bool needs_constant, const Use &use)
{
  const key_map &usable= join->group_list ? first->keys_in_use_for_group_by : first->keys_in_use_for_order_by;
  for (uint number= 0; order && number < first->s->keys; number++)
  {
    if (!usable.is_set(number))
      continue;
    const Order_of_key by_key= order_by_key(first->key_info[number], order, is_constant, needs_constant);
    if (by_key.rows > 0)
      use(first->key_info[number], by_key);
  }
}

double share_until_limit(SELECT_LEX *select, const TABLE *first, double rows_read, const Is_constant *is_constant, bool needs_constant)
{
  const JOIN *join= select->join;
  const ORDER *order;
  if (!may_come_in_order(select, false, &order))
    return 1;
  double rows= order ? 0 : rows_for_one(join->conds, nullptr, 0);
  each_key_in_order(join, first, order, is_constant, needs_constant, [&](const KEY &key, const Order_of_key &by_key) {
    const double of_one= (join->group_list ? by_key.rows : 1) * rows_for_one(join->conds, &key, by_key.constants);
    if (rows <= 0 || of_one < rows)
      rows= of_one;
  });
  if (rows <= 0)
    return 1;
  rows*= rows_wanted(select->master_unit()) * (join->group_list && join->having ? ROWS_OF_CONDITION : 1);
  return std::min(1.0, rows / std::max(1.0, rows_read));
}

/* Whether a condition joins a table to its partners, or is one of columns of the key alone. */
static bool is_counted_by_key(Item *condition, const KEY &key, bool *has_first)
{
  if (is_met_by_key(condition, key, 0))
    return true;
  List<Item_field> fields;
  condition->walk(&Item::collect_item_field_processor, false, &fields);
  if (condition->with_subquery() || !fields.elements)
    return false;
  List_iterator_fast<Item_field> each(fields);
  for (const Item_field *field; (field= each++); )
  {
    const auto is_part= [field](const KEY_PART_INFO &part) { return part.field == field->field; };
    if (!std::any_of(key.key_part, key.key_part + key.user_defined_key_parts, is_part))
      return false;
    *has_first|= is_part(key.key_part[0]);
  }
  return true;
}

/* Whether the rows that some key leads to are all that the conditions leave. */
static bool are_counted_by_key(const TABLE *first, const std::vector<Item *> &conditions)
{
  return std::any_of(first->key_info, first->key_info + first->s->keys, [&](const KEY &key) {
    bool has_first= false;
    return std::all_of(conditions.begin(), conditions.end(), [&](Item *condition) { return is_counted_by_key(condition, key, &has_first); }) && has_first;
  });
}

Rows_in_order rows_in_order(SELECT_LEX *select, const TABLE *first, double all, double led, const std::vector<Item *> &conditions, bool drops_more)
{
  Rows_in_order rows;
  const JOIN *join= select->join;
  const ORDER *order;
  if (!may_come_in_order(select, true, &order))
    return rows;
  double of_one= 0;
  each_key_in_order(join, first, order, nullptr, false, [&](const KEY &, const Order_of_key &by_key) {
    const double of_key= join->group_list ? by_key.rows : 1;
    of_one= of_one > 0 ? std::min(of_one, of_key) : of_key;
  });
  rows.by_server= of_one * rows_wanted(select->master_unit()) * all / std::max(1.0, led);
  rows.read= rows.by_server * (!drops_more && are_counted_by_key(first, conditions) ? 1 : ROWS_OF_CONDITION);
  rows.read= std::min(all, rows.read * (join->group_list && join->having ? ROWS_OF_CONDITION : 1));
  return rows;
}

} // namespace pando
