/* Rows that expire: TTL='column + INTERVAL n unit' of CREATE TABLE.

   A row has expired when its column is not later than NOW() - INTERVAL n unit. What has expired stays so as time goes on: where a month is shorter, all
   of its last day counts, and where clocks are set back, what they have shown. From then on no statement sees it, and a new row may have its
   keys; some time later it is removed (expiry_purge.h). A row whose column is NULL or zero does not expire.

   NOW() is when the statement began. Plain reads of a transaction in REPEATABLE READ all have the time of its first one that read such a table,
   as they have its snapshot. A replica gives each statement the time that it had at the source. Row images say themselves which rows they
   are about; to them nothing has expired. Nor to ALTER TABLE: TTL may be another one behind it.

   A TIMESTAMP is compared as a moment, and whole numbers as the seconds since 1970 (UNIX_TIMESTAMP()). DATE and DATETIME are what a clock in the
   server's time zone shows (the global time_zone). See docs/decisions/0042-rows-that-expire.md. */
#ifndef PANDO_EXPIRY_H
#define PANDO_EXPIRY_H

#include "column.h"

#include <memory>
#include <string>

struct ha_table_option_struct;

namespace pando {

/* The latest value of a column that has expired, as time goes on. */
class Expiry_limit
{
public:
  enum class Form { SECONDS, SIGNED_SECONDS, STAMP, DATETIME, DATE };

  Expiry_limit(Form form, interval_type unit, ulonglong count) : m_form(form), m_unit(unit), m_count(count) {}

  /* From now on what has expired by then counts as such; 0: nothing. */
  void begin(my_time_t now);
  bool is_set() const { return m_is_set; }
  /* A literal of SQL for it, in a session whose time_zone is +00:00; and for the least value that is an ordinary one. */
  std::string text() const;
  const char *least_text() const;

private:
  void find_clock(my_time_t now);

protected:
  const Form m_form;
  const interval_type m_unit;
  const ulonglong m_count;
  bool m_is_set= false;
  longlong m_seconds= 0;   /* since 1970; of what is compared as a moment */
  MYSQL_TIME m_clock= {};  /* of the others */
};

/* TTL of an open table. */
class Expiry : public Expiry_limit
{
public:
  /* What TTL says; null: the table has none, or one that is none. */
  static std::unique_ptr<Expiry> make(const TABLE *table, const ha_table_option_struct *options);

  /* Whether a table may be defined as it is, as far as its TTL goes. If not, the error has been told. */
  static bool is_allowed(const TABLE *table, const char *ttl, bool is_referenced= false);

  Field *field() const { return m_field; }

  void begin(my_time_t now);
  bool is_expired(const uchar *record) const { return m_is_set && compare(record) <= 0; }

  /* The limit as a number of the engine's queries; false: nothing has expired. */
  bool limit(longlong *value) const;

private:
  Expiry(const TABLE *table, Field *field, Form form, interval_type unit, ulonglong count);
  int compare(const uchar *record) const;
  int compare_number(const uchar *value) const;

  Field *const m_field;
  Column m_column;
  uchar m_bytes[16]= {}; /* the limit as in the record, of STAMP and DATETIME */
};

} // namespace pando

#endif
