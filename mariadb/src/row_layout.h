/* The columns that rows consist of, as the engine's layouts describe them (crates/column/src/layout.rs):
   those that are stored and that the primary key does not give back, in order. */
#ifndef PANDO_ROW_LAYOUT_H
#define PANDO_ROW_LAYOUT_H

#include <vector>
#include "index_layout.h"

namespace pando {

/* The columns of a row. `primary`: the layout of the primary key, nullptr where there is none. */
std::vector<Field *> row_fields(const TABLE *table, Index_layout *primary);

/* What the bytes of a column are; it is said to be new, with NULL. */
PandoNewColumn describe(const Field *field);

/* Descriptions of all columns of a row. */
std::vector<PandoNewColumn> describe_rows(const TABLE *table, Index_layout *primary);

/* The server's id of a definition, as text. */
class Definition_id
{
public:
  explicit Definition_id(const LEX_CUSTRING &version);
  PandoBytes view() const { return PandoBytes{reinterpret_cast<const uint8_t *>(m_text), m_size}; }

private:
  char m_text[2 * MY_UUID_SIZE + 1];
  size_t m_size;
};

} // namespace pando

#endif
