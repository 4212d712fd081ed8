/* Creating, dropping, renaming and emptying tables. */
#include "definition.h"
#include "expiry_purge.h"
#include "foreign_key_ddl.h"
#include "partition_rows.h"
#include "partitioned.h"
#include "server_files.h"
#include "related_table.h"
#include "ha_pando.h"
#include "row_layout.h"
#include "encryption.h"

using namespace pando;

namespace pando {

ha_create_table_option index_options[]=
{
  HA_IOPTION_BOOL("CLUSTERING", clustering, 0),
  HA_IOPTION_END
};

} // namespace pando

/* Tables are below the data directory; who asked for another place is told. */
static void warn_of_directories(THD *thd, const HA_CREATE_INFO *info)
{
  if (info->data_file_name)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED,
                        ER_THD(thd, WARN_OPTION_IGNORED), "DATA DIRECTORY");
  if (info->index_file_name)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED,
                        ER_THD(thd, WARN_OPTION_IGNORED), "INDEX DIRECTORY");
}

/* Of the table that a new partition is of. False: it is none, or comes into a table that has files already; then the server says when
   it changes them. */
static bool read_new_files(const char *path, const TABLE_SHARE *share, const Definition &definition, Partitioned_files *files)
{
  const std::string table= table_of_partition(path);
  return !table.empty() && share->frm_image && files->read_partitions(table) &&
         files->set_definition(const_cast<TABLE_SHARE *>(share)) && files->are_of(definition.view().id);
}

/* Whether the table is to take the place of one that foreign keys refer to. */
static bool is_copy_of_referenced(THD *thd)
{
  const TABLE_LIST *old= thd_sql_command(thd) == SQLCOM_ALTER_TABLE ? thd->lex->query_tables : nullptr;
  return old && old->table && old->table->file->referenced_by_foreign_key();
}

/* What a table of this engine cannot have: says so. */
static bool has_what_is_refused(THD *thd, const TABLE *form)
{
  if (has_vector_keys(form->s))
  {
    my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "PANDO", "VECTOR INDEX");
    return true;
  }
  if (const KEY *key= key_across_partitions(form))
  {
    const bool is_primary= uint(key - form->key_info) == form->s->primary_key;
    my_error(ER_UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF, MYF(0), is_primary ? "PRIMARY KEY" : "UNIQUE INDEX");
    return true;
  }
  if (would_lose_hash_key(thd, form))
  {
    my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "PANDO", "PARTITION BY SYSTEM_TIME ... AUTO with a key USING HASH");
    return true;
  }
  return false;
}

static PandoStatus create_in_engine(const char *name, const PandoTableSpec &spec)
{
  const PandoStatus status= pando_table_create(db, &spec);
  /* The server knows of no table of this name: an unfinished CREATE TABLE has left the partition, as on a full disk. */
  if (status != PANDO_STATUS_TABLE_EXISTS || table_of_partition(name).empty() || is_interim_name(name) ||
      pando_table_drop_if_empty(db, spec.path) != PANDO_STATUS_OK)
  {
    if (status == PANDO_STATUS_TABLE_EXISTS)
      tell_of_foreign_folder(name);
    return status;
  }
  sql_print_warning("PANDO: table %s: a CREATE TABLE that was not finished has left it, without rows; it was removed", name);
  return pando_table_create(db, &spec);
}

