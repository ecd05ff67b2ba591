"""One list of checks that every forecaster has to pass."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tocsin.forecasting import (
    Autoregression,
    ContextForecaster,
    EmbeddedForecaster,
    ExponentialSmoothing,
    Forecast,
    LastValue,
    SeasonalNaive,
    available_forecasters,
    make_forecaster,
)
from tocsin.forecasting.forecaster import BUILT_IN, joined
from tocsin.testing import check_forecaster

pytestmark = pytest.mark.slow


class MiddleOfContext(ContextForecaster):
    """Forecasts the middle of what it reads, and values by rank: exact, however many contexts share a call."""

    name = "middle-of-context"

    def __init__(self, **options):
        super().__init__(**{"context_length": 20, **options})
        self.levels = (0.1, 0.5, 0.9)

    def parameters(self):
        return {name: getattr(self, name) for name in ("context_length", "batch_size", "time_batch")}

    def _predict(self, contexts, horizon):
        assert contexts.shape[0] <= self.batch_size
        assert contexts.shape[1] <= self.context_length
        assert not np.isnan(contexts).all(axis=1).any()
        assert not np.isnan(contexts[:, 0]).all()
        ordered = np.sort(contexts, axis=1)  # NaN last
        last = (~np.isnan(contexts)).sum(axis=1) - 1
        every = np.arange(last.size)
        median = (ordered[every, last // 2] + ordered[every, (last + 1) // 2]) / 2
        low, high = ordered[every, last // 10], ordered[every, last - last // 10]
        # In falling order: whoever calls has to sort them.
        quantiles = np.stack([high, median, low], axis=1)
        return Forecast(*(np.repeat(array[:, np.newaxis], horizon, axis=1) for array in (median, quantiles)))


SERIES, HORIZON, STEPS = 4, 5, 400

# Small enough that rings turn, fits are solved and periods are looked for many times within a test.
MAKERS = {
    "last value": LastValue,
    "seasonal, given": lambda: SeasonalNaive(7),
    "seasonal, below the horizon": lambda: SeasonalNaive(3),
    "seasonal, none": lambda: SeasonalNaive(0),
    "seasonal, searched": lambda: SeasonalNaive(search=320),
    "smoothing, given": lambda: ExponentialSmoothing(0.3),
    "smoothing, chosen": ExponentialSmoothing,
    "autoregression": lambda: Autoregression(6, period=0),
    "autoregression, short memory": lambda: Autoregression(2, period=0, memory=10, ridge=0.01),
    "autoregression, period beyond lags": lambda: Autoregression(6, period=20, memory=100),
    "autoregression, period within lags": lambda: Autoregression(12, period=5),
    "autoregression, period below horizon": lambda: Autoregression(2, period=3),
    "autoregression, searched": lambda: Autoregression(6, search=320),
    "context": lambda: MiddleOfContext(batch_size=3),
    "context, many steps together": lambda: MiddleOfContext(time_batch=16, batch_size=50),
    "embedded": EmbeddedForecaster,
    "embedded, short context": lambda: EmbeddedForecaster(context_length=40, batch_size=3),
}
# A compiled one, the network and one in plain Python: `make test` tries everything on these. On the others it runs
# `check_forecaster`, and the rest only `make test-full` does.
WHOLE = ("autoregression, searched", "context", "embedded")


def of_makers(names):
    """Parameters of a test: the makers of these names."""
    marks = {name: () if name in WHOLE else pytest.mark.full for name in names}
    return pytest.mark.parametrize("make", [pytest.param(MAKERS[name], id=name, marks=marks[name]) for name in names])


every_variant = of_makers(MAKERS)
# One of each: what `check_forecaster` does not check hardly depends on their settings.
FORECASTERS = (
    "last value", "seasonal, searched", "smoothing, chosen", "autoregression, searched", "context", "embedded",
)  # fmt: skip
every_forecaster = of_makers(FORECASTERS)
every_stream_forecaster = of_makers([name for name in FORECASTERS if name != "context"])
# A session of the embedded network takes its units anew only now and then; its own tests say what it forecasts.
every_plain_forecaster = of_makers([name for name in MAKERS if not name.startswith("embedded")])


def hard_contexts(seed=0):
    """The same as contexts, a row each, in which nothing infinite has a place."""
    values = hard_values(seed).T
    return np.where(np.isinf(values), np.nan, values)


def hard_values(seed=0, steps=STEPS):
    """Waves that have a period, a walk and steps; with gaps, infinities, spikes, a constant stretch, a late start."""
    rng = np.random.default_rng(seed)
    time = np.arange(steps)
    values = np.stack(
        [
            5 * np.sin(2 * np.pi * time / 12) + rng.normal(size=steps),
            10.0 * (time % 25 < 3) + rng.normal(size=steps),
            np.cumsum(rng.normal(size=steps)),
            np.round(rng.normal(size=steps)),
        ],
        axis=1,
    )
    values[rng.random(values.shape) < 0.05] = np.nan
    values[rng.random(values.shape) < 0.01] = np.inf
    values[rng.random(values.shape) < 0.01] = -np.inf
    values[rng.random(values.shape) < 0.005] = 1e6
    values[steps // 2 : steps // 2 + 15, 0] = np.nan
    values[steps // 3 : steps // 2, 1] = 1.0
    values[: steps // 4, 2] = np.nan
    return values


def equal(one, other):
    for mine, theirs in zip(one, other, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)


def same_state(one, other):
    one, other = one.state(), other.state()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def part(forecast, *index):
    return Forecast(*(None if array is None else array[index] for array in forecast))


def test_every_forecaster_is_on_the_list():
    """Those that need an extra are checked by their own tests."""
    here = {entry.name for entry in BUILT_IN if entry.extra is None}
    assert {make().name for make in MAKERS.values()} == here | {"middle-of-context"}


@pytest.mark.parametrize("name", [name for name in MAKERS if "searched" in name])
def test_periods_are_found_within_the_hard_values(name):
    """Otherwise nothing of what follows would see a period change."""
    session = MAKERS[name]().open(SERIES, HORIZON)
    session.run(hard_values())
    state = session.state()
    found = state["period"] if "period" in state else state["counters"][:, 3]
    assert found[0] % 12 == 0
    assert found[0] > 0
    assert 0 in found


@every_forecaster
def test_shapes(make):
    forecaster = make()
    levels = len(forecaster.levels)
    session = forecaster.open(SERIES, HORIZON)
    for forecast, shape in (
        (session.run(hard_values()), (STEPS, SERIES, HORIZON)),
        (session.push(hard_values()[0]), (SERIES, HORIZON)),
        (session.run(np.zeros((0, SERIES))), (0, SERIES, HORIZON)),
        (session.run(np.zeros((3, 0)), []), (3, 0, HORIZON)),
        (session.push([], []), (0, HORIZON)),
        (session.run(np.zeros((3, 2)), [2, 0]), (3, 2, HORIZON)),
        (forecaster.forecast([[1.0, 2.0], [3.0], [np.nan, 1.0]], HORIZON), (3, HORIZON)),
        (forecaster.forecast(np.arange(6.0), HORIZON), (1, HORIZON)),
        (forecaster.forecast(np.arange(6.0).reshape(2, 3), HORIZON), (2, HORIZON)),
    ):
        assert isinstance(forecast, Forecast)
        assert forecast.median.shape == shape
        assert forecast.median.dtype == np.float64
        if levels:
            assert forecast.quantiles.shape == (*shape, levels)
            assert np.all((np.diff(forecast.quantiles, axis=-1) >= 0) | np.isnan(forecast.median[..., np.newaxis]))
            np.testing.assert_array_equal(forecast.quantiles[..., levels // 2], forecast.median)
        else:
            assert forecast.quantiles is None
    assert session.series == SERIES
    assert session.horizon == HORIZON


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_forecaster_keeps_the_contract(make):
    check_forecaster(make())


@every_forecaster
def test_many_origins_of_a_history_are_those_of_a_session(make):
    values, origins = hard_values()[:, 0], np.array([1, 2, 50, 51, 52, 200, 399, STEPS])
    expected = make().open(1, HORIZON).run(values[:, np.newaxis])
    equal(make().forecast_origins(values, origins, HORIZON), part(expected, origins - 1, 0))


@pytest.mark.parametrize("origins", [[], [0, 1], [3, 2], [2, 2], [1, 6], [[1]], [1.0]])
def test_origins_that_cannot_be_are_refused(origins):
    with pytest.raises(ValueError, match=r"^origins must be increasing whole numbers from 1 to 5, got "):
        LastValue().forecast_origins(np.arange(5.0), origins, 2)


@every_plain_forecaster
def test_forecast_from_a_context_is_the_last_of_a_session(make):
    ends = (1, 2, 9, 40, 80, 81, 201, 320, 333, STEPS)
    contexts = [context[:end] for context in hard_contexts() for end in ends if not np.isnan(context[:end]).all()]
    expected = []
    for context in contexts:
        session = make().open(1, HORIZON)
        expected.append(part(session.run([[np.nan], *context[:, np.newaxis]]), -1))
    forecast = make().forecast(contexts, HORIZON)
    equal(forecast, joined(expected))
    equal(make().forecast([context.tolist() for context in contexts], HORIZON), forecast)
    equal(make().forecast(tuple(contexts[::-1]), HORIZON), part(forecast, slice(None, None, -1)))


@every_forecaster
def test_rows_that_advance_at_their_own_pace_are_each_alone(make):
    """Pieces of some of the series, in any order; those left out stay as they are."""
    values = hard_values()
    rng = np.random.default_rng(0)
    session = make().open(SERIES, HORIZON)
    at = np.zeros(SERIES, dtype=int)
    got = [[] for _ in range(SERIES)]
    while at.min() < STEPS:
        length = int(rng.choice([1, 1, 1, 2, 17]))
        able = np.flatnonzero(at + length <= STEPS)
        if not able.size:
            continue
        rows = rng.permutation(able)[: rng.integers(1, able.size + 1)]
        piece = np.stack([values[at[row] : at[row] + length, row] for row in rows], axis=1)
        forecast = part(session.push(piece[0], rows), np.newaxis) if length == 1 else session.run(piece, rows)
        for column, row in enumerate(rows):
            got[row].append(part(forecast, slice(None), [column]))
        at[rows] += length
    expected = make().open(SERIES, HORIZON)
    equal(joined([joined(pieces) for pieces in got], axis=1), expected.run(values))
    same_state(session, expected)


@every_forecaster
def test_a_series_that_begins_late_is_as_if_it_began_then(make):
    values = hard_values()[:, [0, 1, 3]]
    values[0] = 1.0
    session = make().open(3, HORIZON)
    forecast = session.run(np.concatenate([np.full((100, 3), np.nan), values]))
    assert np.isnan(forecast.median[:100]).all()
    equal(part(forecast, slice(100, None)), make().open(3, HORIZON).run(values))


@every_variant
def test_restored_at_any_point_continues_exactly(make):
    values = hard_values()
    rng = np.random.default_rng(0)
    for at in (0, 1, 160, *rng.integers(2, STEPS, size=3)):
        session = make().open(SERIES, HORIZON)
        session.run(values[:at])
        restored = make().open(SERIES, HORIZON)
        restored.run(hard_values(50)[: rng.integers(0, 100)])  # whatever it was doing before is gone
        restored.restore(session.state())
        same_state(restored, session)
        equal(restored.run(values[at:]), session.run(values[at:]))
        same_state(restored, session)


@every_forecaster
@pytest.mark.parametrize(("before", "at"), [(0, 250), (17, 399), (330, 0), (330, 321)])
def test_some_series_move_between_sessions_and_disturb_nobody(make, before, at):
    """Series in any state take the place of others in any state; all others go on as if nothing had happened."""
    values, elsewhere = hard_values(0), hard_values(50)
    session, other, undisturbed = (make().open(SERIES, HORIZON) for _ in range(3))
    session.run(values[:at])
    for one in (other, undisturbed):
        one.run(elsewhere[:before])
    taken, place = np.array([2, 0]), np.array([1, 2])
    state = session.state(taken)
    for name, array in session.state().items():
        np.testing.assert_array_equal(state[name], array[taken], err_msg=name)
        assert state[name].dtype == array.dtype
    other.restore(state, place)
    alone = make().open(2, HORIZON)
    alone.restore(state)
    after = elsewhere[before : before + 200]
    after = after if after.shape[0] else elsewhere[:200]
    mixed = after.copy()
    mixed[:, place] = hard_values(9)[: after.shape[0], :2]
    forecast, expected = other.run(mixed), undisturbed.run(after)
    equal(part(forecast, slice(None), [0, 3]), part(expected, slice(None), [0, 3]))
    equal(part(forecast, slice(None), place), alone.run(mixed[:, place]))
    session.run(mixed[:, place], taken)
    for one, own, rows in ((undisturbed, [0, 3], [0, 3]), (alone, [0, 1], place), (session, taken, place)):
        for name, array in one.state(np.array(own)).items():
            np.testing.assert_array_equal(other.state(np.array(rows))[name], array, err_msg=name)


@every_forecaster
def test_a_state_that_does_not_fit_its_rows_is_refused(make):
    session, untouched = (make().open(SERIES, HORIZON) for _ in range(2))
    for one in (session, untouched):
        one.run(hard_values()[:100])
    state = session.state(np.array([1, 2]))
    for rows in (None, np.array([0]), np.array([0, 1, 2])):
        with pytest.raises(ValueError, match=r"^state\['\w+'\] must be .* of shape .*, got .* of shape \(2"):
            session.restore(state, rows)
    for rows in (np.array([0, SERIES]), np.array([0, 0])):
        with pytest.raises(ValueError, match=r"^rows must be distinct indices from 0 to 3, got"):
            session.restore(state, rows)
        with pytest.raises(ValueError, match=r"^rows must be distinct indices from 0 to 3, got"):
            session.state(rows)
    same_state(session, untouched)
    equal(session.run(hard_values(1)), untouched.run(hard_values(1)))


def test_restored_in_another_process_continues_exactly(tmp_path):
    """Through a file, in the middle of the search for a period."""
    values, options = hard_values(), {"lags": 6, "search": 320}
    session = make_forecaster("autoregression", options).open(SERIES, HORIZON)
    session.run(values[:150])
    np.savez(tmp_path / "state.npz", **session.state())
    np.save(tmp_path / "rest.npy", values[150:])
    script = f"""
