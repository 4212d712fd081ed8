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

/* The first days, counted as calc_daynr does, that a clock shows of what DATE or YEAR of a moment is compared with, and of what comes behind it. */
bool days_of_constant(THD *thd, const Item_func *computed, Item *constant, long *first, long *next)
{
  static const longlong YEAR_MIN= 1971, YEAR_MAX= 2036; /* TIMESTAMPs are of these, and of parts of those around them. */
  Silent_evaluation evaluation(thd);
  if (is_one_of(computed, {"year"}))
  {
    if (constant->cmp_type() != INT_RESULT)
      return false;
    const longlong year= constant->val_int();
    if (!evaluation.is_silent() || constant->null_value || year < YEAR_MIN || year > YEAR_MAX)
      return false;
    *first= calc_daynr(uint(year), 1, 1);
    *next= calc_daynr(uint(year) + 1, 1, 1);
    return true;
  }
  if (!is_one_of(computed, {"cast_as_date"}))
    return false;
  const Datetime moment(thd, constant, Datetime::Options_cmp(thd));
  if (!evaluation.is_silent() || constant->null_value || !moment.is_valid_datetime())
    return false;
  const MYSQL_TIME *clock= moment.get_mysql_time();
  if (clock->year < YEAR_MIN || clock->year > YEAR_MAX || !clock->month || !clock->day)
    return false;
  *first= calc_daynr(clock->year, clock->month, clock->day);
  *next= *first + 1;
  return true;
}

} // namespace

/* DATE and YEAR of a TIMESTAMP are the server's code: it knows what clocks show. What they are compared with says of the TIMESTAMP itself, to some days, in which
   segments it need not be looked for. `to`: the comparison, which is said from `begin` on; the bounds come before it. */
void Select_translator::bound_stamp(PandoComparison comparison, Item *computed, Item *constant, size_t begin, std::string *to)
{
  static const long EPOCH= 719528, SLACK= 2, DAY= 86400;
  const Item *real= computed->real_item();
  if (real->type() != Item::FUNC_ITEM || m_thd->variables.sql_mode & (MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE))
    return;
  const Item_func *function= static_cast<const Item_func *>(real);
  Field *const field= function->argument_count() == 1 ? stamp_of(function->arguments()[0]) : nullptr;
  long first= 0, next= 0;
  if (!field || !days_of_constant(m_thd, function, without_cache(constant), &first, &next))
    return;
  const char *const why= reason;
  Said column;
  const bool is_said= column_of_source(field, &column) && column.kind.tag == Value_kind::STAMP;
  reason= why;
  if (!is_said)
    return;
  const bool is_equal= comparison == PANDO_COMPARISON_EQUAL || comparison == PANDO_COMPARISON_SAME;
  const bool from= is_equal || comparison == PANDO_COMPARISON_GREATER || comparison == PANDO_COMPARISON_GREATER_OR_EQUAL;
  const bool below= is_equal || comparison == PANDO_COMPARISON_LESS || comparison == PANDO_COMPARISON_LESS_OR_EQUAL;
  if (!from && !below)
    return;
  const auto bound= [&](PandoComparison side, long day, std::string *said) {
    B::compare(said, side);
    *said+= column.bytes;
    put_number(said, __int128(day - EPOCH) * DAY << (8 * fraction_bytes(column.kind.of)), column.kind);
  };
  std::string all;
  B::list(&all, PANDO_TAG_AND, uint(from) + uint(below) + 1);
  if (from)
    bound(PANDO_COMPARISON_GREATER_OR_EQUAL, first - SLACK, &all);
  if (below)
    bound(PANDO_COMPARISON_LESS, next + SLACK, &all);
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
