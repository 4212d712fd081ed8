/* Which queries the engine answers itself, and how they are said in its words: only what it computes exactly as the
   server would. What is not named here is not taken. */
#include "pushdown.h"
#include "row_layout.h"
#include "sql_select.h"
#include "sql_time.h"
#include "compat56.h"

namespace pando {

/* Digits that the engine computes with (crates/query/src/decimal.rs). */
static const uint PRECISION_MAX= 36;
/* Longer texts are BLOBs in temporary tables. */
static const uint TEXT_CHARS_MAX= CONVERT_IF_BIGGER_TO_BLOB;

static Column_class number_class(const Field *field, PandoQueryColumn *column)
{
  column->form= field->flags & UNSIGNED_FLAG ? PANDO_FORM_UNSIGNED : PANDO_FORM_SIGNED;
  return Column_class::NUMBER;
}

static Column_class text_class(const Field *field, PandoQueryColumn *column)
{
  column->form= PANDO_FORM_TEXT;
  column->collation= field->charset();
  return field->char_length() <= TEXT_CHARS_MAX ? Column_class::TEXT : Column_class::NONE;
}

Column_class class_of(const Field *field, PandoQueryColumn *column)
{
  switch (field->real_type())
  {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
    return number_class(field, column);
  case MYSQL_TYPE_NEWDECIMAL:
    column->form= PANDO_FORM_DECIMAL;
    column->precision= static_cast<const Field_new_decimal *>(field)->precision;
    column->scale= field->decimals();
    return column->precision <= PRECISION_MAX ? Column_class::NUMBER : Column_class::NONE;
  case MYSQL_TYPE_NEWDATE:
    column->form= PANDO_FORM_UNSIGNED;
    return Column_class::DATE;
  case MYSQL_TYPE_DATETIME2:
    column->form= PANDO_FORM_ORDERED;
    return Column_class::DATETIME;
  case MYSQL_TYPE_YEAR:
    column->form= PANDO_FORM_UNSIGNED;
    return Column_class::OTHER;
  case MYSQL_TYPE_VARCHAR:
    return text_class(field, column);
  case MYSQL_TYPE_STRING:
    /* BINARY has lost the zeros at its end. */
    if (field->type_handler()->is_traditional_scalar_type() && field->charset() != &my_charset_bin)
      return text_class(field, column);
    return Column_class::NONE;
  default:
    return Column_class::NONE;
  }
}

/* Where the column's bytes are: in the row, or in the key if all before it have fixed places. */
bool Translator::place_of(Field *field, PandoQueryColumn *column) const
{
  Index_layout *primary= m_handler->primary();
  std::vector<Field *> stored= row_fields(m_table, primary);
  for (uint i= 0; i < stored.size(); i++)
    if (stored[i]->field_index == field->field_index)
    {
      column->position= int(i);
      return true;
    }
  column->position= -1;
  column->key_offset= 0;
  for (uint i= 0; primary && i < primary->part_count(); i++)
  {
    const Key_part &part= primary->part(i);
    if (!part.fixed_size())
      return false;
    if (part.column().index() == field->field_index)
    {
      column->key_size= part.fixed_size();
      column->key_reversed= part.is_reverse();
      return part.is_lossless();
    }
    column->key_offset+= part.fixed_size();
  }
  return false;
}

/* The engine's number of a column; negative: it cannot be had. */
int Translator::column(Field *field, bool presence_only)
{
  for (uint i= 0; i < m_columns.size(); i++)
    if (m_columns[i].field == field->field_index && m_columns[i].presence_only == presence_only)
      return int(i);
  /* A column is read once. */
  PandoQueryColumn column= {};
  bool has_form= class_of(field, &column) != Column_class::NONE;
  if (!has_form && !presence_only)
    return -1;
  if (presence_only && has_form)
    return this->column(field, false);
  if (presence_only)
    column.form= PANDO_FORM_PRESENCE;
  if (!field->stored_in_db() || !place_of(field, &column))
    return -1;
  m_columns.push_back(Known{field->field_index, presence_only});
  return int(pando_query_column(m_query, column));
}

Field *Translator::column_of(Item *item) const
{
  if (item->type() != Item::FIELD_ITEM)
    return nullptr;
  Field *field= static_cast<Item_field *>(item)->field;
  return field && field->table == m_table ? field : nullptr;
}

/* Only what is one already: an expression may call whatever it likes. */
bool Translator::is_constant(Item *item) const
{
  return item->basic_const_item();
}

bool Translator::translate(const ::Query *query, const JOIN *join)
{
  if (query->where && !add_condition(query->where))
    return false;
  if (!query->group_by && !join->implicit_grouping)
    return false;
  return add_groups(query) && add_outputs(query) && add_order(query);
}

bool Translator::add_groups(const ::Query *query)
{
  for (ORDER *group= query->group_by; group; group= group->next)
  {
    Field *field= column_of(*group->item);
    int number= field ? column(field, false) : -1;
    if (number < 0)
      return false;
    m_groups.push_back(field);
    pando_query_group(m_query, uint32_t(number));
  }
  return true;
}

/* The items of the temporary table, as Create_tmp_table::add_fields takes them. */
bool Translator::add_outputs(const ::Query *query)
{
  List_iterator_fast<Item> items(*query->select);
  int hidden= query->n_aux;
  bool has_average= false;
  for (Item *item; (item= items++); hidden--)
  {
    if (item->type() == Item::SUM_FUNC_ITEM)
    {
      Item_sum *sum= static_cast<Item_sum *>(item);
      /* Inside of expressions and HAVING the server computes with more digits than it shows. */
      if (sum->sum_func() == Item_sum::AVG_FUNC)
      {
        if (hidden > 0)
          return false;
        has_average= true;
      }
      if (!add_sum(sum))
        return false;
      continue;
    }
    if (item->with_sum_func())
    {
      /* Computed from the others when rows are sent. */
      if (item->type() != Item::FUNC_ITEM || item->with_subquery() || item->with_window_func() || hidden > 0)
        return false;
      /* Without any column in it the server wants it stored. */
      if (!(item->used_tables() & ~OUTER_REF_TABLE_BIT))
        return false;
      continue;
    }
    if (item->const_item())
    {
      if (hidden > 0 || !is_constant(item))
        return false;
      continue;
    }
    Field *field= column_of(item);
    uint place= 0;
    while (place < m_groups.size() && m_groups[place] != field)
      place++;
    if (!field || place == m_groups.size())
      return false;
    outputs.push_back(Output{item, Output::VALUE, place, field});
  }
  return !(has_average && query->having);
}

bool Translator::add_sum(Item_sum *item)
{
  if (item->const_item() || item->get_arg_count() != 1)
    return false;
  const uint cell= uint(m_groups.size()) + m_aggregates++;
  Item *argument= item->get_arg(0);
  Field *field= column_of(argument);
  PandoQueryColumn unused;
  switch (item->sum_func())
  {
  case Item_sum::COUNT_FUNC:
  {
    outputs.push_back(Output{item, Output::COUNT, cell, nullptr});
    if (!field)
    {
      if (!argument->basic_const_item() || argument->is_null())
        return false;
      pando_query_aggregate(m_query, PANDO_AGGREGATE_ROWS, 0);
      return true;
    }
    int number= column(field, true);
    pando_query_aggregate(m_query, PANDO_AGGREGATE_COUNT, uint32_t(number));
    return number >= 0;
  }
  case Item_sum::COUNT_DISTINCT_FUNC:
  case Item_sum::MIN_FUNC:
  case Item_sum::MAX_FUNC:
  {
    int number= field ? column(field, false) : -1;
    if (number < 0)
      return false;
    bool is_count= item->sum_func() == Item_sum::COUNT_DISTINCT_FUNC;
    /* Whether zeros fill it depends on the server's plan. */
    if (!is_count && field->flags & ZEROFILL_FLAG)
      return false;
    outputs.push_back(Output{item, is_count ? Output::COUNT : Output::VALUE, cell, field});
    pando_query_aggregate(m_query, is_count ? PANDO_AGGREGATE_DISTINCT :
                          item->sum_func() == Item_sum::MIN_FUNC ? PANDO_AGGREGATE_MIN : PANDO_AGGREGATE_MAX,
                          uint32_t(number));
    return true;
  }
  case Item_sum::SUM_FUNC:
  case Item_sum::AVG_FUNC:
  {
    if (!field || class_of(field, &unused) != Column_class::NUMBER || item->result_type() != DECIMAL_RESULT)
      return false;
    int number= column(field, false);
    outputs.push_back(Output{item, item->sum_func() == Item_sum::SUM_FUNC ? Output::SUM : Output::AVERAGE, cell,
                             field});
    pando_query_aggregate(m_query, PANDO_AGGREGATE_SUM, uint32_t(number));
    return number >= 0;
  }
  default:
    return false;
  }
}

/* The order of the answer: the server does not sort what it is given. */
bool Translator::add_order(const ::Query *query)
{
  if (!query->group_by)
    return true; /* one row */
  for (ORDER *part= query->order_by; part; part= part->next)
  {
    Item *item= *part->item;
    Field *field= column_of(item);
    uint place= 0;
    for (; place < outputs.size(); place++)
      if (outputs[place].item == item ||
          (field && outputs[place].kind == Output::VALUE && column_of(outputs[place].item) == field))
        break;
    if (place == outputs.size())
      return false;
    order.push_back(Order_part{place, part->direction == ORDER::ORDER_DESC});
  }
  return true;
}

bool Translator::add_list(Item_cond *list)
{
  List_iterator_fast<Item> parts(*list->argument_list());
  uint count= 0;
  for (Item *part; (part= parts++); count++)
    if (!add_condition(part))
      return false;
  condition(list->functype() == Item_func::COND_AND_FUNC ? PANDO_OPERATOR_AND : PANDO_OPERATOR_OR, 0, count);
  return true;
}

bool Translator::add_condition(Item *item)
{
  if (item->type() == Item::COND_ITEM)
  {
    Item_cond *list= static_cast<Item_cond *>(item);
    return (list->functype() == Item_func::COND_AND_FUNC || list->functype() == Item_func::COND_OR_FUNC) &&
           add_list(list);
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(item);
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
  case Item_func::NE_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
    return add_comparison(function);
  case Item_func::BETWEEN:
    return add_between(function);
  case Item_func::IN_FUNC:
    return add_in(function);
  case Item_func::ISNULL_FUNC:
  case Item_func::ISNOTNULL_FUNC:
  {
    Field *field= column_of(function->arguments()[0]);
    int number= field ? column(field, true) : -1;
    if (number < 0)
      return false;
    condition(PANDO_OPERATOR_IS_NULL, number);
    if (function->functype() == Item_func::ISNOTNULL_FUNC)
      condition(PANDO_OPERATOR_NOT, 0);
    return true;
  }
  case Item_func::NOT_FUNC:
    if (!add_condition(function->arguments()[0]))
      return false;
    condition(PANDO_OPERATOR_NOT, 0);
    return true;
  default:
    return false;
  }
}

static PandoOperator operator_of(Item_func::Functype type, bool swapped)
{
  switch (type)
  {
  case Item_func::EQ_FUNC: return PANDO_OPERATOR_EQUAL;
  case Item_func::NE_FUNC: return PANDO_OPERATOR_NOT_EQUAL;
  case Item_func::LT_FUNC: return swapped ? PANDO_OPERATOR_GREATER : PANDO_OPERATOR_LESS;
  case Item_func::LE_FUNC: return swapped ? PANDO_OPERATOR_GREATER_OR_EQUAL : PANDO_OPERATOR_LESS_OR_EQUAL;
  case Item_func::GT_FUNC: return swapped ? PANDO_OPERATOR_LESS : PANDO_OPERATOR_GREATER;
  default:                 return swapped ? PANDO_OPERATOR_LESS_OR_EQUAL : PANDO_OPERATOR_GREATER_OR_EQUAL;
  }
}

bool Translator::add_comparison(Item_func *function)
{
  Item **arguments= function->arguments();
  bool swapped= !column_of(arguments[0]);
  Field *field= column_of(arguments[swapped ? 1 : 0]);
  if (!field || !add_constant(field, arguments[swapped ? 0 : 1],
                              static_cast<Item_bool_func *>(function)->compare_collation()))
    return false;
  int number= column(field, false);
  condition(operator_of(function->functype(), swapped), number);
  return number >= 0;
}

bool Translator::add_between(Item_func *function)
{
  Item_func_opt_neg *between= static_cast<Item_func_opt_neg *>(function);
  Item **arguments= function->arguments();
  Field *field= column_of(arguments[0]);
  int number= field ? column(field, false) : -1;
  if (number < 0 || !add_constant(field, arguments[1], between->compare_collation()))
    return false;
  condition(PANDO_OPERATOR_GREATER_OR_EQUAL, number);
  if (!add_constant(field, arguments[2], between->compare_collation()))
    return false;
  condition(PANDO_OPERATOR_LESS_OR_EQUAL, number);
  condition(PANDO_OPERATOR_AND, 0, 2);
  if (between->negated)
    condition(PANDO_OPERATOR_NOT, 0);
  return true;
}

bool Translator::add_in(Item_func *function)
{
  Item_func_opt_neg *in= static_cast<Item_func_opt_neg *>(function);
  Item **arguments= function->arguments();
  Field *field= column_of(arguments[0]);
  int number= field ? column(field, false) : -1;
  if (number < 0)
    return false;
  for (uint i= 1; i < function->argument_count(); i++)
    if (!add_constant(field, arguments[i], in->compare_collation()))
      return false;
  condition(PANDO_OPERATOR_IN, number);
  if (in->negated)
    condition(PANDO_OPERATOR_NOT, 0);
  return true;
}

/* A constant that the server compares with the column as values of the column's own kind. */
bool Translator::add_constant(Field *field, Item *item, CHARSET_INFO *collation)
{
  if (!is_constant(item))
    return false;
  /* What the server keeps converted: the constant itself, whose conversion it may never come to, and warn. */
  while (item->type() == Item::CACHE_ITEM)
    item= static_cast<Item_cache *>(item)->get_item();
  PandoQueryColumn unused= {};
  switch (class_of(field, &unused))
  {
  case Column_class::NUMBER:   return add_number(field, item);
  case Column_class::DATE:
  case Column_class::DATETIME: return add_moment(field, item);
  case Column_class::TEXT:     return add_text(field, item, collation);
  default:                     return false;
  }
}

/* The decimal digits of a number, as many as fit. */
static bool to_number(const my_decimal *decimal, PandoConstant *constant)
{
  StringBuffer<DECIMAL_MAX_STR_LENGTH + 2> text;
  if (decimal->to_string_native(&text, 0, 0, 0) != E_DEC_OK)
    return false;
  __int128 value= 0;
  uint digits= 0;
  bool negative= false, behind= false;
  for (uint i= 0; i < text.length(); i++)
  {
    char c= text[i];
    if (c == '-')
      negative= true;
    else if (c == '.')
      behind= true;
    else if (c < '0' || c > '9' || (value && ++digits > PRECISION_MAX))
      return false;
    else
    {
      value= value * 10 + (c - '0');
      constant->scale+= behind;
    }
  }
  if (negative)
    value= -value;
  constant->low= uint64_t(value);
  constant->high= int64_t(value >> 64);
  return constant->scale <= PRECISION_MAX;
}

/* Whether a column of this type could have the number, but for digits behind the point: where it could not, what the
   server answers depends on its plan (NOT IN over a range of a key takes the number for the nearest that there is). */
static bool is_within_type(const Field *field, const PandoConstant &constant)
{
  PandoQueryColumn column= {};
  class_of(field, &column);
  __int128 value= (__int128)((unsigned __int128)(constant.high) << 64 | constant.low), limit= 1;
  for (uint i= 0; i < constant.scale; i++)
    value/= 10;
  if (column.form == PANDO_FORM_DECIMAL)
  {
    for (uint i= column.scale; i < column.precision; i++)
      limit*= 10;
    return value > -limit && value < limit;
  }
  const bool has_sign= column.form == PANDO_FORM_SIGNED;
  limit<<= 8 * field->pack_length() - (has_sign ? 1 : 0);
  return value < limit && value >= (has_sign ? -limit : 0) && !(constant.high < 0 && !has_sign);
}

bool Translator::add_number(Field *field, Item *item)
{
  if (item->cmp_type() != item->result_type() ||
      (item->cmp_type() != INT_RESULT && item->cmp_type() != DECIMAL_RESULT))
    return false;
  my_decimal buffer;
  PandoConstant constant= {};
  const my_decimal *decimal= item->val_decimal(&buffer);
  if (item->null_value || !decimal || !to_number(decimal, &constant) || !is_within_type(field, constant))
    return false;
  pando_query_constant(m_query, constant);
  return true;
}

/* 'YYYY-MM-DD', perhaps with ' hh:mm:ss': texts that are one moment whatever the rules of conversion. */
static bool is_plain_moment(const String &text)
{
  static const char PATTERN[]= "0000-00-00 00:00:00";
  if (text.length() != 10 && text.length() != 19)
    return false;
  for (uint i= 0; i < text.length(); i++)
    if (PATTERN[i] == '0' ? !my_isdigit(&my_charset_latin1, text[i]) : text[i] != PATTERN[i])
      return false;
  return true;
}

static bool is_moment(Item *item)
{
  const enum_field_types type= item->field_type();
  if (item->cmp_type() == TIME_RESULT)
    return type == MYSQL_TYPE_DATE || type == MYSQL_TYPE_DATETIME;
  if (item->cmp_type() != STRING_RESULT || !item->basic_const_item() || item->collation.collation->mbminlen != 1)
    return false;
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  String *text= item->val_str(&buffer);
  if (!text || !is_plain_moment(*text))
    return false;
  const int month= (text->ptr()[5] - '0') * 10 + text->ptr()[6] - '0';
  const int day= (text->ptr()[8] - '0') * 10 + text->ptr()[9] - '0';
  return text->ptr()[0] != '0' && month >= 1 && month <= 12 && day >= 1 && day <= 28;
}

/* A DATE or DATETIME, as the column stores it. */
bool Translator::add_moment(Field *field, Item *item)
{
  if (!is_moment(item))
    return false;
  Datetime moment(m_thd, item, Datetime::Options_cmp(m_thd));
  if (!moment.is_valid_datetime())
    return false;
  const MYSQL_TIME *time= moment.get_mysql_time();
  PandoConstant constant= {};
  if (field->real_type() == MYSQL_TYPE_NEWDATE)
  {
    if (time->hour || time->minute || time->second || time->second_part)
      return false;
    constant.low= time->day + time->month * 32 + time->year * 16 * 32;
  }
  else
  {
    static const uint UNITS[]= {1000000, 100000, 10000, 1000, 100, 10, 1};
    uchar bytes[8];
    const uint decimals= field->decimals(), size= field->pack_length();
    if (decimals > 6 || size > sizeof(bytes) || time->second_part % UNITS[decimals])
      return false;
    my_datetime_packed_to_binary(TIME_to_longlong_datetime_packed(time), bytes, decimals);
    for (uint i= 0; i < size; i++)
      constant.low= constant.low << 8 | bytes[i];
  }
  pando_query_constant(m_query, constant);
  return true;
}

bool Translator::add_text(Field *field, Item *item, CHARSET_INFO *collation)
{
  if (item->cmp_type() != STRING_RESULT || !collation ||
      !my_charset_same(item->collation.collation, field->charset()) ||
      !my_charset_same(collation, field->charset()))
    return false;
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  String *text= item->val_str(&buffer);
  if (!text || item->null_value)
    return false;
  PandoConstant constant= {};
  constant.is_text= 1;
  constant.collation= collation;
  constant.text= PandoBytes{reinterpret_cast<const uint8_t *>(text->ptr()), text->length()};
  pando_query_constant(m_query, constant);
  return true;
}

} // namespace pando
