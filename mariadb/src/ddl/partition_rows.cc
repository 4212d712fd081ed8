#include "partition_rows.h"
#include "partition_info.h"
#include "sql_partition.h"

/* Only what the engine learns of is described. ADD, DROP and REORGANIZE PARTITION make some partitions anew, and leave the
   others without a word: so there is nothing here that such a change alters for a partition that it leaves. The lower bound of a
   range is such a thing, and the number of partitions of a LINEAR hash. */
namespace pando {

namespace {

/* How expressions are printed is the session's choice, by sql_mode=ANSI_QUOTES, NO_BACKSLASH_ESCAPES and sql_quote_show_create;
   one text is to be the same in all sessions. (The server does the same for what it writes into its files.) */
class Plain_printing
{
public:
  explicit Plain_printing(THD *thd)
    : m_thd(thd), m_sql_mode(thd->variables.sql_mode), m_options(thd->variables.option_bits)
  {
    thd->variables.sql_mode= 0;
    thd->variables.option_bits|= OPTION_QUOTE_SHOW_CREATE;
  }
  ~Plain_printing()
  {
    m_thd->variables.sql_mode= m_sql_mode;
    m_thd->variables.option_bits= m_options;
  }
  Plain_printing(const Plain_printing &) = delete;
  Plain_printing &operator=(const Plain_printing &) = delete;

private:
  THD *m_thd;
  sql_mode_t m_sql_mode;
  ulonglong m_options;
};

class Text
{
public:
  explicit Text(Bytes *to) : m_to(to) {}

