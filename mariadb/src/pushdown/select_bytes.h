/* A query put together as bytes, which crates/analytic/src/decode.rs reads. What the numbers mean: crates/analytic/src/tags.rs. */
#ifndef PANDO_SELECT_BYTES_H
#define PANDO_SELECT_BYTES_H

#include "pando.h"
#include "select_kind.h"

#include <string>

namespace pando {

class Select_bytes
{
public:
  static void byte(std::string *to, uint8_t value) { to->push_back(char(value)); }
  static void small(std::string *to, uint32_t value) { low_first(to, value, 4); }
  static void large(std::string *to, uint64_t value) { low_first(to, value, 8); }
  static void number(std::string *to, __int128 value)
  {
    large(to, uint64_t(value));
    large(to, uint64_t(value >> 64));
  }
  static void kind(std::string *to, const Value_kind &kind)
  {
    const bool is_number= kind.is_opaque() && kind.tag != Value_kind::RAW;
    byte(to, is_number ? Value_kind::UNSIGNED : kind.tag == Value_kind::RAW ? Value_kind::TEXT : kind.tag);
    small(to, is_number ? 0 : kind.of);
  }

  /* Before the parts of a list, or of AND and OR. */
  static void list(std::string *to, PandoTag tag, size_t count)
  {
    byte(to, tag);
    small(to, uint32_t(count));
  }
  /* Before two expressions. */
  static void compare(std::string *to, PandoComparison comparison)
  {
    byte(to, PANDO_TAG_COMPARE);
    byte(to, comparison);
  }
  static void column(std::string *to, uint32_t slot, const Value_kind &kind)
  {
    byte(to, PANDO_TAG_SLOT);
    small(to, slot);
    Select_bytes::kind(to, kind);
  }
  /* Before an expression. */
  static void aggregate(std::string *to, PandoFunction function, const Value_kind &kind)
  {
    byte(to, PANDO_TAG_AGGREGATE);
    byte(to, function);
    Select_bytes::kind(to, kind);
    byte(to, true); /* it is of an expression */
  }
  /* COUNT(*) */
  static void count_of_rows(std::string *to);

  /* Makes of an expression one that gives the query back if the condition is false of a row. */
  static void make_sure(std::string *bytes, const std::string &condition);

private:
  static void low_first(std::string *to, uint64_t value, uint bytes)
  {
    for (uint i= 0; i < bytes; i++)
      to->push_back(char(value >> (8 * i)));
  }
};

/* Constants. */
void put_null(std::string *to, const Value_kind &kind);
void put_number(std::string *to, __int128 value, const Value_kind &kind);
void put_real(std::string *to, double value, const Value_kind &kind);
void put_text(std::string *to, const char *text, size_t size, const Value_kind &kind);

} // namespace pando

#endif
