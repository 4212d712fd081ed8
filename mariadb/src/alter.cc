/* ALTER TABLE. Everything that changes rows, keys or the names of indexes (which are the names of files)
   copies the table for now. What only changes the server's definition needs nothing from here. */
#include "ha_pando.h"

bool ha_pando::check_if_incompatible_data(HA_CREATE_INFO *info, uint changes)
{
  if (changes != IS_EQUAL_YES)
    return COMPATIBLE_DATA_NO;
  const uint64 definition_only= HA_CREATE_USED_COMMENT | HA_CREATE_USED_DEFAULT_CHARSET |
                                HA_CREATE_USED_CHARSET | HA_CREATE_USED_STATS_SAMPLE_PAGES |
                                HA_CREATE_USED_MIN_ROWS | HA_CREATE_USED_MAX_ROWS;
  if (info->used_fields & ~definition_only)
    return COMPATIBLE_DATA_NO;
  return COMPATIBLE_DATA_YES;
}
