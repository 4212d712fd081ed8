/* How a key of the server lies in its dictionary.

     dictionary              key                                   value
     rows, primary key       the key's parts                       the row (row_codec.h)
     rows, no primary key    hidden number, 8 bytes, big-endian    the row
     key, not unique         parts, suffix                         kept columns
     key, unique             parts                                 length of suffix, suffix, kept columns
     key, unique, a NULL     parts, suffix                         kept columns

   The suffix is what makes an entry name its row: the parts of the primary key that the key does not
   have itself (in full), in order; or the hidden number. So entries of keys that are not unique are ordered
   by the extended key as the server's optimizer assumes, and rows that have a NULL in a unique key
   do not collide.

   Kept columns are those of the key, then those of the suffix, that cannot be had from the key bytes;
   NULLs are not kept (the key says so), prefixes neither (the server does not read them from here).

   An entry of a clustering key (CLUSTERING=YES) has the row:

     key, clustering         as above                              the row
     with a tail             as above                              the row, size of the tail, tail, size (2 bytes, little-endian)

   The tail is what the value would be otherwise, but the only kept columns are virtual ones: the row has the others. A key has tails if
   it is unique, or if it keeps columns so. The engine finds the tail from the end (crates/pandodb, `clustering`). */
#ifndef PANDO_INDEX_LAYOUT_H
#define PANDO_INDEX_LAYOUT_H

#include <memory>
#include <vector>
#include "key_part.h"

/* Of a key. */
struct ha_index_option_struct
{
  bool clustering;
};

namespace pando {

static const uint HIDDEN_KEY_SIZE= 8;
static const uint POSITION_LENGTH_BYTES= 2;

class Index_layout
{
public:
  /* `primary`: the layout of the primary key, nullptr for itself and where there is none. */
  void init(const TABLE *table, uint key_number, uint dictionary, Index_layout *primary);
  /* Of a key that the table does not have yet, on columns that it has. */
  void init(const TABLE *table, const KEY *key, uint dictionary, Index_layout *primary);

  uint dictionary() const { return m_dictionary; }
  uint key_number() const { return m_key_number; }
  bool is_unique() const { return m_is_unique; }
  /* Whether the engine keeps the key unique; the server does it where it is of hashes. */
  static bool is_unique(const KEY &key)
  {
    return (key.flags & HA_NOSAME) && key.algorithm != HA_KEY_ALG_LONG_HASH;
  }
  /* Whether entries of a secondary key hold the row: the statement says so. Of keys that the server keeps unique, by hashes, nobody
     reads ranges. */
  static bool is_clustering(const KEY &key)
  {
    return key.option_struct && key.option_struct->clustering && key.algorithm != HA_KEY_ALG_LONG_HASH;
  }
  bool is_rows() const { return m_is_rows; }
  /* Entries hold the row. Not of the primary key, whose entries are the rows. */
  bool is_clustering() const { return m_clustering != PANDO_CLUSTERING_NONE; }
  PandoClustering clustering() const { return m_clustering; }
  /* What a clustering key's entries hold, besides. */
  static PandoClustering clustering_of(const TABLE *table, const KEY *key);
  bool has_virtual() const { return m_has_virtual; }
  bool has_prefix() const { return m_has_prefix; }
  uint part_count() const { return m_part_count; }
  Key_part &part(uint i) { return m_parts[i]; }
  const Key_part &part(uint i) const { return m_parts[i]; }
  /* Parts of the primary key that entries end with. */
  const std::vector<uint> &suffix_parts() const { return m_suffix_parts; }

  /* The key bytes of a record. `row_key`: the record's key in dictionary 0 (unused for that one itself).
     Says whether the entry must be the only one with these key bytes. */
  bool encode_key(Bytes *out, const uchar *record, PandoBytes row_key);
  /* The value of a secondary entry; `alone` is what encode_key said, `row` is the record as it is in dictionary 0, in any layout (unused
     if the key is not clustering). */
  void encode_value(Bytes *out, const uchar *record, PandoBytes row_key, PandoBytes row, bool alone);

  /* Bytes of a search key: the parts that the map has, extended ones included. */
  void encode_image(Bytes *out, const uchar *image, key_part_map map, Image what= Image::EXACT);

  /* The row's key in dictionary 0 from a secondary entry. */
  bool row_key_of(PandoBytes key, PandoBytes value, Bytes *out);

  /* Puts the columns of an entry into a record: those of the key, and of the primary key; of a clustering key only those that its row does
     not have. */
  bool decode(PandoBytes key, PandoBytes value, uchar *record);

  /* How many parts the key bytes have, those of the suffix included. */
  uint key_byte_parts() const { return m_part_count + (m_is_unique ? 0 : uint(m_suffix_parts.size())); }
  /* Where the first `parts` of them end; false: damaged. */
  bool part_ends(PandoBytes key, uint32_t *ends, uint parts) const;

  /* Whether two records have the same in all columns that take part. */
  bool is_changed(const uchar *old_record, const uchar *new_record) const;

private:
  struct Row_key_source
  {
    bool in_suffix;
    uint part;      /* of this key; unused for the suffix */
    bool flipped;   /* descending in one of them only */
  };

  void encode_suffix(Bytes *out, PandoBytes row_key) const;
  void encode_beside_row(Bytes *out, const uchar *record, PandoBytes row_key, bool alone);
  bool keeps(const Key_part &part, bool is_stored) const;
  bool keeps(uint part) const { return keeps(m_parts[part], !m_virtual_parts[part]); }
  bool find_tail(PandoBytes *value) const;
  bool split(PandoBytes key, PandoBytes value, PandoBytes *suffix, Reader *kept) const;

  std::unique_ptr<Key_part[]> m_parts;
  std::vector<bool> m_virtual_parts;
  uint m_part_count= 0;
  /* Of a secondary key: the parts of the primary key that its suffix has. */
  std::vector<uint> m_suffix_parts;
  std::vector<Row_key_source> m_row_key_sources;
  Index_layout *m_primary= nullptr;
  uint m_key_number= MAX_KEY;
  uint m_dictionary= 0;
  uint m_suffix_fixed_size= 0;
  bool m_is_unique= false;
  bool m_is_rows= false;
  bool m_has_virtual= false;
  bool m_has_prefix= false;
  bool m_suffix_is_row_key= true;
  PandoClustering m_clustering= PANDO_CLUSTERING_NONE;
};

} // namespace pando

#endif
