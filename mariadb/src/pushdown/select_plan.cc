/* Which SELECTs of any shape the engine is asked about, and whether the server's keys are the better way. */
#include "select_translate.h"
#include "select_cost.h"

#include <algorithm>

namespace pando {

static uint leaf_count(SELECT_LEX *select)
{
  return select->leaf_tables.elements;
}

/* Whether a key has the rows in this order, at least by its first column. */
static bool is_order_of_key(Item *item)
{
  item= item->real_item();
  if (item->type() != Item::FIELD_ITEM)
    return false;
  const Field *field= static_cast<Item_field *>(item)->field;
  return field && !field->key_start.is_clear_all();
}

/* Whether all that is computed of the rows, or of the groups, are columns and the least and largest of columns. */
static bool asks_for_ends(SELECT_LEX *select)
{
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
  {
    if (item->type() == Item::SUM_FUNC_ITEM)
    {
      const Item_sum *sum= static_cast<Item_sum *>(item);
      if ((sum->sum_func() != Item_sum::MIN_FUNC && sum->sum_func() != Item_sum::MAX_FUNC) ||
          sum->get_arg(0)->real_item()->type() != Item::FIELD_ITEM)
        return false;
    }
    else if (item->with_sum_func())
      return false;
  }
  return true;
}

/* The least or largest value of a key's first column is the key's end, and groups by that column may be found by jumping from one to
   the next: the optimizer knows, and asks for whole queries (create_pushdown) where it does not do so. */
static bool may_jump_in_key(SELECT_LEX *select)
{
  JOIN *join= select->join;
  /* All rows are shown. */
  if (!join->group_list && !select->agg_func_used() && !(select->options & SELECT_DISTINCT))
    return false;
  if (leaf_count(select) != 1 || select->first_inner_unit() || select->have_window_funcs() || !asks_for_ends(select))
    return false;
  if (join->group_list)
    return is_order_of_key(*join->group_list->item);
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
  {
    Item *of= item->type() == Item::SUM_FUNC_ITEM ? static_cast<Item_sum *>(item)->get_arg(0) : item;
    if (is_order_of_key(of))
      return true;
  }
  return false;
}

/* The parser gives a query without a LIMIT the one of `sql_select_limit`, which is none unless somebody has set it. */
bool has_limit(const Lex_select_limit &params)
{
  Item *limit= params.select_limit;
  return limit && (params.explicit_limit || !limit->basic_const_item() || limit->val_uint() != HA_POS_ERROR);
}

/* Of one table, without groups, and not sorted: the rows go to the server one after the other. */
bool is_select_for_engine(THD *thd, SELECT_LEX *select, const char **reason)
{
  JOIN *join= select->join;
  *reason= "the statement";
  if (!is_statement_for_engine(thd, select) || !join)
    return false;
  /* The server looks at no row. */
  *reason= "LIMIT 0";
  if (!select->master_unit()->lim.get_select_limit())
    return false;
  const bool is_grouped= join->group_list || select->agg_func_used() || (select->options & SELECT_DISTINCT) ||
                         select->have_window_funcs();
  *reason= "rows of one table";
  if (leaf_count(select) == 1 && !is_grouped && !join->order && !select->first_inner_unit())
    return false;
  *reason= "the first rows in the order of a key";
  if (leaf_count(select) == 1 && !is_grouped && join->order && is_order_of_key(*join->order->item))
    return false;
  *reason= "the ends of a key";
  if (may_jump_in_key(select))
    return false;
  *reason= "a LIMIT without an order";
  if (!is_grouped && !join->order && has_limit(select->master_unit()->global_parameters()->limit_params))
    return false;
  return true;
}

/* The rows of all tables are gone over; the server may go to a few by a key. */
bool is_select_better_done_by_keys(const Select_cost &cost, const Select_translator &translator)
{
  double engine= 0, all= 0, served= 0;
  for (const TABLE *table : translator.tables)
  {
    /* The server asks it for tables of derived ones later: after a load a table would have no rows so far. */
    table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
    const double rows= double(table->file->stats.records);
    engine+= ENGINE_TABLE_NS + rows * (ENGINE_ROW_NS + ENGINE_COLUMN_NS * translator.columns / double(translator.tables.size()));
    all+= rows;
  }
  const double scan= all * SERVER_SCAN_NS;
  if (scan * double(translator.tables.size()) < engine)
    return true;
  for (const auto &expression : translator.served_expressions)
  {
    double rows= 0;
    for (const Server_leaf &leaf : expression->leaves)
    {
      const auto table= std::find(translator.tables.begin(), translator.tables.end(), leaf.table_of_column());
      if (table != translator.tables.end())
        rows= std::max(rows, double((*table)->file->stats.records));
    }
    /* Conditions are asked of all rows, what else there is of those that are left. */
    served+= (expression->is_condition() ? rows : std::min(rows, std::max(cost.rows, 1.0))) * SERVED_NS;
  }
  /* Who goes over the rows computes these, too. */
  return cost.server < cost.engine + served && cost.server < scan / 2;
}

} // namespace pando
