/* Opening and closing a table for one connection. */
#include "definition.h"
#include "encryption.h"
#include "expiry_purge.h"
#include "key_text.h"
#include "partition_rows.h"
#include "pushdown_filter.h"
#include "related_table.h"

using namespace pando;

ha_pando::ha_pando(handlerton *engine, TABLE_SHARE *share) : handler(engine, share) {}

ha_pando::~ha_pando()
{
  pando_buffer_free(m_buffer);
  pando_buffer_free(m_entry_buffer);
  pando_buffer_free(m_check_buffer);
}

/* These errors have the server look for the table's definition and open it once more. Where the definition is the right one that would
   go on for ever, and remove the definition's file each time. */
static int without_discovery(int error, const TABLE_SHARE *share)
{
  switch (error)
  {
  case ENOENT:
  case HA_ERR_NO_SUCH_TABLE:
    my_error(ER_NO_SUCH_TABLE_IN_ENGINE, MYF(0), share->db.str, share->table_name.str);
    return HA_ERR_CRASHED;
  case HA_ERR_TABLE_DEF_CHANGED:
    my_error(ER_TABLE_DEF_CHANGED, MYF(0));
    return HA_ERR_CRASHED;
  default:
    /* What the operating system says, of which the server would make "read only" for EACCES. */
    if (error <= 0 || error >= HA_ERR_FIRST)
      return error;
    my_error(ER_CANT_OPEN_FILE, MYF(0), share->normalized_path.str, error);
    return HA_ERR_CRASHED;
  }
}

int ha_pando::open(const char *name, int, uint)
{
  m_name= name;
  note_open_failure(0, String());
  if (int error= check_definition(name, table))
    return error;
  const int error= open_defined(name);
  if (error && error != m_last_error)
    m_last_error_text.length(0);
  note_open_failure(error, m_last_error_text);
  /* It is told by who wants the table, and may be nobody's business: another name, which a RENAME has just taken away. */
  if (Related_table::is_opening())
    return error;
  /* All that the client hears is that there is no such table. */
  if (error == ENOENT || error == HA_ERR_NO_SUCH_TABLE)
    sql_print_error("PANDO: table %s cannot be opened: %s", name, m_last_error_text.c_ptr_safe());
  return without_discovery(error, table_share);
}

/* Whether the server takes for clustering keys what are some. */
int ha_pando::check_clustering()
{
  for (uint i= 0; i < table_share->keys; i++)
    if (!is_damaged(i) && m_layouts[i].clustering() != pando_table_clustering(m_table, dictionary_of(i)))
    {
      sql_print_error("PANDO: table %s: key %s is %sa clustering key in the server's definition, but not in the engine's",
                      m_name.c_str(), table->key_info[i].name.str, m_layouts[i].is_clustering() ? "" : "not ");
      return HA_ERR_INCOMPATIBLE_DEFINITION;
    }
  return 0;
}

const ha_table_option_struct *ha_pando::shared_options()
{
  lock_shared_ha_data();
  const Table_text *shared= static_cast<const Table_text *>(get_ha_share_ptr());
  unlock_shared_ha_data();
  return shared ? shared->options() : nullptr;
}

