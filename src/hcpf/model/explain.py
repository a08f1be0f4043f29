"""Where a rate comes from: the user's own entries, one by one."""

import numpy as np

from hcpf._types import FloatArray, IntArray
from hcpf.core.posterior import Posterior
from hcpf.core.value_model import ValueModel


def contributions(
    posterior: Posterior,
    value_model: ValueModel,
    user: int,
    item: int,
    own_items: IntArray,
    own_values: FloatArray,
    weight: float = 1.0,
    shift: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Split the rate of a pair by component, and by the user's own entries and the prior.

    At the optimum :math:`a_{uk} = \eta + \sum_j \mathrm E[n_{uj}]\,\varphi_{ujk}`, so
    :math:`\sum_k \mathrm E[v_{ik}]\,a_{uk}/b_{uk}` is a sum over the entries j and the prior.
    ``shift`` is what a theta of their own adds to the log rates of the user's own entries.
    """
    users, items = posterior.users, posterior.items
    a, mean = users.shape_[user].astype(np.float64), users.mean_[user].astype(np.float64)
    per_count = items.mean_[item].astype(np.float64) * mean / a  # what one count of k adds
    by_component = per_count * a
    if len(own_items) == 0:
        return by_component, np.zeros(0), np.array([by_component.sum()])
    share = users.at(user).log_mean + items.at(own_items).log_mean
    peak = share.max(axis=1, keepdims=True)
    share = np.exp(share - peak)
    log_rate = np.log(share.sum(axis=1)) + peak[:, 0]
    share /= share.sum(axis=1, keepdims=True)
    count = (
        weight * value_model.series(value_model.element, own_values, np.exp(log_rate + shift)).mean
    )
    by_entry = (count[:, None] * share) @ per_count
    return by_component, by_entry, np.array([by_component.sum() - by_entry.sum()])
