"""Components that follow a label of the users, such as a batch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.data.ids import IdIndex
from hcpf.errors import InputError
from hcpf.model.factors import column_names, factor_values
from hcpf.model.resolve import fitted_model
from hcpf.model.tables import Table


class ComponentAssociation(Table):
    """How far each component follows the labels of the users, one row per component.

    Attributes
    ----------
    component : ndarray of str
        The component by the name of its column among the factors: hcpf0, hcpf1, ...
    share : ndarray of float
        The share of the variance of the users' ranks that the labels explain, from 0 to 1.
    p_value : ndarray of float
        Probability of a share at least as large if the labels were given at random: the
        Kruskal-Wallis test.
    q_value : ndarray of float
        False discovery rate among components with a p-value at most as large
        (Benjamini-Hochberg).
    highest : ndarray
        The label whose users have the highest factors on average.
    ratio : ndarray of float
        Their average factor divided by that of all other users.
    """

    component: NDArray[Any]
    share: FloatArray
    p_value: FloatArray
    q_value: FloatArray
    highest: NDArray[Any]
    ratio: FloatArray


def component_association(model: Any, labels: Any) -> ComponentAssociation:
    """Return how far the components follow labels of the users, such as batches or countries.

    The users' factors of a component are ranked, and the share of the variance of the ranks that
    the labels explain is tested. Factors are those at exposure 1: without ``user_exposure``, labels
    that differ in depth are associated with every component.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model; components of all its fits are tested.
    labels : array, mapping or Series
        The label of each user: in the order of the users, or by id. Users without a label (None,
        NaN, or not in the mapping) take no part.

    Returns
    -------
    ComponentAssociation
        In the order of the components.

    Examples
    --------
    >>> from hcpf import HCPF, simulate
    >>> data = simulate(60, 40, density=0.2, random_state=0).interactions
    >>> model = HCPF(2, element="gamma", n_fits=1, max_iter=5, random_state=0).fit(data)
    >>> found = component_association(model, ["a", "b", "c"] * 20)
    >>> found.component.tolist(), found.p_value.min() > 0.05
    (['hcpf0', 'hcpf1'], np.True_)
    """
    fitted = fitted_model(model)
    names, group = _groups(labels, fitted.user_index)
    labeled = group >= 0
    factors, group = factor_values(fitted, Axis.USERS)[labeled], group[labeled]
    members = np.equal.outer(np.arange(len(names)), group).astype(np.float64)
    sizes = members.sum(axis=1, keepdims=True)
    ranks = stats.rankdata(factors, axis=0) - 0.5 * (len(group) + 1)
    between = np.sum((members @ ranks) ** 2 / sizes, axis=0)
    # Without any variance there is nothing to explain.
    share = between / np.maximum(np.sum(ranks**2, axis=0), 1.0)
    p_value = special.chdtrc(len(names) - 1, (len(group) - 1) * share)
    total = members @ factors
    means, columns = total / sizes, np.arange(factors.shape[1])
    highest = np.argmax(means, axis=0)
    others = (total.sum(axis=0) - total[highest, columns]) / (len(group) - sizes[highest, 0])
    return ComponentAssociation(
        component=np.array(column_names(fitted), dtype=object),
        share=share,
        p_value=p_value,
        q_value=stats.false_discovery_control(p_value),
        highest=names[highest],
        ratio=means[highest, columns] / np.maximum(others, 1e-300),
    )


def _groups(labels: Any, users: IdIndex) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct labels, and the number of each user's label, -1 without one."""
    given = np.full(len(users), None, dtype=object)
    if hasattr(labels, "columns"):
        raise InputError("labels is a data frame. Pass one of its columns.")
    if isinstance(labels, Mapping) or hasattr(labels, "to_dict"):
        by_id: dict[Any, Any] = dict(labels.items())
        if len(by_id) < len(labels):
            raise InputError(
                f"labels: {len(labels) - len(by_id):,} of {len(labels):,} ids are repeated. Pass "
                "one label per user, for example labels[~labels.index.duplicated()]."
            )
        positions = users.known(list(by_id)) if by_id else np.zeros(0, np.int64)
        for position, label in zip(positions, by_id.values(), strict=True):
            if position >= 0:
                given[position] = label
    else:
        listed = np.asarray(labels, dtype=object)
        if listed.shape != given.shape:
            raise InputError(
                f"labels must be {len(users):,} labels in the order of the users, or a mapping by "
                f"id; its shape is {listed.shape}."
            )
        given[:] = listed
    numbers: dict[Any, int] = {}
    group = np.full(len(users), -1, np.int64)
    for position, label in enumerate(given):
        if not _is_missing(label):
            group[position] = numbers.setdefault(label, len(numbers))
    n_labeled = int(np.sum(group >= 0))
    if not 2 <= len(numbers) < n_labeled:
        raise InputError(
            f"labels: {n_labeled:,} users have {len(numbers):,} different labels. Pass at least "
            "two labels that several users share."
        )
    names = np.empty(len(numbers), dtype=object)
    names[:] = list(numbers)
    return names, group


def _is_missing(label: Any) -> bool:
    same = label == label
    return label is None or not isinstance(same, bool | np.bool_) or not same
