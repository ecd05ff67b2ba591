"""What every adapter to a pretrained model keeps."""

import numpy as np
import pytest

from tests.pretrained.conftest import CONTEXT, FAMILIES
from tests.pretrained.contract import HORIZON, close, every_check, hard_contexts, series

# Tested once, in test_models.py.
pytestmark = pytest.mark.filterwarnings("ignore::tocsin.adapters.tirex.LicenceWarning")


@every_check
def test_contract(make, family, check):
    check(make, FAMILIES[family].tolerance)


def test_reads_as_much_as_the_model_does(make, family):
    forecaster = make()
    expected = CONTEXT / FAMILIES[family].options.get("scale_factor", 1)
    assert forecaster.context_length == expected
    with pytest.raises(ValueError, match=rf"^context_length must be at most {expected:g}, .*, got {expected + 1:g}$"):
        make(context_length=int(expected) + 1)


def test_every_horizon_has_its_length(make):
    forecaster = make()
    for horizon in range(1, forecaster.longest_horizon + 1):
        assert forecaster.forecast([series(50)], horizon).median.shape == (1, horizon)


def test_forecasts_follow_the_shift(make, family):
    values = series(60)
    forecaster = make()
    usual, shifted = forecaster.forecast([values], HORIZON), forecaster.forecast([values - 1e6], HORIZON)
    back = type(usual)(*(None if part is None else part + 1e6 for part in shifted))
    assert close(usual, back, [values], FAMILIES[family].tolerance)


# On a processor without bfloat16, torch says that it takes another way.
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")
def test_every_precision_gives_numbers(make, family):
    exact = make().forecast(hard_contexts(), HORIZON)
    for dtype in FAMILIES[family].kind.dtypes:
        forecaster = make(dtype=dtype)
        assert forecaster.dtype == dtype
        forecast = forecaster.forecast(hard_contexts(), HORIZON)
        assert np.isfinite(forecast.median).all()
        assert close(forecast, exact, hard_contexts(), 20 * np.abs(exact.median[0] - 10).max())


def test_refuses_other_precisions(make):
    with pytest.raises(ValueError, match=r"^dtype must be one of 'float32'.*, got 'int8'$"):
        make(dtype="int8")


@pytest.mark.parametrize("device", ["cuda:77", "toaster", "meta", ""])
def test_refuses_devices_that_are_not_there(make, device):
    with pytest.raises(ValueError, match=f"^device must be 'auto' or .*, got '{device}': "):
        make(device=device)


def test_refuses_devices_that_are_no_names(make):
    with pytest.raises(TypeError, match=r"^device must be 'auto' or .*, got 0$"):
        make(device=0)


def test_runs_on_the_cpu_by_name(make):
    forecaster = make(device="cpu")
    assert forecaster.parameters()["device"] == "cpu"
    assert np.isfinite(forecaster.forecast([series(9)], 1).median).all()


def test_needs_no_gradients_and_no_training_mode(make):
    network = make()._network
    network = getattr(network, "inner_model", network)
    assert not network.training


def test_says_nothing(make, capfd):
    make().forecast(hard_contexts(), HORIZON)
    assert capfd.readouterr() == ("", "")


def test_forecasts_that_are_no_numbers_are_an_error(make, monkeypatch):
    forecaster = make()
    infer = forecaster._infer
    monkeypatch.setattr(forecaster, "_infer", lambda *arguments: infer(*arguments) * np.nan)
    with pytest.raises(FloatingPointError, match="gave forecasts that are not numbers in float32"):
        forecaster.forecast([series(9)], 1)
