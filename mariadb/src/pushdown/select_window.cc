/* Window functions of SELECTs that the engine answers: see crates/analytic/src/window.rs. */
#include "select_translate.h"
#include "sql_window.h"

namespace pando {

using B= Select_bytes;

static bool function_of(const Item_sum *sum, PandoWindow *function)
{
  switch (sum->sum_func())
  {
  case Item_sum::ROW_NUMBER_FUNC:   *function= PANDO_WINDOW_ROW_NUMBER; return true;
  case Item_sum::RANK_FUNC:         *function= PANDO_WINDOW_RANK; return true;
  case Item_sum::DENSE_RANK_FUNC:   *function= PANDO_WINDOW_DENSE_RANK; return true;
  case Item_sum::NTILE_FUNC:        *function= PANDO_WINDOW_TILE; return true;
  case Item_sum::PERCENT_RANK_FUNC: *function= PANDO_WINDOW_PERCENT_RANK; return true;
  case Item_sum::CUME_DIST_FUNC:    *function= PANDO_WINDOW_DISTRIBUTION; return true;
  case Item_sum::LAG_FUNC:          *function= PANDO_WINDOW_LAG; return true;
  case Item_sum::LEAD_FUNC:         *function= PANDO_WINDOW_LEAD; return true;
  case Item_sum::FIRST_VALUE_FUNC:  *function= PANDO_WINDOW_FIRST; return true;
  case Item_sum::LAST_VALUE_FUNC:   *function= PANDO_WINDOW_LAST; return true;
  case Item_sum::NTH_VALUE_FUNC:    *function= PANDO_WINDOW_NTH; return true;
  case Item_sum::COUNT_FUNC:        *function= PANDO_WINDOW_COUNT; return true;
  case Item_sum::SUM_FUNC:          *function= PANDO_WINDOW_SUM; return true;
  case Item_sum::AVG_FUNC:          *function= PANDO_WINDOW_MEAN; return true;
  case Item_sum::MIN_FUNC:          *function= PANDO_WINDOW_MIN; return true;
  case Item_sum::MAX_FUNC:          *function= PANDO_WINDOW_MAX; return true;
  default:                          return false;
  }
}

/* What is sorted by; partitions need no direction. */
bool Select_translator::put_sorted_by(SQL_I_List<ORDER> *list, bool with_direction, std::string *to)
{
  B::small(to, list->elements);
  const ORDER *one= list->first;
  for (uint i= 0; i < list->elements; i++, one= one->next)
  {
    Item *item= *one->item;
    Said said;
    if (!expression(item, &said) || !makes_groups(item))
      return false;
    hold_group(item, &said);
    if (said.is_exact)
      return refuse("the order of a window");
    if (!sort_by_all(item, true, &said))
      return false;
    *to+= said.bytes;
    if (with_direction)
      B::byte(to, one->direction == ORDER::ORDER_DESC);
  }
  return true;
}

/* The number of a bound: of rows, or, of a range, in the digits of what the order is by. */
static bool put_bound(Window_frame_bound *bound, bool is_range, const Item *by, std::string *to)
{
  if (bound->precedence_type == Window_frame_bound::CURRENT || bound->is_unbounded())
  {
    B::byte(to, bound->precedence_type == Window_frame_bound::CURRENT ? PANDO_BOUND_TAG_CURRENT : PANDO_BOUND_TAG_UNBOUNDED);
    return true;
  }
  Item *offset= bound->offset;
  my_decimal buffer;
  __int128 value= 0;
  uint scale= 0;
  if (!offset->basic_const_item() || (offset->result_type() != INT_RESULT && offset->result_type() != DECIMAL_RESULT))
    return false;
  const my_decimal *decimal= offset->val_decimal(&buffer);
  if (!decimal || offset->null_value || !digits_of(decimal, &value, &scale) || value < 0)
    return false;
  const uint wanted= is_range && by->result_type() == DECIMAL_RESULT ? by->decimals : 0;
  if (scale > wanted || (is_range && (by->unsigned_flag || by->result_type() == REAL_RESULT)))
    return false;
  for (; scale < wanted; scale++)
    if (__builtin_mul_overflow(value, __int128(10), &value))
      return false;
  B::byte(to, bound->precedence_type == Window_frame_bound::PRECEDING ? PANDO_BOUND_TAG_PRECEDING : PANDO_BOUND_TAG_FOLLOWING);
  B::number(to, value);
  return true;
}

bool Select_translator::put_frame(Window_spec *spec, std::string *to)
{
  Window_frame *frame= spec->window_frame;
  if (!frame)
  {
    /* Without an order all rows are peers. */
    B::byte(to, true);
    B::byte(to, PANDO_BOUND_TAG_UNBOUNDED);
    B::byte(to, PANDO_BOUND_TAG_CURRENT);
    return true;
  }
  const bool is_range= frame->units == Window_frame::UNITS_RANGE;
  const Item *by= spec->order_list->elements == 1 ? *spec->order_list->first->item : nullptr;
  B::byte(to, is_range);
  if (frame->exclusion != Window_frame::EXCL_NONE || (is_range && !by))
    return refuse("the frame of a window");
  return (put_bound(frame->top_bound, is_range, by, to) && put_bound(frame->bottom_bound, is_range, by, to)) ||
         refuse("the frame of a window");
}

bool Select_translator::put_window(Item_window_func *item, PandoWindow function, const Value_kind &kind, longlong number,
                                   const Said *of, std::string *to)
{
  Window_spec *spec= item->window_spec;
  B::byte(to, PANDO_TAG_WINDOW);
  B::byte(to, function);
  B::kind(to, kind);
  B::number(to, number);
  B::byte(to, of != nullptr);
  if (of)
    *to+= of->bytes;
  return put_sorted_by(spec->partition_list, false, to) && put_sorted_by(spec->order_list, true, to) && put_frame(spec, to);
}

/* Whether it stands in the select list alone. */
static bool is_shown_alone(SELECT_LEX *select, const Item *item)
{
  List_iterator_fast<Item> items(select->item_list);
  for (Item *one; (one= items++); )
    if (one->real_item() == item)
      return true;
  return false;
}

/* Whether what the engine does not compute with comes out of the function as it went in: the server keeps it as its own type, too. */
static bool stays_in_window(Item_sum *sum, Item *argument, const Value_kind &kind, bool is_extreme)
{
  const Item *column= argument->real_item();
  if (column->type() != Item::FIELD_ITEM || sum->type_handler() != argument->type_handler())
    return false;
  return kind.tag == Value_kind::STAMP || (kind.tag == Value_kind::RAW && (!is_extreme || has_order_of_bytes(column)));
}

bool Select_translator::text_of_member(Item *argument, Said *of)
{
  if (argument->real_item()->type() != Item::FIELD_ITEM)
    return refuse("a window function of a type that is kept otherwise");
  *of= Said();
  return served_as(argument, Value_kind{Value_kind::TEXT, collation_number(argument->collation.collation)}, false, false, of);
}

bool Select_translator::window(Item_window_func *item, Said *said)
{
  Item_sum *sum= item->window_func();
  const bool is_grouped= m_select->join->group_list;
  PandoWindow function= PANDO_WINDOW_ROW_NUMBER;
  /* It is kept in a table with its digits before anything else is done with it. */
  if (item->result_type() == REAL_RESULT && item->decimals < NOT_FIXED_DEC && !is_shown_alone(m_select, item))
    return refuse("a DOUBLE that is kept with fewer digits");
  if (!function_of(sum, &function) || sum->has_with_distinct() || !item->window_spec)
    return refuse("a window function");
  /* All rows are one group then, which there is even of no rows. */
  if (!is_grouped && (m_select->agg_func_used() || m_select->join->tmp_table_param.sum_func_count))
    return refuse("a window over one group");
  longlong number= 0;
  if (function == PANDO_WINDOW_LAG || function == PANDO_WINDOW_LEAD || function == PANDO_WINDOW_NTH || function == PANDO_WINDOW_TILE)
  {
    Item *of_number= sum->get_arg(function == PANDO_WINDOW_TILE ? 0 : 1);
    if (!of_number->basic_const_item() || of_number->result_type() != INT_RESULT || (number= of_number->val_int()) < 0 ||
        ((function == PANDO_WINDOW_NTH || function == PANDO_WINDOW_TILE) && !number))
      return refuse("the number of a window function");
  }
  const bool has_argument= function >= PANDO_WINDOW_LAG;
  Said of;
  if (has_argument && !(function == PANDO_WINDOW_COUNT && is_some_constant(sum->get_arg(0))))
  {
    Item *argument= sum->get_arg(0);
    if (!expression(argument, &of))
      return false;
    const bool is_moved= function != PANDO_WINDOW_COUNT && function != PANDO_WINDOW_SUM && function != PANDO_WINDOW_MEAN;
    if (function != PANDO_WINDOW_COUNT && (of.is_exact || argument->field_type() == MYSQL_TYPE_YEAR || has_zerofill(argument)))
      return refuse("a window function of quotients");
    const bool is_extreme= function == PANDO_WINDOW_MIN || function == PANDO_WINDOW_MAX;
    /* The server gives the text of a member on. */
    const bool is_member= of.kind.tag == Value_kind::ENUM || of.kind.tag == Value_kind::SET;
    if (is_moved && !is_extreme && is_member && !text_of_member(argument, &of))
      return false;
    if (is_moved && ((of.kind.is_opaque() && !stays_in_window(sum, argument, of.kind, is_extreme)) || of.is_mixed || of.mixes_zero))
      return refuse("a window function of a type that is kept otherwise");
    if (is_moved && of.kind.tag == Value_kind::TEXT && !my_charset_same(argument->collation.collation, item->collation.collation))
      return refuse("a window function of a character set");
  }
  else if (function == PANDO_WINDOW_COUNT)
    function= PANDO_WINDOW_ROWS;
  Said *const argument= of.bytes.empty() ? nullptr : &of;
  if (function < PANDO_WINDOW_LAG || function == PANDO_WINDOW_ROWS || function == PANDO_WINDOW_COUNT)
  {
    const bool is_share= function == PANDO_WINDOW_PERCENT_RANK || function == PANDO_WINDOW_DISTRIBUTION;
    said->kind= Value_kind{is_share ? Value_kind::REAL : Value_kind::SIGNED, 0};
    return put_window(item, function, said->kind, number, argument, &said->bytes);
  }
  if (function == PANDO_WINDOW_SUM && item->result_type() == REAL_RESULT && !as_real(sum->get_arg(0), &of))
    return false;
  said->kind= of.kind;
  said->digits= of.digits;
  if (function != PANDO_WINDOW_SUM && function != PANDO_WINDOW_MEAN)
    return put_window(item, function, said->kind, number, argument, &said->bytes);
  if (of.kind.is_integer())
    said->kind= Value_kind{Value_kind::DECIMAL, 0};
  if (said->kind.tag == Value_kind::REAL)
    return put_window(item, function, said->kind, number, argument, &said->bytes);
  if (said->kind.tag != Value_kind::DECIMAL || !is_exact_number(sum->get_arg(0)) || of.is_mixed)
    return refuse("a window function of something else");
  said->digits= of.digits + 19;
  if (function == PANDO_WINDOW_SUM)
    return put_window(item, PANDO_WINDOW_SUM, said->kind, number, argument, &said->bytes);
  /* With how many digits an expression gets it depends on where the server computes it. */
  if (!is_shown_alone(m_select, item))
    return refuse("an average inside of an expression");
  if (!has_digits_of_type(sum->get_arg(0), of))
    return refuse("an average that its type does not hold");
  Said total, count, average;
  total.kind= said->kind;
  count.kind= Value_kind{Value_kind::SIGNED, 0};
  if (!put_window(item, PANDO_WINDOW_SUM, total.kind, number, argument, &total.bytes) ||
      !put_window(item, PANDO_WINDOW_COUNT, count.kind, number, argument, &count.bytes) ||
      !divide(total, count, static_cast<Item_sum_avg *>(sum)->prec_increment, &average))
    return false;
  convert(&average, Value_kind{Value_kind::DECIMAL, item->decimals});
  average.is_exact= false;
  *said= average;
  return true;
}

} // namespace pando
