#include "definition.h"
#include "partitioned.h"
#include "plugin.h"
#include "server_files.h"
#include "index_layout.h"
#include "partition_rows.h"
#include "datadict.h"
#include "unireg.h"
#include "variables.h"
#include <string>

namespace pando {

/* --- what is recorded --- */

void Definition::append_text(const char *text, size_t size)
{
  append_number(size);
  m_shape.append(text, size);
}

void Definition::append_number(uint64_t number)
{
  m_shape.append(&number, sizeof(number));
}

void Definition::describe_field(Field *field)
{
  append_text(field->field_name.str, field->field_name.length);
  const Name type= field->type_handler()->name();
  append_text(type.ptr(), type.length());
  append_number(field->real_type());
  append_number(field->pack_length());
  append_number(field->decimals());
  append_number(field->flags & UNSIGNED_FLAG);
  append_number(field->real_maybe_null());
  append_number(field->stored_in_db());
  append_number(field->compression_method() != nullptr);
  append_text(field->charset()->coll_name.str, field->charset()->coll_name.length);
  if (field->real_type() != MYSQL_TYPE_ENUM && field->real_type() != MYSQL_TYPE_SET)
    return;
  const TYPELIB *members= members_of(field);
  append_number(members->count);
  for (uint i= 0; i < members->count; i++)
    append_text(members->type_names[i], members->type_lengths[i]);
}

void Definition::describe_key(const TABLE *table, const KEY &key)
{
  append_text(key.name.str, key.name.length);
  append_number(uint64_t(&key - table->key_info) == table->s->primary_key);
  append_number(key.flags & HA_NOSAME);
  append_number(key.algorithm == HA_KEY_ALG_LONG_HASH);
  if (Index_layout::is_clustering(key))
    append_text("clustering", 10);
  append_number(key.user_defined_key_parts);
  for (uint i= 0; i < key.user_defined_key_parts; i++)
  {
    append_number(key.key_part[i].fieldnr);
    append_number(key.key_part[i].length);
    append_number(key.key_part[i].key_part_flag & HA_REVERSE_SORT);
  }
}

Definition::Definition(const char *path, const TABLE *table, const LEX_CUSTRING &id)
{
  if (!has_own_file(table->s))
    describe_partition(path, table, &m_partition);
  m_id_size= 2 * MY_MIN(id.length, size_t(MY_UUID_SIZE));
  to_hex(m_id, id.str, m_id_size / 2);
  for (Field **place= table->field; *place; place++)
    describe_field(*place);
  for (uint i= 0; i < table->s->keys; i++)
    describe_key(table, table->key_info[i]);
}

/* --- the server's file --- */

static const size_t HEADER_SIZE= 64;

static bool is_whole_image(const uchar *image, size_t size)
{
  return size >= HEADER_SIZE && is_binary_frm_header(image) && size >= uint4korr(image + 10);
}

bool id_of_image(const uchar *image, size_t size, LEX_CUSTRING *id)
{
  if (!is_whole_image(image, size))
    return false;
  const uchar *field= image + HEADER_SIZE;
  const size_t section_size= uint2korr(image + 4);
  if (section_size > size - HEADER_SIZE || !section_size || *field == '/')
    return false;
  const uchar *end= field + section_size;
  while (end - field >= 2)
  {
    const uchar type= *field++;
    size_t length= *field++;
    if (!length)
    {
      if (end - field < 2)
        return false;
      length= uint2korr(field);
      field+= 2;
    }
    if (length > size_t(end - field))
      return false;
    if (type == EXTRA2_TABLEDEF_VERSION)
    {
      id->str= field;
      id->length= length;
      return true;
    }
    field+= length;
  }
  return false;
}

size_t hex_of_id(const LEX_CUSTRING &id, char *to)
{
  const size_t size= MY_MIN(id.length, size_t(MY_UUID_SIZE));
  to_hex(to, id.str, size);
  return 2 * size;
}

void Definition::set_image(const uchar *image, size_t size)
{
  LEX_CUSTRING id;
  char text[2 * MY_UUID_SIZE + 1];
  m_image.clear();
  if (id_of_image(image, size, &id) && hex_of_id(id, text) == m_id_size && !memcmp(text, m_id, m_id_size))
    m_image.append(image, size);
}

bool read_definition_image(TABLE_SHARE *share, Bytes *to)
{
  const uchar *image= nullptr;
  size_t size= 0;
  to->clear();
  if (share->frm_image && share->frm_image->str)
  {
    to->append(share->frm_image->str, share->frm_image->length);
    return true;
  }
  /* The server does not read those of partitioned tables for us. */
  if (!has_own_file(share))
    return read_file((std::string(share->normalized_path.str) + reg_ext).c_str(), to);
  if (share->read_frm_image(&image, &size))
    return false;
  to->append(image, size);
  share->free_frm_image(image);
  return true;
}

bool Definition::read_image(TABLE_SHARE *share)
{
  Bytes image;
  if (!has_own_file(share))
    return true;
  if (!read_definition_image(share, &image))
    return false;
  set_image(image.data(), image.size());
  return true;
}

PandoDefinition Definition::view() const
{
  return PandoDefinition{{reinterpret_cast<const uint8_t *>(m_id), m_id_size}, m_shape.view(), m_partition.view(),
                         m_image.view()};
}

bool Definition::has_shape_of(const Definition &other) const
{
  return m_shape == other.m_shape;
}

bool has_own_file(const TABLE_SHARE *share)
{
  return !share->partition_info_str;
}

bool is_interim_name(const char *path)
{
  static const char suffix[]= "#TMP#";
  const size_t length= strlen(path), suffix_length= sizeof(suffix) - 1;
  const char *slash= strrchr(path, FN_LIBCHAR);
  const char *name= slash ? slash + 1 : path;
  return !strncmp(name, tmp_file_prefix, tmp_file_prefix_length) ||
         (length > suffix_length && !strcmp(path + length - suffix_length, suffix));
}

/* --- opening --- */

bool tell_of_foreign_folder(const char *path)
{
  const std::string folder= std::string(path) + ".pando";
  MY_STAT found;
  if (pando_table_exists(db, text(path)) || !my_stat(folder.c_str(), &found, MYF(0)))
    return false;
  sql_print_warning("PANDO: %s belongs to no table of the engine's catalog, as a folder copied by hand; move it out of the data "
                    "directory: until then no table can have this name", folder.c_str());
  return true;
}

/* There is no such table in the engine. The server removes its file if we say so, and that is right only if we know where
   the table has gone. */
static int missing(const char *path, TABLE *table, const PandoDefinition &definition)
{
  const TABLE_SHARE *share= table->s;
  if (!tell_of_foreign_folder(path) && has_own_file(share) && pando_table_is_renamed(db, text(path), definition.id))
  {
    sql_print_warning("PANDO: table %s has another name by now; its old file %s%s is removed", path, path, reg_ext);
    return HA_ERR_NO_SUCH_TABLE;
  }
  my_error(ER_NO_SUCH_TABLE_IN_ENGINE, MYF(0), share->db.str, share->table_name.str);
  return HA_ERR_INCOMPATIBLE_DEFINITION;
}

int check_definition(const char *path, TABLE *table)
{
  TABLE_SHARE *share= table->s;
  if (share->tmp_table != NO_TMP_TABLE)
    return 0;
  Definition definition(path, table, share->tabledef_version);
  const PandoDefinition given= definition.view();
  PandoDefinitionState state= PANDO_DEFINITION_STATE_CURRENT;
  const PandoStatus status= pando_definition_compare(db, text(path), &given, has_own_file(share), &state);
  if (status == PANDO_STATUS_NO_SUCH_TABLE)
  {
    const std::string partitioned= table_of_partition(path);
    if (!partitioned.empty() && !is_in_ddl_recovery() && join_halves(partitioned, partitioned) &&
        pando_table_exists(db, text(path)))
      return check_definition(path, table);
    return missing(path, table, given);
  }
  if (status)
    return error_of(status, current_thd);
  if (!has_own_file(share))
    if (int error= check_partitioned_files(path, given.id, state == PANDO_DEFINITION_STATE_INCOMPATIBLE))
      return error;
  switch (state)
  {
  case PANDO_DEFINITION_STATE_CURRENT:
    return 0;
  case PANDO_DEFINITION_STATE_UNRECORDED:
  {
    definition.read_image(share);
    const PandoDefinition full= definition.view();
    /* A table can be used without: the next one to open it tries again. */
    if (full.image.len || !has_own_file(share))
      pando_definition_adopt(db, text(path), &full);
    return 0;
  }
  case PANDO_DEFINITION_STATE_OUTDATED:
    sql_print_warning("PANDO: table %s: %s%s is not of the table's newest definition; it is written anew from the "
                      "engine's catalog", path, path, reg_ext);
    return HA_ERR_TABLE_DEF_CHANGED;
  case PANDO_DEFINITION_STATE_INCOMPATIBLE:
    break;
  }
  sql_print_error("PANDO: table %s: columns, keys or partitions in the server's .frm are not those of the table in the "
                  "engine, as after a restore of an old .frm; put the right .frm in place and FLUSH TABLES", path);
  return HA_ERR_INCOMPATIBLE_DEFINITION;
}

/* The server starts after a crash in ALTER TABLE: is its new definition that of the table? */
int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong)
{
  char id[2 * MY_UUID_SIZE + 1];
  const size_t size= hex_of_id(*version, id);
  return pando_table_has_definition(db, text(path), {reinterpret_cast<const uint8_t *>(id), size}) ? 0 : 1;
}

