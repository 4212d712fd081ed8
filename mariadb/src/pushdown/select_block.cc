/* A block of a query, said in the engine's words: a SELECT with its WHERE, GROUP BY, HAVING and select list; its order: select_order.cc. */
#include "select_block.h"
#include "select_silence.h"

#include <algorithm>

namespace pando {

using B= Select_bytes;

static bool has_unknown_clause(const SELECT_LEX *select)
{
  return (select->olap != UNSPECIFIED_OLAP_TYPE && select->olap != ROLLUP_TYPE) || select->tvc || select->sj_nests.elements ||
         select->limit_params.with_ties;
}

/* Where the server sorts rows to make groups, it takes NULL for the value before it if that is a DECIMAL and no column's
   (`Cached_item_decimal::cmp`). NULL stands behind values where an order descends. */
static bool groups_lose_null(const SELECT_LEX *select)
{
  JOIN *join= select->join;
  bool descends= false, is_computed= false;
  for (const ORDER *one= join->order; one; one= one->next)
    descends|= one->direction == ORDER::ORDER_DESC;
  for (const ORDER *group= join->group_list; group; group= group->next)
  {
    const Item *item= (*group->item)->real_item();
    descends|= group->direction == ORDER::ORDER_DESC;
    is_computed|= item->type() != Item::FIELD_ITEM && item->cmp_type() == DECIMAL_RESULT && item->maybe_null();
  }
  return descends && is_computed && (!join->tmp_table_param.quick_group || select->olap == ROLLUP_TYPE);
}

/* Where the server keeps groups in a temporary table, an expression gets an average with the table's digits, else with all: the
   query is answered if that comes to the same. */
bool Select_translator::the_same_rounded(Said *said, const std::function<bool(Said *)> &say)
{
  const bool rounds= m_rounds_averages, has_average= m_has_inner_average;
  m_rounds_averages= m_has_inner_average= false;
  bool is_said= say(said);
  if (is_said && m_has_inner_average)
  {
    Said rounded;
    m_rounds_averages= true;
    is_said= say(&rounded) && (rounded.kind == said->kind || refuse("an average inside of an expression"));
    std::string is_same;
    B::compare(&is_same, PANDO_COMPARISON_SAME);
    is_same+= said->bytes + rounded.bytes;
    B::make_sure(&said->bytes, is_same);
  }
  m_rounds_averages= rounds;
  m_has_inner_average= has_average;
  return is_said;
}

/* What the server makes of a TINYINT and a YEAR is a TINYINT, which no year fits into where it is kept. */
static bool is_cut_year(Item *item, uint depth= 0)
{
  static const uint DEPTH_MAX= 64;
  const Item *real= item->real_item();
  if (item->field_type() != MYSQL_TYPE_TINY || depth > DEPTH_MAX)
    return item->field_type() == MYSQL_TYPE_YEAR;
  if (real->type() != Item::FUNC_ITEM && real->type() != Item::SUM_FUNC_ITEM)
    return false;
  const Item_func_or_sum *function= static_cast<const Item_func_or_sum *>(real);
  Item **arguments= const_cast<Item_func_or_sum *>(function)->arguments();
  return std::any_of(arguments, arguments + function->argument_count(), [depth](Item *argument) {
    return argument->cols() == 1 && is_cut_year(argument, depth + 1);
  });
}

/* What groups are made by. Quotients are rounded in a temporary table, and not where the server sorts: they may not differ within a
   group. `exact` becomes what says so. */
bool Select_translator::group(Item *item, Said *said, std::string *exact)
{
  if (!expression(item, said))
    return false;
  if (Field *field= filled_field(item))
  {
    without_filling(field, said);
    m_filled_groups.insert(field);
    return true;
  }
  if (!makes_groups(item))
    return false;
  if (item->field_type() == MYSQL_TYPE_TINY && is_cut_year(item))
    return refuse("a year that is kept as a TINYINT");
  hold_group(item, said);
  if (!said->is_exact)
    return true;
  if (said->kind.tag != Value_kind::DECIMAL || item->with_sum_func())
    return refuse("groups of quotients");
  const Said quotient= *said;
  if (said->kind.of > item->decimals)
    convert(said, Value_kind{Value_kind::DECIMAL, item->decimals});
  said->is_exact= false;
  m_quotients.emplace_back(quotient.bytes, said->bytes);
  B::compare(exact, PANDO_COMPARISON_SAME);
  for (const PandoFunction extreme : {PANDO_FUNCTION_MIN, PANDO_FUNCTION_MAX})
  {
    B::aggregate(exact, extreme, quotient.kind);
    *exact+= quotient.bytes;
  }
  return true;
}

/* Whether there is a quotient within it that groups are made by: it may be rounded there. */
bool Select_translator::hides_quotient(const Said &said) const
{
  return std::any_of(m_quotients.begin(), m_quotients.end(), [&said](const std::pair<std::string, std::string> &one) {
    return said.bytes != one.second && said.bytes.find(one.first) != std::string::npos;
  });
}

/* A column of the select list; where the server keeps it in a table, rounded as it is there. */
/* A DOUBLE with so many digits that a derived table keeps. The optimizer may take conditions on it into the derived table, where it has all digits, so these
   have to be the same; but not of windows. Of each row of a table some would not be. */
bool Select_translator::keep_digits(Item *item, Use use, Said *said)
{
  static const uint WHOLE_MAX= 30;
  const bool is_window= item->real_item()->type() == Item::WINDOW_FUNC_ITEM;
  if (use != Use::DERIVED || item->max_length <= item->decimals || !(is_window || item->with_sum_func()))
    return refuse("a DOUBLE that is kept with fewer digits");
  std::string bytes;
  B::byte(&bytes, PANDO_TAG_KEPT);
  B::byte(&bytes, uint8_t(item->decimals));
  B::byte(&bytes, uint8_t(std::min<uint>(item->max_length - item->decimals, WHOLE_MAX)));
  B::byte(&bytes, !is_window);
  said->bytes= bytes + said->bytes;
  return true;
}

bool Select_translator::output(Item *item, Use use, Said *said)
{
  if (!expression(item, said))
    return false;
  /* The server's idea of how many digits a quotient has is not always right, and the table that holds the answer would cut it. */
  if (said->kind.tag == Value_kind::DECIMAL && is_constant(item->real_item()) &&
      said->digits - said->kind.of > double(item->decimal_precision()) - item->decimals + 0.01)
    return refuse("a constant that its type does not hold");
  /* The year 0 is shown as 0000 out of a column, of a temporary table, too, and as 0 where it is computed. */
  if (use == Use::TOP && item->field_type() == MYSQL_TYPE_YEAR && item->real_item()->type() != Item::FIELD_ITEM)
    return refuse("a year that is computed");
  /* Of an extreme, the type is that of what it is of. */
  Item *shown= item->type() == Item::SUM_FUNC_ITEM && static_cast<Item_sum *>(item)->get_arg_count()
                 ? static_cast<Item_sum *>(item)->get_arg(0) : item;
  if (shown->field_type() == MYSQL_TYPE_TINY && is_cut_year(shown))
    return refuse("a year that is kept as a TINYINT");
  /* Of a query as a value the server knows no members, and what holds the answer would show none. */
  if ((said->kind.tag == Value_kind::ENUM || said->kind.tag == Value_kind::SET) && item->real_item()->type() != Item::FIELD_ITEM)
    return refuse("an ENUM or a SET that is no column");
  /* Whether it is bits or a number depends on where it is computed. */
  if (item->field_type() == MYSQL_TYPE_BIT && item->real_item()->type() == Item::FUNC_ITEM)
    return refuse("a choice of BITs");
  const bool is_stored= use == Use::TOP || use == Use::DERIVED || use == Use::BRANCH;
  if (said->kind.tag == Value_kind::DECIMAL && is_stored)
  {
    /* A DECIMAL that is inserted may keep more digits than it shows. */
    if (use == Use::TOP && (said->is_exact || said->is_mixed) && is_stored_by_statement(m_thd))
      return refuse("a quotient that is inserted");
    if (use == Use::TOP && (said->is_exact || said->is_mixed || said->kind.of > item->decimals) && sets_variables(m_thd))
      return refuse("a quotient that is set to a variable");
    if (said->kind.of > item->decimals)
      convert(said, Value_kind{Value_kind::DECIMAL, item->decimals});
  }
  else if (said->kind.tag == Value_kind::REAL && (use == Use::DERIVED || use == Use::BRANCH || use == Use::IN) &&
           item->decimals < NOT_FIXED_DEC && item->real_item()->type() != Item::FIELD_ITEM &&
           (use != Use::DERIVED || item->type() != Item::SUM_FUNC_ITEM))
    return keep_digits(item, use, said);
  else if ((use == Use::MERGED && said->is_exact) || (use == Use::IN && (said->is_exact || said->is_mixed)))
    return refuse("a quotient whose digits depend on the plan");
  return true;
}

/* FROM and WHERE. */
bool Select_translator::from_where(Block *block)
{
  SELECT_LEX *select= block->select;
  JOIN *join= block->join;
  const Use use= block->use;
  /* A derived table shows what it has, whatever conditions are about it. */
  if (use != Use::BRANCH)
    m_is_in_having= block->was_condition && use != Use::DERIVED && use != Use::TOP;
  m_is_condition= m_looks_at_rows= true;
  bool is_said= from(&select->top_join_list, &block->from) && on(&block->from);
  Said where;
  m_is_always_met= use == Use::TOP;
  m_is_conjunct= m_is_optimized= true;
  if (is_said && join->conds)
    is_said= condition(join->conds, &where);
  m_is_always_met= m_is_conjunct= m_is_optimized= false;
  block->is_grouped= join->group_list || select->agg_func_used() || join->tmp_table_param.sum_func_count;
  m_looks_at_rows= !block->is_grouped;
  block->counts_rows= use == Use::TOP && block->is_grouped && !join->group_list && !warnings.empty();
  /* Groups are said as the select list is: else they would not be found in it. */
  m_is_condition= block->was_condition;
  B::byte(&block->where, join->conds != nullptr);
  block->where+= where.bytes;
  return is_said;
}

bool Select_translator::group_by(Block *block)
{
  JOIN *join= block->join;
  const bool is_quick= join->tmp_table_param.quick_group;
  /* Where the server sorts rows for groups, it shows the value that the query had last. */
  const bool is_sorted= block->makes_rollup() || !is_quick;
  for (ORDER *group= join->group_list; group; group= group->next, block->group_count++)
  {
    Item *item= *group->item;
    Said one;
    /* Rows of one table may be sorted by them before they are joined. */
    m_is_order= !is_quick;
    m_order_can_fail= false;
    const bool heard_rows= m_hears_rows;
    m_hears_rows&= block->use == Use::TOP;
    const bool is_said= is_sorted && item->with_subquery() ? refuse("sorted groups of a query") :
                                                             this->group(item, &one, &block->exact_groups);
    m_hears_rows= heard_rows;
    m_is_order= false;
    m_fails_in_order|= m_order_can_fail && my_count_bits(item->used_tables() & ~PSEUDO_TABLE_BITS) == 1;
    if (!is_said)
      return false;
    block->groups+= one.bytes;
    block->each_group.push_back(one.bytes);
    block->order_by_groups+= one.bytes;
    B::byte(&block->order_by_groups, group->direction == ORDER::ORDER_DESC);
    block->has_long_text|= one.kind.tag == Value_kind::TEXT && is_sorted_by_prefix(m_thd, item);
  }
  block->exact_count= uint(m_quotients.size());
  return !block->exact_count || !(block->makes_rollup() || block->select->have_window_funcs()) || refuse("groups of quotients");
}

bool Select_translator::having(Block *block)
{
  Item *item= block->join->having ? block->join->having : block->join->tmp_having;
  Said said;
  bool is_said= true;
  const bool was_in_having= m_is_in_having;
  m_is_condition= m_is_in_having= true;
  if (item)
    is_said= the_same_rounded(&said, [&](Said *to) {
               m_is_always_met= block->use == Use::TOP && !m_rounds_averages;
               return condition(item, to);
             }) &&
             (!hides_quotient(said) || refuse("a quotient inside of an expression"));
  m_is_condition= block->was_condition;
  m_is_in_having= was_in_having;
  std::string *to= &block->having;
  B::byte(to, item || block->exact_count);
  if (block->exact_count)
  {
    B::byte(to, PANDO_TAG_SURE);
    B::list(to, PANDO_TAG_AND, block->exact_count);
    *to+= block->exact_groups;
    if (!item)
      put_number(to, 1, Value_kind{Value_kind::SIGNED, 0});
  }
  *to+= said.bytes;
  return is_said;
}

/* An item of the select list. */
bool Select_translator::select_item(Item *item, Block *block)
{
  const Use use= block->use;
  Said one;
  /* The server computes all rows of a derived table, those without a partner in the joins above, too. */
  m_is_order= use == Use::DERIVED;
  m_order_can_fail= false;
  const uint widened_met= m_widened_met;
  const bool heard_rows= m_hears_rows;
  m_hears_rows&= use == Use::TOP && !block->is_cut;
  m_shown= block->is_shown ? item->real_item() : nullptr;
  const bool is_said= the_same_rounded(&one, [&](Said *to) { return output(item, use, to); });
  m_shown= nullptr;
  m_hears_rows= heard_rows;
  const bool is_widened= m_widened_met != widened_met;
  m_is_order= false;
  m_fails_in_order|= m_order_can_fail;
  if (!is_said)
    return false;
  /* In a temporary table a BIT may become a number, and is shown as one. */
  if (block->is_distinct || use == Use::BRANCH || use == Use::IN)
    hold_group(item, &one);
  if (block->is_distinct && !makes_groups(item))
    return false;
  if (one.kind.tag == Value_kind::BIT && (block->is_grouped || block->is_distinct))
    return refuse("different BITs");
  if (hides_quotient(one))
    return refuse("a quotient inside of an expression");
  if (one.kind.tag == Value_kind::DECIMAL && (use == Use::TOP || use == Use::DERIVED || use == Use::BRANCH))
    hold(item, &one);
  const Value_kind own= one.kind;
  if (use == Use::BRANCH && !as_column_of_union(block->union_types->at(block->output_count), item, &one))
    return false;
  block->has_variable_output|= !is_constant(item);
  const uint slot= m_next_slot++;
  if (use == Use::BRANCH && (is_widened || (own.is_integer() && !one.kind.is_integer())))
    m_widened_columns.insert(block->output_count);
  if (is_widened)
    m_widened.insert(slot);
  if (use == Use::MERGED && (one.is_mixed || one.mixes_zero))
  {
    Said *mixed= &m_mixed[slot];
    mixed->is_mixed= one.is_mixed;
    mixed->mixes_zero= one.mixes_zero;
    mixed->digits= one.digits;
  }
  B::small(&block->outputs, slot);
  block->outputs+= one.bytes;
  std::string name;
  B::column(&name, slot, one.kind);
  /* A branch is sorted by what its column was before it became one of all branches. */
  if (one.kind == own)
    block->names[item]= Said{name, one.kind};
  block->order_by_outputs+= name;
  B::byte(&block->order_by_outputs, false);
  block->has_long_text|= block->is_distinct && one.kind.tag == Value_kind::TEXT && is_sorted_by_prefix(m_thd, item);
  block->slots->push_back(slot);
  block->kinds->push_back(one.kind);
  return true;
}

bool Select_translator::select_list(Block *block)
{
  List_iterator_fast<Item> items(block->select->item_list);
  for (Item *item; block->use != Use::EXISTS && (item= items++); block->output_count++)
    if (!select_item(item, block))
      return false;
  if (block->counts_rows)
  {
    B::small(&block->outputs, m_next_slot++);
    B::count_of_rows(&block->outputs);
    block->output_count++;
    is_counted= true;
  }
  return true;
}

/* GROUP BY, and what is said of the groups. */
bool Select_translator::of_groups(Block *block)
{
  const Restored outer_groups(m_groups);
  const Restored outer_quotients(m_quotients);
  const Restored outer_filled(m_filled);
  const Restored outer_filled_groups(m_filled_groups);
  m_quotients.clear();
  m_filled_groups.clear();
  if (!group_by(block))
    return false;
  m_groups= block->join->group_list;
  m_filled.swap(m_filled_groups);
  return having(block) && select_list(block) && order_by(block);
}

bool Select_translator::block(SELECT_LEX *select, Use use, std::string *to, std::vector<uint> *slots,
                              std::vector<Value_kind> *kinds)
{
  Nesting nesting(this);
  if (!nesting.is_allowed() || !select->join || has_unknown_clause(select) || select->join->procedure)
    return refuse("a clause");
  if (groups_lose_null(select))
    return refuse("descending groups of DECIMAL expressions");
  if (!keeps_signs(select, use))
    return refuse("a difference of unsigned DECIMALs that is kept in a table");
  Block block(*this, select, use, slots, kinds);
  const Restored outer_select(m_select);
  const Restored outer_bending(m_is_bending);
  const Restored outer_condition(m_is_condition);
  const Restored outer_looking(m_looks_at_rows);
  const Restored outer_having(m_is_in_having);
  const Restored outer_hearing(m_hears_conditions);
  const Restored outer_rows(m_hears_rows);
  /* The server asks no more rows when it has so many different ones. */
  m_hears_conditions&= !block.is_distinct || !block.is_cut || block.join->order;
  m_hears_rows&= m_hears_conditions;
  m_select= select;
  m_is_bending= false;
  m_union_types= nullptr;
  if (!from_where(&block) || !of_groups(&block))
    return false;
  /* The server makes LIMIT 1 of it, whatever the LIMIT says. */
  if (block.is_distinct && use != Use::EXISTS && !block.has_variable_output)
    return refuse("DISTINCT of constants");
  if (use == Use::TOP && !block.join->order)
    implied_order(&block);
  if (use == Use::TOP && is_of_rows(select) && !order_of_scan(select->leaf_tables.head()->table, &block.order, &block.order_count))
    return false;
  std::string sources, limit, of_rollup;
  if (!limits(block, &limit))
    return false;
  if (block.has_long_text && block.makes_rollup())
    return refuse("a clause");
  if (!rollup(select, block.each_group, &of_rollup) || !put_from(block.from, &sources))
    return false;
  *to+= sources + block.where;
  B::small(to, block.group_count);
  *to+= block.groups;
  B::byte(to, block.is_grouped);
  *to+= block.having;
  B::small(to, block.output_count);
  *to+= block.outputs;
  B::byte(to, use != Use::EXISTS && block.is_distinct);
  B::small(to, block.order_count);
  *to+= block.order + limit + of_rollup;
  put_determined(select, block.from, to);
  B::byte(to, use == Use::TOP && shows_first_texts());
  B::small(to, 0); /* no others */
  return true;
}

} // namespace pando