int ha_pando::create(const char *name, TABLE *form, HA_CREATE_INFO *info)
{
  TABLE_SHARE *share= form->s;
  warn_of_directories(ha_thd(), info);
  if (has_what_is_refused(ha_thd(), form))
    return HA_WRONG_CREATE_OPTION;
  std::vector<PandoIndexSpec> indexes;
  for (uint i= 0; i < share->keys; i++)
    if (i != share->primary_key)
      indexes.push_back({text(form->key_info[i].name.str), uint8_t(Index_layout::is_unique(form->key_info[i])),
                         Index_layout::clustering_of(form, &form->key_info[i])});

  /* A partition has options of its own, or the table's. */
  const ha_table_option_struct *options= options_of_partition(name, form);
  if (!options)
    options= share->option_struct ? share->option_struct : info->option_struct;
  if (options && !Expiry::is_allowed(form, options->ttl, is_copy_of_referenced(ha_thd())))
    return HA_WRONG_CREATE_OPTION;
  PandoTableSpec spec= {};
  spec.path= text(name);
  spec.indexes= indexes.data();
  spec.index_count= uint32_t(indexes.size());
  spec.compression= options ? PandoCompression(options->compression) : PANDO_COMPRESSION_ZSTD;
  spec.compression_level= options ? int32_t(options->compression_level) : 3;
  bool encrypted;
  if (int error= is_to_be_encrypted(ha_thd(), options, &encrypted))
    return error;
  spec.encrypted= encrypted ? 1 : says_nothing_of_encryption(options) ? 2 : 0;
  spec.encryption_key_id= options ? uint32_t(options->encryption_key_id) : LOG_KEY_ID;
  spec.temporary= info->tmp_table();
  spec.interim= is_interim_name(name);
  /* A statement that does not say AUTO_INCREMENT=n, but copies a table, keeps its counter. */
  spec.auto_increment= info->auto_increment_value;
  Index_layout primary;
  const bool has_primary= share->primary_key < MAX_KEY;
  if (has_primary)
    primary.init(form, share->primary_key, 0, nullptr);
  const std::vector<PandoNewColumn> columns= describe_rows(form, has_primary ? &primary : nullptr);
  /* A table may have no columns but those of its primary key; that is known, too. */
  static const PandoNewColumn none= {};
  spec.columns= columns.empty() ? &none : columns.data();
  spec.column_count= uint32_t(columns.size());
  Foreign_key_list foreign_keys;
  if (int error= define_foreign_keys(ha_thd(), name, form, info, &foreign_keys))
    return error;
  const Foreign_key_views foreign_key_views(foreign_keys);
  spec.foreign_keys= foreign_key_views.data();
  spec.foreign_key_count= foreign_key_views.size();
  Definition definition(name, form, share->tabledef_version);
  const bool writes_file= !info->tmp_table() && has_own_file(share);
  if (writes_file)
    definition.read_image(share);
  spec.definition= definition.view();
  Partitioned_files server_files(table_of_partition(name));
  if (!info->tmp_table() && read_new_files(name, share, definition, &server_files))
    spec.server_files= server_files.view();
  const PandoStatus status= create_in_engine(name, spec);
  if (status == PANDO_STATUS_ENCRYPTION_KEY)
  {
    /* What was asked for cannot be had; nothing is encrypted yet that could not be decrypted. */
    warn_of_error(ha_thd());
    return HA_WRONG_CREATE_OPTION;
  }
  /* The server prints the number: "No more room in record file" is no word for a table that cannot be made. */
  if (int error= fail(status))
    return error == HA_ERR_RECORD_FILE_FULL ? ENOSPC : error;
  /* The server leaves its file to engines that can discover tables. */
  if (writes_file && share->write_frm_image())
  {
    const int error= my_errno ? my_errno : HA_ERR_INTERNAL_ERROR;
    pando_table_drop(db, spec.path);
    return error;
  }
  if (options && options->ttl && *options->ttl)
    Expiry_purge::look_for_tables();
  return 0;
}

int ha_pando::delete_table(const char *name)
{
  if (is_partitioned_table(name))
  {
    /* A directory may have been made, and not the table. */
    int result= HA_ERR_NO_SUCH_TABLE;
    for (const std::string &partition : partitions_of(name))
      if (int error= delete_table((name + partition).c_str()); error != HA_ERR_NO_SUCH_TABLE)
      {
        if (error)
          return error;
        result= 0;
      }
    if (result)
      remove_files_in_recovery(name);
    else
      remove_partitioning_file(name);
    return result;
  }
  if (is_in_ddl_recovery())
    table_is_dropped_in_recovery(name);
  if (int error= may_drop(ha_thd(), name))
    return error;
  if (int error= is_in_ddl_recovery() ? 0 : may_drop_partition(ha_thd(), name))
    return error;
  Related_table::close_kept();
  const int error= error_of(pando_table_drop(db, text(name)), ha_thd());
  if (error == HA_ERR_NO_SUCH_TABLE)
    remove_files_in_recovery(name);
  return error;
}

