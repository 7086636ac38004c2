// Threads for the kernels: started for one call, gone when it returns. All of C++ starts its threads here.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

namespace fewfire {

// Threads that help with pieces of work. A thread that cannot be started is done without, for whatever reason (no more
// threads, no memory for one): the pieces are then done by those there are, the calling one at least.
template <class Work>
class Helpers {
 public:
  // Starts at most `count` threads that call work(0) … work(pieces − 1), each once and by whoever comes first.
  Helpers(std::size_t pieces, std::size_t count, const Work& work) : pieces_(pieces), work_(work) {
    try {
      if (count > 0) shared_ = std::make_shared<Shared>();
      for (; started_ < count; ++started_) {
        std::thread([shared = shared_, pieces, &work] {
          {
            const std::lock_guard lock(shared->mutex);
            if (shared->closed) return;  // the caller has gone on, and `work` with it
            ++shared->helping;
          }
          take_pieces(*shared, pieces, work);
          const std::lock_guard lock(shared->mutex);
          if (--shared->helping == 0) shared->left.notify_one();
        }).detach();
      }
    } catch (...) {
    }
  }

  std::size_t started() const { return started_; }

  // Does what is left of the pieces; returns when all are done and passes on the first exception. A helper that has not
  // begun when the pieces are gone is not waited for.
  void join_in() {
    if (!shared_) {
      for (std::size_t piece = 0; piece < pieces_; ++piece) work_(piece);
      return;
    }
    take_pieces(*shared_, pieces_, work_);
    std::unique_lock lock(shared_->mutex);
    shared_->closed = true;
    shared_->left.wait(lock, [&] { return shared_->helping == 0; });
    if (shared_->failure) std::rethrow_exception(shared_->failure);
  }

  // Leaves the pieces to the helpers, of which there has to be one, and calls watch() every tenth of a second.
  template <class Watch>
  void look_on(const Watch& watch) {
    {
      std::unique_lock lock(shared_->mutex);
      const auto done = [&] { return shared_->helping == 0 && shared_->next.load() >= pieces_; };
      while (!shared_->left.wait_for(lock, std::chrono::milliseconds(100), done)) {
        lock.unlock();
        watch();
        lock.lock();
      }
    }
    join_in();
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable left;
    std::size_t helping = 0;
    bool closed = false;
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
  };

  static void take_pieces(Shared& shared, std::size_t pieces, const Work& work) {
    try {
      for (std::size_t piece; (piece = shared.next.fetch_add(1, std::memory_order_relaxed)) < pieces;) work(piece);
    } catch (...) {
      shared.next.store(pieces, std::memory_order_relaxed);
      const std::lock_guard lock(shared.mutex);
      if (!shared.failure) shared.failure = std::current_exception();
    }
  }

  std::size_t pieces_, started_ = 0;
  const Work& work_;
  std::shared_ptr<Shared> shared_;
};

// Calls work(0) … work(pieces − 1), each once, on at most `threads` threads, the calling one among them; returns when
// all are done and passes on the first exception, and throws none but those of `work`. Each thread takes the next piece
// when it is done with one, so a busy core delays only what it holds. Calls may run one after another, so they must not
// wait for each other.
template <class Work>
void parallel_for(std::size_t pieces, std::size_t threads, const Work& work) {
  const std::size_t most = std::min(threads, pieces);
  Helpers<Work>(pieces, most > 1 ? most - 1 : 0, work).join_in();
}

// The same on helpers alone, while the calling thread calls watch() every tenth of a second, for signals that only it
// can see; watch must not throw. Where no helper can be started, the calling thread works and looks after each piece.
template <class Work, class Watch>
void watched_for(std::size_t pieces, std::size_t threads, const Work& work, const Watch& watch) {
  Helpers<Work> helpers(pieces, std::min(threads, pieces), work);
  if (helpers.started() > 0) return helpers.look_on(watch);
  for (std::size_t piece = 0; piece < pieces; ++piece) work(piece), watch();
}

// Calls work(0) … work(threads − 1), each once, at the same time where there are threads for it: for work that keeps
// something of its own, such as a buffer, under its number.
template <class Work>
void run_threads(std::size_t threads, const Work& work) {
  parallel_for(threads, threads, work);
}

}  // namespace fewfire
