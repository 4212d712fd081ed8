/* What the server would pay for a SELECT: its tables one after the other, the one that gives fewest rows first (or one to which a range leads, if that is
   better), each by the ranges that the server's own range optimizer finds in the conditions, or by a key whose first columns are equal to
   constants and to columns of the tables before.

   The engine is asked before the server has optimized anything, so this is a guess of what it would do: the greedy search of System R's successors over
   little more than the cardinalities of keys. It errs to the engine's side where it knows little: conditions that no key has make rows hardly
   fewer. */
#include "select_bound.h"
#include "select_cost.h"
#include "select_derived.h"
#include "select_jumps.h"
#include "select_limit.h"
#include "select_range.h"
#include "text_order.h"

#include <algorithm>
#include <cmath>

#include "sql_cte.h"

namespace pando {

namespace {

const double UNKNOWN_NS= 1e18;
/* Rows of a table that are compared with those of a table before, without a key. */
const double SERVER_COMPARE_NS= 30;
/* What it gives is looked at for a row. */
const double SERVER_EACH_NS= 300;
/* Tables of a join at most of which each is tried as the first one. */
const size_t BEGINNINGS_MAX= 12;
/* SELECTs within each other at most. */
const uint DEPTH_MAX= 16;
/* The share of rows that a range of a column has, behind columns that are equal to something (System R's). */
const double RANGE_SHARE= 1.0 / 3;
/* The share that is left where columns in no key are equal to constants, however many: a flag that most rows have is among them too often to say
   System R's tenth. */
const double EQUAL_SHARE= 1.0 / 4;
/* Rows of a derived table for each of those before, as the server guesses where it makes a key for it. */
const double SERVER_ROWS_OF_DERIVED= 10;
/* So many times as much at most costs a way which the server may take for as good as the best one. */
const double WAYS_ALIKE= 2;
/* A value with so many times the rows of others is frequent; less is as good as what keys are known to have. */
const double SKEW_MIN= 4;
/* Rows of a table from which on ranges of its keys are looked at. */
const double RANGES_ROWS_MIN= 500;
/* A column with fewer values has dictionaries, of which each entry is compared once. */
const double VALUES_COMPARED_MIN= 2048;

using Tables= std::vector<const TABLE *>;

bool has(const Tables &tables, const TABLE *table)
{
  return std::find(tables.begin(), tables.end(), table) != tables.end();
}

/* The tables whose columns an expression has, not those of SELECTs within it. */
Tables tables_of(Item *item)
{
  List<Item_field> fields;
  item->walk(&Item::collect_item_field_processor, false, &fields);
  Tables tables;
  List_iterator_fast<Item_field> each(fields);
  for (Item_field *field; (field= each++); )
    if (field->field)
      tables.push_back(field->field->table);
  return tables;
}

Item *where_of(SELECT_LEX *select)
{
  return select->join && select->join->conds ? select->join->conds : select->where;
}

/* A table among those that are joined, or the rows of a derived one. */
struct Source
{
  TABLE_LIST *list= nullptr;
  TABLE *table= nullptr;
  SELECT_LEX *select= nullptr;
  double all= 0, by_range= 0;
  /* What the server pays for each of `by_range`. */
  double each_ns= SERVER_LOOKUP_NS;
  /* What conditions that keys know of leave, also where it is so much that all rows are read. */
  double left= 0;
  bool is_outer= false, is_derived= false, is_used= false;
  /* Of a derived table: what it costs to make all of it, or parts. */
  double whole= 0;
  std::vector<Groups_of_value> groups;
};

/* A column that is equal to something which needs columns of other tables, or none; `other`: if it is a column itself; `is_literal`: the range optimizer
   knows of it. */
struct Equality
{
  const Field *field;
  Tables needs;
  const Field *other;
  bool is_literal;
};

/* An order in which tables are joined. */
struct Way
{
  Select_cost cost;
  const Source *first= nullptr;
  /* What is paid of it whether all rows are read or the first ones: derived tables. */
  double made= 0;
  /* The rows of the others for each of the first table, as the server guesses. */
  double fanout= 1;
};

/* Tables that are joined, with those of the SELECTs that the server makes joins of. */
class Join_cost
{
public:
  Join_cost(THD *thd, uint depth) : m_thd(thd), m_depth(depth) {}
  void add_select(SELECT_LEX *select);
  void push_conditions(SELECT_LEX *outer, TABLE_LIST *list, SELECT_LEX *inner);
  /* With the LIMIT of the SELECT that has been added. */
  Select_cost cost(SELECT_LEX *select);

private:
  void add_table(TABLE_LIST *list, SELECT_LEX *select);
  void add_derived(TABLE_LIST *list, SELECT_LEX *select);
  void add_conditions(Item *item, SELECT_LEX *select);
  void add_equal(Item *one, Item *other);
  bool add_subquery(Item *item);
  void join_with(Item_subselect *item, Item *left);
  bool join_with_groups(Item_in_subselect *item);
  void pay_units(SELECT_LEX *select);
  void find_ranges(Source *source, bool compares_texts);
  double cost_of_texts(const Source &source);
  std::vector<Item *> conditions_of(SELECT_LEX *select, TABLE_LIST *list);
  bool is_known(const Field *field, const Tables &before) const;
  bool is_constant(const Field *field) const;
  double by_key(const Source &source, const Tables &before) const;
  double cost_of_derived(const Source &source, double rows_before) const;
  double share_left(const Source &source) const;
  Source *next_source(const Tables &before, double *rows);
  Way way_from(Source *first);
  std::vector<Item *> conditions_of_join(SELECT_LEX *select);
  bool end_by_other_key(SELECT_LEX *select, double led, Way *way);
  bool end_early(SELECT_LEX *select, Way *way);
  bool is_ready(const Source &source) const;

