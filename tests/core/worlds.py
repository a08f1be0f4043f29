"""Small data sets and states for the tests of inference, dense and as the library holds them."""

from dataclasses import replace

import numpy as np
from hcpf.core.state import state_from_posterior
from scipy import sparse, special

from cases import EVERYDAY
from hcpf import HCPF
from hcpf.core.layout import make_problem
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.core.priors import Priors
from hcpf.core.theta import ThetaPosterior
from hcpf.elements import Degenerate
from core import dense
from core.dense_theta import Theta, Thetas

ELEMENTS = tuple(case.element for case in EVERYDAY)
PRIORS = Priors(0.4, 0.7, 1.3, 0.6, 1.1, 0.9)
SHAPE = (14, 11)
SIZE = 3

TRAINING = [(element, train_on) for element in ELEMENTS for train_on in ("full", "observed")]
TRAINING += [(Degenerate(), "binary")]
TRAINING_IDS = [f"{element.name}-{train_on}" for element, train_on in TRAINING]

VARYING = [
    element.varying(per)
    for element in ELEMENTS
    if element.conjugate is not None
    for per in ("item", "user", "both")
    if per != "both" or element.conjugate.sharing is not None
]
VARYING_IDS = [f"{element.name}-{element.per}" for element in VARYING]


def draw_model(
    element, train_on="full", *, excluded=0.0, seed=0, shape=SHAPE, size=SIZE, density=0.4,
    priors=PRIORS,
):  # fmt: skip
    """A twin with random data and a random state; the first row and column are empty."""
    rng = np.random.default_rng(seed)
    observed = rng.random(shape) < density
    observed[0] = observed[:, 0] = False
    counts = rng.poisson(0.7, shape) + 1.0
    values = np.where(observed, element.sample(counts, rng), 0.0)
    if train_on == "binary":
        values = observed.astype(float)
    out = rng.random(shape) < excluded
    observed &= ~out
    exposed = observed if train_on == "observed" else ~out
    users = dense.user_side(priors, *_draw_side(shape[0], size, rng))
    items = dense.item_side(priors, *_draw_side(shape[1], size, rng))
    thetas = _draw_thetas(element, shape, rng)
    return dense.Model(users, items, element, values * observed, observed, exposed, thetas=thetas)


def _draw_thetas(element, shape, rng, spread=0.3):
    """Theta around the element's own, and beside it, where both vary, around none at all."""
    if element.per is None:
        return None
    centre = element.mean / element.kappa
    if element.per == "user":
        return Thetas(_draw_theta(element, centre, shape[0], rng, spread), None)
    if element.per == "item":
        return Thetas(None, _draw_theta(element, centre, shape[1], rng, spread))
    nothing = 0.0 if element.conjugate.sharing.additive else 1.0
    return Thetas(
        _draw_theta(element, centre, shape[0], rng, spread),
        _draw_theta(element, nothing, shape[1], rng, spread),
    )


def _draw_theta(element, centre, rows, rng, spread):
    low, high = element.conjugate.lowest, element.conjugate.highest
    nu0 = 4.0 * element.kappa
    nu = nu0 + element.kappa * rng.gamma(3.0, 1.0, rows)
    moved = spread * rng.standard_normal(rows)
    if np.isinf(low):
        where = centre + moved
    elif np.isinf(high):
        where = low + (centre - low) * np.exp(moved)
    else:
        where = special.expit(special.logit(centre) + moved)
    return Theta(where * nu, nu, float(centre * nu0), float(nu0))


def _draw_side(rows, size, rng):
    # Shapes and means as float32 holds them, so that both twins start at the same point.
    a = rng.gamma(2.0, 1.0, (rows, size)).astype(np.float32).astype(np.float64)
    mean = rng.gamma(2.0, 0.2, (rows, size)).astype(np.float32).astype(np.float64)
    return a, a / mean, rng.gamma(3.0, 1.0, rows)


def as_matrix(model):
    users, items = np.nonzero(model.observed)
    return sparse.csr_array((model.values[users, items], (users, items)), shape=model.values.shape)


def excluded_matrix(model):
    return sparse.csr_array((~model.exposed).astype(float))


def as_posterior(model):
    thetas = model.thetas or Thetas(None, None)
    sides = [
        FactorPosterior(
            shape_=side.a.astype(np.float32),
            mean_=side.mean.astype(np.float32),
            activity_a=np.full(len(side.a), side.activity_a),
            activity_b=side.activity_b.copy(),
            groups=None if theta is None else ThetaPosterior(*vars(theta).values()),
        )
        for side, theta in ((model.users, thetas.users), (model.items, thetas.items))
    ]
    return Posterior(*sides)


def from_posterior(model, posterior, element=None):
    """The twin at the library's posterior."""
    sides = [
        replace(side, a=found.a, b=found.b, activity_b=found.activity_b)
        for side, found in ((model.users, posterior.users), (model.items, posterior.items))
    ]
    found = posterior.users.theta, posterior.items.theta
    thetas = Thetas(*(None if g is None else Theta(*vars(g).values()) for g in found))
    return replace(
        model,
        users=sides[0],
        items=sides[1],
        element=element or model.element,
        thetas=None if thetas == Thetas(None, None) else thetas,
    )


def as_production(model, train_on="full", **options):
    """The library's problem and state for the same data and the same point."""
    problem = make_problem(
        as_matrix(model),
        model.element,
        train_on=train_on,
        exclude=None if train_on == "observed" else excluded_matrix(model),
        n_truncation=model.most,
        weight=model.weight,
        **options,
    )
    size = model.users.a.shape[1]
    return problem, state_from_posterior(problem, as_posterior(model), size)


def assert_same_point(state, model, rtol=3e-6):
    for factors, side in ((state.users, model.users), (state.items, model.items)):
        np.testing.assert_allclose(factors.a, side.a, rtol=rtol)
        np.testing.assert_allclose(factors.mean, side.mean, rtol=rtol)
        np.testing.assert_allclose(factors.activity_b, side.activity_b, rtol=rtol)
    if model.thetas is not None:
        for users, twin in ((True, model.thetas.users), (False, model.thetas.items)):
            groups = state.varying.side(users)
            assert (groups is None) == (twin is None)
            if twin is not None:
                assert (groups.chi0, groups.nu0) == (twin.chi0, twin.nu0)
                scale = np.abs(twin.chi).max()  # of a normal's chi, which may be next to 0
                np.testing.assert_allclose(groups.chi, twin.chi, rtol=rtol, atol=rtol * scale)
                np.testing.assert_allclose(groups.nu, twin.nu, rtol=rtol)


def quick(n_components=3, **settings):
    """An estimator for tests: few passes of coordinate ascent on one thread, always the same."""
    defaults = {"solver": "cavi", "max_iter": 10, "tol": 0.0, "n_threads": 1, "random_state": 0}
    defaults |= {"n_fits": 1, "tempering": 1.0}
    return HCPF(n_components, **(defaults | settings))
