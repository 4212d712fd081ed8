/* The constraints of one open table, and what they do when its rows are written. */
#ifndef PANDO_FOREIGN_KEY_ROWS_H
#define PANDO_FOREIGN_KEY_ROWS_H

#include "foreign_key.h"
#include "parent_probes.h"
#include <memory>

class ha_pando;

namespace pando {

class Related_table;

/* A change that another one has brought about, and those before it up to the statement's own. */
struct Cascade
{
  const Cascade *outer;                /* null: the statement's own */
  const std::string *path;             /* the table that is changed */
  bool is_update;
  const Foreign_key_definition *cause; /* null: the statement's own */
  uint depth;                          /* 0: the statement's own */
};

class Foreign_keys
{
public:
  explicit Foreign_keys(ha_pando *file);
  ~Foreign_keys();
  Foreign_keys(const Foreign_keys &) = delete;
  Foreign_keys &operator=(const Foreign_keys &) = delete;

  /* Before a statement writes rows. Errors: a parent's metadata lock was not granted. */
  int begin(THD *thd);
  /* The statement is over. */
  void end();

  bool is_referenced();
  /* Whether rows that this statement writes concern constraints. */
  bool are_checked() const { return m_are_checked; }
  bool check_inserts() const { return m_are_checked && !m_as_child.empty(); }

  /* In the place of the handler's own; `cascade`: who asks, if it is not the statement. A change that a constraint
     refuses is undone. */
  int insert(const uchar *record);
  int update(const uchar *old_record, const uchar *new_record, const Cascade *cascade);
  int remove(const uchar *record, const Cascade *cascade);

  /* The rows of a load, in the place of `insert`: they have parents if `end_load` has succeeded, too. */
  bool may_load() const;
  int load(const uchar *record);
  int end_load();

  /* Whether all rows of the table, which nobody else writes to, have parents by these constraints. */
  int verify(THD *thd, Foreign_key_list added);

private:
  /* One constraint, from the side of this table. */
  struct Constraint
  {
    explicit Constraint(const std::string &other_path) : other_names(other_path) {}
    Foreign_key_definition definition;
    Table_names other_names;
    std::vector<Field *> own;
    uint own_index= MAX_KEY; /* the first key that serves; errors, and what cascades, come in the order of keys */
    /* The other side, once it was needed in this statement. */
    Related_table *other= nullptr;
    bool is_missing= false;
    std::vector<Field *> fields;
    /* Where its columns and its key are, if it is of this version; 0: not known. */
    uint64_t places_version= 0;
    std::vector<uint> places;
    uint index= MAX_KEY;
    bool is_whole_key= false; /* at most one row has it */
    Parent_probes wanted; /* of a child */
  };

  /* Whether names and definitions may be others than when they were looked up. */
  bool is_outdated() const;
  /* Requires: no constraint is in use. */
  void refresh();
  void load(Foreign_key_list list, bool as_child, std::vector<Constraint> *constraints);
  Related_table *related(const std::string &path);
  static void find_places(Constraint *constraint, Related_table *other, const std::vector<std::string> &columns);
  int find_other(Constraint *constraint, const std::string &path, const std::vector<std::string> &columns, bool *found);
  bool encode_probe(Constraint *constraint, const std::vector<Field *> &from, const uchar *record, Bytes *probe);

  bool is_moved(const uchar *old_record, const uchar *new_record) const;
  int check_parents(const uchar *record, const uchar *old_record, const Foreign_key_definition *cause,
                    Constraint **violated);
  int has_parent(Constraint *constraint, const uchar *record, bool *found);
  int want_parent(Constraint *constraint, const uchar *record);
  int find_wanted(Constraint *constraint);
  int check_resolved(THD *thd, const Constraint &constraint) const;
  int verify_rows(THD *thd, Constraint *constraint);
  bool is_own_parent(Constraint *constraint, const uchar *record);
  bool is_own_child(Constraint *constraint, const uchar *record, const Bytes &probe);

  static bool concerns_child(const Constraint &constraint, const uchar *old_record, const uchar *new_record);
  bool concerns_children(const uchar *old_record, const uchar *new_record) const;
  bool may_bring_parents() const;
  int lock_children(const uchar *old_record, const uchar *new_record);
  int change_children(const uchar *old_record, const uchar *new_record, const Cascade &own);
  int change_children_of(Constraint *constraint, const uchar *old_record, const uchar *new_record, const Cascade &own);
  int cascade_to_rows(Constraint *constraint, const Bytes &probe, const uchar *new_record, const Cascade &own,
                      Action action);
  int cascade_to_row(Constraint *constraint, const uchar *new_record, const Cascade &cascade, Action action);
  bool set_columns(Constraint *constraint, const uchar *new_record, Action action);
  bool would_go_round(const Constraint &constraint, const Cascade &own) const;
  int refuse(int error, const Constraint &constraint);

  ha_pando *m_file;
  uint64_t m_version= 0;
  bool m_are_checked= false;
  bool m_is_verifying= false;
  bool m_is_interim= false;
  std::string m_path;
  std::vector<Constraint> m_as_child, m_as_parent;
  std::vector<Related_table *> m_related;
  Bytes m_probe, m_own_probe;
};

} // namespace pando

#endif
