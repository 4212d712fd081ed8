#include "partitioned.h"
#include "definition.h"
#include "plugin.h"
#include "server_files.h"
#include "unireg.h"

namespace pando {

std::string table_of_partition(const char *path)
{
  const char *partition= strstr(path, "#P#");
  return partition ? std::string(path, partition) : std::string();
}

/* --- the files --- */

bool Partitioned_files::set_id()
{
  LEX_CUSTRING id;
  m_id_size= 0;
  if (!id_of_image(m_definition.data(), m_definition.size(), &id))
    return false;
  m_id_size= hex_of_id(id, m_id);
  return true;
}

bool Partitioned_files::read(const std::string &path)
{
  m_definition.clear();
  return read_partitions(path) && read_file((path + reg_ext).c_str(), &m_definition) && set_id();
}

bool Partitioned_files::read_partitions(const std::string &path)
{
  m_partitions.clear();
  return read_file((path + ".par").c_str(), &m_partitions);
}

bool Partitioned_files::set_definition(TABLE_SHARE *share)
{
  return read_definition_image(share, &m_definition) && set_id();
}

bool Partitioned_files::are_of(PandoBytes id) const
{
  return m_id_size && m_id_size == id.len && !memcmp(m_id, id.data, id.len);
}

bool Partitioned_files::fit() const
{
  return pando_server_files_fit(db, text(m_path.c_str()), m_partitions.view());
}

PandoServerFiles Partitioned_files::view() const
{
  return PandoServerFiles{text(m_path.c_str()),
                          {reinterpret_cast<const uint8_t *>(m_id), m_id_size},
                          m_definition.view(),
                          m_partitions.view()};
}

namespace {

/* What the catalog has. */
class Recorded_files
{
public:
  explicit Recorded_files(const std::string &path)
    : m_path(path), m_status(pando_server_files_get(db, text(path.c_str()), m_id, m_definition, m_partitions))
  {
  }
  ~Recorded_files()
  {
    pando_buffer_free(m_id);
    pando_buffer_free(m_definition);
    pando_buffer_free(m_partitions);
  }
  Recorded_files(const Recorded_files &) = delete;
  Recorded_files &operator=(const Recorded_files &) = delete;

