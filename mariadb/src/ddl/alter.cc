/* ALTER TABLE.

   The server says what a statement changes as a set of flags. They fall into these kinds:

     flags                                    what is done
     DEFINITION                               nothing but a note of the definition's new id
     PANDO_ALTER_LAYOUT (alter.h)             a new layout for rows that are written from then on
     ALTER_RENAME_INDEX                       another name in the catalog; files keep theirs
     ALTER_INDEX_ORDER                        other places in the catalog (alter_index.cc)
     ALTER_CHANGE_CREATE_OPTION               compression of what is written from then on; AUTO_INCREMENT;
                                              another encryption copies
     PANDO_ALTER_INDEX                        alter_index.cc
     all others                               the server copies the table

   All but indexes that are built and foreign keys that are checked is INSTANT: commit_inplace_alter_table makes one record of the catalog, for
   all partitions at once, and before it nothing has changed. The record has the id that the server
   gave the new definition. When the server crashes before its own file has the new definition too, it asks
   check_version which of the two holds.

   A foreign key that is added in place has the parents of all rows looked up, while others read.
   Other changes that need to read rows (NULL to NOT NULL, CHECK), to compute them (stored generated columns) or to
   rewrite them (types that do not only grow, the primary key) copy. */
#include "alter.h"
#include "encryption.h"
#include "expiry_purge.h"
#include "foreign_key_ddl.h"
#include "partitioned.h"
#include "related_table.h"
#include "server_files.h"
#include "variables.h"

using namespace pando;

static const alter_table_operations DEFINITION=
  ALTER_COLUMN_NAME | ALTER_COLUMN_DEFAULT | ALTER_COLUMN_OPTION | ALTER_COLUMN_COLUMN_FORMAT |
  ALTER_COLUMN_UNVERSIONED | ALTER_COLUMN_INDEX_LENGTH | ALTER_COLUMN_ORDER | ALTER_RENAME_COLUMN |
  ALTER_VIRTUAL_COLUMN_ORDER | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_VIRTUAL_COLUMN |
  ALTER_VIRTUAL_GCOL_EXPR | ALTER_DROP_CHECK_CONSTRAINT | ALTER_CHANGE_INDEX_COMMENT |
  ALTER_INDEX_IGNORABILITY | ALTER_RENAME | ALTER_CONVERT_TO | ALTER_PARTITIONED |
  ALTER_ADD_FOREIGN_KEY | ALTER_DROP_FOREIGN_KEY;

static const alter_table_operations INSTANT=
  DEFINITION | PANDO_ALTER_LAYOUT | ALTER_RENAME_INDEX | ALTER_INDEX_ORDER | ALTER_CHANGE_CREATE_OPTION;

PandoTableChange Alter_context::change()
{
  PandoTableChange change= {};
  change.path= text(m_path.c_str());
  static const PandoNewColumn none= {};
  if (sets_columns)
  {
    change.columns= columns.empty() ? &none : columns.data();
    change.column_count= uint32_t(columns.size());
  }
  change.index_names= index_names.data();
  change.index_name_count= uint32_t(index_names.size());
  change.sets_indexes= sets_indexes;
  change.places= places.data();
  change.place_count= uint32_t(places.size());
  change.build= build;
  change.sets_compression= sets_compression;
  change.compression= compression;
  change.compression_level= compression_level;
  change.sets_auto_increment= sets_auto_increment;
  change.auto_increment= auto_increment;
  change.definition= m_definition.view();
  m_foreign_key_views.reset(new Foreign_key_views(foreign_keys));
  change.sets_foreign_keys= sets_foreign_keys;
  change.foreign_keys= m_foreign_key_views->data();
  change.foreign_key_count= m_foreign_key_views->size();
  m_renamed_views.clear();
  for (const std::string &name : renamed)
    m_renamed_views.push_back(text(name.c_str()));
  change.renamed_columns= m_renamed_views.data();
  change.renamed_column_count= uint32_t(m_renamed_views.size());
  return change;
}

