/* A column as it lies in the server's record, without the Field object: rows are packed and unpacked
   in records at any address, millions of times a second. */
#ifndef PANDO_COLUMN_H
#define PANDO_COLUMN_H

#include "bytes.h"

namespace pando {

enum class Layout : uint8_t
{
  FIXED,    /* m_size bytes */
  CHAR,     /* m_size bytes, filled with spaces (binary: zeros) */
  VARCHAR,  /* m_length_bytes bytes of length, then the bytes */
  BLOB,     /* m_length_bytes bytes of length, then a pointer */
  BIT       /* m_size bytes, and odd bits among the null bits */
};

class Column
{
public:
  void init(const TABLE *table, Field *field);

  uint index() const { return m_index; }
  Layout layout() const { return m_layout; }
  bool nullable() const { return m_null_bit != 0; }
  bool is_null(const uchar *record) const { return m_null_bit && (record[m_null_offset] & m_null_bit); }
  const uchar *in(const uchar *record) const { return record + m_offset; }
  uint size() const { return m_size; }

  /* The value as one byte string; CHAR without the filling. Not for BIT. Requires: not NULL. */
  void value(const uchar *record, const uchar **bytes, size_t *size) const;

  /* Appends the value to a row, or to what an index entry keeps. Requires: not NULL. */
  void pack(const uchar *record, Bytes *out) const
  {
    if (m_layout == Layout::FIXED)
      out->append(record + m_offset, m_size);
    else
      pack_other(record, out);
  }
  /* Reads what `pack` wrote into the record (null bit included). BLOBs point into the reader's memory. */
  bool unpack(Reader *reader, uchar *record) const
  {
    if (m_layout != Layout::FIXED)
      return unpack_other(reader, record);
    const uchar *bytes;
    set_not_null(record);
    if (!reader->take(m_size, &bytes))
      return false;
    copy_short(record + m_offset, bytes, m_size);
    return true;
  }
  bool skip(Reader *reader) const;

  /* Appends the value as it is in a row, without its length. Requires: not NULL. */
  void image(const uchar *record, Bytes *out) const;
  /* Puts a value that was taken from a row, without its length, into the record (null bit included).
     False: it is not one of this column. BLOBs point to the bytes. */
  bool store(uchar *record, const uchar *bytes, size_t size) const;

  void set_null(uchar *record) const;
  void set_not_null(uchar *record) const
  {
    if (m_null_bit)
      record[m_null_offset]&= uchar(~m_null_bit);
  }
  /* Stores the value of a string column. The bytes have to live as long as the record if it is a BLOB. */
  bool store_string(uchar *record, const uchar *bytes, size_t size) const;
  /* BIT as the server has it in keys: odd bits first, then the whole bytes. */
  uint bit_image_size() const { return m_size + (m_bit_length ? 1 : 0); }
  void bit_image(const uchar *record, uchar *image) const;
  void store_bit_image(uchar *record, const uchar *image) const;

  bool differs(const uchar *record_1, const uchar *record_2) const;

private:
  bool unpack_other(Reader *reader, uchar *record) const;
  void pack_other(const uchar *record, Bytes *out) const;

  const uchar *m_default_record= nullptr;
  CHARSET_INFO *m_collation= nullptr;
  uint m_index= 0;
  uint m_offset= 0;
  uint m_size= 0;
  uint m_null_offset= 0;
  uint m_bit_offset= 0;
  uchar m_null_bit= 0;
  uchar m_length_bytes= 0;
  uchar m_bit_shift= 0;
  uchar m_bit_length= 0;
  Layout m_layout= Layout::FIXED;
};

} // namespace pando

#endif
