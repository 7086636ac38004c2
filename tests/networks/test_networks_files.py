"""Saving and loading: identity, names, atomic replacement, and every way a file can be wrong."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire import _archive
from fewfire._errors import FileFormatError
from fewfire.networks import TwoLayer, load


def small_net(dtype=np.float32, activation="relu"):
    draw = np.random.default_rng(0)
    hidden = draw.normal(size=(3, 2)).astype(dtype)
    return TwoLayer(hidden, draw.normal(size=3), draw.normal(size=3), 0.1, activation)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", ["relu", "relu6", "shifted_relu(0.1)"])
def test_save_then_load_is_the_identity(tmp_path, dtype, activation):
    net = small_net(dtype, activation)
    net.save(tmp_path / "net.npz")
    again = load(tmp_path / "net.npz")
    assert again.equals(net)
    assert again.dtype == dtype
    assert not again.hidden.flags.writeable


@pytest.mark.parametrize("name", ["x", "x.npz", "x.net", "x.tar.npz"])
def test_a_file_has_exactly_the_name_given(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    small_net().save(name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert load(name).equals(small_net())
    assert load(Path(name)).equals(small_net())


def test_numpy_reads_the_file_without_pickle(tmp_path):
    small_net().save(tmp_path / "net.npz")
    with np.load(tmp_path / "net.npz", allow_pickle=False) as archive:
        assert str(archive["format"]) == "fewfire.networks.TwoLayer"
        assert int(archive["version"]) == 1
        assert archive["hidden"].shape == (3, 2)


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    (tmp_path / "plain").touch()
    small_net().save(tmp_path / "net")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "net")}
    assert len(modes) == 1


def test_saving_replaces_an_old_file(tmp_path):
    small_net().save(tmp_path / "net")
    other = small_net(np.float64)
    other.save(tmp_path / "net")
    assert load(tmp_path / "net").equals(other)


@pytest.mark.parametrize("failing", ["savez", "replace"])
def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, failing):
    old = small_net()
    old.save(tmp_path / "net")

    def fail(handle, *_, **__):
        if failing == "savez":
            handle.write(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(*((_archive.np, "savez") if failing == "savez" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="disk full"):
        small_net(np.float64).save(tmp_path / "net")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["net"]
    assert load(tmp_path / "net").equals(old)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load(tmp_path / "none")
    expected = f"cannot load {tmp_path / 'none'}: there is no such file. Remedy: pass the name given to save."
    assert str(caught.value) == expected
    with pytest.raises(FileNotFoundError, match=r"the folder .*deep does not exist. Remedy: create it\."):
        small_net().save(tmp_path / "deep" / "net")
    with pytest.raises(IsADirectoryError, match=r"it is a folder. Remedy: name a file inside it\."):
        small_net().save(tmp_path)


def fields(**changes):
    net = small_net()
    arrays = {
        "format": np.array("fewfire.networks.TwoLayer"),
        "version": np.array(1),
        "hidden": net.hidden,
        "bias": net.bias,
        "output": net.output,
        "offset": np.array(net.offset),
        "activation": np.array("relu"),
    }
    arrays.update(changes)
    return {name: array for name, array in arrays.items() if array is not None}


def test_files_of_version_1_are_read(tmp_path):
    with (tmp_path / "net").open("wb") as handle:
        np.savez(handle, **fields())
    assert load(tmp_path / "net").equals(small_net())


@pytest.mark.parametrize(
    ("changes", "wrong", "remedy"),
    [
        ({"format": None}, "it was not written by network.save", "pass a file of network.save"),
        ({"format": np.array("other")}, "it was not written by network.save", "pass a file of network.save"),
        ({"version": None}, "it was not written by network.save", "pass a file of network.save"),
        ({"version": np.array(3)}, "it has format version 3 and this fewfire reads up to 2", "upgrade fewfire"),
        ({"bias": None}, "it lacks bias", "write it again with network.save"),
        ({"hidden": np.ones((3, 2), int)}, "its arrays have the wrong type", "write it again with network.save"),
        ({"offset": np.ones(2)}, "its arrays have the wrong type", "write it again with network.save"),
        ({"activation": np.array(1)}, "its arrays have the wrong type", "write it again with network.save"),
    ],
)
def test_foreign_newer_and_wrong_files(tmp_path, changes, wrong, remedy):
    with (tmp_path / "net").open("wb") as handle:
        np.savez(handle, **fields(**changes))
    with pytest.raises(FileFormatError) as caught:
        load(tmp_path / "net")
    assert str(caught.value) == f"cannot load {tmp_path / 'net'}: {wrong}. Remedy: {remedy}."


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"bias": np.ones(2)}, "bias must have shape (3,)"),
        ({"output": np.array([0, np.nan, 0])}, "output must hold finite float32 numbers"),
        ({"activation": np.array("gelu")}, "activation must be 'relu'"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, changes, wrong):
    with (tmp_path / "net").open("wb") as handle:
        np.savez(handle, **fields(**changes))
    with pytest.raises(FileFormatError) as caught:
        load(tmp_path / "net")
    assert f"its arrays do not fit together ({wrong}" in str(caught.value)


def test_files_of_another_kind(tmp_path):
    for content in (b"", b"hello", b"PK\x03\x04 not a zip", bytes(500)):
        (tmp_path / "net").write_bytes(content)
        with pytest.raises(FileFormatError, match=r"it is not a complete \.npz archive\. Remedy: write it again"):
            load(tmp_path / "net")
    np.save(tmp_path / "plain.npy", np.ones(3))
    with pytest.raises(FileFormatError, match=r"it is not a complete \.npz archive"):
        load(tmp_path / "plain.npy")


def test_pickles_are_never_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    with (tmp_path / "net").open("wb") as handle:
        np.savez(handle, **fields(hidden=np.array([Trap()], dtype=object)))
    with pytest.raises(FileFormatError, match="some of its arrays are damaged"):
        load(tmp_path / "net")
    assert not (tmp_path / "sprung").exists()


def test_every_truncation_is_refused(tmp_path):
    small_net().save(tmp_path / "net")
    content = (tmp_path / "net").read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(FileFormatError, match="cut"):
            load(tmp_path / "cut")


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_byte_is_harmless_or_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damage")
    small_net().save(folder / "net")
    content = bytearray((folder / "net").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    (folder / "net").write_bytes(content)
    try:
        assert load(folder / "net").equals(small_net())
    except FileFormatError as error:
        assert str(folder / "net") in str(error)
