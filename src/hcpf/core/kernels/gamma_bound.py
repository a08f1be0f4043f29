"""What the gamma posteriors of one row add to the ELBO, eight components at a time in float64."""

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hcpf.core.kernels.lanes import DOUBLE, FLOAT, INT32, INT64, Lanes, load_some, numbered, splat
from hcpf.core.kernels.vector import matrix

_COUNT = 8  # components in a vector, and steps of the recurrence of log gamma and digamma
_MANTISSA_BITS, _BIAS = 52, 1023
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@intrinsic
def gamma_row_bound(typing_context, a, mean, u, shape):
    """Sum E log p(s) + H[s] over the components of row u, without what the activity adds.

    That is log Gamma(a) + (shape - a) digamma(a) + a - shape log(a / mean) for each component.
    Returns the sum of the means, too.

    With z = a + 8 and P = a (a + 1) ... (a + 7), log Gamma(a) = log Gamma(z) - log P and digamma(a)
    = digamma(z) - sum 1 / (a + j). Terms of the size of a cancel on paper. Logarithms are taken of
    products over components.
    """

    def generate(context, builder, signature, arguments):
        size, at_a = matrix(context, builder, signature.args[0], arguments[0])
        _, at_mean = matrix(context, builder, signature.args[1], arguments[1])
        row_a, row_mean = at_a(arguments[2]), at_mean(arguments[2])
        shape = splat(builder, arguments[3], _COUNT)
        sums = [cgutils.alloca_once_value(builder, _constant(0.0)) for _ in range(2)]
        products = [_Product(builder) for _ in range(4)]
        with cgutils.for_range_slice(builder, INT64(0), size, INT64(_COUNT)) as (k, _):
            is_there = numbered(builder, _COUNT) < builder.trunc(builder.sub(size, k), INT32)
            one = Lanes(builder, ir.Constant(ir.VectorType(FLOAT, _COUNT), [1.0] * _COUNT))
            a, mean = (
                load_some(builder, builder.gep(row, [k]), is_there, one).to(DOUBLE)
                for row in (row_a, row_mean)
            )
            z, rising, rest = _parts(a, shape)
            for total, value in zip(sums, (rest, mean), strict=True):
                value = value.where(is_there, 0.0)
                builder.store((Lanes(builder, builder.load(total)) + value).value, total)
            ones = z.where(is_there, 1.0), rising.where(is_there, 1.0), a, mean
            for product, factor in zip(products, ones, strict=True):
                product.multiply(factor)
        bound, sum_of_means = (Lanes(builder, builder.load(total)).sum() for total in sums)
        log_z, log_rising, log_a, log_mean = (product.log() for product in products)
        weights = builder.fadd(arguments[3], DOUBLE(_COUNT - 0.5)), arguments[3]
        bound = builder.fadd(bound, builder.fmul(weights[0], log_z))
        bound = builder.fsub(bound, log_rising)
        bound = builder.fsub(bound, builder.fmul(weights[1], builder.fsub(log_a, log_mean)))
        return context.make_tuple(builder, signature.return_type, [bound, sum_of_means])

    pair = types.UniTuple(types.float64, 2)
    return pair(a, mean, types.intp, types.float64), generate


def _parts(a: Lanes, shape: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return z, P and what is not a logarithm; see ``gamma_row_bound``."""
    z = a + float(_COUNT)
    outer, twice = a * (a + 7.0), a + a + 7.0
    low, high = outer * (outer + 6.0), (outer + 10.0) * (outer + 12.0)
    rising = low * high
    inverse = splat(a.builder, DOUBLE(1.0), _COUNT) / (rising * z)
    r = rising * inverse  # 1 / z
    pairs = (outer + outer + 6.0) * high + (outer + outer + 22.0) * low
    inverses = twice * pairs * (z * inverse)  # the sum of 1 / (a + j)
    r2 = r * r
    gamma = r * (((r2 * (1 / 1188) - 1 / 1680) * r2 + 1 / 1260) * r2 - 1 / 360) * r2 + r * (1 / 12)
    tail = (((r2 * (1 / 132) - 1 / 240) * r2 + 1 / 252) * r2 - 1 / 120) * r2 + 1 / 12
    digamma = r * 0.5 + r2 * tail + inverses  # less than log z
    rest = gamma + (_HALF_LOG_2_PI - _COUNT) - (shape - a) * digamma
    return z, rising, rest


class _Product:
    """The logarithm of a product of many numbers, which float64 itself might not hold."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        whole = ir.Constant(ir.VectorType(INT64, _COUNT), [0] * _COUNT)
        self._exponent = cgutils.alloca_once_value(builder, whole)
        self._mantissa = cgutils.alloca_once_value(builder, _constant(1.0))

    def multiply(self, factor: Lanes) -> None:
        """Multiply with positive numbers; the mantissa stays from 1 to 2."""
        builder = self._builder
        bits = (Lanes(builder, builder.load(self._mantissa)) * factor).bits_as(INT64)
        exponent = Lanes(builder, builder.load(self._exponent)) + (bits >> _MANTISSA_BITS) - _BIAS
        mantissa = (bits & ((1 << _MANTISSA_BITS) - 1)) + (_BIAS << _MANTISSA_BITS)
        builder.store(exponent.value, self._exponent)
        builder.store(mantissa.bits_as(DOUBLE).value, self._mantissa)

    def log(self) -> Any:
        """Return the logarithm of the product of all lanes, as a value of LLVM's."""
        builder = self._builder
        exponent = Lanes(builder, builder.load(self._exponent)).sum()
        mantissa = Lanes(builder, builder.load(self._mantissa)).product()
        kind = ir.FunctionType(DOUBLE, [DOUBLE])
        log = cgutils.get_or_insert_function(builder.module, kind, "llvm.log.f64")
        twos = builder.fmul(builder.sitofp(exponent, DOUBLE), DOUBLE(math.log(2.0)))
        return builder.fadd(twos, builder.call(log, [mantissa]))


def _constant(value: float) -> Any:
    return ir.Constant(ir.VectorType(DOUBLE, _COUNT), [value] * _COUNT)
