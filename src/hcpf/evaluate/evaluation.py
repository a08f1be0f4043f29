"""An evaluation: scores of a model and of simpler ones, in a file that a report can read."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from hcpf._types import FloatArray
from hcpf.elements import Degenerate, Presence
from hcpf.errors import InputError
from hcpf.evaluate.baselines import HPF, BinaryHPF, GlobalElement, PerItemElement, Popularity
from hcpf.evaluate.comparison import ModelScores, check_fit_options, fit_and_score
from hcpf.evaluate.predictive_checks import ValueCheck, check_values
from hcpf.evaluate.scoring import explains_missing
from hcpf.evaluate.splits import Split
from hcpf.io import as_path, atomic_path, os_errors
from hcpf.model.fitted import FittedModel
from hcpf.model.resolve import fitted_model

_SCHEMA = 2
_OWN_SETTINGS = ("element", "vary_by", "hurdle", "train_on", "n_components")  # not a baseline's


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of a model and of its baselines on the same held-out pairs.

    Attributes
    ----------
    models : list of ModelScores
        The model first, then the baselines.
    values : ValueCheck or None
        Held-out values compared with draws from the model; None where all values are the same.
    settings : str
        The model in a few words.
    n_users, n_items : int
        Size of the data.
    n_train, n_test, n_missing : int
        Entries trained on, and observed and missing pairs scored.
    """

    models: list[ModelScores]
    values: ValueCheck | None
    settings: str
    n_users: int
    n_items: int
    n_train: int
    n_test: int
    n_missing: int

    @property
    def model(self) -> ModelScores:
        """The model that was evaluated."""
        return self.models[0]

    @property
    def baselines(self) -> list[ModelScores]:
        """The simpler models."""
        return self.models[1:]

    def save(self, path: str | Path) -> None:
        """Write the evaluation to a JSON file, without scores of single pairs."""
        target = as_path("path", path)
        text = json.dumps({"hcpf_evaluation": _SCHEMA, **_encoded(self)}, indent=1)
        with os_errors(InputError, f"{target} cannot be written"), atomic_path(target) as partial:
            partial.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Evaluation":
        """Read an evaluation that ``save`` wrote."""
        source = as_path("path", path)
        try:
            found = json.loads(source.read_text(encoding="utf-8"))
            if found.pop("hcpf_evaluation") != _SCHEMA:
                raise ValueError("it was written by another version of hcpf")
            return _decoded(cls, found)
        except OSError as error:
            raise InputError(f"{source} cannot be read: {error.strerror or error}.") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{source} is not an evaluation ({error}). Pass a file that "
                "hcpf evaluate --output or Evaluation.save wrote."
            ) from None


def evaluate_model(
    model: Any,
    data: Split,
    *,
    n: int = 20,
    max_baselines: int | None = None,
    early_stopping: bool = False,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: bool | None = None,
    fit_options: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Score a model, and simpler ones, on the test pairs of a split.

    Parameters
    ----------
    model : HCPF or FittedModel
        A model that was fitted to ``data.train``, or one that is not fitted yet.
    data : Split
        The training data and the held-out pairs.
    n : int
        Length of the recommendation lists.
    max_baselines : int, optional
        How many simpler models to fit and score as well, by default all: popularity, factors of
        which pairs are observed with a shared element and, for counts, plain Poisson
        factorization; for a model trained on observed pairs only, a shared element and one per
        item. 0 is none; the first is the quickest.
    early_stopping : bool
        Whether the validation pairs of the split decide when a fit stops.
    random_state : int
        Seed of the baselines' fits and of the draws.
    n_threads, progress
        As in ``HCPF.fit``; the baselines are fitted without a progress bar.
    fit_options : mapping, optional
        Further arguments of ``fit``, such as ``user_exposure``, for the models that take them.

    Examples
    --------
    >>> from hcpf import HCPF, simulate
    >>> from hcpf.evaluate import split
    >>> parts = split(simulate(60, 40, density=0.2, random_state=0).interactions, random_state=0)
    >>> found = evaluate_model(HCPF(2, n_fits=1, max_iter=5, random_state=0), parts)
    >>> [row.name for row in found.models]
    ['This model', 'Popularity', 'Binary HPF']
    """
    check_fit_options(fit_options, model)

    def row(name: str, about: str, one: Any, progress: bool | None) -> ModelScores:
        return fit_and_score(
            name, one, data, n, about=about, early_stopping=early_stopping, calibrate=True,
            n_threads=n_threads, progress=progress, fit_options=fit_options,
        )  # fmt: skip

    rows = [row("This model", "the model of this report", model, progress)]
    fitted = fitted_model(model)
    baselines = _baselines(fitted, data, random_state)[:max_baselines]
    rows += [row(*baseline, False) for baseline in baselines]
    return Evaluation(
        models=rows,
        values=check_values(fitted, data, random_state),
        settings=settings_text(fitted),
        n_users=data.train.n_users,
        n_items=data.train.n_items,
        n_train=data.train.n_observed,
        n_test=len(data.test),
        n_missing=data.test.n_missing,
    )


def settings_text(model: FittedModel) -> str:
    """Return a model's number of components and value model in a few words."""
    return f"{model.n_components} components, element {model.value_model.description}"


def _baselines(model: FittedModel, data: Split, seed: int) -> list[tuple[str, str, Any]]:
    settings: Mapping[str, Any] = model.settings
    is_presence = isinstance(model.element, Presence)
    element = "auto" if is_presence else settings.get("element", "auto")
    if not explains_missing(model):
        return [
            ("Shared element", "one distribution for all values", GlobalElement(element)),
            ("Element per item", "a mean per item", PerItemElement(element)),
        ]
    popular = "activity of the user times popularity of the item; a shared distribution of values"
    models: list[tuple[str, str, Any]] = [("Popularity", popular, Popularity(element))]
    if is_presence:
        return models
    shared = {name: value for name, value in settings.items() if name not in _OWN_SETTINGS}
    shared |= {"random_state": seed}
    k = model.n_components
    separate = "Poisson factorization of which pairs are observed; a shared distribution of values"
    models.append(("Binary HPF", separate, BinaryHPF(k, element=element, **shared)))
    values = np.concatenate([data.train.values, data.test.values], dtype=np.float64)
    if np.all(Degenerate.support.contains(values)) and not isinstance(model.element, Degenerate):
        plain = "Poisson factorization of the counts themselves"
        models.append(("HPF", plain, HPF(k, **shared)))
    return models


def _encoded(value: Any) -> Any:
    """Return what JSON can hold; numbers that it cannot become text that ``float`` reads."""
    if is_dataclass(value):
        kept = [f.name for f in fields(value) if f.name not in ("pairs", "pit")]
        return {name: _encoded(getattr(value, name)) for name in kept}
    if isinstance(value, np.ndarray):
        return _encoded(value.tolist())
    if isinstance(value, dict):
        return {str(key): _encoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _decoded(kind: Any, found: Any) -> Any:
    """Return what ``_encoded`` wrote as the type ``kind``, a dataclass or the type of a field."""
    origin, arguments = get_origin(kind), get_args(kind)
    if found is None:
        return None
    if origin is UnionType:  # X | None
        return _decoded(arguments[0], found)
    if origin is list:
        return [_decoded(arguments[0], item) for item in found]
    if origin is dict:
        return {arguments[0](key): _decoded(arguments[1], item) for key, item in found.items()}
    if origin is np.ndarray:
        return np.array(found, dtype=np.float64 if kind == FloatArray else np.int64)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _decoded(hints[name], item) for name, item in found.items()})  # pyright: ignore[reportCallIssue]
    return float(found) if kind is float else found
