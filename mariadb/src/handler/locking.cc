/* What a statement may see, and what it locks: the decisions are InnoDB's, as its users know them.

     statement                                     reads            isolation
     SELECT                                        snapshot         REPEATABLE READ: the transaction's
                                                                    READ COMMITTED, READ UNCOMMITTED:
                                                                    the statement's
                                                   shared locks     SERIALIZABLE within a transaction
     SELECT ... LOCK IN SHARE MODE                 shared locks
     SELECT ... FOR UPDATE, UPDATE, DELETE,        exclusive locks
     and tables that are written to
     tables that writing statements only read      shared locks     REPEATABLE READ, SERIALIZABLE
       (INSERT ... SELECT, UPDATE ... (SELECT))    snapshot         READ COMMITTED and below
     CHECKSUM TABLE, ANALYZE TABLE                 snapshot
     HANDLER ... READ                              snapshot         as SELECT's, but SERIALIZABLE: the transaction's

   A locking read sees the newest committed version of the row it has locked, or the transaction's own. In
   REPEATABLE READ and SERIALIZABLE it also keeps others from inserting where it has looked: the gaps between
   the rows of a scan, or the key itself where one whole unique key is looked up. */
#include "pushdown_filter.h"
#include "definition.h"
#include "foreign_key_ddl.h"
#include "replication.h"

using namespace pando;

static const uint64_t COPY_PIECE_BYTES= 64ULL << 20;

/* HANDLER names its lock when it opens the table, and takes it at each READ. */
static bool is_of_handler(int command)
{
  return command == SQLCOM_HA_OPEN || command == SQLCOM_HA_READ;
}

THR_LOCK_DATA **ha_pando::store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type lock_type)
{
  if (lock_type != TL_IGNORE)
    Transaction::of(thd)->prepare_statement();
  lock_for(thd, lock_type);
  return to;
}

void ha_pando::lock_for(THD *thd, thr_lock_type lock_type)
{
  const int command= thd_sql_command(thd);
  const bool in_lock_tables= thd_in_lock_tables(thd);
  /* Another connection may be calling, on its way to drop the table. */
  if (command == SQLCOM_DROP_TABLE || command == SQLCOM_DROP_SEQUENCE)
    return;
  if (lock_type == TL_IGNORE)
    return;
  const bool lock= (lock_type == TL_READ && in_lock_tables) ||
                   (lock_type == TL_READ_HIGH_PRIORITY && in_lock_tables) ||
                   lock_type == TL_READ_WITH_SHARED_LOCKS || lock_type == TL_READ_SKIP_LOCKED ||
                   lock_type == TL_READ_NO_INSERT || (command != SQLCOM_SELECT && !is_of_handler(command));
  /* Rows in the wrong partition are looked for by a scan; ALTER TABLE ... CHECK PARTITION is a CHECK TABLE. */
  const bool is_check= command == SQLCOM_CHECK || (command == SQLCOM_ALTER_TABLE && lock_type == TL_READ_NO_INSERT &&
                                                   (thd->lex->alter_info.partition_flags & ALTER_PARTITION_ADMIN));
  const bool consistent=
    is_check || command == SQLCOM_CHECKSUM || command == SQLCOM_CREATE_SEQUENCE ||
    (command == SQLCOM_ANALYZE && lock_type == TL_READ) ||
    (Transaction::of(thd)->isolation() <= ISO_READ_COMMITTED &&
     (lock_type == TL_READ || lock_type == TL_READ_NO_INSERT) &&
     (command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT || command == SQLCOM_UPDATE ||
      command == SQLCOM_CREATE_TABLE));
  m_stored_lock= lock && !consistent ? Lock::SHARED : Lock::NONE;
  m_lock= m_stored_lock;
  m_skip_locked= lock_type == TL_WRITE_SKIP_LOCKED || lock_type == TL_READ_SKIP_LOCKED;
}

int ha_pando::external_lock(THD *thd, int lock_type)
{
  Transaction *transaction= Transaction::of(thd);
  m_columns_prepared= false;
  if (lock_type == F_UNLCK)
  {
    close_scan();
    abort_bulk_insert();
    m_foreign.end();
    if (m_sequence_txn)
      pando_txn_rollback(m_sequence_txn);
    transaction->end_table();
    return 0;
  }
  if (lock_type == F_WRLCK && table_share->tmp_table == NO_TMP_TABLE &&
      refuse_binlog_format(thd, table_flags() & HA_BINLOG_STMT_CAPABLE))
    return HA_ERR_LOGGING_IMPOSSIBLE;
  m_auto_increment_noted= 0;
  leave_out_damaged_keys();
  /* A handler that is kept open across statements (HANDLER) goes on by key. */
  m_at_cursor= false;
  transaction->prepare_statement();
  if (lock_type == F_WRLCK && is_kept_unique_by_server())
    transaction->take_gaps();
  if (lock_type == F_WRLCK)
    m_lock= m_stored_lock= Lock::EXCLUSIVE;
  else if (m_lock == Lock::NONE && transaction->isolation() == ISO_SERIALIZABLE &&
           thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN) && !is_of_handler(thd_sql_command(thd)))
    m_lock= m_stored_lock= Lock::SHARED;
  if (is_locking())
    transaction->will_lock();
  if (int error= begin_expiry(thd))
    return error;
  if (lock_type == F_WRLCK)
    if (int error= m_foreign.begin(thd))
      return error;
  transaction->begin_table();
  return 0;
}

