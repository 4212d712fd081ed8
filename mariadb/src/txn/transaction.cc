#include "transaction.h"
#include "foreign_key.h"
#include "performance_schema.h"
#include "server_files.h"
#include "backup.h"
#include "variables.h"
#include "two_phase.h"

#include <algorithm>
#include <mutex>

/* The server's; no header has it. */
extern "C" size_t thd_query_safe(MYSQL_THD thd, char *buffer, size_t size);

namespace pando {

/* Changes only when connections come and go. Held while reports ask them; nothing else is asked for then
   but the query of a connection, which gives up rather than wait. */
static Transaction *all;

Transaction::Transaction(THD *thd) : m_thd(thd), m_txn(pando_txn_new(db)), m_id(pando_txn_id(m_txn)),
  m_participant(Participant::make(m_id, thd))
{
  std::lock_guard<Observed_mutex> guard(transactions_mutex);
  m_next= all;
  if (all)
    all->m_previous= this;
  all= this;
}

Transaction::~Transaction()
{
  {
    std::lock_guard<Observed_mutex> guard(transactions_mutex);
    if (m_next)
      m_next->m_previous= m_previous;
    *(m_previous ? &m_previous->m_next : &all)= m_next;
  }
  m_participant->forget();
  end_ways_back();
  pando_txn_free(m_txn);
}

void Transaction::for_each(const std::function<void(Transaction *)> &call)
{
  std::lock_guard<Observed_mutex> guard(transactions_mutex);
  for (Transaction *transaction= all; transaction; transaction= transaction->m_next)
    call(transaction);
}

void Transaction::about(About *about, size_t query_bytes_max) const
{
  about->thread_id= thd_get_thread_id(m_thd);
  about->isolation= m_isolation;
  about->tables_in_use= m_tables_in_use;
  about->read_only= m_thd->tx_read_only;
  about->charset= m_thd->charset();
  about->query.resize(query_bytes_max + 1);
  about->query.resize(thd_query_safe(m_thd, &about->query[0], about->query.size()));
  std::lock_guard<std::mutex> guard(m_foreign_key_mutex);
  if (!m_foreign_key)
    return;
  String text;
  append_child_and_constraint(current_thd, *m_foreign_key, &text);
  about->foreign_key.assign(text.ptr(), text.length());
}

Transaction *Transaction::if_any(THD *thd)
{
  return static_cast<Transaction *>(thd_get_ha_data(thd, hton));
}

/* What is prepared outlives its connection. */
static int forget_connection(THD *thd)
{
  Transaction *transaction= Transaction::if_any(thd);
  thd_set_ha_data(thd, hton, nullptr);
  delete transaction;
  end_backup_of(thd);
  return 0;
}

Transaction *Transaction::of(THD *thd)
{
  Transaction *transaction= if_any(thd);
  if (transaction && (transaction->is_bereft() || transaction->m_is_prepared))
  {
    /* The server has let go of what the user had prepared, and the connection was reset. */
    forget_connection(thd);
    transaction= nullptr;
  }
  if (!transaction)
  {
    transaction= new Transaction(thd);
    thd_set_ha_data(thd, hton, transaction);
  }
  return transaction;
}

/* SELECT ... NOWAIT and WAIT n come as a value of lock_wait_timeout for this statement. */
static bool statement_sets_wait(THD *thd)
{
  List_iterator_fast<set_var_base> assignments(thd->lex->stmt_var_list);
  while (set_var_base *assignment= assignments++)
  {
    set_var *variable= static_cast<set_var *>(assignment);
    if (variable->var && !strcmp(variable->var->name.str, "lock_wait_timeout"))
      return true;
  }
  return false;
}

void Transaction::prepare_statement()
{
  if (m_tables_in_use)
    return;
  m_isolation= enum_tx_isolation(thd_tx_isolation(m_thd));
  if (m_isolation <= ISO_READ_COMMITTED)
  {
    pando_txn_close_snapshot(m_txn);
    m_reads_at= 0;
  }
  pando_txn_set_takes_gaps(m_txn, m_isolation > ISO_READ_COMMITTED);
  pando_txn_begin_statement(m_txn, statement_sets_wait(m_thd) ? ulonglong(m_thd->variables.lock_wait_timeout) * 1000
                                                            : lock_wait_ms(m_thd));
}

void Transaction::forget_kill()
{
  if (thd_kill_level(m_thd) != THD_IS_NOT_KILLED)
    return;
  pando_txn_clear_kill(m_txn);
  /* It may have come in between. */
  if (thd_kill_level(m_thd) != THD_IS_NOT_KILLED)
    pando_db_kill(db, m_id);
}

void Transaction::register_with_server()
{
  trans_register_ha(m_thd, false, hton, 0);
  if (is_multi_statement())
    trans_register_ha(m_thd, true, hton, 0);
  if (!m_has_statement_mark)
  {
    m_statement_mark= mark();
    m_has_statement_mark= true;
  }
}

void Transaction::begin_table()
{
  m_unopened_error= 0;
  register_with_server();
  m_tables_in_use++;
}

void Transaction::end_table()
{
  if (!m_tables_in_use || --m_tables_in_use)
    return;
  if (!is_multi_statement())
  {
    /* With writes, or before a failure is known, the server calls commit or rollback itself. */
    if (!pando_txn_has_writes(m_txn))
    {
      over();
      pando_txn_rollback(m_txn);
    }
  }
  else if (m_isolation <= ISO_READ_COMMITTED)
    pando_txn_close_snapshot(m_txn);
}

my_time_t Transaction::reads_at()
{
  if (!m_reads_at)
    m_reads_at= m_thd->query_start();
  return m_reads_at;
}

void Transaction::over()
{
  m_reads_at= 0;
  m_is_prepared= false;
  m_has_statement_mark= false;
  m_participant->leave();
}

void Transaction::end_statement()
{
  if (m_has_statement_mark)
    pando_txn_release_mark(m_txn, m_statement_mark);
  m_statement_mark= mark();
  m_has_statement_mark= true;
}

/* A table that the statement writes to; null: none, as of COMMIT, or it is not open any more. */
static const TABLE *written_by_statement(THD *thd)
{
  for (const TABLE *table= thd->open_tables; table; table= table->next)
    if (table->current_lock == F_WRLCK && table->file && table->file->partition_ht() == hton)
      return table;
  return nullptr;
}

/* The server's message for this number wants the name of a table. Of a transaction with many, none is the one that is full. */
static void tell_full_disk(THD *thd)
{
  const TABLE *table= written_by_statement(thd);
  if (table && !thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN))
  {
    my_error(ER_RECORD_FILE_FULL, MYF(0), table->s->table_name.str);
    return;
  }
  String reason;
  error_text(&reason);
  my_printf_error(ER_RECORD_FILE_FULL, "The disk is full during %s: %s", MYF(0),
                  thd->lex->sql_command == SQLCOM_XA_PREPARE ? "XA PREPARE" : "COMMIT", reason.c_ptr_safe());
}

