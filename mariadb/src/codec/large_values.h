/* Large values: of BLOB, TEXT and JSON columns, stored apart from the rows that refer to them
   (crates/column/src/large.rs).

   A row that was decoded has references in place of them. `Large_values::read` gets those that are wanted, and has the record's
   columns point to them. They live until the next row is read, as the values in the row do.

   When the row is written again, a column that still points to what was read has not changed: the row keeps its reference,
   and the value is not written (`Large_values::keep_from`). All other long values get numbers and are written with the
   row. The engine looks again: a row can keep only what it had.

   A value may be lost: its file or its block is damaged. Who wants it gets an error. A statement that changes rows, which gets all columns,
   may do without those that it does not name: the column of the record then points to LOST_VALUE. The row can
   keep it; nobody else can write it (`has_met_lost`). */
#ifndef PANDO_LARGE_VALUES_H
#define PANDO_LARGE_VALUES_H

#include <vector>
#include "bytes.h"

namespace pando {

class Row_codec;

static const uint LARGE_REFERENCE_SIZE= 24;

/* In place of a value that is lost: told by its address. It looks like a reference, which is stored as it is nowhere. */
extern const uchar LOST_VALUE[LARGE_REFERENCE_SIZE];

/* Where values go that are not stored in their row. */
class Large_writer
{
public:
  /* What the row has in place of a value: `slot` numbers the columns that may have large ones. False: it is stored in the row
     after all. */
  virtual bool refer(uint slot, PandoBytes value, uchar *reference)= 0;

protected:
  ~Large_writer() = default;
};

/* Those of one handler: of the row that was read last, and of the one that is written. */
class Large_values final : public Large_writer
{
public:
  Large_values() = default;
  ~Large_values();
  Large_values(const Large_values &) = delete;
  Large_values &operator=(const Large_values &) = delete;

  /* Gets what the wanted columns of a record refer to, which was decoded from the row with this key (empty: it cannot be
     written). As pando_txn_large_value. `may_lack`: the table of a statement that can do without the values of columns that
     it does not name, or null. */
  PandoStatus read(const Row_codec &codec, PandoTxn *txn, const PandoTable *table, bool is_locked,
                   PandoBytes row_key, const TABLE *may_lack, uchar *record);

  /* A row is about to be encoded. Values that were read with the row of this key may stay what they are. */
  void begin(const PandoTable *table, PandoBytes row_key);
  /* The row that is encoded next is what was: nothing is written of it. */
  void only_keep(bool only) { m_only_keep= only; }
  bool refer(uint slot, PandoBytes value, uchar *reference) override;
  /* Since `begin`: a value that is lost is not to stay where it was, so that the row cannot be written. */
  bool has_met_lost() const { return m_has_met_lost; }
  /* What is to be written with the row. */
  const std::vector<PandoLargeValue> &written() const { return m_written; }

  /* Nobody needs the values any more. */
  void release();

private:
  struct Slot
  {
    PandoBuffer *buffer= nullptr;
    uchar reference[LARGE_REFERENCE_SIZE];
    bool is_read= false;
    bool is_lost= false;
  };

  std::vector<Slot> m_slots;
  Bytes m_owner; /* key of the row whose values were read */
  bool m_may_keep= false;
  bool m_only_keep= false;
  bool m_has_met_lost= false;
  const PandoTable *m_table= nullptr;
  std::vector<PandoLargeValue> m_written;
};

} // namespace pando

#endif
