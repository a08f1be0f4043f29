"""One row's posterior in vector instructions, sixteen components at a time."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hcpf.core.kernels.lanes import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    Lanes,
    exponential,
    load,
    load_some,
    numbered,
    splat,
    store,
    store_some,
)
from hcpf.core.kernels.types import LANES
from hcpf.core.kernels.vector import matrix

_SHAPE_BELOW = 1e-30  # whose geometric mean is 0 in any case
_SHAPE_ABOVE = 3e7  # whose two means agree to the last bit, and whose square float32 holds


@intrinsic
def update_row(
    typing_context, a, mean, g, u, totals, rates, r, is_scaled, shape, scale, activity, step, sums
):
    """Set a, mean and g of row u; returns the sum of its means and its least shape.

    The sums over its entries and the rates stand in row r of ``totals`` and ``rates``, in float64
    and as wide as g, the former yet to be multiplied by g unless ``is_scaled``. A step below 1
    goes only so far from where the row is. Adds the means to ``sums``.
    """

    def generate(context, builder, signature, arguments):
        u, r, is_scaled = arguments[3], arguments[6], arguments[7]
        shape, scale, activity, step = arguments[8:12]
        size, row_a, row_mean, row_g = _rows(context, builder, signature, arguments, u)
        width, totals_at = matrix(context, builder, signature.args[4], arguments[4])
        _, rates_at = matrix(context, builder, signature.args[5], arguments[5])
        sums = context.make_array(signature.args[12])(context, builder, arguments[12]).data
        row_totals, row_rates = totals_at(r), rates_at(r)
        row_sum = cgutils.alloca_once_value(builder, _constant(FLOAT, 0.0))
        least = cgutils.alloca_once_value(builder, _constant(FLOAT, float("inf")))
        one = Lanes(builder, _constant(FLOAT, 1.0))
        goal = [cgutils.alloca_once(builder, ir.VectorType(DOUBLE, LANES)) for _ in range(2)]
        keep = builder.fsub(DOUBLE(1.0), step)
        is_partial = builder.fcmp_ordered("!=", keep, DOUBLE(0.0))
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(LANES)) as (k, _):
            is_there = _is_there(builder, k, size)
            at_a, at_mean, at_g, at_sum = (
                builder.gep(row, [k]) for row in (row_a, row_mean, row_g, sums)
            )
            old_g = load(builder, at_g, FLOAT, LANES).value
            factor = Lanes(builder, builder.select(is_scaled, one.value, old_g)).to(DOUBLE)
            total = load(builder, builder.gep(row_totals, [k]), DOUBLE, LANES) * factor
            new_a = total * scale + shape
            new_b = load(builder, builder.gep(row_rates, [k]), DOUBLE, LANES) + activity
            builder.store(new_a.value, goal[0])
            builder.store(new_b.value, goal[1])
            with builder.if_then(is_partial):
                old_a = load_some(builder, at_a, is_there, one).to(DOUBLE)
                old_mean = load_some(builder, at_mean, is_there, one).to(DOUBLE)
                builder.store((old_a * keep + new_a * step).value, goal[0])
                builder.store((old_a / old_mean * keep + new_b * step).value, goal[1])
            a, b = (Lanes(builder, builder.load(place)).to(FLOAT) for place in goal)
            mean = a / b
            # A store under a mask takes several times as long as a plain one.
            is_whole = builder.icmp_signed("<=", builder.add(k, INT64(LANES)), size)
            with builder.if_else(is_whole) as (whole, part):
                with whole:
                    store(a, at_a)
                    store(mean, at_mean)
                with part:
                    store_some(a, at_a, is_there)
                    store_some(mean, at_mean, is_there)
            store(_geometric_mean(a, mean).where(is_there, 0.0), at_g)
            mean = mean.where(is_there, 0.0)
            store(load(builder, at_sum, FLOAT, LANES) + mean, at_sum)
            builder.store((Lanes(builder, builder.load(row_sum)) + mean).value, row_sum)
            smallest = Lanes(builder, builder.load(least))
            builder.store(smallest.at_most(a.where(is_there, float("inf"))).value, least)
        total = Lanes(builder, builder.load(row_sum)).sum()
        parts = [total, Lanes(builder, builder.load(least)).least()]
        return context.make_tuple(builder, signature.return_type, parts)

    number = types.float64
    return types.UniTuple(types.float32, 2)(
        a, mean, g, types.intp, totals, rates, types.intp, types.boolean,
        number, number, number, number, sums,
    ), generate  # fmt: skip


@intrinsic
def rescale_row(typing_context, a, mean, g, u):
    """Set g of row u from a and mean; returns its least shape."""

    def generate(context, builder, signature, arguments):
        size, row_a, row_mean, row_g = _rows(context, builder, signature, arguments, arguments[3])
        least = cgutils.alloca_once_value(builder, _constant(FLOAT, float("inf")))
        with cgutils.for_range_slice(builder, INT64(0), size, INT64(LANES)) as (k, _):
            is_there = _is_there(builder, k, size)
            one = Lanes(builder, _constant(FLOAT, 1.0))
            a = load_some(builder, builder.gep(row_a, [k]), is_there, one)
            mean = load_some(builder, builder.gep(row_mean, [k]), is_there, one)
            store(_geometric_mean(a, mean).where(is_there, 0.0), builder.gep(row_g, [k]))
            smallest = Lanes(builder, builder.load(least))
            builder.store(smallest.at_most(a.where(is_there, float("inf"))).value, least)
        return Lanes(builder, builder.load(least)).least()

    return types.float32(a, mean, g, types.intp), generate


def _geometric_mean(a: Lanes, mean: Lanes) -> Lanes:
    """exp(E log s) of Gamma variables with shapes a and the given means.

    That is mean exp(digamma(a)) / a: four steps of the recurrence, then the asymptotic series,
    with one division for all of its fractions.
    """
    a = a.at_least(_SHAPE_BELOW).at_most(_SHAPE_ABOVE)
    z = a + 4.0
    outer = a * (a + 3.0)
    inner = outer + 2.0  # (a + 1) (a + 2)
    product = outer * inner
    inverse = splat(a.builder, FLOAT(1.0), LANES) / (product * z)
    r = product * inverse  # 1 / z
    steps = (a + a + 3.0) * (outer + inner) * z * inverse  # 1/a + 1/(a+1) + 1/(a+2) + 1/(a+3)
    over_a = (a + 3.0) * inner * z * inverse  # 1 / a, and z / a is 1 + 4 / a
    r2 = r * r
    series = r * 0.5 + r2 * ((r2 * (r2 * (1 / 252) - 1 / 120)) + 1 / 12)
    exponent = (series + steps) * -1.0
    value = mean * (over_a * 4.0 + 1.0) * exponential(exponent.at_least(-87.0))
    return value.where(exponent >= -87.0, 0.0)


def _rows(context: Any, builder: Any, signature: Any, arguments: Any, u: Any) -> Any:
    """The number of components, and the addresses of row u of a, mean and g."""
    (size, a), (_, mean), (_, g) = (
        matrix(context, builder, signature.args[i], arguments[i]) for i in range(3)
    )
    return size, a(u), mean(u), g(u)


def _is_there(builder: Any, k: Any, size: Any) -> Lanes:
    """Which of the components from k on there are; those beyond are padding."""
    return numbered(builder, LANES) < builder.trunc(builder.sub(size, k), INT32)


def _constant(number: Any, value: float) -> Any:
    return ir.Constant(ir.VectorType(number, LANES), [value] * LANES)
