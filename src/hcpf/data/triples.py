"""(user, item, value) triples by position, and the ids that the positions stand for."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hcpf.data.canonical import CsrArray, Duplicates, IdArray, from_triples, to_canonical
from hcpf.data.columns import IdColumn, ResponseColumn
from hcpf.errors import InputError


@dataclass(frozen=True, eq=False)
class Triples:
    """What a reader hands on."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    users: IdArray
    items: IdArray

    @classmethod
    def gather(cls, users: IdColumn, items: IdColumn, values: ResponseColumn) -> Self:
        """Put together three columns that have been read."""
        user_ids, rows = users.finish()
        item_ids, columns = items.finish()
        if len(rows) == 0:
            raise InputError("There are no rows: at least one observed pair is needed.")
        return cls(rows, columns, values.finish(), user_ids, item_ids)

    def to_matrix(self, duplicates: Duplicates) -> CsrArray:
        """The canonical matrix of the triples."""
        shape = len(self.users), len(self.items)
        matrix = from_triples(self.values, self.rows, self.columns, shape)
        return to_canonical(matrix, duplicates, self.users, self.items)
