/* ALTER TABLE in place: what is kept from one call of the server to the next. */
#ifndef PANDO_ALTER_H
#define PANDO_ALTER_H

#include <deque>
#include <vector>
#include "ha_pando.h"
#include "definition.h"
#include "row_layout.h"

namespace pando {

/* What changes in a table without its rows being touched: becomes one record of the catalog. */
class Alter_context final : public inplace_alter_handler_ctx
{
public:
  Alter_context(const char *path, TABLE *altered, const LEX_CUSTRING &definition)
    : m_path(path), m_definition(path, altered, definition), m_is_recorded(m_definition.read_image(altered->s))
  {
  }
  ~Alter_context() override { free_build(); }
  /* False: the altered table's file cannot be read, so that the catalog would have no image of it (my_errno says why). */
  bool is_recorded() const { return m_is_recorded; }
  /* Unless it is finished, nothing of the new keys stays. */
  void free_build()
  {
    pando_build_free(build);
    build= nullptr;
  }

  /* What the engine is to be told. Valid as long as this lives and does not change. */
  PandoTableChange change();

  std::vector<PandoNewColumn> columns; /* if `sets_columns` */
  std::vector<PandoIndexName> index_names;
  std::vector<PandoIndexPlace> places; /* if `sets_indexes` */
  std::vector<const KEY *> added;      /* of the altered table, as `build` counts them */
  bool sets_indexes= false;
  PandoBuild *build= nullptr;
  std::deque<Bytes> values;            /* of new columns */
  bool sets_columns= false;
  bool sets_compression= false;
  PandoCompression compression= PANDO_COMPRESSION_ZSTD;
  int32_t compression_level= 0;
  bool sets_auto_increment= false;
  ulonglong auto_increment= 0;
  bool sets_foreign_keys= false;       /* to `foreign_keys` */
  Foreign_key_list foreign_keys;
  std::vector<std::string> renamed;    /* columns: old and new names, in turn */

private:
  std::unique_ptr<Foreign_key_views> m_foreign_key_views;
  std::vector<PandoBytes> m_renamed_views;
  std::string m_path;
  Definition m_definition;
  bool m_is_recorded;
};

/* How the engine is told what a key's entries are made of (alter_index.cc). */
void make_recipe(const KEY &key, Bytes *recipe);
/* Whether the altered table has other keys, or the same in another order. */
bool changes_keys(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info);
/* Whether a key can be added while others use the table. */
bool can_be_built(const TABLE *altered, const KEY &key);

} // namespace pando

/* Adding and dropping keys. */
constexpr alter_table_operations PANDO_ALTER_INDEX= ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX |
  ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX | ALTER_DROP_UNIQUE_INDEX;

/* What changes the layout of rows. */
constexpr alter_table_operations PANDO_ALTER_LAYOUT= ALTER_ADD_STORED_BASE_COLUMN |
  ALTER_DROP_STORED_COLUMN | ALTER_STORED_COLUMN_ORDER | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE |
  ALTER_COLUMN_NULLABLE;

#endif
