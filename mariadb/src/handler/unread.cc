/* Rows that are written without a look at what was there: only where the user has said so, because some of what the server then
   tells is no longer exact.

     pando_read_free_rpl             a replica takes the row images of the binary log for the rows that it changes, and believes that
                                     rows that it inserts are new
     pando_blind_replace             REPLACE puts its row in the place of one that may be there
     pando_blind_delete_primary_key  DELETE of whole primary keys writes their deletion

   The last two are for tables where nothing of the old row is needed: each key's columns are the primary key's. */
#include "counted_call.h"
#include "ha_pando.h"
#include "variables.h"
#include <sql_trigger.h>

using namespace pando;

/* Columns of which the primary key has something: row images have them always. */
static bool is_of_primary_key(const TABLE *table, const Field *field)
{
  const KEY &primary= table->key_info[table->s->primary_key];
  for (uint i= 0; i < primary.user_defined_key_parts; i++)
    if (primary.key_part[i].fieldnr == field->field_index + 1)
      return true;
  return false;
}

/* Columns of the primary key that it has whole. */
static bool is_in_primary_key(const TABLE *table, const Field *field)
{
  const KEY &primary= table->key_info[table->s->primary_key];
  for (uint i= 0; i < primary.user_defined_key_parts; i++)
    if (primary.key_part[i].fieldnr == field->field_index + 1)
      return !(primary.key_part[i].key_part_flag & HA_PART_KEY_SEG);
  return false;
}

/* Whether an entry's key in each dictionary follows from the row's: then a row replaces another one's entries by its own, and may be
   deleted by who knows its key alone. */
bool ha_pando::keys_follow_from_primary() const
{
  if (!has_primary_key())
    return false;
  for (uint index= 0; index < table_share->keys; index++)
  {
    const KEY &key= table->key_info[index];
    if (index == table_share->primary_key)
      continue;
    if (key.flags & HA_NOSAME)
      return false;
    for (uint i= 0; i < key.user_defined_key_parts; i++)
      if ((key.key_part[i].key_part_flag & HA_PART_KEY_SEG) ||
          !is_in_primary_key(table, table->field[key.key_part[i].fieldnr - 1]))
        return false;
  }
  return true;
}

/* Whether a table is plain enough: nobody but the engine looks at its rows when they change. What has expired is there, and is not. */
bool ha_pando::may_write_unread() const
{
  return has_primary_key() && !table->vfield && !table_share->versioned && !table_share->period.name &&
         !table_share->long_unique_table && !is_sequence() && !m_copy_txn && !m_foreign.are_checked() &&
         (!m_expiry || m_is_purged);
}

/* --- replication --- */

/* A thread that applies rows of the binary log, as they are. */
bool ha_pando::applies_rows_unread() const
{
  const Read_free_rpl mode= read_free_rpl();
  if (mode == READ_FREE_OFF)
    return false;
  const THD *thd= ha_thd();
  return thd->slave_thread && thd->lex->is_stmt_row_injection() && slave_exec_mode_options == SLAVE_EXEC_MODE_STRICT &&
         !(table->triggers && slave_run_triggers_for_rbr) && may_write_unread() && (mode == READ_FREE_PK_SK || table_share->keys == 1);
}

/* Whether columns other than the primary key's differ from what a row has where an image lacks them: `blobs`, those that NOBLOB leaves out, or
   the others. */
static bool has_other_than_defaults(const TABLE *table, const uchar *record, bool blobs)
{
  const ptrdiff_t to_default= table->s->default_values - table->record[0];
  const ptrdiff_t to_record= record - table->record[0];
  bool is_any= false;
  for (Field **place= table->field; *place; place++)
  {
    Field *field= *place;
    if ((field->type() == MYSQL_TYPE_BLOB) != blobs || is_of_primary_key(table, field))
      continue;
    is_any= true;
    const bool is_null= field->is_null(to_record);
    if (is_null != field->is_null(to_default))
      return true;
    if (!is_null && field->cmp_binary(field->ptr + to_record, field->ptr + to_default))
      return true;
  }
  return !is_any;
}

/* Whether the record, an image of the row before its change, has all of the row. The server does not say which columns were in it; those
   that were not have their defaults. With binlog_row_image=MINIMAL only the primary key's are there, with NOBLOB all but
   the large ones. The sets of columns tell, unless an UPDATE sets all of them. */
bool ha_pando::is_whole_image(const uchar *record) const
{
  return bitmap_is_set_all(&table->def_read_set) && bitmap_is_set_all(&table->def_write_set) &&
         has_other_than_defaults(table, record, false) && has_other_than_defaults(table, record, true);
}

/* --- statements --- */

