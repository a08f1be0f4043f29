"""Axes and charts: ticks inside their ranges, marks where their numbers are."""

import re

import numpy as np
import pytest

from hcpf.report.drawing import WIDTH, Axis, Chart
from hcpf.report.lists import BarList, DifferenceList, HeatMap


@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_few_and_inside(rng, log):
    for _ in range(300):
        low = 10.0 ** rng.uniform(-8, 8)
        high = low * (1.0 + 10.0 ** rng.uniform(-3, 6))
        axis = Axis.over("value", [low, high], log=log)
        ticks = axis.ticks()
        assert 2 <= len(ticks) <= 8
        assert ticks == sorted(set(ticks))
        tolerance = 1e-6 * (axis.high - axis.low)
        assert axis.low - tolerance <= ticks[0]
        assert ticks[-1] <= axis.high + tolerance


@pytest.mark.parametrize("values", [[], [0.0], [3.0], [np.nan, 2.0], [-1.0, -1.0], [np.inf]])
@pytest.mark.parametrize("log", [False, True])
def test_an_axis_of_anything(values, log):
    axis = Axis.over("value", values, log=log)
    assert axis.low < axis.high
    assert np.all(np.isfinite(axis.place([axis.low, axis.high])))


def test_marks_are_where_their_numbers_are():
    chart = Chart("t", "s", Axis("x", 0.0, 10.0), Axis("y", 1.0, 1000.0, log=True))
    chart.dots("p", [0.0, 5.0, 10.0], [1.0, 10.0, 1000.0], "model")
    text = str(chart.svg())
    text = text[text.index("<g") :]  # without the legend
    xs = [float(x) for x in re.findall(r'cx="([\d.]+)"', text)]
    ys = [float(y) for y in re.findall(r'cy="([\d.]+)"', text)]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert ys[0] - ys[1] == pytest.approx((ys[1] - ys[2]) / 2, abs=0.2)
    assert 0 < xs[0] < xs[2] < WIDTH
    assert "p: 10 at 5" in text


def test_text_in_charts_is_escaped():
    chart = Chart("<b>", '"', Axis("<i>", 0.0, 1.0), Axis("&", 0.0, 1.0))
    chart.line("<script>", [0.0, 1.0], [0.0, 1.0], "model")
    heat_map = HeatMap("<b>", "<u>", ["<i>", "<u>"], np.ones((2, 2)))
    drawings = [chart, heat_map, BarList("<b>", "<u>", ["<i>"], [0.5])]
    text = "".join(drawing.to_svg() + drawing.svg() for drawing in drawings)
    assert re.search(r"<(b|i|u|script)>", text) is None


def test_labels_of_a_large_heat_map_keep_their_distance():
    import numpy as np

    def labels(size):
        names = [str(j + 1) for j in range(size)]
        chart = HeatMap("overlap", "how", names, np.zeros((size, size)))
        return [name for name in names if f">{name}</text>" in chart.svg()]

    assert labels(6) == ["1", "2", "3", "4", "5", "6"]
    assert labels(24) == [str(j) for j in range(1, 25, 2)]


def test_differences_keep_their_sign_and_order_on_the_scale():
    found = {"a": (-3.0, 0.5), "b": (0.0, 0.1), "c": (0.02, 0.3), "d": (250.0, 5.0)}
    chart = DifferenceList("gap", "how", list(found), {"one": found, "two": {"a": (1.0, 0.2)}}, 0.1)
    assert [point.y for point in chart.points()] == [-3.0, 0.0, 0.02, 250.0, 1.0]
    svg = chart.to_svg()
    places = [float(x) for x in re.findall(r'<circle class="dot model" cx="([\d.]+)"', svg)]
    dots = places[1:]  # the first is that of the legend
    assert dots == sorted(dots)
    assert all(0 < x < WIDTH for x in dots)
    assert svg.count("dot first") == 2
    assert "guide" in svg


def test_scaled_ticks_are_few_and_have_zero():
    found = {"a": (-1e4, 1.0), "b": (1e5, 1.0)}
    chart = DifferenceList("gap", "how", ["a", "b"], {"one": found}, 0.1)
    ticks = chart._ticks(-20.0, 20.0, 4.0)
    assert 0.0 in ticks
    assert 3 <= len(ticks) <= 11
    assert np.all(np.diff(chart._scaled(np.array(ticks))) >= 4.0)
