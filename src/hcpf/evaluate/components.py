"""Choice of the number of components by the held-out log-likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from hcpf._checks import whole
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.evaluate.comparison import ModelScores, fit_and_score
from hcpf.evaluate.scoring import Score
from hcpf.evaluate.splits import RandomState, Split, split
from hcpf.model.tables import Table


@dataclass(frozen=True)
class Candidate:
    """A number of components, the held-out log-likelihood, and the seconds of the fit."""

    n_components: int
    log_likelihood: Score
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class ComponentPath:
    r"""The held-out log-likelihood of several numbers of components K.

    In nats per 1,000 pairs, or per observed pair for a model trained on observed pairs only.

    Examples
    --------
    >>> tried = [(10, -52.0), (20, -50.2), (50, -50.0)]
    >>> path = ComponentPath([Candidate(k, Score(value, 0.3), 1.0) for k, value in tried])
    >>> path.most_likely, path.best
    (50, 20)
    """

    candidates: list[Candidate]

    @property
    def most_likely(self) -> int:
        """The K of the highest log-likelihood."""
        return self._top.n_components

    @property
    def best(self) -> int:
        """The smallest K whose log-likelihood is within one standard error of the highest.

        Fewer components are faster and easier to interpret.
        """
        top = self._top.log_likelihood
        least = top.value - (top.error if isfinite(top.error) else 0.0)
        return min(c.n_components for c in self.candidates if c.log_likelihood.value >= least)

    @property
    def _top(self) -> Candidate:
        return max(self.candidates, key=lambda c: (c.log_likelihood.value, -c.n_components))

    def to_table(self) -> Table:
        """Return a table of the candidates."""
        records = [
            {
                "n_components": c.n_components,
                "log_likelihood": c.log_likelihood.value,
                "log_likelihood_error": c.log_likelihood.error,
                "seconds": c.seconds,
            }
            for c in self.candidates
        ]
        return Table.from_records(records)

    def __repr__(self) -> str:
        return f"{self.to_table()!r}\nbest {self.best}, most likely {self.most_likely}"


def choose_components(
    data: Any,
    candidates: Sequence[int] = (10, 20, 50, 100),
    *,
    validation: float = 0.1,
    random_state: RandomState = 0,
    **settings: Any,
) -> ComponentPath:
    """Fit the model with several numbers of components and score each on held-out pairs.

    Parameters
    ----------
    data
        Interactions (or a matrix), a share of which is held out; or a Split, whose validation
        pairs then decide and whose test pairs stay unseen.
    candidates
        The K to try.
    validation
        The share held out, unless ``data`` is a Split.
    random_state
        Seed of the split and of every fit.
    **settings
        Further parameters of ``HCPF``.

    Returns
    -------
    ComponentPath
        With ``best`` by the one-standard-error rule; ``hcpf.plots.component_path`` draws it.
    """
    sizes = sorted({whole("candidates", size) for size in candidates})
    if not sizes:
        raise InputError("choose_components: candidates is empty. Pass at least one number.")
    if isinstance(data, Split):
        parts, pairs = data, data.validation
        if not len(pairs):
            raise InputError(
                "choose_components: this split has no validation pairs. Split with validation=0.1."
            )
    else:
        parts = split(data, test=validation, validation=0.0, random_state=random_state)
        pairs = parts.test

    def candidate(k: int) -> Candidate:
        model = HCPF(k, random_state=random_state, **settings)
        return _candidate(k, fit_and_score(str(k), model, parts, None, on=pairs))

    return ComponentPath([candidate(k) for k in sizes])


def _candidate(n_components: int, row: ModelScores) -> Candidate:
    likelihood = row.score("log_likelihood") or row.score("conditional_nonmissing")
    assert likelihood is not None
    assert row.seconds is not None
    return Candidate(n_components, likelihood, row.seconds)
