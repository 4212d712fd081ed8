/* Quotients of SELECTs of any shape, and what keeps a divisor from being zero. */
#include "select_silence.h"
#include "select_translate.h"

#include <algorithm>
#include <cmath>

namespace pando {

using B= Select_bytes;

/* Digits behind the point that the engine computes with. */
static const uint SCALE_MAX= 30;

static const uint DIGITS_IN_WORD= 9;

static uint whole_words(uint digits)
{
  return (digits + DIGITS_IN_WORD - 1) / DIGITS_IN_WORD * DIGITS_IN_WORD;
}

/* The server divides to whole words of nine digits, and cuts there; what is shown is rounded later. */
bool Select_translator::divide(const Said &first, const Said &second, uint increment, Said *said)
{
  if (!first.kind.is_number() || !second.kind.is_number())
    return refuse("a division of other things");
  /* How many digits there are depends on the values. */
  if (first.is_mixed || second.is_mixed)
    return refuse("a division of mixed digits");
  const uint of_first= whole_words(first.kind.scale()), of_second= whole_words(second.kind.scale());
  const int more= int(increment) - int(of_first - first.kind.scale() + of_second - second.kind.scale());
  const uint scale= whole_words(of_first + of_second + uint(std::max(more, 0)));
  if (scale > SCALE_MAX)
    return refuse("digits of a division");
  said->kind= Value_kind{Value_kind::DECIMAL, scale};
  said->is_exact= true;
  said->digits= 40;
  B::byte(&said->bytes, PANDO_TAG_DIVIDE);
  B::small(&said->bytes, scale);
  said->bytes+= first.bytes + second.bytes;
  return true;
}

bool Select_translator::division(Item_func *function, Said *said)
{
  Said first, second;
  if (function->result_type() != DECIMAL_RESULT || !is_exact_number(function->arguments()[0]) ||
      !is_exact_number(function->arguments()[1]) || !expression(function->arguments()[0], &first) ||
      !expression(function->arguments()[1], &second))
    return refuse("a division");
  if (!has_digits_of_type(function->arguments()[0], first) || !has_digits_of_type(function->arguments()[1], second))
    return refuse("a quotient that its type does not hold");
  /* By zero it warns, in some modes. */
  const bool may_warn= m_thd->variables.sql_mode & MODE_ERROR_FOR_DIVISION_BY_ZERO;
  if (may_warn && m_is_condition && !is_constant(function->arguments()[1]))
    return refuse("a condition that can fail");
  Said quotient;
  if (!divide(first, second, static_cast<Item_func_div *>(function)->prec_increment, &quotient))
    return false;
  *said= quotient;
  if (may_warn)
    return true;
  said->bytes.clear();
  B::byte(&said->bytes, PANDO_TAG_CASE);
  B::kind(&said->bytes, said->kind);
  B::small(&said->bytes, 1);
  B::compare(&said->bytes, PANDO_COMPARISON_EQUAL);
  said->bytes+= second.bytes;
  put_number(&said->bytes, 0, Value_kind{Value_kind::SIGNED, 0});
  put_null(&said->bytes, said->kind);
  said->bytes+= quotient.bytes;
  return true;
}

static const double BIGINT_EXCESS= 0.3; /* 2^64 has 19.3 digits */

/* Whether an item has no more digits before the point than its type says. */
static bool holds_whole_digits(Item *item, uint depth= 0)
{
  static const uint DEPTH_MAX= 64;
  item= item->real_item();
  if (item->field_type() == MYSQL_TYPE_BIT || (item->cmp_type() != INT_RESULT && item->cmp_type() != DECIMAL_RESULT) || depth > DEPTH_MAX)
    return false;
  if (item->type() == Item::FIELD_ITEM)
  {
    /* BIGINT(3) has more digits than it says. */
    const Field *field= static_cast<Item_field *>(item)->field;
    return field->real_type() == MYSQL_TYPE_NEWDECIMAL || std::log10(2.0) * 8 * field->pack_length() <= item->decimal_int_part() + BIGINT_EXCESS;
  }
  if (item->type() != Item::FUNC_ITEM)
    return item->basic_const_item();
  const Item_func *function= static_cast<Item_func *>(item);
  if (is_one_of(function, {"unix_timestamp"}))
    return true;
  return is_one_of(function, {"+", "-", "*", "abs"}) &&
         std::all_of(function->arguments(), function->arguments() + function->argument_count(),
                     [depth](Item *one) { return holds_whole_digits(one, depth + 1); });
}

/* Whether a DIV has no more digits than the server thinks: `a DIV 0.001` has as many as `a` to the server. What is computed of the quotient takes the first one for a
   sign. With 21 it is as large as any integer may be. */
static bool holds_quotient(const Item_func *function, bool is_inner)
{
  static const uint DIGITS_OF_ALL= 21;
  Item **arguments= function->arguments();
  Item *const divisor= arguments[1]->real_item();
  for (uint i= 0; i < 2; i++)
    if (arguments[i]->cmp_type() != arguments[i]->result_type() || arguments[i]->cmp_type() == STRING_RESULT)
      return false;
  if (arguments[0]->decimal_int_part() >= DIGITS_OF_ALL)
    return true;
  const bool is_large= divisor->basic_const_item() && divisor->cmp_type() != REAL_RESULT && std::fabs(divisor->val_real()) >= (is_inner ? 10 : 1);
  return holds_whole_digits(arguments[0]) && (is_large || (!is_inner && divisor->cmp_type() == INT_RESULT));
}

/* Whether there is a DIV of something else than integers in it that has more digits than the server thinks. */
bool has_wide_quotient(Item *item, uint depth)
{
  static const uint DEPTH_MAX= 64;
  item= item->real_item();
  if (item->type() != Item::FUNC_ITEM || item->cols() != 1)
    return false;
  const Item_func *function= static_cast<Item_func *>(item);
  Item **arguments= function->arguments();
  const auto is_integer= [](const Item *one) { return one->cmp_type() == INT_RESULT; };
  if (is_one_of(function, {"DIV"}) && !std::all_of(arguments, arguments + 2, is_integer) && !holds_quotient(function, depth))
    return true;
  for (uint i= 0; i < function->argument_count(); i++)
    if (depth > DEPTH_MAX || has_wide_quotient(arguments[i], depth + 1))
      return true;
  return false;
}

/* What a condition may make constants of: the columns of all its parts but those that leave a range. */
static void add_equal_fields(Item *condition, List<Item_field> *fields, uint depth= 0)
{
  static const uint DEPTH_MAX= 64;
  if (condition->type() == Item::COND_ITEM && static_cast<Item_cond *>(condition)->functype() == Item_func::COND_AND_FUNC && depth < DEPTH_MAX)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(condition)->argument_list());
    for (Item *part; (part= parts++); )
      add_equal_fields(part, fields, depth + 1);
    return;
  }
  if (condition->type() == Item::FUNC_ITEM)
    switch (static_cast<Item_func *>(condition)->functype())
    {
    case Item_func::LT_FUNC:
    case Item_func::LE_FUNC:
    case Item_func::GT_FUNC:
    case Item_func::GE_FUNC:
    case Item_func::NE_FUNC:
    case Item_func::BETWEEN:
    case Item_func::ISNOTNULL_FUNC:
      return;
    default:
      break;
    }
  condition->walk(&Item::collect_item_field_processor, false, fields);
}

