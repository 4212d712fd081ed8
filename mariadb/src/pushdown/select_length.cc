/* LENGTH(), IS NULL and COUNT() of a BLOB or TEXT: what its row tells without the value, which may lie apart and take megabytes.

   It is a column of its own beside that of the value. So it is there where rows are looked at, and not where groups are that have the value. */
#include "column_place.h"
#include "select_translate.h"

#include <algorithm>

namespace pando {

/* The bytes of a column, or NULL if it is NULL. False: it is said otherwise. */
bool Select_translator::length_of_column(Item *item, Said *said)
{
  Item *const real= item->real_item();
  if (!m_looks_at_rows || real->type() != Item::FIELD_ITEM || (real->used_tables() & OUTER_REF_TABLE_BIT))
    return false;
  Field *const field= static_cast<Item_field *>(real)->field;
  if (!has_length_apart(field))
    return false;
  for (auto at= m_sources.rbegin(); at != m_sources.rend(); ++at)
  {
    Source &source= *at;
    if (source.table != field->table || !source.table)
      continue;
    if (source.number < 0)
      return false;
    const auto is_it= [field](const Column &column) { return column.field == field && column.is_length; };
    auto known= std::find_if(source.columns.begin(), source.columns.end(), is_it);
    if (known == source.columns.end())
    {
      source.columns.push_back(Column{m_next_slot++, field, true});
      columns++;
      tables_of_lengths.insert(source.table);
      known= std::prev(source.columns.end());
    }
    put_slot(known->slot, Value_kind{Value_kind::SIGNED, 0}, said);
    said->digits= 10; /* of the bytes of a LONGTEXT */
    return true;
  }
  return false;
}

} // namespace pando
