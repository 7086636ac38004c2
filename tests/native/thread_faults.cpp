// Threads that cannot be started, and memory for them that cannot be had: csrc/base/parallel.hpp does every piece of
// work once whichever of them fail, passes on what the work throws, and nothing else. Threads that can are started once,
// and a child of fork() starts its own.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

#include "base/parallel.hpp"

namespace {

std::atomic<long> started{0}, starts{0}, allocations{0}, refused_start{-1}, refused_allocation{-1};
std::atomic<bool> lasting{false};

bool refused(std::atomic<long>& count, const std::atomic<long>& at) {
  if (at < 0) return false;
  const long now = count.fetch_add(1);
  return now == at || (lasting && now > at);
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (refused(starts, refused_start)) return EAGAIN;
  ++started;
  return create(thread, attributes, start, argument);
}

void* operator new(std::size_t size) {
  void* memory = refused(allocations, refused_allocation) ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr std::size_t pieces = 40, threads = 6;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s\n", what);
  std::exit(1);
}

// Each piece once, whatever fails.
template <class Run>
void all_done(const Run& run, const char* what) {
  std::vector<std::atomic<int>> done(pieces);
  run([&](std::size_t piece) { ++done[piece]; });
  for (const auto& times : done) check(times == 1, what);
}

// The work's own exception arrives.
template <class Run>
void passed_on(const Run& run, const char* what) {
  bool caught = false;
  try {
    run([](std::size_t piece) {
      if (piece == 7) throw std::out_of_range("seven");
    });
  } catch (const std::out_of_range&) {
    caught = true;
  }
  check(caught, what);
}

// What a helper throws arrives although the others, which are interrupted by it, may end before it is recorded.
void failure_comes_before_interruptions() {
  for (int i = 0; i < 300; ++i) {
    bool caught = false;
    try {
      fewfire::interruptible_for(threads, threads, [](std::size_t piece) {
        if (piece == 1) throw std::out_of_range("one");
        if (piece > 1)
          for (int turn = 0; turn < 100000; ++turn) fewfire::interruption_point();
      });
    } catch (const std::out_of_range&) {
      caught = true;
    } catch (const fewfire::Interrupted&) {
    }
    check(caught, "an exception was taken for an interruption");
  }
}

// Endless work, nested too, is left by all threads once the calling one is asked to stop; what may not be left is not.
void given_up() {
  fewfire::set_interruption([] { return true; });
  bool caught = false;
  try {
    fewfire::interruptible_for(pieces, threads, [](std::size_t) {
      fewfire::interruptible_for(2, 2, [](std::size_t) {
        for (;;) fewfire::interruption_point();
      });
    });
  } catch (const fewfire::Interrupted&) {
    caught = true;
  }
  check(caught, "work was not given up");
  const fewfire::Uninterrupted whole;
  for (int i = 0; i < 1000; ++i) fewfire::interruption_point();
  fewfire::set_interruption(nullptr);
}

void try_all() {
  const auto plain = [](const auto& work) { fewfire::parallel_for(pieces, threads, work); };
  const auto watched = [](const auto& work) { fewfire::watched_for(pieces, threads, work, [] {}); };
  const auto interruptible = [](const auto& work) { fewfire::interruptible_for(pieces, threads, work); };
  all_done(plain, "parallel_for left a piece out"), all_done(watched, "watched_for left a piece out");
  all_done(interruptible, "interruptible_for left a piece out");
  passed_on(plain, "parallel_for lost an exception"), passed_on(watched, "watched_for lost an exception");
  passed_on(interruptible, "interruptible_for lost an exception");
  given_up();
}

// The threads of this process, as Linux counts them.
long living() {
  long count = -1;
  std::FILE* file = std::fopen("/proc/self/stat", "r");
  if (file == nullptr) return count;
  if (std::fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &count) != 1)
    count = -1;
  std::fclose(file);
  return count;
}

// A child that computes, and children of it.
void fork_and_try(int depth) {
  const pid_t child = fork();
  check(child >= 0, "fork failed");
  if (child == 0) {
    try_all();
    if (depth > 1) fork_and_try(depth - 1);
    std::_Exit(0);
  }
  int status = 1;
  check(waitpid(child, &status, 0) == child && status == 0, "a child could not compute");
}

}  // namespace

int main() {
  long tries = 0;
  try_all();
  failure_comes_before_interruptions();
  const long after_first = started;
  for (int i = 0; i < 20; ++i) try_all();
  check(after_first > 0 && started <= after_first + static_cast<long>(threads), "threads were started again and again");
  fewfire::dismiss_threads();
  check(living() <= 1, "a thread was left after all were dismissed");
  for (int i = 0; i < 10; ++i) fork_and_try(2), try_all();
  for (const bool all : {false, true})
    for (long n = 0; n < static_cast<long>(2 * threads); ++n, ++tries) {
      lasting = all;
      fewfire::dismiss_threads();
      starts = 0, refused_start = n;
      try_all();
      check(starts > 0, "no thread was started through pthread_create");
      refused_start = -1;
      // Of memory: an exception of the work's own needs some, so only what is done is looked at.
      std::vector<std::atomic<int>> done(pieces);
      const auto work = [&](std::size_t piece) { ++done[piece]; };
      fewfire::dismiss_threads();
      allocations = 0, refused_allocation = n;
      fewfire::parallel_for(pieces, threads, work), fewfire::watched_for(pieces, threads, work, [] {});
      refused_allocation = -1;
      for (const auto& times : done) check(times == 2, "a piece was left out for want of memory");
    }
  std::printf("{\"injected\": %ld}\n", 2 * tries);
}
