#include "base/interrupt.hpp"

#include <atomic>
#include <chrono>

namespace fewfire {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool (*)()> asked_to_stop{nullptr};
thread_local const std::atomic<bool>* helped = nullptr;
thread_local int held_off = 0;

}  // namespace

void set_interruption(bool (*asked)()) { asked_to_stop.store(asked); }

void interruption_point() {
  if (held_off > 0) return;
  if (helped != nullptr) {
    if (helped->load(std::memory_order_relaxed)) throw Interrupted{};
    return;
  }
  thread_local Clock::time_point last{};
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(100)) return;
  last = now;
  if (bool (*const asked)() = asked_to_stop.load(); asked != nullptr && asked()) throw Interrupted{};
}

Helping::Helping(const std::atomic<bool>& given_up) : before_(helped) { helped = &given_up; }
Helping::~Helping() { helped = before_; }

Uninterrupted::Uninterrupted() { ++held_off; }
Uninterrupted::~Uninterrupted() { --held_off; }

}  // namespace fewfire
