/* Whole queries on columns: SELECTs with aggregates over one table, or over several that are joined, answered by the
   engine.

   The server asks (`handlerton::create_group_by`) when a SELECT has been optimised and not executed. If the query is one
   that `Translator` can say exactly in the engine's words, it is **answered then and there**, and the server gets a
   `group_by_handler` that has the rows already. Nothing has been given out before that, so whatever comes in the way (an
   answer that depends on the order of rows, memory, a damaged row) just leaves the query to the server's executor.
   EXPLAIN is told without answering.

   The engine filters and aggregates; here its rows become records of the server's temporary table, in the order asked for.
   HAVING, LIMIT and expressions over aggregates are the server's as ever.

   Why the groups' handler and not the select handler, and what is taken: docs/decisions/0010-whole-queries.md. */
#ifndef PANDO_PUSHDOWN_H
#define PANDO_PUSHDOWN_H

#include "ha_pando.h"
#include "group_by_handler.h"
#include "like_pattern.h"

#include <list>
#include <string>
#include <vector>

namespace pando {

/* What the temporary table gets in one of its columns. */
struct Output
{
  enum Kind { COUNT, SUM, AVERAGE, VALUE };
  Item *item;
  Kind kind;
  uint cell;           /* of the engine's rows */
  Field *source;       /* of a value: the table's column; null: it was computed */
  uint scale;          /* digits behind the point of what was computed or added up */
};

/* How groups are ordered: by a column of the temporary table. */
struct Order_part
{
  uint output;
  bool descending;
};

/* What the engine computes with: see `PandoForm`. OTHER is not compared with anything. */
enum class Column_class { NUMBER, DATE, DATETIME, TIME, TEXT, ENUM, OTHER, NONE };

Column_class class_of(const Field *field, PandoQueryColumn *column);

/* A number that the engine computes or has in a column. */
struct Number
{
  int slot= -1;        /* negative: none */
  uint scale= 0;
};

/* Owns a query of the engine. */
class Query_owner
{
public:
  Query_owner();
  ~Query_owner() { pando_query_free(m_query); }
  Query_owner(const Query_owner &) = delete;
  Query_owner &operator=(const Query_owner &) = delete;
  PandoQuery *get() const { return m_query; }
  PandoQuery *release()
  {
    PandoQuery *query= m_query;
    m_query= nullptr;
    return query;
  }

private:
  PandoQuery *m_query;
};

/* What one query tells the engine at most. A statement is as long and as deep as its author likes: what is beyond these the
   server computes. Conditions and numbers: */
static const uint NODES_MAX= 4096;
/* How deep they stand in each other, but for chains as `a + b + c`, AND, CASE and IF ... ELSE IF, which are no deeper for
   being longer: */
static const uint DEPTH_MAX= 32;
/* Constants that columns are compared with, and bytes of those that are texts: */
static const uint CONSTANTS_MAX= 65536;
static const size_t TEXT_BYTES_MAX= 1 << 20;

/* Whether it compares two values: =, <>, <, <=, >, >=. */
inline bool is_sign(const Item_func *function)
{
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
  case Item_func::NE_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
    return true;
  default:
    return false;
  }
}

/* Whether it does, or is <=>, BETWEEN or an IN of a list. */
inline bool compares_values(const Item_func *function)
{
  const Item_func::Functype type= function->functype();
  return is_sign(function) || type == Item_func::EQUAL_FUNC || type == Item_func::BETWEEN || type == Item_func::IN_FUNC;
}

/* Whether the thread's stack has room for what the engine does in a call. */
bool has_stack(const THD *thd);

/* Says a query of the server in the engine's words. */
class Translator
{
public:
  /* The first table is the one that is gone over; the others are joined with it. */
  Translator(THD *thd, const std::vector<TABLE *> &tables, PandoQuery *query)
    : m_thd(thd), m_tables(tables), m_query(query) {}
  /* Of one table, which `handler` reads: perhaps a partition. */
  Translator(THD *thd, TABLE *table, ha_pando *handler, PandoQuery *query)
    : m_thd(thd), m_tables{table}, m_query(query), m_handler(handler) {}

