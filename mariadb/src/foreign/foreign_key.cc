#include "foreign_key.h"
#include "definition.h"
#include "ha_pando.h"
#include "reports.h"
#include "related_table.h"
#include <algorithm>
#include <mutex>
#include "sql_show.h"

namespace pando {

/* --- the catalog --- */

static std::vector<std::string> strings(const PandoBytes *texts, uint32_t count)
{
  std::vector<std::string> out;
  for (uint32_t i= 0; i < count; i++)
    out.emplace_back(reinterpret_cast<const char *>(texts[i].data), texts[i].len);
  return out;
}

static std::string string(PandoBytes bytes)
{
  return std::string(reinterpret_cast<const char *>(bytes.data), bytes.len);
}

static void add_constraint(void *context, const PandoForeignKey *key)
{
  Foreign_key_definition definition;
  definition.name= string(key->name);
  definition.child= catalog_path(string(key->child).c_str());
  definition.parent= string(key->parent);
  definition.columns= strings(key->columns, key->column_count);
  definition.parent_columns= strings(key->parent_columns, key->column_count);
  definition.on_delete= key->on_delete;
  definition.on_update= key->on_update;
  static_cast<Foreign_key_list *>(context)->push_back(std::move(definition));
}

Foreign_key_list constraints_of(const char *path)
{
  Foreign_key_list list;
  pando_foreign_keys_visit(db, text(path), false, &list, add_constraint);
  /* As InnoDB. */
  std::sort(list.begin(), list.end(),
            [](const Foreign_key_definition &a, const Foreign_key_definition &b) { return a.name < b.name; });
  return list;
}

Foreign_key_list references_to(const char *path)
{
  Foreign_key_list list;
  pando_foreign_keys_visit(db, text(path), true, &list, add_constraint);
  return list;
}

Foreign_key_views::Foreign_key_views(const Foreign_key_list &list)
{
  const auto views= [this](const std::vector<std::string> &names) {
    m_columns.emplace_back();
    for (const std::string &name : names)
      m_columns.back().push_back(text(name.c_str()));
    return m_columns.back().data();
  };
  for (const Foreign_key_definition &key : list)
  {
    PandoForeignKey view= {};
    view.name= text(key.name.c_str());
    view.child= text(key.child.c_str());
    view.parent= text(key.parent.c_str());
    view.columns= views(key.columns);
    view.parent_columns= views(key.parent_columns);
    view.column_count= uint32_t(key.columns.size());
    view.on_delete= key.on_delete;
    view.on_update= key.on_update;
    m_views.push_back(view);
  }
}

/* --- names --- */

std::string catalog_path(const char *path)
{
  while (path[0] == '.' && path[1] == FN_LIBCHAR)
    path+= 2;
  return path;
}

std::string catalog_path(const char *database, const char *table)
{
  char path[FN_REFLEN + 1];
  build_table_filename(path, sizeof(path) - 1, database, table, "", 0);
  return catalog_path(path);
}

Table_names::Table_names(const std::string &path)
{
  const size_t slash= path.rfind(FN_LIBCHAR);
  const std::string folder= slash == std::string::npos ? std::string() : path.substr(0, slash);
  const std::string file= slash == std::string::npos ? path : path.substr(slash + 1);
  database[filename_to_tablename(folder.c_str(), database, sizeof(database))]= 0;
  /* The server does not encode its own names. */
  if (is_interim_name(file.c_str()))
    strmake_buf(table, file.c_str());
  else
    table[filename_to_tablename(file.c_str(), table, sizeof(table), true)]= 0;
}

bool same_name(const std::string &a, const std::string &b)
{
  return is_same_name(LEX_CSTRING{a.c_str(), a.size()}, LEX_CSTRING{b.c_str(), b.size()});
}

Foreign_key_list without_old(Foreign_key_list list, const Foreign_key_list &old)
{
  Foreign_key_list added;
  for (Foreign_key_definition &key : list)
  {
    const auto is_same= [&key](const Foreign_key_definition &other) {
      return other.name == key.name && other.columns == key.columns && other.parent == key.parent &&
             other.parent_columns == key.parent_columns;
    };
    if (std::none_of(old.begin(), old.end(), is_same))
      added.push_back(std::move(key));
  }
  return added;
}

bool foreign_keys_are_checked(THD *thd)
{
  return !thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS);
}

/* --- texts --- */

static void append_name(THD *thd, const char *name, String *text)
{
  append_identifier(thd, text, name, strlen(name));
}

static void append_columns(THD *thd, const std::vector<std::string> &columns, String *text)
{
  text->append('(');
  for (size_t i= 0; i < columns.size(); i++)
  {
    if (i)
      text->append(STRING_WITH_LEN(", "));
    append_name(thd, columns[i].c_str(), text);
  }
  text->append(')');
}

static void append_action(const char *event, Action action, String *text)
{
  const char *what= nullptr;
  switch (action)
  {
  case PANDO_REFERENTIAL_ACTION_RESTRICT:  return;
  case PANDO_REFERENTIAL_ACTION_NO_ACTION: what= "NO ACTION"; break;
  case PANDO_REFERENTIAL_ACTION_CASCADE:   what= "CASCADE"; break;
  case PANDO_REFERENTIAL_ACTION_SET_NULL:  what= "SET NULL"; break;
  }
  text->append(event, strlen(event));
  text->append(what, strlen(what));
}

