/* Encryption at rest: the server's keys for the engine, and which tables are encrypted. */
#ifndef PANDO_ENCRYPTION_H
#define PANDO_ENCRYPTION_H

#include "server.h"
#include "pando.h"

struct ha_table_option_struct;

namespace pando {

/* The key of the log, and of tables that name none, as in other engines. */
constexpr uint32_t LOG_KEY_ID= 1;

/* Values of the table option ENCRYPTED. */
enum class Encrypted : uint { DEFAULT, YES, NO };

void set_key_functions(PandoOptions *options);

/* Whether a table with these options is encrypted when it is created now. An error of the server, which was told: pando_encrypt_tables
   forbids it. */
int is_to_be_encrypted(THD *thd, const ha_table_option_struct *options, bool *encrypted);

/* Neither ENCRYPTED=YES nor NO: such a table may be encrypted later, in the background. */
bool says_nothing_of_encryption(const ha_table_option_struct *options);

/* Tells the engine of an open table that is such a one. */
void note_if_undecided(const ha_table_option_struct *options, const PandoTable *table);

/* Whether an ALTER TABLE asks for another encryption than the table's definition has. */
bool changes_encryption(const ha_table_option_struct *old_options, const ha_table_option_struct *new_options);

/* SET GLOBAL pando_encrypt_log. */
int check_encrypt_log(THD *thd, st_mysql_sys_var *variable, void *to, st_mysql_value *value);

} // namespace pando

#endif