  /* False: not this one. */
  bool translate(const ::Query *query, const JOIN *join);
  /* Conditions on rows, which all have to be true. False: not these. */
  bool translate(const std::vector<Item *> &conditions);
  /* What the query's conditions point to. */
  std::list<Like_pattern> release_patterns() { return std::move(m_patterns); }

  uint columns() const { return uint(m_columns.size()); }
  /* Constant texts that columns are compared with. */
  uint texts() const { return m_texts; }

  std::vector<Output> outputs;
  std::vector<Order_part> order;

private:
  struct Known { uint table; uint field; bool presence_only; };
  struct Group { Item *item; Field *field; uint scale; };

  /* One of what is translated within another, while it lives. */
  class Nesting
  {
  public:
    explicit Nesting(Translator *translator) : m_translator(translator) { m_translator->m_depth++; }
    ~Nesting() { m_translator->m_depth--; }
    Nesting(const Nesting &) = delete;
    Nesting &operator=(const Nesting &) = delete;
    bool is_allowed() const;

  private:
    Translator *const m_translator;
  };

  /* False: more than the engine is told in one query. */
  bool spend() { return ++m_nodes <= NODES_MAX; }

  bool add_groups(const ::Query *query);
  bool add_outputs(const ::Query *query);
  bool add_value(Item *item);
  bool add_order(const ::Query *query);
  bool add_sum(Item_sum *item);
  bool add_count(Item_sum *item, uint cell);
  bool add_distinct(Item_sum *item, uint cell);
  bool add_extreme(Item_sum *item, uint cell);
  bool add_total(Item_sum *item, uint cell);

  /* pushdown_condition.cc */
  bool add_where(Item *where);
  bool add_equality(Item *condition);
  bool are_joined() const;
  bool add_condition(Item *condition);
  bool add_list(Item_cond *list);
  bool add_comparison(Item_func *function);
  bool add_comparison_of_columns(Item_func *function);
  bool add_between(Item_func *function);
  bool add_in(Item_func *function);
  bool add_like(Item_func *function);
  bool add_null_test(Item_func *function);

  /* pushdown_enum.cc */
  bool add_members(Field *field, Item_func *function);
  void condition(PandoOperator op, int column, uint count= 0)
  {
    pando_query_condition(m_query, op, uint32_t(column), count);
  }

  /* pushdown_constant.cc */
  bool add_constant(Field *field, Item *item, CHARSET_INFO *collation);
  bool add_number(Field *field, Item *item);
  bool add_moment(Field *field, Item *item);
  bool add_time(Field *field, Item *item);
  bool add_text(Field *field, Item *item, CHARSET_INFO *collation);
  bool is_constant(Item *item) const;

  /* pushdown_number.cc */
  Number number_of(Item *item);
  Number constant_number(Item *item);
  Item_func *arithmetic_of(Item *item) const;
  Number arithmetic(Item_func *function);
  Number computed(Item_func *function, const Number &first);
  Number date_part(Item_func *function);
  static bool is_choice(const Item_func *function);
  Item_func *choice_of(Item *item) const;
  Number otherwise_of(Item_func *function, Item *otherwise);
  Number choice(Item_func *function);
  Number truth(Item *condition);
  Number small_constant(Item *item, longlong value, bool is_null);
  Number expression(Item *item, PandoArithmetic arithmetic, const Number &first, const Number &second, uint scale);

  /* pushdown_column.cc */
  Field *column_of(Item *item) const;
  int table_of(const Field *field) const;
  int column(Field *field, bool presence_only);

