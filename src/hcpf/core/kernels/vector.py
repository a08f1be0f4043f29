"""The innermost loops in vector instructions: four entries at a time, sixteen components each.

Written for LLVM directly because its own vectorizer spends more on the odd components at the end
of a row, and on summing across lanes, than on the rest, and takes vectors of half the width. Rows
of g are stored padded with zeros to a multiple of ``LANES``, and begin on a cache line. LLVM splits
or joins the vectors to suit the machine, so nothing here depends on its width.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hcpf.core.kernels.lanes import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    Lanes,
    load,
    load_some,
    numbered,
    pack,
    power_of_two,
    splat,
    store,
)
from hcpf.core.kernels.types import GRID, KNOWN, LANES, SHIFT, TINY_DOT, WEIGHT

_MAX_POWER = 115.0  # of two that a rate is multiplied with; float32 ends at 2^127
_FIRST_CACHE, _SECOND_CACHE = 3, 2  # as LLVM's prefetch numbers them
_QUAD = ir.VectorType(FLOAT, 4)
_ROWS, FOUR = types.UniTuple(types.intp, 4), types.UniTuple(types.float32, 4)


@intrinsic
def dot_four(typing_context, g, u, h, rows, soon, later):
    """Dot products of row u of g with four rows of h; those needed soon and later are fetched too.

    They lie anywhere in h and come from a distant cache or from memory, so they are asked for
    early: four rows into the first cache, and four into the second.
    """

    def generate(context, builder, signature, arguments):
        width, at_g = matrix(context, builder, signature.args[0], arguments[0])
        _, at_h = matrix(context, builder, signature.args[2], arguments[2])
        own = at_g(arguments[1])
        here, soon, later = (
            [at_h(i) for i in cgutils.unpack_tuple(builder, rows, 4)] for rows in arguments[3:]
        )
        zero = ir.Constant(ir.VectorType(FLOAT, LANES), [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in here]
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(LANES)) as (k, _):
            s = load(builder, builder.gep(own, [k]), FLOAT, LANES)
            for total, row, near, far in zip(sums, here, soon, later, strict=True):
                h_row = load(builder, builder.gep(row, [k]), FLOAT, LANES)
                before = Lanes(builder, builder.load(total))
                builder.store((before + s * h_row).value, total)
                _prefetch(builder, builder.gep(near, [k]), _FIRST_CACHE)
                _prefetch(builder, builder.gep(far, [k]), _SECOND_CACHE)
        dots = _sum_each([Lanes(builder, builder.load(total)) for total in sums])
        return _as_tuple(context, dots)

    return FOUR(g, types.intp, h, _ROWS, _ROWS, _ROWS), generate


@intrinsic
def add_four(typing_context, total, h, rows, weights):
    """Add four weighted rows of h to ``total``, which is as wide as they are."""

    def generate(context, builder, signature, arguments):
        width, at_h = matrix(context, builder, signature.args[1], arguments[1])
        out = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        near = [at_h(i) for i in cgutils.unpack_tuple(builder, arguments[2], 4)]
        weights = cgutils.unpack_tuple(builder, arguments[3], 4)
        weights = [splat(builder, weight, LANES) for weight in weights]
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(LANES)) as (k, _):
            place = builder.gep(out, [k])
            value = load(builder, place, FLOAT, LANES)
            for weight, row in zip(weights, near, strict=True):
                value = value + weight * load(builder, builder.gep(row, [k]), FLOAT, LANES)
            store(value, place)
        return context.get_dummy_value()

    return types.void(total, h, _ROWS, FOUR), generate


@intrinsic
def move_row(typing_context, part, totals, r, is_first):
    """Add ``part`` to row r of the totals, which are float64 and as wide, and set it to 0.

    The first part takes the place of what is there.
    """

    def generate(context, builder, signature, arguments):
        part = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        width, at_total = matrix(context, builder, signature.args[1], arguments[1])
        row = at_total(arguments[2])
        zero = ir.Constant(ir.VectorType(DOUBLE, LANES), [0.0] * LANES)
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(LANES)) as (k, _):
            here, there = builder.gep(part, [k]), builder.gep(row, [k])
            before = load(builder, there, DOUBLE, LANES)
            before = Lanes(builder, builder.select(arguments[3], zero, before.value))
            value = load(builder, here, FLOAT, LANES)
            store(before + value.to(DOUBLE), there)
            store(Lanes(builder, ir.Constant(value.value.type, [0.0] * LANES)), here)
        return context.get_dummy_value()

    return types.void(part, totals, types.intp, types.boolean), generate


@intrinsic
def take_four(typing_context, values, places):
    """The values at four places, none of them counted from the end."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        places = cgutils.unpack_tuple(builder, arguments[1], 4)
        taken = [builder.load(builder.gep(data, [place])) for place in places]
        if signature.return_type == _ROWS:
            taken = [builder.sext(one, INT64) if one.type != INT64 else one for one in taken]
        return context.make_tuple(builder, signature.return_type, taken)

    return (FOUR if values.dtype == types.float32 else _ROWS)(values, _ROWS), generate


