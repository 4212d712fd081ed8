#include "replication.h"
#include "rpl_filter.h"
#include <atomic>
#include <shared_mutex>
#include <unordered_map>

/* The server's; no header has them. */
extern "C" int thd_need_wait_reports(const MYSQL_THD thd);
extern "C" int thd_rpl_deadlock_check(MYSQL_THD thd, MYSQL_THD other_thd);
extern "C" int thd_deadlock_victim_preference(const MYSQL_THD thd1, const MYSQL_THD thd2);
extern "C" int thd_binlog_format(const MYSQL_THD thd);
extern "C" bool thd_binlog_filter_ok(const MYSQL_THD thd);
extern "C" bool thd_sqlcom_can_generate_row_events(const MYSQL_THD thd);

namespace pando {

/* All of them by number. Changed only when connections come and go. */
static std::shared_mutex registry_mutex;
static std::unordered_map<uint64_t, std::shared_ptr<Participant>> registry;

static std::shared_ptr<Participant> find(uint64_t id)
{
  std::shared_lock<std::shared_mutex> guard(registry_mutex);
  auto place= registry.find(id);
  return place == registry.end() ? nullptr : place->second;
}

std::shared_ptr<Participant> Participant::make(uint64_t id, THD *thd)
{
  auto participant= std::make_shared<Participant>(id, thd);
  std::unique_lock<std::shared_mutex> guard(registry_mutex);
  registry.emplace(id, participant);
  return participant;
}

void Participant::forget()
{
  leave();
  std::unique_lock<std::shared_mutex> guard(registry_mutex);
  registry.erase(m_id);
}

void Participant::enter()
{
  if (m_active || !thd_need_wait_reports(m_thd))
    return;
  std::lock_guard<std::mutex> guard(m_mutex);
  m_active= true;
}

void Participant::leave()
{
  if (!m_active)
    return;
  std::lock_guard<std::mutex> guard(m_mutex);
  m_active= false;
}

void Participant::report_wait()
{
  std::lock_guard<std::mutex> guard(m_mutex);
  if (m_active)
    thd_rpl_deadlock_check(m_thd, nullptr);
}

/* Two participants that stay active as long as this lives, if both were. */
class Participants
{
public:
  Participants(uint64_t first, uint64_t second) : m_first(find(first)), m_second(find(second))
  {
    if (!m_first || !m_second || m_first == m_second)
      return;
    const bool ordered= first < second;
    m_one= std::unique_lock<std::mutex>((ordered ? m_first : m_second)->m_mutex);
    m_other= std::unique_lock<std::mutex>((ordered ? m_second : m_first)->m_mutex);
    m_both_active= m_first->m_active && m_second->m_active;
  }
  bool both_active() const { return m_both_active; }
  THD *first() const { return m_first->m_thd; }
  THD *second() const { return m_second->m_thd; }

private:
  std::shared_ptr<Participant> m_first, m_second; /* outlive the locks */
  std::unique_lock<std::mutex> m_one, m_other;
  bool m_both_active= false;
};

static void report_waits(uint64_t waiter, const uint64_t *blockers, uint32_t count)
{
  /* That it waited at all goes into the binary log, whoever is still in its way. */
  if (std::shared_ptr<Participant> participant= find(waiter))
    participant->report_wait();
  for (uint32_t i= 0; i < count; i++)
  {
    Participants participants(waiter, blockers[i]);
    if (participants.both_active())
      thd_rpl_deadlock_check(participants.first(), participants.second());
  }
}

static int32_t preferred_victim(uint64_t first, uint64_t second)
{
  Participants participants(first, second);
  if (!participants.both_active())
    return 0;
  return thd_deadlock_victim_preference(participants.first(), participants.second());
}

void set_replication_functions(PandoOptions *options)
{
  options->waits= report_waits;
  options->victim= preferred_victim;
}

bool refuse_binlog_format(THD *thd, bool statement_capable)
{
  if (statement_capable || thd_binlog_format(thd) != BINLOG_FORMAT_STMT || !thd_binlog_filter_ok(thd) ||
      !thd_sqlcom_can_generate_row_events(thd))
    return false;
  my_error(ER_BINLOG_STMT_MODE_AND_ROW_ENGINE, MYF(0),
           " PANDO is limited to row-logging when transaction isolation level is READ COMMITTED or"
           " READ UNCOMMITTED.");
  return true;
}

static void warn_of_two_engines()
{
  static std::atomic_flag said= ATOMIC_FLAG_INIT;
  if (!said.test_and_set())
    sql_print_warning("PANDO: a replicated transaction has written to tables of two engines and not to the binary log: "
                      "a crash can leave it in one of them. If one has the position only, set gtid_pos_auto_engines=PANDO "
                      "(or log_slave_updates=ON)");
}

int wait_for_turn(THD *thd)
{
  const bool is_logged= !thd->is_current_stmt_binlog_disabled();
  /* Of a group that is written to the binary log the members wait there, all together. */
  if (is_logged && binlog_filter->is_db_empty())
    return 0;
  if (!is_logged && thd->slave_thread && !thd->transaction->xid_state.is_explicit_XA())
    warn_of_two_engines();
  return thd->wait_for_prior_commit();
}

} // namespace pando
