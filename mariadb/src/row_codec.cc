#include "row_codec.h"

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

void Row_codec::init(const TABLE *table, Index_layout *primary)
{
  m_primary= primary;
  m_columns.clear();
  uint nulls= 0;
  for (Field **place= table->field; *place; place++)
  {
    Field *field= *place;
    if (!field->stored_in_db() || is_in_key(primary, field))
      continue;
    Stored stored;
    stored.column.init(table, field);
    stored.null_position= stored.column.nullable() ? nulls++ : 0;
    stored.wanted= true;
    m_columns.push_back(stored);
  }
  m_null_bytes= (nulls + 7) / 8;
  want_all();
}

void Row_codec::want(const MY_BITMAP *wanted)
{
  m_wanted_end= 0;
  for (uint i= 0; i < m_columns.size(); i++)
  {
    Stored &stored= m_columns[i];
    stored.wanted= !wanted || bitmap_is_set(wanted, stored.column.index());
    if (stored.wanted)
      m_wanted_end= i + 1;
  }
  m_key_wanted= false;
  for (uint i= 0; m_primary && i < m_primary->part_count(); i++)
    if (m_primary->part(i).is_lossless() &&
        (!wanted || bitmap_is_set(wanted, m_primary->part(i).column().index())))
      m_key_wanted= true;
}

void Row_codec::encode(Bytes *out, const uchar *record) const
{
  out->append_byte(FORMAT);
  size_t nulls= out->size();
  memset(out->extend(m_null_bytes), 0, m_null_bytes);
  for (const Stored &stored : m_columns)
  {
    if (stored.column.is_null(record))
      out->data()[nulls + stored.null_position / 8]|= uchar(1 << (stored.null_position % 8));
    else
      stored.column.pack(record, out);
  }
}

bool Row_codec::decode(PandoBytes key, PandoBytes row, uchar *record)
{
  if (m_key_wanted && !m_primary->decode(key, row, record))
    return false;
  Reader reader(row);
  const uchar *format, *nulls;
  if (!reader.take(1, &format) || *format != FORMAT || !reader.take(m_null_bytes, &nulls))
    return false;
  for (uint i= 0; i < m_wanted_end; i++)
  {
    const Stored &stored= m_columns[i];
    bool is_null= stored.column.nullable() &&
                  (nulls[stored.null_position / 8] & (1 << (stored.null_position % 8)));
    if (is_null)
    {
      if (stored.wanted)
        stored.column.set_null(record);
    }
    else if (!(stored.wanted ? stored.column.unpack(&reader, record) : stored.column.skip(&reader)))
      return false;
  }
  return true;
}

} // namespace pando
