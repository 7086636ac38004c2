#include "base/interrupt.hpp"

#include <atomic>
#include <chrono>

namespace fewfire {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool (*)()> asked_to_stop{nullptr};

}  // namespace

void set_interruption(bool (*asked)()) { asked_to_stop.store(asked); }

void interruption_point() {
  thread_local Clock::time_point last{};
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(100)) return;
  last = now;
  if (bool (*const asked)() = asked_to_stop.load(); asked != nullptr && asked()) throw Interrupted{};
}

}  // namespace fewfire
