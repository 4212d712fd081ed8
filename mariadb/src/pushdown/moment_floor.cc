/* DATE(d), WEEK(d) and DATE_FORMAT(d, '%Y-%m') look at nothing beyond the day: the server is asked of the day's first moment, and its
   answer holds for all of the day (crates/analytic/src/moments.rs). */
#include "select_translate.h"
#include "select_silence.h"
#include "zone_offset.h"

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
  const int64_t date= moment >> BITS_BELOW[DAY];
  const bool has_day= date & ((1 << BITS_OF_DAY) - 1), has_month= (date >> BITS_OF_DAY) % MONTHS;
  /* With zeros in its date it may be nothing but a time, or not be valid. */
  return has_day && has_month ? moment >> BITS_BELOW[unit] << BITS_BELOW[unit] : moment;
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

Moment_floor::Moment_floor(Unit unit_arg, Time_zone *zone_arg, uint decimals_arg)
  : unit(unit_arg), zone(zone_arg), decimals(decimals_arg), m_offsets(zone_arg ? new Day_offsets(zone_arg) : nullptr) {}

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

/* How far a function looks at an argument that is a DATETIME or a TIMESTAMP. */
Moment_floor::Unit unit_of(const Item_func *function, uint argument)
{
  if (argument)
    return Moment_floor::ALL;
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

/* How far an expression looks at a leaf of it. */
uint unit_in(Item **place, const Server_leaf &leaf, uint depth= 0)
{
  static const uint DEPTH_MAX= 64;
  Item *item= *place;
  if (depth > DEPTH_MAX)
    return Moment_floor::ALL;
  if (leaf.is_at(place))
    return Moment_floor::ALL;
  uint unit= Moment_floor::DAY;
  const auto add= [&](Item **part) { unit= std::max(unit, unit_in(part, leaf, depth + 1)); };
  switch (item->type())
  {
  case Item::FIELD_ITEM:
  {
    Field *field= static_cast<Item_field *>(item)->field;
    if (leaf.is_of(field))
      return Moment_floor::ALL;
    if (!field->stored_in_db() && field->vcol_info && field->vcol_info->expr)
      add(&field->vcol_info->expr);
    return unit;
  }
  case Item::REF_ITEM:
    if (!static_cast<Item_ref *>(item)->ref)
      return Moment_floor::ALL;
    add(static_cast<Item_ref *>(item)->ref);
    return unit;
  case Item::FUNC_ITEM:
  {
    Item_func *function= static_cast<Item_func *>(item);
    for (uint i= 0; i < function->argument_count(); i++)
    {
      Item **argument= function->arguments() + i;
      Item *of= (*argument)->real_item();
      const bool is_it= leaf.is_at(argument) || (of->type() == Item::FIELD_ITEM && leaf.is_of(static_cast<Item_field *>(of)->field));
      if (is_it)
        unit= std::max<uint>(unit, unit_of(function, i));
      else
        add(argument);
    }
    return unit;
  }
  case Item::COND_ITEM:
  {
    List_iterator<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    while (parts++)
      add(parts.ref());
    return unit;
  }
  default:
    return item->basic_const_item() ? Moment_floor::DAY : Moment_floor::ALL;
  }
}

} // namespace

void Select_translator::floor_leaves(Server_expression *served)
{
  /* What it says of a value has the value in it. */
  if (served->may_warn || served->may_fail)
    return;
  for (size_t i= 0; i < served->leaves.size(); i++)
  {
    const Value_kind &kind= served->leaves[i].kind();
    const bool is_stamp= kind.tag == Value_kind::STAMP;
    if (!is_stamp && kind.tag != Value_kind::DATETIME)
      continue;
    const uint unit= unit_in(served->place(), served->leaves[i]);
    if (unit >= Moment_floor::ALL)
      continue;
    Time_zone *const zone= is_stamp ? m_thd->variables.time_zone : nullptr;
    const uint decimals= is_stamp ? kind.of : 0;
    const auto is_known= [&](const Moment_floor &one) { return one.unit == unit && one.zone == zone && one.decimals == decimals; };
    const auto known= std::find_if(m_floors.begin(), m_floors.end(), is_known);
    std::string bytes;
    B::byte(&bytes, PANDO_TAG_FLOOR);
    B::small(&bytes, uint32_t(std::distance(m_floors.begin(), known)));
    if (known == m_floors.end())
    {
      m_floors.emplace_back(Moment_floor::Unit(unit), zone, decimals);
      floors.push_back(&m_floors.back());
    }
    served->said[i].insert(0, bytes);
  }
}

} // namespace pando
