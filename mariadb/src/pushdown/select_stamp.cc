/* A TIMESTAMP compared with a constant, said in the engine's words.

   The server compares what a clock of the session's time zone shows of both. The engine compares moments. That is the same unless
   clocks were set near the constant: then times that clocks show come twice, or never, and are not in the order of moments. */
#include "select_translate.h"
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

} // namespace

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
