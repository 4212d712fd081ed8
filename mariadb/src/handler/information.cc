/* Statistics, costs, CHECK, ANALYZE and OPTIMIZE, and what the engine can do. */
#include "counted_call.h"
#include "ha_pando.h"
#include "sql_select.h"

#include <algorithm>

using namespace pando;

static const ha_rows LOCKED_ROWS_MANY= 1000;
static const uint PAGE_BYTES= 16384; /* what costs are counted in, as InnoDB's */

handler::Table_flags ha_pando::table_flags() const
{
  /* Statements can be replayed in the order of commits only if they exclude phantoms; else the binary log
     needs rows. */
  const bool excludes_phantoms= thd_tx_isolation(ha_thd()) > ISO_READ_COMMITTED;
  const Table_flags statements= excludes_phantoms ? HA_BINLOG_STMT_CAPABLE : Table_flags(0);
  /* What the server itself keeps unique (USING HASH, WITHOUT OVERLAPS) it looks for after the row has been
     written: so two writers meet at a row, and not each at the other's gap. But it cannot take an UPDATE IGNORE
     back; there, where the gap is held, it looks before. */
  const int command= thd_sql_command(ha_thd());
  const bool updates= command == SQLCOM_UPDATE || command == SQLCOM_UPDATE_MULTI;
  /* Nor does it take back a row of ALTER IGNORE TABLE; nobody else writes to that table. */
  const bool copies= command == SQLCOM_ALTER_TABLE;
  const Table_flags unique= copies || (excludes_phantoms && updates) ? Table_flags(0) : HA_CHECK_UNIQUE_AFTER_WRITE;
  /* Then a row meets the engine's keys first and those last, but REPLACE takes the engine's for the last, where it
     changes the one row that is in the way: it shall delete rows until there are none. */
  const Table_flags order= table_share && is_kept_unique_by_server() ? HA_DUPLICATE_KEY_NOT_IN_ORDER : Table_flags(0);
  return statements | unique | order | NO_ONLINE_COPY | HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_VIRTUAL_COLUMNS |
         HA_CAN_INDEX_BLOBS | HA_CAN_SQL_HANDLER | HA_REQUIRES_KEY_COLUMNS_FOR_DELETE |
         HA_PRIMARY_KEY_IN_READ_INDEX | HA_BINLOG_ROW_CAPABLE | HA_CAN_GEOMETRY | HA_PARTIAL_COLUMN_READ |
         HA_TABLE_SCAN_ON_INDEX | HA_AUTO_PART_KEY | HA_ONLINE_ANALYZE |
         HA_CONCURRENT_OPTIMIZE | HA_CAN_REPAIR | HA_CAN_SKIP_LOCKED | HA_CRASH_SAFE | HA_CAN_ONLINE_BACKUPS |
         HA_CAN_TABLES_WITHOUT_ROLLBACK | HA_CAN_TABLE_CONDITION_PUSHDOWN |
         /* For the condition that the server then offers (cond_push), and ranges (direct_delete_rows_init). */
         HA_CAN_DIRECT_UPDATE_AND_DELETE;
}

/* Whether a key has only the beginning of some column. */
static bool has_prefix_part(const KEY *key)
{
  for (uint i= 0; i < key->user_defined_key_parts; i++)
    if (key->key_part[i].field && key->key_part[i].field->key_length() != key->key_part[i].length)
      return true;
  return false;
}

/* Whether the server may group by this part of a key otherwise than the key does. */
static bool groups_otherwise(const KEY &key, uint part)
{
  const Field *field= part < key.ext_key_parts ? key.key_part[part].field : nullptr;
  return field && groups_by_filling(field);
}

/* Whether a key has only the beginning of a virtual column. Where the server reads a key alone it computes no virtual
   columns, and entries do not have this one whole; but partitioning compares it, to merge scans in the order of the key. While a
   table is opened, parts do not know their fields yet. */
