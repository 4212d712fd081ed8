/* Whole queries on columns: SELECTs with aggregates over one table, answered by the engine.

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

namespace pando {

/* What the temporary table gets in one of its columns. */
struct Output
{
  enum Kind { COUNT, SUM, AVERAGE, VALUE };
  Item *item;
  Kind kind;
  uint cell;           /* of the engine's rows */
  Field *source;       /* of a value, of a sum: the table's column */
};

/* How groups are ordered: by a column of the temporary table. */
struct Order_part
{
  uint output;
  bool descending;
};

/* What the engine computes with: see `PandoForm`. */
enum class Column_class { NUMBER, DATE, DATETIME, TEXT, OTHER, NONE };

Column_class class_of(const Field *field, PandoQueryColumn *column);

/* Says a query of the server in the engine's words. */
class Translator
{
public:
  Translator(THD *thd, TABLE *table, ha_pando *handler, PandoQuery *query)
    : m_thd(thd), m_table(table), m_handler(handler), m_query(query) {}

  /* False: not this one. */
  bool translate(const Query *query, const JOIN *join);

  std::vector<Output> outputs;
  std::vector<Order_part> order;

private:
  bool add_groups(const Query *query);
  bool add_outputs(const Query *query);
  bool add_order(const Query *query);
  bool add_sum(Item_sum *item);
  bool add_condition(Item *condition);
  bool add_list(Item_cond *list);
  bool add_comparison(Item_func *function);
  bool add_between(Item_func *function);
  bool add_in(Item_func *function);
  bool add_constant(Field *field, Item *item, CHARSET_INFO *collation);
  bool add_number(Field *field, Item *item);
  bool add_moment(Field *field, Item *item);
  bool add_text(Field *field, Item *item, CHARSET_INFO *collation);
  Field *column_of(Item *item) const;
  bool is_constant(Item *item) const;
  int column(Field *field, bool presence_only);
  bool place_of(Field *field, PandoQueryColumn *column) const;
  void condition(PandoOperator op, int column, uint count= 0)
  {
    pando_query_condition(m_query, op, uint32_t(column), count);
  }

  struct Known { uint field; bool presence_only; };
  THD *m_thd;
  TABLE *m_table;
  ha_pando *m_handler;
  PandoQuery *m_query;
  std::vector<Known> m_columns;
  std::vector<Field *> m_groups;
  uint m_aggregates= 0;
};

/* hton->create_group_by */
group_by_handler *create_pushdown(THD *thd, Query *query);

} // namespace pando

#endif
