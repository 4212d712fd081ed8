/* The server's calls for rows. How HA_READ_* become moves of a cursor is in mariadb/README.md. */
#include "ha_pando.h"

using namespace pando;

int ha_pando::rnd_init(bool)
{
  begin_scan(0);
  m_columns_prepared= false;
  return 0;
}

int ha_pando::rnd_end()
{
  begin_scan(0);
  return 0;
}

int ha_pando::rnd_next(uchar *record)
{
  return m_positioned ? go_on(true, record) : seek(PANDO_MOVE_FIRST, PandoBytes{}, record);
}

/* A position is the row's key in dictionary 0: two bytes of length, then the key, filled with zeros. */
void ha_pando::position(const uchar *)
{
  if (m_row_key_in_entry)
    find_row_key();
  DBUG_ASSERT(m_row_key.size() + POSITION_LENGTH_BYTES <= ref_length);
  int2store(ref, uint16(m_row_key.size()));
  memcpy(ref + POSITION_LENGTH_BYTES, m_row_key.data(), m_row_key.size());
  memset(ref + POSITION_LENGTH_BYTES + m_row_key.size(), 0,
         ref_length - POSITION_LENGTH_BYTES - m_row_key.size());
}

/* No more than there is room for: where the server merges the partitions' answers to several ranges (ha_partition, multi_range_read_next),
   it compares positions that it has not asked for, and that memory is as malloc gave it. By such the rows that are equal by the key
   come in any order, as in every engine. */
static PandoBytes row_key_at(const uchar *position, size_t position_size)
{
  const size_t room= position_size - POSITION_LENGTH_BYTES;
  return PandoBytes{position + POSITION_LENGTH_BYTES, MY_MIN(size_t(uint2korr(position)), room)};
}

int ha_pando::rnd_pos(uchar *record, uchar *position)
{
  m_columns_prepared= m_columns_prepared && m_scan_dictionary == 0;
  m_scan_dictionary= 0;
  prepare_columns();
  PandoBytes row_key= row_key_at(position, ref_length);
  /* Not where a scan is, should there be one: what is written now concerns its rows. */
  m_writes_seen= ~uint64_t(0);
  m_row_key.assign(row_key.data, row_key.len);
  m_row_key_in_entry= false;
  bool absent;
  int error= get_row(m_row_key.view(), record, &absent);
  return error ? error : absent ? HA_ERR_KEY_NOT_FOUND : 0;
}

/* In the order of rows: the server merges scans by it. */
int ha_pando::cmp_ref(const uchar *ref_1, const uchar *ref_2)
{
  return compare(row_key_at(ref_1, ref_length), row_key_at(ref_2, ref_length));
}

int ha_pando::index_init(uint index, bool sorted)
{
  if (is_damaged(index))
    return report_damaged(index);
  active_index= index;
  m_is_sorted= sorted;
  begin_scan(dictionary_of(index));
  m_columns_prepared= false;
  return 0;
}

int ha_pando::index_end()
{
  begin_scan(m_scan_dictionary);
  active_index= MAX_KEY;
  return 0;
}

/* Whether the search names all parts of a key that at most one row has. */
bool ha_pando::is_whole_unique_key(const uchar *key, key_part_map map)
{
  Index_layout &layout= m_layouts[active_index];
  const KEY *info= &table->key_info[active_index];
  if (!layout.is_unique() && !layout.is_rows())
    return false;
  for (uint i= 0; i < layout.part_count(); i++)
  {
    if (!(map & (key_part_map(1) << i)))
      return false;
    if (layout.part(i).column().nullable() && *key)
      return false;
    key+= info->key_part[i].store_length;
  }
  return true;
}

/* Going up within a range of the server, rows beyond its end need not be fetched. */
void ha_pando::set_range_stop()
{
  m_has_stop= false;
  m_range_stop= false;
  if (!m_range_end)
    return;
  m_stop.clear();
  m_layouts[active_index].encode_image(&m_stop, m_range_end->key, m_range_end->keypart_map,
                                       m_range_end->flag == HA_READ_AFTER_KEY ? Image::LAST : Image::EXACT);
  m_has_stop= m_range_end->flag == HA_READ_BEFORE_KEY || after_prefix(&m_stop);
  m_range_stop= m_has_stop;
}

/* Who looks for the smallest value (MIN) wants no other; ranges come from those who look at rows again. Partitions are searched for where
   a range begins without being told that it is one. Down from the end of a range, nobody tells. */
