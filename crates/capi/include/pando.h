/* The C interface of Pando. Generated from crates/capi and crates/analytic/src/tags.rs by cbindgen: change it there. */

#ifndef PANDO_H
#define PANDO_H

#include <stddef.h>
#include <stdint.h>

/**
 * How many uses of memory there are: block cache, memtables, row locks, loads, queries, and the rest, in this order.
 */
#define PANDO_MEMORY_USES 6

/**
 * `wait_s` of locking reads: as the transaction says.
 */
#define PANDO_WAIT_DEFAULT -1

/**
 * `wait_s` of locking reads: pass locked rows by. 0 fails at once, other numbers are seconds.
 */
#define PANDO_WAIT_SKIP -2

/**
 * `wait_s` of locking fetches: give locked rows as they were last committed, without a lock (`PandoBatch::is_peek`). Not
 * for transactions that take gaps.
 */
#define PANDO_WAIT_PEEK -3

/**
 * The answer of a function. The first three are ordinary outcomes, the others are told to clients
 * (the plugin's table `error_map` has the server's number for each).
 */
enum PandoStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done.
   */
  PANDO_STATUS_OK = 0,
  /**
   * No such row, or no more rows.
   */
  PANDO_STATUS_NOT_FOUND = 1,
  /**
   * The row is locked by another transaction and SKIP LOCKED was asked for.
   */
  PANDO_STATUS_SKIPPED = 2,
  /**
   * A unique key exists already; see `pando_txn_duplicate`.
   */
  PANDO_STATUS_DUPLICATE = 3,
  /**
   * Chosen as the victim of a deadlock: the transaction must be rolled back.
   */
  PANDO_STATUS_DEADLOCK = 4,
  /**
   * A lock was not granted in time.
   */
  PANDO_STATUS_LOCK_TIMEOUT = 5,
  /**
   * The connection was killed.
   */
  PANDO_STATUS_KILLED = 6,
  /**
   * NOWAIT, and the lock is held by another transaction.
   */
  PANDO_STATUS_WOULD_BLOCK = 7,
  /**
   * No space left on the device; goes on when there is space.
   */
  PANDO_STATUS_DISK_FULL = 8,
  /**
   * Bytes on disk are not what was written.
   */
  PANDO_STATUS_CORRUPTION = 9,
  /**
   * The database accepts no writes since a failed write or sync of its log.
   */
  PANDO_STATUS_READ_ONLY = 10,
  /**
   * The operating system refused an operation.
   */
  PANDO_STATUS_IO = 11,
  /**
   * A key or row is beyond the limits.
   */
  PANDO_STATUS_TOO_LONG = 12,
  /**
   * There is no such table.
   */
  PANDO_STATUS_NO_SUCH_TABLE = 13,
  /**
   * There is such a table (or its directory) already.
   */
  PANDO_STATUS_TABLE_EXISTS = 14,
  /**
   * A prepared transaction without a connection has changed the table.
   */
  PANDO_STATUS_IN_USE = 15,
  /**
   * The table has other indexes than this object, or this snapshot, knows of.
   */
  PANDO_STATUS_DEFINITION_CHANGED = 16,
  /**
   * It cannot be done this way.
   */
  PANDO_STATUS_UNSUPPORTED = 17,
  /**
   * The encoder of a load refused a row; see `pando_load_finish`.
   */
  PANDO_STATUS_REFUSED = 18,
  /**
   * A bug was met, which the error log tells of. The transaction of the call, if there was one, can only be rolled back.
   */
  PANDO_STATUS_BUG = 19,
  /**
   * The key that is asked for, or would have to say whether it has a value, is damaged.
   */
  PANDO_STATUS_KEY_UNUSABLE = 20,
  /**
   * A key of encryption is missing, or is another one.
   */
  PANDO_STATUS_ENCRYPTION_KEY = 21,
  /**
   * A large value is lost with its file, or that file is to take new ones.
   */
  PANDO_STATUS_VALUES_LOST = 22,
  /**
   * The log failed after others could see the commit: it may be gone after a restart. No writes are accepted any more.
   */
  PANDO_STATUS_IN_DOUBT = 23,
  /**
   * A newer release wrote it, in a format that this one does not know.
   */
  PANDO_STATUS_NEWER_FORMAT = 24,
  /**
   * The caller has made a mistake: what it gave does not belong together, or there is no such thing. Nothing was done.
   */
  PANDO_STATUS_BAD_ARGUMENT = 25,
  /**
   * Somebody has the database open: another process, or this one.
   */
  PANDO_STATUS_DATABASE_IN_USE = 26,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoStatus PandoStatus;
#else
typedef int32_t PandoStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What the bytes of a value are. Of `Char`, `Varchar`, `Blob` and `Large` each value has a count before it.
 */
enum PandoColumnKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * An integer with a sign, little-endian.
   */
  PANDO_COLUMN_KIND_SIGNED = 0,
  /**
   * An integer without a sign, little-endian.
   */
  PANDO_COLUMN_KIND_UNSIGNED = 1,
  /**
   * IEEE 754, little-endian.
   */
  PANDO_COLUMN_KIND_FLOAT = 2,
  /**
   * Bytes that memcmp orders.
   */
  PANDO_COLUMN_KIND_BYTES = 3,
  /**
   * Bits, most significant byte first.
   */
  PANDO_COLUMN_KIND_BIT = 4,
  /**
   * The number of a member, little-endian.
   */
  PANDO_COLUMN_KIND_ENUM = 5,
  /**
   * A bit for each member, little-endian.
   */
  PANDO_COLUMN_KIND_SET = 6,
  /**
   * At most `size` bytes, without the filling.
   */
  PANDO_COLUMN_KIND_CHAR = 7,
  /**
   * At most `size` bytes.
   */
  PANDO_COLUMN_KIND_VARCHAR = 8,
  /**
   * `size` bytes hold the length of every value.
   */
  PANDO_COLUMN_KIND_BLOB = 9,
  /**
   * As `Blob`, but a row may have a reference in place of the value.
   */
  PANDO_COLUMN_KIND_LARGE = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoColumnKind PandoColumnKind;
#else
typedef uint32_t PandoColumnKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How what is written to leaves is compressed.
 */
enum PandoCompression
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * zstd at the level given.
   */
  PANDO_COMPRESSION_ZSTD = 0,
  /**
   * lz4.
   */
  PANDO_COMPRESSION_LZ4 = 1,
  /**
   * Not at all.
   */
  PANDO_COMPRESSION_NONE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoCompression PandoCompression;
#else
typedef uint32_t PandoCompression;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What becomes of children when their parent goes, or its key changes.
 */
enum PandoReferentialAction
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The statement fails.
   */
  PANDO_REFERENTIAL_ACTION_RESTRICT = 0,
  /**
   * The same, by another name.
   */
  PANDO_REFERENTIAL_ACTION_NO_ACTION = 1,
  /**
   * They go, too, or their key changes likewise.
   */
  PANDO_REFERENTIAL_ACTION_CASCADE = 2,
  /**
   * Their columns become NULL.
   */
  PANDO_REFERENTIAL_ACTION_SET_NULL = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoReferentialAction PandoReferentialAction;
#else
typedef uint32_t PandoReferentialAction;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a collation orders texts.
 */
enum PandoTextOrder
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * As the bytes say that `key` gives.
   */
  PANDO_TEXT_ORDER_KEYS = 0,
  /**
   * As their bytes are ordered.
   */
  PANDO_TEXT_ORDER_BYTES = 1,
  /**
   * Likewise, as if all went on with spaces for ever.
   */
  PANDO_TEXT_ORDER_PADDED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoTextOrder PandoTextOrder;
#else
typedef uint8_t PandoTextOrder;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What became of the values of an expression.
 */
enum PandoServerOutcome
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * They are there.
   */
  PANDO_SERVER_OUTCOME_VALUES = 0,
  /**
   * The server has something to say of them, or they are none that can be told: the query is its own.
   */
  PANDO_SERVER_OUTCOME_GIVEN_BACK = 1,
  /**
   * Nobody waits for them any more.
   */
  PANDO_SERVER_OUTCOME_STOPPED = 2,
  /**
   * One of them is too large.
   */
  PANDO_SERVER_OUTCOME_OVERFLOW = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoServerOutcome PandoServerOutcome;
#else
typedef uint32_t PandoServerOutcome;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What becomes of what the server says while it computes values.
 */
enum PandoHearing
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Where it has something to say, it is `GivenBack`, and asked again of all rows.
   */
  PANDO_HEARING_SILENT = 0,
  /**
   * It is said of each row.
   */
  PANDO_HEARING_TOLD = 1,
  /**
   * Nothing else is wanted, of all rows that a plan could look at.
   */
  PANDO_HEARING_ASKED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoHearing PandoHearing;
#else
typedef uint32_t PandoHearing;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why a query was not answered.
 */
enum PandoAnalyticWhy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It was.
   */
  PANDO_ANALYTIC_WHY_ANSWERED = 0,
  /**
   * Something in it is not computed here, or its rows have no exact answer.
   */
  PANDO_ANALYTIC_WHY_UNSUPPORTED = 1,
  /**
   * Memory.
   */
  PANDO_ANALYTIC_WHY_MEMORY = 2,
  /**
   * A number that is too large.
   */
  PANDO_ANALYTIC_WHY_OVERFLOW = 3,
  /**
   * Texts that are equal and not the same.
   */
  PANDO_ANALYTIC_WHY_UNDETERMINED = 4,
  /**
   * It is not wanted any more.
   */
  PANDO_ANALYTIC_WHY_STOPPED = 5,
  /**
   * A NULL leaves open what NOT IN is.
   */
  PANDO_ANALYTIC_WHY_OPEN = 6,
  /**
   * A query as a value has several rows.
   */
  PANDO_ANALYTIC_WHY_SEVERAL = 7,
  /**
   * The server's own expression has something to say.
   */
  PANDO_ANALYTIC_WHY_TOLD = 8,
  /**
   * The answer depends on how the server would go about it.
   */
  PANDO_ANALYTIC_WHY_UNSURE = 9,
  /**
   * A temporary file could not be written or read.
   */
  PANDO_ANALYTIC_WHY_DISK = 10,
  /**
   * It would make pairs of many rows, few of which are wanted.
   */
  PANDO_ANALYTIC_WHY_PAIRS = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoAnalyticWhy PandoAnalyticWhy;
#else
typedef uint32_t PandoAnalyticWhy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What an answer's value is.
 */
enum PandoAnalyticForm
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * NULL.
   */
  PANDO_ANALYTIC_FORM_NULL = 0,
  /**
   * A number without its point.
   */
  PANDO_ANALYTIC_FORM_NUMBER = 1,
  /**
   * A DOUBLE.
   */
  PANDO_ANALYTIC_FORM_REAL = 2,
  /**
   * A text.
   */
  PANDO_ANALYTIC_FORM_TEXT = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoAnalyticForm PandoAnalyticForm;
#else
typedef uint32_t PandoAnalyticForm;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where a fetch begins; the first and third go up from there, the others down.
 */
enum PandoMove
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The first row whose key is at or after the key given.
   */
  PANDO_MOVE_AT_OR_AFTER = 0,
  /**
   * The last row whose key is before the key given.
   */
  PANDO_MOVE_BEFORE = 1,
  /**
   * The first row.
   */
  PANDO_MOVE_FIRST = 2,
  /**
   * The last row.
   */
  PANDO_MOVE_LAST = 3,
  /**
   * The row after the last one fetched; the fetch before went up.
   */
  PANDO_MOVE_NEXT = 4,
  /**
   * The row before the last one fetched; the fetch before went down.
   */
  PANDO_MOVE_PREVIOUS = 5,
  /**
   * The last one fetched, which is a peek (`PandoBatch::is_peek`), as it is once `wait_s` has been waited for it; if it
   * is gone, the row after it in the direction of the fetch before.
   */
  PANDO_MOVE_PEEKED = 6,
  /**
   * The last one fetched again, as it is in the newest state by now; if it is gone, the row after it in the direction of
   * the fetch before. For locking fetches.
   */
  PANDO_MOVE_AGAIN = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoMove PandoMove;
#else
typedef uint32_t PandoMove;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a read sees, and whether it locks.
 */
enum PandoRead
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The transaction's snapshot.
   */
  PANDO_READ_SNAPSHOT = 0,
  /**
   * The newest committed version; no lock.
   */
  PANDO_READ_LATEST = 1,
  /**
   * The newest version, under a shared row lock.
   */
  PANDO_READ_SHARED = 2,
  /**
   * The newest version, under an exclusive row lock.
   */
  PANDO_READ_EXCLUSIVE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoRead PandoRead;
#else
typedef uint32_t PandoRead;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Severity of a line for the server's error log.
 */
enum PandoLogLevel
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * News.
   */
  PANDO_LOG_LEVEL_NOTE = 0,
  /**
   * Something to look at.
   */
  PANDO_LOG_LEVEL_WARNING = 1,
  /**
   * Data or durability are in danger.
   */
  PANDO_LOG_LEVEL_ERROR = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoLogLevel PandoLogLevel;
#else
typedef uint32_t PandoLogLevel;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How the definition by which a table is to be opened stands to the recorded one.
 */
enum PandoDefinitionState
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It is the recorded one, or as good.
   */
  PANDO_DEFINITION_STATE_CURRENT = 0,
  /**
   * It is the table's, but the record lacks something: [`pando_definition_adopt`] completes it.
   */
  PANDO_DEFINITION_STATE_UNRECORDED = 1,
  /**
   * It is another one; [`pando_definition_image`] has the right one.
   */
  PANDO_DEFINITION_STATE_OUTDATED = 2,
  /**
   * It is another one: rows would be read wrong.
   */
  PANDO_DEFINITION_STATE_INCOMPATIBLE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoDefinitionState PandoDefinitionState;
#else
typedef uint32_t PandoDefinitionState;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whether the entries of an index hold rows.
 */
enum PandoClustering
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * They do not.
   */
  PANDO_CLUSTERING_NONE = 0,
  /**
   * The value of an entry is the row, as in dictionary 0.
   */
  PANDO_CLUSTERING_ROW = 1,
  /**
   * The value of an entry is the row, the size of a tail as a number (seven bits a byte), the tail, and its size once more in
   * two bytes, little-endian. Of entries that have the same key, the tail tells which row it is.
   */
  PANDO_CLUSTERING_TAILED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoClustering PandoClustering;
#else
typedef uint32_t PandoClustering;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What becomes of a row ([`pando_load_admit`]).
 */
typedef enum PandoAdmission {
  /**
   * None of its keys is there; they are noted if that was asked for.
   */
  PANDO_ADMISSION_NEW,
  /**
   * One is there, in the table or the load; nothing is noted.
   */
  PANDO_ADMISSION_SEEN,
  /**
   * There is no memory to tell; nothing is noted.
   */
  PANDO_ADMISSION_FULL,
} PandoAdmission;

/**
 * What is locked.
 */
enum PandoLockKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * One key.
   */
  PANDO_LOCK_KIND_KEY = 0,
  /**
   * A range in which others may not insert.
   */
  PANDO_LOCK_KIND_GAP = 1,
  /**
   * A range that stands for locks on all keys in it.
   */
  PANDO_LOCK_KIND_STRETCH = 2,
  /**
   * The wish to insert a key into gaps of others; only waited for.
   */
  PANDO_LOCK_KIND_INSERT = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoLockKind PandoLockKind;
#else
typedef uint32_t PandoLockKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a thread is for.
 */
