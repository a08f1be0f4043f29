"""Estimates from real values, where the data lie beside the repository."""

import numpy as np
import pytest

from hcpf import CompoundPoisson, elements

SETS = [
    ("online_retail_quantity", "counts"),  # up to 80,000
    ("lastfm_user_tags", "counts"),
    ("ml1m", "counts"),
    ("online_retail_spend", "amounts"),
    ("steam_hours", "amounts"),
]


@pytest.mark.parametrize(("name", "kind"), SETS)
def test_all_fitting_elements_take_real_values(name, kind, shared_data):
    parquet = pytest.importorskip("pyarrow.parquet")
    y = parquet.read_table(shared_data / name / f"{name}.parquet").column("value").to_numpy()
    y = y.astype(np.float64)
    for family in elements.ALL:
        if kind == "amounts" and family.support.discrete:
            continue
        estimate = family.estimate(y)
        assert estimate.is_complete
        observed = CompoundPoisson([1e-4, 0.1], estimate).observed
        some = y[np.argsort(y)[[0, len(y) // 2, -1]], None]
        density = observed.log_density(some)
        assert not np.any(np.isnan(density))
        assert np.all(np.isfinite(observed.quantile([[0.05], [0.95]])))
