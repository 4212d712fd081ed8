/* How far this server, as a replica, has come in time, by the clock of the source that it follows.

   Its own clock, less Seconds_Behind_Master, is not that: the source's may differ, and a replica whose SQL thread has nothing to do is 0
   seconds behind however late the source's events come. So it is the time of the newest event that was applied. Where nothing comes, it is
   also the source's clock at the last look before a sign of life that told of nothing new: a heartbeat, or events that this server itself has
   made (servers that follow each other). */
#ifndef PANDO_REPLICA_TIME_H
#define PANDO_REPLICA_TIME_H

#include "server.h"

#include <map>

class Master_info;

namespace pando {

/* Used by one thread, which looks now and then. */
class Replica_time
{
public:
  /* Makes `now` earlier where a source is followed. False: nobody knows, because one is not followed, or nothing has come from it yet. */
  bool limit(my_time_t *now);

private:
  struct Followed
  {
    my_time_t reached= 0;     /* what the source had changed until then is here */
    my_time_t looked= 0;      /* the source's clock at the last look */
    std::string relay_log;    /* where the SQL thread was then */
    ulonglong relay_position= 0;
    ulonglong heartbeats= 0, source_position= 0;
  };

  my_time_t reached(Master_info *source);

  std::map<std::string, Followed> m_sources; /* by connection and server */
};

} // namespace pando

#endif
