"""Merges against their formulas, at the edges, and against what they promise."""

import decimal
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.cases import full
from tocsin.conformal import MERGES, Guarantee, merge_p_values

decimal.getcontext().prec = 60


def fisher_in_decimals(p):
    """The chi-squared tail with 2k degrees of freedom in closed form, with sixty digits."""
    half = -sum(decimal.Decimal(value).ln() for value in p)
    terms = [half**j / math.factorial(j) for j in range(len(p))]
    return float((-half).exp() * sum(terms))


FORMULAS = {
    "median": np.median,
    "twice-median": lambda p: 2 * np.median(p),
    "twice-mean": lambda p: 2 * np.mean(p),
    "bonferroni": lambda p: len(p) * min(p),
    "tippett": lambda p: 1 - (1 - min(p)) ** len(p),
    "fisher": fisher_in_decimals,
    "harmonic": stats.hmean,
    "harmonic-bound": lambda p: (math.e * math.log(len(p)) if len(p) > 2 else len(p)) * stats.hmean(p),
    "cauchy": lambda p: stats.cauchy.sf(np.mean(np.tan((0.5 - np.array(p)) * np.pi))),
    "hommel": lambda p: (
        sum(1 / i for i in range(1, len(p) + 1)) * min(len(p) * q / i for i, q in enumerate(sorted(p), start=1))
    ),
}
every_merge = pytest.mark.parametrize("name", MERGES)


def test_every_merge_has_a_formula_here():
    assert FORMULAS.keys() == MERGES.keys()


@pytest.mark.slow
@every_merge
@given(p=st.lists(st.floats(1e-3, 1 - 1e-3), min_size=2, max_size=20))
def test_formula(name, p):
    assert MERGES[name](p) == pytest.approx(min(1.0, FORMULAS[name](p)), rel=1e-8)


@pytest.mark.slow
@every_merge
@given(p=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-300, 5e-324])))
def test_one_p_value_is_its_own_merge(name, p):
    assert MERGES[name]([p]) == p
    assert MERGES[name]([np.nan, p, np.nan]) == p


@pytest.mark.slow
@every_merge
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_in_range_symmetric_and_monotone(name, p):
    merged = MERGES[name](p)
    assert 0 <= merged <= 1
    assert MERGES[name](p[::-1]) == pytest.approx(merged, rel=1e-12)
    if min(p) > 0:
        assert merged > 0
    higher = [value + 0.5 * (1 - value) for value in p]
    assert MERGES[name](higher) >= merged - 1e-12


@every_merge
def test_nan_is_left_out(name):
    p = np.array([[0.2, np.nan, 0.01, 0.5], [np.nan] * 4, [0.3, 0.3, np.nan, np.nan]])
    merged = MERGES[name](p)
    assert merged[0] == MERGES[name]([0.2, 0.01, 0.5])
    assert np.isnan(merged[1])
    assert merged[2] == MERGES[name]([0.3, 0.3])


def test_masked_values_are_left_out():
    masked = np.ma.masked_array([0.01, 0.2, 0.3], [True, False, False])
    assert merge_p_values(masked, "bonferroni") == 0.4


@every_merge
def test_axes(name):
    p = np.random.default_rng(0).random((3, 4, 5))
    for axis in range(-3, 3):
        rows = np.moveaxis(p, axis, -1)
        expected = [[MERGES[name](rows[i, j]) for j in range(rows.shape[1])] for i in range(rows.shape[0])]
        np.testing.assert_array_equal(MERGES[name](p, axis=axis), expected)
    assert np.isnan(MERGES[name](np.zeros((2, 0)))).all()


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ([0.0, 0.0], dict.fromkeys(MERGES, 0.0)),
        ([1.0, 1.0, 1.0], dict.fromkeys(MERGES, 1.0)),
        (
            [0.0, 1.0],
            {**dict.fromkeys(MERGES, 0.0), "median": 0.5, "twice-median": 1.0, "twice-mean": 1.0},
        ),
        (
            [0.0, 0.5, 1.0],
            {**dict.fromkeys(MERGES, 0.0), "median": 0.5, "twice-median": 1.0, "twice-mean": 1.0},
        ),
        # A p-value of exactly 1 pulls Cauchy's mean to minus infinity.
        ([1e-310, 1.0], {"cauchy": 1.0}),
        ([0.3, 1.0], {"cauchy": 1.0, "bonferroni": 0.6, "tippett": 0.51, "fisher": 0.3 * (1 - math.log(0.3))}),
    ],
)
def test_exact_zeros_and_ones(p, expected):
    for name, value in expected.items():
        assert MERGES[name](p) == pytest.approx(value), name


def test_extreme_tails():
    tiny = [1e-300, 0.5, 0.9]
    assert MERGES["fisher"](tiny) == pytest.approx(fisher_in_decimals(tiny), rel=1e-10)
    assert MERGES["fisher"]([1e-150, 1e-150]) == pytest.approx(fisher_in_decimals([1e-150] * 2), rel=1e-10)
    assert MERGES["fisher"]([1e-20] * 15) == pytest.approx(fisher_in_decimals([1e-20] * 15), rel=1e-10)
    assert MERGES["cauchy"](tiny) == pytest.approx(3e-300, rel=1e-12)
    assert MERGES["harmonic"](tiny) == pytest.approx(3e-300, rel=1e-12)
    assert MERGES["tippett"](tiny) == pytest.approx(3e-300, rel=1e-12)
    assert MERGES["bonferroni"](tiny) == pytest.approx(3e-300, rel=1e-12)
    assert MERGES["hommel"](tiny) == pytest.approx(5.5e-300, rel=1e-12)


