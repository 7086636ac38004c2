"""Data sets from OpenML: recorded answers, read by both parsers, and the error texts when nothing answers."""

import socket

import numpy as np
import pytest
from recorded_openml import record

from fewfire import DataUnavailable, FileFormatError
from fewfire.problems import tabular
from fewfire.problems.tabular import DatasetInfo, _load

TINY = DatasetInfo(99, "tiny", 3, 7, 31337)


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Downloads are kept in a folder of the test; whoever asks for an address gets the error of a machine offline."""

    def refuse(*arguments, **options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "downloads"))
    monkeypatch.delenv("FEWFIRE_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    return tmp_path / "downloads"


@pytest.mark.parametrize("pandas", [True, False])
def test_recorded_answers_give_numbers_categories_and_classes(no_network, monkeypatch, pandas):
    if pandas:
        pytest.importorskip("pandas")
    monkeypatch.setattr(_load, "is_installed", lambda name: pandas)
    record(no_network, TINY.openml_id)
    data = _load.fetch(TINY)
    assert data.X.dtype == np.float32 and data.y.dtype == np.int64
    assert data.X[:, 0].tolist() == [10, 20, 30, 40, 50, 60, 70]
    assert data.X[:, 1].tolist() == [2, 0, 1, 1, 2, 0, 0]  # blue, green, red
    assert data.X[-1, 2] == 7.25
    assert data.y.tolist() == [1, 0, 1, 0, 0, 1, 0]
    assert data.feature_names == ("age", "colour", "height")
    assert data.categorical.tolist() == [False, True, False]
    assert (data.name, data.task, data.source) == ("tiny", "classification", "OpenML 31337")


def test_load_asks_openml_when_there_is_no_file(no_network, monkeypatch, tmp_path):
    monkeypatch.setitem(_load.DATASETS, "tiny", TINY)
    record(no_network, TINY.openml_id)
    assert tabular.load("tiny").source == "OpenML 31337"
    assert tabular.load("tiny", tmp_path).source == "OpenML 31337"


def test_another_table_under_the_number_is_refused(no_network):
    record(no_network, TINY.openml_id)
    with pytest.raises(FileFormatError, match="should be 'tiny' with 8 rows and 3 features; it has 7 and 3."):
        _load.fetch(DatasetInfo(99, "tiny", 3, 8, TINY.openml_id))


def test_a_damaged_download_is_fetched_again(no_network, monkeypatch):
    monkeypatch.setitem(_load.DATASETS, "tiny", TINY)
    record(no_network, TINY.openml_id, md5="0" * 32)
    with (
        pytest.warns(RuntimeWarning, match="Invalid cache, redownloading"),
        pytest.raises(DataUnavailable, match="OpenML could not be asked"),
    ):
        tabular.load("tiny")


def test_an_answer_that_is_no_table_of_numbers(no_network, monkeypatch):
    monkeypatch.setitem(_load.DATASETS, "tiny", TINY)
    record(no_network, TINY.openml_id, age="string")
    with pytest.raises(FileFormatError, match="OpenML's answer for 'tiny' cannot be used: STRING attributes"):
        tabular.load("tiny")


def test_offline_says_where_it_looked_and_what_to_do(tmp_path):
    with pytest.raises(DataUnavailable) as caught:
        tabular.load("heloc", tmp_path)
    text = str(caught.value)
    assert f"'heloc' is not at hand: no heloc.parquet in {tmp_path}; OpenML could not be asked (" in text
    assert "Name or service not known" in text
    assert text.endswith(
        "Remedy: put heloc.parquet (numeric feature columns and a column 'target') into a folder and name it in "
        "directory or in FEWFIRE_DATA, or connect to openml.org."
    )
    with pytest.raises(DataUnavailable, match="no folder given and FEWFIRE_DATA not set; nothing is to be downloaded"):
        tabular.load("heloc", download=False)


def test_waiting_is_limited_and_the_limit_taken_back(no_network, monkeypatch):
    seen = []

    def look(*arguments, **options):
        seen.append(socket.getdefaulttimeout())
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look)
    with pytest.raises(DataUnavailable):
        tabular.load("heloc")
    assert seen and set(seen) == {60.0} and socket.getdefaulttimeout() is None
