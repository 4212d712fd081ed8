/* Aggregates and subqueries that stand in expressions of a SELECT of any shape. */
#include "select_block.h"
#include "select_translate.h"

#include <algorithm>

namespace pando {

using B= Select_bytes;

/* Whether a column of the answer is this aggregate alone. */
static bool is_column_of_answer(SELECT_LEX *select, const Item_sum *sum)
{
  List_iterator_fast<Item> items(select->item_list);
  for (Item *item; (item= items++); )
    if (item->real_item() == sum)
      return true;
  return false;
}

/* Whether the least of zero-filled numbers is shown so is a matter of the temporary table that groups may be in; without groups, and in
   a derived table, there is no doubt. */
static bool is_filling_open(const SELECT_LEX *select)
{
  const st_select_lex_unit *unit= const_cast<SELECT_LEX *>(select)->master_unit();
  return !unit->derived && (unit->outer_select() || select->group_list.elements);
}

bool has_order_of_bytes(const Item *item)
{
  if (item->type() != Item::FIELD_ITEM)
    return false;
  const Field *field= static_cast<const Item_field *>(item)->field;
  return field->real_type() == MYSQL_TYPE_NEWDECIMAL ||
         (field->real_type() == MYSQL_TYPE_STRING && field->charset() == &my_charset_bin &&
          field->type_handler()->is_traditional_scalar_type());
}

bool is_filled_extreme(Item *item)
{
  item= item->real_item();
  if (item->type() != Item::SUM_FUNC_ITEM)
    return false;
  const Item_sum *sum= static_cast<const Item_sum *>(item);
  if (sum->sum_func() != Item_sum::MIN_FUNC && sum->sum_func() != Item_sum::MAX_FUNC)
    return false;
  Item *of= sum->get_arg(0)->real_item();
  return of->type() == Item::FIELD_ITEM && (static_cast<const Item_field *>(of)->field->flags & ZEROFILL_FLAG);
}

bool has_zerofill(Item *item)
{
  item= item->real_item();
  return item->type() == Item::FIELD_ITEM && (static_cast<Item_field *>(item)->field->flags & ZEROFILL_FLAG);
}

/* The server's idea of how many digits a choice has is not right for all (`IF(a, NULL, 3000000000)`), nor is that of an average or a
   quotient of it: the table that holds the answer would cut them. */
bool has_digits_of_type(Item *argument, const Said &of)
{
  static const double BIGINT_EXCESS= 0.3; /* 2^64 has 19.3 digits */
  return argument->real_item()->type() == Item::FIELD_ITEM || of.kind.tag == Value_kind::REAL ||
         of.digits - of.kind.scale() <= double(argument->decimal_precision()) - argument->decimals + BIGINT_EXCESS;
}

/* Digits that the engine computes with. */
static const uint DIGITS_MAX= 36;

static bool is_of_sample(const Item_sum *variance) { return static_cast<const Item_sum_variance *>(variance)->sample; }

bool Select_translator::aggregate(Item_sum *sum, Said *said)
{
  const Restored outer_looking(m_looks_at_rows);
  m_looks_at_rows= true;
  if (sum->aggr_sel != m_select)
    return refuse("an aggregate of another query");
  PandoFunction function= PANDO_FUNCTION_ROWS;
  switch (sum->sum_func())
  {
  case Item_sum::COUNT_FUNC:          function= PANDO_FUNCTION_COUNT; break;
  case Item_sum::COUNT_DISTINCT_FUNC: function= PANDO_FUNCTION_COUNT_DISTINCT; break;
  case Item_sum::SUM_FUNC:            function= PANDO_FUNCTION_SUM; break;
  case Item_sum::SUM_DISTINCT_FUNC:   function= PANDO_FUNCTION_SUM_DISTINCT; break;
  case Item_sum::AVG_FUNC:            function= PANDO_FUNCTION_SUM; break;
  case Item_sum::AVG_DISTINCT_FUNC:   return refuse("an average of different ones");
  case Item_sum::MIN_FUNC:            function= PANDO_FUNCTION_MIN; break;
  case Item_sum::MAX_FUNC:            function= PANDO_FUNCTION_MAX; break;
  case Item_sum::VARIANCE_FUNC:
    return of_moments(sum, is_of_sample(sum) ? PANDO_FUNCTION_VARIANCE_OF_SAMPLE : PANDO_FUNCTION_VARIANCE, said);
  case Item_sum::STD_FUNC:
    return of_moments(sum, is_of_sample(sum) ? PANDO_FUNCTION_DEVIATION_OF_SAMPLE : PANDO_FUNCTION_DEVIATION, said);
  case Item_sum::SUM_BIT_FUNC:        return of_bits(sum, said);
  case Item_sum::GROUP_CONCAT_FUNC:   return concat(sum, said);
  default:                            return refuse("an aggregate");
  }
  if (sum->get_arg_count() > 1)
    return function == PANDO_FUNCTION_COUNT_DISTINCT ? of_rows(sum, said) : refuse("an aggregate of several");
  Item *argument= sum->get_arg(0);
  const bool is_count= function == PANDO_FUNCTION_COUNT || function == PANDO_FUNCTION_COUNT_DISTINCT;
  const Item *counted= argument->real_item();
  if (function == PANDO_FUNCTION_COUNT_DISTINCT && counted->type() == Item::FIELD_ITEM &&
      groups_by_filling(static_cast<const Item_field *>(counted)->field))
    return refuse("a CHAR that is counted by its filling");
  if (function == PANDO_FUNCTION_COUNT && is_some_constant(argument))
  {
    B::count_of_rows(&said->bytes);
    said->kind= Value_kind{Value_kind::SIGNED, 0};
    return true;
  }
  Said of;
  const uint warning_met= m_warning_met;
  if (!(function == PANDO_FUNCTION_COUNT && length_of_column(argument, &of)) && !expression(argument, &of))
    return false;
  if (sum->has_with_distinct() && !makes_groups(argument))
    return false;
  if (sum->has_with_distinct())
    hold_group(argument, &of);
  /* The server keeps different values in a table, with the digits that they show. */
  if (function == PANDO_FUNCTION_COUNT_DISTINCT && of.kind.tag == Value_kind::DECIMAL && of.kind.of > argument->decimals)
    convert(&of, Value_kind{Value_kind::DECIMAL, argument->decimals});
  std::string is_sure;
  Value_kind kind= of.kind;
  if (is_count)
    kind= Value_kind{Value_kind::SIGNED, 0};
  else if (function == PANDO_FUNCTION_SUM || function == PANDO_FUNCTION_SUM_DISTINCT)
  {
    if (!addend(sum, function, &of, &kind, m_warning_met != warning_met, &is_sure))
      return false;
    if (sum->sum_func() == Item_sum::AVG_FUNC && kind.tag == Value_kind::REAL)
      return of_moments(sum, PANDO_FUNCTION_MEAN, said);
  }
  else if (!extreme(sum, argument, &of))
    return false;
  else
    kind= of.kind;
  if (sum->sum_func() == Item_sum::AVG_FUNC)
  {
    if (!average(static_cast<Item_sum_avg *>(sum), of, kind, said))
      return false;
    if (!is_sure.empty())
      B::make_sure(&said->bytes, is_sure);
    return true;
  }
  B::aggregate(&said->bytes, function, kind);
  said->bytes+= of.bytes;
  said->kind= kind;
  said->is_mixed= of.is_mixed;
  said->is_exact= function == PANDO_FUNCTION_SUM && of.is_exact;
  said->digits= is_count ? 19 : function == PANDO_FUNCTION_SUM || function == PANDO_FUNCTION_SUM_DISTINCT ? of.digits + 19 : of.digits;
  if (function == PANDO_FUNCTION_SUM && kind.tag == Value_kind::REAL)
    bend(sum, PANDO_FUNCTION_ERROR_OF_SUM, of, said);
  if (!is_sure.empty())
    B::make_sure(&said->bytes, is_sure);
  return true;
}

/* What SUM and AVG add up, and the kind of their sum. */
bool Select_translator::addend(Item_sum *sum, PandoFunction function, Said *of, Value_kind *kind, bool may_warn, std::string *is_sure)
{
  Item *argument= sum->get_arg(0);
  if (function == PANDO_FUNCTION_SUM && sum->result_type() == REAL_RESULT && !as_real(argument, of))
    return false;
  if (of->kind.tag == Value_kind::BIT || of->kind.tag == Value_kind::ENUM || of->kind.tag == Value_kind::SET)
  {
    *of= Said();
    if (!served_as(argument, Value_kind{Value_kind::UNSIGNED, 0}, false, false, of))
      return false;
  }
  if (of->is_exact && (function != PANDO_FUNCTION_SUM || !quotient_addend(argument, may_warn, of, is_sure)))
    return refuse("a sum of quotients that may be rounded one by one");
  *kind= of->kind;
  if (kind->is_integer())
    *kind= Value_kind{Value_kind::DECIMAL, 0};
  if ((kind->tag != Value_kind::DECIMAL && kind->tag != Value_kind::REAL) ||
      (kind->tag == Value_kind::DECIMAL && !is_exact_number(argument)) ||
      (function == PANDO_FUNCTION_SUM_DISTINCT && kind->tag == Value_kind::REAL && argument->field_type() != MYSQL_TYPE_DOUBLE))
    return refuse("a sum of something else");
  if (argument->field_type() == MYSQL_TYPE_YEAR)
    return refuse("a sum of years");
  return true;
}

/* Whether the rows are sorted as groups are made: then nothing is sorted behind them. */
static bool is_order_of_groups(const JOIN *join)
{
  const ORDER *group= join->group_list;
  for (const ORDER *one= join->order; one; one= one->next, group= group->next)
    if (!group || one->direction != ORDER::ORDER_ASC || group->direction != ORDER::ORDER_ASC || !is_same(*one->item, *group->item))
      return false;
  return !join->order || !group;
}

/* Whether the server may write groups that it has made into a temporary table, one after the other (`end_write_group`): because it sorts them otherwise,
   or looks for different ones. Elsewhere it shows them as they are made, or counts in the table (`end_update`), which keeps sums. */
static bool may_write_groups(THD *thd, SELECT_LEX *select)
{
  const JOIN *join= select->join;
  return ((select->options | join->select_options) & (SELECT_DISTINCT | OPTION_BUFFER_RESULT)) || select->olap == ROLLUP_TYPE || select->have_window_funcs() ||
         is_stored_by_statement(thd) || !is_order_of_groups(join);
}

/* The quotient of a sum of this kind and a count. */
bool Select_translator::average(Item_sum_avg *sum, const Said &of, const Value_kind &kind, Said *said)
{
  /* Where the server keeps groups in a temporary table, an expression gets the average with the table's digits, else with all. */
  const bool is_inner= m_select->group_list.elements &&
                        (m_is_average_in_function ? may_write_groups(m_thd, m_select) : !is_column_of_answer(m_select, sum));
  if (is_inner && (m_select->olap == ROLLUP_TYPE || m_select->have_window_funcs()))
    return refuse("an average inside of an expression");
  m_has_inner_average|= is_inner;
  /* The table that holds the answer would cut it, if it has more than its type says: then the query is given back. */
  const bool is_held= has_digits_of_type(sum->get_arg(0), of);
  if (!is_held && sum->decimal_precision() >= DIGITS_MAX)
    return refuse("an average that its type does not hold");
  Said total, count;
  B::aggregate(&total.bytes, PANDO_FUNCTION_SUM, kind);
  total.bytes+= of.bytes;
  total.kind= kind;
  /* Of digits that differ, fewer than make another word of the quotient. */
  total.is_mixed= of.is_mixed && kind.of > 5;
  count.kind= Value_kind{Value_kind::SIGNED, 0};
  B::aggregate(&count.bytes, PANDO_FUNCTION_COUNT, count.kind);
  count.bytes+= of.bytes;
  said->is_mixed= false;
  if (!divide(total, count, sum->prec_increment, said))
    return false;
  if (is_inner && m_rounds_averages && said->kind.of > sum->decimals)
  {
    convert(said, Value_kind{Value_kind::DECIMAL, sum->decimals});
    said->is_exact= false;
  }
  /* It is not beyond the values that it is of. */
  said->digits= std::min(said->digits, of.digits - of.kind.scale() + said->kind.scale());
  if (!is_held)
  {
    hold(sum, said);
    said->digits= double(sum->decimal_precision()) - sum->decimals + said->kind.scale();
  }
  return true;
}

/* Of texts and the like the server adds up what it reads of them as numbers. */
bool Select_translator::as_real(Item *argument, Said *of)
{
  if (of->kind.tag == Value_kind::REAL || of->kind.is_number())
    return true;
  *of= Said();
  return served_as(argument, Value_kind{Value_kind::REAL, 0}, false, false, of);
}

/* What MIN and MAX compare as the engine does: of what is opaque, bytes whose order is their type's. */
bool Select_translator::extreme(Item_sum *sum, Item *argument, Said *of)
{
  /* The server makes a number of it, and says that it is bits. */
  if (argument->field_type() == MYSQL_TYPE_BIT)
    return refuse("an extreme of bits");
  /* Of a FLOAT these are shown with the digits of a DOUBLE. */
  const Item *real= argument->real_item();
  if (argument->field_type() == MYSQL_TYPE_FLOAT && real->type() != Item::FIELD_ITEM)
    return refuse("an extreme of FLOATs that are computed");
  hold_group(argument, of);
  if (is_filled_extreme(sum) && is_filling_open(m_select))
    return refuse("an extreme of zero-filled numbers");
  if (of->kind.is_opaque() && of->kind.tag != Value_kind::STAMP &&
      (of->kind.tag != Value_kind::RAW || sum->type_handler() != argument->type_handler() || !has_order_of_bytes(argument->real_item())))
    return refuse("an extreme of a type that is compared otherwise");
  return (!of->is_exact && !of->is_mixed && !of->mixes_zero && argument->field_type() != MYSQL_TYPE_YEAR) ||
         refuse("an extreme of quotients");
}

/* Digits of a DOUBLE that do not tell in which order values came. */
static const double SURE_DIGITS= 12;

/* What the optimizer may find to be always true or false: rows are sorted then, in no order. */
static bool is_grouped_by_condition(const SELECT_LEX *select)
{
  for (const ORDER *group= select->join->group_list; group; group= group->next)
    if ((*group->item)->real_item()->type() != Item::FIELD_ITEM && (*group->item)->type_handler() == &type_handler_bool)
      return true;
  return false;
}

/* Whether partitions one after the other have the rows in the order of the primary key. */
static bool are_partitions_in_order(TABLE *table)
{
  partition_info *parts= table->part_info;
  if (!parts)
    return true;
  if (parts->part_type != RANGE_PARTITION || parts->is_sub_partitioned() || parts->num_part_fields != 1 || table->s->primary_key >= MAX_KEY)
    return false;
  const KEY_PART_INFO &first= table->key_info[table->s->primary_key].key_part[0];
  return parts->part_field_array[0]->field_index == first.field->field_index && !(first.key_part_flag & HA_REVERSE_SORT) &&
         (parts->column_list || parts->part_expr->get_monotonicity_info() != NON_MONOTONIC);
}

/* The columns for whose sake a key may be read: those of conditions, groups, orders, and of different rows. What is only computed of the rows is in the entries
   of a key or not. */
static List<Item_field> columns_that_lead(const SELECT_LEX *select)
{
  const JOIN *join= select->join;
  List<Item_field> columns;
  const auto add= [&columns](Item *item) {
    if (item)
      item->walk(&Item::collect_item_field_processor, false, &columns);
  };
  add(join->conds);
  add(join->having);
  for (const ORDER *one= join->group_list; one; one= one->next)
    add(*one->item);
  for (const ORDER *one= join->order; one; one= one->next)
    add(*one->item);
  List_iterator_fast<Item> items(const_cast<SELECT_LEX *>(select)->item_list);
  while (Item *item= items++)
    if (select->options & SELECT_DISTINCT)
      add(item);
  return columns;
}

/* Whether the key may be read backwards: a column of it is asked for in descending order, or has that order itself, and groups ascend. */
static bool may_be_read_backwards(const SELECT_LEX *select, const KEY &key)
{
  if (std::any_of(key.key_part, key.key_part + key.user_defined_key_parts,
                  [](const KEY_PART_INFO &part) { return part.key_part_flag & HA_REVERSE_SORT; }))
    return true;
  const auto is_part= [&key](const Item *item) {
    const Item *of= const_cast<Item *>(item)->real_item();
    return of->type() == Item::FIELD_ITEM && std::any_of(key.key_part, key.key_part + key.user_defined_key_parts, [of](const KEY_PART_INFO &part) {
             return part.field->field_index == static_cast<const Item_field *>(of)->field->field_index;
           });
  };
  for (const ORDER *orders : {select->join->order, select->join->group_list})
    for (const ORDER *one= orders; one; one= one->next)
      if (one->direction == ORDER::ORDER_DESC && is_part(*one->item))
        return true;
  return false;
}

/* Whether the server may read the rows of a table in another order than that of its first key, partition by partition: through another one, backwards, or,
   where a range of the key leads into several partitions, in the order of the key. */
static bool may_read_in_another_order(const SELECT_LEX *select, TABLE *table)
{
  List<Item_field> columns= columns_that_lead(select);
  for (uint i= 0; i < table->s->keys; i++)
  {
    const Field *first= table->key_info[i].key_part[0].field;
    bool is_led_to= false;
    List_iterator_fast<Item_field> each(columns);
    while (const Item_field *column= each++)
      is_led_to|= column->field && column->field->field_index == first->field_index;
    if ((is_led_to || table->covering_keys.is_set(i)) && (i != table->s->primary_key || may_be_read_backwards(select, table->key_info[i]) || !are_partitions_in_order(table)))
      return true;
  }
  return false;
}

/* Whether rows come in one order, whatever the server's plan. */
bool Select_translator::knows_order_of_rows() const
{
  TABLE *const table= m_select->leaf_tables.elements == 1 ? m_select->leaf_tables.head()->table : nullptr;
  return table && !m_select->first_inner_unit() && !is_grouped_by_condition(m_select) && !may_read_in_another_order(m_select, table) &&
         (!m_select->group_list.elements || m_select->join->tmp_table_param.quick_group);
}

/* Whether the server keeps what this is of in a temporary table as it met it first: it sorts rows by what may be longer. There a CHAR has its spaces, which count
   where nothing is padded: 'ss' and 'ß' are not equal then. In collations of one byte a character that go over a text several times (Czech, Thai) the hash
   that leads to a group knows texts apart which are equal. */
static bool is_short_text(const Item *item)
{
  if (item->cmp_type() != STRING_RESULT)
    return true;
  const CHARSET_INFO *collation= item->collation.collation;
  if ((collation->state & MY_CS_NOPAD) || (collation->mbmaxlen == 1 && collation->strxfrm_multiply > 1))
    return false;
  return (!dynamic_cast<const Type_handler_blob_common *>(item->type_handler()) && item->max_char_length() <= CONVERT_IF_BIGGER_TO_BLOB);
}

/* Whether groups of texts that are equal, and not the same, show that of the first row in the order of the table: the server has no other order of the rows,
   and writes a group into a temporary table when it meets the first one (`end_update`). */
bool Select_translator::shows_first_texts() const
{
  const JOIN *join= m_select->join;
  if ((m_select->options | join->select_options) & (SELECT_BIG_RESULT | OPTION_BUFFER_RESULT) || m_select->olap == ROLLUP_TYPE ||
      m_select->have_window_funcs() || m_select->outer_select() || m_select->master_unit()->is_unit_op() || !knows_order_of_rows())
    return false;
  for (const ORDER *group= join->group_list; group; group= group->next)
    if (!is_short_text(*group->item))
      return false;
  List_iterator_fast<Item> items(m_select->item_list);
  while (const Item *item= items++)
    if ((m_select->options & SELECT_DISTINCT) && !is_short_text(item))
      return false;
  return true;
}

/* Where it is asked how far the sum in another order may lie, so far up or down. */
void Select_translator::bend(const Item_sum *sum, PandoFunction function, const Said &of, Said *said)
{
  if (!m_is_bending)
    return;
  const uint number= uint(std::find(m_bent.begin(), m_bent.end(), sum) - m_bent.begin());
  if (number == m_bent.size())
    m_bent.push_back(sum);
  if (!m_bend)
    return;
  std::string bent;
  B::byte(&bent, PANDO_TAG_REAL);
  B::byte(&bent, (m_bend - 1) >> number & 1 ? PANDO_OPERATION_ADD : PANDO_OPERATION_SUBTRACT);
  bent+= said->bytes;
  B::aggregate(&bent, function, said->kind);
  said->bytes= bent + of.bytes;
}

/* Means and variances of DOUBLEs: as the server has them if rows come in its order, which those of joins need not; nor do those
   that it sorts to make groups of them. */
bool Select_translator::of_moments(Item_sum *sum, PandoFunction function, Said *said)
{
  Item *argument= sum->get_arg(0);
  Said of;
  if (sum->get_arg_count() != 1 || sum->has_with_distinct() || !expression(argument, &of))
    return refuse("a variance of different ones");
  if (argument->cmp_type() == STRING_RESULT && !as_real(argument, &of))
    return false;
  const bool is_exact= of.kind.is_number() && is_exact_number(argument);
  if ((!is_exact && of.kind.tag != Value_kind::REAL) || of.is_exact || argument->field_type() == MYSQL_TYPE_YEAR)
    return refuse("a variance of something else");
  /* Squares have twice the digits. */
  const double digits= 2 * (of.digits - of.kind.scale()) + sum->decimals;
  const bool tells_order= m_shown != sum && (of.kind.tag == Value_kind::REAL || digits > SURE_DIGITS);
  if (tells_order && !knows_order_of_rows() && !(function == PANDO_FUNCTION_MEAN && (m_is_bending || is_shown(sum))))
    return refuse("DOUBLEs in an order that is not known");
  said->kind= Value_kind{Value_kind::REAL, 0};
  B::aggregate(&said->bytes, function, said->kind);
  said->bytes+= of.bytes;
  if (function == PANDO_FUNCTION_MEAN)
    bend(sum, PANDO_FUNCTION_ERROR_OF_MEAN, of, said);
  return true;
}

bool Select_translator::of_bits(Item_sum *sum, Said *said)
{
  PandoFunction function= PANDO_FUNCTION_CONCAT;
  if (dynamic_cast<Item_sum_and *>(sum))
    function= PANDO_FUNCTION_BIT_AND;
  else if (dynamic_cast<Item_sum_or *>(sum))
    function= PANDO_FUNCTION_BIT_OR;
  else if (dynamic_cast<Item_sum_xor *>(sum))
    function= PANDO_FUNCTION_BIT_XOR;
  Said of;
  if (function == PANDO_FUNCTION_CONCAT || sum->get_arg_count() != 1 || !expression(sum->get_arg(0), &of))
    return refuse("a function of bits");
  if (!of.kind.is_integer() && of.kind.tag != Value_kind::BIT && of.kind.tag != Value_kind::ENUM && of.kind.tag != Value_kind::SET)
  {
    /* As the server rounds it. */
    of= Said();
    if (!served_as(sum->get_arg(0), Value_kind{Value_kind::SIGNED, 0}, false, false, &of))
      return false;
  }
  said->kind= Value_kind{Value_kind::UNSIGNED, 0};
  said->digits= 20;
  B::aggregate(&said->bytes, function, said->kind);
  said->bytes+= of.bytes;
  return true;
}

/* COUNT(DISTINCT a, b) */
bool Select_translator::of_rows(Item_sum *sum, Said *said)
{
  said->kind= Value_kind{Value_kind::SIGNED, 0};
  B::aggregate(&said->bytes, PANDO_FUNCTION_COUNT_DISTINCT, said->kind);
  B::list(&said->bytes, PANDO_TAG_ROW, sum->get_arg_count());
  for (uint i= 0; i < sum->get_arg_count(); i++)
  {
    Said of;
    if (!expression(sum->get_arg(i), &of) || !makes_groups(sum->get_arg(i)))
      return false;
    if (of.is_exact)
      return refuse("different quotients");
    said->bytes+= of.bytes;
  }
  return true;
}

namespace {

/* What a GROUP_CONCAT is made of is its own. */
class Concat_parts : public Item_func_group_concat
{
public:
  static const String *separator_of(const Item_func_group_concat *item) { return item->*(&Concat_parts::separator); }
  static ORDER **order_of(const Item_func_group_concat *item) { return item->*(&Concat_parts::order); }
  static uint shown_of(const Item_func_group_concat *item) { return item->*(&Concat_parts::arg_count_field); }
  static uint ordered_of(const Item_func_group_concat *item) { return item->*(&Concat_parts::arg_count_order); }
  static bool is_distinct(const Item_func_group_concat *item) { return item->*(&Concat_parts::distinct); }
  static bool has_limit(const Item_func_group_concat *item) { return item->*(&Concat_parts::limit_clause); }
};

} // namespace

/* A value that the engine writes as the server does. */
bool Select_translator::concat_argument(Item *argument, const Item *result, bool is_distinct, Said *of)
{
  if (!expression(argument, of))
    return false;
  CHARSET_INFO *charset= result->collation.collation;
  switch (of->kind.tag)
  {
  case Value_kind::TEXT:
    return my_charset_same(argument->collation.collation, charset) || refuse("texts of different character sets");
  case Value_kind::DECIMAL:
    if (is_constant(argument) || of->is_exact || of->kind.of != argument->decimals || !is_exact_number(argument))
      return refuse("digits of a text");
    break;
  case Value_kind::SIGNED:
  case Value_kind::UNSIGNED:
  case Value_kind::DATE:
    break;
  default:
  {
    /* As the server writes columns; different ones are sorted by what they are, not by that. */
    const bool is_text= argument->cmp_type() == STRING_RESULT;
    if (is_distinct || argument->real_item()->type() != Item::FIELD_ITEM || charset->mbminlen != 1 || has_zerofill(argument) ||
        argument->field_type() == MYSQL_TYPE_BIT || (is_text && !my_charset_same(argument->collation.collation, charset)))
      return refuse("a text of something else");
    *of= Said();
    return served_as(argument, Value_kind{Value_kind::TEXT, collation_number(charset)}, false, false, of);
  }
  }
  return (charset->mbminlen == 1 && argument->field_type() != MYSQL_TYPE_YEAR && !has_zerofill(argument)) ||
         refuse("a text of something else");
}

/* GROUP_CONCAT, where its order leaves nothing open: see crates/analytic/src/concat.rs. */
bool Select_translator::concat(Item_sum *sum, Said *said)
{
  const Item_func_group_concat *item= static_cast<Item_func_group_concat *>(sum);
  const uint shown= Concat_parts::shown_of(item), ordered= Concat_parts::ordered_of(item);
  const bool is_distinct= Concat_parts::is_distinct(item);
  const uint64_t bytes_max= concat_bytes_max(m_thd);
  if (m_is_in_having)
    return refuse_for_good("GROUP_CONCAT in HAVING");
  if (Concat_parts::has_limit(item) || (!ordered && !is_distinct))
    return refuse("GROUP_CONCAT without an order");
  const uint collation= collation_number(sum->collation.collation);
  std::string arguments, by, descends;
  std::vector<std::string> said_arguments;
  for (uint i= 0; i < shown; i++)
  {
    Said of;
    if (!concat_argument(sum->get_arg(i), sum, is_distinct, &of) || !makes_groups(sum->get_arg(i)))
      return false;
    if (is_distinct)
      hold_group(sum->get_arg(i), &of);
    arguments+= of.bytes;
    said_arguments.push_back(of.bytes);
  }
  for (uint i= 0; i < ordered; i++)
  {
    const ORDER *order= Concat_parts::order_of(item)[i];
    Item *one= *order->item;
    Said of;
    if (!expression(one, &of) || !makes_groups(one))
      return false;
    if (is_distinct)
      hold_group(one, &of);
    if (of.is_exact || (of.kind.tag == Value_kind::TEXT && one->max_length > bytes_max) ||
        (is_distinct && std::find(said_arguments.begin(), said_arguments.end(), of.bytes) == said_arguments.end()))
      return refuse("the order of GROUP_CONCAT");
    /* The server sorts a NULL as if it were an empty text, or 0; rows without what is shown it leaves out. */
    if (one->maybe_null() && std::find(said_arguments.begin(), said_arguments.end(), of.bytes) == said_arguments.end())
    {
      B::byte(&by, PANDO_TAG_SURE);
      B::byte(&by, PANDO_TAG_NOT);
      B::byte(&by, PANDO_TAG_IS_NULL);
      by+= of.bytes;
    }
    by+= of.bytes;
    descends.push_back(order->direction == ORDER::ORDER_DESC);
  }
  /* Different ones come out of a tree that is sorted by them. */
  if (!ordered)
  {
    by= arguments;
    descends.assign(shown, '\0');
  }
  said->kind= Value_kind{Value_kind::TEXT, collation};
  B::aggregate(&said->bytes, PANDO_FUNCTION_CONCAT, said->kind);
  B::list(&said->bytes, PANDO_TAG_ROW, 4 + shown + descends.size());
  const String *separator= Concat_parts::separator_of(item);
  put_text(&said->bytes, separator->ptr(), separator->length(), said->kind);
  put_number(&said->bytes, bytes_max, Value_kind{Value_kind::SIGNED, 0});
  put_number(&said->bytes, shown * 2 + is_distinct, Value_kind{Value_kind::SIGNED, 0});
  put_text(&said->bytes, descends.data(), descends.size(), said->kind);
  said->bytes+= arguments + by;
  return true;
}

bool Select_translator::subquery(Item_subselect *item, Said *said)
{
  if (item->substype() == Item_subselect::EXISTS_SUBS || item->substype() == Item_subselect::IN_SUBS)
    return condition(item, said);
  if (item->substype() != Item_subselect::SINGLEROW_SUBS || item->cols() != 1)
    return refuse("a subquery");
  std::vector<uint> slots;
  std::vector<Value_kind> kinds;
  std::string bytes;
  if (!unit(item->unit, Use::SCALAR, &bytes, &slots, &kinds) || kinds.size() != 1)
    return false;
  B::byte(&said->bytes, PANDO_TAG_SCALAR);
  B::kind(&said->bytes, kinds[0]);
  said->bytes+= bytes;
  said->kind= kinds[0];
  said->is_exact= kinds[0].tag == Value_kind::DECIMAL && kinds[0].of > item->decimals;
  return true;
}

} // namespace pando
