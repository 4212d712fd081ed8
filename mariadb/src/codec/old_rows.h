/* Rows of one older layout of a table. By the ids of the columns:

     in both layouts                  its value; integers, ENUM and SET are extended to the size of today
     only in the old one              dropped: passed over
     only in the current one          added since: what it was added with

   Types only grow (crates/column/src/layout.rs), so strings need nothing: where the column of today has
   room for all, it has room for these. */
#ifndef PANDO_OLD_ROWS_H
#define PANDO_OLD_ROWS_H

#include <vector>
#include "row_codec.h"

namespace pando {

class Old_rows
{
public:
  Old_rows(const PandoLayout &old, const PandoLayout &current);

  /* Looks at which columns are wanted. */
  void want(const std::vector<Stored_column> &columns);

  /* Fills a record from a row that has been read up to its null bits. False: it is not a row. */
  bool decode(Reader *reader, const std::vector<Stored_column> &columns, uchar *record) const;

private:
  static const uint NOWHERE= UINT_MAX;

  /* One column of the old layout. */
  struct Step
  {
    uint target;            /* of the current columns */
    uint null_position;     /* NOWHERE: not nullable */
    uint size;              /* of values that are not counted */
    bool is_counted;
    bool is_signed;
    bool grows;             /* is to be extended */
  };

  /* One column that rows of the old layout do not have. */
  struct Added
  {
    uint target;
    PandoBytes value;       /* no pointer: NULL */
  };

  static bool take(const Step &step, Reader *reader, const uchar **bytes, size_t *size);

  std::vector<Step> m_steps;
  std::vector<Added> m_added;
  uint m_null_bytes= 0;
  uint m_wanted_end= 0;     /* steps from here on are of no use */
};

} // namespace pando

#endif