enum PandoThreadKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Flushes, compactions, checkpoints.
   */
  PANDO_THREAD_KIND_WORKER = 0,
  /**
   * Looks after the log, tables and memory.
   */
  PANDO_THREAD_KIND_TICKER = 1,
  /**
   * Reads what the cache held, and writes it down.
   */
  PANDO_THREAD_KIND_CACHE_KEEPER = 2,
  /**
   * Bulk loads and index builds.
   */
  PANDO_THREAD_KIND_LOADER = 3,
  /**
   * Helps a statement.
   */
  PANDO_THREAD_KIND_HELPER = 4,
  /**
   * Rewrites what old versions of keys have encrypted.
   */
  PANDO_THREAD_KIND_KEY_ROTATOR = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoThreadKind PandoThreadKind;
#else
typedef uint32_t PandoThreadKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What is asked of a file.
 */
enum PandoFileOperation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * To read bytes.
   */
  PANDO_FILE_OPERATION_READ = 0,
  /**
   * To write bytes.
   */
  PANDO_FILE_OPERATION_WRITE = 1,
  /**
   * To make sure that they stay.
   */
  PANDO_FILE_OPERATION_SYNC = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoFileOperation PandoFileOperation;
#else
typedef uint32_t PandoFileOperation;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What the bytes of a column mean to a query.
 */
enum PandoForm
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * An integer with a sign.
   */
  PANDO_FORM_SIGNED = 0,
  /**
   * An integer without.
   */
  PANDO_FORM_UNSIGNED = 1,
  /**
   * DECIMAL.
   */
  PANDO_FORM_DECIMAL = 2,
  /**
   * At most 15 bytes that memcmp orders.
   */
  PANDO_FORM_ORDERED = 3,
  /**
   * Text in a collation.
   */
  PANDO_FORM_TEXT = 4,
  /**
   * Only whether it is NULL.
   */
  PANDO_FORM_PRESENCE = 5,
  /**
   * YEAR(4).
   */
  PANDO_FORM_YEAR = 6,
  /**
   * Nothing but how many bytes a text has, as an integer without a sign, or of a query here whether it is NULL: known without the
   * value, which may lie apart.
   */
  PANDO_FORM_LENGTH = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoForm PandoForm;
#else
typedef uint32_t PandoForm;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a number is computed.
 */
enum PandoArithmetic
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It is the constant given before.
   */
  PANDO_ARITHMETIC_CONSTANT = 0,
  /**
   * The sum of `first` and `second`.
   */
  PANDO_ARITHMETIC_ADD = 1,
  /**
   * `first` without `second`.
   */
  PANDO_ARITHMETIC_SUBTRACT = 2,
  /**
   * The product of both.
   */
  PANDO_ARITHMETIC_MULTIPLY = 3,
  /**
   * `first` where the last condition is true, else `second`.
   */
  PANDO_ARITHMETIC_IF = 4,
  /**
   * The year of `first`, a DATE.
   */
  PANDO_ARITHMETIC_YEAR = 5,
  /**
   * Its month.
   */
  PANDO_ARITHMETIC_MONTH = 6,
  /**
   * Its day.
   */
  PANDO_ARITHMETIC_DAY = 7,
  /**
   * The year of `first`, a DATETIME with `second` bits behind its seconds.
   */
  PANDO_ARITHMETIC_YEAR_OF_DATE_TIME = 8,
  /**
   * Its month.
   */
  PANDO_ARITHMETIC_MONTH_OF_DATE_TIME = 9,
  /**
   * Its day.
   */
  PANDO_ARITHMETIC_DAY_OF_DATE_TIME = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoArithmetic PandoArithmetic;
#else
typedef uint32_t PandoArithmetic;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a number of the server's can be.
 */
enum PandoBounds
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * 64 bits with a sign.
   */
  PANDO_BOUNDS_SIGNED = 0,
  /**
   * 64 bits without.
   */
  PANDO_BOUNDS_UNSIGNED = 1,
  /**
   * A DECIMAL.
   */
  PANDO_BOUNDS_DECIMAL = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoBounds PandoBounds;
#else
typedef uint32_t PandoBounds;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Operators of conditions.
 */
enum PandoOperator
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The column compared with the last constant.
   */
  PANDO_OPERATOR_EQUAL = 0,
  /**
   * Likewise.
   */
  PANDO_OPERATOR_NOT_EQUAL = 1,
  /**
   * Likewise.
   */
  PANDO_OPERATOR_LESS = 2,
  /**
   * Likewise.
   */
  PANDO_OPERATOR_LESS_OR_EQUAL = 3,
  /**
   * Likewise.
   */
  PANDO_OPERATOR_GREATER = 4,
  /**
   * Likewise.
   */
  PANDO_OPERATOR_GREATER_OR_EQUAL = 5,
  /**
   * The column is one of all constants given since the last condition that took some.
   */
  PANDO_OPERATOR_IN = 6,
  /**
   * The column is NULL.
   */
  PANDO_OPERATOR_IS_NULL = 7,
  /**
   * Of the last `count` conditions.
   */
  PANDO_OPERATOR_AND = 8,
  /**
   * Of the last `count` conditions.
   */
  PANDO_OPERATOR_OR = 9,
  /**
   * Of the last condition.
   */
  PANDO_OPERATOR_NOT = 10,
  /**
   * Always true; of no column.
   */
  PANDO_OPERATOR_TRUE = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoOperator PandoOperator;
#else
typedef uint32_t PandoOperator;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Aggregates.
 */
enum PandoAggregate
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Rows.
   */
  PANDO_AGGREGATE_ROWS = 0,
  /**
   * Rows where the column is not NULL.
   */
  PANDO_AGGREGATE_COUNT = 1,
  /**
   * The sum, and of how many values.
   */
  PANDO_AGGREGATE_SUM = 2,
  /**
   * Smallest value.
   */
  PANDO_AGGREGATE_MIN = 3,
  /**
   * Largest value.
   */
  PANDO_AGGREGATE_MAX = 4,
  /**
   * How many different values.
   */
  PANDO_AGGREGATE_DISTINCT = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoAggregate PandoAggregate;
#else
typedef uint32_t PandoAggregate;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What an insert does about a row that has one of its unique keys.
 */
enum PandoOnDuplicate
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * `Duplicate`; the row is locked, shared.
   */
  PANDO_ON_DUPLICATE_SHARE = 0,
  /**
   * `Duplicate`; the row is locked exclusively, because it will be changed or deleted.
   */
  PANDO_ON_DUPLICATE_LOCK = 1,
  /**
   * Takes its place without looking for it: the caller vouches that there is none, or that it has the same key in every dictionary.
   * Where that cannot do, as `Lock`.
   */
  PANDO_ON_DUPLICATE_OVERWRITE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoOnDuplicate PandoOnDuplicate;
#else
typedef uint32_t PandoOnDuplicate;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What an expression is: see `Expr`.
 */
enum PandoTag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A column: its number, its kind.
   */
  PANDO_TAG_SLOT = 0,
  /**
   * A value, its kind.
   */
  PANDO_TAG_CONSTANT = 1,
  /**
   * An operation on exact numbers, the result's kind, two expressions.
   */
  PANDO_TAG_ARITHMETIC = 2,
  /**
   * Digits behind the point, two expressions.
   */
  PANDO_TAG_DIVIDE = 3,
  /**
   * An operation on DOUBLEs, two expressions.
   */
  PANDO_TAG_REAL = 4,
  /**
   * A comparison, two expressions.
   */
  PANDO_TAG_COMPARE = 5,
  /**
   * A list of conditions.
   */
  PANDO_TAG_AND = 6,
  /**
   * A list of conditions.
   */
  PANDO_TAG_OR = 7,
  /**
   * A condition.
   */
  PANDO_TAG_NOT = 8,
  /**
   * An expression.
   */
  PANDO_TAG_IS_NULL = 9,
  /**
   * A kind, a list of conditions and values, another value.
   */
  PANDO_TAG_CASE = 10,
  /**
   * An expression, a list of values.
   */
  PANDO_TAG_IN = 11,
  /**
   * The number of a test, a text.
   */
  PANDO_TAG_TEST = 12,
  /**
   * The number of a change, a kind, a text.
   */
  PANDO_TAG_CHANGE = 13,
  /**
   * A part of a moment, an expression.
   */
  PANDO_TAG_PART = 14,
  /**
   * A kind, an expression.
   */
  PANDO_TAG_CONVERT = 15,
  /**
   * An aggregate function, a kind, an expression if there is one.
   */
  PANDO_TAG_AGGREGATE = 16,
  /**
   * A kind, a query.
   */
  PANDO_TAG_SCALAR = 17,
  /**
   * A query.
   */
  PANDO_TAG_EXISTS = 18,
  /**
   * A list of expressions, a query.
   */
  PANDO_TAG_IN_QUERY = 19,
  /**
   * The number of an expression of the server's, a kind, what it may say, the first such number, a list of expressions.
   */
  PANDO_TAG_SERVER = 20,
  /**
   * A list of expressions.
   */
  PANDO_TAG_ROW = 21,
  /**
   * A window function.
   */
  PANDO_TAG_WINDOW = 22,
  /**
   * A condition, an expression.
   */
  PANDO_TAG_SURE = 23,
  /**
   * An expression, and its values at both ends.
   */
  PANDO_TAG_NEAR = 24,
  /**
   * Digits behind the point, digits before it, whether it must be the same, a DOUBLE.
   */
  PANDO_TAG_KEPT = 25,
  /**
   * The number of a floor, a moment.
   */
  PANDO_TAG_FLOOR = 26,
  /**
   * The number of a measure, a text.
   */
  PANDO_TAG_MEASURE = 27,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoTag PandoTag;
#else
typedef uint8_t PandoTag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What values are: see `Kind`.
 */
enum PandoKindTag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * An integer with a sign.
   */
  PANDO_KIND_TAG_SIGNED = 0,
  /**
   * An integer without.
   */
  PANDO_KIND_TAG_UNSIGNED = 1,
  /**
   * A DECIMAL.
   */
  PANDO_KIND_TAG_DECIMAL = 2,
  /**
   * A DOUBLE.
   */
  PANDO_KIND_TAG_REAL = 3,
  /**
   * A DATE.
   */
  PANDO_KIND_TAG_DATE = 4,
  /**
   * A DATETIME.
   */
  PANDO_KIND_TAG_DATE_TIME = 5,
  /**
   * A TIME.
   */
  PANDO_KIND_TAG_TIME = 6,
  /**
   * A text.
   */
  PANDO_KIND_TAG_TEXT = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoKindTag PandoKindTag;
#else
typedef uint8_t PandoKindTag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a constant is written.
 */
enum PandoValueTag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Nothing follows.
   */
  PANDO_VALUE_TAG_NULL = 0,
  /**
   * A number without its point, of 16 bytes.
   */
  PANDO_VALUE_TAG_NUMBER = 1,
  /**
   * A DOUBLE, of 8 bytes.
   */
  PANDO_VALUE_TAG_REAL = 2,
  /**
   * How many bytes, and these.
   */
  PANDO_VALUE_TAG_TEXT = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoValueTag PandoValueTag;
#else
typedef uint8_t PandoValueTag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How two numbers become one.
 */
enum PandoOperation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Their sum.
   */
  PANDO_OPERATION_ADD = 0,
  /**
   * The first without the second.
   */
  PANDO_OPERATION_SUBTRACT = 1,
  /**
   * Their product.
   */
  PANDO_OPERATION_MULTIPLY = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoOperation PandoOperation;
#else
typedef uint8_t PandoOperation;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How values compare.
 */
enum PandoComparison
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * `=`
   */
  PANDO_COMPARISON_EQUAL = 0,
  /**
   * `<>`
   */
  PANDO_COMPARISON_NOT_EQUAL = 1,
  /**
   * `<`
   */
  PANDO_COMPARISON_LESS = 2,
  /**
   * `<=`
   */
  PANDO_COMPARISON_LESS_OR_EQUAL = 3,
  /**
   * `>`
   */
  PANDO_COMPARISON_GREATER = 4,
  /**
   * `>=`
   */
  PANDO_COMPARISON_GREATER_OR_EQUAL = 5,
  /**
   * `<=>`
   */
  PANDO_COMPARISON_SAME = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoComparison PandoComparison;
#else
typedef uint8_t PandoComparison;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A part of a moment.
 */
enum PandoMomentPart
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The year.
   */
  PANDO_MOMENT_PART_YEAR = 0,
  /**
   * The month.
   */
  PANDO_MOMENT_PART_MONTH = 1,
  /**
   * The day of the month.
   */
  PANDO_MOMENT_PART_DAY = 2,
  /**
   * The quarter of the year.
   */
  PANDO_MOMENT_PART_QUARTER = 3,
  /**
   * The year and the month: 202401.
   */
  PANDO_MOMENT_PART_YEAR_MONTH = 4,
  /**
   * The hour.
   */
  PANDO_MOMENT_PART_HOUR = 5,
  /**
   * The minute.
   */
  PANDO_MOMENT_PART_MINUTE = 6,
  /**
   * The second.
   */
  PANDO_MOMENT_PART_SECOND = 7,
  /**
   * The DATE.
   */
  PANDO_MOMENT_PART_DATE = 8,
  /**
   * Whether the calendar has it: 1, or 0 (of 2024-00-00, 2024-02-31, and of no year, no month and no day).
   */
  PANDO_MOMENT_PART_REGULAR = 9,
  /**
   * Seconds since the year 0; NULL of a moment whose month or day is 0.
   */
  PANDO_MOMENT_PART_SECONDS = 10,
  /**
   * Microseconds since the year 0; NULL likewise.
   */
  PANDO_MOMENT_PART_MICROSECONDS = 11,
  /**
   * Whether its month has its day: 1, or 0 of 2024-02-31. What has no year, month or day (2024-00-31) has it.
   */
  PANDO_MOMENT_PART_POSSIBLE = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoMomentPart PandoMomentPart;
#else
typedef uint8_t PandoMomentPart;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What is told of the rows of a group.
 */
enum PandoFunction
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * How many rows.
   */
  PANDO_FUNCTION_ROWS = 0,
  /**
   * How many values.
   */
  PANDO_FUNCTION_COUNT = 1,
  /**
   * Their sum.
   */
  PANDO_FUNCTION_SUM = 2,
  /**
   * The least.
   */
  PANDO_FUNCTION_MIN = 3,
  /**
   * The largest.
   */
  PANDO_FUNCTION_MAX = 4,
  /**
   * How many different ones.
   */
  PANDO_FUNCTION_COUNT_DISTINCT = 5,
  /**
   * The sum of the different ones.
   */
  PANDO_FUNCTION_SUM_DISTINCT = 6,
  /**
   * The mean of DOUBLEs.
   */
  PANDO_FUNCTION_MEAN = 7,
  /**
   * The variance of all.
   */
  PANDO_FUNCTION_VARIANCE = 8,
  /**
   * That of a sample.
   */
  PANDO_FUNCTION_VARIANCE_OF_SAMPLE = 9,
  /**
   * The standard deviation of all.
   */
  PANDO_FUNCTION_DEVIATION = 10,
  /**
   * That of a sample.
   */
  PANDO_FUNCTION_DEVIATION_OF_SAMPLE = 11,
  /**
   * The bits that all have.
   */
  PANDO_FUNCTION_BIT_AND = 12,
  /**
   * The bits that one has.
   */
  PANDO_FUNCTION_BIT_OR = 13,
  /**
   * The bits that an odd number of them have.
   */
  PANDO_FUNCTION_BIT_XOR = 14,
  /**
   * One after the other, as text: see `concat.rs`.
   */
  PANDO_FUNCTION_CONCAT = 15,
  /**
   * How far the sum of DOUBLEs may lie from the sum in another order: see `rounding.rs`.
   */
  PANDO_FUNCTION_ERROR_OF_SUM = 16,
  /**
   * The same of their mean.
   */
  PANDO_FUNCTION_ERROR_OF_MEAN = 17,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoFunction PandoFunction;
#else
typedef uint8_t PandoFunction;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What is told of the rows around each row.
 */