  void number(uint64_t value) { m_to->append(&value, sizeof(value)); }
  void text(const char *from, size_t size)
  {
    number(size);
    m_to->append(from, size);
  }
  void expression(Item *item)
  {
    StringBuffer<256> printed(&my_charset_utf8mb3_general_ci);
    item->print_for_table_def(&printed);
    text(printed.ptr(), printed.length());
  }
  void names(List<const char> &list)
  {
    List_iterator_fast<const char> name(list);
    number(list.elements);
    while (const char *one= name++)
      text(one, strlen(one));
  }

private:
  Bytes *m_to;
};

} // namespace

/* Whether the partition's part of the path begins with this name. */
static bool is_named(const char *rest, const char *name)
{
  char file_name[FN_REFLEN + 1];
  const size_t size= tablename_to_filename(name, file_name, sizeof(file_name) - 1);
  if (strncasecmp(rest, file_name, size))
    return false;
  rest+= size;
  return !*rest || !strncasecmp(rest, "#SP#", 4) || !strncasecmp(rest, "#TMP#", 5);
}

static partition_element *find_partition(const char *path, partition_info *info)
{
  static const char MARK[]= "#P#";
  const char *name= strstr(path, MARK);
  if (!name && !(name= strstr(path, "#p#")))
    return nullptr;
  List_iterator_fast<partition_element> partition(info->partitions);
  while (partition_element *one= partition++)
    if (is_named(name + sizeof(MARK) - 1, text_of_name(one->partition_name)))
      return one;
  return nullptr;
}

/* The bytes of a value as they are in a row. Behind a VARCHAR's there is whatever was there before: zeros are in its place. */
static std::string stored_value(const Field *field, const char *value)
{
  std::string stored(field->pack_length_in_rec(), '\0');
  size_t size= stored.size();
  if (field->real_type() == MYSQL_TYPE_VARCHAR)
  {
    const uint length_bytes= static_cast<const Field_varstring *>(field)->length_bytes;
    const uchar *length= reinterpret_cast<const uchar *>(value);
    size= std::min(size, size_t(length_bytes) + (length_bytes == 1 ? *length : uint2korr(length)));
  }
  memcpy(&stored[0], value, size);
  return stored;
}

/* Of COLUMNS: the values of one tuple. False: they are not known yet. */
static bool describe_columns(Text *to, const partition_info *info, const part_column_list_val *values)
{
  for (uint i= 0; i < info->num_columns; i++)
  {
    const part_column_list_val &value= values[i];
    to->number(value.max_value);
    to->number(value.null_value);
    if (value.max_value || value.null_value)
      continue;
    if (value.fixed != 2 || !value.column_value || !info->part_field_array || !info->part_field_array[i])
      return false;
    const Field *field= info->part_field_array[i];
    if (field->flags & BLOB_FLAG)
      return false;
    const std::string stored= stored_value(field, static_cast<const char *>(value.column_value));
    to->text(stored.data(), stored.size());
  }
  return true;
}

static bool describe_list(Text *to, const partition_info *info, partition_element *partition)
{
  List_iterator_fast<part_elem_value> values(partition->list_val_list);
  to->number(partition->has_null_value);
  to->number(partition->list_val_list.elements);
  while (const part_elem_value *value= values++)
  {
    if (info->column_list)
    {
      if (!describe_columns(to, info, value->col_val_array))
        return false;
      continue;
    }
    to->number(uint64_t(value->value));
    to->number(value->unsigned_flag);
  }
  return true;
}

static bool describe_values(Text *to, partition_info *info, partition_element *partition)
{
  switch (info->part_type)
  {
  case RANGE_PARTITION:
    if (info->column_list)
      return partition->list_val_list.elements == 1 &&
             describe_columns(to, info, partition->list_val_list.head()->col_val_array);
    to->number(partition->max_value);
    to->number(partition->max_value ? 0 : uint64_t(partition->range_value));
    return true;
  case LIST_PARTITION:
    to->number(partition->max_value);
    return describe_list(to, info, partition);
  case HASH_PARTITION:
    if (!info->linear_hash_ind)
      to->number(info->num_parts);
    return true;
  default:
    /* Of system versioning: the server moves the bounds. */
    return false;
  }
}

/* Who has the row: the function and its columns. */
static void describe_function(Text *to, partition_info *info)
{
  to->number(info->part_type);
  to->number(info->linear_hash_ind);
  to->number(info->column_list);
  /* The other two are one: the server fills in the default on the way. */
  to->number(info->key_algorithm == partition_info::KEY_ALGORITHM_51);
  to->number(info->list_of_part_fields);
  to->names(info->part_field_list);
  if (info->part_expr && !info->list_of_part_fields)
    to->expression(info->part_expr);
  if (!info->is_sub_partitioned())
    return;
  to->number(info->subpart_type);
  to->number(info->num_subparts);
  to->names(info->subpart_field_list);
  if (info->subpart_expr && !info->list_of_subpart_fields)
    to->expression(info->subpart_expr);
}

void describe_partition(const char *path, const TABLE *table, Bytes *to)
{
  to->clear();
  partition_info *info= table->part_info;
  partition_element *partition= info ? find_partition(path, info) : nullptr;
  if (!partition)
    return;
  const Plain_printing plain(table->in_use ? table->in_use : current_thd);
  Text text(to);
  describe_function(&text, info);
  if (!describe_values(&text, info, partition))
  {
    to->clear();
    return;
  }
  for (Field **field= table->field; *field; field++)
    if ((*field)->vcol_info && (*field)->vcol_info->expr)
    {
      text.number((*field)->field_index);
      text.expression((*field)->vcol_info->expr);
    }
}

const ha_table_option_struct *options_of_partition(const char *path, const TABLE *table)
{
  partition_element *partition= table->part_info ? find_partition(path, table->part_info) : nullptr;
  if (!partition)
    return nullptr;
  /* The server makes the same structure for each subpartition. */
  return partition->subpartitions.elements ? partition->subpartitions.head()->option_struct : partition->option_struct;
}

static bool has_column(const KEY &key, const Field *column)
{
  for (uint i= 0; i < key.user_defined_key_parts; i++)
    if (key.key_part[i].fieldnr == column->field_index + 1)
      return true;
  return false;
}

const KEY *key_across_partitions(const TABLE *table)
{
  const partition_info *info= table->part_info;
  if (!info || !info->full_part_field_array)
    return nullptr;
  for (const KEY *key= table->key_info; key < table->key_info + table->s->keys; key++)
    for (Field **column= info->full_part_field_array; (key->flags & HA_NOSAME) && *column; column++)
      if (!has_column(*key, *column))
        return key;
  return nullptr;
}

/* The columns stand before the one with the hash. */
static bool needs_hash(const KEY &key, const handler *file)
{
  const uint columns= uint(fields_in_hash_keyinfo(const_cast<KEY *>(&key)));
  size_t length= 0;
  for (const KEY_PART_INFO *part= key.key_part - columns; part < key.key_part; part++)
  {
    const bool is_whole_blob= (part->field->flags & BLOB_FLAG) && !(part->key_part_flag & HA_PART_KEY_SEG);
    if (is_whole_blob || part->field->key_length() > file->max_key_part_length())
      return true;
    length+= part->field->key_length();
  }
  return length > file->max_key_length();
}

bool would_lose_hash_key(THD *thd, const TABLE *table)
{
  /* The server puts the statement that it runs aside for it. */
  if (!table->part_info || !table->part_info->vers_info || thd_sql_command(thd) != SQLCOM_END)
    return false;
  for (const KEY *key= table->key_info; key < table->key_info + table->s->keys; key++)
    if (key->algorithm == HA_KEY_ALG_LONG_HASH && !needs_hash(*key, table->file))
      return true;
  return false;
}

} // namespace pando
