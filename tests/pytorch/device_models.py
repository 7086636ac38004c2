"""Sparse models on a real GPU for the tests that need one: every form, and what their outputs may deviate."""

import copy
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import lookalikes as like
import torch

import fewfire.torch as ft
from fewfire._cuda._compile import compiled
from fewfire._cuda._device import current_device
from fewfire.torch.cuda._device_block import KERNELS

F = torch.nn.functional
INPUTS, WIDTH = 264, 600
FORMS = like.forms(INPUTS, WIDTH)
UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}


def compile_all(blocks, batches=(1, 2, 3, 4)):
    """The kernels of many blocks at once, in as many processes as there are cores; the cache keeps them."""
    shapes = {tuple({**block._shape, "BATCH": batch}.items()) for block in blocks for batch in batches}
    architecture, spawn = current_device().architecture, multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(16, os.cpu_count() or 1), mp_context=spawn) as pool:
        waiting = [pool.submit(compiled, KERNELS, "sparse_block.cu", architecture, dict(shape)) for shape in shapes]
        for one in waiting:
            one.result()


def made(form="relu", dtype="bfloat16", dense_above=4, **options):
    """A sparse model on the GPU, and a dense copy of it on the CPU."""
    torch.manual_seed(0)
    model = FORMS[form]().eval().to("cuda", getattr(torch, dtype))
    dense = copy.deepcopy(model).cpu()
    report = ft.sparsify(model, dense_above=dense_above, **options)
    assert len(report.replaced) == 1, str(report)
    return model, dense, report.blocks[0]


def rows_of(count, dtype="bfloat16", seed=1):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(count, INPUTS, device="cuda", generator=generator).to(getattr(torch, dtype))


def check(given, dense, block, x):
    """Within the rounding of float32 sums, and of the output, of float64."""
    value, bound = like.oracle(block, dense, x.detach().cpu())
    given = given.detach().cpu()
    unit = UNITS[str(given.dtype).removeprefix("torch.")]
    assert given.shape == value.shape and given.dtype is x.dtype
    deviation = (given.double() - value).abs()
    assert bool((deviation <= bound * (1 + unit) + 1.01 * unit * value.abs() + 2.0**-25).all()), deviation.max()
