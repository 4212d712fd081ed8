/* Foreign keys when rows are written.

   A child's row that is inserted, or whose key changes: each parent is looked up, by a locking read of the newest state, and
   stays locked shared to the end of the transaction. A parent's row that goes, or whose key changes, is locked exclusively by
   the statement, so no child can come from then on. It is written first; then its children are looked up in the key that
   the constraint has, by a locking read, too. RESTRICT: one is enough. CASCADE, SET NULL: each is changed by the same code as
   rows of statements, so all its keys and its own constraints follow. If a constraint refuses, the row's change is undone with all it has
   brought about (a mark in the transaction); the statement may go on, as with IGNORE.

   Who waits for whom. The parent is looked up before the child's row is written: so a child that waits for somebody who
   deletes the parent has nothing yet that that one would have to wait for. Of two errors that a new row has, InnoDB tells the one of
   the key that comes first, and REPLACE and ON DUPLICATE KEY UPDATE depend on that: a row without a parent is written to see whether a
   duplicate comes first, and undone.

   Of a parent's constraints those of its first key act first, and those of one key in the order of their names: as for InnoDB, whose
   result depends on that where one cascades to rows that another one would keep.

   Where many rows come at once (a load, a constraint that is added), the keys that they want of a parent are collected, and looked up in
   their order and each once.

   Values go from one side to the other as values of columns; then the other side's own key makes bytes of them. So
   descending keys, columns that may be NULL on one side only, and texts of different lengths need nothing of their own. */
#include "foreign_key_rows.h"
#include "related_table.h"
#include "ha_pando.h"
#include "definition.h"
#include <algorithm>

