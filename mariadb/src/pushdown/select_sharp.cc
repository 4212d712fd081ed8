/* What is said of sums of DOUBLEs whose last digits are those of a plan.

   Of such a sum and of its mean the server has other last digits where rows come by another key, or a join begins with another table. They are
   shown as they are. Where more is done with them than showing, as by ROUND(AVG(x), 2), HAVING SUM(x) > 100, ORDER BY AVG(x) LIMIT 10, it is the same
   in every plan if it is the same of all numbers around the sum, as far as a sum in another order may lie from it (crates/analytic/src/rounding.rs). So
   it is said of the sum, and of both ends; the engine compares, and gives the query back if they differ. */
#include "select_translate.h"
#include "select_silence.h"

#include <algorithm>

namespace pando {

using B= Select_bytes;

/* Sums in one expression: it is said of all combinations of their ends. */
static const uint BENT_MAX= 3;

/* Whether it makes a step somewhere, and so is something else of numbers that hardly differ. */
static bool makes_steps(const Item_func *function)
{
  const Item_func::Functype type= function->functype();
  return compares_values(function) || type == Item_func::ISNULL_FUNC || type == Item_func::ISNOTNULL_FUNC ||
         is_one_of(function, {"round", "truncate", "floor", "ceiling", "sign", "format", "cast_as_signed", "cast_as_unsigned", "decimal_typecast"});
}

/* Whether numbers that hardly differ make numbers of it that hardly differ. */
static bool is_smooth(const Item_func *function)
{
  return function->result_type() == REAL_RESULT && is_one_of(function, {"+", "-", "*", "/", "abs", "sqrt", "ln", "log10", "log2", "exp", "pow", "coalesce", "ifnull", "greatest", "least"});
}

/* Whether what it is between two numbers can be told by what it is of these; not so of the text of a number, which may be short in between. */
static bool is_told_by_ends(const Item_func *function)
{
  return makes_steps(function) || is_smooth(function) || is_one_of(function, {"if", "case", "nullif"});
}

/* Calls `found` with each sum or mean of DOUBLEs that an expression of the SELECT's groups has; `through`: in what functions. */
template<typename Through, typename Found> static void for_each_sum(Item *item, const SELECT_LEX *select, Through through, Found found, uint depth= 0)
{
  item= item->real_item();
  if (depth > DEPTH_MAX || item->cols() != 1)
    return;
  if (item->type() == Item::SUM_FUNC_ITEM)
  {
    const Item_sum *sum= static_cast<const Item_sum *>(item);
    if ((sum->sum_func() == Item_sum::SUM_FUNC || sum->sum_func() == Item_sum::AVG_FUNC) && sum->result_type() == REAL_RESULT && sum->aggr_sel == select)
      found(sum);
    return;
  }
  if (item->type() != Item::FUNC_ITEM)
    return;
  const Item_func *function= static_cast<const Item_func *>(item);
  for (uint i= 0; through(function) && i < function->argument_count(); i++)
    for_each_sum(function->arguments()[i], select, through, found, depth + 1);
}

bool Select_translator::is_shown(const Item_sum *sum) const
{
  bool is_found= false;
  if (m_shown)
    for_each_sum(const_cast<Item *>(m_shown), m_select, is_smooth, [&](const Item_sum *one) { is_found|= one == sum; });
  return is_found;
}

Select_translator::Steps Select_translator::steps_of(Item *item) const
{
  if (!m_select || m_is_bending || item->type() != Item::FUNC_ITEM)
    return Steps::NONE;
  const Item_func *function= static_cast<Item_func *>(item);
  const bool is_step= makes_steps(function);
  if (!is_step && (item->type_handler() == &type_handler_bool || is_told_by_ends(function)))
    return Steps::NONE;
  uint all= 0, told= 0;
  /* Of steps within it this is asked apart, if the engine takes them. */
  for_each_sum(item, m_select, [&](const Item_func *one) { return one == function || !makes_steps(one); }, [&](const Item_sum *) { all++; });
  for_each_sum(item, m_select, is_told_by_ends, [&](const Item_sum *) { told++; });
  if (!all || knows_order_of_rows())
    return Steps::NONE;
  return is_step && told >= all ? Steps::TOLD : Steps::OPEN;
}

bool Select_translator::say_bent(const std::function<bool(Said *)> &say, Said *said, std::vector<Said> *bent)
{
  m_is_bending= true;
  m_bend= 0;
  m_bent.clear();
  bool is_said= say(said);
  if (is_said && m_bent.size() > BENT_MAX)
    is_said= refuse("several DOUBLEs in an order that is not known");
  for (m_bend= 1; is_said && !m_bent.empty() && m_bend <= 1u << m_bent.size(); m_bend++)
  {
    Said one;
    is_said= say(&one) && (one.kind == said->kind || refuse("DOUBLEs in an order that is not known"));
    bent->push_back(one);
  }
  m_is_bending= false;
  m_bend= 0;
  return is_said;
}

bool Select_translator::sharply(Item *item, Said *said, const std::function<bool(Said *)> &say)
{
  switch (steps_of(item))
  {
  case Steps::NONE: return say(said);
  case Steps::OPEN: return refuse_for_good("DOUBLEs in an order that is not known");
  case Steps::TOLD: break;
  }
  std::vector<Said> bent;
  if (!say_bent(say, said, &bent))
    return false;
  if (bent.empty())
    return true;
  std::string are_same;
  B::list(&are_same, PANDO_TAG_AND, bent.size());
  for (const Said &one : bent)
  {
    B::compare(&are_same, PANDO_COMPARISON_SAME);
    are_same+= said->bytes + one.bytes;
  }
  B::make_sure(&said->bytes, are_same);
  return true;
}

bool Select_translator::order_near(Item *item, const std::function<bool(Said *)> &say, Said *said, bool *is_near)
{
  bool has_sum= false;
  if (!knows_order_of_rows())
    for_each_sum(item, m_select, is_smooth, [&](const Item_sum *) { has_sum= true; });
  if (!has_sum)
    return say(said);
  std::vector<Said> bent;
  if (!say_bent(say, said, &bent))
    return false;
  if (bent.empty())
    return true;
  if (bent.size() > 2)
    return refuse("an order by several DOUBLEs in an order that is not known");
  *is_near= true;
  said->bytes.insert(0, 1, char(PANDO_TAG_NEAR));
  for (const Said &one : bent)
    said->bytes+= one.bytes;
  return true;
}

} // namespace pando
