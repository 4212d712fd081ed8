/* CHECK TABLE ... EXTENDED: whether the entries of each secondary key are those that the rows have.

   At one snapshot, one pass over the rows makes the entries of all keys, and one pass over each key reads those that there are. Of both is
   kept how many there are and a sum of their hashes, in which their order does not count. An entry is its key, and the key of the row
   that it names; not the columns that it keeps besides, which a plain CHECK compares for clustering keys. Keys of virtual columns are left
   out: a time zone or an sql_mode other than that of who wrote a row may give them another value, though all is well.

   A key whose sums differ is given up (damaged_keys.cc). */
#include "ha_pando.h"
#include "server.h"

using namespace pando;

static const uint ROWS_MAX= 1024;
static const uint BYTES_MAX= 512 << 10;

namespace pando {

/* Some entries of a key. */
struct Entry_sum
{
  uint64_t count= 0;
  uint64_t sum= 0;

  void add(PandoBytes key, PandoBytes row_key)
  {
    count++;
    sum+= mixed(hash(hash(HASH_START, key) ^ key.len, row_key));
  }
  bool operator==(const Entry_sum &other) const { return count == other.count && sum == other.sum; }

private:
  /* FNV-1a, and the end of MurmurHash3: sums of hashes that differ in few bits would meet. */
  static constexpr uint64_t HASH_START= 0xcbf29ce484222325, HASH_PRIME= 0x100000001b3;
  static uint64_t hash(uint64_t seed, PandoBytes bytes)
  {
    for (size_t i= 0; i < bytes.len; i++)
      seed= (seed ^ bytes.data[i]) * HASH_PRIME;
    return seed;
  }
  static uint64_t mixed(uint64_t hash)
  {
    hash= (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
    hash= (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
    return hash ^ (hash >> 33);
  }
};

struct Sums_of_key
{
  uint index;
  Entry_sum of_rows, there;
};

/* Of the keys that are compared. */
struct Entry_sums
{
  std::vector<Sums_of_key> keys;
};

} // namespace pando

namespace {

/* The entries of one dictionary, batch by batch. */
class Entries
{
public:
  Entries(PandoTxn *reader, PandoTable *table, uint dictionary)
    : m_reader(reader), m_cursor(pando_cursor_new(reader, table, dictionary))
  {
    m_fetch.start= PANDO_MOVE_FIRST;
    m_fetch.read= PANDO_READ_SNAPSHOT;
    m_fetch.rows_max= ROWS_MAX;
    m_fetch.bytes_max= BYTES_MAX;
  }
  ~Entries() { pando_cursor_free(m_cursor); }
  Entries(const Entries &) = delete;
  Entries &operator=(const Entries &) = delete;

  /* PANDO_STATUS_NOT_FOUND: there are no more. */
  PandoStatus fetch(PandoBatch *batch)
  {
    const PandoStatus status= pando_cursor_fetch(m_cursor, m_reader, &m_fetch, batch);
    m_fetch.start= PANDO_MOVE_NEXT;
    return !status && !batch->count ? PANDO_STATUS_NOT_FOUND : status;
  }

private:
  PandoTxn *m_reader;
  PandoCursor *m_cursor;
  PandoFetch m_fetch= {};
};

} // namespace

/* What entries are made of. */
void ha_pando::want_columns_of_keys()
{
  my_bitmap_map bits[(MAX_FIELDS + 63) / 64 + 1];
  MY_BITMAP wanted;
  my_bitmap_init(&wanted, bits, table_share->fields);
  m_columns_prepared= false;
  for (uint i= 0; i < table_share->keys; i++)
    for (uint part= 0; !m_layouts[i].has_virtual() && part < m_layouts[i].part_count(); part++)
      bitmap_set_bit(&wanted, m_layouts[i].part(part).column().index());
  m_row_codec.want(&wanted);
}

PandoStatus ha_pando::sum_entries_of_rows(THD *thd, PandoTxn *reader, Entry_sums *sums)
{
  uchar *record= table->record[0];
  want_columns_of_keys();
  Entries rows(reader, m_table, 0);
  PandoBatch batch= {};
  Bytes key;
  for (;;)
  {
    if (is_to_end(thd))
      return PANDO_STATUS_KILLED;
    if (PandoStatus status= rows.fetch(&batch))
      return status == PANDO_STATUS_NOT_FOUND ? PANDO_STATUS_OK : (fail(status), status);
    m_rows= Reader(batch.rows);
    m_rows_left= batch.count;
    while (m_rows_left)
    {
      if (take_entry() || !m_row_codec.decode(m_entry_key, m_entry_value, record))
        return damaged("a row cannot be read"), PANDO_STATUS_CORRUPTION;
      if (PandoStatus large= m_large.read(m_row_codec, reader, m_table, false, PandoBytes{}, nullptr, record))
        return fail(large), large;
      for (Sums_of_key &of : sums->keys)
      {
        key.clear();
        m_layouts[of.index].encode_key(&key, record, m_entry_key);
        of.of_rows.add(key.view(), m_entry_key);
      }
    }
  }
}

PandoStatus ha_pando::sum_entries_of_key(THD *thd, PandoTxn *reader, Sums_of_key *sums)
{
  Entries entries(reader, m_table, dictionary_of(sums->index));
  PandoBatch batch= {};
  Bytes row_key;
  for (;;)
  {
    if (is_to_end(thd))
      return PANDO_STATUS_KILLED;
    if (PandoStatus status= entries.fetch(&batch))
      return status == PANDO_STATUS_NOT_FOUND ? PANDO_STATUS_OK : (fail(status), status);
    m_rows= Reader(batch.rows);
    m_rows_left= batch.count;
    while (m_rows_left)
    {
      if (take_entry())
        return PANDO_STATUS_CORRUPTION;
      row_key.clear();
      /* An entry of another key may name no row: it counts, and the sums differ. */
      if (!m_layouts[sums->index].row_key_of(m_entry_key, m_entry_value, &row_key))
        row_key.clear();
      sums->there.add(m_entry_key, row_key.view());
    }
  }
}

/* What is found has been told to the client. */
PandoStatus ha_pando::check_entries(THD *thd)
{
  close_scan();
  m_keep_same= false;
  Entry_sums sums;
  for (uint i= 0; i < table_share->keys; i++)
    if (!m_layouts[i].is_rows() && !is_damaged(i) && !m_layouts[i].has_virtual())
      sums.keys.push_back(Sums_of_key{i, {}, {}});
  if (sums.keys.empty())
    return PANDO_STATUS_OK;
  MY_BITMAP *read_set= table->read_set, *write_set= table->write_set;
  table->column_bitmaps_set_no_signal(&table->tmp_set, &table->tmp_set);
  bitmap_set_all(&table->tmp_set);
  PandoTxn *reader= pando_txn_new(db);
  PandoStatus status= sum_entries_of_rows(thd, reader, &sums), found= PANDO_STATUS_OK;
  for (Sums_of_key &of : sums.keys)
  {
    if (!status)
      status= sum_entries_of_key(thd, reader, &of);
    if (!status && !(of.of_rows == of.there))
      fail(found= pando_table_give_up_key(db, m_table, dictionary_of(of.index)));
  }
  pando_txn_free(reader);
  table->column_bitmaps_set_no_signal(read_set, write_set);
  m_large.release();
  m_columns_prepared= false;
  m_rows_left= 0;
  m_positioned= false;
  return status ? status : found;
}
