// Threads for the kernels. They are started when work asks for them and then wait for more, since starting one costs as
// much as a small query. All of C++ gets its threads here.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <thread>

#include "base/interrupt.hpp"

namespace fewfire {

// Pieces of work that threads share: work(0) … work(pieces − 1), each once, by the first free thread. A thread that
// cannot be started is done without, for whatever reason (no more threads, no memory for one): the pieces are then done
// by the threads there are, at least the calling one. Stands on the caller's stack; helpers point to it while they are
// counted in `helping_`, under the lock of all threads.
class SharedWork {
 public:
  using Call = void (*)(const void* work, std::size_t piece);

  // Asks for at most `helpers` threads, those that wait for work first.
  SharedWork(std::size_t pieces, std::size_t helpers, Call call, const void* work);
  SharedWork(const SharedWork&) = delete;

  // How many will come, unless the pieces are gone before.
  std::size_t promised() const { return promised_; }

  // Does what is left of the pieces; returns when all are done and passes on the first exception. A helper that has not
  // begun when the pieces are gone is not waited for. To be called once, before the end.
  void join_in();

  // The same for pieces that have interruption points: while the last of them are waited for, `given_up` is set when
  // work is to stop.
  void join_in(std::atomic<bool>& given_up);

  // Leaves the pieces to the helpers, of which there has to be one, until they are done or so much time has passed.
  bool wait_for(std::chrono::milliseconds time);

 private:
  friend class Crew;
  void take_pieces();

  const std::size_t pieces_;
  const Call call_;
  const void* const work_;
  std::size_t promised_ = 0, wanted_ = 0;  // helpers in all, and those not yet here
  std::atomic<std::size_t> next_{0}, helping_{0};
  std::condition_variable left_;
  std::exception_ptr failure_;
  SharedWork *before_ = nullptr, *after_ = nullptr;  // in the list of work that can use helpers
};

template <class Work>
void call_work(const void* work, std::size_t piece) {
  (*static_cast<const Work*>(work))(piece);
}

// Calls work(0) … work(pieces − 1), each once, on at most `threads` threads, the calling one among them; returns when
// all are done and passes on the first exception, and throws none but those of `work`. Each thread takes the next piece
// when it is done with one, so a busy core delays only what it holds. Calls may run one after another, so they must not
// wait for each other.
template <class Work>
void parallel_for(std::size_t pieces, std::size_t threads, const Work& work) {
  const std::size_t most = std::min(threads, pieces);
  if (most > 1) return SharedWork(pieces, most - 1, call_work<Work>, &work).join_in();
  for (std::size_t piece = 0; piece < pieces; ++piece) work(piece);
}

// The same for work that may be left at any interruption point, in pieces of whatever length: `Interrupted` comes out
// some tenth of a second after Ctrl-C, when all threads have left it.
template <class Work>
void interruptible_for(std::size_t pieces, std::size_t threads, const Work& work) {
  const std::size_t most = std::min(threads, pieces);
  if (most <= 1) return parallel_for(pieces, threads, work);
  std::atomic<bool> given_up{false};
  const auto guarded = [&, caller = std::this_thread::get_id()](std::size_t piece) {
    const bool helps = std::this_thread::get_id() != caller;
    try {
      if (!helps) return work(piece);
      const Helping helping(given_up);
      work(piece);
    } catch (const Interrupted&) {
      // A helper is interrupted only after `given_up` is set. Its reason is passed on by the thread that set it.
      if (helps) return;
      given_up.store(true, std::memory_order_relaxed);
      throw;
    } catch (...) {
      given_up.store(true, std::memory_order_relaxed);
      throw;
    }
  };
  SharedWork(pieces, most - 1, call_work<decltype(guarded)>, &guarded).join_in(given_up);
}

// As parallel_for on helpers alone, while the calling thread calls watch() every tenth of a second, for signals that only it
// can see; watch must not throw. Where no helper can be had, the calling thread works and looks after each piece.
template <class Work, class Watch>
void watched_for(std::size_t pieces, std::size_t threads, const Work& work, const Watch& watch) {
  if (const std::size_t most = std::min(threads, pieces); most > 0) {
    SharedWork shared(pieces, most, call_work<Work>, &work);
    if (shared.promised() > 0) {
      while (!shared.wait_for(std::chrono::milliseconds(100))) watch();
      return shared.join_in();
    }
  }
  for (std::size_t piece = 0; piece < pieces; ++piece) work(piece), watch();
}

// Calls work(0) … work(threads − 1), each once, at the same time where there are threads for it: for work that keeps
// something of its own, such as a buffer, under its number.
template <class Work>
void run_threads(std::size_t threads, const Work& work) {
  parallel_for(threads, threads, work);
}

// Ends the threads that wait for work, as every fork() does; the next work starts others.
void dismiss_threads();

}  // namespace fewfire
