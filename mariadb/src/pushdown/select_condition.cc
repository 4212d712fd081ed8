/* Conditions of SELECTs of any shape, said in the engine's words. */
#include "select_translate.h"
#include "compat56.h"

#include <algorithm>

namespace pando {

using B= Select_bytes;

static const Value_kind TRUTH{Value_kind::SIGNED, 0};

/* What has no form of the engine's is the server's to compute. */
bool Select_translator::condition(Item *item, Said *said)
{
  return sharply(item, said, [&](Said *to) { return truth(item, to); });
}

bool Select_translator::truth(Item *item, Said *said)
{
  const size_t sources= m_sources.size(), table_count= tables.size(), warning_count= warnings.size();
  if (native_condition(item, said))
    return true;
  const char *why= reason;
  *said= Said();
  warnings.resize(warning_count);
  m_sources.resize(sources);
  tables.resize(table_count);
  reason= why;
  return server(item, true, said);
}

bool Select_translator::native_condition(Item *item, Said *said)
{
  Nesting nesting(this);
  const bool is_always_met= m_is_always_met, is_conjunct= m_is_conjunct, is_optimized= m_is_optimized;
  m_is_always_met= m_may_warn_once= m_is_conjunct= m_is_optimized= false;
  if (!nesting.is_allowed())
    return refuse("a deep condition");
  said->kind= TRUTH;
  said->digits= 1;
  if (is_constant(item))
  {
    if (item->result_type() != INT_RESULT)
      return refuse("a constant condition");
    return constant(item, said);
  }
  if (item->type() == Item::COND_ITEM)
    return list(static_cast<Item_cond *>(item), is_always_met, is_conjunct, is_optimized, said);
  if (item->type() == Item::SUBSELECT_ITEM)
    return condition_of_query(static_cast<Item_subselect *>(item), is_conjunct, said);
  if (item->type() != Item::FUNC_ITEM)
    return expression(item, said) && (said->kind.is_number() || refuse("a condition"));
  Item_func *function= static_cast<Item_func *>(item);
  if (is_sign(function))
    m_may_warn_once= is_always_met;
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:    return comparison(function, PANDO_COMPARISON_EQUAL, said, is_conjunct);
  case Item_func::NE_FUNC:    return comparison(function, PANDO_COMPARISON_NOT_EQUAL, said);
  case Item_func::LT_FUNC:    return comparison(function, PANDO_COMPARISON_LESS, said);
  case Item_func::LE_FUNC:    return comparison(function, PANDO_COMPARISON_LESS_OR_EQUAL, said);
  case Item_func::GT_FUNC:    return comparison(function, PANDO_COMPARISON_GREATER, said);
  case Item_func::GE_FUNC:    return comparison(function, PANDO_COMPARISON_GREATER_OR_EQUAL, said);
  case Item_func::EQUAL_FUNC: return comparison(function, PANDO_COMPARISON_SAME, said);
  case Item_func::BETWEEN:    return between(function, said);
  case Item_func::IN_FUNC:    return in_list(function, is_conjunct, said);
  case Item_func::LIKE_FUNC:  return like(function, said);
  case Item_func::NOT_FUNC:
    if (!condition(function->arguments()[0], said))
      return false;
    negate(&said->bytes);
    said->kind= TRUTH;
    said->digits= 1;
    return true;
  case Item_func::ISNULL_FUNC:
  case Item_func::ISNOTNULL_FUNC:
    return is_null(function, is_optimized, said);
  case Item_func::IN_OPTIMIZER_FUNC:
  {
    Item *query= function->arguments()[1];
    if (query->type() != Item::SUBSELECT_ITEM)
      return refuse("the optimizer of a subquery");
    m_is_conjunct= is_conjunct;
    return condition(query, said);
  }
  default:
    if (function->type_handler() == &type_handler_bool)
      return refuse("a predicate");
    return expression(item, said) && (said->kind.is_number() || refuse("a condition"));
  }
}

bool Select_translator::condition_of_query(Item_subselect *query, bool is_conjunct, Said *said)
{
  if (query->substype() == Item_subselect::IN_SUBS)
    return in_query(static_cast<Item_in_subselect *>(query), is_conjunct, said);
  if (query->substype() != Item_subselect::EXISTS_SUBS)
    return expression(query, said) && (said->kind.is_number() || refuse("a condition"));
  std::vector<uint> slots;
  std::vector<Value_kind> kinds;
  B::byte(&said->bytes, PANDO_TAG_EXISTS);
  return unit(query->unit, Use::EXISTS, &said->bytes, &slots, &kinds);
}

