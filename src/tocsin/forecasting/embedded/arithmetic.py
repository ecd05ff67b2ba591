"""Arithmetic in LLVM code that compiled loops can call: matrix products, the softmax of attention, exponentials.

A library's product adds in an order that depends on how many rows share the call, so that a signal's last digits
would depend on its neighbours. Here each entry is a chain of fused multiply-adds from the first term to the last. Tiles
of rows and columns are computed together for speed only: they share what is loaded, never a sum.

Unlike a library's, exponentials and logarithms in plain arithmetic vectorise within compiled loops, and are the same
bits in any loop and on any machine.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner

#: A score in attention that makes a patch invisible.
UNSEEN = -1e30
#: How many numbers one instruction processes, at best. If the machine's vectors are shorter, LLVM uses several.
LANES = 16

_MACHINE, _, _FEATURES = cpu_target.target_context.codegen().magic_tuple()
#: Whether the machine has 32 registers with this many lanes.
HAS_WIDE_REGISTERS = "+avx512f" in _FEATURES
#: Whether it can multiply a vector by any lane of another. If not, reading a factor from memory is as fast.
MULTIPLIES_BY_LANE = _MACHINE.startswith(("aarch64", "arm64"))
#: Whether it reads half-precision numbers. If not, LLVM calls a function that may be missing.
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
    """Call the version of one of LLVM's own functions for vectors of singles."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, arguments)


def fused(builder: Any, one: Any, other: Any, added: Any) -> Any:
    """`one * other + added`, rounded once."""
    return call(builder, "fma", SINGLES, one, other, added)


def place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """A pointer to entry `at` of an array of that type, counted through all its axes."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def vector_at(builder: Any, pointer: Any, number: int, kind: Any = SINGLES) -> Any:
    """A pointer to the vector with this number, counted from a pointer to single entries."""
    return builder.bitcast(builder.gep(pointer, [INDEX(number * LANES)]), kind.as_pointer())


def consecutive(builder: Any, pointer: Any, count: int) -> list[Any]:
    """This many single numbers from a pointer on, read together."""
    if count == 1:
        return [builder.load(pointer)]
    read = builder.load(builder.bitcast(pointer, ir.VectorType(ir.FloatType(), count).as_pointer()), align=4)
    return [builder.extract_element(read, ir.IntType(32)(number)) for number in range(count)]


def loop(
    builder: Any, first: Any, end: Any, step: int, carried: list[Any], turn: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """A loop over the numbers from `first` up to `end`; returns the values `carried` from turn to turn."""
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
    """Keep LLVM from inlining the function that calls this."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


_inner = inner()


@generated
def _two_to_the(typing: Any, whole: Any) -> Any:
    """2 to the power of a whole number (a double, within the range of exponents)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(64)
        exponent = builder.add(builder.fptosi(arguments[0], integer), integer(1023))
        return builder.bitcast(builder.shl(exponent, integer(52)), ir.DoubleType())

    return types.float64(types.float64), generate


@generated
def bits_of(typing: Any, number: Any) -> Any:
    """The bits of a double."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@generated
