"""What each key counts in attention, sixteen keys at a time."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from tocsin.forecasting.embedded.memory import UNSEEN
from tocsin.forecasting.embedded.vectors import (
    INDEX,
    INTEGERS,
    LANES,
    SINGLES,
    call,
    equal,
    fused,
    generated,
    place,
    spread,
    vector_at,
)

# e^x = 2^k e^r, with the logarithm of 2 in two parts of which multiples of the first are exact; e^r by Cephes' expf.
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.693359375, -2.12194440e-4
_COEFFICIENTS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5, 1.0, 1.0)
# Below this the exponential counts as 0.
_LOWEST = -87.0


def _exponentials(builder: Any, x: Any) -> Any:
    """The exponentials of numbers <= 0, each within 2e-7 of itself."""
    counts = builder.fcmp_ordered(">", x, equal(_LOWEST))
    bounded = builder.select(counts, x, equal(_LOWEST))
    whole = call(builder, "floor", SINGLES, fused(builder, bounded, equal(_LOG2_E), equal(0.5)))
    rest = fused(builder, whole, equal(-_LN2_LOW), fused(builder, whole, equal(-_LN2_HIGH), bounded))
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
