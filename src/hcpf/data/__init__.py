"""Observed entries of a users x items matrix, and where they come from."""

from hcpf.data.interactions import Interactions
from hcpf.data.paper import PAPER_DATASETS, PaperDataset

__all__ = ["PAPER_DATASETS", "Interactions", "PaperDataset"]
