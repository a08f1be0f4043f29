"""Small data sets and states, dense and as the library holds them."""

from dataclasses import replace

import numpy as np
from scipy import sparse, special

from core import dense
from core.dense_theta import Theta, Thetas
from hcpf.core.axis import Axis, Exposure
from hcpf.core.collective import LOCAL
from hcpf.core.layout import UserOrder
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.core.shard import ShardData, ShardSource
from hcpf.core.theta import ThetaPosterior
from hcpf.core.value_model import ValueModel
from hcpf.training.start import start_from_posterior
from model.small import ELEMENTS, PRIORS, SHAPE, VARYING

SIZE = 3
HURDLES = [ValueModel(element, hurdle=True) for element in ELEMENTS]
HURDLES += [one.replace(hurdle=True) for one in VARYING]


def draw_model(
    value_model, *, excluded=0.0, seed=0, shape=SHAPE, size=SIZE, density=0.4, priors=PRIORS,
    with_exposure=False,
):  # fmt: skip
    """A twin with random data and a random state; the first row and column are empty.

    An element stands for its compound model with a shared mean.
    """
    if not isinstance(value_model, ValueModel):
        value_model = ValueModel(value_model)
    element, rng = value_model.element, np.random.default_rng(seed)
    observed = rng.random(shape) < density
    observed[0] = observed[:, 0] = False
    counts = rng.poisson(0.7, shape) + 1.0
    values = element.sample(np.ones(shape) if value_model.hurdle else counts, rng)
    values = element.seen(values.ravel()).reshape(shape)
    out = rng.random(shape) < excluded
    observed &= ~out
    included = observed if value_model.train_on == "observed" else ~out
    users, items = (
        dense.make_side(priors, axis, *_draw_side(rows, size, rng))
        for axis, rows in zip(Axis, shape, strict=True)
    )
    thetas = _draw_thetas(value_model, shape, rng)
    if with_exposure:
        users, items = (
            replace(side, exposure=np.exp(rng.normal(0.3, 0.8, len(side.a))))
            for side in (users, items)
        )
    values = np.where(observed, values, 0.0)
    return dense.Model(users, items, value_model, values, observed, included, thetas=thetas)


def _draw_thetas(value_model, shape, rng):
    """Theta around the element's own; that of items, where both axes have one, around neutral."""
    if value_model.vary_by is None:
        return None
    element, center = value_model.element, value_model.element.mean / value_model.element.kappa
    centers = dict.fromkeys(Axis, center)
    if value_model.sharing is not None:
        centers[Axis.ITEMS] = 0.0 if value_model.sharing.additive else 1.0
    thetas = (
        _draw_theta(element, centers[axis], rows, rng) if value_model.varies(axis) else None
        for axis, rows in zip(Axis, shape, strict=True)
    )
    return Thetas(*thetas)


def _draw_theta(element, center, n_rows, rng, spread=0.3):
    low, high = element.conjugate.min_center, element.conjugate.max_center
    nu0 = 4.0 * element.kappa
    nu = nu0 + element.kappa * rng.gamma(3.0, 1.0, n_rows)
    moved = spread * rng.standard_normal(n_rows)
    if np.isinf(low):
        centers = center + moved
    elif np.isinf(high):
        centers = low + (center - low) * np.exp(moved)
    else:
        centers = special.expit(special.logit(center) + moved)
    return Theta(centers * nu, nu, float(center * nu0), float(nu0))


def _draw_side(n_rows, size, rng):
    # Shapes and means as float32 holds them, so that both twins start at the same point.
    a = rng.gamma(2.0, 1.0, (n_rows, size)).astype(np.float32).astype(np.float64)
    mean = rng.gamma(2.0, 0.2, (n_rows, size)).astype(np.float32).astype(np.float64)
    return a, a / mean, rng.gamma(3.0, 1.0, n_rows)


def as_matrix(model):
    users, items = np.nonzero(model.observed)
    return sparse.csr_array((model.values[users, items], (users, items)), shape=model.values.shape)


def excluded_matrix(model):
    return sparse.csr_array((~model.included).astype(float))


def as_posterior(model):
    thetas = model.thetas or Thetas(None, None)
    sides = (
        FactorPosterior(
            shape_=side.a.astype(np.float32),
            mean_=side.mean.astype(np.float32),
            activity_a=np.full(len(side.a), side.activity_a),
            activity_b=side.activity_b.copy(),
            theta=None if theta is None else ThetaPosterior(*vars(theta).values()),
            exposure=_array_or_none(side.exposure),
        )
        for side, theta in ((model.users, thetas.users), (model.items, thetas.items))
    )
    return Posterior(*sides)


def _array_or_none(exposure):
    return exposure if np.ndim(exposure) else None


def exposure_of(model):
    return Exposure(*(_array_or_none(side.exposure) for side in (model.users, model.items)))


def at_fit(model, fitted):
    """The twin at the posterior of a fit, with its priors, element and tempering."""
    posterior = fitted.posterior_
    users, items = (
        replace(
            dense.make_side(fitted.priors_, axis, side.a, side.b, side.activity_b),
            exposure=1.0 if side.exposure is None else side.exposure,
        )
        for axis, side in zip(Axis, (posterior.users, posterior.items), strict=True)
    )
    thetas = Thetas(
        *(
            None if theta is None else Theta(theta.chi, theta.nu, theta.chi0, theta.nu0)
            for theta in (posterior.users.theta, posterior.items.theta)
        )
    )
    return replace(
        model,
        users=users,
        items=items,
        value_model=fitted.value_model_,
        tempering=fitted.tempering_,
        thetas=None if thetas == Thetas(None, None) else thetas,
    )


def shard_of(data, value_model, permutation=None, **options):
    """Data laid out, the users in the order of a permutation."""
    order = UserOrder.of(data.numbers, data.n_users, permutation)
    return ShardSource(data, order, **options).lay_out(value_model)


def as_production(model, permutation=None):
    """The library's shard and state for the same data at the same point."""
    is_full = model.value_model.train_on == "full"
    excluded = excluded_matrix(model) if is_full else None
    data = ShardData.whole(as_matrix(model), excluded, exposure_of(model))
    shard = shard_of(
        data, model.value_model, permutation,
        max_count=model.max_count, tempering=model.tempering,
    )  # fmt: skip
    size, rng = model.users.a.shape[1], np.random.default_rng(0)
    return shard, start_from_posterior(shard, as_posterior(model), model.priors, size, rng, LOCAL)


def assert_same_point(state, model, rtol=3e-6):
    for mine, side in ((state.users, model.users), (state.items, model.items)):
        np.testing.assert_allclose(mine.factors.a, side.a, rtol=rtol)
        mean = mine.factors.mean / mine.factors.exposure[:, None]
        np.testing.assert_allclose(mean, side.mean, rtol=rtol)
        np.testing.assert_allclose(mine.factors.activity_b, side.activity_b, rtol=rtol)
    thetas = model.thetas or Thetas(None, None)
    for mine, twin in ((state.users, thetas.users), (state.items, thetas.items)):
        assert (mine.theta is None) == (twin is None)
        if twin is not None:
            assert (mine.theta.chi0, mine.theta.nu0) == (twin.chi0, twin.nu0)
            scale = np.abs(twin.chi).max()  # of a normal's chi, which may be next to 0
            np.testing.assert_allclose(mine.theta.chi, twin.chi, rtol=rtol, atol=rtol * scale)
            np.testing.assert_allclose(mine.theta.nu, twin.nu, rtol=rtol)