  THD *const m_thd;
  const uint m_depth;
  std::vector<Source> m_sources;
  std::vector<Equality> m_equalities;
  /* What is pushed into SELECTs. */
  std::vector<std::pair<SELECT_LEX *, Item *>> m_pushed;
  /* Columns that are in some range of constants. */
  std::vector<const Field *> m_bounded;
  /* SELECTs within it that are part of the join, and what the others cost: once, and for each row. */
  std::vector<const SELECT_LEX_UNIT *> m_joined;
  double m_once= 0, m_each= 0, m_each_shown= 0, m_engine= 0;
};

/* The same, or the loose index scan instead. */
Select_cost with_jumps(SELECT_LEX *select, Select_cost cost)
{
  const Jumps jumps= jumps_of(select);
  if (jumps.groups <= 0)
    return cost;
  cost.server= std::min(cost.server, jumps.lookups * SERVER_LOOKUP_NS);
  cost.rows= std::min(cost.rows, jumps.groups);
  return cost;
}

/* A derived table: what `outer` says of its columns is pushed into it. */
Select_cost cost_of_unit(THD *thd, SELECT_LEX_UNIT *unit, uint depth, SELECT_LEX *outer= nullptr, TABLE_LIST *list= nullptr)
{
  Select_cost all;
  all.rows= 0;
  if (depth > DEPTH_MAX || (unit->with_element && unit->with_element->is_recursive))
  {
    all.server= UNKNOWN_NS;
    return all;
  }
  for (SELECT_LEX *select= unit->first_select(); select; select= select->next_select())
  {
    Join_cost join(thd, depth);
    if (list)
      join.push_conditions(outer, list, select);
    join.add_select(select);
    const Select_cost one= with_jumps(select, join.cost(select));
    all.server+= one.server;
    all.engine+= one.engine;
    all.rows+= select->agg_func_used() && !select->group_list.elements ? 1 : std::min(one.rows, rows_wanted(unit));
  }
  return all;
}

void Join_cost::add_equal(Item *one, Item *other)
{
  if (one->cols() != other->cols())
    return;
  if (one->cols() > 1)
  {
    for (uint i= 0; i < one->cols(); i++)
      add_equal(one->element_index(i), other->element_index(i));
    return;
  }
  for (Item *side : {one, other})
  {
    Item *real= side->real_item();
    if (real->type() == Item::FIELD_ITEM && static_cast<Item_field *>(real)->field)
    {
      Item *with= (side == one ? other : one)->real_item();
      const Field *column= with->type() == Item::FIELD_ITEM ? static_cast<Item_field *>(with)->field : nullptr;
      m_equalities.push_back({static_cast<Item_field *>(real)->field, tables_of(with), column, with->basic_const_item()});
    }
  }
}

/* As if the tables of the subquery were joined: `left` is equal to what it gives. */
void Join_cost::join_with(Item_subselect *item, Item *left)
{
  SELECT_LEX *select= item->unit->first_select();
  m_joined.push_back(item->unit);
  add_select(select);
  if (!left)
    return;
  List_iterator_fast<Item> given(select->item_list);
  for (uint i= 0; i < left->cols(); i++)
  {
    Item *column= given++;
    if (column)
      add_equal(left->cols() > 1 ? left->element_index(i) : left, column);
  }
}

/* The server computes what is in IN once, and may begin the join with it. */
bool Join_cost::join_with_groups(Item_in_subselect *item)
{
  SELECT_LEX_UNIT *unit= item->unit;
  SELECT_LEX *select= unit->first_select();
  TABLE_LIST *list= select->leaf_tables.head();
  if ((unit->uncacheable & UNCACHEABLE_DEPENDENT) || !list || !list->table || !optimizer_flag(m_thd, OPTIMIZER_SWITCH_MATERIALIZATION))
    return false;
  m_joined.push_back(unit);
  const Select_cost cost= cost_of_unit(m_thd, unit, m_depth + 1);
  m_once+= cost.server;
  m_engine+= cost.engine;
  Source source;
  source.list= list;
  source.table= list->table;
  source.is_derived= true;
  source.all= source.by_range= source.left= cost.rows;
  m_sources.push_back(source);
  Item *left= item->left_exp();
  List_iterator_fast<Item> given(select->item_list);
  for (uint i= 0; i < left->cols(); i++)
    if (Item *column= given++)
      add_equal(left->cols() > 1 ? left->element_index(i) : left, column);
  return true;
}

/* IN and EXISTS of a SELECT: that is no more than a join, or IN of groups. */
bool Join_cost::add_subquery(Item *item)
{
  Item *within= item->real_item();
  if (within->type() == Item::FUNC_ITEM && static_cast<Item_func *>(within)->functype() == Item_func::IN_OPTIMIZER_FUNC)
    within= static_cast<Item_func *>(within)->arguments()[1]->real_item();
  if (within->type() != Item::SUBSELECT_ITEM)
    return false;
  Item_subselect *subquery= static_cast<Item_subselect *>(within);
  const Item_subselect::subs_type type= subquery->substype();
  if (type != Item_subselect::IN_SUBS && type != Item_subselect::EXISTS_SUBS)
    return false;
  /* The server limits an EXISTS to one row itself. */
  if (!is_one_select(subquery->unit) || (type == Item_subselect::IN_SUBS && is_limited(subquery->unit)))
    return false;
  if (!is_join(subquery->unit->first_select()))
    return type == Item_subselect::IN_SUBS && join_with_groups(static_cast<Item_in_subselect *>(subquery));
  join_with(subquery, type == Item_subselect::IN_SUBS ? static_cast<Item_in_subselect *>(subquery)->left_exp() : nullptr);
  return true;
}

void Join_cost::add_conditions(Item *item, SELECT_LEX *select)
{
  if (item->type() == Item::COND_ITEM && static_cast<Item_cond *>(item)->functype() == Item_func::COND_AND_FUNC)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(item)->argument_list());
    for (Item *part; (part= parts++); )
      add_conditions(part, select);
    return;
  }
  if (add_subquery(item) || item->type() != Item::FUNC_ITEM)
    return;
  Item_func *function= static_cast<Item_func *>(item);
  switch (function->functype())
  {
  case Item_func::EQ_FUNC:
  case Item_func::EQUAL_FUNC:
    add_equal(function->arguments()[0], function->arguments()[1]);
    break;
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
  case Item_func::BETWEEN:
  case Item_func::IN_FUNC:
    for (uint i= 0; i < function->argument_count(); i++)
    {
      Item *argument= function->arguments()[i]->real_item();
      if (argument->type() == Item::FIELD_ITEM)
        m_bounded.push_back(static_cast<Item_field *>(argument)->field);
    }
    break;
  default:
    break;
  }
}

