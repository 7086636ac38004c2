#include "kernels/random_splits.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

typedef float Floats __attribute__((vector_size(32)));
typedef std::int32_t Ints __attribute__((vector_size(32)));
typedef std::int64_t Longs __attribute__((vector_size(64)));

template <class Vector, class Number>
Vector load(const Number* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}

std::int64_t sum_of(const Longs& lanes) {
  std::int64_t sum = 0;
  for (std::size_t lane = 0; lane < split_lanes; ++lane) sum += lanes[lane];
  return sum;
}

// The values of a node's rows, NaN after the last, and of those that are known the least and the largest.
void gather(const float* column, const std::int32_t* ids, std::size_t rows, float* values, float& least, float& largest,
            std::size_t& missing) {
  constexpr float infinity = __builtin_inff();
  for (std::size_t i = 0; i < rows; ++i) values[i] = column[ids[i]];
  for (std::size_t i = rows; i < rows + split_lanes; ++i) values[i] = __builtin_nanf("");
  Floats low = Floats{} + infinity, high = Floats{} - infinity;
  Ints known{};
  for (std::size_t i = 0; i < rows; i += split_lanes) {
    const auto value = load<Floats>(values + i);
    low = value < low ? value : low;
    high = value > high ? value : high;
    known += value == value;
  }
  least = infinity, largest = -infinity, missing = rows;
  for (std::size_t lane = 0; lane < split_lanes; ++lane) {
    least = low[lane] < least ? low[lane] : least;
    largest = high[lane] > largest ? high[lane] : largest;
    missing -= static_cast<std::size_t>(-known[lane]);
  }
}

// sums (1 + parts): how many rows go left, and their sums. Rows after the last are zeros and have NaN for a value.
void sum_left(const NodeRows& node, const float* values, float threshold, bool missing_left, std::int64_t* sums) {
  const Ints unknown = Ints{} - static_cast<std::int32_t>(missing_left);
  const auto goes_left = [&](std::size_t i) {
    const auto value = load<Floats>(values + i);
    return Ints((value <= threshold) | ((value != value) & unknown));
  };
  Ints rows{};
  for (std::size_t i = 0; i < node.rows; i += split_lanes) rows -= goes_left(i);
  sums[0] = sum_of(__builtin_convertvector(rows, Longs));
  if (missing_left) sums[0] -= static_cast<std::int64_t>((split_lanes - node.rows % split_lanes) % split_lanes);
  for (std::size_t part = 0; part < node.parts; ++part) {
    const std::int32_t* numbers = node.numbers + part * node.stride;
    Longs sum{};
    for (std::size_t i = 0; i < node.rows; i += split_lanes)
      sum += __builtin_convertvector(load<Ints>(numbers + i) & goes_left(i), Longs);
    sums[1 + part] = sum_of(sum);
  }
}

}  // namespace

void try_columns(const float* table, std::size_t table_rows, const NodeRows& node, const std::int32_t* columns,
                 const std::uint64_t* draws, std::size_t count, float* values, RandomSplit* splits, std::int64_t* sums) {
  for (std::size_t c = 0; c < count; ++c, sums += 2 * (1 + node.parts)) {
    float least, largest;
    RandomSplit& split = splits[c];
    const float* column = table + static_cast<std::size_t>(columns[c]) * table_rows;
    gather(column, node.ids, node.rows, values, least, largest, split.missing);
    split.constant = !(least < largest);
    if (split.constant) continue;
    const double unit = (static_cast<double>(draws[c] >> 40) + 0.5) * 0x1p-24;
    const double width = static_cast<double>(largest) - static_cast<double>(least);
    split.threshold = static_cast<float>(static_cast<double>(least) + unit * width);
    if (split.threshold >= largest) split.threshold = least;
    split.missing_left = split.missing > 0 && (draws[c] & 1);
    sum_left(node, values, split.threshold, split.missing_left, sums);
    if (split.missing > 0) sum_left(node, values, __builtin_inff(), false, sums + 1 + node.parts);
  }
}

}  // namespace fewfire::FEWFIRE_ISA