static bool has_virtual_prefix(const TABLE_SHARE *share, const KEY &key)
{
  for (uint i= 0; i < key.user_defined_key_parts; i++)
  {
    const Field *field= share->field[key.key_part[i].fieldnr - 1];
    if (field->vcol_info && !field->stored_in_db() && field->key_length() != key.key_part[i].length)
      return true;
  }
  return false;
}

ulong ha_pando::index_flags(uint index, uint part, bool all_parts) const
{
  ulong flags= HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE | HA_KEYREAD_ONLY;
  /* Then the server does not sort and group by reading the key, nor by jumping in it from group to group, which it
     does only in keys that it can read alone. `all_parts`: not for SHOW INDEX, which tells that the key is sorted. */
  if (groups_otherwise(table_share->key_info[index], part))
    flags&= ~ulong(all_parts ? HA_KEYREAD_ONLY | HA_READ_ORDER : HA_KEYREAD_ONLY);
  if (has_virtual_prefix(table_share, table_share->key_info[index]))
    flags&= ~ulong(HA_KEYREAD_ONLY);
  /* A condition on a key's columns would be on any column, and needs the row. Reading the key alone, the server forgets which columns it
     wants, unless the key is clustered; when it makes a plan, a clustered key that is not the primary one would be taken for that (by index
     merges), and this one is what it is: a key that covers all columns (see mark_covering_keys). */
  if (Index_layout::is_clustering(table_share->key_info[index]) && index != table_share->primary_key)
    return reads_key_alone(index) ? flags | HA_CLUSTERED_INDEX : flags;
  if (index == table_share->primary_key && reads_key_alone(index))
    return flags | HA_CLUSTERED_INDEX;
  /* Of a clustered key the server expects the columns in every read of a key, to see whether a row is
     within a range of it; entries do not have what the primary key has only the beginning of. */
  if (index == table_share->primary_key)
    return has_prefix_part(&table_share->key_info[index]) ? flags : flags | HA_CLUSTERED_INDEX;
  return flags | HA_DO_INDEX_COND_PUSHDOWN;
}

/* Of a partitioned table the whole one's handler knows. */
bool ha_pando::reads_key_alone(uint index) const
{
  const handler *whole= table && table->file ? table->file : this;
  return whole->keyread == index;
}

/* A server that keeps the flags of keys with the table gets those of the key that it begins or ends to read alone. */
void ha_pando::refresh_index_flags()
{
#ifdef PANDO_SERVER_11_8
  const handler *whole= table->file ? table->file : this;
  const uint index= m_keyread ? whole->keyread : m_key_alone;
  if (index < table_share->keys)
    table->key_info[index].index_flags= index_flags(index, 0, true);
  m_key_alone= m_keyread ? index : uint(MAX_KEY);
#endif
}

/* The server takes a key for covering if each column of the query is said to be part of it. All stored ones are, of a clustering key, but
   not those of which the key has the beginning: of them the server would think that the key has all. And of the primary key, so
   that who wants all rows is not offered clustering keys alone. A key that does not have the column of TTL is none: its rows are to be
   read, to see whether they have expired. */
void ha_pando::mark_covering_keys()
{
  m_has_clustering_keys= false;
  for (uint index= 0; index < table_share->keys; index++)
    m_has_clustering_keys= m_has_clustering_keys || m_layouts[index].is_clustering();
  for (uint index= 0; m_has_clustering_keys && index < table_share->keys; index++)
  {
    const Index_layout &layout= m_layouts[index];
    if (!layout.is_clustering() && !layout.is_rows())
      continue;
    for (Field **field= table->field; *field; field++)
    {
      bool is_whole= (*field)->stored_in_db();
      for (uint i= 0; i < layout.part_count() && is_whole; i++)
        is_whole= layout.part(i).column().index() != (*field)->field_index || !layout.part(i).is_prefix();
      if (is_whole)
        (*field)->part_of_key.set_bit(index);
    }
  }
  for (uint index= 0; index < table_share->keys; index++)
    if (!knows_expiry(index) && !m_layouts[index].is_rows())
    {
      for (Field **field= table->field; *field; field++)
        (*field)->part_of_key.clear_bit(index);
      if (table_share->keys_for_keyread.is_set(index))
        table_share->keys_for_keyread.clear_bit(index);
    }
}