/* --- which columns may change without their rows --- */

/* Whether the expression of a generated column has the column, or a generated one that is computed from it. A column is computed only from those
   before it. */
static bool is_computed_from(const Field *generated, const Field &column)
{
  List<Item_field> items;
  generated->vcol_info->expr->walk(&Item::collect_item_field_processor, false, &items);
  List_iterator_fast<Item_field> each(items);
  for (const Item_field *item; (item= each++); )
    if (item->field && (item->field->field_index == column.field_index ||
                        (item->field->vcol_info && item->field != generated && is_computed_from(item->field, column))))
      return true;
  return false;
}

/* Whether rows or keys have what is computed from the column. */
static bool has_keyed_or_stored_expressions(const Field &column)
{
  for (Field **place= column.table->vfield; place && *place; place++)
    if (((*place)->stored_in_db() || ((*place)->flags & (PART_KEY_FLAG | PART_INDIRECT_KEY_FLAG))) && is_computed_from(*place, column))
      return true;
  return false;
}

static bool is_partitioning(const Field &field)
{
#ifdef WITH_PARTITION_STORAGE_ENGINE
  partition_info *partitions= field.table->part_info;
  return partitions && bitmap_is_set(&partitions->full_part_field_set, field.field_index);
#else
  return false;
#endif
}

/* Only ever the same characters as the same bytes. */
static bool same_text(const Field &field, const Column_definition &type)
{
  if (!field.compression_method() != !type.compression_method())
    return false;
  if (field.charset() == type.charset)
    return true;
  return field.charset() != &my_charset_bin && type.charset != &my_charset_bin &&
         Charset(field.charset()).encoding_allows_reinterpret_as(type.charset);
}

static bool starts_with_members(const Field_enum &field, const Column_definition &type)
{
  const TYPELIB *old= members_of(&field), *members= members_of(type);
  if (field.charset() != type.charset || !members || members->count < old->count)
    return false;
  for (uint i= 0; i < old->count; i++)
    if (my_strnncoll(field.charset(), reinterpret_cast<const uchar *>(old->type_names[i]),
                     old->type_lengths[i], reinterpret_cast<const uchar *>(members->type_names[i]),
                     members->type_lengths[i]))
      return false;
  return true;
}

static bool is_integer(enum_field_types type)
{
  return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_INT24 ||
         type == MYSQL_TYPE_LONG || type == MYSQL_TYPE_LONGLONG;
}

static bool is_blob(enum_field_types type)
{
  return type == MYSQL_TYPE_TINY_BLOB || type == MYSQL_TYPE_BLOB || type == MYSQL_TYPE_MEDIUM_BLOB ||
         type == MYSQL_TYPE_LONG_BLOB;
}

static bool integer_grows(const Field &field, const Column_definition &type)
{
  const bool was_unsigned= field.flags & UNSIGNED_FLAG, is_unsigned= type.flags & UNSIGNED_FLAG;
  return type.pack_length > field.pack_length() && (was_unsigned == is_unsigned || was_unsigned) &&
         (type.flags & AUTO_INCREMENT_FLAG) <= (field.flags & AUTO_INCREMENT_FLAG);
}

