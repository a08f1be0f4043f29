"""hcpf evaluate and compare."""

import numpy as np
import pytest

from hcpf import Interactions, evaluate
from hcpf.cli import compare, contest
from hcpf.cli.contest import ahead, element_of, pair_terms
from hcpf.elements import Gamma
from hcpf.errors import EstimationError
from hcpf.estimator import HCPF

QUICK = ("-K", 2, "--max-iter", 3, "--threads", 1)


@pytest.fixture
def parts(sales):
    data = Interactions.read(sales, user="customer", item="product", response="spend")
    return evaluate.split(data, random_state=0)


def test_evaluate(run, run_json, sales):
    found = run_json("evaluate", sales, *QUICK, "-e", "gamma")
    assert 0.4 < found["scores"]["auc"] < 1
    assert found["ranking"]["k"] == 20
    assert 0 <= found["calibration"]["coverage_90"] <= 1
    text = run(["evaluate", str(sales), *map(str, QUICK), "-e", "gamma"]).stdout
    for word in ("Held-out pairs", "NDCG@20", "90% intervals", "log-likelihood"):
        assert word in text


def test_evaluate_observed_entries_only(run, run_json, sales):
    found = run_json("evaluate", sales, *QUICK, "-e", "gamma", "--train-on", "observed")
    assert found["ranking"] is None
    assert found["scores"]["auc"] is None
    options = [*map(str, QUICK), "-e", "gamma", "--train-on", "observed"]
    assert "does not apply" in run(["evaluate", str(sales), *options]).stdout


def test_evaluate_refuses(fails, sales, tmp_path):
    assert "test=2.0 must be above 0" in fails("evaluate", sales, "--test", 2)
    small = tmp_path / "small.csv"
    small.write_text("user,item,rating\na,x,1\n")
    assert "too few" in fails("evaluate", small)


def test_compare_money(run, run_json, sales):
    found = run_json("compare", sales, *QUICK)
    names = {one["name"] for one in found["models"]}
    elements = ("normal", "gamma", "inverse_gaussian")
    varying = {f"{name} per {per}" for name in elements for per in ("user", "item", "both")}
    once = {f"{name} once" for name in ("gamma", "inverse_gaussian")}  # the likeliest two
    once |= {f"{name} per {per}" for name in once for per in ("user", "item", "both")}
    assert names == {*elements, *varying, *once, "binary HPF", "popularity"}
    best = max(found["models"], key=lambda one: one["log_likelihood"])
    assert found["verdict"]["winner"] == best["name"]
    assert found["likelihood_of_values"] == "density"
    options = [*map(str, QUICK), "--only", "gamma", "--per", "shared", "--per", "item"]
    result = run(["compare", str(sales), *options])
    header, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == [
        "model", "per", "log_likelihood", "conditional", "auc", "ndcg", "rmse", "seconds",
    ]  # fmt: skip
    assert {(row[0], row[1]) for row in rows[:6]} == {
        ("gamma", ""), ("gamma", "item"), ("gamma once", ""), ("gamma once", "item"),
        ("binary HPF", ""), ("popularity", ""),
    }  # fmt: skip
    assert result.stderr.splitlines()[-1].startswith("Take ")


def test_compare_says_what_varying_gains(run_json, varied):
    options = ["-K", 2, "--threads", 1, "--quick"]
    found = run_json("compare", varied, *options)
    varying = {element_of(one["model"]) for one in found["models"] if one["per"]}
    assert varying == {"gamma", "inverse_gaussian"}  # the normal is far behind
    verdict = found["verdict"]
    winner = next(one for one in found["models"] if one["name"] == verdict["winner"])
    assert winner["per"] in ("item", "both")
    shared = next(
        one for one in found["models"] if one["model"] == winner["model"] and not one["per"]
    )
    gain = winner["log_likelihood"] - shared["log_likelihood"]
    assert verdict["gain_of_varying"] == pytest.approx(gain)
    assert gain > 2 * verdict["gain_error"]
    assert f"--element {winner['model']} --per {winner['per']}" in verdict["why"]
    assert all((one["passes"] or 0) <= 10 for one in found["models"])


