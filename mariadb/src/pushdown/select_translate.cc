/* SELECTs of any shape, said in the engine's words: the whole, and FROM. Its blocks: select_block.cc. */
#include "select_translate.h"
#include "column_place.h"
#include "select_silence.h"

#include <algorithm>

namespace pando {

/* Tables of a query at most. */
static const uint TABLES_MAX= 32;
static const uint SELECT_NODES_MAX= 8192;
static const uint SELECT_DEPTH_MAX= 64;

using B= Select_bytes;

bool Select_translator::Nesting::is_allowed() const
{
  return ++m_translator->m_nodes <= SELECT_NODES_MAX && m_translator->m_depth <= SELECT_DEPTH_MAX &&
         has_stack(m_translator->m_thd);
}

static bool has_several_tables(const THD *thd)
{
  uint count= 0;
  for (TABLE_LIST *one= thd->lex->query_tables; one && count < 2; one= one->next_global)
    count+= !one->is_view_or_derived();
  return count > 1;
}

/* Where warnings are errors, the server has to come to them itself. */
Select_translator::Select_translator(THD *thd)
  : m_thd(thd), m_has_joins(has_several_tables(thd)), m_hears_constants(!is_stored_by_statement(thd)) {}

bool Select_translator::translate(SELECT_LEX *select)
{
  std::vector<uint> slots;
  if (!unit(select->master_unit(), Use::TOP, &m_bytes, &slots, &outputs))
    return false;
  if (m_fails_in_order && tables.size() > 1)
    return refuse("an order of several tables that can fail");
  B::small(&m_bytes, m_asked_count);
  m_bytes+= m_asked;
  B::small(&m_bytes, m_first_count);
  m_bytes+= m_first;
  return true;
}

bool Select_translator::unit(SELECT_LEX_UNIT *unit, Use use, std::string *to, std::vector<uint> *slots,
                             std::vector<Value_kind> *kinds)
{
  SELECT_LEX *first= unit->first_select();
  if (first && first->next_select())
    return together(unit, use, to, slots, kinds);
  if (!first || unit->fake_select_lex)
    return refuse("a UNION");
  return block(first, use, to, slots, kinds);
}

static uint levels_of(const CHARSET_INFO *collation)
{
  return my_count_bits(collation->levels_for_order);
}

/* With several levels, the first one fills up the server's key of a text as if it were as long as it may be. What the others say may be cut off. */
bool is_sorted_by_few_levels(const THD *thd, const Item *item)
{
  static const uint WEIGHT_BYTES= 2;
  const CHARSET_INFO *collation= item->collation.collation;
  const ulonglong room= std::min<ulonglong>(thd->variables.max_sort_length, collation->strnxfrmlen(item->max_length));
  return levels_of(collation) > 1 && ulonglong(item->max_char_length()) * WEIGHT_BYTES * levels_of(collation) > room;
}

bool is_sorted_by_prefix(const THD *thd, const Item *item)
{
  if (is_sorted_by_few_levels(thd, item))
    return true;
  static const uint WEIGHT_BYTES= 3; /* of a character, with most collations */
  return item->max_char_length() * ulonglong(std::max(WEIGHT_BYTES, item->collation.collation->mbmaxlen)) > thd->variables.max_sort_length;
}

/* The server has the last table first. */
bool Select_translator::from(List<TABLE_LIST> *list, std::vector<Part> *parts)
{
  Nesting nesting(this);
  if (!nesting.is_allowed())
    return refuse("a deep join");
  List_iterator_fast<TABLE_LIST> lists(*list);
  std::vector<TABLE_LIST *> in_order;
  for (TABLE_LIST *one; (one= lists++); )
    in_order.insert(in_order.begin(), one);
  for (TABLE_LIST *one : in_order)
  {
    parts->emplace_back();
    if (!part(one, &parts->back()))
      return false;
  }
  return true;
}

bool Select_translator::part(TABLE_LIST *list, Part *part)
{
  part->list= list;
  part->is_outer= is_outer_joined(list);
  if (list->sj_on_expr || list->sj_subq_pred || list->jtbm_subselect || list->table_function || list->schema_table ||
      list->is_recursive_with_table())
    return refuse("a special table");
  if (list->nested_join)
    return from(&list->nested_join->join_list, &part->nest);
  m_sources.emplace_back();
  Source *source= &m_sources.back();
  source->list= list;
  source->table= list->table;
  part->source= source;
  if (SELECT_LEX_UNIT *derived= list->is_view_or_derived() ? list->get_unit() : nullptr)
  {
    SELECT_LEX *const outer= m_select;
    const bool is_merged= list->is_merged_derived();
    const bool is_said= unit(derived, is_merged ? Use::MERGED : Use::DERIVED, &source->bytes, &source->slots, &source->kinds);
    source->sources_within= m_sources.size();
    m_select= outer;
    return is_said;
  }
  TABLE *table= list->table;
  const std::vector<ha_pando *> of_table= table ? handlers_of(table) : std::vector<ha_pando *>();
  if (of_table.empty())
    return refuse("a table of another kind");
  if (tables.size() == TABLES_MAX)
    return refuse("too many tables");
  source->number= int(handlers.size());
  source->parts= uint(of_table.size());
  handlers.insert(handlers.end(), of_table.begin(), of_table.end());
  tables.push_back(table);
  return leave_out_expired(source);
}

/* Of a table with TTL: its rows are those that have not expired, before anything else is asked of them. */
bool Select_translator::leave_out_expired(Source *source)
{
  const Expiry *expiry= handlers[size_t(source->number)]->expiry();
  longlong limit;
  if (!expiry || !expiry->limit(&limit))
    return true;
  Said column;
  if (!column_of_source(expiry->field(), &column))
    return false;
  const auto compared= [&](PandoComparison comparison, longlong with) {
    std::string bytes;
    B::compare(&bytes, comparison);
    bytes+= column.bytes;
    put_number(&bytes, with, column.kind);
    return bytes;
  };
  B::list(&source->filter, PANDO_TAG_OR, 3);
  source->filter+= compared(PANDO_COMPARISON_GREATER, limit);
  source->filter+= compared(PANDO_COMPARISON_EQUAL, 0);
  B::byte(&source->filter, PANDO_TAG_IS_NULL);
  source->filter+= column.bytes;
  return true;
}

/* Whether the optimizer may make something else of a part of a condition. */
static bool has_rewritten(Item *condition)
{
  if (condition->type() == Item::COND_ITEM)
  {
    List_iterator_fast<Item> parts(*static_cast<Item_cond *>(condition)->argument_list());
    for (Item *part; (part= parts++); )
      if (has_rewritten(part))
        return true;
    return false;
  }
  return condition->type() == Item::FUNC_ITEM && is_rewritten(static_cast<Item_func *>(condition));
}

bool Select_translator::on(std::vector<Part> *parts)
{
  for (Part &part : *parts)
  {
    if (!on(&part.nest))
      return false;
    if (!part.list->on_expr)
      continue;
    Said said;
    /* Of a row that has no partner, a date that is not NULL is NULL. */
    m_is_optimized= !part.is_outer;
    const bool is_said= (!part.is_outer || !has_rewritten(part.list->on_expr) || refuse("IS NULL of a date in an outer join")) && condition(part.list->on_expr, &said);
    m_is_optimized= false;
    if (!is_said)
      return false;
    part.on= said.bytes;
  }
  return true;
}

bool Select_translator::put_from(const std::vector<Part> &parts, std::string *to)
{
  B::small(to, uint32_t(parts.size()));
  for (const Part &part : parts)
  {
    B::byte(to, part.is_outer);
    B::byte(to, !part.on.empty());
    *to+= part.on;
    if (!part.source)
    {
      B::byte(to, PANDO_SOURCE_TAG_NEST);
      if (!put_from(part.nest, to))
        return false;
    }
    else if (part.source->number < 0)
    {
      B::byte(to, PANDO_SOURCE_TAG_QUERY);
      *to+= part.source->bytes;
    }
    else if (!put_table(*part.source, to))
      return false;
  }
  return true;
}

/* How many different values a column has, as far as the statistics of keys that begin with it tell; 0: they do not. */
static uint64_t distinct_values(const TABLE *table, const Field *field, ha_rows rows)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY *key= &table->key_info[i];
    if (!key->user_defined_key_parts || key->key_part[0].fieldnr - 1 != field->field_index)
      continue;
    if ((key->flags & HA_NOSAME) && key->user_defined_key_parts == 1)
      return rows;
    const double each= key->actual_rec_per_key(0);
    if (each > 0)
      return uint64_t(double(rows) / each);
  }
  return 0;
}

