// Preloaded into a process that writes files: counts its calls that change a file or a folder, and at a chosen one kills
// the process (before it, in the middle of a write, or after it) or lets the call fail as a disk does. Can also record
// every call with its bytes, so that a power loss can be played through afterwards. Only regular files count: pipes, over
// which tests hear from the process, do not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KILL_BEFORE, KILL_TORN, KILL_AFTER, FAIL_ONCE, FAIL_TORN, FAIL_ON };

static long chosen = -1, calls = 0;
static int action = 0, code = EIO, counting = 0, record_to = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void arm(long at, int what, int error) { chosen = at, action = what, code = error, calls = 0, counting = 1; }
long seen(void) { return calls; }
void record(int file) { record_to = file; }

static void append(const void* bytes, size_t size) { REAL(write)(record_to, bytes, size); }

static void log_call(const char* kind, const char* path, long offset, const void* bytes, size_t size) {
  char line[9000];
  if (record_to < 0) return;
  int length = snprintf(line, sizeof line, "%s\t%ld\t%zu\t%s\n", kind, offset, size, path);
  append(line, (size_t)length);
  if (bytes) append(bytes, size);
}

void note(const char* text) { log_call("note", text, 0, NULL, 0); }

static const char* path_of(int file) {
  static char path[4097];
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  return path;
}

static void log_file(const char* kind, int file, long offset, const void* bytes, size_t size) {
  if (record_to >= 0) log_call(kind, path_of(file), offset, bytes, size);
}

static int is_file(int file) {
  struct stat found;
  if (file == record_to || fstat(file, &found)) return 0;
  return S_ISREG(found.st_mode) || S_ISDIR(found.st_mode);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// Whether the disk strikes now.
static int strikes(int counts) {
  if (!counting || !counts) return 0;
  long number = calls++;
  return chosen >= 0 && (number == chosen || (action == FAIL_ON && number > chosen));
}

#define STRUCK(call_half)                                                        \
  do {                                                                           \
    if (action == KILL_BEFORE) die();                                            \
    if (action == KILL_TORN) { call_half; die(); }                               \
    if (action == FAIL_TORN) { call_half; }                                      \
    if (action != KILL_AFTER) { errno = code; return -1; }                       \
  } while (0)

ssize_t write(int file, const void* bytes, size_t size) {
  int now = strikes(is_file(file));
  if (now) STRUCK(REAL(write)(file, bytes, size / 2));
  long at = record_to >= 0 && is_file(file) ? lseek(file, 0, SEEK_CUR) : 0;
  ssize_t done = REAL(write)(file, bytes, size);
  if (now) die();
  if (done > 0 && is_file(file)) log_file("write", file, at, bytes, (size_t)done);
  return done;
}

static ssize_t pwrite_(int file, const void* bytes, size_t size, off_t at) {
  int now = strikes(is_file(file));
  if (now) STRUCK(REAL(pwrite)(file, bytes, size / 2, at));
  ssize_t done = REAL(pwrite)(file, bytes, size, at);
  if (now) die();
  if (done > 0) log_file("write", file, at, bytes, (size_t)done);
  return done;
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) { return pwrite_(file, bytes, size, at); }
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) { return pwrite_(file, bytes, size, at); }

#define PLAIN(name, parameters, arguments, counts, logged)                       \
  int name parameters {                                                          \
    int now = strikes(counts);                                                   \
    if (now) STRUCK((void)0);                                                    \
    int done = REAL(name) arguments;                                             \
    if (now) die();                                                              \
    if (done == 0) logged;                                                       \
    return done;                                                                 \
  }

PLAIN(fsync, (int file), (file), is_file(file), log_file("sync", file, 0, NULL, 0))
PLAIN(fdatasync, (int file), (file), is_file(file), log_file("sync", file, 0, NULL, 0))
PLAIN(ftruncate, (int file, off_t size), (file, size), is_file(file), log_file("truncate", file, size, NULL, 0))
PLAIN(ftruncate64, (int file, off64_t size), (file, size), is_file(file), log_file("truncate", file, size, NULL, 0))
PLAIN(unlink, (const char* path), (path), 1, log_call("unlink", path, 0, NULL, 0))
PLAIN(rename, (const char* old, const char* new), (old, new), 1, log_call("rename", old, 0, new, strlen(new)))
PLAIN(fchmod, (int file, mode_t mode), (file, mode), is_file(file), (void)0)

static int open_(const char* path, int flags, mode_t mode) {
  int now = strikes(flags & O_CREAT);
  if (now) STRUCK((void)0);
  int fresh = (flags & O_CREAT) && access(path, F_OK);
  int file = REAL(open)(path, flags, mode);
  if (now) die();
  if (file >= 0 && fresh) log_file("create", file, 0, NULL, 0);
  return file;
}
#define MODE(flags)                                                              \
  mode_t mode = 0;                                                               \
  if (flags & O_CREAT) {                                                         \
    va_list rest;                                                                \
    va_start(rest, flags);                                                       \
    mode = va_arg(rest, mode_t);                                                 \
    va_end(rest);                                                                \
  }
int open(const char* path, int flags, ...) { MODE(flags) return open_(path, flags, mode); }
int open64(const char* path, int flags, ...) { MODE(flags) return open_(path, flags, mode); }
