"""A hint to the processor that a row of a matrix will be read soon."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LINE = 16  # float32 values in one cache line


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line that holds element ``index`` of a contiguous array."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        pointer = ir.PointerType()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # for reading, to be kept in all caches, data rather than instructions
        builder.call(hint, [builder.bitcast(address, pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
