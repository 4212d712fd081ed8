/* Bulk inserts: LOAD DATA, INSERT of many rows, INSERT ... SELECT, CREATE ... SELECT, and ALTER by copy.

   A statement's first rows go one by one, so that a small one is what it always was, errors included; each is
   copied into a batch besides. When there are many, the rows so far are undone and the
   engine's bulk load (pandodb `load.rs`) begins with the batch. From there on a row is copied, and nothing
   else is done in the server's thread. A key that is there twice is found at the end: the statement fails
   with the error that the row itself would have had, of the same row (of the rows whose key the table had before: the one with the
   least key). One difference can be seen: if another
   error ends the statement before, that one is told.

   If the table is empty, and nobody else is at work in it, the load has it for itself. Else nothing is locked
   before its end, which then waits for others as inserts do.

   With IGNORE, which LOCAL implies, the server wants to know of each row at once whether one of its keys is there. If the load has
   the table for itself, it knows what keys are there: those that it keeps in a part of its memory. When that is used up rows go one by one, unless
   primary keys have ascended and no other key is unique: then they do so when the first one does not ascend. Beside others the keys of each row are locked
   and looked up besides, before it joins, as an insert does.

   Rows go one by one to the end
   - into tables to which the transaction has written before;
   - where a unique key has only the beginning of a column;
   - with REPLACE and ON DUPLICATE KEY UPDATE: into tables that are not empty; into others from the first row on whose key is there;
   - where the server does not announce a bulk insert: triggers and functions that might read the table, unique
     keys that it checks itself (USING HASH);
   - where each row asks for those before it: WITHOUT OVERLAPS, AUTO_INCREMENT further back in a key;
   - into tables with TTL that are not empty;
   - where there is no memory for the copies of the first few rows, which all statements together have in pando_load_memory, or for a
     load of each of very many partitions;
   - of sequences, of rows that a replica applies, and where parents are looked up (foreign keys). */
#include "ha_pando.h"
#include "load.h"
#include "variables.h"
#include "partition_info.h"

using namespace pando;

/* A statement with so many rows, or so many bytes of them, is worth a load. */
static const uint64_t LOAD_ROWS_MIN= 4096;
static const uint64_t LOAD_BYTES_MIN= 4ULL << 20;
/* Where the table has rows: runs of a smaller load would be merged with them soon. */
static const uint64_t BESIDE_ROWS_MIN= 16384;
/* Partitions are many loads: together they have so many rows, or bytes, for each that has got any. */
static const uint64_t PARTITION_ROWS_MIN= 256;
static const uint64_t PARTITION_BYTES_MIN= 128ULL << 10;
/* Where there is no memory for that many copies, so many bytes will do, of a statement and for each partition. */
static const uint64_t SHORT_BYTES_MIN= 256ULL << 10;
static const uint64_t SHORT_PARTITION_BYTES_MIN= 16ULL << 10;

bool ha_pando::may_load() const
{
  THD *thd= ha_thd();
  /* A row without a parent that the server passes by is to be known at once. */
  if (!m_foreign.may_load() || (m_foreign.check_inserts() && decides_duplicates()))
    return false;
  /* The server looks the rows up that the statement has written so far. */
  if (table_share->period.unique_keys || (table->found_next_number_field && table_share->next_number_keypart))
    return false;
  return !is_sequence() && !thd->slave_thread && !thd->lex->is_stmt_row_injection();
}

void ha_pando::start_bulk_insert(ha_rows rows, uint)
{
  abort_bulk_insert();
  /* What the server expects for one partition. */
  const uint64_t expected= table->part_info ? uint64_t(rows) * table->part_info->get_tot_partitions() : uint64_t(rows);
  if ((rows && expected < LOAD_ROWS_MIN) || !may_load())
    return;
  const bool is_empty= pando_table_is_empty(m_table);
  /* A row that has expired makes way for one with its key. */
  if (m_expiry && !is_empty)
    return;
  const uint64_t rows_min= is_empty ? LOAD_ROWS_MIN : BESIDE_ROWS_MIN;
  if ((!is_empty && decides_duplicates() && !only_skips_duplicates()) || (rows && expected < rows_min))
    return;
  m_bulk.reset(new Bulk_insert);
  m_bulk->is_beside= !is_empty;
  m_bulk->rows_min= rows_min;
}