namespace pando {

/* As InnoDB: a chain of so many cascades is one too many. */
static const uint DEPTH_MAX= 15;

namespace {

/* While a row is looked up for a constraint, reports say so of whoever waits. */
class Waits_for_key
{
public:
  Waits_for_key(THD *thd, const Foreign_key_definition &key) : m_transaction(Transaction::of(thd))
  {
    m_transaction->set_foreign_key(&key);
  }
  ~Waits_for_key() { m_transaction->set_foreign_key(nullptr); }
  Waits_for_key(const Waits_for_key &) = delete;
  Waits_for_key &operator=(const Waits_for_key &) = delete;

private:
  Transaction *m_transaction;
};

} // namespace

Foreign_keys::Foreign_keys(ha_pando *file) : m_file(file) {}

Foreign_keys::~Foreign_keys()
{
  end();
}

/* --- the statement --- */

void Foreign_keys::load(Foreign_key_list list, bool as_child, std::vector<Constraint> *constraints)
{
  constraints->clear();
  for (Foreign_key_definition &definition : list)
  {
    Constraint constraint(as_child ? definition.parent : definition.child);
    constraint.definition= std::move(definition);
    bool is_usable= true;
    const std::vector<std::string> &columns= as_child ? constraint.definition.columns : constraint.definition.parent_columns;
    for (const std::string &name : columns)
    {
      Field *field= find_field(m_file->table, name);
      is_usable= is_usable && field;
      constraint.own.push_back(field);
    }
    constraint.own_index= first_key(m_file->table, columns);
    /* Columns of a parent that was made later, with foreign_key_checks=0. */
    if (is_usable)
      constraints->push_back(std::move(constraint));
  }
  std::stable_sort(constraints->begin(), constraints->end(),
                   [](const Constraint &a, const Constraint &b) { return a.own_index < b.own_index; });
}

bool Foreign_keys::is_outdated() const
{
  return m_version != pando_schema_version(db);
}

void Foreign_keys::refresh()
{
  if (!is_outdated())
    return;
  end();
  /* Before the lists are read: a change meanwhile makes them outdated. */
  m_version= pando_schema_version(db);
  m_path= catalog_path(m_file->m_name.c_str());
  m_is_interim= is_interim_name(m_path.c_str());
  load(constraints_of(m_path.c_str()), true, &m_as_child);
  load(references_to(m_path.c_str()), false, &m_as_parent);
}

bool Foreign_keys::is_referenced()
{
  refresh();
  return !m_as_parent.empty();
}

/* Whether the rows of a copy are checked when all are there (HA_EXTRA_END_COPY), of which MariaDB 11.8 does not tell where duplicates are
   passed by. */
#ifdef PANDO_SERVER_11_8
static bool is_checked_at_end(const THD *thd) { return !thd->lex->ignore; }
#else
static bool is_checked_at_end(const THD *) { return true; }
#endif

/* While it waited for the lock of a name, a RENAME may have given the constraint's parent another one. So the names are looked up again until
   nothing has changed while they were locked; from then on nothing can. A name that proves to be another table's stays locked: the
   names that come up are few, and each round locks more of them. */
int Foreign_keys::begin(THD *thd)
{
  do
  {
    refresh();
    m_are_checked= (!m_as_child.empty() || !m_as_parent.empty()) && foreign_keys_are_checked(thd) &&
                   !(m_is_interim && is_checked_at_end(thd));
    for (const Constraint &constraint : m_as_child)
      if (m_are_checked && !constraint.definition.is_to_itself() && !lock_metadata(thd, constraint.other_names, MDL_SHARED_READ))
        return HA_ERR_LOCK_WAIT_TIMEOUT;
  } while (is_outdated());
  return 0;
}

void Foreign_keys::end()
{
  for (std::vector<Constraint> *constraints : {&m_as_child, &m_as_parent})
    for (Constraint &constraint : *constraints)
    {
      constraint.other= nullptr;
      constraint.is_missing= false;
      constraint.wanted.clear();
    }
  for (Related_table *one : m_related)
    one->give_back();
  m_related.clear();
}

/* --- the other side --- */

Related_table *Foreign_keys::related(const std::string &path)
{
  for (Related_table *one : m_related)
    if (one->path() == path)
      return one;
  Related_table *one= Related_table::take(m_file->ha_thd(), path);
  if (one)
    m_related.push_back(one);
  return one;
}

/* Where the constraint's key and columns are. One statement after another finds them there, until a table changes. */
void Foreign_keys::find_places(Constraint *constraint, Related_table *other, const std::vector<std::string> &columns)
{
  if (constraint->places_version == other->version())
    return;
  constraint->places_version= other->version();
  const TABLE *table= other->table();
  constraint->places.clear();
  constraint->index= find_key(table, columns);
  if (constraint->index == MAX_KEY)
    return;
  for (const std::string &name : columns)
    constraint->places.push_back(find_field(table, name)->field_index);
  const KEY &key= table->key_info[constraint->index];
  constraint->is_whole_key= (key.flags & HA_NOSAME) && key.user_defined_key_parts == columns.size();
}

/* Nobody can say which rows the table has: that is no answer to a row. */
static int refuse_unopened(THD *thd, const std::string &path)
{
  const Table_names names(path);
  const std::string why= open_failure().text;
  Transaction::of(thd)->set_unopened(HA_ERR_INTERNAL_ERROR, std::string("table ") + names.database + "." + names.table +
                                                              " of a foreign key cannot be opened: " + why);
  return HA_ERR_INTERNAL_ERROR;
}

/* Not found: there is no such table, or it has no key for the constraint. */
int Foreign_keys::find_other(Constraint *constraint, const std::string &path, const std::vector<std::string> &columns,
                             bool *found)
{
  *found= constraint->other;
  if (constraint->other || constraint->is_missing)
    return 0;
  Related_table *other= related(path);
  if (!other && !open_failure().text.empty())
    return refuse_unopened(m_file->ha_thd(), path);
  constraint->is_missing= true;
  if (!other)
    return 0;
  find_places(constraint, other, columns);
  if (constraint->index == MAX_KEY)
    return 0;
  constraint->fields.clear();
  for (const uint place : constraint->places)
    constraint->fields.push_back(other->table()->field[place]);
  constraint->other= other;
  constraint->is_missing= false;
  *found= true;
  return 0;
}

static bool is_null(Field *field, const uchar *record)
{
  return field->is_null_in_record(record);
}

static bool has_null(const std::vector<Field *> &fields, const uchar *record)
{
  for (Field *field : fields)
    if (is_null(field, record))
      return true;
  return false;
}

/* Byte by byte, as InnoDB: a letter in another case is a change. */
static bool is_changed(Field *field, const uchar *old_record, const uchar *new_record)
{
  const bool was_null= is_null(field, old_record);
  if (was_null != is_null(field, new_record))
    return true;
  return !was_null && field->cmp_binary(field->ptr_in_record(old_record), field->ptr_in_record(new_record)) != 0;
}

static bool is_changed(const std::vector<Field *> &fields, const uchar *old_record, const uchar *new_record)
{
  for (Field *field : fields)
    if (is_changed(field, old_record, new_record))
      return true;
  return false;
}

/* Puts a value that is not NULL into a column of the same kind. False: it does not fit. */
static bool copy_value(Field *to, Field *from, const uchar *from_record)
{
  to->set_notnull();
  if (to->real_type() == from->real_type() && to->pack_length() == from->pack_length() &&
      to->real_type() != MYSQL_TYPE_BIT && to->charset() == from->charset())
  {
    memcpy(to->ptr, from->ptr_in_record(from_record), to->pack_length());
    return true;
  }
  const my_ptrdiff_t offset= my_ptrdiff_t(from_record - from->table->record[0]);
  StringBuffer<MAX_FIELD_WIDTH> buffer(from->charset());
  from->move_field_offset(offset);
  String *value= from->val_str(&buffer);
  bool fits= true;
  if (to->has_charset() || to->real_type() == MYSQL_TYPE_VARCHAR || to->real_type() == MYSQL_TYPE_STRING)
    fits= value->numchars() <= to->char_length() && value->length() <= to->field_length;
  if (fits)
  {
    THD *thd= to->table->in_use;
    const enum_check_fields check= thd->count_cuted_fields;
    thd->count_cuted_fields= CHECK_FIELD_IGNORE;
    to->store(value->ptr(), value->length(), value->charset());
    thd->count_cuted_fields= check;
  }
  from->move_field_offset(-offset);
  return fits;
}

/* The beginning of the other side's key that has the values of this record. False: no key of the other side can have them. */
bool Foreign_keys::encode_probe(Constraint *constraint, const std::vector<Field *> &from, const uchar *record,
                                Bytes *probe)
{
  for (size_t i= 0; i < from.size(); i++)
    if (!copy_value(constraint->fields[i], from[i], record))
      return false;
  constraint->other->file()->encode_probe(constraint->index, uint(from.size()), probe);
  return true;
}

int Foreign_keys::refuse(int error, const Constraint &constraint)
{
  THD *thd= m_file->ha_thd();
  String text;
  append_child_and_constraint(thd, constraint.definition, &text);
  Transaction::of(thd)->set_refusal(text.ptr(), text.length());
  String report;
  if (error == HA_ERR_FK_DEPTH_EXCEEDED)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_ROW_IS_REFERENCED,
                        "PANDO: Cannot delete/update rows with cascading foreign key constraints that exceed max depth of %u. Please "
                        "drop extra constraints and try again", DEPTH_MAX);
  if (error == HA_ERR_NO_REFERENCED_ROW)
    report.append(STRING_WITH_LEN("A row has no parent: "));
  else if (error == HA_ERR_FK_DEPTH_EXCEEDED)
    report.append(STRING_WITH_LEN("A chain of cascades is too long: "));
  else
    report.append(STRING_WITH_LEN("A row has children: "));
  report.append(text);
  note_foreign_key_error(thd, report.c_ptr_safe());
  return error;
}

