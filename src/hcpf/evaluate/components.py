"""Choice of the number of components by the held-out log-likelihood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcpf._checks import whole
from hcpf.core.axis import Axis
from hcpf.data.exposure import resolve_exposure
from hcpf.data.held_out import HeldOutPairs
from hcpf.data.ids import IdIndex
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.evaluate.comparison import (
    ModelScores,
    check_fit_options,
    fit_and_score,
    log_likelihood_gain,
    scored_by_mass,
)
from hcpf.evaluate.scoring import Score
from hcpf.evaluate.splits import RandomState, Split, split
from hcpf.model.alignment import as_interactions, ids_of
from hcpf.model.tables import Table


@dataclass(frozen=True)
class Candidate:
    """A number of components, the held-out log-likelihood, and the seconds of the fit.

    ``deficit`` is by how much the log-likelihood is below the highest of all candidates. Its
    standard error is paired by pair, so it is much smaller than that of either log-likelihood.
    """

    n_components: int
    log_likelihood: Score
    seconds: float
    deficit: Score

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, with the standard errors as ``NAME_error``."""
        return {
            "n_components": self.n_components,
            "log_likelihood": self.log_likelihood.value,
            "log_likelihood_error": self.log_likelihood.error,
            "deficit": self.deficit.value,
            "deficit_error": self.deficit.error,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False, repr=False)
class ComponentPath:
    r"""The held-out log-likelihood of several numbers of components K.

    In nats per 1,000 pairs, or per observed pair for a model trained on observed pairs only.

    Examples
    --------
    >>> tried = [(10, 0.9), (20, 0.2), (50, 0.0)]
    >>> path = ComponentPath([
    ...     Candidate(k, Score(-50.0 - deficit, 1.5), 1.0, Score(deficit, 0.3))
    ...     for k, deficit in tried
    ... ])
    >>> path.most_likely, path.best
    (50, 20)
    """

    candidates: Sequence[Candidate]

    @property
    def most_likely(self) -> int:
        """The K of the highest log-likelihood, the smallest of several."""
        best = max(self.candidates, key=lambda c: (c.log_likelihood.value, -c.n_components))
        return best.n_components

    @property
    def best(self) -> int:
        """The smallest K whose deficit is at most one of its standard errors.

        Fewer components are faster and easier to interpret.
        """
        near = (c for c in self.candidates if c.deficit.value <= np.nan_to_num(c.deficit.error))
        return min(c.n_components for c in near)

    def to_table(self) -> Table:
        """Return a table of the candidates."""
        return Table.from_records([candidate.as_dict() for candidate in self.candidates])

    def __repr__(self) -> str:
        return f"{self.to_table()!r}\nbest {self.best}, most likely {self.most_likely}"


def choose_components(
    data: Any,
    n_components: int | Sequence[int] = (10, 20, 50, 100),
    *,
    validation: float = 0.1,
    random_state: RandomState = 0,
    fit_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> ComponentPath:
    """Fit the model with several numbers of components and score each on held-out pairs.

    Parameters
    ----------
    data
        Interactions, an AnnData or a matrix, a share of which is held out; or a Split, whose
        validation pairs then decide and whose test pairs stay unseen.
    n_components
        The K to try.
    validation
        The share held out, unless ``data`` is a Split.
    random_state
        Seed of the split and of every fit.
    fit_options
        Further arguments of ``HCPF.fit``, such as ``user_exposure`` or ``layer``.
    **settings
        Further parameters of ``HCPF``.

    Returns
    -------
    ComponentPath
        With ``best`` by the one-standard-error rule; ``hcpf.plots.component_path`` draws it.
    """
    sizes = sizes_to_try("choose_components", n_components)
    source, options = data_for_choice(data, fit_options)
    parts, pairs = split_for_choice("choose_components", source, validation, random_state)

    as_mass = scored_by_mass(parts)  # element="auto" may choose another element for another K

    def score(k: int) -> ModelScores:
        model = HCPF(k, random_state=random_state, **settings)
        return fit_and_score(
            str(k), model, parts, None, on=pairs, as_mass=as_mass, fit_options=options
        )

    rows = [score(k) for k in sizes]
    return ComponentPath([
        Candidate(k, likelihood_of(row), row.seconds or 0.0, deficit)
        for k, row, deficit in zip(sizes, rows, deficits(rows), strict=True)
    ])  # fmt: skip


def deficits(rows: Sequence[ModelScores]) -> list[Score]:
    """Return by how much each log-likelihood is below the highest, paired by pair."""
    top = max(rows, key=lambda row: likelihood_of(row).value)
    return [log_likelihood_gain(top, row) for row in rows]


def sizes_to_try(caller: str, n_components: Any) -> list[int]:
    """Return the numbers of components to try: one, or a sequence of them; ascending."""
    given: list[Any] = [n_components] if np.ndim(n_components) == 0 else list(n_components)
    if not given:
        raise InputError(f"{caller}: n_components is empty. Pass at least one number.")
    return sorted({whole("n_components", size) for size in given})


def data_for_choice(data: Any, fit_options: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Return Interactions (or a Split as it is), and options of ``fit`` that suit them.

    A layer and columns of an AnnData are read here, because parts of it have none.
    """
    check_fit_options(fit_options)
    options = dict(fit_options or {})
    if isinstance(data, Split):
        return data, options
    found = as_interactions(data, options.pop("layer", None))
    for axis in Axis:
        name, index = f"{axis.word}_exposure", IdIndex(axis.value, ids_of(found, axis))
        exposure = resolve_exposure(options.get(name), index, source=data)
        if exposure is not None:
            options[name] = exposure
    return found, options


def likelihood_of(row: ModelScores) -> Score:
    """Return the held-out log-likelihood; that of values for a model of observed pairs only."""
    likelihood = row.score("log_likelihood") or row.score("conditional_nonmissing")
    assert likelihood is not None
    return likelihood


def split_for_choice(
    caller: str, data: Any, validation: float, random_state: RandomState
) -> tuple[Split, HeldOutPairs]:
    """Return a split, and its pairs that decide: the validation pairs of a Split that was given."""
    if not isinstance(data, Split):
        parts = split(data, test=validation, validation=0.0, random_state=random_state)
        return parts, parts.test
    if not len(data.validation):
        raise InputError(
            f"{caller}: this split has no validation pairs. Split with validation=0.1."
        )
    return data, data.validation