/* The shape is made with the first row: only then all that the server wants to say has been said. */
bool ha_pando::begin_trial()
{
  auto shape=
    std::make_shared<Load_shape>(table, m_table, has_primary_key(), row_key_max(), load_workers());
  if (!shape->is_usable() || (m_bulk->is_beside && pando_txn_has_written_to(txn(), m_table)))
  {
    m_bulk.reset();
    return false;
  }
  m_bulk->batch= shape->take_batch();
  m_bulk->shape= std::move(shape);
  m_bulk->mark= pando_txn_mark(txn());
  Transaction *transaction= Transaction::of(ha_thd());
  if (transaction->txn() == txn())
    m_bulk->join_trials(transaction->trials(), this);
  return true;
}

/* Whether the server decides row by row what becomes of duplicates. */
bool ha_pando::decides_duplicates() const
{
  const LEX *lex= ha_thd()->lex;
  return m_decides_duplicates || lex->ignore || lex->duplicates != DUP_ERROR;
}

/* And it only passes over rows whose key is there. */
bool ha_pando::only_skips_duplicates() const
{
  return !m_replaces_duplicates && ha_thd()->lex->duplicates == DUP_ERROR;
}

/* What becomes of a row where the server decides about duplicates. The load is asked, which knows all keys that it has got; without memory for them,
   primary keys that ascend have no duplicates in it, if no other key is unique. Beside others it is asked in any case. */
int ha_pando::admit_row(const uchar *record, Admission *admission)
{
  *admission= Admission::JOINS;
  if (!decides_duplicates())
    return 0;
  if (has_primary_key())
  {
    if (int error= new_row_key(record, &m_new_row_key))
      return error;
    const int order= m_bulk->last_key.empty() ? -1 : compare(m_bulk->last_key.view(), m_new_row_key.view());
    if (order == 0 && m_bulk->phase == Bulk_insert::Phase::LOADING && !m_bulk->notes && only_skips_duplicates())
    {
      met_duplicate(table_share->primary_key);
      *admission= Admission::IS_DUPLICATE;
      return 0;
    }
    if (order >= 0)
      m_bulk->ascends= false;
    m_bulk->last_key.assign(m_new_row_key.data(), m_new_row_key.size());
  }
  if (m_bulk->phase == Bulk_insert::Phase::TRIAL)
    return 0;
  if (!m_bulk->notes && !m_bulk->ascends)
    *admission= Admission::ENDS_LOAD;
  else if (m_bulk->asks)
    return ask_for_row(record, admission);
  return 0;
}

/* Requires: m_new_row_key is that of the row, if the table has a primary key. */
int ha_pando::ask_for_row(const uchar *record, Admission *admission)
{
  m_bulk->lone_keys.clear();
  for (uint i= 0; i < table_share->keys; i++)
  {
    Index_layout &layout= m_layouts[i];
    if (!layout.is_unique())
      continue;
    Bytes &key= m_bulk->keys[i];
    key.clear();
    if (layout.encode_key(&key, record, m_new_row_key.view()))
      m_bulk->lone_keys.push_back(PandoLoneKey{layout.dictionary(), key.view()});
  }
  uint32_t seen= 0;
  PandoAdmission answer= PANDO_ADMISSION_FULL;
  const bool ascends= m_bulk->ascends && !m_bulk->shape->has_other_unique();
  if (PandoStatus status= pando_load_admit(txn(), m_bulk->load, m_bulk->lone_keys.data(), uint32_t(m_bulk->lone_keys.size()),
                                           !m_bulk->notes ? 0 : ascends ? 2 : 1, &answer, &seen))
    return fail(status);
  switch (answer)
  {
  case PANDO_ADMISSION_NEW:
    *admission= Admission::JOINS;
    break;
  case PANDO_ADMISSION_SEEN:
    met_duplicate(index_of_dictionary(m_bulk->lone_keys[seen].dictionary));
    *admission= only_skips_duplicates() ? Admission::IS_DUPLICATE : Admission::ENDS_LOAD;
    break;
  default:
    *admission= ascends ? Admission::JOINS : Admission::ENDS_LOAD;
    if (ascends)
    {
      m_bulk->notes= false;
      m_bulk->asks= pando_load_is_by_row(m_bulk->load);
    }
  }
  return 0;
}

/* The rows of the trial have been written, so none of them is refused; not joined: there is no memory for them. */
int ha_pando::ask_for_trial(bool *joined)
{
  *joined= true;
  const bool has_unique= has_primary_key() || m_bulk->shape->has_other_unique();
  m_bulk->notes= decides_duplicates() && has_unique;
  m_bulk->asks= m_bulk->notes || (has_unique && pando_load_is_by_row(m_bulk->load));
  if (!m_bulk->asks)
    return 0;
  m_bulk->keys.reset(new Bytes[table_share->keys]);
  m_bulk->shape->restore_blobs(m_bulk->batch.get());
  for (uint64_t row= 0; m_bulk->notes && row < m_bulk->batch->rows() && *joined; row++)
  {
    const uchar *record= m_bulk->batch->record(row);
    Admission admission= Admission::ENDS_LOAD;
    int error= has_primary_key() ? new_row_key(record, &m_new_row_key) : 0;
    if (!error)
      error= ask_for_row(record, &admission);
    if (error)
      return error;
    *joined= admission == Admission::JOINS;
  }
  return 0;
}

