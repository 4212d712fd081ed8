#include "lock_text.h"
#include "key_text.h"

namespace pando {

void append_table_name(THD *thd, PandoBytes path, String *out)
{
  if (!path.len)
  {
    out->append(STRING_WITH_LEN("(closed)"));
    return;
  }
  std::string from(reinterpret_cast<const char *>(path.data), path.len);
  char name[FN_REFLEN * 2];
  uint length= explain_filename(thd, from.c_str(), name, sizeof(name), EXPLAIN_PARTITIONS_AS_COMMENT);
  out->append(name, length);
}

bool append_index_and_data(const PandoLockRow &row, String *index, String *data)
{
  static const Key_text NO_TEXT{};
  const bool is_range= row.kind == PANDO_LOCK_KIND_GAP || row.kind == PANDO_LOCK_KIND_STRETCH;
  Known_tables tables;
  const Key_text *key= tables.find(row.table, row.index);
  if (key)
    index->append(key->index_name(), strlen(key->index_name()));
  if (is_range)
    (key ? key : &NO_TEXT)->append_range(row.from, row.to, data);
  else
    (key ? key : &NO_TEXT)->append_key(row.from, data);
  return key != nullptr;
}

const char *lock_mode_text(const PandoLockRow &row)
{
  switch (row.kind)
  {
  case PANDO_LOCK_KIND_KEY:     return row.exclusive ? "X" : "S";
  case PANDO_LOCK_KIND_GAP:     return row.exclusive ? "X,GAP" : "S,GAP";
  case PANDO_LOCK_KIND_STRETCH: return row.exclusive ? "X,RANGE" : "S,RANGE";
  case PANDO_LOCK_KIND_INSERT:  break;
  }
  return "X,INSERT_INTENTION";
}

/* Fowler, Noll and Vo's hash: two locks of one transaction will not meet in it. */
static void hash_bytes(PandoBytes bytes, uint64_t *hash)
{
  for (uint64_t i= 0; i < bytes.len; i++)
    *hash= (*hash ^ bytes.data[i]) * 0x100000001b3ULL;
  *hash= (*hash ^ (bytes.data ? bytes.len : UINT64_MAX)) * 0x100000001b3ULL;
}

void append_lock_id(const PandoLockRow &row, String *out)
{
  uint64_t hash= 0xcbf29ce484222325ULL;
  hash_bytes(row.table, &hash);
  hash_bytes(row.from, &hash);
  hash_bytes(row.to, &hash);
  char id[80];
  size_t length= my_snprintf(id, sizeof(id), "%llu:%u:%u:%08x%08x%s", ulonglong(row.txn), row.index,
                             uint(row.kind), uint(hash >> 32), uint(hash), row.waiting ? ":w" : "");
  out->append(id, uint32(length));
}

} // namespace pando