enum PandoWindow
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Its number in the partition.
   */
  PANDO_WINDOW_ROW_NUMBER = 0,
  /**
   * How many rows come before it and its peers, and one.
   */
  PANDO_WINDOW_RANK = 1,
  /**
   * The number of its peers among the peers of the partition.
   */
  PANDO_WINDOW_DENSE_RANK = 2,
  /**
   * The number of its part, of so many parts that are as large as each other.
   */
  PANDO_WINDOW_TILE = 3,
  /**
   * How many of the other rows come before it and its peers.
   */
  PANDO_WINDOW_PERCENT_RANK = 4,
  /**
   * How many of the rows are not behind it.
   */
  PANDO_WINDOW_DISTRIBUTION = 5,
  /**
   * The value so many rows before.
   */
  PANDO_WINDOW_LAG = 6,
  /**
   * The value so many rows behind.
   */
  PANDO_WINDOW_LEAD = 7,
  /**
   * The first value of the frame.
   */
  PANDO_WINDOW_FIRST = 8,
  /**
   * The last one.
   */
  PANDO_WINDOW_LAST = 9,
  /**
   * The one with this number.
   */
  PANDO_WINDOW_NTH = 10,
  /**
   * How many rows the frame has.
   */
  PANDO_WINDOW_ROWS = 11,
  /**
   * How many values.
   */
  PANDO_WINDOW_COUNT = 12,
  /**
   * Their sum.
   */
  PANDO_WINDOW_SUM = 13,
  /**
   * The least.
   */
  PANDO_WINDOW_MIN = 14,
  /**
   * The largest.
   */
  PANDO_WINDOW_MAX = 15,
  /**
   * The mean of DOUBLEs.
   */
  PANDO_WINDOW_MEAN = 16,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoWindow PandoWindow;
#else
typedef uint8_t PandoWindow;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where a window's frame begins or ends: see `Bound`.
 */
enum PandoBoundTag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * With the partition.
   */
  PANDO_BOUND_TAG_UNBOUNDED = 0,
  /**
   * At the row, or its peers.
   */
  PANDO_BOUND_TAG_CURRENT = 1,
  /**
   * A number before.
   */
  PANDO_BOUND_TAG_PRECEDING = 2,
  /**
   * A number behind.
   */
  PANDO_BOUND_TAG_FOLLOWING = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoBoundTag PandoBoundTag;
#else
typedef uint8_t PandoBoundTag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a part of FROM is: see `Source`.
 */
enum PandoSourceTag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A table.
   */
  PANDO_SOURCE_TAG_TABLE = 0,
  /**
   * A query.
   */
  PANDO_SOURCE_TAG_QUERY = 1,
  /**
   * Some, joined.
   */
  PANDO_SOURCE_TAG_NEST = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoSourceTag PandoSourceTag;
#else
typedef uint8_t PandoSourceTag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How rows of a query are taken together with those before it.
 */
enum PandoSetOperation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * All of both.
   */
  PANDO_SET_OPERATION_UNION = 0,
  /**
   * Those before it that it has not.
   */
  PANDO_SET_OPERATION_EXCEPT = 1,
  /**
   * Those before it that it has.
   */
  PANDO_SET_OPERATION_INTERSECT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoSetOperation PandoSetOperation;
#else
typedef uint8_t PandoSetOperation;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What the server's code may say of some rows of an expression, and not of others: where the plan decides of which rows it is computed.
 */
enum PandoSaying
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint8_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Nothing that the plan decides.
   */
  PANDO_SAYING_NOTHING = 0,
  /**
   * Warnings.
   */
  PANDO_SAYING_WARNINGS = 1,
  /**
   * Also errors, which end a query of the server's.
   */
  PANDO_SAYING_ERRORS = 2,
  /**
   * Warnings, of parts that can be asked of all rows instead (a text that becomes a number).
   */
  PANDO_SAYING_OF_PARTS = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum PandoSaying PandoSaying;
#else
typedef uint8_t PandoSaying;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A query and its answer.
 */
typedef struct PandoAnalytic PandoAnalytic;

/**
 * A growing byte buffer. What it held is gone with the next call that fills it.
 */
typedef struct PandoBuffer PandoBuffer;

/**
 * Indexes that are being built.
 */
typedef struct PandoBuild PandoBuild;

/**
 * A cursor over one dictionary of a table.
 */
typedef struct PandoCursor PandoCursor;

/**
 * An open database.
 */
typedef struct PandoDb PandoDb;

/**
 * The last deadlock.
 */
typedef struct PandoDeadlock PandoDeadlock;

/**
 * Where an encoder puts the entries of a batch.
 */
typedef struct PandoEntries PandoEntries;

/**
 * A condition on the rows of a table.
 */
typedef struct PandoFilter PandoFilter;

/**
 * A load under way; it belongs to the transaction it was begun with.
 */
typedef struct PandoLoad PandoLoad;

/**
 * What rows take that may become a load's; counted until it is freed.
 */
typedef struct PandoLoadHold PandoLoadHold;

/**
 * The transactions and locks of one moment, more or less: parts are looked at one after the other.
 */
typedef struct PandoLockReport PandoLockReport;

/**
 * A query.
 */
typedef struct PandoQuery PandoQuery;

/**
 * An open table.
 */
typedef struct PandoTable PandoTable;

/**
 * A transaction of one connection; after commit or rollback it serves the next.
 */
typedef struct PandoTxn PandoTxn;

/**
 * Blocks that a thread has asked for since it began. They only grow: a call's are the difference.
 */
typedef struct PandoAccesses {
  /**
   * Blocks looked up in the cache.
   */
  uint64_t blocks;
  /**
   * Reads of a file, each for a block that was not there.
   */
  uint64_t reads;
  /**
   * Blocks that these reads brought beside it.
   */
  uint64_t blocks_ahead;
  /**
   * Time in these reads, in microseconds.
   */
  uint64_t read_time;
} PandoAccesses;

/**
 * A byte string that belongs to someone else. `data` may be null where a function says what that
 * means; otherwise null is the empty string.
 */
typedef struct PandoBytes {
  /**
   * First byte.
   */
  const uint8_t *data;
  /**
   * Number of bytes.
   */
  uint64_t len;
} PandoBytes;

/**
 * A column that a table is to have.
 */
typedef struct PandoNewColumn {
  /**
   * For people.
   */
  struct PandoBytes name;
  /**
   * What the bytes are.
   */
  PandoColumnKind kind;
  /**
   * Bytes of a value.
   */
  uint32_t size;
  /**
   * 1: NULL is possible.
   */
  uint8_t nullable;
  /**
   * 1: strings are equal only if their bytes are.
   */
  uint8_t binary;
  /**
   * Its position in the current layout; negative: it is new.
   */
  int32_t source;
  /**
   * Of a new column: what all rows that there are have. A null pointer is NULL.
   */
  struct PandoBytes value;
} PandoNewColumn;

/**
 * A name that an index has, or is to have.
 */
typedef struct PandoIndexName {
  /**
   * The position of its dictionary.
   */
  uint32_t dictionary;
  /**
   * The name.
   */
  struct PandoBytes name;
} PandoIndexName;

/**
 * An index of a new definition.
 */
typedef struct PandoIndexPlace {
  /**
   * Its name.
   */
  struct PandoBytes name;
  /**
   * 1: one of those that are being built; 0: one that the table has.
   */
  uint8_t is_new;
  /**
   * Its number among those, or the position of its dictionary in the table as it is.
   */
  uint32_t position;
} PandoIndexPlace;

/**
 * A definition of a table.
 */
typedef struct PandoDefinition {
  /**
   * The server's id.
   */
  struct PandoBytes id;
  /**
   * A text that differs wherever columns or keys differ.
   */
  struct PandoBytes shape;
  /**
   * A text that differs wherever other rows belong into the partition; empty: it is none, or that is not known.
   */
  struct PandoBytes partition;
  /**
   * The server's file; empty where there is none for this very table.
   */
  struct PandoBytes image;
} PandoDefinition;

/**
 * A constraint.
 */
typedef struct PandoForeignKey {
  /**
   * Its name.
   */
  struct PandoBytes name;
  /**
   * Path of the child; where a constraint is given, it is the table that has it.
   */
  struct PandoBytes child;
  /**
   * Path of the parent.
   */
  struct PandoBytes parent;
  /**
   * The child's columns.
   */
  const struct PandoBytes *columns;
  /**
   * The parent's columns, as many.
   */
  const struct PandoBytes *parent_columns;
  /**
   * How many.
   */
  uint32_t column_count;
  /**
   * When the parent goes.
   */
  PandoReferentialAction on_delete;
  /**
   * When the parent's key changes.
   */
  PandoReferentialAction on_update;
} PandoForeignKey;

/**
 * What becomes of a table.
 */
typedef struct PandoTableChange {
  /**
   * `./database/table`.
   */
  struct PandoBytes path;
  /**
   * All columns that rows consist of from now on; a null pointer: as they are.
   */
  const struct PandoNewColumn *columns;
  /**
   * How many.
   */
  uint32_t column_count;
  /**
   * New names of indexes.
   */
  const struct PandoIndexName *index_names;
  /**
   * How many.
   */
  uint32_t index_name_count;
  /**
   * 1: `places` are all indexes from now on, those left out are dropped; `index_names` do not count.
   */
  uint8_t sets_indexes;
  /**
   * In the order of the definition.
   */
  const struct PandoIndexPlace *places;
  /**
   * How many.
   */
  uint32_t place_count;
  /**
   * Where the new ones among them come from, or null. After success it is finished; after an error it is as
   * it was, see [`crate::pando_build_duplicate`].
   */
  struct PandoBuild *build;
  /**
   * 1: `compression` and `compression_level` count from now on.
   */
  uint8_t sets_compression;
  /**
   * Compression.
   */
  PandoCompression compression;
  /**
   * Level for zstd.
   */
  int32_t compression_level;
  /**
   * 1: `auto_increment` is the next value.
   */
  uint8_t sets_auto_increment;
  /**
   * Also smaller than what it is.
   */
  uint64_t auto_increment;
  /**
   * What the server says of the new definition.
   */
  struct PandoDefinition definition;
  /**
   * 1: `foreign_keys` are all constraints in which the table is the child from now on.
   */
  uint8_t sets_foreign_keys;
  /**
   * The constraints.
   */
  const struct PandoForeignKey *foreign_keys;
  /**
   * How many.
   */
  uint32_t foreign_key_count;
  /**
   * Old and new names of columns, two for each.
   */
  const struct PandoBytes *renamed_columns;
  /**
   * How many names.
   */
  uint32_t renamed_column_count;
} PandoTableChange;

/**
 * Both files of a partitioned table.
 */
typedef struct PandoServerFiles {
  /**
   * `./database/table`; empty: there are none.
   */
  struct PandoBytes path;
  /**
   * The server's id of the definition.
   */
  struct PandoBytes id;
  /**
   * The bytes of `NAME.frm`.
   */
  struct PandoBytes definition;
  /**
   * The bytes of `NAME.par`.
   */
  struct PandoBytes partitions;
} PandoServerFiles;

/**
 * Writes something made of a text into `to`, if it has room for it; says how many bytes that takes. `u64::MAX`: it is NULL.
 * Called on several threads at once.
 */
typedef uint64_t (*PandoChangeText)(const void *context, struct PandoBytes text, uint8_t *to, uint64_t room);

/**
 * Whether a text passes a test. Called on several threads at once.
 */
typedef uint8_t (*PandoTestText)(const void *context, struct PandoBytes text);

/**
 * An earlier moment that stands for one, both as a column of DATETIME or TIMESTAMP has them. Called on several threads at once.
 */
typedef int64_t (*PandoFloorOfMoment)(const void *context, int64_t moment);

/**
 * A number of a text. Called on several threads at once.
 */
typedef int64_t (*PandoMeasureText)(const void *context, struct PandoBytes text);

/**
 * A column of some rows. One of the lists is there, with an entry for each row; those of NULLs mean nothing.
 */
typedef struct PandoServerColumn {
  /**
   * Numbers without their points.
   */
  const int64_t *small;
  /**
   * Two for each number: the lower half, and the upper one.
   */
  const uint64_t *large;
  /**
   * DOUBLEs.
   */
  const double *real;
  /**
   * Texts.
   */
  const struct PandoBytes *texts;
  /**
   * Not 0: NULL. Null: none is.
   */
  const uint8_t *nulls;
} PandoServerColumn;

/**
 * Computes the values of an expression, by number, of so many rows of its columns. The result has to stay until the next call.
 * It is called in the thread that runs the query, and in no other.
 */
typedef PandoServerOutcome (*PandoServerValues)(const void *context,
                                                uint32_t number,
                                                PandoHearing hearing,
                                                const struct PandoServerColumn *columns,
                                                size_t count,
                                                uint64_t rows,
                                                struct PandoServerColumn *result);

/**
 * What the server's code does with texts and moments; the lists are read when the query is made, what they point to lives as long as it.
 */
typedef struct PandoAnalyticTexts {
  /**
   * Gives the bytes that order a text in a collation.
   */
  PandoChangeText key;
  /**
   * The collations.
   */
  const void *const *collations;
  /**
   * How each of them orders texts.
   */
  const PandoTextOrder *collation_orders;
  /**
   * How many.
   */
  size_t collation_count;
  /**
   * Tests a text.
   */
  PandoTestText test;
  /**
   * The tests.
   */
  const void *const *tests;
  /**
   * How many.
   */
  size_t test_count;
  /**
   * Changes a text.
   */
  PandoChangeText change;
  /**
   * The changes.
   */
  const void *const *changes;
  /**
   * How many.
   */
  size_t change_count;
  /**
   * Says which moment stands for one.
   */
  PandoFloorOfMoment floor;
  /**
   * In which ways.
   */
  const void *const *floors;
  /**
   * How many.
   */
  size_t floor_count;
  /**
   * Measures a text.
   */
  PandoMeasureText measure;
  /**
   * The measures.
   */
  const void *const *measures;
  /**
   * How many.
   */
  size_t measure_count;
  /**
   * Computes expressions that the engine has no form for.
   */
  PandoServerValues server;
  /**
   * What it is given.
   */
  const void *server_context;
} PandoAnalyticTexts;

/**
 * Whether the query is not wanted any more. Called on several threads at once.
 */
typedef uint8_t (*PandoIsStopped)(const void *context);

/**
 * An operator of the plan by which a query was answered.
 */
typedef struct PandoAnalyticOperator {
  /**
   * The operator that its rows go to; -1: it is the last one.
   */
  int32_t parent;
  /**
   * Of a scan: which of the tables that the query was given; else -1.
   */
  int32_t table;
  /**
   * What it does.
   */
  struct PandoBytes name;
  /**
   * Its condition, or what it makes groups of, or sorts by. A byte 1 or 2, digits and a byte 3 are a column, or an expression
   * of the server's, by number.
   */
  struct PandoBytes what;
  /**
   * Rows that it was thought to give.
   */
  uint64_t estimated;
  /**
   * Rows that it gave.
   */
  uint64_t rows;
  /**
   * Microseconds that it took to get the rows that it holds; 0: it holds none.
   */
  uint64_t held_us;
} PandoAnalyticOperator;

/**
 * A value of an answer.
 */
typedef struct PandoAnalyticCell {
  /**
   * What it is.
   */
  PandoAnalyticForm form;
  /**
   * Digits behind the point of a number.
   */
  uint32_t scale;
  /**
   * Lower half of a number.
   */
  uint64_t low;
  /**
   * Upper half.
   */
  int64_t high;
  /**
   * A DOUBLE.
   */
  double real;
  /**
   * A text, which lives until another row is made ready.
   */
  struct PandoBytes text;
} PandoAnalyticCell;

/**
 * What a fetch is asked for.
 */
