/* The keys that many rows want of one parent, to be looked up in their order and each once. */
#ifndef PANDO_PARENT_PROBES_H
#define PANDO_PARENT_PROBES_H

#include "plugin.h"
#include <vector>

namespace pando {

class Parent_probes
{
public:
  /* Rows in the order of their key bring the same one many times in a row. */
  void add(PandoBytes probe);
  bool is_full() const;
  /* Puts them in order. */
  void sort();
  size_t count() const { return m_places.size(); }
  PandoBytes at(size_t i) const { return PandoBytes{m_bytes.data() + m_places[i].start, m_places[i].size}; }
  void clear();

private:
  struct Place
  {
    uint32 start, size;
  };

  std::vector<uchar> m_bytes;
  std::vector<Place> m_places;
  bool m_is_sorted= true;
};

} // namespace pando

#endif