import numpy as np
from tocsin.forecasting import make_forecaster
session = make_forecaster("autoregression", {options!r}).open({SERIES}, {HORIZON})
with np.load("state.npz", allow_pickle=False) as state:
    session.restore(state)
np.save("median.npy", session.run(np.load("rest.npy")).median)
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "median.npy"), session.run(values[150:]).median)


@every_forecaster
def test_a_state_depends_on_what_was_seen_and_holds_all_of_it(make):
    """Two sessions in the same state go on alike, though one was given other values that have long been forgotten."""
    session = make().open(SERIES, HORIZON)
    fresh = session.state()
    session.run(hard_values())
    assert any(not np.array_equal(fresh[name], array, equal_nan=True) for name, array in session.state().items())
    session.restore(fresh)
    equal(session.run(hard_values(1)), make().open(SERIES, HORIZON).run(hard_values(1)))


@every_forecaster
def test_inputs_are_neither_modified_nor_kept_and_outputs_are_not_shared(make):
    values, wanted, rows = hard_values(), np.ones((STEPS, SERIES), dtype=bool), np.arange(SERIES)
    given = values.copy(), rows.copy(), wanted.copy()
    one, other = make().open(SERIES, HORIZON), make().open(SERIES, HORIZON)
    forecast = one.run(*given)
    np.testing.assert_array_equal(given[0], values)
    np.testing.assert_array_equal(given[1], rows)
    assert given[2].all()
    expected = other.run(values)
    equal(forecast, expected)
    kept = Forecast(*(None if array is None else array.copy() for array in forecast))
    for array in given:
        array.fill(0)
    one.push(values[5])
    other.push(values[5])
    equal(forecast, kept)
    pushed = one.push(values[6])
    other.push(values[6])
    for array in (*forecast, *pushed):
        if array is not None:
            array.fill(-1.0)
    same_state(one, other)
    equal(one.push(values[7]), other.push(values[7]))
    row = values[8].copy()
    one.push(row)
    np.testing.assert_array_equal(row, values[8])
    contexts = list(hard_contexts())
    make().forecast(contexts, HORIZON)
    np.testing.assert_array_equal(np.array(contexts), hard_contexts())
    single = contexts[0]
    make().forecast(single, HORIZON)
    np.testing.assert_array_equal(single, hard_contexts()[0])


