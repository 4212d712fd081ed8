/* Growing byte strings. The server is built without exceptions in mind, so no std::string: when
   memory runs out the process stops, as it does on the Rust side. */
#ifndef PANDO_BYTES_H
#define PANDO_BYTES_H

#include "server.h"
#include "pando.h"

namespace pando {

/* memcpy for what columns usually are: a call costs more than the few bytes. */
inline void copy_short(uchar *to, const uchar *from, size_t size)
{
  if (size > 16)
    memcpy(to, from, size);
  else if (size >= 8)
  {
    uint64_t first, last;
    memcpy(&first, from, 8);
    memcpy(&last, from + size - 8, 8);
    memcpy(to, &first, 8);
    memcpy(to + size - 8, &last, 8);
  }
  else if (size >= 4)
  {
    uint32_t first, last;
    memcpy(&first, from, 4);
    memcpy(&last, from + size - 4, 4);
    memcpy(to, &first, 4);
    memcpy(to + size - 4, &last, 4);
  }
  else if (size)
  {
    const uchar first= from[0], middle= from[size / 2], last= from[size - 1];
    to[0]= first;
    to[size / 2]= middle;
    to[size - 1]= last;
  }
}

class Bytes
{
public:
  Bytes() = default;
  ~Bytes() { pando_memory_resize(m_data, m_capacity, 0); }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;

  const uchar *data() const { return m_data; }
  uchar *data() { return m_data; }
  size_t size() const { return m_size; }
  bool empty() const { return m_size == 0; }
  bool operator==(const Bytes &other) const
  {
    return m_size == other.m_size && (!m_size || !memcmp(m_data, other.m_data, m_size));
  }
  void clear() { m_size= 0; }
  void truncate(size_t size) { m_size= size; }

  /* Makes room for `more` bytes behind the end and says where they go; `grown` makes them count. */
  uchar *reserve(size_t more)
  {
    if (m_capacity - m_size < more)
      grow(more);
    return m_data + m_size;
  }
  void grown(size_t more) { m_size+= more; }

  uchar *extend(size_t more)
  {
    uchar *at= reserve(more);
    m_size+= more;
    return at;
  }
  void append(const void *bytes, size_t size)
  {
    if (size)
      copy_short(extend(size), static_cast<const uchar *>(bytes), size);
  }
  void append_byte(uchar byte) { *extend(1)= byte; }
  void assign(const void *bytes, size_t size)
  {
    clear();
    append(bytes, size);
  }

  /* Numbers below 128 in one byte: seven bits a byte, least significant first, high bit: more follow. */
  void append_number(uint64_t number)
  {
    if (likely(number < 0x80))
      return append_byte(uchar(number));
    while (number >= 0x80)
    {
      append_byte(uchar(number | 0x80));
      number>>= 7;
    }
    append_byte(uchar(number));
  }

  PandoBytes view() const { return PandoBytes{m_data, m_size}; }

private:
  /* Beyond this, room for later takes less than what is there: the engine's memory has a limit, and large pieces often grow where they are. */
  static constexpr size_t LARGE= 256 << 10;

  void grow(size_t more)
  {
    const size_t size= m_size + more, capacity= size + (size < LARGE ? size : size / 4) + 64;
    m_data= pando_memory_resize(m_data, m_capacity, capacity);
    if (!m_data)
      abort();
    m_capacity= capacity;
  }

  uchar *m_data= nullptr;
  size_t m_size= 0;
  size_t m_capacity= 0;
};

/* Reads what Bytes wrote. Every read says whether it was within the bounds: what comes from disk is
   checked, however well its checksum matched. */
class Reader
{
public:
  Reader(const uchar *data, size_t size) : m_at(data), m_end(data + size) {}
  explicit Reader(PandoBytes bytes) : Reader(bytes.data, bytes.len) {}

  const uchar *at() const { return m_at; }
  size_t left() const { return size_t(m_end - m_at); }

  bool take(size_t size, const uchar **bytes)
  {
    if (left() < size)
      return false;
    *bytes= m_at;
    m_at+= size;
    return true;
  }
  bool skip(size_t size)
  {
    if (left() < size)
      return false;
    m_at+= size;
    return true;
  }
  bool take_number(uint64_t *number)
  {
    *number= 0;
    for (uint shift= 0; m_at < m_end && shift < 64; shift+= 7)
    {
      uchar byte= *m_at++;
      *number|= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }

private:
  const uchar *m_at;
  const uchar *m_end;
};

/* Order of keys. */
inline int compare(PandoBytes a, PandoBytes b)
{
  size_t size= MY_MIN(a.len, b.len);
  int order= size ? memcmp(a.data, b.data, size) : 0;
  return order ? order : int(a.len > b.len) - int(a.len < b.len);
}

/* A name or path for the Rust side. */
inline PandoBytes text(const char *string)
{
  return PandoBytes{reinterpret_cast<const uint8_t *>(string), strlen(string)};
}

/* The first byte string after all that begin with `prefix`. False: there is none. */
inline bool after_prefix(Bytes *prefix)
{
  while (!prefix->empty())
  {
    uchar *last= prefix->data() + prefix->size() - 1;
    if (*last != 0xff)
    {
      ++*last;
      return true;
    }
    prefix->truncate(prefix->size() - 1);
  }
  return false;
}

} // namespace pando

#endif
