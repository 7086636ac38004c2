"""Archives that lie: members that grow, sizes that are not there, kinds of arrays that nothing here writes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fewfire import FileFormatError, halfspace, networks
from fewfire.networks import TwoLayer


def npy(array=None, *, header=None, body=b""):
    """The bytes of an array, or of a header and a body that need not fit."""
    if header is None:
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asarray(array))
        return file.getvalue()
    text = f"{header}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def header(shape, dtype="<f4", fortran=False):
    return f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}"


def network(**changes):
    parts = {
        "format": npy("fewfire.networks.TwoLayer"),
        "version": npy(1),
        "hidden": npy(np.ones((3, 2), np.float32)),
        "bias": npy(np.zeros(3, np.float32)),
        "output": npy(np.ones(3, np.float32)),
        "offset": npy(np.float32(0)),
        "activation": npy("relu"),
    }
    return parts | changes


def index(**changes):
    parts = {
        "format": npy("fewfire.halfspace.Index"),
        "version": npy(1),
        "ids": npy(np.arange(4)),
        "points": npy(np.ones((4, 3), np.float32)),
        "offsets": npy(np.zeros(4, np.float32)),
        "next_id": npy(np.int64(4)),
        "method": npy("scan"),
    }
    return parts | changes


def write(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)
    return path


def test_the_files_made_here_are_read(tmp_path):
    assert networks.load(write(tmp_path / "net", network())).equals(
        TwoLayer(np.ones((3, 2), np.float32), [0] * 3, [1] * 3)
    )
    assert len(halfspace.load(write(tmp_path / "index", index()))) == 4


@pytest.mark.parametrize(
    "hidden",
    [
        npy(header=header((2**28, 2**10))),
        npy(header=header((3, 3)), body=bytes(24)),
        npy(header=header((-3, -2)), body=bytes(24)),
        npy(header=header((2**62, 0))),
        npy(header=header((2**31, 0))),
        npy(header=header((2**40,), "<U0")),
        npy(header=header((3, 2), fortran=True), body=bytes(24)),
        npy(header=header((3,), "|O"), body=bytes(24)),
        npy(header=header((3,), "|V8"), body=bytes(24)),
        npy(header=header((3, 2), "<m8[s]"), body=bytes(48)),
        npy(header="{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", body=bytes(24)),
        npy(header="{'shape': (6,)}"),
        npy(header="__import__('os')"),
        npy(header="(" * 5000),
        b"\x93NUMPY\x09\x00",
        b"",
    ],
)
def test_arrays_that_do_not_fit_their_bytes_or_are_no_numbers(tmp_path, hidden):
    write(tmp_path / "net", network(hidden=hidden))
    with pytest.raises(FileFormatError) as caught:
        networks.load(tmp_path / "net")
    wrong = "some of its arrays are damaged. Remedy: write it again with network.save."
    assert str(caught.value) == f"cannot load {tmp_path / 'net'}: {wrong}"


@pytest.mark.parametrize("name", ["format", "activation"])
def test_numbers_that_are_no_characters(tmp_path, name):
    write(tmp_path / "net", network(**{name: npy(header=header((), "<U1"), body=b"\xff" * 4)}))
    with pytest.raises(FileFormatError, match=r"wrong type|not a complete|not written by"):
        networks.load(tmp_path / "net")


def test_several_texts_are_not_one(tmp_path):
    write(tmp_path / "net", network(activation=npy(["relu"] * 3000)))
    with pytest.raises(FileFormatError, match=r"its arrays have the wrong type\. Remedy: .*$") as caught:
        networks.load(tmp_path / "net")
    assert "\n" not in str(caught.value)


def test_arrays_of_the_other_byte_order_are_read(tmp_path):
    other = index(ids=npy(np.arange(4, dtype=">i8")), points=npy(np.ones((4, 3), ">f4")))
    assert halfspace.load(write(tmp_path / "index", other)).ids.tolist() == [0, 1, 2, 3]


def test_fields_without_a_reader_are_not_read(tmp_path):
    write(tmp_path / "net", network(more=b"no array"))
    assert networks.load(tmp_path / "net").width == 3


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_field_that_is_there_twice(tmp_path):
    with zipfile.ZipFile(write(tmp_path / "net", network()), "a") as archive:
        archive.writestr("bias.npy", npy(np.ones(3, np.float32)))
    with pytest.raises(FileFormatError, match="it is not a complete .npz archive"):
        networks.load(tmp_path / "net")


MEASURED = """
import re, sys
from fewfire import FewfireError, halfspace, networks
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
load = {"net": networks.load, "index": halfspace.load}[sys.argv[1].rsplit("/", 1)[1]]
try:
    load(sys.argv[1])
