"""From what was named on the command line to data: files, globs, or the word retail."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcpf.cli.columns import Column, Roles, guess
from hcpf.cli.options import Duplicates
from hcpf.cli.screen import note
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.data.columns import Triples
    from hcpf.data.interactions import Interactions

RETAIL = "retail"


@dataclass(frozen=True)
class Source:
    """Files, and which of their columns hold what."""

    data: Sequence[str]
    user: str | None = None
    item: str | None = None
    response: str | None = None
    duplicates: Duplicates = Duplicates.error
    header: bool | None = None
    delimiter: str | None = None

    def read(self) -> "Interactions":
        """Read the data, and say on stderr which columns were taken."""
        from hcpf.data.interactions import Interactions

        if self.is_retail:
            return self._retail()
        roles, header = self.roles()
        return Interactions.read(
            list(self.data),
            user=roles.user,
            item=roles.item,
            response=roles.response,
            duplicates=self.duplicates.value,
            delimiter=self.delimiter,
            header=header,
        )

    def read_counting(self) -> "tuple[Interactions, int]":
        """Read the data with repeated pairs merged; and how many rows were surplus."""
        from hcpf.data.interactions import Interactions

        if self.is_retail:
            return self._retail(), 0
        triples = self._triples()
        merge = "sum" if self.duplicates is Duplicates.error else self.duplicates.value
        data = Interactions(triples.to_matrix(merge), triples.users, triples.items)
        return data, len(triples.values) - data.n_observed

    @property
    def is_retail(self) -> bool:
        """Whether the data set that comes with hcpf was asked for."""
        if RETAIL in self.data and len(self.data) > 1:
            raise InputError("retail is a data set of its own: give it alone, or files alone.")
        return list(self.data) == [RETAIL]

    def _retail(self) -> "Interactions":
        from hcpf import datasets

        if self.user or self.item:
            raise InputError("retail has its own columns: leave --user and --item out.")
        response = self.response or "spend"
        if response not in ("spend", "quantity", "invoices"):
            raise InputError(
                f"--response of retail is spend, quantity or invoices; not {response}."
            )
        note(f"retail: {Roles('customer', 'product', response)}")
        return datasets.retail(response)  # pyright: ignore[reportArgumentType]

    def _triples(self) -> "Triples":
        from hcpf.data.readers import read_triples

        roles, header = self.roles()
        return read_triples(
            list(self.data),
            user=roles.user,
            item=roles.item,
            response=roles.response,
            delimiter=self.delimiter,
            header=header,
        )

    def roles(self, *, quiet: bool = False) -> tuple[Roles, bool]:
        """Which columns hold what, and whether text files have a header; guesses are announced."""
        from hcpf.cli.peek import peek
        from hcpf.data.readers import find_files

        layout = peek(find_files(list(self.data))[0], self.delimiter, self.header)
        roles = guess(layout.columns, self.user, self.item, self.response)
        if self.header is None and not layout.header:
            note("The first line holds data: the columns are called f0, f1, ... (else --header).")
        if not quiet and None in (self.user, self.item, self.response):
            given = {"--user": self.user, "--item": self.item, "--response": self.response}
            guessed = [option for option, name in given.items() if name is None]
            note(f"{roles} (guessed; else {', '.join(guessed)})")
            if roles.response is None and self.response is None:
                _name_unused(layout.columns, roles)
        return roles, layout.header


def _name_unused(columns: Sequence[Column], roles: Roles) -> None:
    """A value that was overlooked would be a pity."""
    unused = [column.name for column in columns if column.name not in (roles.user, roles.item)]
    if unused:
        note(f"Not used: {', '.join(unused)}. If one is the value: --response NAME.")
