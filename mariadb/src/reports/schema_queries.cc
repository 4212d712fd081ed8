/* INFORMATION_SCHEMA.PANDO_QUERIES_DECLINED, why SELECTs were left to the server, and PANDO_LAST_PLAN, how the last one of the
   session was answered. */
#include "reports.h"
#include "select_report.h"
#include "transaction.h"
#include "sql_acl.h"
#include "sql_i_s.h"
#include "sql_show.h"
#include "tztime.h"

namespace pando {

static const uint REASON_MAX_CHARS= 256;
static const uint CONDITION_MAX_CHARS= 2048;

enum Declined_column { DECLINED_REASON, DECLINED_QUERIES, DECLINED_LAST_TIME };

static ST_FIELD_INFO declined_columns[]=
{
  Show::Column("reason", Show::Varchar(REASON_MAX_CHARS), NOT_NULL),
  Show::Column("queries", Show::ULonglong(), NOT_NULL),
  Show::Column("last_time", Show::Datetime(0), NOT_NULL),
  Show::CEnd()
};

enum Plan_column { PLAN_ID, PLAN_PARENT_ID, PLAN_OPERATOR, PLAN_TABLE, PLAN_CONDITION, PLAN_ESTIMATED_ROWS, PLAN_ROWS, PLAN_TIME };

static ST_FIELD_INFO plan_columns[]=
{
  Show::Column("id", Show::ULonglong(), NOT_NULL),
  Show::Column("parent_id", Show::ULonglong(), NULLABLE),
  Show::Column("operator", Show::Varchar(64), NOT_NULL),
  Show::Column("table_name", Show::Varchar(256), NULLABLE),
  Show::Column("condition", Show::Varchar(CONDITION_MAX_CHARS), NULLABLE),
  Show::Column("estimated_rows", Show::ULonglong(), NOT_NULL),
  Show::Column("actual_rows", Show::ULonglong(), NOT_NULL),
  Show::Column("time_us", Show::ULonglong(), NULLABLE),
  Show::CEnd()
};

static void store_text(Field *field, const std::string &text)
{
  field->set_notnull();
  field->store(text.data(), text.size(), system_charset_info);
}

static void store_number(Field *field, ulonglong number)
{
  field->set_notnull();
  field->store(longlong(number), true);
}

static int fill_declined(THD *thd, TABLE_LIST *tables, Item *)
{
  if (check_global_access(thd, PROCESS_ACL))
    return 0;
  TABLE *table= tables->table;
  for (const auto &one : declined_selects())
  {
    restore_record(table, s->default_values);
    store_text(table->field[DECLINED_REASON], one.first);
    store_number(table->field[DECLINED_QUERIES], one.second.queries);
    MYSQL_TIME time;
    thd->variables.time_zone->gmt_sec_to_TIME(&time, my_time_t(one.second.last));
    table->field[DECLINED_LAST_TIME]->set_notnull();
    table->field[DECLINED_LAST_TIME]->store_time(&time);
    if (schema_table_store_record(thd, table))
      return 1;
  }
  return 0;
}

/* The session's own: it needs no privilege. */
static int fill_plan(THD *thd, TABLE_LIST *tables, Item *)
{
  TABLE *table= tables->table;
  const Transaction *transaction= Transaction::if_any(thd);
  if (!transaction)
    return 0;
  uint id= 0;
  for (const Plan_line &line : transaction->last_plan)
  {
    restore_record(table, s->default_values);
    store_number(table->field[PLAN_ID], ++id);
    if (line.parent >= 0)
      store_number(table->field[PLAN_PARENT_ID], ulonglong(line.parent) + 1);
    store_text(table->field[PLAN_OPERATOR], line.name);
    if (!line.table.empty())
      store_text(table->field[PLAN_TABLE], line.table);
    if (!line.what.empty())
      store_text(table->field[PLAN_CONDITION], line.what.substr(0, CONDITION_MAX_CHARS));
    store_number(table->field[PLAN_ESTIMATED_ROWS], line.estimated);
    store_number(table->field[PLAN_ROWS], line.rows);
    if (line.held_us)
      store_number(table->field[PLAN_TIME], line.held_us);
    if (schema_table_store_record(thd, table))
      return 1;
  }
  return 0;
}

static int init(void *schema_table, ST_FIELD_INFO *columns, int (*fill)(THD *, TABLE_LIST *, Item *))
{
  ST_SCHEMA_TABLE *schema= static_cast<ST_SCHEMA_TABLE *>(schema_table);
  schema->fields_info= columns;
  schema->fill_table= fill;
  return 0;
}

int init_queries_declined_table(void *schema_table)
{
  return init(schema_table, declined_columns, fill_declined);
}

int init_last_plan_table(void *schema_table)
{
  return init(schema_table, plan_columns, fill_plan);
}

} // namespace pando
