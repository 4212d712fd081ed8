/* Where rows come from: entries of a dictionary in batches, and the rows they name.

   A scan is at `m_entry_key`. While `m_at_cursor`, the engine's cursor stands at the last row of the batch
   that `m_rows` is read from, and the scan goes on in the same direction; otherwise, and to turn round,
   it seeks by the key. At an end, and where it found nothing, it is in the gap before `m_entry_key`
   (`m_in_gap`), from where HANDLER may go both ways. Batches grow (1, 4, 16, 64, 256 rows), so that a lookup
   of one row does not pay for more. Locking scans of rows fetch one at a time: to fetch is to lock. In REPEATABLE READ and
   SERIALIZABLE, when they have met some rows, the engine locks as many ahead, and gives these at once
   (`crates/pandodb/src/read/cursor/ahead.rs`); in READ COMMITTED only where the statement keeps all rows (`keeps_rows`) and their
   keys follow one another. A row of such a batch is read again if this transaction has written to the table
   since the batch came, other than at rows that the scan was at.

   Entries of a secondary key are read from the snapshot, or for locking statements from the newest state; there
   each row is locked and read as it is by then, or only locked, if its entry has all that is wanted of it and is known to be as the
   row is (`entry_has_row`). A locking scan gives every row once, neither twice nor not at
   all when others move rows about in the key:
   - the engine's cursor looks at the newest state at each step, and waits for what others have written on its way and
     not committed, so what moved is met at its new entry: an entry counts if its row still has it. Entries are fetched
     one at a time. In REPEATABLE READ and SERIALIZABLE the cursor holds the gaps that it has passed, too, so nothing can
     have moved to where the scan has been. In READ COMMITTED it can, while the scan waits for the row; the row is
     then given where it was, unless the server wants rows in order (as InnoDB it then passes it by).
   - while a scan of a unique key waits for a row, its key may go to another row (an update of the primary key, REPLACE). The
     entry is out of date then, but its place is not behind the scan: the same key is read again (`read_again`).

   A consistent read up the rows may leave rows out for which a condition of the server is not true (`m_is_filtered`; see
   pushdown_filter.h): the engine then evaluates it on whole columns, and gives the columns that are wanted of what is left.
   Scans of all rows are filtered from the start, others when they have fetched FILTER_ROWS_MIN. */
#include "counted_call.h"
#include "pushdown_filter.h"

using namespace pando;

static const uint BATCH_ROWS_MAX= 256;
static const uint BATCH_BYTES_MAX= 256 << 10;
/* How often an entry and its row may disagree, with nothing changed between: others would have to undo what they did,
   just between the two reads, each time. */
static const uint DISAGREEMENTS_MAX= 100;

void ha_pando::begin_scan(uint dictionary)
{
  /* The server may still ask for the position of the last row. */
  if (m_row_key_in_entry)
    find_row_key();
  m_scan_dictionary= dictionary;
  m_is_filtered= false;
  m_positioned= false;
  m_in_gap= false;
  m_at_cursor= false;
  m_is_peek= false;
  m_has_stop= false;
  m_range_stop= false;
  m_keep_same= false;
}

void ha_pando::close_scan()
{
  if (m_row_key_in_entry)
    find_row_key();
  /* Where the scan is stays known: HANDLER goes on in another statement. */
  if (m_positioned && m_entry_key.data != m_resume.data())
  {
    m_resume.assign(m_entry_key.data, m_entry_key.len);
    m_entry_key= m_resume.view();
  }
  m_at_cursor= false;
  if (!m_cursor)
    return;
  pando_cursor_free(m_cursor);
  m_cursor= nullptr;
}

/* Which columns rows are decoded to. Writing statements may need any; checks of an entry need its
   columns. */
