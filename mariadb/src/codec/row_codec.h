/* A row as it lies in dictionary 0.

     layout's version | null bits, one for each nullable column, low bit first | columns in order

   The version is a number as in bytes.h: one byte below 128. FIXED columns and BIT have their bytes,
   strings a length before them (column.h). Left out are virtual columns, and columns of the primary key
   that the key gives back. NULLs take no bytes. Reading decodes only the columns asked for and passes the
   others by.

   Rows are written in the table's current layout and stay in the one that they were written in. How a row
   of an older layout becomes a record is worked out once, when the first one is met (old_rows.h). */
#ifndef PANDO_ROW_CODEC_H
#define PANDO_ROW_CODEC_H

#include <memory>
#include <vector>
#include "index_layout.h"
#include "large_values.h"

namespace pando {

class Old_rows;

struct Stored_column
{
  Column column;
  uint null_position;
  bool wanted;
  uint large_slot; /* NOT_LARGE: its values are in the row */
};

static const uint NOT_LARGE= UINT_MAX;

/* What decoding does next: passes bytes by, then takes a column, or passes one by whose size the row tells. */
struct Decoding_step
{
  uint skip;
  bool wanted;
  const Column *column; /* none at the end */
};

class Row_codec
{
public:
  Row_codec();
  ~Row_codec();

  /* False: the engine's table has other columns than the server's definition says (which is logged). */
  bool init(const TABLE *table, Index_layout *primary, const PandoTable *engine_table);

  /* Values that are to be stored apart are given to `large`; without it they are put into the row, which must not be stored then. */
  void encode(Bytes *out, const uchar *record, Large_writer *large) const;
  /* Whether they would be encoded in different bytes. */
  bool differ(const uchar *record_1, const uchar *record_2) const;

  /* Which columns `decode` gives from now on: those of `wanted`, or all. */
  void want(const MY_BITMAP *wanted);
  void want_all() { want(nullptr); }
  /* Where those are in the layout. */
  std::vector<uint32_t> wanted_positions() const;

  /* Columns whose values a row may refer to, by position; those of a decoded record are for Large_values::read. */
  const std::vector<uint> &large_columns() const { return m_large; }
  const Stored_column &column(uint position) const { return m_columns[position]; }

  /* Fills a record from a row. BLOBs point into `row`. False: the bytes are not those of a row. */
  bool decode(PandoBytes key, PandoBytes row, uchar *record);
  /* The same from an entry of a clustering key. */
  bool decode_entry(Index_layout *layout, PandoBytes key, PandoBytes value, uchar *record);

private:
  static bool refer(const Stored_column &stored, const uchar *record, Large_writer *large, Bytes *out);
  bool decode_row(PandoBytes row, uchar *record);
  bool agrees(const TABLE *table, const PandoLayout &layout, Index_layout *primary) const;
  void plan_decoding();
  bool decode_with_nulls(const uchar *nulls, Reader *reader, uchar *record) const;
  bool decode_old(uint64_t version, Reader *reader, uchar *record);

  std::vector<Stored_column> m_columns;
  std::vector<uint> m_large;
  std::vector<Decoding_step> m_steps; /* of a row without NULLs */
  std::vector<std::unique_ptr<Old_rows>> m_old; /* by version; those that were met */
  const PandoTable *m_engine_table= nullptr;
  Index_layout *m_primary= nullptr;
  uint32_t m_version= 0;
  uint m_null_bytes= 0;
  uint m_wanted_end= 0;     /* columns from here on are not wanted */
  bool m_key_wanted= false; /* some column is to be had from the key */
};

} // namespace pando

#endif