/* Whether the server may think of jumping from group to group in a key: of one table, without sums. */
static bool may_jump(SELECT_LEX *select)
{
  JOIN *join= select->join;
  if (!join || select->leaf_tables.elements != 1)
    return false;
  for (Item_sum **function= join->sum_funcs; function && *function; function++)
    switch ((*function)->sum_func())
    {
    case Item_sum::MIN_FUNC:
    case Item_sum::MAX_FUNC:
    case Item_sum::COUNT_DISTINCT_FUNC:
    case Item_sum::SUM_DISTINCT_FUNC:
    case Item_sum::AVG_DISTINCT_FUNC:
      break;
    default:
      return false;
    }
  return true;
}

/* Jumping from group to group, the server takes the first row of each that a range of the key has: it relies on a key that covers a query
   having all its columns as parts, and does not look at conditions on others. */
void ha_pando::refuse_jumps()
{
  TABLE_LIST *from= table->pos_in_table_list;
  if (!m_has_clustering_keys || !from || !from->select_lex || !may_jump(from->select_lex))
    return;
  for (uint index= 0; index < table_share->keys; index++)
  {
    const Index_layout &layout= m_layouts[index];
    if (!layout.is_clustering() && !layout.is_rows())
      continue;
    for (Field **field= table->field; *field; field++)
      if (bitmap_is_set(table->read_set, (*field)->field_index) && !(*field)->part_of_key_not_clustered.is_set(index))
        table->keys_in_use_for_group_by.clear_bit(index);
  }
}

int ha_pando::info(uint flag)
{
  if (flag & HA_STATUS_ERRKEY)
    errkey= duplicate_index();
  if (!(flag & (HA_STATUS_VARIABLE | HA_STATUS_CONST | HA_STATUS_AUTO)))
    return 0;
  ha_rows rows= 0;
  if (int error= get_figures(flag, &rows))
    return error;
  /* By a key rows are locked one by one, whatever columns it has, by the primary key many at once: the plan should not take it for one that
     costs no more than its entries. That they need not be read is found out when they are (is_covering). Of few rows it does not matter. */
  if ((flag & HA_STATUS_VARIABLE) && is_locking() && rows >= LOCKED_ROWS_MANY)
    table->covering_keys.clear_all();
  if (flag & HA_STATUS_VARIABLE)
    refuse_jumps();
  /* Of partitions only the largest is asked for what is constant: they share what is known of keys. */
  const bool changed= m_rows_of_keys == HA_POS_ERROR || (rows > m_rows_of_keys ? rows - m_rows_of_keys
                                                         : m_rows_of_keys - rows) > 16 + m_rows_of_keys / 4;
  if ((flag & HA_STATUS_CONST) || ((flag & HA_STATUS_VARIABLE) && changed && !table->part_info))
    set_rec_per_key(rows, false);
  return 0;
}

