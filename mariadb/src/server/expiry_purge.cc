#include "expiry_purge.h"
#include "definition.h"
#include "ha_pando.h"
#include "performance_schema.h"
#include "replica_time.h"
#include "variables.h"

#include <mysql/service_sql.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace pando {

namespace {

/* Rows of one DELETE: others wait for no more than these. */
const uint BATCH_ROWS= 10000;
/* A table is looked at for a fiftieth of the time at most. */
const uint REST= 50;
const auto START_POLL= std::chrono::milliseconds(200);

using Clock= std::chrono::steady_clock;

struct Table_name
{
  std::string database, table;
  bool operator<(const Table_name &other) const
  {
    return database != other.database ? database < other.database : table < other.table;
  }
};

struct Expiring_table
{
  Expiry_limit limit;
  std::string column;
  bool is_range;              /* rows are in the order of the column, and nothing else is of them */
  Clock::time_point next= {}; /* when it is looked at */
  uint told_error= 0;
};

/* Protects what follows. Nothing is asked of the server while it is held. */
std::mutex mutex;
std::condition_variable changed;
std::map<Table_name, Expiring_table> tables;
bool is_to_stop, is_to_look, is_to_find;
std::thread *thread; /* nothing ends it when the process just exits */

std::atomic<ulonglong> removed_rows{0};
thread_local const Expiry_purge *current= nullptr;

/* Waits for so long, or until somebody wants something. False: it is to stop. */
bool wait_for(Clock::duration time)
{
  std::unique_lock<std::mutex> guard(mutex);
  changed.wait_for(guard, time, [] { return is_to_stop || is_to_look; });
  is_to_look= false;
  return !is_to_stop;
}

std::string quoted(const std::string &name)
{
  std::string text= "`";
  for (const char c : name)
    text.append(c == '`' ? 2 : 1, c);
  return text + "`";
}

} // namespace

/* A connection of the server to itself, as long as it looks. */
class Expiry_purger
{
public:
  Expiry_purger() : m_connection(mysql_init(nullptr))
  {
    if (m_connection && !mysql_real_connect_local(m_connection))
    {
      mysql_close(m_connection);
      m_connection= nullptr;
    }
  }
  ~Expiry_purger()
  {
    if (m_connection)
      mysql_close(m_connection);
  }
  Expiry_purger(const Expiry_purger &) = delete;
  Expiry_purger &operator=(const Expiry_purger &) = delete;

  bool prepare();
  void look_at_all();

private:
  bool run(const std::string &query) { return !mysql_real_query(m_connection, query.data(), query.size()); }
  void look_at(const Table_name &name, Expiring_table *table, my_time_t now);
  bool remove(const Table_name &name, Expiring_table *table);
  bool note_failure(const Table_name &name, Expiring_table *table);

  MYSQL *m_connection;
  Expiry_purge m_purge;
  bool m_was_locked_out= false;
};

bool Expiry_purger::prepare()
{
  return m_connection && run("SET NAMES utf8mb4") && run("SET SESSION sql_log_bin= 0, foreign_key_checks= 1, tx_read_only= 0, time_zone= '+00:00', sql_mode= '', sql_safe_updates= 0, autocommit= 1,"
                             " lock_wait_timeout= 1, pando_lock_wait_timeout_ms= 1000, tx_isolation= 'READ-COMMITTED',"
                             " max_statement_time= 0, sql_select_limit= DEFAULT");
}

/* What has expired by then may be removed. False: nobody knows, because the server is a replica that does not follow. */
static bool find_now(my_time_t *now)
{
  static Replica_time replica_time; /* there is one thread that removes */
  *now= my_time(0);
  if (!replica_time.limit(now))
    return false;
  *now-= my_time_t(ttl_delay());
  return *now > 0;
}

void Expiry_purger::look_at_all()
{
  my_time_t now;
  if (!find_now(&now))
    return;
  std::map<Table_name, Expiring_table> all;
  {
    std::lock_guard<std::mutex> guard(mutex);
    all= tables;
  }
  for (auto &one : all)
  {
    if (Clock::now() < one.second.next)
      continue;
    look_at(one.first, &one.second, now);
    std::lock_guard<std::mutex> guard(mutex);
    if (is_to_stop)
      return;
    const auto known= tables.find(one.first);
    if (known != tables.end())
    {
      known->second.next= one.second.next;
      known->second.told_error= one.second.told_error;
    }
  }
}

