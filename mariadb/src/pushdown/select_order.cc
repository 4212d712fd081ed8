/* In which order the rows of a block come, and which of them: ORDER BY and LIMIT, said in the engine's words. */
#include "select_block.h"

namespace pando {

using B= Select_bytes;

/* Where the query has no order, its groups come as the server gives them: sorted; and so do different rows, but the first ones of them (LIMIT):
   these the engine finds as they come. */
void Select_translator::implied_order(Block *block)
{
  /* The engine sorts the groups of a ROLLUP itself; windows leave their rows sorted. */
  if ((!block->join->group_list && !block->is_distinct) || block->makes_rollup() || block->select->have_window_funcs() ||
      block->has_long_text || (block->is_distinct && block->is_cut))
    return;
  block->order_count= block->is_distinct ? uint(block->slots->size()) : block->group_count;
  block->order= block->is_distinct ? block->order_by_outputs : block->order_by_groups;
}

/* By what is shown, with its digits. The server may sort one of several tables before it joins them. */
bool Select_translator::order_of(SELECT_LEX *select, Item *item, Said *said)
{
  m_is_order= true;
  m_order_can_fail= false;
  const bool is_said= the_same_rounded(said, [&](Said *to) { return output(item, Use::TOP, to); });
  m_is_order= false;
  if (!is_said)
    return false;
  const bool is_joined= select->leaf_tables.elements > 1 || (select->join->conds && select->join->conds->with_subquery());
  if (!m_order_can_fail || !is_joined || item->with_sum_func() || my_count_bits(item->used_tables() & ~PSEUDO_TABLE_BITS) != 1)
    return true;
  if (item->with_subquery() || item->with_window_func())
    return refuse("an order of several tables that can fail");
  ask(said->bytes);
  return true;
}

/* Rows come by the primary key. */
bool Select_translator::order_of_scan(TABLE *table, std::string *to, uint *count)
{
  const KEY &key= table->key_info[table->s->primary_key];
  for (*count= 0; *count < key.user_defined_key_parts; ++*count)
  {
    const KEY_PART_INFO &part= key.key_part[*count];
    Said by;
    if (!column(part.field, &by))
      return false;
    if (by.kind.is_opaque() && by.kind.tag != Value_kind::STAMP)
      return refuse("rows in the order of a key that is sorted otherwise");
    *to+= by.bytes;
    B::byte(to, part.key_part_flag & HA_REVERSE_SORT ? 1 : 0);
  }
  return true;
}

/* An item of ORDER BY. */
bool Select_translator::order_item(const ORDER *order, Block *block)
{
  Item *item= *order->item;
  Said by;
  if (filled_field(item))
    return refuse("an order by CHAR in a NO PAD collation");
  const auto name= block->names.find(item);
  const bool has_name= name != block->names.end();
  const bool is_said_again= !has_name || !item->with_subquery();
  const bool heard_rows= m_hears_rows;
  m_hears_rows&= block->use == Use::TOP && !block->is_cut;
  m_shown= block->is_shown && !block->is_cut ? item->real_item() : nullptr;
  const auto say= [&](Said *to) { return order_of(block->select, item, to); };
  bool is_near= false, is_said= true;
  if (is_said_again)
    is_said= (block->is_shown && block->is_cut ? order_near(item, say, &by, &is_near) : say(&by)) &&
             (!hides_quotient(by) || refuse("a quotient inside of an expression"));
  m_shown= nullptr;
  m_hears_rows= heard_rows;
  if (!is_said)
    return false;
  const bool is_long= is_sorted_by_prefix(m_thd, item);
  if (has_name && !is_near && (!is_long || name->second.kind.tag != Value_kind::TEXT))
    by= name->second;
  else if (!is_said_again)
    return refuse("an order by long texts");
  else if (!sort_by_all(item, !block->is_distinct, &by))
    return false;
  if (has_name && block->is_distinct)
    by= name->second;
  block->order+= by.bytes;
  B::byte(&block->order, order->direction == ORDER::ORDER_DESC);
  return true;
}

bool Select_translator::order_by(Block *block)
{
  const bool wants_order= block->use == Use::TOP || (block->select->limit_params.select_limit && block->use != Use::EXISTS);
  for (const ORDER *one= block->join->order; wants_order && one; one= one->next, block->order_count++)
    if (!order_item(one, block))
      return false;
  return true;
}

static bool limit_of(Item *item, uint64_t *limit)
{
  if (!item)
    return true;
  if (!item->fixed() || !item->const_item())
    return false;
  *limit= uint64_t(item->val_uint());
  return true;
}

bool Select_translator::limits(const Block &block, std::string *to)
{
  uint64_t skip= 0, limit= UINT64_MAX;
  const Lex_select_limit &params= block.limit_params();
  const uint64_t leaves_all= block.use == Use::TOP ? limit_that_leaves_all(block.select) : 0;
  if ((block.use == Use::BRANCH || block.select->have_window_funcs()) && block.is_cut && !block.join->order && !leaves_all)
    return refuse("a LIMIT without an order");
  if (!limit_of(params.offset_limit, &skip) || !limit_of(params.select_limit, &limit))
    return refuse("a LIMIT");
  /* Whether a row is beyond it. */
  if (leaves_all)
    limit= leaves_all + 1;
  else if (block.use == Use::TOP && is_of_rows(block.select))
    limit= ROWS_AS_THEY_COME_MAX + 1;
  if (block.use == Use::EXISTS)
  {
    if (skip || !limit)
      return refuse("a LIMIT in EXISTS");
    limit= UINT64_MAX;
  }
  B::large(to, skip);
  B::byte(to, limit != UINT64_MAX);
  if (limit != UINT64_MAX)
    B::large(to, limit);
  return true;
}

} // namespace pando
