/* Shows the engine's threads, files and memory, and the plugin's mutexes, in the server's performance schema. */
#ifndef PANDO_PERFORMANCE_SCHEMA_H
#define PANDO_PERFORMANCE_SCHEMA_H

#include "server.h"

namespace pando {

/* Before the database is opened. */
void observe_engine();

/* A thread of the plugin begins; ends. */
void begin_expiry_thread();
void end_thread();

/* A mutex that the performance schema shows; for std::lock_guard. Not to be used before observe_engine(). */
class Observed_mutex
{
public:
  void init(PSI_mutex_key key) { mysql_mutex_init(key, &m_mutex, MY_MUTEX_INIT_FAST); }
  void lock() { mysql_mutex_lock(&m_mutex); }
  void unlock() { mysql_mutex_unlock(&m_mutex); }

private:
  mysql_mutex_t m_mutex;
};

/* That of the list of all connections' transactions; that of tables that are kept open for foreign keys. */
extern Observed_mutex transactions_mutex, related_tables_mutex;

} // namespace pando

#endif
