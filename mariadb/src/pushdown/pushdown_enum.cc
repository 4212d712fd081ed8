/* Conditions on ENUM columns. The server compares the texts of members with a constant. Members are few and known, so
   the comparison is made once for each of them, and rows are compared with the numbers of those for which it is true. */
#include "pushdown.h"
#include "sql_select.h"

namespace pando {

/* Beyond this many, a list of numbers is no longer cheap to make for each statement. */
static const uint MEMBERS_MAX= 4096;

namespace {

/* A text constant, in the character set of the column. */
class Text_constant
{
public:
  bool init(Item *item)
  {
    m_text= item->val_str(&m_buffer);
    return m_text && !item->null_value;
  }
  int compare(CHARSET_INFO *collation, const LEX_CSTRING &member) const
  {
    return collation->coll->strnncollsp(collation, reinterpret_cast<const uchar *>(member.str), member.length,
                                        reinterpret_cast<const uchar *>(m_text->ptr()), m_text->length());
  }
  const String &text() const { return *m_text; }

private:
  StringBuffer<STRING_BUFFER_USUAL_SIZE> m_buffer;
  const String *m_text= nullptr;
};

bool holds(Item_func::Functype type, int order)
{
  switch (type)
  {
  case Item_func::EQ_FUNC: return order == 0;
  case Item_func::NE_FUNC: return order != 0;
  case Item_func::LT_FUNC: return order < 0;
  case Item_func::LE_FUNC: return order <= 0;
  case Item_func::GT_FUNC: return order > 0;
  default:                 return order >= 0;
  }
}

/* Whether the condition holds for a text in the place of the column; NOT is left out. */
bool is_true_of(Item_func *function, const LEX_CSTRING &member, CHARSET_INFO *collation,
                const std::list<Text_constant> &constants)
{
  switch (function->functype())
  {
  case Item_func::IN_FUNC:
    for (const Text_constant &constant : constants)
      if (!constant.compare(collation, member))
        return true;
    return false;
  case Item_func::BETWEEN:
    return constants.front().compare(collation, member) >= 0 && constants.back().compare(collation, member) <= 0;
  case Item_func::LIKE_FUNC:
  {
    const String &pattern= constants.front().text();
    return !collation->wildcmp(member.str, member.str + member.length, pattern.ptr(),
                               pattern.ptr() + pattern.length(), static_cast<Item_func_like *>(function)->escape, '_',
                               '%');
  }
  default:
    return holds(function->functype(), constants.front().compare(collation, member));
  }
}

bool is_negated(Item_func *function)
{
  const Item_func::Functype type= function->functype();
  if (type == Item_func::LIKE_FUNC)
    return static_cast<Item_func_like *>(function)->negated;
  return (type == Item_func::IN_FUNC || type == Item_func::BETWEEN) &&
         static_cast<Item_func_opt_neg *>(function)->negated;
}

} // namespace

/* The column is the first argument, and the others are constants. */
bool Translator::add_members(Field *field, Item_func *function)
{
  const TYPELIB *members= members_of(field);
  CHARSET_INFO *collation= static_cast<Item_bool_func *>(function)->compare_collation();
  if (members->count > MEMBERS_MAX || collation != field->charset())
    return false;
  std::list<Text_constant> constants;
  Silent_evaluation evaluation(m_thd);
  for (uint i= 1; i < function->argument_count(); i++)
  {
    Item *item= without_cache(function->arguments()[i]);
    if (!is_constant(item) || !is_compared_as_text(item) ||
        !my_charset_same(item->collation.collation, field->charset()))
      return false;
    constants.emplace_back();
    if (!constants.back().init(item))
      return false;
  }
  const int number= column(field, false);
  /* Rows whose value was not a member have the number 0. Whether an empty text finds them is a matter of the plan. */
  const bool finds_none= is_true_of(function, LEX_CSTRING{"", 0}, collation, constants);
  const Item_func::Functype type= function->functype();
  if (number < 0 || !evaluation.is_silent() ||
      (finds_none && (type == Item_func::EQ_FUNC || type == Item_func::IN_FUNC || type == Item_func::LIKE_FUNC)))
    return false;
  /* No member has a number below 0: of an empty list of members nothing is true. */
  PandoConstant constant= {};
  constant.low= uint64_t(-1);
  constant.high= -1;
  pando_query_constant(m_query, constant);
  for (uint i= finds_none ? 0 : 1; i <= members->count; i++)
  {
    const LEX_CSTRING member= i ? LEX_CSTRING{members->type_names[i - 1], members->type_lengths[i - 1]} :
                                  LEX_CSTRING{"", 0};
    if (!is_true_of(function, member, collation, constants))
      continue;
    constant.low= i;
    constant.high= 0;
    pando_query_constant(m_query, constant);
  }
  condition(PANDO_OPERATOR_IN, number);
  if (is_negated(function))
    condition(PANDO_OPERATOR_NOT, 0);
  return true;
}

} // namespace pando
