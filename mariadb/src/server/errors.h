/* From answers of the engine to errors of the server: one table (errors.cc). */
#ifndef PANDO_ERRORS_H
#define PANDO_ERRORS_H

#include "server.h"
#include "pando.h"
#include <string>

namespace pando {

/* The server's number for an answer (the operating system's for an I/O error); 0 for PANDO_STATUS_OK. Tells what the answer asks for: the
   operator (error log), the client (a warning with the engine's text), the server (roll back). `thd` may be
   null. Call it on the thread that got the answer, before any other call of the engine. */
int error_of(PandoStatus status, THD *thd);

/* Text of the last answer on this thread. */
void error_text(String *text);

/* A warning that tells more of an error to come. In strict mode a warning of a change would itself be the error, and the first one counts. */
void warn_beside_error(THD *thd, const char *text);

/* Tells the client of it, who gets what was asked for in another way. */
void warn_of_error(THD *thd);

/* Why the table that this thread has opened last could not be opened; 0: it could. The handler that could not is gone when that is
   asked for: of a partitioned table the server asks its first partition, whichever it was that failed, and tables of constraints are
   opened without messages. */
struct Open_failure
{
  int error= 0;
  std::string text;
};

void note_open_failure(int error, const String &text);
const Open_failure &open_failure();

/* Why this statement got HA_ERR_INTERNAL_ERROR from the engine; empty: it did not, in this thread. */
const std::string &internal_error_of(THD *thd);

void log_line(PandoLogLevel level, const char *line);

} // namespace pando

#endif