void Join_cost::push_conditions(SELECT_LEX *outer, TABLE_LIST *list, SELECT_LEX *inner)
{
  if (is_outer_joined(list))
    return;
  for (Item *copy : conditions_pushed(m_thd, conditions_of(outer, list), list, inner))
    m_pushed.emplace_back(inner, copy);
}

void Join_cost::add_derived(TABLE_LIST *list, SELECT_LEX *select)
{
  SELECT_LEX_UNIT *unit= list->get_unit();
  if (!unit || !unit->first_select())
    return;
  m_joined.push_back(unit);
  if (is_one_select(unit) && is_join(unit->first_select()) && !is_limited(unit))
  {
    push_conditions(select, list, unit->first_select());
    add_select(unit->first_select());
    return;
  }
  const Select_cost cost= cost_of_unit(m_thd, unit, m_depth + 1, select, list);
  m_engine+= cost.engine;
  Source source;
  source.list= list;
  source.table= list->table;
  source.is_derived= true;
  source.is_outer= is_outer_joined(list);
  source.whole= cost.server;
  if (list->table && optimizer_flag(m_thd, OPTIMIZER_SWITCH_SPLIT_MATERIALIZED))
    source.groups= groups_of_values(unit, list->table);
  source.all= source.by_range= source.left= cost.rows;
  m_sources.push_back(source);
}

