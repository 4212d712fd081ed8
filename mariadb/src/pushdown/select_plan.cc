/* Which SELECTs of any shape the engine is asked about, and whether the server's keys are the better way. */
#include "select_translate.h"
#include "select_cost.h"
#include "pushdown_filter.h"
#include "select_bound.h"
#include "select_jumps.h"
#include "select_limit.h"

#include <algorithm>
#include <cmath>

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
  if (leaf_count(select) != 1 || select->first_inner_unit() || select->have_window_funcs() || !asks_for_ends(select) ||
      may_lose_rows_by_jumps(select))
    return false;
  /* Of a partitioned table it does not ask. */
  if (join->group_list)
    return jumps_of(select).groups > 0 && select->leaf_tables.head()->table->file->ht == hton;
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
  {
    Item *of= item->type() == Item::SUM_FUNC_ITEM ? static_cast<Item_sum *>(item)->get_arg(0) : item;
    if (is_order_of_key(of))
      return true;
  }
  return false;
}

/* The same of a column, or of one of those of a row: `(a, b) IN ((1, 2), (3, 4))`. */
static bool has_order_of_key(Item *item)
{
  if (item->real_item()->type() != Item::ROW_ITEM)
    return is_order_of_key(item);
  for (uint i= 0; i < item->cols(); i++)
    if (has_order_of_key(item->element_index(i)))
      return true;
  return false;
}

/* Whether a key may lead to the rows of such a condition: `column IN`, LIKE, IS NULL and the like, rows of columns, and whatever stands in
   an OR. Of one table the optimizer is asked then: it offers the groups of its plan to the engine (create_pushdown). */
static bool may_lead_by_key(Item *item, bool is_in_or)
{
  if (item->type() == Item::COND_ITEM)
  {
    Item_cond *cond= static_cast<Item_cond *>(item);
    List_iterator_fast<Item> parts(*cond->argument_list());
    for (Item *part; (part= parts++); )
      if (may_lead_by_key(part, is_in_or || cond->functype() != Item_func::COND_AND_FUNC))
        return true;
    return false;
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(item);
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
    if (!is_in_or && function->arguments()[0]->cols() == 1)
      return false;
    break;
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
  case Item_func::BETWEEN:
    if (!is_in_or)
      return false;
    break;
  case Item_func::IN_FUNC:
    if (static_cast<Item_func_in *>(function)->negated)
      return false;
    break;
  case Item_func::LIKE_FUNC:
    if (static_cast<Item_func_like *>(function)->get_negated())
      return false;
    break;
  case Item_func::ISNULL_FUNC:
  {
    /* Of rows of a LEFT JOIN without a partner no key knows. */
    const Item *of= function->arguments()[0]->real_item();
    if (of->type() == Item::FIELD_ITEM && static_cast<const Item_field *>(of)->field->table->maybe_null)
      return false;
    break;
  }
  case Item_func::EQUAL_FUNC:
    break;
  default:
    return false;
  }
  bool has_key= false;
  for (uint i= 0; i < function->argument_count(); i++)
  {
    Item *argument= function->arguments()[i];
    if (has_order_of_key(argument))
      has_key= true;
    else if (!argument->const_item())
      return false;
  }
  return has_key;
}

/* The parser gives a query without a LIMIT the one of `sql_select_limit`, which is none unless somebody has set it. */
bool has_limit(const Lex_select_limit &params)
{
  Item *limit= params.select_limit;
  return limit && (params.explicit_limit || !limit->basic_const_item() || limit->val_uint() != HA_POS_ERROR);
}

/* Whether a literal is a column of a merged view, derived table or CTE that an outer join may leave NULL: `LEFT JOIN (SELECT id, 1 AS found FROM r) v`.
   The server's items hand the literal through, without the table on which it depends. */
