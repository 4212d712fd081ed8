/* The options of a table, as they were when the server's share of it was opened first.

   To make a partition (REBUILD, REORGANIZE, ADD PARTITION) the server puts the partition's options in the place of the table's in the share, where
   others open the table meanwhile (ha_partition::set_up_table_before_create). They are in the memory of one TABLE, and stay there: if the statement fails,
   the share outlives that TABLE, and who opens the table next would read freed memory. Before it makes a partition, the server has opened all. */
#ifndef PANDO_TABLE_OPTIONS_H
#define PANDO_TABLE_OPTIONS_H

#include "ha_pando.h"

namespace pando {

class Table_options
{
public:
  explicit Table_options(const TABLE_SHARE *share);
  Table_options(const Table_options &) = delete;
  Table_options &operator=(const Table_options &) = delete;

  /* Null: the server has made none. */
  const ha_table_option_struct *get() const { return m_are_there ? &m_options : nullptr; }

private:
  const bool m_are_there;
  std::string m_ttl;
  ha_table_option_struct m_options= {};
};

} // namespace pando

#endif
