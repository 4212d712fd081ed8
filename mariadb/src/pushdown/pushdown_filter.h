/* Conditions of the server that scans evaluate in the engine, on whole columns, before rows are given to the server.

   The server pushes what it knows of a table alone (`cond_push`), and evaluates it again on each row that it gets. So a
   filter may leave too much; but what it takes away has to be rows that the server would have passed by **in silence**:
   - of the parts of an AND those are taken that the translator of whole queries can say exactly, and that cannot fail of
     any row;
   - and only up to the first part that could tell of an error or a warning, or do something: the server, which goes from
     the first part to the last, would have come to it. Where it comes later, rows without it are passed by in silence. (An AND
     of which a part is unknown the server may evaluate to its end: with such a part in it, none of that is taken.)

   Who locks rows has it evaluated on those that the engine reads or locks ahead (PandoFetch::condition), also in an UPDATE or
   DELETE of one table: there the server offers its condition for a direct change of rows, which is then refused. Without
   that it counts for consistent reads. And for scans that go up the rows:
   entries of secondary keys have index condition pushdown. Scans of all rows are filtered from the start, those of a range
   when they have fetched FILTER_ROWS_MIN; ranges that are expected to have fewer get no filter. EXPLAIN says "with pushed condition" where one was taken for a
   plan that goes over rows. */
#ifndef PANDO_PUSHDOWN_FILTER_H
#define PANDO_PUSHDOWN_FILTER_H

#include "pushdown.h"

namespace pando {

/* To begin a filtered scan costs as much as some hundred rows. */
static const uint FILTER_ROWS_MIN= 256;

class Row_filter
{
public:
  /* Of the parts of the conditions that can be taken. Null: there are none. `all` are those that the server evaluates
     of each row, in its order; `condition` is what it says of the table alone. */
  static std::unique_ptr<Row_filter> make(THD *thd, TABLE *table, ha_pando *handler, Item *all, Item *condition);

  ~Row_filter() { pando_filter_free(m_filter); }
  Row_filter(const Row_filter &) = delete;
  Row_filter &operator=(const Row_filter &) = delete;

  PandoFilter *get() const { return m_filter; }
  /* Whether all parts were taken. */
  bool is_whole() const { return m_is_whole; }
  /* Which columns rows are to have, by position in ascending order. */
  void need(const std::vector<uint32_t> &positions);
  /* Beside those that they have. False: they have these. */
  bool need_also(const std::vector<uint32_t> &positions);

private:
  Row_filter(PandoFilter *filter, std::list<Like_pattern> patterns, bool is_whole)
    : m_filter(filter), m_is_whole(is_whole), m_patterns(std::move(patterns)) {}

  PandoFilter *const m_filter;
  const bool m_is_whole;
  std::vector<uint32_t> m_needed;
  const std::list<Like_pattern> m_patterns;
};

} // namespace pando

#endif
