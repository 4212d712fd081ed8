/* Numbers that the engine computes: of columns and constants, with the result that the server's expression has, or none.

   An integer result has to be within its 64 bits: beyond them the server has an error, and so the engine gives the query
   back. A DECIMAL is computed exactly by both, as long as all digits behind the point are kept: the server's result says
   how many it has. */
#include "pushdown.h"
#include "sql_select.h"
#include "item_timefunc.h"

namespace pando {

/* Digits behind the point that products may have. */
static const uint SCALE_MAX= 30;

static bool has_name(const Item_func *function, const char *name)
{
  return !strcmp(function->func_name_cstring().str, name);
}

Number Translator::expression(Item *item, PandoArithmetic arithmetic, const Number &first, const Number &second,
                              uint scale)
{
  PandoExpression expression= {};
  expression.arithmetic= arithmetic;
  expression.bounds= item->result_type() == DECIMAL_RESULT ? PANDO_BOUNDS_DECIMAL :
                     item->unsigned_flag ? PANDO_BOUNDS_UNSIGNED : PANDO_BOUNDS_SIGNED;
  expression.scale= scale;
  expression.first= uint32_t(first.slot);
  expression.second= uint32_t(second.slot);
  Number number;
  number.slot= int(pando_query_expression(m_query, expression));
  number.scale= scale;
  return number;
}

Number Translator::number_of(Item *item)
{
  Number number;
  if (Field *field= column_of(item))
  {
    PandoQueryColumn unused= {};
    if (class_of(field, &unused) == Column_class::NUMBER)
    {
      number.slot= column(field, false);
      number.scale= unused.scale;
    }
    return number;
  }
  item= item->real_item();
  if (is_constant(item))
    return constant_number(item);
  if (item->type() != Item::FUNC_ITEM || !is_exact_number(item))
    return number;
  Item_func *function= static_cast<Item_func *>(item);
  Item **arguments= function->arguments();
  const uint count= function->argument_count();
  if (has_name(function, "if") && count == 3)
    return choice(function, arguments, arguments + 1, 1, arguments[2]);
  if (function->functype() == Item_func::CASE_SEARCHED_FUNC)
    return choice(function, arguments, arguments + count / 2, count / 2, count % 2 ? arguments[count - 1] : nullptr);
  if (function->functype() == Item_func::EXTRACT_FUNC || has_name(function, "year") || has_name(function, "month") ||
      has_name(function, "dayofmonth"))
    return date_part(function);
  return arithmetic(function);
}

Number Translator::arithmetic(Item_func *function)
{
  Number none;
  const bool adds= has_name(function, "+"), subtracts= has_name(function, "-"), multiplies= has_name(function, "*");
  if (function->argument_count() != 2 || (!adds && !subtracts && !multiplies))
    return none;
  Item **arguments= function->arguments();
  for (uint i= 0; i < 2; i++)
    if (!is_exact_number(arguments[i]))
      return none;
  const Number first= number_of(arguments[0]), second= number_of(arguments[1]);
  if (first.slot < 0 || second.slot < 0)
    return none;
  const uint scale= multiplies ? first.scale + second.scale : std::max(first.scale, second.scale);
  if (scale > SCALE_MAX || function->decimals != scale)
    return none;
  return expression(function, adds ? PANDO_ARITHMETIC_ADD : subtracts ? PANDO_ARITHMETIC_SUBTRACT :
                    PANDO_ARITHMETIC_MULTIPLY, first, second, scale);
}

/* Year, month or day of a DATE or DATETIME. */
Number Translator::date_part(Item_func *function)
{
  Number none, of, behind_seconds;
  int part= 0;
  if (function->functype() == Item_func::EXTRACT_FUNC)
  {
    const interval_type type= static_cast<Item_extract *>(function)->int_type;
    if (type != INTERVAL_YEAR && type != INTERVAL_MONTH)
      return none;
    part= type == INTERVAL_MONTH;
  }
  else
    part= has_name(function, "year") ? 0 : has_name(function, "month") ? 1 : 2;
  Field *field= column_of(function->arguments()[0]);
  PandoQueryColumn unused= {};
  const Column_class kind= field ? class_of(field, &unused) : Column_class::NONE;
  if (kind != Column_class::DATE && kind != Column_class::DATETIME)
    return none;
  of.slot= column(field, false);
  if (of.slot < 0)
    return none;
  behind_seconds.slot= 0;
  int arithmetic= PANDO_ARITHMETIC_YEAR + part;
  if (kind == Column_class::DATETIME)
  {
    /* Year to second are five bytes. */
    behind_seconds.slot= int(8 * (field->pack_length() - 5));
    arithmetic= PANDO_ARITHMETIC_YEAR_OF_DATE_TIME + part;
  }
  return expression(function, PandoArithmetic(arithmetic), of, behind_seconds, 0);
}

/* IF and CASE: the value of the first condition that is true. */
Number Translator::choice(Item_func *function, Item **conditions, Item **values, uint count, Item *otherwise)
{
  Number none;
  if (!count)
  {
    if (otherwise)
      return otherwise->type() == Item::NULL_ITEM || is_exact_number(otherwise) ? number_of(otherwise) : none;
    PandoConstant null= {};
    null.is_null= 1;
    pando_query_constant(m_query, null);
    return expression(function, PANDO_ARITHMETIC_CONSTANT, none, none, 0);
  }
  if (values[0]->type() != Item::NULL_ITEM && !is_exact_number(values[0]))
    return none;
  if (!add_condition(conditions[0]))
    return none;
  const Number first= number_of(values[0]);
  const Number second= choice(function, conditions + 1, values + 1, count - 1, otherwise);
  const uint scale= std::max(first.scale, second.scale);
  if (first.slot < 0 || second.slot < 0 || scale > function->decimals)
    return none;
  return expression(function, PANDO_ARITHMETIC_IF, first, second, scale);
}

} // namespace pando