/* A table that stands in a query several times is the same one each time. Of partitions, not the same ones need be read. */
uint32_t Select_translator::first_number(const Source &source) const
{
  for (const Source &other : m_sources)
    if (other.number >= 0 && other.parts == 1 && source.parts == 1 && other.table->s == source.table->s && !source.table->part_info)
      return uint32_t(other.number);
  return uint32_t(source.number);
}

bool Select_translator::put_table(const Source &source, std::string *to)
{
  const ha_rows rows= source.table->file->stats.records;
  Index_layout *primary= handlers_of(source.table).at(0)->primary();
  B::byte(to, PANDO_SOURCE_TAG_TABLE);
  B::small(to, uint32_t(source.number));
  B::small(to, first_number(source));
  B::small(to, source.parts);
  B::large(to, rows);
  B::small(to, uint32_t(source.columns.size()));
  for (const Column &column : source.columns)
  {
    Value_kind kind;
    uint form= 0, precision= 0;
    PandoQueryColumn place= {};
    std::string path;
    if (!kind_of_field(column.field, &kind, &form, &precision) || !column.field->stored_in_db())
      return refuse("the place of a column");
    if (column.is_length)
    {
      kind= Value_kind{Value_kind::SIGNED, 0};
      form= PANDO_FORM_LENGTH;
    }
    place.form= PandoForm(form);
    if (!find_column(source.table, primary, column.field, &place, &path) || (column.is_length && place.position < 0))
      return refuse("the place of a column");
    B::small(to, column.slot);
    B::kind(to, kind);
    B::small(to, uint32_t(place.position));
    B::small(to, place.key_offset);
    B::small(to, place.key_size);
    B::byte(to, place.key_reversed);
    B::small(to, uint32_t(path.size()));
    *to+= path;
    B::byte(to, form);
    B::small(to, precision);
    B::small(to, kind.scale());
    B::large(to, distinct_values(source.table, column.field, rows));
  }
  B::byte(to, !source.filter.empty());
  *to+= source.filter;
  return true;
}

} // namespace pando
