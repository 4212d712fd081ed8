/* What became of SELECTs, for people: why some were left to the server, and how the last one of a session was answered. */
#ifndef PANDO_SELECT_REPORT_H
#define PANDO_SELECT_REPORT_H

#include "plugin.h"

#include <map>
#include <string>
#include <vector>

namespace pando {

class Select_translator;

/* How often a reason was in the way, and when last. */
struct Declined
{
  ulonglong queries= 0;
  time_t last= 0;
};

/* Why the cost says that the server is faster (select_plan.cc). */
enum class Left_by_cost { KEYS, FEW_ROWS, COUNT };
const char *name_of(Left_by_cost why);

/* A SELECT is left to the server. Those that the cost leaves are many small ones: nobody waits to count them. */
void note_declined(const std::string &reason);
void note_left_by_cost(Left_by_cost why);
std::map<std::string, Declined> declined_selects();
/* For SHOW ENGINE PANDO STATUS. */
void append_declined_selects(String *text);

/* An operator of a plan. */
struct Plan_line
{
  int parent; /* -1: none */
  std::string name, table, what;
  ulonglong estimated, rows, held_us;
};

/* How a query was answered, in the names that it uses. */
std::vector<Plan_line> lines_of_plan(const PandoAnalytic *query, const Select_translator &translator);

} // namespace pando

#endif