/* Within LOCK TABLES and stored functions, tables are taken once for many statements. */
int ha_pando::start_stmt(THD *thd, thr_lock_type lock_type)
{
  Transaction *transaction= Transaction::of(thd);
  transaction->forget_kill();
  transaction->register_with_server();
  m_columns_prepared= false;
  m_at_cursor= false;
  m_auto_increment_noted= 0;
  if (table_share->tmp_table != NO_TMP_TABLE)
    m_lock= Lock::EXCLUSIVE;
  else if (thd_sql_command(thd) == SQLCOM_SELECT && lock_type == TL_READ &&
           transaction->isolation() != ISO_SERIALIZABLE)
    m_lock= Lock::NONE;
  else
    m_lock= m_stored_lock;
  if (m_lock == Lock::EXCLUSIVE && is_kept_unique_by_server())
    transaction->take_gaps();
  if (is_locking())
    transaction->will_lock();
  if (int error= begin_expiry(thd))
    return error;
  return m_lock == Lock::EXCLUSIVE ? m_foreign.begin(thd) : 0;
}

PandoRead ha_pando::read_mode() const
{
  switch (m_lock)
  {
  case Lock::SHARED:    return PANDO_READ_SHARED;
  case Lock::EXCLUSIVE: return PANDO_READ_EXCLUSIVE;
  case Lock::NONE:      break;
  }
  return m_read_latest || m_copy_txn || m_sequence_txn ? PANDO_READ_LATEST : PANDO_READ_SNAPSHOT;
}

/* Keys that the server keeps unique (USING HASH, WITHOUT OVERLAPS) it looks up in an index that is not unique: there it
   has to meet rows of others that are not committed, in every isolation level. */
bool ha_pando::is_kept_unique_by_server() const
{
  return table_share->long_unique_table || table_share->period.unique_keys;
}

bool ha_pando::takes_gaps() const
{
  return (is_kept_unique_by_server() || Transaction::of(ha_thd())->isolation() > ISO_READ_COMMITTED) &&
         !m_copy_txn && !m_sequence_txn;
}

/* Whether a locking scan may have more rows in the engine's hands than it has been given. */
bool ha_pando::may_read_ahead() const
{
  return is_locking() && !m_copy_txn && !m_sequence_txn && takes_gaps() == may_lock_ahead();
}

/* Whether the rows that a scan meets stay locked, so that they can be locked many at once. */
bool ha_pando::may_lock_ahead() const
{
  return is_locking() && Transaction::of(ha_thd())->isolation() > ISO_READ_COMMITTED && !m_copy_txn && !m_sequence_txn;
}

/* Whether the statement keeps the lock of each row that a scan of rows gives it: it asks nothing of rows but what the engine
   has evaluated, and reads them to the end. */
bool ha_pando::keeps_rows() const
{
  const THD *thd= ha_thd();
  const int command= thd_sql_command(thd);
  SELECT_LEX *select= thd->lex->first_select_lex();
  const TABLE_LIST *from= table->pos_in_table_list;
  return (command == SQLCOM_SELECT || command == SQLCOM_UPDATE || command == SQLCOM_DELETE) && select &&
         select->table_list.elements == 1 && select->table_list.first == from && !from->belong_to_view &&
         !select->next_select() && !select->limit_params.explicit_limit && thd->variables.select_limit == HA_POS_ERROR &&
         !thd->lex->with_rownum && !m_skip_locked &&
         (select->where ? m_filter && m_filter->is_whole() : !table->file->pushed_cond);
}

/* Counts the transaction's writes to the table; perhaps those to others, too. */
uint64_t *ha_pando::writes() const
{
  return Transaction::of(ha_thd())->writes_to(m_name);
}

/* The row that this scan is at has been written: what it has of those that come is what they are. */
void ha_pando::note_write(bool is_at_row)
{
  uint64_t *writes= this->writes();
  if (is_at_row && m_writes_seen == *writes)
    m_writes_seen++;
  ++*writes;
}

/* In READ COMMITTED an UPDATE that meets a locked row reads what was last committed of it. If that matches, the server
   asks for the next row, and gets the same one, which has been waited for by then; if not, it passes by. As in
   InnoDB, only where rows are scanned, not where they are found by a key. */