bool has_literal_that_may_be_null(const LEX *lex)
{
  for (const TABLE_LIST *list= lex->query_tables; list; list= list->next_global)
  {
    if (!list->field_translation)
      continue;
    bool is_outer= false;
    for (const TABLE_LIST *nest= list; nest; nest= nest->embedding)
      is_outer|= nest->outer_join != 0;
    if (is_outer && std::any_of(list->field_translation, list->field_translation_end,
                                [](const Field_translator &column) { return column.item->basic_const_item(); }))
      return true;
  }
  return false;
}

bool is_of_rows(SELECT_LEX *select)
{
  const JOIN *join= select->join;
  return !select->outer_select() && leaf_count(select) == 1 && !join->group_list && !select->agg_func_used() &&
         !(select->options & SELECT_DISTINCT) && !select->have_window_funcs() && !join->order && !select->first_inner_unit();
}

/* Whether all of its rows are computed before the first one is shown: those of derived tables that are kept, or windows. */
static bool is_of_kept_rows(SELECT_LEX *select)
{
  if (select->join->group_list || select->agg_func_used() || (select->options & SELECT_DISTINCT))
    return false;
  List_iterator_fast<TABLE_LIST> tables(select->leaf_tables);
  bool are_derived= true;
  while (const TABLE_LIST *table= tables++)
    are_derived&= table->is_view_or_derived() && !table->is_merged_derived();
  return are_derived || select->have_window_funcs();
}

/* Which rows such a LIMIT leaves is a matter of the plan, unless it leaves all. */
uint64_t limit_that_leaves_all(SELECT_LEX *select)
{
  const Lex_select_limit &params= select->master_unit()->global_parameters()->limit_params;
  if (select->outer_select() || select->master_unit()->is_unit_op() || select->join->order || !has_limit(params) || !params.select_limit->basic_const_item() ||
      (params.offset_limit && (!params.offset_limit->basic_const_item() || params.offset_limit->val_uint())) || !is_of_kept_rows(select))
    return 0;
  return std::min<uint64_t>(params.select_limit->val_uint(), UINT64_MAX - 2);
}

/* So few rows are found by a unique key sooner than their conditions are looked into. */
static const double ROWS_BY_KEY_FEW= 10;

static bool are_few_by_unique_key(const TABLE *table, Item *conditions)
{
  std::vector<Item *> parts;
  if (conditions->type() != Item::COND_ITEM)
    parts.push_back(conditions);
  else if (static_cast<Item_cond *>(conditions)->functype() == Item_func::COND_AND_FUNC)
  {
    List_iterator_fast<Item> each(*static_cast<Item_cond *>(conditions)->argument_list());
    while (Item *part= each++)
      parts.push_back(part);
  }
  return rows_by_unique_key(table, parts) <= ROWS_BY_KEY_FEW;
}

/* Whether the column can have this value. What it is compared with beyond that a scan does not take. */
static bool holds_integer(const Field *field, Item *constant)
{
  const longlong value= constant->val_int();
  const ulonglong most= field->get_max_int_value();
  if (value >= 0 || constant->unsigned_flag)
    return ulonglong(value) <= most;
  return !(field->flags & UNSIGNED_FLAG) && ulonglong(-(value + 1)) <= most;
}

/* Whether an integer column of the table is compared with integers that it can have: a scan takes that. */
static bool compares_integers(const TABLE *table, Item *condition)
{
  if (condition->type() == Item::COND_ITEM)
  {
    Item_cond *cond= static_cast<Item_cond *>(condition);
    List_iterator_fast<Item> parts(*cond->argument_list());
    while (Item *part= parts++)
      if (!compares_integers(table, part))
        return false;
    return cond->functype() == Item_func::COND_AND_FUNC;
  }
  if (condition->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(condition);
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
    break;
  default:
    return false;
  }
  Item *column= function->arguments()[0], *constant= function->arguments()[1];
  if (column->basic_const_item())
    std::swap(column, constant);
  if (column->cols() != 1 || column->real_item()->type() != Item::FIELD_ITEM || !constant->basic_const_item() || constant->cmp_type() != INT_RESULT)
    return false;
  const Field *field= static_cast<Item_field *>(column->real_item())->field;
  const bool is_integer= dynamic_cast<const Type_handler_general_purpose_int *>(field->type_handler());
  return field->table == table && field->stored_in_db() && is_integer && holds_integer(field, constant);
}

