/* Which rows belong into a partition, as a text for its definition's fingerprint. */
#ifndef PANDO_PARTITION_ROWS_H
#define PANDO_PARTITION_ROWS_H

#include "bytes.h"

namespace pando {

/* A text that differs wherever the partition at `path` would hold other rows, or answer them with other values of generated
   columns. Empty: it is no partition, or that cannot be said. */
void describe_partition(const char *path, const TABLE *table, Bytes *to);

} // namespace pando

#endif
