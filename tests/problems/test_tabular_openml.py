"""Data sets from OpenML: recorded answers of every shape, and the errors of those that cannot be used."""

import socket

import numpy as np
import pytest
from recorded_openml import CLASSES, FEATURES, TARGETS, arff, record

from fewfire import DataUnavailable, FileFormatError
from fewfire.problems import tabular
from fewfire.problems.tabular import _arff, _load
from fewfire.problems.tabular._load import DatasetInfo

TINY = DatasetInfo(99, "tiny", 3, 7, 31337)


@pytest.fixture(autouse=True)
def downloads(monkeypatch, tmp_path):
    """Downloads are kept in a folder of the test; a request for an address gets the error of a machine offline."""

    def refuse(*arguments, **options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "downloads"))
    monkeypatch.delenv("FEWFIRE_DATA", raising=False)
    monkeypatch.setitem(_load.DATASETS, "tiny", TINY)
    return tmp_path / "downloads"


@pytest.mark.parametrize("shape", TARGETS)
def test_recorded_answers_give_numbers_categories_and_classes(downloads, shape):
    record(downloads, TINY.openml_id, arff(*TARGETS[shape]))
    data = tabular.load("tiny")
    assert data.X.dtype == np.float32 and data.y.dtype == np.int64
    assert data.X[:, 0].tolist() == [10, 20, 30, 40, 50, 60, 70]
    assert data.X[:, 1].tolist() == [2, 0, 1, 1, 2, 0, 0]  # blue, green, red
    assert data.X[-1, 2] == 7.25
    assert data.y.tolist() == CLASSES
    assert data.feature_names == ("age", "the colour", "height")
    assert data.categorical.tolist() == [False, True, False]
    assert (data.name, data.task, data.source) == ("tiny", "classification", "OpenML 31337")


def test_tables_are_read_piece_by_piece(downloads, monkeypatch):
    monkeypatch.setattr(_arff, "ROWS_AT_ONCE", 3)
    record(downloads, TINY.openml_id)
    assert tabular.load("tiny").y.tolist() == CLASSES


def test_load_asks_openml_when_there_is_no_file(downloads, tmp_path):
    record(downloads, TINY.openml_id)
    assert tabular.load("tiny", tmp_path).source == "OpenML 31337"


def test_features_may_be_missing(downloads):
    rows = ("?,red,1.5", " 20 ,?,2.5", *FEATURES[2:])
    record(downloads, TINY.openml_id, arff(features=rows))
    assert np.argwhere(np.isnan(tabular.load("tiny").X)).tolist() == [[0, 0], [1, 1]]


def test_columns_that_the_description_leaves_out(downloads):
    record(downloads, TINY.openml_id, ignore_attribute=["age"], row_id_attribute="height")
    with pytest.raises(FileFormatError, match="should have 7 rows and 3 features; it has 7 and 1"):
        tabular.load("tiny")


BAD_TABLES = {
    "a missing class": (arff(labels="PN?NNP?"), "OpenML 31337 has no class (column 'class') in 2 rows, the first being row 3. Remedy: leave out the rows without one."),
    "a missing number as class": (arff("class REAL", "10?0010"), "OpenML 31337 has no class (column 'class') in 1 rows, the first being row 3. Remedy: leave out the rows without one."),
    "infinity": (arff(features=("10,red,inf", *FEATURES[1:])), "OpenML 31337 has inf in row 1 of the column 'height'; features must be finite numbers of float32."),
    "beyond float32": (arff(features=(*FEATURES[:6], "70,blue,-1e39")), "OpenML 31337 has -1e+39 in row 7 of the column 'height'; features must be finite numbers of float32."),
    "beyond float64": (arff(features=(*FEATURES[:6], "1e999,blue,1")), "OpenML 31337 has inf in row 7 of the column 'age'; features must be finite numbers of float32."),
    "no number": (arff(features=("ten,red,1.5", *FEATURES[1:])), "row 1 has 'ten' in the column 'age', which is no number."),
    "no category": (arff(features=("10,violet,1.5", *FEATURES[1:])), "row 1 has 'violet' in the column 'the colour', which is none of its categories."),
    "a short row": (arff(features=(*FEATURES[:2], "30,green", *FEATURES[3:])), "row 3 has 3 values for 4 columns."),
    "free text": (arff(age="STRING"), "the column 'age' is of type STRING; columns must be numbers or categories."),
    "no type": (arff(age=""), "the line '@ATTRIBUTE age' describes no column."),
    "sparse rows": (arff(features=("{0 1, 1 red, 2 1.5", *FEATURES[1:])), "row 1 has '{0 1' in the column 'age', which is no number."),
    "no table": ("<html>404</html>", "it is no ARFF file: it has no @ATTRIBUTE lines before @DATA."),
    "nothing": ("", "it is no ARFF file: it has no @ATTRIBUTE lines before @DATA."),
    "a row too many": (arff() + "80,red,1,N\n", "data set 31337 should have 7 rows and 3 features; it has 8 and 3."),
    "no rows": (arff("class {N,P}", "", ()), "data set 31337 should have 7 rows and 3 features; it has 0 and 3."),
    "no target": (arff("klass {N,P}"), "data set 31337 should have 7 rows and 3 features; it has 7 and 4, and no column 'class'."),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TABLES)
def test_tables_that_cannot_be_used_are_refused_by_name(downloads, case):
    text, message = BAD_TABLES[case]
    record(downloads, TINY.openml_id, text)
    with pytest.raises(FileFormatError) as caught:
        tabular.load("tiny")
    assert str(caught.value) == f"OpenML's answer for 'tiny' cannot be used: {message}"


@pytest.mark.parametrize(
    "changes",
    [{"url": "file:///etc/passwd"}, {"url": "https://www.openml.org/../../x"}, {"url": "http://elsewhere.org/tiny"}],
)
def test_addresses_that_are_none(downloads, changes):
    record(downloads, TINY.openml_id, **changes)
    with pytest.raises(FileFormatError, match="as the address of the table, which is none"):
        tabular.load("tiny")


def test_a_damaged_download_is_fetched_again(downloads):
    record(downloads, TINY.openml_id, md5_checksum="0" * 32)
    with pytest.raises(DataUnavailable, match="OpenML could not be asked"):
        tabular.load("tiny")
    for path in downloads.rglob("*.gz"):
        for content in (b"", b"no gzip", path.read_bytes()[:-9]):
            record(downloads, TINY.openml_id)
            path.write_bytes(content)
            with pytest.raises(DataUnavailable, match="OpenML could not be asked"):
                tabular.load("tiny")


def test_offline_names_where_it_looked_and_what_to_do(tmp_path):
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
