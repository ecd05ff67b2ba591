"""One list of checks for every forecaster that another library brings. Needs none of these libraries itself."""

import json

import numpy as np
import pytest

HORIZON = 5


def series(length, seed=0):
    rng = np.random.default_rng(seed)
    return 10 + np.sin(np.arange(length) * 2 * np.pi / 12) + 0.1 * rng.normal(size=length)


def hard_contexts():
    """Contexts of unequal length, with gaps everywhere, of every size, and hardly any."""
    values = series(100)
    gaps = values.copy()
    gaps[[3, 50, 51, 52, 98, 99]] = np.nan
    sparse = np.where(np.random.default_rng(1).random(100) < 0.9, np.nan, values)
    sparse[[70, 90]] = 9.0, 10.0
    return [
        values,
        values[:40],
        values[:7],
        values[:2],
        values[:1],
        gaps,
        sparse,
        [np.nan, np.nan, 2.0, np.nan, np.nan],
        [3.0] * 20,
        [0.0] * 20,
        [0.0] * 19 + [1.0],
        values * 1e12,
        values * 1e-12,
        values * 1e-6 + 1e6,
        -values * 1e298,
        values * 1e-300,
        np.arange(60.0),
    ]


def spread(context):
    """What an error of 1 in standardised values is for this context."""
    context = np.asarray(context, dtype=np.float64)
    largest = np.nanmax(np.abs(context)) or 1.0
    return (np.nanstd(context / largest) + 1e-9) * largest


def close(one, other, contexts, tolerance):
    """Are two forecasts of the same contexts equal, up to the tolerance times each context's spread?"""
    allowed = np.array([spread(context) for context in contexts])[:, np.newaxis] * tolerance
    same = (np.abs(one.median - other.median) <= allowed).all()
    if one.quantiles is not None:
        same &= (np.abs(one.quantiles - other.quantiles) <= allowed[..., np.newaxis]).all()
    return same


def identical(one, other):
    np.testing.assert_array_equal(one.median, other.median)
    assert (one.quantiles is None) == (other.quantiles is None)
    if one.quantiles is not None:
        np.testing.assert_array_equal(one.quantiles, other.quantiles)


def check_shapes(make, tolerance):
    forecaster = make()
    contexts = hard_contexts()
    for horizon in (1, HORIZON, min(forecaster.longest_horizon, 64)):
        forecast = forecaster.forecast(contexts, horizon)
        assert forecast.median.shape == (len(contexts), horizon)
        assert forecast.median.dtype == np.float64
        if forecaster.levels:
            assert forecast.quantiles.shape == (len(contexts), horizon, len(forecaster.levels))
            assert forecast.quantiles.dtype == np.float64
        else:
            assert forecast.quantiles is None


def check_always_finite(make, tolerance):
    forecaster = make()
    for context in hard_contexts():
        forecast = forecaster.forecast([context], HORIZON)
        assert np.isfinite(forecast.median).all(), context
        assert not forecaster.levels or np.isfinite(forecast.quantiles).all(), context


def check_quantiles_ascend_around_the_median(make, tolerance):
    forecaster = make()
    assert sorted(set(forecaster.levels)) == list(forecaster.levels)
    if forecaster.levels:
        forecast = forecaster.forecast(hard_contexts(), HORIZON)
        assert (np.diff(forecast.quantiles, axis=-1) >= 0).all()
        np.testing.assert_array_equal(forecast.quantiles[..., forecaster.levels.index(0.5)], forecast.median)


def check_many_are_one_by_one(make, tolerance):
    forecaster = make()
    contexts = hard_contexts()
    together = forecaster.forecast(contexts, HORIZON)
    for index, context in enumerate(contexts):
        alone = forecaster.forecast([context], HORIZON)
        part = type(together)(*(None if part is None else part[index : index + 1] for part in together))
        assert close(alone, part, [context], tolerance), index


def check_batches_make_no_difference(make, tolerance):
    contexts = hard_contexts()
    whole, halves = make().forecast(contexts, HORIZON), make(batch_size=3).forecast(contexts, HORIZON)
    assert close(whole, halves, contexts, tolerance)


def check_twice_the_same(make, tolerance):
    forecaster = make()
    contexts = hard_contexts()
    identical(forecaster.forecast(contexts, HORIZON), forecaster.forecast(contexts, HORIZON))
    identical(forecaster.forecast(contexts, HORIZON), make().forecast(contexts, HORIZON))


def check_only_the_newest_observations_matter(make, tolerance):
    forecaster = make(context_length=24)
    assert forecaster.context_length == 24
    values = series(100)
    identical(forecaster.forecast([values], HORIZON), forecaster.forecast([values[-24:]], HORIZON))
    changed = forecaster.forecast([np.append(values[-24:-1], values[-1] + 5)], HORIZON)
    assert not close(changed, forecaster.forecast([values], HORIZON), [values], tolerance)
    full = make()
    longer = series(2 * full.context_length)
    identical(full.forecast([longer], HORIZON), full.forecast([longer[full.context_length :]], HORIZON))