/* --- discovery: the server has no file, or was told that its file is old --- */

namespace {

class Recorded_image
{
public:
  explicit Recorded_image(const char *path) : m_status(pando_definition_image(db, text(path), m_id, m_image)) {}
  ~Recorded_image()
  {
    pando_buffer_free(m_id);
    pando_buffer_free(m_image);
  }
  Recorded_image(const Recorded_image &) = delete;
  Recorded_image &operator=(const Recorded_image &) = delete;

  PandoStatus status() const { return m_status; }
  PandoBytes image() const { return pando_buffer_bytes(m_image); }
  bool is_of(const LEX_CUSTRING &id) const
  {
    char hex[2 * MY_UUID_SIZE + 1];
    const PandoBytes own= pando_buffer_bytes(m_id);
    return hex_of_id(id, hex) == own.len && !memcmp(hex, own.data, own.len);
  }

private:
  PandoBuffer *m_id= pando_buffer_new(), *m_image= pando_buffer_new();
  PandoStatus m_status;
};

} // namespace

/* The server has a file, and could not open it, as when there was no descriptor for a moment. Of a table that no engine knows it
   would say that it does not exist; and if it wrote the file anew, it would first empty it. */
static int open_server_file(THD *thd, TABLE_SHARE *share, const std::string &file_name)
{
  Bytes image;
  if (!read_file(file_name.c_str(), &image))
  {
    my_error(ER_CANT_OPEN_FILE, MYF(0), file_name.c_str(), my_errno);
    return HA_ERR_GENERIC;
  }
  if (!is_whole_image(image.data(), image.size()))
  {
    my_error(ER_NOT_FORM_FILE, MYF(0), file_name.c_str());
    return HA_ERR_GENERIC;
  }
  if (share->init_from_binary_frm_image(thd, false, image.data(), image.size()))
    return my_errno ? my_errno : HA_ERR_GENERIC;
  return 0;
}