  THD *m_thd;
  const std::vector<TABLE *> m_tables;
  PandoQuery *m_query;
  ha_pando *const m_handler= nullptr; /* none: the tables' own */
  std::vector<Known> m_columns;
  std::vector<Group> m_groups;
  std::vector<std::pair<int, int>> m_equalities; /* numbers of tables */
  std::list<Like_pattern> m_patterns;
  uint m_aggregates= 0;
  uint m_depth= 0;
  uint m_nodes= 0;      /* conditions and numbers */
  uint m_constants= 0;  /* of conditions */
  uint m_texts= 0;
  size_t m_text_bytes= 0;
};

/* Whether a constant is a TIME, or a text that is one and has no date. */
bool is_time(Item *item);
/* Whether the server compares it as a text. UUID, INET6 and INET4 look like texts, too, but what is compared with them becomes one of them. */
inline bool is_compared_as_text(const Item *item)
{
  return item->cmp_type() == STRING_RESULT && item->type_handler_for_comparison() == &type_handler_long_blob;
}

/* While it lives, conditions are noticed and not raised. A constant whose evaluation has something to say is the server's:
   it may never come to evaluate it, or say so once for each row. */
class Silent_evaluation : public Internal_error_handler
{
public:
  explicit Silent_evaluation(THD *thd) : m_thd(thd) { thd->push_internal_handler(this); }
  ~Silent_evaluation() { m_thd->pop_internal_handler(); }
  bool handle_condition(THD *, uint code, const char *, Sql_condition::enum_warning_level *level, const char *text,
                        Sql_condition **) override
  {
    m_is_silent= false;
    m_has_error|= *level == Sql_condition::WARN_LEVEL_ERROR;
    m_count++;
    m_code= code;
    m_level= *level;
    m_text= text;
    return true;
  }
  bool is_silent() const { return m_is_silent; }
  bool has_error() const { return m_has_error; }
  /* What it would have said, if that is one warning. */
  bool is_one_warning() const { return m_count == 1 && m_level == Sql_condition::WARN_LEVEL_WARN; }
  uint code() const { return m_code; }
  const std::string &text() const { return m_text; }

private:
  THD *m_thd;
  bool m_is_silent= true, m_has_error= false;
  uint m_count= 0, m_code= 0;
  Sql_condition::enum_warning_level m_level= Sql_condition::WARN_LEVEL_NOTE;
  std::string m_text;
};

/* What the server keeps converted, or evaluated, in a cache of its own. */
Item *without_cache(Item *item);

/* Whether there is a comparison of different types within a constant. It keeps a constant argument as it is compared, where nobody else
   can look: if that argument fails or warns, the engine must not have asked, or the server finds a value there and says nothing. So is one
   that is too deep to be looked at. */
bool keeps_converted(const Item *item, uint depth= 0);

/* Whether the item may be taken for the other: the same column, or the same expression. */
bool is_same(Item *item, Item *other);

/* Whether a number can be compared with others, and computed with, exactly. */
inline bool is_exact_number(Item *item)
{
  return item->cmp_type() == item->result_type() &&
         (item->cmp_type() == INT_RESULT || item->cmp_type() == DECIMAL_RESULT);
}

/* select_place.cc: whether ON DUPLICATE KEY UPDATE looks at columns of the rows that are selected. */
bool updates_by_rows_selected(const THD *thd);
/* Whether it is the inner side of an outer join. The server marks tables within a derived table that is one, too (JOIN_TYPE_OUTER), whatever they are
   themselves. */
inline bool is_outer_joined(const TABLE_LIST *list) { return list->outer_join & (JOIN_TYPE_LEFT | JOIN_TYPE_RIGHT); }
/* pushdown_plan.cc: the tables of a query that may be one for the engine, the largest first. None: it is not. */
std::vector<TABLE *> tables_of(THD *thd, const ::Query *query);
bool has_literal_that_may_be_null(const LEX *lex);
/* Whether the server's own way is the better one. */
bool is_better_done_by_server(const ::Query *query, const std::vector<TABLE *> &tables, uint columns, uint texts);

/* hton->create_group_by */
group_by_handler *create_pushdown(THD *thd, Query *query);

} // namespace pando

#endif
