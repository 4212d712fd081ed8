/* Keys whose file is damaged or missing. The engine goes on without them (crates/pandodb/src/ddl/damaged_keys.rs):

     the optimizer         does not choose them: they are not among keys_in_use
     a read by one         error 1712, which names the key; so for HANDLER, and where the damage was found after the plan
                           had been made
     writes                leave them out. A row that would get a new value of a UNIQUE one is refused (1712)
     DROP KEY, ADD KEY     as for others
     CHECK TABLE           names them, and finds them
     REPAIR TABLE          checks the table (not with QUICK), and builds the damaged keys anew of its rows. What cannot be
                           built beside a table (keys on virtual columns) copies the table, as ALTER TABLE ... FORCE does

   A key may also be whole and have the entries of another one: an older version of the plugin let an ALTER TABLE change the order of keys in
   the .frm and not in the catalog. That is told by their names when the table is opened. Whether entries are those of the rows
   is told by CHECK TABLE ... EXTENDED (check_entries.cc).

   And the file of large values, in place of which REPAIR TABLE begins a new one. */
#include "alter.h"

using namespace pando;

static bool is_in(uint64_t damaged, uint dictionary)
{
  return dictionary > 0 && dictionary <= 64 && (damaged >> (dictionary - 1) & 1);
}

bool ha_pando::is_damaged(uint index) const
{
  return is_in(pando_table_unusable_keys(m_table), dictionary_of(index));
}

/* Of all who have the table open; asked for at the beginning of each statement, because the engine may find damage at any
   time. */
void ha_pando::leave_out_damaged_keys()
{
  const uint64_t damaged= pando_table_unusable_keys(m_table);
  if (!damaged)
    return;
  const bool is_shared= table_share->tmp_table == NO_TMP_TABLE;
  if (is_shared)
    mysql_mutex_lock(&table_share->LOCK_share);
  for (uint i= 0; i < table_share->keys; i++)
  {
    if (!is_in(damaged, dictionary_of(i)))
      continue;
    table_share->keys_in_use.clear_bit(i);
    table_share->keys_for_keyread.clear_bit(i);
    table->keys_in_use_for_query.clear_bit(i);
    table->covering_keys.clear_bit(i);
  }
  if (is_shared)
    mysql_mutex_unlock(&table_share->LOCK_share);
}

namespace {

/* The keys that the server and the catalog know by different names. */
struct Misnamed_keys
{
  const TABLE *table;
  uint first; /* the key of dictionary 1 */
  std::vector<PandoIndexName> found;

  static void compare(void *context, uint32_t dictionary, PandoBytes name)
  {
    Misnamed_keys *its= static_cast<Misnamed_keys *>(context);
    const uint index= its->first + dictionary - 1;
    if (index >= its->table->s->keys)
      return;
    const LEX_CSTRING &here= its->table->key_info[index].name;
    const std::string there(reinterpret_cast<const char *>(name.data), name.len);
    if (!is_same_name(here, LEX_CSTRING{there.c_str(), there.size()}))
      its->found.push_back(PandoIndexName{dictionary, text(here.str)});
  }
};

} // namespace

/* A key's dictionary is told by its place. Whoever opens a temporary table has made it. */
int ha_pando::give_up_misnamed_keys()
{
  if (table_share->tmp_table != NO_TMP_TABLE)
    return 0;
  Misnamed_keys keys= {table, has_primary_key() ? 1U : 0U, {}};
  if (PandoStatus status= pando_table_key_names_visit(db, m_table, &keys, Misnamed_keys::compare))
    return fail(status);
  if (keys.found.empty())
    return 0;
  const PandoStatus status= pando_table_give_up_misnamed_keys(db, m_table, keys.found.data(), uint32_t(keys.found.size()));
  return status ? fail(status) : 0;
}

/* The server's own text of the error would name the table. */
int ha_pando::report_damaged(uint index) const
{
  my_error(ER_INDEX_CORRUPT, MYF(0), table->key_info[index].name.str);
  return HA_ERR_INDEX_CORRUPT;
}

