/* Two-phase commit: with the binary log and other engines, and the user's XA. */
#ifndef PANDO_TWO_PHASE_H
#define PANDO_TWO_PHASE_H

#include "plugin.h"

namespace pando {

/* The name under which the engine knows a prepared transaction:

     format   8 bytes, little-endian
     lengths  1 byte each, of the global part and of the branch
     both     as many bytes */
void encode_xid(const XID &xid, Bytes *name);

void set_two_phase_functions(handlerton *engine);

} // namespace pando

#endif