typedef struct PandoFetch {
  /**
   * Where to begin.
   */
  PandoMove start;
  /**
   * What is seen. Locking reads of other dictionaries than 0 lock gaps only; the rows are the caller's
   * to lock.
   */
  PandoRead read;
  /**
   * How long locks are waited for (`PANDO_WAIT_*`).
   */
  int64_t wait_s;
  /**
   * The key of `AtOrAfter` and `Before`.
   */
  struct PandoBytes key;
  /**
   * Going up, the first key that is not wanted; going down, the last that is. Null: no bound.
   */
  struct PandoBytes stop;
  /**
   * Most rows.
   */
  uint32_t rows_max;
  /**
   * The fetch ends with the row that passes this size.
   */
  uint32_t bytes_max;
  /**
   * 1: a locking fetch may lock rows before it comes to them, as many as it has met, for scans that will probably come to
   * all of them. It gives those that are locked already, at least one.
   */
  uint8_t is_ahead;
  /**
   * 1: who fetches keeps the locks of all rows that it is given, because it has no other condition on them than `condition`.
   * Then rows may be locked ahead also where gaps stay free, if there is no place for another key between them.
   */
  uint8_t keeps_rows;
  /**
   * Null, or a condition on the rows of dictionary 0, for locking fetches with `is_ahead`: those for which it is not true
   * need not be given.
   */
  const struct PandoFilter *condition;
  /**
   * Null, or a condition on the rows of dictionary 0: those for which it is not true need not be given, nor columns
   * that the filter does not say are needed. For snapshot reads that begin at `First` or `AtOrAfter`, and their
   * `Next`, which have to give it again. A fetch that has looked at many rows in vain ends without rows before the
   * cursor has `ended`.
   */
  const struct PandoFilter *filter;
} PandoFetch;

/**
 * Rows of one fetch, in `rows` one after the other, each as
 *
 * ```text
 * key length u32 | value length u32 | key | value        (lengths in native byte order)
 * ```
 *
 * valid until the next fetch of the same cursor.
 */
typedef struct PandoBatch {
  /**
   * The rows.
   */
  struct PandoBytes rows;
  /**
   * How many.
   */
  uint32_t count;
  /**
   * 1 when the cursor has nothing after them in this direction (or before the stop key).
   */
  uint8_t ended;
  /**
   * 1 when the lock of the last row was not held before this fetch.
   */
  uint8_t just_locked;
  /**
   * 1 when the last row is locked by another, and given as it was last committed (`PANDO_WAIT_PEEK`).
   */
  uint8_t is_peek;
} PandoBatch;

/**
 * Takes a line for the server's error log; called from any thread.
 */
typedef void (*PandoLog)(PandoLogLevel level, const char *line);

/**
 * Is told that `waiter` waits until all of `count` transactions from `blockers` on are out of its way: called by
 * the waiter's thread before it sleeps; those named may have ended meanwhile.
 */
typedef void (*PandoWaits)(uint64_t waiter, const uint64_t *blockers, uint32_t count);

/**
 * Says which of two transactions that are members of a deadlock should rather be its victim: below 0 the
 * first, above 0 the second, 0 whichever loses less. It must not call the engine.
 */
typedef int32_t (*PandoVictim)(uint64_t first, uint64_t second);

/**
 * Gives the newest version of a key, 0 if there is no such key. Called from any thread.
 */
typedef uint32_t (*PandoKeyVersion)(uint32_t key_id);

/**
 * Writes a version of a key to `buffer`, which has room for `room` bytes, and gives its length; 0 if there is no such version, or no
 * room. Called from any thread.
 */
typedef uint32_t (*PandoKey)(uint32_t key_id, uint32_t version, uint8_t *buffer, uint32_t room);

/**
 * What a database is opened with.
 */
typedef struct PandoOptions {
  /**
   * Directory below which relative table paths lie.
   */
  struct PandoBytes base_dir;
  /**
   * Directory of the log and the catalog.
   */
  struct PandoBytes engine_dir;
  /**
   * Limit of all memory of the engine.
   */
  uint64_t memory_bytes;
  /**
   * Limit of the block cache, which has less while the rest takes more of `memory_bytes`.
   */
  uint64_t cache_bytes;
  /**
   * 1: write down now and then, and at the end, what the cache holds.
   */
  uint8_t cache_kept;
  /**
   * 1: read it again after the start, in the background.
   */
  uint8_t cache_load;
  /**
   * Memory of a transaction's uncommitted writes, beyond which they go into the tables' files.
   */
  uint64_t write_set_bytes;
  /**
   * Memory that all bulk loads together may take.
   */
  uint64_t load_memory_bytes;
  /**
   * 0, 1 or 2 as `pando_flush_log_at_trx_commit`.
   */
  uint32_t flush_mode;
  /**
   * Threads for flushes, compactions and checkpoints.
   */
  uint32_t background_threads;
  /**
   * Threads for bulk loads and index builds; 0: one for each processor.
   */
  uint32_t load_threads;
  /**
   * Age at which a changed dictionary is checkpointed.
   */
  uint64_t checkpoint_period_s;
  /**
   * How long row locks are waited for.
   */
  uint64_t lock_wait_s;
  /**
   * Size of a log file.
   */
  uint64_t log_file_bytes;
  /**
   * File descriptors that tables' files may hold together; 0: a part of what the process may open.
   */
  uint64_t descriptors;
  /**
   * 1: bypass the operating system's page cache.
   */
  uint8_t direct_io;
  /**
   * Where lines for the operator go.
   */
  PandoLog log;
  /**
   * Who is told of waits for row locks.
   */
  PandoWaits waits;
  /**
   * Who is asked for the victims of deadlocks.
   */
  PandoVictim victim;
  /**
   * Who is asked for the newest version of an encryption key.
   */
  PandoKeyVersion key_version;
  /**
   * Who is asked for a version of an encryption key.
   */
  PandoKey key;
  /**
   * 1: encrypt all of the log, not only what belongs to encrypted tables.
   */
  uint8_t encrypt_log;
  /**
   * 1: start where the log is damaged, up to its first damage, and write nothing.
   */
  uint8_t despite_damage;
} PandoOptions;

/**
 * Takes the name of a prepared transaction; called on the caller's thread.
 */
typedef void (*PandoXidSink)(void *context, struct PandoBytes xid);

/**
 * A dictionary of a table. Its pointers are valid for the call of the visitor.
 */
typedef struct PandoDictionaryRow {
  /**
   * `database/table`.
   */
  struct PandoBytes table;
  /**
   * "main" for the rows, or the index's name.
   */
  struct PandoBytes name;
  /**
   * Its file.
   */
  struct PandoBytes file;
  /**
   * Its id.
   */
  uint64_t id;
  /**
   * 1: an index whose entries hold the rows.
   */
  uint8_t is_clustering;
  /**
   * 1: it is open, and the figures count.
   */
  uint8_t is_open;
  /**
   * Records, about.
   */
  uint64_t records;
  /**
   * Tombstones among what is stored.
   */
  uint64_t tombstones;
  /**
   * Bytes of all records before compression.
   */
  uint64_t raw_bytes;
  /**
   * Of these, in buffers of nodes.
   */
  uint64_t buffered_bytes;
  /**
   * Levels of nodes.
   */
  uint64_t height;
  /**
   * Nodes.
   */
  uint64_t nodes;
  /**
   * Leaves.
   */
  uint64_t leaves;
  /**
   * Runs.
   */
  uint64_t runs;
  /**
   * Bytes of its file in use.
   */
  uint64_t used_bytes;
  /**
   * Bytes of its file that are free.
   */
  uint64_t free_bytes;
  /**
   * Bytes that the file takes on disk.
   */
  uint64_t file_bytes;
} PandoDictionaryRow;

/**
 * Which versions of its key a file of an encrypted table has. Its pointers are valid for the call of the visitor.
 */
typedef struct PandoKeyUse {
  /**
   * `database/table`.
   */
  struct PandoBytes table;
  /**
   * "main" for the rows, or the index's name.
   */
  struct PandoBytes name;
  /**
   * Its file.
   */
  struct PandoBytes file;
  /**
   * Its dictionary's id.
   */
  uint64_t id;
  /**
   * Number of the key.
   */
  uint32_t key_id;
  /**
   * The newest version of it; 0: it cannot be had.
   */
  uint32_t newest;
  /**
   * The oldest version of a block; 0: nobody has looked yet.
   */
  uint32_t oldest;
  /**
   * While it is rewritten: the part that is done; otherwise less than 0.
   */
  double part;
} PandoKeyUse;

/**
 * An index to be added.
 */
typedef struct PandoNewIndex {
  /**
   * Its name.
   */
  struct PandoBytes name;
  /**
   * How its entries are made of rows: given to those who open the table meanwhile.
   */
  struct PandoBytes recipe;
  /**
   * 1: entries that say so must be alone with their key.
   */
  uint8_t unique;
  /**
   * Whether its entries hold rows.
   */
  PandoClustering clustering;
} PandoNewIndex;

/**
 * Is called now and then, in the thread of the call, with the part that is done, 0 to 1. 0: give up (`Killed`);
 * anything else: go on. Null: nobody watches.
 */
typedef uint8_t (*PandoWatch)(void *watched, double done);

/**
 * Functions of the server that know its rows. `encode` and `free_batch` are called on any thread, several at
 * once, each batch once by either of them.
 */
typedef struct PandoEncoder {
  /**
   * Handed to the functions; freed when the load and its last batch are gone.
   */
  void *context;
  /**
   * Adds the entries of all rows of a batch ([`pando_entries_add`]) and frees it. 0, or an error's number.
   */
  int32_t (*encode)(void*, void*, struct PandoEntries*);
  /**
   * Frees a batch.
   */
  void (*free_batch)(void*, void*);
  /**
   * Frees the context.
   */
  void (*free_context)(void*);
} PandoEncoder;

/**
 * A key of a row that must be alone in its dictionary.
 */
typedef struct PandoLoneKey {
  /**
   * The dictionary.
   */
  uint32_t dictionary;
  /**
   * The key.
   */
  struct PandoBytes key;
} PandoLoneKey;

/**
 * A transaction that has taken a lock or a snapshot.
 */
typedef struct PandoTxnRow {
  /**
   * Its id, as of `pando_txn_id`.
   */
  uint64_t id;
  /**
   * Microseconds since its first lock or snapshot.
   */
  uint64_t age_us;
  /**
   * Microseconds since it began to wait for a lock; -1 if it does not wait.
   */
  int64_t waiting_us;
  /**
   * Locks on single keys that it holds.
   */
  uint64_t key_locks;
  /**
   * Ranges that it holds.
   */
  uint64_t range_locks;
  /**
   * Writes it has done.
   */
  uint64_t writes;
  /**
   * Bytes of keys and values that it has written.
   */
  uint64_t write_bytes;
} PandoTxnRow;

/**
 * A lock held or waited for. Its pointers are valid as long as the report.
 */
typedef struct PandoLockRow {
  /**
   * Who holds or waits.
   */
  uint64_t txn;
  /**
   * `database/table`; empty if the table is not open any more.
   */
  struct PandoBytes table;
  /**
   * Position among the table's dictionaries: 0 is the rows.
   */
  uint32_t index;
  /**
   * What is locked.
   */
  PandoLockKind kind;
  /**
   * The key, or the first key of the range.
   */
  struct PandoBytes from;
  /**
   * The first key after the range. Null: it has no end, or is a key.
   */
  struct PandoBytes to;
  /**
   * 1: exclusive.
   */
  uint8_t exclusive;
  /**
   * 1: waited for.
   */
  uint8_t waiting;
  /**
   * Number of transactions in its way, if it waits.
   */
  uint32_t blocker_count;
  /**
   * Their ids.
   */
  const uint64_t *blockers;
} PandoLockRow;

/**
 * One wait that was part of a deadlock: each member waited for the next, the last for the first.
 */
typedef struct PandoDeadlockRow {
  /**
   * What was waited for; its only blocker is the next member. Its pointers are valid as long as the report.
   */
  struct PandoLockRow lock;
  /**
   * Writes that would have been lost with the waiter.
   */
  uint64_t weight;
  /**
   * 1: the waiter held the lock shared already.
   */
  uint8_t upgrade;
  /**
   * How the next member held the lock: 0 shared, 1 exclusive, 2: it stood before the waiter in the queue.
   */
  uint8_t held;
  /**
   * 1: this one was the victim.
   */
  uint8_t victim;
} PandoDeadlockRow;

/**
 * Memory for the observer during an operation.
 */
typedef struct PandoFileState {
  /**
   * The observer's.
   */
  uint64_t words[16];
} PandoFileState;

/**
 * The server's functions. They return soon and ask nothing of the engine; any thread may call them.
 */
typedef struct PandoObserver {
  /**
   * This thread begins.
   */
  void (*thread_begins)(PandoThreadKind kind);
  /**
   * It ends.
   */
  void (*thread_ends)(void);
  /**
   * A file has been opened. What it is to the observer; 0: it does not look at it.
   */
  uint64_t (*file_opened)(struct PandoBytes path);
  /**
   * It is closed.
   */
  void (*file_closed)(uint64_t file);
  /**
   * There is no file of this name any more.
   */
  void (*file_gone)(struct PandoBytes path);
  /**
   * An operation begins. 0: it is not looked at, and its end is not to be told.
   */
  uint8_t (*file_begins)(uint64_t file,
                         PandoFileOperation operation,
                         uint64_t bytes,
                         struct PandoFileState *state);
  /**
   * It ends.
   */
  void (*file_ends)(struct PandoFileState *state, uint64_t bytes);
  /**
   * Bytes in use now, for each use.
   */
  void (*memory)(const uint64_t *uses);
} PandoObserver;

/**
 * The order of two texts in a collation, as `memcmp` tells it. Called on several threads at once.
 */
typedef int32_t (*PandoCompareTexts)(const void *collation, struct PandoBytes first, struct PandoBytes second);

/**
 * A column that a query wants.
 */
typedef struct PandoQueryColumn {
  /**
   * Which of the query's tables has it.
   */
  uint32_t table;
  /**
   * What its bytes mean.
   */
  PandoForm form;
  /**
   * Its position in the table's current layout; negative: it is in the key.
   */
  int32_t position;
  /**
   * Where in the key.
   */
  uint32_t key_offset;
  /**
   * Bytes in the key.
   */
  uint32_t key_size;
  /**
   * 1: the key descends.
   */
  uint8_t key_reversed;
  /**
   * The way through the key, where that is needed: see crates/column/src/key_path.rs. Null: it is not.
   */
  struct PandoBytes key_path;
  /**
   * Digits of a DECIMAL.
   */
  uint32_t precision;
  /**
   * Those behind its point.
   */
  uint32_t scale;
  /**
   * What `PandoCompareTexts` gets for this column's texts.
   */
  const void *collation;
} PandoQueryColumn;

/**
 * A number that is computed. Columns are named by their numbers, and so are expressions.
 */
typedef struct PandoExpression {
  /**
   * How.
   */
  PandoArithmetic arithmetic;
  /**
   * What it can be.
   */
  PandoBounds bounds;
  /**
   * Digits behind its point.
   */
  uint32_t scale;
  /**
   * What it is computed from.
   */
  uint32_t first;
  /**
   * Likewise.
   */
  uint32_t second;
} PandoExpression;

/**
 * Whether a text is such as `pattern` says. Called on several threads at once.
 */
typedef uint8_t (*PandoMatches)(const void *pattern, struct PandoBytes text);

/**
 * A constant of a condition.
 */
typedef struct PandoConstant {
  /**
   * 1: NULL.
   */
  uint8_t is_null;
  /**
   * 1: text, else a number.
   */
  uint8_t is_text;
  /**
   * Lower half of the number without its point.
   */
  uint64_t low;
  /**
   * Upper half.
   */
  int64_t high;
  /**
   * Digits behind the point.
   */
  uint32_t scale;
  /**
   * The text.
   */
  struct PandoBytes text;
  /**
   * The collation of the comparison.
   */
  const void *collation;
} PandoConstant;

/**
 * A value of an answer.
 */