/* What has to be true of each row of the table. */
std::vector<Item *> Join_cost::conditions_of(SELECT_LEX *select, TABLE_LIST *list)
{
  std::vector<Item *> parts;
  const auto add= [&parts](Item *item, const auto &self) -> void {
    if (item->type() == Item::COND_ITEM && static_cast<Item_cond *>(item)->functype() == Item_func::COND_AND_FUNC)
    {
      List_iterator_fast<Item> each(*static_cast<Item_cond *>(item)->argument_list());
      for (Item *part; (part= each++); )
        self(part, self);
    }
    else
      parts.push_back(item);
  };
  /* Of an outer join's table, what ON says; what WHERE says of it may be of rows that it has not. */
  if (!is_outer_joined(list))
  {
    if (Item *where= where_of(select))
      add(where, add);
    for (const auto &pushed : m_pushed)
      if (pushed.first == select)
        parts.push_back(pushed.second);
  }
  for (TABLE_LIST *nest= list; nest; nest= nest->embedding)
    if (nest->on_expr && (nest == list || !is_outer_joined(nest)))
      add(nest->on_expr, add);
  return parts;
}

double cost_in_engine(double rows) { return ENGINE_TABLE_NS + rows * (ENGINE_ROW_NS + 2 * ENGINE_COLUMN_NS); }

/* Whether a column of texts leads a key, and has so many values that the text of each row is compared. */
bool is_text_of_key(const Field *field)
{
  const auto type= field->real_type();
  if (type != MYSQL_TYPE_STRING && type != MYSQL_TYPE_VARCHAR && type != MYSQL_TYPE_BLOB)
    return false;
  const TABLE *table= field->table;
  return std::any_of(table->key_info, table->key_info + table->s->keys, [&](const KEY &key) {
    const double of_value= key.rec_per_key && key.rec_per_key[0] ? double(key.rec_per_key[0]) : 1;
    return key.key_part[0].field == field && double(table->file->stats.records) / of_value >= VALUES_COMPARED_MIN;
  });
}

