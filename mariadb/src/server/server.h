/* The server's headers, in the order they need. */
#ifndef PANDO_SERVER_H
#define PANDO_SERVER_H

#define MYSQL_SERVER 1
#include <my_global.h>
#include "sql_priv.h"
#include "sql_class.h"
#include "sql_plugin.h"
#include "sql_table.h"
#include "sql_partition.h"
#include "handler.h"
#include "table.h"
#include "field.h"
#include "key.h"
#include "log.h"
#include "set_var.h"
#include <string>
#include "versions.h"

namespace pando {

/* Whether a statement is to end: KILL, also KILL SOFT (whatever it has done is undone), or max_statement_time, which
   is a soft kill and none for thd_killed(). A statement that has examined enough (LIMIT ROWS EXAMINED) is not: it
   keeps what it has. */
inline bool is_to_end(const THD *thd)
{
  return thd->killed >= KILL_QUERY && thd->killed != ABORT_QUERY && thd->killed != ABORT_QUERY_HARD;
}

} // namespace pando

#endif
