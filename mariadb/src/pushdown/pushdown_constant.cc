/* Constants that columns are compared with: those that the server compares as values of the column's own kind. */
#include "pushdown.h"
#include "select_translate.h"
#include "sql_select.h"
#include "sql_time.h"
#include "compat56.h"

namespace pando {

/* Digits that the engine computes with (crates/query/src/decimal.rs). */
static const uint PRECISION_MAX= 36;

Item *without_cache(Item *item)
{
  while (item->type() == Item::CACHE_ITEM)
    item= static_cast<Item_cache *>(item)->get_item();
  return item;
}

/* Functions that compare their arguments, and keep a constant one as what it is compared as. */
static bool is_comparing(const Item_func *function)
{
  return compares_values(function) || function->functype() == Item_func::CASE_SIMPLE_FUNC || !strcasecmp(function->func_name(), "nullif");
}

bool keeps_converted(const Item *item, uint depth)
{
  static const uint DEPTH_MAX= 64;
  if (depth > DEPTH_MAX)
    return true;
  if (item->type() == Item::CACHE_ITEM)
  {
    const Item *of= const_cast<Item_cache *>(static_cast<const Item_cache *>(item))->get_item();
    return of && keeps_converted(of, depth + 1);
  }
  if (item->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> parts(*const_cast<Item_cond *>(static_cast<const Item_cond *>(item))->argument_list());
    while (const Item *part= parts++)
      if (keeps_converted(part, depth + 1))
        return true;
    return false;
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<const Item_func *>(item);
  const Item *first= nullptr;
  for (uint i= 0; i < function->argument_count(); i++)
  {
    const Item *argument= function->arguments()[i];
    if (keeps_converted(argument, depth + 1))
      return true;
    if (argument->type() == Item::NULL_ITEM || !is_comparing(function))
      continue;
    if (argument->cols() != 1 || (first && argument->cmp_type() != first->cmp_type()))
      return true;
    first= argument;
  }
  return false;
}

/* A literal, a parameter, or what the server evaluates once for a statement: functions of such, user variables, NOW(). */
bool Translator::is_constant(Item *item) const
{
  if (item->cols() != 1)
    return false; /* rows */
  if (item->basic_const_item())
    return true;
  item= without_cache(item);
  return item->type() == Item::FUNC_ITEM && item->can_eval_in_optimize() && !item->with_subquery() &&
         !(item->used_tables() & ~OUTER_REF_TABLE_BIT) && !keeps_converted(item) && !acts(item);
}

/* A constant that the server compares with the column as values of the column's own kind. */
bool Translator::add_constant(Field *field, Item *item, CHARSET_INFO *collation)
{
  if (!is_constant(item) || ++m_constants > CONSTANTS_MAX)
    return false;
  /* What the server keeps converted: the constant itself, whose conversion it may never come to, and warn. */
  item= without_cache(item);
  PandoQueryColumn unused= {};
  Silent_evaluation evaluation(m_thd);
  bool is_added= false;
  switch (class_of(field, &unused))
  {
  case Column_class::NUMBER:   is_added= add_number(field, item); break;
  case Column_class::DATE:
  case Column_class::DATETIME: is_added= add_moment(field, item); break;
  case Column_class::TIME:     is_added= add_time(field, item); break;
  case Column_class::TEXT:     is_added= add_text(field, item, collation); break;
  default:                     break;
  }
  return is_added && evaluation.is_silent();
}

/* The decimal digits of a number, as many as fit. */
static bool to_number(const my_decimal *decimal, PandoConstant *constant)
{
  StringBuffer<DECIMAL_MAX_STR_LENGTH + 2> text;
  if (decimal->to_string_native(&text, 0, 0, 0) != E_DEC_OK)
    return false;
  __int128 value= 0;
  uint digits= 0;
  bool negative= false, behind= false;
  for (uint i= 0; i < text.length(); i++)
  {
    char c= text[i];
    if (c == '-')
      negative= true;
    else if (c == '.')
      behind= true;
    else if (c < '0' || c > '9' || (value && ++digits > PRECISION_MAX))
      return false;
    else
    {
      value= value * 10 + (c - '0');
      constant->scale+= behind;
    }
  }
  if (negative)
    value= -value;
  constant->low= uint64_t(value);
  constant->high= int64_t(value >> 64);
  return constant->scale <= PRECISION_MAX;
}

/* Whether a column of this type could have the number, but for digits behind the point: where it could not, what the
   server answers depends on its plan (NOT IN over a range of a key takes the number for the nearest that there is). */
static bool is_within_type(const Field *field, const PandoConstant &constant)
{
  PandoQueryColumn column= {};
  class_of(field, &column);
  __int128 value= (__int128)((unsigned __int128)(constant.high) << 64 | constant.low), limit= 1;
  for (uint i= 0; i < constant.scale; i++)
    value/= 10;
  if (column.form == PANDO_FORM_YEAR)
    return value == 0 || (value > 1900 && value <= 1900 + UINT_MAX8);
  if (column.form == PANDO_FORM_DECIMAL)
  {
    for (uint i= column.scale; i < column.precision; i++)
      limit*= 10;
    return value > -limit && value < limit;
  }
  const bool has_sign= column.form == PANDO_FORM_SIGNED;
  limit<<= 8 * field->pack_length() - (has_sign ? 1 : 0);
  return value < limit && value >= (has_sign ? -limit : 0) && !(constant.high < 0 && !has_sign);
}

/* Whether it is one of the numbers between two that the column could have. */
static bool is_between_values(const Field *field, const PandoConstant &constant)
{
  PandoQueryColumn column= {};
  class_of(field, &column);
  const uint digits= column.form == PANDO_FORM_DECIMAL ? column.scale : 0;
  __int128 value= (__int128)((unsigned __int128)(constant.high) << 64 | constant.low);
  for (uint i= digits; i < constant.scale; i++, value/= 10)
    if (value % 10)
      return true;
  return false;
}

/* Whether the server answers the same, whether it goes by a key or not: what a DECIMAL is compared with becomes a value of
   the column when it is looked for in a key, and is not compared again. */
static bool is_sure(const Field *field, const PandoConstant &constant)
{
  return field->part_of_key.is_clear_all() || (is_within_type(field, constant) && !is_between_values(field, constant));
}

/* Without a field: any number. */
bool Translator::add_number(Field *field, Item *item)
{
  if (!is_exact_number(item))
    return false;
  my_decimal buffer;
  PandoConstant constant= {};
  Silent_evaluation evaluation(m_thd);
  const my_decimal *decimal= item->val_decimal(&buffer);
  if (!evaluation.is_silent() || item->null_value || !decimal || !to_number(decimal, &constant) || (field && !is_sure(field, constant)))
    return false;
  pando_query_constant(m_query, constant);
  return true;
}

/* A literal, as a number to compute with. */
Number Translator::constant_number(Item *item)
{
  Number number;
  item= without_cache(item);
  PandoConstant constant= {};
  if (item->type() == Item::NULL_ITEM)
    constant.is_null= 1;
  else
  {
    my_decimal buffer;
    Silent_evaluation evaluation(m_thd);
    const my_decimal *decimal= is_exact_number(item) ? item->val_decimal(&buffer) : nullptr;
    if (!decimal || item->null_value || !to_number(decimal, &constant) || !evaluation.is_silent())
      return number;
  }
  pando_query_constant(m_query, constant);
  return expression(item, PANDO_ARITHMETIC_CONSTANT, number, number, constant.scale);
}

/* A moment, or a text, which the server makes one of to compare it. Whether it can, and silently, is seen when it is done. */
static bool is_moment(Item *item)
{
  const enum_field_types type= item->field_type();
  if (item->cmp_type() == TIME_RESULT)
    return type == MYSQL_TYPE_DATE || type == MYSQL_TYPE_DATETIME;
  return is_compared_as_text(item);
}

/* A DATE or DATETIME, as the column stores it. */
bool Translator::add_moment(Field *field, Item *item)
{
  if (!is_moment(item))
    return false;
  Datetime moment(m_thd, item, Datetime::Options_cmp(m_thd));
  if (!moment.is_valid_datetime())
    return false;
  const MYSQL_TIME *time= moment.get_mysql_time();
  /* Whether zeros in it are accepted is a matter of modes, and of where the server asks. */
  if (!time->year || !time->month || !time->day)
    return false;
  PandoConstant constant= {};
  if (field->real_type() == MYSQL_TYPE_NEWDATE)
  {
    if (time->hour || time->minute || time->second || time->second_part)
      return false;
    constant.low= time->day + time->month * 32 + time->year * 16 * 32;
  }
  else
  {
    static const uint UNITS[]= {1000000, 100000, 10000, 1000, 100, 10, 1};
    uchar bytes[8];
    const uint decimals= field->decimals(), size= field->pack_length();
    if (decimals > 6 || size > sizeof(bytes) || time->second_part % UNITS[decimals])
      return false;
    my_datetime_packed_to_binary(TIME_to_longlong_datetime_packed(time), bytes, decimals);
    for (uint i= 0; i < size; i++)
      constant.low= constant.low << 8 | bytes[i];
  }
  pando_query_constant(m_query, constant);
  return true;
}

/* A TIME, as the column stores it. */
bool Translator::add_time(Field *field, Item *item)
{
  if (!is_time(item))
    return false;
  static const uint UNITS[]= {1000000, 100000, 10000, 1000, 100, 10, 1};
  const Time time(m_thd, item, Time::Options_cmp(m_thd));
  const uint decimals= field->decimals(), size= field->pack_length();
  uchar bytes[8];
  if (!time.is_valid_time() || decimals > 6 || size > sizeof(bytes) ||
      time.get_mysql_time()->second_part % UNITS[decimals])
    return false;
  my_time_packed_to_binary(TIME_to_longlong_time_packed(time.get_mysql_time()), bytes, decimals);
  PandoConstant constant= {};
  for (uint i= 0; i < size; i++)
    constant.low= constant.low << 8 | bytes[i];
  pando_query_constant(m_query, constant);
  return true;
}

bool Translator::add_text(Field *field, Item *item, CHARSET_INFO *collation)
{
  if (!is_compared_as_text(item) || !collation ||
      !my_charset_same(item->collation.collation, field->charset()) ||
      !my_charset_same(collation, field->charset()))
    return false;
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  String *text= item->val_str(&buffer);
  if (!text || item->null_value || (m_text_bytes+= text->length()) > TEXT_BYTES_MAX)
    return false;
  PandoConstant constant= {};
  constant.is_text= 1;
  m_texts++;
  constant.collation= collation;
  constant.text= PandoBytes{reinterpret_cast<const uint8_t *>(text->ptr()), text->length()};
  pando_query_constant(m_query, constant);
  return true;
}

/* Of a text that is a date and a time the server takes all, or the time alone, as the comparison stands. */
bool is_time(Item *item)
{
  if (item->field_type() == MYSQL_TYPE_TIME)
    return true;
  static const size_t DIGITS_MAX= 7;
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  const String *text= is_compared_as_text(item) ? item->val_str(&buffer) : nullptr;
  if (!text)
    return is_compared_as_text(item);
  size_t digits= 0;
  for (size_t i= 0; i < text->length(); i++)
  {
    const char one= text->ptr()[i];
    digits= one >= '0' && one <= '9' ? digits + 1 : 0;
    if (digits > DIGITS_MAX || (!digits && one != ':' && one != '.' && one != ' ' && (one != '-' || i)))
      return false;
  }
  return true;
}

} // namespace pando
