/* A row as it lies in dictionary 0.

     format byte (1) | null bits, one for each nullable column, low bit first | columns in order

   FIXED columns and BIT have their bytes, strings a length before them (column.h). Left out are virtual
   columns, and columns of the primary key that the key gives back. NULLs take no bytes.
   Reading decodes only the columns asked for and passes the others by. */
#ifndef PANDO_ROW_CODEC_H
#define PANDO_ROW_CODEC_H

#include <vector>
#include "index_layout.h"

namespace pando {

class Row_codec
{
public:
  void init(const TABLE *table, Index_layout *primary);

  void encode(Bytes *out, const uchar *record) const;

  /* Which columns `decode` gives from now on: those of `wanted`, or all. */
  void want(const MY_BITMAP *wanted);
  void want_all() { want(nullptr); }

  /* Fills a record from a row. BLOBs point into `row`. False: the bytes are not those of a row. */
  bool decode(PandoBytes key, PandoBytes row, uchar *record);

private:
  static const uchar FORMAT= 1;

  struct Stored
  {
    Column column;
    uint null_position;
    bool wanted;
  };

  std::vector<Stored> m_columns;
  Index_layout *m_primary= nullptr;
  uint m_null_bytes= 0;
  uint m_wanted_end= 0;     /* columns from here on are not wanted */
  bool m_key_wanted= false; /* some column is to be had from the key */
};

} // namespace pando

#endif
