/* What all of the plugin shares: the handlerton and the open database. */
#ifndef PANDO_PLUGIN_H
#define PANDO_PLUGIN_H

#include "bytes.h"
#include "errors.h"

namespace pando {

extern handlerton *hton;
extern PandoDb *db;

} // namespace pando

#endif
