"""Local data sets: made-up parquet files, where they are looked for, and the texts about bad ones."""

import numpy as np
import pytest

from fewfire import DataUnavailable, FileFormatError, InvalidArgument
from fewfire.problems import tabular

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(folder, name="pol", **columns):
    path = folder / f"{name}.parquet"
    parquet.write_table(arrow.table(columns), path)
    return path


def test_the_catalogue_is_table_1():
    names = list(tabular.DATASETS)
    assert len(names) == 16 and [info.number for info in tabular.DATASETS.values()] == list(range(1, 17))
    assert (names[0], names[8], names[15]) == ("credit", "Higgs", "heloc")
    assert tabular.DATASETS["Bioresponse"].features == 419 and tabular.DATASETS["Bioresponse"].rows == 3434
    assert len({info.openml_id for info in tabular.DATASETS.values()}) == 16
    assert {info.task for info in tabular.DATASETS.values()} == {"classification"}


def test_a_file_is_read_as_it_stands(tmp_path):
    colour = arrow.array(["red", "blue", "red", "green"]).dictionary_encode()
    path = write(tmp_path, a=np.float32([1, 2, 3, 4]), target=np.int8([5, 3, 5, 3]), colour=colour, b=[7, 8, 9, 10])
    data = tabular.load("pol", tmp_path)
    assert data.X.tolist() == [[1, 0, 7], [2, 1, 8], [3, 0, 9], [4, 2, 10]] and data.X.dtype == np.float32
    assert data.y.tolist() == [1, 0, 1, 0]  # 3 and 5 in sorted order
    assert data.feature_names == ("a", "colour", "b") and data.categorical.tolist() == [False, True, False]
    assert data.source == str(path) and len(data) == 4


def test_the_folder_of_the_environment_serves_where_none_is_given(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    write(here, a=[1.0], target=[0])
    write(there, a=[2.0], target=[0])
    monkeypatch.setenv("FEWFIRE_DATA", str(there))
    assert tabular.load("pol").X[0, 0] == 2 and tabular.load("pol", here).X[0, 0] == 1
    with pytest.raises(DataUnavailable, match=f"no heloc.parquet in {there}; nothing"):
        tabular.load("heloc", download=False)


def test_wrong_names_and_folders_are_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="name must be one of 'credit', 'electricity', .*'heloc'; got 'iris'"):
        tabular.load("iris", tmp_path)
    with pytest.raises(InvalidArgument, match="directory must be a folder; got .*nowhere'. Remedy: leave it out"):
        tabular.load("pol", tmp_path / "nowhere")


def test_bad_files_raise_with_what_is_wrong(tmp_path):
    path = write(tmp_path, a=[1.0], label=[0])
    with pytest.raises(FileFormatError, match="a column 'target'; it has 1 rows and the columns a, label."):
        tabular.load("pol", tmp_path)
    write(tmp_path, target=[0])
    with pytest.raises(FileFormatError, match="must have rows, feature columns"):
        tabular.load("pol", tmp_path)
    write(tmp_path, a=["x"], target=[0])
    with pytest.raises(FileFormatError, match="has the column 'a' of type string; columns must be numbers"):
        tabular.load("pol", tmp_path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileFormatError, match="is not a Parquet file that can be read"):
        tabular.load("pol", tmp_path)


def test_missing_classes_and_infinite_features_are_refused_by_name(tmp_path):
    path = write(tmp_path, a=[1.0, 2.0, 3.0], target=[1, None, None])
    for target in ([1, None, None], ["a", None, None], [1.5, float("nan"), None]):
        write(tmp_path, a=[1.0, 2.0, 3.0], target=target)
        with pytest.raises(FileFormatError) as caught:
            tabular.load("pol", tmp_path)
        assert str(caught.value) == (
            f"{path} has no class (column 'target') in 2 rows, the first being row 2. "
            "Remedy: leave out the rows without one."
        )
    for value in (float("inf"), -1e300):
        write(tmp_path, a=[1.0, 2.0], b=[0.0, value], target=[0, 1])
        with pytest.raises(FileFormatError) as caught:
            tabular.load("pol", tmp_path)
        assert str(caught.value) == (
            f"{path} has {value} in row 2 of the column 'b'; features must be finite numbers of float32."
        )
    write(tmp_path, a=[1.0, 2.0], target=[[0], [1]])
    with pytest.raises(FileFormatError, match="has the column 'target' of type list<.*>; classes are single"):
        tabular.load("pol", tmp_path)


def test_a_table_and_its_description_must_agree():
    mask = np.zeros(2, dtype=bool)
    X = np.zeros((3, 2), dtype=np.float32)
    with pytest.raises(InvalidArgument, match=r"y must have 3 values, one per row of X; got shape \(2,\)."):
        tabular.Dataset("d", X, np.zeros(2), "classification", ("a", "b"), mask, "test")
    with pytest.raises(InvalidArgument, match="must describe the 2 columns of X"):
        tabular.Dataset("d", X, np.zeros(3), "classification", ("a",), mask, "test")