/* What the engine pays to compare the texts of all rows, where a key could lead the server to some of them. It compares a text with all constants at once. */
double Join_cost::cost_of_texts(const Source &source)
{
  std::vector<const Field *> compared;
  for (Item *part : conditions_of(source.select, source.list))
  {
    const Tables tables= tables_of(part);
    if (part->with_subquery() || std::count(tables.begin(), tables.end(), source.table) != std::ptrdiff_t(tables.size()))
      continue;
    List<Item_field> fields;
    part->walk(&Item::collect_item_field_processor, false, &fields);
    List_iterator_fast<Item_field> each(fields);
    for (const Item_field *one; (one= each++); )
      if (one->field && is_text_of_key(one->field) && !std::count(compared.begin(), compared.end(), one->field))
        compared.push_back(one->field);
  }
  double of_row= 0;
  for (const Field *field : compared)
  {
    Text_order order;
    order.init(field->charset());
    of_row+= order.orders_bytes() ? ENGINE_BYTES_NS : ENGINE_TEXT_NS;
  }
  return source.all * of_row;
}

void Join_cost::find_ranges(Source *source, bool compares_texts)
{
  TABLE *table= source->table;
  if (source->all < RANGES_ROWS_MIN || !table->s->keys || table->file->partition_ht() != hton)
    return;
  const std::vector<Item *> parts= conditions_of(source->select, source->list);
  /* Short statements are felt to be optimized twice. */
  const double most= rows_by_unique_key(table, parts);
  if (most * SERVER_LOOKUP_NS < cost_in_engine(source->all))
  {
    source->by_range= source->left= std::min(source->all, most);
    return;
  }
  const Rows_of_ranges rows= rows_of_ranges(m_thd, table, parts);
  source->by_range= std::min(source->all, rows.read);
  source->left= std::min(source->all, rows.left);
  /* Of numbers the engine leaves out what zones and parts show not to match, which its cost here does not know; of texts hardly ever. */
  if (rows.is_covering && compares_texts)
    source->each_ns= SERVER_ENTRY_NS;
}

void Join_cost::add_table(TABLE_LIST *list, SELECT_LEX *select)
{
  for (TABLE_LIST *nest= list; nest; nest= nest->embedding)
    if (nest->on_expr)
      add_conditions(nest->on_expr, select);
  if (list->is_view_or_derived())
  {
    add_derived(list, select);
    return;
  }
  if (!list->table)
    return;
  Source source;
  source.list= list;
  source.table= list->table;
  source.select= select;
  for (TABLE_LIST *nest= list; nest; nest= nest->embedding)
    source.is_outer|= is_outer_joined(nest);
  list->table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
  source.all= source.by_range= source.left= double(list->table->file->stats.records);
  const double of_texts= cost_of_texts(source);
  m_engine+= cost_in_engine(source.all) + of_texts;
  find_ranges(&source, of_texts > 0);
  m_sources.push_back(source);
}

void Join_cost::add_select(SELECT_LEX *select)
{
  List_iterator_fast<TABLE_LIST> tables(select->leaf_tables);
  for (TABLE_LIST *list; (list= tables++); )
    add_table(list, select);
  if (Item *where= where_of(select))
    add_conditions(where, select);
  for (size_t i= 0; i < m_pushed.size(); i++)
    if (m_pushed[i].first == select)
      add_conditions(m_pushed[i].second, select);
  pay_units(select);
}

/* Whether it is computed of the rows that are left when they have been sorted and cut. */
bool is_shown_alone(SELECT_LEX *select, const SELECT_LEX_UNIT *unit)
{
  if (select->outer_select() || !unit->item || unit->item->place() != SELECT_LIST || !is_join(select))
    return false;
  for (const ORDER *order= select->join ? select->join->order : nullptr; order; order= order->next)
    if ((*order->item)->with_subquery())
      return false;
  return true;
}

