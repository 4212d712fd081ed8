/* The transaction of a connection, and the part of the handlerton that ends it. */
#ifndef PANDO_TRANSACTION_H
#define PANDO_TRANSACTION_H

#include "plugin.h"
#include "replication.h"
#include "select_report.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

class ha_pando;

namespace pando {

struct Foreign_key_definition;

/* Handlers whose first rows of a bulk insert can still be undone, and the copies of these that all of them have. */
struct Trials
{
  std::vector<ha_pando *> handlers;
  uint64_t rows= 0;
  uint64_t bytes= 0;
};

/* One for each connection that has used the engine; kept in the connection's ha_data. */
class Transaction
{
public:
  explicit Transaction(THD *thd);
  ~Transaction();
  Transaction(const Transaction &) = delete;
  Transaction &operator=(const Transaction &) = delete;

  /* The connection's; made on first use. */
  static Transaction *of(THD *thd);
  static Transaction *if_any(THD *thd);

  PandoTxn *txn() { return m_txn; }
  uint64_t id() const { return m_id; }
  /* What was prepared is somebody else's business: the user's, until it is taken back to commit it or to roll it
     back; or it stays prepared, as its commit has failed. */
  bool is_bereft() const { return pando_txn_id(m_txn) != m_id; }
  enum_tx_isolation isolation() const { return m_isolation; }

  /* How the last SELECT of the connection that the engine answered whole was answered. */
  std::vector<Plan_line> last_plan;

  /* Before a statement that locks rows. */
  void will_lock() { m_participant->enter(); }
  /* For reports: what its connection knows. From any thread, within for_each. */
  struct About
  {
    my_thread_id thread_id= 0;
    enum_tx_isolation isolation= ISO_REPEATABLE_READ;
    uint tables_in_use= 0;
    bool read_only= false;
    std::string query;
    CHARSET_INFO *charset= system_charset_info;
    std::string foreign_key; /* for which it looks up a row; empty: for none */
  };
  void set_foreign_key(const Foreign_key_definition *key)
  {
    std::lock_guard<std::mutex> guard(m_foreign_key_mutex);
    m_foreign_key= key;
  }
  void about(About *about, size_t query_bytes_max) const;
  /* Calls it for the transactions of all connections, none of which goes away meanwhile. */
  static void for_each(const std::function<void(Transaction *)> &call);

  /* A table is taken into use by a statement: tells the server that this engine takes part. */
  void begin_table();
  /* A table of a statement inside LOCK TABLES or a function, which has been taken before. */
  void register_with_server();
  /* The last of these ends the statement for reads: in READ COMMITTED its snapshot goes. Outside of a
     transaction a statement that only read is over. */
  void end_table();
  /* Before a statement with tables that stay in use (LOCK TABLES): a kill of the one before is over. */
  void forget_kill();
  /* Before the first table of a statement: its isolation level and lock wait timeout. */
  void prepare_statement();
  /* Locking reads of this statement exclude phantoms, whatever the isolation level. */
  void take_gaps() { pando_txn_set_takes_gaps(m_txn, true); }

  /* First phase of a commit that the server coordinates, or of the user's XA. */
  int prepare(bool whole);
  int commit(bool whole);
  void rollback(bool whole);
  uint64_t mark() { return pando_txn_mark(m_txn); }
  void rollback_to(uint64_t mark);
  /* The key in which the table's last duplicate was met; `otherwise` if it was another table's. */
  void met_duplicate(const TABLE_SHARE *share, uint index) { m_duplicate_share= share, m_duplicate_index= index; }
  uint duplicate_index(const TABLE_SHARE *share, uint otherwise) const
  {
    return share == m_duplicate_share ? m_duplicate_index : otherwise;
  }
  /* The constraint that has refused a row last, for the server's message; and where a cascade has met a duplicate key. */
  void set_refusal(const char *text, size_t size) { m_refusal.assign(text, size), m_unopened_error= 0; }
  const std::string &refusal() const { return m_refusal; }
  /* Or what the table of a constraint cannot be opened for, and the error that tells so; 0: nothing. */
  void set_unopened(int error, const std::string &why) { m_refusal= why, m_unopened_error= error; }
  int unopened_error() const { return m_unopened_error; }
  void set_refusing_key(const char *table, const char *key) { m_refusing_table= table, m_refusing_key= key; }
  bool refusing_key(char *table, size_t table_size, char *key, size_t key_size) const
  {
    strmake(table, m_refusing_table.c_str(), table_size - 1);
    strmake(key, m_refusing_key.c_str(), key_size - 1);
    return !m_refusing_table.empty();
  }
  /* Before the statement ends, this directory is synced. */
  void sync_at_end(std::string directory);
  /* The same for a statement that commits statements of its own (DROP DATABASE: in mysql.proc and mysql.event) before it is done. */
  void sync_at_implicit_commit(std::string directory);
  void sync_directories(bool whole);
  /* The statement renames, and may take it back until it ends: its number for the engine. */
  uint64_t may_rename_back();
  void end_ways_back();
  /* Handlers whose first rows of a bulk insert can still be undone. */
  Trials *trials() { return &m_trials; }

  /* When its plain reads are, for what expires with time: its first one says so, and later ones of the same snapshot keep to it. */
  my_time_t reads_at();

  /* Counts writes to a table, and to those others that share its counter. */
  uint64_t *writes_to(const std::string &path) { return &m_writes[std::hash<std::string>()(path) % WRITE_COUNTERS]; }

private:
  static const uint WRITE_COUNTERS= 64;

  void end_statement();
  bool is_multi_statement() const { return thd_test_options(m_thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN); }
  /* Before the end: what was of the transaction only. */
  void over();

  THD *m_thd;
  PandoTxn *m_txn;
  const uint64_t m_id;
  const std::shared_ptr<Participant> m_participant;
  Trials m_trials;
  const TABLE_SHARE *m_duplicate_share= nullptr; /* only compared */
  uint m_duplicate_index= 0;
  uint64_t m_writes[WRITE_COUNTERS]= {};
  mutable std::mutex m_foreign_key_mutex;
  const Foreign_key_definition *m_foreign_key= nullptr;
  /* To be synced at the end of the statement, and at that of the transaction. */
  std::vector<std::string> m_directories, m_directories_of_all;
  bool m_may_rename_back= false;
  std::string m_refusal, m_refusing_table, m_refusing_key;
  int m_unopened_error= 0;
  uint64_t m_statement_mark= 0;
  std::atomic<uint> m_tables_in_use{0}; /* written by its own thread only */
  my_time_t m_reads_at= 0; /* not known yet */
  bool m_has_statement_mark= false;
  bool m_is_prepared= false; /* by the user, and neither committed nor rolled back here */
  std::atomic<enum_tx_isolation> m_isolation{ISO_REPEATABLE_READ}; /* likewise */
  /* All of them are in a list. */
  Transaction *m_next= nullptr;
  Transaction *m_previous= nullptr;
};

void set_transaction_functions(handlerton *engine);

} // namespace pando

#endif
