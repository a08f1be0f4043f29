"""What the simulator is asked for: data like the paper's, and input that it refuses."""

import numpy as np
import pytest

from hcpf.data import PAPER_DATASETS
from hcpf.data.paper import paper_dataset
from hcpf.elements import Binomial, Gamma, Poisson, ZeroTruncatedPoisson
from hcpf.errors import HcpfError, IncompleteElementError, InputError, ParameterError
from hcpf.simulation import simulate

# -- the paper's data sets ------------------------------------------------------------------------

SPARSITY = {
    "amazon": 0.999970,
    "movielens": 0.994600,
    "netflix": 0.988224,
    "yelp": 0.999947,
    "wordpress": 0.999915,
    "tencent": 0.999991,
    "bestbuy": 0.999979,
    "merck": 0.970524,
    "echonest": 0.999877,
    "donation": 0.965831,
    "dchoose": 0.999996,
    "geuvadis": 0.462122,
}


def test_table_2():
    # The paper's own column checks rows, columns and entries at once; yelp's is rounded down.
    sparsity = {name: each.sparsity for name, each in PAPER_DATASETS.items()}
    assert sparsity == pytest.approx(SPARSITY, abs=1e-6, rel=0)
    continuous = {name for name, each in PAPER_DATASETS.items() if each.continuous}
    assert continuous == {"donation", "dchoose", "geuvadis"}
    assert all(each.element.is_complete for each in PAPER_DATASETS.values())
    ratings = {name for name, each in PAPER_DATASETS.items() if isinstance(each.element, Binomial)}
    assert ratings == {"amazon", "movielens", "netflix", "yelp"}


def test_nearly_binary_sets_are_nearly_binary():
    result = simulate(like="merck", scale=0.02, random_state=0)
    assert np.mean(result.interactions.values == 1) > 0.75


@pytest.mark.parametrize("name", PAPER_DATASETS)
def test_like(name):
    model = PAPER_DATASETS[name]
    scale = min(1.0, (2e5 / model.nonmissing) ** 0.5)
    result = simulate(like=name, scale=scale, random_state=0)
    shape = (round(model.rows * scale), max(1, round(model.cols * scale)))
    assert result.interactions.shape == shape
    expected = shape[0] * shape[1] * model.density
    slack = 4 * np.sqrt(expected) + 0.005 * expected
    assert abs(result.interactions.n_observed - expected) < slack
    assert result.element == model.element


def test_like_at_full_size():
    result = simulate(like="wordpress", random_state=0)
    assert result.interactions.shape == (86_661, 78_754)
    assert result.interactions.n_observed == pytest.approx(581_508, rel=0.01)


def test_what_is_given_goes_before_like():
    result = simulate(40, like="NETFLIX", n_items=30, density=0.2, element=Poisson(1.0))
    assert result.interactions.shape == (40, 30)
    assert result.element == Poisson(1.0)
    assert simulate(40, like="donation", scale=0.5).interactions.shape == (40, 41)


def test_unknown_name():
    with pytest.raises(InputError, match=r"'netflicks'.*amazon, movielens, netflix"):
        paper_dataset("netflicks")


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_users": 0}, ParameterError, "n_users must be an integer"),
        ({"n_items": -3}, ParameterError, "n_items must be an integer"),
        ({"n_users": 2.5}, ParameterError, "n_users"),
        ({"n_users": True}, ParameterError, "n_users"),
        ({"n_items": "ten"}, ParameterError, "n_items"),
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"n_users": 2**40, "n_items": 2**40}, InputError, "64-bit"),
        ({"density": 0.0}, ParameterError, "density must be strictly between 0 and 1"),
        ({"density": 1.0}, ParameterError, "density"),
        ({"density": -0.1}, ParameterError, "density"),
        ({"density": np.nan}, ParameterError, "density"),
        ({"density": [0.1, 0.2]}, ParameterError, "density must be a single number"),
        ({"density": "high"}, InputError, "density"),
        ({"like": "netflicks"}, InputError, "netflicks"),
        ({"like": "netflix", "scale": 0.0}, ParameterError, "scale"),
        ({"scale": 0.5}, InputError, "requires like="),
        ({"element": Gamma(2.0)}, IncompleteElementError, "rate=\\?"),
        ({"element": "gamma"}, InputError, "element must be an Element"),
        ({"element": Gamma}, InputError, "element must be an Element"),
        ({"element": Gamma([1.0, 2.0], 1.0)}, ParameterError, "single numbers"),
        ({"user_shape": 0.0}, ParameterError, "user_shape"),
        ({"item_shape": -1.0}, ParameterError, "item_shape"),
        ({"user_activity_shape": np.inf}, ParameterError, "user_activity_shape"),
        ({"item_activity_mean": [1.0, 2.0]}, ParameterError, "item_activity_mean"),
        ({"random_state": "seed"}, InputError, "random_state"),
        ({"random_state": -1}, InputError, "random_state"),
        ({"user_shape": 1e-3, "item_shape": 1e-3, "density": 0.5}, ParameterError, "cannot be"),
        ({"user_shape": 1e-9, "n_users": 2000}, ParameterError, "cannot be reached"),
        ({"user_activity_shape": 1e-3}, ParameterError, "overflow"),
        (
            {"density": None, "user_activity_mean": 1e-25},
            ParameterError,
            "too large for exact counts",
        ),
        (
            {"density": None, "user_activity_mean": 1e-200, "item_activity_mean": 1e-200},
            ParameterError,
            "too large for exact counts",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_bad_input(arguments, error, message):
    arguments = {"random_state": 0, **arguments}
    with pytest.raises(error, match=message) as raised:
        simulate(**arguments)
    assert isinstance(raised.value, HcpfError)


def test_a_zero_truncated_element_gives_no_zeros():
    result = simulate(60, 50, density=0.2, element=ZeroTruncatedPoisson(0.01), random_state=0)
    assert result.interactions.values.min() >= 1
