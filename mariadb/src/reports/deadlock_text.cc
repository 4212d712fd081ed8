/* The last deadlock, and the transactions there are, as text for SHOW ENGINE PANDO STATUS. */
#include "reports.h"
#include "lock_text.h"
#include "transaction.h"

#include <map>
#include <mutex>

namespace pando {

static const uint QUERY_SHOWN_MAX= 1024;

static std::mutex last_deadlock_mutex;
static std::string last_deadlock;

/* 2026-11-21 19:30:00, in the server's time zone. */
void append_moment(time_t moment, String *out)
{
  struct tm now;
  localtime_r(&moment, &now);
  char digits[32];
  out->append(digits, uint32(strftime(digits, sizeof(digits), "%Y-%m-%d %H:%M:%S", &now)));
}

static void append_lock(THD *thd, const PandoLockRow &row, String *out)
{
  String index, data;
  const bool is_known= append_index_and_data(row, &index, &data);
  append_table_name(thd, row.table, out);
  if (is_known)
  {
    out->append(STRING_WITH_LEN(" index `"));
    out->append(index);
    out->append('`');
  }
  if (row.kind == PANDO_LOCK_KIND_KEY || row.kind == PANDO_LOCK_KIND_INSERT)
  {
    out->append(STRING_WITH_LEN(" key ("));
    out->append(data);
    out->append(')');
    return;
  }
  out->append(STRING_WITH_LEN(" keys "));
  out->append(data);
}

__attribute__((format(printf, 2, 3)))
static void append_format(String *out, const char *format, ...)
{
  char line[256];
  va_list values;
  va_start(values, format);
  size_t length= my_vsnprintf(line, sizeof(line), format, values);
  va_end(values);
  out->append(line, uint32(length));
}

static void append_connection(const Transaction::About &about, String *out)
{
  if (about.thread_id)
    append_format(out, ", thread %llu", ulonglong(about.thread_id));
  out->append('\n');
  if (about.query.empty())
    return;
  uint errors;
  out->append("  ", 2);
  String query;
  query.copy(about.query.data(), uint32(about.query.size()), about.charset, system_charset_info, &errors);
  out->append(query);
  out->append('\n');
}

static std::map<uint64_t, Transaction::About> connections()
{
  std::map<uint64_t, Transaction::About> found;
  Transaction::for_each([&](Transaction *transaction) {
    transaction->about(&found[transaction->id()], QUERY_SHOWN_MAX);
  });
  return found;
}

static const char *mode_name(bool exclusive)
{
  return exclusive ? "exclusive" : "shared";
}

static void append_foreign_key(const Transaction::About &about, String *out)
{
  if (about.foreign_key.empty())
    return;
  out->append(STRING_WITH_LEN("\n  for the foreign key "));
  out->append(about.foreign_key.data(), uint32(about.foreign_key.size()));
}

static void append_member(THD *thd, uint number, const PandoDeadlockRow &row, const Transaction::About &about,
                          String *out)
{
  const PandoLockRow &lock= row.lock;
  append_format(out, "(%u) transaction %llu, %llu writes", number, ulonglong(lock.txn), ulonglong(row.weight));
  append_connection(about, out);
  append_format(out, "  %s ", row.upgrade ? "holds shared and waits for the exclusive lock on" :
                              lock.exclusive ? "waits for the exclusive lock on" :
                                               "waits for the shared lock on");
  append_lock(thd, lock, out);
  append_foreign_key(about, out);
  const ulonglong other= lock.blocker_count ? lock.blockers[0] : 0;
  if (row.held == 2)
    append_format(out, ",\n  for which transaction %llu waits before it\n", other);
  else
    append_format(out, ",\n  which transaction %llu holds %s\n", other, mode_name(row.held == 1));
}

void note_deadlock(THD *victim)
{
  PandoDeadlock *deadlock= pando_db_last_deadlock(db);
  if (!deadlock)
    return;
  String text;
  std::map<uint64_t, Transaction::About> known= connections();
  append_moment(time(nullptr), &text);
  text.append('\n');
  uint victim_number= 0;
  uint64_t victim_id= 0;
  for (uint i= 0; i < pando_deadlock_count(deadlock); i++)
  {
    const PandoDeadlockRow row= pando_deadlock_row(deadlock, i);
    append_member(victim, i + 1, row, known[row.lock.txn], &text);
    if (row.victim)
    {
      victim_number= i + 1;
      victim_id= row.lock.txn;
    }
  }
  append_format(&text, "(%u) was rolled back\n", victim_number);
  pando_deadlock_free(deadlock);
  /* Another one may have followed at once; its own victim tells that. */
  Transaction *transaction= Transaction::if_any(victim);
  if (!transaction || transaction->id() != victim_id)
    return;
  std::lock_guard<std::mutex> guard(last_deadlock_mutex);
  last_deadlock.assign(text.ptr(), text.length());
}

void append_last_deadlock(String *out)
{
  out->append(STRING_WITH_LEN("LATEST DETECTED DEADLOCK\n"));
  std::lock_guard<std::mutex> guard(last_deadlock_mutex);
  if (last_deadlock.empty())
    out->append(STRING_WITH_LEN("none\n"));
  else
    out->append(last_deadlock.data(), last_deadlock.size());
}

void append_transactions(String *out)
{
  PandoLockReport *report= pando_db_lock_report(db);
  std::map<uint64_t, Transaction::About> known= connections();
  const uint count= pando_lock_report_txn_count(report);
  append_format(out, "ACTIVE TRANSACTIONS\n%u, oldest first\n", count);
  std::map<uint64_t, PandoLockRow> requested;
  for (uint i= 0; i < pando_lock_report_lock_count(report); i++)
  {
    const PandoLockRow lock= pando_lock_report_lock(report, i);
    if (lock.waiting)
      requested[lock.txn]= lock;
  }
  for (uint i= 0; i < count; i++)
  {
    const PandoTxnRow row= pando_lock_report_txn(report, i);
    append_format(out, "transaction %llu, active for %llu s, %llu row locks, %llu range locks, %llu writes",
                  ulonglong(row.id), ulonglong(row.age_us / 1000000), ulonglong(row.key_locks),
                  ulonglong(row.range_locks), ulonglong(row.writes));
    append_connection(known[row.id], out);
    auto lock= requested.find(row.id);
    if (row.waiting_us < 0 || lock == requested.end())
      continue;
    append_format(out, "  waits for %llu s for the %s lock on ", ulonglong(row.waiting_us / 1000000),
                  mode_name(lock->second.exclusive));
    append_lock(current_thd, lock->second, out);
    append_foreign_key(known[row.id], out);
    out->append('\n');
  }
  pando_lock_report_free(report);
}

} // namespace pando
