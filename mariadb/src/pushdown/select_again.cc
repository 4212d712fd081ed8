/* SELECTs of statements that are executed again: see select_again.h. */
#include "select_again.h"

namespace pando {

static bool is_column_of_view(Item *item)
{
  return item->type() == Item::REF_ITEM && static_cast<Item_ref *>(item)->ref_type() == Item_ref::VIEW_REF;
}

/* Whether the server makes a join of it: of what it selects, and what it is compared with. */
static bool is_in_for_join(SELECT_LEX *select)
{
  Item_subselect *item= select->master_unit()->item;
  return item && item->substype() == Item_subselect::IN_SUBS && static_cast<Item_in_subselect *>(item)->is_flattenable_semijoin;
}

/* Calls `each` for the columns of the SELECT that are not as written, with their numbers; it gives what takes their place. */
template <typename Each> static void for_columns_replaced(SELECT_LEX *select, const Each &each)
{
  List_iterator<Item> now(select->item_list);
  List_iterator_fast<Item> as_written(select->pre_fix);
  uint number= 0;
  for (Item *item; (item= now++); number++)
    if (item != as_written++)
      now.replace(each(item, number));
}

/* Likewise, for those at the left of IN with a list of constants so long that the server makes a table and a join of it. */
template <typename Each> static void for_columns_with_lists(SELECT_LEX *select, const Each &each)
{
  List_iterator_fast<Item_func_in> lists(select->in_funcs);
  for (Item_func_in *list; (list= lists++); )
  {
    Item **left= list->arguments();
    if ((*left)->type() == Item::REF_ITEM)
      *left= each(*left);
    else if ((*left)->type() == Item::ROW_ITEM)
      for (uint i= 0; i < (*left)->cols(); i++)
        if ((*left)->element_index(i)->type() == Item::REF_ITEM)
          *(*left)->addr(i)= each((*left)->element_index(i));
  }
}

/* Whether the server has met an error when it was about to make a join of it (texts whose collations do not go together): its tables stand in a nest of the
   outer SELECT then, and it stays in the conditions of that. */
static bool is_joined_in_part(SELECT_LEX *select)
{
  List_iterator_fast<TABLE_LIST> tables(select->top_join_list);
  for (const TABLE_LIST *list; (list= tables++); )
    if (list->embedding && list->embedding->sj_subq_pred)
      return true;
  return false;
}

/* Nor can it be the engine's, where an EXISTS becomes an IN first. */
bool is_first_for_server(THD *thd, const SELECT_LEX *select)
{
  if (thd->stmt_arena->is_conventional() || !select->first_cond_optimization)
    return false;
  bool is_first= false;
  const auto look= [&is_first](Item *item) {
    is_first|= !is_column_of_view(item);
    return item;
  };
  for (SELECT_LEX *each= thd->lex->all_selects_list; each && !is_first; each= each->next_select_in_list())
  {
    Item_subselect *item= each->master_unit()->item;
    is_first= (item && item->substype() == Item_subselect::EXISTS_SUBS) || is_joined_in_part(each);
    if (is_in_for_join(each))
      for_columns_replaced(each, [&look](Item *column, uint) { return look(column); });
    for_columns_with_lists(each, look);
  }
  return is_first;
}

/* A copy that lasts, and of which the view knows, as of the reference itself: it may still become a table. */
static Item *copy_to_last(THD *thd, Item *item)
{
  Item *copy= item->shallow_copy_with_checks(thd);
  if (!copy)
    return item;
  copy->set_name(thd, item->name);
  for (TABLE_LIST *list= thd->lex->query_tables; list; list= list->next_global)
  {
    if (!list->field_translation)
      continue; /* which makes the list */
    List_iterator_fast<Item> used(list->used_items);
    for (const Item *reference; (reference= used++); )
    {
      if (reference != item)
        continue;
      list->used_items.push_front(copy, thd->mem_root);
      list->persistent_used_items.push_front(copy, thd->mem_root);
      return copy;
    }
  }
  return copy;
}

void keep_columns_for_joins(THD *thd, const SELECT_LEX *select)
{
  const Query_arena *statement= thd->stmt_arena;
  if (statement->is_conventional() || statement->is_stmt_prepare_or_first_stmt_execute() || !select->first_cond_optimization)
    return;
  Query_arena backup;
  Query_arena *arena= thd->activate_stmt_arena_if_needed(&backup);
  const auto keep= [thd](Item *item) { return is_column_of_view(item) ? copy_to_last(thd, item) : item; };
  for (SELECT_LEX *each= thd->lex->all_selects_list; each; each= each->next_select_in_list())
  {
    if (is_in_for_join(each))
      for_columns_replaced(each, [&](Item *item, uint number) { return each->ref_pointer_array[number]= keep(item); });
    for_columns_with_lists(each, keep);
  }
  if (arena)
    thd->restore_active_arena(arena, &backup);
}

} // namespace pando
