"""Whole lives of models on any data: sensible numbers or a clear error, at every step.

``make fuzz`` tries many more: HCPF_FUZZ is the number of lives.
"""

import os
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hcpf import elements
from hcpf.core.value_model import ways_to_vary
from model.life import Start, live

LIVES = int(os.environ.get("HCPF_FUZZ", "25"))
COUNT_TOPS = (1, 5, 1_000, 10**6, 10**9, 10**12, 2**53)
SCALES = (1e-315, 1e-300, 1e-150, 1e-50, 1e-5, 1.0, 1e15, 1e50, 1e150, 1e300)
endings: Counter[str] = Counter()


@st.composite
def starts(draw):
    """Any element, pooling, training set and solver; values of all sizes, alike or wide apart."""
    family = draw(st.sampled_from([*elements.ALL, elements.Presence]))
    n_users, n_items = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    observed = rng.random((n_users, n_items)) < draw(st.sampled_from([0.3, 0.6, 1.0]))
    observed[0, 0] = True
    hurdle = draw(st.booleans())
    return Start(
        element=family(),
        values=tuple(map(float, _values(draw, family, int(observed.sum()), rng))),
        observed=tuple(map(tuple, observed.tolist())),
        vary_by=draw(st.sampled_from([None, *ways_to_vary(family)])),
        hurdle=hurdle,
        train_on="full" if hurdle else draw(st.sampled_from(["full", "observed"])),
        n_components=draw(st.integers(1, 3)),
        n_fits=draw(st.integers(1, 2)),
        solver=draw(st.sampled_from(["cavi", "auto", "svi", "algorithm1"])),
        max_iter=draw(st.integers(1, 5)),
        learn_element=draw(st.booleans()),
        user_exposure=draw(_exposures(n_users)),
        item_exposure=draw(_exposures(n_items)),
    )


def _exposures(size):
    multiplier = st.sampled_from([1e-3, 0.5, 1.0, 30.0, 1e4])
    return st.none() | st.lists(multiplier, min_size=size, max_size=size).map(tuple)


def _values(draw, family, size, rng):
    lowest = family.support.lowest
    if family.support.discrete:
        top = draw(st.sampled_from(COUNT_TOPS))
        spread = draw(st.sampled_from(["even", "logarithmic", "alike"]))
        if spread == "alike":
            return np.full(size, float(max(top, lowest)))
        share = rng.random(size)
        values = share * top if spread == "even" else np.exp(share * np.log(top + 1.0))
        return np.maximum(np.floor(values), lowest)
    scale, width = draw(st.sampled_from(SCALES)), draw(st.sampled_from([0.0, 0.7, 5.0]))
    with np.errstate(over="ignore"):
        values = np.minimum(scale * np.exp(rng.normal(0.0, width, size)), 1e308)
    values = np.maximum(values, 5e-324)
    return values * rng.choice([-1.0, 1.0], size) if lowest < 0 and draw(st.booleans()) else values


@settings(max_examples=LIVES, derandomize=LIVES <= 25)
@given(starts())
def test_every_life_has_sensible_numbers_or_clear_errors(start):
    endings[live(start)] += 1


def teardown_module():
    if LIVES > 25:
        with open(os.environ.get("HCPF_FUZZ_REPORT", os.devnull), "a") as file:  # noqa: PTH123
            file.write(f"{sum(endings.values())} lives: {dict(endings)}\n")
