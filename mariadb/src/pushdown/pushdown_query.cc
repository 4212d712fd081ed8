/* Which queries the engine answers itself, and how they are said in its words: only what it computes exactly as the
   server would. What is not named here, and in the files of the columns, constants, numbers and conditions, is not taken. */
#include "pushdown.h"
#include "sql_select.h"

namespace pando {

/* NULLIF of a group and an aggregate has the group twice, for which the server's temporary table has another column. */
static bool has_null_if_of_group(const Item *item)
{
  if (item->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<const Item_func *>(item);
  /* An aggregate stands there in a cache. */
  const Item *first= function->argument_count() ? function->arguments()[0] : nullptr;
  if (!strcasecmp(function->func_name(), "nullif") && first->type() != Item::CACHE_ITEM && !first->with_sum_func())
    return true;
  for (uint i= 0; i < function->argument_count(); i++)
    if (has_null_if_of_group(function->arguments()[i]))
      return true;
  return false;
}


/* LIKE is equal to NOT LIKE, to the server. */
static bool is_written_alike(Item *item, Item *other)
{
  String text, of_other;
  item->print(&text, QT_ORDINARY);
  other->print(&of_other, QT_ORDINARY);
  return text.length() == of_other.length() && !memcmp(text.ptr(), of_other.ptr(), text.length());
}

bool is_same(Item *item, Item *other)
{
  item= item->real_item();
  other= other->real_item();
  if (item == other)
    return true;
  const bool is_function= item->type() == Item::FUNC_ITEM || item->type() == Item::COND_ITEM;
  return item->type() == other->type() && item->eq(other, true) && (!is_function || is_written_alike(item, other));
}

bool Translator::translate(const ::Query *query, const JOIN *join)
{
  if (!add_where(query->where))
    return false;
  if (!query->group_by && !join->implicit_grouping)
    return false;
  return add_groups(query) && add_outputs(query) && add_order(query);
}

/* Expressions that make groups. Not those of DECIMALs: where a sum with a DECIMAL is NULL, the server has been seen to put
   the row into the group before it. */
static bool makes_groups(Item *item)
{
  return is_exact_number(item) && item->result_type() == INT_RESULT;
}

bool Translator::add_groups(const ::Query *query)
{
  for (ORDER *group= query->group_by; group; group= group->next)
  {
    Item *item= *group->item;
    Group made= {item, column_of(item), 0};
    int slot= -1;
    if (made.field)
      slot= groups_by_filling(made.field) ? -1 : column(made.field, false);
    else
    {
      const Number number= makes_groups(item->real_item()) ? number_of(item) : Number();
      slot= number.slot;
      made.scale= number.scale;
    }
    if (slot < 0)
      return false;
    m_groups.push_back(made);
    pando_query_group(m_query, uint32_t(slot));
  }
  return true;
}

/* Whether a subquery in HAVING may read columns that make no groups, from one of the group's rows: any but those that
   depend on nothing outside. */
static bool reads_rows_of_groups(Item *item, uint depth= DEPTH_MAX)
{
  if (!item->with_subquery())
    return false;
  /* It may. */
  if (!depth--)
    return true;
  if (item->type() == Item::SUBSELECT_ITEM)
  {
    Item_subselect *subquery= static_cast<Item_subselect *>(item);
    return subquery->substype() != Item_subselect::SINGLEROW_SUBS || subquery->is_correlated ||
           subquery->used_tables() != 0;
  }
  if (item->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> items(*static_cast<Item_cond *>(item)->argument_list());
    for (Item *part; (part= items++); )
      if (reads_rows_of_groups(part, depth))
        return true;
    return false;
  }
  if (item->type() != Item::FUNC_ITEM)
    return true;
  Item_func *function= static_cast<Item_func *>(item);
  for (uint i= 0; i < function->argument_count(); i++)
    if (reads_rows_of_groups(function->arguments()[i], depth))
      return true;
  return false;
}

/* The items of the temporary table, as Create_tmp_table::add_fields takes them. */
bool Translator::add_outputs(const ::Query *query)
{
  List_iterator_fast<Item> items(*query->select);
  int hidden= query->n_aux;
  bool has_average= false;
  for (Item *item; (item= items++); hidden--)
  {
    if (item->type() == Item::SUM_FUNC_ITEM)
    {
      Item_sum *sum= static_cast<Item_sum *>(item);
      /* Inside of expressions and HAVING the server computes with more digits than it shows. */
      if (sum->sum_func() == Item_sum::AVG_FUNC)
      {
        if (hidden > 0)
          return false;
        has_average= true;
      }
      if (!add_sum(sum))
        return false;
      continue;
    }
    if (item->with_sum_func())
    {
      /* Computed from the others when rows are sent. */
      if (item->type() != Item::FUNC_ITEM || item->with_subquery() || item->with_window_func() || hidden > 0 || has_null_if_of_group(item))
        return false;
      /* Without any column in it the server wants it stored. */
      if (!(item->used_tables() & ~OUTER_REF_TABLE_BIT))
        return false;
      continue;
    }
    if (item->const_item())
    {
      if (hidden > 0 || !is_constant(item))
        return false;
      continue;
    }
    if (!add_value(item))
      return false;
  }
  if (!query->having)
    return true;
  return !has_average && !reads_rows_of_groups(query->having);
}

/* A column, or an expression, that makes groups. */
bool Translator::add_value(Item *item)
{
  Field *field= column_of(item);
  for (uint place= 0; place < m_groups.size(); place++)
    if (field ? m_groups[place].field == field : !m_groups[place].field && is_same(item, m_groups[place].item))
    {
      outputs.push_back(Output{item, Output::VALUE, place, field, m_groups[place].scale});
      return true;
    }
  return false;
}

bool Translator::add_sum(Item_sum *item)
{
  if (item->const_item() || item->get_arg_count() != 1)
    return false;
  const uint cell= uint(m_groups.size()) + m_aggregates++;
  switch (item->sum_func())
  {
  case Item_sum::COUNT_FUNC:          return add_count(item, cell);
  case Item_sum::COUNT_DISTINCT_FUNC: return add_distinct(item, cell);
  case Item_sum::MIN_FUNC:
  case Item_sum::MAX_FUNC:            return add_extreme(item, cell);
  case Item_sum::SUM_FUNC:
  case Item_sum::AVG_FUNC:            return add_total(item, cell);
  default:                            return false;
  }
}

bool Translator::add_count(Item_sum *item, uint cell)
{
  Item *argument= item->get_arg(0);
  outputs.push_back(Output{item, Output::COUNT, cell, nullptr, 0});
  if (Field *field= column_of(argument))
  {
    const int slot= column(field, true);
    pando_query_aggregate(m_query, PANDO_AGGREGATE_COUNT, uint32_t(slot));
    return slot >= 0;
  }
  if (is_constant(argument))
  {
    Silent_evaluation evaluation(m_thd);
    if (argument->is_null() || !evaluation.is_silent())
      return false;
    pando_query_aggregate(m_query, PANDO_AGGREGATE_ROWS, 0);
    return true;
  }
  const Number number= number_of(argument);
  pando_query_aggregate(m_query, PANDO_AGGREGATE_COUNT, uint32_t(number.slot));
  return number.slot >= 0;
}

bool Translator::add_distinct(Item_sum *item, uint cell)
{
  Item *argument= item->get_arg(0);
  Field *field= column_of(argument);
  const int slot= field ? column(field, false) : is_constant(argument) ? -1 : number_of(argument).slot;
  if (slot < 0 || (field && groups_by_filling(field)))
    return false;
  outputs.push_back(Output{item, Output::COUNT, cell, nullptr, 0});
  pando_query_aggregate(m_query, PANDO_AGGREGATE_DISTINCT, uint32_t(slot));
  return true;
}

bool Translator::add_extreme(Item_sum *item, uint cell)
{
  Field *field= column_of(item->get_arg(0));
  PandoQueryColumn unused= {};
  if (!field)
    return false;
  const Column_class kind= class_of(field, &unused);
  /* Whether zeros fill it depends on the server's plan; members of an ENUM are compared as texts. */
  if ((field->flags & ZEROFILL_FLAG && field->real_type() != MYSQL_TYPE_YEAR) || kind == Column_class::ENUM ||
      kind == Column_class::OTHER)
    return false;
  const int slot= column(field, false);
  if (slot < 0)
    return false;
  outputs.push_back(Output{item, Output::VALUE, cell, field, 0});
  pando_query_aggregate(m_query, item->sum_func() == Item_sum::MIN_FUNC ? PANDO_AGGREGATE_MIN : PANDO_AGGREGATE_MAX,
                        uint32_t(slot));
  return true;
}

bool Translator::add_total(Item_sum *item, uint cell)
{
  Item *argument= item->get_arg(0);
  const bool is_average= item->sum_func() == Item_sum::AVG_FUNC;
  /* How many digits an average of a DECIMAL expression has depends on which values it met. */
  if (item->result_type() != DECIMAL_RESULT || is_constant(argument->real_item()) ||
      (is_average && !column_of(argument) && argument->result_type() != INT_RESULT))
    return false;
  const Number number= is_exact_number(argument) ? number_of(argument) : Number();
  if (number.slot < 0 || (argument->decimals != number.scale && argument->result_type() == DECIMAL_RESULT))
    return false;
  outputs.push_back(Output{item, is_average ? Output::AVERAGE : Output::SUM, cell, nullptr, number.scale});
  pando_query_aggregate(m_query, PANDO_AGGREGATE_SUM, uint32_t(number.slot));
  return true;
}

/* The order of the answer: the server does not sort what it is given. */
bool Translator::add_order(const ::Query *query)
{
  if (!query->group_by)
    return true; /* one row */
  for (ORDER *part= query->order_by; part; part= part->next)
  {
    Item *item= *part->item;
    Field *field= column_of(item);
    uint place= 0;
    for (; place < outputs.size(); place++)
    {
      const Output &output= outputs[place];
      const bool is_group= output.kind == Output::VALUE && output.cell < m_groups.size();
      if (output.item == item || (is_group && (field ? column_of(output.item) == field : is_same(item, output.item))))
        break;
    }
    if (place == outputs.size())
      return false;
    order.push_back(Order_part{place, part->direction == ORDER::ORDER_DESC});
  }
  return true;
}

} // namespace pando
