#include "server_files.h"
#include "definition.h"
#include "transaction.h"

#include <atomic>
#include <fcntl.h>
#include <unistd.h>

namespace pando {

bool sync_directory(const char *directory)
{
  const int handle= open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0)
    return false;
  const bool done= !fsync(handle);
  const int error= errno;
  close(handle);
  errno= error;
  return done;
}

bool sync_directory_of(const char *path)
{
  return sync_directory(std::string(path, dirname_length(path)).c_str());
}

static int sync_new_file(const char *path)
{
  char file_name[FN_REFLEN + 1];
  strxnmov(file_name, sizeof(file_name) - 1, path, ".par", NullS);
  const File file= my_open(file_name, O_RDONLY, MYF(MY_WME));
  if (file < 0)
    return 1;
  const int failed= my_sync(file, MYF(MY_WME));
  return my_close(file, MYF(MY_WME)) || failed || !sync_directory_of(path);
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
  return action == CHF_RENAME_FLAG && path && !sync_directory_of(path);
}

static std::atomic<bool> recovers_ddl{true};

/* In the order in which they are copied: a .frm alone is taken back without the engine. */
static const char *const FILE_SUFFIXES[]= {".frm", ".par"};

/* The path of the table of a partition, with a suffix; empty: it is none. */
static std::string file_of(const char *path, const char *suffix)
{
  const char *partition= strstr(path, "#P#");
  return partition ? std::string(path, partition) + suffix : std::string();
}

static bool moves_with_its_table(const char *from, const char *to)
{
  const std::string table= file_of(from, "");
  return !table.empty() && !file_of(to, "").empty() && file_of(to, "") != table;
}

static bool exists(const std::string &file)
{
  return !access(file.c_str(), F_OK);
}

int keep_both_names(const char *from, const char *to)
{
  if (!moves_with_its_table(from, to))
    return 0;
  for (const char *suffix : FILE_SUFFIXES)
  {
    const std::string old_file= file_of(from, suffix), new_file= file_of(to, suffix);
    if (exists(new_file) || !exists(old_file))
      continue;
    Bytes content;
    /* A copy: rename() does nothing between two names of one file. */
    if (!read_file(old_file.c_str(), &content) || !replace_file(new_file.c_str(), content.view()))
      return my_errno ? my_errno : HA_ERR_INTERNAL_ERROR;
  }
  return 0;
}

void forget_new_names(const char *from, const char *to)
{
  if (!moves_with_its_table(from, to))
    return;
  for (const char *suffix : FILE_SUFFIXES)
    if (exists(file_of(from, suffix)))
      my_delete(file_of(to, suffix).c_str(), MYF(0));
}

bool is_renamed_before(const char *from, const char *to)
{
  return recovers_ddl && moves_with_its_table(from, to) && !pando_table_exists(db, text(from)) &&
         pando_table_exists(db, text(to));
}

static bool ends_with(const char *name, const char *suffix)
{
  const size_t length= strlen(name), suffix_length= strlen(suffix);
  return length >= suffix_length && !strcmp(name + length - suffix_length, suffix);
}

bool is_partitioned_in_recovery(const char *path)
{
  return recovers_ddl && !strstr(path, "#P#") && !pando_table_exists(db, text(path)) &&
         (exists(std::string(path) + ".par") || is_interim_name(path)) && !partitions_of(path).empty();
}

std::vector<std::string> partitions_of(const char *path)
{
  static const char DIRECTORY_SUFFIX[]= ".pando";
  std::vector<std::string> found;
  const size_t directory= dirname_length(path);
  MY_DIR *files= my_dir(std::string(path, directory).c_str(), MYF(MY_DONT_SORT));
  if (!files)
    return found;
  const std::string prefix= std::string(path + directory) + "#P#";
  for (size_t i= 0; i < files->number_of_files; i++)
  {
    const char *name= files->dir_entry[i].name;
    if (!strncmp(name, prefix.c_str(), prefix.length()) && ends_with(name, DIRECTORY_SUFFIX))
      found.emplace_back(name + prefix.length() - 3, strlen(name) - prefix.length() + 3 - strlen(DIRECTORY_SUFFIX));
  }
  my_dirend(files);
  return found;
}

int move_partitioning_file(const char *from, const char *to)
{
  const std::string old_file= std::string(from) + ".par", new_file= std::string(to) + ".par";
  if (exists(old_file) && my_rename(old_file.c_str(), new_file.c_str(), MYF(0)))
    return my_errno;
  return sync_directory_of(to) ? 0 : errno;
}

void remove_partitioning_file(const char *path)
{
  const std::string file= std::string(path) + ".par";
  if (exists(file))
    my_delete(file.c_str(), MYF(0));
}

void ddl_recovery_has_ended()
{
  recovers_ddl= false;
}

void remove_partitioning_files(const char *directory)
{
  MY_DIR *files= my_dir(directory, MYF(MY_DONT_SORT));
  if (!files)
    return;
  for (size_t i= 0; i < files->number_of_files; i++)
  {
    const char *name= files->dir_entry[i].name;
    if (ends_with(name, ".par") || ends_with(name, ".par~") || ends_with(name, ".frm~"))
      my_delete((std::string(directory) + FN_LIBCHAR + name).c_str(), MYF(0));
  }
  my_dirend(files);
}

void sync_at_end(THD *thd, const char *path)
{
  Transaction::of(thd)->sync_at_end(std::string(path, dirname_length(path)));
}

} // namespace pando