/* IS NULL, and IS NOT NULL. */
bool Select_translator::is_null(Item_func *function, bool is_optimized, Said *said)
{
  Said of;
  Item *argument= function->arguments()[0];
  if (compares_rows(argument))
    return refuse_for_good("NULL of a comparison of rows");
  if (!length_of_column(argument, &of) && !expression(argument, &of))
    return false;
  if (is_rewritten(function))
  {
    /* `date IS NULL` finds zero dates, too, where the optimizer looks at it: in lists of conditions, and not within other expressions. */
    if ((!is_optimized && m_is_condition) || (of.kind.tag != Value_kind::DATE && of.kind.tag != Value_kind::DATETIME))
      return refuse_for_good("IS NULL of a date");
    if (is_optimized)
    {
      B::list(&said->bytes, PANDO_TAG_OR, 2);
      B::compare(&said->bytes, PANDO_COMPARISON_EQUAL);
      said->bytes+= of.bytes;
      put_number(&said->bytes, 0, of.kind);
    }
  }
  B::byte(&said->bytes, PANDO_TAG_IS_NULL);
  said->bytes+= of.bytes;
  if (function->functype() == Item_func::ISNOTNULL_FUNC)
    negate(&said->bytes);
  return true;
}

bool Select_translator::list(Item_cond *list, bool is_always_met, bool is_conjunct, bool is_optimized, Said *said)
{
  if (list->functype() != Item_func::COND_AND_FUNC && list->functype() != Item_func::COND_OR_FUNC)
    return refuse("a list of conditions");
  List_iterator_fast<Item> parts(*list->argument_list());
  uint32_t count= 0;
  std::string bytes;
  for (Item *part; (part= parts++); count++)
  {
    Said one;
    m_is_always_met= is_always_met && list->functype() == Item_func::COND_AND_FUNC;
    m_is_conjunct= is_conjunct;
    m_is_optimized= is_optimized;
    if (!condition(part, &one))
      return false;
    bytes+= one.bytes;
  }
  B::list(&said->bytes, list->functype() == Item_func::COND_AND_FUNC ? PANDO_TAG_AND : PANDO_TAG_OR, count);
  said->bytes+= bytes;
  return true;
}

/* Whether the optimizer makes a multiple equality of it (check_simple_equality() in the server's sql/sql_select.cc). */
static bool is_simple_equality(Item *column, Item *constant)
{
  column= column->real_item();
  if (column->type() != Item::FIELD_ITEM)
    return false;
  Item_field *field= static_cast<Item_field *>(column);
  return !field->get_depended_from() && constant->can_eval_in_optimize() &&
         field->field->test_if_equality_guarantees_uniqueness(constant->real_item());
}

/* Those of a column and a constant the server computes before other conditions: see crates/analytic/src/warnings.rs. */
void Select_translator::note_first(bool is_conjunct, Item *first, Item *second, const std::string &said)
{
  if (!is_conjunct || !(is_simple_equality(first, second) || is_simple_equality(second, first)))
    return;
  m_first+= said;
  m_first_count++;
}

bool Select_translator::comparison(Item_func *function, PandoComparison comparison, Said *said, bool is_conjunct)
{
  Item **arguments= function->arguments();
  if (arguments[0]->cols() != 1 || arguments[1]->cols() != 1)
  {
    if (comparison != PANDO_COMPARISON_EQUAL && comparison != PANDO_COMPARISON_NOT_EQUAL)
      return refuse("a comparison of rows");
    if (comparison == PANDO_COMPARISON_NOT_EQUAL)
      B::byte(&said->bytes, PANDO_TAG_NOT);
    return rows_equal(arguments[0], arguments[1], true, &said->bytes, is_conjunct);
  }
  const size_t begin= said->bytes.size();
  if (!compare(comparison, arguments[0], arguments[1], static_cast<Item_bool_func *>(function)->compare_collation(), &said->bytes, true))
    return false;
  note_first(is_conjunct, arguments[0], arguments[1], said->bytes.substr(begin));
  return true;
}

/* Of two DECIMALs, signs like = and < compare the digits that are shown; BETWEEN, IN and CASE all that there are. */
void Select_translator::round_to_shown(const Item *item, Said *said)
{
  if (said->kind.tag != Value_kind::DECIMAL || said->kind.of <= item->decimals)
    return;
  convert(said, Value_kind{Value_kind::DECIMAL, item->decimals});
  said->is_exact= false;
}

