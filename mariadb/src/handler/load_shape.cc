/* Records into batches, and batches into entries: see load.h. */
#include "load.h"

namespace pando {

/* VARCHARs that may be longer than this are copied as far as they are filled. */
static const uint SHORT_VARCHAR= 32;
/* Batches that wait to be filled again (the engine counts one for each load), and the bytes of one that is kept: a load holds no more for what it
   had on its way once. */
static const size_t SPARE_MAX= 1;
static const uint64_t SPARE_BYTES_MAX= 1ULL << 20;
/* Threads that encode batches of a load at once: each has codecs of its own. */
static const uint CODECS_MAX= 64;

Load_shape::Load_shape(const TABLE *table, const PandoTable *engine_table, bool has_primary_key,
                       size_t row_key_max, uint workers)
  : m_engine_table(engine_table), m_has_primary_key(has_primary_key), m_row_key_max(row_key_max), m_keys(table->s->keys),
    m_record_size(table->s->reclength)
{
  /* And one for a statement whose load gets no thread. */
  for (uint i= 0; i <= workers && i < CODECS_MAX; i++)
    m_codecs.push_back(new_codecs(table, engine_table));
  if (!has_primary_key)
    m_unique.push_back(0);
  for (uint i= 0; i < m_keys; i++)
  {
    const Index_layout &layout= m_codecs[0]->layouts[i];
    m_unique.push_back(layout.is_unique());
    if (layout.is_unique() && !layout.is_rows())
      m_has_other_unique= true;
    /* An entry has not what the message of a duplicate would say. */
    if (layout.is_unique() && layout.has_prefix() && !layout.is_rows())
      m_is_usable= false;
  }
  find_spans(table);
}

std::unique_ptr<Load_shape::Codecs> Load_shape::new_codecs(const TABLE *table,
                                                           const PandoTable *engine_table)
{
  std::unique_ptr<Codecs> codecs(new Codecs);
  codecs->layouts.reset(new Index_layout[m_keys]);
  Index_layout *primary= m_has_primary_key ? &codecs->layouts[0] : nullptr;
  for (uint i= 0; i < m_keys; i++)
    codecs->layouts[i].init(table, i, m_has_primary_key ? i : i + 1,
                            m_has_primary_key && i ? primary : nullptr);
  if (!codecs->rows.init(table, primary, engine_table))
    m_is_usable= false;
  return codecs;
}

/* BLOBs that neither rows nor keys have may point anywhere. */
static bool is_used(const Field *field)
{
  return field->stored_in_db() || (field->flags & (PART_KEY_FLAG | PART_INDIRECT_KEY_FLAG));
}

void Load_shape::find_spans(const TABLE *table)
{
  uint end= 0; /* what lies before is in spans */
  for (Field **place= table->field; *place; place++)
  {
    Field *field= *place;
    const uint offset= uint(field->offset(table->record[0]));
    if (field->flags & BLOB_FLAG)
    {
      Blob blob;
      blob.column.init(table, field);
      blob.offset= offset;
      blob.length_bytes= static_cast<Field_blob *>(field)->pack_length_no_ptr();
      blob.used= is_used(field);
      m_blobs.push_back(blob);
    }
    if (field->real_type() != MYSQL_TYPE_VARCHAR || field->field_length <= SHORT_VARCHAR || offset < end)
      continue;
    if (offset > end)
      m_spans.push_back(Span{end, offset - end, 0});
    const uint length_bytes= static_cast<Field_varstring *>(field)->length_bytes;
    m_spans.push_back(Span{offset, field->field_length, length_bytes});
    end= offset + length_bytes + field->field_length;
  }
  if (end < m_record_size)
    m_spans.push_back(Span{end, uint(m_record_size) - end, 0});
}

std::unique_ptr<Row_batch> Load_shape::take_batch()
{
  std::lock_guard<std::mutex> guard(m_mutex);
  if (m_spare.empty())
    return std::unique_ptr<Row_batch>(new Row_batch(m_record_size));
  std::unique_ptr<Row_batch> batch= std::move(m_spare.back());
  m_spare.pop_back();
  return batch;
}

void Load_shape::give_batch(Row_batch *batch)
{
  std::unique_ptr<Row_batch> spare(batch);
  if (spare->bytes() > SPARE_BYTES_MAX)
    return;
  spare->clear();
  std::lock_guard<std::mutex> guard(m_mutex);
  if (m_spare.size() < SPARE_MAX)
    m_spare.push_back(std::move(spare));
}

void Load_shape::append(Row_batch *batch, const uchar *record) const
{
  uchar *to= batch->m_records.extend(m_record_size);
  for (const Span &span : m_spans)
  {
    uint size= span.size;
    if (span.length_bytes)
    {
      const uint length= span.length_bytes == 1 ? record[span.offset] : uint2korr(record + span.offset);
      size= span.length_bytes + MY_MIN(length, span.size);
    }
    memcpy(to + span.offset, record + span.offset, size);
  }
  for (const Blob &blob : m_blobs)
  {
    if (!blob.used || blob.column.is_null(record))
      continue;
    const uchar *bytes;
    size_t size;
    blob.column.value(record, &bytes, &size);
    const size_t place= batch->m_blobs.size();
    batch->m_blobs.append(bytes, size);
    memcpy(to + blob.offset + blob.length_bytes, &place, sizeof(place));
  }
  batch->m_rows++;
}

void Load_shape::restore_blobs(Row_batch *batch) const
{
  if (batch->m_is_whole)
    return;
  batch->m_is_whole= true;
  for (uint64_t row= 0; row < batch->m_rows && !m_blobs.empty(); row++)
  {
    uchar *record= batch->m_records.data() + row * m_record_size;
    for (const Blob &blob : m_blobs)
    {
      if (!blob.used || blob.column.is_null(record))
        continue;
      size_t place;
      uchar *at= record + blob.offset + blob.length_bytes;
      memcpy(&place, at, sizeof(place));
      const uchar *bytes= batch->m_blobs.data() + place;
      memcpy(at, &bytes, sizeof(bytes));
    }
  }
}

std::unique_ptr<Load_shape::Codecs> Load_shape::take_codecs()
{
  std::unique_lock<std::mutex> guard(m_mutex);
  /* Who has them waits for nobody. */
  m_has_codecs.wait(guard, [this] { return !m_codecs.empty(); });
  std::unique_ptr<Codecs> codecs= std::move(m_codecs.back());
  m_codecs.pop_back();
  return codecs;
}

int Load_shape::encode(Row_batch *batch, PandoEntries *entries)
{
  std::unique_ptr<Codecs> codecs= take_codecs();
  restore_blobs(batch);
  int error= 0;
  for (uint64_t row= 0; row < batch->rows() && !error; row++)
    error= encode_row(codecs.get(), batch->record(row), batch->first_hidden_key + row, entries);
  give_batch(batch);
  std::lock_guard<std::mutex> guard(m_mutex);
  m_codecs.push_back(std::move(codecs));
  m_has_codecs.notify_one();
  return error;
}

namespace {

/* Large values are entries of the dictionary behind those of the keys. */
class Load_writer final : public Large_writer
{
public:
  Load_writer(const PandoTable *table, PandoEntries *entries, uint dictionary)
    : m_table(table), m_entries(entries), m_dictionary(dictionary) {}

