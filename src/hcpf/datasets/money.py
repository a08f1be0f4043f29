"""Gifts of money: DonorsChoose, and any table of donors, recipients and amounts."""

import csv
from dataclasses import dataclass, replace

from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Stream, Wanted, first_line
from hcpf.datasets.tables import Gathering, Layout, add_table, gather, read_table
from hcpf.errors import InputError

_DONATIONS = Wanted(
    "a table with a donor, a recipient and an amount in each row and the columns' names in the "
    "first line",
    ("*donation*.csv", "*contribution*.csv"),
)
_GUESSES = {
    "donor": ("donor", "contributor", "giver", "user", "from"),
    "recipient": ("recipient", "candidate", "committee", "receiver", "party", "project", "to"),
    "amount": ("amount", "total", "value", "gift", "sum"),
}

_DONORSCHOOSE = Wanted(
    "DonorsChoose donations: a table with _donor_acctid, _projectid and donation_total "
    "(opendata, with or without a header), donor_acctid, projectid and donation_total (KDD Cup "
    "2014) or Donor ID, Project ID and Donation Amount (Kaggle)",
    ("*donations*.csv", "opendata_donations*"),
)
_OPENDATA = Layout(
    r'"?_donationid"?,', "_donor_acctid", "_projectid", ("donation_total",),
    escape="\\", multiline=True, money=True,
)  # fmt: skip
_DONORSCHOOSE_LAYOUTS = (
    _OPENDATA,
    replace(
        _OPENDATA, first_line=r'"?donationid"?,', user="donor_acctid", item="projectid",
        escape=False,
    ),
    replace(
        _OPENDATA, first_line=r'"?Project ID"?,', user="Donor ID", item="Project ID",
        value=("Donation Amount",), escape=False,
    ),
    replace(
        _OPENDATA, first_line=r'"?[0-9a-f]{32}"?,"?[0-9a-f]{32}"?,"?[0-9a-f]{32}"?,', user="f2",
        item="f1", value=("f11",), header=False,
    ),
)  # fmt: skip


def donorschoose(path: PathLike, *, duplicates: Duplicates = "sum") -> Interactions:
    """Read DonorsChoose: donors x projects, the dollars given.

    Parameters
    ----------
    path : path
        ``opendata_donations.csv``, ``opendata_donations000.gz``, the ``donations.csv`` of KDD Cup
        2014, Kaggle's ``Donations.csv``, or the folder or zip that holds one of them. Rows with
        an amount of 0 or less are left out.
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the sum.
    """
    return read_table(path, _DONORSCHOOSE, _DONORSCHOOSE_LAYOUTS, duplicates)


@dataclass(frozen=True)
class _Header:
    delimiter: str
    names: list[str]

    def choose(self, role: str, column: str | None) -> str:
        """The column asked for, or the first whose name sounds like the role."""
        if column is not None:
            if column not in self.names:
                raise InputError(f"{role}={column!r}: the columns are {self.names}")
            return column
        for guess in _GUESSES[role]:
            for name in self.names:
                if guess in name.lower().replace("_", " ").replace("-", " ").split():
                    return name
        raise InputError(f"no column sounds like the {role}: name one of {self.names}")


def donations(
    path: PathLike,
    *,
    donor: str | None = None,
    recipient: str | None = None,
    amount: str | None = None,
    duplicates: Duplicates = "sum",
) -> Interactions:
    r"""Read a table of gifts: donors x recipients, the money given.

    Parameters
    ----------
    path : path
        A CSV file with the columns' names in its first line, separated by commas, semicolons, tabs
        or bars, packed or not. Amounts may be written like $1,234.50. Rows without a donor or a
        recipient, or with an amount of 0 or less, are left out.
    donor, recipient, amount : str, optional
        The columns' names; by default those with a word such as "donor", "recipient", "amount".
    duplicates : {"error", "sum", "mean", "last"}
        What to do with a pair that is there more than once; by default the sum.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "gifts.csv"
    ...     _ = path.write_text('Donor,Recipient,Amount\nAnn,Zoo,"$1,200"\nAnn,Zoo,$50.50\n')
    ...     donations(path).values.tolist()
    [1250.5]
    """

    def add(gathering: Gathering, stream: Stream) -> None:
        add_table(gathering, stream, _layout(first_line(stream), donor, recipient, amount))

    return gather(path, _DONATIONS, duplicates, add)


def _layout(line: str, donor: str | None, recipient: str | None, amount: str | None) -> Layout:
    delimiter = max(",;\t|", key=line.count)
    header = _Header(delimiter, next(csv.reader([line], delimiter=delimiter), []))
    columns = [
        header.choose(role, column)
        for role, column in (("donor", donor), ("recipient", recipient), ("amount", amount))
    ]
    if len(set(columns)) < len(columns):
        raise InputError(f"donor, recipient and amount must be different columns, got {columns}")
    return Layout(
        "", columns[0], columns[1], (columns[2],), delimiter=delimiter, multiline=True, money=True
    )