def _double(typing: Any, bits: Any) -> Any:
    """The double that has these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


_LOG2_E = 1.4426950408889634
# The logarithm of 2 in two parts: multiples of the first are exact.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_SQRT2 = 1.4142135623730951
_MANTISSA, _ONE = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000


@_inner
def exp(x: float) -> float:
    """The exponential of a number between -700 and 700, within 3e-16 of it."""
    whole: float = np.floor(x * _LOG2_E + 0.5)
    r = x - whole * _LN2_HIGH - whole * _LN2_LOW
    series = ((r * (1.0 / 479001600.0) + 1.0 / 39916800.0) * r + 1.0 / 3628800.0) * r + 1.0 / 362880.0
    series = (((series * r + 1.0 / 40320.0) * r + 1.0 / 5040.0) * r + 1.0 / 720.0) * r + 1.0 / 120.0
    series = ((((series * r + 1.0 / 24.0) * r + 1.0 / 6.0) * r + 0.5) * r + 1.0) * r + 1.0
    power: float = _two_to_the(whole)
    return series * power


@_inner
def log(x: float) -> float:
    """The logarithm of a number that is neither 0 nor denormal nor infinite, within 3e-16 or a rounding of it."""
    bits = bits_of(x)
    exponent = (bits >> 52) - 1023
    mantissa: float = _double((bits & _MANTISSA) | _ONE)
    large = mantissa > _SQRT2
    mantissa = 0.5 * mantissa if large else mantissa
    whole = float(exponent + 1 if large else exponent)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = ((z * (1.0 / 21.0) + 1.0 / 19.0) * z + 1.0 / 17.0) * z + 1.0 / 15.0
    series = (((series * z + 1.0 / 13.0) * z + 1.0 / 11.0) * z + 1.0 / 9.0) * z + 1.0 / 7.0
    series = ((series * z + 1.0 / 5.0) * z + 1.0 / 3.0) * z + 1.0
    return whole * _LN2_HIGH + (whole * _LN2_LOW + 2.0 * s * series)


@_inner
def asinh(x: float) -> float:
    """The inverse of sinh, of a number that is at most 1e150 from 0; within 3e-16, or a few roundings, of it."""
    size = abs(x)
    result = log(size + np.sqrt(size * size + 1.0))
    return result if x >= 0.0 else -result


@_inner
def sinh(x: float) -> float:
    """The hyperbolic sine of a number between -700 and 700; within 3e-16, or a few roundings, of it."""
    up = exp(x)
    return 0.5 * (up - 1.0 / up)


@_inner
def softplus(x: float) -> float:
    """log(1 + e^x)."""
    return max(x, 0.0) + log(1.0 + exp(-min(abs(x), 700.0)))


@_inner
def sigmoid(x: float) -> float:
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + exp(-min(max(x, -700.0), 700.0)))


# e^x = 2^k e^r. The logarithm of 2 is in two parts, and multiples of the first are exact; e^r by Cephes' expf.
_LN2_HIGH_SINGLE, _LN2_LOW_SINGLE = 0.693359375, -2.12194440e-4
_COEFFICIENTS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5, 1.0, 1.0)
# Below this the exponential counts as 0.
_LOWEST = -87.0


def _exponentials(builder: Any, x: Any) -> Any:
    """The exponentials of numbers <= 0, each within 2e-7 of itself."""
    counts = builder.fcmp_ordered(">", x, equal(_LOWEST))
    bounded = builder.select(counts, x, equal(_LOWEST))
    whole = call(builder, "floor", SINGLES, fused(builder, bounded, equal(_LOG2_E), equal(0.5)))
    rest = fused(builder, whole, equal(-_LN2_LOW_SINGLE), fused(builder, whole, equal(-_LN2_HIGH_SINGLE), bounded))
    series = equal(_COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        series = fused(builder, series, rest, equal(coefficient))
    exponent = builder.add(builder.fptosi(whole, INTEGERS), ir.Constant(INTEGERS, [127] * LANES))
    power = builder.bitcast(builder.shl(exponent, ir.Constant(INTEGERS, [23] * LANES)), SINGLES)
    return builder.select(counts, builder.fmul(series, power), equal(0.0))


@generated
def shares(typing: Any, scores: Any, at: Any, unseen: Any, unseen_at: Any, count: Any) -> Any:
    """Turn `count` scores, from the entry `at` on, into what each key's value counts; returns the sum to divide by.

    To each score is first added what `unseen` holds for its key. The sum includes one more score, of 0, which is always
    there. Whole vectors are worked on: what follows the last score becomes 0.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scores, at, unseen, unseen_at, count = arguments
        row = vector_at(builder, place(context, builder, signature.args[0], scores, at), 0)
        added = vector_at(builder, place(context, builder, signature.args[2], unseen, unseen_at), 0)
        vectors = builder.sdiv(builder.add(count, INDEX(LANES - 1)), INDEX(LANES))
        lanes = ir.Constant(INTEGERS, list(range(LANES)))
        highest, total = cgutils.alloca_once_value(builder, equal(0.0)), cgutils.alloca_once_value(builder, equal(0.0))
        with cgutils.for_range(builder, vectors) as loop:
            here = builder.gep(row, [loop.index])
            score = builder.fadd(builder.load(here, align=4), builder.load(builder.gep(added, [loop.index]), align=4))
            left = builder.trunc(builder.sub(count, builder.mul(loop.index, INDEX(LANES))), ir.IntType(32))
            score = builder.select(builder.icmp_signed("<", lanes, spread(builder, left)), score, equal(UNSEEN))
            builder.store(score, here, align=4)
            so_far = builder.load(highest)
            builder.store(builder.select(builder.fcmp_ordered(">", score, so_far), score, so_far), highest)
        # The largest does not depend on the order, and a sum that must not be reordered has its fixed one.
        top = spread(builder, call(builder, "vector.reduce.fmax", ir.FloatType(), builder.load(highest)))
        with cgutils.for_range(builder, vectors) as loop:
            here = builder.gep(row, [loop.index])
            share = _exponentials(builder, builder.fsub(builder.load(here, align=4), top))
            builder.store(share, here, align=4)
            builder.store(builder.fadd(builder.load(total), share), total)
        always = builder.extract_element(_exponentials(builder, builder.fsub(equal(0.0), top)), ir.IntType(32)(0))
        return call(builder, "vector.reduce.fadd", ir.FloatType(), always, builder.load(total))

    entry = types.intp
    return types.float32(scores, entry, unseen, entry, entry), generate


