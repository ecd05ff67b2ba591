"""The embedded network against its formulas, and its sessions against its forecasts from whole contexts."""

import subprocess
import sys

import numpy as np
import pytest

from tests.forecasting.embedded_oracle import LEVELS, Oracle, centre_and_scale, random_arrays
from tocsin.arrays import read_arrays, write_arrays
from tocsin.forecasting import EmbeddedForecaster
from tocsin.forecasting.embedded.weights import SHIPPED, NetworkShape

# Three heads share a group, as in the shipped one, or four.
SHAPES = {
    "small": NetworkShape(width=64, layers=3, heads=4, groups=1, hidden=96, patch_hidden=32),
    "grouped": NetworkShape(width=96, layers=2, heads=6, groups=2, hidden=64, patch_hidden=96),
    "single": NetworkShape(width=32, layers=1, heads=1, groups=1, hidden=32, patch_hidden=32),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small network's file."""
    path = tmp_path_factory.mktemp("weights") / "small.npz"
    write_arrays(random_arrays(), path)
    return path


@pytest.fixture(scope="module", params=[*SHAPES, "shipped"])
def network(request, tmp_path_factory):
    """A file, and the oracle of what it holds."""
    if request.param == "shipped":
        return SHIPPED, Oracle(read_arrays(SHIPPED, "weights"))
    arrays = random_arrays(SHAPES[request.param], seed=7)
    path = tmp_path_factory.mktemp("weights") / f"{request.param}.npz"
    write_arrays(arrays, path)
    return path, Oracle(arrays)


def noisy_wave(length, seed=0):
    rng = np.random.default_rng(seed)
    return 20 + 3 * np.sin(np.arange(length) * 2 * np.pi / 23) + rng.normal(size=length)


def hard_series(length, seed=0):
    """A wave with gaps longer than what the query reads, single ones, outliers, a shift, and a standstill."""
    rng = np.random.default_rng(seed)
    values = noisy_wave(length, seed)
    values[rng.random(length) < 0.05] = np.nan
    values[rng.random(length) < 0.003] *= 1000
    values[length // 3 : length // 3 + 50] = np.nan
    values[length // 2 :] += 100
    values[3 * length // 4 : 3 * length // 4 + 80] = 7.0
    values[0] = 20.0
    return values


def distance(one, other, context):
    """How far two arrays of forecasts are apart, in the network's units."""
    centre, scale = centre_and_scale(np.asarray(context, dtype=np.float64))
    return np.abs(np.arcsinh((one - centre) / scale) - np.arcsinh((other - centre) / scale)).max()


def equal(one, other):
    np.testing.assert_array_equal(one.median, other.median)
    np.testing.assert_array_equal(one.quantiles, other.quantiles)


def contexts_of_all_kinds():
    walk = np.cumsum(np.random.default_rng(1).normal(size=1024))
    return {
        "full": walk,
        "half": noisy_wave(512),
        "hard": hard_series(777),
        "longer than it reads": noisy_wave(1500),
        "integers": np.arange(100) % 7,
        "trend": np.arange(300.0),
        "huge": 1e30 * noisy_wave(90),
        "tiny": 1e-30 * noisy_wave(90),
        "far from 0": 1e9 + noisy_wave(200),
        "recent gap": np.where(np.arange(200) < 150, noisy_wave(200), np.nan),
        "late": np.concatenate([np.full(37, np.nan), noisy_wave(50)]),
        "two known": [1.0, np.nan, np.nan, 2.0],
        "one step": [0.0] * 40 + [1.0],
        "spike": [*noisy_wave(100), 1e12, *noisy_wave(20)],
        "stuck": [*noisy_wave(100), *[20.0] * 40],
        "switch": switched_once(),
        "switch with gaps": np.where(np.arange(300) % 2 > 0, np.nan, switched_once()),
        "switch with few values": np.where(np.arange(300) % 4 > 0, np.nan, switched_once()),
    }


def switched_once(length=300, at=200):
    """Always 0, except once."""
    return np.where(np.arange(length) == at, 1.0, 0.0)


@pytest.mark.slow
def test_forecasts_are_those_of_the_formulas(network):
    path, oracle = network
    contexts = contexts_of_all_kinds()
    forecast = EmbeddedForecaster(weights=path).forecast(list(contexts.values()), 32)
    for index, (name, context) in enumerate(contexts.items()):
        read = np.asarray(context, dtype=np.float64)[-1024:]
        assert distance(forecast.quantiles[index], oracle.forecast(read), read) < 1e-4, name
    np.testing.assert_array_equal(forecast.median, forecast.quantiles[..., 4])
    assert np.all(np.diff(forecast.quantiles, axis=-1) >= 0)


@pytest.mark.slow
def test_short_contexts_are_those_of_the_formulas(network):
    path, oracle = network
    values = noisy_wave(40)
    contexts = [values[:length] for length in range(1, 41)]
    forecast = EmbeddedForecaster(weights=path).forecast(contexts, 32)
    assert np.all(forecast.quantiles[0] == values[0])
    for context, quantiles in zip(contexts[1:], forecast.quantiles[1:], strict=True):
        assert distance(quantiles, oracle.forecast(context), context) < 1e-4, context.size


def test_fewer_steps_are_the_first_of_many(small):
    forecaster = EmbeddedForecaster(weights=small)
    contexts = list(contexts_of_all_kinds().values())
    whole = forecaster.forecast(contexts, 32)
    for horizon in (1, 2, 3, 15, 31):
        part = forecaster.forecast(contexts, horizon)
        np.testing.assert_array_equal(part.quantiles, whole.quantiles[:, :horizon])


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
def test_company_makes_no_difference(small, batch_size):
    contexts = list(contexts_of_all_kinds().values())
    whole = EmbeddedForecaster(weights=small).forecast(contexts, 5)
    equal(EmbeddedForecaster(weights=small, batch_size=batch_size).forecast(contexts, 5), whole)
    turned = EmbeddedForecaster(weights=small, batch_size=batch_size).forecast(contexts[::-1], 5)
    np.testing.assert_array_equal(turned.quantiles[::-1], whole.quantiles)


@pytest.mark.parametrize("context_length", [1, 2, 16, 17, 100, 1024])
def test_only_the_newest_are_read(small, context_length):
    forecaster = EmbeddedForecaster(weights=small, context_length=context_length)
    values = hard_series(1300)
    equal(forecaster.forecast([values], 3), forecaster.forecast([values[-context_length:]], 3))
    if context_length > 1:
        values[1300 - context_length] = np.nan
        equal(forecaster.forecast([values], 3), forecaster.forecast([values[1 - context_length :]], 3))


def test_forecasts_follow_shift_and_scale(small):
    forecaster = EmbeddedForecaster(weights=small)
    values = hard_series(300)
    plain = forecaster.forecast([values], 10).quantiles
    for shift, scale in ((0.0, 1e30), (0.0, 1e-30), (1e6, 1.0), (-1e3, 0.1), (0.0, 1.0 / 3.0)):
        moved = forecaster.forecast([shift + scale * values], 10).quantiles
        assert distance((moved - shift) / scale, plain, values) < 1e-3
        assert np.isfinite(moved).all()


@pytest.mark.parametrize("value", [0, 3, -1.5, 1e300, 5e-324, 1e15 / 3])
@pytest.mark.parametrize("length", [1, 2, 500])
def test_a_constant_goes_on(small, value, length):
    assert np.all(EmbeddedForecaster(weights=small).forecast([[value] * length], 32).quantiles == value)


def test_a_switch_at_rest_is_forecast_to_stay():
    """The network alone would be a millionth away from it: further than before the switch first moved."""
    quantiles = EmbeddedForecaster().forecast([switched_once(), switched_once(at=290), noisy_wave(300)], 32).quantiles
    assert np.all(quantiles[0, :, LEVELS // 2] == 0.0)
    assert np.all(np.diff(quantiles, axis=-1) >= 0)
    assert not np.any(quantiles[1:, :, LEVELS // 2] == 0.0)


def test_nothing_is_said_of_nothing(small):
    long_ago = [1.0, 2.0] + [np.nan] * 50
    forecast = EmbeddedForecaster(weights=small, context_length=40).forecast([long_ago, [1.0, 2.0]], 4)
    assert np.isnan(forecast.quantiles[0]).all()
    assert np.isfinite(forecast.quantiles[1]).all()


def test_what_is_not_possible_is_refused(small):
    forecaster = EmbeddedForecaster(weights=small)
    for horizon in (0, 33, -1):
        with pytest.raises(ValueError, match=rf"^horizon must be an integer from 1 to 32, got {horizon}$"):
            forecaster.forecast([[1.0]], horizon)
        with pytest.raises(ValueError, match=rf"^horizon must be an integer from 1 to 32, got {horizon}$"):
            forecaster.open(1, horizon)


def test_forecasts_are_finite_whatever_comes(small):
    """Values of every size next to each other, gaps, and hardly anything."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-300, 300, size=(40, 200))
    values = sizes * rng.choice([-1.0, 0.0, 1.0, np.nan], size=sizes.shape)
    values[:, 0] = 1.0
    forecaster = EmbeddedForecaster(weights=small, context_length=50)
    assert np.isfinite(forecaster.forecast(values, 32).quantiles).all()
    forecast = forecaster.open(40, 3).run(values.T)
    reach = np.lib.stride_tricks.sliding_window_view(
        np.pad(values, [(0, 0), (49, 0)], constant_values=np.nan), 50, axis=1
    )
    certain = ~np.isnan(reach).all(axis=2).T
    assert np.isfinite(forecast.quantiles[certain]).all()


def followed(forecaster, values, horizon=3):
    """After each observation: the forecast, how many observations are kept, and how many of them give the units."""
    session = forecaster.open(1, horizon)
    for value in values:
        forecast = session.push([value])
        state = session.state()
        yield forecast, int(state["length"][0]), int(state["normalised"][0])


@pytest.mark.slow
@pytest.mark.parametrize("context_length", [1, 2, 7, 20, 100, 1024])
def test_a_session_forecasts_from_what_it_keeps(small, context_length):
    """Exactly as from the context that it keeps, in the units of its beginning; right then, as from any context."""
    forecaster = EmbeddedForecaster(weights=small, context_length=context_length)
    values = hard_series(1400 if context_length == 1024 else 400)
    every = 13 if context_length == 1024 else 1
    renewals = 0
    for index, (forecast, length, normalised) in enumerate(followed(forecaster, values)):
        seen = values[: index + 1]
        if length == 0:
            assert np.isnan(seen[-context_length:]).all()
            assert np.isnan(forecast.quantiles).all()
            continue
        assert min(context_length, index + 1) - np.isnan(seen).sum() <= length
        assert normalised <= context_length
        assert normalised <= length < normalised + max(1, normalised // 8)
        if normalised == length:
            renewals += 1
            equal(forecast, forecaster.forecast([seen], 3))
        if index % every == 0:
            equal(forecast, forecaster._forecast([seen[-length:]], [normalised], 3))
    assert renewals >= 20


def test_units_are_renewed_when_they_must(small):
    forecaster = EmbeddedForecaster(weights=small)

    def renewed(values):
        return [index for index, (_, length, kept) in enumerate(followed(forecaster, values)) if length == kept]

    for values in (noisy_wave(400), np.full(400, 5.0)):
        moments = np.array(renewed(values)) + 1
        eighth = moments[:-1] // 8
        assert (np.diff(moments) <= np.maximum(1, eighth)).all()
        assert (np.diff(moments) >= np.maximum(1, eighth - eighth // 2)).all()
        assert 400 - moments[-1] <= moments[-1] // 8
    wave = noisy_wave(200)
    calm = next(place for place in range(140, 200) if place not in renewed(wave))
    spike = wave.copy()
    spike[calm] = 1e6
    assert calm in renewed(spike)
    constant = np.full(200, 5.0)
    calm = next(place for place in range(140, 200) if place not in renewed(constant))
    constant[calm:] += 1e-9
    assert calm in renewed(constant)


@pytest.mark.slow
def test_series_that_began_together_are_not_renewed_together(small):
    session = EmbeddedForecaster(weights=small).open(64, 1)
    values = np.random.default_rng(0).normal(size=(700, 64))
    session.run(values[:400])
    together = []
    for row in values[400:]:
        session.push(row)
        state = session.state()
        together.append(np.count_nonzero(state["length"] == state["normalised"]))
    assert max(together) < 12
    assert sum(together) > 64 * 4


def test_a_session_is_close_to_forecasts_from_the_same_observations(small):
    """Units that are an eighth of the context old are nearly those of now."""
    forecaster = EmbeddedForecaster(weights=small)
    values = noisy_wave(600)
    session = forecaster.open(1, 3).run(values[:, np.newaxis])
    ends = np.arange(100, 600, 37)
    direct = forecaster.forecast([values[: end + 1] for end in ends], 3)
    assert distance(session.quantiles[ends, 0], direct.quantiles, values) < 0.1


@pytest.fixture(scope="module")
def long_streams(small):
    """Streams past the length where the oldest part is dropped, several times, and their forecasts in one go."""
    values = np.stack([hard_series(3000, seed) for seed in range(3)], axis=1)
    values[500:1900, 1] = np.nan  # longer than all that is kept
    values[:, 2] = np.where(np.arange(3000) < 1400, 4.0, values[:, 2])
    return values, EmbeddedForecaster(weights=small).open(3, 2).run(values)


def test_long_streams_are_finite_wherever_something_was_seen(long_streams):
    _, forecast = long_streams
    silent = np.isnan(forecast.median).all(axis=2)
    assert not silent[:, [0, 2]].any()
    assert not silent[:1500, 1].any()
    assert silent[1700:1900, 1].all()
    assert np.all(forecast.quantiles[:1400, 2] == 4.0)


def test_long_streams_in_any_pieces_and_company(small, long_streams):
    values, expected = long_streams
    rng = np.random.default_rng(0)
    session = EmbeddedForecaster(weights=small, batch_size=2).open(3, 2)
    got = np.full(expected.quantiles.shape, np.nan)
    at = np.zeros(3, dtype=int)
    while at.min() < 3000:
        length = int(rng.choice([1, 1, 5, 40, 300]))
        able = np.flatnonzero(at + length <= 3000)
        rows = rng.permutation(able)[: rng.integers(0, able.size + 1)]
        piece = np.stack([values[at[row] : at[row] + length, row] for row in rows], axis=1) if rows.size else None
        if piece is None:
            continue
        quantiles = session.run(piece, rows).quantiles
        for column, row in enumerate(rows):
            got[at[row] : at[row] + length, row] = quantiles[:, column]
        at[rows] += length
    np.testing.assert_array_equal(got, expected.quantiles)


def test_long_streams_saved_and_restored_anywhere(small, long_streams):
    values, expected = long_streams
    forecaster = EmbeddedForecaster(weights=small)
    session, before = forecaster.open(3, 2), 0
    for at in np.sort(np.random.default_rng(1).integers(1, 3000, size=30)):
        np.testing.assert_array_equal(session.run(values[before:at]).quantiles, expected.quantiles[before:at])
        restored = forecaster.open(3, 2)
        restored.restore(session.state())
        session, before = restored, at


def test_what_nobody_wanted_is_made_up_for_later(small, long_streams):
    values, expected = long_streams
    wanted = np.zeros(values.shape, dtype=bool)
    wanted[[700, 701, 1151, 1152, 1153, 2999]] = True
    quantiles = EmbeddedForecaster(weights=small).open(3, 2).run(values, wanted=wanted).quantiles
    np.testing.assert_array_equal(quantiles[wanted], expected.quantiles[wanted])


def test_memory_does_not_grow(small):
    session = EmbeddedForecaster(weights=small).open(2, 2)
    session.push([1.0, 2.0])
    (memory,) = session._batches
    places = [array.ctypes.data for array in memory]
    for seed in range(3):
        session.run(np.stack([hard_series(1500, seed)] * 2, axis=1))
        assert session._batches == [memory]
        assert [array.ctypes.data for array in memory] == places
    assert sum(array.nbytes for array in session.state().values()) == 2 * (1152 + 2) * 8


def test_a_shipped_series_takes_what_is_said():
    session = EmbeddedForecaster().open(1, 1)
    session.push([1.0])
    (memory,) = session._batches
    assert sum(array.nbytes for array in memory) < 72_000
    assert sum(array.nbytes for array in session.state().values()) < 9_500


@pytest.mark.slow
def test_a_hundred_thousand_series_with_little_history_take_little():
    """What is set aside for them is taken from the machine as it is written to; and of batches, as they begin."""
    resource = pytest.importorskip("resource")
    session = EmbeddedForecaster().open(100_000, 1)
    assert session._batches == [None] * 391
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    session.run(np.random.default_rng(0).normal(size=(20, 2000)), np.arange(2000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2000 * 80  # kB


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("length", lambda state: state["length"] + 50, "numbers from those of normalised to an eighth more"),
        ("length", lambda state: state["length"] * 0, "numbers from those of normalised to an eighth more"),
        ("normalised", lambda state: state["normalised"] + 1000, "numbers from 0 to 1024"),
        ("values", lambda state: np.full_like(state["values"], np.nan), "0 behind the length of each series"),
        ("values", lambda state: state["values"] * 1e300, r"NaN, or numbers up to 1e\+300"),
        ("values", lambda state: state["values"] + 1, "0 behind the length of each series"),
    ],
)
def test_states_that_cannot_be_are_refused(small, name, change, message):
    session = EmbeddedForecaster(weights=small).open(2, 1)
    session.run(np.stack([noisy_wave(100)] * 2, axis=1))
    state = session.state()
    with pytest.raises(ValueError, match=rf"^state\['{name}'\] is damaged: it must hold {message}"):
        session.restore({**state, name: change(state)})
    headless = state["values"].copy()
    headless[1, 0] = np.nan
    with pytest.raises(ValueError, match="a number at the beginning of each series"):
        session.restore({**state, "values": headless})


@pytest.mark.slow
def test_the_same_bits_in_another_process(tmp_path):
    """Whether the machine code was just compiled or comes from the disk."""
    values = hard_series(200)
    np.save(tmp_path / "values.npy", values)
    script = """
import numpy as np
from tocsin.forecasting import EmbeddedForecaster
values = np.load("values.npy")
session = EmbeddedForecaster().open(1, 3)
np.savez("found.npz", session=session.run(values[:, np.newaxis]).quantiles,
         direct=EmbeddedForecaster().forecast([values], 32).quantiles)
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    found = np.load(tmp_path / "found.npz")
    session = EmbeddedForecaster().open(1, 3).run(values[:, np.newaxis])
    np.testing.assert_array_equal(found["session"], session.quantiles)
    np.testing.assert_array_equal(found["direct"], EmbeddedForecaster().forecast([values], 32).quantiles)
