// A way out of long work: Ctrl-C, as the program around this library sees it. The thread that was called asks for it;
// threads that help it learn of it from what they share (`interruptible_for` in parallel.hpp).
#pragma once

#include <atomic>

namespace fewfire {

// Thrown out of work that was asked to stop; what it worked on is as it was before.
struct Interrupted {};

// Sets the function that returns whether work is to stop; the Python module sets it, where there is one.
void set_interruption(bool (*asked)());

// Throws `Interrupted` when work is to stop. Costs some twenty nanoseconds: it checks ten times a second.
void interruption_point();

// While it lives, this thread helps another: its interruption points throw when `given_up` is set and check only that.
class Helping {
 public:
  explicit Helping(const std::atomic<bool>& given_up);
  ~Helping();
  Helping(const Helping&) = delete;

 private:
  const std::atomic<bool>* const before_;
};

// While it lives, points of this thread throw nothing: for what may not be left half done.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
};

}  // namespace fewfire
