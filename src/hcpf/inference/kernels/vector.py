"""The innermost loops in vector instructions: four rows at a time, sixteen components each.

Written for LLVM directly because its own vectoriser spends more on the odd components at the end
of a row, and on summing across lanes, than on the rest. Rows are stored padded with zeros to a
multiple of ``LANES``, and begin on a cache line. LLVM splits or joins the vectors to suit the
machine, so nothing here depends on its width.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hcpf.inference.jit import FAST
from hcpf.inference.kernels.scalars import EXP_SERIES, LOG2_E, LOG_2_HIGH, LOG_2_LOW

LANES = 16
"""float32 values in a vector, and in a cache line."""

_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR, _QUAD = ir.VectorType(_FLOAT, LANES), ir.VectorType(_FLOAT, 4)
_FOUR_ROWS, _FOUR_VALUES = types.UniTuple(types.intp, 4), types.UniTuple(types.float32, 4)


def padded_rows(rows: int, size: int) -> np.ndarray:
    """Zeros of shape (rows, size up to the next multiple of LANES), on cache-line boundaries."""
    width = -(-size // LANES) * LANES
    line = 4 * LANES
    memory = np.zeros(4 * rows * width + line, np.uint8)
    begin = -memory.ctypes.data % line
    return memory[begin : begin + 4 * rows * width].view(np.float32).reshape(rows, width)


@intrinsic
def dot_four(typing_context, g, u, h, rows, ahead):
    """Dot products of row u of g with four rows of h; the four rows ``ahead`` are fetched too.

    Those lie anywhere in h and come from a distant cache, so they are asked for early.
    """

    def generate(context, builder, signature, arguments):
        width, at_g = _matrix(context, builder, signature.args[0], arguments[0])
        _, at_h = _matrix(context, builder, signature.args[2], arguments[2])
        own = at_g(arguments[1])
        near = [at_h(i) for i in cgutils.unpack_tuple(builder, arguments[3], 4)]
        far = [at_h(i) for i in cgutils.unpack_tuple(builder, arguments[4], 4)]
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in near]
        with cgutils.for_range_slice(builder, _INT64(0), width, _INT64(LANES)) as (k, _):
            s = _load(builder, builder.gep(own, [k]), _VECTOR)
            for total, row, next_row in zip(sums, near, far, strict=True):
                h_row = _load(builder, builder.gep(row, [k]), _VECTOR)
                builder.store(_multiply_add(builder, s, h_row, builder.load(total)), total)
                _prefetch(builder, builder.gep(next_row, [k]))
        dots = [_sum_lanes(builder, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, dots)

    return _FOUR_VALUES(g, types.intp, h, _FOUR_ROWS, _FOUR_ROWS), generate


@intrinsic
def add_four(typing_context, total, h, rows, weights):
    """Add four weighted rows of h to ``total``, which is as wide as they are."""

    def generate(context, builder, signature, arguments):
        width, at_h = _matrix(context, builder, signature.args[1], arguments[1])
        out = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        near = [at_h(i) for i in cgutils.unpack_tuple(builder, arguments[2], 4)]
        weights = cgutils.unpack_tuple(builder, arguments[3], 4)
        weights = [_splat(builder, weight, _VECTOR) for weight in weights]
        with cgutils.for_range_slice(builder, _INT64(0), width, _INT64(LANES)) as (k, _):
            place = builder.gep(out, [k])
            value = _load(builder, place, _VECTOR)
            for weight, row in zip(weights, near, strict=True):
                h_row = _load(builder, builder.gep(row, [k]), _VECTOR)
                value = _multiply_add(builder, weight, h_row, value)
            stored = builder.store(value, builder.bitcast(place, _VECTOR.as_pointer()))
            stored.align = 4
        return context.get_dummy_value()

    return types.void(total, h, _FOUR_ROWS, _FOUR_VALUES), generate


@intrinsic
def bicubic(typing_context, table, position, t, s):
    """Sum of c[p, q] s^p t^q, the 4 x 4 coefficients c at ``position`` of the flat table."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        position, t, s = arguments[1:]
        s = _splat(builder, s, _QUAD)
        rows = [
            _load(builder, builder.gep(data, [builder.add(position, _INT64(4 * p))]), _QUAD)
            for p in range(4)
        ]
        in_t = rows[3]
        for row in rows[2::-1]:
            in_t = _multiply_add(builder, in_t, s, row)
        value = builder.extract_element(in_t, _INT32(3))
        for q in (2, 1, 0):
            value = _multiply_add(builder, value, t, builder.extract_element(in_t, _INT32(q)))
        return value

    return types.float32(table, types.intp, types.float32, types.float32), generate


