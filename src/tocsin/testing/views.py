"""The contract of views."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tocsin.detection.views import Seen, Stream, View, ViewSession
from tocsin.detection.views.view import NO_SPREAD, Forecasts
from tocsin.testing.contract import (
    CUTS,
    Array,
    check_plain,
    hard_values,
    held_bytes,
    pieces_of,
    require,
    same,
    same_states,
)


def _seen(view: View, steps: int, signals: int, features: int, seed: int = 0, *, scaled: bool = False) -> Seen:
    """What a detector would pass: forecasts that repeat the last value, slightly further off with each step.

    The second forecaster looks one step ahead, and errors are divided by the spread only where there is no second one.
    """
    values = hard_values(steps, signals * features, seed).reshape(steps, signals, features)
    last = values.copy()
    for t in range(1, steps):
        last[t] = np.where(np.isnan(last[t]), last[t - 1], last[t])
    forecasts = []
    for bias, horizons in ((0.01, max(1, view.horizons)), (0.02, 1))[: 1 if scaled else 2]:
        ahead, spread = np.full((*values.shape, horizons), np.nan), np.full((*values.shape, horizons), np.nan)
        for h in range(1, horizons + 1):
            ahead[h:, ..., h - 1] = last[: steps - h] + bias * h
            spread[h:, ..., h - 1] = np.abs(ahead[h:, ..., h - 1]) * 0.1 + h
        ready = np.random.default_rng(seed).random(values.shape) < 0.97
        ready[:5] = False
        forecasts.append(Forecasts(ahead, spread if scaled else NO_SPREAD, ready))
    return Seen(values, tuple(forecasts))


def _arrays(seen: Seen) -> dict[str, Array]:
    """Everything a view is given, by its name."""
    forecasts = {
        f"forecasts[{number}].{name}": array
        for number, one in enumerate(seen.forecasts)
        for name, array in one._asdict().items()
    }
    return {"values": seen.values, **forecasts}


def _part(seen: Seen, first: int, last: int, rows: Any = slice(None)) -> Seen:
    """Some of the observations of some of the signals, as copies."""

    def cut(array: Array) -> Array:
        return array if array.size == 0 else np.array(array[first:last][:, rows], order="C")

    forecasts = tuple(Forecasts(cut(one.ahead), cut(one.spread), cut(one.ready)) for one in seen.forecasts)
    return Seen(cut(seen.values), forecasts)


def _looked(view: View, session: ViewSession, seen: Seen, rows: Array) -> Array:
    steps, count, features = seen.values.shape
    # As in a detector, a part of the scores of all views: loops are compiled again for arrays that lie otherwise.
    scores = np.full((steps, count, 1 if view.joint else features, len(view.streams) + 1), np.nan)[..., 1:]
    session.run(seen, rows, scores)
    return scores


def check_view(view: View, *, steps: int = 260, signals: int = 4) -> None:
    """Check that a view fulfils its contract; see `tocsin.detection.views.View`.

    `steps` is the length of the signals it gets: more than it needs for its first score.
    """
    _check_declaration(view)
    few = 2 if view.relates else 1
    for features, scaled in ((few, False), (3, False), (2, True)):
        _check_sessions(view, steps, signals, features, scaled)
    _check_missing(view, steps, signals)
    _check_sides(view, steps, signals, few)
    _check_refusals(view, steps, few)
    session = view.open(signals=2, features=few, side=0)
    before = held_bytes(session), {name: array.nbytes for name, array in session.state(np.arange(2)).items()}
    _looked(view, session, _seen(view, 8 * steps, 2, few), np.arange(2))
    after = held_bytes(session), {name: array.nbytes for name, array in session.state(np.arange(2)).items()}
    require(before == after, "memory must not grow: a session holds more after more observations")


def _check_declaration(view: View) -> None:
    require(isinstance(view, View), f"a view must be a View, got {type(view).__name__}")
    require(isinstance(view.name, str) and view.name, f"name must be a text, got {view.name!r}")
    streams = view.streams
    require(streams and all(isinstance(one, Stream) for one in streams), f"streams must be Streams, got {streams!r}")
    require(len({one.name for one in streams}) == len(streams), "streams must have distinct names")
    require(all(one.length >= 1 for one in streams), "lengths must be 1 or more")
    require(view.horizons >= 0, f"horizons must not be negative, got {view.horizons}")
    require(view.horizons == 0 or view.forecasts, "a view that uses forecasts must set forecasts")
    require(view.begins >= 0, f"begins must not be negative, got {view.begins}")
    for stream in range(len(streams)):
        for score in (0.0, 1.5, -1.5, 1e6):
            for interval in (None, 60.0):
                words = view.words(stream, score, "mm", interval)
                # Empty if the values, which come first, say it all.
                require(isinstance(words, str), f"words must be a text for a score of {score}, got {words!r}")


def _check_sessions(view: View, steps: int, signals: int, features: int, scaled: bool) -> None:
    seen, everything = _seen(view, steps, signals, features, scaled=scaled), np.arange(signals)
    kept = _part(seen, 0, steps)
    whole = view.open(signals, features, 0)
    scores = _looked(view, whole, seen, everything)
    for name, copy in _arrays(kept).items():
        same(_arrays(seen)[name], copy, f"a view must not change its input: it changed {name}")
    require(not np.isnan(scores).all(), f"there must be a score within {steps} observations")
    expected = whole.state(everything)
    check_plain(expected, signals)

    single, pieces = view.open(signals, features, 0), view.open(signals, features, 0)
    one_by_one = [_looked(view, single, _part(seen, t, t + 1), everything) for t in range(steps)]
    same(np.concatenate(one_by_one), scores, "observations one by one must give the same scores as all together")
    parts = [_looked(view, pieces, _part(seen, *edge), everything) for edge in pieces_of(steps)]
    same(np.concatenate(parts), scores, "observations in pieces must give the same scores as all together")
    for session in (single, pieces):
        same_states(session.state(everything), expected, "the state must not depend on how observations are batched")

    for signal in range(signals):
        alone = view.open(1, features, 0)
        got = _looked(view, alone, _part(seen, 0, steps, [signal]), np.arange(1))
        same(got, scores[:, [signal]], "a signal among others must have the same scores as alone")
    _check_rows(view, seen, scores, expected)
    for cut in CUTS:
        if cut < steps:
            _check_restored(view, seen, scores, cut, signals, features)


def _check_rows(view: View, seen: Seen, scores: Array, expected: Mapping[str, Array]) -> None:
    """Signals that advance independently, in any order."""
    steps, signals, features = seen.values.shape
    rng = np.random.default_rng(1)
    session, at = view.open(signals, features, 0), np.zeros(signals, dtype=np.int64)
    while at.min() < steps:
        length = int(rng.choice([1, 1, 3, 40]))
        rows = rng.permutation(np.flatnonzero(at + length <= steps))[: int(rng.integers(1, signals + 1))]
        for row in rows:
            # Together where they are at the same place, otherwise one at a time.
            together = np.array([other for other in rows if at[other] == at[row]])
            if row != together[0]:
                continue
            first = int(at[row])
            got = _looked(view, session, _part(seen, first, first + length, together), together)
            same(got, scores[first : first + length, together], "selected rows must have the same scores as all rows")
        at[rows] += length
    same_states(session.state(np.arange(signals)), expected, "rows processed separately must end in the same state")


def _check_restored(view: View, seen: Seen, scores: Array, cut: int, signals: int, features: int) -> None:
    steps, everything = seen.values.shape[0], np.arange(signals)
    session = view.open(signals, features, 0)
    _looked(view, session, _part(seen, 0, cut), everything)
    state = session.state(everything)
    copied = {name: array.copy() for name, array in state.items()}
    restored = view.open(signals, features, 0)
    _looked(view, restored, _seen(view, 40, signals, features, seed=9), everything)
    restored.restore(state, everything)
    same_states(restored.state(everything), copied, f"a state restored after {cut} observations must be the same")
    rest = _part(seen, cut, steps)
    message = f"restored after {cut} observations, a session must continue with the same scores"
    same(_looked(view, restored, rest, everything), scores[cut:], message)
    same_states(state, copied, "a state must be a copy: it changed with the session that restored it")
    _looked(view, session, rest, everything)
    same_states(state, copied, "a state must be a copy: it changed with its session")
    for array in state.values():
        array.fill(0)
    same_states(restored.state(everything), session.state(everything), "a session must not keep the arrays of a state")
    # One signal of many, into another row of another session; all others must not change.
    other, undisturbed = view.open(3, features, 0), view.open(3, features, 0)
    for one in (other, undisturbed):
        _looked(view, one, _seen(view, 50, 3, features, seed=3), np.arange(3))
    other.restore({name: array[[2]] for name, array in copied.items()}, np.array([1]))
    got = _looked(view, other, _part(rest, 0, steps, [2]), np.array([1]))
    same(got, scores[cut:, [2]], "a signal moved to another session must continue with the same scores")
    others = np.array([0, 2])
    same_states(other.state(others), undisturbed.state(others), "a moved signal must not affect others")


def _check_missing(view: View, steps: int, signals: int) -> None:
    seen, everything = _seen(view, steps, signals, 2, seed=4), np.arange(signals)
    scores = _looked(view, view.open(signals, 2, 0), seen, everything)
    gone: Array = np.isnan(seen.values)
    if view.joint:
        gone = np.asarray(gone.all(axis=2, keepdims=True))
    require(np.isnan(scores[gone]).all(), "a missing value must have no score")
    nothing = seen._replace(values=np.full(seen.values.shape, np.nan))
    scores = _looked(view, view.open(signals, 2, 0), nothing, everything)
    require(np.isnan(scores).all(), "a signal with only gaps must have no score")
    if not view.joint and not view.relates:
        other = seen._replace(values=seen.values.copy())
        other.values[..., 1] = 7.0
        again = _looked(view, view.open(signals, 2, 0), other, everything)
        first = _looked(view, view.open(signals, 2, 0), seen, everything)[..., 0, :]
        same(again[..., 0, :], first, "features must not affect each other, unless the view relates them")
    if view.joint:
        shape = scores.shape[2]
        require(shape == 1, f"a joint view has one score for all features, got {shape}")


def _check_sides(view: View, steps: int, signals: int, features: int) -> None:
    """What is high in one signal is low in its mirror image."""
    if not view.sided:
        return
    seen, everything = _seen(view, steps, signals, features, seed=5), np.arange(signals)
    mirrored = Seen(-seen.values, tuple(one._replace(ahead=-one.ahead) for one in seen.forecasts))
    high = _looked(view, view.open(signals, features, 1), seen, everything)
    low = _looked(view, view.open(signals, features, 2), mirrored, everything)
    same(high, low, "the low side of a signal must be the high side of its mirror image")
    require(np.nanmin(high) < 0 < np.nanmax(high), "scores of one side must have a sign")


def _check_refusals(view: View, steps: int, features: int) -> None:
    session = view.open(signals=2, features=features, side=0)
    _looked(view, session, _seen(view, steps, 2, features), np.arange(2))
    state = session.state(np.arange(2))
    for name, array in state.items():
        for wrong in (array[:-1], array[np.newaxis], array.astype(np.complex128)):
            require(_refuses(session, {**state, name: wrong}), f"a state with a wrong {name!r} must be rejected")
    same_states(session.state(np.arange(2)), state, "a rejected state must change nothing")


def _refuses(session: ViewSession, state: Mapping[str, Array]) -> bool:
    try:
        session.restore(state, np.arange(2))
    except ValueError:
        return True
    return False
