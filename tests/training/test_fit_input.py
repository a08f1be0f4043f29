"""What HCPF refuses, and that it says which argument is at fault."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from hcpf import CAVI, HCPF, SVI, Algorithm1, Auto, Checkpoints, Interactions, Priors
from hcpf.elements import Binomial, Gamma, Poisson, Presence
from hcpf.errors import HcpfError, InputError, NotFittedError, ParameterError, SupportError
from model.small import quick

VALUES = np.array([[1.5, 0.0, 2.0], [0.0, 3.5, 0.0], [4.0, 0.5, 1.0], [0.0, 0.0, 2.5]])
COUNTS = np.array([[1, 0, 2], [0, 3, 0], [4, 1, 1], [0, 0, 2]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wrap", [np.array, sparse.csr_array, sparse.coo_array])
def test_values_that_are_not_finite(bad, wrap):
    values = VALUES.copy()
    values[2, 1] = bad
    with pytest.raises(InputError, match="finite"):
        quick().fit(wrap(values))


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("gamma", -1.0), ("gamma", 0.0), ("inverse_gaussian", -2.0), ("poisson", 1.5),
        ("binomial", -1.0), ("negative_binomial", 0.5), ("zero_truncated_poisson", 0.0),
        ("logarithmic", 2.5), ("geometric", 0.0), ("degenerate", 0.0), (Gamma(2.0, 1.0), -1.0),
        (Poisson(1.0), 0.5), (Binomial(3, 0.5), -1.0),
    ],
    ids=str,
)  # fmt: skip
def test_values_outside_the_support(element, value):
    matrix = sparse.csr_array(COUNTS.astype(float))
    matrix.data[2] = value
    with pytest.raises(SupportError, match="takes"):
        quick(element=element).fit(matrix)
    held = sparse.csr_array(([value], ([1], [0])), shape=COUNTS.shape)
    with pytest.raises(SupportError, match="validation"):
        quick(element=element).fit(COUNTS, validation=held)


@pytest.mark.parametrize("element", ["gamma", "auto"])
def test_excluded_pairs_may_have_any_value(element):
    matrix = sparse.csr_array(VALUES)
    excluded = sparse.csr_array(([1.0], ([1], [1])), shape=VALUES.shape)
    expected = quick(element=element).fit(matrix, exclude=excluded)
    matrix[1, 1] = -3.5
    found = quick(element=element).fit(matrix, exclude=excluded)
    assert found.history_[-1].elbo == expected.history_[-1].elbo
    with pytest.raises(SupportError, match=r"user 1 and item 1 has the value -3\.5"):
        quick(element="gamma").fit(matrix)


@pytest.mark.parametrize(
    ("element", "size"),
    [("normal", 1e-30), ("normal", 1e30), ("inverse_gaussian", 1e-65), ("inverse_gaussian", 1e65)],
)
def test_units_in_which_crossed_means_would_lose_their_digits(element, size):
    with pytest.raises(InputError, match=r"change the unit|Rescale them"):
        quick(element=element, vary_by="both").fit(size * VALUES)
    assert quick(element=element, vary_by="both").fit(VALUES).value_model_.vary_by == "both"


@pytest.mark.parametrize(
    "nothing",
    [np.zeros((3, 4)), np.empty((0, 3)), np.empty((3, 0)), sparse.csr_array((5, 5)), []],
    ids=["zeros", "no rows", "no columns", "no entries", "no list"],
)
def test_nothing_to_fit(nothing):
    with pytest.raises(InputError):
        quick().fit(nothing)


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 2)), "text", None, {"a": 1}, 3.0])
def test_no_matrix(bad):
    with pytest.raises(InputError):
        quick().fit(bad)


@pytest.mark.parametrize("name", ["validation", "exclude"])
def test_held_out_pairs_of_another_shape(name):
    for shape in ((3, 3), (4, 4), (3, 4)):
        with pytest.raises(InputError, match=name):
            quick().fit(VALUES, **{name: np.ones(shape)})
    with pytest.raises(InputError):
        quick().fit(VALUES, **{name: "some"})


def test_nothing_is_left():
    with pytest.raises(InputError, match="left"):
        quick().fit(VALUES, exclude=np.ones_like(VALUES))
    with pytest.raises(InputError, match="left"):
        quick().fit(VALUES, validation=VALUES)
    with pytest.raises(InputError, match="validation holds no entries"):
        quick().fit(VALUES, validation=np.zeros_like(VALUES))
    with pytest.raises(InputError, match="validation"):
        quick(validation=1e-6).fit(VALUES)
    fitted = quick(element="gamma").fit(VALUES, exclude=np.zeros_like(VALUES))
    assert fitted.n_iter_ == 10


BAD = {
    "n_components": [0, -1, 2.5, "3", None, True, [3]],
    "element": ["nonsense", 3, None, Gamma, Gamma(np.array([1.0, 2.0]), 1.0), [Gamma()]],
    "vary_by": ["users", "none", 1, True, ["user"]],
    "hurdle": ["yes", None, 1],
    "train_on": ["some", "binary", None, 1, ["full"]],
    "n_fits": [0, 1.5, None],
    "combine": ["median", None],
    "solver": ["newton", None, 2, ["cavi"]],
    "priors": ["mine", None, 3.0, (1, 1, 1, 1, 1, 1)],
    "learn_element": ["yes", None, 2],
    "max_iter": [0, -3, 1.5, "10", None, True],
    "tol": [-1e-9, np.nan, "small", None],
    "tempering": ["hot", 0, -1.0, True, None],
    "start": ["spectral", None, 1, ["noise"]],
    "random_state": ["seed", -1, 1.5],
}
BAD_ARGUMENTS = {
    "validation": [-0.1, 1.0, np.nan, "half", True],
    "warm_start": ["yes", None, 1],
    "n_threads": [0, -1, 1.5, "all", True],
    "progress": ["bar", 2],
    "checkpoint": [5, 1.5, ["folder"]],
}
BAD_CONSTANTS = [
    (CAVI, {"max_count": [0, -1, 2.5, "all", True]}),
    (SVI, {"batches": [0, 2.5, None], "local_passes": [0, 0.5, None]}),
    (SVI, {"tau": [0.0, -1.0, np.nan, "1", np.inf], "xi": [0.5, 1.1, 0.0, np.nan, "x"]}),
    (Algorithm1, {"tau": [0.0], "xi": [0.5], "stratified": [1, "no", None]}),
    (Auto, {"svi_passes": [-1, 0.5, None]}),
    (partial(Checkpoints, "folder"), {"every_passes": [0, 1.5, None]}),
    (partial(Checkpoints, "folder"), {"every_seconds": [-1.0, np.nan, "often", None]}),
]


def test_every_parameter_is_in_the_table():
    assert BAD.keys() == HCPF().get_params().keys()


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(k, name, v) for k, values in BAD_CONSTANTS for name in values for v in values[name]],
)
def test_bad_constants_are_named(kind, name, value):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_ARGUMENTS.items() for value in values],
)
def test_bad_arguments_of_fit_are_named(name, value):
    with pytest.raises(HcpfError, match=name):
        HCPF(2, max_iter=1, element="gamma").fit(VALUES, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD.items() for value in values],
    ids=lambda x: x if isinstance(x, str) else repr(x)[:30],
)
def test_bad_parameters_are_named(name, value):
    settings = {"n_components": 2, "max_iter": 1, "element": "gamma"}
    with pytest.raises(HcpfError) as caught:
        HCPF(**(settings | {name: value})).fit(VALUES)
    assert isinstance(caught.value, ValueError)
    assert name in str(caught.value)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "1", None, [1.0, 2.0], 1e-300])
@pytest.mark.parametrize("name", list(Priors.__dataclass_fields__))
def test_bad_priors_are_named(name, value):
    good = dict.fromkeys(Priors.__dataclass_fields__, 1.0)
    with pytest.raises(InputError, match=name):
        Priors(**(good | {name: value}))


@pytest.mark.parametrize("density", [0.0, -0.1, 1.1, np.nan, "x"])
def test_bad_densities(density):
    with pytest.raises(ParameterError, match="density"):
        Priors.paper(density, 3)
    with pytest.raises(ParameterError, match="n_components"):
        Priors.paper(0.1, 0)


@pytest.mark.parametrize("settings", [{"vary_by": "user"}, {"hurdle": True}], ids=str)
def test_pooling_and_hurdle_require_an_element(settings):
    with pytest.raises(ParameterError, match="require an element"):
        quick(**settings).fit(VALUES)
    assert quick(element="gamma", **settings).fit(VALUES).element_.name == "gamma"


def test_presence_does_not_look_at_the_values():
    ones = quick(element="degenerate").fit((VALUES > 0).astype(float))
    for values in (VALUES, -VALUES):
        fitted = quick(element="presence").fit(values)
        assert fitted.element_ == Presence()
        np.testing.assert_array_equal(fitted.posterior_.users.mean_, ones.posterior_.users.mean_)


def test_parameters_given_stay_and_others_are_estimated():
    fitted = quick(element=Gamma(shape=3.0), learn_element=False).fit(VALUES)
    assert fitted.element_.shape == 3.0
    observed = quick(element=Gamma(shape=3.0), train_on="observed", learn_element=False).fit(VALUES)
    assert observed.element_.shape == 3.0
    given = Gamma(2.0, 0.7)
    for train_on in ("full", "observed"):
        fitted = quick(element=given, train_on=train_on, learn_element=False).fit(VALUES)
        assert fitted.element_ == given
    estimated = Gamma.estimate(VALUES[VALUES > 0])
    found = quick(element="GA", train_on="observed", learn_element=False).fit(VALUES).element_
    assert found.shape == pytest.approx(estimated.shape / -np.log(0.001))
    assert found.rate == pytest.approx(estimated.rate)


@pytest.mark.parametrize(
    ("element", "values"),
    [(Binomial(1), [1.0, 1.0, 1.0]), (Binomial(5), [5.0, 5.0, 5.0]), ("ZTP", [1.0, 1.0, 1.0]),
     ("geometric", [1.0, 1.0, 1.0]), ("poisson", [0.0, 0.0, 0.0]), ("auto", [7.0, 7.0, 7.0]),
     ("auto", [1.0, 1.0, 1.0]), ("NB", [0.0, 0.0, 0.0]), ("logarithmic", [1.0, 1.0, 1.0])],
    ids=str,
)  # fmt: skip
def test_values_on_the_edge_of_a_family(element, values):
    matrix = sparse.csr_array((values, ([0, 1, 2], [1, 1, 0])), shape=(4, 3))
    fitted = quick(element=element, max_iter=40, check_every=1).fit(matrix)
    elbo = [check.elbo for check in fitted.history_]
    assert np.all(np.isfinite(elbo))
    assert np.all(np.diff(elbo) > -1e-6 * np.abs(elbo[1:]))


def test_ids_are_looked_up_and_strange_ones_refused():
    data = Interactions.from_matrix(VALUES, users=["d", "a", "c", "b"], items=[30, 10, 20])
    fitted = quick(element=Gamma(2.0, 1.0)).fit(data)
    plain = quick(element=Gamma(2.0, 1.0)).fit(VALUES)
    assert fitted.rate("c", 10) == plain.rate(2, 1)
    np.testing.assert_array_equal(
        fitted.rate([["a"], ["b"]], [30, 20]), plain.rate([[1], [3]], [0, 2])
    )
    for users, items in (("z", 10), ("a", 11), (0, 10), ("a", "x")):
        with pytest.raises(InputError):
            fitted.rate(users, items)
    for users, items in ((4, 0), (-1, 0), (0, 3), (0.5, 0), ("a", 0)):
        with pytest.raises(InputError):
            plain.rate(users, items)
    assert plain.rate([], []).shape == (0,)


@pytest.mark.parametrize("method", ["rate", "predict", "predict_proba", "predict_distribution"])
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError, match="fit"):
        getattr(HCPF(), method)(0, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint16, bool])
def test_other_dtypes_give_the_same_fit(dtype):
    values = COUNTS.astype(dtype)
    expected = quick(element="poisson").fit(values.astype(np.float64))
    found = quick(element="poisson").fit(sparse.csc_array(values))
    np.testing.assert_array_equal(found.posterior_.users.mean_, expected.posterior_.users.mean_)
