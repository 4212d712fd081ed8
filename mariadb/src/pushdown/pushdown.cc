/* The handler of a query that the engine has answered, and when there is one. */
#include "select_given_back.h"
#include "counted_call.h"
#include "pushdown.h"
#include "variables.h"
#include "filesort.h"

#include <algorithm>

namespace pando {

extern "C" {

static int32_t compare_texts(const void *collation, PandoBytes first, PandoBytes second)
{
  CHARSET_INFO *charset= static_cast<CHARSET_INFO *>(const_cast<void *>(collation));
  return charset->coll->strnncollsp(charset, first.data, first.len, second.data, second.len);
}

static uint8_t is_stopped(const void *thd)
{
  return pando::is_to_end(static_cast<const THD *>(thd));
}

} // extern "C"

Query_owner::Query_owner() : m_query(pando_query_new(compare_texts)) {}

namespace {

class Pushed_query : public group_by_handler
{
public:
  Pushed_query(THD *thd, PandoQuery *query, const Translator &translator)
    : group_by_handler(thd, hton), m_query(query), m_outputs(translator.outputs), m_order(translator.order) {}
  ~Pushed_query() override { pando_query_free(m_query); }

  int init_scan() override;
  int next_row() override;
  int end_scan() override { return 0; }

private:
  bool fits_table() const;
  void fill_record(uint64_t row);
  void store(const Output &output, const PandoCell &cell, Field *to) const;
  bool sort_rows(uint64_t rows);
  void append_key(uint64_t row);
  bool is_before(uint64_t first, uint64_t second);
  int compare_parts(const Field *field, const uchar **first, const uchar **second);

