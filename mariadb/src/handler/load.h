/* Rows of a bulk insert on their way to the engine's worker threads.

   The server's thread copies records (and the bytes of their BLOBs) into batches and does nothing else with
   them; a worker encodes a batch into the entries of all dictionaries. What that needs of the table is copied
   when the load begins (`Load_shape`), one set of codecs for each worker: Field objects belong to
   the server's thread. */
#ifndef PANDO_LOAD_H
#define PANDO_LOAD_H

#include <algorithm>
#include <memory>
#include <condition_variable>
#include <mutex>
#include <vector>
#include "row_codec.h"
#include "transaction.h"

class ha_pando;

namespace pando {

/* Records one after another, as the server has them, but BLOBs: instead of a pointer they have the place of
   their bytes in `blobs`. */
class Row_batch
{
public:
  explicit Row_batch(size_t record_size) : m_record_size(record_size) {}

  uint64_t rows() const { return m_rows; }
  uint64_t bytes() const { return m_records.size() + m_blobs.size(); }
  void clear()
  {
    m_records.clear();
    m_blobs.clear();
    m_rows= 0;
    m_is_whole= false;
  }
  const uchar *record(uint64_t row) const { return m_records.data() + row * m_record_size; }

  /* Of tables without a primary key: the key of the first row; the others follow. */
  uint64_t first_hidden_key= 0;

private:
  friend class Load_shape;

  const size_t m_record_size;
  Bytes m_records;
  Bytes m_blobs;
  uint64_t m_rows= 0;
  bool m_is_whole= false;  /* BLOBs are pointers again; nothing can be added */
};

/* What workers have to know of a table. Made and used by the server's thread, but for `encode`. */
class Load_shape
{
public:
  Load_shape(const TABLE *table, const PandoTable *engine_table, bool has_primary_key, size_t row_key_max,
             uint workers);

  /* False: the table cannot be loaded: it has a unique key over the beginning of a column, or its definition
     is not what the engine has. */
  bool is_usable() const { return m_is_usable; }

  /* A key besides the primary one is unique. */
  bool has_other_unique() const { return m_has_other_unique; }
  /* Dictionaries in which keys could be equal. */
  const std::vector<uint8_t> &unique() const { return m_unique; }

  std::unique_ptr<Row_batch> take_batch();
  void give_batch(Row_batch *batch);
  void append(Row_batch *batch, const uchar *record) const;
  /* Makes the records of a batch whole again. */
  void restore_blobs(Row_batch *batch) const;

  /* The functions for the engine; `encoder` gives the shape away. */
  static PandoEncoder encoder(std::shared_ptr<Load_shape> shape);

private:
  struct Codecs
  {
    Row_codec rows;
    std::unique_ptr<Index_layout[]> layouts; /* by the server's index number */
    Bytes row_key, row, key, value;
  };
  /* A part of the record: bytes that are always the same number, or a VARCHAR. */
  struct Span
  {
    uint offset;
    uint size;         /* of a VARCHAR: the most */
    uint length_bytes; /* 0: not a VARCHAR */
  };
  struct Blob
  {
    Column column;
    uint offset;
    uint length_bytes;
    bool used;
  };

  void find_spans(const TABLE *table);
  std::unique_ptr<Codecs> new_codecs(const TABLE *table, const PandoTable *engine_table);
  std::unique_ptr<Codecs> take_codecs();
  int encode(Row_batch *batch, PandoEntries *entries);
  int encode_row(Codecs *codecs, const uchar *record, uint64_t hidden_key, PandoEntries *entries) const;

  static int32_t encode_callback(void *context, void *batch, PandoEntries *entries);
  static void free_batch_callback(void *context, void *batch);
  static void free_context_callback(void *context);

