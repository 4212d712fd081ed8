#include "parent_probes.h"
#include <algorithm>

namespace pando {

/* So much memory, or little more. */
static const size_t BYTES_MAX= 4 << 20;

static int compare_bytes(PandoBytes a, PandoBytes b)
{
  const size_t common= MY_MIN(a.len, b.len);
  const int order= common ? memcmp(a.data, b.data, common) : 0;
  return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

void Parent_probes::add(PandoBytes probe)
{
  if (!m_places.empty())
  {
    const int order= compare_bytes(at(m_places.size() - 1), probe);
    if (!order)
      return;
    m_is_sorted= m_is_sorted && order < 0;
  }
  m_places.push_back(Place{uint32(m_bytes.size()), uint32(probe.len)});
  m_bytes.insert(m_bytes.end(), probe.data, probe.data + probe.len);
}

bool Parent_probes::is_full() const
{
  return m_bytes.size() + m_places.size() * sizeof(Place) >= BYTES_MAX;
}

void Parent_probes::sort()
{
  if (m_is_sorted)
    return;
  const uchar *bytes= m_bytes.data();
  const auto order= [bytes](const Place &a, const Place &b) {
    return compare_bytes(PandoBytes{bytes + a.start, a.size}, PandoBytes{bytes + b.start, b.size});
  };
  std::sort(m_places.begin(), m_places.end(), [&](const Place &a, const Place &b) { return order(a, b) < 0; });
  m_places.erase(std::unique(m_places.begin(), m_places.end(), [&](const Place &a, const Place &b) { return !order(a, b); }),
                 m_places.end());
  m_is_sorted= true;
}

void Parent_probes::clear()
{
  m_bytes.clear();
  m_places.clear();
  m_is_sorted= true;
}

} // namespace pando
