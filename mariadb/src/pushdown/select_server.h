/* An expression of a SELECT that the server's own Item computes, of rows that the engine has.

   The engine gives columns; of each row the values go where the Item looks for them: into the record of a table, or, where it looks
   at something that is no column of a table (a column of a derived table, a group's aggregate), into a field of our own, which an
   Item_field takes the place of that something for. Then the Item is asked, and all is put back as it was.

   It is done in the session's thread. What the Item has to say is heard (Heard), and told when the query is answered: a warning. Where it may not be
   heard, and where it is an error, the query is the server's own, which says it itself. */
#ifndef PANDO_SELECT_SERVER_H
#define PANDO_SELECT_SERVER_H

#include "select_guard.h"
#include "pushdown.h"
#include "column.h"
#include "select_kind.h"
#include "select_heard.h"
#include "sql_select.h"

#include <memory>
#include <vector>

namespace pando {

/* Puts a value into a field as it is, without any conversion that could say something. False: it is none of this field. */
bool put_value(Field *to, const Column &codec, const Value_kind &kind, const PandoAnalyticCell &cell);
void to_decimal(const PandoAnalyticCell &cell, my_decimal *decimal);
void to_time(const Value_kind &kind, uint64_t number, MYSQL_TIME *time);

/* What a Server_expression looks at. */
class Server_leaf
{
public:
  /* A column of a table. */
  Server_leaf(Field *field, const Value_kind &kind);
  /* Something else, which stands at `place`. Requires: make(). */
  Server_leaf(Item **place, const Value_kind &kind) : m_place(place), m_was(*place), m_kind(kind) {}

  /* Makes the field that stands for it. */
  bool make(THD *thd);
  bool is_of(const Field *field) const { return !m_place && m_field == field; }
  bool is_at(Item *const *place) const { return m_place == place; }
  const Value_kind &kind() const { return m_kind; }
  TABLE *table() const { return m_place ? nullptr : m_field->table; }
  /* The column that it is, also where a view has it, and its table; none, if it is none. */
  const Field *column() const;
  const TABLE *table_of_column() const;
  /* Takes its place, and gives it back. */
  void take_place() const { if (m_place) *m_place= m_item; }
  void give_back() const { if (m_place) *m_place= m_was; }
  bool put(const PandoServerColumn &column, size_t row);

private:
  Item **m_place= nullptr;
  Item *m_was= nullptr;
  Item_field *m_item= nullptr;
  Field *m_field= nullptr;
  Value_kind m_kind;
  Column m_codec;
  std::unique_ptr<Virtual_tmp_table> m_own;
};

class Server_expression
{
public:
  Server_expression(THD *thd, Item *item, const Value_kind &kind, bool is_condition)
    : m_thd(thd), m_item(item), m_kind(kind), m_is_condition(is_condition) {}

  Item **place() { return &m_item; }
  Item *item() const { return m_item; }
  const Value_kind &kind() const { return m_kind; }
  bool is_condition() const { return m_is_condition; }

  std::vector<Server_leaf> leaves;
  /* How the engine says them; also who is the same as another. */
  std::vector<std::string> said;
  std::vector<Field *> virtual_fields;
  /* Of some rows, and not of others. Also errors. */
  bool may_warn= false, may_fail= false;
  /* While its leaves are looked for. */
  Guards guards;
  /* Likewise: whether the next one is looked at as a DECIMAL, or shown as a text; and within how many quotients it is. */
  bool looks_at_decimal= false;
  uint quotients= 0;
  /* What is said of rows is said of these alone, when they become numbers; not, if there are others that are not known. */
  std::vector<Item *> converted;
  bool is_of_converted= true;
  /* Of constants within it, of all rows alike. */
  bool has_warning_constant= false;
  /* Beside a query as a value, the server has been seen to compute it of empty texts that no window has given, and to warn of them. */
  bool is_over_window= false;
  /* What it says may be told, if the engine answers. */
  bool is_heard= false;
  Heard heard;

  PandoServerOutcome values(PandoHearing hearing, const PandoServerColumn *columns, size_t count, size_t rows, PandoServerColumn *result);

private:
  PandoServerOutcome row_heard(size_t row, PandoHearing hearing);
  PandoServerOutcome one(size_t row);
  void forget_text(size_t row);
  PandoServerOutcome number(size_t row);
  PandoServerOutcome moment(size_t row);
  PandoServerOutcome text(size_t row);

  THD *const m_thd;
  Item *m_item;
  const Value_kind m_kind;
  const bool m_is_condition;
  bool m_is_large= false;
  std::vector<int64_t> m_small;
  std::vector<uint64_t> m_large; /* the upper halves; then both */
  std::vector<double> m_real;
  std::vector<uint8_t> m_nulls;
  std::vector<PandoBytes> m_texts;
  std::string m_bytes;
  std::vector<size_t> m_ends;
};

} // namespace pando

#endif
