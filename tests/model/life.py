"""The whole life of one model, with what must hold at each step, for tests that try anything."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from hcpf import FittedModel, Interactions
from hcpf.elements import Element
from hcpf.errors import HcpfError
from model.small import quick


@dataclass(frozen=True)
class Start:
    """What a life begins with: entries and the settings of the fit."""

    element: Element
    values: tuple[float, ...]
    """Of the observed pairs, in the order of the matrix."""
    observed: tuple[tuple[bool, ...], ...]
    vary_by: str | None = None
    hurdle: bool = False
    train_on: str = "full"
    n_components: int = 2
    n_fits: int = 1
    solver: str = "cavi"
    max_iter: int = 4
    learn_element: bool = True
    user_exposure: tuple[float, ...] | None = None
    item_exposure: tuple[float, ...] | None = None

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print a failing example; Hypothesis would ask the element for all its parameters."""
        printer.text(repr(self))

    @property
    def data(self) -> Interactions:
        users, items = np.nonzero(np.asarray(self.observed))
        shape = len(self.observed), len(self.observed[0])
        values = np.asarray(self.values, dtype=np.float64)
        return Interactions.from_matrix(sparse.csr_array((values, (users, items)), shape=shape))

    @property
    def exposures(self) -> dict[str, tuple[float, ...]]:
        """The exposures that are given, as arguments of fit."""
        given = {"user_exposure": self.user_exposure, "item_exposure": self.item_exposure}
        return {name: exposure for name, exposure in given.items() if exposure is not None}


def live(start: Start) -> str:
    """Live through a whole life; return how it ended: "refused", a step's name, or "whole".

    Every step gives sensible numbers or an HcpfError; anything else fails the test.
    """
    data = start.data
    names = ("element", "vary_by", "hurdle", "train_on", "n_fits", "solver", "max_iter")
    settings = {name: getattr(start, name) for name in (*names, "learn_element")}
    try:
        estimator = quick(start.n_components, **settings)
        model = estimator.fit(data, **start.exposures).model_
    except HcpfError as error:
        check_message(error)
        return "refused"
    ending = "whole"
    for step in (check_pairs, check_intervals, check_draws, check_posterior, check_exposure,
                 check_explanations, check_lists, check_fold_in, check_score, check_files,
                 ):  # fmt: skip
        try:
            step(model, data)
        except HcpfError as error:
            check_message(error)
            ending = step.__name__
    return ending


def check_message(error: HcpfError) -> None:
    """One line in plain words that asks for nothing the user never gave."""
    text = str(error)
    assert text, repr(error)
    assert "\n" not in text, text
    assert not any(word in text for word in ("chi ", "nu ", "Integrated:", "repeats")), text


def check_pairs(model: FittedModel, data: Interactions) -> None:
    users, items = model.users[:, None], model.items
    rate = model.rate(users, items)
    assert np.all(np.isfinite(rate) & (rate >= 0)), rate
    probability = model.predict_proba(users, items)
    assert np.all((probability >= 0) & (probability <= 1))
    value, expected = model.predict(users, items), model.predict_expected_value(users, items)
    assert np.all(np.isfinite(value)), value
    assert np.all(np.isfinite(expected)), expected
    if model.element.support.lowest >= 0:
        assert np.all(value >= 0)
    entries = data.matrix.tocoo()
    seen = model.element.seen(entries.data.astype(np.float64))
    density = model.predict_distribution(entries.row, entries.col).log_density(seen)
    assert np.all(np.isfinite(density)), density


def check_intervals(model: FittedModel, data: Interactions) -> None:
    observed = model.predict_distribution(model.users[:, None], model.items).observed
    low, high = observed.interval(0.9)
    assert np.all(np.isfinite(low) & np.isfinite(high)), (low, high)
    assert np.all(low <= high), (low, high)


def check_draws(model: FittedModel, data: Interactions) -> None:
    users, items = model.users[:2, None], model.items[:2]
    drawn = model.predict_distribution(users, items, n_samples=2, random_state=0)
    assert np.all((drawn.prob_observed >= 0) & (drawn.prob_observed <= 1))
    assert np.all(np.isfinite(drawn.mean_observed)), drawn.mean_observed
    sample = drawn.observed.sample(2, rng=np.random.default_rng(0))
    assert np.all(np.isfinite(sample)), sample


def check_posterior(model: FittedModel, data: Interactions) -> None:
    draws = model.posterior.sample(2, random_state=0)
    pairs = model.users[:2, None], model.items[:2]
    rate, (low, high) = draws.rate(*pairs), draws.interval(*pairs)
    for numbers in (draws.users, draws.items, rate, low, high):
        assert np.all(np.isfinite(numbers) & (np.asarray(numbers) >= 0)), numbers
    assert np.all(low <= high)


def check_exposure(model: FittedModel, data: Interactions) -> None:
    users, items = model.users[:, None], model.items
    once, twice = (model.rate(users, items, exposure=exposure) for exposure in (1.0, 2.0))
    assert np.all(np.isfinite(twice)), twice
    np.testing.assert_allclose(twice, 2.0 * once)


def check_lists(model: FittedModel, data: Interactions) -> None:
    found = model.recommend("all", 3, details=True, exclude_seen=False)
    for name in ("probability", "value", "expected_value", "low", "high", "reason_share"):
        assert np.all(np.isfinite(found.columns()[name])), (name, found)
    entries = np.diff(data.matrix.indptr)
    assert found.user_entries.tolist() == entries[model.user_index.positions(found.user)].tolist()


def check_explanations(model: FittedModel, data: Interactions) -> None:
    for user in model.users:
        for item in model.items[:2]:
            rate = float(model.rate(user, item))
            parts = model.explain(user, item)
            assert np.all(np.isfinite(parts.rate)), parts.rate
            np.testing.assert_allclose(parts.rate.sum(), rate, rtol=1e-6)
            np.testing.assert_allclose(model.explain_components(user, item).sum(), rate, rtol=1e-5)


def check_fold_in(model: FittedModel, data: Interactions) -> None:
    for known in (model.fold_in(data), model.fold_in_items(data)):
        rate = known.rate(known.users[:, None], known.items)
        assert np.all(np.isfinite(rate) & (rate >= 0)), rate
        value = known.predict(known.users[:, None], known.items)
        assert np.all(np.isfinite(value)), value


def check_score(model: FittedModel, data: Interactions) -> None:
    score = model.score(data)
    assert np.isfinite(score), score


def check_files(model: FittedModel, data: Interactions) -> None:
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        found = FittedModel.load(Path(folder) / "model")
        users, items = model.users[:, None], model.items
        for method in ("rate", "predict_proba", "predict", "predict_expected_value"):
            np.testing.assert_array_equal(
                getattr(found, method)(users, items), getattr(model, method)(users, items)
            )
        assert list(found.recommend("all", 3)) == list(model.recommend("all", 3))
