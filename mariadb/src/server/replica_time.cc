#include "replica_time.h"

#include "rpl_mi.h"
#include "rpl_rli.h"
#include "slave.h"

namespace pando {

namespace {

struct Locked
{
  explicit Locked(mysql_mutex_t *mutex) : m_mutex(mutex) { mysql_mutex_lock(mutex); }
  ~Locked() { mysql_mutex_unlock(m_mutex); }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

private:
  mysql_mutex_t *m_mutex;
};

} // namespace

/* Lock order: the server's, LOCK_active_mi, then data_lock of a Master_info, then that of its Relay_log_info. */
bool Replica_time::limit(my_time_t *now)
{
  const Locked all(&LOCK_active_mi);
  for (ulong i= 0; master_info_index && i < master_info_index->master_info_hash.records; i++)
  {
    Master_info *source= reinterpret_cast<Master_info *>(my_hash_element(&master_info_index->master_info_hash, i));
    if (!source->host[0])
      continue;
    const my_time_t come_to= reached(source);
    if (!come_to)
      return false;
    *now= std::min(*now, come_to);
  }
  return true;
}

/* 0: not known. */
my_time_t Replica_time::reached(Master_info *source)
{
  const std::string name= std::string(source->connection_name.str, source->connection_name.length) + '\0' + source->host + '\0' +
                          std::to_string(source->port);
  const Locked own(&source->data_lock);
  Relay_log_info &relay= source->rli;
  const Locked its(&relay.data_lock);
  if (source->slave_running != MYSQL_SLAVE_RUN_READING || !relay.slave_running)
  {
    /* It may follow from somewhere else when it follows again. */
    m_sources.erase(name);
    return 0;
  }
  const auto known= m_sources.find(name);
  const bool is_first= known == m_sources.end();
  Followed &followed= is_first ? m_sources[name] : known->second;
  const my_time_t clock= my_time(0) - my_time_t(source->clock_diff_with_master);
  /* Sessions of the source may have set their time to what is to come. */
  if (relay.last_master_timestamp)
    followed.reached= std::max(followed.reached, std::min(my_time_t(relay.last_master_timestamp), clock));
  const bool is_idle= source->using_parallel() ? relay.are_sql_threads_caught_up() : relay.sql_thread_caught_up;
  const bool is_where_it_was= followed.relay_position == relay.event_relay_log_pos && followed.relay_log == relay.event_relay_log_name;
  const bool lives= followed.heartbeats != source->received_heartbeats || followed.source_position != source->master_log_pos;
  if (!is_first && is_idle && is_where_it_was && lives)
    followed.reached= std::max(followed.reached, followed.looked);
  followed.looked= clock;
  followed.relay_log= relay.event_relay_log_name;
  followed.relay_position= relay.event_relay_log_pos;
  followed.heartbeats= source->received_heartbeats;
  followed.source_position= source->master_log_pos;
  return followed.reached;
}

} // namespace pando
