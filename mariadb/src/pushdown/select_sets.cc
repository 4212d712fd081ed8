/* UNION, EXCEPT and INTERSECT within a SELECT that the engine answers. */
#include "select_translate.h"
#include "sql_cte.h"

namespace pando {

using B= Select_bytes;

static bool operation_of(SELECT_LEX *select, PandoSetOperation *operation)
{
  switch (select->get_linkage())
  {
  case UNION_TYPE:     *operation= PANDO_SET_OPERATION_UNION; return true;
  case EXCEPT_TYPE:    *operation= PANDO_SET_OPERATION_EXCEPT; return true;
  case INTERSECT_TYPE: *operation= PANDO_SET_OPERATION_INTERSECT; return true;
  default:             return false;
  }
}

static bool is_united_only(SELECT_LEX *first)
{
  for (SELECT_LEX *select= first->next_select(); select; select= select->next_select())
    if (select->get_linkage() != UNION_TYPE)
      return false;
  return true;
}

/* Whether one of the queries may give a NULL. */
static bool gives_null(SELECT_LEX_UNIT *unit)
{
  for (SELECT_LEX *select= unit->first_select(); select; select= select->next_select())
    if (select->item_list.head()->maybe_null())
      return true;
  return false;
}

bool Select_translator::together(SELECT_LEX_UNIT *unit, Use use, std::string *to, std::vector<uint> *slots,
                                 std::vector<Value_kind> *kinds)
{
  const Lex_select_limit &limits= unit->global_parameters()->limit_params;
  if (use == Use::TOP || use == Use::MERGED)
    return refuse("a UNION");
  /* The server asks each of the queries for the row, and for NULL in its place, and loses rows of NOT IN so; where it is the same whether
     it is false or NULL, nothing comes of that. */
  if (use == Use::IN && !m_is_plain_in && !is_united_only(unit->first_select()) && (m_may_in_be_null || gives_null(unit)))
    return refuse("IN of EXCEPT or INTERSECT");
  /* Of EXISTS the server looks at one row. */
  const bool has_limit= use == Use::EXISTS ? limits.select_limit && (!limits.select_limit->basic_const_item() || !limits.select_limit->val_int()) :
                                             limits.select_limit != nullptr;
  if ((unit->with_element && unit->with_element->is_recursive) || has_limit || limits.offset_limit)
    return refuse("a UNION with a LIMIT, or with itself");
  /* Whether there are rows does not depend on what they are. */
  const Use of_branch= use == Use::EXISTS && is_united_only(unit->first_select()) ? Use::EXISTS : Use::BRANCH;
  std::vector<Item *> types;
  List_iterator_fast<Item> of_unit(unit->types);
  for (Item *type; (type= of_unit++); )
    types.push_back(type);
  std::set<uint> widened;
  widened.swap(m_widened_columns);
  static const size_t NO_OTHERS_BYTES= 4;
  uint32_t count= 0;
  std::string others;
  for (SELECT_LEX *select= unit->first_select(); select; select= select->next_select(), count++)
  {
    PandoSetOperation operation= PANDO_SET_OPERATION_UNION;
    std::string bytes;
    std::vector<uint> of_slots;
    std::vector<Value_kind> of_kinds;
    if (of_branch == Use::BRANCH && types.size() != select->item_list.elements)
      return refuse("a UNION");
    m_union_types= &types;
    const bool is_said= block(select, of_branch, &bytes, &of_slots, &of_kinds);
    m_union_types= nullptr;
    if (!is_said)
      return false;
    if (!count)
    {
      bytes.resize(bytes.size() - NO_OTHERS_BYTES);
      *to+= bytes;
      *slots= of_slots;
      *kinds= of_kinds;
      continue;
    }
    if (!operation_of(select, &operation) || of_kinds != *kinds)
      return refuse("a UNION of different kinds");
    B::byte(&others, operation);
    B::byte(&others, select->distinct && of_branch == Use::BRANCH);
    others+= bytes;
  }
  for (const uint column : m_widened_columns)
    m_widened.insert(slots->at(column));
  m_widened_columns.swap(widened);
  B::small(to, count - 1);
  *to+= others;
  return true;
}

static bool kind_of_column(Item *type, Value_kind *kind)
{
  switch (type->cmp_type())
  {
  case TIME_RESULT:
    switch (type->field_type())
    {
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_NEWDATE:  kind->tag= Value_kind::DATE; return true;
    case MYSQL_TYPE_DATETIME: kind->tag= Value_kind::DATETIME; return true;
    case MYSQL_TYPE_TIME:     kind->tag= Value_kind::TIME; return true;
    default:                  return false;
    }
  case STRING_RESULT:
    kind->tag= Value_kind::TEXT;
    return type->type_handler()->is_traditional_scalar_type() && type->field_type() != MYSQL_TYPE_ENUM &&
           type->field_type() != MYSQL_TYPE_SET && type->field_type() != MYSQL_TYPE_GEOMETRY;
  default:
    return false;
  }
}

/* A value of a branch becomes one of the type that all branches have together. */
bool Select_translator::as_column_of_union(Item *type, Item *item, Said *said)
{
  Value_kind kind= kind_of_number(type);
  const Value_kind &own= said->kind;
  /* A TINYINT, which no year fits into. */
  if (type->field_type() == MYSQL_TYPE_TINY && item->field_type() == MYSQL_TYPE_YEAR)
    return refuse("a year that is kept as a TINYINT");
  /* The server makes texts of them. */
  if (own.tag == Value_kind::ENUM || own.tag == Value_kind::SET)
    return refuse("a UNION of ENUM or SET");
  if (own.is_opaque())
    return type->type_handler() == item->type_handler() || refuse("a UNION of different types");
  if (kind.tag == Value_kind::NONE && !kind_of_column(type, &kind))
    return refuse("the type of a UNION");
  if (kind.tag == Value_kind::TEXT)
    kind.of= collation_number(type->collation.collation);
  if (item->type() == Item::NULL_ITEM)
  {
    *said= Said();
    put_null(&said->bytes, kind);
    said->kind= kind;
    return true;
  }
  const bool is_wider= (kind.tag == Value_kind::DECIMAL && own.is_number() && own.scale() <= kind.of) ||
                       (kind.tag == Value_kind::REAL && own.is_integer()) ||
                       (kind.tag == Value_kind::DATETIME && own.tag == Value_kind::DATE) ||
                       (kind.tag == Value_kind::TEXT && own.tag == Value_kind::TEXT &&
                        my_charset_same(item->collation.collation, type->collation.collation));
  if (!(kind == own) && !is_wider)
    return refuse("a UNION of different types");
  convert(said, kind);
  return true;
}

} // namespace pando
