"""The charts for notebooks show the numbers they should."""

import base64
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from hcpf import plots
from hcpf.errors import InputError
from hcpf.evaluate import Candidate, ComponentPath, Score, calibration, split
from hcpf.evaluate.agreement import Consensus, ConsensusCandidate, Stability
from report.reporting import fitted


def series(chart, name):
    """Return x and y of one series."""
    table = chart.to_table()
    chosen = table.series == name
    return table.x[chosen], table.y[chosen]


def test_calibration(data):
    parts = split(data, random_state=0)
    found = calibration(fitted(parts.train, element="gamma"), parts)
    charts = plots.calibration({"mine": found, "other": found})
    x, y = series(charts[0], "mine")
    seen = found.reliability.observed > 0
    np.testing.assert_array_equal(x, found.reliability.predicted[seen])
    np.testing.assert_array_equal(y, found.reliability.observed[seen])
    np.testing.assert_allclose(series(charts[2], "held-out values")[1].sum(), 1.0)
    observed = calibration(fitted(data, train_on="observed", element="gamma"), parts)
    assert len(plots.calibration(observed)) == 2
    with pytest.raises(InputError):
        plots.calibration({})


def test_value_fit(model, data):
    first, second, third = plots.value_fit(model)
    assert series(first, "observed")[1].sum() == pytest.approx(1.0, abs=0.05)
    levels = series(second, "quantile")[1]
    assert data.values.min() <= levels.min() < levels.max() <= data.values.max()
    assert np.all(np.diff(series(third, "observed")[1]) <= 0)
    parts = split(data, random_state=0)
    assert len(plots.value_fit(fitted(parts.train, element="gamma"), parts)) == 3


def test_convergence(model, tmp_path):
    elbo = plots.convergence(model)[0]
    assert list(series(elbo, "ELBO")[1]) == [check.elbo for check in model.history_]
    model.save(tmp_path / "model")
    assert plots.convergence(tmp_path / "model")[0].to_svg() == elbo.to_svg()


def test_activity(model, data):
    users, items = plots.activity(model)
    at, share = series(users, "observed")
    assert share[0] == np.mean(np.diff(data.matrix.indptr) >= at[0])
    assert items.labels[1] == "share of items"
    with pytest.raises(InputError):
        plots.activity(fitted(data, train_on="observed", element="gamma"))


def test_components(model):
    share, overlap = plots.components(model, names={int(item): "<i>" for item in model.items_})
    assert share.to_table().y.sum() == pytest.approx(1.0)
    assert len(overlap.to_table()) == 3
    assert "<i>" not in share.to_svg()


def test_component_path():
    tried = ((10, -5.0, 0.1), (20, -4.0, 0.1), (50, -3.9, np.nan))
    path = ComponentPath([
        Candidate(k, Score(value, error), 1.0, Score(-3.9 - value, 0.2))
        for k, value, error in tried
    ])  # fmt: skip
    chart = plots.component_path(path)
    np.testing.assert_array_equal(series(chart, "log-likelihood")[0], [10, 20, 50])
    text = chart.to_svg()
    assert f"best by one standard error: {path.best}" in text
    assert [f">{k}</text>" in text for k in (10, 20, 50)] == [True] * 3


def test_consensus_omits_what_is_not_a_number():
    # K = 1 has no silhouette, and clusters that overlap have a negative one.
    silhouettes = {1: np.nan, 2: 0.9, 4: np.nan, 8: -0.5}
    candidates = [
        ConsensusCandidate(k, Score(-5.0, 0.1), 1.0, Score(0.0, 0.0), Stability(s, 0.5, 1.0), None)
        for k, s in silhouettes.items()
    ]
    chart = plots.consensus(Consensus(candidates, None, None, None, {}))[0]
    x, y = series(chart, "silhouette")
    np.testing.assert_array_equal([x, y], [[2, 8], [0.9, -0.5]])
    np.testing.assert_array_equal(series(chart, "matched cosine")[1], 0.5)
    text = chart.to_svg()
    assert "nan" not in text
    heights = [float(cy) for cy in re.findall(r'<circle[^>]* cy="([-\d.]+)"', text)]
    assert len(set(heights)) >= 3  # 0.9, 0.5 and -0.5 are at different heights
    none = plots.consensus(Consensus(candidates[:1], None, None, None, {}))[0]
    assert not len(series(none, "silhouette")[0])
    assert 'd="M"' not in none.to_svg()


def test_charts_stand_alone(model, tmp_path):
    charts = plots.convergence(model)
    charts[0].save(tmp_path / "elbo.svg")
    text = (tmp_path / "elbo.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert charts[0].title in text
    assert "var(" not in text  # few programs but browsers know variables
    assert "prefers-color-scheme:dark" in text
    assert text == charts[0]._repr_svg_()
    images = re.findall(r"base64,([^\"]+)", charts._repr_html_())
    assert [base64.b64decode(image).decode() for image in images] == [c.to_svg() for c in charts]
    with pytest.raises(InputError, match="overwrite=True"):
        charts[0].save(tmp_path / "elbo.svg")
    with pytest.raises(InputError, match=r"ends in \.svg"):
        charts[0].save(tmp_path / "elbo.png")
