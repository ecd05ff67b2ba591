"""Exponentials and logarithms in plain arithmetic.

Unlike a library's they vectorise within compiled loops, and are the same bits in any loop and on any machine.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from tocsin.compilation import inner
from tocsin.forecasting.embedded.vectors import generated

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