typedef struct PandoCell {
  /**
   * 1: NULL.
   */
  uint8_t is_null;
  /**
   * Lower half of a number without its point.
   */
  uint64_t low;
  /**
   * Upper half.
   */
  int64_t high;
  /**
   * Of a sum: of how many values.
   */
  uint64_t count;
  /**
   * Text, which lives as long as the query; a null pointer for numbers.
   */
  struct PandoBytes text;
} PandoCell;

/**
 * A secondary index of a new table.
 */
typedef struct PandoIndexSpec {
  /**
   * Its name.
   */
  struct PandoBytes name;
  /**
   * 1: entries are got by their whole keys, as those of unique indexes are; 0: they take less without what serves
   * that.
   */
  uint8_t has_filters;
  /**
   * Whether its entries hold rows.
   */
  PandoClustering clustering;
} PandoIndexSpec;

/**
 * What a table is created with.
 */
typedef struct PandoTableSpec {
  /**
   * `./database/table` as the server names it, or an absolute path for temporary tables.
   */
  struct PandoBytes path;
  /**
   * The secondary indexes; dictionary 0 holds the rows, `i + 1` belongs to `indexes[i]`.
   */
  const struct PandoIndexSpec *indexes;
  /**
   * How many indexes.
   */
  uint32_t index_count;
  /**
   * Compression.
   */
  PandoCompression compression;
  /**
   * Level for zstd.
   */
  int32_t compression_level;
  /**
   * 1: gone after a restart, and seen by one session alone.
   */
  uint8_t temporary;
  /**
   * 1: it is filled under a name that is not yet the one it is for; a rename gives it that.
   */
  uint8_t interim;
  /**
   * First auto-increment value, 0 for none.
   */
  uint64_t auto_increment;
  /**
   * What rows consist of. Sources and values do not matter here.
   */
  const struct PandoNewColumn *columns;
  /**
   * How many columns.
   */
  uint32_t column_count;
  /**
   * What the server says of this definition.
   */
  struct PandoDefinition definition;
  /**
   * The constraints in which the table is the child.
   */
  const struct PandoForeignKey *foreign_keys;
  /**
   * How many.
   */
  uint32_t foreign_key_count;
  /**
   * 1: its files are encrypted. 2: they are not, because its definition says nothing of it, and may be encrypted later
   * (`pando_db_set_encrypt_tables`).
   */
  uint8_t encrypted;
  /**
   * With the key of this number.
   */
  uint32_t encryption_key_id;
  /**
   * Of the table that it is a partition of, where they are known.
   */
  struct PandoServerFiles server_files;
} PandoTableSpec;

/**
 * A column of a layout.
 */
typedef struct PandoColumn {
  /**
   * The same in all layouts that have this column.
   */
  uint32_t id;
  /**
   * What the bytes are.
   */
  PandoColumnKind kind;
  /**
   * Bytes of a value.
   */
  uint32_t size;
  /**
   * 1: NULL is possible.
   */
  uint8_t nullable;
  /**
   * 1: strings are equal only if their bytes are.
   */
  uint8_t binary;
  /**
   * 1: rows of layouts without this column have `value` (a null pointer is NULL).
   */
  uint8_t added;
  /**
   * See `added`. Lives as long as the table is open.
   */
  struct PandoBytes value;
  /**
   * For people; only in the current layout.
   */
  struct PandoBytes name;
} PandoColumn;

/**
 * What rows of one version consist of. Lives as long as the table is open.
 */
typedef struct PandoLayout {
  /**
   * What these rows begin with.
   */
  uint32_t version;
  /**
   * How many columns.
   */
  uint32_t column_count;
  /**
   * The columns, in the order of their bytes.
   */
  const struct PandoColumn *columns;
  /**
   * 0: no other layout can follow the table's current one without the rows being rewritten, there are too many already.
   */
  uint8_t has_room;
} PandoLayout;

/**
 * Figures of a table.
 */
typedef struct PandoTableInfo {
  /**
   * Rows, estimated.
   */
  uint64_t rows;
  /**
   * Bytes of the rows before compression.
   */
  uint64_t raw_bytes;
  /**
   * Bytes the rows' file takes on disk.
   */
  uint64_t data_bytes;
  /**
   * Bytes the index files take on disk.
   */
  uint64_t index_bytes;
  /**
   * Bytes inside the files that are free.
   */
  uint64_t free_bytes;
  /**
   * Creation, in seconds since 1970.
   */
  uint64_t created;
  /**
   * The last commit that changed rows, in seconds since 1970; 0 if there was none since the table was opened.
   */
  uint64_t changed;
  /**
   * Next auto-increment value, 0 for none yet.
   */
  uint64_t auto_increment;
} PandoTableInfo;

/**
 * Says where the first `parts` parts of a key end; 0: it is not a key.
 */
typedef uint8_t (*PandoKeyEnds)(const void *context, struct PandoBytes key, uint32_t *ends, uint32_t parts);

/**
 * What one row is in one dictionary.
 */
typedef struct PandoEntry {
  /**
   * The key.
   */
  struct PandoBytes key;
  /**
   * The value.
   */
  struct PandoBytes value;
  /**
   * 1: no other row may have this key.
   */
  uint8_t unique;
} PandoEntry;

/**
 * A large value that is written with its row.
 */
typedef struct PandoLargeValue {
  /**
   * Its number: [`pando_table_next_large_value`].
   */
  uint64_t id;
  /**
   * The value.
   */
  struct PandoBytes bytes;
} PandoLargeValue;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Those of this thread, with what other threads have done for it in calls that have returned.
 */
struct PandoAccesses pando_thread_accesses(void);

/**
 * Changes tables that nobody else uses, all or none. `files`: those of the table that they are the partitions of. `Unsupported`: their
 * rows would have to be rewritten.
 *
 * # Safety
 * `db` is open; the changes and all they point to are valid for the call.
 */
PandoStatus pando_tables_alter(const struct PandoDb *db,
                               const struct PandoTableChange *changes,
                               uint32_t count,
                               const struct PandoServerFiles *files);

/**
 * Makes a query of the bytes that say it. Null: they do not. Free it with [`pando_analytic_free`].
 *
 * # Safety
 * The lists have as many entries as is said, and what they point to lives as long as the query.
 */
struct PandoAnalytic *pando_analytic_new(struct PandoBytes bytes, const struct PandoAnalyticTexts *texts);

/**
 * Frees a query. Null is allowed.
 *
 * # Safety
 * `query` came from [`pando_analytic_new`] and is not used any more.
 */
void pando_analytic_free(struct PandoAnalytic *query);

/**
 * Whether there is a plan for the query, so that it is answered unless its rows are in the way. If not, `why_not` says why; it
 * lives as long as the query.
 *
 * # Safety
 * `query` is alive, and `why_not` can be written.
 */
uint8_t pando_analytic_is_answerable(struct PandoAnalytic *query,
                                     struct PandoBytes *why_not);

/**
 * Answers the query from what consistent reads of the transaction see of `count` tables. `Unsupported`: it is to be answered
 * some other way, `why` says why; nothing has come of it; likewise after `Bug`. The rows can be read from then on, and stay; those
 * for which there was no memory are in a temporary file in `tmp_dir`, which has no name; without such a directory, the query is
 * given back then.
 *
 * # Safety
 * All objects are alive, `tables` are as many as are said; what `is_stopped` does with `context` may be done on any thread.
 */
PandoStatus pando_analytic_run(struct PandoAnalytic *query,
                               struct PandoTxn *txn,
                               const struct PandoTable *const *tables,
                               size_t count,
                               uint64_t memory_bytes,
                               struct PandoBytes tmp_dir,
                               PandoIsStopped is_stopped,
                               const void *context,
                               PandoAnalyticWhy *why);

/**
 * Has what only warns asked of all rows of its table: after `Told`, the query may be answered so. 0: it was so already.
 *
 * # Safety
 * `query` is alive, and nobody else uses it.
 */
uint8_t pando_analytic_ask_all(struct PandoAnalytic *query);

/**
 * How the query would be answered: from then on its operators can be read, and it has no rows. `Unsupported`: there is no plan.
 *
 * # Safety
 * As [`pando_analytic_run`].
 */
PandoStatus pando_analytic_explain(struct PandoAnalytic *query,
                                   struct PandoTxn *txn,
                                   const struct PandoTable *const *tables,
                                   size_t count,
                                   PandoIsStopped is_stopped,
                                   const void *context);

/**
 * How many rows the answer has.
 *
 * # Safety
 * `query` is alive.
 */
uint64_t pando_analytic_rows(const struct PandoAnalytic *query);

/**
 * Makes a row of the answer ready: its values can be asked for then, until another row is made ready. `Io`: it cannot be read from
 * the temporary file.
 *
 * # Safety
 * `query` is alive.
 */
PandoStatus pando_analytic_go_to(struct PandoAnalytic *query,
                                 uint64_t row);

/**
 * How many rows of tables were gone over.
 *
 * # Safety
 * `query` is alive.
 */
uint64_t pando_analytic_rows_met(const struct PandoAnalytic *query);

/**
 * How many rows an OFFSET has skipped, where it has skipped all.
 *
 * # Safety
 * `query` is alive.
 */
uint64_t pando_analytic_rows_skipped(const struct PandoAnalytic *query);

/**
 * How many operators the plan has by which a query was answered.
 *
 * # Safety
 * `query` is alive.
 */
uint64_t pando_analytic_operators(const struct PandoAnalytic *query);

/**
 * An operator: each comes before its inputs. Its texts live as long as the query.
 *
 * # Safety
 * `query` is alive, and has so many.
 */
struct PandoAnalyticOperator pando_analytic_operator(const struct PandoAnalytic *query, uint64_t number);

/**
 * A value of a row of the answer that [`pando_analytic_go_to`] has made ready. Beyond it: NULL.
 *
 * # Safety
 * `query` is alive.
 */
struct PandoAnalyticCell pando_analytic_cell(const struct PandoAnalytic *query,
                                             uint64_t row,
                                             uint32_t column);

/**
 * Does what the session asks for its backup; the answer is a line of JSON.
 *
 * # Safety
 * `db` is open, `answer` is alive.
 */
PandoStatus pando_backup_command(const struct PandoDb *db,
                                 uint64_t session,
                                 struct PandoBytes command,
                                 struct PandoBuffer *answer);

/**
 * The backup of the session, if it has one, is over.
 *
 * # Safety
 * `db` is open.
 */
void pando_backup_end(const struct PandoDb *db, uint64_t session);

/**
 * The server has stopped all commits: this is the state of the backup that some session has armed, if any.
 *
 * # Safety
 * `db` is open.
 */
void pando_backup_pin(const struct PandoDb *db);

/**
 * 1: a backup that begins now lacks tables of the engine, because no session has armed one.
 *
 * # Safety
 * `db` is open.
 */
uint8_t pando_backup_would_lack_tables(const struct PandoDb *db);

/**
 * Makes an empty buffer; free it with [`pando_buffer_free`].
 */
struct PandoBuffer *pando_buffer_new(void);

/**
 * Frees a buffer. Null is allowed.
 *
 * # Safety
 * `buffer` came from [`pando_buffer_new`] and is not used any more.
 */
void pando_buffer_free(struct PandoBuffer *buffer);

/**
 * What the buffer holds, valid until it is filled again or freed.
 *
 * # Safety
 * `buffer` is a living buffer.
 */
struct PandoBytes pando_buffer_bytes(const struct PandoBuffer *buffer);

/**
 * Makes a cursor over dictionary `index`; free it with [`pando_cursor_free`].
 *
 * # Safety
 * Both objects are alive.
 */
struct PandoCursor *pando_cursor_new(const struct PandoTxn *txn,
                                     const struct PandoTable *table,
                                     uint32_t index);

/**
 * Frees a cursor. Null is allowed.
 *
 * # Safety
 * The cursor is not used any more.
 */
void pando_cursor_free(struct PandoCursor *cursor);

/**
 * Fetches rows. `NotFound`: there is none. After an error the cursor has to seek again; after `Bug`, it can only be freed.
 *
 * # Safety
 * `cursor` and `txn` are alive and belong to this thread, `fetch` and `batch` are valid.
 */
PandoStatus pando_cursor_fetch(struct PandoCursor *cursor,
                               struct PandoTxn *txn,
                               const struct PandoFetch *fetch,
                               struct PandoBatch *batch);

/**
 * Locks the row that the entry names which was fetched last, alone in its batch, by a locking fetch of another dictionary than 0: `row_key` is
 * that row's key. `is_current`: 1 if the entry says how the row is; else that is to be seen from the row itself, by a locking read.
 *
 * # Safety
 * `cursor` and `txn` are alive and belong to this thread, `is_current` is valid.
 */
PandoStatus pando_cursor_lock_row(struct PandoCursor *cursor,
                                  struct PandoTxn *txn,
                                  struct PandoBytes row_key,
                                  uint8_t *is_current);

/**
 * Opens (and recovers) the database or makes a new one; close it with [`pando_db_close`]. `DatabaseInUse`: it is open already.
 *
 * # Safety
 * The options and what they point to are valid for the call, the functions until the close,
 * `out` is valid.
 */
PandoStatus pando_db_open(const struct PandoOptions *options,
                          struct PandoDb **out);

/**
 * Closes the database cleanly and frees it, whatever comes back. Then it can be opened again.
 *
 * # Safety
 * Neither the database nor anything made from it is used any more.
 */
PandoStatus pando_db_close(struct PandoDb *db);

/**
 * Changes the memory of a transaction's uncommitted writes, beyond which they go into the tables' files.
 *
 * # Safety
 * The database is open.
 */
void pando_db_set_write_set_bytes(const struct PandoDb *db, uint64_t bytes);

/**
 * Changes the memory that all bulk loads together may take.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_load_memory_bytes(const struct PandoDb *db, uint64_t bytes);

/**
 * Changes the limit of all memory of the engine.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_memory_bytes(const struct PandoDb *db, uint64_t bytes);

/**
 * What SELECTs in the engine may have of it together.
 *
 * # Safety
 * `db` is open.
 */
uint64_t pando_db_query_memory_max(const struct PandoDb *db);

/**
 * Changes the limit of the block cache.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_cache_bytes(const struct PandoDb *db, uint64_t bytes);

/**
 * Changes how many row locks a transaction may hold before it holds stretches of keys instead.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_lock_budget(const struct PandoDb *db, uint64_t locks);

/**
 * Changes when commits reach the disk. `BadArgument`: there is no such mode.
 *
 * # Safety
 * `db` is open.
 */
PandoStatus pando_db_set_flush_mode(const struct PandoDb *db, uint32_t mode);

/**
 * Changes the time after which commits of the lazy flush modes are synced at the latest; 1 by default.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_log_sync_period(const struct PandoDb *db, uint64_t seconds);

/**
 * Changes whether what the cache holds is written down (`pando_cache_dump`).
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_cache_kept(const struct PandoDb *db, uint8_t is_kept);

/**
 * Changes the age at which dictionaries are checkpointed.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_checkpoint_period(const struct PandoDb *db, uint64_t seconds);

/**
 * Writes and syncs the log.
 *
 * # Safety
 * `db` is open.
 */
PandoStatus pando_db_flush_logs(const struct PandoDb *db);

/**
 * Wakes a transaction that waits for a lock; it gets `Killed`.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_kill(const struct PandoDb *db, uint64_t txn);

/**
 * The text of SHOW ENGINE PANDO STATUS.
 *
 * # Safety
 * `db` is open, `buffer` is alive.
 */
void pando_db_status_text(const struct PandoDb *db, struct PandoBuffer *buffer);

/**
 * For whom the log is kept, empty where checkpoints suffice to give it up: the text of `Pando_log_holder`.
 *
 * # Safety
 * `db` is open, `buffer` is alive.
 */
void pando_db_log_holder(const struct PandoDb *db, struct PandoBuffer *buffer);

