#include "variables.h"
#include "backup.h"
#include "encryption.h"
#include "expiry_purge.h"
#include "ha_pando.h"
#include "plugin.h"

#include <vector>

namespace pando {

static ulonglong memory;
static ulonglong cache_size;
static ulong flush_log_at_trx_commit;
static ulonglong checkpoint_period;
static my_bool direct_io;
static uint background_threads;
static uint load_threads;
static ulonglong log_file_size;
static my_bool rollback_on_lock_wait_timeout;
static ulonglong write_set_memory;
static ulonglong lock_budget;
static ulonglong load_memory;
static ulonglong pushdown_memory_total;
static ulonglong open_files;

static const ulonglong CACHE_SIZE_MIN= 8ULL << 20;
static const ulonglong MEMORY_MIN= 64ULL << 20;

/* What this process may have of the machine's memory: a container may have less than the machine. 0: not known. */
static ulonglong memory_there_is()
{
  const long pages= sysconf(_SC_PHYS_PAGES), page_size= sysconf(_SC_PAGESIZE);
  const ulonglong machine= pages > 0 && page_size > 0 ? ulonglong(pages) * ulonglong(page_size) : 0;
  const ulonglong group= pando_memory_limit_of_group();
  return group && (!machine || group < machine) ? group : machine;
}

static ulonglong part_of_memory(ulonglong part)
{
  const ulonglong all= memory_there_is();
  return MY_MAX((all ? all / part : 1ULL << 30) & ~((1ULL << 20) - 1), CACHE_SIZE_MIN);
}

static uint default_threads()
{
  const uint processors= pando_processors();
  return processors < 2 ? 2 : processors > 8 ? 8 : processors;
}

static uint all_processors()
{
  return MY_MAX(pando_processors(), 2U);
}

/* pando_memory= 0 goes by a cache that was asked for: it was larger than half of the machine before there was this limit. */
static ulonglong memory_limit()
{
  if (memory)
    return MY_MAX(memory, MEMORY_MIN);
  const ulonglong half= MY_MAX(part_of_memory(2), MEMORY_MIN);
  if (cache_size <= half)
    return half;
  return cache_size > ULONGLONG_MAX / 2 ? ULONGLONG_MAX : cache_size / 4 * 5;
}

/* Once, when the server has started: both engines take what they are given, and the kernel ends who has too much. */
void warn_of_too_much_memory()
{
  static const char POOL[]= "innodb_buffer_pool_size";
  sys_var *pool= find_sys_var(nullptr, POOL, sizeof(POOL) - 1, true);
  const LEX_CSTRING no_base= {nullptr, 0};
  const uchar *value= pool ? pool->value_ptr(nullptr, OPT_GLOBAL, &no_base) : nullptr;
  const ulonglong others= value ? *reinterpret_cast<const ulonglong *>(value) : 0;
  const ulonglong all= memory_there_is(), ours= memory_limit();
  if (all && (ours > all || others > all - ours))
    sql_print_warning("PANDO: pando_memory (%llu MiB) and %s (%llu MiB) are more than the %llu MiB of memory that this server may have%s. "
                      "Lower one of them", ours >> 20, POOL, others >> 20, all >> 20,
                      pando_memory_limit_of_group() == all ? " (limit of its control group)" : "");
}

static void apply_memory()
{
  pando_db_set_memory_bytes(db, memory_limit());
  apply_pushdown_memory_total();
}

static void update_memory(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulonglong *>(to)= *static_cast<const ulonglong *>(from);
  apply_memory();
}

static void update_cache_size(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulonglong *>(to)= *static_cast<const ulonglong *>(from);
  pando_db_set_cache_bytes(db, cache_size);
  apply_memory();
}

static void update_write_set_memory(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulonglong *>(to)= *static_cast<const ulonglong *>(from);
  pando_db_set_write_set_bytes(db, write_set_memory);
}

static void update_flush_mode(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulong *>(to)= *static_cast<const ulong *>(from);
  pando_db_set_flush_mode(db, uint32_t(flush_log_at_trx_commit));
}

static uint flush_log_at_timeout;

static void update_flush_log_at_timeout(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<uint *>(to)= *static_cast<const uint *>(from);
  apply_flush_log_at_timeout();
}

static my_bool cache_dump;

static void update_cache_dump(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<my_bool *>(to)= *static_cast<const my_bool *>(from);
  pando_db_set_cache_kept(db, cache_dump);
}

static void update_checkpoint_period(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulonglong *>(to)= *static_cast<const ulonglong *>(from);
  pando_db_set_checkpoint_period(db, checkpoint_period);
}

static void update_lock_budget(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulonglong *>(to)= *static_cast<const ulonglong *>(from);
  pando_db_set_lock_budget(db, lock_budget);
}

static MYSQL_SYSVAR_ULONGLONG(memory, memory, PLUGIN_VAR_RQCMDARG,
  "Memory that PANDO may take in all: recent changes that are not in the tables' files yet, uncommitted changes, row locks,"
  " bulk loads, SELECTs answered in the engine, and the cache of blocks, which has what the others leave."
  " 0: half of the memory of the machine, or a quarter more than pando_cache_size where that is larger than this half",
  nullptr, update_memory, 0, 0, ULONGLONG_MAX, 0);

static MYSQL_SYSVAR_ULONGLONG(cache_size, cache_size, PLUGIN_VAR_RQCMDARG,
  "The most that the memory cache may have in which PANDO keeps blocks of tables and indexes, decompressed."
  " It has less while other uses take more of pando_memory."
  " By default half of the memory of the machine",
  nullptr, update_cache_size, part_of_memory(2), CACHE_SIZE_MIN, ULONGLONG_MAX, 1 << 20);

static MYSQL_SYSVAR_ULONGLONG(write_set_memory, write_set_memory, PLUGIN_VAR_RQCMDARG,
  "Memory that the uncommitted changes of one transaction may take."
  " Beyond it they are written into the tables' files, where a commit makes them a part of the table"
  " and a rollback gives the space back",
  nullptr, update_write_set_memory, 64ULL << 20, 1ULL << 20, ULONGLONG_MAX, 4096);

static void update_load_memory(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulonglong *>(to)= *static_cast<const ulonglong *>(from);
  pando_db_set_load_memory_bytes(db, load_memory);
}

static MYSQL_SYSVAR_ULONGLONG(load_memory, load_memory, PLUGIN_VAR_RQCMDARG,
  "Memory that all bulk loads together (LOAD DATA, INSERT of many rows and ALTER TABLE by copy into an empty"
  " table) and the building of indexes may take. Beyond it sorted parts wait in the tables' files",
  nullptr, update_load_memory, 256ULL << 20, 16ULL << 20, ULONGLONG_MAX, 4096);

static MYSQL_SYSVAR_ULONG(flush_log_at_trx_commit, flush_log_at_trx_commit, PLUGIN_VAR_OPCMDARG,
  "Controls the durability/speed trade-off for commits."
  " Set to 0 (write and sync the log only once per second), 1 (sync it at each commit)"
  " or 2 (write it at each commit but sync only once per second; see pando_flush_log_at_timeout)."
  " 1 guarantees that after a crash, committed transactions will not be lost",
  nullptr, update_flush_mode, 1, 0, 2, 0);

static MYSQL_SYSVAR_UINT(flush_log_at_timeout, flush_log_at_timeout, PLUGIN_VAR_RQCMDARG,
  "Write and sync the log every so many seconds, where pando_flush_log_at_trx_commit does not do it at each commit",
  nullptr, update_flush_log_at_timeout, 1, 1, 2700, 0);

static MYSQL_SYSVAR_ULONGLONG(checkpoint_period, checkpoint_period, PLUGIN_VAR_RQCMDARG,
  "Seconds after which a changed table is written to its files, so that the log before can go."
  " A longer period writes less, a shorter one makes recovery after a crash quicker",
  nullptr, update_checkpoint_period, 60, 1, 86400, 0);

static MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
  "Timeout in seconds a PANDO transaction may wait for a row lock before being rolled back"
  " to where its statement began. 0 does not wait",
  nullptr, nullptr, 50, 0, 100000000, 0);

