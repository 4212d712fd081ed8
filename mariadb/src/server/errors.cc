#include "errors.h"
#include "reports.h"
#include "variables.h"

namespace pando {

namespace {

enum Consequence : uint
{
  NOTHING= 0,
  ROLL_BACK= 1,     /* the whole transaction */
  END_STATEMENT= 2, /* roll back the statement only, or what pando_rollback_on_timeout says */
  WARN= 4,          /* the client gets the engine's text as a warning */
  LOG= 8            /* the operator gets it in the error log */
};

struct Mapping
{
  PandoStatus status;
  int error;
  uint consequences;
};

constexpr Mapping MAPPINGS[]=
{
  {PANDO_STATUS_OK,            0,                         NOTHING},
  {PANDO_STATUS_NOT_FOUND,     HA_ERR_KEY_NOT_FOUND,      NOTHING},
  {PANDO_STATUS_SKIPPED,       HA_ERR_KEY_NOT_FOUND,      NOTHING},
  {PANDO_STATUS_DUPLICATE,     HA_ERR_FOUND_DUPP_KEY,     NOTHING},
  {PANDO_STATUS_DEADLOCK,      HA_ERR_LOCK_DEADLOCK,      ROLL_BACK},
  {PANDO_STATUS_LOCK_TIMEOUT,  HA_ERR_LOCK_WAIT_TIMEOUT,  END_STATEMENT},
  {PANDO_STATUS_KILLED,        HA_ERR_ABORTED_BY_USER,    NOTHING},
  {PANDO_STATUS_WOULD_BLOCK,   HA_ERR_LOCK_WAIT_TIMEOUT,  END_STATEMENT},
  {PANDO_STATUS_DISK_FULL,     HA_ERR_RECORD_FILE_FULL,   WARN | LOG},
  {PANDO_STATUS_CORRUPTION,    HA_ERR_CRASHED,            WARN | LOG},
  {PANDO_STATUS_READ_ONLY,     HA_ERR_TABLE_READONLY,     WARN},
  {PANDO_STATUS_IO,            HA_ERR_INTERNAL_ERROR,     WARN | LOG},
  {PANDO_STATUS_TOO_LONG,      HA_ERR_TO_BIG_ROW,         WARN},
  {PANDO_STATUS_NO_SUCH_TABLE, HA_ERR_NO_SUCH_TABLE,      NOTHING},
  {PANDO_STATUS_TABLE_EXISTS,  HA_ERR_TABLE_EXIST,        NOTHING},
  {PANDO_STATUS_IN_USE,        HA_ERR_LOCK_WAIT_TIMEOUT,  WARN},
  {PANDO_STATUS_DEFINITION_CHANGED, HA_ERR_TABLE_DEF_CHANGED, NOTHING},
  {PANDO_STATUS_UNSUPPORTED,   HA_ERR_UNSUPPORTED,        WARN},
  /* The encoder's own number counts. */
  {PANDO_STATUS_REFUSED,       HA_ERR_INTERNAL_ERROR,     NOTHING},
  /* The error log has it already. */
  {PANDO_STATUS_BUG,           HA_ERR_INTERNAL_ERROR,     ROLL_BACK | WARN},
  {PANDO_STATUS_KEY_UNUSABLE,  HA_ERR_INDEX_CORRUPT,      WARN},
  {PANDO_STATUS_ENCRYPTION_KEY, HA_ERR_DECRYPTION_FAILED, WARN | LOG},
  /* The error log has it since the table was opened. */
  {PANDO_STATUS_VALUES_LOST,   HA_ERR_CRASHED,            WARN},
  {PANDO_STATUS_IN_DOUBT,      HA_ERR_TABLE_READONLY,     WARN},
  {PANDO_STATUS_NEWER_FORMAT,  HA_ERR_INTERNAL_ERROR,     WARN | LOG},
  {PANDO_STATUS_BAD_ARGUMENT,  HA_ERR_INTERNAL_ERROR,     WARN | LOG},
  {PANDO_STATUS_DATABASE_IN_USE, HA_ERR_INTERNAL_ERROR,   WARN | LOG},
};

constexpr size_t MAPPING_COUNT= sizeof(MAPPINGS) / sizeof(MAPPINGS[0]);

/* Every status has one line, at its own place. */
constexpr bool is_complete()
{
  for (size_t i= 0; i < MAPPING_COUNT; i++)
    if (size_t(MAPPINGS[i].status) != i)
      return false;
  return MAPPING_COUNT == size_t(PANDO_STATUS_DATABASE_IN_USE) + 1;
}
static_assert(is_complete(), "a status without an error of the server, or out of order");

} // namespace

void error_text(String *text)
{
  PandoBytes bytes= pando_error_text();
  text->copy(reinterpret_cast<const char *>(bytes.data), uint32(bytes.len), system_charset_info);
}

void warn_beside_error(THD *thd, const char *text)
{
  const Abort_on_warning_instant_set no_error(thd, false);
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG, "%s", text);
}

void warn_of_error(THD *thd)
{
  String text;
  error_text(&text);
  warn_beside_error(thd, text.c_ptr_safe());
}

static thread_local Open_failure last_open_failure;

void note_open_failure(int error, const String &text)
{
  last_open_failure.error= error;
  last_open_failure.text.assign(text.ptr(), text.length());
}

const Open_failure &open_failure()
{
  return last_open_failure;
}

/* Why a statement of this thread was answered by HA_ERR_INTERNAL_ERROR, which alone says nothing. The handler that the server asks may
   be another than the one that met it: of another partition, or of the table whose foreign key it was about. */
static thread_local struct
{
  query_id_t query_id= 0;
  std::string text;
} last_internal_error;

const std::string &internal_error_of(THD *thd)
{
  static const std::string none;
  return thd && last_internal_error.query_id == thd->query_id ? last_internal_error.text : none;
}

int error_of(PandoStatus status, THD *thd)
{
  const Mapping &mapping= MAPPINGS[size_t(status)];
  if (mapping.consequences & (WARN | LOG))
  {
    String text;
    error_text(&text);
    if (mapping.consequences & LOG)
      log_line(PANDO_LOG_LEVEL_ERROR, text.c_ptr_safe());
    if (thd && (mapping.consequences & WARN))
      warn_beside_error(thd, text.c_ptr_safe());
    if (thd && mapping.error == HA_ERR_INTERNAL_ERROR)
    {
      last_internal_error.query_id= thd->query_id;
      last_internal_error.text= text.c_ptr_safe();
    }
  }
  if (thd && status == PANDO_STATUS_DEADLOCK)
    note_deadlock(thd);
  /* Else the server would say nothing, as it does of its own kills, which it has told already. */
  if (thd && status == PANDO_STATUS_KILLED && thd_kill_level(thd) == THD_IS_NOT_KILLED)
    my_error(ER_QUERY_INTERRUPTED, MYF(0));
  if (thd && (mapping.consequences & (ROLL_BACK | END_STATEMENT)))
    thd->mark_transaction_to_rollback((mapping.consequences & ROLL_BACK) || rollback_on_timeout());
  if (status == PANDO_STATUS_IO && pando_error_os())
    return pando_error_os();
  return mapping.error;
}

void log_line(PandoLogLevel level, const char *line)
{
  switch (level)
  {
  case PANDO_LOG_LEVEL_NOTE:    sql_print_information("PANDO: %s", line); break;
  case PANDO_LOG_LEVEL_WARNING: sql_print_warning("PANDO: %s", line); break;
  case PANDO_LOG_LEVEL_ERROR:   sql_print_error("PANDO: %s", line); break;
  }
}

} // namespace pando
