"""Perplexity of thinned counts, and coherence, against loops over pairs."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from hcpf import HCPF, Interactions
from hcpf.elements import Gamma, Poisson
from hcpf.errors import InputError, ParameterError
from hcpf.evaluate import coherence, perplexity, thin
from model.small import by_hand, draw_matrix, quick

COUNTS = np.random.default_rng(3).poisson(0.8, (12, 9)).astype(float)


@given(st.integers(0, 1000), st.floats(0.05, 0.95))
def test_thinned_counts_add_up(seed, share):
    data = Interactions.from_matrix(COUNTS, users=[f"d{j}" for j in range(12)])
    rest, held_out = thin(data, share, random_state=seed)
    np.testing.assert_array_equal(rest.matrix.toarray() + held_out.matrix.toarray(), COUNTS)
    for part in (rest, held_out):
        assert np.all(part.values > 0)
        assert part.users.tolist() == data.users.tolist()


def test_a_share_of_the_units_is_held_out():
    counts = np.random.default_rng(0).poisson(3.0, (200, 50))
    held_out = thin(counts, 0.3, random_state=0)[1]
    total = counts.sum()
    error = math.sqrt(0.3 * 0.7 / total)
    assert abs(held_out.values.sum() / total - 0.3) < 4 * error
    again = thin(counts, 0.3, random_state=0)[1]
    np.testing.assert_array_equal(again.values, held_out.values)


@pytest.mark.parametrize("wrong", [[[0.5, 1.0]], [[-1.0, 2.0]]])
def test_only_counts_are_thinned(wrong):
    with pytest.raises(InputError, match="thin requires counts"):
        thin(wrong)
    with pytest.raises(ParameterError, match="share must be above 0"):
        thin(COUNTS, 1.0)


def by_loops(model, held_out):
    """The definition, with every expected value of every pair."""
    total, units = 0.0, 0.0
    for u in range(held_out.shape[0]):
        expected = model.predict_expected_value(model.users_[u], model.items_)
        for i in range(held_out.shape[1]):
            total += held_out[u, i] * math.log(expected[i] / sum(expected))
            units += held_out[u, i]
    return math.exp(-total / units)


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_fits": 2}, {"hurdle": True}, {"vary_by": "item"}, {"vary_by": "user"}],
    ids=str,
)
def test_perplexity_against_its_definition(settings):
    held_out = np.random.default_rng(1).poisson(0.3, (14, 11)).astype(float)
    data = draw_matrix(Poisson(1.5), seed=2)
    model = quick(2, element=Poisson(), **settings).fit(data)
    assert perplexity(model, held_out) == pytest.approx(by_loops(model, held_out), rel=1e-5)
    turned = Interactions.from_matrix(
        held_out[::-1, ::-1], users=np.arange(14)[::-1], items=np.arange(11)[::-1]
    )
    assert perplexity(model, turned) == pytest.approx(perplexity(model, held_out), rel=1e-9)


def test_a_model_that_has_learned_nothing_has_as_many_items():
    even = by_hand([(np.ones((12, 2)), np.ones((9, 2)))])
    assert perplexity(even, COUNTS) == pytest.approx(9.0, rel=1e-6)
    true = by_hand([(COUNTS + 1e-6, np.eye(9) + 1e-9)])
    assert perplexity(true, COUNTS) < 7.0


def test_a_better_model_has_a_lower_perplexity():
    blocks = np.kron(np.eye(2), np.full((15, 8), 2.0))
    counts = np.random.default_rng(0).poisson(blocks + 0.05)
    rest, held_out = thin(counts, 0.3, random_state=0)
    found = [
        perplexity(HCPF(k, element=Poisson(), n_fits=1, random_state=0).fit(rest), held_out)
        for k in (1, 2)
    ]
    assert 7.0 < found[1] < 10.0 < found[0] < 20.0


def test_held_out_counts_that_do_not_fit():
    model = quick(2, element=Gamma(2.0, 1.0)).fit(draw_matrix(Gamma(2.0, 1.0)))
    for wrong in (np.zeros((14, 11)), -np.ones((14, 11))):
        with pytest.raises(InputError, match="requires held-out counts"):
            perplexity(model, wrong)
    with pytest.raises(InputError, match="unknown id 99"):
        perplexity(model, Interactions.from_matrix([[1.0]], users=[99], items=[3]))
    pipeline = make_pipeline(quick(2, element=Poisson())).fit(COUNTS)
    for model in (pipeline, quick(2)):
        with pytest.raises(
            InputError, match=r"got (Pipeline|Prepared). Fit an HCPF .* pipeline\[-1\]"
        ):
            perplexity(model, COUNTS)
    observed = quick(2, element=Gamma(2.0, 1.0), train_on="observed")
    with pytest.raises(InputError, match="trained on observed pairs only"):
        perplexity(observed.fit(draw_matrix(Gamma(2.0, 1.0))), np.ones((14, 11)))


def npmi(present, items):
    """The definition, pair by pair."""
    found = []
    for i, j in combinations(items, 2):
        both = np.mean(present[:, i] & present[:, j])
        if both in (0.0, 1.0):
            found.append(2.0 * both - 1.0)
            continue
        chance = np.mean(present[:, i]) * np.mean(present[:, j])
        found.append(math.log(both / chance) / -math.log(both))
    return sum(found) / len(found)


@pytest.mark.parametrize("kind", ["relevance", "share", "scaled"])
def test_coherence_against_its_definition(kind):
    model = by_hand([(np.ones((12, 3)), np.random.default_rng(0).gamma(0.3, size=(9, 3)) + 1e-3)])
    found = coherence(model, COUNTS, 4, kind=kind)
    tops = model.top_items(4, kind=kind)
    expected = [npmi(COUNTS > 0, tops.of(k)) for k in range(3)]
    assert found.component.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.npmi, expected, rtol=1e-9)
    assert found.mean == pytest.approx(np.mean(expected))


def test_items_only_together_and_never_together():
    data = np.array([[1, 1, 0, 0], [2, 3, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    items = np.array([[1.0, 1e-9], [0.9, 1e-9], [1e-9, 1.0], [1e-9, 0.9]])
    model = by_hand([(np.ones((4, 2)), items)])
    assert coherence(model, data, 2).npmi.tolist() == pytest.approx([1.0, -1.0])


def test_a_reference_corpus_by_its_ids():
    names = np.array([f"w{j}" for j in range(9)], object)
    factors = np.random.default_rng(0).gamma(0.3, size=(9, 2)) + 1e-3
    model = by_hand([(np.ones((12, 2)), factors)], items=names)
    order = [8, 3, 1, 0, 2, 4, 5, 6, 7]
    turned = Interactions.from_matrix(COUNTS[:, order], items=names[order])
    expected = coherence(model, Interactions.from_matrix(COUNTS, items=names)).npmi
    np.testing.assert_allclose(coherence(model, turned).npmi, expected)
    # Words that the reference lacks never occur there.
    few = Interactions.from_matrix(COUNTS[:, :3], items=names[:3])
    assert coherence(model, few, 9).mean < coherence(model, turned, 9).mean
    others = Interactions.from_matrix(COUNTS, items=[f"word {j}" for j in range(9)])
    with pytest.raises(InputError, match=r"None of the 9 items .* are like 'word 0'"):
        coherence(model, others, 9)
    with pytest.raises(InputError, match="data has 3 columns, but 9 items"):
        coherence(model, COUNTS[:, :3])
    with pytest.raises(InputError, match="at least 2 items"):
        coherence(model, turned, 1)


def test_an_anndata_is_matched_by_its_names():
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    cells, genes = ([f"{letter}{j}" for j in range(n)] for letter, n in (("c", 12), ("g", 9)))
    obs, var = pandas.DataFrame(index=cells), pandas.DataFrame(index=genes)
    adata = anndata.AnnData(COUNTS.astype(np.float32), obs=obs, var=var)
    rest, held_out = thin(adata, 0.3, random_state=0)
    model = HCPF(2, element=Poisson(), n_fits=1, max_iter=20, random_state=0).fit(rest)
    held = anndata.AnnData(held_out.matrix.toarray().astype(np.float32), obs=obs, var=var)
    turned = [3, 1, 4, 0, 8, 2, 6, 5, 7]
    for rows, columns in ((slice(None), turned), (slice(None, None, -1), slice(None, None, -1))):
        found = coherence(model, adata[rows, columns])
        np.testing.assert_allclose(found.npmi, coherence(model, adata).npmi)
        score = perplexity(model, held[rows, columns])
        assert score == pytest.approx(perplexity(model, held_out))
    held.var_names = ["x0", *genes[1:]]
    with pytest.raises(InputError, match="unknown id 'x0'"):
        perplexity(model, held)