/**
 * How many counters there are.
 */
uint32_t pando_metric_count(void);

/**
 * Name of a counter; valid for ever. Null beyond the last.
 */
const char *pando_metric_name(uint32_t position);

/**
 * Writes the values of the first `count` counters.
 *
 * # Safety
 * `db` is open, `values` has room for `count` numbers.
 */
void pando_db_metrics(const struct PandoDb *db, uint64_t *values, uint32_t count);

/**
 * Tells the names of at most `max` prepared transactions without a connection, each once; after a call
 * that told fewer the next begins anew. Returns how many.
 *
 * # Safety
 * `db` is open; `sink` can take `context`.
 */
uint32_t pando_db_report_prepared(const struct PandoDb *db, uint32_t max, PandoXidSink sink, void *context);

/**
 * Commits a prepared transaction without a connection; `NotFound`: there is none of that name. After an
 * error it is still prepared.
 *
 * # Safety
 * `db` is open.
 */
PandoStatus pando_db_commit_by_xid(const struct PandoDb *db, struct PandoBytes xid);

/**
 * Rolls back a prepared transaction without a connection; `NotFound`: there is none of that name.
 *
 * # Safety
 * `db` is open.
 */
PandoStatus pando_db_rollback_by_xid(const struct PandoDb *db, struct PandoBytes xid);

/**
 * 1: the table at this path, or its partitions, are as the server's definition with this id says.
 *
 * # Safety
 * `db` is open, the texts are valid for the call.
 */
uint8_t pando_table_has_definition(const struct PandoDb *db,
                                   struct PandoBytes path,
                                   struct PandoBytes definition);

/**
 * How a definition stands to the recorded one. `may_have_image`: the server keeps a file for this very table.
 *
 * # Safety
 * `db` is open; `state` may be written; the rest is valid for the call.
 */
PandoStatus pando_definition_compare(const struct PandoDb *db,
                                     struct PandoBytes path,
                                     const struct PandoDefinition *definition,
                                     uint8_t may_have_image,
                                     PandoDefinitionState *state);

/**
 * Records a definition that is `Unrecorded`.
 *
 * # Safety
 * `db` is open; the rest is valid for the call.
 */
PandoStatus pando_definition_adopt(const struct PandoDb *db,
                                   struct PandoBytes path,
                                   const struct PandoDefinition *definition);

/**
 * Writes the id of a table's definition to one buffer, and the server's file to another. `NotFound`: there is no such
 * table, or no image of its definition.
 *
 * # Safety
 * `db` is open, the path is valid for the call, the buffers are not in use.
 */
PandoStatus pando_definition_image(const struct PandoDb *db,
                                   struct PandoBytes path,
                                   struct PandoBuffer *id,
                                   struct PandoBuffer *image);

/**
 * 1: there is a table of this name.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
uint8_t pando_table_exists(const struct PandoDb *db, struct PandoBytes path);

/**
 * 1: no table has this name, and the one with this definition has another: it was renamed.
 *
 * # Safety
 * `db` is open, the texts are valid for the call.
 */
uint8_t pando_table_is_renamed(const struct PandoDb *db, struct PandoBytes path, struct PandoBytes id);

/**
 * The server is about to make files of the definition with this id under a name that no table has yet. Unless one gets it, they are
 * among the names of [`pando_names_gone_visit`] at the next start.
 *
 * # Safety
 * `db` is open, the texts are valid for the call.
 */
PandoStatus pando_name_expect(const struct PandoDb *db,
                              struct PandoBytes path,
                              struct PandoBytes id);

/**
 * Calls `visit` with `context`, each name that a table has lost by DROP or RENAME not long before the last stop, and the id
 * of the definition that it had.
 *
 * # Safety
 * `db` is open, and `visit` may be called with `context`.
 */
void pando_names_gone_visit(const struct PandoDb *db,
                            void *context,
                            void (*visit)(void *context, struct PandoBytes path, struct PandoBytes id));

/**
 * Calls `visit` with `context` and the path of each table whose definition has an image, in order: those of a database
 * (the name of its folder), or with a null pointer all.
 *
 * # Safety
 * `db` is open, the name is valid for the call, and `visit` may be called with `context`.
 */
void pando_definitions_visit(const struct PandoDb *db,
                             struct PandoBytes database,
                             void *context,
                             void (*visit)(void *context, struct PandoBytes path));

/**
 * Calls `visit` with `context` for each dictionary of each table, in the order of their names.
 *
 * # Safety
 * `db` is open, and `visit` may be called with `context`.
 */
PandoStatus pando_dictionaries_visit(const struct PandoDb *db,
                                     void *context,
                                     void (*visit)(void *context, const struct PandoDictionaryRow *row));

/**
 * Changes whether all of the log is encrypted, not only what belongs to encrypted tables. An error: there is no key for it.
 *
 * # Safety
 * `db` is open.
 */
PandoStatus pando_db_set_encrypt_log(const struct PandoDb *db,
                                     uint8_t is_all);

/**
 * From now on files are rewritten in the background that have blocks whose key is `age` versions old or older, at so many bytes a
 * second. 0: none is; and as fast as it goes.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_key_rotation(const struct PandoDb *db,
                               uint32_t age,
                               uint64_t bytes_per_second);

/**
 * Whether tables that are there, and say nothing of encryption, are encrypted in the background from now on. What has begun goes on.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_encrypt_tables(const struct PandoDb *db,
                                 uint8_t encrypts);

/**
 * Calls `visit` with `context` for each file of each encrypted table, in the order of their names.
 *
 * # Safety
 * `db` is open, and `visit` may be called with `context`.
 */
PandoStatus pando_key_uses_visit(const struct PandoDb *db,
                                 void *context,
                                 void (*visit)(void *context, const struct PandoKeyUse *row));

/**
 * Makes a filter of the condition of a query, which has one table and cannot be used any more; free it with
 * [`pando_filter_free`]. Null: there is no condition, or not one that can be evaluated of every row, without fail.
 *
 * # Safety
 * Both objects are alive; what the query's collations and patterns point to lives as long as the filter.
 */
struct PandoFilter *pando_filter_new(struct PandoQuery *query,
                                     const struct PandoTable *table);

/**
 * Of rows that scans give from now on, only the columns at these positions of the table's current layout count, and the key.
 *
 * # Safety
 * `filter` is alive, `positions` are as many as are said.
 */
void pando_filter_need(struct PandoFilter *filter,
                       const uint32_t *positions,
                       size_t count);

/**
 * Frees a filter. Null is allowed.
 *
 * # Safety
 * `filter` is not used any more.
 */
void pando_filter_free(struct PandoFilter *filter);

/**
 * Calls `visit` with `context` and each constraint of the table at this path: those in which it is the child, or (`as_parent`)
 * those in which it is the parent, in the order of databases and names. What it is called with is valid for the call.
 *
 * # Safety
 * `db` is open, the path is valid for the call, and `visit` may be called with `context`.
 */
void pando_foreign_keys_visit(const struct PandoDb *db,
                              struct PandoBytes path,
                              uint8_t as_parent,
                              void *context,
                              void (*visit)(void *context, const struct PandoForeignKey *key));

/**
 * 1: a table of this database (the name of its folder), other than the one at `except`, has a constraint of this name.
 *
 * # Safety
 * `db` is open, the texts are valid for the call.
 */
uint8_t pando_foreign_key_exists(const struct PandoDb *db,
                                 struct PandoBytes database,
                                 struct PandoBytes name,
                                 struct PandoBytes except);

/**
 * Grows whenever a table is made, dropped, renamed or altered. What was learnt of constraints before may not hold any more.
 *
 * # Safety
 * `db` is open.
 */
uint64_t pando_schema_version(const struct PandoDb *db);

/**
 * Renames a table, also into another database. `old_name` and `new_name` are the table's names as constraints that were named
 * after it have them. `copied`: where a copy gets another name than the table that it replaces, that one's path; empty otherwise.
 * `statement`: a number by which the same one may rename back until [`pando_ways_back_end`]; 0: none does. With a partition that moves
 * into another table go all of that table.
 *
 * # Safety
 * `db` is open, the texts are valid for the call.
 */
PandoStatus pando_table_rename(const struct PandoDb *db,
                               struct PandoBytes from,
                               struct PandoBytes to,
                               struct PandoBytes old_name,
                               struct PandoBytes new_name,
                               struct PandoBytes copied,
                               uint64_t statement);

/**
 * The statement takes no rename back any more.
 *
 * # Safety
 * `db` is open.
 */
void pando_ways_back_end(const struct PandoDb *db, uint64_t statement);

/**
 * Begins to add indexes to a table that nobody else uses right now: whoever opens it from now on writes to
 * them, too. Free it with [`pando_build_free`].
 *
 * # Safety
 * `db` is open; the list and all it points to are valid for the call; `out` is valid.
 */
PandoStatus pando_build_begin(const struct PandoDb *db,
                              struct PandoBytes path,
                              const struct PandoNewIndex *indexes,
                              uint32_t count,
                              struct PandoBuild **out);

/**
 * Ends a build; if it was not finished, nothing of the indexes stays. Null is allowed.
 *
 * # Safety
 * The object is not used any more.
 */
void pando_build_free(struct PandoBuild *build);

/**
 * A transaction that sees the rows of which the bases are to be made: to scan dictionary 0 with
 * `PANDO_READ_SNAPSHOT`. Null the second time. Free it with `pando_txn_free`.
 *
 * # Safety
 * The build is alive and not finished.
 */
struct PandoTxn *pando_build_reader(struct PandoBuild *build);

/**
 * Takes an entry of the base of the `index`-th new index.
 *
 * # Safety
 * The build is alive and not finished; the bytes are valid for the call.
 */
void pando_build_add(struct PandoBuild *build,
                     uint32_t index,
                     struct PandoBytes key,
                     struct PandoBytes value);

/**
 * Before more entries: waits while those of all builds and loads that nobody has sorted yet take all that they may. `watch` is called every
 * few milliseconds meanwhile. 0: it said so, or the build is bound to fail.
 *
 * # Safety
 * The build is alive and not finished; `watch` may be called with `context` on this thread.
 */
uint8_t pando_build_wait(struct PandoBuild *build,
                         PandoWatch watch,
                         void *context);

/**
 * All entries have been added: sorts and writes them, and checks what was written meanwhile, until little is
 * left for the change of the catalog ([`crate::pando_tables_alter`]). `Duplicate`: see [`pando_build_duplicate`]. `Killed`: `watch` said so.
 *
 * # Safety
 * The build is alive and not finished; `watch` may be called with `context` on this thread.
 */
PandoStatus pando_build_bases(struct PandoBuild *build,
                              PandoWatch watch,
                              void *context);

/**
 * After `Duplicate`: the number of the new index, key and value of an entry that is not alone; valid until the
 * build is freed. `u32::MAX`: there is none.
 *
 * # Safety
 * The build is alive, `key` and `value` are valid.
 */
uint32_t pando_build_duplicate(const struct PandoBuild *build,
                               struct PandoBytes *key,
                               struct PandoBytes *value);

/**
 * How many indexes were being built when the table was opened: rows have an entry for each, after those of
 * the dictionaries.
 *
 * # Safety
 * The table is open.
 */
uint32_t pando_table_building(const struct PandoTable *table);

/**
 * How entries of the `index`-th of them are made; valid while the table is open. Empty if there are not so many.
 *
 * # Safety
 * The table is open.
 */
struct PandoBytes pando_table_building_recipe(const struct PandoTable *table,
                                              uint32_t index);

/**
 * 1 once the index will not come: its entries can be left empty. Likewise if there are not so many.
 *
 * # Safety
 * The table is open.
 */
uint8_t pando_table_building_is_over(const struct PandoTable *table, uint32_t index);

/**
 * 1 if a value of a column of kind `Large` is to be stored apart from its row.
 *
 * # Safety
 * The bytes are valid for the call.
 */
uint8_t pando_large_is_apart(struct PandoBytes value);

/**
 * 1 if what a row has in a column of kind `Large` is a reference.
 *
 * # Safety
 * The bytes are valid for the call.
 */
uint8_t pando_large_is_reference(struct PandoBytes value);

/**
 * Gives a value that is to be stored apart a number, and writes what its row has in place of it: 24 bytes. 0: all values of this table
 * are stored in its rows.
 *
 * # Safety
 * The table is open; `id` and the 24 bytes at `reference` are valid.
 */
uint8_t pando_table_next_large_value(const struct PandoTable *table,
                                     uint64_t size,
                                     uint64_t *id,
                                     uint8_t *reference);

/**
 * Reads the value that a row refers to into `buffer`. `is_locked`: 1 if the transaction has locked the row or was given its newest
 * state, 0 if consistent reads gave it. `NotFound`: the row has changed since it was read without a lock.
 *
 * # Safety
 * All objects are alive, the transaction and the buffer belong to this thread, the bytes are valid for the call.
 */
PandoStatus pando_txn_large_value(struct PandoTxn *txn,
                                  const struct PandoTable *table,
                                  struct PandoBytes reference,
                                  uint8_t is_locked,
                                  struct PandoBuffer *buffer);

/**
 * For an encoder: adds the entry that the batch's next row has in a dictionary. If it is too long, or there is no such dictionary, the
 * load's end says so (`TooLong`, `BadArgument`).
 *
 * # Safety
 * `sink` is what the encoder was given, the bytes are valid for the call.
 */
void pando_entries_add(struct PandoEntries *sink,
                       uint32_t dictionary,
                       struct PandoBytes key,
                       struct PandoBytes value);

/**
 * 1 if the transaction has written to the table: then a load of it begins only where all of that is undone before.
 *
 * # Safety
 * Both are alive, and the transaction belongs to this thread.
 */
uint8_t pando_txn_has_written_to(const struct PandoTxn *txn,
                                 const struct PandoTable *table);

/**
 * Begins a load. `load` is null afterwards if rows are to be inserted one by one: if there is no memory for one more load; where `beside` is 0,
 * if there is something in the table, or
 * if others are at work in it; else if this transaction has written to it. Where it is 2, the load wants to be asked
 * for each row if it is beside others ([`pando_load_is_by_row`]). `unique[i]` is 1 if keys of dictionary `i` can be
 * equal. The first `counted` rows were inserted one by one before, and undone. The encoder's context is given up whatever comes back.
 *
 * # Safety
 * All objects are alive, the transaction belongs to this thread, `unique` has `count` bytes; the encoder's
 * functions may be called from any thread.
 */
PandoStatus pando_load_begin(struct PandoTxn *txn,
                             const struct PandoTable *table,
                             const uint8_t *unique,
                             uint32_t count,
                             uint64_t counted,
                             uint8_t beside,
                             struct PandoEncoder encoder,
                             struct PandoLoad **load);

/**
 * Counts nothing yet; free it with [`pando_load_hold_free`].
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
struct PandoLoadHold *pando_load_hold_new(const struct PandoTxn *txn);

/**
 * Counts `bytes` more: 0 if there is no memory for them.
 *
 * # Safety
 * It is alive, and nobody else's meanwhile.
 */
uint8_t pando_load_hold_more(struct PandoLoadHold *hold, uint64_t bytes);

/**
 * The bytes are counted no longer. Null is allowed.
 *
 * # Safety
 * It came from [`pando_load_hold_new`] and is not used any more.
 */
void pando_load_hold_free(struct PandoLoadHold *hold);

/**
 * 1 if [`pando_load_admit`] is to be called for each row: the load is beside others, and locks the keys of a row before it joins.
 *
 * # Safety
 * The load is alive.
 */
uint8_t pando_load_is_by_row(const struct PandoLoad *load);

