// Threads for the kernels: started for one call, gone when it returns.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace fewfire {

// Calls work(0) … work(pieces − 1), each once, on at most `threads` threads, the calling one among them; returns when
// all are done and passes on the first exception. Each thread takes the next piece when it is done with one, so a busy
// core delays only what it holds, and a helper that has not begun when the pieces are gone is not waited for. Calls
// may run one after another, so they must not wait for each other.
template <class Work>
void parallel_for(std::size_t pieces, std::size_t threads, const Work& work) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable left;
    std::size_t helping = 0;
    bool closed = false;
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
  };
  const auto shared = std::make_shared<Shared>();
  const auto take_pieces = [pieces, &work](Shared& state) {
    try {
      for (std::size_t piece; (piece = state.next.fetch_add(1, std::memory_order_relaxed)) < pieces;) work(piece);
    } catch (...) {
      state.next.store(pieces, std::memory_order_relaxed);
      const std::lock_guard lock(state.mutex);
      if (!state.failure) state.failure = std::current_exception();
    }
  };
  try {
    for (std::size_t helper = 1; helper < std::min(threads, pieces); ++helper)
      std::thread([shared, take_pieces] {
        {
          const std::lock_guard lock(shared->mutex);
          if (shared->closed) return;  // the caller has gone on, and `work` with it
          ++shared->helping;
        }
        take_pieces(*shared);
        const std::lock_guard lock(shared->mutex);
        if (--shared->helping == 0) shared->left.notify_one();
      }).detach();
  } catch (const std::system_error&) {  // no more threads to be had: the ones there are do it
  }
  take_pieces(*shared);
  std::unique_lock lock(shared->mutex);
  shared->closed = true;
  shared->left.wait(lock, [&] { return shared->helping == 0; });
  if (shared->failure) std::rethrow_exception(shared->failure);
}

// Calls work(0) … work(threads − 1), each once, at the same time where there are threads for it: for work that keeps
// something of its own, such as a buffer, under its number.
template <class Work>
void run_threads(std::size_t threads, const Work& work) {
  parallel_for(threads, threads, work);
}

}  // namespace fewfire
