/* Loaded into a server (LD_PRELOAD): kills it at the n-th thing that it does to its logs.

   A thing is a write to or a sync of the binary log, tc.log, InnoDB's log or Pando's log; if KILLER_DDL is set, also
   the log of DDL, and the files with definitions of tables, which are renamed and removed, too; if KILLER_DIRECTORIES is
   set, also a sync of a directory. If KILLER_NO_LOGS is set, it is files with definitions and directories of databases only: what
   a server does in the background is not among these, so that every run has the same steps. The test
   arms it by a file that holds n, and whether the n-th is still to be done: "12 before" or "12 after".
   The file is taken away when it has been read. What was done is noted in another file, so that the test can
   say between which two steps the server died.  */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t mutex= PTHREAD_MUTEX_INITIALIZER;
static int is_armed, is_after, left;

/* The file's name if what is done to it counts. */
static const char *counts(const char *path)
{
  const char *name= strrchr(path, '/');
  name= name ? name + 1 : path;
  size_t length= strlen(name);
  if (getenv("KILLER_DDL") && length > 4 && (!strcmp(name + length - 4, ".frm") || !strcmp(name + length - 4, ".par")))
    return name;
  if (getenv("KILLER_NO_LOGS"))
    return NULL;
  if (getenv("KILLER_DDL") && !strcmp(name, "ddl_recovery.log"))
    return name;
  if (!strncmp(name, "binlog.0", 8) || !strcmp(name, "tc.log") || !strncmp(name, "ib_logfile", 10) ||
      (!strncmp(name, "pando-", 6) && strstr(name, ".log")))
    return name;
  return NULL;
}

static const char *log_of(int fd)
{
  char link[64];
  static __thread char path[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length= readlink(link, path, sizeof path - 1);
  if (length < 0)
    return NULL;
  path[length]= 0;
  return counts(path);
}

/* What an fsync of this counts as. */
static const char *synced(int fd)
{
  char link[64];
  static __thread char path[512];
  struct stat found;
  if (!getenv("KILLER_DIRECTORIES") || fstat(fd, &found) || !S_ISDIR(found.st_mode))
    return log_of(fd);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length= readlink(link, path, sizeof path - 1);
  if (length < 0)
    return NULL;
  path[length]= 0;
  const char *name= strrchr(path, '/');
  name= name ? name + 1 : path;
  return getenv("KILLER_NO_LOGS") && strchr(name, '.') ? NULL : name;
}

static void arm(void)
{
  const char *name= getenv("KILLER_ORDER");
  int fd= name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0)
    return;
  char text[64]= "";
  ssize_t length= read(fd, text, sizeof text - 1);
  close(fd);
  unlink(name);
  char when[16]= "";
  if (length > 0 && sscanf(text, "%d %15s", &left, when) == 2)
  {
    is_armed= 1;
    is_after= !strcmp(when, "after");
  }
}

/* Whether this is the thing to die after. */
static int step(const char *what, const char *name)
{
  if (!name)
    return 0;
  int die_after= 0;
  pthread_mutex_lock(&mutex);
  if (!is_armed)
    arm();
  if (is_armed)
  {
    const char *notes= getenv("KILLER_NOTES");
    FILE *file= notes ? fopen(notes, "ae") : NULL;
    if (file)
    {
      fprintf(file, "%s %s\n", what, name);
      fclose(file);
    }
    if (--left <= 0)
    {
      if (!is_after)
        kill(getpid(), SIGKILL);
      die_after= 1;
    }
  }
  pthread_mutex_unlock(&mutex);
  return die_after;
}

#define FINISH(result, die)                                                                                       \
  do                                                                                                               \
  {                                                                                                                \
    if (die)                                                                                                       \
      kill(getpid(), SIGKILL);                                                                                     \
    return result;                                                                                                 \
  } while (0)

#define REAL(type, name, ...)                                                                                      \
  static type (*real)(__VA_ARGS__);                                                                                \
  if (!real)                                                                                                       \
    real= (type (*)(__VA_ARGS__)) dlsym(RTLD_NEXT, name)

int fsync(int fd)
{
  REAL(int, "fsync", int);
  int die= step("sync", synced(fd));
  int result= real(fd);
  FINISH(result, die);
}

int fdatasync(int fd)
{
  REAL(int, "fdatasync", int);
  int die= step("sync", log_of(fd));
  int result= real(fd);
  FINISH(result, die);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
  REAL(ssize_t, "write", int, const void *, size_t);
  int die= step("write", log_of(fd));
  ssize_t result= real(fd, bytes, size);
  FINISH(result, die);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
  int die= step("write", log_of(fd));
  ssize_t result= real(fd, bytes, size, offset);
  FINISH(result, die);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
  int die= step("write", log_of(fd));
  ssize_t result= real(fd, bytes, size, offset);
  FINISH(result, die);
}

int rename(const char *from, const char *to)
{
  REAL(int, "rename", const char *, const char *);
  int die= step("rename", getenv("KILLER_DDL") ? counts(from) : NULL);
  int result= real(from, to);
  FINISH(result, die);
}

int unlink(const char *path)
{
  REAL(int, "unlink", const char *);
  int die= step("unlink", getenv("KILLER_DDL") ? counts(path) : NULL);
  int result= real(path);
  FINISH(result, die);
}

int msync(void *address, size_t length, int flags)
{
  REAL(int, "msync", void *, size_t, int);
  int die= step("sync", "tc.log"); /* the only file that is mapped */
  int result= real(address, length, flags);
  FINISH(result, die);
}