@intrinsic
def exp_four(typing_context, values):
    """Exponentials of four values from -87 to 80; those beyond count as if they were there.

    2^n e^r with r within log(2)/2 of 0, and e^r by the polynomial of ``scalars.fast_exp``.
    """

    def generate(context, builder, signature, arguments):
        values = cgutils.unpack_tuple(builder, arguments[0], 4)
        x = ir.Constant(_QUAD, ir.Undefined)
        for lane, value in enumerate(values):
            x = builder.insert_element(x, value, _INT32(lane))
        x = _call(builder, "llvm.minnum", _call(builder, "llvm.maxnum", x, _all(-87.0)), _all(80.0))
        n = _call(builder, "llvm.floor", _multiply_add(builder, x, _all(LOG2_E), _all(0.5)))
        r = _multiply_add(builder, n, _all(-LOG_2_HIGH), x)
        r = _multiply_add(builder, n, _all(-LOG_2_LOW), r)
        p = _all(EXP_SERIES[0])
        for coefficient in (*EXP_SERIES[1:], 1.0, 1.0):
            p = _multiply_add(builder, p, r, _all(coefficient))
        integers = ir.VectorType(_INT32, 4)
        power = builder.add(builder.fptosi(n, integers), ir.Constant(integers, [127] * 4))
        power = builder.bitcast(builder.shl(power, ir.Constant(integers, [23] * 4)), _QUAD)
        result = builder.fmul(p, power)
        lanes = [builder.extract_element(result, _INT32(lane)) for lane in range(4)]
        return context.make_tuple(builder, signature.return_type, lanes)

    return _FOUR_VALUES(_FOUR_VALUES), generate


def _all(value: float) -> Any:
    return ir.Constant(_QUAD, [float(np.float32(value))] * 4)


def _call(builder: Any, name: str, *arguments: Any) -> Any:
    kind = ir.FunctionType(_QUAD, [_QUAD] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, kind, f"{name}.v4f32")
    return builder.call(function, arguments)


def _matrix(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Width of a contiguous matrix, and a function from a row's number to its address."""
    matrix = context.make_array(kind)(context, builder, value)
    width = cgutils.unpack_tuple(builder, matrix.shape, 2)[1]
    return width, lambda row: builder.gep(matrix.data, [builder.mul(row, width)])


def _load(builder: Any, place: Any, kind: Any) -> Any:
    value = builder.load(builder.bitcast(place, kind.as_pointer()), typ=kind)
    value.align = 4  # other arrays than padded_rows may come in
    return value


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    suffix = "f32" if a.type == _FLOAT else f"v{a.type.count}f32"
    kind = ir.FunctionType(a.type, [a.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.{suffix}")
    return builder.call(function, [a, b, c])


def _sum_lanes(builder: Any, vector: Any) -> Any:
    kind = ir.FunctionType(_FLOAT, [_FLOAT, vector.type])
    name = f"llvm.vector.reduce.fadd.v{vector.type.count}f32"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [ir.Constant(_FLOAT, 0.0), vector], fastmath=tuple(sorted(FAST)))


def _splat(builder: Any, value: Any, kind: Any) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, _INT32(0))
    everywhere = ir.Constant(ir.VectorType(_INT32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, undefined, everywhere)


def _prefetch(builder: Any, place: Any) -> None:
    pointer = ir.PointerType()
    kind = ir.FunctionType(ir.VoidType(), [pointer, _INT32, _INT32, _INT32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # for reading, to be kept in all caches, data rather than instructions
    builder.call(function, [builder.bitcast(place, pointer), _INT32(0), _INT32(3), _INT32(1)])