static MYSQL_THDVAR_ULONG(lock_wait_timeout_ms, PLUGIN_VAR_RQCMDARG,
  "Timeout in milliseconds a PANDO transaction may wait for a row lock. 0: what pando_lock_wait_timeout says",
  nullptr, nullptr, 0, 0, 100000000, 0);

static MYSQL_THDVAR_BOOL(commit_sync, PLUGIN_VAR_OPCMDARG,
  "Commits wait for the log's sync where pando_flush_log_at_trx_commit is 1. OFF: they do not, as with 2, and a crash of the machine may"
  " cost what was committed in the last pando_flush_log_at_timeout seconds. Commits in two phases (binary log, other engines) always do",
  nullptr, nullptr, TRUE);

static MYSQL_THDVAR_BOOL(pushdown, PLUGIN_VAR_OPCMDARG,
  "Answer SELECTs over many rows of PANDO tables (joins, subqueries, groups, windows, orders) in the engine, on all processors, where the"
  " answer is that of the server; and evaluate conditions there when rows are scanned. EXPLAIN shows which",
  nullptr, nullptr, TRUE);

static MYSQL_THDVAR_ULONGLONG(pushdown_memory, PLUGIN_VAR_RQCMDARG,
  "Memory that one SELECT answered in the engine may take for groups, joins and sorting. Beyond it these go on with a temporary file"
  " in tmpdir; what cannot, the server answers",
  nullptr, nullptr, 256ULL << 20, 1ULL << 20, ULONGLONG_MAX, 4096);

