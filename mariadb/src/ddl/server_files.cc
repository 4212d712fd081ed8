#include "server_files.h"
#include "definition.h"
#include "partitioned.h"
#include "transaction.h"
#include "unireg.h"

#include <atomic>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pando {

static std::atomic<bool> recovers_ddl{true};

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
  if (!path || recovers_ddl)
    return action == CHF_RENAME_FLAG && path && !sync_directory_of(path);
  /* A change of partitions, which is not taken back from here on, is about to put the files under this name in place. */
  if (action == CHF_DELETE_FLAG)
    return old_path && record_partitioned_files(path, old_path);
  /* ALTER TABLE has moved the .frm before: what the engine and the log of DDL say next is true then. */
  return !sync_directory_of(path) || record_partitioned_files(path, path);
}

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

/* If the rename ends before the first partition has its new name, recovery has to know the files that are there already. */
static int expect_files(const char *to, const Bytes &definition)
{
  LEX_CUSTRING id;
  char hex[2 * MY_UUID_SIZE + 1];
  if (!id_of_image(definition.data(), definition.size(), &id))
    return 0;
  const size_t size= hex_of_id(id, hex);
  return error_of(pando_name_expect(db, text(table_of_partition(to).c_str()), {reinterpret_cast<const uint8_t *>(hex), size}),
                  current_thd);
}

/* The server takes a rename back by another one, and moves the .frm even if that fails: refused for want of space, it would leave the
   table between two names for good. So it goes on without a copy; after a crash in its middle the catalog's copies remain. */
static bool is_want_of_space(int error)
{
  return error == ENOSPC || error == EDQUOT || error == HA_ERR_RECORD_FILE_FULL;
}

int keep_both_names(const char *from, const char *to, std::vector<std::string> *made)
{
  /* The server's recovery may ask for a partition that never came to be. */
  if (!moves_with_its_table(from, to) || !pando_table_exists(db, text(from)))
    return 0;
  bool is_expected= false;
  for (const char *suffix : FILE_SUFFIXES)
  {
    const std::string old_file= file_of(from, suffix), new_file= file_of(to, suffix);
    if (exists(new_file) || !exists(old_file))
      continue;
    Bytes content;
    /* A copy: rename() does nothing between two names of one file. */
    if (!read_file(old_file.c_str(), &content))
      return my_errno ? my_errno : HA_ERR_INTERNAL_ERROR;
    if (!is_expected)
      if (int error= expect_files(to, content))
        return is_want_of_space(error) ? 0 : error;
    is_expected= true;
    if (replace_file(new_file.c_str(), content.view()))
    {
      made->push_back(new_file);
      continue;
    }
    const int error= my_errno ? my_errno : HA_ERR_INTERNAL_ERROR;
    forget_new_names(*made);
    made->clear();
    return is_want_of_space(error) ? 0 : error;
  }
  return 0;
}

void forget_new_names(const std::vector<std::string> &made)
{
  if (recovers_ddl)
    return;
  for (const std::string &file : made)
    my_delete(file.c_str(), MYF(0));
}

bool is_renamed_before(const char *from, const char *to)
{
  return moves_with_its_table(from, to) && !strcmp(strstr(from, "#P#"), strstr(to, "#P#")) &&
         !pando_table_exists(db, text(from)) && pando_table_exists(db, text(to));
}

uint64_t statement_that_renames(THD *thd, const char *from, const char *to)
{
  return thd && !recovers_ddl && moves_with_its_table(from, to) ? Transaction::of(thd)->may_rename_back() : 0;
}

static bool ends_with(const char *name, const char *suffix)
{
  const size_t length= strlen(name), suffix_length= strlen(suffix);
  return length >= suffix_length && !strcmp(name + length - suffix_length, suffix);
}

/* As replace_file names it. */
static bool is_unfinished_copy(const char *name)
{
  return ends_with(name, ".frm~") || ends_with(name, ".par~");
}

bool is_partitioned_table(const char *path)
{
  if (strstr(path, "#P#") || pando_table_exists(db, text(path)))
    return false;
  const bool is_in_recovery= recovers_ddl && (exists(std::string(path) + ".par") || is_interim_name(path));
  return (is_in_recovery || is_recorded_partitioned_table(path)) && !partitions_of(path).empty();
}