@intrinsic
def add_products(typing_context, sums, row, values, factors):
    """Add four values, each times a factor, to a row of four sums in float64.

    One sum would have to wait for all four lanes, and then for the sum before.
    """

    def generate(context, builder, signature, arguments):
        _, at_sums = matrix(context, builder, signature.args[0], arguments[0])
        values, factors = (_from_tuple(builder, four) for four in arguments[2:])
        _add_to(builder, at_sums(arguments[1]), (values * factors).to(DOUBLE))
        return context.get_dummy_value()

    return types.void(sums, types.intp, FOUR, FOUR), generate


@intrinsic
def add_weighed(typing_context, sums, row, values, e, left, weights, rows):
    """Add the first ``left`` of the four values from e on, each weighed, to a row of four sums.

    The weight of a value stands in column WEIGHT of the row of ``weights`` that goes with it.
    """

    def generate(context, builder, signature, arguments):
        _, at_sums = matrix(context, builder, signature.args[0], arguments[0])
        data = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        _, at_weights = matrix(context, builder, signature.args[5], arguments[5])
        counts = numbered(builder, 4).to(INT64) < arguments[4]
        nothing = Lanes(builder, ir.Constant(_QUAD, [0.0] * 4))
        here = load_some(builder, builder.gep(data, [arguments[3]]), counts, nothing)
        places = [at_weights(i) for i in cgutils.unpack_tuple(builder, arguments[6], 4)]
        weights = [builder.load(builder.gep(place, [INT64(WEIGHT)])) for place in places]
        _add_to(builder, at_sums(arguments[1]), here.to(DOUBLE) * pack(builder, weights))
        return context.get_dummy_value()

    number = types.intp
    return types.void(sums, number, values, number, number, weights, _ROWS), generate


def _add_to(builder: Any, place: Any, lanes: Lanes) -> None:
    store(load(builder, place, DOUBLE, 4) + lanes, place)


@intrinsic
def fetch_four(typing_context, values, rows):
    """Ask for four rows of a matrix, none wider than a cache line, which will be read soon."""

    def generate(context, builder, signature, arguments):
        _, at = matrix(context, builder, signature.args[0], arguments[0])
        for row in cgutils.unpack_tuple(builder, arguments[1], 4):
            _prefetch(builder, at(row), _SECOND_CACHE)
        return context.get_dummy_value()

    return types.void(values, _ROWS), generate


@intrinsic
def table_four(typing_context, mode, first_code, x_low, x_high, segments, table, x, coordinate):
    """E[n] of four entries at the rates x from the table, or -1 where x lies outside it.

    That is always so where nothing is tabulated. Takes the fields of ``TableArrays`` one by one,
    the table flat.
    """

    def generate(context, builder, signature, arguments):
        table = context.make_array(signature.args[5])(context, builder, arguments[5])
        x, y = (_from_tuple(builder, values) for values in arguments[6:])
        mean = cgutils.alloca_once_value(builder, y.value)
        with _unless_known(builder, arguments[0]):
            builder.store(_from_table(builder, *arguments[:5], table, x, y).value, mean)
        return _as_tuple(context, Lanes(builder, builder.load(mean)))

    return FOUR(*_table_types(table), FOUR, FOUR), generate


