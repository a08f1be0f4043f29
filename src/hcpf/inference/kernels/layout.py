"""Entries put into order, and plain sums of their values."""

from hcpf.inference.jit import kernel


@kernel()
def transpose(rows, place, index, coordinate):
    """Put the entries of all rows into those of the columns; ``place`` is where each begins."""
    for u in range(len(rows.start)):
        for e in range(rows.start[u], rows.stop[u]):
            i = rows.index[e]
            index[place[i]] = u
            coordinate[place[i]] = rows.coordinate[e]
            place[i] += 1


@kernel()
def weigh_values(first, last, start, stop, index, values, weight, out):
    """Per row: the sum of its values, each times the weight of its column."""
    for u in range(first, last):
        total = 0.0
        for e in range(start[u], stop[u]):
            total += values[e] * weight[index[e]]
        out[u] = total


@kernel()
def weigh_columns(first, last, blocks, start, stop, index, values, weight, out):
    """Per block of rows and column: the sum of the values, each times the weight of its row."""
    for block in range(first, last):
        for u in range(blocks[block], blocks[block + 1]):
            for e in range(start[u], stop[u]):
                out[block, index[e]] += values[e] * weight[u]


@kernel()
def advance(first, last, position, stop, index, bound, out):
    """Per row: the first position from ``position`` on whose index is ``bound`` or more."""
    for r in range(first, last):
        e = position[r]
        while e < stop[r] and index[e] < bound:
            e += 1
        out[r] = e
