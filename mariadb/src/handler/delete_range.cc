/* A DELETE whose condition says nothing but a range of the primary key: the engine deletes the range, not each row.

   The server asks whether the engine evaluates all of a condition (`cond_push`), and then whether it deletes by itself
   (`direct_delete_rows_init`). It does so where rows are nothing but their entries among the rows, where the transaction has written nothing
   before, and where nobody is in the way (`pandodb/src/write/delete_range.rs`). Else the statement goes on as any other.

   A condition is such a range if it is comparisons, connected by AND, of the key's first columns with constants: equal, and of the last
   of these columns less, greater or between. Columns are whole numbers and moments in time, because of these a constant is either stored
   as it is, or between two values of which one was stored. */
#include <algorithm>
#include "counted_call.h"
#include "ha_pando.h"
#include "pushdown.h"
#include "variables.h"
#include "zone_offset.h"

using namespace pando;

/* A comparison of a column with a constant. */
struct pando::Key_bound
{
  Field *field;
  Item_func::Functype type; /* EQ_FUNC, LT_FUNC, LE_FUNC, GT_FUNC, GE_FUNC: the column stands on the left */
  Item *constant;
};

namespace
{
Item_func::Functype mirrored(Item_func::Functype type)
{
  switch (type) {
  case Item_func::LT_FUNC: return Item_func::GT_FUNC;
  case Item_func::LE_FUNC: return Item_func::GE_FUNC;
  case Item_func::GT_FUNC: return Item_func::LT_FUNC;
  case Item_func::GE_FUNC: return Item_func::LE_FUNC;
  default: return type;
  }
}

bool add_bound(Item *column, Item *constant, Item_func::Functype type, std::vector<Key_bound> *bounds)
{
  column= column->real_item();
  /* BETWEEN keeps its constants as DATEs, which compare as what they were and are stored, and shown, without their time of day. */
  constant= without_cache(constant);
  if (column->type() != Item::FIELD_ITEM || !constant->const_item() || constant->is_expensive())
    return false;
  bounds->push_back({static_cast<Item_field*>(column)->field, type, constant});
  return true;
}

/* Takes the condition apart. False: it is something else, too. */
bool add_bounds(Item *condition, std::vector<Key_bound> *bounds)
{
  if (condition->type() == Item::COND_ITEM)
  {
    Item_cond *all= static_cast<Item_cond*>(condition);
    if (all->functype() != Item_func::COND_AND_FUNC)
      return false;
    List_iterator<Item> parts(*all->argument_list());
    while (Item *part= parts++)
      if (!add_bounds(part, bounds))
        return false;
    return true;
  }
  if (condition->type() != Item::FUNC_ITEM)
    return false;
  Item_func *comparison= static_cast<Item_func*>(condition);
  Item **arguments= comparison->arguments();
  switch (comparison->functype()) {
  case Item_func::EQ_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
  {
    const Item_func::Functype type= comparison->functype();
    return add_bound(arguments[0], arguments[1], type, bounds) ||
           add_bound(arguments[1], arguments[0], mirrored(type), bounds);
  }
  case Item_func::BETWEEN:
    return !static_cast<Item_func_between*>(comparison)->negated &&
           add_bound(arguments[0], arguments[1], Item_func::GE_FUNC, bounds) &&
           add_bound(arguments[0], arguments[2], Item_func::LE_FUNC, bounds);
  default:
    return false;
  }
}

/* Whether the column's values are compared with the constant by their order in the key. */
bool compares_as_key(const Field *field, Item *constant)
{
  const Item_result result= constant->cmp_type();
  switch (field->type()) {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
    return result == INT_RESULT || result == DECIMAL_RESULT;
  case MYSQL_TYPE_DATE:
  case MYSQL_TYPE_NEWDATE:
  case MYSQL_TYPE_DATETIME:
  case MYSQL_TYPE_TIMESTAMP:
    return result == TIME_RESULT || result == STRING_RESULT;
  default:
    return false;
  }
}

/* Whether moments are in the order of the times that clocks show, as far as the field's value goes. */
bool is_in_order(THD *thd, const Field *field)
{
  if (field->type() != MYSQL_TYPE_TIMESTAMP)
    return true;
  ulong fraction;
  return is_far_from_changes(thd->variables.time_zone, field->get_timestamp(&fraction));
}

/* What keeps the record, its columns' NULLs and what the server complains about as they were. */
class Borrowed_record
{
public:
  explicit Borrowed_record(TABLE *table) : m_table(table), m_thd(table->in_use), m_check(m_thd->count_cuted_fields)
  {
    m_kept.assign(table->record[0], table->s->reclength);
    m_columns= dbug_tmp_use_all_columns(table, &table->write_set);
    m_read= dbug_tmp_use_all_columns(table, &table->read_set);
    m_thd->count_cuted_fields= CHECK_FIELD_IGNORE;
  }
  ~Borrowed_record()
  {
    m_thd->count_cuted_fields= m_check;
    dbug_tmp_restore_column_map(&m_table->read_set, m_read);
    dbug_tmp_restore_column_map(&m_table->write_set, m_columns);
    memcpy(m_table->record[0], m_kept.data(), m_kept.size());
  }

private:
  TABLE *const m_table;
  THD *const m_thd;
  const enum_check_fields m_check;
  Bytes m_kept;
  MY_BITMAP *m_columns, *m_read;
};

/* Stores the constant in the column. `order`: whether what is there now is less (-1), the same, or greater than it. */
bool store(THD *thd, const Key_bound &bound, int *order)
{
  if (!compares_as_key(bound.field, bound.constant) || bound.constant->save_in_field_no_warnings(bound.field, true) ||
      bound.constant->null_value || thd->is_error())
    return false;
  *order= stored_field_cmp_to_item(thd, bound.field, bound.constant);
  return !thd->is_error() && is_in_order(thd, bound.field);
}
} // namespace

