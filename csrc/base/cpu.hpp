// Which instruction set the kernels use on this machine, and how one is picked.
//
// A kernel file is compiled once per variant with FEWFIRE_ISA set to the variant's name; every variant exports the same
// functions in its own namespace, and FEWFIRE_DISPATCH calls the one in use.
//
// Why code for AVX-512 cannot leak into the baseline. An inline function or a template with external linkage is
// compiled in every file that calls it without inlining it, and the linker keeps one copy for all of them. Were a kernel
// file to hold such a copy (for example of std::vector::resize), baseline callers might be linked to the one compiled
// for AVX-512 and end in an illegal instruction on other processors. So
//   - what a kernel file defines for itself stands in an unnamed namespace inside the variant's, invisible elsewhere;
//     headers with such code are called -inl.hpp and are included by kernel files alone;
//   - what it takes from headers shared with other folders, or from the standard library, is inlined or specialised
//     into it; what the compiler would emit as a shared copy is done in core/ or written otherwise;
//   - it has no globals that are set up when the module is loaded, before a variant is chosen;
//   - baseline objects come first when linking, and linkers keep the first copy: a second line of defence.
// tests/native/test_instruction_sets.py looks for such copies in the objects of the build.
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

// FEWFIRE_DISPATCH(NAME, …) calls the current variant's function of that name; FEWFIRE_DECLARE declares functions in
// every variant.
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
