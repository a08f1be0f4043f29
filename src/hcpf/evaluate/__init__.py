"""Evaluation of models: held-out pairs, likelihoods, ranking, calibration and baselines."""

from hcpf.data.held_out import HeldOutPairs
from hcpf.evaluate.baselines import HPF, BinaryHPF, GlobalElement, PerItemElement, Popularity
from hcpf.evaluate.comparison import (
    Comparison,
    ModelScores,
    compare,
    fit_and_score,
    log_likelihood_gain,
)
from hcpf.evaluate.components import Candidate, ComponentPath, choose_components
from hcpf.evaluate.evaluation import Evaluation, evaluate_model
from hcpf.evaluate.ranks import RankingScores, ranking
from hcpf.evaluate.reliability import Calibration, calibration
from hcpf.evaluate.scoring import Model, Ranker, Score, Scores, auc, scores
from hcpf.evaluate.splits import Split, excluded_split, leave_out, split

__all__ = [
    "HPF",
    "BinaryHPF",
    "Calibration",
    "Candidate",
    "Comparison",
    "ComponentPath",
    "Evaluation",
    "GlobalElement",
    "HeldOutPairs",
    "Model",
    "ModelScores",
    "PerItemElement",
    "Popularity",
    "Ranker",
    "RankingScores",
    "Score",
    "Scores",
    "Split",
    "auc",
    "calibration",
    "choose_components",
    "compare",
    "evaluate_model",
    "excluded_split",
    "fit_and_score",
    "leave_out",
    "log_likelihood_gain",
    "ranking",
    "scores",
    "split",
]
