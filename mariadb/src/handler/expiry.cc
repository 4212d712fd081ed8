#include "expiry.h"
#include "ha_pando.h"
#include "related_table.h"
#include "zone_offset.h"

#include <sql_time.h>
#include <tztime.h>

#include <cctype>
#include <cstring>

namespace pando {

namespace {

/* --- what TTL says --- */

struct Unit { const char *name; interval_type type; };

const Unit UNITS[]= {
  {"SECOND", INTERVAL_SECOND}, {"MINUTE", INTERVAL_MINUTE}, {"HOUR", INTERVAL_HOUR},       {"DAY", INTERVAL_DAY},
  {"WEEK", INTERVAL_WEEK},     {"MONTH", INTERVAL_MONTH},   {"QUARTER", INTERVAL_QUARTER}, {"YEAR", INTERVAL_YEAR},
};

/* More is longer than any clock of the server goes, in each unit but seconds and minutes. */
const ulonglong COUNT_MAX= 1000000000;

/* Reads TTL from left to right. */
class Text
{
public:
  explicit Text(const char *text) : m_at(text) {}
  bool is_at_end()
  {
    skip_spaces();
    return !*m_at;
  }
  bool take_sign(char sign)
  {
    skip_spaces();
    if (*m_at != sign)
      return false;
    m_at++;
    return true;
  }
  bool take_name(std::string *name)
  {
    skip_spaces();
    name->clear();
    if (*m_at == '`')
      return take_quoted(name);
    while (is_of_name(*m_at))
      name->push_back(*m_at++);
    return !name->empty();
  }
  bool take_number(ulonglong *number)
  {
    skip_spaces();
    const char *const begin= m_at;
    for (*number= 0; isdigit(uchar(*m_at)) && *number <= COUNT_MAX; m_at++)
      *number= *number * 10 + ulonglong(*m_at - '0');
    return m_at != begin && *number <= COUNT_MAX && !is_of_name(*m_at);
  }

private:
  void skip_spaces()
  {
    while (isspace(uchar(*m_at)))
      m_at++;
  }
  static bool is_of_name(char c) { return isalnum(uchar(c)) || c == '_' || c == '$' || (c & 0x80); }
  bool take_quoted(std::string *name)
  {
    for (m_at++; *m_at; m_at++)
    {
      if (*m_at == '`' && *++m_at != '`')
        return !name->empty();
      name->push_back(*m_at);
    }
    return false;
  }

