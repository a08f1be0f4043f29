"""How many entries there are behind predictions and recommendations."""

import numpy as np

import hcpf
from hcpf import HCPF, simulate
from hcpf.core.axis import Axis
from hcpf.elements import Gamma
from hcpf.model.entry_counts import count_entries
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