static bool is_logged_as_rows(const THD *thd)
{
  return !const_cast<THD *>(thd)->is_current_stmt_binlog_disabled() && thd->is_current_stmt_binlog_format_row();
}

/* A replica that gets the row as an inserted one would stop at the row that it has. */
bool ha_pando::replaces_unread() const
{
  const THD *thd= ha_thd();
  return m_may_overwrite && blind_replace(thd) && may_write_unread() && keys_follow_from_primary() &&
         !is_logged_as_rows(thd);
}

PandoOnDuplicate ha_pando::on_duplicate() const
{
  if (replaces_unread() || (!m_decides_duplicates && applies_rows_unread()))
    return PANDO_ON_DUPLICATE_OVERWRITE;
  return m_replaces_duplicates ? PANDO_ON_DUPLICATE_LOCK : PANDO_ON_DUPLICATE_SHARE;
}

/* Whether the values of the primary key are what its bytes say: not of texts that are equal to others. */
bool ha_pando::is_primary_key_exact() const
{
  for (uint i= 0; i < m_layouts[0].part_count(); i++)
    if (!m_layouts[0].part(i).is_lossless())
      return false;
  return true;
}

/* The table whose rows the statement deletes, and not one that it reads, which may be locked as well (FOR UPDATE, LOCK TABLES, in a function that
   writes to it). */
bool ha_pando::is_target_of_delete() const
{
  const THD *thd= ha_thd();
  return thd_sql_command(thd) == SQLCOM_DELETE && table->pos_in_table_list && table->pos_in_table_list == thd->lex->query_tables;
}

/* Whether a DELETE needs of its rows what it looks for: the whole primary key. Who runs triggers or returns rows must know that there is one,
   and so must a merge of several scans (of clones, or of keys alone), which reads by position what they have found. */
bool ha_pando::deletes_unread() const
{
  THD *thd= ha_thd();
  if (m_is_clone || m_keyread || thd->lex->has_returning() || (table->triggers && table->triggers->has_delete_triggers()))
    return false;
  if (!blind_delete_primary_key(thd) || !is_target_of_delete() || m_lock != Lock::EXCLUSIVE || m_skip_locked ||
      !may_write_unread() || is_logged_as_rows(thd) || !keys_follow_from_primary() || !is_primary_key_exact() ||
      thd->lex->first_select_lex()->limit_params.explicit_limit)
    return false;
  for (Field **field= table->field; *field; field++)
    if (bitmap_is_set(table->read_set, (*field)->field_index) && !is_in_primary_key(table, *field))
      return false;
  return true;
}

/* Whether a search by this index names all of the primary key: for the optimizer, which finds a key on the same columns as good. */
bool ha_pando::names_primary_key(const uchar *key, key_part_map map)
{
  if (m_scan_dictionary == 0)
    return is_whole_unique_key(key, map);
  const KEY &info= table->key_info[active_index];
  const KEY &primary= table->key_info[table_share->primary_key];
  uint found= 0;
  for (uint i= 0; i < info.ext_key_parts && (map & (key_part_map(1) << i)); i++)
    for (uint j= 0; j < primary.user_defined_key_parts; j++)
      found+= info.key_part[i].fieldnr == primary.key_part[j].fieldnr;
  return found == primary.user_defined_key_parts;
}

/* In the place of looking for the row that a search by `key` names. `is_known`: it is locked, and the record has what is wanted of it. */
int ha_pando::know_row(uchar *record, const uchar *key, key_part_map map, bool *is_known)
{
  *is_known= false;
  if (!has_primary_key() || record != table->record[0] || !names_primary_key(key, map))
    return 0;
  const bool is_image= m_scan_dictionary == 0 && applies_rows_unread() && is_whole_image(record);
  if (!is_image && !deletes_unread())
    return 0;
  if (!is_image)
    key_restore(record, key, &table->key_info[active_index], calculate_key_len(table, active_index, key, map));
  m_encoded.clear();
  m_layouts[0].encode_key(&m_encoded, record, PandoBytes{});
  uint8_t is_locked;
  {
    Counted_call counted(handler_stats);
    if (PandoStatus status= pando_txn_lock_unread(txn(), m_table, m_encoded.view(), &is_locked))
      return fail(status);
  }
  if (!is_locked)
    return 0;
  *is_known= true;
  m_row_key.assign(m_encoded.data(), m_encoded.size());
  m_row_key_in_entry= false;
  m_row_just_locked= false;
  m_is_peek= false;
  /* There is no other: the search ends behind it. */
  m_resume.assign(m_search.data(), m_search.size());
  m_entry_key= m_resume.view();
  m_at_cursor= false;
  m_has_stop= false;
  m_positioned= m_in_gap= true;
  return 0;
}
