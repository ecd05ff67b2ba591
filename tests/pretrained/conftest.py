"""Tiny models with random weights, saved by the libraries they come from: real classes, no downloads.

These tests need libraries that weigh gigabytes, and have an environment of their own (`make test-pretrained`). Where
torch is not installed there is nothing to collect.
"""

import os
from importlib.util import find_spec
from typing import NamedTuple

import pytest

from tocsin.adapters.chronos import ChronosForecaster
from tocsin.adapters.granite import FlowStateForecaster, TTMForecaster
from tocsin.adapters.tirex import TiRexForecaster

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]

# Before huggingface_hub is imported, which asks once: a test that would download fails at once instead.
os.environ["HF_HUB_OFFLINE"] = "1"

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
CONTEXT, PATCH, HORIZON = 64, 8, 16


def save_bolt(folder):
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    config = T5Config(
        d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0, pad_token_id=0
    )  # fmt: skip
    config.chronos_pipeline_class = "ChronosBoltPipeline"
    config.chronos_config = {
        "context_length": CONTEXT,
        "prediction_length": HORIZON,
        "input_patch_size": PATCH,
        "input_patch_stride": PATCH,
        "quantiles": LEVELS,
        "use_reg_token": True,
    }
    ChronosBoltModelForForecasting(config).save_pretrained(folder)


def save_chronos2(folder):
    from chronos.chronos2 import Chronos2Model
    from chronos.chronos2.config import Chronos2CoreConfig

    config = Chronos2CoreConfig(
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        initializer_factor=0.3,
        chronos_pipeline_class="Chronos2Pipeline",
        chronos_config={
            "context_length": CONTEXT,
            "max_output_patches": HORIZON // PATCH,
            "input_patch_size": PATCH,
            "input_patch_stride": PATCH,
            "output_patch_size": PATCH,
            "quantiles": [0.01, *LEVELS, 0.99],
            "use_reg_token": True,
            "use_arcsinh": True,
        },
    )
    Chronos2Model(config).save_pretrained(folder)


def save_ttm(folder, **settings):
    from tsfm_public.models.tinytimemixer import TinyTimeMixerConfig, TinyTimeMixerForPrediction

    config = TinyTimeMixerConfig(
        context_length=CONTEXT,
        prediction_length=HORIZON,
        patch_length=PATCH,
        patch_stride=PATCH,
        d_model=8,
        num_layers=1,
        decoder_num_layers=1,
        **settings,
    )
    TinyTimeMixerForPrediction(config).save_pretrained(folder)


def save_ttm_quantiles(folder):
    save_ttm(folder, multi_quantile_head=True, quantile_levels=LEVELS)


def save_ttm_resolution(folder):
    save_ttm(folder, resolution_prefix_tuning=True, frequency_token_vocab_size=10, prediction_filter_length=10)


def save_flowstate(folder):
    from tsfm_public.models.flowstate import FlowStateConfig, FlowStateForPrediction

    config = FlowStateConfig(
        context_length=CONTEXT,
        embedding_feature_dim=8,
        encoder_num_layers=2,
        encoder_state_dim=8,
        encoder_num_hippo_blocks=2,
        decoder_patch_len=PATCH,
        decoder_dim=8,
        quantiles=LEVELS,
    )
    FlowStateForPrediction(config).save_pretrained(folder)


def save_tirex(folder):
    import torch
    from tirex.models.tirex import TiRexZero

    settings = {
        "model_config": {
            "input_patch_size": PATCH,
            "output_patch_size": PATCH,
            "quantiles": LEVELS,
            "block_kwargs": {"embedding_dim": 16, "num_heads": 2, "num_blocks": 1, "ffn_proj_factor": 2.0},
            "input_ff_dim": 16,
        },
        "train_ctx_len": CONTEXT,
    }
    # It leaves its weights as the memory was, and saves nothing itself: a checkpoint of Lightning is what it reads.
    shapes = TiRexZero(backend="torch", **settings).state_dict()
    weights = {name: 0.3 * torch.randn_like(tensor) for name, tensor in shapes.items()}
    torch.save({"hyper_parameters": settings, "state_dict": weights}, folder / "model.ckpt")


class Family(NamedTuple):
    kind: type
    save: object
    options: dict
    #: How far forecasts may differ between batches, in standardised values (the weights are random, their sums large).
    tolerance: float


FAMILIES = {
    "bolt": Family(ChronosForecaster, save_bolt, {}, 1e-3),
    "chronos2": Family(ChronosForecaster, save_chronos2, {}, 1e-3),
    "ttm": Family(TTMForecaster, save_ttm, {}, 1e-5),
    "ttm-quantiles": Family(TTMForecaster, save_ttm_quantiles, {}, 1e-5),
    "ttm-resolution": Family(TTMForecaster, save_ttm_resolution, {}, 1e-5),
    "flowstate": Family(FlowStateForecaster, save_flowstate, {}, 1e-4),
    "flowstate-scaled": Family(FlowStateForecaster, save_flowstate, {"scale_factor": 0.5}, 1e-4),
    "tirex": Family(TiRexForecaster, save_tirex, {}, 0.05),  # computes in bfloat16 inside
}


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """The folder of a family's model, saved when it is first asked for."""
    saved = {}

    def folder_of(name):
        import torch
        from transformers.utils import logging

        logging.disable_progress_bar()
        torch.set_num_threads(1)  # more of them only get into each other's way with models this small
        if name not in saved:
            saved[name] = tmp_path_factory.mktemp(name)
            with torch.random.fork_rng():
                torch.manual_seed(0)
                FAMILIES[name].save(saved[name])
        return saved[name]

    return folder_of


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture
def make(family, folders):
    """Makes forecasters of one family after the other."""
    kind, _, options, _ = FAMILIES[family]
    return lambda **more: kind(folders(family), **{**options, **more})
