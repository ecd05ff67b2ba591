"""How forecasters are judged: metrics by hand, windows, contamination, and the command on small folders."""

import csv
from collections import Counter

import numpy as np
import pytest
from training.evaluate import app
from training.judging import contamination, metrics, peers
from training.judging.windows import LONGEST_CONTEXT, Window, draw_windows, known_period
from typer.testing import CliRunner

from tocsin.forecasting import make_forecaster


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def last_pairs(result):
    """The last line that was printed, as numbers by name."""
    pairs = dict(pair.split("=") for pair in result.stdout.splitlines()[-1].split())
    return {name: float(value) for name, value in pairs.items()}


# --- metrics, by hand -------------------------------------------------------------------------------------------------


def test_pinball_losses():
    losses = metrics.pinball_losses(np.array([[10.0, 3.0]]), np.array([[[8.0, 12.0], [3.0, 4.0]]]), [0.2, 0.7])
    # 10 is 2 above 8 (0.2 * 2) and 2 below 12 (0.3 * 2); 3 is where it was expected, and 1 below 4 (0.3 * 1).
    np.testing.assert_allclose(losses, [[[0.4, 0.6], [0.0, 0.3]]])


def test_weighted_quantile_loss():
    truth = np.array([[10.0, -3.0]])
    quantiles = np.array([[[8.0, 12.0], [-3.0, -2.0]]])
    # Level .2 loses 0.4 + 0, level .7 loses 0.6 + 0.3; twice their mean, over 10 + 3.
    assert metrics.weighted_quantile_loss(truth, quantiles, [0.2, 0.7]) == pytest.approx(2 * (0.4 + 0.9) / 2 / 13)


def test_weighted_quantile_loss_of_medians_is_their_relative_error():
    truth = np.array([[1.0, 2.0, 3.0]])
    assert metrics.weighted_quantile_loss(truth, truth[..., np.newaxis] + 0.5, [0.5]) == pytest.approx(1.5 / 6)


def test_scaled_error():
    assert metrics.seasonal_error(np.array([1.0, 2.0, 4.0, 1.0]), 1) == pytest.approx((1 + 2 + 3) / 3)
    assert metrics.seasonal_error(np.array([1.0, 2.0, 4.0, 1.0]), 2) == pytest.approx((3 + 1) / 2)
    truth, median = np.array([[1.0, 2.0], [10.0, 10.0]]), np.array([[2.0, 4.0], [10.0, 13.0]])
    # Mean absolute errors of 1.5 and 1.5, in units of 3 and 0.5.
    assert metrics.scaled_error(truth, median, np.array([3.0, 0.5])) == pytest.approx((0.5 + 3.0) / 2)


def test_coverage_counts_the_ends():
    truth, low, high = np.array([[1.0, 2.0, 3.0, 4.0]]), np.full((1, 4), 2.0), np.full((1, 4), 3.5)
    assert metrics.coverage(truth, low, high) == 0.5


def test_geometric_mean_and_rank():
    assert metrics.geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert metrics.rank(1.0, [2.0, 1.0, 3.0]) == 1
    assert metrics.rank(2.0, [1.0, 1.5, 3.0]) == 3
    assert metrics.rank(np.nan, [1.0, 2.0]) == 3


# --- contamination ----------------------------------------------------------------------------------------------------


def test_spikes():
    context = np.random.default_rng(0).normal(5.0, 2.0, size=400)
    original = context.copy()
    change = contamination.with_spikes(context, np.random.default_rng(1)) - context
    assert (context == original).all()
    spikes = change[change != 0]
    assert spikes.size == 8
    np.testing.assert_allclose(np.abs(spikes), 10 * context.std())
    assert {-1.0, 1.0} == set(np.sign(spikes))
    assert np.count_nonzero(contamination.with_spikes(context[:9], np.random.default_rng(1)) - context[:9]) == 1


def test_shift():
    context = np.random.default_rng(0).normal(5.0, 2.0, size=200)
    change = contamination.with_shift(context, np.random.default_rng(1)) - context
    np.testing.assert_array_equal(np.flatnonzero(change), np.arange(120, 150))
    np.testing.assert_allclose(np.abs(change[120:150]), 3 * context.std())
    assert np.unique(np.sign(change[120:150])).size == 1


# --- windows ----------------------------------------------------------------------------------------------------------


def numbered(length):
    return np.arange(length, dtype=np.float64)


