#include "pushdown_filter.h"
#include "variables.h"
#include "sql_select.h"

#include <algorithm>

namespace pando {

static Item_cond *to_and(Item *condition)
{
  const bool is_and= condition->type() == Item::COND_ITEM &&
                     static_cast<Item_cond *>(condition)->functype() == Item_func::COND_AND_FUNC;
  return is_and ? static_cast<Item_cond *>(condition) : nullptr;
}

/* The parts of an AND, in the order in which the server evaluates them. */
static std::vector<Item *> parts_of(Item *condition)
{
  Item_cond *list= to_and(condition);
  if (!list)
    return {condition};
  std::vector<Item *> parts;
  List_iterator_fast<Item> items(*list->argument_list());
  for (Item *item; (item= items++); )
    parts.push_back(item);
  return parts;
}

/* Whether the server ends at the first part that is unknown, and not only at one that is false. */
static bool ends_where_unknown(Item *condition)
{
  Item_cond *list= to_and(condition);
  return !list || list->is_top_level_item();
}

/* A column, or a literal that is not to be converted when it is first looked at. */
static bool is_plain(Item *item)
{
  item= item->real_item();
  return item->type() == Item::FIELD_ITEM || (item->basic_const_item() && item->type() != Item::CACHE_ITEM);
}

/* What two values have to have in common to be compared as they are; 0: it may be made something else. YEAR, for one, is
   compared as a date with some constants, and as a number with others. */
static uint kind_of(Item *item)
{
  /* Rows have no type of their own. */
  if (item->cols() != 1)
    return 0;
  const enum_field_types type= item->field_type();
  switch (type)
  {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
  case MYSQL_TYPE_NEWDECIMAL:
  case MYSQL_TYPE_FLOAT:
  case MYSQL_TYPE_DOUBLE:
    return is_exact_number(item) || item->cmp_type() == REAL_RESULT ? 1 : 0;
  case MYSQL_TYPE_STRING:
  case MYSQL_TYPE_VAR_STRING:
  case MYSQL_TYPE_VARCHAR:
    return item->cmp_type() == STRING_RESULT ? 2 : 0;
  case MYSQL_TYPE_DATE:
  case MYSQL_TYPE_DATETIME:
    return item->cmp_type() == TIME_RESULT ? 3 + uint(type) : 0;
  default:
    return 0;
  }
}

/* Whether evaluating it does nothing but tell whether it is true: of columns of any table and of literals. What is nested
   deeper than `depth` is not looked at. */
static bool is_silent(Item *item, uint depth= DEPTH_MAX)
{
  if (!depth--)
    return false;
  const bool is_list= item->type() == Item::COND_ITEM;
  if (is_list)
  {
    List_iterator_fast<Item> items(*static_cast<Item_cond *>(item)->argument_list());
    for (Item *part; (part= items++); )
      if (!is_silent(part, depth))
        return false;
    return true;
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *function= static_cast<Item_func *>(item);
  Item **arguments= function->arguments();
  switch (function->functype())
  {
  case Item_func::NOT_FUNC:
    return is_silent(arguments[0], depth);
  case Item_func::ISNULL_FUNC:
  case Item_func::ISNOTNULL_FUNC:
    return is_plain(arguments[0]);
  case Item_func::EQ_FUNC:
  case Item_func::EQUAL_FUNC:
  case Item_func::NE_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
  case Item_func::BETWEEN:
  case Item_func::IN_FUNC:
    break;
  default:
    return false;
  }
  const uint kind= kind_of(arguments[0]);
  for (uint i= 0; i < function->argument_count(); i++)
    if (!is_plain(arguments[i]) || !kind || kind_of(arguments[i]) != kind)
      return false;
  return true;
}

/* What takes the conditions, if it can be done. */
class Taker
{
public:
  Taker(THD *thd, TABLE *table, ha_pando *handler) : m_thd(thd), m_table(table), m_handler(handler) {}

  PandoFilter *take(const std::vector<Item *> &parts, std::list<Like_pattern> *patterns)
  {
    Query_owner query;
    Translator translator(m_thd, m_table, m_handler, query.get());
    if (!translator.translate(parts) || m_thd->is_error())
      return nullptr;
    *patterns= translator.release_patterns();
    return pando_filter_new(query.get(), m_handler->engine_table());
  }

  bool can_take(Item *part)
  {
    std::list<Like_pattern> patterns;
    PandoFilter *filter= take({part}, &patterns);
    pando_filter_free(filter);
    return filter;
  }

private:
  THD *m_thd;
  TABLE *m_table;
  ha_pando *m_handler;
};

std::unique_ptr<Row_filter> Row_filter::make(THD *thd, TABLE *table, ha_pando *handler, Item *all, Item *condition)
{
  Taker taker(thd, table, handler);
  std::vector<Item *> taken;
  bool is_all_silent= true;
  const std::vector<Item *> parts= parts_of(all);
  for (Item *part : parts)
  {
    if (taker.can_take(part))
      taken.push_back(part);
    else if (!is_silent(part))
    {
      is_all_silent= false;
      break;
    }
  }
  if (!is_all_silent && !ends_where_unknown(all))
    return nullptr;
  const bool is_whole= taken.size() == parts.size();
  /* What the server has found out of the table alone, from conditions on several, can tell more. */
  if (is_all_silent && !is_whole && condition != all)
  {
    taken.clear();
    for (Item *part : parts_of(condition))
      if (taker.can_take(part))
        taken.push_back(part);
  }
  std::list<Like_pattern> patterns;
  PandoFilter *filter= taken.empty() ? nullptr : taker.take(taken, &patterns);
  return std::unique_ptr<Row_filter>(filter ? new Row_filter(filter, std::move(patterns), is_whole) : nullptr);
}

void Row_filter::need(const std::vector<uint32_t> &positions)
{
  pando_filter_need(m_filter, positions.data(), positions.size());
  m_needed= positions;
}

bool Row_filter::need_also(const std::vector<uint32_t> &positions)
{
  if (std::includes(m_needed.begin(), m_needed.end(), positions.begin(), positions.end()))
    return false;
  std::vector<uint32_t> all;
  std::set_union(m_needed.begin(), m_needed.end(), positions.begin(), positions.end(), std::back_inserter(all));
  need(all);
  return true;
}

} // namespace pando

using namespace pando;

/* Whether the plan goes over rows: all of them, or those of a range with many. */
static bool goes_over_rows(const TABLE *table, const JOIN_TAB *tab)
{
  const QUICK_SELECT_I *quick= tab->quick;
  return tab->type == JT_ALL &&
         (!quick || (quick->index == table->s->primary_key && quick->records >= FILTER_ROWS_MIN));
}

/* The table's step of the plan that the server is making. */
static const JOIN_TAB *step_of(const TABLE *table)
{
  /* What the table knows itself is from before the best order was found. */
  const JOIN_TAB *first= table->reginfo.join_tab;
  const JOIN_TAB *tab= first && first->join ? first->join->map2table[table->tablenr] : nullptr;
  return tab && tab->table == table ? tab : nullptr;
}

/* Of an UPDATE or DELETE of one table, which has no plan of steps: whether it probably goes over many rows. */
static bool changes_many_rows(const TABLE *table)
{
  for (uint key= 0; key < table->s->keys; key++)
    if (table->opt_range_keys.is_set(key) && table->opt_range[key].rows < FILTER_ROWS_MIN)
      return false;
  return true;
}

/* The table that an UPDATE or DELETE of one table changes. */
bool ha_pando::is_changed_alone() const
{
  const int command= thd_sql_command(ha_thd());
  return m_lock == Lock::EXCLUSIVE && (command == SQLCOM_UPDATE || command == SQLCOM_DELETE);
}

bool ha_pando::may_filter() const
{
  THD *thd= ha_thd();
  const bool may_lock= is_locking() && !m_skip_locked && !m_copy_txn && !is_sequence() && m_table;
  if (!(may_lock || may_answer_queries()) || !pushdown_of(thd) || table->versioned() ||
      (thd->variables.sql_mode & MODE_PAD_CHAR_TO_FULL_LENGTH) || thd->lex->with_rownum ||
      thd->lex->limit_rows_examined)
    return false;
  const uint uncacheable= UNCACHEABLE_RAND | UNCACHEABLE_SIDEEFFECT;
  if (is_changed_alone())
    return changes_many_rows(table) && !(thd->lex->first_select_lex()->uncacheable & uncacheable);
  const JOIN_TAB *tab= step_of(table);
  return tab && tab->select_cond && goes_over_rows(table, tab) && !(tab->join->select_lex->uncacheable & uncacheable);
}

/* The server goes on evaluating all of it, and shows it by `pushed_cond`; of a partitioned table that of the whole. */
const COND *ha_pando::cond_push(const COND *condition)
{
  /* When a scan has begun the server asks again what it was told before. */
  if (inited != NONE)
    return condition;
  m_filter.reset();
  if (may_filter())
  {
    Item *const part= const_cast<Item *>(condition);
    m_filter= Row_filter::make(ha_thd(), table, this, is_changed_alone() ? part : step_of(table)->select_cond, part);
    if (m_filter && !is_locking())
      table->file->pushed_cond= condition;
  }
  /* None of it is left if all of it is a range that a DELETE may delete as such; should that not do, the server still has it. */
  return find_deleted_range(condition) ? nullptr : condition;
}

void ha_pando::cond_pop()
{
  if (inited == NONE)
    m_filter.reset();
}

/* Whether the scan that begins here, or goes on, may leave out rows. */
bool ha_pando::can_filter() const
{
  return m_filter && m_scan_dictionary == 0 && table->file->pushed_cond && !is_locking() &&
         read_mode() == PANDO_READ_SNAPSHOT;
}

/* Whether a locking scan may pass rows by for which the condition is not true. */
bool ha_pando::can_pass_by() const
{
  return m_filter && m_scan_dictionary == 0 && is_locking() && !m_skip_locked;
}

/* Tells the filter which columns are wanted. A scan under way goes on anew if its rows do not have them all; the server may take turns with
   what it wants at each row (when it sorts, and the condition has a subquery). */
void ha_pando::need_columns()
{
  if (!m_filter)
    return;
  const std::vector<uint32_t> positions= m_row_codec.wanted_positions();
  if (!m_is_filtered)
    m_filter->need(positions);
  else if (m_filter->need_also(positions))
  {
    m_at_cursor= false;
    m_rows_left= 0;
  }
}