/* --- parents --- */

int Foreign_keys::has_parent(Constraint *constraint, const uchar *record, bool *found)
{
  *found= false;
  const Foreign_key_definition &definition= constraint->definition;
  bool is_there;
  if (int error= find_other(constraint, definition.parent, definition.parent_columns, &is_there); error || !is_there)
    return error;
  if (!encode_probe(constraint, constraint->own, record, &m_probe))
    return 0;
  {
    const Waits_for_key waits(m_file->ha_thd(), definition);
    if (int error= constraint->other->file()->lock_related(constraint->index, m_probe.view(), constraint->is_whole_key, found))
      return error;
  }
  if (!*found && definition.is_to_itself())
    *found= is_own_parent(constraint, record);
  return 0;
}

/* Whether the row is its own parent. Requires: m_probe has the values of its child's columns. */
bool Foreign_keys::is_own_parent(Constraint *constraint, const uchar *record)
{
  std::vector<Field *> own;
  for (const std::string &name : constraint->definition.parent_columns)
    own.push_back(find_field(m_file->table, name));
  return !has_null(own, record) && encode_probe(constraint, own, record, &m_own_probe) && m_own_probe == m_probe;
}

/* Whether an update gives the row another primary key. */
bool Foreign_keys::is_moved(const uchar *old_record, const uchar *new_record) const
{
  if (!m_file->has_primary_key())
    return false;
  const KEY &key= m_file->table->key_info[m_file->table->s->primary_key];
  for (uint part= 0; part < key.user_defined_key_parts; part++)
    if (is_changed(key.key_part[part].field, old_record, new_record))
      return true;
  return false;
}