void ha_pando::prepare_columns()
{
  if (m_columns_prepared)
    return;
  m_columns_prepared= true;
  uint index= index_of_dictionary(m_scan_dictionary);
  const bool is_of_rows= m_scan_dictionary == 0 || index >= table_share->keys;
  m_entry_lacks_columns= false;
  m_entry_has_columns= !is_of_rows && entry_has_read_set(index);
  for (uint i= 0; !is_of_rows && i < m_layouts[index].part_count(); i++)
  {
    const Key_part &part= m_layouts[index].part(i);
    /* The server reads by the key only; but partitioning, which merges scans in the order of the key, compares all of its columns. */
    m_entry_lacks_columns|= part.is_prefix() && bitmap_is_set(table->read_set, part.column().index());
  }
  if (m_lock == Lock::EXCLUSIVE)
  {
    if (must_compute_virtual_columns())
      want_virtual_columns();
    m_row_codec.want_all();
    return;
  }
  my_bitmap_map bits[(MAX_FIELDS + 63) / 64 + 1];
  MY_BITMAP wanted;
  my_bitmap_init(&wanted, bits, table_share->fields);
  bitmap_copy(&wanted, table->read_set);
  want_expiry(&wanted);
  for (uint i= 0; !is_of_rows && i < m_layouts[index].part_count(); i++)
    bitmap_set_bit(&wanted, m_layouts[index].part(i).column().index());
  m_row_codec.want(&wanted);
  if (is_of_rows)
    need_columns();
}

/* Whether entries of the key have all columns that the server reads, in full, by the rules by which it would say so itself. Virtual ones it
   computes unless it does. */
bool ha_pando::entry_has_read_set(uint index) const
{
  if (!table_share->keys_for_keyread.is_set(index) || m_layouts[index].has_prefix())
    return false;
  for (Field **field= table->field; *field; field++)
    if (bitmap_is_set(table->read_set, (*field)->field_index) &&
        !((*field)->stored_in_db() && (*field)->part_of_key.is_set(index)))
      return false;
  return true;
}

/* Whether the server wants no more of a row than entries of the key have. It announces that (m_keyread), but not where it runs IN and EXISTS as
   lookups in a key, nor where it has been told that no key covers the query (see info). */
bool ha_pando::is_covering() const
{
  return (m_keyread ? !m_entry_lacks_columns : m_entry_has_columns) && knows_expiry(active_index);
}

/* Whether a locking read of an entry needs of the row only its lock. Who writes to the table needs the row. An entry that was looked up
   by its whole key is at no cursor. */
bool ha_pando::may_lock_by_entry() const
{
  return m_at_cursor && !m_skip_locked && !m_copy_txn && !m_sequence_txn &&
         (m_lock == Lock::SHARED || thd_sql_command(ha_thd()) == SQLCOM_SELECT);
}

