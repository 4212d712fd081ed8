/* The handler of a SELECT that the engine has answered whole. */
#include "select_again.h"
#include "select_given_back.h"
#include "select_translate.h"
#include "select_cost.h"
#include "select_derived.h"
#include "select_jumps.h"
#include "select_prune.h"
#include "select_report.h"
#include "select_explain.h"
#include "transaction.h"
#include "counted_call.h"
#include "select_handler.h"
#include "sql_time.h"
#include "text_order.h"
#include "compat56.h"
#include "variables.h"

#include <memory>

namespace pando {

extern "C" {

/* Of each thread; the collations of a server are few. */
static uint64_t key_of_text(const void *collation, PandoBytes text, uint8_t *to, uint64_t room)
{
  static thread_local std::map<const void *, Text_order> orders;
  static thread_local Bytes bytes;
  const auto known= orders.try_emplace(collation);
  if (!collation)
  {
    if (text.len <= room && text.len)
      memcpy(to, text.data, text.len);
    return text.len;
  }
  if (known.second)
    known.first->second.init(static_cast<CHARSET_INFO *>(const_cast<void *>(collation)));
  bytes.clear();
  known.first->second.encode(&bytes, text.data, text.len);
  if (bytes.size() <= room)
    memcpy(to, bytes.data(), bytes.size());
  return bytes.size();
}

static PandoTextOrder order_of_texts(const void *collation)
{
  if (!collation)
    return PANDO_TEXT_ORDER_BYTES;
  Text_order order;
  order.init(static_cast<CHARSET_INFO *>(const_cast<void *>(collation)));
  return !order.orders_bytes() ? PANDO_TEXT_ORDER_KEYS : order.drops_spaces() ? PANDO_TEXT_ORDER_PADDED : PANDO_TEXT_ORDER_BYTES;
}

static uint8_t test_text(const void *context, PandoBytes text)
{
  return static_cast<const Text_test *>(context)->passes(text.data, text.len);
}

static uint64_t change_text(const void *context, PandoBytes text, uint8_t *to, uint64_t room)
{
  return static_cast<const Text_change *>(context)->apply(text.data, text.len, to, room);
}

static int64_t floor_of_moment(const void *context, int64_t moment)
{
  return static_cast<const Moment_floor *>(context)->of(moment);
}

static int64_t measure_text(const void *context, PandoBytes text)
{
  return static_cast<const Text_measure *>(context)->of(text.data, text.len);
}

static PandoServerOutcome server_values(const void *context, uint32_t number, PandoHearing hearing, const PandoServerColumn *columns,
                                        size_t count, uint64_t rows, PandoServerColumn *result)
{
  const Select_translator *translator= static_cast<const Select_translator *>(context);
  if (number >= translator->served_expressions.size())
    return PANDO_SERVER_OUTCOME_GIVEN_BACK;
  return translator->served_expressions[number]->values(hearing, columns, count, rows, result);
}

static uint8_t is_select_stopped(const void *thd)
{
  return pando::is_to_end(static_cast<const THD *>(thd));
}

} // extern "C"

namespace {

/* Shown as the column of the SELECT, with the value of the temporary table's; but a text that is computed may be longer than the server thinks, and
   its column cuts it. */
class Item_of_answer : public Item_field
{
public:
  Item_of_answer(THD *thd, Field *field, Item *shown) : Item_field(thd, field), m_shown(shown) {}
  /* The text is there until the next row. */
  void show(const PandoBytes &text, CHARSET_INFO *charset)
  {
    m_text.set(reinterpret_cast<const char *>(text.data), text.len, charset);
    m_is_text= true;
  }
  String *val_str(String *to) override
  {
    if (!m_is_text || field->is_null())
      return Item_field::val_str(to);
    null_value= false;
    return &m_text;
  }
  /* As a variable is set. */
  String *str_result(String *to) override { return m_is_text && !field->is_null() ? val_str(to) : Item_field::str_result(to); }
  bool send(Protocol *protocol, st_value *buffer) override
  {
    if (!m_is_text || field->is_null())
      return Item_field::send(protocol, buffer);
    return protocol->store(m_text.ptr(), m_text.length(), m_text.charset());
  }
  int save_in_field(Field *to, bool no_conversions) override
  {
    if (!m_is_text || field->is_null())
      return Item_field::save_in_field(to, no_conversions);
    to->set_notnull();
    return to->store(m_text.ptr(), m_text.length(), m_text.charset());
  }
  void make_send_field(THD *thd, Send_field *to) override
  {
    Item_field::make_send_field(thd, to);
    const Type_handler *handler= to->type_handler();
    m_shown->make_send_field(thd, to);
    /* Texts are sent in one way, whatever they are. */
    if (!(is_text(handler) && is_text(to->type_handler())))
      to->set_handler(handler);
  }

private:
  static bool is_text(const Type_handler *handler)
  {
    switch (handler->field_type())
    {
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_VAR_STRING:
      return true;
    case MYSQL_TYPE_STRING:
      return handler == &type_handler_string || handler == &type_handler_var_string;
    default:
      return false;
    }
  }