/* A literal that is no value of the kind that it is compared with: the server converts it once, when it is first compared, and keeps
   what it has made of it. False: it is no such literal. */
bool Select_translator::constant_with_warning(Item *item, const Value_kind &kind, Said *said)
{
  if (!item->basic_const_item() || item->type() == Item::NULL_ITEM)
    return false;
  Silent_evaluation evaluation(m_thd);
  if (kind.tag == Value_kind::DATE || kind.tag == Value_kind::DATETIME)
  {
    if (item->cmp_type() != STRING_RESULT && item->cmp_type() != INT_RESULT)
      return false;
    const Datetime moment(m_thd, item, Datetime::Options_cmp(m_thd));
    if (!moment.is_valid_datetime() || item->null_value)
      return false;
    said->kind= Value_kind{Value_kind::DATETIME, 0};
    put_number(&said->bytes, TIME_to_longlong_datetime_packed(moment.get_mysql_time()), said->kind);
  }
  else if (kind.is_number() && item->cmp_type() == STRING_RESULT && item->type_handler()->is_traditional_scalar_type())
  {
    my_decimal buffer;
    const my_decimal *decimal= item->val_decimal(&buffer);
    __int128 value= 0;
    uint scale= 0;
    if (!decimal || item->null_value || !digits_of(decimal, &value, &scale))
      return false;
    said->kind= Value_kind{Value_kind::DECIMAL, scale};
    put_number(&said->bytes, value, said->kind);
  }
  if (!evaluation.is_one_warning())
  {
    *said= Said();
    return false;
  }
  warnings.push_back(Warning{evaluation.code(), evaluation.text()});
  return true;
}

bool may_be_in_key(const SELECT_LEX *select, Item *item)
{
  item= item->real_item();
  return item->type() == Item::FIELD_ITEM &&
         (select->leaf_tables.elements > 1 || !static_cast<const Item_field *>(item)->field->part_of_key.is_clear_all());
}

/* Makes two values such as the engine compares. */
bool Select_translator::like_each_other(Said *first, Said *second, CHARSET_INFO *collation)
{
  const Value_kind a= first->kind, b= second->kind;
  if (a.is_number() && b.is_number())
    return true;
  if (a.tag == Value_kind::REAL && b.tag == Value_kind::REAL)
    return true;
  if (a.tag == Value_kind::TEXT && b.tag == Value_kind::TEXT)
  {
    if (!collation)
      return refuse("a comparison of texts");
    const Value_kind kind{Value_kind::TEXT, collation_number(collation)};
    convert(first, kind);
    convert(second, kind);
    return true;
  }
  const auto is_moment= [](const Value_kind &kind) { return kind.tag == Value_kind::DATE || kind.tag == Value_kind::DATETIME; };
  if (is_moment(a) && is_moment(b))
  {
    if (!(a == b))
    {
      convert(first, Value_kind{Value_kind::DATETIME, 0});
      convert(second, Value_kind{Value_kind::DATETIME, 0});
    }
    return true;
  }
  return (a.tag == Value_kind::TIME && b.tag == Value_kind::TIME) || refuse("a comparison of different kinds");
}

/* Whether the server, looking for a DECIMAL of one table in a key of another, may make an integer of it, and warn. It does so where it looks
   for equal keys; the bounds of a range are stored without a warning. `is_equality`: it is one of a sign, and not of a list. */
static bool is_converted_for_key(Item *first, Item *second, bool is_equality)
{
  const auto is_in_key= [is_equality](Item *item, Item *value) {
    item= item->real_item();
    if (item->type() != Item::FIELD_ITEM)
      return false;
    const Field *field= static_cast<Item_field *>(item)->field;
    /* A query that is tied to the same row is no value that is known before the row is read. */
    if (value->real_item()->type() == Item::SUBSELECT_ITEM && (value->used_tables() & field->table->map))
      return false;
    /* The server makes keys for derived tables, in which equalities are looked for; IN of a list is none. */
    const TABLE_LIST *list= field->table->pos_in_table_list;
    return !field->part_of_key.is_clear_all() || (is_equality && list && list->is_view_or_derived());
  };
  return (first->result_type() == INT_RESULT && second->result_type() == DECIMAL_RESULT && is_in_key(first, second)) ||
         (first->result_type() == DECIMAL_RESULT && second->result_type() == INT_RESULT && is_in_key(second, first));
}

