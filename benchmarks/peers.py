"""Programs that a person could use instead: how each is fitted, and how its result is asked.

Each program of ``PROGRAMS`` takes a ``Problem`` and a number of iterations and returns a
``Fitted``. Peers run with their documented defaults apart from K, threads and seed. They see which
pairs are observed, not the values: with ratings or spend as counts, their rates would not be those
of a pair being observed.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf import HCPF

BLOCK = 1 << 20  # pairs whose factors are held at once


@dataclass(frozen=True)
class Problem:
    """What every program gets."""

    train: sparse.csr_array
    held_out: sparse.csr_array
    """Marks the held-out pairs, for programs that can exclude them."""
    train_share: float
    """The share of the observed pairs that are trained on."""
    value_model: dict[str, Any]
    """The settings of hcpf: element, vary_by and hurdle."""
    components: int
    threads: int
    seed: int

    @property
    def pattern(self) -> sparse.csr_array:
        """The observed pairs, all with the value 1."""
        ones = np.ones(self.train.nnz, np.float32)
        return sparse.csr_array((ones, self.train.indices, self.train.indptr), self.train.shape)


class Fitted(Protocol):
    """A fitted program."""

    has_rates: bool
    """Whether ``score`` is a rate: a pair is missing with probability exp(-rate)."""

    def score(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rates or other scores of pairs."""
        ...

    def top(self, users: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        """The best n items of each user without those trained on; -1 where there are fewer."""
        ...


@dataclass
class Factors:
    """Scores that are products of factors, of a program that cannot exclude pairs."""

    users: NDArray[Any]
    items: NDArray[Any]
    train: sparse.csr_array
    has_rates: bool
    scale: float = 1.0
    """Undoes that the held-out observed pairs were trained on as missing ones."""

    def score(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        found = np.empty(len(users))
        for first in range(0, len(users), BLOCK):
            part = slice(first, first + BLOCK)
            found[part] = np.einsum("pk,pk->p", self.users[users[part]], self.items[items[part]])
        return self.scale * found

    def top(self, users: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        found = np.empty((len(users), n), np.int64)
        step = max(1, 16 * BLOCK // len(self.items))
        for first in range(0, len(users), step):
            part = users[first : first + step]
            score = np.asarray(self.users[part] @ self.items.T, np.float64)
            rows, columns = self.train[part].nonzero()
            score[rows, columns] = -np.inf
            best = np.argpartition(-score, n - 1, axis=1)[:, :n]
            order = np.argsort(-np.take_along_axis(score, best, axis=1), axis=1, kind="stable")
            best = np.take_along_axis(best, order, axis=1)
            seen = np.isneginf(np.take_along_axis(score, best, axis=1))
            found[first : first + step] = np.where(seen, -1, best)
        return found


@dataclass
class Ours:
    """A fitted HCPF."""

    model: HCPF
    has_rates: bool = True

    def score(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.model.rate(users, items)

    def top(self, users: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        best = self.model.recommend(users, n=n)
        found = np.full((len(users), n), -1, np.int64)
        found[np.searchsorted(users, best.user), best.rank - 1] = best.item
        return found


def hcpf_fits(problem: Problem, iterations: int, n_fits: int) -> Fitted:
    return fit_hcpf(problem, iterations, n_fits=n_fits, **problem.value_model)


def hcpf_quick(problem: Problem, iterations: int) -> Fitted:
    """The first look of ``hcpf fit --quick``, which needs no knowledge of the data."""
    return fit_hcpf(problem, iterations, n_fits=1, element="quick", tempering="formula")


def fit_hcpf(problem: Problem, iterations: int, **settings: Any) -> Fitted:
    model = HCPF(problem.components, max_iter=iterations, random_state=problem.seed, **settings)
    run: dict[str, Any] = {"n_threads": problem.threads, "progress": False}
    return Ours(model.fit(problem.train, exclude=problem.held_out, **run))


def als(problem: Problem, iterations: int) -> Fitted:
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):  # as implicit recommends
        model = AlternatingLeastSquares(
            factors=problem.components, iterations=iterations, num_threads=problem.threads,
            random_state=problem.seed,
        )  # fmt: skip
        model.fit(sparse.csr_matrix(problem.pattern), show_progress=False)
    return Factors(model.user_factors, model.item_factors, problem.train, has_rates=False)


def hpfrec(problem: Problem, iterations: int) -> Fitted:
    from hpfrec import HPF

    model = HPF(
        k=problem.components, maxiter=iterations, check_every=None, ncores=problem.threads,
        reindex=False, verbose=False, random_seed=problem.seed + 1,
    )  # fmt: skip
    model.fit(problem.pattern.tocoo())
    return _with_rates(problem, model.Theta, model.Beta)


def poismf(problem: Problem, iterations: int, method: str) -> Fitted:
    from poismf import PoisMF

    model = PoisMF(
        k=problem.components, method=method, niter=iterations, nthreads=problem.threads,
        random_state=problem.seed + 1,
    )  # fmt: skip
    model.fit(problem.pattern.tocoo())
    return _with_rates(problem, model.A, model.B)


def nmf(problem: Problem, iterations: int) -> Fitted:
    from sklearn.decomposition import NMF

    model = NMF(
        problem.components, beta_loss="kullback-leibler", solver="mu", max_iter=iterations,
        random_state=problem.seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged yet
        users = model.fit_transform(sparse.csr_matrix(problem.pattern))
    return _with_rates(problem, users, model.components_.T)


def _with_rates(problem: Problem, users: NDArray[Any], items: NDArray[Any]) -> Fitted:
    return Factors(users, items, problem.train, has_rates=True, scale=1 / problem.train_share)


@dataclass(frozen=True)
class Program:
    """A program and the numbers of iterations after which it is scored; the last is its default."""

    fit: Callable[[Problem, int], Fitted]
    iterations: tuple[int, ...]


PROGRAMS: dict[str, Program] = {
    "hcpf, one fit": Program(lambda p, n: hcpf_fits(p, n, 1), (1, 2, 3, 5, 10, 20, 300)),
    "hcpf, quick": Program(hcpf_quick, (1, 2, 3, 5, 10, 20, 300)),
    "hcpf, four fits": Program(lambda p, n: hcpf_fits(p, n, 4), (1, 2, 3, 5, 10, 20, 300)),
    "implicit ALS": Program(als, (1, 2, 4, 8, 15)),
    "hpfrec": Program(hpfrec, (3, 10, 30, 100)),
    "poismf, cg": Program(lambda p, n: poismf(p, n, "cg"), (1, 3, 10, 30)),
    "poismf, tncg": Program(lambda p, n: poismf(p, n, "tncg"), (1, 3, 10)),
    "scikit-learn NMF": Program(nmf, (5, 20, 60, 200)),
}
