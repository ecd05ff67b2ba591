"""Ranks, the p-values refined where they cannot tell scores apart, and quantiles of some of the streams."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests import oracles
from tests.bands import margin
from tests.conformal.test_contract import (
    MAKERS,
    STREAMS,
    UNSMOOTHED,
    every_scorer,
    every_unsmoothed_scorer,
    hard_scores,
    plain_scores,
    same_state,
)
from tocsin.conformal import W1ACAS, GaussianTail, SlidingWindow, kernels

# Scorers with a history, which refine; the other one has p-values that are fine as they are.
HISTORY = {name: make for name, make in UNSMOOTHED.items() if name != "gaussian"}
every_history = pytest.mark.parametrize("make", HISTORY.values(), ids=HISTORY.keys())


def surprise_of(past, weights, score, length=1):
    """The compiled surprise of a score among these, about so many observations each."""
    total = float(weights.sum(dtype=np.float64))
    p = kernels.conformal_p(past, weights, total, score)
    return kernels.surprise(p, past, weights, total, score, length, 2.0, 30.0)


weight = st.one_of(st.just(0.0), st.just(1.0), st.integers(1, 2**20).map(lambda n: n / 2**20))
value = st.one_of(st.integers(-3, 3).map(float), st.floats(-100, 100), st.sampled_from([math.inf, -math.inf]))


@pytest.mark.slow
@given(st.lists(st.tuples(value, weight), min_size=1, max_size=30), value, st.sampled_from([1, 4, 64]))
def test_the_surprise_is_that_of_the_oracle(pairs, score, length):
    past, weights = (np.array(column) for column in zip(*pairs, strict=True))
    heard = past[weights > 0]
    if not np.isfinite(past).all() and heard.size and (heard < score).all():
        # An infinite score leaves no tail to fit.
        expected = -math.log(1 / (1 + weights.sum()))
    else:
        expected = oracles.surprise(past, weights, score, length=length)
    got = surprise_of(past, weights, score, length)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert 0 <= got < math.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [61, 150, 2000])
@pytest.mark.parametrize("length", [1, 16, 64])
def test_the_tail_is_that_of_the_oracle(size, dtype, length):
    """Also for long stretches, whose tails are fitted to more scores; with fewer than that there is no tail."""
    rng = np.random.default_rng(size)
    past = rng.exponential(size=size).astype(dtype)
    weights = np.round(rng.random(size) * 2**20).astype(dtype) / dtype(2**20)
    before = 0.0
    for far in (0.0, 1e-3, 0.5, 3.0, 50.0, 1e12, 1e38, np.inf):
        score = float(dtype(float(past.max()) + far))
        got = surprise_of(past, weights, score, length)
        assert got == pytest.approx(oracles.surprise(past, weights, score, length=length), rel=1e-9)
        assert before <= got < math.inf
        before = got


def test_what_lies_beyond_counts_in_full_and_further_out_by_its_logarithm():
    """Of an exponential law of scale one, a score a little beyond the largest is as many nats rarer as it is larger."""
    past = np.sort(np.random.default_rng(0).exponential(size=5000))
    largest, ones = past[-1], np.ones(5000)
    at_all = surprise_of(past, ones, largest + 1e-9)
    near, far, further = (surprise_of(past, ones, largest + away) - at_all for away in (1.0, 100.0, 1000.0))
    assert 0.7 < near < 1.2
    assert 35 < far < 50
    assert far < further < far + 30 * math.log(10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_any_size_have_a_finite_surprise_in_their_order(dtype):
    rng = np.random.default_rng(1)
    past, weights = np.abs(rng.normal(size=500)).astype(dtype), np.ones(500, dtype=dtype)
    scores = [20.0, 1e3, 1e6, 1e12, 1e30, 1e100, 1e200, 1e308, np.inf]
    surprises = [surprise_of(past, weights, score) for score in scores]
    assert np.isfinite(surprises).all()
    assert np.all(np.diff(surprises[:-1]) > 0)
    assert surprises[-1] >= surprises[-2]
    assert surprises[3] > surprises[0] + 100


ordinary = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e9, 1e9), st.floats(-1e308, 1e308))


@given(st.lists(st.tuples(ordinary, weight), min_size=1, max_size=40), ordinary, ordinary, st.sampled_from([1, 64]))
def test_a_larger_score_never_has_the_smaller_surprise(pairs, one, other, length):
    """Whatever the weights; ties are told of as p-values."""
    past, weights = (np.array(column) for column in zip(*pairs, strict=True))
    low, high = sorted((one, other))
    if np.isin([low, high], past).any():
        return
    assert surprise_of(past, weights, low, length) <= surprise_of(past, weights, high, length) + 1e-12


@pytest.mark.slow
def test_no_distance_overflows():
    """Two doubles may lie further apart than any double is large."""
    past, weights = np.array([-1.7e308, 1.7e308]), np.ones(2)
    for score in (-1.6e308, 0.0, 1.6e308):
        part = (1.7e308 / 2 - score / 2) / 1.7e308
        assert surprise_of(past, weights, score) == pytest.approx(-math.log((1 + part) / 3))
    scorer = SlidingWindow(window=5, dtype="float64")
    scorer.run([-1.7e308, 1.7e308])
    assert np.isfinite(scorer.run_ranked([[-1.6e308]])[1]).all()


@every_scorer
def test_p_is_that_of_run_and_the_state_too(make):
    scores = hard_scores()
    learn = np.random.default_rng(1).random(scores.shape) < 0.8
    one, other, pieces = make(), make(), make()
    p, rank = one.run_ranked(scores, learn)
    np.testing.assert_array_equal(p, other.run(scores, learn))
    same_state(one, other)
    parts = [
        pieces.run_ranked(scores[first:last], learn[first:last])[1] for first, last in ((0, 1), (1, 99), (99, 400))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), rank)


@every_scorer
def test_ranks_are_missing_where_scores_are(make):
    scores = hard_scores(seed=2)
    p, rank = make().run_ranked(scores)
    np.testing.assert_array_equal(np.isnan(rank), np.isnan(scores))
    assert np.nanmin(rank) > 0
    assert np.nanmax(rank) <= 1
    assert p.shape == rank.shape == scores.shape
    empty = make().run_ranked(np.empty((0, STREAMS)))
    assert empty[0].shape == empty[1].shape == (0, STREAMS)


@every_unsmoothed_scorer
def test_a_rank_is_never_above_its_p(make):
    p, rank = make().run_ranked(hard_scores(seed=3))
    assert np.nanmax(rank - p) <= 0


@pytest.mark.slow
@every_history
def test_ranks_are_those_of_the_oracle(make):
    """From the scores and weights that a scorer has at the time, one score at a time."""
    scorer = make()
    for row in hard_scores(seed=4, steps=130):
        wanted = []
        for stream, score in enumerate(row):
            past, weights, total = scorer.calibration_set(stream)
            with np.errstate(over="ignore"):
                score = float(np.dtype(scorer.dtype).type(score))
            if math.isnan(score):
                wanted.append(math.nan)
                continue
            heard = past[weights > 0]
            if not np.isfinite(past).all() and heard.size and (heard < score).all():
                wanted.append(1 / (1 + total))  # an infinite score leaves no tail to fit
            else:
                wanted.append(max(math.exp(-oracles.surprise(past, weights, score)), kernels.SMALLEST))
        np.testing.assert_allclose(scorer.run_ranked([row])[1][0], wanted, rtol=1e-5)


def ladder(scorer, stream=0):
    """Scores between all that the stream has seen and beyond, none of them a tie."""
    past = np.unique(scorer.calibration_set(stream)[0].astype(float))
    past = past[np.isfinite(past)]
    rungs = [past[:-1] + (past[1:] - past[:-1]) * part for part in (0.01, 0.5, 0.99)]
    beyond_all = past[-1] + np.array([1e-3, 0.1, 1.0, 10.0, 1e6, np.inf])
    return np.setdiff1d(np.concatenate([[past[0] - 1.0], *rungs, beyond_all]).astype(scorer.dtype), past)


@every_history
@pytest.mark.parametrize("seed", range(4))
def test_a_larger_score_never_has_the_larger_rank(make, seed):
    """Also with learned weights under 1, which leave steps of unequal height. Ties are told of as p-values."""
    scorer = make()
    scorer.run(plain_scores(seed=seed, steps=150))
    scores = ladder(scorer)
    rank = scorer.run_ranked(np.repeat(scores[:, np.newaxis], STREAMS, axis=1), learn=False)[1][:, 0]
    assert np.all(np.diff(rank) <= 1e-15)
    if scorer.window < 60:
        return
    assert rank[-6] > rank[-4]


def test_learned_weights_leave_ranks_monotone():
    """Strongly learned weights, a whole tail of them: the ranks of a ladder of scores fall from rung to rung."""
    rng = np.random.default_rng(0)
    scorer = W1ACAS(STREAMS, alpha_c=0.01, window=400, learning_rate=0.05, prior="extend")
    scorer.run(np.abs(rng.normal(size=(1500, STREAMS)) * (1 + np.sin(np.arange(1500) / 4))[:, np.newaxis]))
    assert np.mean((scorer.weights > 0) & (scorer.weights < 0.9)) > 0.05
    for stream in range(STREAMS):
        scores = ladder(scorer, stream)
        rank = scorer.run_ranked(np.repeat(scores[:, np.newaxis], STREAMS, axis=1), learn=False)[1][:, stream]
        assert np.all(np.diff(rank) <= 1e-15)


def test_ranks_tell_apart_what_p_does_not():
    scorer = SlidingWindow(window=1000)
    scores = np.random.default_rng(0).exponential(size=1000)
    scorer.run(scores)
    largest = scores.max()
    p, rank = scorer.run_ranked([[largest + 1], [largest + 2], [1e6], [1e9]], learn=False)
    assert len(set(p[:, 0])) == 1
    assert rank[0, 0] > rank[1, 0] > rank[2, 0] > rank[3, 0] > 0
    assert rank[3, 0] < 1e-60


@pytest.mark.slow
def test_a_rank_is_never_nothing():
    """However far out: the smallest normal double is as small as ranks get."""
    scorer = SlidingWindow(window=100, dtype="float64")
    scorer.run(1 + 1e-9 * np.random.default_rng(0).random(100))
    assert scorer.run_ranked([[1e308], [np.inf]], learn=False)[1].tolist() == [[kernels.SMALLEST]] * 2


def test_the_ranks_of_a_gaussian_tail_are_its_p_values():
    p, rank = MAKERS["gaussian"]().run_ranked(hard_scores())
    np.testing.assert_array_equal(p, rank)
    assert isinstance(MAKERS["gaussian"](), GaussianTail)


def test_smoothed_scorers_rank_as_if_they_were_not():
    """A rank breaks ties by where a score lies, not by a draw."""
    scores = plain_scores()
    plain = SlidingWindow(STREAMS, window=20).run_ranked(scores)[1]
    np.testing.assert_array_equal(MAKERS["window smoothed"]().run_ranked(scores)[1], plain)


def test_threads_do_not_change_ranks():
    scores = hard_scores(streams=5)
    one, two = (W1ACAS(5, alpha_c=0.1, window=30, prior="extend", threads=threads) for threads in (1, 2))
    for first, second in zip(one.run_ranked(scores), two.run_ranked(scores), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["exponential", "normal", "uniform"])
@pytest.mark.parametrize(
    "make",
    [
        lambda k: SlidingWindow(k, window=150),
        lambda k: W1ACAS(k, window=150, prior="extend"),
        lambda k: W1ACAS(k, window=150, prior="extend", learning_rate=0.02),
    ],
    ids=["window", "w1acas", "w1acas, fast"],
)
def test_ranks_are_about_uniform_below_the_smallest_p(make, law):
    """P(rank <= x) at levels down to a twentieth of 1/(window + 1); error level 1e-3 over levels.

    Beside the band of the streams a tenth is allowed, and a half beyond the largest score, where the tail is a fit of
    few scores. It is exponential: with lighter tails ranks are larger than uniform ones, never smaller.
    """
    streams, window = 400, 150
    rng = np.random.default_rng(5)
    shape = (window + 500, streams)
    scores = {
        "exponential": lambda: rng.exponential(size=shape),
        "normal": lambda: np.abs(rng.normal(size=shape)),
        "uniform": lambda: rng.random(size=shape),
    }[law]()
    scorer = make(streams)
    rank = scorer.run_ranked(scores)[1][window:]
    smallest = 1 / (window + 1)
    levels = np.array([0.05, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0, 10.0, 20.0]) * smallest
    rates = np.stack([(rank <= level).mean(axis=0) for level in levels], axis=1)
    band = margin(rates, 1e-3, comparisons=levels.size)
    allowed = np.where(levels < 2 * smallest, 0.5, 0.1)
    assert np.all(rates.mean(axis=0) - band <= levels * (1 + allowed))
    reached = levels > 2 * smallest if law != "exponential" else levels > 0
    assert np.all((rates.mean(axis=0) + band >= levels / (1 + allowed))[reached])


@pytest.mark.slow
def test_ranks_of_independent_streams_are_uniform():
    """Kolmogorov-Smirnov over 4,000 streams after 200 scores, error level 1e-3: at that size no departure shows."""
    streams = 4000
    scores = np.random.default_rng(3).exponential(size=(201, streams))
    p, rank = SlidingWindow(streams, window=200, dtype="float64").run_ranked(scores)
    assert stats.kstest(rank[-1], "uniform").pvalue > 1e-3
    tail = rank[-1][p[-1] < 30 / 201] * 201 / 30
    assert stats.kstest(tail, "uniform").pvalue > 1e-3


@every_unsmoothed_scorer
def test_quantiles_of_some_streams_are_those_of_all(make):
    scorer = make()
    scorer.run(plain_scores(steps=150))
    alphas = np.array([0.03, 0.2, 0.7])
    alone = [scorer.quantile(float(alpha))[stream] for stream, alpha in enumerate(alphas)]
    np.testing.assert_array_equal(scorer.quantile(alphas), alone)
    np.testing.assert_array_equal(scorer.quantile(alphas[[2, 0]], [2, 0]), [alone[2], alone[0]])
    np.testing.assert_array_equal(scorer.quantile(0.2, [1]), scorer.quantile(0.2)[1:2])
    np.testing.assert_array_equal(scorer.quantile([0.03, 0.2], [1, 1]), [scorer.quantile(a)[1] for a in (0.03, 0.2)])
    np.testing.assert_array_equal(scorer.quantile(0.2, np.array([2], dtype=np.uint8)), scorer.quantile(0.2)[2:])
    assert scorer.quantile(0.2, []).shape == (0,)
    assert scorer.quantile([], []).shape == (0,)
    same_state(scorer, make_again(make))


def make_again(make):
    scorer = make()
    scorer.run(plain_scores(steps=150))
    return scorer


@every_scorer
@pytest.mark.parametrize(
    ("alpha", "streams", "message"),
    [
        (0.1, [3], r"streams must be indices from 0 to 2, got \[3\]"),
        (0.1, [-1], r"streams must be indices from 0 to 2, got \[-1\]"),
        (0.1, 1, "streams must be a sequence of indices of streams, got 1"),
        (0.1, [[1]], "streams must be a sequence of indices"),
        (0.1, [1.0], "streams must be a sequence of indices"),
        (0.1, [True], "streams must be a sequence of indices"),
        (0.1, ["a"], "streams must be a sequence of indices"),
        ([0.1, 0.2], None, "alpha must be a number > 0 and <= 1, or one for each of the streams"),
        ([0.1, 0.2], [1], "alpha must be a number > 0 and <= 1, or one for each"),
        ([[0.1]], [1], "alpha must be a number > 0 and <= 1, or one for each"),
        ([0.0], [1], "alpha must be a number > 0 and <= 1, or one for each"),
        ([1.1], [1], "alpha must be a number > 0 and <= 1, or one for each"),
        ([float("nan")], [1], "alpha must be a number > 0 and <= 1, or one for each"),
        (["x"], [1], "alpha must be numbers"),
    ],
)
def test_bad_arguments_of_quantile_are_named(make, alpha, streams, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make().quantile(alpha, streams)


@every_scorer
@pytest.mark.parametrize("scores", [[1.0, 2.0, 3.0], np.zeros((4, 2)), [["a", "b", "c"]], [[1j, 0, 0]]])
def test_bad_scores_are_named(make, scores):
    scorer = make()
    with pytest.raises((TypeError, ValueError), match="scores must"):
        scorer.run_ranked(scores)
    same_state(scorer, make())
