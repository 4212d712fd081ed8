/* The server's files of partitioned tables, NAME.frm and NAME.par. The engine's catalog has no copies of them, and the server
   does not sync the second one, nor the directory after it has renamed or removed one: so the engine does. */
#ifndef PANDO_SERVER_FILES_H
#define PANDO_SERVER_FILES_H

#include "plugin.h"

namespace pando {

/* Of the handlerton: the server has written, renamed or removed the .par of `path`. */
int sync_partitioning_files(const char *path, const char *old_path, chf_create_flags action);

/* The .frm of a partitioned table is renamed or removed after the engine was asked for the partitions' part: the directory of `path`
   is synced at the end of the statement, before it is acknowledged. */
void sync_at_end(THD *thd, const char *path);

} // namespace pando

#endif
