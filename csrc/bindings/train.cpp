// The CPU engine's runs as Python objects, and the threads that advance them. Losses, activations, ways of sampling and
// reasons to stop go by their names.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "base/parallel.hpp"
#include "bindings/bindings.hpp"
#include "bindings/named.hpp"
#include "kernels/train.hpp"

namespace fewfire {
namespace {

using Clock = std::chrono::steady_clock;

struct Trainer {
  TrainingRun run;
  bool prepared = false;
  // The arrays the run points into.
  nb::object train_table, train_labels, test_table, test_labels;

  bool needs_rows() const {
    return run.stopped == Stop::running && run.sampling == Sampling::online &&
           run.position + run.phases[run.phase].batch > run.origin + run.train.rows;
  }
};

Examples examples_of_bits(const TrainingRun& run, const ConstArray2<std::uint64_t>& bits, const ConstArray1<float>& y) {
  if (bits.shape(1) != (run.inputs + 63) / 64 || y.shape(0) != bits.shape(0))
    throw nb::value_error("bits or labels have the wrong shape");
  return {bits.data(), nullptr, y.data(), bits.shape(0), bits.shape(1)};
}

Examples examples_of_rows(const TrainingRun& run, const ConstArray2<float>& rows, const ConstArray1<float>& y) {
  if (rows.shape(1) != run.inputs || y.shape(0) != rows.shape(0))
    throw nb::value_error("rows or labels have the wrong shape");
  return {nullptr, rows.data(), y.data(), rows.shape(0), 0};
}

template <class Table, class Make>
void set_examples(Trainer& self, bool test, Table table, ConstArray1<float> labels, Make make) {
  (test ? self.run.test : self.run.train) = make(self.run, table, labels);
  (test ? self.test_table : self.train_table) = nb::cast(table);
  (test ? self.test_labels : self.train_labels) = nb::cast(labels);
}

void add_phase(Trainer& self, std::size_t steps, std::size_t batch, ConstArray2<double> rate, ConstArray2<double> keep,
               ConstArray2<double> truncation) {
  const auto copy = [&](const ConstArray2<double>& table) {
    if (table.shape(1) != 4 || table.shape(0) != rate.shape(0)) throw nb::value_error("a rate table has the wrong shape");
    return std::vector<double>(table.data(), table.data() + 4 * table.shape(0));
  };
  if (rate.shape(0) != 1 && rate.shape(0) != steps) throw nb::value_error("rate tables have one row, or one per step");
  PhaseTable phase;
  phase.steps = steps;
  phase.batch = batch;
  phase.varies = rate.shape(0) != 1;
  phase.rate = copy(rate);
  phase.keep = copy(keep);
  phase.truncation = copy(truncation);
  self.run.phases.push_back(std::move(phase));
}

// Works on the runs in order, one thread per run, until each has ended or needs rows, or the time is over.
void advance_all(const std::vector<Trainer*>& trainers, double seconds, std::size_t threads) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::atomic<std::size_t> next{0};
  run_threads(std::min(threads, trainers.size()), [&](std::size_t) {
    for (std::size_t i; (i = next.fetch_add(1)) < trainers.size();) {
      Trainer& trainer = *trainers[i];
      if (!trainer.prepared) {
        FEWFIRE_DISPATCH(prepare, trainer.run);
        trainer.prepared = true;
      }
      std::size_t slice = 1;  // doubled until a slice is worth looking at the clock for
      while (trainer.run.stopped == Stop::running && Clock::now() < deadline) {
        const auto start = Clock::now();
        if (FEWFIRE_DISPATCH(advance, trainer.run, slice) < slice) break;
        if (Clock::now() - start < std::chrono::milliseconds(5)) slice *= 2;
      }
      if (Clock::now() >= deadline) return;
    }
  });
}

void export_to(Trainer& self, Array2<float> hidden, Array1<float> bias, Array1<float> output) {
  TrainingRun& run = self.run;
  if (hidden.shape(0) != run.width || hidden.shape(1) != run.inputs || bias.shape(0) != run.width ||
      output.shape(0) != run.width)
    throw nb::value_error("an array has the wrong shape");
  FEWFIRE_DISPATCH(export_weights, run, hidden.data());
  std::copy(run.bias.begin(), run.bias.end(), bias.data());
  std::copy(run.output.begin(), run.output.end(), output.data());
}

}  // namespace

