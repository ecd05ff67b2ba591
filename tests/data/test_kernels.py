"""Long numbers against Python's own reading of them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin.compilation import compiled
from tocsin.data.kernels import LEAST, MOST, rounded


@compiled()
def all_rounded(digits, powers):
    found = np.empty(len(digits))
    for i in range(len(digits)):
        found[i] = rounded(digits[i], powers[i])
    return found


def agree(digits, powers):
    found = all_rounded(np.array(digits, dtype=np.int64), np.array(powers, dtype=np.int64))
    expected = np.array([float(f"{digit}e{power}") for digit, power in zip(digits, powers, strict=True)])
    sure = np.isfinite(found)
    np.testing.assert_array_equal(found[sure], expected[sure])
    return sure.mean()


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2**60), st.integers(LEAST, MOST)), min_size=1, max_size=50))
@example([(2**53 + 1, 0), (2**54 + 2, 0), (2**54 + 6, 0), (9007199254740993, 3), (1, 0), (5, -1), (2**60 - 1, -20)])
def test_any(numbers):
    agree(*zip(*numbers, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("power", range(LEAST, MOST + 1, 3))
def test_many(power):
    digits = np.random.default_rng(power + 100).integers(0, 2**60, 3000).tolist()
    assert agree(digits, [power] * 3000) > 0.99


def test_half_way_between_two_doubles():
    odd = np.random.default_rng(0).integers(2**52, 2**53, 2000) * 2 + 1  # one bit more than a double has
    assert agree(odd.tolist(), [0] * 2000) == 1
