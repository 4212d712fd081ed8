#include "index_layout.h"

namespace pando {

static const uint TAIL_SIZE_BYTES= 2;

/* Whether entries keep the column because its part of the key is not enough to read it from. */
bool Index_layout::keeps(const Key_part &part, bool is_stored) const
{
  return !part.is_lossless() && !part.is_prefix() && !(is_clustering() && is_stored);
}

void Index_layout::init(const TABLE *table, uint key_number, uint dictionary, Index_layout *primary)
{
  m_key_number= key_number;
  init(table, &table->key_info[key_number], dictionary, primary);
}

void Index_layout::init(const TABLE *table, const KEY *key, uint dictionary, Index_layout *primary)
{
  m_dictionary= dictionary;
  m_primary= primary;
  m_is_rows= dictionary == 0;
  /* The server checks long unique keys itself, by a hash that need not be unique. */
  m_is_unique= is_unique(*key);
  m_clustering= !m_is_rows && is_clustering(*key) ? PANDO_CLUSTERING_ROW : PANDO_CLUSTERING_NONE;
  m_parts.reset(new Key_part[key->user_defined_key_parts]);
  m_part_count= key->user_defined_key_parts;
  for (uint i= 0; i < key->user_defined_key_parts; i++)
  {
    m_parts[i].init(table, &key->key_part[i]);
    m_virtual_parts.push_back(!table->field[key->key_part[i].fieldnr - 1]->stored_in_db());
    if (m_virtual_parts[i])
      m_has_virtual= true;
    if (is_clustering() && (m_is_unique || keeps(i)))
      m_clustering= PANDO_CLUSTERING_TAILED;
    if (m_parts[i].is_prefix())
      m_has_prefix= true;
  }
  if (m_is_rows)
    return;
  if (!primary)
  {
    m_suffix_fixed_size= HIDDEN_KEY_SIZE;
    return;
  }
  bool all_fixed= true;
  for (uint i= 0; i < primary->part_count(); i++)
  {
    Key_part &wanted= primary->m_parts[i];
    Row_key_source source= {true, 0, false};
    for (uint j= 0; j < part_count() && source.in_suffix && !wanted.is_prefix(); j++)
      if (m_parts[j].column().index() == wanted.column().index() && !m_parts[j].is_prefix())
        source= {false, j, m_parts[j].is_reverse() != wanted.is_reverse()};
    m_row_key_sources.push_back(source);
    if (source.in_suffix)
    {
      m_suffix_parts.push_back(i);
      m_suffix_fixed_size+= wanted.fixed_size();
      all_fixed= all_fixed && wanted.fixed_size();
    }
    else
      m_suffix_is_row_key= false;
  }
  if (!all_fixed)
    m_suffix_fixed_size= 0;
}

PandoClustering Index_layout::clustering_of(const TABLE *table, const KEY *key)
{
  Index_layout layout;
  /* Which dictionary it is, and what the primary key is, does not matter. */
  if (is_clustering(*key))
    layout.init(table, key, 1, nullptr);
  return layout.clustering();
}

bool Index_layout::encode_key(Bytes *out, const uchar *record, PandoBytes row_key)
{
  bool alone= m_is_unique;
  for (uint i= 0; i < m_part_count; i++)
  {
    m_parts[i].encode(out, record);
    if (m_parts[i].column().is_null(record))
      alone= false;
  }
  if (!m_is_rows && !alone)
    encode_suffix(out, row_key);
  return alone;
}

/* From the row's key, not from the record, which may not have all columns. */
void Index_layout::encode_suffix(Bytes *out, PandoBytes row_key) const
{
  if (m_suffix_is_row_key)
  {
    out->append(row_key.data, row_key.len);
    return;
  }
  Reader reader(row_key);
  for (uint i= 0; i < m_row_key_sources.size(); i++)
  {
    const uchar *from= reader.at();
    bool is_null;
    if (!m_primary->m_parts[i].skip(&reader, &is_null))
      return;
    if (m_row_key_sources[i].in_suffix)
      out->append(from, size_t(reader.at() - from));
  }
}

void Index_layout::encode_value(Bytes *out, const uchar *record, PandoBytes row_key, PandoBytes row, bool alone)
{
  if (!is_clustering())
    return encode_beside_row(out, record, row_key, alone);
  out->append(row.data, row.len);
  if (m_clustering != PANDO_CLUSTERING_TAILED)
    return;
  Bytes tail;
  encode_beside_row(&tail, record, row_key, alone);
  /* It has what a key may have, at most, and the server's limit of that is far below. */
  if (tail.size() > UINT_MAX16)
    abort();
  out->append_number(tail.size());
  out->append(tail.data(), tail.size());
  int2store(out->extend(TAIL_SIZE_BYTES), uint16(tail.size()));
}

/* What an entry's value has, or has besides the row. */
void Index_layout::encode_beside_row(Bytes *out, const uchar *record, PandoBytes row_key, bool alone)
{
  if (alone)
  {
    Bytes suffix;
    encode_suffix(&suffix, row_key);
    out->append_number(suffix.size());
    out->append(suffix.data(), suffix.size());
  }
  for (uint i= 0; i < m_part_count; i++)
    if (keeps(i) && !m_parts[i].column().is_null(record))
      m_parts[i].column().pack(record, out);
  for (uint i : m_suffix_parts)
  {
    const Key_part &part= m_primary->m_parts[i];
    if (keeps(part, true))
      part.column().pack(record, out);
  }
}

/* Makes of an entry's value what it has besides the row. False: it is not a value. */
bool Index_layout::find_tail(PandoBytes *value) const
{
  if (!is_clustering())
    return true;
  if (m_clustering == PANDO_CLUSTERING_ROW)
  {
    *value= PandoBytes{value->data, 0};
    return true;
  }
  if (value->len < TAIL_SIZE_BYTES)
    return false;
  const size_t end= value->len - TAIL_SIZE_BYTES, size= uint2korr(value->data + end);
  if (size > end)
    return false;
  *value= PandoBytes{value->data + end - size, size};
  return true;
}

void Index_layout::encode_image(Bytes *out, const uchar *image, key_part_map map, Image what)
{
  uint i= 0;
  for (; i < part_count() && (map & (key_part_map(1) << i)); i++)
    image+= m_parts[i].encode_image(out, image, what);
  /* HA_WHOLE_KEY means the parts that the user has defined. */
  if (m_is_unique || map == HA_WHOLE_KEY)
    return;
  for (uint j= 0; j < m_suffix_parts.size() && (map & (key_part_map(1) << i)); i++, j++)
    image+= m_primary->m_parts[m_suffix_parts[j]].encode_image(out, image, what);
}

/* Finds the suffix and what comes after it in the value. */
bool Index_layout::split(PandoBytes key, PandoBytes value, PandoBytes *suffix, Reader *kept) const
{
  Reader parts(key), rest(value);
  bool alone= m_is_unique;
  if (!m_is_unique && m_suffix_fixed_size)
  {
    if (key.len < m_suffix_fixed_size)
      return false;
    *suffix= PandoBytes{key.data + key.len - m_suffix_fixed_size, m_suffix_fixed_size};
    *kept= rest;
    return true;
  }
  for (uint i= 0; i < m_part_count; i++)
  {
    bool is_null;
    if (!m_parts[i].skip(&parts, &is_null))
      return false;
    if (is_null)
      alone= false;
  }
  if (!alone)
    *suffix= PandoBytes{parts.at(), parts.left()};
  else
  {
    const uchar *bytes;
    uint64_t size;
    if (!rest.take_number(&size) || !rest.take(size, &bytes))
      return false;
    *suffix= PandoBytes{bytes, size};
  }
  *kept= rest;
  return true;
}

bool Index_layout::row_key_of(PandoBytes key, PandoBytes value, Bytes *out)
{
  PandoBytes suffix;
  out->clear();
  if (!find_tail(&value))
    return false;
  Reader kept(value);
  if (!split(key, value, &suffix, &kept))
    return false;
  if (m_suffix_is_row_key)
  {
    out->append(suffix.data, suffix.len);
    return true;
  }
  Reader suffix_reader(suffix);
  for (uint i= 0; i < m_row_key_sources.size(); i++)
  {
    const Row_key_source &source= m_row_key_sources[i];
    bool is_null;
    if (source.in_suffix)
    {
      const uchar *from= suffix_reader.at();
      if (!m_primary->m_parts[i].skip(&suffix_reader, &is_null))
        return false;
      out->append(from, size_t(suffix_reader.at() - from));
      continue;
    }
    Reader parts(key);
    const uchar *from= nullptr;
    for (uint j= 0; j <= source.part; j++)
    {
      from= parts.at();
      if (!m_parts[j].skip(&parts, &is_null))
        return false;
    }
    /* A column of the primary key is never NULL, and has no null byte in any key. */
    size_t at= out->size();
    out->append(from, size_t(parts.at() - from));
    if (source.flipped)
      for (uchar *byte= out->data() + at; byte < out->data() + out->size(); byte++)
        *byte= uchar(~*byte);
  }
  return true;
}

bool Index_layout::decode(PandoBytes key, PandoBytes value, uchar *record)
{
  Reader parts(key);
  bool is_null[MAX_REF_PARTS];
  for (uint i= 0; i < part_count(); i++)
    if (!m_parts[i].decode(&parts, record, &is_null[i]))
      return false;
  if (m_is_rows)
    return true;
  PandoBytes suffix;
  if (!find_tail(&value))
    return false;
  Reader kept(value);
  if (!split(key, value, &suffix, &kept))
    return false;
  for (uint i= 0; i < part_count(); i++)
    if (keeps(i) && !is_null[i] && !m_parts[i].column().unpack(&kept, record))
      return false;
  Reader suffix_reader(suffix);
  for (uint i : m_suffix_parts)
  {
    Key_part &part= m_primary->m_parts[i];
    bool null;
    if (!part.decode(&suffix_reader, record, &null))
      return false;
    if (keeps(part, true) && !part.column().unpack(&kept, record))
      return false;
  }
  return true;
}

bool Index_layout::part_ends(PandoBytes key, uint32_t *ends, uint parts) const
{
  Reader reader(key);
  bool is_null;
  for (uint i= 0; i < parts; i++)
  {
    const Key_part &part= i < m_part_count ? m_parts[i] : m_primary->part(m_suffix_parts[i - m_part_count]);
    if (!part.skip(&reader, &is_null))
      return false;
    ends[i]= uint32_t(reader.at() - key.data);
  }
  return true;
}

bool Index_layout::is_changed(const uchar *old_record, const uchar *new_record) const
{
  for (uint i= 0; i < m_part_count; i++)
    if (m_parts[i].column().differs(old_record, new_record))
      return true;
  return false;
}

} // namespace pando
