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

/* A column's number, or that of a literal, or one that is computed. */
Number Translator::number_of(Item *item)
{
  Number number;
  Nesting nesting(this);
  if (!nesting.is_allowed())
    return number;
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
  if (item->type() == Item::COND_ITEM)
    return truth(item);
  if (item->type() != Item::FUNC_ITEM || !is_exact_number(item))
    return number;
  Item_func *function= static_cast<Item_func *>(item);
  if (is_choice(function))
    return choice(function);
  if (function->functype() == Item_func::EXTRACT_FUNC || has_name(function, "year") || has_name(function, "month") ||
      has_name(function, "dayofmonth"))
    return date_part(function);
  if (function->type_handler() == &type_handler_bool)
    return truth(function);
  return arithmetic(function);
}

Number Translator::small_constant(Item *item, longlong value, bool is_null)
{
  PandoConstant constant= {};
  constant.is_null= is_null;
  constant.low= uint64_t(value);
  pando_query_constant(m_query, constant);
  return expression(item, PANDO_ARITHMETIC_CONSTANT, Number(), Number(), 0);
}

/* A condition as a number: 1, 0, or NULL where it is unknown. */
Number Translator::truth(Item *item)
{
  Number otherwise= small_constant(item, 0, false);
  if (item->maybe_null())
  {
    const Number null= small_constant(item, 0, true);
    if (!add_condition(item))
      return Number();
    condition(PANDO_OPERATOR_NOT, 0);
    otherwise= expression(item, PANDO_ARITHMETIC_IF, otherwise, null, 0);
  }
  const Number one= small_constant(item, 1, false);
  if (!add_condition(item))
    return Number();
  return expression(item, PANDO_ARITHMETIC_IF, one, otherwise, 0);
}

static bool is_arithmetic(const Item_func *function)
{
  return function->argument_count() == 2 &&
         (has_name(function, "+") || has_name(function, "-") || has_name(function, "*"));
}

/* The computation that `item` is, if it is one: neither a column nor a constant. */
Item_func *Translator::arithmetic_of(Item *item) const
{
  if (column_of(item))
    return nullptr;
  item= item->real_item();
  if (is_constant(item) || item->type() != Item::FUNC_ITEM || !is_exact_number(item))
    return nullptr;
  Item_func *function= static_cast<Item_func *>(item);
  return is_arithmetic(function) ? function : nullptr;
}

/* `a + b + c` is `(a + b) + c`: the left sides are gone along in a loop, however many there are. */
Number Translator::arithmetic(Item_func *function)
{
  const Number none;
  if (!is_arithmetic(function))
    return none;
  std::vector<Item_func *> chain{function};
  while (Item_func *left= arithmetic_of(chain.back()->arguments()[0]))
  {
    if (!spend())
      return none;
    chain.push_back(left);
  }
  if (!is_exact_number(chain.back()->arguments()[0]))
    return none;
  Number first= number_of(chain.back()->arguments()[0]);
  for (; !chain.empty() && first.slot >= 0; chain.pop_back())
    first= computed(chain.back(), first);
  return first;
}

/* What an operator makes of its left side and its right one. */
Number Translator::computed(Item_func *function, const Number &first)
{
  const Number none;
  const bool adds= has_name(function, "+"), subtracts= has_name(function, "-");
  Item *right= function->arguments()[1];
  if (!is_exact_number(right))
    return none;
  const Number second= number_of(right);
  if (second.slot < 0)
    return none;
  const bool multiplies= !adds && !subtracts;
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

bool Translator::is_choice(const Item_func *function)
{
  return (has_name(function, "if") && function->argument_count() == 3) ||
         function->functype() == Item_func::CASE_SEARCHED_FUNC;
}

namespace {

/* One branch of an IF or a CASE. */
struct Branch
{
  Item_func *function;
  Item *condition;
  Item *value;
};

/* Adds the branches; returns what is left when none of their conditions is true, null: NULL. */
Item *add_branches(Item_func *function, std::vector<Branch> *branches)
{
  Item **arguments= function->arguments();
  const uint count= function->argument_count();
  if (function->functype() != Item_func::CASE_SEARCHED_FUNC)
  {
    branches->push_back(Branch{function, arguments[0], arguments[1]});
    return arguments[2];
  }
  for (uint i= 0; i < count / 2; i++)
    branches->push_back(Branch{function, arguments[i], arguments[count / 2 + i]});
  return count % 2 ? arguments[count - 1] : nullptr;
}

} // namespace

/* The IF or CASE that `item` is, if it is one that could be computed. */
Item_func *Translator::choice_of(Item *item) const
{
  if (!item || column_of(item))
    return nullptr;
  item= item->real_item();
  if (is_constant(item) || item->type() != Item::FUNC_ITEM || !is_exact_number(item))
    return nullptr;
  Item_func *function= static_cast<Item_func *>(item);
  return is_choice(function) ? function : nullptr;
}

/* The value where no condition was true. */
Number Translator::otherwise_of(Item_func *function, Item *otherwise)
{
  const Number none;
  if (otherwise)
    return otherwise->type() == Item::NULL_ITEM || is_exact_number(otherwise) ? number_of(otherwise) : none;
  PandoConstant null= {};
  null.is_null= 1;
  pando_query_constant(m_query, null);
  return expression(function, PANDO_ARITHMETIC_CONSTANT, none, none, 0);
}

/* IF and CASE: the value of the first condition that is true. Branches, and choices in the place of ELSE, are gone along in a
   loop, the last first: each is computed from what comes after it. */
Number Translator::choice(Item_func *function)
{
  const Number none;
  std::vector<Branch> branches;
  Item *otherwise= add_branches(function, &branches);
  while (Item_func *next= choice_of(otherwise))
  {
    if (branches.size() > NODES_MAX)
      return none;
    function= next;
    otherwise= add_branches(next, &branches);
  }
  if (branches.size() > NODES_MAX)
    return none;
  Number second= otherwise_of(function, otherwise);
  for (; !branches.empty() && second.slot >= 0; branches.pop_back())
  {
    const Branch &branch= branches.back();
    if (branch.value->type() != Item::NULL_ITEM && !is_exact_number(branch.value))
      return none;
    if (!add_condition(branch.condition))
      return none;
    const Number first= number_of(branch.value);
    const uint scale= std::max(first.scale, second.scale);
    if (first.slot < 0 || scale > branch.function->decimals)
      return none;
    second= expression(branch.function, PANDO_ARITHMETIC_IF, first, second, scale);
  }
  return second;
}

} // namespace pando
