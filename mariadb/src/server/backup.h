/* Backups: what sessions say of theirs, and the server's backup stages. */
#ifndef PANDO_BACKUP_H
#define PANDO_BACKUP_H

#include "server.h"

namespace pando {

void set_backup_functions(handlerton *hton);

/* The connection is gone. */
void end_backup_of(THD *thd);

/* Of the variable pando_backup, when it is set. */
int run_backup_command(THD *thd, st_mysql_sys_var *variable, void *save, st_mysql_value *value);

} // namespace pando

#endif
