"""Every part of the screen's proved bound is needed: with one of them smaller or left out, a neuron that fires is missed."""

from __future__ import annotations

import json

import programs
import pytest

needs_compiler = pytest.mark.skipif(
    programs.compiler() is None, reason="needs a C++ compiler (Debian: apt install g++)"
)

LAYER, KERNEL, CODES = "core/sparse_block/screened_layer.cpp", "kernels/sparse_block.cpp", "kernels/weight_codes.cpp"
MUTANTS = {
    "what int8 loses of weights": (LAYER, "up(std::sqrt(row.lost) + size)", "up(0.9 * std::sqrt(row.lost) + size)"),
    "what residual codes lose": (LAYER, "up(std::sqrt(row.left) + size)", "up(0.9 * std::sqrt(row.left) + size)"),
    "the codes' norm": (LAYER, "up(std::sqrt(row.coded))", "up(0.85 * std::sqrt(row.coded))"),
    "both codes' norm": (LAYER, "up(std::sqrt(row.refined))", "up(0.85 * std::sqrt(row.refined))"),
    "the squares of what is lost": (CODES, "lost += gap * gap", "lost += 0.8 * gap * gap"),
    "the squares of what is left": (CODES, "left += gap * gap", "left += 0.8 * gap * gap"),
    "what is lost of inputs, first stage": (KERNEL, ", load(group.coded + at) * fill(rows[q].lost))", ", fill(0.0f))"),
    "what is lost of inputs, second stage": (KERNEL, " + residual.coded * row.lost)", ")"),
    "how much is lost of inputs": (KERNEL, "1.001f * std::sqrt(gaps)", "0.85f * std::sqrt(gaps)"),
    "the input's norm": (
        KERNEL,
        ": usual            ? 1.001f * std::sqrt(squares)",
        ": usual ? 0.9f * std::sqrt(squares)",
    ),
}
# Codes of inputs are granted 0.02 of a unit each for the rounding of the coding itself, which alone covers the rounding
# of sums for whatever was tried: only without both is a neuron missed.
ROUNDING = ((LAYER, "return 2.2 * (", "return 0 * ("), (KERNEL, " + 0.02f * root)", ")"))


@needs_compiler
def test_no_neuron_is_missed_where_the_bound_is_met():
    done = programs.run("screen_bounds")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)
    assert counts["fired"] > 1500
    assert counts["missed"] == 0


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("edits", [*((edit,) for edit in MUTANTS.values()), ROUNDING], ids=[*MUTANTS, "rounding"])
def test_a_smaller_bound_misses_some(edits, tmp_path):
    done = programs.run_mutant("screen_bounds", tmp_path, *edits)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["missed"] > 0
