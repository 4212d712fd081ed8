/* The plugin: its declaration, start and stop, and the handlerton. */
#include "plugin.h"
#include "backup.h"
#include "definition.h"
#include "server_files.h"
#include "encryption.h"
#include "expiry_purge.h"
#include "related_table.h"
#include "ha_pando.h"
#include "performance_schema.h"
#include "replication.h"
#include "reports.h"
#include "transaction.h"
#include "pushdown.h"
#include "select_translate.h"
#include "variables.h"
#include <csignal>

/* The server's; no header has it. */
void ignore_db_dirs_append(const char *directory);

namespace pando {

handlerton *hton;
PandoDb *db;

static const char *extensions[]= {".pando", NullS};

static handler *create_handler(handlerton *engine, TABLE_SHARE *share, MEM_ROOT *mem_root)
{
  if (!share)
    handler_is_made();
  return new (mem_root) ha_pando(engine, share);
}

static bool flush_logs(handlerton *)
{
  return error_of(pando_db_flush_logs(db), nullptr) != 0;
}

static bool show_status(handlerton *, THD *thd, stat_print_fn *print, enum ha_stat_type type)
{
  if (type != HA_ENGINE_STATUS)
    return false;
  PandoBuffer *buffer= pando_buffer_new();
  pando_db_status_text(db, buffer);
  PandoBytes counters= pando_buffer_bytes(buffer);
  String text;
  text.append(reinterpret_cast<const char *>(counters.data), counters.len);
  pando_buffer_free(buffer);
  append_last_foreign_key_error(&text);
  append_last_deadlock(&text);
  append_transactions(&text);
  append_declined_selects(&text);
  return print(thd, STRING_WITH_LEN("PANDO"), STRING_WITH_LEN(""), text.ptr(), text.length());
}

/* The server has dropped the tables it knows; what is left are tables whose definition was lost. */
static void drop_database(handlerton *, char *path)
{
  Related_table::close_kept();
  error_of(pando_drop_database(db, text(path)), nullptr);
  remove_partitioning_files(path);
  THD *thd= current_thd;
  if (!thd)
    return;
  /* The server is about to remove the directory, and does not sync the one above. Its recovery of DDL ends with no commit, but goes on
     without a word where the directory is gone already. */
  if (is_in_ddl_recovery())
    remove_directory_durably(path);
  else
    Transaction::of(thd)->sync_at_implicit_commit(mysql_real_data_home);
}

#ifdef PANDO_SERVER_11_8
/* Milliseconds, about those of InnoDB, so that plans are alike. */
static void set_costs(OPTIMIZER_COSTS *costs)
{
  costs->row_next_find_cost= 0.00007;
  costs->row_lookup_cost= 0.00077;
  costs->key_next_find_cost= 0.0001;
  costs->key_lookup_cost= 0.0008;
}
#endif

/* The server has started, and its variables are what they are. */
static int has_recovered(handlerton *engine)
{
  warn_of_too_much_memory();
  if (!is_started_despite_damage())
    Expiry_purge::start();
  return restore_definition_files(engine);
}

static void before_shutdown()
{
  Expiry_purge::stop();
  Related_table::close_kept();
}

/* A limit on the size of files (RLIMIT_FSIZE) is to make writes fail, as a full disk does, and not to end the server. Who has set an action keeps it. */
static void ignore_file_size_signal()
{
  struct sigaction action;
  if (sigaction(SIGXFSZ, nullptr, &action) || (action.sa_flags & SA_SIGINFO) || action.sa_handler != SIG_DFL)
    return;
  action.sa_handler= SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

static int start(void *plugin)
{
  ignore_file_size_signal();
  hton= static_cast<handlerton *>(plugin);
  hton->flags= HTON_SUPPORTS_EXTENDED_KEYS | HTON_SUPPORTS_FOREIGN_KEYS;
  hton->tablefile_extensions= extensions;
  hton->table_options= table_options;
  hton->index_options= index_options;
  hton->create= create_handler;
  hton->flush_logs= flush_logs;
  hton->show_status= show_status;
  hton->drop_database= drop_database;
  hton->check_version= check_version;
  hton->discover_table= discover_table;
  hton->discover_table_existence= discover_table_existence;
  hton->discover_table_names= discover_table_names;
  hton->signal_ddl_recovery_done= has_recovered;
  hton->create_partitioning_metadata= sync_partitioning_files;
  hton->create_group_by= create_pushdown;
  /* What is kept open keeps the plugin. */
  hton->pre_shutdown= before_shutdown;
  hton->create_select= create_select_pushdown;
#ifdef PANDO_SERVER_11_8
  hton->update_optimizer_costs= set_costs;
#endif
  set_transaction_functions(hton);
  set_backup_functions(hton);

  /* The engine's own directory is not a database. */
  static const char NAME[]= ".pando";
  ignore_db_dirs_append(NAME);
  Bytes engine_dir;
  engine_dir.append(mysql_real_data_home, strlen(mysql_real_data_home));
  engine_dir.append_byte('/');
  engine_dir.append(NAME, sizeof(NAME) - 1);
  observe_engine();
  PandoOptions options= {};
  options.base_dir= text(mysql_real_data_home);
  options.engine_dir= engine_dir.view();
  fill_options(&options);
  set_replication_functions(&options);
  set_key_functions(&options);
  if (PandoStatus status= pando_db_open(&options, &db))
  {
    if (!error_of(status, nullptr))
      return 0;
    String reason;
    error_text(&reason);
    sql_print_error("PANDO: cannot open the database: %s", reason.c_ptr_safe());
    return HA_ERR_INITIALIZATION;
  }
  apply_lock_budget();
  apply_pushdown_memory_total();
  apply_flush_log_at_timeout();
  apply_key_rotation();
  apply_encrypt_tables();
  apply_optimize_rate();
  if (!is_started_despite_damage())
    prepare_files_for_recovery();
  return 0;
}

static int stop(void *)
{
  if (!db)
    return 0;
  before_shutdown();
  PandoDb *open= db;
  db= nullptr;
  return error_of(pando_db_close(open), nullptr) != 0;
}

static struct st_mysql_storage_engine storage_engine= {MYSQL_HANDLERTON_INTERFACE_VERSION};

static struct st_mysql_information_schema information_schema= {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

} // namespace pando

#define PANDO_INFORMATION_SCHEMA_TABLE(name, description, init)                                              \
  {                                                                                                          \
    MYSQL_INFORMATION_SCHEMA_PLUGIN, &pando::information_schema, name, "The Pando developers", description,  \
    PLUGIN_LICENSE_GPL, init, nullptr, 0x0001, nullptr, nullptr, "0.1", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL \
  }

maria_declare_plugin(pando)
{
  MYSQL_STORAGE_ENGINE_PLUGIN,
  &pando::storage_engine,
  "PANDO",
  "The Pando developers",
  "Write-optimised trees: fast inserts at any size, compression, transactions, row-level locking",
  PLUGIN_LICENSE_GPL,
  pando::start,
  pando::stop,
  0x0001,
  pando::status_variables,
  pando::system_variables,
  "0.1",
  MariaDB_PLUGIN_MATURITY_EXPERIMENTAL
},
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_TRX", "PANDO: transactions", pando::init_trx_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_LOCKS", "PANDO: row locks held and waited for", pando::init_locks_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_LOCK_WAITS", "PANDO: who waits for whom", pando::init_lock_waits_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_FILE_MAP", "PANDO: which file has what", pando::init_file_map_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_FRACTAL_TREE_INFO", "PANDO: what trees consist of", pando::init_tree_info_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_ENCRYPTION", "PANDO: keys of encrypted tables", pando::init_encryption_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_FOREIGN_KEYS", "PANDO: foreign keys as the catalog has them", pando::init_foreign_keys_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_QUERIES_DECLINED", "PANDO: why SELECTs were left to the server", pando::init_queries_declined_table),
PANDO_INFORMATION_SCHEMA_TABLE("PANDO_LAST_PLAN", "PANDO: how the session's last SELECT was answered", pando::init_last_plan_table)
maria_declare_plugin_end;
