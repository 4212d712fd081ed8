/* Inserting, changing and deleting rows: an entry for each dictionary, then one call. */
#include "counted_call.h"
#include "ha_pando.h"

using namespace pando;

static const char LOST_IS_MOVED[]= "a large value that cannot be read would have to be written elsewhere";

void ha_pando::views(const std::vector<Entry> &entries, std::vector<PandoEntry> *out)
{
  out->clear();
  for (const Entry &entry : entries)
    out->push_back(entry.view());
}

/* Encodes what a record is in every dictionary that is `present`; the others get an empty entry. Without the row's value where
   nobody needs it. */
void ha_pando::encode_row(const uchar *record, PandoBytes row_key, std::vector<Entry> *entries, bool with_row)
{
  for (uint dictionary= 0; dictionary < entries->size(); dictionary++)
  {
    Entry &entry= (*entries)[dictionary];
    entry.key.clear();
    entry.value.clear();
    entry.unique= false;
    if (!entry.present)
      continue;
    if (dictionary == 0)
    {
      entry.key.append(row_key.data, row_key.len);
      if (with_row)
        m_row_codec.encode(&entry.value, record, &m_large);
      entry.unique= has_primary_key();
      continue;
    }
    Index_layout &layout= *layout_of(dictionary);
    entry.unique= layout.encode_key(&entry.key, record, row_key);
    layout.encode_value(&entry.value, record, row_key, (*entries)[0].value.view(), entry.unique);
  }
}

/* Whether there are entries that have the row in them. */
bool ha_pando::has_clustering_key()
{
  for (uint dictionary= 1; dictionary < m_new.size(); dictionary++)
    if (layout_of(dictionary)->is_clustering())
      return true;
  return false;
}

int ha_pando::new_row_key(const uchar *record, Bytes *key)
{
  key->clear();
  if (has_primary_key())
  {
    m_layouts[0].encode_key(key, record, PandoBytes{});
    return key->size() > ref_length - POSITION_LENGTH_BYTES ? HA_ERR_TO_BIG_ROW : 0;
  }
  uint64_t hidden;
  if (PandoStatus status= pando_table_next_hidden_key(m_table, &hidden))
    return fail(status);
  uchar *bytes= key->extend(HIDDEN_KEY_SIZE);
  mi_int8store(bytes, hidden);
  return 0;
}

/* The row that was written is the current one. */
void ha_pando::set_row_key(const Bytes &key)
{
  m_row_key.assign(key.data(), key.size());
  m_row_key_in_entry= false;
}

int ha_pando::write_failed(PandoStatus status)
{
  if (status == PANDO_STATUS_DUPLICATE)
    met_duplicate(index_of_dictionary(pando_txn_duplicate(txn(), nullptr)));
  if (status == PANDO_STATUS_KEY_UNUSABLE)
    for (uint dictionary= 1; dictionary < dictionaries(); dictionary++)
      if (m_new[dictionary].unique && is_damaged(index_of_dictionary(dictionary)))
        report_damaged(index_of_dictionary(dictionary));
  return fail(status);
}

/* Of a partitioned table the server may ask another partition which key it was: that of the row before it was moved. */
void ha_pando::met_duplicate(uint index)
{
  m_duplicate_index= index;
  Transaction::of(ha_thd())->met_duplicate(table_share, index);
}

uint ha_pando::duplicate_index() const
{
  const Transaction *transaction= table && table->part_info ? Transaction::if_any(ha_thd()) : nullptr;
  return transaction ? transaction->duplicate_index(table_share, m_duplicate_index) : m_duplicate_index;
}

/* A row of the binary log that is applied has no values of virtual columns that only this server has, and the
   server computes none, though keys may hold them. */
bool ha_pando::must_compute_virtual_columns() const
{
  return table->vfield && ha_thd()->lex->is_stmt_row_injection();
}

