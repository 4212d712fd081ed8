/* SELECTs of any shape, said in the engine's words: FROM, and what the blocks of a query have. */
#include "select_translate.h"
#include "column_place.h"
#include "select_silence.h"

#include <algorithm>

namespace pando {

/* Tables of a query at most. */
static const uint TABLES_MAX= 32;
static const uint SELECT_NODES_MAX= 8192;
static const uint SELECT_DEPTH_MAX= 64;

using B= Select_bytes;

bool Select_translator::Nesting::is_allowed() const
{
  return ++m_translator->m_nodes <= SELECT_NODES_MAX && m_translator->m_depth <= SELECT_DEPTH_MAX &&
         has_stack(m_translator->m_thd);
}

static bool has_several_tables(const THD *thd)
{
  uint count= 0;
  for (TABLE_LIST *one= thd->lex->query_tables; one && count < 2; one= one->next_global)
    count+= !one->is_view_or_derived();
  return count > 1;
}

/* Where warnings are errors, the server has to come to them itself. */
Select_translator::Select_translator(THD *thd)
  : m_thd(thd), m_has_joins(has_several_tables(thd)), m_hears_constants(!is_stored_by_statement(thd)) {}

bool Select_translator::translate(SELECT_LEX *select)
{
  std::vector<uint> slots;
  if (!unit(select->master_unit(), Use::TOP, &m_bytes, &slots, &outputs))
    return false;
  if (m_fails_in_order && tables.size() > 1)
    return refuse("an order of several tables that can fail");
  B::small(&m_bytes, m_asked_count);
  m_bytes+= m_asked;
  return true;
}

bool Select_translator::unit(SELECT_LEX_UNIT *unit, Use use, std::string *to, std::vector<uint> *slots,
                             std::vector<Value_kind> *kinds)
{
  SELECT_LEX *first= unit->first_select();
  if (first && first->next_select())
    return together(unit, use, to, slots, kinds);
  if (!first || unit->fake_select_lex)
    return refuse("a UNION");
  return block(first, use, to, slots, kinds);
}

bool is_sorted_by_prefix(const THD *thd, const Item *item)
{
  static const uint WEIGHT_BYTES= 3; /* of a character, with most collations */
  return item->max_char_length() * ulonglong(std::max(WEIGHT_BYTES, item->collation.collation->mbmaxlen)) > thd->variables.max_sort_length;
}

static bool has_unknown_clause(const SELECT_LEX *select)
{
  return (select->olap != UNSPECIFIED_OLAP_TYPE && select->olap != ROLLUP_TYPE) || select->tvc || select->sj_nests.elements ||
         select->limit_params.with_ties;
}

/* Where the query has no order, its groups come as the server gives them: sorted; and so do different rows. */
static uint implied_order(const SELECT_LEX *select, const std::string &groups, const std::string &outputs,
                          uint output_count, std::string *to)
{
  const bool is_grouped= select->join->group_list, is_distinct= select->options & SELECT_DISTINCT;
  /* The engine sorts such groups itself; windows leave their rows sorted. */
  if ((!is_grouped && !is_distinct) || select->olap == ROLLUP_TYPE || select->have_window_funcs())
    return 0;
  uint count= output_count;
  if (is_grouped && !is_distinct)
  {
    count= 0;
    for (const ORDER *group= select->join->group_list; group; group= group->next)
      count++;
  }
  *to= is_distinct ? outputs : groups;
  return count;
}

/* Where the server keeps groups in a temporary table, an expression gets an average with the table's digits, else with all: the
   query is answered if that comes to the same. */
template<typename Say> bool Select_translator::the_same_rounded(Said *said, Say say)
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

bool Select_translator::block(SELECT_LEX *select, Use use, std::string *to, std::vector<uint> *slots,
                              std::vector<Value_kind> *kinds)
{
  Nesting nesting(this);
  JOIN *join= select->join;
  if (!nesting.is_allowed() || !join || has_unknown_clause(select) || join->procedure)
    return refuse("a clause");
  if (groups_lose_null(select))
    return refuse("descending groups of DECIMAL expressions");
  if (!keeps_signs(select, use))
    return refuse("a difference of unsigned DECIMALs that is kept in a table");
  SELECT_LEX *const outer= m_select;
  m_select= select;
  const bool is_bending= m_is_bending;
  m_is_bending= false;
  const std::vector<Item *> *const union_types= m_union_types;
  m_union_types= nullptr;
  std::vector<Part> parts;
  std::string where, groups, having, outputs, order, limit, order_by_groups, order_by_outputs;
  bool has_long_text= false;
  const bool was_condition= m_is_condition, was_in_having= m_is_in_having;
  /* A derived table shows what it has, whatever conditions are about it. */
  if (use != Use::BRANCH)
    m_is_in_having= was_condition && use != Use::DERIVED && use != Use::TOP;
  m_is_condition= true;
  bool is_said= from(&select->top_join_list, &parts) && on(&parts);
  Said said;
  m_is_always_met= use == Use::TOP;
  m_is_conjunct= m_is_optimized= true;
  if (is_said && join->conds)
    is_said= condition(join->conds, &said);
  m_is_always_met= m_is_conjunct= m_is_optimized= false;
  const bool is_grouped= join->group_list || select->agg_func_used() || join->tmp_table_param.sum_func_count;
  const bool counts_rows= use == Use::TOP && is_grouped && !join->group_list && !warnings.empty();
  /* Groups are said as the select list is: else they would not be found in it. */
  m_is_condition= was_condition;
  B::byte(&where, join->conds != nullptr);
  where+= said.bytes;
  uint group_count= 0, exact_count= 0;
  std::string exact;
  std::vector<std::string> said_groups;
  std::vector<std::pair<std::string, std::string>> quotients;
  quotients.swap(m_quotients);
  std::set<const Field *> outer_filled_groups;
  outer_filled_groups.swap(m_filled_groups);
  for (ORDER *group= join->group_list; is_said && group; group= group->next, group_count++)
  {
    Said one;
    /* Rows of one table may be sorted by them before they are joined. */
    m_is_order= !join->tmp_table_param.quick_group;
    m_order_can_fail= false;
    /* Where the server sorts rows for groups, it shows the value that the query had last. */
    const bool is_sorted= select->olap == ROLLUP_TYPE || !join->tmp_table_param.quick_group;
    const bool heard_rows= m_hears_rows;
    m_hears_rows&= use == Use::TOP;
    is_said= is_sorted && (*group->item)->with_subquery() ? refuse("sorted groups of a query") : this->group(*group->item, &one, &exact);
    m_hears_rows= heard_rows;
    m_is_order= false;
    m_fails_in_order|= m_order_can_fail && my_count_bits((*group->item)->used_tables() & ~PSEUDO_TABLE_BITS) == 1;
    exact_count= uint(m_quotients.size());
    groups+= one.bytes;
    said_groups.push_back(one.bytes);
    order_by_groups+= one.bytes;
    B::byte(&order_by_groups, group->direction == ORDER::ORDER_DESC);
    has_long_text|= one.kind.tag == Value_kind::TEXT && is_sorted_by_prefix(m_thd, *group->item);
  }
  if (is_said && exact_count && (select->olap == ROLLUP_TYPE || select->have_window_funcs()))
    is_said= refuse("groups of quotients");
  ORDER *const outer_groups= m_groups;
  m_groups= join->group_list;
  m_filled.swap(m_filled_groups);
  Said of_having;
  Item *having_item= join->having ? join->having : join->tmp_having;
  const bool is_in_having= m_is_in_having;
  m_is_condition= m_is_in_having= true;
  if (is_said && having_item)
    is_said= the_same_rounded(&of_having, [&](Said *to) {
               m_is_always_met= use == Use::TOP && !m_rounds_averages;
               return condition(having_item, to);
             }) &&
             (!hides_quotient(of_having) || refuse("a quotient inside of an expression"));
  m_is_condition= was_condition;
  m_is_in_having= is_in_having;
  B::byte(&having, having_item || exact_count);
  if (exact_count)
  {
    B::byte(&having, PANDO_TAG_SURE);
    B::list(&having, PANDO_TAG_AND, exact_count);
    having+= exact;
    if (!having_item)
      put_number(&having, 1, Value_kind{Value_kind::SIGNED, 0});
  }
  having+= of_having.bytes;
  List_iterator_fast<Item> items(select->item_list);
  uint output_count= 0;
  bool has_variable_output= false;
  /* The server need not compute what it does not show. */
  const Lex_select_limit &limits_of= use == Use::BRANCH ? select->limit_params : select->master_unit()->global_parameters()->limit_params;
  const bool is_cut= has_limit(limits_of);
  const bool is_shown= use == Use::TOP && !(select->options & SELECT_DISTINCT) && !is_stored_by_statement(m_thd);
  std::map<const Item *, Said> names;
  for (Item *item; is_said && (item= items++); output_count++)
  {
    if (use == Use::EXISTS)
      break;
    Said one;
    /* The server computes all rows of a derived table, those without a partner in the joins above, too. */
    m_is_order= use == Use::DERIVED;
    m_order_can_fail= false;
    const uint widened_met= m_widened_met;
    const bool heard_rows= m_hears_rows;
    m_hears_rows&= use == Use::TOP && !is_cut;
    m_shown= is_shown ? item->real_item() : nullptr;
    is_said= the_same_rounded(&one, [&](Said *to) { return output(item, use, to); });
    m_shown= nullptr;
    m_hears_rows= heard_rows;
    const bool is_widened= m_widened_met != widened_met;
    m_is_order= false;
    m_fails_in_order|= m_order_can_fail;
    /* In a temporary table a BIT may become a number, and is shown as one. */
    if (is_said && ((select->options & SELECT_DISTINCT) || use == Use::BRANCH))
      hold_group(item, &one);
    is_said= is_said && (!(select->options & SELECT_DISTINCT) || makes_groups(item)) &&
             (one.kind.tag != Value_kind::BIT || !(is_grouped || (select->options & SELECT_DISTINCT)) || refuse("different BITs")) &&
             (!hides_quotient(one) || refuse("a quotient inside of an expression"));
    if (!is_said)
      break;
    if (one.kind.tag == Value_kind::DECIMAL && (use == Use::TOP || use == Use::DERIVED || use == Use::BRANCH))
      hold(item, &one);
    const Value_kind own= one.kind;
    if (use == Use::BRANCH && !(is_said= as_column_of_union(union_types->at(output_count), item, &one)))
      break;
    has_variable_output|= !is_constant(item);
    const uint slot= m_next_slot++;
    if (use == Use::BRANCH && (is_widened || (own.is_integer() && !one.kind.is_integer())))
      m_widened_columns.insert(output_count);
    if (is_widened)
      m_widened.insert(slot);
    B::small(&outputs, slot);
    outputs+= one.bytes;
    std::string name;
    B::column(&name, slot, one.kind);
    /* A branch is sorted by what its column was before it became one of all branches. */
    if (one.kind == own)
      names[item]= Said{name, one.kind};
    order_by_outputs+= name;
    B::byte(&order_by_outputs, 0);
    has_long_text|= (select->options & SELECT_DISTINCT) && one.kind.tag == Value_kind::TEXT && is_sorted_by_prefix(m_thd, item);
    slots->push_back(slot);
    kinds->push_back(one.kind);
  }
  if (is_said && counts_rows)
  {
    B::small(&outputs, m_next_slot++);
    B::count_of_rows(&outputs);
    output_count++;
    is_counted= true;
  }
  uint order_count= 0;
  const bool wants_order= use == Use::TOP || select->limit_params.select_limit;
  for (ORDER *one= join->order; is_said && wants_order && use != Use::EXISTS && one; one= one->next, order_count++)
  {
    Said by;
    const auto name= names.find(*one->item);
    const bool has_name= name != names.end();
    const bool is_said_again= !has_name || !(*one->item)->with_subquery();
    const bool heard_rows= m_hears_rows;
    m_hears_rows&= use == Use::TOP && !is_cut;
    m_shown= is_shown && !is_cut ? (*one->item)->real_item() : nullptr;
    const auto say= [&](Said *to) { return order_of(select, *one->item, to); };
    bool is_near= false;
    if (is_said_again)
      is_said= (is_shown && is_cut ? order_near(*one->item, say, &by, &is_near) : say(&by)) && (!hides_quotient(by) || refuse("a quotient inside of an expression"));
    m_shown= nullptr;
    m_hears_rows= heard_rows;
    const bool is_distinct= select->options & SELECT_DISTINCT, is_long= is_sorted_by_prefix(m_thd, *one->item);
    if (has_name && !is_near && (!is_long || name->second.kind.tag != Value_kind::TEXT))
      by= name->second;
    else if (is_said)
      is_said= (is_said_again || refuse("an order by long texts")) && sort_by_all(*one->item, !is_distinct, &by);
    if (has_name && is_distinct)
      by= name->second;
    order+= by.bytes;
    B::byte(&order, one->direction == ORDER::ORDER_DESC);
  }
  m_groups= outer_groups;
  m_filled.swap(m_filled_groups);
  m_filled_groups.swap(outer_filled_groups);
  m_quotients.swap(quotients);
  /* The server makes LIMIT 1 of it, whatever the LIMIT says. */
  if (is_said && (select->options & SELECT_DISTINCT) && use != Use::EXISTS && !has_variable_output)
    is_said= refuse("DISTINCT of constants");
  if (is_said && use == Use::TOP && !join->order)
    order_count= has_long_text ? 0 : implied_order(select, order_by_groups, order_by_outputs, uint(slots->size()), &order);
  if (is_said && use == Use::TOP && is_of_rows(select))
    is_said= order_of_scan(select->leaf_tables.head()->table, &order, &order_count);
  is_said= is_said && limits(select, use, &limit);
  std::string of_rollup;
  is_said= is_said && (!has_long_text || select->olap != ROLLUP_TYPE || refuse("a clause")) && rollup(select, said_groups, &of_rollup);
  std::string sources;
  is_said= is_said && put_from(parts, &sources);
  m_select= outer;
  m_is_bending= is_bending;
  m_is_condition= was_condition;
  m_is_in_having= was_in_having;
  if (!is_said)
    return false;
  *to+= sources + where;
  B::small(to, group_count);
  *to+= groups;
  B::byte(to, is_grouped);
  *to+= having;
  B::small(to, output_count);
  *to+= outputs;
  B::byte(to, use != Use::EXISTS && (select->options & SELECT_DISTINCT));
  B::small(to, order_count);
  *to+= order + limit;
  *to+= of_rollup;
  put_determined(select, parts, to);
  B::small(to, 0); /* no others */
  return true;
}

/* Whether each group has one row of the table, or none: a unique key of it is among the groups. */
static bool is_determined(SELECT_LEX *select, const TABLE *table)
{
  const auto is_group= [&](const Field *field) {
    for (const ORDER *group= select->join->group_list; group; group= group->next)
    {
      const Item *item= (*group->item)->real_item();
      if (item->type() == Item::FIELD_ITEM && static_cast<const Item_field *>(item)->field == field)
        return true;
    }
    return false;
  };
  for (uint number= 0; number < table->s->keys; number++)
  {
    const KEY &key= table->key_info[number];
    if ((key.flags & (HA_NOSAME | HA_NULL_PART_KEY)) == HA_NOSAME && key.algorithm != HA_KEY_ALG_LONG_HASH &&
        std::all_of(key.key_part, key.key_part + key.user_defined_key_parts,
                    [&](const KEY_PART_INFO &part) { return !(part.key_part_flag & HA_PART_KEY_SEG) && is_group(part.field); }))
      return true;
  }
  return false;
}

void Select_translator::add_determined(SELECT_LEX *select, const std::vector<Part> &parts, std::vector<uint> *to)
{
  for (const Part &part : parts)
  {
    add_determined(select, part.nest, to);
    if (!part.source || part.source->number < 0 || !part.source->table || !is_determined(select, part.source->table))
      continue;
    for (const Column &column : part.source->columns)
      to->push_back(column.slot);
  }
}

/* Where nothing is grouped by more than the rows say (ROLLUP), columns of such a table have one value in each group. */
void Select_translator::put_determined(SELECT_LEX *select, const std::vector<Part> &parts, std::string *to)
{
  std::vector<uint> slots;
  if (select->join->group_list && select->olap != ROLLUP_TYPE)
    add_determined(select, parts, &slots);
  B::small(to, uint32_t(slots.size()));
  for (const uint slot : slots)
    B::small(to, slot);
}

/* A column of the select list; where the server keeps it in a table, rounded as it is there. */
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
  /* Whether it is bits or a number depends on where it is computed. */
  if (item->field_type() == MYSQL_TYPE_BIT && item->real_item()->type() == Item::FUNC_ITEM)
    return refuse("a choice of BITs");
  const bool is_stored= use == Use::TOP || use == Use::DERIVED || use == Use::BRANCH;
  if (said->kind.tag == Value_kind::DECIMAL && is_stored)
  {
    /* A DECIMAL that is inserted may keep more digits than it shows. */
    if (use == Use::TOP && (said->is_exact || said->is_mixed) && is_stored_by_statement(m_thd))
      return refuse("a quotient that is inserted");
    if (said->kind.of > item->decimals)
      convert(said, Value_kind{Value_kind::DECIMAL, item->decimals});
  }
  else if (said->kind.tag == Value_kind::REAL && (use == Use::DERIVED || use == Use::BRANCH || use == Use::IN) &&
           item->decimals < NOT_FIXED_DEC && item->real_item()->type() != Item::FIELD_ITEM &&
           (use != Use::DERIVED || item->type() != Item::SUM_FUNC_ITEM))
    return refuse("a DOUBLE that is kept with fewer digits");
  else if ((use == Use::MERGED || use == Use::IN) && (said->is_exact || said->is_mixed))
    return refuse("a quotient whose digits depend on the plan");
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

bool Select_translator::limits(SELECT_LEX *select, Use use, std::string *to)
{
  uint64_t skip= 0, limit= UINT64_MAX;
  const Lex_select_limit &params= use == Use::BRANCH ? select->limit_params :
                                                       select->master_unit()->global_parameters()->limit_params;
  if ((use == Use::BRANCH || select->have_window_funcs()) && has_limit(params) && !select->join->order)
    return refuse("a LIMIT without an order");
  if (!limit_of(params.offset_limit, &skip) || !limit_of(params.select_limit, &limit))
    return refuse("a LIMIT");
  if (use == Use::TOP && is_of_rows(select))
    limit= ROWS_AS_THEY_COME_MAX + 1;
  if (use == Use::EXISTS)
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

/* The server has the last table first. */
bool Select_translator::from(List<TABLE_LIST> *list, std::vector<Part> *parts)
{
  Nesting nesting(this);
  if (!nesting.is_allowed())
    return refuse("a deep join");
  List_iterator_fast<TABLE_LIST> lists(*list);
  std::vector<TABLE_LIST *> in_order;
  for (TABLE_LIST *one; (one= lists++); )
    in_order.insert(in_order.begin(), one);
  for (TABLE_LIST *one : in_order)
  {
    parts->emplace_back();
    if (!part(one, &parts->back()))
      return false;
  }
  return true;
}

bool Select_translator::part(TABLE_LIST *list, Part *part)
{
  part->list= list;
  part->is_outer= is_outer_joined(list);
  if (list->sj_on_expr || list->sj_subq_pred || list->jtbm_subselect || list->table_function || list->schema_table ||
      list->is_recursive_with_table())
    return refuse("a special table");
  if (list->nested_join)
    return from(&list->nested_join->join_list, &part->nest);
  m_sources.emplace_back();
  Source *source= &m_sources.back();
  source->list= list;
  source->table= list->table;
  part->source= source;
  if (SELECT_LEX_UNIT *derived= list->is_view_or_derived() ? list->get_unit() : nullptr)
  {
    SELECT_LEX *const outer= m_select;
    const bool is_merged= list->is_merged_derived();
    const bool is_said= unit(derived, is_merged ? Use::MERGED : Use::DERIVED, &source->bytes, &source->slots, &source->kinds);
    m_select= outer;
    return is_said;
  }
  TABLE *table= list->table;
  const std::vector<ha_pando *> of_table= table ? handlers_of(table) : std::vector<ha_pando *>();
  if (of_table.empty())
    return refuse("a table of another kind");
  if (tables.size() == TABLES_MAX)
    return refuse("too many tables");
  source->number= int(handlers.size());
  source->parts= uint(of_table.size());
  handlers.insert(handlers.end(), of_table.begin(), of_table.end());
  tables.push_back(table);
  return leave_out_expired(source);
}

/* Of a table with TTL: its rows are those that have not expired, before anything else is asked of them. */
bool Select_translator::leave_out_expired(Source *source)
{
  const Expiry *expiry= handlers[size_t(source->number)]->expiry();
  longlong limit;
  if (!expiry || !expiry->limit(&limit))
    return true;
  Said column;
  if (!column_of_source(expiry->field(), &column))
    return false;
  const auto compared= [&](PandoComparison comparison, longlong with) {
    std::string bytes;
    B::compare(&bytes, comparison);
    bytes+= column.bytes;
    put_number(&bytes, with, column.kind);
    return bytes;
  };
  B::list(&source->filter, PANDO_TAG_OR, 3);
  source->filter+= compared(PANDO_COMPARISON_GREATER, limit);
  source->filter+= compared(PANDO_COMPARISON_EQUAL, 0);
  B::byte(&source->filter, PANDO_TAG_IS_NULL);
  source->filter+= column.bytes;
  return true;
}

/* Whether the optimizer may make something else of a part of a condition. */
static bool has_rewritten(Item *condition)
{
  if (condition->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(condition)->argument_list());
    for (Item *part; (part= parts++); )
      if (has_rewritten(part))
        return true;
    return false;
  }
  return condition->type() == Item::FUNC_ITEM && is_rewritten(static_cast<Item_func *>(condition));
}

bool Select_translator::on(std::vector<Part> *parts)
{
  for (Part &part : *parts)
  {
    if (!on(&part.nest))
      return false;
    if (!part.list->on_expr)
      continue;
    Said said;
    /* Of a row that has no partner, a date that is not NULL is NULL. */
    m_is_optimized= !part.is_outer;
    const bool is_said= (!part.is_outer || !has_rewritten(part.list->on_expr) || refuse("IS NULL of a date in an outer join")) && condition(part.list->on_expr, &said);
    m_is_optimized= false;
    if (!is_said)
      return false;
    part.on= said.bytes;
  }
  return true;
}

bool Select_translator::put_from(const std::vector<Part> &parts, std::string *to)
{
  B::small(to, uint32_t(parts.size()));
  for (const Part &part : parts)
  {
    B::byte(to, part.is_outer);
    B::byte(to, !part.on.empty());
    *to+= part.on;
    if (!part.source)
    {
      B::byte(to, PANDO_SOURCE_TAG_NEST);
      if (!put_from(part.nest, to))
        return false;
    }
    else if (part.source->number < 0)
    {
      B::byte(to, PANDO_SOURCE_TAG_QUERY);
      *to+= part.source->bytes;
    }
    else if (!put_table(*part.source, to))
      return false;
  }
  return true;
}

/* How many different values a column has, as far as the statistics of keys that begin with it tell; 0: they do not. */
static uint64_t distinct_values(const TABLE *table, const Field *field, ha_rows rows)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY *key= &table->key_info[i];
    if (!key->user_defined_key_parts || key->key_part[0].fieldnr - 1 != field->field_index)
      continue;
    if ((key->flags & HA_NOSAME) && key->user_defined_key_parts == 1)
      return rows;
    const double each= key->actual_rec_per_key(0);
    if (each > 0)
      return uint64_t(double(rows) / each);
  }
  return 0;
}

