/* Keys of dictionaries as people read them: the columns' values, for reports of locks.

     part                                         shown as
     integers, YEAR, ENUM and SET (by number)     the number
     DECIMAL, FLOAT, DOUBLE                       the number
     DATE, TIME, DATETIME, TIMESTAMP              the time, quoted; TIMESTAMP in the server's time zone
     text whose collation compares code points    the text, quoted
     text whose weights are characters            what the collation takes it for, quoted: usually capital
                                                  letters without accents
     everything else                              its bytes in the key, 0x...

   A table's own description is needed for that, and reports are asked for by others, who do not have
   the table open. So each open table leaves a description here, which goes when the server forgets the
   table; whoever holds a lock had the table open. Keys of tables without one (a prepared transaction after
   a restart) are shown as bytes. */
#ifndef PANDO_KEY_TEXT_H
#define PANDO_KEY_TEXT_H

#include <deque>
#include <string>
#include "index_layout.h"
#include "table_options.h"

namespace pando {

/* One part of a key, apart from the open table it was made from. */
class Part_text
{
public:
  Part_text(const TABLE *table, const KEY_PART_INFO *part);

  /* Appends the value and passes its bytes. False: these are not the bytes of a value; nothing is appended. */
  bool append(Reader *reader, String *out) const;

private:
  bool append_value(Reader *reader, String *out) const;
  bool append_fixed(const uchar *bytes, String *out) const;
  bool append_time(const uchar *bytes, String *out) const;
  void append_real(const uchar *bytes, String *out) const;
  void append_string(const Bytes &weights, String *out) const;

  Key_part m_part;
  enum_field_types m_type;
  uint m_precision= 0;
  uint m_decimals= 0;
};

class Key_text
{
public:
  void init(const TABLE *table, const Index_layout &layout);
  /* Of the rows of a table without a primary key. */
  void init_hidden();

  const char *index_name() const { return m_index_name.c_str(); }

  /* A key, or what of it can be decoded and the rest as bytes. */
  void append_key(PandoBytes key, String *out) const;
  /* The keys from `from` to before `to` (null: without an end) as an interval: (1, 5]. */
  void append_range(PandoBytes from, PandoBytes to, String *out) const;

private:
  /* Says how many bytes of the key it did not understand. */
  size_t append_parts(PandoBytes key, String *out) const;
  char append_bound(PandoBytes bound, char at, char after, String *out) const;

  std::deque<Part_text> m_parts;
  bool m_ends_with_hidden= false;
  std::string m_index_name;
};

/* The descriptions of a table's dictionaries, and its options; lives as long as the server's share of the table. */
class Table_text : public Handler_share
{
public:
  Table_text(const char *path, const TABLE *table, const Index_layout *layouts);
  ~Table_text() override;

  const ha_table_option_struct *options() const { return m_options.get(); }

private:
  friend class Known_tables;
  const Table_options m_options;
  std::string m_path;
  std::deque<Key_text> m_dictionaries;
};

/* While one of these lives, what it has found stays. */
class Known_tables
{
public:
  Known_tables();
  ~Known_tables();
  Known_tables(const Known_tables &) = delete;
  Known_tables &operator=(const Known_tables &) = delete;

  /* nullptr: unknown. */
  const Key_text *find(PandoBytes path, uint dictionary) const;
};

} // namespace pando

#endif
