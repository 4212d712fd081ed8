/* Columns that have one value in each group though they are not among the groups: `SELECT d.name, COUNT(*) FROM f JOIN d ON d.id = f.d GROUP BY f.d`.

   What a group determines grows from the columns that it is by:
   - a column that is equal to one of these, or to a constant, in all rows: by WHERE, and by ON of inner joins;
   - all columns of a table of which a unique key is determined, part by part: a group has one row of it, or none. Of the inner table of an outer join
     the key may be determined by ON, if all that ON says is the same for all rows of the group: else some of them have a row, and others none.

   Two texts may be equal and not the same. So a column is determined as its comparisons see it (`m_are_equal`), which is enough to find a row, or as
   a value (`m_are_same`), which is what can be shown. */
#include "select_translate.h"

#include <algorithm>

namespace pando {

using B= Select_bytes;

namespace {

const Field *field_of(Item *item)
{
  const Item *real= item->real_item();
  return real->type() == Item::FIELD_ITEM ? static_cast<const Item_field *>(real)->field : nullptr;
}

/* Whether values that are equal are the same. */
bool is_exact(const Field *field)
{
  switch (field->real_type())
  {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
  case MYSQL_TYPE_NEWDECIMAL:
  case MYSQL_TYPE_NEWDATE:
  case MYSQL_TYPE_DATETIME2:
    return true;
  default:
    return false;
  }
}

bool is_text(const Field *field)
{
  return field->cmp_type() == STRING_RESULT && field->real_type() != MYSQL_TYPE_ENUM && field->real_type() != MYSQL_TYPE_SET;
}

bool is_equality(const Item *condition)
{
  return condition->type() == Item::FUNC_ITEM && static_cast<const Item_func *>(condition)->functype() == Item_func::EQ_FUNC;
}

/* Whether an equality compares the column as groups of it, and keys, do. */
bool is_own_equality(const Item_bool_func *equality, const Field *field, Item *other)
{
  if (is_exact(field))
    return other->cmp_type() == field->cmp_type();
  return is_text(field) && other->cmp_type() == STRING_RESULT && equality->compare_collation() == field->charset();
}

class Determined
{
public:
  explicit Determined(SELECT_LEX *select)
  {
    for (const ORDER *group= select->join->group_list; group; group= group->next)
      if (const Field *field= field_of(*group->item))
      {
        add(&m_are_equal, field);
        if (is_exact(field))
          add(&m_are_same, field);
      }
    add_conjuncts(select->join->conds, &m_always);
    List_iterator_fast<TABLE_LIST> tables(select->leaf_tables);
    while (TABLE_LIST *list= tables++)
    {
      for (TABLE_LIST *nest= list; nest && !is_outer_joined(nest); nest= nest->embedding)
        if (!is_within_outer_join(nest->embedding))
          add_conjuncts(nest->on_expr, &m_always);
      if (list->table && !list->is_view_or_derived())
        m_lists.push_back(list);
    }
    while (grows())
      ;
  }

  bool has_row(const TABLE *table) const { return std::find(m_tables.begin(), m_tables.end(), table) != m_tables.end(); }
  bool has_value(const Field *field) const { return has(m_are_same, field); }

private:
  static bool has(const std::vector<const Field *> &fields, const Field *field)
  {
    return std::find(fields.begin(), fields.end(), field) != fields.end();
  }

  static bool add(std::vector<const Field *> *fields, const Field *field)
  {
    if (has(*fields, field))
      return false;
    fields->push_back(field);
    return true;
  }

  static void add_conjuncts(Item *item, std::vector<Item *> *to)
  {
    if (!item)
      return;
    if (item->type() != Item::COND_ITEM)
      to->push_back(item);
    else if (static_cast<Item_cond *>(item)->functype() == Item_func::COND_AND_FUNC)
    {
      List_iterator_fast<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
      while (Item *part= parts++)
        add_conjuncts(part, to);
    }
    else
      to->push_back(item);
  }

  static bool is_within_outer_join(const TABLE_LIST *nest)
  {
    for (; nest; nest= nest->embedding)
      if (is_outer_joined(nest))
        return true;
    return false;
  }

  /* Whether the condition says of this column that it is equal to something that the group determines. */
  bool equates(Item *condition, const Field *field) const
  {
    if (!is_equality(condition))
      return false;
    const Item_bool_func *equality= static_cast<Item_bool_func *>(condition);
    for (uint side= 0; side < 2; side++)
    {
      Item *other= equality->arguments()[1 - side];
      if (field_of(equality->arguments()[side]) != field || !is_own_equality(equality, field, other))
        continue;
      const Field *other_field= field_of(other);
      if (other->basic_const_item() ||
          (other_field && has(m_are_equal, other_field) && is_own_equality(equality, other_field, equality->arguments()[side])))
        return true;
    }
    return false;
  }