@intrinsic
def mean_four(
    typing_context, mode, first_code, x_low, x_high, segments, table, coordinate,
    rows, dots, row_scale, row_cross, row_terms,
):  # fmt: skip
    """E[n] of four entries at their dot products, or -1 where the table does not hold it.

    The rates are dot row_scale scale_i 2^(row_cross cross_i), where ``row_terms`` has the scale and
    cross of each row. Returns cross_i, too.
    """

    def generate(context, builder, signature, arguments):
        table = context.make_array(signature.args[5])(context, builder, arguments[5])
        _, at_terms = matrix(context, builder, signature.args[11], arguments[11])
        y, dots = _from_tuple(builder, arguments[6]), _from_tuple(builder, arguments[8])
        rows = cgutils.unpack_tuple(builder, arguments[7], 4)
        row_scale, row_cross = arguments[9:11]
        mean = cgutils.alloca_once_value(builder, y.value)
        crosses = cgutils.alloca_once_value(builder, ir.Constant(_QUAD, [0.0] * 4))
        rates = cgutils.alloca_once(builder, _QUAD)
        with _unless_known(builder, arguments[0]):
            pairs = [load(builder, at_terms(row), FLOAT, 2) for row in rows]
            low, high = (pairs[i].pick([0, 1, 2, 3], pairs[i + 1]) for i in (0, 2))
            scale, cross = low.pick([0, 2, 4, 6], high), low.pick([1, 3, 5, 7], high)
            builder.store(cross.value, crosses)
            x = dots * (scale * row_scale)
            builder.store(x.value, rates)
            with builder.if_then(builder.fcmp_unordered("!=", row_cross, FLOAT(0.0))):
                # What float32 might not hold is infinite, so that the row is redone slowly.
                t = cross * row_cross
                holds = (t > -_MAX_POWER) & (t < _MAX_POWER)
                builder.store((x * power_of_two(t)).where(holds, np.inf).value, rates)
            x = Lanes(builder, builder.load(rates))
            builder.store(_from_table(builder, *arguments[:5], table, x, y).value, mean)
        parts = [_as_tuple(context, Lanes(builder, builder.load(v))) for v in (mean, crosses)]
        return context.make_tuple(builder, signature.return_type, parts)

    number = types.float32
    more = (FOUR, _ROWS, FOUR, number, number, row_terms)
    return types.UniTuple(FOUR, 2)(*_table_types(table), *more), generate


@intrinsic
def weigh_four(typing_context, means, dots, left):
    """E[n] of the first ``left`` entries and E[n] over their dot products, otherwise 0.

    Last, whether all four are numbers that float32 holds.
    """

    def generate(context, builder, signature, arguments):
        means, dots = _from_tuple(builder, arguments[0]), _from_tuple(builder, arguments[1])
        holds = (means >= 0.0) & (dots > float(TINY_DOT))
        counts = holds & (numbered(builder, 4).to(INT64) < arguments[2])
        means = means.where(counts, 0.0)
        weights = means / dots.where(holds, 1.0)
        parts = [_as_tuple(context, means), _as_tuple(context, weights), holds.all()]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.Tuple((FOUR, FOUR, types.boolean))(FOUR, FOUR, types.intp), generate


@intrinsic
def any_above(typing_context, values, begin, count, least):
    """Whether one of ``count`` values from ``begin`` on is above ``least``; LANES divides it."""

    def generate(context, builder, signature, arguments):
        kind = DOUBLE if signature.args[0].dtype == types.float64 else FLOAT
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        first = builder.gep(data, [arguments[1]])
        top = cgutils.alloca_once_value(builder, load(builder, first, kind, LANES).value)
        with cgutils.for_range_slice(builder, INT64(0), arguments[2], INT64(LANES)) as (k, _):
            here = load(builder, builder.gep(first, [k]), kind, LANES)
            builder.store(here.at_least(Lanes(builder, builder.load(top))).value, top)
        return (Lanes(builder, builder.load(top)) > arguments[3]).any()

    return types.boolean(values, types.intp, types.intp, values.dtype), generate


