/* DATE(d), WEEK(d) and DATE_FORMAT(d, '%Y-%m') look at nothing beyond the day: the server is asked of the day's first moment, and its
   answer holds for all of the day (crates/analytic/src/moments.rs). */
#include "select_translate.h"
#include "select_silence.h"
#include "zone_offset.h"

#include <sql_time.h>
#include <tztime.h>

#include <algorithm>
#include <atomic>

namespace pando {

using B= Select_bytes;

static const uint32_t SECONDS[]= {86400, 3600, 60, 1}; /* of a Moment_floor::Unit */

/* Bits of a packed DATETIME that are below a unit: hours have 5 bits, minutes and seconds 6, microseconds 24. */
static const uint BITS_BELOW[]= {41, 36, 30, 24};
static const uint BITS_OF_DAY= 5, MONTHS= 13;

int64_t Moment_floor::of_clock(int64_t moment) const
{
  static const uint SHORTEST_MONTH= 28;
  const int64_t date= moment >> BITS_BELOW[DAY];
  const uint day= date & ((1 << BITS_OF_DAY) - 1), month= (date >> BITS_OF_DAY) % MONTHS, year= uint((date >> BITS_OF_DAY) / MONTHS);
  /* With zeros in its date it may be nothing but a time, or not be valid. Of a day that the month does not have the server may warn, and shows all of it. */
  if (!day || !month || moment < since)
    return moment;
  if (day > SHORTEST_MONTH && day > days_in_month[month - 1] + uint(month == 2 && calc_days_in_year(year) == 366))
    return moment;
  return moment >> BITS_BELOW[unit] << BITS_BELOW[unit];
}

/* How far clocks of a zone are ahead, day by day (of UTC, from 1970 to the end of TIMESTAMP), once it has been asked for. */
class Day_offsets
{
public:
  explicit Day_offsets(Time_zone *zone) : m_zone(zone) {}
  /* False: clocks are set on the day that has this moment. */
  bool find(uint32_t moment, int32_t *offset)
  {
    std::atomic<int32_t> &known= m_known[moment / DAY];
    int32_t found= known.load(std::memory_order_relaxed);
    if (found == NOT_ASKED)
      known.store(found= of_day(moment / DAY), std::memory_order_relaxed);
    *offset= found - BASE;
    return found != CHANGES;
  }

private:
  static const uint32_t DAY= 86400, HOUR= 3600;
  static const int32_t NOT_ASKED= 0, CHANGES= 1, BASE= 1 << 20;

  /* Clocks are not set twice within an hour. */
  int32_t of_day(uint32_t day) const
  {
    const longlong begin= longlong(day) * DAY, offset= offset_at(m_zone, my_time_t(begin));
    for (uint32_t second= HOUR; second <= DAY; second+= HOUR)
      if (offset_at(m_zone, my_time_t(begin + second - 1)) != offset)
        return CHANGES;
    return int32_t(offset) + BASE;
  }

