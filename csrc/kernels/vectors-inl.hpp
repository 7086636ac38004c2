// Vectors as wide as the variant's registers, and buffers aligned for them. Internal linkage, as all of a kernel file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif
constexpr std::size_t vector_words = vector_bytes / 8;
using Words [[gnu::vector_size(vector_bytes), gnu::may_alias]] = std::uint64_t;
using Reals [[gnu::vector_size(vector_bytes), gnu::may_alias]] = double;

template <class T>
struct Free {
  void operator()(T* data) const { ::operator delete[](data, std::align_val_t{64}); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Free<T>>;
template <class T>
Buffer<T> aligned(std::size_t count) {
  return Buffer<T>(static_cast<T*>(::operator new[](std::max<std::size_t>(count, 1) * sizeof(T), std::align_val_t{64})));
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
