#include "text_order.h"

#include <map>
#include <memory>
#include <mutex>
#include <string.h>

namespace pando {

/* Weights that one byte of a string can give at most, in bytes: the longest expansions known are 18
   weights of two bytes for a character of three bytes; the server's own limit is 24 weights. */
static const size_t WEIGHT_BYTES_PER_BYTE= 24;

static const uint NO_LIMIT= 0xfffffff;

/* Collations whose weights are the bytes of the string. In UTF-8 the order of bytes is the order of
   code points, which is what the binary collations of Unicode compare. */
static bool compares_bytes(CHARSET_INFO *collation)
{
  if (collation == &my_charset_bin)
    return true;
  if (!(collation->state & MY_CS_BINSORT) || collation->mbminlen != 1)
    return false;
  return collation->mbmaxlen == 1 || (collation->state & MY_CS_UNICODE);
}

bool groups_by_filling(const Field *field)
{
  if (field->real_type() != MYSQL_TYPE_STRING)
    return false;
  const uint state= field->charset()->state;
  return (state & MY_CS_NOPAD) && (state & MY_CS_NON1TO1);
}

/* The weight of a text of a few ASCII characters, of at most so many bytes. */
static size_t weights_of(CHARSET_INFO *collation, const char *text, size_t size, uchar *to, size_t room)
{
  return collation->coll->strnxfrm(collation, to, room, NO_LIMIT, reinterpret_cast<const uchar *>(text), size, 0);
}

/* Whether a text weighs what its characters weigh. */
static bool is_sum(CHARSET_INFO *collation, const Ascii_weights &weights, uint unit, const char *text, size_t size)
{
  uchar whole[64], parts[64];
  const size_t all= weights_of(collation, text, size, whole, sizeof(whole));
  for (size_t i= 0; i < size; i++)
  {
    const uint weight= weights.of[uchar(text[i])];
    if (weight == Ascii_weights::NONE)
      return true; /* such texts are asked of the collation */
    if (unit == 2)
      parts[2 * i]= uchar(weight >> 8);
    parts[unit * (i + 1) - 1]= uchar(weight);
  }
  return all == unit * size && !memcmp(whole, parts, all);
}

/* Contractions ("ch" is one letter to Czechs, "dzs" to Hungarians): each begins with two characters, or three letters, that are one. */
static bool has_contractions(CHARSET_INFO *collation, const Ascii_weights &weights, uint unit)
{
  char text[3];
  for (uint pair= 0; pair < Ascii_weights::COUNT * Ascii_weights::COUNT; pair++)
  {
    text[0]= char(pair / Ascii_weights::COUNT);
    text[1]= char(pair % Ascii_weights::COUNT);
    if (!is_sum(collation, weights, unit, text, 2))
      return true;
  }
  for (text[0]= 'a'; text[0] <= 'z'; text[0]++)
    for (text[1]= 'a'; text[1] <= 'z'; text[1]++)
      for (text[2]= 'a'; text[2] <= 'z'; text[2]++)
        if (!is_sum(collation, weights, unit, text, 3))
          return true;
  return false;
}

/* Null: ASCII characters have no weights of their own in it. */
static const Ascii_weights *ascii_weights(CHARSET_INFO *collation, uint unit)
{
  static std::mutex mutex; /* the last one that anybody takes */
  static std::map<CHARSET_INFO *, std::unique_ptr<Ascii_weights>> known;
  const bool is_simple= !(collation->state & MY_CS_NON1TO1);
  if (unit > 2 || collation->mbminlen != 1 || (collation->state & MY_CS_NONASCII) || !(is_simple || (collation->state & MY_CS_UNICODE)))
    return nullptr;
  const std::lock_guard<std::mutex> guard(mutex);
  const auto found= known.find(collation);
  if (found != known.end())
    return found->second.get();
  std::unique_ptr<Ascii_weights> weights(new Ascii_weights);
  for (uint i= 0; i < Ascii_weights::COUNT; i++)
  {
    const char character= char(i);
    uchar weight[64];
    const size_t size= weights_of(collation, &character, 1, weight, sizeof(weight));
    weights->of[i]= size != unit ? Ascii_weights::NONE : unit == 1 ? weight[0] : uint(weight[0]) << 8 | weight[1];
  }
  if (!is_simple && has_contractions(collation, *weights, unit))
    weights.reset();
  return (known[collation]= std::move(weights)).get();
}

void Text_order::init(CHARSET_INFO *collation)
{
  m_ascii= nullptr;
  m_collation= collation;
  m_bytes= compares_bytes(collation);
  m_level_count= 0;
  /* These compare codes, but their strnxfrm gives the order of strokes. */
  m_is_big5= !(collation->state & MY_CS_BINSORT) && !strcmp(collation->cs_name.str, "big5");
  /* And this one compares only up to the first zero. */
  m_ends_at_zero= (collation->state & MY_CS_NOPAD) && !m_bytes && !strcmp(collation->cs_name.str, "tis620");
  const bool no_pad= collation == &my_charset_bin || (collation->state & MY_CS_NOPAD);
  if (collation->state & MY_CS_STRNXFRM_BAD_NWEIGHTS)
  {
    /* The two Czech collations of old: they drop trailing spaces, then compare all passes to the end. */
    m_trim= true;
    add_level(0, false);
    return;
  }
  uint levels= collation->levels_for_order;
  if (levels <= 1)
  {
    add_level(0, !no_pad);
    if (!no_pad && !m_bytes && !m_is_big5)
      m_ascii= ascii_weights(collation, m_levels[0].space_size);
    return;
  }
  /* Only the first level of a NO PAD collation is compared without padding. */
  for (uint level= 0; level < LEVELS_MAX; level++)
    if (levels & (1U << level))
      add_level(MY_STRXFRM_LEVEL1 << level, !(no_pad && level == 0));
}

void Text_order::add_level(uint flag, bool padded)
{
  Level *level= &m_levels[m_level_count++];
  level->flag= flag;
  level->padded= padded;
  if (!padded || m_bytes)
    return;
  uchar space[MY_CS_MBMAXLEN];
  int size= my_ci_wc_mb(m_collation, ' ', space, space + sizeof(space));
  DBUG_ASSERT(size > 0);
  level->space_size= uint(m_collation->coll->strnxfrm(m_collation, level->space, SPACE_MAX, NO_LIMIT,
                                                      space, size_t(size), flag));
  DBUG_ASSERT(level->space_size > 0);
}

/* Characters of two bytes as they are, others by the collation's table. */
size_t Text_order::weights_by_code(const uchar *text, size_t size, uchar *to) const
{
  const char *at= reinterpret_cast<const char *>(text), *end= at + size;
  uchar *begin= to;
  while (at < end)
  {
    if (my_ismbchar(m_collation, at, end))
    {
      *to++= uchar(*at++);
      *to++= uchar(*at++);
    }
    else
      *to++= m_collation->sort_order[uchar(*at++)];
  }
  return size_t(to - begin);
}

/* The weights are in m_weights until the next call. */
size_t Text_order::weights(const Level &level, const uchar *text, size_t size)
{
  size_t room= size * WEIGHT_BYTES_PER_BYTE + 64;
  m_weights.clear();
  if (m_is_big5)
    return weights_by_code(text, size, m_weights.reserve(room));
  return m_collation->coll->strnxfrm(m_collation, m_weights.reserve(room), room, NO_LIMIT, text, size,
                                     level.flag);
}

void Text_order::encode(Bytes *out, const uchar *text, size_t size)
{
  if (m_trim || (m_levels[0].padded && m_level_count == 1))
    size= my_ci_lengthsp(m_collation, reinterpret_cast<const char *>(text), size);
  if (m_ascii && encode_ascii(out, text, size))
    return;
  if (m_ends_at_zero)
    size= strnlen(reinterpret_cast<const char *>(text), size);
  for (uint i= 0; i < m_level_count; i++)
  {
    const Level &level= m_levels[i];
    const uchar *from= text;
    size_t from_size= size;
    if (!m_bytes)
    {
      from_size= weights(level, text, size);
      from= m_weights.data();
    }
    if (level.padded)
      encode_padded(out, level, from, from_size);
    else
      encode_ended(out, from, from_size);
  }
}

/* As encode_padded, of ASCII characters whose weights are known, and without a space at the end. False: it is another text, and nothing
   has come of it. */
bool Text_order::encode_ascii(Bytes *out, const uchar *text, size_t size) const
{
  const uint unit= m_levels[0].space_size, space= m_ascii->of[uchar(' ')];
  const uchar *end= text + size;
  if (space == Ascii_weights::NONE || (size && (end[-1] >= Ascii_weights::COUNT || m_ascii->of[end[-1]] == space)))
    return false;
  uchar *const begin= out->reserve(size * (unit + 1) + unit + 1), *to= begin;
  const auto put= [unit, &to](uint weight) {
    if (unit == 2)
      *to++= uchar(weight >> 8);
    *to++= uchar(weight);
  };
  for (; text < end; text++)
  {
    const uint weight= *text < Ascii_weights::COUNT ? m_ascii->of[*text] : Ascii_weights::NONE;
    if (weight == Ascii_weights::NONE)
      return false;
    put(weight);
    if (weight != space)
      continue;
    const uchar *next= text + 1;
    while (*next < Ascii_weights::COUNT && m_ascii->of[*next] == space)
      next++;
    if (*next >= Ascii_weights::COUNT || m_ascii->of[*next] == Ascii_weights::NONE)
      return false;
    *to++= m_ascii->of[*next] < space ? 1 : 3;
  }
  put(space);
  *to++= 2;
  out->grown(size_t(to - begin));
  return true;
}

size_t Text_order::encoded_max(size_t size) const
{
  static const size_t WEIGHTS_OF_CHARACTER= 4;
  const size_t chars= size / m_collation->mbmaxlen + 1;
  size_t all= 0;
  for (uint i= 0; i < m_level_count; i++)
  {
    const Level &level= m_levels[i];
    const size_t unit= level.space_size;
    size_t weights= size;
    if (m_trim)
      weights= 4 * size + 4;
    else if (!m_bytes && (m_collation->state & MY_CS_NON1TO1))
      weights= chars * WEIGHTS_OF_CHARACTER * MY_MAX(unit, 2);
    else if (!m_bytes)
      weights= MY_MAX(size, chars * unit);
    all+= level.padded ? weights + weights / unit + unit + 1 : 2 * weights + 2;
  }
  return all;
}

/* How `weights` compares with spaces without end: 1 below, 3 above. Not all of them are spaces. */
static uchar compare_with_spaces(const uchar *weights, const uchar *end, const uchar *space, uint space_size)
{
  while (true)
  {
    DBUG_ASSERT(weights < end);
    size_t size= MY_MIN(size_t(end - weights), size_t(space_size));
    int order= memcmp(weights, space, size);
    if (order)
      return order < 0 ? 1 : 3;
    weights+= size;
    if (weights >= end)
      return 3;
  }
}

/* The first weight that is a space's; null: there is none. What is left of a weight at the end is none. */
static const uchar *find_space(const uchar *weights, const uchar *end, const uchar *space, uint space_size)
{
  if (space_size == 1)
    return static_cast<const uchar *>(memchr(weights, space[0], size_t(end - weights)));
  if (space_size == 2) /* without a call for each character */
  {
    uint16_t of_space, weight;
    memcpy(&of_space, space, 2);
    for (; end - weights >= 2; weights+= 2)
    {
      memcpy(&weight, weights, 2);
      if (weight == of_space)
        return weights;
    }
    return nullptr;
  }
  for (; size_t(end - weights) >= space_size; weights+= space_size)
    if (!memcmp(weights, space, space_size))
      return weights;
  return nullptr;
}

void Text_order::encode_padded(Bytes *out, const Level &level, const uchar *weights, size_t size)
{
  const uint unit= level.space_size;
  while (size >= unit && size % unit == 0 && !memcmp(weights + size - unit, level.space, unit))
    size-= unit;
  const uchar *end= weights + size;
  while (weights < end)
  {
    const uchar *space= find_space(weights, end, level.space, unit);
    const uchar *stop= space ? space + unit : end;
    out->append(weights, size_t(stop - weights));
    weights= stop;
    if (space)
      out->append_byte(compare_with_spaces(weights, end, level.space, unit));
  }
  out->append(level.space, unit);
  out->append_byte(2);
}

void Text_order::encode_ended(Bytes *out, const uchar *weights, size_t size)
{
  const uchar *end= weights + size;
  while (weights < end)
  {
    const uchar *zero= static_cast<const uchar *>(memchr(weights, 0, size_t(end - weights)));
    const uchar *stop= zero ? zero + 1 : end;
    out->append(weights, size_t(stop - weights));
    weights= stop;
    if (zero)
      out->append_byte(0xff);
  }
  out->append_byte(0);
  out->append_byte(1);
}

void Text_order::put_path(std::string *to, uchar mask, bool takes) const
{
  enum : char { PADDED= 1, ENDED= 2, TO_TAKE= 4 };
  DBUG_ASSERT(!takes || (m_bytes && m_level_count == 1));
  for (uint i= 0; i < m_level_count; i++)
  {
    const Level &level= m_levels[i];
    to->push_back(char((level.padded ? PADDED : ENDED) + (takes ? TO_TAKE : 0)));
    to->push_back(char(mask));
    if (!level.padded)
      continue;
    to->push_back(char(level.space_size));
    for (uint j= 0; j < level.space_size; j++)
      to->push_back(char(level.space[j] ^ mask));
  }
}

bool Text_order::decode(Reader *reader, uchar mask, Bytes *out) const
{
  for (uint i= 0; i < m_level_count; i++)
  {
    const Level &level= m_levels[i];
    if (!(level.padded ? decode_padded(reader, mask, level, out) : decode_ended(reader, mask, out)))
      return false;
  }
  return true;
}

bool Text_order::decode_padded(Reader *reader, uchar mask, const Level &level, Bytes *out)
{
  const uint unit= level.space_size;
  uchar space[SPACE_MAX];
  for (uint i= 0; i < unit; i++)
    space[i]= level.space[i] ^ mask;
  const uchar *weight;
  while (reader->take(unit, &weight))
  {
    bool is_space= !memcmp(weight, space, unit);
    if (is_space)
    {
      const uchar *marker;
      if (!reader->take(1, &marker))
        return false;
      if ((*marker ^ mask) == 2)
        return true;
    }
    if (out)
      for (uint i= 0; i < unit; i++)
        out->append_byte(weight[i] ^ mask);
  }
  return false;
}

bool Text_order::decode_ended(Reader *reader, uchar mask, Bytes *out)
{
  const uchar *byte;
  while (reader->take(1, &byte))
  {
    uchar value= *byte ^ mask;
    if (value == 0)
    {
      if (!reader->take(1, &byte))
        return false;
      if ((*byte ^ mask) == 1)
        return true;
    }
    if (out)
      out->append_byte(value);
  }
  return false;
}

} // namespace pando
