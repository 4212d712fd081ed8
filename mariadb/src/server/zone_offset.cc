#include "zone_offset.h"

#include <sql_time.h>
#include <tztime.h>

namespace pando {

longlong offset_at(Time_zone *zone, my_time_t moment)
{
  MYSQL_TIME clock;
  zone->gmt_sec_to_TIME(&clock, moment);
  const longlong days= longlong(calc_daynr(clock.year, clock.month, clock.day)) - longlong(calc_daynr(1970, 1, 1));
  return ((days * 24 + clock.hour) * 60 + clock.minute) * 60 + clock.second - longlong(moment);
}

bool is_far_from_changes(Time_zone *zone, my_time_t moment)
{
  /* Clocks are set by less. */
  const my_time_t hours= 4 * 3600;
  if (moment <= hours || moment >= my_time_t(INT_MAX32) - hours)
    return false;
  const longlong before= offset_at(zone, moment - hours);
  return before == offset_at(zone, moment) && before == offset_at(zone, moment + hours);
}

} // namespace pando
