"""Evaluation of models: held-out pairs, likelihoods, ranking, calibration and baselines."""

from hcpf.data.held_out import HeldOutPairs
from hcpf.evaluate.agreement import (
    ComponentAlignment,
    Consensus,
    ConsensusCandidate,
    Stability,
    align,
    consensus,
)
from hcpf.evaluate.association import ComponentAssociation, component_association
from hcpf.evaluate.baselines import (
    HPF,
    BinaryHPF,
    ConstantRate,
    GlobalElement,
    PerItemElement,
    Popularity,
)
from hcpf.evaluate.comparison import (
    Comparison,
    ModelScores,
    compare,
    fit_and_score,
    log_likelihood_gain,
)
from hcpf.evaluate.components import Candidate, ComponentPath, choose_components
from hcpf.evaluate.evaluation import Evaluation, evaluate_model
from hcpf.evaluate.lists import ListCalibration, list_calibration
from hcpf.evaluate.ranks import RankingScores, ranking
from hcpf.evaluate.reliability import Calibration, calibration
from hcpf.evaluate.scoring import Model, Ranker, Score, Scores, auc, scores
from hcpf.evaluate.splits import Split, excluded_split, leave_out, split, split_by_time
from hcpf.evaluate.topics import Coherence, coherence, perplexity, thin

__all__ = [
    "HPF",
    "BinaryHPF",
    "Calibration",
    "Candidate",
    "Coherence",
    "Comparison",
    "ComponentAlignment",
    "ComponentAssociation",
    "ComponentPath",
    "Consensus",
    "ConsensusCandidate",
    "ConstantRate",
    "Evaluation",
    "GlobalElement",
    "HeldOutPairs",
    "ListCalibration",
    "Model",
    "ModelScores",
    "PerItemElement",
    "Popularity",
    "Ranker",
    "RankingScores",
    "Score",
    "Scores",
    "Split",
    "Stability",
    "align",
    "auc",
    "calibration",
    "choose_components",
    "coherence",
    "compare",
    "component_association",
    "consensus",
    "evaluate_model",
    "excluded_split",
    "fit_and_score",
    "leave_out",
    "list_calibration",
    "log_likelihood_gain",
    "perplexity",
    "ranking",
    "scores",
    "split",
    "split_by_time",
    "thin",
]
