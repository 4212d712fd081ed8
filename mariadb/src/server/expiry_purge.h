/* Removes rows that have expired (expiry.h): now and then, in a thread of its own, by DELETEs of this server that its binary log does not have.

   Each server removes its own rows. A replica removes what had expired at the source's time that it has come to (replica_time.h), and nothing while it
   does not follow: a row event of the source may still change the row. pando_ttl_delay is how far events may come in another order than their
   times.

   A DELETE names a limit that was computed before. It does nothing unless the table's TTL still gives that limit when it is open. */
#ifndef PANDO_EXPIRY_PURGE_H
#define PANDO_EXPIRY_PURGE_H

#include "expiry.h"

namespace pando {

class Expiry_purge
{
public:
  /* Once the server's tables can be opened; and before the plugin goes. */
  static void start();
  static void stop();
  /* To look at once, because a variable has another value. */
  static void wake();

  /* A table may have another name, or another TTL, or is new: those with TTL are looked for; or only if there are some. */
  static void look_for_tables(bool if_any= false);

  /* A table has been opened. */
  static void note(const TABLE_SHARE *share, const Expiry *expiry);

  /* What this thread is about to remove; null, but in the thread that does it. */
  static const Expiry_purge *of_thread();
  /* Whether it is what the table's TTL says. */
  bool is_of(const Expiry *expiry) const;

  static ulonglong rows_removed();

private:
  friend class Expiry_purger;

  my_time_t m_now= 0;
  std::string m_column, m_limit;
};

} // namespace pando

#endif