  Item *m_shown;
  String m_text;
  bool m_is_text= false;
};

struct Free_query
{
  void operator()(PandoAnalytic *query) const { pando_analytic_free(query); }
};
using Owned_query= std::unique_ptr<PandoAnalytic, Free_query>;

class Pushed_select : public select_handler
{
public:
  Pushed_select(THD *thd, SELECT_LEX *select_lex, std::unique_ptr<Select_translator> translator, Owned_query query)
#ifdef PANDO_SERVER_11_8
    : select_handler(thd, hton, select_lex), m_select(select_lex), m_translator(std::move(translator)), m_query(std::move(query))
  {
  }
#else
    : select_handler(thd, hton), m_select(select_lex), m_translator(std::move(translator)), m_query(std::move(query))
  {
    select= select_lex;
  }
#endif
  /* The server has described the SELECT by now, and not shown it yet. */
  ~Pushed_select() override
  {
    if (is_plan_shown(thd))
      show_plan(thd, m_select, lines_of_plan(m_query.get(), *m_translator));
  }

protected:
  bool prepare() override;
  int init_scan() override;
  int next_row() override;
  int end_scan() override { return 0; }

private:
  void store(const Value_kind &kind, const PandoAnalyticCell &cell, Item *item, Field *to);

  SELECT_LEX *m_select;
  std::unique_ptr<Select_translator> m_translator;
  Owned_query m_query;
  uint64_t m_next= 0, m_rows= 0;
  std::vector<Item_of_answer *> m_shown;
};

bool Pushed_select::prepare()
{
  if (select_handler::prepare())
    return true;
  List<Item> shown;
  List_iterator_fast<Item> items(m_select->item_list);
  for (uint i= 0; i < table->s->fields; i++)
  {
    Item *item= items++;
    if (!item)
      return true;
    const Item *of= item->real_item();
    if (of->type() == Item::FIELD_ITEM && (static_cast<const Item_field *>(of)->field->flags & ZEROFILL_FLAG) &&
        (table->field[i]->flags & ZEROFILL_FLAG) == 0 && dynamic_cast<Field_num *>(table->field[i]))
    {
      static_cast<Field_num *>(table->field[i])->zerofill= true;
      table->field[i]->flags|= ZEROFILL_FLAG;
      table->field[i]->field_length= static_cast<const Item_field *>(of)->field->field_length;
    }
    if (is_filled_extreme(item) && m_select->group_list.elements == 0)
    {
      static_cast<Field_num *>(table->field[i])->zerofill= false;
      table->field[i]->flags&= ~ZEROFILL_FLAG;
    }
    /* A difference of unsigned DECIMALs may be less than 0. */
    if (item->cmp_type() == DECIMAL_RESULT && item->unsigned_flag && of->type() != Item::FIELD_ITEM && !is_stored_by_statement(thd))
    {
      static_cast<Field_num *>(table->field[i])->unsigned_flag= false;
      table->field[i]->flags&= ~UNSIGNED_FLAG;
    }
    Item_of_answer *column= new (thd->mem_root) Item_of_answer(thd, table->field[i], item);
    m_shown.push_back(column);
    if (!column || shown.push_back(column, thd->mem_root))
      return true;
  }
  result_columns= shown;
  return false;
}

static void count_examined(THD *thd, ha_rows rows)
{
#ifdef PANDO_SERVER_11_8
  /* inc_examined_row_count(rows) counts one, whatever `rows` is. */
  if (!rows)
    return;
  thd->inc_examined_row_count_fast(rows - 1);
  thd->inc_examined_row_count();
#else
  thd->inc_examined_row_count(rows);
#endif
}

int Pushed_select::init_scan()
{
  m_rows= m_query ? pando_analytic_rows(m_query.get()) : 0;
  m_next= 0;
  if (m_query)
    count_examined(thd, ha_rows(pando_analytic_rows_met(m_query.get())));
  if (table->s->fields != m_translator->outputs.size())
  {
    sql_print_error("PANDO: the temporary table of a query is not as it was expected");
    return HA_ERR_INTERNAL_ERROR;
  }
  return 0;
}

void Pushed_select::store(const Value_kind &kind, const PandoAnalyticCell &cell, Item *item, Field *to)
{
  if (cell.form == PANDO_ANALYTIC_FORM_NULL)
  {
    to->set_null();
    to->reset();
    return;
  }
  to->set_notnull();
  if (kind.is_opaque())
  {
    Column codec;
    codec.init(to->table, to);
    if (kind.tag == Value_kind::RAW && to->real_type() == MYSQL_TYPE_VARCHAR)
    {
      /* BINARY, which is stored without the zeros at its end. */
      std::string bytes(reinterpret_cast<const char *>(cell.text.data), cell.text.len);
      bytes.resize(std::max(bytes.size(), size_t(item->max_length)), '\0');
      to->store(bytes.data(), bytes.size(), &my_charset_bin);
    }
    else
      (void) put_value(to, codec, kind, cell);
    return;
  }
  switch (kind.tag)
  {
  case Value_kind::SIGNED:
  case Value_kind::UNSIGNED:
    to->store(longlong(cell.low), kind.tag == Value_kind::UNSIGNED || item->unsigned_flag);
    return;
  case Value_kind::DECIMAL:
  {
    my_decimal decimal;
    to_decimal(cell, &decimal);
    to->store_decimal(&decimal);
    return;
  }
  case Value_kind::REAL:
    /* As it is: with fewer digits it is shown, and not kept. */
    if (to->real_type() == MYSQL_TYPE_DOUBLE)
      float8store(to->ptr, cell.real);
    else
      to->store(cell.real);
    return;
  case Value_kind::DATE:
  case Value_kind::DATETIME:
  case Value_kind::TIME:
  {
    MYSQL_TIME time;
    to_time(kind, cell.low, &time);
    to->store_time_dec(&time, to->decimals());
    return;
  }
  default:
    to->store(reinterpret_cast<const char *>(cell.text.data), cell.text.len, item->collation.collation);
    return;
  }
}

/* The rows of the OFFSET: FOUND_ROWS() counts them. */
static uint64_t rows_skipped(SELECT_LEX *select)
{
  Item *offset= select->master_unit()->global_parameters()->limit_params.offset_limit;
  return offset ? offset->val_uint() : 0;
}

int Pushed_select::next_row()
{
  if (m_next == m_rows)
  {
    thd->limit_found_rows= m_rows  ? m_rows + rows_skipped(m_select) :
                           m_query ? pando_analytic_rows_skipped(m_query.get()) :
                                     0;
    return HA_ERR_END_OF_FILE;
  }
  /* Who stores the row tells of what it cuts with the row's number; what is rounded here, is rounded as ever. */
  if (m_next)
    thd->get_stmt_da()->inc_current_row_for_warning();
  if (pando_analytic_go_to(m_query.get(), m_next) != PANDO_STATUS_OK)
    return EIO;
  Check_level_instant_set no_notes(thd, CHECK_FIELD_IGNORE);
  /* Dates are shown as they are, whatever may be stored now. */
  Sql_mode_instant_set all_dates(thd, (thd->variables.sql_mode | MODE_INVALID_DATES) & ~(MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE));
  List_iterator_fast<Item> items(m_select->item_list);
  for (uint i= 0; i < table->s->fields; i++)
  {
    Item *item= items++;
    const PandoAnalyticCell cell= pando_analytic_cell(m_query.get(), m_next, i);
    store(m_translator->outputs[i], cell, item, table->field[i]);
    if (m_translator->outputs[i].tag == Value_kind::TEXT && cell.form != PANDO_ANALYTIC_FORM_NULL && item->real_item()->type() != Item::FIELD_ITEM)
      m_shown[i]->show(cell.text, item->collation.collation);
  }
  m_next++;
  return 0;
}

} // namespace

static select_handler *decline(THD *thd, const std::string &reason)
{
  note_declined(reason);
  show_declined(thd, reason);
  return nullptr;
}

/* It has no shape for the engine: that is told, and not counted, as such SELECTs may be many and quick. */
static select_handler *pass_by(THD *thd, const char *reason)
{
  if (is_plan_shown(thd))
    show_declined(thd, reason);
  return nullptr;
}

/* Whether the conditions of the SELECT were met by a row: by all that is shown, or, of one group, by as many as are counted. */
static bool has_rows(PandoAnalytic *query, const Select_translator &translator)
{
  if (!pando_analytic_rows(query) || pando_analytic_go_to(query, 0) != PANDO_STATUS_OK)
    return false;
  return !translator.is_counted || pando_analytic_cell(query, 0, translator.outputs.size()).low;
}

/* Whether a DECIMAL has more digits before the point than its column of the temporary table can keep: those of choices and of what is
   computed of them the server does not know, and its own plans do not cut them (`IF(a, NULL, 2) / 2` has type DECIMAL(4,4)). */
static bool is_too_wide(const PandoAnalyticCell &cell, const Item *item)
{
  const uint precision= item->decimal_precision(), digits= precision - std::min<uint>(precision, item->decimals);
  __int128 value= (__int128)((unsigned __int128)(cell.high) << 64 | cell.low);
  for (uint i= 0; i < cell.scale + digits && value; i++)
    value/= 10;
  return value != 0;
}

static bool holds_answer(SELECT_LEX *select, const Select_translator &translator, PandoAnalytic *query)
{
  const uint64_t rows= pando_analytic_rows(query);
  List_iterator_fast<Item> items(select->item_list);
  std::vector<std::pair<uint, const Item *>> asked;
  uint at= 0;
  for (Item *item; (item= items++); at++)
    if (translator.outputs[at].tag == Value_kind::DECIMAL && item->real_item()->type() != Item::FIELD_ITEM)
      asked.emplace_back(at, item);
  if (asked.empty())
    return true;
  /* Row by row: they may be in a file. */
  for (uint64_t row= 0; row < rows; row++)
  {
    if (pando_analytic_go_to(query, row) != PANDO_STATUS_OK)
      return false;
    for (const auto &of : asked)
    {
      const PandoAnalyticCell cell= pando_analytic_cell(query, row, of.first);
      if (cell.form != PANDO_ANALYTIC_FORM_NULL && is_too_wide(cell, of.second))
        return false;
    }
  }
  return true;
}

static select_handler *leave(THD *thd, Left_by_cost why)
{
  note_left_by_cost(why);
  show_declined(thd, name_of(why));
  return nullptr;
}

static Owned_query query_of(Select_translator *translator)
{
  PandoAnalyticTexts texts= {};
  texts.key= key_of_text;
  std::vector<PandoTextOrder> orders;
  for (const void *collation : translator->collations)
    orders.push_back(order_of_texts(collation));
  texts.collations= translator->collations.data();
  texts.collation_orders= orders.data();
  texts.collation_count= translator->collations.size();
  texts.test= test_text;
  texts.tests= translator->tests.data();
  texts.test_count= translator->tests.size();
  texts.change= change_text;
  texts.changes= translator->changes.data();
  texts.change_count= translator->changes.size();
  texts.floor= floor_of_moment;
  texts.floors= translator->floors.data();
  texts.floor_count= translator->floors.size();
  texts.measure= measure_text;
  texts.measures= translator->measures.data();
  texts.measure_count= translator->measures.size();
  texts.server= server_values;
  texts.server_context= translator;
  const std::string &bytes= translator->bytes();
  return Owned_query(pando_analytic_new(PandoBytes{reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, &texts));
}

/* What was in the way of an answer that the server would give, too; null: nothing. */
static const char *obstacle_to_answer(SELECT_LEX *select, const Select_translator &translator, PandoAnalytic *query, PandoStatus status,
                                      PandoAnalyticWhy why)
{
  static const char *const WHYS[]= {"", "what its rows are", "memory", "a number that is too large",
    "rows that an order leaves equal, or texts that are equal and not the same", "KILL or a time limit", "a NULL that leaves NOT IN open",
    "a query as a value that has several rows", "an expression that warns", "digits that depend on the plan of the server",
    "a temporary file", "pairs of many rows of which few are wanted"};
  if (status != PANDO_STATUS_OK)
    return WHYS[why];
  if (is_of_rows(select) && pando_analytic_rows(query) > ROWS_AS_THEY_COME_MAX)
    return "many rows as they come";
  const uint64_t leaves_all= limit_that_leaves_all(select);
  if (leaves_all && pando_analytic_rows(query) > leaves_all)
    return "a LIMIT without an order";
  if (!holds_answer(select, translator, query))
    return "a value that its type does not hold";
  if (!translator.warnings.empty() && !has_rows(query, translator))
    return "a constant that warns";
  if (!are_warnings_sure(translator.served_expressions, translator.tables.size()))
    return "rows that warn or not by the plan of the server";
  return nullptr;
}

/* Lets the engine answer. False: it is the server's query. */
static bool run_query(THD *thd, SELECT_LEX *select, Select_translator *translator, PandoAnalytic *query,
                      const std::vector<const PandoTable *> &tables)
{
  PandoAnalyticWhy why= PANDO_ANALYTIC_WHY_ANSWERED;
  const uint64_t number= number_of_query(translator->all_that_is_said(select), tables, pushdown_memory_of(thd));
  if (const char *reason= given_back_lately(number))
  {
    note_groups_of(thd, select, number);
    decline(thd, reason);
    return false;
  }
  const ulonglong begun= my_interval_timer();
  const auto answer= [&] {
    return translator->handlers[0]->answer(query, tables.data(), tables.size(), pushdown_memory_of(thd), &why);
  };
  PandoStatus status= answer();
  if (status != PANDO_STATUS_OK && why == PANDO_ANALYTIC_WHY_TOLD && !thd->killed && pando_analytic_ask_all(query))
  {
    for (const auto &expression : translator->served_expressions)
      expression->heard.forget_rows();
    status= answer();
  }
  if (status == PANDO_STATUS_BUG)
    warn_of_error(thd);
  if (const char *obstacle= obstacle_to_answer(select, *translator, query, status, why))
  {
    tell_kept_warnings(thd, translator->served_expressions);
    if (!thd->killed && !thd->is_error())
      note_given_back(number, obstacle, my_interval_timer() - begun);
    note_groups_of(thd, select, number);
    decline(thd, obstacle);
    return false;
  }
  note_answered(number);
  tell_warnings(thd, translator->served_expressions);
  for (const Select_translator::Warning &warning : translator->warnings)
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, warning.code, warning.text.c_str());
  if (Transaction *transaction= Transaction::if_any(thd))
    transaction->last_plan= lines_of_plan(query, *translator);
  return true;
}

/* As the server tells of a plan that begins with all rows of a table: for the slow log, Select_scan, and clients. */
static void tell_of_scan(THD *thd, const Select_cost &cost)
{
  if (!cost.ranges.empty())
    return;
  thd->set_status_no_index_used();
  thd->inc_status_select_scan();
  thd->query_plan_flags|= QPLAN_FULL_SCAN;
}

static select_handler *answer_select(THD *thd, SELECT_LEX *select)
{
  const char *reason= nullptr;
  if (!pushdown_of(thd))
    return nullptr;
  if (is_first_for_server(thd, select))
    return pass_by(thd, "a prepared statement that the server changes when it first runs");
  if (!is_select_for_engine(thd, select, &reason))
    return pass_by(thd, reason);
  const Pruned_partitions partitions(thd, select);
  const Select_cost cost= cost_of_select(thd, select);
  const bool is_for_server= !may_lose_rows_by_jumps(select) && !may_cut_each_group(thd);
  if (is_for_server && cost.server < cost.engine)
    return leave(thd, Left_by_cost::KEYS);
  std::unique_ptr<Select_translator> translator(new Select_translator(thd));
  const bool is_said= translator->translate(select);
  if (!is_said || thd->is_error())
    return decline(thd, translator->reason);
  if (translator->tables.empty())
    return decline(thd, "a SELECT without tables");
  if (is_for_server && is_select_better_done_by_keys(thd, select, cost, *translator))
    return leave(thd, Left_by_cost::FEW_ROWS);
  Owned_query query= query_of(translator.get());
  PandoBytes why_not= {};
  if (!query || !pando_analytic_is_answerable(query.get(), &why_not))
    return decline(thd, query ? std::string(reinterpret_cast<const char *>(why_not.data), why_not.len) : "a plan");
  std::vector<const PandoTable *> engine_tables;
  for (const ha_pando *handler : translator->handlers)
    engine_tables.push_back(handler->engine_table());
  if (thd->lex->describe)
  {
    const uint64_t number= number_of_query(translator->all_that_is_said(select), engine_tables, pushdown_memory_of(thd));
    if (const char *left= given_back_lately(number, false))
      return decline(thd, left);
    if (translator->handlers[0]->explain(query.get(), engine_tables.data(), engine_tables.size()) != PANDO_STATUS_OK)
      return decline(thd, "a plan");
  }
  else if (!run_query(thd, select, translator.get(), query.get(), engine_tables))
    return nullptr;
  else
    tell_of_scan(thd, cost);
  return new Pushed_select(thd, select, std::move(translator), std::move(query));
}

static select_handler *answer_or_leave(THD *thd, SELECT_LEX *select)
{
  select_handler *answer= answer_select(thd, select);
  if (!answer)
    keep_columns_for_joins(thd, select);
  return answer;
}

#ifdef PANDO_SERVER_11_8
/* This server asks for each table of the SELECT until one is answered for, and for each SELECT of a UNION. */
select_handler *create_select_pushdown(THD *thd, SELECT_LEX *select, SELECT_LEX_UNIT *unit)
{
  static thread_local std::pair<query_id_t, const SELECT_LEX *> refused;
  const std::pair<query_id_t, const SELECT_LEX *> asked(thd->query_id, select);
  if (unit || refused == asked)
    return nullptr;
  select_handler *answer= answer_or_leave(thd, select);
  if (!answer)
    refused= asked;
  return answer;
}
#else
select_handler *create_select_pushdown(THD *thd, SELECT_LEX *select) { return answer_or_leave(thd, select); }
#endif

} // namespace pando

using namespace pando;

PandoStatus ha_pando::explain(PandoAnalytic *query, const PandoTable *const *tables, size_t count)
{
  Counted_call counted(handler_stats);
  return pando_analytic_explain(query, txn(), tables, count, is_select_stopped, ha_thd());
}

PandoStatus ha_pando::answer(PandoAnalytic *query, const PandoTable *const *tables, size_t count, uint64_t memory_bytes,
                             PandoAnalyticWhy *why)
{
  Counted_call counted(handler_stats);
  const char *dir= mysql_tmpdir;
  const PandoBytes tmp_dir= {reinterpret_cast<const uint8_t *>(dir), dir ? strlen(dir) : 0};
  return pando_analytic_run(query, txn(), tables, count, memory_bytes, tmp_dir, is_select_stopped, ha_thd(), why);
}