/* Names the keys to the client of CHECK TABLE. */
void ha_pando::warn_of_damaged_keys(THD *thd) const
{
  for (uint i= 0; i < table_share->keys; i++)
    if (is_damaged(i))
      push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_INDEX_CORRUPT, ER_THD(thd, ER_INDEX_CORRUPT),
                          table->key_info[i].name.str);
}

int ha_pando::repair(THD *thd, HA_CHECK_OPT *options)
{
  /* What another version of the server has written otherwise than this one would. */
  if (ha_check_for_upgrade(options))
    return HA_ADMIN_TRY_ALTER;
  const PandoStatus checked= options->flags & T_QUICK ? PANDO_STATUS_OK : check_all(thd, options->flags & T_EXTEND);
  const bool is_lost= pando_table_has_lost_large_file(m_table);
  const bool is_known= !checked || checked == PANDO_STATUS_CORRUPTION || checked == PANDO_STATUS_KEY_UNUSABLE ||
                       checked == PANDO_STATUS_VALUES_LOST;
  if (!is_known)
    return HA_ADMIN_FAILED;
  if (is_lost)
    if (int failed= begin_large_values_anew(thd))
      return failed;
  /* Where the rows are damaged, too, the rebuild says so. */
  if (pando_table_unusable_keys(m_table))
    return rebuild_keys(thd);
  return !checked || (is_lost && checked == PANDO_STATUS_VALUES_LOST) ? HA_ADMIN_OK : HA_ADMIN_CORRUPT;
}

/* Large values whose file is damaged or missing are given up, and new ones get another file (crates/pandodb/src/ddl/lost_values.rs). Nobody
   else has the table. */
int ha_pando::begin_large_values_anew(THD *thd)
{
  close_scan();
  m_large.release();
  if (fail(pando_table_begin_large_values_anew(db, text(m_name.c_str()))))
    return HA_ADMIN_FAILED;
  push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG,
               "Large values were lost with their file: delete the rows that had them, or set new values; CHECK TABLE counts them");
  return reopen();
}

int ha_pando::reopen()
{
  close();
  if (int failed= open_defined(m_name.c_str()))
  {
    print_error(failed, MYF(0));
    return HA_ADMIN_FAILED;
  }
  return HA_ADMIN_OK;
}

/* Builds the damaged keys anew, and puts them in place of the old ones in one record of the catalog. Nobody else has the
   table. */
int ha_pando::rebuild_keys(THD *thd)
{
  Alter_context context(m_name.c_str(), table, table_share->tabledef_version);
  std::deque<Bytes> recipes;
  std::vector<PandoNewIndex> indexes;
  context.sets_indexes= true;
  for (uint i= 0; i < table_share->keys; i++)
  {
    if (i == table_share->primary_key)
      continue;
    const KEY &key= table->key_info[i];
    const bool is_new= is_damaged(i);
    PandoIndexPlace place= {text(key.name.str), is_new, 0};
    place.position= is_new ? uint32_t(indexes.size()) : dictionary_of(i);
    context.places.push_back(place);
    if (!is_new)
      continue;
    if (!can_be_built(table, key))
      return HA_ADMIN_TRY_ALTER;
    context.added.push_back(&key);
    recipes.emplace_back();
    make_recipe(key, &recipes.back());
    indexes.push_back(PandoNewIndex{place.name, recipes.back().view(), uint8_t(key.flags & HA_NOSAME ? 1 : 0),
                                    Index_layout::clustering_of(table, &key)});
  }
  close_scan();
  const char *old_stage= thd_proc_info(thd, "Repair by sorting");
  int error= fail(pando_build_begin(db, text(m_name.c_str()), indexes.data(), uint32_t(indexes.size()),
                                    &context.build));
  if (!error)
    error= fill_indexes(&context);
  if (!error)
  {
    close_scan();
    const PandoTableChange change= context.change();
    error= fail(pando_tables_alter(db, &change, 1, nullptr));
  }
  thd_proc_info(thd, old_stage);
  if (error)
  {
    if (!is_to_end(thd))
      report_index_error(error, table, &context);
    return HA_ADMIN_FAILED;
  }
  /* The engine's object that this handler has does not know the new keys. */
  context.free_build();
  return reopen();
}