static bool has_field(List<Item_field> *fields, const Field *field)
{
  List_iterator_fast<Item_field> each(*fields);
  for (Item_field *one; (one= each++); )
    if (one->field == field)
      return true;
  return false;
}

/* Whether the server may find one row by a key before it makes a plan: then there is no temporary table. */
static bool may_be_one_row(const TABLE *table, List<Item_field> *equal)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY *key= table->key_info + i;
    bool is_bound= key->flags & HA_NOSAME;
    for (uint part= 0; is_bound && part < key->user_defined_key_parts; part++)
      is_bound= has_field(equal, table->field[key->key_part[part].fieldnr - 1]);
    if (is_bound)
      return true;
  }
  return false;
}

/* Whether rows never come sorted by it: a column of no key, or a function, that is no constant to the optimizer. */
static bool has_no_order(Item *group, TABLE *table, List<Item_field> *equal)
{
  Item *item= group->real_item();
  List<Item_field> fields;
  item->walk(&Item::collect_item_field_processor, false, &fields);
  List_iterator_fast<Item_field> each(fields);
  for (Item_field *one; (one= each++); )
    if (one->field->table != table || one->field->vcol_info || has_field(equal, one->field))
      return false;
  if (item->type() == Item::FIELD_ITEM)
    return static_cast<Item_field *>(item)->field->part_of_key.is_clear_all() && static_cast<Item_field *>(item)->field->key_start.is_clear_all();
  /* What is equal to a column, or to a query, is no function to the optimizer. */
  return item->type() == Item::FUNC_ITEM && fields.elements && !item->with_subquery() && item->type_handler() != &type_handler_bool &&
         !(item->used_tables() & PSEUDO_TABLE_BITS);
}