/* Of a commit the server tells only the number (1180), where programs that meet a full disk wait for 1114: the first error counts. And
   whose commit can be read already, though it was refused, is to know. */
static int commit_error(PandoStatus status, THD *thd)
{
  int error= error_of(status, thd);
  if (status == PANDO_STATUS_IN_DOUBT && thd && !thd->is_error())
  {
    String reason;
    error_text(&reason);
    my_printf_error(ER_ERROR_DURING_COMMIT, "Got error %d \"Table is read only\" during COMMIT: %s", MYF(0), error,
                    reason.c_ptr_safe());
  }
  if (error != HA_ERR_RECORD_FILE_FULL)
    return error;
  if (thd && !thd->is_error())
    tell_full_disk(thd);
  return ENOSPC;
}

int Transaction::prepare(bool whole)
{
  if (!whole && is_multi_statement())
  {
    end_statement();
    return 0;
  }
  Bytes name;
  encode_xid(*m_thd->get_xid(), &name);
  int error= commit_error(pando_txn_prepare(m_txn, name.view()), m_thd);
  if (!error)
    error= wait_for_turn(m_thd);
  /* The server may let go of it, so that anybody can XA COMMIT it, without telling or long before it tells. */
  if (!error && m_thd->transaction->xid_state.is_explicit_XA())
  {
    pando_txn_leave(m_txn);
    m_is_prepared= true;
  }
  return error;
}

int Transaction::commit(bool whole)
{
  if (!whole && is_multi_statement())
  {
    end_statement();
    return 0;
  }
  over();
  pando_txn_set_synced(m_txn, commit_sync(m_thd));
  return commit_error(pando_txn_commit(m_txn), m_thd);
}

void Transaction::rollback(bool whole)
{
  if (!whole && is_multi_statement())
  {
    if (m_has_statement_mark)
      pando_txn_rollback_to(m_txn, m_statement_mark);
    return;
  }
  over();
  pando_txn_rollback(m_txn);
}

void Transaction::rollback_to(uint64_t mark)
{
  pando_txn_rollback_to(m_txn, mark);
  /* A mark of its own: the savepoint's stays as long as the savepoint. */
  m_statement_mark= this->mark();
  m_has_statement_mark= true;
}

static void add_once(std::vector<std::string> *directories, std::string directory)
{
  if (std::find(directories->begin(), directories->end(), directory) == directories->end())
    directories->push_back(std::move(directory));
}