bool has_only_partitioning_file(const char *from, const char *to)
{
  return recovers_ddl && is_interim_name(from) && !strstr(from, "#P#") && !pando_table_exists(db, text(from)) &&
         exists(std::string(from) + ".par") && partitions_of(from).empty() && !partitions_of(to).empty();
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

/* With their inodes: recovery may put the right file in such a place. */
static std::vector<std::pair<std::string, ino_t>> made_for_recovery;

static ino_t inode_of(const std::string &file)
{
  struct stat found;
  return stat(file.c_str(), &found) ? 0 : found.st_ino;
}

static void append_word(std::string *file, size_t word)
{
  char bytes[4];
  int4store(bytes, uint32(word));
  file->append(bytes, sizeof(bytes));
}

/* As ha_partition::create_handler_file writes it. */
static std::string partitioning_file(const std::vector<std::string> &partitions)
{
  /* Engines are only asked to be all the same; the .frm says which. */
  std::string engines(partitions.size(), '\0'), names;
  for (const std::string &partition : partitions)
    names.append(partition, 3, std::string::npos).push_back('\0');
  const size_t names_size= names.size();
  engines.resize((engines.size() + 3) & ~size_t(3));
  names.resize((names.size() + 3) & ~size_t(3));
  std::string file;
  append_word(&file, 4 + engines.size() / 4 + names.size() / 4);
  append_word(&file, 0);
  append_word(&file, partitions.size());
  file+= engines;
  append_word(&file, names_size);
  file+= names;
  for (size_t at= 0; at < file.size(); at++)
    if (at / 4 != 1)
      file[4 + at % 4]^= file[at];
  return file;
}

/* Whether it is the definition of a partitioned table, of this engine as far as the file tells: engines that the server knows by a
   fixed number are others. */
static bool is_partitioned(const uchar *header)
{
  return is_binary_frm_header(header) && header[3] == DB_TYPE_PARTITION_DB && header[61] >= DB_TYPE_FIRST_DYNAMIC;
}

/* Fewer bytes are there of a file that a crash kept from being written; 0: there is none. */
static size_t read_header(const std::string &frm_file, uchar (&header)[64])
{
  const File handle= my_open(frm_file.c_str(), O_RDONLY, MYF(0));
  if (handle < 0)
    return 0;
  const size_t read= my_read(handle, header, sizeof(header), MYF(0));
  my_close(handle, MYF(0));
  return read == MY_FILE_ERROR ? 0 : read;
}

static bool is_partitioned(const std::string &frm_file)
{
  uchar header[64];
  return read_header(frm_file, header) == sizeof(header) && is_partitioned(header);
}

/* A power cut may leave none of the bytes of a file that was not synced, or zeros. */
static bool is_unwritten(const std::string &frm_file)
{
  uchar header[64];
  return exists(frm_file) && (read_header(frm_file, header) < sizeof(header) || !(header[0] || header[1]));
}

/* Whether the table of this definition is there, under its name or another one. */
static bool has_partitions_of(const std::string &frm_file)
{
  Bytes content;
  LEX_CUSTRING id;
  char hex[2 * MY_UUID_SIZE + 1];
  if (!read_file(frm_file.c_str(), &content) || !id_of_image(content.data(), content.size(), &id))
    return false;
  const size_t size= hex_of_id(id, hex);
  return pando_has_partitions_of(db, {reinterpret_cast<const uint8_t *>(hex), size});
}

void remove_files_in_recovery(const char *path)
{
  const std::string file= std::string(path) + reg_ext;
  if (!recovers_ddl || is_interim_name(path) || !(is_partitioned(file) || is_unwritten(file)))
    return;
  remove_partitioning_file(path);
  my_delete(file.c_str(), MYF(0));
  sync_directory_of(path);
}

/* The .par of a table that has a .frm only, for the time of recovery. */
static void write_missing_partitioning_file(const std::string &path)
{
  const std::string file= path + ".par";
  if (exists(file) || !is_partitioned(path + reg_ext))
    return;
  std::vector<std::string> partitions= partitions_of(path.c_str());
  if (partitions.empty() && has_partitions_of(path + reg_ext))
    return;
  /* The last one is gone, and the .frm is what is left: then any name will do, to find that it is not there. */
  if (partitions.empty())
    partitions.emplace_back("#P#p");
  const std::string content= partitioning_file(partitions);
  if (replace_file(file.c_str(), {reinterpret_cast<const uint8_t *>(content.data()), content.size()}))
    made_for_recovery.emplace_back(file, inode_of(file));
}

/* One line for a database: it may be the copy of a large one. */
static void tell_of_foreign_folders(const std::string &directory, const std::vector<std::string> &folders)
{
  if (!folders.empty())
    sql_print_warning("PANDO: %s belongs to no table of the engine's catalog, as a folder copied by hand (in %s there are %zu such); move it "
                      "out of the data directory: until then no table can have this name, and the database cannot be dropped",
                      folders.front().c_str(), directory.c_str(), folders.size());
}

static bool is_folder_of_no_table(const std::string &directory, const char *name)
{
  static const char SUFFIX[]= ".pando";
  const size_t length= strlen(name);
  if (length < sizeof(SUFFIX) || !ends_with(name, SUFFIX))
    return false;
  const std::string path= directory.substr(directory.rfind(FN_LIBCHAR) + 1) + FN_LIBCHAR + std::string(name, length - sizeof(SUFFIX) + 1);
  struct stat found;
  return !pando_table_exists(db, text(path.c_str())) && !stat((directory + FN_LIBCHAR + name).c_str(), &found) &&
         S_ISDIR(found.st_mode);
}

static void prepare_files_in(const std::string &directory)
{
  MY_DIR *files= my_dir(directory.c_str(), MYF(MY_DONT_SORT));
  if (!files)
    return;
  std::vector<std::string> foreign;
  for (size_t i= 0; i < files->number_of_files; i++)
  {
    const std::string path= directory + FN_LIBCHAR + files->dir_entry[i].name;
    if (is_unfinished_copy(path.c_str()))
      my_delete(path.c_str(), MYF(0));
    else if (ends_with(path.c_str(), reg_ext))
      write_missing_partitioning_file(path.substr(0, path.length() - strlen(reg_ext)));
    else if (is_folder_of_no_table(directory, files->dir_entry[i].name))
      foreign.push_back(path);
  }
  my_dirend(files);
  tell_of_foreign_folders(directory, foreign);
}

void prepare_files_for_recovery()
{
  MY_DIR *databases= my_dir(mysql_real_data_home, MYF(MY_DONT_SORT | MY_WANT_STAT));
  if (!databases)
    return;
  for (size_t i= 0; i < databases->number_of_files; i++)
    if (MY_S_ISDIR(databases->dir_entry[i].mystat->st_mode))
      prepare_files_in(std::string(mysql_real_data_home) + FN_LIBCHAR + databases->dir_entry[i].name);
  my_dirend(databases);
}

void ddl_recovery_has_ended()
{
  for (const auto &made : made_for_recovery)
    if (inode_of(made.first) == made.second)
      my_delete(made.first.c_str(), MYF(0));
  made_for_recovery.clear();
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
    if (ends_with(name, ".par") || is_unfinished_copy(name))
      my_delete((std::string(directory) + FN_LIBCHAR + name).c_str(), MYF(0));
  }
  my_dirend(files);
}

