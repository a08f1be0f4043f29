"""Components that many fits agree on: clusters, medians, stability, and matched components."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcpf import HCPF, FittedModel, Interactions, plots, simulate
from hcpf.elements import Poisson
from hcpf.errors import InputError, ParameterError
from hcpf.evaluate import Score, align, choose_components, consensus, split
from hcpf.evaluate.agreement import (
    Consensus,
    ConsensusCandidate,
    Stability,
    _cluster,
    _isolation,
    _matched_cosine,
    _medians,
)
from model.small import by_hand

SETTINGS = {
    "element": Poisson(2.0), "learn_element": False, "tempering": 1.0, "max_iter": 40,
    "solver": "cavi", "tol": 1e-3, "random_state": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def world():
    return simulate(
        120, 50, n_components=3, density=0.25, element=Poisson(2.0), user_shape=0.15,
        item_shape=0.15, random_state=3,
    )  # fmt: skip


@pytest.fixture(scope="module")
def found(world):
    return consensus(world.interactions, (2, 3, 5), n_fits=4, **SETTINGS)


def cosines(first, second):
    unit = [m / np.linalg.norm(m, axis=0) for m in (first, second)]
    return unit[0].T @ unit[1]


def test_the_true_components_are_found_where_fits_agree(found, world):
    stability = {c.n_components: c.stability for c in found.candidates}
    assert found.best == 3
    assert stability[3].silhouette > stability[5].silhouette
    assert found.model.n_components == 3
    matched = cosines(found.model.posteriors[0].items.mean, world.item_factors)
    assert sorted(matched.argmax(axis=0)) == [0, 1, 2]
    assert matched.max(axis=0).min() > 0.9


def test_the_result_is_an_ordinary_model(found, world, tmp_path):
    model = found.model
    assert len(model.posteriors) == 1
    assert model.data is world.interactions
    model.save(tmp_path / "model")
    again = FittedModel.load(tmp_path / "model")
    assert again.recommend(0, 3).item.tolist() == model.recommend(0, 3).item.tolist()
    assert model.factors("items").values.shape == (50, 3)
    other = found.refit(5)
    assert other.n_components == 5
    with pytest.raises(InputError, match=r"was not tried\. Pass one of 2, 3, 5"):
        found.refit(4)


def test_a_table_and_charts_by_size(found):
    table = found.to_table()
    assert table.n_components.tolist() == [2, 3, 5]
    assert "best 3" in repr(found)
    stability, likelihood = plots.consensus(found)
    assert len(stability.to_table()) == 6
    assert "best by one standard error: 3" in likelihood.to_svg()


def test_of_a_split_the_test_pairs_stay_unseen(world):
    parts = split(world.interactions, test=0.2, validation=0.1, random_state=0)
    found = consensus(parts, 3, n_fits=2, **(SETTINGS | {"max_iter": 10}))
    assert found.model.data is parts.train
    assert found.model.excluded.nnz == parts.held_out.nnz
    with pytest.raises(InputError, match="consensus: this split has no validation pairs"):
        consensus(split(world.interactions, validation=0.0, random_state=0), 3, n_fits=2)


def model_of(components_by_fit, n_users=4):
    """A model whose fits have the given item factors, items x K each."""
    rng = np.random.default_rng(0)
    size = np.shape(components_by_fit[0])[1]
    return by_hand([(rng.gamma(1.0, size=(n_users, size)), items) for items in components_by_fit])


def test_outliers_are_dropped_and_medians_taken():
    first, second = np.array([6.0, 3.0, 1.0, 1e-6, 1e-6]), np.array([1e-6, 1e-6, 1.0, 4.0, 5.0])
    stray = np.array([1e-6, 9.0, 1e-6, 1e-6, 1e-6])
    fits = [
        np.column_stack([first, second]), np.column_stack([2.0 * second, 3.0 * first]),
        np.column_stack([first, stray]),
    ]  # fmt: skip
    model = model_of(fits)
    members, stability = _cluster(model, 1, 0.3)
    assert sorted(sorted(group.tolist()) for group in members) == [[0, 3, 4], [1, 2]]
    assert stability.kept == pytest.approx(5 / 6)
    assert stability.silhouette == pytest.approx(1.0, abs=1e-3)
    start = _medians(model, members)
    assert len(start.posteriors) == 1
    shares = start.factors("items", "share").values
    matched = cosines(shares, np.column_stack([first, second]))
    np.testing.assert_allclose(np.sort(matched.ravel())[-2:], 1.0, atol=1e-6)
    # Scaling a component back and forth does not change what users and items give together.
    k = int(matched[:, 1].argmax())
    expected = [fit.users.mean_[:, j] * fit.items.mean_[:, j].sum()
                for fit, j in ((model.posteriors[0], 1), (model.posteriors[1], 0))]  # fmt: skip
    found = start.posteriors[0].users.mean_[:, k] * start.posteriors[0].items.mean_[:, k].sum()
    np.testing.assert_allclose(found, np.median(expected, axis=0), rtol=1e-4)


def test_fits_that_disagree_are_clustered_all_the_same(caplog):
    fits = [np.eye(6)[:, [0, 1]] + 1e-9, np.eye(6)[:, [2, 3]] + 1e-9]
    members, stability = _cluster(model_of(fits), 1, 0.1)
    assert sum(map(len, members)) == 4
    assert stability.kept == 0.0
    assert "only 0 of 4 are near those of other fits" in caplog.text


@given(st.integers(0, 100), st.integers(1, 4))
def test_isolation_is_the_mean_distance_of_neighbors(seed, n_neighbors):
    rng = np.random.default_rng(seed)
    points = np.sqrt(rng.dirichlet(np.ones(4), size=6))
    for j, value in enumerate(_isolation(points, n_neighbors)):
        others = sorted(np.linalg.norm(points[j] - points[i]) for i in range(6) if i != j)
        assert value == pytest.approx(np.mean(others[:n_neighbors]), abs=1e-6)


@given(st.integers(0, 100))
def test_matched_cosine_is_the_best_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(5), size=9)  # three fits of three components
    expected = []
    for a, b in itertools.combinations(range(3), 2):
        cosine = cosines(rows[3 * a : 3 * a + 3].T, rows[3 * b : 3 * b + 3].T)
        sums = [sum(cosine[i, p[i]] for i in range(3)) for p in itertools.permutations(range(3))]
        expected.append(max(sums) / 3)
    assert _matched_cosine(rows, 3) == pytest.approx(np.mean(expected))


def test_align_finds_permuted_components_by_the_names_of_items():
    rng = np.random.default_rng(1)
    items = rng.gamma(0.3, size=(8, 3)) + 1e-3
    first = by_hand([(np.ones((2, 3)), items)], items=np.array([f"i{j}" for j in range(8)], object))
    order, rows = [2, 0, 1], [7, 3, 1, 0, 5, 4, 2]
    second = by_hand(
        [(np.ones((2, 3)), items[rows][:, order])],
        items=np.array([f"i{j}" for j in rows], object),
    )
    found = align(first, second)
    assert found.first.tolist() == [0, 1, 2]
    assert [order[j] for j in found.second] == [0, 1, 2]
    np.testing.assert_allclose(found.cosine, 1.0, rtol=1e-6)
    stranger = by_hand([(np.ones((2, 1)), np.ones((2, 1)))], items=np.array(["x", "y"], object))
    with pytest.raises(InputError, match="no items in common"):
        align(first, stranger)
    with pytest.raises(ParameterError, match="fit must be less than 1"):
        align(first, second, fits=(0, 1))
    for wrong in (0, (0, 0, 0)):
        with pytest.raises(ParameterError, match="fits must be two integers"):
            align(first, second, fits=wrong)


def test_of_several_fits_one_is_aligned(world):
    model = HCPF(3, n_fits=2, **SETTINGS).fit(world.interactions)
    found = align(model, model, fits=(0, 1))
    assert sorted(found.second) == [3, 4, 5]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": ()}, "n_components is empty"),
        ({"n_components": 0}, "n_components must be an integer"),
        ({"n_fits": 1}, "n_fits must be an integer, 2 or more"),
        ({"max_distance": -1}, "max_distance must be between"),
        ({"neighbors": 2}, "neighbors must be in"),
    ],
)
def test_wrong_parameters(world, wrong, message):
    with pytest.raises((InputError, ParameterError), match=message):
        consensus(world.interactions, **({"n_components": 2} | wrong))


def test_the_smallest_of_nearly_equal_sizes_is_best():
    stability = Stability(0.5, 0.5, 1.0)
    tried = [(2, 4.0), (4, 0.2), (8, 0.0)]
    rows = [
        ConsensusCandidate(k, Score(-5.0 - v, 9.0), 1.0, Score(v, 0.3), stability, None)
        for k, v in tried
    ]
    assert Consensus(rows, None, None, None, {}).best == 4


def test_a_layer_and_columns_of_an_anndata(world):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    counts = world.interactions.matrix.astype(np.float32)
    depth = np.random.default_rng(0).gamma(4.0, 1.0, counts.shape[0])
    names = [[f"{word}{j}" for j in range(n)] for word, n in zip("cg", counts.shape, strict=True)]
    obs = pandas.DataFrame({"depth": depth}, index=names[0])
    var = pandas.DataFrame(index=names[1])
    adata = anndata.AnnData(np.log1p(counts), obs=obs, var=var, layers={"counts": counts})
    options = {"layer": "counts", "user_exposure": "depth"}
    read = Interactions.from_anndata(adata, layer="counts")
    for choose in (consensus, choose_components):
        size = {"n_components": 2, "n_fits": 2} if choose is consensus else {"n_components": (2,)}
        found = choose(adata, **size, fit_options=options, **SETTINGS)
        expected = choose(read, **size, fit_options={"user_exposure": depth}, **SETTINGS)
        score, other = (one.candidates[0].log_likelihood for one in (found, expected))
        assert score == other
    with pytest.raises(InputError, match="layer='counts' is for AnnData"):
        consensus(read, 2, fit_options=options, **SETTINGS)
