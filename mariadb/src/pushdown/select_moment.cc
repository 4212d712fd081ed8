/* Parts of moments, and TIMESTAMPs as seconds. */
#include "select_translate.h"

namespace pando {

using B= Select_bytes;

bool Select_translator::moment_part(Item_func *function, PandoMomentPart part, Said *said)
{
  Said of;
  if (!expression(function->arguments()[0], &of))
    return false;
  const bool is_date= of.kind.tag == Value_kind::DATE;
  const bool is_of_clock= part == PANDO_MOMENT_PART_HOUR || part == PANDO_MOMENT_PART_MINUTE || part == PANDO_MOMENT_PART_SECOND;
  if ((!is_date && of.kind.tag != Value_kind::DATETIME) || (is_date && is_of_clock))
    return refuse("a part of something else");
  static const uint DIGITS[]= {4, 2, 2, 1, 6, 2, 2, 2}; /* of a year, a month and so on */
  said->digits= DIGITS[part];
  B::byte(&said->bytes, PANDO_TAG_PART);
  B::byte(&said->bytes, part);
  said->bytes+= of.bytes;
  said->kind= Value_kind{Value_kind::SIGNED, 0};
  return true;
}

/* DATE(d). In the modes without zeros it is NULL of some, and warns. */
bool Select_translator::date_of(Item_func *function, Said *said)
{
  Said of;
  if (!expression(function->arguments()[0], &of))
    return false;
  if (m_thd->variables.sql_mode & (MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE))
    return refuse("dates without zeros");
  if (of.kind.tag != Value_kind::DATETIME)
    return refuse("a date of something else");
  B::byte(&said->bytes, PANDO_TAG_PART);
  B::byte(&said->bytes, PANDO_MOMENT_PART_DATE);
  said->bytes+= of.bytes;
  said->kind= Value_kind{Value_kind::DATE, 0};
  return true;
}

/* UNIX_TIMESTAMP of a TIMESTAMP: it is stored as seconds, and digits behind them in one to three bytes. */
bool Select_translator::unix_timestamp(Item_func *function, bool only_seconds, Said *said)
{
  static const uint DIGITS_OF_SECONDS= 10;
  static const uint32_t UNITS[]= {1, 100, 10000, 1000000}; /* of a second, by these bytes */
  if (function->argument_count() != 1 || function->arguments()[0]->type() != Item::FIELD_ITEM)
    return refuse("UNIX_TIMESTAMP of something else");
  Said stamp;
  Field *const field= static_cast<Item_field *>(function->arguments()[0])->field;
  if (!column(field, &stamp))
    return false;
  if (stamp.kind.tag != Value_kind::STAMP || function->decimals != stamp.kind.of)
    return refuse("UNIX_TIMESTAMP of something else");
  const Value_kind whole{Value_kind::SIGNED, 0};
  const uint decimals= stamp.kind.of, bytes= (decimals + 1) / 2;
  const auto subtract= [&](std::string *to) {
    B::byte(to, PANDO_TAG_ARITHMETIC);
    B::byte(to, PANDO_OPERATION_SUBTRACT);
    B::kind(to, whole);
  };
  std::string seconds;
  B::byte(&seconds, PANDO_TAG_CONVERT);
  B::kind(&seconds, whole);
  if (bytes)
  {
    B::byte(&seconds, PANDO_TAG_DIVIDE);
    B::small(&seconds, 0);
  }
  seconds+= stamp.bytes;
  if (bytes)
    put_number(&seconds, 1 << (8 * bytes), whole);
  said->digits= DIGITS_OF_SECONDS;
  said->kind= whole;
  if (!decimals || only_seconds)
  {
    said->bytes= seconds;
    return true;
  }
  /* stamp - seconds * (2 ^ bits - units), in units, which are taken for digits behind the point */
  const Value_kind in_units{Value_kind::DECIMAL, 2 * bytes};
  said->kind= Value_kind{Value_kind::DECIMAL, decimals};
  said->digits+= decimals;
  said->is_mixed= true; /* the server shows none, or six */
  if (in_units.of != decimals)
  {
    B::byte(&said->bytes, PANDO_TAG_DIVIDE);
    B::small(&said->bytes, decimals);
  }
  B::byte(&said->bytes, PANDO_TAG_ARITHMETIC);
  B::byte(&said->bytes, PANDO_OPERATION_MULTIPLY);
  B::kind(&said->bytes, in_units);
  subtract(&said->bytes);
  B::byte(&said->bytes, PANDO_TAG_CONVERT);
  B::kind(&said->bytes, whole);
  said->bytes+= stamp.bytes;
  B::byte(&said->bytes, PANDO_TAG_ARITHMETIC);
  B::byte(&said->bytes, PANDO_OPERATION_MULTIPLY);
  B::kind(&said->bytes, whole);
  said->bytes+= seconds;
  put_number(&said->bytes, (1 << (8 * bytes)) - UNITS[bytes], whole);
  put_number(&said->bytes, 1, in_units);
  if (in_units.of != decimals)
    put_number(&said->bytes, 1, whole);
  return true;
}

} // namespace pando
