/* Locks in words, for reports. */
#ifndef PANDO_LOCK_TEXT_H
#define PANDO_LOCK_TEXT_H

#include "plugin.h"

namespace pando {

/* `db`.`table`, with the partition in a comment, as the server names it in messages. */
void append_table_name(THD *thd, PandoBytes path, String *out);
/* The index's name and what of it is locked; false if the table is unknown: then there is no name, and the key
   is shown as bytes. */
bool append_index_and_data(const PandoLockRow &row, String *index, String *data);
const char *lock_mode_text(const PandoLockRow &row);
/* Names this lock of this transaction for as long as it has it. */
void append_lock_id(const PandoLockRow &row, String *out);

} // namespace pando

#endif
