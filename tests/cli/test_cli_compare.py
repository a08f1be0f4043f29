"""hcpf evaluate, compare and report."""

import pytest

from hcpf import evaluate
from hcpf.errors import EstimationError
from hcpf.evaluate import Evaluation, comparison
from hcpf.evaluate.candidates import candidate_models

QUICK = ("-K", 2, "--max-iter", 3, "--threads", 1)


def test_evaluate(run, run_json, sales):
    found = run_json("evaluate", sales, *QUICK, "-e", "gamma")
    assert 0.4 < found["scores"]["auc"] < 1
    assert found["ranking"]["n"] == 20
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
    assert "--test 2.0 must be above 0" in fails("evaluate", sales, "--test", 2)
    small = tmp_path / "small.csv"
    small.write_text("user,item,rating\na,x,1\n")
    assert "leaves none for the test" in fails("evaluate", small)


def test_evaluate_writes_what_a_report_reads(run, run_json, fails, sales, model, tmp_path):
    path, page = tmp_path / "evaluation.json", tmp_path / "report.html"
    found = run_json("evaluate", sales, *QUICK, "-e", "gamma", "-o", path)
    saved = Evaluation.load(path)
    assert saved.model.scores.as_dict() == found["scores"]
    assert [row.name for row in saved.baselines] == ["Popularity", "Binary HPF"]
    assert "--overwrite" in fails("evaluate", sales, "-o", path)
    run_json("report", model, "-o", page, "--evaluation", path)
    assert "Binary HPF" in page.read_text(encoding="utf-8")
    run_json("report", model, "-o", page, "--overwrite")
    assert "hcpf evaluate DATA --like MODEL -o evaluation.json" in page.read_text(encoding="utf-8")
    assert "is not an evaluation" in fails("report", model, "-o", page, "--overwrite", "-e", sales)


def test_all_elements_that_apply_are_candidates(rng):
    names = {one.name for one in candidate_models(rng.gamma(2.0, 20.0, 200))}
    shared = {"normal", "gamma", "inverse gaussian", "gamma hurdle", "inverse gaussian hurdle"}
    pooled = {f"{name} per {per}" for name in shared for per in ("user", "item", "user and item")}
    assert names == {*shared, *pooled, "binary HPF", "popularity"}


def test_compare_money(run, sales):
    options = [*map(str, QUICK), "--only", "gamma", "--vary-by", "shared", "--vary-by", "item"]
    result = run(["compare", str(sales), *options])
    header, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == ["model", "log_likelihood", "conditional", "auc", "ndcg", "rmse", "seconds"]
    likelihood = {row[0]: float(row[1]) for row in rows[:6]}
    assert likelihood.keys() == {
        "gamma", "gamma per item", "gamma hurdle", "gamma hurdle per item", "binary HPF",
        "popularity",
    }  # fmt: skip
    assert list(likelihood.values()) == sorted(likelihood.values(), reverse=True)
    why, _, command = result.stderr.splitlines()[-3:]
    assert why.startswith("Recommended: ")
    assert command.startswith("hcpf fit ")


def test_compare_says_what_partial_pooling_gains(run_json, varied):
    found = run_json("compare", varied, "-K", 2, "--threads", 1, "--quick")
    pooled = {one["model"] for one in found["models"] if one["vary_by"]}
    assert pooled == {"gamma", "inverse_gaussian"}  # the normal is far behind
    verdict = found["verdict"]
    winner = next(one for one in found["models"] if one["name"] == verdict["winner"])
    assert winner["vary_by"] in ("item", "both")
    form = winner["model"], None, winner["hurdle"]
    shared = next(
        one for one in found["models"] if (one["model"], one["vary_by"], one["hurdle"]) == form
    )
    gain = winner["log_likelihood"] - shared["log_likelihood"]
    assert verdict["pooling_gain"] == pytest.approx(gain)
    assert gain > 2 * verdict["pooling_gain_error"]
    hurdle = " --hurdle" if winner["hurdle"] else ""
    options = f"--element {winner['model']}{hurdle} --vary-by {winner['vary_by']}"
    assert options in verdict["why"]
    assert all((one["passes"] or 0) <= 10 for one in found["models"])


def test_compare_counts_uses_probabilities(run_json, counts):
    options = ["--only", "poisson", "--only", "gamma", "--quick"]
    found = run_json("compare", counts, "-K", 2, "--threads", 1, *options)
    names = [one["name"] for one in found["models"] if one["vary_by"] is None]
    elements = ["gamma", "poisson", "gamma hurdle", "poisson hurdle"]
    assert names == [*elements, "HPF", "binary HPF", "popularity"]
    assert found["likelihood_of_values"] == "probability"
    assert all(one["conditional"] < 0 for one in found["models"])


def test_compare_only_one_value(run_json, tmp_path):
    path = tmp_path / "ones.csv"
    pairs = [(u, i) for u in range(20) for i in range(10) if (u * i) % 3 == 1]
    path.write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in pairs))
    found = run_json("compare", path, *QUICK)
    assert [one["name"] for one in found["models"]] == ["degenerate hurdle", "HPF", "popularity"]
    path.write_text("user,item,value\n" + "".join(f"{u},{i},5\n" for u, i in pairs))
    found = run_json("compare", path, *QUICK)
    assert [one["name"] for one in found["models"]] == ["HPF", "popularity"]


def test_a_model_that_fails_is_named_and_the_others_are_shown(run, sales, monkeypatch):
    real = comparison.fit_to

    def fit_to(model, *rest, **options):
        if getattr(model, "vary_by", None) == "user":
            raise EstimationError("no maximum")
        return real(model, *rest, **options)

    monkeypatch.setattr(comparison, "fit_to", fit_to)
    options = ["--only", "gamma", "--vary-by", "shared", "--vary-by", "user"]
    result = run(["compare", str(sales), *map(str, QUICK), *options])
    assert result.exit_code == 2
    assert "failed: gamma per user: no maximum" in result.stderr
    assert "popularity" in result.stdout


def test_ctrl_c_shows_what_is_done(run, sales, monkeypatch):
    real = comparison.fit_to

    def fit_to(model, *rest, **options):
        if isinstance(model, evaluate.Popularity):
            raise KeyboardInterrupt
        return real(model, *rest, **options)

    monkeypatch.setattr(comparison, "fit_to", fit_to)
    options = ["--only", "gamma", "--vary-by", "shared"]
    result = run(["compare", str(sales), *map(str, QUICK), *options])
    assert result.exit_code == 130
    assert "3 of 4 models" in result.stderr
    assert "binary HPF" in result.stdout


def test_compare_refuses(fails, sales):
    assert "requires " in fails("compare", sales, "--only", "poisson")
    assert "Unknown element" in fails("compare", sales, "--only", "nothing")
