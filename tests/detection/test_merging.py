"""The merges that are compiled into the detector, against those of numpy."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.detection.oracle import harmonic_edge
from tocsin import MERGES
from tocsin.conformal.scorer import SMALLEST_P
from tocsin.detection import Fleet
from tocsin.detection.kernels import COMPILED_MERGES, HARMONIC, edge, gather, merge_ordered, put_in_order

every_compiled_merge = pytest.mark.parametrize("name", COMPILED_MERGES)

# No scorer gives less than the smallest p-value, but a rank may be 0.
P_VALUES = st.one_of(st.floats(SMALLEST_P, 1.0), st.sampled_from([0.0, SMALLEST_P, 0.01, 1 - 2**-53, 1.0, np.nan]))


@every_compiled_merge
@given(p=st.lists(P_VALUES, min_size=1, max_size=40))
@example(p=[1 - 2**-53] + [1.0] * 14)
@example(p=[np.nan] * 3)
def test_the_compiled_merge_has_the_bits_of_the_other(name, p):
    ordered = np.full(len(p), 7.0)
    count = put_in_order(np.array(p), ordered)
    np.testing.assert_array_equal(ordered[:count], sorted(value for value in p if value == value))
    merged = merge_ordered(ordered, count, COMPILED_MERGES[name])
    np.testing.assert_array_equal(merged, MERGES[name](p))


@every_compiled_merge
def test_p_values_and_ranks_are_merged_and_the_bound_is_that_of_the_median_whatever_the_merge(name):
    """Of 200 observations of the signals 2 and 0 of three, with two features and seven horizons; some are missing."""
    rng = np.random.default_rng(0)
    p, rank = rng.random((2, 200, 3, 2, 1, 7)) ** 3
    missing = (rng.random(p.shape) < 0.2) | (rng.random((200, 3, 2, 1, 1)) < 0.2)
    p[missing] = rank[missing] = np.nan
    horizon_p, horizon_rank = np.empty((2, 200, 2, 2, 7))
    feature_p, feature_rank = np.empty((2, 200, 2, 2))
    bound = np.empty((200, 2))
    merge = COMPILED_MERGES[name]
    gather(p, rank, np.array([2, 0]), merge, horizon_p, horizon_rank, feature_p, feature_rank, bound)
    np.testing.assert_array_equal(horizon_p, p[:, [2, 0]][..., 0, :])
    np.testing.assert_array_equal(feature_p, MERGES[name](horizon_p))
    np.testing.assert_array_equal(feature_rank, MERGES[name](rank[:, [2, 0]][..., 0, :]))
    np.testing.assert_array_equal(bound, MERGES["bonferroni"](MERGES["twice-median"](horizon_p)))
    assert np.isnan(bound).any()


@every_compiled_merge
def test_a_detector_gives_what_its_merge_makes_of_its_horizons(name):
    """At the default number of horizons, at which numpy would sum several at a time."""
    fleet = Fleet(2, merge=name, alarm_rate=0.05, window=250, forecaster="exponential-smoothing", recalibrate=False)
    verdicts = fleet.run(np.random.default_rng(1).normal(size=(400, 2)))
    np.testing.assert_array_equal(verdicts.feature_p, MERGES[name](verdicts.horizon_p))
    np.testing.assert_array_equal(verdicts.merged, verdicts.feature_p[..., 0])
    assert (verdicts.alarm.mean(axis=0) > 0.01).all()


def test_a_detector_merges_by_the_harmonic_mean_unless_told_otherwise():
    values = np.random.default_rng(2).normal(size=400)[:, np.newaxis]
    settings = {"alarm_rate": 0.05, "window": 250, "forecaster": "last-value"}
    default, harmonic, median = (
        Fleet(1, **settings, **more).run(values).merged for more in ({}, {"merge": "harmonic"}, {"merge": "median"})
    )
    np.testing.assert_array_equal(default, harmonic)
    assert not np.array_equal(default, median, equal_nan=True)


ENDS = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 3.0, np.inf, -np.inf, np.nan]))
FADES = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([0.0, 1e-12, 1e6]))


@given(pairs=st.lists(st.tuples(ENDS, FADES), min_size=1, max_size=20))
@example(pairs=[(2.0, 0.0)] * 15)
@example(pairs=[(0.0, 0.0)] * 15)
@example(pairs=[(float(h), 0.0) for h in range(-7, 8)])
def test_the_edge_of_the_harmonic_mean(pairs):
    ends, fades = np.array(pairs).T
    found = edge(ends, fades, HARMONIC, np.empty(len(pairs)))
    finite = ends[np.isfinite(ends)]
    size = np.abs(finite).max(initial=1.0)
    np.testing.assert_allclose(found, harmonic_edge(ends.tolist(), fades.tolist()), rtol=0, atol=1e-8 * size)
    if np.unique(finite).size == 1:
        assert found == finite[0]
