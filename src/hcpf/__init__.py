"""Hierarchical compound Poisson factorization.

One model for two questions about a sparse matrix: will this pair be observed, and if so, with
what value?
"""

from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcpf._version import __version__

if TYPE_CHECKING:
    from hcpf import datasets, elements, errors, evaluate, plots, report
    from hcpf.core.posterior import Posterior
    from hcpf.core.priors import Priors
    from hcpf.data.interactions import Interactions
    from hcpf.data.shards.folder import Shards
    from hcpf.distributed.ray import RayEngine
    from hcpf.distributions.compound import CompoundPoisson, ObservedCompoundPoisson
    from hcpf.estimator import HCPF
    from hcpf.model.fitted import FittedModel
    from hcpf.simulation import Simulation, simulate
    from hcpf.training.settings import CAVI, SVI, Algorithm1, Auto, Checkpoints

# Everything is loaded on first use: no command needs all of it, and much of it is slow to load.
_LAZY = {
    **dict.fromkeys(("CAVI", "SVI", "Algorithm1", "Auto", "Checkpoints"), "hcpf.training.settings"),
    **dict.fromkeys(("CompoundPoisson", "ObservedCompoundPoisson"), "hcpf.distributions.compound"),
    "FittedModel": "hcpf.model.fitted",
    "HCPF": "hcpf.estimator",
    "Interactions": "hcpf.data.interactions",
    "Posterior": "hcpf.core.posterior",
    "Priors": "hcpf.core.priors",
    "RayEngine": "hcpf.distributed.ray",
    "Shards": "hcpf.data.shards.folder",
    "Simulation": "hcpf.simulation",
    "simulate": "hcpf.simulation",
}
_LAZY_MODULES = ("datasets", "elements", "errors", "evaluate", "plots", "report")


def load(path: str | Path, *, check: bool = True) -> "FittedModel":
    """Load a saved model, without the trainer or scikit-learn; see ``FittedModel.load``."""
    from hcpf.model.fitted import FittedModel

    return FittedModel.load(path, check=check)


def threads(n: int) -> AbstractContextManager[None]:
    """Limit the threads of what runs in a ``with`` block: fits, recommendations, fold-ins, draws.

    The limit holds in the calling thread alone, so every thread of a server can set its own.
    ``n_threads`` of ``HCPF.fit`` takes precedence. Results do not depend on the number of threads.

    Parameters
    ----------
    n : int
        The largest number of threads that compiled code runs on. The BLAS of NumPy has a limit of
        its own, such as the environment variable OMP_NUM_THREADS.

    Examples
    --------
    >>> import hcpf
    >>> data = hcpf.simulate(30, 20, density=0.3, random_state=0).interactions
    >>> with hcpf.threads(1):
    ...     model = hcpf.HCPF(2, element="gamma", n_fits=1, max_iter=2, random_state=0).fit(data)
    ...     len(model.recommend("all", n=3))
    90
    """
    from hcpf._checks import whole
    from hcpf.core.threads import kernel_threads

    return kernel_threads(whole("n", n))


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return import_module(f"hcpf.{name}")
    if name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hcpf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "CAVI",
    "HCPF",
    "SVI",
    "Algorithm1",
    "Auto",
    "Checkpoints",
    "CompoundPoisson",
    "FittedModel",
    "Interactions",
    "ObservedCompoundPoisson",
    "Posterior",
    "Priors",
    "RayEngine",
    "Shards",
    "Simulation",
    "__version__",
    "datasets",
    "elements",
    "errors",
    "evaluate",
    "load",
    "plots",
    "report",
    "simulate",
    "threads",
]
