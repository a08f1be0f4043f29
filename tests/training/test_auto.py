"""The search of "auto": what it tries, what it shows, and how a race drops contenders."""

import logging

import numpy as np
import pytest

from hcpf import HCPF, simulate
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, InverseGaussian, Logarithmic, Poisson
from hcpf.report import write_report
from hcpf.training import auto
from hcpf.training.selection import Candidate, PairLikelihoods
from hcpf.training.short_fits import Race


def data():
    element = Gamma(2.0, 0.5)
    return simulate(120, 80, density=0.2, element=element, random_state=5).interactions


def test_the_bar_and_the_log_tell_what_is_tried(capsys, caplog, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    with caplog.at_level(logging.INFO, logger="hcpf"):
        model = HCPF(3, n_fits=1, max_iter=16, random_state=0).fit(data(), progress=True)
    shown = capsys.readouterr().err
    assert "Choosing the element" in shown
    assert "Choosing the tempering" in shown
    assert "best of" in shown
    tried = [line for line in caplog.messages if line.startswith("auto: ")]
    assert sum("hurdle" in line for line in tried) >= 5
    assert sum("tempering" in line for line in tried) >= 2
    write_report(model, tmp_path / "report.html", progress=True)
    assert "Report" in capsys.readouterr().err


def test_held_out_pairs_are_drawn_once(monkeypatch):
    calls = []
    draw = auto.Sample.draw
    monkeypatch.setattr(auto.Sample, "draw", lambda *given: calls.append(1) or draw(*given))
    HCPF(3, n_fits=1, max_iter=16, random_state=0).fit(data())
    assert calls == [1]


def likelihoods(value):
    return PairLikelihoods(np.full(50, value), np.zeros(50), 10.0)


class Contender:
    """A short fit whose likelihoods are known in advance."""

    def __init__(self, *values):
        self.values, self.n_passes = list(values), 0

    def advance(self, n_passes, is_stopping):
        self.n_passes += n_passes

    def score(self):
        return likelihoods(self.values.pop(0))


def test_a_contender_that_is_clearly_behind_is_dropped_at_its_first_look():
    race = Race((4, 8), 0.1, lambda: False)
    assert race.run(Contender(-3.0, -2.5)).per_entry == pytest.approx(-2.5)
    behind, close, ahead = Contender(-3.2, -2.0), Contender(-3.05, -2.6), Contender(-2.9, -2.4)
    assert race.run(behind) is None
    assert behind.n_passes == 4
    assert race.run(close).per_entry == pytest.approx(-2.6)
    assert race.run(ahead).per_entry == pytest.approx(-2.4)
    # From now on the last one leads.
    assert race.run(Contender(-3.05, -2.0)) is None


def scored(*models):
    return [
        Candidate(
            ValueModel(kind(), vary_by, hurdle=True), likelihoods(value), pooled=vary_by is not None
        )
        for kind, vary_by, value in models
    ]


def test_elements_near_the_best_hurdle_model_are_promising_and_untried_ones_too():
    hurdles = scored((Gamma, None, -3.5), (Gamma, "user", -3.1), (InverseGaussian, None, -3.2))
    assert auto._promising([InverseGaussian, Gamma], hurdles) == [Gamma, InverseGaussian]
    hurdles = scored((Gamma, "user", -2.9), (InverseGaussian, None, -3.2))
    assert auto._promising([InverseGaussian, Gamma], hurdles) == [Gamma]
    assert set(auto._promising([Logarithmic, Gamma], hurdles)) == {Gamma, Logarithmic}
    assert auto._promising([Logarithmic], []) == [Logarithmic]


@pytest.mark.parametrize(("shared", "ways"), [(-3.0, ["item", "user"]), (-2.801, [])])
def test_ways_to_pool_are_ranked_where_pooling_helps(shared, ways):
    found = scored((Gamma, None, shared), (Gamma, "user", -2.9), (Gamma, "item", -2.8))
    assert auto._ways_by_likelihood(found) == ways


def test_pooled_models_are_those_that_the_element_allows():
    names = [one.vary_by for one in auto._pooled(ValueModel(Logarithmic()), ("both", "item"))]
    assert names == ["item"]
    assert len(auto._pooled(ValueModel(Poisson()), ("both", "item", "user"))) == 3
