/* Which SELECTs of any shape the engine is asked about, and whether the server's keys are the better way. */
#include "select_translate.h"

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

/* Whether a key may lead to the rows of a condition which Key_conditions does not estimate: `column IN`, LIKE, IS NULL and the
   like, rows of columns, and whatever stands in an OR. */
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

/* Of one table, without groups, and not sorted: the rows go to the server one after the other. */
bool is_select_for_engine(THD *thd, SELECT_LEX *select, const char **reason)
{
  JOIN *join= select->join;
  *reason= "the statement";
  if (!is_statement_for_engine(thd, select) || !join)
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
  *reason= "conditions that a key may lead by";
  if (join->conds && may_lead_by_key(join->conds, false))
    return false;
  *reason= "a LIMIT without an order";
  if (!is_grouped && !join->order && has_limit(select->master_unit()->global_parameters()->limit_params))
    return false;
  return true;
}

/* What ways of reading cost, in nanoseconds (docs/decisions/0010-whole-queries.md). */
static const double SERVER_SCAN_NS= 300, SERVER_LOOKUP_NS= 1000;
static const double ENGINE_ROW_NS= 2, ENGINE_COLUMN_NS= 3, ENGINE_TABLE_NS= 60000;
/* Rows that one more table gives for each, as nobody has asked the optimizer. */
static const double ROWS_EACH= 4;

namespace {

/* A bound of a column, from a condition. */
struct Bound
{
  Field *field= nullptr;
  Item *least= nullptr, *most= nullptr;
  bool is_equal= false;
};

/* The conditions on one table that a key may have. */
class Key_conditions
{
public:
  Key_conditions(THD *thd, TABLE *table) : m_thd(thd), m_table(table) {}
  void add(Item *item);
  /* How many rows the best key leads to; all, if none does. */
  double rows();

private:
  Field *field_of(Item *item) const;
  Bound *bound_of(Field *field);
  void add_comparison(Item_func *function);
  bool store(Item *item, Field *field);
  bool make_end(const KEY *key, uint equal_parts, Item *bound, std::vector<uchar> *bytes, key_range *end);
  double rows_of(uint number);

  THD *m_thd;
  TABLE *m_table;
  std::vector<Bound> m_bounds;
};

Field *Key_conditions::field_of(Item *item) const
{
  item= item->real_item();
  if (item->type() != Item::FIELD_ITEM)
    return nullptr;
  Field *field= static_cast<Item_field *>(item)->field;
  return field && field->table == m_table ? field : nullptr;
}

Bound *Key_conditions::bound_of(Field *field)
{
  for (Bound &bound : m_bounds)
    if (bound.field == field)
      return &bound;
  m_bounds.emplace_back();
  m_bounds.back().field= field;
  return &m_bounds.back();
}

bool is_plain_constant(Item *item)
{
  return item->basic_const_item() || (item->const_item() && !item->with_subquery() && item->can_eval_in_optimize());
}

void Key_conditions::add_comparison(Item_func *function)
{
  Item **arguments= function->arguments();
  if (function->functype() == Item_func::BETWEEN)
  {
    Field *field= field_of(arguments[0]);
    if (!field || static_cast<Item_func_opt_neg *>(function)->negated || !is_plain_constant(arguments[1]) ||
        !is_plain_constant(arguments[2]))
      return;
    Bound *bound= bound_of(field);
    bound->least= arguments[1];
    bound->most= arguments[2];
    return;
  }
  const bool is_swapped= is_plain_constant(arguments[0]);
  Field *field= field_of(arguments[is_swapped ? 1 : 0]);
  Item *constant= arguments[is_swapped ? 0 : 1];
  if (!field || !is_plain_constant(constant))
    return;
  Bound *bound= bound_of(field);
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
    bound->is_equal= true;
    bound->least= bound->most= constant;
    return;
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
    (is_swapped ? bound->least : bound->most)= constant;
    return;
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
    (is_swapped ? bound->most : bound->least)= constant;
    return;
  default:
    return;
  }
}

void Key_conditions::add(Item *item)
{
  if (item->type() == Item::COND_ITEM && static_cast<Item_cond *>(item)->functype() == Item_func::COND_AND_FUNC)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    for (Item *part; (part= parts++); )
      add(part);
    return;
  }
  if (item->type() != Item::FUNC_ITEM)
    return;
  Item_func *function= static_cast<Item_func *>(item);
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
  case Item_func::BETWEEN:
    add_comparison(function);
    return;
  default:
    return;
  }
}

/* The constant as a part of the key has it, in the table's record. */
bool Key_conditions::store(Item *item, Field *field)
{
  Silent_evaluation evaluation(m_thd);
  /* Compared as moments or not, they are no bounds of the key. */
  if ((item->cmp_type() == TIME_RESULT) != (field->cmp_type() == TIME_RESULT) && item->cmp_type() != STRING_RESULT)
    return false;
  MY_BITMAP *old= dbug_tmp_use_all_columns(m_table, &m_table->write_set);
  const bool is_stored= !item->save_in_field_no_warnings(field, true) && !item->null_value;
  dbug_tmp_restore_column_map(&m_table->write_set, old);
  return is_stored && evaluation.is_silent();
}