/* In place of write_row's own way, or (TRIAL) before it: `*done` says which. */
int ha_pando::write_row_in_bulk(const uchar *record, bool *done)
{
  *done= false;
  if (!m_bulk->shape && !begin_trial())
    return 0;
  Admission admission;
  if (int error= admit_row(record, &admission))
    return error;
  if (admission == Admission::IS_DUPLICATE)
    return HA_ERR_FOUND_DUPP_KEY;
  if (admission == Admission::ENDS_LOAD)
    /* The rows so far are written; this one and the others go one by one. */
    return end_bulk_insert();
  if (m_bulk->phase == Bulk_insert::Phase::TRIAL)
    return 0;
  *done= true;
  add_to_batch(record);
  if (int error= m_foreign.check_inserts() ? m_foreign.load(record) : 0)
    return error;
  if (m_bulk->batch->bytes() < m_bulk->batch_bytes)
    return 0;
  return submit_batch() ? 0 : end_bulk_insert();
}

void ha_pando::add_to_batch(const uchar *record)
{
  m_bulk->rows++;
  m_bulk->shape->append(m_bulk->batch.get(), record);
}

/* A row of the trial was not written. */
void ha_pando::give_up_trial_row(int error)
{
  if (error != HA_ERR_FOUND_DUPP_KEY || !decides_duplicates() || !only_skips_duplicates())
    abort_bulk_insert();
}

/* After a row of the trial was written. */
int ha_pando::go_on_with_trial(const uchar *record)
{
  add_to_batch(record);
  m_bulk->count_in_trials();
  const Trials *trials= m_bulk->trials;
  const uint64_t rows= trials ? trials->rows : m_bulk->rows;
  const uint64_t bytes= trials ? trials->bytes : m_bulk->batch->bytes();
  const uint64_t parts= trials ? trials->handlers.size() : 1;
  if (rows >= MY_MAX(m_bulk->rows_min, parts > 1 ? parts * PARTITION_ROWS_MIN : 0) ||
      bytes >= MY_MAX(LOAD_BYTES_MIN, parts * PARTITION_BYTES_MIN))
    return begin_load();
  if (m_bulk->trial_memory.hold(txn(), m_bulk->batch->bytes()))
    return 0;
  /* There is no memory for more copies. */
  if (bytes >= MY_MAX(SHORT_BYTES_MIN, parts * SHORT_PARTITION_BYTES_MIN))
    return begin_load();
  /* The rows go one by one to the end. */
  abort_bulk_insert();
  return 0;
}

/* The rows so far are undone and come again, with the others: those of all trials of the transaction. If
   something else was written among them, they stay. */
int ha_pando::begin_load()
{
  const std::vector<ha_pando *> all= m_bulk->trials ? m_bulk->trials->handlers : std::vector<ha_pando *>{this};
  uint64_t first= m_bulk->mark, writes= 0;
  for (ha_pando *one : all)
  {
    first= MY_MIN(first, one->m_bulk->mark);
    writes+= one->m_bulk->rows * one->m_new.size() + one->m_bulk->large_values;
  }
  if (pando_txn_writes_since(txn(), first) != writes)
  {
    abort_bulk_insert();
    return 0;
  }
  pando_txn_rollback_to(txn(), first);
  for (ha_pando *one : all)
  {
    pando_txn_release_mark(txn(), one->m_bulk->mark);
    one->m_bulk->leave_trials();
  }
  int error= 0;
  for (ha_pando *one : all)
    if (int of_one= one->begin_own_load())
      error= of_one;
  return error;
}