void bind_train(nb::module_& module) {
  module.attr("LOSSES") = names_of(losses);
  module.attr("ACTIVATIONS") = names_of(activations);
  module.attr("SAMPLINGS") = names_of(samplings);
  nb::class_<Trainer>(module, "Trainer")
      .def(
          "__init__",
          [](Trainer* self, ConstArray2<float> hidden, ConstArray1<float> bias, ConstArray1<float> output, double offset,
             const std::string& loss, const std::string& activation, float threshold, const std::string& sampling,
             bool boolean_labels, std::uint64_t key,
             std::uint64_t batch_stream, std::uint64_t epoch_stream, double stop_error,
             std::vector<std::size_t> checkpoints, std::vector<std::size_t> support) {
            if (bias.shape(0) != hidden.shape(0) || output.shape(0) != hidden.shape(0) || checkpoints.empty())
              throw nb::value_error("an array has the wrong shape");
            for (std::size_t input : support)
              if (input >= hidden.shape(1)) throw nb::value_error("support names an input that does not exist");
            const LossKind loss_kind = kind_of("loss", loss, losses);
            const ActivationKind activation_kind = kind_of("activation", activation, activations);
            const Sampling way = kind_of("sampling", sampling, samplings);
            new (self) Trainer();
            TrainingRun& run = self->run;
            run.width = hidden.shape(0);
            run.inputs = hidden.shape(1);
            run.loss = loss_kind;
            run.activation = activation_kind;
            run.threshold = threshold;
            run.sampling = way;
            run.boolean_labels = boolean_labels;
            run.key = key;
            run.batch_stream = batch_stream;
            run.epoch_stream = epoch_stream;
            run.stop_error = stop_error;
            run.checkpoints = std::move(checkpoints);
            run.support = std::move(support);
            run.weights.assign(run.width * run.stride(), 0.0f);
            for (std::size_t i = 0; i < run.width; ++i)
              std::copy_n(hidden.data() + i * run.inputs, run.inputs, run.weights.data() + i * run.stride());
            run.bias.assign(bias.data(), bias.data() + run.width);
            run.output.assign(output.data(), output.data() + run.width);
            run.offset = offset;
          },
          nb::arg("hidden"), nb::arg("bias"), nb::arg("output"), nb::arg("offset"), nb::arg("loss"),
          nb::arg("activation"), nb::arg("threshold"), nb::arg("sampling"), nb::arg("boolean_labels"), nb::arg("key"),
          nb::arg("batch_stream"), nb::arg("epoch_stream"), nb::arg("stop_error"), nb::arg("checkpoints"), nb::arg("support"))
      .def("add_phase", &add_phase, nb::arg("steps"), nb::arg("batch"), nb::arg("rate"), nb::arg("keep"),
           nb::arg("truncation"))
      .def(
          "set_bits",
          [](Trainer& self, ConstArray2<std::uint64_t> bits, ConstArray1<float> labels, bool test) {
            set_examples(self, test, bits, labels, examples_of_bits);
            if (!test) self.run.origin = self.run.position;
          },
          nb::arg("bits"), nb::arg("labels"), nb::arg("test"))
      .def(
          "set_rows",
          [](Trainer& self, ConstArray2<float> rows, ConstArray1<float> labels, bool test) {
            set_examples(self, test, rows, labels, examples_of_rows);
            if (!test) self.run.origin = self.run.position;
          },
          nb::arg("rows"), nb::arg("labels"), nb::arg("test"))
      .def("export", &export_to, nb::arg("hidden"), nb::arg("bias"), nb::arg("output"))
      .def_prop_ro("step", [](const Trainer& self) { return self.run.step; })
      .def_prop_ro("position", [](const Trainer& self) { return self.run.position; })
      .def_prop_ro("needs_rows", &Trainer::needs_rows)
      .def_prop_ro("offset", [](const Trainer& self) { return self.run.offset; })
      .def_prop_ro("stopped",
                   [](const Trainer& self) -> std::optional<std::string> {
                     for (const Named<Stop>& stop : stops)
                       if (stop.kind == self.run.stopped) return stop.name;
                     return std::nullopt;  // it runs
                   })
      .def_prop_ro("diverged_step", [](const Trainer& self) { return self.run.diverged_step; })
      .def_prop_ro("diverged_rate", [](const Trainer& self) { return self.run.diverged_rate; })
      .def_prop_ro("counters",
                   [](const Trainer& self) {
                     const TrainingRun& run = self.run;
                     return std::vector<std::uint64_t>{run.step, run.examples_seen, run.active_pairs, run.multiply_adds};
                   })
      .def_prop_ro("records", [](const Trainer& self) {
        std::vector<std::vector<double>> rows;
        for (const Record& r : self.run.records)
          rows.push_back({r.step, r.train_loss, r.train_error, r.test_error, r.hidden_norm, r.output_norm, r.active_fraction,
                          r.support_weight});
        return rows;
      });
  module.def(
      "advance",
      [](const std::vector<Trainer*>& trainers, double seconds, std::size_t threads) {
        nb::gil_scoped_release released;
        advance_all(trainers, seconds, threads);
      },
      nb::arg("trainers"), nb::arg("seconds"), nb::arg("threads"));
}

}  // namespace fewfire
