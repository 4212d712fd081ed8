/* One open table of one connection. Thin: it encodes, calls the engine, maps the answer. By topic:
   open.cc, ddl.cc, locking.cc, scan.cc (where rows come from), read.cc (the server's calls), write.cc,
   autoincrement.cc, information.cc, alter.cc, alter_index.cc. */
#ifndef PANDO_HA_PANDO_H
#define PANDO_HA_PANDO_H

#include "plugin.h"
#include "estimate.h"
#include "expiry.h"
#include "load.h"
#include "row_codec.h"
#include "foreign_key_rows.h"
#include <deque>
#include <set>
#include <string>
#include "transaction.h"

/* Of CREATE TABLE. */
struct ha_table_option_struct
{
  uint compression;
  ulonglong compression_level;
  uint encrypted;
  ulonglong encryption_key_id;
  char *ttl;
};

namespace pando {
extern ha_create_table_option table_options[];
extern ha_create_table_option index_options[];
class Alter_context;
class Translator;
class Select_translator;
class Row_filter;
class Expiry_purge;
struct Key_bound;
struct Entry_sums;
struct Sums_of_key;
/* See alter.cc. */
}

class ha_pando final : public handler
{
public:
  ha_pando(handlerton *engine, TABLE_SHARE *share);
  ~ha_pando() override;

  /* --- open.cc, ddl.cc --- */
  int open(const char *name, int mode, uint test_if_locked) override;
  int close() override;
  handler *clone(const char *name, MEM_ROOT *mem_root) override;
  int create(const char *name, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *name) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;

  /* --- locking.cc --- */
  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type lock_type) override;
  int external_lock(THD *thd, int lock_type) override;
  int start_stmt(THD *thd, thr_lock_type lock_type) override;
  void unlock_row() override;
  void try_semi_consistent_read(bool yes) override;
  bool was_semi_consistent_read() override { return m_is_peek; }
  int reset() override;
  void column_bitmaps_signal() override { m_columns_prepared= false; }
  int extra(ha_extra_function operation) override;

  /* --- read.cc --- */
  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar *record) override;
  int rnd_pos(uchar *record, uchar *position) override;
  void position(const uchar *record) override;
  int cmp_ref(const uchar *ref_1, const uchar *ref_2) override;
  int index_init(uint index, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *record, const uchar *key, key_part_map map, ha_rkey_function flag) override;
  int index_read_last_map(uchar *record, const uchar *key, key_part_map map) override;
  int index_next(uchar *record) override;
  int index_prev(uchar *record) override;
  int index_first(uchar *record) override;
  int index_last(uchar *record) override;
  int index_next_same(uchar *record, const uchar *key, uint key_length) override;
  int read_range_first(const key_range *start, const key_range *end, bool is_equal, bool sorted) override;
  Item *idx_cond_push(uint index, Item *condition) override;

  /* --- write.cc, autoincrement.cc --- */
  int write_row(const uchar *record) override;
  int update_row(const uchar *old_record, const uchar *new_record) override;
  int delete_row(const uchar *record) override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                          ulonglong *reserved) override;
  bool autoinc_lock_mode_stmt_unsafe() const override;

  /* --- load.cc --- */
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;

  /* --- foreign_key.cc, related_rows.cc --- */
  char *get_foreign_key_create_info() override;
  void free_foreign_key_create_info(char *text) override;
  int get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  int get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  bool referenced_by_foreign_key() const noexcept override;
  bool can_switch_engines() override;
  bool get_foreign_dup_key(char *child, uint child_size, char *key, uint key_size) override;
  void detach();

  /* --- information.cc --- */
  int info(uint flag) override;
  ha_rows records_in_range(uint index, const key_range *min, const key_range *max, page_range *pages) override;
#ifdef PANDO_SERVER_11_8
  IO_AND_CPU_COST scan_time() override;
  IO_AND_CPU_COST keyread_time(uint index, ulong ranges, ha_rows rows, ulonglong blocks) override;
  ulonglong row_blocks() override;
#else
  double scan_time() override;
  double keyread_time(uint index, uint ranges, ha_rows rows) override;
  double read_time(uint index, uint ranges, ha_rows rows) override;
