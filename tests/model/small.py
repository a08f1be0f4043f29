"""Small fitted models for the tests of what a fitted model does."""

import uuid

import numpy as np
from scipy import sparse

from hcpf import HCPF, Interactions, Priors
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.elements import Poisson
from inference.worlds import TRAINING, TRAINING_IDS, as_matrix, draw_model, quick

__all__ = ["TRAINING", "TRAINING_IDS", "as_matrix", "draw_model", "quick"]

PRIORS = Priors(0.4, 0.7, 1.3, 0.6, 1.1, 0.9)


def side(mean, shape=None):
    mean = np.asarray(mean, dtype=np.float32)
    shape = np.ones_like(mean) if shape is None else np.asarray(shape, dtype=np.float32)
    return FactorPosterior(shape, mean, np.ones(len(mean)), np.ones(len(mean)))


def by_hand(factors, seen=None, element=None, users=None, items=None, **settings):
    """A model whose fits have the given (users, items) means, without any training."""
    posteriors = [Posterior(side(of_users), side(of_items)) for of_users, of_items in factors]
    shape = len(factors[0][0]), len(factors[0][1])
    matrix = sparse.csr_array(np.zeros(shape) if seen is None else np.asarray(seen, float))
    data = Interactions.from_matrix(matrix, users=users, items=items)
    model = HCPF(len(factors[0][0][0]), **settings)
    model._set_fitted(data, posteriors, element or Poisson(2.0), PRIORS, [], False)
    return model


def with_posterior(twin, train_on="full"):
    """A model at the point where a dense twin is, with the twin's data."""
    from inference.worlds import as_posterior

    model = HCPF(twin.users.a.shape[1], train_on=train_on)
    data = Interactions.from_matrix(as_matrix(twin))
    model._set_fitted(data, [as_posterior(twin)], twin.element, PRIORS, [], False)
    return model


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


def all_rates(model):
    """Rates of all pairs, by position."""
    users, items = np.asarray(model.users_), np.asarray(model.items_)
    return model.rate(users[:, None], items[None, :])
