"""Chronos-Bolt and Chronos-2, through chronos-forecasting."""

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.adapters.base import Limits, PretrainedForecaster, hushed


class ChronosForecaster(PretrainedForecaster):
    """Amazon's Chronos-Bolt ("amazon/chronos-bolt-small") or Chronos-2 ("amazon/chronos-2").

    Gives the quantiles that the model was trained on. The first Chronos models (T5) are rejected: they sample their
    forecasts, so that no two runs agree.

    Needs the extra `chronos`. See `PretrainedForecaster` for the parameters; `dtype` is "float32" or "bfloat16".
    """

    name = "chronos"
    modules = ("torch", "chronos")
    extra = "tocsin[chronos]"
    package = "chronos"
    dtypes = ("float32", "bfloat16")

    def _load(self, library: ModuleType, folder: str | None) -> Any:
        with hushed(folder):
            pipeline = library.BaseChronosPipeline.from_pretrained(
                folder or self.model, revision=self.revision, device_map=self._device, dtype=self.dtype
            )
        pipeline.inner_model.eval()
        return pipeline

    def _limits(self) -> Limits:
        pipeline = self._network
        if pipeline.forecast_type.value != "quantiles":
            raise ValueError(
                f"model must be a Chronos-Bolt or Chronos-2 model, got {self.model!r}: a first Chronos (T5)"
            )
        return Limits(pipeline.model_context_length, pipeline.model_prediction_length, tuple(pipeline.quantiles))

    def _infer(self, contexts: NDArray[np.float32], horizon: int) -> Any:
        rows = list(self._torch.from_numpy(contexts))  # a list of single series, which both kinds accept
        quantiles, _ = self._network.predict_quantiles(
            rows, prediction_length=horizon, quantile_levels=list(self.levels)
        )
        return self._torch.cat(quantiles) if isinstance(quantiles, list) else quantiles
