/* System variables and status counters. */
#ifndef PANDO_VARIABLES_H
#define PANDO_VARIABLES_H

#include "server.h"
#include "pando.h"

namespace pando {

extern struct st_mysql_sys_var *system_variables[];
extern struct st_mysql_show_var status_variables[];

/* The options of this server's start for the engine. */
void fill_options(PandoOptions *options);

/* How long a connection waits for row locks: pando_lock_wait_timeout_ms, or else pando_lock_wait_timeout. */
ulonglong lock_wait_ms(THD *thd);

/* pando_commit_sync of a connection. */
bool commit_sync(THD *thd);

/* Once the database is open. */
void apply_lock_budget();
void apply_pushdown_memory_total();
void warn_of_too_much_memory();
void apply_flush_log_at_timeout();
void apply_key_rotation();
void apply_encrypt_tables();
void apply_optimize_rate();

/* pando_start_despite_damage: nothing is written, not by the plugin either. */
bool is_started_despite_damage();

/* pando_rollback_on_timeout: whether a lock wait timeout costs the whole transaction. */
bool rollback_on_timeout();

/* pando_pushdown, pando_pushdown_memory of a connection. */
bool pushdown_of(THD *thd);
ulonglong pushdown_memory_of(THD *thd);

/* pando_read_free_rpl. */
enum Read_free_rpl : ulong { READ_FREE_OFF, READ_FREE_PK_ONLY, READ_FREE_PK_SK };
Read_free_rpl read_free_rpl();

/* pando_blind_replace, pando_blind_delete_primary_key of a connection. */
bool blind_replace(const THD *thd);
bool blind_delete_primary_key(const THD *thd);

/* pando_delete_ranges of a connection. */
bool delete_ranges(const THD *thd);

/* pando_encrypt_tables. */
enum Encrypt_tables : ulong { ENCRYPT_TABLES_OFF, ENCRYPT_TABLES_ON, ENCRYPT_TABLES_FORCE };
ulong encrypt_tables_mode();

/* pando_ttl_period, pando_ttl_delay: in seconds. */
uint ttl_period();
uint ttl_delay();

/* Most threads that encode rows of one load. */
uint load_workers();

} // namespace pando

#endif