/* The server computes, in each row that it reads, those that keys hold. */
void ha_pando::want_virtual_columns()
{
  for (Field **field= table->vfield; *field; field++)
    if (((*field)->flags & (PART_KEY_FLAG | PART_INDIRECT_KEY_FLAG)) &&
        !bitmap_is_set(table->read_set, (*field)->field_index))
      bitmap_set_bit(table->read_set, (*field)->field_index);
}

int ha_pando::compute_virtual_columns(const uchar *record)
{
  if (!must_compute_virtual_columns() || record != table->record[0])
    return 0;
  want_virtual_columns();
  return table->update_virtual_fields(this, VCOL_UPDATE_FOR_WRITE) ? HA_ERR_GENERIC : 0;
}

int ha_pando::write_row(const uchar *record)
{
  if (int error= compute_virtual_columns(record))
    return error;
  const bool has_number= table->next_number_field && record == table->record[0];
  if (has_number)
    if (int error= update_auto_increment())
      return error;
  const int error= write_numbered_row(record);
  /* As in InnoDB, the value of a row that INSERT ... SELECT passes by, or changes another for, is not given out any more. */
  if (error == HA_ERR_FOUND_DUPP_KEY && has_number && thd_sql_command(ha_thd()) == SQLCOM_INSERT_SELECT)
    note_auto_increment(table->next_number_field);
  return error;
}

int ha_pando::write_numbered_row(const uchar *record)
{
  bool is_loading= false;
  if (m_bulk)
    if (int error= write_row_in_bulk(record, &is_loading))
      return error;
  if (!is_loading)
    if (int error= m_foreign.check_inserts() ? m_foreign.insert(record) : write_one_row(record))
    {
      if (m_bulk)
        give_up_trial_row(error);
      return error;
    }
  if (table->found_next_number_field && record == table->record[0])
    note_auto_increment(table->found_next_number_field);
  if (is_loading)
    return 0;
  if (int error= after_write())
    return error;
  return m_bulk ? go_on_with_trial(record) : 0;
}

int ha_pando::write_one_row(const uchar *record)
{
  while (true)
  {
    const int error= write_entries(record);
    bool removed= false;
    if (error != HA_ERR_FOUND_DUPP_KEY || !m_expiry)
      return error;
    if (int other= remove_expired(&removed))
      return other;
    if (!removed)
      return error;
  }
}

int ha_pando::write_entries(const uchar *record)
{
  if (int error= new_row_key(record, &m_new_row_key))
    return error;
  for (Entry &entry : m_new)
    entry.present= true;
  m_large.begin(m_table, PandoBytes{});
  encode_row(record, m_new_row_key.view(), &m_new);
  if (m_large.has_met_lost())
    return damaged(LOST_IS_MOVED);
  views(m_new, &m_new_views);
  PandoStatus status;
  {
    Counted_call counted(handler_stats);
    status= pando_txn_insert_row(txn(), m_table, m_new_views.data(), uint32_t(m_new_views.size()),
                                 m_large.written().data(), uint32_t(m_large.written().size()), on_duplicate());
  }
  note_write(false);
  if (status)
    return write_failed(status);
  if (m_bulk)
    m_bulk->large_values+= m_large.written().size();
  set_row_key(m_new_row_key);
  return 0;
}

/* Whether the row that is written is the one that was read last. */
bool ha_pando::is_at_old_row() const
{
  return !m_row_key_in_entry && m_old_row_key == m_row_key;
}

int ha_pando::update_row(const uchar *old_record, const uchar *new_record)
{
  if (int error= compute_virtual_columns(new_record))
    return error;
  if (int error= m_foreign.are_checked() ? m_foreign.update(old_record, new_record, nullptr)
                                         : update_one_row(old_record, new_record))
    return error;
  if (table->found_next_number_field && new_record == table->record[0] &&
      bitmap_is_set(table->write_set, table->found_next_number_field->field_index))
    note_auto_increment(table->found_next_number_field);
  return after_write();
}

