/* A TIMESTAMP compared with a constant, said in the engine's words.

   The server compares what a clock of the session's time zone shows of both. The engine compares moments. That is the same unless
   clocks were set near the constant: then times that clocks show come twice, or never, and are not in the order of moments. */
#include "select_translate.h"
#include "select_silence.h"
#include "zone_offset.h"

#include <sql_time.h>
#include <tztime.h>

namespace pando {

using B= Select_bytes;

namespace {

/* Not what stands for a column of a derived table that is merged: there it has another name. */
Field *stamp_of(Item *item)
{
  Field *field= item->type() == Item::FIELD_ITEM ? static_cast<Item_field *>(item)->field : nullptr;
  return field && field->real_type() == MYSQL_TYPE_TIMESTAMP2 && field->stored_in_db() ? field : nullptr;
}

/* Bytes of a TIMESTAMP's fraction, and how many microseconds are one of its units. */
uint fraction_bytes(uint decimals) { return (decimals + 1) / 2; }

ulong unit_of_fraction(uint decimals)
{
  static const ulong UNITS[]= {1000000, 10000, 100, 1};
  return UNITS[fraction_bytes(decimals)];
}

/* The moment that a constant of the type TIMESTAMP is. The server compares it as such, whatever clocks show. 11.8 makes one of what it
   compares a TIMESTAMP with, if clocks are not set near it. False: it is not of the type, or NULL, or zero. */
bool moment_itself(THD *thd, Item *constant, my_time_t *seconds, ulong *micros)
{
  if (constant->cmp_type() != TIME_RESULT || constant->field_type() != MYSQL_TYPE_TIMESTAMP)
    return false;
  Silent_evaluation evaluation(thd);
  const Timestamp_or_zero_datetime_native_null native(thd, constant);
  if (!evaluation.is_silent() || native.is_null() || native.is_zero_datetime())
    return false;
  const Moment moment= moment_of_stamp(Timestamp(native));
  *seconds= moment.tv_sec;
  *micros= moment.tv_usec;
  return true;
}

/* The moment that clocks of the session show so. False: none, or it is not clear which, or the server does not compare it as a moment. */
bool moment_of(THD *thd, Item *constant, my_time_t *seconds, ulong *micros)
{
  const enum_field_types type= constant->field_type();
  if (constant->cmp_type() == TIME_RESULT ? type != MYSQL_TYPE_DATE && type != MYSQL_TYPE_DATETIME : !is_compared_as_text(constant))
    return false;
  Silent_evaluation evaluation(thd);
  const Datetime moment(thd, constant, Datetime::Options_cmp(thd));
  if (!evaluation.is_silent() || constant->null_value || !moment.is_valid_datetime())
    return false;
  const MYSQL_TIME *clock= moment.get_mysql_time();
  if (!clock->year || !clock->month || !clock->day)
    return false;
  uint error= 0;
  *seconds= TIME_to_timestamp(thd, clock, &error);
  *micros= clock->second_part;
  if (error || !is_far_from_changes(thd->variables.time_zone, *seconds))
    return false;
  /* The 30 of February is a moment to nobody but the conversion. */
  MYSQL_TIME shown;
  thd->variables.time_zone->gmt_sec_to_TIME(&shown, *seconds);
  return shown.month == clock->month && shown.day == clock->day && shown.hour == clock->hour && shown.minute == clock->minute &&
         shown.second == clock->second;
}

/* Days, counted as calc_daynr does. */
struct Days
{
  long first= 0, next= 0;
};

/* These days are of moments that a TIMESTAMP can have, and of no other year than clocks show with four digits. */
const uint YEAR_MIN= 1971, YEAR_MAX= 2036;

bool is_usual(uint year) { return year >= YEAR_MIN && year <= YEAR_MAX; }

bool days_of_year(THD *thd, Item *constant, Days *days)
{
  if (constant->cmp_type() != INT_RESULT)
    return false;
  Silent_evaluation evaluation(thd);
  const longlong year= constant->val_int();
  if (!evaluation.is_silent() || constant->null_value || year < YEAR_MIN || year > YEAR_MAX)
    return false;
  *days= Days{calc_daynr(uint(year), 1, 1), calc_daynr(uint(year) + 1, 1, 1)};
  return true;
}

/* Days behind the end of their month are counted as those of the next one: they bound nothing. */
bool has_day(uint year, uint month, uint day)
{
  return day <= days_in_month[month - 1] + uint(month == 2 && calc_days_in_year(year) == 366);
}

bool days_of_date(THD *thd, Item *constant, Days *days)
{
  Silent_evaluation evaluation(thd);
  const Datetime moment(thd, constant, Datetime::Options_cmp(thd));
  if (!evaluation.is_silent() || constant->null_value || !moment.is_valid_datetime())
    return false;
  const MYSQL_TIME *clock= moment.get_mysql_time();
  if (!is_usual(clock->year) || !clock->month || !clock->day || !has_day(clock->year, clock->month, clock->day))
    return false;
  const long day= calc_daynr(clock->year, clock->month, clock->day);
  *days= Days{day, day + 1};
  return true;
}

/* Reads a number of so many digits. */
bool read_digits(const char **at, const char *end, uint digits, uint *number)
{
  *number= 0;
  for (; digits; digits--, ++*at)
  {
    if (*at == end || **at < '0' || **at > '9')
      return false;
    *number= *number * 10 + uint(**at - '0');
  }
  return true;
}

/* The days of which DATE_FORMAT with %Y, %m and %d, as far as it has them, makes this text. */
bool days_of_text(const String &format, const String &text, Days *days)
{
  uint year= 0, month= 0, day= 0;
  const char *at= text.ptr(), *const end= at + text.length();
  const char *of= format.ptr(), *const of_end= of + format.length();
  for (; of != of_end; of++)
  {
    if (*of != '%')
    {
      if (at == end || *at++ != *of)
        return false;
      continue;
    }
    const char part= ++of == of_end ? '\0' : *of;
    const bool is_read= (part == 'Y' && !year && read_digits(&at, end, 4, &year)) || (part == 'm' && !month && read_digits(&at, end, 2, &month)) ||
                        (part == 'd' && !day && read_digits(&at, end, 2, &day));
    if (!is_read)
      return false;
  }
  if (at != end || !is_usual(year) || month > 12 || (day && (!month || !has_day(year, month, day))))
    return false;
  days->first= calc_daynr(year, month ? month : 1, day ? day : 1);
  days->next= day ? days->first + 1 : month % 12 ? calc_daynr(year, month + 1, 1) : calc_daynr(year + 1, 1, 1);
  return true;
}

bool days_of_format(THD *thd, const Item_func *function, Item *constant, Days *days)
{
  Item *const format= function->arguments()[1];
  if (function->argument_count() != 2 || !format->basic_const_item() || constant->cmp_type() != STRING_RESULT)
    return false;
  Silent_evaluation evaluation(thd);
  StringBuffer<STRING_BUFFER_USUAL_SIZE> format_buffer, buffer;
  const String *const of= format->val_str(&format_buffer);
  const String *const text= constant->val_str(&buffer);
  const auto is_plain= [](const String *one) { return one && one->charset()->mbminlen == 1; };
  return evaluation.is_silent() && is_plain(of) && is_plain(text) && days_of_text(*of, *text, days);
}

} // namespace

/* A bound of a column of moments, which is a day. */
void Select_translator::bound_moment(PandoComparison side, long day, const Said &column, std::string *to)
{
  static const long EPOCH= 719528, DAY= 86400;
  __int128 number= __int128(day - EPOCH) * DAY << (8 * fraction_bytes(column.kind.of));
  if (column.kind.tag != Value_kind::STAMP)
  {
    MYSQL_TIME time;
    set_zero_time(&time, MYSQL_TIMESTAMP_DATETIME);
    get_date_from_daynr(day, &time.year, &time.month, &time.day);
    const bool is_date= column.kind.tag == Value_kind::DATE;
    number= is_date ? __int128(time.year * 16 + time.month) * 32 + time.day : __int128(TIME_to_longlong_datetime_packed(&time));
  }
  B::compare(to, side);
  *to+= column.bytes;
  put_number(to, number, column.kind);
}

/* DATE and YEAR of a TIMESTAMP are the server's code, as it knows what clocks show, and so is DATE_FORMAT. What these are compared with says of the column itself,
   to some days, in which segments it need not be looked for. `to`: the comparison, which is said from `begin` on; the bounds come before it. */
void Select_translator::bound_days(PandoComparison comparison, Item *computed, Item *constant, size_t begin, std::string *to)
{
  static const long SLACK= 2; /* Clocks of a zone are up to 14 hours from UTC. */
  const Item *real= computed->real_item();
  if (!m_is_condition || !m_looks_at_rows || m_is_in_having || real->type() != Item::FUNC_ITEM || (real->used_tables() & OUTER_REF_TABLE_BIT) ||
      m_thd->variables.sql_mode & (MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE))
    return;
  const Item_func *function= static_cast<const Item_func *>(real);
  const bool is_format= is_one_of(function, {"date_format"});
  const bool is_equal= comparison == PANDO_COMPARISON_EQUAL || comparison == PANDO_COMPARISON_SAME;
  /* The order of texts need not be that of moments. */
  if ((is_format ? !is_equal : !is_one_of(function, {"year", "cast_as_date"})) || function->arguments()[0]->type() != Item::FIELD_ITEM)
    return;
  constant= without_cache(constant);
  Days days;
  const bool is_known= is_format ? days_of_format(m_thd, function, constant, &days) : is_one_of(function, {"year"}) ?
    days_of_year(m_thd, constant, &days) : days_of_date(m_thd, constant, &days);
  if (!is_known)
    return;
  const char *const why= reason;
  Said column;
  const bool is_said= column_of_source(static_cast<Item_field *>(function->arguments()[0])->field, &column);
  reason= why;
  const bool is_stamp= column.kind.tag == Value_kind::STAMP;
  if (!is_said || (!is_stamp && !(is_format && (column.kind.tag == Value_kind::DATE || column.kind.tag == Value_kind::DATETIME))))
    return;
  const bool from= is_equal || comparison == PANDO_COMPARISON_GREATER || comparison == PANDO_COMPARISON_GREATER_OR_EQUAL;
  const bool below= is_equal || comparison == PANDO_COMPARISON_LESS || comparison == PANDO_COMPARISON_LESS_OR_EQUAL;
  if (!from && !below)
    return;
  std::string all;
  B::list(&all, PANDO_TAG_AND, uint(from) + uint(below) + 1);
  if (from)
    bound_moment(PANDO_COMPARISON_GREATER_OR_EQUAL, days.first - SLACK, column, &all);
  if (below)
    bound_moment(PANDO_COMPARISON_LESS, days.next + SLACK, column, &all);
  to->insert(begin, all);
}

/* False: it is nothing of the kind, and nothing has been said. */
bool Select_translator::stamp_with_constant(PandoComparison comparison, Item *first, Item *second, std::string *to)
{
  const bool is_constant_1= is_constant(first), is_constant_2= is_constant(second);
  if (is_constant_1 == is_constant_2)
    return false;
  Field *const field= stamp_of(is_constant_1 ? second : first);
  if (!field)
    return false;
  Item *const constant= without_cache(is_constant_1 ? first : second);
  my_time_t seconds= 0;
  ulong micros= 0;
  if (!moment_itself(m_thd, constant, &seconds, &micros) && !moment_of(m_thd, constant, &seconds, &micros))
    return false;
  const char *const why= reason;
  Said column;
  if (!column_of_source(field, &column) || column.kind.tag != Value_kind::STAMP)
  {
    reason= why;
    return false;
  }
  if (is_constant_1)
    comparison= swapped(comparison);
  const uint decimals= column.kind.of;
  const ulong unit= unit_of_fraction(decimals);
  /* Between two values of the column: it is compared with the one before. */
  if (micros % unit)
  {
    switch (comparison)
    {
    case PANDO_COMPARISON_LESS:
    case PANDO_COMPARISON_LESS_OR_EQUAL:
      comparison= PANDO_COMPARISON_LESS_OR_EQUAL;
      break;
    case PANDO_COMPARISON_GREATER:
    case PANDO_COMPARISON_GREATER_OR_EQUAL:
      comparison= PANDO_COMPARISON_GREATER;
      break;
    default:
      return false;
    }
  }
  B::compare(to, comparison);
  *to+= column.bytes;
  put_number(to, (__int128(seconds) << (8 * fraction_bytes(decimals))) + micros / unit, column.kind);
  return true;
}

} // namespace pando
