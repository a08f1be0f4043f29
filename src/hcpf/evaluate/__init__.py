"""How good a model is: held-out pairs, likelihoods, ranking, calibration and baselines."""

from hcpf.evaluate.baselines import GlobalElement, PerItemElement, Popularity
from hcpf.evaluate.comparing import Comparison, compare
from hcpf.evaluate.components import Candidate, ComponentPath, choose_components
from hcpf.evaluate.hpf import HPF, BinaryHPF
from hcpf.evaluate.plots import plot
from hcpf.evaluate.protocols import Model, Predictive, Ranker, Response
from hcpf.evaluate.ranks import RankingScores, ranking
from hcpf.evaluate.reliability import Calibration, calibration
from hcpf.evaluate.score import Score
from hcpf.evaluate.scoring import Scores, auc, scores
from hcpf.evaluate.splits import HeldOutPairs, Split, leave_out, split, split_by_time

__all__ = [
    "HPF",
    "BinaryHPF",
    "Calibration",
    "Candidate",
    "Comparison",
    "ComponentPath",
    "GlobalElement",
    "HeldOutPairs",
    "Model",
    "PerItemElement",
    "Popularity",
    "Predictive",
    "Ranker",
    "RankingScores",
    "Response",
    "Score",
    "Scores",
    "Split",
    "auc",
    "calibration",
    "choose_components",
    "compare",
    "leave_out",
    "plot",
    "ranking",
    "scores",
    "split",
    "split_by_time",
]
