"""Decimal numbers with many digits to the nearest double, as `float` gives it.

The algorithm is that of Lemire, "Number parsing at a gigabyte per second" (Software: Practice and Experience 51, 2021):
the digits times the first 64 (rarely 128) bits of a power of five nearly always determine the nearest double.
"""

import math

import numpy as np

from tocsin.compilation import inner

LEAST, MOST = -60, 60  # powers of ten: with fewer than 19 digits, no double among these is subnormal or infinite

_U = np.uint64
_32, _HALF = _U(32), _U(2**32 - 1)
_ALL = _U(2**64 - 1)
_UNSURE = _U(0x1FF)
_ZERO, _ONE, _THREE, _NINE, _63 = _U(0), _U(1), _U(3), _U(9), _U(63)


def _powers() -> tuple[np.ndarray, np.ndarray]:
    """The first 128 bits of five to the powers from `LEAST` to `MOST`, in halves; rounded up below 0, else cut."""
    high, low = [], []
    for power in range(LEAST, MOST + 1):
        five = 5 ** abs(power)
        bits = five if power >= 0 else 2 ** (2 * five.bit_length() + 128) // five + 1
        length = bits.bit_length()
        bits = bits << 128 - length if length < 128 else bits >> length - 128
        high.append(bits >> 64)
        low.append(bits & (2**64 - 1))
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


_HIGH, _LOW = _powers()


@inner()
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """All 128 bits of a product, in halves."""
    a1, a0, b1, b0 = a >> _32, a & _HALF, b >> _32, b & _HALF
    low, first, second, high = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    middle = (low >> _32) + (first & _HALF) + (second & _HALF)
    return high + (first >> _32) + (second >> _32) + (middle >> _32), (low & _HALF) | (middle << _32)


@inner()
def rounded(digits: int, power: int) -> float:
    """The double nearest to `digits` times ten to this power; NaN if it cannot be determined."""
    if digits == 0:
        return 0.0
    shift = 0
    wide = _U(digits)
    while wide >> _63 == _ZERO:
        wide <<= _ONE
        shift += 1
    high, low = _product(wide, _HIGH[power - LEAST])
    if high & _UNSURE == _UNSURE:
        more, _ = _product(wide, _LOW[power - LEAST])
        low += more
        if low < more:
            high += _ONE
    if low == _ALL and not -27 <= power <= 55:
        return np.nan
    upper = high >> _63
    mantissa = high >> (upper + _NINE)
    if low <= _ONE and -4 <= power <= 23 and mantissa & _THREE == _ONE and mantissa << (upper + _NINE) == high:
        mantissa ^= _ONE  # halfway between two: round to even
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    exponent = ((217706 * power) >> 16) + int(upper) - shift + 63
    return math.ldexp(float(mantissa), exponent - 52)
