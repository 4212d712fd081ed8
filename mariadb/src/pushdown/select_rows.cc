/* Comparisons of rows: (a, b) = (c, d), (a, b) IN ((1, 2), (3, 4)), (a, b) IN (SELECT ...). They are compared column by column. */
#include "select_translate.h"

namespace pando {

using B= Select_bytes;

/* What a column of two rows is compared by, if both are texts. The server has made one character set of them. nullptr: that is not sure. */
static CHARSET_INFO *collation_of_both(const Item *first, const Item *second)
{
  const DTCollation &a= first->collation, &b= second->collation;
  if (a.collation == b.collation)
    return a.collation;
  if (a.derivation <= DERIVATION_IMPLICIT && b.derivation >= DERIVATION_COERCIBLE)
    return a.collation;
  return b.derivation <= DERIVATION_IMPLICIT && a.derivation >= DERIVATION_COERCIBLE ? b.collation : nullptr;
}

/* To the server no such comparison is ever NULL: IS NULL of one is false. */
bool compares_rows(Item *item)
{
  item= item->real_item();
  if (item->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    for (Item *part; (part= parts++); )
      if (compares_rows(part))
        return true;
    return false;
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  const Item_func *function= static_cast<Item_func *>(item);
  for (uint i= 0; i < function->argument_count(); i++)
    if (function->arguments()[i]->cols() > 1 || compares_rows(function->arguments()[i]))
      return true;
  return false;
}

/* In rows the server compares quotients with all of their digits, or those of their types, and computed texts in a collation of its own. */
static bool is_compared_otherwise(Item *item)
{
  return (item->cmp_type() == DECIMAL_RESULT || item->cmp_type() == STRING_RESULT) && item->real_item()->type() == Item::FUNC_ITEM &&
         item->used_tables();
}

/* NULL if a column is, unless another one differs: so is AND. `is_sign`: as compare() has it. */
bool Select_translator::rows_equal(Item *first, Item *second, bool is_sign, std::string *to, bool is_conjunct)
{
  m_may_warn_once= false;
  if (first->type() != Item::ROW_ITEM || second->type() != Item::ROW_ITEM || first->cols() != second->cols())
    return refuse("a comparison of rows");
  std::string bytes;
  for (uint i= 0; i < first->cols(); i++)
  {
    Item *a= first->element_index(i), *b= second->element_index(i);
    if (a->cols() != 1 || b->cols() != 1)
      return refuse("a comparison of rows within rows");
    CHARSET_INFO *collation= collation_of_both(a, b);
    if (!collation && a->cmp_type() == STRING_RESULT && b->cmp_type() == STRING_RESULT)
      return refuse("a comparison of rows");
    if (is_compared_otherwise(a) || is_compared_otherwise(b))
      return refuse_for_good("a comparison of rows with computed DECIMALs or texts");
    const size_t begin= bytes.size();
    if (!compare(PANDO_COMPARISON_EQUAL, a, b, collation, &bytes, is_sign))
      return false;
    note_first(is_conjunct, a, b, bytes.substr(begin));
  }
  B::list(to, PANDO_TAG_AND, first->cols());
  *to+= bytes;
  return true;
}

/* Where false and NULL are the same: the server does not always tell them apart as rows compared one by one would. */
bool Select_translator::in_rows(Item_func_in *in, bool is_conjunct, Said *said)
{
  if (in->negated || !is_conjunct)
    return refuse("IN of rows");
  B::list(&said->bytes, PANDO_TAG_OR, in->argument_count() - 1);
  for (uint i= 1; i < in->argument_count(); i++)
    if (!rows_equal(in->arguments()[0], in->arguments()[i], false, &said->bytes))
      return false;
  return true;
}

/* What is on the left of IN (SELECT ...), column by column. */
bool Select_translator::left_of_in(Item *left, std::string *to, std::vector<Value_kind> *kinds)
{
  for (uint i= 0; i < left->cols(); i++)
  {
    Item *item= left->cols() == 1 ? left : left->element_index(i);
    Said one;
    if (item->cols() != 1)
      return refuse("IN of rows within rows");
    if (!expression(item, &one))
      return false;
    *to+= one.bytes;
    kinds->push_back(one.kind);
  }
  return true;
}

/* Whether a column on the left of IN can be compared with what its SELECTs give there. */
bool Select_translator::is_alike_in(Item *left, uint column, st_select_lex_unit *unit, const Value_kind &outer, const Value_kind &inner)
{
  const bool is_same_kind= (inner.is_number() && outer.is_number()) || (inner == outer && inner.tag != Value_kind::TIME);
  bool is_year= false, is_as_stored= true;
  for (SELECT_LEX *select= unit->first_select(); select; select= select->next_select())
  {
    List_iterator_fast<Item> items(select->item_list);
    Item *output= nullptr;
    for (uint i= 0; i <= column; i++)
      output= items++;
    if (output && is_converted_for_key(left, output))
      return refuse_for_good("a DECIMAL that may be looked for in a key of integers");
    if (output && is_compared_to_digits(left, output))
      return refuse("a comparison of DOUBLEs to so many digits");
    is_year|= output && left->field_type() == MYSQL_TYPE_YEAR && output->field_type() == MYSQL_TYPE_YEAR;
    is_as_stored&= output && compare_as_stored(PANDO_COMPARISON_EQUAL, left, output, outer, inner);
  }
  if ((inner.is_opaque() || outer.is_opaque()) && !is_as_stored)
    return refuse("IN of a type that is compared otherwise");
  return (is_same_kind && !is_year) || refuse("IN of different kinds");
}

/* `is_conjunct`: false and NULL are the same. */
bool Select_translator::in_query(Item_in_subselect *item, bool is_conjunct, Said *said)
{
  Item *left= item->left_exp();
  std::vector<uint> slots;
  std::vector<Value_kind> outer, inner;
  std::string of_left, bytes;
  if (!left || (left->cols() > 1 && (!is_conjunct || left->type() != Item::ROW_ITEM)))
    return refuse("IN of rows");
  if (!left_of_in(left, &of_left, &outer))
    return false;
  const bool was_plain= m_is_plain_in, might_be_null= m_may_in_be_null;
  m_is_plain_in= is_conjunct;
  m_may_in_be_null= left->maybe_null();
  const bool is_said= unit(item->unit, Use::IN, &bytes, &slots, &inner);
  m_is_plain_in= was_plain;
  m_may_in_be_null= might_be_null;
  if (!is_said || inner.size() != outer.size())
    return false;
  for (uint i= 0; i < left->cols(); i++)
    if (!is_alike_in(left->cols() == 1 ? left : left->element_index(i), i, item->unit, outer[i], inner[i]))
      return false;
  B::list(&said->bytes, PANDO_TAG_IN_QUERY, left->cols());
  said->bytes+= of_left + bytes;
  return true;
}

} // namespace pando
