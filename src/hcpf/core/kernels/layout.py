"""Entries put into order, and plain sums of their values."""

from numpy import uint32  # of an index: none counts from the end

from hcpf.core.jit import kernel


@kernel()
def transpose(rows, place, columns):
    """Put the entries of all rows into those of the columns; ``place`` is where each begins."""
    index, coordinate, value = columns.index, columns.coordinate, columns.value
    for u in range(len(rows.start)):
        for e in range(rows.start[u], rows.stop[u]):
            i = rows.index[e]
            index[place[i]] = u
            coordinate[place[i]] = rows.coordinate[e]
            if len(value):
                value[place[i]] = rows.value[e]
            place[i] += 1


@kernel()
def weigh_values(first, last, start, stop, index, values, weight, out):
    """Per row: the sum of its values, each times the weight of its column.

    Four sums at a time: each addition to one of them waits for the one before.
    """
    for u in range(first, last):
        e, end = start[u], stop[u]
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        while e + 4 <= end:
            one += values[e] * weight[uint32(index[e])]
            two += values[e + 1] * weight[uint32(index[e + 1])]
            three += values[e + 2] * weight[uint32(index[e + 2])]
            four += values[e + 3] * weight[uint32(index[e + 3])]
            e += 4
        while e < end:
            one += values[e] * weight[uint32(index[e])]
            e += 1
        out[u] = (one + two) + (three + four)


@kernel()
def advance(first, last, position, stop, index, bound, out):
    """Per row: the first position from ``position`` on whose index is ``bound`` or more."""
    for r in range(first, last):
        e = position[r]
        while e < stop[r] and index[e] < bound:
            e += 1
        out[r] = e


@kernel()
def copy_rows(first, last, start, stop, source, place, out):
    """Copy entries of rows to where each row is to begin."""
    for r in range(first, last):
        to = place[r]
        for e in range(start[r], stop[r]):
            out[to] = source[e]
            to += 1


@kernel()
def transpose_columns(first, last, rows, bounds, offset, place, index, coordinate):
    """Per range of columns: the rows and the coordinates of its entries, column by column.

    Either output may be empty. Columns ascend within each row; ``place`` is where each column from
    ``offset`` on begins.
    """
    for part in range(first, last):
        low, high = bounds[part], bounds[part + 1]
        for u in range(len(rows.start)):
            for e in range(rows.start[u], rows.stop[u]):
                i = rows.index[e]
                if i >= high:
                    break
                if i >= low:
                    to = place[i - offset]
                    place[i - offset] = to + 1
                    if len(index):
                        index[to] = u
                    if len(coordinate):
                        coordinate[to] = rows.coordinate[e]