bool is_converted_for_key(Item *first, Item *second)
{
  return is_converted_for_key(first, second, true);
}

/* Likewise of a constant, which becomes the nearest integer, and is not compared again. */
static bool is_fraction_for_key(Item *key, Item *constant)
{
  if (key->result_type() != INT_RESULT || constant->result_type() != DECIMAL_RESULT || !is_converted_for_key(key, constant))
    return false;
  my_decimal buffer, whole;
  const my_decimal *value= constant->val_decimal(&buffer);
  if (!value || constant->null_value)
    return false;
  value->round_to(&whole, 0, HALF_UP);
  return value->cmp(&whole) != 0;
}

/* It may do so if all of them are numbers of the key's own: nothing is lost then. */
bool Select_translator::ask_for_key(Item *first, Item *second, const Said &of_first, const Said &of_second)
{
  const bool is_first= first->result_type() == INT_RESULT;
  const Item *key= (is_first ? first : second)->real_item();
  const Said &decimal= is_first ? of_second : of_first;
  const Field *field= static_cast<const Item_field *>(key)->field;
  const uint bits= 8 * std::min(field->pack_length(), 8u);
  if (decimal.kind.tag != Value_kind::DECIMAL || decimal.is_exact || decimal.is_mixed || field->type() == MYSQL_TYPE_YEAR ||
      field->type() == MYSQL_TYPE_BIT || decimal.bytes.empty())
    return refuse_for_good("a DECIMAL that may be looked for in a key of integers");
  const bool has_sign= !(field->flags & UNSIGNED_FLAG);
  const __int128 most= (__int128(1) << (bits - has_sign)) - 1;
  const Value_kind whole{Value_kind::DECIMAL, 0};
  Said rounded= decimal;
  convert(&rounded, whole);
  std::string sure;
  B::byte(&sure, PANDO_TAG_SURE);
  B::list(&sure, PANDO_TAG_AND, 3);
  const auto put= [&](PandoComparison comparison, const std::string &other) {
    B::compare(&sure, comparison);
    sure+= decimal.bytes + other;
  };
  std::string least_bytes, most_bytes;
  put_number(&least_bytes, has_sign ? -most - 1 : __int128(0), whole);
  put_number(&most_bytes, most, whole);
  put(PANDO_COMPARISON_EQUAL, rounded.bytes);
  put(PANDO_COMPARISON_GREATER_OR_EQUAL, least_bytes);
  put(PANDO_COMPARISON_LESS_OR_EQUAL, most_bytes);
  put_number(&sure, 1, Value_kind{Value_kind::SIGNED, 0});
  ask(sure);
  return true;
}

/* Whether two columns of one type, with which the engine does not compute, compare as it stores them: a TIMESTAMP is a moment,
   whatever clocks show; equal UUIDs, INET6 and BINARY of one length have the same bytes. */
bool compare_as_stored(PandoComparison comparison, Item *first, Item *second, const Value_kind &a, const Value_kind &b)
{
  if (!(a == b) || first->type_handler() != second->type_handler() || first->real_item()->type() != Item::FIELD_ITEM ||
      second->real_item()->type() != Item::FIELD_ITEM)
    return false;
  if (a.tag == Value_kind::STAMP)
    return true;
  const bool is_equality= comparison == PANDO_COMPARISON_EQUAL || comparison == PANDO_COMPARISON_NOT_EQUAL ||
                           comparison == PANDO_COMPARISON_SAME;
  return a.tag == Value_kind::RAW && is_equality && first->type_handler()->result_type() == STRING_RESULT;
}

/* DOUBLEs of which both sides have so many digits behind the point, as FLOAT(7,2) has, are equal to the server if they differ in later ones. */
bool is_compared_to_digits(const Item *first, const Item *second)
{
  const bool is_real= first->cmp_type() == REAL_RESULT || second->cmp_type() == REAL_RESULT;
  return is_real && first->decimals < FLOATING_POINT_DECIMALS && second->decimals < FLOATING_POINT_DECIMALS;
}

static bool is_json_extract(Item *item)
{
  item= item->real_item();
  return item->type() == Item::FUNC_ITEM && static_cast<Item_func *>(item)->functype() == Item_func::JSON_EXTRACT_FUNC;
}