@every_forecaster
def test_any_layout_and_kind_of_array_is_taken(make):
    values = np.round(10 * np.random.default_rng(0).normal(size=(80, SERIES)))
    rows, wanted = np.array([3, 0, 1, 2]), np.random.default_rng(1).random((80, SERIES)) < 0.5
    expected = make().open(SERIES, HORIZON).run(values, rows, wanted)
    read_only = values.copy()
    read_only.flags.writeable = False
    for variant in (
        np.asfortranarray(values),
        values.astype(np.float32),
        values.astype(np.int16),
        values.astype(object),
        read_only,
        np.repeat(values, 2, axis=1)[:, ::2],
        values.tolist(),
    ):
        equal(make().open(SERIES, HORIZON).run(variant, rows, wanted), expected)
    for other_rows in (rows.tolist(), rows.astype(np.int8), rows.astype(np.uint64), np.repeat(rows, 2)[::2]):
        equal(make().open(SERIES, HORIZON).run(values, other_rows, np.asfortranarray(wanted)), expected)
    equal(make().open(SERIES, HORIZON).run(values, rows, wanted.tolist()), expected)


@every_forecaster
def test_masked_values_are_missing(make):
    values = np.random.default_rng(0).normal(size=(60, SERIES))
    hidden = np.random.default_rng(1).random(values.shape) < 0.2
    masked, missing = np.ma.masked_array(values, hidden), np.where(hidden, np.nan, values)
    one, other = make().open(SERIES, HORIZON), make().open(SERIES, HORIZON)
    equal(one.run(masked), other.run(missing))
    for row in range(60):
        equal(one.push(masked[row]), other.push(missing[row]))
    equal(make().forecast(masked.T, HORIZON), make().forecast(missing.T, HORIZON))


