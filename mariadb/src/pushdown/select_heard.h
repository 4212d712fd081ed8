/* What the server's Items say (warnings, notes) while the engine has them compute: it is kept until the query is answered, and told then, or
   never, if the query is given back. */
#ifndef PANDO_SELECT_HEARD_H
#define PANDO_SELECT_HEARD_H

#include "sql_class.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace pando {

/* One thing that was said. */
struct Saying
{
  Sql_condition::enum_warning_level level;
  uint code;
  std::string text;
  bool operator<(const Saying &other) const
  {
    return std::tie(level, code, text) < std::tie(other.level, other.code, other.text);
  }
  bool operator==(const Saying &other) const
  {
    return level == other.level && code == other.code && text == other.text;
  }
};

/* Of one expression. */
class Heard
{
public:
  /* While it lives, what is said is heard here, and by nobody else. */
  class Listener : public Internal_error_handler
  {
  public:
    Listener(THD *thd, Heard *heard) : m_thd(thd), m_heard(heard)
    {
      heard->forget();
      thd->push_internal_handler(this);
    }
    ~Listener() { m_thd->pop_internal_handler(); }
    bool handle_condition(THD *thd, uint code, const char *state, Sql_condition::enum_warning_level *level, const char *text,
                          Sql_condition **condition) override;

  private:
    THD *m_thd;
    Heard *m_heard;
  };

  /* Of the row that is computed. */
  bool is_silent() const { return m_now.empty(); }
  bool has_error() const { return m_has_error; }
  /* Whether it says the number of a row, which is a matter of the server's plan. */
  bool names_row() const;
  /* Whether some of it has not been said before. */
  bool is_new() const;
  /* The row is computed once more: what is not said again was said once and for all. */
  void begin_again() { m_before.swap(m_now); m_now.clear(); }
  void end_again();
  void forget() { m_now.clear(); m_has_error= false; }
  /* The query is run once more. */
  void forget_rows() { forget(); m_told.clear(); m_asked.clear(); is_asked= false; }
  /* It is told of this row, or has been asked for. False: there is too much of it. */
  bool keep(bool is_asked);

  /* Of a constant that the server computes once for a condition, and keeps. */
  void add_kept(const Saying &one) { m_kept.insert(one); }

  /* It has been asked what there is to say of all rows. */
  bool is_asked= false;
  /* Expressions of parts of it that have been asked instead, and whether it is such a part itself. */
  std::vector<const Heard *> parts;
  bool is_part= false;
  /* Whether any plan of the server's would say the same, if it says something: what is told is all that there is to say of any row; of several
     tables it may say a part of that, so there may be but one thing to say. */
  bool is_sure(size_t tables) const;

  /* What was said once and for all, and what was said of rows, with how often. */
  const std::set<Saying> &once() const { return m_once; }
  const std::map<Saying, ulonglong> &told() const { return m_told; }

private:
  std::vector<Saying> m_now, m_before;
  bool m_has_error= false;
  std::set<Saying> m_known, m_kept, m_once, m_asked;
  std::map<Saying, ulonglong> m_told;
};

class Server_expression;

/* Whether the warnings are those of any plan. */
bool are_warnings_sure(const std::vector<std::unique_ptr<Server_expression>> &expressions, size_t tables);
/* Tells them: each once, and then as often as it was said. */
void tell_warnings(THD *thd, const std::vector<std::unique_ptr<Server_expression>> &expressions);
/* The query is given back: what the server will not say again, as it keeps what it has converted. */
void tell_kept_warnings(THD *thd, const std::vector<std::unique_ptr<Server_expression>> &expressions);

} // namespace pando

#endif
