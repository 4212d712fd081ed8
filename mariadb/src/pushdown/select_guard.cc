/* Divisors that are not zero where the server divides by them: see select_guard.h. */
#include "select_guard.h"

namespace pando {

namespace {

bool is_exact(const Item *item)
{
  return item->cmp_type() == INT_RESULT || item->cmp_type() == DECIMAL_RESULT;
}

/* Minus one, zero or one; false: it is no constant number, or it is NULL. */
bool sign_of(Item *item, int *sign)
{
  item= item->real_item();
  if (!item->basic_const_item() || item->type() == Item::NULL_ITEM || !is_exact(item))
    return false;
  const double value= item->val_real();
  *sign= value > 0 ? 1 : value < 0 ? -1 : 0;
  return true;
}

std::vector<const Field *> fields_of(Item *item)
{
  List<Item_field> items;
  item->walk(&Item::collect_item_field_processor, false, &items);
  std::vector<const Field *> fields;
  List_iterator_fast<Item_field> each(items);
  for (Item_field *field; (field= each++); )
    fields.push_back(field->field);
  return fields;
}

/* Columns are equal to the server by their names, of which that of the table may be missing. */
bool is_same(Item *one, Item *other)
{
  one= one->real_item();
  other= other->real_item();
  return is_exact(one) && is_exact(other) && one->eq(other, true) && fields_of(one) == fields_of(other);
}

Item_func::Functype turned(Item_func::Functype type)
{
  switch (type)
  {
  case Item_func::GT_FUNC: return Item_func::LT_FUNC;
  case Item_func::GE_FUNC: return Item_func::LE_FUNC;
  case Item_func::LT_FUNC: return Item_func::GT_FUNC;
  case Item_func::LE_FUNC: return Item_func::GE_FUNC;
  default:                 return type;
  }
}

Item_func::Functype negated(Item_func::Functype type)
{
  switch (type)
  {
  case Item_func::GT_FUNC: return Item_func::LE_FUNC;
  case Item_func::GE_FUNC: return Item_func::LT_FUNC;
  case Item_func::LT_FUNC: return Item_func::GE_FUNC;
  case Item_func::LE_FUNC: return Item_func::GT_FUNC;
  case Item_func::EQ_FUNC: return Item_func::NE_FUNC;
  case Item_func::NE_FUNC: return Item_func::EQ_FUNC;
  default:                 return Item_func::UNKNOWN_FUNC;
  }
}

/* Whether a number that compares so with one of this sign is not zero. */
bool excludes_zero(Item_func::Functype type, int sign)
{
  switch (type)
  {
  case Item_func::GT_FUNC: return sign >= 0;
  case Item_func::GE_FUNC: return sign > 0;
  case Item_func::LT_FUNC: return sign <= 0;
  case Item_func::LE_FUNC: return sign < 0;
  case Item_func::EQ_FUNC: return sign != 0;
  case Item_func::NE_FUNC: return sign == 0;
  default:                 return false;
  }
}

/* `holds`: the condition is true or NULL; else it is false or NULL. A divisor that is NULL warns of nothing. */
bool excludes_zero(Item *condition, bool holds, Item *divisor, uint depth= 0)
{
  static const uint DEPTH_MAX= 16;
  condition= condition->real_item();
  if (depth > DEPTH_MAX)
    return false;
  if (condition->type() == Item::COND_ITEM)
  {
    Item_cond *all= static_cast<Item_cond *>(condition);
    if ((all->functype() == Item_func::COND_AND_FUNC) != holds)
      return false;
    List_iterator_fast<Item> parts(*all->argument_list());
    for (Item *part; (part= parts++); )
      if (excludes_zero(part, holds, divisor, depth + 1))
        return true;
    return false;
  }
  if (holds && is_same(condition, divisor))
    return true;
  if (condition->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<Item_func *>(condition);
  Item **arguments= function->arguments();
  if (function->functype() == Item_func::NOT_FUNC)
    return excludes_zero(arguments[0], !holds, divisor, depth + 1);
  if (function->argument_count() != 2 || negated(function->functype()) == Item_func::UNKNOWN_FUNC)
    return false;
  const Item_func::Functype type= holds ? function->functype() : negated(function->functype());
  int sign;
  return (is_same(arguments[0], divisor) && sign_of(arguments[1], &sign) && excludes_zero(type, sign)) ||
         (is_same(arguments[1], divisor) && sign_of(arguments[0], &sign) && excludes_zero(turned(type), sign));
}

} // namespace

bool Guards::exclude_zero(Item *divisor) const
{
  int sign;
  if (sign_of(divisor, &sign))
    return sign;
  Item *const real= divisor->real_item();
  if (real->type() == Item::FUNC_ITEM && !strcasecmp(static_cast<Item_func *>(real)->func_name(), "nullif"))
  {
    Item **arguments= static_cast<Item_func *>(real)->arguments();
    return is_exact(arguments[0]) && sign_of(arguments[1], &sign) && !sign;
  }
  for (const auto &guard : m_guards)
    if (excludes_zero(guard.first, guard.second, divisor))
      return true;
  return false;
}

size_t Guards::enter(const Item_func *function, uint argument)
{
  const size_t before= m_guards.size();
  Item **arguments= function->arguments();
  const uint count= function->argument_count(), whens= count / 2;
  if (function->functype() == Item_func::CASE_SEARCHED_FUNC)
  {
    /* All WHENs come first, then all THENs, then ELSE. Those before the one that is looked at did not hold. */
    const uint own= argument < whens ? argument : argument - whens;
    for (uint i= 0; i < own; i++)
      m_guards.emplace_back(arguments[i], false);
    if (argument >= whens && own < whens)
      m_guards.emplace_back(arguments[own], true);
  }
  else if (argument && !strcasecmp(function->func_name(), "if"))
    m_guards.emplace_back(arguments[0], argument == 1);
  return before;
}

} // namespace pando
