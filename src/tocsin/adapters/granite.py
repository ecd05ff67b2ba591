"""Tiny Time Mixers and FlowState, pretrained models of granite-tsfm."""

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.adapters.base import Limits, Model, PretrainedForecaster, load_whole

_UNKNOWN_RESOLUTION = 0  # the token that granite-tsfm gives to sampling rates outside its list


class TTMForecaster(PretrainedForecaster):
    """IBM's TinyTimeMixer ("ibm-granite/granite-timeseries-ttm-r2"): small, and fast on a CPU.

    It reads contexts of one length only. Shorter ones are padded with their own mean, and so are missing values, which
    are also masked. Models with a quantile head give quantiles; the others only a median. Models that expect the
    sampling rate are told that it is unknown.

    The published models do well on calendar-like periods (24, 96, 168) and no better than noise on others (20, 30, 50).

    Needs the extra `ttm`. See `PretrainedForecaster` for the parameters.
    """

    name = "ttm"
    modules = ("torch", "tsfm_public")
    extra = "tocsin[ttm]"
    package = "tsfm_public.models.tinytimemixer"
    dtypes = ("float32", "bfloat16", "float16")

    def _load(self, library: ModuleType, folder: str | None) -> Any:
        network = load_whole(library.TinyTimeMixerForPrediction, folder, self.model, self.revision)
        return network.to(self._device, getattr(self._torch, self.dtype)).eval()

    def _limits(self) -> Limits:
        config = self._network.config
        if config.num_input_channels != 1:
            raise ValueError(
                f"model must forecast signals one by one, got {self.model!r} for {config.num_input_channels} together"
            )
        horizon = config.prediction_filter_length or config.prediction_length
        levels = tuple(config.quantile_levels) if config.multi_quantile_head else ()
        return Limits(config.context_length, horizon, levels)

    def _infer(self, contexts: NDArray[np.float32], horizon: int) -> Any:
        # Otherwise the network would pad with zeros before computing the mean.
        missing = self._network.config.context_length - contexts.shape[1]
        filled = self._tensor(np.pad(contexts, ((0, 0), (missing, 0)), constant_values=np.nan))
        observed = ~filled.isnan()
        arguments = {}
        if self._network.config.resolution_prefix_tuning:
            arguments["freq_token"] = self._torch.full((len(contexts),), _UNKNOWN_RESOLUTION, device=self._device)
        outcome = self._network(
            past_values=filled.nan_to_num(), past_observed_mask=observed, return_dict=True, **arguments
        )
        if self.levels:
            return outcome.quantile_outputs[:, :, :horizon, 0].transpose(1, 2)
        return outcome.prediction_outputs[:, :horizon]

    def _tensor(self, contexts: NDArray[np.float32]) -> Any:
        return self._torch.from_numpy(contexts).to(self._device, getattr(self._torch, self.dtype)).unsqueeze(-1)


_MOST_OBSERVATIONS = 16 * 1024  # granite-tsfm's limit, whatever the scale factor


class FlowStateForecaster(PretrainedForecaster):
    """IBM's FlowState ("ibm-granite/granite-timeseries-flowstate-r1"): one model for every sampling rate.

    It forecasts one patch ahead (24 steps for the published model, divided by `scale_factor`) at no cost. Beyond that,
    every step replaces an observation in the context, so that half the context is the longest horizon.

    The quantiles are those that granite-tsfm reports: it interpolates between the model's own, which draws the outer
    ones a little towards the median.

    Needs the extra `ttm`. See `PretrainedForecaster` for the other parameters.

    Parameters
    ----------
    scale_factor : 24 divided by the period of the signal in steps, which tells the model the sampling rate (1 for a
        daily period in hourly values, .25 for one in quarter-hourly values); None for what the model was saved with.
    batch_size : see `ContextForecaster`. Small by default: it takes much memory, and larger batches are not faster.
    """

    name = "flowstate"
    modules = ("torch", "tsfm_public")
    extra = "tocsin[ttm]"
    package = "tsfm_public.models.flowstate"

    def __init__(
        self,
        model: Model,
        *,
        scale_factor: float | None = None,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        context_length: int | None = None,
        batch_size: int = 16,
        time_batch: int = 1,
    ) -> None:
        if scale_factor is not None:
            scale_factor = checks.number("scale_factor", scale_factor, above=0, most=24)
        self.scale_factor = scale_factor
        super().__init__(
            model,
            revision=revision,
            device=device,
            dtype=dtype,
            context_length=context_length,
            batch_size=batch_size,
            time_batch=time_batch,
        )

    def _load(self, library: ModuleType, folder: str | None) -> Any:
        network = load_whole(library.FlowStateForPrediction, folder, self.model, self.revision)
        return network.to(self._device).eval()

    def _limits(self) -> Limits:
        config = self._network.config
        if self.scale_factor is None:
            self.scale_factor = float(config.scale_factor)
        # granite-tsfm computes the patch in two ways, which rounding can make differ by one; this reconciles them.
        self._factor = self.scale_factor
        if int(config.decoder_patch_len / self._factor) != int(config.decoder_patch_len / self._factor + 1e-6):
            self._factor *= 1 - 1e-6
        self._patch = int(config.decoder_patch_len / self._factor)
        longest = min(_MOST_OBSERVATIONS, int(config.context_length / self._factor))
        if self._patch < 1 or longest < 2:
            raise ValueError(
                f"scale_factor must leave at least one step of the {config.decoder_patch_len} that the model "
                f"{self.model!r} looks ahead, got {self.scale_factor}"
            )
        return Limits(longest, max(self._patch, longest // 2), tuple(config.quantiles))

    def _infer(self, contexts: NDArray[np.float32], horizon: int) -> Any:
        # The network counts missing values as elapsed steps. Padding before a context is not such a step: contexts go
        # through it together only if they begin together.
        starts = np.argmax(~np.isnan(contexts), axis=1)
        outcome = self._torch.empty((len(contexts), horizon, len(self.levels)))
        for start in np.unique(starts):
            rows = np.flatnonzero(starts == start)
            outcome[rows] = self._infer_aligned(contexts[rows, start:], horizon)
        return outcome

    def _infer_aligned(self, contexts: NDArray[np.float32], horizon: int) -> Any:
        if contexts.shape[1] == 1:  # its filters need two steps
            contexts = np.pad(contexts, ((0, 0), (1, 0)), constant_values=np.nan)
        outcome = self._network(
            past_values=self._torch.from_numpy(contexts).to(self._device).unsqueeze(-1),
            scale_factor=self._factor,
            # Whole patches: otherwise granite-tsfm can return fewer steps than requested.
            prediction_length=-(horizon // -self._patch) * self._patch,
            batch_first=True,
            return_dict=True,
        )
        return outcome.quantile_outputs[:, :, :horizon, 0].transpose(1, 2).cpu()
