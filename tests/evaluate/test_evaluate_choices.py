"""Comparisons, the choice of K, its figure, and real data."""

import sys

import numpy as np
import pytest

from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Gamma
from hcpf.errors import InputError, MissingDependencyError
from hcpf.evaluate import (
    BinaryHPF,
    Candidate,
    ComponentPath,
    GlobalElement,
    PerItemElement,
    Popularity,
    Score,
    calibration,
    choose_components,
    compare,
    leave_out,
    plot,
    ranking,
    scores,
    split,
)

QUICK = {"max_iter": 8, "n_threads": 1, "progress": False}


@pytest.fixture(scope="module")
def parts():
    data = simulate(
        200, 120, density=0.1, n_components=3, element=Gamma(2, 0.5), random_state=0
    ).interactions
    return split(data, test=0.2, validation=0.1, random_state=0)


@pytest.fixture(scope="module")
def table(parts):
    fitted = HCPF(3, random_state=0, **QUICK).fit(parts.train, exclude=parts.exclude)
    models = {"hcpf": fitted, "popular": Popularity(), "one": GlobalElement()}
    return compare(models, parts, k=10)


def test_rows_are_what_each_measure_gives(parts, table):
    again = Popularity().fit(parts.train, exclude=parts.exclude)
    assert table["popular"].scores.as_dict() == scores(again, parts).as_dict()
    assert table["popular"].ranking.as_dict() == ranking(again, parts, 10).as_dict()
    assert table["popular"].seconds > 0
    assert table["hcpf"].seconds is None
    assert table["one"].ranking is None
    assert [row.model for row in table.rows] == ["hcpf", "popular", "one"]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_tables_become_frames(table, backend):
    frame = table.to_frame(backend)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names[:3] == ["model", "log_likelihood", "log_likelihood_error"]
    assert names[-1] == "seconds"
    assert {"ndcg", "recall", "hit_rate_error"} < set(names)
    assert len(frame) == 3


def test_tables_print_without_errors_and_none_as_a_dash(table):
    lines = repr(table).splitlines()
    assert len(lines) == 4
    assert "_error" not in lines[0]
    assert lines[3].split()[:3] == ["one", "-", "-"]


def test_bad_comparisons_are_refused(parts, table, monkeypatch):
    with pytest.raises(InputError, match="at least one model"):
        compare({}, parts)
    with pytest.raises(InputError, match="backend"):
        table.to_frame("excel")

    def absent(*_, **__):
        raise ModuleNotFoundError("No module named 'polars'")

    monkeypatch.setattr("narwhals.from_dict", absent)
    with pytest.raises(MissingDependencyError, match="polars"):
        table.to_frame("polars")


def path_of(*tried):
    return ComponentPath([Candidate(k, Score(value, error), 1.0) for k, value, error in tried])


@pytest.mark.parametrize(
    ("tried", "likeliest", "best"),
    [
        (((10, -5.0, 0.1), (20, -4.0, 0.1), (50, -3.9, 0.2)), 50, 20),
        (((10, -5.0, 0.1), (20, -4.0, 0.1), (50, -3.9, 0.05)), 50, 50),
        (((10, -4.0, 2.0), (20, -3.0, 0.1), (50, -3.5, 0.1)), 20, 20),  # its own error counts
        (((10, -3.0, 0.1), (20, -3.0, 0.1)), 10, 10),
        (((10, -3.0, float("nan")),), 10, 10),
    ],
)
def test_the_one_standard_error_rule(tried, likeliest, best):
    path = path_of(*tried)
    assert (path.likeliest, path.best) == (likeliest, best)


def test_the_path_is_that_of_fits_made_by_hand(parts):
    path = choose_components(parts, (3, 1, 3), random_state=0, **QUICK)
    assert [c.n_components for c in path.candidates] == [1, 3]
    model = HCPF(3, random_state=0, **QUICK).fit(parts.train, exclude=parts.exclude)
    wanted = scores(model, parts, on=parts.validation).log_likelihood
    assert path.candidates[1].log_likelihood == wanted
    assert path.likeliest == 3
    assert list(path.to_frame().columns) == [
        "n_components", "log_likelihood", "log_likelihood_error", "seconds",
    ]  # fmt: skip
    assert repr(path).endswith(f"best {path.best}, likeliest 3")


def test_data_are_split_where_no_split_is_given(parts):
    path = choose_components(parts.train, (2,), validation=0.2, element="gamma", **QUICK)
    assert path.best == 2
    observed = choose_components(parts.train, (2,), train_on="observed", **QUICK)
    assert np.isfinite(observed.candidates[0].log_likelihood.value)


def test_bad_choices_are_refused(parts):
    with pytest.raises(InputError, match="at least one number"):
        choose_components(parts, ())
    with pytest.raises(InputError, match="candidates"):
        choose_components(parts, (0,))
    with pytest.raises(InputError, match="no validation pairs"):
        choose_components(leave_out(parts.train, random_state=0))


def test_the_figure_shows_the_path(monkeypatch):
    path = path_of((10, -5.0, 0.1), (20, -4.0, 0.1), (50, -3.9, 0.2))
    axes = plot(path)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10", "20", "50"]
    assert axes.get_legend().get_texts()[0].get_text().endswith("20")
    assert plot(path, axes) is axes
    axes.figure.canvas.draw()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match="plots"):
        plot(path)


def test_real_ratings(shared_data):
    """MovieLens 100k: the model beats popularity at ranking and likelihood, items matter."""
    path = shared_data / "ml100k" / "ml100k.parquet"
    if not path.exists():
        pytest.skip("ml100k is not there")
    data = Interactions.read(path, user="user", item="item", response="value", progress=False)
    parts = split(data, random_state=0)
    models = {
        "hcpf": HCPF(20, random_state=0, progress=False),
        "binary": BinaryHPF(20, random_state=0, progress=False),
        "popular": Popularity(),
        "one": GlobalElement(),
        "items": PerItemElement(),
    }
    table = compare(models, parts)
    auc = {name: table[name].scores.auc.value for name in ("hcpf", "binary", "popular")}
    assert auc["hcpf"] > 0.92
    assert auc["popular"] < auc["hcpf"]
    assert table["hcpf"].ranking.ndcg.value > 1.5 * table["popular"].ranking.ndcg.value
    likelihood = {name: table[name].scores.log_likelihood.value for name in auc}
    assert likelihood["hcpf"] > likelihood["popular"]
    assert table["items"].scores.rmse.value < table["one"].scores.rmse.value
    found = calibration(models["popular"], parts)
    assert found.expected_error < 0.03