PandoComparison swapped(PandoComparison comparison)
{
  switch (comparison)
  {
  case PANDO_COMPARISON_LESS:             return PANDO_COMPARISON_GREATER;
  case PANDO_COMPARISON_LESS_OR_EQUAL:    return PANDO_COMPARISON_GREATER_OR_EQUAL;
  case PANDO_COMPARISON_GREATER:          return PANDO_COMPARISON_LESS;
  case PANDO_COMPARISON_GREATER_OR_EQUAL: return PANDO_COMPARISON_LESS_OR_EQUAL;
  default:                                return comparison;
  }
}

/* Where one side is a constant, it is what the server makes of it to compare it with the other. */
bool Select_translator::compare(PandoComparison comparison, Item *first, Item *second, CHARSET_INFO *collation, std::string *to, bool is_sign)
{
  const bool may_warn_once= m_may_warn_once;
  m_may_warn_once= false;
  if (first->field_type() == MYSQL_TYPE_YEAR && second->field_type() == MYSQL_TYPE_YEAR)
    return refuse("a comparison of years");
  /* A text is compared with what JSON_EXTRACT gives without its quotes. */
  if (is_sign && (is_json_extract(first) || is_json_extract(second)))
    return refuse("a comparison with JSON_EXTRACT");
  if (is_sign && is_compared_to_digits(first, second))
    return refuse("a comparison of DOUBLEs to so many digits");
  if (stamp_with_constant(comparison, first, second, to))
    return true;
  const bool is_constant_1= is_constant(first), is_constant_2= is_constant(second);
  Said a, b;
  if ((!is_constant_1 || is_constant_2) && !expression(first, &a))
    return false;
  if (!is_constant_2 && !expression(second, &b))
    return false;
  const bool is_equality= comparison == PANDO_COMPARISON_EQUAL || comparison == PANDO_COMPARISON_SAME;
  if (is_equality && !is_constant_1 && !is_constant_2 && is_converted_for_key(first, second, is_sign) && !ask_for_key(first, second, a, b))
    return false;
  const auto say= [&](Item *constant_item, const Said &other, Item *other_item, Said *constant_said) {
    Value_kind kind= other.kind;
    constant_item= without_cache(constant_item);
    if (may_warn_once && !may_be_in_key(m_select, other_item) && constant_with_warning(constant_item, kind, constant_said))
      return true;
    CHARSET_INFO *charset= other_item->collation.collation;
    if (kind.tag == Value_kind::TEXT)
      kind.of= collation ? collation_number(collation) : kind.of;
    else if (kind.is_number())
    {
      if (constant_item->type() != Item::NULL_ITEM && !is_exact_number(constant_item))
        return refuse("a comparison of a number with something else");
      return constant(constant_item, constant_said);
    }
    else if (kind.tag == Value_kind::REAL && constant_item->cmp_type() != REAL_RESULT && constant_item->cmp_type() != INT_RESULT &&
             constant_item->cmp_type() != DECIMAL_RESULT)
      return refuse("a comparison of a DOUBLE with something else");
    return constant_of(constant_item, kind, charset, constant_said);
  };
  if (is_constant_2 && !say(second, a, first, &b))
    return false;
  if (is_constant_1 && !is_constant_2 && !say(first, b, second, &a))
    return false;
  if (is_constant_1 != is_constant_2 && (comparison == PANDO_COMPARISON_EQUAL || comparison == PANDO_COMPARISON_SAME) &&
      is_fraction_for_key(is_constant_1 ? second : first, is_constant_1 ? first : second))
    return refuse_for_good("a fraction that may be looked for in a key of integers");
  if (a.kind.tag == Value_kind::TEXT && b.kind.tag == Value_kind::TEXT &&
      !my_charset_same(first->collation.collation, second->collation.collation))
    return refuse("a comparison of different character sets");
  if (a.kind.tag == Value_kind::REAL && b.kind.is_integer())
    convert(&b, a.kind);
  if (b.kind.tag == Value_kind::REAL && a.kind.is_integer())
    convert(&a, b.kind);
  const bool is_as_stored= is_sign && !is_constant_1 && !is_constant_2 && compare_as_stored(comparison, first, second, a.kind, b.kind);
  if (!is_as_stored && !like_each_other(&a, &b, collation))
    return false;
  if (is_sign && a.kind.is_number() && b.kind.is_number())
  {
    round_to_shown(first, &a);
    round_to_shown(second, &b);
  }
  const size_t begin= to->size();
  /* IN has a list of constants, which is looked up. */
  if (!is_sign || !(test_of_text(comparison, a, b, collation, to) || test_of_text(swapped(comparison), b, a, collation, to)))
  {
    B::compare(to, comparison);
    *to+= a.bytes + b.bytes;
  }
  if (is_constant_2 && !is_constant_1)
    bound_days(comparison, first, second, begin, to);
  else if (is_constant_1 && !is_constant_2)
    bound_days(swapped(comparison), second, first, begin, to);
  return true;
}