int ha_pando::fetch(PandoMove move, PandoBytes key)
{
  if (!m_cursor || m_cursor_dictionary != m_scan_dictionary)
  {
    close_scan();
    m_cursor= pando_cursor_new(txn(), m_table, m_scan_dictionary);
    m_cursor_dictionary= m_scan_dictionary;
  }
  PandoFetch wanted= {};
  wanted.start= move;
  wanted.read= read_mode();
  const bool peeking= m_scan_dictionary == 0 && peeks() && move != PANDO_MOVE_PEEKED;
  wanted.wait_s= peeking ? PANDO_WAIT_PEEK : wait_s();
  wanted.key= key;
  if (m_has_stop)
    wanted.stop= m_stop.view();
  wanted.rows_max= m_rows_next;
  wanted.bytes_max= BATCH_BYTES_MAX;
  if (is_locking())
  {
    const bool locks_ahead= m_scan_dictionary == 0 && may_lock_ahead();
    wanted.condition= can_pass_by() ? m_filter->get() : nullptr;
    wanted.is_ahead= m_scan_dictionary == 0 && may_read_ahead();
    wanted.keeps_rows= wanted.is_ahead && !locks_ahead && keeps_rows();
    wanted.rows_max= locks_ahead || wanted.keeps_rows ? BATCH_ROWS_MAX : 1;
  }
  m_writes_seen= *writes();
  m_rows_left= 0;
  m_at_cursor= false;
  m_row_key_in_entry= false;
  wanted.filter= m_is_filtered ? m_filter->get() : nullptr;
  while (true)
  {
    PandoStatus status;
    {
      Counted_call counted(handler_stats);
      status= pando_cursor_fetch(m_cursor, txn(), &wanted, &m_batch);
    }
    if (status && status != PANDO_STATUS_NOT_FOUND)
    {
      const int error= fail(status);
      /* This cursor does not serve any more. */
      if (status == PANDO_STATUS_BUG)
        close_scan();
      return error;
    }
    if (m_batch.count || m_batch.ended || !wanted.filter)
      break;
    /* It has looked at many rows in vain. */
    if (is_to_end(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
    wanted.start= PANDO_MOVE_NEXT;
  }
  m_at_cursor= true;
  m_rows= Reader(m_batch.rows);
  m_rows_left= m_batch.count;
  m_rows_fetched+= m_batch.count;
  m_rows_next= MY_MIN(m_rows_next * 4, BATCH_ROWS_MAX);
  return m_rows_left ? 0 : HA_ERR_END_OF_FILE;
}

/* The scan has met an end. */
int ha_pando::stand_in_gap(PandoBytes key, bool after)
{
  m_encoded.assign(key.data, key.len);
  if (after)
    m_encoded.append_byte(0);
  m_resume.assign(m_encoded.data(), m_encoded.size());
  m_entry_key= m_resume.view();
  m_positioned= true;
  m_in_gap= true;
  m_at_cursor= false;
  return HA_ERR_END_OF_FILE;
}

/* The next entry of the batch. */
int ha_pando::take_entry()
{
  const uchar *lengths, *bytes;
  uint32 key_size, value_size;
  if (!m_rows.take(sizeof(key_size) + sizeof(value_size), &lengths))
    return damaged("a batch of rows is cut short");
  memcpy(&key_size, lengths, sizeof(key_size));
  memcpy(&value_size, lengths + sizeof(key_size), sizeof(value_size));
  if (!m_rows.take(size_t(key_size) + value_size, &bytes))
    return damaged("a batch of rows is cut short");
  m_rows_left--;
  m_entry_key= PandoBytes{bytes, key_size};
  m_entry_value= PandoBytes{bytes + key_size, value_size};
  m_positioned= true;
  m_in_gap= false;
  if (m_keep_same && (key_size < m_same.size() || memcmp(bytes, m_same.data(), m_same.size())))
    return stand_in_gap(m_entry_key, !m_forward);
  return 0;
}

/* Goes on in the direction the scan has. */
int ha_pando::step()
{
  if (!m_rows_left)
  {
    if (m_batch.ended)
    {
      if (!m_has_stop || m_range_stop || m_keep_same)
        return stand_in_gap(m_entry_key, m_forward);
      /* The stop was where equal keys end, and the server wants to go beyond. */
      m_has_stop= false;
      return go_on_by_key(m_forward);
    }
    if (m_row_key_in_entry)
      find_row_key();
    if (!m_is_filtered && m_forward && m_rows_fetched >= FILTER_ROWS_MIN && can_filter())
      return go_on_by_key(true);
    m_resume.assign(m_entry_key.data, m_entry_key.len);
    m_entry_key= m_resume.view();
    if (int error= fetch(m_forward ? PANDO_MOVE_NEXT : PANDO_MOVE_PREVIOUS, PandoBytes{}))
      return error == HA_ERR_END_OF_FILE ? stand_in_gap(m_entry_key, m_forward) : error;
  }
  return take_entry();
}

/* The current entry of a unique key was out of date when its row was locked: comes to the entry that the key has now, or
   if it has none to the next one. */
int ha_pando::read_again()
{
  m_resume.assign(m_entry_key.data, m_entry_key.len);
  m_stale_value.assign(m_entry_value.data, m_entry_value.len);
  m_entry_key= m_resume.view();
  if (int error= fetch(PANDO_MOVE_AGAIN, PandoBytes{}))
    return error == HA_ERR_END_OF_FILE ? stand_in_gap(m_entry_key, m_forward) : error;
  if (int error= take_entry())
    return error;
  if (compare(m_entry_key, m_resume.view()) || compare(m_entry_value, m_stale_value.view()))
  {
    m_disagreements= 0;
    return 0;
  }
  /* The scan does not see what this statement has written; if it was that which moved the row, it is passed by. */
  PandoStatus status= look_up(m_scan_dictionary, m_entry_key, PANDO_READ_LATEST, PANDO_WAIT_DEFAULT, m_check_buffer);
  if (status && status != PANDO_STATUS_NOT_FOUND)
    return fail(status);
  if (status || compare(pando_buffer_bytes(m_check_buffer), m_entry_value))
    return step();
  return note_disagreement();
}

/* Nobody had changed the entry that its row did not agree with. */
int ha_pando::note_disagreement()
{
  return ++m_disagreements < DISAGREEMENTS_MAX ? 0 : damaged("a key names a row that does not have it");
}

/* Seeks the entry after or before the current one. */
int ha_pando::go_on_by_key(bool forward)
{
  m_resume.assign(m_entry_key.data, m_entry_key.len);
  m_entry_key= m_resume.view();
  m_forward= forward;
  m_is_filtered= forward && can_filter() && (m_is_filtered || m_rows_fetched >= FILTER_ROWS_MIN);
  m_rows_next= m_is_filtered ? m_rows_next : 1;
  Bytes key;
  key.append(m_resume.data(), m_resume.size());
  if (forward && !m_in_gap)
    key.append_byte(0);
  if (int error= fetch(forward ? PANDO_MOVE_AT_OR_AFTER : PANDO_MOVE_BEFORE, key.view()))
    return error == HA_ERR_END_OF_FILE ? stand_in_gap(key.view(), false) : error;
  return take_entry();
}

/* Begins a scan. The stop, and whether keys have to stay the same, have been set. */
int ha_pando::seek(PandoMove move, PandoBytes key, uchar *record)
{
  prepare_columns();
  m_positioned= false;
  m_in_gap= false;
  m_has_start= key.data != nullptr;
  m_forward= move == PANDO_MOVE_AT_OR_AFTER || move == PANDO_MOVE_FIRST;
  m_is_filtered= move == PANDO_MOVE_FIRST && can_filter();
  m_rows_next= 1;
  m_rows_fetched= 0;
  int error= fetch(move, key);
  if (error == HA_ERR_END_OF_FILE && m_has_start)
    return stand_in_gap(key, false);
  if (!error)
    error= take_entry();
  return error ? error : deliver(record);
}

int ha_pando::go_on(bool forward, uchar *record)
{
  if (!m_positioned || (m_in_gap && m_keep_same))
    return HA_ERR_END_OF_FILE;
  prepare_columns();
  if (m_is_peek && m_at_cursor && forward == m_forward)
    return lock_peeked(record);
  int error;
  if (m_at_cursor && forward == m_forward)
    error= step();
  else
  {
    /* Where equal keys end is no end for those who ask for the next one. */
    if (forward != m_forward || (!m_range_stop && !m_keep_same))
      m_has_stop= false;
    error= go_on_by_key(forward);
  }
  return error ? error : deliver(record);
}

/* The row that was given as it was last committed matches: now it is waited for. The cursor does it: another seek would
   see what this statement has written. */
int ha_pando::lock_peeked(uchar *record)
{
  m_is_peek= false;
  m_resume.assign(m_entry_key.data, m_entry_key.len);
  m_entry_key= m_resume.view();
  int error= fetch(PANDO_MOVE_PEEKED, PandoBytes{});
  if (error == HA_ERR_END_OF_FILE)
    return stand_in_gap(m_entry_key, m_forward);
  if (!error)
    error= take_entry();
  return error ? error : deliver(record);
}

/* Gives the server the row of the current entry, or of the first after it that counts. */
int ha_pando::deliver(uchar *record)
{
  m_disagreements= 0;
  keep_record(record);
  while (true)
  {
    bool passed_by= false;
    if (int error= deliver_entry(record, &passed_by))
      return error;
    pass_by_expired(record, &passed_by);
    if (!passed_by)
      return 0;
    if (is_to_end(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
    if (int error= m_is_out_of_date ? read_again() : step())
    {
      give_back_record(record);
      return error;
    }
  }
}

int ha_pando::deliver_entry(uchar *record, bool *passed_by)
{
  m_is_out_of_date= false;
  if (m_scan_dictionary == 0)
  {
    m_row_key_in_entry= true;
    if (is_locking())
    {
      find_row_key();
      m_row_just_locked= m_batch.just_locked;
      m_is_peek= m_batch.is_peek;
      if (m_writes_seen != *writes())
        return get_row(m_row_key.view(), record, passed_by);
    }
    return decode_row(m_entry_key, m_entry_value, record);
  }
  /* A locking scan checks it on the row as it is when it is locked. */
  if (!is_locking())
  {
    int error= check_condition(record, passed_by);
    if (error || *passed_by)
      return error;
  }
  Index_layout &layout= m_layouts[index_of_dictionary(m_scan_dictionary)];
  m_row_key_in_entry= true;
  bool has_row;
  if (int error= entry_has_row(layout, &has_row))
    return error;
  if (!has_row)
    return read_through(record, passed_by);
  const bool done= layout.is_clustering() ? m_row_codec.decode_entry(&layout, m_entry_key, m_entry_value, record)
                                          : layout.decode(m_entry_key, m_entry_value, record);
  if (!done)
    return damaged("an index entry cannot be decoded");
  if (is_locking())
  {
    int error= check_condition(record, passed_by);
    if (*passed_by)
      unlock_row();
    return error;
  }
  return layout.is_clustering() ? read_large(PandoBytes{}, record) : 0;
}

int ha_pando::decode_row(PandoBytes row_key, PandoBytes row, uchar *record)
{
  if (!m_row_codec.decode(row_key, row, record))
    return damaged("a row cannot be decoded");
  return read_large(row_key, record);
}

/* The values that a row which was decoded refers to. `row_key`: no bytes if it is not one that can be written. */
int ha_pando::read_large(PandoBytes row_key, uchar *record)
{
  if (m_row_codec.large_columns().empty())
    return 0;
  const bool may_lack= m_lock == Lock::EXCLUSIVE && row_key.len && !m_is_peek;
  PandoStatus status;
  {
    Counted_call counted(handler_stats);
    status= m_large.read(m_row_codec, txn(), m_table, read_mode() != PANDO_READ_SNAPSHOT, row_key,
                         may_lack ? table : nullptr, record);
  }
  const bool may_have_gone= status == PANDO_STATUS_NOT_FOUND || status == PANDO_STATUS_VALUES_LOST;
  /* Who had the row locked may have changed it meanwhile. */
  if (may_have_gone && m_is_peek && m_at_cursor)
    return lock_peeked(record);
  if (status == PANDO_STATUS_NOT_FOUND)
    return damaged("a large value of a row is not there");
  return status ? fail(status) : 0;
}

/* Whether the current entry of a secondary key has all that is wanted of its row, and is of a row that is as the entry says. For a locking read
   the row is locked then.
   A snapshot has entries and rows of others alike. A row that this transaction has changed may still have an entry in the snapshot that it
   had before somebody else's change, so such entries have to be checked. Of locking reads the cursor knows whether the entry still is
   what the row has. */
int ha_pando::entry_has_row(const Index_layout &layout, bool *has_row)
{
  *has_row= false;
  if (!is_locking())
  {
    if (!layout.is_clustering() && !is_covering())
      return 0;
    bool is_written;
    if (int error= is_written_by_us(&is_written))
      return error;
    *has_row= !is_written;
    return 0;
  }
  if (layout.is_clustering() || !is_covering() || !may_lock_by_entry())
    return 0;
  if (!find_row_key())
    return damaged("an index entry cannot be decoded");
  uint8_t is_current= 0;
  PandoStatus status;
  {
    Counted_call counted(handler_stats);
    status= pando_cursor_lock_row(m_cursor, txn(), m_row_key.view(), &is_current);
  }
  if (status)
    return fail(status);
  *has_row= is_current;
  m_is_peek= false;
  m_row_just_locked= is_current && pando_txn_just_locked(txn());
  return 0;
}

/* Whether this transaction has written the row of the current entry, or may have. */
int ha_pando::is_written_by_us(bool *is_written)
{
  *is_written= pando_txn_has_writes(txn());
  if (!*is_written || read_mode() != PANDO_READ_SNAPSHOT)
    return 0;
  if (!find_row_key())
    return damaged("an index entry cannot be decoded");
  uint8_t is_own= 1;
  if (PandoStatus status= pando_txn_has_written(txn(), m_table, 0, m_row_key.view(), &is_own))
    return fail(status);
  *is_written= is_own;
  return 0;
}

/* The index condition of the server, on the columns of the entry, or of a row that was read already. */
int ha_pando::check_condition(uchar *record, bool *passed_by)
{
  uint index= index_of_dictionary(m_scan_dictionary);
  if (!pushed_idx_cond || pushed_idx_cond_keyno != index || record != table->record[0])
    return 0;
  if (!is_locking() && !m_layouts[index].decode(m_entry_key, m_entry_value, record))
    return damaged("an index entry cannot be decoded");
  switch (handler_index_cond_check(this))
  {
  case CHECK_POS:             return 0;
  case CHECK_NEG:             *passed_by= m_condition_is_false= true; return 0;
  case CHECK_OUT_OF_RANGE:    return HA_ERR_END_OF_FILE;
  case CHECK_ABORTED_BY_USER: return HA_ERR_ABORTED_BY_USER;
  case CHECK_ERROR:           break;
  }
  return HA_ERR_INTERNAL_ERROR;
}

/* The key of the row that the current entry names. */
bool ha_pando::find_row_key()
{
  m_row_key_in_entry= false;
  if (m_scan_dictionary == 0)
  {
    m_row_key.assign(m_entry_key.data, m_entry_key.len);
    return true;
  }
  return m_layouts[index_of_dictionary(m_scan_dictionary)].row_key_of(m_entry_key, m_entry_value, &m_row_key);
}

/* Reads the row that the current entry of a secondary key names. */
int ha_pando::read_through(uchar *record, bool *passed_by)
{
  Index_layout &layout= m_layouts[index_of_dictionary(m_scan_dictionary)];
  if (!find_row_key())
    return damaged("an index entry cannot be decoded");
  bool absent, skipped;
  if (int error= get_row(m_row_key.view(), record, &absent, &skipped))
    return error;
  const bool is_snapshot= !is_locking() && read_mode() == PANDO_READ_SNAPSHOT &&
                          !pando_txn_has_writes(txn());
  if (absent)
  {
    *passed_by= true;
    m_is_out_of_date= is_locking() && layout.is_unique() && !skipped;
    return is_snapshot ? damaged("an index entry names a row that is not there") : 0;
  }
  if (!is_snapshot)
  {
    bool belongs;
    if (int error= still_belongs(record, &belongs))
      return error;
    *passed_by= !belongs;
    m_is_out_of_date= is_locking() && layout.is_unique() && !belongs;
  }
  if (!*passed_by && is_locking())
    if (int error= check_condition(record, passed_by))
      return error;
  if (*passed_by)
  {
    unlock_row();
    return 0;
  }
  /* Where the server thinks that it reads the key only, it does not compute virtual columns. */
  if (m_keyread && layout.has_virtual() && !layout.decode(m_entry_key, m_entry_value, record))
    return damaged("an index entry cannot be decoded");
  return 0;
}

/* Whether the row that was read is one of the scan: it may have changed since the entry was read, or in a snapshot,
   this transaction may have changed it. */
int ha_pando::still_belongs(const uchar *record, bool *belongs)
{
  Index_layout &layout= m_layouts[index_of_dictionary(m_scan_dictionary)];
  if (layout.has_virtual())
  {
    uint8_t is_own= 1;
    if (!is_locking() && read_mode() == PANDO_READ_SNAPSHOT)
      if (PandoStatus status= pando_txn_has_written(txn(), m_table, 0, m_row_key.view(), &is_own))
        return fail(status);
    /* A snapshot has the entry and the row of others alike, whatever they have done since. */
    *belongs= true;
    return is_own ? still_has_entry(&layout, belongs) : 0;
  }
  m_encoded.clear();
  layout.encode_key(&m_encoded, record, m_row_key.view());
  *belongs= compare(m_encoded.view(), m_entry_key) == 0 ||
            (is_locking() && !takes_gaps() && !m_is_sorted && is_passed(m_encoded.view()));
  return 0;
}

/* Whether a key is one that the scan looks for, and has been beyond already: it will not meet it any more. Going down, the
   server does not say where its range ends; there all that moves is met or passed by in order. */
bool ha_pando::is_passed(PandoBytes key) const
{
  return m_forward && compare(key, m_entry_key) < 0 && is_within(key);
}

bool ha_pando::is_within(PandoBytes key) const
{
  if (m_keep_same && (key.len < m_same.size() || memcmp(key.data, m_same.data(), m_same.size())))
    return false;
  return (!m_has_start || compare(key, m_search.view()) >= 0) && (!m_range_stop || compare(key, m_stop.view()) < 0);
}

/* What virtual columns would be now, only the server can tell: looks for the entry. */
int ha_pando::still_has_entry(Index_layout *layout, bool *still)
{
  PandoStatus status= look_up(m_scan_dictionary, m_entry_key, PANDO_READ_LATEST, PANDO_WAIT_DEFAULT, m_check_buffer);
  *still= false;
  if (status == PANDO_STATUS_NOT_FOUND)
    return 0;
  if (status)
    return fail(status);
  if (!layout->row_key_of(m_entry_key, pando_buffer_bytes(m_check_buffer), &m_encoded))
    return damaged("an index entry cannot be decoded");
  *still= compare(m_encoded.view(), m_row_key.view()) == 0;
  return 0;
}

PandoStatus ha_pando::look_up(uint dictionary, PandoBytes key, PandoRead read, int64_t wait, PandoBuffer *value)
{
  Counted_call counted(handler_stats);
  return pando_txn_get(txn(), m_table, dictionary, key, read, wait, value);
}

int ha_pando::get_row(PandoBytes row_key, uchar *record, bool *absent, bool *skipped)
{
  PandoStatus status= look_up(0, row_key, read_mode(), wait_s(), m_buffer);
  m_is_peek= false;
  *absent= status == PANDO_STATUS_NOT_FOUND || status == PANDO_STATUS_SKIPPED;
  if (skipped)
    *skipped= status == PANDO_STATUS_SKIPPED;
  m_row_just_locked= is_locking() && !status && pando_txn_just_locked(txn());
  if (*absent)
  {
    /* What is not there does not match: as unlock_row. */
    if (is_locking() && status == PANDO_STATUS_NOT_FOUND && pando_txn_just_locked(txn()) &&
        Transaction::of(ha_thd())->isolation() <= ISO_READ_COMMITTED)
      pando_txn_unlock(txn(), m_table, 0, row_key);
    return 0;
  }
  if (status)
    return fail(status);
  return decode_row(row_key, pando_buffer_bytes(m_buffer), record);
}

/* The one row with the key m_search, of the primary key or a unique one. */
int ha_pando::get_exact(uchar *record)
{
  prepare_columns();
  m_at_cursor= false;
  m_has_stop= false;
  m_row_key_in_entry= false;
  m_resume.assign(m_search.data(), m_search.size());
  m_entry_key= m_resume.view();
  m_positioned= true;
  m_in_gap= false;
  if (m_scan_dictionary == 0)
  {
    bool absent;
    m_row_key.assign(m_search.data(), m_search.size());
    m_row_key_in_entry= false;
    keep_record(record);
    int error= get_row(m_row_key.view(), record, &absent);
    if (!error && !absent)
    {
      pass_by_expired(record, &absent);
      if (absent)
        give_back_record(record);
    }
    return error ? error : absent ? HA_ERR_KEY_NOT_FOUND : 0;
  }
  return get_by_unique_key(record);
}

/* The row that a unique secondary key names; m_entry_key is the whole key. */
int ha_pando::get_by_unique_key(uchar *record)
{
  bool has_value= false;
  m_disagreements= 0;
  keep_record(record);
  while (true)
  {
    if (int error= look_up_unique_key())
      return error;
    m_entry_value= pando_buffer_bytes(m_entry_buffer);
    bool passed_by= false;
    m_condition_is_false= false;
    int error= deliver_entry(record, &passed_by);
    if (!error && !passed_by)
    {
      pass_by_expired(record, &passed_by);
      if (passed_by)
      {
        give_back_record(record);
        return HA_ERR_KEY_NOT_FOUND;
      }
    }
    if (error || !passed_by)
      return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
    /* While the row's lock was waited for, the key may have gone to another row. */
    if (!is_locking() || !m_is_out_of_date || m_condition_is_false)
      return HA_ERR_KEY_NOT_FOUND;
    if (is_to_end(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
    if (has_value && compare(m_entry_value, m_stale_value.view()) == 0)
    {
      if (int error= note_disagreement())
        return error;
    }
    else
      m_disagreements= 0;
    m_stale_value.assign(m_entry_value.data, m_entry_value.len);
    has_value= true;
  }
}

/* The entry of m_entry_key into m_entry_buffer. */
int ha_pando::look_up_unique_key()
{
  PandoStatus status= look_up(m_scan_dictionary, m_entry_key, is_locking() ? PANDO_READ_LATEST : read_mode(),
                              PANDO_WAIT_DEFAULT, m_entry_buffer);
  /* The lock of the row protects its entry; where there is none, the key itself is locked: another may have written it
     and not committed. In READ COMMITTED that is for waiting only. */
  if (status == PANDO_STATUS_NOT_FOUND && is_locking())
  {
    status= look_up(m_scan_dictionary, m_entry_key, read_mode(), wait_s(), m_entry_buffer);
    if (!status && !takes_gaps() && pando_txn_just_locked(txn()))
      pando_txn_unlock(txn(), m_table, m_scan_dictionary, m_entry_key);
  }
  return status ? fail(status) : 0;
}
