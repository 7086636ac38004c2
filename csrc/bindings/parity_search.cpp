// The exhaustive parity search on several threads, interruptible from Python.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/parallel.hpp"
#include "bindings/bindings.hpp"
#include "kernels/parity_search.hpp"

namespace fewfire {
namespace {

// Calls work(task) for every task on at most `threads` threads while the caller looks out for Ctrl-C, which sets `stop`.
template <class Work>
void run_interruptibly(std::size_t tasks, std::size_t threads, std::atomic<bool>& stop, const Work& work) {
  {
    const nb::gil_scoped_release released;
    watched_for(tasks, threads, work, [&] {
      if (stop) return;
      const nb::gil_scoped_acquire acquired;
      if (PyErr_CheckSignals() != 0) stop = true;
    });
  }
  if (stop) throw nb::python_error();
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
        std::atomic<bool> stop{false};
        run_interruptibly(FEWFIRE_DISPATCH(parity_tasks, data), threads, stop, [&](std::size_t task) {
          if (stop) return;
          ParityBest best;
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
