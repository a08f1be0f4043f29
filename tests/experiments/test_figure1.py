"""Figure 1: the grids are distributions with the right limits, and the drawing is legible."""

import struct
import sys
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from hcpf.elements import Degenerate, Gamma, Normal, ZeroTruncatedPoisson
from hcpf.errors import InputError, MissingDependencyError
from hcpf.experiments import figure1

ELEMENTS = [Degenerate(), ZeroTruncatedPoisson(rate=7), Gamma(shape=5, rate=0.5)]


@pytest.fixture(scope="module")
def figure():
    pytest.importorskip("matplotlib")
    return figure1.draw(columns=24)


def png_size(content):
    return struct.unpack(">II", content[16:24])


@pytest.mark.parametrize("element", ELEMENTS, ids=repr)
def test_every_column_is_a_distribution(element):
    grid = figure1.density_grid(element, figure1.sparsity_axis(9))
    assert grid.density.shape == (grid.values.size, 9)
    assert np.all(grid.density >= 0)
    np.testing.assert_allclose(grid.density.sum(axis=0) * grid.step, 1.0, atol=1e-6)


@pytest.mark.parametrize("element", ELEMENTS, ids=repr)
def test_every_column_has_the_papers_mean(element):
    grid = figure1.density_grid(element, figure1.sparsity_axis(9))
    rate = -np.log1p(-grid.observed_share)
    mean = grid.values @ grid.density * grid.step
    np.testing.assert_allclose(mean, rate / grid.observed_share * element.mean, rtol=1e-5)


def test_degenerate_columns_are_truncated_poissons():
    grid = figure1.density_grid(Degenerate(), [0.9, 0.5, 0.1])
    rate = -np.log1p(-grid.observed_share)
    expected = stats.poisson.pmf(grid.values[:, None], rate) / grid.observed_share
    np.testing.assert_allclose(grid.density, expected, rtol=1e-9, atol=1e-15)


def test_degenerate_panel_collapses_to_one():
    grid = figure1.density_grid(Degenerate(), [0.98, 0.1, 0.01, 1e-6])
    assert grid.values[0] == 1
    assert grid.density[0, 0] < 0.1
    assert grid.density[0, 1] > 0.94
    assert grid.density[0, 3] == pytest.approx(1.0, abs=1e-6)
    assert np.all(np.diff(grid.density[0]) > 0)


@pytest.mark.parametrize("element", ELEMENTS[1:], ids=repr)
def test_other_panels_converge_to_their_element(element):
    grid = figure1.density_grid(element, [0.5, 0.1, 0.01, 1e-6])
    alone = np.exp(element.log_density(grid.values))[:, None]
    distance = 0.5 * np.abs(grid.density - alone).sum(axis=0) * grid.step
    assert np.all(np.diff(distance) < 0)
    # Pr(N > 1 | N >= 1) bounds the distance in total variation.
    rate = -np.log1p(-grid.observed_share)
    bound = 1.0 - rate * np.exp(-rate) / grid.observed_share
    assert np.all(distance <= bound + 1e-6)
    assert distance[-1] < 1e-6


def test_the_sparsest_column_keeps_its_digits():
    grid = figure1.density_grid(Degenerate(), [0.5, 1e-12])
    assert grid.density[1, 1] == pytest.approx(0.5e-12, rel=1e-9)
    assert grid.sparsity[1] == 1.0 - 1e-12


def test_a_single_value_is_a_grid_too():
    grid = figure1.density_grid(Degenerate(), [1e-12])
    assert grid.values.tolist() == [1.0]
    assert grid.density.sum() * grid.step == pytest.approx(1.0)


def test_sparsity_axis_runs_from_dense_to_sparse_evenly_in_the_log():
    share = figure1.sparsity_axis(50)
    np.testing.assert_allclose(np.diff(np.log(share)), np.diff(np.log(share))[0])
    assert share[0] > 0.9
    assert share[-1] <= 1e-6


@pytest.mark.parametrize("share", [[0.0], [1.0], [-0.1], [np.nan], [[0.5]]])
def test_shares_that_cannot_be_are_refused(share):
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        figure1.density_grid(Degenerate(), share)