/* As what the server compares values of these types, as far as that makes a difference. */
static const Type_handler *compared_as(Item **items, std::initializer_list<uint> numbers)
{
  Type_handler_hybrid_field_type common(without_cache(items[0])->type_handler_for_comparison());
  for (const uint number : numbers)
    if (common.aggregate_for_comparison(without_cache(items[number])->type_handler_for_comparison()))
      return nullptr;
  const Type_handler *handler= common.type_handler();
  switch (handler->cmp_type())
  {
  case INT_RESULT:
  case DECIMAL_RESULT:
    return &type_handler_newdecimal;
  case TIME_RESULT:
    return handler->field_type() == MYSQL_TYPE_TIME ? handler : &type_handler_datetime;
  default:
    return handler;
  }
}

/* Of BETWEEN the server compares all three as values of one type, which need not be that of two of them alone. */
static bool is_of_one_type(Item **arguments)
{
  const Type_handler *all= compared_as(arguments, {1, 2});
  return all && compared_as(arguments, {1}) == all && compared_as(arguments, {2}) == all;
}

bool Select_translator::between(Item_func *function, Said *said)
{
  Item_func_opt_neg *between= static_cast<Item_func_opt_neg *>(function);
  Item **arguments= function->arguments();
  for (uint i= 0; i < 3; i++)
    if (arguments[i]->cols() != 1)
      return refuse("a BETWEEN of rows");
  if (!is_of_one_type(arguments))
    return refuse("a BETWEEN of different types");
  /* To the server that is an equality, which it looks for in a key. */
  if (arguments[1]->eq(arguments[2], false) && !is_constant(arguments[1]) && is_converted_for_key(arguments[0], arguments[1]))
    return refuse_for_good("a DECIMAL that may be looked for in a key of integers");
  std::string bytes;
  if (!compare(PANDO_COMPARISON_GREATER_OR_EQUAL, arguments[0], arguments[1], between->compare_collation(), &bytes) ||
      !compare(PANDO_COMPARISON_LESS_OR_EQUAL, arguments[0], arguments[2], between->compare_collation(), &bytes))
    return false;
  if (between->negated)
    B::byte(&said->bytes, PANDO_TAG_NOT);
  B::list(&said->bytes, PANDO_TAG_AND, 2);
  said->bytes+= bytes;
  return true;
}

static const uint IN_LIST_MAX= 4096;

bool Select_translator::in_list(Item_func *function, bool is_conjunct, Said *said)
{
  Item_func_in *in= static_cast<Item_func_in *>(function);
  Item **arguments= function->arguments();
  if (function->argument_count() > IN_LIST_MAX)
    return refuse("a long IN");
  if (arguments[0]->cols() != 1)
    return in_rows(in, is_conjunct, said);
  /* Of a list of texts and numbers the server makes texts, for some character sets, and compares the numbers as numbers all the same. */
  if (arguments[0]->cmp_type() == STRING_RESULT && !in->arg_types_compatible)
    return refuse("IN of different kinds");
  std::string bytes;
  uint32_t count= 0;
  for (uint i= 1; i < function->argument_count(); i++, count++)
  {
    /* Of a parameter 1 the server makes 2001 if all of the list are equal, and else nothing. */
    if (arguments[0]->field_type() == MYSQL_TYPE_YEAR && dynamic_cast<Item_param *>(arguments[i]))
      return refuse("a year in a list of parameters");
    /* Beside an IN of a query the server makes a number of a text that is not a literal, and warns. */
    if (arguments[i]->cmp_type() == STRING_RESULT && !arguments[i]->basic_const_item() && m_select->first_inner_unit())
      return refuse_for_good("IN of a computed text beside a query");
    const bool was_hopeless= m_is_hopeless;
    if (!compare(PANDO_COMPARISON_EQUAL, arguments[0], arguments[i], in->compare_collation(), &bytes))
    {
      /* The server has converted them already, and has said what there was to say. */
      if (is_list_converted(in))
        m_is_hopeless= was_hopeless;
      return false;
    }
  }
  if (in->negated)
    B::byte(&said->bytes, PANDO_TAG_NOT);
  B::list(&said->bytes, PANDO_TAG_OR, count);
  said->bytes+= bytes;
  return true;
}

