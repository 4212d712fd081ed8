#include "table_options.h"

namespace pando {

Table_options::Table_options(const TABLE_SHARE *share) : m_are_there(share->option_struct)
{
  if (!m_are_there)
    return;
  m_options= *share->option_struct;
  if (!m_options.ttl)
    return;
  m_ttl= m_options.ttl;
  m_options.ttl= &m_ttl[0];
}

} // namespace pando