/*
  Locks the parents of a row; `violated`: a constraint that has none. An update that leaves the child's columns alone asks
  nothing, unless it moves the row to another primary key: InnoDB inserts the row anew then, and asks for its parents again.
  That matters where one was missing already, as rows made with foreign_key_checks=0 have it.
*/
int Foreign_keys::check_parents(const uchar *record, const uchar *old_record, const Foreign_key_definition *cause,
                                Constraint **violated)
{
  *violated= nullptr;
  const bool is_new= !old_record || (!m_as_child.empty() && is_moved(old_record, record));
  for (Constraint &constraint : m_as_child)
  {
    /* The parent's own change brings this one about. */
    if (cause && cause->name == constraint.definition.name)
      continue;
    if (has_null(constraint.own, record) || (!is_new && !is_changed(constraint.own, old_record, record)))
      continue;
    bool found;
    if (int error= has_parent(&constraint, record, &found))
      return error;
    if (!found)
    {
      *violated= &constraint;
      return 0;
    }
  }
  return 0;
}

/* --- children --- */

bool Foreign_keys::concerns_child(const Constraint &constraint, const uchar *old_record, const uchar *new_record)
{
  return !has_null(constraint.own, old_record) && (!new_record || is_changed(constraint.own, old_record, new_record));
}

bool Foreign_keys::concerns_children(const uchar *old_record, const uchar *new_record) const
{
  for (const Constraint &constraint : m_as_parent)
    if (concerns_child(constraint, old_record, new_record))
      return true;
  return false;
}

/* Two tables may be each other's parents: what an update cascades to may be the parent that the row wants. */
bool Foreign_keys::may_bring_parents() const
{
  for (const Constraint &constraint : m_as_parent)
    if (constraint.definition.on_update == PANDO_REFERENTIAL_ACTION_CASCADE)
      return true;
  return false;
}

static bool changes_rows(Action action)
{
  return action == PANDO_REFERENTIAL_ACTION_CASCADE || action == PANDO_REFERENTIAL_ACTION_SET_NULL;
}

/* The server has locked children, but by the names they had before it waited. Then as in `begin`: a constraint that names this table can get another child,
   or go, but none can come. Constraints may be others afterwards. */
int Foreign_keys::lock_children(const uchar *old_record, const uchar *new_record)
{
  THD *thd= m_file->ha_thd();
  do
  {
    refresh();
    for (const Constraint &constraint : m_as_parent)
    {
      const Foreign_key_definition &definition= constraint.definition;
      if (definition.is_to_itself() || !concerns_child(constraint, old_record, new_record))
        continue;
      const bool changes= changes_rows(new_record ? definition.on_update : definition.on_delete);
      if (!lock_metadata(thd, constraint.other_names, changes ? MDL_SHARED_WRITE : MDL_SHARED_READ))
        return HA_ERR_LOCK_WAIT_TIMEOUT;
    }
  } while (is_outdated());
  return 0;
}

int Foreign_keys::change_children(const uchar *old_record, const uchar *new_record, const Cascade &own)
{
  if (int error= lock_children(old_record, new_record))
    return error;
  for (Constraint &constraint : m_as_parent)
    if (concerns_child(constraint, old_record, new_record))
      if (int error= change_children_of(&constraint, old_record, new_record, own))
        return error;
  return 0;
}