Array = NDArray[Any]

_exact = compiled(with_folder=True)

#: Matrices are stored in panels with this many columns, each panel contiguous.
PANEL = 2 * LANES
# The rows and the vectors of columns that are multiplied together: as many as the registers have room for their sums.
# If a factor can come from any lane of a register, there is room for the next terms of each row, too.
_TILE = 5 if MULTIPLIES_BY_LANE else 6
_VECTORS = 2 if HAS_WIDE_REGISTERS else 1
_TERMS = 4 if MULTIPLIES_BY_LANE else 1
# Heads that share their keys and values are multiplied with them together.
_HEADS = 3


def _load(builder: Any, pointer: Any, number: int, is_half: bool) -> Any:
    """The vector with this number, from a pointer to singles or to the bits of half-precision numbers."""
    if is_half:
        return builder.fpext(builder.load(vector_at(builder, pointer, number, HALVES), align=2), SINGLES)
    return builder.load(vector_at(builder, pointer, number), align=4)


def _tile(rows: int, vectors: int, *, adds: bool = False) -> Callable[..., Any]:
    """A function that multiplies some rows with `vectors` times `LANES` columns.

    `out[r, c] = sum over k of left[r, k] * right[k, c]`, in the order of k; if it `adds`, the sum begins with what
    `out` holds. Each array comes with the entry where it begins and the distance between rows, in entries. The right
    side may be the bits of half-precision numbers.
    """

    def define(
        typing: Any, left: Any, left_at: Any, left_step: Any, right: Any, right_at: Any, right_step: Any, depth: Any,
        out: Any, out_at: Any, out_step: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            left, left_at, left_step, right, right_at, right_step, depth, out, out_at, out_step = arguments

            def row_of(number: int, kind: Any, array: Any, at: Any, step: Any) -> Any:
                return place(context, builder, kind, array, builder.add(at, builder.mul(step, INDEX(number))))

            left_rows = [row_of(row, signature.args[0], left, left_at, left_step) for row in range(rows)]
            out_rows = [row_of(row, signature.args[7], out, out_at, out_step) for row in range(rows)]
            right_first = place(context, builder, signature.args[3], right, right_at)
            results = [vector_at(builder, row, column) for row in out_rows for column in range(vectors)]

            def add_terms(together: int) -> Callable[[Any, list[Any]], list[Any]]:
                """Add terms to each sum, in their order; the sums are in the order of rows and columns."""

                def add(k: Any, sums: list[Any]) -> list[Any]:
                    numbers = [consecutive(builder, builder.gep(row, [k]), together) for row in left_rows]
                    for term in range(together):
                        right_row = builder.gep(right_first, [builder.mul(builder.add(k, INDEX(term)), right_step)])
                        factors = [_load(builder, right_row, column, is_half) for column in range(vectors)]
                        terms = [(spread(builder, row[term]), factor) for row in numbers for factor in factors]
                        sums = [fused(builder, *term, so_far) for term, so_far in zip(terms, sums, strict=True)]
                    return sums

                return add

            is_half = signature.args[3].dtype == types.uint16
            most = builder.and_(depth, INDEX(-_TERMS))
            sums = [builder.load(result, align=4) if adds else equal(0.0) for result in results]
            sums = loop(builder, INDEX(0), most, _TERMS, sums, add_terms(_TERMS))
            sums = loop(builder, most, depth, 1, sums, add_terms(1))
            for total, result in zip(sums, results, strict=True):
                builder.store(total, result, align=4)
            return context.get_dummy_value()

        entry = types.intp
        return types.void(left, entry, entry, right, entry, entry, entry, out, entry, entry), generate

    return generated(define)


@generated
def _widen(typing: Any, matrix: Any, matrix_at: Any, singles: Any, at: Any) -> Any:
    """Write `LANES` entries of a matrix in single precision."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix, matrix_at, singles, at = arguments
        source = place(context, builder, signature.args[0], matrix, matrix_at)
        target = vector_at(builder, place(context, builder, signature.args[2], singles, at), 0)
        builder.store(_load(builder, source, 0, signature.args[0].dtype == types.uint16), target, align=4)
        return context.get_dummy_value()

    return types.void(matrix, types.intp, singles, types.intp), generate


_many_rows = _tile(_TILE, _VECTORS)
_one_row = _tile(1, PANEL // LANES)
_many_scores = _tile(_HEADS, 1)
_one_score = _tile(1, 1)
_many_sums = _tile(_HEADS, 1, adds=True)
_one_sum = _tile(1, 1, adds=True)


@_exact
def multiply(rows: Array, count: int, matrices: Array, at: int, out: Array) -> None:
    """Write the first `count` rows times a matrix to `out`, of as many of its panels as `out` has room for.

    `at` is the entry of `matrices` where it begins; it is as deep as the rows are wide.
    """
    stays_one()
    depth, out_step = rows.shape[1], out.shape[1]
    widened = np.empty((depth, PANEL), dtype=np.float32)
    for panel in range(out_step // PANEL):
        first, column = at + panel * depth * PANEL, panel * PANEL
        if count < _TILE:
            # Reading the matrix is what takes the time: it is half as long in half precision.
            for row in range(count):
                _one_row(
                    rows, row * depth, depth, matrices, first, PANEL, depth, out, row * out_step + column, out_step
                )
            continue
        for entry in range(0, depth * PANEL, LANES):
            _widen(matrices, first + entry, widened, entry)
        for part in range(0, PANEL, _VECTORS * LANES):
            row = 0
            while row < count:
                # The last tile reaches back where the rows do not come out even: the same sums once more cost less than
                # single rows.
                row = min(row, count - _TILE)
                there = row * out_step + column + part
                _many_rows(rows, row * depth, depth, widened, part, PANEL, depth, out, there, out_step)
                row += _TILE


@_inner
def compare(
    queries: Array, at: int, heads: int, width: int, keys: Array, keys_at: int, scores: Array, column: int
) -> None:
    """Write the products of `heads` queries, from `queries[at]` on, with one block of keys to `scores[:, column:]`."""
    step = scores.shape[1]
    head = 0
    while head + _HEADS <= heads:
        _many_scores(queries, at + head * width, width, keys, keys_at, LANES, width, scores, head * step + column, step)
        head += _HEADS
    while head < heads:
        _one_score(queries, at + head * width, width, keys, keys_at, LANES, width, scores, head * step + column, step)
        head += 1


@_inner
def gather(
    shares: Array, column: int, heads: int, width: int, values: Array, values_at: int, count: int, out: Array, at: int
) -> None:
    """Add `count` values of one block, each times its share, `shares[head, column:]`, to `out[at:]` of every head."""
    step = shares.shape[1]
    for part in range(0, width, LANES):
        head = 0
        while head + _HEADS <= heads:
            _many_sums(
                shares, head * step + column, step, values, values_at + part, width, count,
                out, at + head * width + part, width,
            )  # fmt: skip
            head += _HEADS
        while head < heads:
            _one_sum(
                shares, head * step + column, step, values, values_at + part, width, count,
                out, at + head * width + part, width,
            )  # fmt: skip
            head += 1