def check_a_context_begins_with_its_first_number(make, tolerance):
    forecaster = make()
    values = series(20)
    padded = np.concatenate([np.full(13, np.nan), values])
    one, other = forecaster.forecast([values], HORIZON), forecaster.forecast([padded], HORIZON)
    assert close(one, other, [values], tolerance)


def check_nothing_is_said_of_nothing(make, tolerance):
    forecaster = make()
    for nothing in ([np.nan, np.nan], []):
        with pytest.raises(ValueError, match=r"^contexts\[1\] must hold at least one number"):
            forecaster.forecast([series(30), nothing], HORIZON)
    assert np.isnan(forecaster.open(2, HORIZON).push([np.nan, np.inf]).median).all()


def check_equal_values_go_on(make, tolerance):
    forecaster = make()
    for value in (3.0, 0.0, -1e-12, 1e300):
        for length in (1, 2, 30):
            forecast = forecaster.forecast([[value] * length], HORIZON)
            np.testing.assert_allclose(forecast.median, value, rtol=1e-15)
            assert not forecaster.levels or np.allclose(forecast.quantiles, value, rtol=1e-15, atol=0)


def check_forecasts_follow_the_scale(make, tolerance):
    forecaster = make()
    values = series(60)
    usual = forecaster.forecast([values], HORIZON)
    for factor in (1e12, 1e-12, 2.0**500):
        scaled = forecaster.forecast([values * factor], HORIZON)
        assert close(
            usual, type(usual)(*(None if part is None else part / factor for part in scaled)), [values], tolerance
        )


def history(steps=14, columns=3):
    table = np.stack([series(steps, seed) for seed in range(columns)], axis=1)
    table[:4, 1] = np.nan
    table[6, 0] = np.nan
    table[-2:, 2] = np.nan
    return table


def check_stream_and_history_agree(make, tolerance):
    table = history()
    one, other = make(context_length=8).open(3, HORIZON), make(context_length=8).open(3, HORIZON)
    whole = one.run(table)
    for step, row in enumerate(table):
        pushed = other.push(row)
        identical(pushed, type(pushed)(*(None if part is None else part[step] for part in whole)))
    blocks = make(context_length=8, time_batch=5).open(3, HORIZON).run(table)
    known = ~np.isnan(whole.median)
    np.testing.assert_array_equal(known, ~np.isnan(blocks.median))
    # Forecasts from a single value stand in for those from equal ones: the rest have a spread of about one.
    np.testing.assert_allclose(blocks.median[known], whole.median[known], atol=2 * tolerance, rtol=0)


def check_restored_sessions_continue(make, tolerance):
    table = history()
    whole = make(context_length=8).open(3, HORIZON).run(table)
    first, second = make(context_length=8).open(3, HORIZON), make(context_length=8).open(3, HORIZON)
    first.run(table[:9])
    second.restore(first.state())
    rest = second.run(table[9:])
    identical(rest, type(rest)(*(None if part is None else part[9:] for part in whole)))


def check_inputs_stay_as_they_are(make, tolerance):
    forecaster = make()
    contexts = [np.array(context, dtype=np.float64) for context in hard_contexts()]
    contexts.append(np.array([1.0, np.nan, 2.0]))
    before = [context.copy() for context in contexts]
    forecaster.forecast(contexts, HORIZON)
    table = history()
    kept = table.copy()
    forecaster.open(3, HORIZON).run(table)
    for context, copy in zip(contexts, before, strict=True):
        np.testing.assert_array_equal(context, copy)
    np.testing.assert_array_equal(table, kept)


def check_parameters_make_it_again(make, tolerance):
    forecaster = make(context_length=20, batch_size=7, time_batch=2)
    parameters = json.loads(json.dumps(forecaster.parameters()))
    again = type(forecaster)(**parameters)
    assert again.parameters() == forecaster.parameters()
    assert (parameters["context_length"], parameters["batch_size"], parameters["time_batch"]) == (20, 7, 2)
    assert repr(again) == repr(forecaster)
    assert again.levels == forecaster.levels
    identical(again.forecast(hard_contexts(), HORIZON), forecaster.forecast(hard_contexts(), HORIZON))


def check_bad_arguments_are_named(make, tolerance):
    forecaster = make()
    longest = forecaster.longest_horizon
    for value in (0, -1, longest + 1):
        with pytest.raises(ValueError, match=f"^horizon must be an integer from 1 to {longest}, got {value}$"):
            forecaster.forecast([[1.0, 2.0]], value)
        with pytest.raises(ValueError, match=f"^horizon must be an integer from 1 to {longest}, got {value}$"):
            forecaster.open(1, value)
    with pytest.raises(TypeError, match=r"^horizon must be .*, got 1.5$"):
        forecaster.forecast([[1.0, 2.0]], 1.5)
    for name in ("context_length", "batch_size", "time_batch"):
        with pytest.raises(ValueError, match=f"^{name} must be an integer .*, got 0$"):
            make(**{name: 0})
        with pytest.raises(TypeError, match=f"^{name} must be an integer .*, got 'many'$"):
            make(**{name: "many"})


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]

every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
