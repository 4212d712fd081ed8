#include "select_report.h"
#include "select_translate.h"

#include <atomic>
#include <mutex>

namespace pando {

/* Of those that nobody asked the cost of, nothing is noted. */
static std::mutex declined_mutex;
static std::map<std::string, Declined> declined;

void note_declined(const std::string &reason)
{
  const time_t now= time_t(my_hrtime().val / 1000000);
  const std::lock_guard<std::mutex> guard(declined_mutex);
  Declined &of_reason= declined[reason];
  of_reason.queries++;
  of_reason.last= now;
}

static std::atomic<ulonglong> left_by_cost[size_t(Left_by_cost::COUNT)];
static std::atomic<time_t> last_left[size_t(Left_by_cost::COUNT)];

const char *name_of(Left_by_cost why)
{
  return why == Left_by_cost::KEYS ? "cost: keys that lead to few rows" : "cost: few rows";
}

void note_left_by_cost(Left_by_cost why)
{
  left_by_cost[size_t(why)].fetch_add(1, std::memory_order_relaxed);
  last_left[size_t(why)].store(time_t(my_hrtime().val / 1000000), std::memory_order_relaxed);
}

std::map<std::string, Declined> declined_selects()
{
  std::map<std::string, Declined> all;
  {
    const std::lock_guard<std::mutex> guard(declined_mutex);
    all= declined;
  }
  for (const Left_by_cost why : {Left_by_cost::KEYS, Left_by_cost::FEW_ROWS})
    if (const ulonglong queries= left_by_cost[size_t(why)])
    {
      Declined &of_cost= all[name_of(why)];
      of_cost.queries= queries;
      of_cost.last= last_left[size_t(why)];
    }
  return all;
}

void append_declined_selects(String *text)
{
  const std::map<std::string, Declined> all= declined_selects();
  if (all.empty())
    return;
  text->append(STRING_WITH_LEN("\nSELECTs left to the server, by what is in the way\n"));
  for (const auto &one : all)
  {
    text->append(one.first.data(), one.first.size());
    text->append(STRING_WITH_LEN(": "));
    text->append_ulonglong(one.second.queries);
    text->append('\n');
  }
}

std::string Select_translator::name_of_column(uint slot) const
{
  for (const Source &source : m_sources)
  {
    const Field *field= nullptr;
    for (const Column &column : source.columns)
      if (column.slot == slot)
        field= column.field;
    for (uint i= 0; source.table && i < source.slots.size() && i < source.table->s->fields; i++)
      if (source.slots[i] == slot)
        field= source.table->field[i];
    if (field)
      return std::string(source.list->alias.str, source.list->alias.length) + "." +
             std::string(field->field_name.str, field->field_name.length);
  }
  return "#" + std::to_string(slot);
}

std::string Select_translator::name_of_table(int number) const
{
  for (const Source &source : m_sources)
    if (source.number >= 0 && number >= source.number && number < source.number + int(source.parts))
      return std::string(source.list->alias.str, source.list->alias.length);
  return std::string();
}

std::string Select_translator::name_of_served(uint number) const
{
  if (number >= served_expressions.size())
    return std::string();
  String text;
  served_expressions[number]->item()->print(&text, QT_ORDINARY);
  return std::string(text.ptr(), text.length());
}

/* A text of the engine's, in which columns and the server's expressions are numbers. */
static std::string in_names(const PandoBytes &bytes, const Select_translator &translator)
{
  static const char COLUMN= 1, SERVED= 2;
  std::string text;
  for (size_t i= 0; i < bytes.len; i++)
  {
    const char c= char(bytes.data[i]);
    if (c != COLUMN && c != SERVED)
    {
      text+= c;
      continue;
    }
    uint number= 0;
    for (i++; i < bytes.len && bytes.data[i] >= '0' && bytes.data[i] <= '9'; i++)
      number= number * 10 + (bytes.data[i] - '0');
    text+= c == COLUMN ? translator.name_of_column(number) : translator.name_of_served(number);
  }
  return text;
}

std::vector<Plan_line> lines_of_plan(const PandoAnalytic *query, const Select_translator &translator)
{
  std::vector<Plan_line> lines;
  const uint64_t count= pando_analytic_operators(query);
  for (uint64_t i= 0; i < count; i++)
  {
    const PandoAnalyticOperator one= pando_analytic_operator(query, i);
    Plan_line line;
    line.parent= one.parent;
    line.name.assign(reinterpret_cast<const char *>(one.name.data), one.name.len);
    line.table= translator.name_of_table(one.table);
    line.what= in_names(one.what, translator);
    line.estimated= one.estimated;
    line.rows= one.rows;
    line.held_us= one.held_us;
    lines.push_back(std::move(line));
  }
  return lines;
}

} // namespace pando