/* The server asks this of columns whose type is not the same. */
bool ha_pando::can_convert_nocopy(const Field &field, const Column_definition &type) const
{
  if (field.vcol_info || type.vcol_info || is_partitioning(field) ||
      has_keyed_or_stored_expressions(field))
    return false;
  if (!field.type_handler()->is_traditional_scalar_type() ||
      !type.type_handler()->is_traditional_scalar_type())
    return false;
  const enum_field_types old_type= field.real_type(), new_type= type.type_handler()->real_field_type();
  if (old_type == MYSQL_TYPE_VARCHAR && new_type == MYSQL_TYPE_VARCHAR && same_text(field, type) &&
      type.length >= field.field_length && type.char_length >= field.char_length() &&
      (field.charset() == type.charset || !(field.flags & PART_KEY_FLAG)))
    return true;
  if (field.flags & PART_KEY_FLAG)
    return false;
  if (is_integer(old_type) && is_integer(new_type))
    return integer_grows(field, type);
  if (old_type == new_type && (old_type == MYSQL_TYPE_ENUM || old_type == MYSQL_TYPE_SET))
    return type.pack_length >= field.pack_length() &&
           starts_with_members(static_cast<const Field_enum &>(field), type);
  if (old_type == MYSQL_TYPE_STRING && new_type == MYSQL_TYPE_STRING)
    return same_text(field, type) && type.length >= field.field_length &&
           type.char_length >= field.char_length();
  if (old_type == MYSQL_TYPE_VARCHAR && is_blob(new_type))
    return same_text(field, type) &&
           field.field_length < 1ULL << (8 * (type.pack_length - portable_sizeof_char_ptr));
  if (is_blob(old_type) && is_blob(new_type))
    return same_text(field, type) && type.pack_length >= field.pack_length();
  return false;
}

/* VARCHAR may grow in a key: its bytes there are the same. */
Compare_keys ha_pando::compare_key_parts(const Field &old_field, const Column_definition &new_field,
                                         const KEY_PART_INFO &old_part, const KEY_PART_INFO &new_part) const
{
  if (old_field.is_equal(new_field))
    return handler::compare_key_parts(old_field, new_field, old_part, new_part);
  if (!can_convert_nocopy(old_field, new_field))
    return Compare_keys::NotEqual;
  if (old_part.length == old_field.field_length && new_part.length == new_field.length)
    return Compare_keys::EqualButKeyPartLength;
  if (old_part.length < old_field.field_length && new_part.length == old_part.length)
    return Compare_keys::Equal;
  return Compare_keys::NotEqual;
}

/* --- the columns of the new layout --- */

static const Create_field *definition_of(Alter_inplace_info *info, uint index)
{
  return info->alter_info->create_list.elem(index);
}

static bool is_column_of_a_key(const TABLE *table, uint index)
{
  for (uint i= 0; i < table->s->keys; i++)
    for (uint j= 0; j < table->key_info[i].user_defined_key_parts; j++)
      if (table->key_info[i].key_part[j].fieldnr == index + 1)
        return true;
  return false;
}

/* The default is the same for all rows: a constant, or a function of the session or the time of the
   statement, computed once. */
static bool set_default_of_all_rows(Field *field)
{
  if (field->default_value && (field->default_value->flags & ~uint(VCOL_SESSION_FUNC | VCOL_TIME_FUNC)))
    return false;
  const int result= field->set_default();
  return result == 0 || result == 3 /* DATETIME cut to TIME or DATE */;
}

/* The columns that rows are to have. False: they cannot have them without being rewritten. */
bool ha_pando::plan_columns(TABLE *altered, Alter_inplace_info *info, std::vector<PandoNewColumn> *columns,
                            std::deque<Bytes> *values)
{
  Index_layout new_primary;
  if (has_primary_key())
    new_primary.init(altered, altered->s->primary_key, 0, nullptr);
  const std::vector<Field *> old_fields= row_fields(table, primary());
  const std::vector<Field *> new_fields= row_fields(altered, has_primary_key() ? &new_primary : nullptr);
  for (Field *field : new_fields)
  {
    PandoNewColumn column= describe(field);
    const Field *old_field= definition_of(info, field->field_index)->field;
    if (old_field)
    {
      size_t position= 0;
      while (position < old_fields.size() && old_fields[position] != table->field[old_field->field_index])
        position++;
      if (position == old_fields.size())
        return false;
      column.source= int32_t(position);
      if (field->real_maybe_null() != old_field->real_maybe_null() &&
          (is_column_of_a_key(altered, field->field_index) || is_column_of_a_key(table, old_field->field_index)))
        return false;
    }
    else
    {
      if ((field->flags & AUTO_INCREMENT_FLAG) || !set_default_of_all_rows(field))
        return false;
      if (!field->is_real_null())
      {
        Column place;
        place.init(altered, field);
        values->emplace_back();
        place.image(altered->record[0], &values->back());
        column.value= values->back().view();
        /* Not NULL, though empty. */
        if (!column.value.data)
          column.value.data= reinterpret_cast<const uint8_t *>("");
      }
    }
    columns->push_back(column);
  }
  return true;
}