  Time_zone *const m_zone;
  std::atomic<int32_t> m_known[UINT_MAX32 / DAY + 1]= {};
};

Moment_floor::Moment_floor(Unit unit_arg, Time_zone *zone_arg, uint decimals_arg, int64_t since_arg)
  : unit(unit_arg), zone(zone_arg), decimals(decimals_arg), since(since_arg), m_offsets(zone_arg ? new Day_offsets(zone_arg) : nullptr) {}

Moment_floor::~Moment_floor() { delete m_offsets; }

int64_t Moment_floor::of_stamp(int64_t stamp) const
{
  const uint bits= 8 * my_timestamp_binary_length(decimals) - 32;
  const uint32_t seconds= uint32_t(stamp >> bits);
  int32_t offset= 0, offset_of_first= 0;
  if (!seconds || !m_offsets->find(seconds, &offset))
    return stamp;
  for (uint larger= unit; larger <= SECOND; larger++)
  {
    const uint32_t since= uint32_t((longlong(seconds) + offset + SECONDS[DAY]) % SECONDS[larger]);
    /* The first moment of all is not one: it is the zero date. Nor does one stand for another where clocks have been set in between. */
    if (since < seconds && m_offsets->find(seconds - since, &offset_of_first) && offset == offset_of_first)
      return int64_t(seconds - since) << bits;
  }
  return stamp;
}

namespace {

/* Of DATE_FORMAT. */
Moment_floor::Unit unit_of_format(const String *format)
{
  if (!format || format->charset()->mbminlen != 1 || (format->charset()->state & MY_CS_NONASCII))
    return Moment_floor::ALL;
  uint unit= Moment_floor::DAY;
  for (uint i= 0; i + 1 < format->length(); i++)
  {
    if ((*format)[i] != '%')
      continue;
    const char letter= (*format)[++i];
    if (!letter || strchr("f", letter))
      return Moment_floor::ALL;
    unit= std::max<uint>(unit, strchr("SsrT", letter)   ? Moment_floor::SECOND :
                               strchr("i", letter)      ? Moment_floor::MINUTE :
                               strchr("HhIklp", letter) ? Moment_floor::HOUR :
                               strchr("abcDdejMmUuVvWwXxYy%", letter) ? Moment_floor::DAY : Moment_floor::ALL);
  }
  return Moment_floor::Unit(unit);
}

Moment_floor::Unit unit_of_extract(interval_type type)
{
  switch (type)
  {
  case INTERVAL_YEAR:
  case INTERVAL_QUARTER:
  case INTERVAL_MONTH:
  case INTERVAL_WEEK:
  case INTERVAL_DAY:
  case INTERVAL_YEAR_MONTH:  return Moment_floor::DAY;
  case INTERVAL_HOUR:
  case INTERVAL_DAY_HOUR:    return Moment_floor::HOUR;
  case INTERVAL_MINUTE:
  case INTERVAL_DAY_MINUTE:
  case INTERVAL_HOUR_MINUTE: return Moment_floor::MINUTE;
  default:                   return Moment_floor::ALL;
  }
}

/* How far what is added to a moment looks at it: the clock goes on by whole units of these, or the date changes. */
Moment_floor::Unit unit_of_interval(interval_type type)
{
  switch (type)
  {
  case INTERVAL_YEAR:
  case INTERVAL_QUARTER:
  case INTERVAL_MONTH:
  case INTERVAL_WEEK:
  case INTERVAL_DAY:    return Moment_floor::DAY;
  case INTERVAL_HOUR:   return Moment_floor::HOUR;
  case INTERVAL_MINUTE: return Moment_floor::MINUTE;
  default:              return Moment_floor::ALL;
  }
}

Moment_floor::Unit unit_of_difference(interval_type type)
{
  return type == INTERVAL_SECOND ? Moment_floor::SECOND : type == INTERVAL_MICROSECOND ? Moment_floor::ALL : unit_of_interval(type);
}

bool is_moment_with_clock(const Item *item)
{
  return item->cmp_type() == TIME_RESULT && (item->field_type() == MYSQL_TYPE_DATETIME || item->field_type() == MYSQL_TYPE_TIMESTAMP);
}

/* How far an expression looks at a leaf of it. */
class Looks
{
public:
  Looks(THD *thd, const Server_leaf &leaf) : m_thd(thd), m_leaf(leaf) {}

  /* Moments before are looked at as a whole. */
  int64_t since= 0;

  /* Of an expression, if so much of its value is looked at. */
  uint at(Item **place, uint wanted, uint depth= 0)
  {
    static const uint DEPTH_MAX= 64;
    Item *item= *place;
    if (depth > DEPTH_MAX)
      return Moment_floor::ALL;
    if (m_leaf.is_at(place))
      return wanted;
    switch (item->type())
    {
    case Item::FIELD_ITEM:
    {
      Field *field= static_cast<Item_field *>(item)->field;
      if (m_leaf.is_of(field))
        return wanted;
      const bool is_virtual= !field->stored_in_db() && field->vcol_info && field->vcol_info->expr;
      return is_virtual ? at(&field->vcol_info->expr, Moment_floor::ALL, depth + 1) : uint(Moment_floor::DAY);
    }
    case Item::REF_ITEM:
      if (!static_cast<Item_ref *>(item)->ref)
        return Moment_floor::ALL;
      return at(static_cast<Item_ref *>(item)->ref, wanted, depth + 1);
    case Item::FUNC_ITEM:
    {
      Item_func *function= static_cast<Item_func *>(item);
      uint unit= Moment_floor::DAY;
      for (uint i= 0; i < function->argument_count(); i++)
        unit= std::max(unit, at(function->arguments() + i, of_argument(function, i, wanted), depth + 1));
      return unit;
    }
    case Item::COND_ITEM:
    {
      uint unit= Moment_floor::DAY;
      List_iterator<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
      while (parts++)
        unit= std::max(unit, at(parts.ref(), Moment_floor::ALL, depth + 1));
      return unit;
    }
    default:
      return item->basic_const_item() ? Moment_floor::DAY : Moment_floor::ALL;
    }
  }

private:
  /* How far a function looks at an argument. All but these look at all of it, and may say in a warning what it is. */
  uint of_argument(const Item_func *function, uint argument, uint wanted)
  {
    if (!is_moment_with_clock(function->arguments()[argument]))
      return Moment_floor::ALL;
    if (is_one_of(function, {"timestampdiff"}))
      return of_difference(function, argument);
    if (argument)
      return Moment_floor::ALL;
    if (is_one_of(function, {"date_add_interval"}))
      return std::max<uint>(wanted, unit_of_interval(static_cast<const Item_date_add_interval *>(function)->int_type));
    return of_first(function);
  }

