/* Where a query finds a column: among those of the row, at a fixed place of the row's key, or on a path through the key. */
#ifndef PANDO_COLUMN_PLACE_H
#define PANDO_COLUMN_PLACE_H

#include <string>
#include "index_layout.h"
#include "pando.h"

namespace pando {

/* Sets the place of `column`, whose form is known. `primary` is the layout of the primary key, nullptr if there is none. `path` gets
   the way through the key (crates/column/src/key_path.rs), empty if there is no need of one; the column's place points to it.
   False: the engine cannot have the column. */
bool find_column(const TABLE *table, Index_layout *primary, const Field *field, PandoQueryColumn *column, std::string *path);

/* Whether a row tells how many bytes the column's value has without the value, which may lie apart. Such a column is among those of the row. */
inline bool has_length_apart(const Field *field)
{
  return (field->flags & BLOB_FLAG) && !field->compression_method() && field->stored_in_db();
}

} // namespace pando

#endif