@every_merge
def test_too_small_for_a_double_is_still_not_zero(name):
    assert MERGES[name]([1e-300, 1e-300, 1e-300]) > 0
    assert MERGES[name]([5e-324, 5e-324]) > 0


def test_cauchy_keeps_its_digits_next_to_one():
    """By symmetry: what p and 1 - p say cancels exactly."""
    for tiny in (2.0**-10, 2.0**-30, 2.0**-50):
        assert MERGES["cauchy"]([tiny, 1 - tiny]) == 0.5


def test_fisher_with_many_p_values():
    p = np.random.default_rng(0).random(1500)
    assert MERGES["fisher"](p) == pytest.approx(stats.combine_pvalues(p, "fisher").pvalue, rel=1e-9)


GUARANTEES = {
    Guarantee.ANY_DEPENDENCE: {"twice-median", "twice-mean", "bonferroni", "harmonic-bound", "hommel"},
    Guarantee.ASYMPTOTIC: {"cauchy"},
    Guarantee.INDEPENDENCE: {"fisher", "tippett"},
    Guarantee.NONE: {"median", "harmonic"},
}


def test_guarantees_can_be_asked_for():
    for guarantee, names in GUARANTEES.items():
        assert {name for name, merge in MERGES.items() if merge.guarantee is guarantee} == names


def dependent_p(kind, rng, count, k=15):
    """Uniform p-values of several kinds of dependence between the k that are merged."""
    if kind == "independent":
        return rng.random((count, k))
    if kind == "equal":
        return np.repeat(rng.random((count, 1)), k, axis=1)
    if kind == "correlated":
        shared, own = rng.normal(size=(count, 1)), rng.normal(size=(count, k))
        return stats.norm.sf(np.sqrt(0.8) * shared + np.sqrt(0.2) * own)
    if kind == "opposed":
        p = rng.random((count, 1))
        return np.concatenate([np.repeat(p, k // 2, axis=1), np.repeat(1 - p, k - k // 2, axis=1)], axis=1)
    if kind == "majority":
        # A random majority shares one low value, the rest one high value.
        low = np.argsort(rng.random((count, k)), axis=1) <= k // 2
        share = (k // 2 + 1) / k
        return np.where(low, share * rng.random((count, 1)), share + (1 - share) * rng.random((count, 1)))
    # Spread evenly around the circle: while one is tiny, none other is.
    return (rng.random((count, 1)) + np.arange(k) / k) % 1.0


KINDS = ["independent", "equal", "correlated", "opposed", "majority", "spread"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_of_the_merged_p_values_is_uniform(kind):
    p = dependent_p(kind, np.random.default_rng(3), 50_000)
    assert all(stats.kstest(column, "uniform").pvalue > 1e-5 for column in p.T)


def rate_and_bound(name, kind, alpha, count=200_000):
    """The rate of merged <= alpha, and alpha plus 3.7 standard errors (one-sided level 1e-4)."""
    merged = MERGES[name](dependent_p(kind, np.random.default_rng(11), count))
    return np.mean(merged <= alpha), alpha + 3.7 * np.sqrt(alpha * (1 - alpha) / count)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind if kind in ("equal", "majority") else full(kind) for kind in KINDS])
@pytest.mark.parametrize("name", sorted(GUARANTEES[Guarantee.ANY_DEPENDENCE]))
@pytest.mark.parametrize("alpha", [full(0.01), 0.05, full(0.2)])
def test_valid_under_any_dependence(name, kind, alpha):
    rate, bound = rate_and_bound(name, kind, alpha)
    assert rate <= bound


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(GUARANTEES[Guarantee.INDEPENDENCE]))
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_exact_under_independence(name, alpha):
    rate, bound = rate_and_bound(name, "independent", alpha)
    assert alpha - (bound - alpha) <= rate <= bound


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_cauchy_is_close_for_small_alpha(kind):
    rate, bound = rate_and_bound("cauchy", kind, 0.001)
    assert rate <= 1.15 * bound


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "alpha"),
    [
        ("harmonic", "independent", 0.05),
        ("median", "majority", 0.05),
        ("fisher", "correlated", 0.01),
        ("tippett", "spread", 0.2),
    ],
)
def test_what_is_not_guaranteed_does_fail(name, kind, alpha):
    rate, bound = rate_and_bound(name, kind, alpha)
    assert rate > bound


@pytest.mark.parametrize("name", MERGES)
def test_which_keep_equals(name):
    equals = [MERGES[name](np.full(7, p)) for p in (0.003, 0.2, 0.6)]
    assert np.allclose(equals, (0.003, 0.2, 0.6), rtol=1e-12) == MERGES[name].keeps_equals


def test_by_name():
    p = [[0.1, 0.2, 0.6], [0.3, 0.4, 0.5]]
    assert merge_p_values(p, "median").tolist() == [0.2, 0.4]
    assert merge_p_values(p, "bonferroni", axis=0).tolist() == [0.2, 0.4, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: merge_p_values([0.1], "average"), "how must be one of 'median', .*'hommel', got 'average'"),
        (lambda: merge_p_values([0.1, 1.2], "median"), r"p must lie in \[0, 1\] or be NaN, got .*1\.2"),
        (lambda: merge_p_values([-0.1], "median"), r"p must lie in \[0, 1\] or be NaN, got .*-0\.1"),
        (lambda: merge_p_values([np.inf], "median"), r"p must lie in \[0, 1\] or be NaN, got .*inf"),
        (lambda: merge_p_values([10**400], "median"), "p must be numbers, got .*too large"),
        (lambda: merge_p_values(["low"], "median"), "p must be numbers, got"),
        (lambda: merge_p_values([0.1], "median", axis=1), "axis must be an integer from -1 to 0, got 1"),
        (lambda: merge_p_values(0.1, "median"), "p must have at least one axis"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
