#include "kernels/walsh.hpp"

#include <type_traits>
#include <utility>

#include "kernels/vectors-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr unsigned near_levels = 4;  // 2^near_levels registers hold values in the first step
#else
constexpr unsigned near_levels = 3;
#endif
constexpr unsigned l1_bytes = 1u << 14;  // half of the smallest L1 data cache in use

constexpr unsigned log2_of(std::size_t value) { return value <= 1 ? 0 : 1 + log2_of(value / 2); }

template <class T>
struct Shape {
  using Vector [[gnu::vector_size(vector_bytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  static constexpr unsigned lanes = vector_bytes / sizeof(T), lane_levels = log2_of(lanes);
  // As many as fit into L1 when all steps after the first are whole ones.
  static constexpr unsigned first_levels = lane_levels + near_levels;
  static constexpr unsigned l1_levels =
      first_levels + (log2_of(l1_bytes / sizeof(T)) - first_levels) / walsh_pass_levels * walsh_pass_levels;
};
template <class T>
using Vector = typename Shape<T>::Vector;

// a − b. As a fused multiply-add it rounds the same and keeps the multipliers busy as well as the adders.
template <class T>
[[gnu::always_inline]] inline Vector<T> difference(Vector<T> a, Vector<T> b) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, double>) return _mm512_fnmadd_pd(b, _mm512_set1_pd(1.0), a);
  if constexpr (std::is_same_v<T, float>) return _mm512_fnmadd_ps(b, _mm512_set1_ps(1.0f), a);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, double>) return _mm256_fnmadd_pd(b, _mm256_set1_pd(1.0), a);
  if constexpr (std::is_same_v<T, float>) return _mm256_fnmadd_ps(b, _mm256_set1_ps(1.0f), a);
#endif
  return a - b;
}

// partner + value·signs, every sign ±1.
template <class T>
[[gnu::always_inline]] inline Vector<T> signed_sum(Vector<T> partner, Vector<T> value, Vector<T> signs) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, double>) return _mm512_fmadd_pd(value, signs, partner);
  if constexpr (std::is_same_v<T, float>) return _mm512_fmadd_ps(value, signs, partner);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, double>) return _mm256_fmadd_pd(value, signs, partner);
  if constexpr (std::is_same_v<T, float>) return _mm256_fmadd_ps(value, signs, partner);
#endif
  return signs < 0 ? partner - value : partner + value;
}

// The level whose partners are `distance` lanes apart.
template <class T, unsigned distance, std::size_t... lane>
[[gnu::always_inline]] inline Vector<T> lane_level(Vector<T> values, std::index_sequence<lane...>) {
  const Vector<T> partners = __builtin_shufflevector(values, values, (lane ^ distance)...);
  constexpr Vector<T> signs = {(lane & distance ? T(-1) : T(1))...};
  return signed_sum<T>(partners, values, signs);
}

template <class T, unsigned distance = 1>
[[gnu::always_inline]] inline Vector<T> all_lane_levels(Vector<T> values) {
  if constexpr (distance < Shape<T>::lanes)
    return all_lane_levels<T, 2 * distance>(
        lane_level<T, distance>(values, std::make_index_sequence<Shape<T>::lanes>{}));
  else
    return values;
}

// `levels` levels between 2^levels registers, `stride` values apart in memory.
template <class T, unsigned levels, bool within_lanes, bool scaled>
[[gnu::always_inline]] inline void butterflies(const T* from, T* to, std::size_t stride, T scale) {
  constexpr unsigned rows = 1u << levels;
  Vector<T> values[rows];
#pragma GCC unroll 16
  for (unsigned i = 0; i < rows; ++i) {
    values[i] = *reinterpret_cast<const Vector<T>*>(from + i * stride);
#if defined(__AVX2__)
    asm("" : "+v"(values[i]));  // stays in its register: it would be loaded anew for its second use
#endif
    if constexpr (within_lanes) values[i] = all_lane_levels<T>(values[i]);
  }
#pragma GCC unroll 4
  for (unsigned level = 0; level < levels; ++level)
#pragma GCC unroll 16
    for (unsigned i = 0; i < rows; ++i)
      if (!(i >> level & 1)) {
        const Vector<T> a = values[i], b = values[i | 1u << level];
        values[i] = a + b;
        values[i | 1u << level] = difference<T>(a, b);
      }
#pragma GCC unroll 16
  for (unsigned i = 0; i < rows; ++i) {
    if constexpr (scaled && std::is_floating_point_v<T>) values[i] *= scale;
    *reinterpret_cast<Vector<T>*>(to + i * stride) = values[i];
  }
}

// Loops of their own, not closures: what a closure captures is read again after every store.
template <class T, unsigned levels, bool scaled>
void far_loop(T* column, T* end, std::size_t stride, T scale) {
  for (; column < end; column += Shape<T>::lanes)
    butterflies<T, levels, false, scaled>(column, column, stride, scale);
}