/* Figures of the table, but for its keys. */
int ha_pando::get_figures(uint flag, ha_rows *rows)
{
  PandoTableInfo figures;
  /* Only who shows sizes to somebody asks so. */
  const bool exact= flag & (HA_STATUS_TIME | HA_STATUS_VARIABLE_EXTRA);
  if (PandoStatus status= pando_table_info(m_table, exact, &figures))
    return fail(status);
  *rows= figures.rows;
  if (flag & HA_STATUS_AUTO)
    stats.auto_increment_value= MY_MAX(figures.auto_increment, 1ULL);
  if (flag & HA_STATUS_VARIABLE)
  {
    /* 0 would be taken for a fact by the optimizer, but is an estimate. Who shows it to somebody wants 0, and asks so for each
       partition, too. Partitions of history are filled one after the other by their counts, asked for as if at opening: those
       must begin with 0. */
    stats.records= figures.rows ? figures.rows : exact || flag & HA_STATUS_OPEN ? 0 : 1;
    stats.deleted= 0;
    stats.data_file_length= figures.data_bytes;
    stats.index_file_length= figures.index_bytes;
    stats.delete_length= figures.free_bytes;
    stats.mean_rec_length= figures.rows ? ulong(figures.raw_bytes / figures.rows) : 0;
    m_raw_bytes= figures.raw_bytes;
    stats.update_time= time_t(figures.changed);
  }
  if (flag & HA_STATUS_CONST)
  {
    stats.block_size= PAGE_BYTES;
    stats.create_time= time_t(figures.created);
  }
  return 0;
}

/* Called by the engine for keys of an index. */
static uint8_t part_ends(const void *layout, PandoBytes key, uint32_t *ends, uint32_t parts)
{
  return static_cast<const Index_layout *>(layout)->part_ends(key, ends, parts);
}

/* How many rows there are for each value of the first parts of keys. The engine samples the keys if it has not, or if
   the table has changed much since; `anew` in any case. */
void ha_pando::set_rec_per_key(ha_rows rows, bool anew)
{
  m_rows_of_keys= rows;
  for (uint i= 0; i < table_share->keys; i++)
  {
    KEY *key= &table->key_info[i];
    const Index_layout &layout= m_layouts[i];
    const uint parts= MY_MIN(layout.key_byte_parts(), key->ext_key_parts);
    uint64_t distinct[MAX_REF_PARTS], counted= 0;
    const bool is_one_each= layout.is_unique() && key->user_defined_key_parts == 1;
    if (!is_one_each && parts <= MAX_REF_PARTS)
    {
      Counted_call counted_call(handler_stats);
      if (pando_table_distinct_keys(db, m_table, layout.dictionary(), parts, anew, part_ends, &layout, distinct, &counted))
        counted= 0; /* whoever reads the key is told */
    }
    if (!counted && !is_one_each)
    {
      guess_rec_per_key(i, rows);
      continue;
    }
    /* Half of them, as InnoDB says: what the optimizer takes a lookup to cost goes with that. */
    for (uint part= 0; part < key->ext_key_parts; part++)
      key->rec_per_key[part]= is_one_each || part >= parts || !distinct[part]
                                  ? 1 : ulong(MY_MAX(double(counted) / double(distinct[part]) / 2 + 0.5, 1));
  }
}

/* Guesses where nothing is known of a key. One row for a whole unique key, ten for the whole of another, a hundredth of
   the table for a first part alone, and for the parts between a geometric series from there. */
void ha_pando::guess_rec_per_key(uint index, ha_rows rows)
{
  KEY *key= &table->key_info[index];
  const uint user= key->user_defined_key_parts;
  const bool unique= m_layouts[index].is_unique();
  for (uint part= 0; part < key->ext_key_parts; part++)
  {
    double share= 1;
    if (unique ? part + 1 < user : part < user)
    {
      double whole= unique ? 1 : MY_MIN(double(rows), 10);
      double first= MY_MAX(whole, double(rows) / 100);
      share= user <= 1 ? whole : first * pow(whole / first, double(part) / double(user - 1));
    }
    key->rec_per_key[part]= ulong(MY_MAX(share, 1));
  }
}

/* A statement that the engine may answer whole has its ranges estimated twice: for the guess of what the server would pay, and by the server. */
const Estimate *ha_pando::known_estimate(const Estimate &wanted)
{
  if (m_estimates_of != ha_thd()->query_id)
    m_estimates.clear();
  m_estimates_of= ha_thd()->query_id;
  const auto known= std::find_if(m_estimates.begin(), m_estimates.end(), [&wanted](const Estimate &one) { return one.is_of(wanted); });
  return known == m_estimates.end() ? nullptr : &*known;
}

