"""What is particular to one model: above all, that an adapter gives what the library itself would."""

import numpy as np
import pytest
import torch

from tests.pretrained.conftest import CONTEXT, HORIZON, LEVELS, PATCH, save_ttm
from tests.pretrained.contract import series
from tocsin.adapters.chronos import ChronosForecaster
from tocsin.adapters.granite import FlowStateForecaster, TTMForecaster
from tocsin.adapters.tirex import LicenceWarning, TiRexForecaster

# Tested once, below.
pytestmark = pytest.mark.filterwarnings("ignore::tocsin.adapters.tirex.LicenceWarning")

VALUES = series(CONTEXT)


def ascending(tensor):
    return np.sort(tensor.detach().numpy().astype(np.float64), axis=-1)


@pytest.mark.parametrize("family", ["bolt", "chronos2"])
def test_chronos_is_what_its_pipeline_says(folders, family):
    from chronos import BaseChronosPipeline

    pipeline = BaseChronosPipeline.from_pretrained(folders(family), device_map="cpu", dtype="float32")
    forecaster = ChronosForecaster(folders(family))
    assert list(forecaster.levels) == pipeline.quantiles
    assert forecaster.longest_horizon == HORIZON
    holes = VALUES.copy()
    holes[[5, 40]] = np.nan
    quantiles, _ = pipeline.predict_quantiles(
        [torch.tensor(holes, dtype=torch.float32)], prediction_length=7, quantile_levels=pipeline.quantiles
    )
    theirs = ascending(quantiles[0]).reshape(7, -1)
    np.testing.assert_allclose(forecaster.forecast([holes], 7).quantiles[0], theirs, rtol=1e-4, atol=1e-3)


def test_chronos_refuses_models_that_draw_at_random(tmp_path):
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=1, vocab_size=16, decoder_start_token_id=0)
    config.chronos_pipeline_class = "ChronosPipeline"
    config.chronos_config = {
        "tokenizer_class": "MeanScaleUniformBins",
        "tokenizer_kwargs": {"low_limit": -15.0, "high_limit": 15.0},
        "context_length": 32,
        "prediction_length": 8,
        "n_tokens": 16,
        "n_special_tokens": 2,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "use_eos_token": True,
        "model_type": "seq2seq",
        "num_samples": 3,
        "temperature": 1.0,
        "top_k": 5,
        "top_p": 1.0,
    }
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"^model must be a Chronos-Bolt or Chronos-2 model, got "):
        ChronosForecaster(tmp_path)


def test_ttm_is_what_its_network_says(folders):
    from tsfm_public.models.tinytimemixer import TinyTimeMixerForPrediction

    network = TinyTimeMixerForPrediction.from_pretrained(folders("ttm")).eval()
    with torch.no_grad():
        theirs = network(torch.tensor(VALUES, dtype=torch.float32).reshape(1, -1, 1)).prediction_outputs[0, :7, 0]
    forecaster = TTMForecaster(folders("ttm"))
    # Not closer, because it adds a constant to variances that is small for standardised values only.
    np.testing.assert_allclose(forecaster.forecast([VALUES], 7).median[0], theirs.numpy(), atol=1e-4)
    assert forecaster.longest_horizon == HORIZON


def test_ttm_fills_up_with_the_mean(folders):
    forecaster = TTMForecaster(folders("ttm"))
    short = 1000 + series(20)
    filled = np.concatenate([np.full(CONTEXT - 20, short.mean()), short])
    holes = short.copy()
    holes[4] = np.nan
    whole = np.where(np.isnan(holes), np.nanmean(holes), holes)
    # With the mean in place of what is missing the deviation shrinks, and nothing else changes.
    for gappy, full in ((short, filled), (holes, whole)):
        one, other = forecaster.forecast([gappy], HORIZON).median[0], forecaster.forecast([full], HORIZON).median[0]
        assert np.abs(one - 1010).max() < 10
        assert np.corrcoef(one, other)[0, 1] > 0.8


