"""An evaluation: scores of a model and of simpler ones, in a file that a report can read."""

import json
import math
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.elements import Degenerate, Element
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.evaluate.baselines import GlobalElement, PerItemElement, Popularity
from hcpf.evaluate.comparison import ModelScores, fit_and_score
from hcpf.evaluate.hpf import HPF, BinaryHPF
from hcpf.evaluate.predictive_checks import Band, ValueCheck, check_values
from hcpf.evaluate.ranks import RankingScores
from hcpf.evaluate.reliability import Calibration, Reliability
from hcpf.evaluate.score import Score
from hcpf.evaluate.scoring import Scores
from hcpf.evaluate.splits import Split
from hcpf.model.predict import as_path

_SCHEMA = 1
_OWN_SETTINGS = ("element", "train_on", "n_components")  # those of a baseline differ


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
        try:
            target.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{target} cannot be written: {error.strerror or error}.") from None

    @classmethod
    def load(cls, path: str | Path) -> "Evaluation":
        """Read an evaluation that ``save`` wrote."""
        source = as_path("path", path)
        try:
            found = json.loads(source.read_text(encoding="utf-8"))
            if found.pop("hcpf_evaluation") != _SCHEMA:
                raise ValueError("it was written by another version of hcpf")
            return cls(**found | {
                "models": [_model_scores(row) for row in found["models"]],
                "values": found["values"] and _value_check(found["values"]),
            })  # fmt: skip
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
    k: int = 20,
    baselines: bool = True,
    early_stopping: bool = False,
    random_state: int = 0,
) -> Evaluation:
    """Score a model, and simpler ones, on the test pairs of a split.

    Parameters
    ----------
    model : HCPF
        A model that was fitted to ``data.train``, or one that is not fitted yet.
    data : Split
        The training data and the held-out pairs.
    k : int
        Length of the recommendation lists.
    baselines : bool
        Whether to fit and score simpler models as well: popularity, factors of which pairs are
        observed with a shared element and, for counts, plain Poisson factorization; of a model of
        observed entries only, a shared element and one per item.
    early_stopping : bool
        Whether the validation pairs of the split decide when a fit stops.
    random_state : int
        Seed of the baselines' fits and of the draws.

    Examples
    --------
    >>> from hcpf import HCPF, simulate
    >>> from hcpf.evaluate import split
    >>> parts = split(simulate(60, 40, density=0.2, random_state=0).interactions, random_state=0)
    >>> found = evaluate_model(HCPF(2, n_fits=1, max_iter=5, random_state=0), parts)
    >>> [row.name for row in found.models]
    ['This model', 'Popularity', 'Factors, values apart', 'Plain Poisson (HPF)']
    """

    def row(name: str, about: str, one: Any) -> ModelScores:
        return fit_and_score(
            name, one, data, k, about=about, early_stopping=early_stopping, calibrate=True
        )

    rows = [row("This model", "the model of this report", model)]
    if baselines:
        rows += [row(*baseline) for baseline in _baselines(model, data, random_state)]
    return Evaluation(
        models=rows,
        values=check_values(model, data, random_state),
        settings=settings_text(model),
        n_users=data.train.n_users,
        n_items=data.train.n_items,
        n_train=data.train.n_observed,
        n_test=len(data.test),
        n_missing=data.test.n_missing,
    )


def settings_text(model: HCPF) -> str:
    """Return a fitted model's element and number of components in a few words."""
    pooling = {None: "", "user": " per user", "item": " per item", "both": " per user and item"}
    element = model.element_
    name = element.name.replace("_", " ") + (" hurdle" if element.once else "")
    k = model.posteriors_[0].items.mean_.shape[1]
    return f"{k} components, element {name}{pooling[element.per]}"


def _baselines(model: HCPF, data: Split, seed: int) -> list[tuple[str, str, Any]]:
    element = "auto" if model.train_on == "binary" else model.element
    if isinstance(element, Element):
        element = element.varying(None)
    if model.train_on == "observed":
        return [
            ("One distribution", "the same values for every pair", GlobalElement(element)),
            ("Item averages", "a distribution per item", PerItemElement(element)),
        ]
    popular = "active users take popular items; values alike for all pairs"
    models: list[tuple[str, str, Any]] = [("Popularity", popular, Popularity(element))]
    if model.train_on == "binary":
        return models
    # What belongs to the first fit must not be touched.
    own = {"checkpoint": None, "warm_start": False, "progress": False, "random_state": seed}
    settings = {**model.get_params(deep=False), **own}
    settings = {name: value for name, value in settings.items() if name not in _OWN_SETTINGS}
    k = model.n_components
    separate = "Poisson factorization of which pairs are observed; values alike for all pairs"
    models.append(("Factors, values apart", separate, BinaryHPF(k, element=element, **settings)))
    values = np.concatenate([data.train.values, data.test.values], dtype=np.float64)
    if np.all(Degenerate.support.contains(values)) and not isinstance(model.element_, Degenerate):
        plain = "Poisson factorization of the counts themselves"
        models.append(("Plain Poisson (HPF)", plain, HPF(k, **settings)))
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


def _score(found: dict[str, Any]) -> Score:
    return Score(float(found["value"]), float(found["error"]))


def _array(found: list[Any]) -> FloatArray:
    return np.array(found, dtype=np.float64)


def _decoded(found: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass of scores, arrays and numbers."""
    return {
        name: _score(value)
        if isinstance(value, dict)
        else _array(value)
        if isinstance(value, list)
        else value
        for name, value in found.items()
    }


def _model_scores(found: dict[str, Any]) -> ModelScores:
    ranked = found["ranking"]
    return ModelScores(**found | {
        "scores": Scores(**_decoded(found["scores"])),
        "ranking": ranked and RankingScores(**_decoded(ranked)),
        "calibration": _calibration(found["calibration"]),
    })  # fmt: skip


def _calibration(found: dict[str, Any]) -> Calibration:
    curve = found["reliability"]
    return Calibration(
        reliability=curve and Reliability(**_decoded(curve)),
        coverage={float(level): _score(score) for level, score in found["coverage"].items()},
        pit_coverage={float(level): _score(s) for level, s in found["pit_coverage"].items()},
        pit_histogram=_array(found["pit_histogram"]),
        pit_distance=found["pit_distance"],
    )


def _value_check(found: dict[str, Any]) -> ValueCheck:
    bands = {name: Band(**_decoded(found[name])) for name in ("histogram", "tail")}
    rest = {name: value for name, value in found.items() if name not in bands}
    return ValueCheck(**_decoded(rest), **bands)
