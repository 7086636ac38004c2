"""`tools/portable.py`: which variables stand for which processor, and that one that is not in force is noticed."""

import portable
import pytest


def test_what_a_processor_lacks_is_hidden_from_every_library(monkeypatch):
    monkeypatch.setattr(portable, "dispatched", lambda: ["X86_V3", "X86_V4", "AVX512_ICL"])
    found = {processor.name: processor.environment() for processor in portable.PROCESSORS}
    assert found["Prescott"] == {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "FEWFIRE_ISA": "baseline",
        "ATEN_CPU_CAPABILITY": "default",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX512VL",
    }
    assert found["Haswell"]["NPY_DISABLE_CPU_FEATURES"] == "X86_V4 AVX512_ICL"
    assert found["Haswell"]["GLIBC_TUNABLES"] == "glibc.cpu.hwcaps=-AVX512F,-AVX512VL"
    assert "NPY_DISABLE_CPU_FEATURES" not in found["SkylakeX"]
    assert {found[name]["FEWFIRE_ISA"] for name in ("Haswell", "Zen", "SkylakeX")} == {"avx2"}
    assert {values["OPENBLAS_NUM_THREADS"] for values in found.values()} == {"1", "2"}


def test_a_variable_that_is_not_in_force_is_noticed(monkeypatch):
    for name, value in portable.PROCESSORS[0].environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "97")  # the libraries were loaded with another
    with pytest.raises(AssertionError):
        portable.check()


def test_what_this_processor_cannot_be_is_named(core):
    skylake = next(processor for processor in portable.PROCESSORS if processor.name == "SkylakeX")
    assert portable.missing(skylake, {"sse3", "avx2"}) in (
        "this processor has no avx512f",
        "the C++ part has no avx2 here",
    )


def test_the_tests_of_the_quick_part_exist_and_are_those_of_the_page():
    page = (portable.ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    table = page[page.index("## The same on every machine") : page.index("## Half-space indexes")]
    for path in portable.PROMISED:
        assert (portable.ROOT / path).is_file()
    promised = [line for line in table.splitlines() if "bit for bit" in line and line.startswith("| ")]
    named = [name for name in portable.PROMISED if any(name.rpartition("/")[2] in line for line in promised)]
    assert len(promised) >= 6 and len(named) == 5
