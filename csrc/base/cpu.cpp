#include "base/cpu.hpp"

#include <atomic>
#include <cstdlib>

namespace fewfire {
namespace {

bool runs(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return true;
#if defined(FEWFIRE_HAS_avx512)
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
             __builtin_cpu_supports("popcnt");
    case Isa::avx512:
      return runs(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni") &&
             __builtin_cpu_supports("avx512vpopcntdq");
#endif
    default:
      return false;
  }
}

bool parse(const std::string& name, Isa& isa) {
  for (Isa candidate : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (name == isa_name(candidate)) {
      isa = candidate;
      return true;
    }
  return false;
}

Isa initial_isa() {
  Isa wanted;
  const char* name = std::getenv("FEWFIRE_ISA");
  return name && parse(name, wanted) && runs(wanted) ? wanted : best_isa();
}

std::atomic<Isa>& state() {
  static std::atomic<Isa> value{initial_isa()};
  return value;
}

}  // namespace

Isa best_isa() {
  static const Isa best = runs(Isa::avx512) ? Isa::avx512 : runs(Isa::avx2) ? Isa::avx2 : Isa::baseline;
  return best;
}

Isa current_isa() { return state().load(std::memory_order_relaxed); }

bool set_isa(const std::string& name) {
  Isa wanted;
  if (!parse(name, wanted) || !runs(wanted)) return false;
  state().store(wanted, std::memory_order_relaxed);
  return true;
}

const char* isa_name(Isa isa) {
  return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline";
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (runs(isa)) names.emplace_back(isa_name(isa));
  return names;
}

}  // namespace fewfire