int Foreign_keys::change_children_of(Constraint *constraint, const uchar *old_record, const uchar *new_record,
                                     const Cascade &own)
{
  THD *thd= m_file->ha_thd();
  const Foreign_key_definition &definition= constraint->definition;
  const Action action= new_record ? definition.on_update : definition.on_delete;
  const bool changes= changes_rows(action);
  bool is_there;
  if (int error= find_other(constraint, definition.child, definition.columns, &is_there))
    return error;
  if (!is_there)
    return refuse(HA_ERR_ROW_IS_REFERENCED, *constraint);
  Bytes probe;
  if (!encode_probe(constraint, constraint->own, old_record, &probe))
    return 0;
  /* As InnoDB: a row that is its own child cannot go, and its key can change in no way, even if it names another parent from now on. */
  const bool is_to_stay= !changes || new_record;
  if (is_to_stay && definition.is_to_itself() && is_own_child(constraint, old_record, probe))
    return refuse(HA_ERR_ROW_IS_REFERENCED, *constraint);
  if (changes)
    return cascade_to_rows(constraint, probe, new_record, own, action);
  bool found;
  {
    const Waits_for_key waits(thd, definition);
    if (int error= constraint->other->file()->lock_related(constraint->index, probe.view(), constraint->is_whole_key, &found))
      return error;
  }
  return found ? refuse(HA_ERR_ROW_IS_REFERENCED, *constraint) : 0;
}

/* `probe` has the values of its parent's columns. */
bool Foreign_keys::is_own_child(Constraint *constraint, const uchar *record, const Bytes &probe)
{
  std::vector<Field *> own;
  for (const std::string &name : constraint->definition.columns)
    own.push_back(find_field(m_file->table, name));
  return !has_null(own, record) && encode_probe(constraint, own, record, &m_own_probe) && m_own_probe == probe;
}

/* An update that would come back to a table which an update in the same chain is changing. */
bool Foreign_keys::would_go_round(const Constraint &constraint, const Cascade &own) const
{
  for (const Cascade *one= &own; one; one= one->outer)
    if (one->is_update && *one->path == constraint.definition.child)
      return true;
  return false;
}

int Foreign_keys::cascade_to_rows(Constraint *constraint, const Bytes &probe, const uchar *new_record,
                                  const Cascade &own, Action action)
{
  THD *thd= m_file->ha_thd();
  ha_pando *child= constraint->other->file();
  const Foreign_key_definition &definition= constraint->definition;
  const bool is_update= new_record || action == PANDO_REFERENTIAL_ACTION_SET_NULL;
  const Cascade cascade= {&own, &definition.child, is_update, &definition, own.depth + 1};
  bool found;
  {
    const Waits_for_key waits(thd, definition);
    if (int error= child->find_related(constraint->index, probe.view(), constraint->is_whole_key, &found))
      return error;
  }
  if (!found)
    return 0;
  if (is_update && would_go_round(*constraint, own))
    return refuse(HA_ERR_ROW_IS_REFERENCED, *constraint);
  if (cascade.depth >= DEPTH_MAX)
    return refuse(HA_ERR_FK_DEPTH_EXCEEDED, *constraint);
  if (int error= child->m_foreign.begin(thd))
    return error;
  while (found)
  {
    if (is_to_end(thd))
      return HA_ERR_ABORTED_BY_USER;
    if (int error= cascade_to_row(constraint, new_record, cascade, action))
      return error;
    if (constraint->is_whole_key)
      return 0;
    const Waits_for_key waits(thd, definition);
    if (int error= child->find_next_related(&found))
      return error;
  }
  return 0;
}

int Foreign_keys::cascade_to_row(Constraint *constraint, const uchar *new_record, const Cascade &cascade,
                                 Action action)
{
  TABLE *table= constraint->other->table();
  ha_pando *child= constraint->other->file();
  uchar *record= table->record[0], *old_record= table->record[1];
  if (table->vfield && table->update_virtual_fields(child, VCOL_UPDATE_FOR_READ))
    return HA_ERR_GENERIC;
  int error;
  if (!cascade.is_update)
    error= child->m_foreign.remove(record, &cascade);
  else
  {
    memcpy(old_record, record, table->s->reclength);
    if (!set_columns(constraint, new_record, action))
      return refuse(HA_ERR_ROW_IS_REFERENCED, *constraint);
    if (table->vfield && table->update_virtual_fields(child, VCOL_UPDATE_FOR_WRITE))
      return HA_ERR_GENERIC;
    error= child->m_foreign.update(old_record, record, &cascade);
  }
  if (error == HA_ERR_RECORD_IS_THE_SAME)
    return 0;
  if (error == HA_ERR_FOUND_DUPP_KEY)
  {
    const Table_names names(constraint->definition.child);
    const uint index= child->duplicate_index();
    Transaction::of(m_file->ha_thd())
      ->set_refusing_key(names.table, index < table->s->keys ? table->key_info[index].name.str : "");
    return HA_ERR_FOREIGN_DUPLICATE_KEY;
  }
  return error;
}