int discover_table(handlerton *, THD *thd, TABLE_SHARE *share)
{
  const char *path= share->normalized_path.str;
  const std::string file_name= std::string(path) + reg_ext;
  MY_STAT file;
  if (my_stat(file_name.c_str(), &file, MYF(0)))
    return pando_table_exists(db, text(path)) || pando_has_partitions(db, text(path)) ? open_server_file(thd, share, file_name)
                                                                                       : HA_ERR_NO_SUCH_TABLE;
  const Recorded_image recorded(path);
  if (recorded.status() == PANDO_STATUS_NOT_FOUND)
    return discover_partitioned_table(thd, share);
  if (recorded.status())
    return error_of(recorded.status(), thd);
  const PandoBytes image= recorded.image();
  LEX_CUSTRING id;
  if (!id_of_image(image.data, image.len, &id) || !recorded.is_of(id))
  {
    sql_print_error("PANDO: table %s: the definition in the engine's catalog is damaged", path);
    return HA_ERR_INCOMPATIBLE_DEFINITION;
  }
  if (!replace_file(file_name.c_str(), image))
  {
    my_error(ER_CANT_CREATE_FILE, MYF(0), file_name.c_str(), my_errno);
    return HA_ERR_GENERIC;
  }
  if (share->init_from_binary_frm_image(thd, false, image.data, image.len))
    return my_errno ? my_errno : HA_ERR_GENERIC;
  sql_print_information("PANDO: table %s: %s was written anew from the engine's catalog", path, file_name.c_str());
  return 0;
}