/* --- the server's calls --- */

static bool goes_to_other_database(THD *thd, const TABLE *table)
{
  const LEX_CSTRING &database= thd->lex->first_select_lex()->db;
  return database.str && !is_same_table_name(database, table->s->db);
}

static enum_alter_inplace_result refuse(THD *thd, Alter_inplace_info *info, uint reason)
{
  info->unsupported_reason= ER_THD(thd, reason);
  return HA_ALTER_INPLACE_NOT_SUPPORTED;
}

enum_alter_inplace_result ha_pando::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info)
{
  THD *thd= ha_thd();
  const alter_table_operations flags= info->handler_flags;
  if (const ha_table_option_struct *options= info->create_info->option_struct)
    if (!Expiry::is_allowed(altered, options->ttl, referenced_by_foreign_key()))
      return HA_ALTER_ERROR;
  if (flags & ~(INSTANT | PANDO_ALTER_INDEX))
  {
    if (flags & (ALTER_STORED_COLUMN_TYPE | ALTER_VIRTUAL_COLUMN_TYPE))
      return refuse(thd, info, ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
    if ((flags & (ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX)) == ALTER_DROP_PK_INDEX)
      return refuse(thd, info, ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOPK);
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  if ((info->create_info->used_fields & HA_CREATE_USED_SEQUENCE) || is_sequence() ||
      altered->s->primary_key != table->s->primary_key)
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* After a crash the server looks for the table of an ALTER in place in the new database, and leaves it without its new name. */
  if ((flags & ALTER_RENAME) && goes_to_other_database(thd, table))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if ((flags & ALTER_CHANGE_CREATE_OPTION) && changes_encryption(shared_options(), info->create_info->option_struct))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* Parents are looked for on the rows as they are; the copy does it on those that it makes. */
  const bool verifies= (flags & ALTER_ADD_FOREIGN_KEY) && foreign_keys_are_checked(thd);
  if (verifies && ((flags & (PANDO_ALTER_LAYOUT | ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_RENAME)) ||
                   !can_verify_in_place(table, info->alter_info)))
    return refuse(thd, info, ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_FK_CHECK);
  if (flags & PANDO_ALTER_LAYOUT)
  {
    /* A zero date where that is not allowed counts only if there are rows: the copy finds out. */
    if (info->error_if_not_empty)
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    std::vector<PandoNewColumn> columns;
    std::deque<Bytes> values;
    PandoLayout layout;
    if (!plan_columns(altered, info, &columns, &values) || pando_table_layout(m_table, 0, &layout) ||
        !layout.has_room)
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  enum_alter_inplace_result result= HA_ALTER_INPLACE_INSTANT;
  if (changes_keys(table, altered, info))
    result= check_index_change(altered, info);
  /* Rows that come while it looks would not be checked. */
  if (verifies && (result == HA_ALTER_INPLACE_INSTANT || result == HA_ALTER_INPLACE_NOCOPY_NO_LOCK))
    return HA_ALTER_INPLACE_NOCOPY_LOCK;
  return result;
}

bool ha_pando::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  Alter_context *context= new (ha_thd()->mem_root)
    Alter_context(m_name.c_str(), altered, info->create_info->tabledef_version);
  info->handler_ctx= context;
  if (!context->is_recorded() && table_share->tmp_table == NO_TMP_TABLE)
  {
    my_error(ER_CANT_OPEN_FILE, MYF(0), altered->s->normalized_path.str, my_errno);
    return true;
  }
  context->renamed= renamed_columns(altered, info->alter_info);
  context->sets_foreign_keys= has_own_file(table_share) && table_share->tmp_table == NO_TMP_TABLE;
  if (context->sets_foreign_keys &&
      alter_foreign_keys(ha_thd(), m_name.c_str(), table, altered, info->alter_info, context->renamed,
                         &context->foreign_keys))
    return true;
  if (info->handler_flags & PANDO_ALTER_LAYOUT)
    context->sets_columns= true;
  /* Also when only their names change. */
  if (!plan_columns(altered, info, &context->columns, &context->values))
  {
    if (context->sets_columns)
    {
      my_error(ER_INTERNAL_ERROR, MYF(0), "PANDO: the columns are not those that were checked");
      return true;
    }
    context->columns.clear();
  }
  else if (info->handler_flags & ALTER_COLUMN_NAME)
    context->sets_columns= true;
  for (const Alter_inplace_info::Rename_key_pair &pair : info->rename_keys)
  {
    const uint position= uint(pair.old_key - table->key_info);
    if (position < table->s->keys && dictionary_of(position) > 0)
      context->index_names.push_back(PandoIndexName{dictionary_of(position), text(pair.new_key->name.str)});
  }
  if (info->handler_flags & ALTER_CHANGE_CREATE_OPTION)
    if (int error= prepare_options(info, context))
    {
      print_error(error, MYF(0));
      return true;
    }
  return changes_keys(table, altered, info) && prepare_index_change(altered, info);
}

int ha_pando::prepare_options(Alter_inplace_info *info, Alter_context *context)
{
  const ha_table_option_struct *options= info->create_info->option_struct;
  const ha_table_option_struct *old_options= shared_options();
  if (options && (!old_options || options->compression != old_options->compression ||
                  options->compression_level != old_options->compression_level))
  {
    context->sets_compression= true;
    context->compression= PandoCompression(options->compression);
    context->compression_level= int32_t(options->compression_level);
  }
  if (!(info->create_info->used_fields & HA_CREATE_USED_AUTO))
    return 0;
  /* Without a column that it counts for, the value is only kept. */
  ulonglong next= 1;
  if (table->found_next_number_field && !table_share->next_number_keypart)
    if (int error= next_auto_increment_of_rows(&next))
      return error;
  context->sets_auto_increment= true;
  context->auto_increment= MY_MAX(next, info->create_info->auto_increment_value);
  return 0;
}

/* One more than the largest value that a row has. */
int ha_pando::next_auto_increment_of_rows(ulonglong *next)
{
  Field *field= table->found_next_number_field;
  const uint index= table_share->next_number_index;
  const bool is_reverse= table->key_info[index].key_part[0].key_part_flag & HA_REVERSE_SORT;
  MY_BITMAP *read_set= table->read_set;
  table->column_bitmaps_set_no_signal(&table->s->all_set, table->write_set);
  m_columns_prepared= false;
  /* Nobody else has the table; a gap that stays locked would meet those who come when it is shared again. */
  const Lock lock= m_lock;
  m_lock= Lock::NONE;
  m_read_latest= true;
  int error= ha_index_init(index, true);
  if (!error)
  {
    error= is_reverse ? ha_index_first(table->record[0]) : ha_index_last(table->record[0]);
    ha_index_end();
  }
  m_read_latest= false;
  m_lock= lock;
  close_scan();
  table->column_bitmaps_set_no_signal(read_set, table->write_set);
  m_columns_prepared= false;
  if (error == HA_ERR_END_OF_FILE || error == HA_ERR_KEY_NOT_FOUND)
    return 0;
  if (error)
    return error;
  const longlong value= field->val_int();
  if ((field->flags & UNSIGNED_FLAG) ? ulonglong(value) < ULONGLONG_MAX : value >= 0)
    *next= ulonglong(value) + 1;
  return 0;
}

bool ha_pando::inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  if ((info->handler_flags & ALTER_ADD_FOREIGN_KEY) && foreign_keys_are_checked(ha_thd()) && verify_added_keys(info))
    return true;
  return (info->handler_flags & PANDO_ALTER_INDEX) && build_indexes(altered, info);
}

bool ha_pando::verify_added_keys(Alter_inplace_info *info)
{
  THD *thd= ha_thd();
  const Alter_context *context= static_cast<const Alter_context *>(info->handler_ctx);
  const int error= m_foreign.verify(thd, without_old(context->foreign_keys, constraints_of(m_name.c_str())));
  if (!error)
    return false;
  if (is_to_end(thd))
    thd->send_kill_message();
  else
    print_error(error, MYF(0));
  return true;
}

bool ha_pando::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit)
{
  if (!commit)
    return (info->handler_flags & PANDO_ALTER_INDEX) && forget_index_change(altered, info);
  close_scan();
  /* Of a partitioned table, the first partition commits for all. */
  inplace_alter_handler_ctx *alone[]= {info->handler_ctx, nullptr};
  std::vector<PandoTableChange> changes;
  for (inplace_alter_handler_ctx **context= info->group_commit_ctx ? info->group_commit_ctx : alone; *context;
       context++)
    changes.push_back(static_cast<Alter_context *>(*context)->change());
  info->group_commit_ctx= nullptr;
  Related_table::close_kept();
  const std::string partitioned= table_of_partition(m_name.c_str());
  Partitioned_files files(partitioned);
  PandoServerFiles view= {};
  if (!partitioned.empty() && files.read_partitions(partitioned) && files.set_definition(altered->s))
    view= files.view();
  /* Recovery of the server gives the table its new name only if it finds the new definition. */
  if ((info->handler_flags & ALTER_RENAME) && !sync_directory_of(altered->s->normalized_path.str))
  {
    print_error(errno, MYF(0));
    return true;
  }
  if (int error= fail(pando_tables_alter(db, changes.data(), uint32_t(changes.size()), &view)))
  {
    report_index_error(error, altered, static_cast<const Alter_context *>(info->handler_ctx));
    return true;
  }
  if (!partitioned.empty())
    sync_at_end(ha_thd(), m_name.c_str());
  if (info->handler_flags & (ALTER_CHANGE_CREATE_OPTION | ALTER_RENAME))
    Expiry_purge::look_for_tables(!(info->handler_flags & ALTER_CHANGE_CREATE_OPTION));
  return false;
}

