#include "select_bytes.h"

#include <string.h>

namespace pando {

using B= Select_bytes;

static_assert(int(Value_kind::SIGNED) == PANDO_KIND_TAG_SIGNED && int(Value_kind::UNSIGNED) == PANDO_KIND_TAG_UNSIGNED &&
              int(Value_kind::DECIMAL) == PANDO_KIND_TAG_DECIMAL && int(Value_kind::REAL) == PANDO_KIND_TAG_REAL &&
              int(Value_kind::DATE) == PANDO_KIND_TAG_DATE && int(Value_kind::DATETIME) == PANDO_KIND_TAG_DATE_TIME &&
              int(Value_kind::TIME) == PANDO_KIND_TAG_TIME && int(Value_kind::TEXT) == PANDO_KIND_TAG_TEXT,
              "Value_kind begins with the engine's kinds");

void Select_bytes::count_of_rows(std::string *to)
{
  byte(to, PANDO_TAG_AGGREGATE);
  byte(to, PANDO_FUNCTION_ROWS);
  kind(to, Value_kind{Value_kind::SIGNED, 0});
  byte(to, false); /* of no expression */
}

void Select_bytes::make_sure(std::string *bytes, const std::string &condition)
{
  bytes->insert(0, condition);
  bytes->insert(0, 1, char(PANDO_TAG_SURE));
}

void put_null(std::string *to, const Value_kind &kind)
{
  B::byte(to, PANDO_TAG_CONSTANT);
  B::byte(to, PANDO_VALUE_TAG_NULL);
  B::kind(to, kind);
}

void put_number(std::string *to, __int128 value, const Value_kind &kind)
{
  B::byte(to, PANDO_TAG_CONSTANT);
  B::byte(to, PANDO_VALUE_TAG_NUMBER);
  B::number(to, value);
  B::kind(to, kind);
}

void put_real(std::string *to, double value, const Value_kind &kind)
{
  uint64_t bits= 0;
  memcpy(&bits, &value, sizeof(bits));
  B::byte(to, PANDO_TAG_CONSTANT);
  B::byte(to, PANDO_VALUE_TAG_REAL);
  B::large(to, bits);
  B::kind(to, kind);
}

void put_text(std::string *to, const char *text, size_t size, const Value_kind &kind)
{
  B::byte(to, PANDO_TAG_CONSTANT);
  B::byte(to, PANDO_VALUE_TAG_TEXT);
  B::small(to, uint32_t(size));
  to->append(text, size);
  B::kind(to, kind);
}

} // namespace pando
