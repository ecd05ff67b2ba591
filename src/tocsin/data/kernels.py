"""The inner loop over the bytes of a plain delimited text, in which every line is a row.

Anything unusual is left to other code. A cell that is not a plain number is flagged. A block with anything else (a row
of another width, a quote within a field, a blank line, a time in another form) is rejected as a whole.

Numbers with many digits are rounded to the nearest double, as `float` does, by the algorithm of Lemire, "Number parsing
at a gigabyte per second" (Software: Practice and Experience 51, 2021): the digits times the first 64 (rarely 128) bits
of a power of five nearly always determine the nearest double.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner

LEAST, MOST = -60, 60  # powers of ten: with fewer than 19 digits, no double among these is subnormal or infinite

_U = np.uint64
_32, _HALF = _U(32), _U(2**32 - 1)
_ALL = _U(2**64 - 1)
_UNSURE = _U(0x1FF)
_0, _1, _3, _9, _63 = _U(0), _U(1), _U(3), _U(9), _U(63)

TEXT, NUMBER, TIME, UNUSED = 0, 1, 2, 3  # how to read a column
_NEWLINE, _RETURN, _QUOTE, _SPACE, _HASH = 10, 13, 34, 32, 35
_ZERO, _NINE, _PLUS, _MINUS, _POINT, _COLON, _LETTER_T, _LETTER_Z = 48, 57, 43, 45, 46, 58, 84, 90
_EXACT = 2**53  # doubles hold all integers up to here
_TENS = 10.0 ** np.arange(23)  # exact doubles too: dividing the two rounds once, as `float` does
_LONGEST = 2**60  # longer numbers are rare, and left to `float`
_DAYS = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_FRACTION = 10 ** np.arange(9, -1, -1)
Bytes = NDArray[np.uint8]


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
    while wide >> _63 == _0:
        wide <<= _1
        shift += 1
    high, low = _product(wide, _HIGH[power - LEAST])
    if high & _UNSURE == _UNSURE:
        more, _ = _product(wide, _LOW[power - LEAST])
        low += more
        if low < more:
            high += _1
    if low == _ALL and not -27 <= power <= 55:
        return np.nan
    upper = high >> _63
    mantissa = high >> (upper + _9)
    if low <= _1 and -4 <= power <= 23 and mantissa & _3 == _1 and mantissa << (upper + _9) == high:
        mantissa ^= _1  # halfway between two: round to even
    mantissa = (mantissa + (mantissa & _1)) >> _1
    exponent = ((217706 * power) >> 16) + int(upper) - shift + 63
    return math.ldexp(float(mantissa), exponent - 52)


@compiled()
def read_rows(
    data: Bytes,
    delimiter: int,
    decimal: int,
    kinds: NDArray[np.int64],
    places: NDArray[np.int64],
    numbers: NDArray[np.float64],
    times: NDArray[np.int64],
    spans: NDArray[np.int64],
    odd: NDArray[np.int64],
) -> tuple[int, int]:
    """Read all lines. Returns the number of rows (-1 if something is unusual) and of `odd` cells.

    Each column of a row has a kind and a target column in `numbers`, `times` or `spans` (first and last byte of a
    text). An odd cell should be a number but is not a plain one: its row, column and bytes are recorded.
    """
    width = len(kinds)
    row, unread, at, end = 0, 0, 0, len(data)
    while at < end:
        if data[at] == _HASH or row == len(numbers):
            return -1, 0
        blank = True
        for column in range(width):
            while at < end and data[at] == _SPACE:
                at += 1
            first, at = _field(data, at, delimiter)
            if at < 0:
                return -1, 0
            last = at
            if first > 0 and data[first - 1] == _QUOTE and at > first:
                last = at - 1  # the closing quote
            at_end = at == end or data[at] != delimiter
            if at_end != (column == width - 1):
                return -1, 0
            kind, place = kinds[column], places[column]
            if kind == NUMBER:
                while last > first and data[last - 1] == _SPACE:
                    last -= 1
                plain, value = _number(data, first, last, decimal)
                numbers[row, place] = value
                if not plain:
                    odd[unread, 0], odd[unread, 1], odd[unread, 2], odd[unread, 3] = row, place, first, last
                    unread += 1
            elif kind == TIME:
                plain, stamp = _moment(data, first, last)
                if not plain:
                    return -1, 0
                times[row, place] = stamp
            elif kind == TEXT:
                spans[row, 2 * place], spans[row, 2 * place + 1] = first, last
            blank &= first == last
            if not at_end:
                at += 1
        if blank:
            return -1, 0
        if at < end and data[at] == _RETURN:
            at += 1
            if at == end or data[at] != _NEWLINE:
                return -1, 0
        at += 1
        row += 1
    return row, unread


@inner()
def _field(data: Any, at: int, delimiter: int) -> tuple[int, int]:
    """Where a field begins (after its quote) and ends (after its closing quote); -1 if it is not a plain field."""
    end = len(data)
    first = at
    if at < end and data[at] == _QUOTE:
        first = at + 1
        at = first
        while at < end and data[at] != _QUOTE:
            if data[at] == _NEWLINE or data[at] == _RETURN:
                return first, -1
            at += 1
        at += 1
        if at < end and data[at] != delimiter and data[at] != _NEWLINE and data[at] != _RETURN:
            return first, -1
        return first, at if at <= end else -1
    while at < end and data[at] != delimiter and data[at] != _NEWLINE and data[at] != _RETURN:
        if data[at] == _QUOTE or data[at] == 0:
            return first, -1
        at += 1
    return first, at


@inner()
def _number(data: Any, at: int, last: int, decimal: int) -> tuple[bool, float]:
    """A number with few digits, exactly as `float` reads it; an empty field is NaN."""
    if at == last:
        return True, np.nan
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    mantissa, digits, behind, pointed = 0, 0, 0, False
    while at < last:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            if mantissa > (_LONGEST - 9) // 10:
                return False, np.nan
            mantissa = mantissa * 10 + (byte - _ZERO)
            digits += 1
            behind += pointed
        elif byte == decimal and not pointed:
            pointed = True
        else:
            break
        at += 1
    if digits == 0:
        return False, np.nan
    exponent = 0
    if at < last and (data[at] == 69 or data[at] == 101):  # E, e
        at += 1
        down = at < last and data[at] == _MINUS
        if down or (at < last and data[at] == _PLUS):
            at += 1
        if at == last or last - at > 3:
            return False, np.nan
        while at < last and _ZERO <= data[at] <= _NINE:
            exponent = exponent * 10 + (data[at] - _ZERO)
            at += 1
        exponent = -exponent if down else exponent
    exponent -= behind
    if at != last or exponent < LEAST or exponent > MOST:
        return False, np.nan
    if mantissa > _EXACT or exponent < -22 or exponent > 22:
        value = rounded(mantissa, exponent)
    else:
        value = float(mantissa)
        value = value * _TENS[exponent] if exponent > 0 else value / _TENS[-exponent]
    return value == value, -value if negative else value


@inner()
def _digits(data: Any, at: int, count: int) -> int:
    """The value of this many digits; -1 if any character is not a digit."""
    value = 0
    for i in range(at, at + count):
        if data[i] < _ZERO or data[i] > _NINE:
            return -1
        value = value * 10 + (data[i] - _ZERO)
    return value


@inner()
def _moment(data: Any, at: int, last: int) -> tuple[bool, int]:
    """A time such as 2024-12-31, 2024-12-31 23:59 or 2024-12-31T23:59:59.999Z, in nanoseconds since 1970."""
    if last - at >= 16 and data[last - 1] == _LETTER_Z:
        last -= 1
    elif last - at >= 22 and data[last - 6] == _PLUS and _digits(data, last - 5, 2) == 0 and data[last - 3] == _COLON:
        last -= 6 if _digits(data, last - 2, 2) == 0 else 0
    length = last - at
    if length not in (10, 16, 19) and not 21 <= length <= 29:
        return False, 0
    year, month, day = _digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2)
    if data[at + 4] != _MINUS or data[at + 7] != _MINUS or not (1700 <= year < 2200 and 1 <= month <= 12 and day >= 1):
        return False, 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month] - _DAYS[month - 1] + (leap and month == 2):
        return False, 0
    before = year - 1
    days = 365 * (year - 1970) + before // 4 - before // 100 + before // 400 - 477
    days += _DAYS[month - 1] + (leap and month > 2) + day - 1
    second, nanosecond = 0, 0
    if length > 10:
        hour, minute = _digits(data, at + 11, 2), _digits(data, at + 14, 2)
        apart = data[at + 10] == _SPACE or data[at + 10] == _LETTER_T
        if not apart or data[at + 13] != _COLON or not (0 <= hour < 24 and 0 <= minute < 60):
            return False, 0
        second = (hour * 60 + minute) * 60
    if length > 16:
        seconds = _digits(data, at + 17, 2)
        if data[at + 16] != _COLON or not 0 <= seconds < 60:
            return False, 0
        second += seconds
    if length > 19:
        fraction = _digits(data, at + 20, length - 20)
        if data[at + 19] != _POINT or fraction < 0:
            return False, 0
        nanosecond = fraction * _FRACTION[length - 20]
    return True, (days * 86_400 + second) * 10**9 + nanosecond
