#include "like_pattern.h"

#include "bytes.h"

#include <algorithm>
#include <string.h>

namespace pando {

/* No byte of a pattern is in this class. */
static const uchar NO_CLASS= 0;

Like_pattern::Like_pattern(const char *text, size_t size, CHARSET_INFO *collation, int escape)
  : m_text(text, size), m_collation(collation), m_escape(escape)
{
  const bool is_single= collation->mbmaxlen == 1 || (collation->mbminlen == 1 && !(collation->state & MY_CS_NONASCII));
  m_is_fast= is_single && escape >= 0 && escape < 0x80 && split() && classify();
}

/* False: there is something of which only the server knows what it means. */
bool Like_pattern::split()
{
  m_pieces.emplace_back();
  for (size_t i= 0; i < m_text.size(); i++)
  {
    uchar byte= uchar(m_text[i]);
    if (m_collation->mbmaxlen > 1 && byte >= 0x80)
      return false;
    if (int(byte) == m_escape)
    {
      if (++i == m_text.size())
        return false;
      byte= uchar(m_text[i]);
      if (m_collation->mbmaxlen > 1 && byte >= 0x80)
        return false;
    }
    else if (byte == '%')
    {
      m_pieces.emplace_back();
      continue;
    }
    else if (byte == '_')
    {
      m_pieces.back().wild.push_back(m_pieces.back().bytes.size());
      byte= 0;
    }
    m_pieces.back().bytes.push_back(char(byte));
  }
  return true;
}

/* Asks the server which bytes are equal to those of the pattern, and puts classes in their place. False: equality is not what
   divides bytes into classes. */
bool Like_pattern::classify()
{
  std::fill(m_class, m_class + sizeof(m_class), NO_CLASS);
  bool is_known[256]= {};
  uchar next= NO_CLASS;
  const int bytes= m_collation->mbmaxlen == 1 ? 256 : 128;
  for (Piece &piece : m_pieces)
    for (size_t i= 0; i < piece.bytes.size(); i++)
    {
      if (std::find(piece.wild.begin(), piece.wild.end(), i) != piece.wild.end())
        continue;
      const uchar byte= uchar(piece.bytes[i]);
      if (!is_known[byte])
      {
        is_known[byte]= true;
        const bool has_class= m_class[byte] != NO_CLASS;
        if (next == 0xff)
          return false;
        const uchar number= has_class ? m_class[byte] : ++next;
        /* As a literal: behind an escape, it is neither '%' nor '_'. */
        const char escape= byte == '\\' ? '|' : '\\';
        const char pattern[]= {escape, char(byte)};
        for (int other= 0; other < bytes; other++)
        {
          const char text= char(other);
          const bool is_equal= !m_collation->wildcmp(&text, &text + 1, pattern, pattern + 2, uchar(escape), '_', '%');
          const uchar known= m_class[other];
          if (is_equal != (known == number) && (has_class || (is_equal && known != NO_CLASS)))
            return false;
          if (is_equal)
            m_class[other]= number;
        }
        if (m_class[byte] != number)
          return false;
      }
    }
  for (Piece &piece : m_pieces)
    for (size_t i= 0; i < piece.bytes.size(); i++)
      if (std::find(piece.wild.begin(), piece.wild.end(), i) == piece.wild.end())
        piece.bytes[i]= char(m_class[uchar(piece.bytes[i])]);
  return true;
}

bool Like_pattern::matches_server(const char *begin, size_t size) const
{
  const char *pattern= m_text.data();
  return m_collation->wildcmp(begin, begin + size, pattern, pattern + m_text.size(), m_escape, '_', '%') == 0;
}

bool Like_pattern::matches(const uchar *text, size_t size) const
{
  if (!m_is_fast || size > UINT_MAX32)
    return matches_server(reinterpret_cast<const char *>(text), size);
  static thread_local Bytes classes;
  classes.clear();
  uchar *to= classes.reserve(size + 1), all= 0;
  for (size_t i= 0; i < size; i++)
  {
    all|= text[i];
    to[i]= m_class[text[i]];
  }
  if (all >= 0x80 && m_collation->mbmaxlen > 1)
    return matches_server(reinterpret_cast<const char *>(text), size);
  return matches_pieces(to, size);
}

bool Like_pattern::is_at(const Piece &piece, const uchar *text)
{
  size_t begin= 0;
  for (const size_t wild : piece.wild)
  {
    if (memcmp(text + begin, piece.bytes.data() + begin, wild - begin))
      return false;
    begin= wild + 1;
  }
  return !memcmp(text + begin, piece.bytes.data() + begin, piece.bytes.size() - begin);
}

const uchar *Like_pattern::find(const Piece &piece, const uchar *text, const uchar *end)
{
  const size_t size= piece.bytes.size();
  if (piece.wild.empty())
    return static_cast<const uchar *>(memmem(text, size_t(end - text), piece.bytes.data(), size));
  for (; size_t(end - text) >= size; text++)
    if (is_at(piece, text))
      return text;
  return nullptr;
}

/* The first piece is at the begin, the last at the end; each of the others as early as it can be. */
bool Like_pattern::matches_pieces(const uchar *text, size_t size) const
{
  const uchar *end= text + size;
  const Piece &first= m_pieces.front(), &last= m_pieces.back();
  if (m_pieces.size() == 1)
    return size == first.bytes.size() && is_at(first, text);
  if (size < first.bytes.size() + last.bytes.size() || !is_at(first, text) || !is_at(last, end - last.bytes.size()))
    return false;
  text+= first.bytes.size();
  end-= last.bytes.size();
  for (size_t i= 1; i + 1 < m_pieces.size(); i++)
  {
    if (m_pieces[i].bytes.empty())
      continue;
    text= find(m_pieces[i], text, end);
    if (!text)
      return false;
    text+= m_pieces[i].bytes.size();
  }
  return true;
}

} // namespace pando
