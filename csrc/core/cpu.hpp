// Which instruction set the kernels use on this machine, and how one is picked.
//
// A kernel file is compiled once per variant with FEWFIRE_ISA set to the variant's name; every variant
// exports the same functions in its own namespace. `dispatch` names the one to call.
#pragma once

#include <string>
#include <vector>

namespace fewfire {

enum class Isa { baseline = 0, avx2 = 1, avx512 = 2 };

// The best variant that is compiled in and that this processor runs.
Isa best_isa();

// The variant in use: best_isa(), unless lowered by set_isa or by the environment variable FEWFIRE_ISA.
Isa current_isa();

// Lowers (or restores) the variant; false when the processor or the build does not have it.
bool set_isa(const std::string& name);

const char* isa_name(Isa isa);
std::vector<std::string> available_isas();

}  // namespace fewfire

// Defines `NAME(...)` in namespace fewfire as a call of the current variant's function of that name.
#if defined(FEWFIRE_HAS_avx512)
#define FEWFIRE_DISPATCH(NAME, ...)                                   \
  (::fewfire::current_isa() == ::fewfire::Isa::avx512                 \
       ? ::fewfire::avx512::NAME(__VA_ARGS__)                         \
       : ::fewfire::current_isa() == ::fewfire::Isa::avx2             \
             ? ::fewfire::avx2::NAME(__VA_ARGS__)                     \
             : ::fewfire::baseline::NAME(__VA_ARGS__))
#define FEWFIRE_DECLARE(...)                 \
  namespace baseline { __VA_ARGS__ }         \
  namespace avx2 { __VA_ARGS__ }             \
  namespace avx512 { __VA_ARGS__ }
#else
#define FEWFIRE_DISPATCH(NAME, ...) (::fewfire::baseline::NAME(__VA_ARGS__))
#define FEWFIRE_DECLARE(...) \
  namespace baseline { __VA_ARGS__ }
#endif
