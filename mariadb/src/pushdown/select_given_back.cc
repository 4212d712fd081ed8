#include "select_given_back.h"
#include "select_translate.h"
#include "tztime.h"

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

uint64_t number_of_query(const std::string &said, const std::vector<const PandoTable *> &tables, ulonglong memory)
{
  const auto add= [](uint64_t number, uint64_t more) { return (number ^ more) * 0x9E3779B97F4A7C15ULL; };
  uint64_t number= add(std::hash<std::string>()(said), memory);
  for (const PandoTable *table : tables)
    number= add(number, uint64_t(reinterpret_cast<uintptr_t>(table)));
  return number;
}

const char *given_back_lately(uint64_t query, bool is_execution)
{
  const std::lock_guard<std::mutex> guard(mutex);
  const auto found= queries.find(query);
  if (found == queries.end() || !found->second.left)
    return nullptr;
  found->second.left-= is_execution;
  return found->second.reason;
}

namespace {

/* Parts of what is said, of which none can be taken for another. */
class Said_parts
{
public:
  void add(uint64_t number) { Select_bytes::large(&m_bytes, number); }
  void add(const std::string &text)
  {
    add(text.size());
    m_bytes+= text;
  }
  void add(CHARSET_INFO *collation) { add(collation ? collation->number : 0); }
  const std::string &bytes() const { return m_bytes; }

private:
  std::string m_bytes;
};

/* Functions of the server look at these, whatever their arguments are. */
void add_settings(const THD *thd, Said_parts *parts)
{
  const system_variables &settings= thd->variables;
  const String *zone= settings.time_zone->get_name();
  parts->add(settings.sql_mode);
  parts->add(std::string(zone->ptr(), zone->length()));
  parts->add(settings.lc_time_names->number);
  parts->add(settings.default_week_format);
  parts->add(settings.div_precincrement);
  parts->add(settings.max_allowed_packet);
}

} // namespace

/* The values of constants that are computed: an Item shows the names of variables, not what they are. */
void Select_translator::values_of_constants(Item *item, std::vector<std::string> *to) const
{
  if (is_constant(item))
  {
    Silent_evaluation evaluation(m_thd);
    StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
    const String *value= without_cache(item)->val_str(&buffer);
    to->push_back(value ? 'v' + std::string(value->ptr(), value->length()) : std::string());
    return;
  }
  switch (item->type())
  {
  case Item::REF_ITEM:
  {
    const Item_ref *ref= static_cast<Item_ref *>(item);
    if (ref->ref && *ref->ref)
      values_of_constants(*ref->ref, to);
    return;
  }
  case Item::FUNC_ITEM:
  {
    const Item_func *function= static_cast<Item_func *>(item);
    for (uint i= 0; i < function->argument_count(); i++)
      values_of_constants(function->arguments()[i], to);
    return;
  }
  case Item::COND_ITEM:
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    while (Item *part= parts++)
      values_of_constants(part, to);
    return;
  }
  case Item::ROW_ITEM:
    for (uint i= 0; i < item->cols(); i++)
      values_of_constants(item->element_index(i), to);
    return;
  default:
    return;
  }
}

std::string Select_translator::all_that_is_said(SELECT_LEX *select) const
{
  Said_parts parts;
  parts.add(m_bytes);
  parts.add(limit_that_leaves_all(select));
  for (const auto &collation : m_collations)
  {
    parts.add(collation.first);
    parts.add(collation.second);
  }
  for (const Text_test &test : m_tests)
  {
    parts.add(test.pattern ? test.pattern->text() : std::string());
    parts.add(test.pattern ? uint64_t(test.pattern->escape()) + 1 : 0);
    parts.add(test.collation);
    parts.add(test.comparison);
    parts.add(test.constant);
  }
  for (const Text_change &change : m_changes)
  {
    parts.add(change.what);
    parts.add(change.charset);
    parts.add(uint64_t(change.position));
    parts.add(uint64_t(change.length));
  }
  for (const Text_measure &measure : m_measures)
  {
    parts.add(measure.what);
    parts.add(measure.charset);
  }
  for (const Moment_floor &floor : m_floors)
  {
    parts.add(floor.unit);
    parts.add(floor.decimals);
  }
  for (const Warning &warning : warnings)
    parts.add(warning.text);
  add_settings(m_thd, &parts);
  for (uint i= 0; i < served_expressions.size(); i++)
  {
    parts.add(name_of_served(i));
    std::vector<std::string> constants;
    values_of_constants(served_expressions[i]->item(), &constants);
    for (const std::string &constant : constants)
      parts.add(constant);
  }
  return parts.bytes();
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