@every_forecaster
def test_gaps_anywhere_leave_forecasts_finite(make):
    """One series for each place of the gap; what is infinite is what is missing."""
    steps, length = 150, 30
    rng = np.random.default_rng(0)
    whole = np.sin(np.arange(steps) * 2 * np.pi / 20) + 0.2 * rng.normal(size=steps)
    places = np.arange(0, steps, 3)
    missing = np.repeat(whole[:, np.newaxis], places.size, axis=1)
    infinite, nearly = missing.copy(), missing.copy()
    for column, place in enumerate(places):
        missing[place : place + length, column] = np.nan
        infinite[place : place + length, column] = rng.choice([np.inf, -np.inf])
        nearly[place : place + length, column] = rng.choice([1.7e308, -1.7e308])
    forecast = make().open(places.size, HORIZON).run(missing)
    assert not np.isinf(forecast.median).any()
    begun = np.maximum.accumulate(~np.isnan(missing), axis=0)
    if isinstance(make(), ContextForecaster):
        reach = make().context_length
        begun = np.array([(~np.isnan(missing[max(0, t + 1 - reach) : t + 1])).any(axis=0) for t in range(steps)])
    np.testing.assert_array_equal(np.isnan(forecast.median), np.repeat(~begun[..., np.newaxis], HORIZON, axis=2))
    equal(make().open(places.size, HORIZON).run(infinite), forecast)
    equal(make().open(places.size, HORIZON).run(nearly), forecast)


