/* Functions of a text and constants, computed without the server's items: SUBSTRING, LEFT and RIGHT. */
#include "select_translate.h"

#include <algorithm>
#include <string.h>

namespace pando {

using B= Select_bytes;

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

bool Select_translator::text_change(Item_func *function, Text_change::What what, Said *said)
{
  Item **arguments= function->arguments();
  Said of;
  if (!expression(arguments[0], &of))
    return false;
  CHARSET_INFO *charset= arguments[0]->collation.collation;
  if (of.kind.tag != Value_kind::TEXT || !my_charset_same(charset, function->collation.collation))
    return refuse("a function of a text");
  longlong numbers[2]= {0, LONGLONG_MAX};
  Silent_evaluation evaluation(m_thd);
  for (uint i= 1; i < function->argument_count() && i < 3; i++)
  {
    if (!is_constant(arguments[i]) || arguments[i]->result_type() != INT_RESULT || arguments[i]->unsigned_flag)
      return refuse("a function of a text and others");
    numbers[i - 1]= arguments[i]->val_int();
    if (arguments[i]->null_value)
      return refuse("a function of a text and NULL");
  }
  if (!evaluation.is_silent())
    return refuse_for_good("a constant that warns");
  const Text_change change{what, charset, numbers[0], numbers[1]};
  auto known= std::find(m_changes.begin(), m_changes.end(), change);
  const uint32_t number= uint32_t(std::distance(m_changes.begin(), known));
  said->kind= Value_kind{Value_kind::TEXT, collation_number(function->collation.collation)};
  B::byte(&said->bytes, 13);
  B::small(&said->bytes, number);
  B::kind(&said->bytes, said->kind);
  said->bytes+= of.bytes;
  if (known == m_changes.end())
  {
    m_changes.push_back(change);
    changes.push_back(&m_changes.back());
  }
  return true;
}

} // namespace pando