/* Opens a table that is as the server's definition says. */
int ha_pando::open_defined(const char *name)
{
  if (PandoStatus status= pando_table_open(db, text(name), &m_table))
    return fail(status);
  if (!m_buffer)
  {
    m_buffer= pando_buffer_new();
    m_entry_buffer= pando_buffer_new();
    m_check_buffer= pando_buffer_new();
  }
  if (int error= give_up_misnamed_keys())
  {
    pando_table_close(m_table);
    m_table= nullptr;
    return error;
  }
  m_layouts.reset(new Index_layout[table_share->keys]);
  for (uint i= 0; i < table_share->keys; i++)
  {
    bool is_primary= i == table_share->primary_key;
    m_layouts[i].init(table, i, dictionary_of(i), is_primary ? nullptr : primary());
  }
  if (int error= check_clustering())
  {
    pando_table_close(m_table);
    m_table= nullptr;
    return error;
  }
  if (!m_row_codec.init(table, primary(), m_table))
  {
    pando_table_close(m_table);
    m_table= nullptr;
    return HA_ERR_INCOMPATIBLE_DEFINITION;
  }
  if (int error= open_building())
  {
    close();
    return error;
  }
  /* For those who look at locks of this table, and for its options. */
  lock_shared_ha_data();
  if (!get_ha_share_ptr())
    set_ha_share_ptr(new Table_text(name, table, m_layouts.get()));
  unlock_shared_ha_data();
  const ha_table_option_struct *own_options= options_of_partition(name, table);
  if (table_share->tmp_table == NO_TMP_TABLE && !is_interim_name(name))
    note_if_undecided(own_options ? own_options : shared_options(), m_table);
  m_expiry= Expiry::make(table, shared_options());
  Expiry_purge::note(table_share, m_expiry.get());
  mark_covering_keys();
  if (is_sequence())
    m_sequence_txn= pando_txn_new(db);
  m_new= std::vector<Entry>(dictionaries() + m_building.size());
  m_old= std::vector<Entry>(dictionaries() + m_building.size());
  ref_length= POSITION_LENGTH_BYTES + row_key_max();
  stats.block_size= 16384;
  ha_rows rows= 0;
  if (int error= get_figures(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST, &rows))
    return error;
  /* The first statement that wants to know more will look at the keys. All who have the table open share the figures. */
  for (uint i= 0; i < table_share->keys; i++)
    if (!table->key_info[i].rec_per_key[0])
      guess_rec_per_key(i, rows);
  m_rows_of_keys= HA_POS_ERROR;
  leave_out_damaged_keys();
  return 0;
}

/* Most bytes of a row's key in dictionary 0. Rows with longer ones are refused. */
uint ha_pando::row_key_max() const
{
  if (!has_primary_key())
    return HIDDEN_KEY_SIZE;
  size_t size= 0;
  for (uint i= 0; i < m_layouts[0].part_count(); i++)
    size+= m_layouts[0].part(i).encoded_max();
  return uint(MY_MIN(size, size_t(UINT_MAX16)));
}

int ha_pando::close()
{
  close_scan();
  abort_bulk_insert();
  m_foreign.end();
  leave_other_place();
  if (m_copy_txn)
    end_copy(false);
  pando_txn_free(m_sequence_txn);
  m_sequence_txn= nullptr;
  pando_table_close(m_table);
  m_table= nullptr;
  return 0;
}

/* A second handler of the same statement: it reads as this one does. Of this table, whatever name the server gives: where
   not all partitions are open it is that of another one. */
handler *ha_pando::clone(const char *, MEM_ROOT *mem_root)
{
  ha_pando *copy= static_cast<ha_pando *>(handler::clone(m_name.c_str(), mem_root));
  if (copy)
  {
    copy->m_is_clone= true;
    copy->m_lock= m_lock;
    copy->m_stored_lock= m_stored_lock;
    copy->m_skip_locked= m_skip_locked;
  }
  return copy;
}

int ha_pando::fail(PandoStatus status)
{
  int error= error_of(status, ha_thd());
  if (status > PANDO_STATUS_SKIPPED)
  {
    m_last_error= error;
    error_text(&m_last_error_text);
  }
  return error;
}

/* An entry or row that is not one, though its block's checksum matched. */
int ha_pando::damaged(const char *what)
{
  sql_print_error("PANDO: table %s: %s; CHECK TABLE tells more", m_name.c_str(), what);
  warn_beside_error(ha_thd(), (std::string("PANDO: ") + what).c_str());
  return HA_ERR_CRASHED;
}

PandoTxn *ha_pando::txn()
{
  if (m_copy_txn)
    return m_copy_txn;
  return m_sequence_txn ? m_sequence_txn : Transaction::of(ha_thd())->txn();
}