def test_windows_are_where_they_should_be():
    series = {"long": numbered(5000), "short": numbered(100), "shorter": numbered(40), "too_short": numbered(29)}
    windows = draw_windows("unknown", series, 30, (15, 48))
    # Between 48 and 52, where the origins of `short` may lie, there are only 5.
    assert Counter(window.series for window in windows) == {"long": 10, "short": 5, "shorter": 10}
    for window in windows:
        assert window.truth[0] == window.context[-1] + 1
        assert window.truth[-1] == window.truth[0] + window.truth.size - 1 < series[window.series].size
        assert window.truth.size == {"long": 48, "short": 48, "shorter": 15}[window.series]
        least, most = {"long": (1024, 1024), "short": (48, 52), "shorter": (15, 25)}[window.series]
        assert least <= window.context.size <= most
    origins = np.array([window.truth[0] for window in windows if window.series == "long"])
    edges = np.linspace(LONGEST_CONTEXT, 5000 - 48 + 1, 11).astype(int)
    assert (edges[:-1] <= origins).all()
    assert (origins < edges[1:]).all()


def test_windows_are_the_same_every_time_and_spread_over_series():
    rng = np.random.default_rng(0)
    series = {f"monthly_m{k}": rng.normal(size=120) for k in range(20)}
    first, again = (draw_windows("tourism", series, 8, (15,)) for _ in range(2))
    assert len({window.series for window in first}) == len(first) == 8
    for one, other in zip(first, again, strict=True):
        assert one.series == other.series
        np.testing.assert_array_equal(one.context, other.context)
    assert {window.period for window in first} == {12}


def test_periods():
    assert known_period("tourism", "yearly_Y1") == 1
    assert known_period("pjm_hourly", "AEP") == 24
    wave = np.sin(2 * np.pi * np.arange(600) / 20) + np.random.default_rng(0).normal(0, 0.1, 600)
    assert {window.period for window in draw_windows("mine", {"wave": wave}, 3, (15,))} == {20}


@pytest.mark.parametrize(
    ("context", "truth", "usable"),
    [
        ([1.0, 2.0, 1.0, 3.0], [1.0], True),
        ([1.0, 2.0, 1.0, 2.0], [1.0], False),
        ([1.0, np.nan, 1.0, 3.0], [1.0], False),
        ([1.0, 2.0, 1.0, 3.0], [np.nan], False),
    ],
)
def test_which_windows_are_usable(context, truth, usable):
    assert Window("mine", "first", 2, np.array(context), np.array(truth)).usable is usable


# --- the command: every origin ----------------------------------------------------------------------------------------


@pytest.fixture
def tsb_folder(tmp_path):
    """Walks of several lengths, the longest with more origins than go through a forecaster together."""
    rng = np.random.default_rng(0)
    lengths = {
        "001_NAB_id_1_Facility_tr_50_1st_60": 400,
        "002_NAB_id_2_Facility_tr_50_1st_60": 70,
        "140_MSL_id_1_Sensor_tr_50_1st_60": 67,
    }
    for name, length in lengths.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            walk = np.cumsum(rng.normal(size=length))
            csv.writer(file).writerows([("Data", "Label"), *((value, 0) for value in walk)])
    return tmp_path


def obvious_error(file, forecaster, context, every):
    """The mean absolute error of a file, origin by origin and step by step."""
    with file.open() as lines:
        values = [float(row["Data"]) for row in csv.DictReader(lines)]
    errors = []
    for origin in range(52, len(values) - 15 + 1, every):
        past = values[max(0, origin - context) : origin]
        median = forecaster.forecast([past], 15).median[0]
        errors += [abs(values[origin + step] - median[step]) for step in range(15)]
    return sum(errors) / len(errors)


@pytest.mark.parametrize(("name", "every"), [("last-value", 1), ("exponential-smoothing", 3)])
def test_every_origin(tsb_folder, name, every):
    given = ("--forecaster", name, "--contexts", "52,60", "--every", every, "--jobs", 1)
    result = invoke("--tsb", tsb_folder, *given)
    assert result.exit_code == 0, result.output
    expected = {}
    for context in (52, 60):
        files = sorted(tsb_folder.iterdir())
        first, second, third = (obvious_error(file, make_forecaster(name), context, every) for file in files)
        expected |= {f"nab{context}": (first + second) / 2, f"msl{context}": third}
    found = last_pairs(result)
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-3)
    assert ("only 1 in 3 origins" in result.stdout) == (every == 3)
    assert "seasonal-naive" in result.stdout
    assert "autoregression" in result.stdout