def matrix(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Width of a contiguous matrix, and a function from a row's number to its address."""
    array = context.make_array(kind)(context, builder, value)
    width = cgutils.unpack_tuple(builder, array.shape, 2)[1]
    return width, lambda row: builder.gep(array.data, [builder.mul(row, width)])


def _sum_each(vectors: list[Lanes]) -> Lanes:
    """The sum of the lanes of each of four vectors of sixteen."""

    def halves(first: Lanes, second: Lanes, size: int) -> Lanes:
        # of every run of ``size`` lanes the first half plus the second
        low = [i for i in range(2 * LANES) if i % size < size // 2]
        high = [i + size // 2 for i in low]
        return first.pick(low, second) + first.pick(high, second)

    first, second, third, fourth = vectors
    four = halves(halves(first, second, 16), halves(third, fourth, 16), 8)  # four lanes for each
    two = four + four.pick([i ^ 2 for i in range(LANES)])
    return (two + two.pick([i ^ 1 for i in range(LANES)])).pick([0, 4, 8, 12])


def _unless_known(builder: Any, mode: Any) -> Any:
    """Return a context in which n does not follow from y (then it is the coordinate)."""
    return builder.if_then(builder.icmp_signed("!=", mode, mode.type(KNOWN)))


def _table_types(table: Any) -> tuple[Any, ...]:
    return types.intp, types.intp, types.float32, types.float32, types.intp, table


def _from_table(
    builder: Any, mode: Any, first_code: Any, x_low: Any, x_high: Any, segments: Any, table: Any,
    x: Lanes, y: Lanes,
) -> Lanes:  # fmt: skip
    """E[n] at four rates x and coordinates y, by the cubic pieces of ``hcpf.core.count_tables``."""
    is_shift, is_grid = (builder.icmp_signed("==", mode, mode.type(m)) for m in (SHIFT, GRID))
    x = Lanes(builder, builder.select(is_shift, (x * y).value, x.value))
    row = y.to(INT32)
    row = Lanes(builder, builder.select(is_shift, (row & 0).value, row.value))
    # A place that the table has, also where x is outside: quicker than to ask where it is.
    size = builder.lshr(table.nitems, builder.select(is_grid, INT64(4), INT64(2)))
    last = builder.trunc(builder.sub(size, INT64(1)), INT32)
    row_start = row * builder.trunc(segments, INT32) - builder.trunc(first_code, INT32)
    bits = x.bits_as(INT32)
    piece = ((bits >> 20) + row_start).at_least(0).at_most(last)
    t = (bits & 0xFFFFF).to(FLOAT) * 2.0**-20
    places = [builder.zext(piece.lane(lane), INT64) for lane in range(4)]
    cubics = [cgutils.alloca_once(builder, _QUAD) for _ in places]
    with builder.if_else(is_grid) as (grid, line):
        with grid:
            _cubics_between_rows(builder, table.data, places, y - row.to(FLOAT), cubics)
        with line:
            for place, cubic in zip(places, cubics, strict=True):
                begin = builder.gep(table.data, [builder.mul(place, INT64(4))])
                builder.store(load(builder, begin, FLOAT, 4).value, cubic)
    value = _cubic([Lanes(builder, builder.load(cubic)) for cubic in cubics], t)
    return value.where((x >= x_low) & (x < x_high), -1.0)


def _cubics_between_rows(
    builder: Any, data: Any, pieces: list[Any], s: Lanes, cubics: list[Any]
) -> None:
    """Per entry the cubic in t that the bicubic sum of c[p, q] s^p t^q is at its s."""
    for lane, (piece, cubic) in enumerate(zip(pieces, cubics, strict=True)):
        own, begin = s.pick([lane] * 4), builder.mul(piece, INT64(16))
        places = [builder.gep(data, [builder.add(begin, INT64(4 * p))]) for p in range(4)]
        rows = [load(builder, place, FLOAT, 4) for place in places]
        builder.store(_at(rows, own).value, cubic)


def _cubic(coefficients: list[Lanes], t: Lanes) -> Lanes:
    """Four cubics, a vector of coefficients each, at the four t."""
    first, second, third, fourth = coefficients
    low = first.pick([0, 4, 1, 5], second), third.pick([0, 4, 1, 5], fourth)
    high = first.pick([2, 6, 3, 7], second), third.pick([2, 6, 3, 7], fourth)
    c0, c1 = (low[0].pick(lanes, low[1]) for lanes in ([0, 1, 4, 5], [2, 3, 6, 7]))
    c2, c3 = (high[0].pick(lanes, high[1]) for lanes in ([0, 1, 4, 5], [2, 3, 6, 7]))
    return _at([c0, c1, c2, c3], t)


def _at(coefficients: list[Lanes], t: Lanes) -> Lanes:
    """A cubic at t; in halves, so that fewer sums wait for one another."""
    c0, c1, c2, c3 = coefficients
    return (c3 * t + c2) * (t * t) + (c1 * t + c0)


def _from_tuple(builder: Any, values: Any) -> Lanes:
    return pack(builder, cgutils.unpack_tuple(builder, values, 4))


def _as_tuple(context: Any, lanes: Lanes) -> Any:
    return context.make_tuple(lanes.builder, FOUR, [lanes.lane(i) for i in range(4)])


def _prefetch(builder: Any, place: Any, cache: int) -> None:
    pointer = ir.PointerType()
    kind = ir.FunctionType(ir.VoidType(), [pointer, INT32, INT32, INT32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # for reading, and data rather than instructions
    builder.call(function, [builder.bitcast(place, pointer), INT32(0), INT32(cache), INT32(1)])