ha_rows ha_pando::records_in_range(uint index, const key_range *min, const key_range *max, page_range *)
{
  Index_layout &layout= m_layouts[index];
  Bytes from, to;
  bool has_from= min != nullptr, has_to= max != nullptr;
  if (min)
  {
    layout.encode_image(&from, min->key, min->keypart_map,
                        min->flag == HA_READ_KEY_OR_NEXT ? Image::FIRST : Image::EXACT);
    if (min->flag == HA_READ_AFTER_KEY && !after_prefix(&from))
      return 1;
  }
  if (max)
  {
    layout.encode_image(&to, max->key, max->keypart_map,
                        max->flag == HA_READ_AFTER_KEY ? Image::LAST : Image::EXACT);
    if (max->flag == HA_READ_AFTER_KEY)
      has_to= after_prefix(&to);
  }
  Estimate estimate(index, has_from ? &from : nullptr, has_to ? &to : nullptr);
  if (const Estimate *known= known_estimate(estimate))
    return known->rows;
  uint64_t rows;
  PandoBytes none= {};
  Counted_call counted(handler_stats);
  if (PandoStatus status= pando_table_estimate(m_table, layout.dictionary(), has_from ? from.view() : none,
                                               has_to ? to.view() : none, &rows))
  {
    fail(status);
    return HA_POS_ERROR;
  }
  /* 0 means "certainly none" to the server. */
  estimate.rows= MY_MAX(rows, 1ULL);
  if (m_estimates.size() < ESTIMATES_MAX)
    m_estimates.push_back(estimate);
  return estimate.rows;
}

/* Blocks are compressed on disk, but it is decompressed ones that rows are taken from. */
#ifdef PANDO_SERVER_11_8

IO_AND_CPU_COST ha_pando::scan_time()
{
  return {double(row_blocks()), double(m_raw_bytes) / PAGE_BYTES * INDEX_BLOCK_COPY_COST};
}

ulonglong ha_pando::row_blocks() { return MY_MAX(m_raw_bytes / IO_SIZE, 1ULL); }

/* Of keys whose entries are rows, or hold them: by the size of rows. */
IO_AND_CPU_COST ha_pando::keyread_time(uint index, ulong ranges, ha_rows rows, ulonglong blocks)
{
  const bool is_clustering= Index_layout::is_clustering(table_share->key_info[index]);
  if (blocks || rows <= 1 || !(is_clustering || index == table_share->primary_key))
    return handler::keyread_time(index, ranges, rows, blocks);
  const double bytes= row_bytes() + (is_clustering ? table_share->key_info[index].key_length : 0);
  return handler::keyread_time(index, ranges, rows, ulonglong(double(rows) * bytes / PAGE_BYTES) + ranges);
}

#else

double ha_pando::scan_time()
{
  return MY_MAX(double(m_raw_bytes) / PAGE_BYTES, 1.0);
}

/* Of keys whose entries are rows, or hold them: by the size of rows. */
double ha_pando::keyread_time(uint index, uint ranges, ha_rows rows)
{
  const bool is_clustering= Index_layout::is_clustering(table_share->key_info[index]);
  if (!m_has_clustering_keys || !(is_clustering || index == table_share->primary_key))
    return handler::keyread_time(index, ranges, rows);
  const double blocks= double(rows) * (row_bytes() + (is_clustering ? table_share->key_info[index].key_length : 0)) / PAGE_BYTES;
  return blocks * IDX_BLOCK_COPY_COST + (ranges ? ceil(blocks) : 0);
}

double ha_pando::read_time(uint index, uint ranges, ha_rows rows)
{
  if (index != table_share->primary_key)
  {
    const bool is_clustering= Index_layout::is_clustering(table_share->key_info[index]);
    return is_clustering && !is_locking() ? ranges + keyread_time(index, 1, rows) : handler::read_time(index, ranges, rows);
  }
  const double all= scan_time();
  if (stats.records <= rows)
    return all;
  /* One row at a known key costs its lookup, which the server counts: less than by another key that names it. */
  if (rows <= 1)
    return ranges;
  return ranges + double(rows) / double(stats.records) * all;
}

