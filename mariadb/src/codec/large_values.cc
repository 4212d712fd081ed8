#include "large_values.h"
#include "row_codec.h"

namespace pando {

const uchar LOST_VALUE[LARGE_REFERENCE_SIZE]= {0xf5, 'P', 'a', 'n', 'd', 'o', 'L', 'V'};

/* Whether the statement that `table` is opened for can do without a column: it does not name it, and no key has it. */
static bool is_spare(const TABLE *table, uint column)
{
  return !bitmap_is_set(table->read_set, column) && !(table->field[column]->flags & (PART_KEY_FLAG | PART_INDIRECT_KEY_FLAG));
}

Large_values::~Large_values()
{
  release();
}

void Large_values::release()
{
  for (Slot &slot : m_slots)
    pando_buffer_free(slot.buffer);
  m_slots.clear();
  m_written.clear();
  m_owner.clear();
}

PandoStatus Large_values::read(const Row_codec &codec, PandoTxn *txn, const PandoTable *table, bool is_locked,
                               PandoBytes row_key, const TABLE *may_lack, uchar *record)
{
  const std::vector<uint> &columns= codec.large_columns();
  m_slots.resize(columns.size());
  m_owner.assign(row_key.data, row_key.len);
  for (uint i= 0; i < columns.size(); i++)
  {
    Slot &slot= m_slots[i];
    slot.is_read= slot.is_lost= false;
    const Stored_column &stored= codec.column(columns[i]);
    if (!stored.wanted || stored.column.is_null(record))
      continue;
    PandoBytes value;
    stored.column.value(record, &value.data, &value.len);
    if (value.len != LARGE_REFERENCE_SIZE || !pando_large_is_reference(value))
      continue;
    memcpy(slot.reference, value.data, sizeof(slot.reference));
    if (!slot.buffer)
      slot.buffer= pando_buffer_new();
    const PandoBytes reference= {slot.reference, sizeof(slot.reference)};
    const PandoStatus status= pando_txn_large_value(txn, table, reference, is_locked, slot.buffer);
    if (status == PANDO_STATUS_VALUES_LOST || status == PANDO_STATUS_CORRUPTION || status == PANDO_STATUS_NOT_FOUND)
      slot.is_lost= may_lack && is_spare(may_lack, stored.column.index());
    if (slot.is_lost)
    {
      stored.column.store_string(record, LOST_VALUE, LARGE_REFERENCE_SIZE);
      continue;
    }
    if (status)
      return status;
    const PandoBytes bytes= pando_buffer_bytes(slot.buffer);
    stored.column.store_string(record, bytes.data, bytes.len);
    slot.is_read= true;
  }
  return PANDO_STATUS_OK;
}

void Large_values::begin(const PandoTable *table, PandoBytes row_key)
{
  m_table= table;
  m_written.clear();
  m_may_keep= row_key.len && compare(row_key, m_owner.view()) == 0;
  m_only_keep= false;
  m_has_met_lost= false;
}

bool Large_values::refer(uint slot, PandoBytes value, uchar *reference)
{
  if (m_may_keep && slot < m_slots.size() && m_slots[slot].is_read)
  {
    const PandoBytes read= pando_buffer_bytes(m_slots[slot].buffer);
    if (read.data == value.data && read.len == value.len)
    {
      memcpy(reference, m_slots[slot].reference, LARGE_REFERENCE_SIZE);
      return true;
    }
  }
  if (value.data == LOST_VALUE)
  {
    if (m_may_keep && slot < m_slots.size() && m_slots[slot].is_lost)
    {
      memcpy(reference, m_slots[slot].reference, LARGE_REFERENCE_SIZE);
      return true;
    }
    m_has_met_lost= true;
    return false;
  }
  PandoLargeValue large= {0, value};
  if (m_only_keep || !pando_table_next_large_value(m_table, value.len, &large.id, reference))
    return false;
  m_written.push_back(large);
  return true;
}

} // namespace pando
