"""Contract checks for authors of views, scorers and forecasters.

Each check generates its own data, with gaps, ties and signals that begin late, and raises a `ContractError` that says
what was violated. It returns nothing on success. The built-in implementations pass the same checks.

>>> from tocsin import SlidingWindow
>>> from tocsin.detection.views import make_view
>>> check_view(make_view("quiet"))
>>> check_scorer(lambda streams: SlidingWindow(streams, window=20))
>>> class Forgetful(SlidingWindow):
...     def _advance(self, scores, learn, p, rank=None):
...         p[:] = 0.5
>>> check_scorer(lambda streams: Forgetful(streams, window=20))
Traceback (most recent call last):
tocsin.testing.ContractError: NaN must give NaN, and only NaN: a missing score got a p-value
"""

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal import Scorer
from tocsin.detection.views import Seen, Stream, View, ViewSession
from tocsin.detection.views.view import GEOMETRIC, HARMONIC, MEDIAN, NO_FAULTS, NO_SPREAD
from tocsin.forecasting import Forecast, Forecaster, Session
from tocsin.forecasting.forecaster import joined

__all__ = ["ContractError", "check_forecaster", "check_scorer", "check_view"]

Array = NDArray[Any]
CUTS = (0, 1, 2, 17, 33, 64, 130, 201)


class ContractError(Exception):
    """A view, scorer or forecaster violates its contract."""


def _require(good: Any, message: str) -> None:
    if not bool(good):
        raise ContractError(message)


def _same(one: Array | None, other: Array | None, message: str, tolerance: float = 0.0) -> None:
    """The same numbers bit for bit, or within a tolerance; NaN in the same places."""
    if one is None or other is None:
        _require(one is other, f"{message}: one of them is empty")
        return
    _require(one.shape == other.shape, f"{message}: shapes are {one.shape} and {other.shape}")
    if tolerance and one.dtype.kind == "f":
        _require(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True), message)
        return
    differ = (one != other) & ~(_missing(one) & _missing(other))
    where = f", first at {tuple(int(i) for i in np.argwhere(differ)[0])}" if differ.any() else ""
    _require(not differ.any(), f"{message}{where}")


def _missing(array: Array) -> Array:
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=np.bool_)


def _same_states(one: Mapping[str, Array], other: Mapping[str, Array], message: str) -> None:
    _require(one.keys() == other.keys(), f"{message}: they have {sorted(one)} and {sorted(other)}")
    for name, array in one.items():
        _require(array.dtype == other[name].dtype, f"{message}: state[{name!r}] changes its type")
        _same(array, other[name], f"{message}: state[{name!r}] differs")


def _check_plain(state: Mapping[str, Array], signals: int | None) -> None:
    for name, array in state.items():
        plain = isinstance(array, np.ndarray) and array.dtype.kind in "biufU"
        _require(plain, f"a state must be plain arrays, but state[{name!r}] is {type(array).__name__}")
        if signals is not None:
            first = array.shape[:1] == (signals,)
            _require(first, f"state[{name!r}] must have the requested {signals} first, its shape is {array.shape}")


def _held(session: Any) -> int:
    return sum(array.nbytes for array in vars(session).values() if isinstance(array, np.ndarray))


