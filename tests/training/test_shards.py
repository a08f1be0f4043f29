"""Fits to shards: as in memory up to the order of summation, and errors where they cannot be."""

import errno
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hcpf
from hcpf import HCPF, Checkpoints, Interactions, Shards, simulate
from hcpf.core import stored_layout
from hcpf.core.collective import LOCAL
from hcpf.core.shard import ShardData
from hcpf.data.shards import files
from hcpf.data.shards import matrix as stored_matrix
from hcpf.elements import Gamma, NegativeBinomial
from hcpf.errors import CheckpointError, InputError, ParameterError, ShardError, SupportError
from hcpf.evaluate import split

CASES: dict[str, dict[str, Any]] = {
    "cavi": {"solver": "cavi"},
    "auto": {"solver": "auto"},
    "svi": {"solver": "svi"},
    "per user and item": {"vary_by": "both"},
    "hurdle per item": {"vary_by": "item", "hurdle": True},
    "presence": {"element": "presence"},
    "observed": {"element": "normal", "train_on": "observed"},
    "tempered": {"element": "inverse_gaussian", "tempering": 2.0},
    "several": {"n_fits": 2, "max_iter": 6},
    "clusters": {"start": "clusters", "max_iter": 6},
}


@pytest.fixture(scope="module")
def data() -> Interactions:
    # Enough entries for minibatches, and amounts that float32 does not hold.
    return simulate(450, 40, density=0.3, element=Gamma(2.0, 0.3), random_state=1).interactions


@pytest.fixture(scope="module")
def folders(data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Shards]:
    folder = tmp_path_factory.mktemp("shards")
    return {n: data.to_shards(folder / str(n), n_shards=n) for n in (1, 3)}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_layout, "BLOCK_ENTRIES", 1000)
    for module in (stored_layout, stored_matrix):
        monkeypatch.setattr(module, "CHUNK_ENTRIES", 1500)


def fit(data: Any, settings: dict[str, Any], **run: Any) -> HCPF:
    default: dict[str, Any] = {"element": "gamma", "n_fits": 1, "tempering": 1.0, "max_iter": 12}
    return HCPF(4, random_state=0, **(default | settings)).fit(data, progress=False, **run)


def assert_equal(one: HCPF, other: HCPF) -> None:
    for mine, theirs in zip(one.posteriors_, other.posteriors_, strict=True):
        for name in ("users", "items"):
            a, b = getattr(mine, name), getattr(theirs, name)
            np.testing.assert_allclose(a.mean_, b.mean_, rtol=1e-4)
            np.testing.assert_allclose(a.shape_, b.shape_, rtol=1e-4)
    assert one.history_[-1].elbo == pytest.approx(other.history_[-1].elbo, rel=1e-7)
    assert type(one.element_) is type(other.element_)
    assert one.element_.parameters == pytest.approx(other.element_.parameters, rel=1e-6)


@pytest.mark.parametrize(("case", "n_shards"), [*((case, 3) for case in CASES), ("cavi", 1)])
def test_shards_fit_as_memory_does(
    data: Interactions, folders: dict[int, Shards], case: str, n_shards: int
) -> None:
    assert_equal(fit(folders[n_shards], CASES[case]), fit(data, CASES[case]))


def test_validation_and_exclusion(data: Interactions, folders: dict[int, Shards]) -> None:
    marks = sparse.random_array(data.shape, density=0.05, rng=np.random.default_rng(3))
    exclude = Interactions.from_matrix(marks)
    for run in ({"validation": 0.1}, {"exclude": exclude}, {"validation": exclude}):
        mine, other = fit(folders[3], {}, **run), fit(data, {}, **run)
        assert_equal(mine, other)
        scores = [model.history_[-1].validation_log_likelihood for model in (mine, other)]
        assert scores[0] == (None if scores[1] is None else pytest.approx(scores[1], rel=1e-6))


def test_a_new_dispersion_lays_out_again(tmp_path: Path) -> None:
    counts = simulate(500, 30, density=0.3, element=NegativeBinomial(3.0, 0.4), random_state=0)
    shards = counts.interactions.to_shards(tmp_path / "s", n_shards=2)
    settings = {"element": NegativeBinomial(1.0, 0.5)}
    mine, other = fit(shards, settings), fit(counts.interactions, settings)
    assert mine.element_ != NegativeBinomial(1.0, 0.5)
    assert_equal(mine, other)


def test_auto_chooses_alike(data: Interactions, folders: dict[int, Shards]) -> None:
    settings = {"element": "quick", "tempering": "auto", "max_iter": 3}
    assert_equal(fit(folders[3], settings), fit(data, settings))


def test_a_fit_resumes(data: Interactions, folders: dict[int, Shards], tmp_path: Path) -> None:
    shards, whole = folders[3], fit(data, {"tol": 0.0})
    checkpoint = Checkpoints(tmp_path / "c", every_passes=1)
    with pytest.MonkeyPatch.context() as patch:
        _stop_after(patch, 5)
        with pytest.raises(RuntimeError, match="stopped"):
            fit(shards, {"tol": 0.0}, checkpoint=checkpoint)
    assert_equal(fit(Shards.open(shards.folder), {"tol": 0.0}, checkpoint=checkpoint), whole)
    with pytest.raises(CheckpointError, match="other data or settings"):
        fit(folders[1], {"tol": 0.0}, checkpoint=checkpoint)