int ha_pando::begin_own_load()
{
  m_bulk->trial_memory.let_go();
  const std::vector<uint8_t> &unique= m_bulk->shape->unique();
  const uint8_t beside= !decides_duplicates() ? 1 : only_skips_duplicates() ? 2 : 0;
  PandoStatus status= pando_load_begin(txn(), m_table, unique.data(), uint32_t(unique.size()),
                                       m_bulk->rows, beside, Load_shape::encoder(m_bulk->shape), &m_bulk->load);
  bool joined= false;
  if (!status && m_bulk->load)
    if (int error= ask_for_trial(&joined))
      return error;
  if (joined)
  {
    m_bulk->phase= Bulk_insert::Phase::LOADING;
    m_bulk->batch_bytes= pando_load_batch_bytes(m_bulk->load);
    for (uint64_t row= 0; m_foreign.check_inserts() && row < m_bulk->batch->rows(); row++)
      if (int error= m_foreign.load(m_bulk->batch->record(row)))
        return error;
    return !m_bulk->batch->rows() || submit_batch() ? 0 : end_bulk_insert();
  }
  std::unique_ptr<Bulk_insert> bulk= std::move(m_bulk);
  pando_load_abort(bulk->load);
  bulk->load= nullptr;
  if (status)
    return fail(status);
  bulk->shape->restore_blobs(bulk->batch.get());
  for (uint64_t row= 0; row < bulk->batch->rows(); row++)
  {
    const uchar *record= bulk->batch->record(row);
    if (int error= m_foreign.check_inserts() ? m_foreign.insert(record) : write_one_row(record))
      return error;
  }
  return 0;
}

/* Called by the engine every few milliseconds while a statement waits until there is room for more. */
static uint8_t watch_rows(void *connection, double)
{
  return !is_to_end(static_cast<THD *>(connection));
}

/* And while it sorts and writes. A client that is sending its file does not expect a report: it would take it for the answer, and the server the next
   packet for one out of order. */
static uint8_t watch_load(void *connection, double part)
{
  THD *thd= static_cast<THD *>(connection);
  if (thd->lex->sql_command != SQLCOM_LOAD || !thd->lex->local_file)
    thd_progress_report(thd, ulonglong(part * 1000), 1000);
  return watch_rows(connection, part);
}

/* False: the load is bound to fail, or the statement is killed. */
bool ha_pando::submit_batch()
{
  std::unique_ptr<Row_batch> batch= std::move(m_bulk->batch);
  m_bulk->batch= m_bulk->shape->take_batch();
  const uint64_t rows= batch->rows(), bytes= batch->bytes();
  if (!has_primary_key() && pando_table_reserve_hidden_keys(m_table, rows, &batch->first_hidden_key))
    return false;
  const bool goes_on= pando_load_submit(m_bulk->load, batch.release(), rows, bytes, watch_rows, ha_thd());
  m_bulk->batch_bytes= pando_load_batch_bytes(m_bulk->load);
  return goes_on;
}

int ha_pando::end_bulk_insert()
{
  if (!m_bulk)
    return 0;
  THD *thd= ha_thd();
  if (m_bulk->phase != Bulk_insert::Phase::LOADING || thd->is_error())
  {
    abort_bulk_insert();
    return 0;
  }
  if (int error= m_foreign.check_inserts() ? m_foreign.end_load() : 0)
  {
    abort_bulk_insert();
    return my_errno= error;
  }
  if (m_bulk->batch->rows())
    submit_batch();
  PandoLoad *load= m_bulk->load;
  m_bulk.reset();
  int32_t refused;
  const char *stage= thd_proc_info(thd, "Sorting and writing");
  PandoStatus status= pando_load_finish(txn(), load, watch_load, thd, &refused);
  thd_proc_info(thd, stage);
  int error= status == PANDO_STATUS_REFUSED ? refused : load_failed(status);
  if (error)
    my_errno= error;
  return error;
}

/* The row that was one too many becomes the current one, for the server's message. */
int ha_pando::load_failed(PandoStatus status)
{
  if (status != PANDO_STATUS_DUPLICATE)
    return fail(status);
  int error= write_failed(status);
  PandoBytes key, value;
  pando_load_duplicate(txn(), &key, &value);
  if (m_duplicate_index >= table_share->keys)
    return error;
  Index_layout &layout= m_layouts[m_duplicate_index];
  m_columns_prepared= false;
  m_row_codec.want_all();
  if (layout.is_rows())
    m_row_codec.decode(key, value, table->record[0]);
  else if (layout.is_clustering())
    m_row_codec.decode_entry(&layout, key, value, table->record[0]);
  else
    layout.decode(key, value, table->record[0]);
  /* The server would ask the partition that it has used last. */
  if (table->part_info)
    print_keydup_error(table, &table->key_info[m_duplicate_index], MYF(0));
  return error;
}

void ha_pando::abort_bulk_insert()
{
  if (!m_bulk)
    return;
  if (m_bulk->load)
    pando_load_abort(m_bulk->load);
  else if (m_bulk->shape)
    pando_txn_release_mark(txn(), m_bulk->mark);
  m_bulk.reset();
}
