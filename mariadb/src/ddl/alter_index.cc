/* The keys' part of ALTER TABLE in place (alter.cc).

   Dropping, renaming and reordering keys is a record of the catalog. Keys are added while others read and write:

     server              locks            here
     check_if_supported  shared           check_index_change
     prepare             exclusive        prepare_index_change: from here on, whoever opens the table writes
                                          the new keys' entries, too
     inplace             none             build_indexes: reads the rows as of then, hands the entries to the engine,
                                          which sorts and writes them, and checks what was written meanwhile
     commit              exclusive        the catalog (alter.cc), or forget_index_change

   Who opens the table meanwhile has the old definition, without the new keys. So the engine keeps a recipe for
   each: which columns its parts are of. A handler makes an Index_layout of it (open_building), and encodes
   an entry more for each row it writes. No handler is open across `prepare`, because the server closes them
   all before it gives the exclusive lock; the engine refuses writes through one that were.

   What cannot be added so copies the table: keys on virtual columns, which handlers with the old definition
   do not compute; UNIQUE in ALTER IGNORE; what makes another key the primary one. */
#include "alter.h"
#include "related_table.h"

using namespace pando;

static const uint SCAN_ROWS= 1024;
static const uint SCAN_BYTES= 512 << 10;
/* Share of the scan in all of the work. */
static const double SCAN_SHARE= 0.6;

/* --- recipes --- */

struct Recipe_part
{
  uint16 field_number;
  uint16 flags;
  uint32 length;
};

static const uchar RECIPE_UNIQUE= 1, RECIPE_CLUSTERING= 2;

/* `key` is of the altered table. */
void pando::make_recipe(const KEY &key, Bytes *recipe)
{
  recipe->append_byte(uchar((key.flags & HA_NOSAME ? RECIPE_UNIQUE : 0) |
                            (Index_layout::is_clustering(key) ? RECIPE_CLUSTERING : 0)));
  for (uint i= 0; i < key.user_defined_key_parts; i++)
  {
    const KEY_PART_INFO &part= key.key_part[i];
    const Recipe_part one= {uint16(part.fieldnr), uint16(part.key_part_flag & HA_REVERSE_SORT), part.length};
    recipe->append(reinterpret_cast<const uchar *>(&one), sizeof(one));
  }
}

/* A layout as the recipe says, for records of this table. False: it is not a recipe. */
static bool init_from_recipe(Index_layout *layout, const TABLE *table, PandoBytes recipe, uint dictionary,
                             Index_layout *primary)
{
  const uint count= uint((recipe.len - 1) / sizeof(Recipe_part));
  if (recipe.len != 1 + count * sizeof(Recipe_part) || count > MAX_REF_PARTS)
    return false;
  KEY_PART_INFO parts[MAX_REF_PARTS];
  KEY key;
  bzero(&parts, sizeof(parts));
  bzero(static_cast<void *>(&key), sizeof(key));
  key.flags= recipe.data[0] & RECIPE_UNIQUE ? HA_NOSAME : 0;
  ha_index_option_struct options= {(recipe.data[0] & RECIPE_CLUSTERING) != 0};
  key.option_struct= &options;
  key.user_defined_key_parts= count;
  key.key_part= parts;
  for (uint i= 0; i < count; i++)
  {
    Recipe_part one;
    memcpy(&one, recipe.data + 1 + i * sizeof(one), sizeof(one));
    if (one.field_number == 0 || one.field_number > table->s->fields)
      return false;
    parts[i].field= table->field[one.field_number - 1];
    parts[i].fieldnr= one.field_number;
    parts[i].length= one.length;
    parts[i].key_part_flag= one.flags;
  }
  layout->init(table, &key, dictionary, primary);
  return true;
}

/* Makes what this handler needs to write to indexes that another connection is adding. */
int ha_pando::open_building()
{
  m_building= std::vector<Index_layout>(pando_table_building(m_table));
  for (uint i= 0; i < m_building.size(); i++)
    if (!init_from_recipe(&m_building[i], table, pando_table_building_recipe(m_table, i), dictionaries() + i,
                          primary()))
      return damaged("the recipe of a new index is not one");
  return 0;
}

