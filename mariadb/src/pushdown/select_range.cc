/* The server's range optimizer, asked early: see select_range.h. */
#include "select_range.h"

#include <algorithm>
#include <limits>

#include "opt_range.h"
#include "sql_statistics.h"

namespace pando {

/* Whether a constant can be evaluated now and again later, when it says again what it has to say. The values that comparisons keep of constants that they have
   converted say it once. */
static bool can_be_evaluated(THD *thd, Item *item)
{
  if (item->cols() > 1)
  {
    for (uint i= 0; i < item->cols(); i++)
      if (!can_be_evaluated(thd, item->element_index(i)))
        return false;
    return true;
  }
  if (!item->const_item() || (item->basic_const_item() && item->type() != Item::CACHE_ITEM))
    return true;
  if (item->type() == Item::CACHE_ITEM)
  {
    Item *example= static_cast<Item_cache *>(item)->get_example();
    if (!example || !example->basic_const_item() || example->type() == Item::CACHE_ITEM)
      return false;
    Silent_evaluation evaluation(thd);
    MYSQL_TIME moment;
    if (item->cmp_type() == TIME_RESULT)
      example->get_date(thd, &moment, Datetime::Options_cmp(thd));
    else
      example->val_real();
    return evaluation.is_silent();
  }
  if (item->type() != Item::FUNC_ITEM || !item->can_eval_in_optimize() || acts(item) || keeps_converted(item))
    return false;
  const Item_func *function= static_cast<Item_func *>(item);
  for (uint i= 0; i < function->argument_count(); i++)
    if (!can_be_evaluated(thd, function->arguments()[i]))
      return false;
  return true;
}

bool can_be_asked_about(THD *thd, Item *item)
{
  if (item->with_subquery() || (item->const_item() && !item->basic_const_item()))
    return false;
  if (item->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    for (Item *part; (part= parts++); )
      if (!can_be_asked_about(thd, part))
        return false;
    return true;
  }
  if (item->type() != Item::FUNC_ITEM)
    return true;
  const Item_func *function= static_cast<Item_func *>(item);
  for (uint i= 0; i < function->argument_count(); i++)
    if (!can_be_evaluated(thd, function->arguments()[i]))
      return false;
  return true;
}

Item *to_be_asked_about(THD *thd, std::vector<Item *> parts)
{
  parts.erase(std::remove_if(parts.begin(), parts.end(), [thd](Item *part) { return !can_be_asked_about(thd, part); }), parts.end());
  if (parts.empty())
    return nullptr;
  if (parts.size() == 1)
    return parts[0];
  List<Item> items;
  for (Item *part : parts)
    items.push_back(part, thd->mem_root);
  return new (thd->mem_root) Item_cond_and(thd, items);
}

/* Whether a condition on the table alone has a column that leads a key: without one, no key has ranges. Asked first, as the range optimizer's
   answer costs as much as a short statement. */
static bool may_have_ranges(const TABLE *table, const std::vector<Item *> &conditions)
{
  for (Item *part : conditions)
  {
    if (part->used_tables() & ~(table->map | PSEUDO_TABLE_BITS))
      continue;
    List<Item_field> fields;
    part->walk(&Item::collect_item_field_processor, false, &fields);
    List_iterator_fast<Item_field> each(fields);
    while (const Item_field *item= each++)
      if (item->field && item->field->table == table && !item->field->key_start.is_clear_all())
        return true;
  }
  return false;
}

Rows_of_ranges rows_of_ranges(THD *thd, TABLE *table, const std::vector<Item *> &conditions)
{
  const double infinity= std::numeric_limits<double>::infinity();
  const Rows_of_ranges none= {infinity, infinity, false};
  if (!may_have_ranges(table, conditions))
    return none;
  Item *asked= to_be_asked_about(thd, conditions);
  if (!asked)
    return none;
  Silent_evaluation evaluation(thd);
  set_statistics_for_table(thd, table);
  int error= 0;
  SQL_SELECT *ranges= make_select(table, 0, 0, asked, nullptr, false, &error);
  if (!ranges)
    return none;
  MY_BITMAP *const old= dbug_tmp_use_all_columns(table, &table->write_set);
  key_map keys;
  keys.set_all();
  table->opt_range_condition_rows= table->stat_records();
  const auto found= ranges->test_quick_select(thd, keys, 0, HA_POS_ERROR, false, false, false, false, Item_func::BITMAP_NONE);
  dbug_tmp_restore_column_map(&table->write_set, old);
  Rows_of_ranges rows= none;
  if (found == SQL_SELECT::IMPOSSIBLE_RANGE)
    rows.read= 0;
  else if (found == SQL_SELECT::OK && ranges->quick)
  {
    rows.read= double(ranges->quick->records);
    rows.is_covering= ranges->quick->get_type() == QUICK_SELECT_I::QS_TYPE_RANGE && table->covering_keys.is_set(ranges->quick->index);
  }
  rows.left= std::min(rows.read, double(table->opt_range_condition_rows));
  delete ranges;
  return rows;
}

} // namespace pando
