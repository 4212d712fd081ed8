#include "old_rows.h"

namespace pando {

static bool is_counted(PandoColumnKind kind)
{
  return kind == PANDO_COLUMN_KIND_CHAR || kind == PANDO_COLUMN_KIND_VARCHAR || kind == PANDO_COLUMN_KIND_BLOB ||
         kind == PANDO_COLUMN_KIND_LARGE;
}

Old_rows::Old_rows(const PandoLayout &old, const PandoLayout &current)
{
  uint nulls= 0;
  std::vector<bool> found(current.column_count);
  for (uint i= 0; i < old.column_count; i++)
  {
    const PandoColumn &column= old.columns[i];
    Step step= {NOWHERE, NOWHERE, column.size, is_counted(column.kind),
                column.kind == PANDO_COLUMN_KIND_SIGNED, false};
    if (column.nullable)
      step.null_position= nulls++;
    for (uint j= 0; j < current.column_count; j++)
      if (current.columns[j].id == column.id)
      {
        step.target= j;
        step.grows= !step.is_counted && current.columns[j].size != column.size;
        found[j]= true;
      }
    m_steps.push_back(step);
  }
  m_null_bytes= (nulls + 7) / 8;
  for (uint j= 0; j < current.column_count; j++)
    if (!found[j])
      m_added.push_back(Added{j, current.columns[j].value});
}

void Old_rows::want(const std::vector<Stored_column> &columns)
{
  m_wanted_end= 0;
  for (uint i= 0; i < m_steps.size(); i++)
    if (m_steps[i].target != NOWHERE && columns[m_steps[i].target].wanted)
      m_wanted_end= i + 1;
}

bool Old_rows::take(const Step &step, Reader *reader, const uchar **bytes, size_t *size)
{
  uint64_t count= step.size;
  if (step.is_counted && !reader->take_number(&count))
    return false;
  *size= size_t(count);
  return reader->take(*size, bytes);
}

bool Old_rows::decode(Reader *reader, const std::vector<Stored_column> &columns, uchar *record) const
{
  const uchar *nulls, *bytes;
  size_t size;
  if (!reader->take(m_null_bytes, &nulls))
    return false;
  for (uint i= 0; i < m_wanted_end; i++)
  {
    const Step &step= m_steps[i];
    const Column *target= step.target != NOWHERE && columns[step.target].wanted ?
                          &columns[step.target].column : nullptr;
    if (step.null_position != NOWHERE && (nulls[step.null_position / 8] & (1 << (step.null_position % 8))))
    {
      if (target)
        target->set_null(record);
      continue;
    }
    if (!take(step, reader, &bytes, &size))
      return false;
    if (!target)
      continue;
    uchar extended[8];
    if (step.grows && size && size <= sizeof(extended) && target->size() <= sizeof(extended))
    {
      memset(extended, step.is_signed && (bytes[size - 1] & 0x80) ? 0xff : 0, sizeof(extended));
      memcpy(extended, bytes, size);
      bytes= extended;
      size= target->size();
    }
    if (!target->store(record, bytes, size))
      return false;
  }
  for (const Added &added : m_added)
  {
    if (!columns[added.target].wanted)
      continue;
    const Column &target= columns[added.target].column;
    if (!added.value.data)
      target.set_null(record);
    else if (!target.store(record, added.value.data, added.value.len))
      return false;
  }
  return true;
}

} // namespace pando
