/* SELECTs of statements that are executed again: prepared ones, and those of stored programs.

   When the server first optimizes such a SELECT, it makes joins of its IN and EXISTS for good, by equalities with the columns as they stand there then. It
   takes this for the first execution, in which it lets live on what it puts in the place of a column: a reference to a column of a view or of a derived
   table that is merged. Where the engine has answered before, it is a later execution: its references end with it, and the next one would die of them. */
#ifndef PANDO_SELECT_AGAIN_H
#define PANDO_SELECT_AGAIN_H

#include "pushdown.h"
#include "sql_select.h"

namespace pando {

/* Whether the first execution has to be the server's, as nobody else can make last what it finds there; also later ones, if it ended in an error. */
bool is_first_for_server(THD *thd, const SELECT_LEX *select);

/* Before the server optimizes the SELECT: makes last, of columns of views, what it will make joins by. */
void keep_columns_for_joins(THD *thd, const SELECT_LEX *select);

} // namespace pando

#endif
