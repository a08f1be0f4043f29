"""The figures for notebooks show the numbers they should."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from hcpf import plots
from hcpf.errors import InputError, MissingDependencyError
from hcpf.evaluate import Candidate, ComponentPath, Score, calibration, split
from report.reporting import fitted


def test_calibration(data):
    parts = split(data, random_state=0)
    model = fitted(parts.train, element="gamma")
    found = calibration(model, parts)
    ax = plots.calibration({"mine": found, "other": found})
    curve = ax.containers[0].lines[0]
    np.testing.assert_array_equal(curve.get_xdata(), found.reliability.predicted)
    np.testing.assert_array_equal(curve.get_ydata(), found.reliability.observed)
    observed = calibration(fitted(data, train_on="observed", element="gamma"), parts)
    with pytest.raises(InputError):
        plots.calibration(observed)


def test_response_fit(model, data):
    first, second, third = plots.response_fit(model)
    assert sum(bar.get_height() for bar in first.patches) == pytest.approx(1.0, abs=0.05)
    levels = second.lines[1].get_ydata()
    assert data.values.min() <= levels.min() < levels.max() <= data.values.max()
    assert np.all(np.diff(third.lines[1].get_ydata()) <= 0)
    parts = split(data, random_state=0)
    plots.response_fit(fitted(parts.train, element="gamma"), parts)[0].figure.savefig(
        "/dev/null", format="svg"
    )


def test_convergence(model, tmp_path):
    ax = plots.convergence(model)
    assert list(ax.lines[0].get_ydata()) == [check.elbo for check in model.history_]
    model.save(tmp_path / "model")
    given = Figure().subplots()
    assert plots.convergence(tmp_path / "model", ax=given) is given


def test_activity(model, data):
    users, items = plots.activity(model)
    degree = np.diff(data.matrix.indptr)
    at, share = users.lines[1].get_data()
    assert share[0] == np.mean(degree >= at[0])
    assert items.get_ylabel() == "share of items"
    with pytest.raises(InputError):
        plots.activity(fitted(data, train_on="observed", element="gamma"))


def test_factors(model):
    share, overlap = plots.factors(model, names={int(item): "$" for item in model.items_})
    assert sum(bar.get_width() for bar in share.patches) == pytest.approx(1.0)
    image = overlap.images[0].get_array()
    np.testing.assert_allclose(np.diag(image), 1.0)
    share.figure.savefig("/dev/null", format="svg")
    with pytest.raises(InputError, match="2 are needed"):
        plots.factors(model, axes=[share])


def test_component_path(monkeypatch):
    tried = ((10, -5.0, 0.1), (20, -4.0, 0.1), (50, -3.9, 0.2))
    path = ComponentPath([Candidate(k, Score(value, error), 1.0) for k, value, error in tried])
    axes = plots.component_path(path)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10", "20", "50"]
    assert axes.get_legend().get_texts()[0].get_text().endswith("20")
    assert plots.component_path(path, axes) is axes
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match="plots"):
        plots.component_path(path)


def test_matplotlib_is_loaded_late():
    code = "import sys, hcpf.plots, hcpf.report; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