  bool are_there() const { return m_status == PANDO_STATUS_OK; }
  PandoStatus status() const { return m_status; }
  PandoBytes id() const { return pando_buffer_bytes(m_id); }
  PandoBytes definition() const { return pando_buffer_bytes(m_definition); }
  PandoBytes partitions() const { return pando_buffer_bytes(m_partitions); }
  bool fit() const { return are_there() && pando_server_files_fit(db, text(m_path.c_str()), partitions()); }
  bool are_whole() const
  {
    LEX_CUSTRING id;
    return fit() && id_of_image(definition().data, definition().len, &id);
  }

private:
  std::string m_path;
  PandoBuffer *m_id= pando_buffer_new(), *m_definition= pando_buffer_new(), *m_partitions= pando_buffer_new();
  PandoStatus m_status;
};

} // namespace

/* --- recording --- */

int record_partitioned_files(const char *path, const char *place)
{
  Partitioned_files files(path);
  if (is_interim_name(path) || !files.read(place))
    return 0;
  const PandoServerFiles view= files.view();
  const PandoStatus status= pando_server_files_record(db, &view, false);
  return status == PANDO_STATUS_NOT_FOUND ? 0 : error_of(status, current_thd);
}

/* --- opening --- */

int check_partitioned_files(const char *path, PandoBytes id, bool is_wrong)
{
  const std::string table= table_of_partition(path);
  if (table.empty() || is_interim_name(path) || is_interim_name(table.c_str()) ||
      pando_server_files_are(db, text(table.c_str()), id))
    return 0;
  Partitioned_files found(table);
  const bool is_found= found.read(table) && found.are_of(id);
  const Recorded_files recorded(table);
  const bool fits= is_found && found.fit();
  if (recorded.are_whole() && (is_wrong || !fits || pando_table_has_definition(db, text(table.c_str()), recorded.id())))
  {
    sql_print_warning("PANDO: table %s: %s%s and %s.par are not of the table's newest definition; they are written anew from the "
                      "engine's catalog", table.c_str(), table.c_str(), reg_ext, table.c_str());
    return HA_ERR_TABLE_DEF_CHANGED;
  }
  if (fits && !is_wrong)
  {
    /* A table of before such records, or a change that the server has taken back. Without it the table can be used: the next one
       to open it tries again. */
    const PandoServerFiles view= found.view();
    pando_server_files_record(db, &view, true);
  }
  return 0;
}

/* --- writing them anew --- */

static bool write_files(const std::string &path, const Recorded_files &recorded)
{
  return replace_file((path + ".par").c_str(), recorded.partitions()) &&
         replace_file((path + reg_ext).c_str(), recorded.definition());
}

bool is_recorded_partitioned_table(const char *path)
{
  return Recorded_files(path).are_whole();
}

int discover_partitioned_table(THD *thd, TABLE_SHARE *share)
{
  const std::string path= share->normalized_path.str;
  const Recorded_files recorded(path);
  if (!recorded.are_whole())
    return HA_ERR_NO_SUCH_TABLE;
  if (!write_files(path, recorded))
  {
    sql_print_error("PANDO: table %s: %s%s and %s.par cannot be written anew (errno %d)", path.c_str(), path.c_str(), reg_ext,
                    path.c_str(), my_errno);
    return my_errno ? my_errno : HA_ERR_GENERIC;
  }
  const PandoBytes definition= recorded.definition(), partitions= recorded.partitions();
  /* With the second file the server takes it for a partitioned table, not for one of this engine. */
  if (share->init_from_binary_frm_image(thd, false, definition.data, definition.len, partitions.data, partitions.len))
    return my_errno ? my_errno : HA_ERR_GENERIC;
  sql_print_information("PANDO: table %s: %s%s and %s.par were written anew from the engine's catalog", path.c_str(), path.c_str(),
                        reg_ext, path.c_str());
  return 0;
}

/* Of others, as DROP PARTITION, the .par is there. */
static bool drops_whole_tables(THD *thd)
{
  switch (thd ? thd_sql_command(thd) : SQLCOM_END) {
  case SQLCOM_DROP_TABLE:
  case SQLCOM_DROP_DB:
  case SQLCOM_CREATE_TABLE:
    return true;
  default:
    return false;
  }
}

int may_drop_partition(THD *thd, const char *path)
{
  const std::string table= table_of_partition(path);
  MY_STAT file;
  if (table.empty() || is_interim_name(path) || is_interim_name(table.c_str()))
    return 0;
  const std::string par= table + ".par";
  const bool is_missing= !my_stat(par.c_str(), &file, MYF(0));
  if (!is_missing && !drops_whole_tables(thd))
    return 0;
  const PandoStatus status= pando_table_check_partitions_resolved(db, text(table.c_str()));
  if (!status)
    return 0;
  const Recorded_files recorded(table);
  if (is_missing && recorded.are_whole() && !replace_file(par.c_str(), recorded.partitions()))
    sql_print_error("PANDO: table %s: %s cannot be written anew (errno %d)", table.c_str(), par.c_str(), my_errno);
  return error_of(status, thd);
}

/* A file that is not of a table of this name is somebody else's. */
static bool is_view(const std::string &path)
{
  static const char VIEW[]= "TYPE=";
  Bytes bytes;
  return read_file((path + reg_ext).c_str(), &bytes) && bytes.size() >= sizeof(VIEW) &&
         !memcmp(bytes.data(), VIEW, sizeof(VIEW) - 1);
}

/* The files of the half's name, if they are the same table's. */
static void remove_files_of_half(const std::string &place, const Partitioned_files &found)
{
  Partitioned_files other(place);
  if (!other.read(place) || !other.are_of(found.view().id))
    return;
  my_delete((place + ".par").c_str(), MYF(0));
  my_delete((place + reg_ext).c_str(), MYF(0));
  sync_directory_of(place.c_str());
}

bool join_halves(const std::string &path, const std::string &place)
{
  Partitioned_files found(path);
  const Recorded_files recorded(path);
  /* A RENAME that failed both ways may have moved one of the files only. */
  const bool is_found= found.read(place);
  const PandoBytes partitions= is_found ? found.view().partitions : recorded.partitions();
  if (!is_found && (!recorded.are_there() || is_view(place)))
    return false;
  PandoBuffer *buffer= pando_buffer_new();
  std::string half;
  if (!pando_table_other_half(db, text(path.c_str()), partitions, buffer))
  {
    const PandoBytes bytes= pando_buffer_bytes(buffer);
    half.assign(reinterpret_cast<const char *>(bytes.data), bytes.len);
  }
  pando_buffer_free(buffer);
  if (half.empty())
    return false;
  const std::string half_place= std::string(mysql_real_data_home) + "/" + half;
  Partitioned_files of_half(half);
  /* It is a table of its own; or the one that has files of its own becomes whole. */
  if (of_half.read(half_place) && (of_half.fit() || !is_found))
    return false;
  if (error_of(pando_table_join_halves(db, text(path.c_str()), text(half.c_str())), nullptr))
    return false;
  if (is_found)
    remove_files_of_half(half_place, found);
  return true;
}

/* A record is right if it names the partitions that there are. If it does not, the server has finished or taken back a change, and its
   own files may name them. */
static void restore_files(void *, PandoBytes table)
{
  const std::string name(reinterpret_cast<const char *>(table.data), table.len);
  const std::string path= "./" + name, place= std::string(mysql_real_data_home) + "/" + name;
  if (partitions_of(place.c_str()).empty())
  {
    pando_server_files_forget(db, table);
    return;
  }
  if (is_interim_name(path.c_str()))
  {
    tell_of_leftover(name);
    return;
  }
  join_halves(name, place);
  const Recorded_files recorded(name);
  Partitioned_files found(name);
  const bool is_found= found.read(place);
  if (recorded.are_whole())
  {
    const PandoServerFiles view= found.view();
    const PandoBytes partitions= recorded.partitions();
    if (is_found && found.are_of(recorded.id()) && partitions.len == view.partitions.len &&
        !memcmp(partitions.data, view.partitions.data, partitions.len))
      return;
    if (is_view(place))
      sql_print_warning("PANDO: table %s: %s%s is not of a table of this engine; the table cannot be used under this name",
                        path.c_str(), path.c_str(), reg_ext);
    else if (write_files(place, recorded))
      sql_print_warning("PANDO: table %s: %s%s or %s.par was missing or not of the table's newest definition; they were written anew "
                        "from the engine's catalog", path.c_str(), path.c_str(), reg_ext, path.c_str());
    else
      sql_print_error("PANDO: table %s: %s%s and %s.par cannot be written anew (errno %d)", path.c_str(), path.c_str(), reg_ext,
                      path.c_str(), my_errno);
  }
  else if (is_found && found.fit())
  {
    const PandoServerFiles view= found.view();
    pando_server_files_record(db, &view, true);
  }
  else if (!is_found && pando_table_drop_if_empty(db, table) == PANDO_STATUS_OK)
    sql_print_warning("PANDO: table %s: a CREATE TABLE that was not finished has left partitions, without rows; they were removed",
                      path.c_str());
  else
    sql_print_warning("PANDO: table %s: its partitions are not those that %s%s and %s.par, or the engine's copies of them, name",
                      path.c_str(), path.c_str(), reg_ext, path.c_str());
}

void restore_partitioned_files()
{
  pando_server_files_visit(db, {nullptr, 0}, nullptr, restore_files);
}

} // namespace pando
