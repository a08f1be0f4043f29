"""Vectors in LLVM's code with Python's operators, for the innermost loops to be written in."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from hcpf.core.kernels.scalars import LOG2_E

FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
INT32, INT64 = ir.IntType(32), ir.IntType(64)
_FLAGS = ("contract", "nsz")  # a product and a sum may be one instruction


class Lanes:
    """A vector of LLVM's, of numbers or of truth values; other operands may be single numbers."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def __add__(self, other: Any) -> "Lanes":
        return self._arithmetic("add", other)

    def __sub__(self, other: Any) -> "Lanes":
        return self._arithmetic("sub", other)

    def __mul__(self, other: Any) -> "Lanes":
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Any) -> "Lanes":
        return self._arithmetic("div", other)

    def __and__(self, other: Any) -> "Lanes":
        return self._make(self.builder.and_(self.value, self._like(other)))

    def __lshift__(self, bits: int) -> "Lanes":
        return self._make(self.builder.shl(self.value, self._like(bits)))

    def __rshift__(self, bits: int) -> "Lanes":
        return self._make(self.builder.ashr(self.value, self._like(bits)))

    def __lt__(self, other: Any) -> "Lanes":
        return self._compare("<", other)

    def __gt__(self, other: Any) -> "Lanes":
        return self._compare(">", other)

    def __ge__(self, other: Any) -> "Lanes":
        return self._compare(">=", other)

    def where(self, mask: "Lanes", otherwise: Any) -> "Lanes":
        """These lanes where the mask is true."""
        return self._make(self.builder.select(mask.value, self.value, self._like(otherwise)))

    def at_least(self, bound: Any) -> "Lanes":
        """The larger of the two; the bound where a lane is not a number."""
        return self.where(self > bound, bound)

    def at_most(self, bound: Any) -> "Lanes":
        """The smaller of the two; the bound where a lane is not a number."""
        return self.where(self < bound, bound)

    def floor(self) -> "Lanes":
        """Return the next integer below."""
        kind = self.value.type
        function = ir.FunctionType(kind, [kind])
        name = f"llvm.floor.v{kind.count}f32"
        floor = cgutils.get_or_insert_function(self.builder.module, function, name)
        return self._make(self.builder.call(floor, [self.value]))

    def to(self, number: Any) -> "Lanes":
        """The same numbers as another type; fractions are cut off."""
        before, kind = self.value.type.element, ir.VectorType(number, self.value.type.count)
        cast = {
            (FLOAT, DOUBLE): self.builder.fpext,
            (DOUBLE, FLOAT): self.builder.fptrunc,
            (FLOAT, INT32): self.builder.fptosi,
            (INT32, FLOAT): self.builder.sitofp,
            (INT32, INT64): self.builder.zext,
        }[before, number]
        return self._make(cast(self.value, kind))

    def bits_as(self, number: Any) -> "Lanes":
        """The same bits read as another type."""
        kind = ir.VectorType(number, self.value.type.count)
        return self._make(self.builder.bitcast(self.value, kind))

    def pick(self, lanes: list[int], other: "Lanes | None" = None) -> "Lanes":
        """Some lanes, in this order; those of ``other`` are numbered on from one's own."""
        second = self.value if other is None else other.value
        mask = ir.Constant(ir.VectorType(INT32, len(lanes)), lanes)
        return self._make(self.builder.shuffle_vector(self.value, second, mask))

    def lane(self, number: int) -> Any:
        """One lane, as a value of LLVM's."""
        return self.builder.extract_element(self.value, INT32(number))

    def sum(self) -> Any:
        """The sum of all lanes, as a value of LLVM's."""
        return self._fold(lambda low, high: low + high)

    def product(self) -> Any:
        """The product of all lanes, as a value of LLVM's."""
        return self._fold(lambda low, high: low * high)

    def least(self) -> Any:
        """The smallest of all lanes, as a value of LLVM's."""
        return self._fold(lambda low, high: low.at_most(high))

    def all(self) -> Any:
        """Whether all truth values are true, as a value of LLVM's."""
        whole = ir.IntType(self.value.type.count)
        return self.builder.icmp_unsigned("==", self.builder.bitcast(self.value, whole), whole(-1))

    def any(self) -> Any:
        """Whether some truth value is true, as a value of LLVM's."""
        whole = ir.IntType(self.value.type.count)
        return self.builder.icmp_unsigned("!=", self.builder.bitcast(self.value, whole), whole(0))

    def _fold(self, join: Callable[["Lanes", "Lanes"], "Lanes"]) -> Any:
        lanes = self
        while (size := lanes.value.type.count) > 1:
            low, high = list(range(size // 2)), list(range(size // 2, size))
            lanes = join(lanes.pick(low), lanes.pick(high))
        return lanes.lane(0)

    def _arithmetic(self, name: str, other: Any) -> "Lanes":
        if self.value.type.element in (FLOAT, DOUBLE):
            operation = getattr(self.builder, f"f{name}")
            return self._make(operation(self.value, self._like(other), flags=_FLAGS))
        return self._make(getattr(self.builder, name)(self.value, self._like(other)))

    def _compare(self, relation: str, other: Any) -> "Lanes":
        is_float = self.value.type.element in (FLOAT, DOUBLE)
        compare = self.builder.fcmp_ordered if is_float else self.builder.icmp_signed
        return self._make(compare(relation, self.value, self._like(other)))

    def _like(self, other: Any) -> Any:
        """Another operand as a vector of the same kind."""
        if isinstance(other, Lanes):
            return other.value
        kind = self.value.type
        if isinstance(other, int | float):
            return ir.Constant(kind, [other] * kind.count)
        return splat(self.builder, other, kind.count).value

    def _make(self, value: Any) -> "Lanes":
        return Lanes(self.builder, value)


def splat(builder: Any, number: Any, count: int) -> Lanes:
    """A number in all lanes."""
    kind = ir.VectorType(number.type, count)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, INT32(0))
    return Lanes(builder, first).pick([0] * count)


def pack(builder: Any, numbers: list[Any]) -> Lanes:
    """Single numbers, a lane each."""
    vector = ir.Constant(ir.VectorType(numbers[0].type, len(numbers)), ir.Undefined)
    for lane, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, INT32(lane))
    return Lanes(builder, vector)