int discover_table_existence(handlerton *, const char *database, const char *name)
{
  char path[FN_REFLEN + 1];
  build_table_filename(path, sizeof(path) - 1, database, name, "", 0);
  return pando_table_exists(db, text(path)) || is_recorded_partitioned_table(path);
}

namespace {

struct Names
{
  handlerton::discovered_list *result;
  bool failed;
};

} // namespace

static void add_name(void *context, PandoBytes path)
{
  Names *names= static_cast<Names *>(context);
  const std::string copy(reinterpret_cast<const char *>(path.data), path.len);
  names->failed|= names->result->add_file(copy.c_str() + copy.rfind(FN_LIBCHAR) + 1);
}

static void add_partitioned_name(void *context, PandoBytes path)
{
  const std::string copy(reinterpret_cast<const char *>(path.data), path.len);
  if (!is_interim_name(copy.c_str()) && is_recorded_partitioned_table(copy.c_str()))
    add_name(context, path);
}

int discover_table_names(handlerton *, Database_name *database, MY_DIR *, handlerton::discovered_list *result)
{
  char folder[FN_REFLEN + 1];
  const uint size= tablename_to_filename(database->str, folder, sizeof(folder) - 1);
  Names names= {result, false};
  const PandoBytes name= {reinterpret_cast<const uint8_t *>(folder), size};
  pando_definitions_visit(db, name, &names, add_name);
  pando_server_files_visit(db, name, &names, add_partitioned_name);
  return names.failed;
}

/* --- the start --- */

namespace {

enum class File_state { RIGHT, MISSING, OLD, FOREIGN };

} // namespace

bool read_file(const char *file_name, Bytes *bytes)
{
  static constexpr my_off_t BYTES_MAX= 16 << 20;
  MY_STAT file;
  if (!my_stat(file_name, &file, MYF(0)) || my_off_t(file.st_size) > BYTES_MAX)
    return false;
  const File handle= my_open(file_name, O_RDONLY, MYF(0));
  if (handle < 0)
    return false;
  const size_t size= size_t(file.st_size);
  const bool done= my_read(handle, bytes->extend(size), size, MYF(0)) == size;
  my_close(handle, MYF(0));
  return done;
}

/* What the server has in the place of a table's file. */
static File_state state_of_file(const char *file_name, const Recorded_image &recorded)
{
  MY_STAT file;
  if (!my_stat(file_name, &file, MYF(0)))
    return File_state::MISSING;
  Bytes bytes;
  if (!read_file(file_name, &bytes))
    return File_state::FOREIGN;
  static const char VIEW[]= "TYPE=";
  if (bytes.size() >= sizeof(VIEW) && !memcmp(bytes.data(), VIEW, sizeof(VIEW) - 1))
    return File_state::FOREIGN;
  LEX_CUSTRING id;
  if (id_of_image(bytes.data(), bytes.size(), &id) && recorded.is_of(id))
    return File_state::RIGHT;
  if (!is_whole_image(bytes.data(), bytes.size()))
    return File_state::OLD;
  char engine_name[NAME_CHAR_LEN + 1];
  char path[FN_REFLEN + 1];
  LEX_CSTRING engine= {engine_name, 0};
  strmake(path, file_name, sizeof(path) - 1);
  if (is_view_file(path, &engine))
    return File_state::FOREIGN;
  const LEX_CSTRING *own= hton_name(hton);
  return engine.length == own->length && !memcmp(engine.str, own->str, own->length) ? File_state::OLD
                                                                                     : File_state::FOREIGN;
}

