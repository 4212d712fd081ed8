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
  /* Clocks are set back by less: by seven hours in Antarctica/Vostok in 1994, by three elsewhere. (Forward it was a day, where the date line
     was moved: no time comes twice then, nor in another order.) */
  const my_time_t hours= 8 * 3600, half= hours / 2;
  if (moment <= hours || moment >= my_time_t(INT_MAX32) - hours)
    return false;
  const longlong now= offset_at(zone, moment);
  for (my_time_t other= moment - hours; other <= moment + hours; other+= half)
    if (offset_at(zone, other) != now)
      return false;
  return true;
}

} // namespace pando
