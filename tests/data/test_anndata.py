"""AnnData: cells and genes by name, zeros missing, factors written where they belong."""

import logging

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import hcpf
from data.table_files import by_pair
from hcpf import HCPF
from hcpf.data import Interactions, annotated
from hcpf.errors import InputError, MissingDependencyError, ParameterError

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


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_a_file_by_its_path(tmp_path, form):
    path = tmp_path / "cells.h5ad"
    adata = cells(form(COUNTS), layers={"twice": form(2 * COUNTS)})
    adata.raw = cells(form(np.hstack([COUNTS, COUNTS])), genes=[f"r{j}" for j in range(6)])
    adata.write_h5ad(path)
    for given_path in (path, str(path), [path]):
        data = Interactions.read(given_path)
        assert by_pair(data) == EXPECTED
        assert data.users.tolist() == ["cell b", "cell a"]
    doubled = {pair: 2 * value for pair, value in EXPECTED.items()}
    assert by_pair(Interactions.read(path, layer="twice")) == doubled
    for raw in (
        Interactions.read(path, use_raw=True),
        Interactions.from_anndata(adata, use_raw=True),
    ):
        assert raw.items.tolist() == [f"r{j}" for j in range(6)]
        assert by_pair(raw)[("cell a", "r5")] == 1.0
        assert raw.n_observed == 6


@given(st.integers(1, 12), st.sampled_from(["dense", "csr", "csc"]), st.integers(0, 9))
def test_pieces_of_a_file_make_the_same_matrix(tmp_path_factory, piece, form, seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (int(rng.integers(1, 8)), 5)).astype(np.float32)
    adata = cells(
        X if form == "dense" else getattr(sparse, f"{form}_matrix")(X),
        [f"c{j}" for j in range(len(X))], [f"g{j}" for j in range(5)],
    )  # fmt: skip
    path = tmp_path_factory.mktemp("pieces") / "cells.h5ad"
    adata.write_h5ad(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annotated, "_PIECE", piece)
        found = [Interactions.read(path), Interactions.from_anndata(adata)]
    for data in found:
        np.testing.assert_array_equal(data.matrix.toarray(), X)
        assert data.matrix.has_canonical_format
        assert data.matrix.dtype == np.float32
        assert data.matrix.indices.dtype == np.int32
        assert np.all(data.values > 0)


def test_a_bad_value_in_a_later_piece_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(annotated, "_PIECE", 1)
    X = COUNTS.copy()
    X[1, 2] = np.nan
    cells(X).write_h5ad(tmp_path / "bad.h5ad")
    with pytest.raises(InputError, match=r"bad\.h5ad: .*user 'cell a' and item 'g3'.*nan"):
        Interactions.read(tmp_path / "bad.h5ad")


def test_files_that_are_not_anndata(tmp_path):
    path = tmp_path / "cells.h5ad"
    with pytest.raises(InputError, match="no such file"):
        Interactions.read(path)
    path.write_text("user,item\n1,2\n")
    with pytest.raises(InputError, match="cannot be read as AnnData"):
        Interactions.read(path)
    import h5py

    with h5py.File(path, "w") as file:
        file["other"] = 1
    with pytest.raises(InputError, match="cannot be read as AnnData"):
        Interactions.read(path)
    cells(None).write_h5ad(path)
    with pytest.raises(InputError, match=r"no X\. Pass layer="):
        Interactions.read(path)


def test_options_that_do_not_go_together(tmp_path):
    path = tmp_path / "cells.h5ad"
    cells(COUNTS).write_h5ad(path)
    with pytest.raises(InputError, match=r"has no columns\. Remove user='cell', value=1"):
        Interactions.read(path, user="cell", value=1)
    with pytest.raises(InputError, match=r"layer='counts': there is no such layer"):
        Interactions.read(path, layer="counts")
    with pytest.raises(InputError, match="there is no raw"):
        Interactions.read(path, use_raw=True)
    with pytest.raises(InputError, match="two matrices"):
        Interactions.read(path, use_raw=True, layer="counts")
    with pytest.raises(InputError, match=r"only one \.h5ad file"):
        Interactions.read([path, path])
    table = tmp_path / "a.csv"
    table.write_text("u,i\n1,2\n")
    with pytest.raises(InputError, match=r"only \.h5ad files have layers"):
        Interactions.read(table, user="u", item="i", layer="counts")
    with pytest.raises(InputError, match="requires user= and item="):
        Interactions.read(table)
    with pytest.raises(ParameterError, match="use_raw must be True or False"):
        Interactions.from_anndata(cells(COUNTS), use_raw="yes")


def test_without_anndata_a_file_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "cells.h5ad"
    cells(COUNTS).write_h5ad(path)
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.\[anndata\]'"):
        Interactions.read(path)


