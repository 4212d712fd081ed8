/* Rows that conditions can leave, by unique keys; see select_bound.h. */
#include "select_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pando {

namespace {

const double INFINITE= std::numeric_limits<double>::infinity();
/* Larger integers are not exact as DOUBLEs. */
const double EXACT_MAX= 9e15;

/* What the conditions say of a column: integers from `low` to `high`, or so many values. */
struct Values
{
  double low= -INFINITE, high= INFINITE, count= INFINITE;

  double most() const
  {
    if (std::isfinite(low) && std::isfinite(high))
      return std::min(count, std::max(0.0, high - low + 1));
    return count;
  }
};

/* The column of the table that an expression is. */
const Field *column_of(const TABLE *table, Item *item)
{
  Item *real= item->real_item();
  if (real->type() != Item::FIELD_ITEM)
    return nullptr;
  const Field *field= static_cast<Item_field *>(real)->field;
  return field && field->table == table ? field : nullptr;
}

/* Whether at most one value of the column is equal to it. */
bool is_value_of(const Field *field, Item *item)
{
  return item->basic_const_item() && item->cols() == 1 && field->cmp_type() == item->cmp_type() &&
         (field->cmp_type() == INT_RESULT || field->cmp_type() == STRING_RESULT);
}

/* An integer that a column of integers is compared with. */
bool integer(const Field *field, Item *item, double *value)
{
  if (!is_value_of(field, item) || item->cmp_type() != INT_RESULT || item->is_null())
    return false;
  const longlong number= item->val_int();
  *value= item->unsigned_flag ? double(ulonglong(number)) : double(number);
  return std::fabs(*value) < EXACT_MAX;
}

void add_comparison(const Field *field, Item_func::Functype type, Item *constant, Values *values)
{
  double value;
  switch (type)
  {
  case Item_func::EQ_FUNC:
    if (is_value_of(field, constant))
      values->count= std::min(values->count, 1.0);
    break;
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
    if (integer(field, constant, &value))
      values->low= std::max(values->low, value);
    break;
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
    if (integer(field, constant, &value))
      values->high= std::min(values->high, value);
    break;
  default:
    break;
  }
}

void add_condition(const Field *field, Item *condition, Values *values)
{
  if (condition->type() != Item::FUNC_ITEM)
    return;
  Item_func *function= static_cast<Item_func *>(condition);
  Item **arguments= function->arguments();
  const uint count= function->argument_count();
  const Item_func::Functype type= function->functype();
  switch (type)
  {
  case Item_func::BETWEEN:
    if (!static_cast<Item_func_between *>(function)->negated && column_of(field->table, arguments[0]) == field)
    {
      add_comparison(field, Item_func::GE_FUNC, arguments[1], values);
      add_comparison(field, Item_func::LE_FUNC, arguments[2], values);
    }
    break;
  case Item_func::IN_FUNC:
    if (!static_cast<Item_func_in *>(function)->negated && column_of(field->table, arguments[0]) == field &&
        std::all_of(arguments + 1, arguments + count, [field](Item *item) { return is_value_of(field, item); }))
      values->count= std::min(values->count, double(count - 1));
    break;
  default:
    if (count != 2 || !dynamic_cast<Item_bool_rowready_func2 *>(function))
      break;
    if (column_of(field->table, arguments[0]) == field)
      add_comparison(field, type, arguments[1], values);
    else if (column_of(field->table, arguments[1]) == field)
      add_comparison(field, static_cast<Item_bool_rowready_func2 *>(function)->rev_functype(), arguments[0], values);
    break;
  }
}

} // namespace

double rows_by_unique_key(const TABLE *table, const std::vector<Item *> &conditions)
{
  double least= INFINITE;
  for (uint number= 0; number < table->s->keys; number++)
  {
    const KEY &key= table->key_info[number];
    if (!(key.flags & HA_NOSAME) || (key.flags & HA_NULL_PART_KEY) || key.algorithm == HA_KEY_ALG_LONG_HASH)
      continue;
    double rows= 1;
    for (uint part= 0; part < key.user_defined_key_parts && rows < INFINITE; part++)
    {
      /* Of the beginnings of texts many texts have the same. */
      if (key.key_part[part].key_part_flag & HA_PART_KEY_SEG)
        rows= INFINITE;
      Values values;
      for (Item *condition : conditions)
        add_condition(key.key_part[part].field, condition, &values);
      rows*= values.most();
    }
    least= std::min(least, std::isnan(rows) ? INFINITE : rows);
  }
  return least;
}

} // namespace pando
