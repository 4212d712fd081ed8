#include "server_files.h"
#include "transaction.h"

namespace pando {

static int sync_directory_of(const char *path)
{
  return my_sync_dir_by_file(path, MYF(MY_WME)) ? 1 : 0;
}

static int sync_new_file(const char *path)
{
  char file_name[FN_REFLEN + 1];
  strxnmov(file_name, sizeof(file_name) - 1, path, ".par", NullS);
  const File file= my_open(file_name, O_RDONLY, MYF(MY_WME));
  if (file < 0)
    return 1;
  const int failed= my_sync(file, MYF(MY_WME));
  return my_close(file, MYF(MY_WME)) || failed ? 1 : sync_directory_of(path);
}

int sync_partitioning_files(const char *path, const char *old_path, chf_create_flags action)
{
  if (action == CHF_CREATE_FLAG)
    return sync_new_file(path);
  THD *thd= current_thd;
  /* DROP TABLE says `old_path` only. */
  for (const char *each : {path, old_path})
    if (each && thd)
      sync_at_end(thd, each);
  /* ALTER TABLE has moved the .frm before: what the engine and the log of DDL say next is true then. */
  return action == CHF_RENAME_FLAG && path ? sync_directory_of(path) : 0;
}

void sync_at_end(THD *thd, const char *path)
{
  Transaction::of(thd)->sync_at_end(std::string(path, dirname_length(path)));
}

} // namespace pando
