"""Pieces of LLVM code that work on vectors; what numba compiles can call them."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

#: How many numbers an instruction works on, at best. Where the machine's vectors are shorter, LLVM takes several.
LANES = 16

_MACHINE, _, _FEATURES = cpu_target.target_context.codegen().magic_tuple()
#: Whether the machine has 32 registers with this many lanes.
HAS_WIDE_REGISTERS = "+avx512f" in _FEATURES
#: Can it multiply a vector by any lane of another? Where it cannot, it reads a factor from memory as fast.
MULTIPLIES_BY_LANE = _MACHINE.startswith(("aarch64", "arm64"))
#: Does it read half-precision numbers? Where it does not, LLVM calls a function for it that need not be there.
READS_HALVES = "+f16c" in _FEATURES or MULTIPLIES_BY_LANE

INDEX = ir.IntType(64)
SINGLES = ir.VectorType(ir.FloatType(), LANES)
HALVES = ir.VectorType(ir.HalfType(), LANES)
INTEGERS = ir.VectorType(ir.IntType(32), LANES)


def generated(define: Callable[..., Any]) -> Callable[..., Any]:
    """A function for compiled code whose own code is generated, not compiled from python."""
    return intrinsic(define)  # type: ignore[no-any-return, unused-ignore]


def equal(number: float) -> Any:
    """A constant vector of equal numbers."""
    return ir.Constant(SINGLES, [number] * LANES)


def spread(builder: Any, number: Any) -> Any:
    """A vector of the same number everywhere."""
    vector = ir.VectorType(number.type, LANES)
    undefined = ir.Constant(vector, ir.Undefined)
    alone = builder.insert_element(undefined, number, ir.IntType(32)(0))
    return builder.shuffle_vector(alone, undefined, ir.Constant(INTEGERS, [0] * LANES))


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """What one of LLVM's own functions gives, of which vectors of singles have a version each."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, arguments)


def fused(builder: Any, one: Any, other: Any, added: Any) -> Any:
    """`one * other + added`, rounded once."""
    return call(builder, "fma", SINGLES, one, other, added)


def place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Where an array of that type has its entry `at`, counted through all its axes."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def vector_at(builder: Any, pointer: Any, number: int, kind: Any = SINGLES) -> Any:
    """Where the vector of that number lies behind a pointer to single entries."""
    return builder.bitcast(builder.gep(pointer, [INDEX(number * LANES)]), kind.as_pointer())


def consecutive(builder: Any, pointer: Any, count: int) -> list[Any]:
    """So many single numbers behind a pointer, read together."""
    if count == 1:
        return [builder.load(pointer)]
    read = builder.load(builder.bitcast(pointer, ir.VectorType(ir.FloatType(), count).as_pointer()), align=4)
    return [builder.extract_element(read, ir.IntType(32)(number)) for number in range(count)]


def loop(
    builder: Any, first: Any, end: Any, step: int, carried: list[Any], turn: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """What becomes of the values `carried` from turn to turn, for the numbers from `first` up to `end`."""
    before, test, body, after = builder.block, *(builder.append_basic_block() for _ in range(3))
    builder.branch(test)
    builder.position_at_end(test)
    number, *current = [builder.phi(value.type) for value in (first, *carried)]
    builder.cbranch(builder.icmp_signed("<", number, end), body, after)
    builder.position_at_end(body)
    following = [builder.add(number, INDEX(step)), *turn(number, current)]
    for value, begun, next_ in zip((number, *current), (first, *carried), following, strict=True):
        value.add_incoming(begun, before)
        value.add_incoming(next_, builder.block)
    builder.branch(test)
    builder.position_at_end(after)
    return current


@generated
def stays_one(typing: Any) -> Any:
    """Keep the function that calls this in one place; LLVM would put copies of it wherever it is called from."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate
