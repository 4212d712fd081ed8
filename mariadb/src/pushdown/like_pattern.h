/* A pattern of LIKE, for as long as a query runs.

   The server's function compares character by character, and goes back at each '%'. Where the text's characters are single
   bytes (a character set of 8 bits, or a text of nothing but ASCII), the pattern is a list of pieces between '%', and each is
   looked for with memmem in the text whose bytes have been replaced by one for each class of equal ones. Which bytes are
   equal is asked of the server's own function, byte by byte, when the pattern is made. All else is the server's. */
#ifndef PANDO_LIKE_PATTERN_H
#define PANDO_LIKE_PATTERN_H

#include "server.h"

#include <string>
#include <vector>

namespace pando {

class Like_pattern
{
public:
  Like_pattern(const char *text, size_t size, CHARSET_INFO *collation, int escape);
  bool operator==(const Like_pattern &other) const
  {
    return m_text == other.m_text && m_collation == other.m_collation && m_escape == other.m_escape;
  }
  const std::string &text() const { return m_text; }
  int escape() const { return m_escape; }
  /* Any thread may ask. */
  bool matches(const uchar *text, size_t size) const;

private:
  /* What stands between two '%': bytes of classes, and places where any byte may be. */
  struct Piece
  {
    std::string bytes;
    std::vector<size_t> wild;
  };

  bool matches_server(const char *begin, size_t size) const;
  bool split();
  bool classify();
  bool matches_pieces(const uchar *text, size_t size) const;
  static bool is_at(const Piece &piece, const uchar *text);
  static const uchar *find(const Piece &piece, const uchar *text, const uchar *end);

  std::string m_text;
  CHARSET_INFO *m_collation;
  int m_escape;
  bool m_is_fast= false;
  std::vector<Piece> m_pieces;
  /* The class of each byte. */
  uchar m_class[256];
};

} // namespace pando

#endif