  const char *m_at;
};

struct Rule
{
  std::string column;
  interval_type unit= INTERVAL_SECOND;
  ulonglong count= 0;
};

bool is_same_word(const std::string &word, const char *other) { return !strcasecmp(word.c_str(), other); }

/* `column`, or `column + INTERVAL n unit`. */
bool parse(const char *ttl, Rule *rule)
{
  Text text(ttl);
  if (!text.take_name(&rule->column))
    return false;
  if (text.is_at_end())
    return true;
  std::string word;
  if (!text.take_sign('+') || !text.take_name(&word) || !is_same_word(word, "INTERVAL") || !text.take_number(&rule->count) ||
      !text.take_name(&word) || !text.is_at_end())
    return false;
  for (const Unit &unit : UNITS)
    if (is_same_word(word, unit.name))
    {
      rule->unit= unit.type;
      return true;
    }
  return false;
}

bool is_of_time(const Field *field)
{
  switch (field->real_type()) {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_YEAR:
    return false;
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
  case MYSQL_TYPE_TIMESTAMP2:
  case MYSQL_TYPE_DATETIME2:
  case MYSQL_TYPE_NEWDATE:
    return field->stored_in_db();
  default:
    return false;
  }
}

bool has_keyed_virtual_columns(const TABLE *table)
{
  for (Field **field= table->vfield; field && *field; field++)
    if (!(*field)->stored_in_db() && ((*field)->flags & (PART_KEY_FLAG | PART_INDIRECT_KEY_FLAG)))
      return true;
  return false;
}

bool refuse(const char *ttl, const char *why)
{
  my_error(ER_BAD_OPTION_VALUE, MYF(0), ttl, "TTL");
  push_warning_printf(current_thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION, "PANDO: TTL: %s", why);
  return false;
}

} // namespace

bool Expiry::is_allowed(const TABLE *table, const char *ttl, bool is_referenced)
{
  Rule rule;
  if (!ttl || !*ttl)
    return true;
  if (!parse(ttl, &rule))
    return refuse(ttl, "it is 'column + INTERVAL n unit', where the unit is SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR, or 'column'");
  const Field *field= find_field(table, rule.column);
  if (!field)
  {
    my_error(ER_BAD_FIELD_ERROR, MYF(0), rule.column.c_str(), "TTL");
    return false;
  }
  if (!is_of_time(field))
    return refuse(ttl, "the column is to be a stored TIMESTAMP, DATETIME, DATE, INT or BIGINT");
  if (table->s->table_type == TABLE_TYPE_SEQUENCE)
    return refuse(ttl, "not of a sequence");
  if (table->s->versioned)
    return refuse(ttl, "not of a table with system versioning, which keeps what was removed");
  if (is_referenced)
    return refuse(ttl, "not of a table that a foreign key refers to");
  if (has_keyed_virtual_columns(table))
    return refuse(ttl, "not of a table with keys on virtual columns");
  return true;
}

static Expiry_limit::Form form_of(const Field *field)
{
  switch (field->real_type()) {
  case MYSQL_TYPE_TIMESTAMP2: return Expiry_limit::Form::STAMP;
  case MYSQL_TYPE_DATETIME2:  return Expiry_limit::Form::DATETIME;
  case MYSQL_TYPE_NEWDATE:    return Expiry_limit::Form::DATE;
  default:
    return field->flags & UNSIGNED_FLAG ? Expiry_limit::Form::SECONDS : Expiry_limit::Form::SIGNED_SECONDS;
  }
}

std::unique_ptr<Expiry> Expiry::make(const TABLE *table, const ha_table_option_struct *options)
{
  Rule rule;
  if (!options || !options->ttl || !*options->ttl || !parse(options->ttl, &rule))
    return nullptr;
  Field *field= find_field(table, rule.column);
  if (!field || !is_of_time(field))
    return nullptr;
  return std::unique_ptr<Expiry>(new Expiry(table, field, form_of(field), rule.unit, rule.count));
}

Expiry::Expiry(const TABLE *table, Field *field, Form form, interval_type unit, ulonglong count)
  : Expiry_limit(form, unit, count), m_field(field)
{
  m_column.init(table, field);
}

/* --- what has expired --- */

static INTERVAL interval_of(interval_type unit, ulonglong count)
{
  INTERVAL interval= {};
  interval.neg= true;
  switch (unit) {
  case INTERVAL_YEAR:    interval.year= ulong(count); break;
  case INTERVAL_QUARTER: interval.month= ulong(count * 3); break;
  case INTERVAL_MONTH:   interval.month= ulong(count); break;
  case INTERVAL_WEEK:    interval.day= ulong(count * 7); break;
  case INTERVAL_DAY:     interval.day= ulong(count); break;
  case INTERVAL_HOUR:    interval.hour= ulong(count); break;
  case INTERVAL_MINUTE:  interval.minute= count; break;
  default:               interval.second= count; break;
  }
  return interval;
}

static longlong seconds_since_1970(const MYSQL_TIME &clock)
{
  const longlong days= longlong(calc_daynr(clock.year, clock.month, clock.day)) - longlong(calc_daynr(1970, 1, 1));
  return ((days * 24 + clock.hour) * 60 + clock.minute) * 60 + clock.second;
}

static void put_big_endian(ulonglong value, uint size, uchar *to)
{
  for (uint i= 0; i < size; i++)
    to[i]= uchar(value >> (8 * (size - 1 - i)));
}

static const uint STAMP_BYTES= 4, DATETIME_BYTES= 5, FRACTION_BITS= 24;
static const ulonglong DATETIME_ZERO= 0x8000000000ULL;

static bool is_moment(Expiry_limit::Form form)
{
  return form == Expiry_limit::Form::SECONDS || form == Expiry_limit::Form::SIGNED_SECONDS || form == Expiry_limit::Form::STAMP;
}

static bool is_calendar(interval_type unit)
{
  return unit == INTERVAL_MONTH || unit == INTERVAL_QUARTER || unit == INTERVAL_YEAR;
}

/* What a clock shows now, or has shown last, if it was set back since by more than has gone by. */
void Expiry_limit::find_clock(my_time_t now)
{
  static const my_time_t SET_BACK_MAX= 4 * 3600;
  Time_zone *zone= is_moment(m_form) ? my_tz_UTC : global_system_variables.time_zone;
  my_time_t shown= now;
  if (!is_moment(m_form) && now > SET_BACK_MAX && offset_at(zone, now - SET_BACK_MAX) > offset_at(zone, now))
  {
    const longlong offset= offset_at(zone, now - SET_BACK_MAX);
    my_time_t before= now - SET_BACK_MAX, after= now;
    while (after - before > 1)
    {
      const my_time_t middle= before + (after - before) / 2;
      (offset_at(zone, middle) == offset ? before : after)= middle;
    }
    if (longlong(before) + offset > longlong(now) + offset_at(zone, now))
      shown= before;
  }
  zone->gmt_sec_to_TIME(&m_clock, shown);
  /* In the second that now goes on more may come. */
  m_clock.second_part= 0;
}

void Expiry_limit::begin(my_time_t now)
{
  m_is_set= false;
  if (now <= 0)
    return;
  find_clock(now);
  const uint day= m_clock.day;
  if (date_add_interval(current_thd, &m_clock, m_unit, interval_of(m_unit, m_count), false) || !m_clock.year)
    return;
  if (is_calendar(m_unit) && m_clock.day < day)
    m_clock.hour= 23, m_clock.minute= m_clock.second= 59;
  m_seconds= seconds_since_1970(m_clock);
  m_is_set= !is_moment(m_form) || (m_seconds > 0 && (m_form != Form::STAMP || m_seconds <= longlong(UINT_MAX32)));
}

std::string Expiry_limit::text() const
{
  if (!m_is_set)
    return std::string();
  if (m_form == Form::SECONDS || m_form == Form::SIGNED_SECONDS)
    return std::to_string(m_seconds);
  char text[64];
  snprintf(text, sizeof(text), "'%04u-%02u-%02u %02u:%02u:%02u'", m_clock.year, m_clock.month, m_clock.day, m_clock.hour, m_clock.minute,
           m_clock.second);
  return text;
}

const char *Expiry_limit::least_text() const
{
  switch (m_form) {
  case Form::SECONDS:
  case Form::SIGNED_SECONDS: return "1"; /* not 0, which does not expire */
  case Form::STAMP:          return "'1970-01-02 00:00:00'";
  default:                   return "'0001-01-01 00:00:00'";
  }
}

void Expiry::begin(my_time_t now)
{
  Expiry_limit::begin(now);
  memset(m_bytes, 0, sizeof(m_bytes));
  if (m_form == Form::STAMP)
    put_big_endian(ulonglong(m_seconds), STAMP_BYTES, m_bytes);
  if (m_form == Form::DATETIME)
    put_big_endian(ulonglong(TIME_to_longlong_datetime_packed(&m_clock) >> FRACTION_BITS) + DATETIME_ZERO, DATETIME_BYTES, m_bytes);
}

static uint date_as_number(const MYSQL_TIME &clock) { return clock.day + clock.month * 32 + clock.year * 16 * 32; }

/* Of whole numbers and dates. Zero does not expire. */
int Expiry::compare_number(const uchar *value) const
{
  if (m_form == Form::DATE)
  {
    const uint date= uint3korr(value);
    return !date || date > date_as_number(m_clock) ? 1 : 0;
  }
  const ulonglong bits= m_column.size() == 4 ? uint4korr(value) : uint8korr(value);
  if (m_form == Form::SECONDS)
    return !bits || bits > ulonglong(m_seconds) ? 1 : 0;
  const longlong number= m_column.size() == 4 ? longlong(int32(bits)) : longlong(bits);
  return !number || number > m_seconds ? 1 : 0;
}

/* How the record's value stands to the limit. */
int Expiry::compare(const uchar *record) const
{
  if (m_column.is_null(record))
    return 1;
  const uchar *value= m_column.in(record);
  if (m_form != Form::STAMP && m_form != Form::DATETIME)
    return compare_number(value);
  uchar zero[sizeof(m_bytes)]= {};
  if (m_form == Form::DATETIME)
    put_big_endian(DATETIME_ZERO, DATETIME_BYTES, zero);
  return memcmp(value, zero, m_column.size()) ? memcmp(value, m_bytes, m_column.size()) : 1;
}

bool Expiry::limit(longlong *value) const
{
  switch (m_form) {
  case Form::SECONDS:
  case Form::SIGNED_SECONDS: *value= m_seconds; break;
  case Form::STAMP:          *value= m_seconds << (8 * (m_column.size() - STAMP_BYTES)); break;
  case Form::DATETIME:       *value= TIME_to_longlong_datetime_packed(&m_clock); break;
  case Form::DATE:           *value= date_as_number(m_clock); break;
  }
  return m_is_set;
}

} // namespace pando
