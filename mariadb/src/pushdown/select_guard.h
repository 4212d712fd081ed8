/* Divisors that are not zero where the server divides by them: CASE WHEN b > 0 THEN a / b END, IF(b, a / b, 0), a / NULLIF(b, 0), a / 100.

   Where zero divisors warn (ERROR_FOR_DIVISION_BY_ZERO, which is a default), the engine may not compute a quotient of rows of which the server
   computes none. Of those that are guarded so nothing is ever said. */
#ifndef PANDO_SELECT_GUARD_H
#define PANDO_SELECT_GUARD_H

#include "server.h"

#include <utility>
#include <vector>

namespace pando {

/* What is known where an expression is computed: conditions, and whether they hold (each may be NULL instead). */
class Guards
{
public:
  /* Whether the divisor is NULL or not zero. */
  bool exclude_zero(Item *divisor) const;

  /* What a choice knows where it computes this argument; `leave` with what it gives. */
  size_t enter(const Item_func *function, uint argument);
  void leave(size_t before) { m_guards.resize(before); }

private:
  std::vector<std::pair<Item *, bool>> m_guards;
};

} // namespace pando

#endif
