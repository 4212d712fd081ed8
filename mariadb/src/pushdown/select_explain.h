/* EXPLAIN and ANALYZE of a SELECT that the engine answers: its operators, in the place of the server's line "PUSHED SELECT". */
#ifndef PANDO_SELECT_EXPLAIN_H
#define PANDO_SELECT_EXPLAIN_H

#include "select_report.h"

class THD;
class st_select_lex;

namespace pando {

/* Whether the statement shows a plan. */
bool is_plan_shown(const THD *thd);

/* From here on EXPLAIN shows these operators for the SELECT. The server has described it before. */
void show_plan(THD *thd, const st_select_lex *select, std::vector<Plan_line> &&lines);

/* EXPLAIN EXTENDED and FORMAT=JSON say in a note why a SELECT is left to the server. */
void show_declined(THD *thd, const std::string &reason);

} // namespace pando

#endif
