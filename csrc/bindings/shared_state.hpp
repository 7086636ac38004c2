// The locks of something that many threads read and one at a time changes, as Python needs them: held without the
// interpreter's lock, given up for Ctrl-C, and good after fork().
//
// fork() copies one thread. Locks that other threads held stay held in the child for ever, so the first call there
// makes new locks. State that was only being read is whole; state that was being changed is not, and its use raises.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/interrupt.hpp"
#include "bindings/bindings.hpp"

namespace fewfire {

class SharedState {
 public:
  SharedState();

  // Calls ask() while nothing changes.
  template <class Ask>
  auto ask(const Ask& ask) {
    return until_done([&] {
      const nb::gil_scoped_release released;
      const Locks& locks = usable();
      const std::shared_lock lock = enter(locks);
      return ask();
    });
  }

  // Calls change() alone. One that was interrupted has left everything as it was.
  template <class Change>
  auto change(const Change& change) {
    return until_done([&] {
      const nb::gil_scoped_release released;
      const Locks& locks = usable();
      const std::lock_guard turn(locks.turnstile);
      const std::unique_lock lock(locks.guard);
      const Changing changing(changing_);
      return change();
    });
  }

  // Calls note(), which is short, with no other note meanwhile.
  template <class Note>
  auto note(const Note& note) {
    const Locks& locks = usable();
    const std::lock_guard lock(locks.notes);
    return note();
  }

 private:
  struct Locks {
    mutable std::shared_mutex guard;
    mutable std::mutex turnstile, notes;
  };
  struct Changing {
    bool& flag;
    explicit Changing(bool& state) : flag(state) { flag = true; }
    ~Changing() { flag = false; }
  };

  // Calls work(). If it is interrupted, the signal's handler is called, and if that raises nothing, it starts again.
  template <class Work>
  static auto until_done(const Work& work) {
    for (;;) {
      try {
        return work();
      } catch (const Interrupted&) {
      }
      PyErr_SetInterrupt();
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  // The locks of this process.
  const Locks& usable();
  // Queries pass the turnstile one by one and a change holds it, so that a stream of queries cannot keep a change
  // waiting.
  static std::shared_lock<std::shared_mutex> enter(const Locks& locks) {
    const std::lock_guard turn(locks.turnstile);
    return std::shared_lock(locks.guard);
  }

  std::unique_ptr<Locks> locks_ = std::make_unique<Locks>();
  std::atomic<std::size_t> generation_;  // of forks, that the locks are of
  bool changing_ = false, broken_ = false;
};

}  // namespace fewfire