/* --- what can be done --- */

/* Which of the table's keys has become this key of the altered table; MAX_KEY: it is new. */
static uint old_key_of(const TABLE *table, const Alter_inplace_info *info, uint new_key)
{
  for (uint i= 0; i < info->index_add_count; i++)
    if (info->index_add_buffer[i] == new_key)
      return MAX_KEY;
  const LEX_CSTRING &name= info->key_info_buffer[new_key].name;
  for (const Alter_inplace_info::Rename_key_pair &pair : info->rename_keys)
    if (is_same_name(pair.new_key->name, name))
      return uint(pair.old_key - table->key_info);
  for (uint i= 0; i < table->s->keys; i++)
    if (is_same_name(table->key_info[i].name, name))
      return i;
  return MAX_KEY;
}

/* A key's dictionary is told by its place among the others, so a key that only gets another place counts, too: the server may put the same keys in
   another order when one is dropped and added again. */
bool pando::changes_keys(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info)
{
  if ((info->handler_flags & PANDO_ALTER_INDEX) || altered->s->keys != table->s->keys)
    return true;
  for (uint i= 0; i < altered->s->keys; i++)
    if (old_key_of(table, info, i) != i)
      return true;
  return false;
}

bool pando::can_be_built(const TABLE *altered, const KEY &key)
{
  if (is_fulltext_or_spatial(key) || key.algorithm == HA_KEY_ALG_LONG_HASH)
    return false;
  for (uint i= 0; i < key.user_defined_key_parts; i++)
    if (!altered->field[key.key_part[i].fieldnr - 1]->stored_in_db())
      return false;
  return true;
}

/* Whether the keys can be changed in place, and with which locks. Everything else the statement changes can
   be. */
