/* Conditions, said in the engine's words: those that it evaluates exactly as the server would. */
#include "pushdown.h"
#include "sql_select.h"

namespace pando {

/* Which rows count, and which rows of one table belong to which of another. */
bool Translator::add_where(Item *where)
{
  uint count= 0;
  if (where && where->type() == Item::COND_ITEM &&
      static_cast<Item_cond *>(where)->functype() == Item_func::COND_AND_FUNC)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(where)->argument_list());
    for (Item *part; (part= parts++); )
      if (!add_equality(part))
      {
        if (!add_condition(part))
          return false;
        count++;
      }
  }
  else if (where && !add_equality(where))
  {
    if (!add_condition(where))
      return false;
    count++;
  }
  if (count > 1)
    condition(PANDO_OPERATOR_AND, 0, count);
  return are_joined();
}

bool Translator::translate(const std::vector<Item *> &conditions)
{
  for (Item *item : conditions)
    if (!add_condition(item))
      return false;
  if (conditions.size() > 1)
    condition(PANDO_OPERATOR_AND, 0, uint(conditions.size()));
  return !conditions.empty();
}

/* Columns of two tables whose values the engine looks up in each other. False: a condition like any. */
bool Translator::add_equality(Item *item)
{
  if (item->type() != Item::FUNC_ITEM || static_cast<Item_func *>(item)->functype() != Item_func::EQ_FUNC)
    return false;
  Item **arguments= static_cast<Item_func *>(item)->arguments();
  Field *first= column_of(arguments[0]), *second= column_of(arguments[1]);
  if (!first || !second || first->table == second->table)
    return false;
  if (first->real_type() == MYSQL_TYPE_YEAR || second->real_type() == MYSQL_TYPE_YEAR)
    return false; /* compared as dates, or as numbers, depending on the other */
  PandoQueryColumn of_first= {}, of_second= {};
  const Column_class kind= class_of(first, &of_first);
  if (kind != class_of(second, &of_second) || (kind != Column_class::NUMBER && kind != Column_class::DATE) ||
      of_first.scale != of_second.scale ||
      (of_first.form == PANDO_FORM_DECIMAL) != (of_second.form == PANDO_FORM_DECIMAL))
    return false;
  const int a= column(first, false), b= column(second, false);
  if (a < 0 || b < 0)
    return false;
  pando_query_equality(m_query, uint32_t(a), uint32_t(b));
  m_equalities.emplace_back(table_of(first), table_of(second));
  return true;
}