  static Moment_floor::Unit of_first(const Item_func *function)
  {
    if (is_one_of(function, {"year", "quarter", "month", "week", "yearweek", "dayofmonth", "dayofyear", "dayofweek", "weekday", "to_days",
                             "dayname", "monthname", "last_day", "cast_as_date"}))
      return Moment_floor::DAY;
    if (is_one_of(function, {"hour"}))
      return Moment_floor::HOUR;
    if (is_one_of(function, {"minute"}))
      return Moment_floor::MINUTE;
    if (is_one_of(function, {"second"}))
      return Moment_floor::SECOND;
    if (function->functype() == Item_func::EXTRACT_FUNC)
      return unit_of_extract(static_cast<const Item_extract *>(function)->int_type);
    if (is_one_of(function, {"date_format"}) && function->arguments()[1]->basic_const_item())
    {
      StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
      return unit_of_format(function->arguments()[1]->val_str(&buffer));
    }
    return Moment_floor::ALL;
  }

  /* TIMESTAMPDIFF is cut towards zero. So from a constant midnight the time of day below the unit does not count, but only afterwards. */
  uint of_difference(const Item_func *function, uint argument)
  {
    Item *const from= function->arguments()[0];
    if (argument != 1 || !from->basic_const_item() || m_leaf.kind().tag != Value_kind::DATETIME)
      return Moment_floor::ALL;
    Silent_evaluation evaluation(m_thd);
    const Datetime moment(m_thd, from, Datetime::Options_cmp(m_thd));
    if (!evaluation.is_silent() || !moment.is_valid_datetime())
      return Moment_floor::ALL;
    const MYSQL_TIME *time= moment.get_mysql_time();
    if (!time->year || !time->month || !time->day || time->hour || time->minute || time->second || time->second_part)
      return Moment_floor::ALL;
    /* What is added in between may lead behind it. */
    Item *const of= function->arguments()[1]->real_item();
    if (of->type() != Item::FIELD_ITEM)
      return Moment_floor::ALL;
    since= std::max<int64_t>(since, TIME_to_longlong_datetime_packed(time));
    return unit_of_difference(static_cast<const Item_func_timestamp_diff *>(function)->get_int_type());
  }

  THD *const m_thd;
  const Server_leaf &m_leaf;
};

} // namespace

void Select_translator::floor_leaves(Server_expression *served)
{
  for (size_t i= 0; i < served->leaves.size(); i++)
  {
    const Value_kind &kind= served->leaves[i].kind();
    const bool is_stamp= kind.tag == Value_kind::STAMP;
    if (!is_stamp && kind.tag != Value_kind::DATETIME)
      continue;
    Looks looks(m_thd, served->leaves[i]);
    const uint unit= looks.at(served->place(), Moment_floor::ALL);
    if (unit >= Moment_floor::ALL)
      continue;
    Time_zone *const zone= is_stamp ? m_thd->variables.time_zone : nullptr;
    const uint decimals= is_stamp ? kind.of : 0;
    const auto is_known= [&](const Moment_floor &one) { return one.unit == unit && one.zone == zone && one.decimals == decimals && one.since == looks.since; };
    const auto known= std::find_if(m_floors.begin(), m_floors.end(), is_known);
    std::string bytes;
    B::byte(&bytes, PANDO_TAG_FLOOR);
    B::small(&bytes, uint32_t(std::distance(m_floors.begin(), known)));
    if (known == m_floors.end())
    {
      m_floors.emplace_back(Moment_floor::Unit(unit), zone, decimals, looks.since);
      floors.push_back(&m_floors.back());
    }
    served->said[i].insert(0, bytes);
  }
}

} // namespace pando
