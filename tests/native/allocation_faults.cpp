// Runs a half-space index out of memory at every allocation that it makes, and compares it with a map of points: a
// change that fails has changed nothing, and one that does not fail is complete.
//
//   allocation_faults METHOD SEED THREADS STRIDE
//
// Each operation of a random script is tried with its first, second, … allocation failing (alone, and with all that
// follow), until it makes none that fails. STRIDE 1 tries every one; a larger one leaves out ever more of those beyond
// the fortieth. Prints how many failures were injected and how many operations of the script were run.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "core/halfspace/index.hpp"

namespace {

std::atomic<long> made{0}, fails_at{-1};  // allocations so far, and the one that fails; below 0: none does
std::atomic<bool> lasting{false}, fired{false};

void* allocate(std::size_t size, std::size_t alignment) {
  if (const long at = fails_at; at >= 0)
    if (const long now = made.fetch_add(1); now == at || (lasting && now > at)) {
      fired = true;
      throw std::bad_alloc();
    }
  size = std::max<std::size_t>(size, 1);
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size)
                     : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // it sees malloc and free, inlined, where new and delete stood
void* operator new(std::size_t size) { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using namespace fewfire;

std::string method;
std::size_t dimension, threads;
long injected = 0;

struct Point {
  std::vector<float> row;
  float offset = 0;
  bool operator==(const Point&) const = default;
};
using Model = std::map<std::int64_t, Point>;

struct Operation {
  enum Kind { insert, remove, update, query } kind = query;
  HalfspacePoints points;
};

[[noreturn]] void fail(const char* what) {
  fails_at = -1;
  std::printf("%s: %s\n", method.c_str(), what);
  std::exit(1);
}

void apply(HalfspaceIndex& index, const Operation& operation) {
  const HalfspacePoints& p = operation.points;
  const std::size_t count = p.ids.size();
  switch (operation.kind) {
    case Operation::insert: return index.insert(p.ids.data(), p.rows.data(), p.offsets.data(), count, threads);
    case Operation::remove: return index.remove(p.ids.data(), count, threads);
    case Operation::update: return index.update(p.ids.data(), p.rows.data(), p.offsets.data(), count, threads);
    case Operation::query: {
      HalfspaceCounters counters;
      index.query({p.rows.data(), p.offsets.data(), count, dimension}, threads, counters);
    }
  }
}

void learn(Model& model, const Operation& operation) {
  for (std::size_t i = 0; i < operation.points.ids.size(); ++i) {
    const float* row = operation.points.rows.data() + i * dimension;
    if (operation.kind == Operation::remove) model.erase(operation.points.ids[i]);
    if (operation.kind == Operation::insert || operation.kind == Operation::update)
      model[operation.points.ids[i]] = {{row, row + dimension}, operation.points.offsets[i]};
  }
}

// Size, points and answers are those of the model.
void compare(const HalfspaceIndex& index, const Model& model, std::mt19937& draw, const char* when) {
  if (index.size() != model.size()) fail(when);
  const HalfspacePoints points = index.points();
  if (points.ids.size() != model.size()) fail(when);
  for (std::size_t i = 0; i < points.ids.size(); ++i) {
    const auto found = model.find(points.ids[i]);
    const float* row = points.rows.data() + i * dimension;
    if (found == model.end() || !index.contains(points.ids[i])) fail(when);
    if (found->second != Point{{row, row + dimension}, points.offsets[i]}) fail(when);
  }
  std::normal_distribution<float> normal;
  std::vector<float> direction(dimension);
  for (float& value : direction) value = normal(draw);
  const float threshold = normal(draw);
  HalfspaceCounters counters;
  const HalfspaceReport report = index.query({direction.data(), &threshold, 1, dimension}, threads, counters);
  std::vector<std::int64_t> expected;
  for (const auto& [id, point] : model) {
    float sum = 0;
    for (std::size_t j = 0; j < dimension; ++j) sum = std::fmaf(point.row[j], direction[j], sum);
    if (sum + point.offset > threshold) expected.push_back(id);
  }
  if (report.ids != expected) fail(when);
}

// A script that passes every way of growing, moving and shrinking: tails, trees, merges, holes, peeling, compaction.
std::vector<Operation> script(std::mt19937& draw) {
  std::normal_distribution<float> normal;
  std::vector<Operation> operations;
  Model model;
  std::int64_t next = 0;
  const auto add = [&](Operation::Kind kind, std::size_t count, float spread) {
    Operation operation{kind, {}};
    std::vector<std::int64_t> known;
    for (const auto& [id, point] : model) known.push_back(id);
    std::shuffle(known.begin(), known.end(), draw);
    if (kind == Operation::remove || kind == Operation::update) count = std::min(count, known.size());
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_new = kind == Operation::insert || kind == Operation::query;
      const std::int64_t id = is_new ? next + static_cast<std::int64_t>(i) : known[i];
      operation.points.ids.push_back(id);
      for (std::size_t j = 0; j < dimension; ++j)
        operation.points.rows.push_back((is_new ? 0.0f : model[id].row[j]) + spread * normal(draw));
      operation.points.offsets.push_back(method == "layers" ? 0.0f : normal(draw) / 4);
    }
    if (kind == Operation::insert) next += static_cast<std::int64_t>(count) + 1000;
    learn(model, operation);
    operations.push_back(std::move(operation));
  };
  const auto about = [&](std::size_t count) {
    if (method == "layers") count /= 6;  // peeled from 256 points on, in time that grows with the square
    return count + draw() % (count / 4 + 1);
  };
  add(Operation::insert, about(100), 1), add(Operation::insert, about(3000), 1), add(Operation::query, 9, 1);
  add(Operation::insert, about(300), 1), add(Operation::update, about(200), 1e-4f);
  add(Operation::update, about(400), 1), add(Operation::update, about(2100), 1), add(Operation::remove, about(400), 0);
  add(Operation::insert, about(2200), 1), add(Operation::remove, about(2400), 0), add(Operation::query, 9, 1);
  add(Operation::remove, about(1600), 0), add(Operation::insert, about(500), 1), add(Operation::remove, 9999, 0);
  add(Operation::insert, about(300), 1);
  return operations;
}

void run(const std::vector<Operation>& operations, long stride, std::mt19937& draw) {
  const auto replayed = [&](std::size_t count) {
    auto index = make_halfspace_index(method, dimension);
    for (std::size_t o = 0; o < count; ++o) apply(*index, operations[o]);
    return index;
  };
  auto index = replayed(0);
  Model before;
  for (std::size_t o = 0; o < operations.size(); ++o) {
    Model after = before;
    learn(after, operations[o]);
    bool done = false;
    for (const bool all : {false, true}) {
      if (done) index = replayed(o);
      done = false;
      for (long n = 0; !done; n += stride == 1 || n < 40 ? 1 : n / stride) {
        lasting = all, fired = false, made = 0, fails_at = n;
        bool thrown = false;
        try {
          apply(*index, operations[o]);
        } catch (const std::bad_alloc&) {
          thrown = true;
        }
        fails_at = -1;
        injected += fired;
        if (thrown && !fired) fail("an allocation failed by itself");
        compare(*index, thrown ? before : after, draw, thrown ? "changed by an operation that failed" : "not as told");
        done = !thrown && !fired;
        if (!thrown && fired) index = replayed(o);  // it did without what it could not get: the next try starts before it
      }
    }
    before = std::move(after);
  }
}

}  // namespace

int main(int, char** arguments) {
  method = arguments[1];
  std::mt19937 draw(static_cast<unsigned>(std::atoi(arguments[2])));
  threads = static_cast<std::size_t>(std::atoi(arguments[3]));
  dimension = method == "layers" ? 2 : 1 + draw() % 6;
  const std::vector<Operation> operations = script(draw);
  run(operations, std::atol(arguments[4]), draw);
  std::printf("{\"injected\": %ld, \"operations\": %zu}\n", injected, operations.size());
}