@pytest.mark.full
def test_every_origin_in_processes(tsb_folder):
    given = ("--tsb", tsb_folder, "--forecaster", "last-value", "--contexts", "52")
    assert invoke(*given, "--jobs", 2).stdout == invoke(*given, "--jobs", 1).stdout


def test_files_that_cannot_be_read_are_left_out(tsb_folder):
    given = ("--tsb", tsb_folder, "--forecaster", "last-value", "--jobs", 1)
    good = invoke(*given)
    (tsb_folder / "003_NAB_words.csv").write_text("Data,Label\nmany,0\n")
    (tsb_folder / "004_NAB_short.csv").write_text("Data,Label\n" + "1.0,0\n" * 66)
    (tsb_folder / "005_NAB_other.csv").write_text("Time,Value\n1,2\n")
    (tsb_folder / "006_NAB_hole.csv").write_text("Data,Label\n" + "nan,0\n" * 100)
    result = invoke(*given)
    assert result.exit_code == 3
    assert result.stdout == good.stdout
    for name in ("003_NAB_words", "004_NAB_short", "005_NAB_other", "006_NAB_hole"):
        assert f"{name}.csv: " in result.stderr
    assert "at least 67 observations, got 66" in result.stderr
    assert last_pairs(invoke(*given, "--limit", 2)).keys() == {"nab52", "nab512", "nab1024"}


# --- the command: beside others, and contaminated ---------------------------------------------------------------------


@pytest.fixture
def forecast_folder(tmp_path):
    """Two small data sets: fits to short series of period 1 and 4 are quick."""
    rng = np.random.default_rng(0)
    time = np.arange(240)
    walks = {f"c{k}": 100 + np.cumsum(rng.normal(size=240)) for k in range(2)}
    waves = {f"quarterly_q{k}": 50 + 5 * np.sin(2 * np.pi * time / 4 + k) + rng.normal(size=240) for k in range(2)}
    np.savez(tmp_path / "exchange_rate.npz", **walks)
    np.savez(tmp_path / "tourism.npz", **waves, quarterly_q2=np.ones(240), quarterly_q3=waves["quarterly_q0"][:40])
    return tmp_path


SMALL = ("--windows", 4, "--jobs", 1)


@pytest.mark.slow
def test_beside_others(forecast_folder, tmp_path_factory, monkeypatch):
    kept = tmp_path_factory.mktemp("kept") / "peers.npz"
    given = ("--forecast", forecast_folder, "--peers", kept, *SMALL)
    result = invoke(*given, "--forecaster", "stats", "--set", "model=AutoTheta", "--set", "season_length=4")
    assert result.exit_code == 0, result.output
    assert "8 windows, 1 of them left out" in result.stdout
    assert "fits that failed: last value 0, seasonal naive 0, AutoETS 0, AutoTheta 0" in result.stdout
    found = last_pairs(result)
    for horizon in (15, 32):
        for metric in ("mase", "wql"):
            assert 1 <= found[f"rank{horizon}_{metric}_mean"] <= 5
            assert 1 <= found[f"rank{horizon}_{metric}_worst"] <= 5
            assert 0 < found[f"ratio{horizon}_{metric}"] < 2
    assert 0 < found["coverage_least"] <= found["coverage_most"] <= 1

    monkeypatch.setattr(peers, "_fit_all", None)  # what is kept is not forecast again
    again = invoke(*given, "--forecaster", "last-value")
    assert again.exit_code == 0, again.output
    # The package's own last value has no quantiles.
    assert not any("wql" in name or "coverage" in name for name in last_pairs(again))


@pytest.mark.slow
def test_last_value_beside_itself(forecast_folder):
    result = invoke("--forecast", forecast_folder, "--forecaster", "last-value", "--limit", 1, *SMALL)
    found = last_pairs(result)
    with np.load(forecast_folder / "exchange_rate.npz") as series:
        windows = draw_windows("exchange_rate", dict(series), 4, (15, 32))
    for horizon in (15, 32):
        errors = [
            np.mean([abs(value - window.context[-1]) for value in window.truth[:horizon]])
            / np.mean([abs(window.context[t] - window.context[t - 1]) for t in range(1, window.context.size)])
            for window in windows
        ]
        assert found[f"mean{horizon}_mase"] == pytest.approx(np.mean(errors), rel=1e-3)
        # Without a period, seasonal naive is the same.
        assert found[f"ratio{horizon}_mase"] == 1.0


