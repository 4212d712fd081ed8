/* Foreign keys: what the engine's catalog says of them (crates/pandodb/src/foreign_keys.rs), and how they are shown.

     foreign_key.cc          constraints of a table as the catalog has them, their texts
     foreign_key_ddl.cc      CREATE, ALTER, DROP, RENAME, TRUNCATE: what may be defined, and what stands in the way
     foreign_key_rows.cc     rows that are written: their parents and children
     parent_probes.cc        the keys that many rows want of a parent
     related_rows.cc         rows of the other table of a constraint, looked up by their keys
     related_table.cc        the other table of a constraint, opened beside those of the statement */
#ifndef PANDO_FOREIGN_KEY_H
#define PANDO_FOREIGN_KEY_H

#include "plugin.h"
#include <deque>
#include <string>
#include <vector>

namespace pando {

using Action= PandoReferentialAction;

/* A constraint. Paths are those of the catalog: `database/table`, as file names. */
struct Foreign_key_definition
{
  std::string name;
  std::string child, parent;
  std::vector<std::string> columns, parent_columns;
  Action on_delete= PANDO_REFERENTIAL_ACTION_RESTRICT;
  Action on_update= PANDO_REFERENTIAL_ACTION_RESTRICT;

  bool is_to_itself() const { return child == parent; }
};

using Foreign_key_list= std::vector<Foreign_key_definition>;

/* Those in which the table is the child, or the parent. `path`: as the server has it. */
Foreign_key_list constraints_of(const char *path);
Foreign_key_list references_to(const char *path);

/* What the catalog is given, valid as long as this and the list live and do not change. */
class Foreign_key_views
{
public:
  explicit Foreign_key_views(const Foreign_key_list &list);
  const PandoForeignKey *data() const { return m_views.data(); }
  uint32_t size() const { return uint32_t(m_views.size()); }

private:
  std::vector<PandoForeignKey> m_views;
  std::deque<std::vector<PandoBytes>> m_columns;
};

/* `./database/table` as the catalog has it. */
std::string catalog_path(const char *path);
std::string catalog_path(const char *database, const char *table);
/* The names in a path. */
struct Table_names
{
  explicit Table_names(const std::string &path);
  char database[NAME_LEN + 1];
  char table[NAME_LEN + 1];
};

/* CONSTRAINT `name` FOREIGN KEY (...) REFERENCES ... as SHOW CREATE TABLE has it. */
void append_constraint(THD *thd, const Foreign_key_definition &key, String *text);
/* The same with the child's name before it: of error messages. */
void append_child_and_constraint(THD *thd, const Foreign_key_definition &key, String *text);

bool foreign_keys_are_checked(THD *thd);
bool same_name(const std::string &a, const std::string &b);

/* Those of `list` that `old` does not have. */
Foreign_key_list without_old(Foreign_key_list list, const Foreign_key_list &old);

/* Of SHOW ENGINE PANDO STATUS. */
void note_foreign_key_error(THD *thd, const char *text);
void append_last_foreign_key_error(String *out);

} // namespace pando

#endif
