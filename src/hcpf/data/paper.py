"""The twelve data sets of the paper's table 2: their sizes, with an element per data set."""

from dataclasses import dataclass

from hcpf.elements import (
    Binomial,
    Element,
    Gamma,
    InverseGaussian,
    Logarithmic,
    ZeroTruncatedPoisson,
)
from hcpf.errors import InputError


@dataclass(frozen=True)
class PaperDataset:
    """One row of table 2, with an element to simulate similar values.

    Rows, columns and the number of observed pairs are the paper's. The element is ours: its
    family suits the values, and its parameters give values of a typical size.
    """

    rows: int
    cols: int
    nonmissing: int
    element: Element

    @property
    def density(self) -> float:
        """The share of pairs that are observed."""
        return self.nonmissing / (self.rows * self.cols)

    @property
    def sparsity(self) -> float:
        """The share of pairs that are missing, the column of table 2."""
        return 1.0 - self.density

    @property
    def continuous(self) -> bool:
        """Whether the values are continuous."""
        return not self.element.support.discrete


PAPER_DATASETS: dict[str, PaperDataset] = {
    # Stars from 1 to 5 (movielens: half stars, so 1 to 10).
    "amazon": PaperDataset(256_059, 74_258, 568_454, Binomial(5, 0.8)),
    "movielens": PaperDataset(138_493, 26_744, 20_000_263, Binomial(10, 0.7)),
    "netflix": PaperDataset(480_189, 17_770, 100_483_024, Binomial(5, 0.7)),
    "yelp": PaperDataset(552_339, 77_079, 2_225_213, Binomial(5, 0.75)),
    # Numbers of likes.
    "wordpress": PaperDataset(86_661, 78_754, 581_508, Logarithmic(0.6)),
    "tencent": PaperDataset(1_358_842, 878_708, 10_618_584, Logarithmic(0.8)),
    # Nearly all values are 1.
    "bestbuy": PaperDataset(1_268_702, 69_858, 1_862_782, ZeroTruncatedPoisson(0.1)),
    "merck": PaperDataset(152_935, 10_883, 49_059_340, ZeroTruncatedPoisson(0.1)),
    # Numbers of plays.
    "echonest": PaperDataset(1_019_318, 384_546, 48_373_586, Logarithmic(0.8)),
    # Dollars.
    "donation": PaperDataset(394_266, 82, 1_104_687, InverseGaussian(100.0, 50.0)),
    "dchoose": PaperDataset(1_282_062, 525_019, 2_661_820, InverseGaussian(60.0, 40.0)),
    # Gene expression.
    "geuvadis": PaperDataset(9_358, 462, 2_325_461, Gamma(2.0, 0.5)),
}
"""The paper's data sets by name."""


def paper_dataset(name: str) -> PaperDataset:
    """Return the data set called ``name``, or raise an error that lists the names.

    >>> round(paper_dataset("netflix").sparsity, 6)
    0.988224
    """
    key = str(name).strip().lower()
    if key not in PAPER_DATASETS:
        known = ", ".join(PAPER_DATASETS)
        raise InputError(f"Unknown data set {name!r}. The paper's data sets: {known}.")
    return PAPER_DATASETS[key]
