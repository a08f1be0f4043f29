"""How many entries there are behind predictions and recommendations."""

from dataclasses import replace

import numpy as np
import pytest

import hcpf
from hcpf import HCPF, simulate
from hcpf.core.axis import Axis
from hcpf.elements import Gamma
from hcpf.model import entry_counts, ranking
from hcpf.model.entry_counts import count_entries, entries_of_row, total_entries
from hcpf.model.predict import predict_table


def test_details_of_a_new_user_count_the_entries_that_the_items_were_trained_on(tmp_path):
    data = simulate(30, 12, element=Gamma(2, 0.1), density=0.3, random_state=0).interactions
    model = HCPF(2, element="gamma", n_fits=1, max_iter=3, random_state=0).fit(data).model_
    new = model.fold_in({3: 10.0, 5: 20.0})
    found = new.recommend(n=4, details=True)
    popularity = np.bincount(data.matrix.indices, minlength=12)
    assert found.user_entries.tolist() == [2] * 4
    assert found.item_entries.tolist() == popularity[found.item].tolist()
    new.save(tmp_path / "new")
    assert "item_entries" not in hcpf.load(tmp_path / "new").recommend(n=4, details=True).columns()


def test_entries_are_counted_once(monkeypatch):
    data = simulate(30, 12, element=Gamma(2, 0.1), density=0.3, random_state=0).interactions
    model = HCPF(2, element="gamma", n_fits=1, max_iter=3, random_state=0).fit(data).model_
    monkeypatch.setattr(ranking, "_USERS_AT_ONCE", 2)
    expected = model.recommend("all", 2, details=True)
    counted = []

    def count(matrix, axis):
        counted.append(axis)
        return count_entries(matrix, axis)

    monkeypatch.setattr(entry_counts, "count_entries", count)
    fresh = replace(model)
    found = fresh.recommend("all", 2, details=True)
    for name, column in expected.columns().items():
        assert column.tolist() == getattr(found, name).tolist()
    fresh.fold_in({3: 10.0}).recommend(n=2, details=True)
    assert counted == [Axis.USERS, Axis.ITEMS, Axis.USERS]  # the last are those of the new user


def test_entries_behind_predictions(tmp_path):
    data = simulate(30, 12, element=Gamma(2, 0.1), density=0.3, random_state=0).interactions
    model = HCPF(2, element="gamma", n_fits=1, max_iter=3, random_state=0).fit(data).model_
    table = predict_table(model, data.users[:12], data.items)
    assert table.user_entries.tolist() == np.diff(data.matrix.indptr)[:12].tolist()
    assert table.item_entries.tolist() == np.bincount(data.matrix.indices, minlength=12).tolist()
    shards = data.to_shards(tmp_path / "shards", n_shards=3)
    assert count_entries(shards.matrix, Axis.ITEMS).tolist() == table.item_entries.tolist()
    model.save(tmp_path / "bare", include_data=False)
    bare = predict_table(hcpf.load(tmp_path / "bare"), data.users[:12], data.items)
    assert list(bare.columns())[-2:] == ["low", "high"]


@pytest.mark.parametrize("axis", Axis)
def test_entries_on_disk_are_summed_and_found_by_row(tmp_path, axis, monkeypatch):
    monkeypatch.setattr("hcpf.model.entry_counts.CHUNK_ENTRIES", 7)
    data = simulate(30, 12, element=Gamma(2, 0.1), density=0.3, random_state=0).interactions
    table = data.matrix.toarray() if axis is Axis.USERS else data.matrix.toarray().T
    for matrix in (data.matrix, data.to_shards(tmp_path / "shards", n_shards=3).matrix):
        np.testing.assert_allclose(total_entries(matrix, axis), table.sum(axis=1))
        for row in (0, 5, len(table) - 1):
            partners, values = entries_of_row(matrix, axis, row)
            assert partners.tolist() == np.flatnonzero(table[row]).tolist()
            np.testing.assert_array_equal(values, table[row, partners])
