/* What the parts of a block have to know of each other while it is said: select_block.cc, select_order.cc. */
#ifndef PANDO_SELECT_BLOCK_H
#define PANDO_SELECT_BLOCK_H

#include "select_translate.h"

namespace pando {

/* Gives a member back the value that it had, at the end of a scope. */
template<typename T> class Restored
{
public:
  explicit Restored(T &member) : m_member(member), m_value(member) {}
  ~Restored() { m_member= std::move(m_value); }
  Restored(const Restored &) = delete;
  Restored &operator=(const Restored &) = delete;

private:
  T &m_member;
  T m_value;
};

/* A block while it is said, part by part: FROM and WHERE, groups, HAVING, select list, order. */
struct Select_translator::Block
{
  Block(const Select_translator &translator, SELECT_LEX *select_lex, Use used, std::vector<uint> *to_slots,
        std::vector<Value_kind> *to_kinds)
    : select(select_lex), join(select_lex->join), use(used), was_condition(translator.m_is_condition),
      union_types(translator.m_union_types), is_distinct(select->options & SELECT_DISTINCT), is_cut(has_limit(limit_params())),
      is_shown(use == Use::TOP && !is_distinct && !is_stored_by_statement(translator.m_thd)), slots(to_slots), kinds(to_kinds) {}

  /* The LIMIT of all branches of a UNION is not that of one. */
  const Lex_select_limit &limit_params() const
  {
    return use == Use::BRANCH ? select->limit_params : select->master_unit()->global_parameters()->limit_params;
  }
  bool makes_rollup() const { return select->olap == ROLLUP_TYPE; }

  SELECT_LEX *const select;
  JOIN *const join;
  const Use use;
  const bool was_condition; /* the block is part of a condition */
  const std::vector<Item *> *const union_types;
  const bool is_distinct;
  const bool is_cut;   /* the server need not compute what it does not show */
  const bool is_shown; /* the rows go to the client as they are */
  bool is_grouped= false, counts_rows= false;
  /* What the columns are that the block gives. */
  std::vector<uint> *const slots;
  std::vector<Value_kind> *const kinds;

  std::vector<Part> from;
  std::string where, groups, having, outputs, order;
  uint group_count= 0, output_count= 0, order_count= 0;

  std::vector<std::string> each_group;
  /* Conditions under which groups by quotients are the same, rounded or not, and how many. */
  std::string exact_groups;
  uint exact_count= 0;
  /* What rows are sorted by where no order is asked for: the groups, or the select list. */
  std::string order_by_groups, order_by_outputs;
  /* Items of the select list that ORDER BY may name. */
  std::map<const Item *, Said> names;
  bool has_long_text= false, has_variable_output= false;
};

} // namespace pando

#endif