static void update_pushdown_memory_total(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulonglong *>(to)= *static_cast<const ulonglong *>(from);
  apply_pushdown_memory_total();
}

static MYSQL_SYSVAR_ULONGLONG(pushdown_memory_total, pushdown_memory_total, PLUGIN_VAR_RQCMDARG,
  "Memory that all SELECTs answered in the engine may take together. Beyond it those that want more go on with temporary files,"
  " or the server answers them. By default an eighth of the memory of the machine",
  nullptr, update_pushdown_memory_total, part_of_memory(8), 1ULL << 20, ULONGLONG_MAX, 4096);

static MYSQL_SYSVAR_BOOL(rollback_on_timeout, rollback_on_lock_wait_timeout, PLUGIN_VAR_OPCMDARG,
  "Roll back the complete transaction on a lock wait timeout, not only the statement that waited",
  nullptr, nullptr, FALSE);

static MYSQL_SYSVAR_BOOL(direct_io, direct_io, PLUGIN_VAR_NOCMDARG | PLUGIN_VAR_READONLY,
  "Read and write tables' files past the operating system's cache (O_DIRECT), where the file system"
  " can do that",
  nullptr, nullptr, FALSE);

static MYSQL_SYSVAR_UINT(background_threads, background_threads, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
  "Number of threads that move changes down the trees, merge and write checkpoints",
  nullptr, nullptr, default_threads(), 1, 64, 0);

static MYSQL_SYSVAR_UINT(load_threads, load_threads, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
  "Number of threads for bulk loads and index builds",
  nullptr, nullptr, all_processors(), 1, 1024, 0);

static MYSQL_SYSVAR_ULONGLONG(log_file_size, log_file_size, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
  "Size of each file of the log",
  nullptr, nullptr, 64ULL << 20, 1ULL << 20, 4ULL << 30, 4096);

static MYSQL_SYSVAR_ULONGLONG(open_files, open_files, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
  "File descriptors that tables' files may hold together. Beyond it the least recently used files give theirs up and"
  " get them again when they are needed. 0: a third of what the process may open",
  nullptr, nullptr, 0, 0, ULONGLONG_MAX, 0);

static MYSQL_SYSVAR_ULONGLONG(lock_budget, lock_budget, PLUGIN_VAR_RQCMDARG,
  "Row locks (about 100 bytes each) that a transaction may hold. Beyond it, lock escalation replaces them by"
  " range locks on neighbouring rows",
  nullptr, update_lock_budget, 200000, 1000, ULONGLONG_MAX, 0);

static my_bool start_despite_damage;

static MYSQL_SYSVAR_BOOL(start_despite_damage, start_despite_damage, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
  "Start where the log is damaged or parts of it are missing, with what can be read, and write nothing: to dump it."
  " Rows may be old or contradict each other",
  nullptr, nullptr, FALSE);

static MYSQL_SYSVAR_BOOL(cache_dump, cache_dump, PLUGIN_VAR_OPCMDARG,
  "Write down every five minutes, and at shutdown, which blocks the cache holds, so that a start can read them again",
  nullptr, update_cache_dump, TRUE);

static my_bool cache_load;

static MYSQL_SYSVAR_BOOL(cache_load, cache_load, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
  "After a start, read again in the background what the cache held (see pando_cache_dump)",
  nullptr, nullptr, TRUE);

static MYSQL_THDVAR_BOOL(blind_replace, PLUGIN_VAR_OPCMDARG,
  "REPLACE does not look for the row that it replaces, in tables whose keys have columns of the primary key only. Each row counts as 1"
  " row affected. Not where the binary log gets rows",
  nullptr, nullptr, FALSE);

