// Half-space reporting (sublinear, Definition 6.1): keep points p with offsets b under stable ids, and report for a query
// (a, threshold) the ids with score(p, b; a) > threshold, the score of kernels/halfspace.hpp. One class per method,
// all of them exact. A method keeps no locks: the binding lets queries run together and changes run alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fewfire {

// What queries have cost so far.
struct HalfspaceCounters {
  std::uint64_t queries = 0, reported = 0;
  std::uint64_t points = 0;    // (point, query) pairs whose coordinates, or their codes, were read
  std::uint64_t rechecks = 0;  // pairs that the screen left open
  std::uint64_t nodes = 0;     // tree nodes whose children were bounded; convex layers entered
  std::uint64_t bytes = 0;     // read from points, codes and nodes: once per block and batch, not per query

  void add(const HalfspaceCounters& other);
};

// A batch of queries, rows of length `dimension`.
struct HalfspaceQueries {
  const float* rows;
  const float* thresholds;
  std::size_t count, dimension;
};

// Row q is ids[starts[q]] … ids[starts[q + 1] − 1], ascending; `scores` has one score per id where they are asked for.
struct HalfspaceReport {
  std::vector<std::int64_t> starts, ids;
  std::vector<float> scores;
};

struct HalfspacePoints {
  std::vector<std::int64_t> ids;
  std::vector<float> rows, offsets;
};

class HalfspaceIndex {
 public:
  virtual ~HalfspaceIndex() = default;
  virtual std::size_t size() const = 0;
  virtual bool contains(std::int64_t id) const = 0;
  // Ids are new (insert), present and distinct (remove, update): the caller has checked.
  virtual void insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                      std::size_t threads) = 0;
  virtual void remove(const std::int64_t* ids, std::size_t count, std::size_t threads) = 0;
  virtual void update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                      std::size_t threads) = 0;
  virtual HalfspaceReport query(const HalfspaceQueries& queries, std::size_t threads,
                                HalfspaceCounters& counters) const = 0;
  // The same with scores: by a second visit of what was reported, unless a method has them at hand.
  virtual HalfspaceReport query_scores(const HalfspaceQueries& queries, std::size_t threads,
                                       HalfspaceCounters& counters) const;
  // The point of an id that is here: its row where it stands as one, else a copy of it in `scratch`.
  virtual const float* point(std::int64_t id, float* scratch, float& offset) const = 0;
  // Every point, ids in no order.
  virtual HalfspacePoints points() const = 0;
  // Memory used, in bytes.
  virtual std::size_t memory() const = 0;
};

// "scan", "tree", "screen" or (dimension 2, no offsets) "layers".
std::unique_ptr<HalfspaceIndex> make_halfspace_index(const std::string& method, std::size_t dimension);
std::unique_ptr<HalfspaceIndex> make_scan_index(std::size_t dimension);
std::unique_ptr<HalfspaceIndex> make_screen_index(std::size_t dimension);
std::unique_ptr<HalfspaceIndex> make_tree_index(std::size_t dimension);
std::unique_ptr<HalfspaceIndex> make_layers_index();

}  // namespace fewfire
