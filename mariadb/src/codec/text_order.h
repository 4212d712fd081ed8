/* Strings as bytes that memcmp orders as their collation does.

   A collation gives each string its weights (strnxfrm), for some collations on several levels, of
   which the first that differs decides. Levels are encoded one after the other, each so that it ends
   by itself: nothing that follows can change an order that is already decided, and no encoding is a
   prefix of another.

   PAD SPACE compares as if both strings went on with spaces for ever. Let S be the weight of the space
   and r the weights that remain after some place:

     weight other than S     as it is
     S within the string     S, then 1 if r is below S S S ..., 3 if above
     end of the string       S, then 2                    (trailing spaces are dropped before)

   Where two strings first differ, either their weights differ, the end counting as S, or both have S
   and the byte after it says how the rests compare with spaces.

   NO PAD, and bytes: a string that is the beginning of another comes first.

     0x00        0x00 0xff
     other       as it is
     end         0x00 0x01

   CHAR columns are compared without their filling, also where the collation is NO PAD: that is how the
   server compares them in expressions, so a lookup by key finds what a scan finds. It groups by them with their
   filling, though, so such keys are not read in order to group (groups_by_filling).

   Weights are handled byte by byte where the space's weight has one byte; else in units of its size,
   which is the size of all weights of that collation. */
#ifndef PANDO_TEXT_ORDER_H
#define PANDO_TEXT_ORDER_H

#include <string>
#include "bytes.h"

namespace pando {

/* Of a CHAR in a NO PAD collation, in which one character may weigh as much as two, the server groups by values with their filling,
   of different lengths: 'ss' and a sharp s are two groups. To a key, as in expressions, they are equal, and lie there in any order. */
bool groups_by_filling(const Field *field);

/* What each ASCII character weighs, in a collation with one level of one or two bytes a weight. A text of these weighs what its
   characters weigh, one after the other. */
struct Ascii_weights
{
  static const uint COUNT= 0x80;
  static const uint NONE= UINT_MAX; /* ignored, or of several weights */
  uint of[COUNT];
};

class Text_order
{
public:
  void init(CHARSET_INFO *collation);

  void encode(Bytes *out, const uchar *text, size_t size);

  /* Most bytes that a string of so many bytes is encoded to. For collations that expand characters to
     several weights it is what has room in practice, not the theoretical maximum. */
  size_t encoded_max(size_t size) const;

  /* The bytes of the string itself are the weights, so that `decode` can give them back (without
     trailing spaces where those are dropped). */
  bool is_bytes() const { return m_bytes; }
  bool drops_spaces() const { return m_levels[0].padded || m_trim; }

  /* Whether the order of texts is that of their bytes, as they are, or as if all went on with spaces (`drops_spaces`). */
  bool orders_bytes() const { return m_bytes && m_level_count == 1 && !m_trim && m_levels[0].space_size == 1; }

  /* Skips one encoding whose bytes are XORed with `mask`; with `out`, appends the decoded bytes. */
  bool decode(Reader *reader, uchar mask, Bytes *out) const;

  /* The way past one encoding whose bytes are XORed with `mask`, or to the text that it is of, of which `is_bytes` is true: see
     crates/column/src/key_path.rs. */
  void put_path(std::string *to, uchar mask, bool takes) const;

private:
  static const uint LEVELS_MAX= 6;
  static const uint SPACE_MAX= 8;

  struct Level
  {
    uint flag= 0;          /* for strnxfrm, 0: all levels in one */
    bool padded= false;    /* PAD SPACE */
    uint space_size= 1;
    uchar space[SPACE_MAX]= {' '};
  };

  void add_level(uint flag, bool padded);
  size_t weights_by_code(const uchar *text, size_t size, uchar *to) const;
  size_t weights(const Level &level, const uchar *text, size_t size);
  bool encode_ascii(Bytes *out, const uchar *text, size_t size) const;
  static void encode_padded(Bytes *out, const Level &level, const uchar *weights, size_t size);
  static void encode_ended(Bytes *out, const uchar *weights, size_t size);
  static bool decode_padded(Reader *reader, uchar mask, const Level &level, Bytes *out);
  static bool decode_ended(Reader *reader, uchar mask, Bytes *out);

  CHARSET_INFO *m_collation= nullptr;
  bool m_bytes= false;
  bool m_trim= false;
  bool m_is_big5= false;
  bool m_ends_at_zero= false;
  const Ascii_weights *m_ascii= nullptr; /* null: its texts are asked of the collation */
  uint m_level_count= 0;
  Level m_levels[LEVELS_MAX];
  Bytes m_weights;
};

} // namespace pando

#endif
