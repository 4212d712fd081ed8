/* What a table costs a statement, for ANALYZE FORMAT=JSON (r_engine_stats) and the slow log. Pages are blocks: segments or
   single columns of them, pages of filters and indexes. */
#ifndef PANDO_COUNTED_CALL_H
#define PANDO_COUNTED_CALL_H

#include "plugin.h"

namespace pando {

/* While it lives, the blocks that the engine asks for in this thread count for a handler, if the server wants to know. */
class Counted_call
{
public:
  explicit Counted_call(ha_handler_stats *stats) : m_stats(stats && stats->active ? stats : nullptr)
  {
    if (unlikely(m_stats != nullptr))
      m_before= pando_thread_accesses();
  }

  ~Counted_call()
  {
    if (likely(m_stats == nullptr))
      return;
    const PandoAccesses after= pando_thread_accesses();
    m_stats->pages_accessed+= after.blocks - m_before.blocks;
    m_stats->pages_read_count+= after.reads - m_before.reads;
    m_stats->pages_prefetched+= after.blocks_ahead - m_before.blocks_ahead;
    m_stats->pages_read_time+=
      ulonglong(double(after.read_time - m_before.read_time) * timer_tracker_frequency() / 1e6);
  }

  Counted_call(const Counted_call &)= delete;
  Counted_call &operator=(const Counted_call &)= delete;

private:
  ha_handler_stats *m_stats;
  PandoAccesses m_before;
};

}

#endif
