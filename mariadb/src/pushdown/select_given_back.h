/* Queries that were given back to the server after work in vain.

   Whether a query can be answered shows in its rows at times: texts that are equal and not the same, digits that are a plan's. It would show again the next
   time: so the query goes to the server at once then, for 4 executions, 16, 64, at most 256, and is tried again after each of these. */
#ifndef PANDO_SELECT_GIVEN_BACK_H
#define PANDO_SELECT_GIVEN_BACK_H

#include "../server/server.h"

#include <string>
#include <vector>

struct PandoTable;

namespace pando {

/* What a query is known by: all that is said of it, of which tables, and with how much memory. */
uint64_t number_of_query(const std::string &said, const std::vector<const PandoTable *> &tables, ulonglong memory);

/* The reason why the query was given back lately; null: it is to be tried. Counts as an execution, unless it is only asked what will be. */
const char *given_back_lately(uint64_t query, bool is_execution= true);

/* It was given back after work of so many nanoseconds, for a reason that stays where it is. */
void note_given_back(uint64_t query, const char *reason, ulonglong nanoseconds);

/* It was answered. */
void note_answered(uint64_t query);

/* The SELECT of this statement was given back, now or lately. The groups of it may be answered alone (pushdown.cc): they are another query, which may be
   given back as well. */
void note_groups_of(const THD *thd, const SELECT_LEX *select, uint64_t query);
/* The number of that query; 0: the SELECT was not given back. */
uint64_t number_of_groups(const THD *thd, const SELECT_LEX *select);

} // namespace pando

#endif
