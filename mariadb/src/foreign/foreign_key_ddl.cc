/* Foreign keys in CREATE, ALTER and DROP. What is refused, and with which error, is InnoDB's; the reason is a warning, and stands
   in SHOW ENGINE PANDO STATUS.

   ALTER TABLE that copies creates a table with all constraints that it is to have, under an interim name, where they do not count
   (crates/pandodb/src/ddl/foreign_keys.rs). The rows are checked for those that it adds when the copy is complete, while the server
   keeps others from writing to the table and to the parents. An ALTER in place checks them before its change is committed. */
#include "foreign_key_ddl.h"
#include "definition.h"
#include "related_table.h"
#include "ha_pando.h"
#include "alter.h"
#include "sql_show.h"
#include <algorithm>
#include <charconv>

namespace pando {

/* --- reasons --- */

/* What an ALTER in place tells instead of error 150. */
enum class Reason : uint8_t { OTHER, NO_CHILD_INDEX, NO_PARENT_INDEX, NO_PARENT, NOT_NULL };
static thread_local Reason last_reason;

static int refused(THD *thd, Reason reason, const char *table, const Foreign_key_definition &key, const char *format, ...)
  ATTRIBUTE_FORMAT(printf, 5, 6);

static int refused(THD *thd, Reason reason, const char *table, const Foreign_key_definition &key, const char *format, ...)
{
  last_reason= reason;
  char why[1024], whole[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof(why), format, arguments);
  va_end(arguments);
  String constraint;
  append_constraint(thd, key, &constraint);
  snprintf(whole, sizeof(whole), "Table `%s` cannot have %s. %s", table, constraint.c_ptr_safe(), why);
  push_warning(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN, whole);
  note_foreign_key_error(thd, whole);
  return HA_ERR_CANNOT_ADD_FOREIGN;
}

/* --- what the two sides have to have in common --- */

static bool is_text(const Field *field)
{
  switch (field->real_type())
  {
  case MYSQL_TYPE_STRING:
  case MYSQL_TYPE_VARCHAR:
  case MYSQL_TYPE_VAR_STRING:
    return field->type_handler()->is_traditional_scalar_type();
  default:
    return false;
  }
}

/* Texts may have different lengths, everything else has to be the same. */
static bool is_same_type(const Field *a, const Field *b)
{
  if (is_text(a) && is_text(b))
    return a->charset() == b->charset();
  if (a->type_handler() != b->type_handler() || a->real_type() != b->real_type() ||
      a->pack_length() != b->pack_length() || ((a->flags ^ b->flags) & UNSIGNED_FLAG))
    return false;
  return a->decimals() == b->decimals() && a->field_length == b->field_length ? true
         : a->result_type() == INT_RESULT || a->real_type() == MYSQL_TYPE_ENUM || a->real_type() == MYSQL_TYPE_SET;
}

static bool sets_null(const Foreign_key_definition &key)
{
  return key.on_delete == PANDO_REFERENTIAL_ACTION_SET_NULL || key.on_update == PANDO_REFERENTIAL_ACTION_SET_NULL;
}

/* Whether the child has what the constraint needs. */
static int check_child(THD *thd, const TABLE *child, const Foreign_key_definition &key)
{
  const char *name= child->s->table_name.str;
  if (child->versioned())
    return refused(thd, Reason::OTHER, name, key, "Tables with system versioning cannot have foreign keys.");
  for (const std::string &column : key.columns)
  {
    const Field *field= find_field(child, column);
    if (!field)
      return refused(thd, Reason::OTHER, name, key, "It has no column `%s`.", column.c_str());
    if (sets_null(key) && !field->real_maybe_null())
      return refused(thd, Reason::NOT_NULL, name, key, "SET NULL is defined, but column `%s` is NOT NULL.", column.c_str());
  }
  if (find_key(child, key.columns) == MAX_KEY)
    return refused(thd, Reason::NO_CHILD_INDEX, name, key, "There is no index in the table where its columns appear as the first columns.");
  return 0;
}

static int check_parent(THD *thd, const TABLE *child, const TABLE *parent, const Foreign_key_definition &key)
{
  const char *name= child->s->table_name.str;
  const ha_table_option_struct *options= parent->s->option_struct;
  if (options && options->ttl && *options->ttl)
    return refused(thd, Reason::OTHER, name, key, "The referenced table has a TTL: its rows expire, whoever refers to them.");
  if (parent->versioned())
    return refused(thd, Reason::OTHER, name, key, "Tables with system versioning cannot be referenced.");
  for (size_t i= 0; i < key.columns.size(); i++)
  {
    const Field *field= find_field(parent, key.parent_columns[i]);
    if (!field)
      return refused(thd, Reason::OTHER, name, key, "The referenced table has no column `%s`.", key.parent_columns[i].c_str());
    if (!is_same_type(find_field(child, key.columns[i]), field))
      return refused(thd, Reason::OTHER, name, key, "Column `%s` and referenced column `%s` differ in type or collation.",
                     key.columns[i].c_str(), key.parent_columns[i].c_str());
  }
  if (find_key(parent, key.parent_columns) == MAX_KEY)
    return refused(thd, Reason::NO_PARENT_INDEX, name, key,
                   "There is no index in the referenced table where the referenced columns appear as the first columns.");
  return 0;
}

/* As InnoDB: in strict mode no column that cannot be NULL follows one that can, if nothing is said of DELETE. An ALTER without checks,
   which InnoDB does in place, may. */
static int check_cascaded_nulls(THD *thd, const TABLE *child, const TABLE *parent, const Foreign_key_definition &key)
{
  if (key.on_update != PANDO_REFERENTIAL_ACTION_CASCADE || key.on_delete != PANDO_REFERENTIAL_ACTION_RESTRICT || !thd->is_strict_mode() ||
      (!foreign_keys_are_checked(thd) && thd_sql_command(thd) == SQLCOM_ALTER_TABLE))
    return 0;
  for (size_t i= 0; i < key.columns.size(); i++)
    if (find_field(parent, key.parent_columns[i])->real_maybe_null() && !find_field(child, key.columns[i])->real_maybe_null())
      return refused(thd, Reason::OTHER, child->s->table_name.str, key,
                     "ON UPDATE CASCADE is defined, and referenced column `%s` may be NULL, but column `%s` is NOT NULL.",
                     key.parent_columns[i].c_str(), key.columns[i].c_str());
  return 0;
}

static int check_both(THD *thd, const TABLE *child, const TABLE *parent, const Foreign_key_definition &key)
{
  if (int error= check_parent(thd, child, parent, key))
    return error;
  return check_cascaded_nulls(thd, child, parent, key);
}

/* `itself`: the child's path after the statement. */
static int check_constraint(THD *thd, const TABLE *child, const Foreign_key_definition &key, const std::string &itself)
{
  if (int error= check_child(thd, child, key))
    return error;
  if (key.parent == itself)
    return check_both(thd, child, child, key);
  Taken_table parent(thd, key.parent);
  if (parent)
    return check_both(thd, child, parent->table(), key);
  if (pando_table_exists(db, text(key.parent.c_str())))
    return refused(thd, Reason::OTHER, child->s->table_name.str, key, "The referenced table cannot be opened.");
  /* With foreign_key_checks=0 it may come later. */
  if (!foreign_keys_are_checked(thd))
    return 0;
  return refused(thd, Reason::NO_PARENT, child->s->table_name.str, key, "The referenced table is not there, is partitioned, or is not of "
                                                     "engine PANDO.");
}

/* --- new constraints --- */

static Action action_of(enum_fk_option option)
{
  switch (option)
  {
  case FK_OPTION_CASCADE:   return PANDO_REFERENTIAL_ACTION_CASCADE;
  case FK_OPTION_SET_NULL:  return PANDO_REFERENTIAL_ACTION_SET_NULL;
  case FK_OPTION_NO_ACTION: return PANDO_REFERENTIAL_ACTION_NO_ACTION;
  default:                  return PANDO_REFERENTIAL_ACTION_RESTRICT;
  }
}

/* The name of a column as the table has it. */
static std::string column_name(const TABLE *table, const Key_part_spec &column)
{
  const Field *field= table ? find_field(table, column.field_name.str) : nullptr;
  return field ? field->field_name.str : column.field_name.str;
}

static std::string parent_path(const Foreign_key &key, const char *own_database)
{
  char database[NAME_LEN + 1], table[NAME_LEN + 1];
  strmake_buf(database, key.ref_db.str ? key.ref_db.str : own_database);
  strmake_buf(table, key.ref_table.str);
  if (lower_case_table_names)
  {
    to_lower_case(database, sizeof(database));
    to_lower_case(table, sizeof(table));
  }
  return catalog_path(database, table);
}

/* The number of a name that could have been generated; 0: it could not. As for InnoDB, nothing but digits counts, and no zero before them. */
static uint64_t number_in(const std::string &name, const std::string &prefix)
{
  if (name.compare(0, prefix.size(), prefix) || name[prefix.size()] == '0')
    return 0;
  const char *end= name.data() + name.size();
  uint64_t number= 0;
  const std::from_chars_result read= std::from_chars(name.data() + prefix.size(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : 0;
}

static uint64_t highest_number(const Foreign_key_list &list, const std::string &prefix)
{
  uint64_t highest= 0;
  for (const Foreign_key_definition &key : list)
    highest= std::max(highest, number_in(key.name, prefix));
  return highest;
}

namespace {

/* The constraints that a statement adds to a table. */
class Additions
{
public:
  Additions(THD *thd, const TABLE *table, const std::string &old_path, const std::string &new_path)
    : m_thd(thd), m_table(table), m_old_path(old_path), m_new_path(new_path), m_prefix(Table_names(new_path).table)
  {
    m_prefix+= "_ibfk_";
    m_number= old_path.empty() ? 0 : highest_number(constraints_of(old_path.c_str()), m_prefix);
  }

  const Foreign_key_definition &last() const { return m_last; }

  int add(const Foreign_key &key, Foreign_key_list *list)
  {
    m_last= Foreign_key_definition();
    Foreign_key_definition &definition= m_last;
    definition.child= m_new_path;
    definition.parent= parent_path(key, m_table->s->db.str);
    List_iterator_fast<Key_part_spec> own(const_cast<Foreign_key &>(key).columns);
    while (Key_part_spec *column= own++)
      definition.columns.push_back(column_name(m_table, *column));
    /* Statements that write to the parent and do not know of this constraint have ended, and others begin when it is there. */
    if (definition.parent != m_new_path && !lock_metadata(m_thd, Table_names(definition.parent), MDL_SHARED_NO_WRITE))
      return HA_ERR_LOCK_WAIT_TIMEOUT;
    Taken_table parent(m_thd, definition.parent);
    const TABLE *parent_table= definition.parent == m_new_path ? m_table : parent ? parent->table() : nullptr;
    List_iterator_fast<Key_part_spec> others(const_cast<Foreign_key &>(key).ref_columns);
    while (Key_part_spec *column= others++)
      definition.parent_columns.push_back(column_name(parent_table, *column));
    definition.on_delete= action_of(key.delete_opt);
    definition.on_update= action_of(key.update_opt);
    if (key.constraint_name.str)
      definition.name= key.constraint_name.str;
    else
      definition.name= generated_name(*list);
    /* Of a name that is given the server sees to this. A dump could not be loaded. */
    if (system_charset_info->numchars(definition.name.c_str(), definition.name.c_str() + definition.name.size()) >
        NAME_CHAR_LEN)
      return my_error(ER_TOO_LONG_IDENT, MYF(0), definition.name.c_str()), HA_ERR_INTERNAL_ERROR;
    if (is_taken(definition.name, *list))
      return tell_duplicate(definition), HA_ERR_FOUND_DUPP_KEY;
    if (key.delete_opt == FK_OPTION_SET_DEFAULT || key.update_opt == FK_OPTION_SET_DEFAULT)
      return refused(m_thd, Reason::OTHER, m_table->s->table_name.str, definition, "SET DEFAULT is not supported.");
    if (int error= check_constraint(m_thd, m_table, definition, m_new_path))
      return error;
    list->push_back(definition);
    return 0;
  }

private:
  void tell_duplicate(const Foreign_key_definition &definition) const
  {
    String text;
    append_constraint(m_thd, definition, &text);
    const Table_names table(m_new_path);
    push_warning_printf(m_thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_FOUND_DUPP_KEY,
                        "CREATE or ALTER TABLE `%s`.`%s` failed: duplicate name, %s", table.database, table.table,
                        text.c_ptr_safe());
  }

  /* After the highest number comes the next; after the last that there is, the first that is free. */
  std::string generated_name(const Foreign_key_list &list)
  {
    if (m_number < UINT64_MAX)
      return m_prefix + std::to_string(++m_number);
    for (uint64_t number= 1;; number++)
    {
      const std::string name= m_prefix + std::to_string(number);
      if (!is_taken(name, list))
        return name;
    }
  }

  bool is_taken(const std::string &name, const Foreign_key_list &list) const
  {
    for (const Foreign_key_definition &other : list)
      if (same_name(other.name, name))
        return true;
    const std::string folder= m_new_path.substr(0, m_new_path.rfind(FN_LIBCHAR));
    return pando_foreign_key_exists(db, text(folder.c_str()), text(name.c_str()), text(m_old_path.c_str()));
  }

  THD *m_thd;
  const TABLE *m_table;
  std::string m_old_path, m_new_path, m_prefix;
  Foreign_key_definition m_last;
  uint64_t m_number;
};

} // namespace

static int add_new(Additions *additions, Alter_info *alter, Foreign_key_list *list)
{
  List_iterator_fast<Key> keys(alter->key_list);
  while (Key *key= keys++)
    if (key->type == Key::FOREIGN_KEY && !key->old)
      if (int error= additions->add(*static_cast<Foreign_key *>(key), list))
        return error;
  return 0;
}

static bool has_new(Alter_info *alter)
{
  List_iterator_fast<Key> keys(alter->key_list);
  while (Key *key= keys++)
    if (key->type == Key::FOREIGN_KEY && !key->old)
      return true;
  return false;
}

/* --- what stays --- */

static bool is_dropped(Alter_info *alter, const std::string &name)
{
  List_iterator_fast<Alter_drop> drops(alter->drop_list);
  while (Alter_drop *drop= drops++)
    if (drop->type == Alter_drop::FOREIGN_KEY && same_name(text_of_name(drop->name), name))
      return true;
  return false;
}

/* The constraints that the altered table is to keep. Their parents have the same names until the end of the statement, which writes these down
   again: so names are looked up again if any has changed while they were locked. False: a lock was not granted, which has been
   reported. */
static bool keep_constraints(THD *thd, const std::string &path, Alter_info *alter, Foreign_key_list *kept)
{
  uint64_t version;
  do
  {
    version= pando_schema_version(db);
    *kept= constraints_of(path.c_str());
    if (alter)
      kept->erase(std::remove_if(kept->begin(), kept->end(),
                                 [alter](const Foreign_key_definition &key) { return is_dropped(alter, key.name); }),
                  kept->end());
    for (const Foreign_key_definition &key : *kept)
      if (!key.is_to_itself() && !lock_metadata(thd, Table_names(key.parent), MDL_SHARED_HIGH_PRIO))
        return false;
  } while (version != pando_schema_version(db));
  return true;
}

static void follow_columns(std::vector<std::string> *columns, const std::vector<std::string> &renamed)
{
  for (std::string &column : *columns)
    for (size_t i= 0; i < renamed.size(); i+= 2)
      if (same_name(column, renamed[i]))
      {
        column= renamed[i + 1];
        break;
      }
}

static bool needs_index(const TABLE *old_table, const TABLE *table, std::vector<std::string> columns,
                        const std::vector<std::string> &renamed)
{
  const uint old_index= old_table ? find_key(old_table, columns) : MAX_KEY;
  follow_columns(&columns, renamed);
  if (find_key(table, columns) != MAX_KEY || (old_table && old_index == MAX_KEY))
    return false;
  my_error(ER_DROP_INDEX_FK, MYF(0), old_table ? old_table->key_info[old_index].name.str : columns[0].c_str());
  return true;
}

/* The first of these columns, by its old name, that the table does not have any more. */
static const char *missing_column(const TABLE *table, const std::vector<std::string> &columns,
                                  const std::vector<std::string> &renamed)
{
  std::vector<std::string> now= columns;
  follow_columns(&now, renamed);
  for (size_t i= 0; i < now.size(); i++)
    if (!find_field(table, now[i]))
      return columns[i].c_str();
  return nullptr;
}

/* Whether system versioning is added to a table with constraints. */
static int check_versioning(THD *thd, const TABLE *table, const std::string &path, const Foreign_key_list &list)
{
  if (!table->versioned())
    return 0;
  const Foreign_key_list references= references_to(path.c_str());
  if (list.empty() && references.empty())
    return 0;
  return refused(thd, Reason::OTHER, table->s->table_name.str, list.empty() ? references[0] : list[0],
                 "Tables with system versioning cannot have foreign keys, nor be referenced.");
}

/* The first of these columns, by its old name, whose values are others then. */
static const char *changed_column(const TABLE *old_table, const TABLE *table, const std::vector<std::string> &columns,
                                  const std::vector<std::string> &renamed)
{
  std::vector<std::string> now= columns;
  follow_columns(&now, renamed);
  for (size_t i= 0; i < now.size(); i++)
  {
    const Field *before= find_field(old_table, columns[i]), *after= find_field(table, now[i]);
    if (before && after && !is_same_type(before, after))
      return columns[i].c_str();
  }
  return nullptr;
}

static const char *not_null_column(const TABLE *table, const std::vector<std::string> &columns,
                                   const std::vector<std::string> &renamed)
{
  std::vector<std::string> now= columns;
  follow_columns(&now, renamed);
  for (size_t i= 0; i < now.size(); i++)
    if (!find_field(table, now[i])->real_maybe_null())
      return columns[i].c_str();
  return nullptr;
}

/* Whether the altered table still has the keys that its constraints need, and those in which it is the parent. True: not, which has
   been reported. */
static bool lacks_index(THD *thd, const std::string &path, const TABLE *old_table, const TABLE *table,
                        Alter_info *alter, const std::vector<std::string> &renamed, bool is_in_place)
{
  const bool is_checked= foreign_keys_are_checked(thd);
  for (const Foreign_key_definition &key : constraints_of(path.c_str()))
  {
    if (is_dropped(alter, key.name))
      continue;
    /* As InnoDB, which comes to the keys before the columns if it does not copy. */
    if (is_in_place && is_checked && needs_index(old_table, table, key.columns, renamed))
      return true;
    if (const char *column= missing_column(table, key.columns, renamed))
      return my_error(ER_FK_COLUMN_CANNOT_DROP, MYF(0), column, key.name.c_str()), true;
    if (const char *column= sets_null(key) ? not_null_column(table, key.columns, renamed) : nullptr)
      return my_error(ER_FK_COLUMN_NOT_NULL, MYF(0), column, key.name.c_str()), true;
    if (is_checked)
      if (const char *column= changed_column(old_table, table, key.columns, renamed))
        return my_error(ER_FK_COLUMN_CANNOT_CHANGE, MYF(0), column, key.name.c_str()), true;
    if (is_checked && needs_index(old_table, table, key.columns, renamed))
      return true;
  }
  for (const Foreign_key_definition &key : references_to(path.c_str()))
  {
    if (key.is_to_itself() && is_dropped(alter, key.name))
      continue;
    if (is_in_place && is_checked && needs_index(old_table, table, key.parent_columns, renamed))
      return true;
    if (const char *column= missing_column(table, key.parent_columns, renamed))
    {
      const Table_names child(key.child);
      String name;
      append_identifier(thd, &name, child.database, strlen(child.database));
      name.append('.');
      append_identifier(thd, &name, child.table, strlen(child.table));
      return my_error(ER_FK_COLUMN_CANNOT_DROP_CHILD, MYF(0), column, key.name.c_str(), name.c_ptr_safe()), true;
    }
    if (!is_checked)
      continue;
    if (const char *column= changed_column(old_table, table, key.parent_columns, renamed))
    {
      const Table_names child(key.child);
      const std::string name= std::string(child.database) + "." + child.table;
      return my_error(ER_FK_COLUMN_CANNOT_CHANGE_CHILD, MYF(0), column, key.name.c_str(), name.c_str()), true;
    }
    if (needs_index(old_table, table, key.parent_columns, renamed))
      return true;
  }
  return false;
}

std::vector<std::string> renamed_columns(const TABLE *altered, Alter_info *alter)
{
  std::vector<std::string> renamed;
  for (uint i= 0; i < altered->s->fields; i++)
  {
    const Create_field *definition= alter->create_list.elem(i);
    const char *name= altered->field[i]->field_name.str;
    if (definition && definition->field && strcmp(definition->field->field_name.str, name))
    {
      renamed.push_back(definition->field->field_name.str);
      renamed.push_back(name);
    }
  }
  return renamed;
}

/* --- the statements --- */

/* The table that an ALTER TABLE copies. */
static const TABLE *copied_table(THD *thd)
{
  const TABLE_LIST *source= thd->lex->query_tables;
  return source && source->table && source->table->s->db_type() == hton ? source->table : nullptr;
}

int define_foreign_keys(THD *thd, const char *path, TABLE *form, HA_CREATE_INFO *info, Foreign_key_list *list)
{
  Alter_info *alter= info->alter_info;
  if (info->tmp_table())
  {
    if (!alter || !has_new(alter))
      return 0;
    const char reason[]= "Temporary tables can't have foreign key constraints.";
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN, reason);
    note_foreign_key_error(thd, reason);
    return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  if (!has_own_file(form->s))
    return 0;
  const std::string itself= catalog_path(form->s->db.str, form->s->table_name.str);
  const TABLE *source= is_interim_name(path) ? copied_table(thd) : nullptr;
  const std::string old_path= source ? catalog_path(source->s->normalized_path.str) : std::string();
  if (source)
  {
    if (alter && lacks_index(thd, old_path, source, form, alter, {}, false))
      return HA_ERR_CANNOT_ADD_FOREIGN;
    if (!keep_constraints(thd, old_path, alter, list))
      return HA_ERR_LOCK_WAIT_TIMEOUT;
  }
  if (alter)
  {
    Additions additions(thd, form, old_path, itself);
    if (int error= add_new(&additions, alter, list))
      return error;
  }
  if (int error= check_versioning(thd, form, source ? old_path : itself, *list))
    return error;
  /* Children may have been first, with foreign_key_checks=0. */
  if (!source && foreign_keys_are_checked(thd))
    for (const Foreign_key_definition &key : references_to(path))
    {
      Taken_table child(thd, key.child);
      if (child)
        if (int error= check_parent(thd, child->table(), form, key))
          return error;
    }
  return 0;
}

/* Of an ALTER in place, with InnoDB's errors: which copies where it checks rows, and then tells what CREATE does. */
static void report_refusal(THD *thd, int error, const TABLE_SHARE *share, const Foreign_key_definition &key)
{
  const char *table= share->table_name.str;
  const Table_names parent(key.parent);
  if (foreign_keys_are_checked(thd) && (error == HA_ERR_FOUND_DUPP_KEY || error == HA_ERR_CANNOT_ADD_FOREIGN))
  {
    const uint second= error == HA_ERR_FOUND_DUPP_KEY ? ER_DUP_KEY : ER_CANNOT_ADD_FOREIGN;
    my_error(ER_CANT_CREATE_TABLE, MYF(0), share->db.str, table, error);
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, second, ER_THD(thd, second), table);
    return;
  }
  if (error == HA_ERR_FOUND_DUPP_KEY)
    return my_error(ER_DUP_CONSTRAINT_NAME, MYF(0), "FOREIGN KEY", key.name.c_str());
  if (error != HA_ERR_CANNOT_ADD_FOREIGN)
    return;
  switch (last_reason)
  {
  case Reason::NO_CHILD_INDEX:  return my_error(ER_FK_NO_INDEX_CHILD, MYF(0), key.name.c_str(), table);
  case Reason::NO_PARENT_INDEX: return my_error(ER_FK_NO_INDEX_PARENT, MYF(0), key.name.c_str(), parent.table);
  case Reason::NO_PARENT:       return my_error(ER_FK_CANNOT_OPEN_PARENT, MYF(0), parent.table);
  case Reason::NOT_NULL:        return my_error(ER_FK_INCORRECT_OPTION, MYF(0), table, key.name.c_str());
  case Reason::OTHER:           break;
  }
  my_error(ER_CANNOT_ADD_FOREIGN, MYF(0), table);
}

bool alter_foreign_keys(THD *thd, const char *path, const TABLE *old_table, TABLE *altered, Alter_info *alter,
                        const std::vector<std::string> &renamed, Foreign_key_list *list)
{
  const std::string itself= catalog_path(path);
  if (lacks_index(thd, itself, old_table, altered, alter, renamed, true))
    return true;
  if (!keep_constraints(thd, itself, alter, list))
    return true;
  for (Foreign_key_definition &key : *list)
    follow_columns(&key.columns, renamed);
  Additions additions(thd, altered, itself, itself);
  int error= add_new(&additions, alter, list);
  if (!error)
    error= check_versioning(thd, altered, itself, *list);
  if (error)
    report_refusal(thd, error, old_table->s, additions.last());
  return error;
}

int may_drop(THD *thd, const char *path)
{
  /* A table that is not there may be one that constraints name already; the server asks nevertheless, for DROP TABLE IF EXISTS. */
  if (!foreign_keys_are_checked(thd) || is_interim_name(path) || !pando_table_exists(db, text(path)))
    return 0;
  const Table_names own(catalog_path(path));
  for (const Foreign_key_definition &key : references_to(path))
  {
    if (key.is_to_itself())
      continue;
    if (thd_sql_command(thd) == SQLCOM_DROP_DB && !strcmp(Table_names(key.child).database, own.database))
      continue;
    String text;
    append_child_and_constraint(thd, key, &text);
    String report;
    report.append(STRING_WITH_LEN("Cannot drop a table that is referenced by "));
    report.append(text);
    note_foreign_key_error(thd, report.c_ptr_safe());
    /* As InnoDB, the message has no more. */
    Transaction::of(thd)->set_refusal("", 0);
    return HA_ERR_ROW_IS_REFERENCED;
  }
  return 0;
}

int may_rename(THD *thd, const char *from, const char *to)
{
  if (!thd || is_interim_name(from) || is_interim_name(to) || !foreign_keys_are_checked(thd))
    return 0;
  const Foreign_key_list waiting= references_to(to);
  if (waiting.empty())
    return 0;
  Taken_table parent(thd, catalog_path(from));
  for (const Foreign_key_definition &key : waiting)
  {
    Taken_table child(thd, key.child);
    if (parent && child)
      if (int error= check_parent(thd, child->table(), parent->table(), key))
        return error;
  }
  return 0;
}

Foreign_key_list added_foreign_keys(THD *thd, const char *path)
{
  const TABLE *source= copied_table(thd);
  return without_old(constraints_of(path),
                     source ? constraints_of(source->s->normalized_path.str) : Foreign_key_list());
}

bool can_verify_in_place(const TABLE *table, Alter_info *alter)
{
  List_iterator_fast<Key> keys(alter->key_list);
  while (Key *key= keys++)
  {
    if (key->type != Key::FOREIGN_KEY || key->old)
      continue;
    const Foreign_key &added= *static_cast<Foreign_key *>(key);
    List_iterator_fast<Key_part_spec> own(const_cast<Foreign_key &>(added).columns);
    while (Key_part_spec *column= own++)
      if (!find_field(table, column->field_name.str))
        return false;
    if (parent_path(added, table->s->db.str) != catalog_path(table->s->normalized_path.str))
      continue;
    std::vector<std::string> referenced;
    List_iterator_fast<Key_part_spec> others(const_cast<Foreign_key &>(added).ref_columns);
    while (Key_part_spec *column= others++)
      referenced.push_back(column->field_name.str);
    if (find_key(table, referenced) == MAX_KEY)
      return false;
  }
  return true;
}

} // namespace pando
