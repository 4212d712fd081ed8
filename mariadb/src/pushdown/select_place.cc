/* Where a SELECT of any shape stands, and where the rows of its tables are.

   The engine answers from consistent reads alone. Whether a statement reads so is the handler's to say (`locking.cc`): a SELECT
   does in all isolation levels but SERIALIZABLE, one whose rows are inserted in READ COMMITTED and below. Others lock what they
   read, and stay with the server's executor (and with `create_pushdown`, which can lock all rows of a table at once). */
#include "select_translate.h"
#include "ha_partition.h"

namespace pando {

bool is_stored_by_statement(const THD *thd)
{
  switch (thd->lex->sql_command)
  {
  case SQLCOM_INSERT_SELECT:
  case SQLCOM_REPLACE_SELECT:
  case SQLCOM_CREATE_TABLE:
    return true;
  default:
    return false;
  }
}

bool sets_variables(const THD *thd)
{
  return thd->lex->sql_command == SQLCOM_SELECT && dynamic_cast<const select_dumpvar *>(thd->lex->result);
}

/* ON DUPLICATE KEY UPDATE may look at columns of the rows that were selected: then the server has to have them. */
bool updates_by_rows_selected(const THD *thd)
{
  LEX *lex= thd->lex;
  const TABLE_LIST *target= lex->query_tables;
  if (lex->duplicates != DUP_UPDATE)
    return false;
  if (!target || !target->table || target->is_view_or_derived())
    return true;
  List_iterator_fast<Item> values(lex->value_list);
  for (Item *value; (value= values++); )
  {
    List<Item_field> fields;
    if (!value->fixed() || value->with_subquery())
      return true;
    value->walk(&Item::collect_item_field_processor, false, &fields);
    List_iterator_fast<Item_field> each(fields);
    for (const Item_field *field; (field= each++); )
      if (!field->field || field->field->table != target->table)
        return true;
  }
  return false;
}

/* What else has side effects is refused where it stands (`acts`): reading a user variable is said to have one, too, and has none.
   What `max_join_size` refuses, the server's optimizer says. */
bool is_statement_for_engine(THD *thd, const SELECT_LEX *select)
{
  const LEX *lex= thd->lex;
  return (lex->sql_command == SQLCOM_SELECT || (is_stored_by_statement(thd) && !updates_by_rows_selected(thd))) &&
         !thd->is_error() && !(thd->variables.sql_mode & MODE_PAD_CHAR_TO_FULL_LENGTH) && !lex->with_rownum &&
         !lex->limit_rows_examined && (thd->variables.option_bits & OPTION_BIG_SELECTS) &&
         !(select->options & (OPTION_FOUND_ROWS | OPTION_SCHEMA_TABLE)) && !(select->uncacheable & UNCACHEABLE_RAND) &&
         thd->lex->set_var_list.is_empty();
}

std::vector<ha_pando *> handlers_of(TABLE *table)
{
  std::vector<ha_pando *> handlers, none;
  if (table->file->partition_ht() != hton || table->versioned() || table->force_index)
    return none;
  if (table->file->ht == hton)
    handlers.push_back(static_cast<ha_pando *>(table->file));
  else if (table->part_info)
  {
    /* Those that PARTITION (...) names, or all; fewer by what conditions say, where somebody has asked (select_prune.h). */
    handler **const parts= static_cast<ha_partition *>(table->file)->get_child_handlers();
    const MY_BITMAP *read= &table->part_info->read_partitions;
    for (uint i= bitmap_get_first_set(read); i != MY_BIT_NONE; i= bitmap_get_next_set(read, i))
      handlers.push_back(static_cast<ha_pando *>(parts[i]));
  }
  for (const ha_pando *handler : handlers)
    if (!handler->may_answer_queries())
      return none;
  return handlers;
}

} // namespace pando