def numbered(builder: Any, count: int) -> Lanes:
    """0, 1, 2, ..."""
    return Lanes(builder, ir.Constant(ir.VectorType(INT32, count), list(range(count))))


def load(builder: Any, place: Any, number: Any, count: int) -> Lanes:
    """Numbers one after another in memory, anywhere."""
    kind = ir.VectorType(number, count)
    value = builder.load(builder.bitcast(place, kind.as_pointer()), typ=kind)
    value.align = 4
    return Lanes(builder, value)


def store(lanes: Lanes, place: Any) -> None:
    """Write lanes one after another."""
    builder, value = lanes.builder, lanes.value
    stored = builder.store(value, builder.bitcast(place, value.type.as_pointer()))
    stored.align = 4


def load_some(builder: Any, place: Any, mask: Lanes, otherwise: Lanes) -> Lanes:
    """Read the lanes where the mask is true."""
    kind = otherwise.value.type
    arguments = [ir.PointerType(), INT32, mask.value.type, kind]
    name = f"llvm.masked.load.v{kind.count}f32.p0"
    function = ir.FunctionType(kind, arguments)
    masked = cgutils.get_or_insert_function(builder.module, function, name)
    pointer = builder.bitcast(place, ir.PointerType())
    return Lanes(builder, builder.call(masked, [pointer, INT32(4), mask.value, otherwise.value]))


def store_some(lanes: Lanes, place: Any, mask: Lanes) -> None:
    """Write the lanes where the mask is true."""
    builder, kind = lanes.builder, lanes.value.type
    function = ir.FunctionType(ir.VoidType(), [kind, ir.PointerType(), INT32, mask.value.type])
    name = f"llvm.masked.store.v{kind.count}f32.p0"
    masked = cgutils.get_or_insert_function(builder.module, function, name)
    pointer = builder.bitcast(place, ir.PointerType())
    builder.call(masked, [lanes.value, pointer, INT32(4), mask.value])


# log 2 in two parts: products of a small integer with the first, which has few digits, are exact.
_LOG_2_HIGH, _LOG_2_LOW = 0.693359375, -2.12194440e-4
# Polynomial of 2^r, within 2e-9 of it for r from -1/2 to 1/2.
_POWER_SERIES = (
    1.0, 0.6931472056, 0.2402264661, 0.0555032900, 0.0096185195, 0.0013399860, 0.0001533758,
)  # fmt: skip


def exponential(x: Lanes) -> Lanes:
    """Return e^x of float32 from -87 to 88: 2^n e^r with r within log(2)/2 of 0."""
    n = (x * LOG2_E + 0.5).floor()
    r = x - n * _LOG_2_HIGH - n * _LOG_2_LOW
    return _scaled_power(n, r * LOG2_E)


def power_of_two(x: Lanes) -> Lanes:
    """Return 2^x of float32 from -126 to 127; outside, the result is arbitrary."""
    n = (x + 0.5).floor()
    return _scaled_power(n, x - n)


def _scaled_power(n: Lanes, r: Lanes) -> Lanes:
    """Return 2^(n + r) for integer n and r from -1/2 to 1/2.

    The polynomial is split into parts that do not wait for each other, unlike Horner's scheme.
    """
    c0, c1, c2, c3, c4, c5, c6 = _POWER_SERIES
    r2 = r * r
    high = (r * c5 + c4) + r2 * c6
    series = (r * c1 + c0) + r2 * ((r * c3 + c2) + r2 * high)
    return series * ((n.to(INT32) + 127) << 23).bits_as(FLOAT)