/* Rows of one table, as they come: whether the server asks conditions of all of them that a scan does not take (pushdown_filter.h). Then the engine looks
   for those that are left, and sorts them as a scan gives them. */
static bool has_conditions_of_server(THD *thd, SELECT_LEX *select)
{
  TABLE *table= select->leaf_tables.head()->table;
  Item *conditions= select->join->conds;
  if (!conditions || !table || table->s->primary_key >= MAX_KEY || has_limit(select->master_unit()->global_parameters()->limit_params) ||
      is_stored_by_statement(thd) || compares_integers(table, conditions) || are_few_by_unique_key(table, conditions))
    return false;
  const KEY &key= table->key_info[table->s->primary_key];
  for (uint i= 0; i < key.user_defined_key_parts; i++)
    if (key.key_part[i].key_part_flag & HA_PART_KEY_SEG)
      return false;
  const std::vector<ha_pando *> handlers= handlers_of(table);
  if (handlers.empty())
    return false;
  const std::unique_ptr<Row_filter> filter= Row_filter::make(thd, table, handlers[0], conditions, conditions);
  return !filter || !filter->is_whole();
}

/* Whether it is seen at once that no row has it: `0`, or `1 = 0`. */
static bool is_false(Item *item)
{
  const auto is_integer= [](Item *constant) { return constant->basic_const_item() && constant->cmp_type() == INT_RESULT; };
  if (item->type() == Item::FUNC_ITEM)
  {
    const Item_func *function= static_cast<Item_func *>(item);
    if (!dynamic_cast<Item_bool_rowready_func2 *>(item) ||
        !std::all_of(function->arguments(), function->arguments() + function->argument_count(), is_integer))
      return false;
  }
  else if (!is_integer(item))
    return false;
  return !item->val_bool();
}

static bool is_never_true(Item *conditions)
{
  if (conditions->type() != Item::COND_ITEM)
    return is_false(conditions);
  Item_cond *condition= static_cast<Item_cond *>(conditions);
  if (condition->functype() != Item_func::COND_AND_FUNC)
    return false;
  List_iterator_fast<Item> parts(*condition->argument_list());
  while (Item *part= parts++)
    if (is_false(part))
      return true;
  return false;
}

/* Whether WHERE, or an inner join of the outermost tables, leaves no row. */
static bool has_no_rows(SELECT_LEX *select)
{
  if (select->join->conds && is_never_true(select->join->conds))
    return true;
  List_iterator_fast<TABLE_LIST> tables(select->leaf_tables);
  while (const TABLE_LIST *table= tables++)
  {
    bool is_inner= true, is_empty= false;
    for (const TABLE_LIST *nest= table; nest; nest= nest->embedding)
    {
      is_inner&= !nest->outer_join;
      is_empty|= nest->on_expr && is_never_true(nest->on_expr);
    }
    if (is_inner && is_empty)
      return true;
  }
  return false;
}

/* Of one table, without groups, and not sorted: the rows go to the server one after the other, unless it has to look at all of them. */
bool is_select_for_engine(THD *thd, SELECT_LEX *select, const char **reason)
{
  JOIN *join= select->join;
  *reason= "the statement";
  if (!is_statement_for_engine(thd, select) || !join)
    return false;
  *reason= "a literal of a view that an outer join may leave NULL";
  if (has_literal_that_may_be_null(thd->lex))
    return false;
  /* The server looks at no row. */
  *reason= "LIMIT 0";
  if (!select->master_unit()->lim.get_select_limit())
    return false;
  *reason= "a condition that is never true";
  if (has_no_rows(select))
    return false;
  const bool is_grouped= join->group_list || select->agg_func_used() || (select->options & SELECT_DISTINCT) ||
                         select->have_window_funcs();
  *reason= "rows of one table";
  if (is_of_rows(select) && !has_conditions_of_server(thd, select))
    return false;
  *reason= "the first rows in the order of a key";
  const bool is_limited= has_limit(select->master_unit()->global_parameters()->limit_params);
  if (leaf_count(select) == 1 && !is_grouped && join->order && is_order_of_key(*join->order->item) && (is_limited || !join->conds))
    return false;
  *reason= "the ends of a key";
  if (may_jump_in_key(select))
    return false;
  *reason= "the first groups in the order of a key";
  if (ends_after_few_groups(select))
    return false;
  *reason= "conditions that a key may lead by";
  if (leaf_count(select) == 1 && !select->first_inner_unit() && !select->have_window_funcs() && join->conds &&
      may_lead_by_key(join->conds, false) && !may_lose_rows_by_jumps(select))
    return false;
  *reason= "a LIMIT without an order";
  if (!is_grouped && !join->order && is_limited && !limit_that_leaves_all(select))
    return false;
  return true;
}

