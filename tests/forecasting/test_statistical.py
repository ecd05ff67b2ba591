"""The adapter to statsforecast."""

import subprocess
import sys

import numpy as np
import pytest

from tests.cases import full
from tests.pretrained.contract import every_check, series
from tocsin.adapters import statistical
from tocsin.adapters.statistical import LEVELS, MODELS, StatsForecaster

# AutoARIMA and AutoCES are left to a single test: a fit of theirs takes longer than all others together.
FORECASTERS = {
    "AutoETS": {"model": "AutoETS"},
    "AutoTheta": {"model": "AutoTheta", "season_length": 6},
}


@pytest.mark.slow
@every_check
@pytest.mark.parametrize("arguments", [FORECASTERS["AutoETS"], full(FORECASTERS["AutoTheta"])], ids=FORECASTERS)
def test_contract(arguments, check):
    check(lambda **options: StatsForecaster(**{"context_length": 48, **arguments, **options}), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("model", [full(one) if one in ("AutoARIMA", "AutoCES") else one for one in MODELS])
def test_every_model_sees_a_season(model):
    values = series(72)
    forecast = StatsForecaster(model, season_length=12).forecast([values], 6)
    truth = 10 + np.sin(np.arange(72, 78) * 2 * np.pi / 12)
    assert np.abs(forecast.median[0] - truth).max() < 0.35
    assert (forecast.quantiles[0, :, 0] < forecast.median[0]).all()
    assert (forecast.quantiles[0, :, -1] > forecast.median[0]).all()


@pytest.mark.slow
def test_quantiles_are_the_ends_of_the_prediction_intervals():
    from statsforecast.models import AutoETS

    values = series(60)
    theirs = AutoETS(season_length=1).forecast(y=values, h=4, level=[20, 40, 60, 80])
    ours = StatsForecaster("AutoETS").forecast([values], 4)
    np.testing.assert_allclose(ours.median[0], theirs["mean"], rtol=1e-9)
    for level, interval in zip(
        LEVELS, ("lo-80", "lo-60", "lo-40", "lo-20", None, "hi-20", "hi-40", "hi-60", "hi-80"), strict=True
    ):
        if interval:
            np.testing.assert_allclose(ours.quantiles[0, :, LEVELS.index(level)], theirs[interval], rtol=1e-6)


@pytest.mark.slow
def test_gaps_are_filled_along_a_line_and_forecast_across():
    forecaster = StatsForecaster("AutoETS")
    line = np.arange(40.0)
    holes = line.copy()
    holes[[7, 20, 21, 22]] = np.nan
    np.testing.assert_allclose(forecaster.forecast([holes], 5).median, forecaster.forecast([line], 5).median)
    late = np.append(line, [np.nan] * 3)
    np.testing.assert_allclose(forecaster.forecast([late], 5).median, forecaster.forecast([line], 8).median[:, 3:])


@pytest.mark.parametrize("reason", ["short", "refused", "no numbers"])
def test_a_random_walk_takes_the_place_of_what_cannot_be_fitted(reason, monkeypatch):
    forecaster = StatsForecaster("AutoETS")
    values = np.array([1.0, 3.0]) if reason == "short" else np.array([0.0, 4.0, 1.0, 3.0])

    class Broken:
        def forecast(self, y, h, level):
            if reason == "refused":
                raise ZeroDivisionError
            ends = {f"{end}-{interval}": np.full(h, np.nan) for end in ("lo", "hi") for interval in level}
            return {"mean": np.zeros(h), **ends}

    monkeypatch.setattr(forecaster, "_fitter", Broken())
    forecast = forecaster.forecast([values], 4)
    np.testing.assert_allclose(forecast.median, 3.0)
    step = np.sqrt(np.mean(np.diff(values) ** 2))
    # 1.2816 deviations lie under 9 in 10 of a normal law.
    np.testing.assert_allclose(forecast.quantiles[0, :, -1], 3 + 1.2816 * step * np.sqrt([1, 2, 3, 4]), rtol=1e-4)


def test_deviations_are_those_of_a_normal_law():
    from scipy.special import ndtri

    np.testing.assert_allclose(statistical._DEVIATIONS, ndtri(LEVELS), atol=1e-15)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"^model must be one of 'AutoARIMA', .*, got 'Prophet'$"):
        StatsForecaster("Prophet")
    with pytest.raises(ValueError, match=r"^season_length must be an integer from 1 to 48, got 49$"):
        StatsForecaster(season_length=49, context_length=48)
    with pytest.raises(TypeError, match=r"^season_length must be an integer from 1 to 256, got 2.5$"):
        StatsForecaster(season_length=2.5)


def test_says_which_extra_is_missing():
    script = (
        "import sys; sys.modules['statsforecast'] = None\n"
        "from tocsin.adapters.statistical import StatsForecaster\n"
        "try: StatsForecaster()\n"
        "except ImportError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.startswith("StatsForecaster needs statsforecast.models")
    assert "pip install 'tocsin[stats]'" in output
