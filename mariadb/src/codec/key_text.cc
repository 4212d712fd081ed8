#include "key_text.h"
#include "my_decimal.h"
#include "sql_time.h"
#include "compat56.h"
#include "tztime.h"

#include <mutex>
#include <unordered_map>

namespace pando {

/* --- what is known ----------------------------------------------------------------------------- */

static std::mutex known_mutex;
static std::unordered_map<std::string, Table_text *> known;

Table_text::Table_text(const char *path, const TABLE *table, const Index_layout *layouts) : m_options(table->s)
{
  /* As the engine names tables. */
  while (path[0] == '.' && path[1] == '/')
    path+= 2;
  m_path= path;
  const TABLE_SHARE *share= table->s;
  if (share->primary_key >= MAX_KEY)
    m_dictionaries.emplace_back().init_hidden();
  for (uint i= 0; i < share->keys; i++)
    m_dictionaries.emplace_back().init(table, layouts[i]);
  std::lock_guard<std::mutex> guard(known_mutex);
  known[m_path]= this;
}

Table_text::~Table_text()
{
  std::lock_guard<std::mutex> guard(known_mutex);
  auto place= known.find(m_path);
  if (place != known.end() && place->second == this)
    known.erase(place);
}

Known_tables::Known_tables()
{
  known_mutex.lock();
}

Known_tables::~Known_tables()
{
  known_mutex.unlock();
}

const Key_text *Known_tables::find(PandoBytes path, uint dictionary) const
{
  auto place= known.find(std::string(reinterpret_cast<const char *>(path.data), path.len));
  if (place == known.end() || dictionary >= place->second->m_dictionaries.size())
    return nullptr;
  return &place->second->m_dictionaries[dictionary];
}

/* --- keys -------------------------------------------------------------------------------------- */

void Key_text::init(const TABLE *table, const Index_layout &layout)
{
  const KEY *key= &table->key_info[layout.key_number()];
  m_index_name= key->name.str;
  for (uint i= 0; i < key->user_defined_key_parts; i++)
    m_parts.emplace_back(table, &key->key_part[i]);
  if (layout.is_rows())
    return;
  m_ends_with_hidden= table->s->primary_key >= MAX_KEY;
  for (uint part : layout.suffix_parts())
    m_parts.emplace_back(table, &table->key_info[table->s->primary_key].key_part[part]);
}

void Key_text::init_hidden()
{
  /* What InnoDB calls the same thing. */
  m_index_name= "GEN_CLUST_INDEX";
  m_ends_with_hidden= true;
}

static void append_hex(const uchar *bytes, size_t size, String *out)
{
  static const size_t SHOWN_MAX= 256;
  static const char DIGITS[]= "0123456789abcdef";
  out->append(STRING_WITH_LEN("0x"));
  for (size_t i= 0; i < MY_MIN(size, SHOWN_MAX); i++)
  {
    out->append(DIGITS[bytes[i] >> 4]);
    out->append(DIGITS[bytes[i] & 15]);
  }
  if (size > SHOWN_MAX)
    out->append(STRING_WITH_LEN("..."));
}

size_t Key_text::append_parts(PandoBytes key, String *out) const
{
  Reader reader(key);
  bool is_first= true;
  for (const Part_text &part : m_parts)
  {
    if (!reader.left())
      return 0;
    const uint32 length= out->length();
    if (!is_first)
      out->append(STRING_WITH_LEN(", "));
    if (!part.append(&reader, out))
    {
      out->length(length);
      return reader.left();
    }
    is_first= false;
  }
  const uchar *bytes;
  if (m_ends_with_hidden && reader.take(HIDDEN_KEY_SIZE, &bytes))
  {
    if (!is_first)
      out->append(STRING_WITH_LEN(", "));
    out->append_ulonglong(mi_uint8korr(bytes));
  }
  return reader.left();
}

void Key_text::append_key(PandoBytes key, String *out) const
{
  const uint32 length= out->length();
  if (size_t left= append_parts(key, out))
  {
    if (out->length() != length)
      out->append(STRING_WITH_LEN(", "));
    append_hex(key.data + key.len - left, left, out);
  }
}

/* Appends a bound; says whether it is `at` the key shown or just `after` it. The engine knows only the first key
   of a range and the first after it, so "after K" is K and a zero byte, or, after all keys that begin with
   K, the first byte string after all of those. */
char Key_text::append_bound(PandoBytes bound, char at, char after, String *out) const
{
  const uint32 length= out->length();
  const size_t left= append_parts(bound, out);
  if (!left)
    return at;
  if (left == 1 && bound.data[bound.len - 1] == 0)
    return after;
  String before;
  Bytes last;
  last.append(bound.data, bound.len);
  if (last.data()[last.size() - 1]--)
    if (!append_parts(last.view(), &before))
    {
      out->length(length);
      out->append(before);
      return after;
    }
  out->length(length);
  append_key(bound, out);
  return at;
}

void Key_text::append_range(PandoBytes from, PandoBytes to, String *out) const
{
  String lower;
  char open= '(';
  if (from.len)
    open= append_bound(from, '[', '(', &lower);
  else
    lower.append(STRING_WITH_LEN("-inf"));
  out->append(open);
  out->append(lower);
  out->append(STRING_WITH_LEN(" .. "));
  char close= ')';
  if (to.data)
    close= append_bound(to, ')', ']', out);
  else
    out->append(STRING_WITH_LEN("+inf"));
  out->append(close);
}

/* --- values ------------------------------------------------------------------------------------ */

Part_text::Part_text(const TABLE *table, const KEY_PART_INFO *part)
{
  m_part.init(table, part);
  const Field *field= table->field[part->fieldnr - 1];
  m_type= field->real_type();
  m_decimals= field->decimals();
  if (m_type == MYSQL_TYPE_NEWDECIMAL)
    m_precision= static_cast<const Field_new_decimal *>(field)->precision;
}

bool Part_text::append(Reader *reader, String *out) const
{
  Reader at= *reader;
  if (m_part.m_column.nullable())
  {
    const uchar *byte;
    if (!at.take(1, &byte))
      return false;
    const uchar marker= uchar(*byte ^ m_part.m_mask);
    if (marker > 1)
      return false;
    if (marker == 0)
    {
      out->append(STRING_WITH_LEN("NULL"));
      *reader= at;
      return true;
    }
  }
  if (!append_value(&at, out))
    return false;
  *reader= at;
  return true;
}

bool Part_text::append_value(Reader *reader, String *out) const
{
  if (m_part.m_kind == Key_part::Kind::STRING)
  {
    Bytes weights;
    if (!m_part.m_order.decode(reader, m_part.m_mask, &weights))
      return false;
    append_string(weights, out);
    return true;
  }
  const uchar *bytes;
  if (!reader->take(m_part.m_size, &bytes))
    return false;
  uchar value[MAX_FIELD_WIDTH];
  for (uint i= 0; i < m_part.m_size; i++)
    value[i]= bytes[i] ^ m_part.m_mask;
  if (!append_fixed(value, out))
    append_hex(value, m_part.m_size, out);
  return true;
}

/* False: shown as bytes. */
bool Part_text::append_fixed(const uchar *bytes, String *out) const
{
  const uint size= m_part.m_size;
  ulonglong number= 0;
  if (size <= sizeof(number))
    for (uint i= 0; i < size; i++)
      number= number << 8 | bytes[i];
  switch (m_type)
  {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
    /* The sign was flipped for the order. */
    if (m_part.m_is_signed)
      out->append_longlong(longlong(number - (1ULL << (8 * size - 1))));
    else
      out->append_ulonglong(number);
    return true;
  case MYSQL_TYPE_YEAR:
    out->append_ulonglong(number ? number + 1900 : 0);
    return true;
  case MYSQL_TYPE_ENUM:
  case MYSQL_TYPE_SET:
  case MYSQL_TYPE_BIT:
    if (size > sizeof(number))
      return false;
    out->append_ulonglong(number);
    return true;
  case MYSQL_TYPE_FLOAT:
  case MYSQL_TYPE_DOUBLE:
    append_real(bytes, out);
    return true;
  case MYSQL_TYPE_NEWDECIMAL:
  {
    my_decimal value(bytes, decimal_digits_t(m_precision), decimal_digits_t(m_decimals));
    char digits[DECIMAL_MAX_STR_LENGTH + 1];
    int length= sizeof(digits);
    if (decimal2string(&value, digits, &length, 0, 0, 0))
      return false;
    out->append(digits, uint32(length));
    return true;
  }
  case MYSQL_TYPE_NEWDATE:
  case MYSQL_TYPE_TIME2:
  case MYSQL_TYPE_DATETIME2:
  case MYSQL_TYPE_TIMESTAMP2:
    return append_time(bytes, out);
  default:
    return false;
  }
}

bool Part_text::append_time(const uchar *bytes, String *out) const
{
  MYSQL_TIME time;
  memset(&time, 0, sizeof(time));
  char digits[MAX_DATE_STRING_REP_LENGTH];
  int length;
  switch (m_type)
  {
  case MYSQL_TYPE_NEWDATE:
  {
    const uint date= uint(bytes[0]) << 16 | uint(bytes[1]) << 8 | bytes[2];
    time.day= date & 31;
    time.month= date >> 5 & 15;
    time.year= date >> 9;
    time.time_type= MYSQL_TIMESTAMP_DATE;
    length= my_date_to_str(&time, digits);
    break;
  }
  case MYSQL_TYPE_TIME2:
    TIME_from_longlong_time_packed(&time, my_time_packed_from_binary(bytes, m_decimals));
    length= my_time_to_str(&time, digits, m_decimals);
    break;
  case MYSQL_TYPE_DATETIME2:
    TIME_from_longlong_datetime_packed(&time, my_datetime_packed_from_binary(bytes, m_decimals));
    length= my_datetime_to_str(&time, digits, m_decimals);
    break;
  default:
  {
    Moment moment;
    my_timestamp_from_binary(&moment, bytes, m_decimals);
    my_tz_SYSTEM->gmt_sec_to_TIME(&time, my_time_t(moment.tv_sec));
    time.second_part= ulong(moment.tv_usec);
    length= my_datetime_to_str(&time, digits, m_decimals);
    break;
  }
  }
  out->append('\'');
  out->append(digits, uint32(length));
  out->append('\'');
  return true;
}

/* The opposite of Key_part::encode_real. */
void Part_text::append_real(const uchar *bytes, String *out) const
{
  const uint size= m_part.m_size;
  const bool is_negative= !(bytes[0] & 0x80);
  uchar value[sizeof(double)];
  for (uint i= 0; i < size; i++)
    value[size - 1 - i]= is_negative ? uchar(~bytes[i]) : i == 0 ? bytes[0] & 0x7f : bytes[i];
  float as_float= 0;
  double as_double= 0;
  if (size == sizeof(float))
  {
    memcpy(&as_float, value, sizeof(float));
    as_double= double(as_float);
  }
  else
    memcpy(&as_double, value, sizeof(double));
  char digits[FLOATING_POINT_BUFFER];
  size_t length= my_gcvt(as_double, size == sizeof(float) ? MY_GCVT_ARG_FLOAT : MY_GCVT_ARG_DOUBLE,
                         MAX_DOUBLE_STR_LENGTH, digits, nullptr);
  out->append(digits, length);
}

/* Weights of one byte that stand for characters of one byte; and those of the "general" collations of Unicode,
   which are code points of two bytes. Returns the character set that the weights can be read in. */
static CHARSET_INFO *characters_of_weights(CHARSET_INFO *collation, bool is_bytes)
{
  if (collation == &my_charset_bin)
    return nullptr;
  if (is_bytes)
    return collation;
  if (collation->mbmaxlen == 1 && !(collation->state & MY_CS_NON1TO1) && collation->sort_order)
    return collation;
  if ((collation->state & MY_CS_UNICODE) && strstr(collation->coll_name.str, "_general"))
    return get_charset_by_csname("ucs2", MY_CS_BINSORT, MYF(0));
  return nullptr;
}

void Part_text::append_string(const Bytes &weights, String *out) const
{
  CHARSET_INFO *characters= characters_of_weights(m_part.m_collation, m_part.m_order.is_bytes());
  if (!characters)
  {
    append_hex(weights.data(), weights.size(), out);
    return;
  }
  String text;
  uint errors;
  text.copy(reinterpret_cast<const char *>(weights.data()), uint32(weights.size()), characters,
            system_charset_info, &errors);
  out->append('\'');
  for (const char *at= text.ptr(), *end= at + text.length(); at < end; at++)
  {
    if (*at == '\'')
      out->append('\'');
    out->append(*at);
  }
  out->append('\'');
}

} // namespace pando
