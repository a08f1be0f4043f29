"""HCPF with arguments of ``fit`` given in advance, for tests that compare complete fits."""

from typing import Any

from hcpf import HCPF

OF_FIT = ("validation", "warm_start", "n_threads", "progress", "checkpoint")


class Prepared(HCPF):
    """An estimator that keeps arguments of ``fit``, and how often the ELBO is evaluated."""

    given: dict[str, Any] = {}  # noqa: RUF012 - a clone has none

    def set_params(self, **params):
        """Set parameters, arguments of ``fit``, or ``check_every``."""
        ours = (*OF_FIT, "check_every")
        self.given = self.given | {name: params.pop(name) for name in ours if name in params}
        return super().set_params(**params)

    def fit(self, X, y=None, **arguments):
        """Fit with the arguments given in advance."""
        known = {name: value for name, value in self.given.items() if name in OF_FIT}
        return super().fit(X, y, **(known | arguments))

    def _train(self, data, validation, exclude, exposure, start, run, *engine):
        checks = {name: value for name, value in self.given.items() if name == "check_every"}
        return super()._train(data, validation, exclude, exposure, start, run | checks, *engine)


def prepared(n_components=3, **settings):
    """Return an estimator; settings are parameters, arguments of ``fit``, or ``check_every``."""
    return Prepared(n_components).set_params(**settings)