template <class T, unsigned levels, bool scaled>
void near_loop(const T* from, T* to, T* end, T scale) {
  constexpr std::size_t step = std::size_t{Shape<T>::lanes} << levels;
  for (; to < end; from += step, to += step) butterflies<T, levels, true, scaled>(from, to, Shape<T>::lanes, scale);
}

// 2^levels values `stride` apart, one by one: for what no vector covers.
template <class T>
[[gnu::noinline]] void scalar_butterflies(const T* from, T* to, std::size_t stride, unsigned levels, T scale) {
  T values[1u << near_levels];
  const unsigned rows = 1u << levels;
  for (unsigned i = 0; i < rows; ++i) values[i] = from[i * stride];
  for (unsigned half = 1; half < rows; half *= 2)
    for (unsigned i = 0; i < rows; ++i)
      if (!(i & half)) {
        const T a = values[i], b = values[i | half];
        values[i] = a + b;
        values[i | half] = a - b;
      }
  for (unsigned i = 0; i < rows; ++i) to[i * stride] = values[i] * scale;
}

// Calls work with constants: the number of levels, at most `most`, and whether to scale.
template <unsigned most, class Work>
[[gnu::always_inline]] inline void with_constants(unsigned levels, bool scaled, const Work& work) {
  if (levels == most) {
    if (scaled)
      work(std::integral_constant<unsigned, most>{}, std::true_type{});
    else
      work(std::integral_constant<unsigned, most>{}, std::false_type{});
  } else if constexpr (most > 0) {
    with_constants<most - 1>(levels, scaled, work);
  }
}

template <class T>
void pass(T* data, unsigned low, unsigned levels, std::size_t first, std::size_t last, bool scaled, T scale) {
  const std::size_t stride = std::size_t{1} << low;
  const T factor = scaled ? scale : T(1);
  // Rows that are far apart are walked along vector boundaries, so that no access touches two cache lines.
  if (stride * sizeof(T) >= l1_bytes)
    while (first < last && reinterpret_cast<std::uintptr_t>(data + first) % vector_bytes != 0) {
      scalar_butterflies<T>(data + first, data + first, stride, levels, factor);
      ++first;
    }
  const std::size_t end = last - (last - first) % Shape<T>::lanes;
  with_constants<walsh_pass_levels>(levels, scaled, [=](auto count, auto scaling) {
    far_loop<T, count(), scaling()>(data + first, data + end, stride, scale);
  });
  for (first = end; first < last; ++first)
    scalar_butterflies<T>(data + first, data + first, stride, levels, factor);
}

// A part that fits into L1: the levels inside vectors and between near ones, then all others.
template <class T>
void l1_block(const T* from, T* to, unsigned levels, bool scaled, T scale) {
  constexpr unsigned inside = Shape<T>::lane_levels;
  const unsigned near = levels - inside < near_levels ? levels - inside : near_levels;
  const std::size_t length = std::size_t{1} << levels;
  with_constants<near_levels>(near, scaled && inside + near == levels, [=](auto count, auto scaling) {
    near_loop<T, count(), scaling()>(from, to, to + length, scale);
  });
  for (unsigned low = inside + near; low < levels;) {
    const unsigned step = levels - low < walsh_pass_levels ? levels - low : walsh_pass_levels;
    for (std::size_t at = 0; at < length; at += std::size_t{1} << (low + step))
      pass<T>(to + at, low, step, 0, std::size_t{1} << low, scaled && low + step == levels, scale);
    low += step;
  }
}

// Depth first: eight parts to the end, then the three levels between them.
template <class T>
void block(const T* from, T* to, unsigned levels, bool scaled, T scale) {
  if (levels < Shape<T>::lane_levels) return scalar_butterflies<T>(from, to, 1, levels, scale);
  if (levels <= Shape<T>::l1_levels) return l1_block<T>(from, to, levels, scaled, scale);
  const unsigned above = levels - Shape<T>::l1_levels;
  const unsigned step = above < walsh_pass_levels ? above : walsh_pass_levels, low = levels - step;
  for (std::size_t part = 0; part < std::size_t{1} << step; ++part)
    block<T>(from + (part << low), to + (part << low), low, false, scale);
  pass<T>(to, low, step, 0, std::size_t{1} << low, scaled, scale);
}

}  // namespace

#define FEWFIRE_WALSH(T)                                                                                       \
  void walsh_block(const T* from, T* to, unsigned levels, T scale) { block<T>(from, to, levels, true, scale); } \
  void walsh_pass(T* data, unsigned low, unsigned levels, std::size_t first, std::size_t last, T scale) {      \
    pass<T>(data, low, levels, first, last, true, scale);                                                      \
  }
FEWFIRE_WALSH(double)
FEWFIRE_WALSH(float)
FEWFIRE_WALSH(std::int32_t)
#undef FEWFIRE_WALSH

}  // namespace fewfire::FEWFIRE_ISA
