/* Foreign keys in definitions of tables. */
#ifndef PANDO_FOREIGN_KEY_DDL_H
#define PANDO_FOREIGN_KEY_DDL_H

#include "foreign_key.h"

namespace pando {

/* Of CREATE TABLE, also where ALTER TABLE copies: the constraints that the new table is to have. Whether those of other tables,
   of which it is the parent, can be kept is looked at, too. Errors have been reported as far as the server does not. */
int define_foreign_keys(THD *thd, const char *path, TABLE *form, HA_CREATE_INFO *info, Foreign_key_list *list);

/* Of ALTER TABLE in place. `old_table`: as it is, `renamed`: old and new names of columns. True: an error, which has been reported. */
bool alter_foreign_keys(THD *thd, const char *path, const TABLE *old_table, TABLE *altered, Alter_info *alter,
                        const std::vector<std::string> &renamed, Foreign_key_list *list);

/* Whether the rows, as they are, can be checked for the constraints that an ALTER adds. */
bool can_verify_in_place(const TABLE *table, Alter_info *alter);

/* Old and new names of the columns that an ALTER renames, in turn. */
std::vector<std::string> renamed_columns(const TABLE *altered, Alter_info *alter);

/* Whether a table may be dropped. */
int may_drop(THD *thd, const char *path);

/* Whether a table may take a name that constraints of others have for their parent. */
int may_rename(THD *thd, const char *from, const char *to);

/* Those of the constraints of a table that is being filled by ALTER TABLE which the statement adds. */
Foreign_key_list added_foreign_keys(THD *thd, const char *path);

} // namespace pando

#endif
