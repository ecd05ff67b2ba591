"""Weights by lag and by context, against plain loops, and what they promise."""

import math

import numpy as np
import pytest

from tocsin.conformal import W1ACAS, ContextualScorer, ExponentialDecay, GaussianTail, SlidingWindow

MOVING = {"alpha_c": 0.05, "window": 60, "learning_rate": 0.02, "batch": 5, "dtype": "float64"}


def slow_p(scores, contexts, weights_at, bandwidth, least):
    """p of each score of one stream, with the weights by lag that `weights_at(t)` gives, the newest lag first."""
    found, past = [], []
    for t, (score, context) in enumerate(zip(scores, contexts, strict=True)):
        if math.isnan(score):
            found.append(math.nan)
            continue
        weights = weights_at(t)
        kept = past[: len(weights)]
        alike = [
            math.exp(-sum(((a - b) / h) ** 2 for a, b, h in zip(then, context, bandwidth, strict=True)) / 2)
            for _, then in kept
        ]
        whole = sum(weights[: len(kept)])
        left = sum(w * c for w, c in zip(weights, alike, strict=False))
        if left < min(least, whole):
            part = (min(least, whole) - left) / (whole - left)
            alike = [c + part * (1 - c) for c in alike]
        weighed = [w * c for w, c in zip(weights, alike, strict=False)]
        above = sum(weight for weight, (one, _) in zip(weighed, kept, strict=True) if one >= score)
        found.append((1 + above) / (1 + sum(weighed)))
        past.insert(0, (score, context))
    return np.array(found)


def example(steps=150, seed=0):
    rng = np.random.default_rng(seed)
    scores, contexts = np.abs(rng.normal(size=steps)), rng.normal(size=(steps, 2))
    scores[40] = np.nan
    return scores, contexts


@pytest.mark.parametrize("bandwidth", [(1.0, 0.3), (0.05, 0.05), (math.inf, 2.0)])
def test_fixed_weights_against_plain_loops(bandwidth):
    scores, contexts = example()
    scorer = ContextualScorer(ExponentialDecay(decay=0.95, window=50, dtype="float64"), bandwidth, alpha_c=0.2)
    by_lag = [0.95**lag for lag in range(50)]
    wanted = slow_p(scores, contexts, lambda t: by_lag, bandwidth, 4)
    np.testing.assert_allclose(scorer.run(scores[:, np.newaxis], contexts)[:, 0], wanted, rtol=1e-9)


def test_learned_weights_against_plain_loops():
    scores, contexts = example(400, seed=1)
    alone = W1ACAS(**MOVING)
    weights = []
    for score in scores:
        weights.append(alone.weights[0][: min(alone.learned[0], 60)].tolist())
        alone.update([score])
    scorer = ContextualScorer(W1ACAS(**MOVING), [0.5, 0.5], alpha_c=0.05)
    wanted = slow_p(scores, contexts, weights.__getitem__, [0.5, 0.5], 19)
    np.testing.assert_allclose(scorer.run(scores[:, np.newaxis], contexts)[:, 0], wanted, rtol=1e-9)
    np.testing.assert_array_equal(scorer.scorer.weights, alone.weights)  # weights by lag are learned as alone
    assert np.ptp(alone.weights) > 0.1


def test_contexts_that_do_not_matter_change_nothing():
    scores = np.abs(np.random.default_rng(2).normal(size=(300, 3)))
    contexts = np.random.default_rng(3).normal(size=(300, 1))
    same = ContextualScorer(W1ACAS(3, **MOVING), [np.inf]).run(scores, contexts)
    np.testing.assert_allclose(same, W1ACAS(3, **MOVING).run(scores), atol=1e-9)


def test_streamed_and_restored_it_gives_the_same_bits():
    rng = np.random.default_rng(4)
    scores, contexts = np.abs(rng.normal(size=(200, 2))), rng.normal(size=(200, 1))
    scores[50:60, 0] = np.nan  # the streams learn at different times
    history = ContextualScorer(W1ACAS(2, **MOVING), [0.5]).run(scores, contexts)
    scorer, streamed = ContextualScorer(W1ACAS(2, **MOVING), [0.5]), []
    for t, (row, context) in enumerate(zip(scores, contexts, strict=True)):
        if t == 120:
            scorer = ContextualScorer.from_state(scorer.state())
        streamed.append(scorer.update(row, context))
    np.testing.assert_array_equal(np.array(streamed), history)


