#include "key_part.h"

namespace pando {

void Key_part::init(const TABLE *table, const KEY_PART_INFO *part)
{
  Field *field= table->field[part->fieldnr - 1];
  m_field= field;
  m_column.init(table, field);
  m_size= part->length;
  m_image_size= part->store_length;
  m_mask= part->key_part_flag & HA_REVERSE_SORT ? 0xff : 0;
  m_kind= Kind::BYTES;
  switch (field->key_type())
  {
  case HA_KEYTYPE_SHORT_INT:
  case HA_KEYTYPE_LONG_INT:
  case HA_KEYTYPE_LONGLONG:
  case HA_KEYTYPE_INT24:
  case HA_KEYTYPE_INT8:
    m_is_signed= true;
    /* fall through */
  case HA_KEYTYPE_USHORT_INT:
  case HA_KEYTYPE_ULONG_INT:
  case HA_KEYTYPE_ULONGLONG:
  case HA_KEYTYPE_UINT24:
    m_kind= Kind::INTEGER;
    break;
  case HA_KEYTYPE_FLOAT:
  case HA_KEYTYPE_DOUBLE:
    m_kind= Kind::REAL;
    m_is_lossless= false;
    break;
  case HA_KEYTYPE_BIT:
    m_kind= Kind::BIT;
    break;
  case HA_KEYTYPE_TEXT:
  case HA_KEYTYPE_VARTEXT1:
  case HA_KEYTYPE_VARTEXT2:
  case HA_KEYTYPE_VARBINARY1:
  case HA_KEYTYPE_VARBINARY2:
    init_string(part);
    break;
  case HA_KEYTYPE_BINARY:
    /* BINARY(n): the part may be a prefix. */
    m_is_prefix= m_size < m_column.size();
    break;
  default:
    /* Numbers of very old tables, which cannot be created any more. */
    break;
  }
  if (m_kind != Kind::STRING && !m_column.nullable())
    m_fixed_size= m_size;
  if (m_is_prefix)
    m_is_lossless= false;
}

void Key_part::init_string(const KEY_PART_INFO *part)
{
  m_kind= Kind::STRING;
  m_collation= m_field->charset();
  bool is_char= m_column.layout() == Layout::CHAR;
  m_order.init(m_collation);
  if (m_column.layout() == Layout::BLOB)
    m_is_prefix= true;
  else
    m_is_prefix= part->length < m_column.size();
  if (m_collation->mbmaxlen > 1)
    m_chars_max= part->length / m_collation->mbmaxlen;
  /* The filling of a CHAR comes back by itself; how many spaces ended a VARCHAR does not. */
  m_is_lossless= m_order.is_bytes() && (is_char || !m_order.drops_spaces());
  if (is_char && (m_collation->state & MY_CS_NOPAD))
    init_smallest();
}

void Key_part::init_smallest()
{
  int size= my_ci_wc_mb(m_collation, m_collation->min_sort_char, m_smallest, m_smallest + sizeof(m_smallest));
  m_smallest_size= size > 0 ? uint(size) : m_collation->mbminlen;
  if (size <= 0)
    memset(m_smallest, 0, m_smallest_size);
}

/* Some collations fill with zeros whatever their smallest character is. Where the image does not end with either, but with spaces,
   it is that of a value. */
size_t Key_part::without_smallest(const uchar *image, size_t size) const
{
  static const uchar ZEROS[MY_CS_MBMAXLEN]= {};
  const uint step= m_smallest_size;
  while (size >= step && (!memcmp(image + size - step, m_smallest, step) || !memcmp(image + size - step, ZEROS, step)))
    size-= step;
  return size;
}

void Key_part::complement(Bytes *out, size_t from) const
{
  if (m_mask)
    for (uchar *at= out->data() + from, *end= out->data() + out->size(); at < end; at++)
      *at= uchar(~*at);
}

/* Tags of key_path.rs. */
enum : char { PATH_PASS_BYTES= 0, PATH_TAKE_BYTES= 3, PATH_TAKE_FILLED= 4 };

static void put_size(std::string *to, uint size)
{
  for (uint i= 0; i < 4; i++)
    to->push_back(char(size >> (8 * i)));
}

void Key_part::put_path(std::string *to) const
{
  DBUG_ASSERT(!m_column.nullable());
  if (m_kind == Kind::STRING)
    return m_order.put_path(to, m_mask, false);
  to->push_back(PATH_PASS_BYTES);
  put_size(to, m_size);
}

void Key_part::put_path_to(std::string *to) const
{
  DBUG_ASSERT(!m_column.nullable() && m_is_lossless);
  if (m_kind == Kind::STRING)
    return m_order.put_path(to, m_mask, true);
  to->push_back(is_filled() ? PATH_TAKE_FILLED : PATH_TAKE_BYTES);
  to->push_back(char(m_mask));
  put_size(to, m_size);
}

void Key_part::encode(Bytes *out, const uchar *record)
{
  const size_t from= out->size();
  if (m_column.nullable())
  {
    bool is_null= m_column.is_null(record);
    out->append_byte(is_null ? 0 : 1);
    if (is_null)
    {
      complement(out, from);
      return;
    }
  }
  if (m_kind == Kind::STRING)
  {
    const uchar *bytes;
    size_t size;
    m_column.value(record, &bytes, &size);
    encode_string(out, bytes, size);
  }
  else if (m_kind == Kind::BIT)
    m_column.bit_image(record, out->extend(m_column.bit_image_size()));
  else
    encode_value(out, m_column.in(record));
  complement(out, from);
}

uint Key_part::encode_image(Bytes *out, const uchar *image, Image what)
{
  const size_t from= out->size();
  if (m_column.nullable())
  {
    bool is_null= *image++ != 0;
    out->append_byte(is_null ? 0 : 1);
    if (is_null)
    {
      complement(out, from);
      return m_image_size;
    }
  }
  if (m_kind != Kind::STRING)
    encode_value(out, image);
  else if (m_column.layout() == Layout::CHAR)
  {
    const bool is_least= what == (is_reverse() ? Image::LAST : Image::FIRST);
    const size_t size= is_least && m_smallest_size ? without_smallest(image, m_size) : m_size;
    encode_string(out, image, my_ci_lengthsp(m_collation, reinterpret_cast<const char *>(image), size));
  }
  else
    encode_string(out, image + HA_KEY_BLOB_LENGTH, uint2korr(image));
  complement(out, from);
  return m_image_size;
}

void Key_part::encode_string(Bytes *out, const uchar *bytes, size_t size)
{
  if (m_chars_max)
  {
    const char *begin= reinterpret_cast<const char *>(bytes);
    size_t part= my_ci_charpos(m_collation, begin, begin + size, m_chars_max);
    size= MY_MIN(size, part);
  }
  else
    size= MY_MIN(size, size_t(m_size));
  /* The beginning of a CHAR is a CHAR again. */
  if (m_column.layout() == Layout::CHAR)
    size= my_ci_lengthsp(m_collation, reinterpret_cast<const char *>(bytes), size);
  m_order.encode(out, bytes, size);
}

void Key_part::encode_value(Bytes *out, const uchar *value)
{
  uchar *to= out->extend(m_size);
  switch (m_kind)
  {
  case Kind::INTEGER:
    for (uint i= 0; i < m_size; i++)
      to[i]= value[m_size - 1 - i];
    if (m_is_signed)
      to[0]^= 0x80;
    break;
  case Kind::REAL:
    encode_real(to, value);
    break;
  default:
    memcpy(to, value, m_size);
    break;
  }
}

/* Sign and magnitude to one order: negative numbers complemented, positive ones above them. */
void Key_part::encode_real(uchar *to, const uchar *value) const
{
  float as_float= 0;
  double as_double= 0;
  if (m_size == sizeof(float))
    memcpy(&as_float, value, sizeof(float));
  else
    memcpy(&as_double, value, sizeof(double));
  if (as_float == 0 && as_double == 0)
  {
    memset(to, 0, m_size);
    to[0]= 0x80;
    return;
  }
  for (uint i= 0; i < m_size; i++)
    to[i]= value[m_size - 1 - i];
  if (to[0] & 0x80)
    for (uint i= 0; i < m_size; i++)
      to[i]= uchar(~to[i]);
  else
    to[0]|= 0x80;
}

bool Key_part::skip(Reader *reader, bool *is_null) const
{
  *is_null= false;
  if (m_column.nullable())
  {
    const uchar *byte;
    if (!reader->take(1, &byte))
      return false;
    *is_null= uchar(*byte ^ m_mask) == 0;
    if (*is_null)
      return true;
  }
  if (m_kind == Kind::STRING)
    return m_order.decode(reader, m_mask, nullptr);
  return reader->skip(m_size);
}

bool Key_part::decode(Reader *reader, uchar *record, bool *is_null)
{
  if (!m_is_lossless || m_kind == Kind::REAL)
  {
    if (!skip(reader, is_null))
      return false;
    if (*is_null)
      m_column.set_null(record);
    return true;
  }
  *is_null= false;
  const uchar *bytes;
  if (m_column.nullable())
  {
    if (!reader->take(1, &bytes))
      return false;
    *is_null= uchar(*bytes ^ m_mask) == 0;
    if (*is_null)
    {
      m_column.set_null(record);
      return true;
    }
  }
  m_column.set_not_null(record);
  if (m_kind == Kind::STRING)
  {
    m_decoded.clear();
    return m_order.decode(reader, m_mask, &m_decoded) &&
           m_column.store_string(record, m_decoded.data(), m_decoded.size());
  }
  if (!reader->take(m_size, &bytes))
    return false;
  uchar value[MAX_FIELD_WIDTH];
  DBUG_ASSERT(m_size <= sizeof(value));
  for (uint i= 0; i < m_size; i++)
    value[i]= uchar(bytes[m_kind == Kind::INTEGER ? m_size - 1 - i : i] ^ m_mask);
  if (m_kind == Kind::INTEGER && m_is_signed)
    value[m_size - 1]^= 0x80;
  if (m_kind == Kind::BIT)
    m_column.store_bit_image(record, value);
  else
    memcpy(const_cast<uchar *>(m_column.in(record)), value, m_size);
  return true;
}

} // namespace pando
