/* How clocks stand to UTC. */
#ifndef PANDO_ZONE_OFFSET_H
#define PANDO_ZONE_OFFSET_H

#include "server.h"

namespace pando {

/* How many seconds the zone's clocks are ahead of UTC then. */
longlong offset_at(Time_zone *zone, my_time_t moment);

/* Whether no clock is set within hours of the moment, before or after: then other moments are before it, or behind, just as clocks show it. */
bool is_far_from_changes(Time_zone *zone, my_time_t moment);

} // namespace pando

#endif