  PandoQuery *m_query;
  const std::vector<Output> m_outputs;
  const std::vector<Order_part> m_order;
  /* What rows are sorted by, packed: rows as the server has them take the full width of every column. */
  Bytes m_keys;
  std::vector<uint64_t> m_key_starts;
  Bytes m_unpacked[2];
  uint m_comparisons= 0;
  bool m_is_ended= false;
  /* In their order; empty where there is none. */
  std::vector<uint64_t> m_sorted;
  uint64_t m_rows= 0, m_next= 0;
};

void to_decimal(const PandoCell &cell, uint scale, my_decimal *decimal)
{
  unsigned __int128 value= (unsigned __int128)(cell.high) << 64 | cell.low;
  const bool negative= cell.high < 0;
  if (negative)
    value= -value;
  char text[64];
  char *at= text + sizeof(text);
  char *const end= at;
  for (uint digits= 0; value || digits <= scale; digits++)
  {
    if (scale && digits == scale)
      *--at= '.';
    *--at= char('0' + uint(value % 10));
    value/= 10;
  }
  if (negative)
    *--at= '-';
  str2my_decimal(E_DEC_FATAL_ERROR, at, size_t(end - at), &my_charset_latin1, decimal);
}

/* Puts a value of a column into the table's own record. */
void to_field(const PandoCell &cell, Field *field)
{
  PandoQueryColumn column= {};
  field->set_notnull();
  switch (class_of(field, &column))
  {
  case Column_class::TEXT:
    field->store(reinterpret_cast<const char *>(cell.text.data), cell.text.len, field->charset());
    return;
  case Column_class::DATETIME:
  case Column_class::TIME:
    for (uint i= 0, size= field->pack_length(); i < size; i++)
      field->ptr[i]= uchar(cell.low >> (8 * (size - 1 - i)));
    return;
  default:
    break;
  }
  if (column.form == PANDO_FORM_DECIMAL)
  {
    my_decimal decimal;
    to_decimal(cell, column.scale, &decimal);
    field->store_decimal(&decimal);
    return;
  }
  const uint64_t value= column.form == PANDO_FORM_YEAR && cell.low ? cell.low - 1900 : cell.low;
  for (uint i= 0; i < field->pack_length(); i++)
    field->ptr[i]= uchar(value >> (8 * i));
}

} // namespace

void Pushed_query::store(const Output &output, const PandoCell &cell, Field *to) const
{
  if (cell.is_null)
  {
    to->set_null();
    return;
  }
  to->set_notnull();
  my_decimal decimal, count, average;
  switch (output.kind)
  {
  case Output::COUNT:
    to->store(longlong(cell.low), true);
    return;
  case Output::VALUE:
    if (output.source)
    {
      to_field(cell, output.source);
      field_conv(to, output.source);
    }
    else if (output.item->result_type() == INT_RESULT)
      to->store(longlong(cell.low), output.item->unsigned_flag);
    else
    {
      to_decimal(cell, output.scale, &decimal);
      to->store_decimal(&decimal);
    }
    return;
  case Output::SUM:
    to_decimal(cell, output.scale, &decimal);
    to->store_decimal(&decimal);
    return;
  case Output::AVERAGE:
    to_decimal(cell, output.scale, &decimal);
    int2my_decimal(E_DEC_FATAL_ERROR, longlong(cell.count), true, &count);
    my_decimal_div(E_DEC_FATAL_ERROR, &average, &decimal, &count,
                   int(static_cast<Item_sum_avg *>(output.item)->prec_increment));
    to->store_decimal(&average);
    return;
  }
}

/* The column that an expression thinks it is kept in. A cursor of the protocol makes a table of its own from the same expressions meanwhile, whose
   columns are those then. */
static bool is_kept_in(Item *item, const Field *field)
{
  const Field *known= item->get_tmp_table_field();
  return known == field || (known && known->table != field->table && known->type_handler() == field->type_handler() &&
                            known->pack_length() == field->pack_length());
}

/* The temporary table has a column for each output, in order. */
bool Pushed_query::fits_table() const
{
  if (table->s->fields != m_outputs.size() || table->s->blob_fields)
    return false;
  for (uint i= 0; i < table->s->fields; i++)
    if (!is_kept_in(m_outputs[i].item, table->field[i]))
      return false;
  return true;
}

void Pushed_query::fill_record(uint64_t row)
{
  restore_record(table, s->default_values);
  for (uint i= 0; i < m_outputs.size(); i++)
    store(m_outputs[i], pando_query_cell(m_query, row, m_outputs[i].cell), table->field[i]);
}

static constexpr uchar KEY_NULL= 0, KEY_VALUE= 1;

/* Compares two values of a column, and steps behind them. */
int Pushed_query::compare_parts(const Field *field, const uchar **first, const uchar **second)
{
  const uchar is_value_1= *(*first)++, is_value_2= *(*second)++;
  const uchar **ends[]= {first, second};
  const bool is_value[]= {is_value_1 == KEY_VALUE, is_value_2 == KEY_VALUE};
  for (uint i= 0; i < 2; i++)
  {
    if (!is_value[i])
      continue;
    m_unpacked[i].clear();
    uchar *to= m_unpacked[i].extend(field->pack_length());
    *ends[i]= const_cast<Field *>(field)->unpack(to, *ends[i], m_keys.data() + m_keys.size(), 0);
  }
  if (!is_value[0] || !is_value[1])
    return int(is_value[0]) - int(is_value[1]);
  return field->cmp(m_unpacked[0].data(), m_unpacked[1].data());
}

bool Pushed_query::is_before(uint64_t first, uint64_t second)
{
  static constexpr uint COMPARISONS_UNASKED= 1 << 12;
  if (++m_comparisons % COMPARISONS_UNASKED == 0)
    m_is_ended|= is_to_end(thd);
  /* Then the rest of the sort is quick. */
  if (m_is_ended)
    return false;
  const uchar *key_1= m_keys.data() + m_key_starts[first], *key_2= m_keys.data() + m_key_starts[second];
  for (const Order_part &part : m_order)
    if (int order= compare_parts(table->field[part.output], &key_1, &key_2))
      return part.descending ? order > 0 : order < 0;
  return false;
}

/* Of the row in the record. */
void Pushed_query::append_key(uint64_t row)
{
  fill_record(row);
  m_key_starts.push_back(m_keys.size());
  for (const Order_part &part : m_order)
  {
    Field *field= table->field[part.output];
    m_keys.append_byte(field->is_null() ? KEY_NULL : KEY_VALUE);
    if (field->is_null())
      continue;
    /* What packs may need more than the field: a length. */
    const uint PACK_BYTES_MORE= 8;
    uchar *to= m_keys.reserve(field->pack_length() + PACK_BYTES_MORE);
    m_keys.grown(size_t(field->pack(to, field->ptr, UINT_MAX) - to));
  }
}

/* False: the statement was ended. */
bool Pushed_query::sort_rows(uint64_t rows)
{
  static constexpr uint64_t ROWS_UNASKED= 1 << 10;
  m_keys.clear();
  m_key_starts.clear();
  m_sorted.clear();
  m_key_starts.reserve(rows);
  m_sorted.reserve(rows);
  for (uint64_t row= 0; row < rows; row++)
  {
    if (row % ROWS_UNASKED == 0 && is_to_end(thd))
      return false;
    append_key(row);
    m_sorted.push_back(row);
  }
  std::stable_sort(m_sorted.begin(), m_sorted.end(),
                   [this](uint64_t first, uint64_t second) { return is_before(first, second); });
  return !m_is_ended;
}

int Pushed_query::init_scan()
{
  if (!fits_table())
  {
    sql_print_error("PANDO: the temporary table of a query is not as it was expected");
    return HA_ERR_INTERNAL_ERROR;
  }
  m_rows= pando_query_rows(m_query);
  m_next= 0;
  m_is_ended= false;
  if (!m_order.empty() && !sort_rows(m_rows))
  {
    /* What the server says of the number is not what it says of a KILL. */
    thd->send_kill_message();
    return HA_ERR_ABORTED_BY_USER;
  }
  return 0;
}

int Pushed_query::next_row()
{
  if (m_next == m_rows)
    return HA_ERR_END_OF_FILE;
  if (m_next)
    thd->get_stmt_da()->inc_current_row_for_warning();
  /* Rounded as the server's own temporary table has it: nothing is lost that a statement which stores it should tell of. */
  Check_level_instant_set no_notes(thd, CHECK_FIELD_IGNORE);
  fill_record(m_sorted.empty() ? m_next : m_sorted[m_next]);
  m_next++;
  return 0;
}

/* False: not this one. EXPLAIN wants no answer. */
static bool answer(THD *thd, PandoQuery *query, const std::vector<TABLE *> &tables)
{
  std::vector<const PandoTable *> engine_tables;
  for (const TABLE *table : tables)
    engine_tables.push_back(static_cast<ha_pando *>(table->file)->engine_table());
  if (thd->lex->describe)
    return pando_query_is_answerable(query, engine_tables.data(), engine_tables.size());
  const PandoStatus status= static_cast<ha_pando *>(tables[0]->file)
                              ->answer(query, engine_tables.data(), engine_tables.size(), pushdown_memory_of(thd));
  /* The server answers it then. */
  if (status == PANDO_STATUS_BUG)
    warn_of_error(thd);
  return status == PANDO_STATUS_OK;
}

/* Digits before the point that a sum or an average has, beyond those that its column of the temporary table can keep. The
   server's own plans keep the sum apart and do not cut: AVG(IF(a, NULL, b > 0)) has type DECIMAL(4,4), and is 1.0000. */
static bool is_too_wide(const Output &output, const PandoCell &cell)
{
  const uint precision= output.item->decimal_precision(), digits= precision - std::min<uint>(precision, output.item->decimals);
  __int128 value= (__int128)((unsigned __int128)(cell.high) << 64 | cell.low);
  for (uint i= 0; i < output.scale; i++)
    value/= 10;
  if (output.kind == Output::AVERAGE && cell.count)
    value/= cell.count;
  for (uint i= 0; i < digits && value; i++)
    value/= 10;
  return value != 0;
}

/* Whether a value is shown alike whatever the server's plan. The least or largest YEAR, when it is 0, is 0 or 0000. */
static bool is_shown_alike(const Output &output, const PandoCell &cell)
{
  if (cell.is_null)
    return true;
  if (output.kind == Output::SUM || output.kind == Output::AVERAGE)
    return !is_too_wide(output, cell);
  const bool is_year= output.kind == Output::VALUE && output.item->type() == Item::SUM_FUNC_ITEM && output.source &&
                      output.source->real_type() == MYSQL_TYPE_YEAR;
  return !is_year || cell.low;
}

static bool is_shown_alike(const PandoQuery *query, const std::vector<Output> &outputs)
{
  for (uint64_t row= 0, rows= pando_query_rows(query); row < rows; row++)
    for (const Output &output : outputs)
      if (output.kind != Output::COUNT && !is_shown_alike(output, pando_query_cell(query, row, output.cell)))
        return false;
  return true;
}

/* Of groups of dates that may not be stored now the server makes one: see Select_translator::hold_group. */
static bool may_merge_dates(THD *thd, const ::Query *query)
{
  if (!(thd->variables.sql_mode & (MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE)))
    return false;
  for (const ORDER *group= query->group_by; group; group= group->next)
    if ((*group->item)->cmp_type() == TIME_RESULT)
      return true;
  List_iterator_fast<Item> items(*query->select);
  for (Item *item; (item= items++); )
  {
    Item *real= item->real_item();
    if (query->distinct && real->cmp_type() == TIME_RESULT)
      return true;
    const Item_sum *sum= real->type() == Item::SUM_FUNC_ITEM ? static_cast<Item_sum *>(real) : nullptr;
    const bool keeps= sum && (sum->has_with_distinct() || sum->sum_func() == Item_sum::MIN_FUNC || sum->sum_func() == Item_sum::MAX_FUNC);
    if (keeps && sum->get_arg(0)->cmp_type() == TIME_RESULT)
      return true;
  }
  return false;
}

group_by_handler *create_pushdown(THD *thd, ::Query *query)
{
  if (!pushdown_of(thd) || may_merge_dates(thd, query))
    return nullptr;
  const std::vector<TABLE *> tables= tables_of(thd, query);
  /* However few columns it has: said before they are known, as most statements are about few rows. */
  if (tables.empty() || query->from->select_lex->limit_params.with_ties || has_literal_that_may_be_null(thd->lex) || is_better_done_by_server(query, tables, 0, 0))
    return nullptr;
  Query_owner owner;
  Translator translator(thd, tables, owner.get());
  if (!translator.translate(query, query->from->select_lex->join) || thd->is_error() ||
      is_better_done_by_server(query, tables, translator.columns(), translator.texts()))
    return nullptr;
  const uint64_t number= thd->lex->describe ? 0 : number_of_groups(thd, query->from->select_lex);
  if (number && given_back_lately(number))
    return nullptr;
  const ulonglong begun= my_interval_timer();
  if (!answer(thd, owner.get(), tables) || !is_shown_alike(owner.get(), translator.outputs))
  {
    if (number && !thd->killed)
      note_given_back(number, "groups", my_interval_timer() - begun);
    return nullptr;
  }
  group_by_handler *pushed= new Pushed_query(thd, owner.release(), translator);
  query->group_by= nullptr;
  query->order_by= nullptr;
  return pushed;
}

} // namespace pando

using namespace pando;

bool ha_pando::may_answer_queries() const
{
  return !is_locking() && read_mode() == PANDO_READ_SNAPSHOT && !is_sequence() && m_table;
}

/* Locking reads for which all rows stay locked: they can be locked at once. */
bool ha_pando::may_answer_with_locks() const
{
  return may_lock_ahead() && !m_skip_locked && !is_sequence() && m_table;
}

PandoStatus ha_pando::answer(PandoQuery *query, const PandoTable *const *tables, size_t count, uint64_t memory_bytes)
{
  Counted_call counted(handler_stats);
  return pando_query_run(query, txn(), tables, count, read_mode(), memory_bytes, is_stopped, ha_thd());
}
