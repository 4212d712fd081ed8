/* Groups that the server finds by jumping in a key from one to the next, the loose index scan: `SELECT host, MAX(at) FROM m GROUP BY host`
   with a key on (host, at), `SELECT COUNT(DISTINCT host) FROM m`. */
#ifndef PANDO_SELECT_JUMPS_H
#define PANDO_SELECT_JUMPS_H

#include "server.h"

namespace pando {

struct Jumps
{
  /* How many groups there are; 0: the server does not jump, or nobody knows how far. */
  double groups= 0;
  /* Lookups for all of them. */
  double lookups= 0;
};

/* Whether the server's scan may pass rows by: then it is not for it. */
bool may_lose_rows_by_jumps(SELECT_LEX *select);

/* Of a SELECT that has been resolved and not yet optimized. */
Jumps jumps_of(SELECT_LEX *select);

} // namespace pando

#endif