except FewfireError as error:
    print(error)
print(peak() - before)
"""


def grown(path):
    """What loading prints, and by how many bytes the process grew."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not say how much memory a process took at most")
    done = subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, text=True, check=True)
    *said, bytes_ = done.stdout.splitlines()
    return said, int(bytes_)


def test_a_small_file_does_not_grow(tmp_path):
    """0.3 MB of zeros, compressed, that were 0.3 GB."""
    zeros = npy(header=header((3, 25 * 10**6)), body=b"")
    with zipfile.ZipFile(tmp_path / "net", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (network() | {"hidden": None}).items():
            if content is not None:
                archive.writestr(f"{name}.npy", content)
        with archive.open("hidden.npy", "w", force_zip64=True) as member:
            member.write(zeros)
            for _ in range(300):
                member.write(bytes(10**6))
    assert (tmp_path / "net").stat().st_size < 5e5
    said, more = grown(tmp_path / "net")
    assert said == [
        f"cannot load {tmp_path / 'net'}: it is not a complete .npz archive. Remedy: write it again with network.save."
    ]
    assert more < 50e6


LIMIT = 2**63 - 2**40


@pytest.mark.parametrize("next_id", [2**41 + 1, LIMIT, LIMIT + 1, 2**63 - 1])
@pytest.mark.parametrize("ids", [[0, 1, 2, 2**41], []])
def test_an_id_of_two_to_the_forty_one(tmp_path, ids, next_id):
    """Memory follows the points; ids that leave no room for insertions are refused."""
    parts = {"points": np.ones((len(ids), 3), np.float32), "offsets": np.zeros(len(ids), np.float32)}
    parts |= {"ids": np.array(ids, np.int64), "next_id": np.int64(next_id)}
    write(tmp_path / "index", index(**{name: npy(array) for name, array in parts.items()}))
    said, more = grown(tmp_path / "index")
    wrong = f"its next id is {next_id}, beyond the {LIMIT} there may be"
    refused = [f"cannot load {tmp_path / 'index'}: {wrong}. Remedy: write it again with index.save."]
    assert said == (refused if next_id > LIMIT else []) and more < 50e6


def test_ids_just_within_the_limit_are_read(tmp_path):
    write(tmp_path / "index", index(ids=npy([0, 1, 2, LIMIT - 1]), next_id=npy(np.int64(LIMIT))))
    assert halfspace.load(tmp_path / "index").query([1, 1, 1]).tolist() == [0, 1, 2, LIMIT - 1]


def test_an_empty_index_of_many_coordinates_takes_no_memory(tmp_path):
    empty = {"ids": npy(np.empty(0, np.int64)), "offsets": npy(np.empty(0, np.float32))}
    write(tmp_path / "index", index(points=npy(header=header((0, 2**31 - 1))), **empty))
    said, more = grown(tmp_path / "index")
    assert said == [] and more < 50e6


def test_places_that_are_no_regular_file(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for place, wrong in (
        (tmp_path, "it is a folder"),
        (tmp_path / "pipe", "it is not a regular file"),
        (tmp_path / "loop", "Too many levels of symbolic links"),
        (tmp_path / ("x" * 300), "File name too long"),
        ("a\0b", "embedded null byte"),
    ):
        with pytest.raises(FileFormatError) as caught:
            networks.load(place)
        assert str(caught.value) == f"cannot load {place}: {wrong}. Remedy: pass a file of network.save."


def test_memory_is_measured(tmp_path):
    """The helper above sees what a load takes."""
    big = np.ones((1000, 25_000), np.float32)
    TwoLayer(big, np.zeros(1000), np.ones(1000)).save(tmp_path / "net")
    said, more = grown(tmp_path / "net")
    assert said == [] and more > 90e6
