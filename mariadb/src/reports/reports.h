/* Who does what, for people: INFORMATION_SCHEMA.PANDO_TRX, PANDO_LOCKS and PANDO_LOCK_WAITS, whose columns are
   InnoDB's where they fit, and the last deadlock. Looking stops nobody, so the three tables, and rows of
   one of them, may be of slightly different moments.

   A transaction's id is that of its connection's transactions, one after the other: the engine numbers
   versions of rows by commits, not by who wrote them.

     lock_mode         S, X                       lock_type      lock_data
       a key           S, X                       RECORD         the key's columns
       a gap           S,GAP  X,GAP               RANGE          the range: others may not insert into it
       a stretch       S,RANGE  X,RANGE           RANGE          the range: every key in it is locked
       an insert       X,INSERT_INTENTION         RECORD         the key: waits for gaps of others

   The last deadlock is told in full when its victim hears of it: by then everybody else in it is still,
   or was until a moment ago, in the statement that waited. */
#ifndef PANDO_REPORTS_H
#define PANDO_REPORTS_H

#include "plugin.h"

namespace pando {

/* The calling connection has become the victim of a deadlock. */
void note_deadlock(THD *victim);

/* For SHOW ENGINE PANDO STATUS. */
void append_last_deadlock(String *out);
void append_transactions(String *out);

int init_trx_table(void *schema_table);
int init_locks_table(void *schema_table);
int init_lock_waits_table(void *schema_table);
int init_file_map_table(void *schema_table);
int init_tree_info_table(void *schema_table);
int init_encryption_table(void *schema_table);
int init_foreign_keys_table(void *schema_table);
int init_queries_declined_table(void *schema_table);
int init_last_plan_table(void *schema_table);

/* A moment as these reports show it. */
void append_moment(time_t moment, String *out);

} // namespace pando

#endif