  static bool is_any(const std::vector<Item *> &conditions, const std::function<bool(Item *)> &is)
  {
    return std::any_of(conditions.begin(), conditions.end(), is);
  }

  /* Whether a condition of ON is met or not by all rows of a group alike, whatever row of the table they are joined with. */
  bool is_of_group(Item *condition, const TABLE *table) const
  {
    if (condition->with_subquery() || (condition->used_tables() & RAND_TABLE_BIT))
      return false;
    List<Item_field> fields;
    condition->walk(&Item::collect_item_field_processor, false, &fields);
    List_iterator_fast<Item_field> each(fields);
    while (const Item_field *one= each++)
      if (!one->field || (one->field->table != table && !has(m_are_same, one->field) && !equates_with(condition, one->field, table)))
        return false;
    return true;
  }

  bool equates_with(Item *condition, const Field *field, const TABLE *table) const
  {
    for (Field **own= table->field; *own; own++)
      if (equates(condition, *own) && has(m_are_equal, field))
        return true;
    return false;
  }

  bool finds_row(const TABLE *table, const std::vector<Item *> &on) const
  {
    const auto is_known= [&](const KEY_PART_INFO &part) {
      const auto equates_it= [&](Item *condition) { return equates(condition, part.field); };
      /* Many rows have NULL, which is equal to nothing. */
      return !(part.key_part_flag & HA_PART_KEY_SEG) &&
             ((has(m_are_equal, part.field) && !part.field->real_maybe_null()) || is_any(on, equates_it) || is_any(m_always, equates_it));
    };
    for (uint number= 0; number < table->s->keys; number++)
    {
      const KEY &key= table->key_info[number];
      if ((key.flags & HA_NOSAME) && key.algorithm != HA_KEY_ALG_LONG_HASH &&
          std::all_of(key.key_part, key.key_part + key.user_defined_key_parts, is_known))
        return true;
    }
    return false;
  }

  bool add_row_of(TABLE_LIST *list)
  {
    const TABLE *table= list->table;
    std::vector<Item *> on;
    if (is_outer_joined(list) && !is_within_outer_join(list->embedding))
    {
      add_conjuncts(list->on_expr, &on);
      if (is_any(on, [&](Item *condition) { return !is_of_group(condition, table); }))
        on.clear();
    }
    if (has_row(table) || !finds_row(table, on))
      return false;
    m_tables.push_back(table);
    for (Field **field= table->field; *field; field++)
    {
      add(&m_are_equal, *field);
      add(&m_are_same, *field);
    }
    return true;
  }

  bool add_equal_ones(Item *condition)
  {
    if (!is_equality(condition))
      return false;
    bool grows= false;
    for (uint side= 0; side < 2; side++)
    {
      const Field *field= field_of(static_cast<Item_func *>(condition)->arguments()[side]);
      if (!field || has(m_are_equal, field) || !equates(condition, field))
        continue;
      grows|= add(&m_are_equal, field);
      if (is_exact(field))
        add(&m_are_same, field);
    }
    return grows;
  }

  bool grows()
  {
    bool grows= false;
    for (Item *condition : m_always)
      grows|= add_equal_ones(condition);
    for (TABLE_LIST *list : m_lists)
      grows|= add_row_of(list);
    return grows;
  }

  /* What all rows meet. */
  std::vector<Item *> m_always;
  std::vector<TABLE_LIST *> m_lists;
  std::vector<const Field *> m_are_equal, m_are_same;
  std::vector<const TABLE *> m_tables;
};

template<typename Parts, typename Function>
void each_source(const Parts &parts, const Function &function)
{
  for (const auto &part : parts)
  {
    each_source(part.nest, function);
    if (part.source && part.source->number >= 0 && part.source->table)
      function(*part.source);
  }
}

} // namespace

/* Where nothing is grouped by more than the rows say (ROLLUP). */
void Select_translator::put_determined(SELECT_LEX *select, const std::vector<Part> &parts, std::string *to)
{
  std::vector<uint> slots;
  if (select->join->group_list && select->olap != ROLLUP_TYPE)
  {
    const Determined determined(select);
    each_source(parts, [&](const Source &source) {
      const bool has_row= determined.has_row(source.table);
      for (const Column &column : source.columns)
        if (has_row || determined.has_value(column.field))
          slots.push_back(column.slot);
    });
  }
  B::small(to, uint32_t(slots.size()));
  for (const uint slot : slots)
    B::small(to, slot);
}

} // namespace pando