/* SELECTs that are not part of the join. */
void Join_cost::pay_units(SELECT_LEX *select)
{
  for (SELECT_LEX_UNIT *unit= select->first_inner_unit(); unit; unit= unit->next_unit())
  {
    if (std::find(m_joined.begin(), m_joined.end(), unit) != m_joined.end())
      continue;
    const Select_cost cost= cost_of_unit(m_thd, unit, m_depth + 1);
    m_engine+= cost.engine;
    double &each= is_shown_alone(select, unit) ? m_each_shown : m_each;
    (unit->uncacheable & UNCACHEABLE_DEPENDENT ? each : m_once)+= cost.server;
    m_once+= SERVER_SELECT_NS;
    each+= SERVER_EACH_NS;
  }
}

/* Whether something is known that the column is equal to, if rows of these tables are. */
bool Join_cost::is_known(const Field *field, const Tables &before) const
{
  const auto is_there= [&](const TABLE *table) {
    const auto is_of= [table](const Source &one) { return one.table == table; };
    return table != field->table && (has(before, table) || std::none_of(m_sources.begin(), m_sources.end(), is_of));
  };
  return std::any_of(m_equalities.begin(), m_equalities.end(), [&](const Equality &equality) {
    return equality.field == field && std::all_of(equality.needs.begin(), equality.needs.end(), is_there);
  });
}

/* Whether it is equal to a constant, also by way of another column. */
bool Join_cost::is_constant(const Field *field) const
{
  const auto is_equal_to_constant= [this](const Field *column) {
    return std::any_of(m_equalities.begin(), m_equalities.end(), [column](const Equality &equality) {
      return equality.field == column && equality.needs.empty();
    });
  };
  return is_equal_to_constant(field) || std::any_of(m_equalities.begin(), m_equalities.end(), [&](const Equality &equality) {
           return equality.field == field && equality.other && is_equal_to_constant(equality.other);
         });
}

/* To make a derived table: all of it at once, or the groups of each value that is met (`rows_before`: 0, if the join begins with it). Of one row of tables
   that are constant nothing is pushed into that of an outer join. */
double Join_cost::cost_of_derived(const Source &source, double rows_before) const
{
  double cost= source.whole;
  for (const Groups_of_value &groups : source.groups)
  {
    if (!source.is_outer && is_constant(groups.column))
      cost= std::min(cost, groups.cost);
    for (const Equality &equality : m_equalities)
    {
      if (equality.field != groups.column || equality.needs.empty() || rows_before <= 0 || (source.is_outer && rows_before <= 1))
        continue;
      /* A range of the other column is one of this. */
      const bool is_bounded= !source.is_outer && std::count(m_bounded.begin(), m_bounded.end(), equality.other);
      const double values= is_bounded ? rows_before / rows_of_value(equality.other) : rows_before;
      cost= std::min(cost, groups.cost * std::max(1.0, values));
    }
  }
  return cost;
}

/* The rows for each of those of the tables before, by the key whose first columns are equal to what is known then. */
double Join_cost::by_key(const Source &source, const Tables &before) const
{
  double best= source.by_range;
  if (source.is_derived)
  {
    for (const Groups_of_value &groups : source.groups)
      if (is_known(groups.column, before))
        best= std::min(best, groups.rows);
    /* It gets a key for any columns. */
    for (const Equality &equality : m_equalities)
      if (equality.field->table == source.table && is_known(equality.field, before))
        return std::min(best, std::max(1.0, source.all / 10));
    return best;
  }
  for (uint number= 0; number < source.table->s->keys; number++)
  {
    const KEY *key= &source.table->key_info[number];
    if (!source.table->keys_in_use_for_query.is_set(number))
      continue;
    uint parts= 0;
    while (parts < key->user_defined_key_parts && is_known(key->key_part[parts].field, before))
      parts++;
    if (!parts)
      continue;
    double rows= double(key->rec_per_key ? key->rec_per_key[parts - 1] : 0);
    if (parts == key->user_defined_key_parts && (key->flags & HA_NOSAME))
      rows= 1;
    else if (rows <= 0)
      rows= std::max(10.0, std::sqrt(source.all));
    if (parts < key->user_defined_key_parts &&
        std::find(m_bounded.begin(), m_bounded.end(), key->key_part[parts].field) != m_bounded.end())
      rows= std::max(1.0, rows * RANGE_SHARE);
    /* Of constants ranges know more than how many rows a value has on average. */
    const auto is_of_literal= [this](const KEY_PART_INFO &part) {
      const auto is_literal= [&part](const Equality &equality) { return equality.is_literal && equality.field == part.field; };
      return std::any_of(m_equalities.begin(), m_equalities.end(), is_literal);
    };
    if (source.by_range < source.all && source.left > SKEW_MIN * rows && std::all_of(key->key_part, key->key_part + parts, is_of_literal))
      rows= source.left;
    best= std::min(best, rows);
  }
  return best;
}

