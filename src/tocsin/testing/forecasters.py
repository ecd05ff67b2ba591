"""The contract of forecasters."""

import json
from typing import Any

import numpy as np

from tocsin.forecasting import Forecast, Forecaster, Session
from tocsin.forecasting.forecaster import joined
from tocsin.testing.contract import (
    CUTS,
    Array,
    ContractError,
    check_plain,
    hard_values,
    held_bytes,
    pieces_of,
    require,
    same,
    same_states,
)


def _same_forecasts(one: Forecast, other: Forecast, message: str, tolerance: float) -> None:
    same(one.median, other.median, message, tolerance)
    same(one.quantiles, other.quantiles, f"{message} (quantiles)", tolerance)


def _of(forecast: Forecast, index: Any) -> Forecast:
    return Forecast(*(None if part is None else part[index] for part in forecast))  # type: ignore[arg-type]


def check_forecaster(
    forecaster: Forecaster, *, steps: int = 260, series: int = 4, horizon: int = 5, tolerance: float = 0.0
) -> None:
    """Check that a forecaster fulfils its contract; see `tocsin.Forecaster`.

    `tolerance` is the absolute and relative difference allowed between numbers that should be equal: none, except for
    models whose arithmetic depends on how many series share a call.
    """
    values = hard_values(steps, series)
    given = values.copy()
    whole = forecaster.open(series, horizon)
    require(isinstance(whole, Session), f"open must return a Session, got {type(whole).__name__}")
    expected = whole.run(given)
    same(given, values, "a forecaster must not change its input values")
    given.fill(0)
    _check_forecasts(forecaster, expected, (steps, series, horizon))
    begun = np.maximum.accumulate(~np.isnan(values), axis=0)
    require(np.isnan(expected.median[~begun]).all(), "there must be no forecast before the first value")
    last = np.isnan(expected.median[-1]).any() or np.isinf(expected.median).any()
    require(not last, "forecasts after a value must be finite, whatever is missing")
    state = whole.state()
    check_plain(state, series)

    single, pieces = forecaster.open(series, horizon), forecaster.open(series, horizon)
    pushed = joined([_of(single.push(row), np.newaxis) for row in values])
    _same_forecasts(pushed, expected, "observations one by one must give the same forecasts as all together", tolerance)
    parts = joined([pieces.run(values[a:b]) for a, b in pieces_of(steps)])
    _same_forecasts(parts, expected, "observations in pieces must give the same forecasts as all together", tolerance)
    if not tolerance:
        for session in (single, pieces):
            same_states(session.state(), state, "the state must not depend on how observations are batched")
    alone = joined([forecaster.open(1, horizon).run(values[:, [n]]) for n in range(series)], axis=1)
    _same_forecasts(alone, expected, "a series among others must have the same forecasts as alone", tolerance)
    _check_forecaster_rows(forecaster, values, expected, horizon, tolerance)
    _check_forecaster_states(forecaster, values, expected, horizon, tolerance)
    nothing = forecaster.open(2, horizon).run(np.full((30, 2), np.nan))
    require(np.isnan(nothing.median).all(), "a series with only gaps must have no forecast")
    before = held_bytes(whole), {name: array.nbytes for name, array in state.items()}
    whole.run(hard_values(4 * steps, series, seed=1))
    after = held_bytes(whole), {name: array.nbytes for name, array in whole.state().items()}
    require(before == after, "memory must not grow: a session holds more after more observations")
    try:
        parameters = json.loads(json.dumps(forecaster.parameters()))
    except TypeError as error:
        raise ContractError(f"parameters must be JSON types: {error}") from error
    again = type(forecaster)(**parameters)
    require(again.parameters() == forecaster.parameters(), "parameters must recreate the same forecaster")


def _check_forecasts(forecaster: Forecaster, forecast: Forecast, shape: tuple[int, ...]) -> None:
    require(forecast.median.shape == shape, f"medians must have shape {shape}, got {forecast.median.shape}")
    levels = len(forecaster.levels)
    if not levels:
        require(forecast.quantiles is None, "a forecaster without levels must give no quantiles")
        return
    if forecast.quantiles is None or forecast.quantiles.shape != (*shape, levels):
        raise ContractError(f"quantiles must have shape {(*shape, levels)}, one entry for each level")
    falling = np.diff(forecast.quantiles, axis=-1) < 0
    require(not falling.any(), "quantiles must ascend")


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
        restored.run(hard_values(40, series, seed=9))
        restored.restore(state)
        message = f"restored after {cut} observations, a session must continue with the same forecasts"
        _same_forecasts(restored.run(values[cut:]), _of(expected, slice(cut, None)), message, tolerance)
        same_states(state, copied, "a state must be a copy: it changed with the session that restored it")
        session.run(values[cut:])
        same_states(state, copied, "a state must be a copy: it changed with its session")
        alone = forecaster.open(1, horizon)
        alone.restore({name: array[[1]] for name, array in copied.items()})
        one = _of(expected, (slice(cut, None), [1]))
        _same_forecasts(alone.run(values[cut:, [1]]), one, "a series must be movable to another session", tolerance)