/* An equality of columns of several tables that only the server can tell: nothing is joined by it, all pairs of rows are asked. */
struct Asked_pairs
{
  double count= 0;
  /* It ties a subquery to the query around it. */
  bool is_tie= false;
};

/* No more than its largest table has, if its SELECTs are no more than joins by keys; 0: it is none. */
static double rows_of_derived(TABLE_LIST *list, uint depth= 0)
{
  static const uint DEPTH_MAX= 16;
  SELECT_LEX_UNIT *unit= list->is_view_or_derived() ? list->get_unit() : nullptr;
  double most= 0;
  for (SELECT_LEX *select= unit && depth < DEPTH_MAX ? unit->first_select() : nullptr; select; select= select->next_select())
  {
    List_iterator_fast<TABLE_LIST> tables(select->leaf_tables);
    for (TABLE_LIST *one; (one= tables++); )
      most= std::max(most, one->is_view_or_derived() ? rows_of_derived(one, depth + 1) : one->table ? double(one->table->file->stats.records) : 0);
  }
  return most;
}

static Asked_pairs pairs_asked(const Server_expression &expression, const Select_translator &translator)
{
  const Item *item= expression.item();
  if (!expression.is_condition() || item->type() != Item::FUNC_ITEM)
    return {};
  const Item_func::Functype type= static_cast<const Item_func *>(item)->functype();
  if (type != Item_func::EQ_FUNC && type != Item_func::EQUAL_FUNC)
    return {};
  std::vector<const TABLE *> tables;
  Asked_pairs pairs;
  pairs.count= 1;
  for (const Server_leaf &leaf : expression.leaves)
  {
    const TABLE *table= leaf.table_of_column();
    if (!table || !table->pos_in_table_list || std::count(tables.begin(), tables.end(), table))
      continue;
    const bool is_read= std::find(translator.tables.begin(), translator.tables.end(), table) != translator.tables.end();
    const double rows= is_read ? double(table->file->stats.records) : rows_of_derived(table->pos_in_table_list);
    if (rows <= 0)
      continue;
    pairs.is_tie|= !tables.empty() && tables[0]->pos_in_table_list->select_lex != table->pos_in_table_list->select_lex;
    tables.push_back(table);
    pairs.count*= rows;
  }
  return tables.size() > 1 ? pairs : Asked_pairs();
}

/* How many different values a column has at most, by its type or by a key that begins with it. */
static double values_of(const Field *field)
{
  const TABLE *table= field->table;
  double values= double(table->file->stats.records);
  switch (field->real_type())
  {
  case MYSQL_TYPE_ENUM: values= std::min(values, double(members_of(field)->count) + 1); break;
  case MYSQL_TYPE_SET:  values= std::min(values, std::ldexp(1, int(members_of(field)->count))); break;
  case MYSQL_TYPE_BIT:  values= std::min(values, std::ldexp(1, int(field->field_length))); break;
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_YEAR: values= std::min(values, 256.0); break;
  default:              break;
  }
  for (uint number= 0; number < table->s->keys; number++)
  {
    const KEY &key= table->key_info[number];
    if (key.key_part[0].field == field && !(key.key_part[0].key_part_flag & HA_PART_KEY_SEG) && key.rec_per_key && key.rec_per_key[0])
      values= std::min(values, double(table->file->stats.records) / double(key.rec_per_key[0]));
  }
  /* NULL is one, too. */
  return values + 1;
}