def test_unusable_requests_say_why():
    with pytest.raises(InputError, match="positive values"):
        figure1.density_grid(Normal(0, 1), [0.5])
    with pytest.raises(InputError, match="2 or more columns"):
        figure1.sparsity_axis(1)
    with pytest.raises(InputError, match="png, pdf, svg"):
        figure1.render(None, "bmp")  # pyright: ignore[reportArgumentType]


def test_panels_are_marked_with_the_papers_data_sets():
    a, b, c = figure1.panels()
    assert len(a.marks) == len(b.marks) == 9
    assert set(c.marks) == {"donation", "dchoose", "geuvadis"}
    assert a.marks["netflix"] == pytest.approx(1 - 0.988224, abs=1e-6)
    assert c.marks["geuvadis"] == pytest.approx(1 - 0.462122, abs=1e-6)
    axis = figure1.sparsity_axis()
    assert all(axis[-1] < share < axis[0] for p in (a, c) for share in p.marks.values())


def test_finding_tells_collapse_from_shape():
    assert figure1.finding(Degenerate(), 1e-4).endswith("the value is 1 with probability 1.000")
    assert "mean 10.05" in figure1.finding(Gamma(shape=5, rate=0.5))


@pytest.mark.parametrize("seed", range(20))
def test_spread_labels_keep_order_and_distance_and_move_least(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(0, 4, size=8)
    placed = figure1.spread(wanted, gap=0.4)
    assert np.array_equal(np.argsort(wanted), np.argsort(placed))
    assert np.all(np.diff(np.sort(placed)) >= 0.4 - 1e-12)
    # No feasible placement nearby is closer to what was wanted.
    best = np.sum((placed - wanted) ** 2)
    for _ in range(200):
        other = placed + rng.normal(0, 0.05, size=8)
        if np.all(np.diff(other[np.argsort(wanted)]) >= 0.4):
            assert np.sum((other - wanted) ** 2) >= best - 1e-12


def test_spread_leaves_labels_with_room_alone():
    np.testing.assert_allclose(figure1.spread([3.0, 1.0, 2.0], gap=0.5), [3.0, 1.0, 2.0])
    assert figure1.spread([], gap=1.0).size == 0


def test_png_has_the_declared_size(figure):
    content = figure1.render(figure)
    assert content.startswith(b"\x89PNG")
    width, height = (round(inches * figure1.DPI) for inches in figure1.SIZE_INCHES)
    assert png_size(content) == (width, height)
    assert len(content) > 20_000


def test_vector_formats(figure):
    assert figure1.render(figure, "pdf").startswith(b"%PDF")
    assert b"<svg" in figure1.render(figure, "svg")[:2000]


def test_three_panels_with_a_red_line_for_each_data_set(figure):
    panels = figure.axes[:3]
    for axes, expected in zip(panels, (9, 9, 3), strict=True):
        shares = {round(float(line.get_xdata()[0]), 12) for line in axes.lines[::2]}
        assert len(shares) == expected
        assert axes.get_xscale() == "log"
        left, right = axes.get_xlim()
        assert left > right  # dense on the left


def test_nothing_written_overlaps_or_leaves_the_page(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    page = figure.bbox
    texts = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
    # Tick labels of hidden axes are never drawn.
    drawn = [t for t in texts if t.axes is None or t.axes.axison or t in t.axes.texts]
    boxes = {t: t.get_window_extent() for t in drawn}
    for text, box in boxes.items():
        assert box.x0 >= page.x0, text
        assert box.x1 <= page.x1, text
        assert box.y0 >= page.y0, text
        assert box.y1 <= page.y1, text
    for (one, box), (other, box2) in combinations(boxes.items(), 2):
        assert not box.overlaps(box2), (one.get_text(), other.get_text())


def test_darker_is_denser(figure):
    mesh = figure.axes[1].collections[0]
    low, high = (sum(mesh.cmap(mesh.norm(d))[:3]) for d in (0.0, 0.14))
    assert high < 0.5 * low


def test_own_matplotlib_settings_do_not_change_the_figure(figure):
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "figure.dpi": 20}):
        other = figure1.draw(columns=24)
        before = mpl.rcParams["font.size"]
    assert before == 30
    assert figure1.render(other) == figure1.render(figure)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.\[paper\]'"):
        figure1.draw()
