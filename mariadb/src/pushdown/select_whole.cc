/* Numbers cut or rounded to whole ones: DIV, TRUNCATE and CAST AS SIGNED. */
#include "select_silence.h"
#include "select_translate.h"

namespace pando {

using B= Select_bytes;

/* What may have more digits is too large for an integer, of which the server warns, or says an error. */
static const double WHOLE_DIGITS_MAX= 18.9;

static bool is_divisor(Item *item)
{
  return item->basic_const_item() && item->type() != Item::NULL_ITEM && is_exact_number(item) && item->result_type() == INT_RESULT &&
         item->field_type() != MYSQL_TYPE_BIT && !item->unsigned_flag && item->val_int() > 0;
}

static void divide_by(std::string *to, uint scale, const std::string &of, longlong divisor)
{
  B::byte(to, PANDO_TAG_DIVIDE);
  B::small(to, scale);
  *to+= of;
  put_number(to, divisor, Value_kind{Value_kind::SIGNED, 0});
}

/* A number that fits an integer, but for what is behind the point. */
bool Select_translator::cuttable(Item *item, Said *said)
{
  if (!is_exact_number(item) || !expression(item, said))
    return refuse("a whole number of something else");
  if (!said->kind.is_number() || said->is_exact || said->kind.tag == Value_kind::UNSIGNED || !has_digits_of_type(item, *said) ||
      (said->kind.tag == Value_kind::DECIMAL && said->digits - said->kind.scale() > WHOLE_DIGITS_MAX))
    return refuse("a whole number of too many digits");
  return true;
}

/* DIV by a constant above zero: the quotient, cut towards zero. */
bool Select_translator::whole_quotient(Item_func *function, Said *said)
{
  Item **arguments= function->arguments();
  Item_func *const inner= arguments[0]->type() == Item::FUNC_ITEM ? static_cast<Item_func *>(arguments[0]) : nullptr;
  if (!is_divisor(arguments[1]) || function->unsigned_flag)
    return refuse("a whole quotient of something else");
  Said of;
  /* No quotient of whole numbers lies between a second and its parts. */
  const bool is_stamp= inner && is_one_of(inner, {"unix_timestamp"}) && unix_timestamp(inner, true, &of);
  if (!is_stamp)
  {
    of= Said();
    if (!cuttable(arguments[0], &of))
      return false;
  }
  said->kind= Value_kind{Value_kind::SIGNED, 0};
  said->digits= of.digits - of.kind.scale();
  B::byte(&said->bytes, PANDO_TAG_CONVERT);
  B::kind(&said->bytes, said->kind);
  divide_by(&said->bytes, 0, of.bytes, arguments[1]->val_int());
  return true;
}

/* Of a quotient by a constant above zero, which the server cuts after nine digits at least: with so many digits, cut again. */
bool Select_translator::cut_quotient(Item *item, uint scale, Said *said)
{
  if (item->type() != Item::FUNC_ITEM || !is_one_of(static_cast<Item_func *>(item), {"/"}) || item->result_type() != DECIMAL_RESULT)
    return false;
  Item **arguments= static_cast<Item_func *>(item)->arguments();
  Said of;
  if (!is_divisor(arguments[1]) || !cuttable(arguments[0], &of))
    return false;
  divide_by(&said->bytes, scale, of.bytes, arguments[1]->val_int());
  said->kind= Value_kind{Value_kind::DECIMAL, scale};
  said->digits= of.digits - of.kind.scale() + scale;
  return true;
}

bool Select_translator::truncation(Item_func *function, Said *said)
{
  static const longlong SCALE_MAX= 4; /* a quotient has so many digits, whatever is divided */
  Item **arguments= function->arguments();
  if (function->result_type() != DECIMAL_RESULT || function->cmp_type() != DECIMAL_RESULT || !arguments[1]->basic_const_item() ||
      arguments[1]->type() == Item::NULL_ITEM || arguments[1]->result_type() != INT_RESULT || !is_exact_number(arguments[1]))
    return refuse("TRUNCATE of something else");
  const longlong scale= arguments[1]->val_int();
  if (scale < 0 || scale > SCALE_MAX || uint(scale) != function->decimals)
    return refuse("TRUNCATE to other digits");
  if (arguments[0]->decimals >= scale && cut_quotient(arguments[0], uint(scale), said))
    return true;
  Said of;
  if (!cuttable(arguments[0], &of))
    return false;
  if (of.kind.scale() <= uint(scale))
    return refuse("TRUNCATE to more digits");
  *said= Said();
  divide_by(&said->bytes, uint(scale), of.bytes, 1);
  said->kind= Value_kind{Value_kind::DECIMAL, uint(scale)};
  said->digits= of.digits - of.kind.scale() + scale;
  said->is_mixed= of.is_mixed;
  return true;
}

/* CAST(... AS SIGNED) of an exact number: half is rounded away from zero. */
bool Select_translator::cast_to_integer(Item_func *function, Said *said)
{
  static const uint SCALE_OF_QUOTIENT= 6; /* one would do, as what is cut is below the half */
  Item *const argument= function->arguments()[0];
  if (!argument->decimals && argument->type() == Item::FUNC_ITEM && is_one_of(static_cast<Item_func *>(argument), {"/"}))
    return refuse("a quotient that is cut to a whole number");
  Said of;
  if (!cut_quotient(function->arguments()[0], SCALE_OF_QUOTIENT, &of))
  {
    of= Said();
    if (!cuttable(function->arguments()[0], &of))
      return false;
  }
  *said= of;
  said->is_mixed= said->mixes_zero= false;
  said->digits= of.digits - of.kind.scale() + (of.kind.scale() ? 0.31 : 0);
  convert(said, Value_kind{Value_kind::SIGNED, 0});
  return true;
}

} // namespace pando
