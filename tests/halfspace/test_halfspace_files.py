"""Files of an index that are missing, damaged, foreign or newer."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire import FileFormatError, halfspace, networks


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "index"
    halfspace.Index(np.arange(12.0).reshape(4, 3), [0, 1, 2, 3], "tree").save(path)
    return path


def change(path, **changes):
    with np.load(path) as archive:
        arrays = dict(archive)
    with path.open("wb") as handle:
        np.savez(handle, **{**arrays, **changes})


def test_the_method_is_kept(saved):
    assert halfspace.load(saved).requested == "tree"


def test_a_truncated_file(saved):
    saved.write_bytes(saved.read_bytes()[:-50])
    with pytest.raises(
        FileFormatError, match="it is not a complete .npz archive. Remedy: write it again with index.save"
    ):
        halfspace.load(saved)


def test_a_network_is_not_an_index(tmp_path):
    networks.TwoLayer([[1.0]], [0.0], [1.0]).save(tmp_path / "net")
    with pytest.raises(FileFormatError, match="it was not written by index.save"):
        halfspace.load(tmp_path / "net")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": np.array(2)}, "format version 2 and this fewfire reads up to 1. Remedy: upgrade fewfire"),
        ({"points": np.zeros((4, 3))}, "its arrays have the wrong type"),
        ({"ids": np.array([0, 1, 1, 2])}, "its ids are not ascending"),
        ({"ids": np.array([0, 1, 2, 9])}, "its ids are not ascending and below next_id"),
        ({"offsets": np.zeros(3, dtype=np.float32)}, "its arrays do not fit together"),
        ({"points": np.full((4, 3), np.nan, dtype=np.float32)}, "its arrays do not fit together"),
        ({"method": np.array("magic")}, "its arrays do not fit together"),
    ],
)
def test_wrong_parts_are_named(saved, changes, text):
    change(saved, **changes)
    with pytest.raises(FileFormatError, match=text):
        halfspace.load(saved)


def test_memory_follows_the_points_and_not_their_ids(saved):
    change(saved, ids=np.array([0, 7, 2**41, 2**62]), next_id=np.array(2**62 + 1))
    index = halfspace.load(saved)
    assert index.memory < 100_000
    index.remove([2**41])
    assert index.insert([[1.0, 2.0, 3.0]]).tolist() == [2**62 + 1]
    assert index.ids.tolist() == [0, 7, 2**62, 2**62 + 1]


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        halfspace.load(tmp_path / "none")