@every_variant
def test_a_constant_is_forecast_exactly(make):
    constants = np.array([0.0, 0.1, -3.7, 1e15 / 3, 1e-300, 5e-324, -1e299])
    values = np.repeat(constants[np.newaxis], STEPS, axis=0)
    values[np.random.default_rng(0).random(values.shape) < 0.1] = np.nan
    values[0] = constants
    forecast = make().open(constants.size, HORIZON).run(values)
    assert np.all(forecast.median == constants[:, np.newaxis])
    if forecast.quantiles is not None:
        assert np.all(forecast.quantiles == constants[:, np.newaxis, np.newaxis])


@every_stream_forecaster
def test_a_constant_after_something_else_is_forecast_exactly(make):
    """For as long as it likes: what was learned before may not fade into numbers too small to divide by."""
    values = np.concatenate([hard_values()[:, 0], np.full(20_000, 2.5)])[:, np.newaxis]
    forecast = make().open(1, HORIZON).run(values)
    np.testing.assert_allclose(forecast.median[-100:], 2.5, rtol=1e-12)


@every_variant
@pytest.mark.parametrize("size", [1e141, 9e299, 1e-160, 1e-320])
def test_huge_and_tiny_values_give_finite_forecasts(make, size):
    rng = np.random.default_rng(0)
    plain = rng.uniform(-1, 1, size=(STEPS, 3))
    plain[:, 1] = np.sign(plain[:, 1])
    values = size * plain
    values[:, 2] = np.where(np.arange(STEPS) // 40 % 2, plain[:, 2], values[:, 2])  # now one size, now the other
    forecast = make().open(3, HORIZON).run(values)
    assert np.isfinite(forecast.median).all()
    assert np.abs(forecast.median[:, :2]).max() <= 20 * size


@every_forecaster
def test_one_huge_value_is_overcome(make):
    """In the end the forecasts are as good as without it; the smoothing's choice of a rate is not yet the same."""
    values = np.random.default_rng(0).normal(size=(3000, 1))
    plain = make().open(1, HORIZON).run(values).median
    values[30] = -1e299
    forecast = make().open(1, HORIZON).run(values).median
    assert np.isfinite(forecast).all()
    assert np.abs(forecast[-500:] - plain[-500:]).mean() < 1.0


@every_forecaster
def test_units_do_not_matter(make):
    """In units of a power of two all roundings are the same; upside down too, but for what has learned up from down."""
    values = hard_values()
    factor = 2.0**60 if isinstance(make(), EmbeddedForecaster) else -(2.0**60)
    expected = make().open(SERIES, HORIZON).run(values).median
    scaled = make().open(SERIES, HORIZON).run(factor * values).median
    np.testing.assert_array_equal(scaled, factor * expected)


@every_forecaster
def test_what_nobody_wants_changes_nothing_elsewhere(make):
    values = hard_values()
    wanted = np.random.default_rng(1).random(values.shape) < 0.3
    wanted[100:150] = False
    one, other = make().open(SERIES, HORIZON), make().open(SERIES, HORIZON)
    got, expected = one.run(values, wanted=wanted), other.run(values)
    equal(part(got, wanted), part(expected, wanted))
    unwanted = got.median[~wanted]
    assert np.all(np.isnan(unwanted) | (unwanted == expected.median[~wanted]))
    same_state(one, other)
    one.run(values, wanted=np.zeros(values.shape, dtype=bool))
    other.run(values)
    same_state(one, other)


@every_forecaster
def test_parameters_make_the_same_forecaster_again(make):
    forecaster = make()
    parameters = json.loads(json.dumps(forecaster.parameters()))
    again = type(forecaster)(**parameters)
    assert again.parameters() == forecaster.parameters()
    assert repr(again) == repr(forecaster)
    equal(again.open(SERIES, 2).run(hard_values()), forecaster.open(SERIES, 2).run(hard_values()))
    if forecaster.name in available_forecasters():
        assert repr(make_forecaster(forecaster.name, parameters)) == repr(forecaster)


@every_forecaster
def test_sessions_of_one_forecaster_are_independent(make):
    forecaster = make()
    one, other = forecaster.open(SERIES, HORIZON), forecaster.open(SERIES, HORIZON)
    one.run(hard_values(1))
    forecaster.forecast(hard_contexts(2), HORIZON)
    equal(other.run(hard_values()), make().open(SERIES, HORIZON).run(hard_values()))


OPENING = {
    "series 0": (lambda f: f.open(0, 1), r"series must be an integer from 1 to \d+, got 0"),
    "series text": (lambda f: f.open("x", 1), r"series must be an integer from 1 to \d+, got 'x'"),
    "series half": (lambda f: f.open(1.5, 1), r"series must be an integer from 1 to \d+, got 1.5"),
    "horizon 0": (lambda f: f.open(1, 0), r"horizon must be an integer from 1 to (4096|32), got 0"),
    "horizon many": (lambda f: f.open(1, 4097), r"horizon must be an integer from 1 to (4096|32), got 4097"),
    "horizon text": (lambda f: f.open(1, "x"), r"horizon must be an integer from 1 to (4096|32), got 'x'"),
    "horizon None": (lambda f: f.open(1, None), r"horizon must be an integer from 1 to (4096|32), got None"),
    "horizon True": (lambda f: f.open(1, True), r"horizon must be an integer from 1 to (4096|32), got True"),
    "forecast horizon": (lambda f: f.forecast([[1.0]], 0), r"horizon must be an integer from 1 to (4096|32), got 0"),
    "forecast horizon text": (lambda f: f.forecast([[1.0]], "x"), r"horizon must be an integer .*, got 'x'"),
    "an empty context": (
        lambda f: f.forecast([[1.0], []], 1),
        r"contexts\[1\] must hold at least one number, got no m",
    ),
    "nothing known": (lambda f: f.forecast([[np.nan] * 3], 1), r"contexts\[0\] must hold .* one number, got 3 missing"),
    "infinite": (
        lambda f: f.forecast([[1.0, -np.inf]], 1),
        r"contexts\[0\] must hold numbers up to 1e[+]300 .* -inf at 1",
    ),
    "nearly infinite": (
        lambda f: f.forecast([[2.0, 1.7e308]], 1),
        r"contexts\[0\] must hold numbers .* got 1.7e[+]308 at 1",
    ),
    "no context": (lambda f: f.forecast([], 1), "contexts must hold at least one context, got none"),
    "a number": (lambda f: f.forecast(3.0, 1), "contexts must be a sequence of sequences of numbers, got 3.0"),
    "a bare array": (lambda f: f.forecast(np.array(3.0), 1), r"contexts must be a sequence .*, got array\(3.\)"),
    "a generator": (lambda f: f.forecast(iter([[1.0]]), 1), "contexts must be a sequence .*, got <list_iterator"),
    "numbers": (lambda f: f.forecast([1.0, 2.0], 1), r"contexts\[0\] must have one dimension, got shape \(\)"),
    "a cube": (lambda f: f.forecast(np.zeros((2, 3, 4)), 1), r"contexts\[0\] must have one dim.*got shape \(3, 4\)"),
    "text": (lambda f: f.forecast([[1.0], ["x"]], 1), r"contexts\[1\] must be numbers, got \['x'\]"),
    "all text": (lambda f: f.forecast("12", 1), r"contexts\[0\] must be numbers, got '1'"),
}


@every_forecaster
def test_bad_arguments_are_named(make):
    for call, message in OPENING.values():
        with pytest.raises((TypeError, ValueError), match=message):
            call(make())


PUSHING = {
    "too few": (lambda s: s.push([1.0]), r"values must have shape \(4,\), one for each series, got shape \(1,\)"),
    "one": (lambda s: s.push(1.0), r"values must have shape \(4,\).*got shape \(\)"),
    "table": (lambda s: s.push(np.zeros((1, 4))), r"values must have shape \(4,\).*got shape \(1, 4\)"),
    "text": (lambda s: s.push(["1", "2", "3", "4"]), r"values must be numbers, got \['1'"),
    "too large": (lambda s: s.push([10**400, 0, 0, 0]), "values must be numbers, got .*too large"),
    "complex": (lambda s: s.push([1j, 0, 0, 0]), "values must be numbers, got .*complex"),
    "run row": (lambda s: s.run(np.zeros(4)), r"values must have shape \(T, 4\).*got shape \(4,\)"),
    "run columns": (lambda s: s.run(np.zeros((5, 3))), r"values must have shape \(T, 4\).*got shape \(5, 3\)"),
    "run text": (lambda s: s.run([["a", "b", "c", "d"]]), r"values must be numbers, got \[\['a'"),
    "ragged": (lambda s: s.run([[1.0], [1.0, 2.0]]), r"values must be numbers"),
    "rows and values": (lambda s: s.run(np.zeros((5, 4)), [0, 1]), r"values must have shape \(T, 2\).*\(5, 4\)"),
    "row too large": (lambda s: s.push([1.0, 1.0], [0, 4]), r"rows must be distinct indices from 0 to 3, got .*0, 4"),
    "row negative": (lambda s: s.push([1.0], [-1]), r"rows must be distinct indices from 0 to 3, got .*-1"),
    "row twice": (lambda s: s.push([1.0, 1.0], [2, 2]), r"rows must be distinct indices from 0 to 3, got .*2, 2"),
    "row half": (lambda s: s.push([1.0], [0.5]), r"rows must be a sequence of indices of series, got \[0.5\]"),
    "row flags": (lambda s: s.push([1.0] * 4, [True] * 4), r"rows must be a sequence of indices of series, got \[True"),
    "row table": (lambda s: s.run([[1.0]], [[0]]), r"rows must be a sequence of indices of series, got \[\[0"),
    "wanted short": (lambda s: s.run(np.zeros((2, 4)), wanted=np.ones((1, 4), bool)), r"wanted must .*\(2, 4\), got"),
    "wanted numbers": (lambda s: s.run(np.zeros((1, 4)), wanted=np.ones((1, 4))), "wanted must be true .*got float64"),
}


@every_forecaster
def test_bad_input_is_named_and_the_session_stays_usable(make):
    session, untouched = make().open(SERIES, HORIZON), make().open(SERIES, HORIZON)
    for one in (session, untouched):
        one.run(hard_values()[:70])
    for call, message in PUSHING.values():
        with pytest.raises((TypeError, ValueError), match=message):
            call(session)
        same_state(session, untouched)
    equal(session.run(hard_values(1)), untouched.run(hard_values(1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SeasonalNaive(1), "period must be None, 0 or an integer from 2 to 1048576, got 1"),
        (lambda: SeasonalNaive(-2), "period must be .*, got -2"),
        (lambda: SeasonalNaive(7.0), "period must be .*, got 7.0"),
        (lambda: SeasonalNaive(0.0), "period must be .*, got 0.0"),
        (lambda: SeasonalNaive(False), "period must be .*, got False"),
        (lambda: SeasonalNaive("day"), "period must be .*, got 'day'"),
        (lambda: SeasonalNaive(np.array([2, 3])), r"period must be .*, got array\(\[2, 3\]\)"),
        (lambda: SeasonalNaive(2**20 + 1), "period must be .*, got 1048577"),
        (lambda: SeasonalNaive(search=319), "search must be an integer from 320 to 1048576, got 319"),
        (lambda: ExponentialSmoothing(0.0), "rate must be a number > 0 and <= 1, got 0.0"),
        (lambda: ExponentialSmoothing(1.1), "rate must be a number > 0 and <= 1, got 1.1"),
        (lambda: ExponentialSmoothing(np.nan), "rate must be a number > 0 and <= 1, got nan"),
        (lambda: ExponentialSmoothing("fast"), "rate must be a number > 0 and <= 1, got 'fast'"),
        (lambda: Autoregression(1), "lags must be an integer from 2 to 512, got 1"),
        (lambda: Autoregression(513), "lags must be an integer from 2 to 512, got 513"),
        (lambda: Autoregression(8.0), "lags must be an integer from 2 to 512, got 8.0"),
        (lambda: Autoregression(period=1), "period must be None, 0 or an integer from 2 to 1048576, got 1"),
        (lambda: Autoregression(memory=9), r"memory must be an integer from 10 to \d+, got 9"),
        (lambda: Autoregression(ridge=0), "ridge must be a number > 0 and <= 1e[+]09, got 0"),
        (lambda: Autoregression(ridge=-1.0), "ridge must be a number > 0 and <= 1e[+]09, got -1.0"),
        (lambda: Autoregression(ridge=np.inf), "ridge must be a number > 0 and <= 1e[+]09, got inf"),
        (lambda: Autoregression(search=0), "search must be an integer from 320 to 1048576, got 0"),
        (lambda: MiddleOfContext(context_length=0), "context_length must be an integer from 1 to 1048576, got 0"),
        (lambda: MiddleOfContext(batch_size=0), "batch_size must be an integer from 1 to 1048576, got 0"),
        (lambda: MiddleOfContext(time_batch="all"), "time_batch must be an integer from 1 to 1048576, got 'all'"),
        (lambda: EmbeddedForecaster(context_length=0), "context_length must be an integer from 1 to 1024, got 0"),
        (lambda: EmbeddedForecaster(context_length=1025), "context_length must be an integer from 1 to 1024, got 1025"),
        (lambda: EmbeddedForecaster(batch_size=0), "batch_size must be an integer from 1 to 1048576, got 0"),
        (lambda: EmbeddedForecaster(weights=3), "weights must be the path of a file, or None, got 3"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        make()


@pytest.mark.parametrize("period", [np.int64(0), np.int64(7), np.uint8(7)])
def test_numpy_integers_are_integers(period):
    assert SeasonalNaive(period).parameters()["period"] == int(period)
    assert type(Autoregression(period=period).parameters()["period"]) is int


@every_forecaster
def test_damaged_states_are_refused(make):
    session, untouched = make().open(SERIES, HORIZON), make().open(SERIES, HORIZON)
    for one in (session, untouched):
        one.run(hard_values()[:200])
    good = session.state()

    def refused(name, array, match):
        with pytest.raises(ValueError, match=match):
            session.restore({**good, name: array})
        same_state(session, untouched)

    for nothing in (None, [], "state"):
        with pytest.raises(TypeError, match="state must be a mapping of names to arrays"):
            session.restore(nothing)
    for name, array in good.items():
        with pytest.raises(ValueError, match=rf"state must hold the arrays .*, missing \['{name}'\]"):
            session.restore({other: value for other, value in good.items() if other != name})
        wrong = rf"state\['{name}'\] must be {array.dtype} of shape .*, got"
        refused(name, array[:-1], wrong)
        refused(name, array[..., np.newaxis], wrong)
        refused(name, np.zeros(()), wrong)
        refused(name, array.astype(np.float32 if array.dtype == np.float64 else np.int32), wrong)
        refused(name, array.astype(object), wrong)
        refused(name, np.full(array.shape, "x"), wrong)
        damaged = rf"state\['{name}'\] is damaged: it must hold"
        for worst in (np.inf, -np.inf) if array.dtype == np.float64 else ():
            changed = array.copy()
            changed.flat[-1] = worst
            refused(name, changed, damaged)
        for worst in (-1, -(2**62), 2**62) if array.dtype == np.int64 else ():
            changed = array.copy()
            changed.flat[0] = worst
            refused(name, changed, damaged)
    session.restore({**good, "something else": np.zeros(3)})
    same_state(session, untouched)


@pytest.mark.parametrize("name", [name for name in MAKERS if name.startswith(("seasonal", "autoregression"))])
def test_periods_that_cannot_be_are_refused(name):
    """They would lead the compiled loops outside of their arrays."""
    forecaster = MAKERS[name]()
    session = forecaster.open(1, HORIZON)
    session.run(hard_values()[:200, [0]])
    state = session.state()
    key, at = ("counters", (0, 3)) if name.startswith("autoregression") else ("period", 0)
    capacity = state["past"].shape[1]
    allowed = range(107) if forecaster.period is None else [forecaster.period]
    for period in range(-2, capacity + 3):
        state[key][at] = period
        if period in allowed:
            session.restore(state)
            assert np.isfinite(session.push([1.0]).median).all()
        else:
            with pytest.raises(ValueError, match=rf"state\['{key}'\] is damaged: it must hold"):
                session.restore(state)


@pytest.mark.parametrize("name", [name for name in MAKERS if name.startswith("autoregression")])
@pytest.mark.parametrize("key", ["gram", "cross", "totals", "weights", "issued"])
def test_fits_without_numbers_are_refused(name, key):
    session = MAKERS[name]().open(1, HORIZON)
    state = session.state()
    state[key].flat[0] = np.nan
    with pytest.raises(ValueError, match=rf"state\['{key}'\] is damaged: it must hold finite numbers"):
        session.restore(state)


def test_a_state_of_another_opening_is_refused():
    state = Autoregression(6, period=0).open(3, 4).state()
    for other in (
        Autoregression(6, period=0).open(2, 4),
        Autoregression(6, period=0).open(3, 5),
        Autoregression(7, period=0).open(3, 4),
        Autoregression(6, period=9).open(3, 4),
        SeasonalNaive(3).open(3, 4),
        LastValue().open(3, 4),
    ):
        with pytest.raises(ValueError, match=r"^state"):
            other.restore(state)


def test_a_context_forecaster_can_look_less_far():
    class Near(MiddleOfContext):
        longest_horizon = 3

    assert Near().open(1, 3).push([1.0]).median.shape == (1, 3)
    with pytest.raises(ValueError, match="horizon must be an integer from 1 to 3, got 4"):
        Near().open(1, 4)
    with pytest.raises(ValueError, match="horizon must be an integer from 1 to 3, got 4"):
        Near().forecast([[1.0]], 4)


def test_a_context_forecaster_reads_no_more_than_its_context():
    values = np.random.default_rng(0).normal(size=60)
    changed = values.copy()
    changed[:40] = 1e6
    equal(MiddleOfContext().forecast([values], 1), MiddleOfContext().forecast([changed], 1))
    changed[40] = 1e6
    assert not np.array_equal(
        MiddleOfContext().forecast([values], 1).quantiles, MiddleOfContext().forecast([changed], 1).quantiles
    )


def test_contexts_are_handed_on_without_needless_padding():
    widths = []

    class Watching(MiddleOfContext):
        def _predict(self, contexts, horizon):
            widths.append(contexts.shape[1])
            return super()._predict(contexts, horizon)

    nan = np.nan
    Watching(batch_size=2).forecast([[nan, 1.0, 2.0], [nan, nan, nan, 1.0], [1.0, nan], [nan, 5.0], range(50)], 1)
    assert widths == [2, 2, 20]
    widths.clear()
    Watching().open(2, 1).run([[nan, nan], [nan, 1.0], [2.0, nan]])
    assert widths == [1, 2]
