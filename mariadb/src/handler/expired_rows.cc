/* What the handler makes of rows that have expired (expiry.h): reads pass them by, and a row that is written with a key of one takes its place. */
#include "expiry_purge.h"
#include "ha_pando.h"

using namespace pando;

/* When the statement is: see the head of expiry.h. */
int ha_pando::begin_expiry(THD *thd)
{
  const Expiry_purge *purge= Expiry_purge::of_thread();
  m_is_purged= purge && table->pos_in_table_list && table->pos_in_table_list == thd->lex->query_tables;
  if (m_is_purged && !purge->is_of(m_expiry.get()))
    return HA_ERR_TABLE_DEF_CHANGED;
  if (!m_expiry)
    return 0;
  if (m_is_purged || thd->lex->is_stmt_row_injection())
    m_expiry->begin(0);
  else
    m_expiry->begin(is_locking() ? thd->query_start() : Transaction::of(thd)->reads_at());
  return 0;
}

/* Of a row that has been read. */
void ha_pando::pass_by_expired(const uchar *record, bool *passed_by)
{
  if (!m_expiry || *passed_by || !m_expiry->is_expired(record))
    return;
  *passed_by= true;
  m_is_out_of_date= false;
  unlock_row();
}

/* Whether what an entry of the index has of its row tells whether it has expired. */
bool ha_pando::knows_expiry(uint index) const
{
  return !m_expiry || (index < table_share->keys && m_expiry->field()->part_of_key.is_set(index));
}

void ha_pando::want_expiry(MY_BITMAP *columns) const
{
  if (m_expiry)
    bitmap_set_bit(columns, m_expiry->field()->field_index);
}

/* A second handler of the table in the same statement, so that this one's scan, record and BLOBs stay as they are. */
ha_pando *ha_pando::other_place()
{
  if (!m_other_place)
  {
    THD *thd= ha_thd();
    m_other_place= static_cast<ha_pando *>(clone(table_share->normalized_path.str, thd->mem_root));
    if (m_other_place)
    {
      m_other_place->m_lock= m_other_place->m_stored_lock= Lock::EXCLUSIVE;
      m_other_place->m_skip_locked= false;
      m_other_place->m_expiry->begin(thd->query_start());
      if (m_other_place->m_foreign.begin(thd))
        leave_other_place();
    }
  }
  return m_other_place;
}

void ha_pando::leave_other_place()
{
  if (!m_other_place)
    return;
  m_other_place->reset();
  m_other_place->ha_close();
  delete m_other_place;
  m_other_place= nullptr;
}

/* The row with whose key a row that is written has met: m_new has its entries. */
int ha_pando::find_duplicate(PandoBytes *row_key, bool *is_there)
{
  const uint dictionary= dictionary_of(m_duplicate_index);
  *is_there= true;
  *row_key= m_new[dictionary].key.view();
  if (!dictionary)
    return 0;
  const PandoStatus status= look_up(dictionary, *row_key, PANDO_READ_LATEST, PANDO_WAIT_DEFAULT, m_check_buffer);
  *is_there= status != PANDO_STATUS_NOT_FOUND;
  if (status)
    return *is_there ? fail(status) : 0;
  if (!m_layouts[m_duplicate_index].row_key_of(*row_key, pando_buffer_bytes(m_check_buffer), &m_encoded))
    return damaged("an index entry cannot be decoded");
  *row_key= m_encoded.view();
  return 0;
}

/* Of the other place: removes this row, as a DELETE does, if it has expired; or says that it has gone already. */
int ha_pando::remove_if_expired(PandoBytes row_key, bool *removed)
{
  Bytes record;
  record.assign(table->s->default_values, table->s->reclength);
  m_scan_dictionary= 0;
  m_columns_prepared= false;
  prepare_columns();
  m_row_key.assign(row_key.data, row_key.len);
  m_row_key_in_entry= false;
  if (int error= get_row(m_row_key.view(), record.data(), removed))
    return error;
  if (*removed || !m_expiry->is_expired(record.data()))
    return 0;
  *removed= true;
  return delete_row(record.data());
}

/* After a duplicate. `removed`: the row that was in the way is so no more, because it had expired. */
int ha_pando::remove_expired(bool *removed)
{
  *removed= false;
  if (m_duplicate_index >= table_share->keys)
    return 0;
  PandoBytes row_key;
  bool is_there;
  if (int error= find_duplicate(&row_key, &is_there))
    return error;
  if (!is_there)
  {
    *removed= true;
    return 0;
  }
  ha_pando *const other= other_place();
  return other ? other->remove_if_expired(row_key, removed) : HA_ERR_OUT_OF_MEM;
}
