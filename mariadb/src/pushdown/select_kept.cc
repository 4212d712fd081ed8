/* Values that become something else where the server keeps them in a table, to make groups of them or to show them: digits are cut, signs are lost, dates
   that may not be stored become one. Here it is said which of them there may be; the query is then refused, or given back if there is one. */
#include "select_silence.h"
#include "select_translate.h"
#include "text_order.h"

#include <algorithm>
#include <cmath>

namespace pando {

using B= Select_bytes;

/* Of IF(..., NULL, 2) the server says that it has no digit, and cuts averages and quotients of it where it keeps them in a column, and
   nowhere else: the query is answered if nothing has to be cut. */
void Select_translator::hold(const Item *item, Said *said)
{
  const uint precision= item->decimal_precision(), scale= said->kind.scale();
  /* Beyond what the engine computes with it is given back anyway. */
  if (precision >= 36 || precision - item->decimals + scale >= 38 || said->digits - scale <= double(precision) - item->decimals + 0.01)
    return;
  __int128 most= 1;
  for (uint i= item->decimals; i < precision + scale; i++)
    most*= 10;
  most--;
  std::string fits;
  B::list(&fits, PANDO_TAG_AND, 2);
  for (const bool is_least : {true, false})
  {
    B::compare(&fits, is_least ? PANDO_COMPARISON_GREATER_OR_EQUAL : PANDO_COMPARISON_LESS_OR_EQUAL);
    fits+= said->bytes;
    put_number(&fits, is_least ? -most : most, said->kind);
  }
  B::make_sure(&said->bytes, fits);
}

/* A column of a table that the server groups by with its filling, as CHAR in a NO PAD collation, and sorts some expressions of it by without. Where two values are equal with
   it, or without, and are not the same text, the groups are a matter of the plan; where none are, both ways are the same. The first would need a
   value that ends with what weighs as a space; of the second the query is given back as of all texts that are equal and not the same. */
Field *Select_translator::filled_field(Item *item) const
{
  item= item->real_item();
  if (item->type() != Item::FIELD_ITEM)
    return nullptr;
  Field *field= static_cast<Item_field *>(item)->field;
  const auto has_it= [field](const Source &source) { return source.number >= 0 && source.table == field->table; };
  const CHARSET_INFO *charset= field->charset();
  return field->stored_in_db() && groups_by_filling(field) && charset->mbminlen == 1 && !(charset->state & MY_CS_NONASCII) &&
         std::any_of(m_sources.begin(), m_sources.end(), has_it) ? field : nullptr;
}

void Select_translator::without_filling(const Field *field, Said *said)
{
  B::make_sure(&said->bytes, passes(Text_change{Text_change::NOT_FILLED, field->charset(), 0, 0}, *said));
}

static const uint WHOLE_DECIMALS_MAX= 6;

static bool is_whole_constant(Item *item)
{
  if (!item->basic_const_item() || item->type() == Item::NULL_ITEM || (item->cmp_type() == STRING_RESULT || item->cmp_type() == TIME_RESULT))
    return false;
  const double value= item->val_real();
  return std::isfinite(value) && value == std::floor(value);
}

/* Whether it rounds to no digits behind the point. */
static bool makes_whole(const Item_func *function)
{
  if (is_one_of(function, {"floor", "ceiling"}))
    return true;
  if (!is_one_of(function, {"round", "truncate"}))
    return false;
  if (function->argument_count() == 1)
    return true;
  Item *digits= function->arguments()[1];
  return digits->basic_const_item() && digits->cmp_type() == INT_RESULT && digits->val_int() == 0;
}

/* A DOUBLE that is a whole number, whatever it is computed of: `FLOOR(v / 10.0) * 10.0`. The sum or product of whole numbers is one, rounded as DOUBLEs are,
   too. */
static bool is_whole_number(Item *item, uint depth= DEPTH_MAX)
{
  if (item->type() != Item::FUNC_ITEM || !depth)
    return is_whole_constant(item);
  const Item_func *function= static_cast<Item_func *>(item);
  if (item->cmp_type() != REAL_RESULT || item->decimals > WHOLE_DECIMALS_MAX)
    return false;
  if (makes_whole(function))
    return true;
  /* A difference of unsigned numbers may lose its sign. */
  if (!is_one_of(function, {"+", "-", "*"}) || function->argument_count() != 2 || item->unsigned_flag)
    return false;
  return is_whole_number(function->arguments()[0], depth - 1) && is_whole_number(function->arguments()[1], depth - 1);
}

/* What the server keeps in a table, rounded to the digits that its type has: `a * 0.1` of a DOUBLE that was rounded before has one. Rounding changes nothing of
   what has just been rounded, nor of whole numbers that are not too large (`hold_group`). */
static bool is_kept_with_fewer_digits(Item *item)
{
  if (item->cmp_type() != REAL_RESULT || item->decimals >= NOT_FIXED_DEC || item->type() == Item::FIELD_ITEM || is_whole_number(item))
    return false;
  const Item_func *function= item->type() == Item::FUNC_ITEM ? static_cast<Item_func *>(item) : nullptr;
  return !function || !is_one_of(function, {"round", "truncate", "floor", "ceiling"}) || (function->argument_count() > 1 && !function->arguments()[1]->const_item());
}

/* Whether it may be less than 0, though its type is not: a difference of unsigned DECIMALs. Where the server keeps it in a table, it is 0 then. */
static bool may_lose_sign(Item *item, uint depth= DEPTH_MAX)
{
  item= item->real_item();
  if (!depth)
    return true;
  if (item->type() == Item::SUM_FUNC_ITEM)
    return static_cast<Item_sum *>(item)->get_arg_count() && may_lose_sign(static_cast<Item_sum *>(item)->get_arg(0), depth - 1);
  if (item->type() == Item::WINDOW_FUNC_ITEM)
    return may_lose_sign(static_cast<Item_window_func *>(item)->window_func(), depth - 1);
  if (item->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<Item_func *>(item);
  if (item->unsigned_flag && item->cmp_type() == DECIMAL_RESULT && !strcmp(function->func_name(), "-"))
    return true;
  for (uint i= 0; i < function->argument_count(); i++)
    if (function->arguments()[i]->cols() == 1 && may_lose_sign(function->arguments()[i], depth - 1))
      return true;
  return false;
}

bool Select_translator::keeps_signs(SELECT_LEX *select, Use use)
{
  const bool is_kept= use != Use::TOP || (select->options & SELECT_DISTINCT) || select->have_window_funcs() || is_stored_by_statement(m_thd);
  const auto has_extreme= [](Item *item) {
    item= item->real_item();
    return item->type() == Item::SUM_FUNC_ITEM && (static_cast<Item_sum *>(item)->sum_func() == Item_sum::MIN_FUNC ||
                                                   static_cast<Item_sum *>(item)->sum_func() == Item_sum::MAX_FUNC);
  };
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
    if ((is_kept || has_extreme(item)) && may_lose_sign(item))
      return false;
  for (const ORDER *group= select->join->group_list; group; group= group->next)
    if (may_lose_sign(*group->item))
      return false;
  return true;
}

bool Select_translator::makes_groups(Item *item)
{
  item= item->real_item();
  if (is_kept_with_fewer_digits(item))
    return refuse("groups of DOUBLEs that are kept with fewer digits");
  const Field *field= item->type() == Item::FIELD_ITEM ? static_cast<Item_field *>(item)->field : nullptr;
  return !field || !groups_by_filling(field) || refuse("groups of CHAR in a NO PAD collation");
}

/* Where the server keeps dates that it computed in a table, it takes those that may not be stored (2021-02-31, of a column that was filled under
   ALLOW_INVALID_DATES) for 0000-00-00; in the modes without zeros those of a column, too. DOUBLEs without digits behind the point it cuts at 10^17. The query is
   answered if there is none such. */
void Select_translator::hold_group(Item *item, Said *said)
{
  static const double LARGE= 1e15;
  const bool is_computed= item->real_item()->type() != Item::FIELD_ITEM;
  const bool is_date= said->kind.tag == Value_kind::DATE || said->kind.tag == Value_kind::DATETIME;
  const bool is_rounded= said->kind.tag == Value_kind::REAL && item->decimals < NOT_FIXED_DEC && is_computed;
  const bool has_zeros= !(m_thd->variables.sql_mode & (MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE));
  const bool has_all= has_zeros && (!is_computed || m_thd->variables.sql_mode & MODE_INVALID_DATES);
  if (!is_rounded && (!is_date || has_all))
    return;
  std::string is_kept;
  if (is_date)
  {
    B::compare(&is_kept, PANDO_COMPARISON_EQUAL);
    B::byte(&is_kept, PANDO_TAG_PART);
    B::byte(&is_kept, has_zeros ? PANDO_MOMENT_PART_POSSIBLE : PANDO_MOMENT_PART_REGULAR);
    is_kept+= said->bytes;
    put_number(&is_kept, 1, Value_kind{Value_kind::SIGNED, 0});
  }
  else
  {
    /* With its digits, it has to be a whole number still. */
    const double large= is_whole_number(item->real_item()) ? LARGE / std::pow(10.0, item->decimals) : LARGE;
    B::list(&is_kept, PANDO_TAG_AND, 2);
    for (const double bound : {large, -large})
    {
      B::compare(&is_kept, bound > 0 ? PANDO_COMPARISON_LESS : PANDO_COMPARISON_GREATER);
      is_kept+= said->bytes;
      put_real(&is_kept, bound, said->kind);
    }
  }
  B::make_sure(&said->bytes, is_kept);
}

} // namespace pando
