/* What the server's functions may say: see select_silence.h. The silent functions of moments and of numbers were tried by hand with the ends of the types of numbers
   and moments, zero dates and dates without a month or a day, in three sql_modes of 10.11; mtr's select_silence keeps a part of that. What only warns is by reading. */
#include "select_silence.h"
#include "select_translate.h"

#include <algorithm>
#include <cmath>

namespace pando {

bool is_one_of(const Item_func *function, std::initializer_list<const char *> names)
{
  return std::any_of(names.begin(), names.end(), [function](const char *name) { return !strcasecmp(function->func_name(), name); });
}

/* Whether all arguments are texts, or numbers, or moments; constants have been looked at (converts_silently). */
static bool are_alike(const Item_func *function)
{
  uint classes= 0;
  for (uint i= 0; i < function->argument_count(); i++)
  {
    const Item *argument= function->arguments()[i];
    if (argument->const_item() && (argument->cmp_type() == STRING_RESULT || argument->type() == Item::NULL_ITEM))
      continue;
    classes|= argument->cmp_type() == STRING_RESULT ? 1 : argument->cmp_type() == TIME_RESULT ? 2 :
              argument->cmp_type() == ROW_RESULT ? 8 : 4;
  }
  return !(classes & (classes - 1)) && classes != 8;
}

static bool is_number(const Item *item)
{
  return item->cmp_type() == INT_RESULT || item->cmp_type() == DECIMAL_RESULT || item->cmp_type() == REAL_RESULT;
}

/* A literal is a moment if the server makes one of it without a word. */
static bool is_moment(THD *thd, Item *item)
{
  if (item->cmp_type() == TIME_RESULT)
    return true;
  if (!item->basic_const_item() || item->cmp_type() != STRING_RESULT)
    return false;
  Silent_evaluation evaluation(thd);
  MYSQL_TIME time;
  return !item->get_date(thd, &time, Datetime::Options(TIME_CONV_NONE, thd)) && evaluation.is_silent();
}

static bool compares(const Item_func *function)
{
  const Item_func::Functype type= function->functype();
  return compares_values(function) || type == Item_func::LIKE_FUNC || type == Item_func::CASE_SIMPLE_FUNC;
}

/* Of moments, whatever else they are told. */
static bool is_silent_of_moments(THD *thd, const Item_func *function)
{
  Item **arguments= function->arguments();
  if (!function->argument_count() || !is_moment(thd, arguments[0]))
    return false;
  if (is_one_of(function, {"year", "month", "quarter", "dayofmonth", "extract", "hour", "minute", "second", "microsecond", "dayofyear",
                           "dayofweek", "weekday", "dayname", "monthname", "last_day", "to_days", "to_seconds", "time_to_sec",
                           "unix_timestamp", "cast_as_date", "cast_as_datetime", "cast_as_time"}))
    return true;
  if (is_one_of(function, {"date_format", "time_format"}))
    return function->argument_count() == 2 && arguments[1]->basic_const_item();
  if (is_one_of(function, {"week", "yearweek"}))
    return function->argument_count() == 1 || arguments[1]->cmp_type() == INT_RESULT;
  return is_one_of(function, {"timestampdiff"}) && is_moment(thd, arguments[1]);
}

bool is_silent(THD *thd, const Item_func *function, const Guards &guards)
{
  if (compares(function))
    return are_alike(function);
  switch (function->functype())
  {
  case Item_func::ISNULL_FUNC:
  case Item_func::ISNOTNULL_FUNC:
  case Item_func::NOT_FUNC:
  case Item_func::COLLATE_FUNC:
  case Item_func::CASE_SEARCHED_FUNC:
    return true;
  default:
    break;
  }
  if (is_one_of(function, {"concat", "concat_ws", "lcase", "lower", "ucase", "upper", "length", "octet_length", "char_length",
                           "bit_length", "trim", "ltrim", "rtrim", "replace", "reverse", "instr", "locate", "ascii", "ord", "hex", "md5",
                           "sha", "crc32", "if", "ifnull", "coalesce", "soundex", "find_in_set", "istrue", "isnottrue", "isfalse",
                           "isnotfalse", "xor", "quote"}))
    return true;
  if (is_silent_of_moments(thd, function))
    return true;
  const uint count= function->argument_count();
  Item **arguments= function->arguments();
  if (is_one_of(function, {"substr", "substring", "left", "right"}))
    return std::all_of(arguments + 1, arguments + count, [](const Item *one) { return one->cmp_type() == INT_RESULT; });
  if (is_one_of(function, {"nullif", "strcmp", "field"}))
    return are_alike(function);
  /* The least of moments has to be one of the calendar. */
  if (is_one_of(function, {"greatest", "least"}))
    return are_alike(function) && std::none_of(arguments, arguments + count, [](const Item *one) { return one->cmp_type() == TIME_RESULT; });
  if (is_one_of(function, {"/", "%", "mod"}))
    return are_alike(function) && is_number(arguments[0]) && function->result_type() != REAL_RESULT &&
           (!(thd->variables.sql_mode & MODE_ERROR_FOR_DIVISION_BY_ZERO) || guards.exclude_zero(arguments[1]));
  if (is_one_of(function, {"+", "-", "*"}))
    return are_alike(function) && is_number(arguments[0]) && function->result_type() == DECIMAL_RESULT &&
           function->decimal_precision() < DECIMAL_MAX_PRECISION;
  if (!count || !is_number(arguments[0]))
    return false;
  if (is_one_of(function, {"floor", "ceiling", "sign", "sqrt"}))
    return true;
  if (is_one_of(function, {"round", "truncate"}))
    return arguments[0]->cmp_type() == DECIMAL_RESULT && arguments[1]->basic_const_item() && arguments[1]->cmp_type() == INT_RESULT;
  return is_one_of(function, {"abs"}) && arguments[0]->cmp_type() != INT_RESULT;
}

/* A literal that no DOUBLE leaves its range by. */
static bool adds_little(Item *item)
{
  static const double LITTLE= 1e200;
  return item->basic_const_item() && is_number(item) && std::fabs(item->val_real()) < LITTLE;
}

bool only_warns(const Item_func *function)
{
  if (compares(function))
    return true;
  if (is_one_of(function, {"year", "month", "quarter", "dayofmonth", "extract", "hour", "minute", "second", "microsecond", "dayofyear",
                           "dayofweek", "weekday", "dayname", "monthname", "last_day", "to_days", "to_seconds", "time_to_sec",
                           "unix_timestamp", "cast_as_date", "cast_as_datetime", "cast_as_time", "date_format", "time_format", "week",
                           "yearweek", "timestampdiff", "timediff", "date_add_interval", "str_to_date", "from_unixtime", "sec_to_time",
                           "from_days", "makedate", "maketime", "convert_tz", "addtime", "subtime", "timestamp",
                           "cast_as_char", "cast_as_signed", "cast_as_unsigned", "decimal_typecast", "double_typecast",
                           "substr", "substring", "left", "right", "lpad", "rpad", "repeat", "space", "format", "elt", "greatest", "least",
                           "nullif", "strcmp", "field", "inet_aton", "inet_ntoa", "conv", "ln", "log", "log2", "log10",
                           "json_value", "json_extract", "json_unquote", "json_query", "json_contains", "json_contains_path",
                           "json_length", "json_type", "json_valid", "json_keys", "json_exists"}))
    return true;
  if (is_one_of(function, {"+", "-"}) && function->result_type() == REAL_RESULT && function->argument_count() == 2)
    return adds_little(function->arguments()[0]) || adds_little(function->arguments()[1]);
  return is_one_of(function, {"/", "%", "mod"}) && function->result_type() != REAL_RESULT;
}

} // namespace pando