/* DDL is done by then, and what it has done cannot be taken back: an error is told to the log. */
static void sync_each(std::vector<std::string> *directories)
{
  for (const std::string &directory : *directories)
    if (!sync_directory(directory.c_str()) && errno != ENOENT)
      sql_print_warning("PANDO: cannot sync %s after DDL (errno %d)", directory.c_str(), errno);
  directories->clear();
}

void Transaction::sync_at_end(std::string directory)
{
  add_once(&m_directories, std::move(directory));
  register_with_server();
}

void Transaction::sync_at_implicit_commit(std::string directory)
{
  add_once(&m_directories_of_all, std::move(directory));
  /* Only the transaction is joined, not the statement, which is committed too early. With autocommit there is no transaction: but the
     server ends each such statement with trans_commit_implicit, which commits one that has begun, and clears the bit. */
  m_thd->variables.option_bits|= OPTION_BEGIN;
  trans_register_ha(m_thd, true, hton, 0);
}

uint64_t Transaction::may_rename_back()
{
  m_may_rename_back= true;
  register_with_server();
  return m_id;
}

void Transaction::end_ways_back()
{
  if (m_may_rename_back)
    pando_ways_back_end(db, m_id);
  m_may_rename_back= false;
}

void Transaction::sync_directories(bool whole)
{
  sync_each(&m_directories);
  if (whole)
    sync_each(&m_directories_of_all);
}

/* --- the handlerton's functions ------------------------------------------------------------- */

static int commit(THD *thd, bool all)
{
  Transaction *transaction= Transaction::if_any(thd);
  if (!transaction)
    return 0;
  transaction->sync_directories(all);
  transaction->end_ways_back();
  int error= transaction->commit(all);
  if (transaction->is_bereft())
    forget_connection(thd);
  return error;
}

static int rollback(THD *thd, bool all)
{
  Transaction *transaction= Transaction::if_any(thd);
  if (!transaction)
    return 0;
  transaction->sync_directories(all);
  transaction->end_ways_back();
  transaction->rollback(all);
  if (transaction->is_bereft())
    forget_connection(thd);
  return 0;
}

static int savepoint_set(THD *thd, void *savepoint)
{
  *static_cast<uint64_t *>(savepoint)= Transaction::of(thd)->mark();
  return 0;
}

static int savepoint_rollback(THD *thd, void *savepoint)
{
  Transaction::of(thd)->rollback_to(*static_cast<uint64_t *>(savepoint));
  return 0;
}

static int savepoint_release(THD *thd, void *savepoint)
{
  if (Transaction *transaction= Transaction::if_any(thd))
    pando_txn_release_mark(transaction->txn(), *static_cast<uint64_t *>(savepoint));
  return 0;
}

/* Locks stay after a rollback to a savepoint, so metadata locks may have to protect what they are on. */
static bool savepoint_rollback_can_release_mdl(THD *thd)
{
  Transaction *transaction= Transaction::if_any(thd);
  return !transaction || !pando_txn_has_writes(transaction->txn());
}

static int start_consistent_snapshot(THD *thd)
{
  Transaction *transaction= Transaction::of(thd);
  transaction->prepare_statement();
  if (transaction->isolation() == ISO_REPEATABLE_READ)
    /* The server calls all engines under the mutex that it calls commit_ordered under: with this snapshot
       they show the same commits, also those that are between commit_ordered and commit. */
    pando_txn_open_ordered_snapshot(transaction->txn());
  else
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_UNSUPPORTED,
                        "PANDO: WITH CONSISTENT SNAPSHOT was ignored because this phrase can only be"
                        " used with REPEATABLE READ isolation level.");
  transaction->register_with_server();
  return 0;
}

/* Called by another connection, which keeps this one from going away. */
static void kill_query(handlerton *, THD *thd, enum thd_kill_levels)
{
  if (Transaction *transaction= Transaction::if_any(thd))
    pando_db_kill(db, transaction->id());
}

void set_transaction_functions(handlerton *engine)
{
  engine->savepoint_offset= sizeof(uint64_t);
  engine->commit= engine_function<commit>;
  engine->rollback= engine_function<rollback>;
  engine->savepoint_set= engine_function<savepoint_set>;
  engine->savepoint_rollback= engine_function<savepoint_rollback>;
  engine->savepoint_rollback_can_release_mdl= engine_function<savepoint_rollback_can_release_mdl>;
  engine->savepoint_release= engine_function<savepoint_release>;
  engine->start_consistent_snapshot= engine_function<start_consistent_snapshot>;
  set_two_phase_functions(engine);
  engine->close_connection= engine_function<forget_connection>;
  engine->kill_query= kill_query;
}

} // namespace pando