/* False: a column cannot be so. */
bool Foreign_keys::set_columns(Constraint *constraint, const uchar *new_record, Action action)
{
  for (size_t i= 0; i < constraint->own.size(); i++)
  {
    Field *field= constraint->fields[i];
    if (action == PANDO_REFERENTIAL_ACTION_SET_NULL || is_null(constraint->own[i], new_record))
    {
      if (!field->real_maybe_null())
        return false;
      field->set_null();
    }
    else if (!copy_value(field, constraint->own[i], new_record))
      return false;
  }
  return true;
}

/* --- rows --- */

int Foreign_keys::insert(const uchar *record)
{
  Constraint *violated;
  if (int error= check_parents(record, nullptr, nullptr, &violated))
    return error;
  if (!violated)
    return m_file->write_one_row(record);
  PandoTxn *txn= m_file->txn();
  const uint64_t mark= pando_txn_mark(txn);
  const int error= m_file->write_one_row(record);
  if (!error)
    pando_txn_rollback_to(txn, mark);
  pando_txn_release_mark(txn, mark);
  if (error && !(error == HA_ERR_FOUND_DUPP_KEY && m_file->duplicate_index() >= violated->own_index))
    return error;
  return refuse(HA_ERR_NO_REFERENCED_ROW, *violated);
}

int Foreign_keys::update(const uchar *old_record, const uchar *new_record, const Cascade *cascade)
{
  Constraint *violated;
  if (int error= check_parents(new_record, old_record, cascade ? cascade->cause : nullptr, &violated))
    return error;
  if (!violated && !concerns_children(old_record, new_record))
    return m_file->update_one_row(old_record, new_record);
  PandoTxn *txn= m_file->txn();
  const uint64_t mark= pando_txn_mark(txn);
  int error= m_file->update_one_row(old_record, new_record);
  if (!error)
  {
    const Cascade own= {nullptr, &m_path, true, nullptr, 0};
    /* After the children have changed, `violated` may be of before constraints were looked up again. */
    const bool is_asked_again= violated && may_bring_parents();
    if (!violated || is_asked_again)
      error= change_children(old_record, new_record, cascade ? *cascade : own);
    if (!error && is_asked_again)
      error= check_parents(new_record, old_record, cascade ? cascade->cause : nullptr, &violated);
    if (!error && violated)
      error= refuse(HA_ERR_NO_REFERENCED_ROW, *violated);
    if (error)
      m_file->undo_to(mark);
  }
  pando_txn_release_mark(txn, mark);
  return error;
}

int Foreign_keys::remove(const uchar *record, const Cascade *cascade)
{
  if (!concerns_children(record, nullptr))
    return m_file->delete_one_row(record);
  PandoTxn *txn= m_file->txn();
  const uint64_t mark= pando_txn_mark(txn);
  int error= m_file->delete_one_row(record);
  if (!error)
  {
    const Cascade own= {nullptr, &m_path, false, nullptr, 0};
    error= change_children(record, nullptr, cascade ? *cascade : own);
    if (error)
      m_file->undo_to(mark);
  }
  pando_txn_release_mark(txn, mark);
  return error;
}

/* --- many rows --- */

/* The parent of a row is looked up later, with those of others. */
int Foreign_keys::want_parent(Constraint *constraint, const uchar *record)
{
  if (has_null(constraint->own, record))
    return 0;
  const Foreign_key_definition &definition= constraint->definition;
  bool is_there;
  if (int error= find_other(constraint, definition.parent, definition.parent_columns, &is_there))
    return error;
  if (!is_there || !encode_probe(constraint, constraint->own, record, &m_probe))
    return refuse(HA_ERR_NO_REFERENCED_ROW, *constraint);
  constraint->wanted.add(m_probe.view());
  return constraint->wanted.is_full() ? find_wanted(constraint) : 0;
}

