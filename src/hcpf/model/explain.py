"""The origin of a rate: the user's own entries, one by one."""

from typing import TYPE_CHECKING

import numpy as np

from hcpf._types import Csr, FloatArray
from hcpf.core.posterior import Posterior
from hcpf.core.theta import pair_shift
from hcpf.core.value_model import ValueModel
from hcpf.model.combine import Positions
from hcpf.model.tables import Explanation

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


def explain(model: "FittedModel", u: int, i: int, seen: Csr) -> Explanation:
    """Return the contributions of a user's entries in ``seen`` to the rate of a pair."""
    own = seen.indices[seen.indptr[u] : seen.indptr[u + 1]].astype(np.int64)
    values = model.element.seen(seen.data[seen.indptr[u] : seen.indptr[u + 1]].astype(np.float64))
    if model.excluded is not None:  # they took no part in training
        pairs = model.excluded
        kept = np.isin(own, pairs.indices[pairs.indptr[u] : pairs.indptr[u + 1]], invert=True)
        own, values = own[kept], values[kept]
    by_entry, rate = np.zeros(len(own)), 0.0
    for fit in model.posteriors:
        by_entry += contributions(fit, model.value_model, u, i, own, values, model.tempering)
        rate += float(fit.users.mean_[u].astype(np.float64) @ fit.items.mean_[i])
    by_entry, rate = by_entry / len(model.posteriors), rate / len(model.posteriors)
    order = np.argsort(-by_entry, kind="stable")
    source = np.empty(len(own) + 1, dtype=object)
    source[:-1], source[-1] = model.items[own[order]], "(prior)"
    parts = np.append(by_entry[order], rate - by_entry.sum())
    return Explanation(source=source, rate=parts, share=parts / max(float(parts.sum()), 1e-300))


def contributions(
    posterior: Posterior,
    value_model: ValueModel,
    user: int,
    item: int,
    own_items: Positions,
    own_values: FloatArray,
    tempering: float = 1.0,
) -> FloatArray:
    r"""Return the part of the rate of a pair that each of the user's own entries accounts for.

    At the optimum :math:`a_{uk} = \eta + \sum_j \mathrm E[n_{uj}]\,\varphi_{ujk}`, so
    :math:`\sum_k \mathrm E[v_{ik}]\,a_{uk}/b_{uk}` is a sum over the entries j and the prior.
    """
    users, items = posterior.users, posterior.items
    if len(own_items) == 0:
        return np.zeros(0)
    mean, shape = users.mean_[user].astype(np.float64), users.shape_[user].astype(np.float64)
    rate_per_count = items.mean_[item].astype(np.float64) * mean / shape
    share = users.at(user).log_mean + items.at(own_items).log_mean
    peak = share.max(axis=1, keepdims=True)
    share = np.exp(share - peak)
    log_rate = np.log(share.sum(axis=1)) + peak[:, 0]
    share /= share.sum(axis=1, keepdims=True)
    shift = pair_shift(value_model, users.theta, items.theta, user, own_items)
    count = value_model.series(value_model.element, own_values, np.exp(log_rate + shift)).mean
    return tempering * (count[:, None] * share) @ rate_per_count
