"""The history of a fit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One line of the history."""

    iteration: int
    seconds: float
    elbo: float
    validation_log_likelihood: float | None = None