bool is_in_ddl_recovery()
{
  return recovers_ddl;
}

/* Recovery has one thread. */
static std::string dropped_last;

void table_is_dropped_in_recovery(const char *path)
{
  dropped_last= path;
}

std::string replaced_in_recovery(const char *from, const char *to)
{
  if (!recovers_ddl)
    return std::string();
  std::string replaced;
  replaced.swap(dropped_last);
  return is_interim_name(from) && !is_interim_name(to) && !strstr(from, "#P#") ? replaced : std::string();
}

void handler_is_made()
{
  if (recovers_ddl)
    dropped_last.clear();
}

void remove_directory_durably(const char *directory)
{
  std::string name= directory;
  while (name.length() > 1 && name.back() == FN_LIBCHAR)
    name.pop_back();
  struct stat found;
  if (lstat(name.c_str(), &found) || !S_ISDIR(found.st_mode))
    return;
  unlink((name + "/db.opt").c_str());
  if (!rmdir(name.c_str()) && !sync_directory(mysql_real_data_home))
    sql_print_warning("PANDO: cannot sync %s after DROP DATABASE (errno %d)", mysql_real_data_home, errno);
}

void sync_at_end(THD *thd, const char *path)
{
  Transaction::of(thd)->sync_at_end(std::string(path, dirname_length(path)));
}

} // namespace pando
