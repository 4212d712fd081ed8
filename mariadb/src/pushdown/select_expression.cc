/* Expressions of SELECTs of any shape, said in the engine's words. */
#include "select_translate.h"
#include "compat56.h"
#include "sql_time.h"

#include <algorithm>
#include <cmath>

namespace pando {

using B= Select_bytes;

/* Digits behind the point that the engine computes with. */
static const uint SCALE_MAX= 30;

static bool has_name(const Item_func *function, const char *name)
{
  return !strcasecmp(function->func_name(), name);
}

bool Select_translator::is_constant(Item *item) const
{
  if (item->cols() != 1 || item->with_subquery() || item->with_sum_func())
    return false;
  /* NULLIF keeps its first argument so: one of all rows, as COUNT(*) is, looks at no column. */
  if (const Item *kept= without_cache(item); !kept || kept->with_sum_func() || kept->with_subquery() || kept->with_window_func())
    return false;
  if (item->basic_const_item())
    return true;
  return item->fixed() && item->const_item() && !item->used_tables() && item->can_eval_in_optimize() && !keeps_converted(item) && !acts(item) &&
         (item->type() == Item::FUNC_ITEM || item->type() == Item::CACHE_ITEM || item->type() == Item::COND_ITEM ||
          item->type() == Item::PARAM_ITEM || item->type() == Item::CONST_ITEM); /* the last: variables of programs */
}

uint Select_translator::collation_number(const CHARSET_INFO *collation)
{
  const auto known= m_collations.find(collation);
  if (known != m_collations.end())
    return known->second;
  const uint number= uint(collations.size());
  collations.push_back(collation);
  m_collations[collation]= number;
  return number;
}

/* Of an item that is a number to the server. */
Value_kind Select_translator::kind_of_number(const Item *item) const
{
  Value_kind kind;
  if (item->cmp_type() != item->result_type())
    return kind;
  switch (item->result_type())
  {
  case INT_RESULT:
    kind.tag= item->field_type() == MYSQL_TYPE_BIT ? Value_kind::NONE :
              item->unsigned_flag ? Value_kind::UNSIGNED : Value_kind::SIGNED;
    break;
  case DECIMAL_RESULT:
    kind.tag= item->decimals <= SCALE_MAX ? Value_kind::DECIMAL : Value_kind::NONE;
    kind.of= item->decimals;
    break;
  case REAL_RESULT:
    kind.tag= Value_kind::REAL;
    break;
  default:
    break;
  }
  return kind;
}

/* The engine's number of a type whose values are no texts, but bytes. */
uint Select_translator::type_number(const Field *field)
{
  /* DECIMALs: of the same digits. */
  const uint size= field->real_type() == MYSQL_TYPE_NEWDECIMAL ? field->field_length * 64 + field->decimals() : field->pack_length();
  const bool has_members= field->real_type() == MYSQL_TYPE_ENUM || field->real_type() == MYSQL_TYPE_SET;
  const std::pair<const void *, uint> type(
    has_members ? static_cast<const void *>(members_of(field)) : field->type_handler(), size);
  const auto known= m_types.find(type);
  if (known != m_types.end())
    return known->second;
  /* Not a collation: bytes are compared. */
  const uint number= uint(collations.size());
  collations.push_back(nullptr);
  return m_types[type]= number;
}

bool Select_translator::kind_of_field(Field *field, Value_kind *kind, uint *form, uint *precision)
{
  const auto is= [&](Value_kind::Tag tag, uint of_form) {
    kind->tag= tag;
    *form= of_form;
    return true;
  };
  /* What is stored says nothing of the text. */
  if (field->compression_method())
    return false;
  switch (field->real_type())
  {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
    return field->flags & UNSIGNED_FLAG ? is(Value_kind::UNSIGNED, PANDO_FORM_UNSIGNED) : is(Value_kind::SIGNED, PANDO_FORM_SIGNED);
  case MYSQL_TYPE_NEWDECIMAL:
    kind->of= field->decimals();
    *precision= static_cast<const Field_new_decimal *>(field)->precision;
    if (*precision <= 36 && kind->of <= SCALE_MAX)
      return is(Value_kind::DECIMAL, PANDO_FORM_DECIMAL);
    /* Its bytes are ordered as it is. */
    kind->of= type_number(field);
    return is(Value_kind::RAW, PANDO_FORM_TEXT);
  case MYSQL_TYPE_FLOAT:
  case MYSQL_TYPE_DOUBLE:
    return is(Value_kind::REAL, 5);
  case MYSQL_TYPE_NEWDATE:
    return is(Value_kind::DATE, PANDO_FORM_UNSIGNED);
  case MYSQL_TYPE_DATETIME2:
    return is(Value_kind::DATETIME, PANDO_FORM_ORDERED);
  case MYSQL_TYPE_TIME2:
    return is(Value_kind::TIME, PANDO_FORM_ORDERED);
  case MYSQL_TYPE_YEAR:
    return field->field_length == 4 && is(Value_kind::UNSIGNED, PANDO_FORM_YEAR);
  case MYSQL_TYPE_ENUM:
  case MYSQL_TYPE_SET:
    kind->of= type_number(field);
    return is(field->real_type() == MYSQL_TYPE_ENUM ? Value_kind::ENUM : Value_kind::SET, PANDO_FORM_UNSIGNED);
  case MYSQL_TYPE_BIT:
    kind->of= field->field_length;
    return is(Value_kind::BIT, PANDO_FORM_ORDERED);
  case MYSQL_TYPE_TIMESTAMP2:
    kind->of= field->decimals();
    return is(Value_kind::STAMP, PANDO_FORM_ORDERED);
  case MYSQL_TYPE_VARCHAR:
    break;
  case MYSQL_TYPE_STRING:
    if (field->type_handler()->is_traditional_scalar_type() && field->charset() != &my_charset_bin)
      break;
    kind->of= type_number(field);
    return is(Value_kind::RAW, PANDO_FORM_TEXT);
  case MYSQL_TYPE_BLOB:
    if (field->type() == MYSQL_TYPE_GEOMETRY)
      return false;
    break;
  default:
    return false;
  }
  *form= PANDO_FORM_TEXT;
  kind->tag= Value_kind::TEXT;
  kind->of= collation_number(field->charset());
  return true;
}

void Select_translator::put_slot(uint slot, const Value_kind &kind, Said *said)
{
  B::column(&said->bytes, slot, kind);
  said->kind= kind;
  m_widened_met+= uint(m_widened.count(slot));
  const auto mixed= m_mixed.find(slot);
  if (mixed == m_mixed.end())
    return;
  said->is_mixed= mixed->second.is_mixed;
  said->mixes_zero= mixed->second.mixes_zero;
  said->digits= mixed->second.digits;
}

bool Select_translator::column(Field *field, Said *said)
{
  if (!column_of_source(field, said))
    return false;
  if (m_filled.count(field))
    without_filling(field, said);
  return true;
}

/* A query that is said twice has its tables twice: those that were named last are its own. */
bool Select_translator::column_of_source(Field *field, Said *said)
{
  for (auto at= m_sources.rbegin(); at != m_sources.rend(); ++at)
  {
    Source &source= *at;
    if (source.table != field->table || !source.table)
      continue;
    if (source.number < 0)
    {
      if (field->field_index >= source.slots.size())
        return refuse("a column of a derived table");
      put_slot(source.slots[field->field_index], source.kinds[field->field_index], said);
      return true;
    }
    if (!field->stored_in_db())
      return refuse("a virtual column");
    uint form= 0, precision= 0;
    if (!kind_of_field(field, &said->kind, &form, &precision))
      return refuse("the type of a column");
    const auto is_field= [field](const Column &column) { return column.field == field && !column.is_length; };
    auto known= std::find_if(source.columns.begin(), source.columns.end(), is_field);
    if (known == source.columns.end())
    {
      source.columns.push_back(Column{m_next_slot++, field, false});
      columns++;
      known= std::prev(source.columns.end());
    }
    B::column(&said->bytes, known->slot, said->kind);
    said->digits= precision ? double(precision) : std::log10(2.0) * 8 * field->pack_length();
    return true;
  }
  return refuse("a column of no table");
}

/* A column of a view or derived table that the server merges. */
bool Select_translator::derived_column(Item_ref *ref, Said *said, bool *is_known)
{
  *is_known= false;
  for (auto at= m_sources.rbegin(); at != m_sources.rend(); ++at)
  {
    Source &source= *at;
    if (source.number >= 0 || !source.list->field_translation)
      continue;
    for (uint i= 0; i < source.slots.size(); i++)
      if (&source.list->field_translation[i].item == ref->ref ||
          source.list->field_translation[i].item == *ref->ref)
      {
        *is_known= true;
        put_slot(source.slots[i], source.kinds[i], said);
        return true;
      }
  }
  return true;
}

/* Whether rows of it may be missing: then what it computes is NULL. */
static bool may_lack_rows(const TABLE_LIST *list)
{
  for (const TABLE_LIST *nest= list; nest; nest= nest->embedding)
    if (is_outer_joined(nest))
      return true;
  return false;
}

/* The argument of a window function, of which the server keeps what is behind the column of a view (split_sum_func2). It is given by the
   outermost of the views that have it; of a query that is said twice, by those that were named last. An expression of a view on the inner side
   of a LEFT JOIN is not: the server forgets that it is NULL where there is no row. */
bool Select_translator::column_behind(const Item *item, Said *said)
{
  const Source *found= nullptr;
  uint place= 0;
  size_t at= m_sources.size(), found_at= 0;
  for (auto source= m_sources.rbegin(); source != m_sources.rend(); ++source)
  {
    at--;
    if (source->number >= 0 || !source->list->field_translation || (found && source->sources_within <= found_at) ||
        (item->type() != Item::FIELD_ITEM && may_lack_rows(source->list)))
      continue;
    for (uint i= 0; i < source->slots.size(); i++)
      if (source->list->field_translation[i].item->real_item() == item)
      {
        found= &*source;
        found_at= at;
        place= i;
        break;
      }
  }
  if (found)
    put_slot(found->slots[place], found->kinds[place], said);
  return found;
}

/* What has no form of the engine's is the server's to compute. */
bool Select_translator::expression(Item *item, Said *said)
{
  return sharply(item, said, [&](Said *to) { return value(item, to); });
}

bool Select_translator::value(Item *item, Said *said)
{
  const size_t sources= m_sources.size(), table_count= tables.size();
  if (native(item, said))
    return true;
  const char *why= reason;
  *said= Said();
  m_sources.resize(sources);
  tables.resize(table_count);
  reason= why;
  return server(item, false, said);
}

bool Select_translator::native(Item *item, Said *said)
{
  Nesting nesting(this);
  if (!nesting.is_allowed())
    return refuse("a deep expression");
  if (item->cols() != 1)
    return refuse("a row of values");
  if (is_constant(item))
    return constant(item, said);
  const uint widened_met= m_widened_met;
  switch (item->type())
  {
  case Item::REF_ITEM:
  {
    Item_ref *ref= static_cast<Item_ref *>(item);
    if (!ref->ref || !*ref->ref)
      return refuse("a reference");
    if (ref->ref_type() == Item_ref::VIEW_REF)
    {
      bool is_known= false;
      if (!derived_column(ref, said, &is_known) || is_known)
        return is_known;
    }
    else if (column_behind(*ref->ref, said))
      return true;
    return expression(*ref->ref, said);
  }
  case Item::CACHE_ITEM:
    if (Item *cached= static_cast<Item_cache *>(item)->get_example())
      return expression(cached, said);
    return refuse("a cache");
  case Item::FIELD_ITEM:
    return column(static_cast<Item_field *>(item)->field, said);
  case Item::SUM_FUNC_ITEM:
    return aggregate(static_cast<Item_sum *>(item), said);
  case Item::WINDOW_FUNC_ITEM:
    return window(static_cast<Item_window_func *>(item), said);
  case Item::SUBSELECT_ITEM:
    return subquery(static_cast<Item_subselect *>(item), said);
  case Item::COND_ITEM:
    return condition(item, said);
  case Item::FUNC_ITEM:
    return function(static_cast<Item_func *>(item), said) && !computes_of_widened(widened_met);
  default:
    return refuse("an item");
  }
}

/* A constant that is not NULL, and of which there is nothing to say. */
bool Select_translator::is_some_constant(Item *item)
{
  Silent_evaluation evaluation(m_thd);
  return is_constant(item) && !without_cache(item)->is_null() && evaluation.is_silent();
}

/* A constant, as what the server says it is. */
bool Select_translator::constant(Item *item, Said *said)
{
  /* Not what the server keeps converted: it may never come to convert it, and warn. */
  item= without_cache(item);
  Silent_evaluation evaluation(m_thd);
  Value_kind kind= kind_of_number(item);
  if (item->type() == Item::NULL_ITEM)
    kind= Value_kind{Value_kind::SIGNED, 0};
  else if (kind.tag == Value_kind::NONE)
  {
    const enum_field_types type= item->field_type();
    if (item->cmp_type() == TIME_RESULT && (type == MYSQL_TYPE_DATE || type == MYSQL_TYPE_NEWDATE))
      kind.tag= Value_kind::DATE;
    else if (item->cmp_type() == TIME_RESULT && type == MYSQL_TYPE_DATETIME)
      kind.tag= Value_kind::DATETIME;
    else if (item->cmp_type() == STRING_RESULT && item->type_handler()->is_traditional_scalar_type())
      kind= Value_kind{Value_kind::TEXT, collation_number(item->collation.collation)};
    else
      return refuse("the type of a constant");
  }
  if (!constant_of(item, kind, item->collation.collation, said))
    return false;
  return evaluation.is_silent() || refuse_constant(evaluation);
}

/* A constant as a value of a kind that it is compared as, or has. */
bool Select_translator::constant_of(Item *item, const Value_kind &kind, CHARSET_INFO *charset, Said *said)
{
  said->kind= kind;
  item= without_cache(item);
  if (item->type() == Item::NULL_ITEM)
  {
    put_null(&said->bytes, kind);
    return true;
  }
  switch (kind.tag)
  {
  case Value_kind::SIGNED:
  case Value_kind::UNSIGNED:
  case Value_kind::DECIMAL:
    return constant_number(item, said);
  case Value_kind::REAL:
    return constant_real(item, said);
  case Value_kind::DATE:
  case Value_kind::DATETIME:
    return constant_moment(item, said);
  case Value_kind::TIME:
    return constant_time(item, said);
  case Value_kind::TEXT:
    return constant_text(item, charset, said);
  default:
    return refuse("a constant");
  }
}

bool Select_translator::constant_number(Item *item, Said *said)
{
  Silent_evaluation evaluation(m_thd);
  my_decimal buffer;
  const my_decimal *decimal= item->val_decimal(&buffer);
  if (!evaluation.is_silent())
    return refuse_constant(evaluation);
  if (item->null_value || !decimal)
  {
    put_null(&said->bytes, said->kind);
    return true;
  }
  __int128 value= 0;
  uint scale= 0;
  if (!digits_of(decimal, &value, &scale) || (said->kind.is_integer() && scale))
    return refuse("a constant number");
  if (said->kind.tag == Value_kind::DECIMAL)
    said->kind.of= scale;
  put_number(&said->bytes, value, said->kind);
  said->digits= std::log10(std::fabs(double(value)) + 1);
  return true;
}

bool Select_translator::constant_real(Item *item, Said *said)
{
  Silent_evaluation evaluation(m_thd);
  const double value= item->val_real();
  if (!evaluation.is_silent())
    return refuse_constant(evaluation);
  if (item->null_value)
    put_null(&said->bytes, said->kind);
  else
    put_real(&said->bytes, value, said->kind);
  return true;
}

/* A DATE without a time of day, if one is asked for; else a DATETIME. */
bool Select_translator::constant_moment(Item *item, Said *said)
{
  const enum_field_types type= item->field_type();
  if (item->cmp_type() == TIME_RESULT ? type != MYSQL_TYPE_DATE && type != MYSQL_TYPE_DATETIME :
                                        !is_compared_as_text(item))
    return refuse("the type of a constant moment");
  Silent_evaluation evaluation(m_thd);
  Datetime moment(m_thd, item, Datetime::Options_cmp(m_thd));
  if (!evaluation.is_silent())
    return refuse_constant(evaluation);
  if (!moment.is_valid_datetime())
    return refuse("a constant moment");
  const MYSQL_TIME *time= moment.get_mysql_time();
  if (!time->year || !time->month || !time->day)
    return refuse("a constant moment with zeros");
  const bool is_midnight= !time->hour && !time->minute && !time->second && !time->second_part;
  if (is_midnight && said->kind.tag == Value_kind::DATE)
  {
    put_number(&said->bytes, time->day + time->month * 32 + time->year * 16 * 32, said->kind);
    return true;
  }
  said->kind.tag= Value_kind::DATETIME;
  put_number(&said->bytes, TIME_to_longlong_datetime_packed(time), said->kind);
  return true;
}

bool Select_translator::constant_time(Item *item, Said *said)
{
  /* Of a date and a time the server's optimizer makes something else than its Item. */
  if (!is_time(item))
    return m_is_condition ? refuse_for_good("the type of a constant time") : refuse("the type of a constant time");
  Silent_evaluation evaluation(m_thd);
  const Time time(m_thd, item, Time::Options_cmp(m_thd));
  if (!evaluation.is_silent())
    return refuse_constant(evaluation);
  if (!time.is_valid_time())
    return refuse("a constant time");
  put_number(&said->bytes, TIME_to_longlong_time_packed(time.get_mysql_time()), said->kind);
  return true;
}

bool Select_translator::constant_text(Item *item, CHARSET_INFO *charset, Said *said)
{
  if (!is_compared_as_text(item) || !my_charset_same(item->collation.collation, charset))
    return refuse("the character set of a constant text");
  Silent_evaluation evaluation(m_thd);
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  String *text= item->val_str(&buffer);
  if (!evaluation.is_silent())
    return refuse_constant(evaluation);
  if (text && text->length() > TEXT_BYTES_MAX)
    return refuse("a constant text");
  if (!text || item->null_value)
    put_null(&said->bytes, said->kind);
  else
    put_text(&said->bytes, text->ptr(), text->length(), said->kind);
  return true;
}

bool Select_translator::function(Item_func *function, Said *said)
{
  /* An empty text is NULL to these. */
  if (function->schema() == &oracle_schema_ref)
    return refuse("a function of Oracle's");
  if (has_wide_quotient(function))
    return refuse("a whole quotient that its type does not hold");
  if (function->argument_count() == 2)
  {
    static const struct { const char *name; PandoOperation operation; } OPERATIONS[]= {{"+", PANDO_OPERATION_ADD},
      {"-", PANDO_OPERATION_SUBTRACT}, {"*", PANDO_OPERATION_MULTIPLY}};
    for (const auto &one : OPERATIONS)
      if (has_name(function, one.name))
        return arithmetic(function, one.operation, said);
    if (has_name(function, "/"))
      return division(function, said);
  }
  if (function->functype() == Item_func::NEG_FUNC)
    return negation(function, said);
  if (function->functype() == Item_func::CASE_SEARCHED_FUNC || (has_name(function, "if") && function->argument_count() == 3))
    return case_of(function, said);
  if (has_name(function, "coalesce") || has_name(function, "ifnull"))
    return coalesce(function, said);
  if (has_name(function, "nullif"))
    return null_if(function, said);
  static const struct { const char *name; PandoMomentPart part; } PARTS[]= {{"year", PANDO_MOMENT_PART_YEAR},
    {"month", PANDO_MOMENT_PART_MONTH}, {"dayofmonth", PANDO_MOMENT_PART_DAY}, {"quarter", PANDO_MOMENT_PART_QUARTER},
    {"hour", PANDO_MOMENT_PART_HOUR}, {"minute", PANDO_MOMENT_PART_MINUTE}, {"second", PANDO_MOMENT_PART_SECOND}};
  for (const auto &one : PARTS)
    if (function->argument_count() == 1 && has_name(function, one.name))
      return moment_part(function, one.part, said);
  if (has_name(function, "cast_as_date"))
    return date_of(function, said);
  if (has_name(function, "unix_timestamp"))
    return unix_timestamp(function, false, said);
  if (has_name(function, "DIV"))
    return whole_quotient(function, said);
  if (has_name(function, "truncate"))
    return truncation(function, said);
  if (has_name(function, "cast_as_signed"))
    return cast_to_integer(function, said);
  if (function->functype() == Item_func::EXTRACT_FUNC)
  {
    static const struct { interval_type type; PandoMomentPart part; } TYPES[]= {{INTERVAL_YEAR, PANDO_MOMENT_PART_YEAR},
      {INTERVAL_MONTH, PANDO_MOMENT_PART_MONTH}, {INTERVAL_DAY, PANDO_MOMENT_PART_DAY},
      {INTERVAL_QUARTER, PANDO_MOMENT_PART_QUARTER}, {INTERVAL_YEAR_MONTH, PANDO_MOMENT_PART_YEAR_MONTH},
      {INTERVAL_HOUR, PANDO_MOMENT_PART_HOUR}, {INTERVAL_MINUTE, PANDO_MOMENT_PART_MINUTE},
      {INTERVAL_SECOND, PANDO_MOMENT_PART_SECOND}};
    for (const auto &one : TYPES)
      if (static_cast<Item_extract *>(function)->int_type == one.type)
        return moment_part(function, one.part, said);
    return refuse("EXTRACT");
  }
  if (has_name(function, "substr") || has_name(function, "substring"))
    return text_change(function, Text_change::SUBSTRING, said);
  if (has_name(function, "left") && function->argument_count() == 2)
    return text_change(function, Text_change::LEFT, said);
  if (has_name(function, "right") && function->argument_count() == 2)
    return text_change(function, Text_change::RIGHT, said);
  static const struct { const char *name; Text_change::What what; } CHANGES[]= {{"trim", Text_change::TRIM},
    {"ltrim", Text_change::LTRIM}, {"rtrim", Text_change::RTRIM}, {"lcase", Text_change::LOWER}, {"ucase", Text_change::UPPER}};
  for (const auto &one : CHANGES)
    if (function->argument_count() == 1 && has_name(function, one.name))
      return text_change(function, one.what, said);
  if (has_name(function, "length") || has_name(function, "octet_length"))
    return text_measure(function, Text_measure::BYTES, said);
  if (has_name(function, "char_length"))
    return text_measure(function, Text_measure::CHARACTERS, said);
  if (function->type_handler() == &type_handler_bool || function->functype() == Item_func::IN_OPTIMIZER_FUNC)
    return condition(function, said);
  return refuse("a function");
}

/* As a DOUBLE, if that is exact. */
bool Select_translator::to_real(Item *item, Said *said)
{
  if (is_constant(item))
    return constant_of(item, Value_kind{Value_kind::REAL, 0}, nullptr, said);
  if (!expression(item, said))
    return false;
  if (said->kind.tag == Value_kind::REAL)
    return true;
  if (!said->kind.is_integer())
    return refuse("a conversion to DOUBLE");
  convert(said, Value_kind{Value_kind::REAL, 0});
  return true;
}

void Select_translator::convert(Said *said, const Value_kind &kind)
{
  if (said->kind == kind)
    return;
  std::string bytes;
  B::byte(&bytes, PANDO_TAG_CONVERT);
  B::kind(&bytes, kind);
  said->bytes.insert(0, bytes);
  said->kind= kind;
}

/* The server may ask a condition of each branch of a UNION, where a column is still an integer, and fail. */
bool Select_translator::computes_of_widened(uint met_before)
{
  return m_is_condition && m_widened_met != met_before &&
         !refuse_for_good("a condition on an integer that a UNION makes another number");
}

bool Select_translator::arithmetic(Item_func *function, PandoOperation operation, Said *said)
{
  Item **arguments= function->arguments();
  const Value_kind kind= kind_of_number(function);
  Said first, second;
  if (kind.tag == Value_kind::REAL)
  {
    if (!to_real(arguments[0], &first) || !to_real(arguments[1], &second))
      return false;
    B::byte(&said->bytes, PANDO_TAG_REAL);
    B::byte(&said->bytes, operation);
    said->bytes+= first.bytes + second.bytes;
    said->kind= kind;
    return true;
  }
  if (!kind.is_number() || !is_exact_number(arguments[0]) || !is_exact_number(arguments[1]) ||
      !expression(arguments[0], &first) || !expression(arguments[1], &second))
    return refuse("arithmetic");
  if (!first.kind.is_number() || !second.kind.is_number() ||
      (kind.is_integer() && !(first.kind.is_integer() && second.kind.is_integer())))
    return refuse("arithmetic of other things");
  said->kind= kind;
  const bool multiplies= operation == PANDO_OPERATION_MULTIPLY;
  said->is_exact= first.is_exact || second.is_exact;
  said->is_mixed= first.is_mixed || second.is_mixed || (!multiplies && (first.mixes_zero || second.mixes_zero));
  said->mixes_zero= first.mixes_zero || second.mixes_zero;
  if (kind.tag == Value_kind::DECIMAL)
  {
    said->kind.of= multiplies ? first.kind.scale() + second.kind.scale() : std::max(first.kind.scale(), second.kind.scale());
    if (said->kind.of > SCALE_MAX || (!said->is_exact && said->kind.of != function->decimals))
      return refuse("digits of arithmetic");
  }
  const double scale= std::max(first.kind.scale(), second.kind.scale());
  said->digits= multiplies ? first.digits + second.digits :
                std::max(first.digits + scale - first.kind.scale(), second.digits + scale - second.kind.scale()) + 0.31;
  const bool is_without_sign= kind.tag == Value_kind::UNSIGNED;
  const bool may_be_below= is_without_sign && (operation == PANDO_OPERATION_SUBTRACT || first.kind.tag != Value_kind::UNSIGNED || second.kind.tag != Value_kind::UNSIGNED);
  const bool can_fail= may_be_below || said->digits > (kind.is_integer() ? 18.9 : 65);
  m_order_can_fail|= m_is_order && can_fail;
  if (m_is_condition && can_fail)
    return refuse("a condition that can fail");
  B::byte(&said->bytes, PANDO_TAG_ARITHMETIC);
  B::byte(&said->bytes, operation);
  B::kind(&said->bytes, said->kind);
  said->bytes+= first.bytes + second.bytes;
  return true;
}

bool Select_translator::negation(Item_func *function, Said *said)
{
  const Value_kind kind= kind_of_number(function);
  Said of;
  Item *argument= function->arguments()[0];
  if (!kind.is_number() || !is_exact_number(argument) || !expression(argument, &of) || !of.kind.is_number() ||
      kind.is_integer() != of.kind.is_integer())
    return refuse("a negation");
  said->kind= Value_kind{kind.tag, of.kind.of};
  said->is_exact= of.is_exact;
  said->is_mixed= of.is_mixed;
  said->mixes_zero= of.mixes_zero;
  said->digits= of.digits;
  const bool can_fail= kind.is_integer() && (of.digits > 18.9 || of.kind.tag == Value_kind::UNSIGNED);
  m_order_can_fail|= m_is_order && can_fail;
  if (m_is_condition && can_fail)
    return refuse("a condition that can fail");
  B::byte(&said->bytes, PANDO_TAG_ARITHMETIC);
  B::byte(&said->bytes, PANDO_OPERATION_SUBTRACT);
  B::kind(&said->bytes, said->kind);
  put_number(&said->bytes, 0, Value_kind{Value_kind::SIGNED, 0});
  said->bytes+= of.bytes;
  return true;
}

bool Select_translator::case_of(Item_func *function, Said *said)
{
  Item **arguments= function->arguments();
  const uint count= function->argument_count();
  std::vector<std::pair<Item *, Item *>> whens;
  if (function->functype() != Item_func::CASE_SEARCHED_FUNC)
  {
    whens.emplace_back(arguments[0], arguments[1]);
    return choice(function, whens, arguments[2], said);
  }
  for (uint i= 0; i < count / 2; i++)
    whens.emplace_back(arguments[i], arguments[count / 2 + i]);
  return choice(function, whens, count % 2 ? arguments[count - 1] : nullptr, said);
}

bool Select_translator::coalesce(Item_func *function, Said *said)
{
  std::vector<std::pair<Item *, Item *>> whens;
  const uint count= function->argument_count();
  for (uint i= 0; i + 1 < count; i++)
    whens.emplace_back(nullptr, function->arguments()[i]);
  return choice(function, whens, function->arguments()[count - 1], said);
}

/* A condition that is missing: that the value is not NULL. */
bool Select_translator::choice(Item_func *function, const std::vector<std::pair<Item *, Item *>> &whens,
                               Item *otherwise, Said *said)
{
  Value_kind kind= kind_of_number(function);
  if (kind.tag == Value_kind::NONE)
  {
    const enum_field_types type= function->field_type();
    if (function->cmp_type() == STRING_RESULT && function->type_handler()->is_traditional_scalar_type())
      kind= Value_kind{Value_kind::TEXT, collation_number(function->collation.collation)};
    else if (type == MYSQL_TYPE_DATE || type == MYSQL_TYPE_NEWDATE)
      kind.tag= Value_kind::DATE;
    else if (type == MYSQL_TYPE_DATETIME)
      kind.tag= Value_kind::DATETIME;
    else
      return refuse("the type of a choice");
  }
  std::string bytes;
  uint scale= 0;
  double whole_digits= 0;
  bool is_first= true;
  const auto put_value= [&](Item *item) {
    Said value;
    if (!item || item->type() == Item::NULL_ITEM)
    {
      put_null(&bytes, kind);
      return true;
    }
    if (kind.tag == Value_kind::REAL ? !to_real(item, &value) : !expression(item, &value))
      return false;
    if (kind.is_number() ? !value.kind.is_number() || !is_exact_number(item) || (kind.is_integer() && !value.kind.is_integer()) :
                           value.kind.tag != kind.tag)
      return refuse("a choice of different kinds");
    if (kind.tag == Value_kind::TEXT && !my_charset_same(item->collation.collation, function->collation.collation))
      return refuse("a choice of different character sets");
    /* What a condition warns of is heard of all of it. */
    if (value.is_exact && m_is_condition)
      return refuse("a choice of quotients in a condition");
    if (value.is_exact)
    {
      said->is_exact= true;
      kind.of= std::max(kind.of, value.kind.of);
    }
    if ((value.is_exact || kind.tag == Value_kind::DECIMAL) && (kind.tag != Value_kind::DECIMAL || value.kind.scale() > kind.of))
      return refuse("digits of a choice");
    const bool is_zero= is_constant(item) && value.digits == 0;
    said->mixes_zero|= is_zero || value.mixes_zero;
    said->is_mixed|= value.is_mixed || (!is_first && !is_zero && value.kind.scale() != scale);
    whole_digits= std::max(whole_digits, value.digits - value.kind.scale());
    if (!is_zero)
    {
      scale= value.kind.scale();
      is_first= false;
    }
    bytes+= value.bytes;
    return true;
  };
  for (const auto &when : whens)
  {
    Said condition_said;
    if (when.first ? !condition(when.first, &condition_said) : !expression(when.second, &condition_said))
      return false;
    if (!when.first)
    {
      condition_said.bytes.insert(0, 1, char(PANDO_TAG_IS_NULL));
      negate(&condition_said.bytes);
    }
    bytes+= condition_said.bytes;
    if (!put_value(when.second))
      return false;
  }
  if (!put_value(otherwise))
    return false;
  B::byte(&said->bytes, PANDO_TAG_CASE);
  B::kind(&said->bytes, kind);
  B::small(&said->bytes, uint32_t(whens.size()));
  said->bytes+= bytes;
  said->kind= kind;
  said->digits= whole_digits + kind.scale();
  said->is_mixed&= kind.tag == Value_kind::DECIMAL;
  said->mixes_zero&= kind.tag == Value_kind::DECIMAL;
  return true;
}

} // namespace pando
