/* The server's files of partitioned tables, NAME.frm and NAME.par. The server does not sync the second one, nor the directory after it
   has renamed or removed one: so the engine does. (Its copies of them: partitioned.h.) */
#ifndef PANDO_SERVER_FILES_H
#define PANDO_SERVER_FILES_H

#include "plugin.h"

#include <string>
#include <vector>

namespace pando {

/* The names in a directory are durable. Not the server's my_sync_dir: that is fdatasync, after which ext4 may forget what was
   renamed and removed. False: errno says why. */
bool sync_directory(const char *directory);
bool sync_directory_of(const char *path);

/* Of the handlerton: the server has written, renamed or removed the .par of `path`. */
int sync_partitioning_files(const char *path, const char *old_path, chf_create_flags action);

/* A partition is about to be renamed together with its table: until the server renames them, .frm and .par have both names. The
   server's recovery of DDL reads those of the new name to take the rename back. `made`: files of the new name that were not there
   before. 0, or an error. */
int keep_both_names(const char *from, const char *to, std::vector<std::string> *made);
/* The rename has failed, and the server takes it back. In its recovery that may be a table's only files: they stay. */
void forget_new_names(const std::vector<std::string> &made);

/* Whether a partition has this name already: the rename of another one of its table has taken all along, or a crash has cut the server's
   recovery of DDL off. */
bool is_renamed_before(const char *from, const char *to);
/* The number of the statement that may take the rename of a partitioned table back; 0: none will. */
uint64_t statement_that_renames(THD *thd, const char *from, const char *to);
/* Whether the server asks this engine for a whole partitioned table: in that recovery, because of an ALTER TABLE it remembers the engine
   of the partitions, and where the table's files are missing. `path` is then no table of the engine. */
bool is_partitioned_table(const char *path);
/* The partitions that have files, as suffixes (#P#...) of the table's path. */
std::vector<std::string> partitions_of(const char *path);
/* Whether that recovery renames a whole partitioned table whose partitions were renamed before the crash: the .par is left. */
bool has_only_partitioning_file(const char *from, const char *to);
/* The .par follows its partitions, or goes with them. */
int move_partitioning_file(const char *from, const char *to);
void remove_partitioning_file(const char *path);
/* That recovery drops a table of which the engine has nothing: CREATE TABLE did not come to its first partition. The server would remove
   its .frm without a sync of the directory, and note in its log that it has: a second power cut could bring back a table that cannot be
   opened, and whose name the engine does not know as lost. So the files are removed here, durably. */
void remove_files_in_recovery(const char *path);
/* Before that recovery. What was to take the place of a .frm or .par, and was not finished (replace_file), goes; folders that belong to no
   table are told. And DROP TABLE removes the .par first, and could not be finished without it. So a missing one is made of the
   partitions that are there, in any order; it goes when the recovery has ended. Not for the .frm that a RENAME TABLE was about to give
   its second name: its partitions are still those of the first one. */
void prepare_files_for_recovery();
/* That recovery has ended. */
void ddl_recovery_has_ended();

/* Removes what a crash has left of partitioned tables that are gone: DROP DATABASE does not know these files, and they would keep
   its directory. */
void remove_partitioning_files(const char *directory);

/* Whether the server's recovery of DDL goes on. */
bool is_in_ddl_recovery();
/* It drops this table; and what was dropped just before it gives a copy (`from`, an interim name) this name, empty if it is not so: these
   two are the end of an ALTER TABLE. Each step of recovery makes its handlers first, of no table, which ends the memory of the step before;
   11.8 makes others between the two, of the tables whose definitions it reads. */
void table_is_dropped_in_recovery(const char *path);
std::string replaced_in_recovery(const char *from, const char *to);
void handler_is_made();
/* In that recovery: removes the directory of a database, as the server would. It stays if there are other files than db.opt in it, and if
   it is a symbolic link. */
void remove_directory_durably(const char *directory);

/* The .frm of a partitioned table is renamed or removed after the engine was asked for the partitions' part: the directory of `path`
   is synced at the end of the statement, before it is acknowledged. */
void sync_at_end(THD *thd, const char *path);

} // namespace pando

#endif
