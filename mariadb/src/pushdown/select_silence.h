/* What the server's functions may say of their arguments: nothing, warnings, or errors as well. */
#ifndef PANDO_SELECT_SILENCE_H
#define PANDO_SELECT_SILENCE_H

#include "select_guard.h"
#include "sql_class.h"

namespace pando {

bool is_one_of(const Item_func *function, std::initializer_list<const char *> names);

/* Whether it is known to have nothing to say, whatever its arguments' values are. What these say themselves is theirs. */
bool is_silent(THD *thd, const Item_func *function, const Guards &guards);

/* Whether it is known to say nothing but warnings and notes in a SELECT: it never ends the query. */
bool only_warns(const Item_func *function);

} // namespace pando

#endif
