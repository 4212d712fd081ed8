/* One part of a key as bytes that memcmp orders as the server orders the column.

   nullable columns: 0 for NULL, else 1 and the value. Then
     integers (also YEAR, ENUM, SET, dates of old)   most significant byte first, sign flipped
     DECIMAL, TIME, DATETIME, TIMESTAMP, BINARY,
     UUID, INET6                                     as they are: the server compares their bytes
     FLOAT, DOUBLE                                   as the server sorts them (-0 is 0)
     BIT                                             odd bits, then the bytes
     CHAR, VARCHAR, TEXT, VARBINARY, BLOB            see text_order.h
   Of a part that sorts descending all bytes are complemented.

   What the key loses (the case of letters, trailing spaces, the sign of -0) is kept in the entry's
   value; see index_layout.h. */
#ifndef PANDO_KEY_PART_H
#define PANDO_KEY_PART_H

#include <string>
#include "column.h"
#include "text_order.h"

namespace pando {

/* What an image of a key stands for.

   Of a CHAR in a NO PAD collation the server thinks with its filling when it puts ranges together, and without it when it compares
   values, as keys do. The two differ where something that sorts below a space follows: the range of `LIKE 's%'` begins at 's' and smallest
   characters up to the length of the column, which is below 's' and its spaces, and above 's'. So of the beginning of a range such
   characters at the end do not count. The range then begins lower than it has to; the server looks at each row again. */
enum class Image : uint8_t
{
  EXACT,
  FIRST, /* of a range that has it: where the range begins in the order of keys */
  LAST   /* where it ends; of a part that sorts descending, that is where the range of values begins */
};

class Key_part
{
public:
  void init(const TABLE *table, const KEY_PART_INFO *part);

  const Column &column() const { return m_column; }
  bool is_reverse() const { return m_mask != 0; }
  /* The key holds only the beginning of the column. */
  bool is_prefix() const { return m_is_prefix; }
  /* The column's value can be had from the key alone. */
  bool is_lossless() const { return m_is_lossless; }
  /* Bytes in the key, if always the same number, else 0. */
  uint fixed_size() const { return m_fixed_size; }

  /* BINARY: zeros fill it, which its column is kept without. */
  bool is_filled() const { return m_kind == Kind::BYTES && m_column.layout() == Layout::CHAR; }

  /* The way past the part, and to its value if it is lossless (crates/column/src/key_path.rs). Requires: it is not nullable, as all parts of
     primary keys. */
  void put_path(std::string *to) const;
  void put_path_to(std::string *to) const;

  /* Most bytes in the key (see Text_order::encoded_max). */
  size_t encoded_max() const
  {
    return (m_column.nullable() ? 1 : 0) + (m_kind == Kind::STRING ? m_order.encoded_max(m_size) : m_size);
  }

  void encode(Bytes *out, const uchar *record);
  /* From the server's image of a key; says how long the part's image is. */
  uint encode_image(Bytes *out, const uchar *image, Image what);

  /* Passes the part; says whether it is NULL. False: the bytes are not those of a key. */
  bool skip(Reader *reader, bool *is_null) const;
  /* Passes the part and puts its value into the record (null bit included) if it is lossless. Bytes of
     strings go to `strings`, which the record may point into. */
  bool decode(Reader *reader, uchar *record, bool *is_null);

private:
  friend class Part_text; /* key_text.h */
  enum class Kind : uint8_t { INTEGER, BYTES, REAL, BIT, STRING };

  void init_string(const KEY_PART_INFO *part);
  void init_smallest();
  size_t without_smallest(const uchar *image, size_t size) const;
  void encode_value(Bytes *out, const uchar *value);
  void encode_string(Bytes *out, const uchar *bytes, size_t size);
  void encode_real(uchar *to, const uchar *value) const;
  void complement(Bytes *out, size_t from) const;

  Column m_column;
  Field *m_field= nullptr;
  Text_order m_order;
  Bytes m_decoded;
  uint m_size= 0;            /* bytes of the value in key images and records */
  uint m_image_size= 0;      /* with null byte and length bytes */
  uint m_fixed_size= 0;
  uint m_chars_max= 0;       /* of a string: characters that take part, 0: bytes count */
  uint m_smallest_size= 0;   /* of a CHAR without PAD: bytes of the character with which the server begins ranges */
  uchar m_smallest[MY_CS_MBMAXLEN];
  uchar m_mask= 0;
  Kind m_kind= Kind::BYTES;
  bool m_is_signed= false;
  bool m_is_prefix= false;
  bool m_is_lossless= true;
  CHARSET_INFO *m_collation= nullptr;
};

} // namespace pando

#endif
