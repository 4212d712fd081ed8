/* What the handler makes of rows that have expired (expiry.h): reads pass them by, and a row that is written with a key of one takes its place. */
#include "expiry_purge.h"
#include "ha_pando.h"
#include <sql_trigger.h>

using namespace pando;

/* Statements that make another table of this one, or look whether it is sound, have all of its rows. */
static bool shows_expired(THD *thd)
{
  switch (thd_sql_command(thd)) {
  case SQLCOM_ALTER_TABLE:
  case SQLCOM_CREATE_INDEX:
  case SQLCOM_DROP_INDEX:
  case SQLCOM_OPTIMIZE:
  case SQLCOM_REPAIR:
  case SQLCOM_CHECK:
    return true;
  default:
    return thd->lex->is_stmt_row_injection();
  }
}

/* What keeps rows from being removed: more than this table would change, and the binary log would know nothing of it. */
int ha_pando::check_purge(const Expiry_purge *purge) const
{
  if (!purge->is_of(m_expiry.get()))
    return HA_ERR_TABLE_DEF_CHANGED;
  const char *why= nullptr;
  if (table->triggers && table->triggers->has_delete_triggers())
    why= "it has a trigger for DELETE";
  else if (referenced_by_foreign_key())
    why= "a foreign key refers to it";
  if (!why)
    return 0;
  my_printf_error(ER_GET_ERRMSG, "%s", MYF(0), why);
  return HA_ERR_UNSUPPORTED;
}

/* When the statement is: see the head of expiry.h. */
int ha_pando::begin_expiry(THD *thd)
{
  const Expiry_purge *purge= Expiry_purge::of_thread();
  m_is_purged= purge && is_target_of_delete() && !thd->in_sub_stmt;
  m_replaced.clear();
  if (m_is_purged)
    if (int error= check_purge(purge))
      return error;
  if (!m_expiry)
    return 0;
  if (m_is_purged || shows_expired(thd))
    m_expiry->begin(0);
  else
    m_expiry->begin(is_locking() ? thd->query_start() : Transaction::of(thd)->reads_at());
  return 0;
}

/* Of a row that has been read. One that stands where a row had expired when the statement met it is the statement's own, and was met where it
   was before. */
void ha_pando::pass_by_expired(const uchar *record, bool *passed_by)
{
  if (!m_expiry || *passed_by)
    return;
  bool is_own= false;
  if (!m_replaced.empty())
  {
    if (m_row_key_in_entry)
      find_row_key();
    is_own= m_replaced.count(std::string(reinterpret_cast<const char *>(m_row_key.data()), m_row_key.size()));
  }
  if (!is_own && !m_expiry->is_expired(record))
    return;
  *passed_by= true;
  m_is_out_of_date= false;
  unlock_row();
}

/* Who finds no row finds the record as it was. */
void ha_pando::keep_record(const uchar *record)
{
  if (m_expiry && m_expiry->is_set())
    m_kept_record.assign(record, table_share->reclength);
}

void ha_pando::give_back_record(uchar *record)
{
  if (m_expiry && m_expiry->is_set())
    memcpy(record, m_kept_record.data(), m_kept_record.size());
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

/* Of the other place. */
int ha_pando::is_row_expired(PandoBytes row_key, Lock lock, uchar *record, bool *expired, bool *absent)
{
  m_lock= lock;
  m_read_latest= true;
  m_scan_dictionary= 0;
  m_columns_prepared= false;
  prepare_columns();
  m_row_key.assign(row_key.data, row_key.len);
  m_row_key_in_entry= false;
  const int error= get_row(m_row_key.view(), record, absent);
  m_read_latest= false;
  m_lock= Lock::EXCLUSIVE;
  *expired= !error && !*absent && m_expiry->is_expired(record);
  return error;
}

/* Of the other place: removes this row, as a DELETE does, if it has expired; or says that it has gone already. One that has not is locked no more than
   it is by who has met it. */
int ha_pando::remove_if_expired(PandoBytes row_key, bool *removed)
{
  Bytes record;
  record.assign(table->s->default_values, table->s->reclength);
  bool expired= false;
  for (const Lock lock : {Lock::NONE, Lock::EXCLUSIVE})
  {
    if (int error= is_row_expired(row_key, lock, record.data(), &expired, removed))
      return error;
    if (!expired)
      return 0;
  }
  *removed= true;
  return delete_row(record.data());
}

/* After a duplicate. `removed`: the row that was in the way is so no more, because it had expired. */
int ha_pando::remove_expired(bool *removed)
{
  THD *const thd= ha_thd();
  const bool is_image= thd->lex->is_stmt_row_injection();
  *removed= false;
  if (m_duplicate_index >= table_share->keys || !(m_expiry->is_set() || is_image) || referenced_by_foreign_key())
    return 0;
  PandoBytes found;
  bool is_there;
  if (int error= find_duplicate(&found, &is_there))
    return error;
  if (!is_there)
  {
    *removed= true;
    return 0;
  }
  const std::string key(reinterpret_cast<const char *>(found.data), found.len);
  ha_pando *const other= other_place();
  if (!other)
    return HA_ERR_OUT_OF_MEM;
  const int error= other->remove_if_expired(PandoBytes{reinterpret_cast<const uint8_t *>(key.data()), key.size()}, removed);
  const int command= thd_sql_command(thd);
  if (*removed && !is_image && (command == SQLCOM_UPDATE || command == SQLCOM_UPDATE_MULTI))
    m_replaced.insert(key);
  return error;
}