/**
 * Where the caller has to know of each row at once whether its keys are there: asks before the row is added to a
 * batch. `notes`: 0 if no two rows of the load have equal keys, 1 if they may have, 2 if keys have ascended so far: then the caller goes on with 0 when
 * it is `Full`. If one is there, `seen` is its position among `keys`.
 *
 * # Safety
 * All objects are alive, the transaction is the one the load was begun with and belongs to this thread; `keys` has `count` elements with
 * valid bytes, `admission` and `seen` are valid.
 */
PandoStatus pando_load_admit(struct PandoTxn *txn,
                             struct PandoLoad *load,
                             const struct PandoLoneKey *keys,
                             uint32_t count,
                             uint8_t notes,
                             enum PandoAdmission *admission,
                             uint32_t *seen);

/**
 * Hands over a batch of `rows` rows that takes `bytes` of memory; the load frees it. 0: the load is bound to
 * fail, and its end will say why. `watch` is called every few milliseconds while it waits for room; when it says so the load is to be
 * ended.
 *
 * # Safety
 * The load is alive and belongs to this thread; the batch is what its encoder takes.
 */
uint8_t pando_load_submit(struct PandoLoad *load,
                          void *batch,
                          uint64_t rows,
                          uint64_t bytes,
                          PandoWatch watch,
                          void *watched);

/**
 * How many bytes a batch should have now: it changes with the number of loads.
 *
 * # Safety
 * The load is alive and belongs to this thread.
 */
uint64_t pando_load_batch_bytes(struct PandoLoad *load);

/**
 * Ends a load and frees it: its rows are written if it says `Ok`. `Duplicate`: [`pando_txn_duplicate`] and
 * [`pando_load_duplicate`] tell of the first row in the order of the batches that has the key of an earlier one.
 * `Killed`: `watch` said so. `Refused`: `refused` is what the encoder said. `watch` is called every few
 * milliseconds.
 *
 * # Safety
 * All objects are alive, the transaction is the one the load was begun with and belongs to this thread.
 */
PandoStatus pando_load_finish(struct PandoTxn *txn,
                              struct PandoLoad *load,
                              PandoWatch watch,
                              void *watched,
                              int32_t *refused);

/**
 * Gives a load up and frees it. Null is allowed.
 *
 * # Safety
 * The load is not used any more.
 */
void pando_load_abort(struct PandoLoad *load);

/**
 * After `Duplicate` of a load: the entry of the row that came second, valid until the next change through
 * this transaction.
 *
 * # Safety
 * The transaction is alive and belongs to this thread, `key` and `value` are valid.
 */
void pando_load_duplicate(const struct PandoTxn *txn, struct PandoBytes *key, struct PandoBytes *value);

/**
 * Looks at all transactions and locks; free it with [`pando_lock_report_free`].
 *
 * # Safety
 * `db` is open.
 */
struct PandoLockReport *pando_db_lock_report(const struct PandoDb *db);

/**
 * Frees a report. Null is allowed.
 *
 * # Safety
 * The report is not used any more.
 */
void pando_lock_report_free(struct PandoLockReport *report);

/**
 * Number of transactions in the report.
 *
 * # Safety
 * The report is alive.
 */
uint32_t pando_lock_report_txn_count(const struct PandoLockReport *report);

/**
 * The transaction at `position`, which is below the count.
 *
 * # Safety
 * The report is alive.
 */
struct PandoTxnRow pando_lock_report_txn(const struct PandoLockReport *report, uint32_t position);

/**
 * Number of locks in the report.
 *
 * # Safety
 * The report is alive.
 */
uint32_t pando_lock_report_lock_count(const struct PandoLockReport *report);

/**
 * The lock at `position`, which is below the count.
 *
 * # Safety
 * The report is alive.
 */
struct PandoLockRow pando_lock_report_lock(const struct PandoLockReport *report, uint32_t position);

/**
 * The last deadlock, null if there was none; free it with [`pando_deadlock_free`].
 *
 * # Safety
 * `db` is open.
 */
struct PandoDeadlock *pando_db_last_deadlock(const struct PandoDb *db);

/**
 * Frees it. Null is allowed.
 *
 * # Safety
 * It is not used any more.
 */
void pando_deadlock_free(struct PandoDeadlock *deadlock);

/**
 * Number of its members.
 *
 * # Safety
 * It is alive.
 */
uint32_t pando_deadlock_count(const struct PandoDeadlock *deadlock);

/**
 * The member at `position`, which is below the count.
 *
 * # Safety
 * It is alive.
 */
struct PandoDeadlockRow pando_deadlock_row(const struct PandoDeadlock *deadlock, uint32_t position);

/**
 * Bytes of memory that this process may have, if a control group bounds it; 0: none does.
 */
uint64_t pando_memory_limit_of_group(void);

/**
 * How many processors this process may use: those of the machine, less what affinity and the quota of a control group leave.
 */
uint32_t pando_processors(void);

/**
 * Gives `bytes` bytes in place of the `old` ones at `start`, whose content is in the first of them: like `realloc`, but whoever asks says
 * what there was. Null with 0 bytes stands for nothing, before and after. Null for more: the system has none, and all is as it was.
 *
 * # Safety
 * `start` came from this function, for exactly `old` bytes, and is not used any more unless null is given for it.
 */
uint8_t *pando_memory_resize(uint8_t *start,
                             size_t old,
                             size_t bytes);

/**
 * From now on the observer is told; the first one stays. To be called before the database is opened.
 *
 * # Safety
 * `observer` is valid for the call, and its functions as long as the process lives.
 */
void pando_observe(const struct PandoObserver *observer);

/**
 * Makes a query that wants nothing yet; free it with [`pando_query_free`].
 */
struct PandoQuery *pando_query_new(PandoCompareTexts compare);

/**
 * Frees a query. Null is allowed.
 *
 * # Safety
 * `query` came from [`pando_query_new`] and is not used any more.
 */
void pando_query_free(struct PandoQuery *query);

/**
 * Adds a column; says its number.
 *
 * # Safety
 * `query` is alive; the collation lives as long as the query.
 */
uint32_t pando_query_column(struct PandoQuery *query, struct PandoQueryColumn column);

/**
 * Adds an expression; says its number.
 *
 * # Safety
 * `query` is alive.
 */
uint32_t pando_query_expression(struct PandoQuery *query, struct PandoExpression expression);

/**
 * Says that two columns of different tables are equal.
 *
 * # Safety
 * `query` is alive.
 */
void pando_query_equality(struct PandoQuery *query, uint32_t first, uint32_t second);

/**
 * Adds a condition: that the column's texts are such as a pattern says.
 *
 * # Safety
 * `query` is alive; the pattern lives as long as the query.
 */
void pando_query_matches(struct PandoQuery *query,
                         uint32_t column,
                         PandoMatches matches,
                         const void *pattern);

/**
 * Adds a condition: that two columns of one kind compare like this.
 *
 * # Safety
 * `query` is alive.
 */
void pando_query_compare(struct PandoQuery *query, PandoOperator operator_, uint32_t first, uint32_t second);

/**
 * Adds a constant for the next condition or expression.
 *
 * # Safety
 * `query` is alive, and so are the bytes of the text; the collation lives as long as the query.
 */
void pando_query_constant(struct PandoQuery *query, struct PandoConstant constant);

/**
 * Adds a condition: on a column, or on the last `count` conditions.
 *
 * # Safety
 * `query` is alive.
 */
void pando_query_condition(struct PandoQuery *query,
                           PandoOperator operator_,
                           uint32_t column,
                           uint32_t count);

/**
 * Adds a column that makes groups.
 *
 * # Safety
 * `query` is alive.
 */
void pando_query_group(struct PandoQuery *query, uint32_t column);

/**
 * Adds an aggregate.
 *
 * # Safety
 * `query` is alive.
 */
void pando_query_aggregate(struct PandoQuery *query, PandoAggregate aggregate, uint32_t column);

/**
 * Whether the query is one that can be answered, unless the rows are in the way. It cannot be run any more.
 *
 * # Safety
 * All objects are alive, `tables` are as many as are said.
 */
uint8_t pando_query_is_answerable(struct PandoQuery *query,
                                  const struct PandoTable *const *tables,
                                  size_t count);

/**
 * Changes what the groups and joined tables of all queries of the process may take together.
 */
void pando_query_set_memory_total(uint64_t bytes);

/**
 * Answers the query from what consistent reads of the transaction see of `count` tables, the largest first.
 * `Unsupported`: it is to be answered some other way, nothing has come of it; likewise after `Bug`: of the transaction only the locks
 * have changed. The rows can be read from then on, and stay.
 * With `read` `Shared` or `Exclusive` it is answered from the newest state, and all rows of the tables are locked, if nobody
 * is in the way.
 *
 * # Safety
 * All objects are alive, `tables` are as many as are said; what `is_stopped` does with `context` may be done on any thread.
 */
PandoStatus pando_query_run(struct PandoQuery *query,
                            struct PandoTxn *txn,
                            const struct PandoTable *const *tables,
                            size_t count,
                            PandoRead read,
                            uint64_t memory_bytes,
                            PandoIsStopped is_stopped,
                            const void *context);

/**
 * How many rows the answer has.
 *
 * # Safety
 * `query` is alive.
 */
uint64_t pando_query_rows(const struct PandoQuery *query);

/**
 * A value of the answer: the groups' columns come first, then the aggregates. Beyond them it is NULL.
 *
 * # Safety
 * `query` is alive.
 */
struct PandoCell pando_query_cell(const struct PandoQuery *query, uint64_t row, uint32_t place);

/**
 * Records the files that a table has from now on. `lazy`: a crash may lose that. `NotFound`: they are not whole files.
 *
 * # Safety
 * `db` is open; the rest is valid for the call.
 */
PandoStatus pando_server_files_record(const struct PandoDb *db,
                                      const struct PandoServerFiles *files,
                                      uint8_t lazy);

/**
 * Writes what is recorded of a table into three buffers. `NotFound`: nothing is.
 *
 * # Safety
 * `db` is open, the path is valid for the call, the buffers are not in use.
 */
PandoStatus pando_server_files_get(const struct PandoDb *db,
                                   struct PandoBytes path,
                                   struct PandoBuffer *id,
                                   struct PandoBuffer *definition,
                                   struct PandoBuffer *partitions);

/**
 * 1: the recorded files of this table have this id.
 *
 * # Safety
 * `db` is open, the texts are valid for the call.
 */
uint8_t pando_server_files_are(const struct PandoDb *db, struct PandoBytes path, struct PandoBytes id);

/**
 * 1: there are partitions of the table at this path, whatever is recorded of its files.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
uint8_t pando_has_partitions(const struct PandoDb *db, struct PandoBytes path);

/**
 * 1: the server's definition with this id is that of a partitioned table, by any name that people know it by.
 *
 * # Safety
 * `db` is open, the text is valid for the call.
 */
uint8_t pando_has_partitions_of(const struct PandoDb *db, struct PandoBytes id);

/**
 * 1: a `NAME.par` with these bytes names exactly the partitions that there are.
 *
 * # Safety
 * `db` is open, the bytes are valid for the call.
 */
uint8_t pando_server_files_fit(const struct PandoDb *db,
                               struct PandoBytes path,
                               struct PandoBytes partitions);

/**
 * Forgets the files of a table, if it has no partitions.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
PandoStatus pando_server_files_forget(const struct PandoDb *db, struct PandoBytes path);

/**
 * Drops what a CREATE TABLE has left that was not finished: the table at this path, or all partitions of the table of this name, if
 * none of them has a row. `PANDO_STATUS_NOT_FOUND`: nothing was dropped. Nobody may use them.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
PandoStatus pando_table_drop_if_empty(const struct PandoDb *db,
                                      struct PandoBytes path);

/**
 * Calls `visit` with `context` and the path of each table whose files are recorded, in order: those of a database (the name of
 * its folder), or with a null pointer all.
 *
 * # Safety
 * `db` is open, the name is valid for the call, and `visit` may be called with `context`.
 */
void pando_server_files_visit(const struct PandoDb *db,
                              struct PandoBytes database,
                              void *context,
                              void (*visit)(void *context, struct PandoBytes path));

/**
 * Whether a table whose `NAME.par` has these bytes lacks partitions that another name has, as a RENAME TABLE may have left them: then
 * that name is written to `half`. `NotFound`: it does not.
 *
 * # Safety
 * `db` is open, the rest is valid for the call, the buffer is not in use.
 */
PandoStatus pando_table_other_half(const struct PandoDb *db,
                                   struct PandoBytes path,
                                   struct PandoBytes partitions,
                                   struct PandoBuffer *half);

/**
 * Gives the partitions of that name to the table.
 *
 * # Safety
 * `db` is open, the texts are valid for the call.
 */
PandoStatus pando_table_join_halves(const struct PandoDb *db, struct PandoBytes path, struct PandoBytes half);

/**
 * Text of the last failed call on this thread, valid until the next call on it.
 */
struct PandoBytes pando_error_text(void);

/**
 * Number of the operating system's error behind the last `Io` on this thread, 0 if it has none.
 */
int32_t pando_error_os(void);

/**
 * Creates a table.
 *
 * # Safety
 * `db` is open; the spec and all it points to are valid for the call.
 */
PandoStatus pando_table_create(const struct PandoDb *db, const struct PandoTableSpec *spec);

/**
 * What rows of a version consist of; version 0: those that are written now. `NotFound`: there is no such
 * version.
 *
 * # Safety
 * The table is open, `out` is valid.
 */
PandoStatus pando_table_layout(const struct PandoTable *table, uint32_t version, struct PandoLayout *out);

/**
 * Drops a table that nobody uses.
 *
 * # Safety
 * `db` is open, `path` is valid for the call.
 */
PandoStatus pando_table_drop(const struct PandoDb *db, struct PandoBytes path);

/**
 * `InUse`: a prepared transaction without a connection has changed the table.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
PandoStatus pando_table_check_resolved(const struct PandoDb *db, struct PandoBytes path);

/**
 * The same for all partitions of a partitioned table.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
PandoStatus pando_table_check_partitions_resolved(const struct PandoDb *db, struct PandoBytes path);

/**
 * Removes all rows and the auto-increment value of a table that nobody else uses.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
PandoStatus pando_table_truncate(const struct PandoDb *db, struct PandoBytes path);

/**
 * Drops what tables a database still has in the engine (DROP DATABASE).
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
PandoStatus pando_drop_database(const struct PandoDb *db, struct PandoBytes path);

/**
 * Opens a table; give it back with [`pando_table_close`].
 *
 * # Safety
 * `db` is open, the path is valid for the call, `out` is valid.
 */
PandoStatus pando_table_open(const struct PandoDb *db, struct PandoBytes path, struct PandoTable **out);

/**
 * Gives an open table back. Null is allowed.
 *
 * # Safety
 * The object is not used any more.
 */
void pando_table_close(struct PandoTable *table);

/**
 * Which secondary keys are damaged, so that they can be neither read nor asked for duplicates: bit `i` is that of dictionary `i + 1`.
 *
 * # Safety
 * The table is open.
 */
uint64_t pando_table_unusable_keys(const struct PandoTable *table);

/**
 * Calls `visit` with `context`, the position and the name of each secondary key's dictionary, as the catalog has them.
 *
 * # Safety
 * `db` is open, and `table` is one of its tables; `visit` may be called with `context`.
 */
PandoStatus pando_table_key_names_visit(const struct PandoDb *db,
                                        const struct PandoTable *table,
                                        void *context,
                                        void (*visit)(void *context,
                                                      uint32_t dictionary,
                                                      struct PandoBytes name));

/**
 * These keys have other names in the server's definition than in the catalog, and so entries of one another: from now on they are damaged
 * keys of these names.
 *
 * # Safety
 * `db` is open, and `table` is one of its tables; `names` are `count` names, valid for the call.
 */
PandoStatus pando_table_give_up_misnamed_keys(const struct PandoDb *db,
                                              const struct PandoTable *table,
                                              const struct PandoIndexName *names,
                                              uint32_t count);

