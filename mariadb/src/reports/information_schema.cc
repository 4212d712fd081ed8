/* The tables of INFORMATION_SCHEMA; see reports.h. */
#include "reports.h"
#include "lock_text.h"
#include "transaction.h"
#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include "tztime.h"

#include <map>

namespace pando {

static const uint LOCK_ID_MAX= 80;
static const uint NAME_MAX_CHARS= 1024;
static const uint DATA_MAX_CHARS= 8192;
static const uint QUERY_MAX_CHARS= 1024;

static const LEX_CSTRING ISOLATION_LEVELS[]=
{
  {STRING_WITH_LEN("READ UNCOMMITTED")},
  {STRING_WITH_LEN("READ COMMITTED")},
  {STRING_WITH_LEN("REPEATABLE READ")},
  {STRING_WITH_LEN("SERIALIZABLE")}
};
static TypelibBuffer<4> isolation_levels(ISOLATION_LEVELS);

enum Trx_column
{
  TRX_ID, TRX_STATE, TRX_STARTED, TRX_REQUESTED_LOCK_ID, TRX_WAIT_STARTED, TRX_WEIGHT, TRX_MYSQL_THREAD_ID,
  TRX_QUERY, TRX_TABLES_IN_USE, TRX_ROWS_LOCKED, TRX_RANGES_LOCKED, TRX_ROWS_MODIFIED, TRX_BYTES_MODIFIED,
  TRX_ISOLATION_LEVEL, TRX_IS_READ_ONLY
};

static ST_FIELD_INFO trx_columns[]=
{
  Show::Column("trx_id", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_state", Show::Varchar(13), NOT_NULL),
  Show::Column("trx_started", Show::Datetime(0), NOT_NULL),
  Show::Column("trx_requested_lock_id", Show::Varchar(LOCK_ID_MAX), NULLABLE),
  Show::Column("trx_wait_started", Show::Datetime(0), NULLABLE),
  Show::Column("trx_weight", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_mysql_thread_id", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_query", Show::Varchar(QUERY_MAX_CHARS), NULLABLE),
  Show::Column("trx_tables_in_use", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_rows_locked", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_ranges_locked", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_rows_modified", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_bytes_modified", Show::ULonglong(), NOT_NULL),
  Show::Column("trx_isolation_level", Show::Enum(&isolation_levels), NOT_NULL),
  Show::Column("trx_is_read_only", Show::SLong(1), NOT_NULL),
  Show::CEnd()
};

enum Lock_column
{
  LOCK_ID, LOCK_TRX_ID, LOCK_MODE, LOCK_TYPE, LOCK_STATUS, LOCK_TABLE, LOCK_INDEX, LOCK_DATA
};

static ST_FIELD_INFO lock_columns[]=
{
  Show::Column("lock_id", Show::Varchar(LOCK_ID_MAX), NOT_NULL),
  Show::Column("lock_trx_id", Show::ULonglong(), NOT_NULL),
  Show::Column("lock_mode", Show::Varchar(20), NOT_NULL),
  Show::Column("lock_type", Show::Varchar(10), NOT_NULL),
  Show::Column("lock_status", Show::Varchar(10), NOT_NULL),
  Show::Column("lock_table", Show::Varchar(NAME_MAX_CHARS), NOT_NULL),
  Show::Column("lock_index", Show::Varchar(NAME_MAX_CHARS), NULLABLE),
  Show::Column("lock_data", Show::Varchar(DATA_MAX_CHARS), NOT_NULL),
  Show::CEnd()
};

enum Wait_column { REQUESTING_TRX_ID, REQUESTED_LOCK_ID, BLOCKING_TRX_ID, BLOCKING_LOCK_ID, FOREIGN_KEY };

static ST_FIELD_INFO wait_columns[]=
{
  Show::Column("requesting_trx_id", Show::ULonglong(), NOT_NULL),
  Show::Column("requested_lock_id", Show::Varchar(LOCK_ID_MAX), NOT_NULL),
  Show::Column("blocking_trx_id", Show::ULonglong(), NOT_NULL),
  Show::Column("blocking_lock_id", Show::Varchar(LOCK_ID_MAX), NULLABLE),
  Show::Column("foreign_key", Show::Varchar(DATA_MAX_CHARS), NULLABLE),
  Show::CEnd()
};

/* A report of the engine, for as long as this lives. */
class Report
{
public:
  Report() : m_report(pando_db_lock_report(db)) {}
  ~Report() { pando_lock_report_free(m_report); }
  Report(const Report &) = delete;
  Report &operator=(const Report &) = delete;

  uint txn_count() const { return pando_lock_report_txn_count(m_report); }
  PandoTxnRow txn(uint i) const { return pando_lock_report_txn(m_report, i); }
  uint lock_count() const { return pando_lock_report_lock_count(m_report); }
  PandoLockRow lock(uint i) const { return pando_lock_report_lock(m_report, i); }

private:
  PandoLockReport *m_report;
};

static void store(Field *field, const String &text)
{
  field->set_notnull();
  field->store(text.ptr(), text.length(), system_charset_info);
}

static void store(Field *field, const char *text)
{
  field->store(text, strlen(text), system_charset_info);
}

static void store_moment(THD *thd, Field *field, time_t moment)
{
  MYSQL_TIME time;
  thd->variables.time_zone->gmt_sec_to_TIME(&time, my_time_t(moment));
  field->set_notnull();
  field->store_time(&time);
}

static void store_lock_id(Field *field, const PandoLockRow &row)
{
  String id;
  append_lock_id(row, &id);
  store(field, id);
}

static time_t ago(uint64_t microseconds)
{
  return time_t((my_hrtime().val - microseconds) / 1000000);
}

/* What the connections know of their transactions, by id. */
static std::map<uint64_t, Transaction::About> connections()
{
  std::map<uint64_t, Transaction::About> found;
  Transaction::for_each([&](Transaction *transaction) {
    transaction->about(&found[transaction->id()], QUERY_MAX_CHARS);
  });
  return found;
}

static int fill_trx(THD *thd, TABLE_LIST *tables, Item *)
{
  if (check_global_access(thd, PROCESS_ACL))
    return 0;
  TABLE *table= tables->table;
  Field **field= table->field;
  Report report;
  std::map<uint64_t, PandoLockRow> requested;
  for (uint i= 0; i < report.lock_count(); i++)
  {
    PandoLockRow lock= report.lock(i);
    if (lock.waiting)
      requested[lock.txn]= lock;
  }
  std::map<uint64_t, Transaction::About> known= connections();
  for (uint i= 0; i < report.txn_count(); i++)
  {
    const PandoTxnRow row= report.txn(i);
    const Transaction::About &about= known[row.id];
    restore_record(table, s->default_values);
    field[TRX_ID]->store(longlong(row.id), true);
    store(field[TRX_STATE], row.waiting_us >= 0 ? "LOCK WAIT" : "RUNNING");
    store_moment(thd, field[TRX_STARTED], ago(row.age_us));
    if (row.waiting_us >= 0)
    {
      store_moment(thd, field[TRX_WAIT_STARTED], ago(uint64_t(row.waiting_us)));
      auto lock= requested.find(row.id);
      if (lock != requested.end())
        store_lock_id(field[TRX_REQUESTED_LOCK_ID], lock->second);
    }
    field[TRX_WEIGHT]->store(longlong(row.writes + row.key_locks + row.range_locks), true);
    field[TRX_MYSQL_THREAD_ID]->store(longlong(about.thread_id), true);
    if (!about.query.empty())
    {
      field[TRX_QUERY]->set_notnull();
      field[TRX_QUERY]->store(about.query.data(), about.query.size(), about.charset);
    }
    field[TRX_TABLES_IN_USE]->store(longlong(about.tables_in_use), true);
    field[TRX_ROWS_LOCKED]->store(longlong(row.key_locks), true);
    field[TRX_RANGES_LOCKED]->store(longlong(row.range_locks), true);
    field[TRX_ROWS_MODIFIED]->store(longlong(row.writes), true);
    field[TRX_BYTES_MODIFIED]->store(longlong(row.write_bytes), true);
    field[TRX_ISOLATION_LEVEL]->store(longlong(1 + about.isolation), true);
    field[TRX_IS_READ_ONLY]->store(longlong(about.read_only), true);
    if (schema_table_store_record(thd, table))
      return 1;
  }
  return 0;
}

static int fill_locks(THD *thd, TABLE_LIST *tables, Item *)
{
  if (check_global_access(thd, PROCESS_ACL))
    return 0;
  TABLE *table= tables->table;
  Field **field= table->field;
  Report report;
  for (uint i= 0; i < report.lock_count(); i++)
  {
    const PandoLockRow row= report.lock(i);
    String name, index, data;
    append_table_name(thd, row.table, &name);
    const bool is_known= append_index_and_data(row, &index, &data);
    const bool is_range= row.kind == PANDO_LOCK_KIND_GAP || row.kind == PANDO_LOCK_KIND_STRETCH;
    restore_record(table, s->default_values);
    store_lock_id(field[LOCK_ID], row);
    field[LOCK_TRX_ID]->store(longlong(row.txn), true);
    store(field[LOCK_MODE], lock_mode_text(row));
    store(field[LOCK_TYPE], is_range ? "RANGE" : "RECORD");
    store(field[LOCK_STATUS], row.waiting ? "WAITING" : "GRANTED");
    store(field[LOCK_TABLE], name);
    if (is_known)
      store(field[LOCK_INDEX], index);
    store(field[LOCK_DATA], data);
    if (schema_table_store_record(thd, table))
      return 1;
  }
  return 0;
}

static bool is_same_or_within(const PandoLockRow &blocker, const PandoLockRow &waiter)
{
  if (blocker.index != waiter.index || compare(blocker.table, waiter.table))
    return false;
  if (blocker.kind == PANDO_LOCK_KIND_KEY || blocker.kind == PANDO_LOCK_KIND_INSERT)
    return !compare(blocker.from, waiter.from);
  return compare(blocker.from, waiter.from) <= 0 && (!blocker.to.data || compare(waiter.from, blocker.to) < 0);
}

/* The lock of `blocker` that is in the way of a request: rather one that it has than one that it waits for. */
static bool find_blocking_lock(const Report &report, uint64_t blocker, const PandoLockRow &waiter,
                               PandoLockRow *found)
{
  bool is_found= false;
  for (uint i= 0; i < report.lock_count(); i++)
  {
    const PandoLockRow row= report.lock(i);
    if (row.txn != blocker || !is_same_or_within(row, waiter) || (is_found && row.waiting))
      continue;
    *found= row;
    is_found= true;
  }
  return is_found;
}

static int fill_lock_waits(THD *thd, TABLE_LIST *tables, Item *)
{
  if (check_global_access(thd, PROCESS_ACL))
    return 0;
  TABLE *table= tables->table;
  Field **field= table->field;
  Report report;
  std::map<uint64_t, std::string> foreign_keys;
  Transaction::for_each([&](Transaction *transaction) {
    Transaction::About about;
    transaction->about(&about, 0);
    foreign_keys[transaction->id()]= std::move(about.foreign_key);
  });
  for (uint i= 0; i < report.lock_count(); i++)
  {
    const PandoLockRow row= report.lock(i);
    const std::string &foreign_key= foreign_keys[row.txn];
    for (uint j= 0; row.waiting && j < row.blocker_count; j++)
    {
      restore_record(table, s->default_values);
      field[REQUESTING_TRX_ID]->store(longlong(row.txn), true);
      store_lock_id(field[REQUESTED_LOCK_ID], row);
      field[BLOCKING_TRX_ID]->store(longlong(row.blockers[j]), true);
      PandoLockRow blocking;
      if (find_blocking_lock(report, row.blockers[j], row, &blocking))
        store_lock_id(field[BLOCKING_LOCK_ID], blocking);
      if (!foreign_key.empty())
      {
        field[FOREIGN_KEY]->set_notnull();
        store(field[FOREIGN_KEY], foreign_key.c_str());
      }
      if (schema_table_store_record(thd, table))
        return 1;
    }
  }
  return 0;
}

static int init(void *schema_table, ST_FIELD_INFO *columns, int (*fill)(THD *, TABLE_LIST *, Item *))
{
  ST_SCHEMA_TABLE *schema= static_cast<ST_SCHEMA_TABLE *>(schema_table);
  schema->fields_info= columns;
  schema->fill_table= fill;
  return 0;
}

int init_trx_table(void *schema_table)
{
  return init(schema_table, trx_columns, fill_trx);
}

int init_locks_table(void *schema_table)
{
  return init(schema_table, lock_columns, fill_locks);
}

int init_lock_waits_table(void *schema_table)
{
  return init(schema_table, wait_columns, fill_lock_waits);
}

} // namespace pando
