"""Clusters of items, and fits that begin from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import hcpf
from core.worlds import shard_of
from hcpf import Checkpoints
from hcpf.core.collective import LOCAL
from hcpf.core.shard import ShardData
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma
from hcpf.errors import ParameterError
from hcpf.training import start
from hcpf.training.start import start_from_noise
from model.small import PRIORS
from prepared import prepared


def cluster_items(matrix, n_clusters, seed):
    rng = np.random.default_rng(seed)
    return start.cluster_items(ShardData.whole(matrix), n_clusters, rng)


def blocks(rng, users=60, items=20, groups=4, chance=0.3):
    """Users of a group have items of that group; items of one come one after the other."""
    here = np.repeat(np.arange(groups), users)[:, None] == np.repeat(np.arange(groups), items)
    return sparse.csr_array((here & (rng.random(here.shape) < chance)).astype(np.float32))


def test_items_of_the_same_users_share_a_cluster():
    found = cluster_items(blocks(np.random.default_rng(0)), 4, 1)
    by_group = found.reshape(4, 20)
    assert np.all(by_group == by_group[:, :1])
    assert len(set(by_group[:, 0])) == 4


def test_some_of_the_users_are_enough(monkeypatch):
    monkeypatch.setattr(start, "_MAX_ENTRIES", 700)
    found = cluster_items(blocks(np.random.default_rng(0)), 4, 1)
    groups = [np.bincount(part, minlength=4) for part in found.reshape(4, 20)]
    assert all(counts.max() >= 19 for counts in groups)
    assert len({int(counts.argmax()) for counts in groups}) == 4


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 12), st.integers(0, 99))
def test_any_shape_has_clusters(users, items, size, seed):
    rng = np.random.default_rng(seed)
    matrix = sparse.csr_array((rng.random((users, items)) < 0.3).astype(np.float32))
    found = cluster_items(matrix, size, seed)
    assert found.shape == (items,)
    assert np.all((found >= 0) & (found < size))
    assert np.array_equal(found, cluster_items(matrix, size, seed))


def test_items_without_entries_are_spread():
    matrix = sparse.csr_array((40, 1000), dtype=np.float32)
    found = cluster_items(matrix, 5, 0)
    assert np.all(np.bincount(found, minlength=5) > 100)


@pytest.fixture(scope="module")
def data():
    return hcpf.simulate(80, 50, n_components=4, density=0.15, random_state=3).interactions


def fit(data, **options):
    defaults = {"element": "gamma", "max_iter": 4, "tol": 0.0, "random_state": 0}
    return prepared(4, **(defaults | options)).fit(data)


def same(one, other):
    return np.array_equal(one.items.mean_, other.items.mean_)


def test_every_second_fit_begins_from_clusters(data):
    auto, noise, clustered = (
        fit(data, start=start, n_fits=3) for start in ("auto", "noise", "clusters")
    )
    assert same(auto.posteriors_[0], noise.posteriors_[0])
    assert same(auto.posteriors_[1], clustered.posteriors_[1])
    assert same(auto.posteriors_[2], noise.posteriors_[2])
    assert not same(noise.posteriors_[1], clustered.posteriors_[1])


@pytest.mark.parametrize(
    "options", [{"solver": "svi"}, {"solver": "algorithm1"}, {"train_on": "observed"}]
)
def test_fits_that_forget_their_start_begin_from_noise(data, options):
    fits = [fit(data, start=i, n_fits=2, **options).posteriors_[1] for i in ("auto", "noise")]
    assert same(*fits)
    with pytest.raises(ParameterError, match="start='clusters' requires solver"):
        fit(data, start="clusters", **options)


@pytest.mark.parametrize(("density", "alike"), [(0.4, False), (0.6, True)])
def test_where_most_pairs_are_observed_fits_begin_from_noise(density, alike):
    drawn = hcpf.simulate(40, 30, n_components=4, density=density, random_state=3)
    drawn = drawn.interactions.matrix
    assert (drawn.nnz > 0.5 * drawn.shape[0] * drawn.shape[1]) == alike
    fits = [fit(drawn, start=i, n_fits=2, tempering=1.0).posteriors_[1] for i in ("auto", "noise")]
    assert same(*fits) == alike


def test_another_start_is_refused(data):
    with pytest.raises(ParameterError, match="start must be"):
        fit(data, start="spectral")


def test_most_of_an_items_mean_moves_to_its_component(data):
    shard = shard_of(ShardData.whole(data.matrix), ValueModel(Gamma(2.0, 0.5)))
    own = np.arange(data.n_items) % 4
    noise, clustered = (
        start_from_noise(shard, PRIORS, 4, np.random.default_rng(0), LOCAL, given).items.factors
        for given in (None, own)
    )
    np.testing.assert_allclose(clustered.mean.sum(axis=1), noise.mean.sum(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(clustered.activity_b, noise.activity_b)
    share = clustered.mean[np.arange(len(own)), own] / clustered.mean.sum(axis=1)
    assert np.all((share > 0.9) & (share < 0.96))
    assert np.all(clustered.a >= 0.3)


def test_a_killed_fit_from_clusters_goes_on_to_the_same_bits(data, tmp_path):
    whole = fit(data, start="clusters", n_fits=1, max_iter=6)
    folder = tmp_path / "run"
    saving = Checkpoints(folder, every_passes=2)
    fit(data, start="clusters", n_fits=1, max_iter=6, checkpoint=saving)
    again = fit(data, start="clusters", n_fits=1, max_iter=6, checkpoint=folder)
    assert same(whole.posterior_, again.posterior_)


def test_items_are_embedded_by_their_leading_singular_vectors():
    matrix = blocks(np.random.default_rng(0), groups=3)
    degrees = np.bincount(matrix.indices, minlength=matrix.shape[1])
    found = start._embed(matrix, degrees, 3, np.random.default_rng(1)).astype(np.float64)
    activity, popularity = np.diff(matrix.indptr) + 5.0, degrees + 5.0
    scaled = matrix.toarray().astype(np.float64) / np.sqrt(np.outer(activity, popularity))
    _, values, vectors = np.linalg.svd(scaled, full_matrices=False)
    expected = vectors[:3].T * values[:3]
    product = expected @ expected.T
    np.testing.assert_allclose(found @ found.T, product, atol=0.05 * product.max())


def test_columns_beyond_the_rank_of_a_basis_are_zero():
    rng = np.random.default_rng(0)
    basis = (rng.random((30, 2)) @ rng.random((2, 5))).astype(np.float32)
    found = start._orthonormal(basis)
    np.testing.assert_allclose(found.T @ found, np.diag([1, 1, 0, 0, 0]), atol=1e-4)
    np.testing.assert_allclose(found @ (found.T @ basis), basis, atol=1e-4)
