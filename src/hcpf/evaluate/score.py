"""Numbers with standard errors, and sets of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hcpf._types import FloatArray
from hcpf.model.tables import format_with_error

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True)
class Score:
    """A number with its standard error.

    Examples
    --------
    >>> print(Score(0.81234, 0.0021))
    0.8123 ± 0.0021
    """

    value: float
    error: float

    def __float__(self) -> float:
        return self.value

    def __neg__(self) -> "Score":
        return Score(-self.value, self.error)

    def __str__(self) -> str:
        return format_with_error(self.value, self.error)


class ScoreTable(Mapping[str, Score | None]):
    """Base of dataclasses of scores: a mapping by name, None where a score does not apply."""

    def _scores(self) -> dict[str, Score | None]:
        names = [field.name for field in fields(cast("DataclassInstance", self))]
        values = {name: getattr(self, name) for name in names}
        return {k: v for k, v in values.items() if v is None or isinstance(v, Score)}

    def __getitem__(self, name: str) -> Score | None:
        return self._scores()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores())

    def __len__(self) -> int:
        return len(self._scores())

    def as_dict(self) -> dict[str, float | None]:
        """Return plain numbers: each score, and its standard error as ``NAME_error``."""
        out: dict[str, float | None] = {}
        for name, score in self._scores().items():
            out[name] = None if score is None else score.value
            out[f"{name}_error"] = None if score is None else score.error
        return out

    def __repr__(self) -> str:
        width = max(map(len, self))
        lines = [f"{name:<{width}}  {score or 'does not apply'}" for name, score in self.items()]
        return "\n".join([type(self).__name__, *(f"  {line}" for line in lines)])


def mean_score(x: Any) -> Score:
    """Return the mean of numbers, with its standard error."""
    values: FloatArray = np.asarray(x, dtype=np.float64)
    if values.size == 0:
        return Score(float("nan"), float("nan"))
    value = float(values.mean())
    if values.size == 1 or not np.isfinite(value):
        return Score(value, float("nan"))
    return Score(value, float(values.std(ddof=1) / np.sqrt(values.size)))
