/* Bulk inserts: LOAD DATA, INSERT of many rows, INSERT ... SELECT, CREATE ... SELECT, and ALTER by copy.

   A statement's first rows go one by one, so that a small one is what it always was, errors included; each is
   copied into a batch besides. When there are many, and the table is empty, the rows so far are undone and the
   engine's bulk load (pandodb `load.rs`) begins with the batch. From there on a row is copied, and nothing
   else is done in the server's thread. A key that is there twice is found at the end: the statement fails
   with the error that the row itself would have had, of the same row. One difference can be seen: if another
   error ends the statement before, that one is told.

   Rows go one by one to the end
   - into tables that are not empty, or in which others are at work;
   - where a unique key has only the beginning of a column;
   - where the server decides row by row what becomes of duplicates (IGNORE, which LOCAL implies, REPLACE, ON
     DUPLICATE KEY UPDATE), unless there cannot be any: from the first primary key on that does not ascend,
     and everywhere if another key is unique;
   - where the server does not announce a bulk insert: triggers and functions that might read the table, unique
     keys that it checks itself (USING HASH);
   - of sequences, and of rows that a replica applies. */
#include "ha_pando.h"
#include "load.h"
#include "variables.h"

using namespace pando;

/* A statement with so many rows, or so many bytes of them, is worth a load. */
static const uint64_t LOAD_ROWS_MIN= 4096;
static const uint64_t LOAD_BYTES_MIN= 4ULL << 20;
/* A batch is handed over when it has so many bytes. */
static const uint64_t BATCH_BYTES= 512ULL << 10;

bool ha_pando::may_load() const
{
  THD *thd= ha_thd();
  return !is_sequence() && !thd->slave_thread && !thd->lex->is_stmt_row_injection() &&
         pando_table_is_empty(m_table);
}

void ha_pando::start_bulk_insert(ha_rows rows, uint)
{
  abort_bulk_insert();
  if ((rows && rows < LOAD_ROWS_MIN) || !may_load())
    return;
  m_bulk.reset(new Bulk_insert);
}

/* The shape is made with the first row: only then all that the server wants to say has been said. */
bool ha_pando::begin_trial()
{
  auto shape=
    std::make_shared<Load_shape>(table, m_table, has_primary_key(), row_key_max(), load_workers());
  if (!shape->is_usable() || (decides_duplicates() && shape->has_other_unique()))
  {
    m_bulk.reset();
    return false;
  }
  m_bulk->batch= shape->take_batch();
  m_bulk->shape= std::move(shape);
  m_bulk->mark= pando_txn_mark(txn());
  return true;
}

/* Whether the server decides row by row what becomes of duplicates. */
bool ha_pando::decides_duplicates() const
{
  const LEX *lex= ha_thd()->lex;
  return m_decides_duplicates || lex->ignore || lex->duplicates != DUP_ERROR;
}

/* Where the server decides about duplicates, there must be none: primary keys have to ascend. */
int ha_pando::check_order(const uchar *record, bool *in_order)
{
  *in_order= true;
  if (!has_primary_key() || !decides_duplicates())
    return 0;
  if (int error= new_row_key(record, &m_new_row_key))
    return error;
  *in_order= m_bulk->last_key.empty() || compare(m_bulk->last_key.view(), m_new_row_key.view()) < 0;
  m_bulk->last_key.assign(m_new_row_key.data(), m_new_row_key.size());
  return 0;
}

/* In place of write_row's own way, or (TRIAL) before it: `*done` says which. */
int ha_pando::write_row_in_bulk(const uchar *record, bool *done)
{
  *done= false;
  if (!m_bulk->shape && !begin_trial())
    return 0;
  bool in_order;
  if (int error= check_order(record, &in_order))
    return error;
  if (!in_order)
  {
    /* The rows so far are written; this one and the others go one by one. */
    if (m_bulk->phase == Bulk_insert::Phase::LOADING)
      return end_bulk_insert();
    abort_bulk_insert();
    return 0;
  }
  m_bulk->rows++;
  m_bulk->shape->append(m_bulk->batch.get(), record);
  if (m_bulk->phase == Bulk_insert::Phase::TRIAL)
    return 0;
  *done= true;
  if (m_bulk->batch->bytes() < BATCH_BYTES)
    return 0;
  return submit_batch() ? 0 : end_bulk_insert();
}

/* After a row of the trial was written. */
int ha_pando::go_on_with_trial()
{
  if (m_bulk->rows < LOAD_ROWS_MIN && m_bulk->batch->bytes() < LOAD_BYTES_MIN)
    return 0;
  return begin_load();
}

int ha_pando::begin_load()
{
  /* The rows so far come again, with the others. */
  pando_txn_rollback_to(txn(), m_bulk->mark);
  pando_txn_release_mark(txn(), m_bulk->mark);
  const std::vector<uint8_t> &unique= m_bulk->shape->unique();
  PandoStatus status= pando_load_begin(txn(), m_table, unique.data(), uint32_t(unique.size()),
                                       m_bulk->rows, Load_shape::encoder(m_bulk->shape), &m_bulk->load);
  if (!status && m_bulk->load)
  {
    m_bulk->phase= Bulk_insert::Phase::LOADING;
    return submit_batch() ? 0 : end_bulk_insert();
  }
  std::unique_ptr<Bulk_insert> bulk= std::move(m_bulk);
  if (status)
    return fail(status);
  bulk->shape->restore_blobs(bulk->batch.get());
  for (uint64_t row= 0; row < bulk->batch->rows(); row++)
    if (int error= write_one_row(bulk->batch->record(row)))
      return error;
  return 0;
}

/* False: the load is bound to fail. */
bool ha_pando::submit_batch()
{
  std::unique_ptr<Row_batch> batch= std::move(m_bulk->batch);
  m_bulk->batch= m_bulk->shape->take_batch();
  const uint64_t rows= batch->rows(), bytes= batch->bytes();
  if (!has_primary_key() && pando_table_reserve_hidden_keys(m_table, rows, &batch->first_hidden_key))
    return false;
  return pando_load_submit(m_bulk->load, batch.release(), rows, bytes);
}

/* Called by the engine every few milliseconds while it sorts and writes. */
static uint8_t watch_load(void *connection, double part)
{
  THD *thd= static_cast<THD *>(connection);
  thd_progress_report(thd, ulonglong(part * 1000), 1000);
  /* A statement that has examined enough (LIMIT ROWS EXAMINED) keeps what it has. */
  return thd->killed < KILL_QUERY || thd->killed == ABORT_QUERY || thd->killed == ABORT_QUERY_HARD;
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
  if (m_layouts[m_duplicate_index].is_rows())
  {
    m_columns_prepared= false;
    m_row_codec.want_all();
    m_row_codec.decode(key, value, table->record[0]);
  }
  else
    m_layouts[m_duplicate_index].decode(key, value, table->record[0]);
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
