/* The catalog's copies of the server's files of partitioned tables, NAME.frm and NAME.par
   (crates/pandodb/src/catalog/server_files.rs): made when the server changes its files, and put back where they are lost or old. */
#ifndef PANDO_PARTITIONED_H
#define PANDO_PARTITIONED_H

#include "bytes.h"

#include <string>

namespace pando {

/* Of the path of a partition, the table's. Empty: it is none. */
std::string table_of_partition(const char *path);

/* Both files, to be recorded. */
class Partitioned_files
{
public:
  /* `path` is the table's. */
  explicit Partitioned_files(const std::string &path) : m_path(path) {}
  /* As they are under this name, which may be one that the server uses until it puts them in place. */
  bool read(const std::string &path);
  /* The .par alone; the other one is set. */
  bool read_partitions(const std::string &path);
  bool set_definition(TABLE_SHARE *share);
  /* Of this id? */
  bool are_of(PandoBytes id) const;
  /* Whether they name exactly the partitions that there are. */
  bool fit() const;
  PandoServerFiles view() const;

private:
  bool set_id();

  std::string m_path;
  char m_id[2 * MY_UUID_SIZE + 1];
  size_t m_id_size= 0;
  Bytes m_definition, m_partitions;
};

/* The server's files have changed: 0, or an error. `path` is that of the table, `place` where they are. */
int record_partitioned_files(const char *path, const char *place);

/* A partition is about to be opened by the definition with this id. `is_wrong`: its rows are of another one. 0: go on;
   HA_ERR_TABLE_DEF_CHANGED: the files are old, and the server shall discover the table. */
int check_partitioned_files(const char *path, PandoBytes id, bool is_wrong);

/* Discovers a partitioned table. HA_ERR_NO_SUCH_TABLE: there is none of this name. */
int discover_partitioned_table(THD *thd, TABLE_SHARE *share);
bool is_recorded_partitioned_table(const char *path);

/* A partition is about to go. 0, or why it must not: DROP TABLE takes away the partitions one after the other, and before them the .par,
   without which nobody can open the table. So if one partition cannot go none does, and the .par is put back. */
int may_drop_partition(THD *thd, const char *path);

/* A table of which some partitions have another table's name, as a RENAME TABLE of an older version may have left them: they get its own.
   `place`: where its files are. False: it is no such table, or it stays one. */
bool join_halves(const std::string &path, const std::string &place);

/* Once, when the server's recovery of DDL has ended. */
void restore_partitioned_files();

} // namespace pando

#endif