Image ha_pando::image_of(ha_rkey_function flag) const
{
  switch (flag)
  {
  case HA_READ_KEY_OR_NEXT:
    return m_begins_range || table->part_info ? Image::FIRST : Image::EXACT;
  case HA_READ_PREFIX_LAST_OR_PREV:
  case HA_READ_KEY_OR_PREV:
    return Image::LAST;
  default:
    return Image::EXACT;
  }
}

int ha_pando::search(uchar *record, const uchar *key, key_part_map map, ha_rkey_function flag)
{
  Index_layout &layout= m_layouts[active_index];
  m_search.clear();
  if (key)
    layout.encode_image(&m_search, key, map, image_of(flag));
  m_same.assign(m_search.data(), m_search.size());
  m_keep_same= false;
  set_range_stop();
  switch (flag)
  {
  case HA_READ_KEY_EXACT:
  case HA_READ_PREFIX:
    m_keep_same= true;
    if (key)
    {
      bool is_known;
      int error= know_row(record, key, map, &is_known);
      if (error || is_known)
        return error;
    }
    if (key && is_whole_unique_key(key, map))
      return get_exact(record);
    m_stop.assign(m_search.data(), m_search.size());
    m_has_stop= after_prefix(&m_stop);
    m_range_stop= false;
    return seek(PANDO_MOVE_AT_OR_AFTER, m_search.view(), record);
  case HA_READ_KEY_OR_NEXT:
    return seek(PANDO_MOVE_AT_OR_AFTER, m_search.view(), record);
  case HA_READ_AFTER_KEY:
    if (!after_prefix(&m_search))
      return HA_ERR_END_OF_FILE;
    return seek(PANDO_MOVE_AT_OR_AFTER, m_search.view(), record);
  case HA_READ_BEFORE_KEY:
    m_has_stop= false;
    return seek(PANDO_MOVE_BEFORE, m_search.view(), record);
  case HA_READ_PREFIX_LAST:
    m_keep_same= true;
    /* fall through */
  case HA_READ_KEY_OR_PREV:
  case HA_READ_PREFIX_LAST_OR_PREV:
    m_has_stop= false;
    if (!after_prefix(&m_search))
      return seek(PANDO_MOVE_LAST, PandoBytes{}, record);
    return seek(PANDO_MOVE_BEFORE, m_search.view(), record);
  default:
    return HA_ERR_UNSUPPORTED;
  }
}

int ha_pando::index_read_map(uchar *record, const uchar *key, key_part_map map, ha_rkey_function flag)
{
  /* What an earlier range has checked does not hold for a search of its own: loose scans compare its row
     with the end of the range themselves. */
  if (!m_range_end && !(pushed_idx_cond && pushed_idx_cond_keyno == active_index))
    in_range_check_pushed_down= false;
  int error= search(record, key, map, flag);
  return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
}

int ha_pando::index_read_last_map(uchar *record, const uchar *key, key_part_map map)
{
  return index_read_map(record, key, map, HA_READ_PREFIX_LAST);
}

int ha_pando::index_next(uchar *record)
{
  m_keep_same= false;
  return go_on(true, record);
}

int ha_pando::index_prev(uchar *record)
{
  m_keep_same= false;
  return go_on(false, record);
}

int ha_pando::index_next_same(uchar *record, const uchar *, uint)
{
  m_keep_same= true;
  return go_on(true, record);
}

int ha_pando::index_first(uchar *record)
{
  m_keep_same= false;
  set_range_stop();
  return seek(PANDO_MOVE_FIRST, PandoBytes{}, record);
}

int ha_pando::index_last(uchar *record)
{
  m_keep_same= false;
  m_has_stop= false;
  return seek(PANDO_MOVE_LAST, PandoBytes{}, record);
}

int ha_pando::read_range_first(const key_range *start, const key_range *end, bool is_equal, bool sorted)
{
  /* The scan ends where the range does. The server could not tell where a key has only the beginning of a
     string, or the row has changed since its entry was read. */
  in_range_check_pushed_down= true;
  m_is_sorted= sorted;
  m_range_end= end;
  m_begins_range= true;
  int error= handler::read_range_first(start, end, is_equal, sorted);
  m_range_end= nullptr;
  m_begins_range= false;
  return error;
}

Item *ha_pando::idx_cond_push(uint index, Item *condition)
{
  /* Virtual columns in the entry may not be what a changed row has now; and the server compares the key's
     columns with the end of its range, but the beginning of a string is not the column. */
  if (m_layouts[index].has_virtual() || m_layouts[index].has_prefix())
    return condition;
  pushed_idx_cond= condition;
  pushed_idx_cond_keyno= index;
  in_range_check_pushed_down= true;
  return nullptr;
}
