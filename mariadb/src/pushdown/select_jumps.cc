#include "select_jumps.h"
#include "select_translate.h"

#include <algorithm>
#include <vector>

namespace pando {

namespace {

/* What a SELECT asks of one table, as far as it is columns and their ends. */
struct Asked
{
  /* The groups, in the order in which they are named; of DISTINCT, what is shown. */
  std::vector<const Field *> groups;
  /* Columns whose different values are counted. */
  std::vector<const Field *> counted;
  /* The column of which the least or largest value is shown. */
  const Field *end= nullptr;
};

const Field *field_of(Item *item)
{
  item= item->real_item();
  return item->type() == Item::FIELD_ITEM ? static_cast<Item_field *>(item)->field : nullptr;
}

bool add_sum(Item_sum *sum, Asked *asked)
{
  switch (sum->sum_func())
  {
  case Item_sum::MIN_FUNC:
  case Item_sum::MAX_FUNC:
  {
    const Field *field= field_of(sum->get_arg(0));
    if (!field || (asked->end && asked->end != field))
      return false;
    asked->end= field;
    return true;
  }
  case Item_sum::COUNT_DISTINCT_FUNC:
  case Item_sum::SUM_DISTINCT_FUNC:
  case Item_sum::AVG_DISTINCT_FUNC:
    for (uint i= 0; i < sum->get_arg_count(); i++)
    {
      const Field *field= field_of(sum->get_arg(i));
      if (!field)
        return false;
      asked->counted.push_back(field);
    }
    return true;
  default:
    return false;
  }
}

/* The aggregates of an expression. */
bool add_sums(Item *item, Asked *asked)
{
  item= item->real_item();
  if (item->type() == Item::SUM_FUNC_ITEM)
    return add_sum(static_cast<Item_sum *>(item), asked);
  if (!item->with_sum_func())
    return true;
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(item);
  for (uint i= 0; i < function->argument_count(); i++)
    if (!add_sums(function->arguments()[i], asked))
      return false;
  return true;
}

bool find_asked(SELECT_LEX *select, Asked *asked)
{
  const bool is_distinct= (select->options & SELECT_DISTINCT) && !select->group_list.elements && !select->agg_func_used();
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
  {
    if (!add_sums(item, asked))
      return false;
    if (!is_distinct)
      continue;
    asked->groups.push_back(field_of(item));
    if (!asked->groups.back())
      return false;
  }
  for (const ORDER *group= select->group_list.first; group; group= group->next)
  {
    asked->groups.push_back(field_of(*group->item));
    if (!asked->groups.back())
      return false;
  }
  return !select->having || add_sums(select->having, asked);
}

/* The columns of the condition are among the first ones of the key. */
bool has_columns_of(Item *condition, const KEY &key, uint parts)
{
  if (!condition)
    return true;
  if (condition->with_subquery())
    return false;
  List<Item_field> fields;
  condition->walk(&Item::collect_item_field_processor, false, &fields);
  List_iterator_fast<Item_field> each(fields);
  for (Item_field *field; (field= each++); )
    if (!std::any_of(key.key_part, key.key_part + parts, [field](const KEY_PART_INFO &part) { return part.field == field->field; }))
      return false;
  return true;
}

/* Whether a condition leaves more than one range of a column. */
bool has_several_ranges(Item *condition)
{
  if (condition->type() != Item::FUNC_ITEM)
    return true;
  switch (static_cast<Item_func *>(condition)->functype())
  {
  case Item_func::EQ_FUNC:
  case Item_func::EQUAL_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
  case Item_func::ISNULL_FUNC:
  case Item_func::ISNOTNULL_FUNC:
    return false;
  case Item_func::BETWEEN:
    return static_cast<Item_func_between *>(condition)->negated;
  default:
    return true;
  }
}

/* With ranges of several columns the server's scan passes rows by (with every engine: `DISTINCT a, b WHERE (a = 3 OR b > 8) AND b <> 10`): each condition is to
   be on one column, and one with several ranges on the first one alone. */
bool is_found_by_jumps(Item *condition, const Field *first)
{
  if (condition->type() == Item::COND_ITEM && static_cast<Item_cond *>(condition)->functype() == Item_func::COND_AND_FUNC)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(condition)->argument_list());
    for (Item *part; (part= parts++); )
      if (!is_found_by_jumps(part, first))
        return false;
    return true;
  }
  List<Item_field> fields;
  condition->walk(&Item::collect_item_field_processor, false, &fields);
  const Field *only= nullptr;
  List_iterator_fast<Item_field> each(fields);
  for (const Item_field *field; (field= each++); only= field->field)
    if (only && only != field->field)
      return false;
  return !only || only == first || !has_several_ranges(condition);
}