bool Text_test::passes(const uint8_t *text, size_t size) const
{
  if (pattern)
    return pattern->matches(text, size);
  const int order= collation->strnncollsp(text, size, reinterpret_cast<const uchar *>(constant.data()), constant.size());
  switch (comparison)
  {
  case PANDO_COMPARISON_NOT_EQUAL:        return order != 0;
  case PANDO_COMPARISON_LESS:             return order < 0;
  case PANDO_COMPARISON_LESS_OR_EQUAL:    return order <= 0;
  case PANDO_COMPARISON_GREATER:          return order > 0;
  case PANDO_COMPARISON_GREATER_OR_EQUAL: return order >= 0;
  default:                                return order == 0;
  }
}

uint32_t Select_translator::number_of_test(const Text_test &test)
{
  const auto known= std::find(m_tests.begin(), m_tests.end(), test);
  const uint32_t number= uint32_t(std::distance(m_tests.begin(), known));
  if (known == m_tests.end())
  {
    m_tests.push_back(test);
    tests.push_back(&m_tests.back());
  }
  return number;
}

/* Texts that are computed are seldom the same, and no zone map and no key filter knows of them: each is compared once, so the bytes that
   order it need not be made. False: it is said otherwise. */
bool Select_translator::test_of_text(PandoComparison comparison, const Said &text, const Said &constant, CHARSET_INFO *collation, std::string *to)
{
  static const size_t BEGIN= 6; /* behind two tags and the size of a constant text */
  const std::string &bytes= constant.bytes;
  if (text.kind.tag != Value_kind::TEXT || !collation || comparison == PANDO_COMPARISON_SAME ||
      (text.bytes[0] != PANDO_TAG_CHANGE && text.bytes[0] != PANDO_TAG_SERVER) ||
      bytes.size() < BEGIN || bytes[0] != PANDO_TAG_CONSTANT || bytes[1] != PANDO_VALUE_TAG_TEXT)
    return false;
  uint32_t size= 0;
  for (uint i= 0; i < 4; i++)
    size|= uint32_t(uint8_t(bytes[2 + i])) << (8 * i);
  B::byte(to, PANDO_TAG_TEST);
  B::small(to, number_of_test(Text_test{nullptr, collation, comparison, bytes.substr(BEGIN, size)}));
  *to+= text.bytes;
  return true;
}

/* Patterns are short: the comparison calls itself for each of their wildcards. */
static const size_t PATTERN_BYTES_MAX= 256;

bool Select_translator::like(Item_func *function, Said *said)
{
  Item_func_like *like= static_cast<Item_func_like *>(function);
  Item *of_item= function->arguments()[0], *pattern= function->arguments()[1];
  Said of;
  CHARSET_INFO *collation= like->compare_collation();
  if (!expression(of_item, &of))
    return false;
  if (of.kind.tag != Value_kind::TEXT || !is_constant(pattern) || pattern->cmp_type() != STRING_RESULT || !collation ||
      !my_charset_same(collation, of_item->collation.collation) ||
      !my_charset_same(pattern->collation.collation, of_item->collation.collation))
    return refuse("a LIKE");
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  Silent_evaluation evaluation(m_thd);
  String *text= pattern->val_str(&buffer);
  if (!text || !evaluation.is_silent() || pattern->null_value || text->length() > PATTERN_BYTES_MAX)
    return refuse("a pattern");
  const Like_pattern made(text->ptr(), text->length(), collation, like->escape);
  const auto known= std::find(m_patterns.begin(), m_patterns.end(), made);
  if (like->negated)
    B::byte(&said->bytes, PANDO_TAG_NOT);
  if (known == m_patterns.end())
    m_patterns.push_back(made);
  const Like_pattern *of_pattern= known == m_patterns.end() ? &m_patterns.back() : &*known;
  B::byte(&said->bytes, PANDO_TAG_TEST);
  B::small(&said->bytes, number_of_test(Text_test{of_pattern, collation, PANDO_COMPARISON_EQUAL, std::string()}));
  said->bytes+= of.bytes;
  return true;
}

} // namespace pando