/* Whether the server counts groups in a temporary table (`end_update`), whatever its plan: of one table, whose keys have not the groups' order. A SELECT
   within another may be told more by it. */
bool Select_translator::counts_groups_in_table() const
{
  const st_select_lex_unit *unit= m_select->master_unit();
  const JOIN *join= m_select->join;
  TABLE *const table= m_select->leaf_tables.elements == 1 ? m_select->leaf_tables.head()->table : nullptr;
  const auto is_of= [table](const Source &source) { return source.table == table && source.number >= 0; };
  if (!table || std::none_of(m_sources.begin(), m_sources.end(), is_of) || unit->outer_select() || unit->derived || unit->item ||
      m_select->first_inner_unit() || m_select->olap != UNSPECIFIED_OLAP_TYPE || m_select->have_window_funcs() || !join->tmp_table_param.quick_group ||
      ((m_select->options | join->select_options) & (SELECT_BIG_RESULT | SELECT_DISTINCT | OPTION_BUFFER_RESULT)) || is_stored_by_statement(m_thd))
    return false;
  List<Item_field> equal;
  for (Item *condition : {join->conds, join->having ? join->having : join->tmp_having})
    if (condition)
      add_equal_fields(condition, &equal);
  if (may_be_one_row(table, &equal))
    return false;
  for (const ORDER *group= join->group_list; group; group= group->next)
    if (has_no_order(*group->item, table, &equal))
      return true;
  return false;
}

/* A quotient that is added up, and what has to be true of all. Without groups the server adds all its digits. Where it counts groups in a temporary table, the
   sum is rounded after each step (`Item_sum_sum::update_field`). That is the sum of what is rounded, if the sign is always the same, or none lies in the middle
   between two that are rounded to. */
