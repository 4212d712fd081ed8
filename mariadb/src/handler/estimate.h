/* How many rows a range of a key has, as it was told in the statement already. */
#ifndef PANDO_ESTIMATE_H
#define PANDO_ESTIMATE_H

#include "bytes.h"
#include "server.h"

#include <string>

namespace pando {

class Estimate
{
public:
  /* nullptr: no bound there. */
  Estimate(uint index, const Bytes *from, const Bytes *to) : m_index(index), m_has_from(from), m_has_to(to)
  {
    if (from)
      m_from.assign(reinterpret_cast<const char *>(from->data()), from->size());
    if (to)
      m_to.assign(reinterpret_cast<const char *>(to->data()), to->size());
  }
  bool is_of(const Estimate &other) const
  {
    return m_index == other.m_index && m_has_from == other.m_has_from && m_has_to == other.m_has_to && m_from == other.m_from &&
           m_to == other.m_to;
  }

  ha_rows rows= 0;

private:
  uint m_index;
  bool m_has_from, m_has_to;
  std::string m_from, m_to;
};

/* Those of one statement that are kept. */
constexpr size_t ESTIMATES_MAX= 16;

} // namespace pando

#endif
