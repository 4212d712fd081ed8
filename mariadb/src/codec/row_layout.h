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

} // namespace pando

#endif
