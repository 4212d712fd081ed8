/* The keys' part of ALTER TABLE in place (alter.cc). */
#include "alter.h"

using namespace pando;

/* Whether the keys can be changed in place, and with which locks. Everything else the statement changes can
   be. */
enum_alter_inplace_result ha_pando::check_index_change(TABLE *, Alter_inplace_info *)
{
  return HA_ALTER_INPLACE_NOT_SUPPORTED;
}

/* `info->handler_ctx` is an Alter_context. True: it failed, which has been reported. */
bool ha_pando::prepare_index_change(TABLE *, Alter_inplace_info *)
{
  return false;
}

bool ha_pando::build_indexes(TABLE *, Alter_inplace_info *)
{
  return false;
}

/* After a failure, here or elsewhere: nothing is left of the new indexes. */
bool ha_pando::forget_index_change(TABLE *, Alter_inplace_info *)
{
  return false;
}