/* A table that stands in a query several times is the same one each time. Of partitions, not the same ones need be read. */
uint32_t Select_translator::first_number(const Source &source) const
{
  for (const Source &other : m_sources)
    if (other.number >= 0 && other.parts == 1 && source.parts == 1 && other.table->s == source.table->s && !source.table->part_info)
      return uint32_t(other.number);
  return uint32_t(source.number);
}

bool Select_translator::put_table(const Source &source, std::string *to)
{
  const ha_rows rows= source.table->file->stats.records;
  Index_layout *primary= handlers_of(source.table).at(0)->primary();
  B::byte(to, PANDO_SOURCE_TAG_TABLE);
  B::small(to, uint32_t(source.number));
  B::small(to, first_number(source));
  B::small(to, source.parts);
  B::large(to, rows);
  B::small(to, uint32_t(source.columns.size()));
  for (const Column &column : source.columns)
  {
    Value_kind kind;
    uint form= 0, precision= 0;
    PandoQueryColumn place= {};
    std::string path;
    if (!kind_of_field(column.field, &kind, &form, &precision) || !column.field->stored_in_db())
      return refuse("the place of a column");
    place.form= PandoForm(form);
    if (!find_column(source.table, primary, column.field, &place, &path))
      return refuse("the place of a column");
    B::small(to, column.slot);
    B::kind(to, kind);
    B::small(to, uint32_t(place.position));
    B::small(to, place.key_offset);
    B::small(to, place.key_size);
    B::byte(to, place.key_reversed);
    B::small(to, uint32_t(path.size()));
    *to+= path;
    B::byte(to, form);
    B::small(to, precision);
    B::small(to, kind.scale());
    B::large(to, distinct_values(source.table, column.field, rows));
  }
  B::byte(to, !source.filter.empty());
  *to+= source.filter;
  return true;
}

} // namespace pando