def test_compare_counts_uses_probabilities(run_json, counts):
    options = ["--only", "poisson", "--only", "gamma", "--quick"]
    found = run_json("compare", counts, "-K", 2, "--threads", 1, *options)
    names = [one["name"] for one in found["models"] if one["per"] is None]
    sums, once = ["gamma", "poisson"], ["gamma once", "poisson once"]
    assert names == [*sums, *once, "HPF", "binary HPF", "popularity"]
    assert found["likelihood_of_values"] == "probability"
    assert all(one["conditional"] < 0 for one in found["models"])
    assert all((one["passes"] or 0) <= 10 for one in found["models"])


def test_compare_only_one_value(run_json, tmp_path):
    path = tmp_path / "ones.csv"
    pairs = [(u, i) for u in range(20) for i in range(10) if (u * i) % 3 == 1]
    path.write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in pairs))
    found = run_json("compare", path, *QUICK)
    assert [one["name"] for one in found["models"]] == ["degenerate once", "HPF", "popularity"]
    path.write_text("user,item,value\n" + "".join(f"{u},{i},5\n" for u, i in pairs))
    found = run_json("compare", path, *QUICK)
    assert [one["name"] for one in found["models"]] == ["HPF", "popularity"]


def ids(parts):
    return parts.train.users[parts.test.users], parts.train.items[parts.test.items]


def test_terms_add_up_to_the_scores_and_masses_to_one(parts):
    model = HCPF(2, element="gamma", max_iter=2, random_state=0, n_threads=1)
    model.fit(parts.train, exclude=parts.exclude)
    terms, scored = pair_terms(model, parts, whole=False), evaluate.scores(model, parts)
    assert terms.conditional.mean() == pytest.approx(scored.conditional_nonmissing.value)
    assert terms.observed.mean() == pytest.approx(scored.nonmissing.value)
    assert contest._total(terms, parts) == pytest.approx(scored.log_likelihood.value)
    assert np.sqrt(np.mean(terms.residual**2)) == pytest.approx(scored.rmse.value)
    np.testing.assert_allclose(terms.rate, model.rate(*ids(parts)))
    masses = pair_terms(model, parts, whole=True)
    assert np.all(masses.conditional <= 0)
    assert ahead(terms, terms, parts) == (0.0, 0.0)
    lead, error = ahead(masses, terms, parts)
    assert np.isfinite(lead)
    assert error > 0


def test_a_model_that_fails_is_named_and_the_others_are_shown(run, sales, monkeypatch):
    real = contest.fit_to

    def fit_to(model, parts):
        if getattr(model, "element", "") == Gamma(per="user"):
            raise EstimationError("no maximum")
        return real(model, parts)

    monkeypatch.setattr(contest, "fit_to", fit_to)
    result = run(["compare", str(sales), *map(str, QUICK), "--only", "gamma"])
    assert result.exit_code == 2
    assert "failed: gamma per user: no maximum" in result.stderr
    assert "popularity" in result.stdout


def test_ctrl_c_shows_what_is_done(run, sales, monkeypatch):
    real = compare.enter

    def enter(candidate, *rest):
        if candidate.name == "popularity":
            raise KeyboardInterrupt
        return real(candidate, *rest)

    monkeypatch.setattr(compare, "enter", enter)
    result = run(["compare", str(sales), *map(str, QUICK), "--only", "gamma"])
    assert result.exit_code == 130
    assert "9 of 10 models" in result.stderr
    assert "binary HPF" in result.stdout


def test_compare_refuses(fails, sales):
    assert "it takes whole numbers" in fails("compare", sales, "--only", "poisson")
    assert "no element called" in fails("compare", sales, "--only", "nothing")
