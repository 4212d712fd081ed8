/* Which SELECTs the engine is asked about at all, and whether the server's own way would be quicker. */
#include "pushdown.h"
#include "select_limit.h"
#include "sql_select.h"

#include <algorithm>

namespace pando {

/* What is to be left of the stack for the engine's own calls, and for those of the server that it makes: as much as the server
   leaves to a stored procedure, or half of a small stack. */
static const size_t STACK_LEFT= 8 * STACK_MIN_SIZE;

bool has_stack(const THD *thd)
{
  const char here= 0;
  const char *const begin= static_cast<const char *>(thd->thread_stack);
  const size_t used= size_t(begin > &here ? begin - &here : &here - begin);
  const size_t size= size_t(my_thread_stack_size);
  return used + std::min(STACK_LEFT, size / 2) < size;
}

/* Tables of a join at most. */
static const uint TABLES_MAX= 16;

/* Statements in which a SELECT is nothing but a SELECT, or gives all that is inserted. */
static bool is_plain_select(THD *thd, const ::Query *query, SELECT_LEX *select)
{
  SELECT_LEX_UNIT *unit= select->master_unit();
  const LEX *lex= thd->lex;
  const bool inserts= (lex->sql_command == SQLCOM_INSERT_SELECT || lex->sql_command == SQLCOM_REPLACE_SELECT) &&
                      !updates_by_rows_selected(thd);
  return (lex->sql_command == SQLCOM_SELECT || inserts) && !thd->in_sub_stmt && !thd->spcont && !thd->is_error() &&
         !(thd->variables.sql_mode & MODE_PAD_CHAR_TO_FULL_LENGTH) && !query->distinct &&
         select->olap == UNSPECIFIED_OLAP_TYPE && !unit->is_unit_op() && (!select->outer_select() || unit->derived) &&
         !(select->uncacheable & (UNCACHEABLE_DEPENDENT | UNCACHEABLE_RAND | UNCACHEABLE_SIDEEFFECT)) &&
         !(select->options & (OPTION_FOUND_ROWS | OPTION_BUFFER_RESULT)) && !thd->lex->with_rownum &&
         !thd->lex->limit_rows_examined;
}

static bool is_plain_join(const JOIN *join, uint tables)
{
  return join && join->table_count == tables && join->const_tables == 0 && join->top_join_tab_count == tables &&
         !join->select_distinct && !join->select_lex->have_window_funcs() && !join->procedure &&
         !join->rollup.state && !join->select_lex->sj_nests.elements && !join->select_lex->sj_subselects.elements;
}

/* A table that is joined with others by nothing but WHERE, and read as ever. */
static bool is_plain_table(const TABLE_LIST *from)
{
  TABLE *table= from->table;
  return table && !from->outer_join && !from->on_expr && !from->embedding && !from->sj_on_expr &&
         table->file->ht == hton && !table->part_info && !table->versioned() && !table->force_index &&
         !static_cast<ha_pando *>(table->file)->expiry() &&
         (static_cast<ha_pando *>(table->file)->may_answer_queries() ||
          static_cast<ha_pando *>(table->file)->may_answer_with_locks());
}

/* Of fewer rows it is better to lock each. */
static const ha_rows LOCKED_AT_ONCE_ROWS_MIN= 1000;

/* Whether the rows of all tables that are locked are to be, by the server's own plan: then they can be at once. */
static bool may_lock_all(const JOIN *join, const std::vector<TABLE *> &tables)
{
  const auto locks= [](const TABLE *table) { return static_cast<ha_pando *>(table->file)->may_answer_with_locks(); };
  if (std::none_of(tables.begin(), tables.end(), locks))
    return true;
  const JOIN_TAB *tab= join->join_tab;
  return tables.size() == 1 && tables[0]->file->stats.records >= LOCKED_AT_ONCE_ROWS_MIN && (tab->type == JT_ALL || tab->type == JT_NEXT) && !(tab->select && tab->select->quick) &&
         !tab->quick;
}

std::vector<TABLE *> tables_of(THD *thd, const ::Query *query)
{
  std::vector<TABLE *> tables, none;
  SELECT_LEX *select= query->from ? query->from->select_lex : nullptr;
  if (!select || !is_plain_select(thd, query, select))
    return none;
  for (TABLE_LIST *from= query->from; from; from= from->next_local)
  {
    if (from->select_lex != select || !is_plain_table(from) || tables.size() == TABLES_MAX)
      return none;
    tables.push_back(from->table);
  }
  if (!is_plain_join(select->join, uint(tables.size())) || !may_lock_all(select->join, tables))
    return none;
  std::stable_sort(tables.begin(), tables.end(), [](const TABLE *first, const TABLE *second) {
    return first->file->stats.records > second->file->stats.records;
  });
  return tables;
}

/* What ways of reading cost, in nanoseconds a row: estimates, of which only the relation counts
   (docs/decisions/0010-whole-queries.md). */
static const double SERVER_SCAN_NS= 300;    /* a whole row, from a scan */
static const double SERVER_COVERED_NS= 300; /* an entry of a key that has all columns */
static const double SERVER_LOOKUP_NS= 1000; /* an entry of a key, and its row */
static const double ENGINE_ROW_NS= 2;
static const double ENGINE_COLUMN_NS= 3; /* 1 when its values are decoded already, 8 when not */
/* A text that is looked at, and each that it is compared with. */
static const double ENGINE_TEXT_NS= 35, ENGINE_COMPARE_NS= 8;

/* What the engine takes: it goes over all rows of all tables. */
static double engine_cost(const std::vector<TABLE *> &tables, uint columns, uint texts)
{
  double rows= 0;
  for (const TABLE *table : tables)
    rows+= double(table->file->stats.records);
  const double text_ns= texts ? ENGINE_TEXT_NS + ENGINE_COMPARE_NS * texts : 0;
  return rows * (ENGINE_ROW_NS + ENGINE_COLUMN_NS * columns + text_ns);
}

/* What the server takes for one row of this step of its plan, and how many rows it expects there. */
static double server_row_cost(const JOIN_TAB *tab, double *rows)
{
  const TABLE *table= tab->table;
  const QUICK_SELECT_I *quick= tab->select ? tab->select->quick : nullptr;
  *rows= quick ? double(quick->records) : tab->records_read;
  if (tab->type == JT_ALL && !quick)
    return SERVER_SCAN_NS;
  if (tab->type == JT_NEXT)
    return SERVER_COVERED_NS;
  const uint key= quick ? quick->index : uint(tab->ref.key);
  const bool is_covered= key < MAX_KEY && table->covering_keys.is_set(key);
  const bool is_row= key < MAX_KEY && key == table->s->primary_key;
  return is_covered || is_row ? quick ? SERVER_COVERED_NS : SERVER_SCAN_NS : SERVER_LOOKUP_NS;
}

bool is_better_done_by_server(const ::Query *query, const std::vector<TABLE *> &tables, uint columns, uint texts)
{
  const JOIN *join= query->from->select_lex->join;
  const JOIN_TAB *first= join->join_tab;
  /* It ends early, there is nothing to be sorted; or it jumps from group to group. */
  if (first->type == JT_NEXT && !query->order_by && join->unit->lim.get_select_limit() != HA_POS_ERROR && !join->need_tmp &&
      !join->implicit_grouping)
    return true;
  /* It has not decided yet how to read the groups' rows; this is how it will. */
  if (ends_after_few_groups(query->from->select_lex))
    return true;
  if (first->select && first->select->quick &&
      first->select->quick->get_type() == QUICK_SELECT_I::QS_TYPE_GROUP_MIN_MAX)
    return true;
  double combinations= 1, cost= 0;
  for (uint i= 0; i < tables.size(); i++)
  {
    double rows= 0;
    const double row_cost= server_row_cost(first + i, &rows);
    combinations*= std::max(rows, 0.01);
    cost+= combinations * row_cost;
    combinations*= std::min(std::max(double(first[i].cond_selectivity), 0.001), 1.0);
  }
  if (!first->select || !first->select->quick)
    cost*= share_until_limit(query->from->select_lex, first->table, double(first->table->file->stats.records));
  return cost < engine_cost(tables, columns, texts);
}

} // namespace pando
