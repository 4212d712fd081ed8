#include "column.h"

namespace pando {

static size_t read_length(const uchar *from, uint bytes)
{
  switch (bytes)
  {
  case 1: return *from;
  case 2: return uint2korr(from);
  case 3: return uint3korr(from);
  default: return uint4korr(from);
  }
}

static void write_length(uchar *to, uint bytes, size_t length)
{
  switch (bytes)
  {
  case 1: *to= uchar(length); break;
  case 2: int2store(to, uint16(length)); break;
  case 3: int3store(to, uint32(length)); break;
  default: int4store(to, uint32(length)); break;
  }
}

void Column::init(const TABLE *table, Field *field)
{
  m_default_record= table->s->default_values;
  m_index= field->field_index;
  m_offset= field->offset(table->record[0]);
  m_null_bit= field->null_ptr ? field->null_bit : 0;
  m_null_offset= field->null_ptr ? uint(field->null_ptr - table->record[0]) : 0;
  m_size= field->pack_length();
  m_layout= Layout::FIXED;
  switch (field->real_type())
  {
  case MYSQL_TYPE_VARCHAR:
    m_layout= Layout::VARCHAR;
    m_length_bytes= uchar(static_cast<Field_varstring *>(field)->length_bytes);
    m_size= field->field_length;
    break;
  case MYSQL_TYPE_TINY_BLOB:
  case MYSQL_TYPE_BLOB:
  case MYSQL_TYPE_MEDIUM_BLOB:
  case MYSQL_TYPE_LONG_BLOB:
  case MYSQL_TYPE_GEOMETRY:
    m_layout= Layout::BLOB;
    m_length_bytes= uchar(static_cast<Field_blob *>(field)->pack_length_no_ptr());
    break;
  case MYSQL_TYPE_BIT:
  {
    Field_bit *bit= static_cast<Field_bit *>(field);
    m_layout= Layout::BIT;
    m_size= bit->bytes_in_rec;
    m_bit_length= bit->bit_len;
    m_bit_shift= bit->bit_ofs;
    m_bit_offset= bit->bit_len ? uint(bit->bit_ptr - table->record[0]) : 0;
    break;
  }
  case MYSQL_TYPE_STRING:
  case MYSQL_TYPE_VAR_STRING:
    /* Types of plugins (UUID, INET6) also say MYSQL_TYPE_STRING; they are fixed and unfilled. */
    if (field->type_handler()->is_traditional_scalar_type())
    {
      m_layout= Layout::CHAR;
      m_collation= field->charset();
      m_size= field->field_length;
    }
    break;
  default:
    break;
  }
}

static size_t without_filling(CHARSET_INFO *collation, const uchar *bytes, size_t size)
{
  if (collation != &my_charset_bin)
    return my_ci_lengthsp(collation, reinterpret_cast<const char *>(bytes), size);
  while (size && bytes[size - 1] == 0)
    size--;
  return size;
}

void Column::value(const uchar *record, const uchar **bytes, size_t *size) const
{
  const uchar *at= record + m_offset;
  switch (m_layout)
  {
  case Layout::FIXED:
  case Layout::BIT:
    *bytes= at;
    *size= m_size;
    break;
  case Layout::CHAR:
    *bytes= at;
    *size= without_filling(m_collation, at, m_size);
    break;
  case Layout::VARCHAR:
    *bytes= at + m_length_bytes;
    *size= read_length(at, m_length_bytes);
    break;
  case Layout::BLOB:
    memcpy(bytes, at + m_length_bytes, sizeof(*bytes));
    *size= read_length(at, m_length_bytes);
    break;
  }
}

void Column::pack_other(const uchar *record, Bytes *out) const
{
  if (m_layout == Layout::BIT)
  {
    bit_image(record, out->extend(bit_image_size()));
    return;
  }
  const uchar *bytes;
  size_t size;
  value(record, &bytes, &size);
  out->append_number(size);
  out->append(bytes, size);
}

bool Column::skip(Reader *reader) const
{
  uint64_t size;
  switch (m_layout)
  {
  case Layout::FIXED: return reader->skip(m_size);
  case Layout::BIT:   return reader->skip(bit_image_size());
  default:            return reader->take_number(&size) && reader->skip(size);
  }
}

bool Column::unpack_other(Reader *reader, uchar *record) const
{
  const uchar *bytes;
  uint64_t size;
  set_not_null(record);
  if (m_layout == Layout::BIT)
  {
    if (!reader->take(bit_image_size(), &bytes))
      return false;
    store_bit_image(record, bytes);
    return true;
  }
  return reader->take_number(&size) && reader->take(size, &bytes) && store_string(record, bytes, size);
}

void Column::image(const uchar *record, Bytes *out) const
{
  if (m_layout == Layout::BIT)
  {
    bit_image(record, out->extend(bit_image_size()));
    return;
  }
  const uchar *bytes;
  size_t size;
  value(record, &bytes, &size);
  out->append(bytes, size);
}

bool Column::store(uchar *record, const uchar *bytes, size_t size) const
{
  set_not_null(record);
  switch (m_layout)
  {
  case Layout::FIXED:
    if (size != m_size)
      return false;
    memcpy(record + m_offset, bytes, size);
    return true;
  case Layout::BIT:
    if (size != bit_image_size())
      return false;
    store_bit_image(record, bytes);
    return true;
  default:
    return store_string(record, bytes, size);
  }
}

bool Column::store_string(uchar *record, const uchar *bytes, size_t size) const
{
  uchar *at= record + m_offset;
  switch (m_layout)
  {
  case Layout::CHAR:
    if (size > m_size)
      return false;
    if (size) /* what is empty may have no address */
      memcpy(at, bytes, size);
    if (m_collation == &my_charset_bin)
      memset(at + size, 0, m_size - size);
    else
      my_ci_fill(m_collation, reinterpret_cast<char *>(at + size), m_size - size, ' ');
    return true;
  case Layout::VARCHAR:
    if (size > m_size)
      return false;
    write_length(at, m_length_bytes, size);
    if (size)
      memcpy(at + m_length_bytes, bytes, size);
    return true;
  case Layout::BLOB:
    write_length(at, m_length_bytes, size);
    memcpy(at + m_length_bytes, &bytes, sizeof(bytes));
    return true;
  default:
    return false;
  }
}

void Column::bit_image(const uchar *record, uchar *image) const
{
  if (m_bit_length)
    *image++= uchar(get_rec_bits(record + m_bit_offset, m_bit_shift, m_bit_length));
  memcpy(image, record + m_offset, m_size);
}

void Column::store_bit_image(uchar *record, const uchar *image) const
{
  if (m_bit_length)
  {
    uchar *bits= record + m_bit_offset;
    set_rec_bits(*image, bits, m_bit_shift, m_bit_length);
    image++;
  }
  memcpy(record + m_offset, image, m_size);
}

/* A NULL column holds what it holds by default, so that records can be compared as a whole. */
void Column::set_null(uchar *record) const
{
  uint size= m_layout == Layout::VARCHAR || m_layout == Layout::BLOB ? m_length_bytes : m_size;
  if (m_layout == Layout::BLOB)
    memset(record + m_offset, 0, m_length_bytes + sizeof(uchar *));
  else
    memcpy(record + m_offset, m_default_record + m_offset, size);
  record[m_null_offset]|= m_null_bit;
}

bool Column::differs(const uchar *record_1, const uchar *record_2) const
{
  bool null_1= is_null(record_1), null_2= is_null(record_2);
  if (null_1 || null_2)
    return null_1 != null_2;
  if (m_layout == Layout::BIT)
  {
    uchar image_1[16], image_2[16];
    bit_image(record_1, image_1);
    bit_image(record_2, image_2);
    return memcmp(image_1, image_2, bit_image_size()) != 0;
  }
  const uchar *bytes_1, *bytes_2;
  size_t size_1, size_2;
  value(record_1, &bytes_1, &size_1);
  value(record_2, &bytes_2, &size_2);
  return size_1 != size_2 || (size_1 && bytes_1 != bytes_2 && memcmp(bytes_1, bytes_2, size_1) != 0);
}

} // namespace pando