@pytest.mark.slow
def test_peers_are_forecast_anew_for_other_windows(forecast_folder, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "peers.npz"
    given = ("--forecast", forecast_folder, "--forecaster", "last-value", "--peers", kept, "--limit", 1, "--jobs", 1)
    assert "anew" not in invoke(*given, "--windows", 2).stderr
    assert "anew" in invoke(*given, "--windows", 3).stderr
    assert "anew" not in invoke(*given, "--windows", 3).stderr


def test_a_model_that_fails_is_counted_and_replaced(monkeypatch):
    from statsforecast.models import AutoETS

    def refuse(*args, **kwargs):
        raise Exception("no model able to be fitted")

    context = np.random.default_rng(0).normal(size=40)
    monkeypatch.setattr(AutoETS, "forecast", refuse)
    monkeypatch.setattr("statsforecast.models.AutoTheta.forecast", lambda *args, **kwargs: {"mean": np.zeros(6)})
    quantiles, failed = peers._fit_all(context, 4, 6)
    assert failed == [False, False, True, True]
    assert quantiles.shape == (4, 6, 9)
    np.testing.assert_array_equal(quantiles[2], quantiles[1])
    np.testing.assert_array_equal(quantiles[3], quantiles[1])
    np.testing.assert_allclose(quantiles[0, :, 4], context[-1])
    np.testing.assert_allclose(quantiles[1, :, 4], np.resize(context[-4:], 6))
    assert (np.diff(quantiles[:2], axis=-1) > 0).all()


@pytest.mark.slow
def test_contaminated(forecast_folder):
    result = invoke("--contaminated", forecast_folder, "--forecaster", "last-value", *SMALL)
    assert result.exit_code == 0, result.output
    found = last_pairs(result)
    for kind in ("spikes", "shift"):
        assert found[f"growth_{kind}_last_value"] >= 1.0
        assert {f"growth_{kind}_{model}" for model in ("seasonal_naive", "autoets", "autotheta")} < found.keys()
    # What is over 50 steps before the origin does not concern the last value.
    assert found["growth_shift_last_value"] == 1.0


@pytest.mark.slow
def test_series_that_cannot_be_read_are_left_out(forecast_folder):
    (forecast_folder / "text.npz").write_text("1, 2, 3")
    np.savez(forecast_folder / "table.npz", two=np.ones((100, 2)))
    with (forecast_folder / "bare.npz").open("wb") as file:
        np.save(file, np.ones(100))
    whole = (forecast_folder / "exchange_rate.npz").read_bytes()
    (forecast_folder / "half.npz").write_bytes(whole[: len(whole) // 2])
    (forecast_folder / "exchange_rate.npz").unlink()
    result = invoke("--forecast", forecast_folder, "--forecaster", "last-value", *SMALL)
    assert result.exit_code == 3
    for name in ("text", "table", "bare", "half"):
        assert f"{name}.npz: must be" in result.stderr.replace("'two' must", "must")
    assert "rank15_mase_worst" in last_pairs(result)


# --- what cannot be ---------------------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused(tsb_folder, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    other = next(tsb_folder.iterdir())
    plain = ("--forecaster", "last-value")
    for arguments, complaint in [
        ((), "exactly one"),
        (("--tsb", tsb_folder, "--forecast", tsb_folder), "exactly one"),
        (("--tsb", tsb_folder / "nowhere", *plain), "not exist"),
        (("--tsb", empty, *plain), "holds no files"),
        (("--forecast", tsb_folder, *plain), "holds no files"),
        (("--tsb", tsb_folder, "--forecaster", "crystal-ball"), "crystal-ball"),
        (("--tsb", tsb_folder, *plain, "--set", "depth=3"), "depth"),
        (("--tsb", tsb_folder, *plain, "--contexts", "52,many"), "'many'"),
        (("--tsb", tsb_folder, *plain, "--weights", other), "weights"),
        (("--contaminated", tsb_folder, *plain, "--peers", other), "no file of peers' forecasts"),
    ]:
        result = invoke(*arguments)
        assert result.exit_code == 2, arguments
        assert complaint in " ".join(result.output.replace("│", " ").split()), result.output
