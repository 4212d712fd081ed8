#include "select_server.h"
#include "select_translate.h"
#include "compat56.h"
#include "sql_time.h"
#include "variables.h"

namespace pando {

/* The digits of a number, and how many are behind the point. */
bool digits_of(const my_decimal *decimal, __int128 *value, uint *scale)
{
  static const uint SCALE_MAX= 30;
  StringBuffer<DECIMAL_MAX_STR_LENGTH + 2> text;
  if (decimal->to_string_native(&text, 0, 0, 0) != E_DEC_OK)
    return false;
  *value= 0;
  *scale= 0;
  uint digits= 0;
  bool is_negative= false, is_behind= false;
  for (uint i= 0; i < text.length(); i++)
  {
    const char c= text[i];
    if (c == '-')
      is_negative= true;
    else if (c == '.')
      is_behind= true;
    else if (c < '0' || c > '9' || ((*value || c != '0') && ++digits > 36))
      return false;
    else
    {
      *value= *value * 10 + (c - '0');
      *scale+= is_behind;
    }
  }
  if (is_negative)
    *value= -*value;
  return *scale <= SCALE_MAX;
}

/* Digits that a word of a decimal has. */
static const uint DIGITS_OF_WORD= 9;

static uint64_t power_of_ten(uint digits)
{
  uint64_t power= 1;
  while (digits--)
    power*= 10;
  return power;
}

/* A number of 64 bits with up to 18 digits behind the point, word by word. */
static void small_to_decimal(uint64_t value, bool negative, uint scale, my_decimal *decimal)
{
  const uint64_t unit= power_of_ten(scale), word= power_of_ten(DIGITS_OF_WORD);
  uint64_t whole= value / unit, part= value % unit;
  decimal->intg= 1;
  for (uint64_t more= whole / 10; more; more/= 10)
    decimal->intg++;
  decimal->frac= int(scale);
  decimal->sign(negative);
  uint words= (uint(decimal->intg) + DIGITS_OF_WORD - 1) / DIGITS_OF_WORD;
  for (uint i= words; i--; whole/= word)
    decimal->buf[i]= decimal_digit_t(whole % word);
  for (uint left= scale; left;)
  {
    const uint digits= MY_MIN(left, DIGITS_OF_WORD);
    left-= digits;
    const uint64_t rest= power_of_ten(left);
    decimal->buf[words++]= decimal_digit_t(part / rest * power_of_ten(DIGITS_OF_WORD - digits));
    part%= rest;
  }
}

void to_decimal(const PandoAnalyticCell &cell, my_decimal *decimal)
{
  unsigned __int128 value= (unsigned __int128)(cell.high) << 64 | cell.low;
  const bool negative= cell.high < 0;
  if (negative)
    value= -value;
  if (!(value >> 64) && cell.scale <= 2 * DIGITS_OF_WORD)
    return small_to_decimal(uint64_t(value), negative, cell.scale, decimal);
  char text[64];
  char *at= text + sizeof(text);
  char *const end= at;
  for (uint digits= 0; value || digits <= cell.scale; digits++)
  {
    if (cell.scale && digits == cell.scale)
      *--at= '.';
    *--at= char('0' + uint(value % 10));
    value/= 10;
  }
  if (negative)
    *--at= '-';
  str2my_decimal(E_DEC_FATAL_ERROR, at, size_t(end - at), &my_charset_latin1, decimal);
}

static void put_low_first(uchar *to, uint size, uint64_t value)
{
  for (uint i= 0; i < size; i++)
    to[i]= uchar(value >> (8 * i));
}

static void put_high_first(uchar *to, uint size, uint64_t value)
{
  for (uint i= 0; i < size; i++)
    to[size - 1 - i]= uchar(value >> (8 * i));
}

static bool put_opaque(Field *to, const Column &codec, const Value_kind &kind, const PandoAnalyticCell &cell)
{
  const enum_field_types type= to->real_type();
  switch (kind.tag)
  {
  case Value_kind::ENUM:
  case Value_kind::SET:
    if (type != (kind.tag == Value_kind::ENUM ? MYSQL_TYPE_ENUM : MYSQL_TYPE_SET))
      return false;
    put_low_first(to->ptr, to->pack_length(), cell.low);
    return true;
  case Value_kind::BIT:
    if (type != MYSQL_TYPE_BIT)
      return to->cmp_type() == INT_RESULT && to->store(longlong(cell.low), true) == 0;
    {
      uchar image[16];
      put_high_first(image, codec.bit_image_size(), cell.low);
      codec.store_bit_image(to->table->record[0], image);
    }
    return true;
  case Value_kind::STAMP:
  {
    if (to->type() != MYSQL_TYPE_TIMESTAMP)
      return false;
    /* The zero date, which is no moment to store. Where the rows are stored, it may be an error of a temporary table of the server's plan. */
    if (!cell.low)
    {
      if (is_stored_by_statement(current_thd))
        return false;
      memset(to->ptr, 0, to->pack_length());
      return true;
    }
    uchar bytes[8];
    put_high_first(bytes, my_timestamp_binary_length(kind.of), cell.low);
    Moment time;
    my_timestamp_from_binary(&time, bytes, kind.of);
    return to->store_timestamp_dec(time, kind.of) == 0;
  }
  default:
    return codec.store(to->table->record[0], cell.text.data, cell.text.len);
  }
}

void to_time(const Value_kind &kind, uint64_t number, MYSQL_TIME *time)
{
  switch (kind.tag)
  {
  case Value_kind::DATETIME:
    TIME_from_longlong_datetime_packed(time, longlong(number));
    return;
  case Value_kind::TIME:
    TIME_from_longlong_time_packed(time, longlong(number));
    return;
  default:
    bzero(time, sizeof(*time));
    time->time_type= MYSQL_TIMESTAMP_DATE;
    time->year= uint(number >> 9);
    time->month= uint(number >> 5 & 15);
    time->day= uint(number & 31);
    return;
  }
}

static bool put_time(Field *to, const Value_kind &kind, uint64_t number)
{
  MYSQL_TIME time;
  to_time(kind, number, &time);
  return to->cmp_type() == TIME_RESULT && to->store_time_dec(&time, to->decimals()) == 0;
}

bool put_value(Field *to, const Column &codec, const Value_kind &kind, const PandoAnalyticCell &cell)
{
  const enum_field_types type= to->real_type();
  if (kind.is_opaque())
    return put_opaque(to, codec, kind, cell);
  switch (kind.tag)
  {
  case Value_kind::SIGNED:
  case Value_kind::UNSIGNED:
    return to->store(longlong(cell.low), kind.tag == Value_kind::UNSIGNED) == 0;
  case Value_kind::DECIMAL:
  {
    my_decimal decimal;
    to_decimal(cell, &decimal);
    return to->store_decimal(&decimal) == 0;
  }
  case Value_kind::REAL:
    if (type == MYSQL_TYPE_FLOAT)
    {
      const float value= float(cell.real);
      float4store(to->ptr, value);
    }
    else if (type == MYSQL_TYPE_DOUBLE)
      float8store(to->ptr, cell.real);
    else
      return false;
    return true;
  case Value_kind::DATE:
    if (type != MYSQL_TYPE_NEWDATE)
      return put_time(to, kind, cell.low);
    int3store(to->ptr, cell.low);
    return true;
  case Value_kind::DATETIME:
    if (type != MYSQL_TYPE_DATETIME2)
      return put_time(to, kind, cell.low);
    my_datetime_packed_to_binary(longlong(cell.low), to->ptr, to->decimals());
    return true;
  case Value_kind::TIME:
    if (type != MYSQL_TYPE_TIME2)
      return put_time(to, kind, cell.low);
    my_time_packed_to_binary(longlong(cell.low), to->ptr, to->decimals());
    return true;
  default:
    return codec.store_string(to->table->record[0], cell.text.data, cell.text.len);
  }
}

Server_leaf::Server_leaf(Field *field, const Value_kind &kind) : m_field(field), m_kind(kind)
{
  m_codec.init(field->table, field);
}

const Field *Server_leaf::column() const
{
  if (!m_place)
    return m_field;
  Item *real= m_was->real_item();
  return real->type() == Item::FIELD_ITEM ? static_cast<Item_field *>(real)->field : nullptr;
}

const TABLE *Server_leaf::table_of_column() const
{
  const Field *field= column();
  return field ? field->table : nullptr;
}

namespace {

/* An average of DECIMALs with all digits of its quotient, of which a text shows those of its type, as that of the average itself does. */
class Exact_average : public Item_field
{
public:
  Exact_average(THD *thd, Field *of, const Item *average) : Item_field(thd, of)
  {
    decimals= average->decimals;
    max_length= average->max_length;
  }
  String *val_str(String *to) override { return VDec(this).to_string_round(to, decimals); }
};

/* In a temporary table BINARY loses its length, and an Item that is an ENUM or a SET says of itself that it is a text. */
const Type_handler *handler_of_leaf(const Item *item, const Value_kind &kind)
{
  switch (kind.tag)
  {
  case Value_kind::RAW:  return item->type_handler();
  case Value_kind::ENUM:
  case Value_kind::SET:  return item->get_typelib() ? item->real_type_handler() : item->type_handler();
  default:               return item->type_handler()->type_handler_for_tmp_table(item);
  }
}

/* For as many digits as the engine computes with. */
Field *field_of_digits(THD *thd, const Item *item, uint scale)
{
  const uint length= my_decimal_precision_to_length_no_truncation(DECIMAL_MAX_PRECISION, scale, item->unsigned_flag);
  const Record_addr place(true);
  return new (thd->mem_root) Field_new_decimal(place.ptr(), length, place.null_ptr(), place.null_bit(), Field::NONE, &item->name,
                                               decimal_digits_t(scale), false, item->unsigned_flag);
}

} // namespace

bool Server_leaf::make(THD *thd)
{
  m_own.reset(new (thd) Virtual_tmp_table(thd));
  if (!m_own || m_own->init(1))
    return false;
  const Type_handler *handler= handler_of_leaf(m_was, m_kind);
  const bool is_exact= m_kind.tag == Value_kind::DECIMAL && m_kind.of > m_was->decimals && m_was->real_item()->type() == Item::SUM_FUNC_ITEM;
  Field *field= is_exact ? field_of_digits(thd, m_was, m_kind.of) :
                           handler->make_table_field(thd->mem_root, &m_was->name, Record_addr(true), *m_was, m_own->s);
  if (!field || m_own->add(field) || m_own->open())
    return false;
  /* Else its columns were constants, and CONVERT_TZ kept the zone of the first row. */
  m_own->map= 1;
  m_field= field;
  m_codec.init(m_own.get(), field);
  m_item= is_exact ? new (thd->mem_root) Exact_average(thd, field, m_was) : new (thd->mem_root) Item_field(thd, field);
  /* The server compares a text with an integer rounded to as many digits as its Item says: CAST(0.25 AS CHAR) > 0 is false. */
  if (m_item && m_was->cmp_type() == STRING_RESULT)
    m_item->decimals= m_was->decimals;
  return m_item;
}

bool Server_leaf::put(const PandoServerColumn &column, size_t row)
{
  if (column.nulls && column.nulls[row])
  {
    if (m_field->real_maybe_null())
      m_field->set_null();
    else
      m_field->table->null_row= 1; /* of a LEFT JOIN */
    return true;
  }
  m_field->set_notnull();
  PandoAnalyticCell cell= {};
  cell.scale= m_kind.scale();
  if (column.small)
  {
    cell.low= uint64_t(column.small[row]);
    cell.high= column.small[row] < 0 ? -1 : 0;
  }
  else if (column.large)
  {
    cell.low= column.large[2 * row];
    cell.high= int64_t(column.large[2 * row + 1]);
  }
  else if (column.real)
    cell.real= column.real[row];
  else if (column.texts)
    cell.text= column.texts[row];
  return put_value(m_field, m_codec, m_kind, cell);
}

namespace {

/* The tables' records while Items look at them; as they were, afterwards. */
class Borrowed_records
{
public:
  Borrowed_records(const std::vector<Server_leaf> &leaves) : m_leaves(leaves)
  {
    for (const Server_leaf &leaf : leaves)
    {
      leaf.take_place();
      TABLE *table= leaf.table();
      if (!table || is_known(table))
        continue;
      m_records.push_back(Record{table, std::string(reinterpret_cast<char *>(table->record[0]), table->s->rec_buff_length),
                                 table->null_row, table->status, dbug_tmp_use_all_columns(table, &table->read_set),
                                 dbug_tmp_use_all_columns(table, &table->write_set)});
    }
  }
  ~Borrowed_records()
  {
    for (const Record &record : m_records)
    {
      memcpy(record.table->record[0], record.bytes.data(), record.bytes.size());
      record.table->null_row= record.null_row;
      record.table->status= record.status;
      dbug_tmp_restore_column_map(&record.table->read_set, record.read_set);
      dbug_tmp_restore_column_map(&record.table->write_set, record.write_set);
    }
    for (const Server_leaf &leaf : m_leaves)
      leaf.give_back();
  }
  Borrowed_records(const Borrowed_records &) = delete;
  Borrowed_records &operator=(const Borrowed_records &) = delete;
  void next_row() const
  {
    for (const Record &record : m_records)
    {
      record.table->null_row= 0;
      record.table->status= 0;
    }
  }

private:
  struct Record
  {
    TABLE *table;
    std::string bytes;
    bool null_row;
    uint status;
    MY_BITMAP *read_set, *write_set;
  };
  bool is_known(const TABLE *table) const
  {
    for (const Record &record : m_records)
      if (record.table == table)
        return true;
    return false;
  }
  const std::vector<Server_leaf> &m_leaves;
  std::vector<Record> m_records;
};

} // namespace

/* Rows after which somebody asks whether the session is to end. */
static const size_t ROWS_UNASKED= 256;

PandoServerOutcome Server_expression::values(PandoHearing hearing, const PandoServerColumn *columns, size_t count, size_t rows,
                                             PandoServerColumn *result)
{
  /* Items belong to their session's thread. */
  if (current_thd != m_thd || count != leaves.size() || !has_stack(m_thd))
    return PANDO_SERVER_OUTCOME_GIVEN_BACK;
  m_small.assign(rows, 0);
  m_large.assign(0, 0);
  m_nulls.assign(rows, 0);
  m_real.assign(m_kind.tag == Value_kind::REAL ? rows : 0, 0);
  m_ends.clear();
  m_bytes.clear();
  m_is_large= false;
  if (hearing == PANDO_HEARING_ASKED)
    heard.is_asked= true;
  {
    Heard::Listener listener(m_thd, &heard);
    const Borrowed_records records(leaves);
    for (size_t row= 0; row < rows; row++)
    {
      if (row % ROWS_UNASKED == 0 && is_to_end(m_thd))
        return PANDO_SERVER_OUTCOME_STOPPED;
      records.next_row();
      for (size_t i= 0; i < leaves.size(); i++)
        if (!leaves[i].put(columns[i], row))
          return PANDO_SERVER_OUTCOME_GIVEN_BACK;
      for (Field *field : virtual_fields)
        if (field->table->null_row || field->table->update_virtual_field(field, false))
          return PANDO_SERVER_OUTCOME_GIVEN_BACK;
      const PandoServerOutcome outcome= row_heard(row, hearing);
      if (outcome != PANDO_SERVER_OUTCOME_VALUES)
        return outcome;
    }
  }
  *result= PandoServerColumn{};
  result->nulls= m_nulls.data();
  if (m_kind.tag == Value_kind::TEXT)
  {
    m_texts.clear();
    size_t begin= 0;
    for (const size_t end : m_ends)
    {
      m_texts.push_back(PandoBytes{reinterpret_cast<const uint8_t *>(m_bytes.data()) + begin, end - begin});
      begin= end;
    }
    result->texts= m_texts.data();
  }
  else if (m_kind.tag == Value_kind::REAL)
    result->real= m_real.data();
  else if (!m_is_large)
    result->small= m_small.data();
  else
    result->large= m_large.data();
  return PANDO_SERVER_OUTCOME_VALUES;
}

/* A row, and what is said of it. What an Item says of a constant that it converts and keeps it says once: so what it has not said before is
   looked for once more. */
PandoServerOutcome Server_expression::row_heard(size_t row, PandoHearing hearing)
{
  PandoServerOutcome outcome= one(row);
  if (m_thd->is_error() || heard.has_error())
    return PANDO_SERVER_OUTCOME_GIVEN_BACK;
  if (heard.is_silent() || outcome != PANDO_SERVER_OUTCOME_VALUES)
    return outcome;
  if (heard.is_new())
  {
    heard.begin_again();
    forget_text(row);
    outcome= one(row);
    if (m_thd->is_error() || heard.has_error() || outcome != PANDO_SERVER_OUTCOME_VALUES)
      return PANDO_SERVER_OUTCOME_GIVEN_BACK;
    heard.end_again();
    if (heard.is_silent())
      return PANDO_SERVER_OUTCOME_VALUES;
  }
  if (!is_heard || heard.names_row())
    return PANDO_SERVER_OUTCOME_GIVEN_BACK;
  if (hearing == PANDO_HEARING_SILENT)
  {
    heard.forget();
    return PANDO_SERVER_OUTCOME_GIVEN_BACK;
  }
  return heard.keep(hearing == PANDO_HEARING_ASKED) ? PANDO_SERVER_OUTCOME_VALUES : PANDO_SERVER_OUTCOME_GIVEN_BACK;
}

/* Texts are put behind each other. */
void Server_expression::forget_text(size_t row)
{
  if (m_kind.tag != Value_kind::TEXT || m_is_condition)
    return;
  m_ends.resize(row);
  m_bytes.resize(row ? m_ends.back() : 0);
}

PandoServerOutcome Server_expression::one(size_t row)
{
  if (m_is_condition)
  {
    m_small[row]= m_item->val_bool();
    m_nulls[row]= m_item->null_value;
    return PANDO_SERVER_OUTCOME_VALUES;
  }
  switch (m_kind.tag)
  {
  case Value_kind::REAL:
    m_real[row]= m_item->val_real();
    m_nulls[row]= m_item->null_value;
    return std::isfinite(m_real[row]) || m_nulls[row] ? PANDO_SERVER_OUTCOME_VALUES : PANDO_SERVER_OUTCOME_GIVEN_BACK;
  case Value_kind::SIGNED:
  case Value_kind::UNSIGNED:
  case Value_kind::DECIMAL:
    return number(row);
  case Value_kind::TEXT:
    return text(row);
  default:
    return moment(row);
  }
}

PandoServerOutcome Server_expression::number(size_t row)
{
  __int128 value= 0;
  if (m_kind.tag != Value_kind::DECIMAL)
  {
    const longlong number= m_item->val_int();
    m_nulls[row]= m_item->null_value;
    value= m_kind.tag == Value_kind::UNSIGNED ? __int128(ulonglong(number)) : __int128(number);
  }
  else
  {
    my_decimal buffer;
    const my_decimal *decimal= m_item->val_decimal(&buffer);
    m_nulls[row]= m_item->null_value || !decimal;
    uint scale= 0;
    if (!m_nulls[row] && !digits_of(decimal, &value, &scale))
      return PANDO_SERVER_OUTCOME_OVERFLOW;
    for (; scale > m_kind.of; scale--)
    {
      if (value % 10)
        return PANDO_SERVER_OUTCOME_GIVEN_BACK;
      value/= 10;
    }
    for (; scale < m_kind.of; scale++)
      if (__builtin_mul_overflow(value, __int128(10), &value))
        return PANDO_SERVER_OUTCOME_OVERFLOW;
  }
  if (m_nulls[row])
    value= 0;
  if (!m_is_large && value != __int128(int64_t(value)))
  {
    m_is_large= true;
    m_large.resize(2 * m_small.size());
    for (size_t i= 0; i < row; i++)
    {
      m_large[2 * i]= uint64_t(m_small[i]);
      m_large[2 * i + 1]= m_small[i] < 0 ? UINT64_MAX : 0;
    }
  }
  if (m_is_large)
  {
    m_large[2 * row]= uint64_t(value);
    m_large[2 * row + 1]= uint64_t(value >> 64);
  }
  else
    m_small[row]= int64_t(value);
  return PANDO_SERVER_OUTCOME_VALUES;
}

static bool is_same_moment(const MYSQL_TIME &a, const MYSQL_TIME &b)
{
  return a.year == b.year && a.month == b.month && a.day == b.day && a.hour == b.hour && a.minute == b.minute &&
         a.second == b.second && a.second_part == b.second_part && a.neg == b.neg;
}

/* Whether it may have been cut to this. */
static bool is_end_of_time(const MYSQL_TIME &time)
{
  return time.hour >= TIME_MAX_HOUR || (!time.hour && !time.minute && !time.second && !time.second_part);
}

/* What is compared and what is shown of a moment may differ where it is not one of the calendar, and of what is not, where the SQL mode does not allow that. */
PandoServerOutcome Server_expression::moment(size_t row)
{
  MYSQL_TIME time;
  bzero(&time, sizeof(time));
  if (m_kind.tag == Value_kind::TIME)
  {
    m_nulls[row]= m_item->get_date(m_thd, &time, Time::Options_cmp(m_thd)) || m_item->null_value;
    /* What is no time is cut where it is compared, and NULL where it is shown. */
    if (m_nulls[row] || is_end_of_time(time))
    {
      MYSQL_TIME shown;
      bzero(&shown, sizeof(shown));
      const bool is_null= m_item->get_date(m_thd, &shown, Time::Options(m_thd)) || m_item->null_value;
      if (is_null != bool(m_nulls[row]) || (!is_null && !is_same_moment(time, shown)))
        return PANDO_SERVER_OUTCOME_GIVEN_BACK;
    }
    if (!m_nulls[row])
      m_small[row]= TIME_to_longlong_time_packed(&time);
    return m_nulls[row] || time.time_type == MYSQL_TIMESTAMP_TIME ? PANDO_SERVER_OUTCOME_VALUES : PANDO_SERVER_OUTCOME_GIVEN_BACK;
  }
  m_nulls[row]= m_item->get_date(m_thd, &time, Datetime::Options_cmp(m_thd)) || m_item->null_value;
  /* Of other days each month has all. */
  static const uint DAY_OF_ALL_MONTHS= 28;
  if (m_nulls[row] || !time.year || !time.month || !time.day || time.day > DAY_OF_ALL_MONTHS || (m_thd->variables.sql_mode & (MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE)))
  {
    MYSQL_TIME shown;
    bzero(&shown, sizeof(shown));
    const bool is_null= m_item->get_date(m_thd, &shown, Datetime::Options(m_thd)) || m_item->null_value;
    if (is_null != bool(m_nulls[row]) || (!is_null && !is_same_moment(time, shown)))
      return PANDO_SERVER_OUTCOME_GIVEN_BACK;
  }
  if (m_nulls[row])
    return PANDO_SERVER_OUTCOME_VALUES;
  if (m_kind.tag == Value_kind::DATETIME)
    m_small[row]= TIME_to_longlong_datetime_packed(&time);
  else if (time.hour || time.minute || time.second || time.second_part)
    return PANDO_SERVER_OUTCOME_GIVEN_BACK;
  else
    m_small[row]= time.day + time.month * 32 + time.year * 16 * 32;
  return PANDO_SERVER_OUTCOME_VALUES;
}

PandoServerOutcome Server_expression::text(size_t row)
{
  StringBuffer<STRING_BUFFER_USUAL_SIZE> buffer;
  const String *text= m_item->val_str(&buffer);
  m_nulls[row]= m_item->null_value || !text;
  if (!m_nulls[row])
  {
    CHARSET_INFO *charset= m_item->collation.collation;
    if (!my_charset_same(text->charset(), charset) && text->charset() != &my_charset_bin &&
        !(is_supported_parser_charset(charset) && is_supported_parser_charset(text->charset()) && text->is_ascii()))
      return PANDO_SERVER_OUTCOME_GIVEN_BACK;
    m_bytes.append(text->ptr(), text->length());
  }
  m_ends.push_back(m_bytes.size());
  return PANDO_SERVER_OUTCOME_VALUES;
}

} // namespace pando
