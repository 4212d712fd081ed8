/* What the server's versions that the plugin is built for name or pass differently, by one name of ours: 10.11 and 11.8. Where a
   function of the handler itself has another signature, the place has both. */
#ifndef PANDO_VERSIONS_H
#define PANDO_VERSIONS_H

#include "datadict.h"
#include "my_time.h"

#if MYSQL_VERSION_ID >= 110800
#define PANDO_SERVER_11_8 1
#include "lex_ident.h"
#elif MYSQL_VERSION_ID < 101100 || MYSQL_VERSION_ID >= 101200
#error "Pando knows MariaDB 10.11 and 11.8"
#endif

namespace pando {

/* A name that one version has as a text and the other with its length. */
inline const char *text_of_name(const char *name) { return name; }
inline const char *text_of_name(const LEX_CSTRING &name) { return name.str; }

#ifdef PANDO_SERVER_11_8

/* A function of transactions as the handlerton takes it: 10.11 passes itself, too. */
template <auto FUNCTION> constexpr auto engine_function= FUNCTION;

/* Of an ENUM or SET. */
inline const TYPELIB *members_of(const Field *field) { return static_cast<const Field_enum *>(field)->typelib(); }
inline const TYPELIB *members_of(const Column_definition &type) { return type.typelib(); }

/* Names of columns, keys and constraints. */
inline bool is_same_name(const LEX_CSTRING &a, const LEX_CSTRING &b) { return Lex_ident_ci(a).streq(b); }
/* Names of databases and tables. */
inline bool is_same_table_name(const LEX_CSTRING &a, const LEX_CSTRING &b) { return Lex_ident_fs(a).streq(b); }

inline void to_lower_case(char *name, size_t size)
{
  const std::string before(name);
  files_charset_info->casedn_z(before.data(), before.size(), name, size);
}

inline bool is_fulltext_or_spatial(const KEY &key)
{
  return key.algorithm == HA_KEY_ALG_FULLTEXT || key.algorithm == HA_KEY_ALG_RTREE;
}

inline bool has_vector_keys(TABLE_SHARE *share) { return share->hlindexes() > 0; }

/* A copying ALTER lets nobody else write: pieces of the copy are committed before what others wrote would be added. */
static const handler::Table_flags NO_ONLINE_COPY= HA_NO_ONLINE_ALTER;

inline uint concat_bytes_max(const THD *thd) { return thd->variables.group_concat_max_len; }

/* Whether a file of a table is that of a view, and else the engine's name. */
inline bool is_view_file(char *path, LEX_CSTRING *engine) { return dd_frm_type(nullptr, path, engine, nullptr) == TABLE_TYPE_VIEW; }

inline void init_share(THD *thd, TABLE_SHARE *share) { init_tmp_table_share(thd, share, "", 0, "", "", false); }

inline void to_hex(char *to, const uchar *bytes, size_t size) { octet2hex(to, bytes, size); }

/* Of hton->discover_table_names. */
using Database_name= const LEX_CSTRING;

/* The moment of a TIMESTAMP. */
using Moment= my_timeval;
inline Moment moment_of_stamp(const Timestamp &stamp) { return stamp; }

/* A copy into a table that nobody else sees begins, ends, is given up: 11.8 does not tell of one that passes duplicates by. */
static const ha_extra_function EXTRA_BEGIN_COPY= HA_EXTRA_BEGIN_ALTER_COPY;
static const ha_extra_function EXTRA_END_COPY= HA_EXTRA_END_ALTER_COPY;
static const ha_extra_function EXTRA_ABORT_COPY= HA_EXTRA_ABORT_ALTER_COPY;
inline bool is_begin_of_ignoring_copy(ha_extra_function) { return false; }

#else

template <auto FUNCTION> struct With_engine;
template <typename Answer, typename... Arguments, Answer (*FUNCTION)(Arguments...)> struct With_engine<FUNCTION>
{
  static Answer call(handlerton *, Arguments... arguments) { return FUNCTION(arguments...); }
};
template <auto FUNCTION> constexpr auto engine_function= With_engine<FUNCTION>::call;

inline const TYPELIB *members_of(const Field *field) { return static_cast<const Field_enum *>(field)->typelib; }
inline const TYPELIB *members_of(const Column_definition &type) { return type.interval; }

inline bool is_same_name(const LEX_CSTRING &a, const LEX_CSTRING &b) { return !lex_string_cmp(system_charset_info, &a, &b); }
inline bool is_same_table_name(const LEX_CSTRING &a, const LEX_CSTRING &b)
{
  return !my_strcasecmp(table_alias_charset, a.str, b.str);
}

inline void to_lower_case(char *name, size_t) { my_casedn_str(files_charset_info, name); }

inline bool is_fulltext_or_spatial(const KEY &key) { return key.flags & (HA_FULLTEXT | HA_SPATIAL); }

inline bool has_vector_keys(TABLE_SHARE *) { return false; }

static const handler::Table_flags NO_ONLINE_COPY= 0;

inline uint concat_bytes_max(THD *thd) { return thd->gconcat_max_len(); }

inline bool is_view_file(char *path, LEX_CSTRING *engine)
{
  return dd_frm_type(nullptr, path, engine, nullptr, nullptr) == TABLE_TYPE_VIEW;
}

inline void init_share(THD *thd, TABLE_SHARE *share) { init_tmp_table_share(thd, share, "", 0, "", ""); }

inline void to_hex(char *to, const uchar *bytes, size_t size)
{
  octet2hex(to, reinterpret_cast<const char *>(bytes), uint(size));
}

using Database_name= LEX_CSTRING;

using Moment= struct timeval;
inline Moment moment_of_stamp(const Timestamp &stamp) { return stamp.tv(); }

static const ha_extra_function EXTRA_BEGIN_COPY= HA_EXTRA_BEGIN_COPY;
static const ha_extra_function EXTRA_END_COPY= HA_EXTRA_END_COPY;
static const ha_extra_function EXTRA_ABORT_COPY= HA_EXTRA_ABORT_COPY;
inline bool is_begin_of_ignoring_copy(ha_extra_function operation) { return operation == HA_EXTRA_BEGIN_ALTER_IGNORE_COPY; }

#endif

} // namespace pando

#endif
