/* Functions of a text and constants, computed without the server's items: SUBSTRING, LEFT and RIGHT. */
#include "select_translate.h"

#include <algorithm>
#include <string.h>

namespace pando {

uint64_t Text_change::apply(const uint8_t *text, size_t size, uint8_t *to, uint64_t room) const
{
  const char *begin= reinterpret_cast<const char *>(text), *end= begin + size;
  /* Where what comes before the end of the answer is ASCII, nobody has to count characters. */
  const longlong first= what == SUBSTRING ? position - 1 : 0, most= what == SUBSTRING ? length : position;
  if (what != RIGHT && first >= 0 && most >= 0 && charset->mbminlen == 1 && !(charset->state & MY_CS_NONASCII))
  {
    const size_t skipped= size_t(std::min<ulonglong>(ulonglong(first), size));
    const size_t bytes= size_t(std::min<ulonglong>(ulonglong(most), size - skipped));
    uchar all= 0;
    if (skipped + bytes <= 64)
    {
      for (size_t i= 0; i < skipped + bytes; i++)
        all|= text[i];
      if (all < 0x80)
      {
        if (bytes <= room)
          memcpy(to, begin + skipped, bytes);
        return bytes;
      }
    }
  }
  const longlong chars= longlong(charset->numchars(begin, end));
  longlong from= 0, count= length;
  switch (what)
  {
  case SUBSTRING:
    from= position < 0 ? chars + position : position - 1;
    if (!position || from < 0)
      return 0;
    break;
  case LEFT:
    count= position;
    break;
  case RIGHT:
    count= position;
    from= std::max(chars - std::max(position, 0LL), 0LL);
    break;
  }
  from= std::min(from, chars);
  count= std::min(std::max(count, 0LL), chars - from);
  const size_t skipped= charset->charpos(begin, end, size_t(from));
  const size_t bytes= charset->charpos(begin + skipped, end, size_t(count));
  if (bytes <= room)
    memcpy(to, begin + skipped, bytes);
  return bytes;
}

} // namespace pando