  bool refer(uint, PandoBytes value, uchar *reference) override
  {
    uint64_t id;
    uchar key[8];
    if (!pando_table_next_large_value(m_table, value.len, &id, reference))
      return false;
    mi_int8store(key, id);
    pando_entries_add(m_entries, m_dictionary, PandoBytes{key, sizeof(key)}, value);
    return true;
  }

private:
  const PandoTable *m_table;
  PandoEntries *m_entries;
  uint m_dictionary;
};

} // namespace

int Load_shape::encode_row(Codecs *codecs, const uchar *record, uint64_t hidden_key,
                           PandoEntries *entries) const
{
  Bytes *row_key= &codecs->row_key, *row= &codecs->row, *key= &codecs->key, *value= &codecs->value;
  row_key->clear();
  row->clear();
  if (m_has_primary_key)
  {
    codecs->layouts[0].encode_key(row_key, record, PandoBytes{});
    if (row_key->size() > m_row_key_max)
      return HA_ERR_TO_BIG_ROW;
  }
  else
  {
    uchar *bytes= row_key->extend(HIDDEN_KEY_SIZE);
    mi_int8store(bytes, hidden_key);
  }
  Load_writer large(m_engine_table, entries, m_keys + !m_has_primary_key);
  codecs->rows.encode(row, record, &large);
  pando_entries_add(entries, 0, row_key->view(), row->view());
  for (uint i= m_has_primary_key; i < m_keys; i++)
  {
    Index_layout &layout= codecs->layouts[i];
    key->clear();
    value->clear();
    const bool alone= layout.encode_key(key, record, row_key->view());
    layout.encode_value(value, record, row_key->view(), row->view(), alone);
    pando_entries_add(entries, layout.dictionary(), key->view(), value->view());
  }
  return 0;
}

int32_t Load_shape::encode_callback(void *context, void *batch, PandoEntries *entries)
{
  return (*static_cast<std::shared_ptr<Load_shape> *>(context))->encode(static_cast<Row_batch *>(batch), entries);
}

void Load_shape::free_batch_callback(void *, void *batch)
{
  delete static_cast<Row_batch *>(batch);
}

void Load_shape::free_context_callback(void *context)
{
  delete static_cast<std::shared_ptr<Load_shape> *>(context);
}

PandoEncoder Load_shape::encoder(std::shared_ptr<Load_shape> shape)
{
  PandoEncoder encoder= {};
  encoder.context= new std::shared_ptr<Load_shape>(std::move(shape));
  encoder.encode= encode_callback;
  encoder.free_batch= free_batch_callback;
  encoder.free_context= free_context_callback;
  return encoder;
}

} // namespace pando