static MYSQL_THDVAR_BOOL(blind_delete_primary_key, PLUGIN_VAR_OPCMDARG,
  "DELETE of rows by their whole primary key does not read them, in tables whose keys have columns of the primary key only. Rows that"
  " are not there count as affected. Not where the binary log gets rows",
  nullptr, nullptr, FALSE);

static MYSQL_THDVAR_BOOL(delete_ranges, PLUGIN_VAR_OPCMDARG,
  "A DELETE of all rows between two values of the primary key, or of a beginning of it, deletes the range and not each row, in tables"
  " without other keys, where its transaction has written nothing before and the binary log gets statements",
  nullptr, nullptr, TRUE);

static ulong read_free_rpl_mode;

static ulong encrypt_tables;
static my_bool encrypt_log;

static const char *encrypt_tables_names[]= {"OFF", "ON", "FORCE", nullptr};
/* Its last members differ between the server's versions. */
static TYPELIB choices_of(uint count, const char **names)
{
  TYPELIB choices= {};
  choices.count= count;
  choices.name= "";
  choices.type_names= names;
  return choices;
}
static TYPELIB encrypt_tables_typelib= choices_of(3, encrypt_tables_names);

static const char *read_free_rpl_names[]= {"OFF", "PK_ONLY", "PK_SK", nullptr};
static TYPELIB read_free_rpl_typelib= choices_of(3, read_free_rpl_names);

static MYSQL_SYSVAR_ENUM(read_free_rpl, read_free_rpl_mode, PLUGIN_VAR_RQCMDARG,
  "Replicas apply row events without reading rows and without looking whether unique keys are there. PK_ONLY: of tables that have a primary"
  " key and no other; PK_SK: of all that have a primary key. The source must write full row images, and the replica's rows must be"
  " the source's",
  nullptr, nullptr, READ_FREE_OFF, &read_free_rpl_typelib);

static uint ttl_period_s, ttl_delay_s;

static void update_ttl(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<uint *>(to)= *static_cast<const uint *>(from);
  Expiry_purge::wake();
}

static MYSQL_SYSVAR_UINT(ttl_period, ttl_period_s, PLUGIN_VAR_RQCMDARG,
  "Seconds between two looks for rows of tables with TTL that can be removed. 0: they stay in their tables, where nobody sees them",
  nullptr, update_ttl, 60, 0, UINT_MAX32, 0);

static MYSQL_SYSVAR_UINT(ttl_delay, ttl_delay_s, PLUGIN_VAR_RQCMDARG,
  "Rows of tables with TTL are removed so many seconds after they have expired, or later. Until then a row event of a source can change them",
  nullptr, update_ttl, 600, 0, UINT_MAX32, 0);

uint ttl_period()
{
  return ttl_period_s;
}

uint ttl_delay()
{
  return ttl_delay_s;
}

static void update_encrypt_tables(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<ulong *>(to)= *static_cast<const ulong *>(from);
  apply_encrypt_tables();
}

static MYSQL_SYSVAR_ENUM(encrypt_tables, encrypt_tables, PLUGIN_VAR_OPCMDARG,
  "Encrypt tables that say nothing of ENCRYPTED, or say DEFAULT: new ones at once, those that are there in the background. FORCE: no table can"
  " be created with ENCRYPTED=NO",
  nullptr, update_encrypt_tables, ENCRYPT_TABLES_OFF, &encrypt_tables_typelib);

static MYSQL_SYSVAR_BOOL(encrypt_log, encrypt_log, PLUGIN_VAR_OPCMDARG,
  "Encrypt all of the log, with key 1. What encrypted tables have in it is encrypted in any case",
  check_encrypt_log, nullptr, FALSE);

static uint encryption_rotate_key_age, encryption_rotation_rate;

static void update_key_rotation(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<uint *>(to)= *static_cast<const uint *>(from);
  apply_key_rotation();
}

static MYSQL_SYSVAR_UINT(encryption_rotate_key_age, encryption_rotate_key_age, PLUGIN_VAR_RQCMDARG,
  "Files of encrypted tables are rewritten in the background when the version of the key that some of their blocks have is so many behind the"
  " newest one, or more. 0: never",
  nullptr, update_key_rotation, 1, 0, UINT_MAX32, 0);

static MYSQL_SYSVAR_UINT(encryption_rotation_rate, encryption_rotation_rate, PLUGIN_VAR_RQCMDARG,
  "MiB a second at which files may be rewritten in the background because of encryption: with a newer version of their key, and when"
  " pando_encrypt_tables encrypts tables that are there. 0: as fast as it goes",
  nullptr, update_key_rotation, 20, 0, 1000000, 0);