#endif
  /* All keys give rows in order, and the server may weigh that against sorting, as with InnoDB. */
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }
  int analyze(THD *thd, HA_CHECK_OPT *options) override;
  int check(THD *thd, HA_CHECK_OPT *options) override;
  int optimize(THD *thd, HA_CHECK_OPT *options) override;
  int repair(THD *thd, HA_CHECK_OPT *options) override; /* damaged_keys.cc */
  bool get_error_message(int error, String *text) override;
  void update_create_info(HA_CREATE_INFO *info) override;
  Table_flags table_flags() const override;
  ulong index_flags(uint index, uint part, bool all_parts) const override;
  const char *index_type(uint) override { return "BTREE"; }
  /* Of SHOW TABLE STATUS: rows take what they need. */
  enum row_type get_row_type() const override { return ROW_TYPE_DYNAMIC; }
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_length() const override { return 3500; }
  uint max_supported_key_part_length() const override { return 3072; }
  /* The server forgets cached answers about a table before an autocommitted statement has committed: who reads in between would
     have the rows of before cached, for good. */
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }

  /* --- alter.cc --- */
  bool can_convert_nocopy(const Field &field, const Column_definition &type) const override;
  Compare_keys compare_key_parts(const Field &old_field, const Column_definition &new_field,
                                 const KEY_PART_INFO &old_part, const KEY_PART_INFO &new_part) const override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) override;
  bool prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) override;

  /* --- pushdown.cc --- */
  bool may_answer_queries() const;
  bool may_answer_with_locks() const;
  const PandoTable *engine_table() const { return m_table; }
  /* Which of its rows have expired; null: they do not. */
  const pando::Expiry *expiry() const { return m_expiry.get(); }
  PandoStatus answer(PandoQuery *query, const PandoTable *const *tables, size_t count, uint64_t memory_bytes);
  PandoStatus answer(PandoAnalytic *query, const PandoTable *const *tables, size_t count, uint64_t memory_bytes,
                     PandoAnalyticWhy *why);
  /* How it would be answered: its operators, with the rows that they are thought to give. */
  PandoStatus explain(PandoAnalytic *query, const PandoTable *const *tables, size_t count);

  /* --- pushdown_filter.cc --- */
  const COND *cond_push(const COND *condition) override;
  int direct_delete_rows_init() override;
  int direct_delete_rows(ha_rows *deleted) override;
  void cond_pop() override;

