"""The ELBO of new rows against the dense twin, and what the starts of fold-in promise."""

from dataclasses import replace

import numpy as np
import pytest

from core import dense
from core.dense_theta import Theta
from core.worlds import as_matrix, at_fit, draw_model
from hcpf import Interactions
from hcpf.core import fold_in
from hcpf.core.axis import Axis
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Poisson, Presence
from model.small import PRIORS, TRAINING, VARYING, name_of, quick, settings_of
from model.test_against_twin import HURDLES, model_at


def with_users(twin, rows, found):
    """The twin with some of its users at the posterior found for them."""
    side = twin.users
    a, b, activity_b = side.a.copy(), side.b.copy(), side.activity_b.copy()
    a[rows], b[rows], activity_b[rows] = found.a, found.b, found.activity_b
    twin = replace(twin, users=replace(side, a=a, b=b, activity_b=activity_b))
    if found.theta is None:
        return twin
    theta = twin.thetas.users
    chi, nu = theta.chi.copy(), theta.nu.copy()
    chi[rows], nu[rows] = found.theta.chi, found.theta.nu
    users = Theta(chi, nu, theta.chi0, theta.nu0)
    return replace(twin, thetas=replace(twin.thetas, users=users))


@pytest.mark.parametrize("axis", Axis)
@pytest.mark.parametrize("value_model", TRAINING + VARYING + HURDLES, ids=name_of)
def test_the_elbo_of_rows_differs_between_starts_as_in_the_twin(value_model, axis, monkeypatch):
    monkeypatch.setattr(fold_in, "MAX_HALF_STEPS", 1)  # so that the starts are still apart
    twin = draw_model(value_model, shape=(7, 6) if axis is Axis.USERS else (6, 7))
    model, matrix = model_at(twin), as_matrix(twin)
    if axis is Axis.ITEMS:
        twin, matrix = twin.transposed, matrix.T.tocsr()
    new = fold_in._StackedRows(model.fold_in_model, axis, fold_in.NewRows(matrix))
    fit = model.posteriors[0]
    fold = fold_in._FoldIn(new, fit.axis(axis), fit.axis(axis.other))
    fold.run()
    gain = np.diff(fold._row_elbo().reshape(2, -1), axis=0)[0]
    for row in range(new.n_rows):
        stacked = (
            fold_in.posterior_of(fold.mine, fold.prior, np.array([j * new.n_rows + row]))
            for j in range(2)
        )
        before, after = (dense.elbo(with_users(twin, [row], found)) for found in stacked)
        assert gain[row] == pytest.approx(after - before, rel=1e-4, abs=2e-4)


MANY_OPTIMA = replace(PRIORS, user_shape=0.15, item_shape=0.15)
CONVERGED = [
    ValueModel(Gamma(2.0, 1.0)), ValueModel(Gamma(2.0, 1.0), train_on="observed"),
    ValueModel(Gamma(2.0, 1.0), hurdle=True), ValueModel(Presence()),
    ValueModel(Gamma(2.0, 1.0), vary_by="both"), ValueModel(Poisson(1.5), vary_by="user"),
]  # fmt: skip


@pytest.mark.parametrize("axis", Axis)
@pytest.mark.parametrize("value_model", CONVERGED, ids=name_of)
@pytest.mark.parametrize("tempering", [1.0, 3.0])
def test_rows_of_the_training_data_reach_the_elbo_of_training(
    value_model, axis, tempering, monkeypatch
):
    monkeypatch.setattr(fold_in, "_N_CANDIDATES", 2)  # only its id leads to a row's own posterior
    twin = draw_model(value_model, shape=(40, 30), density=0.25)
    names = {"users": [f"u{j}" for j in range(40)], "items": [f"i{j}" for j in range(30)]}
    data = Interactions.from_matrix(as_matrix(twin), **names)
    settings = settings_of(value_model) | {"learn_element": False, "priors": MANY_OPTIMA}
    settings |= {"tempering": 1.0 if value_model.train_on == "observed" else tempering}
    fitted = quick(6, max_iter=600, **settings).fit(data)
    model, twin = fitted.model_, at_fit(twin, fitted)
    fold = model.fold_in if axis is Axis.USERS else model.fold_in_items
    found = fold(data).posteriors[0].axis(axis)
    if axis is Axis.ITEMS:
        twin = twin.transposed
    trained = dense.elbo(twin)
    rows = np.arange(len(found.mean_))
    gains = [dense.elbo(with_users(twin, [row], found.at([row]))) - trained for row in rows]
    assert min(gains) > -3e-4 * tempering  # the twin sums n up to a limit, the model in float32