void Expiry_purger::look_at(const Table_name &name, Expiring_table *table, my_time_t now)
{
  table->limit.begin(now);
  if (!table->limit.is_set())
    return;
  m_purge.m_now= now;
  m_purge.m_column= table->column;
  m_purge.m_limit= table->limit.text();
  current= &m_purge;
  m_was_locked_out= false;
  const Clock::time_point begin= Clock::now();
  while (remove(name, table))
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (is_to_stop)
      break;
  }
  current= nullptr;
  if (!m_was_locked_out)
    table->next= Clock::now() + (Clock::now() - begin) * REST;
}

/* False: nothing is left, or it is to be tried later. IGNORE: a row that others refer to stays, and the rest does not. */
bool Expiry_purger::remove(const Table_name &name, Expiring_table *table)
{
  const std::string column= quoted(table->column);
  std::string query= "DELETE IGNORE FROM " + quoted(name.database) + "." + quoted(name.table) + " WHERE " + column + " >= " +
                     table->limit.least_text() + " AND " + column + " <= " + m_purge.m_limit;
  if (!table->is_range)
    query+= " LIMIT " + std::to_string(BATCH_ROWS);
  if (!run(query))
    return note_failure(name, table);
  const ulonglong rows= mysql_affected_rows(m_connection);
  removed_rows+= rows;
  table->told_error= 0;
  return !table->is_range && rows >= BATCH_ROWS;
}

bool Expiry_purger::note_failure(const Table_name &name, Expiring_table *table)
{
  const uint error= mysql_errno(m_connection);
  switch (error) {
  case ER_LOCK_WAIT_TIMEOUT:
  case ER_LOCK_DEADLOCK:
    m_was_locked_out= true;
    break;
  case ER_NO_SUCH_TABLE:
  case ER_BAD_FIELD_ERROR:
  case ER_TABLE_DEF_CHANGED:
  {
    /* It will be noted when it is opened as it is now. */
    std::lock_guard<std::mutex> guard(mutex);
    if (error == ER_NO_SUCH_TABLE)
      tables.erase(name);
    is_to_find= true;
    break;
  }
  default:
    if (table->told_error != error)
      sql_print_warning("PANDO: table %s.%s: rows that have expired cannot be removed: %s (%u)", name.database.c_str(), name.table.c_str(),
                        mysql_error(m_connection), error);
    table->told_error= error;
  }
  return false;
}

/* --- which tables there are --- */