  const PandoTable *const m_engine_table;
  const bool m_has_primary_key;
  const size_t m_row_key_max;
  const uint m_keys;
  const size_t m_record_size;
  bool m_is_usable= true;
  bool m_has_other_unique= false;
  std::vector<Span> m_spans;
  std::vector<Blob> m_blobs;
  std::vector<uint8_t> m_unique;
  std::mutex m_mutex; /* of the two lists */
  std::condition_variable m_has_codecs;
  std::vector<std::unique_ptr<Codecs>> m_codecs;
  std::vector<std::unique_ptr<Row_batch>> m_spare;
};

/* What becomes of a row where the server decides about duplicates. */
enum class Admission : uint8_t
{
  JOINS,        /* there is no other with one of its keys */
  IS_DUPLICATE, /* there is, and that is all the server wants to know */
  ENDS_LOAD     /* there is, or nobody knows: it and those after it go one by one */
};

/* What a trial's copies of rows take of the memory that loads have. */
class Trial_memory
{
public:
  Trial_memory() = default;
  ~Trial_memory() { let_go(); }
  Trial_memory(const Trial_memory &) = delete;
  Trial_memory &operator=(const Trial_memory &) = delete;

  /* False: there is no memory for so many bytes. It is asked for in steps, which double. */
  bool hold(const PandoTxn *txn, uint64_t bytes)
  {
    while (bytes > m_bytes)
    {
      if (!m_hold)
        m_hold= pando_load_hold_new(txn);
      const uint64_t step= MY_MIN(MY_MAX(m_bytes, STEP_MIN), STEP_MAX);
      if (!pando_load_hold_more(m_hold, step))
        return false;
      m_bytes+= step;
    }
    return true;
  }
  void let_go()
  {
    pando_load_hold_free(m_hold);
    m_hold= nullptr;
    m_bytes= 0;
  }

private:
  static constexpr uint64_t STEP_MIN= 16 << 10, STEP_MAX= 256 << 10;

  PandoLoadHold *m_hold= nullptr;
  uint64_t m_bytes= 0;
};

/* A bulk insert of one statement into one table: first rows go one by one and are kept besides (TRIAL);
   when there are many, these are undone and the load begins with them. */
struct Bulk_insert
{
  enum class Phase : uint8_t { TRIAL, LOADING };

  Bulk_insert() = default;
  ~Bulk_insert() { leave_trials(); }
  Bulk_insert(const Bulk_insert &) = delete;
  Bulk_insert &operator=(const Bulk_insert &) = delete;

  /* Those of one transaction that are on trial, as the partitions of a table are: what one of them undoes is the
     others' too, so all that are begin their loads together. */
  void join_trials(Trials *list, ha_pando *own)
  {
    trials= list;
    handler= own;
    trials->handlers.push_back(own);
  }
  void leave_trials()
  {
    if (trials)
    {
      std::vector<ha_pando *> &handlers= trials->handlers;
      handlers.erase(std::remove(handlers.begin(), handlers.end(), handler), handlers.end());
      trials->rows-= counted_rows;
      trials->bytes-= counted_bytes;
    }
    trials= nullptr;
    counted_rows= counted_bytes= 0;
  }
  /* What this one has of the rows of all trials. */
  void count_in_trials()
  {
    if (!trials)
      return;
    trials->rows+= rows - counted_rows;
    trials->bytes+= batch->bytes() - counted_bytes;
    counted_rows= rows;
    counted_bytes= batch->bytes();
  }

  Trials *trials= nullptr;
  uint64_t counted_rows= 0, counted_bytes= 0;
  ha_pando *handler= nullptr;
  Phase phase= Phase::TRIAL;
  uint64_t mark= 0; /* TRIAL: the transaction before the first row */
  std::shared_ptr<Load_shape> shape;
  std::unique_ptr<Row_batch> batch;
  Trial_memory trial_memory;
  PandoLoad *load= nullptr;
  uint64_t batch_bytes= 0; /* LOADING: a batch of so many is handed over */
  uint64_t rows= 0;
  uint64_t rows_min= 0; /* TRIAL: with so many the load begins */
  bool is_beside= false;              /* the table was not empty */
  uint64_t large_values= 0; /* TRIAL: written with the rows */
  Bytes last_key;      /* primary key of the last row, where the server decides about duplicates */
  bool ascends= true;  /* so far, those of all rows */
  bool asks= false;    /* LOADING: of each row it is asked whether its keys are there */
  bool notes= false;   /* LOADING: the load knows the keys of its own rows */
  std::unique_ptr<Bytes[]> keys;        /* those of one row, in the order of the server's indexes */
  std::vector<PandoLoneKey> lone_keys;  /* of these, what must be alone */
};

} // namespace pando

#endif
