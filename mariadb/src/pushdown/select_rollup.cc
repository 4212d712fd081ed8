/* GROUP BY ... WITH ROLLUP. */
#include "select_translate.h"

namespace pando {

using B= Select_bytes;

/* Whether it is computed of aggregates and constants alone. */
static bool is_of_aggregates(Item *item)
{
  if (item->type() == Item::SUM_FUNC_ITEM || item->const_item())
    return true;
  if (item->type() == Item::REF_ITEM)
  {
    Item_ref *ref= static_cast<Item_ref *>(item);
    return ref->ref && *ref->ref && is_of_aggregates(*ref->ref);
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(item);
  for (uint i= 0; i < function->argument_count(); i++)
    if (!is_of_aggregates(function->arguments()[i]))
      return false;
  return true;
}

/* Whether one of the groups is of what another one is computed of: the server makes NULL of both. */
static bool are_of_each_other(const std::vector<std::string> &groups)
{
  for (size_t i= 0; i < groups.size(); i++)
    for (size_t j= 0; j < groups.size(); j++)
      if (i != j && groups[i].find(groups[j]) != std::string::npos)
        return true;
  return false;
}

/* In the rows above the groups the server makes NULL of the items that its groups are of, and of no others that are the same. */
bool Select_translator::rollup(SELECT_LEX *select, const std::vector<std::string> &groups, std::string *to)
{
  B::byte(to, select->olap == ROLLUP_TYPE);
  if (select->olap != ROLLUP_TYPE)
    return true;
  JOIN *join= select->join;
  if (!join->group_list || join->order || select->have_window_funcs() || (select->options & SELECT_DISTINCT))
    return refuse("ROLLUP with another clause");
  if (are_of_each_other(groups))
    return refuse("ROLLUP of groups that are of each other");
  std::string descends;
  uint32_t count= 0;
  for (const ORDER *group= join->group_list; group; group= group->next, count++)
  {
    if (is_constant(*group->item) || has_zerofill(*group->item))
      return refuse("ROLLUP of a constant, or of zero-filled numbers");
    B::byte(&descends, group->direction == ORDER::ORDER_DESC);
  }
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
  {
    bool is_group= false;
    for (const ORDER *group= join->group_list; group; group= group->next)
      is_group|= *group->item == item;
    if (!is_group && !is_of_aggregates(item))
      return refuse("ROLLUP, and an expression of what it is a group of");
  }
  B::small(to, count);
  *to+= descends;
  return true;
}

} // namespace pando