void append_constraint(THD *thd, const Foreign_key_definition &key, String *text)
{
  text->append(STRING_WITH_LEN("CONSTRAINT "));
  append_name(thd, key.name.c_str(), text);
  text->append(STRING_WITH_LEN(" FOREIGN KEY "));
  append_columns(thd, key.columns, text);
  text->append(STRING_WITH_LEN(" REFERENCES "));
  const Table_names child(key.child), parent(key.parent);
  if (strcmp(child.database, parent.database))
  {
    append_name(thd, parent.database, text);
    text->append('.');
  }
  append_name(thd, parent.table, text);
  text->append(' ');
  append_columns(thd, key.parent_columns, text);
  append_action(" ON DELETE ", key.on_delete, text);
  append_action(" ON UPDATE ", key.on_update, text);
}

void append_child_and_constraint(THD *thd, const Foreign_key_definition &key, String *text)
{
  const Table_names child(key.child);
  append_name(thd, child.database, text);
  text->append('.');
  append_name(thd, child.table, text);
  text->append(STRING_WITH_LEN(", "));
  append_constraint(thd, key, text);
}

/* --- the last error --- */

static std::mutex last_error_mutex;
static std::string last_error;

void note_foreign_key_error(THD *, const char *text)
{
  String moment;
  append_moment(time(nullptr), &moment);
  std::lock_guard<std::mutex> guard(last_error_mutex);
  last_error.assign(moment.ptr(), moment.length());
  last_error+= '\n';
  last_error+= text;
  last_error+= '\n';
}

void append_last_foreign_key_error(String *out)
{
  std::lock_guard<std::mutex> guard(last_error_mutex);
  if (last_error.empty())
    return;
  out->append(STRING_WITH_LEN("LATEST FOREIGN KEY ERROR\n"));
  out->append(last_error.data(), last_error.size());
}

} // namespace pando

using namespace pando;

/* --- what the server asks --- */

char *ha_pando::get_foreign_key_create_info()
{
  const Foreign_key_list list= constraints_of(m_name.c_str());
  if (list.empty())
    return nullptr;
  String text;
  for (const Foreign_key_definition &key : list)
  {
    text.append(STRING_WITH_LEN(",\n  "));
    append_constraint(ha_thd(), key, &text);
  }
  return my_strndup(PSI_INSTRUMENT_ME, text.ptr(), text.length(), MYF(0));
}

void ha_pando::free_foreign_key_create_info(char *text)
{
  my_free(text);
}

static LEX_CSTRING *lex_string(THD *thd, const char *text)
{
  return thd_make_lex_string(thd, nullptr, text, strlen(text), 1);
}

static enum_fk_option option_of(Action action)
{
  switch (action)
  {
  case PANDO_REFERENTIAL_ACTION_CASCADE:   return FK_OPTION_CASCADE;
  case PANDO_REFERENTIAL_ACTION_SET_NULL:  return FK_OPTION_SET_NULL;
  case PANDO_REFERENTIAL_ACTION_NO_ACTION: return FK_OPTION_NO_ACTION;
  case PANDO_REFERENTIAL_ACTION_RESTRICT:  break;
  }
  return FK_OPTION_RESTRICT;
}

static void note_nullable(THD *thd, const TABLE *table, const std::vector<std::string> &columns, bool is_parent,
                          FOREIGN_KEY_INFO *info)
{
  for (uint i= 0; i < columns.size(); i++)
  {
    const Field *field= find_field(table, columns[i]);
    if (field && field->real_maybe_null())
      info->set_nullable(thd, is_parent, i, uint(columns.size()));
  }
}

/* As the server wants them. `table` is the parent or the child. */
static void add_information(THD *thd, const Foreign_key_definition &key, const TABLE *table, bool is_parent,
                            List<FOREIGN_KEY_INFO> *list)
{
  FOREIGN_KEY_INFO info;
  const Table_names child(key.child), parent(key.parent);
  info.foreign_id= lex_string(thd, key.name.c_str());
  info.foreign_db= lex_string(thd, child.database);
  info.foreign_table= lex_string(thd, child.table);
  info.referenced_db= lex_string(thd, parent.database);
  info.referenced_table= lex_string(thd, parent.table);
  info.update_method= option_of(key.on_update);
  info.delete_method= option_of(key.on_delete);
  info.referenced_key_name= nullptr;
  for (const std::string &column : key.columns)
    info.foreign_fields.push_back(lex_string(thd, column.c_str()), thd->mem_root);
  for (const std::string &column : key.parent_columns)
    info.referenced_fields.push_back(lex_string(thd, column.c_str()), thd->mem_root);
  note_nullable(thd, table, is_parent ? key.parent_columns : key.columns, is_parent, &info);
  Taken_table other(thd, is_parent ? key.child : key.parent);
  if (other)
  {
    note_nullable(thd, other->table(), is_parent ? key.columns : key.parent_columns, !is_parent, &info);
    const TABLE *parent_table= is_parent ? table : other->table();
    const uint index= find_key(parent_table, key.parent_columns);
    if (index != MAX_KEY)
      info.referenced_key_name= lex_string(thd, parent_table->key_info[index].name.str);
  }
  list->push_back(static_cast<FOREIGN_KEY_INFO *>(thd_memdup(thd, &info, sizeof(info))), thd->mem_root);
}

int ha_pando::get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list)
{
  for (const Foreign_key_definition &key : constraints_of(m_name.c_str()))
    add_information(thd, key, table, false, list);
  return 0;
}

int ha_pando::get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list)
{
  for (const Foreign_key_definition &key : references_to(m_name.c_str()))
    add_information(thd, key, table, true, list);
  return 0;
}

/* Tables with constraints stay what they are. */
bool ha_pando::can_switch_engines()
{
  return constraints_of(m_name.c_str()).empty() && references_to(m_name.c_str()).empty();
}
