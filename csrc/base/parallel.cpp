#include "base/parallel.hpp"

#include <mutex>
#include <new>
#include <thread>
#include <utility>
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fewfire {
namespace {

// Signals are for the program's own threads: while this lives, threads are born with none but of their own faults.
class SignalsHeldBack {
#if defined(__unix__) || defined(__APPLE__)
 public:
  SignalsHeldBack() {
    sigset_t held;
    sigfillset(&held);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&held, fault);
    pthread_sigmask(SIG_SETMASK, &held, &before_);
  }
  ~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
#endif
};

// Waits some twenty microseconds at most without giving up the core, less than sleeping and waking may take.
template <class Holds>
bool soon(const Holds& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
  do {
    for (int i = 0; i < 16; ++i) {
      if (holds()) return true;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

// The threads there are. Every promise to a work has a thread of its own that waits (or is being born), so that no work
// waits for another one to end: parked_ ≥ promised_ at all times.
class Crew {
 public:
  // Of this process; never destroyed, because threads wait at it when the process ends.
  static Crew& get();

  void post(SharedWork& work, std::size_t helpers) {
    const std::lock_guard lock(mutex_);
    if (dismissing_ > 0) return;
    while (work.wanted_ < helpers && (parked_ > promised_ || start())) ++work.wanted_, ++promised_;
    work.promised_ = work.wanted_;
    if (work.wanted_ == 0) return;
    work.before_ = last_;
    (last_ ? last_->after_ : first_) = &work;
    last_ = &work;
    for (std::size_t i = 0; i < work.wanted_; ++i) work_.notify_one();
  }

  // Withdraws the requests that no thread has taken, and waits for the threads that have taken one.
  void close(SharedWork& work) {
    std::unique_lock lock(mutex_);
    if (work.wanted_ > 0) {
      promised_ -= work.wanted_, work.wanted_ = 0;
      unlink(work);
    }
    const auto alone = [&] { return work.helping_.load(std::memory_order_relaxed) == 0; };
    if (alone()) return;
    lock.unlock();
    soon(alone);
    lock.lock();
    work.left_.wait(lock, alone);
  }

  bool wait_for(SharedWork& work, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return work.left_.wait_for(lock, time, [&] { return work.helping_ == 0 && work.next_ >= work.pieces_; });
  }

  void fail(SharedWork& work, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!work.failure_) work.failure_ = std::move(failure);
  }

  // Ends all threads until resume(): the waiting ones at once, the working ones when their piece is done.
  void dismiss() {
    std::unique_lock lock(mutex_);
    ++dismissing_;
    work_.notify_all();
    gone_.wait(lock, [&] { return parked_ == 0; });
    Worker* leaving = std::exchange(leaving_, nullptr);
    lock.unlock();
    while (leaving != nullptr) {
      leaving->thread.join();
      delete std::exchange(leaving, leaving->next);
    }
  }
  void resume() {
    const std::lock_guard lock(mutex_);
    --dismissing_;
  }

 private:
  struct Worker {
    std::thread thread;
    Worker* next = nullptr;  // of those that leave
  };

  bool start() {
    Worker* worker = new (std::nothrow) Worker;
    if (worker == nullptr) return false;
    try {
      const SignalsHeldBack held;
      worker->thread = std::thread([this, worker] { serve(worker); });
    } catch (...) {
      delete worker;
      return false;
    }
    ++parked_;
    return true;
  }

  void serve(Worker* worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return first_ != nullptr || dismissing_ > 0; });
      if (first_ == nullptr) break;
      SharedWork& work = *first_;
      --parked_, --promised_;
      if (--work.wanted_ == 0) unlink(work);
      work.helping_.fetch_add(1, std::memory_order_relaxed);
      if (parked_ == 0) gone_.notify_all();
      lock.unlock();
      work.take_pieces();
      lock.lock();
      if (work.helping_.fetch_sub(1, std::memory_order_relaxed) == 1) work.left_.notify_one();
      ++parked_;
    }
    worker->next = std::exchange(leaving_, worker);
    if (--parked_ == 0) gone_.notify_all();
  }

  void unlink(SharedWork& work) {
    (work.before_ ? work.before_->after_ : first_) = work.after_;
    (work.after_ ? work.after_->before_ : last_) = work.before_;
  }

  std::mutex mutex_;
  std::condition_variable work_, gone_;
  SharedWork *first_ = nullptr, *last_ = nullptr;  // work that can use helpers, oldest first
  std::size_t parked_ = 0, promised_ = 0, dismissing_ = 0;
  Worker* leaving_ = nullptr;
};

namespace {

alignas(Crew) unsigned char crew_place[sizeof(Crew)];

void make_crew() { new (crew_place) Crew; }

// fork() copies one thread and the locks of all, so no thread waits while it runs, and the child begins anew.
[[maybe_unused]] const bool made = [] {
  make_crew();
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork([] { Crew::get().dismiss(); }, [] { Crew::get().resume(); }, make_crew);
#endif
  return true;
}();

}  // namespace

Crew& Crew::get() { return *std::launder(reinterpret_cast<Crew*>(crew_place)); }

SharedWork::SharedWork(std::size_t pieces, std::size_t helpers, Call call, const void* work)
    : pieces_(pieces), call_(call), work_(work) {
  Crew::get().post(*this, helpers);
}

void SharedWork::join_in() {
  take_pieces();
  if (promised_ > 0) Crew::get().close(*this);
  if (failure_) std::rethrow_exception(failure_);
}

void SharedWork::join_in(std::atomic<bool>& given_up) {
  take_pieces();
  std::exception_ptr stopped;
  if (promised_ > 0) {
    if (!soon([&] { return helping_.load(std::memory_order_relaxed) == 0; })) {
      while (!stopped && !wait_for(std::chrono::milliseconds(100))) {
        try {
          interruption_point();
        } catch (...) {
          given_up.store(true, std::memory_order_relaxed);
          stopped = std::current_exception();
        }
      }
    }
    Crew::get().close(*this);
  }
  if (failure_) std::rethrow_exception(failure_);
  if (stopped) std::rethrow_exception(stopped);
}

bool SharedWork::wait_for(std::chrono::milliseconds time) { return Crew::get().wait_for(*this, time); }

void SharedWork::take_pieces() {
  try {
    for (std::size_t piece; (piece = next_.fetch_add(1, std::memory_order_relaxed)) < pieces_;) call_(work_, piece);
  } catch (...) {
    next_.store(pieces_, std::memory_order_relaxed);
    Crew::get().fail(*this, std::current_exception());
  }
}

void dismiss_threads() {
  Crew::get().dismiss();
  Crew::get().resume();
}

}  // namespace fewfire