bool Select_translator::quotient_addend(Item *argument, bool may_warn, Said *of, std::string *is_sure)
{
  if (!m_select->group_list.elements)
    return m_select->olap == UNSPECIFIED_OLAP_TYPE && !m_select->have_window_funcs() &&
           !((m_select->options | m_select->join->select_options) & OPTION_BUFFER_RESULT);
  /* To be sure, it is computed several times. */
  if (may_warn || of->kind.of <= argument->decimals || !counts_groups_in_table())
    return false;
  const Said exact= *of;
  const Value_kind zero{Value_kind::SIGNED, 0};
  convert(of, Value_kind{Value_kind::DECIMAL, argument->decimals});
  of->is_exact= of->is_mixed= of->mixes_zero= false;
  of->digits-= exact.kind.of - of->kind.of;
  /* Nearer to zero by the last digit. */
  Said nearer;
  nearer.kind= exact.kind;
  B::byte(&nearer.bytes, PANDO_TAG_ARITHMETIC);
  B::byte(&nearer.bytes, PANDO_OPERATION_SUBTRACT);
  B::kind(&nearer.bytes, nearer.kind);
  nearer.bytes+= exact.bytes;
  B::byte(&nearer.bytes, PANDO_TAG_CASE);
  B::kind(&nearer.bytes, nearer.kind);
  B::small(&nearer.bytes, 1);
  B::compare(&nearer.bytes, PANDO_COMPARISON_GREATER);
  nearer.bytes+= exact.bytes;
  put_number(&nearer.bytes, 0, zero);
  put_number(&nearer.bytes, 1, nearer.kind);
  put_number(&nearer.bytes, -1, nearer.kind);
  convert(&nearer, of->kind);
  B::list(is_sure, PANDO_TAG_OR, 3);
  B::compare(is_sure, PANDO_COMPARISON_GREATER_OR_EQUAL);
  B::aggregate(is_sure, PANDO_FUNCTION_MIN, exact.kind);
  *is_sure+= exact.bytes;
  put_number(is_sure, 0, zero);
  B::compare(is_sure, PANDO_COMPARISON_LESS_OR_EQUAL);
  B::aggregate(is_sure, PANDO_FUNCTION_MAX, exact.kind);
  *is_sure+= exact.bytes;
  put_number(is_sure, 0, zero);
  B::compare(is_sure, PANDO_COMPARISON_EQUAL);
  B::aggregate(is_sure, PANDO_FUNCTION_MIN, zero);
  B::byte(is_sure, PANDO_TAG_CASE);
  B::kind(is_sure, zero);
  B::small(is_sure, 1);
  B::compare(is_sure, PANDO_COMPARISON_NOT_EQUAL);
  *is_sure+= nearer.bytes + of->bytes;
  put_number(is_sure, 0, zero);
  put_number(is_sure, 1, zero);
  put_number(is_sure, 1, zero);
  return true;
}

/* What NULLIF is of. The value of an aggregate the server keeps in a cache of its own, as it is; once it has counted the aggregates of the SELECT, the cache is of
   a reference to it. Null: of something else that is kept. */
static Item *first_of_null_if(Item_func *function)
{
  Item *first= function->arguments()[0];
  if (first->type() != Item::CACHE_ITEM)
    return first;
  Item *kept= static_cast<Item_cache *>(first)->get_example();
  return kept && kept->real_item()->type() == Item::SUM_FUNC_ITEM ? kept->real_item() : nullptr;
}

/* Of a count the server's cache has none in HAVING, and where it is compared with something else than an integer: then groups of rows have NULL. */
static bool is_lost_count(const Item *first, Item *second, bool is_in_having)
{
  const bool is_count= first->type() == Item::SUM_FUNC_ITEM && static_cast<const Item_sum *>(first)->sum_func() == Item_sum::COUNT_FUNC;
  return is_count && (is_in_having || !second->basic_const_item() || second->cmp_type() != INT_RESULT);
}

/* NULLIF of numbers, as CASE WHEN first = second THEN NULL ELSE first END. */
bool Select_translator::null_if(Item_func *function, Said *said)
{
  Item **arguments= function->arguments();
  Item *first= first_of_null_if(function);
  if (function->argument_count() != 3 || arguments[0] != arguments[2] || !first ||
      !is_exact_number(function) || !is_exact_number(first) || !is_exact_number(arguments[1]) ||
      first->field_type() == MYSQL_TYPE_YEAR || first->field_type() == MYSQL_TYPE_BIT)
    return refuse("NULLIF of something else");
  /* The server has no column of its own for what the answer shows then. */
  if (arguments[1]->with_sum_func() && !first->with_sum_func())
    return refuse("NULLIF of a group and an aggregate");
  if (is_lost_count(first, arguments[1], m_is_in_having))
    return refuse("NULLIF of a count");
  Said value;
  std::string is_same;
  if (!expression(first, &value) ||
      !compare(PANDO_COMPARISON_EQUAL, first, arguments[1], nullptr, &is_same, true))
    return false;
  if (value.kind.tag != kind_of_number(function).tag || value.is_exact)
    return refuse("digits of NULLIF");
  *said= value;
  said->bytes.clear();
  B::byte(&said->bytes, PANDO_TAG_CASE);
  B::kind(&said->bytes, said->kind);
  B::small(&said->bytes, 1);
  said->bytes+= is_same;
  put_null(&said->bytes, said->kind);
  said->bytes+= value.bytes;
  return true;
}

} // namespace pando