/* Of how many rows the server computes it: the engine remembers what has been said of few different values. */
static double rows_computed(const Server_expression &expression, const Select_cost &cost, const Select_translator &translator)
{
  double rows= 0, values= 1;
  bool is_known= !expression.leaves.empty();
  for (const Server_leaf &leaf : expression.leaves)
  {
    const auto table= std::find(translator.tables.begin(), translator.tables.end(), leaf.table_of_column());
    if (table == translator.tables.end())
    {
      is_known= false;
      continue;
    }
    /* It is computed behind the conditions that the engine computes. */
    const auto range= std::find_if(cost.ranges.begin(), cost.ranges.end(), [table](const auto &one) { return one.first == *table; });
    rows= std::max(rows, range != cost.ranges.end() ? range->second : double((*table)->file->stats.records));
    values*= values_of(leaf.column());
  }
  static const double VALUES_REMEMBERED= 65536;
  return is_known && values <= VALUES_REMEMBERED ? std::min(rows, values) : rows;
}

/* Columns that are read of each row of a table. Where the first rows of an order are wanted, those that nothing but the answer has are read of
   few rows only. */
static double columns_read(THD *thd, SELECT_LEX *select, const Select_translator &translator)
{
  static const double COLUMNS_OF_ORDER= 4; /* with those of conditions */
  static const double ROWS_FOR_EACH= 100;
  const double columns= translator.columns / double(translator.tables.size());
  const JOIN *join= select->join;
  if (translator.tables.size() > 1 || !join->order || is_stored_by_statement(thd) || join->group_list || select->agg_func_used() || select->have_window_funcs() ||
      (select->options & SELECT_DISTINCT))
    return columns;
  const double rows= double(translator.tables[0]->file->stats.records);
  return rows_wanted(select->master_unit()) * ROWS_FOR_EACH < rows ? std::min(columns, COLUMNS_OF_ORDER) : columns;
}

/* The rows of all tables are gone over; the server may go to a few by a key. */
bool is_select_better_done_by_keys(THD *thd, SELECT_LEX *select, const Select_cost &cost, const Select_translator &translator)
{
  const double columns= columns_read(thd, select, translator);
  /* Of large values that the server reads for their lengths, a byte that is stored. */
  static const double LARGE_BYTE_NS= 0.5;
  double engine= 0, all= 0, served= 0, large= 0;
  for (const TABLE *table : translator.tables)
  {
    /* The server asks it for tables of derived ones later: after a load a table would have no rows so far. */
    table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
    const double rows= double(table->file->stats.records);
    engine+= ENGINE_TABLE_NS + rows * (ENGINE_ROW_NS + ENGINE_COLUMN_NS * columns);
    all+= rows;
    if (translator.tables_of_lengths.count(table))
      large+= double(table->file->stats.data_file_length) * LARGE_BYTE_NS;
  }
  const double scan= all * SERVER_SCAN_NS + large;
  if (scan * double(translator.tables.size()) < engine)
    return true;
  for (const auto &expression : translator.served_expressions)
  {
    const Asked_pairs pairs= pairs_asked(*expression, translator);
    /* The server makes IN of EXISTS, and a table of the subquery: a scan of either. */
    if (std::min(cost.server, pairs.is_tie ? scan : cost.server) < pairs.count * SERVED_NS)
      return true;
  }
  for (const auto &expression : translator.served_expressions)
  {
    const double rows= rows_computed(*expression, cost, translator);
    /* Conditions are asked of all rows, what else there is of those that are left. */
    served+= (expression->is_condition() ? rows : std::min(rows, std::max(cost.rows, 1.0))) * SERVED_NS;
  }
  /* Who goes over the rows computes these, too. */
  const double server= cost.server + large * (all > cost.rows ? cost.rows / all : 1);
  return server < cost.engine + served && server < scan / 2;
}

} // namespace pando