def test_what_is_not_learned_is_judged_only():
    scorer = ContextualScorer(SlidingWindow(2, window=9), [1.0])
    scorer.run([[1.0, 1.0]] * 5, [[0.0]] * 5)
    before = scorer.state()
    p = scorer.update([9.0, 9.0], [0.0], learn=False)
    assert p.tolist() == [1 / 6, 1 / 6]
    assert all(np.array_equal(before[name], array) for name, array in scorer.state().items() if "seen" not in name)


def test_contexts_that_scores_do_not_depend_on_keep_the_promise():
    """P(p <= alpha) <= alpha for scores that are independent of the time of day, whatever the bandwidth."""
    rng = np.random.default_rng(5)
    steps, streams = 300, 25
    phase = 2 * np.pi * np.arange(steps) / 24
    contexts = np.column_stack([np.cos(phase), np.sin(phase)])
    scorer = ContextualScorer(SlidingWindow(streams, window=100), [0.3, 0.3], alpha_c=0.02)
    p = scorer.run(rng.exponential(size=(steps, streams)), contexts)[100:]
    for alpha in (0.05, 0.1, 0.3):
        shares = (p <= alpha).mean(axis=0)  # streams are independent
        assert shares.mean() <= alpha + 4 * shares.std(ddof=1) / np.sqrt(streams)
        assert shares.mean() >= 0.5 * alpha


def test_errors_that_follow_the_time_of_day_are_judged_by_it():
    """At each hour about alpha of the errors have p <= alpha; with weights by lag alone, none or most of them."""
    rng = np.random.default_rng(6)
    steps, streams = 720, 8
    phase = 2 * np.pi * np.arange(steps) / 24
    scores = rng.exponential(size=(steps, streams)) * np.exp(1.5 * np.sin(phase))[:, np.newaxis]
    contexts = np.column_stack([np.cos(phase), np.sin(phase)])

    def gap(p):
        by_hour = (p[240:].reshape(-1, 24, streams) <= 0.1).mean(axis=(0, 2))
        return np.abs(by_hour - 0.1).mean()

    alone = gap(SlidingWindow(streams, window=240).run(scores))
    by_context = gap(
        ContextualScorer(SlidingWindow(streams, window=240), [0.2, 0.2], alpha_c=0.1).run(scores, contexts)
    )
    assert alone > 0.1
    assert by_context < 0.4 * alone  # of which .02 is chance


@pytest.mark.parametrize(
    ("bandwidth", "message"),
    [
        ([], "bandwidth must be numbers above 0"),
        ([0.0], "bandwidth"),
        ([-1.0, 1.0], "bandwidth"),
        ([[1.0]], "bandwidth"),
    ],
)
def test_a_bandwidth_that_is_none(bandwidth, message):
    with pytest.raises(ValueError, match=message):
        ContextualScorer(W1ACAS(), bandwidth)


def test_p_is_at_most_1():
    rng = np.random.default_rng(7)
    scorer = ContextualScorer(SlidingWindow(window=200), [0.3], alpha_c=0.05)
    scores = rng.exponential(size=600)
    scores[300:] = 0.0  # the lowest of all: sums of all weights, in two orders
    assert scorer.run(scores[:, np.newaxis], rng.normal(size=(600, 1))).max() == 1.0


def test_what_does_not_fit():
    scorer = ContextualScorer(SlidingWindow(2, window=9), [1.0])
    with pytest.raises(ValueError, match="scores must be 2, one for each stream, got 1"):
        scorer.update([1.0], [0.0])
    with pytest.raises(ValueError, match="context must be 1 finite numbers"):
        scorer.update([1.0, 1.0], [np.nan])
    with pytest.raises(ValueError, match="contexts must be one for each of 3 observations, got 2"):
        scorer.run(np.ones((3, 2)), np.ones((2, 1)))
    with pytest.raises(TypeError, match="scorer must be one with weights over its past"):
        ContextualScorer(GaussianTail(), [1.0])
    for name in ("bandwidth", "alpha_c", "scorer.scorer", "contexts.learned", "scorer.scores"):
        state = scorer.state()
        del state[name]
        with pytest.raises(ValueError, match="state must"):
            ContextualScorer.from_state(state)
    used = SlidingWindow(window=9)
    used.update([1.0])
    with pytest.raises(ValueError, match="scorer must be new"):
        ContextualScorer(used, [1.0])
