#include "select_explain.h"
#include "sql_class.h"
#include "sql_lex.h"
#include "sql_select.h"
#include "sql_explain.h"
#include "my_json_writer.h"

namespace pando {

namespace {

/* The columns between an operator's table and its rows: partitions (where they are shown), type, possible_keys, key, key_len, ref. */
const uint COLUMNS_OF_ACCESS= 4;

/*
  Each operator is a row, from the last one down to the scans, and says in Extra what it does, further to the right than the one that
  its rows go to. In JSON, each has its inputs within it.
*/
class Explain_pushed : public Explain_select
{
public:
  Explain_pushed(MEM_ROOT *root, const Explain_select &server_s, std::vector<Plan_line> &&lines)
    : Explain_select(root, false), m_lines(std::move(lines))
  {
    select_id= server_s.select_id;
    select_type= server_s.select_type;
    linkage= server_s.linkage;
    connection_type= server_s.connection_type;
    cache_tracker= server_s.cache_tracker;
    subq_materialization= server_s.subq_materialization;
    join_tabs= nullptr;
    n_join_tabs= 0;
  }

  int print_explain(Explain_query *, select_result_sink *output, uint8 flags, bool is_analyze) override;
  void print_explain_json(Explain_query *query, Json_writer *writer, bool is_analyze) override;

private:
  std::string text_of(const Plan_line &line) const;
  void write_operator(Json_writer *writer, size_t number, bool is_analyze) const;

  std::vector<Plan_line> m_lines;
};

std::string Explain_pushed::text_of(const Plan_line &line) const
{
  std::string text;
  for (int above= line.parent; above >= 0; above= m_lines[above].parent)
    text+= "  ";
  text+= line.name;
  if (!line.what.empty())
    text+= ": " + line.what;
  return text;
}

Item *text_item(THD *thd, const std::string &text)
{
  const char *copy= thd->strmake(text.data(), text.size());
  return copy ? new (thd->mem_root) Item_string(thd, copy, uint(text.size()), system_charset_info) : nullptr;
}

int Explain_pushed::print_explain(Explain_query *, select_result_sink *output, uint8 flags, bool is_analyze)
{
  THD *thd= output->thd;
  MEM_ROOT *root= thd->mem_root;
  for (const Plan_line &line : m_lines)
  {
    List<Item> items;
    Item *null= new (root) Item_null(thd);
    const auto add= [&](Item *item) { return !item || items.push_back(item, root); };
    bool is_full= !null || add(new (root) Item_int(thd, int32(select_id))) || add(text_item(thd, select_type)) ||
                  add(line.table.empty() ? null : text_item(thd, line.table));
    if (flags & DESCRIBE_PARTITIONS)
      is_full= is_full || add(null);
    is_full= is_full || add(line.table.empty() ? null : text_item(thd, "ALL"));
    for (uint i= 0; i < COLUMNS_OF_ACCESS; i++)
      is_full= is_full || add(null);
    is_full= is_full || add(new (root) Item_int(thd, longlong(line.estimated), MY_INT64_NUM_DECIMAL_DIGITS));
    if (is_analyze)
      is_full= is_full || add(new (root) Item_int(thd, longlong(line.rows), MY_INT64_NUM_DECIMAL_DIGITS));
    if (is_analyze || (flags & DESCRIBE_EXTENDED))
      is_full= is_full || add(null);
    if (is_analyze)
      is_full= is_full || add(null);
    if (is_full || add(text_item(thd, text_of(line))) || output->send_data(items))
      return 1;
  }
  return 0;
}

void Explain_pushed::write_operator(Json_writer *writer, size_t number, bool is_analyze) const
{
  const Plan_line &line= m_lines[number];
  writer->start_object();
  writer->add_member("operator").add_str(line.name.c_str());
  if (!line.table.empty())
    writer->add_member("table_name").add_str(line.table.c_str());
  if (!line.what.empty())
    writer->add_member("condition").add_str(line.what.c_str());
  writer->add_member("rows").add_ull(line.estimated);
  if (is_analyze)
  {
    writer->add_member("r_rows").add_ull(line.rows);
    if (line.held_us)
      writer->add_member("r_total_time_ms").add_double(double(line.held_us) / 1000);
  }
  bool has_inputs= false;
  for (size_t other= number + 1; other < m_lines.size(); other++)
  {
    if (m_lines[other].parent != int(number))
      continue;
    if (!has_inputs)
      writer->add_member("inputs").start_array();
    has_inputs= true;
    write_operator(writer, other, is_analyze);
  }
  if (has_inputs)
    writer->end_array();
  writer->end_object();
}

void Explain_pushed::print_explain_json(Explain_query *query, Json_writer *writer, bool is_analyze)
{
  writer->add_member("query_block").start_object();
  writer->add_member("select_id").add_ll(select_id);
  add_linkage(writer);
  /* As the server says it where the plan is not known. */
  writer->add_member("table").start_object();
  writer->add_member("message").add_str("Pushed select");
  writer->end_object();
  writer->add_member("plan");
  write_operator(writer, 0, is_analyze);
  print_explain_json_for_children(query, writer, is_analyze);
  writer->end_object();
}

} // namespace

bool is_plan_shown(const THD *thd)
{
  return thd->lex->describe || thd->lex->analyze_stmt;
}

void show_plan(THD *thd, const st_select_lex *select, std::vector<Plan_line> &&lines)
{
  Explain_query *explain= thd->lex->explain;
  const Explain_select *server_s= explain ? explain->get_select(select->select_number) : nullptr;
  if (!server_s || lines.empty())
    return;
  if (Explain_pushed *own= new (explain->mem_root) Explain_pushed(explain->mem_root, *server_s, std::move(lines)))
    explain->add_node(own);
}

void show_declined(THD *thd, const std::string &reason)
{
  if (is_plan_shown(thd) && (thd->lex->explain_json || (thd->lex->describe & DESCRIBE_EXTENDED)))
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_UNKNOWN_ERROR, "PANDO: left to the server: %s", reason.c_str());
}

} // namespace pando