/* One end of the range: the parts that are equal, whose values the record has, and the next one if it is bounded there. False: the key
   cannot have the bound. */
bool Key_conditions::make_end(const KEY *key, uint equal_parts, Item *bound, std::vector<uchar> *bytes, key_range *end)
{
  const uint parts= equal_parts + (bound != nullptr);
  if (bound && !store(bound, key->key_part[equal_parts].field))
    return false;
  uint size= 0;
  for (uint i= 0; i < parts; i++)
    size+= key->key_part[i].store_length;
  bytes->resize(size + 1);
  key_copy(bytes->data(), m_table->record[0], const_cast<KEY *>(key), size);
  end->key= bytes->data();
  end->length= size;
  end->keypart_map= make_prev_keypart_map(parts);
  return true;
}

double Key_conditions::rows_of(uint number)
{
  const double all= double(m_table->file->stats.records);
  const KEY *key= &m_table->key_info[number];
  uint equal_parts= 0;
  const Bound *next= nullptr;
  for (; equal_parts < key->user_defined_key_parts; equal_parts++)
  {
    Field *field= key->key_part[equal_parts].field;
    const auto bound= std::find_if(m_bounds.begin(), m_bounds.end(),
                                   [field](const Bound &one) { return one.field->field_index == field->field_index; });
    next= bound == m_bounds.end() ? nullptr : &*bound;
    if (!next || !next->is_equal || !store(next->least, field))
      break;
  }
  if (equal_parts == key->user_defined_key_parts)
  {
    if (key->flags & HA_NOSAME)
      return 1;
    next= nullptr;
  }
  Item *least= next && !next->is_equal ? next->least : nullptr, *most= next && !next->is_equal ? next->most : nullptr;
  if (!equal_parts && !least && !most)
    return all;
  if (next && (key->key_part[equal_parts].key_part_flag & HA_REVERSE_SORT))
    std::swap(least, most);
  std::vector<uchar> least_bytes, most_bytes;
  key_range from= {}, to= {};
  from.flag= HA_READ_KEY_OR_NEXT;
  to.flag= HA_READ_AFTER_KEY;
  const bool has_from= equal_parts || least, has_to= equal_parts || most;
  if ((has_from && !make_end(key, equal_parts, least, &least_bytes, &from)) ||
      (has_to && !make_end(key, equal_parts, most, &most_bytes, &to)))
    return all;
  page_range pages;
  const ha_rows rows= m_table->file->records_in_range(number, has_from ? &from : nullptr, has_to ? &to : nullptr, &pages);
  return rows == HA_POS_ERROR ? all : std::min(double(rows), all);
}

double Key_conditions::rows()
{
  double best= double(m_table->file->stats.records);
  if (m_bounds.empty())
    return best;
  for (uint i= 0; i < m_table->s->keys; i++)
    best= std::min(best, rows_of(i));
  return best;
}

} // namespace

/* The rows of all tables are gone over; the server may go to a few by a key. Without a translator, of the tables of the
   SELECT alone, before anything costs time. */
bool is_select_better_done_by_keys(THD *thd, SELECT_LEX *select, const Select_translator *translator)
{
  double engine= 0, all= 0;
  if (translator)
  {
    for (const TABLE *table : translator->tables)
    {
      /* The server asks it for tables of derived ones later: after a load a table would have no rows so far. */
      table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
      const double rows= double(table->file->stats.records);
      engine+= ENGINE_TABLE_NS + rows * (ENGINE_ROW_NS + ENGINE_COLUMN_NS * translator->columns / double(translator->tables.size()));
      all+= rows;
    }
    return all * SERVER_SCAN_NS * double(translator->tables.size()) < engine;
  }
  double best= -1;
  uint count= 0;
  List_iterator<TABLE_LIST> tables(select->leaf_tables);
  for (TABLE_LIST *list; (list= tables++); count++)
  {
    TABLE *table= list->table;
    if (list->is_view_or_derived() || !table || table->file->partition_ht() != hton)
      continue;
    table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
    const double rows= double(table->file->stats.records);
    engine+= ENGINE_TABLE_NS + rows * (ENGINE_ROW_NS + 2 * ENGINE_COLUMN_NS);
    all+= rows;
    Key_conditions conditions(thd, table);
    if (select->join->conds)
      conditions.add(select->join->conds);
    if (list->on_expr && !list->outer_join)
      conditions.add(list->on_expr);
    const double of_key= conditions.rows();
    if (of_key < rows && (best < 0 || of_key < best) && !list->outer_join)
      best= of_key;
  }
  /* Queries within it may be over all rows of large tables; the translator has them. */
  if (best >= 0 && best * SERVER_LOOKUP_NS * std::pow(ROWS_EACH, double(count - 1)) < engine)
    return true;
  return false;
}

} // namespace pando
