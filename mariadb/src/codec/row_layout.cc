#include "row_layout.h"

namespace pando {

static bool is_in_key(Index_layout *primary, const Field *field)
{
  if (!primary)
    return false;
  for (uint i= 0; i < primary->part_count(); i++)
    if (primary->part(i).column().index() == field->field_index && primary->part(i).is_lossless())
      return true;
  return false;
}

std::vector<Field *> row_fields(const TABLE *table, Index_layout *primary)
{
  std::vector<Field *> fields;
  for (Field **place= table->field; *place; place++)
    if ((*place)->stored_in_db() && !is_in_key(primary, *place))
      fields.push_back(*place);
  return fields;
}

static PandoColumnKind integer_kind(const Field *field)
{
  return field->flags & UNSIGNED_FLAG ? PANDO_COLUMN_KIND_UNSIGNED : PANDO_COLUMN_KIND_SIGNED;
}

PandoNewColumn describe(const Field *field)
{
  PandoNewColumn column= {};
  column.name= PandoBytes{reinterpret_cast<const uint8_t *>(field->field_name.str), field->field_name.length};
  column.kind= PANDO_COLUMN_KIND_BYTES;
  column.size= field->pack_length();
  column.nullable= field->real_maybe_null();
  column.binary= field->charset() == &my_charset_bin;
  column.source= -1;
  switch (field->real_type())
  {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
    column.kind= integer_kind(field);
    break;
  case MYSQL_TYPE_YEAR:
  case MYSQL_TYPE_DATE:
  case MYSQL_TYPE_NEWDATE:
    column.kind= PANDO_COLUMN_KIND_UNSIGNED;
    break;
  case MYSQL_TYPE_FLOAT:
  case MYSQL_TYPE_DOUBLE:
    column.kind= PANDO_COLUMN_KIND_FLOAT;
    break;
  case MYSQL_TYPE_ENUM:
    column.kind= PANDO_COLUMN_KIND_ENUM;
    break;
  case MYSQL_TYPE_SET:
    column.kind= PANDO_COLUMN_KIND_SET;
    break;
  case MYSQL_TYPE_BIT:
  {
    const Field_bit *bit= static_cast<const Field_bit *>(field);
    column.kind= PANDO_COLUMN_KIND_BIT;
    column.size= bit->bytes_in_rec + (bit->bit_len ? 1 : 0);
    break;
  }
  case MYSQL_TYPE_VARCHAR:
    column.kind= PANDO_COLUMN_KIND_VARCHAR;
    column.size= field->field_length;
    break;
  case MYSQL_TYPE_TINY_BLOB:
  case MYSQL_TYPE_BLOB:
  case MYSQL_TYPE_MEDIUM_BLOB:
  case MYSQL_TYPE_LONG_BLOB:
  case MYSQL_TYPE_GEOMETRY:
    column.size= static_cast<const Field_blob *>(field)->pack_length_no_ptr();
    column.kind= column.size > 1 ? PANDO_COLUMN_KIND_LARGE : PANDO_COLUMN_KIND_BLOB;
    break;
  case MYSQL_TYPE_STRING:
  case MYSQL_TYPE_VAR_STRING:
    if (field->type_handler()->is_traditional_scalar_type())
    {
      column.kind= PANDO_COLUMN_KIND_CHAR;
      column.size= field->field_length;
    }
    break;
  default:
    break;
  }
  return column;
}

std::vector<PandoNewColumn> describe_rows(const TABLE *table, Index_layout *primary)
{
  std::vector<PandoNewColumn> columns;
  for (const Field *field : row_fields(table, primary))
    columns.push_back(describe(field));
  return columns;
}

} // namespace pando
