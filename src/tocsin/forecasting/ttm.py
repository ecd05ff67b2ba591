"""TinyTimeMixer (TTM), through granite-tsfm."""

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.pretrained import Limits, PretrainedForecaster, load_whole

_UNKNOWN_RESOLUTION = 0  # the token that granite-tsfm gives to sampling rates outside its list


class TTMForecaster(PretrainedForecaster):
    """IBM's TinyTimeMixer ("ibm-granite/granite-timeseries-ttm-r2"): small, and fast on a CPU.

    It reads contexts of one length only. Shorter ones are padded with their own mean, and so are missing values, which
    are also masked. Models with a quantile head give quantiles; the others only a median. Models that expect the
    sampling rate are told that it is unknown.

    The published models do well on calendar-like periods (24, 96, 168) and no better than noise on others (20, 30, 50).

    Needs the extra `ttm`. See `PretrainedForecaster` for the parameters.

    Examples
    --------
    ::

        forecaster = TTMForecaster("ibm-granite/granite-timeseries-ttm-r2")
        forecaster.forecast([values], horizon=15).median
    """

    name = "ttm"
    extra = "ttm"
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
