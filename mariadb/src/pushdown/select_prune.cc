/* The partitions that conditions leave: see select_prune.h.

   What is asked of a table is what has to be true of each row of it that counts:
   1. ON of the table, and of the nests around it up to the first one that is outer joined, with that one's: rows for which it is not true are no partners.
   2. WHERE, and what is pushed into the SELECT, if no nest around it is outer joined: else it may be asked of rows that are not there.
   3. Of these, conditions of this table's columns and of constants that can be evaluated now and again later (`can_be_asked_about`).
   The server's `prune_partitions` does the rest. It finds no less when it optimizes: it knows what is equal to what then. */
#include "select_prune.h"
#include "select_derived.h"
#include "select_range.h"

#include <algorithm>

#include "opt_range.h"
#include "sql_cte.h"
#include "sql_partition.h"

namespace pando {

/* SELECTs within each other at most. */
static const uint NESTED_MAX= 16;

static std::vector<uint> bits_of(const MY_BITMAP *map)
{
  std::vector<uint> bits;
  for (uint bit= bitmap_get_first_set(map); bit != MY_BIT_NONE; bit= bitmap_get_next_set(map, bit))
    bits.push_back(bit);
  return bits;
}

static void restore_bits(MY_BITMAP *map, const std::vector<uint> &bits)
{
  bitmap_clear_all(map);
  for (uint bit : bits)
    bitmap_set_bit(map, bit);
}

static bool is_pruned(const TABLE *table) { return table && table->part_info && table->file->partition_ht() == hton; }

static void add_parts(Item *item, std::vector<Item *> *to)
{
  if (item->type() != Item::COND_ITEM || static_cast<Item_cond *>(item)->functype() != Item_func::COND_AND_FUNC)
  {
    to->push_back(item);
    return;
  }
  List_iterator_fast<Item> each(*static_cast<Item_cond *>(item)->argument_list());
  for (Item *part; (part= each++); )
    add_parts(part, to);
}

static bool is_within_outer_join(const TABLE_LIST *list)
{
  for (; list; list= list->embedding)
    if (is_outer_joined(list))
      return true;
  return false;
}

/* Steps 1 and 2 of the head of this file. */
static std::vector<Item *> conditions_of_rows(SELECT_LEX *select, const TABLE_LIST *list, const std::vector<Item *> &pushed)
{
  std::vector<Item *> parts;
  for (const TABLE_LIST *nest= list; nest; nest= nest->embedding)
  {
    if (nest->on_expr)
      add_parts(nest->on_expr, &parts);
    if (is_outer_joined(nest))
      return parts;
  }
  if (select->join && select->join->conds)
    add_parts(select->join->conds, &parts);
  parts.insert(parts.end(), pushed.begin(), pushed.end());
  return parts;
}

/* Whether it is of columns of the table, and of no others. */
static bool is_of_table(Item *item, const TABLE *table)
{
  List<Item_field> fields;
  item->walk(&Item::collect_item_field_processor, false, &fields);
  List_iterator_fast<Item_field> each(fields);
  for (const Item_field *field; (field= each++); )
    if (!field->field || field->field->table != table)
      return false;
  return fields.elements != 0;
}

Pruned_partitions::Pruned_partitions(THD *thd, SELECT_LEX *select) : m_thd(thd)
{
  bool has_partitions= false;
  for (const TABLE_LIST *list= thd->lex->query_tables; list; list= list->next_global)
    has_partitions|= is_pruned(list->table);
  if (has_partitions)
    prune_unit(select->master_unit(), 0);
}

void Pruned_partitions::prune_unit(SELECT_LEX_UNIT *unit, uint depth)
{
  for (SELECT_LEX *select= unit->first_select(); select && depth < NESTED_MAX; select= select->next_select())
    prune_select(select, {}, depth);
}

void Pruned_partitions::prune_select(SELECT_LEX *select, const std::vector<Item *> &pushed, uint depth)
{
  List_iterator_fast<TABLE_LIST> tables(select->leaf_tables);
  for (TABLE_LIST *list; (list= tables++); )
  {
    if (list->is_view_or_derived())
      prune_derived(list, is_within_outer_join(list) ? std::vector<Item *>() : conditions_of_rows(select, list, pushed), depth);
    else if (is_pruned(list->table))
      prune(list->table, conditions_of_rows(select, list, pushed));
  }
  for (SELECT_LEX_UNIT *unit= select->first_inner_unit(); unit; unit= unit->next_unit())
    if (std::find(m_derived.begin(), m_derived.end(), unit) == m_derived.end())
      prune_unit(unit, depth + 1);
}

/* `conditions`: what has to be true of its rows. */
void Pruned_partitions::prune_derived(TABLE_LIST *list, const std::vector<Item *> &conditions, uint depth)
{
  SELECT_LEX_UNIT *unit= list->get_unit();
  if (!unit || depth >= NESTED_MAX || (unit->with_element && unit->with_element->is_recursive))
    return;
  m_derived.push_back(unit);
  for (SELECT_LEX *inner= unit->first_select(); inner; inner= inner->next_select())
  {
    /* Of a SELECT that is merged, each row is one of its tables; conditions name these tables' columns. */
    if (is_limited(unit))
      prune_select(inner, {}, depth + 1);
    else if (list->is_merged_derived() && is_one_select(unit) && is_join(inner))
      prune_select(inner, conditions, depth + 1);
    else
      prune_select(inner, conditions_pushed(m_thd, conditions, list, inner), depth + 1);
  }
}

void Pruned_partitions::prune(TABLE *table, const std::vector<Item *> &conditions)
{
  std::vector<Item *> own;
  std::copy_if(conditions.begin(), conditions.end(), std::back_inserter(own), [table](Item *item) { return is_of_table(item, table); });
  Item *asked= to_be_asked_about(m_thd, own);
  partition_info *parts= table->part_info;
  const bool is_known= std::any_of(m_kept.begin(), m_kept.end(), [table](const Kept &kept) { return kept.table == table; });
  if (!asked || is_known)
    return;
  const std::vector<uint> read= bits_of(&parts->read_partitions);
  if (read.size() < 2)
    return;
  m_kept.push_back({table, read, bits_of(&parts->lock_partitions), table->all_partitions_pruned_away});
  Silent_evaluation evaluation(m_thd);
  prune_partitions(m_thd, table, asked);
  restore_bits(&parts->lock_partitions, m_kept.back().locked);
  if (bitmap_is_clear_all(&parts->read_partitions))
    bitmap_set_bit(&parts->read_partitions, read[0]);
  table->all_partitions_pruned_away= m_kept.back().are_all_pruned;
}

Pruned_partitions::~Pruned_partitions()
{
  for (const Kept &kept : m_kept)
  {
    restore_bits(&kept.table->part_info->read_partitions, kept.read);
    kept.table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
  }
}

} // namespace pando