enum_alter_inplace_result ha_pando::check_index_change(TABLE *altered, Alter_inplace_info *info)
{
  const TABLE_SHARE *share= altered->s;
  if (share->primary_key != table_share->primary_key ||
      (share->primary_key < MAX_KEY && old_key_of(table, info, share->primary_key) != table_share->primary_key))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  bool is_adding= false;
  for (uint i= 0; i < share->keys; i++)
  {
    if (old_key_of(table, info, i) < table_share->keys)
      continue;
    is_adding= true;
    if (!can_be_built(altered, altered->key_info[i]) ||
        (info->ignore && (altered->key_info[i].flags & HA_NOSAME)))
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  if (!is_adding)
    return HA_ALTER_INPLACE_INSTANT;
  /* Entries are made of records of the old definition. */
  if (info->handler_flags & (PANDO_ALTER_LAYOUT | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_VIRTUAL_COLUMN |
                             ALTER_VIRTUAL_COLUMN_ORDER))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* The counter is set in the end, as the rows were in the beginning. */
  if (info->create_info->used_fields & HA_CREATE_USED_AUTO)
    return HA_ALTER_INPLACE_NOCOPY_LOCK;
  return HA_ALTER_INPLACE_NOCOPY_NO_LOCK;
}

/* --- building --- */

/* `info->handler_ctx` is an Alter_context. True: it failed, which has been reported. */
bool ha_pando::prepare_index_change(TABLE *altered, Alter_inplace_info *info)
{
  Alter_context *context= static_cast<Alter_context *>(info->handler_ctx);
  std::deque<Bytes> recipes;
  std::vector<PandoNewIndex> indexes;
  context->sets_indexes= true;
  /* The names are among the places. */
  context->index_names.clear();
  for (uint i= 0; i < altered->s->keys; i++)
  {
    if (i == altered->s->primary_key)
      continue;
    const uint old_key= old_key_of(table, info, i);
    const bool is_new= old_key >= table_share->keys;
    const KEY &key= altered->key_info[i];
    PandoIndexPlace place= {text(key.name.str), is_new, 0};
    place.position= is_new ? uint32_t(indexes.size()) : dictionary_of(old_key);
    context->places.push_back(place);
    if (!is_new)
      continue;
    context->added.push_back(&key);
    recipes.emplace_back();
    make_recipe(key, &recipes.back());
    indexes.push_back(PandoNewIndex{place.name, recipes.back().view(), uint8_t(key.flags & HA_NOSAME ? 1 : 0),
                                    Index_layout::clustering_of(altered, &key)});
  }
  if (indexes.empty())
    return false;
  close_scan();
  if (int error= fail(pando_build_begin(db, text(m_name.c_str()), indexes.data(),
                                        uint32_t(indexes.size()), &context->build)))
  {
    print_error(error, MYF(0));
    return true;
  }
  /* Who opened the table before does not know of the new indexes. */
  Related_table::close_kept();
  return false;
}

namespace {

/* What the engine's work tells the client, and whether the client still wants it. */
struct Progress
{
  THD *thd;
  static uint8_t watch(void *context, double done)
  {
    THD *thd= static_cast<Progress *>(context)->thd;
    thd_progress_report(thd, ulonglong(1000 * (SCAN_SHARE + (1 - SCAN_SHARE) * done)), 1000);
    return !is_to_end(thd);
  }
};

} // namespace

bool ha_pando::build_indexes(TABLE *altered, Alter_inplace_info *info)
{
  Alter_context *context= static_cast<Alter_context *>(info->handler_ctx);
  if (!context->build)
    return false;
  THD *thd= ha_thd();
  const int error= fill_indexes(context);
  if (!error)
    return false;
  if (is_to_end(thd))
    thd->send_kill_message();
  else
    report_index_error(error, altered, context);
  return true;
}

/* Makes the entries that the rows have in the new indexes. */
int ha_pando::fill_indexes(Alter_context *context)
{
  THD *thd= ha_thd();
  thd_progress_init(thd, 1);
  int error= scan_for_indexes(context);
  if (!error)
  {
    Progress progress= {thd};
    PandoStatus status= pando_build_bases(context->build, Progress::watch, &progress);
    error= status ? fail(status) : 0;
  }
  thd_progress_end(thd);
  return error;
}

/* Whether a scan that waits for the engine goes on. */
static uint8_t watch_scan(void *connection, double)
{
  return !is_to_end(static_cast<THD *>(connection));
}

/* Hands the entries of all rows to the engine. */
int ha_pando::scan_for_indexes(Alter_context *context)
{
  std::vector<Index_layout> layouts(context->added.size());
  my_bitmap_map bits[(MAX_FIELDS + 63) / 64 + 1];
  MY_BITMAP wanted;
  my_bitmap_init(&wanted, bits, table_share->fields);
  for (uint i= 0; i < layouts.size(); i++)
  {
    Bytes recipe;
    make_recipe(*context->added[i], &recipe);
    if (!init_from_recipe(&layouts[i], table, recipe.view(), dictionaries() + i, primary()))
      return damaged("the recipe of a new index is not one");
    for (uint part= 0; part < layouts[i].part_count(); part++)
      bitmap_set_bit(&wanted, layouts[i].part(part).column().index());
  }
  for (uint part= 0; primary() && part < primary()->part_count(); part++)
    bitmap_set_bit(&wanted, primary()->part(part).column().index());
  m_row_codec.want(&wanted);
  m_columns_prepared= false;
  PandoTxn *reader= pando_build_reader(context->build);
  PandoCursor *cursor= pando_cursor_new(reader, m_table, 0);
  int error= scan_with(cursor, reader, context, layouts);
  pando_cursor_free(cursor);
  pando_txn_free(reader);
  return error;
}

int ha_pando::scan_with(PandoCursor *cursor, PandoTxn *reader, Alter_context *context,
                        std::vector<Index_layout> &layouts)
{
  THD *thd= ha_thd();
  PandoTableInfo figures;
  if (PandoStatus status= pando_table_info(m_table, false, &figures))
    return fail(status);
  PandoFetch fetch= {};
  fetch.start= PANDO_MOVE_FIRST;
  fetch.read= PANDO_READ_SNAPSHOT;
  fetch.rows_max= SCAN_ROWS;
  fetch.bytes_max= SCAN_BYTES;
  PandoBatch batch= {};
  Bytes key, value;
  uchar *record= table->record[0];
  for (ulonglong rows= 0;; rows+= batch.count)
  {
    if (is_to_end(thd))
      return HA_ERR_ABORTED_BY_USER;
    thd_progress_report(thd, MY_MIN(ulonglong(1000 * SCAN_SHARE * double(rows) / double(figures.rows + 1)),
                                    ulonglong(1000 * SCAN_SHARE)), 1000);
    if (!pando_build_wait(context->build, watch_scan, thd))
      /* The end says why, if it is not that. */
      return is_to_end(thd) ? HA_ERR_ABORTED_BY_USER : 0;
    PandoStatus status= pando_cursor_fetch(cursor, reader, &fetch, &batch);
    if (status == PANDO_STATUS_NOT_FOUND || (!status && !batch.count))
      return 0;
    if (status)
      return fail(status);
    fetch.start= PANDO_MOVE_NEXT;
    m_rows= Reader(batch.rows);
    m_rows_left= batch.count;
    while (m_rows_left)
    {
      if (int error= take_entry())
        return error;
      const PandoBytes row_key= m_entry_key;
      if (!m_row_codec.decode(row_key, m_entry_value, record))
        return damaged("a row cannot be read");
      if (PandoStatus large= m_large.read(m_row_codec, reader, m_table, false, PandoBytes{}, nullptr, record))
        return large == PANDO_STATUS_NOT_FOUND ? damaged("a large value of a row is not there") : fail(large);
      for (uint i= 0; i < layouts.size(); i++)
      {
        key.clear();
        value.clear();
        const bool alone= layouts[i].encode_key(&key, record, row_key);
        layouts[i].encode_value(&value, record, row_key, m_entry_value, alone);
        pando_build_add(context->build, i, key.view(), value.view());
      }
    }
    m_positioned= false;
  }
}

/* --- errors --- */

/* Of a duplicate key the client is told the value, which the row has that the entry names. */
void ha_pando::report_index_error(int error, TABLE *altered, const Alter_context *context)
{
  PandoBytes key, value;
  const uint index= error == HA_ERR_FOUND_DUPP_KEY && context->build ? pando_build_duplicate(context->build, &key, &value) : UINT_MAX;
  if (index >= context->added.size())
  {
    print_error(error, MYF(0));
    return;
  }
  KEY *altered_key= const_cast<KEY *>(context->added[index]);
  Index_layout layout;
  Bytes recipe, row_key;
  make_recipe(*altered_key, &recipe);
  bool is_absent= true;
  if (init_from_recipe(&layout, table, recipe.view(), dictionaries(), primary()) &&
      layout.row_key_of(key, value, &row_key))
  {
    m_row_codec.want_all();
    m_columns_prepared= false;
    m_read_latest= true;
    const Lock lock= m_lock;
    m_lock= Lock::NONE;
    if (get_row(row_key.view(), table->record[0], &is_absent))
      is_absent= true;
    m_lock= lock;
    m_read_latest= false;
  }
  if (!is_absent && altered->s->reclength == table_share->reclength)
    memcpy(altered->record[0], table->record[0], table_share->reclength);
  print_keydup_error(altered, is_absent ? nullptr : altered_key, MYF(0));
}

/* After a failure, here or elsewhere: nothing is left of the new indexes. */
bool ha_pando::forget_index_change(TABLE *, Alter_inplace_info *info)
{
  /* It may have failed before there was any. */
  if (Alter_context *context= static_cast<Alter_context *>(info->handler_ctx))
    context->free_build();
  Related_table::close_kept();
  return false;
}
