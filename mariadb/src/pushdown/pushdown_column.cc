/* The columns of a query that the engine answers: what their bytes mean to it, and where they are. */
#include "pushdown.h"
#include "column_place.h"
#include "sql_select.h"

namespace pando {

/* Digits that the engine computes with (crates/query/src/decimal.rs). */
static const uint PRECISION_MAX= 36;
/* Longer texts are BLOBs in temporary tables. */
static const uint TEXT_CHARS_MAX= CONVERT_IF_BIGGER_TO_BLOB;

static Column_class number_class(const Field *field, PandoQueryColumn *column)
{
  column->form= field->flags & UNSIGNED_FLAG ? PANDO_FORM_UNSIGNED : PANDO_FORM_SIGNED;
  return Column_class::NUMBER;
}

static Column_class text_class(const Field *field, PandoQueryColumn *column)
{
  column->form= PANDO_FORM_TEXT;
  column->collation= field->charset();
  return field->char_length() <= TEXT_CHARS_MAX ? Column_class::TEXT : Column_class::NONE;
}

Column_class class_of(const Field *field, PandoQueryColumn *column)
{
  /* What is stored says nothing of the text. */
  if (field->compression_method())
    return Column_class::NONE;
  switch (field->real_type())
  {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
    return number_class(field, column);
  case MYSQL_TYPE_NEWDECIMAL:
    column->form= PANDO_FORM_DECIMAL;
    column->precision= static_cast<const Field_new_decimal *>(field)->precision;
    column->scale= field->decimals();
    return column->precision <= PRECISION_MAX ? Column_class::NUMBER : Column_class::NONE;
  case MYSQL_TYPE_NEWDATE:
    column->form= PANDO_FORM_UNSIGNED;
    return Column_class::DATE;
  case MYSQL_TYPE_DATETIME2:
    column->form= PANDO_FORM_ORDERED;
    return Column_class::DATETIME;
  case MYSQL_TYPE_TIME2:
    column->form= PANDO_FORM_ORDERED;
    return Column_class::TIME;
  case MYSQL_TYPE_YEAR:
    column->form= PANDO_FORM_YEAR;
    /* YEAR(2), of old tables, has two values for one byte. */
    return field->field_length == 4 ? Column_class::NUMBER : Column_class::NONE;
  case MYSQL_TYPE_ENUM:
    column->form= PANDO_FORM_UNSIGNED;
    return Column_class::ENUM;
  case MYSQL_TYPE_SET:
    column->form= PANDO_FORM_UNSIGNED;
    return Column_class::OTHER;
  case MYSQL_TYPE_VARCHAR:
    return text_class(field, column);
  case MYSQL_TYPE_STRING:
    /* BINARY has lost the zeros at its end. */
    if (field->type_handler()->is_traditional_scalar_type() && field->charset() != &my_charset_bin)
      return text_class(field, column);
    return Column_class::NONE;
  default:
    return Column_class::NONE;
  }
}

/* The engine's number of a column; negative: it cannot be had. */
int Translator::column(Field *field, bool presence_only)
{
  const int table= table_of(field);
  if (table < 0)
    return -1;
  for (uint i= 0; i < m_columns.size(); i++)
    if (m_columns[i].table == uint(table) && m_columns[i].field == field->field_index &&
        m_columns[i].presence_only == presence_only)
      return int(i);
  /* A column is read once. */
  PandoQueryColumn column= {};
  column.table= uint32_t(table);
  bool has_form= class_of(field, &column) != Column_class::NONE;
  const bool is_length= presence_only && has_length_apart(field);
  if (!has_form && !presence_only)
    return -1;
  if (presence_only && has_form && !is_length)
    return this->column(field, false);
  if (presence_only)
    column.form= is_length ? PANDO_FORM_LENGTH : PANDO_FORM_PRESENCE;
  TABLE *of= m_tables[table];
  Index_layout *primary= (m_handler ? m_handler : static_cast<ha_pando *>(of->file))->primary();
  std::string path; /* read below */
  if (!field->stored_in_db() || !find_column(of, primary, field, &column, &path) || (is_length && column.position < 0))
    return -1;
  m_columns.push_back(Known{uint(table), field->field_index, presence_only});
  return int(pando_query_column(m_query, column));
}

int Translator::table_of(const Field *field) const
{
  for (uint i= 0; i < m_tables.size(); i++)
    if (m_tables[i] == field->table)
      return int(i);
  return -1;
}

Field *Translator::column_of(Item *item) const
{
  item= item->real_item();
  if (item->type() != Item::FIELD_ITEM)
    return nullptr;
  Field *field= static_cast<Item_field *>(item)->field;
  return field && table_of(field) >= 0 ? field : nullptr;
}

} // namespace pando