bool replace_file(const char *file_name, PandoBytes content)
{
  char new_name[FN_REFLEN + 1];
  strxnmov(new_name, sizeof(new_name) - 1, file_name, "~", NullS);
  File file= my_create(new_name, 0, O_WRONLY | O_TRUNC, MYF(0));
  if (file < 0)
    return false;
  bool done= !my_write(file, content.data, content.len, MYF(MY_NABP)) && !my_sync(file, MYF(0));
  done= !my_close(file, MYF(0)) && done;
  done= done && !my_rename(new_name, file_name, MYF(0));
  if (!done)
    my_delete(new_name, MYF(0));
  return done && sync_directory_of(file_name);
}

void tell_of_leftover(const std::string &path)
{
  const size_t slash= path.rfind(FN_LIBCHAR);
  char database[NAME_LEN + 1];
  filename_to_tablename(path.substr(0, slash).c_str(), database, sizeof(database), true);
  sql_print_warning("PANDO: table %s was left by an ALTER TABLE that a crash ended; if the table itself is complete, remove it: "
                    "DROP TABLE `%s`.`#mysql50#%s`", path.c_str(), database, path.c_str() + slash + 1);
}

static void restore_file(void *, PandoBytes table)
{
  const std::string path(reinterpret_cast<const char *>(table.data), table.len);
  if (is_interim_name(path.c_str()))
  {
    tell_of_leftover(path);
    return;
  }
  const Recorded_image recorded(path.c_str());
  const std::string file_name= std::string(mysql_real_data_home) + "/" + path + reg_ext;
  if (recorded.status())
  {
    sql_print_error("PANDO: table %s: the definition in the engine's catalog is damaged", path.c_str());
    return;
  }
  const char *why= nullptr;
  switch (state_of_file(file_name.c_str(), recorded))
  {
  case File_state::RIGHT:
    return;
  case File_state::FOREIGN:
    sql_print_warning("PANDO: table %s: %s is not of a table of this engine; the table cannot be used under this name",
                      path.c_str(), file_name.c_str());
    return;
  case File_state::MISSING:
    why= "is missing";
    break;
  case File_state::OLD:
    why= "is not of the table's newest definition";
    break;
  }
  if (replace_file(file_name.c_str(), recorded.image()))
    sql_print_warning("PANDO: table %s: %s %s; it was written anew from the engine's catalog", path.c_str(),
                      file_name.c_str(), why);
  else
    sql_print_error("PANDO: table %s: %s %s, and cannot be written anew (errno %d)", path.c_str(), file_name.c_str(), why,
                    my_errno);
}

/* DROP and RENAME were done, and a power cut has undone what the server did after them. */
static void remove_file(void *, PandoBytes table, PandoBytes id)
{
  const std::string path(reinterpret_cast<const char *>(table.data), table.len);
  const std::string file_name= std::string(mysql_real_data_home) + "/" + path + reg_ext;
  Bytes bytes;
  LEX_CUSTRING found;
  char hex[2 * MY_UUID_SIZE + 1];
  if (pando_table_exists(db, table) || !read_file(file_name.c_str(), &bytes) ||
      !id_of_image(bytes.data(), bytes.size(), &found) || hex_of_id(found, hex) != id.len || memcmp(hex, id.data, id.len))
    return;
  remove_partitioning_file((std::string(mysql_real_data_home) + "/" + path).c_str());
  if (my_delete(file_name.c_str(), MYF(0)))
    sql_print_error("PANDO: table %s is gone, but its file %s cannot be removed (errno %d)", path.c_str(),
                    file_name.c_str(), my_errno);
  else
    sql_print_warning("PANDO: table %s is gone since before the crash; its file %s was removed", path.c_str(),
                      file_name.c_str());
}

/* After the server has finished or undone the DDL that a crash interrupted. */
int restore_definition_files(handlerton *)
{
  ddl_recovery_has_ended();
  if (!db || is_started_despite_damage())
    return 0;
  pando_definitions_visit(db, {nullptr, 0}, nullptr, restore_file);
  restore_partitioned_files();
  pando_names_gone_visit(db, nullptr, remove_file);
  return 0;
}

} // namespace pando
