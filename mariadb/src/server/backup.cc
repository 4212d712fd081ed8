/* Backups. BACKUP STAGE (of mariadb-backup or anybody else) copies no PANDO table; `pando backup` does, with a
   session that says `SET pando_backup= '...'` (crates/pandodb/src/backup_command.rs has the words).

   The session arms a backup. When a BACKUP STAGE ends, commits are still blocked: that is the moment at which the engine
   pins its state, and the one that mariadb-backup has written down as the position in the binary log. */
#include "backup.h"
#include "plugin.h"
#include "transaction.h"
#include "sql_parse.h"

namespace pando {

/* BACKUP STAGE START. */
static void note_start()
{
  if (!db || !pando_backup_would_lack_tables(db))
    return;
  static const char TEXT[]= "this backup does not have the PANDO tables; take one with the command: pando backup";
  sql_print_warning("PANDO: %s", TEXT);
  if (THD *thd= current_thd)
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_UNKNOWN_ERROR, TEXT);
}

/* BACKUP STAGE END: before the locks are released. */
static void note_end()
{
  if (db)
    pando_backup_pin(db);
}

void set_backup_functions(handlerton *hton)
{
  hton->prepare_for_backup= note_start;
  hton->end_backup= note_end;
}

void end_backup_of(THD *thd)
{
  pando_backup_end(db, thd_get_thread_id(thd));
}

/* The value that is set is a command, and becomes the answer. */
int run_backup_command(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value)
{
  if (!db || check_global_access(thd, RELOAD_ACL))
    return 1;
  char bytes[STRING_BUFFER_USUAL_SIZE];
  int length= sizeof(bytes);
  const char *command= value->val_str(value, bytes, &length);
  const char **answer= static_cast<const char **>(save);
  *answer= nullptr;
  if (!command || !length)
    return 0;
  /* The server tells us when the connection ends only if we have something of it. */
  Transaction::of(thd);
  PandoBuffer *buffer= pando_buffer_new();
  const PandoBytes words= {reinterpret_cast<const uchar *>(command), size_t(length)};
  const PandoStatus status= pando_backup_command(db, thd_get_thread_id(thd), words, buffer);
  if (status == PANDO_STATUS_OK)
  {
    const PandoBytes text= pando_buffer_bytes(buffer);
    *answer= thd_strmake(thd, reinterpret_cast<const char *>(text.data), text.len);
  }
  pando_buffer_free(buffer);
  if (status != PANDO_STATUS_OK)
  {
    String reason;
    error_text(&reason);
    my_printf_error(ER_UNKNOWN_ERROR, "pando_backup: %s", MYF(0), reason.c_ptr_safe());
    return 1;
  }
  return *answer ? 0 : 1;
}

} // namespace pando
