/* Whether the server ends early: it has the first rows, or groups, in the order of a key when it has read few rows. */
#ifndef PANDO_SELECT_LIMIT_H
#define PANDO_SELECT_LIMIT_H

#include "server.h"

#include <functional>
#include <vector>

namespace pando {

/* What LIMIT and OFFSET say that the unit has to give, with what is passed over; HA_POS_ERROR: all, or nobody knows yet. */
double rows_wanted(SELECT_LEX_UNIT *unit);

/* Of one table: groups in the order of a key, of which few are wanted. The server ends when it has them, if it takes that key. */
bool ends_after_few_groups(SELECT_LEX *select);

/* Whether a column has one value in all rows. */
using Is_constant= std::function<bool(const Field *)>;

/* The share of the rows of a table that the server reads if the join begins with it, and it reads it in the order of a key: 1, if it reads all of them.
   `rows`: of the table, or, if the order has to stand behind columns of one value, of those with these. */
double share_until_limit(SELECT_LEX *select, const TABLE *first, double rows, const Is_constant *is_constant= nullptr, bool needs_constant= false);

/* The rows that are read in the order of a key until there are as many as wanted, where constants lead to a part of them by another key. */
struct Rows_in_order
{
  /* As the server guesses: nothing else drops rows, and those that are led to lie evenly. 0: no key has the order. */
  double by_server= 0;
  double read= 0;
};

/* `led`: to how many of `all` rows of the table; `conditions`: all that drop rows of the join; `drops_more`: something else does so, too. */
Rows_in_order rows_in_order(SELECT_LEX *select, const TABLE *first, double all, double led, const std::vector<Item *> &conditions, bool drops_more);

} // namespace pando

#endif