/* The part of a table's rows that is left by conditions which no key has. */
double Join_cost::share_left(const Source &source) const
{
  const auto is_filter= [&source](const Equality &equality) {
    return equality.needs.empty() && equality.field->table == source.table && equality.field->part_of_key.is_clear_all();
  };
  return !source.is_derived && std::any_of(m_equalities.begin(), m_equalities.end(), is_filter) ? EQUAL_SHARE : 1;
}

/* Those of an outer join come after all others. */
bool Join_cost::is_ready(const Source &source) const
{
  return !source.is_outer ||
         std::none_of(m_sources.begin(), m_sources.end(), [](const Source &one) { return !one.is_outer && !one.is_used; });
}

/* Of the tables that are left, the one that gives the fewest rows for each of those before. */
Source *Join_cost::next_source(const Tables &before, double *rows)
{
  Source *next= nullptr;
  for (Source &source : m_sources)
  {
    if (source.is_used || !is_ready(source))
      continue;
    const double of_source= by_key(source, before);
    if (!next || of_source < *rows)
    {
      next= &source;
      *rows= of_source;
    }
    if (source.is_outer)
      break;
  }
  return next;
}

/* `first`: the table that the join begins with; none: the one with the fewest rows. */
Way Join_cost::way_from(Source *first)
{
  Way way;
  Select_cost &cost= way.cost;
  Tables before;
  for (Source &source : m_sources)
    source.is_used= false;
  for (size_t done= 0; done < m_sources.size(); done++)
  {
    double fewest= first ? by_key(*first, before) : 0;
    Source *next= first ? first : next_source(before, &fewest);
    first= nullptr;
    next->is_used= true;
    if (before.empty())
      way.first= next;
    else
      way.fanout*= next->is_derived && fewest < next->all ? SERVER_ROWS_OF_DERIVED : std::max(1.0, fewest);
    if (next->is_derived)
    {
      const double made= cost_of_derived(*next, before.empty() ? 0 : cost.rows);
      cost.server+= made;
      way.made+= made < next->whole ? 0 : made;
    }
    const bool is_first= before.empty();
    before.push_back(next->table);
    if (fewest < next->all)
      cost.server+= cost.rows * std::max(1.0, fewest) * (is_first ? next->each_ns : SERVER_LOOKUP_NS);
    else
      cost.server+= next->all * SERVER_SCAN_NS + (cost.rows > 1 ? cost.rows * next->all * SERVER_COMPARE_NS : 0);
    const double rows= fewest < next->all ? fewest : next->left;
    cost.rows*= next->is_outer ? std::max(1.0, rows) : rows;
    if (cost.rows > 1 && !next->is_outer)
      cost.rows= std::max(1.0, cost.rows * share_left(*next));
  }
  return way;
}

/* What drops rows: WHERE, and ON of inner joins. */
std::vector<Item *> Join_cost::conditions_of_join(SELECT_LEX *select)
{
  std::vector<Item *> all;
  List_iterator_fast<TABLE_LIST> tables(select->leaf_tables);
  for (TABLE_LIST *list; (list= tables++); )
    if (!is_outer_joined(list))
      for (Item *condition : conditions_of(select, list))
        if (std::find(all.begin(), all.end(), condition) == all.end())
          all.push_back(condition);
  return all;
}

/* Constants lead to `led` rows of the table that the join begins with, and another key has the order of which the first rows are wanted: the server reads that
   key, if it expects to have them sooner (test_if_cheaper_ordering). It takes rows that it is led to as lying evenly in the order, and nothing else as
   dropping rows, so this may be the better way or by far the worse one. */