int Foreign_keys::find_wanted(Constraint *constraint)
{
  THD *thd= m_file->ha_thd();
  Parent_probes *wanted= &constraint->wanted;
  wanted->sort();
  const Waits_for_key waits(thd, constraint->definition);
  for (size_t i= 0; i < wanted->count(); i++)
  {
    if (is_to_end(thd))
      return HA_ERR_ABORTED_BY_USER;
    ha_pando *parent= constraint->other->file();
    bool found;
    /* Where all rows are verified, nobody can write to the parent. */
    if (int error= m_is_verifying ? parent->find_in_order(constraint->index, wanted->at(i), i == 0, &found)
                                  : parent->lock_related(constraint->index, wanted->at(i), constraint->is_whole_key,
                                                         &found))
      return error;
    if (!found)
      return refuse(HA_ERR_NO_REFERENCED_ROW, *constraint);
  }
  wanted->clear();
  return 0;
}

/* Rows that refer to others of the same load would not find them. */
bool Foreign_keys::may_load() const
{
  if (!check_inserts())
    return true;
  for (const Constraint &constraint : m_as_child)
    if (constraint.definition.is_to_itself())
      return false;
  return true;
}

int Foreign_keys::load(const uchar *record)
{
  for (Constraint &constraint : m_as_child)
    if (int error= want_parent(&constraint, record))
      return error;
  return 0;
}

int Foreign_keys::end_load()
{
  for (Constraint &constraint : m_as_child)
    if (int error= find_wanted(&constraint))
      return error;
  return 0;
}

/* In the order of the child's key, which is that of the parent's, or near it; without one, in the order of rows. */
int Foreign_keys::verify_rows(THD *thd, Constraint *constraint)
{
  TABLE *table= m_file->table;
  uchar *record= table->record[0];
  const uint index= constraint->own_index;
  const bool by_key= index != MAX_KEY && !m_file->is_damaged(index);
  int error;
  if (by_key)
  {
    m_file->extra(HA_EXTRA_KEYREAD);
    bitmap_clear_all(table->read_set);
    for (Field *field : constraint->own)
      bitmap_set_bit(table->read_set, field->field_index);
    error= m_file->index_init(index, true);
    if (!error)
      error= m_file->index_first(record);
  }
  else
  {
    m_file->rnd_init(true);
    error= m_file->rnd_next(record);
  }
  while (!error)
  {
    if (is_to_end(thd))
      error= HA_ERR_ABORTED_BY_USER;
    else if (!by_key && table->vfield && table->update_virtual_fields(m_file, VCOL_UPDATE_FOR_READ))
      error= HA_ERR_GENERIC;
    else
      error= want_parent(constraint, record);
    if (!error)
      error= by_key ? m_file->index_next(record) : m_file->rnd_next(record);
  }
  m_file->extra(HA_EXTRA_NO_KEYREAD);
  bitmap_set_all(table->read_set);
  if (by_key)
    m_file->index_end();
  else
    m_file->rnd_end();
  m_file->close_scan();
  return error == HA_ERR_END_OF_FILE ? find_wanted(constraint) : error;
}

/* A prepared transaction without a connection has no metadata locks, and its rows are not to be seen before it is committed:
   children without a parent, or parents that go. */
int Foreign_keys::check_resolved(THD *thd, const Constraint &constraint) const
{
  for (const std::string *path : {&m_path, &constraint.definition.parent})
    if (int error= error_of(pando_table_check_resolved(db, text(path->c_str())), thd))
      return error;
  return 0;
}

int Foreign_keys::verify(THD *thd, Foreign_key_list added)
{
  if (added.empty())
    return 0;
  m_path= catalog_path(m_file->m_name.c_str());
  load(std::move(added), true, &m_as_child);
  m_is_verifying= true;
  const ha_pando::Lock lock= m_file->m_lock;
  m_file->m_lock= ha_pando::Lock::NONE;
  m_file->m_read_latest= true;
  TABLE *table= m_file->table;
  MY_BITMAP *read_set= table->read_set, *write_set= table->write_set;
  table->column_bitmaps_set_no_signal(&table->tmp_set, &table->tmp_set);
  bitmap_set_all(&table->tmp_set);
  int error= 0;
  for (Constraint &constraint : m_as_child)
    if (!error && !(error= check_resolved(thd, constraint)))
      error= verify_rows(thd, &constraint);
  table->column_bitmaps_set_no_signal(read_set, write_set);
  m_file->m_columns_prepared= false;
  end();
  m_file->m_lock= lock;
  m_file->m_read_latest= false;
  m_is_verifying= false;
  m_version= 0;
  return error;
}

} // namespace pando
