/* INFORMATION_SCHEMA.PANDO_FOREIGN_KEYS: the constraints as the catalog has them, also those whose parent is not there. */
#include "../foreign/foreign_key.h"
#include "reports.h"
#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include "sql_table.h"

#include <set>
#include <string>

namespace pando {

static const uint COLUMNS_MAX_CHARS= 2200;

enum Key_column
{
  KEY_SCHEMA, KEY_NAME, KEY_TABLE, KEY_COLUMNS, KEY_PARENT_SCHEMA, KEY_PARENT_TABLE, KEY_PARENT_COLUMNS, KEY_DELETE_RULE, KEY_UPDATE_RULE,
  KEY_PARENT_EXISTS
};

static ST_FIELD_INFO key_columns[]=
{
  Show::Column("constraint_schema", Show::Varchar(64), NOT_NULL),
  Show::Column("constraint_name", Show::Varchar(64), NOT_NULL),
  Show::Column("table_name", Show::Varchar(64), NOT_NULL),
  Show::Column("column_names", Show::Varchar(COLUMNS_MAX_CHARS), NOT_NULL),
  Show::Column("referenced_table_schema", Show::Varchar(64), NOT_NULL),
  Show::Column("referenced_table_name", Show::Varchar(64), NOT_NULL),
  Show::Column("referenced_column_names", Show::Varchar(COLUMNS_MAX_CHARS), NOT_NULL),
  Show::Column("delete_rule", Show::Varchar(16), NOT_NULL),
  Show::Column("update_rule", Show::Varchar(16), NOT_NULL),
  Show::Column("referenced_table_exists", Show::SLong(1), NOT_NULL),
  Show::CEnd()
};

static void collect_table(void *context, const PandoDictionaryRow *row)
{
  static_cast<std::set<std::string> *>(context)->emplace(reinterpret_cast<const char *>(row->table.data), row->table.len);
}

static void store_text(Field *field, const std::string &text)
{
  field->set_notnull();
  field->store(text.data(), text.size(), system_charset_info);
}

static std::string joined(const std::vector<std::string> &names)
{
  std::string all;
  for (const std::string &name : names)
    all+= (all.empty() ? "" : ",") + name;
  return all;
}

static const char *rule(Action action)
{
  switch (action)
  {
  case PANDO_REFERENTIAL_ACTION_CASCADE:   return "CASCADE";
  case PANDO_REFERENTIAL_ACTION_SET_NULL:  return "SET NULL";
  case PANDO_REFERENTIAL_ACTION_NO_ACTION: return "NO ACTION";
  case PANDO_REFERENTIAL_ACTION_RESTRICT:  break;
  }
  return "RESTRICT";
}

static void store_key(Field **field, const Foreign_key_definition &key)
{
  const Table_names child(key.child), parent(key.parent);
  store_text(field[KEY_SCHEMA], child.database);
  store_text(field[KEY_NAME], key.name);
  store_text(field[KEY_TABLE], child.table);
  store_text(field[KEY_COLUMNS], joined(key.columns));
  store_text(field[KEY_PARENT_SCHEMA], parent.database);
  store_text(field[KEY_PARENT_TABLE], parent.table);
  store_text(field[KEY_PARENT_COLUMNS], joined(key.parent_columns));
  store_text(field[KEY_DELETE_RULE], rule(key.on_delete));
  store_text(field[KEY_UPDATE_RULE], rule(key.on_update));
  field[KEY_PARENT_EXISTS]->store(longlong(pando_table_exists(db, text(key.parent.c_str()))), true);
}

static int fill_foreign_keys(THD *thd, TABLE_LIST *tables, Item *)
{
  if (check_global_access(thd, PROCESS_ACL))
    return 0;
  /* In the order of databases and tables. */
  std::set<std::string> paths;
  if (pando_dictionaries_visit(db, &paths, collect_table))
  {
    String reason;
    error_text(&reason);
    my_printf_error(ER_GET_ERRMSG, "PANDO: %s", MYF(0), reason.c_ptr_safe());
    return 1;
  }
  TABLE *table= tables->table;
  for (const std::string &path : paths)
    for (const Foreign_key_definition &key : constraints_of(path.c_str()))
    {
      restore_record(table, s->default_values);
      store_key(table->field, key);
      if (schema_table_store_record(thd, table))
        return 1;
    }
  return 0;
}

static int init(void *schema_table, ST_FIELD_INFO *columns, int (*fill)(THD *, TABLE_LIST *, Item *))
{
  ST_SCHEMA_TABLE *schema= static_cast<ST_SCHEMA_TABLE *>(schema_table);
  schema->fields_info= columns;
  schema->fill_table= fill;
  return 0;
}

int init_foreign_keys_table(void *schema_table)
{
  return init(schema_table, key_columns, fill_foreign_keys);
}

} // namespace pando
