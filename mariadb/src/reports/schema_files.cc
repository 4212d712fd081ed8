/* INFORMATION_SCHEMA.PANDO_FILE_MAP, which file has what, PANDO_FRACTAL_TREE_INFO, what the trees in the files consist of, and
   PANDO_ENCRYPTION, with which keys they are encrypted. */
#include "reports.h"
#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include "sql_table.h"

#include <string>
#include <vector>

namespace pando {

static const uint FILE_NAME_MAX_CHARS= 1024;

enum File_column { FILE_SCHEMA, FILE_TABLE, FILE_INDEX, FILE_DICTIONARY_ID, FILE_CLUSTERING, FILE_FILE };

static ST_FIELD_INFO file_columns[]=
{
  Show::Column("table_schema", Show::Varchar(64), NOT_NULL),
  Show::Column("table_name", Show::Varchar(256), NOT_NULL),
  Show::Column("index_name", Show::Varchar(64), NULLABLE),
  Show::Column("dictionary_id", Show::ULonglong(), NOT_NULL),
  Show::Column("is_clustering", Show::SLong(1), NOT_NULL),
  Show::Column("file", Show::Varchar(FILE_NAME_MAX_CHARS), NOT_NULL),
  Show::CEnd()
};

enum Tree_column
{
  TREE_SCHEMA, TREE_TABLE, TREE_INDEX, TREE_DICTIONARY_ID, TREE_RECORDS, TREE_TOMBSTONES, TREE_RAW_BYTES, TREE_BUFFERED_BYTES, TREE_HEIGHT,
  TREE_NODES, TREE_LEAVES, TREE_RUNS, TREE_USED_BYTES, TREE_FREE_BYTES, TREE_FILE_BYTES
};

static ST_FIELD_INFO tree_columns[]=
{
  Show::Column("table_schema", Show::Varchar(64), NOT_NULL),
  Show::Column("table_name", Show::Varchar(256), NOT_NULL),
  Show::Column("index_name", Show::Varchar(64), NULLABLE),
  Show::Column("dictionary_id", Show::ULonglong(), NOT_NULL),
  Show::Column("records", Show::ULonglong(), NOT_NULL),
  Show::Column("tombstones", Show::ULonglong(), NOT_NULL),
  Show::Column("raw_bytes", Show::ULonglong(), NOT_NULL),
  Show::Column("buffered_bytes", Show::ULonglong(), NOT_NULL),
  Show::Column("height", Show::ULonglong(), NOT_NULL),
  Show::Column("nodes", Show::ULonglong(), NOT_NULL),
  Show::Column("leaves", Show::ULonglong(), NOT_NULL),
  Show::Column("runs", Show::ULonglong(), NOT_NULL),
  Show::Column("used_bytes", Show::ULonglong(), NOT_NULL),
  Show::Column("free_bytes", Show::ULonglong(), NOT_NULL),
  Show::Column("file_bytes", Show::ULonglong(), NOT_NULL),
  Show::CEnd()
};

enum Encryption_column { KEY_SCHEMA, KEY_TABLE, KEY_INDEX, KEY_DICTIONARY_ID, KEY_ID, KEY_NEWEST, KEY_OLDEST, KEY_REWRITTEN, KEY_FILE };

static ST_FIELD_INFO encryption_columns[]=
{
  Show::Column("table_schema", Show::Varchar(64), NOT_NULL),
  Show::Column("table_name", Show::Varchar(256), NOT_NULL),
  Show::Column("index_name", Show::Varchar(64), NULLABLE),
  Show::Column("dictionary_id", Show::ULonglong(), NOT_NULL),
  Show::Column("key_id", Show::ULonglong(), NOT_NULL),
  Show::Column("newest_version", Show::ULonglong(), NULLABLE),
  Show::Column("oldest_version", Show::ULonglong(), NULLABLE),
  Show::Column("rewritten_percent", Show::Decimal(401), NULLABLE),
  Show::Column("file", Show::Varchar(FILE_NAME_MAX_CHARS), NOT_NULL),
  Show::CEnd()
};

namespace {

struct Collected_key
{
  PandoKeyUse figures;
  std::string table, name, file;
};

struct Collected
{
  PandoDictionaryRow figures;
  std::string table, name, file;
};

} // namespace

static std::string copy_of(PandoBytes bytes)
{
  return std::string(reinterpret_cast<const char *>(bytes.data), bytes.len);
}

static void collect(void *context, const PandoDictionaryRow *row)
{
  static_cast<std::vector<Collected> *>(context)->push_back({*row, copy_of(row->table), copy_of(row->name), copy_of(row->file)});
}

static void store_text(Field *field, const std::string &text)
{
  field->set_notnull();
  field->store(text.data(), text.size(), system_charset_info);
}

/* A name of a file as the server knows what it stands for. */
static void store_name(Field *field, const std::string &file_name)
{
  char name[FN_REFLEN];
  const uint size= filename_to_tablename(file_name.c_str(), name, sizeof(name), true);
  store_text(field, std::string(name, size));
}

static void collect_key(void *context, const PandoKeyUse *row)
{
  static_cast<std::vector<Collected_key> *>(context)->push_back({*row, copy_of(row->table), copy_of(row->name), copy_of(row->file)});
}

/* The columns that all tables begin with. */
template <class Row> static void store_place(Field **field, const Row &row, uint64_t id)
{
  const size_t slash= row.table.rfind('/');
  const bool has_schema= slash != std::string::npos;
  store_name(field[FILE_SCHEMA], has_schema ? row.table.substr(0, slash) : std::string());
  store_name(field[FILE_TABLE], has_schema ? row.table.substr(slash + 1) : row.table);
  if (row.name != "main")
    store_text(field[FILE_INDEX], row.name);
  field[FILE_DICTIONARY_ID]->store(longlong(id), true);
}

template <class Row, class Visit> static int collect_all(THD *thd, std::vector<Row> *rows, Visit visit, void (*collect)(void *, const decltype(Row::figures) *))
{
  if (check_global_access(thd, PROCESS_ACL))
    return 0;
  if (!visit(db, rows, collect))
    return 0;
  String reason;
  error_text(&reason);
  my_printf_error(ER_GET_ERRMSG, "PANDO: %s", MYF(0), reason.c_ptr_safe());
  return 1;
}

static int fill_file_map(THD *thd, TABLE_LIST *tables, Item *)
{
  std::vector<Collected> rows;
  TABLE *table= tables->table;
  if (collect_all(thd, &rows, pando_dictionaries_visit, collect))
    return 1;
  for (const Collected &row : rows)
  {
    restore_record(table, s->default_values);
    store_place(table->field, row, row.figures.id);
    table->field[FILE_CLUSTERING]->store(longlong(row.figures.is_clustering), true);
    store_text(table->field[FILE_FILE], row.file);
    if (schema_table_store_record(thd, table))
      return 1;
  }
  return 0;
}

static int fill_tree_info(THD *thd, TABLE_LIST *tables, Item *)
{
  std::vector<Collected> rows;
  TABLE *table= tables->table;
  if (collect_all(thd, &rows, pando_dictionaries_visit, collect))
    return 1;
  for (const Collected &row : rows)
  {
    if (!row.figures.is_open)
      continue;
    restore_record(table, s->default_values);
    store_place(table->field, row, row.figures.id);
    const PandoDictionaryRow &of= row.figures;
    const uint64_t figures[]= {of.records, of.tombstones, of.raw_bytes, of.buffered_bytes, of.height, of.nodes, of.leaves, of.runs,
                               of.used_bytes, of.free_bytes, of.file_bytes};
    for (uint i= TREE_RECORDS; i <= TREE_FILE_BYTES; i++)
      table->field[i]->store(longlong(figures[i - TREE_RECORDS]), true);
    if (schema_table_store_record(thd, table))
      return 1;
  }
  return 0;
}

static void store_version(Field *field, uint32_t version)
{
  if (!version)
    return;
  field->set_notnull();
  field->store(longlong(version), true);
}

static int fill_encryption(THD *thd, TABLE_LIST *tables, Item *)
{
  std::vector<Collected_key> rows;
  TABLE *table= tables->table;
  if (collect_all(thd, &rows, pando_key_uses_visit, collect_key))
    return 1;
  for (const Collected_key &row : rows)
  {
    restore_record(table, s->default_values);
    const PandoKeyUse &use= row.figures;
    store_place(table->field, row, use.id);
    table->field[KEY_ID]->store(longlong(use.key_id), true);
    store_version(table->field[KEY_NEWEST], use.newest);
    store_version(table->field[KEY_OLDEST], use.oldest);
    if (use.part >= 0)
    {
      table->field[KEY_REWRITTEN]->set_notnull();
      table->field[KEY_REWRITTEN]->store(use.part * 100);
    }
    store_text(table->field[KEY_FILE], row.file);
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

int init_file_map_table(void *schema_table)
{
  return init(schema_table, file_columns, fill_file_map);
}

int init_tree_info_table(void *schema_table)
{
  return init(schema_table, tree_columns, fill_tree_info);
}

int init_encryption_table(void *schema_table)
{
  return init(schema_table, encryption_columns, fill_encryption);
}

} // namespace pando
