"""Small fitted models for the tests of what a fitted model does."""

import uuid

import numpy as np
from scipy import sparse

from cases import EVERYDAY
from hcpf import FittedModel, Interactions, Priors
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.core.value_model import ValueModel, ways_to_vary
from hcpf.elements import Poisson, Presence
from prepared import prepared

PRIORS = Priors(0.4, 0.7, 1.3, 0.6, 1.1, 0.9)
SHAPE = (14, 11)

ELEMENTS = tuple(case.element for case in EVERYDAY)
TRAINING = [ValueModel(e, train_on=train_on) for e in ELEMENTS for train_on in ("full", "observed")]
TRAINING += [ValueModel(Presence())]
VARYING = [ValueModel(e, vary_by=way) for e in ELEMENTS for way in ways_to_vary(type(e))]


def name_of(value_model):
    """The id of a parametrized test."""
    return f"{value_model.description}, {value_model.train_on}"


def settings_of(value_model):
    """The parameters of HCPF that say the same as a value model."""
    names = ("element", "vary_by", "hurdle", "train_on")
    return {name: getattr(value_model, name) for name in names}


def draw_matrix(element, seed=0, shape=SHAPE, density=0.4):
    """Random values of an element; the first row and column are empty."""
    rng = np.random.default_rng(seed)
    observed = rng.random(shape) < density
    observed[0] = observed[:, 0] = False
    values = element.sample(rng.poisson(0.7, shape) + 1.0, rng)
    users, items = np.nonzero(observed)
    return sparse.csr_array((values[users, items], (users, items)), shape=shape)


def quick(n_components=3, **settings):
    """An estimator for tests: few passes of coordinate ascent on one thread, always the same."""
    defaults = {"solver": "cavi", "max_iter": 10, "tol": 0.0, "n_threads": 1, "random_state": 0}
    defaults |= {"n_fits": 1, "tempering": 1.0}
    return prepared(n_components, **(defaults | settings))


def side(mean, shape=None):
    mean = np.asarray(mean, dtype=np.float32)
    shape = np.ones_like(mean) if shape is None else np.asarray(shape, dtype=np.float32)
    return FactorPosterior(shape, mean, np.ones(len(mean)), np.ones(len(mean)))


def by_hand(factors, seen=None, element=None, users=None, items=None, **settings):
    """A model whose fits have the given (users, items) means, without any training."""
    shape = len(factors[0][0]), len(factors[0][1])
    matrix = sparse.csr_array(np.zeros(shape) if seen is None else np.asarray(seen, float))
    data = Interactions.from_matrix(matrix, users=users, items=items)
    return FittedModel(
        ValueModel(element or Poisson(2.0)),
        PRIORS,
        tuple(Posterior(side(of_users), side(of_items)) for of_users, of_items in factors),
        data.users,
        data.items,
        data=data,
        settings=settings,
    )


def ids(kind, size):
    """Ids of a kind, whose order is not that of their names."""
    if kind == "positions":
        return np.arange(size)
    if kind == "int":
        return np.arange(size)[::-1] * 7 - 20
    if kind == "uint64":
        return np.arange(size, dtype=np.uint64) + np.uint64(2**63)
    if kind == "str":
        return [f"{chr(0x17E - j)} no {j}" for j in range(size)]
    return [uuid.UUID(int=(size - j) * 12345678901234567890) for j in range(size)]


ID_KINDS = ("positions", "int", "uint64", "str", "uuid")
