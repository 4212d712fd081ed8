#include "related_table.h"
#include "performance_schema.h"
#include "ha_pando.h"
#include <mutex>
#include <unordered_map>

namespace pando {

/* Of each table, so many are kept at most. */
static const size_t KEPT_MAX= 64;

static std::unordered_map<std::string, std::vector<Related_table *>> kept;

static thread_local bool opens_related= false;

bool Related_table::is_opening()
{
  return opens_related;
}

ha_pando *Related_table::file()
{
  return static_cast<ha_pando *>(m_table.file);
}

Related_table::~Related_table()
{
  if (m_is_open)
  {
    m_table.in_use= nullptr;
    closefrm(&m_table);
  }
  if (m_has_share)
    free_table_share(&m_share);
}

/* The server's definition, from the catalog's image of it, or where there is none yet, from the server's file. */
bool Related_table::read_definition(THD *thd)
{
  PandoBuffer *id= pando_buffer_new(), *buffer= pando_buffer_new();
  bool failed;
  if (!pando_definition_image(db, text(m_file_path.c_str()), id, buffer))
  {
    const PandoBytes image= pando_buffer_bytes(buffer);
    failed= m_share.init_from_binary_frm_image(thd, false, image.data, image.len);
  }
  else
    failed= open_table_def(thd, &m_share, GTS_TABLE) != OPEN_FRM_OK;
  pando_buffer_free(id);
  pando_buffer_free(buffer);
  return !failed;
}

bool Related_table::open(THD *thd, const std::string &path)
{
  m_path= path;
  m_file_path= "./" + path;
  m_version= pando_schema_version(db);
  note_open_failure(0, String());
  if (!pando_table_exists(db, text(path.c_str())))
    return false;
  const Table_names names(path);
  init_share(thd, &m_share);
  m_has_share= true;
  /* It may outlive the connection. */
  free_root(&m_share.mem_root, MYF(0));
  init_alloc_root(PSI_NOT_INSTRUMENTED, &m_share.mem_root, TABLE_PREALLOC_BLOCK_SIZE, 0, MYF(0));
  m_share.db.str= strdup_root(&m_share.mem_root, names.database);
  m_share.db.length= strlen(names.database);
  m_share.table_name.str= strdup_root(&m_share.mem_root, names.table);
  m_share.table_name.length= strlen(names.table);
  m_share.path.str= m_share.normalized_path.str= m_file_path.c_str();
  m_share.path.length= m_share.normalized_path.length= m_file_path.size();
  m_share.table_cache_key= m_share.db;
  Dummy_error_handler silent;
  thd->push_internal_handler(&silent);
  opens_related= true;
  /* Sequences have a handler of the server around the engine's. */
  m_is_open= read_definition(thd) && m_share.db_type() == hton && m_share.table_type != TABLE_TYPE_SEQUENCE &&
             !open_table_from_share(thd, &m_share, &m_share.table_name, HA_OPEN_KEYFILE, EXTRA_RECORD,
                                    thd->open_options, &m_table, false);
  opens_related= false;
  thd->pop_internal_handler();
  if (m_is_open)
    choose_columns();
  return m_is_open;
}

/* What lookups need, and who changes rows: that can do without large values that are lost (Large_values), unless columns are computed. */
void Related_table::choose_columns()
{
  bitmap_clear_all(&m_table.def_read_set);
  bitmap_set_all(&m_table.tmp_set);
  for (Field **field= m_table.field; *field && !m_table.vfield; field++)
    if ((*field)->flags & BLOB_FLAG)
      bitmap_clear_bit(&m_table.tmp_set, (*field)->field_index);
}

/* All columns are read and written, unless a lookup needs none (begin_related). */
void Related_table::attach(THD *thd)
{
  m_table.in_use= thd;
  m_table.use_all_columns();
  m_table.status= STATUS_NO_RECORD;
}

Related_table *Related_table::take(THD *thd, const std::string &path)
{
  Related_table *related= nullptr;
  {
    std::lock_guard<Observed_mutex> guard(related_tables_mutex);
    auto found= kept.find(path);
    if (found != kept.end() && !found->second.empty())
    {
      related= found->second.back();
      found->second.pop_back();
    }
  }
  if (related && related->m_version != pando_schema_version(db))
  {
    delete related;
    related= nullptr;
    close_kept();
  }
  if (!related)
  {
    related= new Related_table;
    if (!related->open(thd, path))
    {
      delete related;
      return nullptr;
    }
  }
  related->attach(thd);
  return related;
}

void Related_table::give_back()
{
  file()->detach();
  {
    std::lock_guard<Observed_mutex> guard(related_tables_mutex);
    std::vector<Related_table *> &others= kept[m_path];
    if (m_version == pando_schema_version(db) && others.size() < KEPT_MAX)
    {
      others.push_back(this);
      return;
    }
  }
  delete this;
}

void Related_table::close_kept()
{
  std::unordered_map<std::string, std::vector<Related_table *>> all;
  {
    std::lock_guard<Observed_mutex> guard(related_tables_mutex);
    all.swap(kept);
  }
  for (auto &of_one : all)
    for (Related_table *related : of_one.second)
      delete related;
}

bool lock_metadata(THD *thd, const Table_names &names, enum_mdl_type type)
{
  if (thd->mdl_context.is_lock_owner(MDL_key::TABLE, names.database, names.table, type))
    return true;
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::TABLE, names.database, names.table, type, MDL_TRANSACTION);
  return !thd->mdl_context.acquire_lock(&request, double(thd->variables.lock_wait_timeout));
}

Field *find_field(const TABLE *table, const std::string &name)
{
  for (Field **place= table->field; *place; place++)
    if (same_name((*place)->field_name.str, name))
      return *place;
  return nullptr;
}

static bool begins_with(const TABLE *table, const KEY &key, const std::vector<std::string> &columns)
{
  if (key.user_defined_key_parts < columns.size() || is_fulltext_or_spatial(key) ||
      key.algorithm == HA_KEY_ALG_LONG_HASH)
    return false;
  for (size_t i= 0; i < columns.size(); i++)
  {
    const KEY_PART_INFO &part= key.key_part[i];
    const Field *field= table->field[part.fieldnr - 1];
    if ((part.key_part_flag & HA_PART_KEY_SEG) || (field->flags & BLOB_FLAG) ||
        !same_name(field->field_name.str, columns[i]))
      return false;
  }
  return true;
}

uint first_key(const TABLE *table, const std::vector<std::string> &columns)
{
  uint index= 0;
  while (index < table->s->keys && !begins_with(table, table->key_info[index], columns))
    index++;
  return index < table->s->keys ? index : MAX_KEY;
}

/* Values of unique ones are got by their keys. */
uint find_key(const TABLE *table, const std::vector<std::string> &columns)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY &key= table->key_info[i];
    if ((key.flags & HA_NOSAME) && key.user_defined_key_parts == columns.size() && begins_with(table, key, columns))
      return i;
  }
  return first_key(table, columns);
}

} // namespace pando
