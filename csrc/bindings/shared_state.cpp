#include "bindings/shared_state.hpp"

#include <new>
#include <stdexcept>
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace fewfire {
namespace {

// How many forks lie between the process that loaded the module and this one, and the lock that new locks are made under.
std::atomic<std::size_t> generation{0};
alignas(std::mutex) unsigned char renewing_place[sizeof(std::mutex)];
std::mutex* renewing = new (renewing_place) std::mutex;

// Runs in the child, which has one thread.
void enter_child() {
  generation.fetch_add(1);
  renewing = new (renewing_place) std::mutex;
}

bool interruption_asked() {
  const nb::gil_scoped_acquire acquired;
  return PyOS_InterruptOccurred() != 0;
}

void watch_process() {
  static const bool watching = [] {
    set_interruption(interruption_asked);
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, enter_child);
#endif
    return true;
  }();
  (void)watching;
}

}  // namespace

SharedState::SharedState() {
  watch_process();
  generation_ = generation.load();
}

const SharedState::Locks& SharedState::usable() {
  if (generation_.load(std::memory_order_acquire) != generation.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(*renewing);
    if (generation_.load(std::memory_order_relaxed) != generation.load(std::memory_order_relaxed)) {
      auto fresh = std::make_unique<Locks>();
      (void)locks_.release();  // held by threads that are gone, so not to be destroyed
      locks_ = std::move(fresh);
      broken_ = changing_;
      generation_.store(generation.load(std::memory_order_relaxed), std::memory_order_release);
    }
  }
  if (broken_)
    throw std::runtime_error(
        "this index was being changed by another thread when the process was forked, so the child's copy is not whole. "
        "Remedy: make it in the child, or fork between changes");
  return *locks_;
}

}  // namespace fewfire