def _values(steps: int, columns: int, seed: int = 0) -> Array:
    """Waves, a walk, counts and a constant, with single gaps and long ones; one that begins late."""
    rng = np.random.default_rng(seed)
    at = np.arange(steps)[:, np.newaxis] + np.zeros(columns)
    kinds = [
        np.sin(at / 3) + 0.3 * rng.normal(size=at.shape),
        np.cumsum(rng.normal(size=at.shape), axis=0),
        rng.poisson(1.0, size=at.shape).astype(np.float64),
        1e9 + np.where(at > steps // 2, 5.0, rng.normal(size=at.shape)),
    ]
    values = np.stack([kinds[column % 4][:, column] for column in range(columns)], axis=1)
    values[rng.random(values.shape) < 0.04] = np.nan
    values[rng.random(values.shape) < 0.005] *= 1e3
    values[steps // 3 : steps // 3 + 21, :2] = np.nan
    values[: steps // 5, columns - 1] = np.nan
    return values


# Views.


def _seen(view: View, steps: int, signals: int, features: int, seed: int = 0, *, scaled: bool = False) -> Seen:
    """What a detector would pass: forecasts that repeat the last value, slightly further off with each step."""
    values = _values(steps, signals * features, seed).reshape(steps, signals, features)
    horizons = max(1, view.horizons)
    ahead = 1 + np.arange(max(horizons, view.steps))
    last = values.copy()
    for t in range(1, steps):
        last[t] = np.where(np.isnan(last[t]), last[t - 1], last[t])
    issued = last[..., np.newaxis] + 0.01 * ahead
    wide = np.abs(issued) * 0.1 + ahead
    predicted, spread = np.full((*values.shape, horizons), np.nan), np.full((*values.shape, horizons), np.nan)
    for h in range(1, horizons + 1):
        predicted[h:, ..., h - 1] = issued[: steps - h, ..., h - 1]
        spread[h:, ..., h - 1] = wide[: steps - h, ..., h - 1]
    ready = np.random.default_rng(seed).random(values.shape) < 0.97
    ready[:5] = False
    faults = np.stack([np.abs(values) - 3, np.abs(last)], axis=-1) if view.judgements else NO_FAULTS
    if not scaled:
        return Seen(values, predicted, NO_SPREAD, issued, NO_SPREAD, ready, faults)
    return Seen(values, predicted, spread, issued, wide, ready, faults)


def _part(seen: Seen, first: int, last: int, rows: Any = slice(None)) -> Seen:
    """Some of the observations of some of the signals, as copies."""

    def cut(array: Array) -> Array:
        return array if array.size == 0 else np.array(array[first:last][:, rows])

    return Seen(*(cut(getattr(seen, name)) for name in Seen.__dataclass_fields__))


def _looked(view: View, session: ViewSession, seen: Seen, rows: Array) -> Array:
    steps, count, features = seen.values.shape
    scores = np.full((steps, count, 1 if view.joint else features, len(view.streams)), np.nan)
    session.run(seen, rows, scores)
    return scores


def check_view(view: View, *, steps: int = 260, signals: int = 4) -> None:
    """Check that a view fulfils its contract; see `tocsin.detection.views.View`.

    `steps` is the length of the signals it gets: more than it needs for its first score.
    """
    _check_declaration(view)
    for features, scaled in ((1, False), (3, False), (2, True)):
        _check_sessions(view, steps, signals, features, scaled)
    _check_missing(view, steps, signals)
    _check_sides(view, steps, signals)
    _check_refusals(view, steps)
    session = view.open(2, 1, 0)
    before = _held(session), {name: array.nbytes for name, array in session.state(np.arange(2)).items()}
    _looked(view, session, _seen(view, 8 * steps, 2, 1), np.arange(2))
    after = _held(session), {name: array.nbytes for name, array in session.state(np.arange(2)).items()}
    _require(before == after, "memory must not grow: a session holds more after more observations")


def _check_declaration(view: View) -> None:
    _require(isinstance(view, View), f"a view must be a View, got {type(view).__name__}")
    _require(isinstance(view.name, str) and view.name, f"name must be a text, got {view.name!r}")
    streams = view.streams
    _require(streams and all(isinstance(one, Stream) for one in streams), f"streams must be Streams, got {streams!r}")
    _require(len({one.name for one in streams}) == len(streams), "streams must have distinct names")
    _require(all(one.length >= 1 and one.weight > 0 for one in streams), "lengths must be 1 or more, and weights > 0")
    _require(view.merge in (HARMONIC, MEDIAN, GEOMETRIC), f"merge must be one of the codes, got {view.merge!r}")
    _require(view.together >= 0 and view.alone >= 0, "together and alone must not be negative")
    _require(view.steps >= view.horizons >= 0, f"steps must be at least horizons, got {view.steps}, {view.horizons}")
    _require(view.horizons == 0 or view.forecasts, "a view that uses forecasts must set forecasts")
    _require(view.begins >= 0, f"begins must not be negative, got {view.begins}")
    for stream in range(len(streams)):
        for score in (0.0, 1.5, -1.5, 1e6):
            told = view.words(stream, score, "mm")
            _require(isinstance(told, str) and told, f"words must be a text for a score of {score}, got {told!r}")


def _check_sessions(view: View, steps: int, signals: int, features: int, scaled: bool) -> None:
    seen, everything = _seen(view, steps, signals, features, scaled=scaled), np.arange(signals)
    kept = _part(seen, 0, steps)
    whole = view.open(signals, features, 0)
    scores = _looked(view, whole, seen, everything)
    for name in Seen.__dataclass_fields__:
        _same(getattr(seen, name), getattr(kept, name), f"a view must not change its input: it changed {name}")
    _require(not np.isnan(scores).all(), f"there must be a score within {steps} observations")
    expected = whole.state(everything)
    _check_plain(expected, signals)

    single, pieces = view.open(signals, features, 0), view.open(signals, features, 0)
    one_by_one = [_looked(view, single, _part(seen, t, t + 1), everything) for t in range(steps)]
    _same(np.concatenate(one_by_one), scores, "observations one by one must give the same scores as all together")
    edges = [0, 0, *(cut for cut in CUTS[1:] if cut < steps), steps]
    parts = [_looked(view, pieces, _part(seen, *edge), everything) for edge in itertools.pairwise(edges)]
    _same(np.concatenate(parts), scores, "observations in pieces must give the same scores as all together")
    for session in (single, pieces):
        _same_states(session.state(everything), expected, "the state must not depend on how observations are batched")

    for signal in range(signals):
        alone = view.open(1, features, 0)
        got = _looked(view, alone, _part(seen, 0, steps, [signal]), np.arange(1))
        _same(got, scores[:, [signal]], "a signal among others must have the same scores as alone")
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
            _same(got, scores[first : first + length, together], "selected rows must have the same scores as all rows")
        at[rows] += length
    _same_states(session.state(np.arange(signals)), expected, "rows processed separately must end in the same state")


def _check_restored(view: View, seen: Seen, scores: Array, cut: int, signals: int, features: int) -> None:
    steps, everything = seen.values.shape[0], np.arange(signals)
    session = view.open(signals, features, 0)
    _looked(view, session, _part(seen, 0, cut), everything)
    state = session.state(everything)
    copied = {name: array.copy() for name, array in state.items()}
    restored = view.open(signals, features, 0)
    _looked(view, restored, _seen(view, 40, signals, features, seed=9), everything)
    restored.restore(state, everything)
    _same_states(restored.state(everything), copied, f"a state restored after {cut} observations must be the same")
    rest = _part(seen, cut, steps)
    message = f"restored after {cut} observations, a session must continue with the same scores"
    _same(_looked(view, restored, rest, everything), scores[cut:], message)
    _same_states(state, copied, "a state must be a copy: it changed with the session that restored it")
    _looked(view, session, rest, everything)
    _same_states(state, copied, "a state must be a copy: it changed with its session")
    for array in state.values():
        array.fill(0)
    _same_states(restored.state(everything), session.state(everything), "a session must not keep the arrays of a state")
    # One signal of many, into another row of another session; all others must not change.
    other, undisturbed = view.open(3, features, 0), view.open(3, features, 0)
    for one in (other, undisturbed):
        _looked(view, one, _seen(view, 50, 3, features, seed=3), np.arange(3))
    other.restore({name: array[[2]] for name, array in copied.items()}, np.array([1]))
    got = _looked(view, other, _part(rest, 0, steps, [2]), np.array([1]))
    _same(got, scores[cut:, [2]], "a signal moved to another session must continue with the same scores")
    others = np.array([0, 2])
    _same_states(other.state(others), undisturbed.state(others), "a moved signal must not affect others")


def _check_missing(view: View, steps: int, signals: int) -> None:
    seen, everything = _seen(view, steps, signals, 2, seed=4), np.arange(signals)
    scores = _looked(view, view.open(signals, 2, 0), seen, everything)
    gone: Array = np.isnan(seen.values)
    if view.joint:
        gone = np.asarray(gone.all(axis=2, keepdims=True))
    _require(np.isnan(scores[gone]).all(), "a missing value must have no score")
    nothing = replace(seen, values=np.full(seen.values.shape, np.nan))
    scores = _looked(view, view.open(signals, 2, 0), nothing, everything)
    _require(np.isnan(scores).all(), "a signal with only gaps must have no score")
    if not view.joint:
        other = replace(seen, values=seen.values.copy())
        other.values[..., 1] = 7.0
        again = _looked(view, view.open(signals, 2, 0), other, everything)
        first = _looked(view, view.open(signals, 2, 0), seen, everything)[..., 0, :]
        _same(again[..., 0, :], first, "features must not affect each other, unless the view is joint")
    else:
        shape = scores.shape[2]
        _require(shape == 1, f"a joint view has one score for all features, got {shape}")


def _check_sides(view: View, steps: int, signals: int) -> None:
    """What is high in one signal is low in its mirror image."""
    if not view.sided:
        return
    seen, everything = _seen(view, steps, signals, 1, seed=5), np.arange(signals)
    mirrored = replace(seen, values=-seen.values, predicted=-seen.predicted, issued=-seen.issued)
    high = _looked(view, view.open(signals, 1, 1), seen, everything)
    low = _looked(view, view.open(signals, 1, 2), mirrored, everything)
    _same(high, low, "the low side of a signal must be the high side of its mirror image")
    _require(np.nanmin(high) < 0 < np.nanmax(high), "scores of one side must have a sign")


def _check_refusals(view: View, steps: int) -> None:
    session = view.open(2, 1, 0)
    _looked(view, session, _seen(view, steps, 2, 1), np.arange(2))
    state = session.state(np.arange(2))
    for name, array in state.items():
        for wrong in (array[:-1], array[np.newaxis], array.astype(np.complex128)):
            _require(_refuses(session, {**state, name: wrong}), f"a state with a wrong {name!r} must be rejected")
    _same_states(session.state(np.arange(2)), state, "a rejected state must change nothing")


def _refuses(session: ViewSession, state: Mapping[str, Array]) -> bool:
    try:
        session.restore(state, np.arange(2))
    except ValueError:
        return True
    return False


# Scorers.


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
    _require(isinstance(whole, Scorer), f"a scorer must be a Scorer, got {type(whole).__name__}")
    p = whole.run(*given)
    _same(given[0], scores, "a scorer must not change its input scores")
    _same(given[1], learn, "a scorer must not change its argument learn")
    for array in given:
        array.fill(0)
    _require(p.shape == scores.shape, f"p-values must have the shape of the scores, got {p.shape}")
    _require(np.isnan(p[np.isnan(scores)]).all(), "NaN must give NaN, and only NaN: a missing score got a p-value")
    _require(not np.isnan(p[~np.isnan(scores)]).any(), "NaN must give NaN, and only NaN: a score got no p-value")
    _require(np.nanmin(p) > 0 and np.nanmax(p) <= 1, "p-values must be above 0 and at most 1")
    one_by_one = np.stack([single.update(row, mask) for row, mask in zip(scores, learn, strict=True)])
    _same(one_by_one, p, "scores one by one must give the same p-values as all together")
    edges = [0, 0, *(cut for cut in CUTS[1:] if cut < steps), steps]
    parts = [pieces.run(scores[a:b], learn[a:b]) for a, b in itertools.pairwise(edges)]
    _same(np.concatenate(parts), p, "scores in pieces must give the same p-values as all together")
    state = whole.state()
    _check_plain(state, None)
    for scorer in (single, pieces):
        _same_states(scorer.state(), state, "the state must not depend on how scores are batched")
    again = [make(streams).run_ranked(scores, learn) for _ in range(2)]
    _same(again[0][0], p, "run_ranked must give the same p-values as run")
    _same(again[0][1], again[1][1], "ranks must be deterministic")

    untouched, gappy = make(streams), make(streams)
    untouched.run(scores[~np.isnan(scores).any(axis=1)])
    with_gaps = np.full((2 * steps, streams), np.nan)
    with_gaps[::2] = np.where(np.isnan(scores).any(axis=1, keepdims=True), np.nan, scores)
    gappy.run(with_gaps)
    _same_states(gappy.state(), untouched.state(), "NaN must leave its stream untouched")
    for stream in range(streams):
        disturbed = _scores(steps, streams, seed=7)
        disturbed[:, stream] = scores[:, stream]
        got = make(streams).run(disturbed, np.where(np.arange(streams) == stream, learn, True))
        _same(got[:, stream], p[:, stream], "streams must not affect each other")
    _check_scorer_states(make, scores, streams)
    before = whole.nbytes, sum(array.nbytes for array in state.values())
    whole.run(np.abs(np.random.default_rng(2).normal(size=(10 * steps, streams))))
    after = whole.nbytes, sum(array.nbytes for array in whole.state().values())
    _require(before == after, "memory must not grow: a scorer holds more after more scores")
    _require(len(whole.guarantee) > 20, "a scorer must say what is guaranteed")


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
        _same(restored.run(scores[cut:]), expected, message)
        _same_states(restored.state(), scorer.state(), message)
        _same_states(state, copied, "a state must be a copy: it changed with its scorer")
        if getattr(scorer, "smoothing", None) is not None:
            continue  # a stream's draws depend on its number
        chosen = [streams - 1, 0]
        before = make(streams)
        before.run(scores[:cut])
        some = type(scorer).from_state(before.state(chosen))
        _same(
            some.run(scores[cut:, chosen]),
            expected[:, chosen],
            "extracted streams must continue with the same p-values",
        )


# Forecasters.


def _same_forecasts(one: Forecast, other: Forecast, message: str, tolerance: float) -> None:
    _same(one.median, other.median, message, tolerance)
    _same(one.quantiles, other.quantiles, f"{message} (quantiles)", tolerance)
    _same(one.faults, other.faults, f"{message} (odds of faults)", tolerance)


def _of(forecast: Forecast, index: Any) -> Forecast:
    return Forecast(*(None if part is None else part[index] for part in forecast))  # type: ignore[arg-type]


def check_forecaster(
    forecaster: Forecaster, *, steps: int = 260, series: int = 4, horizon: int = 5, tolerance: float = 0.0
) -> None:
    """Check that a forecaster fulfils its contract; see `tocsin.Forecaster`.

    `tolerance` is the absolute and relative difference allowed between numbers that should be equal: none, except for
    models whose arithmetic depends on how many series share a call.
    """
    values = _values(steps, series)
    given = values.copy()
    whole = forecaster.open(series, horizon)
    _require(isinstance(whole, Session), f"open must return a Session, got {type(whole).__name__}")
    expected = whole.run(given)
    _same(given, values, "a forecaster must not change its input values")
    given.fill(0)
    _check_forecasts(forecaster, expected, (steps, series, horizon))
    begun = np.maximum.accumulate(~np.isnan(values), axis=0)
    _require(np.isnan(expected.median[~begun]).all(), "there must be no forecast before the first value")
    last = np.isnan(expected.median[-1]).any() or np.isinf(expected.median).any()
    _require(not last, "forecasts after a value must be finite, whatever is missing")
    state = whole.state()
    _check_plain(state, series)

    single, pieces = forecaster.open(series, horizon), forecaster.open(series, horizon)
    pushed = joined([_of(single.push(row), np.newaxis) for row in values])
    _same_forecasts(pushed, expected, "observations one by one must give the same forecasts as all together", tolerance)
    edges = [0, 0, *(cut for cut in CUTS[1:] if cut < steps), steps]
    parts = joined([pieces.run(values[a:b]) for a, b in itertools.pairwise(edges)])
    _same_forecasts(parts, expected, "observations in pieces must give the same forecasts as all together", tolerance)
    if not tolerance:
        for session in (single, pieces):
            _same_states(session.state(), state, "the state must not depend on how observations are batched")
    alone = joined([forecaster.open(1, horizon).run(values[:, [n]]) for n in range(series)], axis=1)
    _same_forecasts(alone, expected, "a series among others must have the same forecasts as alone", tolerance)
    _check_forecaster_rows(forecaster, values, expected, horizon, tolerance)
    _check_forecaster_states(forecaster, values, expected, horizon, tolerance)
    nothing = forecaster.open(2, horizon).run(np.full((30, 2), np.nan))
    _require(np.isnan(nothing.median).all(), "a series with only gaps must have no forecast")
    before = _held(whole), {name: array.nbytes for name, array in state.items()}
    whole.run(_values(4 * steps, series, seed=1))
    after = _held(whole), {name: array.nbytes for name, array in whole.state().items()}
    _require(before == after, "memory must not grow: a session holds more after more observations")
    try:
        parameters = json.loads(json.dumps(forecaster.parameters()))
    except TypeError as error:
        raise ContractError(f"parameters must be JSON types: {error}") from error
    again = type(forecaster)(**parameters)
    _require(again.parameters() == forecaster.parameters(), "parameters must recreate the same forecaster")


def _check_forecasts(forecaster: Forecaster, forecast: Forecast, shape: tuple[int, ...]) -> None:
    _require(forecast.median.shape == shape, f"medians must have shape {shape}, got {forecast.median.shape}")
    levels = len(forecaster.levels)
    if not levels:
        _require(forecast.quantiles is None, "a forecaster without levels must give no quantiles")
        return
    if forecast.quantiles is None or forecast.quantiles.shape != (*shape, levels):
        raise ContractError(f"quantiles must have shape {(*shape, levels)}, one entry for each level")
    falling = np.diff(forecast.quantiles, axis=-1) < 0
    _require(not falling.any(), "quantiles must ascend")


def _check_forecaster_rows(
    forecaster: Forecaster, values: Array, expected: Forecast, horizon: int, tolerance: float
) -> None:
    series = values.shape[1]
    session = forecaster.open(series, horizon)
    rows = np.array([series - 1, 0])
    first = session.run(values[:, rows], rows)
    message = "selected rows must have the same forecasts as all rows"
    _same_forecasts(first, _of(expected, (slice(None), rows)), message, tolerance)
    others = np.setdiff1d(np.arange(series), rows)
    message = "other rows must not change"
    _same_forecasts(session.run(values[:, others], others), _of(expected, (slice(None), others)), message, tolerance)


def _check_forecaster_states(
    forecaster: Forecaster, values: Array, expected: Forecast, horizon: int, tolerance: float
) -> None:
    steps, series = values.shape
    for cut in CUTS[::2]:
        if cut >= steps:
            continue
        session, restored = forecaster.open(series, horizon), forecaster.open(series, horizon)
        session.run(values[:cut])
        state = session.state()
        copied = {name: array.copy() for name, array in state.items()}
        restored.run(_values(40, series, seed=9))
        restored.restore(state)
        message = f"restored after {cut} observations, a session must continue with the same forecasts"
        _same_forecasts(restored.run(values[cut:]), _of(expected, slice(cut, None)), message, tolerance)
        _same_states(state, copied, "a state must be a copy: it changed with the session that restored it")
        session.run(values[cut:])
        _same_states(state, copied, "a state must be a copy: it changed with its session")
        alone = forecaster.open(1, horizon)
        alone.restore({name: array[[1]] for name, array in copied.items()})
        one = _of(expected, (slice(cut, None), [1]))
        _same_forecasts(alone.run(values[cut:, [1]]), one, "a series must be movable to another session", tolerance)
