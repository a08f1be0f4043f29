"""Exposures of fitted models: given in any form, kept, and used by every prediction."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import hcpf
from core import dense
from core.worlds import as_matrix, at_fit, draw_model, exposure_of
from hcpf import HCPF, FittedModel, Interactions, evaluate
from hcpf.core.axis import Exposure
from hcpf.core.value_model import ValueModel
from hcpf.data.exposure import resolve_exposure
from hcpf.data.ids import IdIndex
from hcpf.elements import Degenerate, Gamma, Poisson
from hcpf.errors import InputError, ModelError
from hcpf.model.alignment import with_exposure
from hcpf.model.components import summarize_components
from model.small import by_hand, draw_matrix, name_of, quick, settings_of
from model.test_against_twin import converge, even_start, model_at

POISSON = ValueModel(Poisson(0.8))
SOME = [
    POISSON,
    POISSON.replace(train_on="observed"),
    ValueModel(Gamma(2.0, 0.5), vary_by="both"),
    ValueModel(Gamma(2.0, 0.5), vary_by="item", hurdle=True),
]
RNG = np.random.default_rng(5)
USERS, ITEMS = [f"u{j}" for j in range(14)], [f"i{j}" for j in range(11)]
DAYS, STOCK = RNG.uniform(0.5, 20.0, 14), RNG.uniform(0.2, 3.0, 11)


def data_of(value_model=POISSON, seed=0):
    twin = draw_model(value_model, seed=seed)
    return Interactions.from_matrix(as_matrix(twin), users=USERS, items=ITEMS)


@pytest.fixture(scope="module")
def fitted():
    data = data_of()
    model = HCPF(3, element="poisson", n_fits=2, max_iter=15, random_state=0)
    return model.fit(data, user_exposure=DAYS, item_exposure=STOCK).model_


def rates(model, **options):
    return model.rate(np.repeat(model.users, len(model.items)),
                      np.tile(model.items, len(model.users)), **options)  # fmt: skip


# -- what is exactly true --------------------------------------------------------------------------


@pytest.mark.parametrize("value_model", SOME, ids=name_of)
@pytest.mark.parametrize("solver", ["auto", "svi", "algorithm1"])
def test_exposures_in_another_unit_change_no_bit_of_the_rates(value_model, solver):
    data, settings = data_of(value_model), settings_of(value_model)
    model = HCPF(3, **settings, solver=solver, n_fits=2, max_iter=6, random_state=0)
    plain = model.fit(data).model_
    other = model.fit(data, user_exposure=4.0, item_exposure=np.full(11, 0.5)).model_
    np.testing.assert_array_equal(rates(other), rates(plain))
    np.testing.assert_array_equal(rates(other, exposure=1), rates(plain) / 2.0)
    for fit, before in zip(other.posteriors, plain.posteriors, strict=True):
        np.testing.assert_array_equal(4.0 * fit.users.mean_, before.users.mean_)
        np.testing.assert_array_equal(0.5 * fit.items.mean_, before.items.mean_)
    assert [check.elbo for check in other.history] == pytest.approx(
        [check.elbo for check in plain.history], rel=1e-12
    )
    new = data.matrix[:4]
    np.testing.assert_array_equal(
        4.0 * other.transform(new, user_exposure=4.0), plain.transform(new)
    )


@given(unit=st.floats(1e-4, 1e4), seed=st.integers(0, 99))
def test_the_unit_of_exposures_does_not_matter(unit, seed):
    days = np.random.default_rng(seed).uniform(0.5, 20.0, 14)
    model = quick(element="poisson", max_iter=5)
    data = data_of(seed=seed)
    first = model.fit(data, user_exposure=days).model_
    second = model.fit(data, user_exposure=unit * days).model_
    np.testing.assert_allclose(rates(second), rates(first), rtol=2e-4)


def test_exposure_1_gives_the_bits_of_a_fit_without():
    data, model = data_of(), quick(element="poisson", max_iter=8)
    plain, ones = model.fit(data).model_, model.fit(data, user_exposure=1, item_exposure=1).model_
    for fit, before in zip(ones.posteriors, plain.posteriors, strict=True):
        for axis in ("users", "items"):
            for name in ("shape_", "mean_", "activity_b"):
                np.testing.assert_array_equal(
                    getattr(getattr(fit, axis), name), getattr(getattr(before, axis), name)
                )


def test_an_item_of_two_days_is_two_items_of_a_day_each():
    # With counts, n = y: the two days of an item add up in the shapes and in the rates of a user.
    rng = np.random.default_rng(0)
    first, second = rng.poisson(1.0, (2, 5, 6))
    user, item = rng.gamma(2.0, 1.0, (5, 3)), rng.gamma(2.0, 1.0, (6, 3))
    joined = by_hand([(user, item)], element=Degenerate())
    two_days = with_exposure(joined.posteriors, Exposure(items=np.full(6, 2.0)))
    joined = replace(joined, posteriors=two_days)
    apart = by_hand([(user, np.vstack([item, item]))], element=Degenerate())
    found = joined.transform(first + second)
    np.testing.assert_allclose(found, apart.transform(np.hstack([first, second])), rtol=1e-5)


# -- against the twin ------------------------------------------------------------------------------


@pytest.mark.parametrize("value_model", SOME, ids=name_of)
def test_the_elbo_of_a_fit_is_the_twins(value_model):
    twin = draw_model(value_model, with_exposure=True)
    exposure = exposure_of(twin)
    model = quick(**settings_of(value_model), max_iter=10, check_every=1, tempering=1.5).fit(
        as_matrix(twin), user_exposure=exposure.users, item_exposure=exposure.items
    )
    elbo = [check.elbo for check in model.history_]
    assert np.all(np.diff(elbo) >= -1e-6 * np.abs(elbo[1:]))
    assert elbo[-1] == pytest.approx(dense.elbo(at_fit(twin, model)), rel=1e-6)


@pytest.mark.parametrize("value_model", SOME, ids=name_of)
@pytest.mark.parametrize("axis", ["users", "items"])
def test_new_rows_converge_to_the_twins(value_model, axis):
    shape = (7, 6) if axis == "users" else (6, 7)
    twin = draw_model(value_model, shape=shape, with_exposure=True)
    model, exposure = model_at(twin), exposure_of(twin)
    if axis == "users":
        found = model.fold_in(as_matrix(twin), user_exposure=exposure.users)
    else:
        found = model.fold_in_items(as_matrix(twin), item_exposure=exposure.items)
    found = getattr(found.posteriors[0], axis)
    twin = converge(even_start(twin if axis == "users" else twin.transposed))
    np.testing.assert_allclose(found.mean, twin.users.mean, rtol=5e-4)
    np.testing.assert_allclose(found.activity_b, twin.users.activity_b, rtol=5e-4)
    np.testing.assert_allclose(found.exposure, twin.users.exposure)


def test_parts_of_a_rate_add_up_and_match_the_twin():
    twin = converge(draw_model(POISSON, seed=2, shape=(7, 6), with_exposure=True))
    model, (counts, _), log_rate = (
        model_at(twin),
        dense.expected_counts(twin),
        dense.log_rates(twin),
    )
    exposure = twin.exposure
    for user, item in ((3, 2), (5, 0)):
        own = np.log(exposure[user])[:, None] - log_rate[user][:, None]
        share = np.exp(twin.users.log_mean[user] + twin.items.log_mean + own)
        per_count = exposure[user, item] * twin.items.mean[item] / twin.users.b[user]
        parts = (counts[user][:, None] * share) @ per_count
        found = model.explain(user, item)
        np.testing.assert_allclose(
            found.rate[:-1], parts[np.array(found.source[:-1], dtype=int)], rtol=1e-4
        )
        np.testing.assert_allclose(found.rate[-1], twin.users.shape * per_count.sum(), rtol=1e-3)
        np.testing.assert_allclose(found.rate.sum(), model.rate(user, item), rtol=1e-6)
        by_component = model.explain_components(user, item)
        np.testing.assert_allclose(by_component.sum(), model.rate(user, item), rtol=1e-6)


# -- predictions -----------------------------------------------------------------------------------


def test_rates_are_products_and_another_exposure_can_be_asked_for(fitted):
    unit = rates(fitted, exposure=1).reshape(14, 11)
    np.testing.assert_allclose(rates(fitted).reshape(14, 11), unit * np.outer(DAYS, STOCK))
    np.testing.assert_allclose(fitted.rate("u2", ITEMS, exposure=STOCK), unit[2] * STOCK)
    probability = fitted.predict_proba("u2", ITEMS, exposure=30)
    np.testing.assert_allclose(probability, -np.expm1(-30 * unit[2]))
    at_30 = fitted.predict_distribution("u2", ITEMS, exposure=30)
    np.testing.assert_allclose(fitted.predict("u2", ITEMS, exposure=30), at_30.mean_observed)
    np.testing.assert_allclose(fitted.predict_expected_value("u2", ITEMS, exposure=30), at_30.mean)


def test_draws_from_the_posterior_are_scaled_alike(fitted):
    draw = {"n_samples": 40, "random_state": 0}
    fixed = fitted.predict_distribution("u2", ITEMS, **draw).mean
    unit = fitted.predict_distribution("u2", ITEMS, **draw, exposure=1).mean
    np.testing.assert_allclose(fixed, unit * DAYS[2] * STOCK, rtol=1e-6)


@pytest.mark.parametrize("by", ["consensus", "probability", "value", "expected_value"])
@pytest.mark.parametrize("exposure", [None, 1, 12.5])
def test_recommendations_rank_by_exposed_rates(fitted, by, exposure):
    found = fitted.recommend("all", 11, by=by, exclude_seen=False, exposure=exposure, details=True)
    expected = fitted.predict_proba(found.user, found.item, exposure=exposure)
    np.testing.assert_allclose(found.probability, expected, rtol=1e-5)
    if by != "consensus":
        for user in USERS:
            assert np.all(np.diff(found.probability[found.user == user]) <= 1e-9)
    per_fit = [replace(fitted, posteriors=(fit,)) for fit in fitted.posteriors]
    logs = sum(np.log(fit.rate(found.user, found.item, exposure=exposure)) for fit in per_fit)
    if by == "consensus":
        for user in USERS:
            assert np.all(np.diff(logs[found.user == user]) <= 1e-5)
    some = [row for row in found if row.reason is not None][:3]
    shares = [fitted.explain(row.user, row.item).share[0] for row in some]
    np.testing.assert_allclose([row.reason_share for row in some], shares, rtol=1e-4)


def test_a_saved_model_keeps_its_exposures(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = FittedModel.load(tmp_path / "model")
    np.testing.assert_array_equal(rates(loaded), rates(fitted))
    np.testing.assert_array_equal(loaded.exposure.users, DAYS)
    np.testing.assert_array_equal(loaded.exposure.items, STOCK)
    broken = replace(
        fitted,
        posteriors=tuple(
            replace(fit, users=replace(fit.users, exposure=-DAYS)) for fit in fitted.posteriors
        ),
    )
    broken.save(tmp_path / "broken")
    with pytest.raises(ModelError, match=r"exposure\.users has numbers"):
        FittedModel.load(tmp_path / "broken")


# -- new users and items ---------------------------------------------------------------------------


def test_fitted_users_keep_their_exposure_and_new_ones_need_one(fitted):
    again = fitted.fold_in(fitted.data)
    np.testing.assert_array_equal(again.exposure.users, DAYS)
    some = Interactions.from_matrix(fitted.data.matrix[:2], users=["u0", "new"], items=ITEMS)
    with pytest.raises(InputError, match=r"the user 'new' has none \(1 of 2 users"):
        fitted.fold_in(some)
    found = fitted.fold_in(some, user_exposure={"new": 7.0})
    np.testing.assert_array_equal(found.exposure.users, [DAYS[0], 7.0])
    assert fitted.transform({"i1": 2.0}, user_exposure=3.0).shape == (1, 6)
    assert np.isfinite(fitted.score(fitted.data))
    with pytest.raises(InputError, match="has none"):
        fitted.score(fitted.data.matrix)
    assert np.isfinite(fitted.score(fitted.data.matrix, user_exposure=DAYS))


def test_a_user_observed_for_longer_has_smaller_factors():
    data = data_of()
    model = quick(element="poisson", max_iter=10).fit(data).model_
    short, long = (model.transform(data.matrix, user_exposure=days) for days in (1.0, 50.0))
    assert np.all(long.sum(axis=1) < short.sum(axis=1))


def test_partial_fit_brings_new_exposures_and_may_change_old_ones(fitted):
    settings = {"n_components": 3, "element": "poisson", "n_fits": 2, "max_iter": 3}
    estimator = HCPF.from_model(replace(fitted, settings=settings))
    more = Interactions.from_matrix(
        sparse.csr_array(np.array([[2.0, 1.0], [1.0, 3.0]])), users=["u3", "x"], items=["i2", "y"]
    )
    with pytest.raises(InputError, match="the user 'x' has none"):
        estimator.partial_fit(more, duplicates="sum", item_exposure={"y": 2.0})
    estimator.partial_fit(
        more, duplicates="sum", user_exposure={"u3": 9.0, "x": 4.0}, item_exposure={"y": 2.0}
    )
    found, days = estimator.model_.exposure, DAYS.copy()
    days[3] = 9.0
    np.testing.assert_array_equal(found.users, [*days, 4.0])
    np.testing.assert_array_equal(found.items, [*STOCK, 2.0])


# -- forms and mistakes ----------------------------------------------------------------------------


def test_every_form_gives_the_same(tmp_path):
    pandas = pytest.importorskip("pandas")
    by_id = dict(zip(USERS, DAYS, strict=True))
    path = tmp_path / "users.csv"
    lines = [f"{user},{float(days)!r}" for user, days in reversed(by_id.items())]
    path.write_text("\n".join(["name,days", *lines, "nobody,-3"]))
    index = IdIndex("users", data_of().users)
    forms = [DAYS, DAYS.tolist(), by_id, {**by_id, "nobody": 0.0}, f"{path}:days"]
    forms += [pandas.Series(DAYS, index=USERS)[::-1]]
    for form in forms:
        np.testing.assert_array_equal(resolve_exposure(form, index), DAYS)
    np.testing.assert_array_equal(resolve_exposure(2, index), np.full(14, 2.0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0.0, r"the user 'u0' has 0, but exposures must be between 1e-09 and 1e\+09"),
        (-1.0, "the user 'u0' has -1"),
        (np.inf, "the user 'u0' has inf"),
        ([np.nan, *DAYS[1:]], r"the user 'u0' has none \(1 of 14 users without one\)"),
        ([*DAYS[:4], 0.0, *DAYS[5:]], "the user 'u4' has 0"),
        ({"u0": 1.0}, r"the user 'u1' has none \(13 of 14"),
        ({}, "has none"),
        (
            DAYS[:3],
            r"14 numbers in the order of the users, or a mapping by id; its shape is \(3,\)",
        ),
        (["a"] * 14, "user_exposure must be numbers; got"),
        (True, "user_exposure must be numbers"),
        (1 + 2j, "user_exposure must be numbers"),
        ("days", "neither a column of the data nor FILE:COLUMN"),
        ("nowhere.csv:days", "nowhere.csv"),
    ],
)
def test_impossible_exposures_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        quick(element="poisson", max_iter=2).fit(data_of(), user_exposure=wrong)


def test_frames_and_ids_that_occur_twice_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"days": DAYS}, index=USERS)
    with pytest.raises(InputError, match="user_exposure is a data frame"):
        quick(element="poisson").fit(data_of(), user_exposure=frame)
    twice = pandas.concat([frame.days, frame.days[3:5] * 2])
    with pytest.raises(InputError, match="user_exposure: the user 'u3' occurs more than once"):
        quick(element="poisson").fit(data_of(), user_exposure=twice)


def test_bad_files_are_refused(tmp_path):
    path = tmp_path / "users.csv"
    path.write_text("id,days\nu0,3\nu0,4\n")
    with pytest.raises(InputError, match=r"'u0' occurs twice, with 3 and 4"):
        quick(element="poisson").fit(data_of(), user_exposure=f"{path}:days")
    path.write_text("id,days\nu0,many\nu1,4\n")
    with pytest.raises(InputError, match="'u0' has 'many', which is not a number"):
        quick(element="poisson").fit(data_of(), user_exposure=f"{path}:days")
    with pytest.raises(InputError, match=r"has no column 'weeks'\. Columns: id, days"):
        quick(element="poisson").fit(data_of(), user_exposure=f"{path}:weeks")


def test_exposures_of_pairs_are_checked(fitted):
    for wrong in (0, -1, np.nan, np.inf, "a"):
        with pytest.raises(InputError, match="exposure must be"):
            fitted.rate("u0", "i0", exposure=wrong)
    with pytest.raises(InputError, match=r"exposure of shape \(3,\) does not fit pairs"):
        fitted.rate("u0", ITEMS, exposure=[1, 2, 3])


def test_columns_of_an_anndata_are_exposures():
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    data = data_of()
    adata = anndata.AnnData(
        data.matrix.astype(np.float32),
        obs=pandas.DataFrame({"depth": DAYS}, index=USERS),
        var=pandas.DataFrame({"length": STOCK}, index=ITEMS),
    )
    model = quick(element="poisson", max_iter=3)
    model.fit(adata, user_exposure="depth", item_exposure="length")
    np.testing.assert_array_equal(model.model_.exposure.users, DAYS)
    np.testing.assert_array_equal(model.model_.exposure.items, STOCK)
    found = model.fold_in(adata[:3], user_exposure="depth")
    np.testing.assert_array_equal(found.exposure.users, DAYS[:3])
    with pytest.raises(InputError, match="neither a column of the data"):
        model.fit(adata, user_exposure="width")


def test_choices_and_consensus_pass_exposures_on():
    data, options = data_of(), {"user_exposure": DAYS, "item_exposure": STOCK}
    settings = {"element": "poisson", "max_iter": 4, "fit_options": options}
    found = evaluate.consensus(data, 2, n_fits=2, validation=0.2, **settings)
    np.testing.assert_array_equal(found.model.exposure.users, DAYS)
    np.testing.assert_array_equal(found.model.exposure.items, STOCK)
    path = evaluate.choose_components(data, [2], validation=0.2, n_fits=1, **settings)
    assert np.isfinite(path.candidates[0].log_likelihood.value)
    parts = evaluate.split(data, test=0.2, random_state=0)
    models = {"hcpf": HCPF(2, element="poisson", n_fits=1, max_iter=4, random_state=0)}
    evaluate.compare({**models, "popular": evaluate.Popularity()}, parts, fit_options=options)
    np.testing.assert_array_equal(models["hcpf"].model_.exposure.users, DAYS)


# -- recovery --------------------------------------------------------------------------------------


def test_known_exposures_tell_activity_from_depth():
    depth = np.exp(np.random.default_rng(1).normal(0.0, 1.0, 300))
    drawn = hcpf.simulate(
        300, 60, n_components=3, density=0.3, element=Poisson(1.0), user_exposure=depth,
        user_shape=2.0, user_activity_shape=50.0, random_state=0,
    )  # fmt: skip
    truth = np.log(drawn.user_factors @ drawn.item_factors.sum(axis=0))
    model = HCPF(3, element="poisson", n_fits=1, max_iter=40, random_state=0)
    found = {}
    for exposure in (None, depth):
        fit = model.fit(drawn.interactions, user_exposure=exposure).model_.posteriors[0]
        level = np.log(fit.users.mean @ fit.items.mean.sum(axis=0))
        found[exposure is None] = [np.corrcoef(level, x)[0, 1] for x in (truth, np.log(depth))]
    assert found[True][0] < 0.5 < 0.8 < found[True][1]
    assert found[False][0] > 0.8 > 0.3 > abs(found[False][1])


def test_shares_are_of_the_entries_expected_at_the_exposures():
    """By hand, from the rates of all pairs."""
    rng = np.random.default_rng(0)
    data = Interactions.from_matrix(draw_matrix(Poisson(2.0), shape=(12, 9)))
    days, sold = rng.uniform(1, 50, 12), rng.uniform(1, 30, 9)
    model = quick(3, element=Poisson(2.0)).fit(data, user_exposure=days, item_exposure=sold).model_
    s, v = (model.factors(axis).values for axis in ("users", "items"))
    parts = days[:, None, None] * sold[None, :, None] * s[:, None, :] * v[None, :, :]
    expected = model.rate(data.users[:, None], data.items)
    np.testing.assert_allclose(parts.sum(axis=2), expected, rtol=1e-5)
    by_user, by_item = parts.sum(axis=1), parts.sum(axis=0)
    users = by_user / by_user.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.factors("users", "share").values, users, rtol=1e-5)
    items = by_item / by_item.sum(axis=0)
    np.testing.assert_allclose(model.factors("items", "share").values, items, rtol=1e-5)
    found, order = summarize_components(model), np.argsort(-by_item.sum(axis=0))
    np.testing.assert_allclose(found.share, by_item.sum(axis=0)[order] / parts.sum(), rtol=1e-5)
    np.testing.assert_allclose(found.item_share, items.T[order], rtol=1e-5)
    np.testing.assert_allclose(
        found.lift, (items / by_item.sum(axis=1)[:, None] * parts.sum()).T[order], rtol=1e-5
    )
    np.testing.assert_array_equal(found.mean, v.T[order])