private:
  friend class pando::Translator;
  friend class pando::Foreign_keys;
  friend class pando::Select_translator;
  enum class Lock : uint8_t { NONE, SHARED, EXCLUSIVE };

  /* What a row is in one dictionary: bytes that have to live until the engine has been called. */
  struct Entry
  {
    pando::Bytes key;
    pando::Bytes value;
    bool unique= false;
    bool present= true;
    PandoEntry view() const { return PandoEntry{key.view(), value.view(), uint8_t(unique)}; }
  };

  bool is_sequence() const { return table_share->table_type == TABLE_TYPE_SEQUENCE; }
  bool has_primary_key() const { return table_share->primary_key < MAX_KEY; }
  uint dictionaries() const { return table_share->keys + (has_primary_key() ? 0 : 1); }
  uint dictionary_of(uint index) const { return has_primary_key() ? index : index + 1; }
  uint index_of_dictionary(uint dictionary) const
  {
    return has_primary_key() ? dictionary : dictionary == 0 ? MAX_KEY : dictionary - 1;
  }
  pando::Index_layout *layout_of(uint dictionary)
  {
    return dictionary < dictionaries() ? &m_layouts[index_of_dictionary(dictionary)]
                                       : &m_building[dictionary - dictionaries()];
  }
  pando::Index_layout *primary() { return has_primary_key() ? &m_layouts[0] : nullptr; }
  int fail(PandoStatus status);
  int damaged(const char *what);

  /* The transaction this statement works in. */
  PandoTxn *txn();
  uint row_key_max() const;

  /* --- locking.cc --- */
  bool is_locking() const { return m_lock != Lock::NONE; }
  /* Whether locking reads of this statement keep others from inserting where they have been. */
  bool is_kept_unique_by_server() const;
  bool takes_gaps() const;
  bool may_lock_ahead() const;
  bool keeps_rows() const;
  bool may_read_ahead() const;
  uint64_t *writes() const;
  void note_write(bool is_at_row);
  bool is_at_old_row() const;
  PandoRead read_mode() const;
  void lock_for(THD *thd, thr_lock_type lock_type);
  int commit_piece();
  int after_write();
  int end_copy(bool keep);

  /* --- scan.cc --- */
  void prepare_columns();
  void close_scan();
  void begin_scan(uint dictionary);
  int seek(PandoMove move, PandoBytes key, uchar *record);
  int go_on(bool forward, uchar *record);
  int go_on_by_key(bool forward);
  int lock_peeked(uchar *record);
  int fetch(PandoMove move, PandoBytes key);
  int step();
  int take_entry();
  int stand_in_gap(PandoBytes key, bool after);
  int deliver(uchar *record);
  int deliver_entry(uchar *record, bool *passed_by);
  int decode_row(PandoBytes row_key, PandoBytes row, uchar *record);
  int read_large(PandoBytes row_key, uchar *record);
  int entry_has_row(const pando::Index_layout &layout, bool *has_row);
  int is_written_by_us(bool *is_written);
  int read_through(uchar *record, bool *passed_by);
  PandoStatus look_up(uint dictionary, PandoBytes key, PandoRead read, int64_t wait, PandoBuffer *value);
  int get_row(PandoBytes row_key, uchar *record, bool *absent, bool *skipped= nullptr);
  int get_exact(uchar *record);
  int get_by_unique_key(uchar *record);
  int look_up_unique_key();
  int read_again();
  int note_disagreement();
  int still_belongs(const uchar *record, bool *belongs);
  int still_has_entry(pando::Index_layout *layout, bool *still);
  bool is_passed(PandoBytes key) const;
  bool is_within(PandoBytes key) const;
  bool find_row_key();
  bool entry_has_read_set(uint index) const;
  bool is_covering() const;
  bool may_lock_by_entry() const;
  bool peeks() const { return m_peeks && m_lock == Lock::EXCLUSIVE && !m_skip_locked && !takes_gaps(); }
  int64_t wait_s() const { return m_skip_locked ? PANDO_WAIT_SKIP : PANDO_WAIT_DEFAULT; }
  int check_condition(uchar *record, bool *passed_by);

  /* --- pushdown_filter.cc --- */
  bool may_filter() const;
  bool can_filter() const;
  bool can_pass_by() const;
  bool is_changed_alone() const;
  void need_columns();

  /* --- read.cc --- */
  int search(uchar *record, const uchar *key, key_part_map map, ha_rkey_function flag);
  pando::Image image_of(ha_rkey_function flag) const;
  bool is_whole_unique_key(const uchar *key, key_part_map map);
  void set_range_stop();

  /* --- write.cc --- */
  bool must_compute_virtual_columns() const;
  void want_virtual_columns();
  int compute_virtual_columns(const uchar *record);
  void encode_row(const uchar *record, PandoBytes row_key, std::vector<Entry> *entries, bool with_row= true);
  bool has_clustering_key();
  int new_row_key(const uchar *record, pando::Bytes *key);
  void set_row_key(const pando::Bytes &key);
  int write_failed(PandoStatus status);
  void met_duplicate(uint index);
  uint duplicate_index() const;
  void note_auto_increment(Field *field);
  static void views(const std::vector<Entry> &entries, std::vector<PandoEntry> *out);
  int write_numbered_row(const uchar *record);
  int write_one_row(const uchar *record);
  int write_entries(const uchar *record);
  int update_one_row(const uchar *old_record, const uchar *new_record);
  int update_entries(const uchar *old_record, const uchar *new_record);
  int delete_one_row(const uchar *record);

  /* --- unread.cc --- */
  bool keys_follow_from_primary() const;
  bool may_write_unread() const;
  bool applies_rows_unread() const;
  bool is_whole_image(const uchar *record) const;
  bool replaces_unread() const;
  bool is_target_of_delete() const;
  bool deletes_unread() const;
  PandoOnDuplicate on_duplicate() const;
  bool is_primary_key_exact() const;
  bool names_primary_key(const uchar *key, key_part_map map);
  int know_row(uchar *record, const uchar *key, key_part_map map, bool *is_known);

  /* --- expired_rows.cc --- */
  int begin_expiry(THD *thd);
  int check_purge(const pando::Expiry_purge *purge) const;
  void pass_by_expired(const uchar *record, bool *passed_by);
  void keep_record(const uchar *record);
  void give_back_record(uchar *record);
  bool knows_expiry(uint index) const;
  void want_expiry(MY_BITMAP *columns) const;
  int remove_expired(bool *removed);
  int find_duplicate(PandoBytes *row_key, bool *is_there);
  int is_row_expired(PandoBytes row_key, Lock lock, uchar *record, bool *expired, bool *absent);
  int remove_if_expired(PandoBytes row_key, bool *removed);
  ha_pando *other_place();
  void leave_other_place();

  /* --- delete_range.cc --- */
  bool may_delete_range() const;
  bool find_deleted_range(const COND *condition);
  void encode_beginning(key_part_map map, pando::Bytes *out);
  bool bound_deleted_range(const pando::Key_bound &bound, key_part_map map);

  /* --- related_rows.cc --- */
  void begin_related(uint index, Lock lock);
  int find_in_order(uint index, PandoBytes probe, bool is_first, bool *found);
  int seek_entry(PandoBytes key);
  int pass_entry();
  void encode_probe(uint index, uint parts, pando::Bytes *probe);
  int lock_related(uint index, PandoBytes probe, bool is_whole_key, bool *found);
  int find_related(uint index, PandoBytes probe, bool is_whole_key, bool *found);
  int seek_related(uint index, PandoBytes probe, bool is_whole_key, Lock lock, bool *found);
  int find_next_related(bool *found);
  void undo_to(uint64_t mark);

  /* --- load.cc --- */
  bool may_load() const;
  bool decides_duplicates() const;
  bool begin_trial();
  bool only_skips_duplicates() const;
  int admit_row(const uchar *record, pando::Admission *admission);
  int ask_for_row(const uchar *record, pando::Admission *admission);
  int ask_for_trial(bool *joined);
  int begin_own_load();
  void give_up_trial_row(int error);
  int write_row_in_bulk(const uchar *record, bool *done);
  int go_on_with_trial(const uchar *record);
  void add_to_batch(const uchar *record);
  int begin_load();
  bool submit_batch();
  int load_failed(PandoStatus status);
  void abort_bulk_insert();

  /* --- alter.cc --- */
  bool plan_columns(TABLE *altered, Alter_inplace_info *info, std::vector<PandoNewColumn> *columns,
                    std::deque<pando::Bytes> *values);
  bool verify_added_keys(Alter_inplace_info *info);
  int prepare_options(Alter_inplace_info *info, pando::Alter_context *context);
  int next_auto_increment_of_rows(ulonglong *next);

  /* --- alter_index.cc --- */
  enum_alter_inplace_result check_index_change(TABLE *altered, Alter_inplace_info *info);
  bool prepare_index_change(TABLE *altered, Alter_inplace_info *info);
  bool build_indexes(TABLE *altered, Alter_inplace_info *info);
  bool forget_index_change(TABLE *altered, Alter_inplace_info *info);
  int open_building();
  int open_defined(const char *name);
  /* Of the open table; null: none. See table_options.h. */
  const ha_table_option_struct *shared_options();
  int fill_indexes(pando::Alter_context *context);
  int check_clustering();
  int scan_for_indexes(pando::Alter_context *context);
  int scan_with(PandoCursor *cursor, PandoTxn *reader, pando::Alter_context *context,
                std::vector<pando::Index_layout> &layouts);
  void report_index_error(int error, TABLE *altered, const pando::Alter_context *context);

  /* --- damaged_keys.cc --- */
  bool is_damaged(uint index) const;
  void leave_out_damaged_keys();
  int report_damaged(uint index) const;
  void warn_of_damaged_keys(THD *thd) const;
  int give_up_misnamed_keys();
  PandoStatus check_all(THD *thd, bool is_extended);
  int begin_large_values_anew(THD *thd);
  int reopen();
  int rebuild_keys(THD *thd);

  /* --- check_entries.cc --- */
  PandoStatus check_entries(THD *thd);
  PandoStatus sum_entries_of_rows(THD *thd, PandoTxn *reader, pando::Entry_sums *sums);
  PandoStatus sum_entries_of_key(THD *thd, PandoTxn *reader, pando::Sums_of_key *sums);
  void want_columns_of_keys();

  /* --- information.cc --- */
  bool reads_key_alone(uint index) const;
  void refresh_index_flags();
  void mark_covering_keys();
  void refuse_jumps();
  int get_figures(uint flag, ha_rows *rows);
  const pando::Estimate *known_estimate(const pando::Estimate &wanted);
  double row_bytes() const { return stats.records ? double(m_raw_bytes) / double(stats.records) : 1; }
  void set_rec_per_key(ha_rows rows, bool anew);
  void guess_rec_per_key(uint index, ha_rows rows);

  PandoTable *m_table= nullptr;
  std::unique_ptr<pando::Index_layout[]> m_layouts; /* by the server's index number */
  std::vector<pando::Index_layout> m_building; /* indexes that another connection is adding */
  pando::Row_codec m_row_codec;
  pando::Large_values m_large;
  std::string m_name;

  /* The statement. */
  Lock m_lock= Lock::NONE;
  Lock m_stored_lock= Lock::NONE;
  bool m_skip_locked= false;
  bool m_peeks= false;           /* at locked rows, before it waits for them */
  bool m_read_latest= false;     /* whatever the statement reads: for auto-increment in a later key part */
  bool m_columns_prepared= false;
  bool m_keyread= false;
  bool m_is_clone= false; /* another one stands for the table in the statement */
  uint m_key_alone= MAX_KEY;     /* whose flags the table has as of reading it alone */
  bool m_entry_lacks_columns= false;         /* the key has only the beginning of a column that is wanted */
  bool m_entry_has_columns= false;           /* it has all that are wanted, whether or not the server knows it */
  PandoTxn *m_copy_txn= nullptr; /* of a copying ALTER or CREATE ... SELECT: commits in pieces */
  PandoTxn *m_sequence_txn= nullptr; /* of a sequence: each write is committed at once */

  /* The scan. */
  PandoCursor *m_cursor= nullptr;
  uint m_cursor_dictionary= 0;
  uint m_scan_dictionary= 0;
  PandoBatch m_batch= {};
  pando::Reader m_rows{nullptr, 0};
  uint m_rows_left= 0;
  uint m_rows_next= 1;
  ulonglong m_rows_fetched= 0; /* since the scan began */
  bool m_forward= true;
  bool m_positioned= false;      /* the scan is at m_entry_key */
  bool m_is_filtered= false;     /* rows that m_filter does not leave need not be met */
  bool m_in_gap= false;          /* or rather in the gap before it */
  bool m_at_cursor= false;       /* and the cursor can go on from its last batch */
  bool m_keep_same= false;       /* it ends where keys do not begin with m_same any more */
  bool m_is_sorted= false;       /* the server wants rows in the order of the key */
  bool m_is_out_of_date= false;  /* the last entry, which is of a unique key: its row did not agree when it was locked */
  uint m_disagreements= 0;       /* so often it was the same when it was read again */
  pando::Bytes m_stale_value;    /* what it was before */
  bool m_condition_is_false= false; /* why the last entry was passed by: the index condition, not that it was out of date */
  bool m_range_stop= false;      /* m_stop is the end of the server's range, not only of m_same */
  PandoBytes m_entry_key= {};
  PandoBytes m_entry_value= {};
  pando::Bytes m_search;
  pando::Bytes m_stop;
  bool m_has_stop= false;
  bool m_has_start= false;       /* it began at or before m_search */
  pando::Bytes m_same;           /* what index_next_same keeps to */
  pando::Bytes m_resume;
  const key_range *m_range_end= nullptr;
  bool m_begins_range= false; /* a search is for where a range begins */

  std::unique_ptr<pando::Row_filter> m_filter; /* what was pushed */
  struct Deleted_range
  {
    pando::Bytes from, to;
    bool is_any= false, has_to= false;
    uint64_t rows= 0;
  };
  Deleted_range m_deleted_range; /* all of the condition that was pushed */

  /* The current row. */
  pando::Bytes m_row_key;         /* its key in dictionary 0 */
  bool m_row_key_in_entry= false; /* not yet: the current entry has it */
  bool m_row_just_locked= false;
  uint64_t m_writes_seen= 0;      /* those to the table that the batch's rows are as of, or do not concern them */
  bool m_is_peek= false;          /* locked by another: as it was last committed */
  PandoBuffer *m_buffer= nullptr;
  PandoBuffer *m_entry_buffer= nullptr; /* m_entry_value of a unique key looked up */
  PandoBuffer *m_check_buffer= nullptr;

  /* Writing. */
  std::vector<Entry> m_new, m_old;
  std::vector<PandoEntry> m_new_views, m_old_views;
  pando::Bytes m_new_row_key, m_old_row_key, m_encoded;
  uint m_duplicate_index= MAX_KEY;
  ulonglong m_auto_increment_noted= 0;
  std::unique_ptr<pando::Bulk_insert> m_bulk; /* a bulk insert of the statement */
  bool m_decides_duplicates= false;           /* the server, row by row */
  bool m_replaces_duplicates= false;          /* and rows that are there change */
  bool m_may_overwrite= false;                /* or the engine may put new ones in their place */

  pando::Foreign_keys m_foreign{this};

  std::unique_ptr<pando::Expiry> m_expiry; /* TTL of the table, if it has one */
  pando::Bytes m_kept_record;              /* what was in the record before a row that has expired */
  std::set<std::string> m_replaced;        /* keys of rows that had expired, and have given way in this statement */
  bool m_is_purged= false;                 /* the statement removes what has expired */
  ha_pando *m_other_place= nullptr;        /* where a row is read and removed while this one is at another */

  uint64_t m_raw_bytes= 0;
  bool m_has_clustering_keys= false;
  std::vector<pando::Estimate> m_estimates; /* of the statement */
  query_id_t m_estimates_of= 0;             /* which one */
  ha_rows m_rows_of_keys= HA_POS_ERROR; /* when rec_per_key was set; HA_POS_ERROR: not yet */
  int m_last_error= 0;
  String m_last_error_text;
};

#endif
