/* What a value is to the engine that answers SELECTs of any shape: see `Kind` in crates/analytic/src/column.rs. */
#ifndef PANDO_SELECT_KIND_H
#define PANDO_SELECT_KIND_H

#include "bytes.h"

namespace pando {

struct Value_kind
{
  /* Those behind TEXT the engine does not compute with: they are grouped, sorted, told apart and shown. To it, an ENUM, a SET and a BIT
     are numbers, a STAMP (TIMESTAMP) is one in the order of time, RAW (UUID, INET6, BINARY) is bytes. */
  enum Tag : uint8_t { SIGNED, UNSIGNED, DECIMAL, REAL, DATE, DATETIME, TIME, TEXT, ENUM, SET, BIT, STAMP, RAW, NONE };
  Tag tag= NONE;
  uint32_t of= 0; /* digits behind the point; the collation's number; of what is behind TEXT: which type */
  bool is_number() const { return tag <= DECIMAL; }
  bool is_integer() const { return tag <= UNSIGNED; }
  bool is_opaque() const { return tag > TEXT; }
  uint scale() const { return tag == DECIMAL ? of : 0; }
  bool operator==(const Value_kind &other) const { return tag == other.tag && of == other.of; }
};

} // namespace pando

#endif