def _stop_after(patch: pytest.MonkeyPatch, n_passes: int) -> None:
    from hcpf.training import loop

    advance = loop.advance_fit

    def stopping(fit: Any) -> None:
        if fit.state.iteration >= n_passes:
            raise RuntimeError("stopped")
        advance(fit)

    patch.setattr(loop, "advance_fit", stopping)


def test_a_worker_has_some_of_the_shards(data: Interactions, folders: dict[int, Shards]) -> None:
    matrix, numbers = folders[3].part([0, 2])
    own = ShardData(matrix, None, numbers, folders[3].n_users)
    assert own.n_users == data.n_users
    rows = own.matrix[np.arange(len(own.numbers))]
    np.testing.assert_array_equal(rows.toarray(), data.matrix[own.numbers].toarray())
    users, items, values = own.sample_entries(50, LOCAL)
    found = data.matrix[own.numbers[users], items]
    np.testing.assert_array_equal(np.asarray(found).ravel(), values)


def test_models_of_shards_answer_as_others_do(
    data: Interactions, folders: dict[int, Shards], tmp_path: Path
) -> None:
    mine, other = fit(folders[3], {"max_iter": 3}), fit(data, {"max_iter": 3})
    for users in ([3, 7], "all"):
        found, expected = (model.recommend(users, n=3) for model in (mine, other))
        assert [row.item for row in found] == [row.item for row in expected]
    mine.save(tmp_path / "model")
    loaded = hcpf.load(tmp_path / "model")
    assert isinstance(loaded.data, Shards)
    assert loaded.data.digest == folders[3].digest
    assert [row.item for row in loaded.recommend([3], n=3)] == [
        row.item for row in other.recommend([3], n=3)
    ]


def test_a_model_outlives_its_shards(
    data: Interactions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shards = data.to_shards(tmp_path / "s")
    fit(shards, {"max_iter": 2}).save(tmp_path / "model")
    assert not caplog.messages
    more = Interactions.from_arrays([10**6], [0], [1.0])
    for change in ("others", "none"):
        if change == "others":
            more.to_shards(shards.folder, append=True)
        else:
            shutil.rmtree(shards.folder)
        loaded = hcpf.load(tmp_path / "model")
        assert loaded.data is None
        assert caplog.records[-1].levelname == "WARNING"
        assert f"without its training data, the shards in {shards.folder}:" in caplog.messages[-1]
        with pytest.raises(InputError, match="does not have its training data"):
            loaded.recommend([3])
    assert len(loaded.recommend([3], n=2, seen=data)) == 2


def test_a_model_of_some_entries_of_shards_is_saved_without_them(
    data: Interactions, folders: dict[int, Shards], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parts = split(folders[1], random_state=0)
    model = fit(parts.train, {"max_iter": 2})
    model.save(tmp_path / "model", include_data=False)
    assert not caplog.messages
    model.save(tmp_path / "model", overwrite=True)
    assert f"{tmp_path / 'model'} is saved without its training data" in caplog.messages[-1]
    loaded = hcpf.load(tmp_path / "model")
    assert loaded.data is None
    assert len(loaded.recommend([3], n=2, seen=data)) == 2


def test_splits_of_shards_stay_on_disk(data: Interactions, folders: dict[int, Shards]) -> None:
    mine, other = (split(source, random_state=0) for source in (folders[3], data))
    assert mine.train.n_observed == other.train.n_observed
    np.testing.assert_array_equal(mine.test.values, other.test.values)
    one = fit(mine.train, {"max_iter": 3}, exclude=mine.held_out)
    assert_equal(one, fit(other.train, {"max_iter": 3}, exclude=other.held_out))


# -- errors ---------------------------------------------------------------------------------------


def test_algorithm1_needs_memory(folders: dict[int, Shards]) -> None:
    with pytest.raises(ParameterError, match=r"Algorithm 1 .* they are in shards"):
        fit(folders[1], {"solver": "algorithm1"})


def test_a_value_outside_the_support_is_named(data: Interactions, tmp_path: Path) -> None:
    matrix = data.matrix.copy()
    matrix.data[777] = -2.0
    shards = Interactions(matrix, data.users, data.items).to_shards(tmp_path / "s", n_shards=2)
    with pytest.raises(SupportError, match="has the value -2, but Gamma takes"):
        fit(shards, {})


def test_a_full_disk_is_a_clear_error(
    data: Interactions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullFile:
        def write(self, _: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(**_: Any) -> FullFile:
        return FullFile()

    shards = data.to_shards(tmp_path / "s")
    monkeypatch.setattr(files.tempfile, "TemporaryFile", full)
    with pytest.raises(ShardError, match=r"Temporary files cannot .*: No space left on device"):
        fit(shards, {})
    monkeypatch.undo()
    assert fit(shards, {"max_iter": 2}).n_iter_ == 2


def test_scratch_goes_where_it_is_told(data: Interactions, tmp_path: Path) -> None:
    data.to_shards(tmp_path / "s")
    shards = Shards.open(tmp_path / "s", scratch=tmp_path / "fast")
    fit(shards, {"max_iter": 2})
    assert not (tmp_path / "s" / "scratch").exists()
    assert list((tmp_path / "fast").iterdir()) == []  # nothing is left behind
