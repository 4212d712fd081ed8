/* The partitions that conditions leave of the tables of a SELECT. */
#ifndef PANDO_SELECT_PRUNE_H
#define PANDO_SELECT_PRUNE_H

#include "server.h"

#include <vector>

namespace pando {

/* The server prunes partitions when it optimizes, and the engine is asked before. So, as long as this lives, the partitions to be read are those that
   the server's own pruning leaves by what is known of the constants now; then they are as they were. At least one is left of each table, as a SELECT of
   no partition would be of no table. */
class Pruned_partitions
{
public:
  Pruned_partitions(THD *thd, SELECT_LEX *select);
  ~Pruned_partitions();
  Pruned_partitions(const Pruned_partitions &)= delete;
  Pruned_partitions &operator=(const Pruned_partitions &)= delete;

private:
  struct Kept
  {
    TABLE *table;
    std::vector<uint> read, locked;
    bool are_all_pruned;
  };
  void prune_unit(SELECT_LEX_UNIT *unit, uint depth);
  void prune_select(SELECT_LEX *select, const std::vector<Item *> &pushed, uint depth);
  void prune_derived(TABLE_LIST *list, const std::vector<Item *> &conditions, uint depth);
  void prune(TABLE *table, const std::vector<Item *> &conditions);

  THD *const m_thd;
  std::vector<Kept> m_kept;
  /* Units of derived tables that have been gone through. */
  std::vector<const SELECT_LEX_UNIT *> m_derived;
};

} // namespace pando

#endif
