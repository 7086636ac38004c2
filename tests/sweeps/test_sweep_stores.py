"""Both stores do the same; the file also keeps what it was given."""

import pytest

from fewfire.sweeps import MemoryStore, SqliteStore
from fewfire.testing import StoreConformance
from fewfire.testing._sweeps import made_up_row, outcomes


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path):
        with SqliteStore(tmp_path / "a b#?.sqlite", write=True) as store:
            yield store

    def test_what_is_kept_is_there_after_opening_again(self, store):
        rows = [made_up_row(trial, width=5 + trial % 3) for trial in range(7)]
        store.add(rows)
        store.close()
        with SqliteStore(store.path) as again:
            assert outcomes(again) == sorted(row.outcome() for row in rows)
        with SqliteStore(store.path, write=True) as again:
            again.add([made_up_row(7)])
            assert again.counts()["done"] == 8 and len(again.settings()) == 3

    def test_a_store_at_rest_is_one_file(self, store):
        store.add([made_up_row(0)])
        assert len(list(store.path.parent.iterdir())) > 1
        store.close()
        assert list(store.path.parent.iterdir()) == [store.path]
        with SqliteStore(store.path) as reader:
            assert reader.counts()["done"] == 1
        assert list(store.path.parent.iterdir()) == [store.path]

    def test_readers_look_on(self, store):
        store.add([made_up_row(0)])
        with SqliteStore(store.path) as reader:
            assert reader.counts()["done"] == 1
            store.add([made_up_row(1)])
            assert reader.counts()["done"] == 2
            half = reader.rows()
            next(half)
            store.add([made_up_row(2)])  # a reader in the middle does not hold the writer up
            assert len(list(half)) == 1 and reader.counts()["done"] == 3
            store.close()
        with SqliteStore(store.path) as reader:
            assert reader.counts()["done"] == 3
