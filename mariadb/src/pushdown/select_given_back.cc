#include "select_given_back.h"

#include <mutex>
#include <unordered_map>

namespace pando {

/* Less work is not worth a note. */
static const ulonglong NANOSECONDS_MIN= 5000000;
static const size_t QUERIES_MAX= 1024;
static const uint SKIPPED_FIRST= 4, SKIPPED_MAX= 256;

namespace {

struct Given_back
{
  const char *reason;
  uint skipped; /* executions after it was given back last */
  uint left;    /* of these */
};

} // namespace

static thread_local std::pair<query_id_t, const SELECT_LEX *> select_given_back;
static thread_local uint64_t groups_of_it;

/* A leaf among the locks. */
static std::mutex mutex;
static std::unordered_map<uint64_t, Given_back> queries;

uint64_t number_of_query(const std::string &bytes, const std::vector<const PandoTable *> &tables, ulonglong memory)
{
  const auto add= [](uint64_t number, uint64_t more) { return (number ^ more) * 0x9E3779B97F4A7C15ULL; };
  uint64_t number= add(std::hash<std::string>()(bytes), memory);
  for (const PandoTable *table : tables)
    number= add(number, uint64_t(reinterpret_cast<uintptr_t>(table)));
  return number;
}

const char *given_back_lately(uint64_t query)
{
  const std::lock_guard<std::mutex> guard(mutex);
  const auto found= queries.find(query);
  if (found == queries.end() || !found->second.left)
    return nullptr;
  found->second.left--;
  return found->second.reason;
}

void note_given_back(uint64_t query, const char *reason, ulonglong nanoseconds)
{
  if (nanoseconds < NANOSECONDS_MIN)
    return;
  const std::lock_guard<std::mutex> guard(mutex);
  const auto found= queries.find(query);
  if (found != queries.end())
  {
    found->second.reason= reason;
    found->second.left= found->second.skipped= MY_MIN(found->second.skipped * 4, SKIPPED_MAX);
    return;
  }
  /* Which ones are forgotten matters little: they are tried once more. */
  if (queries.size() >= QUERIES_MAX)
    queries.erase(queries.begin());
  queries.emplace(query, Given_back{reason, SKIPPED_FIRST, SKIPPED_FIRST});
}

void note_answered(uint64_t query)
{
  const std::lock_guard<std::mutex> guard(mutex);
  queries.erase(query);
}

void note_groups_of(const THD *thd, const SELECT_LEX *select, uint64_t query)
{
  select_given_back= {thd->query_id, select};
  groups_of_it= MY_MAX(~query, 1);
}

uint64_t number_of_groups(const THD *thd, const SELECT_LEX *select)
{
  return select_given_back == std::pair<query_id_t, const SELECT_LEX *>(thd->query_id, select) ? groups_of_it : 0;
}

} // namespace pando