void ha_pando::try_semi_consistent_read(bool yes)
{
  m_peeks= yes && Transaction::of(ha_thd())->isolation() <= ISO_READ_COMMITTED;
}

/* The server has found that the row it has just read does not match. */
void ha_pando::unlock_row()
{
  m_is_peek= false;
  if (!is_locking() || !m_row_just_locked || Transaction::of(ha_thd())->isolation() > ISO_READ_COMMITTED)
    return;
  pando_txn_unlock(txn(), m_table, 0, m_row_key.view());
  m_row_just_locked= false;
}

/* End of a statement. */
int ha_pando::reset()
{
  close_scan();
  m_filter.reset();
  m_deleted_range.is_any= false;
  abort_bulk_insert();
  m_decides_duplicates= m_replaces_duplicates= m_may_overwrite= false;
  m_foreign.end();
  leave_other_place();
  if (m_sequence_txn)
    pando_txn_rollback(m_sequence_txn);
  m_large.release();
  m_estimates.clear(); /* an idle table keeps no keys */
  m_columns_prepared= false;
  m_keyread= false;
  m_skip_locked= false;
  m_peeks= m_is_peek= false;
  m_range_end= nullptr;
  pushed_idx_cond= nullptr;
  pushed_idx_cond_keyno= MAX_KEY;
  in_range_check_pushed_down= false;
  return 0;
}

int ha_pando::extra(ha_extra_function operation)
{
  if (is_begin_of_ignoring_copy(operation))
  {
    m_decides_duplicates= true;
    operation= EXTRA_BEGIN_COPY;
  }
  switch (operation)
  {
  case HA_EXTRA_KEYREAD:
    m_keyread= true;
    refresh_index_flags();
    break;
  case HA_EXTRA_NO_KEYREAD:
    m_keyread= false;
    refresh_index_flags();
    break;
  case HA_EXTRA_WRITE_CAN_REPLACE:
    m_may_overwrite= true;
    /* fall through */
  case HA_EXTRA_INSERT_WITH_UPDATE:
    m_replaces_duplicates= true;
    /* fall through */
  case HA_EXTRA_IGNORE_DUP_KEY:
    m_decides_duplicates= true;
    break;
  case HA_EXTRA_NO_IGNORE_DUP_KEY:
    m_decides_duplicates= m_replaces_duplicates= m_may_overwrite= false;
    break;
  case HA_EXTRA_WRITE_CANNOT_REPLACE:
    m_may_overwrite= false;
    break;
  case EXTRA_BEGIN_COPY:
    /* Only into a table that nobody else sees and that the server drops if the statement fails. Unique
       keys that the server checks itself are read through another handler, which would not see
       uncommitted rows of ours; so are parents. */
    if (!m_copy_txn && !m_sequence_txn && !m_foreign.check_inserts() && !table_share->long_unique_table && !table_share->tmp_table &&
        (thd_sql_command(ha_thd()) == SQLCOM_ALTER_TABLE ||
         thd_sql_command(ha_thd()) == SQLCOM_CREATE_TABLE ||
         thd_sql_command(ha_thd()) == SQLCOM_CREATE_INDEX || thd_sql_command(ha_thd()) == SQLCOM_DROP_INDEX ||
         thd_sql_command(ha_thd()) == SQLCOM_OPTIMIZE || thd_sql_command(ha_thd()) == SQLCOM_REPAIR))
      m_copy_txn= pando_txn_new(db);
    break;
  case EXTRA_END_COPY:
    if (int error= m_copy_txn ? end_copy(true) : 0)
      return error;
    return is_interim_name(m_name.c_str()) && foreign_keys_are_checked(ha_thd())
             ? m_foreign.verify(ha_thd(), added_foreign_keys(ha_thd(), m_name.c_str())) : 0;
  case EXTRA_ABORT_COPY:
    return m_copy_txn ? end_copy(false) : 0;
  default:
    break;
  }
  return 0;
}

/* What was written to a sequence is committed at once: values once given out stay so, whatever becomes of
   the transaction that asked for them. */
int ha_pando::after_write()
{
  if (m_copy_txn)
    return commit_piece();
  if (!m_sequence_txn)
    return 0;
  close_scan();
  return fail(pando_txn_commit(m_sequence_txn));
}

/* After a row of a copy: a piece that is big enough is committed, so that no copy has to fit into memory. */
int ha_pando::commit_piece()
{
  if (pando_txn_write_bytes(m_copy_txn) < COPY_PIECE_BYTES)
    return 0;
  return fail(pando_txn_commit(m_copy_txn));
}

int ha_pando::end_copy(bool keep)
{
  close_scan();
  int error= 0;
  if (!keep)
    abort_bulk_insert();
  if (keep)
    error= fail(pando_txn_commit(m_copy_txn));
  pando_txn_free(m_copy_txn);
  m_copy_txn= nullptr;
  return error;
}
