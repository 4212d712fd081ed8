/* Moments that stand for others, of which the server's functions say the same. */
#ifndef PANDO_MOMENT_FLOOR_H
#define PANDO_MOMENT_FLOOR_H

#include "server.h"

namespace pando {

class Day_offsets;

struct Moment_floor
{
  /* How far a function looks; ALL: nothing stands for anything else. */
  enum Unit : uint8_t { DAY, HOUR, MINUTE, SECOND, ALL };

  Moment_floor(Unit unit, Time_zone *zone, uint decimals, int64_t since);
  ~Moment_floor();
  Moment_floor(const Moment_floor &) = delete;
  Moment_floor &operator=(const Moment_floor &) = delete;

  const Unit unit;
  /* Of TIMESTAMPs: where clocks show them, and digits behind the point. Null: of DATETIMEs. */
  Time_zone *const zone;
  const uint decimals;
  /* Of DATETIMEs: those before stand for themselves. */
  const int64_t since;

  /* The first moment of the same day, hour and so on, or another one in it: as the engine has both. */
  int64_t of(int64_t moment) const { return zone ? of_stamp(moment) : of_clock(moment); }

private:
  int64_t of_clock(int64_t moment) const;
  int64_t of_stamp(int64_t stamp) const;

  Day_offsets *m_offsets;
};

} // namespace pando

#endif