/* Whether equalities connect all tables. */
bool Translator::are_joined() const
{
  ulonglong joined= 1;
  for (bool grows= true; grows; )
  {
    grows= false;
    for (const auto &pair : m_equalities)
    {
      const ulonglong both= (1ULL << pair.first) | (1ULL << pair.second);
      if ((joined & both) && (joined & both) != both)
      {
        joined|= both;
        grows= true;
      }
    }
  }
  return joined == (1ULL << m_tables.size()) - 1;
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

bool Translator::Nesting::is_allowed() const
{
  return m_translator->spend() && m_translator->m_depth <= DEPTH_MAX && has_stack(m_translator->m_thd);
}

/* A row of values has no type that could be asked for: `(a, b) = (SELECT ...)`. */
static bool has_rows(const Item_func *function)
{
  for (uint i= 0; i < function->argument_count(); i++)
    if (function->arguments()[i]->cols() != 1)
      return true;
  return false;
}

bool Translator::add_condition(Item *item)
{
  Nesting nesting(this);
  if (!nesting.is_allowed())
    return false;
  if (item->type() == Item::COND_ITEM)
  {
    Item_cond *list= static_cast<Item_cond *>(item);
    return (list->functype() == Item_func::COND_AND_FUNC || list->functype() == Item_func::COND_OR_FUNC) &&
           add_list(list);
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(item);
  if (has_rows(function))
    return false;
  if (is_sign(function))
    return add_comparison(function);
  switch (function->functype())
  {
  case Item_func::LIKE_FUNC:
    return add_like(function);
  case Item_func::BETWEEN:
    return add_between(function);
  case Item_func::IN_FUNC:
    return add_in(function);
  case Item_func::ISNULL_FUNC:
  case Item_func::ISNOTNULL_FUNC:
    return add_null_test(function);
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

bool Translator::add_null_test(Item_func *function)
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

static bool is_enum(const Field *field)
{
  return field->real_type() == MYSQL_TYPE_ENUM;
}

bool Translator::add_comparison(Item_func *function)
{
  Item **arguments= function->arguments();
  CHARSET_INFO *collation= static_cast<Item_bool_func *>(function)->compare_collation();
  if (!is_constant(arguments[0]) && !is_constant(arguments[1]))
    return add_comparison_of_columns(function);
  const bool swapped= is_constant(arguments[0]);
  Item *compared= arguments[swapped ? 1 : 0], *constant= arguments[swapped ? 0 : 1];
  const PandoOperator op= operator_of(function->functype(), swapped);
  if (Field *field= column_of(compared))
  {
    if (is_enum(field))
      return !swapped && add_members(field, function);
    const int number= column(field, false);
    if (number < 0 || !add_constant(field, constant, collation))
      return false;
    condition(op, number);
    return true;
  }
  if (!is_exact_number(compared) || !is_exact_number(constant))
    return false;
  const Number number= number_of(compared);
  while (constant->type() == Item::CACHE_ITEM)
    constant= static_cast<Item_cache *>(constant)->get_item();
  if (number.slot < 0 || !add_number(nullptr, constant))
    return false;
  condition(op, number.slot);
  return true;
}

/* Whether the server, going from one table to the other by a key, may make an integer of a DECIMAL, and warn. */
static bool is_converted(Item **arguments)
{
  const table_map tables= arguments[0]->used_tables() | arguments[1]->used_tables();
  return (tables & (tables - 1)) && arguments[0]->result_type() != arguments[1]->result_type();
}

/* The server compares two values of type YEAR as dates. */
static bool are_years(Item *first, Item *second)
{
  return first->field_type() == MYSQL_TYPE_YEAR && second->field_type() == MYSQL_TYPE_YEAR;
}

/* Two columns of one kind, or two numbers. */
bool Translator::add_comparison_of_columns(Item_func *function)
{
  Item **arguments= function->arguments();
  const PandoOperator op= operator_of(function->functype(), false);
  Field *first= column_of(arguments[0]), *second= column_of(arguments[1]);
  PandoQueryColumn unused= {};
  const Column_class kind= first ? class_of(first, &unused) : Column_class::NUMBER;
  if (kind != (second ? class_of(second, &unused) : Column_class::NUMBER))
    return false;
  if (kind == Column_class::NUMBER)
  {
    if (are_years(arguments[0], arguments[1]) || !is_exact_number(arguments[0]) || !is_exact_number(arguments[1]) || is_converted(arguments))
      return false;
    const Number a= number_of(arguments[0]), b= number_of(arguments[1]);
    if (a.slot < 0 || b.slot < 0)
      return false;
    pando_query_compare(m_query, op, uint32_t(a.slot), uint32_t(b.slot));
    return true;
  }
  CHARSET_INFO *collation= static_cast<Item_bool_func *>(function)->compare_collation();
  if (kind == Column_class::TEXT ?
        !collation || !my_charset_same(first->charset(), second->charset()) ||
          first->charset() != second->charset() || collation != first->charset() :
        (kind != Column_class::DATE && kind != Column_class::DATETIME) || first->decimals() != second->decimals())
    return false;
  const int a= column(first, false), b= column(second, false);
  if (a < 0 || b < 0)
    return false;
  pando_query_compare(m_query, op, uint32_t(a), uint32_t(b));
  return true;
}

extern "C" {

static uint8_t matches_pattern(const void *context, PandoBytes text)
{
  return static_cast<const Like_pattern *>(context)->matches(text.data, text.len);
}

} // extern "C"

/* Patterns are short: the comparison calls itself for each of their wildcards. */
static const size_t PATTERN_BYTES_MAX= 256;

bool Translator::add_like(Item_func *function)
{
  Item_func_like *like= static_cast<Item_func_like *>(function);
  Field *field= column_of(function->arguments()[0]);
  Item *pattern= function->arguments()[1];
  if (field && is_enum(field))
    return like->fixed() && add_members(field, function);
  PandoQueryColumn unused= {};
  CHARSET_INFO *collation= like->compare_collation();
  if (!field || class_of(field, &unused) != Column_class::TEXT || !is_constant(pattern) ||
      pattern->cmp_type() != STRING_RESULT || collation != field->charset() || !like->fixed() ||
      !my_charset_same(pattern->collation.collation, field->charset()))
    return false;
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  Silent_evaluation evaluation(m_thd);
  String *text= pattern->val_str(&buffer);
  const int number= column(field, false);
  if (!text || !evaluation.is_silent() || pattern->null_value || text->length() > PATTERN_BYTES_MAX || number < 0)
    return false;
  m_patterns.emplace_back(text->ptr(), text->length(), collation, like->escape);
  pando_query_matches(m_query, uint32_t(number), matches_pattern, &m_patterns.back());
  if (like->negated)
    condition(PANDO_OPERATOR_NOT, 0);
  return true;
}

bool Translator::add_between(Item_func *function)
{
  Item_func_opt_neg *between= static_cast<Item_func_opt_neg *>(function);
  Item **arguments= function->arguments();
  Field *field= column_of(arguments[0]);
  if (field && is_enum(field))
    return add_members(field, function);
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
  Item_func_in *in= static_cast<Item_func_in *>(function);
  Item **arguments= function->arguments();
  Field *field= column_of(arguments[0]);
  /* Of a list of texts and numbers the server makes texts, for some character sets, and compares the numbers as numbers all the same. */
  if (!field || (field->cmp_type() == STRING_RESULT && !in->arg_types_compatible))
    return false;
  if (is_enum(field))
    return add_members(field, function);
  int number= column(field, false);
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

} // namespace pando