int ha_pando::update_one_row(const uchar *old_record, const uchar *new_record)
{
  while (true)
  {
    const int error= update_entries(old_record, new_record);
    bool removed= false;
    if (error != HA_ERR_FOUND_DUPP_KEY || !m_expiry)
      return error;
    if (int other= remove_expired(&removed))
      return other;
    if (!removed)
      return error;
  }
}

int ha_pando::update_entries(const uchar *old_record, const uchar *new_record)
{
  if (has_primary_key())
  {
    m_old_row_key.clear();
    m_layouts[0].encode_key(&m_old_row_key, old_record, PandoBytes{});
  }
  else
    m_old_row_key.assign(m_row_key.data(), m_row_key.size());
  /* A primary key that changes only in what its bytes do not show (case) may still be kept in entries. */
  const bool row_key_changed= has_primary_key() && m_layouts[0].is_changed(old_record, new_record);
  if (!row_key_changed)
    m_new_row_key.assign(m_old_row_key.data(), m_old_row_key.size());
  else if (int error= new_row_key(new_record, &m_new_row_key))
    return error;
  if (!row_key_changed && !m_row_codec.differ(old_record, new_record))
    return HA_ERR_RECORD_IS_THE_SAME;
  const bool row_key_moved= row_key_changed && !(m_old_row_key == m_new_row_key);
  uint8_t in_full= 0;
  if (m_new.size() > 1)
    if (PandoStatus status= pando_txn_is_newer_than_snapshot(txn(), m_table, m_old_row_key.view(), &in_full))
      return fail(status);
  for (uint dictionary= 0; dictionary < m_new.size(); dictionary++)
  {
    bool present= dictionary == 0 || row_key_changed || in_full ||
                  layout_of(dictionary)->is_clustering() || layout_of(dictionary)->is_changed(old_record, new_record);
    m_new[dictionary].present= m_old[dictionary].present= present;
  }
  m_large.begin(m_table, m_old_row_key.view());
  m_large.only_keep(true);
  encode_row(old_record, m_old_row_key.view(), &m_old, has_clustering_key());
  m_large.only_keep(false);
  encode_row(new_record, m_new_row_key.view(), &m_new);
  if (m_large.has_met_lost())
    return damaged(LOST_IS_MOVED);
  if (row_key_changed && !row_key_moved && !m_row_codec.differ(old_record, new_record))
    return HA_ERR_RECORD_IS_THE_SAME;
  views(m_old, &m_old_views);
  views(m_new, &m_new_views);
  /* The engine need not compare them, byte for byte. */
  if (!row_key_moved)
    m_new_views[0].key= m_old_views[0].key;
  note_write(is_at_old_row() && !row_key_moved);
  PandoStatus status;
  {
    Counted_call counted(handler_stats);
    status= pando_txn_update_row(txn(), m_table, m_old_views.data(), m_new_views.data(), uint32_t(m_new_views.size()),
                                 m_large.written().data(), uint32_t(m_large.written().size()), in_full);
  }
  if (status)
    return write_failed(status);
  set_row_key(m_new_row_key);
  return 0;
}

int ha_pando::delete_row(const uchar *record)
{
  return m_foreign.are_checked() ? m_foreign.remove(record, nullptr) : delete_one_row(record);
}

int ha_pando::delete_one_row(const uchar *record)
{
  if (has_primary_key())
  {
    m_old_row_key.clear();
    m_layouts[0].encode_key(&m_old_row_key, record, PandoBytes{});
  }
  else
    m_old_row_key.assign(m_row_key.data(), m_row_key.size());
  for (Entry &entry : m_old)
    entry.present= true;
  m_large.begin(m_table, m_old_row_key.view());
  m_large.only_keep(true);
  encode_row(record, m_old_row_key.view(), &m_old, has_clustering_key());
  views(m_old, &m_old_views);
  note_write(is_at_old_row());
  Counted_call counted(handler_stats);
  return fail(pando_txn_delete_row(txn(), m_table, m_old_views.data(), uint32_t(m_old_views.size())));
}
