/* Functions of a text and constants, computed without the server's items: SUBSTRING, LEFT, RIGHT, TRIM and the like. */
#include "select_translate.h"

#include <algorithm>
#include <string.h>

namespace pando {

using B= Select_bytes;

static const uint64_t IS_NULL= UINT64_MAX;

static uint64_t copy(const uint8_t *text, size_t size, uint8_t *to, uint64_t room)
{
  if (size && size <= room)
    memcpy(to, text, size);
  return size;
}

uint64_t Text_change::apply(const uint8_t *text, size_t size, uint8_t *to, uint64_t room) const
{
  const uint8_t *end= text + size;
  switch (what)
  {
  case TRIM:
  case LTRIM:
  case RTRIM:
    /* The space has one byte, and is no part of a longer character. */
    if (what != RTRIM)
      while (text < end && *text == ' ')
        text++;
    if (what != LTRIM)
      while (text < end && end[-1] == ' ')
        end--;
    return copy(text, size_t(end - text), to, room);
  case LOWER:
  case UPPER:
    return in_case(text, size, to, room);
  case NOT_FILLED:
    return ends_as_if_filled(text, size) ? IS_NULL : copy(text, size, to, room);
  case FITS:
    return fits(text, size) ? copy(text, size, to, room) : IS_NULL;
  default:
    return part(text, size, to, room);
  }
}

uint64_t Text_change::in_case(const uint8_t *text, size_t size, uint8_t *to, uint64_t room) const
{
  const size_t most= size * (what == LOWER ? charset->casedn_multiply() : charset->caseup_multiply());
  if (most > room)
    return most;
  const char *from= reinterpret_cast<const char *>(text);
  char *into= reinterpret_cast<char *>(to);
  return what == LOWER ? charset->cset->casedn(charset, from, size, into, most) : charset->cset->caseup(charset, from, size, into, most);
}

/* Whether its last character weighs as much as a space: a no-break space does, in some collations. */
bool Text_change::ends_as_if_filled(const uint8_t *text, size_t size) const
{
  const char *begin= reinterpret_cast<const char *>(text), *end= begin + size;
  const size_t chars= charset->numchars(begin, end);
  const size_t last= chars ? charset->charpos(begin, end, chars - 1) : 0;
  return chars && last < size && !charset->strnncollsp(text + last, size - last, reinterpret_cast<const uchar *>(" "), 1);
}

bool Text_change::fits(const uint8_t *text, size_t size) const
{
  const char *begin= reinterpret_cast<const char *>(text);
  const size_t bytes= size_t(position);
  if (size > bytes || charset->numchars(begin, begin + size) * charset->mbmaxlen > bytes)
    return false;
  const size_t most= charset->strnxfrmlen(bytes);
  std::vector<uchar> weights(most + 1);
  return charset->strnxfrm(weights.data(), weights.size(), uint(bytes), text, size, 0) <= most;
}

/* A text that becomes larger than the room is asked for once more, with that room. */
uint64_t Text_change::part(const uint8_t *text, size_t size, uint8_t *to, uint64_t room) const
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
  default:
    return IS_NULL;
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
  if (what >= Text_change::TRIM && what <= Text_change::RTRIM && (charset->mbminlen != 1 || (charset->state & MY_CS_NONASCII)))
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
  said->kind= Value_kind{Value_kind::TEXT, collation_number(function->collation.collation)};
  said->bytes= of.bytes;
  change(Text_change{what, charset, numbers[0], numbers[1]}, said);
  return true;
}

bool Select_translator::text_measure(Item_func *function, Text_measure::What what, Said *said)
{
  Item *argument= function->arguments()[0];
  if (what == Text_measure::BYTES && length_of_column(argument, said))
    return true;
  Said of;
  if (!expression(argument, &of))
    return false;
  if (of.kind.tag != Value_kind::TEXT)
    return refuse("the length of something else");
  const Text_measure measure{what, argument->collation.collation};
  const auto known= std::find(m_measures.begin(), m_measures.end(), measure);
  B::byte(&said->bytes, PANDO_TAG_MEASURE);
  B::small(&said->bytes, uint32_t(std::distance(m_measures.begin(), known)));
  if (known == m_measures.end())
  {
    m_measures.push_back(measure);
    measures.push_back(&m_measures.back());
  }
  said->bytes+= of.bytes;
  said->kind= Value_kind{Value_kind::SIGNED, 0};
  said->digits= 10; /* of the bytes of a LONGTEXT */
  return true;
}

uint32_t Select_translator::number_of_change(const Text_change &change)
{
  const auto known= std::find(m_changes.begin(), m_changes.end(), change);
  const uint32_t number= uint32_t(std::distance(m_changes.begin(), known));
  if (known == m_changes.end())
  {
    m_changes.push_back(change);
    changes.push_back(&m_changes.back());
  }
  return number;
}

void Select_translator::change(const Text_change &change, Said *said)
{
  std::string bytes;
  B::byte(&bytes, PANDO_TAG_CHANGE);
  B::small(&bytes, number_of_change(change));
  B::kind(&bytes, said->kind);
  said->bytes.insert(0, bytes);
}

/* Whether a text is NULL, or one of which `test` does not make NULL. */
std::string Select_translator::passes(const Text_change &test, const Said &said)
{
  std::string bytes;
  B::list(&bytes, PANDO_TAG_OR, 2);
  B::byte(&bytes, PANDO_TAG_IS_NULL);
  bytes+= said.bytes;
  B::byte(&bytes, PANDO_TAG_NOT);
  B::byte(&bytes, PANDO_TAG_IS_NULL);
  Said tested= said;
  change(test, &tested);
  return bytes + tested.bytes;
}

/* The server sorts long texts by their beginnings (`max_sort_length`), the engine by all of them: that is the same if none is that long.
   Without `may_wrap` the value has to stay as it is said, and all rows of its table are looked at. */
bool Select_translator::sort_by_all(Item *item, bool may_wrap, Said *said)
{
  if (said->kind.tag != Value_kind::TEXT || !is_sorted_by_prefix(m_thd, item))
    return true;
  if (is_sorted_by_few_levels(m_thd, item))
    return refuse("an order by texts of several levels");
  const Text_change fits{Text_change::FITS, item->collation.collation, longlong(m_thd->variables.max_sort_length), 0};
  const std::string is_sorted_alike= passes(fits, *said);
  if (may_wrap)
  {
    B::make_sure(&said->bytes, is_sorted_alike);
    return true;
  }
  if (item->with_sum_func() || item->with_subquery() || item->with_window_func())
    return refuse("an order by long texts");
  std::string asked;
  put_number(&asked, 1, Value_kind{Value_kind::SIGNED, 0});
  B::make_sure(&asked, is_sorted_alike);
  ask(asked);
  return true;
}

} // namespace pando
