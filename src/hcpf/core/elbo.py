"""The evidence lower bound (ELBO), exact including its constants."""

import numpy as np

from hcpf.core import kernels
from hcpf.core.axis import AxisState
from hcpf.core.collective import LOCAL, Collective, sum_scalar
from hcpf.core.count_tables import log_normalizer
from hcpf.core.pooling import Pooling
from hcpf.core.posterior import axis_prior
from hcpf.core.priors import Priors
from hcpf.core.shard import Shard
from hcpf.core.threads import POSTERIOR_WORK, run_in_parallel
from hcpf.elements.base import Element


def elbo(
    users: AxisState,
    items: AxisState,
    element: Element,
    shard: Shard,
    priors: Priors,
    comm: Collective = LOCAL,
) -> float:
    r"""Return the ELBO at the current state, with the optimal q(n) of every entry.

    :math:`\sum_{obs}\log Z_{ui} - \sum_k (\sum_u E s_{uk})(\sum_i E v_{ik})` plus, for each axis,
    :math:`E\log p(s \mid r) + E\log p(r) + H[s] + H[r]`; with partial pooling, less the divergence
    of theta from its prior. Tempering multiplies the first line and that divergence: what is
    tempered is the prior of the factors.
    """
    likelihood = _sum_log_z(users, items, element, shard, comm)
    total = shard.tempering * (likelihood - expected_total(users, items, shard, comm))
    total += sum_scalar(comm, _axis_bound(users, shard, priors))
    return total + _axis_bound(items, shard, priors)


def _axis_bound(mine: AxisState, shard: Shard, priors: Priors) -> float:
    """Return E log p(s|r) + E log p(r) + H[s] + H[r] of the rows of one axis."""
    blocks, factors = shard.layout(mine.axis).blocks, mine.factors
    parts = np.zeros(len(blocks) - 1)
    prior = axis_prior(priors, mine.axis, mine.n_components)  # not scaled: priors are not tempered
    arguments = factors, prior, priors.axis(mine.axis)[1], blocks, parts
    run_in_parallel(
        kernels.axis_bound, len(parts), *arguments, work=POSTERIOR_WORK * factors.a.size
    )
    return float(parts.sum())


def _sum_log_z(
    users: AxisState, items: AxisState, element: Element, shard: Shard, comm: Collective
) -> float:
    """Return the sum of log Z over the entries, less the divergence of row-specific theta."""
    layout, arrays = shard.users, shard.tables.arrays
    sums = np.zeros(len(layout.blocks) - 1)
    arguments = layout.entries, users.factors, items.factors, arrays, layout.blocks, sums
    work = users.n_components * len(layout.entries.index)
    run_in_parallel(kernels.sum_log_z, len(sums), *arguments, work=work)
    total = sum_scalar(comm, float(sums.sum()) + shard.tables.constant)
    # The tables are those of shard.element. Where theta has moved since, log p(y | n) differs by
    # -n kappa Psi(theta), which is in the shifts, and by y theta.
    total -= _theta_terms(shard.element, shard)
    pooling = Pooling.of(shard.value_model)
    if pooling is not None:
        return total + pooling.elbo(users, items, shard.values, element, comm)
    return total + _theta_terms(element, shard)


def _theta_terms(element: Element, shard: Shard) -> float:
    """Return what theta adds to the sum of log Z, apart from the shifts."""
    total = shard.totals.sum_of_values * float(element.theta)
    if not shard.value_model.hurdle:
        return total
    return total + shard.totals.n_entries * log_normalizer(element)


def expected_total(
    users: AxisState, items: AxisState, shard: Shard, comm: Collective = LOCAL
) -> float:
    """Return the expected count summed over all pairs that take part in training."""
    total, layout = 0.0, shard.users
    if shard.trains_on_missing:
        total = float(users.mean_sums @ items.mean_sums)
    if layout.listed.sign != 0.0:
        parts = np.zeros(len(layout.blocks) - 1)
        means = users.factors.mean, items.factors.mean
        run_in_parallel(
            kernels.listed_rates, len(parts), *layout.listed[:3], *means, layout.blocks, parts
        )
        total += layout.listed.sign * sum_scalar(comm, float(parts.sum()))
    return total