/* The partitioned table that this one is to become a partition of, by EXCHANGE PARTITION or CONVERT TABLE. */
static const TABLE *table_to_join(THD *thd)
{
  if (!(thd->lex->alter_info.partition_flags & (ALTER_PARTITION_EXCHANGE | ALTER_PARTITION_CONVERT_IN)))
    return nullptr;
  const TABLE_LIST *first= thd->lex->query_tables;
  return first && first->table && !has_own_file(first->table->s) ? first->table : nullptr;
}

bool ha_pando::check_if_incompatible_data(HA_CREATE_INFO *info, uint changes)
{
  if (changes != IS_EQUAL_YES)
    return COMPATIBLE_DATA_NO;
  /* The server compares keys by their names, in any order, and neither their options nor USING HASH. After the change neither table
     could be opened. */
  if (const TABLE *partitioned= table_to_join(ha_thd()))
    if (!Definition(m_name.c_str(), table, table->s->tabledef_version)
           .has_shape_of(Definition(m_name.c_str(), partitioned, partitioned->s->tabledef_version)))
      return COMPATIBLE_DATA_NO;
  const uint64 definition_only= HA_CREATE_USED_COMMENT | HA_CREATE_USED_DEFAULT_CHARSET |
                                HA_CREATE_USED_CHARSET | HA_CREATE_USED_STATS_SAMPLE_PAGES |
                                HA_CREATE_USED_MIN_ROWS | HA_CREATE_USED_MAX_ROWS;
  if (info->used_fields & ~definition_only)
    return COMPATIBLE_DATA_NO;
  return COMPATIBLE_DATA_YES;
}