/* Whether rows are entries among the rows and nothing else, and the statement is no part of another one. */
bool ha_pando::may_delete_range() const
{
  THD *thd= ha_thd();
  const LEX *lex= thd->lex;
  /* READ COMMITTED keeps nobody from inserting between rows, but for the moment of one statement. */
  if (thd_tx_isolation(thd) <= ISO_READ_COMMITTED && thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN))
    return false;
  return delete_ranges(thd) && is_target_of_delete() && m_lock == Lock::EXCLUSIVE && m_table && !m_skip_locked &&
         table_share->keys == 1 && may_write_unread() && !table->part_info && !thd->in_sub_stmt && !lex->analyze_stmt && !lex->with_rownum &&
         !lex->first_select_lex()->limit_params.explicit_limit;
}

/* The key of the record, as far as `map` says. */
void ha_pando::encode_beginning(key_part_map map, Bytes *out)
{
  const uint primary= table_share->primary_key;
  Bytes image;
  image.extend(table->key_info[primary].key_length);
  key_copy(image.data(), table->record[0], &table->key_info[primary], calculate_key_len(table, primary, image.data(), map));
  out->clear();
  m_layouts[0].encode_image(out, image.data(), map, Image::EXACT);
}

/* Makes the range smaller, as the column that is at `part` of the key says. False: it is nothing that the key can say, or nothing is left. */
bool ha_pando::bound_deleted_range(const Key_bound &bound, key_part_map map)
{
  Deleted_range &range= m_deleted_range;
  int order;
  if (bound.type == Item_func::EQ_FUNC || !store(ha_thd(), bound, &order))
    return false;
  Bytes edge;
  encode_beginning(map, &edge);
  const bool is_upper= bound.type == Item_func::LT_FUNC || bound.type == Item_func::LE_FUNC;
  /* Rows with the stored value are before the edge: they are in what ends there, and not in what begins there. */
  const bool is_before= order < 0 || (order == 0 && (bound.type == Item_func::LE_FUNC || bound.type == Item_func::GT_FUNC));
  if (is_before && !after_prefix(&edge))
    return is_upper;
  if (is_upper && (!range.has_to || compare(edge.view(), range.to.view()) < 0))
  {
    range.to.assign(edge.data(), edge.size());
    range.has_to= true;
  }
  if (!is_upper && compare(edge.view(), range.from.view()) > 0)
    range.from.assign(edge.data(), edge.size());
  return true;
}

/* Takes note of the range that the condition is. False: it is none. */
bool ha_pando::find_deleted_range(const COND *condition)
{
  Deleted_range &range= m_deleted_range;
  range.is_any= range.has_to= false;
  range.from.clear();
  std::vector<Key_bound> bounds;
  if (!may_delete_range() || !add_bounds(const_cast<Item*>(condition), &bounds))
    return false;
  const KEY &key= table->key_info[table_share->primary_key];
  Borrowed_record borrowed(table);
  const auto is_of= [&](uint at) {
    return [field= key.key_part[at].field](const Key_bound &bound) { return bound.field == field; };
  };
  key_part_map map= 0;
  size_t used= 0;
  for (uint at= 0; at < key.user_defined_key_parts; at++)
  {
    if (key.key_part[at].key_part_flag & (HA_PART_KEY_SEG | HA_REVERSE_SORT))
      return false;
    const size_t count= size_t(std::count_if(bounds.begin(), bounds.end(), is_of(at)));
    const auto first= std::find_if(bounds.begin(), bounds.end(), is_of(at));
    map|= key_part_map(1) << at;
    used+= count;
    int order;
    if (count != 1 || first->type != Item_func::EQ_FUNC)
    {
      for (const Key_bound &bound : bounds)
        if (is_of(at)(bound) && !bound_deleted_range(bound, map))
          return false;
      return range.is_any= used && used == bounds.size();
    }
    if (!store(ha_thd(), *first, &order) || order)
      return false;
    encode_beginning(map, &range.from);
    range.to.assign(range.from.data(), range.from.size());
    range.has_to= after_prefix(&range.to);
  }
  /* All columns of the key: one row. */
  return false;
}

int ha_pando::direct_delete_rows_init()
{
  if (!m_deleted_range.is_any)
    return HA_ERR_WRONG_COMMAND;
  m_deleted_range.is_any= false;
  uint8_t done= 0;
  Counted_call counted(handler_stats);
  if (PandoStatus status= pando_txn_delete_range(txn(), m_table, m_deleted_range.from.view(), m_deleted_range.to.view(),
                                                 m_deleted_range.has_to, &m_deleted_range.rows, &done))
  {
    /* The rows will tell. */
    fail(status);
    return HA_ERR_WRONG_COMMAND;
  }
  /* Who deletes by itself has changed something, for the server: it would log a transaction that the engine has not prepared. */
  return done && m_deleted_range.rows ? 0 : HA_ERR_WRONG_COMMAND;
}

int ha_pando::direct_delete_rows(ha_rows *deleted)
{
  *deleted= m_deleted_range.rows;
  return 0;
}
