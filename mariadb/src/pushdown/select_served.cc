/* Expressions of SELECTs of any shape that the server's own Items compute: which they may be, and what they look at. */
#include "select_block.h"
#include "select_silence.h"
#include "select_translate.h"
#include "sql_time.h"
#include "sql_type_json.h"

#include <algorithm>

namespace pando {

using B= Select_bytes;

/* Digits behind the point that a quotient has beyond those that it shows. */
static const uint SERVED_SCALE_MAX= 30;

/* Functions that do something, or whose value is not a matter of their arguments. */
static bool has_effects(const Item_func *function)
{
  static const char *const NAMES[]= {"sleep", "benchmark", "get_lock", "release_lock", "release_all_locks", "is_free_lock",
    "is_used_lock", "last_insert_id", "found_rows", "row_count", "master_pos_wait", "master_gtid_wait", "load_file", "nextval",
    "lastval", "setval", "name_const", "values", "default", "uuid", "uuid_short", "sys_guid", "rand", "random_bytes", "sysdate",
    "rownum", "encrypt", "sformat", "lag", "lead", "match", "wsrep_sync_wait_upto"};
  for (const char *name : NAMES)
    if (!strcasecmp(function->func_name(), name))
      return true;
  switch (function->functype())
  {
  case Item_func::FT_FUNC:
  case Item_func::SUSERVAR_FUNC:
  case Item_func::GUSERVAR_FUNC: /* constant ones are told before */
  case Item_func::FUNC_SP:
  case Item_func::UDF_FUNC:
  case Item_func::ROWNUM_FUNC:
  case Item_func::TRIG_COND_FUNC:
  case Item_func::NOT_ALL_FUNC:
  case Item_func::IN_OPTIMIZER_FUNC:
  case Item_func::TEMPTABLE_ROWID:
  case Item_func::MULT_EQUAL_FUNC:
  case Item_func::ISNOTNULLTEST_FUNC:
  case Item_func::SYSDATE_FUNC:
    return true;
  default:
    return function->used_tables() & RAND_TABLE_BIT;
  }
}

bool acts(const Item *item, uint depth)
{
  static const uint DEPTH_MAX= 64;
  if (depth > DEPTH_MAX)
    return true;
  if (item->type() == Item::CACHE_ITEM)
  {
    const Item *of= const_cast<Item_cache *>(static_cast<const Item_cache *>(item))->get_item();
    return of && acts(of, depth + 1);
  }
  if (item->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> parts(*const_cast<Item_cond *>(static_cast<const Item_cond *>(item))->argument_list());
    while (const Item *part= parts++)
      if (acts(part, depth + 1))
        return true;
    return false;
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<const Item_func *>(item);
  if (function->functype() == Item_func::GSYSVAR_FUNC || (function->functype() != Item_func::GUSERVAR_FUNC && has_effects(function)))
    return true;
  for (uint i= 0; i < function->argument_count(); i++)
    if (acts(function->arguments()[i], depth + 1))
      return true;
  return false;
}

/* What the optimizer makes something else of: `date IS NULL` finds zero dates, and of a key that counts the last one. */
bool is_rewritten(const Item_func *function)
{
  if (function->functype() != Item_func::ISNULL_FUNC)
    return false;
  Item *argument= function->arguments()[0]->real_item();
  if (argument->type() != Item::FIELD_ITEM)
    return false;
  const Field *field= static_cast<Item_field *>(argument)->field;
  const bool finds_last= (field->flags & AUTO_INCREMENT_FLAG) && (current_thd->variables.option_bits & OPTION_AUTO_IS_NULL) &&
                         !field->table->maybe_null;
  return finds_last || ((field->flags & NOT_NULL_FLAG) && argument->cmp_type() == TIME_RESULT);
}

/* Rows are compared column by column. What is a number or a text, as 0x61, is converted by what stands elsewhere; rows within rows have no field's type,
   and the server dies of the question. */
static bool are_rows_alike(const Item_func *function)
{
  Item **arguments= function->arguments();
  for (uint column= 0; column < arguments[0]->cols(); column++)
    for (uint i= 1; i < function->argument_count(); i++)
    {
      if (arguments[i]->cols() != arguments[0]->cols())
        return false;
      Item *one= arguments[i]->element_index(column), *first= arguments[0]->element_index(column);
      if (one->cols() != 1 || first->cols() != 1)
        return false;
      if (one->cmp_type() != first->cmp_type() || dynamic_cast<Item_hex_constant *>(one) || first->field_type() == MYSQL_TYPE_BIT)
        return false;
    }
  return true;
}

/* What there is to say of constants that the server converts to compare them: it may do so once, and keep them. False: rows of values
   that are compared as different types. */
bool Select_translator::converts(Item_func *function)
{
  Item **arguments= function->arguments();
  const uint count= function->argument_count();
  bool has_number= false, has_moment= false;
  for (uint i= 0; i < count; i++)
  {
    if (is_constant(arguments[i]) && arguments[i]->cmp_type() == STRING_RESULT)
      continue;
    has_moment|= arguments[i]->cmp_type() == TIME_RESULT;
    has_number|= arguments[i]->cmp_type() != TIME_RESULT && arguments[i]->cmp_type() != STRING_RESULT;
  }
  if (count > 1 && arguments[0]->cols() > 1)
    return are_rows_alike(function);
  if (function->type_handler() != &type_handler_bool || (!has_number && !has_moment))
    return true;
  for (uint i= 0; i < count; i++)
  {
    if (arguments[i]->cols() != 1 || !is_constant(arguments[i]))
      continue;
    Item *item= without_cache(arguments[i]);
    if (has_number)
      (void) item->val_real();
    if (has_moment)
    {
      MYSQL_TIME time;
      (void) item->get_date(m_thd, &time, Datetime::Options_cmp(m_thd));
    }
  }
  return true;
}

bool Select_translator::is_group(Item *item) const
{
  for (const ORDER *group= m_groups; group; group= group->next)
  {
    Item *of= *group->item;
    if (of->real_item()->type() != Item::FIELD_ITEM && !is_constant(of) && is_same(item, of))
      return true;
  }
  return false;
}

static bool is_average_of_decimals(const Item *item)
{
  return item->type() == Item::SUM_FUNC_ITEM && static_cast<const Item_sum *>(item)->sum_func() == Item_sum::AVG_FUNC &&
         item->result_type() == DECIMAL_RESULT;
}

/* What may have more digits than its type: an average, and a sum of what has. */
static bool is_aggregate_of_decimals(const Item *item)
{
  return is_average_of_decimals(item) || (item->type() == Item::SUM_FUNC_ITEM && item->result_type() == DECIMAL_RESULT &&
                                          static_cast<const Item_sum *>(item)->sum_func() == Item_sum::SUM_FUNC);
}

/* Whether a function looks at this argument as a DECIMAL, or shows it as a text. An average has all digits of its quotient then, or those of a column of a
   temporary table (see the_same_rounded()); as a text it is rounded. As a DOUBLE, and as an integer, it may also be the quotient of two DOUBLEs, by the plan
   of the server (`Item_sum_avg`). */
static bool looks_at_decimal(const Item_func *function, uint argument)
{
  if (is_one_of(function, {"format"}))
    return !argument;
  if (is_one_of(function, {"floor", "ceiling", "concat", "concat_ws", "cast_as_char", "DIV"}))
    return true;
  const bool is_decimal= function->result_type() == DECIMAL_RESULT;
  if (is_one_of(function, {"round", "truncate"}))
    return is_decimal && !argument;
  if (is_one_of(function, {"coalesce", "ifnull"}))
    return is_decimal || function->result_type() == STRING_RESULT;
  if (is_one_of(function, {"if"}))
    return argument && (is_decimal || function->result_type() == STRING_RESULT);
  return is_decimal && is_one_of(function, {"+", "-", "*", "/", "abs", "greatest", "least", "decimal_typecast"});
}

/* Something that the engine gives a value for, in the place of what stands there. */
bool Select_translator::leaf(Item **place, bool is_of_group, Server_expression *served)
{
  Said said;
  const bool is_average= !is_of_group && is_average_of_decimals((*place)->real_item());
  for (const Server_leaf &known : served->leaves)
    if (known.is_at(place))
      return true;
  if (is_filled_extreme(*place))
    return refuse("an extreme of zero-filled numbers");
  /* A field of ours would be a text, which JSON functions quote. */
  if (Type_handler_json_common::is_json_type_handler((*place)->type_handler()))
    return refuse("JSON of a group or of a derived table");
  const Restored outer_average(m_is_average_in_function);
  m_is_average_in_function= is_average;
  if (is_of_group ? !expression(*place, &said) : !native(*place, &said))
    return false;
  /* As a text it has the digits of its type; of how many it is a quotient is a matter of those that it has. */
  const bool has_all_digits= !is_of_group && is_aggregate_of_decimals((*place)->real_item()) && served->looks_at_decimal && !m_select->have_window_funcs();
  if ((said.is_exact && !has_all_digits) || (said.is_mixed && served->quotients))
    return refuse("a quotient whose digits depend on the plan");
  served->leaves.emplace_back(place, said.kind);
  if (!served->leaves.back().make(m_thd))
    return refuse("the type of a value");
  served->said.push_back(said.bytes);
  return true;
}

/* Not of a derived table, whose columns are the engine's. */
bool Select_translator::is_of_table(const Field *field) const
{
  const auto is_of= [field](const Source &source) { return source.table && source.table == field->table && source.number >= 0; };
  return std::any_of(m_sources.begin(), m_sources.end(), is_of);
}

bool Select_translator::field_leaf(Item **place, Server_expression *served)
{
  Field *field= static_cast<Item_field *>(*place)->field;
  if (!is_of_table(field))
    return leaf(place, false, served);
  for (const Server_leaf &known : served->leaves)
    if (known.is_of(field))
      return true;
  if (!field->stored_in_db())
  {
    Virtual_column_info *info= field->vcol_info;
    if (std::count(served->virtual_fields.begin(), served->virtual_fields.end(), field))
      return true;
    if (!info || !info->expr || info->need_refix())
      return refuse("a virtual column");
    if (!leaves_of(&info->expr, served))
      return false;
    served->virtual_fields.push_back(field);
    return true;
  }
  Said said;
  if (!column(field, &said))
    return false;
  served->leaves.emplace_back(field, said.kind);
  served->said.push_back(said.bytes);
  return true;
}

/* Of IN the server converts the list when names are resolved, and says then what there is to say; once more, where it pushes it into a
   derived table, makes a join of its query, or looks for ranges of a key. */
bool is_list_converted(Item_func *function)
{
  if (function->functype() != Item_func::IN_FUNC || !static_cast<Item_func_in *>(function)->array)
    return false;
  /* Of NOT IN the optimizer makes ranges, of columns without a key, too. */
  if (static_cast<Item_func_in *>(function)->negated)
    return false;
  const Item *of= function->arguments()[0]->real_item();
  if (of->type() != Item::FIELD_ITEM)
    return false;
  const Field *field= static_cast<const Item_field *>(of)->field;
  TABLE_LIST *list= field->table->pos_in_table_list;
  return field->part_of_key.is_clear_all() && !list->is_view_or_derived() && list->select_lex && !list->select_lex->master_unit()->item;
}

/* Texts that are compared with numbers become numbers, whatever they are compared with: adds them. False: there is more to it. */
static bool add_converted(Item_func *function, std::vector<Item *> *to)
{
  if (!compares_values(function) || function->functype() == Item_func::IN_FUNC)
    return false;
  for (uint i= 0; i < function->argument_count(); i++)
  {
    Item *argument= function->arguments()[i];
    if (argument->cols() != 1 || argument->cmp_type() == TIME_RESULT)
      return false;
    if (argument->cmp_type() != STRING_RESULT || argument->const_item())
      continue;
    if (argument->real_item()->type() != Item::FIELD_ITEM)
      return false;
    to->push_back(argument);
  }
  return true;
}

/* Whether a constant of the comparison may be looked for in a key, and the rows found there not be compared again. */
static bool may_be_looked_for(const SELECT_LEX *select, const Item_func *function)
{
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
  case Item_func::EQUAL_FUNC:
  case Item_func::IN_FUNC:
    break;
  default:
    return false;
  }
  for (uint i= 0; i < function->argument_count(); i++)
    if (may_be_in_key(select, function->arguments()[i]))
      return true;
  return false;
}

bool Select_translator::function_leaves(Item_func *function, Server_expression *served)
{
  if (has_effects(function))
    return refuse(function->func_name());
  /* Of a column that is the zero date it is 0, and NULL of what is computed, or stands for the column (of a view, in HAVING); the engine's value stands in a
     column. */
  if (is_one_of(function, {"unix_timestamp"}) && function->argument_count())
  {
    const Item *argument= function->arguments()[0];
    const bool is_column= argument->real_item()->type() == Item::FIELD_ITEM;
    if (is_column ? argument->type() != Item::FIELD_ITEM || m_is_in_having : argument->with_sum_func())
      return refuse("UNIX_TIMESTAMP of what stands for a column");
  }
  if (is_rewritten(function) && m_is_condition)
    return refuse_for_good("IS NULL of a date");
  if (function->functype() == Item_func::IN_FUNC && function->arguments()[0]->cols() > 1 && !are_rows_alike(function))
    return refuse_for_good("rows that are compared as different types");
  {
    Silent_evaluation evaluation(m_thd);
    const bool are_alike= is_list_converted(function) || converts(function);
    if (!evaluation.is_silent() && !refuse_constant(evaluation) && m_is_hopeless)
      return false;
    if (!are_alike && !m_hears_constants)
      return refuse_for_good("a constant that warns");
    /* Where a key leads to the rows, nobody says so. */
    if (!evaluation.is_silent() && m_is_condition && may_be_looked_for(m_select, function))
      return refuse_for_good("a constant that warns, and may be looked for in a key");
    served->has_warning_constant|= !evaluation.is_silent();
    if (!are_alike || !is_silent(m_thd, function, served->guards))
    {
      served->may_warn= true;
      served->may_fail|= !only_warns(function);
      served->is_of_converted&= are_alike && add_converted(function, &served->converted);
    }
  }
  const size_t count= served->leaves.size();
  for (uint i= 0; i < function->argument_count(); i++)
  {
    const size_t before= served->guards.enter(function, i);
    const bool is_quotient= is_one_of(function, {"/"});
    served->looks_at_decimal= looks_at_decimal(function, i);
    served->quotients+= is_quotient;
    const bool is_taken= leaves_of(function->arguments() + i, served);
    served->quotients-= is_quotient;
    served->looks_at_decimal= false;
    served->guards.leave(before);
    if (!is_taken)
      return false;
  }
  /* It keeps its first argument itself. */
  if (!strcasecmp(function->func_name(), "nullif"))
    for (size_t i= count; i < served->leaves.size(); i++)
      for (uint j= 0; j < function->argument_count(); j++)
        if (served->leaves[i].is_at(function->arguments() + j))
          return refuse("NULLIF");
  return true;
}

/* Whether NULLIF is of an aggregate, or of a column of a derived table. It keeps its first argument itself, so that nothing can stand in the place of that: something
   has to stand in the place of NULLIF. */
bool Select_translator::keeps_a_leaf(const Item_func *function) const
{
  if (strcasecmp(function->func_name(), "nullif"))
    return false;
  const Item *first= function->arguments()[0];
  if (first->type() == Item::FIELD_ITEM)
    return !is_of_table(static_cast<const Item_field *>(first)->field);
  return first->type() == Item::CACHE_ITEM || first->type() == Item::REF_ITEM || first->type() == Item::SUM_FUNC_ITEM;
}

bool Select_translator::leaves_of(Item **place, Server_expression *served)
{
  Nesting nesting(this);
  Item *item= *place;
  if (!nesting.is_allowed())
    return refuse("a deep expression");
  if (item->basic_const_item())
    return true;
  if (item->const_item() && keeps_converted(item))
    return refuse_for_good("a constant that is converted");
  if (is_constant(item))
  {
    Silent_evaluation evaluation(m_thd);
    StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
    (void) without_cache(item)->val_str(&buffer);
    if (!evaluation.is_silent() && !refuse_constant(evaluation) && m_is_hopeless)
      return false;
    served->has_warning_constant|= !evaluation.is_silent();
    if (evaluation.is_one_warning() && m_is_condition)
      served->heard.add_kept(Saying{Sql_condition::WARN_LEVEL_WARN, evaluation.code(), evaluation.text()});
    return true;
  }
  if (place != served->place() && is_group(item))
    return leaf(place, true, served);
  switch (item->type())
  {
  case Item::FIELD_ITEM:
    return field_leaf(place, served);
  case Item::REF_ITEM:
  {
    Item_ref *ref= static_cast<Item_ref *>(item);
    if (!ref->ref || !*ref->ref)
      return refuse("a reference");
    if (ref->ref_type() == Item_ref::VIEW_REF)
    {
      Said said;
      bool is_known= false;
      if (!derived_column(ref, &said, &is_known))
        return false;
      if (is_known)
        return leaf(place, false, served);
      return refuse("a column of a view");
    }
    if ((*ref->ref)->type() == Item::SUM_FUNC_ITEM || (*ref->ref)->type() == Item::SUBSELECT_ITEM)
      return leaf(place, false, served);
    return leaves_of(ref->ref, served);
  }
  case Item::FUNC_ITEM:
    if (place != served->place() && keeps_a_leaf(static_cast<Item_func *>(item)))
      return leaf(place, false, served);
    return function_leaves(static_cast<Item_func *>(item), served);
  case Item::COND_ITEM:
  {
    List_iterator<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    while (parts++)
      if (!leaves_of(parts.ref(), served))
        return false;
    return true;
  }
  case Item::ROW_ITEM:
    for (uint i= 0; i < item->cols(); i++)
      if (!leaves_of(item->addr(i), served))
        return false;
    return true;
  case Item::SUBSELECT_ITEM:
    if (static_cast<Item_subselect *>(item)->substype() == Item_subselect::SINGLEROW_SUBS && item->cols() == 1 && place != served->place())
      return leaf(place, false, served);
    return refuse("a subquery in a function");
  case Item::WINDOW_FUNC_ITEM:
    served->is_over_window= true;
    return place != served->place() ? leaf(place, false, served) : refuse("a window");
  case Item::CACHE_ITEM:
    return refuse("a value that the server keeps, as that of an aggregate within NULLIF");
  default:
    return refuse("an item");
  }
}

/* Of what the server computes. */
static bool kind_of_served(Item *item, Value_kind *kind)
{
  switch (item->cmp_type())
  {
  case INT_RESULT:
    if (item->result_type() != INT_RESULT)
      return false;
    kind->tag= item->unsigned_flag || item->field_type() == MYSQL_TYPE_BIT ? Value_kind::UNSIGNED : Value_kind::SIGNED;
    return true;
  case DECIMAL_RESULT:
    kind->tag= Value_kind::DECIMAL;
    kind->of= item->decimals;
    return item->decimals <= SERVED_SCALE_MAX;
  case REAL_RESULT:
    kind->tag= Value_kind::REAL;
    return true;
  case TIME_RESULT:
    /* Of a text the server does not know how many digits a second will have, and shows as many as there are: unless it has kept it. */
    if (item->decimals > TIME_SECOND_PART_DIGITS)
      return false;
    switch (item->field_type())
    {
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_NEWDATE:  kind->tag= Value_kind::DATE; return true;
    case MYSQL_TYPE_DATETIME: kind->tag= Value_kind::DATETIME; return true;
    case MYSQL_TYPE_TIME:     kind->tag= Value_kind::TIME; return true;
    default:                  return false;
    }
  case STRING_RESULT:
    kind->tag= Value_kind::TEXT;
    /* A column of BINARY would fill it with zeros. */
    if (item->field_type() == MYSQL_TYPE_STRING && item->collation.collation == &my_charset_bin)
      return false;
    return (item->type_handler()->is_traditional_scalar_type() || Type_handler_json_common::is_json_type_handler(item->type_handler())) &&
           item->field_type() != MYSQL_TYPE_ENUM &&
           item->field_type() != MYSQL_TYPE_SET && item->field_type() != MYSQL_TYPE_GEOMETRY;
  default:
    return false;
  }
}

static bool divides(Item *item)
{
  item= item->real_item();
  if (is_average_of_decimals(item))
    return true;
  if (is_aggregate_of_decimals(item))
    return divides(static_cast<Item_sum *>(item)->get_arg(0));
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(item);
  if (!strcmp(function->func_name(), "/"))
    return true;
  if (!strcasecmp(function->func_name(), "round") || !strcasecmp(function->func_name(), "truncate") ||
      !strcasecmp(function->func_name(), "decimal_typecast"))
    return false;
  for (uint i= 0; i < function->argument_count(); i++)
    if (function->arguments()[i]->cols() == 1 && divides(function->arguments()[i]))
      return true;
  return false;
}

/* Whether there is a remainder of DECIMALs in it: of -1.0 % 1 the server makes a zero that is less than others, as long as it is not stored. */
static bool may_be_negative_zero(Item *item, uint depth= 0)
{
  static const uint DEPTH_MAX= 64;
  item= item->real_item();
  if (item->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<Item_func *>(item);
  if (depth > DEPTH_MAX ||
      (is_one_of(function, {"%", "mod"}) && function->result_type() == DECIMAL_RESULT && !function->arguments()[0]->unsigned_flag))
    return true;
  for (uint i= 0; i < function->argument_count(); i++)
    if (function->arguments()[i]->cols() == 1 && may_be_negative_zero(function->arguments()[i], depth + 1))
      return true;
  return false;
}

/* Whether there is a least one of moments and texts in it. Of a date that the calendar does not have, IS NULL and a function that looks at the moment see
   NULL, and who looks at the text sees the date. */
static bool has_least_of_moments_and_texts(Item *item, uint depth= 0)
{
  static const uint DEPTH_MAX= 64;
  item= item->real_item();
  if (item->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<Item_func *>(item);
  Item **begin= function->arguments(), **end= begin + function->argument_count();
  const auto is_moment= [](const Item *one) { return one->cmp_type() == TIME_RESULT; };
  if (depth > DEPTH_MAX ||
      (is_one_of(function, {"greatest", "least"}) && std::any_of(begin, end, is_moment) && !std::all_of(begin, end, is_moment)))
    return true;
  return std::any_of(begin, end, [depth](Item *one) { return one->cols() == 1 && has_least_of_moments_and_texts(one, depth + 1); });
}

bool Select_translator::server(Item *item, bool is_condition, Said *said)
{
  Nesting nesting(this);
  Value_kind kind{Value_kind::SIGNED, 0};
  if (m_is_hopeless || !nesting.is_allowed() || item->cols() != 1 || item->type() == Item::SUM_FUNC_ITEM ||
      item->type() == Item::SUBSELECT_ITEM || item->type() == Item::WINDOW_FUNC_ITEM)
    return false;
  if (!is_condition && !kind_of_served(item, &kind))
    return refuse("the type of a function");
  if (has_wide_quotient(item))
    return refuse("a whole quotient that its type does not hold");
  if (has_least_of_moments_and_texts(item))
    return refuse("the least of moments and texts");
  if (kind.tag == Value_kind::TEXT)
    kind.of= collation_number(item->collation.collation);
  if (kind.tag == Value_kind::DECIMAL && may_be_negative_zero(item))
    return refuse("a remainder of DECIMALs as a value");
  bool has_more_digits= false;
  if (kind.tag == Value_kind::DECIMAL && divides(item))
  {
    has_more_digits= true;
    kind.of= std::min((kind.of + 8) / 9 * 9 + 9, SERVED_SCALE_MAX);
  }
  return served_as(item, kind, is_condition, has_more_digits, said);
}

/* Digits that an integer has at most: what is computed of it further may not leave its type. */
static uint digits_of_integer(Item *item)
{
  static const uint DIGITS_MAX= 20, DIGITS_OF_SHORT= 10;
  item= item->real_item();
  if (item->type() != Item::FUNC_ITEM)
    return DIGITS_MAX;
  return is_one_of(static_cast<Item_func *>(item),
                   {"year", "month", "quarter", "dayofmonth", "dayofyear", "dayofweek", "weekday", "week", "yearweek", "hour", "minute",
                    "second", "microsecond", "to_days", "time_to_sec", "length", "octet_length", "char_length", "ascii", "instr", "locate",
                    "sign", "crc32", "strcmp", "field", "find_in_set"}) ? DIGITS_OF_SHORT : DIGITS_MAX;
}

static uint32_t number_of_served(const Said &said)
{
  uint32_t number= 0;
  for (uint i= 0; i < 4; i++)
    number|= uint32_t(uint8_t(said.bytes[1 + i])) << (8 * i);
  return number;
}

/* Of which rows of several tables a condition is computed nobody knows: so each of the texts that it makes numbers of is asked of all rows of
   its table. False: the engine has to find out. */
bool Select_translator::ask_of_parts(Server_expression *served)
{
  const auto is_of_first= [served](const Server_leaf &leaf) { return leaf.table() && leaf.table() == served->leaves[0].table(); };
  if (!m_is_condition || !served->may_warn || !served->is_of_converted ||
      std::all_of(served->leaves.begin(), served->leaves.end(), is_of_first))
    return false;
  std::vector<std::string> asked;
  for (Item *item : served->converted)
  {
    const Value_kind real{Value_kind::REAL, 0};
    Said of;
    if (!served_as(item, real, false, false, &of))
      return false;
    Heard *heard= &served_expressions[number_of_served(of)]->heard;
    heard->is_part= true;
    served->heard.parts.push_back(heard);
    asked.push_back(of.bytes);
  }
  for (const std::string &one : asked)
    ask(one, m_hears_constants);
  return true;
}

/* An item's value as one of a kind that need not be its own: the server's Item is asked for a number, or for a text, as the server would
   ask it. */
bool Select_translator::served_as(Item *item, const Value_kind &kind, bool is_condition, bool has_more_digits, Said *said)
{
  if (m_is_hopeless)
    return false;
  std::unique_ptr<Server_expression> served(new Server_expression(m_thd, item, kind, is_condition));
  const uint widened_met= m_widened_met;
  if (!leaves_of(served->place(), served.get()) || computes_of_widened(widened_met))
    return false;
  floor_leaves(served.get());
  const auto is_known= [&](const std::unique_ptr<Server_expression> &known) {
    return known->kind() == kind && known->is_condition() == is_condition && known->said == served->said &&
           is_same(known->item(), item);
  };
  /* What a statement stores has errors instead of warnings. */
  const bool may_fail= served->may_fail || (served->may_warn && !m_hears_constants);
  m_order_can_fail|= may_fail && m_is_order;
  const bool was_hopeless= m_is_hopeless;
  const bool is_asked_in_parts= ask_of_parts(served.get());
  m_is_hopeless= was_hopeless;
  /* Said of rows that the server's plan chooses: see `Saying` in crates/analytic/src/tags.rs. */
  PandoSaying may_say= PANDO_SAYING_NOTHING;
  if (served->may_warn && m_is_condition)
    may_say= !is_asked_in_parts ? (may_fail ? PANDO_SAYING_ERRORS : PANDO_SAYING_WARNINGS) :
             m_hears_constants ? PANDO_SAYING_OF_PARTS : PANDO_SAYING_NOTHING;
  m_warning_met+= served->may_warn;
  served->is_heard= m_hears_constants && !served->is_over_window && (m_hears_rows || (m_is_condition && m_hears_conditions) || !served->may_warn) &&
                    !(m_is_order && m_has_joins && served->may_warn);
  const auto known= std::find_if(served_expressions.begin(), served_expressions.end(), is_known);
  const uint number= uint(known - served_expressions.begin());
  if (known != served_expressions.end())
  {
    (*known)->is_heard&= served->is_heard;
    (*known)->heard.parts.insert((*known)->heard.parts.end(), served->heard.parts.begin(), served->heard.parts.end());
  }
  B::byte(&said->bytes, PANDO_TAG_SERVER);
  B::small(&said->bytes, number);
  B::kind(&said->bytes, kind);
  B::byte(&said->bytes, may_say);
  const auto is_alike= [&](const std::unique_ptr<Server_expression> &one) {
    return one->kind() == kind && one->is_condition() == is_condition && is_same(one->item(), item);
  };
  const auto first= std::find_if(served_expressions.begin(), served_expressions.end(), is_alike);
  B::small(&said->bytes, uint32_t(first - served_expressions.begin()));
  B::small(&said->bytes, uint32_t(served->said.size()));
  for (const std::string &one : served->said)
    said->bytes+= one;
  said->kind= kind;
  said->is_exact= has_more_digits;
  said->is_mixed= kind.tag == Value_kind::DECIMAL;
  said->digits= is_condition ? 1 : kind.tag == Value_kind::DECIMAL ? std::min(item->max_length, 65u) : digits_of_integer(item);
  if (known == served_expressions.end())
    served_expressions.push_back(std::move(served));
  return true;
}

} // namespace pando
