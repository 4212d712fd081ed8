/* Which rows belong into a partition, as a text for its definition's fingerprint; its options; and keys that a partitioned table cannot
   have. */
#ifndef PANDO_PARTITION_ROWS_H
#define PANDO_PARTITION_ROWS_H

#include "bytes.h"

struct ha_table_option_struct;

namespace pando {

/* A text that differs wherever the partition at `path` would hold other rows, or answer them with other values of generated
   columns. Empty: it is no partition, or that cannot be said. */
void describe_partition(const char *path, const TABLE *table, Bytes *to);

/* The options of a partition that is being made at `path`, its own or the table's; null: the server has made none for it. */
const ha_table_option_struct *options_of_partition(const char *path, const TABLE *table);

/* A unique key without one of the columns that decide which partition a row is in; null: there is none. The server opens no such table,
   but lets CREATE TABLE ... LIKE make it: of a key USING HASH, whose columns it does not look at, the copy is a plain key, and the
   function, which is the other table's, counts as checked. */
const KEY *key_across_partitions(const TABLE *table);

/* Whether the server is adding a partition for history by itself, and a key USING HASH would be a plain one in the definition that
   it writes for that: no partition could be opened by it. A key that is kept by a hash because it is too long, or has a whole BLOB,
   stays so. */
bool would_lose_hash_key(THD *thd, const TABLE *table);

} // namespace pando

#endif
