#include "performance_schema.h"
#include "plugin.h"

#include <cstring>
#include <string>

namespace pando {

Observed_mutex transactions_mutex, related_tables_mutex;

/* The plugin may be installed again in the same process. */
static void init_mutexes(PSI_mutex_key transactions, PSI_mutex_key related_tables)
{
  static bool is_done;
  if (is_done)
    return;
  is_done= true;
  transactions_mutex.init(transactions);
  related_tables_mutex.init(related_tables);
}

#ifdef HAVE_PSI_INTERFACE

namespace {

const char CATEGORY[]= "pando";

/* --- threads --- */

/* In the order of PandoThreadKind, and one of the plugin's own. */
PSI_thread_key thread_keys[7];
const uint EXPIRY_THREAD= 6;

PSI_thread_info threads[]= {
  {&thread_keys[PANDO_THREAD_KIND_WORKER], "worker", 0},
  {&thread_keys[PANDO_THREAD_KIND_TICKER], "ticker", 0},
  {&thread_keys[PANDO_THREAD_KIND_CACHE_KEEPER], "cache_keeper", 0},
  {&thread_keys[PANDO_THREAD_KIND_LOADER], "loader", 0},
  {&thread_keys[PANDO_THREAD_KIND_HELPER], "helper", 0},
  {&thread_keys[PANDO_THREAD_KIND_KEY_ROTATOR], "key_rotator", 0},
  {&thread_keys[EXPIRY_THREAD], "expiry", PSI_FLAG_GLOBAL},
};

void begin_thread(PSI_thread_key key)
{
  PSI_thread *thread= PSI_THREAD_CALL(new_thread)(key, nullptr, 0);
  if (!thread)
    return;
  PSI_THREAD_CALL(set_thread_os_id)(thread);
  PSI_THREAD_CALL(set_thread)(thread);
}

extern "C" {

void thread_begins(PandoThreadKind kind)
{
  begin_thread(thread_keys[kind]);
}

void thread_ends()
{
  PSI_THREAD_CALL(delete_current_thread)();
}

} // extern "C"

/* --- files --- */

PSI_file_key tree_key, log_key, other_key;

PSI_file_info files[]= {
  {&tree_key, "tree", 0},
  {&log_key, "log", 0},
  {&other_key, "other", 0},
};

bool ends_with(const std::string &text, const char *end)
{
  const size_t size= strlen(end);
  return text.size() >= size && !text.compare(text.size() - size, size, end);
}

/* Tables' files lie in directories NAME.pando, the log's in one of its own. */
PSI_file_key key_of(const std::string &path)
{
  const size_t slash= path.rfind('/');
  const std::string directory= slash == std::string::npos ? std::string() : path.substr(0, slash);
  if (ends_with(path, ".log"))
    return log_key;
  return ends_with(directory, ".pando") && !ends_with(directory, "/.pando") ? tree_key : other_key;
}

std::string path_of(PandoBytes path) { return std::string(reinterpret_cast<const char *>(path.data), path.len); }

PSI_file_operation operation_of(PandoFileOperation operation)
{
  switch (operation) {
  case PANDO_FILE_OPERATION_READ:  return PSI_FILE_READ;
  case PANDO_FILE_OPERATION_WRITE: return PSI_FILE_WRITE;
  case PANDO_FILE_OPERATION_SYNC:  return PSI_FILE_SYNC;
  }
  return PSI_FILE_READ;
}

static_assert(sizeof(PSI_file_locker_state) <= sizeof(PandoFileState) && alignof(PSI_file_locker_state) <= alignof(PandoFileState),
              "the state of an operation has room");

/* The locker is the state. */
PSI_file_locker *as_locker(PandoFileState *state) { return reinterpret_cast<PSI_file_locker *>(state); }

extern "C" {

uint64_t file_opened(PandoBytes bytes)
{
  const std::string path= path_of(bytes);
  PSI_file_locker_state state;
  PSI_file_locker *locker= PSI_FILE_CALL(get_thread_file_name_locker)(&state, key_of(path), PSI_FILE_OPEN, path.c_str(), &state);
  if (!locker)
    return 0;
  PSI_FILE_CALL(start_file_open_wait)(locker, __FILE__, __LINE__);
  return reinterpret_cast<uint64_t>(PSI_FILE_CALL(end_file_open_wait)(locker, &state));
}

void file_closed(uint64_t file)
{
  PSI_file_locker_state state;
  PSI_file_locker *locker=
    PSI_FILE_CALL(get_thread_file_stream_locker)(&state, reinterpret_cast<PSI_file *>(file), PSI_FILE_STREAM_CLOSE);
  if (!locker)
    return;
  PSI_FILE_CALL(start_file_close_wait)(locker, __FILE__, __LINE__);
  PSI_FILE_CALL(end_file_close_wait)(locker, 0);
}

void file_gone(PandoBytes bytes)
{
  const std::string path= path_of(bytes);
  PSI_file_locker_state state;
  PSI_file_locker *locker= PSI_FILE_CALL(get_thread_file_name_locker)(&state, key_of(path), PSI_FILE_DELETE, path.c_str(), &state);
  if (!locker)
    return;
  PSI_FILE_CALL(start_file_close_wait)(locker, __FILE__, __LINE__);
  PSI_FILE_CALL(end_file_close_wait)(locker, 0);
}

uint8_t file_begins(uint64_t file, PandoFileOperation operation, uint64_t bytes, PandoFileState *memory)
{
  PSI_file_locker_state *state= reinterpret_cast<PSI_file_locker_state *>(memory);
  PSI_file_locker *locker=
    PSI_FILE_CALL(get_thread_file_stream_locker)(state, reinterpret_cast<PSI_file *>(file), operation_of(operation));
  if (!locker)
    return 0;
  PSI_FILE_CALL(start_file_wait)(locker, size_t(bytes), __FILE__, __LINE__);
  return 1;
}

void file_ends(PandoFileState *state, uint64_t bytes)
{
  PSI_FILE_CALL(end_file_wait)(as_locker(state), size_t(bytes));
}

} // extern "C"

/* --- memory, mutexes --- */

/* In the order of what the engine tells. */
PSI_memory_key memory_keys[PANDO_MEMORY_USES];

PSI_memory_info memories[]= {
  {&memory_keys[0], "block_cache", PSI_FLAG_GLOBAL},
  {&memory_keys[1], "memtables", PSI_FLAG_GLOBAL},
  {&memory_keys[2], "row_locks", PSI_FLAG_GLOBAL},
  {&memory_keys[3], "loads", PSI_FLAG_GLOBAL},
  {&memory_keys[4], "queries", PSI_FLAG_GLOBAL},
  {&memory_keys[5], "other", PSI_FLAG_GLOBAL},
};

extern "C" {

/* One thread tells it, again and again: what has been added since then was allocated, what is less was freed. */
void memory(const uint64_t *uses)
{
  static uint64_t told[PANDO_MEMORY_USES];
  for (uint i= 0; i < PANDO_MEMORY_USES; i++)
  {
    PSI_thread *owner= nullptr;
    if (uses[i] > told[i])
    {
      if (!PSI_MEMORY_CALL(memory_alloc)(memory_keys[i], size_t(uses[i] - told[i]), &owner))
        continue; /* nobody looks at it now */
    }
    else if (uses[i] < told[i])
      PSI_MEMORY_CALL(memory_free)(memory_keys[i], size_t(told[i] - uses[i]), nullptr);
    told[i]= uses[i];
  }
}

} // extern "C"

PSI_mutex_key transactions_key, related_tables_key;

PSI_mutex_info mutexes[]= {
  {&transactions_key, "transactions", PSI_FLAG_GLOBAL},
  {&related_tables_key, "related_tables", PSI_FLAG_GLOBAL},
};

} // namespace

void observe_engine()
{
  mysql_thread_register(CATEGORY, threads, array_elements(threads));
  mysql_file_register(CATEGORY, files, array_elements(files));
  mysql_memory_register(CATEGORY, memories, array_elements(memories));
  mysql_mutex_register(CATEGORY, mutexes, array_elements(mutexes));
  init_mutexes(transactions_key, related_tables_key);
  const PandoObserver observer= {thread_begins, thread_ends, file_opened, file_closed, file_gone, file_begins, file_ends, memory};
  pando_observe(&observer);
}

void begin_expiry_thread()
{
  begin_thread(thread_keys[EXPIRY_THREAD]);
}

void end_thread()
{
  thread_ends();
}

#else

void observe_engine()
{
  init_mutexes(0, 0);
}

void begin_expiry_thread() {}
void end_thread() {}

#endif

} // namespace pando
