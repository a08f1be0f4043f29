"""How exact the compound Poisson density is, against high precision.

Prints the worst relative error of the density over a grid of rates and values, for each element:

    python tests/accuracy.py
"""

import time
from itertools import pairwise

import numpy as np

from hcpf import CompoundPoisson, elements
from hcpf.elements import Element
from reference import relative_error

GRID_ELEMENTS = (
    elements.Normal(0.7, 2.0),
    elements.Normal(-3.0, 0.5),
    elements.Gamma(2.0, 0.05),
    elements.Gamma(0.3, 1.5),
    elements.InverseGaussian(3.0, 4.0),
    elements.InverseGaussian(20.0, 1.0),
    elements.Poisson(0.8),
    elements.Poisson(30.0),
    elements.Binomial(5, 0.7),
    elements.Binomial(100, 0.02),
    elements.NegativeBinomial(2.5, 0.3),
    elements.NegativeBinomial(0.2, 0.95),
    elements.ZeroTruncatedPoisson(0.5),
    elements.ZeroTruncatedPoisson(20.0),
    elements.Logarithmic(0.6),
    elements.Logarithmic(0.9999),
    elements.Geometric(0.4),
    elements.Geometric(0.99),
    elements.Degenerate(),
)
GRID_RATES = (1e-12, 1e-6, 1e-2, 1.0, 40.0, 1e4)
GRID_VALUES = (1.0, 2.0, 13.0, 150.0, 1e3, 1.001e3, 3e4, 1e6)


def grid_values(element: Element) -> tuple[float, ...]:
    """Values for an element: its own zero, fractions and negative numbers besides the counts."""
    extra = (0.0,) if element.support.has_zero else ()
    if not element.support.discrete:
        extra += (1e-3, 0.37, 77.7, 12345.6)
    if element.support.lowest < 0:
        extra += (-0.4, -25.0, -900.0)
    return tuple(sorted({*GRID_VALUES, *extra}))


def worst_errors(element: Element) -> list[tuple[float, float, float]]:
    """The worst error up to 1,000, and that beyond, each with the rate and the value it is at."""
    values = np.array(grid_values(element))
    rates = np.array(GRID_RATES)
    logs = CompoundPoisson(rates[:, None], element).log_density(values)
    errors = [
        (relative_error(element, rate, y, logs[i, j]), rate, y)
        for i, rate in enumerate(rates)
        for j, y in enumerate(values)
    ]
    ranges = pairwise((-np.inf, 1000.0, np.inf))
    return [max(e for e in errors if low < e[2] <= high) for low, high in ranges]


def main() -> None:
    print(f"{'element':52} {'y <= 1000':>10} {'(rate, y)':>16} {'beyond':>10} {'(rate, y)':>18}")
    for element in GRID_ELEMENTS:
        started = time.perf_counter()
        (near, rate1, y1), (far, rate2, y2) = worst_errors(element)
        print(
            f"{element!r:52} {near:10.1e} {f'({rate1:g}, {y1:g})':>16} "
            f"{far:10.1e} {f'({rate2:g}, {y2:g})':>18} {time.perf_counter() - started:6.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