bool Join_cost::end_by_other_key(SELECT_LEX *select, double led, Way *way)
{
  const double all= way->first->all;
  const auto may_drop= [](const Source &source) { return source.is_derived && !source.is_outer; };
  const bool has_derived= std::any_of(m_sources.begin(), m_sources.end(), may_drop);
  const Rows_in_order rows= rows_in_order(select, way->first->table, all, led, conditions_of_join(select), has_derived);
  if (rows.by_server <= 0 || rows.by_server / way->fanout >= led)
    return false;
  const double of_others= std::max(0.0, way->cost.server - way->made - std::max(1.0, led) * SERVER_LOOKUP_NS);
  way->cost.server= way->made + rows.read * SERVER_LOOKUP_NS + of_others * rows.read / all;
  way->cost.rows*= rows.read / all;
  return true;
}

/* Of the rows of the table that a join begins with, and so of all others, only the first ones are read. Whether it is by another key than the one that
   constants lead into. */
bool Join_cost::end_early(SELECT_LEX *select, Way *way)
{
  const Source *first= way->first;
  if (!first || first->is_derived)
    return false;
  const ORDER *order= select->join->order;
  const Item *by= order ? (*order->item)->real_item() : nullptr;
  const Field *sorted= by && by->type() == Item::FIELD_ITEM ? static_cast<const Item_field *>(by)->field : nullptr;
  /* A range behind columns of one value is not read backwards. */
  const bool may_skip= sorted && !std::count(m_bounded.begin(), m_bounded.end(), sorted);
  const Is_constant is_one_value= [&](const Field *field) { return may_skip && is_constant(field); };
  /* Where constants lead into a key, the server goes there, and sorts what another key would have in order, unless it expects to meet the first rows soon. */
  const double led= by_key(*first, Tables());
  const bool goes_to_key= led < first->all;
  const double share= share_until_limit(select, first->table, first->by_range, &is_one_value, goes_to_key);
  if (share == 1 && goes_to_key && end_by_other_key(select, led, way))
    return true;
  way->cost.server= way->made + (way->cost.server - way->made) * share;
  way->cost.rows*= share;
  return false;
}

Select_cost Join_cost::cost(SELECT_LEX *select)
{
  std::vector<Way> ways= {way_from(nullptr)};
  /* A small table that nothing leads on from is a bad beginning: the server tries all. */
  for (Source &source : m_sources)
    if (!source.is_outer && !source.is_derived && (source.by_range < source.all || m_sources.size() <= BEGINNINGS_MAX))
      ways.push_back(way_from(&source));
  Way way= *std::min_element(ways.begin(), ways.end(), [](const Way &a, const Way &b) { return a.cost.server < b.cost.server; });
  const double alike= way.cost.server * WAYS_ALIKE;
  end_early(select, &way);
  /* Of ways that cost about the same it may take the one on which the order of a key leads it astray. */
  for (Way &other : ways)
    if (other.cost.server < alike && end_early(select, &other) && other.cost.server > way.cost.server)
      way= other;
  Select_cost &cost= way.cost;
  cost.server+= double(m_joined.size()) * SERVER_SELECT_NS + m_once + m_each * std::max(1.0, cost.rows);
  cost.server+= m_each_shown * std::min(std::max(1.0, cost.rows), rows_wanted(select->master_unit()));
  cost.engine= m_engine;
  if (select->have_window_funcs())
  {
    cost.server+= cost.rows * SERVER_SORTED_NS;
    cost.engine+= cost.rows * ENGINE_SORTED_NS;
  }
  for (const Source &source : m_sources)
    if (!source.is_derived && source.by_range < source.all)
      cost.ranges.emplace_back(source.table, source.by_range);
  return cost;
}

} // namespace

Select_cost cost_of_select(THD *thd, SELECT_LEX *select)
{
  Join_cost join(thd, 0);
  join.add_select(select);
  return with_jumps(select, join.cost(select));
}

} // namespace pando
