/* Aggregates and subqueries that stand in expressions of a SELECT of any shape. */
#include "select_translate.h"

namespace pando {

using B= Select_bytes;

/* Whether a column of the answer is this aggregate alone. */
static bool is_column_of_answer(SELECT_LEX *select, const Item_sum *sum)
{
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
    if (item->real_item() == sum)
      return true;
  return false;
}

/* Whether the least of zero-filled numbers is shown so is a matter of the temporary table that groups may be in; without groups, and in
   a derived table, there is no doubt. */
static bool is_filling_open(const SELECT_LEX *select)
{
  const st_select_lex_unit *unit= const_cast<SELECT_LEX *>(select)->master_unit();
  return !unit->derived && (unit->outer_select() || select->group_list.elements);
}

/* Whether the bytes of a column are in the order of its values. */
static bool has_order_of_bytes(Item *item)
{
  if (item->type() != Item::FIELD_ITEM)
    return false;
  const Field *field= static_cast<const Item_field *>(item)->field;
  return field->real_type() == MYSQL_TYPE_NEWDECIMAL ||
         (field->real_type() == MYSQL_TYPE_STRING && field->charset() == &my_charset_bin &&
          field->type_handler()->is_traditional_scalar_type());
}

bool is_filled_extreme(Item *item)
{
  item= item->real_item();
  if (item->type() != Item::SUM_FUNC_ITEM)
    return false;
  const Item_sum *sum= static_cast<const Item_sum *>(item);
  if (sum->sum_func() != Item_sum::MIN_FUNC && sum->sum_func() != Item_sum::MAX_FUNC)
    return false;
  Item *of= sum->get_arg(0)->real_item();
  return of->type() == Item::FIELD_ITEM && (static_cast<const Item_field *>(of)->field->flags & ZEROFILL_FLAG);
}

bool Select_translator::aggregate(Item_sum *sum, Said *said)
{
  if (sum->aggr_sel != m_select || sum->get_arg_count() > 1)
    return refuse("an aggregate of another query");
  uint function= 0;
  switch (sum->sum_func())
  {
  case Item_sum::COUNT_FUNC:          function= 1; break;
  case Item_sum::COUNT_DISTINCT_FUNC: function= 5; break;
  case Item_sum::SUM_FUNC:            function= 2; break;
  case Item_sum::SUM_DISTINCT_FUNC:   function= 6; break;
  case Item_sum::AVG_FUNC:            function= 2; break;
  case Item_sum::MIN_FUNC:            function= 3; break;
  case Item_sum::MAX_FUNC:            function= 4; break;
  default:                            return refuse("an aggregate");
  }
  Item *argument= sum->get_arg(0);
  const bool is_count= function == 1 || function == 5;
  const Item *counted= argument->real_item();
  if (function == 5 && counted->type() == Item::FIELD_ITEM && groups_by_filling(static_cast<const Item_field *>(counted)->field))
    return refuse("a CHAR that is counted by its filling");
  Silent_evaluation evaluation(m_thd);
  if (function == 1 && is_constant(argument) && !argument->is_null() && evaluation.is_silent())
  {
    B::byte(&said->bytes, 16);
    B::byte(&said->bytes, 0);
    said->kind= Value_kind{Value_kind::SIGNED, 0};
    B::kind(&said->bytes, said->kind);
    B::byte(&said->bytes, 0);
    return true;
  }
  Said of;
  if (!expression(argument, &of) || (sum->has_with_distinct() && !makes_groups(argument)))
    return false;
  Value_kind kind= of.kind;
  if (is_count)
    kind= Value_kind{Value_kind::SIGNED, 0};
  else if (function == 2 || function == 6)
  {
    if (kind.is_integer())
      kind= Value_kind{Value_kind::DECIMAL, 0};
    if ((kind.tag != Value_kind::DECIMAL && kind.tag != Value_kind::REAL) || of.is_exact ||
        (kind.tag == Value_kind::DECIMAL && !is_exact_number(argument)) || (kind.tag == Value_kind::REAL && function == 6))
      return refuse("a sum of something else");
    if (argument->field_type() == MYSQL_TYPE_YEAR)
      return refuse("a sum of years");
  }
  else if (is_filled_extreme(sum) && is_filling_open(m_select))
    return refuse("an extreme of zero-filled numbers");
  else if (kind.is_opaque() && kind.tag != Value_kind::STAMP && !(kind.tag == Value_kind::RAW && has_order_of_bytes(argument->real_item())))
    return refuse("an extreme of a type that is compared otherwise");
  else if (of.is_exact || of.is_mixed || of.mixes_zero || argument->field_type() == MYSQL_TYPE_YEAR)
    return refuse("an extreme of quotients");
  std::string told;
  const auto put= [&told, &of](uint number, const Value_kind &of_kind) {
    B::byte(&told, 16);
    B::byte(&told, number);
    B::kind(&told, of_kind);
    B::byte(&told, 1);
    told+= of.bytes;
  };
  put(function, kind);
  said->kind= kind;
  said->is_mixed= of.is_mixed;
  said->digits= is_count ? 19 : function == 2 || function == 6 ? of.digits + 19 : of.digits;
  if (sum->sum_func() != Item_sum::AVG_FUNC)
  {
    said->bytes= told;
    return true;
  }
  if (kind.tag == Value_kind::REAL)
    return refuse("an average of DOUBLEs");
  /* Where the server keeps groups in a temporary table, an expression gets the average with the table's digits, else with all. */
  const bool is_inner= m_select->group_list.elements && !is_column_of_answer(m_select, sum);
  m_has_inner_average|= is_inner;
  Said total, count;
  total.bytes.swap(told);
  total.kind= kind;
  /* Of digits that differ, fewer than make another word of the quotient. */
  total.is_mixed= of.is_mixed && kind.of > 5;
  put(1, Value_kind{Value_kind::SIGNED, 0});
  count.bytes.swap(told);
  count.kind= Value_kind{Value_kind::SIGNED, 0};
  said->is_mixed= false;
  if (!divide(total, count, static_cast<Item_sum_avg *>(sum)->prec_increment, said))
    return false;
  if (is_inner && m_rounds_averages && said->kind.of > sum->decimals)
  {
    convert(said, Value_kind{Value_kind::DECIMAL, sum->decimals});
    said->is_exact= false;
  }
  return true;
}

bool Select_translator::subquery(Item_subselect *item, Said *said)
{
  if (item->substype() == Item_subselect::EXISTS_SUBS || item->substype() == Item_subselect::IN_SUBS)
    return condition(item, said);
  if (item->substype() != Item_subselect::SINGLEROW_SUBS || item->cols() != 1)
    return refuse("a subquery");
  std::vector<uint> slots;
  std::vector<Value_kind> kinds;
  std::string bytes;
  if (!unit(item->unit, Use::SCALAR, &bytes, &slots, &kinds) || kinds.size() != 1)
    return false;
  B::byte(&said->bytes, 17);
  B::kind(&said->bytes, kinds[0]);
  said->bytes+= bytes;
  said->kind= kinds[0];
  said->is_exact= kinds[0].tag == Value_kind::DECIMAL && kinds[0].of > item->decimals;
  return true;
}

} // namespace pando