static uint optimize_rate;

static void update_optimize_rate(THD *, st_mysql_sys_var *, void *to, const void *from)
{
  *static_cast<uint *>(to)= *static_cast<const uint *>(from);
  apply_optimize_rate();
}

static MYSQL_SYSVAR_UINT(optimize_rate, optimize_rate, PLUGIN_VAR_RQCMDARG,
  "MiB a second that OPTIMIZE TABLE may rewrite, of all tables together; also while it runs. 0: as fast as it goes",
  nullptr, update_optimize_rate, 0, 0, 1000000, 0);

static MYSQL_THDVAR_UINT(default_encryption_key_id, PLUGIN_VAR_RQCMDARG,
  "Key that encrypted tables get that say nothing of ENCRYPTION_KEY_ID",
  nullptr, nullptr, LOG_KEY_ID, 1, UINT_MAX32, 0);

/* Here because the default of one is a variable. COMPRESSION: in the order of PandoCompression; ENCRYPTED: in that of
   Encrypted. */
ha_create_table_option table_options[]=
{
  HA_TOPTION_ENUM("COMPRESSION", compression, "ZSTD,LZ4,NONE", 0),
  HA_TOPTION_NUMBER("COMPRESSION_LEVEL", compression_level, 3, 1, 19, 1),
  HA_TOPTION_ENUM("ENCRYPTED", encrypted, "DEFAULT,YES,NO", 0),
  HA_TOPTION_SYSVAR("ENCRYPTION_KEY_ID", encryption_key_id, default_encryption_key_id),
  HA_TOPTION_STRING("TTL", ttl),
  HA_TOPTION_END
};

ulong encrypt_tables_mode()
{
  return encrypt_tables;
}

static MYSQL_THDVAR_STR(backup, PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_MEMALLOC,
  "What the command \"pando backup\" asks of the engine, and then the answer. Ends with the session",
  run_backup_command, nullptr, nullptr);

struct st_mysql_sys_var *system_variables[]=
{
  MYSQL_SYSVAR(memory),
  MYSQL_SYSVAR(cache_size),
  MYSQL_SYSVAR(write_set_memory),
  MYSQL_SYSVAR(load_memory),
  MYSQL_SYSVAR(flush_log_at_trx_commit),
  MYSQL_SYSVAR(flush_log_at_timeout),
  MYSQL_SYSVAR(checkpoint_period),
  MYSQL_SYSVAR(lock_wait_timeout),
  MYSQL_SYSVAR(lock_wait_timeout_ms),
  MYSQL_SYSVAR(commit_sync),
  MYSQL_SYSVAR(rollback_on_timeout),
  MYSQL_SYSVAR(direct_io),
  MYSQL_SYSVAR(background_threads),
  MYSQL_SYSVAR(load_threads),
  MYSQL_SYSVAR(log_file_size),
  MYSQL_SYSVAR(open_files),
  MYSQL_SYSVAR(lock_budget),
  MYSQL_SYSVAR(start_despite_damage),
  MYSQL_SYSVAR(pushdown),
  MYSQL_SYSVAR(pushdown_memory),
  MYSQL_SYSVAR(backup),
  MYSQL_SYSVAR(encrypt_tables),
  MYSQL_SYSVAR(encrypt_log),
  MYSQL_SYSVAR(cache_dump),
  MYSQL_SYSVAR(cache_load),
  MYSQL_SYSVAR(default_encryption_key_id),
  MYSQL_SYSVAR(encryption_rotate_key_age),
  MYSQL_SYSVAR(encryption_rotation_rate),
  MYSQL_SYSVAR(optimize_rate),
  MYSQL_SYSVAR(pushdown_memory_total),
  MYSQL_SYSVAR(blind_replace),
  MYSQL_SYSVAR(delete_ranges),
  MYSQL_SYSVAR(blind_delete_primary_key),
  MYSQL_SYSVAR(read_free_rpl),
  MYSQL_SYSVAR(ttl_period),
  MYSQL_SYSVAR(ttl_delay),
  nullptr
};

void apply_flush_log_at_timeout()
{
  pando_db_set_log_sync_period(db, flush_log_at_timeout);
}

void apply_key_rotation()
{
  pando_db_set_key_rotation(db, encryption_rotate_key_age, uint64_t(encryption_rotation_rate) << 20);
}

