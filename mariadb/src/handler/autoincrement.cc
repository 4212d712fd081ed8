/* AUTO_INCREMENT. For a column that a key begins with, the table has a counter, which is given out at
   once and never back (as InnoDB does with innodb_autoinc_lock_mode=2) and is logged with the rows that
   use it. For a column further back in a key, the next value is looked up in the key. */
#include "ha_pando.h"

using namespace pando;

void ha_pando::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                                  ulonglong *reserved)
{
  if (table_share->next_number_keypart)
  {
    m_read_latest= true;
    handler::get_auto_increment(offset, increment, wanted, first, reserved);
    m_read_latest= false;
    close_scan();
    return;
  }
  const ulonglong most= table->next_number_field->get_max_int_value();
  uint64_t value;
  *reserved= MY_MAX(wanted, 1ULL);
  if (pando_table_reserve_auto_increment(m_table, increment, offset, *reserved, &value))
  {
    *first= ULONGLONG_MAX;
    return;
  }
  *first= value;
  /* The server finds values beyond the column's range itself, one by one. */
  if (value > most)
    *reserved= 1;
}

/* A row has this value in the auto-increment column: later values are above it. */
void ha_pando::note_auto_increment(Field *field)
{
  const longlong value= field->val_int_offset(0);
  if (!(field->flags & UNSIGNED_FLAG) && value <= 0)
    return;
  const ulonglong used= ulonglong(value);
  if (used < m_auto_increment_noted || used > field->get_max_int_value())
    return;
  m_auto_increment_noted= used == ULONGLONG_MAX ? used : used + 1;
  pando_txn_raise_auto_increment(txn(), m_table, m_auto_increment_noted);
}

/* A statement whose number of rows is known takes all its values at once, so that it can be replayed from its
   first one. These take them in several pieces, between which others may take theirs: rows have to go
   to the binary log. */
bool ha_pando::autoinc_lock_mode_stmt_unsafe() const
{
  switch (thd_sql_command(ha_thd()))
  {
  case SQLCOM_INSERT_SELECT:
  case SQLCOM_REPLACE_SELECT:
  case SQLCOM_LOAD:
  case SQLCOM_CREATE_TABLE:
    return true;
  default:
    return false;
  }
}
