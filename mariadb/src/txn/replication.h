/* What replication has to know of the engine's locks.

   A replica that applies transactions in parallel commits them in the order of the primary. A transaction
   that waits for its turn may hold a row that an earlier one needs, and then both wait for ever: one
   for a row, which only the engine knows, the other for its turn, which only the server knows. So the
   engine tells the server of every wait for a row (thd_rpl_deadlock_check), and the server kills the
   later transaction, to run it again. For the same reason the engine asks the server which member of a
   deadlock of its own should fall (thd_deadlock_victim_preference): only the later one helps.

   The server is told of connections, the engine knows numbers of transactions. Each Transaction has a
   Participant that others find by number. While a participant is active its connection is
   working on one transaction and its THD, with what replication keeps in it, can be looked at; leave()
   waits until nobody does. It is entered before a transaction takes its first lock, and left before its
   commit or rollback releases locks: whoever is not there any more is in nobody's way for long.

   Order of mutexes: the engine's detector of deadlocks, then one or two participants (the one with
   the smaller number first), then the server's. */
#ifndef PANDO_REPLICATION_H
#define PANDO_REPLICATION_H

#include "plugin.h"
#include <memory>
#include <mutex>

namespace pando {

class Participant
{
public:
  /* Others find it by the number of the transaction until forget(). */
  static std::shared_ptr<Participant> make(uint64_t id, THD *thd);
  void forget();

  /* The transaction may take locks from now on. Nothing if nobody wants to hear of waits. */
  void enter();
  /* Its locks are about to be released. */
  void leave();
  /* It waits; called by any connection. */
  void report_wait();

  Participant(uint64_t id, THD *thd) : m_id(id), m_thd(thd) {}

private:
  friend class Participants;
  const uint64_t m_id;
  THD *const m_thd;
  std::mutex m_mutex;
  bool m_active= false; /* written by the connection's own thread only */
};

/* Whether a statement that writes cannot go to the binary log as the session wants it; then the client has
   its error, which the server would give it too, but without the reason. */
bool refuse_binlog_format(THD *thd, bool statement_capable);

/* Last step of a prepare: keeps the order of commits where the server does not. In a replica it orders them when it
   writes its binary log, or when it calls one engine alone; a transaction of two engines that is not written to the
   binary log (log_slave_updates=OFF, binlog_ignore_db) it lets pass earlier ones (10.11.18; the same happens to InnoDB
   beside MyRocks). What the earlier one then commits, this one has not seen: an UPDATE would be lost. So it waits
   here, where it can still be rolled back if an earlier one needs what it has locked. Returns the server's error. */
int wait_for_turn(THD *thd);

void set_replication_functions(PandoOptions *options);

} // namespace pando

#endif
