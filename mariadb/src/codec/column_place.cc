#include "column_place.h"
#include "row_layout.h"

namespace pando {

static bool find_in_row(const TABLE *table, Index_layout *primary, const Field *field, PandoQueryColumn *column)
{
  const std::vector<Field *> stored= row_fields(table, primary);
  for (uint i= 0; i < stored.size(); i++)
    if (stored[i]->field_index == field->field_index)
    {
      column->position= int(i);
      return true;
    }
  return false;
}

bool find_column(const TABLE *table, Index_layout *primary, const Field *field, PandoQueryColumn *column, std::string *path)
{
  path->clear();
  column->key_path= PandoBytes{nullptr, 0};
  if (find_in_row(table, primary, field, column))
    return true;
  column->position= -1;
  column->key_offset= 0;
  bool is_fixed= true;
  for (uint i= 0; primary && i < primary->part_count(); i++)
  {
    const Key_part &part= primary->part(i);
    if (part.column().index() != field->field_index)
    {
      is_fixed= is_fixed && part.fixed_size();
      column->key_offset+= part.fixed_size();
      part.put_path(path);
      continue;
    }
    if (!part.is_lossless())
      return false;
    column->key_size= part.fixed_size();
    column->key_reversed= part.is_reverse();
    const bool as_bytes= column->form == PANDO_FORM_TEXT && (part.is_reverse() || part.is_filled());
    if (is_fixed && part.fixed_size() && !as_bytes)
    {
      path->clear();
      return true;
    }
    part.put_path_to(path);
    column->key_path= PandoBytes{reinterpret_cast<const uint8_t *>(path->data()), path->size()};
    return true;
  }
  return false;
}

} // namespace pando
