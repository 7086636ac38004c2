// A vector whose memory starts on a cache line, for kernels that load whole vectors; large ones ask for huge pages, so
// that streaming through them does not wait for address translation.
#pragma once

#include <cstddef>
#include <new>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fewfire {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}
  static constexpr std::size_t huge_page = std::size_t{1} << 21;
  static std::align_val_t alignment(std::size_t count) {
    return std::align_val_t{count * sizeof(T) >= huge_page ? huge_page : 64};
  }
  T* allocate(std::size_t count) {
    void* memory = ::operator new(count * sizeof(T), alignment(count));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (count * sizeof(T) >= huge_page) madvise(memory, count * sizeof(T), MADV_HUGEPAGE);  // a wish: may be refused
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment(count)); }
  template <class U>
  bool operator==(const CacheLineAllocator<U>&) const { return true; }
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace fewfire