namespace {

void collect_table(void *context, const PandoDictionaryRow *row)
{
  std::string name(reinterpret_cast<const char *>(row->table.data), row->table.len);
  static_cast<std::set<std::string> *>(context)->insert(name.substr(0, name.find("#P#")));
}

/* Options are named as the user has written them. */
bool has_ttl_option(const std::string &name)
{
  static const std::string OPTION= "ttl";
  Bytes definition;
  if (name.find("#sql") != std::string::npos ||
      !read_file((std::string(mysql_real_data_home) + "/" + name + reg_ext).c_str(), &definition))
    return false;
  const uchar *const begin= definition.data(), *const end= begin + definition.size();
  const auto is_same= [](uchar a, char b) { return tolower(a) == b; };
  return std::search(begin, end, OPTION.begin(), OPTION.end(), is_same) != end;
}

std::string name_of_file(const std::string &file)
{
  char name[FN_REFLEN];
  return std::string(name, filename_to_tablename(file.c_str(), name, sizeof(name), true));
}

/* Tables that nobody has opened since the server was started: those that may have a TTL are opened. */
void note_all()
{
  std::set<std::string> all;
  if (pando_dictionaries_visit(db, &all, collect_table))
    return;
  MYSQL *connection= mysql_init(nullptr);
  if (!connection)
    return;
  static const char NAMES[]= "SET NAMES utf8mb4";
  if (mysql_real_connect_local(connection) && !mysql_real_query(connection, NAMES, sizeof(NAMES) - 1))
    for (const std::string &name : all)
    {
      const size_t slash= name.rfind('/');
      if (slash == std::string::npos || !has_ttl_option(name))
        continue;
      const std::string query= "SELECT 1 FROM " + quoted(name_of_file(name.substr(0, slash))) + "." +
                               quoted(name_of_file(name.substr(slash + 1))) + " LIMIT 0";
      if (!mysql_real_query(connection, query.data(), query.size()))
        mysql_free_result(mysql_store_result(connection));
    }
  mysql_close(connection);
}

void work()
{
  my_thread_init();
  begin_expiry_thread();
  bool goes_on= true;
  while (goes_on && !mysqld_server_started)
    goes_on= wait_for(START_POLL);
  bool is_any, finds= true;
  while (goes_on)
  {
    if (finds)
      note_all();
    const uint period= ttl_period();
    {
      std::lock_guard<std::mutex> guard(mutex);
      is_any= !tables.empty();
    }
    if (period && is_any)
    {
      Expiry_purger purger;
      if (purger.prepare())
        purger.look_at_all();
    }
    goes_on= wait_for(std::chrono::seconds(period ? period : 3600));
    std::lock_guard<std::mutex> guard(mutex);
    finds= is_to_find;
    is_to_find= false;
  }
  end_thread();
  my_thread_end();
}

} // namespace

/* Whether rows lie in the order of the column, and are nothing but entries of one key: then a range of them is deleted at once. */
static bool are_ranges(const TABLE_SHARE *share, const Field *field)
{
  return share->keys == 1 && share->primary_key == 0 && !share->partition_info_str &&
         share->key_info[0].key_part[0].fieldnr == field->field_index + 1;
}

void Expiry_purge::note(const TABLE_SHARE *share, const Expiry *expiry)
{
  if (share->tmp_table != NO_TMP_TABLE || strstr(share->normalized_path.str, "/#sql"))
    return;
  const Table_name name{share->db.str, share->table_name.str};
  std::lock_guard<std::mutex> guard(mutex);
  const auto known= tables.find(name);
  if (!expiry)
  {
    if (known != tables.end())
      tables.erase(known);
    return;
  }
  Expiring_table table{*expiry, expiry->field()->field_name.str, are_ranges(share, expiry->field())};
  if (known != tables.end())
  {
    table.next= known->second.next;
    table.told_error= known->second.told_error;
    tables.erase(known);
  }
  tables.emplace(name, table);
}

const Expiry_purge *Expiry_purge::of_thread()
{
  return current;
}

bool Expiry_purge::is_of(const Expiry *expiry) const
{
  if (!expiry || m_column != expiry->field()->field_name.str)
    return false;
  Expiry_limit limit(*expiry);
  limit.begin(m_now);
  return limit.text() == m_limit;
}

ulonglong Expiry_purge::rows_removed()
{
  return removed_rows;
}

void Expiry_purge::start()
{
  if (thread)
    return;
  {
    std::lock_guard<std::mutex> guard(mutex);
    is_to_stop= false;
  }
  try
  {
    thread= new std::thread(work);
  }
  catch (const std::system_error &error)
  {
    sql_print_warning("PANDO: no thread can be had (%s): rows of tables with TTL are not removed until the server is started again", error.what());
  }
}

void Expiry_purge::stop()
{
  if (!thread)
    return;
  {
    std::lock_guard<std::mutex> guard(mutex);
    is_to_stop= true;
  }
  changed.notify_all();
  thread->join();
  delete thread;
  thread= nullptr;
  std::lock_guard<std::mutex> guard(mutex);
  tables.clear();
}

void Expiry_purge::look_for_tables(bool if_any)
{
  std::lock_guard<std::mutex> guard(mutex);
  is_to_find|= !if_any || !tables.empty();
}

void Expiry_purge::wake()
{
  {
    std::lock_guard<std::mutex> guard(mutex);
    is_to_look= true;
  }
  changed.notify_all();
}

} // namespace pando
