/* A table's definition: the server keeps it in NAME.frm, which no log covers; the engine's catalog keeps a copy in the
   same record as the table (crates/pandodb/src/catalog/definition.rs). They are compared when a table is opened, and a lost or
   old file is written anew: when the server discovers the table, and when it starts. */
#ifndef PANDO_DEFINITION_H
#define PANDO_DEFINITION_H

#include "bytes.h"

#include <string>

namespace pando {

/* What the catalog records of a definition. */
class Definition
{
public:
  /* `path` is the engine's: of the table, or of one partition. */
  Definition(const char *path, const TABLE *table, const LEX_CUSTRING &id);
  /* The server's file, unless it is of another definition. */
  void set_image(const uchar *image, size_t size);
  /* The same, from the file. False: it cannot be read now, and my_errno says why. */
  bool read_image(TABLE_SHARE *share);
  PandoDefinition view() const;
  /* Whether columns and keys are the same: then each can be opened as the other (catalog/definition.rs compares no more). */
  bool has_shape_of(const Definition &other) const;

private:
  void describe_field(Field *field);
  void describe_key(const TABLE *table, const KEY &key);
  void append_text(const char *text, size_t size);
  void append_number(uint64_t number);

  char m_id[2 * MY_UUID_SIZE + 1];
  size_t m_id_size;
  Bytes m_shape, m_partition, m_image;
};

/* Whether there is a file for this very table: partitions share one. Not to be asked of temporary tables. (The server calls
   every share temporary from which it creates or alters a table.) */
bool has_own_file(const TABLE_SHARE *share);

/* Whether the table in the engine is the one that the server is about to open. Otherwise the error for the server. */
int check_definition(const char *path, TABLE *table);

/* Whether there is a folder of this name that is no table's, as after a copy by hand. The error log then says so. */
bool tell_of_foreign_folder(const char *path);

/* What a statement fills before the table or the partition gets its name: #sql..., t#P#p#TMP#. */
bool is_interim_name(const char *path);
/* Of a table `database/table` of such a name, after the server's recovery of DDL: that it is there, and how it is removed. */
void tell_of_leftover(const std::string &path);

/* The id in an image: a field of the section behind the header. False: it has none, or is no image. */
bool id_of_image(const uchar *image, size_t size, LEX_CUSTRING *id);
/* As the catalog has ids: how many characters it has written to `to`, which has room for 2 * MY_UUID_SIZE + 1. */
size_t hex_of_id(const LEX_CUSTRING &id, char *to);
/* The server's file of a share, or what is to become it. */
bool read_definition_image(TABLE_SHARE *share, Bytes *to);

/* False: it cannot be read, or is too large for a definition. */
bool read_file(const char *file_name, Bytes *bytes);
/* Writes a file in one step: after a crash there is the old one or the new one. */
bool replace_file(const char *file_name, PandoBytes content);

/* Of the handlerton. */
int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong);
int discover_table(handlerton *, THD *thd, TABLE_SHARE *share);
int discover_table_existence(handlerton *, const char *database, const char *name);
int discover_table_names(handlerton *, Database_name *database, MY_DIR *, handlerton::discovered_list *result);
int restore_definition_files(handlerton *);

} // namespace pando

#endif
