/* What a handler does for the constraints of another table: looks up rows by the beginning of a key. */
#include "related_table.h"
#include "counted_call.h"
#include "ha_pando.h"

using namespace pando;

/* How many entries are passed by one by one before the next place is sought. */
static const uint STEPS_MAX= 32;

void ha_pando::encode_probe(uint index, uint parts, Bytes *probe)
{
  probe->clear();
  for (uint i= 0; i < parts; i++)
    m_layouts[index].part(i).encode(probe, table->record[0]);
}

static int found_or(int error, bool *found)
{
  *found= !error;
  return error == HA_ERR_KEY_NOT_FOUND || error == HA_ERR_END_OF_FILE ? 0 : error;
}

/* Only who changes rows needs more of them than the columns of the key. */
void ha_pando::begin_related(uint index, Lock lock)
{
  if (m_lock != lock || active_index != index)
    m_columns_prepared= false;
  table->read_set= lock == Lock::EXCLUSIVE ? &table->tmp_set : &table->def_read_set;
  m_lock= m_stored_lock= lock;
  m_read_latest= lock == Lock::NONE;
  m_skip_locked= m_peeks= false;
  m_is_sorted= true;
  active_index= index;
  begin_scan(dictionary_of(index));
}

/* Whether a row has a key that begins so, as it is now: it is locked shared, and not read where its key says all. */
int ha_pando::lock_related(uint index, PandoBytes probe, bool is_whole_key, bool *found)
{
  if (!is_whole_key || dictionary_of(index))
    return seek_related(index, probe, is_whole_key, Lock::SHARED, found);
  PandoStatus status;
  {
    Counted_call counted(handler_stats);
    status= pando_txn_lock_existing(txn(), m_table, 0, probe, PANDO_READ_SHARED, PANDO_WAIT_DEFAULT);
  }
  *found= !status;
  return status && status != PANDO_STATUS_NOT_FOUND ? fail(status) : 0;
}

/* The first row with a key that begins so, as it is now, into record[0]; locked exclusively. */
int ha_pando::find_related(uint index, PandoBytes probe, bool is_whole_key, bool *found)
{
  return seek_related(index, probe, is_whole_key, Lock::EXCLUSIVE, found);
}

int ha_pando::seek_related(uint index, PandoBytes probe, bool is_whole_key, Lock lock, bool *found)
{
  begin_related(index, lock);
  m_search.assign(probe.data, probe.len);
  m_same.assign(probe.data, probe.len);
  m_keep_same= true;
  m_range_stop= false;
  if (is_whole_key)
    return found_or(get_exact(table->record[0]), found);
  m_stop.assign(probe.data, probe.len);
  m_has_stop= after_prefix(&m_stop);
  return found_or(seek(PANDO_MOVE_AT_OR_AFTER, m_search.view(), table->record[0]), found);
}

int ha_pando::find_next_related(bool *found)
{
  m_keep_same= true;
  return found_or(go_on(true, table->record[0]), found);
}

/* Whether a key begins so, where probes come in order (`is_first`: a new row of them). No row is read nor locked: nobody writes to
   the table meanwhile. Probes and entries are merged: what lies near is reached step by step, and what is far is sought. */
int ha_pando::find_in_order(uint index, PandoBytes probe, bool is_first, bool *found)
{
  *found= false;
  if (is_first)
    begin_related(index, Lock::NONE);
  for (uint steps= 0; !m_in_gap; steps++)
  {
    if (m_positioned)
    {
      const size_t common= MY_MIN(m_entry_key.len, probe.len);
      const int order= common ? memcmp(m_entry_key.data, probe.data, common) : 0;
      if (order > 0 || (!order && m_entry_key.len >= probe.len))
      {
        *found= !order;
        return 0;
      }
    }
    if (int error= m_positioned && steps < STEPS_MAX ? pass_entry() : seek_entry(probe))
    {
      if (error != HA_ERR_END_OF_FILE)
        return error;
      m_in_gap= true;
    }
  }
  return 0;
}

int ha_pando::seek_entry(PandoBytes key)
{
  m_forward= true;
  m_rows_next= 1;
  m_rows_fetched= 0;
  if (int error= fetch(PANDO_MOVE_AT_OR_AFTER, key))
    return error;
  return take_entry();
}

int ha_pando::pass_entry()
{
  if (!m_rows_left)
  {
    if (m_batch.ended)
      return HA_ERR_END_OF_FILE;
    if (int error= fetch(PANDO_MOVE_NEXT, PandoBytes{}))
      return error;
  }
  return take_entry();
}

/* The transaction's writes since the mark never were. */
void ha_pando::undo_to(uint64_t mark)
{
  pando_txn_rollback_to(txn(), mark);
  ++*writes();
}

/* Before it is kept for other connections. */
void ha_pando::detach()
{
  reset();
}

bool ha_pando::referenced_by_foreign_key() const noexcept
{
  return const_cast<ha_pando *>(this)->m_foreign.is_referenced();
}

bool ha_pando::get_foreign_dup_key(char *child, uint child_size, char *key, uint key_size)
{
  return Transaction::of(ha_thd())->refusing_key(child, child_size, key, key_size);
}
