"""The history of a fit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One line of the history.

    ``elbo`` is that of the likelihood to the power ``tempering``: it bounds the evidence only where
    that is 1, and cannot be compared between fits that differ in it.
    """

    iteration: int
    seconds: float
    elbo: float
    validation_log_likelihood: float | None = None
    tempering: float = 1.0
