/* The other table of a constraint, opened beside those of the statement.

   A statement that writes to a child reads the parent, which the server has not opened; one that writes to a parent reads and
   changes children, and their children. The server opens these, but another part of the statement may use what it has opened.
   So the engine opens each itself, from the definition in its catalog (definition.cc), with a handler of its own, which works
   in the same transaction. The metadata lock of the transaction keeps the definition as it is.

   Opened tables are kept for other statements, of any connection, until some table is made, dropped, renamed or altered. */
#ifndef PANDO_RELATED_TABLE_H
#define PANDO_RELATED_TABLE_H

#include "foreign_key.h"

class ha_pando;

namespace pando {

class Related_table
{
public:
  /* Opens the table for a statement of this connection, or takes one that is kept. Null: there is none, or it cannot be
     opened, for which open_failure() has the reason if the engine refused it; nothing is reported. The caller has its metadata lock, or
     only looks at its definition. */
  static Related_table *take(THD *thd, const std::string &path);
  void give_back();
  /* Whether this thread is opening one. */
  static bool is_opening();
  /* Before and after tables change. */
  static void close_kept();

  TABLE *table() { return &m_table; }
  ha_pando *file();
  const std::string &path() const { return m_path; }
  /* The schema's when it was opened. */
  uint64_t version() const { return m_version; }

private:
  Related_table() = default;
  ~Related_table();
  bool open(THD *thd, const std::string &path);
  bool read_definition(THD *thd);
  void choose_columns();
  void attach(THD *thd);

  std::string m_path;
  std::string m_file_path; /* ./database/table */
  uint64_t m_version= 0;
  TABLE_SHARE m_share;
  TABLE m_table;
  bool m_has_share= false;
  bool m_is_open= false;
};

/* Gives it back at the end of a scope. */
class Taken_table
{
public:
  Taken_table(THD *thd, const std::string &path) : m_related(Related_table::take(thd, path)) {}
  ~Taken_table()
  {
    if (m_related)
      m_related->give_back();
  }
  Taken_table(const Taken_table &) = delete;
  Taken_table &operator=(const Taken_table &) = delete;
  Related_table *operator->() { return m_related; }
  explicit operator bool() const { return m_related; }

private:
  Related_table *m_related;
};

/* The table's metadata lock until the end of the transaction. False: it was not granted, which has been reported. */
bool lock_metadata(THD *thd, const Table_names &names, enum_mdl_type type);

Field *find_field(const TABLE *table, const std::string &name);
/* A key that begins with these columns, in this order, and can be searched for their values; MAX_KEY: there is none. One that is
   unique and has no others comes before the first. */
uint find_key(const TABLE *table, const std::vector<std::string> &columns);
uint first_key(const TABLE *table, const std::vector<std::string> &columns);

} // namespace pando

#endif
