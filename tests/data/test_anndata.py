"""AnnData: cells and genes by name, zeros missing, factors written where they belong."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from data.table_files import by_pair
from hcpf import HCPF
from hcpf.data import Interactions
from hcpf.errors import InputError

anndata = pytest.importorskip("anndata")

COUNTS = np.array([[0.0, 3.0, 0.0], [5.0, 0.0, 1.0]])
EXPECTED = {("cell b", "g2"): 3.0, ("cell a", "g1"): 5.0, ("cell a", "g3"): 1.0}


def cells(X, names=("cell b", "cell a"), genes=("g1", "g2", "g3"), **more):
    obs, var = (pd.DataFrame(index=pd.Index(list(index))) for index in (names, genes))
    return anndata.AnnData(X, obs=obs, var=var, **more)


def with_zeros(form):
    """COUNTS with two of its zeros stored."""
    rows, columns = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 2])
    return form(sparse.coo_array((COUNTS[rows, columns], (rows, columns)), shape=COUNTS.shape))


@pytest.mark.parametrize(
    "X",
    [
        COUNTS,
        COUNTS.astype(np.float32),
        COUNTS.astype(np.int64),
        sparse.csr_matrix(COUNTS),
        sparse.csr_array(COUNTS),
        sparse.csc_matrix(COUNTS),
        with_zeros(sparse.csr_matrix),
        with_zeros(sparse.csc_matrix),
        with_zeros(sparse.csr_array),
    ],
)
def test_zeros_are_missing_and_names_are_ids_in_their_order(X):
    data = Interactions.from_anndata(cells(X))
    assert by_pair(data) == EXPECTED
    assert data.n_observed == 3
    assert data.users.tolist() == ["cell b", "cell a"]
    assert data.items.tolist() == ["g1", "g2", "g3"]
    assert data.matrix.has_canonical_format


def test_stored_zeros_in_the_source_stay_there():
    X = with_zeros(sparse.csr_matrix)
    Interactions.from_anndata(cells(X))
    assert X.nnz == 5


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_later_changes_of_the_source_do_not_matter(form):
    adata = cells(form(COUNTS))
    data = Interactions.from_anndata(adata)
    values = adata.X if form is np.array else adata.X.data
    values[:] = 99.0
    assert by_pair(data) == EXPECTED


def test_a_layer():
    adata = cells(COUNTS, layers={"raw": sparse.csr_matrix(2 * COUNTS)})
    data = Interactions.from_anndata(adata, layer="raw")
    assert by_pair(data) == {pair: 2 * value for pair, value in EXPECTED.items()}


def test_a_view():
    data = Interactions.from_anndata(cells(sparse.csr_matrix(COUNTS))[["cell a"], ["g3", "g1"]])
    assert by_pair(data) == {("cell a", "g3"): 1.0, ("cell a", "g1"): 5.0}


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_a_file_that_is_not_in_memory(tmp_path, form):
    cells(form(COUNTS)).write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    try:
        assert by_pair(Interactions.from_anndata(backed)) == EXPECTED
    finally:
        backed.file.close()


@pytest.mark.parametrize("wrong", [None, 5, "cells.h5ad", COUNTS, pd.DataFrame(COUNTS), object()])
def test_what_is_no_anndata(wrong):
    with pytest.raises(InputError, match=f"must be an AnnData, got {type(wrong).__name__}"):
        Interactions.from_anndata(wrong)


@pytest.mark.parametrize("layer", ["counts", 0, ["raw"], np.array([1, 2]), {}])
def test_wrong_layers(layer):
    adata = cells(COUNTS, layers={"raw": COUNTS})
    with pytest.raises(InputError, match=r"(?s)layer=.*\['raw'\]"):
        Interactions.from_anndata(adata, layer=layer)


def test_no_matrix():
    with pytest.raises(InputError, match=r"no X\. Pass layer="):
        Interactions.from_anndata(cells(None))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
def test_values_that_are_not_finite(form, bad):
    X = COUNTS.copy()
    X[1, 2] = bad
    with pytest.raises(InputError, match=rf"user 'cell a' and item 'g3'.*{bad:g}"):
        Interactions.from_anndata(cells(form(X)))


def test_entries_stored_twice_are_not_summed():
    X = sparse.csr_matrix((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 3))
    with pytest.raises(InputError, match=r"user 'cell b' and item 'g2'.*more than once"):
        Interactions.from_anndata(cells(X))


@pytest.mark.filterwarnings("ignore:.*names are not unique:UserWarning")
def test_names_that_occur_twice():
    with pytest.raises(InputError, match="users: the id 'c' occurs more than once"):
        Interactions.from_anndata(cells(COUNTS, names=("c", "c")))
    with pytest.raises(InputError, match="items: the id 'g' occurs more than once"):
        Interactions.from_anndata(cells(COUNTS, genes=("g", "g", "h")))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_nothing_in_it(shape):
    with pytest.raises(InputError, match="at least one row and one column"):
        Interactions.from_anndata(anndata.AnnData(np.zeros(shape)))


# -- the estimator --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(7)
    X = sparse.csr_matrix(rng.poisson(0.7, (30, 20)).astype(float))
    adata = cells(X, [f"c{k}" for k in range(30)], [f"g{k}" for k in range(20)])
    model = HCPF(n_components=3, n_fits=1, max_iter=8, random_state=1)
    return model.fit(adata), adata


def test_fit_takes_anndata_by_its_names(fitted):
    model, adata = fitted
    again = HCPF(n_components=3, n_fits=1, max_iter=8, random_state=1)
    again.fit(Interactions.from_anndata(adata))
    assert np.array_equal(model.transform(adata), again.transform(adata))


def test_write_anndata_puts_each_factor_beside_its_name(fitted):
    model, adata = fitted
    straight, turned = adata.copy(), adata[::-1, ::-1].copy()
    model.write_anndata(straight)
    model.write_anndata(turned, key="other")
    assert straight.obsm["X_hcpf"].shape == (30, 3)
    assert straight.varm["hcpf"].shape == (20, 3)
    assert np.ptp(straight.obsm["X_hcpf"]) > 0
    assert np.array_equal(turned.obsm["X_other"], straight.obsm["X_hcpf"][::-1])
    assert np.array_equal(turned.varm["other"], straight.varm["hcpf"][::-1])


def test_write_anndata_refuses_strange_names(fitted):
    model, _ = fitted
    with pytest.raises(InputError, match="unknown id 'cell b'"):
        model.write_anndata(cells(COUNTS))
