#include "row_codec.h"
#include "old_rows.h"
#include "row_layout.h"

#include <algorithm>

namespace pando {

Row_codec::Row_codec()= default;
Row_codec::~Row_codec()= default;

bool Row_codec::init(const TABLE *table, Index_layout *primary, const PandoTable *engine_table)
{
  m_primary= primary;
  m_engine_table= engine_table;
  m_columns.clear();
  m_old.clear();
  uint nulls= 0;
  for (Field *field : row_fields(table, primary))
  {
    Stored_column stored;
    stored.column.init(table, field);
    stored.null_position= stored.column.nullable() ? nulls++ : 0;
    stored.wanted= true;
    stored.large_slot= NOT_LARGE;
    m_columns.push_back(stored);
  }
  m_null_bytes= (nulls + 7) / 8;
  want_all();
  PandoLayout layout;
  if (pando_table_layout(engine_table, 0, &layout))
  {
    sql_print_error("PANDO: table %s: its columns are not known to the engine", table->s->path.str);
    return false;
  }
  m_version= layout.version;
  if (!agrees(table, layout, primary))
    return false;
  m_large.clear();
  for (uint i= 0; i < layout.column_count; i++)
    if (layout.columns[i].kind == PANDO_COLUMN_KIND_LARGE)
    {
      m_columns[i].large_slot= uint(m_large.size());
      m_large.push_back(i);
    }
  return true;
}

/* In a table that was made without a place for them, or of a column that was of another type, large values are in the rows. */
static bool is_kind(PandoColumnKind expected, PandoColumnKind kind)
{
  return expected == kind || (expected == PANDO_COLUMN_KIND_LARGE && kind == PANDO_COLUMN_KIND_BLOB);
}

/* Whatever happens to the server's definition of a table, a row is never read as what it is not. */
bool Row_codec::agrees(const TABLE *table, const PandoLayout &layout, Index_layout *primary) const
{
  std::vector<PandoNewColumn> expected= describe_rows(table, primary);
  if (expected.size() != layout.column_count)
  {
    sql_print_error("PANDO: table %s: its definition has %zu stored columns, its rows have %u",
                    table->s->path.str, expected.size(), layout.column_count);
    return false;
  }
  for (uint i= 0; i < layout.column_count; i++)
  {
    const PandoColumn &column= layout.columns[i];
    if (is_kind(expected[i].kind, column.kind) && expected[i].size == column.size &&
        expected[i].nullable == column.nullable)
      continue;
    sql_print_error("PANDO: table %s: column %.*s: its definition has kind %u, size %u, nullable %u, "
                    "its rows have kind %u, size %u, nullable %u", table->s->path.str,
                    int(expected[i].name.len), reinterpret_cast<const char *>(expected[i].name.data),
                    uint(expected[i].kind), expected[i].size, uint(expected[i].nullable), uint(column.kind),
                    column.size, uint(column.nullable));
    return false;
  }
  return true;
}

void Row_codec::want(const MY_BITMAP *wanted)
{
  m_wanted_end= 0;
  for (uint i= 0; i < m_columns.size(); i++)
  {
    Stored_column &stored= m_columns[i];
    stored.wanted= !wanted || bitmap_is_set(wanted, stored.column.index());
    if (stored.wanted)
      m_wanted_end= i + 1;
  }
  plan_decoding();
  m_key_wanted= false;
  for (uint i= 0; m_primary && i < m_primary->part_count(); i++)
    if (m_primary->part(i).is_lossless() &&
        (!wanted || bitmap_is_set(wanted, m_primary->part(i).column().index())))
      m_key_wanted= true;
  for (std::unique_ptr<Old_rows> &old : m_old)
    if (old)
      old->want(m_columns);
}

std::vector<uint32_t> Row_codec::wanted_positions() const
{
  std::vector<uint32_t> positions;
  for (uint i= 0; i < m_columns.size(); i++)
    if (m_columns[i].wanted)
      positions.push_back(i);
  return positions;
}

/* Columns of a fixed size that are not wanted are passed by together. */
void Row_codec::plan_decoding()
{
  m_steps.clear();
  uint skip= 0;
  for (uint i= 0; i < m_wanted_end; i++)
  {
    const Stored_column &stored= m_columns[i];
    if (!stored.wanted && stored.column.layout() == Layout::FIXED)
    {
      skip+= stored.column.size();
      continue;
    }
    m_steps.push_back(Decoding_step{skip, stored.wanted, &stored.column});
    skip= 0;
  }
}

void Row_codec::encode(Bytes *out, const uchar *record, Large_writer *large) const
{
  out->append_number(m_version);
  size_t nulls= out->size();
  memset(out->extend(m_null_bytes), 0, m_null_bytes);
  for (const Stored_column &stored : m_columns)
  {
    if (stored.column.is_null(record))
      out->data()[nulls + stored.null_position / 8]|= uchar(1 << (stored.null_position % 8));
    else if (stored.large_slot == NOT_LARGE || !large || !refer(stored, record, large, out))
      stored.column.pack(record, out);
  }
}

bool Row_codec::refer(const Stored_column &stored, const uchar *record, Large_writer *large, Bytes *out)
{
  PandoBytes value;
  uchar reference[LARGE_REFERENCE_SIZE];
  stored.column.value(record, &value.data, &value.len);
  if (value.len < LARGE_REFERENCE_SIZE || !pando_large_is_apart(value) ||
      !large->refer(stored.large_slot, value, reference))
    return false;
  out->append_number(sizeof(reference));
  out->append(reference, sizeof(reference));
  return true;
}

bool Row_codec::differ(const uchar *record_1, const uchar *record_2) const
{
  return std::any_of(m_columns.begin(), m_columns.end(),
                     [=](const Stored_column &stored) { return stored.column.differs(record_1, record_2); });
}

bool Row_codec::decode(PandoBytes key, PandoBytes row, uchar *record)
{
  return (!m_key_wanted || m_primary->decode(key, row, record)) && decode_row(row, record);
}

/* What follows the row in a value is not looked at. */
bool Row_codec::decode_entry(Index_layout *layout, PandoBytes key, PandoBytes value, uchar *record)
{
  if ((m_key_wanted || layout->has_virtual()) && !layout->decode(key, value, record))
    return false;
  return decode_row(value, record);
}

bool Row_codec::decode_row(PandoBytes row, uchar *record)
{
  Reader reader(row);
  uint64_t version;
  const uchar *nulls;
  if (!reader.take_number(&version))
    return false;
  if (unlikely(version != m_version))
    return decode_old(version, &reader, record);
  if (!reader.take(m_null_bytes, &nulls))
    return false;
  for (uint i= 0; i < m_null_bytes; i++)
    if (nulls[i])
      return decode_with_nulls(nulls, &reader, record);
  for (const Decoding_step &step : m_steps)
    if (!reader.skip(step.skip) ||
        !(likely(step.wanted) ? step.column->unpack(&reader, record) : step.column->skip(&reader)))
      return false;
  return true;
}

bool Row_codec::decode_with_nulls(const uchar *nulls, Reader *reader, uchar *record) const
{
  for (uint i= 0; i < m_wanted_end; i++)
  {
    const Stored_column &stored= m_columns[i];
    bool is_null= stored.column.nullable() &&
                  (nulls[stored.null_position / 8] & (1 << (stored.null_position % 8)));
    if (is_null)
    {
      if (stored.wanted)
        stored.column.set_null(record);
    }
    else if (!(stored.wanted ? stored.column.unpack(reader, record) : stored.column.skip(reader)))
      return false;
  }
  return true;
}

bool Row_codec::decode_old(uint64_t version, Reader *reader, uchar *record)
{
  PandoLayout current, old;
  if (version == 0 || version > m_version)
  {
    sql_print_error("PANDO: a row of layout %llu in a table whose newest is %u", ulonglong(version), m_version);
    return false;
  }
  if (m_old.size() <= version)
    m_old.resize(size_t(version) + 1);
  std::unique_ptr<Old_rows> &rows= m_old[size_t(version)];
  if (!rows)
  {
    if (pando_table_layout(m_engine_table, 0, &current) ||
        pando_table_layout(m_engine_table, uint32_t(version), &old))
      return false;
    rows.reset(new Old_rows(old, current));
    rows->want(m_columns);
  }
  return rows->decode(reader, m_columns, record);
}

} // namespace pando