/**
 * A secondary key was found to have other entries than the rows have: from now on it is a damaged key. Answers `PANDO_STATUS_CORRUPTION`,
 * unless that cannot be recorded.
 *
 * # Safety
 * `db` is open, and `table` is one of its tables, which has this dictionary.
 */
PandoStatus pando_table_give_up_key(const struct PandoDb *db,
                                    const struct PandoTable *table,
                                    uint32_t dictionary);

/**
 * 1 if the file of the large values is damaged or missing: those in it are lost, and there is no place for new ones.
 *
 * # Safety
 * The table is open.
 */
uint8_t pando_table_has_lost_large_file(const struct PandoTable *table);

/**
 * Gives up the large values of a table whose file of these is damaged or missing, and begins a new file; else does nothing. Others are
 * kept from the table. Who has it open must open it anew.
 *
 * # Safety
 * `db` is open, the path is valid for the call.
 */
PandoStatus pando_table_begin_large_values_anew(const struct PandoDb *db,
                                                struct PandoBytes path);

/**
 * Figures of a table. Sizes are what the file system has allocated if `is_exact` is not 0, which asks it; else what is in use
 * within the files.
 *
 * # Safety
 * The table is open, `out` is valid.
 */
PandoStatus pando_table_info(const struct PandoTable *table,
                             uint8_t is_exact,
                             struct PandoTableInfo *out);

/**
 * Reads all of a table and checks it (CHECK TABLE). `watch` is called now and then; it may be null.
 *
 * # Safety
 * Both objects are alive; `watch` can be called with `watched` in this thread.
 */
PandoStatus pando_table_check(const struct PandoDb *db,
                              const struct PandoTable *table,
                              PandoWatch watch,
                              void *watched);

/**
 * The table says nothing of encryption, and would get the key of this number: for tables that were created before this was recorded.
 *
 * # Safety
 * `db` is open, and `table` is one of its tables.
 */
void pando_table_note_undecided(const struct PandoDb *db,
                                const struct PandoTable *table,
                                uint32_t encryption_key_id);

/**
 * From now on `pando_table_compact` rewrites no more bytes a second, of all tables together. 0: as fast as it goes. Whoever is at work
 * heeds it, too.
 *
 * # Safety
 * `db` is open.
 */
void pando_db_set_optimize_rate(const struct PandoDb *db,
                                uint64_t bytes_per_second);

/**
 * Rewrites a table compactly and gives the space back (OPTIMIZE TABLE); others go on meanwhile. `watch` is called
 * before each leaf; it may be null.
 *
 * # Safety
 * Both objects are alive; `watch` can be called with `watched` in this thread.
 */
PandoStatus pando_table_compact(const struct PandoDb *db,
                                const struct PandoTable *table,
                                PandoWatch watch,
                                void *watched);

/**
 * Rows of dictionary `index` in `[from, to)`, estimated; null is "no bound".
 *
 * # Safety
 * The table is open, the keys are valid for the call, `rows` is valid.
 */
PandoStatus pando_table_estimate(const struct PandoTable *table,
                                 uint32_t index,
                                 struct PandoBytes from,
                                 struct PandoBytes to,
                                 uint64_t *rows);

/**
 * How many different values the first part of the keys of dictionary `index` has, the first two together, and so on: in
 * `distinct`, for `parts` of them, of `rows` rows. They are counted, or estimated from a sample, where that has not been
 * done since the table has changed much; with `anew` 1 in any case. `rows` 0: they are not known.
 *
 * # Safety
 * Both objects are alive; `ends` can be called with `context` in this thread; `distinct` has room, `rows` is valid.
 */
PandoStatus pando_table_distinct_keys(const struct PandoDb *db,
                                      const struct PandoTable *table,
                                      uint32_t index,
                                      uint32_t parts,
                                      uint8_t anew,
                                      PandoKeyEnds ends,
                                      const void *context,
                                      uint64_t *distinct,
                                      uint64_t *rows);

/**
 * A new key for a row of a table without a primary key.
 *
 * # Safety
 * The table is open, `key` is valid.
 */
PandoStatus pando_table_next_hidden_key(const struct PandoTable *table, uint64_t *key);

/**
 * Takes `count` new keys for rows of a table without a primary key: from `first` on.
 *
 * # Safety
 * The table is open, `first` is valid.
 */
PandoStatus pando_table_reserve_hidden_keys(const struct PandoTable *table, uint64_t count, uint64_t *first);

/**
 * 1 if it seems that nothing is in the table: whether a load is worth a try.
 *
 * # Safety
 * The table is open.
 */
uint8_t pando_table_is_empty(const struct PandoTable *table);

/**
 * Takes `count` auto-increment values: the first is the smallest at or after the counter that
 * equals `offset` modulo `step`. `NotFound`: there is none below 2^64.
 *
 * # Safety
 * The table is open, `first` is valid.
 */
PandoStatus pando_table_reserve_auto_increment(const struct PandoTable *table,
                                               uint64_t step,
                                               uint64_t offset,
                                               uint64_t count,
                                               uint64_t *first);

/**
 * Whether the entries of a dictionary hold rows; dictionary 0, whose entries are the rows, is said not to.
 *
 * # Safety
 * The table is open.
 */
PandoClustering pando_table_clustering(const struct PandoTable *table, uint32_t dictionary);

/**
 * Begins a transaction (without a snapshot); free it with [`pando_txn_free`].
 *
 * # Safety
 * `db` is open and stays so for the life of the transaction.
 */
struct PandoTxn *pando_txn_new(const struct PandoDb *db);

/**
 * Rolls back what is not committed and frees the transaction. Null is allowed.
 *
 * # Safety
 * The transaction is not used any more.
 */
void pando_txn_free(struct PandoTxn *txn);

/**
 * The transaction's id, for `pando_db_kill`.
 *
 * # Safety
 * The transaction is alive.
 */
uint64_t pando_txn_id(const struct PandoTxn *txn);

/**
 * A statement begins: row locks are waited for this many milliseconds from now on, and a kill of an
 * earlier statement is forgotten.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_begin_statement(struct PandoTxn *txn, uint64_t lock_wait_ms);

/**
 * Decides whether commits in one phase wait for the log's sync where the flush mode asks for it (1).
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_set_synced(struct PandoTxn *txn, uint8_t is_synced);

/**
 * Decides whether locking reads exclude phantoms from now on (1): REPEATABLE READ and SERIALIZABLE.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_set_takes_gaps(struct PandoTxn *txn, uint8_t takes_gaps);

/**
 * Takes the snapshot of consistent reads unless there is one.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_open_snapshot(struct PandoTxn *txn);

/**
 * As [`pando_txn_open_snapshot`], of every commit that has its place in the order now: to be called under
 * the mutex that [`pando_txn_commit_ordered`] is called under. Waits for nobody.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_open_ordered_snapshot(struct PandoTxn *txn);

/**
 * Gives the snapshot back; the next consistent read takes a new one.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_close_snapshot(struct PandoTxn *txn);

/**
 * 1 when a commit would write something.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
uint8_t pando_txn_has_writes(const struct PandoTxn *txn);

/**
 * Bytes of uncommitted writes.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
uint64_t pando_txn_write_bytes(const struct PandoTxn *txn);

/**
 * A number for the place in the transaction's writes where it is now, for [`pando_txn_rollback_to`].
 * Valid until the transaction ends or is rolled back to an earlier mark, or it is released.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
uint64_t pando_txn_mark(struct PandoTxn *txn);

/**
 * How many writes were done since the mark and not undone, one for each entry of each row; all ones if there is no
 * such mark.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
uint64_t pando_txn_writes_since(const struct PandoTxn *txn,
                                uint64_t mark);

/**
 * The mark will not be rolled back to any more. Writes before and after a mark that was not released are
 * kept apart, which costs a long transaction.
 *
 * # Safety
 * The transaction is alive and belongs to this thread; the mark is valid, and not used any more.
 */
void pando_txn_release_mark(struct PandoTxn *txn, uint64_t mark);

/**
 * Undoes the writes made since the mark. Locks stay. `BadArgument`: there is no such mark, or the transaction is prepared; nothing was undone.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
PandoStatus pando_txn_rollback_to(struct PandoTxn *txn,
                                  uint64_t mark);

/**
 * Commits. Whatever comes back, the transaction is over; but one that was prepared stays so after an error,
 * without this object, which has a new id then. One that has met a bug is rolled back: `Bug`.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
PandoStatus pando_txn_commit(struct PandoTxn *txn);

/**
 * First phase of a two-phase commit: durable but for the decision, under the coordinator's name for it.
 * After an error it can only be rolled back. Without writes it does nothing.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
PandoStatus pando_txn_prepare(struct PandoTxn *txn, struct PandoBytes xid);

/**
 * A kill is over: lock requests do not fail any more.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_clear_kill(struct PandoTxn *txn);

/**
 * Gives a prepared transaction to whoever knows its name, at once. [`pando_txn_commit_ordered`], [`pando_txn_commit`] and
 * [`pando_txn_rollback`] take it back; it has another id until then, and must not be used for anything else. Does nothing
 * to one without writes.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_leave(struct PandoTxn *txn);

/**
 * 1 while it is prepared and not resolved: freeing it then leaves it to `pando_db_commit_by_xid`.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
uint8_t pando_txn_is_prepared(const struct PandoTxn *txn);

/**
 * Gives a prepared transaction its place in the order of commits; [`pando_txn_commit`] must follow, and
 * tells what went wrong. Waits for no other transaction. `remembered` is 1 if the coordinator's decision is
 * on disk and comes back after a crash: then the commit does not wait for the log.
 *
 * # Safety
 * The transaction is alive, and the thread it belongs to waits for this call.
 */
void pando_txn_commit_ordered(struct PandoTxn *txn, uint8_t remembered);

/**
 * Rolls back.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
void pando_txn_rollback(struct PandoTxn *txn);

/**
 * Reads one key of dictionary `index` into `buffer`: `Ok`, `NotFound` or `Skipped`. As with every function that takes a table,
 * `BadArgument`: the table is of another database, or has no such dictionary; nothing was done, and the transaction can go on.
 *
 * # Safety
 * All objects are alive, the transaction and the buffer belong to this thread.
 */
PandoStatus pando_txn_get(struct PandoTxn *txn,
                          const struct PandoTable *table,
                          uint32_t index,
                          struct PandoBytes key,
                          PandoRead read,
                          int64_t wait_s,
                          struct PandoBuffer *buffer);

/**
 * Locks one key of dictionary `index` and looks whether it has a row, which is not read: `Ok`, `NotFound` or `Skipped`, as a locking
 * [`pando_txn_get`]. `read` is `Shared` or `Exclusive`.
 *
 * # Safety
 * All objects are alive, the transaction belongs to this thread.
 */
PandoStatus pando_txn_lock_existing(struct PandoTxn *txn,
                                    const struct PandoTable *table,
                                    uint32_t index,
                                    struct PandoBytes key,
                                    PandoRead read,
                                    int64_t wait_s);

/**
 * 1 when the lock of the last locking read was not held before it.
 *
 * # Safety
 * The transaction is alive and belongs to this thread.
 */
uint8_t pando_txn_just_locked(const struct PandoTxn *txn);

/**
 * Gives back the lock of a row that was read and does not match (READ COMMITTED).
 *
 * # Safety
 * All objects are alive, the transaction belongs to this thread.
 */
void pando_txn_unlock(struct PandoTxn *txn,
                      const struct PandoTable *table,
                      uint32_t index,
                      struct PandoBytes key);

/**
 * Inserts a row: `new_entries[i]` goes to dictionary `i`, and the row refers to `large` values. Errors leave nothing written.
 * `on_duplicate`: what becomes of a row that is in the way.
 *
 * # Safety
 * All objects are alive, the transaction belongs to this thread, `new_entries` has `count` entries, `large` has `large_count`.
 */
PandoStatus pando_txn_insert_row(struct PandoTxn *txn,
                                 const struct PandoTable *table,
                                 const struct PandoEntry *new_entries,
                                 uint32_t count,
                                 const struct PandoLargeValue *large,
                                 uint32_t large_count,
                                 PandoOnDuplicate on_duplicate);

/**
 * In the place of a locking read of the row with this key in dictionary 0, for one who goes on to change or delete it and knows what
 * that needs. `out`: 0 if the row must be read all the same, and nothing is locked.
 *
 * # Safety
 * As [`pando_txn_is_newer_than_snapshot`].
 */
PandoStatus pando_txn_lock_unread(struct PandoTxn *txn,
                                  const struct PandoTable *table,
                                  struct PandoBytes key,
                                  uint8_t *out);

/**
 * Deletes all rows with keys from `lo` up to, but without, `hi`, or all from `lo` on without `has_hi`, as the first thing that the
 * transaction writes. `rows`: how many there were. `done`: 0 if this is not possible now; then nothing was done, and they have to be
 * deleted one by one.
 *
 * # Safety
 * The transaction is alive and belongs to this thread, the table is open, keys and outputs are valid for the call.
 */
PandoStatus pando_txn_delete_range(struct PandoTxn *txn,
                                   const struct PandoTable *table,
                                   struct PandoBytes lo,
                                   struct PandoBytes hi,
                                   uint8_t has_hi,
                                   uint64_t *rows,
                                   uint8_t *done);

/**
 * `out`: 1 if a row, which the transaction has locked, is newer than the snapshot of its consistent reads: then
 * [`pando_txn_update_row`] wants all of its entries, so that reads by an index meet it, too.
 *
 * # Safety
 * The transaction is alive and belongs to this thread, the table is open, `key` and `out` are valid for the call.
 */
PandoStatus pando_txn_is_newer_than_snapshot(struct PandoTxn *txn,
                                             const struct PandoTable *table,
                                             struct PandoBytes key,
                                             uint8_t *out);

/**
 * `out`: 1 if the transaction itself has written or deleted a key of dictionary `index`.
 *
 * # Safety
 * As [`pando_txn_is_newer_than_snapshot`].
 */
PandoStatus pando_txn_has_written(struct PandoTxn *txn,
                                  const struct PandoTable *table,
                                  uint32_t index,
                                  struct PandoBytes key,
                                  uint8_t *out);

/**
 * Replaces a row that was read under its lock. Errors leave nothing written. `in_full`: 1 if the row is newer than the
 * snapshot; else entries that are the same in both lists may be left out, that is, empty. Where it is known that the row
 * is not the same, the old one's value, that of the first of `old_entries`, may be left out, too. `large` are the values to which
 * the row did not refer before.
 *
 * # Safety
 * As [`pando_txn_insert_row`], for all lists.
 */
PandoStatus pando_txn_update_row(struct PandoTxn *txn,
                                 const struct PandoTable *table,
                                 const struct PandoEntry *old_entries,
                                 const struct PandoEntry *new_entries,
                                 uint32_t count,
                                 const struct PandoLargeValue *large,
                                 uint32_t large_count,
                                 uint8_t in_full);

/**
 * Deletes a row that was read under its lock.
 *
 * # Safety
 * As [`pando_txn_insert_row`].
 */
PandoStatus pando_txn_delete_row(struct PandoTxn *txn,
                                 const struct PandoTable *table,
                                 const struct PandoEntry *old_entries,
                                 uint32_t count);

/**
 * After `Duplicate`: the dictionary that has the key already, and the value stored there, valid until
 * the next change through this transaction.
 *
 * # Safety
 * The transaction is alive and belongs to this thread, `existing` is valid or null.
 */
uint32_t pando_txn_duplicate(const struct PandoTxn *txn, struct PandoBytes *existing);

/**
 * Auto-increment values below `next` are used; logged with the commit. Nothing can go wrong but a mistake of the caller (`BadArgument`).
 *
 * # Safety
 * Both objects are alive, the transaction belongs to this thread.
 */
PandoStatus pando_txn_raise_auto_increment(struct PandoTxn *txn,
                                           const struct PandoTable *table,
                                           uint64_t next);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PANDO_H */
