// Threads for the kernels: started for one call, joined before it returns.
#pragma once

#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace fewfire {

// Calls work(0) … work(threads − 1) at once, work(0) on the calling thread; returns when all are done and passes on
// the first exception. When the system gives fewer threads than asked, the calling thread does what is left: so the
// calls may run one after another and must not wait for each other.
template <class Work>
void run_threads(std::size_t threads, const Work& work) {
  std::vector<std::exception_ptr> failures(threads);
  const auto guarded = [&](std::size_t index) {
    try {
      work(index);
    } catch (...) {
      failures[index] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(threads);
  std::size_t started = 1;
  try {
    for (; started < threads; ++started) others.emplace_back(guarded, started);
  } catch (const std::system_error&) {
  }
  guarded(0);
  for (std::size_t index = started; index < threads; ++index) guarded(index);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace fewfire