/* The server's recovery of DDL ends an ALTER TABLE that copies by a drop of the table and a rename of the copy. The first is refused if
   other tables have foreign keys to the table, which the server does not look at: the second tells that it was no DROP TABLE. And if the
   copy gets another name, the server forgets that it may have put such a table aside. */
static int replace_in_recovery(const char *from, const std::string &replaced)
{
  static const char COPY[]= "#sql-alter", ASIDE[]= "#sql-backup";
  std::vector<std::string> old{replaced};
  const char *name= from + dirname_length(from);
  if (!strncmp(name, COPY, sizeof(COPY) - 1))
    old.push_back(replaced.substr(0, dirname_length(replaced.c_str())) + ASIDE + (name + sizeof(COPY) - 1));
  Related_table::close_kept();
  for (const std::string &path : old)
  {
    if (pando_table_exists(db, text(path.c_str())))
      if (int error= error_of(pando_table_drop(db, text(path.c_str())), nullptr))
        return error;
    my_delete((path + reg_ext).c_str(), MYF(0));
  }
  return 0;
}

/* ALTER TABLE that copies gives the copy the name of the table, or another one, at which foreign keys have to follow. Empty: it is
   not so. */
static std::string copied_path(THD *thd, const char *from, const char *to, const std::string &replaced)
{
  if (!replaced.empty())
    return catalog_path(replaced.c_str()) == catalog_path(to) ? std::string() : catalog_path(replaced.c_str());
  if (!thd || thd_sql_command(thd) != SQLCOM_ALTER_TABLE || !is_interim_name(from) || is_interim_name(to) ||
      !thd->lex->query_tables)
    return std::string();
  const TABLE_LIST *old= thd->lex->query_tables;
  const std::string path= catalog_path(old->db.str, old->table_name.str);
  return path == catalog_path(to) ? std::string() : path;
}

/* With the first partition the engine renames all of a table. */
int ha_pando::rename_table(const char *from, const char *to)
{
  Related_table::close_kept();
  if (is_partitioned_table(from))
  {
    for (const std::string &partition : partitions_of(from))
      if (int error= rename_table((from + partition).c_str(), (to + partition).c_str()))
        return error;
    return move_partitioning_file(from, to);
  }
  if (has_only_partitioning_file(from, to))
    return move_partitioning_file(from, to);
  if (is_renamed_before(from, to))
    return 0;
  if (int error= may_rename(ha_thd(), from, to))
    return error;
  std::vector<std::string> made;
  if (int error= keep_both_names(from, to, &made))
    return error;
  const std::string replaced= replaced_in_recovery(from, to);
  if (!replaced.empty())
    if (int error= replace_in_recovery(from, replaced))
      return error;
  const std::string copied= copied_path(ha_thd(), from, to, replaced);
  const Table_names old_names(copied.empty() ? catalog_path(from) : copied), new_names(catalog_path(to));
  const PandoStatus status= pando_table_rename(db, text(from), text(to), text(old_names.table), text(new_names.table),
                                               text(copied.c_str()), statement_that_renames(ha_thd(), from, to));
  /* As InnoDB: also where not the table is there, but a foreign key of that name. */
  if (status == PANDO_STATUS_TABLE_EXISTS)
  {
    tell_of_foreign_folder(to);
    my_error(ER_TABLE_EXISTS_ERROR, MYF(0), to);
  }
  if (status)
    forget_new_names(made);
  if (!status)
    Expiry_purge::look_for_tables(!is_interim_name(from));
  const int error= error_of(status, ha_thd());
  /* EXCHANGE PARTITION and CONVERT PARTITION tell this one. */
  if (error)
    my_errno= error;
  return error;
}

int ha_pando::truncate()
{
  close_scan();
  Related_table::close_kept();
  return fail(pando_table_truncate(db, text(m_name.c_str())));
}
