#include "encryption.h"
#include "ha_pando.h"
#include "plugin.h"
#include "variables.h"

#include <mysql/service_encryption.h>

namespace pando {

static uint32_t key_version(uint32_t key_id)
{
  const uint version= encryption_key_get_latest_version(key_id);
  return version == ENCRYPTION_KEY_VERSION_INVALID ? 0 : version;
}

static uint32_t read_key(uint32_t key_id, uint32_t version, uint8_t *buffer, uint32_t room)
{
  uint bytes= room;
  return encryption_key_get(key_id, version, buffer, &bytes) ? 0 : bytes;
}

void set_key_functions(PandoOptions *options)
{
  options->key_version= key_version;
  options->key= read_key;
}

int is_to_be_encrypted(THD *thd, const ha_table_option_struct *options, bool *encrypted)
{
  const Encrypted option= options ? Encrypted(options->encrypted) : Encrypted::DEFAULT;
  if (option == Encrypted::NO && encrypt_tables_mode() == ENCRYPT_TABLES_FORCE)
  {
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, HA_WRONG_CREATE_OPTION,
                 "PANDO: ENCRYPTED=NO cannot be used with pando_encrypt_tables=FORCE");
    return HA_WRONG_CREATE_OPTION;
  }
  *encrypted= option == Encrypted::YES || (option == Encrypted::DEFAULT && encrypt_tables_mode() != ENCRYPT_TABLES_OFF);
  return 0;
}

bool says_nothing_of_encryption(const ha_table_option_struct *options)
{
  return !options || Encrypted(options->encrypted) == Encrypted::DEFAULT;
}

void note_if_undecided(const ha_table_option_struct *options, const PandoTable *table)
{
  /* Without options nobody knows. */
  if (options && says_nothing_of_encryption(options))
    pando_table_note_undecided(db, table, uint32_t(options->encryption_key_id));
}

bool changes_encryption(const ha_table_option_struct *old_options, const ha_table_option_struct *new_options)
{
  if (!old_options || !new_options)
    return old_options != new_options;
  return old_options->encrypted != new_options->encrypted ||
         old_options->encryption_key_id != new_options->encryption_key_id;
}

/* The value as the server's own booleans take it; -1: it is none. */
static int boolean_of(st_mysql_value *value)
{
  if (value->value_type(value) == MYSQL_VALUE_TYPE_STRING)
  {
    char buffer[8];
    int length= sizeof(buffer);
    const char *given= value->val_str(value, buffer, &length);
    const LEX_CSTRING word= {given, given ? size_t(length) : 0};
    if (given && (!strncasecmp(word.str, "ON", word.length) && word.length == 2))
      return 1;
    return given && !strncasecmp(word.str, "OFF", word.length) && word.length == 3 ? 0 : -1;
  }
  longlong number;
  if (value->val_int(value, &number) || number < 0 || number > 1)
    return -1;
  return int(number);
}

int check_encrypt_log(THD *, st_mysql_sys_var *, void *to, st_mysql_value *value)
{
  const int wanted= boolean_of(value);
  if (wanted < 0)
    return 1;
  if (pando_db_set_encrypt_log(db, wanted))
  {
    String text;
    error_text(&text);
    my_printf_error(ER_GET_ERRMSG, "PANDO: %s", MYF(0), text.c_ptr_safe());
    return 1;
  }
  *static_cast<my_bool *>(to)= my_bool(wanted);
  return 0;
}

} // namespace pando