void apply_encrypt_tables()
{
  pando_db_set_encrypt_tables(db, encrypt_tables != ENCRYPT_TABLES_OFF);
}

void apply_optimize_rate()
{
  pando_db_set_optimize_rate(db, uint64_t(optimize_rate) << 20);
}

void apply_pushdown_memory_total()
{
  pando_query_set_memory_total(MY_MIN(pushdown_memory_total, pando_db_query_memory_max(db)));
}

void apply_lock_budget()
{
  pando_db_set_lock_budget(db, lock_budget);
}

ulonglong lock_wait_ms(THD *thd)
{
  const ulonglong ms= THDVAR(thd, lock_wait_timeout_ms);
  return ms ? ms : ulonglong(THDVAR(thd, lock_wait_timeout)) * 1000;
}

bool commit_sync(THD *thd)
{
  return THDVAR(thd, commit_sync);
}

bool pushdown_of(THD *thd)
{
  return THDVAR(thd, pushdown);
}

ulonglong pushdown_memory_of(THD *thd)
{
  return THDVAR(thd, pushdown_memory);
}

bool blind_replace(const THD *thd)
{
  return THDVAR(const_cast<THD *>(thd), blind_replace);
}

bool blind_delete_primary_key(const THD *thd)
{
  return THDVAR(const_cast<THD *>(thd), blind_delete_primary_key);
}

bool delete_ranges(const THD *thd)
{
  return THDVAR(const_cast<THD *>(thd), delete_ranges);
}

Read_free_rpl read_free_rpl()
{
  return Read_free_rpl(read_free_rpl_mode);
}

uint load_workers()
{
  return load_threads;
}

bool is_started_despite_damage()
{
  return start_despite_damage;
}

bool rollback_on_timeout()
{
  return rollback_on_lock_wait_timeout;
}

void fill_options(PandoOptions *options)
{
  options->memory_bytes= memory_limit();
  options->cache_bytes= cache_size;
  options->cache_kept= cache_dump;
  options->cache_load= cache_load;
  options->write_set_bytes= write_set_memory;
  options->load_memory_bytes= load_memory;
  options->flush_mode= uint32_t(flush_log_at_trx_commit);
  options->background_threads= background_threads;
  options->load_threads= load_threads;
  options->checkpoint_period_s= checkpoint_period;
  options->lock_wait_s= THDVAR(static_cast<THD *>(nullptr), lock_wait_timeout);
  options->log_file_bytes= log_file_size;
  options->descriptors= open_files;
  options->direct_io= direct_io;
  options->log= log_line;
  options->encrypt_log= encrypt_log;
  options->despite_damage= start_despite_damage;
}

/* Whom the log is kept for, in memory of who asks. */
static char *log_holder(THD *thd)
{
  PandoBuffer *buffer= pando_buffer_new();
  pando_db_log_holder(db, buffer);
  const PandoBytes holder= pando_buffer_bytes(buffer);
  char *text= thd_strmake(thd, reinterpret_cast<const char *>(holder.data), holder.len);
  pando_buffer_free(buffer);
  return text;
}

/* The counters' values, taken anew each time somebody asks. Several may at once: the memory is of who asks. */
static int show_counters(THD *thd, st_mysql_show_var *variable, char *)
{
  const uint count= pando_metric_count();
  auto values= static_cast<uint64_t *>(thd_calloc(thd, count * sizeof(uint64_t)));
  auto counters= static_cast<st_mysql_show_var *>(thd_calloc(thd, (count + 3) * sizeof(st_mysql_show_var)));
  auto removed= static_cast<ulonglong *>(thd_calloc(thd, sizeof(ulonglong)));
  char *holder= log_holder(thd);
  if (!values || !counters || !holder || !removed)
    return 1;
  pando_db_metrics(db, values, count);
  for (uint i= 0; i < count; i++)
    counters[i]= {pando_metric_name(i), &values[i], SHOW_ULONGLONG};
  counters[count]= {"log_holder", holder, SHOW_CHAR};
  *removed= Expiry_purge::rows_removed();
  counters[count + 1]= {"ttl_rows_removed", removed, SHOW_ULONGLONG};
  counters[count + 2]= {nullptr, nullptr, SHOW_UNDEF};
  variable->type= SHOW_ARRAY;
  variable->value= counters;
  return 0;
}

struct st_mysql_show_var status_variables[]=
{
  {"Pando", reinterpret_cast<void *>(show_counters), SHOW_FUNC},
  {nullptr, nullptr, SHOW_UNDEF}
};

} // namespace pando