#endif

int ha_pando::analyze(THD *, HA_CHECK_OPT *)
{
  ha_rows rows= 0;
  if (get_figures(HA_STATUS_CONST | HA_STATUS_VARIABLE, &rows))
    return HA_ADMIN_FAILED;
  set_rec_per_key(rows, true);
  return HA_ADMIN_OK;
}

/* Called by the engine in the course of long operations. */
static uint8_t watch_progress(void *connection, double part)
{
  THD *thd= static_cast<THD *>(connection);
  thd_progress_report(thd, ulonglong(part * 1000), 1000);
  return !is_to_end(thd);
}

/* What is found; it has been told to the client. */
PandoStatus ha_pando::check_all(THD *thd, bool is_extended)
{
  const char *old_stage= thd_proc_info(thd, "Checking table");
  thd_progress_init(thd, 1);
  PandoStatus status= pando_table_check(db, m_table, watch_progress, thd);
  if (status)
    fail(status);
  if (is_extended && (!status || status == PANDO_STATUS_KEY_UNUSABLE))
    if (PandoStatus entries= check_entries(thd))
      status= entries;
  thd_progress_end(thd);
  thd_proc_info(thd, old_stage);
  if (!status)
    return status;
  leave_out_damaged_keys();
  warn_of_damaged_keys(thd);
  return status;
}

int ha_pando::check(THD *thd, HA_CHECK_OPT *options)
{
  switch (check_all(thd, options->flags & T_EXTEND))
  {
  case PANDO_STATUS_OK:
    return HA_ADMIN_OK;
  case PANDO_STATUS_CORRUPTION:
  case PANDO_STATUS_KEY_UNUSABLE:
  case PANDO_STATUS_VALUES_LOST:
    return HA_ADMIN_CORRUPT;
  default:
    return HA_ADMIN_FAILED;
  }
}

int ha_pando::optimize(THD *thd, HA_CHECK_OPT *)
{
  const char *old_stage= thd_proc_info(thd, "Optimizing table");
  thd_progress_init(thd, 1);
  PandoStatus status= pando_table_compact(db, m_table, watch_progress, thd);
  thd_progress_end(thd);
  thd_proc_info(thd, old_stage);
  if (!status)
    return HA_ADMIN_OK;
  fail(status);
  return HA_ADMIN_FAILED;
}

bool ha_pando::get_error_message(int error, String *text)
{
  if (error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_ROW_IS_REFERENCED || error == HA_ERR_FK_DEPTH_EXCEEDED)
  {
    if (const Transaction *transaction= Transaction::if_any(ha_thd()))
      text->copy(transaction->refusal().c_str(), uint32(transaction->refusal().size()), system_charset_info);
    return false;
  }
  const Transaction *transaction= Transaction::if_any(ha_thd());
  if (m_table && transaction && error == transaction->unopened_error())
    text->copy(transaction->refusal().c_str(), uint32(transaction->refusal().size()), system_charset_info);
  /* To its own text of a deadlock the server appends this one. */
  else if (error == m_last_error && error != HA_ERR_LOCK_DEADLOCK)
    text->copy(m_last_error_text);
  else if (!m_table && !m_name.empty() && error == open_failure().error)
    text->copy(open_failure().text.c_str(), uint32(open_failure().text.size()), system_charset_info);
  else if (error == HA_ERR_INTERNAL_ERROR)
    text->copy(internal_error_of(ha_thd()).c_str(), uint32(internal_error_of(ha_thd()).size()), system_charset_info);
  return false;
}

void ha_pando::update_create_info(HA_CREATE_INFO *info)
{
  if (info->used_fields & HA_CREATE_USED_AUTO)
    return;
  this->info(HA_STATUS_AUTO);
  info->auto_increment_value= stats.auto_increment_value;
}
