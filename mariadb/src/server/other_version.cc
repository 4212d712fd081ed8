/*
  What the error log says when this plugin is loaded into a server that it was not built for.

  A server takes a storage engine only if both are of one version, to the last number. It compares
  (test_plugin_options, plugin_add in sql_plugin.cc) and refuses with "API version for STORAGE ENGINE plugin PANDO not
  supported by this version of the server", before any function of the plugin has run: no damage, but no hint either.
  Code that runs while the library is loaded can give one. It looks at the version that one of the server's own plugins
  has, which is the one that the server compares with; the variable `version` is what the administrator likes. The plugin
  is the binary log, an engine in 10.11 and a daemon in 11.8; both kinds begin with the server's version.
*/
#include "server.h"

#include <dlfcn.h>

namespace pando {

/* "10.11.18" */
struct VersionText
{
  char text[32];
  explicit VersionText(unsigned id)
  {
    snprintf(text, sizeof(text), "%u.%u.%u", id / 10000, id / 100 % 100, id % 100);
  }
};

__attribute__((constructor)) static void tell_of_another_version()
{
  const st_maria_plugin *own=
    static_cast<const st_maria_plugin *>(dlsym(RTLD_DEFAULT, "builtin_maria_binlog_plugin"));
  if (!own || !own->info || (own->type != MYSQL_STORAGE_ENGINE_PLUGIN && own->type != MYSQL_DAEMON_PLUGIN))
    return;
  const unsigned server= static_cast<unsigned>(*static_cast<const int *>(own->info)) >> 8;
  if (server == MYSQL_VERSION_ID)
    return;
  const VersionText here(server), built(MYSQL_VERSION_ID);
  sql_print_error("PANDO: this ha_pando.so was built for MariaDB %s and this is MariaDB %s, which does not take it."
                  " PANDO tables stay as they are, but cannot be opened. Install the plugin that was built for %s"
                  " (package mariadb-plugin-pando), or the server %s again",
                  built.text, here.text, here.text, built.text);
}

} // namespace pando