def test_values_that_do_not_look_like_counts_are_named(caplog):
    layers = {"counts": COUNTS, "lognorm": np.log1p(COUNTS)}
    adata = cells(COUNTS - COUNTS.mean(), layers=layers)
    adata.raw = cells(COUNTS)
    Interactions.from_anndata(adata)
    Interactions.from_anndata(adata, layer="lognorm")
    assert [record.getMessage() for record in caplog.records] == [
        "X has negative values: it looks scaled, but the model is one of raw counts. Raw counts "
        "may be in layer='counts' or layer='lognorm' or use_raw=True.",
        "The layer 'lognorm' has fractions: it looks normalized, but the model is one of raw "
        "counts. Raw counts may be in layer='counts' or use_raw=True.",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    caplog.clear()
    Interactions.from_anndata(adata, layer="counts")
    Interactions.from_anndata(adata, use_raw=True)
    assert not caplog.records


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


def test_a_layer_is_fitted_and_folded_in(fitted):
    model, adata = fitted
    other = adata.copy()
    other.layers["counts"], other.X = other.X.copy(), np.ones(other.shape)
    again = HCPF(n_components=3, n_fits=1, max_iter=8, random_state=1)
    expected = model.transform(adata)
    assert np.array_equal(again.fit_transform(other, layer="counts"), expected)
    assert np.array_equal(again.transform(other, layer="counts"), expected)
    assert again.fold_in(other, layer="counts").users.tolist() == adata.obs_names.tolist()
    assert not np.allclose(again.transform(other), expected)
    assert again.score(other, layer="counts") == model.score(adata)
    new = again.transform_items(other, layer="counts")
    assert np.array_equal(new, model.transform_items(adata))
    for call in (again.fit, again.transform, again.transform_items, again.score):
        with pytest.raises(InputError, match="layer='counts' is for AnnData"):
            call(COUNTS, layer="counts")


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


@pytest.mark.parametrize("kind", ["mean", "scaled", "share"])
def test_write_anndata_says_how_and_writes_columns(fitted, kind, tmp_path):
    model, adata = fitted
    few = adata[5:9, [3, 1, 7]].copy()
    for _ in range(2):  # what was written before is replaced
        model.write_anndata(few, kind=kind, obs_columns=True)
    expected = model.factors("users", kind).values[5:9]
    np.testing.assert_allclose(few.obsm["X_hcpf"], expected, rtol=1e-6)
    np.testing.assert_allclose(few.obs[["hcpf_0", "hcpf_1", "hcpf_2"]], expected, rtol=1e-6)
    np.testing.assert_allclose(
        few.varm["hcpf"], model.factors("items", kind).values[[3, 1, 7]], rtol=1e-6
    )
    few.write_h5ad(tmp_path / "few.h5ad")
    about = anndata.read_h5ad(tmp_path / "few.h5ad").uns["hcpf"]
    assert about["version"] == hcpf.__version__
    assert (about["n_components"], about["n_fits"], about["seed"]) == (3, 1, 1)
    assert about["element"] == model.element_.name
    assert about["kind"] == kind
    for name, value in model.element_.parameters.items():
        assert about["parameters"][name] == pytest.approx(value)


def test_write_anndata_refuses_strange_names_or_leaves_them_empty(fitted):
    model, adata = fitted
    for strict in (True, False):
        with pytest.raises(InputError, match=r"None of the 2 users of adata was fitted.*'cell b'"):
            model.write_anndata(cells(COUNTS), strict=strict)
    some = cells(COUNTS, names=("c4", "stranger"), genes=("g0", "new", "g9"))
    with pytest.raises(InputError, match=r"1 of 2 users .* 'stranger'\. Pass strict=False"):
        model.write_anndata(some)
    model.write_anndata(some, strict=False)
    assert np.isnan(some.obsm["X_hcpf"][1]).all()
    assert np.isnan(some.varm["hcpf"][1]).all()
    np.testing.assert_allclose(
        some.varm["hcpf"][[0, 2]], model.factors("items").values[[0, 9]], rtol=1e-6
    )
    with pytest.raises(ParameterError, match="kind must be one of"):
        model.write_anndata(adata, kind="loading")
    with pytest.raises(InputError, match="key must be a name"):
        model.write_anndata(adata, key="")
    with pytest.raises(InputError, match="adata must be an AnnData, got ndarray"):
        model.write_anndata(COUNTS)


def test_write_anndata_removes_the_columns_of_a_larger_model(fitted):
    model, adata = fitted
    smaller = HCPF(2, element="geometric", n_fits=1, max_iter=3, random_state=0).fit(adata)
    written = adata.copy()
    written.obs["hcpf_2_of_mine"] = 1.0
    model.write_anndata(written, obs_columns=True)
    smaller.write_anndata(written, obs_columns=True)
    own = set(adata.obs.columns)
    assert set(written.obs.columns) - own == {"hcpf_0", "hcpf_1", "hcpf_2_of_mine"}
    written.uns["hcpf"] = "a text of mine"
    smaller.write_anndata(written, obs_columns=True)
    assert written.uns["hcpf"]["n_components"] == 2