/* The columns that are counted, and those that are grouped by, stand first in the key; then comes the one whose ends are asked for. */
bool serves(const KEY &key, const Asked &asked, Item *condition)
{
  const uint parts= uint(asked.groups.size() + asked.counted.size());
  const uint all= parts + (asked.end ? 1 : 0);
  if (!parts || all > key.user_defined_key_parts || (asked.end && asked.counted.size()))
    return false;
  for (uint i= 0; i < all; i++)
    if (key.key_part[i].key_part_flag & HA_PART_KEY_SEG)
      return false;
  for (uint i= 0; i < asked.groups.size(); i++)
    if (key.key_part[i].field != asked.groups[i])
      return false;
  const KEY_PART_INFO *counted= key.key_part + asked.groups.size();
  for (const Field *field : asked.counted)
    if (!std::any_of(counted, counted + asked.counted.size(), [field](const KEY_PART_INFO &part) { return part.field == field; }))
      return false;
  return (!asked.end || key.key_part[parts].field == asked.end) && has_columns_of(condition, key, all);
}

} // namespace

bool may_lose_rows_by_jumps(SELECT_LEX *select)
{
  Asked asked;
  Item *condition= select->join && select->join->conds ? select->join->conds : select->where;
  const TABLE_LIST *list= select->leaf_tables.elements == 1 ? select->leaf_tables.head() : nullptr;
  if (!condition || !list || !list->table || list->is_view_or_derived() || !find_asked(select, &asked))
    return false;
  const Field *first= asked.groups.size() ? asked.groups[0] : asked.counted.size() ? asked.counted[0] : nullptr;
  if (!first || is_found_by_jumps(condition, first))
    return false;
  const TABLE *table= list->table;
  for (uint number= 0; number < table->s->keys; number++)
    if (table->keys_in_use_for_group_by.is_set(number) && serves(table->key_info[number], asked, condition))
      return true;
  return false;
}

Jumps jumps_of(SELECT_LEX *select)
{
  Jumps jumps;
  Asked asked;
  const TABLE_LIST *list= select->leaf_tables.elements == 1 ? select->leaf_tables.head() : nullptr;
  if (!list || !list->table || list->is_view_or_derived() || select->olap == ROLLUP_TYPE || select->have_window_funcs() ||
      select->first_inner_unit() || list->table->file->partition_ht() != hton || !find_asked(select, &asked) || may_lose_rows_by_jumps(select))
    return jumps;
  const TABLE *table= list->table;
  Item *condition= select->join && select->join->conds ? select->join->conds : select->where;
  for (uint number= 0; number < table->s->keys; number++)
  {
    const KEY &key= table->key_info[number];
    if (!table->keys_in_use_for_group_by.is_set(number) || !key.rec_per_key || !serves(key, asked, condition))
      continue;
    const double of_group= double(key.rec_per_key[asked.groups.size() + asked.counted.size() - 1]);
    if (of_group <= 0)
      continue;
    jumps.groups= std::max(1.0, double(table->file->stats.records) / of_group);
    /* To the group, to its end, and behind it; in each partition. */
    jumps.lookups= jumps.groups * (asked.end ? 3 : 2) * double(std::max(size_t(1), handlers_of(list->table).size()));
    return jumps;
  }
  return jumps;
}

} // namespace pando