def test_ttm_levels_and_horizons_are_the_models_own(folders):
    assert TTMForecaster(folders("ttm")).levels == ()
    assert TTMForecaster(folders("ttm-quantiles")).levels == tuple(LEVELS)
    assert TTMForecaster(folders("ttm-resolution")).longest_horizon == 10


def test_ttm_refuses_models_of_several_signals(tmp_path):
    save_ttm(tmp_path, num_input_channels=3)
    with pytest.raises(ValueError, match=r"^model must forecast signals one by one, got .* for 3 together$"):
        TTMForecaster(tmp_path)


@pytest.mark.parametrize("scale_factor", [1.0, 0.5])
@pytest.mark.parametrize("horizon", [1, PATCH, 2 * PATCH])
def test_flowstate_is_what_its_network_says(folders, scale_factor, horizon):
    from tsfm_public.models.flowstate import FlowStateForPrediction

    network = FlowStateForPrediction.from_pretrained(folders("flowstate")).eval()
    standard = (VALUES - VALUES.mean()) / VALUES.std()
    with torch.no_grad():
        outcome = network(
            torch.tensor(standard, dtype=torch.float32).reshape(1, -1, 1),
            scale_factor=scale_factor,
            prediction_length=horizon,
            batch_first=True,
        )
    theirs = ascending(outcome.quantile_outputs[0, :, :, 0].T) * VALUES.std() + VALUES.mean()
    forecaster = FlowStateForecaster(folders("flowstate"), scale_factor=scale_factor)
    np.testing.assert_allclose(forecaster.forecast([VALUES], horizon).quantiles[0], theirs, atol=1e-4)


def test_flowstate_takes_the_scale_factor_of_the_model(folders):
    forecaster = FlowStateForecaster(folders("flowstate"))
    assert forecaster.scale_factor == forecaster.parameters()["scale_factor"] == 1.0
    assert forecaster.longest_horizon == CONTEXT // 2
    assert FlowStateForecaster(folders("flowstate"), scale_factor=0.25).longest_horizon == CONTEXT * 2


@pytest.mark.parametrize("period", [*range(2, 20), 93, 99, 105, 211])
def test_flowstate_gives_all_steps_for_every_scale_factor(folders, period):
    forecaster = FlowStateForecaster(folders("flowstate"), scale_factor=PATCH / period)
    assert forecaster.scale_factor == PATCH / period
    for horizon in (period - 1, period, period + 1, 2 * period - 1, 2 * period):
        forecast = forecaster.forecast([VALUES], horizon)
        assert np.isfinite(forecast.median).all()
        assert forecast.median.shape == (1, horizon)


@pytest.mark.parametrize("value", [0, -1, 25, float("nan")])
def test_flowstate_refuses_other_scale_factors(folders, value):
    with pytest.raises(ValueError, match=r"^scale_factor must be a number > 0 and <= 24, got "):
        FlowStateForecaster(folders("flowstate"), scale_factor=value)


def test_flowstate_refuses_scale_factors_that_leave_nothing(folders):
    with pytest.raises(ValueError, match=r"^scale_factor must leave at least one step .*, got 9.0$"):
        FlowStateForecaster(folders("flowstate"), scale_factor=9)


def test_tirex_is_what_its_network_says(folders):
    from tirex.models.tirex import TiRexZero

    network = TiRexZero.from_pretrained(str(folders("tirex") / "model.ckpt"), backend="torch", device="cpu")
    quantiles, _ = network.forecast(context=torch.tensor(VALUES[-50:]), prediction_length=11, output_type="torch")
    forecaster = TiRexForecaster(folders("tirex"))
    ours = forecaster.forecast([VALUES[-50:]], 11).quantiles[0]
    np.testing.assert_allclose(ours, ascending(quantiles)[0], atol=0.05)
    assert forecaster.longest_horizon == CONTEXT


@pytest.mark.filterwarnings("error")
def test_tirex_tells_of_its_licence(folders):
    with pytest.warns(LicenceWarning, match="NXAI Community License") as caught:
        TiRexForecaster(folders("tirex"))
    assert caught[0].filename == __file__
