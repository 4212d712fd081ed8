#include "select_server.h"

#include <algorithm>

namespace pando {

/* Different things that one expression may say: what it says of each of many values is the server's. */
static const size_t SAYINGS_MAX= 65536;
/* Of those of rows that are asked beforehand: as many as the server shows by default. */
static const size_t ASKED_MAX= 64;
/* Warnings after which somebody asks whether the session is to end. */
static const ulonglong TOLD_UNASKED= 1024;

bool Heard::Listener::handle_condition(THD *, uint code, const char *, Sql_condition::enum_warning_level *level, const char *text,
                                       Sql_condition **)
{
  m_heard->m_has_error|= *level == Sql_condition::WARN_LEVEL_ERROR;
  m_heard->m_now.push_back(Saying{*level, code, text});
  return true;
}

/* It ends with it ("at row 7"), in whatever language. */
bool Heard::names_row() const
{
  return std::any_of(m_now.begin(), m_now.end(), [](const Saying &one) {
    return one.code != ER_DIVISION_BY_ZERO && !one.text.empty() && my_isdigit(&my_charset_latin1, one.text.back());
  });
}

bool Heard::is_new() const
{
  return std::any_of(m_now.begin(), m_now.end(), [this](const Saying &one) { return !m_known.count(one); });
}

void Heard::end_again()
{
  for (const Saying &one : m_before)
    if (std::find(m_now.begin(), m_now.end(), one) == m_now.end())
      m_once.insert(one);
  m_known.insert(m_now.begin(), m_now.end());
  m_before.clear();
}

bool Heard::keep(bool is_asked)
{
  for (const Saying &one : m_now)
  {
    if (m_kept.count(one))
      m_once.insert(one);
    else if (is_asked)
      m_asked.insert(one);
    else
      m_told[one]++;
  }
  m_now.clear();
  /* What all rows say is seldom what those say that are left: it is not worth while to ask on. */
  return m_asked.size() <= ASKED_MAX && m_asked.size() + m_told.size() <= SAYINGS_MAX;
}

bool Heard::is_sure(size_t tables) const
{
  if (is_part && m_told.empty())
    return true;
  std::set<Saying> all= m_asked;
  bool was_asked= is_asked;
  for (const Heard *part : parts)
  {
    all.insert(part->m_asked.begin(), part->m_asked.end());
    was_asked|= part->is_asked;
  }
  if (tables > 1 && all.size() > 1)
    return false;
  /* What is said once is said of no row more than of others. */
  return !was_asked || (all.size() == m_told.size() && std::all_of(m_told.begin(), m_told.end(), [&all](const auto &one) {
                          return all.count(one.first);
                        }));
}

bool are_warnings_sure(const std::vector<std::unique_ptr<Server_expression>> &expressions, size_t tables)
{
  return std::all_of(expressions.begin(), expressions.end(), [tables](const auto &one) { return one->heard.is_sure(tables); });
}

static void tell(THD *thd, const Saying &one)
{
  push_warning(thd, one.level, one.code, one.text.c_str());
}

void tell_kept_warnings(THD *thd, const std::vector<std::unique_ptr<Server_expression>> &expressions)
{
  std::set<Saying> told;
  for (const auto &expression : expressions)
    for (const Saying &one : expression->heard.once())
      if (told.insert(one).second)
        tell(thd, one);
}

void tell_warnings(THD *thd, const std::vector<std::unique_ptr<Server_expression>> &expressions)
{
  tell_kept_warnings(thd, expressions);
  for (const auto &expression : expressions)
    for (const auto &one : expression->heard.told())
      tell(thd, one.first);
  /* The list has room for so many; all are counted. */
  for (const auto &expression : expressions)
    for (const auto &one : expression->heard.told())
      for (ulonglong i= 1; i < one.second; i++)
      {
        /* As many as there are rows: who is killed does not count to the end. */
        if (i % TOLD_UNASKED == 0 && thd->killed)
          return;
        tell(thd, one.first);
      }
}

} // namespace pando
