"""The embedded network's arithmetic: right to within roundings, and the same bits in any company."""

import numpy as np
import pytest
from numba import njit

from tests.forecasting import embedded_oracle
from tocsin.forecasting.embedded import arithmetic, observations
from tocsin.forecasting.embedded.arithmetic import LANES, PANEL, multiply, shares
from tocsin.forecasting.embedded.weights import panels


def from_python(function):
    """Python cannot call what only compiled loops call."""

    @njit
    def call(*arguments):
        return function(*arguments)

    return call


compare, gather = from_python(arithmetic.compare), from_python(arithmetic.gather)
centre_and_scale = from_python(observations.centre_and_scale)


def singles(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 11, 12, 13, 64])
@pytest.mark.parametrize(("depth", "columns"), [(1, 32), (49, 64), (115, 96), (768, 160)])
def test_a_product_is_right_and_each_row_is_alone(count, depth, columns):
    rng = np.random.default_rng(depth + columns)
    rows, matrix = singles(rng, 64, depth), rng.normal(size=(columns, depth)).astype(np.float16)
    out, other = np.empty((2, count, columns), dtype=np.float32)
    multiply(rows, count, panels(matrix), 0, out)
    multiply(rows, count, panels(matrix, halves=False), 0, other)
    np.testing.assert_array_equal(out, other)
    expected = rows[:count].astype(np.float64) @ matrix.T.astype(np.float64)
    size = np.abs(rows[:count]).astype(np.float64) @ np.abs(matrix.T).astype(np.float64)
    assert np.all(np.abs(out - expected) <= 1e-7 * np.sqrt(depth) * size + 1e-30)
    alone = np.empty((1, columns), dtype=np.float32)
    for row in range(count):
        multiply(rows[row : row + 1], 1, panels(matrix), 0, alone)
        np.testing.assert_array_equal(alone[0], out[row])


@pytest.mark.slow
def test_a_product_adds_from_the_first_term_to_the_last():
    """As a chain of fused multiply-adds does: the sum of 2^24 and ones stays, in single precision, unless they pair."""
    rows = np.ones((6, 4), dtype=np.float32)
    rows[:, 0] = 2.0**12
    matrix = np.ones((PANEL, 4), dtype=np.float16)
    matrix[:, 0] = 2.0**12
    out = np.empty((6, PANEL), dtype=np.float32)
    multiply(rows, 6, panels(matrix), 0, out)
    assert np.all(out == 2.0**24)


def test_only_as_many_columns_as_there_is_room_for():
    rng = np.random.default_rng(0)
    rows, matrix = singles(rng, 9, 40), rng.normal(size=(70, 40)).astype(np.float16)
    whole, part = np.empty((9, 96), dtype=np.float32), np.empty((9, 32), dtype=np.float32)
    multiply(rows, 9, panels(matrix), 0, whole)
    multiply(rows, 9, panels(matrix), 0, part)
    np.testing.assert_array_equal(whole[:, :32], part)
    assert np.all(whole[:, 70:] == 0)


@pytest.mark.slow
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("width", [16, 32])
def test_products_with_keys_and_values(heads, width):
    rng = np.random.default_rng(heads)
    queries, keys, values = singles(rng, heads, width), singles(rng, width, LANES), singles(rng, LANES, width)
    scores = np.zeros((heads, 3 * LANES), dtype=np.float32)
    compare(queries, 0, heads, width, keys, 0, scores, LANES)
    np.testing.assert_allclose(scores[:, LANES : 2 * LANES], queries @ keys, rtol=1e-4, atol=1e-5)
    assert np.all(scores[:, :LANES] == 0)
    assert np.all(scores[:, 2 * LANES :] == 0)
    found = singles(rng, heads, width)
    expected = found + scores[:, LANES : LANES + 5] @ values[:5]
    gather(scores, LANES, heads, width, values, 0, 5, found, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@njit
def call_shares(scores, at, unseen, count):
    return shares(scores, at, unseen, 0, count)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 32, 72])
@pytest.mark.parametrize("size", [0.1, 10.0, 1000.0])
def test_shares_are_a_softmax_with_one_more_score_of_0(count, size):
    rng = np.random.default_rng(count)
    scores = (size * rng.normal(size=(2, 80))).astype(np.float32)
    unseen = np.where(rng.random(80) < 0.3, -1e30, 0).astype(np.float32)
    given = scores.copy()
    total = call_shares(scores, 80, unseen, count)
    exact = np.append(given[1, :count] + unseen[:count], np.float32(0))
    expected = np.exp((exact - exact.max()).astype(np.float64))
    np.testing.assert_allclose(scores[1, :count], expected[:-1], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)
    assert np.all(scores[1, :count][unseen[:count] < 0] == 0)
    assert np.all(scores[1, count : -(-count // LANES) * LANES] == 0)
    np.testing.assert_array_equal(scores[0], given[0])


log = from_python(arithmetic.log)
FUNCTIONS = {
    "exp": (from_python(arithmetic.exp), np.exp, 700.0),
    "sinh": (from_python(arithmetic.sinh), np.sinh, 700.0),
    "asinh": (from_python(arithmetic.asinh), np.arcsinh, 1e6),
    "softplus": (from_python(arithmetic.softplus), lambda x: np.logaddexp(0.0, x), 1000.0),
    "sigmoid": (from_python(arithmetic.sigmoid), lambda x: 0.5 * (1 + np.tanh(0.5 * x)), 1000.0),
    "log": (lambda x: log(np.exp(x)), lambda x: np.log(np.exp(x)), 700.0),
}


@pytest.mark.slow
@pytest.mark.parametrize(("function", "exact", "reach"), FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions_are_right(function, exact, reach):
    sizes = np.concatenate([[0.0], np.geomspace(1e-9, reach, 400)])
    for x in (*sizes, *-sizes):
        assert function(x) == pytest.approx(exact(x), rel=2e-15, abs=1e-15), x


@pytest.mark.slow
def test_centre_and_scale():
    rng = np.random.default_rng(0)
    for size in (1e-300, 1e-30, 1.0, 1e30, 1e299):
        for count in (2, 3, 10, 1000):
            values = rng.standard_t(1.5, size=count)
            values = size * (values / np.abs(values).max() + rng.choice([0.0, 1.0]))
            values[rng.random(count) < 0.2] = np.nan
            values[-2:] = size, 0.5 * size
            np.testing.assert_allclose(centre_and_scale(values), embedded_oracle.centre_and_scale(values), rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 5e-324, 1e15 / 3])
def test_the_centre_of_a_constant_is_exact(value):
    values = np.full(50, value)
    values[3:7] = np.nan
    assert centre_and_scale(values) == (value, 0.0)


def test_one_outlier_does_not_set_the_scale():
    values = np.random.default_rng(0).normal(size=1000)
    plain = centre_and_scale(values)[1]
    values[500] = 1000.0
    assert centre_and_scale(values)[1] < 1.5 * plain
