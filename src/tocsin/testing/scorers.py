"""The contract of scorers."""

from collections.abc import Callable

import numpy as np

from tocsin.conformal import Scorer
from tocsin.testing.contract import CUTS, Array, check_plain, pieces_of, require, same, same_states


def _scores(steps: int, streams: int, seed: int = 0) -> Array:
    """With ties, gaps, infinities, huge and tiny ones, and a stream that begins late."""
    rng = np.random.default_rng(seed)
    scores = np.abs(rng.normal(size=(steps, streams)))
    scores[:, -1] = np.round(scores[:, -1], 1)
    for value in (np.nan, np.inf, -np.inf, 1e300, 1e-300, 0.0):
        scores[rng.random(scores.shape) < 0.02] = value
    scores[: steps // 5, 0] = np.nan
    return scores


def check_scorer(make: Callable[[int], Scorer], *, steps: int = 400, streams: int = 3) -> None:
    """Check that the scorers that `make` creates for a number of streams fulfil their contract; see `tocsin.Scorer`."""
    scores = _scores(steps, streams)
    learn = np.random.default_rng(1).random(scores.shape) < 0.8
    given = scores.copy(), learn.copy()
    whole, single, pieces = make(streams), make(streams), make(streams)
    require(isinstance(whole, Scorer), f"a scorer must be a Scorer, got {type(whole).__name__}")
    p = whole.run(*given)
    same(given[0], scores, "a scorer must not change its input scores")
    same(given[1], learn, "a scorer must not change its argument learn")
    for array in given:
        array.fill(0)
    require(p.shape == scores.shape, f"p-values must have the shape of the scores, got {p.shape}")
    require(np.isnan(p[np.isnan(scores)]).all(), "NaN must give NaN, and only NaN: a missing score got a p-value")
    require(not np.isnan(p[~np.isnan(scores)]).any(), "NaN must give NaN, and only NaN: a score got no p-value")
    require(np.nanmin(p) > 0 and np.nanmax(p) <= 1, "p-values must be above 0 and at most 1")
    one_by_one = np.stack([single.update(row, mask) for row, mask in zip(scores, learn, strict=True)])
    same(one_by_one, p, "scores one by one must give the same p-values as all together")
    parts = [pieces.run(scores[a:b], learn[a:b]) for a, b in pieces_of(steps)]
    same(np.concatenate(parts), p, "scores in pieces must give the same p-values as all together")
    state = whole.state()
    check_plain(state, None)
    for scorer in (single, pieces):
        same_states(scorer.state(), state, "the state must not depend on how scores are batched")
    again = [make(streams).run_ranked(scores, learn) for _ in range(2)]
    same(again[0][0], p, "run_ranked must give the same p-values as run")
    same(again[0][1], again[1][1], "ranks must be deterministic")

    untouched, gappy = make(streams), make(streams)
    untouched.run(scores[~np.isnan(scores).any(axis=1)])
    with_gaps = np.full((2 * steps, streams), np.nan)
    with_gaps[::2] = np.where(np.isnan(scores).any(axis=1, keepdims=True), np.nan, scores)
    gappy.run(with_gaps)
    same_states(gappy.state(), untouched.state(), "NaN must leave its stream untouched")
    for stream in range(streams):
        disturbed = _scores(steps, streams, seed=7)
        disturbed[:, stream] = scores[:, stream]
        got = make(streams).run(disturbed, np.where(np.arange(streams) == stream, learn, True))
        same(got[:, stream], p[:, stream], "streams must not affect each other")
    _check_scorer_states(make, scores, streams)
    before = whole.nbytes, sum(array.nbytes for array in state.values())
    whole.run(np.abs(np.random.default_rng(2).normal(size=(10 * steps, streams))))
    after = whole.nbytes, sum(array.nbytes for array in whole.state().values())
    require(before == after, "memory must not grow: a scorer holds more after more scores")
    require(len(whole.guarantee) > 20, "a scorer must say what is guaranteed")


def _check_scorer_states(make: Callable[[int], Scorer], scores: Array, streams: int) -> None:
    for cut in CUTS:
        if cut >= len(scores):
            continue
        scorer = make(streams)
        scorer.run(scores[:cut])
        state = scorer.state()
        copied = {name: array.copy() for name, array in state.items()}
        restored = type(scorer).from_state(state)
        expected = scorer.run(scores[cut:])
        message = f"restored after {cut} scores, a scorer must continue with the same p-values"
        same(restored.run(scores[cut:]), expected, message)
        same_states(restored.state(), scorer.state(), message)
        same_states(state, copied, "a state must be a copy: it changed with its scorer")
        if getattr(scorer, "smoothing", None) is not None:
            continue  # a stream's draws depend on its number
        chosen = [streams - 1, 0]
        before = make(streams)
        before.run(scores[:cut])
        some = type(scorer).from_state(before.state(chosen))
        same(
            some.run(scores[cut:, chosen]),
            expected[:, chosen],
            "extracted streams must continue with the same p-values",
        )
