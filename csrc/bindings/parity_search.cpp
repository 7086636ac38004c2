// The exhaustive parity search on a pool of threads, interruptible from Python.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "bindings/bindings.hpp"
#include "kernels/parity_search.hpp"

namespace fewfire {
namespace {

// Runs `work` on that many threads, or as many as there are to be had, while the caller looks out for Ctrl-C, which
// sets `stop`.
template <class Work>
void run_interruptibly(std::size_t threads, std::atomic<bool>& stop, Work work) {
  std::mutex guard;
  std::condition_variable done;
  std::size_t running = 0;
  bool interrupted = false;
  std::exception_ptr failure;
  std::vector<std::thread> pool;
  nb::gil_scoped_release released;
  const auto run = [&] {
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(guard);
    if (error) failure = error;
    --running;
    done.notify_one();
  };
  pool.reserve(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    {
      const std::lock_guard<std::mutex> lock(guard);
      ++running;
    }
    try {
      pool.emplace_back(run);
    } catch (const std::system_error&) {
      const std::lock_guard<std::mutex> lock(guard);
      --running;
      if (pool.empty()) failure = std::current_exception();
      break;
    }
  }
  {
    std::unique_lock<std::mutex> lock(guard);
    while (!done.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      if (interrupted) continue;
      nb::gil_scoped_acquire acquired;
      interrupted = PyErr_CheckSignals() != 0;
      if (interrupted) stop = true;
    }
  }
  for (std::thread& thread : pool) thread.join();
  nb::gil_scoped_acquire acquired;
  if (interrupted) throw nb::python_error();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void bind_parity_search(nb::module_& module) {
  module.def(
      "parity_search",
      [](ConstArray2<std::uint64_t> columns, ConstArray1<std::uint64_t> labels, std::size_t examples, std::size_t size,
         std::size_t threads, Array2<std::int64_t> members, Array1<std::int64_t> correlations) {
        const std::size_t count = columns.shape(0), words = columns.shape(1);
        if (size < 1 || size > std::min(kMaxParity, count) || words != (examples + 63) / 64 || labels.shape(0) != words ||
            members.shape(0) != 2 || members.shape(1) != size || correlations.shape(0) != 2 || threads < 1)
          throw nb::value_error("an array has the wrong shape");
        ParityData data{columns.data(), labels.data(), count, words, examples, size, {}};
        FEWFIRE_DISPATCH(fill_blocks, data);
        ParityBest total;
        std::mutex guard;
        std::atomic<std::size_t> next{0};
        std::atomic<bool> stop{false};
        const std::size_t tasks = FEWFIRE_DISPATCH(parity_tasks, data);
        run_interruptibly(std::min(threads, tasks), stop, [&] {
          ParityBest best;
          for (std::size_t task; !stop && (task = next.fetch_add(1)) < tasks;)
            FEWFIRE_DISPATCH(search_parities, data, task, stop, best);
          const std::lock_guard<std::mutex> lock(guard);
          FEWFIRE_DISPATCH(consider, total, best.first, size);
          FEWFIRE_DISPATCH(consider, total, best.second, size);
          total.sets += best.sets;
          total.words += best.words;
        });
        const ParityHit* hits[2] = {&total.first, &total.second};
        for (std::size_t i = 0; i < 2; ++i) {
          correlations.data()[i] = hits[i]->correlation;
          for (std::size_t d = 0; d < size; ++d)
            members.data()[i * size + d] = hits[i]->strength < 0 ? -1 : static_cast<std::int64_t>(hits[i]->members[d]);
        }
        return std::vector<std::uint64_t>{total.sets, total.words};
      },
      nb::arg("columns").noconvert(), nb::arg("labels").noconvert(), nb::arg("examples"), nb::arg("size"),
      nb::arg("threads"), nb::arg("members").noconvert(), nb::arg("correlations").noconvert());
}

}  // namespace fewfire
